package simplify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A FeedForward is a product with constant weights, down, whose operand is hidden: nothing else reads it, and each
// column of it comes from columns of other products with constant weights by element-wise operators.
type FeedForward struct {
	Down   model.OpID
	Ops    []model.OpID     // that make the operand, ascending
	Reads  []model.TensorID // operands of the products among them
	Hidden []model.TensorID // results of these products
	Width  int64            // columns of the operand
}

// Fits reports whether operands, hidden columns and result have room together.
func (f *FeedForward) Fits(g *model.Graph, room int64) bool {
	beside, hidden := f.bytes(g)
	return beside+hidden <= room
}

// Parts is the least number of equal parts of the hidden columns, of which one fits if not all do; 1 if none would.
func (f *FeedForward) Parts(g *model.Graph, room int64) int64 {
	beside, hidden := f.bytes(g)
	for n := int64(1); n <= f.Width && beside < room; n++ {
		if f.Width%n == 0 && beside+hidden/n <= room {
			return n
		}
	}
	return 1
}

// bytes counts operands and result of a feed-forward, and its hidden columns.
func (f *FeedForward) bytes(g *model.Graph) (beside, hidden int64) {
	beside = g.Tensor(g.Op(f.Down).Outputs[0]).Bytes()
	for i, t := range f.Reads {
		if !slices.Contains(f.Reads[:i], t) {
			beside += g.Tensor(t).Bytes()
		}
	}
	for _, t := range f.Hidden {
		hidden += g.Tensor(t).Bytes()
	}
	return beside, hidden
}

// FeedForwards finds feed-forwards of a graph, in the order of their last products. No product is the last of one and
// in another.
func FeedForwards(g *model.Graph) (list []FeedForward) {
	ends := map[model.OpID]bool{}
	for _, op := range g.Ops {
		if _, ok := product(g, op); !ok {
			continue
		}
		f := FeedForward{Down: op.ID, Width: last(g.Tensor(op.Inputs[0]).Shape)}
		inside := map[model.OpID]bool{}
		if !f.grow(g, op.Inputs[0], inside) {
			continue
		}
		f.Ops = slices.Sorted(maps.Keys(inside))
		leaves := func(o model.TensorID) bool {
			away := func(id model.OpID) bool { return id != op.ID && !inside[id] }
			return g.IsOutput(o) || slices.ContainsFunc(g.Tensor(o).Consumers, away)
		}
		if !slices.ContainsFunc(f.Ops, func(id model.OpID) bool {
			return ends[id] || slices.ContainsFunc(g.Op(id).Outputs, leaves)
		}) {
			ends[op.ID] = true
			list = append(list, f)
		}
	}
	return list
}

// product gives the dimension of the columns of a product's constant weights, if it is one of rows.
func product(g *model.Graph, op *model.Op) (columns int, ok bool) {
	if op.Kind != "MatMul" && op.Kind != "Gemm" || op.Attr.TransA {
		return 0, false
	}
	x, w := g.Tensor(op.Inputs[0]), g.Tensor(op.Inputs[1])
	if op.Kind == "Gemm" && op.Attr.TransB {
		columns = 0
	} else {
		columns = 1
	}
	constant := func(t model.TensorID) bool { return g.Tensor(t).Role == model.Constant }
	return columns, x.Role != model.Constant && len(x.Shape) > 1 && len(w.Shape) == 2 &&
		!slices.ContainsFunc(op.Inputs[1:], func(t model.TensorID) bool { return !constant(t) })
}

func last(s model.Shape) int64 {
	if len(s) == 0 {
		return 1
	}
	return s[len(s)-1]
}

// grow adds the operators that make a tensor's columns, of which a Split may take some; false: they come from something
// else than products.
func (f *FeedForward) grow(g *model.Graph, t model.TensorID, inside map[model.OpID]bool) bool {
	x := g.Tensor(t)
	if x.Producer == model.NoOp || x.Role != model.Activation {
		return false
	}
	op := g.Op(x.Producer)
	if inside[op.ID] {
		return true
	}
	inside[op.ID] = true
	axis := int64(len(x.Shape) - 1)
	_, multiplies := product(g, op)
	switch {
	case multiplies:
		f.Reads, f.Hidden = append(f.Reads, op.Inputs[0]), append(f.Hidden, t)
		return true
	case op.Kind == "Split":
		return op.Attr.Axis == axis && f.grow(g, op.Inputs[0], inside)
	case op.Kind == "Reshape":
		return last(g.Tensor(op.Inputs[0]).Shape) == x.Shape[axis] && f.grow(g, op.Inputs[0], inside)
	case op.Class() != model.ElementwiseClass || len(op.Outputs) != 1:
		return false
	}
	for _, in := range op.Inputs {
		if y := g.Tensor(in); last(y.Shape) > 1 && y.Role != model.Constant && !f.grow(g, in, inside) {
			return false
		}
	}
	return true
}

