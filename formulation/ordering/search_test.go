package ordering

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

func mustSearch(t testing.TB, p *Problem, objective Objective, opts Options) *Result {
	t.Helper()
	res, err := Search(context.Background(), p, objective, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Check(p, res); err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return res
}

// searches are the search and its proof without the beam before it.
var searches = []struct {
	name string
	run  func(t testing.TB, p *Problem, objective Objective) *Result
}{
	{"search", func(t testing.TB, p *Problem, objective Objective) *Result {
		return mustSearch(t, p, objective, Options{})
	}},
	{"proof alone", func(t testing.TB, p *Problem, objective Objective) *Result {
		g := NewGraph(p)
		if objective == Traffic && g.Feasible() != nil {
			return &Result{Status: milp.Infeasible}
		}
		parts, of, distinct, err := prepare(g, objective, &Options{}, twinned)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range distinct {
			a.prove(&limits{ctx: context.Background(), maxBytes: defaultMaxBytes})
		}
		res, err := assemble("search", p, g, parts, of, objective)
		if err != nil {
			t.Fatal(err)
		}
		res.finish(time.Now(), milp.Complete)
		return res
	}},
}

func TestSearchAgainstBruteForce(t *testing.T) {
	infeasible, moved, shared := 0, 0, 0
	for seed := range uint64(2500) {
		p := randomProblem(seed, 8)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		traffic, peak := bruteForce(p)
		// Greedy orders cost no less, and their bounds hold.
		for _, m := range Rules() {
			for objective, best := range map[Objective]float64{Traffic: traffic, Peak: float64(peak)} {
				res, err := ByRule(p, m, objective)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Check(p, res); err != nil {
					t.Fatalf("seed %d, %s: %v", seed, m, err)
				}
				if res.HasOrder() && (res.Cost < best-1e-9 || res.Bound > best+1e-9) || res.HasOrder() != (best >= 0) {
					t.Fatalf("seed %d, %s, %s: %s, cost %v, bound %v, brute force finds %v", seed, m, objective, res.Status,
						res.Cost, res.Bound, best)
				}
			}
		}
		for _, sw := range searches {
			res := sw.run(t, p, Traffic)
			switch {
			case traffic < 0:
				if res.Status != milp.Infeasible {
					t.Fatalf("seed %d, %s: %s, brute force finds no order", seed, sw.name, res.Status)
				}
			case res.Status != milp.Optimal || math.Abs(res.Cost-traffic) > 1e-9:
				t.Fatalf("seed %d, %s: %s, cost %v, brute force finds %v\n%+v", seed, sw.name, res.Status, res.Cost, traffic, p)
			}
			if res := sw.run(t, p, Peak); res.Status != milp.Optimal || res.Cost != float64(peak) {
				t.Fatalf("seed %d, %s: %s, peak %v, brute force finds %d\n%+v", seed, sw.name, res.Status, res.Cost, peak, p)
			}
		}
		if traffic < 0 {
			infeasible++
		}
		if traffic > 0 {
			moved++
		}
		for _, readers := range NewGraph(p).Readers {
			if len(readers) > 1 {
				shared++
				break
			}
		}
	}
	// The draw is worth something only if it has what is hard.
	t.Logf("%d infeasible, %d with moves, %d with shared outputs", infeasible, moved, shared)
	if infeasible < 50 || moved < 200 || shared < 200 {
		t.Errorf("%d infeasible problems, %d with moves, %d with shared outputs", infeasible, moved, shared)
	}
}

// The design's example: two of s1 read s0, s2 reads s1 one to one. Counts say that
// any of s1's outputs may be used next; index order does not.
func TestIndexOrderIsNotEnough(t *testing.T) {
	p := &Problem{Name: "index", CapacityBytes: 16, StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []Subgraph{{Name: "s0", Instances: 1, OutputBytes: 9, WorkspaceBytes: 5},
			{Name: "s1", Instances: 2, OutputBytes: 7}, {Name: "s2", Instances: 2, OutputBytes: 3, WorkspaceBytes: 5}},
		Arcs: []Arc{{From: 0, To: 1, Reads: [][2]int{{0, 1}, {0, 1}}}, {From: 1, To: 2, Reads: [][2]int{{0, 1}, {1, 2}}}}}
	testMistake(t, p, mistakes{indexOrder: true}, 14, 18)
}

// A residual around a join: the second branch's inputs were stored once, and their
// copies spare the second store.
func TestCopiesAreKept(t *testing.T) {
	p := &Problem{Name: "copies", CapacityBytes: 18, StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []Subgraph{{Name: "a", Instances: 4, OutputBytes: 3, WorkspaceBytes: 7},
			{Name: "b", Instances: 1, OutputBytes: 5, WorkspaceBytes: 1},
			{Name: "c", Instances: 4, OutputBytes: 4, WorkspaceBytes: 4}},
		Arcs: []Arc{{From: 0, To: 1, Reads: aligned(4, 1, 0)}, {From: 1, To: 2, Reads: aligned(1, 4, 0)},
			{From: 0, To: 2, Reads: aligned(4, 4, 0)}}}
	testMistake(t, p, mistakes{forgetCopy: true}, 21, 24)
}

func testMistake(t *testing.T, p *Problem, m mistakes, right, wrong float64) {
	t.Helper()
	if got, _ := restricted(p, m); got != wrong {
		t.Errorf("with the mistake %v, want %v", got, wrong)
	}
	if got, _ := bruteForce(p); got != right {
		t.Errorf("brute force finds %v, want %v", got, right)
	}
	for _, sw := range searches {
		if res := sw.run(t, p, Traffic); res.Cost != right || res.Status != milp.Optimal {
			t.Errorf("%s: %s, cost %v, want %v", sw.name, res.Status, res.Cost, right)
		}
	}
	s := solver(t)
	for _, method := range []ilp{CountingILP} {
		if res := mustSolve(t, method, s, p, Traffic, Options{}); res.Cost != right || res.Status != milp.Optimal {
			t.Errorf("%s: %s, cost %v, want %v", res.Method, res.Status, res.Cost, right)
		}
	}
}

// At a limit of states, memory or time there is an order and a valid bound.
func TestSearchLimits(t *testing.T) {
	p := chainOf([]int{8, 8, 8, 8}, 1, 2)
	for name, opts := range map[string]Options{
		"work limit": {WorkLimit: 500}, "memory limit": {MemoryBytes: 1 << 20}, "time limit": {TimeLimit: time.Millisecond},
	} {
		res := mustSearch(t, p, Traffic, opts)
		if res.Status != milp.Feasible || res.Bound >= res.Cost || res.Stop.String() != name {
			t.Errorf("%s: %s, %v, cost %v, bound %v", name, res.Status, res.Stop, res.Cost, res.Bound)
		}
	}
	// Bounds hold whenever the search stops, and costs never rise.
	for seed := range uint64(300) {
		p := randomProblem(seed, 8)
		best := mustSearch(t, p, Traffic, Options{})
		if best.Status == milp.Infeasible {
			continue
		}
		for states := 1; states < 200; states *= 3 {
			for _, objective := range []Objective{Traffic, Peak} {
				want := best
				if objective == Peak {
					want = mustSearch(t, p, Peak, Options{})
				}
				res := mustSearch(t, p, objective, Options{WorkLimit: int64(states)})
				if res.Bound > want.Cost || res.Cost < want.Cost {
					t.Fatalf("seed %d, %d states, %s: cost %v, bound %v, the optimum is %v", seed, states, objective, res.Cost,
						res.Bound, want.Cost)
				}
			}
		}
	}
}

// Same input, same output, byte for byte, also where a limit of states ends it.
func TestSearchIsDeterministic(t *testing.T) {
	for _, opts := range []Options{{}, {WorkLimit: 3000}} {
		var first string
		for range 3 {
			res := mustSearch(t, chainOf([]int{6, 6, 6}, 1, 1), Traffic, opts)
			res.Seconds = 0
			data, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(data)
			}
			if string(data) != first {
				t.Errorf("%s, was %s", data, first)
			}
		}
	}
}

