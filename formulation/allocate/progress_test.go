package allocate

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// Reports enclose the optimum in bytes, whatever the unit of the method.
func TestProgress(t *testing.T) {
	solver, missing := highs.New()
	told := map[string]int{}
	forRandom(t, 30, func(t *testing.T, p *Problem) {
		var reports []milp.Progress
		tell := func(r milp.Progress) { reports = append(reports, r) }
		check := func(method string, best int64) {
			t.Helper()
			for i, r := range reports {
				if r.Bound > float64(best)+1e-6 || r.Objective < float64(best)-1e-6 {
					t.Errorf("%s: report %d does not enclose the optimum %d: %+v", method, i, best, r)
				}
			}
			told[method] += len(reports)
			reports = nil
		}
		sol, err := Minimize(context.Background(), p, Options{Progress: tell})
		if err != nil {
			t.Fatal(err)
		}
		if sol.Status != milp.Optimal {
			return // fixed offsets that clash
		}
		check("search", peak(sol))
		capacity := max(1, peak(sol)/2)
		spill, err := Spill(context.Background(), p, capacity,
			SpillOptions{Options: solve.Options[SpillStart]{Progress: tell}})
		if err != nil {
			t.Fatal(err)
		}
		check("spill", spill.Cost)
		if missing != nil {
			return
		}
		if _, err := spillILP(context.Background(), p, capacity,
			SpillOptions{Options: solve.Options[SpillStart]{Progress: tell, Solver: solver}}); err != nil {
			t.Fatal(err)
		}
		check("spill ilp", spill.Cost)
	})
	for _, method := range []string{"search", "spill", "spill ilp"} {
		if told[method] == 0 && (missing == nil || method == "search" || method == "spill") {
			t.Errorf("%s reports nothing", method)
		}
	}
}
