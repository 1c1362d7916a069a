package unrelated

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
)

// maxRows is the number of constraints that the integer program of a part has at most.
const maxRows = 20_000

// ilp solves a part by the integer program of docs/formulations.md.
func (s *solver) ilp(ctx context.Context, b *part) (*Plan, int64, error) {
	best, least := b.list(), b.bound()
	found := b.makespan(best)
	if found == least {
		return best, least, nil
	}
	n, machines := b.to-b.from, b.p.Machines
	if rows := n * n * machines; rows > maxRows {
		return nil, 0, strict.Error(b.p.Name, "method ilp", fmt.Sprintf("about %d constraints of one block", rows),
			fmt.Sprintf("at most %d: use method search", maxRows))
	}
	unit := float64(found) // no start is later than 1
	m := milp.New(b.p.Name)
	end := m.Continuous("T", float64(least)/unit, 1, 1)
	x, start := make([][]milp.Var, n), make([]milp.Var, n)
	lasts := make([][]milp.Term, n) // the time of each job
	leads := make([][]bool, n)      // to whom
	for j := range n {
		leads[j] = make([]bool, n)
	}
	for j := range n {
		start[j] = m.Continuous(fmt.Sprintf("s[%d]", j), 0, 1, 0)
		for k := range machines {
			x[j] = append(x[j], m.Binary(fmt.Sprintf("x[%d,%d]", j, k), 0))
			if c := b.picos(b.from+j, k); c > 0 && c <= found {
				lasts[j] = append(lasts[j], x[j][k].Times(float64(c)/unit))
			} else {
				m.Fix(x[j][k], 0)
			}
		}
		m.AddEQ(fmt.Sprintf("(1) %d", j), milp.Sum(x[j]...), 1)
		m.AddLE(fmt.Sprintf("(2) %d", j), append(slices.Clone(lasts[j]), start[j].Times(1), end.Times(-1)), 0)
		for _, a := range b.p.Jobs[b.from+j].After {
			d := min(1, float64(a.Picos)/unit) // from 1 on none fits
			i := a.Job - b.from
			if i < 0 {
				if b.entry >= 0 {
					m.AddGE(fmt.Sprintf("(3) entry,%d", j), []milp.Term{start[j].Times(1), x[j][b.entry].Times(d)}, d)
				}
				continue
			}
			for h := range n {
				leads[h][j] = leads[h][j] || h == i || leads[h][i]
			}
			for k := range machines {
				row := []milp.Term{start[i].Times(1), start[j].Times(-1)}
				if d > 0 {
					row = append(row, x[i][k].Times(d), x[j][k].Times(-d))
				}
				m.AddLE(fmt.Sprintf("(3) %d,%d,%d", i, j, k), append(row, lasts[i]...), 0)
			}
		}
	}
	for j := range n {
		for i := range j {
			if leads[i][j] {
				continue
			}
			y := m.Binary(fmt.Sprintf("y[%d,%d]", i, j), 0) // i before j
			for k := range machines {
				ci, cj := float64(b.picos(b.from+i, k))/unit, float64(b.picos(b.from+j, k))/unit
				if ci == 0 || cj == 0 || ci > 1 || cj > 1 {
					continue
				}
				m.AddLE(fmt.Sprintf("(4) %d,%d,%d", i, j, k), []milp.Term{start[i].Times(1), start[j].Times(-1), y.Times(1 + ci),
					x[i][k].Times(1 + ci), x[j][k].Times(1 + ci)}, 3+2*ci)
				m.AddLE(fmt.Sprintf("(4) %d,%d,%d", j, i, k), []milp.Term{start[j].Times(1), start[i].Times(-1), y.Times(-1 - cj),
					x[i][k].Times(1 + cj), x[j][k].Times(1 + cj)}, 2+cj)
			}
		}
	}
	sol, err := s.opt.Program(ctx, m, s.opt.MILP(unit*1e-12), func(sol *milp.Solution) (solve.Verdict, error) {
		made := &Plan{make([]int, n), make([]int64, n)}
		for j := range n {
			made.Start[j] = int64(sol.Values[start[j]] * unit)
			for k := range machines {
				if sol.Int(x[j][k]) == 1 {
					made.Machine[j] = k
				}
			}
		}
		b.early(made)
		t := b.makespan(made)
		if t < found {
			best, found = made, t
		}
		return solve.Verdict{Cost: float64(t) / unit}, nil
	})
	if err != nil && ctx.Err() == nil {
		return nil, 0, err
	}
	if err != nil {
		return best, least, nil
	}
	if sol.Stop != milp.Complete {
		s.r.Stop = sol.Stop
	}
	if !math.IsInf(sol.Bound, 0) && !math.IsNaN(sol.Bound) {
		least = max(least, whole(sol.Bound*unit*(1-1e-6)))
	}
	if sol.Status == milp.Optimal { // to the solver's gap, of a millionth at most
		least = found
	}
	return best, least, nil
}

// early starts the jobs of a plan in its order, each as early as those before it allow.
func (b *part) early(x *Plan) {
	order := x.Order()
	end, free := make([]int64, len(order)), make([]int64, b.p.Machines)
	done := make([]bool, len(order))
	for len(order) > 0 {
		at := slices.IndexFunc(order, func(j int) bool { return b.ready(j, done) }) // starts are rounded
		j := order[at]
		order = slices.Delete(order, at, at+1)
		m := x.Machine[j]
		t := free[m]
		for _, a := range b.p.Jobs[b.from+j].After {
			t = max(t, b.arrives(a, m, x.Machine, end))
		}
		x.Start[j], end[j], done[j] = t, t+b.picos(b.from+j, m), true
		free[m] = end[j]
	}
}
