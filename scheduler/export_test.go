package scheduler

import (
	"context"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/ansor"
)

// Adopt gives kernels programs that nothing has checked.
func (d *Draft) Adopt(ctx context.Context, kernels []*ansor.Task, programs map[*ansor.Task]ansor.Program) error {
	return d.adopt(ctx, kernels, programs)
}

// OutlineJoules is the energy of an outline as the search finds it.
func OutlineJoules(r *Result, p *isa.Program, alike []int) float64 {
	macs, ops, bytes := sim.Accesses(p, alike)
	return energyOfWork(r.Spec, r.Schedule.Graph, macs, ops, bytes, r.Sim.TotalPs).Total()
}
