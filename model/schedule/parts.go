package schedule

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// PartsRead lists, for each of n parts of a step's results, the last part of a value that it reads, of
// so many equal parts in which each core makes its own of that value: own of the parts on the core
// itself, others of those on other cores; -1 is none. It is the largest over the step's cores. Parts
// are equal ranges of a core's elements in the order of memory; a part's needs count as the boxes around them.
func (s *Schedule) PartsRead(st *Step, value int, n, of int64) (own, others []int64) {
	v := &s.Values[value]
	layout := s.Graph.Tensor(v.Tensor).Layout
	return s.partsRead(st, v, n, func(box, need model.Region) int64 {
		if e := lastOf(box, need, layout); e >= 0 {
			return ((e+1)*of - 1) / box.Elements()
		}
		return -1
	})
}

// ColumnsRead lists, for each of n parts of a step's results, the last tile of columns of a value that it reads of
// other cores, -1 for none. Up to these ends go the tiles of the product in the layer that makes the value. Where its
// columns are not those of one dimension of the product's result, each part reads the last tile.
func (s *Schedule) ColumnsRead(st *Step, value int, n int64, ends []int64) []int64 {
	g, v := s.Graph, &s.Values[value]
	maker := &s.Steps[v.Def]
	layer := &s.Layers[s.Instances.Instances[maker.Instance].Group][maker.Layer]
	anchor := g.Op(layer.Anchor)
	d := len(g.Tensor(anchor.Outputs[0]).Shape) - 1
	if anchor.Kind == "Conv" {
		d = 1
	}
	columns := func(box model.Region) model.Interval {
		reg := Regions{v.Tensor: box}
		BackPropagate(g, layer.Ops, reg)
		return reg[anchor.Outputs[0]][d]
	}
	_, others := s.partsRead(st, v, n, func(box, need model.Region) int64 {
		if need = need.Intersect(box); need.Elements() == 0 {
			return -1
		}
		all, tile := columns(box), len(ends)-1
		if all.Len() == ends[tile] {
			tile, _ = slices.BinarySearch(ends, columns(need).Hi-all.Lo)
		}
		return int64(tile)
	})
	return others
}

// partsRead is PartsRead where last finds the last part of the box that a core makes in what is needed.
func (s *Schedule) partsRead(st *Step, v *Value, n int64, last func(box, need model.Region) int64) (
	own, others []int64) {
	g := s.Graph
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
				of := &others[i]
				if int64(d) == c && v.Kind == st.Kind {
					of = &own[i]
				}
				if need[v.Tensor] != nil {
					*of = max(*of, last(box, need[v.Tensor]))
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
