package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
)

// BestOptions are the settings of [Best]. The zero value is the default. Of Options,
// Chunk 0 stands for every divisor of a cluster's share, and InPlace is not looked at:
// both are tried.
type BestOptions struct {
	Options
	// Better, if not nil, hears of each better schedule and each round of evaluations.
	// The objective is a latency in seconds.
	Better func(p milp.Progress) `json:"-"`
	// Recipes are those that the search begins with; nil: all.
	Recipes []Recipe
	// Evaluations is how many schedules are simulated beside those of the recipes; 0: as many
	// as take about a minute on two cores, the same everywhere.
	Evaluations int
	Seed        uint64 // of the random choices
	// Objective is what is made least; "": the latency. Better and Trajectory report latencies
	// all the same.
	Objective Objective
	// Front collects Found.Front, for which schedules that are not the best are simulated in
	// full, too.
	Front bool
}

// Found is the answer of [Best].
type Found struct {
	*Result
	// Greedy is the recipe cross-layer with default options at its best chunk; nil if it
	// can't be had.
	Greedy *Result
	// Starts are the recipes' results that the search began with, each at its best chunk.
	Starts []Start
	// Evaluations counts the schedules that were simulated, Trajectory the better ones.
	Evaluations int
	Trajectory  []Improvement
	// Front has the schedules that none that the search saw beats in both latency and energy, by
	// latency; nil: not asked for, or no figures of energy.
	Front []Point
	plan  *plan // of the result
	world *world
	Stop  milp.Stop // complete, or time or cancelled: then the answer depends on when that was
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
	Chunk               int64   `json:"chunk"`
	ThroughputPerSecond float64 `json:"throughput_per_s"`
}

// The default number of evaluations is that of schedules with so many commands for a cluster
// together, which take about a minute on two cores, and no more than maxDefault.
const (
	defaultCommands = 50_000_000
	maxDefault      = 10_000
)

// Best looks for the schedule of least simulated latency. It begins with all recipes at
// all chunks, with operators in place and not, so that it is never worse than any of
// them. If ctx or the time limit ends, it returns the best so far, if there is one.
func Best(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, opt BestOptions) (*Found, error) {
	if err := checkBatch(batch); err != nil {
		return nil, err
	}
	spec, err := Machine(machine, opt.Level)
	if err != nil {
		return nil, err
	}
	if err := opt.Objective.check(spec); err != nil {
		return nil, err
	}
	opt.Front = opt.Front && spec.Energy != nil
	share := Shares(batch, spec.Clusters)[0]
	chunks := []int64{opt.Chunk}
	switch {
	case opt.Chunk == 0:
		chunks = Divisors(share, MaxTunedChunk)
		slices.Reverse(chunks)
	case opt.Chunk < 0 || opt.Chunk > share:
		return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements of a cluster", opt.Chunk, share)
	}
	limited := ctx
	if opt.TimeLimit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, opt.TimeLimit)
		defer cancel()
	}
	opt.TimeLimit, opt.TimeLimitOnly = 0, false // of the exact strategies, which end at a number of states
	opt.Options.Progress = nil
	s := &seeker{net: net, machine: machine, batch: batch, opt: opt, began: time.Now(), found: &Found{}, starts: map[int64]startAt{}}
	err = s.all(limited, chunks)
	switch {
	case ctx.Err() != nil:
		s.found.Stop = milp.StopCancelled
	case limited.Err() != nil:
		s.found.Stop = milp.StopTime
	case err != nil:
		return nil, err
	}
	if s.found.Result != nil {
		s.found.world = newWorld(s.found.Result, net, opt.Options)
	}
	if s.found.Result == nil {
		return nil, cmp.Or(limited.Err(), s.failed)
	}
	return s.found, nil
}

// seeker is a search under way.
type seeker struct {
	net     network.Network
	machine *hardware.Spec
	batch   int64
	opt     BestOptions
	began   time.Time
	found   *Found
	failed  error             // the first recipe's, at its first chunk
	starts  map[int64]startAt // the best of each chunk
}

// startAt is a recipe's result that plans can be made of.
type startAt struct {
	*Result
	inPlace bool
}

