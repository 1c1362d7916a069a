package model

import (
	"fmt"
	"math/bits"
	"slices"
)

// registerReductions lists kinds that run along dimensions.
func registerReductions() {
	// Normalisation over trailing or given axes.
	register(&KindInfo{Kind: "LayerNorm", Class: ReductionClass,
		Doc: "normalisation over the axes from Axis on; inputs X, scale, optional bias", minIn: 1, maxIn: 3,
		infer:      inferLayerNorm,
		access:     layerNormAccess,
		sequential: layerNormSequential,
		// sum, sum of squares (2), subtract, scale, scale and shift (2); the root is per row.
		vector: simple(7)})
	register(&KindInfo{Kind: "Softmax", Class: ReductionClass,
		Doc: "exp and normalise along Axis, or over all of Axes together", minIn: 1, maxIn: 1,
		infer:      inferSoftmax,
		access:     softmaxAccess,
		sequential: func(op *Op, out Shape) []int64 { return softmaxAxes(op) },
		// max, subtract, exp, sum, scale.
		vector: vec(4, 1, 0)})
	register(&KindInfo{Kind: "LRN", Class: ReductionClass,
		Doc: "local response normalisation over channels; Kernel[0] is the size", minIn: 1, maxIn: 1,
		infer: inferLRN, access: lrnAccess, vector: lrnWork})
	// Pooling.
	for _, k := range []Kind{"MaxPool", "AveragePool"} {
		register(&KindInfo{Kind: k, Class: ReductionClass, Doc: "window reduction", minIn: 1, maxIn: 1,
			infer:  inferPool,
			access: poolAccess, vector: poolWork})
	}
	for _, k := range []Kind{"GlobalAveragePool", "GlobalMaxPool"} {
		register(&KindInfo{Kind: k, Class: ReductionClass, Doc: "reduction over all spatial dimensions", minIn: 1, maxIn: 1,
			infer:  inferGlobalPool,
			access: globalPoolAccess,
			vector: func(_ *Op, in []*Tensor, _ Shape) VectorWork { return VectorWork{Simple: in[0].Shape[2:].Elements()} }})
	}
	for _, k := range []Kind{"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"} {
		register(&KindInfo{Kind: k, Class: ReductionClass, Doc: "reduction over Axes", minIn: 1, maxIn: 1,
			infer:  inferReduce,
			access: reduceAccess, vector: reduceWork})
	}

	register(&KindInfo{Kind: "RMSNorm", Class: ReductionClass,
		Doc: "division by the root mean square over the axes from Axis on; inputs X, optional scale", minIn: 1, maxIn: 2,
		infer: inferLayerNorm, access: layerNormAccess, sequential: layerNormSequential,
		// square, sum, multiply by the inverse root, scale.
		vector: simple(4)})
	register(&KindInfo{Kind: "GroupNorm", Class: ReductionClass,
		Doc: "normalisation over the positions and the channels of a group; inputs X [N,C,spatial], optional scale and bias [C]", minIn: 1, maxIn: 3,
		infer:      inferGroupNorm,
		access:     groupNormAccess,
		sequential: groupNormSequential, vector: simple(7)})

	register(&KindInfo{Kind: "ArgMax", Class: ReductionClass, Doc: "position of the largest element along Axes[0]",
		minIn: 1, maxIn: 1,
		infer:  inferArgMax,
		access: reduceAccess,
		dtype:  func(*Op, []*Tensor) DType { return I64 }, vector: argMaxWork})
	register(&KindInfo{Kind: "CumSum", Class: ReductionClass, Doc: "running sum along Axis", minIn: 1, maxIn: 1,
		infer:      inferCumSum,
		access:     func(op *Op, in []*Tensor, out Shape, _, _ int) []Access { return fullAlong(out, op.Attr.Axis) },
		sequential: alongAxis, vector: simple(1)})
	register(&KindInfo{Kind: "TopK", Class: ReductionClass,
		Doc: "the Splits[0] largest elements along Axis, and their positions", minIn: 1, maxIn: 1,
		infer:      inferTopK,
		access:     func(op *Op, in []*Tensor, _ Shape, _, _ int) []Access { return fullAlong(in[0].Shape, op.Attr.Axis) },
		second:     I64,
		sequential: alongAxis,
		// A heap of k elements sees all n; spread over the 2k results.
		vector: topKWork})

	// Unknown stands for an operator without a description: one simple operation per
	// output element. It is a reduction so that no layer absorbs it.
	register(&KindInfo{Kind: "Unknown", Class: ReductionClass,
		Doc: "an operator without a description: shape in Shape, element type numbered in Axis", minIn: 0, maxIn: -1,
		infer:  inferUnknown,
		access: unknownAccess, dtype: typeInAxis, vector: simple(1)})
}

