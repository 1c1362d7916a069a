//go:build cgo

package allocate_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/highs"
)

func ExampleMinimizeILP() {
	solver, err := highs.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	sol, err := allocate.MinimizeILP(context.Background(), problem(),
		allocate.Options{Solver: solver})
	fmt.Println(sol.Status, *sol.Peak, sol.Bound, err)
	// Output: optimal 12 12 <nil>
}
