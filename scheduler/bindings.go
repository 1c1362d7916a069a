package scheduler

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/astitch"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// spreading holds the bindings of instances and layers, and the places of their results.
type spreading struct {
	bindings []schedule.Binding // of instances; nil: by the recipe's strategy, Algorithm 4 in the place of an exact one
	scopes   []schedule.Level
	// layerBindings has the bindings of layers, by anchor; see schedule.Schedule.LayerBindings.
	layerBindings map[model.OpID]schedule.Binding
	groupBindings map[piece]groupBinding // that take the place of the strategy's
}

// A groupBinding is the binding of the first output of a group's instances, and the scope of their outputs.
type groupBinding struct {
	binding schedule.Binding // nil: the strategy's
	scope   *schedule.Level  // nil: the strategy's
}

func takeBindings(d *Draft, _ bool) Decision {
	x := spreading{bindings: d.Bindings, scopes: d.Scopes, layerBindings: map[model.OpID]schedule.Binding{}}
	for k, own := range d.LayerBindings {
		for l, b := range own {
			if b != nil {
				x.layerBindings[d.Layers[k][l].Anchor] = b
			}
		}
	}
	return x
}

// Stage names the row.
func (x spreading) Stage() string { return "bind" }

// Apply binds instances and layers, as far as cores and extents allow.
func (x spreading) Apply(ctx context.Context, d *Draft) error {
	if x.bindings != nil {
		d.Bindings, d.Scopes = slices.Clone(x.bindings), slices.Clone(x.scopes)
	} else {
		bind := d.Recipe.at("bind")
		if bind.Exact {
			bind = algorithm4
		}
		if err := bind.Decide(ctx, d); err != nil {
			return err
		}
	}
	if len(x.layerBindings) > 0 {
		d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
		for k, layers := range d.Layers {
			for l := range layers {
				// A layer that was cut or joined may have a result of another rank now.
				if b := x.layerBindings[layers[l].Anchor]; b != nil && len(layers[l].Outputs) > 0 &&
					len(b) == len(d.Graph.Tensor(layers[l].Outputs[0]).Shape) {
					own := d.LayerBindings[k]
					d.LayerBindings[k] = append(own, make([]schedule.Binding, l+1-len(own))...)
					d.LayerBindings[k][l] = b
				}
			}
		}
	}
	if len(x.groupBindings) == 0 {
		return nil
	}
	cores := schedule.CoresWithLB(d.Spec)
	for i := range d.Instances.Instances {
		inst := &d.Instances.Instances[i]
		sg := d.Grouping.Groups[inst.Group]
		c, ok := x.groupBindings[(&Cut{sg.Ops, sg.Split}).piece()]
		if !ok {
			continue
		}
		if c.scope != nil {
			d.Scopes[i] = *c.scope
		}
		out := sg.Outputs[0]
		op := d.Graph.Op(d.Graph.Tensor(out).Producer)
		forbidden := d.Graph.Sequential(op, slices.Index(op.Outputs, out))
		if c.binding != nil && schedule.CheckBinding(inst.Regions[out], c.binding, forbidden, cores) == nil {
			d.Bindings[i] = c.binding
		}
	}
	return nil
}

// Key has the bindings; those of groups that are not among p's decide nothing.
func (x spreading) Key(b *Key, p *Decisions) {
	b.Add(int64(len(x.bindings)))
	for i, y := range x.bindings {
		b.binding(y)
		b.Add(int64(x.scopes[i]))
	}
	addMap(b, x.layerBindings, func(y schedule.Binding) bool {
		b.binding(y)
		return y != nil
	})
	list := p.Groups()
	for i := range list {
		y, ok := x.groupBindings[list[i].piece()]
		if !ok {
			continue
		}
		b.Add(int64(i))
		b.binding(y.binding)
		if y.scope != nil {
			b.Add(int64(*y.scope))
		}
		b.Add(-1)
	}
}

// After drops bindings of other instances, or that were made for another order than the one that a strategy makes now.
func (x spreading) After(changed string, from, to *Decisions) Decision {
	switch changed {
	case "layers", "outputs":
		return x
	case "order":
		if of[sequence](to).order != nil {
			return x
		}
	}
	if x.bindings != nil && from.Recipe.at("bind").Exact {
		x = x.pinned(from.Groups())
	}
	x.bindings, x.scopes = nil, nil
	return x
}

