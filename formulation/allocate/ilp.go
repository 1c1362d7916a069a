package allocate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// fitILP is [Fit] by integer programming.
func fitILP(ctx context.Context, p *Problem, capacity int64, opts Options) (*Result, error) {
	if capacity < 0 {
		return nil, fmt.Errorf("allocate: found capacity %d, expected 0 or more", capacity)
	}
	s, err := newILP(p, opts)
	if err != nil {
		return nil, err
	}
	if s.bound > capacity {
		return s.infeasible(s.bound).within(capacity), nil
	}
	if opts.Start != nil && p.Peak(opts.Start) <= capacity {
		return s.answer(opts.Start, s.bound, milp.Complete).within(capacity), nil
	}
	s.height = s.down(min(capacity, s.up(p.Reach())))
	raw, err := s.solve(ctx, false)
	if err != nil {
		return nil, err
	}
	switch {
	case s.best != nil:
		return s.answer(s.best, s.bound, milp.Complete).within(capacity), nil
	case raw.Status == milp.Infeasible:
		return s.infeasible(s.up(capacity + 1)).within(capacity), nil
	case raw.Status == milp.Limit:
		return s.answer(nil, s.bound, raw.Stop).within(capacity), nil
	}
	return nil, fmt.Errorf("allocate: the solver ends with %v", raw.Status)
}

// MinimizeILP is [Minimize] by integer programming.
func MinimizeILP(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	s, err := newILP(p, opts)
	if err != nil {
		return nil, err
	}
	s.height = s.up(p.Reach())
	if opts.Start != nil {
		s.best, s.height = opts.Start, s.down(p.Peak(opts.Start))
	}
	if s.bound > s.height {
		return s.infeasible(s.bound), nil
	}
	raw, err := s.solve(ctx, true)
	if err != nil {
		return nil, err
	}
	s.effort = raw.Effort
	switch bound := s.least(raw); {
	case raw.Status == milp.Infeasible && s.best != nil: // nothing better
		return s.answer(s.best, p.Peak(s.best), milp.Complete), nil
	case raw.Status == milp.Infeasible:
		return s.infeasible(s.up(s.height + 1)), nil
	case raw.Status.HasValues() || raw.Status == milp.Limit:
		return s.answer(s.best, bound, raw.Stop), nil
	}
	return nil, fmt.Errorf("allocate: the solver ends with %v", raw.Status)
}

// least is the bound of a solution on peaks.
func (s *program) least(raw *milp.Solution) int64 {
	if math.IsInf(raw.Bound, 0) {
		return s.bound
	}
	// A little of the bound may be rounding; peaks are multiples of the step.
	return max(s.bound, s.step*int64(math.Ceil(raw.Bound-1e-6*max(1, math.Abs(raw.Bound)))))
}

// program is the formulation of the package's documentation for one problem.
type program struct {
	steps
	opts   Options
	pairs  [][2]int // that are in use at a common time
	bound  int64
	height int64   // H
	unit   float64 // bytes that 1 stands for in the model

	model  *milp.Model
	offset []milp.Var // o_i, or the integer that a_i is multiplied by
	side   []milp.Var // z, one for each of pairs: the second lies above the first
	peak   milp.Var   // P
	best   []int64    // the start, or a placement by the solver
	effort milp.Effort
}

