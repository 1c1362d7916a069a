package exact_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/tests/benchmarks"
)

// The kinds of core that are searched cost what the least of all choices costs; the greedy ones cost no less.
func TestKindsBruteForce(t *testing.T) {
	by, err := recipes.Lookup("l1")
	if err != nil {
		t.Fatal(err)
	}
	worse, worst, several := 0, 1.0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		spec, g := benchmarks.Mixed(t, r)
		d, err := by.With("kinds", exact.Kinds()[0]).Draft(t.Context(), g, spec, scheduler.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p, err := exact.KindProblem(d)
		if err != nil {
			t.Fatal(err)
		}
		cost := func(choice []int) float64 {
			sum := 0.0
			for i := range p.Nodes {
				sum += p.Nodes[i].Cost[choice[i]]
			}
			for _, e := range p.Edges {
				sum += e.Cost[choice[e.From]][choice[e.To]]
			}
			return sum
		}
		least, choice := math.Inf(1), make([]int, len(p.Nodes))
		for {
			least = min(least, cost(choice))
			i := 0
			for ; i < len(choice); i++ {
				if choice[i]++; choice[i] < len(p.Nodes[i].Labels) {
					break
				}
				choice[i] = 0
			}
			if i == len(choice) {
				break
			}
		}
		own, used := make([]int, len(p.Nodes)), map[int]bool{}
		i := 0
		for _, kinds := range d.LayerKinds {
			for _, k := range kinds {
				for l, label := range p.Nodes[i].Labels {
					if exact.KindOf(label) == k {
						own[i] = l
					}
				}
				used[k] = true
				i++
			}
		}
		if len(used) > 1 {
			several++
		}
		if got := cost(own); math.Abs(got-least) > 1e-9*least {
			t.Errorf("seed %d: %g s, the least is %g s", seed, got, least)
		}
		for i := range p.Nodes {
			own[i] = 0
			for l, c := range p.Nodes[i].Cost {
				if c < p.Nodes[i].Cost[own[i]] {
					own[i] = l
				}
			}
		}
		if loss := cost(own) / least; loss > 1+1e-9 {
			worse, worst = worse+1, max(worst, loss)
		} else if loss < 1-1e-9 {
			t.Errorf("seed %d: greedy costs %g of the least", seed, loss)
		}
	}
	if worse == 0 || several < 100 {
		t.Errorf("greedy is worse in %d cases, and several kinds work in %d: these say nothing", worse, several)
	}
	t.Logf("several kinds work in %d; greedy is worse in %d of 1000, at most %.2f times", several, worse, worst)
}
