package stitch

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// ilp solves the integer program of the package documentation with [Options.Solver]. It
// starts from the rule's plan where that is a candidate. At a limit it returns the best
// plan so far with its bound.
func ilp(ctx context.Context, p *Problem, opt Options) (*Result, error) {
	b, r, err := p.begin(&opt)
	if err != nil {
		return nil, err
	}
	ctx, end := opt.Begin(ctx)
	defer end()
	if stop := solve.Why(ctx); stop != milp.Complete {
		return r.cut(b, stop)
	}
	sets, stop := p.candidates(ctx, b)
	if stop != milp.Complete {
		return r.cut(b, stop)
	}
	m, x := p.model(b, sets)
	options := opt.MILP(1 / micro)
	options.WorkLimit = 0 // it counted prices
	start := make([]float64, m.NumVars())
	for i, k := range sets {
		if k == p.all() {
			start[x[i]] = 1
			options.Start = start
		}
	}
	s, err := opt.Solver.Solve(ctx, m, options)
	if err != nil {
		return nil, err
	}
	if s.Status != milp.Infeasible && !s.Status.HasValues() ||
		s.Status == milp.Feasible && s.Objective/micro >= r.Seconds {
		r.Bound = math.Max(r.Bound, s.Bound/micro)
		return r.cut(b, s.Stop)
	}
	res := &Result{Status: s.Status, Seconds: math.Inf(1), Bound: math.Max(s.Bound/micro, p.Floor),
		Stop: s.Stop, Priced: b.priced}
	if !s.Status.HasValues() {
		return res, nil
	}
	res.Seconds = 0
	var chosen []uint64
	for i, v := range x {
		if s.Int(v) == 1 {
			chosen = append(chosen, sets[i])
		}
	}
	before := p.before()
	for done := uint64(0); len(chosen) > 0; {
		i := slices.IndexFunc(chosen, func(k uint64) bool {
			for _, u := range list(k) {
				if before[u]&^(done|k) != 0 {
					return false
				}
			}
			return true
		})
		if i < 0 {
			return nil, fmt.Errorf("stitch: the solver's kernels wait for each other")
		}
		c := b.memo[chosen[i]]
		res.Kernels = append(res.Kernels, Kernel{list(chosen[i]), c.choice})
		res.Seconds += c.seconds
		done |= chosen[i]
		chosen = slices.Delete(chosen, i, i+1)
	}
	res.Bound = math.Min(res.Bound, res.Seconds)
	return res, nil
}

// candidates lists the kernels that the machine can run, in increasing order of their
// bits, unless something stops it.
func (p *Problem) candidates(ctx context.Context, b *best) ([]uint64, milp.Stop) {
	sets, ok := p.downsets(b.opt.MaxDownsets)
	if !ok {
		return nil, milp.StopMemory
	}
	var out []uint64
	seen := map[uint64]bool{}
	for i, d := range sets {
		if stop := solve.Why(ctx); stop != milp.Complete {
			return nil, stop
		}
		for _, e := range sets[i+1:] {
			k := e &^ d
			if d&^e != 0 || seen[k] {
				continue
			}
			seen[k] = true
			c, ok := b.of(k)
			if !ok {
				return nil, milp.StopWork
			}
			if !math.IsInf(c.seconds, 1) {
				out = append(out, k)
			}
		}
	}
	slices.Sort(out)
	return out, milp.Complete
}

// micro scales costs in the model: microseconds suit a solver's tolerances better.
const micro = 1e6

// model builds the integer program; x are the variables of the candidates.
func (p *Problem) model(b *best, sets []uint64) (*milp.Model, []milp.Var) {
	m := milp.New("stitch")
	n := float64(p.Units)
	x := make([]milp.Var, len(sets))
	pos := make([]milp.Var, p.Units)
	cover := make([][]milp.Term, p.Units)
	pairs := map[[2]int][]milp.Term{}
	for i, k := range sets {
		x[i] = m.Binary(fmt.Sprintf("x_%x", k), b.memo[k].seconds*micro)
		units := list(k)
		for a, u := range units {
			cover[u] = append(cover[u], x[i].Times(1))
			for _, v := range units[a+1:] {
				pairs[[2]int{u, v}] = append(pairs[[2]int{u, v}], x[i].Times(1))
			}
		}
	}
	for u := range pos {
		pos[u] = m.Integer(fmt.Sprintf("p_%d", u), 0, n-1, 0)
		m.AddEQ(fmt.Sprintf("cover_%d", u), cover[u], 1) // (1)
	}
	scaled := func(terms []milp.Term, by float64) []milp.Term {
		out := make([]milp.Term, len(terms))
		for i, t := range terms {
			out[i] = milp.Term{Var: t.Var, Coef: by}
		}
		return out
	}
	seen := map[[2]int]bool{}
	for _, a := range p.Arcs {
		if seen[a] {
			continue
		}
		seen[a] = true
		terms := append(scaled(pairs[a], n), pos[a[1]].Times(1), pos[a[0]].Times(-1))
		m.AddGE(fmt.Sprintf("after_%d_%d", a[0], a[1]), terms, 1) // (2)
	}
	for u := range p.Units {
		for v := u + 1; v < p.Units; v++ {
			together := pairs[[2]int{u, v}]
			if together == nil {
				continue
			}
			for i, sign := range []float64{1, -1} {
				terms := append(scaled(together, n-1), pos[u].Times(sign), pos[v].Times(-sign))
				m.AddLE(fmt.Sprintf("same_%d_%d_%d", u, v, i), terms, n-1) // (3)
			}
		}
	}
	return m, x
}
