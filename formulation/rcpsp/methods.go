package rcpsp

import (
	"context"
	"fmt"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// run is what takes a schedule to better ones.
type run = func(ctx context.Context, p *Project, opt Options) (*Result, error) // nil: nothing to better

var rows = solve.Table[run]{
	{Method: solve.Method{Name: "list", Description: "list scheduling with priority rules and justification; no proof"}, Run: nil},
	{Method: solve.Method{Name: "ilp", Description: "integer linear program, solved by HiGHS; for small projects", Exact: true, NeedsSolver: true},
		Run: func(ctx context.Context, p *Project, opt Options) (*Result, error) {
			return ILP(ctx, p, ILPOptions{Options: opt})
		}},
	{Method: solve.Method{Name: "search", Description: "constraint propagation that learns from dead ends", Exact: true},
		Run: func(ctx context.Context, p *Project, opt Options) (*Result, error) {
			return Search(ctx, p, SearchOptions{Options: opt})
		}},
}

// Methods lists list scheduling and the exact methods.
func Methods() []solve.Method { return rows.Methods() }

// Solve schedules a project by the method of that name. Without a start it begins with
// [Best], under the same limit of time, and there always is a schedule.
func Solve(ctx context.Context, p *Project, method string, opt Options) (*Result, error) {
	began := time.Now()
	m, err := rows.Find(method, opt.Solver)
	if err != nil {
		return nil, fmt.Errorf("rcpsp: %w", err)
	}
	if err := validate(p, &opt); err != nil {
		return nil, err
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	opt.TimeLimit = 0 // the context's from here on
	if opt.Start == nil {
		opt.Start = Best(ctx, p, ListOptions{Seed: uint64(opt.Seed)})
	}
	r := p.answer(method, opt.Start, p.Bounds().Best(), solve.Why(ctx), began)
	if m.Run != nil && r.Status != milp.Optimal {
		if r, err = m.Run(ctx, p, opt); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, p.Check(r.Start)
}
