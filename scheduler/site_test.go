package scheduler

import (
	"context"
	"math/rand/v2"
	"regexp"
	"testing"
)

// In one kernel of many blocks, a move changes an operator alone or with its counterparts in the other blocks.
func TestPlacesInOneKernel(t *testing.T) {
	net, spec, recipe := standing(t, "bert-128", "stcp920", "tiled-l1")
	w := NewProblem(net, spec, spec, 4, Options{})
	r, err := w.ByRecipe(context.Background(), recipe, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Decisions(false, true)
	if len(p.Groups()) != 1 {
		t.Fatalf("found %d groups, expected one kernel", len(p.Groups()))
	}
	a := &Site{Decisions: p, Schedule: r.Schedule, Rand: rand.New(rand.NewPCG(1, 1)),
		Same: func(k int) []int { return []int{k} }}
	g, number := r.Schedule.Graph, regexp.MustCompile(`layer[0-9]+`)
	alone, together := 0, 0
	for n, id := range p.Groups()[0].Ops {
		list := a.places(0, n)
		if len(list) == 1 {
			alone++
		} else if len(list) > 8 {
			together++
		}
		for _, other := range list {
			if number.ReplaceAllString(g.Op(other).Name, "") != number.ReplaceAllString(g.Op(id).Name, "") {
				t.Errorf("a move on %q changes %q", g.Op(id).Name, g.Op(other).Name)
			}
		}
	}
	if all := len(p.Groups()[0].Ops); alone < all/5 || together < all/3 {
		t.Errorf("of %d operators %d change alone and %d with others, expected a third and two thirds, but for those "+
			"at the ends", all, alone, together)
	}
}
