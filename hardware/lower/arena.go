package lower

import (
	"encoding/binary"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Memory is reusable memory for lowering. An [Outline] that is given one uses it again, so that
// searches, which make many, need not clear and collect it each time, nor count again what layers compute that earlier
// programs had. Graphs must not change.
type Memory struct {
	cmds      commands
	blocks    []int32
	queues    []uint8
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
	among     *schedule.InstanceGraph // of which shares are
	shares    map[[2]int]shares       // by group and tensor
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
	if m.among != s.Instances {
		m.among, m.shares = s.Instances, map[[2]int]shares{}
	}
	for _, id := range lp.layer.Ops {
		add(int64(id))
		for _, o := range s.Graph.Op(id).Outputs {
			made := [2]int{inst.Group, int(o)}
			x, ok := m.shares[made]
			if !ok {
				x = sharesOf(s, inst.Group, o)
				m.shares[made] = x
			}
			region(x.hull)
			region(inst.Regions[o])
			add(x.ends[inst.Index], x.ends[inst.Index+1], x.ends[len(x.ends)-1])
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
	m.queues, m.cmds.list = m.queues[:0], m.cmds.list[:0]
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

// commands is one cluster's part of the program's list. It begins behind the parts of earlier clusters.
type commands struct {
	list    []isa.Command
	marks   []mark
	n, fed  int32 // how many there are, and how many of them are gone
	between int32 // from a command's number to its place in the list
}

func (l *commands) at(i int32) *isa.Command { return &l.list[i+l.between] }
func (l *commands) mark(i int32) *mark      { return &l.marks[i-l.fed] }

// begin makes place for those of the next cluster.
func (l *commands) begin() {
	l.marks, l.n, l.fed, l.between = l.marks[:0], 0, 0, int32(len(l.list))
}

func (l *commands) add(c *isa.Command, m mark) {
	if len(l.list) == cap(l.list) {
		l.list = slices.Grow(l.list, len(l.list)/2+listBlock)
	}
	l.list, l.marks = append(l.list, *c), append(l.marks, m)
	l.n++
}

// forget gives the place of all to others.
func (l *commands) forget() {
	l.list, l.marks, l.fed, l.between = l.list[:0], l.marks[:0], l.n, -l.n
}

const listBlock = 1 << 7
