package training

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/model"
)

// Step gives the training step of a network as a network itself, for whoever fuses operators: the network, for each
// output that depends on a parameter half of the squared distance from an input called after it with ".target" behind,
// the gradients in primitive operators, and each parameter less its gradient as an output called after it with
// ".update" behind. The rate of learning scales the loss. Gradients of a table that is looked up are those of the
// rows, and outputs: frameworks update such tables row by row. Normalisations should be in parts.
//
// Convolutions, pools and whatever else has no rule here are an error.
func Step(net *model.Graph) (*model.Graph, error) {
	g, _, err := step(net)
	return g, err
}

// step returns the values of the constants that were put in, too.
func step(net *model.Graph) (*model.Graph, map[model.TensorID]float64, error) {
	s := &stepper{Builder: model.NewBuilder(net.Name + " training"), net: net,
		id:    make([]model.TensorID, len(net.Tensors)),
		needs: make([]bool, len(net.Tensors)), parts: make([][]model.TensorID, len(net.Tensors)),
		slices: make([][]part, len(net.Tensors)), scalars: map[model.TensorID]float64{}}
	s.forward()
	trains := false
	for _, out := range net.Outputs {
		if t := net.Tensor(out); s.needs[out] {
			trains = true
			target := s.Input(t.Name+".target", t.DType, t.Shape...)
			d := s.Op("Sub", t.Name+".loss.grad", model.Attr{}, s.id[out], target)
			s.parts[out] = append(s.parts[out], s.Op("Mul", t.Name+".loss.rate", model.Attr{}, d, s.scalar(t, 1)))
		}
	}
	if s.Err() == nil && !trains {
		return nil, nil, errors.New("found no output that depends on a learned parameter, expected one to train")
	}
	for k := len(net.Ops) - 1; k >= 0 && s.Err() == nil; k-- {
		s.backward(net.Ops[k])
	}
	for _, t := range net.Tensors {
		if t.Role != model.Constant || !s.needs[t.ID] {
			continue
		}
		if g, ok := s.complete(t.ID); ok {
			s.Output(s.Op("Sub", t.Name+".update", model.Attr{}, s.id[t.ID], g))
		}
	}
	g, err := s.Build()
	return g, s.scalars, err
}

type stepper struct {
	*model.Builder
	net *model.Graph
	// By tensor of the network: what it is in the step, whether a gradient flows to it, and the parts of that.
	id     []model.TensorID
	needs  []bool
	parts  [][]model.TensorID
	slices [][]part
	// scalars are the values of constants that were put in.
	scalars map[model.TensorID]float64
	name    string // of the operator whose gradients are made
}

// part is a gradient of a part of a tensor, which begins at some element of each dimension.
type part struct {
	starts []int64
	grad   model.TensorID
}

// forward copies the network and finds what needs gradients.
func (s *stepper) forward() {
	for _, t := range s.net.Inputs {
		u := s.net.Tensor(t)
		s.id[t] = s.Input(u.Name, u.DType, u.Shape...)
	}
	for _, u := range s.net.Tensors {
		if u.Role != model.Constant {
			continue
		}
		if u.Learned {
			s.id[u.ID] = s.Param(u.Name, u.DType, u.Shape...)
		} else {
			s.id[u.ID] = s.Const(u.Name, u.DType, u.Ints, u.Shape...)
		}
		s.needs[u.ID] = u.Learned && u.DType.IsFloat()
	}
	for _, op := range s.net.Ops {
		in := make([]model.TensorID, len(op.Inputs))
		for k, t := range op.Inputs {
			in[k] = s.id[t]
		}
		names := make([]string, len(op.Outputs))
		for k, t := range op.Outputs {
			names[k] = s.net.Tensor(t).Name
		}
		flows := !flat[op.Kind] && slices.ContainsFunc(op.Inputs, func(t model.TensorID) bool { return s.needs[t] })
		for k, t := range s.OpNamed(op.Kind, op.Name, *op.Attr, in, names) {
			s.id[op.Outputs[k]] = t
			s.needs[op.Outputs[k]] = flows && s.net.Tensor(op.Outputs[k]).DType.IsFloat()
		}
	}
	for _, out := range s.net.Outputs {
		s.Output(s.id[out])
	}
}

// scalar is a constant of the type of a tensor of the network.
func (s *stepper) scalar(t *model.Tensor, value float64) model.TensorID {
	id := s.Const(t.Name+".grad/"+strconv.FormatFloat(value, 'g', 4, 64), t.DType, nil, 1)
	s.scalars[id] = value
	return id
}

// op adds a part of a gradient.
func (s *stepper) op(kind model.Kind, attr model.Attr, in ...model.TensorID) model.TensorID {
	return s.Op(kind, s.name+".grad", attr, in...)
}

func (s *stepper) mul(a, b model.TensorID) model.TensorID { return s.op("Mul", model.Attr{}, a, b) }

func (s *stepper) reshape(x model.TensorID, shape ...int64) model.TensorID {
	if s.Err() != nil || slices.Equal(s.Tensor(x).Shape, shape) {
		return x
	}
	return s.op("Reshape", model.Attr{Shape: shape}, x)
}

