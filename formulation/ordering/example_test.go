package ordering_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/ordering"
)

// Four pieces become two, then one. Three outputs of the first kind do not fit
// beside a run, so one moves out and back.
func ExampleSearch() {
	p := &ordering.Problem{Name: "small", CapacityBytes: 12, StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []ordering.Subgraph{{Name: "a", Instances: 4, OutputBytes: 4}, {Name: "b", Instances: 2, OutputBytes: 4}, {Name: "c", Instances: 1, OutputBytes: 4}},
		Arcs:      []ordering.Arc{{From: 0, To: 1, Reads: [][2]int{{0, 2}, {2, 4}}}, {From: 1, To: 2, Reads: [][2]int{{0, 2}}}}}
	for _, objective := range []ordering.Objective{ordering.Traffic, ordering.Peak} {
		res, err := ordering.Search(context.Background(), p, objective, ordering.SearchOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(objective, res.Status, res.Cost)
	}
	// Output:
	// traffic optimal 8
	// peak optimal 16
}
