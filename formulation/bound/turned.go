package bound

import "github.com/dsasched/dsasched/model"

// A turned box is one of which the elements along the dimensions from to to, excluded, are any set, of their numbers
// in the shape of these dimensions: what a box becomes behind a reshape. Without such dimensions it is a box.
type turned struct {
	box      box // what it has of those dimensions does not count
	from, to int
	flat     set
}

func (r *turned) elements() int64 {
	if r == nil {
		return 0
	}
	n := int64(1)
	if r.to > 0 {
		n = r.flat.size()
	}
	for d, s := range r.box {
		if d < r.from || d >= r.to {
			n *= s.size()
		}
	}
	return n
}

// move is what r needs of an input of which each element of the output reads one element at most, where dimensions stay
// apart but for one block of a reshape; nil: it is a box, or not known.
func (r *turned) move(acc []model.Access, in, out model.Shape) *turned {
	next := &turned{box: make(box, len(in))}
	driven := make([]bool, len(out))
	for d := 0; d < len(in); d++ {
		a := acc[d]
		switch {
		case a.To > 0:
			if next.to > 0 || r.to > 0 && (r.from != a.From || r.to != a.To) {
				return nil
			}
			next.from, next.flat = d, r.flat
			if r.to == 0 {
				next.flat = flat(r.box[a.From:a.To], out[a.From:a.To])
			}
			for d+1 < len(in) && acc[d+1].From == a.From && acc[d+1].To == a.To {
				d++
			}
			next.to = d + 1
		case a.Full && in[d] == 1:
			next.box[d] = set{{Lo: 0, Hi: 1}}
		case a.Full || a.Num != 1 || a.Den != 1 || a.A != a.B || driven[a.Out]:
			return nil
		case a.Out < r.from || a.Out >= r.to:
			driven[a.Out] = true
			next.box[d] = before(r.box[a.Out], a, in[d])
		default: // the dimensions of r's block, one after the other
			n := r.to - r.from
			if next.to > 0 || d+n > len(in) {
				return nil
			}
			for k := range n {
				if b := acc[d+k]; b.Full || b.To > 0 || b.Out != r.from+k || b.Num != 1 || b.Den != 1 || b.A != b.B {
					return nil
				}
			}
			next.from, next.to = d, d+n
			next.flat = shifted(r.flat, acc[d:d+n], in[d:d+n], out[r.from:r.to])
			d += n - 1
		}
	}
	if next.to == 0 {
		return nil
	}
	return next
}

// shifted moves elements, by their numbers in a shape, by so much along each dimension, to their numbers in another
// shape, without those that are outside of it then.
func shifted(flat set, by []model.Access, in, out model.Shape) (all set) {
	last := len(out) - 1
	for _, iv := range flat {
		for lo := iv.Lo; lo < iv.Hi; {
			end := min(iv.Hi, lo-lo%out[last]+out[last])
			row := model.Interval{Lo: lo % out[last], Hi: end - lo + lo%out[last]}
			at, step, rest := int64(0), in[last], lo/out[last]
			for d := last - 1; d >= 0; d-- {
				x := rest%out[d] + by[d].A
				if x < 0 || x >= in[d] {
					row = model.Interval{}
				}
				at, step, rest = at+x*step, step*in[d], rest/out[d]
			}
			if row = by[last].Range(row, in[last]); row.Len() > 0 {
				all = append(all, model.Interval{Lo: at + row.Lo, Hi: at + row.Hi})
			}
			lo = end
		}
	}
	return union(all)
}

// read is a box that r needs of an input that one dimension of r's block drives at most; nil: it is not known.
func (r *turned) read(acc []model.Access, in, out model.Shape) box {
	b, inside := make(box, len(in)), false
	driven := make([]bool, len(out))
	for d, a := range acc {
		s := set{{Lo: 0, Hi: 1}}
		if a.To > 0 {
			return nil
		}
		if !a.Full {
			block := a.Out >= r.from && a.Out < r.to
			if driven[a.Out] || block && inside {
				return nil
			}
			driven[a.Out], inside = true, inside || block
			if s = r.box[a.Out]; block {
				s = along(r.flat, out[r.from:r.to], a.Out-r.from)
			}
		}
		b[d] = before(s, a, in[d])
	}
	return b
}

// along is the positions along a dimension that some elements have, by their numbers in a shape.
func along(flat set, shape model.Shape, dim int) (all set) {
	n, inner := shape[dim], shape[dim+1:].Elements()
	for _, iv := range flat {
		lo, hi := iv.Lo/inner, (iv.Hi-1)/inner+1
		if hi-lo >= n {
			return set{{Lo: 0, Hi: n}}
		}
		hi -= lo - lo%n
		lo %= n
		all = append(all, model.Interval{Lo: lo, Hi: min(hi, n)})
		if hi > n {
			all = append(all, model.Interval{Lo: 0, Hi: hi - n})
		}
	}
	return union(all)
}
