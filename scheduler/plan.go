package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
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
	sooner   map[model.OpID]int              // how many layers of its kernel one goes in front of, by anchor; see layersOf
	alone    map[model.OpID]bool             // operators with which a layer begins, though they could join one
	rule     graphturbo.SpillRule
	apart    bool // see graphturbo.Apart
	over     bool // see graphturbo.PlaceOver
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

// name is one that no plan with other decisions has, among those of a search and a chunk.
func (p *plan) name() [sha256.Size]byte {
	b := make(numbers, 0, 1<<12)
	for i := range p.cuts {
		c := &p.cuts[i]
		b.add(int64(len(c.ops)), int64(c.split.Dim), c.split.Factor)
		for _, id := range c.ops {
			b.add(int64(id))
		}
	}
	b.add(int64(len(p.own)), int64(len(p.bindings)), int64(len(p.layers)))
	for _, id := range p.own {
		b.add(int64(id))
	}
	for i, x := range p.bindings {
		b.binding(x)
		b.add(int64(p.scopes[i]))
	}
	for _, id := range slices.Sorted(maps.Keys(p.inner)) {
		if x := p.inner[id]; x != nil {
			b.add(int64(id))
			b.binding(x)
		}
	}
	b.add(-1)
	for _, id := range slices.Sorted(maps.Keys(p.down)) {
		if p.down[id] {
			b.add(int64(id))
		}
	}
	b.add(-1)
	for _, id := range slices.Sorted(maps.Keys(p.sooner)) {
		if n := p.sooner[id]; n != 0 {
			b.add(int64(id), int64(n))
		}
	}
	b.add(-1)
	for _, id := range slices.Sorted(maps.Keys(p.alone)) {
		if p.alone[id] {
			b.add(int64(id))
		}
	}
	b.add(-1)
	for i := range p.cuts { // choices of other groups decide nothing
		x, ok := p.bound[p.cuts[i].piece()]
		if !ok {
			continue
		}
		b.add(int64(i))
		b.binding(x.binding)
		if x.scope != nil {
			b.add(int64(*x.scope))
		}
		b.add(-1)
	}
	b = fmt.Append(b, p.recipe.Name, p.inPlace, p.uneven, p.rule, p.order.Name, p.apart, p.over, p.lower)
	return sha256.Sum256(b)
}

// numbers are a name under construction.
type numbers []byte

func (b *numbers) add(list ...int64) {
	for _, n := range list {
		*b = binary.AppendVarint(*b, n)
	}
}

func (b *numbers) binding(x schedule.Binding) {
	b.add(int64(len(x)))
	b.add(x...)
}

func (b *numbers) region(r model.Region) {
	b.add(int64(len(r)))
	for _, iv := range r {
		b.add(iv.Lo, iv.Hi)
	}
}

