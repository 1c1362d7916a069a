//go:build cgo

package highs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lanl "github.com/lanl/highs"

	"github.com/dsasched/dsasched/formulation/milp"
)

var inf = math.Inf(1)

func solve(t *testing.T, m *milp.Model, opts milp.Options) *milp.Solution {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	sol, err := s.Solve(context.Background(), m, opts)
	if err != nil {
		t.Fatal(err)
	}
	if sol.Status.HasValues() {
		if err := m.Check(sol.Values, 1e-6); err != nil {
			t.Errorf("the %v solution breaks the model: %v", sol.Status, err)
		}
		for j, x := range sol.Values {
			if v := m.Variable(milp.Var(j)); v.Type.Integral() && x != math.Trunc(x) {
				t.Errorf("integer variable %q has value %v", v.Name, x)
			}
		}
		if f := m.Objective(sol.Values); f != sol.Objective {
			t.Errorf("Objective = %g, but f(Values) = %g", sol.Objective, f)
		}
	}
	if sol.Bound > sol.Objective {
		t.Errorf("bound %g is on the wrong side of objective %g", sol.Bound, sol.Objective)
	}
	return sol
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(a))
}

func TestKnapsack(t *testing.T) {
	value := []float64{92, 57, 49, 68, 60, 43, 67, 84, 87, 72}
	weight := []float64{23, 31, 29, 44, 53, 38, 63, 85, 89, 82}
	const capacity = 165

	// Brute force over the 2^10 subsets.
	best, bestSet := 0.0, 0
	for set := range 1 << len(value) {
		v, w := 0.0, 0.0
		for i := range value {
			if set>>i&1 == 1 {
				v, w = v+value[i], w+weight[i]
			}
		}
		if w <= capacity && v > best {
			best, bestSet = v, set
		}
	}

	m := milp.New("knapsack")
	terms := make([]milp.Term, len(value))
	for i := range value {
		terms[i] = m.Binary(fmt.Sprintf("take%d", i), -value[i]).Times(weight[i])
	}
	m.AddLE("capacity", terms, capacity)
	sol := solve(t, m, milp.Options{})
	if sol.Status != milp.Optimal || sol.Objective != -best || !near(sol.Bound, -best) {
		t.Fatalf("got %v, objective %g, bound %g; brute force finds %g", sol.Status, sol.Objective, sol.Bound, -best)
	}
	for i := range value {
		if got, want := sol.Int(milp.Var(i)), bestSet>>i&1; got != want {
			t.Errorf("take%d = %d, want %d", i, got, want)
		}
	}
}

