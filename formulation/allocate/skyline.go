package allocate

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// skyline is the depth-first search of docs/formulations.md that goes on where there is
// the least choice. It is for problems for which [loose] holds.
type skyline struct {
	layout
	ctx      context.Context
	capacity int64
	nodes    int64 // visited
	limit    int64 // on nodes

	floor []int64 // of a section: no unplaced item of it can lie below
	solid []bool  // whether the floor is the bottom or an item's top
	rest  []int64 // of a section: sizes of unplaced items
	low   []int64 // of an unplaced item: the highest of its floors; of a placed one: its offset
	top   []int64 // of an unplaced item: the lowest that it may end; of a placed one: no limit
	state []stand
	fails []float64 // of a section: how often it had no way on
	trail []skyChange
	known map[[2]uint64]struct{} // states that fail, by hashes of 128 bits

	dirty   []int32
	isDirty []bool
}

// stand says whether an item may be chosen next.
type stand uint8

const (
	placedItem   stand = iota
	raggedItem         // some of its floors are lower than others
	hoveringItem       // flat, and nothing holds it
	readyItem
)

type skyChange struct {
	what skyChanged
	i    int32
	old  int64
}

type skyChanged uint8

const (
	skyFloor skyChanged = iota // of a solid floor
	skyAir                     // of another one
	skyLow
	skyPlaced
)

// maxKnown is the most states that are kept, some 200 MB.
const maxKnown = 1 << 21

// loose reports whether all buffers may lie anywhere, and each on top of any other.
func loose(p *Problem) bool {
	g := int64(0)
	for i := range p.Buffers {
		g = milp.GCD(g, p.Buffers[i].Size)
	}
	return !slices.ContainsFunc(p.Buffers, func(b Buffer) bool { return b.Offset != nil || g%b.Align() != 0 })
}

// newSkyline prepares the search. It is used for any capacity after.
func newSkyline(p *Problem) *skyline {
	s := &skyline{layout: newLayout(p)}
	n, m := len(s.items), len(s.sections)
	s.low, s.top, s.state, s.fails = make([]int64, n), make([]int64, n), make([]stand, n), make([]float64, m)
	s.floor, s.rest, s.solid, s.isDirty = make([]int64, m), make([]int64, m), make([]bool, m), make([]bool, m)
	return s
}

func (s *skyline) offsets() []int64 { return s.layout.offsets(s.low) }

func (s *skyline) fit(ctx context.Context, rule Preorder, capacity, limit int64) (verdict, int64) {
	if capacity != s.capacity || s.known == nil {
		s.known = make(map[[2]uint64]struct{})
		clear(s.fails)
	}
	s.ctx, s.capacity, s.nodes, s.limit = ctx, capacity, 0, limit
	s.preorder(rule)
	s.trail = s.trail[:0]
	clear(s.low)
	clear(s.floor)
	clear(s.placed)
	for i := range s.items {
		s.top[i] = s.items[i].size
	}
	for k, ids := range s.sections {
		s.rest[k], s.solid[k] = 0, true
		for _, i := range ids {
			s.rest[k] += s.items[i].size
		}
		if s.rest[k] > capacity {
			return notThere, 0
		}
	}
	return s.each(s.split(s.whole())), s.nodes
}

func (s *skyline) reset() { s.known = nil }

// each solves components one after the other; all must have a placement.
func (s *skyline) each(parts []component) verdict {
	for _, part := range parts {
		if v := s.solve(part); v != found {
			return v
		}
	}
	return found
}

