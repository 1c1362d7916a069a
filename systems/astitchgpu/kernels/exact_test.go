package kernels

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/rules"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// brute is the least cost of a scope over all partitions of its units without a cycle
// and all choices of each part. It shares with the methods nothing but the prices of
// kernels.
func brute(s *scope) float64 {
	n := len(s.units)
	arcs := s.problem().Arcs
	part := make([]int, n)
	least := math.Inf(1)
	var try func(u, parts int)
	try = func(u, parts int) {
		if u < n {
			for part[u] = 0; part[u] <= parts; part[u]++ {
				try(u+1, max(parts, part[u]+1))
			}
			return
		}
		reach := make([][]bool, parts)
		for i := range reach {
			reach[i] = make([]bool, parts)
		}
		for _, a := range arcs {
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
			for c := range s.Choices(units) {
				if seconds, ok := s.Seconds(units, c); ok {
					best = min(best, seconds)
				}
			}
			sum += best
		}
		least = min(least, sum)
	}
	try(0, 0)
	return least
}

// random is a graph of reductions of rows and columns, exponentials and sums, without
// products: one scope, or several by chance.
func random(t *testing.T, r *rand.Rand, ops int) *model.Graph {
	t.Helper()
	b := model.NewBuilder("random")
	rows, cols := 64<<r.Intn(5), 32<<r.Intn(7)
	all := []model.TensorID{b.Input("x", model.F32, int64(rows), int64(cols))}
	read := map[model.TensorID]bool{}
	for i := range ops {
		name := fmt.Sprintf("op%d", i)
		x, y := all[len(all)-1], all[r.Intn(len(all))]
		read[x] = true
		switch r.Intn(4) {
		case 0:
			x = b.Op("Exp", name, model.Attr{}, x)
		case 1:
			x = b.Op("ReduceSum", name, model.Attr{Axes: []int64{int64(r.Intn(2))}, KeepDims: true}, x)
		default:
			read[y] = true
			x = b.Op("Add", name, model.Attr{}, x, y)
		}
		all = append(all, x)
	}
	for _, x := range all[1:] {
		if !read[x] {
			b.Output(x)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The plans of real kernels are best by brute force, with launches that cost much and
// little against barriers; and where a launch is cheap, the rules lose now and then.
func TestExactAgainstBruteForce(t *testing.T) {
	m, err := simt.Load("v100-simt")
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for seed := range int64(60) {
		r := rand.New(rand.NewSource(seed))
		m.LaunchSeconds = []float64{1e-5, 1e-6, 1e-7}[seed%3]
		g := random(t, r, 2+r.Intn(4))
		got, err := Run(context.Background(), g, m, "exact")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		scopes, err := rules.Scopes(g, rules.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for _, sc := range scopes {
			want += brute(newScope(g, m, sc.Ops))
		}
		if e := got.Exact; e.Status != milp.Optimal || math.Abs(e.Best-want) > 1e-9*want || e.Rule < want*(1-1e-9) {
			t.Errorf("seed %d: %+v, brute force finds %g s", seed, e, want)
		} else if e.Rule > want*(1+1e-9) {
			lost++
		}
	}
	if lost == 0 {
		t.Error("AStitch's rules were always best: the test shows nothing")
	}
}
