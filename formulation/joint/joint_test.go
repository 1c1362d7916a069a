package joint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/model/schedule"
)

// random is a problem of most instances at most: several readers, halos, finer and coarser consumers, residuals, a
// capacity little above what the largest instance needs; labels of both scopes, where the LLB pays about what the
// moves of the same bytes would.
func random(r *rand.Rand, most int) *Problem {
	o := &ordering.Problem{Name: "random", StoreCostPerByte: float64(1 + r.IntN(3)),
		LoadCostPerByte: float64(1 + r.IntN(3))}
	n := 0
	for k := 0; n < most; k++ {
		sg := ordering.Subgraph{Name: fmt.Sprint(k), Instances: 1 + r.IntN(min(2, most-n)), OutputBytes: 1 + r.Int64N(6),
			WorkspaceBytes: r.Int64N(2) * r.Int64N(9)}
		n += sg.Instances
		o.Subgraphs = append(o.Subgraphs, sg)
		for from := range k {
			if from != k-1 && r.IntN(3) > 0 || from == k-1 && r.IntN(3) == 0 {
				continue
			}
			a := ordering.Arc{From: from, To: k}
			m, halo := o.Subgraphs[from].Instances, r.IntN(2)
			for q := range sg.Instances {
				a.Reads = append(a.Reads, [2]int{max(0, q*m/sg.Instances-halo), min(m, (q*m+m-1)/sg.Instances+1)})
			}
			o.Arcs = append(o.Arcs, a)
		}
	}
	g := ordering.NewGraph(o)
	o.CapacityBytes = g.LargestNeed() + r.Int64N(2)
	p := &Problem{Order: o, Labels: &binding.Problem{}, SecondsPerCost: 1e-6}
	for i, readers := range g.Readers {
		node := binding.Node{Name: fmt.Sprint(g.Refs[i])}
		for l := range 1 + r.IntN(2) {
			node.Labels = append(node.Labels, binding.Label{Binding: schedule.Binding{int64(1) << l}, Scope: schedule.L1})
			node.Cost = append(node.Cost, float64(r.IntN(5))*1e-6)
		}
		for l := range r.IntN(3) {
			if len(readers) > 0 {
				node.Labels = append(node.Labels, binding.Label{Binding: schedule.Binding{int64(1) << l}, Scope: schedule.LLB})
				node.Cost = append(node.Cost, float64(g.Store[i]+r.Int64N(5))*1e-6)
			}
		}
		p.Labels.Nodes = append(p.Labels.Nodes, node)
	}
	for i, reads := range g.Reads {
		for _, from := range reads {
			e := binding.Edge{From: from, To: i}
			for _, a := range p.Labels.Nodes[from].Labels {
				row := make([]float64, len(p.Labels.Nodes[i].Labels))
				for b := range row {
					row[b] = float64(r.IntN(6)) * 1e-6
					if a.Scope == schedule.LLB {
						row[b] = float64(g.Load[from]-r.Int64N(3)*(g.Load[from]/4)) * 1e-6
					}
				}
				e.Cost = append(e.Cost, row)
			}
			p.Labels.Edges = append(p.Labels.Edges, e)
		}
	}
	return p
}

