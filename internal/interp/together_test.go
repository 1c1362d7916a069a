package interp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// divisions are the divisions of a network between clusters, those of systems first.
var divisions = []scheduler.Division{scheduler.OverLayer}

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
