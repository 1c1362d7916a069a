package sim

import "math"

// agenda holds at most one event per queue, ordered by time, then by command. Rates change, and
// with them many events at once, of which few come first: so a change is only written down, and
// the first event is looked for when it is asked for, in groups of queues that know theirs.
type agenda struct {
	events []event // of each queue
	first  []int32 // of each group: the queue with the first event, or none if it is to be looked for
	n      int     // queues with an event
}

type event struct {
	when    int64
	command int32
}

const groupOfQueues = 16

// nothing comes after every event, also after one that never comes.
var nothing = event{never, math.MaxInt32}

func (e *event) before(f *event) bool {
	return e.when < f.when || e.when == f.when && e.command < f.command
}

func (a *agenda) init(queues int) {
	a.events, a.first, a.n = make([]event, queues), make([]int32, (queues+groupOfQueues-1)/groupOfQueues), 0
	for q := range a.events {
		a.events[q] = nothing
	}
	for g := range a.first {
		a.first[g] = int32(g * groupOfQueues)
	}
}

func (a *agenda) len() int { return a.n }

// min returns the queue and the time of the earliest event.
func (a *agenda) min() (queue int32, when int64) {
	for g, q := range a.first {
		if q == none {
			q = int32(g * groupOfQueues)
			for other := q + 1; int(other) < min(len(a.events), (g+1)*groupOfQueues); other++ {
				if a.events[other].before(&a.events[q]) {
					q = other
				}
			}
			a.first[g] = q
		}
		if g == 0 || a.events[q].before(&a.events[queue]) {
			queue = q
		}
	}
	return queue, a.events[queue].when
}

// set adds or moves the event of a queue.
func (a *agenda) set(queue int32, when int64, command int32) {
	if a.events[queue].command == nothing.command {
		a.n++
	}
	a.change(queue, event{when, command})
}

// drop takes the event of a queue away.
func (a *agenda) drop(queue int32) {
	a.n--
	a.change(queue, nothing)
}

func (a *agenda) change(queue int32, e event) {
	first := &a.first[queue/groupOfQueues]
	if *first == queue {
		if a.events[queue].before(&e) {
			*first = none
		}
	} else if *first != none && e.before(&a.events[*first]) {
		*first = queue
	}
	a.events[queue] = e
}
