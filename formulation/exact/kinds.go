package exact

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

var exactKinds = scheduler.Strategy{Name: "search",
	Description: "least sum of layers and of moves between kinds, by dynamic programming",
	Exact:       true, Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastKinds(ctx, d, false) }}

var ilpKinds = scheduler.Strategy{Name: "ilp", Description: "likewise, by integer program (HiGHS)", NeedsSolver: true,
	Exact: true, Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastKinds(ctx, d, true) }}

// kindOf is the kind of core that a label of a [kindProblem] stands for.
func kindOf(l binding.Label) int { return int(l.Binding[0]) }

// leastKinds gives layers the kinds of least cost.
func leastKinds(ctx context.Context, d *scheduler.Draft, byILP bool) error {
	if !d.Spec.Mixed() {
		return nil
	}
	p, err := newKindProblem(d)
	if err != nil {
		return err
	}
	r, err := solveLabels(ctx, d, &p.Problem, binding.Options{TimeLimit: d.Options.TimeLimit,
		MemoryBytes: solve.SolverMemory, Solver: d.Options.Solver, Progress: d.Options.ReportTo("kinds")}, byILP)
	if err != nil {
		return err
	}
	if r.Choice == nil {
		return fmt.Errorf("found no kinds of core for the layers: %s", r.Outcome().Stop)
	}
	d.LayerKinds = p.kinds(d.Schedule, r.Choice)
	d.Solve("kinds", scheduler.Solved{Outcome: r.Outcome(), Unit: solve.SecondsUnit})
	return nil
}

// A kindProblem is to give each layer a kind of core that runs it: its label. A node costs what the kind's units and
// the links of its cores take for the layer, and what does not fit their L1s on its way out and in; an edge, where
// results stay in the L1s, what they take to cores of another kind.
type kindProblem struct {
	binding.Problem
	first []int // node of each group's first layer
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

func newKindProblem(d *scheduler.Draft) (*kindProblem, error) {
	p, g := &kindProblem{}, d.Graph
	maker := map[model.TensorID]int{}
	for k, layers := range d.Layers {
		p.first = append(p.first, len(p.Nodes))
		for l := range layers {
			layer := &layers[l]
			n := binding.Node{Name: layer.Name}
			seconds, err := d.KindSeconds(k, l)
			if err != nil {
				return nil, err
			}
			for kind, s := range seconds {
				if !math.IsInf(s, 1) {
					n.Labels = append(n.Labels, binding.Label{Binding: schedule.Binding{int64(kind)}})
					n.Cost = append(n.Cost, s)
				}
			}
			for _, t := range layer.Outputs {
				maker[t] = len(p.Nodes)
			}
			p.Nodes = append(p.Nodes, n)
		}
	}
	if d.Outputs != schedule.L1 {
		return p, nil
	}
	i := 0
	for k, layers := range d.Layers {
		for l := range layers {
			bytes := map[int]int64{} // by node that makes them
			for _, t := range layers[l].Inputs {
				if from, made := maker[t]; made && from != i && (d.Between == schedule.L1 || from >= p.first[k]) {
					bytes[from] += g.Tensor(t).Bytes()
				}
			}
			for from := range i { // in order
				if n := bytes[from]; n > 0 {
					p.Edges = append(p.Edges, kindEdge(d, p, from, i, n))
				}
			}
			i++
		}
	}
	return p, nil
}

// kindEdge costs what bytes take from the L1s of one kind of core to those of another.
func kindEdge(d *scheduler.Draft, p *kindProblem, from, to int, bytes int64) binding.Edge {
	e := binding.Edge{From: from, To: to}
	link := d.Spec.CoreLink
	for _, a := range p.Nodes[from].Labels {
		var row []float64
		for _, b := range p.Nodes[to].Labels {
			seconds := 0.0
			if x, y := kindOf(a), kindOf(b); x != y {
				cores := min(schedule.CoresWithL1(d.Spec.Kind(x)), schedule.CoresWithL1(d.Spec.Kind(y)))
				seconds = float64(bytes)/float64(cores)/link.BandwidthBytesPerSecond + 2*link.LatencySeconds + d.Spec.SyncSeconds
			}
			row = append(row, seconds)
		}
		e.Cost = append(e.Cost, row)
	}
	return e
}
