package binding

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/internal/strict"
)

// file is a problem as JSON: costs are whole numbers, so that sums are exact, and labels are words.
type file struct {
	Name  string     `json:"name"`
	Nodes []fileNode `json:"nodes" most:"100000"`
	Edges []fileEdge `json:"edges" most:"1000000"`
	Given []int      `json:"given" most:"100000"`
}

type fileNode struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels" most:"100000"`
	Cost   []int64  `json:"cost" most:"100000"`
}

type fileEdge struct {
	From int       `json:"from"`
	To   int       `json:"to"`
	Cost [][]int64 `json:"cost" most:"100000"`
}

// maxCost keeps sums of a file's costs exact.
const maxCost = 1 << 40

// Read reads a problem, and the choice that is given with it for comparison. Costs are in the file's unit, of which
// all are whole numbers. Errors are of type [*strict.InputError].
func Read(name string, data []byte) (p *Problem, given []int, err error) {
	var f file
	if err := strict.Decode(name, data, &f); err != nil {
		return nil, nil, err
	}
	p = &Problem{}
	take := func(where string, costs []int64) (list []float64, err error) {
		for l, c := range costs {
			if c < 0 || c > maxCost {
				return nil, strict.Error(name, fmt.Sprintf("%s[%d]", where, l), fmt.Sprint(c), fmt.Sprintf("0 to %d",
					int64(maxCost)))
			}
			list = append(list, float64(c))
		}
		return list, nil
	}
	for i, n := range f.Nodes {
		where := fmt.Sprintf("nodes[%d]", i)
		costs, err := take(where+".cost", n.Cost)
		if err != nil {
			return nil, nil, err
		}
		if len(n.Labels) != len(n.Cost) {
			return nil, nil, strict.Error(name, where+".labels", fmt.Sprint(len(n.Labels)),
				fmt.Sprintf("%d, one for each cost", len(n.Cost)))
		}
		p.Nodes = append(p.Nodes, Node{Name: n.Name, Labels: make([]Label, len(n.Labels)), Cost: costs})
	}
	for i, e := range f.Edges {
		edge := Edge{From: e.From, To: e.To}
		for a, row := range e.Cost {
			costs, err := take(fmt.Sprintf("edges[%d].cost[%d]", i, a), row)
			if err != nil {
				return nil, nil, err
			}
			edge.Cost = append(edge.Cost, costs)
		}
		p.Edges = append(p.Edges, edge)
	}
	if err := p.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := p.CheckChoice(f.Given); err != nil {
		return nil, nil, fmt.Errorf("%s: given: %w", name, err)
	}
	return p, f.Given, nil
}

// File is the problem as [Read] reads it, with its choice; costs are rounded to nanoseconds.
func (n *Network) File(name string) ([]byte, error) {
	round := func(costs []float64) (list []int64) {
		for _, c := range costs {
			list = append(list, int64(math.Round(c*1e9)))
		}
		return list
	}
	f := file{Name: name, Edges: []fileEdge{}, Given: n.Given}
	for _, node := range n.Problem.Nodes {
		x := fileNode{Name: node.Name, Cost: round(node.Cost)}
		for _, l := range node.Labels {
			x.Labels = append(x.Labels, fmt.Sprintf("%v %s", l.Binding, l.Scope.Title()))
		}
		f.Nodes = append(f.Nodes, x)
	}
	for _, e := range n.Problem.Edges {
		x := fileEdge{From: e.From, To: e.To}
		for _, row := range e.Cost {
			x.Cost = append(x.Cost, round(row))
		}
		f.Edges = append(f.Edges, x)
	}
	data, err := json.Marshal(f)
	return append(data, '\n'), err
}
