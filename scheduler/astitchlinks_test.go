package scheduler_test

import (
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// scheme is the way in which a dependency inside a stitch operator is served.
type scheme uint8

// The schemes, in the order of the memory that they use.
const (
	independent scheme = iota // no dependency
	local                     // inside a loop nest
	regional                  // through the core's own L1
	global                    // through the LLB or the DDR
)

func (s scheme) String() string {
	return [...]string{"independent", "local", "regional", "global"}[s]
}

// linked is a dependency inside a stitch operator and its scheme. Tensor is -1 if the
// scheme is independent: From and To then begin parts that share no data.
type linked struct {
	SubGraph int
	From, To model.OpID
	Tensor   model.TensorID
	scheme   scheme
}

// linksOf reads the schemes off a complete schedule, sub-graph by sub-graph. What the
// memory plan had to spill from the L1 counts as global.
func linksOf(s *schedule.Schedule) []linked {
	g := s.Graph
	level := make([]schedule.Level, len(g.Tensors))
	for i := range s.Values {
		v := &s.Values[i]
		level[v.Tensor] = max(level[v.Tensor], v.Level)
	}
	var links []linked
	for k, sg := range s.Grouping.Groups {
		layer := map[model.OpID]int{}
		for l, lay := range s.Layers[k] {
			for _, id := range lay.Ops {
				layer[id] = l
			}
		}
		if g.Op(s.Layers[k][0].Anchor).Class() == model.MatrixClass {
			continue
		}
		// Parts that share data have one root.
		root := map[model.OpID]model.OpID{}
		find := func(id model.OpID) model.OpID {
			for root[id] != id {
				id = root[id]
			}
			return id
		}
		for _, id := range sg.Ops {
			root[id] = id
			for _, t := range g.Op(id).Inputs {
				from := g.Tensor(t).Producer
				if from == model.NoOp {
					continue
				}
				at, inside := layer[from]
				if !inside {
					continue
				}
				l := linked{k, from, id, t, local}
				switch {
				case at == layer[id]:
				case level[t] == schedule.L1:
					l.scheme = regional
				default:
					l.scheme = global
				}
				links = append(links, l)
				root[find(id)] = find(from)
			}
		}
		for _, id := range sg.Ops[1:] {
			if find(id) == id && id != find(sg.Ops[0]) {
				links = append(links, linked{k, find(sg.Ops[0]), id, -1, independent})
			}
		}
	}
	return links
}
