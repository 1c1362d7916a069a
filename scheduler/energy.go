package scheduler

import (
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
)

// Energy is the energy of the simulated program: its operations, the bytes that its moves read
// and write at each level, and what the chip takes in its latency whatever it does. Nil: the
// machine's description has no figures.
func (r *Result) Energy() *cost.Energy { return EnergyOf(r.Spec, r.Schedule.Graph, r.Sim) }

// EnergyOf is the energy of a simulated program of a graph.
func EnergyOf(spec *hardware.Spec, g *model.Graph, r *sim.Result) *cost.Energy {
	return EnergyOfWork(spec, g, r.MACs, r.VectorOps, r.Dynamic.AccessBytes, r.TotalPs)
}

// EnergyOfWork is the energy of operations and moves of a graph that take ps picoseconds; bytes are those that moves
// read and write at each level. Nil: the description of the machine has no figures.
func EnergyOfWork(spec *hardware.Spec, g *model.Graph, macs, vectorOps int64, bytes [isa.NumLevels]int64,
	ps int64) *cost.Energy {
	return cost.EnergyOf(spec, lower.ComputeType(g), cost.Work{MACs: macs, VectorOps: vectorOps,
		LBBytes: bytes[isa.LB], GBBytes: bytes[isa.GB], DDRBytes: bytes[isa.DDR], Seconds: float64(ps) * 1e-12})
}

// Joules is the sum of the energy of a result; 0: the machine's description has no figures.
func Joules(r *Result) float64 {
	if e := r.Energy(); e != nil {
		return e.Total()
	}
	return 0
}
