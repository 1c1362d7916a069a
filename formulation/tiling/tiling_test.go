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
func every(curves []tiling.Curve, rounds int, f tiling.Objective) float64 {
	best := math.Inf(1)
	each := make([]int, len(curves))
	var try func(i, left int)
	try = func(i, left int) {
		if i == len(curves) {
			best = min(best, f(tiling.Sums(curves, each)))
			return
		}
		for t := 0; t < len(curves[i].Best) && t <= left; t++ {
			each[i] = t
			try(i+1, left-t)
		}
	}
	try(0, rounds)
	return best
}

func TestAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 600 {
		networks := 1 + r.IntN(3)
		curves := make([]tiling.Curve, 1+r.IntN(4))
		for i := range curves {
			for range networks {
				curves[i].Weights = append(curves[i].Weights, float64(r.IntN(4)))
			}
			x := 100 * (.1 + r.Float64())
			for range 1 + r.IntN(6) {
				curves[i].Best = append(curves[i].Best, x)
				if r.IntN(3) > 0 { // curves have steps, so that greedy is not enough
					x *= .1 + .9*r.Float64()
				}
			}
		}
		for j := range networks {
			curves[0].Weights[j]++ // each network runs something
		}
		rounds := r.IntN(9)
		before := tiling.Sums(curves, make([]int, len(curves)))
		enough := make([]float64, networks)
		for j := range enough {
			enough[j] = before[j] * r.Float64()
		}
		for k, f := range []tiling.Objective{tiling.Sum, tiling.Enough(enough), tiling.Speedup(before)} {
			each, cost, err := tiling.Allocate(curves, rounds, f)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, k := range each {
				sum += k
			}
			if want := every(curves, rounds, f); math.Abs(cost-want) > 1e-9*(1+math.Abs(want)) || sum > rounds {
				t.Fatalf("case %d, f%d: %v in %d of %d rounds cost %g, the least is %g", n, k+1, each, sum, rounds, cost, want)
			}
		}
	}
}

func TestAllocateRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		curves []tiling.Curve
		rounds int
	}{
		"rounds is -1":                        {nil, -1},
		"curves[0] has no time":               {[]tiling.Curve{{}}, 1},
		"curves[0].Weights[0] is NaN":         {[]tiling.Curve{{[]float64{math.NaN()}, []float64{1}}}, 1},
		"curves[1].Best[1] is 3, expected":    {[]tiling.Curve{{nil, []float64{1}}, {nil, []float64{2, 3}}}, 1},
		"curves[1].Weights has 1, expected 0": {[]tiling.Curve{{nil, []float64{1}}, {[]float64{1}, []float64{2}}}, 1},
	} {
		if _, _, err := tiling.Allocate(c.curves, c.rounds, tiling.Sum); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A kernel that needs two rounds before it gets better is worth waiting for if it runs often.
func ExampleAllocate() {
	each, cost, _ := tiling.Allocate([]tiling.Curve{{[]float64{1}, []float64{10, 8, 7}},
		{[]float64{5}, []float64{10, 10, 4}}}, 2, tiling.Sum)
	fmt.Println(each, cost)
	// Output: [0 2] 30
}
