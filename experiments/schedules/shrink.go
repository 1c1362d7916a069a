package schedules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// partOf is the graph of some operators. What they read of others becomes an input, and what others read of them, or
// nobody, an output.
func partOf(g *model.Graph, keep []model.OpID) (*model.Graph, error) {
	b := model.NewBuilder(g.Name)
	made := map[model.TensorID]model.TensorID{}
	in := map[model.OpID]bool{}
	for _, id := range keep {
		in[id] = true
	}
	var outputs []model.TensorID
	for _, op := range g.Ops {
		if !in[op.ID] {
			continue
		}
		var inputs []model.TensorID
		for _, id := range op.Inputs {
			if _, there := made[id]; !there {
				switch t := g.Tensor(id); {
				case t.Learned:
					made[id] = b.Param(t.Name, t.DType, t.Shape...)
				case t.Role == model.Constant:
					made[id] = b.Const(t.Name, t.DType, t.Ints, t.Shape...)
				default:
					made[id] = b.Input(t.Name, t.DType, t.Shape...)
				}
			}
			inputs = append(inputs, made[id])
		}
		var names []string
		for _, id := range op.Outputs {
			names = append(names, g.Tensor(id).Name)
		}
		results := b.OpNamed(op.Kind, op.Name, *op.Attr, inputs, names)
		if b.Err() != nil || len(results) != len(op.Outputs) {
			return nil, cmp.Or(b.Err(), fmt.Errorf("%q has %d outputs, expected %d", op.Name, len(results), len(op.Outputs)))
		}
		for k, id := range op.Outputs {
			made[id] = results[k]
			readers := g.Tensor(id).Consumers
			outside := func(c model.OpID) bool { return !in[c] }
			if g.IsOutput(id) || len(readers) == 0 || slices.ContainsFunc(readers, outside) {
				outputs = append(outputs, results[k])
			}
		}
	}
	b.Output(outputs...)
	return b.Build()
}

// shrink leaves out parts of a list as long as what is left still fails, and as tests are left: first halves, then
// smaller parts, at last single elements (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input,
// IEEE Transactions on Software Engineering 28, 2002). minimal: the list fails no more without any one of its elements.
func shrink[T any](list []T, tests int, fails func([]T) (bool, error)) (small []T, minimal bool, err error) {
	for parts := 2; len(list) > 1; {
		size := (len(list) + parts - 1) / parts
		smaller := false
		for from := 0; from < len(list) && !smaller; from += size {
			to := min(from+size, len(list))
			tries := [][]T{slices.Clone(list[from:to]), append(slices.Clone(list[:from]), list[to:]...)}
			if parts == 2 {
				tries = tries[:1] // the rest is the other half
			} else if size == 1 {
				tries = tries[1:]
			}
			for k, try := range tries {
				if tests == 0 {
					return list, false, nil
				}
				tests--
				bad, err := fails(try)
				if err != nil {
					return nil, false, err
				}
				if bad {
					list, smaller = try, true
					if parts = max(2, parts-1); k == 0 && parts > 2 {
						parts = 2
					}
					break
				}
			}
		}
		if !smaller {
			if size == 1 {
				return list, true, nil
			}
			parts = min(len(list), 2*parts)
		}
	}
	return list, true, nil
}
