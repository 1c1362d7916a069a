package ansor

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/model/schedule"
)

// A Rule is a caller's own rule of derivation, beside those of the paper's Table 1 (§4.1: users can register rules).
type Rule struct {
	Name string
	// Sketches returns the forms of a layer, of those that the rules before it have left: more, fewer or others. What
	// cannot run is never measured.
	Sketches func(t *Task, layer int, of []Sketch) []Sketch
}

// A Mutation is a caller's own step of the search. Apply changes a nest, of which slices must be replaced and not
// written into; what comes out is brought into its one form, and left out if it cannot run. Steps are drawn by their
// weights: those that are built in have 100 together.
type Mutation struct {
	Name   string
	Weight int
	Apply  func(r *rand.Rand, n *schedule.Nest)
}

// own is the task with a space of the options' own: a template's, with rules and mutations of the caller.
func (o *Options) own(t *Task) (*Task, error) {
	if !o.Limited && len(o.Rules) == 0 && len(o.Mutations) == 0 {
		return t, nil
	}
	own := *t
	own.space = nil
	for i, sp := range t.space {
		if o.Limited {
			sp = sp.limit()
		} else {
			copied := *sp
			sp = &copied
		}
		for _, rule := range o.Rules {
			if sp.sketches = rule.Sketches(t, i, slices.Clone(sp.sketches)); len(sp.sketches) == 0 {
				return nil, fmt.Errorf("rule %q: found no sketch of layer %s, expected one at least", rule.Name, t.Layer(i))
			}
			for _, s := range sp.sketches {
				if s.Vector < schedule.AtPiece || s.Store > schedule.AtTile || s.Store < s.Vector {
					return nil,
						fmt.Errorf(
							"rule %q: found vector work at %d and stores at %d for layer %s, expected places of %d to %d, stores no further in",
							rule.Name, s.Vector, s.Store, t.Layer(i), schedule.AtPiece, schedule.AtTile)
				}
			}
		}
		for _, m := range o.Mutations {
			if m.Weight < 1 || m.Apply == nil {
				return nil, fmt.Errorf("mutation %q: found weight %d, expected at least 1 and what it applies", m.Name, m.Weight)
			}
			sp.own = append(slices.Clip(sp.own),
				mutation{m.Name, m.Weight, func(_ *space, r *rand.Rand, n *schedule.Nest) { m.Apply(r, n) }})
		}
		own.space = append(own.space, sp)
	}
	return &own, nil
}