// fit sums a gradient over what its tensor was broadcast to.
func (s *stepper) fit(g model.TensorID, shape model.Shape) model.TensorID {
	if s.Err() != nil {
		return g
	}
	from := s.Tensor(g).Shape
	var axes []int64
	for d, n := range from {
		if k := d - len(from) + len(shape); k < 0 && n > 1 || k >= 0 && shape[k] == 1 && n > 1 {
			axes = append(axes, int64(d))
		}
	}
	if len(axes) > 0 {
		g = s.op("ReduceSum", model.Attr{Axes: axes, KeepDims: true}, g)
	}
	return s.reshape(g, shape...)
}

// complete adds up the gradient of a tensor; false if it has none.
func (s *stepper) complete(id model.TensorID) (model.TensorID, bool) {
	t := s.net.Tensor(id)
	s.name = t.Name
	parts, cuts := s.parts[id], s.slices[id]
	if len(parts) == 0 {
		if g, ok := s.stacked(t, cuts); ok {
			return g, true
		}
	}
	for _, c := range cuts {
		if s.Err() != nil {
			return 0, false
		}
		shape := s.Tensor(c.grad).Shape
		pads := slices.Clone(c.starts)
		for d, n := range t.Shape {
			pads = append(pads, n-c.starts[d]-shape[d])
		}
		parts = append(parts, s.op("Pad", model.Attr{Pads: pads}, c.grad))
	}
	switch len(parts) {
	case 0:
		return 0, false
	case 1:
		return parts[0], true
	}
	return s.op("Add", model.Attr{}, parts...), true
}

// stacked puts parts together that fill a tensor side by side.
func (s *stepper) stacked(t *model.Tensor, cuts []part) (model.TensorID, bool) {
	if len(cuts) < 2 || s.Err() != nil {
		return 0, false
	}
	axis := -1
	for d, n := range t.Shape {
		if s.Tensor(cuts[0].grad).Shape[d] != n {
			if axis >= 0 {
				return 0, false
			}
			axis = d
		}
	}
	if axis < 0 {
		return 0, false
	}
	sorted := slices.Clone(cuts)
	slices.SortStableFunc(sorted, func(a, b part) int { return cmp.Compare(a.starts[axis], b.starts[axis]) })
	at := int64(0)
	in := make([]model.TensorID, len(sorted))
	for i, c := range sorted {
		shape := s.Tensor(c.grad).Shape.Clone()
		if c.starts[axis] != at {
			return 0, false
		}
		at += shape[axis]
		if shape[axis] = t.Shape[axis]; !shape.Equal(t.Shape) {
			return 0, false
		}
		in[i] = c.grad
	}
	if at != t.Shape[axis] {
		return 0, false
	}
	return s.op("Concat", model.Attr{Axis: int64(axis)}, in...), true
}

// backward adds the gradients of an operator's inputs.
func (s *stepper) backward(op *model.Op) {
	if !s.needs[op.Outputs[0]] {
		return
	}
	grads := make([]model.TensorID, len(op.Outputs))
	have := 0
	for k, out := range op.Outputs {
		if g, ok := s.complete(out); ok {
			grads[k], have = g, have+1
		}
	}
	if have == 0 {
		return // nothing that is trained needs it
	}
	s.name = op.Name
	if op.Kind == "Split" {
		if have < len(grads) {
			s.Fail(fmt.Errorf("operator %q (Split): found gradients of %d of %d parts, expected all", op.Name, have, len(grads)))
			return
		}
		s.give(op, 0, s.op("Concat", model.Attr{Axis: op.Attr.Axis}, grads...))
		return
	}
	if op.Kind == "Concat" {
		var splits []int64
		for _, t := range op.Inputs {
			splits = append(splits, s.net.Tensor(t).Shape[op.Attr.Axis])
		}
		for k, g := range s.OpN("Split", op.Name+".grad", model.Attr{Axis: op.Attr.Axis, Splits: splits}, grads[0]) {
			if s.needs[op.Inputs[k]] {
				s.give(op, k, g)
			}
		}
		return
	}
	g, y := grads[0], s.id[op.Outputs[0]]
	out := s.net.Tensor(op.Outputs[0])
	for k, t := range op.Inputs {
		if !s.needs[t] {
			continue
		}
		d, ok := s.gradient(op, k, g, y, out)
		if !ok {
			s.Fail(fmt.Errorf("operator %q: found %s, whose gradient of input %d is not known, expected products, "+
				"element-wise operators, sums, softmaxes or moves", op.Name, op.Kind, k))
		}
		if s.Err() != nil {
			return
		}
		if op.Kind == "Gather" {
			s.Output(d)
			continue
		}
		if op.Kind == "Slice" {
			s.slices[t] = append(s.slices[t], part{op.Attr.Starts, d})
			continue
		}
		s.give(op, k, d)
	}
}

// give adds a gradient to the parts of input k.
func (s *stepper) give(op *model.Op, k int, g model.TensorID) {
	t := s.net.Tensor(op.Inputs[k])
	s.parts[t.ID] = append(s.parts[t.ID], s.fit(g, t.Shape))
}

