package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// together plans the work of clusters that each have a part of the network. idle counts those without one.
func (r *Result) together(ctx context.Context, net network.Network, recipe Recipe, opt run) (idle int, err error) {
	r.Plans = make([][]lower.Segment, r.Spec.AllClusters())
	busy := make([]bool, r.Spec.AllClusters())
	note := opt.note
	for _, part := range []struct{ size, times int64 }{{r.Chunk, r.Batch / r.Chunk}, {r.Batch % r.Chunk, 1}} {
		if part.size == 0 {
			continue
		}
		if r.Batch%r.Chunk > 0 {
			opt.note = func(text string) { note(fmt.Sprintf("chunk of %d: %s", part.size, text)) }
		}
		g, err := net.Graph(part.size)
		if err != nil {
			return 0, err
		}
		whole, parts, err := divided(ctx, g, r.Spec, recipe, opt)
		if err != nil {
			return 0, err
		}
		if r.Schedule == nil {
			r.Schedule, r.Outputs, r.Lower, r.answers = whole, parts[0].Outputs, parts[0].Lower, parts[0].answers
		}
		r.keep(whole, parts[0].values)
		r.wholes = append(r.wholes, whole)
		for k, d := range parts {
			// A cluster without work counts chunks all the same.
			r.Plans[k] = append(r.Plans[k], lower.Segment{Schedule: d.Schedule, Iterations: int(part.times)})
			busy[k] = busy[k] || len(d.Order) > 0
		}
	}
	for _, b := range busy {
		if !b {
			idle++
		}
	}
	return idle, nil
}

// divided makes all decisions for a chunk: first those on the whole network up to bindings, as if for one cluster, then
// for each cluster what follows from them for its part. whole is their sum.
func divided(ctx context.Context, g *model.Graph, spec *hardware.Spec, r Recipe, opt run) (whole *schedule.Schedule,
	parts []*Draft, err error) {
	if err := allRead(g); err != nil {
		return nil, nil, err
	}
	r, home, note, err := opt.Clusters.row().Divide(ctx, g, clustersOf(spec, opt.within), r, opt.Options, opt.ddrWeight)
	if err != nil {
		return nil, nil, err
	}
	d, err := draft(ctx, g, spec, r, opt)
	if err != nil {
		return nil, nil, err
	}
	if note != nil {
		opt.tell(note())
	}
	var place []int
	for i := range d.Instances.Instances {
		inst := &d.Instances.Instances[i]
		place = append(place, home(d.Grouping.Groups[inst.Group], inst.Index))
	}
	var made []*schedule.Schedule
	opt.note = nil // of what follows, the clusters would each tell the same
	for k := range spec.AllClusters() {
		own := *d.Schedule
		own.Place, own.Cluster, own.Order = place, k, nil
		for _, i := range d.Order {
			if place[i] == k {
				own.Order = append(own.Order, i)
			}
		}
		at, err := r.position("bind")
		if err != nil {
			return nil, nil, err
		}
		part, err := decide(ctx, &own, at, r, opt)
		if err != nil {
			return nil, nil, err
		}
		parts, made = append(parts, part), append(made, part.Schedule)
	}
	answers := map[string]Solved{}
	maps.Copy(answers, d.answers)
	maps.Copy(answers, parts[0].answers)
	parts[0].answers = answers
	whole, err = joined(d.Order, made)
	return whole, parts, err
}

// clustersOf is a machine with some of its clusters; 0: all.
func clustersOf(spec *hardware.Spec, n int) *hardware.Spec {
	if n == 0 {
		return spec
	}
	some := *spec
	some.Clusters = n
	return &some
}

