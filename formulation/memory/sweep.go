package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/model/memory"
)

// SweepOptions are the settings of [SpillSweep]; the zero value is the default.
type SweepOptions struct {
	// Stay marks buffers that may not be spilled, one bool for each; nil: none.
	Stay []bool
	// MaxStates is how many choices are kept side by side; 0 stands for
	// DefaultMaxStates.
	MaxStates int
	// NoDominance keeps choices that others make useless.
	NoDominance bool
}

// DefaultMaxStates makes a section with dozens of live buffers a matter of
// milliseconds.
const DefaultMaxStates = 1000

// sweepSlots is the most buffers that can be undecided about at a time.
const sweepSlots = 256

// slots is a set of buffers by the slots that they have for the time being.
type slots [sweepSlots / 64]uint64

func (s *slots) has(k int) bool { return s[k/64]>>(k%64)&1 == 1 }
func (s *slots) add(k int)      { s[k/64] |= 1 << (k % 64) }
func (s *slots) drop(k int)     { s[k/64] &^= 1 << (k % 64) }

func (s *slots) covers(o *slots) bool {
	for w := range s {
		if o[w]&^s[w] != 0 {
			return false
		}
	}
	return true
}

// SpillSweep chooses at least cost what leaves a memory of the given capacity, as
// [Spill] does without Place, by dynamic programming over time. It suits problems
// whose lifetimes are short against the whole: many sections, few buffers in each.
//
// Idea: go through the sections that are too full, in order of time. What has been
// chosen so far matters to the rest only by its cost and by which of the buffers that
// live on have been spilled. So of all choices that agree on these the cheapest is
// kept:
//
//	choices <- { nothing spilled, cost 0 }
//	for each section that is too full, in order of time:
//	    forget the buffers that no later such section has; of equal choices keep the cheapest
//	    for each buffer that is new: each choice goes on with it spilled, and with it kept
//	    drop the choices with which the section is still too full
//	    drop each choice if another costs no more and has spilled all that it has
//
// Where that leaves more than MaxStates it takes two sweeps. One drops the choices
// that look worst; what it finds is an answer. The other puts them together into one
// that costs as little as the cheapest of them and has spilled what any of them has;
// as that is at least as good as each, the least cost at its end is a bound
// ("restricted" and "relaxed" decision diagrams, Bergman, Cire, van Hoeve and Hooker
// 2016). The choice that spills all it can always is among those kept, so that there
// is an answer if there can be one.
//
// When ctx ends the answer is what is known: a Limit, or the first sweep's.
func SpillSweep(ctx context.Context, p *memory.Problem, capacity int64, opts SweepOptions) (*SpillSolution, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	switch {
	case capacity < 0:
		return nil, fmt.Errorf("memory: found capacity %d, expected 0 or more", capacity)
	case opts.Stay != nil && len(opts.Stay) != len(p.Buffers):
		return nil, fmt.Errorf("memory: found %d buffers that may or may not be spilled, expected %d", len(opts.Stay), len(p.Buffers))
	case opts.MaxStates < 0:
		return nil, fmt.Errorf("memory: found at most %d states, expected 0 or more", opts.MaxStates)
	}
	w := &sweep{p: p, opts: opts, most: opts.MaxStates}
	if w.most == 0 {
		w.most = DefaultMaxStates
	}
	w.most = max(2, w.most)
	for _, s := range p.Sections() {
		if over := s.Bytes() - capacity; over > 0 {
			w.sections, w.over = append(w.sections, s), append(w.over, over)
		}
	}
	w.last = make([]int, len(p.Buffers))
	w.times = make([]int, len(p.Buffers))
	w.forced = make([]bool, len(p.Buffers))
	for i := range p.Buffers {
		w.last[i] = -1
		w.forced[i] = tooLarge(&p.Buffers[i], capacity)
		if w.forced[i] && w.stays(i) {
			return &SpillSolution{Status: milp.Infeasible}, nil
		}
	}
	for k, s := range w.sections {
		for _, l := range s.Live {
			w.last[l.Buffer] = k
			w.times[l.Buffer]++
		}
	}
	first, err := w.run(ctx, false, math.MaxInt64)
	if err != nil {
		return &SpillSolution{Status: milp.Limit, Nodes: w.nodes}, nil
	}
	if first == nil {
		return &SpillSolution{Status: milp.Infeasible, Nodes: w.nodes}, nil
	}
	sol := &SpillSolution{Status: milp.Optimal, Spilled: first.spilled, Cost: first.cost, Bound: first.cost}
	if err := memory.CheckSpill(p, capacity, sol.Spilled); err != nil {
		return nil, fmt.Errorf("memory: the sweep's choice is wrong: %w", err)
	}
	if w.cut {
		second, err := w.run(ctx, true, first.cost)
		switch {
		case err != nil:
			sol.Bound = 0
		case second != nil:
			sol.Bound = min(sol.Bound, second.cost)
		}
		if sol.Bound < sol.Cost {
			sol.Status = milp.Feasible
		}
	}
	sol.Nodes = w.nodes
	return sol, nil
}

