package scheduler

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/schedule"
)

// A JointNetwork is the problem of order, bindings and scopes that a schedule poses.
type JointNetwork struct {
	Problem *joint.Problem
	labels  *binding.Network
	order   []int // that of the schedule
}

// JointProblem poses it: [OrderProblem] and [binding.FromSchedule] over the same
// instances, with moves at the rate at which the cost of a binding has them, without
// latencies.
func JointProblem(s *schedule.Schedule, opt Options) (*JointNetwork, error) {
	p, _, err := OrderProblem(s, opt)
	if err != nil {
		return nil, err
	}
	m, err := cost.NewWith(s.Spec, opt.Cost)
	if err != nil {
		return nil, err
	}
	n, err := binding.FromSchedule(s, m)
	if err != nil {
		return nil, err
	}
	return &JointNetwork{&joint.Problem{Order: p, Labels: n.Problem, SecondsPerCost: secondsPerByte(s.Spec)}, n, s.Order}, nil
}

// secondsPerByte is what a byte takes between the LBs of a cluster and the next level,
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

// Given is what the schedule's own order and labels cost, in seconds, with the moves
// that its order needs; false if nothing fits.
func (n *JointNetwork) Given() (float64, bool, error) {
	steps, err := n.Problem.Sequence(n.labels.Given, n.order)
	if err != nil || steps == nil {
		return 0, false, err
	}
	labels, moves, err := n.Problem.Seconds(n.labels.Given, steps)
	return labels + moves, err == nil, err
}

// Apply is the schedule with the order, bindings and scopes of an answer.
func (n *JointNetwork) Apply(from *schedule.Schedule, r *joint.Result, v Recipe, opt Options) (*schedule.Schedule, error) {
	s := *from
	var order []int
	for _, st := range r.Steps {
		order = append(order, s.Instances.First[st.Run[0]]+st.Run[1])
	}
	if len(order) != len(s.Order) {
		return nil, fmt.Errorf("an order of %d instances, expected %d", len(order), len(s.Order))
	}
	if !slices.Equal(order, s.Order) {
		s.Order, s.OrderName = order, "joint"
	}
	bindings, scopes := n.labels.Decode(r.Choice)
	return Rebind(&s, bindings, scopes, v, opt)
}

// JointLimits are limits under which [JointNetwork.Search] ends anywhere at the same
// place.
func JointLimits() joint.SearchOptions {
	return joint.SearchOptions{Options: joint.Options{WorkLimit: 64}, MaxStates: searchStates, NoBranchLabels: true}
}

// exactJoint gives a finished schedule the order, bindings and scopes of least cost.
func exactJoint(ctx context.Context, s *schedule.Schedule, v Recipe, opt Options) (*schedule.Schedule, error) {
	n, err := JointProblem(s, opt)
	if err != nil {
		return nil, err
	}
	r, err := n.Search(ctx, JointLimits())
	if err != nil {
		return nil, err
	}
	if r.Choice == nil {
		return exactBinding(ctx, s, v, opt) // nothing fits: the memory plan spills
	}
	return n.Apply(s, r, v, opt)
}
