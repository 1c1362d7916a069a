package interp

import (
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// prime is the modulus of all values, 2^61-1.
const prime = 1<<61 - 1

func mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, r := bits.Div64(hi, lo, prime) // hi < prime, as a and b are
	return r
}

func add(a, b uint64) uint64 { return (a + b) % prime }

// mix makes one number of many, of which each changes it.
func mix(h uint64, xs ...uint64) uint64 {
	for _, x := range xs {
		h ^= x + 0x9e3779b97f4a7c15 + h<<6 + h>>2
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

func mixString(h uint64, s string) uint64 {
	for _, b := range []byte(s) {
		h = mix(h, uint64(b))
	}
	return mix(h, uint64(len(s)))
}

// reader gives an element of one of an operator's inputs.
type reader func(input int, at []int64) uint64

// operator is an operator with the shapes of its tensors.
type operator struct {
	g       *model.Graph
	op      *model.Op
	in, out []model.Shape
	linear  bool // a sum of products
	seed    uint64
}

func newOperator(g *model.Graph, op *model.Op) *operator {
	o := &operator{g: g, op: op, linear: op.Class() == model.MatrixClass}
	for _, t := range op.Inputs {
		o.in = append(o.in, g.Tensor(t).Shape)
	}
	for _, t := range op.Outputs {
		o.out = append(o.out, g.Tensor(t).Shape)
	}
	o.seed = seedOf(op.Kind, op.Attr.Variant)
	return o
}

func seedOf(kind model.Kind, variant string) uint64 {
	return mixString(mixString(1, string(kind)), variant)
}

// hidden is the value of a causal mask where it hides a score, and 0 where it shows it. What is done to it before a
// softmax leaves it as it is, and then it is 0.
const hidden = prime - 1

// pointwise is an element-wise operator on one element of each of its operands.
func pointwise(kind model.Kind, variant string, of []uint64) uint64 {
	if slices.Contains(of, hidden) {
		return hidden
	}
	r := of[0]
	switch kind {
	case "Add":
		for _, x := range of[1:] {
			r = add(r, x)
		}
		return r
	case "Mul":
		for _, x := range of[1:] {
			r = mul(r, x)
		}
		return r
	case "Sub":
		return add(r, prime-of[1])
	case "Where":
		if r == 0 { // a causal mask's
			return of[1]
		}
	}
	return mix(mix(seedOf(kind, variant), 0), of...) % prime
}

// value computes an element of one of the outputs. Sums of products, sums and moves are computed; any other
// operator gives a hash of all values that the element depends on, in order, and of the element's place.
func (o *operator) value(output int, at []int64, read reader) uint64 {
	a := o.op.Attr
	if model.OnScores(o.op.Kind) {
		of := make([]uint64, len(o.in))
		for k := range of {
			of[k] = read(k, o.operand(output, k, at))
		}
		return pointwise(o.op.Kind, a.Variant, of)
	}
	switch o.op.Kind {
	case "Conv", "ConvTranspose", "MatMul", "Gemm":
		sum := uint64(0)
		o.terms(at, func(_ int64, x, w []int64) {
			if x != nil {
				sum = add(sum, mul(read(0, x), read(1, w)))
			}
		})
		return add(sum, o.bias(at, read))
	case "Attention":
		return o.attend(at, read)
	case "Identity", "Dropout", "Transpose", "Split", "Expand":
		return read(0, o.operand(output, 0, at))
	case "Reshape":
		return read(0, unravel(ravel(at, o.out[0]), o.in[0]))
	case "Slice":
		from := make([]int64, len(at))
		for d := range at {
			from[d] = a.Starts[d] + at[d]*a.Steps[d]
		}
		return read(0, from)
	case "Concat", "Pad":
		for k := range o.in {
			if from := o.operand(output, k, at); from != nil {
				return read(k, from)
			}
		}
		return 0 // a border
	case "Gather":
		n := int64(len(o.in[1]))
		row := int64(read(1, at[a.Axis:a.Axis+n]) % uint64(o.in[0][a.Axis]))
		from := append(append(append([]int64{}, at[:a.Axis]...), row), at[a.Axis+n:]...)
		return read(0, from)
	case "GlobalAveragePool", "AveragePool", "ReduceMean", "ReduceSum":
		sum := uint64(0)
		each(o.needs(output, 0, at), func(x []int64) { sum = add(sum, read(0, x)) })
		return sum
	}
	if o.op.Kind == "Softmax" && read(0, at) == hidden {
		return 0
	}
	h := mix(o.seed, uint64(output))
	for k := range o.in {
		box := o.needs(output, k, at)
		for d, iv := range box {
			if k == 0 && d < len(at) && iv.Len() > 1 {
				h = mix(h, uint64(at[d]))
			}
		}
		each(box, func(x []int64) { h = mix(h, read(k, x)) })
	}
	return h % prime
}

// bias is the value added to a sum of products.
func (o *operator) bias(at []int64, read reader) uint64 {
	if len(o.in) < 3 {
		return 0
	}
	if o.op.Kind == "Gemm" {
		return read(2, o.operand(0, 2, at))
	}
	return read(2, at[1:2])
}

// needs is the box of an input that an element depends on.
func (o *operator) needs(output, input int, at []int64) model.Region {
	one := make(model.Region, len(at))
	for d, x := range at {
		one[d] = model.Interval{Lo: x, Hi: x + 1}
	}
	return o.g.InputRegion(o.op, output, input, one)
}

// operand is the one element of an input that an element depends on, nil if there is none.
func (o *operator) operand(output, input int, at []int64) []int64 {
	box := o.needs(output, input, at)
	x := make([]int64, len(box))
	for d, iv := range box {
		if iv.Len() != 1 {
			if iv.Len() == 0 {
				return nil
			}
			panic("interp: " + string(o.op.Kind) + " depends on several elements")
		}
		x[d] = iv.Lo
	}
	return x
}

// terms visits the products that an element of a product is the sum of: their position
// along the reduction, and both factors' elements; x is nil where a window sticks out.
func (o *operator) terms(at []int64, visit func(k int64, x, w []int64)) {
	a := o.op.Attr
	switch o.op.Kind {
	case "Conv", "ConvTranspose":
		o.windowTerms(at, visit)
	case "Gemm":
		k := o.in[0][1]
		if a.TransA {
			k = o.in[0][0]
		}
		pair := func(a, b int64, swap bool) []int64 {
			if swap {
				return []int64{b, a}
			}
			return []int64{a, b}
		}
		for i := range k {
			visit(i, pair(at[0], i, a.TransA), pair(i, at[1], a.TransB))
		}
	default:
		k := o.in[0][len(o.in[0])-1]
		x, w := o.needs(0, 0, at), o.needs(0, 1, at)
		index := func(r model.Region, d int, i int64) []int64 {
			p := make([]int64, len(r))
			for d := range r {
				p[d] = r[d].Lo
			}
			p[d] = i
			return p
		}
		for i := range k {
			visit(i, index(x, len(x)-1, i), index(w, max(0, len(w)-2), i))
		}
	}
}

func (o *operator) windowTerms(at []int64, visit func(k int64, x, w []int64)) {
	a, x, w := o.op.Attr, o.in[0], o.in[1]
	transposed, channels := o.op.Kind == "ConvTranspose", x[1]/a.Group
	group := at[1] / (o.out[0][1] / a.Group)
	window := make(model.Region, 1, len(w)-1)
	window[0] = model.Interval{Hi: channels}
	for _, n := range w[2:] {
		window = append(window, model.Interval{Hi: n})
	}
	k := int64(-1)
	each(window, func(i []int64) {
		k++
		from := append(make([]int64, 0, len(x)), at[0], group*channels+i[0])
		for d := range w[2:] {
			p := at[2+d]*a.Strides[d] + i[1+d]*a.Dilations[d] - a.Pads[d]
			if transposed {
				p = at[2+d] + a.Pads[d] - i[1+d]*a.Dilations[d]
				if p%a.Strides[d] != 0 {
					p = -a.Strides[d] // between two elements
				}
				p /= a.Strides[d]
			}
			if p < 0 || p >= x[2+d] {
				from = nil
				break
			}
			from = append(from, p)
		}
		if transposed {
			visit(k, from, append([]int64{group*channels + i[0], at[1] % w[1]}, i[1:]...))
		} else {
			visit(k, from, append([]int64{at[1]}, i...))
		}
	})
}

// reduction is the number of terms there are.
func (o *operator) reduction() int64 {
	n := int64(0)
	o.terms(make([]int64, len(o.out[0])), func(k int64, _, _ []int64) { n = k + 1 })
	return n
}

// each visits the elements of a box, if there is one, row by row. It changes and passes one slice.
func each(box model.Region, visit func([]int64)) {
	if box == nil {
		return
	}
	at := make([]int64, len(box))
	for d, iv := range box {
		if iv.Len() == 0 {
			return
		}
		at[d] = iv.Lo
	}
	for {
		visit(at)
		d := len(box) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < box[d].Hi {
				break
			}
			at[d] = box[d].Lo
		}
		if d < 0 {
			return
		}
	}
}

func ravel(at []int64, s model.Shape) int64 {
	i := int64(0)
	for d, x := range at {
		i = i*s[d] + x
	}
	return i
}

func unravel(i int64, s model.Shape) []int64 {
	at := make([]int64, len(s))
	for d := len(s) - 1; d >= 0; d-- {
		at[d] = i % s[d]
		i /= s[d]
	}
	return at
}

// Evaluate computes every tensor of a graph, operator by operator, and gives the elements
// of each, row by row. inputs gives those of constants and inputs of the network.
func Evaluate(g *model.Graph, inputs func(t *model.Tensor, element int64) uint64) [][]uint64 {
	values := make([][]uint64, len(g.Tensors))
	for i, t := range g.Tensors {
		values[i] = make([]uint64, t.Shape.Elements())
		if t.Producer == model.NoOp {
			for k := range values[i] {
				values[i][k] = inputs(t, int64(k))
			}
		}
	}
	for _, op := range g.Ops {
		o := newOperator(g, op)
		read := func(k int, at []int64) uint64 { return values[op.Inputs[k]][ravel(at, o.in[k])] }
		for k, out := range op.Outputs {
			i := 0
			each(model.Whole(o.out[k]), func(at []int64) {
				values[out][i] = o.value(k, at, read)
				i++
			})
		}
	}
	return values
}
