package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// loops are the nests of layers that do not run by the generator's rules.
type loops struct {
	// nests are those of a schedule's steps; nil: of other groups or layers.
	nests map[stepKey]*schedule.Nest
	// tiles: without nests, products have those of the rule of tiles.
	tiles bool
	// own are nests of layers, by anchor, in the place of these.
	own map[model.OpID]*schedule.Nest
	// made has the steps and values that all decisions together have given; nil: they are made anew.
	made *schedule.Schedule
}

// A stepKey names a step among those of the same groups and layers.
type stepKey struct{ instance, layer int }

func takeLoops(d *Draft, all bool) Decision {
	x := loops{nests: map[stepKey]*schedule.Nest{}, tiles: d.Recipe.Strategy("nest").Tiles}
	for i := range d.Steps {
		if st := &d.Steps[i]; st.Nest != nil && !d.fitted(i) {
			x.nests[stepKey{st.Instance, st.Layer}] = st.Nest
		}
	}
	if all {
		x.made = d.Schedule
	}
	return x
}

// Stage names the row.
func (x loops) Stage() string { return "nest" }

// Apply gives the steps their nests, as far as they fit.
func (x loops) Apply(ctx context.Context, d *Draft) error {
	if x.made != nil {
		d.Steps, d.Values = slices.Clone(x.made.Steps), slices.Clone(x.made.Values)
		d.Spills, d.LLBActivationBytes = x.made.Spills, x.made.LLBActivationBytes
		return nil
	}
	if x.nests == nil && x.tiles {
		for _, s := range table.Strategies["nest"] { // as the one that gives steps tiles does in a search
			if s.Again != nil {
				if err := s.Again(ctx, d); err != nil {
					return err
				}
				break
			}
		}
	}
	d.Index()
	defer d.FitAttentions()
	if len(x.nests)+len(x.own) == 0 {
		return nil
	}
	for i := range d.Steps {
		n := x.nests[stepKey{d.Steps[i].Instance, d.Steps[i].Layer}]
		if own := x.own[schedule.LayerOf(d.Schedule, &d.Steps[i]).Anchor]; own != nil && d.TryNest(i, own) {
			continue
		}
		if n != nil {
			d.TryNest(i, n)
		}
	}
	return nil
}

// FitAttentions gives each attention without a nest the best tiles for the L1 room left at its step.
func (d *Draft) FitAttentions() {
	for i := range d.Steps {
		if st := &d.Steps[i]; st.Attending != nil && st.Nest == nil {
			if n := d.FitAttention(i); n != nil {
				d.TryNest(i, n)
			}
		}
	}
}

// fitted reports whether the nest of a step is as FitAttentions makes it.
func (d *Draft) fitted(i int) bool {
	st := &d.Steps[i]
	if st.Attending == nil || st.Nest.Attention == nil || st.Nest.Cores != nil {
		return false
	}
	n := d.FitAttention(i)
	return n != nil && *n.Attention == *st.Nest.Attention
}

// Key has the nests. Steps and values that were made belong to one schedule.
func (x loops) Key(b *Key, _ *Decisions) {
	b.Add(int64(len(x.nests)))
	for _, k := range slices.SortedFunc(maps.Keys(x.nests), func(a, b stepKey) int {
		return cmp.Or(a.instance-b.instance, a.layer-b.layer)
	}) {
		b.Add(int64(k.instance), int64(k.layer))
		b.nest(x.nests[k])
	}
	if x.tiles && x.nests == nil {
		b.Add(-2)
	}
	addMap(b, x.own, func(n *schedule.Nest) bool {
		b.nest(n)
		return n != nil
	})
	if x.made != nil {
		b.Add(-1)
	}
}

func (b *Key) nest(n *schedule.Nest) {
	if n != nil && n.Attention != nil {
		b.Text(fmt.Sprintf("%+v", *n.Attention))
		outer := *n
		outer.Attention, n = nil, &outer
	}
	b.Text(fmt.Sprintf("%+v", n))
}

