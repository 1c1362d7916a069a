package model

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// The oracle of Access: per kind, which elements of an input one element of an
// output is computed from, written down from the operator's definition and
// element by element. Boxes found that way must lie in InputRegion, and equal it
// where the kind's accesses are meant to be exact.

// probe is one operator on small shapes.
type probe struct {
	op  *Op
	g   *Graph
	in  []Shape
	out []Shape
}

type oracle struct {
	kind Kind
	gen  func(r *rand.Rand) (Attr, []Shape)
	// reads emits the elements of input in that element o of output out needs.
	reads func(p *probe, out int, o []int64, in int, emit func(...int64))
	// tight reports whether InputRegion must be the exact hull in dimension k of
	// input in for this box; nil means always.
	tight func(p *probe, box Region, in, k int) bool
	// macs checks that an output element takes as many multiply-accumulates as it
	// reads elements of input 0.
	macs bool
}

func between(r *rand.Rand, lo, hi int64) int64 { return lo + r.Int63n(hi-lo+1) }

func randomShape(r *rand.Rand, minRank, maxRank, maxExtent int64) Shape {
	s := make(Shape, between(r, minRank, maxRank))
	for i := range s {
		s[i] = between(r, 1, maxExtent)
	}
	return s
}

// randomAxes draws a non-empty ascending set of dimensions.
func randomAxes(r *rand.Rand, rank int) []int64 {
	var axes []int64
	for len(axes) == 0 {
		for d := range rank {
			if r.Intn(2) == 0 {
				axes = append(axes, int64(d))
			}
		}
	}
	return axes
}

// shrink makes extents 1 and drops leading dimensions at random, as broadcasting
// allows.
func shrink(r *rand.Rand, s Shape) Shape {
	s = s.Clone()[r.Intn(len(s)+1):]
	for i := range s {
		if r.Intn(3) == 0 {
			s[i] = 1
		}
	}
	return s
}

