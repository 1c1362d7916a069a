package ordering

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// Reports enclose the optimum, in the unit of the result's cost.
func TestProgress(t *testing.T) {
	solver, missing := highs.New()
	for _, objective := range []Objective{Traffic, Peak} {
		p := chainOf([]int{8, 4, 2, 1}, 0, 0)
		p.StoreCostPerByte, p.LoadCostPerByte = 0.5, 0.25
		var reports []milp.Progress
		tell := func(r milp.Progress) { reports = append(reports, r) }
		check := func(method string, best float64) {
			t.Helper()
			if len(reports) == 0 {
				t.Errorf("%s, %s: nothing is reported", method, objective)
			}
			for i, r := range reports {
				if r.Bound > best+1e-9 || r.Objective < best-1e-9 {
					t.Errorf("%s, %s: report %d does not enclose the optimum %g: %+v", method, objective, i, best, r)
				}
				if i > 0 && (r.Objective > reports[i-1].Objective || r.Bound < reports[i-1].Bound-1e-9) {
					t.Errorf("%s, %s: report %d is worse than the one before: %+v, %+v", method, objective, i, reports[i-1], r)
				}
			}
			reports = nil
		}
		res, err := Search(context.Background(), p, objective, Options{Progress: tell})
		if err != nil || res.Status != milp.Optimal || res.Cost <= 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		if last := reports[len(reports)-1]; last.Objective != res.Cost || last.Bound != res.Cost {
			t.Errorf("%s: the last report is %+v, the answer %g", objective, last, res.Cost)
		}
		check("search", res.Cost)
		if missing != nil {
			continue
		}
		ilp, err := CountingILP(context.Background(), p, objective,
			Options{Progress: tell, Solver: solver})
		if err != nil || ilp.Cost != res.Cost {
			t.Fatalf("%+v, %v, want %g", ilp, err, res.Cost)
		}
		check("counting-ilp", res.Cost)
	}
}
