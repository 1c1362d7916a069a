package model

import (
	"errors"
	"fmt"
	"math/bits"
	"sort"
)

// Kind names an operator kind; the table in this file lists them all.
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

// KindInfo is what scheduling needs to know of an operator kind.
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
	info := kinds[op.Kind]
	in := make([]*Tensor, len(op.Inputs))
	for i, id := range op.Inputs {
		in[i] = g.Tensors[id]
	}
	out := g.Tensors[op.Outputs[0]].Shape
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
// products of [M x K] with the stationary [K x N].
type MatrixDims struct{ Reps, M, N, K int64 }

// MatrixDims returns the products that the box r of op's output takes, or false
// if the operator does not run on a matrix unit. A convolution is its
// im2col product: M = images x rows x columns, N = output channels (of one
// group), K = input channels of a group x kernel.
func (g *Graph) MatrixDims(op *Op, r Region) (MatrixDims, bool) {
	if !g.OnMatrixUnit(op) || r.Elements() == 0 {
		return MatrixDims{}, false
	}
	w := g.Tensors[op.Inputs[1]].Shape
	switch op.Kind {
	case "Conv", "ConvTranspose":
		m := r[0].Len()
		for _, iv := range r[2:] {
			m *= iv.Len()
		}
		k := int64(1)
		for _, d := range w[1:] {
			k *= d
		}
		if op.Kind == "ConvTranspose" {
			k = g.reduction(op)
		}
		perGroup := max(1, g.Tensors[op.Outputs[0]].Shape[1]/op.Attr.Group)
		reps := (r[1].Hi-1)/perGroup - r[1].Lo/perGroup + 1 // groups that the box meets
		return MatrixDims{reps, m, (r[1].Len() + reps - 1) / reps, k}, true
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
		return MatrixDims{reps, m, n, g.reduction(op)}, true
	}
}

func (g *Graph) reduction(op *Op) int64 {
	in := make([]*Tensor, len(op.Inputs))
	for i, id := range op.Inputs {
		in[i] = g.Tensors[id]
	}
	return kinds[op.Kind].macs(op, in, g.Tensors[op.Outputs[0]].Shape)
}

// OnMatrixUnit tells whether the operator's MACs run on a matrix unit. A
// depthwise convolution has nothing to share between outputs and runs on a
// vector unit, one simple operation per MAC.
func (g *Graph) OnMatrixUnit(op *Op) bool {
	if kinds[op.Kind].macs == nil {
		return false
	}
	if op.Kind == "Conv" {
		return g.Tensors[op.Inputs[1]].Shape[1] > 1 || op.Attr.Group == 1
	}
	return true
}

// Loop is a loop of an operator's nest.
type Loop struct {
	Name      string
	Extent    int64
	Reduction bool
}

// Loops lists the loop nest of an operator: the output's dimensions in layout
// order, then the reduction loops.
func (g *Graph) Loops(op *Op) []Loop {
	t := g.Tensors[op.Outputs[0]]
	var ls []Loop
	for _, d := range t.Layout {
		ls = append(ls, Loop{t.DimName(d), t.Shape[d], false})
	}
	switch op.Kind {
	case "Conv":
		w := g.Tensors[op.Inputs[1]].Shape
		for i, d := range w[1:] {
			ls = append(ls, Loop{[]string{"rc", "rh", "rw", "rd"}[min(i, 3)], d, true})
		}
	case "GlobalAveragePool", "GlobalMaxPool":
		for i, d := range g.Tensors[op.Inputs[0]].Shape[2:] {
			ls = append(ls, Loop{fmt.Sprintf("r%d", i), d, true})
		}
	case "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin":
		for _, a := range op.Attr.Axes {
			ls = append(ls, Loop{fmt.Sprintf("r%d", a), g.Tensors[op.Inputs[0]].Shape[a], true})
		}
	default:
		if kinds[op.Kind].macs != nil {
			ls = append(ls, Loop{"k", g.reduction(op), true})
		} else if f := kinds[op.Kind].sequential; f != nil {
			for _, a := range f(op, t.Shape) {
				ls = append(ls, Loop{"r" + t.DimName(int(a)), t.Shape[a], true})
			}
		} else if len(op.Attr.Kernel) > 0 {
			for i, k := range op.Attr.Kernel {
				ls = append(ls, Loop{fmt.Sprintf("r%d", i), k, true})
			}
		}
	}
	return ls
}

// DimName is the short name of a dimension: n, c, h, w for images, which are told by
// their layout, else i0, i1, ...
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
	ks := make([]Kind, 0, len(kinds))
	for k := range kinds {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool { return ks[i] < ks[j] })
	return ks
}

// Class returns the class of the operator's kind.
func (op *Op) Class() Class { return kinds[op.Kind].Class }

