package partition

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/internal/strict"
)

// NoColor is the colour of a node that may be anywhere.
const NoColor = math.MinInt

// A Node is a layer or an operator.
type Node struct {
	ID        int
	Name      string
	Supported bool // on accelerators
	// CPULatency and AcceleratorLatency are times in the unit of the file.
	CPULatency, AcceleratorLatency float64
	Backward                       bool
	Color                          int // NoColor is none
	SizeBytes                      float64
}

// An Edge leads from the node at index From to the one at index To of Problem.Nodes.
type Edge struct {
	From, To int
	Cost     float64 // of moving From's output, the same for all its edges
}

// A Problem is a graph with the devices to divide it over.
type Problem struct {
	Name         string // for messages
	Accelerators int
	CPUs         int
	MemoryBytes  float64 // of each accelerator
	Nodes        []Node
	Edges        []Edge
	index        map[int]int
	order        []int     // topological
	size         []float64 // of each node, and memory of an accelerator, as [Problem.weigh] rounds them
	memory       float64
	cost         []float64
	succ, pred   [][]int
	row          [][2]int // arcs of (7), as indexes of nodes
	backward     bool     // there are backward nodes
}

// InputError describes a mistake in a problem.
type InputError = strict.InputError

const (
	maxDevices = 1024
	maxNodes   = 200_000
	maxNumber  = 1e18 // keeps every sum finite
	// sameCost is the share of the largest cost, of 1 at most, by which the costs of one node's edges may differ; the
	// first counts.
	sameCost = 1e-6
)

// Validate reports the first thing that makes p no problem and prepares it for the methods; it must be called again
// after a change. Errors are of type *InputError.
func (p *Problem) Validate() error {
	bad := func(where string, found any, want string) error {
		name := p.Name
		name = cmp.Or(name, "partition problem")
		return strict.Error(name, where, fmt.Sprint(found), want)
	}
	switch {
	case p.Accelerators < 0 || p.Accelerators > maxDevices:
		return bad("maxFPGAs", p.Accelerators, fmt.Sprintf("0 to %d", maxDevices))
	case p.CPUs < 0 || p.CPUs > maxDevices:
		return bad("maxCPUs", p.CPUs, fmt.Sprintf("0 to %d", maxDevices))
	case p.Accelerators+p.CPUs == 0:
		return bad("maxFPGAs and maxCPUs", "no device", "at least one")
	case !usable(p.MemoryBytes):
		return bad("maxSizePerFPGA", p.MemoryBytes, "a number from 0 to 1e18")
	case len(p.Nodes) == 0:
		return bad("nodes", "none", "at least one")
	case len(p.Nodes) > maxNodes:
		return bad("nodes", len(p.Nodes), fmt.Sprintf("at most %d", maxNodes))
	}
	n := len(p.Nodes)
	p.index = make(map[int]int, n)
	forward := map[int]bool{} // colours with forward nodes
	p.backward = false
	for i, v := range p.Nodes {
		if _, twice := p.index[v.ID]; twice {
			return bad(fmt.Sprintf("node %d: id", v.ID), "it twice", "an id of its own")
		}
		p.index[v.ID] = i
		for _, f := range []struct {
			name string
			x    float64
		}{{"cpuLatency", v.CPULatency}, {"fpgaLatency", v.AcceleratorLatency}, {"size", v.SizeBytes}} {
			if !usable(f.x) {
				return bad(fmt.Sprintf("node %d: %s", v.ID, f.name), f.x, "a number from 0 to 1e18")
			}
		}
		p.backward = p.backward || v.Backward
		if v.Color != NoColor && !v.Backward {
			forward[v.Color] = true
		}
	}
	p.succ, p.pred, p.cost = make([][]int, n), make([][]int, n), make([]float64, n)
	seen := map[[2]int]bool{}
	largest := 0.0
	for _, e := range p.Edges {
		largest = max(largest, e.Cost)
	}
	for i, e := range p.Edges {
		at := fmt.Sprintf("edge %d", i)
		if e.From < 0 || e.From >= n || e.To < 0 || e.To >= n {
			return bad(at, fmt.Sprintf("%d to %d", e.From, e.To), "indexes of nodes")
		}
		u, v := p.Nodes[e.From], p.Nodes[e.To]
		at = fmt.Sprintf("edge %d to %d", u.ID, v.ID)
		switch {
		case !usable(e.Cost):
			return bad(at+": cost", e.Cost, "a number from 0 to 1e18")
		case len(p.succ[e.From]) > 0 && math.Abs(p.cost[e.From]-e.Cost) > sameCost*min(1, largest):
			return bad(at+": cost", e.Cost, fmt.Sprintf("%v, as the other edges of node %d have", p.cost[e.From], u.ID))
		case u.Backward && !v.Backward:
			return bad(at, "a backward node before a forward one", "edges that never lead from backward to forward nodes")
		case seen[[2]int{e.From, e.To}]:
			continue
		}
		seen[[2]int{e.From, e.To}] = true
		if len(p.succ[e.From]) == 0 {
			p.cost[e.From] = e.Cost
		}
		p.succ[e.From] = append(p.succ[e.From], e.To)
		p.pred[e.To] = append(p.pred[e.To], e.From)
	}
	p.weigh()
	waits := make([]int, n)
	p.order = p.order[:0]
	for i := range p.Nodes {
		if waits[i] = len(p.pred[i]); waits[i] == 0 {
			p.order = append(p.order, i)
		}
	}
	for k := 0; k < len(p.order); k++ {
		for _, w := range p.succ[p.order[k]] {
			if waits[w]--; waits[w] == 0 {
				p.order = append(p.order, w)
			}
		}
	}
	if len(p.order) < n {
		return bad("edges", p.cycle(waits), "a graph without cycles")
	}
	p.row = p.row[:0]
	for u := range p.Nodes {
		for _, w := range p.succ[u] {
			a, b := p.Nodes[u], p.Nodes[w]
			switch {
			case !b.Backward:
				p.row = append(p.row, [2]int{u, w})
			case a.Backward && !(forward[a.Color] && forward[b.Color]):
				p.row = append(p.row, [2]int{w, u})
			}
		}
	}
	return nil
}

