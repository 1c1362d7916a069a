package bound

import (
	"math"
	"slices"
)

// loadRounds is the number of weights that Load tries.
const loadRounds = 300

// Load bounds the makespan of jobs on machines from below, in the unit of their costs (infinite: it can't run there),
// whatever they wait for and if they may be divided over machines. Weights of machines, which add up to 1, prove it: of
// every plan the weighted loads add up to sum_j min_m w_m c_jm at least, and to the makespan at most. They follow
// the loads that they lead to (multiplicative weights); any weights give a bound.
func Load(costs [][]float64) (bound float64, weights []float64) {
	if len(costs) == 0 {
		return 0, nil
	}
	n := len(costs[0])
	w, load, sums := make([]float64, n), make([]float64, n), make([]float64, n)
	bound = -1
	for k := range loadRounds {
		most := slices.Max(sums)
		total := 0.0
		for m := range w {
			w[m] = 1
			if most > 0 {
				w[m] = math.Exp(3 * math.Sqrt(float64(k)) * (sums[m]/most - 1))
			}
			total += w[m]
		}
		clear(load)
		sum := 0.0
		for m := range w {
			w[m] /= total
		}
		for _, c := range costs {
			at, least := 0, math.Inf(1)
			for m := range w {
				if t := w[m] * c[m]; t < least { // none is NaN, as no weight is 0
					at, least = m, t
				}
			}
			sum += least
			load[at] += c[at]
		}
		for m := range sums {
			sums[m] += load[m]
		}
		if sum > bound {
			bound, weights = sum, slices.Clone(w)
		}
	}
	return bound, weights
}