func (k *KindInfo) apply(op *Op, in []*Tensor) ([]Shape, []DType, error) {
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
		if err := s.Check(); err != nil {
			return nil, nil, fmt.Errorf("output: %w", err)
		}
	}
	if err := k.checkWork(op, in, shapes); err != nil {
		return nil, nil, err
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
	// A network input takes the layout that its image readers use, before its
	// other readers follow it.
	for _, id := range g.Inputs {
		t := g.Tensors[id]
		for _, c := range t.Consumers {
			if imageKind[g.Ops[c].Kind] && len(t.Shape) >= 3 {
				channelsLast(t)
				break
			}
		}
	}
	for _, op := range g.Ops {
		info, ok := kinds[op.Kind]
		if !ok {
			continue // Validate reports it
		}
		for _, o := range op.Outputs {
			t := g.Tensors[o]
			switch {
			case imageKind[op.Kind] && len(t.Shape) >= 3:
				channelsLast(t)
			case info.Class == ElementwiseClass || op.Kind == "Concat" || op.Kind == "Split" || op.Kind == "Slice" || op.Kind == "Pad":
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

func init() {
	// Convolutions. Inputs: X [N,C,spatial], W [Cout,Cin/group,kernel], bias [Cout].
	register(&KindInfo{Kind: "Conv", Class: MatrixClass, Doc: "convolution, with optional bias", minIn: 2, maxIn: 3,
		infer: inferConv,
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			x, w := in[0].Shape, in[1].Shape
			switch idx {
			case 0:
				acc := make([]Access, len(x))
				acc[0] = identity(0)
				acc[1] = channelsOfGroup(op.Attr.Group, w[1], out[1]/op.Attr.Group)
				for i := range w[2:] {
					acc[2+i] = window(2+i, op.Attr.Strides[i], w[2+i], op.Attr.Dilations[i], op.Attr.Pads[i])
				}
				return acc
			default:
				return paramAccess(in[idx].Shape, 1)
			}
		},
		macs: func(op *Op, in []*Tensor, _ Shape) int64 {
			n := int64(1)
			for _, d := range in[1].Shape[1:] {
				n *= d
			}
			return n
		},
		vector: biasWork,
	})
	register(&KindInfo{Kind: "ConvTranspose", Class: MatrixClass, Doc: "transposed convolution, with optional bias", minIn: 2, maxIn: 3,
		infer: inferConvTranspose,
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			x, w := in[0].Shape, in[1].Shape
			switch idx {
			case 0:
				acc := make([]Access, len(x))
				acc[0] = identity(0)
				acc[1] = channelsOfGroup(op.Attr.Group, w[0]/op.Attr.Group, w[1])
				for i := range w[2:] {
					// Output o reads inputs ceil((o+pad-reach)/stride) to (o+pad)/stride; A is
					// for the first output of a block of stride, B for the last.
					s, reach := op.Attr.Strides[i], (w[2+i]-1)*op.Attr.Dilations[i]
					acc[2+i] = Access{Out: 2 + i, Num: 1, Den: s,
						A: -floorDiv(reach-op.Attr.Pads[i], s), B: floorDiv(op.Attr.Pads[i]+s-1, s)}
				}
				return acc
			case 1: // W [Cin, Cout/group, kernel]
				acc := paramAccess(w, -1)
				if op.Attr.Group == 1 {
					acc[1] = identity(1)
				} else {
					acc[0] = blocks(1, w[0]/op.Attr.Group, w[1])
				}
				return acc
			default:
				return paramAccess(in[idx].Shape, 1)
			}
		},
		macs: func(op *Op, in []*Tensor, out Shape) int64 {
			// Every input element meets every kernel element once; spread over the outputs.
			w := in[1].Shape
			n := w[0] / op.Attr.Group
			for i, d := range w[2:] {
				n *= max(1, (d+op.Attr.Strides[i]-1)/op.Attr.Strides[i])
			}
			return n
		},
		vector: biasWork,
	})
	// Matrix products.
	register(&KindInfo{Kind: "MatMul", Class: MatrixClass, Doc: "batched matrix product with broadcast over leading dimensions", minIn: 2, maxIn: 2,
		infer: inferMatMul,
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			s := in[idx].Shape
			acc := make([]Access, len(s))
			if len(s) == 1 {
				acc[0] = full()
				return acc
			}
			// Leading dimensions align at the right with the output's leading ones.
			lead := len(out)
			if len(in[0].Shape) > 1 {
				lead--
			}
			if len(in[1].Shape) > 1 {
				lead--
			}
			shift := lead - (len(s) - 2)
			for k := range s[:len(s)-2] {
				if s[k] == 1 && out[k+shift] != 1 {
					acc[k] = full()
				} else {
					acc[k] = identity(k + shift)
				}
			}
			if idx == 0 {
				acc[len(s)-2] = identity(lead)
				acc[len(s)-1] = full()
			} else {
				acc[len(s)-2] = full()
				acc[len(s)-1] = identity(len(out) - 1)
			}
			return acc
		},
		macs: func(op *Op, in []*Tensor, _ Shape) int64 { s := in[0].Shape; return s[len(s)-1] },
	})
	register(&KindInfo{Kind: "Gemm", Class: MatrixClass, Doc: "two-dimensional matrix product with optional transposes and bias", minIn: 2, maxIn: 3,
		infer: inferGemm,
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			switch {
			case idx == 0 && op.Attr.TransA:
				return []Access{full(), identity(0)}
			case idx == 0:
				return []Access{identity(0), full()}
			case idx == 1 && op.Attr.TransB:
				return []Access{identity(1), full()}
			case idx == 1:
				return []Access{full(), identity(1)}
			default:
				return broadcastAccess(in[2].Shape, out)
			}
		},
		macs: func(op *Op, in []*Tensor, _ Shape) int64 {
			if op.Attr.TransA {
				return in[0].Shape[0]
			}
			return in[0].Shape[1]
		},
		vector: biasWork,
	})
	// Element-wise with one activation.
	for _, u := range []struct {
		kind        Kind
		s, sp, mv   int64
		description string
	}{
		{"Relu", 1, 0, 0, "max(x, 0)"}, {"Clip", 2, 0, 0, "limits (ReLU6)"}, {"LeakyRelu", 2, 0, 0, "leaky ReLU"},
		{"Neg", 1, 0, 0, "-x"}, {"Abs", 1, 0, 0, "|x|"}, {"Not", 1, 0, 0, "logical not"}, {"Floor", 1, 0, 0, "rounding"},
		{"Sigmoid", 1, 1, 0, "logistic function"}, {"Tanh", 0, 1, 0, "hyperbolic tangent"}, {"Erf", 0, 1, 0, "error function"},
		{"Exp", 0, 1, 0, "exponential"}, {"Log", 0, 1, 0, "logarithm"}, {"Sqrt", 0, 1, 0, "square root"},
		{"Reciprocal", 0, 1, 0, "1/x"}, {"Gelu", 3, 1, 0, "x/2 (1 + erf(x/sqrt 2))"}, {"Silu", 1, 1, 0, "x sigmoid(x)"},
		{"HardSigmoid", 3, 0, 0, "piecewise linear logistic"}, {"HardSwish", 4, 0, 0, "x hardsigmoid(x)"}, {"Elu", 2, 1, 0, "exponential linear unit"},
		{"Softplus", 1, 2, 0, "log(1+exp x)"}, {"Mish", 2, 3, 0, "x tanh(softplus(x))"}, {"Sin", 0, 1, 0, "sine"}, {"Cos", 0, 1, 0, "cosine"},
		{"Identity", 0, 0, 0, "x; removed by simplify"}, {"Dropout", 0, 0, 0, "x at inference; removed by simplify"},
	} {
		register(&KindInfo{Kind: u.kind, Class: ElementwiseClass, Doc: u.description, minIn: 1, maxIn: 1,
			infer:  func(_ *Op, in []*Tensor) ([]Shape, error) { return []Shape{in[0].Shape.Clone()}, nil },
			access: elementwiseAccess, vector: vec(u.s, u.sp, u.mv)})
	}
	// Element-wise with broadcast.
	for _, b := range []struct {
		kind  Kind
		s, sp int64
		maxIn int
		doc   string
	}{
		{"Add", 1, 0, -1, "sum"}, {"Sub", 1, 0, 2, "difference"}, {"Mul", 1, 0, -1, "product"}, {"Div", 0, 1, 2, "quotient"},
		{"Pow", 0, 1, 2, "power"}, {"Mod", 0, 1, 2, "remainder"}, {"Max", 1, 0, -1, "maximum"}, {"Min", 1, 0, -1, "minimum"}, {"PRelu", 2, 0, 2, "parametric ReLU"},
	} {
		register(&KindInfo{Kind: b.kind, Class: ElementwiseClass, Doc: b.doc, minIn: 2, maxIn: b.maxIn, infer: inferBroadcast,
			access: elementwiseAccess,
			dtype:  firstActivationType,
			vector: func(op *Op, in []*Tensor, _ Shape) VectorWork {
				n := int64(len(in) - 1)
				return VectorWork{Simple: b.s * n, Special: b.sp * n}
			}})
	}
	register(&KindInfo{Kind: "BatchNorm", Class: ElementwiseClass, Doc: "inference batch normalisation: scale and shift per channel; inputs X, scale, bias, mean, variance", minIn: 5, maxIn: 5,
		infer: func(_ *Op, in []*Tensor) ([]Shape, error) {
			x := in[0].Shape
			if len(x) < 2 {
				return nil, fmt.Errorf("input has shape %v, expected at least two dimensions", x)
			}
			for i, p := range in[1:] {
				if !p.Shape.Equal(Shape{x[1]}) {
					return nil, fmt.Errorf("input %d has shape %v, expected [%d] for the channels of %v", i+1, p.Shape, x[1], x)
				}
			}
			return []Shape{x.Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			if idx == 0 {
				return elementwiseAccess(op, in, out, 0, 0)
			}
			return paramAccess(in[idx].Shape, 1)
		},
		vector: simple(2)})
	// Normalisation over trailing or given axes.
	register(&KindInfo{Kind: "LayerNorm", Class: ReductionClass, Doc: "normalisation over the axes from Axis on; inputs X, scale, optional bias", minIn: 1, maxIn: 3,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			x := in[0].Shape
			if err := checkAxis(op.Attr.Axis, x); err != nil {
				return nil, err
			}
			for _, p := range in[1:] {
				if s, err := broadcast(x, p.Shape); err != nil || !s.Equal(x) {
					return nil, fmt.Errorf("scale or bias %v does not broadcast to %v", p.Shape, x)
				}
			}
			return []Shape{x.Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			if idx > 0 {
				return broadcastAccess(in[idx].Shape, out)
			}
			acc := elementwiseAccess(op, in, out, 0, 0)
			for d := op.Attr.Axis; d < int64(len(out)); d++ {
				acc[d] = full()
			}
			return acc
		},
		sequential: func(op *Op, out Shape) []int64 { return axesFrom(op.Attr.Axis, len(out)) },
		// sum, sum of squares (2), subtract, scale, scale and shift (2); the root is per row.
		vector: simple(7)})
	register(&KindInfo{Kind: "Softmax", Class: ReductionClass, Doc: "exp and normalise along Axis, or over all of Axes together", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			x := in[0].Shape
			if err := checkAxes(op.Attr.Axes, len(x)); err != nil {
				return nil, err
			}
			if err := checkAxis(op.Attr.Axis, x); err != nil {
				return nil, err
			}
			return []Shape{x.Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
			acc := elementwiseAccess(op, in, out, 0, 0)
			for _, d := range softmaxAxes(op) {
				acc[d] = full()
			}
			return acc
		},
		sequential: func(op *Op, out Shape) []int64 { return softmaxAxes(op) },
		// max, subtract, exp, sum, scale.
		vector: vec(4, 1, 0)})
	register(&KindInfo{Kind: "LRN", Class: ReductionClass, Doc: "local response normalisation over channels; Kernel[0] is the size", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			x := in[0].Shape
			if len(x) < 3 {
				return nil, fmt.Errorf("input has shape %v, expected at least three dimensions", x)
			}
			if k := op.Attr.Kernel; len(k) != 1 || k[0] < 1 || k[0] > maxWindow {
				return nil, fmt.Errorf("kernel %v, expected one size from 1 to 2^30", k)
			}
			return []Shape{x.Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
			acc := elementwiseAccess(op, in, out, 0, 0)
			size := op.Attr.Kernel[0]
			acc[1] = window(1, 1, size, 1, (size-1)/2)
			return acc
		},
		vector: func(op *Op, _ []*Tensor, _ Shape) VectorWork {
			return VectorWork{Simple: 2*op.Attr.Kernel[0] + 1, Special: 2}
		}})
	// Pooling.
	for _, k := range []Kind{"MaxPool", "AveragePool"} {
		register(&KindInfo{Kind: k, Class: ReductionClass, Doc: "window reduction", minIn: 1, maxIn: 1,
			infer: inferPool,
			access: func(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
				acc := []Access{identity(0), identity(1)}
				for i := range op.Attr.Kernel {
					acc = append(acc, window(2+i, op.Attr.Strides[i], op.Attr.Kernel[i], op.Attr.Dilations[i], op.Attr.Pads[i]))
				}
				return acc
			},
			vector: func(op *Op, _ []*Tensor, _ Shape) VectorWork {
				n := int64(1)
				for _, d := range op.Attr.Kernel {
					n *= d
				}
				return VectorWork{Simple: n}
			}})
	}
	for _, k := range []Kind{"GlobalAveragePool", "GlobalMaxPool"} {
		register(&KindInfo{Kind: k, Class: ReductionClass, Doc: "reduction over all spatial dimensions", minIn: 1, maxIn: 1,
			infer: func(_ *Op, in []*Tensor) ([]Shape, error) {
				s := in[0].Shape.Clone()
				if len(s) < 3 {
					return nil, fmt.Errorf("input has shape %v, expected at least three dimensions", s)
				}
				for i := range s[2:] {
					s[2+i] = 1
				}
				return []Shape{s}, nil
			},
			access: func(_ *Op, in []*Tensor, _ Shape, _, _ int) []Access {
				acc := make([]Access, len(in[0].Shape))
				for i := range acc {
					acc[i] = full()
				}
				acc[0], acc[1] = identity(0), identity(1)
				return acc
			},
			vector: func(_ *Op, in []*Tensor, _ Shape) VectorWork { return VectorWork{Simple: in[0].Shape[2:].Elements()} }})
	}
	for _, k := range []Kind{"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"} {
		register(&KindInfo{Kind: k, Class: ReductionClass, Doc: "reduction over Axes", minIn: 1, maxIn: 1,
			infer: func(op *Op, in []*Tensor) ([]Shape, error) {
				s := in[0].Shape
				if err := checkAxes(op.Attr.Axes, len(s)); err != nil {
					return nil, err
				}
				var out Shape
				for d, n := range s {
					if !contains(op.Attr.Axes, int64(d)) {
						out = append(out, n)
					} else if op.Attr.KeepDims {
						out = append(out, 1)
					}
				}
				return []Shape{out}, nil
			},
			access: func(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
				s := in[0].Shape
				acc := make([]Access, len(s))
				o := 0
				for d := range s {
					if contains(op.Attr.Axes, int64(d)) {
						acc[d] = full()
						if op.Attr.KeepDims {
							o++
						}
						continue
					}
					acc[d] = identity(o)
					o++
				}
				return acc
			},
			vector: func(op *Op, in []*Tensor, _ Shape) VectorWork {
				n := int64(1)
				for _, a := range op.Attr.Axes {
					n *= in[0].Shape[a]
				}
				return VectorWork{Simple: n}
			}})
	}
	// Movement.
	register(&KindInfo{Kind: "Reshape", Class: ViewClass, Doc: "another shape over the same elements (also Flatten, Squeeze, Unsqueeze)", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s := Shape(op.Attr.Shape).Clone()
			if err := s.Check(); err != nil {
				return nil, err
			}
			if s.Elements() != in[0].Shape.Elements() {
				return nil, fmt.Errorf("cannot reshape %v (%d elements) to %v (%d)", in[0].Shape, in[0].Shape.Elements(), s, s.Elements())
			}
			return []Shape{s}, nil
		},
		access: func(_ *Op, in []*Tensor, out Shape, _, _ int) []Access { return reshapeAccess(in[0].Shape, out) }})
	register(&KindInfo{Kind: "Transpose", Class: InjectiveClass, Doc: "output dimension i is input dimension Perm[i]", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s := in[0].Shape
			if len(op.Attr.Perm) != len(s) {
				return nil, fmt.Errorf("perm %v does not fit shape %v", op.Attr.Perm, s)
			}
			seen := make([]bool, len(s))
			out := make(Shape, len(s))
			for i, p := range op.Attr.Perm {
				if p < 0 || p >= int64(len(s)) || seen[p] {
					return nil, fmt.Errorf("perm %v is not a permutation of %d dimensions", op.Attr.Perm, len(s))
				}
				seen[p] = true
				out[i] = s[p]
			}
			return []Shape{out}, nil
		},
		access: func(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
			acc := make([]Access, len(in[0].Shape))
			for i, p := range op.Attr.Perm {
				acc[p] = identity(i)
			}
			return acc
		},
		vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Concat", Class: InjectiveClass, Doc: "inputs side by side along Axis", minIn: 1, maxIn: -1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s := in[0].Shape.Clone()
			if op.Attr.Axis < 0 || op.Attr.Axis >= int64(len(s)) {
				return nil, fmt.Errorf("axis %d does not exist in shape %v", op.Attr.Axis, s)
			}
			for _, t := range in[1:] {
				if len(t.Shape) != len(s) {
					return nil, fmt.Errorf("inputs have shapes %v and %v", in[0].Shape, t.Shape)
				}
				for d := range s {
					if int64(d) == op.Attr.Axis {
						s[d] += t.Shape[d]
					} else if t.Shape[d] != s[d] {
						return nil, fmt.Errorf("inputs have shapes %v and %v, which differ beside axis %d", in[0].Shape, t.Shape, op.Attr.Axis)
					}
				}
			}
			return []Shape{s}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			acc := broadcastAccess(out, out)
			off := int64(0)
			for _, t := range in[:idx] {
				off += t.Shape[op.Attr.Axis]
			}
			acc[op.Attr.Axis] = offset(int(op.Attr.Axis), -off)
			return acc
		},
		vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Split", Class: InjectiveClass, Doc: "consecutive parts along Axis, extents in Splits", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s := in[0].Shape
			if op.Attr.Axis < 0 || op.Attr.Axis >= int64(len(s)) || len(op.Attr.Splits) == 0 {
				return nil, fmt.Errorf("cannot split shape %v along axis %d into %v", s, op.Attr.Axis, op.Attr.Splits)
			}
			var outs []Shape
			sum := int64(0)
			for _, n := range op.Attr.Splits {
				o := s.Clone()
				o[op.Attr.Axis] = n
				sum += n
				outs = append(outs, o)
			}
			if sum != s[op.Attr.Axis] {
				return nil, fmt.Errorf("splits %v add up to %d, expected %d", op.Attr.Splits, sum, s[op.Attr.Axis])
			}
			return outs, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, outIdx, _ int) []Access {
			acc := broadcastAccess(out, out)
			off := int64(0)
			for _, n := range op.Attr.Splits[:outIdx] {
				off += n
			}
			acc[op.Attr.Axis] = offset(int(op.Attr.Axis), off)
			return acc
		},
		vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Slice", Class: InjectiveClass, Doc: "every Steps-th element from Starts, backwards if negative; the target extents in Shape", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s, a := in[0].Shape, op.Attr
			if len(a.Starts) != len(s) || len(a.Steps) != len(s) || len(a.Shape) != len(s) {
				return nil, fmt.Errorf("slice has %d starts, %d steps and %d extents for shape %v", len(a.Starts), len(a.Steps), len(a.Shape), s)
			}
			for d := range s {
				// Written so that nothing overflows.
				room, step := s[d]-1-a.Starts[d], a.Steps[d]
				if step < 0 {
					room, step = a.Starts[d], -step
				}
				if step <= 0 || a.Starts[d] < 0 || a.Starts[d] >= s[d] || a.Shape[d]-1 > room/step {
					return nil, fmt.Errorf("slice of dimension %d (start %d, step %d, extent %d) leaves shape %v", d, a.Starts[d], a.Steps[d], a.Shape[d], s)
				}
			}
			return []Shape{Shape(a.Shape).Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
			acc := make([]Access, len(in[0].Shape))
			for d := range acc {
				if acc[d] = window(d, op.Attr.Steps[d], 1, 1, -op.Attr.Starts[d]); op.Attr.Steps[d] < 0 {
					acc[d] = full() // an Access goes forwards
				}
			}
			return acc
		},
		vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Pad", Class: InjectiveClass, Doc: "constant border: Pads begins, then ends", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s := in[0].Shape.Clone()
			if len(op.Attr.Pads) != 2*len(s) {
				return nil, fmt.Errorf("%d pads for shape %v", len(op.Attr.Pads), s)
			}
			for d := range s {
				lo, hi := op.Attr.Pads[d], op.Attr.Pads[d+len(s)]
				if max(lo, -lo, hi, -hi) > MaxElements || min(lo, hi) < -MaxElements {
					return nil, fmt.Errorf("pads %d and %d of dimension %d are out of range", lo, hi, d)
				}
				s[d] += lo + hi
			}
			return []Shape{s}, nil
		},
		access: func(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
			acc := make([]Access, len(in[0].Shape))
			for d := range acc {
				acc[d] = offset(d, -op.Attr.Pads[d])
			}
			return acc
		},
		vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Gather", Class: InjectiveClass, Doc: "rows of the first input along Axis, chosen by the second (embedding)", minIn: 2, maxIn: 2,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			d, x := in[0].Shape, in[1].Shape
			if op.Attr.Axis < 0 || op.Attr.Axis >= int64(len(d)) {
				return nil, fmt.Errorf("axis %d does not exist in shape %v", op.Attr.Axis, d)
			}
			s := append(Shape{}, d[:op.Attr.Axis]...)
			s = append(s, x...)
			return []Shape{append(s, d[op.Attr.Axis+1:]...)}, nil
		},
		access: func(op *Op, in []*Tensor, _ Shape, _, idx int) []Access {
			d, x := in[0].Shape, in[1].Shape
			a := int(op.Attr.Axis)
			if idx == 1 {
				acc := make([]Access, len(x))
				for k := range acc {
					acc[k] = identity(a + k)
				}
				return acc
			}
			acc := make([]Access, len(d))
			for k := range acc {
				switch {
				case k < a:
					acc[k] = identity(k)
				case k == a:
					acc[k] = full()
				default:
					acc[k] = identity(k - 1 + len(x))
				}
			}
			return acc
		},
		vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Expand", Class: InjectiveClass, Doc: "broadcast to Shape", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s, err := broadcast(in[0].Shape, Shape(op.Attr.Shape))
			return []Shape{s}, err
		},
		access: elementwiseAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Resize", Class: InjectiveClass, Doc: "re-sampling to the extents in Shape; Kernel is how many neighbours per dimension an element is computed from (1: nearest)", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			x, a := in[0].Shape, op.Attr
			if len(a.Shape) != len(x) || len(a.Kernel) != len(x) {
				return nil, fmt.Errorf("%d extents and %d numbers of neighbours for shape %v", len(a.Shape), len(a.Kernel), x)
			}
			for d, k := range a.Kernel {
				if k < 1 || k > maxWindow || k > 1 && x[d] == a.Shape[d] {
					return nil, fmt.Errorf("%d neighbours in dimension %d, which goes from %d to %d", k, d, x[d], a.Shape[d])
				}
			}
			return []Shape{Shape(a.Shape).Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
			acc := make([]Access, len(out))
			for d, n := range in[0].Shape {
				// A block of den elements comes from one of num, and from neighbours on
				// either side: between elements, up to half a kernel away, and half an
				// element where the modes disagree on where an element's centre is.
				g := gcd(n, out[d])
				acc[d] = blocks(d, n/g, out[d]/g)
				if halo := op.Attr.Kernel[d]; n != out[d] && (halo > 1 || out[d]%n != 0) {
					acc[d].A -= halo/2 + 1
					acc[d].B += halo/2 + 1
				}
			}
			return acc
		},
		vector: func(op *Op, _ []*Tensor, _ Shape) VectorWork {
			n := int64(1)
			for _, k := range op.Attr.Kernel {
				n *= k
			}
			if n == 1 {
				return VectorWork{Move: 1}
			}
			return VectorWork{Simple: 2 * n, Move: 1} // a weight each
		}})
	register(&KindInfo{Kind: "Cast", Class: ElementwiseClass, Doc: "to the element type numbered in Axis", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			return []Shape{in[0].Shape.Clone()}, checkType(op)
		},
		dtype:  typeInAxis,
		access: elementwiseAccess, vector: simple(1)})
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func checkAxis(axis int64, s Shape) error {
	if axis < 0 || axis >= int64(len(s)) {
		return fmt.Errorf("axis %d does not exist in shape %v", axis, s)
	}
	return nil
}

