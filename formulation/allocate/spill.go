package allocate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// SpillOptions are the settings of [Spill] and [SpillILP].
type SpillOptions struct {
	// TimeLimit ends the choice; the answer is then what is known. 0 is no limit.
	TimeLimit time.Duration
	// Place also asks for offsets of what stays, and goes on choosing until there
	// are some. Else what stays only passes the capacity at no time.
	Place bool
	// Start is a choice that the answer is not worse than, for instance a rule's, if
	// there are offsets for what it keeps or none are asked for. nil is none. A Start
	// that leaves too much is an error.
	Start []bool
	// PlaceNodes limits the search for the offsets of one choice. Where it comes
	// first, choices with more room to spare are tried, and the answer is no longer
	// proven. 0 is no limit.
	PlaceNodes int64
	// MaxNodes ends the search for one choice after the same work each time. 0 is no
	// limit. The ILP ignores it.
	MaxNodes int64
	// Progress, if not nil, is told of cheaper choices, which may have no offsets,
	// and of better bounds. It holds the search up while it runs.
	Progress func(milp.Progress)
}

// A SpillSolution is what is known of a choice.
type SpillSolution struct {
	// Status is Optimal if Cost and Bound meet, Feasible if not, and Limit if a
	// limit came before any choice was found. There always is one.
	Status milp.Status
	// Spilled is one bool for each buffer if Status.HasValues(), else nil.
	Spilled []bool
	// Cost is how many bytes move, Bound what no choice is below.
	Cost, Bound int64
	// Offsets has those of the buffers that stay, and -1 for the others; nil if they
	// were not asked for.
	Offsets []int64
	// Nodes counts the search's partial choices.
	Nodes int64
}

// chooser finds a cheapest choice that passes room at no time and hits each of the
// sets in hit. It returns a nil choice if a limit came first.
type chooser func(ctx context.Context, room int64, hit [][]int) (spilled []bool, bound int64, proven bool, err error)

// Spill chooses at least cost, by search, what leaves a memory of the given
// capacity. The end of the context is a limit like others, not an error.
func Spill(ctx context.Context, p *Problem, capacity int64, opts SpillOptions) (*SpillSolution, error) {
	s := &spillSearch{p: p, capacity: capacity, limit: opts.MaxNodes, progress: opts.Progress, began: time.Now()}
	sol, err := spill(ctx, p, capacity, opts, s.choose)
	if sol != nil {
		sol.Nodes = s.nodes
	}
	return sol, err
}

// SpillILP is [Spill] by integer programming.
func SpillILP(ctx context.Context, p *Problem, capacity int64, solver milp.Solver, opts SpillOptions) (*SpillSolution, error) {
	choose := func(ctx context.Context, room int64, hit [][]int) ([]bool, int64, bool, error) {
		m := milp.New("spill", milp.Minimize)
		x := make([]milp.Var, len(p.Buffers))
		for i := range p.Buffers {
			b := &p.Buffers[i]
			x[i] = m.Binary("x "+b.ID, float64(b.Moved())) // (7)
			if tooLarge(b, capacity) {
				m.Fix(x[i], 1)
			}
		}
		for _, s := range p.Sections() {
			over := s.Bytes() - room
			if over <= 0 {
				continue
			}
			var terms []milp.Term
			for _, l := range s.Live {
				// A coefficient beyond what is over says no more than that.
				terms = append(terms, x[l.Buffer].Times(float64(min(over, l.Window.Len()))))
			}
			m.AddGE(fmt.Sprint("section ", s.Time), terms, float64(over)) // (8)
		}
		for k, set := range hit {
			var terms []milp.Term
			for _, i := range set {
				terms = append(terms, x[i].Times(1))
			}
			m.AddGE(fmt.Sprint("no offsets ", k), terms, 1) // (9)
		}
		o := milp.Options{Progress: opts.Progress}
		if deadline, ok := ctx.Deadline(); ok {
			o.TimeLimit = max(time.Until(deadline), time.Millisecond)
		}
		// The time limit is the solver's, so that it still answers when it ends; only
		// an interruption ends it without.
		inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.Canceled) {
				cancel()
			}
		})()
		sol, err := solver.Solve(inner, m, o)
		if err != nil {
			return nil, 0, false, err
		}
		bound := int64(0)
		if !math.IsInf(sol.Bound, 0) {
			bound = max(0, int64(math.Ceil(sol.Bound-1e-6*max(1, math.Abs(sol.Bound)))))
		}
		switch {
		case sol.Status == milp.Limit:
			return nil, bound, false, nil
		case !sol.Status.HasValues():
			return nil, 0, false, fmt.Errorf("memory: the solver ends with %v", sol.Status)
		}
		out := make([]bool, len(x))
		for i := range x {
			out[i] = sol.Int(x[i]) == 1
		}
		return out, bound, sol.Status == milp.Optimal, nil
	}
	return spill(ctx, p, capacity, opts, choose)
}

