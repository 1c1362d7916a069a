package allocate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// preorder is a rule that numbers the buffers for the search: what the first
// letter stands for counts first, more before less.
//
//	W  length of the lifetime
//	A  area: size times length of the lifetime
//	T  largest sum of live sizes during the lifetime
//	S  size
//	O  number of buffers that live at the same time at some time
type preorder string

// preorders are the rules that are tried in turns. Each of MiniMalloc's published instances is easy for one of the
// first two; the others are for what is unlike them.
var preorders = []preorder{"TWA", "TOW", "WAT", "AWT"}

// Options are the settings of every method; a start is a placement, one offset for each
// buffer. The searches' WorkLimit is the number of partial placements.
type Options = solve.Options[[]int64]

// A Result is a method's answer: a placement, if it has found one, and a bound. Capacity, peak and bound are in the
// unit of the sizes, bytes.
type Result struct {
	Method  string `json:"method"`
	Buffers int    `json:"buffers"`
	// Status is Optimal if Peak and Bound meet, Feasible if they don't, Infeasible if there is no placement (within
	// the capacity, if there is one), and Limit if a limit came before either was known.
	Status milp.Status `json:"status"`
	// Stop is Complete, too, where the first placement within a capacity ends the method.
	Stop     milp.Stop `json:"stop"`
	Capacity *int64    `json:"capacity"` // nil: the least one is looked for
	// Peak is the peak of Offsets, nil without offsets. A rule's placement that passes the capacity
	// has both, with status Limit.
	Peak    *int64  `json:"peak"`
	Bound   int64   `json:"bound"` // no placement has a peak below it
	Seconds float64 `json:"seconds"`
	// Overfull is a reason for Infeasible, nil if there is none so simple, or no need.
	Overfull *overfull `json:"overfull"`
	Offsets  []int64   `json:"-"` // one for each buffer, nil if there is no placement
	Nodes    int64     `json:"-"` // the search's partial placements
}

// Outcome summarises the answer, in bytes.
func (r *Result) Outcome() solve.Outcome {
	o := solve.Outcome{Status: r.Status, Objective: math.Inf(1), Bound: float64(r.Bound), Stop: r.Stop}
	if r.Status.HasValues() {
		o.Objective = float64(*r.Peak)
	}
	return o
}

// verdict describes the end of a search for a placement.
type verdict int

const (
	notThere  verdict = iota // there is none, proven
	found                    // there is one
	exhausted                // the nodes that it was allowed are used up
	cancelled                // the context, or all work that is allowed
)

// steps is a problem with the step of its peaks.
type steps struct {
	p     *Problem
	step  int64
	began time.Time
}

// begin checks the problem and the settings.
func begin(p *Problem, opts *Options) (steps, error) {
	s := steps{p: p, began: time.Now()}
	if err := p.Validate(); err != nil {
		return s, err
	}
	if err := opts.Validate(); err != nil {
		return s, fmt.Errorf("allocate: %w", err)
	}
	if opts.Start != nil {
		if err := Check(p, NoLimit, opts.Start); err != nil {
			return s, fmt.Errorf("allocate: the start is no placement: %w", err)
		}
	}
	s.step = p.Step()
	return s, nil
}

// down and up round a capacity or peak to the next that a best placement can have.
func (s *steps) down(c int64) int64 { return c / s.step * s.step }
func (s *steps) up(c int64) int64   { return s.down(c + s.step - 1) }

// search holds what [Fit] and [Minimize] share.
type search struct {
	steps
	ctx    context.Context
	opts   Options
	finder *canonical
	nodes  int64
	report func(objective, bound float64, due bool)
}

// tell reports a placement, nil for none, and the bound on all peaks.
func (s *search) tell(offsets []int64, bound int64) {
	objective := math.Inf(1)
	if offsets != nil {
		objective = float64(s.p.Peak(offsets))
	}
	s.report(objective, float64(bound), true)
}

func newSearch(ctx context.Context, p *Problem, opts Options) (*search, context.CancelFunc, error) {
	st, err := begin(p, &opts)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	s := &search{steps: st, ctx: ctx, opts: opts, finder: newCanonical(p), report: opts.Reporter()}
	return s, cancel, nil
}

// round gives each numbering at most budget nodes, and ends with the first that finds a
// placement or proves that there is none.
func (s *search) round(capacity, budget int64) verdict {
	for _, rule := range preorders {
		if s.ctx.Err() != nil {
			return cancelled
		}
		limit := budget
		if s.opts.WorkLimit > 0 {
			if limit = min(limit, s.opts.WorkLimit-s.nodes); limit <= 0 {
				return cancelled
			}
		}
		v, nodes := s.finder.fit(s.ctx, rule, capacity, limit)
		if s.nodes += nodes; v != exhausted {
			return v
		}
	}
	return exhausted
}

// firstBudget is enough to place each buffer a few times. A search that goes
// wrong early does not recover for long, so others get their turn soon.
func (s *search) firstBudget() int64 { return 4*int64(len(s.p.Buffers)) + 64 }

// checked is the finder's placement after the referee's judgement.
func (s *search) checked(capacity int64) ([]int64, error) {
	offsets := s.finder.offsets()
	if err := Check(s.p, capacity, offsets); err != nil {
		return nil, fmt.Errorf("allocate: the search's placement is wrong: %w", err)
	}
	return offsets, nil
}

