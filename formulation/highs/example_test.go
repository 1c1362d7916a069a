//go:build cgo

package highs_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// Which tensors stay in a buffer of 8 bytes if keeping each saves a reload?
func ExampleNew() {
	m := milp.New("keep")
	a := m.Binary("a", -5)
	b := m.Binary("b", -4)
	c := m.Binary("c", -3)
	m.AddLE("buffer bytes", []milp.Term{a.Times(6), b.Times(4), c.Times(4)}, 8)

	solver, err := highs.New()
	if err != nil {
		log.Fatal(err)
	}
	sol, err := solver.Solve(context.Background(), m, milp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sol.Status, math.Round(sol.Objective), sol.Int(a), sol.Int(b), sol.Int(c))
	// Output: optimal -7 0 1 1
}
