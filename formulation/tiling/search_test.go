package tiling_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/tiling"
)

// random is a space whose bound is the least cost behind a prefix, less something, and the
// least cost of all.
func random(r *rand.Rand) (s tiling.Space, best float64) {
	total := 1
	var choices []int
	for range 1 + r.IntN(5) {
		choices = append(choices, 1+r.IntN(4))
		total *= choices[len(choices)-1]
	}
	s.Decisions = len(choices)
	s.Behind = func(prefix []int) (list []int) {
		for k := range choices[len(prefix)] {
			list = append(list, k)
		}
		return list
	}
	costs := make([]float64, total)
	best = math.Inf(1)
	for i := range costs {
		if costs[i] = float64(r.IntN(50)); r.IntN(4) == 0 {
			costs[i] = math.Inf(1)
		}
		best = min(best, costs[i])
	}
	behind := func(prefix []int) []float64 {
		lo, n := 0, total
		for d, k := range prefix {
			n /= choices[d]
			lo += k * n
		}
		return costs[lo : lo+n]
	}
	loose := r.Float64()
	s.Bound = func(prefix []int) float64 {
		least := math.Inf(1)
		for _, x := range behind(prefix) {
			least = min(least, x)
		}
		return least * loose
	}
	s.Cost = func(choices []int) (float64, error) { return behind(choices)[0], nil }
	return s, best
}

// The search finds what trying everything finds; stopped early, its bound holds and what it
// has is no worse than its start.
func TestSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 1000 {
		s, best := random(r)
		f, err := tiling.Search(context.Background(), s, solve.Options[[]int]{})
		if err != nil {
			t.Fatal(err)
		}
		want := milp.Optimal
		if math.IsInf(best, 1) {
			want = milp.Infeasible
		}
		if f.Objective != best || f.Bound != best || f.Status != want || f.Stop != milp.Complete {
			t.Fatalf("case %d: %+v, the least cost is %g", n, f, best)
		}
		if f.Choices == nil {
			continue
		}
		opt := solve.Options[[]int]{WorkLimit: 1 + r.Int64N(4)}
		worst := math.Inf(1)
		var start []int
		for len(start) < s.Decisions {
			start = append(start, r.IntN(len(s.Behind(start))))
		}
		if x, _ := s.Cost(start); !math.IsInf(x, 1) {
			opt.Start, worst = start, x
		}
		f, err = tiling.Search(context.Background(), s, opt)
		if err != nil || f.Bound > best || f.Objective < best || f.Objective > worst || f.Costs > opt.WorkLimit ||
			(f.Status == milp.Optimal) != (f.Stop == milp.Complete) {
			t.Fatalf("case %d: with %+v: %+v, %v; the least cost is %g", n, opt, f, err, best)
		}
	}
}

func TestSearchStops(t *testing.T) {
	s := tiling.Space{Decisions: 2, Behind: func([]int) []int { return []int{0, 1} },
		Bound: func([]int) float64 { return 1 }, Cost: func([]int) (float64, error) { return 2, nil }}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if f, err := tiling.Search(ctx, s, solve.Options[[]int]{}); err != nil || f.Stop != milp.StopCancelled ||
		f.Bound != 1 || f.Status != milp.Limit {
		t.Errorf("cancelled: %+v, %v", f, err)
	}
	for want, o := range map[string]solve.Options[[]int]{
		"start has 1 choices, expected 2": {Start: []int{0}},
		"work limit -1":                   {WorkLimit: -1},
	} {
		if _, err := tiling.Search(context.Background(), s, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	broken := errors.New("broken")
	s.Cost = func([]int) (float64, error) { return 0, broken }
	if _, err := tiling.Search(context.Background(), s, solve.Options[[]int]{}); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of a cost", err)
	}
}
