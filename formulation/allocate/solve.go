package allocate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Preorder is a rule that numbers the buffers for the search: what the first
// letter stands for counts first, more before less.
//
//	W  length of the lifetime
//	A  area: size times length of the lifetime
//	T  largest sum of live sizes during the lifetime
//	S  size
//	O  number of buffers that live at the same time at some time
type Preorder string

// letters are those that a [Preorder] may have.
const letters = "WATSO"

// preorders are the rules that are tried in turns unless others are given. Each of
// MiniMalloc's published instances is easy for one of the first two; the others
// are for what is unlike them.
var preorders = []Preorder{"TWA", "TOW", "WAT", "AWT"}

// Switches turn off single inferences of the search. Answers stay the same; it
// takes longer.
type Switches struct {
	// NoDominance also tries to place buffers above room where another one fits.
	NoDominance bool
	// NoDecomposition does not solve what is apart in time by itself.
	NoDecomposition bool
	// NoBlocked does not lift buffers whose turn to be placed is over.
	NoBlocked bool
	// NoFloor forgets that later buffers don't lie lower.
	NoFloor bool
	// NoHeads takes the least of a section's lowest offsets for all of its
	// buffers.
	NoHeads bool
	// NoTwins also tries both orders of buffers that are alike.
	NoTwins bool
}

// Options are the settings of [Fit], [Minimize] and their kin. The zero value
// asks for a proven answer, however long it takes.
type Options struct {
	// TimeLimit ends the search; the answer is then what is known. 0 is no limit.
	TimeLimit time.Duration
	// MaxNodes ends the search likewise, but after the same work each time. 0 is
	// no limit. The ILP ignores it.
	MaxNodes int64
	// Start is a placement to start from, for instance a heuristic's. nil is none.
	// A Start that is no placement is an error.
	Start []int64
	// Progress, if not nil, is told of better placements and bounds. It holds the
	// search up while it runs.
	Progress func(milp.Progress)
	// Preorders are tried in turns; nil stands for the package's own.
	Preorders []Preorder
	// Switches are for the search.
	Switches Switches
	// ILP are switches for the formulation.
	ILP ILPSwitches
}

// A Solution is what is known of a problem.
type Solution struct {
	// Status is Optimal if Peak and Bound meet, Feasible if they don't,
	// Infeasible if there is no placement (within the capacity, if there is one),
	// and Limit if a limit came before either was known.
	Status milp.Status
	// Offsets is one for each buffer if Status.HasValues(), else nil.
	Offsets []int64
	// Peak is that of Offsets, 0 without.
	Peak int64
	// Bound is a peak that no placement is below.
	Bound int64
	// Nodes counts the search's partial placements.
	Nodes int64
}

// finder is a search for one placement. Each call of fit starts anew.
type finder interface {
	// fit looks for a placement within the capacity, in at most limit nodes, and
	// says how many it took.
	fit(ctx context.Context, rule Preorder, capacity, limit int64) (verdict, int64)
	// offsets is the placement that fit has found.
	offsets() []int64
}

// verdict is how a search for a placement ended.
type verdict int

const (
	notThere  verdict = iota // there is none, proven
	found                    // there is one
	exhausted                // the nodes that it was allowed are used up
	cancelled                // the context ended
)

// search holds what [Fit] and [Minimize] share.
type search struct {
	ctx    context.Context
	p      *Problem
	opts   Options
	finder finder
	step   int64
	nodes  int64
	began  time.Time
}

// tell reports a placement, nil for none, and the bound on all peaks.
func (s *search) tell(offsets []int64, bound int64, improved bool) {
	if s.opts.Progress == nil {
		return
	}
	p := milp.Progress{Objective: math.Inf(1), Bound: float64(bound), Improved: improved, Seconds: time.Since(s.began).Seconds()}
	if offsets != nil {
		p.Objective = float64(s.p.Peak(offsets))
	}
	p.Bound = min(p.Bound, p.Objective)
	s.opts.Progress(p)
}

func newSearch(ctx context.Context, p *Problem, opts Options) (*search, context.CancelFunc, error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	if opts.TimeLimit < 0 {
		return nil, nil, fmt.Errorf("memory: found time limit %v, expected 0 or more", opts.TimeLimit)
	}
	if opts.MaxNodes < 0 {
		return nil, nil, fmt.Errorf("memory: found a limit of %d nodes, expected 0 or more", opts.MaxNodes)
	}
	for _, rule := range opts.Preorders {
		if strings.Trim(string(rule), letters) != "" || rule == "" {
			return nil, nil, fmt.Errorf("memory: found preordering %q, expected letters of %s", rule, letters)
		}
	}
	if opts.Start != nil {
		if err := Check(p, NoLimit, opts.Start); err != nil {
			return nil, nil, fmt.Errorf("memory: the start is no placement: %w", err)
		}
	}
	if len(opts.Preorders) == 0 {
		opts.Preorders = preorders
	}
	cancel := context.CancelFunc(func() {})
	if opts.TimeLimit > 0 {
		ctx, cancel = context.WithTimeout(ctx, opts.TimeLimit)
	}
	s := &search{ctx: ctx, p: p, opts: opts, step: p.Step(), began: time.Now()}
	if windowed(p) {
		s.finder, s.opts.Preorders = newPairwise(p), []Preorder{""}
	} else {
		s.finder = newCanonical(p, opts.Switches)
	}
	return s, cancel, nil
}

