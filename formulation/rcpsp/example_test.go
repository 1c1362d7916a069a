package rcpsp_test

import (
	"fmt"

	"github.com/dsasched/dsasched/formulation/rcpsp"
)

// Two loads share one DMA queue, a product waits for the second of them.
func ExampleProject() {
	p := &rcpsp.Project{
		Resources: []rcpsp.Resource{{Name: "dma", Capacity: 1}, {Name: "mme", Capacity: 1}},
		Activities: []rcpsp.Activity{
			{Name: "load a", Duration: 5, Demand: []int64{1, 0}},
			{Name: "load b", Duration: 3, Demand: []int64{1, 0}},
			{Name: "multiply", Duration: 4, Demand: []int64{0, 1}, After: []int{1}},
		},
	}
	if err := p.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("no schedule is shorter than", p.Bound())
	for _, start := range [][]int64{{0, 3, 6}, {0, 5, 8}, {3, 0, 3}} {
		if err := p.Check(start); err != nil {
			fmt.Println(start, err)
			continue
		}
		fmt.Println(start, "takes", p.Makespan(start))
	}
	// Output:
	// no schedule is shorter than 8
	// [0 3 6] project "": rule (2): at 3, when activity 1 ("load b") starts, 2 of resource 0 ("dma") are in use, expected at most 1
	// [0 5 8] takes 12
	// [3 0 3] takes 8
}