// pinned makes the bindings and scopes of each group's first instance those of the group, where it has none.
func (x spreading) pinned(list Groups) spreading {
	x.groupBindings = cloned(x.groupBindings)
	i := 0 // instance
	for k := range list {
		c := x.groupBindings[list[k].piece()]
		if c.binding == nil {
			c.binding = x.bindings[i]
		}
		if c.scope == nil {
			c.scope = &x.scopes[i]
		}
		x.groupBindings[list[k].piece()] = c
		i += int((&schedule.SubGraph{Split: list[k].Split}).Factor())
	}
	return x
}

// Pin makes the bindings of instances those of their groups, in decisions that nobody else has.
func (p *Decisions) Pin() { p.amend(of[spreading](p).pinned(p.Groups())) }

func (x spreading) extend(e *extension) Decision {
	if !e.same {
		x.bindings, x.scopes = nil, nil
	}
	x.layerBindings = extended(x.layerBindings, e.ops)
	x.groupBindings = extended(x.groupBindings, e.pieces)
	return x
}

// inherit binds layers and groups as in the schedule at hand.
func (x spreading) inherit(s *schedule.Schedule, fresh Groups) Decision {
	has := map[model.OpID]schedule.Binding{} // by anchor
	anchors := map[model.OpID]model.OpID{}   // by operator
	for i := range s.Steps {
		if layer, middle := layerOf(s, &s.Steps[i]); middle {
			has[layer.Anchor] = s.Steps[i].Binding
			for _, id := range layer.Ops {
				anchors[id] = layer.Anchor
			}
		}
	}
	x.layerBindings, x.groupBindings = cloned(x.layerBindings), cloned(x.groupBindings)
	for i := range fresh {
		c := &fresh[i]
		for _, id := range c.Ops {
			if b := has[id]; b != nil {
				x.layerBindings[id] = b
			}
		}
		_, outputs := schedule.Boundary(s.Graph, c.Ops)
		b := x.groupBindings[c.piece()]
		if b.binding = has[anchors[s.Graph.Tensor(outputs[0]).Producer]]; b.binding != nil {
			x.groupBindings[c.piece()] = b
		}
	}
	return x
}

var bindMoves = []Move{
	{"bind", 3, (*Site).moveBinding},
	{"layer", 4, (*Site).moveLayer},
	{"layers", 4, (*Site).moveLayers},
	{"scope", 1, (*Site).moveScope},
}

// choose changes what is decided for the instances of a group and of those that are alike.
func (a *Site) choose(k int, change func(*groupBinding)) *Decisions {
	x, list := of[spreading](a.Decisions), a.Groups()
	x.groupBindings = cloned(x.groupBindings)
	for _, i := range a.alike(k) {
		key := list[i].piece()
		c := x.groupBindings[key]
		change(&c)
		x.groupBindings[key] = c
	}
	return a.with(x)
}

func (a *Site) moveBinding() *Decisions {
	k := a.Place(len(a.Groups()))
	made := a.Schedule
	sg := made.Grouping.Groups[k]
	inst := &made.Instances.Instances[made.Instances.First[k]+int(sg.Factor()/2)]
	list := bindings(inst.Regions[sg.Outputs[0]], schedule.CoresWithLB(made.Spec), made.UnevenCores)
	b := list[a.Rand.IntN(len(list))]
	if b.Equal(made.Bindings[inst.ID]) {
		return nil
	}
	return a.choose(k, func(c *groupBinding) { c.binding = b })
}

// bindings lists those of a box that use at least half of the cores, or the most that can.
func bindings(r model.Region, cores int64, uneven bool) []schedule.Binding {
	var list []schedule.Binding
	var fill func(b schedule.Binding, left int64)
	fill = func(b schedule.Binding, left int64) {
		if len(b) == len(r) {
			list = append(list, slices.Clone(b))
			return
		}
		for f := int64(1); f <= left; f++ {
			if n := r[len(b)].Len(); left%f == 0 && (n%f == 0 || uneven && model.Pieces(n, f) == f) {
				fill(append(b, f), left/f)
			}
		}
	}
	fill(nil, cores)
	most := int64(1)
	for _, b := range list {
		most = max(most, b.Cores())
	}
	return slices.DeleteFunc(list, func(b schedule.Binding) bool { return 2*b.Cores() < most })
}

