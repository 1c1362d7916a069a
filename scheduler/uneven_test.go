package scheduler_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Left to Run, pieces are those of the fastest setting; where none differ, all settings are
// the same.
func TestFastestPieces(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		network, machine, recipe string
		batch, chunk             int64
		want                     schedule.Uneven
	}{
		{"toy-fig5", "stcp920", "cross-layer", 4, 1, schedule.UnevenAll},
		{"squeezenet", "stcp920", "cross-layer", 8, 2, schedule.UnevenAll},
		{"resnet50", "stcp920-paper", "cross-layer", 4, 1, schedule.UnevenNone},
		{"resnet50", "stcp920-paper", "exact-bind", 4, 1, schedule.UnevenNone},
	} {
		recipe, err := recipes.Lookup(c.recipe)
		if err != nil {
			t.Fatal(err)
		}
		run := func(u schedule.Uneven) *scheduler.Result {
			r, err := scheduler.Run(ctx, open(t, c.network), load(t, c.machine), c.batch, recipe,
				scheduler.Options{Chunk: c.chunk, Uneven: u})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		got := run(schedule.UnevenFastest)
		if got.Uneven != c.want {
			t.Errorf("%s on %s: %v, want %v", c.network, c.machine, got.Uneven, c.want)
		}
		if even := c.want == schedule.UnevenNone; even !=
			slices.Contains(got.Notes, "--uneven none is faster here than --uneven all") {
			t.Errorf("%s on %s: %v, but the notes are %q", c.network, c.machine, got.Uneven, got.Notes)
		}
		if recipe.Exact() {
			continue
		}
		even := run(schedule.UnevenNone)
		if got.Sim.TotalPs > even.Sim.TotalPs {
			t.Errorf("%s on %s: %d ps, but %d with even pieces", c.network, c.machine, got.Sim.TotalPs, even.Sim.TotalPs)
		}
		all := run(schedule.UnevenAll)
		if same := all.Sim.TotalPs == even.Sim.TotalPs; same == all.Schedule.Uneven() {
			t.Errorf("%s on %s: uneven pieces are %v, but with and without them the latency is %d and %d ps", c.network,
				c.machine, all.Schedule.Uneven(), all.Sim.TotalPs, even.Sim.TotalPs)
		}
	}
}
