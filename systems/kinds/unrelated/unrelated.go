package unrelated

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
)

// Limits that keep sums of times within 64 bits, and problems within what tables of pairs of machines hold.
const (
	maxSum      = int64(1) << 60 // of a time for each job
	maxJobs     = 1 << 14
	maxMachines = 256
)

// A Job is known by its index in Problem.Jobs.
type Job struct {
	Name string
	// Picos is its time on each machine, in picoseconds; 0: it can't run there.
	Picos []int64
	After []Arc
}

// An Arc is from a job of smaller number, which must have ended, Picos before if on another machine.
type Arc struct {
	Job   int
	Picos int64
}

// A Problem is jobs for a number of machines.
type Problem struct {
	Name     string
	Machines int
	Jobs     []Job
}

// A Plan has the machine and the start of each job.
type Plan struct {
	Machine []int
	Start   []int64
}

// InputError describes a mistake in a problem or a plan.
type InputError = strict.InputError

func (p *Problem) bad(field string, found any, want string, args ...any) error {
	return strict.Error(p.Name, field, fmt.Sprint(found), fmt.Sprintf(want, args...))
}

// Validate reports the first thing that makes p no problem, as an *InputError.
func (p *Problem) Validate() error {
	if p.Machines < 1 || p.Machines > maxMachines {
		return p.bad("machines", p.Machines, "1 to %d", maxMachines)
	}
	if len(p.Jobs) > maxJobs {
		return p.bad("jobs", len(p.Jobs), "at most %d", maxJobs)
	}
	maxPicos := maxSum / int64(max(1, len(p.Jobs)))
	for j := range p.Jobs {
		at := fmt.Sprintf("job %d: ", j)
		if n := len(p.Jobs[j].Picos); n != p.Machines {
			return p.bad(at+"times", n, "one for each of %d machines", p.Machines)
		}
		for _, c := range p.Jobs[j].Picos {
			if c < 0 || c > maxPicos {
				return p.bad(at+"time", c, "0 to %d ps", maxPicos)
			}
		}
		if slices.Max(p.Jobs[j].Picos) == 0 {
			return p.bad(at+"times", "none", "a machine that runs it")
		}
		for _, a := range p.Jobs[j].After {
			if a.Job < 0 || a.Job >= j {
				return p.bad(at+"comes after", a.Job, "0 to %d", j-1)
			}
			if a.Picos < 0 || a.Picos > maxPicos {
				return p.bad(at+"passing", a.Picos, "0 to %d ps", maxPicos)
			}
		}
	}
	return nil
}

// Check gives the makespan of a plan of a valid problem in picoseconds, or the first rule it breaks, as an *InputError.
func (p *Problem) Check(x *Plan) (makespan int64, err error) {
	if len(x.Machine) != len(p.Jobs) || len(x.Start) != len(p.Jobs) {
		return 0, p.bad("plan", fmt.Sprintf("%d machines and %d starts", len(x.Machine), len(x.Start)), "%d", len(p.Jobs))
	}
	end := func(j int) int64 { return x.Start[j] + p.Jobs[j].Picos[x.Machine[j]] }
	order := x.Order()
	last := make([]int64, p.Machines)
	for j, m := range x.Machine {
		if m < 0 || m >= p.Machines || p.Jobs[j].Picos[m] == 0 {
			return 0, p.bad(fmt.Sprintf("job %d: machine", j), m, "one that runs it")
		}
	}
	for _, j := range order {
		m, from := x.Machine[j], int64(0)
		for _, a := range p.Jobs[j].After {
			t := end(a.Job)
			if x.Machine[a.Job] != m {
				t += a.Picos
			}
			from = max(from, t)
		}
		if from = max(from, last[m]); x.Start[j] < from {
			return 0, p.bad(fmt.Sprintf("job %d: start", j), x.Start[j], "at least %d", from)
		}
		last[m] = end(j)
		makespan = max(makespan, last[m])
	}
	return makespan, nil
}

// Order lists the jobs by their starts, of equal ones by number.
func (x *Plan) Order() []int {
	order := solve.Numbers(len(x.Start))
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x.Start[a] < x.Start[b]:
			return -1
		case x.Start[a] > x.Start[b]:
			return 1
		}
		return 0
	})
	return order
}

// Options are settings of [Solve]. The work that a limit counts is states of all blocks; 0 is 2 million. A start is a
// plan to be no worse than.
type Options = solve.Options[*Plan]

// A Result is a method's answer. Times are in picoseconds.
type Result struct {
	Method string
	Status milp.Status
	Stop   milp.Stop // what ended the method early
	Plan   *Plan
	Picos  int64 // the plan's makespan; none is less than Bound
	Bound  int64
	States int64 // of branch and bound
	Blocks int   // between cuts
}

