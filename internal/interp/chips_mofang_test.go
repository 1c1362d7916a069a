package interp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/mofang/staging"
)

func init() {
	staging.Register()
	divisions = slices.Insert(divisions, 0, staging.Pipelined)
}

// Programs of stages on several chips, each with a DDR of its own, compute what their networks say. With
// DSASCHED_LONG=1 in the environment 5000 run.
func TestChips(t *testing.T) {
	recipes := recipes.All()
	done, crossed, others := 0, 0, map[string]int{}
	for i := *seed; done < long(*programs); i++ {
		r := rand.New(rand.NewPCG(i, 41))
		spec, recipe := machine(r), recipes[int(i)%len(recipes)]
		spec.Clusters, spec.LaunchSeconds = pick(r, 1, 1, 2), 1e-9
		spec.Chips = &hardware.Chips{Count: pick(r, 2, 3, 4),
			Link: hardware.Link{BandwidthBytesPerSecond: pick(r, 1e8, 1e10), LatencySeconds: pick(r, 0, 1e-6)}}
		chunk := pick(r, int64(1), 2)
		batch := chunk*pick(r, int64(1), 2) + r.Int64N(2)
		what := fmt.Sprintf("seed %d: %s, %d chips of %d clusters, batch %d, chunk %d", i, recipe.Name, spec.Chips.Count,
			spec.Clusters, batch, chunk)
		made, err := scheduler.Run(t.Context(), anyNet(r, i), spec, batch, recipe,
			scheduler.Options{Chunk: chunk, Clusters: "pipeline", Uneven: schedule.UnevenAll})
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			others["do not fit"]++
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var coarse *interp.CoarseError
		if _, err := interp.Together(made.Program, graphs(made.Plans)[0], i); errors.As(err, &coarse) {
			others[coarse.What]++
			continue
		} else if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		done++
		p := made.Program
		for j := range p.Commands {
			for _, u := range p.Commands[j].Uses {
				if p.Resources[u.Resource].Kind == isa.ToChips {
					crossed++
				}
			}
		}
	}
	if crossed < done/2 {
		t.Errorf("%d loads cross a link in %d programs", crossed, done)
	}
	t.Logf("%d programs, in which %d loads cross a link; besides %v", done, crossed, others)
}
