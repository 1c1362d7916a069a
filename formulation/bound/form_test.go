package bound_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Schedules of other forms may be faster than what bounds those in straight lines of a network's own operators, and
// not faster than what bounds all forms.
func TestAnyForm(t *testing.T) {
	for _, c := range []struct {
		machine, variant string
		net              network.Network
	}{
		// Scores never lie anywhere in one piece.
		{"stcp920", "tiled", sketched("attention", func(s *sketch) {
			q, k, v := s.Input("q", model.F16, s.batch, 8, 1024, 64), s.Input("k", model.F16, s.batch, 8, 64, 1024),
				s.Input("v", model.F16, s.batch, 8, 1024, 64)
			x := s.op("Softmax", model.Attr{Axis: 3}, s.op("MatMul", model.Attr{}, q, k))
			s.Output(s.op("MatMul", model.Attr{}, x, v))
		})},
		// A part of the scan is one layer, in which the exponentials of one tile run beside the sums of another.
		{"inferentia2", "tiled", sketched("scan", func(s *sketch) {
			x := s.Input("x", model.F16, s.batch, 512, 32, 64)
			x = s.op("CumSum", model.Attr{Axis: 1}, s.times(4, x, "Exp"))
			x = s.op("CumSum", model.Attr{Axis: 1}, s.times(4, x, "Relu"))
			s.Output(s.op("ReduceSum", model.Attr{Axes: []int64{3}}, s.times(8, x, "Relu")))
		})},
		// Both sides of the diamond run beside the product.
		{"gemmini", "tvm-fuse", sketched("diamond", func(s *sketch) {
			x := s.Input("x", model.F16, s.batch, 64, 1024)
			x = s.op("MatMul", model.Attr{}, x, s.weights(1024, 1024))
			s.Output(s.op("Add", model.Attr{}, s.times(20, x, "Tanh", "Relu"), s.times(20, x, "Gelu")))
		})},
	} {
		chip, err := scheduler.OpenMachine(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		chip = chip.Fast() // of which the bound is
		recipe, err := recipes.Lookup(c.variant)
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(t.Context(), c.net, chip, 1, recipe, scheduler.Options{Chunk: 1}) // on one cluster
		if err != nil {
			t.Fatal(err)
		}
		lines, err := bound.Cold(t.Context(), c.net, chip, 1)
		if err != nil {
			t.Fatal(err)
		}
		all, err := bound.AnyForm(t.Context(), c.net, chip, 1)
		if err != nil {
			t.Fatal(err)
		}
		if x := r.LatencySeconds(); x >= lines.Seconds || x < all.Seconds {
			t.Errorf("%s: %g s, expected less than %g s of straight lines, and at least %g s of any form", c.net.Name, x,
				lines.Seconds, all.Seconds)
		}
		if all.Seconds < .75*r.LatencySeconds() {
			t.Errorf("%s: at least %g s in any form, expected close to %g s", c.net.Name, all.Seconds, r.LatencySeconds())
		}
	}
}

// The bound of any form is close to that of lines: residuals do not join layers around a product, and what is not light
// takes nothing off the products in front of it.
func TestFormsSayMuch(t *testing.T) {
	for _, c := range []struct {
		network, chip string
		least         float64 // of the bound of lines
	}{{"vit-b16", "stcp920", .99}, {"vit-b16", "a100", .98}, {"resnet50", "a100", .99}, {"swin-t", "a100", .98}} {
		chip, err := scheduler.OpenMachine(c.chip)
		if err != nil {
			t.Fatal(err)
		}
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := bound.Cold(t.Context(), net, chip, 4)
		if err != nil {
			t.Fatal(err)
		}
		form, err := bound.AnyForm(t.Context(), net, chip, 4)
		if err != nil {
			t.Fatal(err)
		}
		if form.Seconds < c.least*lines.Seconds {
			t.Errorf("%s on %s: %g s in any form, %g s in lines, expected %g of it at least", c.network, c.chip,
				form.Seconds, lines.Seconds, c.least)
		}
	}
}

// The parts of a product's result that a Split hands to different readers need all of its weights, and a part that
// lies askew to another one counts if it is the larger.
func TestNeedsOfSeveralReaders(t *testing.T) {
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		of   func(s *sketch, x model.TensorID) []model.TensorID // a tensor of 256 rows and 768 columns
		part float64                                            // of the weights
	}{
		{"side by side", func(s *sketch, x model.TensorID) []model.TensorID {
			return []model.TensorID{s.slice(x, 0, 256, 0, 256), s.slice(x, 0, 256, 256, 768)}
		}, 1},
		{"overlapping", func(s *sketch, x model.TensorID) []model.TensorID {
			return []model.TensorID{s.slice(x, 0, 256, 0, 256), s.slice(x, 0, 256, 128, 384)}
		}, .5},
		{"askew", func(s *sketch, x model.TensorID) []model.TensorID {
			return []model.TensorID{s.slice(x, 0, 128, 0, 256), s.slice(x, 128, 256, 384, 768)}
		}, .5},
	} {
		net := sketched(c.name, func(s *sketch) {
			x := s.op("MatMul", model.Attr{}, s.Input("x", model.F16, s.batch, 256, 512), s.weights(512, 768))
			for _, y := range c.of(s, x) {
				s.Output(s.op("Relu", model.Attr{}, y))
			}
		})
		_, proof, err := bound.Prove(t.Context(), net, chip, 4)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := proof.Shares[0].WeightBytes, c.part*512*768*2; got != want {
			t.Errorf("%s: %g bytes of weights, expected %g", c.name, got, want)
		}
	}
}

