package solve_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/systems/kinds/unrelated"
)

func init() { posedBySystems = append(posedBySystems, poseJobs) }

func poseJobs(r *rand.Rand, _ float64, bytes int64, odd func() float64,
	solver milp.Solver) posed {
	jobs := &unrelated.Problem{Name: "jobs", Machines: 2}
	for j := range 5 {
		x := unrelated.Job{Name: fmt.Sprint(j)}
		for range 2 {
			x.Picos = append(x.Picos, (1+r.Int64N(9))*bytes*int64(odd()))
		}
		if j > 1 && r.IntN(2) == 0 {
			x.After = []unrelated.Arc{{Job: r.IntN(j), Picos: r.Int64N(9) * bytes}}
		}
		jobs.Jobs = append(jobs.Jobs, x)
	}
	exact := []solve.Method{{Name: "search", Exact: true}, {Name: "ilp", Exact: true, NeedsSolver: true}}
	return posed{"balance", float64(shortest(jobs)) * 1e-12, false, exact,
		func(ctx context.Context, name string) (solve.Outcome, error) {
			return outcome(unrelated.Solve(ctx, jobs, name, with[*unrelated.Plan](settings{}, nil, solver)))
		}}
}

// shortest is the least makespan of all orders and machines.
func shortest(p *unrelated.Problem) int64 {
	n := len(p.Jobs)
	best := int64(math.MaxInt64)
	end, on, free := make([]int64, n), make([]int, n), make([]int64, p.Machines)
	var visit func(left int, most int64)
	visit = func(left int, most int64) {
		if left == 0 {
			best = min(best, most)
		}
	jobs:
		for j := range n {
			for _, a := range p.Jobs[j].After {
				if end[a.Job] == 0 {
					continue jobs
				}
			}
			for m := 0; m < p.Machines && end[j] == 0; m++ {
				was, at := free[m], free[m]
				for _, a := range p.Jobs[j].After {
					if at = max(at, end[a.Job]); on[a.Job] != m {
						at = max(at, end[a.Job]+a.Picos)
					}
				}
				on[j], end[j] = m, at+p.Jobs[j].Picos[m]
				free[m] = end[j]
				visit(left-1, max(most, end[j]))
				end[j], free[m] = 0, was
			}
		}
	}
	visit(n, 0)
	return best
}
