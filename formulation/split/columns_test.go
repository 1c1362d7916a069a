package split

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/model/schedule"
)

// The best path by measured prices is that of all paths one by one, in which pairs that were measured have their own
// prices; and no path under floors is below the bound.
func TestColumnsBestIsTheShortest(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := 2 + rng.IntN(4)
		c := &Columns{atoms: n, seq: make([]int, n+1), from: make([][]int, n+1), ratios: map[class]*ratio{}}
		for lo := range n {
			for hi := lo + 1; hi <= n; hi++ {
				for f := range 1 + rng.IntN(2) {
					w := &way{Way: Way{schedule.SplitInfo{Factor: int64(1 + f)}, 1 + rng.Float64()}, atoms: hi - lo,
						behind: map[*way]*mean{}}
					c.add(column{lo, hi, rng.Float64(), 0, w})
				}
			}
		}
		var paths [][]int
		var visit func(at int, path []int)
		visit = func(at int, path []int) {
			if at == n {
				paths = append(paths, append([]int{}, path...))
				return
			}
			for _, k := range c.from[at] {
				visit(c.list[k].hi, append(path, k))
			}
		}
		visit(0, nil)
		for range 1 + rng.IntN(6) {
			path := paths[rng.IntN(len(paths))]
			took := make([]int64, len(path))
			for i := range took {
				took[i] = 5e11 + rng.Int64N(1e12)
			}
			c.Learn(path, took)
		}
		least, bound := math.Inf(1), math.Inf(1)
		for _, path := range paths {
			sum, floors, known := 0.0, 0.0, true
			var before *way
			for _, k := range path {
				w := c.list[k].way
				x := w.least
				if m := w.behind[before]; m != nil {
					x = m.value
				}
				sum, floors, known, before = sum+x, floors+c.list[k].floor, known && w.times > 0, w
			}
			bound = min(bound, floors)
			if known {
				least = min(least, sum)
			}
		}
		m := c.Best(nil)
		if math.Abs(m.Seconds-least) > 1e-12 || math.Abs(c.Bound()-bound) > 1e-12 {
			t.Fatalf("seed %d: %+v, bound %g; of all paths %g and %g", seed, m, c.Bound(), least, bound)
		}
	}
}
