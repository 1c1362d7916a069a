package network_test

import (
	"fmt"

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
