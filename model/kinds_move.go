package model

import "fmt"

// registerMoves lists kinds that move elements.
func registerMoves() {
	// Movement.
	register(&KindInfo{Kind: "Reshape", Class: ViewClass,
		Doc: "another shape over the same elements (also Flatten, Squeeze, Unsqueeze)", minIn: 1, maxIn: 1,
		infer:  inferReshape,
		access: func(_ *Op, in []*Tensor, out Shape, _, _ int) []Access { return reshapeAccess(in[0].Shape, out) }})
	register(&KindInfo{Kind: "Transpose", Class: InjectiveClass, Doc: "output dimension i is input dimension Perm[i]",
		minIn: 1, maxIn: 1, infer: inferTranspose, access: transposeAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Concat", Class: InjectiveClass, Doc: "inputs side by side along Axis", minIn: 1, maxIn: -1,
		infer: inferConcat, access: concatAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Split", Class: InjectiveClass, Doc: "consecutive parts along Axis, extents in Splits",
		minIn: 1, maxIn: 1, infer: inferSplit, access: splitAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Slice", Class: InjectiveClass,
		Doc: "every Steps-th element from Starts, backwards if negative; the target extents in Shape", minIn: 1, maxIn: 1,
		infer: inferSlice, access: sliceAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Pad", Class: InjectiveClass, Doc: "constant border: Pads begins, then ends",
		minIn: 1, maxIn: 1, infer: inferPad, access: padAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Gather", Class: InjectiveClass,
		Doc: "rows of the first input along Axis, chosen by the second (embedding)", minIn: 2, maxIn: 2,
		infer: inferGather, access: gatherAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Expand", Class: InjectiveClass, Doc: "broadcast to Shape", minIn: 1, maxIn: 1,
		infer: inferExpand, access: elementwiseAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Resize", Class: InjectiveClass,
		Doc: "re-sampling to the extents in Shape; Kernel is how many neighbours per dimension an element is computed from (1: nearest)", minIn: 1, maxIn: 1,
		infer: inferResize, access: resizeAccess, vector: resizeWork})

	register(&KindInfo{Kind: "GatherElements", Class: InjectiveClass,
		Doc: "element by element from the first input along Axis, at the positions in the second", minIn: 2, maxIn: 2,
		infer: inferGatherElements, access: gatherElementsAccess, vector: vec(0, 0, 1)})
	register(&KindInfo{Kind: "Scatter", Class: InjectiveClass,
		Doc:   "the first input with elements replaced, at the positions in the second, by those of the third",
		minIn: 3, maxIn: 3,
		infer:  func(_ *Op, in []*Tensor) ([]Shape, error) { return []Shape{in[0].Shape.Clone()}, nil },
		access: scatterAccess, vector: vec(0, 0, 1)})
}

func inferReshape(op *Op, in []*Tensor) ([]Shape, error) {
	s := Shape(op.Attr.Shape).Clone()
	if err := s.check(0); err != nil {
		return nil, err
	}
	if s.Elements() != in[0].Shape.Elements() {
		return nil, fmt.Errorf("cannot reshape %v (%d elements) to %v (%d)", in[0].Shape,
			in[0].Shape.Elements(), s, s.Elements())
	}
	return []Shape{s}, nil
}

func inferTranspose(op *Op, in []*Tensor) ([]Shape, error) {
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
}

func transposeAccess(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
	acc := make([]Access, len(in[0].Shape))
	for i, p := range op.Attr.Perm {
		acc[p] = identity(i)
	}
	return acc
}

func inferConcat(op *Op, in []*Tensor) ([]Shape, error) {
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
				return nil, fmt.Errorf("inputs have shapes %v and %v, which differ beside axis %d", in[0].Shape,
					t.Shape, op.Attr.Axis)
			}
		}
	}
	return []Shape{s}, nil
}

func concatAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	acc := broadcastAccess(out, out)
	off := int64(0)
	for _, t := range in[:idx] {
		off += t.Shape[op.Attr.Axis]
	}
	acc[op.Attr.Axis] = offset(int(op.Attr.Axis), -off)
	return acc
}

func inferSplit(op *Op, in []*Tensor) ([]Shape, error) {
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
}

func splitAccess(op *Op, in []*Tensor, out Shape, outIdx, _ int) []Access {
	acc := broadcastAccess(out, out)
	off := int64(0)
	for _, n := range op.Attr.Splits[:outIdx] {
		off += n
	}
	acc[op.Attr.Axis] = offset(int(op.Attr.Axis), off)
	return acc
}

