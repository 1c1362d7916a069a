package scheduler

import "github.com/dsasched/dsasched/model/schedule"

// nestSettings drop the tiles that the start has. Products with values in the L1 then run by the generator's rules, and
// others in tiles for the room that there is now.
var nestSettings = [][]func(*Decisions) *Decisions{values(func(x *loops, _ bool) {
	if x.tiles {
		x.nests, x.made = nil, nil
	}
}, true)}

var nestMoves = []Move{{Name: "tile"}}

// stepShape is the common key of steps that do the same.
func stepShape(s *schedule.Schedule, i int) Key {
	st := &s.Steps[i]
	layer := schedule.LayerOf(s, st)
	var b Key
	for _, id := range layer.Ops {
		op := s.Graph.Op(id)
		b.Text(string(op.Kind))
		for _, t := range op.Outputs {
			for _, n := range s.Graph.Tensor(t).Shape {
				b.Add(n)
			}
		}
	}
	for _, iv := range s.Instances.Instances[st.Instance].Regions[st.Output] {
		b.Add(iv.Len())
	}
	b.Binding(st.Binding)
	b.Add(int64(st.Kind), st.Tiles, int64(len(st.Reads)), int64(len(st.Params)))
	for k := range st.Params {
		b.Add(st.Params[k].UnionBytes)
	}
	b.nest(st.Nest)
	return b
}
