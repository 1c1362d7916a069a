package bound_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// feeding is feed-forwards in a row, of all forms that are cut into slices, of few tokens of few features, with many
// hidden columns.
func feeding(seed uint64) network.Network {
	if seed%3 == 2 {
		return convolving(seed)
	}
	draws := rand.New(rand.NewPCG(seed, 9))
	features, tokens := pick(draws, int64(4), 16, 48, 100), pick(draws, int64(1), 9, 40, 128)
	var forms, widths []int
	for range 1 + draws.IntN(3) {
		forms, widths = append(forms, draws.IntN(5)), append(widths, pick(draws, 30, 64, 192, 500))
	}
	residual, norm, twice := draws.IntN(2) == 0, draws.IntN(2) == 0, draws.IntN(4) == 0
	return network.Network{Name: fmt.Sprintf("feeding-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("feeding")
		x := b.Input("x", model.F16, batch*tokens, features)
		for k, form := range forms {
			name, width, from := fmt.Sprint("ffn", k), int64(widths[k]), x
			product := func(kind string, x model.TensorID, to int64) model.TensorID {
				w := b.Param(name+"."+kind+".weight", model.F16, b.Tensor(x).Shape[1], to)
				if form%2 == 0 {
					return b.Op("MatMul", name+"."+kind, model.Attr{}, x, w)
				}
				return b.Op("Gemm", name+"."+kind, model.Attr{}, x, w, b.Param(name+"."+kind+".bias", model.F16, to))
			}
			if norm {
				x = b.Op("LayerNorm", name+".norm", model.Attr{Axis: 1}, x, b.Param(name+".scale", model.F16, features),
					b.Param(name+".shift", model.F16, features))
			}
			var y model.TensorID
			switch form {
			case 0, 1:
				y = b.Op("Gelu", name+".gelu", model.Attr{}, product("up", x, width))
			case 2: // gated
				gate := b.Op("Silu", name+".silu", model.Attr{}, product("gate", x, width))
				y = b.Op("Mul", name+".gated", model.Attr{}, gate, product("up", x, width))
			case 3: // gated by the other half
				halves := b.OpN("Split", name+".halves", model.Attr{Axis: 1, Splits: []int64{width, width}},
					product("up", x, 2*width))
				gate := b.Op("Sigmoid", name+".gate", model.Attr{}, halves[1])
				y = b.Op("Mul", name+".gated", model.Attr{}, halves[0], gate)
			case 4: // by itself
				y = product("up", x, width)
				y = b.Op("Mul", name+".swish", model.Attr{}, y, b.Op("Sigmoid", name+".sigmoid", model.Attr{}, y))
			}
			if x = product("down", y, features); residual {
				x = b.Op("Add", name+".residual", model.Attr{}, x, from)
			}
			if twice && k == 0 {
				b.Output(x)
			}
		}
		b.Output(b.Op("Relu", "end", model.Attr{}, x))
		return b.Build()
	}}
}

// convolving is pairs of convolutions in a row, with many channels between the two.
func convolving(seed uint64) network.Network {
	draws := rand.New(rand.NewPCG(seed, 10))
	channels, high, wide := pick(draws, int64(2), 16, 33), pick(draws, int64(4), 9, 20), pick(draws, int64(5), 12)
	pairs, scaled, twice := 1+draws.IntN(2), draws.IntN(2) == 0, draws.IntN(4) == 0
	var kernel, stride, hidden []int64
	for range 2 * pairs {
		kernel, stride = append(kernel, pick(draws, int64(1), 3, 3)), append(stride, pick(draws, int64(1), 1, 2))
		hidden = append(hidden, pick(draws, int64(20), 64, 200))
	}
	return network.Network{Name: fmt.Sprintf("convolving-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("convolving")
		x := b.Input("x", model.F16, batch, channels, high, wide)
		conv := func(k int, x model.TensorID, to int64) model.TensorID {
			n, pad := kernel[k], kernel[k]/2
			name := fmt.Sprint("conv", k)
			return b.Op("Conv", name, model.Attr{Strides: []int64{stride[k], stride[k]}, Dilations: []int64{1, 1},
				Pads: []int64{pad, pad, pad, pad}, Group: 1}, x,
				b.Param(name+".weight", model.F16, to, b.Tensor(x).Shape[1], n, n),
				b.Param(name+".bias", model.F16, to))
		}
		for k := range pairs {
			y := b.Op("Relu", fmt.Sprint("relu", k), model.Attr{}, conv(2*k, x, hidden[k]))
			if scaled {
				scale := b.Param(fmt.Sprint("scale", k), model.F16, hidden[k], 1, 1)
				y = b.Op("Mul", fmt.Sprint("scaled", k), model.Attr{}, y, scale)
			}
			if x = conv(2*k+1, y, channels); twice && k == 0 {
				b.Output(x)
			}
			x = b.Op("Relu", fmt.Sprint("end", k), model.Attr{}, x)
		}
		b.Output(x)
		return b.Build()
	}}
}

// No schedule of feed-forwards, in slices or not, is faster than any term of the bounds.
func TestSliceCampaign(t *testing.T) {
	c := &campaign{t: t, network: feeding, tight: true, closest: map[string]float64{}, others: map[string]int{}}
	c.run()
}

// On memories that hold little, feed-forwards run in slices, and the bound of any form holds for them.
func TestSlices(t *testing.T) {
	ctx := context.Background()
	recipe, err := recipes.Lookup("tiled-slices")
	if err != nil {
		t.Fatal(err)
	}
	sliced := 0
	for seed := range uint64(60) {
		spec, err := hardware.Load("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		net := feeding(seed)
		const batch = 1
		spec.Clusters, spec.L1.SizeBytes, spec.L1WeightBytes, spec.LLB.SizeBytes = 1, 1<<11, 1<<13, 1<<13
		r, err := scheduler.Run(ctx, net, spec, batch, recipe, scheduler.Options{})
		if err != nil {
			continue
		}
		g, err := network.FuseAttention(net).Graph(batch)
		if err != nil {
			t.Fatal(err)
		}
		if scheduler.SlicesOf(g, r.Spec) == nil {
			continue
		}
		sliced++
		own, err := bound.Cold(ctx, net, r.Spec, batch)
		if err != nil {
			t.Fatal(err)
		}
		form, err := bound.AnyForm(ctx, net, r.Spec, batch)
		if err != nil {
			t.Fatal(err)
		}
		if err := form.Check(r.LatencySeconds()); err != nil || form.Seconds > own.Seconds {
			t.Errorf("seed %d: %v; %g s of any form, %g s of lines", seed, err, form.Seconds, own.Seconds)
		}
	}
	if sliced < 10 {
		t.Errorf("%d networks run in slices, expected at least 10", sliced)
	}
}
