package rcpsp

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// Reports enclose the optimum, only get better, and end at the answer.
func TestProgress(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	solver, missing := highs.New()
	told := 0
	for range 20 {
		p := random(rng, 8, 2, 1)
		var reports []milp.Progress
		tell := func(r milp.Progress) { reports = append(reports, r) }
		check := func(method string, best int64) {
			t.Helper()
			for i, r := range reports {
				if r.Bound > float64(best) || r.Objective < float64(best) {
					t.Errorf("%s: report %d does not enclose the optimum %d: %+v", method, i, best, r)
				}
				if i > 0 && (r.Bound < reports[i-1].Bound || r.Objective > reports[i-1].Objective) {
					t.Errorf("%s: report %d is worse than the one before: %+v, %+v", method, i, reports[i-1], r)
				}
			}
			told += len(reports)
			reports = nil
		}
		r, err := Search(context.Background(), p, SearchOptions{Options: Options{Progress: tell}})
		if err != nil {
			t.Fatal(err)
		}
		check("search", r.Makespan)
		if missing != nil {
			continue
		}
		s, err := ILP(context.Background(), p, ILPOptions{Options: Options{Progress: tell, Solver: solver}})
		if err != nil || s.Makespan != r.Makespan {
			t.Fatalf("ILP: %+v, %v, want %d", s, err, r.Makespan)
		}
		check("ilp", r.Makespan)
	}
	if told == 0 {
		t.Error("nobody reports anything")
	}
}