// TestLPDuality solves a product mix and its hand-made dual. By weak duality
// the two optima can only meet if both are right.
func TestLPDuality(t *testing.T) {
	// minimise -3x - 5y; x <= 4, 2y <= 12, 3x + 2y <= 18, x, y >= 0: -36 at (2, 6).
	p := milp.New("primal")
	x := p.Continuous("x", 0, inf, -3)
	y := p.Continuous("y", 0, inf, -5)
	p.AddLE("plant1", []milp.Term{x.Times(1)}, 4)
	p.AddLE("plant2", []milp.Term{y.Times(2)}, 12)
	p.AddLE("plant3", []milp.Term{x.Times(3), y.Times(2)}, 18)
	primal := solve(t, p, milp.Options{})

	// minimise 4a + 12b + 18c; a + 3c >= 3, 2b + 2c >= 5, a, b, c >= 0.
	d := milp.New("dual")
	a := d.Continuous("a", 0, inf, 4)
	b := d.Continuous("b", 0, inf, 12)
	c := d.Continuous("c", 0, inf, 18)
	d.AddGE("x", []milp.Term{a.Times(1), c.Times(3)}, 3)
	d.AddGE("y", []milp.Term{b.Times(2), c.Times(2)}, 5)
	dual := solve(t, d, milp.Options{})

	for sign, sol := range map[float64]*milp.Solution{-1: primal, 1: dual} {
		if sol.Status != milp.Optimal || !near(sol.Objective, sign*36) || sol.Bound != sol.Objective {
			t.Errorf("got %+v, want optimum %g", sol, sign*36)
		}
	}
	if !near(primal.Value(x), 2) || !near(primal.Value(y), 6) {
		t.Errorf("(x, y) = (%g, %g), want (2, 6)", primal.Value(x), primal.Value(y))
	}
	// Complementary slackness: plant1 is not full, so its price is 0.
	if !near(dual.Value(a), 0) || !near(dual.Value(b), 1.5) || !near(dual.Value(c), 1) {
		t.Errorf("prices %v, want 0, 1.5, 1", dual.Values)
	}
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		name  string
		build func(m *milp.Model)
		want  milp.Solution // Values are compared if not nil
	}{
		{"infeasible integers", func(m *milp.Model) {
			// 2x + 2y = 3 has rational solutions only.
			x, y := m.Integer("x", 0, 5, 1), m.Integer("y", 0, 5, 1)
			m.AddEQ("odd", []milp.Term{x.Times(2), y.Times(2)}, 3)
		}, milp.Solution{Status: milp.Infeasible, Objective: inf, Bound: inf}},
		{"infeasible", func(m *milp.Model) {
			x := m.Continuous("x", 0, 1, 1)
			m.AddGE("two", milp.Sum(x), 2)
		}, milp.Solution{Status: milp.Infeasible, Objective: inf, Bound: inf}},
		{"unbounded", func(m *milp.Model) {
			x, y := m.Continuous("x", 0, inf, -1), m.Continuous("y", 0, inf, 0)
			m.AddGE("row", []milp.Term{x.Times(1), y.Times(1)}, 1)
		}, milp.Solution{Status: milp.Unbounded, Objective: -inf, Bound: -inf}},
		{"no variables", func(m *milp.Model) {
			m.AddLE("nothing", nil, 0)
		}, milp.Solution{Status: milp.Optimal}},
		{"no variables, infeasible", func(m *milp.Model) {
			m.AddGE("something", nil, 1)
		}, milp.Solution{Status: milp.Infeasible, Objective: inf, Bound: inf}},
		{"no constraints", func(m *milp.Model) {
			m.Integer("x", -3, 3.5, -2)
		}, milp.Solution{Status: milp.Optimal, Objective: -6, Bound: -6, Values: []float64{3}}},
		{"constraints without terms only", func(m *milp.Model) {
			m.Binary("x", -1)
			m.AddRange("empty", -1, nil, 1)
		}, milp.Solution{Status: milp.Optimal, Objective: -1, Bound: -1, Values: []float64{1}}},
		{"constraints without terms between others", func(m *milp.Model) {
			x, y := m.Continuous("x", 0, 9, -1), m.Continuous("y", 0, 9, -1)
			m.AddLE("x", milp.Sum(x), 1)
			m.AddLE("empty", nil, 4)
			m.AddLE("y", milp.Sum(y), 2)
			m.AddLE("empty at the end", nil, 5)
		}, milp.Solution{Status: milp.Optimal, Objective: -3, Bound: -3, Values: []float64{1, 2}}},
		{"a constraint without terms that fails", func(m *milp.Model) {
			x := m.Continuous("x", 0, 9, 1)
			m.AddGE("empty", nil, 4)
			m.AddLE("x", milp.Sum(x), 1)
		}, milp.Solution{Status: milp.Infeasible, Objective: inf, Bound: inf}},
		{"ranges and free variables", func(m *milp.Model) {
			x, y := m.Continuous("x", -inf, inf, 1), m.Integer("y", -10, 10, 1)
			m.AddRange("range", -4.5, []milp.Term{x.Times(1), y.Times(-1)}, 4.5)
			m.AddGE("floor", []milp.Term{x.Times(2)}, -7)
		}, milp.Solution{Status: milp.Optimal, Objective: -11.5, Bound: -11.5, Values: []float64{-3.5, -8}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := milp.New(test.name)
			test.build(m)
			got := solve(t, m, milp.Options{})
			if got.Status != test.want.Status || !near(got.Objective, test.want.Objective) || !near(got.Bound, test.want.Bound) {
				t.Errorf("got %v, objective %g, bound %g; want %v, %g, %g", got.Status, got.Objective, got.Bound,
					test.want.Status, test.want.Objective, test.want.Bound)
			}
			if got.Status.HasValues() != (got.Values != nil) {
				t.Errorf("status %v with values %v", got.Status, got.Values)
			}
			if test.want.Values != nil && !slices.EqualFunc(got.Values, test.want.Values, near) {
				t.Errorf("values %v, want %v", got.Values, test.want.Values)
			}
		})
	}
}

