package model

import "fmt"

// registerElementwise lists kinds that compute each element from the same element of their inputs.
func registerElementwise() {
	// Element-wise with one activation.
	for _, u := range []struct {
		kind        Kind
		s, sp, mv   int64
		description string
	}{
		{"Relu", 1, 0, 0, "max(x, 0)"}, {"Clip", 2, 0, 0, "limits (ReLU6)"}, {"LeakyRelu", 2, 0, 0, "leaky ReLU"},
		{"Neg", 1, 0, 0, "-x"}, {"Abs", 1, 0, 0, "|x|"}, {"Not", 1, 0, 0, "logical not"}, {"Floor", 1, 0, 0, "rounding"},
		{"Sigmoid", 1, 1, 0, "logistic function"}, {"Tanh", 0, 1, 0, "hyperbolic tangent"},
		{"Erf", 0, 1, 0, "error function"},
		{"Exp", 0, 1, 0, "exponential"}, {"Log", 0, 1, 0, "logarithm"}, {"Sqrt", 0, 1, 0, "square root"},
		{"Reciprocal", 0, 1, 0, "1/x"}, {"Gelu", 3, 1, 0, "x/2 (1 + erf(x/sqrt 2))"}, {"Silu", 1, 1, 0, "x sigmoid(x)"},
		{"HardSigmoid", 3, 0, 0, "piecewise linear logistic"}, {"HardSwish", 4, 0, 0, "x hardsigmoid(x)"},
		{"Elu", 2, 1, 0, "exponential linear unit"},
		{"Softplus", 1, 2, 0, "log(1+exp x)"}, {"Mish", 2, 3, 0, "x tanh(softplus(x))"}, {"Sin", 0, 1, 0, "sine"},
		{"Cos", 0, 1, 0, "cosine"},
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
		{"Pow", 0, 1, 2, "power"}, {"Mod", 0, 1, 2, "remainder"}, {"Max", 1, 0, -1, "maximum"}, {"Min", 1, 0, -1, "minimum"},
		{"PRelu", 2, 0, 2, "parametric ReLU"},
	} {
		register(&KindInfo{Kind: b.kind, Class: ElementwiseClass, Doc: b.doc, minIn: 2, maxIn: b.maxIn, infer: inferBroadcast,
			access: elementwiseAccess,
			dtype:  firstActivationType,
			vector: func(op *Op, in []*Tensor, _ Shape) VectorWork {
				n := int64(len(in) - 1)
				return VectorWork{Simple: b.s * n, Special: b.sp * n}
			}})
	}
	register(&KindInfo{Kind: "BatchNorm", Class: ElementwiseClass,
		Doc:   "inference batch normalisation: scale and shift per channel; inputs X, scale, bias, mean, variance",
		minIn: 5, maxIn: 5, infer: inferBatchNorm, access: batchNormAccess, vector: simple(2)})
	register(&KindInfo{Kind: "Cast", Class: ElementwiseClass, Doc: "to the element type numbered in Axis",
		minIn: 1, maxIn: 1,
		infer: inferCast,
		dtype: typeInAxis, access: elementwiseAccess, vector: simple(1)})
	for _, b := range []struct {
		kind Kind
		doc  string
	}{
		{"Equal", "a = b"}, {"Greater", "a > b"}, {"GreaterOrEqual", "a >= b"}, {"Less", "a < b"}, {"LessOrEqual", "a <= b"},
		{"And", "both"}, {"Or", "either"}, {"Xor", "one of them"},
	} {
		register(&KindInfo{Kind: b.kind, Class: ElementwiseClass, Doc: b.doc + "; yields truth values", minIn: 2, maxIn: 2,
			infer: inferBroadcast, access: elementwiseAccess, dtype: boolType, vector: simple(1)})
	}
	register(&KindInfo{Kind: "Where", Class: ElementwiseClass,
		Doc: "the second input where the first is true, else the third", minIn: 3, maxIn: 3,
		infer: inferBroadcast, access: elementwiseAccess, vector: simple(1),
		dtype: func(op *Op, in []*Tensor) DType { return firstActivationType(op, in[1:]) }})

	// Number formats. Inputs X, scale, optional zero point; these are single numbers,
	// one per element of dimension Axes[0], or of the rank of X (blocks).
	for _, k := range []struct {
		kind   Kind
		simple int64
		doc    string
	}{
		// Multiply by the inverse, round, add, clamp at both ends.
		{"Quantize", 5, "x / scale + zero point, rounded, as the element type numbered in Axis"},
		{"Dequantize", 2, "(x - zero point) scale, as the element type numbered in Axis"},
	} {
		register(&KindInfo{Kind: k.kind, Class: ElementwiseClass, Doc: k.doc, minIn: 1, maxIn: 3,
			infer:  inferQuantize,
			access: quantizeAccess, dtype: typeInAxis, vector: simple(k.simple)})
	}
}

