package ansor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/internal/suggest"
)

// Objectives are the objectives of the division of trials (§6.1). With g_i the best time of task i, and
// S_j the time of network j, the sum of w_ij g_i over its kernels:
//
//	f1  sum of S_j
//	f2  sum of max(S_j, L_j), L_j being the time that is good enough for network j
//	f3  minus the geometric mean of B_j / S_j, B_j being the time by the generator's rules
//	f4  sum of w_ij max(g_i, e_i), e_i the best time of a task that has stopped improving
var Objectives = []string{"f1", "f2", "f3", "f4"}

// Schedulers divide the trials over tasks: by the gradient of the objective, knowing that no
// time falls below the task's Floor; in turn; or by the gradient as published, which without
// that stays with a task whose operations are slow for a reason.
var Schedulers = []string{"gradient", "round-robin", "published"}

// Options are the settings of [Tune]. The zero value is the default.
type Options struct {
	Trials    int    // in all; 0: 64 for each task
	Seed      uint64 // of all that is random
	Objective string // of Objectives; "" is f1
	Scheduler string // of Schedulers; "" is gradient
	// Enough is L_j of f2, in seconds of each network; nil: 0.8 of the rules' times.
	Enough []float64
	Method Method // "" is Evolution
	// Limited keeps to what templates have (§7.1: limited tiling levels, innermost tile sizes and
	// computation locations): binding, order and places of loops, cuts of the reduction, pieces
	// and stages are those of the rules; tiles of rows and of weights, loads and room vary.
	Limited bool
	// Batch is the trials of a round; 0: 64, or fewer if each task would else have fewer than four rounds.
	Batch int
	// Population and Generations of the evolution; 0: eight for each trial of a round that it may have, from 16 to 128,
	// and 4. Mutation is the share of mutated offspring, 0: .85; the others are crossed over.
	Population, Generations int
	Mutation                float64
	// Blind leaves the rules' program out of the search, to see how many trials it takes to match it.
	Blind bool
	// Epsilon is the share of random tasks among those chosen by gradient; 0: .05.
	Epsilon float64
	// Rules and Mutations are the caller's, beside the built-in ones.
	Rules     []Rule
	Mutations []Mutation
	// Patience ends the tuning after so many trials in which the objective has not fallen; 0: never.
	Patience int
	// Workers measure at the same time; 0: one for each processor. They change nothing else.
	Workers int
	// Earlier, if not nil, lists what other tunings have measured of a task: the best of it is gone on with, and the
	// learned cost knows it. It is no part of Trials. All of it is left out where the rules' program is not among it.
	Earlier func(*Task) []Earlier
	// Known answers for programs that have been measured before.
	Known func(key, program string) (ps int64, ok bool)
	// Record, if not nil, gets each trial in order; its error ends the tuning.
	Record func(Trial) error
	// Progress, if not nil, is called after each round.
	Progress func(Progress)
}

// Earlier is a program that was measured before, and the time of as many runs as the task has in a trial.
type Earlier struct {
	Program     Program
	Picoseconds int64
}

// A Trial is a measured program.
type Trial struct {
	Task    *Task
	Round   int // of the task, from 1
	Program Program
	ID      string // of the program
	// Picoseconds is the time of Runs runs of the kernel behind each other.
	Picoseconds int64
	Runs        int
}

// Seconds is the time of one run.
func (t Trial) Seconds() float64 { return Seconds(t.Picoseconds, t.Runs) }

// Progress is the state of the tuning.
type Progress struct {
	Trials, Of int
	Task       *Task
	// Seconds is the best time of the task, RuleSeconds that of the rules.
	Seconds, RuleSeconds float64
	Objective            float64
}

// Answer is the result for a task.
type Answer struct {
	*Task
	Program              Program
	Seconds, RuleSeconds float64
	Trials               int
	// Best is the best time after each round, beginning with the rules'.
	Best []float64
}