// A start is never made worse, and one that is no order is refused.
func TestSearchStart(t *testing.T) {
	p := chainOf([]int{8, 8, 8, 8}, 1, 2)
	g := NewGraph(p)
	_, plain, _, err := Sequence(g, g.Topological(), Traffic)
	if err != nil {
		t.Fatal(err)
	}
	good := mustSearch(t, p, Traffic, Options{WorkLimit: 20000})
	if good.Cost >= float64(plain) {
		t.Fatalf("cost %v, in topological order %v", good.Cost, plain)
	}
	id := map[Ref]int{}
	for i, ref := range g.Refs {
		id[ref] = i
	}
	var start []int
	for _, s := range good.Steps {
		start = append(start, id[s.Run])
	}
	_, cost, _, err := Sequence(g, start, Traffic)
	if err != nil {
		t.Fatal(err)
	}
	if res := mustSearch(t, p, Traffic,
		Options{Start: start, WorkLimit: 1}); res.Cost > float64(cost) {
		t.Errorf("cost %v from a start of %v", res.Cost, cost)
	}
	start[0], start[len(start)-1] = start[len(start)-1], start[0]
	for _, bad := range [][]int{start, start[1:], {}} {
		if _, err := Search(context.Background(), p, Traffic, Options{Start: bad}); err == nil ||
			!strings.Contains(err.Error(), "start") {
			t.Errorf("%v for a start that is no order", err)
		}
	}
}

