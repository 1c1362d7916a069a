package cost

import (
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// Layer is a loop nest that one core runs: operators in a straight line, of which the anchor may occupy the matrix
// unit, and the boxes of their outputs that the core computes (inputs may be among them and are not looked at).
type Layer struct {
	Graph  *model.Graph
	Ops    []model.OpID
	Anchor model.OpID
	Boxes  map[model.TensorID]model.Region
	// Output is the tensor that the layer leaves behind.
	Output model.TensorID
	// Cores work on the layer side by side. Where a kind of unit has fewer, one
	// unit does the parts of several cores, one after the other.
	Cores int64
}

// LayerCycles is the time of a core's units for its part of a layer: of the matrix unit and of the vector and special
// units, whichever is longer; of the last two together if they share hardware.
func (m *Model) LayerCycles(l Layer) hardware.Cycles {
	g := l.Graph
	var dims model.MatrixDims
	var vector model.VectorWork
	matrix, views := false, true
	dtype, widest := g.Tensor(l.Output).DType, g.Tensor(l.Output).DType
	for _, id := range l.Ops {
		op := g.Op(id)
		for k, o := range op.Outputs {
			r := l.Boxes[o]
			if r.Elements() == 0 {
				continue
			}
			if op.Class() != model.ViewClass {
				views = false
				if t := g.Tensor(o).DType; t.Bits() > widest.Bits() {
					widest = t
				}
			}
			w := g.Work(op, r)
			vector = vector.Add(w.Vector)
			switch {
			case !g.OnMatrixUnit(op):
				vector.Simple += w.MACs
			case k == 0 && id == l.Anchor:
				dims, matrix = g.MatrixDims(op, r)
				dtype = g.Tensor(op.Inputs[0]).DType
			}
		}
	}
	if views {
		vector.Move = l.Boxes[l.Output].Elements()
	}
	v, sp := m.VectorCycles(vector, widest)
	v *= m.sharing(hardware.Vector, l.Cores)
	sp *= m.sharing(hardware.Special, l.Cores)
	busy := max(v, sp)
	if m.SharedVector() {
		busy = v + sp
	}
	if matrix {
		busy = max(busy, m.MatrixCycles(dims, dtype)*m.sharing(hardware.Matrix, l.Cores))
	}
	return busy
}

// sharing is the number of cores whose parts one unit works on, one after the other.
func (m *Model) sharing(kind hardware.UnitKind, cores int64) hardware.Cycles {
	n := int64(m.spec.CoresWith(kind))
	if n == 0 { // another kind stands in, see the package
		n = int64(max(m.spec.CoresWith(hardware.Vector), m.spec.CoresWith(hardware.Special)))
	}
	return hardware.Cycles(ceilDiv(cores, max(1, n)))
}
