package ansor

import (
	"math"
	"slices"
)

// Trees are gradient-boosted regression trees whose answer for a program is the sum of their
// answers for its layers. They minimise y (sum - y)^2 over programs, y being the best time of
// the task over the program's: fast programs count more (§5.2).
//
// They are the project's own, since no maintained Go module trains trees, and XGBoost's C
// library would be a second thing to install for two hundred lines. Splits are found by
// histograms; exactSplit is the oracle of the tests.
type Trees struct {
	trees []tree
	cuts  [][]float64 // of each feature: upper ends of its bins but for the last
}

// A Measured program is its features, and the best time of its task over its own.
type Measured struct {
	Layers [][]float64
	Y      float64
}

type tree []node

// node is a split, or a leaf if feature is negative.
type node struct {
	feature     int
	cut         float64 // goes left if at most that
	left, right int32
	value       float64
}

const (
	boostRounds = 120
	treeDepth   = 5
	shrinkage   = 0.12
	lambda      = 1.0 // of leaves' weights
	minWeight   = 0.5 // of a leaf's second derivatives
	maxBins     = 32
)

// Fit trains trees; the order of the programs does not matter but for rounding.
func Fit(samples []Measured) *Trees {
	t := &Trees{}
	var rows [][]float64
	var owner []int
	for i, s := range samples {
		for _, l := range s.Layers {
			rows, owner = append(rows, l), append(owner, i)
		}
	}
	if len(rows) == 0 {
		return t
	}
	t.cuts = binCuts(rows)
	bins := make([][]uint8, len(t.cuts))
	for f, cuts := range t.cuts {
		bins[f] = make([]uint8, len(rows))
		for i, r := range rows {
			b, _ := slices.BinarySearch(cuts, r[f])
			bins[f][i] = uint8(b)
		}
	}
	sum := make([]float64, len(samples))
	grad, hess := make([]float64, len(rows)), make([]float64, len(rows))
	all := make([]int32, len(rows))
	for range boostRounds {
		for i := range rows {
			s := &samples[owner[i]]
			grad[i], hess[i] = s.Y*(sum[owner[i]]-s.Y), s.Y
			all[i] = int32(i)
		}
		g := grower{cuts: t.cuts, bins: bins, grad: grad, hess: hess}
		g.grow(all, treeDepth)
		t.trees = append(t.trees, g.tree)
		for i, r := range rows {
			sum[owner[i]] += g.tree.value(r)
		}
	}
	return t
}

// binCuts places the ends of bins between the values that occur, at quantiles if these are
// many.
func binCuts(rows [][]float64) [][]float64 {
	cuts := make([][]float64, len(rows[0]))
	values := make([]float64, 0, len(rows))
	for f := range cuts {
		values = values[:0]
		for _, r := range rows {
			values = append(values, r[f])
		}
		slices.Sort(values)
		n := len(values)
		distinct := slices.Compact(slices.Clone(values))
		if len(distinct) <= maxBins {
			for i := 1; i < len(distinct); i++ {
				cuts[f] = append(cuts[f], (distinct[i-1]+distinct[i])/2)
			}
			continue
		}
		for b := 1; b < maxBins; b++ {
			i := b * n / maxBins
			if lo, hi := values[i-1], values[i]; lo < hi {
				cuts[f] = append(cuts[f], (lo+hi)/2)
			}
		}
	}
	return cuts
}

type grower struct {
	cuts       [][]float64
	bins       [][]uint8 // of each feature, of each row
	grad, hess []float64
	tree       tree
}

// gain is what a set of rows is worth as a leaf of its own.
func gain(g, h float64) float64 { return g * g / (h + lambda) }

func (g *grower) grow(rows []int32, depth int) int32 {
	at := int32(len(g.tree))
	sg, sh := 0.0, 0.0
	for _, i := range rows {
		sg += g.grad[i]
		sh += g.hess[i]
	}
	g.tree = append(g.tree, node{feature: -1, value: -shrinkage * sg / (sh + lambda)})
	if depth == 0 {
		return at
	}
	f, bin, ok := g.split(rows, sg, sh)
	if !ok {
		return at
	}
	left, right := make([]int32, 0, len(rows)), make([]int32, 0, len(rows))
	for _, i := range rows {
		if int(g.bins[f][i]) <= bin {
			left = append(left, i)
		} else {
			right = append(right, i)
		}
	}
	l := g.grow(left, depth-1)
	r := g.grow(right, depth-1)
	g.tree[at] = node{feature: f, cut: g.cuts[f][bin], left: l, right: r}
	return at
}

// split finds the feature and the last bin of the left side that gain most; of equal ones,
// the first.
func (g *grower) split(rows []int32, sg, sh float64) (feature, bin int, ok bool) {
	best := gain(sg, sh) + 1e-9
	// What is wanted of each row lies together, so that a feature is one walk.
	type sums struct{ g, h float64 }
	of := make([]sums, len(rows))
	for k, i := range rows {
		of[k] = sums{g.grad[i], g.hess[i]}
	}
	var in [maxBins]sums
	for f := range g.cuts {
		if len(g.cuts[f]) == 0 {
			continue
		}
		clear(in[:])
		bins := g.bins[f]
		for k, i := range rows {
			s := &in[bins[i]%maxBins]
			s.g += of[k].g
			s.h += of[k].h
		}
		lg, lh := 0.0, 0.0
		for b := range g.cuts[f] {
			lg += in[b].g
			lh += in[b].h
			if lh < minWeight || sh-lh < minWeight {
				continue
			}
			if x := gain(lg, lh) + gain(sg-lg, sh-lh); x > best {
				best, feature, bin, ok = x, f, b, true
			}
		}
	}
	return feature, bin, ok
}

func (t tree) value(x []float64) float64 {
	i := int32(0)
	for t[i].feature >= 0 {
		if x[t[i].feature] <= t[i].cut {
			i = t[i].left
		} else {
			i = t[i].right
		}
	}
	return t[i].value
}

// Score is the learned cost of a program by the features of its layers: the larger, the
// faster. Trees that have not been trained say 0.
func (t *Trees) Score(layers [][]float64) float64 {
	sum := 0.0
	for _, x := range layers {
		for _, tr := range t.trees {
			sum += tr.value(x)
		}
	}
	return sum
}

// signedLog keeps the order of values of any magnitude within a small range.
func signedLog(x float64) float64 {
	if x < 0 {
		return -math.Log2(1 - x)
	}
	return math.Log2(1 + x)
}
