package scheduler_test

import (
	"sync"
	"testing"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A result may be simulated on several machines at the same time.
func TestLatencyOnAtOnce(t *testing.T) {
	chip := load(t, "stcp920")
	r := ran(t, open(t, "toy-fig3"), chip, 4, recipes.Greedy, scheduler.Options{Chunk: 1})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if s, err := r.LatencyOn(t.Context(), chip); err != nil || s != r.LatencySeconds() {
				t.Errorf("%g s, %v, expected %g", s, err, r.LatencySeconds())
			}
		})
	}
	all.Wait()
}
