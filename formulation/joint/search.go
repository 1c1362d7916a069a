package joint

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/model/schedule"
)

// SearchOptions are the settings of [Search]. The zero value asks for a proof. The
// switches change how long that takes and never the optimum.
type SearchOptions struct {
	// WorkLimit is the most subsets of scopes to look at.
	Options
	// MaxStates is the most states of the search for one order; 0 is no limit.
	MaxStates int

	NoAlternate bool // go without the first, incomplete search
	NoSegments  bool // leave out the bound (b), and the probing by it
}

// segmentChoices is the most outputs with a choice of scope in a segment: each of their sets is an order to find.
const segmentChoices = 8

// idleProbes is how many instances in a row are probed in vain.
const idleProbes = 16

// A scope that is decided, or not.
type decision int8

const (
	undecided decision = iota
	decidedL1
	decidedLLB
)

// A subset of the choices of scopes.
type subset struct {
	scopes []decision
	bound  float64
	number int // in the order in which they were made
}

// An order for one set of scopes.
type order struct {
	steps []ordering.Step
	// In seconds.
	cost, bound float64
	moved       []float64 // per instance
}

type searcher struct {
	ctx    context.Context
	p      *Problem
	opts   SearchOptions
	graph  *ordering.Graph
	kept   [][]int // labels, per instance
	orders map[string]*order
	best   Result
	start  []int // the order to begin from
	pieces []segment
	tell   func(objective, bound float64, due bool)
	stop   milp.Stop
}

// Search alternates between labels and orders, then branches over scopes by the bounds (a) and (b).
func Search(ctx context.Context, p *Problem, opts SearchOptions) (*Result, error) {
	began := time.Now()
	if r, err := p.begin("search", &opts.Options); r != nil || err != nil {
		return r, err
	}
	s := &searcher{p: p, opts: opts, graph: ordering.NewGraph(p.Order), orders: map[string]*order{},
		start: opts.Start.Order, tell: opts.Reporter()}
	var cancel context.CancelFunc
	s.ctx, cancel = opts.Begin(ctx)
	defer cancel()
	s.kept = p.Labels.Prune(s.ctx, true)
	bound, err := s.run()
	if err != nil {
		return nil, err
	}
	if s.stop == milp.Complete {
		// Parts may have been left at their bounds.
		if s.stop = solve.Why(s.ctx); s.stop == milp.Complete {
			s.stop = milp.StopWork
		}
	}
	r := s.best.finish(bound, s.stop)
	s.tell(r.Outcome().Objective, r.Bound, true)
	r.Method, r.Seconds = "search", time.Since(began).Seconds()
	return r, nil
}

// run returns the bound of the whole.
func (s *searcher) run() (float64, error) {
	all := &subset{scopes: make([]decision, len(s.kept)), bound: s.p.Labels.Floor()}
	if err := s.alternate(all); err != nil {
		return 0, err
	}
	line := s.start
	if line == nil {
		line = s.graph.Topological()
	}
	for decided := true; decided && !s.opts.NoSegments && s.below(all.bound); {
		var err error
		if s.pieces, err = s.segments(line, segmentChoices); err != nil {
			return 0, err
		}
		if decided, err = s.probe(all); err != nil {
			return 0, err
		}
	}
	open := heap.Of(func(a, b *subset) bool { // of equal bounds the latest first
		return a.bound < b.bound || a.bound == b.bound && a.number > b.number
	})
	open.Push(all)
	done := math.Inf(1) // least bound of the subsets that are as far as they can be
	made := 0
	for open.Len() > 0 {
		if s.best.Choice != nil && !s.below(open.First().bound) {
			break // and so are all others
		}
		bound := math.Min(done, open.First().bound)
		s.tell(s.best.Outcome().Objective, bound, false)
		if s.stop = solve.Why(s.ctx); s.stop == milp.Complete && s.opts.WorkLimit > 0 &&
			int64(s.best.Branches) >= s.opts.WorkLimit {
			s.stop = milp.StopWork
		}
		if s.stop != milp.Complete {
			return bound, nil
		}
		x := open.Pop()
		s.best.Branches++
		next, err := s.explore(x)
		if err != nil {
			return 0, err
		}
		if !s.below(x.bound) {
			continue
		}
		if next < 0 {
			done = math.Min(done, x.bound)
			continue
		}
		for _, d := range []decision{decidedL1, decidedLLB} {
			made++
			child := &subset{scopes: append([]decision(nil), x.scopes...), bound: x.bound, number: made}
			child.scopes[next] = d
			open.Push(child)
		}
	}
	return math.Min(done, s.best.Objective), nil
}

