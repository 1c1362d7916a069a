package partition_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/systems/mofang/partition"
)

// Two branches of unequal work on two accelerators: the longer one stays with what
// comes after it.
func Example() {
	p := &partition.Problem{Name: "branches", Accelerators: 2, MemoryBytes: 1e9}
	for i, time := range []float64{1, 4, 3, 2, 3} {
		p.Nodes = append(p.Nodes, partition.Node{ID: i, Supported: true, AcceleratorLatency: time, CPULatency: 10 * time,
			Color: partition.NoColor})
	}
	p.Edges = []partition.Edge{{From: 0, To: 1, Cost: 0.5}, {From: 0, To: 2, Cost: 0.5}, {From: 1, To: 3, Cost: 2},
		{From: 2, To: 3, Cost: 0.25}, {From: 3, To: 4, Cost: 0.25}}
	r, err := partition.Solve(context.Background(), p, "exact", partition.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Status, r.MaxLoad, r.Devices, r.Loads)
	// Output:
	// optimal 9.75 [[0 2] [1 3 4]] [4.75 9.75]
}
