package memory_test

import (
	"context"
	"fmt"

	exact "github.com/dsasched/dsasched/formulation/memory"
	"github.com/dsasched/dsasched/model/memory"
)

func problem() *memory.Problem {
	span := func(lo, hi int64) memory.Interval { return memory.Interval{Lower: lo, Upper: hi} }
	return &memory.Problem{Buffers: []memory.Buffer{
		{ID: "x", Lifetime: span(0, 3), Size: 4},
		{ID: "y", Lifetime: span(3, 9), Size: 4},
		{ID: "skip", Lifetime: span(0, 9), Size: 4},
		{ID: "z", Lifetime: span(9, 21), Size: 4},
		{ID: "table", Lifetime: span(0, 21), Size: 4},
	}}
}

func ExampleFit() {
	sol, err := exact.Fit(context.Background(), problem(), 11, exact.Options{})
	fmt.Println(sol.Status, sol.Bound, err)
	sol, err = exact.Fit(context.Background(), problem(), 16, exact.Options{})
	fmt.Println(sol.Status, sol.Peak <= 16, err)
	// Output:
	// infeasible 12 <nil>
	// optimal true <nil>
}

func ExampleMinimize() {
	sol, err := exact.Minimize(context.Background(), problem(), exact.Options{})
	fmt.Println(sol.Status, sol.Peak, sol.Bound, err)
	// Output: optimal 12 12 <nil>
}

func ExampleSpill() {
	p := problem()
	sol, err := exact.Spill(context.Background(), p, 8, exact.SpillOptions{Place: true})
	fmt.Println(sol.Status, sol.Cost, err)
	for i, b := range p.Buffers {
		if sol.Spilled[i] {
			fmt.Println("spilled:", b.ID)
		}
	}
	// Output:
	// optimal 8 <nil>
	// spilled: skip
}
