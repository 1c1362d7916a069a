package ordering

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/heap"
)

// defaultMaxBytes keeps a search well below 4 GB, with what the collector takes beside it.
const defaultMaxBytes = 1 << 30

// Search is the state-space search of docs/formulations.md: exact for every valid problem and both objectives.
// WorkLimit is the most states kept at a time, MemoryBytes the most memory that states take; 0 is 1 GiB.
func Search(ctx context.Context, p *Problem, objective Objective, opts Options) (*Result, error) {
	begin := time.Now()
	g := NewGraph(p)
	if objective == Traffic {
		if err := g.Feasible(); err != nil {
			return noOrder("search", objective, err)
		}
	}
	parts, of, distinct, err := prepare(g, objective, &opts, twinned)
	if err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	stop := &limits{ctx: ctx, maxStates: int(opts.WorkLimit), maxBytes: opts.MemoryBytes}
	stop.maxBytes = cmp.Or(stop.maxBytes, defaultMaxBytes)
	if opts.Progress != nil {
		stop.watch = watch(opts.Reporter(), g.Unit, of, objective)
	}
	for _, a := range distinct {
		a.beam(stop, int(opts.WorkLimit), len(g.Refs))
	}
	reason := milp.Complete
	for _, a := range distinct {
		if cut := a.prove(stop); reason == milp.Complete || cut == milp.StopCancelled {
			reason = cut
		}
		if stop.watch != nil {
			stop.watch(true)
		}
	}

	res, err := assemble("search", p, g, parts, of, objective)
	if err != nil {
		return nil, err
	}
	res.finish(begin, reason)
	return res, nil
}

// limits say when to stop.
type limits struct {
	ctx       context.Context
	maxStates int
	maxBytes  int64
	ticks     int
	over      milp.Stop      // set when the context has ended
	watch     func(due bool) // reports progress; nil: no sink
}

// watch reports what is known of all parts together.
func watch(report func(objective, bound float64, due bool), unit float64, of []*answer,
	objective Objective) func(due bool) {
	if objective == Peak {
		unit = 1 // bytes
	}
	return func(due bool) {
		var cost, bound int64
		for _, a := range of {
			low := min(a.bound, a.cost)
			if objective == Peak {
				cost, bound = max(cost, a.cost), max(bound, low)
			} else {
				cost, bound = cost+a.cost, bound+low
			}
		}
		report(float64(cost)/unit, float64(bound)/unit, due)
	}
}

// reached polls the context every few calls, and the size of s always.
func (l *limits) reached(s *space) milp.Stop {
	switch {
	case l.maxStates > 0 && s.count >= l.maxStates:
		return milp.StopWork
	case s.bytes() > l.maxBytes:
		return milp.StopMemory
	}
	if l.ticks++; l.watch != nil && l.ticks%64 == 1 {
		l.watch(false)
	}
	if l.ticks%8 == 1 && l.over == milp.Complete {
		l.over = solve.Why(l.ctx)
	}
	return l.over
}

// beam keeps the best states of each depth only. It finds good orders and proves
// nothing, except that an order of cost 0 is a best one.
func (a *answer) beam(stop *limits, most, n int) {
	if a.cost <= a.bound {
		return
	}
	width := min(max(100_000/n, 8), 200)
	if most > 0 {
		// Some ten children per state, and the search should see its end.
		width = max(1, min(width, most/(16*n)))
	}
	s := newSpace(a)
	s.upper = a.cost
	root := s.root()
	if root < 0 {
		return
	}
	layer := []int32{root}
	for range len(a.part.ids) {
		var next []int32
		for _, id := range layer {
			if s.node(id).dropped {
				continue
			}
			if stop.reached(s) != milp.Complete {
				return
			}
			s.expand(id, func(child int32) bool {
				next = append(next, child)
				return stop.reached(s) == milp.Complete
			})
		}
		slices.SortStableFunc(next, func(x, y int32) int {
			if c := s.node(x).estimate - s.node(y).estimate; c != 0 {
				return int(min(max(c, -1), 1))
			}
			return int(x) - int(y)
		})
		layer = layer[:0]
		for _, id := range next {
			if !s.node(id).dropped && len(layer) < width {
				layer = append(layer, id)
			}
		}
		if len(layer) == 0 {
			return
		}
	}
	a.takeEvents(s.path(layer[0]))
}