// probe raises the bound of the whole by (b) and takes labels from instances whose scope would make it pass the
// best answer. It reports whether it has: segments with fewer choices are longer.
func (s *searcher) probe(all *subset) (decided bool, err error) {
	choice, _, err := s.raise(all, true, 0)
	if err != nil || choice == nil {
		return false, err
	}
	scopes, idle := s.p.inLLB(choice), 0
	for i := 0; i < len(s.kept) && idle < idleProbes && s.below(all.bound); i++ {
		if !s.choice(i) {
			continue
		}
		idle++
		all.scopes[i] = map[bool]decision{true: decidedL1, false: decidedLLB}[scopes[i]]
		r, err := s.label(all, nil, true)
		if err != nil {
			return false, err
		}
		if all.scopes[i] = undecided; !s.below(r.Bound) {
			s.kept[i] = slices.DeleteFunc(s.kept[i], func(l int) bool {
				return (s.p.Labels.Nodes[i].Labels[l].Scope == schedule.LLB) != scopes[i]
			})
			decided, idle = true, 0
		}
	}
	return decided, nil
}

// below reports whether a bound leaves something to find.
func (s *searcher) below(bound float64) bool {
	return s.best.Choice == nil || bound < s.best.Objective-tolerance*s.best.Objective
}

// raise raises the bound of a subset by labels, with the moves in each segment or with others beside them, and takes
// the answer that shows up.
func (s *searcher) raise(x *subset, segments bool, beside float64) (choice []int, answer *order, err error) {
	r, err := s.label(x, nil, segments)
	if err != nil {
		return nil, nil, err
	}
	if x.bound = math.Max(x.bound, r.Bound+beside); r.Choice != nil {
		answer, err = s.take(r.Choice)
	}
	return r.Choice, answer, err
}

// explore raises the bound of a subset, takes the answers that show up, and returns
// the instance to decide next, -1 if all are decided.
func (s *searcher) explore(x *subset) (int, error) {
	lowest, err := s.order(s.scopes(x))
	if err != nil {
		return 0, err
	}
	_, answer, err := s.raise(x, false, lowest.bound)
	if err == nil && s.below(x.bound) && len(s.pieces) > 0 {
		_, answer, err = s.raise(x, true, 0)
	}
	if err != nil {
		return 0, err
	}
	// What the order for the last answer spills, and had better be in the LLB; else the largest.
	next, most, size := -1, 0.0, int64(-1)
	for i, d := range x.scopes {
		if d != undecided || !s.choice(i) {
			continue
		}
		moved := 0.0
		if answer != nil {
			moved = answer.moved[i]
		}
		if out := s.graph.Output[i]; next < 0 || moved > most || moved == most && out > size {
			next, most, size = i, moved, out
		}
	}
	return next, nil
}

// choice reports whether an instance can have either scope.
func (s *searcher) choice(i int) bool {
	labels := s.p.Labels.Nodes[i].Labels
	first := labels[s.kept[i][0]].Scope
	return slices.ContainsFunc(s.kept[i], func(l int) bool { return labels[l].Scope != first })
}

// scopes reports who has scope LLB in a subset if all undecided ones have it.
func (s *searcher) scopes(x *subset) []bool {
	gb := make([]bool, len(s.kept))
	for i, d := range x.scopes {
		if gb[i] = d != decidedL1; !s.choice(i) {
			gb[i] = s.p.Labels.Nodes[i].Labels[s.kept[i][0]].Scope == schedule.LLB
		}
	}
	return gb
}

