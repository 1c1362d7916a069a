package stitch_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/systems/astitchgpu/stitch"
)

// pairs prices a kernel at a launch of 10 and 1 for each unit; three units need a
// barrier of 20.
type pairs struct{}

func (pairs) Choices([]int) int { return 1 }
func (pairs) Seconds(units []int, _ int) (float64, bool) {
	s := 10 + float64(len(units))
	if len(units) > 2 {
		s += 20
	}
	return s, true
}

func ExampleSearch() {
	p := &stitch.Problem{Units: 4, Arcs: [][2]int{{0, 1}, {1, 2}, {2, 3}}, Price: pairs{}}
	r, err := stitch.Search(context.Background(), p, stitch.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Status, r.Seconds)
	for _, k := range r.Kernels {
		fmt.Println(k.Units)
	}
	// Output:
	// optimal 24
	// [0 1]
	// [2 3]
}
