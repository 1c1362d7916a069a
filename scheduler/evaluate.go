package scheduler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// prepare makes the schedule that the decisions give.
func (p *Decisions) prepare(ctx context.Context, w *Problem, opt run) (*Result, error) {
	named, by := p.Recipe, p.Recipe
	note := func(with Pick) {
		if named.Pick(with.Stage) != with.Strategy {
			named.set(with)
			named.Name += "+" + with.String()
		}
	}
	room := p.room() // of chunks of other sizes, too
	if with := (Pick{buffer.Name, buffer.choice(room)}); by.Pick(with.Stage) != with.Strategy {
		note(with)
		by.set(with)
	}
	by.set(Pick{rewrite.Name, p.Form()})
	if apart, ok := p.value(addresses.Name).(plain[bool]); ok && apart.value {
		note(Pick{addresses.Name, addresses.choice(true)})
	}
	return w.prepare(ctx, named, by, p.Chunk, opt, func(size int64) *Decisions {
		if size == p.Chunk {
			return p
		}
		rest := p.rest[size]
		if rest != nil && rest.room() != room {
			rest = rest.with(plain[schedule.WeightRoom]{&buffer, room})
		}
		return rest
	})
}

// Form is the form of the graph: the strategy of row rewrite that is decided, or else the recipe's.
func (p *Decisions) Form() string {
	if x, decided := p.value(rewrite.Name).(plain[string]); decided {
		return x.value
	}
	return p.Recipe.Pick(rewrite.Name)
}

// room returns the room for weights that is decided, or else the recipe's.
func (p *Decisions) room() schedule.WeightRoom {
	if x, decided := p.value(buffer.Name).(plain[schedule.WeightRoom]); decided {
		return x.value
	}
	return buffer.named(p.Recipe.Pick(buffer.Name))
}

// prepare makes the schedule of a batch in chunks, in the name of a recipe, by the decisions for each size and, where
// they leave something open, by another recipe.
func (w *Problem) prepare(ctx context.Context, named, r Recipe, chunk int64, opt run,
	of func(size int64) *Decisions) (*Result, error) {
	opt.Chunk = chunk
	made := &Result{Recipe: named, Source: w.Net.Name, Machine: w.Machine, Spec: w.Spec, Batch: w.Batch, Chunk: chunk,
		Shares: w.Shares, Uneven: opt.Uneven.Alternatives()[0], level: opt.Level}
	made.assume(w.Net)
	opt.active = made.active()
	opt.note = func(text string) { made.Notes = append(made.Notes, text) }
	idle, err := made.plan(false, func(size, _ int64) (*Draft, error) {
		g, err := w.Graph(size)
		if err != nil {
			return nil, err
		}
		opt := opt
		opt.memo, opt.given, opt.tiles = w.tiles.memo(g, opt.Uneven.Alternatives()[0]), of(size), &w.tiles
		d, err := draft(ctx, g, w.Spec, r, opt)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s on %s, variant %s, %d per cluster: %w", w.Net.Name, w.Machine.Name, named.Name, size, err)
		}
		return d, err
	})
	if err != nil {
		return nil, err
	}
	return made, made.describe(idle)
}

// Fastest makes the fastest schedule of a chunk by a recipe; those of exact recipes are checked. limit, if not nil, is
// called before each simulation and returns the picoseconds after which a schedule is given up, 0 for no limit. If all
// are given up, the result is nil and the outline's time math.MaxInt64.
func (w *Problem) Fastest(ctx context.Context, r Recipe, inPlace bool, chunk int64, limit func() int64) (*Result,
	Outline, error) {
	outlines := map[*Result]Outline{}
	c := &trials{recipes: []Recipe{r}, weights: []float64{0}, opt: w.opt, compared: true,
		make: func(ctx context.Context, r Recipe, opt run) (*Result, error) {
			opt.InPlace, opt.unchecked = inPlace, !r.Exact()
			return w.recipe(ctx, r, chunk, opt)
		},
		measure: func(ctx context.Context, made *Result, _ int64) (int64, error) {
			if limit != nil {
				if most := limit(); most > 0 { // while it is lowered, which takes most of the time
					if ps, err := made.latency(ctx, most); err != nil || ps == math.MaxInt64 {
						return ps, err
					}
				}
			}
			x, err := w.Outline(ctx, made, 0)
			outlines[made] = x
			return x.Ps, err
		}}
	t := c.fastest(ctx, chunk)
	if t.made == nil || ctx.Err() != nil {
		return nil, Outline{Ps: math.MaxInt64}, cmp.Or(t.err, ctx.Err())
	}
	return t.made, outlines[t.made], nil
}

