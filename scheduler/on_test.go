package scheduler_test

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Simulating again with other constants gives what making all decisions anew gives:
// no decision looks at them.
func TestOnIsRun(t *testing.T) {
	spec := load(t, "stcp920").Clone()
	spec.LaunchSeconds = 33e-6
	spec.DDRActivationEfficiency = 0.6
	spec.CoreTypes[0].Units[0].BlockCycles = 17
	for _, c := range []struct {
		network, variant string
		batch, chunk     int64
	}{{"resnet18", "tvm", 16, 2}, {"resnet18", "cross-layer", 32, 8}, {"mobilenetv2", "astitch", 16, 2},
		{"bert-128", "cross-layer", 16, 2}} {
		v, err := recipes.Lookup(c.variant)
		if err != nil {
			t.Fatal(err)
		}
		first := run(t, c.network, "stcp920", c.batch, c.chunk, c.variant)
		prepared, err := v.Prepare(context.Background(), open(t, c.network), load(t, "stcp920"), c.batch,
			scheduler.Options{Chunk: c.chunk})
		if err != nil {
			t.Fatal(err)
		}
		if simulated, err := prepared.On(context.Background(), load(t, "stcp920")); err != nil ||
			simulated.Sim.TotalPs != first.Sim.TotalPs {
			t.Errorf("%s, %s: what was prepared runs otherwise (%v)", c.network, c.variant, err)
		}
		want, err := scheduler.Run(context.Background(), open(t, c.network), spec, c.batch, v,
			scheduler.Options{Chunk: c.chunk})
		if err != nil {
			t.Fatal(err)
		}
		got, err := first.On(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got.Sim.TotalPs != want.Sim.TotalPs || got.Spec.LaunchSeconds != spec.LaunchSeconds {
			t.Errorf("%s, %s: %d ps, want %d", c.network, c.variant, got.Sim.TotalPs, want.Sim.TotalPs)
		}
		if latency, err := first.LatencyOn(context.Background(), spec); err != nil || latency != got.LatencySeconds() {
			t.Errorf("%s, %s: %g s alone, want %g (%v)", c.network, c.variant, latency, got.LatencySeconds(), err)
		}
		if got.Sim.TotalPs <= first.Sim.TotalPs {
			t.Errorf("%s, %s: not slower with a slower machine", c.network, c.variant)
		}
	}
}

func TestPrepareChecksTheChunk(t *testing.T) {
	v, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []int64{-1, 0, 3} {
		if _, err := v.Prepare(context.Background(), open(t, "resnet18"), load(t, "stcp920"), 8,
			scheduler.Options{Chunk: chunk}); err == nil {
			t.Errorf("chunk %d of 2 is taken", chunk)
		}
	}
}
