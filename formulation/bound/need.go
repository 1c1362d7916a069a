package bound

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A set is a set of positions along a dimension: intervals, ascending, apart.
type set []model.Interval

func (s set) size() int64 {
	n := int64(0)
	for _, iv := range s {
		n += iv.Len()
	}
	return n
}

// before is the interval that positions of an output need of an input dimension of extent n, be they
// computed one at a time: where windows leave gaps, the gaps are not among it.
func before(s set, a model.Access, n int64) set {
	if len(s) == 0 {
		return nil
	}
	if a.Full {
		return set{{Lo: 0, Hi: n}}
	}
	var all set
	add := func(iv model.Interval) {
		if r := a.Range(iv, n); r.Len() > 0 {
			all = append(all, r)
		}
	}
	for _, iv := range s {
		if a.B-a.A+1 >= a.Num {
			add(iv)
			continue
		}
		for lo := iv.Lo; lo < iv.Hi; lo++ {
			add(model.Interval{Lo: lo, Hi: lo + 1})
		}
	}
	return union(all)
}

// union returns the union of intervals.
func union(all set) set {
	slices.SortFunc(all, func(x, y model.Interval) int { return int(x.Lo - y.Lo) })
	merged := all[:0]
	for _, iv := range all {
		if k := len(merged) - 1; k >= 0 && iv.Lo <= merged[k].Hi {
			merged[k].Hi = max(merged[k].Hi, iv.Hi)
		} else {
			merged = append(merged, iv)
		}
	}
	return merged
}

// box is a product of sets, one per dimension.
type box []set

func (b box) elements() int64 {
	if b == nil {
		return 0
	}
	n := int64(1)
	for _, s := range b {
		n *= s.size()
	}
	return n
}

func whole(s model.Shape) box {
	b := make(box, len(s))
	for d, n := range s {
		b[d] = set{{Lo: 0, Hi: n}}
	}
	return b
}

// needs gives for each tensor elements that every schedule computes or reads at least once, in whatever groups and
// pieces: those of the network's outputs, and what they need. Of what several readers need it has the union of those
// whose needs make a box together, unless they are to stay apart. What is needed beside is no box.
func needs(g *model.Graph, apart bool) ([]box, []*turned) {
	need := make([]box, len(g.Tensors))
	for _, t := range g.Outputs {
		if g.Tensor(t).Producer != model.NoOp { // else it stays where it is
			need[t] = whole(g.Tensor(t).Shape)
		}
	}
	return need, goBack(g, need, len(g.Ops)-1, apart, nil)
}

// largest returns the largest of some boxes, the first of equal ones, after pairs that differ along one dimension have
// become their union, the first such pair ahead, unless they are to stay apart.
func largest(boxes []box, apart bool) (most box) {
	for i := 0; i < len(boxes) && !apart; i++ {
		for j := range i {
			if sum, ok := joined(boxes[j], boxes[i]); ok {
				boxes[j] = sum
				boxes = slices.Delete(boxes, i, i+1)
				i = j - 1 // it may join those before it now
				break
			}
		}
	}
	for _, b := range boxes {
		if b.elements() > most.elements() {
			most = b
		}
	}
	return most
}

// joined returns the union of two boxes, if they differ along one dimension at most.
func joined(x, y box) (sum box, ok bool) {
	differ := -1
	for d := range x {
		if !slices.Equal(x[d], y[d]) {
			if differ >= 0 {
				return nil, false
			}
			differ = d
		}
	}
	sum = slices.Clone(x)
	if differ >= 0 {
		sum[differ] = union(slices.Concat(x[differ], y[differ]))
	}
	return sum, true
}

