package solve_test

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/systems/llm/experts"
)

func init() { posedBySystems = append(posedBySystems, placements) }

// placements has experts to place on two devices.
func placements(r *rand.Rand, seed uint64, unit float64, odd func() float64, solver milp.Solver) posed {
	moe := &experts.Problem{Devices: 2, Scenario: []int{0, 0, 1}, Weight: []float64{1, 2}, Worst: seed%2 == 0}
	for range 2 {
		var option [][]float64
		for range moe.Scenario {
			var row []float64
			for range 5 {
				row = append(row, min(1e9, r.Float64()*unit*odd()))
			}
			option = append(option, row)
		}
		moe.Load = append(moe.Load, option)
	}
	least := math.Inf(1)
	for o := range moe.Load {
		every(5, 2, func(device []int) {
			seconds := moe.Seconds(&experts.Plan{Option: o, Device: device})
			cost := moe.Mean(seconds)
			if moe.Worst {
				cost = max(seconds[0], seconds[1])
			}
			least = min(least, cost)
		})
	}
	return posed{"experts", least, false, experts.Methods(),
		func(ctx context.Context, name string) (solve.Outcome, error) {
			r, err := experts.Solve(ctx, moe, name, with[*experts.Plan](settings{}, nil, solver))
			if err != nil {
				return solve.Outcome{}, err
			}
			return r.Outcome, nil
		}}
}