// bindingsOf returns the candidate bindings of a layer on cores of a kind, of which an instance computes a box of the
// result.
func bindingsOf(s *schedule.Schedule, kind int, layer *schedule.Layer, out model.TensorID,
	region model.Region) []schedule.Binding {
	cores, forbidden := schedule.CoresWithLB(s.Spec.Kind(kind)), schedule.Forbidden(s.Graph, layer.Ops, out)
	return slices.DeleteFunc(bindings(region, cores, s.UnevenCores), func(b schedule.Binding) bool {
		return schedule.CheckBinding(region, b, forbidden, cores) != nil
	})
}

func (a *Site) moveScope() *Decisions {
	k := a.Place(len(a.Groups()))
	made := a.Schedule
	to := schedule.LB
	if made.Scopes[made.Instances.First[k]] == schedule.LB {
		to = schedule.GB
	}
	return a.choose(k, func(c *groupBinding) { c.scope = &to })
}

// moveLayer spreads a layer over the cores in another way than its group: such as take few
// cycles are likelier.
func (a *Site) moveLayer() *Decisions {
	made := a.Schedule
	k := a.Place(len(a.Groups()))
	l := a.Rand.IntN(len(made.Layers[k]))
	layer := &made.Layers[k][l]
	inst := &made.Instances.Instances[made.Instances.First[k]+int(made.Grouping.Groups[k].Factor()/2)]
	if len(layer.Outputs) == 0 || inst.Regions[layer.Outputs[0]].Elements() == 0 {
		return nil
	}
	g, out := made.Graph, layer.Outputs[0]
	region := inst.Regions[out]
	x := of[spreading](a.Decisions)
	var own schedule.Binding
	least := math.Inf(1)
	kind := made.LayerKind(k, l)
	for _, b := range bindingsOf(made, kind, layer, out, region) {
		if b.Equal(x.layerBindings[layer.Anchor]) {
			continue
		}
		boxes := schedule.Regions{out: schedule.Slice(region, b, g.Tensor(out).Layout, 0)}
		schedule.BackPropagate(g, layer.Ops, boxes)
		cycles := a.Cost.Kind(kind).LayerCycles(cost.Layer{Graph: g, Ops: layer.Ops, Anchor: layer.Anchor, Boxes: boxes,
			Output: out, Cores: b.Cores()})
		if c := float64(cycles) * math.Exp(0.3*a.Rand.NormFloat64()); c < least {
			own, least = b, c
		}
	}
	if own == nil {
		return nil
	}
	if x.layerBindings[layer.Anchor] != nil && a.Rand.IntN(4) == 0 {
		own = nil // as its group
	}
	x.layerBindings = cloned(x.layerBindings)
	for _, id := range a.places(k, slices.Index(a.Groups()[k].Ops, layer.Anchor)) {
		x.layerBindings[id] = own
	}
	return a.with(x)
}

// layerCosts has the costs of a kind of group's layers under each of their bindings; places
// are their anchors' among the group's operators.
type layerCosts struct {
	*binding.Layers
	places []int
}

// layerCosts returns the costs of a group, from the schedule in which they were first computed.
func (a *Site) layerCosts(k int) *layerCosts {
	kind := a.Kind(k)
	if known, there := a.layers[kind]; there {
		return known
	}
	made := a.Schedule
	if made.Spec.Mixed() { // costs are those of one kind of core
		return nil
	}
	inst := made.Instances.First[k] + int(made.Grouping.Groups[k].Factor()/2)
	l, err := binding.LayersOf(made, inst, a.Cost, func(layer *schedule.Layer, t model.TensorID,
		region model.Region) []schedule.Binding {
		return bindingsOf(made, 0, layer, t, region)
	})
	var costs *layerCosts // none: it can't be had
	if err == nil {
		costs = &layerCosts{Layers: l}
		for _, anchor := range l.Anchors {
			costs.places = append(costs.places, slices.Index(a.Groups()[k].Ops, anchor))
		}
	}
	if a.layers == nil {
		a.layers = map[any]*layerCosts{}
	}
	a.layers[kind] = costs
	return costs
}

