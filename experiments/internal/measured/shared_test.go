package measured

import (
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Products on a Wormhole n150 whose rows and results lie in the DRAM or in the L1s, in us, from
// morjun/tt-metal@9ac953b350:tech_reports/GEMM_FLOPS/GEMM_FLOPS.md (Apache-2.0): BF16 by two passes (HiFi2), BFP8 by
// one.
var inL1 = []struct {
	m, k, n  int64
	dtype    string
	far, own float64
}{
	{512, 1024, 1024, "bf16", 114.794, 29.254}, {512, 1024, 1024, "f8", 73.514, 20.3848},
	{1024, 1024, 1024, "bf16", 70.3573, 36.8452}, {1024, 1024, 1024, "f8", 41.3775, 23.4413},
	{1024, 2048, 2048, "bf16", 163.207, 120.201}, {1024, 2048, 2048, "f8", 91.8031, 65.9895},
	{2048, 2048, 2048, "bf16", 302.982, 218.179}, {2048, 2048, 2048, "f8", 159.378, 119.739},
	{2048, 3072, 3072, "bf16", 580.671, 499.43}, {2048, 3072, 3072, "f8", 300.071, 263.422},
	{3072, 3072, 3072, "bf16", 873.718, 768.714}, {3072, 3072, 3072, "f8", 441.165, 398.071},
}

// Where values in the L1s gain on the chip, they gain here, for 10 of 12 products at least. A product whose rows an
// operator before it makes, and whose result another reads, stands for each.
func TestValuesInL1Gain(t *testing.T) {
	right := 0
	var off sample
	for _, x := range inL1 {
		r := row{Machine: "wormhole-n150", Type: x.dtype}
		if x.dtype == "bf16" {
			r.Rate = "4"
		}
		spec, err := r.machine()
		if err != nil {
			t.Fatal(err)
		}
		dt, err := model.ParseDType(x.dtype)
		if err != nil {
			t.Fatal(err)
		}
		net := network.Network{Name: "product", Graph: func(rows int64) (*model.Graph, error) {
			b := model.NewBuilder("product")
			made := b.Op("Relu", "made", model.Attr{}, b.Input("x", dt, rows, x.k))
			y := b.Op("MatMul", "product", model.Attr{}, made, b.Param("w", dt, x.k, x.n))
			b.Output(b.Op("MatMul", "read", model.Attr{}, y, b.Param("v", dt, x.n, 64)))
			return b.Build()
		}}
		alone := func(variant string, want schedule.Level) (seconds float64) {
			recipe, err := recipes.Lookup(variant)
			if err != nil {
				t.Fatal(err)
			}
			made, err := scheduler.Run(t.Context(), net, spec, x.m, recipe, scheduler.Options{Chunk: x.m})
			if err != nil {
				t.Fatal(err)
			}
			for i := range made.Schedule.Values {
				if v := &made.Schedule.Values[i]; v.Def >= 0 && v.Level != want && !made.Schedule.Graph.IsOutput(v.Tensor) {
					t.Errorf("%s of %d x %d x %d: a value is at level %v, expected %v", variant, x.m, x.k, x.n, v.Level, want)
				}
			}
			list, err := made.Kernels(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range list {
				if k.Layer == "product" {
					seconds = k.Seconds
				}
			}
			return seconds
		}
		far, own := alone("tiled-llb", schedule.DDR), alone("tiled-l1", schedule.LB)
		gain, measured := far/own, x.far/x.own
		t.Logf("%d x %d x %d %s: %.1f and %.1f us, gain %.2f, measured %.2f", x.m, x.k, x.n, x.dtype, 1e6*far, 1e6*own, gain,
			measured)
		if gain > 1 {
			right++
		}
		off.add(gain / measured)
	}
	t.Logf("%d of %d gain, error %.2f", right, len(inL1), off.spread())
	if right < 10 {
		t.Errorf("%d of %d products gain, expected 10 at least", right, len(inL1))
	}
}
