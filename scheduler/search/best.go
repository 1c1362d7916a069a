// Package search improves the decisions of a schedule together, by the simulator's judgement.
//
// [Best] begins with the schedules of recipes. It proposes other groups at costs that it learns, changes one decision
// after the other by the moves of the pipeline's rows, and keeps what simulates faster. docs/architecture.md has a page
// on it.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// BestOptions are the settings of [Best]. The zero value is the default. Of Options, Chunk 0 stands for every divisor
// of a cluster's share, and InPlace is not looked at: both are tried.
type BestOptions struct {
	scheduler.Options
	// Better, if not nil, is called with each better schedule and each round of evaluations.
	// The objective is a latency in seconds.
	Better func(p milp.Progress) `json:"-"`
	// Recipes are the recipes that the search begins with; nil: all.
	Recipes []scheduler.Recipe
	// Start is a simulated schedule of the same network, batch and machine to go on from; nil: none.
	Start *scheduler.Result
	// Evaluations is the number of simulated schedules beside those of the recipes; 0: as many
	// as take about a minute on two cores, the same everywhere.
	Evaluations int
	Seed        uint64 // of the random choices
	// Threads is the number of schedules simulated at a time, which changes nothing of what is
	// found; 0: as many as Go uses cores.
	Threads int `json:"-"`
	// Objective is the quantity that is minimised; "": the latency. Better and Trajectory report latencies all the same.
	Objective Objective

	capEvaluations bool // no more evaluations than the default
}

// Found is the answer of [Best].
type Found struct {
	*scheduler.Result
	// Greedy is the recipe cross-layer with default options at its best chunk, whatever
	// Options.Chunk is; nil if it can't be had, or the search ended before it. Its program may be nil.
	Greedy *scheduler.Result
	// Starts are the recipes' results that the search began with, each at its best chunk. Those that take hopeless
	// times as long as others of their chunk, or hopelessAll times as long as the default, are left out.
	Starts []Start
	// Evaluations counts the schedules that were simulated, Trajectory the better ones.
	Evaluations int
	Trajectory  []Improvement
	decisions   *scheduler.Decisions // of the result
	problem     *scheduler.Problem
	// Unended says which recipes did not end at which chunks, or the default at all, so that the answer may be worse than
	// theirs; "": none.
	Unended string
	Stop    milp.Stop // complete, or time or cancelled: then the answer depends on when that was
}

// An Improvement of the search is a schedule that is better than all before it.
type Improvement struct {
	Evaluations    int     `json:"evaluations"` // up to this one
	LatencySeconds float64 `json:"latency_s"`
	EnergyJoules   float64 `json:"energy_j,omitempty"` // 0: no figures
	Move           string  `json:"move"`               // what made it
}

// A Start is a schedule that a recipe made.
type Start struct {
	Recipe              string  `json:"variant"`
	InPlace             bool    `json:"in_place"`
	Slices              bool    `json:"in_slices,omitempty"` // of the graph with feed-forwards in slices
	Chunk               int64   `json:"chunk"`
	ThroughputPerSecond float64 `json:"throughput_per_s"`
}

// The default number of evaluations is the number of schedules with so many commands for a cluster
// together, which take about a minute on two cores, and no more than maxDefault; the variant's is
// no more than that of graphs with fewOperators together.
const (
	defaultCommands = 50_000_000
	maxDefault      = 10_000
	fewOperators    = 500_000
)

