package ansor_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
)

// Cores share a reduction where the output has fewer blocks of the matrix unit (64 x 32) than
// there are cores (8), by divisors that leave each of them a block of a product with constant
// weights; then as many parts as the cores allow.
func TestRfactorDerivation(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	type product struct {
		rows, reduction, columns int64
		activations              bool // no constant weights
	}
	for p, want := range map[product][]int64{
		{1, 1024, 64, false}:  {2, 4, 8},
		{1, 1024, 256, false}: nil, // 8 blocks
		{2, 1024, 96, false}:  {2, 4, 8},
		{8, 1024, 8, false}:   nil,
		{1, 384, 32, false}:   {2, 3, 4, 6},
		{1, 120, 32, false}:   nil, // less than a block each
		{1, 509, 32, false}:   nil, // prime
		{1, 1024, 64, true}:   nil,
	} {
		net := network.Network{Name: "product", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("product")
			x := b.Input("x", model.F16, batch, p.rows, p.reduction)
			if p.activations {
				b.Output(b.Op("MatMul", "y", model.Attr{}, x, b.Input("w", model.F16, batch, p.reduction, p.columns)))
			} else {
				b.Output(b.Op("MatMul", "y", model.Attr{}, x, b.Param("w", model.F16, p.reduction, p.columns)))
			}
			return b.Build()
		}}
		made, err := scheduler.Run(t.Context(), net, spec, int64(spec.Clusters), recipe, scheduler.Options{Chunk: 1})
		if err != nil {
			t.Fatal(err)
		}
		task := tasks(t, made)[0]
		_, derivations := task.Sketches(0)
		if derived := slices.ContainsFunc(derivations,
			func(d ansor.Derivation) bool { return d.Rule == "rfactor" }); derived != (want != nil) {
			t.Errorf("%+v: rfactor is derived: %v", p, derived)
		}
		r := rand.New(rand.NewPCG(1, 1))
		found := map[int64]int64{} // most cores with each factor
		for range 2000 {
			n := task.Random(r)[0]
			if n.Rfactor > 0 {
				found[n.Rfactor] = max(found[n.Rfactor], n.Rfactor*n.Cores.Cores())
			}
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("%+v: factors %v, want %v", p, got, want)
		}
		for f, cores := range found {
			if most := 8 / f * f; cores > 8 || cores < most && p.columns >= 32*most/f {
				t.Errorf("%+v: by %d on up to %d cores, want %d", p, f, cores, most)
			}
		}
	}
}
