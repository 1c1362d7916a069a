package schedule

import (
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// The sweep finds an overlap exactly where a comparison of all pairs does.
func TestFirstOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 5000 {
		boxes := make([]model.Region, r.IntN(6))
		rank := r.IntN(3)
		for i := range boxes {
			boxes[i] = make(model.Region, rank)
			for d := range rank {
				lo := r.Int64N(8)
				boxes[i][d] = model.Interval{Lo: lo, Hi: lo + r.Int64N(3)}
			}
		}
		want := false
		for i := range boxes {
			for j := range i {
				want = want || boxes[i].Overlap(boxes[j]) > 0
			}
		}
		j, q, n := firstOverlap(boxes, r.IntN(rank+1)-1)
		if got := n > 0; got != want || got && (j >= q || boxes[j].Overlap(boxes[q]) != n) {
			t.Fatalf("%v: boxes %d and %d share %d, want %v", boxes, j, q, n, want)
		}
		if want {
			found++
		}
	}
	if found < 1000 || found > 4000 {
		t.Errorf("%d of 5000 have an overlap", found)
	}
}
