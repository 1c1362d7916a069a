package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/model"
)

// Instance is one piece of a sub-graph.
type Instance struct {
	ID    int
	Group int
	Index int64 // 0 .. factor-1
	// Regions holds the box of every tensor that the instance reads or writes.
	Regions Regions
	// Deps lists what the instance reads of other instances, by input, then producer.
	Deps  []Dep
	boxes *Regions // of the first instance, where a memo has all of the group; else nil
}

// Dep is a fine-grained dependency: the instance reads part of Tensor, made by instance From.
type Dep struct {
	Tensor model.TensorID
	From   int
	Bytes  int64 // read of what From makes
}

// InstanceGraph holds all instances of a grouping; instance IDs run group by group, index by index.
type InstanceGraph struct {
	Instances []Instance
	First     []int // of each group
	// Consumers[i] lists the instances that read what i makes, ascending.
	Consumers [][]int
	// RedundantEdges counts the edges that instances would inherit from their
	// sub-graphs but that carry no data (the grey edges of the paper's Fig. 6).
	RedundantEdges int
}

// NewInstanceGraph splits every group and finds the fine-grained dependencies by
// checking what is really read, halos included.
func NewInstanceGraph(g *model.Graph, gr *Grouping) *InstanceGraph {
	return (*Memo)(nil).Instances(g, gr)
}

// Instances is NewInstanceGraph, with boxes that may be known.
func (m *Memo) Instances(g *model.Graph, gr *Grouping) *InstanceGraph {
	ig := &InstanceGraph{}
	groupOf := make([]int, len(g.Ops))
	for k, sg := range gr.Groups {
		ig.First = append(ig.First, len(ig.Instances))
		for _, id := range sg.Ops {
			groupOf[id] = k
		}
		boxes := m.boxesOf(g, sg)
		for q := int64(0); q < sg.Factor(); q++ {
			inst := Instance{ID: len(ig.Instances), Group: k, Index: q, Regions: boxes[q]}
			if m != nil {
				inst.boxes = &boxes[0]
			}
			for _, t := range sg.Inputs {
				p := g.Tensor(t).Producer
				if p == model.NoOp {
					continue
				}
				from, need := gr.Groups[groupOf[p]], inst.Regions[t]
				makers := ig.Instances[ig.First[from.ID]:][:from.Factor()]
				ig.RedundantEdges += len(makers)
				if need == nil {
					continue
				}
				// Makers stand in the order of their pieces: those before the first that is read are left out.
				at, d := 0, from.SplitDim()
				if d >= 0 {
					at = sort.Search(len(makers), func(j int) bool { return makers[j].Regions[t][d].Hi > need[d].Lo })
				}
				for _, m := range makers[at:] {
					if d >= 0 && m.Regions[t][d].Lo >= need[d].Hi {
						break
					}
					if n := need.Overlap(m.Regions[t]); n > 0 {
						ig.RedundantEdges--
						inst.Deps = append(inst.Deps, Dep{t, m.ID, g.Tensor(t).DType.Bytes(n)})
					}
				}
			}
			ig.Instances = append(ig.Instances, inst)
		}
	}
	ig.Consumers = make([][]int, len(ig.Instances))
	for i, inst := range ig.Instances {
		for _, d := range inst.Deps {
			cs := ig.Consumers[d.From]
			if len(cs) == 0 || cs[len(cs)-1] != i {
				ig.Consumers[d.From] = append(cs, i)
			}
		}
	}
	return ig
}

