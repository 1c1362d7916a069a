package harness

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Factors are the larger over the smaller of each pair.
func Factors(a, b []float64) []float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = max(a[i]/b[i], b[i]/a[i])
	}
	return list
}

// Spearman is the rank correlation of two lists; ties share their mean rank.
func Spearman(a, b []float64) float64 { return stat.Correlation(ranks(a), ranks(b), nil) }

func ranks(v []float64) []float64 {
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

// Each maps items by f, in order.
func Each[T, U any](items []T, f func(T) U) []U {
	var list []U
	for _, x := range items {
		list = append(list, f(x))
	}
	return list
}