// tooLarge reports whether a buffer does not fit by itself.
func tooLarge(b *Buffer, capacity int64) bool {
	return b.Size > capacity || b.Offset != nil && *b.Offset+b.Size > capacity
}

func spill(ctx context.Context, p *Problem, capacity int64, opts SpillOptions, choose chooser) (*SpillSolution, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	switch {
	case capacity < 0:
		return nil, fmt.Errorf("memory: found capacity %d, expected 0 or more", capacity)
	case opts.TimeLimit < 0:
		return nil, fmt.Errorf("memory: found time limit %v, expected 0 or more", opts.TimeLimit)
	case opts.MaxNodes < 0 || opts.PlaceNodes < 0:
		return nil, fmt.Errorf("memory: found a limit of %d nodes, expected 0 or more", min(opts.MaxNodes, opts.PlaceNodes))
	}
	if opts.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opts.TimeLimit)
		defer cancel()
	}
	if opts.Start == nil {
		return choosePlaced(ctx, p, capacity, opts, choose)
	}
	if err := CheckSpill(p, capacity, opts.Start); err != nil {
		return nil, fmt.Errorf("memory: the start is no choice: %w", err)
	}
	sol, err := choosePlaced(ctx, p, capacity, opts, choose)
	cost := SpillCost(p, opts.Start)
	if err != nil || sol.Status.HasValues() && sol.Cost <= cost {
		return sol, err
	}
	start := &SpillSolution{Status: milp.Feasible, Spilled: slices.Clone(opts.Start), Cost: cost, Bound: min(sol.Bound, cost)}
	if start.Bound == cost {
		start.Status = milp.Optimal
	}
	if !opts.Place {
		return start, nil
	}
	if start.Offsets, err = offsetsOfKept(ctx, p, capacity, opts, start.Spilled); err != nil || start.Offsets == nil {
		return sol, err
	}
	return start, nil
}

// offsetsOfKept places what a choice keeps, nil if that is not known to work.
func offsetsOfKept(ctx context.Context, p *Problem, capacity int64, opts SpillOptions, spilled []bool) ([]int64, error) {
	kept, place := Keep(p, spilled)
	placed, err := Fit(ctx, kept, capacity, Options{MaxNodes: opts.PlaceNodes})
	if err != nil || !placed.Status.HasValues() {
		return nil, err
	}
	return spread(p, place, placed.Offsets), nil
}

// spread gives the buffers of p the offsets of those that are kept, and -1 to the
// others.
func spread(p *Problem, place []int, placed []int64) []int64 {
	offsets := make([]int64, len(p.Buffers))
	for i := range offsets {
		offsets[i] = -1
	}
	for k, i := range place {
		offsets[i] = placed[k]
	}
	return offsets
}

// costUnit divides the cost of any choice.
func costUnit(p *Problem) int64 {
	g := int64(0)
	for i := range p.Buffers {
		for b := p.Buffers[i].Moved(); b != 0; {
			g, b = b, g%b
		}
	}
	return max(1, g)
}

