package sim

import (
	"math"
	"math/bits"
)

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
}

const (
	groupOfQueues = 64
	unknown       = -1
)

func (a *agenda) init(queues int) {
	a.when, a.command, a.groups = make([]int64, queues), make([]int32, queues), make([]group, (queues+groupOfQueues-1)/groupOfQueues)
	for g := range a.groups {
		a.groups[g].first = never
	}
}

// min returns the queue and the time of the earliest event, or none.
func (a *agenda) min() (queue int32, when int64) {
	queue, when = none, never
	for g := range a.groups {
		group := &a.groups[g]
		if group.first == unknown {
			first, events := int64(never), a.when[g*groupOfQueues:]
			for busy := group.busy; busy != 0; busy &= busy - 1 {
				first = min(first, events[bits.TrailingZeros64(busy)])
			}
			group.first = first
		}
		when = min(when, group.first)
	}
	a.last, a.also = when, false
	command := int32(math.MaxInt32)
	for g := range a.groups {
		if a.groups[g].first > when {
			continue
		}
		for busy := a.groups[g].busy; busy != 0; busy &= busy - 1 {
			q := g*groupOfQueues + bits.TrailingZeros64(busy)
			if a.when[q] == when {
				a.also = queue != none
				if a.command[q] < command {
					queue, command = int32(q), a.command[q]
				}
			}
		}
	}
	return queue, when
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
