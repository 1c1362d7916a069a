package ordering

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

func solver(t testing.TB) milp.Solver {
	t.Helper()
	s, err := highs.New()
	if errors.Is(err, highs.ErrUnavailable) {
		t.Skip("skipped: this build has no HiGHS")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type ilp func(context.Context, *Problem, Objective, Options) (*Result, error)

func mustSolve(t testing.TB, f ilp, s milp.Solver, p *Problem, objective Objective, opts Options) *Result {
	t.Helper()
	opts.Solver = s
	res, err := f(context.Background(), p, objective, opts)
	if err != nil {
		t.Fatalf("%s: %v\n%+v", p.Name, err, p)
	}
	if _, err := Check(p, res); err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return res
}

func TestILPAgainstBruteForce(t *testing.T) {
	s := solver(t)
	solved := 0
	for seed := range uint64(800) {
		p := randomProblem(seed, 6)
		traffic, peak := bruteForce(p)
		if traffic == 0 && seed%4 != 0 {
			continue // the start proves most of these
		}
		solved++
		if seed%3 == 0 && len(p.Subgraphs) > 1 {
			// Sizes with a common divisor, for (15).
			for k := range p.Subgraphs {
				p.Subgraphs[k].OutputBytes = 3
			}
			p.CapacityBytes = NewGraph(p).LargestNeed() + int64(seed%5)
			traffic, peak = bruteForce(p)
		}
		res := mustSolve(t, CountingILP, s, p, Traffic, Options{})
		switch {
		case traffic < 0:
			if res.Status != milp.Infeasible {
				t.Fatalf("seed %d: %s, brute force finds no order", seed, res.Status)
			}
		case res.Status != milp.Optimal || math.Abs(res.Cost-traffic) > 1e-9:
			t.Fatalf("seed %d: %s, cost %v, brute force finds %v\n%+v", seed, res.Status, res.Cost, traffic, p)
		}
		if seed%3 != 0 {
			continue
		}
		if res := mustSolve(t, CountingILP, s, p, Peak, Options{}); res.Status != milp.Optimal || res.Cost != float64(peak) {
			t.Fatalf("seed %d: %s, peak %v, brute force finds %d\n%+v", seed, res.Status, res.Cost, peak, p)
		}
	}
	t.Logf("%d problems", solved)
	if solved < 200 {
		t.Errorf("only %d problems", solved)
	}
}

// The files that the counting program proves in moments; the second one takes
// seconds and is left to BenchmarkCountingFiles.
func TestCountingFiles(t *testing.T) {
	s := solver(t)
	for _, c := range optima {
		if c.file == "chain-16-8-4-2-1.json" {
			continue
		}
		t.Run(c.file, func(t *testing.T) {
			res := mustSolve(t, CountingILP, s, load(t, c.file), Traffic,
				Options{TimeLimit: 20 * time.Second})
			if res.Status != milp.Optimal || res.Cost != c.traffic {
				t.Errorf("%s, cost %v, bound %v, want %v", res.Status, res.Cost, res.Bound, c.traffic)
			}
		})
	}
}

func BenchmarkCountingFiles(b *testing.B) {
	s := solver(b)
	for _, c := range optima {
		b.Run(c.file, func(b *testing.B) {
			p := load(b, c.file)
			for b.Loop() {
				res := mustSolve(b, CountingILP, s, p, Traffic, Options{TimeLimit: time.Minute})
				b.ReportMetric(100*res.Outcome().Gap(), "gap%")
			}
		})
	}
}

// A program that would be too large is not built: a note says so, and the start is the
// answer.
func TestILPTooLarge(t *testing.T) {
	notes := 0
	p := chainOf([]int{150, 150, 150, 150}, 1, 2)
	res := mustSolve(t, CountingILP, solver(t), p, Traffic, Options{Note: func(string) { notes++ }})
	if res.Status != milp.Feasible || res.Stop != milp.StopMemory || notes != 1 {
		t.Errorf("%s, %v, %d notes", res.Status, res.Stop, notes)
	}
}

// An interrupter cancels the context as soon as the solver has bettered its start.
type interrupter struct {
	milp.Solver
	cancel context.CancelFunc
}

func (s interrupter) Solve(ctx context.Context, m *milp.Model, opts milp.Options) (*milp.Solution, error) {
	start := math.Inf(1)
	if opts.Start != nil {
		start = m.Objective(opts.Start)
	}
	opts.Progress = func(p milp.Progress) {
		if p.Improved && p.Objective < start {
			s.cancel()
		}
	}
	return s.Solver.Solve(ctx, m, opts)
}

// When the context ends during a solve the answer is the solver's best order by then, and
// its bound.
func TestILPInterrupted(t *testing.T) {
	p := chainOf([]int{8, 4, 2, 1}, 0, 0)
	start, err := Fixed("start", NewGraph(p), NewGraph(p).Topological(), Traffic)
	if err != nil {
		t.Fatal(err)
	}
	best := mustSearch(t, p, Traffic, Options{})
	for _, method := range []ilp{CountingILP} {
		ctx, cancel := context.WithCancel(context.Background())
		res, err := method(ctx, p, Traffic,
			Options{Solver: interrupter{solver(t), cancel}})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Check(p, res); err != nil {
			t.Error(err)
		}
		if res.Cost >= start.Cost || res.Cost < best.Cost || res.Bound > best.Cost {
			t.Errorf("%s: cost %v, bound %v; the start costs %v, the best order %v", res.Method, res.Cost, res.Bound,
				start.Cost, best.Cost)
		}
		if want := map[bool]milp.Stop{true: milp.Complete,
			false: milp.StopCancelled}[res.Status == milp.Optimal]; res.Stop != want {
			t.Errorf("%s: %s, %v", res.Method, res.Status, res.Stop)
		}
		t.Logf("%s: %s, cost %v of %v to %v, bound %v", res.Method, res.Status, res.Cost, best.Cost, start.Cost, res.Bound)
	}
}

func TestILPLiterature(t *testing.T) {
	s := solver(t)
	for _, c := range literature {
		for _, method := range []ilp{CountingILP} {
			if res := mustSolve(t, method, s, graphOf(c.name, 0, c.ops), Peak, Options{}); res.Status != milp.Optimal ||
				res.Cost != float64(c.peak) {
				t.Errorf("%s, %s: %s, peak %v, published %d", c.name, res.Method, res.Status, res.Cost, c.peak)
			}
		}
	}
}
