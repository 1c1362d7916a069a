package ordering

import (
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
)

// A Graph is a problem instance by instance. IDs are dense, sub-graph by sub-graph, and not necessarily topological.
type Graph struct {
	Capacity int64
	Unit     float64 // cost units in a cost of 1
	Refs     []Ref
	Output   []int64 // bytes
	Work     []int64 // bytes of workspace
	Store    []int64 // cost units to store the output
	Load     []int64 // cost units to load it
	Reads    [][]int // instances whose outputs it reads, ascending
	Readers  [][]int // ascending
}

// NewGraph makes the graph of a problem, which must be valid.
func NewGraph(p *Problem) *Graph {
	g := &Graph{Capacity: p.CapacityBytes, Unit: p.unit()}
	store, load := round(p.StoreCostPerByte*g.Unit), round(p.LoadCostPerByte*g.Unit)
	first := make([]int, len(p.Subgraphs))
	for k, sg := range p.Subgraphs {
		first[k] = len(g.Refs)
		for q := range sg.Instances {
			g.Refs = append(g.Refs, Ref{k, q})
			g.Output = append(g.Output, sg.OutputBytes)
			g.Work = append(g.Work, sg.WorkspaceBytes)
			g.Store = append(g.Store, sg.OutputBytes*store)
			g.Load = append(g.Load, sg.OutputBytes*load)
		}
	}
	g.Reads = make([][]int, len(g.Refs))
	g.Readers = make([][]int, len(g.Refs))
	for _, a := range p.Arcs {
		for q, r := range a.Reads {
			to := first[a.To] + q
			for i := r[0]; i < r[1]; i++ {
				g.Reads[to] = append(g.Reads[to], first[a.From]+i)
				g.Readers[first[a.From]+i] = append(g.Readers[first[a.From]+i], to)
			}
		}
	}
	for i := range g.Refs {
		slices.Sort(g.Reads[i])
		slices.Sort(g.Readers[i])
	}
	return g
}

func round(c float64) int64 {
	return int64(c + 0.5)
}

// Need is the number of bytes in the L1 while instance i runs: what it reads, its output and its workspace.
func (g *Graph) Need(i int) int64 {
	n := g.Output[i] + g.Work[i]
	for _, r := range g.Reads[i] {
		n += g.Output[r]
	}
	return n
}

// LargestNeed is the largest [Graph.Need]: no capacity below it will do.
func (g *Graph) LargestNeed() int64 {
	most := int64(0)
	for i := range g.Refs {
		most = max(most, g.Need(i))
	}
	return most
}

// Feasible returns an [*InfeasibleError] for the instance that passes the
// capacity by most, the first of several; nil if all fit.
func (g *Graph) Feasible() error {
	var worst *InfeasibleError
	for i := range g.Refs {
		missing := g.Need(i) - g.Capacity
		if missing <= 0 || worst != nil && missing <= worst.MissingBytes {
			continue
		}
		worst = &InfeasibleError{Instance: g.Refs[i], MissingBytes: missing}
		for _, r := range g.Reads[i] {
			worst.Tensors = append(worst.Tensors, g.Refs[r])
		}
		worst.Tensors = append(worst.Tensors, g.Refs[i])
	}
	if worst == nil {
		return nil
	}
	return worst
}

// ByID lists the instances.
func (g *Graph) ByID() []int { return solve.Numbers(len(g.Refs)) }

// Topological lists the instances so that each comes after those it reads, else by ID.
func (g *Graph) Topological() []int {
	level := g.levels()
	return slices.SortedStableFunc(slices.Values(g.ByID()), func(a, b int) int { return level[a] - level[b] })
}

// Obey is an order with all that an instance reads before it: the order itself if that is so already.
func (g *Graph) Obey(order []int) []int {
	done, out := make([]bool, len(g.Refs)), make([]int, 0, len(order))
	var run func(i int)
	run = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, r := range g.Reads[i] {
			run(r)
		}
		out = append(out, i)
	}
	for _, i := range order {
		run(i)
	}
	return out
}

// levels gives each instance's longest distance from an instance that reads nothing.
func (g *Graph) levels() []int {
	level := make([]int, len(g.Refs))
	for _, i := range g.Obey(g.ByID()) {
		for _, r := range g.Reads[i] {
			level[i] = max(level[i], level[r]+1)
		}
	}
	return level
}

// Closures counts what must run before and after each instance.
func (g *Graph) Closures() (before, after []int) {
	n := len(g.Refs)
	count := func(near [][]int) []int {
		out, mark := make([]int, n), make([]int, n)
		for i := range n {
			stack := []int{i}
			mark[i] = i + 1
			for len(stack) > 0 {
				j := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				for _, x := range near[j] {
					if mark[x] != i+1 {
						mark[x] = i + 1
						out[i]++
						stack = append(stack, x)
					}
				}
			}
		}
		return out
	}
	return count(g.Reads), count(g.Readers)
}
