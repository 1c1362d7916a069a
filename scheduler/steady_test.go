package scheduler_test

import (
	"context"
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/scheduler"
)

// The steady rate against that of a long row of batches, found by counting iterations: what
// 20 take longer than 10. Where every kernel loads its own weights behind its launch, a row of
// batches has nothing to gain.
func TestSteadyRate(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		model        string
		batch, chunk int64
		variant      string
		alone        bool // batches follow each other without overlap
	}{
		{"resnet18", 32, 8, "tvm", true},
		{"resnet18", 32, 8, "cross-layer", false},
		{"resnet50", 32, 4, "cross-layer", false},
		{"bert-128", 8, 2, "cross-layer", false},
		{"dlrm", 256, 64, "cross-layer", false},
	} {
		r := run(t, c.model, "stcp920", c.batch, c.chunk, c.variant)
		got, err := r.Steady(ctx)
		if err != nil {
			t.Fatal(err)
		}
		row := func(batches int, fresh bool) int64 {
			opt := r.Lower
			opt.Batches, opt.Fresh = batches, fresh
			s, err := scheduler.Replay(ctx, "row", r.Schedule, 4, batches*r.Plans[0][0].Iterations, opt)
			if err != nil {
				t.Fatal(err)
			}
			return s.TotalPs
		}
		rate := func(fresh bool) float64 {
			return float64(10*c.batch) / (float64(row(20, fresh)-row(10, fresh)) * 1e-12)
		}
		want := max(rate(false), rate(true))
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("%s by %s: steady rate %g/s, 10 more batches in a row give %g/s", c.model, c.variant, got, want)
		}
		if got < 0.999*r.ThroughputPerSecond() {
			t.Errorf("%s by %s: steady rate %g/s, one batch %g/s", c.model, c.variant, got, r.ThroughputPerSecond())
		}
		if alone := math.Abs(got/r.ThroughputPerSecond()-1) < 0.001; alone != c.alone {
			t.Errorf("%s by %s: steady rate %g/s, one batch %g/s; expected the same: %t", c.model, c.variant, got,
				r.ThroughputPerSecond(), c.alone)
		}
	}
}

// Shares that differ and a remainder of a chunk.
func TestSteadyRateOfUnequalShares(t *testing.T) {
	r := run(t, "resnet18", "stcp920", 13, 3, "cross-layer")
	got, err := r.Steady(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	work := int64(0) // that no weights kept and no overlap can save
	for i, q := range r.Program.Queues {
		if q.Kind == isa.MatrixQueue || q.Kind == isa.VectorQueue {
			work = max(work, r.Sim.Queues[i].BusyPs)
		}
	}
	if bound := float64(r.Batch) / (float64(work) * 1e-12); got < r.ThroughputPerSecond() || got > bound {
		t.Errorf("steady rate %g/s, one batch %g/s, its busiest unit %g/s", got, r.ThroughputPerSecond(), bound)
	}
}

func TestSteadyRateOfALargeProgram(t *testing.T) {
	r := run(t, "toy-fig3", "stcp920", 4, 1, "tvm")
	for k := range r.Plans {
		r.Plans[k] = []lower.Segment{{Schedule: r.Schedule, Iterations: 60_000 / len(r.Schedule.Steps)}}
	}
	if _, err := r.Steady(context.Background()); err == nil {
		t.Error("no error for a program of 240 000 layers a cluster")
	}
}
