package scheduler

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
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
		bind := d.Recipe.Strategy("bind")
		if bind.Exact {
			bind = ruleFor("bind")
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
	cores := schedule.CoresWithL1(d.Spec)
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
		forbidden := d.Graph.SequentialOf(out)
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
		b.Binding(y)
		b.Add(int64(x.scopes[i]))
	}
	addMap(b, x.layerBindings, func(y schedule.Binding) bool {
		b.Binding(y)
		return y != nil
	})
	list := p.Groups()
	for i := range list {
		y, ok := x.groupBindings[list[i].piece()]
		if !ok {
			continue
		}
		b.Add(int64(i))
		b.Binding(y.binding)
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
	if x.bindings != nil && from.Recipe.Strategy("bind").Exact {
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

// Pin makes the bindings of instances those of their groups. It changes the receiver, which must not be shared.
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
	{Name: "layers"},
	{"scope", 1, (*Site).moveScope},
}

// choose changes what is decided for the instances of a group and of those that are alike.
func (a *Site) choose(k int, change func(*groupBinding)) *Decisions {
	x, list := of[spreading](a.Decisions), a.Groups()
	x.groupBindings = cloned(x.groupBindings)
	for _, i := range a.Alike(k) {
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
	list := schedule.Bindings(inst.Regions[sg.Outputs[0]], schedule.CoresWithL1(made.Spec), made.Slices)
	b := list[a.Rand.IntN(len(list))]
	if b.Equal(made.Bindings[inst.ID]) {
		return nil
	}
	return a.choose(k, func(c *groupBinding) { c.binding = b })
}

func (a *Site) moveScope() *Decisions {
	k := a.Place(len(a.Groups()))
	made := a.Schedule
	to := schedule.L1
	if made.Scopes[made.Instances.First[k]] == schedule.L1 {
		to = schedule.LLB
	}
	return a.choose(k, func(c *groupBinding) { c.scope = &to })
}

// moveLayer spreads a layer over the cores in another way than its group: such as take few cycles are likelier.
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
	for _, b := range schedule.BindingsOf(made, kind, layer, out, region) {
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

var joins = Strategy{Name: "derived", Description: "from bindings and scopes, §3.5 of the paper",
	Decide: func(ctx context.Context, d *Draft) error {
		if d.Between != schedule.L1 {
			for i := range d.Scopes {
				d.Scopes[i] = d.Between
			}
		}
		d.Joins = table.Join(d.Schedule)
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
	cores := schedule.CoresWithL1(s.Spec)
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		out := sg.Outputs[0]
		forbidden := s.Graph.SequentialOf(out)
		if err := schedule.CheckBinding(inst.Regions[out], s.Bindings[i], forbidden, cores); err != nil {
			return fmt.Errorf("instance %d of %s: %w", inst.Index, sg.Name, err)
		}
		if s.Scopes[i] > schedule.DDR {
			return fmt.Errorf("instance %d of %s: scope %d, expected L1, LLB or DDR", inst.Index, sg.Name, s.Scopes[i])
		}
	}
	return nil
}

// measureJoins sets the bytes that redistributions move from what the steps read of other cores.
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

// BindLayers gives layers bindings of their own, by anchor; nil: they have them already.
func (a *Site) BindLayers(own map[model.OpID]schedule.Binding) *Decisions {
	x, changed := of[spreading](a.Decisions), false
	x.layerBindings = cloned(x.layerBindings)
	for anchor, b := range own {
		changed = changed || !b.Equal(x.layerBindings[anchor])
		x.layerBindings[anchor] = b
	}
	if !changed {
		return nil
	}
	return a.with(x)
}
