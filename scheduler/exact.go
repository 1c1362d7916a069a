package scheduler

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model/schedule"
)

const (
	// ExactOrder is the order of least traffic, by search.
	ExactOrder Ordering = "search"
	// ExactBinding are the bindings and scopes that cost least, by search, given the
	// order.
	ExactBinding Binding = "search"
	// JointOrder and JointBinding, which go together, are the order, the bindings and
	// the scopes of least cost, by a search for all three.
	JointOrder   Ordering = "joint"
	JointBinding Binding  = "joint"
)

// Exact lists the variants that replace greedy decisions of the table's last one by
// exact ones.
func Exact() []Recipe {
	base := Table()[len(Table())-1]
	row := func(name, description string, order Ordering, bind Binding) Recipe {
		v := base
		v.Name, v.Description, v.Order, v.Bind = name, description, order, bind
		return v
	}
	split, memory := row("exact-split", "cross-layer with the groups and factors of least cost", Algorithm3, Algorithm4), row("exact-memory", "cross-layer with the spills that move least", Algorithm3, Algorithm4)
	split.Split, memory.Memory = ExactSplit, ExactMemory
	return []Recipe{
		split,
		row("exact-order", "cross-layer with the instance order of least traffic", ExactOrder, Algorithm4),
		row("exact-bind", "cross-layer with the bindings and scopes of least cost", Algorithm3, ExactBinding),
		memory,
		row("exact-all", "cross-layer with order, bindings and scopes of least cost together", JointOrder, JointBinding),
	}
}

// searchStates bounds the search for an order, so that it ends anywhere at the same
// place.
const searchStates = 200_000

// OrderOf turns the steps of an answer to OrderProblem into an order of instances.
func OrderOf(s *schedule.Schedule, r *ordering.Result) []int {
	var order []int
	for _, st := range r.Steps {
		order = append(order, s.Instances.First[st.Run[0]]+st.Run[1])
	}
	return order
}

// exactBinding gives a finished schedule the bindings and scopes of least cost.
func exactBinding(ctx context.Context, s *schedule.Schedule, v Recipe, opt Options) (*schedule.Schedule, error) {
	m, err := cost.NewWith(s.Spec, opt.Cost)
	if err != nil {
		return nil, err
	}
	n, err := binding.FromSchedule(s, m)
	if err != nil {
		return nil, err
	}
	var r *binding.Result
	if v.Bind == ILPBinding {
		r, err = solveBinding(ctx, n, opt)
	} else {
		r, err = binding.Search(ctx, n.Problem, binding.SearchOptions{Options: binding.Options{Start: n.Given, Progress: opt.report("bind")}, NoBranch: true})
	}
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the choice would depend on when it was
	}
	bindings, scopes := n.Decode(r.Choice)
	return Rebind(s, bindings, scopes, v, opt)
}

// Reorder is a schedule with another order of instances: groups and instances stay,
// bindings are Algorithm 4's for the order, joins, steps and the memory plan are made
// anew. The schedule that it starts from is not changed.
func Reorder(from *schedule.Schedule, order []int, name string, v Recipe, opt Options) (*schedule.Schedule, error) {
	if len(order) != len(from.Order) {
		return nil, fmt.Errorf("an order of %d instances, expected %d", len(order), len(from.Order))
	}
	s := *from
	s.Order, s.OrderName = order, name
	bindings, scopes := graphturbo.BindGrid(s.Graph, s.Grouping, s.Instances, s.Order, schedule.Grid(s.Spec))
	return Rebind(&s, bindings, scopes, v, opt)
}
