package allocate

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// mostILPNamed is the number of buffers that a demand of the integer program may depend on: it has a
// variable for each of their sets.
const mostILPNamed = 8

// SpillSweepILP is SpillSweep by integer programming, (10) to (13). MaxStates means
// nothing to it. It needs the options' Solver.
func SpillSweepILP(ctx context.Context, p *Problem, capacity int64, opts SweepOptions) (*SpillResult, error) {
	began := time.Now()
	w, err := newSweep(p, capacity, opts)
	if err != nil {
		return nil, err
	}
	for i, d := range opts.Demands {
		if d.Grown != nil && len(d.Of) > mostILPNamed {
			return nil,
				fmt.Errorf("allocate: demand #%d: found %d buffers that it depends on, expected at most %d for the integer program",
					i, len(d.Of), mostILPNamed)
		}
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	m := milp.New("spill over time")
	x := make([]milp.Var, len(p.Buffers))
	for i := range p.Buffers {
		x[i] = m.Binary("x "+p.Buffers[i].ID, float64(p.Buffers[i].Moved())) // (10)
		switch {
		case w.stays(i) && w.forced[i]:
			return &SpillResult{Method: "sweep-ilp", Status: milp.Infeasible}, nil
		case w.stays(i):
			m.Fix(x[i], 0)
		case w.forced[i]:
			m.Fix(x[i], 1)
		}
	}
	room := func(name string, live []live, tiers []milp.Term) {
		terms, sum := tiers, int64(0)
		for _, l := range live {
			sum += l.Size
			terms = append(terms, x[l.Buffer].Times(-float64(l.Size)))
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
			sets, gone := 1, make([][]milp.Term, len(d.Of))
			if d.Grown != nil {
				sets <<= len(d.Of)
			}
			for set := range sets {
				for j, t := range d.tiers(uint64(set)) {
					v := m.Binary(fmt.Sprintf("z[%d,%d,%d,%d]", k, n, set, j), float64(t.Cost)) // (10)
					z, free = append(z, v), append(free, v.Times(float64(t.Free)))
					for b := range gone {
						if set>>b&1 == 1 {
							gone[b] = append(gone[b], v.Times(1))
						}
					}
				}
			}
			m.AddEQ(fmt.Sprintf("one tier[%d,%d]", k, n), milp.Sum(z...), 1) // (12)
			for b, i := range d.Of {
				if sets > 1 {
					m.AddEQ(fmt.Sprintf("spilled[%d,%d,%d]", k, n, i), append(gone[b], x[i].Times(-1)), 0) // (13)
				}
			}
			room(fmt.Sprintf("demand[%d,%d]", k, n), s.Live, free)
		}
	}
	if w.always >= math.MaxInt64/2 {
		return &SpillResult{Method: "sweep-ilp", Status: milp.Infeasible}, nil
	}
	m.Continuous("always", 1, 1, float64(w.always))
	sol, err := opts.Solver.Solve(ctx, m, opts.MILP(1))
	if err != nil {
		return nil, err
	}
	var spilled []bool
	switch {
	case sol.Status == milp.Infeasible:
		return &SpillResult{Method: "sweep-ilp", Status: milp.Infeasible, Seconds: time.Since(began).Seconds()}, nil
	case sol.Status.HasValues():
		spilled = make([]bool, len(x))
		for i := range x {
			spilled[i] = sol.Int(x[i]) == 1
		}
	case sol.Status != milp.Limit:
		return nil, fmt.Errorf("allocate: the solver ends with %v", sol.Status)
	}
	bound := wholeBytes(sol.Bound)
	if sol.Status == milp.Optimal {
		bound = math.MaxInt64 // the cost: it is the least, within the solver's tolerance
	}
	if start := opts.Start.Spilled; start != nil && sol.Status != milp.Optimal {
		own, _ := SweepCost(p, capacity, opts.Demands, start)
		if found, ok := SweepCost(p, capacity, opts.Demands, spilled); !ok || own < found {
			spilled = start
		}
	}
	r, err := w.answer(spilled, bound, sol.Stop)
	if err == nil {
		r.Method, r.Seconds = "sweep-ilp", time.Since(began).Seconds()
	}
	return r, err
}