// twins is n outputs that two instances read, with one between that needs the room of
// two bytes of them.
func twins(n int) *Problem {
	all := [][2]int{{0, n}}
	p := &Problem{Name: fmt.Sprintf("%d twins", n), StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []Subgraph{{Name: "twin", Instances: n, OutputBytes: 2}, {Name: "first", Instances: 1, OutputBytes: 1},
			{Name: "between", Instances: 1, OutputBytes: 1, WorkspaceBytes: 4}, {Name: "last", Instances: 1}},
		Arcs: []Arc{{From: 0, To: 1, Reads: all}, {From: 1, To: 2, Reads: [][2]int{{0, 1}}}, {From: 0, To: 3, Reads: all},
			{From: 2, To: 3, Reads: [][2]int{{0, 1}}}}}
	p.CapacityBytes = int64(2*n + 4)
	return p
}

// Outputs that the same instances read are one class: which of them moves is no choice.
// Told apart, 20 of them have some 2^20 sets.
func TestTwinsAreOneClass(t *testing.T) {
	for n := 2; n <= 5; n++ {
		p := twins(n)
		traffic, peak := bruteForce(p)
		for _, sw := range searches {
			if res := sw.run(t, p, Traffic); res.Status != milp.Optimal || res.Cost != traffic {
				t.Errorf("%s, %s: %v, cost %v, want %v", p.Name, sw.name, res.Status, res.Cost, traffic)
			}
			if res := sw.run(t, p, Peak); res.Status != milp.Optimal || res.Cost != float64(peak) {
				t.Errorf("%s, %s: %v, peak %v, want %v", p.Name, sw.name, res.Status, res.Cost, peak)
			}
		}
	}
	p := twins(20)
	res := mustSearch(t, p, Traffic, Options{WorkLimit: 2000})
	if res.Status != milp.Optimal || res.Cost != 4 {
		t.Errorf("%s: %v, cost %v, bound %v within 2000 states, want 4", p.Name, res.Status, res.Cost, res.Bound)
	}
	list, _ := classes(NewGraph(p), twinned)
	if len(list) != 4 {
		t.Errorf("%d classes, want 4", len(list))
	}
}

// Random problems with twins in them, of which some have been spoilt.
func TestTwinsAgainstBruteForce(t *testing.T) {
	merged, moved := 0, 0
	for seed := range uint64(900) {
		r := rand.New(rand.NewPCG(seed, 9))
		p := &Problem{Name: fmt.Sprint("twins ", seed), StoreCostPerByte: float64(r.IntN(3)),
			LoadCostPerByte: float64(1 + r.IntN(2))}
		n := 2 + r.IntN(3)
		p.Subgraphs = append(p.Subgraphs,
			Subgraph{Name: "source", Instances: []int{1, n}[r.IntN(2)], OutputBytes: r.Int64N(4), WorkspaceBytes: r.Int64N(3)},
			Subgraph{Name: "twin", Instances: n, OutputBytes: 1 + r.Int64N(4), WorkspaceBytes: r.Int64N(4)})
		p.Arcs = append(p.Arcs, Arc{From: 0, To: 1, Reads: aligned(p.Subgraphs[0].Instances, n, 0)})
		for k := 2; k < 4+r.IntN(2); k++ {
			readers := 1 + r.IntN(2)
			p.Subgraphs = append(p.Subgraphs, Subgraph{Name: fmt.Sprint("reader ", k), Instances: readers,
				OutputBytes: r.Int64N(4), WorkspaceBytes: r.Int64N(6)})
			a := Arc{From: 1, To: k, Reads: make([][2]int, readers)}
			for q := range a.Reads {
				if a.Reads[q] = [2]int{0, n}; r.IntN(6) == 0 {
					a.Reads[q][1] = n - 1 // the last has other readers
				}
				if q > 0 {
					a.Reads[q][1] = max(a.Reads[q][1], a.Reads[q-1][1])
				}
			}
			p.Arcs = append(p.Arcs, a)
			if k > 2 {
				p.Arcs = append(p.Arcs, Arc{From: k - 1, To: k, Reads: aligned(p.Subgraphs[k-1].Instances, readers, r.IntN(2))})
			}
		}
		g := NewGraph(p)
		if len(g.Refs) > 11 {
			continue
		}
		p.CapacityBytes = g.LargestNeed() + r.Int64N(3)
		if list, _ := classes(NewGraph(p), twinned); slices.ContainsFunc(list,
			func(c class) bool { return c.shared && c.n() > 1 }) {
			merged++
		}
		traffic, peak := bruteForce(p)
		if traffic > 0 {
			moved++
		}
		for _, sw := range searches {
			if res := sw.run(t, p, Traffic); res.Status != milp.Optimal || res.Cost != traffic {
				t.Fatalf("%s: %s, cost %v, brute force finds %v\n%+v", sw.name, res.Status, res.Cost, traffic, p)
			}
			if res := sw.run(t, p, Peak); res.Status != milp.Optimal || res.Cost != float64(peak) {
				t.Fatalf("%s: %s, peak %v, brute force finds %d\n%+v", sw.name, res.Status, res.Cost, peak, p)
			}
		}
	}
	if merged < 200 || moved < 70 {
		t.Errorf("%d problems with twins, %d with moves", merged, moved)
	}
}