// CheckInstances verifies that the instances of each group cover every output exactly once and that every element read
// is made by a listed dependency or is a network input.
func CheckInstances(g *model.Graph, gr *Grouping, ig *InstanceGraph) error {
	for k, sg := range gr.Groups {
		for _, o := range sg.Outputs {
			sum := int64(0)
			made := make([]model.Region, sg.Factor())
			for q := range made {
				made[q] = ig.Instances[ig.First[k]+q].Regions[o]
				sum += made[q].Elements()
			}
			if j, q, n := firstOverlap(made, sg.SplitDim()); n > 0 {
				return fmt.Errorf("instances %d and %d of %q both write %d elements of %q", j, q, sg.Name, n, g.Tensor(o).Name)
			}
			if sum != g.Tensor(o).Shape.Elements() {
				return fmt.Errorf("instances of %q write %d elements of %q, expected %d", sg.Name, sum, g.Tensor(o).Name,
					g.Tensor(o).Shape.Elements())
			}
		}
	}
	for _, inst := range ig.Instances {
		sg := gr.Groups[inst.Group]
		for _, t := range sg.Inputs {
			if g.Tensor(t).Producer == model.NoOp {
				continue
			}
			got := int64(0)
			for _, d := range inst.Deps {
				if d.Tensor == t {
					got += inst.Regions[t].Overlap(ig.Instances[d.From].Regions[t])
				}
			}
			if want := inst.Regions[t].Elements(); got != want {
				return fmt.Errorf("instance %d of %q reads %d elements of %q, its dependencies make %d of them", inst.Index,
					sg.Name, want, g.Tensor(t).Name, got)
			}
		}
	}
	return nil
}

// firstOverlap finds two boxes that share n elements; n is 0 if there are none. Only boxes that meet along one
// dimension are compared, in the order of their beginnings.
func firstOverlap(boxes []model.Region, along int) (j, q int, n int64) {
	along = max(along, 0)
	var order []int
	for i, r := range boxes {
		if r.Elements() > 0 {
			order = append(order, i)
		}
	}
	if len(order) > 0 && len(boxes[order[0]]) == 0 { // scalars
		along = -1
	}
	lo := func(i int) int64 {
		if along < 0 {
			return 0
		}
		return boxes[i][along].Lo
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lo(a), lo(b)) })
	for k, i := range order {
		for _, m := range order[k+1:] {
			if along >= 0 && boxes[m][along].Lo >= boxes[i][along].Hi {
				break
			}
			if n := boxes[i].Overlap(boxes[m]); n > 0 {
				return min(i, m), max(i, m), n
			}
		}
	}
	return 0, 0, 0
}

// CheckOrder verifies that the order of a schedule runs each instance once, after everything that it reads. Of one
// cluster's part these are the instances of its cluster.
func CheckOrder(s *Schedule) error {
	n := len(s.Instances.Instances)
	if s.Place != nil && len(s.Place) != n {
		return fmt.Errorf("%d instances have clusters, expected all %d", len(s.Place), n)
	}
	at := slices.Repeat([]int{-1}, n)
	for pos, id := range s.Order {
		switch {
		case id < 0 || id >= n:
			return fmt.Errorf("order names instance %d of %d", id, n)
		case s.Away(id):
			return fmt.Errorf("instance %d runs at position %d of cluster %d, its place is cluster %d", id, pos,
				s.Cluster, s.Place[id])
		case at[id] >= 0:
			return fmt.Errorf("instance %d runs at positions %d and %d", id, at[id], pos)
		}
		at[id] = pos
		for _, d := range s.Instances.Instances[id].Deps {
			if !s.Away(d.From) && at[d.From] < 0 {
				return fmt.Errorf("instance %d runs at position %d, before instance %d that it reads", id, pos, d.From)
			}
		}
	}
	for id, pos := range at {
		if pos < 0 && !s.Away(id) {
			return fmt.Errorf("order has %d of %d instances, and not instance %d", len(s.Order), n, id)
		}
	}
	return nil
}

// OrderItem is an instance as the ordering problem sees it.
type OrderItem struct {
	OutputBytes    int64
	WorkspaceBytes int64   // needed only while it runs, beyond inputs and output
	Seconds        float64 // to weigh utilisation
	Reads          []int   // producers, ascending, each once
}