// softmaxAxes: Axes if given (old opsets flatten the trailing dimensions), else
// Axis.
func softmaxAxes(op *Op) []int64 {
	if len(op.Attr.Axes) > 0 {
		return op.Attr.Axes
	}
	return []int64{op.Attr.Axis}
}

func axesFrom(axis int64, rank int) []int64 {
	var a []int64
	for d := axis; d < int64(rank); d++ {
		a = append(a, d)
	}
	return a
}

func contains(s []int64, v int64) bool {
	for _, x := range s {
		if x == v {
			return true
		}
	}
	return false
}

func checkAxes(axes []int64, rank int) error {
	for i, a := range axes {
		if a < 0 || a >= int64(rank) || (i > 0 && axes[i-1] >= a) {
			return fmt.Errorf("axes %v do not fit %d dimensions (normalised and ascending expected)", axes, rank)
		}
	}
	return nil
}

// paramAccess: dimension 0 follows output dimension out (none if negative), the
// rest is read whole.
func paramAccess(s Shape, out int) []Access {
	acc := make([]Access, len(s))
	for i := range acc {
		acc[i] = full()
	}
	if out >= 0 && len(acc) > 0 {
		acc[0] = identity(out)
	}
	return acc
}

func biasWork(_ *Op, in []*Tensor, _ Shape) VectorWork {
	if len(in) > 2 {
		return VectorWork{Simple: 1}
	}
	return VectorWork{}
}

