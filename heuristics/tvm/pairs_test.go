package tvm_test

import (
	"fmt"
	"testing"

	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

func conv(b *model.Builder, name string, x model.TensorID, kernel, stride, pad int64) model.TensorID {
	attr := model.Attr{Kernel: []int64{kernel, kernel}, Strides: []int64{stride, stride}, Dilations: []int64{1, 1},
		Pads: []int64{pad, pad, pad, pad}, Group: 1}
	return b.Op("Conv", name, attr, x, b.Param(name+".w", model.F16, 16, 16, kernel, kernel))
}

func TestPairConvolutions(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *model.Builder, x model.TensorID)
		want  []int // layers of each kernel
	}{
		{"3x3 and 1x1", func(b *model.Builder, x model.TensorID) {
			b.Output(conv(b, "b", b.Op("Relu", "r", model.Attr{}, conv(b, "a", x, 3, 1, 1)), 1, 1, 0))
		}, []int{2}},
		{"1x1 and 3x3", func(b *model.Builder, x model.TensorID) {
			b.Output(conv(b, "b", conv(b, "a", x, 1, 1, 0), 3, 1, 1))
		}, []int{1, 1}},
		{"three in a row make one pair", func(b *model.Builder, x model.TensorID) {
			b.Output(conv(b, "c", conv(b, "b", conv(b, "a", x, 1, 1, 0), 1, 1, 0), 1, 1, 0))
		}, []int{2, 1}},
		{"a stride", func(b *model.Builder, x model.TensorID) {
			b.Output(conv(b, "b", conv(b, "a", x, 3, 1, 1), 1, 2, 0))
		}, []int{1, 1}},
		{"padding", func(b *model.Builder, x model.TensorID) {
			b.Output(conv(b, "b", conv(b, "a", x, 3, 1, 1), 1, 1, 1))
		}, []int{1, 1}},
		{"another reader", func(b *model.Builder, x model.TensorID) {
			a := conv(b, "a", x, 3, 1, 1)
			b.Output(b.Op("Add", "s", model.Attr{}, conv(b, "b", a, 1, 1, 0), a))
		}, []int{1, 1}},
		{"a network output between", func(b *model.Builder, x model.TensorID) {
			a := conv(b, "a", x, 3, 1, 1)
			b.Output(a)
			b.Output(conv(b, "b", a, 1, 1, 0))
		}, []int{1, 1}},
		{"a pooling between", func(b *model.Builder, x model.TensorID) {
			a := model.Attr{Kernel: []int64{2, 2}, Strides: []int64{2, 2}, Dilations: []int64{1, 1}, Pads: make([]int64, 4)}
			b.Output(conv(b, "b", b.Op("MaxPool", "p", a, conv(b, "a", x, 3, 1, 1)), 1, 1, 0))
		}, []int{1, 1, 1}},
		{"the first of two branches runs late enough", func(b *model.Builder, x model.TensorID) {
			left := conv(b, "b", conv(b, "a", x, 3, 1, 1), 1, 1, 0)
			right := conv(b, "d", conv(b, "c", x, 3, 1, 1), 1, 1, 0)
			b.Output(b.Op("Add", "s", model.Attr{}, left, right))
		}, []int{2, 2}},
	} {
		b := model.NewBuilder(c.name)
		c.build(b, b.Input("x", model.F16, 1, 16, 8, 8))
		g, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var order []model.OpID
		for _, op := range g.Ops {
			order = append(order, op.ID)
		}
		gr, layers := tvm.PairConvolutions(g, order)
		if err := schedule.CheckGrouping(g, gr); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []int
		for _, l := range layers {
			got = append(got, len(l))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: kernels of %v layers, want %v", c.name, got, c.want)
		}
	}
}
