package lower

import (
	"encoding/binary"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Memory is reusable memory for lowering. An [Outline] that is given one uses it again, so that
// searches, which make many, need not clear and collect it each time, nor count again what layers compute that earlier
// programs had. Graphs must not change.
type Memory struct {
	cmds      list[pending]
	blocks    list[int32]
	queues    []uint8
	commands  []isa.Command
	numbers   arena[int32]
	lasts     arena[int32] // of buffers
	waits     arena[int32] // what commands wait for
	deps      arena[int32] // what is left of that
	uses      arena[isa.Use]
	order     []int32 // of a buffer, scratch
	stretches arena[stretch]
	entries   arena[entry]
	pages     arena[int]
	step      lowering
	allWaits  bool                             // Options.AllWaits
	works     map[*model.Graph]map[string]work // by what they follow from
	key       []byte
}

// The numbers of graphs, and of layers of each, whose work is remembered.
const (
	maxGraphs = 32
	maxWorks  = 1 << 14
)

// workOf is the work of a step, counted once.
func (m *Memory) workOf(s *schedule.Schedule, inst *schedule.Instance, lp *layerPlan, on *cost.Model) work {
	k, st := m.key[:0], lp.step
	add := func(list ...int64) {
		for _, n := range list {
			k = binary.AppendVarint(k, n)
		}
	}
	region := func(r model.Region) {
		add(int64(len(r)))
		for _, iv := range r {
			add(iv.Lo, iv.Hi)
		}
	}
	add(st.Cores, int64(st.Output), inst.Regions[st.Output].Elements(), int64(lp.layer.Anchor), int64(len(lp.layer.Ops)))
	region(st.CoreOutput)
	add(int64(st.Kind), on.MatrixRows(), on.MatrixCols())
	for _, id := range lp.layer.Ops {
		add(int64(id))
		for _, o := range s.Graph.Op(id).Outputs {
			hull, before, own, sum := amongInstances(s, inst, o)
			region(hull)
			region(inst.Regions[o])
			add(before, own, sum)
		}
	}
	for _, w := range st.Writes {
		v := &s.Values[w]
		add(int64(v.Tensor), int64(len(v.Binding)))
		add(v.Binding...)
		region(v.Region)
	}
	m.key = k
	known, ok := m.works[s.Graph][string(k)]
	if ok {
		return known
	}
	if of := m.works[s.Graph]; of == nil || len(of) == maxWorks {
		if m.works == nil || len(m.works) == maxGraphs {
			m.works = map[*model.Graph]map[string]work{}
		}
		m.works[s.Graph] = map[string]work{}
	}
	lp.addWork(s, inst, on)
	m.works[s.Graph][string(k)] = lp.work
	return lp.work
}

// newMemory is for one program.
func newMemory() *Memory {
	m := &Memory{}
	m.numbers.once, m.lasts.once, m.stretches.once, m.entries.once, m.pages.once = true, true, true, true, true
	return m
}

// reset gives all of it free.
func (m *Memory) reset() {
	m.queues, m.commands = m.queues[:0], m.commands[:0]
	m.cmds.reset()
	m.numbers.reset()
	m.waits.reset()
	m.deps.reset()
	m.uses.reset()
	m.stretches.reset()
	m.entries.reset()
	m.pages.reset()
}

// arena gives out lists, all of which end at once.
type arena[T any] struct {
	blocks [][]T
	at     int
	once   bool // it is never reset: what no list is held of may be collected
}

const arenaBlock = 1 << 10

// take is an empty list with room for n.
func (a *arena[T]) take(n int) []T {
	for ; a.at < len(a.blocks); a.at++ {
		b := a.blocks[a.at]
		if at := len(b); cap(b)-at >= n {
			a.blocks[a.at] = b[:at+n]
			return b[at : at : at+n]
		}
	}
	if a.once {
		a.blocks, a.at = a.blocks[:0], 0
	}
	a.blocks = append(a.blocks, make([]T, n, max(n, arenaBlock)))
	return a.blocks[a.at][0:0:n]
}

// put is a copy of a value in the arena.
func (a *arena[T]) put(x T) *T {
	list := append(a.take(1), x)
	return &list[0]
}

func (a *arena[T]) reset() {
	for i := range a.blocks {
		a.blocks[i] = a.blocks[i][:0]
	}
	a.at = 0
}

// list is a list in blocks, so that it grows without being copied.
type list[T any] struct {
	blocks []*[listBlock]T
	spare  []*[listBlock]T
	first  int // of the blocks that are not forgotten
	n      int32
}

const listBlock = 1 << 7

func (l *list[T]) at(i int32) *T { return &l.blocks[uint(i)/listBlock][uint(i)%listBlock] }

// more makes the list one longer and returns its end, which holds anything.
func (l *list[T]) more() *T {
	if int(l.n) == len(l.blocks)*listBlock {
		if n := len(l.spare); n > 0 {
			l.blocks, l.spare = append(l.blocks, l.spare[n-1]), l.spare[:n-1]
		} else {
			l.blocks = append(l.blocks, new([listBlock]T))
		}
	}
	l.n++
	return l.at(l.n - 1)
}

// forget gives the place of the first n to others.
func (l *list[T]) forget(n int32) {
	for ; (l.first+1)*listBlock <= int(n); l.first++ {
		l.spare = append(l.spare, l.blocks[l.first])
		l.blocks[l.first] = nil
	}
}

func (l *list[T]) reset() {
	l.blocks, l.first, l.n = append(l.spare, l.blocks[l.first:]...), 0, 0
	l.spare = nil
}