// After drops what was made for other layers or memories.
func (x loops) After(changed string, _, _ *Decisions) Decision {
	switch changed {
	case "issue": // all of the generator's settings
		return x
	case "group", "layers":
		x.nests = nil
	}
	x.made = nil
	return x
}

func (x loops) extend(e *extension) Decision {
	own := extended(x.own, e.ops)
	switch {
	case !e.same:
		return loops{tiles: x.tiles, own: own}
	case !maps.Equal(own, x.own):
		x.own, x.made = own, nil
	}
	return x
}

// TryNest sets the nest of a step and reports whether memories and loops allow it. Equal kernels may differ in this,
// since different values stay in their memories.
func (d *Draft) TryNest(i int, n *schedule.Nest) bool {
	_, err := d.try(i, n, false)
	return err == nil
}

// TryAlone is TryNest for judging step i alone: reads of later steps stay as they are. undo restores the nest.
func (d *Draft) TryAlone(i int, n *schedule.Nest) (undo func(), err error) { return d.try(i, n, true) }

func (d *Draft) try(i int, n *schedule.Nest, alone bool) (undo func(), err error) {
	undo = d.saveStep(i, alone)
	if alone {
		err = d.FollowAlone(i, n)
	} else {
		err = d.Follow(i, n)
	}
	if err == nil {
		err = lower.LoopsOf(d.Schedule, i, d.Cost).Check(d.Schedule, i)
	}
	if err != nil {
		undo()
	}
	return undo, err
}

// SaveStep returns a function that restores a step, the values that it writes and what later steps read of them.
func (d *Draft) SaveStep(i int) (restore func()) { return d.saveStep(i, false) }

func (d *Draft) saveStep(i int, alone bool) (restore func()) {
	step := d.Steps[i]
	var values []schedule.Value
	for _, w := range step.Writes {
		values = append(values, d.Values[w])
	}
	return func() {
		changed := !alone && !d.Steps[i].Binding.Equal(step.Binding)
		d.Steps[i] = step
		for k, w := range step.Writes {
			d.Values[w] = values[k]
		}
		if changed {
			d.Reread(step.Writes)
		}
	}
}

// Nest gives the layer of a step a nest, or all equal layers.
func (a *Site) Nest(step int, n *schedule.Nest) *Decisions {
	x, s := of[loops](a.Decisions), a.Schedule
	x.own, x.made = cloned(x.own), nil
	if a.Rand.IntN(3) == 0 {
		x.own[schedule.LayerOf(s, &s.Steps[step]).Anchor] = n
		return a.with(x)
	}
	same := stepShape(s, step)
	for k := range s.Steps {
		if slices.Equal(stepShape(s, k), same) {
			x.own[schedule.LayerOf(s, &s.Steps[k]).Anchor] = n
		}
	}
	return a.with(x)
}

// nestSettings drop the tiles that the start has. Products with values in the L1 then run by the generator's rules, and
// others in tiles for the room that there is now.
var nestSettings = [][]func(*Decisions) *Decisions{values(func(x *loops, _ bool) {
	if x.tiles {
		x.nests, x.made = nil, nil
	}
}, true)}

var nestMoves = []Move{{Name: "tile"}}

// stepShape is the common key of steps that do the same.
func stepShape(s *schedule.Schedule, i int) Key {
	st := &s.Steps[i]
	layer := schedule.LayerOf(s, st)
	var b Key
	for _, id := range layer.Ops {
		op := s.Graph.Op(id)
		b.Text(string(op.Kind))
		for _, t := range op.Outputs {
			for _, n := range s.Graph.Tensor(t).Shape {
				b.Add(n)
			}
		}
	}
	for _, iv := range s.Instances.Instances[st.Instance].Regions[st.Output] {
		b.Add(iv.Len())
	}
	b.Binding(st.Binding)
	b.Add(int64(st.Kind), st.Tiles, int64(len(st.Reads)), int64(len(st.Params)))
	for k := range st.Params {
		b.Add(st.Params[k].UnionBytes)
	}
	b.nest(st.Nest)
	return b
}
