package split

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/solve"
)

// A row is a method with what runs it.
type row struct {
	solve.Method
	run func(ctx context.Context, p *Problem, opts Options) (*Result, error)
}

var rows = []row{
	{solve.Method{Name: "greedy", Description: "the start as it is, Algorithm 2's groups"},
		func(_ context.Context, p *Problem, opts Options) (*Result, error) { return p.Judge(opts.Start) }},
	{solve.Method{Name: "ilp", Description: "integer program over groups", Exact: true, NeedsSolver: true},
		func(ctx context.Context, p *Problem, opts Options) (*Result, error) {
			return ILP(ctx, p, ILPOptions{Options: opts})
		}},
	{solve.Method{Name: "search", Description: "dynamic programming over what has run, best first", Exact: true},
		func(ctx context.Context, p *Problem, opts Options) (*Result, error) {
			return Search(ctx, p, SearchOptions{Options: opts})
		}},
}

// Methods lists the methods.
func Methods() []solve.Method {
	list := make([]solve.Method, len(rows))
	for k := range rows {
		list[k] = rows[k].Method
	}
	return list
}

// Solve answers a problem by the method of that name.
func Solve(ctx context.Context, p *Problem, method string, opts Options) (*Result, error) {
	k, err := solve.Find(Methods(), method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	return rows[k].run(ctx, p, opts)
}
