package ordering

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Sequence makes the moves that a fixed order of all instances needs, and no others: before a run, the outputs that it
// reads and that are not in the L1 are loaded; while space is short, the output with the longest remaining lifetime
// (the last reader that runs latest) that the run does not read is stored, the lowest ID first among equals. This is
// the rule of the paper's §4.3.
//
// For [Peak] the L1 has no limit and nothing moves. Sequence returns the steps, their cost in units ([Peak]: bytes)
// and the most that the L1 holds. Its error is an [*InfeasibleError] where the problem has no order; an order that is
// not one of the graph's is a caller's bug, and reported as an error as well.
func Sequence(g *Graph, order []int, objective Objective) (steps []Step, cost, peak int64, err error) {
	if err := checkOrder(g, order); err != nil {
		return nil, 0, 0, err
	}
	if objective == Traffic {
		if err := g.Feasible(); err != nil {
			return nil, 0, 0, err
		}
	}
	at := make([]int, len(order))
	for pos, i := range order {
		at[i] = pos
	}
	last := make([]int, len(order))
	for i, readers := range g.Readers {
		last[i] = -1
		for _, r := range readers {
			last[i] = max(last[i], at[r])
		}
	}
	var held []int                   // live outputs in the L1
	place := make([]int, len(order)) // 1 + that in held; 0: not in the L1
	copied := make([]bool, len(order))
	used := int64(0)
	take := func(i int) {
		held = append(held, i)
		place[i] = len(held)
		used += g.Output[i]
	}
	drop := func(i int) {
		end := held[len(held)-1]
		held[place[i]-1], place[end] = end, place[i]
		held, place[i] = held[:len(held)-1], 0
		used -= g.Output[i]
	}
	for pos, i := range order {
		step := Step{Run: g.Refs[i]}
		need := g.Output[i] + g.Work[i]
		for _, r := range g.Reads[i] {
			if place[r] == 0 {
				need += g.Output[r]
			}
		}
		for objective == Traffic && used+need > g.Capacity {
			victim := -1
			for _, j := range held {
				if _, read := slices.BinarySearch(g.Reads[i], j); read || g.Output[j] == 0 {
					continue
				}
				if victim < 0 || last[j] > last[victim] || last[j] == last[victim] && j < victim {
					victim = j
				}
			}
			if victim < 0 {
				return nil, 0, 0, fmt.Errorf("instance %d needs %d bytes beside %d, and nothing can leave the L1", i, need, used)
			}
			if !copied[victim] {
				copied[victim] = true
				cost += g.Store[victim]
			}
			step.Store = append(step.Store, g.Refs[victim])
			drop(victim)
		}
		for _, r := range g.Reads[i] {
			if place[r] == 0 {
				step.Load = append(step.Load, g.Refs[r])
				cost += g.Load[r]
				take(r)
			}
		}
		peak = max(peak, used+g.Output[i]+g.Work[i])
		if last[i] >= 0 {
			take(i)
		}
		for _, r := range g.Reads[i] {
			if last[r] <= pos {
				drop(r)
			}
		}
		steps = append(steps, step)
	}
	if objective == Peak {
		cost = peak
	}
	return steps, cost, peak, nil
}

func checkOrder(g *Graph, order []int) error {
	if len(order) != len(g.Refs) {
		return fmt.Errorf("the order has %d instances, expected %d", len(order), len(g.Refs))
	}
	ran := make([]bool, len(order))
	for pos, i := range order {
		if i < 0 || i >= len(ran) || ran[i] {
			return fmt.Errorf("position %d of the order has instance %d, expected each of 0 to %d once", pos, i, len(ran)-1)
		}
		for _, r := range g.Reads[i] {
			if !ran[r] {
				return fmt.Errorf("position %d of the order runs instance %d before %d, which it reads", pos, i, r)
			}
		}
		ran[i] = true
	}
	return nil
}

// Fixed is the result of a method that only fixes the order: [Sequence] makes
// the moves, and the bound holds for every order.
func Fixed(method string, g *Graph, order []int, objective Objective) (*Result, error) {
	steps, cost, peak, err := Sequence(g, order, objective)
	if err != nil {
		return noOrder(method, objective, err)
	}
	bound := int64(0)
	if objective == Peak {
		bound = g.LargestNeed()
	}
	return g.Result(method, objective, steps, cost, bound, peak), nil
}

// noOrder is the result of a method for a problem that has no order. It returns any other error as it is.
func noOrder(method string, objective Objective, err error) (*Result, error) {
	if e, ok := err.(*InfeasibleError); ok {
		return &Result{Method: method, Objective: objective, Status: milp.Infeasible, Infeasible: e}, nil
	}
	return nil, err
}

// Result states an order in the units of the file. Cost and bound are in units of cost, or in bytes for [Peak].
func (g *Graph) Result(method string, objective Objective, steps []Step, cost, bound, peak int64) *Result {
	r := &Result{Method: method, Objective: objective, Status: milp.Feasible, PeakBytes: peak, Steps: steps}
	if bound >= cost {
		r.Status = milp.Optimal
	}
	unit := g.Unit
	if objective == Peak {
		unit = 1
	}
	r.Cost, r.Bound = float64(cost)/unit, float64(bound)/unit
	return r
}
