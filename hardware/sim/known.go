package sim

import "slices"

// known remembers the rates of sets of flows. Programs move tile after tile in the same way, so
// that few sets come again and again, and rates depend on nothing else: not on when the flows came,
// nor on what was before.
type known struct {
	lists  [][]list // of each slot: the shares that its flows have had
	n      int32    // lists, of all slots
	flows  []int32  // of each slot: the number of its flow's list, 0 without a flow
	others int      // flows whose lists are too many to be numbered
	hash   uint64   // of flows

	hashes []uint64
	sets   []int32  // flows of the set with each hash,
	rates  []uint64 // and their rates
	asked  int
	found  int
}

// list is a list of shares with its number.
type list struct {
	number int32
	shares []share
}

const (
	maxLists     = 16   // that are numbered of a slot
	maxSets      = 512  // that are remembered; a power of two
	setsBefore   = 64   // that are asked for before any are remembered: programs of few commands
	maxSlots     = 256  // of which sets are remembered
	setsAtFirst  = 4096 // that are asked for before it is seen whether it is worth the time
	leastOfFound = 4    // one of so many has to be found then
)

func newKnown(slots int) known {
	if slots > maxSlots {
		return known{asked: setsAtFirst}
	}
	return known{lists: make([][]list, slots), flows: make([]int32, slots)}
}

// useless reports that sets hardly come again.
func (k *known) useless() bool { return k.asked >= setsAtFirst && k.found*leastOfFound < k.asked }

func mix(number int32) uint64 {
	x := uint64(number) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// begin says that a slot flows with these shares.
func (k *known) begin(slot int32, shares []share) {
	if k.useless() {
		return
	}
	lists := k.lists[slot]
	i := slices.IndexFunc(lists, func(l list) bool { return slices.Equal(l.shares, shares) })
	if i < 0 {
		if len(lists) == maxLists {
			k.flows[slot] = -1
			k.others++
			return
		}
		i = len(lists)
		k.n++
		k.lists[slot] = append(lists, list{k.n, slices.Clone(shares)})
	}
	k.flows[slot] = k.lists[slot][i].number
	k.hash ^= mix(k.flows[slot])
}

// end says that a slot flows no more.
func (k *known) end(slot int32) {
	switch {
	case k.useless():
		return
	case k.flows[slot] < 0:
		k.others--
	default:
		k.hash ^= mix(k.flows[slot])
	}
	k.flows[slot] = 0
}

// find gives the rates of the present flows, if they are remembered.
func (k *known) find() []uint64 {
	if k.useless() {
		return nil
	}
	k.asked++
	if k.others > 0 || k.hashes == nil {
		return nil
	}
	i, n := int(k.hash%maxSets), len(k.flows)
	if k.hashes[i] != k.hash || !slices.Equal(k.sets[i*n:(i+1)*n], k.flows) {
		return nil
	}
	k.found++
	return k.rates[i*n : (i+1)*n]
}

// keep remembers the rates of the present flows.
func (k *known) keep(rates []uint64) {
	if k.others > 0 || k.asked < setsBefore || k.useless() {
		return
	}
	n := len(k.flows)
	if k.hashes == nil {
		k.hashes, k.sets, k.rates = make([]uint64, maxSets), make([]int32, maxSets*n), make([]uint64, maxSets*n)
	}
	i := int(k.hash % maxSets)
	k.hashes[i] = k.hash
	copy(k.sets[i*n:], k.flows)
	copy(k.rates[i*n:], rates)
}
