package ordering_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/formulation/ordering"
)

// Four pieces become two, then one. Three outputs of the first kind do not fit
// beside a run, so one moves out and back.
func ExampleSearch() {
	p := &ordering.Problem{Name: "small", CapacityBytes: 12, StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []ordering.Subgraph{{Name: "a", Instances: 4, OutputBytes: 4}, {Name: "b", Instances: 2, OutputBytes: 4},
			{Name: "c", Instances: 1, OutputBytes: 4}},
		Arcs: []ordering.Arc{{From: 0, To: 1, Reads: [][2]int{{0, 2}, {2, 4}}},
			{From: 1, To: 2, Reads: [][2]int{{0, 2}}}}}
	for _, objective := range []ordering.Objective{ordering.Traffic, ordering.Peak} {
		res, err := ordering.Search(context.Background(), p, objective, ordering.Options{})
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

// An order of one's own as a file for 'dsasched check order': the moves that it needs are
// made by [ordering.Fixed], and the checker plays it by the rules alone.
func ExampleFixed() {
	p := &ordering.Problem{Name: "small", CapacityBytes: 12, StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []ordering.Subgraph{{Name: "a", Instances: 4, OutputBytes: 4}, {Name: "b", Instances: 2, OutputBytes: 4},
			{Name: "c", Instances: 1, OutputBytes: 4}},
		Arcs: []ordering.Arc{{From: 0, To: 1, Reads: [][2]int{{0, 2}, {2, 4}}},
			{From: 1, To: 2, Reads: [][2]int{{0, 2}}}}}
	g := ordering.NewGraph(p)
	mine := []int{3, 2, 5, 1, 0, 4, 6} // instances by ID: a0 to a3, b0, b1, c0
	r, err := ordering.Fixed("mine", g, mine, ordering.Traffic)
	if err != nil {
		fmt.Println(err)
		return
	}
	verdict, err := ordering.Check(p, r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("moves", verdict.Cost, "bytes")
	data, err := json.Marshal(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(data)[:60])
	// Output:
	// moves 8 bytes
	// {"method":"mine","objective":"traffic","status":"feasible","
}
