package model

import (
	"encoding/binary"
	"slices"
)

// Access is the range of one input dimension that a range of the output needs.
// See the package documentation for the formula.
type Access struct {
	// Full: all of the input dimension, whatever the output range. Then the other fields do not count.
	Full bool
	// Out is the output dimension that drives this input dimension.
	Out      int
	Num, Den int64
	A, B     int64
	// Dimensions From to To, excluded, of a reshape's output drive this dimension together;
	// To is 0 where one drives it alone. Range knows one of them, InputRegion all.
	From, To int
}

func full() Access                  { return Access{Full: true} }
func identity(o int) Access         { return Access{Out: o, Num: 1, Den: 1} }
func offset(o int, by int64) Access { return Access{Out: o, Num: 1, Den: 1, A: by, B: by} }
func window(o int, stride, kernel, dilation, pad int64) Access {
	return Access{Out: o, Num: stride, Den: 1, A: -pad, B: (kernel-1)*dilation - pad}
}

// blocks maps output blocks of den elements to input blocks of num elements.
func blocks(o int, num, den int64) Access { return Access{Out: o, Num: num, Den: den, B: num - 1} }

// Range applies the access to an output range; n is the input extent. An empty output range needs nothing.
func (a Access) Range(out Interval, n int64) Interval {
	if out.Len() == 0 {
		return Interval{}
	}
	if a.Full {
		return Interval{0, n}
	}
	lo := floorDiv(out.Lo, a.Den)*a.Num + a.A
	hi := floorDiv(out.Hi-1, a.Den)*a.Num + a.B + 1
	lo, hi = max(lo, 0), min(hi, n)
	if hi <= lo {
		return Interval{}
	}
	return Interval{lo, hi}
}

// Exact reports whether disjoint output ranges that begin and end at multiples of Den need disjoint input ranges:
// there is no halo. Where Den is above one, ranges cut elsewhere share the block that the cut goes through.
func (a Access) Exact() bool { return !a.Full && a.B-a.A+1 <= a.Num }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// Access returns, for input in of op, one Access per input dimension, as driven
// by output number out. The caller must not change them.
func (g *Graph) Access(op *Op, out, in int) []Access {
	if g.accesses != nil {
		return g.accesses[g.accessOf[int(g.firstAccess[op.ID])+out*len(op.Inputs)+in]]
	}
	return kinds[op.Kind].access(op, g.inputs(op), g.Tensors[op.Outputs[out]].Shape, out, in)
}

func (g *Graph) inputs(op *Op) []*Tensor {
	ts := make([]*Tensor, len(op.Inputs))
	for i, id := range op.Inputs {
		ts[i] = g.Tensors[id]
	}
	return ts
}

// Remember computes every Access once, and keeps equal ones once, for work that asks for
// them again and again. The graph must not be changed any more.
func (g *Graph) Remember() {
	if g.accesses != nil {
		return
	}
	var list [][]Access
	first, of := make([]int32, len(g.Ops)), []int32(nil)
	known := map[string]int32{}
	var key []byte
	for i, op := range g.Ops {
		first[i] = int32(len(of))
		inputs := g.inputs(op)
		for out := range op.Outputs {
			for in := range op.Inputs {
				acc := kinds[op.Kind].access(op, inputs, g.Tensors[op.Outputs[out]].Shape, out, in)
				key = key[:0]
				for _, a := range acc {
					whole := int64(0)
					if a.Full {
						whole = 1
					}
					for _, v := range [...]int64{whole, int64(a.Out), a.Num, a.Den, a.A, a.B, int64(a.From), int64(a.To)} {
						key = binary.AppendVarint(key, v)
					}
				}
				same, ok := known[string(key)]
				if !ok {
					same = int32(len(list))
					known[string(key)] = same
					list = append(list, acc)
				}
				of = append(of, same)
			}
		}
	}
	g.accesses, g.accessOf, g.firstAccess = list, slices.Clip(of), first
}

// InputRegion is the box of input in that the box r of output out needs.
func (g *Graph) InputRegion(op *Op, out, in int, r Region) Region {
	res := make(Region, len(g.Tensors[op.Inputs[in]].Shape))
	g.FillInputRegion(res, op, out, in, r)
	return res
}

