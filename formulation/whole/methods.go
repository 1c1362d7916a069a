package whole

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/solve"
)

// run is what a method runs.
type run = func(ctx context.Context, p *Problem, opts Options) (*Result, error)

var rows = solve.Table[run]{
	{Method: solve.Method{Name: "ilp", Description: "one integer program", Exact: true, NeedsSolver: true}, Run: ILP},
	{Method: solve.Method{Name: "search", Description: "sets of parts by rising bound", Exact: true}, Run: Search},
}

// Methods lists the methods.
func Methods() []solve.Method { return rows.Methods() }

// Solve answers a problem by the method of that name.
func Solve(ctx context.Context, p *Problem, method string, opts Options) (*Result, error) {
	m, err := rows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("whole: %w", err)
	}
	return m.Run(ctx, p, opts)
}
