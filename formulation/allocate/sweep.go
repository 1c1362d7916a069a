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
	// WorkLimit is the number of choices made, a buffer at a time. A start's offsets are not used.
	solve.Options[SpillStart]
	// Stay marks buffers that may not be spilled, one bool for each; nil: none.
	Stay []bool
	// MaxStates is the number of choices that are kept side by side; 0 stands for
	// DefaultMaxStates, and for more after that if these don't suffice.
	MaxStates int
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
	// Of lists up to 64 buffers, live at the time, that take room in the demand once they are spilled, and Grown gives
	// its tiers for a set of them, a bit for each; nil: the demand does not depend on what is spilled. A spilled
	// buffer may not make a tier ask for less, nor for more than the buffer's size on top.
	Of    []int
	Grown func(spilled uint64) []Tier
}

// A Tier is a demand's cost if this much is free.
type Tier struct{ Free, Cost int64 }

// cost of the demand with so much free and these buffers spilled, or false.
func (d *Demand) cost(free int64, spilled func(buffer int) bool) (int64, bool) {
	set := uint64(0)
	for k, i := range d.Of {
		if spilled(i) {
			set |= 1 << k
		}
	}
	for _, t := range d.tiers(set) {
		if free >= t.Free {
			return t.Cost, true
		}
	}
	return 0, false
}

// tiers with a set of the buffers spilled that it depends on.
func (d *Demand) tiers(set uint64) []Tier {
	if d.Grown == nil {
		return d.Tiers
	}
	return d.Grown(set)
}

// SweepCost returns a choice's cost, demands included, or false if it leaves too much.
func SweepCost(p *Problem, capacity int64, demands []Demand, spilled []bool) (int64, bool) {
	if checkSpill(p, capacity, spilled) != nil {
		return 0, false
	}
	inTime := make([]*Demand, len(demands))
	for i := range demands {
		inTime[i] = &demands[i]
	}
	slices.SortFunc(inTime, func(a, b *Demand) int { return cmp.Compare(a.Time, b.Time) })
	cost, free, changes := SpillCost(p, spilled), capacity, p.changes(spilled)
	for _, d := range inTime {
		for ; len(changes) > 0 && changes[0].time <= d.Time; changes = changes[1:] {
			free -= changes[0].bytes
		}
		c, ok := d.cost(free, func(k int) bool { return spilled[k] })
		if !ok {
			return 0, false
		}
		cost += c
	}
	return cost, true
}

// DefaultMaxStates makes a section with dozens of live buffers a matter of some ten milliseconds.
const DefaultMaxStates = 5000

// Without MaxStates there are moreStates times as many after a sweep that dropped some, as long as all together
// should then look at a buffer of a choice no more than mostLooks times; a sweep that comes to more is given up.
const moreStates, mostLooks = 4, 300_000_000

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
// Idea: go through the sections that are too full, or too full for the best tier of a demand, in order of time. What
// has been chosen so far matters to the rest only by its cost and by which of the buffers that live on have been
// spilled. So of all choices that agree on these the cheapest is kept:
//
//	divide the cost of each buffer among its sections; rest <- what the sections to come cost at least
//	choices <- { nothing spilled, cost 0 }
//	for each section that is too full, in order of time:
//	    forget the buffers that no later such section has; of equal choices keep the cheapest
//	    for each buffer that is new: each choice goes on with it spilled, and with it kept
//	    drop the choices with which the section is still too full
//	    add what demands cost with what each choice leaves free
//	    drop each choice that comes to no less than the best known with what the rest costs at least
//	    drop each choice if another costs no more and has spilled all that it has
//
// The division is a Lagrangean decomposition (Guignard and Kim, Mathematical Programming 39, 1987), with subgradient
// steps by Polyak (1969): sections are asked by themselves what they would spill at their shares, exactly, and shares
// rise where a section spills what others keep. What they cost adds up to a bound. What most sections would keep is
// kept first where all that can be is spilled at the start: a choice to begin with.
//
// Where more than MaxStates choices are left, those that look worst are dropped; the bound is then the least that one
// of these comes to with the rest. At a limit the answer is the best known, with the bound of the division or of a
// sweep with fewer choices. So it is where more than 256 buffers are to be decided on at a time, a limit of memory.
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
	none := &SpillResult{Status: milp.Infeasible}
	for i := range w.p.Buffers {
		if w.forced[i] && w.stays(i) {
			return none, nil
		}
	}
	if w.always >= math.MaxInt64/2 {
		return none, nil
	}
	x := w.price(ctx)
	best, cost := w.opts.Start.Spilled, int64(math.MaxInt64)
	if best != nil {
		cost, _ = SweepCost(w.p, w.capacity, w.opts.Demands, best)
	}
	choose := func() int64 {
		spilled, c := w.keep(x)
		if spilled == nil {
			return math.MaxInt64
		}
		if c < cost {
			best, cost = spilled, c
			report(float64(cost), 0, true)
		}
		return c
	}
	if choose() == math.MaxInt64 {
		return none, nil
	}
	x.improve(ctx, choose)
	pays, least := w.whole(x)
	w.pays, w.rest = pays, append(least, x.fixed)
	for k := range slices.Backward(least) {
		w.rest[k] += w.rest[k+1]
	}
	bound := min(cost, w.rest[0])
	report(float64(cost), float64(bound), true)
	stop, last := milp.Complete, int64(0)
	for stop == milp.Complete && bound < cost {
		before := w.looks
		found, dropped, why := w.run(ctx, cost)
		if stop = why; found != nil {
			best, cost = found.spilled, found.cost
		}
		if stop != milp.Complete {
			break
		}
		bound = max(bound, min(dropped, cost))
		report(float64(cost), float64(bound), true)
		looks, grows := w.looks-before, float64(moreStates)
		if last > 0 {
			grows = min(grows, float64(looks)/float64(last))
		}
		if bound < cost && (w.opts.MaxStates > 0 || float64(w.looks)+grows*float64(looks) > float64(w.mostLooks)) {
			stop = milp.StopWork
		}
		last, w.again = looks, true
		w.most *= moreStates
	}
	report(float64(cost), float64(bound), true)
	return w.answer(best, bound, stop)
}

