package split

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/internal/strict"
)

// file is a problem as JSON: costs are whole numbers, so that sums are exact.
type file struct {
	Name   string      `json:"name"`
	Reads  [][]int     `json:"reads" most:"100000"`
	Groups []fileGroup `json:"groups" most:"1000000"`
	Given  []int       `json:"given" most:"100000"`
}

type fileGroup struct {
	Atoms []int       `json:"atoms" most:"100000"`
	Cost  strict.Cost `json:"cost"`
	Split string      `json:"split,omitempty"` // for readers
}

// Read reads a problem, and the choice that is given with it for comparison. Costs are in the file's unit, of which
// all are whole numbers. Errors are of type [*strict.InputError].
func Read(name string, data []byte) (p *Problem, given []int, err error) {
	var f file
	if err := strict.Decode(name, data, &f); err != nil {
		return nil, nil, err
	}
	p = &Problem{Reads: f.Reads}
	for _, g := range f.Groups {
		p.Groups = append(p.Groups, Group{g.Atoms, float64(g.Cost)})
	}
	return strict.Posed(name, p, f.Given)
}

// File is the problem as [Read] reads it, with its choice; costs are rounded to nanoseconds.
func (n *Network) File(name string) ([]byte, error) {
	f := file{Name: name, Given: n.Given}
	for _, reads := range n.Problem.Reads {
		f.Reads = append(f.Reads, append([]int{}, reads...))
	}
	for k, g := range n.Problem.Groups {
		x := fileGroup{Atoms: g.Atoms, Cost: strict.Cost(math.Round(g.Seconds * 1e9))}
		if s := n.Splits[k]; s.Factor > 1 {
			x.Split = fmt.Sprintf("%d along %v", s.Factor, s.Dim)
		}
		f.Groups = append(f.Groups, x)
	}
	data, err := json.Marshal(f)
	return append(data, '\n'), err
}
