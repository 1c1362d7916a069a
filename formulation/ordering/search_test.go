package ordering

import (
	"context"
	"math"
	"testing"

	"github.com/dsasched/dsasched/model/ordering"
)

func mustSearch(t testing.TB, p *ordering.Problem, objective ordering.Objective, opts SearchOptions) *ordering.Result {
	t.Helper()
	res, err := Search(context.Background(), p, objective, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ordering.Check(p, res); err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return res
}

// switches turns each rule of the search off by itself, and all together.
var switches = []struct {
	name string
	opts SearchOptions
}{
	{"all on", SearchOptions{}},
	{"no parts", SearchOptions{NoParts: true}},
	{"no classes", SearchOptions{NoClasses: true}},
	{"no dominance", SearchOptions{NoDominance: true}},
	{"no run at once", SearchOptions{NoRunAtOnce: true}},
	{"no bound", SearchOptions{NoBound: true}},
	{"no cones", SearchOptions{NoCones: true}},
	{"no beam", SearchOptions{NoBeam: true}},
	{"classes only", SearchOptions{NoParts: true, NoDominance: true, NoRunAtOnce: true, NoBound: true, NoBeam: true}},
	{"all off", SearchOptions{NoParts: true, NoClasses: true, NoDominance: true, NoRunAtOnce: true, NoBound: true, NoBeam: true}},
}

func TestSearchAgainstBruteForce(t *testing.T) {
	infeasible, moved, shared := 0, 0, 0
	for seed := range uint64(2500) {
		p := randomProblem(seed, 8)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		traffic, peak := bruteForce(p)
		for _, sw := range switches {
			if seed%5 != 0 && sw.name != "all on" && sw.name != "no beam" && sw.name != "no parts" {
				continue
			}
			res := mustSearch(t, p, ordering.Traffic, sw.opts)
			switch {
			case traffic < 0:
				if res.Status != ordering.Infeasible {
					t.Fatalf("seed %d, %s: %s, brute force finds no order", seed, sw.name, res.Status)
				}
			case res.Status != ordering.Optimal || math.Abs(res.Cost-traffic) > 1e-9:
				t.Fatalf("seed %d, %s: %s, cost %v, brute force finds %v\n%+v", seed, sw.name, res.Status, res.Cost, traffic, p)
			}
			if res := mustSearch(t, p, ordering.Peak, sw.opts); res.Status != ordering.Optimal || res.Cost != float64(peak) {
				t.Fatalf("seed %d, %s: %s, peak %v, brute force finds %d\n%+v", seed, sw.name, res.Status, res.Cost, peak, p)
			}
		}
		if traffic < 0 {
			infeasible++
		}
		if traffic > 0 {
			moved++
		}
		for _, readers := range ordering.NewGraph(p).Readers {
			if len(readers) > 1 {
				shared++
				break
			}
		}
	}
	// The draw is worth something only if it has what is hard.
	t.Logf("%d infeasible, %d with moves, %d with shared outputs", infeasible, moved, shared)
	if infeasible < 50 || moved < 200 || shared < 200 {
		t.Errorf("%d infeasible problems, %d with moves, %d with shared outputs", infeasible, moved, shared)
	}
}
