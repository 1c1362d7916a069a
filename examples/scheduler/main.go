// Command scheduler puts an order of its own in the place of GraphTurbo's Algorithm 3, compares the two, and lets the
// search for the best schedule improve its order by a decision of its own.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// frugal orders the instances. Of those whose producers have run it takes the one after which the local buffers hold
// least: an instance is charged for the bytes that it writes, and credited with those that nobody reads after it.
var frugal = scheduler.Strategy{Name: "frugal", Decide: func(_ context.Context, d *scheduler.Draft) error {
	d.OrderName, d.Order = "frugal", leastLeft(d.Schedule, credit.Of(d))
	return nil
}}

// credit is a decision in front of the order: what a byte that is freed counts against one that is written.
var credit = scheduler.Setting[int64]{Name: "credit", Description: "what a freed byte counts against a written one",
	Choices: []scheduler.Choice[int64]{{Name: "alike", Value: 1}, {Name: "nothing", Value: 0}, {Name: "more", Value: 4}}}

func leastLeft(s *schedule.Schedule, credit int64) []int {
	all := s.Instances.Instances
	writes := make([]int64, len(all))
	producers, readers := make([]int, len(all)), make([]int, len(all)) // yet to run
	var ready, order []int
	for i := range all {
		for _, t := range s.Grouping.Groups[all[i].Group].Outputs {
			writes[i] += s.Graph.Tensor(t).DType.Bytes(all[i].Regions[t].Elements())
		}
		readers[i] = len(s.Instances.Consumers[i])
		for _, c := range s.Instances.Consumers[i] {
			producers[c]++
		}
	}
	reads := make([][]int, len(all)) // each producer once
	for i, consumers := range s.Instances.Consumers {
		for _, c := range consumers {
			reads[c] = append(reads[c], i)
		}
		if producers[i] == 0 {
			ready = append(ready, i)
		}
	}
	growth := func(i int) int64 {
		n := writes[i]
		for _, p := range reads[i] {
			if readers[p] == 1 {
				n -= credit * writes[p]
			}
		}
		return n
	}
	for len(ready) > 0 {
		best := 0
		for k := range ready {
			if growth(ready[k]) < growth(ready[best]) {
				best = k
			}
		}
		i := ready[best]
		ready = append(ready[:best], ready[best+1:]...)
		order = append(order, i)
		for _, p := range reads[i] {
			readers[p]--
		}
		for _, c := range s.Instances.Consumers[i] {
			if producers[c]--; producers[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	return order
}

func main() {
	net, err := network.Open("nasnet-mobile", network.Options{})
	check(err)
	chip, err := hardware.Load("stcp920")
	check(err)
	graphTurbo, err := recipes.Lookup("cross-layer")
	check(err)

	mine := graphTurbo.With("order", frugal).WithStage("order", credit.Stage())
	mine.Name = "frugal"

	for _, v := range []scheduler.Recipe{graphTurbo, mine} {
		r, err := scheduler.Run(context.Background(), net, chip, 32, v, scheduler.Options{Chunk: 8})
		check(err)
		fmt.Printf("%s: order %s, %d instances, %d spills\n", v.Name, r.Schedule.OrderName, len(r.Schedule.Order),
			len(r.Schedule.Spills))
		log.Printf("%s: %.0f images/s", v.Name, r.ThroughputPerSecond())
	}

	// The search begins with credit 1, the first choice.
	other, err := network.Open("resnet50", network.Options{})
	check(err)
	options := scheduler.Options{Chunk: 4}
	for _, choice := range []string{"alike", "nothing"} {
		by, err := mine.Replace(options, scheduler.Pick{Stage: "credit", Strategy: choice})
		check(err)
		r, err := scheduler.Run(context.Background(), other, chip, 32, by, options)
		check(err)
		fmt.Printf("credit %s: order %s\n", r.Decided("credit"), r.Schedule.OrderName)
		log.Printf("credit %s: %.0f images/s", r.Decided("credit"), r.ThroughputPerSecond())
	}
	found, err := search.Best(context.Background(), other, chip, 32, search.BestOptions{Options: options,
		Recipes: []scheduler.Recipe{mine}, Evaluations: 60, Seed: 1})
	check(err)
	fmt.Printf("best: order %s, credit %s\n", found.Schedule.OrderName, found.Decided("credit"))
	log.Printf("best: %.0f images/s", found.ThroughputPerSecond())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