// Fit looks for a placement within a capacity, by search.
func Fit(ctx context.Context, p *Problem, capacity int64, opts Options) (*Result, error) {
	if capacity < 0 {
		return nil, fmt.Errorf("allocate: found capacity %d, expected 0 or more", capacity)
	}
	s, cancel, err := newSearch(ctx, p, opts)
	if err != nil {
		return nil, err
	}
	defer cancel()
	bound := s.up(p.Bound())
	if bound > capacity {
		return s.infeasible(bound).within(capacity), nil
	}
	if opts.Start != nil && p.Peak(opts.Start) <= capacity {
		return s.answer(slices.Clone(opts.Start), bound, milp.Complete).within(capacity), nil
	}
	room := s.down(min(capacity, s.up(p.Reach())))
	s.tell(nil, bound)
	for budget := s.firstBudget(); ; budget = grow(budget) {
		// A tighter capacity leads astray less: often the least one that may
		// suffice is found sooner than one with room to spare.
		v := exhausted
		if bound < room {
			v = s.round(bound, budget)
		}
		if v == exhausted || v == notThere {
			if v == notThere {
				bound += s.step
				s.tell(nil, bound)
			}
			v = s.round(room, budget)
		}
		switch v {
		case found:
			offsets, err := s.checked(capacity)
			if err != nil {
				return nil, err
			}
			return s.answer(offsets, bound, milp.Complete).within(capacity), nil
		case notThere:
			return s.infeasible(s.up(capacity + 1)).within(capacity), nil
		case cancelled:
			return s.answer(nil, bound, s.why()).within(capacity), nil
		}
	}
}

// grow is the budget of the next round. What earlier rounds have cost is then a third of it at the most.
func grow(budget int64) int64 {
	if budget > math.MaxInt64/4 {
		return budget
	}
	return 4 * budget
}

// answer makes the result of a placement; without offsets its status is a limit.
func (s *steps) answer(offsets []int64, bound int64, stop milp.Stop) *Result {
	r := &Result{Buffers: len(s.p.Buffers), Bound: bound, Offsets: offsets, Seconds: time.Since(s.began).Seconds()}
	if offsets != nil {
		peak := s.p.Peak(offsets)
		r.Peak, r.Bound = &peak, min(bound, peak)
	}
	r.Status, r.Stop = solve.Judge(offsets != nil, offsets != nil && r.Bound == *r.Peak, stop)
	return r
}

// infeasible is the proof that there is no placement with a peak below bound.
func (s *steps) infeasible(bound int64) *Result {
	return &Result{Buffers: len(s.p.Buffers), Status: milp.Infeasible, Bound: bound,
		Seconds: time.Since(s.began).Seconds()}
}

func (s *search) answer(offsets []int64, bound int64, stop milp.Stop) *Result {
	r := s.steps.answer(offsets, bound, stop)
	r.Method, r.Nodes = "search", s.nodes
	return r
}

func (s *search) infeasible(bound int64) *Result {
	r := s.steps.infeasible(bound)
	r.Method, r.Nodes = "search", s.nodes
	return r
}

// within sets the capacity that was asked for.
func (r *Result) within(capacity int64) *Result {
	r.Capacity = &capacity
	return r
}

// why returns the reason for which the search ended.
func (s *search) why() milp.Stop {
	if stop := solve.Why(s.ctx); stop != milp.Complete {
		return stop
	}
	return milp.StopWork
}

// Minimize looks for a placement of the least peak, by search: it closes in on it
// with capacities that have a placement and others that are proven to have none.
func Minimize(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	s, cancel, err := newSearch(ctx, p, opts)
	if err != nil {
		return nil, err
	}
	defer cancel()
	// No placement has a peak below low; best has the least peak so far.
	low, best := s.up(p.Bound()), slices.Clone(opts.Start)
	reach := max(low, s.up(p.Reach()))
	budget := s.firstBudget()
	s.tell(best, low)
	// probe asks about one capacity; it reports whether that was of use.
	probe := func(capacity, budget int64) (bool, verdict, error) {
		v := s.round(capacity, budget)
		switch v {
		case found:
			offsets, err := s.checked(capacity)
			if err != nil {
				return false, v, err
			}
			best = offsets
			s.tell(best, low)
		case notThere:
			low = capacity + s.step
			s.tell(best, low)
		}
		return v == found || v == notThere, v, nil
	}
	for {
		if best != nil && p.Peak(best) <= low {
			return s.answer(best, p.Peak(best), milp.Complete), nil
		}
		if low > reach {
			return s.infeasible(low), nil
		}
		high := reach
		if best != nil {
			high = s.down(p.Peak(best) - 1)
		}
		// The bound is often met, so it comes first; the highest one is the easiest to improve.
		use := false
		for k, capacity := range slices.Compact([]int64{low, s.down(low + (high-low)/2), high}) {
			if capacity < low {
				break
			}
			share := budget
			if k > 0 {
				share = budget/8 + 1
			}
			ok, v, err := probe(capacity, share)
			if err != nil {
				return nil, err
			}
			if v == cancelled {
				return s.answer(best, low, s.why()), nil
			}
			if use = ok; use {
				break
			}
		}
		if !use {
			budget = grow(budget)
		}
	}
}
