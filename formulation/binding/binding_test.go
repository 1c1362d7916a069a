package binding

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// random is a problem of up to 7 nodes with up to 4 labels. Costs are small whole
// numbers, so that equal ones are frequent, or any number.
func random(r *rand.Rand) *Problem {
	p := &Problem{}
	n := 1 + r.IntN(7)
	whole := r.IntN(2) == 0
	cost := func() float64 {
		if whole {
			return float64(r.IntN(6)) * unit
		}
		return r.Float64() * unit
	}
	for i := range n {
		node := Node{Name: fmt.Sprintf("n%d", i)}
		for l := range 1 + r.IntN(4) {
			node.Labels = append(node.Labels, Label{Binding: schedule.Binding{int64(1) << l}})
			node.Cost = append(node.Cost, cost())
		}
		p.Nodes = append(p.Nodes, node)
	}
	shape := r.IntN(3) // tree, series-parallel or so, anything
	for b := 1; b < n; b++ {
		for a := range b {
			if shape == 0 && a != b/2 || shape == 1 && b-a > 2 || shape == 2 && r.IntN(3) == 0 {
				continue
			}
			e := Edge{From: a, To: b}
			if r.IntN(3) == 0 {
				e.From, e.To = b, a
			}
			for range p.Nodes[e.From].Labels {
				row := make([]float64, len(p.Nodes[e.To].Labels))
				for k := range row {
					row[k] = cost()
				}
				e.Cost = append(e.Cost, row)
			}
			p.Edges = append(p.Edges, e)
		}
	}
	return p
}

// bruteForce tries all choices.
func bruteForce(p *Problem) float64 {
	best := math.Inf(1)
	choice := make([]int, len(p.Nodes))
	var try func(i int)
	try = func(i int) {
		if i == len(choice) {
			best = math.Min(best, p.Seconds(choice))
			return
		}
		for choice[i] = range p.Nodes[i].Labels {
			try(i + 1)
		}
	}
	try(0)
	return best
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-6*unit }

func TestSearchAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	cut := 0
	for k := range 500 {
		p := random(r)
		want := bruteForce(p)
		start := make([]int, len(p.Nodes))
		for _, opts := range []Options{{}, {Start: start}, {WorkLimit: 8}, {WorkLimit: 1, Start: start}} {
			got, err := Search(context.Background(), p, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.CheckChoice(got.Choice); err != nil {
				t.Fatal(err)
			}
			if got.Objective != p.Seconds(got.Choice) || got.Objective < want-1e-9*unit || got.Bound > want+1e-9*unit ||
				got.Bound < p.Floor()-1e-9*unit {
				t.Fatalf("problem %d, %+v: got %+v, brute force finds %g", k, opts, got, want)
			}
			if opts.Start != nil && got.Objective > p.Seconds(start) {
				t.Fatalf("problem %d, %+v: got %+v, worse than the start's %g", k, opts, got, p.Seconds(start))
			}
			switch {
			case got.Status == milp.Optimal && !same(got.Objective, want),
				opts.WorkLimit == 0 && got.Status != milp.Optimal:
				t.Fatalf("problem %d, %+v: got %+v, brute force finds %g", k, opts, got, want)
			case got.Status == milp.Feasible:
				cut++
			}
		}
	}
	if cut < 50 {
		t.Errorf("only %d searches went without a proof: the limit on tables, and what follows it, is not tried", cut)
	}
}

func TestPruneKeepsAnOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	dropped := 0
	for k := range 300 {
		p := random(r)
		q := p.Restrict(p.Prune(t.Context(), false))
		for i := range p.Nodes {
			dropped += len(p.Nodes[i].Labels) - len(q.Nodes[i].Labels)
		}
		if want, got := bruteForce(p), bruteForce(q); !same(got, want) {
			t.Fatalf("problem %d: %g with the labels kept, %g with all", k, got, want)
		}
	}
	if dropped < 100 {
		t.Errorf("%d labels of 300 problems dropped", dropped)
	}
}

func TestBadProblems(t *testing.T) {
	two := func() *Problem {
		l := []Label{{Binding: schedule.Binding{1}}, {Binding: schedule.Binding{2}}}
		return &Problem{
			Nodes: []Node{{"a", l, []float64{1, 2}}, {"b", l, []float64{3, 4}}},
			Edges: []Edge{{0, 1, [][]float64{{0, 1}, {1, 0}}}},
		}
	}
	if err := two().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		spoil func(*Problem)
		want  string
	}{
		{"labels without costs", func(p *Problem) { p.Nodes[1].Cost = nil }, `nodes[1].cost: found 0, expected 2, one for each label`},
		{"no labels", func(p *Problem) { p.Nodes[0] = Node{Name: "a"} }, `nodes[0].labels: found none, expected at least one`},
		{"negative cost", func(p *Problem) { p.Nodes[0].Cost = []float64{0, -1} }, `nodes[0].cost[1]: found -1, expected a finite`},
		{"cost that is no number", func(p *Problem) { p.Edges[0].Cost[1][0] = math.NaN() },
			`edges[0].cost[1][0]: found NaN, expected a finite`},
		{"a loop", func(p *Problem) { p.Edges[0].To = 0 }, `edges[0].to: found 0, expected another node than 0`},
		{"no such node", func(p *Problem) { p.Edges[0].To = 2 }, `edges[0].to: found 2, expected a node from 0 to 1`},
		{"twice", func(p *Problem) { p.Edges = append(p.Edges, Edge{1, 0, p.Edges[0].Cost}) },
			`edges[1].to: found 0, expected another node than 1, and each pair once`},
		{"too few rows", func(p *Problem) { p.Edges[0].Cost = p.Edges[0].Cost[:1] }, `edges[0].cost: found 1, expected 2, one for each label of node 0 ("a")`},
		{"too few columns", func(p *Problem) { p.Edges[0].Cost[1] = nil }, `edges[0].cost[1]: found 0, expected 2`},
	} {
		p := two()
		test.spoil(p)
		if _, err := Search(context.Background(), p, Options{}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	for _, start := range [][]int{{0}, {0, 2}, {-1, 0}} {
		if _, err := Search(context.Background(), two(), Options{Start: start}); err == nil {
			t.Errorf("start %v is accepted", start)
		}
	}
}

func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		first  int64
		uneven bool
		want   []schedule.Binding
	}{
		{4, false, []schedule.Binding{{1, 1, 1}, {1, 2, 1}, {2, 1, 1}, {2, 2, 1}, {4, 1, 1}}},
		{4, true, []schedule.Binding{{1, 1, 1}, {1, 2, 1}, {2, 1, 1}, {2, 2, 1}, {4, 1, 1}}}, // 6 by 4 keep 3 busy
		{3, false, []schedule.Binding{{1, 1, 1}, {1, 2, 1}}},
		{3, true, []schedule.Binding{{1, 1, 1}, {1, 2, 1}, {1, 3, 1}, {2, 1, 1}, {2, 2, 1}, {3, 1, 1}}},
	} {
		r := model.Region{{Lo: 0, Hi: c.first}, {Lo: 2, Hi: 8}, {Lo: 0, Hi: 8}}
		got := grids(r, []bool{false, false, true}, 4, c.uneven)
		if !slices.EqualFunc(got, c.want, schedule.Binding.Equal) {
			t.Errorf("extent %d, uneven %t: got %v, want %v", c.first, c.uneven, got, c.want)
		}
	}
}
