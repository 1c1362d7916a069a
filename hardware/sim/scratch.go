package sim

import "sync"

// scratch is the memory of a run, reused by the next: else most of the time of a short one would be
// taken by the memory for it.
type scratch struct {
	times      []int64
	start, end []int32
	alone      []int64
	pages      []*page
	members    []member
	sets       []set
	changes    []change
	first      []int32
	steps      []Step
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Runs of more commands leave nothing behind: they take long enough for their memory, and would keep much of it.
const maxScratch = 1 << 17

// empty is a list without elements and with room for n, the given one if that will do. The room of a new one is not
// touched, as append would.
func empty[T any](list []T, n int) []T {
	if n > cap(list) {
		return make([]T, 0, n)
	}
	return list[:0]
}

// longer is a list with n more elements, which hold anything. Room at least doubles: append would copy long lists many
// times.
func longer[T any](list []T, n int) []T {
	m := len(list) + n
	if m > cap(list) {
		list = append(make([]T, 0, max(m, 2*len(list))), list...)
	}
	return list[:m]
}

// done gives away what the run has needed.
func (e *engine) done() {
	s := e.scratch
	if e.scratch = nil; s == nil || len(e.start) > maxScratch {
		return
	}
	s.times, s.start, s.end, s.pages = e.times, e.start, e.end, e.spare
	for _, page := range e.pages {
		if page != nil {
			page.clear()
			s.pages = append(s.pages, page)
		}
	}
	k := &e.sharing.known
	s.members = k.members
	if k.sets != nil {
		s.sets = k.sets
	}
	if e.meter != nil {
		s.alone = e.meter.bound.end
	}
	e.times, e.start, e.end, e.pages, e.spare, k.members, k.sets = nil, nil, nil, nil, nil, nil, nil
	scratches.Put(s)
}
