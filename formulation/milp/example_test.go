package milp_test

import (
	"fmt"
	"math"
	"os"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Two jobs share a machine for 10 hours; each started batch of a takes an hour
// of set-up.
func ExampleModel() {
	m := milp.New("shop")
	a := m.Continuous("hours of a", 0, math.Inf(1), -3)
	b := m.Continuous("hours of b", 0, math.Inf(1), -2)
	batches := m.Integer("batches of a", 0, 4, 0)
	m.AddLE("machine", milp.Sum(a, b, batches), 10)
	m.AddLE("batch size", []milp.Term{a.Times(1), batches.Times(-2)}, 0)
	if err := m.Err(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(m)

	plan := []float64{6, 1, 3}
	fmt.Println(m.Objective(plan), m.Check(plan, 0))
	fmt.Println(m.Check([]float64{6, 1, 2}, 0))
	// Output:
	// shop: 3 variables (0 binary, 1 integer, 2 continuous), 2 constraints, 5 terms
	// -20 <nil>
	// milp: model "shop": constraint "batch size" is 2, outside [-Inf, 0]
}

func ExampleModel_WriteLP() {
	m := milp.New("keep")
	a, b := m.Binary("keep a", -5), m.Binary("keep b", -4)
	m.AddLE("buffer bytes", []milp.Term{a.Times(6), b.Times(4)}, 8)
	if err := m.WriteLP(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// \ keep
	// minimize
	//  objective: - 5 keep_a - 4 keep_b
	// subject to
	//  buffer_bytes: + 6 keep_a + 4 keep_b <= 8
	// bounds
	//  0 <= keep_a <= 1
	//  0 <= keep_b <= 1
	// general
	//  keep_a
	//  keep_b
	// end
}

func ExampleModel_Err() {
	m := milp.New("shop")
	x := m.Binary("x", math.NaN())
	m.AddLE("machine", []milp.Term{x.Times(1), milp.Var(7).Times(1)}, 10)
	fmt.Println(m.Err())
	// Output:
	// milp: model "shop": variable "x": its cost is NaN
}
