package lower

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/model/schedule"
)

// queueLog knows the queue of every command so far. Queues run in order, so of the
// commands of one queue only the latest must be waited for.
type queueLog struct {
	queue []uint8
	mem   *Memory
}

// lastOf is the last of some commands of each queue that has any.
type lastOf struct {
	of  [mostQueues]int32
	has uint32 // a bit for each queue
}

// wait notes a command of a queue.
func (l *lastOf) wait(queue uint8, c int32) {
	if bit := uint32(1) << queue; l.has&bit == 0 || l.of[queue] < c {
		l.of[queue], l.has = c, l.has|bit
	}
}

// latest keeps the last command of each queue, ascending.
func (l *queueLog) latest(lists ...[]int32) []int32 {
	var last lastOf
	for _, cmds := range lists {
		for _, c := range cmds {
			if c >= 0 {
				last.wait(l.queue[c], c)
			}
		}
	}
	if l.mem.allWaits {
		all := slices.DeleteFunc(slices.Concat(lists...), func(c int32) bool { return c < 0 })
		slices.Sort(all)
		return slices.Compact(all)
	}
	return last.list(&l.mem.numbers)
}

// list is the commands of each queue, ascending.
func (l *lastOf) list(a *arena[int32]) []int32 {
	kept := a.take(bits.OnesCount32(l.has))
	for has := l.has; has != 0; has &= has - 1 {
		x, k := l.of[bits.TrailingZeros32(has)], len(kept)
		for kept = append(kept, x); k > 0 && kept[k-1] > x; k-- { // a handful
			kept[k] = kept[k-1]
		}
		kept[k] = x
	}
	return kept
}

// longList is the length from which a list of commands is cut to the latest.
const longList = 4 * numQueues

// space remembers, for an address range, which commands must have ended before each stretch may be written again.
type space struct {
	log   *queueLog
	parts []part // apart from each other, ascending
}

// part is a range of a space, and what its next writer waits for.
type part struct {
	lo, hi int64
	*stretch
}

// stretch is an allocation: the commands that read or write it.
type stretch struct {
	log    *queueLog
	lo, hi int64
	first  int32
	lasts  []int32
	label  int32
	// recorded: it stands in the program's list of buffers.
	recorded bool
	// buffer is its index in the program's list plus one, once that is known; continued: it goes on in the next one.
	buffer    int32
	continued bool
}

// use records a command that touches the stretch.
func (s *stretch) use(cmds ...int32) {
next:
	for _, c := range cmds {
		if c < 0 {
			continue
		}
		if s.first < 0 {
			s.first = c
		}
		if s.log.mem.unnamed {
			for i, x := range s.lasts {
				if s.log.queue[x] == s.log.queue[c] {
					s.lasts[i] = max(x, c)
					continue next
				}
			}
		}
		if len(s.lasts) == cap(s.lasts) && len(s.lasts) <= longList {
			s.lasts = append(s.log.mem.numbers.take(2*len(s.lasts)+1), s.lasts...)
		}
		s.lasts = append(s.lasts, c)
	}
	if len(s.lasts) > longList {
		s.lasts = s.log.latest(s.lasts)
	}
}

// take allocates [lo, lo+size) and returns what its first writer must wait for.
func (s *space) take(lo, size int64, label int32) (*stretch, []int32) {
	put := s.log.mem.stretches.put
	n := put(stretch{log: s.log, lo: lo, hi: lo + size, first: -1, label: label, lasts: s.log.mem.numbers.take(4)})
	from := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].hi > n.lo })
	to := from
	var deps lastOf
	for ; to < len(s.parts) && s.parts[to].lo < n.hi; to++ {
		for _, c := range s.parts[to].lasts {
			deps.wait(s.log.queue[c], c)
		}
	}
	if to == from+1 && s.parts[from].lo == n.lo && s.parts[from].hi == n.hi { // most often
		s.parts[from].stretch = n
		return n, deps.list(&s.log.mem.numbers)
	}
	var room [3]part
	made := room[:0]
	// What sticks out on either side stays to be waited for, by what has touched it up to now.
	if from < to && s.parts[from].lo < n.lo {
		p := s.parts[from]
		left := append(s.log.mem.numbers.take(len(p.lasts)), p.lasts...)
		made = append(made, part{p.lo, n.lo, put(stretch{log: s.log, lo: p.lo, hi: n.lo, lasts: left, first: p.first})})
	}
	made = append(made, part{n.lo, n.hi, n})
	if from < to && s.parts[to-1].hi > n.hi {
		p := s.parts[to-1]
		right := append(s.log.mem.numbers.take(len(p.lasts)), p.lasts...)
		made = append(made, part{n.hi, p.hi, put(stretch{log: s.log, lo: n.hi, hi: p.hi, lasts: right, first: p.first})})
	}
	s.parts = slices.Replace(s.parts, from, to, made...)
	return n, deps.list(&s.log.mem.numbers)
}

