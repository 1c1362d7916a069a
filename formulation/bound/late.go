package bound

import (
	"context"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// late gives for each of some cuts, but for the end, the bytes of constants that products use after the last needed
// element of the cut is there for the first time: products of which each of these elements is needed by some element,
// and so by all along the dimensions on which what they need of the cut does not depend. Operators of which some
// elements need nothing of an operand hand nothing on.
func (w *work) late(ctx context.Context, cuts []int) []float64 {
	g := w.g
	bytes := make([]float64, len(cuts))
	whole := w.whole()
	for i, op := range g.Ops {
		if ctx.Err() != nil {
			break // the caller asks, too
		}
		if !g.OnMatrixUnit(op) || len(op.Outputs) > 1 || w.need[op.Outputs[0]].elements() == 0 {
			continue
		}
		out := op.Outputs[0]
		need := make([]box, len(g.Tensors))
		need[out] = w.need[out]
		skip := func(op, out, in int) bool { return w.gap(op, out, in) || op == i && comesLate(g, g.Ops[i], in) }
		goBack(g, need, i, w.apart, skip)
		matters := w.matters(i, skip)
		for at, c := range cuts {
			if c >= i || len(g.Ops[c].Outputs) > 1 {
				continue
			}
			t := g.Ops[c].Outputs[0]
			if w.turns[t] != nil { // more of it is needed
				continue
			}
			if need[t].elements() == 0 || !slices.EqualFunc(need[t], w.need[t], slices.Equal[set]) {
				continue
			}
			full, turn := w.free(op, matters[t])
			needed := whole(i, full, false)
			for k, in := range op.Inputs {
				direct := !turn || k == 1 && w.turns[out].read(g.Access(op, 0, k), g.Tensor(in).Shape, g.Tensor(out).Shape) != nil
				r := &w.reads[i][k] // of all slices
				if w.weights[in] > 0 && len(g.Tensor(in).Consumers) == 1 && direct && (needed(in) ||
					r.parts != 0 && r.pull(full)|r.parts|ones(g.Tensor(in).Shape) == 1<<len(r.full)-1) {
					bytes[at] += w.weights[in]
				}
			}
		}
	}
	return bytes
}

// free gives the dimensions of a product's output along which there are all positions for each along those that
// matter; turn: of its turned box, one at a time.
func (w *work) free(op *model.Op, matters uint64) (full uint64, turn bool) {
	out := op.Outputs[0]
	shape, need, r := w.g.Tensor(out).Shape, w.need[out], w.turns[out]
	if turn = r != nil && len(op.Inputs) == 2; turn {
		for d := range shape {
			block := d >= r.from && d < r.to
			turn = turn && (block && matters>>d&1 == 0 || !block && slices.Equal(r.box[d], need[d]))
		}
	}
	for d, s := range need {
		if turn && d >= r.from && d < r.to {
			s = along(r.flat, shape[r.from:r.to], d-r.from)
		}
		if d < 63 && matters>>d&1 == 0 && s.size() == shape[d] {
			full |= 1 << d
		}
	}
	return full, turn
}

// A span of a tensor's dimension is what an element of another tensor needs of it: all, or the position that it has
// along one of its own dimensions, or what depends on those of its dimensions that of has.
type span struct {
	of        uint64
	all, same bool
}

// has reports whether an element that needs x of a tensor needs with it whatever it needs by y.
func has(x, y []span) bool {
	for d := range x {
		if !x[d].all && (!x[d].same || !y[d].same || x[d].of != y[d].of) {
			return false
		}
	}
	return true
}

// matters gives for each tensor the dimensions of an operator's output on which it depends what
// an element needs of the tensor, by what is not skipped.
func (w *work) matters(b int, skip func(op, out, in int) bool) []uint64 {
	g := w.g
	of := make([][]span, len(g.Tensors)) // by dimension of the tensor; nil: it is not needed
	start := make([]span, len(g.Tensor(g.Ops[b].Outputs[0]).Shape))
	for d := range start {
		start[d] = span{of: 1 << min(d, 63), same: d < 63}
	}
	of[g.Ops[b].Outputs[0]] = start
	for i := b; i >= 0; i-- {
		op := g.Ops[i]
		for out, o := range op.Outputs {
			if of[o] == nil {
				continue
			}
			for k, in := range op.Inputs {
				if skip(i, out, k) {
					continue
				}
				acc := g.Access(op, out, k)
				mine := make([]span, len(acc))
				for d, a := range acc {
					switch {
					case a.To > 0:
						mine[d].all = true
						for _, s := range of[o][a.From:a.To] {
							mine[d].of |= s.of
							mine[d].all = mine[d].all && s.all
						}
					case a.Full:
						mine[d].all = true
					case a.Num == 1 && a.Den == 1 && a.A == 0 && a.B == 0 &&
						g.Tensor(o).Shape[a.Out] == g.Tensor(in).Shape[d]:
						mine[d] = of[o][a.Out]
					default:
						mine[d].of = of[o][a.Out].of
					}
				}
				switch old := of[in]; {
				case old == nil || has(mine, old):
					of[in] = mine
				case !has(old, mine):
					for d, s := range old {
						mine[d] = span{s.of | mine[d].of, s.all && mine[d].all, s.same && mine[d].same && s.of == mine[d].of}
					}
					of[in] = mine
				}
			}
		}
	}
	all := make([]uint64, len(g.Tensors))
	for t, spans := range of {
		for _, s := range spans {
			all[t] |= s.of
		}
	}
	return all
}

// gap reports whether some elements of an operator's output need nothing of an input.
func (w *work) gap(op, out, in int) bool {
	return w.reads[op][out*len(w.g.Ops[op].Inputs)+in].empty != 0
}