// Outcome is the result of [Tune]. Stopped is the reason for an early end, nil without one.
type Outcome struct {
	Answers []Answer
	Trials  int
	// Curve is the objective after each round, by trials.
	Curve   []Point
	Stopped error
}

// A Point of a curve: the objective after a number of trials.
type Point struct {
	Trials    int     `json:"trials"`
	Objective float64 `json:"objective"`
}

func (o Options) normal(tasks int) (Options, error) {
	for _, x := range []struct {
		what  string
		value *string
		of    []string
	}{{"objective", &o.Objective, Objectives}, {"scheduler", &o.Scheduler, Schedulers}} {
		if *x.value == "" {
			*x.value = x.of[0]
		}
		if !slices.Contains(x.of, *x.value) {
			return o, fmt.Errorf("%s is %q%s", x.what, *x.value, suggest.Expected(*x.value, x.of))
		}
	}
	o.Method = cmp.Or(o.Method, Evolution)
	if !slices.Contains(Methods, o.Method) {
		return o, fmt.Errorf("method is %q, expected one of %v", o.Method, Methods)
	}
	if o.Trials < 0 || o.Batch < 0 || o.Population < 0 || o.Generations < 0 || o.Workers < 0 || o.Patience < 0 {
		return o, errors.New("a number of trials, programs, generations, workers or patience is negative")
	}
	o.Trials = cmp.Or(o.Trials, 64*tasks)
	o.Batch = cmp.Or(o.Batch, max(1, min(64, o.Trials/(4*max(1, tasks)))))
	o.Population, o.Generations = cmp.Or(o.Population, max(16, min(128, 8*o.Batch))), cmp.Or(o.Generations, 4)
	o.Mutation, o.Epsilon = cmp.Or(o.Mutation, .85), cmp.Or(o.Epsilon, .05)
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	return o, nil
}

// tuner is the state of the scheduler of trials.
type tuner struct {
	Options
	tasks    []*state
	networks int
	trials   int
	trained  int // trials that the learned cost has seen
	earlier  int // trials of other tunings
	out      *Outcome
	model    *Trees
}

// Tune finds programs for tasks, of which Task.Weights says how often each network runs
// them. If ctx ends first, what it has found stands in the outcome with the reason.
func Tune(ctx context.Context, tasks []*Task, o Options) (*Outcome, error) {
	o, err := o.normal(len(tasks))
	if err != nil {
		return nil, err
	}
	t := &tuner{Options: o, out: &Outcome{}, model: &Trees{}}
	for i, task := range tasks {
		s := &state{Task: task, index: i, measured: map[string]bool{}, alike: task.likeLayers()}
		if s.Task, err = o.own(task); err != nil {
			return nil, err
		}
		if o.Earlier != nil {
			s.begin(o.Earlier(task))
			t.earlier += s.earlier
		}
		t.tasks = append(t.tasks, s)
		t.networks = max(t.networks, len(task.Weights))
	}
	if t.earlier > 0 && o.Method == Evolution {
		t.train()
	}
	if o.Enough != nil && len(o.Enough) != t.networks {
		return nil, fmt.Errorf("%d times are said to be good enough, expected %d, one for each network",
			len(o.Enough), t.networks)
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	lowest, since := math.Inf(1), 0 // the objective, and the trials when it fell last
	for t.trials < o.Trials {
		s := t.next(random)
		if s == nil {
			break
		}
		if err := t.round(ctx, s); err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			t.out.Stopped = ctx.Err()
			break
		}
		if f := t.out.Curve[len(t.out.Curve)-1].Objective; s.rounds == 1 || f < lowest {
			lowest, since = f, t.trials
		}
		if o.Patience > 0 && t.trials-since >= o.Patience {
			break
		}
	}
	t.out.Trials = t.trials
	for i, s := range t.tasks {
		a := Answer{Task: tasks[i], Program: s.chosen, Trials: len(s.trials) - s.earlier}
		if s.chosen == nil { // not reached
			a.Program = s.settled(slices.Clone(s.Rule))
			ps, err := s.measure(context.WithoutCancel(ctx), a.Program)
			if err != nil {
				return nil, err
			}
			s.best = []int64{ps}
		}
		for _, ps := range s.best {
			a.Best = append(a.Best, s.seconds(ps))
		}
		a.RuleSeconds, a.Seconds = a.Best[0], a.Best[len(a.Best)-1]
		t.out.Answers = append(t.out.Answers, a)
	}
	return t.out, nil
}

