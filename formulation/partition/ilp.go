package partition

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/strict"
)

// maxCells is the number of coefficients that the integer program has at most.
const maxCells = 4_000_000

// negligible is the share of the memory below which a node is left out of (e): far below what a
// division may pass it by, and less than HiGHS takes as a coefficient.
const negligible = 1e-9

// ilp solves the problem as an integer linear program over the places of a row of
// K + L devices, built from the nodes as the file has them:
//
//	x_vp   node v is at place p of the row
//	y_vp   node v is at place p or before: the sum of x_vq over q <= p
//	b_p    the device at place p is a CPU
//	q_tp   the device at place p pays for tail t
//	z_vp   backward node v is at p, or a path leads from one at p to v
//	minimise    C
//	subject to  sum over p of x_vp = 1                                   each v       (a)
//	            y_up >= y_vp                        arc u to v of rule (7), each p    (b)
//	            sum over p of b_p <= L, of 1 - b_p <= K                               (c)
//	            x_vp <= b_p                         v not supported, each p           (d)
//	            sum of s_v x_vp <= M + (S - M) b_p                    each p          (e)
//	            x_up = x_vp                         u, v of one colour, each p        (f)
//	            q_tp >= x_tp - x_hp, x_hp - x_tp    edge t to h, each p               (g)
//	            z_vp >= x_vp, z_wp >= z_vp, x_wp - x_vp + z_vp <= 1 turned into
//	            z_vp + x_wp - x_vp <= 1 for backward edge v to w, each p              (h)
//	            sum a_v x_vp + sum w_t q_tp <= C + B b_p              each p          (i)
//	            sum c_v x_vp <= C + B (1 - b_p)                       each p          (j)
//
// where S is the sum of all sizes and B of all times and costs.
func (s *solver) ilp(ctx context.Context) error {
	p := s.p
	places := p.Accelerators + p.CPUs
	if cells := (12*len(p.Edges) + 10*len(p.Nodes)) * places; cells > maxCells {
		return strict.Error(p.Name, "method ilp", fmt.Sprintf("about %d coefficients", cells),
			fmt.Sprintf("at most %d: use method exact", maxCells))
	}
	m := milp.New(p.Name, milp.Minimize)
	C := m.Continuous("C", s.bound*(1-near), math.Inf(1), 1)
	total, big := 0.0, 0.0
	for i, v := range p.Nodes {
		total += v.SizeBytes
		big += v.AcceleratorLatency + v.CPULatency + p.cost[i]
	}
	unit := max(1, total) // of bytes, so that coefficients are near 1
	n := len(p.Nodes)
	x := make([][]milp.Var, n)
	for i := range x {
		for k := range places {
			x[i] = append(x[i], m.Binary(fmt.Sprintf("x[%d,%d]", p.Nodes[i].ID, k), 0))
		}
		m.AddEQ(fmt.Sprintf("(a) %d", i), milp.Sum(x[i]...), 1)
	}
	var isCPU []milp.Var
	for k := range places {
		isCPU = append(isCPU, m.Binary(fmt.Sprintf("b[%d]", k), 0))
	}
	m.AddLE("(c) CPUs", milp.Sum(isCPU...), float64(p.CPUs))
	m.AddGE("(c) accelerators", milp.Sum(isCPU...), float64(p.CPUs))
	colour := map[int]int{}
	for i, v := range p.Nodes {
		for k := range places {
			if !v.Supported {
				m.AddLE(fmt.Sprintf("(d) %d,%d", i, k), []milp.Term{x[i][k].Times(1), isCPU[k].Times(-1)}, 0)
			}
			if j, ok := colour[v.Color]; ok && v.Color != NoColor {
				m.AddEQ(fmt.Sprintf("(f) %d,%d", i, k), []milp.Term{x[i][k].Times(1), x[j][k].Times(-1)}, 0)
			}
		}
		if _, ok := colour[v.Color]; !ok {
			colour[v.Color] = i
		}
	}
	for k := range places {
		for _, arc := range p.row {
			var terms []milp.Term
			for q := range k + 1 {
				terms = append(terms, x[arc[0]][q].Times(1), x[arc[1]][q].Times(-1))
			}
			m.AddGE(fmt.Sprintf("(b) %d to %d,%d", arc[0], arc[1], k), terms, 0)
		}
		var acc, cpu, bytes []milp.Term
		z := make([]milp.Var, n)
		for i, v := range p.Nodes {
			acc = append(acc, x[i][k].Times(v.AcceleratorLatency))
			cpu = append(cpu, x[i][k].Times(v.CPULatency))
			if size := v.SizeBytes / unit; size >= negligible {
				bytes = append(bytes, x[i][k].Times(size))
			}
			if v.Backward {
				z[i] = m.Continuous(fmt.Sprintf("z[%d,%d]", v.ID, k), 0, 1, 0)
				m.AddGE(fmt.Sprintf("(h1) %d,%d", i, k), []milp.Term{z[i].Times(1), x[i][k].Times(-1)}, 0)
			}
		}
		for i := range p.Nodes {
			var pays milp.Var
			if len(p.succ[i]) > 0 && p.cost[i] > 0 {
				pays = m.Continuous(fmt.Sprintf("q[%d,%d]", p.Nodes[i].ID, k), 0, 1, 0)
				acc = append(acc, pays.Times(p.cost[i]))
			}
			for _, h := range p.succ[i] {
				at := fmt.Sprintf("%d to %d,%d", i, h, k)
				if p.cost[i] > 0 {
					m.AddGE("(g1) "+at, []milp.Term{pays.Times(1), x[i][k].Times(-1), x[h][k].Times(1)}, 0)
					m.AddGE("(g2) "+at, []milp.Term{pays.Times(1), x[i][k].Times(1), x[h][k].Times(-1)}, 0)
				}
				if p.Nodes[i].Backward && p.Nodes[h].Backward {
					// z is 1 on and after the set; a node may be in the set after one that
					// is outside only where z was 0 there.
					m.AddGE("(h2) "+at, []milp.Term{z[h].Times(1), z[i].Times(-1)}, 0)
					m.AddLE("(h3) "+at, []milp.Term{z[i].Times(1), x[h][k].Times(1), x[i][k].Times(-1)}, 1)
				}
			}
		}
		m.AddLE(fmt.Sprintf("(e) %d", k), append(bytes, isCPU[k].Times(-max(0, total-p.MemoryBytes)/unit)),
			p.MemoryBytes/unit)
		m.AddLE(fmt.Sprintf("(i) %d", k), append(acc, C.Times(-1), isCPU[k].Times(-big)), 0)
		m.AddLE(fmt.Sprintf("(j) %d", k), append(cpu, C.Times(-1), isCPU[k].Times(big)), big)
	}
	sol, err := s.opt.Solver.Solve(ctx, m, s.opt.MILP(1))
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err != nil {
		return nil
	}
	s.stop = sol.Stop
	if sol.Status == milp.Infeasible {
		s.bound, s.reason = math.Inf(1), p.crowded()
		return nil
	}
	if !math.IsInf(sol.Bound, 0) && !math.IsNaN(sol.Bound) {
		s.raise(sol.Bound)
	}
	if sol.Status.HasValues() {
		d := &Division{}
		sets := make([][]int, places)
		for i, v := range p.Nodes {
			for k := range places {
				if sol.Int(x[i][k]) == 1 {
					sets[k] = append(sets[k], v.ID)
				}
			}
		}
		for k, set := range sets {
			if sol.Int(isCPU[k]) == 1 {
				d.CPUs = append(d.CPUs, set)
			} else {
				d.Accelerators = append(d.Accelerators, set)
			}
		}
		if err := p.Check(d); err != nil {
			return fmt.Errorf("the solver's answer: %w", err)
		}
		s.take(d)
		if sol.Status == milp.Optimal { // within the solver's gap
			s.bound = max(s.bound, s.load*(1-near))
		}
	}
	return nil
}
