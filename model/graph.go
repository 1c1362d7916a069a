package model

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TensorID and OpID index Graph.Tensors and Graph.Ops.
type (
	TensorID int
	OpID     int
)

// NoOp is the producer of a tensor that no operator writes.
const NoOp OpID = -1

// Role says where a tensor comes from.
type Role uint8

// The roles: the result of an operator, an input of the network, or a constant
// (learned parameters and literals; payloads are not kept).
const (
	Activation Role = iota
	Input
	Constant
)

func (r Role) String() string { return [...]string{"activation", "input", "constant"}[r] }

// Tensor is a value of the graph.
type Tensor struct {
	ID    TensorID
	Name  string
	Shape Shape
	DType DType
	Role  Role
	// Learned marks a constant that training sets (weights, biases, scales), as
	// opposed to literals and precomputed tables. Parameter counts add these up.
	Learned bool
	// Causal marks a mask of constants that shows row i of queries the first i + 1 + columns - rows columns
	// and hides the others.
	Causal bool
	// Ints holds the value of a small integer constant when it is known (shape arithmetic); nil otherwise.
	Ints []int64
	// Layout is the loop order on the accelerator: Layout[0] is the outermost dimension. Set by Graph.Finish.
	Layout []int
	// Producer is the operator that writes the tensor, or NoOp.
	Producer OpID
	// Consumers lists the operators that read it, ascending, each once.
	Consumers []OpID
}

// Bytes is the size of the whole tensor.
func (t *Tensor) Bytes() int64 { return t.DType.Bytes(t.Shape.Elements()) }

// Depth is the position of dimension dim in the layout, 0 the outermost.
func (t *Tensor) Depth(dim int) int {
	for i, d := range t.Layout {
		if d == dim {
			return i
		}
	}
	panic(fmt.Sprintf("model: tensor %q has no dimension %d", t.Name, dim))
}

// Op is an operator: a node of the graph.
type Op struct {
	ID      OpID
	Name    string
	Kind    Kind
	Attr    *Attr // shared by operators that are equal in it: replaced, never written to
	Inputs  []TensorID
	Outputs []TensorID
}

// Attr holds the attributes of an operator; each kind reads the ones it knows. Files of schedules have it as JSON.
type Attr struct {
	Kernel        []int64 `json:"kernel,omitempty"` // per spatial dimension, as the next two
	Strides       []int64 `json:"strides,omitempty"`
	Dilations     []int64 `json:"dilations,omitempty"`
	Pads          []int64 `json:"pads,omitempty"` // begins, then ends
	Group         int64   `json:"group,omitempty"`
	CeilMode      bool    `json:"ceil_mode,omitempty"`
	Axis          int64   `json:"axis,omitempty"` // always normalised to [0, rank)
	Axes          []int64 `json:"axes,omitempty"` // normalised, ascending
	KeepDims      bool    `json:"keep_dims,omitempty"`
	Perm          []int64 `json:"perm,omitempty"`
	TransA        bool    `json:"trans_a,omitempty"`
	TransB        bool    `json:"trans_b,omitempty"`
	Shape         []int64 `json:"shape,omitempty"`  // Reshape, Expand, Slice, Resize: the target
	Splits        []int64 `json:"splits,omitempty"` // Split: extents along Axis; TopK: how many
	Starts        []int64 `json:"starts,omitempty"` // Slice: per dimension of the input, as the next
	Steps         []int64 `json:"steps,omitempty"`
	OutputPadding []int64 `json:"output_padding,omitempty"`
	// Variant is whatever else decides the values, but neither shape nor cost (limits, epsilon, rounding mode), in any
	// canonical spelling. Two operators compute the same only if it is equal.
	Variant string `json:"variant,omitempty"`
	// Attention: what is done to the scores, and whether a softmax follows; query i sees no keys
	// behind the first i + 1 + keys - queries.
	Scores  []ScoreOp `json:"scores,omitempty"`
	Softmax bool      `json:"softmax,omitempty"`
	Causal  bool      `json:"causal,omitempty"`
}

