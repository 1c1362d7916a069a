package tiles

import (
	"context"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// even is the strategy of row bind that spreads layers, upon bindings of instances by another strategy; with heads it
// is the one of this name, which has each head of an attention on one core.
func even(plain scheduler.Strategy, heads bool) scheduler.Strategy {
	name, description := "even", "each layer over as many cores as leave the largest part the smallest"
	if heads {
		name, description = "heads", "even, with each head of an attention on one core, as in FlashAttention (2022)"
	}
	return scheduler.Strategy{Name: name, Even: true, Description: description,
		Decide: func(ctx context.Context, d *scheduler.Draft) error {
			if err := plain.Decide(ctx, d); err != nil {
				return err
			}
			d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
			for k, layers := range d.Layers {
				d.LayerBindings[k] = make([]schedule.Binding, len(layers))
				inst := &d.Instances.Instances[d.Instances.First[k]]
				for i := range layers {
					t := layers[i].Outputs[0]
					box := inst.Regions[t]
					attention := d.Graph.Op(layers[i].Anchor).Kind == "Attention"
					if box.Elements() == 0 || attention && !heads { // by what its tiles cost
						continue
					}
					var dims []int
					forbidden := schedule.Forbidden(d.Graph, toward(d.Graph, layers[i].Ops, t), t)
					for _, dim := range d.Graph.Tensor(t).Layout {
						if !forbidden[dim] && !(attention && cutsHeads(d.Graph, &layers[i], box, dim)) {
							dims = append(dims, dim)
						}
					}
					n := schedule.CoresWithL1(d.Spec.Kind(d.LayerKind(k, i)))
					cores := schedule.One(len(box))
					schedule.SpreadOver(cores, box, dims, n)
					if !d.Graph.OnMatrixUnit(d.Graph.Op(layers[i].Anchor)) {
						cores = leastMoved(d.Graph, &layers[i], box, cores, dims, n)
					} else if d.Spec.LLB == nil && d.Spec.CoreLink.Broadcast {
						cores = leastTaken(d.Graph, &layers[i], box, cores, forbidden, n)
					}
					d.LayerBindings[k][i] = cores
				}
			}
			return nil
		}}
}

// cutsHeads reports whether parts of a dimension have some of the positions of an attention's heads.
func cutsHeads(g *model.Graph, l *schedule.Layer, box model.Region, dim int) bool {
	t, out := l.Outputs[0], g.Op(l.Anchor).Outputs[0]
	positions := func(parts int64) int64 {
		b := schedule.One(len(box))
		b[dim] = parts
		reg := schedule.Regions{t: schedule.Slice(box, b, g.Tensor(t).Layout, 0)}
		schedule.BackPropagate(g, l.Ops, reg)
		return reg[out][len(reg[out])-2].Len()
	}
	return positions(box[dim].Len()) < positions(1)
}

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
		schedule.SpreadOver(b, box, dims, n)
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
	for _, b := range schedule.Bindings(box, n, schedule.SlicesUneven) {
		part, bytes, _ := taken(b)
		if weights.Role == model.Constant && columns == weights.Bytes() && part <= most && bytes < least &&
			schedule.CheckBinding(box, b, forbidden, n) == nil {
			cores, least = b, bytes
		}
	}
	return cores
}

var greedyKinds = scheduler.Strategy{Name: "greedy", Description: "the fastest kind for the layer alone",
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		if !d.Spec.Mixed() {
			return nil
		}
		d.LayerKinds = make([][]int, len(d.Layers))
		for k, layers := range d.Layers {
			d.LayerKinds[k] = make([]int, len(layers))
			for l := range layers {
				seconds, err := d.KindSeconds(k, l)
				if err != nil {
					return err
				}
				d.LayerKinds[k][l] = slices.Index(seconds, slices.Min(seconds))
			}
		}
		return nil
	}}