// prove is the complete search; it returns what cut it short.
func (a *answer) prove(stop *limits) milp.Stop {
	if a.cost <= a.bound {
		return milp.Complete
	}
	s := newSpace(a)
	s.upper = a.cost
	if root := s.root(); root >= 0 {
		s.open.Push(s.entry(root))
	}
	for s.open.Len() > 0 {
		if cut := stop.reached(s); cut != milp.Complete {
			a.bound = max(a.bound, s.open.First().estimate)
			return cut
		}
		e := s.open.Pop()
		if s.node(e.id).dropped {
			continue
		}
		if e.depth == len(a.part.ids) {
			a.takeEvents(s.path(e.id))
			a.bound = a.cost
			return milp.Complete
		}
		a.bound = max(a.bound, e.estimate)
		cut := milp.Complete
		s.expand(e.id, func(child int32) bool {
			s.open.Push(s.entry(child))
			cut = stop.reached(s)
			return cut == milp.Complete
		})
		if cut != milp.Complete {
			return cut // the bound is that of the state that was left half-way
		}
	}
	// Nothing below the order that is known.
	a.bound = a.cost
	return milp.Complete
}

// A space holds the states of one search. A state is, per class, how many have
// run and how many of the live outputs are in the LLB only, and of shared ones how many
// are in both, packed into words: first all of the runs, then all of the places.
type space struct {
	*answer
	upper int64 // only states below it are kept

	fields   []field // 3 per class: runs, in the LLB, in both
	runWords int
	width    int // words per state
	chunk    int32

	nodes  [][]node
	packed [][]uint64
	count  int
	table  []int32 // open addressing by runs: 1 + the first state of a chain
	used   int

	open *heap.Heap[entry]

	// Scratch: the state that is expanded, its child, and one to compare with.
	ran, childRan []int
	at, childAt   []place
	resident      []int // outputs in the L1
	dead          []bool
	key           []uint64
	options       []option
	chosen        []int
}

// A place is how many of the outputs of a class are in the LLB only, and how many are in
// both the L1 and the LLB: these are clean. The other live ones are in the L1 only, dirty.
type place struct{ llb, clean int }

type field struct {
	word  int
	shift uint
	mask  uint64
}

type node struct {
	cost, estimate int64
	parent, next   int32
	class          int32
	depth          int32
	dropped        bool
}

// chunkWords is the size of an allocation of states, which holds at least one.
const chunkWords = 1 << 14

// An option is a class with outputs that may be stored.
type option struct {
	class, count int
	bytes        int64
}

func newSpace(a *answer) *space {
	k := len(a.classes)
	s := &space{answer: a, open: heap.Of(entry.before), fields: make([]field, 3*k),
		ran: make([]int, k), at: make([]place, k), childRan: make([]int, k), childAt: make([]place, k),
		resident: make([]int, k), dead: make([]bool, k)}
	word, shift := 0, 0
	lay := func(f int, most int) {
		n := bits.Len(uint(most))
		if shift+n > 64 {
			word, shift = word+1, 0
		}
		s.fields[f] = field{word, uint(shift), 1<<n - 1}
		shift += n
	}
	for c := range a.classes {
		lay(3*c, a.classes[c].n())
	}
	word, shift = word+1, 0
	s.runWords = word
	for c := range a.classes {
		llb, clean := 0, 0
		if a.objective == Traffic && a.classes[c].kept() {
			llb = a.classes[c].n()
			if a.classes[c].shared {
				clean = llb
			}
		}
		lay(3*c+1, llb)
		lay(3*c+2, clean)
	}
	s.width = word + 1
	s.chunk = int32(max(1, chunkWords/s.width))
	s.key = make([]uint64, s.width)
	s.table = make([]int32, 1<<10)
	return s
}

