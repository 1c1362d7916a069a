//go:build cgo

package variant_test

import (
	"context"
	"testing"
	"time"

	"github.com/dsasched/dsasched/experiments/variant"
	"github.com/dsasched/dsasched/formulation/highs"
	exact "github.com/dsasched/dsasched/formulation/memory"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/schedule"
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
	for _, name := range []string{"toy-fig3", "mobilenetv2", "inception-v3", "swin-t", "bert-128"} {
		s := crossLayerOf(t, name, spec, 8)
		if err := s.BuildSteps(schedule.LB); err != nil {
			t.Fatal(err)
		}
		p := variant.NewSpillProblem(s)
		opts := exact.SweepOptions{Demands: p.Demands}
		sweep, err := exact.SpillSweep(context.Background(), p.Problem, p.CapacityBytes, opts)
		if err != nil || sweep.Status != milp.Optimal {
			t.Fatalf("%s: %+v, %v", name, sweep, err)
		}
		ilp, err := exact.SpillSweepILP(context.Background(), p.Problem, p.CapacityBytes, solver, opts, milp.Options{TimeLimit: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		// The solver's tolerances are relative to costs of 1e8 bytes and more.
		if ilp.Cost < sweep.Cost || ilp.Status == milp.Optimal && float64(ilp.Cost-sweep.Cost) > 1e-4*float64(sweep.Cost) || ilp.Status != milp.Optimal && ilp.Bound > sweep.Cost {
			t.Errorf("%s: the integer program finds %v, %d, bound %d, the sweep %d", name, ilp.Status, ilp.Cost, ilp.Bound, sweep.Cost)
		}
		t.Logf("%s: %v", name, ilp.Status)
	}
}
