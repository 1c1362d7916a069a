package schedule

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Classes numbers the operators of a graph; two have the same number if they do the same to tensors of the same shapes.
func Classes(g *model.Graph) []int {
	numbers := map[string]int{}
	list := make([]int, len(g.Ops))
	for i, op := range g.Ops {
		what := fmt.Sprintf("%s %+v", op.Kind, *op.Attr)
		for _, t := range op.Inputs {
			x := g.Tensor(t)
			what += fmt.Sprint(" i", x.Role, x.Shape, x.DType, x.Layout, x.Ints)
		}
		for _, t := range op.Outputs {
			x := g.Tensor(t)
			what += fmt.Sprint(" o", x.Shape, x.DType, x.Layout)
		}
		if _, there := numbers[what]; !there {
			numbers[what] = len(numbers)
		}
		list[i] = numbers[what]
	}
	return list
}

// roleRounds is the distance, in operators, of the farthest neighbours that a role depends on.
const roleRounds = 4

// Roles numbers the operators of a graph. Two have the same number if they do the same, and so do their neighbours, up
// to four operators away. Where blocks repeat, the operators in one place of all blocks have one role.
func Roles(g *model.Graph) []int {
	list := Classes(g)
	for range roleRounds {
		numbers, next := map[string]int{}, make([]int, len(list))
		var b []byte
		for i, op := range g.Ops {
			b = binary.AppendVarint(b[:0], int64(list[i]))
			for _, t := range op.Inputs {
				from := -1
				if p := g.Tensor(t).Producer; p != model.NoOp {
					from = list[p]
				}
				b = binary.AppendVarint(b, int64(from))
			}
			for _, t := range op.Outputs {
				var readers []int
				for _, c := range g.Tensor(t).Consumers {
					readers = append(readers, list[c]<<8|min(255, slices.Index(g.Op(c).Inputs, t)))
				}
				slices.Sort(readers)
				b = binary.AppendVarint(b, int64(len(readers)))
				for _, r := range readers {
					b = binary.AppendVarint(b, int64(r))
				}
			}
			if _, there := numbers[string(b)]; !there {
				numbers[string(b)] = len(numbers)
			}
			next[i] = numbers[string(b)]
		}
		list = next
	}
	return list
}

// AppendPattern appends to b what is equal for operators, listed in order, that do the same: their classes
// (see [Classes]), where their operands come from, and who else reads their results.
func AppendPattern(b []byte, g *model.Graph, ops []model.OpID, classes []int) []byte {
	at := make(map[model.TensorID]uint64, 2*len(ops)) // where a tensor comes from
	inside := make(map[model.OpID]bool, len(ops))
	for _, id := range ops {
		inside[id] = true
	}
	next := uint64(0)
	for _, id := range ops {
		op := g.Op(id)
		b = binary.AppendUvarint(b, uint64(classes[id]))
		for _, t := range op.Inputs {
			x := g.Tensor(t)
			if _, there := at[t]; !there {
				at[t] = next
				next++
			}
			b = binary.AppendUvarint(b, at[t])
			source := byte(0)
			if x.Producer == model.NoOp {
				source = 1
			}
			b = append(b, source)
		}
		for _, t := range op.Outputs {
			at[t] = next
			next++
			leaves := byte(0)
			for _, c := range g.Tensor(t).Consumers {
				if !inside[c] {
					leaves = 1
				}
			}
			if g.IsOutput(t) {
				leaves += 2
			}
			b = append(b, leaves)
		}
	}
	return b
}