// answer makes the result of a choice; nil stands for none.
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
		return nil, fmt.Errorf("allocate: found %d buffers that may or may not be spilled, expected %d",
			len(opts.Stay), len(p.Buffers))
	case opts.MaxStates < 0:
		return nil, fmt.Errorf("allocate: found at most %d states, expected 0 or more", opts.MaxStates)
	}
	if start := opts.Start.Spilled; start != nil {
		if _, ok := SweepCost(p, capacity, opts.Demands, start); !ok {
			return nil, fmt.Errorf("allocate: the start leaves too much")
		}
	}
	w := &sweep{p: p, opts: opts, most: opts.MaxStates, capacity: capacity, mostLooks: mostLooks}
	w.most = cmp.Or(w.most, DefaultMaxStates)
	w.most = max(2, w.most)
	if err := w.pose(capacity); err != nil {
		return nil, err
	}
	w.last = make([]int, len(p.Buffers))
	w.forced = make([]bool, len(p.Buffers))
	for i := range p.Buffers {
		w.last[i] = -1
		w.forced[i] = tooLarge(&p.Buffers[i], capacity)
	}
	for k, s := range w.sections {
		for _, l := range s.Live {
			w.last[l.Buffer] = k
		}
	}
	return w, nil
}

type sweep struct {
	p        *Problem
	opts     SweepOptions
	capacity int64
	most     int
	sections []section // too full ones
	// over is by how much a section passes the capacity with nothing spilled, need how
	// much must be freed there at least: more than that if there are demands.
	over, need []int64
	demands    [][]Demand // of each section
	always     int64      // what demands cost where nothing is live
	last       []int      // section of each buffer, -1: none
	forced     []bool
	nodes      int64
	looks      int64 // at a buffer of a choice
	mostLooks  int64 // of sweeps after the first
	again      bool  // the sweep is not the first
	// pays is each section's share of the cost of its live buffers, rest a lower bound on the cost from a section on.
	pays [][]int64
	rest []int64
}

