package experiments

import (
	"context"
	"time"

	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// bestJoint are the order, the bindings and the scopes of least cost for a schedule's
// groups; no choice if an instance does not fit.
func (c *comparer) bestJoint(ctx context.Context, s *schedule.Schedule) (*scheduler.JointNetwork, *joint.Result, error) {
	n, err := scheduler.JointProblem(s, c.opt)
	if err != nil {
		return nil, nil, err
	}
	opts := scheduler.JointLimits()
	if c.copt.TimeLimit > 0 {
		// One part that is hard by itself must not take all of the time.
		opts.TimeLimit, opts.WorkLimit = c.copt.TimeLimit, 0
	}
	r, err := n.Search(ctx, opts)
	return n, r, err
}

// joint replaces order, bindings and scopes by one search for all three. The objective
// of all rows is that of package formulation/joint: seconds of bindings and scopes, and
// of what the order spills.
func (c *comparer) joint(ctx context.Context) error {
	began := time.Now()
	n, r, err := c.bestJoint(ctx, c.base)
	if err != nil {
		return err
	}
	took := time.Since(began)
	greedy, fits, err := n.Given()
	if err != nil {
		return err
	}
	if !fits {
		note := "no order fits"
		if r.Infeasible != nil {
			note = r.Infeasible.Error()
		}
		return c.add(ctx, Decided{Decision: DecisionJoint, Method: "search", Unit: "s", Status: r.Status.String(), Note: note}, nil, began)
	}
	status := "greedy"
	if greedy <= r.Bound {
		status = "optimal"
	}
	if err := c.add(ctx, Decided{Decision: DecisionJoint, Method: "algorithms 3 and 4", Unit: "s", Cost: greedy, Bound: r.Bound, Status: status}, c.base, time.Now()); err != nil {
		return err
	}
	made, err := n.Apply(c.base, r, c.v, c.opt)
	if err != nil {
		return err
	}
	return c.add(ctx, Decided{Decision: DecisionJoint, Method: "search", Unit: "s", Cost: r.Objective, Bound: r.Bound, Status: r.Status.String()}, made, time.Now().Add(-took))
}
