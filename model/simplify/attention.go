package simplify

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// FuseAttention puts one operator, of kind Attention, in the place of the operators of each attention in a copy
// of g: a product of queries and keys, element-wise operators on the scores, a softmax or not, and the product with the
// values. It returns how many it has found. Reshapes between them, which cut heads into groups that share keys, go
// into those of the operands; a mask that is known to be causal becomes an attribute. Keys and values that are put
// together for it alone, as those of a cache and of a token, stay apart.
//
// What stays as it is: scores or shares that something else reads, products with constants, one tensor as queries and
// keys or the like, and whatever does not fit the operator. It is not among the passes of [Run], since schedules of the
// paper's variants have kernels in between.
func FuseAttention(g *model.Graph) (*model.Graph, int, error) {
	e, n := newEditor(g), 0
	for i := range len(e.g.Ops) {
		if op := e.g.Ops[i]; op.Kind == "MatMul" {
			if a := e.attention(op); a != nil {
				e.fuse(a)
				n++
			}
		}
	}
	if n == 0 {
		return e.g, 0, nil
	}
	unread := func() { deadCode(e) } // reshapes and transpositions, constants
	for _, change := range []func(){func() {}, unread, e.keyParts} {
		change()
		if err := e.commit(); err != nil {
			return nil, 0, fmt.Errorf("simplify: attention: %w", err)
		}
	}
	unread()
	g, err := e.finished("attention")
	return g, n, err
}

// found is an attention in a graph.
type found struct {
	scores, context *model.Op   // the products
	between         []*model.Op // from the scores on
	shape           model.Shape // of the scores, where operators on them have operands of most dimensions
	attr            model.Attr
	operands        []model.TensorID // of the operators on scores
	shapes          []model.Shape    // of the scores where they are
}

// only is the one operator that reads a tensor, nil if there are others or it leaves the network.
func (e *editor) only(t model.TensorID) *model.Op {
	if c := e.g.Tensors[t].Consumers; len(c) == 1 && !e.isOutput[t] {
		return e.g.Ops[c[0]]
	}
	return nil
}

// attention finds the one that ends with a product, nil if there is none.
func (e *editor) attention(context *model.Op) *found {
	g := e.g
	a := &found{context: context, attr: model.Attr{Group: 1}}
	keys, at := g.Tensors[context.Inputs[0]].Shape, context.Inputs[0]
	for a.scores == nil {
		t, reader := g.Tensors[at], context
		if len(a.between) > 0 {
			reader = a.between[len(a.between)-1]
		}
		if t.Producer == model.NoOp || e.only(at) != reader || len(t.Shape) < 2 ||
			t.Shape[len(t.Shape)-1] != keys[len(keys)-1] {
			return nil
		}
		op := g.Ops[t.Producer]
		switch last := int64(len(t.Shape) - 1); {
		case op.Kind == "MatMul":
			a.scores = op
			continue
		case op.Kind == "Reshape" || op.Kind == "Identity" || op.Kind == "Dropout":
			at = op.Inputs[0]
		case op.Kind == "Softmax":
			if a.attr.Softmax || len(a.attr.Scores) > 0 || op.Attr.Axis != last || len(op.Attr.Axes) > 0 &&
				!slices.Equal(op.Attr.Axes, []int64{last}) {
				return nil
			}
			a.attr.Softmax, a.attr.Variant = true, op.Attr.Variant
			at = op.Inputs[0]
		case model.OnScores(op.Kind):
			place := e.onChain(op, t.Shape)
			if place < 0 {
				return nil
			}
			a.attr.Scores = append(a.attr.Scores, model.ScoreOp{Kind: op.Kind, Variant: op.Attr.Variant, At: place,
				Operands: len(op.Inputs)})
			var others []model.TensorID
			for k, in := range op.Inputs {
				if k != place {
					others = append(others, in)
				}
			}
			for _, in := range slices.Backward(others) { // they are reversed below
				a.operands, a.shapes = append(a.operands, in), append(a.shapes, t.Shape)
			}
			at = op.Inputs[place]
		default:
			return nil
		}
		a.between = append(a.between, op)
	}
	slices.Reverse(a.between)
	slices.Reverse(a.attr.Scores)
	slices.Reverse(a.operands)
	slices.Reverse(a.shapes)
	if !a.attr.Softmax && len(a.attr.Scores) == 0 || !e.fits(a) {
		return nil
	}
	return a
}

// onChain is the place of the scores among an element-wise operator's operands: the one of all of the result's
// elements that a product leads to; -1 if that is none or several.
func (e *editor) onChain(op *model.Op, shape model.Shape) int {
	place := -1
	for k, in := range op.Inputs {
		if !e.g.Tensors[in].Shape.Equal(shape) || e.only(in) != op || !e.behindProduct(in) {
			continue
		}
		if place >= 0 {
			return -1
		}
		place = k
	}
	return place
}

