package schedule

import "github.com/dsasched/dsasched/model"

// PartsRead lists, for each of n parts of a step's results, the last part of a value that it reads, of
// so many equal parts in which each core makes its own of that value: own of the parts on the core
// itself, others of those on other cores; -1 is none. It is the largest over the step's cores. Parts
// are equal ranges of a core's elements in the order of memory; a part's needs count as the boxes around them.
func (s *Schedule) PartsRead(st *Step, value int, n, of int64) (own, others []int64) {
	g, v := s.Graph, &s.Values[value]
	layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	own, others = make([]int64, n), make([]int64, n)
	made := make([]model.Region, v.Binding.Cores())
	for d := range made {
		made[d] = Slice(v.Region, v.Binding, g.Tensor(v.Tensor).Layout, int64(d))
	}
	cores := st.Cores
	for _, w := range st.Writes {
		cores = max(cores, s.Values[w].Binding.Cores())
	}
	need := Regions{}
	for i := range n {
		own[i], others[i] = -1, -1
		for c := range cores {
			clear(need)
			for _, w := range st.Writes {
				x := &s.Values[w]
				layout := g.Tensor(x.Tensor).Layout
				box := Slice(x.Region, x.Binding, layout, c)
				elements := box.Elements()
				if lo, hi := elements*i/n, elements*(i+1)/n; lo < hi {
					narrow(box, layout, lo, hi)
					need[x.Tensor] = box
				}
			}
			BackPropagate(g, layer.Ops, need)
			for d, box := range made {
				last := &others[i]
				if int64(d) == c && v.Kind == st.Kind {
					last = &own[i]
				}
				if e := lastOf(box, need[v.Tensor], g.Tensor(v.Tensor).Layout); e >= 0 {
					*last = max(*last, ((e+1)*of-1)/box.Elements())
				}
			}
		}
	}
	return own, others
}

// lastOf is the place of the last element of a box, in the order of memory, that another box has as well; -1: none.
func lastOf(box, other model.Region, layout []int) int64 {
	if box.Elements() == 0 || other.Elements() == 0 {
		return -1
	}
	at := int64(0)
	for _, d := range layout {
		if lo, hi := max(box[d].Lo, other[d].Lo), min(box[d].Hi, other[d].Hi); lo < hi {
			at = at*box[d].Len() + hi - 1 - box[d].Lo
		} else {
			return -1
		}
	}
	return at
}