func inferBatchNorm(_ *Op, in []*Tensor) ([]Shape, error) {
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
}

func batchNormAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	if idx == 0 {
		return elementwiseAccess(op, in, out, 0, 0)
	}
	return paramAccess(in[idx].Shape, 1)
}

func inferCast(op *Op, in []*Tensor) ([]Shape, error) {
	return []Shape{in[0].Shape.Clone()}, checkType(op)
}

func inferQuantize(op *Op, in []*Tensor) ([]Shape, error) {
	x := in[0].Shape
	if err := checkType(op); err != nil {
		return nil, err
	}
	if len(op.Attr.Axes) > 1 {
		return nil, fmt.Errorf("axes %v, expected at most one", op.Attr.Axes)
	}
	if err := checkAxes(op.Attr.Axes, len(x)); err != nil {
		return nil, err
	}
	for _, p := range in[1:] {
		s := p.Shape
		switch {
		case s.Elements() == 1:
		case len(s) == len(x) && len(s) > 1:
			for d := range s {
				if s[d] > x[d] {
					return nil, fmt.Errorf("scale or zero point %v has more blocks than %v elements along axis %d", s, x, d)
				}
			}
		case len(s) != 1 || len(op.Attr.Axes) == 0 || s[0] != x[op.Attr.Axes[0]]:
			return nil, fmt.Errorf("scale or zero point %v does not fit %v along axes %v", s, x, op.Attr.Axes)
		}
	}
	return []Shape{x.Clone()}, nil
}

func quantizeAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	s := in[idx].Shape
	switch {
	case idx == 0:
		return broadcastAccess(s, out)
	case len(s) == 1 && s[0] > 1:
		return []Access{identity(int(op.Attr.Axes[0]))}
	case len(s) == len(out) && s.Elements() > 1:
		// A scale for each block; where the last block may be shorter, their size is not known.
		list := broadcastAccess(s, out)
		for d, n := range s {
			switch {
			case n == 1 || n == out[d]:
			case out[d]%n == 0 && out[d]/n&(out[d]/n-1) == 0: // blocks are powers of two long
				list[d] = blocks(d, 1, out[d]/n)
			default:
				list[d] = full()
			}
		}
		return list
	}
	return whole(s)
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

// Broadcast is the common shape of element-wise operands.
func Broadcast(a, b Shape) (Shape, error) {
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
		if s, err = Broadcast(s, t.Shape); err != nil {
			return nil, err
		}
	}
	return []Shape{s}, nil
}

// Kinds that choose, order or renumber elements, that turn them into other
// number formats, and the normalisations of attention-era networks.

func boolType(*Op, []*Tensor) DType { return Bool }

// typeInAxis: the element type numbered in Attr.Axis.
func typeInAxis(op *Op, _ []*Tensor) DType { return DType(op.Attr.Axis) }

// typedByAxis lists the kinds of typeInAxis.
var typedByAxis = map[Kind]bool{"Cast": true, "Quantize": true, "Dequantize": true, "Unknown": true}

func checkType(op *Op) error {
	if op.Attr.Axis < 0 || op.Attr.Axis >= int64(len(dtypes)) {
		return fmt.Errorf("unknown element type %d", op.Attr.Axis)
	}
	return nil
}
