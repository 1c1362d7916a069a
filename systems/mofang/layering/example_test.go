package layering_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/systems/mofang/layering"
)

// Four operators, of which the second waits for the first: all that can run at first
// would crowd the machine and leave the second alone.
func Example() {
	use := []float64{0.5, 0.6, 0.5, 0.4}
	p := &layering.Problem{Name: "module", After: [][]int{nil, {0}, nil, nil}}
	p.Price = func(layer []int) float64 {
		if slices.Contains(layer, 0) && slices.Contains(layer, 1) {
			return float64(len(layer)) // one after the other
		}
		sum := 0.0
		for _, i := range layer {
			sum += use[i]
		}
		return max(1, sum) // in units of an operator alone
	}
	for _, method := range []string{"sequential", "greedy", "exact"} {
		r, err := layering.Solve(context.Background(), p, method, layering.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %.1f %v\n", r.Method, r.Seconds, r.Layers)
	}
	// Output:
	// sequential 4.0 [[0] [1] [2] [3]]
	// greedy 2.4 [[0 2 3] [1]]
	// exact 2.0 [[0 2] [1 3]]
}
