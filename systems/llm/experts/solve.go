package experts

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// A Result is a method's answer: objective and bound are in seconds.
type Result struct {
	solve.Outcome
	Plan *Plan
	// Nodes are the partial placements that search looked at.
	Nodes int64
}

var methods = solve.Table[func(*solver, context.Context) error]{
	{Method: solve.Method{Name: "search", Description: "branch and bound over placements, with proof", Exact: true},
		Run: (*solver).search},
	{Method: solve.Method{Name: "ilp", Description: "integer linear program, solved by HiGHS", Exact: true,
		NeedsSolver: true}, Run: (*solver).ilp},
	{Method: solve.Method{Name: "greedy",
		Description: "the heaviest expert first, each where the objective then is least"}, Run: (*solver).greedy},
	{Method: solve.Method{Name: "even", Description: "as many experts on each device, in their order"},
		Run: (*solver).even},
}

// Methods are the ways to solve a problem, exact ones first.
func Methods() []solve.Method { return methods.Methods() }

// defaultNodes ends search where no limit is given.
const defaultNodes = 1_000_000

// A solver is one call of [Solve].
type solver struct {
	p    *Problem
	opt  solve.Options[*Plan]
	best *Plan
	cost float64
	// bound holds for all options.
	bound float64
	nodes int64
	stop  milp.Stop
	tell  func(objective, bound float64, due bool)
}

// Solve places the experts of p by the method of a name. Limits and the end of the context are answers, errors are for
// input. WorkLimit counts nodes.
func Solve(ctx context.Context, p *Problem, method string, opt solve.Options[*Plan]) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m, err := methods.Find(method, opt.Solver)
	if err != nil {
		return nil, fmt.Errorf("experts: %w", err)
	}
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("experts: %w", err)
	}
	s := &solver{p: p, opt: opt, cost: math.Inf(1), bound: math.Inf(1), tell: opt.Reporter()}
	if opt.Start != nil {
		if err := p.Check(opt.Start); err != nil {
			return nil, fmt.Errorf("the plan to start from: %w", err)
		}
		s.take(opt.Start.Option, opt.Start.Device)
	}
	for o := range p.Load {
		s.bound = min(s.bound, p.cost(p.byScenario(p.least(o))))
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	if err := m.Run(s, ctx); err != nil {
		return nil, err
	}
	if s.stop == milp.Complete {
		s.stop = solve.Why(ctx)
	}
	r := &Result{Plan: s.best, Nodes: s.nodes}
	r.Objective, r.Bound = s.cost, min(s.bound, s.cost)
	r.Status, r.Stop = solve.Judge(true, s.bound >= s.cost*(1-near), s.stop)
	return r, nil
}

// take keeps a plan that is better than the best so far.
func (s *solver) take(option int, device []int) {
	plan := &Plan{option, slices.Clone(device)}
	if cost := s.p.cost(s.p.Seconds(plan)); cost < s.cost {
		s.best, s.cost = plan, cost
		s.tell(s.cost, s.bound, true)
	}
}

// means are the experts' mean loads of an option, all rows together.
func (p *Problem) means(option int) []float64 {
	list := make([]float64, len(p.Load[0][0]))
	for r, row := range p.Load[option] {
		for e, x := range row {
			list[e] += x * p.Weight[p.Scenario[r]]
		}
	}
	return list
}

// lightest is the option in which all experts together have least to do.
func (p *Problem) lightest() int {
	best, least := 0, math.Inf(1)
	for o := range p.Load {
		sum := 0.0
		for _, x := range p.means(o) {
			sum += x
		}
		if sum < least {
			best, least = o, sum
		}
	}
	return best
}

// heaviest orders experts, those with most to do first.
func (p *Problem) heaviest(option int) []int {
	means := p.means(option)
	order := make([]int, len(means))
	for e := range order {
		order[e] = e
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(means[b], means[a]) })
	return order
}

func (s *solver) even(context.Context) error {
	n := len(s.p.Load[0][0])
	device := make([]int, n)
	for e := range device {
		device[e] = e * s.p.Devices / n
	}
	s.take(s.p.lightest(), device)
	return nil
}

func (s *solver) greedy(context.Context) error {
	option := s.p.lightest()
	s.take(option, s.p.onto(option))
	return nil
}

