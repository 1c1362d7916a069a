//go:build cgo

package split_test

import (
	"context"
	"math"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/split"
)

// Both methods on what networks really pose.
func TestILPOnNetworks(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.network+" on "+c.hardware, func(t *testing.T) {
			_, n := pose(t, c)
			other, err := split.Search(context.Background(), n.Problem,
				split.Options{Start: n.Given})
			if err != nil || other.Status != milp.Optimal {
				t.Fatalf("search: got %+v, %v", other, err)
			}
			got, err := split.ILP(context.Background(), n.Problem,
				split.Options{Start: n.Given, Solver: solver})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != milp.Optimal || math.Abs(got.Objective-other.Objective) > 1e-9 {
				t.Errorf("ilp gives %+v, search %v", got, other.Objective)
			}
			if err := n.Problem.CheckChoice(got.Choice); err != nil {
				t.Error(err)
			}
		})
	}
}
