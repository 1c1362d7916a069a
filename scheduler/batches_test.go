package scheduler

import (
	"context"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
)

// Batches in a row end when the whole program says, but for the last, which is not simulated to its end.
func TestBatchEnds(t *testing.T) {
	ctx := context.Background()
	net, machine, _ := greedyOn(t, "gpt2-prefill")
	recipe, err := Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	r, err := recipe.Prepare(ctx, net, machine, 1, Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	const batches = 4
	for _, fresh := range []bool{false, true} {
		got, err := r.batchEnds(ctx, batches, fresh)
		if err != nil {
			t.Fatal(err)
		}
		plans := slices.Clone(r.Plans)
		for k, plan := range plans {
			if len(plan) > 0 {
				plans[k] = []lower.Segment{{Schedule: plan[0].Schedule, Iterations: batches}}
			}
		}
		opt := r.Lower
		opt.Batches, opt.Fresh = batches, fresh
		p, alike, err := lower.Outline("", r.Spec, plans, opt)
		if err != nil {
			t.Fatal(err)
		}
		ends, err := sim.Ends(ctx, p, alike)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]int64, batches)
		for i := range p.Commands {
			at := &want[p.Commands[i].Iteration]
			*at = max(*at, ends[i])
		}
		if last := batches - 1; !slices.Equal(got[:last], want[:last]) || got[last] >= want[last] {
			t.Errorf("fresh %v: batches end at %d, expected %d and the last not simulated", fresh, got, want)
		}
	}
}