// each calls f with every element of a box.
func each(box Region, f func([]int64)) {
	if box.Elements() == 0 {
		return
	}
	at := make([]int64, len(box))
	for d := range at {
		at[d] = box[d].Lo
	}
	for {
		f(at)
		d := len(at) - 1
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

// broadcastRead is numpy's rule: align at the right, extent 1 stands for all.
func broadcastRead(p *probe, _ int, o []int64, in int, emit func(...int64)) {
	s := p.in[in]
	at := make([]int64, len(s))
	for k := range s {
		at[k] = o[len(o)-len(s)+k]
		if s[k] == 1 {
			at[k] = 0
		}
	}
	emit(at...)
}

// windowed draws kernel, strides, dilations and pads for n spatial dimensions,
// and extents of which at least one window fits.
func windowed(r *rand.Rand, n int) (Attr, Shape) {
	a := Attr{Pads: make([]int64, 2*n)}
	var s Shape
	padded := r.Intn(2) == 0
	for i := range n {
		k, d := between(r, 1, 3), between(r, 1, 2)
		a.Kernel = append(a.Kernel, k)
		a.Strides = append(a.Strides, between(r, 1, 3))
		a.Dilations = append(a.Dilations, d)
		if padded {
			a.Pads[i], a.Pads[n+i] = between(r, 0, 3), between(r, 0, 3)
		}
		s = append(s, max(1, (k-1)*d+1-a.Pads[i]-a.Pads[n+i])+between(r, 0, 4))
	}
	return a, s
}

// windowReads emits prefix followed by each combination of spatial positions
// that the window of output position o covers.
func windowReads(a *Attr, kernel, extents []int64, o, prefix []int64, emit func(...int64)) {
	n := len(extents)
	box := make(Region, n)
	for i := range box {
		box[i] = Interval{0, kernel[i]}
	}
	each(box, func(k []int64) {
		at := slices.Clone(prefix)
		for i := range n {
			x := o[i]*a.Strides[i] + k[i]*a.Dilations[i] - a.Pads[i]
			if x < 0 || x >= extents[i] {
				return
			}
			at = append(at, x)
		}
		emit(at...)
	})
}

// everyWindowReads reports whether each window has an element beside the padding and
// no hole between its first and its last one, so that the affine form, which
// knows neither holes nor windows of nothing, is exact.
func everyWindowReads(a *Attr, kernel []int64) bool {
	n := len(kernel)
	for i := range n {
		padded := a.Pads[i] > 0 || a.Pads[n+i] > 0 || a.CeilMode
		if padded && (a.Dilations[i] > 1 || a.Pads[i] >= kernel[i] || a.Pads[n+i] >= kernel[i]) {
			return false
		}
	}
	return true
}

func genConv(r *rand.Rand) (Attr, []Shape) {
	n := int(between(r, 1, 2))
	a, spatial := windowed(r, n)
	a.Group = between(r, 1, 3)
	cin, cout := between(r, 1, 3), between(r, 1, 3)
	x := append(Shape{between(r, 1, 2), a.Group * cin}, spatial...)
	w := append(Shape{a.Group * cout, cin}, a.Kernel...)
	in := []Shape{x, w}
	if r.Intn(2) == 0 {
		in = append(in, Shape{w[0]})
	}
	return a, in
}

func convReads(p *probe, _ int, o []int64, in int, emit func(...int64)) {
	x, w := p.in[0], p.in[1]
	group := o[1] / (w[0] / p.op.Attr.Group)
	switch in {
	case 0:
		for c := range w[1] {
			windowReads(p.op.Attr, w[2:], x[2:], o[2:], []int64{o[0], group*w[1] + c}, emit)
		}
	case 1:
		whole := Whole(w)
		whole[0] = Interval{o[1], o[1] + 1}
		each(whole, func(at []int64) { emit(at...) })
	case 2:
		emit(o[1])
	}
}

func convTight(p *probe, _ Region, in, _ int) bool {
	return in > 0 || everyWindowReads(p.op.Attr, p.in[1][2:])
}

func genConvTranspose(r *rand.Rand) (Attr, []Shape) {
	n := int(between(r, 1, 2))
	a := Attr{Group: between(r, 1, 3), Pads: make([]int64, 2*n)}
	cin, cout := between(r, 1, 3), between(r, 1, 3)
	x := Shape{between(r, 1, 2), a.Group * cin}
	w := Shape{a.Group * cin, cout}
	for i := range n {
		k, s, d := between(r, 1, 4), between(r, 1, 3), between(r, 1, 2)
		full := (k-1)*d + 1
		a.Pads[i], a.Pads[n+i] = between(r, 0, full/2), between(r, 0, (full-1)/2)
		a.Strides, a.Dilations = append(a.Strides, s), append(a.Dilations, d)
		a.OutputPadding = append(a.OutputPadding, between(r, 0, s-1))
		x, w = append(x, between(r, 1, 4)), append(w, k)
	}
	// A kernel all padded away leaves nothing of a single element.
	for i := range n {
		if (x[2+i]-1)*a.Strides[i]+(w[2+i]-1)*a.Dilations[i]+1-a.Pads[i]-a.Pads[n+i]+a.OutputPadding[i] < 1 {
			a.OutputPadding[i]++
		}
	}
	in := []Shape{x, w}
	if r.Intn(2) == 0 {
		in = append(in, Shape{a.Group * cout})
	}
	return a, in
}

func convTransposeReads(p *probe, _ int, o []int64, in int, emit func(...int64)) {
	x, w, a := p.in[0], p.in[1], p.op.Attr
	group, c := o[1]/w[1], o[1]%w[1]
	perGroup := x[1] / a.Group
	if in == 2 {
		emit(o[1])
		return
	}
	box := Whole(x)
	box[0] = Interval{o[0], o[0] + 1}
	box[1] = Interval{group * perGroup, (group + 1) * perGroup}
	each(box, func(at []int64) {
		// Element x meets kernel element k at output x*stride + k*dilation - pad.
		each(Whole(w[2:]), func(k []int64) {
			for i := range k {
				if at[2+i]*a.Strides[i]+k[i]*a.Dilations[i]-a.Pads[i] != o[2+i] {
					return
				}
			}
			if in == 0 {
				emit(at...)
			} else {
				emit(append([]int64{at[1], c}, k...)...)
			}
		})
	})
}

// convTransposeTight: exact for boxes that begin and end at a multiple of the
// stride, where every output reads something and the window has no holes.
func convTransposeTight(p *probe, box Region, in, k int) bool {
	a, w := p.op.Attr, p.in[1]
	n := len(w) - 2
	for i := range n {
		if a.Dilations[i] > 1 || w[2+i] < a.Strides[i] || a.OutputPadding[i] > a.Pads[n+i] {
			return false
		}
	}
	switch {
	case in == 0 && k >= 2:
		return box[k].Lo%a.Strides[k-2] == 0 && box[k].Hi%a.Strides[k-2] == 0
	case in == 1 && k == 1:
		return a.Group == 1
	case in == 1 && k >= 2:
		return false // which kernel elements meet depends on the phase
	}
	return true
}

func genPool(r *rand.Rand) (Attr, []Shape) {
	a, s := windowed(r, int(between(r, 1, 3)))
	a.CeilMode = r.Intn(2) == 0
	return a, []Shape{append(Shape{between(r, 1, 2), between(r, 1, 3)}, s...)}
}

func genImage(r *rand.Rand) (Attr, []Shape) {
	return Attr{}, []Shape{append(randomShape(r, 2, 2, 3), randomShape(r, 1, 3, 4)...)}
}

func spatialReads(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
	box := Whole(p.in[0])
	box[0], box[1] = Interval{o[0], o[0] + 1}, Interval{o[1], o[1] + 1}
	each(box, func(at []int64) { emit(at...) })
}

func genReduce(r *rand.Rand) (Attr, []Shape) {
	s := randomShape(r, 1, 4, 4)
	return Attr{Axes: randomAxes(r, len(s)), KeepDims: r.Intn(2) == 0}, []Shape{s}
}

func reduceReads(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
	box := Whole(p.in[0])
	next := 0
	for d := range box {
		reduced := slices.Contains(p.op.Attr.Axes, int64(d))
		if !reduced {
			box[d] = Interval{o[next], o[next] + 1}
		}
		if !reduced || p.op.Attr.KeepDims {
			next++
		}
	}
	each(box, func(at []int64) { emit(at...) })
}

// alongAxes emits the line, plane, ... through o along the axes.
func alongAxes(s Shape, o []int64, axes []int64, emit func(...int64)) {
	box := Whole(s)
	for d := range box {
		if !slices.Contains(axes, int64(d)) {
			box[d] = Interval{o[d], o[d] + 1}
		}
	}
	each(box, func(at []int64) { emit(at...) })
}

func sameElementReads(_ *probe, _ int, o []int64, _ int, emit func(...int64)) { emit(o...) }

func genUnary(r *rand.Rand) (Attr, []Shape) { return Attr{}, []Shape{randomShape(r, 0, 4, 4)} }

func genBroadcast(inputs int64) func(r *rand.Rand) (Attr, []Shape) {
	return func(r *rand.Rand) (Attr, []Shape) {
		s := randomShape(r, 1, 4, 4)
		var in []Shape
		for range between(r, 2, inputs) {
			in = append(in, shrink(r, s))
		}
		return Attr{}, in
	}
}

func oracles() []oracle {
	list := []oracle{
		{kind: "Conv", gen: genConv, reads: convReads, tight: convTight},
		{kind: "ConvTranspose", gen: genConvTranspose, reads: convTransposeReads, tight: convTransposeTight},
		{kind: "Attention",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				a := Attr{Group: between(r, 1, 3), TransB: r.Intn(2) == 0, Softmax: true, Causal: r.Intn(2) == 0,
					Scores: []ScoreOp{{Kind: "Add", Operands: 2}}}
				batch, heads, rows, depth, width := between(r, 1, 2), between(r, 1, 2), between(r, 1, 5),
					between(r, 1, 4), between(r, 1, 4)
				keys := rows + between(r, 0, 3)
				in := []Shape{{batch, heads * a.Group, rows, depth}}
				for left := keys; left > 0; { // in parts
					n := left
					if r.Intn(2) == 0 {
						n = between(r, 1, left)
					}
					k := Shape{batch, heads, n, depth}
					if a.TransB {
						k = Shape{batch, heads, depth, n}
					}
					in, left = append(in, k, Shape{batch, heads, n, width}), left-n
				}
				return a, append(in, shrink(r, Shape{batch, heads * a.Group, rows, keys}))
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				a, keys, first, last := p.op.Attr, int64(0), int64(0), len(p.in)-1
				for i := 2; i < last; i += 2 {
					if i < in {
						first += p.in[i][2]
					}
					keys += p.in[i][2]
				}
				if a.Causal {
					keys = o[2] + 1 + keys - p.in[0][2]
				}
				head := o[1] / a.Group
				for k := range keys {
					if in > 0 && in < last {
						if k -= first; k < 0 || k >= p.in[(in+1)/2*2][2] { // of another part
							continue
						}
					}
					switch {
					case in == last:
						broadcastRead(p, 0, []int64{o[0], o[1], o[2], k}, last, emit)
					case in > 0 && in%2 == 0:
						emit(o[0], head, k, o[3])
					default:
						for d := range p.in[0][3] {
							switch {
							case in == 0:
								emit(o[0], o[1], o[2], d)
							case a.TransB:
								emit(o[0], head, d, k)
							default:
								emit(o[0], head, k, d)
							}
						}
					}
				}
			}},
		{kind: "MatMul",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				lead := randomShape(r, 0, 2, 3)
				m, k, n := between(r, 1, 4), between(r, 1, 4), between(r, 1, 4)
				a, b := append(shrink(r, lead), m, k), append(shrink(r, lead), k, n)
				if r.Intn(5) == 0 {
					a = Shape{k}
				}
				if r.Intn(5) == 0 {
					b = Shape{k}
				}
				return Attr{}, []Shape{a, b}
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				// numpy: a vector on the left is a row, on the right a column, and that
				// dimension is missing in the result.
				row, column := int64(0), int64(0)
				lead := o
				if len(p.in[1]) > 1 {
					column, lead = lead[len(lead)-1], lead[:len(lead)-1]
				}
				if len(p.in[0]) > 1 {
					row, lead = lead[len(lead)-1], lead[:len(lead)-1]
				}
				s := p.in[in]
				k := p.in[0][len(p.in[0])-1]
				for i := range k {
					if len(s) == 1 {
						emit(i)
						continue
					}
					var at []int64
					for d := range s[:len(s)-2] {
						x := lead[len(lead)-(len(s)-2)+d]
						if s[d] == 1 {
							x = 0
						}
						at = append(at, x)
					}
					if in == 0 {
						at = append(at, row, i)
					} else {
						at = append(at, i, column)
					}
					emit(at...)
				}
			}, macs: true},
		{kind: "Gemm",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				a := Attr{TransA: r.Intn(2) == 0, TransB: r.Intn(2) == 0}
				m, k, n := between(r, 1, 4), between(r, 1, 4), between(r, 1, 4)
				in := []Shape{{m, k}, {k, n}}
				if a.TransA {
					in[0] = Shape{k, m}
				}
				if a.TransB {
					in[1] = Shape{n, k}
				}
				if r.Intn(2) == 0 {
					in = append(in, shrink(r, Shape{m, n}))
				}
				return a, in
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				if in == 2 {
					broadcastRead(p, 0, o, in, emit)
					return
				}
				k := p.in[0][1]
				if p.op.Attr.TransA {
					k = p.in[0][0]
				}
				for i := range k {
					switch {
					case in == 0 && p.op.Attr.TransA:
						emit(i, o[0])
					case in == 0:
						emit(o[0], i)
					case p.op.Attr.TransB:
						emit(o[1], i)
					default:
						emit(i, o[1])
					}
				}
			}, macs: true},
		{kind: "BatchNorm",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				x := randomShape(r, 2, 4, 4)
				c := Shape{x[1]}
				return Attr{}, []Shape{x, c, c, c, c}
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				if in == 0 {
					emit(o...)
				} else {
					emit(o[1])
				}
			}},
		{kind: "LayerNorm",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				x := randomShape(r, 1, 4, 4)
				a := Attr{Axis: r.Int63n(int64(len(x)))}
				in := []Shape{x}
				for range r.Intn(3) {
					in = append(in, x[a.Axis:].Clone())
				}
				return a, in
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				if in > 0 {
					broadcastRead(p, 0, o, in, emit)
					return
				}
				var axes []int64
				for d := p.op.Attr.Axis; d < int64(len(o)); d++ {
					axes = append(axes, d)
				}
				alongAxes(p.in[0], o, axes, emit)
			},
		},
		{kind: "Softmax",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				x := randomShape(r, 1, 4, 4)
				if r.Intn(2) == 0 {
					return Attr{Axes: randomAxes(r, len(x))}, []Shape{x}
				}
				return Attr{Axis: r.Int63n(int64(len(x)))}, []Shape{x}
			},
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				axes := p.op.Attr.Axes
				if len(axes) == 0 {
					axes = []int64{p.op.Attr.Axis}
				}
				alongAxes(p.in[0], o, axes, emit)
			}},
		{kind: "LRN",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				return Attr{Kernel: []int64{between(r, 1, 4)}},
					[]Shape{{between(r, 1, 2), between(r, 1, 6), between(r, 1, 3), between(r, 1, 3)}}
			},
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				// ONNX: channels c - floor((size-1)/2) to c + ceil((size-1)/2).
				size := p.op.Attr.Kernel[0]
				for c := o[1] - (size-1)/2; c <= o[1]+size/2; c++ {
					if c >= 0 && c < p.in[0][1] {
						emit(o[0], c, o[2], o[3])
					}
				}
			}},
		{kind: "Reshape",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				factors := make([]int64, between(r, 1, 5))
				for i := range factors {
					factors[i] = between(r, 1, 4)
				}
				in := group(factors, r.Uint32())
				if r.Intn(2) == 0 {
					r.Shuffle(len(factors), func(i, j int) { factors[i], factors[j] = factors[j], factors[i] })
				}
				return Attr{Shape: group(factors, r.Uint32())}, []Shape{in}
			},
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				emit(sameElement(p.in[0], p.out[0], o)...)
			},
			// Exact but where several dimensions become several others.
			tight: func(p *probe, box Region, _, k int) bool {
				acc := p.g.Access(p.op, 0, 0)
				block := 0
				for _, a := range acc {
					if a.From == acc[k].From && a.To == acc[k].To {
						block++
					}
				}
				return box.Elements() == 1 || acc[k].To == 0 || block == 1 || acc[k].To == acc[k].From+1
			}},
		{kind: "Transpose",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 4, 4)
				var a Attr
				for _, p := range r.Perm(len(s)) {
					a.Perm = append(a.Perm, int64(p))
				}
				return a, []Shape{s}
			},
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				at := make([]int64, len(o))
				for i, d := range p.op.Attr.Perm {
					at[d] = o[i]
				}
				emit(at...)
			}},
		{kind: "Concat",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 4, 4)
				a := Attr{Axis: r.Int63n(int64(len(s)))}
				var in []Shape
				for range between(r, 1, 4) {
					t := s.Clone()
					t[a.Axis] = between(r, 1, 4)
					in = append(in, t)
				}
				return a, in
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				at := slices.Clone(o)
				for _, s := range p.in[:in] {
					at[p.op.Attr.Axis] -= s[p.op.Attr.Axis]
				}
				if x := at[p.op.Attr.Axis]; x >= 0 && x < p.in[in][p.op.Attr.Axis] {
					emit(at...)
				}
			}},
		{kind: "Split",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 4, 4)
				a := Attr{Axis: r.Int63n(int64(len(s)))}
				s[a.Axis] = 0
				for range between(r, 1, 4) {
					n := between(r, 1, 4)
					a.Splits = append(a.Splits, n)
					s[a.Axis] += n
				}
				return a, []Shape{s}
			},
			reads: func(p *probe, out int, o []int64, _ int, emit func(...int64)) {
				at := slices.Clone(o)
				for _, n := range p.op.Attr.Splits[:out] {
					at[p.op.Attr.Axis] += n
				}
				emit(at...)
			}},
		{kind: "Slice",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 4, 8)
				var a Attr
				for _, n := range s {
					start, step := r.Int63n(n), between(r, 1, 3)
					room := n - 1 - start
					if r.Intn(3) == 0 {
						step, room = -step, start
					}
					a.Starts, a.Steps = append(a.Starts, start), append(a.Steps, step)
					a.Shape = append(a.Shape, between(r, 1, room/max(step, -step)+1))
				}
				return a, []Shape{s}
			},
			// A dimension that runs backwards is read whole.
			tight: func(p *probe, _ Region, _, k int) bool { return p.op.Attr.Steps[k] > 0 },
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				at := make([]int64, len(o))
				for d := range o {
					at[d] = p.op.Attr.Starts[d] + o[d]*p.op.Attr.Steps[d]
				}
				emit(at...)
			}},
		{kind: "Pad",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 3, 5)
				a := Attr{Pads: make([]int64, 2*len(s))}
				for d, n := range s {
					// Negative pads cut off.
					a.Pads[d] = between(r, -(n-1)/2, 2)
					a.Pads[d+len(s)] = between(r, -(n-1)/2, 2)
				}
				return a, []Shape{s}
			},
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				at := make([]int64, len(o))
				for d := range o {
					at[d] = o[d] - p.op.Attr.Pads[d]
					if at[d] < 0 || at[d] >= p.in[0][d] {
						return
					}
				}
				emit(at...)
			}},
		{kind: "Gather",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 3, 4)
				return Attr{Axis: r.Int63n(int64(len(s)))}, []Shape{s, randomShape(r, 0, 2, 3)}
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				a, indices := int(p.op.Attr.Axis), len(p.in[1])
				if in == 1 {
					emit(o[a : a+indices]...)
					return
				}
				// Any row may be the chosen one.
				for row := range p.in[0][a] {
					at := append(slices.Clone(o[:a]), row)
					emit(append(at, o[a+indices:]...)...)
				}
			}},
		{kind: "Expand",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 4, 4)
				return Attr{Shape: shrink(r, s)}, []Shape{shrink(r, s)}
			},
			reads: broadcastRead},
		{kind: "Cast", reads: sameElementReads,
			gen: func(r *rand.Rand) (Attr, []Shape) {
				return Attr{Axis: r.Int63n(int64(len(dtypes)))}, []Shape{randomShape(r, 0, 4, 4)}
			}},
	}
	for _, k := range []Kind{"MaxPool", "AveragePool"} {
		list = append(list, oracle{kind: k, gen: genPool,
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				windowReads(p.op.Attr, p.op.Attr.Kernel, p.in[0][2:], o[2:], o[:2], emit)
			},
			tight: func(p *probe, _ Region, _, _ int) bool { return everyWindowReads(p.op.Attr, p.op.Attr.Kernel) }})
	}
	for _, k := range []Kind{"GlobalAveragePool", "GlobalMaxPool"} {
		list = append(list, oracle{kind: k, gen: genImage, reads: spatialReads})
	}
	for _, k := range []Kind{"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"} {
		list = append(list, oracle{kind: k, gen: genReduce, reads: reduceReads})
	}
	for _, k := range []Kind{"Relu", "Clip", "LeakyRelu", "Neg", "Abs", "Not", "Floor", "Sigmoid", "Tanh", "Erf",
		"Exp", "Log", "Sqrt",
		"Reciprocal", "Gelu", "Silu", "HardSigmoid", "HardSwish", "Elu", "Softplus", "Identity", "Dropout"} {
		list = append(list, oracle{kind: k, gen: genUnary, reads: sameElementReads})
	}
	for _, k := range []Kind{"Add", "Mul", "Max", "Min"} {
		list = append(list, oracle{kind: k, gen: genBroadcast(4), reads: broadcastRead})
	}
	for _, k := range []Kind{"Sub", "Div", "Pow", "PRelu"} {
		list = append(list, oracle{kind: k, gen: genBroadcast(2), reads: broadcastRead})
	}
	list = append(list, selectOracles()...)
	return list
}

