package simplify

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Moves of what is computed from constants alone, such as weights that are dequantised when the network runs, go in
// front of the element-wise operators, as far as the constants themselves: move(f(x, s)) becomes f(move(x), move(s)),
// where extents of 1 that f broadcasts stay 1. Exporters write quantised weights so: DequantizeLinear, Transpose,
// MatMul.

// moveConstants counts the element-wise operators that a move passes, reshapes that a transpose passes, and the Concats
// that slices of other tensors pass.
func moveConstants(e *editor) int {
	fixed := make([]bool, len(e.g.Tensors)) // computed from constants alone
	for _, t := range e.g.Tensors {
		fixed[t.ID] = t.Role == model.Constant
	}
	n := 0
	for _, op := range slices.Clone(e.g.Ops) {
		e.resolve(op)
		known := !e.dead[op.ID] && len(op.Outputs) == 1 && (op.Class() == model.ElementwiseClass || op.Kind == "Reshape" ||
			op.Kind == "Transpose" || op.Kind == "Slice") &&
			!slices.ContainsFunc(op.Inputs, func(t model.TensorID) bool { return !fixed[t] })
		if !known {
			if !e.dead[op.ID] && e.passConcat(op) {
				n++
			}
			for len(fixed) < len(e.g.Tensors) {
				fixed = append(fixed, false)
			}
			continue
		}
		fixed[op.Outputs[0]] = true
		passed := false
		switch {
		case op.Kind == "Transpose" && e.single(op, 0) != nil && e.single(op, 0).Kind == "Reshape":
			passed = e.passReshape(op, e.single(op, 0))
		case op.Kind == "Transpose" || op.Kind == "Slice" || op.Kind == "Reshape":
			passed = e.passMove(op)
		}
		for len(fixed) < len(e.g.Tensors) {
			fixed = append(fixed, true)
		}
		if passed {
			n++
		}
	}
	return n
}

// single is the operator that makes input k of op for op alone; nil: a constant, or others read it as well.
func (e *editor) single(op *model.Op, k int) *model.Op {
	t := e.g.Tensors[op.Inputs[k]]
	if t.Producer == model.NoOp || !e.onlyReader(op, k) || e.dead[t.Producer] {
		return nil
	}
	return e.g.Ops[t.Producer]
}

// passMove lets a move of one operand pass the element-wise operator in front of it.
func (e *editor) passMove(move *model.Op) bool {
	f := e.single(move, 0)
	if f == nil || f.Class() != model.ElementwiseClass {
		return false
	}
	from, to := e.g.Tensors[f.Outputs[0]].Shape, e.g.Tensors[move.Outputs[0]].Shape
	shapes, operands := make([]model.Shape, len(f.Inputs)), make([]model.Shape, len(f.Inputs))
	for k := range f.Inputs {
		if operands[k] = e.operand(f, k, from); operands[k] != nil {
			shapes[k] = movedShape(move, operands[k], from, to)
		}
		if shapes[k] == nil || !e.movable(f, k) {
			return false
		}
	}
	inputs := make([]model.TensorID, len(f.Inputs))
	e.dead[f.ID] = true
	for k := range f.Inputs {
		inputs[k] = e.moved(move, f, k, operands[k], shapes[k])
	}
	e.behind(move, f, inputs)
	return true
}

// passConcat lets a slice with unit steps pass the Concat in front of it, which nothing else reads.
func (e *editor) passConcat(op *model.Op) bool {
	if !isBox(op) || slices.Contains(op.Attr.Shape, 0) || e.single(op, 0) == nil || e.single(op, 0).Kind != "Concat" {
		return false
	}
	join := e.single(op, 0)
	e.dead[join.ID] = true
	axis := join.Attr.Axis
	from, to := op.Attr.Starts[axis], op.Attr.Starts[axis]+op.Attr.Shape[axis]
	var parts []model.TensorID
	for _, in := range join.Inputs {
		x := e.g.Tensors[in]
		if lo, hi := max(from, 0), min(to, x.Shape[axis]); lo < hi {
			attr := *op.Attr
			attr.Starts, attr.Shape = slices.Clone(attr.Starts), slices.Clone(attr.Shape)
			attr.Starts[axis], attr.Shape[axis] = lo, hi-lo
			parts = append(parts, e.unary("Slice", x.Name+"/part", attr, attr.Shape, x))
		}
		from, to = from-x.Shape[axis], to-x.Shape[axis]
	}
	op.Kind, op.Attr, op.Inputs = "Concat", join.Attr, parts
	return true
}

