package interp_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Without an LLB, weights leave the L1s with the layer that uses them again and again: where there is room for the
// weights of one layer, those of each of several pass once.
func TestWeightsLeave(t *testing.T) {
	const layers, rows, wide = 4, 64, 32
	spec, err := hardware.Load("ipu")
	if err != nil {
		t.Fatal(err)
	}
	spec.CoreTypes[0].Count = 4
	spec.L1.SizeBytes, spec.L1WeightBytes = 8<<10, 1<<10
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	net := network.Network{Name: "chain", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("chain")
		x := b.Input("x", model.F16, batch, rows, wide)
		for i := range layers {
			x = b.Op("MatMul", fmt.Sprintf("product%d", i), model.Attr{}, x,
				b.Param(fmt.Sprintf("w%d", i), model.F16, wide, wide))
		}
		b.Output(x)
		return b.Build()
	}}
	made, err := scheduler.Run(t.Context(), net, spec, int64(spec.Clusters), recipe, scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range made.Schedule.Steps {
		n := schedule.Nest{Loads: 1, Pieces: 1, Vector: schedule.AtColumns, Store: schedule.AtColumns, Sums: 1,
			Reduction: []int64{wide}}
		n.Cores, n.Columns = schedule.Binding{1, 4, 1}, slices.Repeat([]int64{2}, wide/2)
		n.Tiles, n.Depth = 4, 1
		if err := made.Schedule.Follow(i, &n); err != nil {
			t.Fatal(err)
		}
	}
	p, err := lower.Program("chain", made.Spec, made.Plans, made.Lower)
	if err != nil {
		t.Fatal(err)
	}
	loaded := int64(0)
	for i := range p.Commands {
		if c := &p.Commands[i]; c.Kind == isa.DDRLoad && c.Portion.Tile > 0 && c.Portion.Parts == 0 {
			loaded += c.Bytes
		}
	}
	if loaded != layers*wide*wide*2*int64(spec.Clusters) {
		t.Errorf("weights of %d bytes are loaded, expected each once, %d", loaded, layers*wide*wide*2*spec.Clusters)
	}
	if err := sim.CheckBuffers(p, simulated(t, p)); err != nil {
		t.Fatal(err)
	}
	if _, err := interp.Run(p, graphs(made.Plans), 1); err != nil {
		t.Fatal(err)
	}
}
