package graphturbo

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Spans and addresses against looking at everything.
func TestSpansAndPack(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		n := 1 + r.IntN(20)
		s := newSpans[*buffer](n)
		var bufs []*buffer
		for range r.IntN(25) {
			first := r.IntN(n)
			b := &buffer{start: first, end: first + r.IntN(n-first), size: int64(1 + r.IntN(9))}
			bufs = append(bufs, b)
			s.add(b.start, b.end, b)
		}
		first := r.IntN(n)
		last := first + r.IntN(n-first)
		var want []*buffer
		for _, b := range bufs {
			if b.start <= last && b.end >= first {
				want = append(want, b)
			}
		}
		got := s.between(first, last, nil)
		if len(got) != len(want) || slices.ContainsFunc(want, func(b *buffer) bool { return !slices.Contains(got, b) }) {
			t.Fatalf("%d of %d buffers from %d to %d", len(got), len(want), first, last)
		}
		count := func() (n int) {
			s.at(first, func(b *buffer) bool { n++; return b.size > 4 })
			return n
		}
		all, large := 0, 0
		for _, b := range bufs {
			if b.start <= first && first <= b.end {
				if all++; b.size > 4 {
					large++
				}
			}
		}
		if a, b := count(), count(); a != all || b != large {
			t.Fatalf("at %d: %d, then %d, want %d, %d", first, a, b, all, large)
		}
		failed := pack(bufs, 30, nil)
		for i, b := range bufs {
			free := func(at int64) bool {
				return at+b.size <= 30 && !slices.ContainsFunc(bufs[:i], func(o *buffer) bool {
					return o.start <= b.end && b.start <= o.end && o.address < at+b.size && at < o.address+o.size
				})
			}
			at := int64(0)
			for at <= 30 && !free(at) {
				at++
			}
			if b == failed {
				if at <= 30 {
					t.Fatalf("buffer %d fails, and fits at %d", i, at)
				}
				break
			}
			if b.address != at {
				t.Fatalf("buffer %d at %d, want %d", i, b.address, at)
			}
		}
	}
}