// AppendKey appends a string that attributes share only if they are equal.
func (a *Attr) AppendKey(k []byte) []byte {
	for _, s := range [...][]int64{a.Kernel, a.Strides, a.Dilations, a.Pads, a.Axes, a.Perm, a.Shape,
		a.Splits, a.Starts, a.Steps, a.OutputPadding, {a.Group, a.Axis}} {
		k = binary.AppendVarint(k, int64(len(s)))
		for _, v := range s {
			k = binary.AppendVarint(k, v)
		}
	}
	for _, b := range [...]bool{a.CeilMode, a.KeepDims, a.TransA, a.TransB, a.Softmax, a.Causal} {
		if b {
			k = append(k, 1)
		} else {
			k = append(k, 0)
		}
	}
	text := func(s string) { k = append(binary.AppendVarint(k, int64(len(s))), s...) }
	for _, s := range a.Scores {
		text(string(s.Kind))
		text(s.Variant)
		k = binary.AppendVarint(binary.AppendVarint(k, int64(s.At)), int64(s.Operands))
	}
	k = binary.AppendVarint(k, int64(len(a.Scores)))
	text(a.Variant)
	return k
}

// Graph is a network at one batch size. Build one with a Builder.
type Graph struct {
	Name    string
	Ops     []*Op // in topological order
	Tensors []*Tensor
	Inputs  []TensorID // activations that enter, not constants
	Outputs []TensorID
	// Together has the operators of each layer that an author of the graph wants; nil: none. Other layers are derived.
	Together [][]OpID

	// See Remember. accessOf has the number of each access, by operator, output and input, from
	// firstAccess of the operator on.
	accesses              [][]Access
	accessOf, firstAccess []int32
}

// Op returns the operator with this ID.
func (g *Graph) Op(id OpID) *Op { return g.Ops[id] }

// Tensor returns the tensor with this ID.
func (g *Graph) Tensor(id TensorID) *Tensor { return g.Tensors[id] }

// IsOutput reports whether the tensor leaves the network.
func (g *Graph) IsOutput(id TensorID) bool { return slices.Contains(g.Outputs, id) }

// Params counts the elements of learned constants that an operator reads.
func (g *Graph) Params() (n int64) {
	for _, t := range g.Tensors {
		if t.Role == Constant && t.Learned && len(t.Consumers) > 0 {
			n += t.Shape.Elements()
		}
	}
	return n
}

// MACs counts the multiply-accumulates of convolutions and matrix products.
func (g *Graph) MACs() (n int64) {
	for _, op := range g.Ops {
		n += g.Work(op, nil).MACs
	}
	return n
}

// CycleError names the operators of a cycle, in order.
type CycleError struct{ Ops []string }

func (e *CycleError) Error() string {
	return "cycle: " + strings.Join(e.Ops, " -> ") + " -> " + e.Ops[0]
}

// Finish sorts the operators topologically, renumbers them, links producers and consumers, and sets layouts. Operators
// keep their relative order where the dependencies allow it. A cycle is a *CycleError.
func (g *Graph) Finish() error {
	order, err := g.sorted()
	if err != nil {
		return err
	}
	g.Ops = order
	g.link()
	g.setLayouts()
	return nil
}

// sorted lists the operators behind those that they read from.
func (g *Graph) sorted() ([]*Op, error) {
	producer := slices.Repeat([]int{-1}, len(g.Tensors))
	for i, op := range g.Ops {
		for _, o := range op.Outputs {
			producer[o] = i
		}
	}
	needs := func(i int) (list []int) {
		for _, t := range g.Ops[i].Inputs {
			if p := producer[t]; p >= 0 {
				list = append(list, p)
			}
		}
		return list
	}
	places, err := Topological(len(g.Ops), needs, func(i int) string { return g.Ops[i].Name })
	order := make([]*Op, len(places))
	for k, i := range places {
		order[k] = g.Ops[i]
	}
	return order, err
}

// Topological lists the numbers up to n, each behind those that it needs: depth first, from each in turn. The error is
// a *CycleError of names.
func Topological(n int, needs func(i int) []int, name func(i int) string) ([]int, error) {
	const (
		white = iota
		grey  // on the stack
		black // listed
	)
	color, order := make([]uint8, n), make([]int, 0, n)
	type frame struct {
		at   int
		left []int
	}
	var stack []frame
	push := func(i int) {
		color[i] = grey
		stack = append(stack, frame{i, needs(i)})
	}
	for root := range n {
		if color[root] == white {
			push(root)
		}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if len(f.left) == 0 {
				color[f.at] = black
				order = append(order, f.at)
				stack = stack[:len(stack)-1]
				continue
			}
			p := f.left[0]
			f.left = f.left[1:]
			switch color[p] {
			case white:
				push(p)
			case grey:
				// The stack runs from consumer to producer; the error has the direction of data.
				var names []string
				for i := len(stack) - 1; ; i-- {
					names = append(names, name(stack[i].at))
					if stack[i].at == p {
						return nil, &CycleError{names}
					}
				}
			}
		}
	}
	return order, nil
}

