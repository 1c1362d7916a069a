package rcpsp

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// Options are the settings of every method; a start is the start times of a schedule.
type Options = solve.Options[[]int64]

// A Result is a method's answer. Times are in the project's unit.
type Result struct {
	Method   string      `json:"method"`
	Status   milp.Status `json:"status"` // Optimal, Feasible, or Limit where nothing was found
	Stop     milp.Stop   `json:"stop"`
	Makespan int64       `json:"makespan"`
	Bound    int64       `json:"bound"`   // no makespan is below it
	Seconds  float64     `json:"seconds"` // that the method took
	Start    []int64     `json:"start"`   // of the activities; nil where nothing was found
}

// Outcome summarises the answer, in the project's unit of time.
func (r *Result) Outcome() solve.Outcome {
	o := solve.Outcome{Status: r.Status, Objective: float64(r.Makespan), Bound: float64(r.Bound), Stop: r.Stop}
	if r.Start == nil {
		o.Objective = math.Inf(1)
	}
	return o
}

// answer makes the result of a schedule; nil stands for none.
func (p *Project) answer(method string, start []int64, bound int64, stop milp.Stop, began time.Time) *Result {
	r := &Result{Method: method, Start: start, Bound: bound, Seconds: time.Since(began).Seconds()}
	if start != nil {
		r.Makespan = p.Makespan(start)
		r.Bound = min(r.Bound, r.Makespan)
	}
	r.Status, r.Stop = solve.Judge(start != nil, r.Bound == r.Makespan, stop)
	return r
}

func validate(p *Project, opt *Options) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := opt.Validate(); err != nil {
		return fmt.Errorf("project %q: %w", p.Name, err)
	}
	if opt.Start != nil {
		if err := p.Check(opt.Start); err != nil {
			return fmt.Errorf("the schedule to start from: %w", err)
		}
	}
	return nil
}

// run improves a schedule.
type run = func(ctx context.Context, p *Project, opt Options) (*Result, error) // nil: nothing to better

var rows = solve.Table[run]{
	{Method: solve.Method{Name: "list", Description: "list scheduling with priority rules and justification; no proof"},
		Run: nil},
	{Method: solve.Method{Name: "ilp", Description: "integer linear program, solved by HiGHS; for small projects",
		Exact: true, NeedsSolver: true}, Run: ILP},
}

// Methods lists list scheduling and the integer program.
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
	r := p.answer(method, opt.Start, p.Bound(), solve.Why(ctx), began)
	if m.Run != nil && r.Status != milp.Optimal {
		if r, err = m.Run(ctx, p, opt); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, p.Check(r.Start)
}
