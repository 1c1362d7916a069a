package scheduler_test

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Where an instance is larger than the L1s the problem of the order has an answer all the same: it passes in tiles.
func TestOrderProblemInTiles(t *testing.T) {
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	tiled := 0
	for _, c := range []struct {
		network, machine string
		chunk            int64
	}{{"squeezenet", "stcp920", 8}, {"densenet121", "stcp920", 8}, {"vit-b16", "stcp920", 8}, {"resnet18", "ipu", 4}} {
		g, err := open(t, c.network).Graph(c.chunk)
		if err != nil {
			t.Fatal(err)
		}
		s, err := v.Schedule(t.Context(), g, load(t, c.machine), scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, notes, err := exact.OrderProblem(s, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(notes, " "), "pass in tiles") {
			tiled++
		}
		if len(notes) > 5 { // a line for each cause
			t.Errorf("%s on %s: %d notes, the first %q", c.network, c.machine, len(notes), notes[0])
		}
		og := ordering.NewGraph(p)
		r, err := ordering.Fixed("given", og, og.Obey(s.Order), ordering.Traffic)
		if err != nil || !r.HasOrder() {
			t.Errorf("%s on %s: the greedy order is no answer (%v)", c.network, c.machine, err)
		}
	}
	if tiled == 0 {
		t.Error("no instance passes in tiles")
	}
}
