package rcpsp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSchedulesKeepTheRules(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := random(rng, 1+rng.IntN(25), rng.IntN(4), 2)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		bound := p.Bound()
		check := func(name string, start []int64) {
			if err := p.Check(start); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			if got := p.Makespan(start); got < bound {
				t.Fatalf("seed %d, %s: makespan %d is below the bound %d", seed, name, got, bound)
			}
		}
		check("in order", InOrder(p))
		shortest := p.Makespan(InOrder(p))
		for r := listed; r < numRules; r++ {
			list := listBy(p, r)
			for name, start := range map[string][]int64{"serial": serially(p, list), "parallel": parallel(p, list)} {
				name = fmt.Sprint(name, " ", r)
				check(name, start)
				better := justify(p, start)
				check(name+" justified", better)
				if p.Makespan(better) > p.Makespan(start) {
					t.Errorf("seed %d, %s: justified from %d to %d", seed, name, p.Makespan(start), p.Makespan(better))
				}
				shortest = min(shortest, p.Makespan(better))
			}
		}
		best := Best(context.Background(), p, ListOptions{Samples: 10, Seed: seed})
		check("best", best)
		if p.Makespan(best) > shortest {
			t.Errorf("seed %d: best is %d, a part of it %d", seed, p.Makespan(best), shortest)
		}
		if again := Best(context.Background(), p, ListOptions{Samples: 10, Seed: seed}); !slices.Equal(best, again) {
			t.Errorf("seed %d: %v, then %v", seed, best, again)
		}
	}
}

// Two units: the first command of the second waits long, and in order so does the one
// behind it, which could go at once.
func TestInOrderHoldsBack(t *testing.T) {
	unit := func(k int) []int64 { d := []int64{0, 0}; d[k] = 1; return d }
	p := &Project{
		Resources: []Resource{{Name: "dma", Capacity: 1}, {Name: "mme", Capacity: 1}},
		Activities: []Activity{
			{Name: "load", Duration: 5, Demand: unit(0)},
			{Name: "multiply", Duration: 2, Demand: unit(1), After: []int{0}},
			{Name: "independent", Duration: 4, Demand: unit(1)},
		},
	}
	if got, want := InOrder(p), []int64{0, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("in order: %v, want %v", got, want)
	}
	if got, want := parallel(p, listBy(p, listed)), []int64{0, 5, 0}; !slices.Equal(got, want) {
		t.Errorf("parallel: %v, want %v", got, want)
	}
	if got, want := serially(p, listBy(p, listed)), []int64{0, 5, 0}; !slices.Equal(got, want) {
		t.Errorf("serial: %v, want %v", got, want)
	}
}

func TestLists(t *testing.T) {
	p := &Project{Activities: []Activity{
		{Name: "a", Duration: 3}, {Name: "b", Duration: 1}, {Name: "c", Duration: 5, After: []int{1}},
		{Name: "d", Duration: 1, After: []int{1}},
	}}
	for rule, want := range map[rule][]int{
		listed:         {0, 1, 2, 3},
		latestFinish:   {1, 0, 2, 3}, // tails 0, 5, 0, 0
		latestStart:    {1, 2, 0, 3}, // 3, 6, 5, 1
		mostSuccessors: {1, 0, 2, 3},
		greatestRank:   {1, 2, 0, 3}, // 3, 7, 5, 1
		shortestFirst:  {1, 3, 0, 2},
	} {
		if got := listBy(p, rule); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", rule, got, want)
		}
	}
}
