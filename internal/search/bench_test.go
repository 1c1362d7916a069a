package search

import (
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/internal/pipeline"
)

// BenchmarkMoves is how long evaluations of moves take, one at a time, in schedules made by the greedy recipe: making,
// naming, lowering and simulating.
func BenchmarkMoves(b *testing.B) {
	for _, c := range []struct {
		name, recipe string
		batch        int64
	}{{"resnet50", pipeline.GreedyRecipe, 64}, {"squeezenet", pipeline.GreedyRecipe, 8}, {"vit-b16", "tiled-llb", 4}} {
		b.Run(c.name+"/"+c.recipe, func(b *testing.B) {
			net, chip, _ := greedyFor(b, c.name)
			recipe, err := pipeline.Lookup(c.recipe)
			if err != nil {
				b.Fatal(err)
			}
			made, err := Run(b.Context(), net, chip, c.batch, recipe, pipeline.Options{Chunk: 1})
			if err != nil {
				b.Fatal(err)
			}
			s := &seeker{w: pipeline.NewProblem(net, chip, made.Spec, c.batch, pipeline.Options{}),
				opt:   BestOptions{Objective: ByLatency},
				found: &Found{}, starts: map[family]startAt{}}
			w, err := s.problemOf(made.Schedule.Graph, 1)
			if err != nil {
				b.Fatal(err)
			}
			x := &searcher{seeker: s, w: w, start: startAt{Decisions: pipeline.DecisionsOf(made, false, false)},
				rng: rand.New(rand.NewPCG(1, 0))}
			if err := x.begin(b.Context()); err != nil {
				b.Fatal(err)
			}
			x.moveFrom(x.best)
			var list []candidate
			for len(list) < 64 {
				if m, ok := x.moves[x.pick()].make(x); ok {
					list = append(list, m)
				}
			}
			for i := 0; b.Loop(); i++ {
				w.Evaluate(b.Context(), list[i%len(list)].Decisions, 0)
			}
		})
	}
}
