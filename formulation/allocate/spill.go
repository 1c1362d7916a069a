package allocate

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// A SpillStart is a choice to begin from: one bool for each buffer, and the offsets of
// what stays (-1 for the others), nil if they are not known. The zero value is none.
type SpillStart struct {
	Spilled []bool
	Offsets []int64
}

// SpillOptions are the settings of all that chooses what to spill.
type SpillOptions struct {
	// WorkLimit is the number of choices of a sweep, a buffer at a time, which the ILP takes for nodes. A start that
	// leaves too much is an error; with Place it counts only with offsets, its own or such as are found.
	solve.Options[SpillStart]
	// Place also asks for offsets of what stays, and goes on choosing until there
	// are some. Else what stays only passes the capacity at no time.
	Place bool
	// PlaceNodes limits the search for the offsets of one choice. Where it comes first, choices with more room to
	// spare are tried, and the answer is no longer proven. 0 is no limit.
	PlaceNodes int64
}

// A SpillResult is a method's answer: a choice, if it has found one, and a bound.
type SpillResult struct {
	Method string
	// Status is Optimal if Cost and Bound meet, Feasible if not, and Limit if a limit came before any choice was
	// found. There always is one, unless some buffers may not be spilled.
	Status milp.Status
	Stop   milp.Stop
	// Cost counts the bytes that move, Bound is a lower bound on it.
	Cost, Bound int64
	Spilled     []bool   // one for each buffer if Status.HasValues(), else nil
	Names       []string // of the buffers spilled
	// Offsets has those of the buffers that stay, and -1 for the others; nil if they
	// were not asked for or not found. Placement is their status.
	Offsets   []int64
	Placement milp.Status
	Nodes     int64 // the search's partial choices
	Seconds   float64
}

// Outcome summarises the answer, in bytes moved.
func (r *SpillResult) Outcome() solve.Outcome {
	o := solve.Outcome{Status: r.Status, Objective: math.Inf(1), Bound: float64(r.Bound), Stop: r.Stop}
	if r.Spilled != nil {
		o.Objective = float64(r.Cost)
	}
	return o
}

// MarshalJSON writes bytes moved as null where no choice is known.
func (r *SpillResult) MarshalJSON() ([]byte, error) {
	j := struct {
		Method    string      `json:"method"`
		Status    milp.Status `json:"status"`
		Stop      milp.Stop   `json:"stop"`
		Moved     *int64      `json:"moved_bytes"`
		Bound     int64       `json:"bound_bytes"`
		Spilled   []string    `json:"spilled"`
		Placement milp.Status `json:"placement"`
		Seconds   float64     `json:"seconds"`
	}{r.Method, r.Status, r.Stop, nil, r.Bound, r.Names, r.Placement, r.Seconds}
	if r.Spilled != nil {
		j.Moved = &r.Cost
	}
	if j.Spilled == nil {
		j.Spilled = []string{}
	}
	return json.Marshal(j)
}

// finish sets status and names by choice, bound and offsets.
func (r *SpillResult) finish(p *Problem, stop milp.Stop) *SpillResult {
	r.Names, r.Cost = nil, 0
	if r.Spilled != nil {
		r.Cost = SpillCost(p, r.Spilled)
		r.Bound = min(r.Bound, r.Cost)
		for i, out := range r.Spilled {
			if out {
				r.Names = append(r.Names, p.Buffers[i].ID)
			}
		}
	}
	r.Status, r.Stop = solve.Judge(r.Spilled != nil, r.Bound == r.Cost, stop)
	r.Placement = milp.Limit
	if r.Offsets != nil {
		r.Placement = milp.Feasible
	}
	return r
}

// A picked choice passes the room at no time and hits each of some sets; nil if a limit
// came first. No such choice costs less than the bound.
type picked struct {
	spilled []bool
	bound   int64
	stop    milp.Stop
}

// chooser finds a cheapest choice that passes room at no time and hits each of the sets in hit.
type chooser func(ctx context.Context, room int64, hit [][]int) (picked, error)

// Spill chooses at least cost, by [SpillSweep], what leaves a memory of the given capacity.
func Spill(ctx context.Context, p *Problem, capacity int64, opts SpillOptions) (*SpillResult, error) {
	s := &spillSearch{p: p, opts: opts}
	r, err := spill(ctx, p, capacity, opts, s.choose)
	if r != nil {
		r.Method, r.Nodes = "search", s.nodes
	}
	return r, err
}

