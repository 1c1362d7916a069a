package astitch

import (
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Scheme is the way in which a dependency inside a stitch operator is served.
type Scheme uint8

// The schemes, in the order of the memory that they use.
const (
	Independent Scheme = iota // no dependency
	Local                     // inside a loop nest
	Regional                  // through the core's own L1
	Global                    // through the LLB or the DDR
)

func (s Scheme) String() string {
	return [...]string{"independent", "local", "regional", "global"}[s]
}

// Scopes declares the result of every instance in the DDR: kernels exchange data
// there, and only inside a stitch operator it is nearer.
func Scopes(instances int) []schedule.Level {
	scopes := make([]schedule.Level, instances)
	for i := range scopes {
		scopes[i] = schedule.DDR
	}
	return scopes
}

// Localize is the check of block locality, on a schedule with its steps and before
// its memory plan: a value that is wanted in the L1 stays there if every core reads
// only what it has made itself. Any other goes to the LLB.
func Localize(s *schedule.Schedule) {
	for i := range s.Steps {
		for _, r := range s.Steps[i].Reads {
			if v := &s.Values[r.Value]; v.Level == schedule.LB && r.RemoteBytes > 0 {
				v.Wanted, v.Level = schedule.GB, schedule.GB
			}
		}
	}
}

// Link is a dependency inside a stitch operator and its scheme. Tensor is -1 if the
// scheme is Independent: From and To then begin parts that share no data.
type Link struct {
	SubGraph int
	From, To model.OpID
	Tensor   model.TensorID
	Scheme   Scheme
}

// Links reads the schemes off a complete schedule, sub-graph by sub-graph. What the
// memory plan had to spill from the L1 counts as global.
func Links(s *schedule.Schedule) []Link {
	g := s.Graph
	level := make([]schedule.Level, len(g.Tensors))
	for i := range s.Values {
		v := &s.Values[i]
		level[v.Tensor] = max(level[v.Tensor], v.Level)
	}
	var links []Link
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
				l := Link{k, from, id, t, Local}
				switch {
				case at == layer[id]:
				case level[t] == schedule.LB:
					l.Scheme = Regional
				default:
					l.Scheme = Global
				}
				links = append(links, l)
				root[find(id)] = find(from)
			}
		}
		for _, id := range sg.Ops[1:] {
			if find(id) == id && id != find(sg.Ops[0]) {
				links = append(links, Link{k, find(sg.Ops[0]), id, -1, Independent})
			}
		}
	}
	return links
}
