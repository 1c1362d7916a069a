package unrelated

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// Limits of the search of one part: states, and those that are remembered.
const (
	mostStates = 200_000
	mostKnown  = 100_000
)

// search solves a part by branch and bound; see the package documentation.
func (s *solver) search(ctx context.Context, b *part) (*Plan, int64, error) {
	best, least := b.list(), b.bound()
	n := b.to - b.from
	t := &tree{part: b, ctx: ctx, best: best, found: b.makespan(best), tail: b.tails(),
		at: Plan{make([]int, n), make([]int64, n)}, end: make([]int64, n), done: make([]bool, n),
		free: make([]int64, b.p.Machines), early: make([]int64, n), known: map[string][][]int64{},
		left: min(s.left, mostStates)}
	if t.found == least {
		return best, least, nil
	}
	costs := b.costs()
	_, t.weights = bound.Load(costs)
	rest := 0.0
	for _, c := range costs {
		w := math.Inf(1)
		for m := range c {
			w = min(w, t.weights[m]*c[m])
		}
		t.share = append(t.share, w)
		rest += w
	}
	left := t.left
	t.visit(0, rest)
	s.left -= left - t.left
	s.r.States += left - t.left
	if t.left > 0 && t.stop == milp.Complete {
		return t.best, t.found, nil
	}
	s.r.Stop = cmp.Or(t.stop, s.r.Stop, milp.StopWork)
	return t.best, least, nil
}

// A tree is the search of a part, at a state of it.
type tree struct {
	*part
	ctx     context.Context
	best    *Plan
	found   int64     // its makespan
	tail    []int64   // of each job
	share   []float64 // of the fractional load
	weights []float64 // of machines
	at      Plan
	end     []int64
	done    []bool
	free    []int64
	early   []int64 // no end is before
	known   map[string][][]int64
	count   int
	left    int64
	stop    milp.Stop
}

// visit goes on from a state with so many jobs done, behind which the rest is the least weighted load.
func (t *tree) visit(jobs int, rest float64) {
	if t.left--; t.left <= 0 || t.stop != milp.Complete {
		return
	}
	if t.left%1024 == 0 {
		t.stop = solve.Why(t.ctx)
	}
	n := len(t.done)
	if jobs == n {
		if m := t.makespan(&t.at); m < t.found {
			t.best, t.found = &Plan{slices.Clone(t.at.Machine), slices.Clone(t.at.Start)}, m
		}
		return
	}
	for m, f := range t.free {
		rest += t.weights[m] * float64(f)
	}
	if whole(rest) >= t.found || t.longest() >= t.found || t.dominated() {
		return
	}
	for m, f := range t.free {
		rest -= t.weights[m] * float64(f)
	}
	type child struct {
		j, m       int
		start, way int64
	}
	var list []child
	for j := range n {
		if t.done[j] || !t.ready(j, t.done) {
			continue
		}
		for m := range t.free {
			if c := t.picos(t.from+j, m); c > 0 {
				start := t.start(j, m)
				list = append(list, child{j, m, start, start + c + t.tail[j]})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b child) int {
		return cmp.Or(cmp.Compare(t.tail[b.j]+t.least(t.from+b.j), t.tail[a.j]+t.least(t.from+a.j)),
			cmp.Compare(a.way, b.way))
	})
	for _, c := range list {
		if c.way >= t.found {
			continue
		}
		was := t.free[c.m]
		t.done[c.j], t.at.Machine[c.j], t.at.Start[c.j] = true, c.m, c.start
		t.end[c.j] = c.start + t.picos(t.from+c.j, c.m)
		t.free[c.m] = t.end[c.j]
		t.visit(jobs+1, rest-t.share[c.j])
		t.done[c.j], t.free[c.m] = false, was
	}
}

// start is the earliest of a job whose predecessors are done.
func (t *tree) start(j, m int) int64 {
	at := t.free[m]
	for _, a := range t.p.Jobs[t.from+j].After {
		at = max(at, t.arrives(a, m, t.at.Machine, t.end))
	}
	return at
}

// longest is the longest path through jobs that are left, each where it ends first.
func (t *tree) longest() (most int64) {
	for j := range t.done {
		if t.done[j] {
			continue
		}
		t.early[j] = never
		for m := range t.free {
			c := t.picos(t.from+j, m)
			if c == 0 {
				continue
			}
			at := t.free[m]
			for _, a := range t.p.Jobs[t.from+j].After {
				if k := a.Job - t.from; k >= 0 && !t.done[k] {
					at = max(at, t.early[k])
				} else {
					at = max(at, t.arrives(a, m, t.at.Machine, t.end))
				}
			}
			t.early[j] = min(t.early[j], at+c)
		}
		most = max(most, t.early[j]+t.tail[j])
	}
	return most
}

// dominated reports whether a state is known from which all that is left ends no later, and else remembers this one.
func (t *tree) dominated() bool {
	key := make([]byte, (len(t.done)+7)/8, len(t.done)+8)
	times := slices.Clone(t.free)
	waited := make([]bool, len(t.done))
	for j := range t.done {
		if t.done[j] {
			key[j/8] |= 1 << (j % 8)
			continue
		}
		for _, a := range t.p.Jobs[t.from+j].After {
			if k := a.Job - t.from; k >= 0 && t.done[k] {
				waited[k] = true
			}
		}
	}
	most := int64(0)
	for j := range t.done {
		if waited[j] {
			key, times = append(key, byte(t.at.Machine[j])), append(times, t.end[j])
		}
		if t.done[j] {
			most = max(most, t.end[j])
		}
	}
	times = append(times, most)
	for _, other := range t.known[string(key)] {
		later := false
		for i := range other {
			later = later || other[i] > times[i]
		}
		if !later {
			return true
		}
	}
	if t.count < mostKnown {
		t.count++
		t.known[string(key)] = append(t.known[string(key)], times)
	}
	return false
}