func windowed(p *Problem) bool {
	return slices.ContainsFunc(p.Buffers, func(b Buffer) bool {
		return slices.ContainsFunc(b.Gaps, func(g Gap) bool { return g.Window != nil })
	})
}

// round tries each preordering in at most budget nodes.
func (s *search) round(capacity, budget int64) verdict {
	for _, rule := range s.opts.Preorders {
		if s.ctx.Err() != nil {
			return cancelled
		}
		limit := budget
		if s.opts.MaxNodes > 0 {
			if limit = min(limit, s.opts.MaxNodes-s.nodes); limit <= 0 {
				return cancelled
			}
		}
		v, nodes := s.finder.fit(s.ctx, rule, capacity, limit)
		s.nodes += nodes
		if v != exhausted {
			return v
		}
	}
	return exhausted
}

// firstBudget is enough to place each buffer a few times. A search that goes
// wrong early does not recover for long, so others get their turn soon.
func (s *search) firstBudget() int64 { return 4*int64(len(s.p.Buffers)) + 64 }

// down and up round a capacity or peak to the next that a best placement can have.
func (s *search) down(c int64) int64 { return c / s.step * s.step }
func (s *search) up(c int64) int64   { return s.down(c + s.step - 1) }

// checked is the finder's placement after the referee's judgement.
func (s *search) checked(capacity int64) ([]int64, error) {
	offsets := s.finder.offsets()
	if err := Check(s.p, capacity, offsets); err != nil {
		return nil, fmt.Errorf("memory: the search's placement is wrong: %w", err)
	}
	return offsets, nil
}

// Fit looks for a placement within a capacity, by search. The end of the context
// is a limit like others, not an error.
func Fit(ctx context.Context, p *Problem, capacity int64, opts Options) (*Solution, error) {
	if capacity < 0 {
		return nil, fmt.Errorf("memory: found capacity %d, expected 0 or more", capacity)
	}
	s, cancel, err := newSearch(ctx, p, opts)
	if err != nil {
		return nil, err
	}
	defer cancel()
	bound := s.up(p.Bound())
	if bound > capacity {
		return &Solution{Status: milp.Infeasible, Bound: bound}, nil
	}
	if opts.Start != nil && p.Peak(opts.Start) <= capacity {
		return s.answer(slices.Clone(opts.Start), bound), nil
	}
	room := s.down(min(capacity, s.up(p.Reach())))
	s.tell(nil, bound, false)
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
				s.tell(nil, bound, false)
			}
			v = s.round(room, budget)
		}
		switch v {
		case found:
			offsets, err := s.checked(capacity)
			if err != nil {
				return nil, err
			}
			return s.answer(offsets, bound), nil
		case notThere:
			return &Solution{Status: milp.Infeasible, Bound: s.up(capacity + 1), Nodes: s.nodes}, nil
		case cancelled:
			return s.answer(nil, bound), nil
		}
	}
}

// grow is the budget of the next round. What earlier rounds have cost is then a
// third of it at the most.
func grow(budget int64) int64 {
	if budget > math.MaxInt64/4 {
		return budget
	}
	return 4 * budget
}

// answer is a solution with what is known. Without offsets it is a limit.
func (s *search) answer(offsets []int64, bound int64) *Solution {
	sol := &Solution{Status: milp.Limit, Bound: bound, Nodes: s.nodes}
	if offsets != nil {
		sol.Offsets, sol.Peak, sol.Status = offsets, s.p.Peak(offsets), milp.Feasible
		if sol.Bound = min(bound, sol.Peak); sol.Bound == sol.Peak {
			sol.Status = milp.Optimal
		}
	}
	return sol
}

// Minimize looks for a placement of the least peak, by search: it closes in on it
// with capacities that have a placement and others that are proven to have none.
// The end of the context is a limit like others, not an error.
func Minimize(ctx context.Context, p *Problem, opts Options) (*Solution, error) {
	s, cancel, err := newSearch(ctx, p, opts)
	if err != nil {
		return nil, err
	}
	defer cancel()
	// No placement has a peak below low; best has the least peak so far.
	low, best := s.up(p.Bound()), slices.Clone(opts.Start)
	reach := max(low, s.up(p.Reach()))
	budget := s.firstBudget()
	s.tell(best, low, best != nil)
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
			s.tell(best, low, true)
		case notThere:
			low = capacity + s.step
			s.tell(best, low, false)
		}
		return v == found || v == notThere, v, nil
	}
	for {
		if best != nil && p.Peak(best) <= low {
			return s.answer(best, p.Peak(best)), nil
		}
		if low > reach {
			return &Solution{Status: milp.Infeasible, Bound: low, Nodes: s.nodes}, nil
		}
		high := reach
		if best != nil {
			high = s.down(p.Peak(best) - 1)
		}
		// The bound is often met, so it comes first; the highest one is the easiest
		// to improve.
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
				return s.answer(best, low), nil
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