// bruteForce tries all labels, and for their scopes all plays of the rules: what has
// run, what is in the L1 and what has a copy. It takes nothing from the package.
func bruteForce(p *Problem) float64 {
	g := ordering.NewGraph(p.Order)
	n := len(g.Refs)
	orders := map[int]float64{}
	order := func(llb int) float64 {
		type state struct{ ran, l1, copied int }
		least := map[state]int64{{}: 0}
		open := []state{{}}
		has := func(set, i int) bool { return set>>i&1 == 1 }
		best := int64(math.MaxInt64)
		for len(open) > 0 {
			s := open[0]
			open = open[1:]
			cost := least[s]
			if s.ran == 1<<n-1 {
				best = min(best, cost)
				continue
			}
			reach := func(to state, cost int64) {
				if old, known := least[to]; !known || cost < old {
					least[to] = cost
					open = append(open, to)
				}
			}
			used := int64(0)
			for i := range n {
				if has(s.l1, i) {
					used += g.Output[i]
				}
			}
			for i := range n {
				bit := 1 << i
				switch {
				case has(s.l1, i):
					to := state{s.ran, s.l1 &^ bit, s.copied | bit}
					if has(s.copied, i) {
						reach(to, cost)
					} else {
						reach(to, cost+g.Store[i])
					}
				case has(s.copied, i) && used+g.Output[i] <= g.Capacity:
					reach(state{s.ran, s.l1 | bit, s.copied}, cost+g.Load[i])
				}
				if has(s.ran, i) {
					continue
				}
				need, ready := used+g.Output[i]+g.Work[i], true
				for _, r := range g.Reads[i] {
					ready = ready && has(s.ran, r) && (has(s.l1, r) || has(llb, r))
					if has(llb, r) {
						need += g.Output[r]
					}
				}
				if !ready || need > g.Capacity {
					continue
				}
				to := state{s.ran | bit, s.l1, s.copied}
				if !has(llb, i) {
					to.l1 |= bit
				}
				for j := range n {
					live := false
					for _, r := range g.Readers[j] {
						live = live || !has(to.ran, r)
					}
					if !live {
						to.l1 &^= 1 << j
						to.copied &^= 1 << j
					}
				}
				reach(to, cost)
			}
		}
		return float64(best) / g.Unit * p.SecondsPerCost
	}
	best := math.Inf(1)
	choice := make([]int, n)
	var try func(i int)
	try = func(i int) {
		if i < n {
			for choice[i] = range p.Labels.Nodes[i].Labels {
				try(i + 1)
			}
			return
		}
		llb := 0
		for j, l := range choice {
			if p.Labels.Nodes[j].Labels[l].Scope == schedule.LLB {
				llb |= 1 << j
			}
		}
		if _, known := orders[llb]; !known {
			orders[llb] = order(llb)
		}
		best = math.Min(best, p.Labels.Seconds(choice)+orders[llb])
	}
	try(0)
	return best
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }

// verify plays the answer by the rules.
func verify(t *testing.T, name string, p *Problem, r *Result) {
	t.Helper()
	labels, moves, err := p.Seconds(r.Choice, r.Steps)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if !same(labels, r.LabelSeconds) || !same(moves, r.MoveSeconds) || !same(labels+moves, r.Objective) {
		t.Errorf("%s: labels %g and moves %g, the result says %g and %g, %g together", name, labels, moves, r.LabelSeconds,
			r.MoveSeconds, r.Objective)
	}
	if r.Bound > r.Objective || (r.Status == milp.Optimal) != (r.Objective-r.Bound <= tolerance*r.Objective) {
		t.Errorf("%s: %v with objective %g and bound %g", name, r.Status, r.Objective, r.Bound)
	}
}

