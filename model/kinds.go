package model

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// Kind names an operator kind; the register functions of this package list them all.
type Kind string

// Class groups kinds by how a layer may absorb them.
type Class uint8

// The classes. A layer is one heavy operator (matrix or reduction), or none,
// followed by light ones (element-wise, injective).
const (
	MatrixClass      Class = iota // convolution, matrix product
	ReductionClass                // pooling, softmax, normalisation over an axis
	ElementwiseClass              // one output element from the same element of each input (with broadcast)
	InjectiveClass                // moves elements: transpose, concat, slice, gather
	ViewClass                     // moves nothing: reshape
)

func (c Class) String() string {
	return [...]string{"matrix", "reduction", "element-wise", "injective", "view"}[c]
}

// KindInfo holds the facts of an operator kind that scheduling needs.
type KindInfo struct {
	Kind       Kind
	Class      Class
	Doc        string
	minIn      int
	maxIn      int // -1: any number
	infer      func(op *Op, in []*Tensor) ([]Shape, error)
	dtype      func(op *Op, in []*Tensor) DType // nil: that of the first input
	second     DType                            // of the second output, unless zero
	access     func(op *Op, in []*Tensor, out Shape, outIdx, inIdx int) []Access
	sequential func(op *Op, out Shape) []int64
	// work per output element
	macs   func(op *Op, in []*Tensor, out Shape) int64
	vector func(op *Op, in []*Tensor, out Shape) VectorWork
	// work of a box, where elements differ in it; nil: as per element
	work func(op *Op, in []*Tensor, r Region) Work
}

// VectorWork counts vector operations by class.
type VectorWork struct {
	Simple  int64 // add, multiply, compare, select
	Special int64 // exp, erf, tanh, division, square root
	Move    int64 // copy an element to another place
}

func (w VectorWork) times(n int64) VectorWork {
	return VectorWork{w.Simple * n, w.Special * n, w.Move * n}
}

// Add returns the sum.
func (w VectorWork) Add(o VectorWork) VectorWork {
	return VectorWork{w.Simple + o.Simple, w.Special + o.Special, w.Move + o.Move}
}

// Total is the number of operations of all classes.
func (w VectorWork) Total() int64 { return w.Simple + w.Special + w.Move }

// Work is the arithmetic of (a box of) an operator.
type Work struct {
	MACs   int64
	Vector VectorWork
}

// Work returns the arithmetic needed for the box r of output 0; nil means all
// outputs. MACs run on a matrix unit, the rest on vector units.
func (g *Graph) Work(op *Op, r Region) Work {
	info, in := kinds[op.Kind], g.inputs(op)
	out := g.Tensors[op.Outputs[0]].Shape
	if info.work != nil && (r == nil || len(r) == len(out)) {
		if r == nil {
			r = Whole(out)
		}
		return info.work(op, in, r)
	}
	n := int64(0)
	if r != nil {
		n = r.Elements()
	} else {
		for _, o := range op.Outputs {
			n += g.Tensors[o].Shape.Elements()
		}
	}
	var w Work
	if info.macs != nil {
		w.MACs = info.macs(op, in, out) * n
	}
	if info.vector != nil {
		w.Vector = info.vector(op, in, out).times(n)
	}
	return w
}

// MatrixDims is a matrix product as a matrix unit sees it: Reps independent
// products of [M x K] with the stationary [K x N]. Line is how many of a
// convolution's M are side by side in a line of its output; 0: all. Of a transposed convolution, each of whose outputs
// needs the part of the reduction that is its phase's, these are elements At to At + K; nil: all rows need all of K.
type MatrixDims struct {
	Reps, M, N, K, Line, At int64
	Phases                  *Phases
}

