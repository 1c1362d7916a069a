//go:build cgo

package allocate_test

import (
	"context"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// The sweep and the integer program agree on what networks really pose.
func TestSpillProblemByILP(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"toy-fig3", "mobilenetv2", "inception-v3", "swin-t", "bert-128"} {
		src, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := src.Graph(8)
		if err != nil {
			t.Fatal(err)
		}
		s, err := recipe.Schedule(context.Background(), g, spec, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.BuildSteps(context.Background(), schedule.L1); err != nil {
			t.Fatal(err)
		}
		p := exact.NewSpillProblem(s)
		opts := allocate.SweepOptions{Demands: p.Demands}
		sweep, err := allocate.SpillSweep(context.Background(), p.Problem, p.CapacityBytes, opts)
		if err != nil || sweep.Status != milp.Optimal {
			t.Fatalf("%s: %+v, %v", name, sweep, err)
		}
		opts.Solver, opts.TimeLimit = solver, time.Minute
		ilp, err := allocate.SpillSweepILP(context.Background(), p.Problem, p.CapacityBytes, opts)
		if err != nil {
			t.Fatal(err)
		}
		// The solver's tolerances are relative to costs of 1e8 bytes and more.
		if ilp.Cost < sweep.Cost || ilp.Status == milp.Optimal && float64(ilp.Cost-sweep.Cost) > 1e-4*float64(sweep.Cost) ||
			ilp.Status != milp.Optimal && ilp.Bound > sweep.Cost {
			t.Errorf("%s: the integer program finds %v, %d, bound %d, the sweep %d", name, ilp.Status, ilp.Cost, ilp.Bound,
				sweep.Cost)
		}
		t.Logf("%s: %v", name, ilp.Status)
	}
}