func (s *space) node(id int32) *node { return &s.nodes[id/s.chunk][id%s.chunk] }

func (s *space) words(id int32) []uint64 {
	at := int(id%s.chunk) * s.width
	return s.packed[id/s.chunk][at : at+s.width]
}

// bytes is the memory of the states.
func (s *space) bytes() int64 {
	return int64(len(s.nodes))*int64(s.chunk)*int64(40+8*s.width) + 4*int64(cap(s.table)) + 24*int64(s.open.Len())
}

func (s *space) get(w []uint64, f int) int {
	x := s.fields[f]
	return int(w[x.word] >> x.shift & x.mask)
}

// placeOf returns the place of a class in a state.
func (s *space) placeOf(w []uint64, k int) place { return place{s.get(w, 3*k+1), s.get(w, 3*k+2)} }

func (s *space) root() int32 {
	for k := range s.classes {
		s.childRan[k], s.childAt[k] = 0, place{}
	}
	cost := int64(0)
	if s.objective == Peak {
		cost = s.bound
	}
	return s.add(-1, -1, 0, cost)
}

// add keeps childRan, childAt unless it is dominated or too expensive, and returns its number or -1.
func (s *space) add(parent, class int32, depth int32, cost int64) int32 {
	estimate := cost
	if s.objective == Traffic {
		estimate += s.reloads(s.childAt)
	}
	if estimate >= s.upper {
		return -1
	}
	clear(s.key)
	for k := range s.classes {
		for i, n := range [3]int{s.childRan[k], s.childAt[k].llb, s.childAt[k].clean} {
			f := s.fields[3*k+i]
			s.key[f.word] |= uint64(n) << f.shift
		}
	}
	slot := s.slot(s.key[:s.runWords])
	// The chain holds the states with the same runs.
	link := &s.table[slot]
	for *link != 0 {
		id := *link - 1
		x := s.node(id)
		w := s.words(id)
		there, here := s.distances(w, cost-x.cost, x.cost-cost)
		if x.cost+there <= cost {
			return -1
		}
		x.dropped = cost+here <= x.cost
		if x.dropped {
			*link = x.next
		} else {
			link = &x.next
		}
	}
	id := int32(s.count)
	if s.count%int(s.chunk) == 0 {
		s.nodes = append(s.nodes, make([]node, s.chunk))
		s.packed = append(s.packed, make([]uint64, int(s.chunk)*s.width))
	}
	s.count++
	*s.node(id) = node{cost: cost, estimate: estimate, parent: parent, class: class, depth: depth}
	copy(s.words(id), s.key)
	// A chain that lost all of its states keeps its slot's emptiness out of the
	// probe sequences of others only by being refilled here.
	if s.table[slot] == 0 {
		s.used++
		s.table[slot] = id + 1
		if 2*s.used > len(s.table) {
			s.grow()
		}
	} else {
		*link = id + 1
	}
	return id
}

// distances are the most that the state w pays to do whatever the child does, which has the same runs, and what the
// child pays to do as w: proposition 3 of docs/formulations.md. Each stops counting above its most.
func (s *space) distances(w []uint64, mostThere, mostHere int64) (there, here int64) {
	for k, b := range s.childAt {
		a := s.placeOf(w, k)
		if a == b {
			continue
		}
		c := &s.classes[k]
		// Dirty ones, but for a number that both states have in common.
		dirty, llb := int64(b.llb+b.clean-a.llb-a.clean), int64(a.llb-b.llb)
		there += max(0, dirty)*c.store + max(0, llb)*c.load
		here += max(0, -dirty)*c.store + max(0, -llb)*c.load
		if there > mostThere && here > mostHere {
			break
		}
	}
	return there, here
}