// Best looks for the schedule of least simulated latency. It searches from the greedy recipes at all chunks, with
// operators in place and not, and runs all other recipes as well, so that it is never worse than any of them unless
// time ends; splits by measured prices simulate 32 paths here, since the search goes on from them. Recipes that make an
// operator of each attention schedule another graph; the search goes on in the graph of what it starts from. If ctx or
// the time limit ends, it returns the best so far, if there is one.
func Best(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, opt BestOptions) (*Found,
	error) {
	if err := scheduler.CheckInput(net, machine, batch); err != nil {
		return nil, err
	}
	spec, err := opt.Level.Machine(machine)
	if err != nil {
		return nil, err
	}
	if err := opt.Objective.check(spec); err != nil {
		return nil, err
	}
	if opt.Clusters != scheduler.OverBatch {
		return nil, fmt.Errorf("clusters is %q, expected %q: the search divides the batch over them", opt.Clusters.Name(),
			scheduler.OverBatch.Name())
	}
	if opt.Threads < 0 {
		return nil, fmt.Errorf("threads is %d, expected 0 or more", opt.Threads)
	}
	for _, r := range opt.Recipes {
		if err := r.Searchable(); err != nil {
			return nil, err
		}
	}
	limited, until, limit := ctx, time.Time{}, opt.TimeLimit
	if limit > 0 {
		until = time.Now().Add(limit)
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	began, even := time.Now(), schedule.Shares(batch, spec.Clusters)
	from, known, late, err := opt.from(limited, limit/4, net, machine, batch)
	if err != nil {
		return nil, err
	}
	w := scheduler.NewProblem(net, machine, spec, batch, opt.Options)
	if from != nil && from.Clusters == scheduler.OverBatch && len(from.Shares) == len(even) {
		w.Shares = from.Shares
	}
	share := w.Shares[0]
	chunks := []int64{opt.Chunk}
	switch {
	case opt.Chunk == 0:
		chunks = schedule.Divisors(share, scheduler.MaxTunedChunk)
		if from != nil && from.Chunk <= share && !slices.Contains(chunks, from.Chunk) {
			chunks = append(chunks, from.Chunk)
			slices.Sort(chunks)
		}
		slices.Reverse(chunks)
	case opt.Chunk < 0 || opt.Chunk > share:
		return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements of a cluster", opt.Chunk, share)
	}
	opt.TimeLimit, opt.TimeLimitOnly = 0, false // of the exact strategies, which end at a number of states
	opt.Options.Progress = nil
	s := &seeker{w: w, from: from, opt: opt, began: began, until: until, found: &Found{},
		ended: map[ending]bool{}, starts: map[family]startAt{}}
	s.found.problem = s.w
	if known != nil {
		s.known = known.Sim.TotalPs
		s.offer(known, nil, recipes.Default)
	}
	other := s.opt.Chunk > 0 && !s.opt.capEvaluations || !slices.Equal(w.Shares, even)
	var greedy *scheduler.Result
	if other { // the starts are of one chunk, or not of even shares
		greedy = s.greedy(limited, limit/4)
	}
	err = s.all(limited, chunks)
	if s.found.Unended = s.unended(chunks); late {
		s.found.Unended = strings.TrimSuffix(recipes.Default+" as by default; "+s.found.Unended, "; ")
	}
	if !s.begun || other {
		s.found.Greedy = greedy
	}
	switch {
	case ctx.Err() != nil:
		s.found.Stop = milp.StopCancelled
	case limited.Err() != nil:
		s.found.Stop = milp.StopTime
	case err != nil:
		return nil, err
	}
	switch {
	case s.found.Result != nil:
		s.found.Result = s.found.Result.Improved()
		return s.found, nil
	case s.found.Stop == milp.StopTime:
		return nil, fmt.Errorf("no schedule was found in %v; give a longer --time-limit", limit)
	}
	return nil, cmp.Or(ctx.Err(), s.failed, errors.New("none of the recipes can be used with these options"))
}

// from is the schedule to go on from: the one that is given or, where the default variant is among the recipes and has
// one that no recipe starts with, that; see [scheduler.Result.Beyond]. known is the default's in any case.
func (o BestOptions) from(ctx context.Context, limit time.Duration, net network.Network, machine *hardware.Spec,
	batch int64) (from, known *scheduler.Result, late bool, err error) {
	named := func(r scheduler.Recipe) bool { return r.Name == recipes.Default }
	if o.Start != nil || o.Recipes != nil && !slices.ContainsFunc(o.Recipes, named) {
		return o.Start, nil, false, nil
	}
	r, err := recipes.Lookup(recipes.Default)
	if err != nil {
		return nil, nil, false, err
	}
	opt := o.Options
	opt.TimeLimit, opt.TimeLimitOnly, opt.InPlace, opt.Progress, opt.Chunks, opt.Deciding = 0, false, false, nil, nil, nil
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(limit, math.MaxInt64))
	defer cancel()
	x, err := scheduler.Run(ctx, net, machine, batch, r, opt)
	switch {
	case err != nil:
		return nil, nil, ctx.Err() != nil, nil // the search says why, or what it has found
	case x.Clusters == scheduler.OverBatch && x.Beyond():
		from = x
	}
	return from, x, false, nil
}

