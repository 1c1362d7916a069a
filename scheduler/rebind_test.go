package scheduler_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// With its own bindings and scopes a schedule becomes itself, and replayed it takes
// the time that Run found.
func TestRebindToItself(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	src, err := network.Open("bert-128", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r, err := scheduler.Run(ctx, src, spec, 32, v, scheduler.Options{Chunk: 4})
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Continue(ctx, r.Schedule, "bind", scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s, r.Schedule) {
		t.Error("the schedule has changed")
	}
	got, err := scheduler.Replay(ctx, "again", s, 4, 2, r.Lower)
	if err != nil || got.TotalPs != r.Sim.TotalPs {
		t.Errorf("replayed it takes %v ps (%v), Run found %d", got, err, r.Sim.TotalPs)
	}

	unbound := *r.Schedule
	unbound.Bindings, unbound.Scopes = nil, nil
	if _, err := v.Continue(ctx, &unbound, "bind", scheduler.Options{}); err == nil ||
		!strings.Contains(err.Error(), "0 bindings and 0 scopes, expected") {
		t.Errorf("no bindings: got %v", err)
	}
}
