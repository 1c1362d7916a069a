package simplify

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/model"
)

// A FeedForward is a product or convolution with constant weights, down, whose operand is hidden: nothing else reads
// it, and each column (of a convolution a channel) comes from columns of other such products by element-wise operators.
type FeedForward struct {
	Down   model.OpID
	Ops    []model.OpID     // that make the operand, ascending
	Reads  []model.TensorID // operands of the products among them
	Hidden []model.TensorID // results of these products
	Width  int64            // columns of the operand
	inner  int              // dimensions of the operand inside that of its columns
}

// Pays reports whether slices can save loads: operands, hidden columns and result have no room together, so that rows
// or images run in turns; and of convolutions the weights take more than half of it, so that they pass in each turn.
func (f *FeedForward) Pays(g *model.Graph, room int64) bool {
	beside, hidden, weights := f.bytes(g)
	return beside+hidden > room && (f.inner == 0 || weights > room/2)
}

// Parts is the least number of equal parts of the hidden columns, each of least columns or more, of which one has room
// where rows or images run in as few turns as they can. What a convolution reads is there twice: as it was made, and as
// its cores need it, with the rows around theirs.
func (f *FeedForward) Parts(g *model.Graph, room, least int64) int64 {
	beside, hidden, _ := f.bytes(g)
	if f.inner > 0 {
		hidden *= 2
	}
	var parts []int64
	for n := int64(1); n <= max(1, f.Width/least); n++ {
		if f.Width%n == 0 {
			parts = append(parts, n)
		}
	}
	room = max(room, 1)
	most := parts[len(parts)-1]
	turns := (beside*most + hidden + room*most - 1) / (room * most)
	return parts[slices.IndexFunc(parts, func(n int64) bool { return beside*n+hidden <= room*turns*n })]
}

// bytes counts operands and result of a feed-forward, its hidden columns, and the weights of its products.
func (f *FeedForward) bytes(g *model.Graph) (beside, hidden, weights int64) {
	down := g.Op(f.Down)
	beside, weights = g.Tensor(down.Outputs[0]).Bytes(), g.Tensor(down.Inputs[1]).Bytes()
	for i, t := range f.Reads {
		if !slices.Contains(f.Reads[:i], t) {
			beside += g.Tensor(t).Bytes()
		}
	}
	for _, t := range f.Hidden {
		x := g.Tensor(t)
		hidden, weights = hidden+x.Bytes(), weights+g.Tensor(g.Op(x.Producer).Inputs[1]).Bytes()
	}
	return beside, hidden, weights
}

// FeedForwards finds feed-forwards of a graph, in the order of their last products. No product is the last of one and
// in another.
func FeedForwards(g *model.Graph) (list []FeedForward) {
	ends := map[model.OpID]bool{}
	for _, op := range g.Ops {
		if _, _, ok := product(g, op); !ok {
			continue
		}
		x := g.Tensor(op.Inputs[0]).Shape
		f := FeedForward{Down: op.ID}
		if op.Kind == "Conv" {
			f.inner = len(x) - 2
		}
		f.Width = f.columns(x)
		if f.grow(g, ends) {
			ends[op.ID] = true
			list = append(list, f)
		}
	}
	return list
}

// product gives the dimensions of the columns and of the reduction of an operator's constant weights, if it is a
// product of rows or a convolution of all channels.
func product(g *model.Graph, op *model.Op) (columns, reduced int, ok bool) {
	switch {
	case op.Kind == "Conv":
		columns, reduced, ok = 0, 1, op.Attr.Group <= 1
	case op.Kind == "Gemm" && op.Attr.TransB:
		columns, reduced, ok = 0, 1, !op.Attr.TransA
	case op.Kind == "MatMul" || op.Kind == "Gemm":
		columns, reduced, ok = 1, 0, !op.Attr.TransA && len(g.Tensor(op.Inputs[1]).Shape) == 2
	}
	constant := func(t model.TensorID) bool { return g.Tensor(t).Role == model.Constant }
	return columns, reduced, ok && !constant(op.Inputs[0]) && len(g.Tensor(op.Inputs[0]).Shape) > 1 &&
		!slices.ContainsFunc(op.Inputs[1:], func(t model.TensorID) bool { return !constant(t) })
}

// axis is the dimension of the columns of a hidden tensor, or of what is broadcast to one; below zero: it has none.
func (f *FeedForward) axis(s model.Shape) int { return len(s) - 1 - f.inner }

func (f *FeedForward) columns(s model.Shape) int64 {
	if axis := f.axis(s); axis >= 0 {
		return s[axis]
	}
	return 1
}

