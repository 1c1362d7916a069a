package rcpsp_test

import (
	"fmt"

	"github.com/dsasched/dsasched/formulation/rcpsp"
)

// The matrix unit could work on b while it waits for a, but not in order.
func ExampleInOrder() {
	p := &rcpsp.Project{
		Resources: []rcpsp.Resource{{Name: "dma", Capacity: 1}, {Name: "mme", Capacity: 1}},
		Activities: []rcpsp.Activity{
			{Name: "load a", Duration: 5, Demand: []int64{1, 0}},
			{Name: "multiply a", Duration: 2, Demand: []int64{0, 1}, After: []int{0}},
			{Name: "multiply b", Duration: 4, Demand: []int64{0, 1}},
		},
	}
	fmt.Println(rcpsp.InOrder(p), rcpsp.Parallel(p, rcpsp.List(p, rcpsp.LatestFinish)))
	// Output:
	// [0 5 7] [0 5 0]
}
