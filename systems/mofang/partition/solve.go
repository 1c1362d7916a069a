package partition

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// Options are settings of [Solve]. The zero value is the default. The work that a limit
// counts is visited pairs of ideals.
type Options struct {
	solve.Options[*Division]
	// MaxIdeals bounds the memory: a graph with more ideals is searched along
	// topological orders only. 0 is 24 million states, some 500 MB.
	MaxIdeals int
}

// A Result is a method's answer.
type Result struct {
	Method string      `json:"method"`
	Status milp.Status `json:"status"`
	Stop   milp.Stop   `json:"stop"` // what ended the method early
	// MaxLoad is the largest load of a device; no division has a smaller one than
	// Bound. Both are in the unit of the file.
	MaxLoad float64 `json:"max_load"`
	Bound   float64 `json:"bound"`
	// Devices has the ids of the nodes of each accelerator, then of each CPU.
	Devices [][]int   `json:"devices"`
	Loads   []float64 `json:"loads"`
	// Accelerators is the number of accelerators among the devices.
	Accelerators int `json:"accelerators"`
	// Ideals is the size of the lattice that was searched, 0 where none was.
	Ideals  int     `json:"ideals,omitempty"`
	Classes int     `json:"classes,omitempty"` // of nodes that are together in some optimum
	Pairs   int64   `json:"pairs,omitempty"`   // of ideals that were visited
	Seconds float64 `json:"seconds"`
	// Reason says why there is no division, or why the exact method proved nothing.
	Reason string `json:"reason,omitempty"`
	// Effort is of the integer program.
	Effort *milp.Effort `json:"program,omitempty"`
}

// HasDivision reports whether the result comes with a division.
func (r *Result) HasDivision() bool { return r.Status.HasValues() }

// Outcome summarises the result.
func (r *Result) Outcome() solve.Outcome {
	o := solve.Outcome{Status: r.Status, Objective: math.Inf(1), Bound: r.Bound, Stop: r.Stop}
	if r.HasDivision() {
		o.Objective = r.MaxLoad
	}
	return o
}

// Division returns the result's division.
func (r *Result) Division() *Division {
	return &Division{r.Devices[:r.Accelerators], r.Devices[r.Accelerators:]}
}

// rows are the methods with what they run.
var rows = solve.Table[func(*solver, context.Context) error]{
	{Method: solve.Method{Name: "exact", Description: "shortest path over ideals, with proof", Exact: true},
		Run: (*solver).exact},
	{Method: solve.Method{Name: "ilp", Description: "integer linear program, solved by HiGHS", Exact: true,
		NeedsSolver: true}, Run: (*solver).ilp},
	{Method: solve.Method{Name: "pipedream", Description: "best division of PipeDream's chain of components"},
		Run: (*solver).pipedream},
	{Method: solve.Method{Name: "greedy", Description: "fill one device after another in topological order"},
		Run: (*solver).greedy},
}

// Methods are the ways to solve a problem, exact ones first.
func Methods() []solve.Method { return rows.Methods() }

// A solver is one call of [Solve].
type solver struct {
	p      *Problem
	g      *contracted
	opt    Options
	method string
	begin  time.Time

	best   *Division
	load   float64 // +Inf without a division
	bound  float64
	lat    int   // ideals
	pairs  int64 // visited
	stop   milp.Stop
	reason string
	effort *milp.Effort
	tell   func(objective, bound float64, due bool)
}

