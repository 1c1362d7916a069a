package tensorrt_test

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
	"github.com/dsasched/dsasched/systems/astitchgpu/tensorrt"
)

func fuse(t *testing.T, build func(b *model.Builder)) *fusion.Plan {
	t.Helper()
	b := model.NewBuilder("net")
	build(b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := simt.Load("v100-simt")
	if err != nil {
		t.Fatal(err)
	}
	p, err := tensorrt.Fuse(g, m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRules(t *testing.T) {
	none := model.Attr{}
	rows := model.Attr{Axes: []int64{1}, KeepDims: true}
	product := func(b *model.Builder) model.TensorID {
		return b.Op("MatMul", "m", none, b.Input("x", model.F32, 8, 16), b.Param("w", model.F32, 16, 4))
	}
	conv := func(b *model.Builder) model.TensorID {
		return b.Op("Conv", "c", model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0},
			Group: 1}, b.Input("x", model.F32, 1, 4, 6, 6), b.Param("w", model.F32, 4, 4, 1, 1))
	}
	for _, c := range []struct {
		name  string
		build func(b *model.Builder)
		want  string
	}{
		{"a product takes in its bias and one activation", func(b *model.Builder) {
			y := b.Op("Add", "a", none, product(b), b.Param("bias", model.F32, 4))
			b.Output(b.Op("Tanh", "t", none, b.Op("Relu", "r", none, y)))
		}, "m a r | t"},
		{"a convolution takes in one sum", func(b *model.Builder) {
			y := b.Op("Add", "a", none, conv(b), b.Input("y", model.F32, 1, 4, 6, 6))
			b.Output(b.Op("Relu", "r", none, b.Op("Add", "s", none, y, b.Input("z", model.F32, 1, 4, 6, 6))))
		}, "c a | s r"},
		{"of two convolutions one takes in their sum", func(b *model.Builder) {
			d := b.Op("Conv", "d", model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0},
				Group: 1}, b.Input("y", model.F32, 1, 4, 6, 6), b.Param("v", model.F32, 4, 4, 1, 1))
			b.Output(b.Op("Add", "a", none, conv(b), d))
		}, "c | d a"},
		{"a product takes in none", func(b *model.Builder) {
			b.Output(b.Op("Add", "a", none, product(b), b.Input("y", model.F32, 8, 4)))
		}, "m | a"},
		{"what two read stays", func(b *model.Builder) {
			y := b.Op("Add", "a", none, product(b), b.Param("bias", model.F32, 4))
			b.Output(b.Op("Relu", "r", none, y))
			b.Output(b.Op("Tanh", "t", none, y))
		}, "m a | r | t"},
		{"element-wise operators that meet again are one kernel", func(b *model.Builder) {
			x := b.Op("Exp", "e", none, b.Input("x", model.F32, 8, 4))
			b.Output(b.Op("Mul", "p", none, b.Op("Neg", "n", none, x), b.Op("Tanh", "t", none, x)))
		}, "e n t p"},
		{"a reduction, a broadcast and a move are kernels", func(b *model.Builder) {
			e := b.Op("Exp", "e", none, b.Input("x", model.F32, 8, 4))
			s := b.Op("Sqrt", "q", none, b.Op("ReduceSum", "s", rows, e))
			b.Output(b.Op("Transpose", "t", model.Attr{Perm: []int64{1, 0}}, b.Op("Div", "d", none, e, s)))
		}, "e | s | q | d | t"},
	} {
		var got []string
		for _, k := range fuse(t, c.build).Kernels {
			got = append(got, strings.Join(k.Operators, " "))
		}
		if s := strings.Join(got, " | "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// An epilogue saves the launch and the bytes of what lies between, and has a reason for
// what it leaves out.
func TestEpilogue(t *testing.T) {
	p := fuse(t, func(b *model.Builder) {
		y := b.Op("MatMul", "m", model.Attr{}, b.Input("x", model.F32, 8, 16), b.Param("w", model.F32, 16, 4))
		y = b.Op("Relu", "r", model.Attr{}, b.Op("Add", "a", model.Attr{}, y, b.Param("bias", model.F32, 4)))
		b.Output(b.Op("Tanh", "t", model.Attr{}, y))
	})
	k := p.Kernels[0]
	if read, written := int64(4*(8*16+16*4+4)), int64(4*8*4); k.ReadBytes != read || k.WriteBytes != written {
		t.Errorf("%d bytes read and %d written, want %d and %d", k.ReadBytes, k.WriteBytes, read, written)
	}
	if len(k.Links) != 2 || len(p.Cuts) != 1 || p.Cuts[0].Reason != "a library call makes it: its kernel is closed" {
		t.Errorf("links %+v, cuts %+v", k.Links, p.Cuts)
	}
}
