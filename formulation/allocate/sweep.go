package allocate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// SweepOptions are the settings of [SpillSweep]; the zero value is the default.
type SweepOptions struct {
	// WorkLimit is the number of choices made, a buffer at a time. A start's offsets
	// are not used.
	solve.Options[SpillStart]
	// Stay marks buffers that may not be spilled, one bool for each; nil: none.
	Stay []bool
	// MaxStates is how many choices are kept side by side; 0 stands for
	// DefaultMaxStates.
	MaxStates int
	// NoDominance keeps choices that others make useless.
	NoDominance bool
	// Demands are made on what is left free. Their costs are part of the answer's.
	Demands []Demand
}

// A Demand is for bytes that no buffer takes at some time, such as the room in which
// a step works on a tile at a time: with less of it, more must be moved again.
type Demand struct {
	Time int64
	// Tiers come with fewer and fewer free bytes at higher and higher costs. With less
	// than the last asks for there is no choice.
	Tiers []Tier
	// Of lists up to 64 buffers, live at the time, that take room in the demand once they
	// are spilled, and Grown gives its tiers for a set of them, a bit for each; nil: the
	// demand does not depend on what is spilled. A spilled buffer may not make a tier ask for
	// less, nor for more than the buffer's size on top.
	Of    []int
	Grown func(spilled uint64) []Tier
}

// A Tier is what a demand costs if this much is free.
type Tier struct{ Free, Cost int64 }

// cost of the demand with so much free and these buffers spilled, or false.
func (d *Demand) cost(free int64, spilled func(buffer int) bool) (int64, bool) {
	tiers := d.Tiers
	if set := uint64(0); d.Grown != nil {
		for k, i := range d.Of {
			if spilled(i) {
				set |= 1 << k
			}
		}
		tiers = d.Grown(set)
	}
	for _, t := range tiers {
		if free >= t.Free {
			return t.Cost, true
		}
	}
	return 0, false
}