// strategies gives a recipe the decisions of the plan.
func (p *plan) strategies() Recipe {
	r := p.recipe
	r.Fallback = nil
	r = r.With("group", Strategy{Name: "best", Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = p.grouping(d.Graph), p.layers
		if p.layers == nil && len(p.sooner)+len(p.alone) > 0 {
			for _, sg := range d.Grouping.Groups {
				d.Layers = append(d.Layers, p.layersOf(d.Graph, sg.Ops))
			}
		}
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
	if p.over {
		r = r.With("spill", Strategy{Name: "best", Decide: func(_ context.Context, d *Draft) error { return graphturbo.PlaceOver(d.Schedule, p.rule) }})
	}
	r = r.With("address", lowestAddress)
	if p.apart {
		r = r.With("address", apartAddress)
	}
	r = r.With("issue", setting("best", "", func(d *Draft) { d.Lower = p.lower }))
	r = r.With("prefetch", setting("best", "", func(*Draft) {}))
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

// layersOf are the layers of a kernel in the order in which it runs them: those that are derived,
// cut as the plan says; one after the other goes in front of as many of those before it as the
// plan says, or until one that it reads.
func (p *plan) layersOf(g *model.Graph, ops []model.OpID) []schedule.Layer {
	var list []schedule.Layer
	for _, l := range p.parts(g, schedule.Layers(g, ops)) {
		at := len(list)
		for n := p.sooner[l.Anchor]; n > 0 && at > 0 && !slices.ContainsFunc(l.Inputs, func(t model.TensorID) bool { return slices.Contains(list[at-1].Outputs, t) }); n-- {
			at--
		}
		list = slices.Insert(list, at, l)
	}
	return list
}

// parts cuts layers in front of the operators that are alone.
func (p *plan) parts(g *model.Graph, derived []schedule.Layer) []schedule.Layer {
	if len(p.alone) == 0 {
		return derived
	}
	var list []schedule.Layer
	for _, l := range derived {
		from := 0
		for i := 1; i <= len(l.Ops); i++ {
			switch {
			case i < len(l.Ops) && !p.alone[l.Ops[i]]:
			case from == 0 && i == len(l.Ops):
				list = append(list, l)
			default:
				list, from = append(list, schedule.NewLayer(g, l.Ops[from:i])), i
			}
		}
	}
	return list
}

// adopt notes how the layers of a kernel differ from those that are derived; false: they are not
// parts of these.
func (p *plan) adopt(g *model.Graph, ops []model.OpID, layers []schedule.Layer) bool {
	begins := map[model.OpID]bool{}
	for _, l := range layers {
		begins[l.Ops[0]] = true
	}
	derived := schedule.Layers(g, ops)
	for _, l := range derived {
		for _, id := range l.Ops[1:] {
			if begins[id] {
				p.alone[id] = true
			}
		}
	}
	if derived = p.parts(g, derived); len(derived) != len(layers) {
		return false
	}
	at := make([]int, len(derived))
	for i, l := range derived {
		at[i] = slices.IndexFunc(layers, func(own schedule.Layer) bool { return slices.Equal(own.Ops, l.Ops) })
		if at[i] < 0 {
			return false
		}
		for _, before := range at[:i] {
			if before > at[i] {
				p.sooner[l.Anchor]++
			}
		}
	}
	return true
}

// bind puts the plan's bindings and scopes in the place of the recipe's, as far as cores
// and extents allow.
func (p *plan) bind(d *Draft) {
	if len(p.inner) > 0 {
		d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
		for k, layers := range d.Layers {
			for l := range layers {
				// A layer that was cut or joined may have a result of another rank now.
				if b := p.inner[layers[l].Anchor]; b != nil && len(layers[l].Outputs) > 0 && len(b) == len(d.Graph.Tensor(layers[l].Outputs[0]).Shape) {
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
	p := &plan{recipe: r.Recipe, inPlace: inPlace, uneven: r.Uneven, chunk: r.Chunk, rule: graphturbo.LongestLifetime, lower: r.Lower, bound: map[piece]choice{},
		inner: map[model.OpID]schedule.Binding{}, down: map[model.TensorID]bool{}, sooner: map[model.OpID]int{}, alone: map[model.OpID]bool{}, apart: r.Recipe.Pick("address") == apartAddress.Name}
	if r.Recipe.Pick("spill") == string(graphturbo.LargestFirst) {
		p.rule = graphturbo.LargestFirst
	}
	s := r.Schedule
	for k, sg := range s.Grouping.Groups {
		p.cuts = append(p.cuts, cut{sg.Ops, sg.Split})
		if !p.adopt(s.Graph, sg.Ops, s.Layers[k]) {
			p.layers = s.Layers
		}
	}
	for i := range s.Steps {
		from, _ := s.Overwritten(&s.Steps[i])
		p.over = p.over || from != nil
	}
	for k, own := range s.LayerBindings {
		for l, b := range own {
			if b != nil {
				p.inner[s.Layers[k][l].Anchor] = b
			}
		}
	}
	for i := range s.Values {
		v := &s.Values[i]
		if v.Instance < 0 || v.Wanted != schedule.GB {
			continue
		}
		sg := s.Grouping.Groups[s.Instances.Instances[v.Instance].Group]
		if s.Scopes[v.Instance] != schedule.GB || !slices.Contains(sg.Outputs, v.Tensor) {
			p.down[v.Tensor] = true
		}
	}
	p.own, p.bindings, p.scopes = s.Order, s.Bindings, s.Scopes
	return p
}

// pin makes choices of the bindings and scopes of each group's first instance, where there are none.
func (p *plan) pin() {
	i := 0 // instance
	for k := range p.cuts {
		c := p.bound[p.cuts[k].piece()]
		if c.binding == nil {
			c.binding = p.bindings[i]
		}
		if c.scope == nil {
			c.scope = &p.scopes[i]
		}
		p.bound[p.cuts[k].piece()] = c
		i += int((&schedule.SubGraph{Split: p.cuts[k].split}).Factor())
	}
}

// regroup is the plan with other groups. What was decided for others of their kind stays.
func (p *plan) regroup(cuts []cut) *plan {
	q := *p
	if p.bindings != nil && p.recipe.at("bind").Exact {
		q.bound = maps.Clone(p.bound)
		q.pin()
	}
	q.cuts, q.layers, q.own, q.bindings, q.scopes = cuts, nil, nil, nil, nil
	return &q
}

// prepare makes all decisions.
func (p *plan) prepare(ctx context.Context, w *world, opt Options) (*Result, error) {
	named := p.recipe
	if p.apart && named.Pick("address") != apartAddress.Name {
		named = named.With("address", apartAddress)
		named.Name += "+address=" + apartAddress.Name
	}
	return w.prepare(ctx, named, p.chunk, opt, func(size int64) Recipe {
		if size != p.chunk { // the rest of a share
			return p.recipe
		}
		return p.strategies()
	})
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
	memos   map[memoKey]*schedule.Memo
	groups  map[grouped]*schedule.Schedule
	mu      sync.Mutex
	memory  []*lower.Memory // free; a pool would lose it to the collector
}

// newWorld is that of a batch.
func newWorld(net network.Network, machine, spec *hardware.Spec, batch int64, opt Options) *world {
	return &world{net: net, machine: machine, spec: spec, batch: batch, shares: Shares(batch, spec.Clusters), opt: opt,
		graphs: map[int64]*model.Graph{}, memos: map[memoKey]*schedule.Memo{}, groups: map[grouped]*schedule.Schedule{}}
}

// take is memory that nobody uses, and give gives it back.
func (w *world) take() *lower.Memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.memory)
	if n == 0 {
		return &lower.Memory{}
	}
	m := w.memory[n-1]
	w.memory = w.memory[:n-1]
	return m
}

func (w *world) give(m *lower.Memory) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory = append(w.memory, m)
}

// prepare makes the decisions for a chunk by the recipe for each size, in the name of another.
func (w *world) prepare(ctx context.Context, named Recipe, chunk int64, opt Options, of func(size int64) Recipe) (*Result, error) {
	opt.Chunk = chunk
	r := &Result{Recipe: named, Source: w.net.Name, Machine: w.machine, Spec: w.spec, Batch: w.batch, Chunk: chunk, Shares: w.shares, Uneven: opt.Uneven.Alternatives()[0], level: opt.Level}
	r.assume(w.net)
	opt.note = func(text string) { r.Notes = append(r.Notes, text) }
	idle, err := r.plan(func(size, _ int64) (*Draft, error) {
		g, err := w.graph(size)
		if err != nil {
			return nil, err
		}
		opt := opt
		opt.memo = w.memo(size, opt.Uneven.Alternatives()[0])
		d, err := draft(ctx, g, w.spec, of(size), opt)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s on %s, variant %s, %d per cluster: %w", w.net.Name, w.machine.Name, named.Name, size, err)
		}
		return d, err
	})
	if err != nil {
		return nil, err
	}
	return r, r.describe(idle)
}

type memoKey struct {
	size   int64
	uneven schedule.Uneven
}

// grouped names the groups of a strategy.
type grouped struct {
	graph    *model.Graph
	strategy string
	inPlace  bool
	uneven   schedule.Uneven
}

// fastest is the function of that name, of one recipe and in this world. Exact recipes are
// checked.
func (w *world) fastest(ctx context.Context, r Recipe, inPlace bool, chunk int64) (best *Result, o outline, err error) {
	opt := w.opt
	opt.InPlace, opt.unchecked = inPlace, !r.Exact()
	settle := func(greedy Recipe) (*Result, error) {
		made, _, err := w.fastest(ctx, greedy, inPlace, chunk)
		return made, err
	}
	err = opt.eachPieces(ctx, r, settle, func(opt Options, _ func(*Result) bool) (*Result, error) {
		made, err := w.recipe(ctx, r, chunk, opt)
		if err != nil {
			return nil, err
		}
		x, err := w.outline(ctx, made, 0)
		if err == nil && (best == nil || x.ps < o.ps) {
			best, o = made, x
		}
		return made, err
	})
	if err != nil && (best == nil || ctx.Err() != nil || !tooLarge(err)) {
		return nil, outline{}, err
	}
	return best, o, nil
}

// recipe makes a recipe's decisions for a chunk.
func (w *world) recipe(ctx context.Context, r Recipe, chunk int64, opt Options) (*Result, error) {
	own := r
	// Several recipes have the same groups.
	if group := r.at("group"); group.Name == algorithm2.Name && r.own["group"].Decide == nil {
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
	return w.prepare(ctx, r, chunk, opt, func(int64) Recipe { return own })
}

// An outline is what the simulator says of a result.
type outline struct {
	ps int64 // math.MaxInt64: more than the limit
	// joules is its energy; 0: the machine's description has no figures. score is what the
	// search compares.
	joules   float64
	score    float64
	commands int     // of a cluster
	start    []int64 // of each; nil: more than the limit
	program  *isa.Program
}

// outline simulates a result that is only prepared. Its program ends with the next one that is
// made in the same memory, which done gives back.
func (w *world) outlineIn(ctx context.Context, r *Result, limit int64) (o outline, done func(), err error) {
	opt := r.Lower
	opt.Memory = w.take()
	done = func() { w.give(opt.Memory) }
	program, alike, err := lower.Outline("", r.Spec, r.Plans, opt)
	if err != nil {
		return o, done, err
	}
	o.program, o.commands = program, len(program.Commands)
	if o.ps, o.start, err = sim.Latency(ctx, program, alike, limit); o.start != nil && r.Spec.Energy != nil {
		macs, ops, bytes := sim.Accesses(program, alike)
		o.joules = energyOfWork(r.Spec, r.Schedule.Graph, macs, ops, bytes, o.ps).Total()
	}
	return o, done, err
}

// outline is outlineIn, without the program.
func (w *world) outline(ctx context.Context, r *Result, limit int64) (outline, error) {
	o, done, err := w.outlineIn(ctx, r, limit)
	defer done()
	o.program, o.start = nil, nil
	return o, err
}

// floor is about what a chunk takes at least, in picoseconds: all products at the peak rate, or
// all weights, which come anew for each chunk as far as a cluster cannot hold them. It says where
// to search and proves nothing.
func (w *world) floor(chunk int64) (float64, error) {
	g, err := w.graph(chunk)
	if err != nil {
		return 0, err
	}
	m, err := cost.NewWith(w.spec, w.opt.Cost)
	if err != nil {
		return 0, err
	}
	share := w.shares[0]
	times := float64(share+chunk-1) / float64(chunk)
	weights := 0.0
	for _, t := range g.Tensors {
		looked := func(c model.OpID) bool { return g.Op(c).Kind == "Gather" && g.Op(c).Inputs[0] == t.ID }
		if t.Role == model.Constant && !slices.ContainsFunc(t.Consumers, looked) {
			weights += float64(t.Bytes())
		}
	}
	kept := float64(schedule.CoresWithLB(w.spec)) * float64(schedule.DataBytes(w.spec)+schedule.WeightBufferBytes(w.spec))
	if w.spec.GB != nil {
		kept += float64(w.spec.GB.SizeBytes)
	}
	busy := min(w.batch, int64(w.spec.Clusters))
	compute := productSeconds(g, m) * float64(share) / float64(chunk)
	ddr := float64(busy) * (weights + (math.Floor(times)-1)*max(0, weights-kept)) / w.spec.DDR.BandwidthBytesPerSecond
	return 1e12 * max(compute, ddr), nil
}

// productSeconds is what a cluster takes for all products of a graph at the peak rate.
func productSeconds(g *model.Graph, m *cost.Model) float64 {
	macs := 0.0
	for _, op := range g.Ops {
		if g.OnMatrixUnit(op) {
			macs += float64(g.Work(op, model.Whole(g.Tensor(op.Outputs[0]).Shape)).MACs)
		}
	}
	return macs * float64(m.Spec().Clusters) / m.PeakMACsPerSecond(lower.ComputeType(g))
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
		w.graphs[size] = g
	}
	return g, err
}

// memo is that of the graph at a size, for pieces of a kind.
func (w *world) memo(size int64, uneven schedule.Uneven) *schedule.Memo {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := memoKey{size, uneven}
	if w.memos[key] == nil {
		w.memos[key] = schedule.NewMemo()
	}
	return w.memos[key]
}

// An outcome is what the simulator says of a plan.
type outcome struct {
	outline
	err error
	// Of a plan that was simulated to its end, what each group's kernels took on the first
	// cluster, over all chunks but those of another size.
	groups []int64
	s      *schedule.Schedule
}

// decided is a plan with all decisions, without checks: those are for the answer. What has the
// same name is lowered to the same commands.
func (w *world) decided(ctx context.Context, p *plan) (r *Result, name [sha256.Size]byte, err error) {
	opt := w.opt
	opt.InPlace, opt.Uneven, opt.unchecked = p.inPlace, p.uneven, true
	if r, err = p.prepare(ctx, w, opt); err != nil {
		return nil, name, err
	}
	b := numbers(fmt.Append(nil, r.Lower))
	named := map[*schedule.Schedule]bool{}
	for _, segments := range r.Plans {
		for _, seg := range segments {
			b.add(int64(seg.Iterations))
			if !named[seg.Schedule] {
				named[seg.Schedule] = true
				b.schedule(seg.Schedule)
			}
		}
	}
	return r, sha256.Sum256(b), nil
}

// schedule adds all that commands follow from.
func (b *numbers) schedule(s *schedule.Schedule) {
	for i := range s.Steps {
		st := &s.Steps[i]
		layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
		b.add(int64(st.Instance), int64(layer.Anchor), int64(len(layer.Ops)))
		for _, id := range layer.Ops {
			b.add(int64(id))
		}
		b.region(st.CoreOutput)
		b.binding(st.Binding)
		b.add(st.Tiles, st.StageAddress, st.StageBytes, int64(len(st.Reads)), int64(len(st.Params)))
		if st.Panels {
			b.add(-1)
		}
		for k := range st.Reads {
			r := &st.Reads[k]
			b.add(int64(r.Value), r.NeedBytes, r.RemoteBytes, r.UnionBytes, r.CoreNeedBytes, r.CoreRemoteBytes)
		}
		for k := range st.Params {
			x := &st.Params[k]
			b.add(int64(x.Tensor), x.Offset, x.CoreBytes, x.UnionBytes)
		}
		if st.Nest != nil {
			*b = append(*b, st.Nest.Text(s.Graph.Tensor(st.Output))...)
		}
	}
	for i := range s.Values {
		v := &s.Values[i]
		b.add(int64(v.Tensor), int64(v.Instance), int64(v.Level), v.Address, v.Bytes, v.CoreBytes, int64(v.Def), int64(v.Last))
		b.region(v.Region)
		b.binding(v.Binding)
	}
}

// evaluate simulates a plan.
func (w *world) evaluate(ctx context.Context, p *plan, limit int64) outcome {
	r, _, err := w.decided(ctx, p)
	if err != nil {
		return outcome{err: err}
	}
	return w.judge(ctx, p, r, limit)
}

// judge simulates a plan of which all is decided.
func (w *world) judge(ctx context.Context, p *plan, r *Result, limit int64) outcome {
	made, done, err := w.outlineIn(ctx, r, limit)
	defer done()
	o := outcome{outline: made, err: err, s: r.Schedule}
	o.program, o.start = nil, nil
	program, start, ps := made.program, made.start, made.ps
	if start == nil {
		return o
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