func newILP(p *Problem, opts Options) (*program, error) {
	st, err := begin(p, &opts)
	if err != nil {
		return nil, err
	}
	// Small numbers keep the M small, and with them what tolerances let through.
	var pairs [][2]int
	for i := range p.Buffers {
		for j := i + 1; j < len(p.Buffers); j++ {
			if conflict(&p.Buffers[i], &p.Buffers[j]) {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return &program{steps: st, opts: opts, pairs: pairs, bound: st.up(p.Bound()), unit: float64(st.step)}, nil
}

func (s *program) answer(offsets []int64, bound int64, stop milp.Stop) *Result {
	r := s.steps.answer(offsets, bound, stop)
	r.Method = "ilp"
	if r.Peak != nil && s.effort.Columns > 0 {
		r.Effort = s.effort.In(s.unit, float64(*r.Peak))
	}
	return r
}

func (s *program) infeasible(bound int64) *Result {
	r := s.steps.infeasible(bound)
	r.Method = "ilp"
	return r
}

// solve states the program and has it solved.
func (s *program) solve(ctx context.Context, minimize bool) (*milp.Solution, error) {
	ctx, cancel := s.opts.Begin(ctx)
	defer cancel()
	p := s.p
	cost := 0.0
	if minimize {
		cost = 1
	}
	m := milp.New("memory", milp.Minimize)
	s.model = m
	s.peak = m.Continuous("P", s.units(s.bound), s.units(s.height), cost) // (2)
	s.offset = make([]milp.Var, len(p.Buffers))
	for i := range p.Buffers {
		b := &p.Buffers[i]
		name := "o " + b.ID
		room := s.height - b.Size
		switch {
		case room < 0 || b.Offset != nil && *b.Offset > room:
			return &milp.Solution{Status: milp.Infeasible, Objective: math.Inf(1), Bound: math.Inf(1)}, nil
		case b.Align() > 1:
			s.offset[i] = m.Integer(name, 0, float64(room/b.Align()), 0)
		default:
			s.offset[i] = m.Continuous(name, 0, s.units(room), 0)
		}
		if b.Offset != nil {
			m.Fix(s.offset[i], s.number(i, *b.Offset)) // (6)
		}
		m.AddLE("end "+b.ID, []milp.Term{s.at(i, 1), s.peak.Times(-1)}, -s.units(b.Size)) // (3)
	}
	s.side = make([]milp.Var, len(s.pairs))
	for k, pair := range s.pairs {
		i, j := &p.Buffers[pair[0]], &p.Buffers[pair[1]]
		from, upto := 1-j.Size, i.Size // p and q of the documentation
		name := fmt.Sprintf("%s, %s, %v", i.ID, j.ID, Interval{from, upto})
		z := m.Binary("z "+name, 0)
		s.side[k] = z
		largeM, largeN := upto+s.height-i.Size, s.height-j.Size-from+1
		beyond, before := upto <= s.height-j.Size, 1-from <= s.height-i.Size
		switch {
		case !beyond && !before:
			return &milp.Solution{Status: milp.Infeasible, Objective: math.Inf(1), Bound: math.Inf(1)}, nil
		case !beyond:
			m.Fix(z, 0)
		case !before:
			m.Fix(z, 1)
		}
		// Of twins the second is above, so the difference is beyond.
		if s.alike(pair[0], pair[1]) && beyond {
			m.Fix(z, 1)
		}
		// (4)
		difference := []milp.Term{s.at(pair[1], 1), s.at(pair[0], -1)}
		m.AddGE("beyond "+name, append(slices.Clone(difference), z.Times(-s.units(largeM))), s.units(upto-largeM))
		// (5)
		m.AddLE("before "+name, append(difference, z.Times(-s.units(largeN))), s.units(from-1))
	}
	opts := s.opts.MILP(s.unit)
	if minimize && s.opts.Start != nil {
		opts.Start = s.start(s.opts.Start)
	}
	if !minimize {
		opts.Progress = nil // the program's cost says nothing
	}
	return s.opts.Program(ctx, m, opts, func(sol *milp.Solution) (solve.Verdict, error) {
		offsets, clash, err := s.decode(sol, s.height)
		if err != nil || clash != nil {
			return solve.Verdict{Clash: clash}, err
		}
		peak := p.Peak(offsets)
		if s.best == nil || peak < p.Peak(s.best) {
			s.best = offsets
		}
		v := solve.Verdict{Cost: s.units(peak)}
		if bound := s.least(sol); minimize && sol.Status == milp.Optimal && p.Peak(s.best) > bound {
			// The solver's tolerance is more than a step: it looks for anything lower, by other sides.
			s.height = s.down(p.Peak(s.best) - 1)
			m.SetBounds(s.peak, s.units(s.bound), s.units(s.height))
			_, v.Clash, err = s.decode(sol, s.height)
		} else if !minimize {
			v.Cost = sol.Objective
		}
		return v, err
	})
}

// at is sign times the offset of buffer i.
func (s *program) at(i int, sign float64) milp.Term {
	if a := s.p.Buffers[i].Align(); a > 1 {
		sign *= s.units(a)
	}
	return s.offset[i].Times(sign)
}

func (s *program) units(bytes int64) float64 { return float64(bytes) / s.unit }

// number is the value of the variable for an offset of buffer i.
func (s *program) number(i int, offset int64) float64 {
	if a := s.p.Buffers[i].Align(); a > 1 {
		return float64(offset / a)
	}
	return s.units(offset)
}

// alike reports whether two buffers can change places.
func (s *program) alike(i, j int) bool {
	a, b := &s.p.Buffers[i], &s.p.Buffers[j]
	return a.Size == b.Size && a.Align() == b.Align() && a.Lifetime == b.Lifetime && a.Offset == nil && b.Offset == nil
}

// start is a placement in the program's variables, nil if the program leaves that one of equal placements out.
func (s *program) start(offsets []int64) []float64 {
	x := make([]float64, s.model.NumVars())
	x[s.peak] = s.units(s.p.Peak(offsets))
	for i := range offsets {
		x[s.offset[i]] = s.number(i, offsets[i])
	}
	for k, pair := range s.pairs {
		if offsets[pair[1]] > offsets[pair[0]] {
			x[s.side[k]] = 1
		}
	}
	if s.model.Check(x, milp.StartTolerance) != nil {
		return nil
	}
	return x
}

// decode pushes buffers up until the sides of a solution hold. Where these allow no placement within a capacity, it
// returns sides that together allow none: those that push a buffer beyond it, or push it round a circle.
func (s *program) decode(sol *milp.Solution, capacity int64) (offsets []int64, clash []milp.Var, err error) {
	b := s.p.Buffers
	offsets = make([]int64, len(b))
	via, below := make([]int, len(b)), make([]int, len(b)) // the side that has pushed a buffer, or -1; from where
	for i := range b {
		via[i] = -1
		if b[i].Offset != nil {
			offsets[i] = *b[i].Offset
		}
	}
	pushed := func(k, at int) []milp.Var {
		seen, path := map[int]int{}, []milp.Var{s.side[k]}
		for ; via[at] >= 0; at = below[at] {
			if first, again := seen[at]; again {
				return path[first:]
			}
			seen[at] = len(path)
			path = append(path, s.side[via[at]])
		}
		return path
	}
	for pass, again := 0, true; again; pass++ {
		again = false
		for k, pair := range s.pairs {
			low, high := pair[0], pair[1]
			if sol.Int(s.side[k]) == 0 {
				low, high = high, low
			}
			up := b[high].Up(offsets[low] + b[low].Size)
			if up <= offsets[high] {
				continue
			}
			if b[high].Offset != nil || up+b[high].Size > capacity || pass > len(b) {
				return nil, pushed(k, low), nil
			}
			offsets[high], via[high], below[high], again = up, k, low, true
		}
	}
	if err := Check(s.p, capacity, offsets); err != nil {
		return nil, nil, fmt.Errorf("allocate: the solver's placement is wrong: %w", err)
	}
	return offsets, nil, nil
}