func (s *space) slot(runs []uint64) int {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range runs {
		h = (h ^ w) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	mask := len(s.table) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		if s.table[i] == 0 || slices.Equal(s.words(s.table[i] - 1)[:s.runWords], runs) {
			return i
		}
	}
}

func (s *space) grow() {
	old := s.table
	s.table = make([]int32, 2*len(old))
	for _, first := range old {
		if first != 0 {
			s.table[s.slot(s.words(first - 1)[:s.runWords])] = first
		}
	}
}

// reloads is a bound on what places cost: every output that waits in the LLB alone is loaded at least once.
func (s *space) reloads(at []place) int64 {
	h := int64(0)
	for k, p := range at {
		h += int64(p.llb) * s.classes[k].load
	}
	return h
}

// expand hands the children of a state to found, which returns false to stop.
func (s *space) expand(id int32, found func(int32) bool) {
	w := s.words(id)
	for k := range s.classes {
		s.ran[k], s.at[k] = s.get(w, 3*k), s.placeOf(w, k)
	}
	used := int64(0)
	for k := range s.classes {
		c := &s.classes[k]
		s.resident[k], s.dead[k] = 0, false
		if !c.kept() {
			continue
		}
		if c.shared {
			s.dead[k] = s.ran[k] == c.n()
			for _, r := range c.readers {
				s.dead[k] = s.dead[k] && s.ran[r] == s.classes[r].n()
			}
			if !s.dead[k] {
				s.resident[k] = s.ran[k] - s.at[k].llb
			}
		} else {
			s.resident[k] = s.ran[k] - c.per*s.ran[c.readers[0]] - s.at[k].llb
		}
		used += int64(s.resident[k]) * c.out
	}
	x := *s.node(id)
	for k := range s.classes {
		if s.ready(k) && s.atOnce(k, used, x.cost) {
			if child := s.run(id, k, used, nil); child >= 0 {
				found(child)
			}
			return
		}
	}
	for k := range s.classes {
		if !s.ready(k) {
			continue
		}
		excess := used + s.missing(k) + s.classes[k].out + s.classes[k].work - s.part.graph.Capacity
		if s.objective == Peak || excess <= 0 {
			if child := s.run(id, k, used, nil); child >= 0 && !found(child) {
				return
			}
			continue
		}
		s.options = s.options[:0]
		for j := range s.classes {
			n := s.resident[j]
			for _, r := range s.classes[k].reads {
				if r.class == j {
					n -= min(n, r.count)
				}
			}
			if n > 0 && s.classes[j].out > 0 {
				s.options = append(s.options, option{j, n, s.classes[j].out})
			}
		}
		s.chosen = append(s.chosen[:0], make([]int, len(s.options))...)
		if !s.choose(id, k, used, 0, excess, math.MaxInt64, found) {
			return
		}
	}
}

// choose goes through the sets of outputs to store, from option i on, that free
// the excess and of which no part would do.
func (s *space) choose(id int32, k int, used int64, i int, excess, smallest int64, found func(int32) bool) bool {
	if excess <= 0 {
		if -excess >= smallest {
			return true // one too many
		}
		child := s.run(id, k, used, s.chosen)
		return child < 0 || found(child)
	}
	rest := int64(0)
	for _, o := range s.options[i:] {
		rest += int64(o.count) * o.bytes
	}
	if rest < excess {
		return true
	}
	o := s.options[i]
	for n := 0; n <= o.count; n++ {
		left := excess - int64(n)*o.bytes
		s.chosen[i] = n
		least := smallest
		if n > 0 {
			least = min(least, o.bytes)
		}
		if !s.choose(id, k, used, i+1, left, least, found) {
			s.chosen[i] = 0
			return false
		}
		if left <= 0 {
			break
		}
	}
	s.chosen[i] = 0
	return true
}

func (s *space) ready(k int) bool {
	c := &s.classes[k]
	if s.ran[k] == c.n() {
		return false
	}
	for _, r := range c.reads {
		have := s.ran[r.class]
		if x := &s.classes[r.class]; !x.shared {
			have -= x.per * s.ran[k]
		}
		if have < r.count {
			return false
		}
	}
	return true
}

