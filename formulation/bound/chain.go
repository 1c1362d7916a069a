package bound

import (
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A link is a read of one operator's result by another.
type link struct {
	from   model.OpID
	fused  bool           // the two may be in one layer
	late   bool           // the reader's products need not wait for it
	gaps   uint64         // dimensions of the reader's output of which some elements need nothing
	access []model.Access // nil if the reader has several outputs
}

// light reports whether an operator may join the layer of one that it reads; see [schedule.Layers].
func light(op *model.Op) bool {
	c := op.Class()
	return (c == model.ElementwiseClass || c == model.InjectiveClass || c == model.ViewClass) &&
		op.Kind != "Gather" && op.Kind != "Concat" && len(op.Outputs) == 1
}

// link finds the links, and takes the work off operators of which a core's part may be
// less than a share: those before a Pad in one layer.
func (w *work) link() {
	g := w.g
	w.links = make([][]link, len(g.Ops))
	w.uneven = make([]bool, len(g.Ops))
	beside := make([]bool, len(g.Ops)) // likewise, in layers without products
	for i := len(g.Ops) - 1; i >= 0; i-- {
		op := g.Ops[i]
		for k, in := range op.Inputs {
			t := g.Tensor(in)
			p := t.Producer
			if p == model.NoOp || w.need[in].elements() == 0 {
				continue
			}
			l := link{from: p, late: comesLate(g, op, k),
				fused: w.joins(op, t) && !w.around(int(p), i) || w.hidden[p] && (w.hidden[i] || w.sliced[i])}
			pure := true
			for out, o := range op.Outputs {
				shape := g.Tensor(o).Shape
				access := g.Access(op, out, k)
				if len(op.Outputs) == 1 {
					l.access = access
				}
				for d, a := range access {
					if a.Full {
						continue
					}
					n, last := t.Shape[d], shape[a.Out]-1
					if a.Range(model.Interval{Hi: 1}, n).Len() == 0 || a.Range(model.Interval{Lo: last, Hi: last + 1}, n).Len() == 0 {
						l.gaps |= 1 << min(a.Out, 63)
					}
					pure = pure && even(a, n, shape)
				}
			}
			if l.fused && light(op) && (!pure || w.uneven[i]) {
				w.uneven[p] = true
			}
			if w.may != lines && (!pure || beside[i]) && !g.OnMatrixUnit(op) && !g.OnMatrixUnit(g.Op(p)) {
				beside[p] = true
			}
			w.links[i] = append(w.links[i], l)
		}
	}
	for i, u := range w.uneven {
		if u || beside[i] || w.hidden[i] && g.Ops[i].Kind == "Split" { // slices have none
			w.ops[i] = [numUnits]float64{}
		}
	}
}

// around reports whether a path from an operator to another one passes a product between the two. Then they are in
// different layers, since the product's is behind the first and in front of the second.
func (w *work) around(from, to int) bool {
	g := w.g
	if w.may == lines || len(g.Ops[to].Inputs) < 2 || len(g.Tensor(g.Ops[from].Outputs[0]).Consumers) < 2 {
		return false
	}
	const (
		behind  = 1 + iota // from
		through            // a product
	)
	reached := map[model.OpID]int{model.OpID(from): behind}
	for i := from + 1; i <= to; i++ {
		at := 0
		for _, in := range g.Ops[i].Inputs {
			at = max(at, reached[g.Tensor(in).Producer])
		}
		if at == behind && i < to && g.OnMatrixUnit(g.Ops[i]) {
			at = through
		}
		if at > 0 {
			reached[model.OpID(i)] = at
		}
	}
	return reached[model.OpID(to)] == through
}

// best is the longest time of a path to an operator, by the unit that its last layer is counted on.
type best [numUnits]float64

func all(t float64) best { return best{t, t, t} }

func (b best) most() float64 { return max(b[matrix], b[vector], b[special]) }

// chain is the longest path through the operators, in seconds. release[i] is when operator i
// can start at the earliest, and after what must pass behind it.
//
// A layer begins when those that it reads have ended, and kernels run one at a time. So along a path the times of the
// layers add up, where a layer takes at least what each of its units takes. Which operators share a layer is not known:
// all that can do. The unit that is counted may change only where a layer must begin.
//
// Where a piece of an operator may need nothing of what it reads (a Concat, of which a piece can lie in one operand),
// the path goes on without it, and counts again from where all of that dimension is needed.
//
// Of operators that are not in a part of the network, unless that is nil, nothing counts.
func (w *work) chain(release, after []float64, in *part) float64 {
	g := w.g
	type open struct {
		gaps uint64
		t    float64
	}
	solid := make([]best, len(g.Ops))
	pending := make([][]open, len(g.Ops))
	longest, early := 0.0, 0.0
	for i := range g.Ops {
		if in != nil && !in.ops[i] || !w.needed(i) {
			continue
		}
		at := all(release[i])
		reach := func(l *link, from best) {
			for u := range at {
				if u != matrix || !l.late {
					at[u] = math.Max(at[u], from[u])
				}
			}
		}
		pend := func(gaps uint64, t float64) {
			for k, p := range pending[i] {
				if p.gaps == gaps {
					pending[i][k].t = math.Max(p.t, t)
					return
				}
			}
			pending[i] = append(pending[i], open{gaps, t})
		}
		if in != nil && i == in.to && w.begins(i) {
			at = all(math.Max(release[i], early))
		}
		for k := range w.links[i] {
			l := &w.links[i][k]
			if in != nil && !in.ops[l.from] {
				continue
			}
			from := solid[l.from]
			switch {
			case l.gaps != 0 && !l.fused:
				pend(l.gaps, from.most())
			case l.gaps != 0:
			case l.fused && !w.hidden[i] && !light(g.Ops[i]) && !g.OnMatrixUnit(g.Ops[i]): // no product is in its layer
				for u := range from {
					from[u] = math.Max(from[u], from[matrix])
				}
				reach(l, from)
			case l.fused:
				reach(l, from)
			default:
				reach(l, all(from.most()))
			}
			for _, p := range pending[l.from] {
				gaps := l.gaps
				if l.access == nil {
					gaps |= p.gaps
				}
				for d, a := range l.access {
					switch {
					case p.gaps>>min(d, 63)&1 == 0:
					case a.To > 0:
						gaps |= 1<<min(a.To, 63) - 1<<min(a.From, 63)
					case !a.Full:
						gaps |= 1 << min(a.Out, 63)
					}
				}
				if gaps != 0 {
					pend(gaps, p.t)
					continue
				}
				reach(l, all(p.t))
			}
		}
		for u := range at {
			at[u] += w.ops[i][u]
		}
		at[matrix] += w.tail[i]
		solid[i] = at
		t := at.most()
		for _, p := range pending[i] {
			t = math.Max(t, p.t)
		}
		longest = math.Max(longest, t+after[i])
		if in != nil {
			early = math.Max(early, t+in.before[i])
		}
	}
	return longest
}

// A part is some operators all of whose paths pass one, to.
type part struct {
	ops []bool
	to  int
	// before has for each of ops what must pass between it and to.
	before []float64
}

// needed reports whether some element of an operator's outputs is.
func (w *work) needed(i int) bool {
	return slices.ContainsFunc(w.g.Ops[i].Outputs, func(o model.TensorID) bool { return w.need[o].elements() > 0 })
}

// total is the sum over all operators of what each unit takes.
func (w *work) total() [numUnits]float64 {
	var sum [numUnits]float64
	for _, op := range w.ops {
		for u, t := range op {
			sum[u] += t
		}
	}
	return sum
}
