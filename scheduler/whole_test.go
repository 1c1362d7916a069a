package scheduler_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/whole"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// convChain is so many convolutions in a row, each third one added to what the one before it reads.
func convChain(layers int) network.Network {
	name := fmt.Sprintf("chain of %d", layers)
	return network.Network{Name: name, Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder(name)
		x := b.Input("x", model.F16, batch, 8, 16, 16)
		before := x
		for k := range layers {
			y := b.Op("Conv", fmt.Sprintf("conv%d", k), model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1},
				Pads: []int64{1, 1, 1, 1}, Group: 1},
				x, b.Param(fmt.Sprintf("w%d", k), model.F16, 8, 8, 3, 3))
			if k%3 == 2 {
				y = b.Op("Add", fmt.Sprintf("add%d", k), model.Attr{}, y, before)
			}
			before, x = x, y
		}
		b.Output(x)
		return b.Build()
	}}
}

// narrow is a machine on which a few rows of such a chain fill the L1.
func narrow(t testing.TB) *hardware.Spec {
	s, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	s.Clusters, s.CoreTypes[0].Count = 1, 2
	s.LB.SizeBytes, s.LBWeightBytes, s.GB.SizeBytes, s.LaunchSeconds = 4<<10, 2<<10, 1<<20, 1e-6
	return s
}

// All decisions together: the search and the integer program agree, cost no more than the
// greedy decisions, and give a schedule that passes the checks and does not beat the bound.
func TestTogether(t *testing.T) {
	ctx := context.Background()
	solver, missing := highs.New()
	spec := narrow(t)
	for layers := 1; layers <= 4; layers++ {
		net := convChain(layers)
		low, err := bound.Cold(ctx, net, spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		least := math.Inf(1)
		for _, method := range whole.Methods() {
			if method.NeedsSolver && (missing != nil || layers > 2) {
				continue
			}
			a, err := scheduler.Together(ctx, net, spec, 1, method.Name,
				scheduler.AloneOptions{Options: scheduler.Options{Solver: solver, TimeLimit: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			if a.Status != milp.Optimal.String() || a.ThroughputPerSecond == nil || a.Objective > a.Greedy*(1+1e-9) &&
				a.Greedy > 0 {
				t.Errorf("%d layers by %s: %+v", layers, method.Name, a)
				continue
			}
			if s := 1 / *a.ThroughputPerSecond; s < low.Seconds {
				t.Errorf("%d layers by %s: %g s, below the bound %g", layers, method.Name, s, low.Seconds)
			}
			if least = min(least, a.Objective); math.Abs(a.Objective-least) > 1e-9 {
				t.Errorf("%d layers by %s: %g, another method %g", layers, method.Name, a.Objective, least)
			}
		}
	}
}

// How large a network the integer program and the search prove, and how far the answer is from
// the best simulated schedule.
func BenchmarkTogether(b *testing.B) {
	ctx := context.Background()
	solver, err := highs.New()
	if err != nil {
		b.Skip(err)
	}
	for layers := 1; layers <= 10; layers++ {
		for _, method := range []string{"search", "ilp"} {
			b.Run(fmt.Sprintf("layers=%d/%s", layers, method), func(b *testing.B) {
				for range b.N {
					a, err := scheduler.Together(ctx, convChain(layers), narrow(b), 1, method,
						scheduler.AloneOptions{Options: scheduler.Options{Solver: solver, TimeLimit: time.Minute}})
					if err != nil {
						b.Fatal(err)
					}
					best, err := scheduler.Best(ctx, convChain(layers), narrow(b), 1, scheduler.BestOptions{Evaluations: 100})
					if err != nil {
						b.Fatal(err)
					}
					m, err := a.Program()
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(m.NumVars()), "variables")
					b.ReportMetric(float64(a.Parts), "parts")
					b.ReportMetric(a.Seconds, "proof-s")
					b.ReportMetric(a.Objective*1e6, "us")
					b.ReportMetric(a.Bound*1e6, "bound-us")
					b.ReportMetric(a.Greedy*1e6, "greedy-us")
					b.ReportMetric(1e6 / *a.ThroughputPerSecond, "simulated-us")
					b.ReportMetric(1e6 / *a.GreedyThroughputPerSecond, "greedy-simulated-us")
					b.ReportMetric(best.LatencySeconds()*1e6, "best-us")
				}
			})
		}
	}
}

// Under a limit that ends before the problem is posed, or by a context that has ended, the answer is the greedy
// one or what it starts from, with a bound that holds.
func TestTogetherInNoTime(t *testing.T) {
	net, spec := convChain(3), narrow(t)
	full, err := scheduler.Together(t.Context(), net, spec, 1, "search", scheduler.AloneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := scheduler.Together(t.Context(), net, spec, 1, "search",
		scheduler.AloneOptions{Options: scheduler.Options{TimeLimit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != milp.Feasible.String() || a.Stop != milp.StopTime.String() || a.Objective != full.Greedy ||
		a.Bound <= 0 || a.Bound > full.Objective || a.ThroughputPerSecond == nil {
		t.Errorf("%+v, with time %+v", a, full)
	}
}

// The exact methods begin with the decision of a schedule, so that with no time they have it, and refuse
// a schedule of something else.
func TestAloneStart(t *testing.T) {
	ctx, chip, net := t.Context(), load(t, "stcp920"), open(t, "bert-128")
	opt := scheduler.AloneOptions{Options: scheduler.Options{TimeLimit: 1}}
	methods := map[string]func(opt scheduler.AloneOptions) (*scheduler.Alone, error){
		"exact-bind": func(opt scheduler.AloneOptions) (*scheduler.Alone, error) {
			a, err := scheduler.Bind(ctx, net, chip, 32, "search", opt)
			if err != nil {
				return nil, err
			}
			return &a.Alone, nil
		},
		"exact-split": func(opt scheduler.AloneOptions) (*scheduler.Alone, error) {
			a, err := scheduler.Split(ctx, net, chip, 32, "search", opt)
			if err != nil {
				return nil, err
			}
			return &a.Alone, nil
		},
	}
	for variant, solve := range methods {
		recipe, err := scheduler.Lookup(variant)
		if err != nil {
			t.Fatal(err)
		}
		made, err := scheduler.Run(ctx, net, chip, 32, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		without, err := solve(opt)
		if err != nil {
			t.Fatal(err)
		}
		from := opt
		from.Start = made
		with, err := solve(from)
		if err != nil {
			t.Fatal(err)
		}
		if with.Objective >= without.Objective && without.Status != milp.Optimal.String() || with.Bound > with.Objective ||
			with.Greedy != without.Greedy {
			t.Errorf("%s: from its answer %g (%s), from the greedy one %g (%s)", variant, with.Objective, with.Status,
				without.Objective, without.Status)
		}
		from.Chunk = 4
		if _, err := solve(from); err == nil || !strings.Contains(err.Error(),
			"the schedule to start from: chunk: found 8, expected one of [4]") {
			t.Errorf("%s: a schedule of another chunk: %v", variant, err)
		}
	}
	recipe, err := scheduler.Lookup("exact-split")
	if err != nil {
		t.Fatal(err)
	}
	if opt.Start, err = scheduler.Run(ctx, net, chip, 32, recipe, scheduler.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Bind(ctx, net, chip, 32, "search", opt); err == nil ||
		!strings.Contains(err.Error(), "the schedule to start from: group") {
		t.Errorf("other groups: %v", err)
	}
}
