package tvm_test

import (
	"fmt"

	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// An activation joins the product before it; the next product is another kernel.
func ExampleGroup() {
	b := model.NewBuilder("perceptron")
	x := b.Input("x", model.F16, 4, 16)
	x = b.Op("Relu", "relu", model.Attr{}, b.Op("MatMul", "first", model.Attr{}, x, b.Param("w1", model.F16, 16, 32)))
	b.Output(b.Op("MatMul", "second", model.Attr{}, x, b.Param("w2", model.F16, 32, 8)))
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	gr, _ := tvm.Group(g, schedule.ExecutionOrder(g))
	for _, sg := range gr.Groups {
		fmt.Println(g.Op(sg.Ops[0]).Name, "and", len(sg.Ops)-1, "more")
	}
	// Output:
	// first and 1 more
	// second and 0 more
}
