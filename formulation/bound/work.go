package bound

import (
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// The units that work side by side. Where special functions run on the vector unit's
// hardware, all is vector's.
const (
	matrix = iota
	vector
	special
	numUnits
)

var unitNames = [numUnits]string{"matrix unit", "vector unit", "special unit"}

// work is what a network takes of one cluster for a number of batch elements, at least.
type work struct {
	g *model.Graph
	// ops are seconds of each unit for each operator, over all instances.
	ops [][numUnits]float64
	// weights are bytes of learned and other constants that must come from the DDR once,
	// by tensor; rows and ends those of rows looked up and of the network's inputs
	// and outputs, which pass for each chunk.
	weights       []float64
	rows, in, out float64
	need          []box
	links         [][]link
	// next operator that all paths pass, whether each ends its layer, who reads it without gaps
	next    []int
	ends    []bool
	readers [][]int
}

// measure prices a network's operators on a machine.
func measure(g *model.Graph, m *cost.Model) *work {
	spec := m.Spec()
	w := &work{g: g, ops: make([][numUnits]float64, len(g.Ops)), weights: make([]float64, len(g.Tensors)), need: needs(g)}
	cores := max(1, schedule.CoresWithLB(spec))
	seconds := func(cycles float64, kind hardware.UnitKind) float64 {
		return cycles / float64(m.Units(kind, cores)) / spec.ClockHz
	}
	for i, op := range g.Ops {
		var v model.VectorWork
		for k, o := range op.Outputs {
			n := w.need[o].elements()
			if n == 0 || op.Class() == model.ViewClass {
				continue
			}
			each := g.Work(op, model.Region{{Lo: 0, Hi: 1}}) // of one element
			v = v.Add(model.VectorWork{Simple: n * each.Vector.Simple, Special: n * each.Vector.Special, Move: n * each.Vector.Move})
			if !g.OnMatrixUnit(op) {
				v.Simple += n * each.MACs
			} else if k == 0 {
				w.ops[i][matrix] = seconds(matrixCycles(g, op, w.need[o], m), hardware.Matrix)
			}
		}
		dt := g.Tensor(op.Outputs[0]).DType
		simple, sp := 0.0, 0.0
		simple += float64(v.Simple) * leastLaneCycles(g, m, hardware.OpSimple, dt)
		simple += float64(v.Move) * leastLaneCycles(g, m, hardware.OpMove, dt)
		sp += float64(v.Special) * leastLaneCycles(g, m, hardware.OpSpecial, dt)
		w.ops[i][vector], w.ops[i][special] = seconds(simple, hardware.Vector), seconds(sp, hardware.Special)
		if m.SharedVector() {
			w.ops[i][vector] += w.ops[i][special]
			w.ops[i][special] = 0
		}
	}
	w.bytes()
	w.link()
	w.shape()
	return w
}

// matrixCycles is a bound on the sum of all commands of a product, over all cores, of
// which the box of its output is needed: rows and blocks add up to at least the whole's,
// however it is cut, since rounding up is subadditive.
func matrixCycles(g *model.Graph, op *model.Op, need box, m *cost.Model) float64 {
	r := make(model.Region, len(need))
	for d, s := range need {
		r[d] = model.Interval{Hi: s.size()}
	}
	d, ok := g.MatrixDims(op, r)
	if !ok {
		return 0
	}
	row, load, gap := m.MatrixRate(g.Tensor(op.Inputs[0]).DType)
	if !m.HasMatrix() {
		return float64(d.Reps) * float64(d.M) * float64(d.N) * float64(d.K) * row
	}
	columns := d.Reps * ceilDiv(d.N, m.MatrixCols())
	if g.Op(op.ID).Attr.Group > 1 {
		// Boxes across the border of groups count as so many groups of equal size.
		columns = max(d.Reps, ceilDiv(r[1].Len(), m.MatrixCols()))
	}
	blocks := float64(columns) * float64(ceilDiv(d.K, m.MatrixRows()))
	return blocks * (math.Max(float64(d.M)*row, load) + gap)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// leastLaneCycles is the least of the types that may be the widest of a layer with dt.
func leastLaneCycles(g *model.Graph, m *cost.Model, class string, dt model.DType) float64 {
	least := m.LaneCycles(class, dt)
	seen := map[model.DType]bool{dt: true}
	for _, t := range g.Tensors {
		if !seen[t.DType] && t.DType.Bytes() > dt.Bytes() && t.Producer != model.NoOp {
			seen[t.DType] = true
			least = math.Min(least, m.LaneCycles(class, t.DType))
		}
	}
	return least
}

// bytes counts what must cross the DDR's bus.
func (w *work) bytes() {
	g := w.g
	for _, t := range g.Tensors {
		n := float64(w.need[t.ID].elements() * t.DType.Bytes())
		if n == 0 {
			continue
		}
		switch {
		case t.Role == model.Input:
			w.in += n
		case t.Role == model.Constant:
			looked, read := 0.0, false
			for _, c := range t.Consumers {
				op := g.Op(c)
				if op.Kind != "Gather" || op.Inputs[0] != t.ID {
					read = true
					continue
				}
				o := op.Outputs[0]
				looked += math.Min(n, float64(w.need[o].elements()*t.DType.Bytes()))
			}
			if read {
				w.weights[t.ID] = n
			} else {
				w.rows += looked
			}
		}
	}
	for _, t := range g.Outputs {
		w.out += float64(g.Tensor(t).Bytes())
	}
}

func (w *work) weightBytes() float64 {
	sum := 0.0
	for _, n := range w.weights {
		sum += n
	}
	return sum
}