// missing is the bytes that a run of class k has to load.
func (s *space) missing(k int) int64 {
	n := int64(0)
	for _, r := range s.classes[k].reads {
		if short := r.count - s.resident[r.class]; short > 0 {
			n += int64(short) * s.classes[r.class].out
		}
	}
	return n
}

// atOnce reports whether some best way on begins with a run of class k: Proposition 4 of docs/formulations.md.
func (s *space) atOnce(k int, used, cost int64) bool {
	c := &s.classes[k]
	for _, r := range c.reads {
		if s.resident[r.class] < r.count {
			return false
		}
	}
	capacity := s.part.graph.Capacity
	if s.objective == Peak {
		capacity = cost
	}
	if used+c.out+c.work > capacity {
		return false
	}
	if !c.kept() {
		return true
	}
	// What the run frees, and what storing and loading it costs at least.
	freed := int64(0)
	dear := true // each freed output costs no less than the new one
	for _, r := range c.reads {
		x := &s.classes[r.class]
		if x.shared && !s.lastReader(r.class, k) {
			continue
		}
		freed += int64(r.count) * x.out
		price := x.store + x.load
		if s.at[r.class].clean > 0 {
			price = x.load
		}
		dear = dear && price >= c.store+c.load
	}
	return freed >= c.out && (dear || s.objective == Peak)
}

// lastReader reports whether the next run of class k is the last to read the shared output j.
func (s *space) lastReader(j, k int) bool {
	for _, r := range s.classes[j].readers {
		left := s.classes[r].n() - s.ran[r]
		if r == k {
			left--
		}
		if left > 0 {
			return false
		}
	}
	return true
}

// run adds the state after a run of class k with the stores chosen of options.
func (s *space) run(id int32, k int, used int64, chosen []int) int32 {
	x := *s.node(id)
	cost := x.cost
	copy(s.childRan, s.ran)
	copy(s.childAt, s.at)
	if s.objective == Peak {
		cost = max(cost, used+s.classes[k].out+s.classes[k].work)
	} else {
		for i, n := range chosen {
			if n == 0 {
				continue
			}
			j := s.options[i].class
			clean := min(n, s.at[j].clean) // for nothing
			s.childAt[j].llb += n
			s.childAt[j].clean -= clean
			cost += int64(n-clean) * s.classes[j].store
		}
		for _, r := range s.classes[k].reads {
			c := &s.classes[r.class]
			short := r.count - s.resident[r.class]
			if short > 0 {
				cost += int64(short) * c.load
				s.childAt[r.class].llb -= short
				if c.shared {
					s.childAt[r.class].clean += short
				}
			}
			if c.shared && s.lastReader(r.class, k) {
				s.childAt[r.class] = place{}
			}
		}
	}
	s.childRan[k]++
	return s.add(id, int32(k), x.depth+1, cost)
}

// path lists the events from the root to a state.
func (s *space) path(id int32) []event {
	var ids []int32
	for ; s.node(id).parent >= 0; id = s.node(id).parent {
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	events := make([]event, len(ids))
	for i, id := range ids {
		x := s.node(id)
		events[i].class = int(x.class)
		before, after := s.words(x.parent), s.words(id)
		for k := range s.classes {
			if n := s.placeOf(after, k).llb - s.placeOf(before, k).llb; n > 0 {
				events[i].store = append(events[i].store, classRead{k, n})
			}
		}
	}
	return events
}

// An entry is a state in the queue: least estimate first, then deepest, then latest.
type entry struct {
	estimate int64
	depth    int
	id       int32
}

func (s *space) entry(id int32) entry {
	x := s.node(id)
	return entry{x.estimate, int(x.depth), id}
}

func (a entry) before(b entry) bool {
	if a.estimate != b.estimate {
		return a.estimate < b.estimate
	}
	if a.depth != b.depth {
		return a.depth > b.depth
	}
	return a.id > b.id
}
