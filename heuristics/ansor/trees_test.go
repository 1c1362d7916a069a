package ansor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// exactSplit tries every cut between two values of every feature.
func exactSplit(rows [][]float64, grad, hess []float64) (best float64) {
	sg, sh := 0.0, 0.0
	for i := range rows {
		sg, sh = sg+grad[i], sh+hess[i]
	}
	best = gain(sg, sh)
	for f := range rows[0] {
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

// Where values are few enough for bins of their own, histograms find the split that gains
// most.
func TestSplits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for n := range 300 {
		rows := make([][]float64, 2+r.IntN(40))
		grad, hess, all := make([]float64, len(rows)), make([]float64, len(rows)), make([]int32, len(rows))
		for i := range rows {
			rows[i] = []float64{float64(r.IntN(maxBins)), float64(r.IntN(3)), r.NormFloat64()}
			if n%2 == 0 {
				rows[i][2] = 0
			}
			if len(rows) > maxBins {
				rows[i][2] = 1
			}
			grad[i], hess[i], all[i] = r.NormFloat64(), r.Float64(), int32(i)
		}
		cuts := binCuts(rows)
		bins := make([][]uint8, len(cuts))
		for f := range bins {
			bins[f] = make([]uint8, len(rows))
		}
		sg, sh := 0.0, 0.0
		for i, x := range rows {
			for f := range x {
				for _, c := range cuts[f] {
					if x[f] > c {
						bins[f][i]++
					}
				}
			}
			sg, sh = sg+grad[i], sh+hess[i]
		}
		g := grower{cuts: cuts, bins: bins, grad: grad, hess: hess}
		f, bin, ok := g.split(all, sg, sh)
		got := gain(sg, sh)
		if ok {
			lg, lh := 0.0, 0.0
			for i := range rows {
				if int(bins[f][i]) <= bin {
					lg, lh = lg+grad[i], lh+hess[i]
				}
			}
			got = gain(lg, lh) + gain(sg-lg, sh-lh)
		}
		if want := exactSplit(rows, grad, hess); math.Abs(got-want) > 1e-8 {
			t.Fatalf("case %d: the split gains %g, the best %g", n, got, want)
		}
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
	model := Fit(seen)
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
	if s := Fit(nil).Score([][]float64{{1, 2}}); s != 0 {
		t.Errorf("trees that were not trained say %g", s)
	}
}
