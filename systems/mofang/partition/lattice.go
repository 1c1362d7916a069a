package partition

import (
	"context"
	"slices"
)

// A lattice is a set of ideals with the steps between them that add one class:
// all ideals, or those of some topological orders.
type lattice struct {
	words  int
	sets   []uint64 // words for each ideal
	acc    []float64
	cpu    []float64
	bytes  []float64
	barred []int32 // classes that no accelerator supports
	// Steps from ideal i are first[i] to first[i+1]: which class, to which ideal. Ideals are in ascending order of size.
	first []int32
	steps []step
	full  int // -1 if it is not there
}

type step struct{ class, to int32 }

func (l *lattice) set(i int) bitset { return bitset(l.sets[i*l.words : (i+1)*l.words]) }
func (l *lattice) len() int         { return len(l.acc) }

// A growth collects ideals, one size after another.
type growth struct {
	g     *contracted
	l     *lattice
	table []int32 // of ideals by hash, -1 is free
}

func newGrowth(g *contracted) *growth {
	w := &growth{g: g, l: &lattice{words: max(1, (len(g.classes)+63)/64), full: -1}}
	w.l.sets = make([]uint64, w.l.words)
	w.l.acc, w.l.cpu, w.l.bytes, w.l.barred = []float64{0}, []float64{0}, []float64{0}, []int32{0}
	w.table = slices.Repeat([]int32{-1}, 1<<10)
	return w
}

func hash(s bitset) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range s {
		h = (h ^ x) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	return h
}

// find gives the ideal with the set, or the place in the table where it belongs.
func (w *growth) find(s bitset) (id int32, at uint64) {
	mask := uint64(len(w.table) - 1)
	for at = hash(s) & mask; ; at = (at + 1) & mask {
		id = w.table[at]
		if id < 0 || slices.Equal(w.l.set(int(id)), s) {
			return id, at
		}
	}
}

// grow adds the ideal that is ideal i and class c.
func (w *growth) grow(i int, c int, scratch bitset) int32 {
	l := w.l
	copy(scratch, l.set(i))
	scratch.add(c)
	id, at := w.find(scratch)
	if id >= 0 {
		return id
	}
	id = int32(l.len())
	l.sets = append(l.sets, scratch...)
	k := &w.g.classes[c]
	l.acc = append(l.acc, l.acc[i]+k.acc)
	l.cpu = append(l.cpu, l.cpu[i]+k.cpu)
	l.bytes = append(l.bytes, l.bytes[i]+k.bytes)
	barred := l.barred[i]
	if !k.supported {
		barred++
	}
	l.barred = append(l.barred, barred)
	w.table[at] = id
	if 2*l.len() > len(w.table) {
		w.table = slices.Repeat([]int32{-1}, 2*len(w.table))
		for i := range l.len() {
			_, at := w.find(l.set(i))
			w.table[at] = int32(i)
		}
	}
	return id
}

// ideals makes the lattice of all ideals; nil if there are more than limit, or where ctx ends first.
func (g *contracted) ideals(ctx context.Context, limit int) *lattice {
	w := newGrowth(g)
	l := w.l
	scratch := newBitset(64 * l.words)
	for i := 0; i < l.len(); i++ {
		if l.len() > limit || i%4096 == 0 && ctx.Err() != nil {
			return nil
		}
		l.first = append(l.first, int32(len(l.steps)))
		for c := range g.classes {
			if s := l.set(i); s.has(c) || slices.ContainsFunc(g.classes[c].pred, func(u int) bool { return !s.has(u) }) {
				continue
			}
			l.steps = append(l.steps, step{int32(c), w.grow(i, c, scratch)})
		}
	}
	l.first = append(l.first, int32(len(l.steps)))
	l.full = l.len() - 1
	return l
}