// MatrixDims returns the products that the box r of op's output takes, or false if the operator does not run on a
// matrix unit. A convolution is its im2col product: M = images x rows x columns, N = output channels (of one group), K
// = input channels of a group x kernel. Of a transposed one, see [Phase].
func (g *Graph) MatrixDims(op *Op, r Region) (MatrixDims, bool) {
	if !g.OnMatrixUnit(op) || r.Elements() == 0 {
		return MatrixDims{}, false
	}
	w := g.Tensors[op.Inputs[1]].Shape
	switch op.Kind {
	case "ConvTranspose":
		d, _ := g.Transposed(op, apart(r))
		return d, true
	case "Conv":
		m := r[0].Len()
		for _, iv := range r[2:] {
			m *= iv.Len()
		}
		k := int64(1)
		for _, d := range w[1:] {
			k *= d
		}
		perGroup := max(1, g.Tensors[op.Outputs[0]].Shape[1]/op.Attr.Group)
		reps := (r[1].Hi-1)/perGroup - r[1].Lo/perGroup + 1 // groups that the box meets
		return MatrixDims{Reps: reps, M: m, N: ceilDiv(r[1].Len(), reps), K: k, Line: r[len(r)-1].Len()}, true
	case "Attention": // both products as one, of the keys that a row sees on average
		d := g.AttentionDims(op, r)
		return MatrixDims{Reps: d.Products, M: d.Rows, N: max(1, d.Seen/(d.Products*d.Rows)), K: d.Depth + d.Width}, true
	default: // MatMul, Gemm
		// A vector on either side has no row, or no column, in the output.
		m, n := int64(1), int64(1)
		if len(w) > 1 {
			n, r = r[len(r)-1].Len(), r[:len(r)-1]
		}
		if len(g.Tensors[op.Inputs[0]].Shape) > 1 {
			m, r = r[len(r)-1].Len(), r[:len(r)-1]
		}
		reps := r.Elements()
		// The same weights for every batch element: one tall product.
		if w[:max(0, len(w)-2)].Elements() == 1 {
			m, reps = m*reps, 1
		}
		return MatrixDims{Reps: reps, M: m, N: n, K: g.reduction(op)}, true
	}
}

func (g *Graph) reduction(op *Op) int64 {
	return kinds[op.Kind].macs(op, g.inputs(op), g.Tensors[op.Outputs[0]].Shape)
}

// OnMatrixUnit reports whether the operator's MACs run on a matrix unit. A depthwise convolution has nothing to share
// between outputs and runs on a vector unit, one simple operation per MAC.
func (g *Graph) OnMatrixUnit(op *Op) bool {
	if kinds[op.Kind].macs == nil {
		return false
	}
	switch w := g.Tensors[op.Inputs[1]].Shape; op.Kind {
	case "Conv":
		return w[1] > 1 || op.Attr.Group == 1
	case "ConvTranspose":
		return w[0] > op.Attr.Group || op.Attr.Group == 1
	}
	return true
}

// DimName is the short name of a dimension: n, c, h, w for images, which their layout shows, else i0, i1, ...
func (t *Tensor) DimName(dim int) string {
	if len(t.Layout) == 4 && t.Layout[1] == 2 && t.Layout[2] == 3 && t.Layout[3] == 1 {
		return []string{"n", "c", "h", "w"}[dim]
	}
	return fmt.Sprintf("i%d", dim)
}

// Info returns the facts of a kind.
func Info(k Kind) (*KindInfo, bool) {
	i, ok := kinds[k]
	return i, ok
}

// Kinds lists all kinds, sorted.
func Kinds() []Kind {
	return slices.Sorted(maps.Keys(kinds))
}

// Class returns the class of the operator's kind.
func (op *Op) Class() Class { return kinds[op.Kind].Class }

func (k *KindInfo) apply(op *Op, in []*Tensor) ([]Shape, []DType, error) {
	shapes, dts, err := k.results(op, in, 1)
	if err == nil {
		err = k.checkWork(op, in, shapes)
	}
	return shapes, dts, err
}

// Infer gives the shapes and types of an operator's results for operands of the shapes and types of in. Extents may be
// 0, as those of a graph's tensors may not.
func Infer(op *Op, in []*Tensor) ([]Shape, []DType, error) { return kinds[op.Kind].results(op, in, 0) }

// results infers shapes, of extents of least and more, and types.
func (k *KindInfo) results(op *Op, in []*Tensor, least int64) ([]Shape, []DType, error) {
	if len(in) < k.minIn || (k.maxIn >= 0 && len(in) > k.maxIn) {
		want := fmt.Sprintf("%d", k.minIn)
		if k.maxIn < 0 {
			want = fmt.Sprintf("at least %d", k.minIn)
		} else if k.maxIn > k.minIn {
			want = fmt.Sprintf("%d to %d", k.minIn, k.maxIn)
		}
		return nil, nil, fmt.Errorf("has %d inputs, expected %s", len(in), want)
	}
	shapes, err := k.infer(op, in)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range shapes {
		if err := s.check(least); err != nil {
			return nil, nil, fmt.Errorf("output: %w", err)
		}
	}
	dts := make([]DType, len(shapes))
	for i := range dts {
		if k.dtype != nil {
			dts[i] = k.dtype(op, in)
		} else if len(in) > 0 {
			dts[i] = in[0].DType
		}
		if i == 1 && k.second != 0 {
			dts[i] = k.second
		}
	}
	return shapes, dts, nil
}

