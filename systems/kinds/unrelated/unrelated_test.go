package unrelated_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	. "github.com/dsasched/dsasched/systems/kinds/unrelated"
)

// draw is a random problem of up to so many jobs, on some machines, that may wait for few or many others.
func draw(r *rand.Rand, most int) *Problem {
	p := &Problem{Name: "random", Machines: 1 + r.IntN(3)}
	dense, passing := r.IntN(4), 1+r.Int64N(20)
	for j := range 1 + r.IntN(most) {
		x := Job{Name: fmt.Sprint(j)}
		for range p.Machines {
			x.Picos = append(x.Picos, r.Int64N(10))
		}
		x.Picos[r.IntN(p.Machines)] = 1 + r.Int64N(10)
		for i := range j {
			if r.IntN(4) < dense && (i > j-4 || r.IntN(8) == 0) {
				x.After = append(x.After, Arc{i, r.Int64N(passing)})
			}
		}
		p.Jobs = append(p.Jobs, x)
	}
	return p
}

// brute is the least makespan over all orders and machines.
func brute(p *Problem) int64 {
	n := len(p.Jobs)
	machine, end, done, free := make([]int, n), make([]int64, n), make([]bool, n), make([]int64, p.Machines)
	best := int64(math.MaxInt64)
	var visit func(left int, most int64)
	visit = func(left int, most int64) {
		if left == 0 {
			best = min(best, most)
			return
		}
	jobs:
		for j := range n {
			if done[j] {
				continue
			}
			for _, a := range p.Jobs[j].After {
				if !done[a.Job] {
					continue jobs
				}
			}
			for m := range p.Machines {
				if p.Jobs[j].Picos[m] == 0 {
					continue
				}
				was, t := free[m], free[m]
				for _, a := range p.Jobs[j].After {
					from := end[a.Job]
					if machine[a.Job] != m {
						from += a.Picos
					}
					t = max(t, from)
				}
				machine[j], end[j], done[j], free[m] = m, t+p.Jobs[j].Picos[m], true, t+p.Jobs[j].Picos[m]
				visit(left-1, max(most, end[j]))
				done[j], free[m] = false, was
			}
		}
	}
	visit(n, 0)
	return best
}

// The search finds the optimum of all orders and machines, and bounds hold.
func TestSearchAgainstAll(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 200
	}
	blocks, lost, most, sum := 0, 0, 1.0, 0.0
	for seed := range uint64(cases) {
		p := draw(rand.New(rand.NewPCG(seed, 1)), 6)
		want := brute(p)
		for _, method := range []string{"search", "greedy"} {
			r, err := Solve(t.Context(), p, method, Options{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got, err := p.Check(r.Plan); err != nil || got != r.Picos {
				t.Fatalf("seed %d, %s: makespan %d, said to be %d: %v", seed, method, got, r.Picos, err)
			}
			if r.Bound > want {
				t.Errorf("seed %d, %s: bound %d, the least makespan is %d", seed, method, r.Bound, want)
			}
			switch {
			case method == "search" && (r.Picos != want || r.Status != milp.Optimal):
				t.Errorf("seed %d: %d and %v, the least makespan is %d", seed, r.Picos, r.Status, want)
			case method == "search" && r.Blocks > 1:
				blocks++
			case method == "greedy":
				loss := float64(r.Picos) / float64(want)
				if sum += math.Log(loss); r.Picos > want {
					lost++
				}
				most = max(most, loss)
			}
		}
	}
	if blocks < cases/10 || lost < cases/10 {
		t.Errorf("%d problems of several blocks and %d in which greedy loses, of %d", blocks, lost, cases)
	}
	t.Logf("greedy loses in %d of %d, %.3f times in the mean, %.3f at most; %d of several blocks", lost, cases,
		math.Exp(sum/float64(cases)), most, blocks)
}

// The integer program has the same optimum as the search, of more jobs than all orders can be tried of.
func TestProgramAgainstSearch(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skipf("skipped: this build has no HiGHS: %v", err)
	}
	for seed := range uint64(40) {
		p := draw(rand.New(rand.NewPCG(seed, 2)), 9)
		if seed%2 == 1 { // from picoseconds to microseconds
			for j := range p.Jobs {
				for m := range p.Jobs[j].Picos {
					p.Jobs[j].Picos[m] *= 1e6
				}
				for k := range p.Jobs[j].After {
					p.Jobs[j].After[k].Picos *= 1e6
				}
			}
		}
		a, err := Solve(t.Context(), p, "search", Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Solve(t.Context(), p, "ilp", Options{Solver: solver})
		if err != nil {
			t.Fatal(err)
		}
		if a.Picos != b.Picos || b.Bound > b.Picos || b.Status != milp.Optimal {
			t.Errorf("seed %d: %d by search, %d by the program (bound %d, %v)", seed, a.Picos, b.Picos, b.Bound, b.Status)
		}
	}
}

// What ends a search early leaves a plan and a bound that hold.
func TestLimits(t *testing.T) {
	p, r := &Problem{Name: "large", Machines: 3}, rand.New(rand.NewPCG(23, 3))
	for range 200 {
		p.Jobs = append(p.Jobs, Job{Picos: []int64{1 + r.Int64N(99), 1 + r.Int64N(99), 1 + r.Int64N(99)}})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, x := range []struct {
		ctx  context.Context
		opt  Options
		stop milp.Stop
	}{{t.Context(), Options{WorkLimit: 10}, milp.StopWork}, {ended, Options{}, milp.StopCancelled}} {
		r, err := Solve(x.ctx, p, "search", x.opt)
		if err != nil || r.Stop != x.stop || r.Bound > r.Picos {
			t.Errorf("%v: %+v", err, r)
		}
		if got, err := p.Check(r.Plan); err != nil || got != r.Picos {
			t.Errorf("makespan %d, said to be %d: %v", got, r.Picos, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for want, p := range map[string]*Problem{
		"machines: found 0":           {},
		"job 0: times: found 1":       {Machines: 2, Jobs: []Job{{Picos: []int64{1}}}},
		"job 0: times: found none":    {Machines: 1, Jobs: []Job{{Picos: []int64{0}}}},
		"job 0: time: found -1":       {Machines: 1, Jobs: []Job{{Picos: []int64{-1}}}},
		"job 0: comes after: found 0": {Machines: 1, Jobs: []Job{{Picos: []int64{1}, After: []Arc{{0, 1}}}}},
		"job 1: passing: found -1": {Machines: 1, Jobs: []Job{{Picos: []int64{1}},
			{Picos: []int64{1}, After: []Arc{{0, -1}}}}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	p := &Problem{Machines: 2, Jobs: []Job{{Picos: []int64{2, 0}}, {Picos: []int64{1, 1}, After: []Arc{{0, 3}}}}}
	for want, x := range map[string]*Plan{
		"plan: found 1 machines":  {[]int{0}, []int64{0}},
		"job 0: machine: found 1": {[]int{1, 1}, []int64{0, 9}},
		"job 1: start: found 4":   {[]int{0, 1}, []int64{0, 4}},
		"job 1: start: found 1":   {[]int{0, 0}, []int64{0, 1}},
	} {
		if _, err := p.Check(x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}
