package rcpsp_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/rcpsp"
)

// A DMA engine loads two tiles; the second is needed first.
func ExampleSearch() {
	p := &rcpsp.Project{
		Resources: []rcpsp.Resource{{Name: "dma", Capacity: 1}, {Name: "mme", Capacity: 1}},
		Activities: []rcpsp.Activity{
			{Name: "load a", Duration: 3, Demand: []int64{1, 0}},
			{Name: "load b", Duration: 3, Demand: []int64{1, 0}},
			{Name: "multiply b", Duration: 5, Demand: []int64{0, 1}, After: []int{1}},
			{Name: "multiply a", Duration: 2, Demand: []int64{0, 1}, After: []int{0, 2}},
		},
	}
	r, err := rcpsp.Search(context.Background(), p, rcpsp.SearchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Status, r.Makespan, r.Bound, r.Start)
	// Output:
	// optimal 10 10 [3 0 3 8]
}
