package fusion

import (
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// Single is a kernel of one loop nest, as compilers without stitching make them: its reduction leads, or the operator
// with most elements. ops are in execution order; again lists those whose results other kernels compute again. spread
// maps the nest's rows and elements per row to threads.
func Single(g *model.Graph, m *simt.Machine, ops, again []model.OpID,
	spread func(rows, cols int64) simt.Mapping) (Kernel, bool) {
	size := func(id model.OpID) int64 { return g.Tensor(g.Op(id).Outputs[0]).Shape.Elements() }
	leader := ops[0]
	for _, id := range ops[1:] {
		a, b := g.Op(leader).Class() == model.ReductionClass, g.Op(id).Class() == model.ReductionClass
		if b && !a || a == b && size(id) >= size(leader) {
			leader = id
		}
	}
	rows, cols := size(leader), int64(1)
	if op := g.Op(leader); op.Class() == model.ReductionClass {
		cols = max(1, g.Tensor(op.Inputs[0]).Shape.Elements()/rows)
	}
	k := Kernel{Groups: []Group{{Ops: ops, Dominant: leader, Mapping: spread(rows, cols)}}, Again: again}
	k.Block.Threads = k.Groups[0].Mapping.Threads
	for _, id := range ops {
		var seen []model.OpID
		for _, t := range g.Op(id).Inputs {
			p := g.Tensor(Root(g, t)).Producer
			if p != model.NoOp && slices.Contains(ops, p) && !slices.Contains(seen, p) {
				seen = append(seen, p)
				k.Links = append(k.Links, Link{From: p, To: id, Tensor: t, Scheme: Local})
			}
		}
	}
	return k, k.Price(g, m)
}