// maxWork bounds the operations of one operator, so that sums over a graph, and
// those turned into cycles, stay within int64.
const maxWork = int64(1) << 54

func (k *KindInfo) checkWork(op *Op, in []*Tensor, out []Shape) error {
	each := int64(0)
	if k.macs != nil {
		each += k.macs(op, in, out[0])
	}
	if k.vector != nil {
		each += k.vector(op, in, out[0]).Total()
	}
	n := int64(0)
	for _, s := range out {
		n += s.Elements()
	}
	if hi, lo := bits.Mul64(uint64(n), uint64(each)); hi != 0 || lo > uint64(maxWork) {
		return fmt.Errorf("%d elements of %d operations each, expected at most 2^54 operations", n, each)
	}
	return nil
}

var kinds = map[Kind]*KindInfo{}

func register(k *KindInfo) {
	if _, dup := kinds[k.Kind]; dup {
		panic("model: kind registered twice: " + string(k.Kind))
	}
	kinds[k.Kind] = k
}

func simple(n int64) func(*Op, []*Tensor, Shape) VectorWork {
	return func(*Op, []*Tensor, Shape) VectorWork { return VectorWork{Simple: n} }
}

func vec(s, sp, mv int64) func(*Op, []*Tensor, Shape) VectorWork {
	return func(*Op, []*Tensor, Shape) VectorWork { return VectorWork{s, sp, mv} }
}

// imageKind lists the kinds whose outputs are images, laid out N, H, W, C.
var imageKind = map[Kind]bool{
	"Conv": true, "ConvTranspose": true, "MaxPool": true, "AveragePool": true,
	"GlobalAveragePool": true, "GlobalMaxPool": true, "BatchNorm": true, "LRN": true, "Resize": true, "GroupNorm": true,
}

func (g *Graph) setLayouts() {
	for _, t := range g.Tensors {
		t.Layout = make([]int, len(t.Shape))
		for i := range t.Layout {
			t.Layout[i] = i
		}
	}
	channelsLast := func(t *Tensor) {
		l := t.Layout[:0]
		l = append(l, 0)
		for d := 2; d < len(t.Shape); d++ {
			l = append(l, d)
		}
		t.Layout = append(l, 1)
	}
	// A network input takes the layout that its image readers use, before its other readers follow it.
	for _, id := range g.Inputs {
		t := g.Tensors[id]
		for _, c := range t.Consumers {
			if imageKind[g.Ops[c].Kind] && len(t.Shape) >= 3 {
				channelsLast(t)
				break
			}
		}
	}
	from, to := g.sources(), g.destinations()
	// An operator that only moves elements leaves them in the order of a product, on the way to an attention.
	keeps := func(op *Op) bool {
		return moves(op) && len(op.Inputs) > 0 && to[op.Outputs[0]] == "Attention" &&
			(from[op.Inputs[0]] == "MatMul" || from[op.Inputs[0]] == "Gemm")
	}
	for _, op := range g.Ops {
		info, ok := kinds[op.Kind]
		if !ok {
			continue // Validate reports it
		}
		for _, o := range op.Outputs {
			t := g.Tensors[o]
			switch {
			case keeps(op):
				if kept := g.keptOrder(op); kept != nil {
					t.Layout = kept
				}
			case imageKind[op.Kind] && len(t.Shape) >= 3:
				channelsLast(t)
			case info.Class == ElementwiseClass || op.Kind == "Concat" || op.Kind == "Split" ||
				op.Kind == "Slice" || op.Kind == "Pad":
				// Follow the first activation of the same rank.
				for _, in := range op.Inputs {
					u := g.Tensors[in]
					if u.Role != Constant && len(u.Shape) == len(t.Shape) {
						copy(t.Layout, u.Layout)
						break
					}
				}
			}
		}
	}
}