// isBox reports whether an operator is a slice that takes a box of its input.
func isBox(op *model.Op) bool {
	return op.Kind == "Slice" && !slices.ContainsFunc(op.Attr.Steps, func(n int64) bool { return n != 1 })
}

// behind puts the element-wise operator f, with other inputs, behind a move, whose place it takes.
func (e *editor) behind(move, f *model.Op, inputs []model.TensorID) {
	attr := *f.Attr
	attr.Axes = nil
	if f.Kind == "Quantize" || f.Kind == "Dequantize" { // a scale for each element of one dimension has that alone
		shape, along := e.g.Tensors[move.Outputs[0]].Shape, -1
		for _, id := range inputs[1:] {
			t := e.g.Tensors[id]
			d := slices.Index(t.Shape, t.Shape.Elements())
			if t.Shape.Elements() == 1 {
				continue
			} else if len(t.Shape) != len(shape) || d < 0 || t.Shape[d] != shape[d] || along >= 0 && along != d ||
				t.Role != model.Constant {
				along = len(shape)
				break
			}
			along = d
		}
		if along >= 0 && along < len(shape) {
			attr.Axes = []int64{int64(along)}
			for _, id := range inputs[1:] {
				if t := e.g.Tensors[id]; t.Shape.Elements() > 1 {
					t.Shape = model.Shape{t.Shape.Elements()}
				}
			}
		}
	} else {
		attr.Axes = f.Attr.Axes
	}
	move.Kind, move.Attr, move.Inputs = f.Kind, &attr, inputs
	e.dead[f.ID] = true
}

// operand is the shape of operand k of an element-wise operator in the rank of its result; nil: it is not known.
func (e *editor) operand(f *model.Op, k int, out model.Shape) model.Shape {
	s := e.g.Tensors[f.Inputs[k]].Shape
	scale := k > 0 && (f.Kind == "Quantize" || f.Kind == "Dequantize")
	if f.Kind == "BatchNorm" || len(s) > len(out) {
		return nil
	}
	full := slices.Repeat(model.Shape{1}, len(out))
	switch {
	case scale && s.Elements() == 1:
	case scale && len(s) == 1:
		full[f.Attr.Axes[0]] = s[0]
	default:
		copy(full[len(out)-len(s):], s)
	}
	return full
}

// movable reports whether an operand is a constant that may have another order, or computed from such for f alone.
func (e *editor) movable(f *model.Op, k int) bool {
	t := e.g.Tensors[f.Inputs[k]]
	if t.Role != model.Constant {
		return e.single(f, k) != nil
	}
	// A second copy of large weights would have to be loaded for their other readers.
	return !t.Causal && (e.onlyReader(f, k) || t.Shape.Elements() <= smallConstant)
}

// moved is operand k of f behind a move, which gives it a shape.
func (e *editor) moved(move, f *model.Op, k int, from, to model.Shape) model.TensorID {
	t := e.g.Tensors[f.Inputs[k]]
	switch {
	case t.Shape.Elements() == 1 && k > 0 && len(t.Shape) <= len(to):
		return t.ID
	case t.Role == model.Constant && e.onlyReader(f, k):
		t.Shape, t.Ints = to, nil
		return t.ID
	case t.Role == model.Constant:
		return e.constant(model.Tensor{Name: t.Name + "/moved", Shape: to, DType: t.DType, Learned: t.Learned})
	}
	in := t
	if !t.Shape.Equal(from) {
		in = e.g.Tensors[e.unary("Reshape", t.Name+"/extended", model.Attr{Shape: from}, from, t)]
	}
	attr := *move.Attr
	switch move.Kind {
	case "Slice":
		attr.Starts, attr.Steps, attr.Shape = slices.Clone(attr.Starts), slices.Clone(attr.Steps), to
		for d := range to {
			if from[d] == 1 {
				attr.Starts[d], attr.Steps[d] = 0, 1
			}
		}
	case "Transpose":
	default:
		attr.Shape = to
	}
	return e.unary(move.Kind, t.Name+"/moved", attr, to, in)
}

