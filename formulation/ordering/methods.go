package ordering

import (
	"context"
	"fmt"
	"time"

	"github.com/dsasched/dsasched/formulation/solve"
)

// A row is a method with what runs it.
type row struct {
	solve.Method
	run func(ctx context.Context, p *Problem, objective Objective, opts Options) (*Result, error)
}

var rows = []row{
	rule(BFS, "breadth first"),
	rule(DFS, "Algorithm 3 of the paper, depth first"),
	rule(Heavy, "what frees most first, then what needs most"),
	{solve.Method{Name: "position-ilp", Description: "integer program over instances and positions", Exact: true, NeedsSolver: true},
		func(ctx context.Context, p *Problem, objective Objective, opts Options) (*Result, error) {
			return PositionILP(ctx, p, objective, ILPOptions{Options: opts})
		}},
	{solve.Method{Name: "counting-ilp", Description: "integer program over classes of instances", Exact: true, NeedsSolver: true},
		func(ctx context.Context, p *Problem, objective Objective, opts Options) (*Result, error) {
			return CountingILP(ctx, p, objective, ILPOptions{Options: opts})
		}},
	{solve.Method{Name: "search", Description: "state-space search", Exact: true},
		func(ctx context.Context, p *Problem, objective Objective, opts Options) (*Result, error) {
			return Search(ctx, p, objective, SearchOptions{Options: opts})
		}},
}

func rule(r Rule, description string) row {
	return row{solve.Method{Name: string(r), Description: description},
		func(_ context.Context, p *Problem, objective Objective, _ Options) (*Result, error) {
			return ByRule(p, r, objective)
		}}
}

// Methods lists the rules and the exact methods.
func Methods() []solve.Method {
	list := make([]solve.Method, len(rows))
	for k := range rows {
		list[k] = rows[k].Method
	}
	return list
}

// Solve answers a valid problem by the method of that name. Without a start the exact
// ones begin from the best order by a rule. A problem without an order is an answer, not
// an error.
func Solve(ctx context.Context, p *Problem, objective Objective, method string, opts Options) (*Result, error) {
	begin := time.Now()
	k, err := solve.Find(Methods(), method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("ordering: %w", err)
	}
	if rows[k].Exact && opts.Start == nil {
		if opts.Start, err = BestRule(NewGraph(p), objective); err != nil {
			return nil, err
		}
	}
	r, err := rows[k].run(ctx, p, objective, opts)
	if err == nil {
		r.Seconds = time.Since(begin).Seconds()
	}
	return r, err
}
