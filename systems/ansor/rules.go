package ansor

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Sketch is the form of a nest without its factors.
type Sketch struct {
	ColumnsFirst bool `json:"columns_first,omitempty"`
	// Stay asks for weights that stay, where there is room.
	Stay          bool            `json:"stay,omitempty"`
	Vector, Store schedule.Attach `json:",omitempty"`
}

// A Derivation is a rule that was applied to an operator.
type Derivation struct{ Operator, Rule, Why string }

// derive applies the rules of the paper's Table 1 to a layer, consumers first, and gives the sketches that they leave;
// gathers: with a stage in the LLB. They ask how operators access tensors, not what they are.
func derive(s *schedule.Schedule, i int, l *lower.Loops) (sketches []Sketch, gathers bool, applied []Derivation) {
	st := &s.Steps[i]
	g, layer := s.Graph, &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	note := func(op *model.Op, rule, format string, args ...any) {
		applied = append(applied, Derivation{op.Name, rule, fmt.Sprintf(format, args...)})
	}
	tiled, fused := false, false
	for k := len(layer.Ops) - 1; k >= 0; k-- {
		op := g.Op(layer.Ops[k])
		in, out := reused(g, op)
		switch {
		case oneToOne(g, op) && len(layer.Ops) > 1 && op.ID != layer.Anchor:
			note(op, "inline", "each element of %q needs one of each input", g.Tensor(op.Outputs[0]).Name)
			fused = true
		case l.Dims.M > 0 && op.ID == layer.Anchor && in >= 0:
			note(op, "multi-level tiling", "%q is the same along %s", g.Tensor(op.Inputs[in]).Name,
				g.Tensor(op.Outputs[0]).DimName(out))
			tiled = true
		default:
			note(op, "skip", "no input is the same along a dimension of the output, or no unit keeps it")
		}
	}
	if !tiled {
		return []Sketch{{Store: schedule.AtTile}}, false, applied
	}
	anchor := g.Op(layer.Anchor)
	for k, id := range anchor.Inputs {
		if d := misses(g, anchor, k); d >= 0 && passesInParts(s, st, id) {
			note(anchor, "cache stage",
				"%q is the same along %s and comes from the DDR: it may gather in the LLB, tile by tile or once", g.Tensor(id).Name,
				g.Tensor(anchor.Outputs[0]).DimName(d))
			gathers = true
			break
		}
	}
	places := []schedule.Attach{schedule.AtPiece}
	if fused || l.Vector.Total() > 0 {
		note(anchor, "tiling with fusion",
			"what follows needs one element each: it goes behind a piece, a tile of columns or a tile of rows")
		places = []schedule.Attach{schedule.AtPiece, schedule.AtColumns, schedule.AtTile}
	} else {
		note(anchor, "cache stage", "sums are added up in the L1 and leave it once")
	}
	stays := []bool{false}
	if l.Weights > 0 {
		note(anchor, "cache stage",
			"weights pass through the LLB, one or several tiles together, into %d bytes of the L1, and stay there or pass again",
			l.Buffer)
		stays = []bool{false, true}
	}
	for _, vector := range places {
		for _, store := range []schedule.Attach{schedule.AtColumns, schedule.AtTile} {
			if store < vector {
				continue
			}
			for _, stay := range stays {
				sketches = append(sketches, Sketch{Stay: stay, Vector: vector, Store: store})
				if l.Weights > 0 && store == schedule.AtColumns {
					sketches = append(sketches, Sketch{ColumnsFirst: true, Stay: stay, Vector: vector, Store: store})
				}
			}
		}
	}
	return sketches, gathers, applied
}

// passesInParts reports whether a step's input comes from the DDR tile by tile.
func passesInParts(s *schedule.Schedule, st *schedule.Step, id model.TensorID) bool {
	return s.Spec.LLB != nil && slices.ContainsFunc(st.Reads, func(r schedule.Read) bool {
		v := &s.Values[r.Value]
		return v.Tensor == id && v.Level == schedule.DDR && !st.Whole(&r)
	})
}

// oneToOne reports whether each element of the output needs at most one element of every
// input: the operator can be computed where its result is used.
func oneToOne(g *model.Graph, op *model.Op) bool {
	if len(op.Outputs) != 1 || len(op.Inputs) == 0 {
		return false
	}
	for k, id := range op.Inputs {
		for d, a := range g.Access(op, 0, k) {
			if g.Tensor(id).Shape[d] > 1 && (a.Full || a.Num != 1 || a.Den != 1 || a.A != a.B) {
				return false
			}
		}
	}
	return true
}

// reused finds an input that misses a dimension of the output: the same elements serve all along it. -1: none.
func reused(g *model.Graph, op *model.Op) (input, dim int) {
	for k := range op.Inputs {
		if d := misses(g, op, k); d >= 0 {
			return k, d
		}
	}
	return -1, -1
}

// misses is the first dimension of the output that an input misses, -1 if none.
func misses(g *model.Graph, op *model.Op, input int) int {
	for d, n := range g.Tensor(op.Outputs[0]).Shape {
		drives := n == 1
		for e, a := range g.Access(op, 0, input) {
			drives = drives || !a.Full && a.Out == d && g.Tensor(op.Inputs[input]).Shape[e] > 1
		}
		if !drives {
			return d
		}
	}
	return -1
}
