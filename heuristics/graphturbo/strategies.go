package graphturbo

import (
	"context"
	"slices"

	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// Groups are the strategies of row group by Algorithm 2.
func Groups() []scheduler.Strategy {
	return []scheduler.Strategy{algorithm2, algorithm2Divisors, algorithm2Layers}
}

// Splittable are the picks of row group whose groups are split: those of other strategies hold a layer or two.
func Splittable() (list []scheduler.Pick) {
	for _, s := range Groups() {
		list = append(list, scheduler.Pick{Stage: "group", Strategy: s.Name})
	}
	return list
}

// Splits are the strategies of row split.
func Splits() []scheduler.Strategy { return []scheduler.Strategy{noSplit, oneFactorForAll, algorithm1} }

// Orders are the strategies of row order but Algorithm 3.
func Orders() []scheduler.Strategy {
	return []scheduler.Strategy{layerByLayer, chunkByChunk, breadthFirst, depthFirst}
}

// Algorithm3 takes the better of the orders breadth first and depth first.
func Algorithm3() scheduler.Strategy { return algorithm3 }

// PlainBinding spreads instances over their outermost dimensions, Algorithm4 by the paper's rules.
func PlainBinding() scheduler.Strategy { return plainBinding }

// Algorithm4 binds an instance at a time.
func Algorithm4() scheduler.Strategy { return algorithm4 }

var algorithm2 = scheduler.Strategy{Name: "alg2", Description: "Algorithm 2 of the paper", Common: true,
	Decide: func(ctx context.Context, d *scheduler.Draft) (err error) {
		d.Grouping, err = Group(ctx, d.Graph, d.Machine)
		return err
	}}

var algorithm2Divisors = scheduler.Strategy{Name: "alg2-divisors",
	Description: "alg2; Eq. (1) compares factors that divide the output",
	Counting:    schedule.Counting{Divisors: true}, Decide: algorithm2.Decide}

var algorithm2Layers = scheduler.Strategy{Name: "alg2-layers",
	Description: "alg2; tensors inside a layer take no memory (section 4.1)",
	Counting:    schedule.Counting{Layers: true}, Decide: algorithm2.Decide}

var noSplit = scheduler.Strategy{Name: "none", Description: "not at all", Completes: true,
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		// Those that Algorithm 1 cut do not fit whole, by its count.
		for _, sg := range d.Grouping.Groups {
			if sg.Factor() > 1 {
				sg.Split = schedule.SplitInfo{Ops: len(sg.Ops), Factor: schedule.Unsplittable, Dim: -1}
			}
		}
		return nil
	}}

var oneFactorForAll = scheduler.Strategy{Name: "one-factor", Description: "the largest group's factor for all",
	Needs: Splittable(),
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		oneFactor(d.Graph, d.Grouping, d.Options.Uneven)
		return nil
	}}

var algorithm1 = scheduler.Strategy{Name: "alg1", Description: "Algorithm 1 of the paper, each group its own",
	Completes: true, Needs: Splittable(),
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		// Algorithm 2 forms groups with it; others may come without, and read what they hand out.
		splitter := NewSplitter(d.Graph, d.Machine)
		for _, sg := range d.Grouping.Groups {
			if sg.Split == (schedule.SplitInfo{}) {
				infos, peak := splitter.SplitInfo(sg.Ops, sg.Outputs)
				infos = slices.DeleteFunc(infos, func(x schedule.SplitInfo) bool {
					if x.Factor < 2 {
						return false
					}
					_, disjoint := schedule.Disjoint(d.Graph, sg, x.Dim, x.Factor)
					return !disjoint
				})
				sg.Split, sg.PeakBytes = Best(infos), peak
			}
		}
		return nil
	}}

// oneFactor gives every group the largest factor of any, along the outermost dimension that can be cut that often
// without computing anything twice; a group without one keeps its own.
func oneFactor(g *model.Graph, gr *schedule.Grouping, uneven schedule.Uneven) {
	most := int64(1)
	for _, sg := range gr.Groups {
		most = max(most, sg.Factor())
	}
	for _, sg := range gr.Groups {
		out := g.Tensor(sg.Outputs[0])
		for depth, d := range out.Layout {
			if out.Shape[d]%most != 0 {
				continue
			}
			tr := schedule.Track(g, sg.Ops, sg.Outputs, d)
			if tr.Splittable && !tr.Recomputes {
				sg.Split = schedule.SplitInfo{Ops: len(sg.Ops), Factor: most, Dim: d, Depth: depth}
				break
			}
		}
	}
}

