package experiments

import (
	"context"
	"time"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/scheduler"
)

// memory compares the rules for spilling with the choice that moves least.
func (c *comparer) memory(ctx context.Context) error {
	began := time.Now()
	fresh := *c.base
	if err := fresh.BuildSteps(c.v.Outputs); err != nil {
		return err
	}
	var opts allocate.SweepOptions
	opts.TimeLimit = c.copt.TimeLimit
	_, best, err := scheduler.ChooseSpills(ctx, &fresh, opts)
	if err != nil {
		return err
	}
	replaced := func(method string, exact bool, v scheduler.Recipe, opt scheduler.Options, began time.Time) error {
		s, err := scheduler.Rebind(c.base, c.base.Bindings, c.base.Scopes, v, opt)
		if err != nil {
			return err
		}
		spills, again := scheduler.MovedBytes(s)
		d := Decided{Decision: DecisionMemory, Method: method, Unit: "bytes moved", Cost: float64(spills + again), Bound: float64(best.Bound), Status: "greedy"}
		switch {
		case spills+again <= best.Bound:
			d.Status = "optimal"
		case exact:
			d.Status = "feasible"
		}
		return c.add(ctx, d, s, began)
	}
	took := time.Since(began)
	for _, rule := range []graphturbo.SpillRule{graphturbo.LongestLifetime, graphturbo.LargestFirst} {
		opt := c.opt
		opt.Spill = rule
		if err := replaced(string(rule), false, c.v, opt, time.Now()); err != nil {
			return err
		}
	}
	v := c.v
	v.Memory = scheduler.ExactMemory
	return replaced("search", true, v, c.opt, time.Now().Add(-took))
}