// Outcome summarises the result, in seconds.
func (r *Result) Outcome() solve.Outcome {
	return solve.Outcome{Status: r.Status, Objective: float64(r.Picos) * 1e-12, Bound: float64(r.Bound) * 1e-12,
		Stop: r.Stop}
}

var rows = solve.Table[func(context.Context, *solver) error]{
	{Method: solve.Method{Name: "search", Description: "branch and bound of each block between cuts", Exact: true},
		Run: func(ctx context.Context, s *solver) error { return s.join(ctx, s.search) }},
	{Method: solve.Method{Name: "ilp", Description: "integer program of each block between cuts", Exact: true,
		NeedsSolver: true},
		Run: func(ctx context.Context, s *solver) error { return s.join(ctx, s.ilp) }},
	{Method: solve.Method{Name: "greedy", Description: "the longest way first, where it ends first"},
		Run: func(context.Context, *solver) error { return nil }},
}

// Solve schedules by the named method, none worse than greedy. If ctx or a limit ends, the result has the best plan so
// far with a bound and the reason; errors are for input.
func Solve(ctx context.Context, p *Problem, method string, opt Options) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m, err := rows.Find(method, opt.Solver)
	if err != nil {
		return nil, fmt.Errorf("unrelated: %w", err)
	}
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("unrelated: %w", err)
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	all := part{p: p, to: len(p.Jobs), entry: -1, exit: -1}
	s := &solver{p: p, opt: opt, left: opt.WorkLimit, r: &Result{Method: method, Status: milp.Feasible}}
	if s.left <= 0 {
		s.left = 2_000_000
	}
	s.r.Plan = all.list()
	s.r.Picos, s.r.Bound = all.makespan(s.r.Plan), all.bound()
	if opt.Start != nil {
		t, err := p.Check(opt.Start)
		if err != nil {
			return nil, fmt.Errorf("the plan to start from: %w", err)
		}
		s.take(opt.Start, t)
	}
	if err := m.Run(ctx, s); err != nil {
		return nil, err
	}
	s.r.Bound = min(s.r.Bound, s.r.Picos)
	if s.r.Bound == s.r.Picos {
		s.r.Status, s.r.Stop = milp.Optimal, milp.Complete
	}
	return s.r, nil
}

type solver struct {
	p    *Problem
	opt  Options
	left int64 // states
	r    *Result
}

func (s *solver) take(x *Plan, picos int64) {
	if picos < s.r.Picos {
		s.r.Plan, s.r.Picos = x, picos
	}
}

// never is longer than any plan that is looked for.
const never = int64(math.MaxInt64 / 4)

// A part is the jobs from one on, up to another, which follow a cut on machine entry that ends at time 0 (-1: nothing),
// and of which the last runs on machine exit (-1: any).
type part struct {
	p           *Problem
	from, to    int
	entry, exit int
}

// picos is a job's time on a machine, 0 if it does not run there.
func (b *part) picos(j, m int) int64 {
	if j == b.to-1 && b.exit >= 0 && m != b.exit {
		return 0
	}
	return b.p.Jobs[j].Picos[m]
}

// cuts lists where blocks end: behind each cut, and behind the last job.
func (p *Problem) cuts() (ends []int) {
	n := len(p.Jobs)
	last, behind := make([]int, n), make([]bool, n) // the last successor, n without one
	least := n                                      // the last predecessor of a job behind c, of all the first
	for c := n - 1; c >= 0; c-- {
		behind[c] = least >= c
		if last[c] == 0 {
			last[c] = n
		}
		before := -1
		for _, a := range p.Jobs[c].After {
			before, last[a.Job] = max(before, a.Job), max(last[a.Job], c)
		}
		least = min(least, before)
	}
	far := -1 // the last successor of those before c
	for c := range n {
		if c == n-1 || behind[c] && far <= c {
			ends = append(ends, c+1)
		}
		far = max(far, last[c])
	}
	return ends
}

