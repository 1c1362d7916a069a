package interp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/kinds"
)

func init() { kinds.Register() }

// Layers side by side on clusters of different kinds of core compute what their networks say, their files give the same
// time, and none is faster than the bound on any division. With DSASCHED_LONG=1 in the environment 5000 run.
func TestKindsTogether(t *testing.T) {
	ctx, recipes := t.Context(), recipes.All()
	done, passed, several, closest, others := 0, 0, 0, 0.0, map[string]int{}
	for i := *seed; done < long(*programs/2); i++ {
		r := rand.New(rand.NewPCG(i, 43))
		spec, recipe := anyKinds(r, anyMachine(r)), recipes[int(i)%len(recipes)]
		spec.Clusters, spec.LaunchSeconds = pick(r, 1, 1, 2), 1e-9
		if r.IntN(4) > 0 { // results pass soon
			spec.DDR.BandwidthBytesPerSecond *= 1000
			spec.DDR.LatencySeconds, spec.DDRLink = 0, hardware.Link{InFlight: spec.DDRLink.InFlight}
		}
		src, chunk := anyNet(r, i), pick(r, int64(1), 2)
		batch := chunk*pick(r, int64(1), 2) + r.Int64N(2)
		what := fmt.Sprintf("seed %d: %s, %d clusters of %d kinds, batch %d, chunk %d", i, recipe.Name, spec.Clusters,
			len(spec.CoreTypes), batch, chunk)
		recipe, err := recipe.Replace(scheduler.Options{},
			scheduler.Pick{Stage: "kinds", Strategy: pick(r, "greedy", "search")})
		if err != nil {
			t.Fatal(err)
		}
		made, err := scheduler.Run(ctx, src, spec, batch, recipe,
			scheduler.Options{Chunk: chunk, Clusters: "kinds", Uneven: schedule.UnevenAll})
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			others["do not fit"]++
			continue
		} else if err != nil && strings.Contains(err.Error(), "cores of several kinds, expected one") {
			others["exact bindings"]++
			continue
		} else if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		done++
		busy, passes, p := map[int32]bool{}, false, made.Program
		for j := range p.Commands {
			cluster := p.Queues[p.Commands[j].Queue].Cluster
			if p.Commands[j].Kind.IsCompute() {
				busy[cluster] = true
			}
			for _, d := range p.Commands[j].Deps {
				passes = passes || p.Queues[p.Commands[d].Queue].Cluster != cluster
			}
		}
		if len(busy) > 1 {
			several++
		}
		if passes {
			passed++
		}
		var coarse *interp.CoarseError
		if _, err := interp.Together(made.Program, graphs(made.Plans)[0], i); errors.As(err, &coarse) {
			others[coarse.What]++
		} else if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		restored(ctx, t, what, made, spec)
		least, err := bound.AnyDivision(ctx, src, spec, batch)
		if err != nil {
			others[err.Error()]++
			continue
		}
		if closest = max(closest, least/made.LatencySeconds()); least > made.LatencySeconds() {
			t.Errorf("%s: simulated in %g s, the bound is %g s", what, made.LatencySeconds(), least)
		}
	}
	if several < done/4 || passed < done/4 || closest < 0.3 {
		t.Errorf("%d programs on several kinds, %d pass results, of %d; bounds are at most %.3g of the time", several,
			passed, done, closest)
	}
	t.Logf("%d programs, %d on several kinds, %d pass results; bounds are at most %.3g of the time; besides %v", done,
		several, passed, closest, others)
}
