package partition

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/highs"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// random draws a small problem; with training, each forward node has a backward
// one of its colour with the edges turned round, and now and then more.
func random(rng *rand.Rand, n int, training bool) *Problem {
	p := &Problem{Name: "random", Accelerators: 1 + rng.IntN(3), CPUs: rng.IntN(2), MemoryBytes: 1e9}
	if rng.IntN(8) == 0 {
		p.Accelerators, p.CPUs = 0, 1+rng.IntN(3)
	}
	if rng.IntN(3) == 0 {
		p.MemoryBytes = float64(n * 3)
	}
	time := func() float64 { return float64(rng.IntN(4) * rng.IntN(5)) }
	for i := range n {
		acc := time()
		v := Node{ID: 10 * i, Supported: rng.IntN(12) > 0, AcceleratorLatency: acc, CPULatency: acc * float64(rng.IntN(4)),
			Color: NoColor, SizeBytes: float64(rng.IntN(8))}
		if rng.IntN(5) == 0 {
			v.Color = rng.IntN(3)
		}
		p.Nodes = append(p.Nodes, v)
	}
	cost := make([]float64, 2*n)
	for i := range cost {
		cost[i] = float64(rng.IntN(4))
	}
	for i := range n {
		for j := range i {
			if rng.IntN(5) < 2 {
				p.Edges = append(p.Edges, Edge{j, i, cost[j]})
			}
		}
	}
	if !training {
		return p
	}
	forward := len(p.Edges)
	for i := range n {
		v := p.Nodes[i]
		v.ID, v.Backward, v.AcceleratorLatency = v.ID+5, true, time()
		if v.Color == NoColor {
			v.Color = 100 + i
			p.Nodes[i].Color = v.Color
		}
		if rng.IntN(6) == 0 {
			v.Color = NoColor
		}
		p.Nodes = append(p.Nodes, v)
		p.Edges = append(p.Edges, Edge{i, n + i, cost[i]})
	}
	for _, e := range p.Edges[:forward] {
		p.Edges = append(p.Edges, Edge{n + e.To, n + e.From, cost[n+e.To]})
	}
	return p
}

// brute tries every assignment.
func brute(p *Problem) (best float64, division *Division) {
	best = math.Inf(1)
	d := &Division{make([][]int, p.Accelerators), make([][]int, p.CPUs)}
	var place func(i int)
	place = func(i int) {
		if i == len(p.Nodes) {
			if load, _ := p.MaxLoad(d); load < best && p.Check(d) == nil {
				best = load
			}
			return
		}
		for _, sets := range [][][]int{d.Accelerators, d.CPUs} {
			for k := range sets {
				sets[k] = append(sets[k], p.Nodes[i].ID)
				place(i + 1)
				sets[k] = sets[k][:len(sets[k])-1]
			}
		}
	}
	place(0)
	return best, d
}

