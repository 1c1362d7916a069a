package rcpsp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// Options are what every method takes; a start is the start times of a schedule.
type Options = solve.Options[[]int64]

// SearchOptions are settings of [Search]. The zero value asks for a proven optimum,
// however long it takes, with all strengthenings.
type SearchOptions struct {
	// WorkLimit is the number of conflicts.
	Options
	// MaxLiterals bounds the memory: learnt clauses and branching statistics are cut
	// down when they hold more literals. 0 is 4 million, some 200 MB.
	MaxLiterals int

	// What can be switched off, for comparison.
	NoPairs   bool // 0-1 variables for the order of two activities that can't overlap
	NoProbing bool // the share of restarts that work on the bound from below
	NoEnergy  bool // time-table edge-finding at the root and under a supposed makespan
	NoLearnt  bool // branching by conflicts; the earliest start comes first instead
}

// A Result is a method's answer. Times are in the project's unit.
type Result struct {
	Method   string      `json:"method"`
	Status   milp.Status `json:"status"` // Optimal, Feasible, or Limit where nothing was found
	Stop     milp.Stop   `json:"stop"`
	Makespan int64       `json:"makespan"`
	Bound    int64       `json:"bound"`   // no makespan is below it
	Seconds  float64     `json:"seconds"` // that the method took
	Start    []int64     `json:"start"`   // of the activities; nil where nothing was found
	// Conflicts is how many dead ends Search learnt from.
	Conflicts int64 `json:"-"`
}

// Outcome is what the answer says of itself, in the project's unit of time.
func (r *Result) Outcome() solve.Outcome {
	o := solve.Outcome{Status: r.Status, Objective: float64(r.Makespan), Bound: float64(r.Bound), Stop: r.Stop}
	if r.Start == nil {
		o.Objective = math.Inf(1)
	}
	return o
}

// answer is what is known of a schedule, nil for none.
func (p *Project) answer(method string, start []int64, bound int64, stop milp.Stop, began time.Time) *Result {
	r := &Result{Method: method, Start: start, Bound: bound, Seconds: time.Since(began).Seconds()}
	if start != nil {
		r.Makespan = p.Makespan(start)
		r.Bound = min(r.Bound, r.Makespan)
	}
	r.Status, r.Stop = solve.Judge(start != nil, r.Bound == r.Makespan, stop)
	return r
}

const (
	restartConflicts = 100  // in the unit of Luby's sequence
	firstClauses     = 4000 // learnt before some are forgotten
	moreClauses      = 200  // added to that each time
	defaultLiterals  = 4_000_000
	probeEvery       = 4   // restarts
	probeShare       = 16  // of what is between the bounds
	dives            = 500 // conflicts before branching goes by them
	lookEvery        = 64

	// Edge-finding pays at the root and below a supposed makespan; on each level it takes
	// longer than the conflicts that it saves. Long durations make it approach its end in
	// many small steps.
	energyLevels = 1
	maxSweeps    = 40
	energyTasks  = 500
)

// Search finds a shortest schedule of p and proves that there is no shorter one; see
// below for how. Without a time limit, and short of it, equal input gives equal output.
func Search(ctx context.Context, p *Project, opt SearchOptions) (*Result, error) {
	began := time.Now()
	if err := validate(p, &opt.Options); err != nil {
		return nil, err
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	s := newSearch(p, opt)
	report := opt.Reporter()
	tell := func() {
		if s.best != nil {
			report(float64(s.upper), float64(s.lower), true)
		} else {
			report(math.Inf(1), float64(s.lower), true)
		}
	}
	stop := milp.Complete
	for loops := 0; ; loops++ {
		if loops%lookEvery == 0 {
			tell()
			stop = solve.Why(ctx)
		}
		if opt.WorkLimit > 0 && s.conflicts >= opt.WorkLimit && stop == milp.Complete {
			stop = milp.StopWork
		}
		if stop != milp.Complete || !s.step() {
			break
		}
	}
	if s.over {
		s.lower = s.upper
	}
	tell()
	r := p.answer("search", s.best, s.lower, stop, began)
	r.Conflicts = s.conflicts
	return r, nil
}

func validate(p *Project, opt *Options) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := opt.Validate(); err != nil {
		return fmt.Errorf("project %q: %w", p.Name, err)
	}
	if opt.Start != nil {
		if err := p.Check(opt.Start); err != nil {
			return fmt.Errorf("the schedule to start from: %w", err)
		}
	}
	return nil
}

