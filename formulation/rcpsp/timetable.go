package rcpsp

import (
	"math"
	"slices"
)

// A timetable propagates one resource's capacity: where the activities that surely run
// leave too little, no other can run ([timetable.propagate]), and what surely runs
// within an interval of time takes no more than there is ([timetable.edgeFind]).
type timetable struct {
	e        *engine
	capacity int64
	tasks    []task

	// What is left to do. What surely runs has changed since the profile was made (stale),
	// has grown (all), or bounds of tasks that never surely run have risen.
	stale, all, energy bool
	queue              []int32
	energies           bool // edge-finding is of use

	edges   []edge
	at      []int64 // where segment n begins; the last has height 0
	height  []int64
	top     int64
	overlap []int64 // scratch
	lits    []lit
}

type task struct {
	x        int32 // start
	duration int64
	demand   int64
	queued   bool
	sure     bool // it has edges
}

// An edge is where a task begins or ends that surely runs.
type edge struct {
	at, by int64
	task   int32
}

// maxSteps is how many small steps a push over one segment may take; each has its own
// and more general reason.
const maxSteps = 4

// newTimetable has no edge-finding where energy up to a horizon passes 64 bits.
func newTimetable(e *engine, capacity, horizon int64, tasks []task) *timetable {
	r := &timetable{e: e, capacity: capacity, tasks: tasks, stale: true, all: true}
	r.energies = len(tasks) > 1 && len(tasks) <= energyTasks && capacity <= math.MaxInt64/4/(horizon+1)
	r.energy = r.energies
	return r
}

// rose notes that a bound of task i has risen.
func (r *timetable) rose(i int32) {
	t := &r.tasks[i]
	r.energy = r.energies
	if r.e.ub(t.x) < r.e.lb[t.x]+t.duration {
		r.stale, r.all = true, true
	} else if !t.queued {
		t.queued = true
		r.queue = append(r.queue, i)
	}
}

// fell notes that the search went back to where all was propagated.
func (r *timetable) fell() {
	for _, i := range r.queue {
		r.tasks[i].queued = false
	}
	r.stale, r.all, r.energy, r.queue = true, false, false, r.queue[:0]
}

// profile finds what surely runs. Edges keep their order from one time to the next, as
// it changes little.
func (r *timetable) profile() {
	e := r.e
	kept := r.edges[:0]
	for _, g := range r.edges {
		t := &r.tasks[g.task]
		from, to := e.ub(t.x), e.lb[t.x]+t.duration
		if t.sure = from < to; t.sure {
			g.at = from
			if g.by < 0 {
				g.at = to
			}
			kept = append(kept, g)
		}
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		if from, to := e.ub(t.x), e.lb[t.x]+t.duration; from < to && !t.sure {
			t.sure = true
			kept = append(kept, edge{from, t.demand, int32(i)}, edge{to, -t.demand, int32(i)})
		}
	}
	r.edges = kept
	for n := 1; n < len(kept); n++ {
		g, m := kept[n], n
		for ; m > 0 && kept[m-1].at > g.at; m-- {
			kept[m] = kept[m-1]
		}
		kept[m] = g
	}
	r.at, r.height, r.top = r.at[:0], r.height[:0], 0
	h := int64(0)
	for n, g := range kept {
		h += g.by
		if n+1 == len(kept) || kept[n+1].at > g.at {
			r.at, r.height, r.top = append(r.at, g.at), append(r.height, h), max(r.top, h)
		}
	}
	r.stale = false
}

func (r *timetable) propagate() bool {
	e := r.e
	for r.all || len(r.queue) > 0 {
		if r.stale {
			r.profile()
		}
		if !r.all {
			for len(r.queue) > 0 && !r.all {
				i := r.queue[len(r.queue)-1]
				r.queue = r.queue[:len(r.queue)-1]
				r.tasks[i].queued = false
				if !r.push(int(i)) {
					return false
				}
			}
			continue
		}
		r.all = false
		for _, i := range r.queue {
			r.tasks[i].queued = false
		}
		r.queue = r.queue[:0]
		if r.top > r.capacity {
			for n, h := range r.height {
				if h > r.capacity {
					t := r.at[n] + (r.at[n+1]-1-r.at[n])/2
					r.because(-1, t, t+1, r.capacity)
					e.confl = append(e.confl[:0], r.lits...)
					return false
				}
			}
		}
		for i := range r.tasks {
			if !r.push(i) {
				return false
			}
		}
	}
	return true
}

func (r *timetable) push(i int) bool {
	t := &r.tasks[i]
	return t.demand+r.top <= r.capacity || r.e.fixed(t.x) || r.pushUp(i, t) && r.pushDown(i, t)
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
			if (b-e.lb[t.x])/t.duration < maxSteps {
				at := min(b, e.lb[t.x]+t.duration) - 1
				r.because(i, at, at+1, room)
				if !e.setBy(lit{t.x, at + 1}, append(r.lits, lit{t.x, at - t.duration + 1})) {
					return false
				}
			} else {
				r.because(i, a, b, room)
				if !e.setBy(lit{t.x, b}, append(r.lits, lit{t.x, a - t.duration + 1})) {
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
			if (e.ub(t.x)+t.duration-a)/t.duration < maxSteps {
				at := max(a, e.ub(t.x))
				r.because(i, at, at+1, room)
				if !e.setBy(lit{t.x ^ 1, t.duration - at}, append(r.lits, lit{t.x ^ 1, -at})) {
					return false
				}
			} else {
				r.because(i, a, b, room)
				if !e.setBy(lit{t.x ^ 1, t.duration - a}, append(r.lits, lit{t.x ^ 1, 1 - b})) {
					return false
				}
			}
		}
	}
	return true
}

// because puts into lits why the activities but one take more than room all through
// [from, to).
func (r *timetable) because(but int, from, to, room int64) {
	e := r.e
	r.lits, r.overlap = r.lits[:0], r.overlap[:0]
	surplus := -room - 1
	for i := range r.tasks {
		t := &r.tasks[i]
		if i != but && e.ub(t.x) <= from && to <= e.lb[t.x]+t.duration {
			r.overlap = append(r.overlap, int64(i))
			surplus += t.demand
		}
	}
	for _, i := range r.overlap {
		t := &r.tasks[i]
		if t.demand <= surplus && (e.root[t.x] < to-t.duration || e.root[t.x^1] < -from) {
			surplus -= t.demand
			continue
		}
		r.lits = append(r.lits, lit{t.x, to - t.duration}, lit{t.x ^ 1, -from})
	}
}
