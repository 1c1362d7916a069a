package rcpsp

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Reports enclose the optimum, only get better, and end at the answer.
func TestProgress(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	s := solver(t)
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
		want := bruteForce(p)
		r, err := ILP(context.Background(), p, Options{Progress: tell, Solver: s})
		if err != nil || r.Makespan != want {
			t.Fatalf("ILP: %+v, %v, want %d", r, err, want)
		}
		check("ilp", want)
	}
	if told == 0 {
		t.Error("nobody reports anything")
	}
}