// SweepCost is what a choice costs, demands included, or false if it leaves too much.
func SweepCost(p *Problem, capacity int64, demands []Demand, spilled []bool) (int64, bool) {
	if CheckSpill(p, capacity, spilled) != nil {
		return 0, false
	}
	cost := SpillCost(p, spilled)
	for i := range demands {
		free := capacity
		for k := range p.Buffers {
			if !spilled[k] {
				free -= p.Buffers[k].At(demands[i].Time).Len()
			}
		}
		c, ok := demands[i].cost(free, func(k int) bool { return spilled[k] })
		if !ok {
			return 0, false
		}
		cost += c
	}
	return cost, true
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

func (s *slots) common(o *slots) slots {
	both := *s
	for w := range both {
		both[w] &= o[w]
	}
	return both
}

// SpillSweep chooses at least cost what leaves a memory of the given capacity, as
// [Spill] does without Place, by dynamic programming over time. It suits problems
// whose lifetimes are short against the whole: many sections, few buffers in each.
//
// Idea: go through the sections that are too full, or too full for the best tier of a
// demand, in order of time. What has been
// chosen so far matters to the rest only by its cost and by which of the buffers that
// live on have been spilled. So of all choices that agree on these the cheapest is
// kept:
//
//	choices <- { nothing spilled, cost 0 }
//	for each section that is too full, in order of time:
//	    forget the buffers that no later such section has; of equal choices keep the cheapest
//	    for each buffer that is new: each choice goes on with it spilled, and with it kept
//	    drop the choices with which the section is still too full
//	    add what demands cost with what each choice leaves free
//	    drop each choice if another costs no more and has spilled all that it has
//
// Where that leaves more than MaxStates it takes two sweeps. One drops the choices
// that look worst; what it finds is an answer. The other puts them together into one
// that costs as little as the cheapest of them and has spilled what any of them has
// (for what makes demands grow: what all of them have); as that is at least as good as each, the least cost at its end is a bound
// ("restricted" and "relaxed" decision diagrams, Bergman, Cire, van Hoeve and Hooker
// 2016). The choice that spills all it can always is among those kept, so that there
// is an answer if there can be one.
//
// At a limit the answer is the start, or the first sweep's choice. More than 256 buffers
// to be decided on at a time are a limit of memory.
func SpillSweep(ctx context.Context, p *Problem, capacity int64, opts SweepOptions) (*SpillResult, error) {
	began := time.Now()
	w, err := newSweep(p, capacity, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	r, err := w.solve(ctx)
	if err == nil {
		r.Method, r.Nodes, r.Seconds = "sweep", w.nodes, time.Since(began).Seconds()
	}
	return r, err
}

func (w *sweep) solve(ctx context.Context) (*SpillResult, error) {
	report := w.opts.Reporter()
	for i := range w.p.Buffers {
		if w.forced[i] && w.stays(i) {
			return &SpillResult{Status: milp.Infeasible}, nil
		}
	}
	first, stop := w.run(ctx, false, math.MaxInt64)
	if stop == milp.Complete && first == nil {
		return &SpillResult{Status: milp.Infeasible}, nil
	}
	if stop != milp.Complete {
		return w.answer(w.opts.Start.Spilled, 0, stop)
	}
	if cost, ok := SweepCost(w.p, w.capacity, w.opts.Demands, first.spilled); !ok || cost != first.cost {
		return nil, fmt.Errorf("allocate: the sweep's choice costs %d (%v), not %d", cost, ok, first.cost)
	}
	bound := first.cost
	if w.cut {
		report(float64(first.cost), 0, true)
		var second *sweptAll
		if second, stop = w.run(ctx, true, first.cost); stop != milp.Complete {
			bound = 0
		} else if second != nil {
			bound, stop = min(bound, second.cost), milp.StopWork
		}
	}
	report(float64(first.cost), float64(bound), true)
	if start := w.opts.Start.Spilled; start != nil {
		if cost, ok := SweepCost(w.p, w.capacity, w.opts.Demands, start); ok && cost < first.cost {
			return w.answer(start, bound, stop)
		}
	}
	return w.answer(first.spilled, bound, stop)
}

// answer is what is known of a choice, nil for none.
func (w *sweep) answer(spilled []bool, bound int64, stop milp.Stop) (*SpillResult, error) {
	r := (&SpillResult{Spilled: spilled, Bound: bound}).finish(w.p, stop)
	if spilled != nil {
		// With what demands cost.
		cost, ok := SweepCost(w.p, w.capacity, w.opts.Demands, spilled)
		if !ok {
			return nil, fmt.Errorf("allocate: the choice leaves too much")
		}
		r.Cost, r.Bound = cost, min(bound, cost)
		r.Status, r.Stop = solve.Judge(true, r.Bound == r.Cost, stop)
	}
	return r, nil
}

func newSweep(p *Problem, capacity int64, opts SweepOptions) (*sweep, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("allocate: %w", err)
	}
	switch {
	case capacity < 0:
		return nil, fmt.Errorf("allocate: found capacity %d, expected 0 or more", capacity)
	case opts.Stay != nil && len(opts.Stay) != len(p.Buffers):
		return nil, fmt.Errorf("allocate: found %d buffers that may or may not be spilled, expected %d", len(opts.Stay), len(p.Buffers))
	case opts.MaxStates < 0:
		return nil, fmt.Errorf("allocate: found at most %d states, expected 0 or more", opts.MaxStates)
	}
	if start := opts.Start.Spilled; start != nil {
		if _, ok := SweepCost(p, capacity, opts.Demands, start); !ok {
			return nil, fmt.Errorf("allocate: the start leaves too much")
		}
	}
	w := &sweep{p: p, opts: opts, most: opts.MaxStates, capacity: capacity}
	if w.most == 0 {
		w.most = DefaultMaxStates
	}
	w.most = max(2, w.most)
	if err := w.pose(capacity); err != nil {
		return nil, err
	}
	w.last = make([]int, len(p.Buffers))
	w.times = make([]int, len(p.Buffers))
	w.forced = make([]bool, len(p.Buffers))
	for i := range p.Buffers {
		w.last[i] = -1
		w.forced[i] = tooLarge(&p.Buffers[i], capacity)
	}
	for k, s := range w.sections {
		for _, l := range s.Live {
			w.last[l.Buffer] = k
			w.times[l.Buffer]++
		}
	}
	return w, nil
}

type sweep struct {
	p        *Problem
	opts     SweepOptions
	capacity int64
	most     int
	sections []Section // too full ones
	// over is by how much a section passes the capacity with nothing spilled, need how
	// much must be freed there at least: more than that if there are demands.
	over, need []int64
	demands    [][]Demand // of each section
	always     int64      // what demands cost where nothing is live
	last       []int      // section of each buffer, -1: none
	times      []int      // how many sections each buffer is in
	forced     []bool
	nodes      int64
	cut        bool
}

// pose finds the sections that matter.
func (w *sweep) pose(capacity int64) error {
	left := slices.Clone(w.opts.Demands)
	for i, d := range left {
		for k, t := range d.Tiers {
			if t.Free < 0 || t.Cost < 0 || k > 0 && (t.Free >= d.Tiers[k-1].Free || t.Cost < d.Tiers[k-1].Cost) {
				return fmt.Errorf("allocate: demand #%d: found tiers %v, expected fewer and fewer free bytes at costs that don't fall, none negative", i, d.Tiers)
			}
		}
		if len(d.Tiers) == 0 {
			return fmt.Errorf("allocate: demand #%d: found no tiers, expected at least one", i)
		}
		if len(d.Of) > 64 {
			return fmt.Errorf("allocate: demand #%d: found %d buffers that it depends on, expected at most 64", i, len(d.Of))
		}
	}
	slices.SortStableFunc(left, func(a, b Demand) int { return cmp.Compare(a.Time, b.Time) })
	alone := func(d Demand) {
		if c, ok := d.cost(capacity, func(int) bool { return false }); ok {
			w.always += c
		} else {
			w.always = math.MaxInt64 / 2
		}
	}
	for _, s := range w.p.Sections() {
		for len(left) > 0 && left[0].Time < s.Time.Lower {
			alone(left[0])
			left = left[1:]
		}
		n := 0
		for n < len(left) && left[n].Time < s.Time.Upper {
			n++
		}
		over := s.Bytes() - capacity
		need, matters := over, over > 0
		for _, d := range left[:n] {
			need = max(need, over+d.Tiers[len(d.Tiers)-1].Free)
			matters = matters || over+d.Tiers[0].Free > 0
		}
		if matters {
			w.sections, w.over, w.need, w.demands = append(w.sections, s), append(w.over, over), append(w.need, max(0, need)), append(w.demands, left[:n])
		} else {
			for _, d := range left[:n] {
				w.always += d.Tiers[0].Cost
			}
		}
		left = left[n:]
	}
	for _, d := range left {
		alone(d)
	}
	return nil
}

func (w *sweep) stays(i int) bool { return w.opts.Stay != nil && w.opts.Stay[i] }

// swept is a choice so far.
type swept struct {
	gone slots // of the buffers that have slots
	sure slots // of choices put together: what each of them has spilled
	cost int64
	// weighed is the cost with that of a buffer counted for the share of its sections
	// that have passed, to find what looks worst.
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
// nothing is left if no choice costs less. It returns what cut it short.
func (w *sweep) run(ctx context.Context, relaxed bool, limit int64) (*sweptAll, milp.Stop) {
	slot := make(map[int]int) // of buffers
	var free []int
	for k := sweepSlots - 1; k >= 0; k-- {
		free = append(free, k)
	}
	var in []int // buffers with slots, in order
	list := []swept{{}}
	forced := w.always
	if forced >= math.MaxInt64/2 {
		return nil, milp.Complete
	}
	for i := range w.p.Buffers {
		// What no section asks about goes only if it must.
		if w.forced[i] && w.last[i] < 0 {
			forced += w.p.Buffers[i].Moved()
		}
	}
	for k, s := range w.sections {
		if stop := solve.Why(ctx); stop != milp.Complete {
			return nil, stop
		}
		if w.opts.WorkLimit > 0 && w.nodes > w.opts.WorkLimit {
			return nil, milp.StopWork
		}
		var kept []int
		for _, i := range in {
			if w.last[i] >= k {
				kept = append(kept, i)
				continue
			}
			for c := range list {
				list[c].gone.drop(slot[i])
				list[c].sure.drop(slot[i])
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
				w.opts.Notef("more than %d buffers are to be decided on at a time", sweepSlots)
				return nil, milp.StopMemory
			}
			at := free[len(free)-1]
			free = free[:len(free)-1]
			slot[i] = at
			in = append(in, i)
			remaining -= l.Window.Len()
			cost := w.p.Buffers[i].Moved()
			var next []swept
			for _, c := range list {
				if !w.forced[i] && c.freed+remaining >= w.need[k] {
					next = append(next, c)
				}
				c.gone.add(at)
				c.sure.add(at)
				c.cost += cost
				c.weighed += float64(cost) / float64(w.times[i])
				c.freed += l.Window.Len()
				if c.cost < limit-forced && c.freed+remaining >= w.need[k] {
					c.trail = &trail{i, c.trail}
					next = append(next, c)
				}
			}
			w.nodes += int64(len(next))
			list = w.shorten(next, relaxed)
		}
		// Without a new buffer the section has not been asked yet.
		list = slices.DeleteFunc(list, func(c swept) bool { return c.freed < w.need[k] })
		asked := list[:0]
		for _, c := range list {
			ok := true
			for n := 0; n < len(w.demands[k]) && ok; n++ {
				var cost int64
				cost, ok = w.demands[k][n].cost(c.freed-w.over[k], func(i int) bool {
					at, there := slot[i]
					return there && c.sure.has(at)
				})
				c.cost += cost
				c.weighed += float64(cost)
			}
			if ok && c.cost < limit-forced {
				asked = append(asked, c)
			}
		}
		list = asked
		if !w.opts.NoDominance {
			list = undominated(list)
		}
		if len(list) == 0 {
			return nil, milp.Complete
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
	return out, milp.Complete
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
		default:
			sure := kept[k].sure.common(&c.sure)
			if c.cost < kept[k].cost {
				kept[k] = c
			}
			kept[k].sure = sure
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
		one.sure = one.sure.common(&c.sure)
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
		if !slices.ContainsFunc(kept, func(o swept) bool {
			both := o.sure.common(&c.gone)
			return o.gone.covers(&c.gone) && c.sure.covers(&both)
		}) {
			kept = append(kept, c)
		}
	}
	return kept
}
