package cost

import (
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// MatrixRate holds the terms of [Model.MatrixCycles], for bounds on sums
// of commands: cycles for a row that passes a block of weights, and least cycles for
// a block, to load it or to issue it and to go on to it from the one before. Without a matrix unit
// row is for one multiply-accumulate, and there are no blocks. No bound has [Model.Feed], an estimate that slows down.
func (m *Model) MatrixRate(dt model.DType) (row, load, gap float64) {
	if !m.hasMatrix {
		return m.LaneCycles(hardware.OpSimple, dt), 0, 0
	}
	r, _ := rate(m.matrix, dt)
	ratio := m.matrix.ClockRatio(m.spec)
	return ratio / r, m.blockCycles(dt), math.Min(m.matrix.BlockCycles, float64(m.matrix.FillCycles)) * ratio
}

// Feed is the least that reading its operands adds to a row of MatrixRate.
func (m *Model) Feed(dt model.DType) float64 { return m.feed(math.Inf(1), math.Inf(1), dt) }

// HasMatrix reports whether there is a matrix unit.
func (m *Model) HasMatrix() bool { return m.hasMatrix }

// InFlight is the number of commands that the matrix unit has under way at most; 0: rows stream.
func (m *Model) InFlight() int64 { return int64(m.matrix.InFlight) }

// Synchronous reports whether a core waits for its products; see [hardware.Unit].
func (m *Model) Synchronous() bool { return m.matrix.Synchronous }

// ScoreType is the type in which an attention of operands of a type works on its scores.
func (m *Model) ScoreType(dt model.DType) model.DType {
	if m.matrix.Synchronous {
		return model.F32
	}
	return dt
}

// LaneCycles is the least time that one operation of a class adds to a command.
func (m *Model) LaneCycles(class string, dt model.DType) float64 {
	u := &m.vector
	if class == hardware.OpSpecial {
		u = &m.special
	}
	p := m.pace(u, class, dt)
	return p.cycles / p.lanes * p.ratio
}

// Units is the largest number of cores of a cluster whose parts of a layer the units of a kind work on side by side.
func (m *Model) Units(kind hardware.UnitKind, cores int64) int64 {
	n := int64(m.spec.CoresWith(kind))
	if n == 0 { // another kind stands in
		n = int64(max(m.spec.CoresWith(hardware.Vector), m.spec.CoresWith(hardware.Special)))
	}
	return max(1, min(cores, n))
}

// Fills returns the least overhead of a command beside its work, in cycles, on each kind of unit.
func (m *Model) Fills() (matrix, vector, special float64) {
	matrix = float64(m.fill(m.matrix))
	if !m.hasMatrix {
		matrix = float64(m.fill(m.vector))
	}
	return matrix, float64(m.fill(m.vector)), float64(m.fill(m.special))
}