type sweep struct {
	p        *memory.Problem
	opts     SweepOptions
	most     int
	sections []memory.Section // too full ones
	over     []int64
	last     []int // section of each buffer, -1: none
	times    []int // how many sections each buffer is in
	forced   []bool
	nodes    int64
	cut      bool
}

func (w *sweep) stays(i int) bool { return w.opts.Stay != nil && w.opts.Stay[i] }

// swept is a choice so far.
type swept struct {
	gone slots // of the buffers that have slots
	cost int64
	// weighed is the cost with that of a buffer counted for the share of its sections
	// that have passed, to tell what looks worst.
	weighed float64
	freed   int64  // in the section at hand
	trail   *trail // what was spilled, latest first
}

type trail struct {
	buffer int
	before *trail
}

// A finished choice.
type sweptAll struct {
	spilled []bool
	cost    int64
}

// run sweeps once. In a relaxed sweep the buffers spilled are not those of one choice,
// and only the cost means something; what costs limit or more is dropped, so that
// nothing is left if no choice costs less.
func (w *sweep) run(ctx context.Context, relaxed bool, limit int64) (*sweptAll, error) {
	slot := make(map[int]int) // of buffers
	var free []int
	for k := sweepSlots - 1; k >= 0; k-- {
		free = append(free, k)
	}
	var in []int // buffers with slots, in order
	list := []swept{{}}
	forced := int64(0)
	for i := range w.p.Buffers {
		// What no section asks about goes only if it must.
		if w.forced[i] && w.last[i] < 0 {
			forced += w.p.Buffers[i].Moved()
		}
	}
	for k, s := range w.sections {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var kept []int
		for _, i := range in {
			if w.last[i] >= k {
				kept = append(kept, i)
				continue
			}
			for c := range list {
				list[c].gone.drop(slot[i])
			}
			free = append(free, slot[i])
			delete(slot, i)
		}
		in = kept
		list = w.merge(list)
		remaining := int64(0)
		for c := range list {
			list[c].freed = 0
			for _, l := range s.Live {
				if at, there := slot[l.Buffer]; there && list[c].gone.has(at) {
					list[c].freed += l.Window.Len()
				}
			}
		}
		for _, l := range s.Live {
			if _, there := slot[l.Buffer]; !there && !w.stays(l.Buffer) {
				remaining += l.Window.Len()
			}
		}
		for _, l := range s.Live {
			i := l.Buffer
			if _, there := slot[i]; there || w.stays(i) {
				continue
			}
			if len(free) == 0 {
				return nil, fmt.Errorf("memory: more than %d buffers at a time", sweepSlots)
			}
			at := free[len(free)-1]
			free = free[:len(free)-1]
			slot[i] = at
			in = append(in, i)
			remaining -= l.Window.Len()
			cost := w.p.Buffers[i].Moved()
			var next []swept
			for _, c := range list {
				if !w.forced[i] && c.freed+remaining >= w.over[k] {
					next = append(next, c)
				}
				c.gone.add(at)
				c.cost += cost
				c.weighed += float64(cost) / float64(w.times[i])
				c.freed += l.Window.Len()
				if c.cost < limit-forced && c.freed+remaining >= w.over[k] {
					c.trail = &trail{i, c.trail}
					next = append(next, c)
				}
			}
			w.nodes += int64(len(next))
			list = w.shorten(next, relaxed)
		}
		// Without a new buffer the section has not been asked yet.
		list = slices.DeleteFunc(list, func(c swept) bool { return c.freed < w.over[k] })
		if !w.opts.NoDominance {
			list = undominated(list)
		}
		if len(list) == 0 {
			return nil, nil
		}
		// Those that have gone before and live on count for one section more.
		for c := range list {
			for _, l := range s.Live {
				if at, there := slot[l.Buffer]; there && w.last[l.Buffer] > k && list[c].gone.has(at) {
					list[c].weighed += float64(w.p.Buffers[l.Buffer].Moved()) / float64(w.times[l.Buffer])
				}
			}
		}
	}
	best := slices.MinFunc(list, func(a, b swept) int { return cmp.Compare(a.cost, b.cost) })
	out := &sweptAll{spilled: make([]bool, len(w.p.Buffers)), cost: best.cost + forced}
	for t := best.trail; t != nil; t = t.before {
		out.spilled[t.buffer] = true
	}
	for i := range out.spilled {
		out.spilled[i] = out.spilled[i] || w.forced[i]
	}
	return out, nil
}