// recipe makes a recipe's decisions for a chunk.
func (w *Problem) recipe(ctx context.Context, r Recipe, chunk int64, opt run) (*Result, error) {
	own := r
	// Several recipes have the same groups.
	if group := r.Strategy("group"); group.Common && r.own["group"].Decide == nil {
		own = r.With("group", Strategy{Name: group.Name, Decide: func(ctx context.Context, d *Draft) error {
			key := grouped{d.Graph, group.Name, opt.InPlace, opt.Uneven}
			w.mu.Lock()
			known := w.groups[key]
			w.mu.Unlock()
			if known == nil {
				if err := group.Decide(ctx, d); err != nil {
					return err
				}
				known = &schedule.Schedule{}
				keepGroups(known, d.Schedule)
				w.mu.Lock()
				defer w.mu.Unlock()
				w.groups[key] = known
			}
			keepGroups(d.Schedule, known)
			return nil
		}})
	}
	return w.prepare(ctx, r, own, chunk, opt, func(int64) *Decisions { return nil })
}

// ByRecipe makes the schedule of a recipe for a chunk, without simulating it.
func (w *Problem) ByRecipe(ctx context.Context, r Recipe, chunk int64, opt Options) (*Result, error) {
	return w.recipe(ctx, r, chunk, run{Options: opt})
}

// ByDecisions makes the schedule of decisions, without simulating it.
func (w *Problem) ByDecisions(ctx context.Context, p *Decisions, opt Options) (*Result, error) {
	return p.prepare(ctx, w, run{Options: opt})
}

// An Outline has the main figures of a simulated program.
type Outline struct {
	Ps int64 // math.MaxInt64: more than the limit
	// joules is its energy; 0: the machine's description has no figures. score is the value that the search compares.
	Joules   float64
	Score    float64
	Commands int     // of a cluster
	start    []int64 // of each; nil: more than the limit
	program  *isa.Program
}

// outline simulates a result that is only prepared. Its program ends with the next one that is
// made in the same memory, which done gives back.
func (w *Problem) outlineIn(ctx context.Context, r *Result, limit int64) (o Outline, done func(), err error) {
	opt := r.Lower.Until(ctx)
	opt.Memory = w.tiles.take()
	done = func() { w.tiles.give(opt.Memory) }
	program, alike, err := lower.Outline("", r.Spec, r.Plans, opt)
	if err != nil {
		return o, done, err
	}
	o.program, o.Commands = program, len(program.Commands)
	if o.Ps, o.start, err = sim.Latency(ctx, program, alike, limit); o.start != nil && r.Spec.Energy != nil {
		macs, ops, bytes := sim.Accesses(program, alike)
		o.Joules = lower.Energy(r.Spec, r.Schedule.Graph, macs, ops, bytes, o.Ps).Total()
	}
	return o, done, err
}

// Outline simulates a schedule until limit picoseconds; 0: no limit.
func (w *Problem) Outline(ctx context.Context, r *Result, limit int64) (Outline, error) {
	o, done, err := w.outlineIn(ctx, r, limit)
	defer done()
	o.program, o.start = nil, nil
	return o, err
}

// Floor estimates the least time of a chunk in picoseconds: all products at the peak rate, or all loads of weights that
// a cluster cannot hold. It guides the search and is not a proven bound.
func (w *Problem) Floor(chunk int64) (float64, error) {
	g, err := w.Graph(chunk)
	if err != nil {
		return 0, err
	}
	m, err := cost.NewWith(w.Spec, w.opt.Cost)
	if err != nil {
		return 0, err
	}
	share := w.Shares[0]
	times := float64(share+chunk-1) / float64(chunk)
	weights := float64(weightBytes(g))
	kept := float64(schedule.CoresWithL1(w.Spec)) * float64(schedule.DataBytes(w.Spec)+schedule.WeightBufferBytes(w.Spec))
	if w.Spec.LLB != nil {
		kept += float64(w.Spec.LLB.SizeBytes)
	}
	busy := (w.Batch + share - 1) / share
	compute := productSeconds(g, nil, m) * float64(share) / float64(chunk)
	ddr := float64(busy) * (weights + (math.Floor(times)-1)*max(0, weights-kept)) / w.Spec.DDR.BandwidthBytesPerSecond
	return 1e12 * max(compute, ddr), nil
}

