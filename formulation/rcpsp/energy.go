package rcpsp

import (
	"cmp"
	"slices"
)

// A span is where a task can be, and how much of the surest part of the resource's use
// lies before its ends.
type span struct {
	earliest, latest, first, last int64 // start and end: earliest start, latest start, earliest end, latest end
	before, behind                int64 // energy of what surely runs, before the earliest start and before the latest end
}

// edgeFind compares for intervals of time, from an earliest start to a latest end, what
// must run within them with what there is: time-table edge-finding. Where that is more
// there is a conflict, and where a task that starts as early as it can would make it more,
// it starts later; likewise for ends.
func (r *timetable) edgeFind() bool {
	r.energy = false
	if r.stale {
		r.profile()
	}
	e := r.e
	byStart, byEnd := make([]int32, len(r.tasks)), make([]int32, len(r.tasks))
	for i := range r.tasks {
		byStart[i], byEnd[i] = int32(i), int32(i)
	}
	slices.SortStableFunc(byStart, func(i, j int32) int { return cmp.Compare(e.lb[r.tasks[i].x], e.lb[r.tasks[j].x]) })
	slices.SortStableFunc(byEnd, func(i, j int32) int {
		a, b := &r.tasks[i], &r.tasks[j]
		return cmp.Compare(e.ub(a.x)+a.duration, e.ub(b.x)+b.duration)
	})
	there, back := make([]span, len(r.tasks)), make([]span, len(r.tasks))
	n, sum := 0, int64(0)
	until := func(t int64) int64 {
		for n+1 < len(r.at) && r.at[n+1] <= t {
			sum += r.height[n] * (r.at[n+1] - r.at[n])
			n++
		}
		if n < len(r.at) && r.at[n] < t {
			return sum + r.height[n]*(t-r.at[n])
		}
		return sum
	}
	for _, i := range byStart {
		t := &r.tasks[i]
		s := &there[i]
		s.earliest, s.latest = e.lb[t.x], e.ub(t.x)
		s.first, s.last = s.earliest+t.duration, s.latest+t.duration
		s.before = until(s.earliest)
	}
	n, sum = 0, 0
	for _, i := range byEnd {
		s := &there[i]
		s.behind = until(s.last)
		back[i] = span{-s.last, -s.first, -s.latest, -s.earliest, -s.behind, -s.before}
	}
	return r.sweep(there, byStart, byEnd, false) && r.sweep(back, byEnd, byStart, true)
}

// sweep looks at all intervals, in time or in its mirror. The orders are those of starts
// and ends in time; mirrored, ends of the one become starts of the other, in reverse.
func (r *timetable) sweep(spans []span, byStart, byEnd []int32, mirrored bool) bool {
	last := len(spans) - 1
	nth := func(order []int32, n int) int32 { // from the last in this direction on
		if mirrored {
			return order[n]
		}
		return order[last-n]
	}
	for m := range spans {
		end := &spans[nth(byEnd, m)]
		b := end.last
		if m > 0 && spans[nth(byEnd, m-1)].last == b {
			continue
		}
		need, most, late := int64(0), int64(0), int32(-1)
		for n := range spans {
			i := nth(byStart, n)
			s, t := &spans[i], &r.tasks[i]
			if s.earliest >= b {
				continue
			}
			if s.last <= b {
				need += t.demand * min(t.duration, s.latest-s.earliest)
			} else {
				need += t.demand * max(0, b-max(s.latest, s.first))
				if rest := t.demand * (min(t.duration, b-s.earliest) - max(0, b-s.latest)); rest > most {
					most, late = rest, i
				}
			}
			spare := r.capacity*(b-s.earliest) - need - (end.behind - s.before)
			if spare >= most {
				continue
			}
			from, to := s.earliest, b
			if mirrored {
				from, to = -b, -s.earliest
			}
			if spare < 0 {
				if !r.overload(-1, from, to, false) {
					return false
				}
			} else if !r.overload(int(late), from, to, mirrored) {
				return false
			}
		}
	}
	return true
}

// overload says that tasks take too much of [from, to): all of them, or with one that runs
// there for longer than what the others leave, which therefore starts later, or ends
// earlier. A task with a start of at least from+m-d and at most to-m runs there for at least
// m of its duration d, and so its reason are these two bounds, where m is as small as will do.
func (r *timetable) overload(but int, from, to int64, ends bool) bool {
	e := r.e
	r.overlap = r.overlap[:0]
	surplus := -r.capacity*(to-from) - 1
	for i := range r.tasks {
		t := &r.tasks[i]
		m := max(0, min(to-from, t.duration, e.lb[t.x]+t.duration-from, to-e.ub(t.x)))
		if i == but {
			m = 0
		}
		r.overlap = append(r.overlap, m)
		surplus += t.demand * m
	}
	r.lits = r.lits[:0]
	follows := lit{}
	if but >= 0 {
		t := &r.tasks[but]
		k := int64(0)
		if surplus < 0 {
			k = (-1 - surplus) / t.demand // it can run there for so long
		} else {
			but = -1
		}
		surplus += t.demand * (k + 1)
		condition := lit{t.x, from + k + 1 - t.duration}
		follows = lit{t.x, to - k}
		if ends {
			condition = lit{t.x ^ 1, k + 1 - to}
			follows = lit{t.x ^ 1, t.duration - k - from}
		}
		if but >= 0 && (k >= min(to-from, t.duration) || !e.isTrue(condition) || e.isTrue(follows)) {
			return true // bounds have risen meanwhile
		}
		if but < 0 {
			surplus -= t.demand * (k + 1)
		} else {
			r.lits = append(r.lits, condition)
		}
	}
	for i, m := range r.overlap {
		t := &r.tasks[i]
		if m > 0 && t.demand*m <= surplus && (e.root[t.x] < from+m-t.duration || e.root[t.x^1] < m-to) {
			surplus -= t.demand * m
			r.overlap[i] = 0
		}
	}
	for i, m := range r.overlap {
		if m == 0 {
			continue
		}
		t := &r.tasks[i]
		r.lits = append(r.lits, lit{t.x, from + m - t.duration}, lit{t.x ^ 1, m - to})
	}
	if but >= 0 {
		return e.setBy(follows, r.lits)
	}
	if surplus < 0 {
		panic("rcpsp: an interval is overloaded by what does not fill it")
	}
	e.confl = append(e.confl[:0], r.lits...)
	return false
}
