package stitch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// MaxUnits is the most units of a problem.
const MaxUnits = 64

// A pricer knows what kernels cost.
type pricer interface {
	// Choices is the number of ways in which a kernel of these units (ascending) can be
	// made; at least one. Choice 0 is the rule's.
	Choices(units []int) int
	// Seconds is the cost of one; false if the machine can't run it so.
	Seconds(units []int, choice int) (float64, bool)
}

// A Problem is to make kernels of units at the least cost.
type Problem struct {
	Units int
	Arcs  [][2]int // (maker, reader), with maker < reader
	Price pricer
	// Floor is a cost that no plan beats, in seconds, known without search; 0 is one.
	Floor float64
}

// A Kernel is one of a plan.
type Kernel struct {
	Units  []int `json:"units"` // ascending
	Choice int   `json:"choice"`
}

// A Result is a method's answer.
type Result struct {
	Status  milp.Status
	Kernels []Kernel // in an order in which they can run; nil if none is known
	Seconds float64
	Bound   float64 // no plan costs less
	// Stop is the reason for an early end of the method.
	Stop milp.Stop
	// Priced counts the kernels that were priced.
	Priced int
}

// Outcome summarises the result.
func (r *Result) Outcome() solve.Outcome {
	return solve.Outcome{Status: r.Status, Objective: r.Seconds, Bound: r.Bound, Stop: r.Stop}
}

// Options are settings. The zero value has the defaults. The work that a limit counts is
// prices asked for; 0 is 400 000.
type Options struct {
	solve.Options[[]Kernel]
	// MaxDownsets bounds the memory, in closed sets of units; 0 is 2000.
	MaxDownsets int
	// Rule leaves every kernel its choice 0, so that only the kernels are decided.
	Rule bool
	// Whole leaves all units in one kernel, so that only its choice is decided.
	Whole bool
}

// ErrProblem is wrapped by every error about a problem's numbers.
var ErrProblem = errors.New("invalid stitching problem")

// Validate reports the first thing that makes no sense.
func (p *Problem) Validate() error {
	switch {
	case p.Units < 1 || p.Units > MaxUnits:
		return fmt.Errorf("stitch: %w: %d units, expected 1 to %d", ErrProblem, p.Units, MaxUnits)
	case p.Price == nil:
		return fmt.Errorf("stitch: %w: no prices", ErrProblem)
	case math.IsNaN(p.Floor) || math.IsInf(p.Floor, 0) || p.Floor < 0:
		return fmt.Errorf("stitch: %w: a floor of %g, expected a finite number from 0 on", ErrProblem, p.Floor)
	}
	for k, a := range p.Arcs {
		if a[0] < 0 || a[0] >= a[1] || a[1] >= p.Units {
			return fmt.Errorf("stitch: %w: arc %d from unit %d to %d, expected from a smaller to a larger one of %d", ErrProblem,
				k, a[0], a[1], p.Units)
		}
	}
	return nil
}

// Check verifies that kernels are a right plan and that it costs what it says. It prices every kernel again.
func (p *Problem) Check(r *Result) error {
	done := uint64(0)
	before := p.before()
	sum := 0.0
	for i, k := range r.Kernels {
		now := done
		for _, u := range k.Units {
			if u < 0 || u >= p.Units || now>>u&1 == 1 {
				return fmt.Errorf("stitch: kernel %d has unit %d, which is none or is done", i, u)
			}
			now |= 1 << u
		}
		for _, u := range k.Units {
			if missing := before[u] &^ now; missing != 0 {
				return fmt.Errorf("stitch: kernel %d has unit %d before unit %d", i, u, bits.TrailingZeros64(missing))
			}
		}
		s, ok := p.Price.Seconds(k.Units, k.Choice)
		if !ok {
			return fmt.Errorf("stitch: kernel %d can't run with choice %d", i, k.Choice)
		}
		sum += s
		done = now
	}
	if done != p.all() {
		return fmt.Errorf("stitch: units %b are in no kernel", p.all()&^done)
	}
	if math.Abs(sum-r.Seconds) > tolerance*sum {
		return fmt.Errorf("stitch: the plan costs %g s and not %g", sum, r.Seconds)
	}
	if r.Bound > r.Seconds*(1+tolerance) {
		return fmt.Errorf("stitch: a bound of %g s above the cost of %g", r.Bound, r.Seconds)
	}
	return nil
}