// onto gives each expert in turn the device on which the objective then is least.
func (p *Problem) onto(option int) []int {
	device := make([]int, len(p.Load[0][0]))
	on := newLoads(p, option)
	for _, e := range p.heaviest(option) {
		best, least := 0, math.Inf(1)
		for d := range min(p.Devices, on.used+1) { // empty ones are alike
			if cost := on.with(e, d); cost < least {
				best, least = d, cost
			}
		}
		on.add(e, best)
		device[e] = best
	}
	return device
}

// loads has the seconds of a partial placement by row and device.
type loads struct {
	p       *Problem
	rows    [][]float64 // of experts
	on      [][]float64 // by row and device
	top     []float64   // of each row: the longest device, or the bound of least
	used    int         // devices from 0 on
	seconds []float64
}

func newLoads(p *Problem, option int) *loads {
	l := &loads{p: p, rows: p.Load[option], top: p.least(option), seconds: make([]float64, len(p.Weight))}
	for range l.rows {
		l.on = append(l.on, make([]float64, p.Devices))
	}
	return l
}

// with is a lower bound on the objective once expert e is on device d, too.
func (l *loads) with(e, d int) float64 {
	clear(l.seconds)
	for r, on := range l.on {
		l.seconds[l.p.Scenario[r]] += max(l.top[r], on[d]+l.rows[r][e])
	}
	return l.p.cost(l.seconds)
}

// add puts an expert on a device.
func (l *loads) add(e, d int) {
	for r, on := range l.on {
		on[d] += l.rows[r][e]
		l.top[r] = max(l.top[r], on[d])
	}
	l.used = max(l.used, d+1)
}

// climb moves an expert, or exchanges two, as long as that helps.
func (s *solver) climb(ctx context.Context, option int, device []int) {
	plan := &Plan{option, device}
	now := s.p.cost(s.p.Seconds(plan))
	try := func(change func()) bool {
		before := slices.Clone(device)
		change()
		if cost := s.p.cost(s.p.Seconds(plan)); cost < now*(1-near) {
			now = cost
			return true
		}
		copy(device, before)
		return false
	}
	for better := true; better && ctx.Err() == nil; {
		better = false
		for e := range device {
			for d := range s.p.Devices {
				better = d != device[e] && try(func() { device[e] = d }) || better
			}
			for f := range e {
				better = device[e] != device[f] && try(func() { device[e], device[f] = device[f], device[e] }) || better
			}
		}
	}
	s.take(option, device)
}

// start has a plan of each option, the most promising first, and what each takes at least.
func (s *solver) start(ctx context.Context) (options []int, least []float64) {
	for o := range s.p.Load {
		options, least = append(options, o), append(least, s.p.cost(s.p.byScenario(s.p.least(o))))
	}
	slices.SortStableFunc(options, func(a, b int) int { return cmp.Compare(least[a], least[b]) })
	for _, o := range options {
		device := s.p.onto(o)
		s.take(o, device)
		if least[o] < s.cost*(1-near) {
			s.climb(ctx, o, device)
		}
	}
	return options, least
}

// search places the heaviest expert first, on each device that differs from others.
func (s *solver) search(ctx context.Context) error {
	options, least := s.start(ctx)
	most := s.opt.WorkLimit
	if most == 0 {
		most = defaultNodes
	}
	bound := math.Inf(1)
	for _, o := range options {
		if least[o] >= s.cost*(1-near) {
			bound = min(bound, least[o])
			continue
		}
		order, device, on := s.p.heaviest(o), make([]int, len(s.p.Load[0][0])), newLoads(s.p, o)
		var down func(k int)
		down = func(k int) {
			if s.stop != milp.Complete {
				return
			}
			if k == len(order) {
				s.take(o, device)
				return
			}
			if s.nodes++; s.nodes >= most {
				s.stop = milp.StopWork
			} else if s.nodes%1024 == 0 {
				s.stop = solve.Why(ctx)
			}
			e := order[k]
			type place struct {
				device int
				cost   float64
			}
			var places []place
			used := on.used
			for d := range min(s.p.Devices, used+1) {
				if cost := on.with(e, d); cost < s.cost*(1-near) {
					places = append(places, place{d, cost})
				}
			}
			slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.cost, b.cost) })
			for _, x := range places {
				if x.cost >= s.cost*(1-near) {
					break // the best has become better
				}
				before, top := make([]float64, len(on.on)), slices.Clone(on.top)
				for r, row := range on.on {
					before[r] = row[x.device]
				}
				on.add(e, x.device)
				device[e] = x.device
				down(k + 1)
				for r, row := range on.on {
					row[x.device] = before[r] // to the last bit
				}
				on.top, on.used = top, used
			}
		}
		down(0)
		if s.stop != milp.Complete {
			return nil // the bound is that of all options at the start
		}
	}
	s.bound = max(s.bound, min(bound, s.cost))
	return nil
}

