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
// histograms of derivatives in fixed point, so that no order of additions shows in them, and
// a node's is its parent's less its sibling's; exactSplit is the oracle of the tests.
type Trees struct {
	trees []tree
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
	value       float64 // of a leaf; of a split, what it gains
}

const (
	treeDepth = 5
	lambda    = 1.0 // of leaves' weights
	minWeight = 0.5 // of a leaf's second derivatives
	maxBins   = 32
	// Each tree looks at one of so many parts of the features, in turn, which takes that
	// much less time and ranks as well.
	featureParts = 3
)

// ManyTrees rank best; FewTrees nearly as well in a fifth of the time, which is what counts
// while programs are still measured.
const (
	ManyTrees = 300
	fewTrees  = 60
)

// Fit trains so many trees; the order of the programs does not matter.
func Fit(samples []Measured, trees int) *Trees {
	t := &Trees{}
	var rows [][]float64
	var owner []int32
	for i, s := range samples {
		for _, l := range s.Layers {
			rows, owner = append(rows, l), append(owner, int32(i))
		}
	}
	if len(rows) == 0 {
		return t
	}
	g := newGrower(rows, trees)
	sum := make([]float64, len(samples))
	grad, hess := make([]float64, len(rows)), make([]float64, len(rows))
	all := make([]int32, len(rows))
	for round := range trees {
		for i, o := range owner {
			s := &samples[o]
			grad[i], hess[i] = s.Y*(sum[o]-s.Y), s.Y
			all[i] = int32(i)
		}
		g.weigh(grad, hess)
		g.tree, g.part = nil, &g.parts[round%featureParts]
		g.grow(all, g.total(all), nil, treeDepth, func(leaf []int32, value float64) {
			for _, i := range leaf {
				sum[owner[i]] += value
			}
		})
		t.trees = append(t.trees, g.tree)
	}
	return t
}

// binCuts places the ends of bins between the values that occur, at quantiles if these are many.
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

// sums are of some rows' derivatives: the first ones above, the second ones, which are not
// negative, in the lower 32 bits. weigh sees to it that neither passes its half.
type sums int64

func (s sums) second() int64 { return int64(uint32(s)) }
func (s sums) first() int64  { return int64(s >> 32) }

// part is some of the features.
type part struct {
	features []int       // those that differ between rows
	cuts     [][]float64 // of these: upper ends of their bins but for the last
	bins     []uint16    // row by row: the place of each feature's bin in a histogram
}

type grower struct {
	parts     [featureParts]part
	*part             // of the tree that grows
	rows      []sums  // of each row alone
	g, h      float64 // the units of first and second derivatives
	shrinkage float64
	tree      tree
	free      [][]sums // histograms to use again
}

func newGrower(rows [][]float64, trees int) *grower {
	g := &grower{rows: make([]sums, len(rows)), shrinkage: min(.24, 18/float64(trees))}
	n := 0
	for f, cuts := range binCuts(rows) {
		if len(cuts) > 0 {
			p := &g.parts[n%featureParts]
			p.features, p.cuts = append(p.features, f), append(p.cuts, cuts)
			n++
		}
	}
	for i := range g.parts {
		p := &g.parts[i]
		p.bins = make([]uint16, 0, len(rows)*len(p.features))
		for _, r := range rows {
			for k, f := range p.features {
				b, _ := slices.BinarySearch(p.cuts[k], r[f])
				p.bins = append(p.bins, uint16(k*maxBins+b))
			}
		}
	}
	return g
}

// weigh takes the derivatives over to fixed point, as fine as sums of all rows allow.
func (g *grower) weigh(grad, hess []float64) {
	unit := func(list []float64) float64 {
		most := 0.0
		for _, x := range list {
			most = max(most, math.Abs(x))
		}
		_, exp := math.Frexp(most * float64(len(list)))
		return math.Ldexp(1, exp-30)
	}
	g.g, g.h = unit(grad), unit(hess)
	for i := range g.rows {
		g.rows[i] = sums(math.Round(grad[i]/g.g))<<32 + sums(math.Round(hess[i]/g.h))
	}
}

func (g *grower) total(rows []int32) (s sums) {
	for _, i := range rows {
		s += g.rows[i]
	}
	return s
}

