package scheduler_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// replaced runs a variant with other strategies.
func replaced(t testing.TB, network string, batch, chunk int64, variant string,
	picks ...scheduler.Pick) *scheduler.Result {
	t.Helper()
	v, err := recipes.Lookup(variant)
	if err != nil {
		t.Fatal(err)
	}
	if v, err = v.Replace(scheduler.Options{}, picks...); err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), open(t, network), load(t, "stcp920"), batch, v,
		scheduler.Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What the strategies of issue and prefetch allow is what loads do in simulated time.
func TestWhatLoadsOvertake(t *testing.T) {
	for _, c := range []struct {
		issue, prefetch            string
		exposed, waits, paysLaunch bool
	}{
		{"in-order", "wait", false, true, true},
		{"exposed", "wait", true, true, true},
		{"in-order", "ahead", false, false, true},
		{"cross-layer", "wait", false, true, true},
		{"cross-layer", "ahead", false, false, true},
		{"cross-layer", "at-start", false, false, false},
	} {
		r := replaced(t, "resnet18", 16, 4, "ordering", scheduler.Pick{Stage: "issue", Strategy: c.issue},
			scheduler.Pick{Stage: "prefetch", Strategy: c.prefetch})
		exposed, waits, paysLaunch := true, true, true
		launched, first := int64(0), int64(-1)
		for i, cmd := range r.Program.Commands {
			if r.Program.Queues[cmd.Queue].Cluster != 0 {
				break
			}
			if cmd.Kind == isa.Launch {
				if launched = r.Sim.End[i]; first < 0 {
					first = launched
				}
			}
			if cmd.Kind != isa.DDRLoad && cmd.Kind != isa.L1Load {
				continue
			}
			waits = waits && r.Sim.Start[i] >= launched
			paysLaunch = paysLaunch && r.Sim.Start[i] >= first
			tensor := r.Program.Tasks[cmd.Task-1].Reads[cmd.Operand].Tensor
			if r.Schedule.Graph.Tensor(model.TensorID(tensor)).Role != model.Constant {
				continue
			}
			for k, other := range r.Program.Commands {
				computes := other.Kind == isa.Matrix || other.Kind == isa.Vector || other.Kind == isa.Special
				if computes && r.Program.Queues[other.Queue].Cluster == 0 && r.Sim.Start[k] < r.Sim.End[i] &&
					r.Sim.Start[i] < r.Sim.End[k] {
					exposed = false
				}
			}
		}
		if exposed != c.exposed || waits != c.waits || paysLaunch != c.paysLaunch {
			t.Errorf("%s, %s: weights wait for computation %t, loads for their launch %t, for the first %t; want %t, %t, %t",
				c.issue, c.prefetch, exposed, waits, paysLaunch, c.exposed, c.waits, c.paysLaunch)
		}
	}
}

// Units that begin on the parts of a result that are complete end no later, and sooner where rows pass in pieces.
func TestCrossUnit(t *testing.T) {
	for network, sooner := range map[string]bool{"squeezenet": true, "resnet18": false} {
		whole := replaced(t, network, 16, 4, "cross-layer")
		parts := replaced(t, network, 16, 4, "cross-layer", scheduler.Pick{Stage: "issue", Strategy: "cross-unit"})
		if a, b := parts.LatencySeconds(), whole.LatencySeconds(); a > b || sooner && a == b {
			t.Errorf("%s: %g s on parts, %g s on whole results", network, a, b)
		}
		if err := certificate.Covers(whole); err != nil {
			t.Errorf("%s: %v", network, err)
		}
		if err := certificate.Covers(parts); err == nil || !strings.Contains(err.Error(), "issue: found cross-unit") {
			t.Errorf("%s: the bound covers it: %v", network, err)
		}
	}
	// An exchange in one part waits for its whole input, even if the cores lack only the first parts of it.
	small := load(t, "stcp920").Clone()
	few(small, 3)
	small.DDR.BandwidthBytesPerSecond = 54e9
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	if v, err = v.Replace(scheduler.Options{}, scheduler.Pick{Stage: "issue", Strategy: "cross-unit"}); err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Run(t.Context(), open(t, "swin-t"), small, 4, v, scheduler.Options{Chunk: 1}); err != nil {
		t.Error(err)
	}
}