// TestUnboundedIntegers stands alone because HiGHS may or may not tell the
// two cases apart.
func TestUnboundedIntegers(t *testing.T) {
	m := milp.New("unbounded")
	x, y := m.Integer("x", 0, inf, -1), m.Integer("y", 0, inf, 0)
	m.AddLE("row", []milp.Term{x.Times(1), y.Times(-1)}, 3)
	sol := solve(t, m, milp.Options{})
	if sol.Status != milp.Unbounded && sol.Status != milp.InfeasibleOrUnbounded {
		t.Errorf("got %+v", sol)
	}
	// With a start, it can't be infeasible.
	sol = solve(t, m, milp.Options{Start: []float64{0, 0}})
	if sol.Status != milp.Unbounded || !math.IsInf(sol.Objective, -1) || !math.IsInf(sol.Bound, -1) {
		t.Errorf("with a start: got %+v", sol)
	}
}

// randomModel has up to 5 integer variables of a few values each, so that it
// can be enumerated.
func randomModel(r *rand.Rand) *milp.Model {
	m := milp.New("random")
	n := 1 + r.IntN(5)
	for j := range n {
		name, cost := fmt.Sprintf("x%d", j), float64(r.IntN(21)-10)
		if r.IntN(2) == 0 {
			m.Binary(name, cost)
		} else {
			lo := r.IntN(5) - 3
			m.Integer(name, float64(lo), float64(lo+r.IntN(4)), cost)
		}
	}
	for i := range r.IntN(5) {
		var terms []milp.Term
		for range r.IntN(2 * n) { // variables may repeat, or none appear
			terms = append(terms, milp.Var(r.IntN(n)).Times(float64(r.IntN(11)-5)))
		}
		lo := float64(r.IntN(20) - 12)
		hi := lo + float64(r.IntN(12))
		switch r.IntN(4) {
		case 0:
			lo = -inf
		case 1:
			hi = inf
		}
		m.AddRange(fmt.Sprintf("c%d", i), lo, terms, hi)
	}
	return m
}

// enumerate is the optimum by trying every point.
func enumerate(m *milp.Model) (best float64, feasible bool) {
	best = inf
	x := make([]float64, m.NumVars())
	var try func(j int)
	try = func(j int) {
		if j < len(x) {
			v := m.Variable(milp.Var(j))
			for x[j] = v.Lo; x[j] <= v.Hi; x[j]++ {
				try(j + 1)
			}
			return
		}
		if m.Check(x, 0) == nil {
			feasible = true
			best = math.Min(best, m.Objective(x))
		}
	}
	try(0)
	return best, feasible
}

func TestRandomAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	infeasible := 0
	for k := range 300 {
		m := randomModel(r)
		want, feasible := enumerate(m)
		got := solve(t, m, milp.Options{Seed: int32(k)})
		switch {
		case !feasible:
			infeasible++
			if got.Status != milp.Infeasible {
				t.Fatalf("model %d: got %+v, enumeration finds nothing", k, got)
			}
		case got.Status != milp.Optimal || !near(got.Objective, want) || !near(got.Bound, want):
			t.Fatalf("model %d (%v): got %+v, enumeration finds %g", k, m, got, want)
		}
	}
	if infeasible < 30 || infeasible > 270 {
		t.Errorf("%d of 300 random models are infeasible: the sample is lopsided", infeasible)
	}
}

