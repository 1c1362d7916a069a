// Command example searches the loops of a network's kernels with a rule and a step of its own beside the built-in ones.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
	"github.com/dsasched/dsasched/systems/ansor/tuning"
)

// rowsFirst leaves out the forms that go through all rows for each tile of weights.
var rowsFirst = ansor.Rule{Name: "rows first", Sketches: func(_ *ansor.Task, _ int, of []ansor.Sketch) []ansor.Sketch {
	return slices.DeleteFunc(of, func(s ansor.Sketch) bool { return s.ColumnsFirst })
}}

// coarser makes tiles twice as large, with room for two of them.
var coarser = ansor.Mutation{Name: "coarser", Weight: 20, Apply: func(_ *rand.Rand, n *schedule.Nest) {
	n.Tiles, n.Depth = max(1, n.Tiles/2), 2
}}

func main() {
	net, err := network.Open("squeezenet", network.Options{})
	check(err)
	chip, err := hardware.Load("stcp920")
	check(err)
	kernels, err := recipes.Lookup("ansor")
	check(err)

	set := tuning.Settings{Options: ansor.Options{Trials: 400, Seed: 1, Patience: 200,
		Rules: []ansor.Rule{rowsFirst}, Mutations: []ansor.Mutation{coarser}}}
	tuned, err := tuning.Tune(context.Background(), []network.Network{net}, chip, 4, kernels,
		scheduler.Options{Chunk: 1}, set)
	check(err)
	for _, r := range tuned.Result {
		log.Printf("%s: %.1f us by rules, %.1f us after %d trials", r.Name, 1e6*r.RuleSeconds, 1e6*r.Seconds, tuned.Trials)
		fmt.Println("faster than by rules:", r.Seconds < r.RuleSeconds)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
