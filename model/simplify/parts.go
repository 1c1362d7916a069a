package simplify

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// ReadParts makes an input of each part of a network's input, in a copy of a graph, where slices and splits alone read
// it, with unit steps, all elements of the batch and no element twice. A kernel loads boxes of an input from where they
// lie in the DDR, so that a part need not be copied first. The input itself stays in the list, without a reader.
func ReadParts(g *model.Graph) (*model.Graph, error) {
	e := newEditor(g)
	for k := 0; k < len(e.g.Inputs); k++ {
		parts := e.parts(e.g.Inputs[k])
		for _, t := range parts {
			e.dead[t.Producer] = true
			t.Role, t.Producer = model.Input, model.NoOp
			e.g.Inputs = append(e.g.Inputs, t.ID)
		}
		if len(parts) > 0 && k >= len(g.Inputs) { // a part of which others are read
			e.g.Inputs = slices.Delete(e.g.Inputs, k, k+1)
			k--
		}
	}
	return e.g, e.commit()
}

// parts are the results of the operators that read an input, if each may be an input in its place.
func (e *editor) parts(id model.TensorID) (parts []*model.Tensor) {
	x := e.g.Tensor(id)
	var seen []model.Region
	for _, reader := range x.Consumers {
		op := e.g.Op(reader)
		if op.Kind != "Split" && !isBox(op) {
			return nil
		}
		for k, out := range op.Outputs {
			t := e.g.Tensor(out)
			if len(t.Consumers) == 0 && !e.isOutput[out] {
				continue
			}
			r := e.g.InputRegion(op, k, 0, model.Whole(t.Shape))
			twice := slices.ContainsFunc(seen, func(other model.Region) bool { return r.Overlap(other) > 0 })
			if e.isOutput[out] || twice || r.Elements() == 0 || t.Shape[0] != x.Shape[0] {
				return nil
			}
			parts, seen = append(parts, t), append(seen, r)
		}
	}
	return parts
}
