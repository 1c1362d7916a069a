package scheduler_test

import (
	"context"
	"maps"
	"reflect"
	"testing"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// The variants with exact decisions pass all checks, do the same arithmetic, and
// their order never moves more than Algorithm 3's.
func TestExactVariants(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"squeezenet", "toy-fig3"} {
		src, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		base, err := recipes.Lookup("cross-layer")
		if err != nil {
			t.Fatal(err)
		}
		want, err := scheduler.Run(context.Background(), src, spec, 32, base, scheduler.Options{Chunk: 8})
		if err != nil {
			t.Fatal(err)
		}
		inTiles, err := base.Replace(scheduler.Options{}, scheduler.Pick{Stage: "group", Strategy: "alg2-layers"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := scheduler.Run(context.Background(), src, spec, 32, inTiles, scheduler.Options{Chunk: 8})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range recipes.Exact() {
			got, err := scheduler.Run(context.Background(), src, spec, 32, v, scheduler.Options{Chunk: 8})
			if err != nil {
				t.Errorf("%s, %s: %v", name, v.Name, err)
				continue
			}
			if got.Sim.MACs != want.Sim.MACs {
				t.Errorf("%s, %s: %d MACs, want %d", name, v.Name, got.Sim.MACs, want.Sim.MACs)
			}
			if v.Pick("split") == "search" && got.Sim.TotalPs > text.Sim.TotalPs { // whose groups it lists
				t.Errorf("%s, %s takes %d ps, greedy groups of layers in tiles %d", name, v.Name, got.Sim.TotalPs,
					text.Sim.TotalPs)
			}
			if len(v.Fallback) > 0 {
				if got.Sim.TotalPs > want.Sim.TotalPs {
					t.Errorf("%s, %s takes %d ps, the greedy recipe that it falls back to %d", name, v.Name, got.Sim.TotalPs,
						want.Sim.TotalPs)
				}
			}
			if len(v.Fallback) > 0 || name != "toy-fig3" {
				continue // parts of a fallback were run twice; one network shows that runs are alike
			}
			again, err := scheduler.Run(context.Background(), src, spec, 32, v, scheduler.Options{Chunk: 8})
			if err != nil || again.Sim.TotalPs != got.Sim.TotalPs {
				t.Errorf("%s, %s: the second run takes %d ps, the first %d (%v)", name, v.Name, again.Sim.TotalPs, got.Sim.TotalPs,
					err)
			}
		}
		p, _, err := exact.OrderProblem(want.Schedule, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		best, err := recipes.Lookup("exact-order")
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(context.Background(), src, spec, 32, best, scheduler.Options{Chunk: 8})
		if err != nil {
			t.Fatal(err)
		}
		cost := func(order []int) float64 {
			f, err := ordering.Fixed("fixed", ordering.NewGraph(p), order, ordering.Traffic)
			if err != nil {
				t.Fatal(err)
			}
			return f.Cost
		}
		least := cost(r.Schedule.Order)
		if a, exact := r.Solved("order"); !exact || a.Status != milp.Optimal || a.Objective != least || a.Bound != least {
			t.Errorf("%s: the exact order says %+v (%v), want optimal at %g bytes", name, a, exact, least)
		}
		if a, exact := want.Solved("order"); exact {
			t.Errorf("%s: the greedy order says %+v", name, a)
		}
		for _, m := range ordering.Rules() {
			order, err := ordering.Order(ordering.NewGraph(p), m)
			if err != nil {
				t.Fatal(err)
			}
			if c := cost(order); c < least {
				t.Errorf("%s: %s moves %g bytes, the exact order %g", name, m, c, least)
			}
		}
	}
}

func searched(t *testing.T, name string) scheduler.Recipe {
	t.Helper()
	r, err := recipes.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Recipes that pose the same problem share its answer: what a recipe finds as another's fallback
// is what it finds by itself.
func TestSharedSplits(t *testing.T) {
	machine, net, opt := load(t, "stcp920"), open(t, "squeezenet"), scheduler.Options{Chunk: 8}
	alone, err := scheduler.Run(t.Context(), net, machine, 64, searched(t, "exact-split"), opt)
	if err != nil {
		t.Fatal(err)
	}
	slower, err := searched(t, "exact-split").Replace(opt, scheduler.Pick{Stage: "issue", Strategy: "in-order"},
		scheduler.Pick{Stage: "prefetch", Strategy: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	slower.Fallback = []string{"exact-split"}
	shared, err := scheduler.Run(t.Context(), net, machine, 64, slower, opt)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(shared.Schedule.Grouping, alone.Schedule.Grouping) || shared.Sim.TotalPs != alone.Sim.TotalPs ||
		len(shared.Notes) == 0 {
		t.Errorf("%d ps as a fallback, %d ps alone (%v)", shared.Sim.TotalPs, alone.Sim.TotalPs, shared.Notes)
	}
}

// Calls with shared options explore paths once, and decide what each decides by itself.
func TestSharedExploration(t *testing.T) {
	spec, src := load(t, "stcp920"), open(t, "toy-fig3")
	machine, err := scheduler.LevelAuto.Machine(spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := src.Graph(8)
	if err != nil {
		t.Fatal(err)
	}
	shared := scheduler.Options{}
	shared.Share()
	var made [3]*scheduler.Draft // the third finds what the second has explored
	for i, opt := range []scheduler.Options{{}, shared, shared} {
		if made[i], err = searched(t, "exact-split").Draft(t.Context(), g, machine, opt); err != nil {
			t.Fatal(err)
		}
	}
	alone, _ := made[0].Answer("split")
	for _, m := range made[1:] {
		again, _ := m.Answer("split")
		if !reflect.DeepEqual(made[0].Grouping, m.Grouping) || !reflect.DeepEqual(alone, again) {
			t.Errorf("%+v with shared options, %+v alone", again, alone)
		}
	}
}

// However many recipes are tried, a network is read once for each number of batch elements.
func TestNetworkIsReadOnce(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := recipes.Lookup("exact-all")
	if err != nil {
		t.Fatal(err)
	}
	read := map[int64]int{}
	counted := net
	counted.Graph = func(batch int64) (*model.Graph, error) {
		read[batch]++
		return net.Graph(batch)
	}
	if _, err := scheduler.Run(context.Background(), counted, spec, 10, r, scheduler.Options{Chunk: 2}); err != nil {
		t.Fatal(err)
	}
	if want := map[int64]int{1: 1, 2: 1}; !maps.Equal(read, want) {
		t.Errorf("the network was read as often as %v by batch, expected %v", read, want)
	}
}