// ring gives out contiguous stretches of a range of a space in turn.
type ring struct{ base, size, head int64 }

func (r *ring) next(in *space, bytes int64, label int32) (*stretch, []int32) {
	bytes = min(bytes, r.size)
	if r.head+bytes > r.size {
		r.head = 0
	}
	s, deps := in.take(r.base+r.head, bytes, label)
	r.head += bytes
	return s, deps
}

// between makes the ring the range between two addresses.
func (r *ring) between(lo, hi int64) {
	if r.base != lo || r.size != hi-lo {
		*r = ring{base: lo, size: hi - lo}
	}
}

// home is the part of the cores' weight buffers in which weights stay where there is no LLB. Uses come round and round
// in the same order, so that what came first is as good to keep as anything: it leaves with its last use, and only from
// blocked nests, which use their own weights again and again.
type home struct {
	space
	gaps  []gap // ascending, none next to another
	tiles map[tileKey]resident
	over  []tileKey // whose last use is in the present step
}

// gap is a range of addresses that nothing holds.
type gap struct{ lo, hi int64 }

// resident is a weight tile that stays, or a core's share of it.
type resident struct {
	load      int32
	place     *stretch
	coreBytes int64          // of the whole tile, for the busiest core
	step      *schedule.Step // that it was brought for
}

// keep gives out space for what is used again, or nil, and what its first writer must wait for.
func (h *home) keep(bytes int64, again bool, label int32) (*stretch, []int32) {
	for i := range h.gaps {
		if g := &h.gaps[i]; again && g.hi-g.lo >= bytes {
			g.lo += bytes
			return h.take(g.lo-bytes, bytes, label)
		}
	}
	return nil, nil
}

// leave gives back the space of what the step before has used for the last time.
func (h *home) leave() {
	for _, key := range h.over {
		if x, there := h.tiles[key]; there {
			h.gaps = append(h.gaps, gap{x.place.lo, x.place.hi})
			delete(h.tiles, key)
		}
	}
	h.gaps = slices.DeleteFunc(h.gaps, func(g gap) bool { return g.lo == g.hi }) // taken whole: its ends join nothing
	if h.over = h.over[:0]; len(h.gaps) < 2 {
		return
	}
	slices.SortFunc(h.gaps, func(a, b gap) int { return cmp.Compare(a.lo, b.lo) })
	joined := h.gaps[:1]
	for _, g := range h.gaps[1:] {
		if last := &joined[len(joined)-1]; last.hi == g.lo {
			last.hi = g.hi
		} else {
			joined = append(joined, g)
		}
	}
	h.gaps = joined
}

const never = math.MaxInt64

// entry is a piece of data in the LLB's pages.
type entry struct {
	key      int32 // of a tile of weights, see emitter.number; 0: none
	place    int32 // in pages.entries
	arrived  int   // how many came before
	pages    []int
	load     int32   // the DDRLoad that brought it
	users    []int32 // commands that read it
	nextUse  int64
	retained bool
	pinned   bool // a part of a stage: it stays until that is read
	first    int32
	at       *stretch // its first run of pages; nil: nothing asks for it
}

// pages is the LLB cut into pages of equal size, for weights and transfers. Values
// claim the pages under their addresses for as long as they live.
type pages struct {
	log       *queueLog
	pageBytes int64
	// free pages, the one that may be written soonest first: the last command that must end
	// before, plus one, in the upper half.
	free []uint64
	// pending holds, per page, the commands that must end before it is written, and ready the last of them.
	pending [][]int32
	ready   []int32
	claims  []int    // values on each page
	claimed int      // pages with claims
	holder  []int32  // of each page: the place of the entry on it, or unused
	entries []*entry // all present, and nil in places that are left
	left    []int32  // places
	arrived int
	// Of each place: the last command that touches an entry that may be pushed out, and the
	// next use of one that is retained, below zero.
	lastUse, nextUse firsts
	// retained counts the pages of retained entries.
	retained int
	quarters int          // of the available pages that may be retained
	evicted  func(*entry) // to record buffers
	unnamed  bool         // no command asks for the buffers
}

func newPages(log *queueLog, bytes int64, evicted func(*entry)) *pages {
	p := &pages{log: log, lastUse: firsts{all: unused}, nextUse: firsts{all: unused}, quarters: 2, evicted: evicted,
		pageBytes: pageBytes(bytes)}
	n := int(bytes / p.pageBytes)
	p.claims = make([]int, n)
	p.pending = make([][]int32, n)
	p.ready = make([]int32, n)
	p.holder = make([]int32, n)
	for i := range n {
		p.holder[i] = unused
		p.free = append(p.free, p.turn(i))
	}
	return p
}

