package interp_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Cores that share the reduction of a product, or of a convolution, compute what it says,
// with tiles of rows, of columns and of the reduction; and whatever of it is left out is
// found.
func TestSharedReductions(t *testing.T) {
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	for _, conv := range []bool{false, true} {
		net := network.Network{Name: "few", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("few")
			if conv {
				x := b.Input("x", model.F16, batch, 24, 3, 3)
				x = b.Op("Conv", "product", model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0},
					Group: 1}, x, b.Param("w", model.F16, 4, 24, 3, 3), b.Param("bias", model.F16, 4))
				b.Output(b.Op("Relu", "relu", model.Attr{}, x))
				return b.Build()
			}
			x := b.Input("x", model.F16, batch, 48)
			b.Output(b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, 48, 4)))
			return b.Build()
		}}
		spec := machine(rand.New(rand.NewPCG(1, 1)))
		spec.Clusters, spec.CoreTypes[0].Count, spec.L1.SizeBytes, spec.L1WeightBytes = 1, 4, 16<<10, 4<<10
		spec.LLB = &hardware.Memory{SizeBytes: 16 << 10, BandwidthBytesPerSecond: 256e9}
		made, err := scheduler.Run(context.Background(), net, spec, 2, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		base := made.Plans[0][0].Schedule
		k := base.Graph.Tensor(base.Steps[0].Output)
		cores := schedule.One(len(k.Shape))
		tried := map[isa.Kind]int{}
		for _, n := range []schedule.Nest{
			{Rfactor: 4, Tiles: 1, Depth: 2, Loads: 1, Pieces: 1},
			{Rfactor: 2, Tiles: 1, Depth: 2, Loads: 2, Pieces: 2, Vector: schedule.AtColumns},
			{Rfactor: 4, Tiles: 2, Depth: 1, Loads: 1, Pieces: 1, Stay: true, Vector: schedule.AtTile},
			{Rfactor: 3, Tiles: 2, Depth: 2, Loads: 1, Pieces: 1, ColumnsFirst: true, Vector: schedule.AtColumns,
				Stage: 1, Once: true},
		} {
			slice := int64(48)
			if conv {
				slice = 24 * 9
			}
			slice /= n.Rfactor
			n.Cores, n.Store, n.Columns, n.Reduction = cores, schedule.AtColumns, []int64{2, 2},
				[]int64{slice / 2, slice - slice/2}
			if n.Vector == schedule.AtTile {
				n.Store = schedule.AtTile
			}
			s := *base
			s.Steps, s.Values = slices.Clone(s.Steps), slices.Clone(s.Values)
			if err := s.Follow(0, &n); err != nil {
				t.Fatal(err)
			}
			plans := [][]lower.Segment{{{Schedule: &s, Iterations: 1}}}
			p, err := lower.Program("few", spec, plans, made.Lower)
			if err != nil {
				t.Fatal(err)
			}
			for i := -1; i < len(p.Commands); i++ {
				again := copied(t, p)
				if i >= 0 {
					c := &again.Commands[i]
					if c.Kind != isa.Exchange && c.Kind != isa.Matrix {
						continue
					}
					tried[c.Kind]++
					nothing(again, i)
				}
				if _, err := interp.Run(again, graphs(plans), 1); (err != nil) != (i >= 0) {
					t.Errorf("%+v without command %d: %v", n, i, err)
				}
			}
		}
		n := schedule.Nest{Tiles: 2, Depth: 2, Loads: 1, Pieces: 1, Store: schedule.AtColumns,
			Columns: []int64{base.Steps[0].CoreOutput[1].Len()}, Reduction: []int64{48}, Stage: 1, Once: true}
		if conv {
			n.Reduction[0] = 24 * 9
		}
		base.Spec.LLB.SizeBytes = 256
		if err := base.Follow(0, &n); err != nil {
			t.Fatal(err)
		}
		if _, err := lower.Program("few", base.Spec, [][]lower.Segment{{{Schedule: base, Iterations: 1}}},
			made.Lower); err == nil || !strings.Contains(err.Error(), "half of what values leave is 128") {
			t.Errorf("a stage that passes the LLB: %v", err)
		}
		if tried[isa.Exchange] == 0 || tried[isa.Matrix] == 0 {
			t.Errorf("commands left out: %v", tried)
		}
	}
}
