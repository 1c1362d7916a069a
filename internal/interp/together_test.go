package interp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

var divisions = []scheduler.Division{scheduler.Pipelined, scheduler.OverLayer}

// together schedules a random network for clusters that each have a part of it.
func together(t *testing.T, seed uint64, by scheduler.Division) (made *scheduler.Result,
	networks []*model.Graph, what string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	spec, recipes := machine(r), recipes.All()
	spec.Clusters, spec.LaunchSeconds = pick(r, 2, 3, 4), 1e-9
	recipe, chunk := recipes[int(seed)%len(recipes)], pick(r, int64(1), 2, 4)
	batch := chunk*pick(r, int64(1), 2) + r.Int64N(2)
	what = fmt.Sprintf("seed %d: %s, by %s, batch %d, chunk %d, %d clusters", seed, recipe.Name, by, batch,
		chunk, spec.Clusters)
	made, err := scheduler.Run(context.Background(), net(seed, r.IntN(2) == 0), spec, batch, recipe,
		scheduler.Options{Chunk: chunk, Clusters: by, Uneven: schedule.UnevenAll})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return made, graphs(made.Plans)[0], what
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
			scheduler.Options{Chunk: chunk, Clusters: scheduler.Pipelined, Uneven: schedule.UnevenAll})
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

// crossing lists, by command and place, the dependencies on other clusters' commands that
// nothing else implies.
func crossing(p *isa.Program) (list [][2]int) {
	cluster := func(c int32) int32 { return p.Queues[p.Commands[c].Queue].Cluster }
	for i := range p.Commands {
		for _, k := range needed(p, i) {
			if cluster(p.Commands[i].Deps[k]) != cluster(int32(i)) {
				list = append(list, [2]int{i, k})
			}
		}
	}
	return list
}

// Programs of clusters that pass results to each other compute what their networks say.
func TestTogether(t *testing.T) {
	for _, by := range divisions {
		done, passed := 0, 0
		for seed := range uint64(sample(24)) {
			made, networks, what := together(t, seed, by)
			_, err := interp.Together(made.Program, networks, seed)
			if coarse := (*interp.CoarseError)(nil); errors.As(err, &coarse) {
				continue
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			done++
			passed += len(crossing(made.Program))
		}
		if done < sample(15) || passed == 0 {
			t.Errorf("by %s: %d programs, in which %d commands wait for another cluster", by, done, passed)
		}
	}
}

// A cluster that does not wait for another's result, or a result that stays with its cluster,
// is a fault.
func TestTogetherFaults(t *testing.T) {
	for _, by := range divisions {
		waits, found := 0, 0
		for seed := range uint64(8) {
			made, networks, what := together(t, seed, by)
			p := made.Program
			if _, err := interp.Together(p, networks, seed); err != nil {
				continue
			}
			list := crossing(p)
			for _, at := range list[:min(4, len(list))] {
				c := &p.Commands[at[0]]
				deps := c.Deps
				c.Deps = append(append([]int32(nil), deps[:at[1]]...), deps[at[1]+1:]...)
				waits++
				if _, err := interp.Together(p, networks, seed); err != nil {
					found++
				}
				c.Deps = deps
			}
			if len(list) == 0 {
				continue
			}
			store := &p.Commands[p.Commands[list[0][0]].Deps[list[0][1]]]
			store.Kind, store.Bytes = isa.Barrier, 0
			store.Uses, store.Task, store.Portion = nil, 0, isa.Portion{}
			if _, err := interp.Together(p, networks, seed); err == nil {
				t.Errorf("%s: a result that is never stored is read all the same", what)
			}
		}
		if waits == 0 || 10*found < 9*waits {
			t.Errorf("by %s: of %d waits left out, %d were found", by, waits, found)
		}
		t.Logf("by %s: %d of %d", by, found, waits)
	}
}

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
		recipe, err := scheduler.Replace(recipe, scheduler.Options{},
			scheduler.Pick{Stage: "kinds", Strategy: pick(r, "greedy", "search")})
		if err != nil {
			t.Fatal(err)
		}
		made, err := scheduler.Run(ctx, src, spec, batch, recipe,
			scheduler.Options{Chunk: chunk, Clusters: scheduler.OverKinds, Uneven: schedule.UnevenAll})
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
