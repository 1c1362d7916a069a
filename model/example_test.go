package model_test

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// A residual block: shapes are inferred, the error is looked at once, and the
// graph answers what a part of the result needs.
func ExampleBuilder() {
	b := model.NewBuilder("block")
	x := b.Input("image", model.F16, 1, 16, 56, 56)
	y := b.Op("Conv", "conv", model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1},
		Pads: []int64{1, 1, 1, 1}, Group: 1},
		x, b.Param("conv.weight", model.F16, 16, 16, 3, 3))
	y = b.Op("Relu", "relu", model.Attr{}, y)
	b.Output(b.Op("Add", "add", model.Attr{}, y, x))
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range g.Ops {
		fmt.Println(op.Name, op.Class(), g.Tensor(op.Outputs[0]).Shape)
	}
	fmt.Println(g.Params(), "parameters,", g.MACs(), "MACs")

	half := model.Whole(g.Tensor(g.Outputs[0]).Shape)
	half[2].Hi = 28
	fmt.Println("28 rows of the convolution need rows", g.InputRegion(g.Ops[0], 0, 0, half)[2], "of the image")
	// Output:
	// conv matrix [1,16,56,56]
	// relu element-wise [1,16,56,56]
	// add element-wise [1,16,56,56]
	// 2304 parameters, 7225344 MACs
	// 28 rows of the convolution need rows {0 29} of the image
}

// The first mistake is reported, with the operator that it is in.
func ExampleBuilder_error() {
	b := model.NewBuilder("mistake")
	x := b.Input("x", model.F16, 2, 4)
	x = b.Op("MatMul", "fc1", model.Attr{}, x, b.Param("w1", model.F16, 5, 3))
	b.Output(b.Op("Relu", "relu", model.Attr{}, x))
	_, err := b.Build()
	fmt.Println(err)
	// Output:
	// graph "mistake": operator "fc1" (MatMul): cannot multiply [2,4] by [5,3]: inner extents 4 and 5 differ
}
