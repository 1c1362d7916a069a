package layering

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/internal/strict"
)

// checkProof tries every constraint of the dual program on the potentials of an
// exact answer, and that layers take as long as the potential of all operators says.
func (p *Problem) checkProof(r *Result) error {
	const slack = 1e-9
	bad := func(where, found, want string) error { return strict.Error(p.Name, where, found, want) }
	all := uint64(1)<<len(p.After) - 1
	if len(p.After) == maxOperators {
		all = math.MaxUint64
	}
	if r.Potentials[0] != 0 {
		return bad("potential of no operator", fmt.Sprint(r.Potentials[0]), "0")
	}
	if s := p.Seconds(r.Layers); math.Abs(s-r.Potentials[all]) > slack*max(1, s) {
		return bad("layers", fmt.Sprintf("%v s", s), fmt.Sprintf("%v s", r.Potentials[all]))
	}
	sets := p.downClosed(context.Background(), math.MaxInt)
	if len(sets) != len(r.Potentials) {
		return bad("potentials", fmt.Sprint(len(r.Potentials)), fmt.Sprint(len(sets)))
	}
	for _, w := range sets {
		for _, u := range sets {
			if u == w || u&^w != 0 {
				continue
			}
			if d := r.Potentials[w] - r.Potentials[u]; d > p.Price(members(w&^u))*(1+slack) {
				return bad(fmt.Sprintf("layer %v after %v", members(w&^u), members(u)), fmt.Sprintf("%v s of potential", d),
					"at most its price")
			}
		}
	}
	return p.Check(r.Layers)
}
