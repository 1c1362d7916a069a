package kernels

import (
	"fmt"

	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
)

// Explanation says where an operator has gone, and why its data go where they go.
type Explanation struct {
	Operator string     `json:"operator"`
	Kind     model.Kind `json:"kind"`
	// Kernels lists the kernels that compute it, with its group in each.
	Kernels []Place       `json:"kernels"`
	Links   []fusion.Link `json:"links"` // within kernels, that it is an end of
	Cuts    []fusion.Cut  `json:"cuts"`  // between kernels
}

// Place is a kernel that computes an operator.
type Place struct {
	Kernel   int    `json:"kernel"`
	Library  bool   `json:"library"`
	Group    int    `json:"group"`
	Dominant string `json:"dominant"`
	Phase    int    `json:"phase"`
	// Again is set where other kernels compute the result, too.
	Again bool `json:"computed_again"`
}

// Explain finds an operator by its name.
func Explain(p *fusion.Plan, name string) (*Explanation, error) {
	var names []string
	id := model.NoOp
	for _, op := range p.Graph.Ops {
		if names = append(names, op.Name); op.Name == name {
			id = op.ID
		}
	}
	if id == model.NoOp {
		return nil, fmt.Errorf("%s has no operator %q%s", p.Network, name, suggest.Hint(name, names))
	}
	e := &Explanation{Operator: name, Kind: p.Graph.Op(id).Kind, Kernels: []Place{}, Links: []fusion.Link{},
		Cuts: []fusion.Cut{}}
	for i, k := range p.Kernels {
		for j, gr := range k.Groups {
			for _, o := range gr.Ops {
				if o == id {
					e.Kernels = append(e.Kernels, Place{Kernel: i, Library: k.Library, Group: j, Dominant: gr.DominantName,
						Phase: gr.Phase})
				}
			}
		}
		for _, l := range k.Links {
			if l.From == id || l.To == id {
				e.Links = append(e.Links, l)
			}
		}
	}
	for i := range e.Kernels {
		e.Kernels[i].Again = len(e.Kernels) > 1
	}
	for _, c := range p.Cuts {
		if c.From == id || c.To == id {
			e.Cuts = append(e.Cuts, c)
		}
	}
	return e, nil
}
