package bound

import (
	"context"
	"slices"
)

// late gives for each cut of a row, but for the end, the bytes of constants that products use
// after the last needed element of the cut is there for the first time: products of which each
// of these elements is needed by some element, and so by all along the dimensions on
// which what they need of the cut does not depend. Operators of which some elements need nothing of
// an operand hand nothing on.
func (w *work) late(ctx context.Context, row []cut) []float64 {
	g := w.g
	bytes := make([]float64, len(row))
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
		skip := func(op, out, in int) bool { return w.gap(op, out, in) || op == i && in > 1 } // a bias may come later
		goBack(g, need, i, w.apart, skip)
		matters := w.matters(i, skip)
		for k, c := range row {
			if int(c.op) >= i || len(g.Op(c.op).Outputs) > 1 {
				continue
			}
			t := g.Op(c.op).Outputs[0]
			if need[t].elements() == 0 || !slices.EqualFunc(need[t], w.need[t], slices.Equal[set]) {
				continue
			}
			full := uint64(0)
			for d, s := range w.need[out] {
				if d < 63 && matters[t]>>d&1 == 0 && s.size() == g.Tensor(out).Shape[d] {
					full |= 1 << d
				}
			}
			needed := whole(i, full, false)
			for _, in := range op.Inputs {
				if w.weights[in] > 0 && len(g.Tensor(in).Consumers) == 1 && needed(in) {
					bytes[k] += w.weights[in]
				}
			}
		}
	}
	return bytes
}

// matters gives for each tensor the dimensions of an operator's output on which it depends what
// an element needs of the tensor, by what is not skipped.
func (w *work) matters(b int, skip func(op, out, in int) bool) []uint64 {
	g := w.g
	of := make([][]uint64, len(g.Tensors)) // by dimension of the tensor; nil: it is not needed
	all := make([]uint64, len(g.Tensors))
	start := make([]uint64, len(g.Tensor(g.Ops[b].Outputs[0]).Shape))
	for d := range start {
		start[d] = 1 << min(d, 63)
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
				if of[in] == nil {
					of[in] = make([]uint64, len(acc))
				}
				for d, a := range acc {
					switch {
					case a.To > 0:
						for _, m := range of[o][a.From:a.To] {
							of[in][d] |= m
						}
					case !a.Full:
						of[in][d] |= of[o][a.Out]
					}
					all[in] |= of[in][d]
				}
			}
		}
	}
	return all
}

// gap reports whether some elements of an operator's output need nothing of an input.
func (w *work) gap(op, out, in int) bool {
	return w.reads[op][out*len(w.g.Ops[op].Inputs)+in].empty != 0
}
