package sim

// agenda holds at most one event per queue, ordered by time, then by command. It
// is a binary heap in which events can be moved.
type agenda struct {
	heap []event
	at   []int32 // of each queue: its place in heap, or -1
}

type event struct {
	when    int64
	command int32
	queue   int32
}

func (e *event) before(f *event) bool {
	return e.when < f.when || e.when == f.when && e.command < f.command
}

func (a *agenda) init(queues int) {
	a.heap = make([]event, 0, queues)
	a.at = make([]int32, queues)
	for i := range a.at {
		a.at[i] = -1
	}
}

func (a *agenda) len() int { return len(a.heap) }

// min returns the queue and the time of the earliest event.
func (a *agenda) min() (queue int32, when int64) { return a.heap[0].queue, a.heap[0].when }

// set adds or moves the event of a queue.
func (a *agenda) set(queue int32, when int64, command int32) {
	i := int(a.at[queue])
	if i < 0 {
		i = len(a.heap)
		a.heap = append(a.heap, event{})
	}
	e := event{when, command, queue}
	if !a.up(i, e) {
		a.down(i, e)
	}
}

// pop takes the earliest event away.
func (a *agenda) pop() {
	a.at[a.heap[0].queue] = -1
	n := len(a.heap) - 1
	last := a.heap[n]
	a.heap = a.heap[:n]
	if n > 0 {
		a.down(0, last)
	}
}

// up puts e at i or above and reports whether it moved.
func (a *agenda) up(i int, e event) bool {
	from := i
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&a.heap[parent]) {
			break
		}
		a.put(i, a.heap[parent])
		i = parent
	}
	a.put(i, e)
	return i != from
}

// down puts e at i or below.
func (a *agenda) down(i int, e event) {
	for {
		child := 2*i + 1
		if child >= len(a.heap) {
			break
		}
		if child+1 < len(a.heap) && a.heap[child+1].before(&a.heap[child]) {
			child++
		}
		if !a.heap[child].before(&e) {
			break
		}
		a.put(i, a.heap[child])
		i = child
	}
	a.put(i, e)
}

func (a *agenda) put(i int, e event) {
	a.heap[i] = e
	a.at[e.queue] = int32(i)
}
