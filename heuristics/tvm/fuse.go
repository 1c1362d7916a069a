package tvm

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// pattern is the class that TVM's fusion gives to an operator, and to an edge to its reader. A
// larger one is harder to fuse.
type pattern uint8

// The patterns, as TVM 0.8 has them (relay/op_attr_types.h).
const (
	elementwise pattern = iota // one element of each input, all of the same shape
	broadcast                  // likewise, but for shapes
	injective                  // each element of an input goes to one of the result
	reduction                  // sum, mean, maximum over axes
	complexOut                 // products, convolutions, pools: element-wise ones may follow
	tuple                      // operands put side by side
	opaque                     // stays alone
)

// patterns of the kinds whose class does not say it: TVM's registrations of the
// operators that its importers make of them.
var patterns = map[model.Kind]pattern{
	"MaxPool": complexOut, "AveragePool": complexOut, "GlobalAveragePool": complexOut, "GlobalMaxPool": complexOut,
	"ReduceMean": reduction, "ReduceSum": reduction, "ReduceMax": reduction, "ReduceMin": reduction, "ArgMax": reduction,
	"Expand": broadcast, "Scatter": opaque,
}

func patternOf(op *model.Op) pattern {
	if p, ok := patterns[op.Kind]; ok {
		return p
	}
	switch op.Class() {
	case model.MatrixClass:
		return complexOut
	case model.ElementwiseClass:
		if len(op.Inputs) == 1 {
			return elementwise
		}
		return broadcast
	case model.InjectiveClass, model.ViewClass:
		return injective
	}
	return opaque // softmax, and whole normalisations, which are none of TVM's operators
}

// FuseOps makes kernels of the operators, given in execution order, as TVM's pass FuseOps does (version 0.8; Chen et
// al., OSDI 2018, §3). An operator joins the kernel of its immediate post-dominator, the operator where all paths from
// it meet again, in three rounds:
//
//  1. a product or a pool, if all between is element-wise and of its result's shape; an
//     element-wise or broadcasting operator, if what is on the paths is injective at most
//     and the end is that, a reduction, or has a product already;
//  2. an injective operator, or the operands of a concatenation, if all up to the end is
//     injective at most;
//  3. what makes an operand of a concatenation, if it is injective at most.
//
// Nothing joins a reduction's or an opaque operator's result. A product of more than three dimensions has a reshape
// behind it, since TVM's has three and its importers bring others to that; so its readers see an injective operator.
//
// A kernel of its own computes the positions of a look-up in constants, since the look-up's loads depend on them.
//
// A reshape alone is no kernel (TVM makes nothing of it): it stays with what it reads.
func FuseOps(g *model.Graph, order []model.OpID) []schedule.Layer {
	f := newOpsFuser(g)
	for round := range 3 {
		for n := range f.nodes {
			f.fuse(n, round)
		}
	}
	return f.kernels(order, func(op *model.Op) bool { return op.Class() == model.ViewClass })
}

// kernels are what was made one, and alone what was not, but for views.
func (f *opsFuser) kernels(order []model.OpID, view func(*model.Op) bool) []schedule.Layer {
	f.attachViews(order, view)
	parts := map[int][]model.OpID{}
	var ends []int
	for _, id := range slices.Backward(order) {
		r := f.find(f.node[id])
		if parts[r] == nil {
			ends = append(ends, r)
		}
		parts[r] = append(parts[r], id)
	}
	slices.Reverse(ends) // a kernel runs where its last operator stands
	var layers []schedule.Layer
	for _, r := range ends {
		slices.Reverse(parts[r])
		layers = append(layers, schedule.NewLayer(f.g, parts[r]))
	}
	return layers
}

// GroupOps is [Group] with the kernels of [FuseOps].
func GroupOps(g *model.Graph, order []model.OpID) (*schedule.Grouping, [][]schedule.Layer) {
	return group(FuseOps(g, order))
}

