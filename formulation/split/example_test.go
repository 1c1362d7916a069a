package split_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dsasched/dsasched/formulation/split"
)

// A chain of three layers: joining the first two saves what passes between them,
// joining all would need a larger factor for each.
func ExampleSearch() {
	p := &split.Problem{
		Reads: [][]int{nil, {0}, {1}},
		Groups: []split.Group{
			{Atoms: []int{0}, Seconds: 6e-6}, {Atoms: []int{1}, Seconds: 5e-6}, {Atoms: []int{2}, Seconds: 4e-6},
			{Atoms: []int{0, 1}, Seconds: 8e-6}, {Atoms: []int{1, 2}, Seconds: 7e-6}, {Atoms: []int{0, 1, 2}, Seconds: 14e-6},
		},
	}
	r, err := split.Search(context.Background(), p, split.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, %.0f us\n", r.Status, r.Objective*1e6)
	for _, k := range r.Choice {
		fmt.Println(p.Groups[k].Atoms)
	}
	// Output:
	// optimal, 12 us
	// [0 1]
	// [2]
}
