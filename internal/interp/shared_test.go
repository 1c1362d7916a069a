package interp_test

import (
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A product that is cut in rows and columns takes rows out of other cores' L1s, computes what the network says, and is
// not below the bound.
func TestRowsOfOtherCores(t *testing.T) {
	spec, err := hardware.Load("wormhole-n150")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range [][2]int64{{64, 64}, {128, 64}, {96, 192}} { // rows, columns
		net := network.Network{Name: "product", Graph: func(rows int64) (*model.Graph, error) {
			b := model.NewBuilder("product")
			made := b.Op("Relu", "made", model.Attr{}, b.Input("x", model.F16, rows, 64))
			y := b.Op("MatMul", "product", model.Attr{}, made, b.Param("w", model.F16, 64, n[1]))
			b.Output(b.Op("MatMul", "read", model.Attr{}, y, b.Param("v", model.F16, n[1], 16)))
			return b.Build()
		}}
		made, err := scheduler.Run(t.Context(), net, spec, n[0], recipe, scheduler.Options{Chunk: n[0]})
		if err != nil {
			t.Fatal(err)
		}
		s, others := made.Schedule, 0
		for i := range s.Steps {
			for _, r := range s.Steps[i].Reads {
				if b := s.Steps[i].Binding; b[0] > 1 && b[1] > 1 && s.Values[r.Value].Level == schedule.L1 && r.RemoteBytes > 0 {
					others++
				}
			}
		}
		if others == 0 {
			t.Errorf("%v: no product is cut in rows and columns with rows of other cores", n)
		}
		if _, err := interp.Run(made.Program, graphs(made.Plans), 1); err != nil {
			t.Errorf("%v: %v", n, err)
		}
		if b, err := bound.Cold(t.Context(), net, made.Spec, n[0]); err != nil || b.Seconds > made.LatencySeconds() {
			t.Errorf("%v: %v, bound %v, latency %g", n, err, b, made.LatencySeconds())
		}
	}
}
