package astitch

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Loop says what leads a loop nest of a stitch operator.
type Loop struct {
	Dominant model.OpID
	// Sub lists the sub-dominants, in execution order.
	Sub []model.OpID
}

// Plan is AStitch's answer for a graph.
type Plan struct {
	Grouping *schedule.Grouping
	Layers   [][]schedule.Layer // per sub-graph
	// Loops, per sub-graph: one entry per layer of a stitch operator; nil for compute-intensive kernels.
	Loops [][]Loop
}

// Group makes kernels of the operators, given in execution order: stitch operators
// of the memory-intensive ones, and compute-intensive kernels. units are the kernels to
// begin with, nil: schedule.FusedLayers; cores is the number of cores of a cluster.
func Group(g *model.Graph, order []model.OpID, units []schedule.Layer, cores int64) Plan {
	pos := make([]int, len(g.Ops))
	for i, id := range order {
		pos[id] = i
	}
	if units == nil {
		units = schedule.FusedLayers(g, order)
	}
	parts := make([][]model.OpID, len(units))
	heavy := make([]bool, len(units))
	for k, u := range units {
		parts[k] = u.Ops
		heavy[k] = g.Op(u.Anchor).Class() == model.MatrixClass
	}
	p := NewPartition(g, pos, parts)
	p.Scopes(heavy)
	p.Remote(heavy)
	plan := Plan{Grouping: &schedule.Grouping{}}
	inside := make([][]schedule.Layer, len(units))
	for _, u := range units {
		k := p.owner[u.Ops[0]]
		inside[k] = append(inside[k], u)
	}
	for i, k := range p.Sorted() {
		ops := p.Ops[k]
		sg := &schedule.SubGraph{ID: i, Name: fmt.Sprintf("k%d", i), Ops: ops,
			Split: schedule.SplitInfo{Ops: len(ops), Factor: 1, Dim: -1}}
		sg.Inputs, sg.Outputs = schedule.Boundary(g, ops)
		layers, loops := []schedule.Layer{units[k]}, []Loop(nil)
		if !heavy[k] {
			sg.Name = fmt.Sprintf("stitch%d", i)
			layers, loops = loopNests(g, pos, inside[k], cores)
		}
		plan.Grouping.Groups = append(plan.Grouping.Groups, sg)
		plan.Layers = append(plan.Layers, layers)
		plan.Loops = append(plan.Loops, loops)
	}
	return plan
}

// Scopes merges the memory-intensive parts that a breadth-first search connects.
func (p *Partition) Scopes(heavy []bool) {
	for seed := range p.Ops {
		if heavy[seed] || p.Ops[seed] == nil {
			continue
		}
		grow(p, seed, func(k int) bool { return !heavy[k] && p.Mergeable(seed, k) })
	}
}

// grow merges neighbours into part seed, breadth first, as long as it may. A refused
// neighbour is asked again when the part has grown towards it.
func grow(p *Partition, seed int, may func(k int) bool) {
	for queue := p.neighbours(seed); len(queue) > 0; {
		k := queue[0]
		queue = queue[1:]
		if k == seed || p.Ops[k] == nil || !may(k) {
			continue
		}
		queue = append(queue, p.neighbours(k)...)
		p.reorder(seed, k)
		p.merge(seed, k)
	}
}

// Remote merges stitch operators that do not depend on each other.
func (p *Partition) Remote(heavy []bool) {
	after := p.reach(func(k int) bool { return !heavy[k] })
	for a := range p.Ops {
		if heavy[a] || p.Ops[a] == nil {
			continue
		}
		var others []int
		for _, b := range after.others(a) {
			if after.apart(a, b) {
				others = append(others, b)
				after.extend(after.last[a], b)
				after.shorten(after.first[a], b)
			}
		}
		if len(others) > 0 {
			after.merge(a, others)
		}
	}
}
