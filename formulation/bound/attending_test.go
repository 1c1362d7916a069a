package bound_test

import (
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

// attending is blocks of attention of which values and masks take longer to make than queries and keys, or as long.
func attending(seed uint64) network.Network {
	draws := rand.New(rand.NewPCG(seed, 11))
	heads, depth := pick(draws, int64(1), 2, 3), pick(draws, int64(4), 16, 40)
	tokens := pick(draws, int64(3), 16, 49, 130)
	blocks, long, keysLong := 1+draws.IntN(2), draws.IntN(4), draws.IntN(2)
	soft, residual := draws.IntN(6) > 0, draws.IntN(2) == 0
	mask := draws.IntN(6) // 0, 1: made, 2, 3: constant
	order := draws.Perm(3)
	return network.Network{Name: fmt.Sprintf("attending-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("attending")
		width := heads * depth
		x := b.Input("x", model.F16, batch, tokens, width)
		for k := range blocks {
			from := x
			name := func(s string) string { return fmt.Sprint("block", k, ".", s) }
			product := func(s string, x model.TensorID, to int64) model.TensorID {
				w := b.Param(name(s)+".weight", model.F16, b.Tensor(x).Shape[2], to)
				return b.Op("MatMul", name(s), model.Attr{}, x, w)
			}
			var parts [3]model.TensorID // queries, keys, values
			for _, i := range order {
				y := x
				for n := range []int{0, keysLong, long}[i] {
					y = product(fmt.Sprint("long", i, n), y, width)
					y = b.Op("Relu", name(fmt.Sprint("relu", i, n)), model.Attr{}, y)
				}
				y = product(fmt.Sprint("part", i), y, width)
				y = b.Op("Reshape", name(fmt.Sprint("heads", i)),
					model.Attr{Shape: []int64{batch, tokens, heads, depth}}, y)
				parts[i] = b.Op("Transpose", name(fmt.Sprint("turned", i)), model.Attr{Perm: []int64{0, 2, 1, 3}}, y)
			}
			columns := b.Op("Transpose", name("columns"), model.Attr{Perm: []int64{0, 1, 3, 2}}, parts[1])
			y := b.Op("MatMul", name("scores"), model.Attr{}, parts[0], columns)
			switch mask {
			case 2, 3:
				m := b.Param(name("mask"), model.F16, 1, 1, []int64{1, tokens}[mask-2], tokens)
				y = b.Op("Add", name("masked"), model.Attr{}, y, m)
			case 0, 1:
				m := b.Op("Relu", name("mask"), model.Attr{}, product("masking", x, tokens))
				m = b.Op("Reshape", name("mask.heads"), model.Attr{Shape: []int64{batch, 1, tokens, tokens}}, m)
				y = b.Op("Add", name("masked"), model.Attr{}, y, m)
			}
			if soft {
				y = b.Op("Softmax", name("softmax"), model.Attr{Axis: 3}, y)
			}
			y = b.Op("MatMul", name("context"), model.Attr{}, y, parts[2])
			y = b.Op("Transpose", name("context.turned"), model.Attr{Perm: []int64{0, 2, 1, 3}}, y)
			y = b.Op("Reshape", name("merged"), model.Attr{Shape: []int64{batch, tokens, width}}, y)
			x = product("output", y, width)
			if residual {
				x = b.Op("Add", name("residual"), model.Attr{}, x, from)
			}
		}
		b.Output(x)
		return b.Build()
	}}
}

// An attention's first products do not wait for a mask of the DDR.
func TestMaskLoadsLate(t *testing.T) {
	const keys = 1 << 16
	net := network.Network{Name: "masked", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("masked")
		made := func(s string) model.TensorID {
			x := b.Op("Add", s, model.Attr{}, b.Input(s+".rows", model.F16, batch, 1, 512, 1, 1),
				b.Input(s+".columns", model.F16, batch, 1, 1, 128, 16))
			return b.Op("Reshape", s+".flat", model.Attr{Shape: []int64{batch, 1, keys, 16}}, x)
		}
		q := b.Input("q", model.F16, batch, 1, 512, 16)
		columns := b.Op("Transpose", "columns", model.Attr{Perm: []int64{0, 1, 3, 2}}, made("k"))
		y := b.Op("Add", "masked", model.Attr{}, b.Op("MatMul", "scores", model.Attr{}, q, columns),
			b.Param("mask", model.F16, 1, 1, 1, keys))
		y = b.Op("MatMul", "context", model.Attr{}, b.Op("Softmax", "softmax", model.Attr{Axis: 3}, y), made("v"))
		b.Output(b.Op("Relu", "relu", model.Attr{}, y))
		return b.Build()
	}}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec.Clusters, spec.DDR.BandwidthBytesPerSecond = 1, spec.DDR.BandwidthBytesPerSecond/100
	recipe, err := recipes.Lookup("tiled")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(t.Context(), net, spec, 1, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fused, err := bound.Cold(t.Context(), network.FuseAttention(net), r.Spec, 1)
	if err == nil {
		err = fused.Check(r.LatencySeconds())
	}
	if err != nil {
		t.Error(err)
	}
	if form, err := bound.AnyForm(t.Context(), net, r.Spec, 1); err != nil || form.Check(r.LatencySeconds()) != nil {
		t.Error(err, form)
	}
}

// No schedule of attentions is faster than any term of the bounds, though their values may come last.
func TestAttentionCampaign(t *testing.T) {
	c := &campaign{t: t, network: attending, tight: true, closest: map[string]float64{}, others: map[string]int{}}
	c.run()
}
