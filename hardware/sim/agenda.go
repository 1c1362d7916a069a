package sim

import "math/bits"

// agenda holds at most one event per queue, ordered by time, then by command. Rates change, and
// with them many events at once, of which few come first: so a change is only written down, and
// the first event is looked for when it is asked for, in groups of queues that know theirs.
type agenda struct {
	when    []int64 // of each queue's event, if it has one
	command []int32
	groups  []group
	last    int64 // the time that was looked for,
	also    bool  // at which there is, or came since, another event than the one that was found
}

// group is one of groupOfQueues queues.
type group struct {
	busy  uint64 // those that have an event
	first int64  // the time of the earliest, never without; unknown: to be looked for
	queue int32  // that has it, none without
	also  bool   // another has one at that time
}

const (
	groupOfQueues = 64
	unknown       = -1
)

func (a *agenda) init(queues int) {
	a.when, a.command, a.groups = make([]int64, queues), make([]int32, queues),
		make([]group, (queues+groupOfQueues-1)/groupOfQueues)
	for g := range a.groups {
		a.groups[g].first, a.groups[g].queue = never, none
	}
}

// min returns the queue and the time of the earliest event, or none.
func (a *agenda) min() (queue int32, when int64) {
	queue, when, a.also = none, never, false
	for g := range a.groups {
		group := &a.groups[g]
		if group.first == unknown {
			a.look(group, int32(g)*groupOfQueues)
		}
		switch {
		case group.queue == none || queue != none && group.first > when:
		case queue == none || group.first < when:
			queue, when, a.also = group.queue, group.first, group.also
		default:
			a.also = true
			if a.command[group.queue] < a.command[queue] {
				queue = group.queue
			}
		}
	}
	a.last = when
	return queue, when
}

// look finds the earliest event of a group whose queues begin at from. Which it is says nothing
// about the next, so that there is no branch for it.
func (a *agenda) look(group *group, from int32) {
	first, second, queue := int64(never), int64(never), bits.TrailingZeros64(group.busy)
	events := a.when[from:]
	for busy := group.busy; busy != 0; busy &= busy - 1 {
		q := bits.TrailingZeros64(busy)
		when := events[q]
		second = min(second, max(first, when))
		if when < first {
			queue = q
		}
		first = min(first, when)
	}
	group.first, group.queue, group.also = first, none, first == second && group.busy&(group.busy-1) != 0
	if group.busy == 0 {
		return
	}
	group.queue = from + int32(queue)
	if group.also {
		for busy := group.busy; busy != 0; busy &= busy - 1 {
			if q := from + int32(bits.TrailingZeros64(busy)); a.when[q] == first && a.command[q] < a.command[group.queue] {
				group.queue = q
			}
		}
	}
}

// set adds or moves the event of a queue.
func (a *agenda) set(queue int32, when int64, command int32) {
	group := &a.groups[queue/groupOfQueues]
	group.busy |= 1 << (queue % groupOfQueues)
	a.when[queue], a.command[queue], group.first = when, command, unknown
	a.also = a.also || when == a.last
}

// drop takes the event of a queue away.
func (a *agenda) drop(queue int32) {
	group := &a.groups[queue/groupOfQueues]
	group.busy &^= 1 << (queue % groupOfQueues)
	group.first = unknown
}
