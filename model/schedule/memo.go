package schedule

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/dsasched/dsasched/model"
)

// A Memo keeps what BuildSteps finds out of a step, for schedules of one graph on one machine
// that have steps in common: all of it follows from the layer, what the instance needs of its
// outputs, where values are wanted, the bindings and what holds its inputs. It may be used by several at a time.
type Memo struct {
	mu       sync.Mutex
	steps    map[string]*known
	bindings map[string]Binding
	boxes    map[string][]Regions // of the instances of groups
	groups   map[string]int64     // numbers of sub-graphs
	last     atomic.Int64         // of these
}

// memoSize is the number of steps a memo has at most, which keeps it within some 100 MB.
const memoSize = 50_000

// known is a step whose reads name values by their place among the sources, with the values that it writes.
type known struct {
	step   Step
	writes []Value
}

// NewMemo is an empty one.
func NewMemo() *Memo {
	return &Memo{steps: map[string]*known{}, bindings: map[string]Binding{}, groups: map[string]int64{},
		boxes: map[string][]Regions{}}
}

// recalled looks a key up in a cache of at most so many entries; find computes the value of a miss.
func recalled[T any](m *Memo, all map[string]T, key []byte, most int, find func() T) T {
	m.mu.Lock()
	x, ok := all[string(key)]
	m.mu.Unlock()
	if ok {
		return x
	}
	x = find()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(all) >= most {
		clear(all)
	}
	all[string(key)] = x
	return x
}

// group is a number that no sub-graph of other operators has.
func (m *Memo) group(key []byte) int64 {
	return recalled(m, m.groups, key, memoSize, func() int64 { return m.last.Add(1) })
}

// boxesOf are the boxes of a group's instances, as InstanceRegions gives them.
func (m *Memo) boxesOf(g *model.Graph, sg *SubGraph) []Regions {
	find := func() (list []Regions) {
		for q := range sg.Factor() {
			list = append(list, InstanceRegions(g, sg.Ops, sg.Outputs, sg.SplitDim(), sg.Factor(), q))
		}
		return list
	}
	if m == nil {
		return find()
	}
	key := keyOf(keyOf(nil, sg.Ops), sg.Outputs).number(int64(sg.SplitDim())).number(sg.Factor())
	return recalled(m, m.boxes, key, memoSize/16, find)
}

// keyed is a name of numbers that end where they say.
type keyed []byte

func (k keyed) number(n int64) keyed { return binary.AppendVarint(k, n) }

func (k keyed) region(r model.Region) keyed {
	k = k.number(int64(len(r)))
	for _, iv := range r {
		k = k.number(iv.Lo).number(iv.Hi)
	}
	return k
}

func keyOf[T ~int | ~int64](k keyed, list []T) keyed {
	k = k.number(int64(len(list)))
	for _, x := range list {
		k = k.number(int64(x))
	}
	return k
}

// stepKey names all that a step follows from, given its binding and what holds its inputs.
func (b *StepBuilder) stepKey(layer *Layer, st *Step, sources [][]int) keyed {
	k := keyOf(b.key[:0], layer.Ops)
	k = k.number(int64(layer.Anchor)).number(int64(st.Kind)).number(int64(b.want)).number(int64(b.BusyClusters()))
	k = keyOf(k, st.Binding)
	for _, t := range layer.Outputs {
		k = k.number(int64(t)).region(b.inst.Regions[t])
	}
	for _, list := range sources {
		k = k.number(int64(len(list)))
		for _, id := range list {
			v := &b.Values[id]
			held := v.Binding
			if v.Instance < 0 || v.Def < 0 || v.Kind != st.Kind {
				held = nil // of the network's own inputs, and of what other clusters or kinds of core make, no core has anything
			}
			k = keyOf(k.region(v.Region), held)
		}
	}
	b.key = k
	return k
}