func TestSearchAgainstBruteForce(t *testing.T) {
	switches := map[string]SearchOptions{
		"default": {}, "no alternate": {NoAlternate: true},
		"no segments": {NoSegments: true}, "nothing": {NoAlternate: true, NoSegments: true},
	}
	branched, both, spilled := 0, 0, 0
	for seed := range uint64(240) {
		p := random(rand.New(rand.NewPCG(seed, 7)), 4+int(seed%5))
		want := bruteForce(p)
		for name, opts := range switches {
			r, err := Search(context.Background(), p, opts)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			if r.Status != milp.Optimal || !same(r.Objective, want) {
				t.Errorf("seed %d, %s: %v at %g, brute force %g", seed, name, r.Status, r.Objective, want)
			}
			verify(t, fmt.Sprintf("seed %d, %s", seed, name), p, r)
			if name == "no segments" {
				if r.Branches > 1 {
					branched++
				}
				if r.MoveSeconds > 0 {
					spilled++
				}
				// Does it take both at once? The best labels by themselves, then an order.
				alone, err := binding.Search(context.Background(), p.Labels, binding.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if r.LabelSeconds > alone.Objective+1e-12 {
					both++
				}
			}
		}
	}
	if branched < 20 || both < 20 || spilled < 20 {
		t.Errorf("%d problems branched, %d had other labels than alone, %d spilled: the problems are too easy",
			branched, both, spilled)
	}
}

// What holds for problems too large to try: the answer obeys the rules, the bound is at least the sum of the parts'
// bounds, limits keep both, and with a limit the search ends at the same place twice.
func TestLarger(t *testing.T) {
	for seed := range uint64(6) {
		p := random(rand.New(rand.NewPCG(seed, 11)), 14)
		alone, err := binding.Search(context.Background(), p.Labels, binding.Options{})
		if err != nil {
			t.Fatal(err)
		}
		full, err := Search(context.Background(), p, SearchOptions{Options: Options{WorkLimit: 2000}})
		if err != nil {
			t.Fatal(err)
		}
		verify(t, fmt.Sprintf("seed %d", seed), p, full)
		for _, limit := range []int64{1, 5} {
			opts := SearchOptions{Options: Options{WorkLimit: limit}, MaxStates: 200}
			r, err := Search(context.Background(), p, opts)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, fmt.Sprintf("seed %d, %d branches", seed, limit), p, r)
			if r.Bound > full.Objective+1e-12 || r.Objective < full.Bound-1e-12 {
				t.Errorf("seed %d: [%g, %g] with %d branches, [%g, %g] in all", seed, r.Bound, r.Objective, limit,
					full.Bound, full.Objective)
			}
			if r.Bound < alone.Bound-1e-12 {
				t.Errorf("seed %d: bound %g, that of labels alone is %g", seed, r.Bound, alone.Bound)
			}
			again, err := Search(context.Background(), p, opts)
			if err != nil || again.Objective != r.Objective || again.Bound != r.Bound ||
				fmt.Sprint(again.Choice, again.Steps) != fmt.Sprint(r.Choice, r.Steps) {
				t.Errorf("seed %d: another answer the second time (%v)", seed, err)
			}
		}
	}
}

// The start is an answer, and never made worse; without time it is the answer.
func TestStartAndCancellation(t *testing.T) {
	p := random(rand.New(rand.NewPCG(3, 5)), 12)
	start := make([]int, len(p.Labels.Nodes))
	g := ordering.NewGraph(p.Order)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := Search(ctx, p, SearchOptions{Options: Options{Start: Start{Choice: start, Order: g.Topological()}}})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, "cancelled", p, r)
	if r.Status == milp.Optimal || r.Stop != milp.StopCancelled || r.Bound <= 0 {
		t.Errorf("cancelled: %v, %v, bound %g", r.Status, r.Stop, r.Bound)
	}
	better, err := Search(context.Background(), p,
		SearchOptions{Options: Options{Start: Start{Choice: start, Order: g.Topological()}, WorkLimit: 100}})
	if err != nil || better.Objective > r.Objective || better.Bound < r.Bound {
		t.Errorf("[%g, %g] after [%g, %g] (%v)", better.Bound, better.Objective, r.Bound, r.Objective, err)
	}
	if r, err := Search(ctx, p, SearchOptions{}); err != nil || r.Status != milp.Limit || r.Choice != nil {
		t.Errorf("cancelled without a start: %+v (%v)", r, err)
	}
}

