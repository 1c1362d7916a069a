package interp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/scheduler"
)

// No schedule of a random network is faster than the bound on all of them.
func TestBoundOfRandomNetworks(t *testing.T) {
	recipes := scheduler.All()
	closest := 0.0
	for i, done := *seed, 0; done < 2**programs; i++ {
		r := rand.New(rand.NewPCG(i, 3))
		spec, recipe := machine(r), recipes[int(i)%len(recipes)]
		spec.LaunchSeconds = pick(r, 0, 1e-7, 5e-6) // a dear one hides the rest
		batch := pick(r, int64(1), 2, 3, 8)
		made, err := scheduler.Run(context.Background(), net(i, false), spec, batch, recipe, scheduler.Options{InPlace: r.IntN(2) == 0})
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		done++
		b, err := bound.Cold(context.Background(), net(i, false), made.Spec, batch)
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		for _, term := range b.Terms {
			if term.Seconds > made.LatencySeconds() {
				t.Errorf("seed %d, %s, batch %d: %+v, simulated in %g s", i, recipe.Name, batch, term, made.LatencySeconds())
			}
		}
		closest = max(closest, b.Seconds/made.LatencySeconds())
	}
	if closest < 0.3 {
		t.Errorf("the bound is at most %g of a simulated time, expected some to be close", closest)
	}
	t.Logf("the closest is %g of the simulated time", closest)
}