// unary adds an operator with one operand and a result of its own, which it returns.
func (e *editor) unary(kind model.Kind, name string, attr model.Attr, shape model.Shape,
	x *model.Tensor) model.TensorID {
	t := e.g.Tensors[e.result(name, shape, x.DType)]
	t.Producer, x.Consumers = model.OpID(len(e.g.Ops)), slices.DeleteFunc(slices.Clone(x.Consumers),
		func(id model.OpID) bool { return e.dead[id] })
	x.Consumers = append(x.Consumers, t.Producer)
	return e.put(kind, t.Name, &attr, t.ID, x.ID)
}

// movedShape is the shape of an operand of shape s, to be broadcast to from or to have a scale for each block of it,
// behind a move from one shape to another; nil: it has none.
func movedShape(move *model.Op, s, from, to model.Shape) model.Shape {
	moved := make(model.Shape, len(to))
	switch {
	case move.Kind == "Transpose":
		for i, d := range move.Attr.Perm {
			moved[i] = s[d]
		}
	case move.Kind == "Slice":
		for d, n := range s {
			switch {
			case n == from[d]:
				moved[d] = to[d]
			case n == 1:
				moved[d] = 1
			default: // blocks
				block := from[d] / n
				if from[d]%n != 0 || move.Attr.Steps[d] != 1 || move.Attr.Starts[d]%block != 0 || to[d]%block != 0 {
					return nil
				}
				moved[d] = to[d] / block
			}
		}
	default: // a reshape: what it keeps together has all extents, or is broadcast
		for _, r := range runs(from, to) {
			in, out, own := from[r.lo:r.hi], to[r.first:r.end], s[r.lo:r.hi]
			switch {
			case own.Equal(in):
				copy(moved[r.first:], out)
			case own.Elements() == 1:
				for d := r.first; d < r.end; d++ {
					moved[d] = 1
				}
			case in.Equal(out):
				copy(moved[r.first:], own)
			default:
				return nil
			}
		}
	}
	return moved
}

// run is a run of dimensions of one shape with as many elements as a run of another's.
type run struct{ lo, hi, first, end int }

// runs are the shortest of two shapes of as many elements.
func runs(from, to model.Shape) (list []run) {
	for lo, first := 0, 0; lo < len(from) || first < len(to); {
		r := run{lo, lo, first, first}
		n, m := int64(1), int64(1)
		for more := true; more; more = n != m {
			if r.hi < len(from) && (n <= m || r.end == len(to)) {
				n *= from[r.hi]
				r.hi++
			} else if r.end < len(to) {
				m *= to[r.end]
				r.end++
			}
		}
		if r.end == r.first && r.end < len(to) && to[r.end] == 1 {
			r.end++
		}
		list, lo, first = append(list, r), r.hi, r.end
	}
	return list
}

// passReshape lets a transpose pass a reshape that merges or splits dimensions which it leaves together.
func (e *editor) passReshape(move, view *model.Op) bool {
	from, mid := e.g.Tensors[view.Inputs[0]], e.g.Tensors[view.Outputs[0]]
	if from.Role == model.Constant || e.single(view, 0) == nil {
		return false
	}
	var perm []int64
	list := runs(from.Shape, mid.Shape)
	for i := 0; i < len(move.Attr.Perm); {
		k := slices.IndexFunc(list, func(r run) bool { return r.first == int(move.Attr.Perm[i]) && r.end > r.first })
		if k < 0 {
			return false
		}
		for d := list[k].first; d < list[k].end; d++ {
			if i == len(move.Attr.Perm) || move.Attr.Perm[i] != int64(d) {
				return false
			}
			i++
		}
		for d := list[k].lo; d < list[k].hi; d++ {
			perm = append(perm, int64(d))
		}
	}
	if len(perm) != len(from.Shape) { // dimensions of extent 1 that the reshape leaves out
		return false
	}
	shape := make(model.Shape, len(perm))
	for i, d := range perm {
		shape[i] = from.Shape[d]
	}
	e.dead[view.ID] = true
	out := e.unary("Transpose", from.Name+"/moved", model.Attr{Perm: perm}, shape, from)
	move.Kind, move.Inputs = "Reshape", []model.TensorID{out}
	move.Attr = &model.Attr{Shape: e.g.Tensors[move.Outputs[0]].Shape}
	e.g.Tensors[out].Consumers = []model.OpID{move.ID}
	return true
}
