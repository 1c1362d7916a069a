package model

import (
	"math"
	"math/rand"
	"slices"
)

// wholeReads reads all of an input.
func wholeReads(p *probe, in int, emit func(...int64)) {
	each(Whole(p.in[in]), func(at []int64) { emit(at...) })
}

func selectOracles() []oracle {
	axisOf := func(p *probe) []int64 { return []int64{p.op.Attr.Axis} }
	withAxis := func(r *rand.Rand) (Attr, Shape) {
		s := randomShape(r, 1, 4, 5)
		return Attr{Axis: r.Int63n(int64(len(s)))}, s
	}
	list := []oracle{
		{kind: "Where", gen: func(r *rand.Rand) (Attr, []Shape) {
			s := randomShape(r, 1, 3, 4)
			return Attr{}, []Shape{shrink(r, s), shrink(r, s), s}
		}, reads: broadcastRead},
		{kind: "RMSNorm",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				a, x := withAxis(r)
				return a, []Shape{x, x[a.Axis:].Clone()}[:1+r.Intn(2)]
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
			}},
		{kind: "GroupNorm",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				groups := between(r, 1, 4)
				c := groups * between(r, 1, 3)
				return Attr{Group: groups}, []Shape{{between(r, 1, 3), c, between(r, 1, 4), between(r, 1, 4)}, {c}, {c}}
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				if in > 0 {
					emit(o[1])
					return
				}
				size := p.in[0][1] / p.op.Attr.Group
				each(Whole(p.in[0]), func(at []int64) {
					if at[0] == o[0] && at[1]/size == o[1]/size {
						emit(at...)
					}
				})
			}},
		{kind: "ArgMax",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				a, s := withAxis(r)
				return Attr{Axes: []int64{a.Axis}, KeepDims: r.Intn(2) == 0}, []Shape{s}
			}, reads: reduceReads},
		{kind: "CumSum", gen: func(r *rand.Rand) (Attr, []Shape) { a, s := withAxis(r); return a, []Shape{s} },
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				for i := range o[p.op.Attr.Axis] + 1 {
					at := slices.Clone(o)
					at[p.op.Attr.Axis] = i
					emit(at...)
				}
			},
			// All of the axis is taken, since it must not be cut anyway.
			tight: func(p *probe, _ Region, _, k int) bool { return int64(k) != p.op.Attr.Axis }},
		{kind: "TopK",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				a, s := withAxis(r)
				a.Splits = []int64{between(r, 1, s[a.Axis])}
				return a, []Shape{s}
			},
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				alongAxes(p.in[0], o, axisOf(p), emit)
			}},
		{kind: "GatherElements",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				a, s := withAxis(r)
				i := s.Clone()
				for d := range i {
					i[d] = between(r, 1, s[d])
				}
				i[a.Axis] = between(r, 1, 6)
				return a, []Shape{s, i}
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				if in == 1 {
					emit(o...)
				} else {
					alongAxes(p.in[0], o, axisOf(p), emit)
				}
			}},
		{kind: "Scatter",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 3, 4)
				return Attr{}, []Shape{s, {2, int64(len(s))}, {2}}
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				if in == 0 {
					emit(o...)
				} else {
					wholeReads(p, in, emit)
				}
			}},
		{kind: "Unknown",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 3, 4)
				return Attr{Shape: s}, []Shape{s, shrink(r, s), randomShape(r, 4, 4, 3)}
			},
			reads: func(p *probe, out int, o []int64, in int, emit func(...int64)) {
				if in < 2 {
					broadcastRead(p, out, o, in, emit)
				} else {
					wholeReads(p, in, emit)
				}
			}},
		{kind: "Resize",
			gen: func(r *rand.Rand) (Attr, []Shape) {
				s := randomShape(r, 1, 4, 5)
				var a Attr
				k := []int64{1, 1, 2, 4}[r.Intn(4)] // nearest, linear, cubic
				for d, n := range s {
					a.Shape = append(a.Shape, n)
					a.Kernel = append(a.Kernel, 1)
					switch r.Intn(3) {
					case 0:
						a.Shape[d] = n * between(r, 1, 3)
					case 1:
						a.Shape[d] = between(r, 1, 9)
					}
					if a.Shape[d] != n {
						a.Kernel[d] = k
					}
				}
				return a, []Shape{s}
			},
			// The half-pixel rule, which is the default, and the rule without it.
			reads: func(p *probe, _ int, o []int64, _ int, emit func(...int64)) {
				for _, half := range []float64{0, 0.5} {
					lists := make([][]int64, len(o))
					for d := range o {
						n, m, k := p.in[0][d], p.out[0][d], p.op.Attr.Kernel[d]
						x := (float64(o[d])+half)*float64(n)/float64(m) - half
						lo, hi := int64(math.Floor(x)), int64(math.Floor(x))
						if k > 1 {
							lo, hi = lo-k/2+1, hi+k/2
						} else if half > 0 {
							lo, hi = int64(math.Ceil(x-0.5)), int64(math.Ceil(x-0.5)) // nearest, towards the floor
						}
						for i := lo; i <= hi; i++ {
							lists[d] = append(lists[d], min(max(i, 0), n-1))
						}
					}
					box := make(Region, len(o))
					for d, l := range lists {
						box[d] = Interval{0, int64(len(l))}
					}
					each(box, func(ix []int64) {
						at := make([]int64, len(ix))
						for d, i := range ix {
							at[d] = lists[d][i]
						}
						emit(at...)
					})
				}
			},
			// Exact for whole factors without interpolation.
			tight: func(p *probe, _ Region, _, k int) bool {
				return p.out[0][k]%p.in[0][k] == 0 && p.op.Attr.Kernel[k] == 1
			}},
	}
	for _, k := range []Kind{"Quantize", "Dequantize"} {
		list = append(list, oracle{kind: k,
			gen: func(r *rand.Rand) (Attr, []Shape) {
				a, x := withAxis(r)
				a = Attr{Axes: []int64{a.Axis}, Axis: int64(I8)}
				p := Shape{x[a.Axes[0]]}
				switch r.Intn(3) {
				case 0:
					a.Axes, p = nil, Shape{}
				case 1:
					p = Shape{1}
				}
				return a, []Shape{x, p, p}
			},
			reads: func(p *probe, _ int, o []int64, in int, emit func(...int64)) {
				switch {
				case in == 0:
					emit(o...)
				case len(p.in[in]) == 0:
					emit()
				case p.in[in][0] == 1:
					emit(0)
				default:
					emit(o[p.op.Attr.Axes[0]])
				}
			}})
	}
	for _, k := range []Kind{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Mod"} {
		list = append(list, oracle{kind: k, gen: genBroadcast(2), reads: broadcastRead})
	}
	for _, k := range []Kind{"Mish", "Sin", "Cos"} {
		list = append(list, oracle{kind: k, gen: genUnary, reads: sameElementReads})
	}
	return list
}
