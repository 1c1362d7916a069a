package bound

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// turning is a random network of few elements: products, moves and reshapes that cut across rows, and sums.
func turning(r *rand.Rand) (*model.Graph, error) {
	b := model.NewBuilder("turning")
	pool := []model.TensorID{b.Input("x", model.F16, 1+r.Int64N(2), 1+r.Int64N(4), 1+r.Int64N(5))}
	for k := range 3 + r.IntN(8) {
		x := pool[len(pool)-1-r.IntN(min(2, len(pool)))]
		s := b.Tensor(x).Shape.Clone()
		n := len(s)
		name := fmt.Sprint("op", k)
		switch r.IntN(9) {
		case 0:
			x = b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".w", model.F16, s[n-1], 1+r.Int64N(6)))
		case 1:
			x = b.Op("Pad", name, model.Attr{Pads: []int64{0, r.Int64N(2), r.Int64N(2), 0, 0, r.Int64N(2)}}, x)
		case 2, 3:
			from, steps := make([]int64, n), []int64{1, 1, 1}
			for d := range s {
				from[d] = r.Int64N(min(s[d], 2))
				s[d] -= from[d] + r.Int64N(min(s[d]-from[d], 2))
			}
			x = b.Op("Slice", name, model.Attr{Starts: from, Steps: steps, Shape: s}, x)
		case 4, 5, 6:
			d := r.IntN(2)
			all := s[d] * s[d+1]
			for s[d] = 1 + r.Int64N(all); all%s[d] != 0; s[d]-- {
			}
			s[d+1] = all / s[d]
			x = b.Op("Reshape", name, model.Attr{Shape: s}, x)
		case 7:
			x = b.Op("Softmax", name, model.Attr{Axis: r.Int64N(3)}, x)
		case 8:
			for _, y := range pool {
				if y != x && slices.Equal(b.Tensor(y).Shape, s) {
					x = b.Op("Add", name, model.Attr{}, x, y)
					break
				}
			}
		}
		if !slices.Contains(pool, x) {
			pool = append(pool, x)
		}
	}
	b.Output(pool[len(pool)-1])
	return b.Build()
}

// elements lists a box's by their numbers in a shape.
func (b box) list(shape model.Shape) map[int64]bool {
	all := map[int64]bool{}
	if b.elements() > 0 {
		for _, iv := range flat(b, shape) {
			for at := iv.Lo; at < iv.Hi; at++ {
				all[at] = true
			}
		}
	}
	return all
}

// one is the box of one element.
func one(at int64, shape model.Shape) model.Region {
	r := make(model.Region, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		r[d] = model.Interval{Lo: at % shape[d], Hi: at%shape[d] + 1}
		at /= shape[d]
	}
	return r
}

// exactly adds all that elements of tensors need, one at a time, through operators up to the last.
func exactly(g *model.Graph, need []map[int64]bool, last int, skip func(op, out, in int) bool) {
	for i := last; i >= 0; i-- {
		op := g.Ops[i]
		for k, in := range op.Inputs {
			if skip(i, 0, k) {
				continue
			}
			for at := range need[op.Outputs[0]] {
				r := g.InputRegion(op, 0, k, one(at, g.Tensor(op.Outputs[0]).Shape))
				if r.Elements() == 0 {
					continue
				}
				b := make(box, len(r))
				for d, iv := range r {
					b[d] = set{iv}
				}
				for e := range b.list(g.Tensor(in).Shape) {
					need[in][e] = true
				}
			}
		}
	}
}

func nothing(g *model.Graph) []map[int64]bool {
	need := make([]map[int64]bool, len(g.Tensors))
	for t := range need {
		need[t] = map[int64]bool{}
	}
	return need
}

// What is counted as needed is, element by element; and elements of a product that do not differ along dimensions
// that matter need the same.
func TestTurnedNeeds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	turned, dropped, free := 0, 0, 0
	for n := range 3000 {
		g, err := turning(r)
		if err != nil {
			continue
		}
		need, turns := needs(g, false)
		truth := nothing(g)
		truth[g.Outputs[0]] = whole(g.Tensor(g.Outputs[0]).Shape).list(g.Tensor(g.Outputs[0]).Shape)
		exactly(g, truth, len(g.Ops)-1, func(int, int, int) bool { return false })
		for id, x := range g.Tensors {
			got := need[id].list(x.Shape)
			if turn := turns[id]; turn != nil {
				turned++
				count := int64(0)
				for at := range x.Shape.Elements() {
					in, e := true, one(at, x.Shape)
					number := int64(0)
					for d, iv := range e {
						if d >= turn.from && d < turn.to {
							number = number*x.Shape[d] + iv.Lo
						} else {
							in = in && slices.ContainsFunc(turn.box[d], func(s model.Interval) bool { return s.Lo <= iv.Lo && iv.Lo < s.Hi })
						}
					}
					if in && slices.ContainsFunc(turn.flat, func(s model.Interval) bool { return s.Lo <= number && number < s.Hi }) {
						got[at] = true
						count++
					}
				}
				if count != turn.elements() {
					t.Fatalf("network %d, tensor %q: %d elements of %+v, expected %d", n, x.Name, turn.elements(), turn, count)
				}
			}
			for at := range got {
				if !truth[id][at] {
					t.Fatalf("network %d, tensor %q %v: element %d counts as needed and is not", n, x.Name, x.Shape, at)
				}
			}
			if len(got) < len(truth[id]) {
				dropped++
			}
		}
		w := &work{g: g, need: need, turns: turns, reads: readings(g, make([]bool, len(g.Ops)))}
		for b, op := range g.Ops {
			if op.Kind != "MatMul" {
				continue
			}
			skip := func(op, out, in int) bool { return w.gap(op, out, in) }
			matters := w.matters(b, skip)
			shape := g.Tensor(op.Outputs[0]).Shape
			known := map[string][]map[int64]bool{}
			for at := range shape.Elements() {
				mine := nothing(g)
				mine[op.Outputs[0]][at] = true
				exactly(g, mine, b, skip)
				for id := range g.Tensors {
					if model.TensorID(id) == op.Outputs[0] || len(mine[id]) == 0 {
						continue
					}
					key := fmt.Sprint(id)
					for d, iv := range one(at, shape) {
						if matters[id]>>d&1 == 1 {
							key += fmt.Sprint(" ", d, iv.Lo)
						}
					}
					if other := known[key]; other == nil {
						known[key] = mine
					} else if free++; fmt.Sprint(other[id]) != fmt.Sprint(mine[id]) {
						t.Fatalf("network %d, operator %q, tensor %q: element %d needs %v, others that are the same where it matters %v",
							n, op.Name, g.Tensors[id].Name, at, mine[id], other[id])
					}
				}
			}
		}
	}
	t.Logf("%d turned boxes, %d tensors with more, %d pairs", turned, dropped, free)
	if turned < 100 || free < 1000 {
		t.Errorf("%d turned boxes and %d pairs, expected 100 and 1000", turned, free)
	}
}
