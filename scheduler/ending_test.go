package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
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
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Prepare(context.Background(), net, spec, 4, scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, plan := range r.Plans {
		plan[0].Iterations = 1 << 17
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

// Clusters that repeat a chunk in unequal numbers may have fewer commands, so that batches that they don't divide
// evenly take little memory; what is too much is known after two iterations. The error of a batch all of whose chunks
// are too large says so once.
func TestUnequalSharesEnd(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Prepare(context.Background(), net, spec, 4, scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	again := func(iterations, others int) (asked int, err error) {
		for k, plan := range r.Plans {
			plan[0].Iterations = others
			if k == 0 {
				plan[0].Iterations = iterations
			}
		}
		opt := r.Lower
		opt.Stopped = func() error { asked++; return nil }
		_, _, err = lower.Outline("net", spec, r.Plans, opt)
		return asked, err
	}
	p, _, err := lower.Outline("net", spec, r.Plans, r.Lower)
	if err != nil {
		t.Fatal(err)
	}
	enough := 3_000_000 / len(p.Commands)
	var large *lower.TooLargeError
	if asked, err := again(enough, enough+1); !errors.As(err, &large) || !strings.Contains(err.Error(), "unequal") ||
		asked > 2*len(r.Schedule.Steps) {
		t.Errorf("unequal shares: %v after %d steps", err, asked)
	}
	if _, err := again(8*enough, 8*enough); !errors.As(err, &large) || strings.Contains(err.Error(), "unequal") {
		t.Errorf("equal shares: %v", err)
	}
	_, err = scheduler.Run(context.Background(), net, spec, 4*2*131_071-1, v, scheduler.Options{}) // chunks of 1 and 2
	if !errors.As(err, &large) || strings.Count(err.Error(), "none of ") != 1 {
		t.Errorf("all chunks: %v", err)
	}
}

// Lowering ends within a layer, too: one operator on 2^34 elements has tens of thousands of commands, and no command
// comes after the one at which lowering was told to stop.
func TestLoweringEndsInALayer(t *testing.T) {
	net := built("relu", func(b *model.Builder, n int64) {
		b.Output(b.Op("Relu", "r", model.Attr{}, b.Input("x", model.F32, n, 1<<20, 1<<12, 4)))
	})
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Prepare(context.Background(), net, spec, 1, scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	opt := r.Lower
	opt.Most = 50_000
	_, _, err = lower.Outline("net", spec, r.Plans, opt)
	var large *lower.TooLargeError
	made := 0
	if !errors.As(err, &large) {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(large.What, "have at least %d commands", &made); err != nil || made > opt.Most+1<<14 {
		t.Errorf("%v, want it known soon after %d commands", large, opt.Most)
	}
	stop, asked := errors.New("stop"), 0
	opt.Most = 0
	opt.Stopped = func() error {
		if asked++; asked > 1 {
			return stop
		}
		return nil
	}
	if _, _, err := lower.Outline("net", spec, r.Plans, opt); !errors.Is(err, stop) || asked != 2 {
		t.Errorf("%v, asked %d times, want the error that it was stopped with the second time", err, asked)
	}
}

// What one step brings from the DDR and back is counted before it is lowered.
func TestStepsAreCounted(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	relu := func(b *model.Builder, n int64) {
		b.Output(b.Op("Relu", "r", model.Attr{}, b.Input("x", model.F32, n, 1<<40)))
	}
	product := func(b *model.Builder, n int64) {
		b.Output(b.Op("MatMul", "r", model.Attr{}, b.Input("x", model.F32, n, 1<<19),
			b.Param("w", model.F32, 1<<19, 1<<19)))
	}
	for name, make := range map[string]func(*model.Builder, int64){"relu": relu, "product": product} {
		v, err := recipes.Lookup("tvm")
		if err != nil {
			t.Fatal(err)
		}
		r, err := v.Prepare(context.Background(), built(name, make), spec, 1, scheduler.Options{Chunk: 1})
		if err != nil {
			t.Fatal(err)
		}
		opt := r.Lower
		opt.Stopped = func() error { return errors.New("lowered") }
		_, _, err = lower.Outline("net", spec, r.Plans, opt)
		if large := new(lower.TooLargeError); !errors.As(err, &large) ||
			!strings.Contains(err.Error(), `layer "r", more than 1048576`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
