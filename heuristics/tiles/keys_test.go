package tiles_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/heuristics/tiles"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/tests/benchmarks"
)

// Steps for whose tiles one choice is made take the same time alone, whatever kinds of core run them.
func TestEqualKeysEqualTimes(t *testing.T) {
	choices := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		spec, err := benchmarks.MixedMachine(r)
		if err != nil {
			t.Fatal(err)
		}
		g, err := benchmarks.MixedGraph(r)
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := recipes.Lookup([]string{"l1", "tiled-llb", "cross-layer"}[r.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		recipe = recipe.Picking(scheduler.Pick{Stage: "nest", Strategy: "rules"})
		took := map[string]int64{}
		for range 6 {
			own := scheduler.Strategy{Name: "any", Decide: func(_ context.Context, d *scheduler.Draft) error {
				d.LayerKinds = make([][]int, len(d.Layers))
				for k, layers := range d.Layers {
					for l := range layers {
						seconds, err := d.KindSeconds(k, l)
						if err != nil {
							return err
						}
						kind := r.IntN(len(seconds))
						if math.IsInf(seconds[kind], 1) {
							kind = slices.Index(seconds, slices.Min(seconds))
						}
						d.LayerKinds[k] = append(d.LayerKinds[k], kind)
					}
				}
				return nil
			}}
			d, err := scheduler.MakeDraft(t.Context(), g, spec, recipe.With("kinds", own), scheduler.Options{Chunk: 1})
			if scheduler.TooLarge(err) {
				continue
			} else if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			keys, err := tiles.Keys(d)
			if err != nil {
				t.Fatal(err)
			}
			for i, key := range keys {
				if key == "" {
					continue
				}
				ps, err := d.StepAlone(t.Context(), i, math.MaxInt64)
				if err != nil {
					t.Fatal(err)
				}
				if was, known := took[key]; known && was != ps {
					t.Errorf("seed %d, step %d: steps of one key take %d and %d ps", seed, i, was, ps)
				} else if known {
					choices++
				}
				took[key] = ps
			}
		}
	}
	if choices < 50 {
		t.Errorf("%d choices of tiles: these say nothing", choices)
	}
	t.Logf("%d choices of tiles", choices)
}
