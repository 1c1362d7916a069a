package scheduler

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// The table that package recipes hands in, for tests that stand inside: those outside import that package.

const (
	GreedyRecipe = "cross-layer"
	Default      = "tiled"
)

// Rehearsals are of a stage's decisions on a draft, by the rest of a recipe.
func (d *Draft) Rehearsals(stage string, rest Recipe) *Rehearsal {
	d.rest = rest
	return d.Rehearse(stage)
}

func (x *Rehearsal) Time(ctx context.Context, d *Draft) Outcome { return x.time(ctx, d) }

func (list Groups) Grouping(g *model.Graph) *schedule.Grouping { return list.grouping(g) }

func Lookup(name string) (Recipe, error) { return lookup(name) }

// All are the recipes that need no trials.
func All() []Recipe {
	return slices.DeleteFunc(slices.Clone(table.Recipes),
		func(r Recipe) bool { return r.Evaluations > 0 || r.Pick("nest") == "ansor" })
}

func Tiled() []Recipe {
	return slices.DeleteFunc(slices.Clone(table.Recipes), func(r Recipe) bool { return !r.Ours })
}

// On simulates the schedules of r again on a machine that differs from r's only in
// what no decision looks at: the time of a launch, the efficiency of the DDR, what a
// matrix unit loses between blocks. The decisions are not made again.
func (r *Result) On(ctx context.Context, spec *hardware.Spec) (*Result, error) {
	machine, err := r.Clusters.machine(spec, r.level)
	if err != nil {
		return nil, err
	}
	again := *r
	again.Machine, again.Spec, again.Tried, again.Sim = spec, machine, nil, nil
	if err := again.Simulate(ctx); err != nil {
		return nil, err
	}
	return &again, nil
}

// WithoutHead is a result of whose head nothing is known.
func (r *Result) WithoutHead() *Result {
	x := *r
	x.head = nil
	return &x
}

// standing opens a built-in network, a built-in machine and a recipe.
func standing(t *testing.T, name, machine, variant string) (network.Network, *hardware.Spec, Recipe) {
	t.Helper()
	net, wrong := network.Open(name, network.Options{})
	chip, err := hardware.Load(machine)
	recipe, unknown := Lookup(variant)
	if err := cmp.Or(wrong, err, unknown); err != nil {
		t.Fatal(err)
	}
	return net, chip, recipe
}