func inferSlice(op *Op, in []*Tensor) ([]Shape, error) {
	s, a := in[0].Shape, op.Attr
	if len(a.Starts) != len(s) || len(a.Steps) != len(s) || len(a.Shape) != len(s) {
		return nil, fmt.Errorf("slice has %d starts, %d steps and %d extents for shape %v", len(a.Starts),
			len(a.Steps), len(a.Shape), s)
	}
	for d := range s {
		// Written so that nothing overflows.
		room, step := s[d]-1-a.Starts[d], a.Steps[d]
		if step < 0 {
			room, step = a.Starts[d], -step
		}
		if a.Shape[d] != 0 && (step <= 0 || a.Starts[d] < 0 || a.Starts[d] >= s[d] || a.Shape[d]-1 > room/step) {
			return nil, fmt.Errorf("slice of dimension %d (start %d, step %d, extent %d) leaves shape %v", d, a.Starts[d],
				a.Steps[d], a.Shape[d], s)
		}
	}
	return []Shape{Shape(a.Shape).Clone()}, nil
}

func sliceAccess(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
	acc := make([]Access, len(in[0].Shape))
	for d := range acc {
		if acc[d] = window(d, op.Attr.Steps[d], 1, 1, -op.Attr.Starts[d]); op.Attr.Steps[d] < 0 {
			acc[d] = full() // an Access goes forwards
		}
	}
	return acc
}

func inferPad(op *Op, in []*Tensor) ([]Shape, error) {
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
}

func padAccess(op *Op, in []*Tensor, _ Shape, _, _ int) []Access {
	acc := make([]Access, len(in[0].Shape))
	for d := range acc {
		acc[d] = offset(d, -op.Attr.Pads[d])
	}
	return acc
}

func inferGather(op *Op, in []*Tensor) ([]Shape, error) {
	d, x := in[0].Shape, in[1].Shape
	if op.Attr.Axis < 0 || op.Attr.Axis >= int64(len(d)) {
		return nil, fmt.Errorf("axis %d does not exist in shape %v", op.Attr.Axis, d)
	}
	s := append(Shape{}, d[:op.Attr.Axis]...)
	s = append(s, x...)
	return []Shape{append(s, d[op.Attr.Axis+1:]...)}, nil
}

func gatherAccess(op *Op, in []*Tensor, _ Shape, _, idx int) []Access {
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
}

func inferExpand(op *Op, in []*Tensor) ([]Shape, error) {
	s, err := Broadcast(in[0].Shape, Shape(op.Attr.Shape))
	return []Shape{s}, err
}

func inferResize(op *Op, in []*Tensor) ([]Shape, error) {
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
}

func resizeAccess(op *Op, in []*Tensor, out Shape, _, _ int) []Access {
	acc := make([]Access, len(out))
	for d, n := range in[0].Shape {
		// A block of den elements comes from one of num, and from neighbours on either side: between elements, up to
		// half a kernel away, and half an element where the modes disagree on where an element's centre is.
		g := GCD(n, out[d])
		acc[d] = blocks(d, n/g, out[d]/g)
		if halo := op.Attr.Kernel[d]; n != out[d] && (halo > 1 || out[d]%n != 0) {
			acc[d].A -= halo/2 + 1
			acc[d].B += halo/2 + 1
		}
	}
	return acc
}

func resizeWork(op *Op, _ []*Tensor, _ Shape) VectorWork {
	n := int64(1)
	for _, k := range op.Attr.Kernel {
		n *= k
	}
	if n == 1 {
		return VectorWork{Move: 1}
	}
	return VectorWork{Simple: 2 * n, Move: 1} // a weight each
}

func inferGatherElements(op *Op, in []*Tensor) ([]Shape, error) {
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
}

func gatherElementsAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	acc := make([]Access, len(out))
	for d := range acc {
		acc[d] = identity(d)
	}
	if idx == 0 {
		acc[op.Attr.Axis] = full()
	}
	return acc
}

func scatterAccess(_ *Op, in []*Tensor, out Shape, _, idx int) []Access {
	if idx == 0 {
		return broadcastAccess(out, out)
	}
	return whole(in[idx].Shape) // the positions may be anywhere
}

// SliceOf is the attributes of a Slice of one dimension.
func SliceOf(s Shape, dim int, lo, hi int64) Attr {
	a := Attr{Starts: make([]int64, len(s)), Steps: make([]int64, len(s)), Shape: s.Clone()}
	for d := range s {
		a.Steps[d] = 1
	}
	a.Starts[dim], a.Shape[dim] = lo, hi-lo
	return a
}

// GCD is the largest number that divides both.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
