package scheduler

import (
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

func TestLimitWords(t *testing.T) {
	p := &isa.Program{Resources: []isa.Resource{{Kind: isa.DDRBandwidth}, {Kind: isa.LLBBandwidth}},
		Queues: []isa.Queue{{Kind: isa.MatrixQueue}, {Name: "own"},
			{Name: "cluster0.lb.in.request1", LatencyOf: isa.InQueue, Slot: 1}}}
	ran := func(busy, alone int64) sim.QueueUse { return sim.QueueUse{Commands: 1, BusyPs: busy, AlonePs: alone} }
	for _, c := range []struct {
		name   string
		chain  int64
		queues []sim.QueueUse
		bytes  []float64 // shares of the bandwidths
		want   string
		share  float64
	}{
		{"a bandwidth", 80, []sim.QueueUse{{}, ran(55, 55), {}}, []float64{0, .6}, "LLB bandwidth", .6},
		{"a unit", 80, []sim.QueueUse{ran(75, 75), {}, {}}, []float64{.6, 0}, "matrix unit", .75},
		{"a unit without a word", 80, []sim.QueueUse{{}, ran(75, 75), {}}, []float64{0, 0}, "own", .75},
		{"requests", 80, []sim.QueueUse{{}, {}, ran(75, 75)}, []float64{0, 0}, "latency of L1 loads", .75},
		{"a unit whose moves are shared", 80, []sim.QueueUse{{}, ran(90, 40), {}}, []float64{.6, 0}, "DDR bandwidth", .6},
		{"nothing else busy", 80, []sim.QueueUse{{}, ran(90, 40), {}}, []float64{.45, 0}, "own", .9},
		{"none for half of it", 80, []sim.QueueUse{ran(40, 40), {}, {}}, []float64{.49, 0}, limitDependencies, .8},
	} {
		r := &Result{Program: p, Sim: &sim.Result{TotalPs: 100, Bound: sim.Bound{ChainPs: c.chain}, Queues: c.queues}}
		for _, x := range c.bytes {
			r.Sim.Resources = append(r.Sim.Resources, sim.ResourceUse{Bytes: int64(100 * x), Utilization: x})
		}
		if got, share := r.Limit(); got != c.want || share != c.share {
			t.Errorf("%s: %s, %g, want %s, %g", c.name, got, share, c.want, c.share)
		}
	}
	if got, _ := (&Result{Program: p, Sim: &sim.Result{}}).Limit(); got != limitNothing {
		t.Errorf("an empty program is limited by %s", got)
	}
}
