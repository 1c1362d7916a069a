package schedule

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Overwritable is the value in whose place in the L1 a step may put its result: the step reads it last of all, each
// core its own part. Either a layer without a product makes each row of the result of that row alone; or the value is
// added to a product, whose sums can be added up where it lies. rows is how many rows a core makes that no part of the
// step may cut; 0: each element follows from the one in its place. nil: there is none.
func (s *Schedule) Overwritable(st *Step) (from *Value, rows int64) {
	if len(st.Writes) != 1 || st.Nest != nil || st.Attending != nil {
		return nil, 0
	}
	to := &s.Values[st.Writes[0]]
	layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	params := int64(0)
	for i := range st.Params {
		params += st.Params[i].CoreBytes
	}
	// else they pass part by part
	small := params <= s.ParamBytes()
	for i := range st.Reads {
		r := &st.Reads[i]
		v := &s.Values[r.Value]
		if r.RemoteBytes > 0 || v.Def < 0 || v.Last != st.ID || !s.sameParts(v, to) {
			continue
		}
		rows, ok := s.rowsOf(layer, v, to)
		switch product := s.Graph.OnMatrixUnit(s.Graph.Op(layer.Anchor)); {
		case !ok || product && (rows > 0 || !s.added(layer, v.Tensor)) || !product && rows > 0 && !small:
		default:
			return v, rows
		}
	}
	return nil, 0
}

// added reports whether a layer adds a tensor to its product, with nothing but sums in between, and
// does not read it again.
func (s *Schedule) added(layer *Layer, t model.TensorID) bool {
	sum, found := s.Graph.Op(layer.Anchor).Outputs[0], false
	for _, id := range layer.Ops {
		op := s.Graph.Op(id)
		switch reads := slices.Contains(op.Inputs, t); {
		case reads && (found || id == layer.Anchor):
			return false
		case found || id == layer.Anchor:
		case op.Kind != "Add" || !slices.Contains(op.Inputs, sum):
			return false
		default:
			found, sum = reads, op.Outputs[0]
		}
	}
	return found
}

// sameParts reports whether each core holds the same part of two values, of as many bytes.
func (s *Schedule) sameParts(a, b *Value) bool {
	x, y := s.Graph.Tensor(a.Tensor), s.Graph.Tensor(b.Tensor)
	if a.CoreBytes != b.CoreBytes || !slices.Equal(a.Region, b.Region) || !a.Binding.Equal(b.Binding) ||
		!slices.Equal(x.Layout, y.Layout) || x.DType.Bits() != y.DType.Bits() {
		return false
	}
	for d, iv := range a.Region {
		if iv.Len()%a.Binding[d] != 0 {
			return false
		}
	}
	return true
}

// rowsOf is the number of rows of a value each core makes of the same rows of another, or 0 if each element
// follows from the one in its place; it is not ok if others are needed as well.
func (s *Schedule) rowsOf(layer *Layer, from, to *Value) (rows int64, ok bool) {
	g := s.Graph
	layout := g.Tensor(to.Tensor).Layout
	outer := len(layout) // dimensions of which a row has one element
	reached := map[model.TensorID]bool{from.Tensor: true}
	for _, id := range layer.Ops {
		op := g.Op(id)
		for i, in := range op.Inputs {
			if !reached[in] {
				continue
			}
			for o, out := range op.Outputs {
				shape := g.Tensor(out).Shape
				if !shape.Equal(g.Tensor(in).Shape) || !slices.Equal(g.Tensor(out).Layout, layout) {
					return 0, false
				}
				for d, a := range g.Access(op, o, i) {
					switch {
					case shape[d] == 1:
					case a.Full:
						outer = min(outer, slices.Index(layout, d))
					case a != model.Access{Out: d, Num: 1, Den: 1}:
						return 0, false
					}
				}
				reached[out] = true
			}
		}
	}
	if !reached[to.Tensor] || outer == len(layout) {
		return 0, reached[to.Tensor]
	}
	rows = 1
	for _, d := range layout[:outer] {
		rows *= to.Region[d].Len() / to.Binding[d]
	}
	return rows, true
}

// Overwritten is the value that a step's result takes the place of in the L1; nil: none.
func (s *Schedule) Overwritten(st *Step) (from *Value, rows int64) {
	if len(st.Writes) != 1 || st.Tiles > 1 || s.Values[st.Writes[0]].Level != L1 {
		return nil, 0
	}
	at := s.Values[st.Writes[0]].Address
	beside := func(r Read) bool { // two values that are there at once have one address if one takes the other's place
		v := &s.Values[r.Value]
		return v.Level == L1 && v.Def >= 0 && v.Address == at && v.CoreBytes > 0
	}
	if !slices.ContainsFunc(st.Reads, beside) {
		return nil, 0
	}
	if from, rows = s.Overwritable(st); from == nil || from.Level != L1 || from.Address != at {
		return nil, 0
	}
	return from, rows
}

// Replaces reports whether value to takes the place of another in the L1.
func (s *Schedule) Replaces(to, from int) bool {
	v := &s.Values[to]
	if v.Level != L1 || v.Def < 0 {
		return false
	}
	under, _ := s.Overwritten(&s.Steps[v.Def])
	return under == &s.Values[from] && s.Steps[v.Def].Writes[0] == to
}

// Spilled reports whether a value that is wanted in the L1 has left it.
func (v *Value) Spilled() bool {
	return v.Def >= 0 && v.Wanted == L1 && v.Level != L1
}

// Unspilled is a copy of the schedule with values where they are wanted, whose levels can be changed.
func (s *Schedule) Unspilled() *Schedule {
	work := *s
	work.Steps, work.Values = slices.Clone(s.Steps), slices.Clone(s.Values)
	for i := range work.Values {
		work.Values[i].Level = work.Values[i].Wanted
	}
	for t := range work.Steps {
		work.Steps[t].Panels = false
	}
	return &work
}