// startAll simulates the recipes with exact decisions, or those without, at some chunks.
func (s *seeker) startAll(ctx context.Context, exact bool, chunks []int64) error {
	type start struct {
		recipe  Recipe
		inPlace bool
		chunk   int64
	}
	var starts []start
	recipes := slices.Clone(s.opt.Recipes)
	if recipes == nil {
		recipes = All()
	}
	for _, r := range recipes {
		r.Fallback = nil // they are among the starts
		if r.Exact() != exact || r.validate(s.opt.Options) != nil {
			continue
		}
		for _, chunk := range chunks {
			for _, inPlace := range []bool{false, true} {
				if inPlace && r.Pick("group") != "alg2" {
					continue // it makes no difference
				}
				starts = append(starts, start{r, inPlace, chunk})
			}
		}
	}
	results, errs := make([]*Result, len(starts)), make([]error, len(starts))
	for first := 0; first < len(starts) && ctx.Err() == nil; {
		// A round's results are looked at in order, so that none depends on which was first.
		round := starts[first:min(first+4*runtime.GOMAXPROCS(0), len(starts))]
		var workers errgroup.Group
		workers.SetLimit(runtime.GOMAXPROCS(0))
		for i, x := range round {
			workers.Go(func() error {
				opt := s.opt.Options
				opt.InPlace, opt.Chunk = x.inPlace, x.chunk
				results[first+i], errs[first+i] = runChunk(ctx, s.net, s.machine, s.batch, x.recipe, opt)
				return nil
			})
		}
		if err := workers.Wait(); err != nil {
			return err
		}
		for i, x := range round {
			r, err := results[first+i], errs[first+i]
			results[first+i] = nil
			if err != nil {
				if ctx.Err() == nil && !tooLarge(err) {
					return err
				}
				s.failed = cmp.Or(s.failed, err)
				continue
			}
			s.found.Evaluations++
			s.start(Start{x.recipe.Name, x.inPlace, x.chunk, r.ThroughputPerSecond()})
			if g := s.found.Greedy; x.recipe.Name == greedyRecipe && !x.inPlace && (g == nil || r.Sim.TotalPs < g.Sim.TotalPs) {
				s.found.Greedy = r
			}
			if best := s.starts[x.chunk]; x.recipe.Pick("group") == "alg2" && (best.Result == nil || s.score(r) < s.score(best.Result)) {
				s.starts[x.chunk] = startAt{r, x.inPlace}
			}
			move := x.recipe.Name
			if x.inPlace {
				move += ", in place"
			}
			s.offer(r, func() *plan { return planOf(r, x.inPlace) }, fmt.Sprintf("%s, chunks of %d", move, x.chunk))
		}
		first += len(round)
	}
	return nil
}

// greedyRecipe is what the search is compared with.
const greedyRecipe = "cross-layer"

// start keeps a recipe's best result.
func (s *seeker) start(x Start) {
	list := s.found.Starts
	i := slices.IndexFunc(list, func(y Start) bool { return y.Recipe == x.Recipe && y.InPlace == x.InPlace })
	switch {
	case i < 0:
		s.found.Starts = append(list, x)
	case x.ThroughputPerSecond > list[i].ThroughputPerSecond:
		list[i] = x
	}
}

// offer takes a result if it is better than all before it.
func (s *seeker) offer(r *Result, of func() *plan, move string) {
	if s.opt.Front {
		s.found.join(Point{r.LatencySeconds(), r.joules(), move})
	}
	if s.found.Result != nil && s.score(r) >= s.score(s.found.Result) {
		return
	}
	s.found.Result, s.found.plan = r, of()
	s.found.Trajectory = append(s.found.Trajectory, Improvement{s.found.Evaluations, r.LatencySeconds(), r.joules(), move})
	if s.opt.Better != nil {
		s.opt.Better(milp.Progress{Seconds: time.Since(s.began).Seconds(), Objective: r.LatencySeconds(), Improved: true})
	}
}

// score is what the search makes least.
func (s *seeker) score(r *Result) int64 { return s.opt.Objective.score(r.Sim.TotalPs, r.joules()) }

// searched is how many chunks are searched for groups: the largest, which leaves most to be
// chosen, and those whose starts are best. The best of them goes on.
const searched = 4

// all goes from what is quick to what is not: recipes, exact ones at the most promising chunks,
// the search there, exact recipes at other chunks.
func (s *seeker) all(ctx context.Context, chunks []int64) error {
	if err := s.startAll(ctx, false, chunks); err != nil || ctx.Err() != nil {
		return err
	}
	var promising []int64
	for _, c := range chunks {
		if s.starts[c].Result != nil {
			promising = append(promising, c)
		}
	}
	slices.SortStableFunc(promising, func(a, b int64) int { return cmp.Compare(s.score(s.starts[a].Result), s.score(s.starts[b].Result)) })
	if i := slices.Index(promising, slices.Max(append(promising, 0))); i >= searched {
		promising[searched-1], promising[i] = promising[i], promising[searched-1]
	}
	promising = promising[:min(searched, len(promising))]
	if err := s.startAll(ctx, true, promising); err != nil || ctx.Err() != nil {
		return err
	}
	if err := s.search(ctx, promising); err != nil || ctx.Err() != nil {
		return err
	}
	return s.startAll(ctx, true, slices.DeleteFunc(slices.Clone(chunks), func(c int64) bool { return slices.Contains(promising, c) }))
}

// search improves the starts of some chunks, the best first. A third of the evaluations goes
// into groups, at all of them alike, the rest into moves from the best.
func (s *seeker) search(ctx context.Context, chunks []int64) error {
	if len(chunks) == 0 {
		return nil
	}
	budget := s.opt.Evaluations
	if budget == 0 {
		commands, first := 0, s.starts[chunks[0]]
		for q, use := range first.Sim.Queues {
			if first.Program.Queues[q].Cluster == 0 {
				commands += use.Commands
			}
		}
		budget = min(defaultCommands/max(1, commands), maxDefault)
	}
	var best *searcher
	for i, c := range chunks {
		start := s.starts[c]
		x := &searcher{seeker: s, w: newWorld(start.Result, s.net, s.opt.Options), rng: rand.New(rand.NewPCG(s.opt.Seed, uint64(i)))}
		if err := x.begin(ctx, planOf(start.Result, start.inPlace)); err != nil {
			return err
		}
		if err := x.regroup(ctx, budget/(3*len(chunks))); err != nil {
			return err
		}
		if best == nil || x.best.score < best.best.score {
			best = x
		}
	}
	return best.polish(ctx, budget-budget/3)
}