// begin takes what was measured before as the first round.
func (s *state) begin(list []Earlier) {
	rule := s.settled(slices.Clone(s.Rule)).id()
	i := slices.IndexFunc(list, func(e Earlier) bool { return e.Program.id() == rule })
	if i < 0 {
		return
	}
	for _, e := range list {
		if id := e.Program.id(); s.Can(e.Program) && !s.measured[id] {
			s.measured[id] = true
			s.trials = append(s.trials, trial{e.Program, s.Features(e.Program), e.Picoseconds})
		}
	}
	if s.earlier = len(s.trials); s.earlier > 0 {
		slices.SortStableFunc(s.trials, func(a, b trial) int { return cmp.Compare(a.ps, b.ps) })
		s.chosen, s.rounds, s.best = s.trials[0].program, 1, []int64{list[i].Picoseconds, s.trials[0].ps}
	}
}

// Can reports whether the task can run a program.
func (t *Task) Can(p Program) bool {
	if len(p) != len(t.space) {
		return false
	}
	for k, n := range p {
		if n == nil || !t.space[k].allowed(n) {
			return false
		}
	}
	return true
}

// Runs is the number of runs of the kernel a trial has.
func (t *Task) Runs() int { return t.passes }

// Seconds is the time of one run, of so many in a trial.
func Seconds(ps int64, runs int) float64 { return float64(ps) * 1e-12 / float64(runs) }

// limit is the space of a template.
func (sp *space) limit() *space {
	l := *sp
	l.template = true
	l.bindings = sp.bindings[:1]
	l.sketches = []Sketch{{ColumnsFirst: sp.rule.ColumnsFirst, Stay: sp.rule.Stay, Vector: sp.rule.Vector,
		Store: sp.rule.Store}}
	l.gathers, l.groups = false, groupCounts[:1]
	return &l
}

func (t *Task) seconds(ps int64) float64 { return Seconds(ps, t.passes) }

// round trains the learned cost again, if there is much to learn, and measures some programs of a task.
func (t *tuner) round(ctx context.Context, s *state) error {
	if t.Method != Random && t.trials >= t.trained+max(8, t.trained/5) {
		t.train()
		t.trained = t.trials
	}
	s.rounds++
	r := rand.New(rand.NewPCG(t.Seed, uint64(s.index+1)<<32|uint64(s.rounds)))
	n := min(t.Batch, t.Trials-t.trials)
	s.shares = [sources]float64{drawn: 1}
	var queue []candidate
	if t.Method == Evolution {
		s.shares = t.shares(s)
		if len(t.model.trees) > 0 {
			expected := int(math.Ceil(float64(n) * s.shares[preferred]))
			queue = s.evolve(r, min(t.Population, max(16, 8*expected)), t.model, &t.Options)
		}
	}
	left := n
	for left > 0 {
		step := left
		switch t.Method {
		case Climb:
			step = 1
		case Evolution:
			if step = min(left, steps); s.chosen == nil && !t.Blind {
				step = 1
			}
		}
		list := s.propose(r, step, &queue, &t.Options)
		if len(list) == 0 {
			break
		}
		left -= len(list)
		if err := t.trial(ctx, s, list); err != nil {
			return err
		}
	}
	s.best = append(s.best, s.trials[0].ps)
	s.done = left == n
	f := t.objective()
	t.out.Curve = append(t.out.Curve, Point{t.trials, f})
	if t.Progress != nil {
		t.Progress(Progress{t.trials, t.Trials, s.Task, s.seconds(s.trials[0].ps), s.seconds(s.best[0]), f})
	}
	return nil
}

