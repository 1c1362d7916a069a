package model

import (
	"fmt"
	"math/bits"
)

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

// fullAlong is element-wise but for the given dimensions, which are read whole.
func fullAlong(s Shape, dims ...int64) []Access {
	acc := broadcastAccess(s, s)
	for _, d := range dims {
		acc[d] = full()
	}
	return acc
}

func whole(s Shape) []Access {
	acc := make([]Access, len(s))
	for i := range acc {
		acc[i] = full()
	}
	return acc
}

// The files of a package are initialised in the order of their names, so that the
// kinds of kinds.go are there already.
func init() {
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
	register(&KindInfo{Kind: "Where", Class: ElementwiseClass, Doc: "the second input where the first is true, else the third", minIn: 3, maxIn: 3,
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
			infer: func(op *Op, in []*Tensor) ([]Shape, error) {
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
					case s.Elements() == 1, len(s) == len(x) && len(s) > 1:
					case len(s) != 1 || len(op.Attr.Axes) == 0 || s[0] != x[op.Attr.Axes[0]]:
						return nil, fmt.Errorf("scale or zero point %v does not fit %v along axes %v", s, x, op.Attr.Axes)
					}
				}
				return []Shape{x.Clone()}, nil
			},
			access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
				s := in[idx].Shape
				switch {
				case idx == 0:
					return broadcastAccess(s, out)
				case len(s) == 1 && s[0] > 1:
					return []Access{identity(int(op.Attr.Axes[0]))}
				}
				return whole(s)
			},
			dtype: typeInAxis, vector: simple(k.simple)})
	}

	register(&KindInfo{Kind: "RMSNorm", Class: ReductionClass, Doc: "division by the root mean square over the axes from Axis on; inputs X, optional scale", minIn: 1, maxIn: 2,
		infer: kinds["LayerNorm"].infer, access: kinds["LayerNorm"].access, sequential: kinds["LayerNorm"].sequential,
		// square, sum, multiply by the inverse root, scale.
		vector: simple(4)})
	register(&KindInfo{Kind: "GroupNorm", Class: ReductionClass, Doc: "normalisation over the positions and the channels of a group; inputs X [N,C,spatial], optional scale and bias [C]", minIn: 1, maxIn: 3,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			x := in[0].Shape
			if len(x) < 3 {
				return nil, fmt.Errorf("input has shape %v, expected at least three dimensions", x)
			}
			if op.Attr.Group < 1 || x[1]%op.Attr.Group != 0 {
				return nil, fmt.Errorf("%d channels do not divide into %d groups", x[1], op.Attr.Group)
			}
			for _, p := range in[1:] {
				if !p.Shape.Equal(Shape{x[1]}) {
					return nil, fmt.Errorf("scale or bias %v, expected [%d]", p.Shape, x[1])
				}
			}
			return []Shape{x.Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			if idx > 0 {
				return []Access{identity(1)}
			}
			acc := whole(out)
			acc[0] = identity(0)
			n := out[1] / op.Attr.Group
			acc[1] = blocks(1, n, n)
			return acc
		},
		sequential: func(op *Op, out Shape) []int64 {
			dims := axesFrom(2, len(out))
			if op.Attr.Group != out[1] {
				dims = append([]int64{1}, dims...)
			}
			return dims
		},
		vector: simple(7)})

	register(&KindInfo{Kind: "ArgMax", Class: ReductionClass, Doc: "position of the largest element along Axes[0]", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			if len(op.Attr.Axes) != 1 {
				return nil, fmt.Errorf("positions along axes %v, expected one axis", op.Attr.Axes)
			}
			return kinds["ReduceMax"].infer(op, in)
		},
		access: kinds["ReduceMax"].access,
		dtype:  func(*Op, []*Tensor) DType { return I64 },
		vector: func(op *Op, in []*Tensor, _ Shape) VectorWork {
			return VectorWork{Simple: 2 * in[0].Shape[op.Attr.Axes[0]]}
		}})
	register(&KindInfo{Kind: "CumSum", Class: ReductionClass, Doc: "running sum along Axis", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			return []Shape{in[0].Shape.Clone()}, checkAxis(op.Attr.Axis, in[0].Shape)
		},
		access:     func(op *Op, in []*Tensor, out Shape, _, _ int) []Access { return fullAlong(out, op.Attr.Axis) },
		sequential: func(op *Op, _ Shape) []int64 { return []int64{op.Attr.Axis} },
		vector:     simple(1)})
	register(&KindInfo{Kind: "TopK", Class: ReductionClass, Doc: "the Splits[0] largest elements along Axis, and their positions", minIn: 1, maxIn: 1,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			s := in[0].Shape.Clone()
			if err := checkAxis(op.Attr.Axis, s); err != nil {
				return nil, err
			}
			if k := op.Attr.Splits; len(k) != 1 || k[0] < 1 || k[0] > s[op.Attr.Axis] {
				return nil, fmt.Errorf("the best %v of %d elements", k, s[op.Attr.Axis])
			}
			s[op.Attr.Axis] = op.Attr.Splits[0]
			return []Shape{s, s.Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, _ Shape, _, _ int) []Access { return fullAlong(in[0].Shape, op.Attr.Axis) },
		second: I64,
		sequential: func(op *Op, _ Shape) []int64 {
			return []int64{op.Attr.Axis}
		},
		// A heap of k elements sees all n; spread over the 2k results.
		vector: func(op *Op, in []*Tensor, _ Shape) VectorWork {
			n, k := in[0].Shape[op.Attr.Axis], op.Attr.Splits[0]
			return VectorWork{Simple: (n*int64(1+bits.Len64(uint64(k))) + 2*k - 1) / (2 * k)}
		}})

	register(&KindInfo{Kind: "GatherElements", Class: InjectiveClass, Doc: "element by element from the first input along Axis, at the positions in the second", minIn: 2, maxIn: 2,
		infer: func(op *Op, in []*Tensor) ([]Shape, error) {
			x, i := in[0].Shape, in[1].Shape
			if err := checkAxis(op.Attr.Axis, x); err != nil {
				return nil, err
			}
			if len(x) != len(i) {
				return nil, fmt.Errorf("data %v and positions %v, expected equally many dimensions", x, i)
			}
			for d := range x {
				if i[d] > x[d] && int64(d) != op.Attr.Axis {
					return nil, fmt.Errorf("positions %v go beyond data %v in dimension %d", i, x, d)
				}
			}
			return []Shape{i.Clone()}, nil
		},
		access: func(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
			acc := make([]Access, len(out))
			for d := range acc {
				acc[d] = identity(d)
			}
			if idx == 0 {
				acc[op.Attr.Axis] = full()
			}
			return acc
		},
		vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Scatter", Class: InjectiveClass, Doc: "the first input with elements replaced, at the positions in the second, by those of the third", minIn: 3, maxIn: 3,
		infer: func(_ *Op, in []*Tensor) ([]Shape, error) { return []Shape{in[0].Shape.Clone()}, nil },
		access: func(_ *Op, in []*Tensor, out Shape, _, idx int) []Access {
			if idx == 0 {
				return broadcastAccess(out, out)
			}
			return whole(in[idx].Shape) // the positions may be anywhere
		},
		vector: vec(0, 0, 1)})

	// Unknown stands for an operator that nobody described: one simple operation per
	// output element. It is a reduction so that no layer absorbs it.
	register(&KindInfo{Kind: "Unknown", Class: ReductionClass, Doc: "an operator without a description: shape in Shape, element type numbered in Axis", minIn: 0, maxIn: -1,
		infer: func(op *Op, _ []*Tensor) ([]Shape, error) {
			return []Shape{Shape(op.Attr.Shape).Clone()}, checkType(op)
		},
		access: func(_ *Op, in []*Tensor, out Shape, _, idx int) []Access {
			s := in[idx].Shape
			if b, err := broadcast(s, out); err != nil || !b.Equal(out) {
				return whole(s)
			}
			return broadcastAccess(s, out)
		},
		dtype: typeInAxis, vector: simple(1)})
}