// GroupNone is [GroupOps] where nothing is fused: each operator is a kernel. What moves no elements is part of another.
// So is the sum of a product and a vector of constants, or its multiple, which is one operator to libraries (BLAS,
// ONNX's Gemm).
func GroupNone(g *model.Graph, order []model.OpID) (*schedule.Grouping, [][]schedule.Layer) {
	f := newOpsFuser(g)
	for _, op := range g.Ops {
		if t := g.Tensor(op.Inputs[0]); endsProduct(g, op) && len(t.Consumers) == 1 && !g.IsOutput(t.ID) {
			f.nodes[f.node[t.Producer]].next = f.node[op.ID]
		}
	}
	return group(f.kernels(order, func(op *model.Op) bool {
		by := g.Tensor(op.Inputs[0]).Producer // an attention writes its heads side by side
		return op.Class() == model.ViewClass || g.KeepsOrder(op) ||
			op.Kind == "Transpose" && by != model.NoOp && g.Op(by).Kind == "Attention"
	}))
}

// endsProduct reports whether an operator adds a vector of constants to a product, or multiplies it by one.
func endsProduct(g *model.Graph, op *model.Op) bool {
	if t := g.Tensor(op.Inputs[0]); len(op.Inputs) != 2 || t.Producer == model.NoOp || g.Op(t.Producer).Kind != "MatMul" {
		return false
	}
	by := g.Tensor(op.Inputs[1])
	return by.Role == model.Constant &&
		(op.Kind == "Add" && len(by.Shape) == 1 || op.Kind == "Mul" && by.Shape.Elements() == 1)
}

func group(kernels []schedule.Layer) (*schedule.Grouping, [][]schedule.Layer) {
	gr := &schedule.Grouping{}
	var layers [][]schedule.Layer
	for i, l := range kernels {
		sg := &schedule.SubGraph{ID: i, Name: fmt.Sprintf("k%d", i), Ops: l.Ops,
			Split: schedule.SplitInfo{Ops: len(l.Ops), Factor: 1, Dim: -1}}
		sg.Inputs, sg.Outputs = l.Inputs, l.Outputs
		gr.Groups = append(gr.Groups, sg)
		layers = append(layers, kernels[i:i+1:i+1])
	}
	return gr, layers
}

// node is an operator, or the operands of a concatenation.
type node struct {
	op      *model.Op // nil: operands
	kind    pattern
	readers []edge
	leaves  bool // the network gives its result out
	// Of the tree of post-dominators: the immediate one or -1, its distance from the
	// end, and the hardest edge on the way to it.
	end   int
	depth int
	way   pattern
	// Of the union of nodes in a kernel: the next one towards the last, and, of that, the pattern of the kernel.
	next  int
	fused pattern
}

type edge struct {
	to   int
	kind pattern
}

type opsFuser struct {
	g     *model.Graph
	nodes []node
	node  []int // of each operator
}

func newOpsFuser(g *model.Graph) *opsFuser {
	f := &opsFuser{g: g, node: make([]int, len(g.Ops))}
	for _, op := range g.Ops { // in topological order
		operands := -1
		if op.Kind == "Concat" {
			operands = len(f.nodes)
			f.nodes = append(f.nodes, node{kind: tuple})
		}
		at := len(f.nodes)
		f.node[op.ID] = at
		n := node{op: op, kind: patternOf(op)}
		for _, t := range op.Outputs {
			n.leaves = n.leaves || g.IsOutput(t)
		}
		f.nodes = append(f.nodes, n)
		if operands >= 0 {
			f.nodes[operands].readers = []edge{{at, injective}}
			at = operands
		}
		for _, t := range op.Inputs {
			if from := g.Tensor(t).Producer; from != model.NoOp {
				f.nodes[f.node[from]].readers = append(f.nodes[f.node[from]].readers, edge{at, f.edgeKind(t, op, operands >= 0)})
			}
		}
	}
	for i := range slices.Backward(f.nodes) {
		f.dominate(i)
	}
	return f
}

// edgeKind is the pattern of op as a reader of t.
func (f *opsFuser) edgeKind(t model.TensorID, op *model.Op, operand bool) pattern {
	from := f.g.Op(f.g.Tensor(t).Producer)
	kind := patternOf(op)
	switch {
	case operand:
		return injective
	case op.Kind == "Gather" && t == op.Inputs[1] && f.g.Tensor(op.Inputs[0]).Role == model.Constant:
		return opaque // rows are loaded by position before the kernel computes anything
	case from.Class() == model.MatrixClass && from.Kind == "MatMul" && len(f.g.Tensor(t).Shape) > 3:
		return max(kind, injective) // a reshape stands between
	case kind == broadcast && f.g.Tensor(t).Shape.Equal(f.g.Tensor(op.Outputs[0]).Shape):
		return elementwise
	}
	return kind
}