// merge keeps the cheapest of the choices that agree, the first of equals.
func (w *sweep) merge(list []swept) []swept {
	at := make(map[slots]int, len(list))
	kept := list[:0:0]
	for _, c := range list {
		k, there := at[c.gone]
		switch {
		case !there:
			at[c.gone] = len(kept)
			kept = append(kept, c)
		case c.cost < kept[k].cost:
			kept[k] = c
		}
	}
	return kept
}

// shorten keeps to the limit: the choices that look best, and the one that has spilled
// most; in a relaxed sweep the others are put together into one.
func (w *sweep) shorten(list []swept, relaxed bool) []swept {
	if len(list) <= w.most {
		return list
	}
	w.cut = true
	// A choice that has spilled all that any other has is the last that may go.
	all := 0
	for k := range list {
		if list[k].gone.covers(&list[all].gone) && list[k].freed >= list[all].freed {
			all = k
		}
	}
	list[0], list[all] = list[all], list[0]
	rest := list[1:]
	slices.SortStableFunc(rest, func(a, b swept) int { return cmp.Or(cmp.Compare(a.weighed, b.weighed), cmp.Compare(b.freed, a.freed)) })
	if !relaxed {
		return list[:w.most]
	}
	kept, others := list[:w.most-1:w.most-1], list[w.most-1:]
	one := others[0]
	for _, c := range others[1:] {
		one.cost, one.weighed = min(one.cost, c.cost), min(one.weighed, c.weighed)
		for k := range one.gone {
			one.gone[k] |= c.gone[k]
		}
		// At least what each of them frees: not below what the union frees, which is
		// counted anew in the next section.
		one.freed = max(one.freed, c.freed)
	}
	return append(kept, one)
}

// undominated drops each choice for which another costs no more and has spilled all
// that it has.
func undominated(list []swept) []swept {
	slices.SortStableFunc(list, func(a, b swept) int { return cmp.Compare(a.cost, b.cost) })
	kept := list[:0:0]
	for _, c := range list {
		if !slices.ContainsFunc(kept, func(o swept) bool { return o.gone.covers(&c.gone) }) {
			kept = append(kept, c)
		}
	}
	return kept
}
