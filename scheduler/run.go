package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// A Search makes the schedule of a recipe that improves what its picks give.
type Search func(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (*Result, error)

var improve Search

// RegisterSearch sets the search that recipes with evaluations ask for. Package scheduler/search calls it.
func RegisterSearch(s Search) { improve = s }

// Run schedules and simulates a network by a recipe. It divides the batch over the
// clusters, tries every divisor of a cluster's share as chunk unless Options.Chunk says
// one, and keeps the fastest. If ctx ends first, it returns its error. Recipes that it falls
// back to run side by side: Options.Cost and Options.Solver may be called by two at a time.
func Run(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	options Options) (*Result, error) {
	opt := run{Options: options}
	if err := CheckBatch(batch); err != nil {
		return nil, err
	}
	if r.Evaluations > 0 {
		return r.improved(ctx, net, machine, batch, options)
	}
	share := int64(0)
	if spec, err := opt.Clusters.machine(machine, opt.Level); err != nil {
		return nil, err
	} else {
		share = opt.Clusters.shares(batch, spec.AllClusters())[0]
	}
	recipes, err := r.Alternatives(options)
	if err != nil {
		return nil, err
	}
	chunks, tune := []int64{opt.Chunk}, opt.Chunk == 0
	if tune {
		chunks = Divisors(share, MaxTunedChunk)
	}
	if tune && r.Pick("split") == exactSplit.Name { // larger ones are faster as a rule, and others are given up
		slices.Reverse(chunks)
		opt.rival = &rival{}
	}
	var best *Result
	var tried []Trial
	var firstErr error // or that of the largest chunk whose program is too large
	least := int64(math.MaxInt64)
	for i, chunk := range chunks {
		opt.Chunk = chunk
		if opt.Chunks != nil && tune {
			opt.Chunks(chunk, i, len(chunks))
		}
		opt.alone = len(chunks) == 1
		made, ps, err := fastest(ctx, net, machine, batch, recipes, opt, tune)
		if err != nil {
			if fatal(ctx, err) {
				return nil, err
			}
			if large := new(lower.TooLargeError); firstErr == nil || errors.As(err, &large) {
				firstErr = err
			}
			tried = append(tried, Trial{Chunk: chunk, Err: err})
			continue
		}
		tried = append(tried, Trial{Chunk: chunk, ThroughputPerSecond: float64(batch) / (float64(ps) * 1e-12)})
		if ps < least {
			if best, least = made, ps; opt.rival != nil {
				opt.rival.ps = ps
			}
		}
	}
	slices.SortFunc(tried, func(a, b Trial) int { return cmp.Compare(a.Chunk, b.Chunk) })
	if best == nil && len(chunks) > 1 {
		return nil, fmt.Errorf("none of %d chunks, 1 to %d, can be tried: %w", len(chunks), slices.Max(chunks), firstErr)
	} else if best == nil {
		return nil, firstErr
	}
	if tune {
		best.Tried = tried
	}
	if best.Sim == nil {
		err = best.Simulate(ctx)
	}
	return best, err
}

// Alternatives are the recipe and those that it falls back to, all of which can be used.
func (r Recipe) Alternatives(opt Options) ([]Recipe, error) {
	list := []Recipe{r}
	for _, name := range r.Fallback {
		other, err := lookup(name)
		if err != nil {
			return nil, err
		}
		list = append(list, other)
	}
	for _, other := range list {
		if err := other.validate(opt); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// fastest makes the schedule of a chunk by some recipes and gives the fastest, which takes ps, the first one's name. If
// it is to be compared with no other result, and there is but one, ps is 0.
func fastest(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, recipes []Recipe, opt run,
	compared bool) (best *Result, ps int64, err error) {
	net.Graph = once(net.Graph)
	c := &contest{recipes: recipes, weights: opt.Clusters.weights(machine), opt: opt, compared: compared,
		make: func(ctx context.Context, r Recipe, opt run) (*Result, error) {
			return prepare(ctx, net, machine, batch, r, opt)
		},
		measure: func(ctx context.Context, made *Result, limit int64) (int64, error) {
			if opt.alone && made.figures && made.Recipe.Name == recipes[0].Name && limit == math.MaxInt64 {
				if err := made.Simulate(ctx); err != nil {
					return 0, err
				}
				return made.Sim.TotalPs, nil
			}
			return made.latency(ctx, limit)
		}}
	t := c.fastest(ctx, opt.Chunk)
	if best = t.made; best == nil {
		return nil, 0, t.err
	}
	if was := opt.Uneven.Alternatives()[0]; best.Uneven != was {
		best.Notes = append(best.Notes, fmt.Sprintf("uneven pieces: %v, which is faster than %v", best.Uneven, was))
	}
	if first, from := recipes[0], best.Recipe.Name; from != first.Name {
		best.winner, best.Recipe = best.Recipe, first
		best.Notes = append(best.Notes, fmt.Sprintf("%s: the schedule is that of %s, the fastest of %d", first.Name, from,
			len(recipes)))
	}
	return best, t.ps, nil
}

// once keeps the graphs that it is asked for.
func once(graph func(int64) (*model.Graph, error)) func(int64) (*model.Graph, error) {
	var mu sync.Mutex
	known := map[int64]*model.Graph{}
	return func(size int64) (g *model.Graph, err error) {
		mu.Lock()
		defer mu.Unlock()
		if known[size] == nil {
			if g, err = graph(size); err != nil {
				return nil, err
			}
			known[size] = g
		}
		return known[size], nil
	}
}

// improved runs a recipe that takes a search.
func (r Recipe) improved(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64,
	opt Options) (*Result, error) {
	if improve == nil {
		return nil, fmt.Errorf("variant %s takes a search, expected package scheduler/search in the program", r.Name)
	}
	return improve(ctx, net, machine, batch, r, opt)
}

// Prepare makes all decisions of [Run] for a given chunk, by the recipe itself and not by
// what it falls back to, and simulates nothing: Program and Sim are nil, until
// [Result.On] gives them.
func Prepare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (*Result, error) {
	if r.Evaluations > 0 {
		if _, err := checkChunk(machine, batch, opt); err != nil {
			return nil, err
		}
		made, err := r.improved(ctx, net, machine, batch, opt)
		if err == nil {
			made.Program, made.Sim = nil, nil
		}
		return made, err
	}
	return prepare(ctx, net, machine, batch, r, run{Options: opt})
}

// checkChunk checks batch and chunk for a machine, which it returns as the decisions see it.
func checkChunk(machine *hardware.Spec, batch int64, opt Options) (*hardware.Spec, error) {
	if err := CheckBatch(batch); err != nil {
		return nil, err
	}
	spec, err := opt.Clusters.machine(machine, opt.Level)
	if err != nil {
		return nil, err
	}
	if most := opt.Clusters.shares(batch, spec.AllClusters())[0]; opt.Chunk < 1 || opt.Chunk > most {
		return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements %s", opt.Chunk, most, opt.Clusters.whose())
	}
	return spec, nil
}

func prepare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe, opt run) (*Result,
	error) {
	spec, err := checkChunk(machine, batch, opt.Options)
	if err != nil {
		return nil, err
	}
	shares := opt.Clusters.shares(batch, spec.AllClusters())
	out := &Result{Recipe: r, Source: net.Name, Machine: machine, Spec: spec, Batch: batch, Chunk: opt.Chunk,
		Shares: shares, Clusters: opt.Clusters,
		Uneven: opt.Uneven.Alternatives()[0], level: opt.Level, figures: opt.Figures}
	out.assume(net)
	opt.Uneven, opt.note = out.Uneven, func(text string) { out.Notes = append(out.Notes, text) }
	opt.active = out.active()
	if opt.Clusters != OverBatch {
		idle, err := out.together(ctx, net, r, opt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%s on %s, variant %s, clusters by %s: %w", net.Name, machine.Name, r.Name, opt.Clusters, err)
		}
		return out, out.describe(idle)
	}
	idle, err := out.plan(func(size, times int64) (*Draft, error) {
		g, err := net.Graph(size)
		if err != nil {
			return nil, err
		}
		opt := opt
		opt.times = times
		d, err := draft(ctx, g, spec, r, opt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%s on %s, variant %s, %d per cluster: %w", net.Name, machine.Name, r.Name, size, err)
		}
		return d, nil
	})
	if err != nil {
		return nil, err
	}
	return out, out.describe(idle)
}

// FastestChunk makes the schedule of a chunk by a recipe, with the pieces that make it fastest, and simulates nothing.
func FastestChunk(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (*Result, error) {
	made, _, err := fastest(ctx, net, machine, batch, []Recipe{r}, run{Options: opt}, false)
	return made, err
}
