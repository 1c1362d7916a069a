package joint_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/model/schedule"
)

// A large output that waits for the last instance while a large one is made: the labels alone leave it in the L1, the
// order alone can only spill it. To declare it in the LLB costs less than to spill it, as its reader needs half of it.
func ExampleSearch() {
	lb, gb := binding.Label{Scope: schedule.L1}, binding.Label{Scope: schedule.LLB}
	free := []binding.Label{lb}
	p := &joint.Problem{
		Order: &ordering.Problem{Name: "residual", CapacityBytes: 10, StoreCostPerByte: 1, LoadCostPerByte: 1,
			Subgraphs: []ordering.Subgraph{{Name: "a", Instances: 1, OutputBytes: 4},
				{Name: "b", Instances: 1, OutputBytes: 1, WorkspaceBytes: 1},
				{Name: "c", Instances: 1, OutputBytes: 1, WorkspaceBytes: 8}, {Name: "d", Instances: 1, OutputBytes: 1}},
			Arcs: []ordering.Arc{{From: 0, To: 1, Reads: [][2]int{{0, 1}}}, {From: 1, To: 2, Reads: [][2]int{{0, 1}}},
				{From: 0, To: 3, Reads: [][2]int{{0, 1}}}, {From: 2, To: 3, Reads: [][2]int{{0, 1}}}}},
		Labels: &binding.Problem{
			Nodes: []binding.Node{{Name: "a", Labels: []binding.Label{lb, gb}, Cost: []float64{0, 4}},
				{Name: "b", Labels: free, Cost: []float64{1}},
				{Name: "c", Labels: free, Cost: []float64{1}}, {Name: "d", Labels: free, Cost: []float64{1}}},
			Edges: []binding.Edge{{From: 0, To: 1, Cost: [][]float64{{0}, {1}}}, {From: 0, To: 3, Cost: [][]float64{{0}, {2}}}},
		},
		SecondsPerCost: 1,
	}
	r, err := joint.Search(context.Background(), p, joint.SearchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v: %g s for labels, %g s for moves, bound %g s; a has scope %v\n",
		r.Status, r.LabelSeconds, r.MoveSeconds, r.Bound, p.Labels.Nodes[0].Labels[r.Choice[0]].Scope)
	// Output: optimal: 10 s for labels, 0 s for moves, bound 10 s; a has scope LLB
}