// moveLayers spreads all layers of a group over the cores at once: the best for costs that are
// drawn around what is known of them, by dynamic programming.
func (a *Site) moveLayers() *Decisions {
	k := a.Place(len(a.Groups()))
	if len(a.Schedule.Layers[k]) < 2 {
		return nil
	}
	l := a.layerCosts(k)
	if l == nil {
		return nil
	}
	draw := func(deviation float64) float64 { return math.Exp(deviation * a.Rand.NormFloat64()) }
	problem := l.Problem(binding.Weights{Weights: draw(0.5), Moves: 0.7 * draw(0.7)}, func() float64 { return draw(0.05) })
	found, err := binding.Search(context.Background(), problem, binding.Options{WorkLimit: 1 << 14})
	if err != nil || found.Choice == nil {
		return nil
	}
	x, list := of[spreading](a.Decisions), a.Groups()
	x.layerBindings = cloned(x.layerBindings)
	changed := false
	for _, i := range a.alike(k) {
		for n, place := range l.places {
			anchor := list[i].Ops[place]
			own := l.Bindings[n][found.Choice[n]]
			changed = changed || !own.Equal(x.layerBindings[anchor])
			x.layerBindings[anchor] = own
		}
	}
	if !changed {
		return nil
	}
	return a.with(x)
}

var plainBinding = Strategy{Name: "plain", Description: "the outermost dimensions",
	Decide: func(_ context.Context, d *Draft) error {
		d.Bindings, d.Scopes = graphturbo.PlainBindGrid(d.Graph, d.Grouping, d.Instances, schedule.Grid(d.Spec),
			d.UnevenCores)
		return nil
	}}

var blockLocality = Strategy{Name: "block-local",
	Description: "plain; only what a core itself reads again stays with it",
	Decide: func(ctx context.Context, d *Draft) error {
		err := plainBinding.Decide(ctx, d)
		d.Scopes = astitch.Scopes(len(d.Scopes))
		return err
	}, Refine: astitch.Localize}

var algorithm4 = Strategy{Name: "alg4", Alias: "greedy", Description: "Algorithm 4 of the paper, an instance at a time",
	Decide: func(_ context.Context, d *Draft) error {
		d.Bindings, d.Scopes = graphturbo.BindGrid(d.Graph, d.Grouping, d.Instances, d.Order, schedule.Grid(d.Spec),
			d.UnevenCores)
		return nil
	}}

var exactBinding = Strategy{Name: "search", Description: "least cost at measured prices, by dynamic programming",
	Exact:  true,
	Decide: func(ctx context.Context, d *Draft) error { return d.leastBinding(ctx, "search") }}

var ilpBinding = Strategy{Name: "ilp", Description: "least cost, by integer program (HiGHS)", NeedsSolver: true,
	Exact:  true,
	Decide: func(ctx context.Context, d *Draft) error { return d.leastBinding(ctx, "ilp") }}

// BindingOptions are the options of a binding problem.
func BindingOptions(o Options, n *binding.Network) binding.Options {
	return binding.Options{TimeLimit: o.TimeLimit, MemoryBytes: SolverMemory, Start: n.Given, Solver: o.Solver,
		Progress: o.ReportTo("bind")}
}

// leastBinding gives a draft with an order the bindings and scopes of least cost.
func (d *Draft) leastBinding(ctx context.Context, method string) error {
	if err := algorithm4.Decide(ctx, d); err != nil {
		return err
	}
	n, err := d.state.shared.bindings(ctx, d)
	if err != nil {
		return err
	}
	var r *binding.Result
	if method == "ilp" {
		opts := BindingOptions(d.Options, n)
		opts.WorkLimit = d.Options.WorkLimit
		r, err = binding.ILP(ctx, n.Problem, opts)
	} else {
		opts := BindingOptions(d.Options, n)
		opts.TimeLimit = d.Options.searchLimit()
		r, err = binding.Search(ctx, n.Problem, opts)
	}
	if err != nil {
		return err
	}
	choice := r.Choice
	if method == "search" {
		if choice, err = d.measuredBinding(ctx, n, choice); err != nil {
			return err
		}
	}
	d.Bindings, d.Scopes = n.Decode(choice)
	o := r.Outcome()
	if o.Objective = n.Problem.Seconds(choice); o.Objective > o.Bound*(1+1e-9) && o.Status == milp.Optimal {
		o.Status = milp.Feasible // by formulas another is
	}
	d.solve("bind", SecondsUnit, o, "")
	return nil
}

