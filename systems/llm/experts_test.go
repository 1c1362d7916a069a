package llm

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm/experts"
)

func olmoe(t *testing.T, preset string) (scheduler.Recipe, *zoo.Mixture, *hardware.Spec) {
	recipe, err := recipes.Lookup(recipes.Default)
	if err != nil {
		t.Fatal(err)
	}
	m, err := zoo.OpenMixture("olmoe-1b-7b", model.F16)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := chips.LoadMachine(preset)
	if err != nil {
		t.Fatal(err)
	}
	return recipe, m, machine
}

// Every plan has each expert once and is as fast as its formula says, but for what kernels of a chip share; the best
// is no slower than others; and no scenario is faster than its bound.
func TestPlaceExperts(t *testing.T) {
	recipe, m, machine := olmoe(t, "stcp920x4")
	routings, err := experts.Draw(2, m.Experts(), 12, m.Chosen(), 1, 5)
	if err != nil {
		t.Fatal(err)
	}
	routings.Weight[1] = 3
	ways := []Placing{{"even", false}, {"greedy", false}, {"search", false}, {"search", true}}
	place := func() []Placed {
		list, err := PlaceExperts(context.Background(), m, machine, routings, ways, recipe,
			solve.Options[*experts.Plan]{WorkLimit: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	list := place()
	for i, a := range list {
		all := slices.Concat(a.Experts...)
		slices.Sort(all)
		for e := range all {
			if len(all) != 64 || all[e] != e {
				t.Fatalf("%s places the experts %v", a.Method, all)
			}
		}
		mean, longest := 0.0, 0.0
		for s, one := range a.Scenarios {
			mean, longest = mean+one.Seconds*float64(routings.Weight[s])/4, max(longest, one.Seconds)
			if one.Seconds < one.Bound || math.Abs(one.Seconds/one.Formula-1) > 0.1 {
				t.Errorf("%s: scenario %d takes %g s, by formula %g, at least %g", a.Method, s, one.Seconds, one.Formula, one.Bound)
			}
			// By hand: each chip's tokens go to three others and come back, and the chip with most has the longest way.
			most := int64(0)
			for _, own := range a.Experts {
				n := int64(0)
				for _, e := range own {
					n += routings.Tokens[s][e]
				}
				most = max(most, n)
			}
			if want := 2 * (2e-6 + float64(most)*2048*2*3/4/25e9); math.Abs(one.Exchange/want-1) > 1e-9 {
				t.Errorf("%s: scenario %d exchanges in %g s, expected %g", a.Method, s, one.Exchange, want)
			}
		}
		if math.Abs(a.Mean/mean-1) > 1e-9 || a.Longest != longest || a.Mean < a.MeanBound || a.Longest < a.LongestBound ||
			a.Objective < a.Bound {
			t.Errorf("%s: mean %g (at least %g), longest %g (at least %g), objective %g (%g)", a.Method, a.Mean, a.MeanBound,
				a.Longest, a.LongestBound, a.Objective, a.Bound)
		}
		if i > 0 && i < 3 && a.Objective > list[i-1].Objective {
			t.Errorf("%s takes %g s by formula, %s %g", a.Method, a.Objective, list[i-1].Method, list[i-1].Objective)
		}
	}
	if again := place(); !reflect.DeepEqual(list, again) {
		t.Error("the same routings give other plans")
	}
	few := &experts.Routings{Weight: []int64{1}, Tokens: [][]int64{{3, 4}}}
	_, err = PlaceExperts(context.Background(), m, machine, few, ways, recipe, solve.Options[*experts.Plan]{})
	if err == nil || !strings.Contains(err.Error(), "found tokens of 2 experts") {
		t.Errorf("of two experts: %v", err)
	}
}

// On one chip nothing is sent, and there is one placement.
func TestPlaceExpertsOnOneChip(t *testing.T) {
	recipe, m, machine := olmoe(t, "v100")
	tokens := make([]int64, 64)
	tokens[5], tokens[9] = 20, 70
	list, err := PlaceExperts(context.Background(), m, machine, &experts.Routings{Weight: []int64{1},
		Tokens: [][]int64{tokens}}, []Placing{{"search", false}}, recipe, solve.Options[*experts.Plan]{})
	if err != nil {
		t.Fatal(err)
	}
	a := list[0]
	if s := a.Scenarios[0]; s.Exchange != 0 || a.Status != "optimal" || a.Simulated != 1 || s.Seconds < s.Bound {
		t.Errorf("%+v", a)
	}
}
