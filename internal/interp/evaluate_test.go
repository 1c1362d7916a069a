package interp_test

import (
	"fmt"
	"testing"

	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
)

// Linear operators and moves of given numbers, by hand.
func TestEvaluate(t *testing.T) {
	window := model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1}
	wide := model.Attr{Strides: []int64{2, 2}, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Group: 1}
	for _, c := range []struct {
		kind   model.Kind
		attr   model.Attr
		inputs []model.Shape // element i of input k is 1 + i + 10 k
		want   string
	}{
		{"Add", model.Attr{}, []model.Shape{{2, 2}, {2}}, "[12 14 14 16]"},
		{"Mul", model.Attr{}, []model.Shape{{2, 2}, {2}}, "[11 24 33 48]"},
		{"MatMul", model.Attr{}, []model.Shape{{2, 2}, {2, 2}}, "[37 40 85 92]"},
		{"MatMul", model.Attr{}, []model.Shape{{2}, {2, 2}}, "[37 40]"},
		{"Gemm", model.Attr{TransB: true}, []model.Shape{{1, 2}, {2, 2}, {2}}, "[56 63]"},
		{"Gemm", model.Attr{TransA: true}, []model.Shape{{2, 1}, {2, 2}}, "[37 40]"},
		{"Conv", window, []model.Shape{{1, 1, 2, 2}, {1, 1, 3, 3}}, "[177 167 147 137]"},
		{"ConvTranspose", wide, []model.Shape{{1, 1, 1, 2}, {1, 1, 2, 2}}, "[11 12 22 24 13 14 26 28]"},
		{"GlobalAveragePool", model.Attr{}, []model.Shape{{1, 2, 1, 2}}, "[3 7]"},
		{"ReduceSum", model.Attr{Axes: []int64{0}}, []model.Shape{{2, 2}}, "[4 6]"},
		{"Transpose", model.Attr{Perm: []int64{1, 0}}, []model.Shape{{2, 3}}, "[1 4 2 5 3 6]"},
		{"Reshape", model.Attr{Shape: []int64{3, 2}}, []model.Shape{{2, 3}}, "[1 2 3 4 5 6]"},
		{"Concat", model.Attr{Axis: 1}, []model.Shape{{2, 1}, {2, 2}}, "[1 11 12 2 13 14]"},
		{"Slice", model.Attr{Starts: []int64{2}, Steps: []int64{-2}, Shape: []int64{2}}, []model.Shape{{3}}, "[3 1]"},
		{"Pad", model.Attr{Pads: []int64{1, 1}}, []model.Shape{{2}}, "[0 1 2 0]"},
		{"Gather", model.Attr{}, []model.Shape{{4, 2}, {2}}, "[7 8 1 2]"},
		{"Expand", model.Attr{Shape: []int64{2, 2}}, []model.Shape{{2, 1}}, "[1 1 2 2]"},
	} {
		b := model.NewBuilder("one")
		var in []model.TensorID
		for k, s := range c.inputs {
			in = append(in, b.Input(fmt.Sprint(k), model.F16, s...))
		}
		out := b.Op(c.kind, "op", c.attr, in...)
		b.Output(out)
		g, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", c.kind, err)
		}
		values := interp.Evaluate(g, func(t *model.Tensor, i int64) uint64 { return uint64(1 + i + 10*int64(t.ID)) })
		if got := fmt.Sprint(values[out]); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.kind, c.attr, got, c.want)
		}
	}
}

// Every element of what an operator that is hashed depends on changes its value.
func TestEvaluateHashes(t *testing.T) {
	for _, kind := range []model.Kind{"Relu", "Softmax", "LayerNorm", "ReduceMax", "LRN"} {
		b := model.NewBuilder("one")
		x := b.Input("x", model.F16, 2, 3, 2)
		attr := model.Attr{Axis: 2, Axes: []int64{2}, Kernel: []int64{3}}
		if kind == "LRN" || kind == "Relu" {
			attr.Axes = nil
		}
		out := b.Op(kind, "op", attr, x)
		b.Output(out)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		evaluate := func(changed int64) []uint64 {
			return interp.Evaluate(g, func(_ *model.Tensor, i int64) uint64 {
				if i == changed {
					return 99
				}
				return uint64(i)
			})[out]
		}
		before := evaluate(-1)
		box := model.Whole(g.Tensor(out).Shape)
		for i := range before {
			one, rest := box.Clone(), int64(i)
			for d := len(box) - 1; d >= 0; d-- {
				at := rest % box[d].Len()
				rest /= box[d].Len()
				one[d] = model.Interval{Lo: at, Hi: at + 1}
			}
			needs := g.InputRegion(g.Ops[0], 0, 0, one)
			for e := range int64(12) {
				at := model.Region{{Lo: e / 6, Hi: e/6 + 1}, {Lo: e / 2 % 3, Hi: e/2%3 + 1}, {Lo: e % 2, Hi: e%2 + 1}}
				if depends := needs.Overlap(at) > 0; depends != (evaluate(e)[i] != before[i]) {
					t.Errorf("%s: element %d depends on element %d: %t", kind, i, e, depends)
				}
			}
		}
	}
}
