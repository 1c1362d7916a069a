// Command accelerator describes a chip in YAML, changes one figure of it in code, and
// shows what a network makes of both.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

//go:embed my-npu.yaml
var description []byte

func main() {
	chip, err := hardware.Parse("my-npu.yaml", description) // hardware.Load reads a file
	check(err)
	fmt.Printf("%s: %d cores, %.2f TMAC/s\n", chip.Name, chip.Clusters*chip.Cores(), chip.PeakMACsPerSecond("f16")/1e12)

	larger := chip.Clone()
	larger.Name = "my-npu-8m"
	larger.LLB.SizeBytes = 8 << 20
	check(larger.Validate())

	net, err := network.Open("resnet18", network.Options{})
	check(err)
	graphTurbo, err := recipes.Lookup("cross-layer")
	check(err)
	for _, spec := range []*hardware.Spec{chip, larger} {
		r, err := scheduler.Run(context.Background(), net, spec, 4, graphTurbo, scheduler.Options{Chunk: 4})
		check(err)
		fmt.Printf("%s: %d groups, %d instances, %d spills\n", spec.Name, len(r.Schedule.Grouping.Groups),
			len(r.Schedule.Order), len(r.Schedule.Spills))
		log.Printf("%s: %.0f images/s", spec.Name, r.ThroughputPerSecond())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
