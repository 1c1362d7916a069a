package xla_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
	"github.com/dsasched/dsasched/systems/astitchgpu/xla"
)

func expanded(b *model.Builder) *model.Graph {
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	e, err := grain.To(g, grain.Primitive)
	if err != nil {
		panic(err)
	}
	return e.Graph
}

// kernels writes the operators of each kernel.
func kernels(g *model.Graph, opt xla.Options) ([]string, error) {
	m, err := simt.Load("v100-simt")
	if err != nil {
		return nil, err
	}
	p, err := xla.Fuse(g, m, opt)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, k := range p.Kernels {
		out = append(out, strings.Join(k.Groups[0].Operators, " "))
	}
	return out, nil
}

func TestRules(t *testing.T) {
	rows := model.Attr{Axes: []int64{1}, KeepDims: true}
	for _, c := range []struct {
		name  string
		build func(b *model.Builder)
		opt   xla.Options
		want  string
	}{
		{"a chain is one kernel", func(b *model.Builder) {
			b.Output(b.Op("Exp", "e", model.Attr{}, b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8))))
		}, xla.Options{}, "n e"},
		{"a reduction ends one", func(b *model.Builder) {
			b.Output(b.Op("Neg", "n", model.Attr{},
				b.Op("ReduceSum", "r", rows, b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 8, 4)))))
		}, xla.Options{}, "e r | n"},
		{"a cheap operator is computed twice", func(b *model.Builder) {
			n := b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8, 4))
			b.Output(b.Op("Sub", "s", model.Attr{}, n, b.Op("ReduceSum", "r", rows, n)))
		}, xla.Options{}, "n r | n s"},
		{"an expensive one is not, but shares a kernel with the reduction of its result", func(b *model.Builder) {
			n := b.Op("Exp", "n", model.Attr{}, b.Input("x", model.F32, 8, 4))
			b.Output(b.Op("Sub", "s", model.Attr{}, n, b.Op("ReduceSum", "r", rows, n)))
		}, xla.Options{}, "n r | s"},
		{"nor in front of a broadcast", func(b *model.Builder) {
			b.Output(b.Op("Add", "a", model.Attr{}, b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 8, 1)),
				b.Input("y", model.F32, 8, 4)))
		}, xla.Options{}, "e | a"},
		{"siblings share a kernel", func(b *model.Builder) {
			x := b.Input("x", model.F32, 8, 4)
			b.Output(b.Op("ReduceSum", "r", rows, x), b.Op("ReduceMax", "s", rows, x))
		}, xla.Options{}, "r s"},
		{"siblings of different loops do not", func(b *model.Builder) {
			x := b.Input("x", model.F32, 8, 4)
			b.Output(b.Op("ReduceSum", "r", rows, x),
				b.Op("Slice", "s", model.Attr{Starts: []int64{0, 0}, Steps: []int64{1, 1}, Shape: []int64{2, 2}}, x))
		}, xla.Options{}, "r | s"},
	} {
		b := model.NewBuilder("rules")
		c.build(b)
		got, err := kernels(expanded(b), c.opt)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, " | ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// A softmax: the exponentials and their sum share a kernel, what only scales is computed
// twice.
func ExampleFuse() {
	b := model.NewBuilder("softmax")
	x := b.Op("Mul", "scale", model.Attr{}, b.Input("x", model.F32, 64, 128), b.Const("c", model.F32, nil, 1))
	b.Output(b.Op("Softmax", "p", model.Attr{Axis: 1}, x))
	ks, err := kernels(expanded(b), xla.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Join(ks, "\n"))
	// Output:
	// scale p/max
	// scale p/subtract p/exp p/sum
	// p
}