// behindProduct reports whether a tensor comes from a product, by operators that an attention may have on the way.
func (e *editor) behindProduct(t model.TensorID) bool {
	for range len(e.g.Ops) {
		p := e.g.Tensors[t].Producer
		if p == model.NoOp {
			return false
		}
		switch op := e.g.Ops[p]; {
		case op.Kind == "MatMul":
			return true
		case op.Kind == "Reshape" || op.Kind == "Identity" || op.Kind == "Dropout":
			t = op.Inputs[0]
		case model.OnScores(op.Kind):
			shape, next := e.g.Tensors[t].Shape, model.TensorID(-1)
			for _, in := range op.Inputs {
				if p := e.g.Tensors[in].Producer; e.g.Tensors[in].Shape.Equal(shape) && p != model.NoOp && e.only(in) == op {
					next = in
				}
			}
			if next < 0 {
				return false
			}
			t = next
		default:
			return false
		}
	}
	return false
}

// fits completes what has been found, if an operator can stand for it.
func (e *editor) fits(a *found) bool {
	g := e.g
	for _, t := range []model.TensorID{a.scores.Inputs[0], a.scores.Inputs[1], a.context.Inputs[1]} {
		if g.Tensors[t].Role == model.Constant || len(g.Tensors[t].Shape) < 2 {
			return false
		}
	}
	// The shape in which most dimensions are told apart: that of the softmax or of an operand of many dimensions.
	for _, op := range a.between {
		if s := g.Tensors[op.Outputs[0]].Shape; op.Kind == "Softmax" || a.shape == nil {
			a.shape = s
		}
	}
	for i, t := range a.operands {
		if s := a.shapes[i]; len(g.Tensors[t].Shape) > 1 && len(s) > 2 && (len(s) > len(a.shape) || !e.trailing(a, i)) {
			a.shape = s
		}
	}
	if len(a.shape) == 2 {
		a.shape = slices.Concat(model.Shape{1}, a.shape)
	}
	for i := range a.operands {
		if !e.trailing(a, i) {
			return false
		}
	}
	if _, copies, swapped := e.source(a.context); swapped && copies > 1 {
		return false
	}
	group := e.sharing(a, a.scores)
	if group < 1 || e.sharing(a, a.context) != group || a.shape[len(a.shape)-3]%group != 0 {
		return false
	}
	a.attr.Group = group
	e.causal(a)
	if e.twice(a) {
		return false
	}
	for _, op := range a.between { // of one type all the way
		if g.Tensors[op.Outputs[0]].DType != g.Tensors[a.scores.Outputs[0]].DType {
			return false
		}
	}
	return true
}

// twice reports whether queries, keys, values and operands of the scores are one tensor in two places, but for its
// shape.
func (e *editor) twice(a *found) bool {
	key, _, _ := e.source(a.scores)
	value, _, swapped := e.source(a.context)
	if swapped {
		value = a.context.Inputs[1]
	}
	return e.shared([]model.TensorID{a.scores.Inputs[0], key, value}, a.operands)
}

// shared reports whether tensors of a list are one in two places, or one of others, but for its shape.
func (e *editor) shared(list, others []model.TensorID) bool {
	known := map[model.TensorID]bool{}
	for i, t := range slices.Concat(list, others) {
		for p := e.g.Tensors[t].Producer; p != model.NoOp && e.g.Ops[p].Kind == "Reshape"; p = e.g.Tensors[t].Producer {
			t = e.g.Ops[p].Inputs[0]
		}
		if known[t] {
			return true
		}
		known[t] = i < len(list)
	}
	return false
}

// keyParts lets attentions read the parts of keys and values that a Concat puts together for them alone.
func (e *editor) keyParts() {
	for _, op := range e.g.Ops {
		if op.Kind != "Attention" || op.KeyParts() != 1 {
			continue
		}
		n := len(e.g.Tensors[op.Inputs[1]].Shape)
		dim := n - 2
		if op.Attr.TransB {
			dim++
		}
		keys, values := e.partsOf(op, op.Inputs[1], dim), e.partsOf(op, op.Inputs[2], n-2)
		if keys == nil || len(keys) != len(values) {
			continue
		}
		inputs, fit := op.Inputs[:1:1], true
		for i, k := range keys {
			inputs = append(inputs, k, values[i])
			fit = fit && e.g.Tensors[k].Shape[dim] == e.g.Tensors[values[i]].Shape[n-2] &&
				e.g.Tensors[k].Role != model.Constant && e.g.Tensors[values[i]].Role != model.Constant
		}
		if fit && !e.shared(inputs, op.Inputs[3:]) {
			op.Inputs = append(inputs, op.Inputs[3:]...)
		}
	}
}