// greedy is [Found.Greedy] where the search begins with others than it; nil: it took longer than the limit.
func (s *seeker) greedy(ctx context.Context, limit time.Duration) *scheduler.Result {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(limit, math.MaxInt64))
	defer cancel()
	opt := s.opt.Options
	opt.Chunk, opt.Figures = 0, true
	if r, err := recipes.Lookup(recipes.Greedy); err == nil {
		if x, err := scheduler.Run(ctx, s.w.Net, s.w.Machine, s.w.Batch, r, opt); err == nil {
			return x
		}
	}
	return nil
}

func init() { scheduler.RegisterSearch(whole) }

// whole runs a recipe that improves what it begins with.
func whole(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r scheduler.Recipe,
	opt scheduler.Options) (*scheduler.Result, error) {
	opt.TimeLimit = 0 // it is of single decisions
	first, err := recipes.Lookup(recipes.Greedy)
	if err != nil {
		return nil, err
	}
	found, err := Best(ctx, net, machine, batch, BestOptions{Options: opt,
		Recipes: append([]scheduler.Recipe{first}, recipes.Tiled()...), Evaluations: r.Evaluations, capEvaluations: true})
	if err == nil {
		err = ctx.Err() // the answer would depend on when it was
	}
	if err != nil {
		return nil, err
	}
	found.Recipe.Name, found.Recipe.Description = r.Name, r.Description
	found.Program.Name = found.Result.ProgramName()
	return found.Result, nil
}

// seeker is a search under way.
type seeker struct {
	w       *scheduler.Problem
	from    *scheduler.Result // to go on from; nil: none
	known   int64             // picoseconds of the default; 0: not asked for, or there is none
	opt     BestOptions
	began   time.Time
	until   time.Time // zero: no limit
	found   *Found
	failed  error              // the first recipe's, at its first chunk
	begun   bool               // all of the greedy recipes' starts were simulated
	starts  map[family]startAt // the best of each
	floors  map[int64]float64  // picoseconds that chunks take at least
	recipes []scheduler.Recipe
	ended   map[ending]bool
	// simulated is the part of an evaluation that is not counted yet.
	simulated float64
}

// ending is of a recipe at a chunk.
type ending struct {
	recipe string
	chunk  int64
}

// unended lists the recipes that did not end at some chunks.
func (s *seeker) unended(chunks []int64) string {
	var list []string
	names := map[string][]string{}
	for _, r := range s.recipes {
		var left []string
		for _, c := range chunks {
			if g, err := s.w.Graph(c); err == nil && !s.ended[ending{r.Name, c}] && !r.Idle(g, s.w.Spec) {
				left = append(left, fmt.Sprint(c))
			}
		}
		if at := strings.Join(left, ", "); at != "" {
			if names[at] == nil {
				list = append(list, at)
			}
			names[at] = append(names[at], r.Name)
		}
	}
	for i, at := range list {
		list[i] = fmt.Sprintf("%s at chunks of %s", strings.Join(names[at], ", "), at)
	}
	return strings.Join(list, "; ")
}

// threads is the number of schedules simulated at a time.
func (s *seeker) threads() int { return cmp.Or(s.opt.Threads, runtime.GOMAXPROCS(0)) }

// promise estimates the best score of a chunk of which a schedule has a score: halfway, by logarithms, to what it takes
// at least. Some chunks have better starts, others leave more to be found.
func (s *seeker) promise(chunk int64, score float64) float64 {
	return math.Sqrt(score * s.floors[chunk])
}

// A family has the schedules of a chunk and a graph whose products run in tiles by rule, or not: the search rarely
// comes from one to another.
type family struct {
	chunk int64
	graph *model.Graph
	tiled bool
}

// startAt is the result of a recipe.
type startAt struct {
	*scheduler.Decisions
	scheduler.Outline
}

// begins notes a start of its family, if it is the best.
func (s *seeker) begins(x startAt) error {
	g, err := s.w.GraphOf(x.Decisions)
	key := family{x.Chunk, g, x.Tiled()}
	if best := s.starts[key]; err == nil && (best.Decisions == nil || x.Score < best.Score) {
		s.starts[key] = x
	}
	if r := s.found.Result; r != nil && s.found.decisions == nil && x.Score == s.score(r) {
		s.found.decisions = x.Decisions // of the default, which had none
	}
	return err
}

