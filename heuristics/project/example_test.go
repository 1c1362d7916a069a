package project_test

import (
	"fmt"

	greedy "github.com/dsasched/dsasched/heuristics/project"
	"github.com/dsasched/dsasched/model/project"
)

// The matrix unit could work on b while it waits for a, but not in order.
func ExampleInOrder() {
	p := &project.Project{
		Resources: []project.Resource{{Name: "dma", Capacity: 1}, {Name: "mme", Capacity: 1}},
		Activities: []project.Activity{
			{Name: "load a", Duration: 5, Demand: []int64{1, 0}},
			{Name: "multiply a", Duration: 2, Demand: []int64{0, 1}, After: []int{0}},
			{Name: "multiply b", Duration: 4, Demand: []int64{0, 1}},
		},
	}
	fmt.Println(greedy.InOrder(p), greedy.Parallel(p, greedy.List(p, greedy.LatestFinish)))
	// Output:
	// [0 5 7] [0 5 0]
}
