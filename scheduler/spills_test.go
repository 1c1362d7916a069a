package scheduler

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
)

// left lists the values of a network's chunk that leave the L1 by a recipe, with another strategy for some stages.
func left(t *testing.T, net, machine string, chunk int64, recipe Recipe, picks ...Pick) (names []string) {
	t.Helper()
	g, err := zoo.Build(net, zoo.Options{Batch: chunk})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load(machine)
	if err != nil {
		t.Fatal(err)
	}
	if spec, err = LevelAuto.Machine(spec); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(picks, Pick{"nest", "rules"}) {
		recipe = recipe.Picking(p)
	}
	d, err := recipe.Draft(t.Context(), g, spec, Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range d.Spills {
		if x.From == schedule.L1 {
			names = append(names, d.Graph.Tensor(d.Values[x.Value].Tensor).Name)
		}
	}
	return names
}

// A result whose reader would pass its weights several times stays in the L1 where tiles pass them once.
func TestSpillsForWeights(t *testing.T) {
	recipe, err := Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	gelu := func(name string) bool { return strings.HasSuffix(name, ".ffn.gelu") }
	for spill, leaves := range map[string]bool{"longest-lifetime": true, "needed": false} {
		if names := left(t, "bert-256", "stcp920", 4, recipe, Pick{"spill", spill}); slices.ContainsFunc(names,
			gelu) != leaves {
			t.Errorf("%s: a result of GELU leaves: %v, expected %v; these leave: %v", spill, !leaves, leaves, names)
		}
	}
}

// An attention is spread over the cores so that the L1s have room for operands that come whole from other cores.
func TestAttentionLeavesOperandsInPlace(t *testing.T) {
	recipe, err := Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	if names := left(t, "bert-256", "ipu", 8, recipe); len(names) > 0 {
		t.Errorf("these leave the L1: %v, expected none", names)
	}
}

// An output of the network that layers read leaves the L1 before other values, since it is stored anyway. Where outputs
// are in the DDR alone, it never was there.
func TestOutputsLeaveFirst(t *testing.T) {
	recipe, err := Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	const keys, queries = "decoder.layer0.attention.key.transpose", "decoder.layer0.attention.query.transpose"
	names := left(t, "gpt2-prefill", "stcp920", 4, recipe)
	if k, q := slices.Index(names, keys), slices.Index(names, queries); k < 0 || q < k {
		t.Errorf("keys leave the L1 at place %d, queries at place %d, expected keys first: %v", k, q, names)
	}
	if names := left(t, "gpt2-prefill", "stcp920", 4, recipe, Pick{"outputs", "l1"}); slices.Contains(names, keys) {
		t.Error("keys leave the L1, expected them in the DDR alone")
	}
}

// Plans by rule least-moved keep all rules, send less through the DDR than the longest lifetime does where several
// images of a network are one instance, and come back from what a search takes of them.
func TestLeastMoved(t *testing.T) {
	recipe, err := Lookup(GreedyRecipe)
	if err != nil {
		t.Fatal(err)
	}
	over := 0
	for _, c := range []struct {
		net, machine string
		batch        int64
		less         bool
	}{{"densenet121", "stcp920", 4, true}, {"resnet18", "ipu", 1, false}, {"bert-128", "stcp920", 2, false},
		{"vit-b16", "ascend910", 1, false}} {
		g, err := zoo.Build(c.net, zoo.Options{Batch: c.batch})
		if err != nil {
			t.Fatal(err)
		}
		spec, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		plan := func(decide func(context.Context, *Draft) error) (d *Draft, bytes int64) {
			by := recipe.Picking(Pick{"group", "one"}).Picking(Pick{"split", "none"})
			d, err := by.With("spill", Strategy{Name: "test", Decide: decide}).Draft(t.Context(), g, spec,
				Options{Chunk: c.batch}) // which checks the plan
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Values {
				if v := &d.Values[i]; v.Def >= 0 && v.Wanted < schedule.DDR && v.Level == schedule.DDR {
					bytes += v.Bytes
				}
			}
			return d, bytes
		}
		by := func(rule string) (*Draft, int64) {
			return plan(func(ctx context.Context, d *Draft) error {
				return table.Place(ctx, d.Schedule, Placing{Rule: rule, Over: true})
			})
		}
		_, longest := by("longest-lifetime")
		d, least := by("least-moved")
		if c.less && least >= longest {
			t.Errorf("%s on %s: %d bytes in the DDR by the longest lifetime and %d by least-moved, expected less",
				c.net, c.machine, longest, least)
		}
		for _, x := range d.Spills {
			if v := &d.Values[x.Value]; v.Level < x.To {
				t.Errorf("%s on %s: %s is in level %d, but has gone to %d", c.net, c.machine,
					g.Tensor(v.Tensor).Name, v.Level, x.To)
			}
		}
		if x := takePlacement(d, true).(placement); x.overwrite {
			over++
			again, _ := plan(x.Apply)
			if !slices.EqualFunc(again.Values, d.Values, func(a, b schedule.Value) bool { return a.Level == b.Level }) {
				t.Errorf("%s on %s: other levels from the decision, which has rule %s", c.net, c.machine, x.rule)
			}
		}
	}
	if over == 0 {
		t.Error("nowhere does a result take the place of an operand")
	}
}

// Half of the moves that send a result out of the L1, or let it stay, hold all others away that have left it.
func TestMoveHoldsOthersAway(t *testing.T) {
	net, chip, recipe := greedyOn(t, "bert-512")
	made, err := Run(t.Context(), net, chip, 8, recipe, Options{Chunk: 2})
	if err != nil {
		t.Fatal(err)
	}
	away := map[model.TensorID]bool{}
	for i := range made.Schedule.Values {
		if v := &made.Schedule.Values[i]; v.Spilled() {
			away[v.Tensor] = true
		}
	}
	if len(away) == 0 {
		t.Fatal("all values stay in the L1")
	}
	p := made.Decisions(false, false)
	a := &Site{Decisions: p, Schedule: made.Schedule, Took: make([]int64, len(p.Groups())),
		Rand: rand.New(rand.NewPCG(1, 1)), Same: func(k int) []int { return []int{k} }}
	w := NewProblem(net, chip, made.Spec, 8, Options{})
	held, moves := 0, 0
	for range 200 {
		q := a.moveDown()
		if q == nil {
			continue
		}
		moves++
		n := 0
		for id := range away {
			if of[placement](q).forceLLB[id] {
				n++
			}
		}
		if n > len(away)/2 {
			held++
		}
		if moves > 6 {
			continue
		}
		r, err := w.Result(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		comesBack(t, r, chip)
	}
	if held < moves/3 || held > 2*moves/3 {
		t.Errorf("%d of %d moves hold what is away, expected half", held, moves)
	}
}
