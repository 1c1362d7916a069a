package search

import (
	"fmt"
	"testing"

	"github.com/dsasched/dsasched/recipes"
)

// BenchmarkMoves is how long evaluations of moves take, one at a time, in schedules made by the greedy recipe: making,
// naming, lowering and simulating.
func BenchmarkMoves(b *testing.B) {
	for _, c := range []struct {
		name, recipe string
		batch, chunk int64
	}{{"resnet50", recipes.Greedy, 64, 16}, {"resnet50", recipes.Greedy, 64, 1},
		{"squeezenet", recipes.Greedy, 8, 1}, {"vit-b16", "tiled-llb", 4, 1}} {
		b.Run(fmt.Sprintf("%s/%s/%d", c.name, c.recipe, c.chunk), func(b *testing.B) {
			net, chip, _ := greedyFor(b, c.name)
			recipe, err := recipes.Lookup(c.recipe)
			if err != nil {
				b.Fatal(err)
			}
			x := searchFrom(b, net, chip, c.batch, recipe, c.chunk, 1)
			var list []candidate
			for len(list) < 64 {
				if m, ok := x.moves[x.pick()].make(x); ok {
					list = append(list, m)
				}
			}
			for i := 0; b.Loop(); i++ {
				x.w.Evaluate(b.Context(), list[i%len(list)].Decisions, 0)
			}
		})
	}
}
