package lower

import (
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
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
	allWaits  bool                   // Options.AllWaits
	unnamed   bool                   // nothing asks which commands touch what, but for the last of each queue
	plans     map[planKey]*layerPlan // without schedules
	planned   arena[layerPlan]       // of the program
	tiles     map[tileKey]int32      // numbers of weight tiles, from 1 on
	byTile    []tileUses             // by these
	passed    []int32                // those that the program has
}

// The most plans and tiles that are remembered from program to program.
const maxPlans, maxTiles = 1 << 13, 1 << 16

// A planKey has all that the plan of a step by rule follows from, or else the work of its layer.
type planKey struct {
	schedule.Found
	rows, columns              int64 // of the matrix unit
	ruled, panels              bool
	tiles, whole, ring, params int64
	fine                       grain
}

// tileUses are the positions of a weight tile's uses in the sequence of all uses, the place of the next one, and the
// entry that has the tile in the LLB.
type tileUses struct {
	at    []int64
	next  int
	entry *entry
}

// keyOf names what the plan of a step follows from; empty: that is not known.
func (m *Memory) keyOf(s *schedule.Schedule, st *schedule.Step, on *cost.Model, fine grain) (k planKey) {
	if k.Found = s.Found(st); m == nil || k.Found == (schedule.Found{}) {
		return planKey{}
	}
	k.rows, k.columns = on.MatrixRows(), on.MatrixCols()
	if k.ruled = st.Nest == nil && st.Attending == nil; k.ruled {
		k.panels, k.tiles, k.ring, k.params, k.fine = st.Panels, st.Tiles, s.RingBytes(), s.ParamBytes(), fine
		_, k.whole = s.Overwritten(st)
	}
	return k
}

// plan is a copy of what is remembered, which lives as long as the program.
func (m *Memory) plan(key planKey) (lp *layerPlan, known bool) {
	if key.rows > 0 {
		lp, known = m.plans[key]
	}
	if !known {
		return &layerPlan{}, false
	}
	return m.planned.put(*lp), true
}

// keep remembers a plan.
func (m *Memory) keep(key planKey, lp *layerPlan) {
	if key.rows > 0 && len(m.plans) < maxPlans {
		kept := *lp
		kept.step, kept.layer = nil, nil
		m.plans[key] = &kept
	}
}

// number returns the index of a weight tile in byTile, a new one for a tile not seen before.
func (m *Memory) number(key tileKey) int32 {
	n, known := m.tiles[key]
	if !known {
		n = int32(len(m.byTile))
		m.tiles[key], m.byTile = n, append(m.byTile, tileUses{})
	}
	return n
}

// forget forgets the uses of the program before, and all that is known where it is much.
func (m *Memory) forget() {
	for _, t := range m.passed {
		m.byTile[t] = tileUses{}
	}
	if m.passed = m.passed[:0]; m.tiles == nil || len(m.tiles) >= maxTiles || len(m.plans) >= maxPlans {
		m.tiles, m.plans, m.byTile = map[tileKey]int32{}, map[planKey]*layerPlan{}, append(m.byTile[:0], tileUses{})
	}
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
	m.planned.reset()
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
