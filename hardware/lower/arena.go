package lower

import "github.com/dsasched/dsasched/hardware/isa"

// Memory is what a program is made in. An [Outline] that is given one uses it again, so that
// searches, which make many, need not clear and collect it each time.
type Memory struct {
	cmds      []pending
	queues    []uint8
	commands  []isa.Command
	numbers   arena[int32]
	deps      arena[int32] // of commands
	uses      arena[isa.Use]
	stretches arena[stretch]
	entries   arena[entry]
	pages     arena[int]
}

// reset gives all of it free.
func (m *Memory) reset() {
	m.cmds, m.queues, m.commands = m.cmds[:0], m.queues[:0], m.commands[:0]
	m.numbers.reset()
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
}

const arenaBlock = 1 << 12

// take is an empty list with room for n.
func (a *arena[T]) take(n int) []T {
	for ; a.at < len(a.blocks); a.at++ {
		b := a.blocks[a.at]
		if at := len(b); cap(b)-at >= n {
			a.blocks[a.at] = b[:at+n]
			return b[at : at : at+n]
		}
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