// choosePlaced chooses until there are offsets, if they are asked for.
func choosePlaced(ctx context.Context, p *Problem, capacity int64, opts SpillOptions, choose chooser) (*SpillSolution, error) {
	var hit [][]int
	bound, room, tries := int64(0), capacity, 0
	unit := costUnit(p)
	for {
		// Time must be left to place what is chosen.
		part, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok && opts.Place {
			part, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		}
		out, least, proven, err := choose(part, room, hit)
		cancel()
		if err != nil {
			return nil, err
		}
		// With less room than there is, the choice is one, but proves nothing.
		if room == capacity {
			bound = max(bound, (least+unit-1)/unit*unit)
		} else {
			proven = false
		}
		if out == nil {
			return &SpillSolution{Status: milp.Limit, Bound: bound}, nil
		}
		if err := CheckSpill(p, capacity, out); err != nil {
			return nil, fmt.Errorf("memory: the choice of what to spill is wrong: %w", err)
		}
		cost := SpillCost(p, out)
		sol := &SpillSolution{Status: milp.Feasible, Spilled: out, Cost: cost, Bound: min(bound, cost)}
		if proven || sol.Bound == cost {
			sol.Status, sol.Bound = milp.Optimal, cost
		}
		if !opts.Place {
			return sol, nil
		}
		kept, place := Keep(p, out)
		placed, err := Fit(ctx, kept, capacity, Options{MaxNodes: opts.PlaceNodes})
		switch {
		case err != nil:
			return nil, err
		case placed.Status.HasValues():
			sol.Offsets = spread(p, place, placed.Offsets)
			return sol, nil
		case placed.Status == milp.Infeasible && room == capacity:
			hit = append(hit, place) // (9)
		case ctx.Err() != nil || room == 0:
			return &SpillSolution{Status: milp.Limit, Bound: min(bound, cost)}, nil
		default:
			// Nobody knows whether there are offsets: leave 1/128 of the capacity
			// free, then 2/128, 4/128 and so on.
			room = max(0, capacity-max(1, capacity>>max(0, 7-tries)))
			tries++
		}
	}
}

// spillSearch chooses by branch and bound: in the section that is farthest over
// the capacity one of the buffers must go. The bound is that of one section at a
// time: what is over is covered by those who are cheapest per byte, the last one
// in part.
type spillSearch struct {
	p        *Problem
	capacity int64
	nodes    int64
	before   int64 // nodes of earlier choices
	limit    int64

	ctx      context.Context
	sections []Section
	over     []int64 // of each section, with what is spilled so far
	hit      [][]int
	of       [][]use // sections of each buffer
	state    []choice
	cost     int64
	best     []bool
	bestCost int64
	stopped  bool

	progress func(milp.Progress) // or nil
	root     int64               // no choice costs less
	began    time.Time
}

type use struct {
	section int
	bytes   int64
}

type choice int8

const (
	open choice = iota
	gone
	stays
)

var errLimit = errors.New("limit")

func (s *spillSearch) choose(ctx context.Context, room int64, hit [][]int) ([]bool, int64, bool, error) {
	s.ctx, s.hit, s.before = ctx, hit, s.nodes
	s.sections = s.sections[:0]
	s.over = s.over[:0]
	s.of = make([][]use, len(s.p.Buffers))
	s.state = make([]choice, len(s.p.Buffers))
	s.cost, s.best, s.bestCost, s.stopped = 0, nil, math.MaxInt64, false
	for _, sec := range s.p.Sections() {
		over := sec.Bytes() - room
		if over <= 0 {
			continue
		}
		// Cheap bytes first, so that the bound reads them in order.
		slices.SortStableFunc(sec.Live, func(a, b Live) int {
			x := float64(s.p.Buffers[a.Buffer].Moved()) * float64(b.Window.Len())
			y := float64(s.p.Buffers[b.Buffer].Moved()) * float64(a.Window.Len())
			return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.Buffer, b.Buffer))
		})
		for _, l := range sec.Live {
			s.of[l.Buffer] = append(s.of[l.Buffer], use{len(s.sections), l.Window.Len()})
		}
		s.sections, s.over = append(s.sections, sec), append(s.over, over)
	}
	for i := range s.p.Buffers {
		if tooLarge(&s.p.Buffers[i], s.capacity) {
			s.set(i, gone)
		}
	}
	root, err := s.bound()
	if err == nil {
		root += s.cost
		s.root = root
		s.branch()
	}
	if s.stopped {
		return s.best, root, false, nil
	}
	return s.best, s.bestCost, true, nil
}

