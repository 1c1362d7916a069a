package schedule

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// ExecutionOrder is the topological order of Algorithm 2's first line. Of the many such orders this takes the
// depth-first one from the outputs, operands in their order: a value is made shortly before it is used, which keeps few
// values alive.
func ExecutionOrder(g *model.Graph) []model.OpID {
	done := make([]bool, len(g.Ops))
	order := make([]model.OpID, 0, len(g.Ops))
	type frame struct {
		op   model.OpID
		next int
	}
	visit := func(root model.OpID) {
		if done[root] {
			return
		}
		done[root] = true
		stack := []frame{{root, 0}}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			op := g.Op(f.op)
			if f.next == len(op.Inputs) {
				order = append(order, f.op)
				stack = stack[:len(stack)-1]
				continue
			}
			p := g.Tensor(op.Inputs[f.next]).Producer
			f.next++
			if p != model.NoOp && !done[p] {
				done[p] = true
				stack = append(stack, frame{p, 0})
			}
		}
	}
	for _, o := range g.Outputs {
		if p := g.Tensor(o).Producer; p != model.NoOp {
			visit(p)
		}
	}
	for i := range g.Ops {
		visit(model.OpID(i))
	}
	return order
}

// Counting is how footprints and factors of groups are counted, where the paper leaves that open.
type Counting struct {
	// Layers leaves tensors inside a layer out of footprints (§4.1), see [PeakOptions].
	Layers bool
	// Divisors lets Eq. (1) compare factors that divide the output, too, where the text
	// asks this of intermediates only (line 10).
	Divisors bool
}

// SplitOptions are the inputs of Algorithm 1 beside the sub-graph.
type SplitOptions struct {
	L1Bytes int64 // of the whole cluster, for activations
	Cores   int64
	InPlace bool
	Counting
	// Uneven says which extents a factor need not divide.
	Uneven Uneven
	// The simple cost model against recomputation: a split whose instances compute parts of intermediates twice is
	// refused if another dimension needs none of that, or if it takes longer than the traffic with the LLB that keeping
	// the intermediates in the L1 saves.
	MACsPerSecond      float64 // of one cluster
	VectorOpsPerSecond float64
	LLBBytesPerSecond  float64
}

// Peak is the rule by which footprints are counted.
func (o SplitOptions) Peak() PeakOptions {
	return PeakOptions{InPlace: o.InPlace, Layers: o.Layers}
}

// Disjoint returns the regions of a group's pieces; false: pieces write something twice.
func Disjoint(g *model.Graph, sg *SubGraph, dim int, pieces int64) (all []Regions, ok bool) {
	for q := range pieces {
		all = append(all, InstanceRegions(g, sg.Ops, sg.Outputs, dim, pieces, q))
		for _, o := range sg.Outputs {
			if q > 0 && all[q-1][o].Overlap(all[q][o]) > 0 {
				return nil, false
			}
		}
	}
	return all, true
}

// OrderItems describes the instances to the ordering problem.
func OrderItems(s *Schedule, split SplitOptions) []OrderItem {
	g := s.Graph
	items := make([]OrderItem, len(s.Instances.Instances))
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		it := &items[i]
		for _, o := range sg.Outputs {
			it.OutputBytes += g.Tensor(o).DType.Bytes(inst.Regions[o].Elements())
		}
		reads := int64(0)
		for _, d := range inst.Deps {
			if n := len(it.Reads); n == 0 || it.Reads[n-1] != d.From {
				it.Reads = append(it.Reads, d.From)
			}
			reads += d.Bytes
		}
		slices.Sort(it.Reads)
		it.Reads = slices.Compact(it.Reads)
		peak := Peak(g, sg.Ops, sg.Outputs, inst.Regions, split.Peak())
		it.WorkspaceBytes = max(0, peak-reads-it.OutputBytes)
		for _, id := range sg.Ops {
			for _, o := range g.Op(id).Outputs {
				if r := inst.Regions[o]; r != nil {
					w := g.Work(g.Op(id), r)
					it.Seconds += float64(w.MACs)/split.MACsPerSecond + float64(w.Vector.Total())/split.VectorOpsPerSecond
				}
			}
		}
	}
	return items
}
