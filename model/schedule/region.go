package schedule

import (
	"github.com/dsasched/dsasched/model"
)

// Tracker follows one dimension of a sub-graph's outputs backward through its
// operators: the paper's match_dim for every tensor at once.
type Tracker struct {
	// Dim[t] is the dimension of tensor t that the split follows, or -1. Only tensors that the sub-graph touches are set.
	Dim map[model.TensorID]int
	// Exact: every activation matched and none has a halo: the instances' tensors add up to the whole ones.
	Exact bool
	// Recomputes: instances compute parts of intermediates more than once,
	// because of a halo or of an operator that the split does not divide.
	Recomputes bool
	// Unmatched counts the operators that the split does not divide.
	Unmatched int
	// Splittable is false if an output must not be split along this dimension.
	Splittable bool
}

// Track follows dimension dim of the outputs of ops (a sub-graph in execution
// order; all outputs must have that dimension).
func Track(g *model.Graph, ops []model.OpID, outputs []model.TensorID, dim int) Tracker {
	tr := Tracker{Dim: map[model.TensorID]int{}, Exact: true, Splittable: true}
	const conflict = -1
	for _, o := range outputs {
		if dim >= len(g.Tensor(o).Shape) || g.Tensor(o).Shape[dim] != g.Tensor(outputs[0]).Shape[dim] {
			tr.Splittable = false
			return tr
		}
		tr.Dim[o] = dim
	}
	inside := make(map[model.OpID]bool, len(ops))
	for _, id := range ops {
		inside[id] = true
	}
	for i := len(ops) - 1; i >= 0; i-- {
		op := g.Op(ops[i])
		d, known := conflict, false
		out := 0
		for k, o := range op.Outputs {
			if v, ok := tr.Dim[o]; ok {
				if !known {
					d, known, out = v, true, k
				} else if v != d {
					d = conflict // the outputs are cut differently
				}
			}
		}
		if known && d >= 0 && g.Sequential(op, out)[d] {
			// The dimension runs through this operator but must not be cut there.
			tr.Splittable = false
			d = conflict
			for _, o := range op.Outputs {
				tr.Dim[o] = conflict
			}
		}
		if d < 0 {
			tr.Unmatched++
			tr.Exact = false
			tr.Recomputes = true
		}
		for k, in := range op.Inputs {
			t := g.Tensor(in)
			if t.Role == model.Constant {
				continue
			}
			m, exact := conflict, true
			if d >= 0 {
				for dimIn, a := range g.Access(op, out, k) {
					if !a.Full && a.Out == d && t.Shape[dimIn] > 1 {
						m, exact = dimIn, a.Exact()
						break
					}
				}
			}
			if prev, ok := tr.Dim[in]; ok && prev != m {
				m = conflict
			}
			tr.Dim[in] = m
			if m == conflict {
				tr.Exact = false // read whole by every instance
			}
			if !exact {
				tr.Exact = false
				if t.Producer != model.NoOp && inside[t.Producer] {
					tr.Recomputes = true
				}
			}
		}
	}
	return tr
}

// Regions maps the tensors that a sub-graph's instance touches to the boxes that it computes or reads.
type Regions map[model.TensorID]model.Region

// InstanceRegions returns the boxes of instance q of factor along dimension dim of the outputs (dim < 0: everything).
// An operator whose result nothing in the instance needs has no entry.
func InstanceRegions(g *model.Graph, ops []model.OpID, outputs []model.TensorID, dim int, factor, q int64) Regions {
	reg := make(Regions, 2*len(ops))
	for _, o := range outputs {
		r := model.Whole(g.Tensor(o).Shape)
		if dim >= 0 {
			r[dim] = r[dim].Piece(q, factor)
		}
		reg[o] = r
	}
	BackPropagate(g, ops, reg)
	return reg
}

// BackPropagate extends reg, which holds the boxes wanted of some outputs of ops,
// to everything those need, constants included.
func BackPropagate(g *model.Graph, ops []model.OpID, reg Regions) {
	room := 0
	for _, id := range ops {
		for _, in := range g.Op(id).Inputs {
			room += len(g.Tensor(in).Shape)
		}
	}
	var slab model.Region // what the boxes are cut from
	for i := len(ops) - 1; i >= 0; i-- {
		op := g.Op(ops[i])
		for out, o := range op.Outputs {
			r, ok := reg[o]
			if !ok || r.Elements() == 0 {
				continue
			}
			for k, in := range op.Inputs {
				n := len(g.Tensor(in).Shape)
				if slab == nil || len(slab) < n { // a scalar's box has no extents, but is not nil
					slab = make(model.Region, max(room, n))
				}
				need := slab[:n:n]
				slab = slab[n:]
				g.FillInputRegion(need, op, out, k, r)
				if have, ok := reg[in]; ok {
					need.Include(have)
				}
				reg[in] = need
			}
		}
	}
}