// group multiplies neighbouring factors: a new dimension begins before factor i
// if bit i of cuts is set.
func group(factors []int64, cuts uint32) Shape {
	var s Shape
	for i, f := range factors {
		if i == 0 || cuts>>i&1 == 1 {
			s = append(s, f)
		} else {
			s[len(s)-1] *= f
		}
	}
	return s
}

// sameElement is the position in shape in of the element at o in shape out, in
// row-major order.
func sameElement(in, out Shape, o []int64) []int64 {
	n := int64(0)
	for d := range out {
		n = n*out[d] + o[d]
	}
	at := make([]int64, len(in))
	for d := len(in) - 1; d >= 0; d-- {
		at[d] = n % in[d]
		n /= in[d]
	}
	return at
}

// single builds a graph of one operator.
func single(kind Kind, a Attr, in ...Shape) (*Graph, error) {
	b := NewBuilder(string(kind))
	var ids []TensorID
	for i, s := range in {
		ids = append(ids, b.Input(fmt.Sprintf("in%d", i), F16, s...))
	}
	b.Output(b.OpN(kind, "op", a, ids...)...)
	return b.Build()
}

func newProbe(t *testing.T, kind Kind, a Attr, in []Shape) *probe {
	t.Helper()
	g, err := single(kind, a, in...)
	if err != nil {
		t.Fatalf("%v on %v: %v", a, in, err)
	}
	p := &probe{op: g.Ops[0], g: g, in: in}
	for _, o := range p.op.Outputs {
		p.out = append(p.out, g.Tensor(o).Shape)
	}
	return p
}

