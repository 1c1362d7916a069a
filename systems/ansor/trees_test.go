package ansor

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// exactSplit tries every cut between two values of some features.
func exactSplit(rows [][]float64, features []int, grad, hess []float64) (best float64) {
	sg, sh := 0.0, 0.0
	for i := range rows {
		sg, sh = sg+grad[i], sh+hess[i]
	}
	best = gain(sg, sh)
	for _, f := range features {
		for _, cut := range rows {
			lg, lh := 0.0, 0.0
			for i, r := range rows {
				if r[f] <= cut[f] {
					lg, lh = lg+grad[i], lh+hess[i]
				}
			}
			if lh >= minWeight && sh-lh >= minWeight {
				best = max(best, gain(lg, lh)+gain(sg-lg, sh-lh))
			}
		}
	}
	return best
}

// What the time follows from is what counts.
func TestImportance(t *testing.T) {
	if list := Fit(nil, fewTrees).Importance(); list != nil {
		t.Errorf("of no programs: %v", list)
	}
	r := rand.New(rand.NewPCG(5, 6))
	var samples []Measured
	for range 200 {
		x := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		y := .2
		if x[1] > 0 {
			y = 1
		}
		samples = append(samples, Measured{[][]float64{x}, y})
	}
	list, sum := Fit(samples, fewTrees).Importance(), 0.0
	for _, x := range list {
		sum += x
	}
	if len(list) != len(FeatureNames) || math.Abs(sum-1) > 1e-9 || list[1] < .9 {
		t.Errorf("shares %v, sum %v", list[:3], sum)
	}
}

// Where values are few enough for bins of their own, each node of a tree is split where that
// gains most, by the rows that reach it, and what a leaf says follows from its rows.
func TestSplits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	splits := 0
	for n := range 300 {
		rows := make([][]float64, 2+r.IntN(60))
		grad, hess, all := make([]float64, len(rows)), make([]float64, len(rows)), make([]int32, len(rows))
		for i := range rows {
			rows[i] = []float64{float64(r.IntN(maxBins)), float64(r.IntN(3)), r.NormFloat64(), 7}
			if n%2 == 0 {
				rows[i][2] = 0
			}
			if len(rows) > maxBins {
				rows[i][2] = 1
			}
			grad[i], hess[i], all[i] = r.NormFloat64(), r.Float64(), int32(i)
		}
		g := newGrower(rows, fewTrees)
		g.part = &g.parts[n%featureParts]
		g.weigh(grad, hess)
		told := map[int32]float64{}
		g.grow(all, g.total(all), nil, treeDepth, func(leaf []int32, value float64) {
			for _, i := range leaf {
				told[i] = value
			}
		})
		for i, x := range rows {
			if said := g.tree.value(x); told[int32(i)] != said {
				t.Fatalf("case %d: row %d is in a leaf of %g, the tree says %g", n, i, told[int32(i)], said)
			}
		}
		var check func(at int32, depth int, reach []int)
		check = func(at int32, depth int, reach []int) {
			var sides [2][]int
			var sg, sh [2]float64
			node := &g.tree[at]
			var x [][]float64
			var xg, xh []float64
			for _, i := range reach {
				k := 0
				if node.feature >= 0 && rows[i][node.feature] > node.cut {
					k = 1
				}
				sides[k] = append(sides[k], i)
				sg[k], sh[k] = sg[k]+grad[i], sh[k]+hess[i]
				x, xg, xh = append(x, rows[i]), append(xg, grad[i]), append(xh, hess[i])
			}
			got, want := gain(sg[0], sh[0]), gain(sg[0], sh[0])
			if depth > 0 {
				want = exactSplit(x, g.features, xg, xh)
			}
			if node.feature >= 0 {
				got += gain(sg[1], sh[1])
			} else if v := -g.shrinkage * sg[0] / (sh[0] + lambda); math.Abs(node.value-v) > 1e-6 {
				t.Fatalf("case %d: a leaf says %g, want %g", n, node.value, v)
			}
			if math.Abs(got-want) > 1e-6 {
				t.Fatalf("case %d: a split gains %g, the best %g", n, got, want)
			}
			if node.feature >= 0 {
				splits++
				check(node.left, depth-1, sides[0])
				check(node.right, depth-1, sides[1])
			}
		}
		first := make([]int, len(rows))
		for i := range first {
			first[i] = i
		}
		check(0, treeDepth, first)
	}
	if splits < 300 {
		t.Errorf("%d splits", splits)
	}
}

// Trees are the same whatever the order of the programs.
func TestTreesOfAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	list := measured(r, 400, 12)
	one := Fit(list, ManyTrees)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if two := Fit(list, ManyTrees); !reflect.DeepEqual(one, two) {
		t.Error("programs in another order make other trees")
	}
}

// measured are programs of up to three layers with random features.
func measured(r *rand.Rand, programs, features int) (list []Measured) {
	for range programs {
		s := Measured{Y: r.Float64()}
		for range 1 + r.IntN(3) {
			x := make([]float64, features)
			for f := range x {
				x[f] = s.Y*float64(f%3) + r.NormFloat64()
			}
			s.Layers = append(s.Layers, x)
		}
		list = append(list, s)
	}
	return list
}

func BenchmarkFit(b *testing.B) {
	list := measured(rand.New(rand.NewPCG(9, 9)), 2000, len(FeatureNames))
	for b.Loop() {
		Fit(list, fewTrees)
	}
}

func BenchmarkScore(b *testing.B) {
	list := measured(rand.New(rand.NewPCG(9, 9)), 2000, len(FeatureNames))
	trees := Fit(list, ManyTrees)
	for i := 0; b.Loop(); i++ {
		trees.Score(list[i%len(list)].Layers)
	}
}

// Trees learn a sum over layers of a product that no single feature shows, well enough to
// rank programs that they have not seen.
func TestTreesRank(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	make1 := func() Measured {
		var s Measured
		sum := 0.0
		for range 1 + r.IntN(3) {
			x := []float64{r.Float64(), r.Float64(), r.Float64()}
			sum += x[0] * x[1]
			s.Layers = append(s.Layers, x)
		}
		s.Y = sum / 3
		return s
	}
	var seen []Measured
	for range 800 {
		seen = append(seen, make1())
	}
	model := Fit(seen, ManyTrees)
	right, pairs := 0, 0
	for range 1000 {
		a, b := make1(), make1()
		if math.Abs(a.Y-b.Y) < .02 {
			continue
		}
		pairs++
		if (model.Score(a.Layers) < model.Score(b.Layers)) == (a.Y < b.Y) {
			right++
		}
	}
	if share := float64(right) / float64(pairs); share < .85 {
		t.Errorf("%.1f %% of %d pairs are ranked as they are, want 85 %%", 100*share, pairs)
	}
}

func TestTreesOfNothing(t *testing.T) {
	if s := Fit(nil, fewTrees).Score([][]float64{{1, 2}}); s != 0 {
		t.Errorf("trees that were not trained say %g", s)
	}
}
