package ordering

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model/ordering"
)

// A Method is a greedy rule.
type Method string

// The methods.
const (
	BFS   Method = "bfs"
	DFS   Method = "dfs"
	Heavy Method = "heavy"
)

// Methods lists all methods.
func Methods() []Method { return []Method{BFS, DFS, Heavy} }

// Order is the order in which a method runs the instances.
func Order(g *ordering.Graph, method Method) ([]int, error) {
	switch method {
	case BFS:
		return g.Topological(), nil
	case DFS:
		return dfs(g), nil
	case Heavy:
		return heavy(g), nil
	}
	return nil, fmt.Errorf("unknown method %q, expected one of %q", method, Methods())
}

// Solve is the method's order of a valid problem, with the moves that it needs. An
// infeasible problem is an answer, not an error.
func Solve(p *ordering.Problem, method Method, objective ordering.Objective) (*ordering.Result, error) {
	g := ordering.NewGraph(p)
	order, err := Order(g, method)
	if err != nil {
		return nil, err
	}
	return ordering.Fixed(string(method), g, order, objective)
}

// dfs is Algorithm 3 with the order of bfs as its arbitrary first list: all
// sources are ready at first; then, again and again, the last instance in ready
// without open producers runs, and those of its consumers that still wait move to
// ready, runnable or not. Package graphturbo has the same rule on its own graph.
func dfs(g *ordering.Graph) []int {
	visit := g.Topological()
	at := make([]int, len(visit))
	for pos, i := range visit {
		at[i] = pos
	}
	open := make([]int, len(visit))
	waiting := make([]bool, len(visit))
	var ready, order []int
	for _, i := range visit {
		if open[i] = len(g.Reads[i]); open[i] == 0 {
			ready = append(ready, i)
		} else {
			waiting[i] = true
		}
	}
	for len(ready) > 0 {
		k := len(ready) - 1
		for open[ready[k]] != 0 {
			k--
		}
		i := ready[k]
		ready = slices.Delete(ready, k, k+1)
		order = append(order, i)
		readers := slices.Clone(g.Readers[i])
		slices.SortFunc(readers, func(a, b int) int { return at[a] - at[b] })
		for _, c := range readers {
			open[c]--
			if waiting[c] {
				waiting[c] = false
				ready = append(ready, c)
			}
		}
	}
	return order
}

func heavy(g *ordering.Graph) []int {
	open := make([]int, len(g.Refs))
	left := make([]int, len(g.Refs)) // readers that have not run
	var ready, order []int
	for i := range g.Refs {
		left[i] = len(g.Readers[i])
		if open[i] = len(g.Reads[i]); open[i] == 0 {
			ready = append(ready, i)
		}
	}
	growth := func(i int) int64 {
		n := int64(0)
		if len(g.Readers[i]) > 0 {
			n = g.Output[i]
		}
		for _, r := range g.Reads[i] {
			if left[r] == 1 {
				n -= g.Output[r]
			}
		}
		return n
	}
	for len(ready) > 0 {
		best, bestGrowth, bestNeed := -1, int64(0), int64(0)
		for k, i := range ready {
			grow, need := growth(i), g.Need(i)
			if best < 0 || grow < bestGrowth || grow == bestGrowth && (need > bestNeed || need == bestNeed && i < ready[best]) {
				best, bestGrowth, bestNeed = k, grow, need
			}
		}
		i := ready[best]
		ready = slices.Delete(ready, best, best+1)
		order = append(order, i)
		for _, r := range g.Reads[i] {
			left[r]--
		}
		for _, c := range g.Readers[i] {
			if open[c]--; open[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	return order
}