// channelsOfGroup: an output channel reads the input channels of its group.
func channelsOfGroup(groups, in, out int64) Access {
	if groups == 1 {
		return full()
	}
	return blocks(1, in, out)
}

func elementwiseAccess(_ *Op, in []*Tensor, out Shape, _, idx int) []Access {
	return broadcastAccess(in[idx].Shape, out)
}

func firstActivationType(_ *Op, in []*Tensor) DType {
	for _, t := range in {
		if t.Role != Constant {
			return t.DType
		}
	}
	return in[0].DType
}

func broadcast(a, b Shape) (Shape, error) {
	n := max(len(a), len(b))
	out := make(Shape, n)
	for i := range out {
		da, db := int64(1), int64(1)
		if k := i - (n - len(a)); k >= 0 {
			da = a[k]
		}
		if k := i - (n - len(b)); k >= 0 {
			db = b[k]
		}
		switch {
		case da == db || db == 1:
			out[i] = da
		case da == 1:
			out[i] = db
		default:
			return nil, fmt.Errorf("shapes %v and %v do not broadcast", a, b)
		}
	}
	return out, nil
}

func inferBroadcast(_ *Op, in []*Tensor) ([]Shape, error) {
	s := in[0].Shape.Clone()
	for _, t := range in[1:] {
		var err error
		if s, err = broadcast(s, t.Shape); err != nil {
			return nil, err
		}
	}
	return []Shape{s}, nil
}

