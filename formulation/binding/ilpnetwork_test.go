//go:build cgo

package binding_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

func highsSolver(t *testing.T) milp.Solver {
	t.Helper()
	s, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Both methods on what networks really pose.
func TestILPOnNetworks(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name(), func(t *testing.T) {
			s, n, m := pose(t, c)
			other, err := binding.Search(context.Background(), n.Problem,
				binding.Options{Start: n.Given})
			if err != nil || other.Status != milp.Optimal {
				t.Fatalf("search: got %+v, %v", other, err)
			}
			began := time.Now()
			got, err := binding.ILP(context.Background(), n.Problem,
				binding.Options{Start: n.Given, Solver: highsSolver(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("ilp takes %v", time.Since(began))
			if got.Status != milp.Optimal || math.Abs(got.Objective-other.Objective) > 1e-9 {
				t.Errorf("ilp gives %+v, search %v", got, other.Objective)
			}
			checkChoice(t, c, s, n, m, slices.Clone(got.Choice))
		})
	}
}
