package bound

import (
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Group is a lower bound, in seconds, on all kernels of a group of operators on a cluster, without launches, however it
// is split and bound, in lines (Lemma 17): that of the network of these operators, of which what leaves is an output.
func Group(g *model.Graph, m *cost.Model, ops []model.OpID) (float64, error) {
	part, numbers := &model.Graph{Name: g.Name}, map[model.TensorID]model.TensorID{}
	number := func(list []model.TensorID) (own []model.TensorID) {
		for _, id := range list {
			if _, there := numbers[id]; !there {
				t := *g.Tensor(id)
				t.ID = model.TensorID(len(part.Tensors))
				numbers[id], part.Tensors = t.ID, append(part.Tensors, &t)
			}
			own = append(own, numbers[id])
		}
		return own
	}
	in, out := schedule.Boundary(g, ops)
	part.Inputs = number(in)
	for _, t := range part.Inputs {
		part.Tensor(t).Role = model.Input
	}
	for _, id := range ops {
		op := *g.Op(id)
		op.Inputs, op.Outputs = number(op.Inputs), number(op.Outputs)
		part.Ops = append(part.Ops, &op)
	}
	part.Outputs = number(out)
	if err := part.Finish(); err != nil {
		return 0, err
	}
	w, err := measure(part, m, 1, lines, nil, false)
	if err != nil {
		return 0, err
	}
	none := make([]float64, len(w.ops))
	return exact * max(best(w.total()).most(), w.series().all(), w.chain(none, none, nil)), nil
}
