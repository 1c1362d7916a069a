package scheduler

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// A plan is a whole schedule as the search changes it: the decisions from which all else
// follows. Its parts are shared between plans and never written to.
type plan struct {
	recipe   Recipe // decides what the fields leave open, and all of a chunk that is smaller
	inPlace  bool
	uneven   schedule.Uneven
	chunk    int64
	cuts     []cut
	layers   [][]schedule.Layer // of the groups, where they do not follow from them
	order    Strategy           // of instances; none: the recipe's
	own      []int              // order in which instances run; nil: by the strategy
	bindings []schedule.Binding // of instances; nil: by the strategy
	scopes   []schedule.Level
	inner    map[model.OpID]schedule.Binding // of layers, by anchor; see schedule.Schedule.LayerBindings
	down     map[model.TensorID]bool         // results that go to the GB, though there may be room in the LB
	bound    map[piece]choice                // bindings, scopes and levels that differ from the strategy's
	rule     graphturbo.SpillRule
	lower    lower.Options
}

// A cut is a group with the way in which it is split.
type cut struct {
	ops   []model.OpID
	split schedule.SplitInfo
}

// A piece names a group whose instances are all of a kind, whatever groups stand beside it.
type piece struct {
	first, last model.OpID
	ops         int
	dim         int
	factor      int64
}

func (c *cut) piece() piece {
	return piece{c.ops[0], c.ops[len(c.ops)-1], len(c.ops), c.split.Dim, c.split.Factor}
}

// A choice is what is decided for the instances of a group against the recipe.
type choice struct {
	binding schedule.Binding // of the first output; nil: the recipe's
	scope   *schedule.Level  // nil: the recipe's
}

// strategies gives a recipe the decisions of the plan.
func (p *plan) strategies() Recipe {
	r := p.recipe
	r.Fallback = nil
	r = r.With("group", Strategy{Name: "best", Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = p.grouping(d.Graph), p.layers
		return nil
	}})
	r = r.With("split", Strategy{Name: "best", Decide: func(context.Context, *Draft) error { return nil }})
	order := p.order
	if order.Decide == nil {
		if order = p.recipe.at("order"); order.Exact {
			order = algorithm3
		}
	}
	r = r.With("order", Strategy{Name: "best", Decide: func(ctx context.Context, d *Draft) error {
		if p.own != nil {
			d.Order, d.OrderName = p.own, "best"
			return nil
		}
		return order.Decide(ctx, d)
	}})
	bind := p.recipe.at("bind")
	r = r.With("bind", Strategy{Name: "best", Refine: func(s *schedule.Schedule) {
		if bind.Refine != nil {
			bind.Refine(s)
		}
		p.lowerValues(s)
	}, Decide: func(ctx context.Context, d *Draft) error {
		if bind.Exact {
			bind = algorithm4
		}
		if p.bindings != nil {
			d.Bindings, d.Scopes = slices.Clone(p.bindings), slices.Clone(p.scopes)
		} else if err := bind.Decide(ctx, d); err != nil {
			return err
		}
		p.bind(d)
		return nil
	}})
	r = r.With("spill", spillByRule(p.rule, ""))
	r = r.With("issue", setting("best", "", func(d *Draft) { d.Lower = p.lower }))
	return r.With("weights", setting("best", "", func(*Draft) {}))
}

// grouping is that of the plan.
func (p *plan) grouping(g *model.Graph) *schedule.Grouping {
	gr := &schedule.Grouping{Groups: make([]*schedule.SubGraph, len(p.cuts))}
	for k, c := range p.cuts {
		sg := &schedule.SubGraph{ID: k, Name: "g" + strconv.Itoa(k), Ops: c.ops, Split: c.split}
		sg.Inputs, sg.Outputs = schedule.Boundary(g, c.ops)
		gr.Groups[k] = sg
	}
	return gr
}

// bind puts the plan's bindings and scopes in the place of the recipe's, as far as cores
// and extents allow.
func (p *plan) bind(d *Draft) {
	if len(p.inner) > 0 {
		d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
		for k, layers := range d.Layers {
			for l := range layers {
				if b := p.inner[layers[l].Anchor]; b != nil {
					d.LayerBindings[k] = append(d.LayerBindings[k], make([]schedule.Binding, l+1-len(d.LayerBindings[k]))...)
					d.LayerBindings[k][l] = b
				}
			}
		}
	}
	if len(p.bound) == 0 {
		return
	}
	cores := schedule.CoresWithLB(d.Spec)
	for i := range d.Instances.Instances {
		inst := &d.Instances.Instances[i]
		c, ok := p.bound[p.cuts[inst.Group].piece()]
		if !ok {
			continue
		}
		if c.scope != nil {
			d.Scopes[i] = *c.scope
		}
		out := d.Grouping.Groups[inst.Group].Outputs[0]
		op := d.Graph.Op(d.Graph.Tensor(out).Producer)
		forbidden := d.Graph.Sequential(op, slices.Index(op.Outputs, out))
		if c.binding != nil && schedule.CheckBinding(inst.Regions[out], c.binding, forbidden, cores) == nil {
			d.Bindings[i] = c.binding
		}
	}
}

// lowerValues lets results go to the GB from the start.
func (p *plan) lowerValues(s *schedule.Schedule) {
	if len(p.down) == 0 || s.Spec.GB == nil {
		return
	}
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 && v.Level == schedule.LB && p.down[v.Tensor] {
			v.Wanted, v.Level = schedule.GB, schedule.GB
		}
	}
}