// hash names the state of a component.
func (s *skyline) hash(part component) [2]uint64 {
	var h [2]uint64
	for _, i := range part.items {
		i = s.first[i] // twins are the same to the state
		h[0] += mix(uint64(i)*2 + 0x1234567)
		h[1] += mix(uint64(i)*2 + 0x7654321)
	}
	for k := part.from; k < part.upto; k++ {
		if s.rest[k] > 0 {
			v := uint64(s.floor[k]) << 1
			if s.solid[k] {
				v |= 1
			}
			h[0] += mix(mix(uint64(k)+0x9e3779b97f4a7c15) ^ v)
			h[1] += mix(mix(uint64(k)+0xc2b2ae3d27d4eb4f) ^ v)
		}
	}
	return h
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// solve places the items of a component.
func (s *skyline) solve(part component) verdict {
	if len(part.items) == 0 {
		return found
	}
	if s.nodes++; s.nodes > s.limit {
		return exhausted
	}
	if s.nodes&0xff == 0 && s.ctx.Err() != nil {
		return cancelled
	}
	key := s.hash(part)
	if _, fails := s.known[key]; fails {
		return notThere
	}
	at, raised := s.choose(part)
	if at < 0 {
		s.fails[-at-1]++
		s.remember(key)
		return notThere
	}
	var ways []int32
	f := s.floor[at]
	for _, i := range s.sections[at] {
		if s.state[i] == readyItem && s.low[i] == f && s.free(i) {
			ways = append(ways, i)
		}
	}
	slices.SortFunc(ways, func(a, b int32) int {
		if x, y := s.hinted(a, f), s.hinted(b, f); x != y {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(s.key[a], s.key[b])
	})
	mark := len(s.trail)
	for k := 0; k <= len(ways); k++ {
		var ok bool
		rest := part
		if k < len(ways) {
			i := ways[k]
			ok = s.place(i)
			rest.items = make([]int32, 0, len(part.items)-1)
			for _, j := range part.items {
				if j != i {
					rest.items = append(rest.items, j)
				}
			}
		} else if raised > 0 {
			ok = s.waste(at, raised)
		} else {
			break
		}
		ok = s.consistent() && ok
		v := notThere
		if ok {
			if k == len(ways) {
				v = s.each([]component{rest})
			} else {
				v = s.each(s.split(rest))
			}
		}
		if v != notThere {
			return v
		}
		s.undo(mark)
	}
	s.fails[at]++
	s.remember(key)
	return notThere
}

func (s *skyline) remember(key [2]uint64) {
	if len(s.known) < maxKnown {
		s.known[key] = struct{}{}
	}
}

// free reports whether an item's turn has come among its twins.
func (s *skyline) free(i int32) bool {
	t := s.twin[i]
	return t < 0 || s.placed[t]
}

// choose finds the section with the fewest ways on, and the height to which its floor
// rises if none of its items lies there, 0 if that is no way. It returns -1 - section if
// that has no way on.
func (s *skyline) choose(part component) (int32, int64) {
	for _, i := range part.items {
		st := hoveringItem
		for _, k := range s.items[i].sections {
			if s.floor[k] != s.low[i] {
				st = raggedItem
				break
			}
			if s.solid[k] {
				st = readyItem
			}
		}
		s.state[i] = st
	}
	best, bestRaised, bestScore := int32(-1), int64(0), math.Inf(1)
	for k := part.from; k < part.upto; k++ {
		if s.rest[k] == 0 {
			continue
		}
		f, n, ready := s.floor[k], 0, true
		next := int64(math.MaxInt64)
		for _, i := range s.sections[k] {
			if s.placed[i] {
				continue
			}
			if s.low[i] > f {
				next = min(next, s.low[i])
				continue
			}
			switch s.state[i] {
			case raggedItem:
				ready = false
			case readyItem:
				if s.free(i) {
					n++
				}
			}
			if !ready {
				break
			}
		}
		if !ready {
			continue
		}
		weight := 1 + s.fails[k]
		// Of equals, the one with the least room to spare.
		spare := float64(s.capacity-f-s.rest[k]) / float64(s.capacity) * 1e-3
		if (float64(n)+spare)/weight >= bestScore {
			continue
		}
		raised := int64(0)
		if room := s.capacity - s.rest[k]; room > f {
			if raised = s.rise(k, next, room); raised > 0 {
				n++
			}
		}
		if n == 0 {
			return -k - 1, 0
		}
		score := (float64(n) + spare) / weight
		if n == 1 {
			score = 0
		}
		if score < bestScore {
			best, bestRaised, bestScore = k, raised, score
			if n == 1 {
				break
			}
		}
	}
	return best, bestRaised
}

// rise is the least height of the next item of a section if none lies on its floor, 0 if
// that is above the limit. next is the lowest offset of those that can't.
func (s *skyline) rise(k int32, next, limit int64) int64 {
	f := s.floor[k]
	next = min(next, limit+1)
	for _, i := range s.sections[k] {
		if s.placed[i] || s.low[i] > f {
			continue
		}
		for _, j := range s.items[i].neighbours {
			if s.top[j] < next && !s.has(j, k) {
				next = s.top[j]
			}
		}
	}
	if next > limit {
		return 0
	}
	return next
}

// has reports whether an item lives in a section.
func (s *skyline) has(i, k int32) bool {
	it := &s.items[i]
	if k < it.first || k > it.last {
		return false
	}
	if int(it.last-it.first)+1 == len(it.sections) {
		return true
	}
	_, there := slices.BinarySearch(it.sections, k)
	return there
}

// place puts an item on its floors; it reports false if another one can't be placed then.
func (s *skyline) place(i int32) bool {
	it := &s.items[i]
	s.placed[i] = true
	s.trail = append(s.trail, skyChange{skyPlaced, i, 0})
	for k := it.first + 1; k <= it.last; k++ {
		s.cross[k]--
	}
	top := s.top[i]
	s.top[i] = math.MaxInt64
	for _, k := range it.sections {
		s.rest[k] -= it.size
		s.setFloor(k, top, true)
	}
	ok := true
	for _, j := range it.neighbours {
		if !s.placed[j] && s.low[j] < top {
			ok = s.raise(j, top) && ok
		}
	}
	return ok
}

// waste leaves room free below a height, as place.
func (s *skyline) waste(k int32, to int64) bool {
	s.setFloor(k, to, false)
	ok := true
	for _, j := range s.sections[k] {
		if !s.placed[j] && s.low[j] < to {
			ok = s.raise(j, to) && ok
		}
	}
	return ok
}

func (s *skyline) mark(k int32) {
	if !s.isDirty[k] {
		s.isDirty[k] = true
		s.dirty = append(s.dirty, k)
	}
}

func (s *skyline) setFloor(k int32, to int64, solid bool) {
	what := skyAir
	if s.solid[k] {
		what = skyFloor
	}
	s.trail = append(s.trail, skyChange{what, k, s.floor[k]})
	s.floor[k], s.solid[k] = to, solid
	s.mark(k)
}

// raise lifts the lowest offset of an unplaced item.
func (s *skyline) raise(j int32, to int64) bool {
	it := &s.items[j]
	s.trail = append(s.trail, skyChange{skyLow, j, s.low[j]})
	s.low[j], s.top[j] = to, to+it.size
	for _, k := range it.sections {
		s.mark(k)
	}
	return s.top[j] <= s.capacity
}

// consistent compares what the changed sections still need with the capacity.
func (s *skyline) consistent() bool {
	ok := true
	for _, k := range s.dirty {
		s.isDirty[k] = false
		if !ok || s.rest[k] == 0 {
			continue
		}
		if !s.holds(k) {
			s.fails[k]++
			ok = false
		}
	}
	s.dirty = s.dirty[:0]
	return ok
}

// holds compares what a section still needs with the capacity, by (1).
func (s *skyline) holds(k int32) bool {
	if s.floor[k]+s.rest[k] > s.capacity {
		return false
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, i := range s.sections[k] {
		if !s.placed[i] {
			least, most = min(least, s.low[i]), max(most, s.low[i])
		}
	}
	if least+s.rest[k] > s.capacity {
		return false
	}
	if most+s.rest[k] <= s.capacity {
		return true
	}
	return s.piled(k, s.low, 0) <= s.capacity
}

func (s *skyline) undo(mark int) {
	for len(s.trail) > mark {
		t := s.trail[len(s.trail)-1]
		s.trail = s.trail[:len(s.trail)-1]
		switch t.what {
		case skyLow:
			s.low[t.i], s.top[t.i] = t.old, t.old+s.items[t.i].size
		case skyFloor, skyAir:
			s.floor[t.i], s.solid[t.i] = t.old, t.what == skyFloor
		case skyPlaced:
			s.placed[t.i], s.top[t.i] = false, s.low[t.i]+s.items[t.i].size
			s.items[t.i].lift(s.cross, s.rest)
		}
	}
}
