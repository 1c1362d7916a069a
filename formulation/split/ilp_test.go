//go:build cgo

package split

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

func TestILPAgainstBruteForce(t *testing.T) {
	s, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(6, 2))
	for k := range 150 {
		p := random(r)
		want := bruteForce(p)
		alone := make([]int, len(p.Reads))
		for a := range alone {
			alone[a] = a
		}
		for _, opts := range []Options{{}, {Start: alone}} {
			opts.Solver = s
			got, err := integerProgram(context.Background(), p, opts)
			if err != nil {
				t.Fatalf("problem %d, %+v: %v", k, opts, err)
			}
			if err := p.CheckChoice(got.Choice); err != nil {
				t.Fatalf("problem %d, %+v: %v", k, opts, err)
			}
			if got.Status != milp.Optimal || !same(got.Objective, want) || got.Bound > want+2e-6*unit ||
				got.Bound < want-2e-6*unit {
				t.Fatalf("problem %d, %+v: got %+v, brute force finds %g", k, opts, got, want)
			}
		}
	}
}
