package pipeline

import (
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/schedule"
)

// A JointNetwork is the problem of order, bindings and scopes that a schedule poses.
type JointNetwork struct {
	Problem *joint.Problem
	labels  *binding.Network
	order   []int // that of the schedule, with all that the problem says is read before its readers
}

// JointProblem poses it: [OrderProblem] and [binding.FromSchedule] over the same
// instances, with moves at the rate at which the cost of a binding has them, without
// latencies.
func JointProblem(ctx context.Context, s *schedule.Schedule, opt Options) (*JointNetwork, error) {
	m, err := CostModel(s, opt)
	if err != nil {
		return nil, err
	}
	n, err := binding.FromSchedule(ctx, s, m)
	if err != nil {
		return nil, err
	}
	return newJointProblem(s, n, opt)
}

func newJointProblem(s *schedule.Schedule, n *binding.Network, opt Options) (*JointNetwork, error) {
	p, _, err := OrderProblem(s, opt)
	if err != nil {
		return nil, err
	}
	return &JointNetwork{&joint.Problem{Order: p, Labels: n.Problem, SecondsPerCost: secondsPerByte(s.Spec)}, n,
		ordering.NewGraph(p).Obey(s.Order)}, nil
}

// secondsPerByte is the time of a byte between the LBs of a cluster and the next level,
// with all links at work.
func secondsPerByte(spec *hardware.Spec) float64 {
	t := float64(spec.Clusters) / spec.DDR.BandwidthBytesPerSecond
	if spec.GB != nil {
		t = 1 / spec.GB.BandwidthBytesPerSecond
	}
	if link := spec.CoreLink.BandwidthBytesPerSecond; link > 0 {
		t = math.Max(t, 1/(link*float64(schedule.CoresWithLB(spec))))
	}
	return t
}

// Search solves the problem from what the schedule has.
func (n *JointNetwork) Search(ctx context.Context, opts joint.SearchOptions) (*joint.Result, error) {
	opts.Start.Choice = n.labels.Given
	if ordering.NewGraph(n.Problem.Order).Feasible() == nil {
		opts.Start.Order = n.order
	}
	return joint.Search(ctx, n.Problem, opts)
}

// Given is the cost of the schedule's own order and labels, in seconds, with the moves
// that its order needs; false if nothing fits.
func (n *JointNetwork) Given() (float64, bool, error) {
	steps, err := n.Problem.Sequence(n.labels.Given, n.order)
	if err != nil || steps == nil {
		return 0, false, err
	}
	labels, moves, err := n.Problem.Seconds(n.labels.Given, steps)
	return labels + moves, err == nil, err
}

var jointOrder = Strategy{Name: "joint", Description: "order, bindings and scopes of least cost together, by search",
	Exact: true,
	Sets:  []Pick{{"bind", "joint"}}, Needs: []Pick{{"bind", "joint"}},
	Decide: func(ctx context.Context, d *Draft) error {
		if err := algorithm3.Decide(ctx, d); err != nil {
			return err
		}
		if err := algorithm4.Decide(ctx, d); err != nil {
			return err
		}
		labels, err := d.state.shared.bindings(ctx, d)
		if err != nil {
			return err
		}
		n, err := newJointProblem(d.Schedule, labels, d.Options)
		if err != nil {
			return err
		}
		// Limits under which the search ends anywhere at the same place; under a limit of
		// time, one part that is hard by itself must not take all of it.
		opts := joint.SearchOptions{Options: joint.Options{WorkLimit: 64, TimeLimit: d.Options.searchLimit()},
			MaxStates: searchStates, NoBranchLabels: true}
		if d.Options.TimeLimitOnly {
			opts.WorkLimit = 0
		}
		r, err := n.Search(ctx, opts)
		if err != nil {
			return err
		}
		if r.Choice == nil {
			// Nothing fits: the memory plan spills, and bindings are chosen for the order.
			note := "no order fits"
			if r.Infeasible != nil {
				note = r.Infeasible.Error()
			}
			d.Bindings, d.Scopes = nil, nil
			d.solve("order", SecondsUnit, r.Outcome(), note)
			return nil
		}
		if order := orderOf(d.Schedule, r.Steps); !slices.Equal(order, d.Order) {
			d.Order, d.OrderName = order, "joint"
		}
		d.Bindings, d.Scopes = n.labels.Decode(r.Choice)
		d.solve("order", SecondsUnit, r.Outcome(), "")
		return nil
	}}

var jointBinding = Strategy{Name: "joint", Description: "what the order joint has chosen with the order", Exact: true,
	Sets: []Pick{{"order", "joint"}}, Needs: []Pick{{"order", "joint"}},
	Decide: func(ctx context.Context, d *Draft) error {
		if d.Bindings != nil {
			return nil
		}
		return d.leastBinding(ctx, "joint")
	}}
