package solve_test

import (
	"context"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/systems/astitchgpu/stitch"
)

func init() { ofSystems = append(ofSystems, addStitch) }

func addStitch(solver milp.Solver, add adder) {
	fused := &stitch.Problem{Units: 40, Price: kernels{}}
	one := make([]int, fused.Units)
	for u := range one {
		if one[u] = u; u > 1 {
			fused.Arcs = append(fused.Arcs, [2]int{u - 2, u})
		}
	}
	together, _ := fused.Price.Seconds(one, 0)
	add([]solve.Method{{Name: "search", Exact: true}}, "stitch", together,
		func(ctx context.Context, _ string, set settings) (solve.Outcome, error) {
			return outcome(stitch.Search(ctx, fused, stitch.Options{Options: with(set, []stitch.Kernel{{Units: one}}, solver)}))
		})
}

// kernels prices a kernel by a launch and the distances between its units.
type kernels struct{}

func (kernels) Choices([]int) int { return 2 }

func (kernels) Seconds(units []int, choice int) (float64, bool) {
	s := 3 + float64(choice)
	for i, u := range units {
		s += float64((u*u+i)%7) / 3
	}
	return s, true
}