var joins = Strategy{Name: "derived", Description: "from bindings and scopes, §3.5 of the paper",
	Decide: func(ctx context.Context, d *Draft) error {
		if d.Between != schedule.LB {
			for i := range d.Scopes {
				d.Scopes[i] = d.Between
			}
		}
		d.Joins = graphturbo.Join(d.Graph, d.Grouping, d.Instances, d.Order, d.Bindings, d.Scopes, d.UnevenCores)
		if err := d.BuildSteps(ctx, d.Outputs); err != nil {
			return err
		}
		if d.refine != nil {
			d.refine(d.Schedule)
		}
		measureJoins(d.Schedule)
		return nil
	}}

func checkBindings(s *schedule.Schedule) error {
	n := len(s.Instances.Instances)
	if len(s.Bindings) != n || len(s.Scopes) != n {
		return fmt.Errorf("%d bindings and %d scopes, expected %d, the number of instances", len(s.Bindings), len(s.Scopes),
			n)
	}
	cores := schedule.CoresWithLB(s.Spec)
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		out := sg.Outputs[0]
		op := s.Graph.Op(s.Graph.Tensor(out).Producer)
		forbidden := s.Graph.Sequential(op, slices.Index(op.Outputs, out))
		if err := schedule.CheckBinding(inst.Regions[out], s.Bindings[i], forbidden, cores); err != nil {
			return fmt.Errorf("instance %d of %s: %w", inst.Index, sg.Name, err)
		}
		if s.Scopes[i] > schedule.DDR {
			return fmt.Errorf("instance %d of %s: scope %d, expected LB, GB or DDR", inst.Index, sg.Name, s.Scopes[i])
		}
	}
	return nil
}

// measureJoins sets the bytes that redistributions move from what the steps read
// of other cores.
func measureJoins(s *schedule.Schedule) {
	type key struct {
		consumer int
		tensor   model.TensorID
	}
	remote := map[key]int64{}
	for i := range s.Steps {
		st := &s.Steps[i]
		for _, r := range st.Reads {
			if v := &s.Values[r.Value]; v.Instance >= 0 && v.Instance != st.Instance {
				remote[key{st.Instance, v.Tensor}] += r.RemoteBytes
			}
		}
	}
	for i := range s.Joins {
		if j := &s.Joins[i]; j.Kind == schedule.Redistribute {
			j.Bytes = remote[key{j.Consumer, j.Tensor}]
		}
	}
}

var evenBinding = Strategy{Name: "even",
	Description: "each layer over as many cores as leave the largest part the smallest",
	Decide: func(ctx context.Context, d *Draft) error {
		if err := plainBinding.Decide(ctx, d); err != nil {
			return err
		}
		d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
		for k, layers := range d.Layers {
			d.LayerBindings[k] = make([]schedule.Binding, len(layers))
			inst := &d.Instances.Instances[d.Instances.First[k]]
			for i := range layers {
				t := layers[i].Outputs[0]
				box := inst.Regions[t]
				if box.Elements() == 0 || d.Graph.Op(layers[i].Anchor).Kind == "Attention" { // by what its tiles cost
					continue
				}
				var dims []int
				forbidden := schedule.Forbidden(d.Graph, toward(d.Graph, layers[i].Ops, t), t)
				for _, dim := range d.Graph.Tensor(t).Layout {
					if !forbidden[dim] {
						dims = append(dims, dim)
					}
				}
				n := schedule.CoresWithLB(d.Spec.Kind(d.LayerKind(k, i)))
				cores := schedule.One(len(box))
				spreadOver(cores, box, dims, n)
				if !d.Graph.OnMatrixUnit(d.Graph.Op(layers[i].Anchor)) {
					cores = leastMoved(d.Graph, &layers[i], box, cores, dims, n)
				} else if d.Spec.GB == nil && d.Spec.CoreLink.Broadcast {
					cores = leastTaken(d.Graph, &layers[i], box, cores, forbidden, n)
				}
				d.LayerBindings[k][i] = cores
			}
		}
		return nil
	}}