// maxWindow bounds kernels, strides, dilations and pads: beyond any real network,
// and far from overflow.
const maxWindow = int64(1) << 30

func checkKernel(kernel Shape) error {
	if err := kernel.Check(); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	for _, k := range kernel {
		if k > maxWindow {
			return fmt.Errorf("kernel %v has an extent above 2^30", kernel)
		}
	}
	return nil
}

var errSpatial = errors.New("strides, dilations and pads do not fit the spatial dimensions")

func checkSpatial(a Attr, n int) error {
	if len(a.Strides) != n || len(a.Dilations) != n || len(a.Pads) != 2*n {
		return errSpatial
	}
	for i := 0; i < n; i++ {
		if a.Strides[i] < 1 || a.Dilations[i] < 1 || a.Pads[i] < 0 || a.Pads[i+n] < 0 {
			return fmt.Errorf("stride %d, dilation %d, pads %d and %d of spatial dimension %d, expected positive strides and dilations and no negative pads", a.Strides[i], a.Dilations[i], a.Pads[i], a.Pads[i+n], i)
		}
		if max(a.Strides[i], a.Dilations[i], a.Pads[i], a.Pads[i+n]) > maxWindow {
			return fmt.Errorf("stride, dilation or pad of spatial dimension %d is above 2^30", i)
		}
	}
	return nil
}

