package ordering

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

func chain() *Problem {
	p := &Problem{Name: "chain", CapacityBytes: 14, StoreCostPerByte: 1, LoadCostPerByte: 1}
	for k, n := range []int{8, 4, 2, 1} {
		p.Subgraphs = append(p.Subgraphs, Subgraph{Name: fmt.Sprint("stage", k+1), Instances: n, OutputBytes: 4,
			WorkspaceBytes: []int64{4, 2, 1, 0}[k]})
		if k > 0 {
			a := Arc{From: k - 1, To: k}
			for q := range n {
				a.Reads = append(a.Reads, [2]int{2 * q, 2*q + 2})
			}
			p.Arcs = append(p.Arcs, a)
		}
	}
	return p
}

// fork is a big branch and a small one that a last instance joins; the source of
// the big one has the higher number.
func fork() *Problem {
	return &Problem{Name: "fork", CapacityBytes: 20, StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []Subgraph{{Name: "small", Instances: 1, OutputBytes: 2}, {Name: "big", Instances: 1, OutputBytes: 8},
			{Name: "less", Instances: 1, OutputBytes: 1, WorkspaceBytes: 9}, {Name: "join", Instances: 1, OutputBytes: 1}},
		Arcs: []Arc{{From: 1, To: 2, Reads: [][2]int{{0, 1}}}, {From: 0, To: 3, Reads: [][2]int{{0, 1}}},
			{From: 2, To: 3, Reads: [][2]int{{0, 1}}}}}
}

func TestOrders(t *testing.T) {
	for _, c := range []struct {
		name   string
		p      *Problem
		method Rule
		want   []int
	}{
		{"level by level", chain(), BFS, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
		// Ready holds the sources; the last of them leads to its consumer's others.
		{"depth first", chain(), DFS, []int{7, 6, 11, 5, 4, 10, 13, 3, 2, 9, 1, 0, 8, 12, 14}},
		// What shrinks the L1 runs as soon as it can.
		{"frees most", chain(), Heavy, []int{0, 1, 8, 2, 3, 9, 12, 4, 5, 10, 6, 7, 11, 13, 14}},
		{"levels", fork(), BFS, []int{0, 1, 2, 3}},
		{"last first", fork(), DFS, []int{1, 2, 0, 3}},
		{"small growth first", fork(), Heavy, []int{0, 1, 2, 3}},
	} {
		t.Run(fmt.Sprint(c.method, " ", c.name), func(t *testing.T) {
			g := NewGraph(c.p)
			got, err := Order(g, c.method)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			for _, objective := range []Objective{Traffic, Peak} {
				res, err := ByRule(c.p, c.method, objective)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Check(c.p, res); err != nil {
					t.Error(err)
				}
				if bound := map[Objective]float64{Traffic: 0, Peak: float64(g.LargestNeed())}[objective]; res.Bound != bound {
					t.Errorf("%s: bound %v, want %v", objective, res.Bound, bound)
				}
			}
		})
	}
	if _, err := ByRule(chain(), "best", Traffic); err == nil {
		t.Error("an unknown rule has an answer")
	}
}

func ExampleSolve() {
	for _, m := range Methods() {
		if m.NeedsSolver {
			continue
		}
		res, err := Solve(context.Background(), chain(), Traffic, m.Name, Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m.Name, res.Status, res.Cost)
	}
	// Output:
	// bfs feasible 96
	// dfs feasible 24
	// heavy feasible 24
	// search optimal 24
}
