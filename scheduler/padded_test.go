package scheduler_test

import (
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A command takes the time of the core that has most, also where the first core has little but the border of a Pad.
func TestPaddedResults(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	busy := func(above int64) (ps int64) {
		r, err := scheduler.Run(t.Context(), built("padded", func(b *model.Builder, n int64) {
			x := b.Op("Conv", "c", model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Group: 1,
				Pads: []int64{1, 1, 1, 1}}, b.Input("x", model.F16, n, 64, 64-above, 56), b.Param("w", model.F16, 64, 64, 3, 3))
			if above > 0 {
				x = b.Op("Pad", "p", model.Attr{Pads: []int64{0, 0, above, 0, 0, 0, 0, 0}}, x)
			}
			b.Output(x)
		}), load(t, "stcp920"), 1, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Program.Commands {
			if c.Kind == isa.Matrix {
				ps += c.DurationPs
			}
		}
		return ps
	}
	for _, above := range []int64{1, 6, 7, 8} {
		if got, full := busy(above), busy(0); got < full*(64-above)/64 {
			t.Errorf("%d rows above: products take %d ps, those of all rows %d", above, got, full)
		}
	}
}
