package graphturbo

import (
	"sort"

	"github.com/dsasched/dsasched/model/schedule"
)

// BFS visits instances breadth first: level by level from the sources, a level being the longest distance from any
// source, within a level by ID. All pieces of one sub-graph so run before the next sub-graph starts.
func BFS(ig *schedule.InstanceGraph) []int {
	level := make([]int, len(ig.Instances))
	order := make([]int, len(ig.Instances))
	// IDs are topological: producers come first.
	for i, inst := range ig.Instances {
		order[i] = i
		for _, d := range inst.Deps {
			level[i] = max(level[i], level[d.From]+1)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return level[order[a]] < level[order[b]] })
	return order
}

// DFS is Algorithm 3 with the BFS order as its arbitrary first list. As the notes say (and unlike the loops on the
// slides, which would never move on), all sources move to ready first; then, again and again, the last instance in
// ready without open producers runs, and those of its consumers that still wait in the first list move to ready,
// runnable or not.
func DFS(ig *schedule.InstanceGraph) []int {
	visit := BFS(ig)
	at := make([]int, len(visit))
	for i, id := range visit {
		at[id] = i
	}
	indegree := make([]int, len(visit))
	for _, cs := range ig.Consumers {
		for _, c := range cs {
			indegree[c]++
		}
	}
	waiting := make([]bool, len(visit))
	var ready, order []int
	for _, id := range visit {
		if indegree[id] == 0 {
			ready = append(ready, id)
		} else {
			waiting[id] = true
		}
	}
	for len(ready) > 0 {
		p := len(ready) - 1
		for indegree[ready[p]] != 0 {
			p--
		}
		id := ready[p]
		ready = append(ready[:p], ready[p+1:]...)
		order = append(order, id)
		// "foreach SGI in visit": consumers in the order of the first list.
		consumers := append([]int(nil), ig.Consumers[id]...)
		sort.Slice(consumers, func(i, j int) bool { return at[consumers[i]] < at[consumers[j]] })
		for _, c := range consumers {
			indegree[c]--
			if waiting[c] {
				waiting[c] = false
				ready = append(ready, c)
			}
		}
	}
	return order
}

// Order evaluates BFS and DFS and returns the better one, with the costs of both.
// On a tie BFS wins, which keeps the weights of a sub-graph in use.
func Order(ig *schedule.InstanceGraph, items []schedule.OrderItem, capacity int64) ([]int, string,
	[]schedule.NamedCost) {
	bfs, dfs := BFS(ig), DFS(ig)
	costs := []schedule.NamedCost{
		{Name: "bfs", Cost: schedule.EvaluateOrder(items, bfs, capacity)},
		{Name: "dfs", Cost: schedule.EvaluateOrder(items, dfs, capacity)},
	}
	if costs[1].Cost.Less(costs[0].Cost) {
		return dfs, "dfs", costs
	}
	return bfs, "bfs", costs
}
