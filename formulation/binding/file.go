package binding

import (
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/internal/strict"
)

// A File is a problem as JSON: costs are whole numbers, so that sums are exact, and labels are words.
type File struct {
	Name  string     `json:"name"`
	Nodes []fileNode `json:"nodes" most:"100000"`
	Edges []fileEdge `json:"edges" most:"1000000"`
	Given []int      `json:"given" most:"100000"`
}

type fileNode struct {
	Name   string        `json:"name"`
	Labels []string      `json:"labels" most:"100000"`
	Cost   []strict.Cost `json:"cost" most:"100000"`
}

type fileEdge struct {
	From int             `json:"from"`
	To   int             `json:"to"`
	Cost [][]strict.Cost `json:"cost" most:"100000"`
}

// Read reads a problem, and the choice that is given with it for comparison. Costs are in the file's unit, of which
// all are whole numbers. Errors are of type [*strict.InputError].
func Read(name string, data []byte) (p *Problem, given []int, err error) {
	var f File
	if err := strict.Decode(name, data, &f); err != nil {
		return nil, nil, err
	}
	return f.Problem(name)
}

// Problem is the problem of a file of that name, with the choice that is given.
func (f *File) Problem(name string) (p *Problem, given []int, err error) {
	p = &Problem{}
	for i, n := range f.Nodes {
		if len(n.Labels) != len(n.Cost) {
			return nil, nil, strict.Error(name, fmt.Sprintf("nodes[%d].labels", i), fmt.Sprint(len(n.Labels)),
				fmt.Sprintf("%d, one for each cost", len(n.Cost)))
		}
		p.Nodes = append(p.Nodes, Node{Name: n.Name, Labels: make([]Label, len(n.Labels)), Cost: strict.Floats(n.Cost)})
	}
	for _, e := range f.Edges {
		edge := Edge{From: e.From, To: e.To}
		for _, row := range e.Cost {
			edge.Cost = append(edge.Cost, strict.Floats(row))
		}
		p.Edges = append(p.Edges, edge)
	}
	return strict.Posed(name, p, f.Given)
}

// File is the problem as [Read] reads it, with its choice; costs are rounded to nanoseconds.
func (n *Network) File(name string) ([]byte, error) {
	data, err := json.Marshal(n.Problem.File(name, n.Given))
	return append(data, '\n'), err
}

// File is a problem in seconds as a file, with a choice; costs are rounded to nanoseconds.
func (p *Problem) File(name string, given []int) File {
	f := File{Name: name, Edges: []fileEdge{}, Given: given}
	for _, node := range p.Nodes {
		x := fileNode{Name: node.Name, Cost: strict.Rounded(node.Cost)}
		for _, l := range node.Labels {
			x.Labels = append(x.Labels, fmt.Sprintf("%v %s", l.Binding, l.Scope))
		}
		f.Nodes = append(f.Nodes, x)
	}
	for _, e := range p.Edges {
		x := fileEdge{From: e.From, To: e.To}
		for _, row := range e.Cost {
			x.Cost = append(x.Cost, strict.Rounded(row))
		}
		f.Edges = append(f.Edges, x)
	}
	return f
}
