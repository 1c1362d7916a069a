package network_test

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// A source gives its network at any batch size, ready for a scheduler.
func ExampleOpen() {
	net, err := network.Open("squeezenet", network.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, batch := range []int64{1, 16} {
		g, err := net.Graph(batch)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(net.Name, g.Tensor(g.Inputs[0]).Shape, "to", g.Tensor(g.Outputs[0]).Shape)
	}
	// Output:
	// squeezenet [1,3,224,224] to [1,1000,1,1]
	// squeezenet [16,3,224,224] to [16,1000,1,1]
}

// A network that is built in code goes to scheduler.Run as one of a file does.
func ExampleOf() {
	net, err := network.Of("perceptron", func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("perceptron")
		x := b.Input("image", model.F16, batch, 784)
		hidden := b.Op("MatMul", "hidden", model.Attr{}, x, b.Param("w0", model.F16, 784, 512))
		active := b.Op("Relu", "active", model.Attr{}, hidden)
		b.Output(b.Op("MatMul", "scores", model.Attr{}, active, b.Param("w1", model.F16, 512, 10)))
		return b.Build()
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := net.Graph(32)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(net.Name, len(g.Ops), "operators", g.Tensor(g.Inputs[0]).Shape, "to", g.Tensor(g.Outputs[0]).Shape)
	// Output:
	// perceptron 3 operators [32,784] to [32,10]
}
