package scheduler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// A program that would be far too large is refused after a few of its iterations, and lowering ends with
// what it asks.
func TestLoweringEnds(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := scheduler.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Prepare(context.Background(), net, spec, 4, v, scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, plan := range r.Plans {
		plan[0].Iterations = 1 << 18
	}
	asked := 0
	opt := r.Lower
	opt.Most = 100_000
	opt.Stopped = func() error { asked++; return nil }
	_, _, err = lower.Outline("net", spec, r.Plans, opt)
	var large *lower.TooLargeError
	if steps := len(r.Schedule.Steps); !errors.As(err, &large) || asked > 2*steps {
		t.Errorf("%v after %d steps of %d", err, asked, steps)
	}
	stop := errors.New("stop")
	opt.Stopped = func() error { return stop }
	if _, _, err := lower.Outline("net", spec, r.Plans, opt); !errors.Is(err, stop) {
		t.Errorf("%v, want the error that it was stopped with", err)
	}
}