func windowExtent(n, kernel, stride, dilation, pads int64, ceil bool) int64 {
	span := n + pads - ((kernel-1)*dilation + 1)
	if span < 0 {
		return 0
	}
	if ceil {
		return (span+stride-1)/stride + 1
	}
	return span/stride + 1
}

func inferConv(op *Op, in []*Tensor) ([]Shape, error) {
	x, w := in[0].Shape, in[1].Shape
	if len(x) < 3 || len(w) != len(x) {
		return nil, fmt.Errorf("input %v and weights %v, expected [N,C,spatial] and [Cout,Cin/group,kernel]", x, w)
	}
	a := op.Attr
	if a.Group < 1 || w[1] > x[1] || w[1]*a.Group != x[1] || w[0]%a.Group != 0 {
		return nil, fmt.Errorf("input %v and weights %v do not fit %d groups", x, w, a.Group)
	}
	n := len(x) - 2
	if err := checkSpatial(a, n); err != nil {
		return nil, err
	}
	if err := checkKernel(w[2:]); err != nil {
		return nil, err
	}
	if len(in) > 2 && !in[2].Shape.Equal(Shape{w[0]}) {
		return nil, fmt.Errorf("bias %v, expected [%d]", in[2].Shape, w[0])
	}
	s := Shape{x[0], w[0]}
	for i := 0; i < n; i++ {
		s = append(s, windowExtent(x[2+i], w[2+i], a.Strides[i], a.Dilations[i], a.Pads[i]+a.Pads[i+n], false))
	}
	return []Shape{s}, nil
}

