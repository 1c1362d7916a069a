package scheduler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// kindsOf has the kinds of core that run layers, by anchor. Where it has none, or one that can't run the layer, the
// greedy one does.
type kindsOf map[model.OpID]int

func takeKinds(d *Draft, _ bool) Decision {
	if d.LayerKinds == nil {
		return nil
	}
	x := kindsOf{}
	for k, layers := range d.Layers {
		for l := range layers {
			x[layers[l].Anchor] = d.LayerKinds[k][l]
		}
	}
	return x
}

// Stage names the row.
func (x kindsOf) Stage() string { return "kinds" }

// Key has the kinds, the first included.
func (x kindsOf) Key(b *Key, _ *Decisions) {
	addMap(b, x, func(k int) bool {
		b.Add(int64(k))
		return true
	})
}

func (x kindsOf) extend(e *extension) Decision {
	return kindsOf(extended(x, e.ops))
}

// LayerSeconds estimates the time in seconds in which cores of a kind compute boxes of a layer's results.
func (d *Draft) LayerSeconds(layer *schedule.Layer, made schedule.Regions, m *cost.Model) float64 {
	g, spec := d.Graph, m.Spec()
	at := slices.IndexFunc(layer.Outputs, func(t model.TensorID) bool { return made[t].Elements() > 0 })
	if at < 0 {
		return 0
	}
	out := layer.Outputs[at]
	box := made[out]
	b := schedule.GridBinding(box, g.Tensor(out).Layout, schedule.Forbidden(g, layer.Ops, out), schedule.Grid(spec),
		d.Slices)
	boxes := schedule.Regions{out: schedule.Slice(box, b, g.Tensor(out).Layout, 0)}
	bytes := func(t model.TensorID) int64 { return g.Tensor(t).DType.Bytes(boxes[t].Elements()) }
	schedule.BackPropagate(g, layer.Ops, boxes)
	units := float64(m.LayerCycles(cost.Layer{Graph: g, Ops: layer.Ops, Anchor: layer.Anchor, Boxes: boxes, Output: out,
		Cores: b.Cores()})) / spec.ClockHz
	constants, passes := int64(0), bytes(out)
	for _, t := range layer.Constants {
		n, _ := schedule.ConstantElements(g, layer.Ops, t, boxes)
		constants += g.Tensor(t).DType.Bytes(n)
	}
	for _, t := range layer.Inputs {
		passes += bytes(t)
	}
	moved := constants
	if d.Outputs != schedule.L1 {
		moved += passes
	}
	seconds := math.Max(units, float64(moved)/spec.CoreLink.BandwidthBytesPerSecond)
	if over := passes - schedule.DataBytes(spec); over > 0 && d.Outputs == schedule.L1 {
		outside := spec.DDR.BandwidthBytesPerSecond / float64(spec.Clusters)
		if spec.LLB != nil {
			outside = spec.LLB.BandwidthBytesPerSecond
		}
		seconds += float64(over*b.Cores()) / outside
	}
	return seconds
}

var kindMoves = []Move{{"kind", 3, (*Site).moveKind}}

// moveKind gives a layer another kind of core.
func (a *Site) moveKind() *Decisions {
	k := a.Place(len(a.Groups()))
	layers := a.Schedule.Layers[k]
	l := a.Rand.IntN(len(layers))
	kinds := a.Schedule.Spec.Kinds()
	var others []int
	for kind := range kinds {
		if kind != a.Schedule.LayerKinds[k][l] && schedule.Runs(kinds[kind], a.Schedule.Graph, layers[l].Ops) {
			others = append(others, kind)
		}
	}
	if len(others) == 0 {
		return nil
	}
	to := others[a.Rand.IntN(len(others))]
	x := cloned(of[kindsOf](a.Decisions))
	for _, id := range a.places(k, slices.Index(a.Groups()[k].Ops, layers[l].Anchor)) {
		x[id] = to
	}
	return a.with(kindsOf(x))
}

func kindsText(b *strings.Builder, d *Draft) {
	kinds := d.Spec.Kinds()
	for k := range d.LayerKinds {
		for l, kind := range d.LayerKinds[k] {
			fmt.Fprintf(b, "%s layer %d: %s\n", d.Grouping.Groups[k].Name, l, kinds[kind][0].Name)
		}
	}
}

// Apply gives each layer its kind, where that can run it.
func (x kindsOf) Apply(ctx context.Context, d *Draft) error {
	if err := ruleFor("kinds").Decide(ctx, d); err != nil {
		return err
	}
	kinds := d.Spec.Kinds()
	for k := range d.LayerKinds {
		for l := range d.LayerKinds[k] {
			layer := &d.Layers[k][l]
			if own, decided := x[layer.Anchor]; decided && own < len(kinds) && schedule.Runs(kinds[own], d.Graph, layer.Ops) {
				d.LayerKinds[k][l] = own
			}
		}
	}
	return nil
}

// KindSeconds is the time in seconds of a layer, over all instances of its group, on cores of each kind; infinite for
// kinds that can't run it. It is an error if none can.
func (d *Draft) KindSeconds(group, layer int) ([]float64, error) {
	l, kinds := &d.Layers[group][layer], d.Spec.Kinds()
	factor := d.Grouping.Groups[group].Factor()
	inst := &d.Instances.Instances[d.Instances.First[group]+int(factor/2)]
	list, some := make([]float64, len(kinds)), false
	for kind := range kinds {
		if list[kind] = math.Inf(1); schedule.Runs(kinds[kind], d.Graph, l.Ops) {
			list[kind] = float64(factor) * d.LayerSeconds(l, inst.Regions, d.Cost.Kind(kind))
			some = true
		}
	}
	if !some {
		return nil, fmt.Errorf("layer %s: no kind of core of %s runs all of it: %s", l.Name, d.Spec.Name, d.names(l.Ops))
	}
	return list, nil
}
