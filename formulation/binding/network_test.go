package binding_test

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
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A networkCase is a network as one cluster sees it.
type networkCase struct {
	network, hardware string
	elements          int64
	inPlace           bool
}

func (c networkCase) name() string {
	return fmt.Sprintf("%s on %s, %d elements, in place %v", c.network, c.hardware, c.elements, c.inPlace)
}

var cases = []networkCase{
	{"toy-fig5", "stcp920", 2, false},
	{"resnet50", "stcp920", 16, false},
	{"bert-128", "stcp920", 8, false},
	{"bert-128", "stcp920", 8, true},
	{"swin-t", "stcp920", 4, false},
	{"toy-fig5", "../../hardware/testdata/ipu.yaml", 1, false},  // no LLB
	{"toy-fig5", "../../hardware/testdata/goya.yaml", 1, false}, // cores without an L1
}

var crossLayer = func() scheduler.Recipe {
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		panic(err)
	}
	return v
}()

func pose(t *testing.T, c networkCase) (*schedule.Schedule, *binding.Network, *cost.Model) {
	t.Helper()
	spec, err := hardware.Load(c.hardware)
	if err != nil {
		t.Fatal(err)
	}
	src, err := network.Open(c.network, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := src.Graph(c.elements)
	if err != nil {
		t.Fatal(err)
	}
	s, err := crossLayer.Schedule(context.Background(), g, spec, scheduler.Options{InPlace: c.inPlace})
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	n, err := binding.FromSchedule(t.Context(), s, m)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := binding.FromSchedule(ended, s, m); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: found error %v, expected %v", err, context.Canceled)
	}
	return s, n, m
}

// checkChoice carries a choice into a schedule, which must pass schedule.Check and
// cost, step by step, what the problem's tables say.
func checkChoice(t *testing.T, c networkCase, s *schedule.Schedule, n *binding.Network, m *cost.Model,
	choice []int) *schedule.Schedule {
	t.Helper()
	bindings, scopes := n.Decode(choice)
	from := *s
	from.Bindings, from.Scopes = bindings, scopes
	made, err := crossLayer.Continue(context.Background(), &from, "bind", scheduler.Options{InPlace: c.inPlace})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := binding.Seconds(made, m), n.Problem.Seconds(choice); math.Abs(got-want) > 1e-9*want {
		t.Errorf("the schedule costs %g s, the tables say %g", got, want)
	}
	return made
}

func TestNetworks(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name(), func(t *testing.T) {
			s, n, m := pose(t, c)
			given, scopes := n.Decode(n.Given)
			if !slices.EqualFunc(given, s.Bindings, schedule.Binding.Equal) {
				t.Error("the given choice has other bindings than the schedule")
			}
			for i := range scopes {
				if len(s.Instances.Consumers[i]) > 0 && scopes[i] != s.Scopes[i] {
					t.Errorf("instance %d is given scope %v, the schedule has %v", i, scopes[i], s.Scopes[i])
				}
			}
			checkChoice(t, c, s, n, m, n.Given)
			got, err := binding.Search(context.Background(), n.Problem,
				binding.Options{Start: n.Given})
			if err != nil {
				t.Fatal(err)
			}
			greedy := n.Problem.Seconds(n.Given)
			if got.Status != milp.Optimal || got.Objective > greedy || got.Bound > got.Objective ||
				got.Bound < n.Problem.Floor() {
				t.Errorf("got %v, objective %g, bound %g; greedy has %g", got.Status, got.Objective, got.Bound, greedy)
			}
			checkChoice(t, c, s, n, m, got.Choice)
			// Any other choice is no better, and priced the same both ways.
			r := rand.New(rand.NewPCG(1, uint64(len(n.Given))))
			for range 3 {
				choice := slices.Clone(n.Given)
				for i := range choice {
					if r.IntN(3) == 0 {
						choice[i] = r.IntN(len(n.Problem.Nodes[i].Labels))
					}
				}
				if n.Problem.Seconds(choice) < got.Bound-1e-12 {
					t.Errorf("a random choice costs %g, below the bound %g", n.Problem.Seconds(choice), got.Bound)
				}
				bindings, scopes := n.Decode(choice)
				other := *s
				other.Bindings, other.Scopes = bindings, scopes
				if err := other.BuildSteps(context.Background(), schedule.L1); err != nil {
					t.Fatal(err)
				}
				if got, want := binding.Seconds(&other, m), n.Problem.Seconds(choice); math.Abs(got-want) > 1e-9*want {
					t.Errorf("a random choice costs %g s step by step, the tables say %g", got, want)
				}
			}
		})
	}
}

// A network output that layers read and that is kept is read where it is kept, and stored besides.
func TestKeptOutputs(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	price := func(output bool, outputs string) float64 {
		b := model.NewBuilder("kept")
		x := b.Input("x", model.F16, 256, 512)
		y := b.Op("MatMul", "first", model.Attr{}, x, b.Param("v", model.F16, 512, 512))
		if output {
			b.Output(y)
		}
		b.Output(b.Op("MatMul", "second", model.Attr{}, y, b.Param("w", model.F16, 512, 64)))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		recipe := crossLayer.Picking(scheduler.Pick{Stage: "outputs", Strategy: outputs})
		s, err := recipe.Schedule(t.Context(), g, spec, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := binding.FromSchedule(t.Context(), s, m)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := binding.Seconds(s, m), n.Problem.Seconds(n.Given); math.Abs(got-want) > 1e-9*want {
			t.Errorf("the schedule costs %g s, the tables say %g", got, want)
		}
		return n.Problem.Seconds(n.Given)
	}
	inside, kept, stored := price(false, "l1"), price(true, "l1-kept"), price(true, "l1")
	if !(inside < kept && kept < stored) {
		t.Errorf("%g s without an output between, %g s with a kept one, %g s with another; expected this order", inside,
			kept, stored)
	}
}

// Algorithm 4 sends the output of BERT's feed-forward layers through the LLB; the
// optimum keeps all but a few in the L1, and the simulator agrees that it is better.
func TestBERTFeedForward(t *testing.T) {
	c := networkCase{"bert-128", "stcp920", 8, false}
	s, n, m := pose(t, c)
	got, err := binding.Search(context.Background(), n.Problem, binding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	count := func(s *schedule.Schedule) (gb int) {
		for _, l := range s.Scopes {
			if l == schedule.LLB {
				gb++
			}
		}
		return gb
	}
	best := checkChoice(t, c, s, n, m, got.Choice)
	before, err := scheduler.Replay(context.Background(), "greedy", s, 4, 1,
		lower.Options{Generator: schedule.Generator{KeepWeights: true, CrossLayer: true, Prefetch: true}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := scheduler.Replay(context.Background(), "best", best, 4, 1,
		lower.Options{Generator: schedule.Generator{KeepWeights: true, CrossLayer: true, Prefetch: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("scope LLB: %d, then %d; %d ps, then %d ps", count(s), count(best), before.TotalPs, after.TotalPs)
	if count(best) >= count(s) || after.TotalPs >= before.TotalPs {
		t.Errorf("scope LLB: %d, then %d; %d ps, then %d ps", count(s), count(best), before.TotalPs, after.TotalPs)
	}
}

func TestFromScheduleRefuses(t *testing.T) {
	s, _, m := pose(t, cases[0])
	short := *s
	short.Scopes = nil
	if _, err := binding.FromSchedule(t.Context(), &short, m); err == nil || !strings.Contains(err.Error(), "0 scopes") {
		t.Errorf("no scopes: got %v", err)
	}
}
