//go:build unix

package sim_test

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// userSeconds is the processor time of the process, which says more than time where others compute,
// too.
func userSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()) * 1e-9
}

// programOf lowers a network for some of the clusters of the stcp920, each with another batch.
func programOf(b *testing.B, name, variant string, clusters int) *isa.Program {
	net, err := network.Open(name, network.Options{})
	if err != nil {
		b.Fatal(err)
	}
	machine, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		b.Fatal(err)
	}
	recipe, err := recipes.Lookup(variant)
	if err != nil {
		b.Fatal(err)
	}
	plans := make([][]lower.Segment, 4)
	var made *scheduler.Result
	for k := range clusters {
		batch := int64(4 - k)
		if made, err = recipe.Prepare(b.Context(), net, machine, 4*batch, scheduler.Options{Chunk: batch}); err != nil {
			b.Fatal(err)
		}
		plans[k] = made.Plans[0]
	}
	p, err := lower.Program(name, made.Spec, plans, made.Lower)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkNetworks is the number of commands that the simulator gets through in a second of processor time:
// of whole runs, also judged, and for times only.
func BenchmarkNetworks(b *testing.B) {
	for _, name := range []string{"bert-128", "resnet50", "bert-512", "gpt2-prefill"} {
		for _, variant := range []string{"cross-layer", "tvm"} {
			for _, clusters := range []int{1, 4} {
				b.Run(fmt.Sprintf("%s/%s/%d", name, variant, clusters), func(b *testing.B) {
					p := programOf(b, name, variant, clusters)
					alike := slices.Repeat([]int{1}, p.Clusters)
					ways := map[string]func(context.Context) error{
						"run": func(ctx context.Context) error {
							_, err := sim.Run(ctx, p, sim.Options{})
							return err
						},
						"judged": func(ctx context.Context) error {
							r, err := sim.Run(ctx, p, sim.Options{})
							if err != nil {
								return err
							}
							return sim.CheckBuffers(p, r)
						},
						"times": func(ctx context.Context) error {
							_, _, err := sim.Latency(ctx, p, alike, 0)
							return err
						},
					}
					for _, way := range []string{"run", "judged", "times"} {
						b.Run(way, func(b *testing.B) {
							before := userSeconds()
							for b.Loop() {
								if err := ways[way](b.Context()); err != nil {
									b.Fatal(err)
								}
							}
							b.ReportMetric(float64(len(p.Commands)*b.N)*1e-6/(userSeconds()-before), "Mcommands/s")
						})
					}
				})
			}
		}
	}
}
