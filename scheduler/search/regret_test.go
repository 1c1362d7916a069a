package search

import (
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// The greedy schedule is the fastest of the recipes', the best choice of a decision of which all are tried is the
// fastest of recipes that differ in that decision alone, no choice is worse than the greedy one, and the answer
// repeats.
func TestRegrets(t *testing.T) {
	cases := []struct{ network, machine string }{{"toy-fig5", "stcp920"}, {"toy-fig5", "tpu-v4i"}}
	if os.Getenv("DSASCHED_FULL") == "" {
		cases = cases[:1]
	}
	for _, c := range cases {
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		batch := int64(chip.Clusters)
		opt := RegretOptions{Chunk: 1, Evaluations: 8, Moves: 4}
		found, err := Regrets(t.Context(), net, chip, batch, opt)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Regrets(t.Context(), net, chip, batch, opt)
		if err != nil || !reflect.DeepEqual(again, found) {
			t.Errorf("%v: another answer the second time (%v): %+v", c, err, again)
		}
		if len(found.Regrets) != len(RegretDecisions()) {
			t.Errorf("%v: %d decisions, expected %d", c, len(found.Regrets), len(RegretDecisions()))
		}
		fastest := func(stage string) float64 {
			recipe, err := recipes.Lookup(found.Recipe)
			if err != nil {
				t.Fatal(err)
			}
			st, err := scheduler.LookupStage(stage)
			if err != nil {
				t.Fatal(err)
			}
			least := math.Inf(1)
			for _, s := range st.Strategies {
				other, err := recipe.Replace(scheduler.Options{}, scheduler.Pick{Stage: stage, Strategy: s.Name})
				if err != nil {
					t.Fatal(err)
				}
				r, err := scheduler.Run(t.Context(), net, chip, batch, other, scheduler.Options{Chunk: 1})
				if err != nil {
					t.Fatal(err)
				}
				least = min(least, r.LatencySeconds())
			}
			return least
		}
		for _, x := range found.Regrets {
			for _, y := range []Choice{x.AllBest, x.Greedy} {
				if y.Loss() < 0 || y.BestSeconds <= 0 {
					t.Errorf("%v: %s loses %g", c, x.Decision, y.Loss())
				}
			}
			if x.Greedy.GreedySeconds != found.GreedySeconds || x.AllBest.BestSeconds > found.BestSeconds ||
				x.Greedy.BestSeconds < found.BestSeconds*0.5 {
				t.Errorf("%v: %s is not between the greedy schedule and the best: %+v", c, x.Decision, x)
			}
			switch {
			case x.Decision == "prefetch" && math.Abs(x.Greedy.BestSeconds-fastest("prefetch")) > 1e-12:
				t.Errorf("%v: the best prefetch takes %g s, by recipes %g", c, x.Greedy.BestSeconds, fastest("prefetch"))
			case x.Decision == "weights" && x.Greedy.BestSeconds > fastest("weights")+1e-12:
				t.Errorf("%v: the best of weights takes %g s, by recipes %g", c, x.Greedy.BestSeconds, fastest("weights"))
			}
		}
	}
}

// The greedy schedule is that of the default variant, in whichever graph that is, and decisions of a graph that is
// rewritten already are those of the given one.
func TestRegretsBeginWithTheDefault(t *testing.T) {
	cases := []struct{ network, machine string }{{"mamba-block", "stcp920"}, {"mamba-block", "a100"},
		{"toy-fig3", "wormhole-n150"}, {"dlrm-kaggle", "stcp920"}, {"vit-b16", "stcp920"}, {"bert-128", "tpu-v4i"}}
	if os.Getenv("DSASCHED_FULL") == "" {
		cases = cases[:4]
	}
	for _, c := range cases {
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		machine, err := scheduler.LevelAuto.Machine(chip)
		if err != nil {
			t.Fatal(err)
		}
		options, batch := scheduler.Options{Chunk: 1}, int64(chip.Clusters)
		run := func(net network.Network, name string) int64 {
			recipe, err := recipes.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := scheduler.Run(t.Context(), net, chip, batch, recipe, options)
			if err != nil {
				t.Fatal(err)
			}
			return r.Sim.TotalPs
		}
		r := &regretter{opt: RegretOptions{Chunk: 1}}
		w := scheduler.NewProblem(net, chip, machine, batch, options)
		greedy, _, err := r.greedily(t.Context(), w)
		if want := run(net, recipes.Default); err != nil || greedy.ps != want {
			t.Errorf("%v: the greedy schedule takes %d ps, the default one %d (%v)", c, greedy.ps, want, err)
		}
		rewritten := net
		rewritten.Graph = func(size int64) (*model.Graph, error) {
			return w.GraphOf((&scheduler.Decisions{Chunk: size}).By(r.recipe))
		}
		if a, b := run(net, "tiled-llb"), run(rewritten, "tiled-llb"); r.recipe.Pick("rewrite") == "parts" && a != b {
			t.Errorf("%v: tiled-llb takes %d ps, of the rewritten graph %d", c, a, b)
		}
	}
}