// grow finds the operators that make the operand's columns, of which a Split may take some: the last first, so that all
// that read one are known before it, and none is walked that something else reads. False: something else than products
// makes columns, or something else reads them, as the down of another feed-forward does.
func (f *FeedForward) grow(g *model.Graph, ends map[model.OpID]bool) bool {
	inside := map[model.OpID]bool{f.Down: true}
	todo := heap.Of(func(a, b model.OpID) bool { return a > b })
	reach := func(t model.TensorID) bool {
		x := g.Tensor(t)
		if x.Producer == model.NoOp || x.Role != model.Activation {
			return false
		}
		if !inside[x.Producer] {
			inside[x.Producer] = true
			todo.Push(x.Producer)
		}
		return true
	}
	away := func(id model.OpID) bool { return !inside[id] }
	leaves := func(t model.TensorID) bool {
		return g.IsOutput(t) || slices.ContainsFunc(g.Tensor(t).Consumers, away)
	}
	if !reach(g.Op(f.Down).Inputs[0]) {
		return false
	}
	for todo.Len() > 0 {
		op := g.Op(todo.Pop())
		if ends[op.ID] || slices.ContainsFunc(op.Outputs, leaves) {
			return false
		}
		f.Ops = append(f.Ops, op.ID)
		x := g.Tensor(op.Outputs[0])
		_, _, multiplies := product(g, op)
		switch {
		case multiplies:
			if (op.Kind == "Conv") != (f.inner > 0) || f.inner > 0 && len(x.Shape) != f.inner+2 {
				return false
			}
			f.Reads, f.Hidden = append(f.Reads, op.Inputs[0]), append(f.Hidden, x.ID)
			continue
		case op.Kind == "Split":
			if op.Attr.Axis != int64(f.axis(x.Shape)) || !reach(op.Inputs[0]) {
				return false
			}
			continue
		case op.Kind == "Reshape":
			same := f.inner == 0 && f.columns(g.Tensor(op.Inputs[0]).Shape) == f.columns(x.Shape)
			if !same || !reach(op.Inputs[0]) {
				return false
			}
			continue
		case op.Class() != model.ElementwiseClass || len(op.Outputs) != 1:
			return false
		}
		for k, in := range op.Inputs {
			y := g.Tensor(in)
			for d, a := range g.Access(op, 0, k) { // a scale or statistic for each channel is no broadcast
				if y.Shape[d] > 1 && (a.Full || a.Out != d+len(x.Shape)-len(y.Shape)) {
					return false
				}
			}
			if f.columns(y.Shape) > 1 && y.Role != model.Constant && !reach(in) {
				return false
			}
		}
	}
	slices.Reverse(f.Ops)
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
	return e.finished("slices")
}

// slice puts n parts in the place of a feed-forward. Sums are the first operand of the next one, so that one part runs
// behind the other in depth-first order.
func (e *editor) slice(f *FeedForward, n int64) {
	g := e.g
	down := g.Ops[f.Down]
	out := g.Tensors[down.Outputs[0]]
	_, reduced, _ := product(g, down)
	sums := make([]model.TensorID, n)
	for k := range n {
		p := &slicer{e, f, map[from]model.TensorID{}}
		lo, hi := f.Width*k/n, f.Width*(k+1)/n
		inputs := []model.TensorID{p.columns(down.Inputs[0], lo, hi), p.constant(down.Inputs[1], reduced, lo, hi)}
		if k == 0 {
			inputs = append(inputs, down.Inputs[2:]...)
		}
		sums[k] = p.put(down, down.Attr, out.Shape, inputs, lo, hi)
	}
	for k := int64(1); k < n; k++ {
		sum := out.ID
		if k < n-1 {
			sum = e.result(fmt.Sprintf("%s.sum%d", out.Name, k), out.Shape, out.DType)
		}
		sums[k] = e.put("Add", fmt.Sprintf("%s.sum%d", down.Name, k), &model.Attr{}, sum, sums[k-1], sums[k])
	}
	e.dead[f.Down] = true
	for _, id := range f.Ops {
		e.dead[id] = true
	}
}

// A slicer makes a part of a feed-forward.
type slicer struct {
	e    *editor
	f    *FeedForward
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
	name := func(of string) string { return fmt.Sprintf("%s[%d:%d]", of, lo, hi) }
	return p.e.put(op.Kind, name(op.Name), attr, p.e.result(name(t.Name), shape, t.DType), inputs...)
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
	key := from{t, p.f.axis(x.Shape), lo}
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
	shape[p.f.axis(shape)] = hi - lo
	attr, inputs := op.Attr, slices.Clone(op.Inputs)
	columns, _, multiplies := product(g, op)
	for i, in := range inputs {
		y := g.Tensors[in]
		switch {
		case multiplies && i == 1:
			inputs[i] = p.constant(in, columns, lo, hi)
		case y.Role == model.Constant && multiplies: // bias
			inputs[i] = p.constant(in, len(y.Shape)-1, lo, hi)
		case y.Role == model.Constant:
			inputs[i] = p.constant(in, p.f.axis(y.Shape), lo, hi)
		case !multiplies && p.f.columns(y.Shape) > 1:
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