func inferLayerNorm(op *Op, in []*Tensor) ([]Shape, error) {
	x := in[0].Shape
	if err := checkAxis(op.Attr.Axis, x); err != nil {
		return nil, err
	}
	for _, p := range in[1:] {
		if s, err := Broadcast(x, p.Shape); err != nil || !s.Equal(x) {
			return nil, fmt.Errorf("scale or bias %v does not broadcast to %v", p.Shape, x)
		}
	}
	return []Shape{x.Clone()}, nil
}

func layerNormAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	if idx > 0 {
		return broadcastAccess(in[idx].Shape, out)
	}
	acc := elementwiseAccess(op, in, out, 0, 0)
	for d := op.Attr.Axis; d < int64(len(out)); d++ {
		acc[d] = full()
	}
	return acc
}

func layerNormSequential(op *Op, out Shape) []int64 { return Dims(int(op.Attr.Axis), len(out)) }

func inferSoftmax(op *Op, in []*Tensor) ([]Shape, error) {
	x := in[0].Shape
	if err := checkAxes(op.Attr.Axes, len(x)); err != nil {
		return nil, err
	}
	if err := checkAxis(op.Attr.Axis, x); err != nil {
		return nil, err
	}
	return []Shape{x.Clone()}, nil
}

func softmaxAccess(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
	acc := elementwiseAccess(op, in, out, 0, 0)
	for _, d := range softmaxAxes(op) {
		acc[d] = full()
	}
	return acc
}

func inferLRN(op *Op, in []*Tensor) ([]Shape, error) {
	x := in[0].Shape
	if len(x) < 3 {
		return nil, fmt.Errorf("input has shape %v, expected at least three dimensions", x)
	}
	if k := op.Attr.Kernel; len(k) != 1 || k[0] < 1 || k[0] > maxWindow {
		return nil, fmt.Errorf("kernel %v, expected one size from 1 to 2^30", k)
	}
	return []Shape{x.Clone()}, nil
}

func lrnAccess(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
	acc := elementwiseAccess(op, in, out, 0, 0)
	size := op.Attr.Kernel[0]
	acc[1] = window(1, 1, size, 1, (size-1)/2)
	return acc
}

func lrnWork(op *Op, _ []*Tensor, _ Shape) VectorWork {
	return VectorWork{Simple: 2*op.Attr.Kernel[0] + 1, Special: 2}
}

func poolAccess(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
	acc := []Access{identity(0), identity(1)}
	for i := range op.Attr.Kernel {
		acc = append(acc, window(2+i, op.Attr.Strides[i], op.Attr.Kernel[i], op.Attr.Dilations[i], op.Attr.Pads[i]))
	}
	return acc
}

func poolWork(op *Op, _ []*Tensor, _ Shape) VectorWork {
	return VectorWork{Simple: Shape(op.Attr.Kernel).Elements()}
}

func inferGlobalPool(_ *Op, in []*Tensor) ([]Shape, error) {
	s := in[0].Shape.Clone()
	if len(s) < 3 {
		return nil, fmt.Errorf("input has shape %v, expected at least three dimensions", s)
	}
	for i := range s[2:] {
		s[2+i] = 1
	}
	return []Shape{s}, nil
}

func globalPoolAccess(_ *Op, in []*Tensor, _ Shape, _, _ int) []Access {
	acc := whole(in[0].Shape)
	acc[0], acc[1] = identity(0), identity(1)
	return acc
}

func inferReduce(op *Op, in []*Tensor) ([]Shape, error) {
	s := in[0].Shape
	if err := checkAxes(op.Attr.Axes, len(s)); err != nil {
		return nil, err
	}
	var out Shape
	for d, n := range s {
		if !slices.Contains(op.Attr.Axes, int64(d)) {
			out = append(out, n)
		} else if op.Attr.KeepDims {
			out = append(out, 1)
		}
	}
	return []Shape{out}, nil
}