type place struct{ resource, task int32 }

type search struct {
	p         *Project
	opt       SearchOptions
	e         *engine
	makespan  int32
	resources []*timetable
	of        [][]place // of each pair of variables, in the resources

	best      []int64
	upper     int64 // makespan of best
	lower     int64 // proven
	over      bool  // nothing shorter than upper is left
	conflicts int64
	restarts  int64
	budget    int64 // conflicts until the next restart
	probing   bool
	clauses   int // learnt, until some are forgotten
}

func newSearch(p *Project, opt SearchOptions) *search {
	if opt.MaxLiterals <= 0 {
		opt.MaxLiterals = defaultLiterals
	}
	s := &search{p: p, opt: opt, e: newEngine(), clauses: firstClauses, upper: p.Horizon() + 1}
	if opt.Start != nil {
		s.best, s.upper = slices.Clone(opt.Start), p.Makespan(opt.Start)
	}
	s.restart()
	s.lower = p.Bounds().Best()
	if s.lower >= s.upper {
		s.over = true
		return s
	}
	e, latest := s.e, s.upper-1
	head, tail := p.Heads(), p.Tails()
	for i, a := range p.Activities {
		e.variable(head[i], latest-tail[i]-a.Duration)
	}
	s.makespan = e.variable(s.lower, latest)
	for i, a := range p.Activities {
		for _, h := range a.After {
			e.link(startOf(h), startOf(i), p.Activities[h].Duration, always)
		}
		e.link(startOf(i), s.makespan, a.Duration+tail[i], always)
	}
	if !opt.NoPairs {
		s.addPairs()
	}
	s.of = make([][]place, e.pairs())
	for k, r := range p.Resources {
		var tasks []task
		for i, a := range p.Activities {
			if a.Duration > 0 && a.Demand[k] > 0 {
				s.of[i] = append(s.of[i], place{int32(len(s.resources)), int32(len(tasks))})
				tasks = append(tasks, task{x: startOf(i), duration: a.Duration, demand: a.Demand[k]})
			}
		}
		s.resources = append(s.resources, newTimetable(e, r.Capacity, s.upper, tasks))
	}
	e.rose = func(x int32) {
		for _, k := range s.of[x>>1] {
			s.resources[k.resource].rose(k.task)
		}
	}
	e.fell = func() {
		for _, r := range s.resources {
			r.fell()
		}
	}
	s.over = !e.propagateAll()
	return s
}

// startOf is the variable of an activity's start.
func startOf(i int) int32 { return int32(2 * i) }

// maxPairs bounds the number of 0-1 variables; the timetables do without them.
const maxPairs = 200_000

// addPairs makes a 0-1 variable for each two activities that a resource keeps apart:
// 1 if the first is before the second.
func (s *search) addPairs() {
	p, e := s.p, s.e
	unrelated := p.Unrelated()
	pairs := 0
	for i, a := range p.Activities {
		for j := range i {
			b := p.Activities[j]
			if a.Duration == 0 || b.Duration == 0 || !unrelated(i, j) || !clash(p, i, j) {
				continue
			}
			if pairs++; pairs > maxPairs {
				return
			}
			before := e.variable(0, 1)
			e.link(startOf(i), startOf(j), a.Duration, before)
			e.link(startOf(j), startOf(i), b.Duration, before^1)
		}
	}
}

// clash reports whether two activities demand more of a resource than there is.
func clash(p *Project, i, j int) bool {
	for k, r := range p.Resources {
		if p.Activities[i].Demand[k]+p.Activities[j].Demand[k] > r.Capacity {
			return true
		}
	}
	return false
}