// fixedOrder is a strategy that looks at groups and instances only.
func fixedOrder(name, description, orderName string, order func(*schedule.Schedule) []int) scheduler.Strategy {
	decide := func(_ context.Context, d *scheduler.Draft) error {
		d.Order, d.OrderName = order(d.Schedule), orderName
		return nil
	}
	return scheduler.Strategy{Name: name, Description: description, Decide: decide}
}

var (
	layerByLayer = fixedOrder("layer-by-layer", "all instances of a group before the next group", "groups",
		func(s *schedule.Schedule) []int {
			order := make([]int, len(s.Instances.Instances))
			for i := range order {
				order[i] = i
			}
			return order
		})
	chunkByChunk = fixedOrder("chunk-by-chunk", "an instance of every group before the next ones", "chunks",
		func(s *schedule.Schedule) []int {
			return chunkOrder(s.Grouping, s.Instances)
		})
	// breadthFirst runs instances by their distance from the inputs.
	breadthFirst = fixedOrder("bfs", "breadth first", "bfs", func(s *schedule.Schedule) []int { return BFS(s.Instances) })
	depthFirst   = fixedOrder("dfs", "depth first", "dfs", func(s *schedule.Schedule) []int { return DFS(s.Instances) })
)

var algorithm3 = scheduler.Strategy{Name: "alg3", Alias: "greedy",
	Description: "Algorithm 3 of the paper: the better of bfs and dfs",
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Order, d.OrderName, d.Costs = Order(d.Instances, schedule.OrderItems(d.Schedule, d.Machine), d.Machine.L1Bytes)
		return nil
	}}

// chunkOrder runs instance q of every group before instance q+1 of any, as far as dependencies allow.
func chunkOrder(gr *schedule.Grouping, ig *schedule.InstanceGraph) []int {
	most := int64(1)
	for _, sg := range gr.Groups {
		most = max(most, sg.Factor())
	}
	keys := make([][3]int64, len(ig.Instances)) // chunk, group and index
	ready := heap.Of(func(a, b int) bool { return slices.Compare(keys[a][:], keys[b][:]) < 0 })
	indegree := make([]int, len(ig.Instances))
	for i, inst := range ig.Instances {
		keys[i] = [3]int64{inst.Index * most / gr.Groups[inst.Group].Factor(), int64(inst.Group), inst.Index}
		for _, c := range ig.Consumers[i] {
			indegree[c]++
		}
	}
	for i, n := range indegree {
		if n == 0 {
			ready.Push(i)
		}
	}
	var order []int
	for ready.Len() > 0 {
		id := ready.Pop()
		order = append(order, id)
		for _, c := range ig.Consumers[id] {
			if indegree[c]--; indegree[c] == 0 {
				ready.Push(c)
			}
		}
	}
	return order
}

var plainBinding = scheduler.Strategy{Name: "plain", Description: "the outermost dimensions",
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Bindings, d.Scopes = PlainBindGrid(d.Graph, d.Grouping, d.Instances, schedule.Grid(d.Spec), d.Slices)
		return nil
	}}

var algorithm4 = scheduler.Strategy{Name: "alg4", Alias: "greedy", Description: "Algorithm 4 of the paper, an instance at a time",
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Bindings, d.Scopes = BindGrid(d.Graph, d.Grouping, d.Instances, d.Order, schedule.Grid(d.Spec), d.Slices)
		return nil
	}}

// placed is a strategy of row spill whose memory plan is made in some way: by the paper's rules (§4.3), with a rule for
// what leaves first.
func placed(name, description string, how scheduler.Placing) scheduler.Strategy {
	return scheduler.Strategy{Name: name, Description: description, Places: &how,
		Decide: func(_ context.Context, d *scheduler.Draft) error { return Place(d.Schedule, how, nil) }}
}

// Spills are the strategies of row spill.
func Spills() []scheduler.Strategy {
	return []scheduler.Strategy{
		placed("longest-lifetime", "the longest remaining lifetime", scheduler.Placing{Rule: LongestLifetime}),
		placed("largest-first", "the largest", scheduler.Placing{Rule: LargestFirst}),
		placed("needed",
			"longest-lifetime, but nothing for the sake of weights that would pass again: tiles pass them once",
			scheduler.Placing{Rule: LongestLifetime, Needed: true}),
		placed("overwrite", "longest-lifetime, and results of layers without a product lie over what they read",
			scheduler.Placing{Rule: LongestLifetime, Over: true}),
		placed("least-moved", "overwrite, but what takes least time to move for each byte that it frees",
			scheduler.Placing{Rule: LeastMoved, Over: true}),
	}
}
