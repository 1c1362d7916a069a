//go:build cgo

package binding

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

func solver(t *testing.T) milp.Solver {
	t.Helper()
	s, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestILPAgainstBruteForce(t *testing.T) {
	s := solver(t)
	r := rand.New(rand.NewPCG(2, 1))
	for k := range 200 {
		p := random(r)
		want := bruteForce(p)
		start := make([]int, len(p.Nodes))
		from := Options{Start: start}
		for _, opts := range []Options{{}, from} {
			opts.Solver = s
			got, err := ILP(context.Background(), p, opts)
			if err != nil {
				t.Fatalf("problem %d, %+v: %v", k, opts, err)
			}
			if got.Status != milp.Optimal || !same(got.Objective, want) || got.Objective != p.Seconds(got.Choice) ||
				got.Bound > want+2e-6*unit || got.Bound < want-2e-6*unit {
				t.Fatalf("problem %d, %+v: got %+v, brute force finds %g", k, opts, got, want)
			}
		}
	}
}

// relaxed is the model of p with x continuous.
func relaxed(t *testing.T, p *Problem) float64 {
	t.Helper()
	m, err := Formulate(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lp := milp.New("relaxed")
	for j := range m.NumVars() {
		v := m.Variable(milp.Var(j))
		lp.Continuous(v.Name, v.Lo, v.Hi, v.Cost)
	}
	for i := range m.NumConstraints() {
		c := m.Constraint(i)
		lp.AddRange(c.Name, c.Lo, c.Terms, c.Hi)
	}
	sol, err := solver(t).Solve(context.Background(), lp, milp.Options{})
	if err != nil || sol.Status != milp.Optimal {
		t.Fatalf("got %+v, %v", sol, err)
	}
	return sol.Objective * unit
}

// On trees the relaxation alone gives the optimum, and no relaxation of any graph is above the optimum.
func TestTightOnTrees(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	trees := 0
	for k := range 200 {
		p := random(r)
		want := bruteForce(p)
		got := relaxed(t, p)
		if got > want+1e-6*unit {
			t.Fatalf("problem %d: the relaxation gives %g, above the optimum %g", k, got, want)
		}
		if isForest(p) && !same(got, want) {
			t.Fatalf("tree %d: the relaxation gives %g, the optimum is %g", k, got, want)
		}
		if isForest(p) && len(p.Edges) > 0 {
			trees++
		}
	}
	if trees < 40 {
		t.Errorf("%d trees: too few to tell", trees)
	}
}

func isForest(p *Problem) bool {
	root := make([]int, len(p.Nodes))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	for _, e := range p.Edges {
		a, b := find(e.From), find(e.To)
		if a == b {
			return false
		}
		root[a] = b
	}
	return true
}

func TestILPRefusesAStart(t *testing.T) {
	p := random(rand.New(rand.NewPCG(9, 9)))
	if _, err := ILP(context.Background(), p,
		Options{Start: []int{-1}, Solver: solver(t)}); err == nil {
		t.Error("a start of one label is accepted")
	}
}
