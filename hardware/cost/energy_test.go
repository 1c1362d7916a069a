package cost_test

import (
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
)

// By hand, in powers of two so that sums are exact: 4 MACs of 2 J, 8 operations of 0.5 J, 16, 32
// and 64 bytes of 1, 2 and 4 J, 3 s of 10 W. F32 has no figure of its own and takes twice F16's.
func TestEnergy(t *testing.T) {
	spec := &hardware.Spec{Energy: &hardware.Energy{MAC: map[string]float64{"f16": 2, "i8": 0.25},
		Vector: map[string]float64{"f16": 0.5}, L1: 1, LLB: 2, DDR: 4, StaticWatts: 10}}
	w := cost.Work{MACs: 4, VectorOps: 8, L1Bytes: 16, LLBBytes: 32, DDRBytes: 64, Seconds: 3}
	for _, c := range []struct {
		dt   model.DType
		want cost.Energy
	}{
		{model.F16, cost.Energy{Matrix: 8, Vector: 4, L1: 16, LLB: 64, DDR: 256, Static: 30}},
		{model.F32, cost.Energy{Matrix: 16, Vector: 8, L1: 16, LLB: 64, DDR: 256, Static: 30}},
		{model.I8, cost.Energy{Matrix: 1, Vector: 2, L1: 16, LLB: 64, DDR: 256, Static: 30}},
	} {
		if got := cost.EnergyOf(spec, c.dt, w); *got != c.want {
			t.Errorf("%v: %+v, want %+v", c.dt, *got, c.want)
		}
	}
	if total := cost.EnergyOf(spec, model.F16, w).Total(); total != 378 {
		t.Errorf("%v J in all, want 378", total)
	}
	if got := cost.EnergyOf(&hardware.Spec{}, model.F16, w); got != nil {
		t.Errorf("%+v without figures, want none", *got)
	}
}