// OrderCost is the verdict on an order.
type OrderCost struct {
	MovedBytes int64 // stored to and loaded from the LLB
	// Utilization is the time-weighted share of the L1 that holds what the running
	// instance reads or writes. Outputs that only wait do not count.
	Utilization float64
	PeakBytes   int64
	// OverflowBytes is the most by which a single instance passes the capacity by
	// itself; its kernel then has to stream through the LLB.
	OverflowBytes int64
}

// Less reports whether a is better: fewer bytes moved, then better utilisation.
func (a OrderCost) Less(b OrderCost) bool {
	if a.MovedBytes != b.MovedBytes {
		return a.MovedBytes < b.MovedBytes
	}
	return a.Utilization > b.Utilization
}

// EvaluateOrder plays an order on an L1 of capacity bytes: outputs stay until their last reader has run; when space is
// short, the output with the longest remaining lifetime that the running instance does not read is stored first (ties
// by ID); it is loaded back before its next reader. A store is free if an unchanged copy is in the LLB already.
func EvaluateOrder(items []OrderItem, order []int, capacity int64) OrderCost {
	var cost OrderCost
	at := make([]int, len(items))
	for pos, id := range order {
		at[id] = pos
	}
	last := slices.Repeat([]int{-1}, len(items)) // position of the last reader
	for i, it := range items {
		for _, p := range it.Reads {
			last[p] = max(last[p], at[i])
		}
	}
	inL1 := make([]bool, len(items))
	leaving := leaving{heap.Of(func(a, b int) bool { return last[a] > last[b] || last[a] == last[b] && a < b })}
	copied := make([]bool, len(items))
	readAt := make([]int, len(items)) // 1 + position of the last reader so far
	used := int64(0)
	weight, total := 0.0, 0.0
	for pos, id := range order {
		it := items[id]
		touched := it.OutputBytes + it.WorkspaceBytes
		missing := int64(0)
		for _, p := range it.Reads {
			readAt[p] = pos + 1
			touched += items[p].OutputBytes
			if !inL1[p] {
				missing += items[p].OutputBytes
			}
		}
		cost.OverflowBytes = max(cost.OverflowBytes, touched-capacity)
		for used+missing+it.OutputBytes+it.WorkspaceBytes > capacity {
			victim := leaving.next(func(j int) bool { return inL1[j] }, func(j int) bool { return readAt[j] == pos+1 })
			if victim < 0 {
				break
			}
			inL1[victim] = false
			used -= items[victim].OutputBytes
			if !copied[victim] {
				copied[victim] = true
				cost.MovedBytes += items[victim].OutputBytes
			}
		}
		for _, p := range it.Reads {
			if !inL1[p] {
				inL1[p] = true
				leaving.Push(p)
				used += items[p].OutputBytes
				cost.MovedBytes += items[p].OutputBytes
			}
		}
		cost.PeakBytes = max(cost.PeakBytes, used+it.OutputBytes+it.WorkspaceBytes)
		weight += it.Seconds * min(1, float64(touched)/float64(max(capacity, 1)))
		total += it.Seconds
		used += it.OutputBytes
		inL1[id] = true
		leaving.Push(id)
		leave := func(p int) {
			if inL1[p] && last[p] <= pos {
				inL1[p] = false
				used -= items[p].OutputBytes
			}
		}
		leave(id)
		for _, p := range it.Reads {
			leave(p)
		}
	}
	if total > 0 {
		cost.Utilization = weight / total
	}
	return cost
}

// leaving has the outputs that came to the L1, that with the longest remaining lifetime
// first (ties by ID). What has left since is still there.
type leaving struct{ *heap.Heap[int] }

// next takes the first that is there and not to be kept; -1: there is none.
func (l leaving) next(there, keep func(int) bool) int {
	found := -1
	var kept []int
	for found < 0 && l.Len() > 0 {
		switch j := l.Pop(); {
		case !there(j):
		case keep(j):
			kept = append(kept, j)
		default:
			found = j
		}
	}
	for _, j := range kept {
		l.Push(j)
	}
	return found
}