// step propagates and then learns, restarts, or decides. It returns false when nothing
// shorter than the best schedule is left.
func (s *search) step() bool {
	e := s.e
	if s.over {
		return false
	}
	if !s.propagate() {
		return s.conflict()
	}
	if e.level() == 0 {
		e.settle()
		if s.lower = e.lb[s.makespan]; s.lower >= s.upper {
			s.over = true
			return false
		}
	}
	if s.budget <= 0 {
		s.restart()
		return true
	}
	if e.level() == 0 && s.probing && !e.fixed(s.makespan) {
		lo, hi := e.lb[s.makespan], e.ub(s.makespan)
		e.decide(lit{s.makespan, lo + (hi-lo)/probeShare + 1}.not())
		return true
	}
	if l, open := s.branch(); open {
		e.decide(l)
		return true
	}
	return s.solution()
}

func (s *search) propagate() bool {
	sweeps := 0
	if !s.opt.NoEnergy && s.e.level() <= energyLevels {
		sweeps = maxSweeps
	}
again:
	for {
		if !s.e.propagateQueue() {
			return false
		}
		for _, r := range s.resources {
			if !r.propagate() {
				return false
			}
			if !s.e.idle() {
				continue again
			}
		}
		for _, r := range s.resources {
			if !r.energy || sweeps == 0 {
				continue
			}
			sweeps--
			if !r.edgeFind() {
				return false
			}
			if !s.e.idle() {
				continue again
			}
		}
		return true
	}
}

func (s *search) conflict() bool {
	s.conflicts++
	s.budget--
	lits, level := s.e.learn()
	if lits == nil {
		s.over = true
		return false
	}
	s.e.back(level)
	s.e.add(lits)
	s.e.decay()
	return true
}

func (s *search) solution() bool {
	e := s.e
	start := make([]int64, len(s.p.Activities))
	for i := range start {
		start[i] = e.lb[startOf(i)]
	}
	if err := s.p.Check(start); err != nil {
		panic("rcpsp: search: " + err.Error())
	}
	s.best, s.upper = start, s.p.Makespan(start)
	e.back(0)
	s.over = !e.set(lit{s.makespan ^ 1, 1 - s.upper}, reason{kind: byLits})
	return !s.over
}

// restart begins a new run. The learnt clauses stay, up to limits.
func (s *search) restart() {
	s.restarts++
	s.budget = luby(s.restarts) * restartConflicts
	s.probing = !s.opt.NoProbing && s.restarts%probeEvery == 1
	s.e.back(0)
	if s.e.learnt > s.clauses || s.e.size > s.opt.MaxLiterals {
		s.clauses += moreClauses
		s.e.reduce(s.opt.MaxLiterals)
	}
	if len(s.e.splits.all) > s.opt.MaxLiterals/4 {
		s.e.splits = newSplits()
	}
}

// luby is the i-th number, from 1, of Luby's sequence 1, 1, 2, 1, 1, 2, 4, ...
func luby(i int64) int64 {
	for {
		k := int64(1)
		for k<<1 <= i+1 {
			k <<= 1
		}
		if k == i+1 {
			return k / 2
		}
		i -= k - 1
	}
}

// branch chooses a literal to decide, if a start is open. First the open activity with
// the earliest start gets it, which makes schedules; once there are conflicts to go by,
// the split that they turned on most of late decides, for its lower side.
func (s *search) branch() (lit, bool) {
	e := s.e
	if !s.opt.NoLearnt && s.conflicts > dives {
		if k, ok := e.splits.next(e); ok {
			return lit{2 * k.pair, k.v}.not(), true
		}
	}
	first := int32(-1)
	for i := range s.p.Activities {
		x := startOf(i)
		if e.fixed(x) {
			continue
		}
		if first < 0 || e.lb[x] < e.lb[first] || e.lb[x] == e.lb[first] && e.ub(x) < e.ub(first) {
			first = x
		}
	}
	if first < 0 {
		return lit{}, false
	}
	return lit{first ^ 1, -e.lb[first]}, true
}