// chains makes the lattice of the ideals that are beginnings of the orders.
func (g *contracted) chains(orders [][]int) *lattice {
	w := newGrowth(g)
	l := w.l
	scratch := newBitset(64 * l.words)
	at := make([]int, len(orders))
	next := [][]step{nil}
	for k := range g.classes {
		for o, order := range orders {
			i := at[o]
			c := order[k]
			to := int(w.grow(i, c, scratch))
			if to == len(next) {
				next = append(next, nil)
			}
			if s := (step{int32(c), int32(to)}); !slices.Contains(next[i], s) {
				next[i] = append(next[i], s)
			}
			at[o] = to
		}
	}
	for _, s := range next {
		l.first = append(l.first, int32(len(l.steps)))
		l.steps = append(l.steps, s...)
	}
	l.first = append(l.first, int32(len(l.steps)))
	l.full = l.len() - 1
	return l
}

// A sweep is one run of the recurrence over a lattice with a cut-off.
type sweep struct {
	g       *contracted
	l       *lattice
	cutoff  float64
	width   int // states of an ideal: (accelerators+1) x (CPUs+1)
	best    []float64
	from    []int32 // ideal before, and state before
	device  []bool  // the last device is a CPU
	comm    []float64
	seen    []int32 // start for which comm holds, plus 1
	pairs   int64   // visited
	work    int64   // the most pairs
	stopped bool
}

// run finds the best row whose loads are all below the cut-off, nil if there is
// none, or if ctx or the limit on pairs ends it, when stopped is set.
//
// Completions of a state are cut off by absorb, what accelerator time the remaining devices can take at most.
func (g *contracted) run(ctx context.Context, l *lattice, cutoff float64, work int64) (row []part,
	value float64, s *sweep) {
	K, L := g.accelerators, g.cpus
	s = &sweep{g: g, l: l, cutoff: cutoff, work: work, width: (K + 1) * (L + 1)}
	n := l.len()
	s.best = slices.Repeat([]float64{cutoff}, n*s.width)
	s.from = make([]int32, n*s.width)
	s.device = make([]bool, n*s.width)
	s.comm = make([]float64, n)
	s.seen = make([]int32, n)
	s.best[0] = 0
	total := l.acc[l.full]
	room := make([]float64, s.width) // accelerator time that devices still to come can take
	for a := range K + 1 {
		for c := range L + 1 {
			room[a*(L+1)+c] = float64(K-a)*cutoff + g.absorb(float64(L-c)*cutoff) + 1e-9*total
		}
	}
	var stack, live []int32
	for i := range n {
		if i%64 == 0 && ctx.Err() != nil {
			s.stopped = true
			return nil, 0, s
		}
		live = live[:0]
		states := s.best[i*s.width : (i+1)*s.width]
		for st := range states {
			if states[st] < cutoff && total-l.acc[i] <= room[st] && !s.dominated(states, st, L) {
				live = append(live, int32(st))
			}
		}
		if len(live) == 0 || i == l.full {
			continue
		}
		stack = s.visit(ctx, i, live, room, stack[:0])
		if s.stopped {
			return nil, 0, s
		}
	}
	end := s.best[l.full*s.width:]
	final := 0
	for st := range end {
		if end[st] < end[final] {
			final = st
		}
	}
	if !(end[final] < cutoff) {
		return nil, 0, s
	}
	value = end[final]
	for i, st := l.full, final; i != 0; {
		before := int(s.from[i*s.width+st])
		cpu := s.device[i*s.width+st]
		row = append(row, part{cpu, s.between(before, i)})
		i = before
		if cpu {
			st--
		} else {
			st -= L + 1
		}
	}
	slices.Reverse(row)
	return row, value, s
}

// dominated reports whether an ideal is reached as well with fewer devices.
func (s *sweep) dominated(states []float64, st, L int) bool {
	if st%(L+1) > 0 && states[st-1] <= states[st] {
		return true
	}
	return st > L && states[st-L-1] <= states[st]
}

