package bound_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// oneProduct is a product and nothing else: of rows by the batch or by more, with either operand turned, with a bias.
func oneProduct(seed uint64) network.Network {
	r := rand.New(rand.NewPCG(seed, 5))
	size := func() int64 {
		return pick(r, 1+r.Int64N(8), 1+r.Int64N(80), 16*(1+r.Int64N(16)), pick(r, int64(97), 333, 512, 1000))
	}
	rows, columns, depth := pick(r, 1, 1, size()), size(), size()
	dt := pick(r, model.F16, model.F16, model.F32, model.I8)
	kind, turned, bias := r.IntN(4), r.IntN(2) == 0, r.IntN(2) == 0
	return network.Network{Name: "product", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("product")
		switch {
		case kind == 0:
			shape := []int64{depth, columns}
			if turned {
				shape = []int64{columns, depth}
			}
			in := []model.TensorID{b.Input("x", dt, batch*rows, depth), b.Param("w", dt, shape...)}
			if bias {
				in = append(in, b.Param("b", dt, columns))
			}
			b.Output(b.Op("Gemm", "product", model.Attr{TransB: turned}, in...))
		case kind == 1:
			b.Output(b.Op("MatMul", "product", model.Attr{}, b.Input("x", dt, batch, rows, depth),
				b.Param("w", dt, depth, columns)))
		default:
			b.Output(b.Op("MatMul", "product", model.Attr{}, b.Input("x", dt, batch*rows, depth),
				b.Param("w", dt, depth, columns)))
		}
		return b.Build()
	}}
}

// No schedule of one product on a hostile machine is faster than any term of the bound.
func TestProductCampaign(t *testing.T) {
	c := &campaign{t: t, network: oneProduct, closest: map[string]float64{}, others: map[string]int{}}
	c.run()
	if *cases > 10 && c.closest["one product"] < .9 {
		t.Errorf("the term comes within %.3f of a schedule, expected .9", c.closest["one product"])
	}
}

// The term is above all others where cores load copies of both operands, and near the time of the schedule in tiles.
func TestOneProduct(t *testing.T) {
	for _, x := range []struct {
		machine              string
		rows, depth, columns int64
		within               float64
	}{{"a100", 64, 64, 64, 1.03}, {"a100", 333, 1000, 777, 1.3}, {"v100", 128, 128, 128, 1.1},
		{"ascend910", 8, 768, 3072, 1.1}, {"goya", 128, 128, 128, 1.05}} {
		spec := withoutEstimates(t, x.machine)
		machine, err := scheduler.LevelAuto.Machine(spec)
		if err != nil {
			t.Fatal(err)
		}
		net := network.Network{Name: "product", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("product")
			dt := model.F16
			if x.machine == "goya" {
				dt = model.I8
			}
			b.Output(b.Op("MatMul", "product", model.Attr{}, b.Input("x", dt, batch, x.depth),
				b.Param("w", dt, x.depth, x.columns)))
			return b.Build()
		}}
		b, err := bound.Cold(t.Context(), net, machine, x.rows)
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := recipes.Lookup("tiled-llb")
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(t.Context(), net, spec, x.rows, recipe, scheduler.Options{Chunk: x.rows})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.LatencySeconds(); b.Term != "one product" || s < b.Seconds || s > x.within*b.Seconds {
			t.Errorf("%s: %g s, the bound is %g s by %s, expected one product and at most %g times as much", x.machine, s,
				b.Seconds, b.Term, x.within)
		}
	}
}

// That operands are read in turn with computing is an estimate that slows down: it lengthens schedules, not the bound.
func TestNoBoundHasEstimatesThatSlowDown(t *testing.T) {
	spec, err := hardware.Load("wormhole-n150")
	if err != nil {
		t.Fatal(err)
	}
	if spec.NeedsRaise() {
		if spec, err = hardware.Raise(spec); err != nil {
			t.Fatal(err)
		}
	}
	published := spec.Clone()
	published.CoreTypes[0].Units[0].OperandBytesPerSecond, published.CoreTypes[0].Units[0].ResultsHeld = 0, 0
	for _, batch := range []int64{1, 4096} {
		net := network.Network{Name: "product", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("product")
			w := b.Param("w", model.F16, 4096, 4096)
			b.Output(b.Op("MatMul", "y", model.Attr{}, b.Input("x", model.F16, batch, 4096), w))
			return b.Build()
		}}
		with, err := bound.Cold(t.Context(), net, spec, batch)
		if err != nil {
			t.Fatal(err)
		}
		without, err := bound.Cold(t.Context(), net, published, batch)
		if err != nil || with.Seconds != without.Seconds {
			t.Errorf("batch %d: at least %g s, %g without the estimate (%v)", batch, with.Seconds, without.Seconds, err)
		}
	}
}
