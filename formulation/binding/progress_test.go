package binding

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Reports enclose the optimum, only get better, and end at the answer; with tables that are cut as well.
func TestProgress(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 50 {
		p := random(r)
		best, err := Search(context.Background(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		start := make([]int, len(p.Nodes))
		for _, table := range []int64{0, 4} {
			var reports []milp.Progress
			got, err := Search(context.Background(), p, Options{WorkLimit: table, Start: start,
				Progress: func(r milp.Progress) { reports = append(reports, r) }})
			if err != nil {
				t.Fatal(err)
			}
			if len(reports) == 0 || reports[len(reports)-1].Objective != got.Objective {
				t.Errorf("the reports %+v do not end at %g", reports, got.Objective)
			}
			for i, r := range reports {
				if r.Bound > best.Objective*(1+1e-9) || r.Objective < best.Objective*(1-1e-9) {
					t.Errorf("report %d does not enclose the optimum %g: %+v", i, best.Objective, r)
				}
				if i > 0 && (r.Objective > reports[i-1].Objective || r.Bound < reports[i-1].Bound*(1-1e-9)) {
					t.Errorf("report %d is worse than the one before: %+v, %+v", i, reports[i-1], r)
				}
			}
		}
	}
}
