package scheduler_test

import (
	"context"
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// With a gap between layers, the layers of a kernel come one after the other, and the time grows by it for each.
func TestGapBetweenLayers(t *testing.T) {
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	const gap = 1e-3
	chip = chip.Clone()
	starts := 0 // of the matrix unit, where they are longer than gaps
	latency := func() (seconds float64, barriers int) {
		t.Helper()
		r, err := scheduler.Run(context.Background(), net, chip, 1, recipe, scheduler.Options{Chunk: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Program.Commands {
			if c.Kind == isa.Barrier {
				barriers++
			}
			if float64(c.DurationPs) > 3*gap*1e12 {
				starts++
			}
		}
		return r.LatencySeconds(), barriers
	}
	without, none := latency()
	chip.GapSeconds = gap
	with, barriers := latency()
	if none != 0 || barriers < 5 {
		t.Fatalf("%d barriers without and %d with a gap, want none and one between any two layers", none, barriers)
	}
	if least := without + gap*float64(barriers)*0.99; with < least {
		t.Errorf("%d gaps of %g s take %g s, want at least %g", barriers, gap, with, least)
	}
	chip.MatrixStartSeconds = 4 * gap
	if more, _ := latency(); starts < 5 || math.Abs((more-with)/(4*gap*float64(starts))-1) > 0.01 {
		t.Errorf("%d starts of the matrix unit of %g s take %g s more, want as many as convolutions, and their sum",
			starts, 4*gap, more-with)
	}
}
