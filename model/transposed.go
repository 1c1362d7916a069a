package model

import (
	"fmt"
	"iter"
	"math/bits"
)

// A Phase is a number of products of equal depth that a transposed convolution takes. With strides s, an output at
// position o meets those kernel elements k for which o + pad - k dilation is a multiple of s: outputs of one phase
// (o + pad) mod s make a plain convolution of stride 1, those of different phases share neither weights nor sums.
type Phase struct {
	Count int64 // phases of K elements of the reduction each
	Rows  int64 // outputs of all of them
	K     int64
	Line  int64 // outputs of one phase side by side in a line
}

// Phases are those of a product whose reduction is cut by phases, in the order in which they stand along it.
type Phases struct {
	List []Phase
	rows int64 // of all outputs, those that meet no kernel element among them
}

// String lists the phases, so that equal ones print alike.
func (p *Phases) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(p.List, p.rows)
}

// Parts are the phases of a product; one that has none is one.
func (d MatrixDims) Parts() []Phase {
	if d.Phases == nil {
		return []Phase{{1, d.M, d.K, d.Line}}
	}
	return d.Phases.List
}

// Products visits the plain products that d stands for: itself, or of each phase that its elements of the reduction
// belong to as many of its rows as d has of all.
func (d MatrixDims) Products() iter.Seq[MatrixDims] {
	return func(yield func(MatrixDims) bool) {
		if d.Phases == nil {
			yield(d)
			return
		}
		at := d.At
		for _, p := range d.Phases.List {
			lo, hi := max(0, at), min(p.Count*p.K, at+d.K)
			at -= p.Count * p.K
			if lo >= hi {
				continue
			}
			upper, low := bits.Mul64(uint64(p.Rows), uint64(d.M))
			rows, rest := bits.Div64(upper, low, uint64(d.Phases.rows))
			part := MatrixDims{Reps: d.Reps, M: ceilDiv(int64(rows)+int64(min(1, rest)), p.Count), N: d.N, Line: p.Line}
			for lo < hi { // whole phases together, parts of one at both ends alone
				part.K = min(p.K-lo%p.K, hi-lo)
				n := int64(1)
				if part.K == p.K {
					n = (hi - lo) / p.K
				}
				part.Reps = d.Reps * n
				if !yield(part) {
					return
				}
				lo += n * part.K
			}
		}
	}
}

// Sliced is the product of one of n slices of the reduction.
func (d MatrixDims) Sliced(n int64) MatrixDims {
	if d.Phases == nil {
		d.K = ceilDiv(d.K, n)
		return d
	}
	p := &Phases{rows: d.Phases.rows}
	d.K = 0
	for _, x := range d.Phases.List {
		x.K = ceilDiv(x.K, n)
		d.K += x.Count * x.K
		p.List = append(p.List, x)
	}
	d.Phases = p
	return d
}

// apart has each interval of a box as a set of its own.
func apart(r Region) [][]Interval {
	sets := make([][]Interval, len(r))
	for d := range r {
		sets[d] = r[d : d+1]
	}
	return sets
}

// Transposed returns the products that a transposed convolution takes for the positions sets of its output, intervals
// of each dimension, and the multiply-accumulates: pairs of an input and a weight that add to one of these positions.
func (g *Graph) Transposed(op *Op, sets [][]Interval) (MatrixDims, int64) {
	return transposed(op, g.inputs(op), sets)
}

