package partition

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Options are settings of [Solve]. The zero value is the default.
type Options struct {
	// TimeLimit ends the search; the answer is then the best division so far with
	// its bound. 0 is no limit.
	TimeLimit time.Duration
	// MaxIdeals bounds the memory: a graph with more ideals is searched along
	// topological orders only. 0 is 24 million states, some 500 MB.
	MaxIdeals int
	// Rounds is how many times orders are drawn anew where the graph has more
	// ideals than that. 0 is 40.
	Rounds int
	// Start is a division to start from. nil is none. One that breaks a rule is an
	// error.
	Start *Division
	// Solver is for method "ilp".
	Solver milp.Solver
	// Progress, if not nil, is told of better divisions and bounds.
	Progress func(milp.Progress)

	// What can be switched off, for comparison.
	NoReduction bool // of classes without weight
	NoCutoff    bool // visit all pairs of ideals
}

// The statuses of a result.
const (
	Optimal    = "optimal"    // proven to be a best division
	Feasible   = "feasible"   // its bound is below its load
	Infeasible = "infeasible" // there is none
	Limit      = "limit"      // none was found
)

// A Result is a method's answer.
type Result struct {
	Method string `json:"method"`
	Status string `json:"status"`
	// MaxLoad is the largest load of a device; no division has a smaller one than
	// Bound. Both are in the unit of the file.
	MaxLoad float64 `json:"max_load"`
	Bound   float64 `json:"bound"`
	// Devices has the ids of the nodes of each accelerator, then of each CPU.
	Devices [][]int   `json:"devices"`
	Loads   []float64 `json:"loads"`
	// Accelerators is how many of the devices are.
	Accelerators int `json:"accelerators"`
	// Ideals is the size of the lattice that was searched, 0 where none was.
	Ideals  int     `json:"ideals,omitempty"`
	Classes int     `json:"classes,omitempty"` // of nodes that are together in some optimum
	Pairs   int64   `json:"pairs,omitempty"`   // of ideals that were visited
	Seconds float64 `json:"seconds"`
	// Reason says why there is no division, for status "infeasible", or what ended
	// the search, for "feasible" and "limit".
	Reason string `json:"reason,omitempty"`
}

// HasDivision reports whether the result comes with a division.
func (r *Result) HasDivision() bool { return r.Status == Optimal || r.Status == Feasible }

// Division is that of the result.
func (r *Result) Division() *Division {
	return &Division{r.Devices[:r.Accelerators], r.Devices[r.Accelerators:]}
}

// A Method finds divisions.
type Method struct {
	Name, About string
	run         func(*solver, context.Context) error
}

// Methods are the ways to solve a problem, exact ones first.
func Methods() []Method {
	return []Method{
		{"exact", "shortest path over ideals, with proof", (*solver).exact},
		{"ilp", "integer linear program, with proof; needs a solver", (*solver).ilp},
		{"pipedream", "best division of PipeDream's chain of components", (*solver).pipedream},
		{"greedy", "fill one device after another in topological order", (*solver).greedy},
	}
}

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
	reason string
}

// Solve divides the graph of p with the named method. If ctx or the time limit
// ends, the result has the best division so far, its bound, and a status and a
// reason that say so; errors are for input. Without limits, equal input gives
// equal output but for the seconds.
func Solve(ctx context.Context, p *Problem, method string, opt Options) (*Result, error) {
	begin := time.Now()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	methods := Methods()
	k := slices.IndexFunc(methods, func(m Method) bool { return m.Name == method })
	if k < 0 {
		var names []string
		for _, m := range methods {
			names = append(names, m.Name)
		}
		return nil, &InputError{p.Name, "method", fmt.Sprintf("%q", method), strings.Join(names, ", ")}
	}
	s := &solver{p: p, opt: opt, method: method, begin: begin, load: math.Inf(1)}
	if reason := p.Misfit(); reason != "" {
		return &Result{Method: method, Status: Infeasible, Reason: reason, Seconds: time.Since(begin).Seconds()}, nil
	}
	if opt.Start != nil {
		if err := p.Check(opt.Start); err != nil {
			return nil, fmt.Errorf("the division to start from: %w", err)
		}
		s.take(opt.Start)
	}
	if opt.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opt.TimeLimit)
		defer cancel()
	}
	s.g = p.contract(!opt.NoReduction)
	s.raise(s.g.bound())
	if err := methods[k].run(s, ctx); err != nil {
		return nil, err
	}
	return s.result(ctx)
}

