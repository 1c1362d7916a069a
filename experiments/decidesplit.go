package experiments

import (
	"context"
	"time"

	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/scheduler"
)

// timedSplitStates takes the place of split.DefaultMaxStates where time is the limit:
// within some GB.
const timedSplitStates = 10 * split.DefaultMaxStates

// bestSplit are the sub-graphs and factors of least cost.
func (c *comparer) bestSplit(ctx context.Context) (*split.Network, *split.Result, error) {
	n, err := scheduler.SplitProblem(c.base.Graph, c.base.Grouping, c.base.Spec, c.opt)
	if err != nil {
		return nil, nil, err
	}
	opts := split.SearchOptions{Options: split.Options{Start: n.Given}}
	if c.copt.TimeLimit > 0 {
		opts.TimeLimit, opts.WorkLimit = c.copt.TimeLimit, timedSplitStates
	}
	r, err := split.Search(ctx, n.Problem, opts)
	return n, r, err
}

// split compares the sub-graphs and factors of Algorithms 1 and 2 with those of least
// cost.
func (c *comparer) split(ctx context.Context) error {
	began := time.Now()
	n, r, err := c.bestSplit(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	status := "greedy"
	if n.GivenSeconds <= r.Bound {
		status = "optimal"
	}
	if err := c.add(ctx, Decided{Decision: DecisionSplit, Method: "algorithms 1 and 2", Unit: "s", Cost: n.GivenSeconds, Bound: r.Bound, Status: status}, c.base, time.Now()); err != nil {
		return err
	}
	d := Decided{Decision: DecisionSplit, Method: "search", Unit: "s", Cost: r.Objective, Bound: r.Bound, Status: r.Status.String()}
	s, err := scheduler.Regroup(c.base.Graph, c.base.Spec, n.Decode(r.Choice), c.v, c.opt)
	if err != nil {
		d.Note = "not simulated: " + err.Error()
	}
	return c.add(ctx, d, s, time.Now().Add(-took))
}
