//go:build cgo

package memory_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/highs"
	exact "github.com/dsasched/dsasched/formulation/memory"
)

func ExampleMinimizeILP() {
	solver, err := highs.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	sol, err := exact.MinimizeILP(context.Background(), problem(), solver, exact.Options{})
	fmt.Println(sol.Status, sol.Peak, sol.Bound, err)
	// Output: optimal 12 12 <nil>
}