func TestBadInput(t *testing.T) {
	good := func() *Problem { return random(rand.New(rand.NewPCG(1, 1)), 5) }
	for _, tt := range []struct {
		name   string
		change func(*Problem, *SearchOptions)
		want   string
	}{
		{"no order", func(p *Problem, _ *SearchOptions) { p.Order = nil }, "without an order"},
		{"no labels", func(p *Problem, _ *SearchOptions) { p.Labels = nil }, "without labels"},
		{"bad order", func(p *Problem, _ *SearchOptions) { p.Order.CapacityBytes = -1 }, "capacity_bytes"},
		{"bad labels", func(p *Problem, _ *SearchOptions) { p.Labels.Nodes[0].Cost[0] = -1 }, "nodes[0].cost[0]: found -1"},
		{"too few labels", func(p *Problem, _ *SearchOptions) {
			p.Labels = &binding.Problem{Nodes: p.Labels.Nodes[:1]}
		}, "5 instances to order and 1 to label"},
		{"bad price", func(p *Problem, _ *SearchOptions) { p.SecondsPerCost = math.NaN() }, "NaN seconds"},
		{"DDR", func(p *Problem, _ *SearchOptions) { p.Labels.Nodes[0].Labels[0].Scope = schedule.DDR }, "expected L1 or LLB"},
		{"bad start", func(_ *Problem, o *SearchOptions) { o.Start.Choice = []int{0} }, "choice: found 1, expected 5 labels"},
		{"bad start order", func(_ *Problem, o *SearchOptions) { o.Start.Order = []int{0, 1, 2, 3, 3} }, "the start"},
	} {
		p, opts := good(), SearchOptions{}
		tt.change(p, &opts)
		if _, err := Search(context.Background(), p, opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	p := good()
	p.Order.CapacityBytes = 0
	r, err := Search(context.Background(), p, SearchOptions{})
	if err != nil || r.Status != milp.Infeasible || r.Infeasible == nil || r.Infeasible.MissingBytes <= 0 {
		t.Errorf("no capacity: %+v (%v)", r, err)
	}
}

// Whatever order and labels, their play is a point of the program at its cost.
func TestPlaysArePoints(t *testing.T) {
	returned := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		p := random(r, 4+int(seed%12))
		g := ordering.NewGraph(p.Order)
		choice := make([]int, len(g.Refs))
		for i, n := range p.Labels.Nodes {
			choice[i] = r.IntN(len(n.Labels))
		}
		steps, err := p.Sequence(choice, g.Obey(r.Perm(len(choice))))
		if err != nil {
			t.Fatal(err)
		}
		labels, moves, err := p.Seconds(choice, steps)
		if err != nil {
			t.Fatal(err)
		}
		f, err := formulate(t.Context(), p, Options{Start: Start{Choice: choice}})
		if err != nil {
			t.Fatal(err)
		}
		m, x := f.model, f.point(choice, steps)
		if err := m.Check(x, 1e-9); err != nil || !same(m.Objective(x)*costUnit, labels+moves) {
			t.Errorf("seed %d: %g for labels and %g for moves, as a point of the program %g (%v)", seed, labels, moves,
				m.Objective(x)*costUnit, err)
		}
		if moves > 0 {
			returned++
		}
	}
	if returned < 50 {
		t.Errorf("values return in %d plays, expected 50", returned)
	}
}

// Each rule that an answer can break is told.
func TestSecondsFindsBrokenRules(t *testing.T) {
	p := &Problem{SecondsPerCost: 1,
		Order: &ordering.Problem{Name: "two", CapacityBytes: 4, StoreCostPerByte: 1, LoadCostPerByte: 1,
			Subgraphs: []ordering.Subgraph{{Name: "a", Instances: 1, OutputBytes: 2}, {Name: "b", Instances: 1, OutputBytes: 2}},
			Arcs:      []ordering.Arc{{From: 0, To: 1, Reads: [][2]int{{0, 1}}}}},
		Labels: &binding.Problem{Nodes: []binding.Node{
			{Name: "a", Labels: []binding.Label{{Scope: schedule.L1}, {Scope: schedule.LLB}}, Cost: []float64{1, 5}},
			{Name: "b", Labels: []binding.Label{{Scope: schedule.L1}}, Cost: []float64{2}}}}}
	a, b := ordering.Ref{0, 0}, ordering.Ref{1, 0}
	refs := func(r ...ordering.Ref) []ordering.Ref { return r }
	for _, tt := range []struct {
		choice   []int
		capacity int64
		steps    []ordering.Step
		want     string
	}{
		{[]int{0, 0}, 4, []ordering.Step{{Run: a}, {Run: b}}, ""},
		{[]int{1, 0}, 4, []ordering.Step{{Run: a}, {Run: b}}, ""},
		{[]int{0, 0}, 4, []ordering.Step{{Run: a}, {Store: refs(a), Load: refs(a), Run: b}}, ""},
		{[]int{0}, 4, nil, "choice: found 1, expected 2 labels"},
		{[]int{0, 0}, 4, []ordering.Step{{Run: a}}, "steps: found 1, expected 2"},
		{[]int{0, 0}, 4, []ordering.Step{{Run: b}, {Run: a}}, "steps[0].run: found [1 0], expected [0 0] before it"},
		{[]int{0, 0}, 4, []ordering.Step{{Run: a}, {Run: a}}, "steps[1].run: found [0 0], expected an instance that has not run"},
		{[]int{0, 0}, 4, []ordering.Step{{Run: a}, {Store: refs(a), Run: b}}, "steps[1].run: found [1 0], expected [0 0] in the L1"},
		{[]int{0, 0}, 4, []ordering.Step{{Run: a}, {Load: refs(a), Run: b}}, "steps[1].load: found [0 0]"},
		{[]int{1, 0}, 4, []ordering.Step{{Run: a}, {Store: refs(a), Run: b}}, "steps[1].store: found [0 0]"},
		{[]int{0, 0}, 3, []ordering.Step{{Run: a}, {Run: b}}, "steps[1].run: found [1 0] with 4 bytes in the L1, expected at most 3"},
		{[]int{1, 0}, 3, []ordering.Step{{Run: a}, {Run: b}}, "steps[1].run: found [1 0] with 4 bytes in the L1, expected at most 3"},
	} {
		p.Order.CapacityBytes = tt.capacity
		labels, moves, err := p.Seconds(tt.choice, tt.steps)
		switch {
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%v, %v: %v, want %q", tt.choice, tt.steps, err, tt.want)
		case tt.want == "" && (err != nil || labels != 3+4*float64(tt.choice[0]) ||
			moves != 4*float64(len(tt.steps[1].Store))):
			t.Errorf("%v, %v: %g and %g (%v)", tt.choice, tt.steps, labels, moves, err)
		}
	}
}

var errSolver = errors.New("solver")

type broken struct{}

func (broken) Solve(context.Context, *milp.Model, milp.Options) (*milp.Solution, error) {
	return nil, errSolver
}

func TestILPPassesErrorsOn(t *testing.T) {
	p := random(rand.New(rand.NewPCG(1, 1)), 5)
	if _, err := ILP(context.Background(), p, ILPOptions{Options: Options{Solver: broken{}}}); !errors.Is(err, errSolver) {
		t.Errorf("%v, want the solver's error", err)
	}
	p.Order.CapacityBytes = 0
	if r, err := ILP(context.Background(), p, ILPOptions{Options: Options{Solver: broken{}}}); err != nil ||
		r.Status != milp.Infeasible {
		t.Errorf("no capacity: %+v (%v)", r, err)
	}
	if _, err := ILP(t.Context(), &Problem{}, ILPOptions{Options: Options{Solver: broken{}}}); err == nil {
		t.Error("no problem: no error")
	}
}

// BenchmarkSearch proves problems of 10 to 14 instances, and reports how many subsets of scopes that takes.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{10, 12, 14} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			branches := 0
			for b.Loop() {
				branches = 0
				for seed := range uint64(4) {
					r, err := Search(context.Background(), random(rand.New(rand.NewPCG(seed, 11)), n), SearchOptions{})
					if err != nil || r.Status != milp.Optimal {
						b.Fatalf("%+v, %v", r, err)
					}
					branches += r.Branches
				}
			}
			b.ReportMetric(float64(branches), "branches")
		})
	}
}
