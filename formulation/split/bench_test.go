package split_test

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Stating a network's problem, which is to price its groups, and solving it.
func BenchmarkNetworks(b *testing.B) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		b.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"resnet50", "bert-128", "conformer-s"} {
		src, err := network.Open(name, network.Options{})
		if err != nil {
			b.Fatal(err)
		}
		g, err := src.Graph(8)
		if err != nil {
			b.Fatal(err)
		}
		s, err := v.Schedule(context.Background(), g, spec, scheduler.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var n *split.Network
		b.Run(name+"/state", func(b *testing.B) {
			for range b.N {
				if n, err = exact.SplitProblem(s, scheduler.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/search", func(b *testing.B) {
			for range b.N {
				if _, err := split.Search(context.Background(), n.Problem,
					split.Options{Start: n.Given}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
