package scheduler

import (
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
)

// rewritten is the graph that oneKernel schedules: an operator for each attention, scans and group normalisations in
// parts unless layers are to be lines, and feed-forwards in slices if asked for. A graph with parts stays, since they
// can't be found again.
func rewritten(g *model.Graph, spec *hardware.Spec, lines, sliced bool) (*model.Graph, error) {
	if g.Together != nil {
		return g, nil
	}
	made, _, err := simplify.FuseAttention(g)
	if err == nil && sliced {
		if parts := SlicesOf(made, spec); parts != nil {
			made, err = simplify.Slice(made, parts)
		}
	}
	if err == nil && !lines {
		made, err = simplify.TakeApart(made, splitsNorm(made, spec), scanParts(made, spec))
	}
	if err == nil && made != g {
		made.Remember()
	}
	return made, err
}

// SlicesOf is the number of slices that each feed-forward is cut into; nil: none is. Those are cut for which it pays. A
// slice of the rows that run at a time fits the L1s.
func SlicesOf(g *model.Graph, spec *hardware.Spec) (parts []int64) {
	cut := false
	for _, f := range simplify.FeedForwards(g) {
		n := int64(1)
		if f.Pays(g, schedule.LargestRoom(spec)) {
			n = f.Parts(g, schedule.AllDataBytes(spec), matrixRows(spec))
		}
		parts, cut = append(parts, n), cut || n > 1
	}
	if !cut {
		return nil
	}
	return parts
}

// matrixRows is the number of elements along the reduction that a matrix unit takes at a time.
func matrixRows(spec *hardware.Spec) int64 {
	n := int64(1)
	for _, ct := range spec.Together() {
		for _, u := range ct.Units {
			n = max(n, int64(u.Rows))
		}
	}
	return n
}

// splitsNorm says of which group normalisations there are fewer parts than cores, or larger ones than fit the L1.
func splitsNorm(g *model.Graph, spec *hardware.Spec) func(*model.Op) bool {
	return func(op *model.Op) bool {
		x := g.Tensor(op.Inputs[0])
		n, bytes := x.Shape[0], x.Bytes()/x.Shape[0]
		if op.Attr.Group == x.Shape[1] {
			n *= op.Attr.Group
		}
		return 2*n <= schedule.CoresWithLB(spec) || 2*bytes/op.Attr.Group > schedule.DataBytes(spec)
	}
}

// scanParts says into how many parts a scan is cut, so that what each needs and makes fits the L1s.
func scanParts(g *model.Graph, spec *hardware.Spec) func(*simplify.Scan) int64 {
	return func(s *simplify.Scan) int64 {
		out := g.Tensor(s.Outputs[0])
		box := model.Whole(out.Shape)
		cores, forbidden := schedule.One(len(box)), schedule.Forbidden(g, s.Ops, out.ID)
		var dims []int
		for _, d := range out.Layout {
			if !forbidden[d] {
				dims = append(dims, d)
			}
		}
		schedule.SpreadOver(cores, box, dims, schedule.CoresWithLB(spec))
		reg := schedule.Regions{out.ID: schedule.Slice(box, cores, out.Layout, 0)}
		passes := out.DType.Bytes(reg[out.ID].Elements())
		schedule.BackPropagate(g, s.Ops, reg)
		for _, t := range s.Inputs {
			passes += g.Tensor(t).DType.Bytes(reg[t].Elements())
		}
		room := schedule.DataBytes(spec)
		for _, id := range s.Ops {
			if op := g.Op(id); op.Kind == "CumSum" { // the sums of the part before, and of this one
				room -= 2 * schedule.Align(g.Tensor(op.Outputs[0]).DType.Bytes(reg[op.Outputs[0]].Elements()/s.Length))
			}
		}
		return (passes + max(1, room/2) - 1) / max(1, room/2)
	}
}

// Rewrite makes the draft one of the rewritten graph.
func (d *Draft) Rewrite(sliced bool) error {
	g, err := rewritten(d.Graph, d.Spec, d.Options.Lines, sliced)
	if err != nil {
		return err
	}
	if d.Graph = g; d.Memo != nil {
		d.Memo = schedule.NewMemo() // the other is of the network's graph
	}
	return nil
}

// RewriteNorms is Rewrite where the rewritten graph has group normalisations in passes.
func (d *Draft) RewriteNorms() error {
	splits := splitsNorm(d.Graph, d.Spec)
	if d.Options.Lines ||
		!slices.ContainsFunc(d.Graph.Ops, func(op *model.Op) bool { return op.Kind == "GroupNorm" && splits(op) }) {
		return nil
	}
	return d.Rewrite(false)
}
