package allocate

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/formulation/milp"
)

// SpillSweepILP is [SpillSweep] by integer programming, (10) to (12). MaxStates and
// NoDominance mean nothing to it. Limits are those of the settings.
func SpillSweepILP(ctx context.Context, p *Problem, capacity int64, solver milp.Solver, opts SweepOptions, settings milp.Options) (*SpillSolution, error) {
	w, err := newSweep(p, capacity, opts)
	if err != nil {
		return nil, err
	}
	m := milp.New("spill over time", milp.Minimize)
	x := make([]milp.Var, len(p.Buffers))
	for i := range p.Buffers {
		x[i] = m.Binary("x "+p.Buffers[i].ID, float64(p.Buffers[i].Moved())) // (10)
		switch {
		case w.stays(i) && w.forced[i]:
			return &SpillSolution{Status: milp.Infeasible}, nil
		case w.stays(i):
			m.Fix(x[i], 0)
		case w.forced[i]:
			m.Fix(x[i], 1)
		}
	}
	room := func(name string, live []Live, tiers []milp.Term) {
		terms, sum := tiers, int64(0)
		for _, l := range live {
			sum += l.Window.Len()
			terms = append(terms, x[l.Buffer].Times(-float64(l.Window.Len())))
		}
		m.AddLE(name, terms, float64(capacity-sum)) // (11)
	}
	for k, s := range w.sections {
		if w.over[k] > 0 {
			room(fmt.Sprint("section ", s.Time), s.Live, nil)
		}
		for n, d := range w.demands[k] {
			var z []milp.Var
			var free []milp.Term
			for j, t := range d.Tiers {
				v := m.Binary(fmt.Sprintf("z[%d,%d,%d]", k, n, j), float64(t.Cost)) // (10)
				z, free = append(z, v), append(free, v.Times(float64(t.Free)))
			}
			m.AddEQ(fmt.Sprintf("one tier[%d,%d]", k, n), milp.Sum(z...), 1) // (12)
			room(fmt.Sprintf("demand[%d,%d]", k, n), s.Live, free)
		}
	}
	if w.always >= math.MaxInt64/2 {
		return &SpillSolution{Status: milp.Infeasible}, nil
	}
	m.AddOffset(float64(w.always))
	sol, err := solver.Solve(ctx, m, settings)
	if err != nil {
		return nil, err
	}
	out := &SpillSolution{Status: sol.Status}
	if !math.IsInf(sol.Bound, 0) {
		out.Bound = max(0, int64(math.Ceil(sol.Bound-1e-6*max(1, math.Abs(sol.Bound)))))
	}
	if !sol.Status.HasValues() {
		return out, nil
	}
	out.Spilled = make([]bool, len(x))
	for i := range x {
		out.Spilled[i] = sol.Int(x[i]) == 1
	}
	cost, ok := SweepCost(p, capacity, opts.Demands, out.Spilled)
	if !ok {
		return nil, fmt.Errorf("memory: the solver's choice leaves too much")
	}
	out.Cost, out.Bound = cost, min(out.Bound, cost)
	if sol.Status == milp.Optimal {
		out.Bound = cost
	}
	return out, nil
}