// turn names a page in the list of free ones.
func (p *pages) turn(page int) uint64 { return uint64(p.ready[page]+1)<<32 | uint64(page) }

func pageOf(turn uint64) int { return int(uint32(turn)) }

// note keeps what is known of an entry's place up to date, unless it has left.
func (p *pages) note(e *entry) {
	if p.entries[e.place] != e {
		return
	}
	last, next := int64(never), int64(never)
	switch {
	case e.retained:
		next = -e.nextUse
	case !e.pinned:
		last = int64(e.load)
		if n := len(e.users); n > 0 {
			last = max(last, int64(e.users[n-1]))
		}
	}
	p.lastUse.set(e.place, last)
	p.nextUse.set(e.place, next)
}

// bring notes the command that brings an entry.
func (p *pages) bring(e *entry, c int32) {
	e.load, e.first = c, int32(min(uint32(e.first), uint32(c))) // before the first it is -1
	p.note(e)
}

// use notes a command that reads an entry.
func (p *pages) use(e *entry, c int32) {
	e.users = append(e.users, c)
	p.note(e)
}

// pin keeps an entry, or no longer.
func (p *pages) pin(e *entry, pinned bool) {
	e.pinned = pinned
	p.note(e)
}

// pageBytes is the size of the pages of an LLB.
func pageBytes(bytes int64) int64 {
	if n := bytes / 256 / 64 * 64; n > 0 {
		return n
	}
	return max(1, bytes/256) // a tiny buffer
}

// stageable is the number of pages stages may take: half of what is available, so that the rest goes on as it would.
func (p *pages) stageable() int { return p.available() / 2 }

// available is the number of pages that no value claims.
func (p *pages) available() int { return len(p.claims) - p.claimed }

// keepable is the number of pages that may be retained: half of what is available, or so many
// quarters. What is kept saves traffic, and the rest lets loads run ahead of their use.
func (p *pages) keepable() int {
	return p.available() - max(1, p.available()*(4-p.quarters)/4)
}

func (p *pages) need(bytes int64) int { return int(max(1, (bytes+p.pageBytes-1)/p.pageBytes)) }

// largest is the most bytes that one entry may have: a quarter of the pages
// available, so that one can load while others are in use.
func (p *pages) largest() int64 { return int64(max(1, p.available()/4)) * p.pageBytes }

// claim takes the pages under [lo, hi) for a value and returns what must end before they may be written.
func (p *pages) claim(lo, hi int64) []int32 {
	var deps []int32
	for page := int(lo / p.pageBytes); page < len(p.claims) && int64(page)*p.pageBytes < hi; page++ {
		if p.claims[page]++; p.claims[page] > 1 {
			continue
		}
		p.claimed++
		if place := p.holder[page]; place != unused {
			p.drop(p.entries[place])
		}
		if i, found := slices.BinarySearch(p.free, p.turn(page)); found {
			p.free = slices.Delete(p.free, i, i+1)
		}
		deps = append(deps, p.pending[page]...)
	}
	for p.retained > p.keepable() {
		p.release(p.lastNeeded())
	}
	return p.log.latest(deps)
}

// unclaim gives the pages back after the given commands.
func (p *pages) unclaim(lo, hi int64, after []int32) {
	for page := int(lo / p.pageBytes); page < len(p.claims) && int64(page)*p.pageBytes < hi; page++ {
		// A page shared by several values waits for all of them.
		p.claims[page]--
		p.wait(page, p.log.latest(p.pending[page], after))
		if p.claims[page] == 0 {
			p.claimed--
			p.putFree([]int{page})
		}
	}
}

// wait sets what must end before the page is written.
func (p *pages) wait(page int, after []int32) {
	p.pending[page] = after
	p.ready[page] = -1
	for _, c := range after {
		p.ready[page] = max(p.ready[page], c)
	}
}

// putFree inserts pages that may be written at the same time, ascending, into the free list in
// order of readiness: most often they stay together.
func (p *pages) putFree(list []int) {
	for len(list) > 0 {
		i, _ := slices.BinarySearch(p.free, p.turn(list[0]))
		n := 1
		for n < len(list) && (i == len(p.free) || p.turn(list[n]) < p.free[i]) {
			n++
		}
		p.free = append(p.free, make([]uint64, n)...)
		copy(p.free[i+n:], p.free[i:])
		for k, page := range list[:n] {
			p.free[i+k] = p.turn(page)
		}
		list = list[n:]
	}
}