// spillILP is [Spill] by integer programming. It needs the options' Solver.
func spillILP(ctx context.Context, p *Problem, capacity int64, opts SpillOptions) (*SpillResult, error) {
	choose := func(ctx context.Context, room int64, hit [][]int) (picked, error) {
		m := milp.New("spill")
		x := make([]milp.Var, len(p.Buffers))
		for i := range p.Buffers {
			b := &p.Buffers[i]
			x[i] = m.Binary("x "+b.ID, float64(b.Moved())) // (7)
			if tooLarge(b, capacity) {
				m.Fix(x[i], 1)
			}
		}
		for _, s := range p.Sections() {
			over := s.Bytes() - room
			if over <= 0 {
				continue
			}
			var terms []milp.Term
			for _, l := range s.Live {
				// A coefficient beyond what is over says no more than that.
				terms = append(terms, x[l.Buffer].Times(float64(min(over, l.Size))))
			}
			m.AddGE(fmt.Sprint("section ", s.Time), terms, float64(over)) // (8)
		}
		for k, set := range hit {
			var terms []milp.Term
			for _, i := range set {
				terms = append(terms, x[i].Times(1))
			}
			m.AddGE(fmt.Sprint("no offsets ", k), terms, 1) // (9)
		}
		var spilled []bool
		sol, err := opts.Program(ctx, m, opts.MILP(1), func(sol *milp.Solution) (solve.Verdict, error) {
			spilled = make([]bool, len(x))
			for i := range x {
				spilled[i] = sol.Int(x[i]) == 1
			}
			return solve.Verdict{Cost: float64(SpillCost(p, spilled))}, nil
		})
		if err != nil {
			return picked{}, err
		}
		c := picked{bound: wholeBytes(sol.Bound), stop: sol.Stop}
		switch {
		case sol.Status == milp.Limit:
			return c, nil
		case !sol.Status.HasValues():
			return c, fmt.Errorf("allocate: the solver ends with %v", sol.Status)
		}
		if c.spilled = spilled; sol.Status == milp.Optimal {
			c.bound = SpillCost(p, c.spilled)
		}
		return c, nil
	}
	r, err := spill(ctx, p, capacity, opts, choose)
	if r != nil {
		r.Method = "ilp"
	}
	return r, err
}

// wholeBytes rounds a solver's bound up, but for its tolerance.
func wholeBytes(bound float64) int64 {
	if math.IsInf(bound, 0) || math.IsNaN(bound) {
		return 0
	}
	return max(0, int64(math.Ceil(bound-1e-6*max(1, math.Abs(bound)))))
}

// tooLarge reports whether a buffer does not fit by itself.
func tooLarge(b *Buffer, capacity int64) bool {
	return b.Size > capacity || b.Offset != nil && *b.Offset+b.Size > capacity
}

