package scheduler

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// Bindings of layers inside groups are decided for all clusters at once, and the sum of what the
// clusters run has all of them, in whatever order groups come.
func TestBindingsOfClusters(t *testing.T) {
	net, chip, recipe := standing(t, "resnet18", "stcp920", "cross-layer")
	calls := 0
	recipe = recipe.With("bind", Strategy{Name: "second choice", Decide: func(ctx context.Context, d *Draft) error {
		calls++
		if err := ruleFor("bind").Decide(ctx, d); err != nil {
			return err
		}
		d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
		for k, layers := range d.Layers {
			d.LayerBindings[k] = make([]schedule.Binding, len(layers))
			for l := range layers {
				inst := &d.Instances.Instances[d.Instances.First[k]+int(d.Grouping.Groups[k].Factor()/2)]
				if out := layers[l].Outputs; len(out) > 0 && inst.Regions[out[0]].Elements() > 0 {
					choices := schedule.BindingsOf(d.Schedule, d.LayerKind(k, l), &layers[l], out[0], inst.Regions[out[0]])
					if len(choices) > 1 {
						d.LayerBindings[k][l] = choices[1]
					}
				}
			}
		}
		return nil
	}})
	r, err := Run(t.Context(), net, chip, 2, recipe,
		Options{Chunk: 2, Clusters: OverLayer, Uneven: schedule.UnevenNone})
	if err != nil {
		t.Fatal(err)
	}
	if most := len(OverLayer.weights(chip)); calls > most {
		t.Errorf("bindings were decided %d times, at most once for each of %d settings", calls, most)
	}
	var parts []*schedule.Schedule
	for _, plan := range r.Plans {
		parts = append(parts, plan[0].Schedule)
	}
	whole := r.Schedule
	backward := slices.Clone(whole.Order)
	slices.Reverse(backward)
	if len(whole.Grouping.Groups) < 2 {
		t.Fatal("one group has no order")
	}
	sum, err := joined(backward, parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, sum := range []*schedule.Schedule{whole, sum} {
		for k := range whole.Grouping.Groups {
			for c, part := range parts {
				if !reflect.DeepEqual(sum.LayerBindings[k], part.LayerBindings[k]) {
					t.Errorf("group %d: %v, cluster %d has %v", k, sum.LayerBindings[k], c, part.LayerBindings[k])
				}
			}
		}
	}
	data, err := r.File(schedulefile.Origin{Model: "resnet18"}).Write()
	if err != nil {
		t.Fatal(err)
	}
	f, err := schedulefile.Read("a.json", data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore(t.Context(), f, chip)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Program, r.Program) {
		t.Error("another program")
	}
}

// One memory serves several machines: each gets the runs of its own prices. An ended context leaves no error behind.
func TestSpreadOnSeveralMachines(t *testing.T) {
	net, spec, _ := greedyOn(t, "alexnet")
	g, err := net.Graph(4)
	if err != nil {
		t.Fatal(err)
	}
	shared := &Memory{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := shared.spread(ended, g, spec, Options{}, 1); err == nil {
		t.Error("an ended context is not an error")
	}
	for _, machine := range []*hardware.Spec{spec, spec.Part(2)} {
		_, got, err := shared.spread(t.Context(), g, machine, Options{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, want, err := (&Memory{}).spread(t.Context(), g, machine, Options{}, 1)
		if err != nil || got != want {
			t.Errorf("%d cores: %g s with the memory of another machine, alone %g (%v)", machine.CoreTypes[0].Count, got, want,
				err)
		}
	}
}
