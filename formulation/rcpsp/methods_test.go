package rcpsp

import (
	"context"
	"encoding/csv"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// random makes a project of n activities, indexes not in topological order. With a larger
// after there is more precedence.
func random(rng *rand.Rand, n, resources, after int) *Project {
	p := &Project{Name: "random"}
	for range resources {
		p.Resources = append(p.Resources, Resource{Name: "r", Capacity: 1 + rng.Int64N(5)})
	}
	place := rng.Perm(n)
	p.Activities = make([]Activity, n)
	for i := range n {
		a := &p.Activities[place[i]]
		a.Duration = rng.Int64N(6)
		for _, r := range p.Resources {
			a.Demand = append(a.Demand, max(0, rng.Int64N(r.Capacity+2)-1))
		}
		for h := range i {
			if rng.IntN(n+1) < after {
				a.After = append(a.After, place[h])
			}
		}
	}
	return p
}

// bruteForce tries all orders in which activities can be put, each as early as
// possible: one of these schedules is best.
func bruteForce(p *Project) int64 {
	n := len(p.Activities)
	horizon := p.Horizon()
	used := make([][]int64, horizon+1)
	for t := range used {
		used[t] = make([]int64, len(p.Resources))
	}
	end := make([]int64, n)
	for i := range end {
		end[i] = -1
	}
	take := func(i int, s, sign int64) {
		for t := s; t < s+p.Activities[i].Duration; t++ {
			for k, d := range p.Activities[i].Demand {
				used[t][k] += sign * d
			}
		}
	}
	best := horizon
	var put func(left int, span int64)
	put = func(left int, span int64) {
		if left == 0 {
			best = min(best, span)
			return
		}
	next:
		for i, a := range p.Activities {
			if end[i] >= 0 {
				continue
			}
			s := int64(0)
			for _, h := range a.After {
				if end[h] < 0 {
					continue next
				}
				s = max(s, end[h])
			}
			for t := s; t < s+a.Duration; t++ {
				for k, d := range a.Demand {
					if used[t][k]+d > p.Resources[k].Capacity {
						s = t + 1
					}
				}
			}
			end[i] = s + a.Duration
			take(i, s, 1)
			put(left-1, max(span, end[i]))
			take(i, s, -1)
			end[i] = -1
		}
	}
	put(n, 0)
	return best
}

// serial is some schedule, to start from.
func serial(t *testing.T, p *Project) []int64 {
	t.Helper()
	order, err := p.Order()
	if err != nil {
		t.Fatal(err)
	}
	start := make([]int64, len(order))
	now := int64(0)
	for _, i := range order {
		start[i] = now
		now += p.Activities[i].Duration
	}
	return start
}

func TestListsAgainstBruteForce(t *testing.T) {
	best := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := random(rng, 1+rng.IntN(7), rng.IntN(4), 1)
		want := bruteForce(p)
		if b := p.Bound(); b > want {
			t.Fatalf("seed %d: bound %d, the optimum is %d", seed, b, want)
		}
		r, err := Solve(context.Background(), p, "list", Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if r.Makespan < want || r.Bound > want || p.Makespan(r.Start) != r.Makespan {
			t.Fatalf("seed %d: %+v, want %d", seed, r, want)
		}
		if r.Makespan == want {
			best++
		}
	}
	if best < 594 {
		t.Errorf("lists find the optimum of %d projects of 600", best)
	}
}

func solver(t testing.TB) milp.Solver {
	t.Helper()
	s, err := highs.New()
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	return s
}

func TestILPAgainstBruteForce(t *testing.T) {
	s := solver(t)
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := random(rng, 1+rng.IntN(6), rng.IntN(4), 1)
		want := bruteForce(p)
		for _, opt := range []Options{{}, {Start: serial(t, p)}} {
			opt.Solver = s
			r, err := ILP(context.Background(), p, opt)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if r.Status != milp.Optimal || r.Makespan != want || r.Bound != want {
				t.Fatalf("seed %d, %+v: %+v, want %d", seed, opt, r, want)
			}
			if err := p.Check(r.Start); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	p := &Project{Name: "p", Activities: []Activity{{Name: "a", Duration: -1}}}
	var input *InputError
	if _, err := Solve(context.Background(), p, "list", Options{}); !errors.As(err, &input) {
		t.Errorf("list: %v", err)
	}
	if _, err := ILP(context.Background(), p, Options{}); !errors.As(err, &input) {
		t.Errorf("ilp: %v", err)
	}
	p.Activities[0].Duration = 1
	if _, err := Solve(context.Background(), p, "list", Options{Start: []int64{-1}}); !errors.Is(err, ErrSchedule) {
		t.Errorf("list: %v", err)
	}
	if _, err := ILP(context.Background(), p, Options{Start: []int64{-1}}); !errors.Is(err, ErrSchedule) {
		t.Errorf("ilp: %v", err)
	}
	long := &Project{Name: "long", Resources: []Resource{{Name: "r", Capacity: 1}},
		Activities: []Activity{{Duration: 1 << 40, Demand: []int64{1}}, {Duration: 1 << 40, Demand: []int64{1}}}}
	var size *SizeError
	if _, err := ILP(context.Background(), long, Options{Start: []int64{0, 3 << 40}}); !errors.As(err, &size) {
		t.Errorf("ilp: %v", err)
	}
	if r, err := Solve(context.Background(), long, "list", Options{}); err != nil || r.Makespan != 2<<40 {
		t.Errorf("list: %+v, %v", r, err)
	}
}

func TestEmpty(t *testing.T) {
	r, err := Solve(context.Background(), &Project{}, "list", Options{})
	if err != nil || r.Status != milp.Optimal || r.Makespan != 0 || r.Start == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestJ30 compares with the published optima: schedules and bounds enclose them, and are
// not far from them.
func TestJ30(t *testing.T) {
	const folder = "../../../shared/data/rcpsp"
	f, err := os.Open(filepath.Join(folder, "j30_optimum.csv"))
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var optima, spans, bounds int64
	proven := 0
	for _, row := range rows[1:] {
		want, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		g, err := os.Open(filepath.Join(folder, "j30", row[0]+".sm"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParsePSPLIB(g, row[0])
		g.Close()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Solve(context.Background(), p, "list", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Makespan < want || r.Bound > want {
			t.Errorf("%s: %d with bound %d, the optimum is %d", row[0], r.Makespan, r.Bound, want)
		}
		if r.Status == milp.Optimal {
			proven++
		}
		optima, spans, bounds = optima+want, spans+r.Makespan, bounds+r.Bound
	}
	t.Logf("%d projects: optima sum up to %d, schedules to %d, bounds to %d; %d proven", len(rows)-1, optima,
		spans, bounds, proven)
	if spans*100 > optima*102 || bounds*100 < optima*78 {
		t.Errorf("optima sum up to %d, schedules to %d and bounds to %d", optima, spans, bounds)
	}
}
