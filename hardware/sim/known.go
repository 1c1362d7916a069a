package sim

import "slices"

// known remembers the rates of sets of flows. Programs move tile after tile in the same way, so that few sets come
// again and again, and rates depend on nothing else: not on when the flows came, nor on what was before.
//
// Clusters that do different things come together in ever new ways. So a set belongs to one domain, and
// the level at which the resource that domains share freezes its flows is a part of what they depend on.
type known struct {
	lists   [][]list // of each slot: the shares that its flows have had
	numbers int32    // of lists, of all slots
	flows   []int32  // of each slot: the number of the list of its flow, 0 without one
	present slotSet  // that flow
	of      []int32  // the domain of each slot
	domains []domain // maxDomains at most
	dirty   uint64   // domains whose flows have changed, a bit for each
	linked  uint64   // domains with flows on the resource that they share

	sets    []set // of each hash
	old     []set // of another run, to be used again
	members []member
	asked   int
	found   int
}

// domain is slots whose flows meet those of others on one resource at most.
type domain struct {
	slots  []int32
	n      int32  // that flow
	others int32  // of these, whose lists are too many to be numbered
	linked int32  // that use the resource that domains share
	hash   uint64 // of flows
}

// list is a list of shares with its number.
type list struct {
	number int32
	shares []share
}

// set is where the members of a set of flows are.
type set struct {
	hash, level uint64
	from, n     int32
}

// member is a slot with the number of its list, and the rate of its flow; 0: that depends on other domains.
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

// newKnown has one domain for all slots.
func newKnown(slots int) known {
	k := known{lists: make([][]list, slots), flows: make([]int32, slots), present: newSlotSet(slots),
		of: make([]int32, slots)}
	k.divide(1)
	return k
}

// divide puts the slots, none of which flows, into so many domains, as of says.
func (k *known) divide(domains int) {
	k.domains = make([]domain, domains)
	for slot, d := range k.of {
		k.domains[d].slots = append(k.domains[d].slots, int32(slot))
	}
}

// useless reports that sets hardly come again.
func (k *known) useless() bool { return k.asked >= setsAtFirst && k.found*leastOfFound < k.asked }

// mix spreads what a number and a level, which is a multiple of a power of two, differ in over all bits.
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
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

// link says that so many flows more of a slot's domain use the resource that domains share.
func (k *known) link(slot, more int32) {
	i := k.of[slot]
	d := &k.domains[i]
	if d.linked += more; d.linked == 0 {
		k.linked &^= 1 << i
	} else {
		k.linked |= 1 << i
	}
}

// begin says that a slot flows with a list of shares.
func (k *known) begin(slot, number int32) {
	i := k.of[slot]
	d := &k.domains[i]
	k.flows[slot], k.dirty = number, k.dirty|1<<i
	k.present[slot/64] |= 1 << (slot % 64)
	d.n++
	if d.hash ^= mix(uint64(number)); number < 0 {
		d.others++
	}
}

// end says that a slot flows no more.
func (k *known) end(slot int32) {
	i := k.of[slot]
	d := &k.domains[i]
	k.dirty |= 1 << i
	if k.flows[slot] < 0 {
		d.others--
	}
	k.present[slot/64] &^= 1 << (slot % 64)
	d.n--
	d.hash ^= mix(uint64(k.flows[slot]))
	k.flows[slot] = 0
}

// find gives the present flows of a domain with their rates, if they are remembered for a level.
func (k *known) find(d *domain, level uint64) (members []member, ok bool) {
	if k.useless() {
		return nil, false
	}
	k.asked++
	if d.others > 0 || k.sets == nil {
		return nil, false
	}
	hash := d.hash ^ mix(level)
	set := &k.sets[hash%maxSets]
	if set.hash != hash || set.level != level || set.n != d.n {
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

// room makes sure that all present flows can be kept without forgetting one of them.
func (k *known) room() {
	if len(k.members)+len(k.of) > maxMembers {
		clear(k.sets)
		k.members = k.members[:0]
	}
}

// keep gives the present flows of a domain with their rates at a level, and remembers them. There has to be room.
func (k *known) keep(d *domain, level uint64, rates []uint64) []member {
	from := len(k.members)
	for _, slot := range d.slots {
		if k.present[slot/64]>>(slot%64)&1 == 1 {
			k.members = append(k.members, member{slot, k.flows[slot], rates[slot]})
		}
	}
	if d.others == 0 && k.asked >= setsBefore && !k.useless() {
		if k.sets == nil {
			if k.sets = k.old; k.sets == nil {
				k.sets = make([]set, maxSets)
			}
			clear(k.sets)
		}
		hash := d.hash ^ mix(level)
		k.sets[hash%maxSets] = set{hash, level, int32(from), d.n}
	}
	return k.members[from:]
}