// weigh rounds the sizes and the memory to multiples of one power of two, of which every sum is exact: what fits
// depends on no order of adding. Whole sizes that add up to less than 2^53 stay as they are.
func (p *Problem) weigh() {
	total := 0.0
	for _, v := range p.Nodes {
		total += v.SizeBytes
	}
	_, exponent := math.Frexp(total)
	grain := math.Ldexp(1, max(exponent-52, -1022))
	p.size = make([]float64, len(p.Nodes))
	for i, v := range p.Nodes {
		p.size[i] = math.Round(v.SizeBytes/grain) * grain
	}
	p.memory = p.MemoryBytes
	if p.memory < 2*total {
		p.memory = math.Round(p.memory/grain) * grain
	}
}

func usable(x float64) bool { return x >= 0 && x <= maxNumber }

// cycle names the nodes of one.
func (p *Problem) cycle(waits []int) string {
	at := slices.IndexFunc(waits, func(w int) bool { return w > 0 })
	when := map[int]int{}
	var path []int
	for {
		if k, again := when[at]; again {
			path = path[k:]
			break
		}
		when[at] = len(path)
		path = append(path, at)
		at = p.pred[at][slices.IndexFunc(p.pred[at], func(u int) bool { return waits[u] > 0 })]
	}
	slices.Reverse(path)
	text := "the cycle"
	for i, v := range append(path, path[0]) {
		if i > 8 && i < len(path) {
			if i == 9 {
				text += " ..."
			}
			continue
		}
		text += fmt.Sprintf(" %d", p.Nodes[v].ID)
	}
	return text
}
