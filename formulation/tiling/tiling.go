package tiling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Curve is the best time of a kernel after 0, 1, 2, ... rounds, and how often each network
// runs it.
type Curve struct {
	Weights []float64
	Best    []float64
}

// Objective is of the networks' times; it must not fall when one of them grows.
type Objective func(sums []float64) float64

// Sum is f1 of Ansor's objectives (§6.1): the time of all networks.
func Sum(sums []float64) (f float64) {
	for _, s := range sums {
		f += s
	}
	return f
}

// Enough is f2: a network need not get faster than is good enough for it.
func Enough(times []float64) Objective {
	return func(sums []float64) (f float64) {
		for j, s := range sums {
			f += max(s, times[j])
		}
		return f
	}
}

// Speedup is f3: minus the geometric mean of speed-ups over some times.
func Speedup(over []float64) Objective {
	return func(sums []float64) float64 {
		logs := 0.0
		for j, s := range sums {
			logs += math.Log(over[j] / s)
		}
		return -math.Exp(logs / float64(len(sums)))
	}
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
		if len(c.Weights) != len(curves[0].Weights) {
			return fmt.Errorf("curves[%d].Weights has %d, expected %d, one for each network", i, len(c.Weights),
				len(curves[0].Weights))
		}
		for j, w := range c.Weights {
			if !(w >= 0) || math.IsInf(w, 0) {
				return fmt.Errorf("curves[%d].Weights[%d] is %g, expected 0 or more", i, j, w)
			}
		}
		for t, x := range c.Best {
			if !(x >= 0) || math.IsInf(x, 0) || t > 0 && x > c.Best[t-1] {
				return fmt.Errorf("curves[%d].Best[%d] is %g, expected 0 or more and no more than the one before", i, t, x)
			}
		}
	}
	return nil
}

// Sums are the networks' times for rounds of each kernel.
func Sums(curves []Curve, rounds []int) []float64 {
	var sums []float64
	for i, c := range curves {
		if sums == nil {
			sums = make([]float64, len(c.Weights))
		}
		for j, w := range c.Weights {
			sums[j] += w * c.Best[rounds[i]]
		}
	}
	return sums
}

// division is of rounds over the kernels so far: the last got took, the others are in prev.
type division struct {
	sums []float64
	took int
	prev *division
}

// maxDivisions bounds what Allocate keeps: some 200 MB.
const maxDivisions = 2 << 20

// Allocate divides rounds over kernels at the least objective. Networks of which there are
// several may leave too many divisions that are each the best for some objective: an error.
func Allocate(curves []Curve, rounds int, f Objective) (each []int, cost float64, err error) {
	if err := Check(curves, rounds); err != nil {
		return nil, 0, err
	}
	if len(curves) == 0 {
		return nil, f(nil), nil
	}
	// front[r] are the divisions of at most r rounds over the kernels so far that no other
	// dominates.
	front := make([][]*division, rounds+1)
	for r := range front {
		front[r] = []*division{{sums: make([]float64, len(curves[0].Weights))}}
	}
	kept := 0
	for i, c := range curves {
		next := make([][]*division, rounds+1)
		for r := range next {
			var list []*division
			for t := 0; t < len(c.Best) && t <= r; t++ {
				if t > 0 && c.Best[t] == c.Best[t-1] {
					continue
				}
				for _, d := range front[r-t] {
					made := &division{slices.Clone(d.sums), t, d}
					for j, w := range c.Weights {
						made.sums[j] += w * c.Best[t]
					}
					list = append(list, made)
				}
			}
			next[r] = undominated(list)
			if kept += len(next[r]); kept > maxDivisions {
				return nil, 0, fmt.Errorf("more than %d divisions after %d of %d kernels", maxDivisions, i+1, len(curves))
			}
		}
		front = next
	}
	best := slices.MinFunc(front[rounds], func(a, b *division) int { return cmp.Compare(f(a.sums), f(b.sums)) })
	each = make([]int, len(curves))
	for i, d := len(curves)-1, best; i >= 0; i, d = i-1, d.prev {
		each[i] = d.took
	}
	return each, f(Sums(curves, each)), nil
}

// undominated keeps those of which no other has all sums as small; of equal ones the first.
func undominated(list []*division) []*division {
	slices.SortStableFunc(list, func(a, b *division) int { return slices.Compare(a.sums, b.sums) })
	var kept []*division
	for _, d := range list {
		// Who dominates it stands before it; of two sums, the last that was kept would.
		among := kept
		if len(d.sums) < 3 && len(kept) > 0 {
			among = kept[len(kept)-1:]
		}
		if !slices.ContainsFunc(among, func(k *division) bool {
			for j := range k.sums {
				if k.sums[j] > d.sums[j] {
					return false
				}
			}
			return true
		}) {
			kept = append(kept, d)
		}
	}
	return kept
}