// sampled is how many cores, evenly spaced, stand for all of a layer where bindings are compared.
const sampled = 16

// leastMoved is a layer's binding, or one over fewer of the outer dimensions or with larger parts of the outermost,
// with which no core reads and makes as many bytes. What is rolled, merged or cut into windows takes more of an image
// than it makes, above all where a core's windows begin in one row of them and end in the next.
func leastMoved(g *model.Graph, l *schedule.Layer, box model.Region, cores schedule.Binding, dims []int,
	n int64) schedule.Binding {
	t := l.Outputs[0]
	moved := func(b schedule.Binding) (most int64) {
		for k := range min(sampled, b.Cores()) {
			core := k * (b.Cores() - 1) / max(1, min(sampled, b.Cores())-1)
			reg := schedule.Regions{t: schedule.Slice(box, b, g.Tensor(t).Layout, core)}
			bytes := g.Tensor(t).DType.Bytes(reg[t].Elements())
			schedule.BackPropagate(g, l.Ops, reg)
			for _, in := range l.Inputs {
				bytes += g.Tensor(in).DType.Bytes(reg[in].Elements())
			}
			most = max(most, bytes)
		}
		return most
	}
	least := moved(cores)
	try := func(dims []int, n int64) {
		b := schedule.One(len(box))
		spreadOver(b, box, dims, n)
		if bytes := moved(b); bytes < least {
			cores, least = b, bytes
		}
	}
	for k := len(dims) - 1; k > 0; k-- {
		try(dims[:k], n)
	}
	if len(dims) > 0 {
		outer := box[dims[0]].Len()
		even := (outer + n - 1) / n
		for part := even + 1; part <= min(outer, 4*even); part += max(1, even/8) {
			try(dims[:1], (outer+part-1)/part)
		}
	}
	return cores
}

// leastTaken is a product's binding or, where that gives each core all weights, one over rows and columns, with parts
// no larger, that takes a core the fewest bytes over its link: rows and weights are multicast, as in SUMMA (1997).
func leastTaken(g *model.Graph, l *schedule.Layer, box model.Region, cores schedule.Binding, forbidden []bool,
	n int64) schedule.Binding {
	t, rows, weights := l.Outputs[0], g.Op(l.Anchor).Inputs[0], g.Tensor(g.Op(l.Anchor).Inputs[1])
	taken := func(b schedule.Binding) (part, bytes, columns int64) {
		reg := schedule.Regions{t: schedule.Slice(box, b, g.Tensor(t).Layout, 0)}
		part = reg[t].Elements()
		schedule.BackPropagate(g, l.Ops, reg)
		columns = weights.DType.Bytes(reg[weights.ID].Elements())
		return part, columns + g.Tensor(rows).DType.Bytes(reg[rows].Elements()), columns
	}
	most, least, columns := taken(cores)
	for _, b := range bindings(box, n, true) {
		part, bytes, _ := taken(b)
		if weights.Role == model.Constant && columns == weights.Bytes() && part <= most && bytes < least &&
			schedule.CheckBinding(box, b, forbidden, n) == nil {
			cores, least = b, bytes
		}
	}
	return cores
}

// spreadOver divides some dimensions of a box over at most so many cores, so that the largest
// part has the fewest elements; of equal ones, that with most on the first dimensions.
func spreadOver(cores schedule.Binding, box model.Region, dims []int, n int64) {
	best, now := int64(math.MaxInt64), make([]int64, len(dims))
	var try func(i int, left, part int64)
	try = func(i int, left, part int64) {
		if part >= best {
			return
		}
		if i == len(dims) {
			best = part
			for k, d := range dims {
				cores[d] = now[k]
			}
			return
		}
		extent := box[dims[i]].Len()
		for f := min(left, extent); f >= 1; f-- {
			if now[i] = model.Pieces(extent, f); now[i] == f {
				try(i+1, left/f, part*((extent+f-1)/f))
			}
		}
	}
	try(0, n, 1)
}