// Slice cuts feed-forwards along their hidden columns, each into as many parts as the caller says (1: as it is), in a
// copy of a graph. A part makes its columns and multiplies them, and adds the product to the sum of the parts before.
// So no memory has the hidden columns of more than a part, and each weight is still read once. Sums are rounded between
// parts.
func Slice(g *model.Graph, parts []int64) (*model.Graph, error) {
	list := FeedForwards(g)
	if len(parts) != len(list) {
		return nil, fmt.Errorf("simplify: parts of %d feed-forwards, expected %d", len(parts), len(list))
	}
	e, cut := newEditor(g), false
	for i, f := range list {
		if n := min(parts[i], f.Width); n > 1 {
			e.slice(&f, n)
			cut = true
		}
	}
	if !cut {
		return e.g, nil
	}
	if err := cmp.Or(e.commit(), e.g.Validate()); err != nil {
		return nil, fmt.Errorf("simplify: slices: %w", err)
	}
	return e.g, nil
}

// slice puts n parts in the place of a feed-forward. Sums are the first operand of the next one, so that one part runs
// behind the other in depth-first order.
func (e *editor) slice(f *FeedForward, n int64) {
	g := e.g
	down := g.Ops[f.Down]
	out := g.Tensors[down.Outputs[0]]
	columns, _ := product(g, down)
	sums := make([]model.TensorID, n)
	for k := range n {
		p := &slicer{e, map[from]model.TensorID{}}
		lo, hi := f.Width*k/n, f.Width*(k+1)/n
		inputs := []model.TensorID{p.columns(down.Inputs[0], lo, hi), p.constant(down.Inputs[1], 1-columns, lo, hi)}
		if k == 0 {
			inputs = append(inputs, down.Inputs[2:]...)
		}
		sums[k] = p.put(down, down.Attr, out.Shape, inputs, lo, hi)
	}
	for k := int64(1); k < n; k++ {
		sum := out.ID
		if k < n-1 {
			sum = e.tensor(model.Tensor{Name: fmt.Sprintf("%s.sum%d", out.Name, k), Shape: out.Shape.Clone(),
				DType: out.DType, Role: model.Activation})
		}
		e.add(&model.Op{Name: fmt.Sprintf("%s.sum%d", down.Name, k), Kind: "Add", Attr: &model.Attr{},
			Inputs: []model.TensorID{sums[k-1], sums[k]}, Outputs: []model.TensorID{sum}})
		sums[k] = sum
	}
	e.dead[f.Down] = true
	for _, id := range f.Ops {
		e.dead[id] = true
	}
}

// A slicer makes a part of a feed-forward.
type slicer struct {
	e    *editor
	made map[from]model.TensorID
}

// from is the first of a part's positions along a dimension of a tensor.
type from struct {
	t   model.TensorID
	dim int
	lo  int64
}

// put adds an operator like another one, for columns from lo to hi, with a result of its own.
func (p *slicer) put(op *model.Op, attr *model.Attr, shape model.Shape, inputs []model.TensorID,
	lo, hi int64) model.TensorID {
	t := p.e.g.Tensors[op.Outputs[0]]
	out := p.e.tensor(model.Tensor{Name: fmt.Sprintf("%s[%d:%d]", t.Name, lo, hi), Shape: shape.Clone(), DType: t.DType,
		Role: model.Activation})
	p.e.add(&model.Op{Name: fmt.Sprintf("%s[%d:%d]", op.Name, lo, hi), Kind: op.Kind, Attr: attr, Inputs: inputs,
		Outputs: []model.TensorID{out}})
	return out
}

// constant cuts a constant from lo to hi along a dimension; one position stays whole.
func (p *slicer) constant(t model.TensorID, dim int, lo, hi int64) model.TensorID {
	x := *p.e.g.Tensors[t]
	if dim < 0 || x.Shape[dim] == 1 {
		return t
	}
	if own, ok := p.made[from{t, dim, lo}]; ok {
		return own
	}
	x.Name, x.Shape, x.Layout = fmt.Sprintf("%s[%d:%d]", x.Name, lo, hi), x.Shape.Clone(), nil
	x.Shape[dim], x.Ints = hi-lo, nil
	own := p.e.constant(x)
	p.made[from{t, dim, lo}] = own
	return own
}

// columns makes those from lo to hi of a hidden tensor.
func (p *slicer) columns(t model.TensorID, lo, hi int64) model.TensorID {
	g := p.e.g
	x := g.Tensors[t]
	key := from{t, len(x.Shape) - 1, lo}
	if own, ok := p.made[key]; ok {
		return own
	}
	op := g.Ops[x.Producer]
	if op.Kind == "Split" {
		for _, n := range op.Attr.Splits[:slices.Index(op.Outputs, t)] {
			lo, hi = lo+n, hi+n
		}
		return p.columns(op.Inputs[0], lo, hi)
	}
	shape := x.Shape.Clone()
	shape[len(shape)-1] = hi - lo
	attr, inputs := op.Attr, slices.Clone(op.Inputs)
	columns, multiplies := product(g, op)
	for i, in := range inputs {
		y := g.Tensors[in]
		switch {
		case multiplies && i == 1:
			inputs[i] = p.constant(in, columns, lo, hi)
		case y.Role == model.Constant:
			inputs[i] = p.constant(in, len(y.Shape)-1, lo, hi)
		case !multiplies && last(y.Shape) > 1:
			inputs[i] = p.columns(in, lo, hi)
		}
	}
	if op.Kind == "Reshape" {
		own := *attr
		own.Shape = shape.Clone()
		attr = &own
	}
	own := p.put(op, attr, shape, inputs, lo, hi)
	p.made[key] = own
	return own
}
