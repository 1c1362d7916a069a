package heap

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder mixes pushes and pops and keeps a sorted list beside the heap.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := Of(cmp.Less[int])
	var want []int
	for step := range 20_000 {
		if len(want) == 0 || r.IntN(5) < 3 && len(want) < 200 {
			x := r.IntN(50)
			h.Push(x)
			at, _ := slices.BinarySearch(want, x)
			want = slices.Insert(want, at, x)
		} else {
			first := h.First()
			if got := h.Pop(); got != first || got != want[0] {
				t.Fatalf("step %d: first %d, then %d, want %d", step, first, got, want[0])
			}
			want = want[1:]
		}
		if h.Len() != len(want) {
			t.Fatalf("step %d: %d values, want %d", step, h.Len(), len(want))
		}
	}
}