// label solves the binding problem of a subset, where scope L1 costs more by extra[i] for the undecided instances i
// that have a choice; with segments the moves in each count.
func (s *searcher) label(x *subset, extra []float64, segments bool) (*binding.Result, error) {
	left := make([][]int, len(s.kept))
	for i, ls := range s.kept {
		for _, l := range ls {
			lb := s.p.Labels.Nodes[i].Labels[l].Scope == schedule.L1
			if x.scopes[i] == undecided || !s.choice(i) || lb == (x.scopes[i] == decidedL1) {
				left[i] = append(left[i], l)
			}
		}
	}
	q := s.p.Labels.Restrict(left)
	if extra != nil {
		for i := range q.Nodes {
			if x.scopes[i] != undecided || !s.choice(i) {
				continue
			}
			for k := range q.Nodes[i].Labels {
				if q.Nodes[i].Labels[k].Scope == schedule.L1 {
					q.Nodes[i].Cost[k] += extra[i]
				}
			}
		}
	}
	if segments {
		s.withSegments(q)
	}
	r, err := binding.Search(s.ctx, q, binding.Options{})
	if err != nil {
		return nil, err
	}
	if r.Choice != nil {
		r.Choice = r.Choice[:len(left)]
		for i, k := range r.Choice {
			r.Choice[i] = left[i][k]
		}
	}
	return r, nil
}

// order finds a best order for scopes, or what the limits allow.
func (s *searcher) order(gb []bool) (*order, error) {
	key := make([]byte, len(gb))
	for i := range gb {
		if gb[i] {
			key[i] = 1
		}
	}
	if o := s.orders[string(key)]; o != nil {
		return o, nil
	}
	q := s.p.moves(s.graph, gb, s.graph.ByID())
	r, err := ordering.Search(s.ctx, q, ordering.Traffic,
		ordering.Options{WorkLimit: int64(s.opts.MaxStates), Start: s.start})
	if err != nil {
		return nil, err
	}
	steps := r.Steps
	if s.start != nil {
		// Of orders that cost the same, the caller's.
		fixed, err := ordering.Fixed("start", ordering.NewGraph(q), s.start, ordering.Traffic)
		if err != nil {
			return nil, err
		}
		if fixed.Cost <= r.Cost {
			steps = fixed.Steps
		}
	}
	o := &order{cost: r.Cost * s.p.SecondsPerCost, bound: r.Bound * s.p.SecondsPerCost, moved: make([]float64, len(gb))}
	o.steps = original(s.graph, gb, steps)
	price := func(units int64) float64 { return float64(units) / s.graph.Unit * s.p.SecondsPerCost }
	for _, step := range steps {
		for _, ref := range step.Store {
			if i := ref[0]; !gb[i] && o.moved[i] == 0 {
				o.moved[i] = price(s.graph.Store[i])
			}
		}
		for _, ref := range step.Load {
			if i := ref[0]; !gb[i] {
				o.moved[i] += price(s.graph.Load[i])
			}
		}
	}
	s.orders[string(key)] = o
	return o, nil
}

// take finds an order for labels and keeps both if they cost less than the answer so far.
func (s *searcher) take(choice []int) (*order, error) {
	o, err := s.order(s.p.inLLB(choice))
	if err != nil {
		return nil, err
	}
	labels := s.p.Labels.Seconds(choice)
	if total := labels + o.cost; s.best.Choice == nil || total < s.best.Objective-tolerance*s.best.Objective {
		s.best.Choice, s.best.Steps = choice, o.steps
		s.best.LabelSeconds, s.best.MoveSeconds, s.best.Objective = labels, o.cost, total
		s.tell(total, s.p.Labels.Floor(), false)
	}
	return o, nil
}

// alternate fixes one part and solves the other, from the start, or else from the best
// labels by themselves, as long as that helps.
func (s *searcher) alternate(all *subset) error {
	if s.opts.Start.Choice != nil {
		if _, err := s.take(s.opts.Start.Choice); err != nil {
			return err
		}
	}
	if s.opts.NoAlternate {
		return nil
	}
	r, err := s.label(all, nil, false)
	if err != nil {
		return err
	}
	for r.Choice != nil && s.ctx.Err() == nil {
		before, known := s.best.Objective, s.best.Choice != nil
		o, err := s.take(r.Choice)
		if err != nil {
			return err
		}
		if known && s.best.Objective >= before {
			return nil
		}
		if r, err = s.label(all, o.moved, false); err != nil {
			return err
		}
	}
	return nil
}