// hard is a market-split problem, for which branch and bound takes very long:
// many binaries, few equations with large coefficients, slack to be minimised.
func hard(n, rows int) *milp.Model {
	r := rand.New(rand.NewPCG(7, 7))
	m := milp.New("market split")
	for j := range n {
		m.Binary(fmt.Sprintf("x%d", j), 0)
	}
	for i := range rows {
		sum := 0.0
		var terms []milp.Term
		for j := range n {
			a := float64(r.IntN(100))
			sum += a
			terms = append(terms, milp.Var(j).Times(a))
		}
		over := m.Continuous(fmt.Sprintf("over%d", i), 0, inf, 1)
		under := m.Continuous(fmt.Sprintf("under%d", i), 0, inf, 1)
		terms = append(terms, under.Times(1), over.Times(-1))
		m.AddEQ(fmt.Sprintf("split%d", i), terms, math.Floor(sum/2))
	}
	return m
}

// cutShort solves m with limits that grow until the machine, however busy, has
// found a solution, but, m being hard, has not proven it.
func cutShort(t *testing.T, m *milp.Model) *milp.Solution {
	t.Helper()
	for limit := 250 * time.Millisecond; limit < time.Minute; limit *= 2 {
		if sol := solve(t, m, milp.Options{TimeLimit: limit}); sol.Status != milp.Limit {
			return sol
		}
	}
	t.Fatal("no solution in any time")
	return nil
}

func TestTimeLimitKeepsIncumbentAndBound(t *testing.T) {
	sol := cutShort(t, hard(40, 5))
	if sol.Status != milp.Feasible {
		t.Fatalf("got %v, want a solution without proof", sol.Status)
	}
	if math.IsInf(sol.Bound, 0) || sol.Bound < -1e-6 || sol.Objective < sol.Bound {
		t.Errorf("objective %g, bound %g", sol.Objective, sol.Bound)
	}
	if sol.Gap() == 0 {
		t.Error("the gap is closed, so the answer should be optimal")
	}
}

func TestRelativeGap(t *testing.T) {
	// At the root, at the latest, HiGHS has a solution of this model within
	// 99 %, so it need not go on to the proof, which takes it hours.
	m := hard(40, 5)
	m.Continuous("constant", 1, 1, 1000)
	sol := solve(t, m, milp.Options{RelativeGap: 0.99})
	if sol.Status != milp.Feasible || sol.Stop != milp.StopGap || sol.Gap() > 0.99 {
		t.Errorf("got %v, objective %g, bound %g, gap %g", sol.Status, sol.Objective, sol.Bound, sol.Gap())
	}
}

// An answer says how large its program is, what the relaxation costs and how many nodes the search took.
func TestEffort(t *testing.T) {
	m := milp.New("pair")
	x, y := m.Binary("x", -1), m.Binary("y", -1)
	m.AddLE("half", []milp.Term{x.Times(2), y.Times(2)}, 3)
	sol := solve(t, m, milp.Options{Relax: true})
	e := sol.Effort.In(2, 2*sol.Objective)
	if sol.Objective != -1 || e.Rows != 1 || e.Columns != 2 || e.Nonzeros != 2 || e.LP == nil || !near(*e.LP, -3) ||
		!near(*e.RootGap, 0.5) {
		t.Errorf("%+v", e)
	}
	if sol := solve(t, m, milp.Options{}); sol.Effort.LP != nil {
		t.Errorf("a relaxation of %g that nobody asked for", *sol.Effort.LP)
	}
	e.Add(*e)
	if e.Rows != 2 || e.Nonzeros != 4 || !near(*e.LP, -6) {
		t.Errorf("twice: %+v", e)
	}
	log := filepath.Join(t.TempDir(), "log")
	if solve(t, hard(12, 3), milp.Options{LogFile: log, WorkLimit: 5}).Effort.Nodes == 0 {
		t.Error("no nodes")
	}
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "HiGHS") {
		t.Errorf("the log says %q (%v)", text, err)
	}
}

// varNamed finds a variable of a model by its name.
func varNamed(m *milp.Model, name string) (milp.Var, bool) {
	for v := range milp.Var(m.NumVars()) {
		if m.Variable(v).Name == name {
			return v, true
		}
	}
	return 0, false
}