// histogram sums what falls into each bin of each feature.
func (g *grower) histogram(rows []int32) []sums {
	var in []sums
	if n := len(g.free); n > 0 {
		in, g.free = g.free[n-1], g.free[:n-1]
		clear(in)
	} else {
		in = make([]sums, len(g.parts[0].features)*maxBins) // no part has more
	}
	n := len(g.features)
	for _, i := range rows {
		s := g.rows[i]
		for _, b := range g.bins[int(i)*n : (int(i)+1)*n] {
			in[b] += s
		}
	}
	return in
}

// gain is the gain of a set of rows as a leaf of its own.
func gain(g, h float64) float64 { return g * g / (h + lambda) }

// grow appends the tree over some rows, whose order it changes, and tells of its leaves. in
// is the rows' histogram, nil if nobody has it.
func (g *grower) grow(rows []int32, sum sums, in []sums, depth int, leaf func(rows []int32, value float64)) int32 {
	at := int32(len(g.tree))
	g.tree = append(g.tree, node{feature: -1,
		value: -g.shrinkage * float64(sum.first()) * g.g / (float64(sum.second())*g.h + lambda)})
	k, bin, left, ok := 0, 0, sums(0), false
	if depth > 0 && float64(sum.second())*g.h >= 2*minWeight {
		if in == nil {
			in = g.histogram(rows)
		}
		k, bin, left, ok = g.split(in, sum)
	}
	if !ok {
		if in != nil {
			g.free = append(g.free, in)
		}
		leaf(rows, g.tree[at].value)
		return at
	}
	n, last, mid := len(g.features), uint16(k*maxBins+bin), 0
	for j, i := range rows {
		if g.bins[int(i)*n+k] <= last {
			rows[j], rows[mid] = rows[mid], i
			mid++
		}
	}
	// The histogram of the larger side is the whole less the smaller side's.
	small, large := rows[:mid], in
	if 2*mid > len(rows) {
		small = rows[mid:]
	}
	var rest []sums
	if depth > 1 && float64(sum.second())*g.h >= 3*minWeight { // else no side has two leaves
		rest = g.histogram(small)
		for b, s := range rest {
			large[b] -= s
		}
	} else {
		g.free, large = append(g.free, in), nil
	}
	if 2*mid > len(rows) {
		rest, large = large, rest
	}
	l := g.grow(rows[:mid], left, rest, depth-1, leaf)
	r := g.grow(rows[mid:], sum-left, large, depth-1, leaf)
	of := func(s sums) float64 { return gain(float64(s.first())*g.g, float64(s.second())*g.h) }
	g.tree[at] = node{feature: g.features[k], cut: g.cuts[k][bin], left: l, right: r,
		value: of(left) + of(sum-left) - of(sum)}
	return at
}

// split finds the feature and the last bin of the left side that gain most, and the sums of
// that side; of equal ones, the first.
func (g *grower) split(in []sums, all sums) (k, bin int, left sums, ok bool) {
	ag, ah := float64(all.first())*g.g, float64(all.second())*g.h
	best := gain(ag, ah) + 1e-9
	for f, cuts := range g.cuts {
		var s sums
		for b, x := range in[f*maxBins : f*maxBins+len(cuts)] {
			if x == 0 {
				continue // as the cut before
			}
			s += x
			lg, lh := float64(s.first())*g.g, float64(s.second())*g.h
			rg, rh := ag-lg, ah-lh
			if lh < minWeight || rh < minWeight {
				continue
			}
			// gain(lg, lh) + gain(rg, rh) > best without divisions
			if over, under := lg*lg*(rh+lambda)+rg*rg*(lh+lambda), (lh+lambda)*(rh+lambda); over > best*under {
				best, k, bin, left, ok = over/under, f, b, s, true
			}
		}
	}
	return k, bin, left, ok
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

// Importance is the share of each of [FeatureNames] in what all splits gain, in their order; nil without a split.
func (t *Trees) Importance() []float64 {
	list, sum := make([]float64, len(FeatureNames)), 0.0
	for _, tr := range t.trees {
		for _, n := range tr {
			if n.feature >= 0 {
				list[n.feature] += n.value
				sum += n.value
			}
		}
	}
	if sum == 0 {
		return nil
	}
	for i := range list {
		list[i] /= sum
	}
	return list
}

// signedLog keeps the order of values of any magnitude within a small range.
func signedLog(x float64) float64 {
	if x < 0 {
		return -math.Log2(1 - x)
	}
	return math.Log2(1 + x)
}
