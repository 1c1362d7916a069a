package lower_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// One cluster of four multiplies two matrices and runs that three times.
func ExampleProgram() {
	b := model.NewBuilder("product")
	x := b.Input("x", model.F16, 64, 256)
	b.Output(b.Op("Relu", "relu", model.Attr{},
		b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, 256, 128))))
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	v := recipes.Table()[4]
	s, err := v.Schedule(context.Background(), g, chip, scheduler.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	plans := make([][]lower.Segment, chip.Clusters)
	plans[0] = []lower.Segment{{Schedule: s, Iterations: 3}}
	p, err := lower.Program("example", chip, plans,
		lower.Options{Generator: schedule.Generator{KeepWeights: true, CrossLayer: true, Prefetch: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	launches, macs := 0, int64(0)
	for _, c := range p.Commands {
		if c.Kind == isa.Launch {
			launches++
		}
		macs += c.MACs
	}
	fmt.Println(launches, "launches,", macs, "multiply-accumulates")
	// Output: 3 launches, 6291456 multiply-accumulates
}
