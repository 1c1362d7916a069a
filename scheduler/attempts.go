package scheduler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// An attempt is a schedule that a run tries.
type attempt struct {
	chunk   int64
	recipe  int // number
	pieces  schedule.Uneven
	inPlace bool
	weight  float64 // of divisions, see spread and stages
}

// Trials make the schedules of attempts and keep the fastest.
type trials struct {
	recipes     []Recipe
	weights     []float64
	opt         run
	compared    bool    // its time is wanted even where there is but one schedule
	wide        bool    // what Options.InPlace changes is tried both ways
	divisors    float64 // how many times more cores plain bindings by divisors may use; 1: they are not tried
	goal        int64   // the fastest latency before
	reached     []int64 // by recipe, the least latency
	draftGroups []draftGroup
	list        []attempt
	all         []tried // by recipe
	// make makes the schedule of an attempt, whose chunk, pieces and weight are set in opt, and measure says how many
	// picoseconds it takes; math.MaxInt64: more than the limit.
	make    func(ctx context.Context, r Recipe, opt run) (*Result, error)
	measure func(ctx context.Context, made *Result, limit int64) (ps int64, err error)
	// measured are schedules by what their commands follow from. One is simulated at a time, since what takes longer
	// than least, the fastest so far of all draft groups, is given up. That is never the answer's, so that none depends
	// on which draft group was first.
	mu       sync.Mutex
	measured map[program]int64
	least    int64
	// near, if not nil, gets what takes at most nearest times as long as the fastest so far.
	near func(a attempt, opt run, ps int64)
	// quick has, by chunk and strategies, the pieces with which recipes are fastest that make no exact decisions.
	quick map[string]schedule.Uneven
}

// program names the program of a schedule.
type program struct {
	graph    *model.Graph
	commands [sha256.Size]byte
}

// tried is the fastest schedule of some attempts.
type tried struct {
	made *Result // nil: there is none
	ps   int64
	err  error // the first
}

// fastest tries all attempts of a chunk.
func (c *trials) fastest(ctx context.Context, chunk int64) tried {
	if err := c.begin(ctx, chunk); err != nil {
		return tried{err: err}
	}
	c.rounds(ctx, func(attempt) bool { return true })
	return c.best(ctx)
}

// rounds tries some attempts, those by divisors only of recipes that more cores could make the fastest.
func (c *trials) rounds(ctx context.Context, pick func(attempt) bool) {
	also := c.divisors > 1 && c.opt.part.cores == 0
	late := func(a attempt) bool { return also && a.pieces == schedule.UnevenDivisors }
	c.round(ctx, func(a attempt) bool { return !late(a) && pick(a) })
	most := c.divisors * float64(min(c.least, c.goal))
	c.round(ctx, func(a attempt) bool { return late(a) && pick(a) && float64(c.reached[a.recipe]) <= most })
}

// begin lists the attempts of a chunk.
func (c *trials) begin(ctx context.Context, chunk int64) (err error) {
	c.opt.Chunk = chunk
	if len(c.recipes) > 1 {
		c.opt = c.opt.oneAtATime()
	}
	c.draftGroups, c.all = draftGroupsOf(c.recipes, c.opt), make([]tried, len(c.recipes))
	c.reached = slices.Repeat([]int64{math.MaxInt64}, len(c.recipes))
	c.measured, c.least = map[program]int64{}, math.MaxInt64
	c.list, err = c.attempts(ctx, c.draftGroups)
	return err
}

// round tries some attempts. Recipes that have drafts in common run one after the other, others beside them.
func (c *trials) round(ctx context.Context, pick func(attempt) bool) {
	draftGroups, all := c.draftGroups, c.all
	var side errgroup.Group
	side.SetLimit(2) // memory
	begun, first := make(chan struct{}), int64(math.MaxInt64)
	for k, l := range draftGroups {
		// A draft group beside the first waits for what that has measured: nothing is done for a schedule that is slower.
		l.opt.slower = func(leastPs int64) bool {
			if k == 0 {
				return false
			}
			<-begun
			return leastPs > first
		}
		side.Go(func() error {
			if k == 0 {
				defer func() {
					for _, r := range l.recipes {
						if all[r].made != nil {
							first = min(first, all[r].ps)
						}
					}
					close(begun)
				}()
			}
			away := func(a attempt) bool { return !slices.Contains(l.recipes, a.recipe) || !pick(a) }
			c.try(ctx, slices.DeleteFunc(slices.Clone(c.list), away), l, all)
			return nil
		})
	}
	_ = side.Wait()
}

// best is the fastest schedule of all rounds.
func (c *trials) best(ctx context.Context) tried {
	best := tried{ps: math.MaxInt64}
	for _, t := range c.all {
		if fatal(ctx, t.err) {
			return tried{err: t.err}
		}
		best.err = cmp.Or(best.err, t.err)
		if t.made != nil && t.ps < best.ps {
			best.made, best.ps = t.made, t.ps
		}
	}
	return best
}

// time is measure of a schedule, once for all of the same commands. The measurement ends beyond slack times the fastest
// latency so far.
func (c *trials) time(ctx context.Context, made *Result, limit int64, slack float64) (ps int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := program{made.Schedule.Graph, made.commands()}
	if ps, known := c.measured[same]; known && made.Clusters == OverBatch {
		return ps, nil
	}
	if limit = min(limit, c.least); limit < math.MaxInt64 {
		limit = int64(slack * float64(limit))
	}
	if ps, err = c.measure(ctx, made, limit); err == nil {
		c.measured[same], c.least = ps, min(c.least, ps)
	}
	return ps, err
}

