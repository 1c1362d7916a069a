package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	_ "github.com/dsasched/dsasched/scheduler/search" // for the variant best
)

// open is a graph of the family, simplified, as package network has it.
func open(f Family, operators int) network.Network {
	return network.Network{Name: f.Name, Graph: func(batch int64) (*model.Graph, error) {
		g, err := f.Graph(operators, batch)
		if err != nil {
			return nil, err
		}
		if g, _, err = simplify.Run(g); err == nil {
			g.Remember()
		}
		return g, err
	}}
}

// greedy are the recipes that search nothing.
func greedy() []scheduler.Recipe {
	var list []scheduler.Recipe
	for _, r := range append(recipes.Table(), recipes.Baselines()...) {
		if r.Pick("nest") != "ansor" {
			list = append(list, r)
		}
	}
	return list
}

// run schedules and simulates a batch of one element for each cluster.
func run(t testing.TB, f Family, operators int, r scheduler.Recipe) *scheduler.Result {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduler.Run(context.Background(), open(f, operators), spec, int64(spec.Clusters), r,
		scheduler.Options{Chunk: 1, Figures: true})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestFamilies(t *testing.T) {
	for _, f := range Families() {
		for _, n := range []int{1, 50, 300} {
			g, err := f.Graph(n, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(g.Ops) < n || len(g.Ops) > n+100 || len(g.Outputs) != 1 {
				t.Errorf("%s: %d operators and %d outputs, want %d and 1", f.Name, len(g.Ops), len(g.Outputs), n)
			}
		}
		for _, r := range greedy() {
			made := run(t, f, 100, r)
			// Nothing is faster than its products on all units.
			if least := float64(4*made.Schedule.Graph.MACs()) / made.Program.PeakMACsPerSecond; made.LatencySeconds() < least {
				t.Errorf("%s by %s takes %g s, less than its products, %g s", f.Name, r.Name, made.LatencySeconds(), least)
			}
		}
	}
}

// An interrupt is answered by whatever recipe.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes.Known() {
		if _, err := scheduler.Run(ctx, open(Families()[0], 3000), spec, int64(spec.Clusters), r,
			scheduler.Options{Chunk: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: found error %v, expected %v", r.Name, err, context.Canceled)
		}
	}
}

// BenchmarkGrowth schedules and simulates each family at several sizes by each greedy recipe and by the default.
// slope is that of the time of processors against the operators from one size to the next, on logarithmic
// scales: 1 if it grows as they do. Select with -bench 'Growth/^transformer$/^cross-layer$'.
func BenchmarkGrowth(b *testing.B) {
	for _, f := range Families() {
		b.Run(f.Name, func(b *testing.B) {
			usual, err := recipes.Lookup(recipes.Default)
			if err != nil {
				b.Fatal(err)
			}
			for _, r := range append(greedy(), usual) {
				b.Run(r.Name, func(b *testing.B) {
					before, size := 0.0, 0.0
					for _, n := range []int{1_000, 3_000, 10_000, 30_000, 100_000} {
						b.Run(fmt.Sprint(n), func(b *testing.B) {
							start := used(b)
							for b.Loop() {
								run(b, f, n, r)
							}
							took := (used(b) - start) / float64(b.N)
							b.ReportMetric(took, "cpu-s/op")
							if before > 0 {
								b.ReportMetric(math.Log(took/before)/math.Log(float64(n)/size), "slope")
							}
							before, size = took, float64(n)
						})
					}
				})
			}
		})
	}
}
