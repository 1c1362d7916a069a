package scheduler

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model/schedule"
)

// Rebind is a schedule with other bindings and scopes: groups, instances and order
// stay, joins, steps and the memory plan are made anew, by the rules of Schedule.
// The schedule that it starts from is not changed.
func Rebind(from *schedule.Schedule, bindings []schedule.Binding, scopes []schedule.Level, v Recipe, opt Options) (*schedule.Schedule, error) {
	if n := len(from.Instances.Instances); len(bindings) != n || len(scopes) != n {
		return nil, fmt.Errorf("%d bindings and %d scopes for %d instances", len(bindings), len(scopes), n)
	}
	s := &schedule.Schedule{Graph: from.Graph, Spec: from.Spec, Grouping: from.Grouping, Layers: from.Layers, Instances: from.Instances,
		Order: from.Order, OrderName: from.OrderName, Costs: from.Costs, Bindings: bindings, Scopes: scopes}
	s.Joins = graphturbo.Join(s.Graph, s.Grouping, s.Instances, s.Order, s.Bindings, s.Scopes)
	if err := s.BuildSteps(v.Outputs); err != nil {
		return nil, err
	}
	measureJoins(s)
	if err := place(s, v, opt); err != nil {
		return nil, err
	}
	if err := schedule.Check(s); err != nil {
		return nil, fmt.Errorf("internal error, the schedule breaks a rule: %w", err)
	}
	return s, nil
}

// Replay simulates a schedule of one cluster's chunk that every busy cluster runs
// a number of times.
func Replay(ctx context.Context, name string, s *schedule.Schedule, clusters int, iterations int, opt lower.Options) (*sim.Result, error) {
	plans := make([][]lower.Segment, s.Spec.Clusters)
	for k := range min(clusters, len(plans)) {
		plans[k] = []lower.Segment{{Schedule: s, Iterations: iterations}}
	}
	p, err := lower.Program(name, s.Spec, plans, opt)
	if err != nil {
		return nil, err
	}
	r, err := sim.Run(ctx, p, sim.Options{})
	if err != nil {
		return nil, err
	}
	if err := sim.CheckBuffers(p, r); err != nil {
		return nil, fmt.Errorf("internal error, the program overwrites memory in use: %w", err)
	}
	return r, nil
}