// steps is the number of programs that are measured before the best of them is gone on with, whatever the number of
// workers.
const steps = 4

// shares are the parts of a task's trials that the sources of the evolution have: by the squares of how often their
// programs were better than the best before, of this task and of all. None has nothing.
func (t *tuner) shares(s *state) (list [sources]float64) {
	const trust = 16 // in what other tasks found, in trials
	sum := 0.0
	for x := range sources {
		found, tried := 1., 8.
		for _, other := range t.tasks {
			found, tried = found+other.found[x], tried+other.tried[x]
		}
		rate := (s.found[x] + trust*found/tried) / (s.tried[x] + trust)
		list[x] = rate * rate
		sum += list[x]
	}
	for x := range list {
		list[x] /= sum
	}
	return list
}

// trial measures programs of a task.
func (t *tuner) trial(ctx context.Context, s *state, list []proposal) error {
	ps := make([]int64, len(list))
	var pool errgroup.Group
	pool.SetLimit(t.Workers)
	for i, p := range list {
		if t.Known != nil {
			if known, ok := t.Known(s.Key, p.id); ok {
				ps[i] = known
				continue
			}
		}
		pool.Go(func() (err error) {
			ps[i], err = s.measure(ctx, p.program)
			return err
		})
	}
	if err := pool.Wait(); err != nil {
		return err
	}
	for i, p := range list {
		if t.Record != nil {
			if err := t.Record(Trial{s.Task, s.rounds, p.program, p.id, ps[i], s.passes}); err != nil {
				return err
			}
		}
		if len(s.trials) == 0 {
			s.best = append(s.best, ps[0])
		} else if ps[i] < s.trials[0].ps {
			s.found[p.of]++
		}
		s.tried[p.of]++
		s.measured[p.id] = true
		at, _ := slices.BinarySearchFunc(s.trials, ps[i]+1, func(x trial, ps int64) int { return cmp.Compare(x.ps, ps) })
		s.trials = slices.Insert(s.trials, at, trial{p.program, s.Features(p.program), ps[i]})
	}
	s.chosen = s.trials[0].program
	t.trials += len(list)
	return nil
}

// trainedOn bounds the programs of a task that the learned cost is trained on: the fastest, and others evenly chosen.
const trainedOn = 400

func (t *tuner) train() {
	var samples []Measured
	for _, s := range t.tasks {
		step := max(1, float64(len(s.trials))/trainedOn)
		for at := 0.0; int(at) < len(s.trials); at += step {
			x := &s.trials[int(at)]
			samples = append(samples, Measured{x.features, float64(s.trials[0].ps) / float64(x.ps)})
		}
	}
	t.model = Fit(samples, fewTrees)
}

// g is the best time of a task.
func (s *state) g(rounds int) float64 { return s.seconds(s.best[max(0, min(rounds, len(s.best)-1))]) }

// times returns the networks' times, by the best programs or by the rules.
func (t *tuner) times(rules bool) []float64 {
	sums := make([]float64, t.networks)
	for _, s := range t.tasks {
		if len(s.best) == 0 {
			continue
		}
		g := s.g(s.rounds)
		if rules {
			g = s.g(0)
		}
		for j, w := range s.Weights {
			sums[j] += float64(w) * g
		}
	}
	return sums
}

func (t *tuner) enough() []float64 {
	if t.Enough != nil {
		return t.Enough
	}
	list := t.times(true)
	for j := range list {
		list[j] *= .8
	}
	return list
}