func TestStart(t *testing.T) {
	m := hard(40, 5)
	x := make([]float64, m.NumVars())
	for i := range m.NumConstraints() {
		// With no x chosen, each row is under by its right-hand side.
		under, _ := varNamed(m, fmt.Sprintf("under%d", i))
		x[under] = m.Constraint(i).Lo
	}
	// Too short a time to find anything: the start is the answer.
	sol := solve(t, m, milp.Options{TimeLimit: time.Nanosecond, Start: x})
	if sol.Status != milp.Feasible || sol.Objective > m.Objective(x) {
		t.Errorf("got %v, objective %g; the start has %g", sol.Status, sol.Objective, m.Objective(x))
	}
	without := solve(t, m, milp.Options{TimeLimit: time.Nanosecond})
	if without.Status.HasValues() && without.Objective < sol.Objective {
		t.Errorf("the start made the answer worse: %g instead of %g", sol.Objective, without.Objective)
	}

	x[0] = 1
	s, _ := New()
	_, err := s.Solve(context.Background(), m, milp.Options{Start: x})
	var broken *milp.Violation
	if !errors.As(err, &broken) || broken.Name != "split0" {
		t.Errorf("a start that breaks split0 gives: %v", err)
	}
}

// TestStartReachesHiGHS takes every other way to the answer from the solver,
// so that only the start can be it.
func TestStartReachesHiGHS(t *testing.T) {
	m := hard(40, 5)
	want := cutShort(t, m)
	raw, err := loaded(m, milp.Options{Start: want.Values}, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		raw.SetIntOption("mip_max_nodes", 0),
		raw.SetFloat64Option("mip_heuristic_effort", 0),
		raw.SetStringOption("presolve", "off"),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = raw.Solve() // ends with a warning: no nodes allowed
	out := read(raw)
	if !out.feasible || m.Objective(whole(m, out.values)) > want.Objective+1e-6 {
		t.Errorf("HiGHS ends with %v, feasible %v, objective %g; it was given %g",
			out.status, out.feasible, m.Objective(out.values), want.Objective)
	}
}

func TestSameAnswerEachTime(t *testing.T) {
	m := hard(12, 2)
	first := solve(t, m, milp.Options{Seed: 5})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				if again := solve(t, m, milp.Options{Seed: 5}); !slices.Equal(again.Values, first.Values) {
					t.Errorf("values %v, then %v", first.Values, again.Values)
				}
			}
		})
	}
	wg.Wait()
}

func TestContext(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("already cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		sol, err := s.Solve(ctx, hard(40, 5), milp.Options{})
		if err != nil || sol.Status != milp.Limit || sol.Stop != milp.StopCancelled || sol.Values != nil {
			t.Errorf("got %+v, %v", sol, err)
		}
	})
	t.Run("cancelled in the search", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		time.AfterFunc(200*time.Millisecond, cancel)
		// Without the cancellation this would take hours.
		sol, err := s.Solve(ctx, hard(60, 6), milp.Options{})
		if err != nil || sol.Stop != milp.StopCancelled || sol.Status != milp.Limit && sol.Status != milp.Feasible {
			t.Errorf("got %+v, %v", sol, err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		sol, err := s.Solve(ctx, hard(60, 6), milp.Options{})
		if err != nil || sol.Stop != milp.StopTime || sol.Status != milp.Limit && sol.Status != milp.Feasible {
			t.Errorf("got %+v, %v", sol, err)
		}
	})
	t.Run("ends after the search", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		m := milp.New("easy")
		m.Binary("x", -1)
		if sol, err := s.Solve(ctx, m, milp.Options{}); err != nil || sol.Objective != -1 || sol.Stop != milp.Complete {
			t.Errorf("got %+v, %v", sol, err)
		}
	})
}

