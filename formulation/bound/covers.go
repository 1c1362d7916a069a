package bound

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Covers reports a layer for which the bounds do not hold. They do for a straight line of operators, each light one
// behind the one in front of it, whose result only it reads ([schedule.Layers] makes no others), and for operators
// without products that all run on one unit, of which each core's part reads no less than its share of each.
func Covers(s *schedule.Schedule) error {
	m, err := cost.New(s.Spec)
	if err != nil {
		return err
	}
	shared := !slices.ContainsFunc(m.Kinds(), func(k *cost.Model) bool { return !k.SharedVector() })
	for k, layers := range s.Layers {
		for _, l := range layers {
			if op := breaksLine(s.Graph, l); op != nil && !(shared && oneUnit(s.Graph, l)) {
				return fmt.Errorf(
					"group %q, layer %q: %q does not follow as the last light operator of a straight line, which the bound rests on",
					s.Grouping.Groups[k].Name, l.Name, op.Name)
			}
		}
	}
	return nil
}

// breaksLine is the first operator that does not go on a straight line of light ones.
func breaksLine(g *model.Graph, l schedule.Layer) *model.Op {
	for i, id := range l.Ops {
		if i == 0 {
			continue
		}
		op, before := g.Op(id), g.Op(l.Ops[i-1])
		if !light(op) || len(before.Outputs) != 1 {
			return op
		}
		if t := g.Tensor(before.Outputs[0]); len(t.Consumers) != 1 || t.Consumers[0] != id || g.IsOutput(t.ID) {
			return op
		}
	}
	return nil
}

// oneUnit reports whether a layer has no products and no operator that reads less of another one in it than its share.
func oneUnit(g *model.Graph, l schedule.Layer) bool {
	for _, id := range l.Ops {
		op := g.Op(id)
		if g.OnMatrixUnit(op) {
			return false
		}
		for k, in := range op.Inputs {
			if p := g.Tensor(in).Producer; p == model.NoOp || !slices.Contains(l.Ops, p) {
				continue
			}
			for out, o := range op.Outputs {
				for d, a := range g.Access(op, out, k) {
					if !even(a, g.Tensor(in).Shape[d], g.Tensor(o).Shape) {
						return false
					}
				}
			}
		}
	}
	return true
}

// even reports whether a core's share of an output needs at least the same share of what is
// needed of an input dimension of extent n.
func even(a model.Access, n int64, out model.Shape) bool {
	if a.Full {
		return true
	}
	clipped := a.A < 0 || (out[a.Out]-1)/a.Den*a.Num+a.B >= n
	return !clipped || a.A <= 0 && a.B+1 >= a.Num
}