// Solve divides the graph of p with the named method. If ctx or the time limit ends, the result has the best division
// so far, its bound, and a status and a reason that say so; errors are for input. Without limits, equal input gives
// equal output but for the seconds.
func Solve(ctx context.Context, p *Problem, method string, opt Options) (*Result, error) {
	begin := time.Now()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m, err := rows.Find(method, opt.Solver)
	if err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	s := &solver{p: p, opt: opt, method: method, begin: begin, load: math.Inf(1), tell: opt.Reporter()}
	if reason := p.Misfit(); reason != "" {
		return &Result{Method: method, Status: milp.Infeasible, Reason: reason, Seconds: time.Since(begin).Seconds()}, nil
	}
	if opt.Start != nil {
		if err := p.Check(opt.Start); err != nil {
			return nil, fmt.Errorf("the division to start from: %w", err)
		}
		s.take(opt.Start)
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	s.g = p.contract(true)
	s.raise(s.g.bound())
	if err := m.Run(s, ctx); err != nil {
		return nil, err
	}
	return s.result(ctx)
}

// take keeps a division that is better than the best so far. It panics if a method has made one that breaks a rule.
func (s *solver) take(d *Division) {
	if err := s.p.Check(d); err != nil {
		panic("partition: method " + s.method + ": " + err.Error())
	}
	if load, err := s.p.MaxLoad(d); err == nil && load < s.load {
		s.best, s.load = d, load
		s.tell(s.load, s.bound, true)
	}
}

// raise keeps a bound that is better than the best so far.
func (s *solver) raise(bound float64) {
	if bound > s.bound {
		s.bound = bound
		s.tell(s.load, s.bound, false)
	}
}

// near is the tolerance within which a bound meets a load: sums of the same numbers in another order.
const near = 1e-9

func (s *solver) result(ctx context.Context) (*Result, error) {
	s.stop = cmp.Or(s.stop, solve.Why(ctx))
	r := &Result{Method: s.method, Stop: s.stop, Bound: min(s.bound, s.load), Ideals: s.lat, Classes: len(s.g.classes),
		Pairs: s.pairs, Reason: s.reason, Effort: s.effort}
	if s.best == nil && math.IsInf(s.bound, 1) {
		r.Status, r.Stop, r.Bound = milp.Infeasible, milp.Complete, 0
	} else {
		r.Status, r.Stop = solve.Judge(s.best != nil, s.bound >= s.load*(1-near), s.stop)
	}
	if s.best != nil {
		var err error
		if r.Loads, err = s.p.Loads(s.best); err != nil {
			return nil, err
		}
		r.MaxLoad = slices.Max(r.Loads)
		if r.Status == milp.Optimal {
			r.Bound, r.Reason = r.MaxLoad, ""
		}
		r.Accelerators = s.p.Accelerators
		r.Devices = make([][]int, s.p.Accelerators+s.p.CPUs)
		copy(r.Devices, s.best.Accelerators)
		copy(r.Devices[s.p.Accelerators:], s.best.CPUs)
		for i, ids := range r.Devices {
			if ids == nil {
				r.Devices[i] = []int{} // and not null in JSON
			}
		}
	}
	r.Seconds = time.Since(s.begin).Seconds()
	return r, nil
}

// Misfit says why no device can hold some nodes of a valid problem, or the
// accelerators all of them; it is empty where that is not the reason.
func (p *Problem) Misfit() string {
	if p.CPUs > 0 {
		return ""
	}
	total := 0.0
	for i, v := range p.Nodes {
		total += p.size[i]
		if !v.Supported {
			return fmt.Sprintf("node %d runs on no accelerator, and there is no CPU", v.ID)
		}
		if p.size[i] > p.memory {
			return fmt.Sprintf("node %d needs %.0f bytes, an accelerator has %.0f, and there is no CPU", v.ID,
				v.SizeBytes, p.MemoryBytes)
		}
	}
	for _, c := range p.contract(false).classes {
		if c.bytes > p.memory {
			var ids, colors []int
			for _, i := range c.nodes {
				ids = append(ids, p.Nodes[i].ID)
				if color := p.Nodes[i].Color; color != NoColor {
					colors = append(colors, color)
				}
			}
			slices.Sort(colors)
			colored := len(colors)
			colors = slices.Compact(colors)
			what := fmt.Sprintf("of colour %d", colors[0]) // without one, no nodes must be together
			if len(colors) > 1 {
				what = fmt.Sprintf("of the colours %s, which wait for each other", few(colors))
			}
			if colored < len(c.nodes) {
				what += " and between such"
			}
			return fmt.Sprintf("the %d nodes %s (%s) need %.0f bytes together, an accelerator has %.0f, and there is no CPU",
				len(c.nodes), what, few(ids), c.bytes, p.MemoryBytes)
		}
	}
	if room := float64(p.Accelerators) * p.memory; total > room {
		return fmt.Sprintf("the nodes need %.0f bytes, the accelerators (%d) have %.0f together, and there is no CPU", total,
			p.Accelerators, room)
	}
	return ""
}

// few lists the first of some numbers.
func few(list []int) string {
	var words []string
	for _, n := range list[:min(len(list), 6)] {
		words = append(words, fmt.Sprint(n))
	}
	if len(list) > len(words) {
		words = append(words, "...")
	}
	return strings.Join(words, ", ")
}

// crowded says that a valid problem without a [Problem.Misfit] has no division. Rule (3)
// forbids one: without it, one device could have all nodes.
func (p *Problem) crowded() string {
	total := 0.0
	large := p.Nodes[0]
	for _, v := range p.Nodes {
		if total += v.SizeBytes; v.SizeBytes > large.SizeBytes {
			large = v
		}
	}
	return fmt.Sprintf(
		"no row of devices holds the graph: its nodes need %.0f bytes, node %d alone %.0f, and each of the %d accelerators has %.0f", total, large.ID, large.SizeBytes, p.Accelerators, p.MemoryBytes)
}

func (g *contracted) bound() float64 {
	least, total, barred := 0.0, 0.0, 0.0
	for _, c := range g.classes {
		total += c.acc
		if !c.supported {
			barred += c.cpu
		}
		one := math.Inf(1)
		if c.supported && g.accelerators > 0 && c.bytes <= g.p.memory {
			one = c.acc
		}
		if g.cpus > 0 {
			one = min(one, c.cpu)
		}
		least = max(least, one)
	}
	if math.IsInf(least, 1) {
		return least
	}
	if g.cpus > 0 {
		least = max(least, barred/float64(g.cpus))
	}
	if g.accelerators == 0 {
		all := 0.0
		for _, c := range g.classes {
			all += c.cpu
		}
		return max(least, all/float64(g.cpus))
	}
	lo, hi := 0.0, total
	for range 200 {
		mid := (lo + hi) / 2
		if float64(g.accelerators)*mid+g.absorb(float64(g.cpus)*mid) < total*(1-1e-12) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return max(least, lo)
}
