//go:build cgo

package joint

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// The program and the search are independent of each other, and agree.
func TestILPAgainstSearch(t *testing.T) {
	s, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for seed := uint64(0); seed < 300 && compared < 25; seed++ {
		p := random(rand.New(rand.NewPCG(seed, 7)), 4+int(seed%4))
		want, err := Search(context.Background(), p, SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want.MoveSeconds == 0 && want.Branches <= 1 && seed%40 > 0 {
			continue // easy, but for a few
		}
		compared++
		for _, opts := range []Options{{}, {Start: Start{Choice: make([]int, len(p.Labels.Nodes))}}} {
			opts.Solver = s
			got, err := ILP(context.Background(), p, opts)
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, opts, err)
			}
			// The solver's own tolerance is 1e-6 of a unit.
			if got.Status != milp.Optimal || got.Objective-want.Objective > 1e-11 || want.Objective-got.Objective > 1e-11 {
				t.Errorf("seed %d, %+v: %v at %g, the search %g", seed, opts, got.Status, got.Objective, want.Objective)
			}
			verify(t, "ilp", p, got)
		}
	}
	if compared < 25 {
		t.Errorf("%d problems compared, expected 25", compared)
	}
}