// bestAt is the best start of a chunk; it has no decisions if there is none.
func (s *seeker) bestAt(chunk int64) (best startAt) {
	for _, x := range s.families(chunk) {
		if best.Decisions == nil || x.Score < best.Score {
			best = x
		}
	}
	return best
}

// families are the starts of a chunk, one of each family.
func (s *seeker) families(chunk int64) (list []startAt) {
	for key, x := range s.starts {
		if key.chunk == chunk {
			list = append(list, x)
		}
	}
	row, _ := scheduler.LookupStage("rewrite")
	order := func(x startAt) (n int) {
		n = 2 * slices.IndexFunc(row.Strategies, func(st scheduler.Strategy) bool { return st.Name == x.Form() })
		if x.Tiled() {
			n++
		}
		return n
	}
	slices.SortFunc(list, func(a, b startAt) int { return order(a) - order(b) })
	return list
}

// maxOpsInPlace is the largest network that in-place grouping starts on; beyond it, each operator that joins a group
// would recount it.
const maxOpsInPlace = 10_000

// A beginning is a recipe's schedule of a chunk, in place or not.
type beginning struct {
	recipe  scheduler.Recipe
	sliced  bool // other than the recipe
	inPlace bool
	chunk   int64
	made    *scheduler.Result
	scheduler.Outline
	err   error
	ended bool // and was not cut short
}

// beginnings lists the schedules to start from: each recipe at each chunk, in place and not. The greedy recipe also
// starts with feed-forwards in slices, where that pays.
func (s *seeker) beginnings(list []scheduler.Recipe, chunks []int64) (starts []beginning, err error) {
	for _, r := range list {
		for _, chunk := range chunks {
			g, err := s.w.Graph(chunk)
			if err != nil {
				return nil, err
			}
			if r.Idle(g, s.w.Spec) {
				continue
			}
			large := len(g.Ops) > maxOpsInPlace
			ways := []beginning{{recipe: r, chunk: chunk}}
			if r.Name == recipes.Greedy && scheduler.SlicesOf(g, s.w.Spec) != nil {
				ways = append(ways, beginning{recipe: r.Picking(scheduler.Pick{Stage: "rewrite", Strategy: "sliced"}),
					sliced: true, chunk: chunk})
			}
			for _, inPlace := range []bool{false, true} {
				if _, own := r.Own("group"); inPlace && (large || !own && r.Pick("split") == "none") {
					continue // it takes too long, or makes no difference
				}
				for _, x := range ways {
					x.inPlace = inPlace
					starts = append(starts, x)
				}
			}
		}
	}
	return starts, nil
}

// A first is the first start of a chunk: those behind it are given up where they take hopeless times as long.
type first struct {
	start int
	ended chan struct{}
	ps    int64 // 0: it could not be had
}

// firsts are the first starts of each chunk; nil where slow starts are wanted as well.
func (s *seeker) firsts(starts []beginning) map[int64]*first {
	if len(s.starts) > 0 || !s.opt.Objective.byLatency() {
		return nil
	}
	list := map[int64]*first{}
	for i, x := range starts {
		if list[x.chunk] == nil {
			list[x.chunk] = &first{start: i, ended: make(chan struct{})}
		}
	}
	return list
}

// reference reports whether a start is one of the schedules that the answer is compared with.
func (s *seeker) reference(x *beginning) bool {
	return x.recipe.Name == recipes.Greedy && !x.sliced && !x.inPlace
}

// run makes and simulates start i.
func (s *seeker) run(ctx context.Context, x *beginning, i int, f *first) {
	if f != nil && f.start == i {
		defer close(f.ended)
	}
	if x.err = ctx.Err(); x.err != nil {
		return
	}
	var limit func() int64
	if f != nil && !s.reference(x) {
		limit = func() int64 {
			if f.start == i {
				return hopelessAll * s.known
			}
			<-f.ended
			return min(int64(hopeless*float64(f.ps)), s.most())
		}
	}
	x.made, x.Outline, x.err = s.w.Fastest(ctx, x.recipe, x.inPlace, x.chunk, limit)
	x.Score = s.opt.Objective.score(x.Ps, x.Joules)
	if f != nil && f.start == i && x.err == nil {
		f.ps = min(x.Ps, s.most())
	}
}

