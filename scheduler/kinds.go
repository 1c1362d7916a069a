package scheduler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

var greedyKinds = Strategy{Name: "greedy", Description: "the one on which the layer alone takes least",
	Decide: func(_ context.Context, d *Draft) error { return kindsOf{}.decide(d) }}

var exactKinds = Strategy{Name: "search",
	Description: "least sum of layers and of moves between kinds, by dynamic programming",
	Exact:       true, Decide: func(ctx context.Context, d *Draft) error { return d.leastKinds(ctx, false) }}

var ilpKinds = Strategy{Name: "ilp", Description: "likewise, by integer program (HiGHS)", NeedsSolver: true,
	Exact: true, Decide: func(ctx context.Context, d *Draft) error { return d.leastKinds(ctx, true) }}

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

// Apply gives each layer its kind.
func (x kindsOf) Apply(_ context.Context, d *Draft) error { return x.decide(d) }

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

func (x kindsOf) decide(d *Draft) error {
	if !d.Spec.Mixed() {
		return nil
	}
	p, err := d.kindProblem()
	if err != nil {
		return err
	}
	choice := make([]int, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		choice[i] = slices.Index(n.Cost, slices.Min(n.Cost))
		if own, decided := x[p.anchors[i]]; decided {
			if l := slices.IndexFunc(n.Labels, func(l binding.Label) bool { return kindOf(l) == own }); l >= 0 {
				choice[i] = l
			}
		}
	}
	d.LayerKinds = p.kinds(d.Schedule, choice)
	return nil
}

// kindOf is the kind of core that a label of a [kindProblem] stands for.
func kindOf(l binding.Label) int { return int(l.Binding[0]) }

// leastKinds gives layers the kinds of least cost.
func (d *Draft) leastKinds(ctx context.Context, byILP bool) error {
	if !d.Spec.Mixed() {
		return nil
	}
	p, err := d.kindProblem()
	if err != nil {
		return err
	}
	var r *binding.Result
	options := binding.Options{TimeLimit: d.Options.TimeLimit, MemoryBytes: SolverMemory, Solver: d.Options.Solver,
		Progress: d.Options.ReportTo("kinds")}
	if byILP {
		options.WorkLimit = d.Options.WorkLimit
		r, err = binding.ILP(ctx, &p.Problem, options)
	} else {
		options.TimeLimit = d.Options.searchLimit()
		r, err = binding.Search(ctx, &p.Problem, options)
	}
	if err != nil {
		return err
	}
	if r.Choice == nil {
		return fmt.Errorf("found no kinds of core for the layers: %s", r.Outcome().Stop)
	}
	d.LayerKinds = p.kinds(d.Schedule, r.Choice)
	d.solve("kinds", SecondsUnit, r.Outcome(), "")
	return nil
}

// A kindProblem is to give each layer a kind of core that runs it: its label. A node costs what the kind's units and
// the links of its cores take for the layer, and what does not fit their LBs on its way out and in; an edge, where
// results stay in the LBs, what they take to cores of another kind.
type kindProblem struct {
	binding.Problem
	anchors []model.OpID
	first   []int // node of each group's first layer
}

func (p *kindProblem) kinds(s *schedule.Schedule, choice []int) [][]int {
	all := make([][]int, len(s.Layers))
	for k, layers := range s.Layers {
		all[k] = make([]int, len(layers))
		for l := range layers {
			i := p.first[k] + l
			all[k][l] = kindOf(p.Nodes[i].Labels[choice[i]])
		}
	}
	return all
}

func (d *Draft) kindProblem() (*kindProblem, error) {
	p := &kindProblem{}
	g, kinds := d.Graph, d.Spec.Kinds()
	maker := map[model.TensorID]int{}
	for k, layers := range d.Layers {
		p.first = append(p.first, len(p.Nodes))
		for l := range layers {
			layer := &layers[l]
			n := binding.Node{Name: layer.Name}
			for kind := range kinds {
				if schedule.Runs(kinds[kind], g, layer.Ops) {
					n.Labels = append(n.Labels, binding.Label{Binding: schedule.Binding{int64(kind)}})
					factor := d.Grouping.Groups[k].Factor()
					inst := &d.Instances.Instances[d.Instances.First[k]+int(factor/2)]
					n.Cost = append(n.Cost, float64(factor)*d.kindSeconds(layer, inst.Regions, d.Cost.Kind(kind)))
				}
			}
			if len(n.Labels) == 0 {
				return nil, fmt.Errorf("layer %s: no kind of core of %s runs all of it: %s", layer.Name, d.Spec.Name,
					d.names(layer.Ops))
			}
			for _, t := range layer.Outputs {
				maker[t] = len(p.Nodes)
			}
			p.Nodes, p.anchors = append(p.Nodes, n), append(p.anchors, layer.Anchor)
		}
	}
	if d.Outputs != schedule.LB {
		return p, nil
	}
	i := 0
	for k, layers := range d.Layers {
		for l := range layers {
			bytes := map[int]int64{} // by node that makes them
			for _, t := range layers[l].Inputs {
				if from, made := maker[t]; made && from != i && (d.Between == schedule.LB || from >= p.first[k]) {
					bytes[from] += g.Tensor(t).Bytes()
				}
			}
			for from := range i { // in order
				if n := bytes[from]; n > 0 {
					p.Edges = append(p.Edges, d.kindEdge(p, from, i, n))
				}
			}
			i++
		}
	}
	return p, nil
}

// kindEdge costs what bytes take from the LBs of one kind of core to those of another.
func (d *Draft) kindEdge(p *kindProblem, from, to int, bytes int64) binding.Edge {
	e := binding.Edge{From: from, To: to}
	link := d.Spec.CoreLink
	for _, a := range p.Nodes[from].Labels {
		var row []float64
		for _, b := range p.Nodes[to].Labels {
			seconds := 0.0
			if x, y := kindOf(a), kindOf(b); x != y {
				cores := min(schedule.CoresWithLB(d.Spec.Kind(x)), schedule.CoresWithLB(d.Spec.Kind(y)))
				seconds = float64(bytes)/float64(cores)/link.BandwidthBytesPerSecond + 2*link.LatencySeconds + d.Spec.SyncSeconds
			}
			row = append(row, seconds)
		}
		e.Cost = append(e.Cost, row)
	}
	return e
}

// kindSeconds is about what cores of a kind take for boxes of a layer's results.
func (d *Draft) kindSeconds(layer *schedule.Layer, made schedule.Regions, m *cost.Model) float64 {
	g, spec := d.Graph, m.Spec()
	at := slices.IndexFunc(layer.Outputs, func(t model.TensorID) bool { return made[t].Elements() > 0 })
	if at < 0 {
		return 0
	}
	out := layer.Outputs[at]
	box := made[out]
	b := schedule.GridBinding(box, g.Tensor(out).Layout, schedule.Forbidden(g, layer.Ops, out), schedule.Grid(spec),
		d.UnevenCores)
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
	if d.Outputs != schedule.LB {
		moved += passes
	}
	seconds := math.Max(units, float64(moved)/spec.CoreLink.BandwidthBytesPerSecond)
	if over := passes - schedule.DataBytes(spec); over > 0 && d.Outputs == schedule.LB {
		outside := spec.DDR.BandwidthBytesPerSecond / float64(spec.Clusters)
		if spec.GB != nil {
			outside = spec.GB.BandwidthBytesPerSecond
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
