package dsasched_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func Example() {
	net, err := network.Open("resnet50", network.Options{}) // or the path of an .onnx file
	check(err)
	chip, err := scheduler.OpenMachine("stcp920") // or the path of a .yaml file
	check(err)
	recipe, err := recipes.Lookup(recipes.Default)
	check(err)
	r, err := scheduler.Run(context.Background(), net, chip, 32, recipe, scheduler.Options{})
	check(err)
	for _, g := range r.Schedule.Grouping.Groups {
		fmt.Printf("%s: %d operators, %d instances\n", g.Name, len(g.Ops), g.Factor())
	}
	log.Printf("%.0f images/s, %.2f ms a batch", r.ThroughputPerSecond(), 1e3*r.LatencySeconds())
	// Output:
	// g0: 32 operators, 4 instances
	// g1: 29 operators, 2 instances
	// g2: 62 operators, 1 instances
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