// slice is some rows and columns of each batch element.
func (s *sketch) slice(x model.TensorID, top, bottom, left, right int64) model.TensorID {
	return s.op("Slice", model.Attr{Starts: []int64{0, top, left}, Steps: []int64{1, 1, 1},
		Shape: []int64{s.batch, bottom - top, right - left}}, x)
}

// Schedules of any form contain those in lines, so no term may say more of them.
func TestFormsSayLess(t *testing.T) {
	compared, alike := 0, 0
	for _, c := range []*campaign{{}, {network: shifted}, {network: late, tight: true}} {
		for seed := *from; seed < *from+uint64(20**cases); seed++ {
			_, spec, _, net, batch, err := c.draw(rand.New(rand.NewPCG(seed, 21)), seed)
			if err != nil {
				continue
			}
			if g, err := net.Graph(batch); err != nil || commands(g, spec) > 100000 {
				continue
			}
			straight, err := bound.Cold(t.Context(), net, spec, batch)
			if err != nil {
				continue
			}
			form, err := bound.AnyForm(t.Context(), net, spec, batch)
			if err != nil {
				t.Fatal(err)
			}
			if compared++; form.Seconds > straight.Seconds {
				t.Errorf("%s, seed %d: %g s (%s) for any form, %g s (%s) for lines", net.Name, seed, form.Seconds,
					form.Term, straight.Seconds, straight.Term)
			}
			if g, err := network.FuseAttention(net).Graph(1); err != nil || slices.ContainsFunc(g.Ops,
				func(op *model.Op) bool { return op.Kind == "Attention" }) {
				continue // its terms may be those of another graph
			}
			alike++
			terms := map[string]float64{}
			for _, x := range straight.Terms {
				terms[x.Name+x.Resource] = x.Seconds
			}
			for _, x := range form.Terms {
				if x.Seconds > terms[x.Name+x.Resource]*(1+1e-9) {
					t.Errorf("%s, seed %d: %s says %g s for any form, %g s for lines", net.Name, seed, x.Name,
						x.Seconds, terms[x.Name+x.Resource])
				}
			}
		}
	}
	t.Logf("%d networks, %d of them term by term", compared, alike)
	if alike < 100 {
		t.Errorf("%d networks term by term, expected 100", alike)
	}
}
