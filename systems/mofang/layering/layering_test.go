package layering

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/strict"
)

// random draws a graph whose layers cost a launch and the longest operator, or the
// sum where that is more than the device has.
func random(rng *rand.Rand, n int) *Problem {
	p := &Problem{Name: "random"}
	time, use := make([]float64, n), make([]float64, n)
	for i := range n {
		time[i], use[i] = float64(1+rng.IntN(9)), float64(1+rng.IntN(9))/10
		var after []int
		for h := range i {
			if rng.IntN(3) == 0 {
				after = append(after, h)
			}
		}
		p.After = append(p.After, after)
	}
	p.Price = func(set []int) float64 {
		longest, work := 0.0, 0.0
		for _, i := range set {
			longest = max(longest, time[i])
			work += time[i] * use[i]
		}
		return 1 + max(longest, work*1.1)
	}
	return p
}

// brute tries all chains by recursion on layers rather than on sets.
func brute(p *Problem, done uint64) float64 {
	n := len(p.After)
	if done == 1<<n-1 {
		return 0
	}
	best := math.Inf(1)
	for layer := uint64(1); layer < 1<<n; layer++ {
		if layer&done != 0 {
			continue
		}
		ok := true
		for _, i := range members(layer) {
			for _, h := range p.After[i] {
				ok = ok && (done|layer)>>h&1 != 0
			}
		}
		if ok {
			best = min(best, p.Price(members(layer))+brute(p, done|layer))
		}
	}
	return best
}

func TestExact(t *testing.T) {
	for seed := range uint64(200) {
		p := random(rand.New(rand.NewPCG(seed, 1)), int(1+seed%6))
		r, err := Solve(context.Background(), p, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := brute(p, 0); math.Abs(r.Seconds-want) > 1e-9 || r.Status != milp.Optimal {
			t.Fatalf("seed %d: %s %v, brute force %v", seed, r.Status, r.Seconds, want)
		}
		if err := p.checkProof(r); err != nil {
			t.Fatal(err)
		}
		for _, m := range []string{"greedy", "sequential"} {
			o, err := Solve(context.Background(), p, m, Options{})
			if err != nil || p.Check(o.Layers) != nil || o.Seconds < r.Seconds-1e-9 {
				t.Fatalf("seed %d: %s %+v, %v, optimum %v", seed, m, o, err, r.Seconds)
			}
		}
		// A proof of something shorter is none.
		for s := range r.Potentials {
			if s != 0 {
				r.Potentials[s] *= 1.01
			}
		}
		if p.checkProof(r) == nil {
			t.Fatalf("seed %d: potentials beyond the prices pass", seed)
		}
	}
}

func TestExactAgainstLinearProgram(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skip(err)
	}
	for seed := range uint64(10) {
		p := random(rand.New(rand.NewPCG(seed, 2)), 9)
		r, err := Solve(context.Background(), p, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		value, err := LP(context.Background(), solver, p)
		if err != nil || math.Abs(value-r.Seconds) > 1e-6 {
			t.Errorf("seed %d: linear program %v, %v, path %v", seed, value, err, r.Seconds)
		}
	}
}

// The last block of Inception-v3, without times: 180 down-closed sets with 4860
// transitions (IOS, MLSys 2021, Table 1).
func TestInceptionCounts(t *testing.T) {
	p := &Problem{Name: "inception", After: [][]int{nil, nil, {1}, {1}, nil, {4}, {5}, {5}, nil, {8}},
		Price: func(s []int) float64 { return 1 }}
	r, err := Solve(context.Background(), p, "exact", Options{})
	if err != nil || r.Sets != 180 || r.Transitions != 4860 || len(r.Layers) != 1 {
		t.Errorf("%d sets, %d transitions, %d layers, %v", r.Sets, r.Transitions, len(r.Layers), err)
	}
}

func TestLimits(t *testing.T) {
	p := random(rand.New(rand.NewPCG(3, 3)), 12)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	best, err := Solve(context.Background(), p, "exact", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ctx  context.Context
		opt  Options
		stop milp.Stop
	}{{ctx, Options{}, milp.StopCancelled}, {context.Background(), Options{WorkLimit: 5}, milp.StopWork}} {
		r, err := Solve(c.ctx, p, "exact", c.opt)
		if err != nil || r.Status != milp.Feasible || r.Stop != c.stop || r.Seconds < best.Seconds ||
			p.Check(r.Layers) != nil {
			t.Errorf("%+v, %v", r, err)
		}
		c.opt.Start = best.Layers
		if r, err = Solve(c.ctx, p, "exact", c.opt); err != nil || r.Seconds != best.Seconds {
			t.Errorf("with a start: %+v, %v", r, err)
		}
	}
}

func TestInputErrors(t *testing.T) {
	price := func([]int) float64 { return 1 }
	for _, c := range []struct {
		p      *Problem
		method string
		want   string
	}{
		{&Problem{Name: "p", After: [][]int{{0}}, Price: price}, "exact", "operator 0: comes after: found 0"},
		{&Problem{Name: "p", After: [][]int{nil}}, "exact", "price: found none"},
		{&Problem{Name: "p", After: make([][]int, 65), Price: price}, "exact", "found 65, expected at most 64"},
		{&Problem{Name: "p", After: [][]int{nil}, Price: price}, "best", `unknown method "best"`},
	} {
		if _, err := Solve(context.Background(), c.p, c.method, Options{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, expected %q", err, c.want)
		}
	}
	p := &Problem{Name: "p", After: [][]int{nil, {0}}, Price: price}
	for _, layers := range [][][]int{{{1}, {0}}, {{0}}, {{0}, {0}, {1}}, {{0, 1, 2}}} {
		if p.Check(layers) == nil {
			t.Errorf("%v passes", layers)
		}
	}
}

// LP solves the linear program of the package documentation and returns its value in
// seconds.
func LP(ctx context.Context, solver milp.Solver, p *Problem) (float64, error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	m := milp.New(p.Name)
	sets := p.downClosed(ctx, 5000)
	if sets == nil {
		return 0, strict.Error(p.Name, "down-closed sets", "more than 5000", "fewer for the linear program")
	}
	flow := make([][]milp.Term, len(sets))
	for w := range sets {
		for u := range w {
			if sets[u]&^sets[w] == 0 {
				x := m.Continuous(fmt.Sprintf("x[%x,%x]", sets[u], sets[w]), 0, 1, p.Price(members(sets[w]&^sets[u])))
				flow[u] = append(flow[u], x.Times(1))
				flow[w] = append(flow[w], x.Times(-1))
			}
		}
	}
	for i, terms := range flow {
		b := 0.0
		if i == 0 {
			b = 1
		} else if i == len(flow)-1 {
			b = -1
		}
		m.AddEQ(fmt.Sprintf("(1) %x", sets[i]), terms, b)
	}
	sol, err := solver.Solve(ctx, m, milp.Options{})
	if err != nil {
		return 0, err
	}
	if sol.Status != milp.Optimal {
		return 0, fmt.Errorf("%s: the linear program is %v, which no valid problem's is", p.Name, sol.Status)
	}
	return sol.Objective, nil
}