// FillInputRegion is InputRegion in memory of the caller's: res, all empty, of the input's number of dimensions.
func (g *Graph) FillInputRegion(res Region, op *Op, out, in int, r Region) {
	if r.Elements() == 0 {
		return
	}
	t := g.Tensors[op.Inputs[in]]
	acc := g.Access(op, out, in)
	for k := range res {
		var drive Interval
		if acc[k].Full {
			drive = Interval{0, 1}
		} else {
			drive = r[acc[k].Out]
		}
		res[k] = acc[k].Range(drive, t.Shape[k])
	}
	for k := 0; k < len(res); {
		a, end := acc[k], k+1
		if a.To == 0 {
			k++
			continue
		}
		for end < len(res) && acc[end].From == a.From && acc[end].To == a.To {
			end++
		}
		reshaped(res[k:end], t.Shape[k:end], r[a.From:a.To], g.Tensors[op.Outputs[out]].Shape[a.From:a.To])
		k = end
	}
}

// reshaped sets in to the box around the elements between the first and the last of box
// out, where both shapes have the same elements in the same order.
func reshaped(in Region, from Shape, out Region, to Shape) {
	lo, hi := int64(0), int64(0) // both included
	for d, n := range to {
		lo, hi = lo*n+out[d].Lo, hi*n+out[d].Hi-1
	}
	inner := from.Elements()
	for d, n := range from {
		inner /= n
		in[d] = Interval{lo / inner % n, hi/inner%n + 1}
		if lo/inner != hi/inner { // several: each has all that lies inside
			for d++; d < len(from); d++ {
				in[d] = Interval{0, from[d]}
			}
			return
		}
	}
}

// SequentialOf is Sequential of the operator that makes a tensor.
func (g *Graph) SequentialOf(t TensorID) []bool {
	op := g.Op(g.Tensor(t).Producer)
	return g.Sequential(op, slices.Index(op.Outputs, t))
}

// Sequential reports, per dimension of output out, whether the dimension must not be split or bound to cores: every
// element along it depends on all the others (a softmax's axis).
func (g *Graph) Sequential(op *Op, out int) []bool {
	s := g.Tensors[op.Outputs[out]].Shape
	res := make([]bool, len(s))
	if f := kinds[op.Kind].sequential; f != nil {
		for _, d := range f(op, s) {
			res[d] = true
		}
	}
	return res
}

// broadcastAccess aligns an input with the output at the right, as element-wise operators do.
func broadcastAccess(in, out Shape) []Access {
	acc := make([]Access, len(in))
	shift := len(out) - len(in)
	for k := range in {
		if in[k] == 1 && out[k+shift] != 1 {
			acc[k] = full()
		} else {
			acc[k] = identity(k + shift)
		}
	}
	return acc
}

// reshapeAccess matches the dimensions of two shapes with equal element counts. The shapes are cut into the finest
// blocks of consecutive dimensions with equal products; within a block, only the outermost dimensions of extent above
// one are matched, which is what a split along them keeps contiguous. What a box of the block's dimensions needs is
// found from all of them together.
func reshapeAccess(in, out Shape) []Access {
	acc := slices.Repeat([]Access{full()}, len(in))
	for _, g := range ReshapeGroups(in, out) {
		i0, i, j0, j := g.From, g.To, g.First, g.End
		elements := in[i0:i].Elements()
		for i0 < i && in[i0] == 1 {
			i0++
		}
		for j0 < j && out[j0] == 1 {
			j0++
		}
		if i0 == i || j0 == j {
			continue // a block of ones
		}
		// One step of the outermost input dimension is ri elements, of the output rj.
		ri, rj := elements/in[i0], elements/out[j0]
		switch {
		case ri == rj:
			acc[i0] = identity(j0)
		case rj%ri == 0:
			acc[i0] = blocks(j0, rj/ri, 1)
		case ri%rj == 0:
			acc[i0] = blocks(j0, 1, ri/rj)
		}
		if i-i0 > 1 || j-j0 > 1 {
			for k := i0; k < i; k++ {
				acc[k].From, acc[k].To = j0, j
			}
		}
	}
	return acc
}
