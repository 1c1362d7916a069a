// Package staging divides a network over clusters, or over the chips of a machine, as a pipeline: each runs one of the
// stages that package partition finds.
package staging

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/mofang/partition"
)

// Pipelined is the division of the network into stages of least load.
const Pipelined scheduler.Division = "pipeline"

// Register adds the division.
func Register() {
	scheduler.AddDivision(scheduler.Divider{Name: Pipelined, Chips: true, Weights: weights, Divide: divide})
}

func weights(spec *hardware.Spec) []float64 {
	if spec.Chips != nil {
		return []float64{0, 1}
	}
	return []float64{0}
}

// divide cuts the recipe's groups where stages end.
func divide(ctx context.Context, g *model.Graph, spec *hardware.Spec, r scheduler.Recipe, opt scheduler.Options,
	weight float64) (scheduler.Recipe, func(*schedule.SubGraph, int64) int, func() string, error) {
	stage, note, err := stages(ctx, g, spec, opt, weight)
	if err != nil {
		return r, nil, nil, err
	}
	from := r.Strategy("group")
	r = r.With("group", scheduler.Strategy{Name: from.Name, Decide: func(ctx context.Context, d *scheduler.Draft) error {
		if err := from.Decide(ctx, d); err != nil {
			return err
		}
		if d.Graph != g { // the strategy has rewritten it
			if stage, note, err = stages(ctx, d.Graph, spec, opt, weight); err != nil {
				return err
			}
		}
		cutGroups(d, stage)
		return nil
	}})
	return r, func(sg *schedule.SubGraph, _ int64) int { return stage[sg.Ops[0]] }, func() string { return note }, nil
}

// cutGroups cuts the groups of a draft where stages end, and leaves it to the next stage how the pieces are split.
func cutGroups(d *scheduler.Draft, stage []int) {
	cut := &schedule.Grouping{Events: d.Grouping.Events}
	var layers [][]schedule.Layer
	for s := range slices.Max(stage) + 1 {
		for k, sg := range d.Grouping.Groups {
			piece := *sg
			piece.Ops = nil
			for _, id := range sg.Ops {
				if stage[id] == s {
					piece.Ops = append(piece.Ops, id)
				}
			}
			if len(piece.Ops) == 0 {
				continue
			}
			var own []schedule.Layer
			if d.Layers != nil {
				for _, l := range d.Layers[k] {
					ops := slices.DeleteFunc(slices.Clone(l.Ops), func(id model.OpID) bool { return stage[id] != s })
					if len(ops) > 0 {
						own = append(own, schedule.NewLayer(d.Graph, ops))
					}
				}
			}
			if len(piece.Ops) < len(sg.Ops) {
				piece.Split, piece.PeakBytes = schedule.SplitInfo{}, 0
			}
			piece.ID, piece.Name = len(cut.Groups), fmt.Sprintf("g%d", len(cut.Groups))
			piece.Inputs, piece.Outputs = schedule.Boundary(d.Graph, piece.Ops)
			cut.Groups, layers = append(cut.Groups, &piece), append(layers, own)
		}
	}
	if d.Layers != nil {
		d.Layers = layers
	}
	d.Grouping = cut
}

// stageIdeals is the limit of [partition.Options] on ideals: networks of many branches that have nothing to do with
// each other, such as tables that are looked up, have more than can be visited in seconds.
const stageIdeals = 1 << 18

// stages gives each operator the cluster whose pipeline stage runs it: the partition of the layers over the clusters
// with the least largest load. A layer's load is the time of its units, or of its weights from the DDR, of which each
// cluster has its share; passing a result takes its share of the DDR on both sides. With a weight, chips have equally
// many stages, and passing may also take the link between chips, where that is longer.
func stages(ctx context.Context, g *model.Graph, spec *hardware.Spec, opt scheduler.Options,
	weight float64) (stage []int, note string, err error) {
	layers := schedule.Layers(g, schedule.ExecutionOrder(g))
	prices, err := split.NewPrices(g, spec, layers, opt.Prices())
	if err != nil {
		return nil, "", err
	}
	p := &partition.Problem{Name: "stages", Accelerators: spec.AllClusters(), MemoryBytes: 0}
	layerOf := make([]int, len(g.Ops))
	for a := range layers {
		for _, id := range layers[a].Ops {
			layerOf[id] = a
		}
	}
	passing := func(bytes int64) float64 {
		s := float64(spec.Clusters) * spec.DDRSeconds(0, bytes)
		if weight > 0 && spec.Chips != nil {
			s = max(s, spec.Chips.Link.LatencySeconds+float64(bytes)/spec.Chips.Link.BandwidthBytesPerSecond)
		}
		return s
	}
	seen := map[[2]int]bool{}
	for a := range layers {
		l := &layers[a]
		reg := schedule.InstanceRegions(g, l.Ops, l.Outputs, -1, 1, 0)
		loads := float64(spec.Clusters) * spec.DDRSeconds(schedule.ConstantBytes(g, l, reg), 0)
		seconds := math.Max(prices.Layer(a, reg), loads)
		p.Nodes = append(p.Nodes, partition.Node{ID: a, Name: l.Name, Supported: true, AcceleratorLatency: seconds * 1e6,
			Color: partition.NoColor})
		out := int64(0)
		for _, t := range l.Outputs {
			out += g.Tensor(t).Bytes()
		}
		for _, t := range l.Outputs {
			for _, c := range g.Tensor(t).Consumers {
				if e := [2]int{a, layerOf[c]}; e[0] != e[1] && !seen[e] {
					seen[e] = true
					p.Edges = append(p.Edges, partition.Edge{From: a, To: layerOf[c], Cost: passing(out) * 1e6})
				}
			}
		}
	}
	r, err := partition.Solve(ctx, p, "exact", partition.Options{MaxIdeals: stageIdeals})
	if err != nil {
		return nil, "", err
	}
	if !r.HasDivision() {
		return nil, "", fmt.Errorf("no division into stages: %s", r.Reason)
	}
	stage = make([]int, len(g.Ops))
	used := slices.DeleteFunc(r.Devices, func(nodes []int) bool { return len(nodes) == 0 })
	var sizes []string
	for s, nodes := range used {
		sizes = append(sizes, fmt.Sprint(len(nodes)))
		if weight > 0 && spec.Chips != nil { // as many on each chip, rather than few chips
			chip := s * spec.Chips.Count / len(used)
			first := (chip*len(used) + spec.Chips.Count - 1) / spec.Chips.Count // stage of the chip
			s += chip*spec.Clusters - first
		}
		for _, a := range nodes {
			for _, id := range layers[a].Ops {
				stage[id] = s
			}
		}
	}
	if len(sizes) == 1 {
		return stage, "one stage has all layers", nil
	}
	note = fmt.Sprintf("stages of %s layers, the largest load %.4g us by the formulas", strings.Join(sizes, ", "),
		r.MaxLoad)
	if r.Status != milp.Optimal {
		note += fmt.Sprintf(", not proven to be the least (bound %.4g us)", r.Bound)
	}
	return stage, note, nil
}
