package cost

import (
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// Work is the work of a program that takes energy.
type Work struct {
	MACs, VectorOps             int64
	L1Bytes, LLBBytes, DDRBytes int64 // that moves read and write there, over all cores
	Seconds                     float64
}

// Energy is in joules, by cause.
type Energy struct {
	Matrix float64 `json:"matrix_j"`
	Vector float64 `json:"vector_j"`
	L1     float64 `json:"l1_j"`
	LLB    float64 `json:"llb_j"`
	DDR    float64 `json:"ddr_j"`
	Static float64 `json:"static_j"`
}

// Total is the sum.
func (e *Energy) Total() float64 { return e.Matrix + e.Vector + e.L1 + e.LLB + e.DDR + e.Static }

// EnergyOf returns the energy of work in a dtype on a machine; nil if its description has no figures. A dtype without a
// figure takes as many times F16's (or the first of F32's, BF16's and I8's) as its elements are larger.
func EnergyOf(spec *hardware.Spec, dt model.DType, w Work) *Energy {
	e := spec.Energy
	if e == nil {
		return nil
	}
	each := func(m map[string]float64) float64 {
		f, size, _ := figure(m, dt)
		return f * size
	}
	return &Energy{
		Matrix: each(e.MAC) * float64(w.MACs), Vector: each(e.Vector) * float64(w.VectorOps),
		L1: e.L1 * float64(w.L1Bytes), LLB: e.LLB * float64(w.LLBBytes), DDR: e.DDR * float64(w.DDRBytes),
		Static: float64(spec.ChipCount()) * e.StaticWatts * w.Seconds,
	}
}
