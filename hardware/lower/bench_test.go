package lower_test

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func BenchmarkProgram(b *testing.B) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		b.Fatal(err)
	}
	v, _ := recipes.Lookup("cross-layer")
	for _, name := range []string{"resnet50", "bert-128"} {
		b.Run(name, func(b *testing.B) {
			src, err := network.Open(name, network.Options{})
			if err != nil {
				b.Fatal(err)
			}
			r, err := scheduler.Run(context.Background(), src, spec, 64, v, scheduler.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := lower.Program(name, spec, r.Plans,
					lower.Options{Generator: schedule.Generator{KeepWeights: true, CrossLayer: true, Prefetch: true}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(r.Program.Commands)), "commands")
		})
	}
}