// pose finds the sections that matter.
func (w *sweep) pose(capacity int64) error {
	left := slices.Clone(w.opts.Demands)
	for i, d := range left {
		for k, t := range d.Tiers {
			if t.Free < 0 || t.Cost < 0 || k > 0 && (t.Free >= d.Tiers[k-1].Free || t.Cost < d.Tiers[k-1].Cost) {
				return fmt.Errorf(
					"allocate: demand #%d: found tiers %v, expected fewer and fewer free bytes at costs that don't fall, none negative", i, d.Tiers)
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
			w.sections, w.over, w.need, w.demands = append(w.sections, s), append(w.over, over), append(w.need, max(0, need)),
				append(w.demands, left[:n])
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
	cost int64
	// paid is the cost with the share of the sections so far in that of a buffer, before what it was
	// without the section at hand.
	paid, before int64
	freed        int64  // in the section at hand
	trail        *trail // what was spilled, latest first
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

// run sweeps once, for a choice that costs less than the limit. It returns the least that a choice that was dropped
// for want of room can come to, and what cut the sweep short.
func (w *sweep) run(ctx context.Context, limit int64) (found *sweptAll, dropped int64, stop milp.Stop) {
	dropped = math.MaxInt64
	slot := make(map[int]int) // of buffers
	var free []int
	for k := sweepSlots - 1; k >= 0; k-- {
		free = append(free, k)
	}
	var in []int // buffers with slots, in order
	list := []swept{{}}
	for k, s := range w.sections {
		if stop := solve.Why(ctx); stop != milp.Complete {
			return nil, 0, stop
		}
		if w.opts.WorkLimit > 0 && w.nodes > w.opts.WorkLimit || w.again && w.looks > w.mostLooks {
			return nil, 0, milp.StopWork
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
		list = merge(list)
		w.looks += int64(len(list) * (1 + len(s.Live)))
		remaining := int64(0)
		for c := range list {
			list[c].freed, list[c].before = 0, list[c].paid
		}
		for n, l := range s.Live {
			at, there := slot[l.Buffer]
			if !there && !w.stays(l.Buffer) {
				remaining += l.Size
			}
			for c := 0; c < len(list) && there; c++ {
				if list[c].gone.has(at) {
					list[c].freed += l.Size
					list[c].paid += w.pays[k][n]
				}
			}
		}
		for n, l := range s.Live {
			i := l.Buffer
			if _, there := slot[i]; there || w.stays(i) {
				continue
			}
			if len(free) == 0 {
				w.opts.Notef("more than %d buffers are to be decided on at a time", sweepSlots)
				return nil, 0, milp.StopMemory
			}
			at := free[len(free)-1]
			free = free[:len(free)-1]
			slot[i] = at
			in = append(in, i)
			remaining -= l.Size
			cost := w.p.Buffers[i].Moved()
			var next []swept
			for _, c := range list {
				if !w.forced[i] && c.freed+remaining >= w.need[k] {
					next = append(next, c)
				}
				c.gone.add(at)
				c.cost += cost
				c.paid += w.pays[k][n]
				c.freed += l.Size
				if c.freed+remaining >= w.need[k] {
					c.trail = &trail{i, c.trail}
					next = append(next, c)
				}
			}
			w.nodes += int64(len(next))
			w.looks += int64(len(next))
			list = w.shorten(next, 2*w.most, func(c *swept) { dropped = min(dropped, c.before+w.rest[k]) })
		}
		asked := list[:0]
		for _, c := range list {
			ok := c.freed >= w.need[k] // without a new buffer that has not been asked yet
			for n := 0; n < len(w.demands[k]) && ok; n++ {
				var cost int64
				cost, ok = w.demands[k][n].cost(c.freed-w.over[k], func(i int) bool {
					at, there := slot[i]
					return there && c.gone.has(at)
				})
				c.cost += cost
				c.paid += cost
			}
			if ok && c.paid+w.rest[k+1] < limit {
				asked = append(asked, c)
			}
		}
		list = asked
		list = w.shorten(undominated(list), w.most, func(c *swept) { dropped = min(dropped, c.paid+w.rest[k+1]) })
		if len(list) == 0 {
			return nil, dropped, milp.Complete
		}
	}
	best := slices.MinFunc(list, func(a, b swept) int { return cmp.Compare(a.paid, b.paid) })
	found = &sweptAll{spilled: slices.Clone(w.forced), cost: best.paid + w.rest[len(w.sections)]}
	for t := best.trail; t != nil; t = t.before {
		found.spilled[t.buffer] = true
	}
	return found, dropped, milp.Complete
}

// merge keeps the cheapest of the choices that agree, the first of equals.
func merge(list []swept) []swept {
	at := make(map[slots]int, len(list))
	kept := list[:0]
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

// shorten keeps to a number of choices, those that look best.
func (w *sweep) shorten(list []swept, most int, drop func(c *swept)) []swept {
	if len(list) <= most {
		return list
	}
	slices.SortStableFunc(list,
		func(a, b swept) int { return cmp.Or(cmp.Compare(a.paid, b.paid), cmp.Compare(b.freed, a.freed)) })
	for c := range list[most:] {
		drop(&list[most+c])
	}
	return list[:most]
}

// mostRivals is with how many cheaper choices one is compared.
const mostRivals = 200

// undominated drops each choice for which another costs no more and has spilled all that it has.
func undominated(list []swept) []swept {
	slices.SortStableFunc(list, func(a, b swept) int { return cmp.Compare(a.cost, b.cost) })
	kept := list[:0:0]
	for _, c := range list {
		if !slices.ContainsFunc(kept[:min(len(kept), mostRivals)], func(o swept) bool { return o.gone.covers(&c.gone) }) {
			kept = append(kept, c)
		}
	}
	return kept
}
