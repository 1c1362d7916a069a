package scheduler

import (
	"context"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// layering has the layers of kernels that differ from derived ones.
type layering struct {
	explicit    [][]schedule.Layer  // of the groups; nil: as below
	hoist       map[model.OpID]int  // how many layers of its kernel one goes in front of, by anchor; see of
	layerStarts map[model.OpID]bool // operators with which a layer begins, though they could join one
}

var derivedLayers = Strategy{Name: "derived",
	Description: "an operator with weights begins one, as schedule.Layers has it",
	Decide: func(_ context.Context, d *Draft) error {
		deriveLayers(d.Schedule)
		return nil
	}}

// DeriveLayers gives groups without layers those of schedule.Layers.
func (d *Draft) DeriveLayers() { deriveLayers(d.Schedule) }

// deriveLayers gives groups without layers those of schedule.Layers. All are cut where no kind of core runs them whole.
func deriveLayers(s *schedule.Schedule) {
	if s.Grouping == nil {
		return
	}
	if s.Layers == nil {
		for _, sg := range s.Grouping.Groups {
			s.Layers = append(s.Layers, schedule.Layers(s.Graph, sg.Ops))
		}
	}
	if s.Spec.Mixed() {
		s.Layers = slices.Clone(s.Layers)
		kinds := s.Spec.Kinds()
		for k, layers := range s.Layers { // cut in front of operators with which no kind of core would run all of them
			s.Layers[k] = cutLayers(s.Graph, layers, func(ops []model.OpID) bool {
				return !slices.ContainsFunc(kinds, func(k []hardware.CoreType) bool { return schedule.Runs(k, s.Graph, ops) })
			})
		}
	}
}

func takeLayers(d *Draft, _ bool) Decision {
	x := layering{hoist: map[model.OpID]int{}, layerStarts: map[model.OpID]bool{}}
	for k, sg := range d.Grouping.Groups {
		if !x.adopt(d.Graph, sg.Ops, d.Layers[k]) {
			x.explicit = d.Layers
		}
	}
	return x
}

// Stage names the row.
func (x layering) Stage() string { return "layers" }

// Apply makes the layers.
func (x layering) Apply(_ context.Context, d *Draft) error {
	d.Layers = x.explicit
	if x.explicit == nil && len(x.hoist)+len(x.layerStarts) > 0 {
		for _, sg := range d.Grouping.Groups {
			d.Layers = append(d.Layers, x.of(d.Graph, sg.Ops))
		}
	}
	deriveLayers(d.Schedule)
	return nil
}

// Key has what differs. Explicit layers belong to one schedule.
func (x layering) Key(b *Key, _ *Decisions) {
	b.Add(int64(len(x.explicit)))
	addMap(b, x.hoist, func(n int) bool {
		b.Add(int64(n))
		return n > 0
	})
	addMap(b, x.layerStarts, is)
}

// After drops layers that were made for other groups.
func (x layering) After(changed string, _, _ *Decisions) Decision {
	if changed == "group" {
		x.explicit = nil
	}
	return x
}

func (x layering) extend(e *extension) Decision {
	if !e.same {
		x.explicit = nil
	}
	x.hoist, x.layerStarts = extended(x.hoist, e.ops), extended(x.layerStarts, e.ops)
	return x
}

// inherit lets layers begin where they do in the schedule at hand.
func (x layering) inherit(s *schedule.Schedule, fresh Groups) Decision {
	begins := map[model.OpID]bool{}
	for i := range s.Steps {
		if layer, middle := layerOf(s, &s.Steps[i]); middle {
			begins[layer.Ops[0]] = true
		}
	}
	x.layerStarts = cloned(x.layerStarts)
	for _, c := range fresh {
		for _, id := range c.Ops {
			if begins[id] {
				x.layerStarts[id] = true
			}
		}
	}
	return x
}

// layerOf is the layer that a step runs, and whether its instance is the one in the middle of its group.
func layerOf(s *schedule.Schedule, st *schedule.Step) (layer *schedule.Layer, middle bool) {
	inst := &s.Instances.Instances[st.Instance]
	return &s.Layers[inst.Group][st.Layer], inst.Index == s.Grouping.Groups[inst.Group].Factor()/2
}

// of returns the layers of a kernel in the order in which it runs them: those that are derived, cut where others
// begin. One after the other is hoisted, but not above a layer that it reads.
func (x layering) of(g *model.Graph, ops []model.OpID) []schedule.Layer {
	var list []schedule.Layer
	for _, l := range x.parts(g, schedule.Layers(g, ops)) {
		at := len(list)
		for n := x.hoist[l.Anchor]; n > 0 && at > 0 && !slices.ContainsFunc(l.Inputs,
			func(t model.TensorID) bool { return slices.Contains(list[at-1].Outputs, t) }); n-- {
			at--
		}
		list = slices.Insert(list, at, l)
	}
	return list
}

// parts cuts layers in front of the operators with which others begin.
func (x layering) parts(g *model.Graph, derived []schedule.Layer) []schedule.Layer {
	if len(x.layerStarts) == 0 {
		return derived
	}
	return cutLayers(g, derived, func(ops []model.OpID) bool { return x.layerStarts[ops[len(ops)-1]] })
}

// cutLayers begins a new layer with the last of some operators of one where begins says so.
func cutLayers(g *model.Graph, layers []schedule.Layer, begins func(ops []model.OpID) bool) (list []schedule.Layer) {
	for _, l := range layers {
		from := 0
		for i := 1; i <= len(l.Ops); i++ {
			switch {
			case i < len(l.Ops) && !begins(l.Ops[from:i+1]):
			case from == 0 && i == len(l.Ops):
				list = append(list, l)
			default:
				list, from = append(list, schedule.NewLayer(g, l.Ops[from:i])), i
			}
		}
	}
	return list
}

// adopt notes how the layers of a kernel differ from those that are derived; false: they are not parts of these.
func (x layering) adopt(g *model.Graph, ops []model.OpID, layers []schedule.Layer) bool {
	begins := map[model.OpID]bool{}
	for _, l := range layers {
		begins[l.Ops[0]] = true
	}
	derived := schedule.Layers(g, ops)
	for _, l := range derived {
		for _, id := range l.Ops[1:] {
			if begins[id] {
				x.layerStarts[id] = true
			}
		}
	}
	if derived = x.parts(g, derived); len(derived) != len(layers) {
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
				x.hoist[l.Anchor]++
			}
		}
	}
	return true
}

