package scheduler

import (
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// A group that Algorithm 2 has not made may hand out a tensor of which its pieces need more than their own part: it is
// not cut along a dimension in which they would write it twice.
func TestPiecesWriteNothingTwice(t *testing.T) {
	net := network.Network{Name: "halo", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("halo")
		first := b.Op("Relu", "first", model.Attr{}, b.Input("x", model.F16, batch, 1, 1024, 1024))
		last := first
		for range 8 { // enough that windows are better read twice than kept apart
			last = b.Op("Tanh", "light", model.Attr{}, last)
		}
		last = b.Op("MaxPool", "windows", model.Attr{Kernel: []int64{3, 3}, Strides: []int64{1, 1},
			Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}}, last)
		b.Output(first, last)
		return b.Build()
	}}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec.LaunchSeconds, spec.L1.SizeBytes, spec.L1WeightBytes = 1e-4, 1<<15, 0
	for _, r := range []Recipe{All()[0], All()[4], Tiled()[0]} {
		if _, err := Run(t.Context(), net, spec, 1, r, Options{Clusters: OverLayer}); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}
