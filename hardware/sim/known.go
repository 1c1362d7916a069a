package sim

import (
	"math/bits"
	"slices"
)

// known remembers the rates of sets of flows. Programs move tile after tile in the same way, so
// that few sets come again and again, and rates depend on nothing else: not on when the flows came,
// nor on what was before.
type known struct {
	lists   [][]list // of each slot: the shares that its flows have had
	numbers int32    // of lists, of all slots
	flows   []int32  // of each slot: the number of the list of its flow, 0 without one
	present slotSet  // that flow,
	n       int32    // so many
	others  int      // flows whose lists are too many to be numbered
	hash    uint64   // of flows

	sets    []set // of each hash
	old     []set // of another run, to be used again
	members []member
	asked   int
	found   int
}

// list is a list of shares with its number.
type list struct {
	number int32
	shares []share
}

// set is where the members of a set of flows are.
type set struct {
	hash    uint64
	from, n int32
}

// member is a slot with the number of its list, and the rate of its flow.
type member struct {
	slot, number int32
	rate         uint64
}

const (
	maxLists     = 16      // that are numbered of a slot
	maxSets      = 1 << 12 // that are remembered
	maxMembers   = 1 << 15 // of all sets
	setsBefore   = 64      // that are asked for before any are remembered: programs of few commands
	setsAtFirst  = 4096    // that are asked for before it is seen whether it is worth the time
	leastOfFound = 4       // one of so many has to be found then
)

func newKnown(slots int) known {
	return known{lists: make([][]list, slots), flows: make([]int32, slots), present: newSlotSet(slots)}
}

// useless reports that sets hardly come again.
func (k *known) useless() bool { return k.asked >= setsAtFirst && k.found*leastOfFound < k.asked }

func mix(number int32) uint64 {
	x := uint64(number) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// list gives a slot's list of shares to be kept, and its number, or -1 if it has had too many others.
func (k *known) list(slot int32, shares []share) ([]share, int32) {
	lists := k.lists[slot]
	i := slices.IndexFunc(lists, func(l list) bool { return slices.Equal(l.shares, shares) })
	if i >= 0 {
		return lists[i].shares, lists[i].number
	}
	shares = slices.Clone(shares)
	if len(lists) == maxLists || k.useless() {
		return shares, -1
	}
	k.numbers++
	k.lists[slot] = append(lists, list{k.numbers, shares})
	return shares, k.numbers
}

// begin says that a slot flows with a list of shares.
func (k *known) begin(slot, number int32) {
	k.flows[slot] = number
	k.present[slot/64] |= 1 << (slot % 64)
	k.n++
	if k.hash ^= mix(number); number < 0 {
		k.others++
	}
}

// end says that a slot flows no more.
func (k *known) end(slot int32) {
	if k.flows[slot] < 0 {
		k.others--
	}
	k.present[slot/64] &^= 1 << (slot % 64)
	k.n--
	k.hash ^= mix(k.flows[slot])
	k.flows[slot] = 0
}

// find gives the present flows with their rates, if they are remembered.
func (k *known) find() (members []member, ok bool) {
	if k.useless() {
		return nil, false
	}
	k.asked++
	if k.others > 0 || k.sets == nil {
		return nil, false
	}
	set := k.sets[k.hash%maxSets]
	if set.hash != k.hash || set.n != k.n {
		return nil, false
	}
	members = k.members[set.from : set.from+set.n]
	for i := range members {
		if m := &members[i]; k.flows[m.slot] != m.number {
			return nil, false
		}
	}
	k.found++
	return members, true
}

// keep remembers the rates of the present flows.
func (k *known) keep(rates []uint64) {
	if k.others > 0 || k.asked < setsBefore || k.useless() || k.n > maxMembers {
		return
	}
	if k.sets == nil {
		if k.sets = k.old; k.sets == nil {
			k.sets = make([]set, maxSets)
		}
		clear(k.sets)
	}
	if len(k.members)+int(k.n) > maxMembers {
		clear(k.sets)
		k.members = k.members[:0]
	}
	k.sets[k.hash%maxSets] = set{k.hash, int32(len(k.members)), k.n}
	for w, slots := range k.present {
		for ; slots != 0; slots &= slots - 1 {
			slot := w*64 + bits.TrailingZeros64(slots)
			k.members = append(k.members, member{int32(slot), k.flows[slot], rates[slot]})
		}
	}
}
