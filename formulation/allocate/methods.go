package allocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// run places buffers within a capacity or [NoLimit].
type run = func(ctx context.Context, p *Problem, capacity int64, opts Options) (*Result, error)

var rows = solve.Table[run]{
	placing(firstFit, "by birth, into the lowest room"),
	placing(bestFit, "by birth, into the smallest room"),
	placing(longestLifetime, "first fit, longest lifetime first"),
	placing(largestFirst, "first fit, largest size first"),
	{Method: solve.Method{Name: "search", Description: "exact, by search", Exact: true},
		Run: func(ctx context.Context, p *Problem, capacity int64, opts Options) (*Result, error) {
			if capacity == NoLimit {
				return Minimize(ctx, p, opts)
			}
			return Fit(ctx, p, capacity, opts)
		}},
}

func placing(rule Rule, description string) solve.Row[run] {
	return solve.Row[run]{Method: solve.Method{Name: string(rule), Description: description},
		Run: func(ctx context.Context, p *Problem, capacity int64, _ Options) (*Result, error) {
			return byRule(ctx, p, rule, capacity)
		}}
}

// Methods lists the rules and the exact method for placements.
func Methods() []solve.Method { return rows.Methods() }

// Solve looks for a placement within a capacity, or of the least peak if that is [NoLimit], by the method of that
// name. Without a start the exact one begins from the best placement by a rule. An infeasible answer says where the
// capacity is too small, if that is so at one time.
func Solve(ctx context.Context, p *Problem, capacity int64, method string, opts Options) (*Result, error) {
	began := time.Now()
	m, err := rows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("allocate: %w", err)
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	opts.TimeLimit = min(opts.TimeLimit, 0)
	if m.Exact && opts.Start == nil {
		if opts.Start, err = bestRule(ctx, p); err != nil {
			return nil, err
		}
	}
	r, err := m.Run(ctx, p, capacity, opts)
	if err != nil {
		return nil, err
	}
	if r.Status == milp.Infeasible && capacity != NoLimit {
		r.Overfull = p.Overfull(capacity)
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// Tighten looks for a placement within a capacity as [Solve] does and, if it finds one, goes
// on to the least peak from there.
func Tighten(ctx context.Context, p *Problem, capacity int64, method string, opts Options) (*Result, error) {
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	opts.TimeLimit = 0
	fit, err := Solve(ctx, p, capacity, method, opts)
	if err != nil || fit.Status != milp.Feasible {
		return fit, err
	}
	opts.Start = fit.Offsets
	least, err := Solve(ctx, p, NoLimit, method, opts)
	if err != nil {
		return nil, err
	}
	least.Seconds += fit.Seconds
	if least.Peak == nil || *least.Peak > *fit.Peak {
		least = fit // a rule's answer, or what came before a limit
	}
	return least.within(capacity), nil
}

// spillRun chooses the buffers to spill.
type spillRun = func(ctx context.Context, p *Problem, capacity int64, opts SpillOptions) (*SpillResult, error)

var spillRows = solve.Table[spillRun]{
	spilling(SpillLongestLifetime, "longest lifetime first"),
	spilling(SpillLargest, "largest first"),
	{Method: solve.Method{Name: "ilp", Description: "exact, by integer programming", Exact: true, NeedsSolver: true},
		Run: spillILP},
	{Method: solve.Method{Name: "search", Description: "exact, by search", Exact: true}, Run: Spill},
}

func spilling(rule spillRule, description string) solve.Row[spillRun] {
	return solve.Row[spillRun]{Method: solve.Method{Name: string(rule), Description: description},
		Run: func(ctx context.Context, p *Problem, capacity int64, opts SpillOptions) (*SpillResult, error) {
			spilled, err := spillByRule(p, capacity, rule)
			if err != nil {
				return nil, err
			}
			r := (&SpillResult{Method: string(rule), Spilled: spilled}).finish(p, milp.Complete)
			if !opts.Place {
				return r, nil
			}
			kept, place := keep(p, spilled)
			ctx, cancel := opts.Begin(ctx)
			defer cancel()
			placed, err := Fit(ctx, kept, capacity, opts.placing())
			if err != nil {
				return nil, err
			}
			if r.Placement = placed.Status; placed.Status.HasValues() {
				r.Offsets = spread(p, place, placed.Offsets)
			} else if r.Status == milp.Optimal {
				r.Status = milp.Feasible // it costs nothing, and what stays has no place
			}
			return r, nil
		}}
}

// SpillMethods lists the rules and the exact methods that choose what to spill.
func SpillMethods() []solve.Method { return spillRows.Methods() }

// SolveSpill chooses what leaves a memory of the given capacity by the method of that name.
func SolveSpill(ctx context.Context, p *Problem, capacity int64, method string, opts SpillOptions) (
	*SpillResult, error) {
	began := time.Now()
	m, err := spillRows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("allocate: %w", err)
	}
	r, err := m.Run(ctx, p, capacity, opts)
	if err == nil {
		r.Seconds = time.Since(began).Seconds()
	}
	return r, err
}

// CompareSpills chooses by each of some methods. The exact ones begin with the best
// choice before them that has offsets, and what is proven of one holds for all.
func CompareSpills(ctx context.Context, p *Problem, capacity int64, methods []string, opts SpillOptions) (
	[]*SpillResult, error) {
	if len(methods) == 0 {
		return nil, errors.New("allocate: no methods to compare")
	}
	var all []*SpillResult
	bound := int64(0)
	for _, method := range methods {
		r, err := SolveSpill(ctx, p, capacity, method, opts)
		if err != nil {
			return nil, err
		}
		if start := opts.Start.Spilled; r.Offsets != nil && (start == nil || r.Cost < SpillCost(p, start)) {
			opts.Start = SpillStart{r.Spilled, r.Offsets}
		}
		bound = max(bound, r.Bound)
		all = append(all, r)
	}
	for _, r := range all {
		r.Bound = bound
		if r.Spilled != nil && r.Cost == bound && (!opts.Place || r.Offsets != nil) {
			r.Status, r.Stop = milp.Optimal, milp.Complete
		}
	}
	return all, nil
}
