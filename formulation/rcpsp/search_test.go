package rcpsp

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

var allOfJ30 = flag.Bool("j30", false, "solve all of ../../../shared/data/rcpsp/j30, which takes minutes")

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

func TestSearchAgainstBruteForce(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := random(rng, 1+rng.IntN(7), rng.IntN(4), 1)
		want := bruteForce(p)
		if b := p.Bounds(); b.Best() > want || b.Work > b.Energy || b.CriticalPath > b.Energy {
			t.Fatalf("seed %d: bounds %+v, the optimum is %d", seed, b, want)
		}
		for _, opt := range []SearchOptions{
			{}, {NoPairs: true}, {NoProbing: true}, {NoEnergy: true}, {NoLearnt: true},
			{Options: Options{Start: serial(t, p)}}, {NoPairs: true, NoProbing: true, NoLearnt: true, MaxLiterals: 1},
		} {
			r, err := Search(context.Background(), p, opt)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if r.Status != milp.Optimal || r.Makespan != want || r.Bound != want || p.Makespan(r.Start) != want {
				t.Fatalf("seed %d, %+v: %+v, want %d", seed, opt, r, want)
			}
			if err := p.Check(r.Start); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
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
		for _, opt := range []ILPOptions{{}, {Aggregate: true}, {NoCliques: true}, {Aggregate: true, NoCliques: true}, {Options: Options{Start: serial(t, p)}}} {
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

// Larger projects, where clauses are forgotten and restarts happen: all switches lead
// to one optimum.
func TestSwitchesAgree(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := random(rng, 12, 3, 1)
		for i := range p.Activities { // long and odd durations, as of picoseconds
			p.Activities[i].Duration *= 1_000_003
		}
		var want int64
		for n, opt := range []SearchOptions{{}, {NoPairs: true}, {NoProbing: true}, {NoEnergy: true}, {MaxLiterals: 2000}} {
			r, err := Search(context.Background(), p, opt)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				want = r.Makespan
			}
			if r.Status != milp.Optimal || r.Makespan != want {
				t.Errorf("seed %d, %+v: %v %d, want %d", seed, opt, r.Status, r.Makespan, want)
			}
		}
	}
}

// hard is a project that takes more than a few conflicts.
func hard() *Project {
	rng := rand.New(rand.NewPCG(1, 5))
	p := &Project{Name: "hard"}
	for range 3 {
		p.Resources = append(p.Resources, Resource{Name: "r", Capacity: 10})
	}
	for i := range 60 {
		a := Activity{Duration: 1 + rng.Int64N(10)}
		for range p.Resources {
			a.Demand = append(a.Demand, rng.Int64N(7))
		}
		if i > 3 {
			a.After = []int{rng.IntN(i)}
		}
		p.Activities = append(p.Activities, a)
	}
	return p
}

func TestLimits(t *testing.T) {
	p := hard()
	start := serial(t, p)
	a, err := Search(context.Background(), p, SearchOptions{Options: Options{WorkLimit: 300, Start: start}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != milp.Feasible || a.Bound >= a.Makespan || a.Makespan >= p.Makespan(start) || p.Check(a.Start) != nil || a.Conflicts != 300 || a.Stop != milp.StopWork {
		t.Errorf("%+v", a)
	}
	b, err := Search(context.Background(), p, SearchOptions{Options: Options{WorkLimit: 300, Start: start}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Seconds, b.Seconds = 0, 0; !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, then %+v", a, b)
	}
}

func TestBadInput(t *testing.T) {
	p := &Project{Name: "p", Activities: []Activity{{Name: "a", Duration: -1}}}
	var input *InputError
	if _, err := Search(context.Background(), p, SearchOptions{}); !errors.As(err, &input) {
		t.Errorf("search: %v", err)
	}
	if _, err := ILP(context.Background(), p, ILPOptions{}); !errors.As(err, &input) {
		t.Errorf("ilp: %v", err)
	}
	p.Activities[0].Duration = 1
	if _, err := Search(context.Background(), p, SearchOptions{Options: Options{Start: []int64{-1}}}); !errors.Is(err, ErrSchedule) {
		t.Errorf("search: %v", err)
	}
	if _, err := ILP(context.Background(), p, ILPOptions{Options: Options{Start: []int64{-1}}}); !errors.Is(err, ErrSchedule) {
		t.Errorf("ilp: %v", err)
	}
	long := &Project{Name: "long", Resources: []Resource{{Name: "r", Capacity: 1}},
		Activities: []Activity{{Duration: 1 << 40, Demand: []int64{1}}, {Duration: 1 << 40, Demand: []int64{1}}}}
	var size *SizeError
	if _, err := ILP(context.Background(), long, ILPOptions{Options: Options{Start: []int64{0, 3 << 40}}}); !errors.As(err, &size) {
		t.Errorf("ilp: %v", err)
	}
	if r, err := Search(context.Background(), long, SearchOptions{}); err != nil || r.Makespan != 2<<40 {
		t.Errorf("search: %+v, %v", r, err)
	}
}

func TestEmpty(t *testing.T) {
	r, err := Search(context.Background(), &Project{}, SearchOptions{})
	if err != nil || r.Status != milp.Optimal || r.Makespan != 0 || r.Start == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestJ30 compares with the published optima: a selection, and with -j30 all, with the
// times.
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
	within := [3]int{}
	limits := [3]time.Duration{time.Second, 10 * time.Second, time.Minute}
	for n, row := range rows[1:] {
		if !*allOfJ30 && n%13 != 3 {
			continue
		}
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
		begin := time.Now()
		r, err := Search(context.Background(), p, SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		if r.Status != milp.Optimal || r.Makespan != want || p.Check(r.Start) != nil {
			t.Errorf("%s: %v %d, want optimal %d", row[0], r.Status, r.Makespan, want)
		}
		for k, l := range limits {
			if took <= l {
				within[k]++
			}
		}
		if *allOfJ30 {
			t.Logf("%s: %d, %d conflicts, %.2f s", row[0], r.Makespan, r.Conflicts, took.Seconds())
		}
	}
	if *allOfJ30 {
		t.Logf("of %d, within 1, 10 and 60 s of wall-clock time: %v", len(rows)-1, within)
	}
}
