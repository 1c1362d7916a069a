package split

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/solve"
)

// run is a method's function.
type run = func(ctx context.Context, p *Problem, opts Options) (*Result, error)

var rows = solve.Table[run]{
	{Method: solve.Method{Name: "greedy", Description: "the start as it is, Algorithm 2's groups"},
		Run: func(_ context.Context, p *Problem, opts Options) (*Result, error) { return p.Judge(opts.Start) }},
	{Method: solve.Method{Name: "ilp", Description: "integer program over groups", Exact: true, NeedsSolver: true},
		Run: integerProgram},
	{Method: solve.Method{Name: "search", Description: "dynamic programming over what has run, best first", Exact: true},
		Run: Search},
}

// Methods lists the methods.
func Methods() []solve.Method { return rows.Methods() }

// Solve answers a problem by the method of that name.
func Solve(ctx context.Context, p *Problem, method string, opts Options) (*Result, error) {
	m, err := rows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	return m.Run(ctx, p, opts)
}