// joined is the sum of what clusters run of a chunk, for reports and files: its steps and addresses are those of the
// parts and not its own. Bindings and scopes are decided for all of them together.
func joined(order []int, parts []*schedule.Schedule) (*schedule.Schedule, error) {
	sum := *parts[0]
	sum.Order, sum.Cluster = order, 0
	sum.Joins, sum.Steps, sum.Values, sum.Spills = nil, nil, nil, nil
	for _, part := range parts {
		if !reflect.DeepEqual(part.LayerBindings, sum.LayerBindings) || !reflect.DeepEqual(part.Bindings, sum.Bindings) ||
			!slices.Equal(part.Scopes, sum.Scopes) {
			return nil, fmt.Errorf("clusters %d and %d, which divide a network, are bound in different ways", parts[0].Cluster,
				part.Cluster)
		}
		for _, sp := range part.Spills {
			sp.Value += len(sum.Values)
			sum.Spills = append(sum.Spills, sp)
		}
		for _, v := range part.Values {
			v.ID = len(sum.Values)
			sum.Values = append(sum.Values, v)
		}
		sum.Joins = append(sum.Joins, part.Joins...)
		sum.LLBActivationBytes = max(sum.LLBActivationBytes, part.LLBActivationBytes)
	}
	return &sum, nil
}

// Prices are the options of [split.NewPrices].
func (o Options) Prices() split.NetworkOptions {
	return split.NetworkOptions{InPlace: o.InPlace, Uneven: o.Uneven, Cost: o.Cost}
}

// spreadLayers bounds the layers of a group that is cut over clusters.
const spreadLayers = 12

// spreadWeights weigh the loads of weights against the rest of a group's time where
// layers are divided: how far they run ahead shows in the simulator, which chooses.
var spreadWeights = []float64{0.5, 1}

// overLayers cuts layers into pieces, one for each cluster.
var overLayers = Divider{Name: OverLayer, Weights: func(*hardware.Spec) []float64 { return spreadWeights },
	Divide: func(_ context.Context, _ *model.Graph, spec *hardware.Spec, r Recipe, _ Options, weight float64) (
		Recipe, func(*schedule.SubGraph, int64) int, func() string, error) {
		r = r.With("group", Strategy{Name: "layers", Decide: func(ctx context.Context, d *Draft) (err error) {
			d.Grouping, _, err = d.Remembered().spread(ctx, d.Graph, spec, d.Options, weight)
			return err
		}}).With("split", ruleFor("split")).Picking(Pick{rewrite.Name, asIs})
		return r, func(sg *schedule.SubGraph, index int64) int {
			if sg.Factor()%int64(spec.Clusters) != 0 {
				return 0
			}
			return int(index * int64(spec.Clusters) / sg.Factor())
		}, nil, nil
	}}

// layerRun is layers in a row up to one of them, by one cluster or a piece of them by each.
type layerRun struct {
	first             int
	split             schedule.SplitInfo
	busiest           float64 // seconds that a cluster computes
	constants, passed int64   // bytes of weights, and of inputs and outputs
}

// spread groups the layers of a network, in their order, into runs that one cluster runs or that
// each runs a piece of. Of all such sequences it takes the one that takes least time in all, which it returns as well:
// for each group a launch and what the busiest cluster computes, or weight times the loads of all weights, whichever is
// longer, and inputs and outputs through the DDR.
func (m *Memory) spread(ctx context.Context, g *model.Graph, spec *hardware.Spec, opt Options, weight float64) (
	*schedule.Grouping, float64, error) {
	order := schedule.ExecutionOrder(g)
	layers, rank := schedule.Layers(g, order), make([]int, len(g.Ops))
	for i, id := range order {
		rank[id] = i
	}
	opt.Uneven = slices.Max(opt.Uneven.Alternatives()) // none, whose prices are the lower ones
	key := [2]any{g, fmt.Sprint(schedulefile.Fingerprint(spec), opt.InPlace, opt.Uneven)}
	made, _ := m.runs.LoadOrStore(key,
		sync.OnceValues(func() ([][]layerRun, error) { return layerRuns(ctx, g, spec, rank, layers, opt) }))
	runs, err := made.(func() ([][]layerRun, error))()
	if err != nil {
		m.runs.Delete(key) // another context may not have ended
		return nil, 0, err
	}
	// A shortest path: best[i] is the cost of the first i layers, the last of whose groups is last[i].
	best, last := make([]float64, len(layers)+1), make([]layerRun, len(layers)+1)
	for i := range layers {
		best[i+1] = math.Inf(1)
		for _, r := range runs[i] {
			s := math.Max(spec.LaunchSeconds+r.busiest, weight*spec.DDRSeconds(r.constants, 0)) + spec.DDRSeconds(0, r.passed)
			if s += best[r.first]; s < best[i+1] {
				best[i+1], last[i+1] = s, r
			}
		}
	}
	gr := &schedule.Grouping{}
	for to := len(layers); to > 0; to = last[to].first {
		gr.Groups = append(gr.Groups, groupOf(g, rank, layers[last[to].first:to]))
		gr.Groups[len(gr.Groups)-1].Split = last[to].split
	}
	slices.Reverse(gr.Groups)
	for k, sg := range gr.Groups {
		sg.ID, sg.Name = k, fmt.Sprintf("g%d", k)
	}
	return gr, best[len(layers)], nil
}

