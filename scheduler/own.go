package scheduler

import (
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Grouper makes the first decisions: which operators become one kernel, and into how
// many instances along which dimension each group is split. Groups stand in an order
// in which they can run; their IDs are their positions. The layers of a group are
// found by schedule.Layers.
type Grouper interface {
	Group(g *model.Graph, spec *hardware.Spec) (*schedule.Grouping, error)
}

// Orderer orders the instances. Of s, the graph, the accelerator, the groups and the
// instances with their dependencies are there; the answer is a permutation of the IDs
// of s.Instances.Instances in which producers come before consumers.
type Orderer interface {
	Order(s *schedule.Schedule) ([]int, error)
}

// Binder binds each instance to cores, as a number of them for each dimension of its
// group's first output, and gives the level where that output lives. Of s, what an
// Orderer sees is there, and the order.
type Binder interface {
	Bind(s *schedule.Schedule) ([]schedule.Binding, []schedule.Level, error)
}

// own stands for a decision of the caller's.
const own = "the caller's own"

// own is v with that name for the decisions that the caller makes.
func (v Recipe) own() Recipe {
	if v.Grouper != nil {
		v.Groups = own
	}
	if v.Orderer != nil {
		v.Order = own
	}
	if v.Binder != nil {
		v.Bind = own
	}
	return v
}

// The answers of the caller's own decisions are checked at once, so that an error
// names the one that is at fault.

func (v Recipe) group(s *schedule.Schedule) (err error) {
	if s.Grouping, err = v.Grouper.Group(s.Graph, s.Spec); err == nil {
		err = schedule.CheckGrouping(s.Graph, s.Grouping)
	}
	if err != nil {
		return fmt.Errorf("the groups of variant %s: %w", v.Name, err)
	}
	for _, sg := range s.Grouping.Groups {
		s.Layers = append(s.Layers, schedule.Layers(s.Graph, sg.Ops))
	}
	return nil
}

func (v Recipe) order(s *schedule.Schedule) (err error) {
	s.OrderName = v.Name
	if s.Order, err = v.Orderer.Order(s); err == nil {
		err = schedule.CheckOrder(s.Instances, s.Order)
	}
	if err != nil {
		return fmt.Errorf("the order of variant %s: %w", v.Name, err)
	}
	return nil
}

func (v Recipe) bind(s *schedule.Schedule) (err error) {
	if s.Bindings, s.Scopes, err = v.Binder.Bind(s); err == nil {
		err = checkBindings(s)
	}
	if err != nil {
		return fmt.Errorf("the bindings of variant %s: %w", v.Name, err)
	}
	return nil
}

func checkBindings(s *schedule.Schedule) error {
	n := len(s.Instances.Instances)
	if len(s.Bindings) != n || len(s.Scopes) != n {
		return fmt.Errorf("%d bindings and %d scopes, expected %d, the number of instances", len(s.Bindings), len(s.Scopes), n)
	}
	cores := schedule.CoresWithLB(s.Spec)
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		out := sg.Outputs[0]
		if err := schedule.CheckBinding(inst.Regions[out], s.Bindings[i], schedule.Forbidden(s.Graph, sg.Ops, out), cores); err != nil {
			return fmt.Errorf("instance %d of %s: %w", inst.Index, sg.Name, err)
		}
		if s.Scopes[i] > schedule.DDR {
			return fmt.Errorf("instance %d of %s: scope %d, expected LB, GB or DDR", inst.Index, sg.Name, s.Scopes[i])
		}
	}
	return nil
}