// tolerance is the relative distance within which two costs are the same.
const tolerance = 1e-9

func (p *Problem) all() uint64 { return ^uint64(0) >> (64 - p.Units) }

// before gives each unit's direct predecessors.
func (p *Problem) before() []uint64 {
	b := make([]uint64, p.Units)
	for _, a := range p.Arcs {
		b[a[1]] |= 1 << a[0]
	}
	return b
}

func list(set uint64) []int {
	units := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		units = append(units, bits.TrailingZeros64(set))
	}
	return units
}

// A candidate is a kernel at its best choice.
type candidate struct {
	seconds float64 // infinite if the machine can't run it
	choice  int
}

// best prices kernels, each once.
type best struct {
	p      *Problem
	opt    Options
	memo   map[uint64]candidate
	priced int
}

// of is the best choice of a kernel; false at the limit on prices.
func (b *best) of(set uint64) (candidate, bool) {
	if c, ok := b.memo[set]; ok {
		return c, true
	}
	units := list(set)
	n := 1
	if !b.opt.Rule {
		n = b.p.Price.Choices(units)
	}
	if int64(b.priced+n) > b.opt.WorkLimit {
		return candidate{}, false
	}
	b.priced += n
	c := candidate{seconds: math.Inf(1)}
	for choice := range n {
		if s, ok := b.p.Price.Seconds(units, choice); ok && s < c.seconds {
			c = candidate{s, choice}
		}
	}
	b.memo[set] = c
	return c, true
}

// downsets lists the sets of units that are closed under predecessors, each before
// those that contain it; false at the limit.
func (p *Problem) downsets(limit int) ([]uint64, bool) {
	before := p.before()
	sets := []uint64{0}
	// Unit u can be added to every listed set that has its predecessors: as units are in
	// topological order, all closed sets of the first u units are there by then.
	for u := range p.Units {
		for _, d := range sets {
			if before[u]&^d == 0 {
				sets = append(sets, d|1<<u)
			}
		}
		if len(sets) > limit {
			return nil, false
		}
	}
	return sets, true
}

// begin validates problem and settings and gives what every method starts from: the
// caller's plan, or all units in one kernel at the rule's choice.
func (p *Problem) begin(opt *Options) (*best, *Result, error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	if err := opt.Validate(); err != nil {
		return nil, nil, fmt.Errorf("stitch: %w", err)
	}
	opt.MaxDownsets = cmp.Or(opt.MaxDownsets, 2000)
	opt.WorkLimit = cmp.Or(opt.WorkLimit, 400_000)
	b := &best{p: p, opt: *opt, memo: map[uint64]candidate{}}
	r := &Result{Status: milp.Limit, Seconds: math.Inf(1), Bound: p.Floor}
	for _, start := range [][]Kernel{opt.Start, {{Units: list(p.all())}}} {
		if start == nil {
			continue
		}
		seconds := 0.0
		for _, k := range start {
			s, ok := p.Price.Seconds(k.Units, k.Choice)
			if !ok {
				s = math.Inf(1)
			}
			seconds += s
		}
		if seconds < r.Seconds {
			r.Kernels, r.Seconds = start, seconds
		}
	}
	if opt.Start != nil {
		if err := p.Check(&Result{Kernels: opt.Start, Seconds: p.seconds(opt.Start)}); err != nil {
			return nil, nil, fmt.Errorf("stitch: the start is no plan: %w", err)
		}
	}
	return b, r, nil
}

// seconds is the cost of a plan; NaN if its kernels have no price.
func (p *Problem) seconds(kernels []Kernel) float64 {
	sum := 0.0
	for _, k := range kernels {
		s, ok := p.Price.Seconds(k.Units, k.Choice)
		if !ok {
			return math.NaN()
		}
		sum += s
	}
	return sum
}

// cut ends a method early with what it began with.
func (r *Result) cut(b *best, stop milp.Stop) (*Result, error) {
	r.Bound = math.Min(r.Bound, r.Seconds)
	found := r.Kernels != nil
	r.Status, r.Stop = solve.Judge(found, found && r.Seconds-r.Bound <= tolerance*r.Seconds, stop)
	r.Priced = b.priced
	return r, nil
}
