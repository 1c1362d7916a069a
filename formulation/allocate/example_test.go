package allocate_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/allocate"
)

func problem() *allocate.Problem {
	span := func(lo, hi int64) allocate.Interval { return allocate.Interval{Lower: lo, Upper: hi} }
	return &allocate.Problem{Buffers: []allocate.Buffer{
		{ID: "x", Lifetime: span(0, 3), Size: 4},
		{ID: "y", Lifetime: span(3, 9), Size: 4},
		{ID: "skip", Lifetime: span(0, 9), Size: 4},
		{ID: "z", Lifetime: span(9, 21), Size: 4},
		{ID: "table", Lifetime: span(0, 21), Size: 4},
	}}
}

func ExampleFit() {
	sol, err := allocate.Fit(context.Background(), problem(), 11, allocate.Options{})
	fmt.Println(sol.Status, sol.Bound, err)
	sol, err = allocate.Fit(context.Background(), problem(), 16, allocate.Options{})
	fmt.Println(sol.Status, *sol.Peak <= 16, err)
	// Output:
	// infeasible 12 <nil>
	// optimal true <nil>
}

func ExampleMinimize() {
	sol, err := allocate.Minimize(context.Background(), problem(), allocate.Options{})
	fmt.Println(sol.Status, *sol.Peak, sol.Bound, err)
	// Output: optimal 12 12 <nil>
}

func ExampleSpill() {
	p := problem()
	sol, err := allocate.Spill(context.Background(), p, 8, allocate.SpillOptions{Place: true})
	fmt.Println(sol.Status, sol.Cost, err)
	for i, b := range p.Buffers {
		if sol.Spilled[i] {
			fmt.Println("spilled:", b.ID)
		}
	}
	// Output:
	// optimal 8 <nil>
	// spilled: table
}