// TestCancellationKeepsIncumbent cancels from within the report of a solution,
// so that what must come back does not depend on any clock.
func TestCancellationKeepsIncumbent(t *testing.T) {
	m := hard(60, 6)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var seen milp.Progress
	s, _ := New()
	sol, err := s.Solve(ctx, m, milp.Options{Progress: func(p milp.Progress) {
		if p.Improved {
			seen = p
			cancel()
		}
	}})
	if err != nil || sol.Status != milp.Feasible || sol.Stop != milp.StopCancelled {
		t.Fatalf("got %+v, %v", sol, err)
	}
	if err := m.Check(sol.Values, 1e-6); err != nil {
		t.Error(err)
	}
	// No surplus or shortage at all would be 0.
	if sol.Objective > seen.Objective || sol.Bound < -1e-6 && !math.IsInf(sol.Bound, 0) ||
		sol.Objective != m.Objective(sol.Values) {
		t.Errorf("objective %g, bound %g; reported was %+v", sol.Objective, sol.Bound, seen)
	}
}

// TestProgress looks at the order of what is told: better each time, and the
// answer no worse than the last.
func TestProgress(t *testing.T) {
	var told []milp.Progress
	sol := solve(t, hard(14, 3), milp.Options{Progress: func(p milp.Progress) { told = append(told, p) }})
	if sol.Status != milp.Optimal || len(told) == 0 {
		t.Fatalf("got %+v after %d reports", sol, len(told))
	}
	last := milp.Progress{Objective: inf, Bound: -inf}
	for i, p := range told {
		if p.Improved != (p.Objective < last.Objective) || p.Seconds < last.Seconds || p.Bound < last.Bound-1e-6 ||
			p.Bound > sol.Objective+1e-6 {
			t.Errorf("report %d is %+v, after %+v; the optimum is %g", i, p, last, sol.Objective)
		}
		last = p
	}
	if sol.Objective > last.Objective+1e-6 {
		t.Errorf("the answer is %g, worse than the last report %+v", sol.Objective, last)
	}
}

// TestAnswerOfADeafRun takes HiGHS away altogether: the answer is then what its
// events told.
func TestAnswerOfADeafRun(t *testing.T) {
	m := milp.New("deaf")
	x := m.Integer("x", 0, 9, 1)
	m.AddGE("floor", milp.Sum(x), 2)
	ctx, cancel := context.WithCancel(context.Background())
	r := newSearch(ctx, m, milp.Options{})
	r.event(nil, 1)
	r.event([]float64{7}, 1)
	r.event([]float64{1}, 2)   // breaks the floor
	r.event([]float64{8}, 0.5) // worse on both sides
	cancel()
	out, err := r.wait()
	if err != nil || !out.feasible || !slices.Equal(out.values, []float64{7}) || out.bound != 2 {
		t.Errorf("got %+v, %v", out, err)
	}
	r.close()
	r.event([]float64{3}, 3)
	if r.objective != 7 {
		t.Errorf("the closed search has taken note of %g", r.objective)
	}
}

// TestDeafToTheTimeLimit is the same for a limit of time.
func TestDeafToTheTimeLimit(t *testing.T) {
	m := hard(5, 1)
	r := newSearch(context.Background(), m, milp.Options{TimeLimit: time.Millisecond})
	defer r.close()
	out, err := r.wait() // for ever otherwise
	if err != nil || out.feasible || !math.IsInf(out.bound, -1) || r.why(statusInterrupt) != milp.StopTime {
		t.Errorf("got %+v, %v, %v", out, err, r.why(statusInterrupt))
	}
}

