package joint

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/solve"
)

// run is what a method runs.
type run = func(ctx context.Context, p *Problem, opts Options) (*Result, error)

var rows = solve.Table[run]{
	{Method: solve.Method{Name: "ilp", Description: "integer program over labels, instances and positions", Exact: true, NeedsSolver: true},
		Run: func(ctx context.Context, p *Problem, opts Options) (*Result, error) {
			return ILP(ctx, p, ILPOptions{Options: opts})
		}},
	{Method: solve.Method{Name: "search", Description: "branch and bound over scopes", Exact: true},
		Run: func(ctx context.Context, p *Problem, opts Options) (*Result, error) {
			return Search(ctx, p, SearchOptions{Options: opts})
		}},
}

// Methods lists the methods.
func Methods() []solve.Method { return rows.Methods() }

// Solve answers a problem by the method of that name.
func Solve(ctx context.Context, p *Problem, method string, opts Options) (*Result, error) {
	m, err := rows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("joint: %w", err)
	}
	return m.Run(ctx, p, opts)
}