// partsOf lists what a Concat along a dimension makes a tensor of that one operator reads alone, with or without a
// reshape behind it; nil: it is made otherwise.
func (e *editor) partsOf(reader *model.Op, t model.TensorID, dim int) (parts []model.TensorID) {
	g, shape := e.g, e.g.Tensors[t].Shape
	for g.Tensors[t].Producer != model.NoOp && e.only(t) == reader {
		from := g.Tensors[t].Shape
		switch op := g.Ops[g.Tensors[t].Producer]; op.Kind {
		case "Reshape":
			reader, t = op, op.Inputs[0]
			continue
		case "Concat":
			axis := op.Attr.Axis
			if from[axis] != shape[dim] || from[axis:].Elements() != shape[dim:].Elements() {
				return nil
			}
			for _, in := range op.Inputs {
				own := shape.Clone()
				own[dim] = g.Tensors[in].Shape[axis]
				parts = append(parts, e.reshaped(in, own))
			}
		}
		break
	}
	return parts
}

// trailing reports whether an operand has the same place among the attention's scores as where it is read.
func (e *editor) trailing(a *found, i int) bool {
	s, at := e.g.Tensors[a.operands[i]].Shape, a.shapes[i]
	if s.Elements() == 1 {
		return len(s) <= len(a.shape)
	}
	n := len(s)
	if n > len(a.shape) || n > len(at) {
		return false
	}
	for d := range n {
		if s[d] != 1 && (at[len(at)-n+d] != s[d] || a.shape[len(a.shape)-n+d] != s[d]) ||
			at[len(at)-n+d] != a.shape[len(a.shape)-n+d] && s[1:].Elements() > 1 {
			return false
		}
	}
	return true
}

// sharing is the number of heads of queries that share the second operand of a product, 0 if that has no answer.
func (e *editor) sharing(a *found, op *model.Op) int64 {
	first, second := e.g.Tensors[op.Inputs[0]].Shape, e.g.Tensors[op.Inputs[1]].Shape
	n := len(first)
	if len(second) > n || n < 2 {
		return 0
	}
	second = append(slices.Repeat(model.Shape{1}, n-len(second)), second...)
	shared, apart := int64(1), false
	for d := n - 3; d >= 0; d-- {
		switch {
		case first[d] == second[d]:
			apart = apart || first[d] > 1
		case second[d] != 1 || apart:
			return 0
		default:
			shared *= first[d]
		}
	}
	rows := a.shape[len(a.shape)-2]
	if first[n-2]%rows != 0 {
		return 0
	}
	_, copies, _ := e.source(op)
	return shared * (first[n-2] / rows) * copies
}

// source is the origin of a product's second operand: copies of it for so many heads that share it, and, if
// swapped, with the last two dimensions swapped.
func (e *editor) source(op *model.Op) (t model.TensorID, copies int64, swapped bool) {
	g := e.g
	made := func(t model.TensorID, kind model.Kind) *model.Op {
		if p := g.Tensors[t].Producer; p != model.NoOp && g.Ops[p].Kind == kind {
			return g.Ops[p]
		}
		return nil
	}
	t, copies = op.Inputs[1], 1
	if p := made(t, "Transpose"); p != nil && swapsLast(p) {
		t, swapped = p.Inputs[0], true
	}
	merge := made(t, "Reshape")
	if merge == nil {
		return t, 1, swapped
	}
	expand := made(merge.Inputs[0], "Expand")
	if expand == nil {
		return t, 1, swapped
	}
	from, many, to := g.Tensors[expand.Inputs[0]].Shape, g.Tensors[merge.Inputs[0]].Shape, g.Tensors[t].Shape
	n := len(many)
	if len(from) != n || n < 4 || len(to) != n-1 || from[n-3] != 1 || to[n-4] != many[n-4]*many[n-3] ||
		!slices.Equal(to[n-3:], many[n-2:]) || !slices.Equal(to[:n-4], many[:n-4]) {
		return t, 1, swapped
	}
	for d := range from {
		if d != n-3 && from[d] != many[d] {
			return t, 1, swapped
		}
	}
	return expand.Inputs[0], many[n-3], swapped
}