// groupOf is layers as a group, with its operators by rank.
func groupOf(g *model.Graph, rank []int, layers []schedule.Layer) *schedule.SubGraph {
	sg := &schedule.SubGraph{}
	for _, l := range layers {
		sg.Ops = append(sg.Ops, l.Ops...)
	}
	slices.SortFunc(sg.Ops, func(a, b model.OpID) int { return rank[a] - rank[b] })
	sg.Inputs, sg.Outputs = schedule.Boundary(g, sg.Ops)
	return sg
}

// layerRuns lists the candidates of spread by their last layers.
func layerRuns(ctx context.Context, g *model.Graph, spec *hardware.Spec, rank []int, layers []schedule.Layer,
	opt Options) ([][]layerRun, error) {
	prices, err := split.NewPrices(g, spec, layers, opt.Prices())
	clusters, runs, alone := int64(spec.Clusters), make([][]layerRun, len(layers)), make([]layerRun, len(layers))
	for to := 1; to <= len(layers); to++ {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		l, one := &layers[to-1], layerRun{}
		whole := schedule.InstanceRegions(g, l.Ops, l.Outputs, -1, 1, 0)
		alone[to-1].busiest, alone[to-1].constants = prices.Layer(to-1, whole), schedule.ConstantBytes(g, l, whole)
		for first := to - 1; first >= 0; first-- {
			sg := groupOf(g, rank, layers[first:to])
			passing := slices.Concat(sg.Inputs, sg.Outputs)
			one = layerRun{first: first, busiest: one.busiest + alone[first].busiest,
				constants: one.constants + alone[first].constants}
			for _, t := range passing {
				one.passed += g.Tensor(t).Bytes()
			}
			runs[to-1] = append(runs[to-1], one)
			if to-first > spreadLayers {
				continue
			}
			out := g.Tensor(sg.Outputs[0])
			for depth, dim := range out.Layout {
				if model.Pieces(out.Shape[dim], clusters) != clusters {
					continue
				}
				tr := schedule.Track(g, sg.Ops, sg.Outputs, dim)
				if !tr.Splittable {
					continue
				}
				pieces, disjoint := schedule.Disjoint(g, sg, dim, clusters)
				cut := layerRun{first: first,
					split: schedule.SplitInfo{Ops: len(sg.Ops) - tr.Unmatched, Factor: clusters, Dim: dim, Depth: depth}}
				for _, reg := range pieces {
					busy := 0.0
					for a := first; a < to; a++ {
						busy += prices.Layer(a, reg)
						cut.constants += schedule.ConstantBytes(g, &layers[a], reg)
					}
					cut.busiest = math.Max(cut.busiest, busy)
					for _, t := range passing {
						cut.passed += g.Tensor(t).DType.Bytes(reg[t].Elements())
					}
				}
				if disjoint {
					runs[to-1] = append(runs[to-1], cut)
				}
			}
		}
	}
	return runs, nil
}
