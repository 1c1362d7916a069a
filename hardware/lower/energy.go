package lower

import (
	"context"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
)

// Energy is the energy of operations and moves of a graph that take ps picoseconds; bytes are those that moves
// read and write at each level. Nil: the description of the machine has no figures.
func Energy(spec *hardware.Spec, g *model.Graph, macs, vectorOps int64, bytes [isa.NumLevels]int64,
	ps int64) *cost.Energy {
	return cost.EnergyOf(spec, ComputeType(g), cost.Work{MACs: macs, VectorOps: vectorOps,
		L1Bytes: bytes[isa.L1], LLBBytes: bytes[isa.LLB], DDRBytes: bytes[isa.DDR], Seconds: float64(ps) * 1e-12})
}

// Until makes lowering end with a context.
func (o Options) Until(ctx context.Context) Options {
	o.Stopped = ctx.Err
	return o
}
