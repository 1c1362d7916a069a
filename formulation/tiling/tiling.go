// Package tiling finds the best tiling of a kernel by branch and bound ([Search]), and
// divides trials over kernels whose loops are tuned, best in hindsight ([Allocate]).
//
// # Tilings
//
// A tiling is a row of decisions. A bound says what no tiling that begins with some choices
// is below; tilings are measured in the order of their bounds, until the least bound of what
// is left is no less than the best time. Proofs are as good as the bound: the tests of who
// gives it measure programs, and enumerate spaces that are small enough.
//
// # Trials
//
// Kernel i has a curve: best[i][t] is its time after t rounds of trials, which never grows
// with t, and runs weight[i] times. Choose rounds t_i >= 0 for each kernel so that
//
//	minimise   sum_i weight[i] * best[i][t_i]
//	subject to sum_i t_i <= rounds,   t_i <= len(best[i]) - 1
//
// a knapsack with one choice for each kernel (Kellerer, Pferschy, Pisinger, "Knapsack
// Problems", 2004, ch. 11). A scheduler of trials that decides as it goes can't do better
// on the same curves; what it falls short by is its regret.
//
// [Allocate] is the dynamic programme over kernels and rounds spent: exact, in time
// kernels x rounds x the longest curve. The test's oracle tries everything.
package tiling

import (
	"fmt"
	"math"
)

// Curve is the best time of a kernel after 0, 1, 2, ... rounds, and how often it runs.
type Curve struct {
	Weight float64
	Best   []float64
}

// Check reports what makes curves unusable.
func Check(curves []Curve, rounds int) error {
	if rounds < 0 {
		return fmt.Errorf("rounds is %d, expected 0 or more", rounds)
	}
	for i, c := range curves {
		if len(c.Best) == 0 {
			return fmt.Errorf("curves[%d] has no time", i)
		}
		if !(c.Weight >= 0) || math.IsInf(c.Weight, 0) {
			return fmt.Errorf("curves[%d].Weight is %g, expected 0 or more", i, c.Weight)
		}
		for t, x := range c.Best {
			if !(x >= 0) || math.IsInf(x, 0) || t > 0 && x > c.Best[t-1] {
				return fmt.Errorf("curves[%d].Best[%d] is %g, expected 0 or more and no more than the one before", i, t, x)
			}
		}
	}
	return nil
}

// Cost is the objective of rounds for each kernel.
func Cost(curves []Curve, rounds []int) float64 {
	sum := 0.0
	for i, c := range curves {
		sum += c.Weight * c.Best[rounds[i]]
	}
	return sum
}

// Allocate divides rounds over kernels at the least cost; of equal answers, one with fewer
// rounds for later kernels.
func Allocate(curves []Curve, rounds int) (each []int, cost float64, err error) {
	if err := Check(curves, rounds); err != nil {
		return nil, 0, err
	}
	// least[r] is the least cost of the kernels so far with at most r rounds, took[i][r]
	// the rounds of kernel i in it.
	least := make([]float64, rounds+1)
	took := make([][]int32, len(curves))
	for i, c := range curves {
		next := make([]float64, rounds+1)
		took[i] = make([]int32, rounds+1)
		for r := range next {
			next[r] = math.Inf(1)
			for t := 0; t < len(c.Best) && t <= r; t++ {
				if x := least[r-t] + c.Weight*c.Best[t]; x < next[r] {
					next[r], took[i][r] = x, int32(t)
				}
			}
		}
		least = next
	}
	each = make([]int, len(curves))
	for i, r := len(curves)-1, rounds; i >= 0; i-- {
		each[i] = int(took[i][r])
		r -= each[i]
	}
	return each, Cost(curves, each), nil
}