// gap is within what HiGHS calls a bound met.
const gap = 1e-6

// ilp solves an integer program for each option:
//
//	x_ed   expert e is on device d, at most the e-th in the order of [Problem.heaviest]
//	t_r    row r
//	minimise    sum of w_s t_r / sum of w_s, or z
//	subject to  sum over d of x_ed = 1              each e
//	            sum over e of a_re x_ed <= t_r      each r and d
//	            sum over r of scenario s of t_r <= z
func (s *solver) ilp(ctx context.Context) error {
	options, least := s.start(ctx)
	unit, bound, all := s.cost, math.Inf(1), 0.0
	for _, w := range s.p.Weight {
		all += w
	}
	for _, o := range options {
		if unit == 0 || least[o] >= s.cost*(1-near) {
			bound = min(bound, least[o])
			continue
		}
		m := milp.New("experts", milp.Minimize)
		order := s.p.heaviest(o)
		x := make([][]milp.Var, len(order))
		for k, e := range order {
			for d := range min(s.p.Devices, k+1) {
				x[e] = append(x[e], m.Binary(fmt.Sprintf("x[%d,%d]", e, d), 0))
			}
			m.AddEQ(fmt.Sprintf("expert %d", e), milp.Sum(x[e]...), 1)
		}
		rows := make([][]milp.Term, len(s.p.Weight))
		for r, a := range s.p.Load[o] {
			price := s.p.Weight[s.p.Scenario[r]] / all
			if s.p.Worst {
				price = 0
			}
			t := m.Continuous(fmt.Sprintf("t[%d]", r), s.p.least(o)[r]/unit, math.Inf(1), price)
			rows[s.p.Scenario[r]] = append(rows[s.p.Scenario[r]], t.Times(1))
			for d := range s.p.Devices {
				terms := []milp.Term{t.Times(-1)}
				for e := range x {
					if d < len(x[e]) && a[e]/unit > near {
						terms = append(terms, x[e][d].Times(a[e]/unit))
					}
				}
				m.AddLE(fmt.Sprintf("row %d device %d", r, d), terms, 0)
			}
		}
		if s.p.Worst {
			z := m.Continuous("z", least[o]/unit, math.Inf(1), 1)
			for k, terms := range rows {
				m.AddLE(fmt.Sprintf("scenario %d", k), append(terms, z.Times(-1)), 0)
			}
		}
		sol, err := s.opt.Program(ctx, m, s.opt.MILP(unit), func(sol *milp.Solution) (solve.Verdict, error) {
			device := make([]int, len(x))
			for e := range x {
				device[e] = slices.IndexFunc(x[e], func(v milp.Var) bool { return sol.Int(v) == 1 })
			}
			plan := &Plan{o, device}
			if err := s.p.Check(plan); err != nil {
				return solve.Verdict{}, fmt.Errorf("the solver's answer: %w", err)
			}
			s.take(o, device)
			return solve.Verdict{Cost: s.p.cost(s.p.Seconds(plan)) / unit}, nil
		})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if sol.Status == milp.Optimal && sol.Bound*unit >= s.cost*(1-gap) {
			bound = min(bound, s.cost) // within the solver's gap
		} else if s.stop = max(s.stop, sol.Stop); !math.IsInf(sol.Bound, 0) && !math.IsNaN(sol.Bound) {
			bound = min(bound, max(least[o], sol.Bound*unit*(1-near)))
		} else {
			bound = min(bound, least[o])
		}
	}
	s.bound = max(s.bound, min(bound, s.cost))
	return nil
}
