package joint

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
	{solve.Method{Name: "ilp", Description: "integer program over labels, instances and positions", Exact: true, NeedsSolver: true},
		func(ctx context.Context, p *Problem, opts Options) (*Result, error) {
			return ILP(ctx, p, ILPOptions{Options: opts})
		}},
	{solve.Method{Name: "search", Description: "branch and bound over scopes", Exact: true},
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
		return nil, fmt.Errorf("joint: %w", err)
	}
	return rows[k].run(ctx, p, opts)
}
