package stitch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// table prices kernels at random, but the same each time: a launch, a share for each
// unit, a bonus for company, now and then no price at all.
type table struct {
	seed  int64
	harsh bool
}

func (t table) number(units []int, choice int) *rand.Rand {
	h := t.seed
	for _, u := range units {
		h = h*1000003 + int64(u) + 1
	}
	return rand.New(rand.NewSource(h*31 + int64(choice)))
}

func (t table) Choices(units []int) int { return 1 + t.number(units, -1).Intn(3) }

func (t table) Seconds(units []int, choice int) (float64, bool) {
	r := t.number(units, choice)
	if t.harsh && len(units) > 2 && r.Intn(3) == 0 {
		return 0, false
	}
	return 1e-5 * (1 + float64(len(units))*r.Float64()), true
}

func random(r *rand.Rand, n int, harsh bool) *Problem {
	p := &Problem{Units: n, Price: table{r.Int63(), harsh}}
	for v := 1; v < n; v++ {
		for u := range v {
			if r.Intn(n) < 2 {
				p.Arcs = append(p.Arcs, [2]int{u, v})
			}
		}
	}
	return p
}

// brute tries every way to part the units and leaves out those with a cycle among the
// parts. It shares nothing with the methods but the prices.
func brute(p *Problem, opt Options) float64 {
	least := math.Inf(1)
	part := make([]int, p.Units)
	var try func(u, parts int)
	try = func(u, parts int) {
		if u < p.Units {
			for part[u] = 0; part[u] <= parts; part[u]++ {
				try(u+1, max(parts, part[u]+1))
			}
			return
		}
		reach := make([][]bool, parts)
		for i := range reach {
			reach[i] = make([]bool, parts)
		}
		for _, a := range p.Arcs {
			if part[a[0]] != part[a[1]] {
				reach[part[a[0]]][part[a[1]]] = true
			}
		}
		for k := range parts {
			for i := range parts {
				for j := range parts {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		sum := 0.0
		for k := range parts {
			if reach[k][k] {
				return
			}
			var units []int
			for v, q := range part {
				if q == k {
					units = append(units, v)
				}
			}
			best := math.Inf(1)
			for c := range p.Price.Choices(units) {
				if s, ok := p.Price.Seconds(units, c); ok && (c == 0 || !opt.Rule) {
					best = min(best, s)
				}
			}
			sum += best
		}
		least = min(least, sum)
	}
	try(0, 0)
	return least
}

func TestAgainstBruteForce(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		solver = nil
	}
	for seed := range int64(60) {
		r := rand.New(rand.NewSource(seed))
		p := random(r, 1+r.Intn(6), seed%2 == 0)
		for _, opt := range []Options{{}, {Rule: true}} {
			want := brute(p, opt)
			got, err := Search(context.Background(), p, opt)
			if err != nil {
				t.Fatal(err)
			}
			answer(t, fmt.Sprintf("seed %d: search %+v", seed, opt), p, got, want)
			if solver == nil || seed >= 24 {
				continue
			}
			got, err = ilp(context.Background(), p,
				Options{Options: solve.Options[[]Kernel]{Solver: solver, TimeLimit: time.Minute}, Rule: opt.Rule})
			if err != nil {
				t.Fatal(err)
			}
			answer(t, fmt.Sprintf("seed %d: integer program %+v", seed, opt), p, got, want)
		}
	}
}

func answer(t *testing.T, what string, p *Problem, got *Result, want float64) {
	t.Helper()
	if math.IsInf(want, 1) {
		if got.Status != milp.Infeasible {
			t.Errorf("%s: %v, want infeasible", what, got.Status)
		}
		return
	}
	if got.Status != milp.Optimal || math.Abs(got.Seconds-want) > 1e-6*want {
		t.Errorf("%s: %v at %g s, want optimal at %g", what, got.Status, got.Seconds, want)
		return
	}
	if err := p.Check(got); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// The kernel of all units, at its best choice.
func TestWhole(t *testing.T) {
	for seed := range int64(20) {
		p := random(rand.New(rand.NewSource(seed)), 5, false)
		whole, err := Search(context.Background(), p, Options{Whole: true})
		if err != nil {
			t.Fatal(err)
		}
		want := math.Inf(1)
		for c := range p.Price.Choices([]int{0, 1, 2, 3, 4}) {
			s, _ := p.Price.Seconds([]int{0, 1, 2, 3, 4}, c)
			want = min(want, s)
		}
		if len(whole.Kernels) != 1 || whole.Seconds != want {
			t.Errorf("seed %d: %+v, want one kernel of %g s", seed, whole, want)
		}
		all, err := Search(context.Background(), p, Options{})
		if err != nil || all.Seconds > whole.Seconds {
			t.Errorf("seed %d: %+v, %v is worse than one kernel", seed, all, err)
		}
	}
}

// A start is kept if nothing better is found, and must be a plan.
func TestStart(t *testing.T) {
	p := random(rand.New(rand.NewSource(1)), 12, false)
	best, err := Search(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	opt := Options{}
	opt.Start = best.Kernels
	r, err := Search(gone, p, opt)
	if err != nil || r.Seconds != best.Seconds || r.Stop != milp.StopCancelled {
		t.Errorf("%+v, %v; want the start of %g s", r, err, best.Seconds)
	}
	opt.Start = []Kernel{{Units: []int{0}}}
	if _, err := Search(gone, p, opt); err == nil {
		t.Error("a start without most units is taken")
	}
}

// At a limit, and when the context ends, the rule's plan comes back with a bound and
// the reason.
func TestLimits(t *testing.T) {
	p := random(rand.New(rand.NewSource(1)), 12, false)
	p.Floor = 1e-6
	solver, _ := highs.New() // nil without it
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, end := context.WithTimeout(context.Background(), 0)
	defer end()
	for _, c := range []struct {
		name string
		ctx  context.Context
		opt  Options
		want milp.Stop
	}{
		{"cancelled", gone, Options{}, milp.StopCancelled},
		{"late", late, Options{}, milp.StopTime},
		{"downsets", context.Background(), Options{MaxDownsets: 3}, milp.StopMemory},
		{"prices", context.Background(), Options{Options: solve.Options[[]Kernel]{WorkLimit: 5}}, milp.StopWork},
	} {
		r, err := Search(c.ctx, p, c.opt)
		limited(t, c.name, p, r, err, c.want)
		if solver != nil {
			c.opt.Solver = solver
			r, err = ilp(c.ctx, p, c.opt)
			limited(t, c.name+" (integer program)", p, r, err, c.want)
		}
	}
}

func limited(t *testing.T, name string, p *Problem, r *Result, err error, want milp.Stop) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	rule, _ := p.Price.Seconds(list(p.all()), 0)
	if r.Status != milp.Feasible || r.Stop != want || r.Seconds != rule || r.Bound != p.Floor {
		t.Errorf("%s: %+v, want the rule's plan of %g s, a bound of %g and %v", name, r, rule, p.Floor, want)
	}
	if err := p.Check(r); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestCheckFindsFaults(t *testing.T) {
	p := &Problem{Units: 3, Arcs: [][2]int{{0, 1}, {1, 2}}, Price: table{1, false}}
	good, err := Search(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, kernels := range map[string][]Kernel{
		"lost":  {{[]int{0}, 0}},
		"twice": {{[]int{0}, 0}, {[]int{0, 1, 2}, 0}},
		"early": {{[]int{1}, 0}, {[]int{0, 2}, 0}},
		"cycle": {{[]int{0, 2}, 0}, {[]int{1}, 0}},
		"none":  {{[]int{0, 1, 2, 3}, 0}},
	} {
		if err := p.Check(&Result{Kernels: kernels}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	bad := *good
	bad.Seconds *= 2
	if p.Check(&bad) == nil {
		t.Error("a wrong cost is accepted")
	}
	bad = *good
	bad.Bound *= 2
	if p.Check(&bad) == nil {
		t.Error("a bound above the cost is accepted")
	}
}

func TestBadProblems(t *testing.T) {
	for _, p := range []*Problem{
		{}, {Units: 65, Price: table{}}, {Units: 2}, {Units: 2, Price: table{}, Arcs: [][2]int{{1, 0}}},
		{Units: 2, Price: table{}, Arcs: [][2]int{{0, 2}}}, {Units: 2, Price: table{}, Floor: math.NaN()},
	} {
		if _, err := Search(context.Background(), p, Options{}); !errors.Is(err, ErrProblem) {
			t.Errorf("%+v: %v", p, err)
		}
		if _, err := ilp(context.Background(), p, Options{}); !errors.Is(err, ErrProblem) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
