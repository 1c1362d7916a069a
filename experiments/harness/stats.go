package harness

import (
	"cmp"
	"math"
	"slices"
)

func Arithmetic(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func Geometric(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += math.Log(x)
	}
	return math.Exp(s / float64(len(v)))
}

// Factors are the larger over the smaller of each pair.
func Factors(a, b []float64) []float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = max(a[i]/b[i], b[i]/a[i])
	}
	return list
}

// Spearman is the rank correlation of two lists; ties share their mean rank.
func Spearman(a, b []float64) float64 {
	ranks := func(v []float64) []float64 {
		order := make([]int, len(v))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(v[i], v[j]) })
		r := make([]float64, len(v))
		for i := 0; i < len(order); {
			j := i
			for j < len(order) && v[order[j]] == v[order[i]] {
				j++
			}
			for k := i; k < j; k++ {
				r[order[k]] = float64(i+j-1) / 2
			}
			i = j
		}
		return r
	}
	x, y := ranks(a), ranks(b)
	mx, my := Arithmetic(x), Arithmetic(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}
