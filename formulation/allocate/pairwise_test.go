package allocate

import (
	"context"
)

// pairwise is a depth-first search over pairs of buffers. Each interval of
// differences of two offsets at which the two overlap is passed on one side or
// the other, and a choice of sides has a lowest placement, found by pushing
// buffers up until all choices hold. A node takes that placement for the choices
// made so far; if it is right, all is done; else it branches over the two sides of
// an interval that is hurt.
//
// It needs no canonical form, so tests compare the canonical search with it. It has no bound of its own but the
// capacity: it is for small problems.
type pairwise struct {
	p        *Problem
	pairs    []hurdle
	low      []int64
	above    [][]arc // of each buffer: choices that push others above it
	queue    []int
	queued   []bool
	ctx      context.Context
	capacity int64
	nodes    int64
	limit    int64
}

// hurdle says that offset of j minus offset of i is not within bad.
type hurdle struct {
	i, j int
	bad  Interval
}

// arc says that a buffer lies at least by away from the one that has the arc.
type arc struct {
	to int
	by int64
}

func newPairwise(p *Problem) *pairwise {
	n := len(p.Buffers)
	w := &pairwise{p: p, low: make([]int64, n), above: make([][]arc, n), queued: make([]bool, n)}
	for i := range n {
		for j := i + 1; j < n; j++ {
			if conflict(&p.Buffers[i], &p.Buffers[j]) {
				w.pairs = append(w.pairs, hurdle{i, j, Interval{1 - p.Buffers[j].Size, p.Buffers[i].Size}})
			}
		}
	}
	return w
}

func (w *pairwise) offsets() []int64 { return append([]int64(nil), w.low...) }

func (w *pairwise) fit(ctx context.Context, _ preorder, capacity, limit int64) (verdict, int64) {
	w.ctx, w.capacity, w.nodes, w.limit = ctx, capacity, 0, limit
	for i := range w.p.Buffers {
		b := &w.p.Buffers[i]
		w.low[i] = 0
		if b.Offset != nil {
			w.low[i] = *b.Offset
		}
		w.above[i] = w.above[i][:0]
		if w.low[i]+b.Size > capacity {
			return notThere, 0
		}
	}
	return w.branch(), w.nodes
}

func (w *pairwise) branch() verdict {
	if v := w.tick(); v != found {
		return v
	}
	// The interval whose nearer side is the farthest leaves the least choice.
	worst, push := -1, int64(-1)
	for k := range w.pairs {
		h := &w.pairs[k]
		d := w.low[h.j] - w.low[h.i]
		if !h.bad.Contains(d) {
			continue
		}
		if least := min(h.bad.Upper-d, d-h.bad.Lower+1); least > push {
			worst, push = k, least
		}
	}
	if worst < 0 {
		return found
	}
	h := w.pairs[worst]
	d := w.low[h.j] - w.low[h.i]
	sides := [2]struct {
		from int
		arc
	}{{h.i, arc{h.j, h.bad.Upper}}, {h.j, arc{h.i, 1 - h.bad.Lower}}}
	if d-h.bad.Lower+1 < h.bad.Upper-d {
		sides[0], sides[1] = sides[1], sides[0]
	}
	before := append([]int64(nil), w.low...)
	for _, s := range sides {
		w.above[s.from] = append(w.above[s.from], s.arc)
		v := w.propagate(s.from)
		if v == found {
			v = w.branch()
		}
		if v != notThere {
			return v
		}
		w.above[s.from] = w.above[s.from][:len(w.above[s.from])-1]
		copy(w.low, before)
	}
	return notThere
}

// propagate pushes buffers up from one on whose arcs are new.
func (w *pairwise) propagate(from int) verdict {
	w.queue = append(w.queue[:0], from)
	v := found
	for k := 0; k < len(w.queue) && v == found; k++ {
		i := w.queue[k]
		w.queued[i] = false
		for _, a := range w.above[i] {
			b := &w.p.Buffers[a.to]
			low := b.Up(max(0, w.low[i]+a.by))
			if low <= w.low[a.to] {
				continue
			}
			if low+b.Size > w.capacity || b.Offset != nil {
				v = notThere
				break
			}
			// A cycle that pushes itself up ends at the capacity.
			if v = w.tick(); v != found {
				break
			}
			w.low[a.to] = low
			if !w.queued[a.to] {
				w.queued[a.to] = true
				w.queue = append(w.queue, a.to)
			}
		}
	}
	clear(w.queued)
	return v
}

// tick counts a node.
func (w *pairwise) tick() verdict {
	if w.nodes++; w.nodes > w.limit {
		return exhausted
	}
	if w.nodes&0xff == 0 && w.ctx.Err() != nil {
		return cancelled
	}
	return found
}
