package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/tests/benchmarks"
)

// begun takes note of a program and of the point from which a solver would begin.
type begun struct {
	program *milp.Model
	at      []float64
}

var errBegun = errors.New("begun")

func (b *begun) Solve(_ context.Context, m *milp.Model, opts milp.Options) (*milp.Solution, error) {
	b.program, b.at = m, opts.Start
	return nil, errBegun
}

// An operator cost of the caller's own prices the labels.
func TestJointOwnCost(t *testing.T) {
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	g, err := open(t, "squeezenet").Graph(2)
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Schedule(context.Background(), g, load(t, "stcp920"), scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var given [2]float64
	for i, c := range []cost.Custom{nil, slow{}} {
		n, err := exact.JointProblem(t.Context(), s, scheduler.Options{Cost: c})
		if err != nil {
			t.Fatal(err)
		}
		if given[i], _, err = n.Given(); err != nil {
			t.Fatal(err)
		}
	}
	if given[1] <= given[0] {
		t.Errorf("%g s with products that take four times as long, %g s without", given[1], given[0])
	}
}

// On networks the joint answer obeys the rules, lies between its bound and both what the
// greedy methods and what one part after the other come to, and its bound is at least
// that of the labels alone.
func TestJointOnNetworks(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	proven := 0
	for _, c := range []struct {
		network string
		chunk   int64
	}{{"resnet50", 16}, {"bert-128", 8}, {"bert-384", 2}, {"toy-fig3", 8}} {
		src, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := src.Graph(c.chunk)
		if err != nil {
			t.Fatal(err)
		}
		s, err := v.Schedule(context.Background(), g, spec, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := exact.JointProblem(t.Context(), s, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := n.Search(context.Background(), joint.SearchOptions{Options: joint.Options{WorkLimit: 64},
			MaxStates: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		labels, moves, err := n.Problem.Seconds(r.Choice, r.Steps)
		if err != nil || math.Abs(labels+moves-r.Objective) > 1e-12 {
			t.Errorf("%s: %g and %g, the result says %g (%v)", c.network, labels, moves, r.Objective, err)
		}
		greedy, fits, err := n.Given()
		if err != nil || !fits || greedy < r.Objective-1e-12 || r.Bound > r.Objective {
			t.Errorf("%s: greedy %g, joint %g, bound %g (%v)", c.network, greedy, r.Objective, r.Bound, err)
		}
		alone, err := binding.Search(context.Background(), n.Problem.Labels, binding.Options{})
		if err != nil {
			t.Fatal(err)
		}
		steps, err := n.Problem.Sequence(alone.Choice, s.Order)
		if err != nil {
			t.Fatal(err)
		}
		labels, moves, err = n.Problem.Seconds(alone.Choice, steps)
		if err != nil || labels+moves < r.Objective-1e-12 || r.Bound < alone.Bound-1e-12 {
			t.Errorf("%s: one after the other %g, joint %g; bound of labels %g, of both %g (%v)", c.network, labels+moves,
				r.Objective, alone.Bound, r.Bound, err)
		}
		if r.Status == milp.Optimal {
			proven++
		} else if r.Outcome().Gap() > 0.02 {
			t.Errorf("%s: gap %g", c.network, r.Outcome().Gap())
		}
		both, err := v.Replace(scheduler.Options{}, scheduler.Pick{Stage: "bind", Strategy: "joint"})
		if err != nil || both.Pick("order") != "joint" {
			t.Errorf("%s: bindings with order %s: %v", c.network, both.Pick("order"), err)
		}
		made, err := both.Schedule(context.Background(), g, spec, scheduler.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.network, err)
		}
		var order []int
		for _, st := range r.Steps {
			order = append(order, s.Instances.First[st.Run[0]]+st.Run[1])
		}
		if !slices.Equal(made.Order, order) {
			t.Errorf("%s: the recipe orders %v, the search %v", c.network, made.Order, order)
		}
		const refused = "bind is joint, which does not go with order bfs: expected order joint"
		half := []scheduler.Pick{{Stage: "bind", Strategy: "joint"}, {Stage: "order", Strategy: "bfs"}}
		if _, err := v.Replace(scheduler.Options{}, half...); err == nil || err.Error() != refused {
			t.Errorf("%s: bindings without order: %v", c.network, err)
		}
	}
	if proven == 0 {
		t.Error("nothing was proven")
	}
}

// On networks, too, the program's answer and the search's are each above the other's bound, and equal where both are
// proven; the strategy of both stages takes it.
func TestJointProgramOnNetworks(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skip("skipped: ", err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	opt := scheduler.Options{Solver: solver, WorkLimit: 4}
	both, err := v.Replace(opt, scheduler.Pick{Stage: "order", Strategy: "joint-ilp"})
	if err != nil || both.Pick("bind") != "joint-ilp" {
		t.Fatalf("order joint-ilp with bind %s: %v", both.Pick("bind"), err)
	}
	for _, c := range []struct {
		network string
		chunk   int64
	}{{"bert-128", 8}, {"bert-384", 2}, {"vit-b16", 2}} {
		g, err := open(t, c.network).Graph(c.chunk)
		if err != nil {
			t.Fatal(err)
		}
		s, err := both.Schedule(t.Context(), g, load(t, "stcp920"), opt)
		if err != nil {
			t.Fatalf("%s: %v", c.network, err)
		}
		if s, err = v.Schedule(t.Context(), g, s.Spec, scheduler.Options{}); err != nil {
			t.Fatal(err)
		}
		n, err := exact.JointProblem(t.Context(), s, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		search, err := n.Search(t.Context(), joint.SearchOptions{Options: joint.Options{WorkLimit: 8}, MaxStates: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		ilp, err := n.ILP(t.Context(), joint.ILPOptions{Options: joint.Options{Solver: solver, WorkLimit: 4}})
		if err != nil {
			t.Fatal(err)
		}
		const unit = 1e-11 // the solver's tolerance
		if ilp.Status != milp.Optimal || ilp.Objective < search.Bound-unit || ilp.Bound > search.Objective+unit ||
			search.Status == milp.Optimal && math.Abs(search.Objective-ilp.Objective) > unit {
			t.Errorf("%s: the program finds [%g, %g], %v; the search [%g, %g], %v", c.network, ilp.Bound, ilp.Objective,
				ilp.Status, search.Bound, search.Objective, search.Status)
		}
	}
}

// Whatever the network and the machine, greedy's decisions are an answer of the problem at what they cost, a point of
// the program at the same cost, and nothing that runs is infeasible: here are instances larger than the L1s, values
// that must spill and return, outputs in their operand's place, small machines and random networks.
func TestGreedyIsAPointOfJoint(t *testing.T) {
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	tiled, spilled := 0, 0
	check := func(name string, g *model.Graph, spec *hardware.Spec, opt scheduler.Options) {
		s, err := v.Schedule(t.Context(), g, spec, opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n, err := exact.JointProblem(t.Context(), s, opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, notes, err := exact.OrderProblem(s, opt); err != nil {
			t.Fatal(err)
		} else if strings.Contains(strings.Join(notes, " "), "tiles") {
			tiled++
		}
		given, fits, err := n.Given()
		if err != nil || !fits {
			t.Errorf("%s: greedy is no answer (%v)", name, err)
			return
		}
		p := n.Problem
		steps, err := p.Sequence(p.Given, ordering.NewGraph(p.Order).Obey(s.Order))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var start begun
		_, err = joint.ILP(t.Context(), p, joint.ILPOptions{Options: joint.Options{Solver: &start,
			Start: joint.Start{Choice: p.Given, Steps: steps}}})
		if !errors.Is(err, errBegun) {
			t.Errorf("%s: %v", name, err)
			return
		}
		program, x := start.program, start.at
		for k, val := range x {
			if val == 1 && strings.HasPrefix(program.Variable(milp.Var(k)).Name, "d[") {
				spilled++
				break
			}
		}
		if err := program.Check(x, 1e-6); err != nil {
			t.Errorf("%s: greedy breaks the program: %v", name, err)
		}
		if got := program.Objective(x) * 1e-6; math.Abs(got-given) > 1e-9*given {
			t.Errorf("%s: greedy costs %g s, as a point of the program %g s", name, given, got)
		}
	}
	for _, c := range []struct {
		network, machine string
		chunk            int64
	}{{"toy-fig3", "stcp920", 4}, {"squeezenet", "stcp920", 8}, {"densenet121", "stcp920", 8}, {"vit-b16", "stcp920", 2},
		{"resnet18", "goya", 8}, {"mobilenetv2", "ipu", 4}, {"resnet18", "ipu", 4}} {
		g, err := open(t, c.network).Graph(c.chunk)
		if err != nil {
			t.Fatal(err)
		}
		check(c.network+" on "+c.machine, g, load(t, c.machine), scheduler.Options{})
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		spec := *load(t, "stcp920")
		lb := *spec.L1
		spec.L1, spec.Clusters, spec.CoreTypes = &lb, 1, slices.Clone(spec.CoreTypes)
		spec.CoreTypes[0].Count = 1 << r.IntN(3)
		lb.SizeBytes, spec.L1WeightBytes = hardware.Bytes(1<<(10+r.IntN(4))), 1<<9
		g, err := benchmarks.MixedGraph(r)
		if err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("seed %d", seed), g, &spec, scheduler.Options{InPlace: seed%2 == 1})
	}
	if tiled < 5 || spilled < 5 {
		t.Errorf("instances pass in tiles in %d cases, and values return in %d: expected 5 of each", tiled, spilled)
	}
	t.Logf("instances pass in tiles in %d cases, values return in %d", tiled, spilled)
}