// lastNeeded is the retained entry whose next use comes last, or nil.
func (p *pages) lastNeeded() *entry {
	if place, _ := p.nextUse.first(); place != unused {
		return p.entries[place]
	}
	return nil
}

// find returns a present entry, and counts the use.
func (p *pages) find(key int32, nextUse int64) *entry {
	e := p.log.mem.byTile[key].entry
	if e != nil {
		p.touch(e, nextUse)
	}
	return e
}

func (p *pages) touch(e *entry, nextUse int64) {
	e.nextUse = nextUse
	if p.note(e); nextUse == never {
		p.release(e)
	} else {
		p.retain(e)
	}
}

func (p *pages) release(e *entry) {
	if e.retained {
		e.retained = false
		p.retained -= len(e.pages)
		p.note(e)
	}
}

// retain keeps e if there is room, or if its next use comes before that of the kept entry that is needed last.
func (p *pages) retain(e *entry) {
	if e.retained {
		return
	}
	for p.retained+len(e.pages) > p.keepable() {
		worst := p.lastNeeded()
		if worst == nil || worst.nextUse <= e.nextUse {
			return
		}
		p.release(worst)
	}
	e.retained = true
	p.retained += len(e.pages)
	p.note(e)
}

// add makes room for a new entry and returns it with the commands that must end before its pages may be written.
func (p *pages) add(key int32, bytes, nextUse int64) (*entry, []int32) {
	n := min(p.need(bytes), p.available())
	// The pages that may be written soonest: free ones, or those of the entry not kept whose last use is longest ago.
	for {
		victim, oldest := p.lastUse.first()
		if n == 0 || len(p.free) >= n && int64(p.ready[pageOf(p.free[n-1])]) <= oldest {
			break
		}
		if victim < 0 {
			p.release(p.lastNeeded())
			continue
		}
		p.drop(p.entries[victim])
	}
	m := p.log.mem
	e := m.entries.put(entry{key: key, arrived: p.arrived, pages: m.pages.take(n), nextUse: nextUse, load: -1, first: -1,
		users: m.numbers.take(4)})
	if !p.unnamed {
		e.at = m.stretches.put(stretch{})
	}
	p.arrived++
	var last lastOf
	var before []int32
	for _, turn := range p.free[:n] {
		page := pageOf(turn)
		e.pages = append(e.pages, page)
		after := p.pending[page]
		// pages that were left together wait for the same
		if len(after) > 0 && (len(before) == 0 || &after[0] != &before[0]) {
			for _, c := range after {
				last.wait(p.log.queue[c], c)
			}
		}
		before = after
	}
	deps := last.list(&p.log.mem.numbers)
	p.free = slices.Delete(p.free, 0, n)
	if !slices.IsSorted(e.pages) {
		slices.Sort(e.pages)
	}
	if n := len(p.left); n > 0 {
		e.place, p.left = p.left[n-1], p.left[:n-1]
		p.entries[e.place] = e
	} else {
		e.place = int32(len(p.entries))
		p.entries = append(p.entries, e)
		p.lastUse.add()
		p.nextUse.add()
	}
	for _, page := range e.pages {
		p.holder[page] = e.place
	}
	if key > 0 {
		m.byTile[key].entry = e
	}
	p.touch(e, nextUse)
	return e, deps
}

func (p *pages) drop(o *entry) {
	p.release(o)
	p.entries[o.place] = nil
	p.lastUse.set(o.place, never)
	p.nextUse.set(o.place, never)
	p.left = append(p.left, o.place)
	if o.key > 0 {
		p.log.mem.byTile[o.key].entry = nil
	}
	after := p.log.latest(o.users, []int32{o.load})
	for i, page := range o.pages {
		p.holder[page] = unused
		if i == 0 {
			p.wait(page, after)
		} else {
			p.pending[page], p.ready[page] = after, p.ready[o.pages[0]]
		}
	}
	p.putFree(o.pages)
	p.evicted(o)
}

// clear drops everything, what came last first.
func (p *pages) clear() {
	list := slices.DeleteFunc(slices.Clone(p.entries), func(e *entry) bool { return e == nil })
	slices.SortFunc(list, func(a, b *entry) int { return b.arrived - a.arrived })
	for _, e := range list {
		p.drop(e)
	}
}

// forget makes all entries unfindable, without freeing their pages early.
func (p *pages) forget() {
	for _, e := range p.entries {
		if e == nil {
			continue
		}
		p.release(e)
		if e.key > 0 {
			p.log.mem.byTile[e.key].entry = nil
			e.key = 0
		}
		e.nextUse = never
	}
}