func (g *Graph) link() {
	for _, t := range g.Tensors {
		t.Producer, t.Consumers = NoOp, nil
	}
	for i, op := range g.Ops {
		op.ID = OpID(i)
		if op.Attr == nil {
			op.Attr = &Attr{}
		}
		for _, o := range op.Outputs {
			g.Tensors[o].Producer = op.ID
		}
		for _, in := range op.Inputs {
			t := g.Tensors[in]
			if n := len(t.Consumers); n == 0 || t.Consumers[n-1] != op.ID {
				t.Consumers = append(t.Consumers, op.ID)
			}
		}
	}
}

func (g *Graph) infer(op *Op) ([]Shape, []DType, error) {
	info, ok := kinds[op.Kind]
	if !ok {
		return nil, nil, fmt.Errorf("unknown operator kind %q", op.Kind)
	}
	return info.apply(op, g.inputs(op))
}

// Retype gives every tensor of one element type another: a network as it would be after quantisation, say.
func (g *Graph) Retype(from, to DType) {
	for _, t := range g.Tensors {
		if t.DType == from {
			t.DType = to
		}
	}
	for _, op := range g.Ops {
		if typedByAxis[op.Kind] && op.Attr.Axis == int64(from) {
			attr := *op.Attr
			attr.Axis = int64(to)
			op.Attr = &attr
		}
	}
}

// Compact drops the operators for which keep is false and the tensors that then have neither reader nor writer (graph
// inputs and outputs stay), renumbers everything and finishes the graph.
func (g *Graph) Compact(keep func(*Op) bool) error {
	ops := g.Ops[:0:0]
	used := make([]bool, len(g.Tensors))
	for _, op := range g.Ops {
		if !keep(op) {
			continue
		}
		ops = append(ops, op)
		for _, t := range slices.Concat(op.Inputs, op.Outputs) {
			used[t] = true
		}
	}
	for _, t := range slices.Concat(g.Inputs, g.Outputs) {
		used[t] = true
	}
	renumber := make([]TensorID, len(g.Tensors))
	tensors := g.Tensors[:0:0]
	for i, t := range g.Tensors {
		if used[i] {
			t.ID, tensors = TensorID(len(tensors)), append(tensors, t)
			renumber[i] = t.ID
		}
	}
	// New slices: a caller may have let two operators share one.
	apply := func(ids []TensorID) []TensorID {
		out := make([]TensorID, len(ids))
		for i, id := range ids {
			out[i] = renumber[id]
		}
		return out
	}
	for _, op := range ops {
		op.Inputs, op.Outputs = apply(op.Inputs), apply(op.Outputs)
	}
	g.Inputs, g.Outputs = apply(g.Inputs), apply(g.Outputs)
	g.Ops, g.Tensors = ops, tensors
	return g.Finish()
}

// DropDead removes operators that no output depends on.
func (g *Graph) DropDead() error {
	alive := make([]bool, len(g.Ops))
	var stack []OpID
	want := func(t TensorID) {
		if p := g.Tensor(t).Producer; p != NoOp && !alive[p] {
			alive[p] = true
			stack = append(stack, p)
		}
	}
	for _, o := range g.Outputs {
		want(o)
	}
	for len(stack) > 0 {
		op := g.Op(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		for _, t := range op.Inputs {
			want(t)
		}
	}
	if !slices.Contains(alive, false) {
		return nil
	}
	return g.Compact(func(op *Op) bool { return alive[op.ID] })
}

// KindCounts counts the operators of each kind, sorted by kind.
func (g *Graph) KindCounts() (out []kindCount) {
	m := map[Kind]int{}
	for _, op := range g.Ops {
		m[op.Kind]++
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, kindCount{k, m[k]})
	}
	return out
}

// kindCount is a row of Graph.KindCounts.
type kindCount struct {
	Kind  Kind
	Count int
}