// take keeps a division that is better than the best so far. It panics if a
// method has made one that breaks a rule.
func (s *solver) take(d *Division) {
	if err := s.p.Check(d); err != nil {
		panic("partition: method " + s.method + ": " + err.Error())
	}
	if load, err := s.p.MaxLoad(d); err == nil && load < s.load {
		s.best, s.load = d, load
		s.tell(true)
	}
}

// raise keeps a bound that is better than the best so far.
func (s *solver) raise(bound float64) {
	if bound > s.bound {
		s.bound = bound
		s.tell(false)
	}
}

func (s *solver) tell(improved bool) {
	if s.opt.Progress != nil {
		s.opt.Progress(milp.Progress{Objective: s.load, Bound: min(s.bound, s.load), Improved: improved, Seconds: time.Since(s.begin).Seconds()})
	}
}

// near is the tolerance within which a bound meets a load: sums of the same
// numbers in another order.
const near = 1e-9

func (s *solver) result(ctx context.Context) (*Result, error) {
	r := &Result{Method: s.method, Status: Limit, Bound: s.bound, Ideals: s.lat, Classes: len(s.g.classes), Pairs: s.pairs, Reason: s.reason}
	switch {
	case s.best != nil:
		r.Status = Feasible
		var err error
		if r.Loads, err = s.p.Loads(s.best); err != nil {
			return nil, err
		}
		r.MaxLoad = slices.Max(r.Loads)
		if r.Bound >= r.MaxLoad*(1-near) {
			r.Status, r.Bound = Optimal, r.MaxLoad
		}
		r.Accelerators = s.p.Accelerators
		r.Devices = make([][]int, s.p.Accelerators+s.p.CPUs)
		for i := range r.Devices {
			r.Devices[i] = []int{}
		}
		copy(r.Devices, s.best.Accelerators)
		copy(r.Devices[s.p.Accelerators:], s.best.CPUs)
	case math.IsInf(s.bound, 1):
		r.Status, r.Bound = Infeasible, 0
	}
	if r.Status != Optimal && r.Reason == "" && ctx.Err() != nil {
		r.Reason = "time limit"
		if context.Cause(ctx) == context.Canceled {
			r.Reason = "cancelled"
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
	for _, v := range p.Nodes {
		total += v.SizeBytes
		if !v.Supported {
			return fmt.Sprintf("node %d runs on no accelerator, and there is no CPU", v.ID)
		}
		if v.SizeBytes > p.MemoryBytes {
			return fmt.Sprintf("node %d needs %.0f bytes, an accelerator has %.0f, and there is no CPU", v.ID, v.SizeBytes, p.MemoryBytes)
		}
	}
	for _, c := range p.contract(false).classes {
		if c.bytes > p.MemoryBytes {
			what := "nodes that lie on a common cycle of colours"
			if color := p.Nodes[c.nodes[0]].Color; color != NoColor && !slices.ContainsFunc(c.nodes, func(i int) bool { return p.Nodes[i].Color != color }) {
				what = fmt.Sprintf("nodes of colour %d", color)
			}
			var ids []string
			for _, i := range c.nodes[:min(len(c.nodes), 6)] {
				ids = append(ids, fmt.Sprint(p.Nodes[i].ID))
			}
			if len(c.nodes) > 6 {
				ids = append(ids, "...")
			}
			return fmt.Sprintf("the %d %s (%s) need %.0f bytes together, an accelerator has %.0f, and there is no CPU", len(c.nodes), what, strings.Join(ids, ", "), c.bytes, p.MemoryBytes)
		}
	}
	if room := float64(p.Accelerators) * p.MemoryBytes; total > room {
		return fmt.Sprintf("the nodes need %.0f bytes, the %d accelerators have %.0f together, and there is no CPU", total, p.Accelerators, room)
	}
	return ""
}

// Bound is what the largest load of any division of a valid problem is not below:
// the device of the largest node, and devices that share all work evenly, with
// parts of nodes on CPUs.
func (p *Problem) Bound() float64 { return p.contract(true).bound() }

func (g *contracted) bound() float64 {
	least, total, barred := 0.0, 0.0, 0.0
	for _, c := range g.classes {
		total += c.acc
		if !c.supported {
			barred += c.cpu
		}
		one := math.Inf(1)
		if c.supported && g.accelerators > 0 && c.bytes <= g.p.MemoryBytes {
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
