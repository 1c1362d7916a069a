package grain_test

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
)

func ExampleTo() {
	b := model.NewBuilder("softmax")
	b.Output(b.Op("Softmax", "p", model.Attr{Axis: 1}, b.Input("x", model.F32, 8, 128)))
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	r, err := grain.To(g, grain.Primitive)
	if err != nil {
		panic(err)
	}
	for _, op := range r.Graph.Ops {
		fmt.Println(op.Name, op.Kind, r.Graph.Tensor(op.Outputs[0]).Shape)
	}
	// Output:
	// p/max ReduceMax [8,1]
	// p/subtract Sub [8,128]
	// p/exp Exp [8,128]
	// p/sum ReduceSum [8,1]
	// p Div [8,128]
}
