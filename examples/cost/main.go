// Command cost schedules a network on a chip whose special functions come out of
// tables: each takes one cycle per group of lanes, whatever the formulas say.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// tables has another cost for special functions and the formulas' for all else.
type tables struct{}

func (tables) MatrixCycles(formulas *cost.Model, d model.MatrixDims, dt model.DType) hardware.Cycles {
	return formulas.MatrixCycles(d, dt)
}

func (tables) VectorCycles(formulas *cost.Model, w model.VectorWork, dt model.DType) (vector, special hardware.Cycles) {
	vector, _ = formulas.VectorCycles(w, dt)
	if unit, ok := formulas.Spec().UnitOf(hardware.Special); ok && w.Special > 0 {
		lanes := int64(unit.Lanes)
		special = hardware.Cycles((w.Special + lanes - 1) / lanes)
	}
	return vector, special
}

func main() {
	net, err := network.Open("bert-128", network.Options{})
	check(err)
	chip, err := hardware.Load("stcp920")
	check(err)
	graphTurbo, err := recipes.Lookup("cross-layer")
	check(err)

	run := func(name string, c cost.Custom) *scheduler.Result {
		r, err := scheduler.Run(context.Background(), net, chip, 32, graphTurbo, scheduler.Options{Chunk: 8, Cost: c})
		check(err)
		log.Printf("%s: %.0f sentences/s", name, r.ThroughputPerSecond())
		return r
	}
	formulas, mine := run("formulas", nil), run("tables", tables{})
	fmt.Println("tables are faster:", mine.LatencySeconds() < formulas.LatencySeconds())
	fmt.Println("the same tensor writes:", mine.Sim.Dynamic.TensorWrites == formulas.Sim.Dynamic.TensorWrites)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