// between lists the classes of one ideal that another within it has not.
func (s *sweep) between(inner, outer int) []int {
	var classes []int
	in, out := s.l.set(inner), s.l.set(outer)
	for c := range s.g.classes {
		if out.has(c) && !in.has(c) {
			classes = append(classes, c)
		}
	}
	return classes
}

// visit tries every set that begins at ideal i as the next device.
func (s *sweep) visit(ctx context.Context, i int, live []int32, room []float64, stack []int32) []int32 {
	l, g := s.l, s.g
	K, L := g.accelerators, g.cpus
	stamp := int32(i + 1)
	start := l.set(i)
	total := l.acc[l.full]
	anyAcc, anyCPU := false, false
	for _, st := range live {
		anyAcc = anyAcc || int(st)/(L+1) < K
		anyCPU = anyCPU || int(st)%(L+1) < L
	}
	s.seen[i] = stamp
	s.comm[i] = 0
	stack = append(stack, int32(i))
	for len(stack) > 0 {
		j := int(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		if s.pairs++; s.pairs >= s.work || s.pairs%(1<<16) == 0 && ctx.Err() != nil {
			s.stopped = true
			return stack
		}
		here := l.set(j)
		for _, st := range l.steps[l.first[j]:l.first[j+1]] {
			to := int(st.to)
			if s.seen[to] == stamp {
				continue
			}
			s.seen[to] = stamp
			acc, cpu := l.acc[to]-l.acc[i], l.cpu[to]-l.cpu[i]
			onAcc := anyAcc && acc < s.cutoff && l.bytes[to]-l.bytes[i] <= g.p.memory && l.barred[to] == l.barred[i]
			onCPU := anyCPU && cpu < s.cutoff
			if !onAcc && !onCPU {
				continue
			}
			s.comm[to] = s.comm[j] + g.change(int(st.class), here, start)
			stack = append(stack, int32(to))
			rest := total - l.acc[to]
			tried := false // that the set is contiguous
			for _, state := range live {
				value := s.best[i*s.width+int(state)]
				for _, next := range [2]struct {
					may  bool
					load float64
					by   int
					cpu  bool
				}{{onAcc && int(state)/(L+1) < K, acc + s.comm[to], L + 1, false}, {onCPU && int(state)%(L+1) < L, cpu, 1, true}} {
					after := int(state) + next.by
					if !next.may || next.load >= s.cutoff || rest > room[min(after, s.width-1)] {
						continue
					}
					v := max(value, next.load)
					if v >= s.best[to*s.width+after] {
						continue
					}
					if !tried {
						if g.past != nil && !g.contiguous(s.between(i, to)) {
							onAcc, onCPU = false, false // the set, not its extensions
							break
						}
						tried = true
					}
					k := to*s.width + after
					s.best[k], s.from[k], s.device[k] = v, int32(i), next.cpu
				}
			}
		}
	}
	return stack
}

// change is by how much the cost of the nets that a set cuts grows with class x:
// the set is what ideal here has and ideal start has not.
func (g *contracted) change(x int, here, start bitset) float64 {
	sum := 0.0
	for _, e := range g.of[x] {
		n := &g.nets[e]
		some, all := false, true // of the other pins are in the set
		for _, c := range n.pins {
			if c == x {
				continue
			}
			if here.has(c) && !start.has(c) {
				some = true
			} else {
				all = false
			}
		}
		if some {
			sum -= n.cost
		}
		if !all {
			sum += n.cost
		}
	}
	return sum
}

// absorb is the most accelerator time that nodes can have whose CPU times sum to
// at most budget, parts of nodes allowed.
func (g *contracted) absorb(budget float64) float64 {
	if budget == 0 {
		return 0
	}
	sum := 0.0
	for _, i := range g.byRatio {
		c := &g.classes[i]
		if c.cpu > budget {
			return sum + c.acc*budget/c.cpu
		}
		budget -= c.cpu
		sum += c.acc
	}
	return sum
}