func randomBox(r *rand.Rand, s Shape) Region {
	box := Whole(s)
	one := r.Intn(len(s) + 2) // often cut a single dimension
	for d := range box {
		if one < len(s) && d != one {
			continue
		}
		lo := r.Int63n(s[d])
		box[d] = Interval{lo, between(r, lo+1, s[d])}
	}
	return box
}

func TestAccessOracle(t *testing.T) {
	covered := map[Kind]bool{}
	for _, c := range oracles() {
		if covered[c.kind] {
			t.Errorf("%s has two oracles", c.kind)
		}
		covered[c.kind] = true
		t.Run(string(c.kind), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewSource(1))
			exact := 0
			for range 150 {
				a, in := c.gen(r)
				p := newProbe(t, c.kind, a, in)
				for out, s := range p.out {
					for range 6 {
						exact += checkBox(t, c, p, out, randomBox(r, s))
					}
					if t.Failed() {
						return
					}
				}
			}
			// A table that never asks for tightness would test half.
			if exact < 200 {
				t.Errorf("only %d dimensions were checked to be exact", exact)
			}
		})
	}
	for _, k := range Kinds() {
		if !covered[k] {
			t.Errorf("kind %s has no oracle", k)
		}
	}
}

// checkBox compares InputRegion with the elements really read, and returns how
// many dimensions it required to be exact.
func checkBox(t *testing.T, c oracle, p *probe, out int, box Region) int {
	t.Helper()
	exact := 0
	for in, s := range p.in {
		var hull Region
		reads, outputs := int64(0), int64(0)
		each(box, func(o []int64) {
			outputs++
			c.reads(p, out, o, in, func(at ...int64) {
				reads++
				cell := make(Region, len(at))
				for d, x := range at {
					if x < 0 || x >= s[d] {
						t.Fatalf("the oracle reads %v of %v", at, s)
					}
					cell[d] = Interval{x, x + 1}
				}
				if reads == 1 {
					hull = cell
					return
				}
				for d := range hull {
					hull[d] = Interval{min(hull[d].Lo, cell[d].Lo), max(hull[d].Hi, cell[d].Hi)}
				}
			})
		})
		got := p.g.InputRegion(p.op, out, in, box)
		say := func(what string) {
			t.Errorf("%s: attributes %+v, inputs %v, output %d %v, box %v: InputRegion of input %d is %v, read is %v",
				what, p.op.Attr, p.in, out, p.out[out], box, in, got, hull)
		}
		if len(got) != len(s) {
			say("rank")
			return exact
		}
		if hull == nil { // nothing read
			tight := len(s) > 0
			for k := range s {
				tight = tight && (c.tight == nil || c.tight(p, box, in, k))
			}
			if tight {
				exact++
				if got.Elements() != 0 {
					say("nothing is read")
				}
			}
			continue
		}
		for k := range s {
			if got[k].Lo < 0 || got[k].Hi > s[k] {
				say("outside of the tensor")
			}
			if hull[k].Lo < got[k].Lo || hull[k].Hi > got[k].Hi {
				say("too small")
			}
			if c.tight == nil || c.tight(p, box, in, k) {
				exact++
				if hull[k] != got[k] {
					say(fmt.Sprintf("dimension %d too large", k))
				}
			}
		}
		if in == 0 && (c.macs || c.kind == "Conv" &&
			!slices.ContainsFunc(p.op.Attr.Pads, func(v int64) bool { return v > 0 })) {
			if w := p.g.Work(p.op, box); w.MACs != reads {
				t.Errorf("attributes %+v, inputs %v, box %v (%d elements): %d MACs, expected %d", p.op.Attr, p.in, box,
					outputs, w.MACs, reads)
			}
		}
	}
	return exact
}
