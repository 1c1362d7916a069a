package rcpsp

import (
	"context"
	"fmt"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// A row is a method with what runs it from a schedule to better.
type row struct {
	solve.Method
	run func(ctx context.Context, p *Project, opt Options) (*Result, error) // nil: nothing to better
}

var rows = []row{
	{solve.Method{Name: "list", Description: "list scheduling with priority rules and justification; no proof"}, nil},
	{solve.Method{Name: "ilp", Description: "integer linear program, solved by HiGHS; for small projects", Exact: true, NeedsSolver: true},
		func(ctx context.Context, p *Project, opt Options) (*Result, error) {
			return ILP(ctx, p, ILPOptions{Options: opt})
		}},
	{solve.Method{Name: "search", Description: "constraint propagation that learns from dead ends", Exact: true},
		func(ctx context.Context, p *Project, opt Options) (*Result, error) {
			return Search(ctx, p, SearchOptions{Options: opt})
		}},
}

// Methods lists list scheduling and the exact methods.
func Methods() []solve.Method {
	list := make([]solve.Method, len(rows))
	for k := range rows {
		list[k] = rows[k].Method
	}
	return list
}

// Solve schedules a project by the method of that name. Without a start it begins with
// [Best], under the same limit of time, and there always is a schedule.
func Solve(ctx context.Context, p *Project, method string, opt Options) (*Result, error) {
	began := time.Now()
	k, err := solve.Find(Methods(), method, opt.Solver)
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
		opt.Start = Best(ctx, p, ListOptions{})
	}
	r := p.answer(method, opt.Start, p.Bounds().Best(), solve.Why(ctx), began)
	if rows[k].run != nil && r.Status != milp.Optimal {
		if r, err = rows[k].run(ctx, p, opt); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, p.Check(r.Start)
}