func inferConvTranspose(op *Op, in []*Tensor) ([]Shape, error) {
	x, w := in[0].Shape, in[1].Shape
	if len(x) < 3 || len(w) != len(x) || w[0] != x[1] || op.Attr.Group < 1 || w[0]%op.Attr.Group != 0 {
		return nil, fmt.Errorf("input %v and weights %v, expected [N,Cin,spatial] and [Cin,Cout/group,kernel]", x, w)
	}
	n := len(x) - 2
	a := op.Attr
	if err := checkSpatial(a, n); err != nil {
		return nil, err
	}
	if err := checkKernel(w[2:]); err != nil {
		return nil, err
	}
	if len(in) > 2 && !in[2].Shape.Equal(Shape{w[1] * a.Group}) {
		return nil, fmt.Errorf("bias %v, expected [%d]", in[2].Shape, w[1]*a.Group)
	}
	if len(a.OutputPadding) != 0 && len(a.OutputPadding) != n {
		return nil, errSpatial
	}
	s := Shape{x[0], w[1] * a.Group}
	for i := 0; i < n; i++ {
		if x[2+i] > maxWindow {
			return nil, fmt.Errorf("spatial dimension %d of input %v is above 2^30", i, x)
		}
		if len(a.OutputPadding) == n && (a.OutputPadding[i] < 0 || a.OutputPadding[i] > maxWindow) {
			return nil, fmt.Errorf("output padding %d of spatial dimension %d is out of range", a.OutputPadding[i], i)
		}
		out := (x[2+i]-1)*a.Strides[i] + (w[2+i]-1)*a.Dilations[i] + 1 - a.Pads[i] - a.Pads[i+n]
		if len(a.OutputPadding) == n {
			out += a.OutputPadding[i]
		}
		s = append(s, out)
	}
	return []Shape{s}, nil
}