// moves reports whether an operator has the elements of its operand, in another order or shape.
func moves(op *Op) bool {
	info := kinds[op.Kind]
	return op.Kind == "Transpose" || info != nil && info.Class == ViewClass
}

// carries reports whether an operator with one reader can be in the layer of a product in front of it.
func carries(op *Op) bool {
	info := kinds[op.Kind]
	return len(op.Inputs) > 0 && len(op.Outputs) > 0 && (moves(op) || info != nil && info.Class == ElementwiseClass)
}

// sources has the kind of the operator that each tensor comes from, with light operators between the two; "" where a
// tensor on the way has other readers.
func (g *Graph) sources() []Kind {
	list := make([]Kind, len(g.Tensors))
	for _, op := range g.Ops {
		for _, o := range op.Outputs {
			if len(g.Tensors[o].Consumers) != 1 {
				continue
			}
			if list[o] = op.Kind; carries(op) {
				list[o] = list[op.Inputs[0]]
			}
		}
	}
	return list
}

// destinations has the kind of the only operator that each tensor goes to, with light operators between the two; ""
// where a tensor on the way has several readers or leaves the network.
func (g *Graph) destinations() []Kind {
	list, leaves := make([]Kind, len(g.Tensors)), map[TensorID]bool{}
	for _, t := range g.Outputs {
		leaves[t] = true
	}
	for _, op := range slices.Backward(g.Ops) {
		for _, t := range op.Inputs {
			if len(g.Tensors[t].Consumers) != 1 || leaves[t] {
				continue
			}
			if list[t] = op.Kind; carries(op) {
				list[t] = list[op.Outputs[0]]
			}
		}
	}
	return list
}

// KeepsOrder reports whether an operator only moves elements, and leaves them in the order that they have in memory.
func (g *Graph) KeepsOrder(op *Op) bool {
	if !moves(op) {
		return false
	}
	t, kept := g.Tensors[op.Outputs[0]], g.keptOrder(op)
	return kept != nil && slices.Equal(t.Shape.long(t.Layout), t.Shape.long(kept))
}

// long drops dimensions of extent 1, whose place in a memory layout changes nothing.
func (s Shape) long(dims []int) []int {
	return slices.DeleteFunc(slices.Clone(dims), func(d int) bool { return s[d] == 1 })
}

// keptOrder is the layout of a result with which an operator that only moves elements leaves them in their order; nil:
// a reshape merges dimensions that do not follow each other in memory.
func (g *Graph) keptOrder(op *Op) []int {
	from, to := g.Tensors[op.Inputs[0]], g.Tensors[op.Outputs[0]].Shape
	layout := make([]int, 0, len(to))
	if op.Kind == "Transpose" {
		for _, d := range from.Layout {
			i := slices.Index(op.Attr.Perm, int64(d))
			if i < 0 {
				return nil // Validate reports it
			}
			layout = append(layout, i)
		}
		return layout
	}
	// Runs of dimensions of the operand are as long as runs of the result's.
	type run struct{ lo, hi, first, end int }
	at, next := make([]run, 0, len(from.Shape)), 0
	for lo := 0; lo < len(from.Shape); {
		r := run{lo, lo + 1, next, next}
		for n, m := from.Shape[lo], int64(1); n != m; {
			switch {
			case m < n && r.end < len(to):
				m *= to[r.end]
				r.end++
			case n < m && r.hi < len(from.Shape):
				n *= from.Shape[r.hi]
				r.hi++
			default:
				return nil
			}
		}
		for range r.hi - lo {
			at = append(at, r)
		}
		lo, next = r.hi, r.end
	}
	for order := from.Shape.long(from.Layout); len(order) > 0; {
		r := at[order[0]]
		for d := r.lo; d < r.hi; d++ {
			if from.Shape[d] == 1 {
				continue
			}
			if len(order) == 0 || order[0] != d {
				return nil
			}
			order = order[1:]
		}
		for d := r.first; d < r.end; d++ {
			layout = append(layout, d)
		}
	}
	for ; next < len(to); next++ { // of extent 1
		layout = append(layout, next)
	}
	return layout
}

func init() {
	registerMatrix()
	registerAttention()
	registerElementwise()
	registerReductions()
	registerMoves()
}
