package ordering

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
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
func Order(g *Graph, method Method) ([]int, error) {
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
func Solve(p *Problem, method Method, objective Objective) (*Result, error) {
	g := NewGraph(p)
	order, err := Order(g, method)
	if err != nil {
		return nil, err
	}
	return Fixed(string(method), g, order, objective)
}

// dfs is Algorithm 3 with the order of bfs as its arbitrary first list: all
// sources are ready at first; then, again and again, the last instance in ready
// without open producers runs, and those of its consumers that still wait move to
// ready, runnable or not. Package graphturbo has the same rule on its own graph.
func dfs(g *Graph) []int {
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

func heavy(g *Graph) []int {
	open := make([]int, len(g.Refs))
	left := make([]int, len(g.Refs)) // readers that have not run
	ran := make([]bool, len(g.Refs))
	ready := &greedyQueue{}
	push := func(i int) {
		e := greedyEntry{need: g.Need(i), id: i}
		if len(g.Readers[i]) > 0 {
			e.growth = g.Output[i]
		}
		for _, r := range g.Reads[i] {
			if left[r] == 1 {
				e.growth -= g.Output[r]
			}
		}
		heap.Push(ready, e)
	}
	for i := range g.Refs {
		left[i] = len(g.Readers[i])
		if open[i] = len(g.Reads[i]); open[i] == 0 {
			push(i)
		}
	}
	var order []int
	for ready.Len() > 0 {
		i := heap.Pop(ready).(greedyEntry).id
		if ran[i] {
			continue // it was pushed again when its growth fell
		}
		ran[i] = true
		order = append(order, i)
		for _, c := range g.Readers[i] {
			if open[c]--; open[c] == 0 {
				push(c)
			}
		}
		for _, r := range g.Reads[i] {
			if left[r]--; left[r] > 1 || left[r] == 0 {
				continue
			}
			for _, c := range g.Readers[r] {
				if open[c] == 0 && !ran[c] {
					push(c) // now the last to read r
				}
			}
		}
	}
	return order
}

// An entry is an instance that can run.
type greedyEntry struct {
	growth int64 // of what the LB holds, by its run
	need   int64
	id     int
}

type greedyQueue []greedyEntry

func (q greedyQueue) Len() int { return len(q) }

func (q greedyQueue) Less(i, j int) bool {
	a, b := q[i], q[j]
	return cmp.Or(cmp.Compare(a.growth, b.growth), cmp.Compare(b.need, a.need), cmp.Compare(a.id, b.id)) < 0
}

func (q greedyQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *greedyQueue) Push(x any)   { *q = append(*q, x.(greedyEntry)) }

func (q *greedyQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