func reduceAccess(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
	s := in[0].Shape
	acc := make([]Access, len(s))
	o := 0
	for d := range s {
		if slices.Contains(op.Attr.Axes, int64(d)) {
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
}

func reduceWork(op *Op, in []*Tensor, _ Shape) VectorWork {
	n := int64(1)
	for _, a := range op.Attr.Axes {
		n *= in[0].Shape[a]
	}
	return VectorWork{Simple: n}
}

func inferGroupNorm(op *Op, in []*Tensor) ([]Shape, error) {
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
}

func groupNormAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	if idx > 0 {
		return []Access{identity(1)}
	}
	acc := whole(out)
	acc[0] = identity(0)
	n := out[1] / op.Attr.Group
	acc[1] = blocks(1, n, n)
	return acc
}

func groupNormSequential(op *Op, out Shape) []int64 {
	dims := Dims(2, len(out))
	if op.Attr.Group != out[1] {
		dims = append([]int64{1}, dims...)
	}
	return dims
}

func inferArgMax(op *Op, in []*Tensor) ([]Shape, error) {
	if len(op.Attr.Axes) != 1 {
		return nil, fmt.Errorf("positions along axes %v, expected one axis", op.Attr.Axes)
	}
	return inferReduce(op, in)
}

func argMaxWork(op *Op, in []*Tensor, _ Shape) VectorWork {
	return VectorWork{Simple: 2 * in[0].Shape[op.Attr.Axes[0]]}
}

func inferCumSum(op *Op, in []*Tensor) ([]Shape, error) {
	return []Shape{in[0].Shape.Clone()}, checkAxis(op.Attr.Axis, in[0].Shape)
}

func inferTopK(op *Op, in []*Tensor) ([]Shape, error) {
	s := in[0].Shape.Clone()
	if err := checkAxis(op.Attr.Axis, s); err != nil {
		return nil, err
	}
	if k := op.Attr.Splits; len(k) != 1 || k[0] < 1 || k[0] > s[op.Attr.Axis] {
		return nil, fmt.Errorf("the best %v of %d elements", k, s[op.Attr.Axis])
	}
	s[op.Attr.Axis] = op.Attr.Splits[0]
	return []Shape{s, s.Clone()}, nil
}

func alongAxis(op *Op, _ Shape) []int64 {
	return []int64{op.Attr.Axis}
}

func topKWork(op *Op, in []*Tensor, _ Shape) VectorWork {
	n, k := in[0].Shape[op.Attr.Axis], op.Attr.Splits[0]
	return VectorWork{Simple: (n*int64(1+bits.Len64(uint64(k))) + 2*k - 1) / (2 * k)}
}

func inferUnknown(op *Op, _ []*Tensor) ([]Shape, error) {
	return []Shape{Shape(op.Attr.Shape).Clone()}, checkType(op)
}

func unknownAccess(_ *Op, in []*Tensor, out Shape, _, idx int) []Access {
	s := in[idx].Shape
	if b, err := Broadcast(s, out); err != nil || !b.Equal(out) {
		return whole(s)
	}
	return broadcastAccess(s, out)
}

func checkAxis(axis int64, s Shape) error {
	if axis < 0 || axis >= int64(len(s)) {
		return fmt.Errorf("axis %d does not exist in shape %v", axis, s)
	}
	return nil
}

// softmaxAxes: Axes if given (old opsets flatten the trailing dimensions), else Axis.
func softmaxAxes(op *Op) []int64 {
	if len(op.Attr.Axes) > 0 {
		return op.Attr.Axes
	}
	return []int64{op.Attr.Axis}
}

// Dims lists the dimensions from one up to another.
func Dims(from, to int) (list []int64) {
	for d := from; d < to; d++ {
		list = append(list, int64(d))
	}
	return list
}

func checkAxes(axes []int64, rank int) error {
	for i, a := range axes {
		if a < 0 || a >= int64(rank) || (i > 0 && axes[i-1] >= a) {
			return fmt.Errorf("axes %v do not fit %d dimensions (normalised and ascending expected)", axes, rank)
		}
	}
	return nil
}

// paramAccess: dimension 0 follows output dimension out (none if negative), the rest is read whole.
func paramAccess(s Shape, out int) []Access {
	acc := whole(s)
	if out >= 0 && len(acc) > 0 {
		acc[0] = identity(out)
	}
	return acc
}

func inferPool(op *Op, in []*Tensor) ([]Shape, error) {
	x := in[0].Shape
	n := len(op.Attr.Kernel)
	if len(x) != n+2 {
		return nil, fmt.Errorf("input %v for a kernel of %d dimensions", x, n)
	}
	if err := checkSpatial(op.Attr, n, op.Attr.Kernel); err != nil {
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

// fullAlong is element-wise but for the given dimensions, which are read whole.
func fullAlong(s Shape, dims ...int64) []Access {
	acc := broadcastAccess(s, s)
	for _, d := range dims {
		acc[d] = full()
	}
	return acc
}

func whole(s Shape) []Access {
	acc := slices.Repeat([]Access{full()}, len(s))
	return acc
}
