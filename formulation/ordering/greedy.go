package ordering

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/heap"
)

// A Rule fixes the order greedily.
type Rule string

// The rules.
const (
	BFS   Rule = "bfs"
	DFS   Rule = "dfs"
	Heavy Rule = "heavy"
)

// Rules lists all rules.
func Rules() []Rule { return []Rule{BFS, DFS, Heavy} }

// Order is the order in which a rule runs the instances.
func Order(g *Graph, rule Rule) ([]int, error) {
	switch rule {
	case BFS:
		return g.Topological(), nil
	case DFS:
		return dfs(g), nil
	case Heavy:
		return heavy(g), nil
	}
	return nil, fmt.Errorf("unknown rule %q, expected one of %q", rule, Rules())
}

// ByRule is a rule's order of a valid problem, with the moves that it needs. An
// infeasible problem is an answer, not an error.
func ByRule(p *Problem, rule Rule, objective Objective) (*Result, error) {
	g := NewGraph(p)
	order, err := Order(g, rule)
	if err != nil {
		return nil, err
	}
	return Fixed(string(rule), g, order, objective)
}

// bestRule is the order of least cost that a rule gives, the first of equals; nil if the problem has none.
func bestRule(g *Graph, objective Objective) ([]int, error) {
	var best []int
	var least int64
	for _, rule := range Rules() {
		order, err := Order(g, rule)
		if err != nil {
			return nil, err
		}
		_, cost, _, err := Sequence(g, order, objective)
		var infeasible *InfeasibleError
		switch {
		case errors.As(err, &infeasible):
			return nil, nil
		case err != nil:
			return nil, err
		case best == nil || cost < least:
			best, least = order, cost
		}
	}
	return best, nil
}

// dfs is Algorithm 3 with the order of bfs as its arbitrary first list: all sources are ready at first; then, again
// and again, the last instance in ready without open producers runs, and those of its consumers that still wait move
// to ready, runnable or not. Package graphturbo has the same rule on its own graph.
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
	ready := heap.Of(func(a, b greedyEntry) bool {
		return cmp.Or(cmp.Compare(a.growth, b.growth), cmp.Compare(b.need, a.need), cmp.Compare(a.id, b.id)) < 0
	})
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
		ready.Push(e)
	}
	for i := range g.Refs {
		left[i] = len(g.Readers[i])
		if open[i] = len(g.Reads[i]); open[i] == 0 {
			push(i)
		}
	}
	var order []int
	for ready.Len() > 0 {
		i := ready.Pop().id
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

// A greedyEntry is an instance that can run.
type greedyEntry struct {
	growth int64 // of what the L1 holds, by its run
	need   int64
	id     int
}