// objective is the options' objective of the results so far.
func (t *tuner) objective() (f float64) {
	times := t.times(false)
	switch t.Objective {
	case "f2":
		for j, l := range t.enough() {
			f += max(times[j], l)
		}
	case "f3":
		logs := 0.0
		for j, b := range t.times(true) {
			if b > 0 { // else nothing of the network has been measured
				logs += math.Log(b / times[j])
			}
		}
		f = -math.Exp(logs / float64(len(times)))
	default: // f4 counts what has stopped as it is, so its value is f1's
		for _, s := range times {
			f += s
		}
	}
	return f
}

// slope is the derivative of the objective by the time of a task.
func (t *tuner) slope(s *state) (d float64) {
	switch t.Objective {
	case "f2":
		times := t.times(false)
		for j, l := range t.enough() {
			if j < len(s.Weights) && times[j] > l {
				d += float64(s.Weights[j])
			}
		}
		return d
	case "f3":
		f, times := t.objective(), t.times(false)
		for j, w := range s.Weights {
			if w > 0 {
				d -= f / float64(len(times)) * float64(w) / times[j]
			}
		}
		return d
	case "f4":
		if n := len(s.best); n > earlyStop && s.best[n-1] == s.best[n-1-earlyStop] {
			return 0
		}
	}
	for _, w := range s.Weights {
		d += float64(w)
	}
	return d
}

// The constants of §6.2: trust in the past, trust in similar tasks, and rounds to look back.
const (
	alpha     = .2
	beta      = 2
	lookBack  = 3
	earlyStop = 5 // rounds without a better program that end a task's part in f4
)

// next is the task for the next round; nil if there is nothing left to find for any.
func (t *tuner) next(r *rand.Rand) *state {
	var open []*state
	for _, s := range t.tasks {
		if s.rounds == 0 {
			return s // a round for each first
		}
		if !s.done {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return nil
	}
	least := slices.MinFunc(open, func(a, b *state) int { return cmp.Compare(a.rounds, b.rounds) })
	if t.Scheduler == "round-robin" {
		return least
	}
	if r.Float64() < t.Epsilon {
		return open[r.IntN(len(open))]
	}
	var best *state
	steepest := 0.0
	rates := t.rates()
	for _, s := range open {
		if d := t.gradient(s, rates); d < steepest {
			best, steepest = s, d
		}
	}
	if best == nil { // nothing to gain: what had fewest rounds
		return least
	}
	return best
}

// gradient is the expected change of the objective by a round for a task (§6.2).
func (t *tuner) gradient(s *state, rates map[string][2]rate) float64 {
	now, rounds := s.g(s.rounds), float64(s.rounds)
	back := min(lookBack, s.rounds)
	past := (now - s.g(s.rounds-back)) / float64(back)
	ahead := -now / rounds
	others := rates[s.kinds][0]
	if others.of == s {
		others = rates[s.kinds][1]
	}
	if others.perSecond > 0 {
		ahead = min(ahead, beta*float64(s.Operations)/others.perSecond-now)
	}
	if t.Scheduler == "gradient" {
		ahead = max(ahead, -max(0, now-s.Floor)/rounds)
		// A program changes two layers or so: to change all takes more rounds.
		ahead *= min(1, 2/float64(len(s.space)))
	}
	return t.slope(s) * (alpha*past + (1-alpha)*ahead)
}

// A rate is the operations a second that a task reaches.
type rate struct {
	of        *state
	perSecond float64
}

// rates are the two highest of tasks that run operators of the same kinds.
func (t *tuner) rates() map[string][2]rate {
	rates := map[string][2]rate{}
	for _, s := range t.tasks {
		if len(s.best) == 0 {
			continue
		}
		now, most := rate{s, float64(s.Operations) / s.g(s.rounds)}, rates[s.kinds]
		if now.perSecond > most[0].perSecond {
			rates[s.kinds] = [2]rate{now, most[0]}
		} else if now.perSecond > most[1].perSecond {
			rates[s.kinds] = [2]rate{most[0], now}
		}
	}
	return rates
}
