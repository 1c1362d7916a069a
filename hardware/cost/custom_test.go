package cost_test

import (
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
)

// doubled takes twice the formulas' time for products and three cycles for all else.
type doubled struct{}

func (doubled) MatrixCycles(f *cost.Model, d model.MatrixDims, dt model.DType) hardware.Cycles {
	return 2 * f.MatrixCycles(d, dt)
}

func (doubled) VectorCycles(*cost.Model, model.VectorWork, model.DType) (vector, special hardware.Cycles) {
	return 3, 0
}

func TestCustom(t *testing.T) {
	formulas := stcp920(t)
	m, err := cost.NewWith(formulas.Spec(), doubled{})
	if err != nil {
		t.Fatal(err)
	}
	d := model.MatrixDims{Reps: 2, M: 100, N: 64, K: 128}
	if got, want := m.MatrixCycles(d, model.F16), 2*formulas.MatrixCycles(d, model.F16); got != want {
		t.Errorf("a product takes %d cycles, want %d", got, want)
	}
	if v, s := m.VectorCycles(model.VectorWork{Special: 1000}, model.F16); v != 3 || s != 0 {
		t.Errorf("vector work takes %d and %d cycles, want 3 and 0", v, s)
	}
	if got := m.MatrixCycles(model.MatrixDims{}, model.F16); got != 0 {
		t.Errorf("no product takes %d cycles", got)
	}
	if v, s := m.VectorCycles(model.VectorWork{}, model.F16); v != 0 || s != 0 {
		t.Errorf("no vector work takes %d and %d cycles", v, s)
	}
	if m.PeakMACsPerSecond(model.F16) != formulas.PeakMACsPerSecond(model.F16) {
		t.Error("the peak rate is not the description's")
	}
	plain, err := cost.NewWith(formulas.Spec(), nil)
	if err != nil || plain.MatrixCycles(d, model.F16) != formulas.MatrixCycles(d, model.F16) {
		t.Errorf("without a custom cost, a product takes %d cycles, want %d (%v)", plain.MatrixCycles(d, model.F16),
			formulas.MatrixCycles(d, model.F16), err)
	}
}