// planOf takes the decisions of a simulated schedule as they are.
func planOf(r *Result, inPlace bool) *plan {
	p := &plan{recipe: r.Recipe, inPlace: inPlace, uneven: r.Uneven, chunk: r.Chunk, rule: graphturbo.LongestLifetime, lower: r.Lower, bound: map[piece]choice{}}
	if r.Recipe.Pick("spill") == string(graphturbo.LargestFirst) {
		p.rule = graphturbo.LargestFirst
	}
	s := r.Schedule
	for k, sg := range s.Grouping.Groups {
		p.cuts = append(p.cuts, cut{sg.Ops, sg.Split})
		alike := func(a, b schedule.Layer) bool { return slices.Equal(a.Ops, b.Ops) }
		if !slices.EqualFunc(s.Layers[k], schedule.Layers(s.Graph, sg.Ops), alike) {
			p.layers = s.Layers
		}
	}
	p.own, p.bindings, p.scopes = s.Order, s.Bindings, s.Scopes
	return p
}

// regroup is the plan with other groups. What was decided for others of their kind stays.
func (p *plan) regroup(cuts []cut) *plan {
	q := *p
	if p.bindings != nil && p.recipe.at("bind").Exact {
		q.bound = maps.Clone(p.bound)
		i := 0 // instance
		for k := range p.cuts {
			c := q.bound[p.cuts[k].piece()]
			if c.binding == nil {
				c.binding = p.bindings[i]
			}
			if c.scope == nil {
				c.scope = &p.scopes[i]
			}
			q.bound[p.cuts[k].piece()] = c
			i += int((&schedule.SubGraph{Split: p.cuts[k].split}).Factor())
		}
	}
	q.cuts, q.layers, q.own, q.bindings, q.scopes = cuts, nil, nil, nil, nil
	return &q
}

// prepare makes all decisions.
func (p *plan) prepare(ctx context.Context, w *world, opt Options) (*Result, error) {
	opt.Chunk = p.chunk
	r := &Result{Recipe: p.recipe, Source: w.net.Name, Machine: w.machine, Spec: w.spec, Batch: w.batch, Chunk: p.chunk, Shares: w.shares, Uneven: p.uneven, level: opt.Level}
	opt.note = func(text string) { r.Notes = append(r.Notes, text) }
	idle, err := r.plan(func(size int64) (*Draft, error) {
		g, err := w.graph(size)
		if err != nil {
			return nil, err
		}
		if size != p.chunk { // the rest of a share
			return draft(ctx, g, w.spec, p.recipe, opt)
		}
		return draft(ctx, g, w.spec, p.strategies(), opt)
	})
	if err != nil {
		return nil, err
	}
	return r, r.describe(idle)
}

// A world is what all plans of a search are for.
type world struct {
	net     network.Network
	machine *hardware.Spec // as described
	spec    *hardware.Spec // as the decisions see it
	batch   int64
	shares  []int64
	opt     Options
	graphs  map[int64]*model.Graph
	mu      sync.Mutex
}

// newWorld is that of a result.
func newWorld(r *Result, net network.Network, opt Options) *world {
	return &world{net: net, machine: r.Machine, spec: r.Spec, batch: r.Batch, shares: r.Shares, opt: opt, graphs: map[int64]*model.Graph{}}
}

// graph is the network at a size, one for all plans.
func (w *world) graph(size int64) (*model.Graph, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.graphs[size]; g != nil {
		return g, nil
	}
	g, err := w.net.Graph(size)
	if err == nil {
		g.Remember()
		w.graphs[size] = g
	}
	return g, err
}

// An outcome is what the simulator says of a plan.
type outcome struct {
	err error
	ps  int64 // math.MaxInt64: more than the limit
	// joules is its energy; 0: the machine's description has no figures. score is what the
	// search compares.
	joules float64
	score  int64
	// Of a plan that was simulated to its end, what each group's kernels took on the first
	// cluster, over all chunks but those of another size.
	groups []int64
	s      *schedule.Schedule
}

// evaluate finds the latency of a plan, without checks: those are for the answer.
func (w *world) evaluate(ctx context.Context, p *plan, limit int64) outcome {
	opt := w.opt
	opt.InPlace, opt.Uneven, opt.unchecked = p.inPlace, p.uneven, true
	r, err := p.prepare(ctx, w, opt)
	if err != nil {
		return outcome{err: err}
	}
	program, alike, err := lower.Outline("", r.Spec, r.Plans, r.Lower)
	if err != nil {
		return outcome{err: err}
	}
	ps, start, err := sim.Latency(ctx, program, alike, limit)
	o := outcome{err: err, ps: ps, s: r.Schedule}
	if start == nil {
		return o
	}
	if r.Spec.Energy != nil {
		macs, ops, bytes := sim.Accesses(program, alike)
		o.joules = energyOfWork(r.Spec, r.Schedule.Graph, macs, ops, bytes, ps).Total()
	}
	// Kernels follow one another: each lasts until the next is launched.
	o.groups = make([]int64, len(p.cuts))
	seg := r.Plans[0][0]
	kernel, last, group := 0, int64(0), -1
	for i := range program.Commands {
		c := &program.Commands[i]
		if c.Kind != isa.Launch || program.Queues[c.Queue].Cluster != 0 {
			continue
		}
		if group >= 0 {
			o.groups[group] += start[i] - last
		}
		last, group = start[i], -1
		if kernel < len(seg.Schedule.Order)*seg.Iterations {
			group = seg.Schedule.Instances.Instances[seg.Schedule.Order[kernel%len(seg.Schedule.Order)]].Group
		}
		kernel++
	}
	if group >= 0 {
		o.groups[group] += ps - last
	}
	return o
}

// result is a plan with all checks.
func (w *world) result(ctx context.Context, p *plan) (*Result, error) {
	opt := w.opt
	opt.InPlace, opt.Uneven = p.inPlace, p.uneven
	r, err := p.prepare(ctx, w, opt)
	if err != nil {
		return nil, err
	}
	return r, r.simulate(ctx)
}