func TestExactAgainstBruteForce(t *testing.T) {
	infeasible := 0
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		training := seed%3 == 0
		n := 2 + rng.IntN(5)
		if training {
			n = 1 + n/2
		}
		p := random(rng, n, training)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		want, _ := brute(p)
		r, err := Solve(context.Background(), p, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case math.IsInf(want, 1):
			infeasible++
			if r.Status != milp.Infeasible || r.Reason == "" {
				t.Fatalf("seed %d: %s %v %q, brute force finds none", seed, r.Status, r.MaxLoad, r.Reason)
			}
		case r.Status != milp.Optimal || math.Abs(r.MaxLoad-want) > 1e-9:
			t.Fatalf("seed %d: %s %v, brute force %v\n%+v", seed, r.Status, r.MaxLoad, want, p)
		default:
			if err := p.Check(r.Division()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if bound := p.Bound(); bound > want*(1+1e-9) {
			t.Fatalf("seed %d: bound %v, optimum %v", seed, bound, want)
		}
		for _, m := range []string{"greedy", "pipedream"} {
			r, err := Solve(context.Background(), p, m, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.HasDivision() && (p.Check(r.Division()) != nil || r.MaxLoad < want-1e-9) ||
				r.Status == milp.Optimal && r.MaxLoad > want+1e-9 || r.Status == milp.Infeasible && !math.IsInf(want, 1) {
				t.Fatalf("seed %d: %s %s %v, optimum %v", seed, m, r.Status, r.MaxLoad, want)
			}
		}
	}
	if infeasible == 0 {
		t.Error("no problem without a division was drawn")
	}
}

// Chains instead of all ideals never say optimal of what is not.
func TestFewIdeals(t *testing.T) {
	proven := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		p := random(rng, 14, seed%2 == 0)
		full, err := Solve(context.Background(), p, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		few, err := Solve(context.Background(), p, "exact", Options{MaxIdeals: 3})
		if err != nil {
			t.Fatal(err)
		}
		if few.HasDivision() && (few.MaxLoad < full.MaxLoad-1e-9 || few.Bound > full.MaxLoad*(1+1e-9)) {
			t.Fatalf("seed %d: %v bound %v, optimum %v", seed, few.MaxLoad, few.Bound, full.MaxLoad)
		}
		if few.Status == milp.Optimal {
			proven++
			if few.MaxLoad > full.MaxLoad+1e-9 {
				t.Fatalf("seed %d: says optimal of %v, optimum %v", seed, few.MaxLoad, full.MaxLoad)
			}
		}
	}
	if proven == 60 {
		t.Error("the limit on ideals made no difference")
	}
}

func TestExactAgainstIntegerProgram(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skip(err)
	}
	count := uint64(24)
	if testing.Short() {
		count = 6
	}
	for seed := range count {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := random(rng, 8+rng.IntN(5), seed%3 == 0)
		exact, err := Solve(context.Background(), p, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Solve(context.Background(), p, "ilp",
			Options{Options: solve.Options[*Division]{Solver: solver, TimeLimit: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%s %.4f", r.Status, r.MaxLoad) != fmt.Sprintf("%s %.4f", exact.Status, exact.MaxLoad) {
			t.Errorf("seed %d: integer program %s %v, search %s %v", seed, r.Status, r.MaxLoad, exact.Status, exact.MaxLoad)
		}
	}
}

// A node that is tiny beside the others is no obstacle to the integer program, and an empty
// device is a list.
func TestTinySize(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skip(err)
	}
	p := &Problem{Name: "tiny", Accelerators: 3, MemoryBytes: 1.5e12, Nodes: []Node{
		{ID: 1, Supported: true, Color: NoColor, AcceleratorLatency: 2, SizeBytes: 1e12},
		{ID: 2, Supported: true, Color: NoColor, AcceleratorLatency: 1, SizeBytes: 1e12},
		{ID: 3, Supported: true, Color: NoColor, AcceleratorLatency: 1, SizeBytes: 1},
	}, Edges: []Edge{{0, 1, 5}, {1, 2, 5}}}
	r, err := Solve(context.Background(), p, "ilp", Options{Options: solve.Options[*Division]{Solver: solver}})
	if err != nil || r.Status != milp.Optimal || r.MaxLoad != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, ids := range r.Devices {
		if ids == nil {
			t.Errorf("device %d of %v", i, r.Devices)
		}
	}
}

func TestCancelled(t *testing.T) {
	p := random(rand.New(rand.NewPCG(4, 5)), 30, true)
	p.MemoryBytes, p.CPUs = 1e9, 1
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	solver, _ := highs.New() // nil without it
	for _, m := range Methods() {
		if m.Name == "ilp" && solver == nil {
			continue
		}
		r, err := Solve(ctx, p, m.Name, Options{Options: solve.Options[*Division]{Solver: solver}})
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if r.Status != milp.Feasible && r.Status != milp.Limit || r.Stop != milp.StopCancelled || r.Bound <= 0 {
			t.Errorf("%s: %s, %q, bound %v", m.Name, r.Status, r.Reason, r.Bound)
		}
	}
	start, err := Solve(context.Background(), p, "greedy", Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Solve(ctx, p, "exact", Options{Options: solve.Options[*Division]{Start: start.Division()}})
	if err != nil || r.Status != milp.Feasible || r.MaxLoad != start.MaxLoad {
		t.Errorf("from a start: %+v, %v", r, err)
	}
}

// Integer programs find and prove what the lattice gives; with a limit of one ideal nothing else can.
func TestProgramAgainstLattice(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skip(err)
	}
	count := uint64(36)
	if testing.Short() {
		count = 10
	}
	better, proven := 0, 0
	for seed := range count {
		rng := rand.New(rand.NewPCG(seed, 19))
		n := 10 + rng.IntN(8)
		if seed%3 == 0 {
			n = 6 + rng.IntN(4) // twice as many with the backward ones
		}
		p := random(rng, n, seed%3 == 0)
		p.CPUs, p.Accelerators = 0, 2+rng.IntN(3)
		for i := range p.Nodes {
			p.Nodes[i].Supported = true
			if !p.Nodes[i].Backward && rng.IntN(2) == 0 {
				p.Nodes[i].Color = NoColor
			}
		}
		if seed%3 == 0 { // paths among backward nodes that forward ones do not have
			for a := range n {
				for b := range a {
					if i := slices.IndexFunc(p.Edges, func(e Edge) bool { return e.From == n+a }); i >= 0 && rng.IntN(3) == 0 {
						p.Edges = append(p.Edges, Edge{n + a, n + b, p.Edges[i].Cost})
					}
				}
			}
			for i := range p.Edges {
				p.Edges[i].Cost *= float64(seed / 3 % 2)
			}
		}
		if p.MemoryBytes = 1e9; seed%4 == 1 {
			p.MemoryBytes = 0
			for _, v := range p.Nodes {
				p.MemoryBytes += v.SizeBytes * 1.1 / float64(p.Accelerators)
			}
		}
		want, err := Solve(t.Context(), p, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		program, start := false, math.Inf(1) // the load from which the program starts
		r, err := Solve(t.Context(), p, "exact", Options{MaxIdeals: 1, Options: solve.Options[*Division]{
			Solver: solver,
			Note:   func(string) { program = true },
			Progress: func(q milp.Progress) {
				if !program {
					start = q.Objective
				}
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !program {
			continue // proven by the simple bound
		}
		if start > want.MaxLoad*(1+1e-6) {
			better++
		}
		if p.Bound() < want.MaxLoad*(1-1e-6) {
			proven++
		}
		if r.Status != want.Status || math.Abs(r.MaxLoad-want.MaxLoad) > 1e-6*want.MaxLoad {
			t.Errorf("seed %d: %s %v, bound %v; by the lattice %s %v", seed, r.Status, r.MaxLoad, r.Bound,
				want.Status, want.MaxLoad)
		}
	}
	t.Logf("%d programs found a better division, %d proved more than the simple bound", better, proven)
	if better == 0 || proven < 5 {
		t.Error("the problems are too easy")
	}
}

// Bound is a lower bound on the largest load of any division of a valid problem:
// the device of the largest node, and devices that share all work evenly, with
// parts of nodes on CPUs.
func (p *Problem) Bound() float64 { return p.contract(true).bound() }