func transposed(op *Op, in []*Tensor, sets [][]Interval) (d MatrixDims, macs int64) {
	x, w, a := in[0].Shape, in[1].Shape, op.Attr
	depth, n := w[0]/a.Group, make([]int64, len(sets))
	for i, set := range sets {
		for _, iv := range set {
			n[i] += iv.Len()
		}
	}
	macs = n[0] * n[1] * depth
	d = MatrixDims{M: n[0], N: n[1], Line: n[len(n)-1], Reps: 1}
	list := []Phase{{1, n[0], depth, 0}}
	for i, set := range sets[2:] {
		d.M *= n[2+i]
		pairs := int64(0)
		for _, iv := range set {
			pairs += pairsBefore(a, i, iv.Hi, x[2+i], w[2+i]) - pairsBefore(a, i, iv.Lo, x[2+i], w[2+i])
		}
		macs *= pairs
		var next []Phase
		for _, t := range taps(a, i, w[2+i], set) {
			for _, p := range list {
				next = append(next, Phase{p.Count * t.Count, p.Rows * t.Rows, p.K * t.K, ceilDiv(t.Rows, t.Count)})
			}
		}
		list = next
	}
	if list == nil { // outputs that meet nothing: a product of nothing takes a row
		list = []Phase{{1, 1, 1, 1}}
	}
	for _, p := range list {
		d.K += p.Count * p.K
	}
	if channels := sets[1]; a.Group > 1 && len(channels) > 0 {
		last := channels[len(channels)-1].Hi - 1
		d.Reps = last/w[1] - channels[0].Lo/w[1] + 1 // groups that the positions meet
		d.N = ceilDiv(d.N, d.Reps)
	}
	d.Phases = &Phases{list, d.M}
	return d, macs
}

// taps are the phases of spatial dimension i that a set of positions has, of more kernel elements and of one less.
func taps(a *Attr, i int, kernel int64, set []Interval) (list []Phase) {
	apart := GCD(a.Strides[i], a.Dilations[i]) // phases that are no multiple of it meet no kernel element
	period := a.Strides[i] / apart
	most := ceilDiv(kernel, period)
	// Phase j*apart meets kernel elements k, k + period and so on, where k = j inverse mod period: most of them, if k
	// is below wide.
	wide, inverse := kernel-(most-1)*period, inverseOf(a.Dilations[i]/apart, period)
	below := func(n int64) int64 { // how many j below n are wide
		rest := n % period
		return n/period*wide + floorSum(rest, period, inverse, 0) - floorSum(rest, period, inverse, period-wide) + rest
	}
	more, less := Phase{K: most}, Phase{K: most - 1}
	for _, iv := range set {
		lo, hi := ceilDiv(iv.Lo+a.Pads[i], apart), ceilDiv(iv.Hi+a.Pads[i], apart)
		n := below(hi) - below(lo)
		more.Rows, less.Rows = more.Rows+n, less.Rows+hi-lo-n
		more.Count, less.Count = max(more.Count, min(n, wide)), max(less.Count, min(hi-lo-n, period-wide))
	}
	for _, p := range []Phase{more, less} {
		if p.Rows > 0 && p.K > 0 {
			list = append(list, p)
		}
	}
	return list
}

// pairsBefore counts the pairs of an input and a kernel element along spatial dimension i of which the sum lies in
// front of an output position, be it among the outputs or padded away.
func pairsBefore(a *Attr, i int, position, inputs, kernel int64) int64 {
	t, s, dilation := position+a.Pads[i], a.Strides[i], a.Dilations[i]
	// Inputs below all reach it with each kernel element, from some on with none.
	all := min(inputs, max(0, ceilDiv(t-(kernel-1)*dilation, s)))
	some := min(inputs, max(0, ceilDiv(t, s)))
	return all*kernel + floorSum(some-all, dilation, s, t-(some-1)*s+dilation-1)
}

// inverseOf is the number whose product with a is 1 modulo m, for a without a factor of m; 0 modulo 1.
func inverseOf(a, m int64) int64 {
	x, y, r, s := int64(0), int64(1), m, a%m
	for s > 0 {
		x, y, r, s = y, x-r/s*y, s, r%s
	}
	return (x%m + m) % m
}

// floorSum is the sum of (a i + b) / m, rounded down, over i from 0 to n-1, where no number is negative.
func floorSum(n, m, a, b int64) (sum int64) {
	for n > 0 {
		sum += n*(n-1)/2*(a/m) + n*(b/m)
		end := a%m*n + b%m
		n, m, a, b = end/m, a%m, m, end%m
	}
	return sum
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