// attempts lists those of the chunk: for each recipe all pieces, and with these all weights. A recipe that takes long
// has the pieces only that suit a quick one.
func (c *trials) attempts(ctx context.Context, draftGroups []draftGroup) (list []attempt, err error) {
	for i, r := range c.recipes {
		all := c.opt.Uneven.Alternatives()
		if c.opt.part.cores > 0 && c.divisors > 1 { // without divisors it is as on a power of two
			all = nil
		}
		if c.divisors > 1 {
			all = append(all, schedule.UnevenDivisors)
		}
		if r.Strategy("bind").Even { // whose pieces differ anyway
			all = all[:1]
		}
		if greedy, slow := r.greedy(); slow && len(all) > 1 {
			// The first recipe alone may have strategies of the caller's own.
			key := fmt.Sprint(c.opt.Chunk, greedy.Strategies(), len(greedy.own))
			if _, known := c.quick[key]; !known {
				alone := trials{recipes: []Recipe{greedy}, weights: c.weights, opt: c.opt, make: c.make, measure: c.measure}
				same := func(l draftGroup) bool { return l.first == greedy.first() }
				if at := slices.IndexFunc(draftGroups, same); at >= 0 {
					alone.opt = draftGroups[at].opt
				}
				quick := alone.fastest(ctx, c.opt.Chunk)
				if fatal(ctx, quick.err) {
					return nil, quick.err
				}
				if c.quick == nil {
					c.quick = map[string]schedule.Uneven{}
				}
				if c.quick[key] = all[0]; quick.made != nil {
					c.quick[key] = quick.made.Uneven
				}
			}
			all = []schedule.Uneven{c.quick[key]}
		}
		places := []bool{c.opt.InPlace}
		if c.wide && !c.opt.InPlace && len(r.Strategy("split").Needs) > 0 {
			places = append(places, true)
		}
		for _, inPlace := range places {
			for _, pieces := range all {
				for _, weight := range c.weights {
					list = append(list, attempt{c.opt.Chunk, i, pieces, inPlace, weight})
				}
			}
		}
	}
	return list, nil
}

// try makes the schedules of attempts in order, until an error is fatal. It leaves out those with other pieces where
// there is nothing to cut so, or where there would be many times more instances: pieces are then too small to be
// faster.
func (c *trials) try(ctx context.Context, list []attempt, l draftGroup, all []tried) {
	opt, kept, limit := l.opt, &tried{}, int64(math.MaxInt64)
	for _, r := range l.recipes { // of earlier rounds
		if all[r].made != nil && all[r].ps < limit {
			kept, limit = &all[r], all[r].ps
		}
	}
	most := opt.mostInstances
	var last *Result // with the pieces before
	for i, a := range list {
		t := &all[a.recipe]
		first := i == 0 || list[i-1].recipe != a.recipe || list[i-1].inPlace != a.inPlace
		if first {
			if t.ps = limit; i > 0 && fatal(ctx, all[list[i-1].recipe].err) {
				return
			}
			last, opt.mostInstances = nil, most
		} else if fatal(ctx, t.err) {
			return
		}
		if !first && list[i-1].pieces != a.pieces && last != nil {
			opt.mostInstances = 4 * len(last.Schedule.Instances.Instances)
		}
		if last != nil && last.Uneven != a.pieces && !last.Schedule.Uneven() {
			continue
		}
		opt.Uneven, opt.ddrWeight, opt.InPlace = a.pieces, a.weight, a.inPlace
		r := c.recipes[a.recipe]
		key := fmt.Sprint(a.pieces, a.inPlace, a.weight, slices.DeleteFunc(r.Strategies(),
			func(p Pick) bool { return p.Stage == reserve.Name }))
		want := reserve.named(r.Pick(reserve.Name))
		if n, known := l.left[key]; known && n >= want {
			continue // there is that room already
		}
		made, err := c.make(ctx, r, opt)
		ps := int64(0)
		if err == nil {
			if want == reserve.Choices[0].Value {
				l.left[key] = made.leftOfLLB()
			}
			onePiece := i == len(list)-1 || !made.Schedule.Uneven()
			if c.compared || t.made != nil || len(c.recipes)+len(c.weights) > 2 || !onePiece {
				slack := max(nearest, c.divisors)                  // for near; 1 without it is not measurably quicker
				if c.wide && a.inPlace && r.Name == table.Greedy { // it may stand for a faster one, see compete
					slack = max(slack, nearly)
				}
				ps, err = c.time(ctx, made, t.ps, slack)
				c.reached[a.recipe] = min(c.reached[a.recipe], cmp.Or(ps, math.MaxInt64))
				if c.near != nil && err == nil && ps < math.MaxInt64 {
					c.near(a, opt, ps)
				}
			}
		}
		if errors.Is(err, errSlower) {
			continue
		}
		if err != nil {
			if t.err == nil || fatal(ctx, err) {
				t.err = err
			}
			continue
		}
		if last = made; ps < t.ps {
			if kept != t {
				kept.made = nil // of the memory that results take
				kept = t
			}
			t.made, t.ps, limit = made, ps, ps
		}
	}
}