// most is the time in picoseconds above which a start is given up whatever others of its chunk take.
func (s *seeker) most() int64 { return cmp.Or(hopelessAll*s.known, math.MaxInt64) }

// startAll simulates recipes at some chunks, as many at a time as there are threads. At a time, enough, if that is not
// zero, it leaves out what has not ended, unless there is nothing else; all says that it has left out none.
func (s *seeker) startAll(ctx context.Context, recipes []scheduler.Recipe, chunks []int64, enough time.Time) (
	all bool, err error) {
	starts, err := s.beginnings(recipes, chunks)
	if err != nil {
		return false, err
	}
	defer func() {
		for _, x := range starts {
			key := ending{x.recipe.Name, x.chunk}
			ended, known := s.ended[key]
			s.ended[key] = x.ended && (ended || !known)
		}
	}()
	begun, stop := context.WithCancel(ctx)
	firsts := s.firsts(starts)
	side := s.threads()
	if len(recipes) > 0 && recipes[0].Exact() {
		side = 1 // each tries as many schedules at a time as there are cores
	}
	// Those that run or wait to be looked at are as many as memory allows.
	ahead, threads := make(chan struct{}, 4*side), make(chan struct{}, side)
	ended, fed := make(chan int, len(starts)), make(chan struct{})
	go func() {
		defer close(fed)
		var workers sync.WaitGroup
		for i := range starts {
			ahead <- struct{}{}
			threads <- struct{}{}
			workers.Go(func() {
				s.run(begun, &starts[i], i, firsts[starts[i].chunk])
				<-threads
				ended <- i
			})
		}
		workers.Wait()
	}()
	defer func() {
		stop()
		for { // the rest ends at once
			select {
			case <-ahead:
			case <-fed:
				return
			}
		}
	}()
	var late <-chan time.Time
	if !enough.IsZero() {
		timer := time.NewTimer(time.Until(enough))
		defer timer.Stop()
		late = timer.C
	}
	over := false
	const waits, ready, judged = 0, 1, 2
	states := make([]int, len(starts))
	for left := len(starts); left > 0; {
		select {
		case i := <-ended:
			states[i] = ready
		case <-late:
			over = true
		}
		// They are looked at in order, so that none depends on which was first; when time is up, those that there are.
		for i := range starts {
			if states[i] == waits && !over {
				break
			}
			if states[i] != ready {
				continue
			}
			threads <- struct{}{}
			err := s.judge(ctx, &starts[i])
			<-threads
			if err != nil {
				return false, err
			}
			<-ahead
			states[i], left = judged, left-1
			over = over || !enough.IsZero() && !time.Now().Before(enough)
		}
		if over && left > 0 && (s.found.Result != nil || s.from != nil) {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}

// judge takes a beginning that has been simulated.
func (s *seeker) judge(ctx context.Context, x *beginning) error {
	x.ended = x.err == nil || ctx.Err() == nil
	if x.err != nil {
		if ctx.Err() == nil && !scheduler.TooLarge(x.err) {
			return x.err
		}
		s.failed = cmp.Or(s.failed, x.err)
		return nil
	}
	s.found.Evaluations++
	if x.Ps == math.MaxInt64 { // given up
		return nil
	}
	rate := float64(s.w.Batch) / (float64(x.Ps) * 1e-12)
	s.start(Start{x.recipe.Name, x.inPlace, x.sliced, x.chunk, rate})
	p := x.made.Decisions(x.inPlace, false)
	err := s.begins(startAt{p, x.Outline})
	if err != nil {
		return err
	}
	g := s.found.Greedy
	greedy := s.reference(x) && (g == nil || x.Ps < g.Sim.TotalPs)
	better := s.found.Result == nil || x.Score < s.score(s.found.Result)
	if !greedy && !better {
		x.made = nil
		return nil
	}
	made := x.made
	if x.made = nil; !x.recipe.Exact() {
		opt := s.opt.Options
		opt.InPlace, opt.Uneven = x.inPlace, made.Uneven
		made, err = s.w.ByRecipe(ctx, x.recipe, x.chunk, opt)
	}
	if err == nil {
		err = made.Simulate(ctx)
	}
	switch {
	case err != nil:
		return err
	case made.Sim.TotalPs != x.Ps:
		return fmt.Errorf("internal error, a schedule takes %d ps, its outline %d", made.Sim.TotalPs, x.Ps)
	}
	if greedy {
		s.found.Greedy = made
	}
	if better {
		move := x.recipe.Name
		if x.inPlace {
			move += ", in place"
		}
		if x.sliced {
			move += ", in slices"
		}
		s.offer(made, p, fmt.Sprintf("%s, chunks of %d", move, x.chunk))
	}
	return nil
}

// startFrom takes the schedule to go on from: the answer is never worse, and its chunk is
// searched from its decisions, if they simulate faster than what else begins there.
func (s *seeker) startFrom(ctx context.Context, chunks []int64) error {
	r, name := s.from, "start"
	if s.opt.Start == nil {
		name = recipes.Default
	}
	p := r.Decisions(r.InPlace, true)
	p.Chunk = chunks[max(0, slices.Index(chunks, r.Chunk))]
	g, err := s.w.GraphOf(p)
	if err == nil {
		err = r.Fits(s.w.Net.Name, g, s.w.Machine, s.w.Batch, chunks)
	}
	switch {
	case err != nil && s.opt.Start == nil: // decided for fewer cores, it has a graph of its own: an answer and no start
		s.offer(r, nil, name)
		return nil
	case err != nil:
		return err
	}
	greedy, err := s.own()
	if err != nil {
		return err
	}
	p = p.By(greedy)
	p.Pin()
	s.found.Evaluations++
	s.start(Start{name, r.InPlace, false, r.Chunk, r.ThroughputPerSecond()})
	s.offer(r, p, name)
	opt := s.opt.Options
	opt.Uneven = r.Uneven
	made, err := s.w.ByDecisions(ctx, p, opt)
	var x scheduler.Outline
	if err == nil {
		x, err = s.w.Outline(ctx, made, 0)
	}
	if err != nil { // it stays as it is: its decisions can't be made anew by the search's stages
		return ctx.Err()
	}
	x.Score = s.opt.Objective.score(x.Ps, x.Joules)
	return s.begins(startAt{p, x})
}

// own is the recipe that decides what a schedule to go on from leaves open.
func (s *seeker) own() (scheduler.Recipe, error) {
	list := s.opt.Recipes
	if len(list) > 0 && !slices.ContainsFunc(list, func(r scheduler.Recipe) bool { return r.Name == recipes.Greedy }) {
		return list[0], nil
	}
	return recipes.Lookup(recipes.Greedy)
}

// start keeps a recipe's best result.
func (s *seeker) start(x Start) {
	list := s.found.Starts
	i := slices.IndexFunc(list, func(y Start) bool {
		return y.Recipe == x.Recipe && y.InPlace == x.InPlace && y.Slices == x.Slices
	})
	switch {
	case i < 0:
		s.found.Starts = append(list, x)
	case x.ThroughputPerSecond > list[i].ThroughputPerSecond:
		list[i] = x
	}
}

// offer takes a result if it is better than all before it.
func (s *seeker) offer(r *scheduler.Result, p *scheduler.Decisions, move string) {
	if s.found.Result != nil && s.score(r) >= s.score(s.found.Result) {
		return
	}
	s.found.Result, s.found.decisions = r, p
	s.found.Trajectory = append(s.found.Trajectory, Improvement{s.found.Evaluations, r.LatencySeconds(), r.Joules(), move})
	if s.opt.Better != nil {
		s.opt.Better(milp.Progress{Seconds: time.Since(s.began).Seconds(), Objective: r.LatencySeconds(), Improved: true})
	}
}

// score is the value that the search makes least.
func (s *seeker) score(r *scheduler.Result) float64 {
	return s.opt.Objective.score(r.Sim.TotalPs, r.Joules())
}

// all begins with the greedy recipes, which are quick, and searches from there. The other recipes follow, at the chunk
// of what was found first, those with exact decisions last. If one of them is better than what was found, the search
// goes on from it.
func (s *seeker) all(ctx context.Context, chunks []int64) error {
	list := slices.Clone(s.opt.Recipes)
	if list == nil {
		list = recipes.All()
	}
	named := func(name string) bool {
		return slices.ContainsFunc(list, func(r scheduler.Recipe) bool { return r.Name == name })
	}
	for _, r := range recipes.Tiled() {
		if named(recipes.Default) && !named(r.Name) {
			list = append(list, r)
		}
	}
	var stages [3][]scheduler.Recipe
	for _, r := range list {
		if r.Name == recipes.Default && r.OwnGreedy() {
			continue // those that it takes the fastest of are there
		}
		r.Fallback = nil // they are among the starts
		if r.Usable(s.opt.Options) != nil || r.OnKinds(s.w.Spec) != nil {
			continue
		}
		k := 1
		if r.Name == recipes.Greedy || r.OwnGreedy() {
			k = 0
		} else if r.Exact() {
			k = 2
		}
		stages[k] = append(stages[k], r)
		s.recipes = append(s.recipes, r)
	}
	// If time ends, it had better be behind those that are fastest most often, and the greedy one, with which the answer
	// is compared: its schedules can take a minute to make. Those of tiled with many kernels can as well.
	slices.SortStableFunc(stages[0], func(a, b scheduler.Recipe) int {
		rank := func(r scheduler.Recipe) int {
			switch {
			case r.Name == recipes.Greedy:
				return 1
			case r.Pick("split") != "none":
				return 3
			case r.Overwrites(): // of the graph in slices
				return 2
			}
			return 0
		}
		return rank(a) - rank(b)
	})
	enough := s.until
	if !enough.IsZero() {
		enough = s.began.Add(s.until.Sub(s.began) / 2)
	}
	for k := 0; k < len(stages) && len(s.starts) == 0; k++ {
		all, err := s.startAll(ctx, stages[k], chunks, enough)
		if err != nil {
			return err
		}
		s.begun, stages[k] = all, nil
	}
	if s.from == nil && !slices.ContainsFunc(slices.Collect(maps.Values(s.starts)),
		func(x startAt) bool { return s.found.Result == nil || x.Score <= s.score(s.found.Result) }) {
		s.from = s.found.Result
	}
	if s.from != nil {
		if err := s.startFrom(ctx, chunks); err != nil {
			return err
		}
	}
	promising := slices.DeleteFunc(slices.Clone(chunks), func(c int64) bool { return s.bestAt(c).Decisions == nil })
	floors := map[int64]float64{}
	for _, c := range promising {
		var err error
		if floors[c], err = s.w.Floor(c); err != nil {
			return err
		}
	}
	s.floors = floors
	slices.SortStableFunc(promising, func(a, b int64) int {
		return cmp.Compare(s.promise(a, s.bestAt(a).Score), s.promise(b, s.bestAt(b).Score))
	})
	s.w.Release()
	if g := s.found.Greedy; g != nil && g != s.found.Result {
		g.Program = nil // its times are compared, and the program takes tens of megabytes
	}
	best, err := s.search(ctx, promising)
	if err != nil {
		return err
	}
	// The others take three times as long as the search and are hardly ever better: they have a tenth of the time, or
	// where none is set the chunk of what was found.
	first := chunks
	if s.found.Result != nil {
		first = []int64{s.found.Chunk}
	}
	for _, list := range stages[1:] {
		s.w.Release()
		if _, err := s.startAll(ctx, list, first, time.Time{}); err != nil {
			return err
		}
	}
	if best != nil && (!s.until.IsZero() || s.found.decisions != best.best.Decisions) {
		if err := s.again(ctx, best); err != nil {
			return err
		}
	}
	if s.until.IsZero() {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(chunks), func(c int64) bool { return slices.Contains(first, c) })
	for _, list := range stages[1:] {
		if _, err := s.startAll(ctx, list, rest, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

// A budget ends at a number of evaluations, or at a time if that is not zero.
type budget struct {
	evaluations int
	began, end  time.Time
}

// part is a share of it, from now on.
func (b budget) part(share float64) budget {
	p := budget{evaluations: int(float64(b.evaluations) * share), began: time.Now()}
	if !b.end.IsZero() {
		p.end = p.began.Add(time.Duration(share * float64(b.end.Sub(b.began))))
	}
	return p
}

// rest is the budget behind some evaluations, from now on.
func (b budget) rest(evaluations int) budget {
	return budget{b.evaluations - evaluations, time.Now(), b.end}
}

// spent is the share of it that is used up after so many evaluations, 1 at the end.
func (b budget) spent(evaluations int) float64 {
	x := float64(evaluations) / float64(max(1, b.evaluations))
	if !b.end.IsZero() {
		x = max(x, float64(time.Since(b.began))/float64(max(1, b.end.Sub(b.began))))
	}
	return min(1, x)
}

// searchShare is the part of the time limit after which the other recipes are run.
const searchShare = 0.9

// budget returns the budget of the search from the given starts.
func (s *seeker) budget(first startAt) budget {
	b := budget{evaluations: s.opt.Evaluations, began: time.Now()}
	if b.evaluations == 0 || s.opt.capEvaluations {
		b.evaluations = min(defaultCommands/max(1, first.Commands), cmp.Or(b.evaluations, maxDefault))
	}
	if s.opt.capEvaluations { // large graphs take longer to decide for than to simulate
		operators := 1
		for _, c := range first.Groups() {
			operators += len(c.Ops)
		}
		b.evaluations = min(b.evaluations, fewOperators/operators)
	}
	if !s.until.IsZero() {
		if s.opt.Evaluations == 0 || s.opt.capEvaluations {
			b.evaluations = math.MaxInt32
		}
		b.end = s.began.Add(time.Duration(searchShare * float64(s.until.Sub(s.began))))
	}
	return b
}

// searched is the number of starts searched at first, none of which is so many times slower than the best of its chunk,
// or than the default.
const (
	searched    = 6
	hopeless    = 1.5
	hopelessAll = 2
)

// halvingShare is the share of the evaluations that goes into the rounds of halving, each as much as the others.
const halvingShare = 0.5

// search improves the starts of some chunks, the best first: a share of the evaluations goes to
// all of them alike, then the worse half goes, and so on, until one is left, which has the rest
// (successive halving: Jamieson and Talwalkar, AISTATS 2016).
func (s *seeker) search(ctx context.Context, chunks []int64) (*searcher, error) {
	if len(chunks) == 0 {
		return nil, nil
	}
	all := s.budget(s.bestAt(chunks[0]))
	chunks = append(chunks[:1:1], slices.DeleteFunc(slices.Clone(chunks[1:]), func(c int64) bool {
		return s.opt.Objective.byLatency() && s.floors[c] >= float64(s.found.Sim.TotalPs)
	})...)
	var starts []startAt
	for _, c := range chunks {
		for _, x := range s.families(c) {
			same := slices.ContainsFunc(starts, func(y startAt) bool { return y.Chunk == c && y.Score == x.Score })
			if !same && x.Score <= s.bestAt(c).Score*hopeless {
				starts = append(starts, x)
			}
		}
	}
	slices.SortStableFunc(starts, func(a, b startAt) int {
		return cmp.Compare(s.promise(a.Chunk, a.Score), s.promise(b.Chunk, b.Score))
	})
	starts = starts[:min(len(starts), searched, max(1, all.evaluations/(4*perRound)))]
	var list []*searcher
	for i, x := range starts {
		list = append(list, &searcher{seeker: s, start: x, rng: rand.New(rand.NewPCG(s.opt.Seed, uint64(i)))})
	}
	before, rounds := s.found.Evaluations, bits.Len(uint(len(list)-1))
	for len(list) > 1 {
		for _, x := range list {
			if err := x.improve(ctx, all.part(halvingShare/float64(rounds*len(list)))); err != nil {
				return nil, err
			}
		}
		slices.SortStableFunc(list, func(a, b *searcher) int {
			return cmp.Compare(s.promise(a.best.Chunk, a.best.Score), s.promise(b.best.Chunk, b.best.Score))
		})
		kept := (len(list) + 1) / 2
		clear(list[kept:])
		list = list[:kept]
		s.w.Release()
	}
	return list[0], list[0].improve(ctx, all.rest(s.found.Evaluations-before))
}

// again goes on from the best schedule: with what is left of the time, or, if a recipe has made
// it after the search, a fifth of the evaluations.
func (s *seeker) again(ctx context.Context, x *searcher) error {
	all := s.budget(x.start)
	if s.until.IsZero() {
		all.evaluations /= 5
	}
	all.end = s.until
	if p := s.found.decisions; p != nil && p != x.best.Decisions {
		x = &searcher{seeker: s, start: startAt{Decisions: p}, rng: x.rng}
	}
	return x.improve(ctx, all)
}
