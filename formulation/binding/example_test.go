package binding_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/model/schedule"
)

// A producer is faster on the cores' rows, its reader on columns; unless they agree data must be moved.
func ExampleSearch() {
	rows, columns := schedule.Binding{8, 1}, schedule.Binding{1, 8}
	labels := []binding.Label{{Binding: rows}, {Binding: columns}}
	p := &binding.Problem{
		Nodes: []binding.Node{
			{Name: "producer", Labels: labels, Cost: []float64{5e-6, 7e-6}},
			{Name: "reader", Labels: labels, Cost: []float64{9e-6, 6e-6}},
		},
		Edges: []binding.Edge{{From: 0, To: 1, Cost: [][]float64{{0, 4e-6}, {4e-6, 0}}}},
	}
	r, err := binding.Search(context.Background(), p, binding.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, %.0f us\n", r.Status, r.Objective*1e6)
	for i, l := range r.Choice {
		fmt.Println(p.Nodes[i].Name, p.Nodes[i].Labels[l].Binding)
	}
	// Output:
	// optimal, 13 us
	// producer [1 8]
	// reader [1 8]
}