// gradient makes that of input k, to be summed over what the input is broadcast to. g is the gradient of the result y.
func (s *stepper) gradient(op *model.Op, k int, g, y model.TensorID, out *model.Tensor) (model.TensorID, bool) {
	none := model.Attr{}
	t := s.net.Tensor(op.Inputs[k])
	x := func(i int) model.TensorID { return s.id[op.Inputs[i]] }
	switch op.Kind {
	case "Add":
		return g, true
	case "Sub":
		if k == 1 {
			g = s.op("Neg", none, g)
		}
		return g, true
	case "Mul":
		for i := range op.Inputs {
			if i != k {
				g = s.mul(g, x(i))
			}
		}
		return g, true
	case "Div":
		g = s.op("Div", none, g, x(1))
		if k == 1 {
			g = s.op("Neg", none, s.mul(g, y))
		}
		return g, true
	case "Neg":
		return s.op("Neg", none, g), true
	case "Exp":
		return s.mul(g, y), true
	case "Sqrt":
		return s.op("Div", none, s.mul(g, s.scalar(out, 0.5)), y), true
	case "Reciprocal":
		return s.op("Neg", none, s.mul(g, s.mul(y, y))), true
	case "Tanh":
		return s.mul(g, s.op("Sub", none, s.scalar(out, 1), s.mul(y, y))), true
	case "Sigmoid":
		return s.mul(g, s.mul(y, s.op("Sub", none, s.scalar(out, 1), y))), true
	case "Erf": // 2 / sqrt(pi) exp(-x^2)
		e := s.op("Exp", none, s.op("Neg", none, s.mul(x(0), x(0))))
		return s.mul(g, s.mul(e, s.scalar(out, 1.1283791670955126))), true
	case "Relu":
		zero := s.scalar(out, 0)
		return s.op("Where", none, s.op("Greater", none, y, zero), g, zero), true
	case "PRelu":
		zero := s.scalar(out, 0)
		positive := s.op("Greater", none, x(0), zero)
		if k == 0 {
			return s.op("Where", none, positive, g, s.mul(g, x(1))), true
		}
		return s.op("Where", none, positive, zero, s.mul(g, x(0))), true
	case "Softmax": // (g - sum(g y)) y
		axes := op.Attr.Axes
		if len(axes) == 0 {
			axes = []int64{op.Attr.Axis}
		}
		sum := s.op("ReduceSum", model.Attr{Axes: axes, KeepDims: true}, s.mul(g, y))
		return s.mul(s.op("Sub", none, g, sum), y), true
	case "ReduceSum", "ReduceMean":
		kept := t.Shape.Clone()
		for _, a := range op.Attr.Axes {
			kept[a] = 1
		}
		g = s.reshape(g, kept...)
		if op.Kind == "ReduceMean" {
			g = s.mul(g, s.scalar(out, float64(kept.Elements())/float64(t.Shape.Elements())))
		}
		return s.op("Expand", model.Attr{Shape: t.Shape}, g), true
	case "Expand":
		return g, true
	case "Reshape":
		return s.reshape(g, t.Shape...), true
	case "Transpose":
		perm := make([]int64, len(op.Attr.Perm))
		for i, p := range op.Attr.Perm {
			perm[p] = int64(i)
		}
		return s.op("Transpose", model.Attr{Perm: perm}, g), true
	case "Slice":
		return g, !slices.ContainsFunc(op.Attr.Steps, func(n int64) bool { return n != 1 })
	case "Gather":
		return g, k == 0 && t.Role == model.Constant
	case "MatMul":
		return s.product(op, k, g)
	}
	return g, false
}

// product is the gradient of a factor: the gradient times the other one, transposed. Where the right factor is a
// matrix, the left one is one, too, of all its rows, and the library transposes.
func (s *stepper) product(op *model.Op, k int, g model.TensorID) (model.TensorID, bool) {
	a, b := s.net.Tensor(op.Inputs[0]).Shape, s.net.Tensor(op.Inputs[1]).Shape
	if len(a) < 2 || len(b) < 2 {
		return g, false
	}
	x := s.id[op.Inputs[1-k]]
	m, n, p := a.Elements()/a[len(a)-1], a[len(a)-1], b[len(b)-1]
	switch {
	case len(b) == 2 && k == 0:
		return s.reshape(s.op("Gemm", model.Attr{TransB: true}, s.reshape(g, m, p), x), a...), true
	case len(b) == 2:
		return s.op("Gemm", model.Attr{TransA: true}, s.reshape(x, m, n), s.reshape(g, m, p)), true
	}
	rank := len(s.net.Tensor(op.Inputs[1-k]).Shape)
	perm := make([]int64, rank)
	for d := range perm {
		perm[d] = int64(d)
	}
	perm[rank-2], perm[rank-1] = perm[rank-1], perm[rank-2]
	x = s.op("Transpose", model.Attr{Perm: perm}, x)
	if k == 0 {
		return s.op("MatMul", model.Attr{}, g, x), true
	}
	return s.op("MatMul", model.Attr{}, x, g), true
}