// goBack adds to the elements that are needed of some tensors what these need, of operators up to
// the one numbered last, without what skip names by operator, output and input, if it is not nil. It returns what
// is needed of tensors that is no box.
func goBack(g *model.Graph, need []box, last int, apart bool, skip func(op, out, in int) bool) []*turned {
	boxes := make([][]box, len(need)) // by reader
	turns := make([]*turned, len(need))
	for t, b := range need {
		if b.elements() > 0 {
			boxes[t] = []box{b}
		}
	}
	for i := last; i >= 0; i-- {
		op := g.Ops[i]
		for out, o := range op.Outputs {
			need[o] = largest(boxes[o], apart)
			if need[o] == nil {
				continue
			}
			for k, in := range op.Inputs {
				if skip != nil && skip(i, out, k) {
					continue
				}
				t := g.Tensor(in)
				b := make(box, len(t.Shape))
				driven := map[int]bool{}
				for d, a := range g.Access(op, out, k) {
					s := set{{Lo: 0, Hi: 1}}
					if !a.Full {
						s = need[o][a.Out]
						if driven[a.Out] { // two dimensions of one: not a product
							s = nil
						}
						driven[a.Out] = true
					}
					b[d] = before(s, a, t.Shape[d])
				}
				acc, shape := g.Access(op, out, k), g.Tensor(o).Shape
				reshaped(b, acc, t.Shape, need[o], shape)
				if b.elements() > 0 {
					boxes[in] = append(boxes[in], b)
				}
				if apart {
					continue
				}
				r := turns[o]
				if r == nil {
					r = &turned{box: need[o]}
				} else if more := r.read(acc, t.Shape, shape); more.elements() > 0 {
					boxes[in] = append(boxes[in], more)
				}
				if next := r.move(acc, t.Shape, shape); next.elements() > max(b.elements(), turns[in].elements()) {
					turns[in] = next
				}
			}
		}
	}
	for _, t := range g.Tensors {
		if t.Producer == model.NoOp {
			need[t.ID] = largest(boxes[t.ID], apart)
		}
	}
	return turns
}

// reshaped corrects the dimensions of b that several of an output drive together, or that one drives together with
// others: to those positions of the outermost whose elements are all needed, else to one element that is.
func reshaped(b box, acc []model.Access, in model.Shape, need box, out model.Shape) {
	for k := 0; k < len(b); k++ {
		a, first := acc[k], k
		if a.To == 0 {
			continue
		}
		for k+1 < len(b) && acc[k+1].From == a.From && acc[k+1].To == a.To {
			k++
		}
		inner := in[first+1 : k+1].Elements()
		elements := flat(need[a.From:a.To], out[a.From:a.To])
		var rows set
		for _, iv := range elements {
			if r := (model.Interval{Lo: (iv.Lo + inner - 1) / inner, Hi: iv.Hi / inner}); r.Len() > 0 {
				rows = append(rows, r)
			}
		}
		if rows != nil {
			b[first] = rows
			for d := first + 1; d <= k; d++ {
				b[d] = set{{Lo: 0, Hi: in[d]}}
			}
			continue
		}
		at := elements[0].Lo
		for d := k; d >= first; d-- {
			b[d] = set{{Lo: at % in[d], Hi: at%in[d] + 1}}
			at /= in[d]
		}
	}
}

// flat lists the elements of a box that is not empty by their number in a shape.
func flat(b box, shape model.Shape) set {
	list := set{{Lo: 0, Hi: 1}}
	for d, s := range b {
		n := shape[d]
		var next set
		add := func(iv model.Interval) {
			if k := len(next) - 1; k >= 0 && next[k].Hi == iv.Lo {
				next[k].Hi = iv.Hi
			} else {
				next = append(next, iv)
			}
		}
		for _, iv := range list {
			if s.size() == n {
				add(model.Interval{Lo: iv.Lo * n, Hi: iv.Hi * n})
				continue
			}
			for at := iv.Lo; at < iv.Hi; at++ {
				for _, part := range s {
					add(model.Interval{Lo: at*n + part.Lo, Hi: at*n + part.Hi})
				}
			}
		}
		list = next
	}
	return list
}
