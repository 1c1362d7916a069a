package schedule

import (
	"encoding/binary"
	"sync"

	"github.com/dsasched/dsasched/model"
)

// A Memo keeps what BuildSteps finds out of a step, for schedules of one graph on one machine
// that have steps in common: all of it follows from the layer, what the instance needs of its
// outputs, where values are wanted, the bindings and what holds its inputs. It may be used by several at a time.
type Memo struct {
	mu       sync.Mutex
	steps    map[string]*known
	bindings map[string]Binding
	groups   map[string]int64 // numbers of sub-graphs
	last     int64            // of these
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
	return &Memo{steps: map[string]*known{}, bindings: map[string]Binding{}, groups: map[string]int64{}}
}

// group is a number that no sub-graph of other operators has.
func (m *Memo) group(key []byte) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.groups[string(key)]
	if !ok {
		if len(m.groups) >= memoSize {
			clear(m.groups)
		}
		m.last++
		n = m.last
		m.groups[string(key)] = n
	}
	return n
}

func (m *Memo) step(key []byte) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steps[string(key)]
}

func (m *Memo) keep(key []byte, k *known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.steps) >= memoSize {
		clear(m.steps)
	}
	m.steps[string(key)] = k
}

// binding returns of's value for a key, computed once.
func (m *Memo) binding(key []byte, of func() Binding) Binding {
	m.mu.Lock()
	b, ok := m.bindings[string(key)]
	m.mu.Unlock()
	if ok {
		return b
	}
	b = of()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.bindings) >= memoSize {
		clear(m.bindings)
	}
	m.bindings[string(key)] = b
	return b
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

func (k keyed) binding(b Binding) keyed {
	k = k.number(int64(len(b)))
	for _, f := range b {
		k = k.number(f)
	}
	return k
}

func keyOf[T ~int](k keyed, list []T) keyed {
	k = k.number(int64(len(list)))
	for _, x := range list {
		k = k.number(int64(x))
	}
	return k
}

// stepKey names all that a step follows from, given its binding and what holds its inputs.
func (b *StepBuilder) stepKey(layer *Layer, st *Step, sources [][]int) keyed {
	k := keyOf(b.key[:0], layer.Ops)
	k = k.number(int64(layer.Anchor)).number(int64(st.Kind)).number(int64(b.want)).number(
		int64(b.BusyClusters())).binding(st.Binding)
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
			k = k.region(v.Region).binding(held)
		}
	}
	b.key = k
	return k
}
