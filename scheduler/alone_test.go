package scheduler_test

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

// The exact methods begin with the decision of a schedule, so that with no time they have it, and refuse
// a schedule of something else.
func TestAloneStart(t *testing.T) {
	ctx, chip, net := t.Context(), load(t, "stcp920"), open(t, "bert-128")
	opt := answers.AloneOptions{Options: scheduler.Options{TimeLimit: 1}}
	methods := map[string]func(opt answers.AloneOptions) (*answers.Alone, error){
		"exact-bind": func(opt answers.AloneOptions) (*answers.Alone, error) {
			a, err := answers.Bind(ctx, net, chip, 32, "search", opt)
			if err != nil {
				return nil, err
			}
			return &a.Alone, nil
		},
		"exact-split": func(opt answers.AloneOptions) (*answers.Alone, error) {
			a, err := answers.Split(ctx, net, chip, 32, "search", opt)
			if err != nil {
				return nil, err
			}
			return &a.Alone, nil
		},
	}
	var split *scheduler.Result
	for variant, solve := range methods {
		recipe, err := recipes.Lookup(variant)
		if err != nil {
			t.Fatal(err)
		}
		made, err := scheduler.Run(ctx, net, chip, 32, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		without, err := solve(opt)
		if err != nil {
			t.Fatal(err)
		}
		from := opt
		from.Start = made
		if variant == "exact-split" {
			split = made
		}
		with, err := solve(from)
		if err != nil {
			t.Fatal(err)
		}
		if with.Objective >= without.Objective && without.Status != milp.Optimal.String() || with.Bound > with.Objective ||
			with.Greedy != without.Greedy {
			t.Errorf("%s: from its answer %g (%s), from the greedy one %g (%s)", variant, with.Objective, with.Status,
				without.Objective, without.Status)
		}
		from.Chunk = 4
		if _, err := solve(from); err == nil ||
			!strings.Contains(err.Error(), "the schedule to start from: chunk: found 8, expected one of [4]") {
			t.Errorf("%s: a schedule of another chunk: %v", variant, err)
		}
	}
	opt.Start = split
	if _, err := answers.Bind(ctx, net, chip, 32, "search", opt); err == nil ||
		!strings.Contains(err.Error(), "the schedule to start from: ") ||
		!strings.Contains(err.Error(), "of the greedy schedule") {
		t.Errorf("other groups: %v", err)
	}
}
