package ordering

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Windows never say more than the optimum, and something where cones say nothing.
func TestWindows(t *testing.T) {
	said := 0
	check := func(p *Problem) {
		t.Helper()
		best := mustSearch(t, p, Traffic, SearchOptions{NoWindows: true, Options: Options{WorkLimit: 50_000}})
		if best.Status != milp.Optimal {
			return
		}
		g := NewGraph(p)
		a := &answer{part: whole(g)[0]}
		if err := a.begin(Traffic, nil, twinned); err != nil {
			return // nothing fits
		}
		stop := &limits{ctx: context.Background(), maxBytes: defaultMaxBytes}
		a.windows = a.findWindows(stop, SearchOptions{}, coneValues{})
		bound := a.windowBound(make([]int, len(a.classes)))
		if float64(bound)/g.Unit > best.Cost+1e-9 {
			t.Errorf("%s: the windows say %v, the best order costs %v\n%+v", p.Name, float64(bound)/g.Unit, best.Cost, p)
		}
		if bound > 0 {
			said++
		}
		all := make([]int, len(a.classes))
		for k := range all {
			all[k] = a.classes[k].n()
		}
		if left := a.windowBound(all); left != 0 {
			t.Errorf("%s: when all has run the windows still say %d", p.Name, left)
		}
	}
	for seed := range uint64(600) {
		check(randomProblem(seed, 14))
	}
	for n := 3; n <= 6; n++ {
		check(chainOf([]int{n, n, n, n}, 1, 2))
		check(chainOf([]int{n, n, n}, 1, 1))
	}
	if said < 20 {
		t.Errorf("windows said something of %d problems, expected more", said)
	}
	res, err := Search(context.Background(), chainOf([]int{16, 16, 16, 16}, 1, 2), Traffic, SearchOptions{Options: Options{WorkLimit: 1000}})
	if err != nil || res.Bound < res.Cost/2 {
		t.Errorf("bound %v of %v (%v), expected more than half of what is reached", res.Bound, res.Cost, err)
	}
}