// join solves the blocks and puts them together. inner gives a plan of a part and a bound.
func (s *solver) join(ctx context.Context, inner func(context.Context, *part) (*Plan, int64, error)) error {
	if len(s.p.Jobs) == 0 {
		return nil
	}
	ends, from := s.p.cuts(), 0
	type way struct {
		picos, bound int64
		plan         *Plan // of the block
		entry        int
	}
	table := [][]way{{{}}}
	for k, to := range ends {
		before, exits := table[k], s.p.Machines
		if k == len(ends)-1 {
			exits = 1 // nothing asks where it ends
		}
		row := make([]way, exits)
		for m := range row {
			row[m] = way{picos: never, bound: never}
			for e, w := range before {
				b := &part{p: s.p, from: from, to: to, entry: e, exit: m}
				if k == 0 {
					b.entry = -1
				}
				if exits == 1 {
					b.exit = -1
				}
				if w.bound >= never || b.exit >= 0 && b.picos(to-1, m) == 0 {
					continue
				}
				if why := solve.Why(ctx); why != milp.Complete {
					s.r.Stop = why
					return nil
				}
				x, bound, err := inner(ctx, b)
				if err != nil {
					return err
				}
				row[m].bound = min(row[m].bound, w.bound+bound)
				if t := w.picos + b.makespan(x); t < row[m].picos {
					row[m].picos, row[m].plan, row[m].entry = t, x, e
				}
			}
		}
		table, from = append(table, row), to
	}
	s.r.Blocks = len(ends)
	last := table[len(ends)][0]
	s.r.Bound = max(s.r.Bound, last.bound)
	all := &Plan{make([]int, len(s.p.Jobs)), make([]int64, len(s.p.Jobs))}
	for k, w := len(ends), last; k > 0; k-- {
		from, shift := 0, int64(0)
		if k > 1 {
			from, shift = ends[k-2], table[k-1][w.entry].picos
		}
		copy(all.Machine[from:], w.plan.Machine)
		for j, t := range w.plan.Start {
			all.Start[from+j] = t + shift
		}
		w = table[k-1][w.entry]
	}
	t, err := s.p.Check(all)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	s.take(all, t)
	return nil
}

// makespan of a plan of a part, whose jobs are numbered from 0.
func (b *part) makespan(x *Plan) (t int64) {
	for j, m := range x.Machine {
		t = max(t, x.Start[j]+b.p.Jobs[b.from+j].Picos[m])
	}
	return t
}

// arrives is when job j of the part can start on a machine as far as job a.Job is concerned, which ended on another.
func (b *part) arrives(a Arc, m int, machine []int, end []int64) int64 {
	on, t := b.entry, int64(0)
	if a.Job >= b.from {
		on, t = machine[a.Job-b.from], end[a.Job-b.from]
	}
	if on != m {
		t += a.Picos
	}
	return t
}

// tails are the longest ways behind the jobs of a part, themselves left out: each job in its least time.
func (b *part) tails() []int64 {
	tail := make([]int64, b.to-b.from)
	for j := b.to - 1; j >= b.from; j-- {
		for _, a := range b.p.Jobs[j].After {
			if a.Job >= b.from {
				tail[a.Job-b.from] = max(tail[a.Job-b.from], tail[j-b.from]+b.least(j))
			}
		}
	}
	return tail
}

func (b *part) least(j int) int64 {
	least := never
	for m := range b.p.Machines {
		if c := b.picos(j, m); c > 0 {
			least = min(least, c)
		}
	}
	return least
}

// list is the list method.
func (b *part) list() *Plan {
	n := b.to - b.from
	x, end, free := &Plan{make([]int, n), make([]int64, n)}, make([]int64, n), make([]int64, b.p.Machines)
	tail, done := b.tails(), make([]bool, n)
	for range n {
		pick := -1
		for j := range n {
			if !done[j] && b.ready(j, done) && (pick < 0 || tail[j]+b.least(b.from+j) > tail[pick]+b.least(b.from+pick)) {
				pick = j
			}
		}
		best := never
		for m := range free {
			c := b.picos(b.from+pick, m)
			if c == 0 {
				continue
			}
			t := free[m]
			for _, a := range b.p.Jobs[b.from+pick].After {
				t = max(t, b.arrives(a, m, x.Machine, end))
			}
			if t+c < best {
				best, x.Machine[pick], x.Start[pick] = t+c, m, t
			}
		}
		done[pick], end[pick], free[x.Machine[pick]] = true, best, best
	}
	return x
}

func (b *part) ready(j int, done []bool) bool {
	for _, a := range b.p.Jobs[b.from+j].After {
		if a.Job >= b.from && !done[a.Job-b.from] {
			return false
		}
	}
	return true
}

// bound is the larger of the longest path and the fractional load.
func (b *part) bound() int64 {
	longest, tail := int64(0), b.tails()
	for j := range tail {
		longest = max(longest, tail[j]+b.least(b.from+j))
	}
	load, _ := bound.Load(b.costs())
	return max(longest, whole(load))
}

// whole rounds a bound in picoseconds up, but for what sums of doubles may have added.
func whole(bound float64) int64 { return int64(math.Ceil(bound * (1 - 1e-9))) }

func (b *part) costs() [][]float64 {
	costs := make([][]float64, b.to-b.from)
	for j := range costs {
		for m := range b.p.Machines {
			c := math.Inf(1)
			if t := b.picos(b.from+j, m); t > 0 {
				c = float64(t)
			}
			costs[j] = append(costs[j], c)
		}
	}
	return costs
}
