package rcpsp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// maxCells is the number of coefficients ILP makes at most.
const maxCells = 5_000_000

// A SizeError says that a project is too large to be written as constraints.
type SizeError struct {
	Project string
	Cells   float64 // about
}

func (e *SizeError) Error() string {
	return fmt.Sprintf(
		"project %q: an integer program of about %.3g coefficients, expected at most %d: use method list, or coarser units of time", e.Project, e.Cells, maxCells)
}

// ILP finds a shortest schedule by the integer linear program of the package's
// documentation. It needs [Options].Solver.
func ILP(ctx context.Context, p *Project, opt Options) (*Result, error) {
	began := time.Now()
	if err := validate(p, &opt); err != nil {
		return nil, err
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	f, err := newILP(p, opt)
	if err != nil {
		return nil, err
	}
	answer := func(start []int64, bound int64, stop milp.Stop) *Result {
		return p.answer("ilp", start, max(bound, f.bound), stop, began)
	}
	best := slices.Clone(opt.Start)
	if f.m == nil { // nothing shorter is possible
		return answer(best, p.Makespan(best), milp.Complete), nil
	}
	sol, err := opt.Solver.Solve(ctx, f.m, opt.MILP(1))
	if err != nil {
		return nil, err
	}
	switch {
	case sol.Status == milp.Infeasible && best != nil:
		return answer(best, p.Makespan(best), milp.Complete), nil
	case sol.Status == milp.Limit:
		return answer(best, wholeBound(sol.Bound), sol.Stop), nil
	case !sol.Status.HasValues():
		return nil, fmt.Errorf("project %q: the solver found its program %v, which no valid project's is", p.Name, sol.Status)
	}
	start := f.decode(sol)
	if err := p.Check(start); err != nil {
		return nil, fmt.Errorf("the solver's answer: %w", err)
	}
	bound := wholeBound(sol.Bound)
	if sol.Status == milp.Optimal {
		bound = p.Makespan(start)
	}
	return answer(start, bound, sol.Stop), nil
}

// wholeBound rounds up a bound of whole numbers, but for the solver's tolerance.
func wholeBound(b float64) int64 {
	if math.IsInf(b, 0) || math.IsNaN(b) {
		return 0
	}
	return int64(math.Ceil(b - 1e-6))
}

// ilp is the program with what is needed to read its solution.
type ilp struct {
	p        *Project
	m        *milp.Model // nil if nothing shorter than the start is possible
	bound    int64
	earliest []int64
	latest   []int64
	z        [][]milp.Var // z[i][t-earliest[i]]
}

func newILP(p *Project, opt Options) (*ilp, error) {
	f := &ilp{p: p, bound: p.Bound(), earliest: p.Heads()}
	horizon := p.Horizon()
	if opt.Start != nil {
		horizon = p.Makespan(opt.Start) - 1
	}
	if horizon < f.bound {
		return f, nil
	}
	cells := int64(0)
	for i, t := range p.Tails() {
		a := &p.Activities[i]
		f.latest = append(f.latest, horizon-t-a.Duration)
		window := f.latest[i] - f.earliest[i]
		width := int64(4 + 2*len(a.After))
		for _, d := range a.Demand {
			if d > 0 {
				width += 4 // of (3), and of (5) as much
			}
		}
		if window+a.Duration > maxCells/width-cells/width {
			return nil, &SizeError{p.Name, float64(cells) + float64(window+a.Duration)*float64(width)}
		}
		cells += (window + a.Duration) * width
	}
	m := milp.New(p.Name, milp.Minimize)
	f.m = m
	makespan := m.Integer("C", float64(f.bound), float64(horizon), 1)
	for i := range p.Activities {
		zs := make([]milp.Var, f.latest[i]-f.earliest[i])
		for n := range zs {
			t := f.earliest[i] + int64(n)
			zs[n] = m.Binary(fmt.Sprintf("z[%d,%d]", i, t), 0)
			if n > 0 {
				m.AddGE(fmt.Sprintf("(1) %d at %d", i, t), []milp.Term{zs[n].Times(1), zs[n-1].Times(-1)}, 0)
			}
		}
		f.z = append(f.z, zs)
	}
	for i, a := range p.Activities {
		after := slices.Clone(a.After)
		slices.Sort(after)
		for _, h := range slices.Compact(after) {
			f.precede(h, i)
		}
		// (4): C + sum_t z_it >= l_i + d_i
		terms := []milp.Term{makespan.Times(1)}
		m.AddGE(fmt.Sprintf("(4) %d", i), append(terms, milp.Sum(f.z[i]...)...), float64(f.latest[i]+a.Duration))
	}
	for k, r := range p.Resources {
		var users []int
		for i, a := range p.Activities {
			if a.Demand[k] > 0 && a.Duration > 0 {
				users = append(users, i)
			}
		}
		f.limit(fmt.Sprintf("(3) %d", k), users, func(i int) int64 { return p.Activities[i].Demand[k] }, r.Capacity, horizon)
	}
	for n, q := range cliques(p) {
		f.limit(fmt.Sprintf("(5) %d", n), q, func(int) int64 { return 1 }, 1, horizon)
	}
	return f, nil
}

// started is z_it as a sum: terms and a constant.
func (f *ilp) started(i int, t int64, coef float64, terms []milp.Term, constant float64) ([]milp.Term, float64) {
	switch {
	case t < f.earliest[i]:
		return terms, constant
	case t >= f.latest[i]:
		return terms, constant + coef
	}
	return append(terms, f.z[i][t-f.earliest[i]].Times(coef)), constant
}

// precede adds (2).
func (f *ilp) precede(h, i int) {
	d := f.p.Activities[h].Duration
	for t := f.earliest[i]; t < f.latest[i]; t++ {
		var terms []milp.Term
		terms, known := f.started(h, t-d, 1, terms, 0)
		if known == 1 {
			break // h has always started by then
		}
		terms = append(terms, f.z[i][t-f.earliest[i]].Times(-1))
		f.m.AddGE(fmt.Sprintf("(2) %d before %d at %d", h, i, t), terms, 0)
	}
}

// limit adds the constraints that at most capacity of what activities take is in use.
func (f *ilp) limit(name string, users []int, demand func(i int) int64, capacity, horizon int64) {
	for t := int64(0); t < horizon; t++ {
		var terms []milp.Term
		known, possible := 0.0, int64(0)
		for _, i := range users {
			d := f.p.Activities[i].Duration
			if t < f.earliest[i] || t >= f.latest[i]+d {
				continue
			}
			possible += demand(i)
			terms, known = f.started(i, t, float64(demand(i)), terms, known)
			terms, known = f.started(i, t-d, -float64(demand(i)), terms, known)
		}
		if possible > capacity {
			f.m.AddLE(fmt.Sprintf("%s at %d", name, t), terms, float64(capacity)-known)
		}
	}
}

func (f *ilp) decode(sol *milp.Solution) []int64 {
	start := make([]int64, len(f.z))
	for i, zs := range f.z {
		start[i] = f.latest[i]
		for _, z := range zs {
			start[i] -= int64(sol.Int(z))
		}
	}
	return start
}

// clash says that a resource keeps i and j apart.
func clash(p *Project, i, j int) bool {
	for k, r := range p.Resources {
		if p.Activities[i].Demand[k]+p.Activities[j].Demand[k] > r.Capacity {
			return true
		}
	}
	return false
}

// cliques finds for each activity, greedily, a set with it of which no two can run side
// by side. Sets that precedence alone explains are left out.
func cliques(p *Project) [][]int {
	unrelated := p.Unrelated()
	apart := func(i, j int) bool { return clash(p, i, j) || !unrelated(i, j) }
	var found [][]int
	for i, a := range p.Activities {
		if a.Duration == 0 {
			continue
		}
		q := []int{i}
		related := 0
		for pass := range 2 { // those that resources keep apart first
			for j, b := range p.Activities {
				if b.Duration == 0 || slices.Contains(q, j) || (pass == 0) != clash(p, i, j) {
					continue
				}
				if !slices.ContainsFunc(q, func(o int) bool { return !apart(o, j) }) {
					q = append(q, j)
					related += pass
				}
			}
		}
		if related == len(q)-1 {
			continue // precedence alone: (2) says it
		}
		slices.Sort(q)
		if !slices.ContainsFunc(found, func(o []int) bool { return slices.Equal(o, q) }) {
			found = append(found, q)
		}
	}
	return found
}