var layerMoves = []Move{
	{"sequence", 2, (*Site).moveSequence},
	{"alone", 1, (*Site).moveStart},
}

// moveSequence lets a layer of a kernel run sooner or later.
func (a *Site) moveSequence() *Decisions {
	k := a.Place(len(a.Groups()))
	layers, x := a.Schedule.Layers[k], of[layering](a.Decisions)
	if len(layers) < 2 || x.explicit != nil {
		return nil
	}
	anchor := layers[a.Rand.IntN(len(layers))].Anchor
	x.hoist = cloned(x.hoist)
	by := (x.hoist[anchor] + 1 + a.Rand.IntN(3)) % 4
	ops := a.Groups()[k].Ops
	for _, id := range a.places(k, slices.Index(ops, anchor)) {
		x.hoist[id] = by
	}
	same := func(a, b schedule.Layer) bool { return a.Anchor == b.Anchor }
	if slices.EqualFunc(layers, x.of(a.Schedule.Graph, ops), same) {
		return nil
	}
	return a.with(x)
}

// moveStart lets an operator begin a layer of its kernel, or join one again.
func (a *Site) moveStart() *Decisions {
	k := a.Place(len(a.Groups()))
	x, ops := of[layering](a.Decisions), a.Groups()[k].Ops
	var could []model.OpID
	for _, l := range schedule.Layers(a.Schedule.Graph, ops) {
		could = append(could, l.Ops[1:]...)
	}
	if len(could) == 0 || x.explicit != nil {
		return nil
	}
	id := could[a.Rand.IntN(len(could))]
	x.layerStarts = cloned(x.layerStarts)
	begins := !x.layerStarts[id]
	for _, id := range a.places(k, slices.Index(ops, id)) {
		x.layerStarts[id] = begins
	}
	return a.with(x)
}
