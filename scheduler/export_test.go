package scheduler

import (
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

// OutlineJoules is the energy of an outline as the search finds it.
func OutlineJoules(r *Result, p *isa.Program, alike []int) float64 {
	macs, ops, bytes := sim.Accesses(p, alike)
	return energyOfWork(r.Spec, r.Schedule.Graph, macs, ops, bytes, r.Sim.TotalPs).Total()
}
