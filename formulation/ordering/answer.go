package ordering

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// prepare divides the problem and gives each part a first answer. Parts that differ in nothing but names share one: of
// has it for each part, distinct each once, small parts first, so that they are proven before a limit comes.
func prepare(g *Graph, objective Objective, opts *Options, merge merging) (parts []part, of,
	distinct []*answer, err error) {
	if err := opts.Validate(); err != nil {
		return nil, nil, nil, fmt.Errorf("ordering: %w", err)
	}
	start := opts.Start
	if start != nil && len(start) != len(g.Refs) {
		return nil, nil, nil, fmt.Errorf("ordering: the start has %d instances, expected %d", len(start), len(g.Refs))
	}
	parts = split(g)
	kinds := map[string]*answer{}
	for _, pt := range parts {
		key := pt.key()
		a := kinds[key]
		if a == nil {
			a = &answer{part: pt}
			if err := a.begin(objective, start, merge); err != nil {
				return nil, nil, nil, err
			}
			kinds[key] = a
			distinct = append(distinct, a)
		}
		of = append(of, a)
	}
	slices.SortStableFunc(distinct, func(a, b *answer) int { return len(a.part.ids) - len(b.part.ids) })
	return parts, of, distinct, nil
}

// assemble runs the parts one after the other. The result counts only after it was checked.
func assemble(method string, p *Problem, g *Graph, parts []part, of []*answer, objective Objective) (*Result, error) {
	var steps []Step
	var cost, bound, peak int64
	for i, a := range of {
		for _, s := range a.steps {
			step := Step{Run: g.Refs[parts[i].ids[s.run]]}
			for _, j := range s.store {
				step.Store = append(step.Store, g.Refs[parts[i].ids[j]])
			}
			for _, j := range s.load {
				step.Load = append(step.Load, g.Refs[parts[i].ids[j]])
			}
			steps = append(steps, step)
		}
		peak = max(peak, a.peak)
		if objective == Peak {
			cost, bound = max(cost, a.cost), max(bound, a.bound)
		} else {
			cost, bound = cost+a.cost, bound+a.bound
		}
	}
	res := g.Result(method, objective, steps, cost, min(bound, cost), peak)
	if _, err := Check(p, res); err != nil {
		return nil, fmt.Errorf("internal error, the order of %s breaks a rule: %w", method, err)
	}
	return res, nil
}

// A move list of one run, in IDs of a part.
type localStep struct {
	run         int
	store, load []int
}

// An answer holds the order and the bound of one part.
type answer struct {
	part      part
	objective Objective
	classes   []class
	of        []int
	steps     []localStep
	cost      int64
	bound     int64
	peak      int64
	effort    milp.Effort // of the integer program
}

// begin takes the better of the start and of the topological order.
func (a *answer) begin(objective Objective, start []int, merge merging) error {
	a.objective = objective
	a.classes, a.of = classes(a.part.graph, merge)
	orders := [][]int{a.part.graph.Topological()}
	if start != nil {
		orders = append(orders, a.part.restrict(start))
	}
	for k, order := range orders {
		if err := a.take(order); err != nil {
			if k > 0 {
				err = fmt.Errorf("ordering: the start: %w", err)
			}
			return err
		}
	}
	if objective == Peak {
		a.bound = a.part.graph.LargestNeed()
	}
	return nil
}

// restrict is the order of the part's instances in an order of the whole graph.
func (p part) restrict(order []int) []int {
	var own []int
	for _, i := range order {
		if k, ok := slices.BinarySearch(p.ids, i); ok {
			own = append(own, k)
		}
	}
	return own
}

// take makes order the answer if it is better than the one before.
func (a *answer) take(order []int) error {
	steps, cost, peak, err := Sequence(a.part.graph, order, a.objective)
	if err != nil || a.steps != nil && cost >= a.cost {
		return err
	}
	id := map[Ref]int{}
	for i, ref := range a.part.graph.Refs {
		id[ref] = i
	}
	a.steps, a.cost, a.peak = nil, cost, peak
	for i, s := range steps {
		l := localStep{run: order[i]}
		for _, ref := range s.Store {
			l.store = append(l.store, id[ref])
		}
		for _, ref := range s.Load {
			l.load = append(l.load, id[ref])
		}
		a.steps = append(a.steps, l)
	}
	return nil
}

// takeEvents makes what the runs of classes come to the answer if it is better, and returns their cost.
func (a *answer) takeEvents(events []event) int64 {
	order, stores, loads := replay(a.part.graph, a.classes, a.of, events)
	steps := make([]localStep, len(order))
	for i := range order {
		steps[i] = localStep{order[i], stores[i], loads[i]}
	}
	cost, peak := a.part.play(steps)
	if a.objective == Peak {
		cost = peak
	}
	if a.objective != Peak && peak > a.part.graph.Capacity {
		return math.MaxInt64 // within a solver's tolerance
	}
	if cost < a.cost {
		a.cost, a.peak, a.steps = cost, peak, steps
	}
	return cost
}

// play is the cost of the moves and the most that the L1 holds.
func (p part) play(steps []localStep) (cost, peak int64) {
	left := make([]int, len(p.ids))
	for i := range left {
		left[i] = len(p.graph.Readers[i])
	}
	copied := make([]bool, len(p.ids))
	used := int64(0)
	for _, s := range steps {
		for _, i := range s.store {
			used -= p.graph.Output[i]
			if !copied[i] {
				copied[i] = true
				cost += p.graph.Store[i]
			}
		}
		for _, i := range s.load {
			used += p.graph.Output[i]
			cost += p.graph.Load[i]
		}
		peak = max(peak, used+p.graph.Output[s.run]+p.graph.Work[s.run])
		if left[s.run] > 0 {
			used += p.graph.Output[s.run]
		}
		for _, r := range p.graph.Reads[s.run] {
			if left[r]--; left[r] == 0 {
				used -= p.graph.Output[r]
			}
		}
	}
	return cost, peak
}