func inferPool(op *Op, in []*Tensor) ([]Shape, error) {
	x := in[0].Shape
	n := len(op.Attr.Kernel)
	if len(x) != n+2 {
		return nil, fmt.Errorf("input %v for a kernel of %d dimensions", x, n)
	}
	if err := checkSpatial(op.Attr, n); err != nil {
		return nil, err
	}
	if err := checkKernel(op.Attr.Kernel); err != nil {
		return nil, err
	}
	s := Shape{x[0], x[1]}
	for i, k := range op.Attr.Kernel {
		pads := op.Attr.Pads[i] + op.Attr.Pads[i+n]
		e := windowExtent(x[2+i], k, op.Attr.Strides[i], op.Attr.Dilations[i], pads, op.Attr.CeilMode)
		// The last window must start inside the input or its left padding.
		if op.Attr.CeilMode && e > 1 && (e-1)*op.Attr.Strides[i] >= x[2+i]+op.Attr.Pads[i] {
			e--
		}
		s = append(s, e)
	}
	return []Shape{s}, nil
}

func inferMatMul(_ *Op, in []*Tensor) ([]Shape, error) {
	a, b := in[0].Shape, in[1].Shape
	if len(a) == 0 || len(b) == 0 {
		return nil, fmt.Errorf("cannot multiply %v by %v", a, b)
	}
	ka := a[len(a)-1]
	kb := b[0]
	if len(b) > 1 {
		kb = b[len(b)-2]
	}
	if ka != kb {
		return nil, fmt.Errorf("cannot multiply %v by %v: inner extents %d and %d differ", a, b, ka, kb)
	}
	la, lb := a[:max(0, len(a)-2)], b[:max(0, len(b)-2)]
	s, err := broadcast(la, lb)
	if err != nil {
		return nil, err
	}
	if len(a) > 1 {
		s = append(s, a[len(a)-2])
	}
	if len(b) > 1 {
		s = append(s, b[len(b)-1])
	}
	return []Shape{s}, nil
}

func inferGemm(op *Op, in []*Tensor) ([]Shape, error) {
	a, b := in[0].Shape, in[1].Shape
	if len(a) != 2 || len(b) != 2 {
		return nil, fmt.Errorf("cannot multiply %v by %v: expected two dimensions each", a, b)
	}
	m, k := a[0], a[1]
	if op.Attr.TransA {
		m, k = k, m
	}
	kb, n := b[0], b[1]
	if op.Attr.TransB {
		kb, n = n, kb
	}
	if k != kb {
		return nil, fmt.Errorf("cannot multiply %v by %v (transposed: %t, %t): inner extents %d and %d differ", a, b, op.Attr.TransA, op.Attr.TransB, k, kb)
	}
	s := Shape{m, n}
	if len(in) > 2 {
		if t, err := broadcast(s, in[2].Shape); err != nil || !t.Equal(s) {
			return nil, fmt.Errorf("bias %v does not broadcast to %v", in[2].Shape, s)
		}
	}
	return []Shape{s}, nil
}
