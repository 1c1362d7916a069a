package scheduler_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// The first and the last row of the table: a kernel per layer, and all of GraphTurbo.
func ExampleRun() {
	net, err := network.Open("resnet50", network.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	table := recipes.Table()
	for _, v := range []scheduler.Recipe{table[0], table[len(table)-1]} {
		r, err := scheduler.Run(context.Background(), net, chip, 32, v, scheduler.Options{Chunk: 8})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d groups, %d kernels, %d tensors written to the DDR\n",
			v.Name, len(r.Schedule.Grouping.Groups), len(r.Schedule.Order), r.Sim.Static.TensorWrites[isa.DDR])
	}
	// Output:
	// tvm: 57 groups, 57 kernels, 57 tensors written to the DDR
	// cross-layer: 4 groups, 15 kernels, 1 tensors written to the DDR
}

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

// A chip whose special functions come out of tables: each takes one cycle per group of lanes.
func ExampleRun_cost() {
	net, err := network.Open("bert-128", network.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	graphTurbo, err := recipes.Lookup("cross-layer")
	if err != nil {
		fmt.Println(err)
		return
	}
	var by []*scheduler.Result
	for _, c := range []cost.Custom{nil, tables{}} {
		r, err := scheduler.Run(context.Background(), net, chip, 32, graphTurbo, scheduler.Options{Chunk: 8, Cost: c})
		if err != nil {
			fmt.Println(err)
			return
		}
		by = append(by, r)
	}
	fmt.Println("tables are faster:", by[1].LatencySeconds() < by[0].LatencySeconds())
	fmt.Println("the same tensor writes:", by[1].Sim.Dynamic.TensorWrites == by[0].Sim.Dynamic.TensorWrites)
	// Output:
	// tables are faster: true
	// the same tensor writes: true
}

// A network that is built in code, and what its schedule does over time: the layer that computes last.
func ExampleResult_Timeline() {
	net, err := network.Of("perceptron", func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("perceptron")
		x := b.Input("image", model.F16, batch, 784)
		x = b.Op("MatMul", "hidden", model.Attr{}, x, b.Param("w0", model.F16, 784, 512))
		x = b.Op("Relu", "active", model.Attr{}, x)
		b.Output(b.Op("MatMul", "scores", model.Attr{}, x, b.Param("w1", model.F16, 512, 10)))
		return b.Build()
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := scheduler.Run(context.Background(), net, chip, 128, recipes.Table()[0], scheduler.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var last sim.Span
	var macs int64
	for s := range r.Timeline() {
		if s.MACs > 0 && s.End > last.End {
			last = s
		}
		macs += s.MACs
	}
	fmt.Println(last.Label, last.Queue, macs)
	// Output:
	// scores cluster0.mme 52035584
}
