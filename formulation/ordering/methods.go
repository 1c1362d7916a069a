package ordering

import (
	"context"
	"fmt"
	"time"

	"github.com/dsasched/dsasched/formulation/solve"
)

// run is a method's function.
type run = func(ctx context.Context, p *Problem, objective Objective, opts Options) (*Result, error)

var rows = solve.Table[run]{
	rule(BFS, "breadth first"),
	rule(DFS, "Algorithm 3 of the paper, depth first"),
	rule(Heavy, "what frees most first, then what needs most"),
	{Method: solve.Method{Name: "counting-ilp", Description: "integer program over classes of instances", Exact: true,
		NeedsSolver: true}, Run: CountingILP},
	{Method: solve.Method{Name: "search", Description: "state-space search", Exact: true}, Run: Search},
}

func rule(r Rule, description string) solve.Row[run] {
	return solve.Row[run]{Method: solve.Method{Name: string(r), Description: description},
		Run: func(_ context.Context, p *Problem, objective Objective, _ Options) (*Result, error) {
			return ByRule(p, r, objective)
		}}
}

// Methods lists the rules and the exact methods.
func Methods() []solve.Method { return rows.Methods() }

// Solve answers a valid problem by the method of that name. Without a start the exact ones begin from the best order
// by a rule. A problem without an order is an answer, not an error.
func Solve(ctx context.Context, p *Problem, objective Objective, method string, opts Options) (*Result, error) {
	begin := time.Now()
	m, err := rows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("ordering: %w", err)
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	if m.Exact && opts.Start == nil {
		if opts.Start, err = bestRule(NewGraph(p), objective); err != nil {
			return nil, err
		}
	}
	r, err := m.Run(ctx, p, objective, opts)
	if err == nil {
		r.Seconds = time.Since(begin).Seconds()
	}
	return r, err
}
