package partition

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
)

const (
	// programIdeals is the largest number of ideals of a graph that is not left to the integer
	// program, where there is a solver.
	programIdeals = 1 << 16
	// maxCells is the number of coefficients that the integer program has at most.
	maxCells = 4_000_000
)

// ilp is the integer program as a method by itself. Without a start it begins with the best division along one order.
func (s *solver) ilp(ctx context.Context) error {
	cells := (12*len(s.p.Edges) + 10*len(s.p.Nodes)) * (s.p.Accelerators + s.p.CPUs)
	if cells > maxCells {
		return strict.Error(s.p.Name, "method ilp", fmt.Sprintf("about %d coefficients", cells),
			fmt.Sprintf("at most %d: use method exact", maxCells))
	}
	if s.best == nil {
		s.try(ctx, s.g.chains([][]int{s.g.leastCut(nil)}))
	}
	return s.program(ctx)
}

// A linear is a sum of variables and a constant.
type linear struct {
	terms    []milp.Term
	constant float64
}

// program solves the problem, on the contracted graph, as an integer linear program over the cuts
// between the places of a row of n = K + L devices:
//
//	y_cp   class c is at one of the first p places, p from 1 to n - 1
//	x_cp = y_cp - y_c,p-1   c is at place p, with y_c0 = 0 and y_cn = 1
//	b_p    the device at place p is a CPU
//	q_ep   the device at place p pays for net e, 0 to 1
//	z_vp   backward node v is at p, or a path of backward nodes leads from one that is to v; 0 to 1
//	minimise    C, from the bound on
//	subject to  y_c,p+1 >= y_cp                                   each c, p       (a)
//	            y_up >= y_wp               arc u to w of the row, each p          (b)
//	            sum b_p = L                                                       (c)
//	            x_cp <= b_p                c not supported, each p                (d)
//	            q_ep >= x_cp - x_dp        pins c, d of e in a circle, and
//	                                       both ways between the first and others (e)
//	            sum s_c x_cp <= M + (S - M) b_p                   each p          (f)
//	            z_vp >= x_cp, z_wp >= z_vp, z_vp + x_dp - x_cp <= 1
//	                                       backward v in c, edge to w in d        (g)
//	            sum a_c x_cp + sum w_e q_ep <= C + B b_p          each p          (h)
//	            sum c_c x_cp <= C + B (1 - b_p)                   each p          (i)
//
// where S is the sum of all sizes and B of all times and costs. Without CPUs there is no b. Times and costs are in
// units of the best load so far.
//
// The solver starts from the best division so far. That is no limit on C: with one on a variable that
// is minimised, HiGHS has been seen to prove a wrong optimum.
func (s *solver) program(ctx context.Context) error {
	g := s.g
	n := g.accelerators + g.cpus
	bytes, most := 0.0, 0.0 // S, B
	for _, c := range g.classes {
		bytes += c.bytes
		most += c.acc + c.cpu
	}
	for _, net := range g.nets {
		most += net.cost
	}
	unit := cmp.Or(s.load, 1)
	if math.IsInf(unit, 1) {
		unit = cmp.Or(most, 1)
	}
	m := milp.New(s.p.Name)
	at, cpuAt := s.places(n)
	start := []float64{s.load / unit} // values of the variables, in the order in which they are made
	began := func(on bool) {
		value := 0.0
		if on {
			value = 1
		}
		start = append(start, value)
	}
	C := m.Continuous("C", s.bound/unit*(1-near), math.Inf(1), 1)
	y := make([][]milp.Var, len(g.classes))
	for c := range y {
		for p := range n - 1 {
			y[c] = append(y[c], m.Binary(fmt.Sprintf("y[%d,%d]", c, p+1), 0))
			began(at[c] <= p)
		}
	}
	var isCPU []milp.Var
	for p := 0; p < n && g.cpus > 0; p++ {
		isCPU = append(isCPU, m.Binary(fmt.Sprintf("b[%d]", p), 0))
		began(cpuAt[p])
	}
	// x adds f x_cp, and onCPU f b_p.
	x := func(l *linear, c, p int, f float64) {
		if p == n-1 {
			l.constant += f
		} else {
			l.terms = append(l.terms, y[c][p].Times(f))
		}
		if p > 0 {
			l.terms = append(l.terms, y[c][p-1].Times(-f))
		}
	}
	onCPU := func(l *linear, p int, f float64) {
		if g.cpus > 0 {
			l.terms = append(l.terms, isCPU[p].Times(f))
		}
	}
	atMost := func(name string, l linear, limit float64) { m.AddLE(name, l.terms, limit-l.constant) }
	if g.cpus > 0 {
		m.AddEQ("(c)", milp.Sum(isCPU...), float64(g.cpus))
	}
	for c, class := range g.classes {
		for p := range n - 1 {
			if p > 0 {
				m.AddGE(fmt.Sprintf("(a) %d,%d", c, p), []milp.Term{y[c][p].Times(1), y[c][p-1].Times(-1)}, 0)
			}
			for _, w := range class.succ {
				m.AddGE(fmt.Sprintf("(b) %d to %d,%d", c, w, p), []milp.Term{y[c][p].Times(1), y[w][p].Times(-1)}, 0)
			}
		}
		for p := 0; p < n && !class.supported; p++ {
			var on linear
			x(&on, c, p, 1)
			onCPU(&on, p, -1)
			atMost(fmt.Sprintf("(d) %d,%d", c, p), on, 0)
		}
	}
	for p := range n {
		load, onIt := linear{terms: []milp.Term{C.Times(-1)}}, linear{terms: []milp.Term{C.Times(-1)}}
		var held linear
		for c, class := range g.classes {
			x(&load, c, p, class.acc/unit)
			x(&onIt, c, p, class.cpu/unit)
			x(&held, c, p, class.bytes)
		}
		for e, net := range g.nets {
			pays := m.Continuous(fmt.Sprintf("q[%d,%d]", e, p), 0, 1, 0)
			began(slices.ContainsFunc(net.pins, func(c int) bool { return at[c] == p }) &&
				slices.ContainsFunc(net.pins, func(c int) bool { return at[c] != p }))
			load.terms = append(load.terms, pays.Times(net.cost/unit))
			apart := func(c, d int) {
				l := linear{terms: []milp.Term{pays.Times(-1)}}
				x(&l, c, p, 1)
				x(&l, d, p, -1)
				atMost(fmt.Sprintf("(e) %d,%d: %d-%d", e, p, c, d), l, 0)
			}
			pins := len(net.pins)
			for i, c := range net.pins {
				apart(c, net.pins[(i+1)%pins])
				if i > 1 {
					apart(net.pins[0], c)
				}
				if i > 0 && i < pins-1 {
					apart(c, net.pins[0])
				}
			}
		}
		onCPU(&load, p, -most/unit)
		atMost(fmt.Sprintf("(h) %d", p), load, 0)
		if g.cpus > 0 {
			onCPU(&onIt, p, most/unit)
			atMost(fmt.Sprintf("(i) %d", p), onIt, most/unit)
		}
		if bytes > s.p.memory {
			onCPU(&held, p, s.p.memory-bytes)
			atMost(fmt.Sprintf("(f) %d", p), held, s.p.memory)
		}
	}
	of := make([]int, len(s.p.Nodes)) // class of each backward node
	for c, class := range g.classes {
		for _, v := range class.nodes {
			of[v] = c
		}
	}
	for p := range n {
		z := make([]milp.Var, len(s.p.Nodes))
		for _, v := range s.p.order {
			if !s.p.Nodes[v].Backward {
				continue
			}
			z[v] = m.Continuous(fmt.Sprintf("z[%d,%d]", v, p), 0, 1, 0)
			here := linear{terms: []milp.Term{z[v].Times(-1)}}
			x(&here, of[v], p, 1)
			atMost(fmt.Sprintf("(g) %d,%d", v, p), here, 0)
			on := at[of[v]] == p
			for _, u := range s.p.pred[v] {
				if s.p.Nodes[u].Backward {
					m.AddGE(fmt.Sprintf("(g) %d to %d,%d", u, v, p), []milp.Term{z[v].Times(1), z[u].Times(-1)}, 0)
					back := linear{terms: []milp.Term{z[u].Times(1)}}
					x(&back, of[v], p, 1)
					x(&back, of[u], p, -1)
					atMost(fmt.Sprintf("(g) %d back to %d,%d", u, v, p), back, 1)
					on = on || start[z[u]] == 1
				}
			}
			began(on)
		}
	}
	opt := s.opt.MILP(unit)
	if s.best != nil && m.Check(start, milp.StartTolerance) == nil { // a caller's division may divide classes
		opt.Start = start
	}
	sol, err := s.opt.Program(ctx, m, opt, func(sol *milp.Solution) (solve.Verdict, error) {
		row := make([]part, n)
		for p := range isCPU {
			row[p].cpu = sol.Int(isCPU[p]) == 1
		}
		for c := range y {
			p := n - 1
			for p > 0 && sol.Int(y[c][p-1]) == 1 {
				p--
			}
			row[p].classes = append(row[p].classes, c)
		}
		d := g.division(row)
		if err := s.p.Check(d); err != nil {
			return solve.Verdict{}, fmt.Errorf("the solver's answer: %w", err)
		}
		s.take(d)
		load, err := s.p.MaxLoad(d)
		return solve.Verdict{Cost: load / unit}, err
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err != nil {
		return nil
	}
	s.stop, s.effort = sol.Stop, sol.Effort.In(unit, s.load)
	switch {
	case sol.Status == milp.Infeasible:
		s.bound, s.reason = math.Inf(1), s.p.crowded()
	case sol.Status == milp.Optimal:
		s.raise(s.load * (1 - near)) // within the solver's gap
	case !math.IsInf(sol.Bound, 0) && !math.IsNaN(sol.Bound):
		s.raise(min(sol.Bound*unit, s.load))
	}
	return nil
}

// places returns the place of each class in the best division, if there is one, and which of n
// places are CPUs. The row has places for devices with classes first.
func (s *solver) places(n int) (at []int, cpu []bool) {
	at, cpu = make([]int, len(s.g.classes)), make([]bool, n)
	if s.best == nil {
		return at, cpu
	}
	device, err := s.p.devices(s.best)
	if err != nil {
		panic(err) // of a division that take has checked
	}
	inRow, _ := s.p.places(device)
	of := make([]int, len(at)) // devices
	for c, class := range s.g.classes {
		of[c] = device[class.nodes[0]]
		at[c] = inRow[of[c]]
	}
	used := slices.Clone(at)
	slices.Sort(used)
	used = slices.Compact(used)
	cpus := 0
	for c := range at {
		at[c], _ = slices.BinarySearch(used, at[c])
		if of[c] >= s.p.Accelerators && !cpu[at[c]] {
			cpu[at[c]] = true
			cpus++
		}
	}
	for p := len(used); p < n && cpus < s.g.cpus; p++ {
		cpu[p] = true
		cpus++
	}
	return at, cpu
}