// dominate finds the immediate post-dominator of a node whose readers have theirs.
func (f *opsFuser) dominate(i int) {
	n := &f.nodes[i]
	n.end, n.depth, n.way, n.next, n.fused = -1, 1, opaque, i, n.kind
	if n.leaves || len(n.readers) == 0 {
		return
	}
	n.end, n.way = n.readers[0].to, n.readers[0].kind
	for _, e := range n.readers[1:] {
		n.way = max(n.way, e.kind)
		for a, b := n.end, e.to; ; {
			if a == b || a < 0 || b < 0 {
				n.end = a
				if a != b {
					n.end = -1
				}
				break
			}
			x, y := &f.nodes[a], &f.nodes[b]
			if x.depth >= y.depth {
				n.way, a = max(n.way, x.way), x.end
			}
			if y.depth >= x.depth {
				n.way, b = max(n.way, y.way), y.end
			}
		}
		if n.end < 0 {
			return
		}
	}
	n.depth = f.nodes[n.end].depth + 1
}

func (f *opsFuser) find(i int) int {
	for f.nodes[i].next != i {
		f.nodes[i].next = f.nodes[f.nodes[i].next].next
		i = f.nodes[i].next
	}
	return i
}

// pattern returns the pattern of the kernel that has node i.
func (f *opsFuser) pattern(i int) pattern { return f.nodes[f.find(i)].fused }

// fuse joins node i with its post-dominator, if it may in this round.
func (f *opsFuser) fuse(i, round int) {
	n := &f.nodes[i]
	// The pattern is of the node's own kernel as long as nothing behind it has joined.
	kind := n.fused
	if kind == opaque || n.way == opaque || n.end < 0 {
		return
	}
	end := &f.nodes[n.end]
	upTo := func(inner, last pattern) func(pattern, bool) bool {
		return func(k pattern, isEnd bool) bool {
			if isEnd {
				return k <= last
			}
			return k <= inner
		}
	}
	if round == 2 { // operands of a concatenation that has joined others
		if root := f.pattern(n.end); kind <= injective && end.op == nil && root <= injective {
			f.join(i, upTo(injective, injective))
		}
		return
	}
	if f.find(i) == f.find(n.end) || end.op == nil {
		return
	}
	switch {
	case kind == complexOut:
		if round == 0 && n.way == elementwise {
			f.join(i, upTo(broadcast, broadcast))
		}
	case kind <= broadcast:
		if n.way <= reduction {
			f.join(i, upTo(injective, complexOut))
		}
	case kind == injective || kind == tuple:
		if round == 1 {
			f.join(i, upTo(injective, injective))
		}
	}
}

// join puts node i and all between it and its post-dominator into that one's kernel, if the kernels on the way may.
func (f *opsFuser) join(i int, may func(p pattern, isEnd bool) bool) {
	end := f.nodes[i].end
	seen := map[int]bool{}
	var between []int
	for stack := []int{i}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range f.nodes[at].readers {
			if seen[e.to] {
				continue
			}
			seen[e.to] = true
			if !may(f.pattern(e.to), e.to == end) {
				return
			}
			if e.to != end {
				between = append(between, e.to)
				stack = append(stack, e.to)
			}
		}
	}
	for _, k := range append(between, i) {
		child, parent := f.find(k), f.find(end)
		if child == parent {
			continue
		}
		f.nodes[child].next = parent
		if f.nodes[child].fused == complexOut {
			f.nodes[parent].fused = complexOut
		}
	}
}

// attachViews puts kernels of reshapes only with what they read, if nothing else reads it, else with what reads them.
func (f *opsFuser) attachViews(order []model.OpID, view func(*model.Op) bool) {
	only := map[int]bool{}
	for _, id := range order {
		r := f.find(f.node[id])
		view := view(f.g.Op(id))
		if was, ok := only[r]; ok {
			view = view && was
		}
		only[r] = view
	}
	for _, id := range order {
		i := f.node[id]
		if !only[f.find(i)] {
			continue
		}
		in := f.g.Tensor(f.g.Op(id).Inputs[0])
		if in.Producer != model.NoOp && len(in.Consumers) == 1 && !f.g.IsOutput(in.ID) &&
			len(f.g.Op(in.Producer).Outputs) == 1 {
			r := f.find(i)
			f.nodes[f.find(f.node[in.Producer])].next = r
			only[r] = only[r] && view(f.g.Op(in.Producer))
		}
	}
}
