package rcpsp

import (
	"cmp"
	"slices"
)

// A timetable propagates one resource's capacity: where the activities that surely run
// leave too little, no other can run.
type timetable struct {
	e        *engine
	capacity int64
	tasks    []task
	dirty    bool

	edges    []edge
	at       []int64 // where segment n begins; the last has height 0
	height   []int64
	covering []int // scratch
	lits     []lit
}

type task struct {
	x        int32 // start
	duration int64
	demand   int64
}

type edge struct{ at, by int64 }

// maxSteps is how many small steps a push over one segment may take; each has its own
// and more general reason.
const maxSteps = 4

func (r *timetable) propagate() bool {
	e := r.e
	for r.dirty {
		r.dirty = false
		r.edges = r.edges[:0]
		for _, t := range r.tasks {
			if from, to := e.ub(t.x), e.lb[t.x]+t.duration; from < to {
				r.edges = append(r.edges, edge{from, t.demand}, edge{to, -t.demand})
			}
		}
		if len(r.edges) == 0 {
			return true
		}
		sortEdges(r.edges)
		r.at, r.height = r.at[:0], r.height[:0]
		h, top := int64(0), int64(0)
		for i, g := range r.edges {
			h += g.by
			if i+1 == len(r.edges) || r.edges[i+1].at > g.at {
				r.at = append(r.at, g.at)
				r.height = append(r.height, h)
				top = max(top, h)
			}
		}
		for n, h := range r.height {
			if h > r.capacity {
				t := r.at[n] + (r.at[n+1]-1-r.at[n])/2
				r.lits = r.lits[:0]
				r.because(-1, t, t+1, r.capacity)
				e.confl = append(e.confl[:0], r.lits...)
				return false
			}
		}
		for i := range r.tasks {
			t := &r.tasks[i]
			if t.demand+top <= r.capacity || e.fixed(t.x) {
				continue
			}
			if !r.pushUp(i, t) || !r.pushDown(i, t) {
				return false
			}
		}
	}
	return true
}

// sortEdges sorts by time; edges change little from one time to the next when there
// are few, else the library's way is faster.
func sortEdges(a []edge) {
	if len(a) > 48 {
		slices.SortFunc(a, func(x, y edge) int { return cmp.Compare(x.at, y.at) })
		return
	}
	for i := 1; i < len(a); i++ {
		g, j := a[i], i
		for j > 0 && a[j-1].at > g.at {
			a[j] = a[j-1]
			j--
		}
		a[j] = g
	}
}

// firstAfter is the first segment that ends after time t.
func (r *timetable) firstAfter(t int64) int {
	n := 0
	if len(r.at) > 16 {
		n, _ = slices.BinarySearch(r.at, t)
		n = max(0, n-1)
	}
	for n+1 < len(r.at) && r.at[n+1] <= t {
		n++
	}
	return n
}

func (r *timetable) pushUp(i int, t *task) bool {
	e := r.e
	room := r.capacity - t.demand
	from, to := e.ub(t.x), e.lb[t.x]+t.duration // surely runs here
	for n := r.firstAfter(e.lb[t.x]); n+1 < len(r.at) && r.at[n] < e.lb[t.x]+t.duration; n++ {
		a, b := r.at[n], r.at[n+1]
		if r.height[n] <= room || b <= e.lb[t.x] || a >= from && b <= to {
			continue
		}
		for e.lb[t.x] < b {
			r.lits = r.lits[:0]
			if (b-e.lb[t.x])/t.duration < maxSteps {
				at := min(b, e.lb[t.x]+t.duration) - 1
				r.lits = append(r.lits, lit{t.x, at - t.duration + 1})
				r.because(i, at, at+1, room)
				if !e.setBy(lit{t.x, at + 1}, r.lits) {
					return false
				}
			} else {
				r.lits = append(r.lits, lit{t.x, a - t.duration + 1})
				r.because(i, a, b, room)
				if !e.setBy(lit{t.x, b}, r.lits) {
					return false
				}
			}
		}
	}
	return true
}

func (r *timetable) pushDown(i int, t *task) bool {
	e := r.e
	room := r.capacity - t.demand
	from, to := e.ub(t.x), e.lb[t.x]+t.duration
	for n := min(r.firstAfter(e.ub(t.x)+t.duration-1), len(r.at)-2); n >= 0 && r.at[n+1] > e.ub(t.x); n-- {
		a, b := r.at[n], r.at[n+1]
		if r.height[n] <= room || a >= e.ub(t.x)+t.duration || a >= from && b <= to {
			continue
		}
		for e.ub(t.x)+t.duration > a {
			r.lits = r.lits[:0]
			if (e.ub(t.x)+t.duration-a)/t.duration < maxSteps {
				at := max(a, e.ub(t.x))
				r.lits = append(r.lits, lit{t.x ^ 1, -at})
				r.because(i, at, at+1, room)
				if !e.setBy(lit{t.x ^ 1, t.duration - at}, r.lits) {
					return false
				}
			} else {
				r.lits = append(r.lits, lit{t.x ^ 1, 1 - b})
				r.because(i, a, b, room)
				if !e.setBy(lit{t.x ^ 1, t.duration - a}, r.lits) {
					return false
				}
			}
		}
	}
	return true
}

// because appends to lits why the activities but one take more than room all through
// [from, to).
func (r *timetable) because(but int, from, to, room int64) {
	e := r.e
	r.covering = r.covering[:0]
	surplus := -room - 1
	for i := range r.tasks {
		t := &r.tasks[i]
		if i != but && e.ub(t.x) <= from && to <= e.lb[t.x]+t.duration {
			r.covering = append(r.covering, i)
			surplus += t.demand
		}
	}
	for _, i := range r.covering {
		t := &r.tasks[i]
		if t.demand <= surplus && (e.root[t.x] < to-t.duration || e.root[t.x^1] < -from) {
			surplus -= t.demand
			continue
		}
		r.lits = append(r.lits, lit{t.x, to - t.duration}, lit{t.x ^ 1, -from})
	}
}
