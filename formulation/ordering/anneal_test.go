package ordering

import (
	"math"
	"testing"
)

// What annealing alone finds keeps the rules (Search checks it), is no better than the optimum by
// brute force, and reaches it nearly always on small problems; with it, the proof is the same.
func TestAnnealAgainstBruteForce(t *testing.T) {
	reached, all := 0, 0
	for seed := range uint32(150) {
		p := randomProblem(uint64(seed), 7)
		if NewGraph(p).Feasible() != nil {
			continue
		}
		want, _ := bruteForce(p)
		alone := mustSearch(t, p, Traffic, SearchOptions{Options: Options{WorkLimit: 1, Seed: seed}, NoBeam: true, NoCones: true, NoWindows: true, Anneal: 2000})
		if alone.Cost < want-1e-9 {
			t.Fatalf("seed %d: annealing %v, brute force %v", seed, alone.Cost, want)
		}
		all++
		if alone.Cost <= want+1e-9 {
			reached++
		}
		if both := mustSearch(t, p, Traffic, SearchOptions{NoBeam: true, Anneal: 100}); math.Abs(both.Cost-want) > 1e-9 {
			t.Errorf("seed %d: annealing and proof %v, brute force %v", seed, both.Cost, want)
		}
	}
	if all < 50 || reached < all*9/10 {
		t.Errorf("annealing reached %d of %d optima", reached, all)
	}
}

// Four sub-graphs of 16 instances with halos, for which the beam knows 290: the same from the same seed.
func TestAnnealHalos(t *testing.T) {
	p := chainOf([]int{16, 16, 16, 16}, 1, 2)
	first := mustSearch(t, p, Traffic, SearchOptions{Options: Options{WorkLimit: 100}})
	if again := mustSearch(t, p, Traffic, SearchOptions{Options: Options{WorkLimit: 100}}); first.Cost > 200 || again.Cost != first.Cost {
		t.Errorf("%v, then %v, want twice the same, at most 200", first.Cost, again.Cost)
	}
	if none := mustSearch(t, p, Traffic, SearchOptions{Options: Options{WorkLimit: 100}, NoAnneal: true}); none.Cost <= first.Cost {
		t.Errorf("%v without annealing, %v with it", none.Cost, first.Cost)
	}
}