func spill(ctx context.Context, p *Problem, capacity int64, opts SpillOptions, choose chooser) (*SpillResult, error) {
	began := time.Now()
	if err := opts.check(p, capacity); err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	r, err := choosePlaced(ctx, p, capacity, opts, choose)
	if err != nil {
		return nil, err
	}
	if start := opts.Start.Spilled; start != nil && (r.Spilled == nil || SpillCost(p, start) < r.Cost) {
		offsets := opts.Start.Offsets
		if opts.Place && offsets == nil {
			if offsets, err = offsetsOfKept(ctx, p, capacity, opts, start); err != nil {
				return nil, err
			}
		}
		if !opts.Place || offsets != nil {
			r.Spilled, r.Offsets = slices.Clone(start), offsets
			r.finish(p, r.Stop)
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// check verifies the problem and the settings.
func (o *SpillOptions) check(p *Problem, capacity int64) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return fmt.Errorf("allocate: %w", err)
	}
	switch {
	case capacity < 0:
		return fmt.Errorf("allocate: found capacity %d, expected 0 or more", capacity)
	case o.PlaceNodes < 0:
		return fmt.Errorf("allocate: found a limit of %d nodes, expected 0 or more", o.PlaceNodes)
	case o.Start.Spilled == nil:
		return nil
	}
	if err := checkSpill(p, capacity, o.Start.Spilled); err != nil {
		return fmt.Errorf("allocate: the start is no choice: %w", err)
	}
	if o.Start.Offsets == nil {
		return nil
	}
	if len(o.Start.Offsets) != len(p.Buffers) {
		return fmt.Errorf("allocate: the start has %d offsets, expected %d", len(o.Start.Offsets), len(p.Buffers))
	}
	kept, place := keep(p, o.Start.Spilled)
	offsets := make([]int64, len(place))
	for k, i := range place {
		offsets[k] = o.Start.Offsets[i]
	}
	if err := Check(kept, capacity, offsets); err != nil {
		return fmt.Errorf("allocate: the start's offsets: %w", err)
	}
	return nil
}

// offsetsOfKept places what a choice keeps, nil if that is not known to work.
func offsetsOfKept(ctx context.Context, p *Problem, capacity int64, opts SpillOptions,
	spilled []bool) ([]int64, error) {
	kept, place := keep(p, spilled)
	placed, err := Fit(ctx, kept, capacity, opts.placing())
	if err != nil || !placed.Status.HasValues() {
		return nil, err
	}
	return spread(p, place, placed.Offsets), nil
}

// placing are the settings of the search for offsets.
func (o *SpillOptions) placing() Options {
	return Options{WorkLimit: o.PlaceNodes}
}

// spread gives the buffers of p the offsets of those that are kept, and -1 to the others.
func spread(p *Problem, place []int, placed []int64) []int64 {
	offsets := slices.Repeat([]int64{-1}, len(p.Buffers))
	for k, i := range place {
		offsets[i] = placed[k]
	}
	return offsets
}

// costUnit divides the cost of any choice.
func costUnit(p *Problem) int64 {
	g := int64(0)
	for i := range p.Buffers {
		for b := p.Buffers[i].Moved(); b != 0; {
			g, b = b, g%b
		}
	}
	return max(1, g)
}

// choosePlaced chooses until there are offsets, if they are asked for.
func choosePlaced(ctx context.Context, p *Problem, capacity int64, opts SpillOptions, choose chooser) (
	*SpillResult, error) {
	var hit [][]int
	bound, room, tries := int64(0), capacity, 0
	unit := costUnit(p)
	for {
		// Time must be left to place what is chosen.
		part, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok && opts.Place {
			part, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		}
		c, err := choose(part, room, hit)
		cancel()
		if err != nil {
			return nil, err
		}
		// With less room than there is, the choice is one, but proves nothing.
		if room == capacity {
			bound = max(bound, (c.bound+unit-1)/unit*unit)
		} else if c.stop == milp.Complete {
			c.stop = milp.StopWork
		}
		r := &SpillResult{Spilled: c.spilled, Bound: bound}
		if c.spilled == nil {
			return r.finish(p, c.stop), nil
		}
		if err := checkSpill(p, capacity, c.spilled); err != nil {
			return nil, fmt.Errorf("allocate: the choice of what to spill is wrong: %w", err)
		}
		r.finish(p, c.stop)
		if !opts.Place {
			return r, nil
		}
		kept, place := keep(p, c.spilled)
		placed, err := Fit(ctx, kept, capacity, opts.placing())
		switch {
		case err != nil:
			return nil, err
		case placed.Status.HasValues():
			r.Offsets, r.Placement = spread(p, place, placed.Offsets), milp.Feasible
			return r, nil
		case placed.Status == milp.Infeasible && room == capacity:
			hit = append(hit, place) // (9)
		case ctx.Err() != nil || room == 0:
			r = &SpillResult{Bound: min(bound, r.Cost)}
			return r.finish(p, placed.Stop), nil
		default:
			// Nobody knows whether there are offsets: leave 1/128 of the capacity free, then 2/128, 4/128 and so on.
			room = max(0, capacity-max(1, capacity>>max(0, 7-tries)))
			tries++
		}
	}
}

// spillSearch chooses by [SpillSweep]. Where the choice hits none of a set, it goes on with each
// buffer of the set spilled, those tried before staying.
type spillSearch struct {
	p     *Problem
	opts  SpillOptions
	nodes int64
}

func (s *spillSearch) choose(ctx context.Context, room int64, hit [][]int) (best picked, err error) {
	least, out := int64(math.MaxInt64), make([]bool, len(s.p.Buffers))
	var try func(stay []bool) error
	try = func(stay []bool) error {
		opts := SweepOptions{Stay: stay}
		opts.WorkLimit, opts.MemoryBytes = s.opts.WorkLimit, s.opts.MemoryBytes
		root := stay == nil
		if root && hit == nil {
			opts.Progress = s.opts.Progress
		}
		w, err := newSweep(s.p, room, opts)
		if err != nil {
			return err
		}
		for i := range out {
			w.forced[i] = w.forced[i] || out[i]
		}
		r, err := w.solve(ctx)
		if err != nil {
			return err
		}
		s.nodes += w.nodes
		if root {
			best.bound = r.Bound
		}
		if r.Stop != milp.Complete {
			best.stop = r.Stop
		}
		if !r.Status.HasValues() || r.Bound >= least {
			return nil
		}
		gone := func(i int) bool { return r.Spilled[i] }
		missed := slices.IndexFunc(hit, func(set []int) bool { return !slices.ContainsFunc(set, gone) })
		if missed < 0 {
			if r.Cost < least {
				best.spilled, least = r.Spilled, r.Cost
			}
			return nil
		}
		if stay = slices.Clone(stay); root {
			stay = make([]bool, len(out))
		}
		for _, i := range hit[missed] {
			if stay[i] {
				continue
			}
			if stop := solve.Why(ctx); stop != milp.Complete {
				best.stop = stop
				break
			}
			out[i] = true
			err := try(slices.Clone(stay))
			if out[i], stay[i] = false, true; err != nil {
				return err
			}
		}
		return nil
	}
	if err := try(nil); err != nil {
		return picked{}, err
	}
	if best.stop == milp.Complete {
		best.bound = least
	}
	return best, nil
}
