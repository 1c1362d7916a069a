package scheduler

import (
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

func TestLimitWords(t *testing.T) {
	p := &isa.Program{Resources: []isa.Resource{{Kind: isa.DDRBandwidth}, {Kind: isa.GBBandwidth}},
		Queues: []isa.Queue{{Kind: isa.MatrixQueue}, {Name: "own"},
			{Name: "cluster0.lb.in.request1", LatencyOf: isa.InQueue, Slot: 1}}}
	for _, c := range []struct {
		name  string
		total int64
		bound sim.Bound
		want  string
		share float64
	}{
		{"a resource", 100, sim.Bound{ResourcePs: 60, Resource: 1, QueuePs: 55, Queue: 0, ChainPs: 80}, "LLB bandwidth", 0.6},
		{"a queue", 100, sim.Bound{ResourcePs: 60, Resource: 0, QueuePs: 75, Queue: 0, ChainPs: 80}, "matrix unit", 0.75},
		{"a queue without a word", 100, sim.Bound{Resource: -1, QueuePs: 75, Queue: 1, ChainPs: 80}, "own", 0.75},
		{"a queue of requests", 100, sim.Bound{Resource: -1, QueuePs: 75, Queue: 2, ChainPs: 80}, "latency of LLB to L1 moves",
			0.75},
		{"neither for half of it", 100, sim.Bound{ResourcePs: 49, Resource: 0, QueuePs: 40, Queue: 0, ChainPs: 80},
			limitDependencies, 0.8},
		{"an empty program", 0, sim.Bound{Resource: -1, Queue: -1}, limitNothing, 0},
	} {
		r := &Result{Program: p, Sim: &sim.Result{TotalPs: c.total, Bound: c.bound}}
		if got, share := r.Limit(); got != c.want || share != c.share {
			t.Errorf("%s: %s, %g, want %s, %g", c.name, got, share, c.want, c.share)
		}
	}
}