// causal takes a causal mask out of the operands.
func (e *editor) causal(a *found) {
	if !a.attr.Softmax {
		return
	}
	n, k := len(a.shape), 0
	for i := 0; i < len(a.attr.Scores); i++ {
		s := a.attr.Scores[i]
		others := s.Operands - 1
		var mask *model.Tensor
		if others > 0 {
			mask = e.g.Tensors[a.operands[k]]
		}
		if mask != nil && mask.Causal && a.shape[n-2] <= a.shape[n-1] && len(mask.Shape) > 1 &&
			mask.Shape.Elements() == a.shape[n-2]*a.shape[n-1] &&
			mask.Shape[len(mask.Shape)-1] == a.shape[n-1] && (s.Kind == "Add" && others == 1 || s.Kind == "Where" && s.At == 1) {
			a.attr.Causal = true
			a.attr.Scores = slices.Delete(a.attr.Scores, i, i+1)
			a.operands = slices.Delete(a.operands, k, k+others)
			i--
			continue
		}
		k += others
	}
}

// fuse puts the operator into the graph.
func (e *editor) fuse(a *found) {
	g, n := e.g, len(a.shape)
	lead := a.shape[:n-3].Clone()
	heads, rows := a.shape[n-3], a.shape[n-2]
	like := func(t model.TensorID, heads, rows, columns int64) model.TensorID {
		return e.reshaped(t, append(lead.Clone(), heads, rows, columns))
	}
	ks, vs := g.Tensors[a.scores.Inputs[1]].Shape, g.Tensors[a.context.Inputs[1]].Shape
	depth, keys, width := ks[len(ks)-2], ks[len(ks)-1], vs[len(vs)-1]
	key, _, swapped := e.source(a.scores)
	if a.attr.TransB = !swapped; swapped {
		key = like(key, heads/a.attr.Group, keys, depth)
	} else {
		key = like(key, heads/a.attr.Group, depth, keys)
	}
	value, _, swapped := e.source(a.context)
	if swapped { // as it is
		value = a.context.Inputs[1]
	}
	inputs := []model.TensorID{like(a.scores.Inputs[0], heads, rows, depth), key, like(value, heads/a.attr.Group, keys,
		width)}
	attr := a.attr
	for _, op := range append(a.between, a.scores) {
		e.dead[op.ID] = true
	}
	out := a.context.Outputs[0]
	shape := append(lead.Clone(), heads, rows, width)
	if r := e.only(out); r != nil && r.Kind == "Reshape" && g.Tensors[r.Outputs[0]].Shape.Equal(shape) {
		e.dead[r.ID] = true
		out = r.Outputs[0]
	} else if !g.Tensors[out].Shape.Equal(shape) {
		own := e.result(g.Tensors[out].Name+".heads", shape, g.Tensors[out].DType)
		e.put("Reshape", a.context.Name+".shape", &model.Attr{Shape: g.Tensors[out].Shape.Clone()}, out, own)
		out = own
	}
	a.context.Kind, a.context.Attr = "Attention", &attr
	a.context.Inputs, a.context.Outputs = append(inputs, a.operands...), []model.TensorID{out}
}

// swapsLast reports whether an operator swaps the last two dimensions.
func swapsLast(op *model.Op) bool {
	p := op.Attr.Perm
	if op.Kind != "Transpose" || len(p) < 2 {
		return false
	}
	for i, d := range p {
		want := int64(i)
		if k := len(p) - 1 - i; k < 2 {
			want = int64(len(p) - 2 + k)
		}
		if d != want {
			return false
		}
	}
	return true
}

// reshaped is a tensor in another shape: one that it is made of in that shape, if there is one.
func (e *editor) reshaped(t model.TensorID, shape model.Shape) model.TensorID {
	x := e.g.Tensors[t]
	if x.Shape.Equal(shape) {
		return t
	}
	if p := x.Producer; p != model.NoOp && e.g.Ops[p].Kind == "Reshape" &&
		e.g.Tensors[e.g.Ops[p].Inputs[0]].Shape.Equal(shape) {
		return e.g.Ops[p].Inputs[0]
	}
	own := e.result(x.Name+".heads", shape, x.DType)
	return e.put("Reshape", x.Name+".heads", &model.Attr{Shape: shape.Clone()}, own, t)
}

// put adds an operator that makes out, which it returns.
func (e *editor) put(kind model.Kind, name string, attr *model.Attr, out model.TensorID,
	in ...model.TensorID) model.TensorID {
	e.g.Ops = append(e.g.Ops, &model.Op{ID: model.OpID(len(e.g.Ops)), Name: name, Kind: kind, Attr: attr, Inputs: in,
		Outputs: []model.TensorID{out}})
	e.dead = append(e.dead, false)
	return out
}

// result adds a tensor that an operator is to make, with a name of its own.
func (e *editor) result(name string, shape model.Shape, dt model.DType) model.TensorID {
	return e.tensor(model.Tensor{Name: name, Shape: shape.Clone(), DType: dt, Role: model.Activation})
}