// BenchmarkLoadMillionTerms hands a model with a million terms over to HiGHS.
func BenchmarkLoadMillionTerms(b *testing.B) {
	const n = 100_000
	m := milp.New("million")
	for j := range n {
		m.Binary(fmt.Sprintf("x%d", j), float64(j%7))
	}
	terms := make([]milp.Term, 10)
	for i := range n {
		for k := range terms {
			terms[k] = milp.Var((i*31 + k*997) % n).Times(float64(1 + k))
		}
		m.AddGE(fmt.Sprintf("cover%d", i), terms, 5)
	}
	for b.Loop() {
		raw, err := loaded(m, milp.Options{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		release(raw)
	}
}

func TestMemoryLimit(t *testing.T) {
	if _, ok := residentBytes(); !ok {
		t.Skip("skipped: this system does not tell how much memory a process takes")
	}
	s, _ := New()
	// Any process takes more than a byte; without the limit this takes hours.
	sol, err := s.Solve(context.Background(), hard(60, 6), milp.Options{MemoryBytes: 1})
	if err != nil || sol.Stop != milp.StopMemory {
		t.Errorf("got %+v, %v", sol, err)
	}
}

// A limit of nodes ends at the same place each time.
func TestWorkLimit(t *testing.T) {
	m := hard(40, 5) // takes very many nodes
	first := solve(t, m, milp.Options{WorkLimit: 50})
	if first.Status != milp.Feasible || first.Stop != milp.StopWork || first.Bound >= first.Objective {
		t.Errorf("got %v, %v, objective %g, bound %g", first.Status, first.Stop, first.Objective, first.Bound)
	}
	if again := solve(t, m, milp.Options{WorkLimit: 50}); !slices.Equal(again.Values, first.Values) ||
		again.Bound != first.Bound {
		t.Errorf("got %g, %g and then %g, %g", first.Objective, first.Bound, again.Objective, again.Bound)
	}
}

// TestInterrupt shows that a run left behind by its context comes to an end.
func TestInterrupt(t *testing.T) {
	m := hard(60, 6)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	raw, err := loaded(m, milp.Options{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newSearch(ctx, m, milp.Options{})
	time.AfterFunc(200*time.Millisecond, r.close)
	r.run(raw) // takes hours otherwise
	if e := <-r.ended; e.err != nil || e.out.status.String() != "interrupt" {
		t.Errorf("HiGHS ended with %v, %v", e.out.status, e.err)
	}
}

// TestFiles has HiGHS read what package milp writes.
func TestFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	models := []*milp.Model{hard(10, 2)}
	odd := milp.New("free [x]")
	a, b, c := odd.Continuous("free", -inf, 3.25, -1), odd.Integer("e 5", -4, inf, 2), odd.Integer("e-5", 2, 2, -1)
	odd.AddRange("st", -1e6, []milp.Term{a.Times(1), b.Times(-1.5), c.Times(1e-3)}, 1e6)
	odd.AddRange("says nothing", -inf, milp.Sum(a), inf)
	odd.AddLE("empty", nil, 4)
	models = append(models, odd)
	for range 60 {
		models = append(models, randomModel(r))
	}
	for k, m := range models {
		want := solve(t, m, milp.Options{})
		var b bytes.Buffer
		if err := m.WriteLP(&b); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "model.lp")
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		raw, err := loaded(hard(1, 1), milp.Options{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.ReadModelFromFile(file); err != nil {
			t.Fatalf("model %d: HiGHS does not take the file: %v\n%s", k, err, b.String())
		}
		// The binding can't solve a model without rows, see load.
		if err := raw.AddCompSparseRows([]float64{-inf}, []int{0}, []int{0}, []float64{1}, []float64{inf}); err != nil {
			t.Fatal(err)
		}
		ran, _ := raw.Solve()
		out := read(raw)
		switch {
		case want.Status == milp.Infeasible:
			if out.status != statusInfeasible {
				t.Errorf("model %d: HiGHS says %v, want infeasible\n%s", k, out.status, b.String())
			}
		case out.status != statusOptimal || len(out.values) != m.NumVars() ||
			!near(m.Objective(out.values), want.Objective) || m.Check(out.values, 1e-6) != nil ||
			!near(ran.Objective, want.Objective):
			t.Errorf("model %d: HiGHS gives %+v, objective %g, want %+v\n%s", k, out, ran.Objective, want, b.String())
		}
	}
}

func TestRefusals(t *testing.T) {
	ok := func(m *milp.Model) milp.Var { return m.Binary("x", 1) }
	tests := []struct {
		name  string
		build func(m *milp.Model)
		opts  milp.Options
		want  string // what the error must hold
	}{
		{"invalid model", func(m *milp.Model) { m.AddLE("cap", milp.Sum(3), 1) }, milp.Options{},
			`constraint "cap": variable #3 is unknown`},
		{"negative time limit", func(m *milp.Model) { ok(m) }, milp.Options{TimeLimit: -1}, "time limit"},
		{"gap that is no number", func(m *milp.Model) { ok(m) }, milp.Options{RelativeGap: math.NaN()}, "relative gap"},
		{"huge bound", func(m *milp.Model) { m.Continuous("big", 0, 1e20, 1) }, milp.Options{}, `variable "big"`},
		{"huge side", func(m *milp.Model) { m.AddGE("far", milp.Sum(ok(m)), -1e21) }, milp.Options{}, `constraint "far"`},
		{"tiny coefficient", func(m *milp.Model) {
			m.AddLE("fine", []milp.Term{ok(m).Times(1), m.Integer("n", 0, inf, 1).Times(1e-12)}, 1)
		}, milp.Options{}, `that of "n"`},
	}
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := milp.New("m")
			test.build(m)
			sol, err := s.Solve(context.Background(), m, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want an error with %q", sol, err, test.want)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	m := milp.New("m")
	m.Integer("i", -5, 5, 0)
	m.Continuous("c", -5, 5, 0)
	m.Binary("b", 0)
	got := whole(m, []float64{2.9999999, 0.25, -1e-9})
	if !slices.Equal(got, []float64{3, 0.25, 0}) || math.Signbit(got[2]) {
		t.Errorf("got %v, want 3, 0.25, 0", got)
	}
}

// TestLimits holds this package's idea of HiGHS' options against HiGHS.
func TestLimits(t *testing.T) {
	raw := lanl.NewRawModel()
	for option, want := range map[string]float64{
		"infinite_bound": hugeBound, "infinite_cost": hugeCost,
		"small_matrix_value": smallCoef, "large_matrix_value": largeCoef,
		"mip_abs_gap": absoluteGap,
	} {
		if got, err := raw.GetFloat64Option(option); err != nil || got != want {
			t.Errorf("%s is %g (%v), want %g", option, got, err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	if v := Version(); !regexp.MustCompile(`^1\.\d+\.\d+`).MatchString(v) {
		t.Errorf("version %q", v)
	}
}

func loaded(m *milp.Model, opts milp.Options, limit time.Duration) (*lanl.RawModel, error) {
	scale := scaled(m)
	return load(m, &scale, opts, limit)
}

// Programs mean the same in any unit: rows, continuous variables and costs of 1e-12 to 1e15 times the size give the
// same solution, with objective and bound in proportion.
func TestUnits(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	build := func(row, column, cost float64) *milp.Model {
		m := milp.New("m")
		c := m.Continuous("C", 0, inf, cost/column)
		for d := range 3 {
			terms := []milp.Term{c.Times(-row / column)}
			for i, time := range []float64{7, 5, 4, 4, 3, 2, 1} {
				x, ok := varNamed(m, fmt.Sprint("x", i, d))
				if !ok {
					x = m.Binary(fmt.Sprint("x", i, d), 0)
				}
				terms = append(terms, x.Times(row*time))
			}
			m.AddLE(fmt.Sprint("load", d), terms, 0)
		}
		for i := range 7 {
			var x []milp.Var
			for d := range 3 {
				v, _ := varNamed(m, fmt.Sprint("x", i, d))
				x = append(x, v)
			}
			m.AddEQ(fmt.Sprint("one", i), milp.Sum(x...), 1)
		}
		return m
	}
	for _, row := range []float64{1e-12, 1e-9, 1, 1e9, 1e15} {
		for _, column := range []float64{1e-9, 1, 1e12} {
			for _, cost := range []float64{1e-12, 1e-9, 1, 1e9, 1e15} {
				sol, err := s.Solve(t.Context(), build(row, column, cost), milp.Options{})
				if err != nil || sol.Status != milp.Optimal || math.Abs(sol.Objective/cost-9) > 1e-6 ||
					math.Abs(sol.Bound/cost-9) > 1e-5 {
					t.Errorf("rows of %g, columns of %g, costs of %g: %+v, %v", row, column, cost, sol, err)
				}
			}
		}
	}
}
