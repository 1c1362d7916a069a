package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Search makes the schedule of a recipe with evaluations, starting from its picks.
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
	opt := run{Options: options, state: state{tiles: &Memory{}}}
	if err := CheckInput(net, machine, batch); err != nil {
		return nil, err
	}
	if r.Evaluations > 0 {
		return r.improved(ctx, net, machine, batch, options)
	}
	spec, err := opt.Clusters.machine(machine, opt.Level)
	recipes, wrong := r.Alternatives(options)
	if err = cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	chunks, tune := []int64{opt.Chunk}, opt.Chunk == 0
	if tune {
		chunks = schedule.Divisors(opt.shares(batch, spec)[0], MaxTunedChunk)
	}
	if tune && r.Strategy("split").Exact {
		opt.rival = &rival{}
	}
	if r.wide() || opt.rival != nil { // larger ones are faster as a rule, and others are given up
		slices.Reverse(chunks)
	}
	opt.alone = len(chunks) == 1
	t := &tuner{net: net, machine: machine, spec: spec, batch: batch, recipes: recipes, wide: r.wide(), tune: tune,
		least: math.MaxInt64, opt: opt}
	t.net.Graph = once(net.Graph)
	done, err := t.onHead(ctx, chunks)
	if !done && err == nil {
		err = t.all(ctx, chunks)
	}
	if err != nil {
		return nil, err
	}
	if t.best == nil && len(chunks) > 1 {
		return nil, fmt.Errorf("none of %d chunks, 1 to %d, can be tried: %w", len(chunks), slices.Max(chunks), t.err)
	} else if t.best == nil {
		return nil, t.err
	}
	if t.wide && opt.Clusters == OverLayer && spec.Chips == nil {
		options.Clusters = OverBatch
		apart, err := Run(ctx, net, machine, batch, r, options)
		if fatal(ctx, err) {
			return nil, err
		}
		if err == nil && apart.Sim.TotalPs < t.least {
			if spec.Clusters > 1 {
				apart.Notes = append(apart.Notes, fmt.Sprintf("clusters divide the batch: layers over them take %.3g times "+
					"as long", float64(t.least)/float64(apart.Sim.TotalPs)))
			}
			return apart, nil
		}
	}
	if t.wide && tune && (!done || spec.Mixed()) && opt.Clusters == OverBatch && spec == machine && !opt.Lines {
		if err := t.overLayers(ctx, options); err != nil {
			return nil, err
		}
	}
	t.name(t.best)
	if tune {
		t.best.Tried = t.trials()
	}
	if t.best.Sim == nil {
		err = t.best.Simulate(ctx)
	}
	return t.best, err
}

// Alternatives are the recipe and its fallbacks. It is an error if one of them can't be used.
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
		if err := other.Usable(opt); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// OpenMachine finds an accelerator, or a machine of several, by the name of a preset or the path of a YAML file.
func OpenMachine(name string) (*hardware.Spec, error) { return chips.LoadMachine(name) }

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

// Prepare makes all decisions of Run for a given chunk by the recipe itself, without fallbacks and without simulating:
// Program and Sim are nil until [Result.On] sets them.
func (r Recipe) Prepare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64,
	opt Options) (*Result, error) {
	if r.Evaluations > 0 {
		if _, err := checkChunk(net, machine, batch, run{Options: opt}); err != nil {
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

// checkChunk checks network, batch and chunk for a machine, which it returns as the decisions see it.
func checkChunk(net network.Network, machine *hardware.Spec, batch int64, opt run) (*hardware.Spec, error) {
	if err := CheckInput(net, machine, batch); err != nil {
		return nil, err
	}
	spec, err := opt.Clusters.machine(machine, opt.Level)
	if err != nil {
		return nil, err
	}
	if most := opt.shares(batch, spec)[0]; opt.Chunk < 1 || opt.Chunk > most {
		return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements that a cluster sees", opt.Chunk, most)
	}
	return spec, nil
}

func prepare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe, opt run) (*Result,
	error) {
	spec, err := checkChunk(net, machine, batch, opt)
	if err != nil {
		return nil, err
	}
	out := &Result{Recipe: r, Source: net.Name, Machine: machine, Spec: spec, Batch: batch, Chunk: opt.Chunk,
		Shares: opt.shares(batch, spec), Clusters: opt.Clusters,
		Uneven: opt.Uneven.Alternatives()[0], InPlace: opt.InPlace, level: opt.Level, figures: opt.Figures}
	out.assume(net)
	for level, size := range opt.part.bytes {
		if out.half = out.half || size > 0; size > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("activations have %v of each %s; the larger limits that were tried "+
				"are slower", size, schedule.Level(level).String()))
		}
	}
	opt.Uneven, opt.note = out.Uneven, func(text string) { out.Notes = append(out.Notes, text) }
	opt.active = cmp.Or(opt.within, out.active())
	if opt.Clusters != OverBatch {
		idle, err := out.together(ctx, net, r, opt)
		if err != nil {
			return nil, cmp.Or(ctx.Err(), fmt.Errorf("%s on %s, variant %s, clusters by %s: %w", net.Name, machine.Name, r.Name,
				opt.Clusters, err))
		}
		return out, out.describe(idle)
	}
	idle, err := out.plan(opt.cut, func(size, times int64) (*Draft, error) {
		g, err := net.Graph(size)
		if err != nil {
			return nil, err
		}
		opt := opt
		opt.times = times
		if opt.rests && size < out.Chunk {
			out.half = true
			opt.rest(spec, size)
		}
		less := opt.tiles.part(spec, opt.part)
		opt.whole = opt.tiles.part(spec, part{cores: opt.part.cores}) // what a file says of steps is for all of the memories
		d, err := draft(ctx, g, less, r, opt)
		if err == nil && less != spec { // the others idle
			d.Spec, d.Whole, d.Schedule.Cores = spec, nil, opt.part.cores
			d.L1Capacity = d.WeightRoom.DataBytes(spec)
			if spec.LLB != nil {
				d.LLBCapacity = int64(spec.LLB.SizeBytes)
			}
			if !opt.unchecked {
				err = schedule.Check(d.Schedule)
			}
		}
		if err != nil {
			return nil, cmp.Or(ctx.Err(), fmt.Errorf("%s on %s, variant %s, %d per cluster: %w", net.Name, machine.Name, r.Name,
				size, err))
		}
		return d, nil
	})
	if err != nil {
		return nil, err
	}
	return out, out.describe(idle)
}

// rest takes for what is left of a share beside whole chunks as many of all cores as its elements divide, by divisors.
func (o *run) rest(spec *hardware.Spec, size int64) {
	all := schedule.CoresWithL1(spec)
	cores := cmp.Or(o.part.cores, all)
	if cores -= cores % size; cores > 0 && spec.Part(cores) != nil {
		o.Uneven, o.part.cores = schedule.UnevenDivisors, cores%all
		o.tell(fmt.Sprintf("a chunk of %d that is left of a share is on %d of %d cores, by divisors of these", size, cores,
			all))
	}
}

// FastestChunk makes the schedule of a chunk by a recipe, with the pieces that make it fastest, and simulates nothing.
func (r Recipe) FastestChunk(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64,
	opt Options) (*Result, error) {
	t := &tuner{net: net, machine: machine, batch: batch, recipes: []Recipe{r}, least: math.MaxInt64,
		opt: run{Options: opt}}
	if err := t.chunk(ctx, opt.Chunk); err != nil || t.best == nil {
		return nil, cmp.Or(err, t.err)
	}
	t.name(t.best)
	return t.best, nil
}
