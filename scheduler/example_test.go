package scheduler_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// The first and the last row of the table: a kernel per layer, and all of GraphTurbo.
func ExampleRun() {
	net, err := network.Open("resnet50", network.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	table := recipes.Table()
	for _, v := range []scheduler.Recipe{table[0], table[len(table)-1]} {
		r, err := scheduler.Run(context.Background(), net, chip, 32, v, scheduler.Options{Chunk: 8})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d groups, %d kernels, %d tensors written to the DDR\n",
			v.Name, len(r.Schedule.Grouping.Groups), len(r.Schedule.Order), r.Sim.Static.TensorWrites[isa.DDR])
	}
	// Output:
	// tvm: 57 groups, 57 kernels, 57 tensors written to the DDR
	// cross-layer: 4 groups, 15 kernels, 1 tensors written to the DDR
}
