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
	Atoms []int  `json:"atoms" most:"100000"`
	Cost  int64  `json:"cost"`
	Split string `json:"split,omitempty"` // for readers
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
	p = &Problem{Reads: f.Reads}
	for k, g := range f.Groups {
		if g.Cost < 0 || g.Cost > maxCost {
			return nil, nil, strict.Error(name, fmt.Sprintf("groups[%d].cost", k), fmt.Sprint(g.Cost), fmt.Sprintf("0 to %d",
				int64(maxCost)))
		}
		p.Groups = append(p.Groups, Group{g.Atoms, float64(g.Cost)})
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
	f := file{Name: name, Given: n.Given}
	for _, reads := range n.Problem.Reads {
		f.Reads = append(f.Reads, append([]int{}, reads...))
	}
	for k, g := range n.Problem.Groups {
		x := fileGroup{Atoms: g.Atoms, Cost: int64(math.Round(g.Seconds * 1e9))}
		if s := n.Splits[k]; s.Factor > 1 {
			x.Split = fmt.Sprintf("%d along %v", s.Factor, s.Dim)
		}
		f.Groups = append(f.Groups, x)
	}
	data, err := json.Marshal(f)
	return append(data, '\n'), err
}
