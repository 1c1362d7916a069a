package simplify

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A Repetition is a stretch of a sequence, from From to End, whose part of Period is repeated Times times, and at the
// end in part.
type Repetition struct{ From, Period, Times, End int }

const (
	// LeastTimes is how often a part must be repeated to count.
	LeastTimes = 6
	// longest is the most operators of a block: searching is in time linear in a network's length.
	longest = 512
)

// RepetitionOf finds the stretch of a sequence of n that covers most; Times is 0 if there is none. same compares two
// places of it.
func RepetitionOf(n int, same func(i, j int) bool) (best Repetition) {
	for period := 1; LeastTimes*period <= n && period <= longest; period++ {
		least := (LeastTimes - 1) * period // places as one period before, one of which is looked at in each such stretch
		for i := period + least - 1; i < n; i += least {
			from := i
			for ; from >= period && same(from, from-period); from-- {
			}
			for ; i < n && same(i, i-period); i++ {
			}
			x := Repetition{from + 1 - period, period, (i-from-1)/period + 1, i}
			if x.Times >= LeastTimes && x.Times*x.Period > best.Times*best.Period {
				best = x
			}
		}
	}
	return best
}

// Repeated finds the equal blocks of a network: their operators are alike, and read from as far before or the same.
func Repeated(g *model.Graph) Repetition {
	known, names := map[string]int{}, make([]int, len(g.Ops))
	for i, op := range g.Ops {
		key := op.Attr.AppendKey([]byte(op.Kind))
		for _, id := range slices.Concat(op.Inputs, op.Outputs) {
			t := g.Tensor(id)
			key = fmt.Append(key, t.Shape, t.DType, t.Role, t.Causal)
		}
		if _, there := known[string(key)]; !there {
			known[string(key)] = len(known)
		}
		names[i] = known[string(key)]
	}
	return RepetitionOf(len(names), func(i, j int) bool {
		if names[i] != names[j] {
			return false
		}
		for k, id := range g.Ops[i].Inputs {
			a, b := g.Tensor(id), g.Tensor(g.Ops[j].Inputs[k])
			if a != b && a.Producer != model.NoOp && int(a.Producer-b.Producer) != i-j {
				return false
			}
		}
		return true
	})
}

// Shorten is a network with so many of its equal blocks.
func Shorten(from *model.Graph, r Repetition, blocks int) (*model.Graph, error) {
	g := clone(from)
	first, end := r.From+blocks*r.Period, r.From+r.Times*r.Period
	away := func(p model.OpID) bool { return first <= int(p) && int(p) < end }
	kept := func(id model.TensorID) (in model.TensorID, ok bool) { // the block in place of one that goes
		p := g.Tensor(id).Producer
		at := int(p) - (end - first)
		if !away(p) || at < r.From {
			return id, !away(p)
		}
		return g.Ops[at].Outputs[slices.Index(g.Op(p).Outputs, id)], true
	}
	for _, op := range g.Ops[end:] {
		for k, id := range op.Inputs {
			in, ok := kept(id)
			if op.Inputs[k] = in; !ok {
				return nil, fmt.Errorf("operator %q reads from a block that others follow", op.Name)
			}
		}
	}
	g.Outputs = nil
	for _, id := range from.Outputs {
		if in, ok := kept(id); ok && !slices.Contains(g.Outputs, in) {
			g.Outputs = append(g.Outputs, in)
		}
	}
	g.Inputs = slices.DeleteFunc(g.Inputs, func(id model.TensorID) bool {
		return !slices.ContainsFunc(g.Tensor(id).Consumers, func(c model.OpID) bool { return !away(c) })
	})
	if err := g.Compact(func(op *model.Op) bool { return !away(op.ID) }); err != nil {
		return nil, err
	}
	g.Remember()
	return g, nil
}
