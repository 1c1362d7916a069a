package interp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// turned is a product whose results are turned by their position, as a decoder's queries, of random extents.
func turned(r *rand.Rand) network.Network {
	tokens, heads, half := 1+r.Int64N(12), 1+r.Int64N(4), 1+r.Int64N(6)
	return network.Network{Name: "turned", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("turned")
		x := b.Op("MatMul", "query", model.Attr{}, b.Input("x", model.F16, batch, tokens, 8),
			b.Param("w", model.F16, 8, heads*2*half))
		x = b.Op("Reshape", "heads", model.Attr{Shape: []int64{batch, tokens, heads, 2 * half}}, x)
		x = b.Op("Transpose", "transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, x)
		h := b.OpN("Split", "split", model.Attr{Axis: 3, Splits: []int64{half, half}}, x)
		y := b.Op("Concat", "turned", model.Attr{Axis: 3}, b.Op("Neg", "neg", model.Attr{}, h[1]), h[0])
		y = b.Op("Mul", "sin", model.Attr{}, y, b.Param("sines", model.F16, tokens, 2*half))
		b.Output(b.Op("Add", "rotary", model.Attr{},
			b.Op("Mul", "cos", model.Attr{}, x, b.Param("cosines", model.F16, tokens, 2*half)), y))
		return b.Build()
	}}
}

// Light operators whose paths part and meet are one layer of variant tiled-llb, and compute what the graph says.
func TestMeetingPaths(t *testing.T) {
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 12))
		spec := machine(r)
		made, err := scheduler.Run(context.Background(), turned(r), spec, int64(spec.Clusters), recipe,
			scheduler.Options{Chunk: 1})
		if err != nil {
			continue
		}
		if n := len(made.Plans[0][0].Schedule.Layers[0]); n != 2 {
			t.Errorf("seed %d: %d layers, expected the product and what turns its results", seed, n)
		}
		if err := sim.CheckBuffers(made.Program, simulated(t, made.Program)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, err = interp.Run(made.Program, graphs(made.Plans), seed)
		if coarse := (*interp.CoarseError)(nil); errors.As(err, &coarse) {
			continue
		} else if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ran++
	}
	if ran < 30 {
		t.Errorf("%d programs ran, expected 30", ran)
	}
}
