package bound_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// Where weights are used behind long work and memories hold few of them, schedules of any kind
// take the one and then the other.
func TestSeriesThenLoads(t *testing.T) {
	net := network.Network{Name: "late", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("late")
		x := b.Input("x", model.F16, batch, 1, 64, 1)
		conv := func(i int, x model.TensorID, channels int64) model.TensorID {
			w := b.Param(fmt.Sprintf("w%d", i), model.F16, channels, b.Tensor(x).Shape[1], 1, 1)
			return b.Op("Conv", fmt.Sprintf("conv%d", i),
				model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Group: 1}, x, w)
		}
		for i := range 8 {
			x = b.Op("Relu", fmt.Sprintf("relu%d", i), model.Attr{}, conv(i, x, 8))
		}
		x = b.Op("GlobalAveragePool", "pool", model.Attr{}, x)
		b.Output(conv(9, conv(8, x, 32), 32))
		return b.Build()
	}}
	spec := small(t)
	spec.LB.SizeBytes, spec.LBWeightBytes, spec.GB.SizeBytes, spec.DDR.BandwidthBytesPerSecond = 4096, 256, 512, 1e9
	b, err := bound.Cold(context.Background(), net, spec, 2)
	if err != nil {
		t.Fatal(err)
	}
	terms := map[string]float64{}
	for _, x := range b.Terms {
		terms[x.Name] = x.Seconds
	}
	late := terms["series, then loads"]
	if late <= terms["series"] || late <= terms["ddr"] {
		t.Errorf("the terms are %v, expected the series and then loads to take longer than either", terms)
	}
	all, best := 0, 0.0
	explore(600, func(choose func(int) int) {
		r, err := scheduler.Run(context.Background(), net, spec, 2, recipeOf(t, choose),
			scheduler.Options{Chunk: int64(1 + choose(2))})
		if err != nil {
			return
		}
		if all++; best == 0 || r.LatencySeconds() < best {
			best = r.LatencySeconds()
		}
	})
	t.Logf("%d schedules: the best takes %g s, the bounds are %v", all, best, terms)
	if all < 100 || best < b.Seconds {
		t.Errorf("%d schedules, the best takes %g s, the bound is %g s", all, best, b.Seconds)
	}
}