// set decides on a buffer.
func (s *spillSearch) set(i int, c choice) {
	was := s.state[i]
	s.state[i] = c
	switch {
	case c == gone:
		s.cost += s.p.Buffers[i].Moved()
		for _, u := range s.of[i] {
			s.over[u.section] -= u.bytes
		}
	case was == gone:
		s.cost -= s.p.Buffers[i].Moved()
		for _, u := range s.of[i] {
			s.over[u.section] += u.bytes
		}
	}
}

// bound is a cost that must be added, or an error if what stays can't stay.
func (s *spillSearch) bound() (int64, error) {
	most := int64(0)
	for k := range s.sections {
		over := s.over[k]
		if over <= 0 {
			continue
		}
		cost := 0.0
		for _, l := range s.sections[k].Live {
			if s.state[l.Buffer] != open {
				continue
			}
			moved, bytes := float64(s.p.Buffers[l.Buffer].Moved()), l.Window.Len()
			if bytes >= over {
				cost += moved * float64(over) / float64(bytes)
				over = 0
				break
			}
			cost += moved
			over -= bytes
		}
		if over > 0 {
			return 0, errLimit
		}
		most = max(most, int64(math.Ceil(cost-1e-6*max(1, cost))))
	}
	for _, set := range s.hit {
		least := int64(math.MaxInt64)
		for _, i := range set {
			switch s.state[i] {
			case gone:
				least = 0
			case open:
				least = min(least, s.p.Buffers[i].Moved())
			}
		}
		if least == math.MaxInt64 {
			return 0, errLimit
		}
		most = max(most, least)
	}
	return most, nil
}

func (s *spillSearch) branch() {
	if s.nodes++; s.nodes&0xff == 0 && s.ctx.Err() != nil || s.limit > 0 && s.nodes-s.before > s.limit {
		s.stopped = true
		return
	}
	add, err := s.bound()
	if err != nil || s.best != nil && s.cost+add >= s.bestCost {
		return
	}
	var among []int
	worst := int64(0)
	for k, over := range s.over {
		if over > worst {
			worst = over
			among = among[:0]
			for _, l := range s.sections[k].Live {
				among = append(among, l.Buffer)
			}
		}
	}
	if worst == 0 {
		for _, set := range s.hit {
			if !slices.ContainsFunc(set, func(i int) bool { return s.state[i] == gone }) {
				among = set
				break
			}
		}
		if among == nil {
			s.best, s.bestCost = make([]bool, len(s.state)), s.cost
			for i, c := range s.state {
				s.best[i] = c == gone
			}
			if s.progress != nil {
				s.progress(milp.Progress{Objective: float64(s.bestCost), Bound: float64(s.root), Improved: true, Seconds: time.Since(s.began).Seconds()})
			}
			return
		}
	}
	// One of them goes: the first, or not the first but the second, and so on.
	var tried []int
	for _, i := range among {
		if s.state[i] != open {
			continue
		}
		s.set(i, gone)
		s.branch()
		s.set(i, stays)
		tried = append(tried, i)
		if s.stopped {
			break
		}
	}
	for _, i := range tried {
		s.set(i, open)
	}
}
