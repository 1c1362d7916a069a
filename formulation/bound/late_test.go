package bound_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
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
	spec.L1.SizeBytes, spec.L1WeightBytes, spec.LLB.SizeBytes, spec.DDR.BandwidthBytesPerSecond = 4096, 256, 512, 1e9
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

// late is products on many rows in a line, with branches, and then ones with many weights behind a pool.
func late(seed uint64) network.Network {
	r := rand.New(rand.NewPCG(seed, 7))
	rows, deep, wide := 16+r.Int64N(500), 1+r.IntN(4), pick(r, int64(64), 200, 777)
	channels, kinds := make([]int64, deep), make([]int, deep)
	for i := range channels {
		channels[i], kinds[i] = 1+r.Int64N(48), r.IntN(4)
	}
	behind, outputs := 1+r.IntN(4), r.IntN(4)
	return network.Network{Name: "late", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("late")
		count := 0
		conv := func(x model.TensorID, channels, window int64) model.TensorID {
			count++
			w := b.Param(fmt.Sprintf("w%d", count), model.F16, channels, b.Tensor(x).Shape[1], window, 1)
			return b.Op("Conv", fmt.Sprintf("conv%d", count), model.Attr{Strides: []int64{1, 1},
				Dilations: []int64{1, 1}, Pads: []int64{window / 2, 0, window / 2, 0}, Group: 1}, x, w)
		}
		x := b.Input("x", model.F16, batch, 1+rows%5, rows, 1)
		for i, n := range channels {
			y := conv(x, n, 1+2*int64(kinds[i]%2))
			switch kinds[i] {
			case 1:
				y = b.Op("Relu", fmt.Sprintf("relu%d", i), model.Attr{}, y)
			case 2:
				y = b.Op("Add", fmt.Sprintf("add%d", i), model.Attr{}, conv(y, n, 3), y)
			case 3:
				y = b.Op("Mul", fmt.Sprintf("mul%d", i), model.Attr{}, conv(x, n, 1), y)
			}
			x = y
		}
		if outputs == 0 {
			b.Output(b.Op("Relu", "early", model.Attr{}, x))
		}
		x = b.Op("GlobalAveragePool", "pool", model.Attr{}, x)
		for range behind {
			x = conv(x, wide, 1)
		}
		b.Output(x)
		return b.Build()
	}}
}

// tighten leaves memories that hold few weights and results, in front of a slow DDR.
func tighten(r *rand.Rand, s *hardware.Spec) {
	if s.L1 != nil {
		s.L1.SizeBytes = pick(r, s.L1.SizeBytes, 2048, 8192, 32768)
		s.L1WeightBytes = pick(r, s.L1WeightBytes, 256, 4096)
	}
	if s.LLB != nil {
		s.LLB.SizeBytes = pick(r, s.LLB.SizeBytes, 512, 4096, 32768)
	}
	s.DDR.BandwidthBytesPerSecond *= pick(r, 1, .1, .01)
	s.LaunchSeconds = pick(r, s.LaunchSeconds, 1e-7, 1e-6, 1e-5)
}

// No schedule of such a network on a hostile machine is faster than any term of the bound.
func TestLateCampaign(t *testing.T) {
	c := &campaign{t: t, network: late, tight: true, closest: map[string]float64{}, others: map[string]int{}}
	c.one(9000064) // a padded convolution in tiles, of whose window others than the first core have more
	c.run()
}