// weightBytes is the size of all constants but tables that are looked up.
func weightBytes(g *model.Graph) (n int64) {
	for _, t := range g.Tensors {
		whole := func(c model.OpID) bool { return g.Op(c).Kind != "Gather" || g.Op(c).Inputs[0] != t.ID }
		if t.Role == model.Constant && slices.ContainsFunc(t.Consumers, whole) {
			n += t.Bytes()
		}
	}
	return n
}

// productSeconds is the time of a cluster for products of operators at the peak rate; nil: of all.
func productSeconds(g *model.Graph, ops []model.OpID, m *cost.Model) float64 {
	macs := 0.0
	for _, op := range g.Ops {
		if g.OnMatrixUnit(op) && (ops == nil || slices.Contains(ops, op.ID)) {
			macs += float64(g.Work(op, model.Whole(g.Tensor(op.Outputs[0]).Shape)).MACs)
		}
	}
	return macs * float64(m.Spec().Clusters) / m.PeakMACsPerSecond(lower.ComputeType(g))
}

// An Outcome is the simulator's result for decisions.
type Outcome struct {
	Outline
	Err error
	// Took is the time of each group's kernels on the first cluster, over all chunks but those of another size; nil: the
	// simulation was given up.
	Took     []int64
	Each     []int64 // by instance, if asked for
	Schedule *schedule.Schedule
}

// Decided makes the schedule of decisions without checks. Schedules of the same name are lowered to the same commands.
func (w *Problem) Decided(ctx context.Context, p *Decisions) (r *Result, name [sha256.Size]byte, err error) {
	opt := w.opt
	opt.InPlace, opt.Uneven, opt.unchecked = p.InPlace, p.Uneven, true
	if r, err = p.prepare(ctx, w, opt); err != nil {
		return nil, name, err
	}
	return r, r.commands(), nil
}

// Evaluate makes the schedule of decisions and simulates it until limit picoseconds; 0: no limit.
func (w *Problem) Evaluate(ctx context.Context, p *Decisions, limit int64) Outcome {
	r, _, err := w.Decided(ctx, p)
	if err != nil {
		return Outcome{Err: err}
	}
	return w.Judge(ctx, p, r, limit)
}

// Judge simulates the schedule that decisions gave.
func (w *Problem) Judge(ctx context.Context, p *Decisions, r *Result, limit int64) Outcome {
	made, done, err := w.outlineIn(ctx, r, limit)
	defer done()
	o := Outcome{Outline: made, Err: err, Schedule: r.Schedule}
	o.program, o.start = nil, nil
	program, start, ps := made.program, made.start, made.Ps
	if start == nil {
		return o
	}
	o.Took = took(program, start, ps, r.Plans[0][0], len(p.Groups()), nil)
	return o
}

// took is the time of each group's kernels on the first cluster in a simulated program. Kernels follow one another:
// each lasts until the next is launched. With of, the time is that of something else than groups, by instances.
func took(program *isa.Program, start []int64, ps int64, seg lower.Segment, count int,
	of func(instance int) int) []int64 {
	list := make([]int64, count)
	if of == nil {
		of = func(instance int) int { return seg.Schedule.Instances.Instances[instance].Group }
	}
	kernel, last, group := 0, int64(0), -1
	for i := range program.Commands {
		c := &program.Commands[i]
		if c.Kind != isa.Launch || program.Queues[c.Queue].Cluster != 0 {
			continue
		}
		if group >= 0 {
			list[group] += start[i] - last
		}
		last, group = start[i], -1
		if kernel < len(seg.Schedule.Order)*seg.Iterations {
			group = of(seg.Schedule.Order[kernel%len(seg.Schedule.Order)])
		}
		kernel++
	}
	if group >= 0 {
		list[group] += ps - last
	}
	return list
}

// Result makes, checks and simulates a schedule.
func (w *Problem) Result(ctx context.Context, p *Decisions) (*Result, error) {
	opt := w.opt
	opt.InPlace, opt.Uneven = p.InPlace, p.Uneven
	r, err := p.prepare(ctx, w, opt)
	if err != nil {
		return nil, err
	}
	return r, r.Simulate(ctx)
}
