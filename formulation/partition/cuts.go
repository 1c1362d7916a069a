package partition

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// programIdeals is the largest number of ideals of a graph that is not left to the program of
// cuts, where there is a solver.
const programIdeals = 1 << 16

// cuts solves the problem of accelerators alone, on the contracted graph, as an integer linear
// program over the cuts between them:
//
//	y_cp   class c is on one of the first p accelerators of the row, p from 1 to K - 1
//	x_cp = y_cp - y_c,p-1   c is on accelerator p, with y_c0 = 0 and y_cK = 1
//	q_ep   accelerator p pays for net e, 0 to 1
//	z_vp   backward node v is on p, or a path of backward nodes leads from one that is to v; 0 to 1
//	minimise    C, from the bound on
//	subject to  y_c,p+1 >= y_cp                                   each c, p       (a)
//	            y_up >= y_wp               arc u to w of the row, each p          (b)
//	            q_ep >= x_cp - x_dp        pins c, d of e in a circle, and
//	                                       both ways between the first and others (c)
//	            sum a_c x_cp + sum w_e q_ep <= C                  each p          (d)
//	            sum s_c x_cp <= M                                 each p          (e)
//	            z_vp >= x_cp, z_wp >= z_vp, z_vp + x_dp - x_cp <= 1
//	                                       backward v in c, edge to w in d        (f)
//
// The solver starts from the best division so far. That is no limit on C: with one on a variable that
// is minimised, HiGHS has been seen to prove a wrong optimum.
func (s *solver) cuts(ctx context.Context) error {
	g := s.g
	k := g.accelerators
	total, bytes := 0.0, 0.0
	for _, c := range g.classes {
		total += c.acc
		bytes += c.bytes
	}
	m := milp.New(s.p.Name, milp.Minimize)
	at, load := s.places()
	start := []float64{load} // values of the variables, in the order in which they are made
	began := func(on bool) {
		value := 0.0
		if on {
			value = 1
		}
		start = append(start, value)
	}
	C := m.Continuous("C", s.bound*(1-near), math.Inf(1), 1)
	y := make([][]milp.Var, len(g.classes))
	for c := range y {
		for p := range k - 1 {
			y[c] = append(y[c], m.Binary(fmt.Sprintf("y[%d,%d]", c, p+1), 0))
			began(at[c] <= p)
		}
	}
	// x adds f x_cp to terms, but for the constant f of the last accelerator.
	x := func(terms []milp.Term, c, p int, f float64) []milp.Term {
		if p < k-1 {
			terms = append(terms, y[c][p].Times(f))
		}
		if p > 0 {
			terms = append(terms, y[c][p-1].Times(-f))
		}
		return terms
	}
	for c, class := range g.classes {
		for p := range k - 1 {
			if p > 0 {
				m.AddGE(fmt.Sprintf("(a) %d,%d", c, p), []milp.Term{y[c][p].Times(1), y[c][p-1].Times(-1)}, 0)
			}
			for _, w := range class.succ {
				m.AddGE(fmt.Sprintf("(b) %d to %d,%d", c, w, p), []milp.Term{y[c][p].Times(1), y[w][p].Times(-1)}, 0)
			}
		}
	}
	for p := range k {
		load, held := []milp.Term{C.Times(-1)}, []milp.Term(nil)
		most, room := 0.0, s.p.MemoryBytes
		for c, class := range g.classes {
			load, held = x(load, c, p, class.acc), x(held, c, p, class.bytes/max(1, bytes))
		}
		if p == k-1 {
			most, room = -total, room-bytes
		}
		for e, net := range g.nets {
			pays := m.Continuous(fmt.Sprintf("q[%d,%d]", e, p), 0, 1, 0)
			began(slices.ContainsFunc(net.pins, func(c int) bool { return at[c] == p }) &&
				slices.ContainsFunc(net.pins, func(c int) bool { return at[c] != p }))
			load = append(load, pays.Times(net.cost))
			apart := func(c, d int) {
				m.AddGE(fmt.Sprintf("(c) %d,%d: %d-%d", e, p, c, d), x(x([]milp.Term{pays.Times(1)}, c, p, -1), d, p, 1), 0)
			}
			n := len(net.pins)
			for i, c := range net.pins {
				apart(c, net.pins[(i+1)%n])
				if i > 1 {
					apart(net.pins[0], c)
				}
				if i > 0 && i < n-1 {
					apart(c, net.pins[0])
				}
			}
		}
		m.AddLE(fmt.Sprintf("(d) %d", p), load, most)
		if bytes > s.p.MemoryBytes {
			m.AddLE(fmt.Sprintf("(e) %d", p), held, room/max(1, bytes))
		}
	}
	of := make([]int, len(s.p.Nodes)) // class of each backward node
	for c, class := range g.classes {
		for _, v := range class.nodes {
			of[v] = c
		}
	}
	for p := range k {
		rest := 0.0 // what x leaves out
		if p == k-1 {
			rest = 1
		}
		z := make([]milp.Var, len(s.p.Nodes))
		for _, v := range s.p.order {
			if !s.p.Nodes[v].Backward {
				continue
			}
			z[v] = m.Continuous(fmt.Sprintf("z[%d,%d]", v, p), 0, 1, 0)
			m.AddGE(fmt.Sprintf("(f) %d,%d", v, p), x([]milp.Term{z[v].Times(1)}, of[v], p, -1), rest)
			on := at[of[v]] == p
			for _, u := range s.p.pred[v] {
				if s.p.Nodes[u].Backward {
					m.AddGE(fmt.Sprintf("(f) %d to %d,%d", u, v, p), []milp.Term{z[v].Times(1), z[u].Times(-1)}, 0)
					m.AddLE(fmt.Sprintf("(f) %d back to %d,%d", u, v, p),
						x(x([]milp.Term{z[u].Times(1)}, of[v], p, 1), of[u], p, -1), 1)
					on = on || start[z[u]] == 1
				}
			}
			began(on)
		}
	}
	opt := s.opt.MILP(1)
	if s.best != nil && m.Check(start, milp.StartTolerance) == nil { // a caller's division may divide classes
		opt.Start = start
	}
	sol, err := s.opt.Solver.Solve(ctx, m, opt)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err != nil {
		return nil
	}
	s.stop = sol.Stop
	if sol.Status == milp.Infeasible {
		s.bound, s.reason = math.Inf(1), s.p.crowded()
		return nil
	}
	if !sol.Status.HasValues() {
		if !math.IsInf(sol.Bound, 0) && !math.IsNaN(sol.Bound) {
			s.raise(min(sol.Bound, s.load))
		}
		return nil
	}
	row := make([]part, k)
	for c := range y {
		p := k - 1
		for p > 0 && sol.Int(y[c][p-1]) == 1 {
			p--
		}
		row[p].classes = append(row[p].classes, c)
	}
	d := g.division(row)
	fits := s.p.Check(d) == nil // else the memory is exceeded, within the solver's tolerance
	if fits {
		s.take(d)
	}
	if load, err = s.p.MaxLoad(d); err != nil || math.Abs(load-sol.Objective) > 1e-6*load {
		s.reason = fmt.Sprintf("the solver's %g is not the load of its solution, %g: its bound is not to be trusted",
			sol.Objective, load)
		return nil
	}
	if s.raise(min(sol.Bound, s.load)); fits && sol.Status == milp.Optimal && load <= s.load {
		s.bound = max(s.bound, s.load*(1-near)) // within the solver's gap
	}
	return nil
}

// places returns the classes' places in the best division, if there is one, and its load.
func (s *solver) places() ([]int, float64) {
	at := make([]int, len(s.g.classes))
	if s.best == nil {
		return at, s.load
	}
	device, err := s.p.devices(s.best)
	if err != nil {
		panic(err) // of a division that take has checked
	}
	inRow, _ := s.p.places(device)
	for c, class := range s.g.classes {
		at[c] = inRow[device[class.nodes[0]]]
	}
	// The row of the program has places for devices with classes only.
	used := slices.Clone(at)
	slices.Sort(used)
	used = slices.Compact(used)
	for c := range at {
		at[c], _ = slices.BinarySearch(used, at[c])
	}
	return at, s.load
}
