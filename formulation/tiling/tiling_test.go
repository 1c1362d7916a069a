package tiling_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/tiling"
)

// every tries all divisions.
func every(curves []tiling.Curve, rounds int) float64 {
	if len(curves) == 0 {
		return 0
	}
	best := math.Inf(1)
	for t := 0; t < len(curves[0].Best) && t <= rounds; t++ {
		best = min(best, curves[0].Weight*curves[0].Best[t]+every(curves[1:], rounds-t))
	}
	return best
}

func TestAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 500 {
		curves := make([]tiling.Curve, r.IntN(5))
		for i := range curves {
			curves[i].Weight = float64(r.IntN(4))
			x := 100 * r.Float64()
			for range 1 + r.IntN(6) {
				curves[i].Best = append(curves[i].Best, x)
				if r.IntN(3) > 0 { // curves have steps, so that greedy is not enough
					x *= r.Float64()
				}
			}
		}
		rounds := r.IntN(9)
		each, cost, err := tiling.Allocate(curves, rounds)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, k := range each {
			sum += k
		}
		if want := every(curves, rounds); math.Abs(cost-want) > 1e-9*(1+want) || sum > rounds || math.Abs(tiling.Cost(curves, each)-cost) > 1e-12*(1+cost) {
			t.Fatalf("case %d: %v in %d of %d rounds cost %g, the least is %g", n, each, sum, rounds, cost, want)
		}
	}
}

func TestAllocateRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		curves []tiling.Curve
		rounds int
	}{
		"rounds is -1":                     {nil, -1},
		"curves[0] has no time":            {[]tiling.Curve{{}}, 1},
		"curves[0].Weight is NaN":          {[]tiling.Curve{{math.NaN(), []float64{1}}}, 1},
		"curves[1].Best[1] is 3, expected": {[]tiling.Curve{{1, []float64{1}}, {1, []float64{2, 3}}}, 1},
	} {
		if _, _, err := tiling.Allocate(c.curves, c.rounds); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A kernel that needs two rounds before it gets better is worth waiting for if it runs often.
func ExampleAllocate() {
	each, cost, _ := tiling.Allocate([]tiling.Curve{{1, []float64{10, 8, 7}}, {5, []float64{10, 10, 4}}}, 2)
	fmt.Println(each, cost)
	// Output: [0 2] 30
}
