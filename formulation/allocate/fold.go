package allocate

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// folded is the search for a way to put buffers that follow each other together such that little is left, see
// docs/formulations.md, and over what is left. That is not without loss: what it does not find may be there.
type folded struct {
	p        *Problem
	inner    *canonical
	seed     uint64
	capacity int64
	r        *rand.Rand

	times        []int64
	blocks       []block
	starts, ends [][]int32 // of a time: the roots, those that are in no other block
	count        int       // roots
	unused       []int32   // blocks

	dirty         []int32 // times at which roots have come or gone
	isDirty       []bool
	tried         []int8  // of a time: below this level nothing matches
	plain         bool    // whether nothing is at random
	banned        int32   // the time at which nothing is joined yet, or -1
	log           []redo  // of a step
	gone          []int32 // blocks that the step has taken away
	before, after []group

	since, patience int64 // steps without a new best
	best            int
	idle            bool             // whether so little is joined that the other searches do as well
	steps, tests    int64            // nodes
	known           map[uint64]int64 // of roots: how often they were at hand, or -1 if they have no place
	roots           []int32          // of the last test
}

// block is a buffer, room that is kept free, or blocks stacked in the same room: some until a time, others from it on.
type block struct {
	from, upto    int32 // times
	size          int64
	buffer        int32 // -1: none
	before, after []int32
	parent        int32 // -1: none
	solid         bool  // whether a buffer is in it
	filler        bool
}

// group is roots that end at one time and begin at another.
type group struct {
	other int32 // time
	sum   int64
	list  []int32
}

type redo struct {
	what folding
	k    int32
}

type folding uint8

const (
	foldJoined folding = iota
	foldParted
	foldBorn
	foldDead
)

// loose reports whether all buffers may lie anywhere, and each on top of any other.
func loose(p *Problem) bool {
	g := int64(0)
	for i := range p.Buffers {
		g = milp.GCD(g, p.Buffers[i].Size)
	}
	return !slices.ContainsFunc(p.Buffers, func(b Buffer) bool { return b.Offset != nil || g%b.Align() != 0 })
}

func (f *folded) reset() { f.seed, f.known, f.idle = 0, nil, false }

// fit changes the folding step by step, and searches what is left where that is little. Joints count as nodes.
func (f *folded) fit(ctx context.Context, _ preorder, capacity, limit int64) (verdict, int64) {
	if f.known == nil || f.capacity != capacity {
		f.capacity, f.patience, f.steps, f.tests = capacity, 0, 0, 0
		f.known = make(map[uint64]int64)
	}
	nodes := int64(0)
	for nodes < limit {
		if ctx.Err() != nil {
			return cancelled, nodes
		}
		count := f.count
		if f.since >= f.patience {
			f.seed++
			f.r = rand.New(rand.NewPCG(f.seed, 23))
			f.build()
			if f.idle = f.count == 0 || 4*f.count >= 3*len(f.p.Buffers); f.idle {
				return exhausted, nodes
			}
			f.since, f.patience, f.best = 0, 1500*luby(f.seed), math.MaxInt
		} else {
			f.since++
			f.change()
			f.grow()
		}
		// A scan of all blocks is as much work as some joints.
		work := 1 + int64(len(f.log)+len(f.blocks)/64)/8
		nodes += work
		f.steps += work
		// Some that are worse stay, so that the search leaves what is best nearby.
		if worse := f.count - count; f.best < math.MaxInt && worse > 0 && f.r.Float64() >= math.Exp(-float64(worse)/0.7) {
			f.rollback()
			continue
		}
		changed := len(f.log) > 0
		f.commit()
		better := f.count < f.best
		if nodes >= limit || !better && (!changed || f.count > f.best+1 || f.tests > f.steps/2) {
			continue
		}
		if better {
			f.best, f.since = f.count, 0
		}
		v, n := f.test(ctx, limit-nodes)
		nodes += n
		f.tests += n
		if v == found || v == cancelled {
			return v, nodes
		}
	}
	return exhausted, nodes
}

// luby is the sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... of Luby, Sinclair and Zuckerman (1993), from 1 on.
func luby(k uint64) int64 {
	for {
		n := bits.Len64(k)
		if k == 1<<n-1 {
			return 1 << (n - 1)
		}
		k -= 1<<(n-1) - 1
	}
}

// test searches for a place for what is left, each time for longer.
func (f *folded) test(ctx context.Context, limit int64) (verdict, int64) {
	f.roots = f.roots[:0]
	name := uint64(0)
	p := &Problem{}
	for _, all := range f.starts {
		for _, k := range all {
			if b := &f.blocks[k]; b.solid {
				f.roots = append(f.roots, k)
				p.Buffers = append(p.Buffers, Buffer{Lifetime: Interval{f.times[b.from], f.times[b.upto]}, Size: b.size})
				name += mix(mix(uint64(b.from)<<32|uint64(b.upto)) ^ uint64(b.size))
			}
		}
	}
	n := f.known[name]
	if n < 0 {
		return notThere, 0
	}
	f.known[name]++
	if n&(n-1) != 0 {
		return exhausted, 0
	}
	f.inner = newCanonical(p)
	budget := min(limit, (n+1)*int64(4*len(f.roots)+64))
	v, nodes := f.inner.fit(ctx, preorders[f.r.IntN(len(preorders))], f.capacity, budget)
	if v == notThere {
		f.known[name] = -1
	}
	return v, nodes + int64(len(f.roots))/8
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (f *folded) offsets() []int64 {
	offsets := make([]int64, len(f.p.Buffers))
	var put func(k int32, at int64)
	put = func(k int32, at int64) {
		b := &f.blocks[k]
		if b.buffer >= 0 {
			offsets[b.buffer] = at
		}
		for _, half := range [2][]int32{b.before, b.after} {
			at := at
			for _, j := range half {
				put(j, at)
				at += f.blocks[j].size
			}
		}
	}
	for i, at := range f.inner.offsets() {
		put(f.roots[i], at)
	}
	return offsets
}

// build starts anew.
func (f *folded) build() {
	f.times = f.times[:0]
	for i := range f.p.Buffers {
		f.times = append(f.times, f.p.Buffers[i].Lifetime.Lower, f.p.Buffers[i].Lifetime.Upper)
	}
	slices.Sort(f.times)
	f.times = slices.Compact(f.times)
	n := len(f.times)
	f.starts, f.ends = make([][]int32, n), make([][]int32, n)
	f.isDirty, f.tried = make([]bool, n), make([]int8, n)
	f.blocks, f.unused, f.dirty, f.log, f.gone = f.blocks[:0], f.unused[:0], f.dirty[:0], f.log[:0], f.gone[:0]
	f.count, f.banned = 0, -1
	at := func(t int64) int32 {
		k, _ := slices.BinarySearch(f.times, t)
		return int32(k)
	}
	for i := range f.p.Buffers {
		if b := &f.p.Buffers[i]; b.Size > 0 {
			f.blocks = append(f.blocks, block{from: at(b.Lifetime.Lower), upto: at(b.Lifetime.Upper), size: b.Size,
				buffer: int32(i), parent: -1, solid: true})
			f.add(int32(len(f.blocks) - 1))
		}
	}
	f.fillers(func(from, upto, size int64) { f.born(at(from), at(upto), size) })
	f.log = f.log[:0]
	slices.Sort(f.dirty)
	f.plain = f.seed == 1
	f.grow()
	f.plain = false
}

// shuffle reorders at random, but for the first folding.
func shuffle[T any](f *folded, all []T) {
	if !f.plain {
		f.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
}

// fillers are stretches of time with room to spare, such that with them all times are full.
func (f *folded) fillers(add func(from, upto, size int64)) {
	type open struct{ from, size int64 }
	var all []open
	spare, last := int64(0), int64(0)
	closeOne := func(k int, size, at int64) {
		add(all[k].from, at, size)
		if all[k].size -= size; all[k].size == 0 {
			all = slices.Delete(all, k, k+1)
		}
	}
	sections := f.p.Sections()
	for n := range sections {
		s := &sections[n]
		now := f.capacity - s.Bytes()
		if n > 0 && s.Time.Lower > last { // nothing lives in between
			for len(all) > 0 {
				closeOne(0, all[0].size, last)
			}
			spare = 0
		}
		last = s.Time.Upper
		for less := spare - now; less > 0; {
			k := slices.IndexFunc(all, func(o open) bool { return o.size == less })
			if k < 0 {
				for i := range all {
					for j := range i {
						if all[i].size+all[j].size == less {
							k = i
						}
					}
				}
			}
			if k < 0 {
				k = len(all) - 1
				if f.seed > 1 {
					k = f.r.IntN(len(all))
				}
			}
			size := min(less, all[k].size)
			closeOne(k, size, s.Time.Lower)
			less -= size
		}
		if now > spare {
			all = append(all, open{s.Time.Lower, now - spare})
		}
		spare = now
	}
	for len(all) > 0 {
		closeOne(0, all[0].size, last)
	}
}

func (f *folded) touch(t int32) {
	f.tried[t] = 0
	if !f.isDirty[t] {
		f.isDirty[t] = true
		f.dirty = append(f.dirty, t)
	}
}

// add makes a block a root.
func (f *folded) add(k int32) {
	b := &f.blocks[k]
	f.starts[b.from] = append(f.starts[b.from], k)
	f.ends[b.upto] = append(f.ends[b.upto], k)
	f.touch(b.from)
	f.touch(b.upto)
	f.count++
}

func (f *folded) remove(k int32) {
	b := &f.blocks[k]
	for _, list := range [2]*[]int32{&f.starts[b.from], &f.ends[b.upto]} {
		i := slices.Index(*list, k)
		*list = slices.Delete(*list, i, i+1)
	}
	f.touch(b.from)
	f.touch(b.upto)
	f.count--
}

// link makes a block a root in place of its parts, unlink the reverse.
func (f *folded) link(k int32) {
	b := &f.blocks[k]
	for _, half := range [2][]int32{b.before, b.after} {
		for _, j := range half {
			f.remove(j)
			f.blocks[j].parent = k
		}
	}
	f.add(k)
}

func (f *folded) unlink(k int32) {
	b := &f.blocks[k]
	f.remove(k)
	for _, half := range [2][]int32{b.before, b.after} {
		for _, j := range half {
			f.blocks[j].parent = -1
			f.add(j)
		}
	}
}

// next is a block without parts.
func (f *folded) next() int32 {
	if n := len(f.unused); n > 0 {
		k := f.unused[n-1]
		f.unused = f.unused[:n-1]
		return k
	}
	f.blocks = append(f.blocks, block{})
	return int32(len(f.blocks) - 1)
}

// free forgets a block.
func (f *folded) free(k int32) {
	b := &f.blocks[k]
	b.before, b.after, b.filler = b.before[:0], b.after[:0], false
	f.unused = append(f.unused, k)
}

// join puts roots together.
func (f *folded) join(before, after []int32) {
	k := f.next()
	b := &f.blocks[k]
	*b = block{
		from: f.blocks[before[0]].from, upto: f.blocks[after[0]].upto, buffer: -1, parent: -1,
		before: append(b.before, before...), after: append(b.after, after...),
	}
	for _, j := range b.before {
		b.size += f.blocks[j].size
		b.solid = b.solid || f.blocks[j].solid
	}
	for _, j := range b.after {
		b.solid = b.solid || f.blocks[j].solid
	}
	f.link(k)
	f.log = append(f.log, redo{foldJoined, k})
}

// part takes a root apart.
func (f *folded) part(k int32) {
	f.unlink(k)
	f.gone = append(f.gone, k)
	f.log = append(f.log, redo{foldParted, k})
}

// bare makes a block a root: what it is in is taken apart.
func (f *folded) bare(k int32) {
	if p := f.blocks[k].parent; p >= 0 {
		f.bare(p)
		f.part(p)
	}
}

// born adds a filler, unless it is empty.
func (f *folded) born(from, upto int32, size int64) {
	if from == upto || size == 0 {
		return
	}
	k := f.next()
	b := &f.blocks[k]
	*b = block{from: from, upto: upto, size: size, buffer: -1, before: b.before, after: b.after, parent: -1, filler: true}
	f.add(k)
	f.log = append(f.log, redo{foldBorn, k})
}

// take takes a filler away, wherever it is.
func (f *folded) take(k int32) {
	f.bare(k)
	f.remove(k)
	f.blocks[k].filler = false
	f.gone = append(f.gone, k)
	f.log = append(f.log, redo{foldDead, k})
}

// commit ends a step that stays, rollback one that doesn't.
func (f *folded) commit() {
	for _, k := range f.gone {
		f.free(k)
	}
	f.gone, f.log = f.gone[:0], f.log[:0]
}

func (f *folded) rollback() {
	for _, op := range slices.Backward(f.log) {
		switch op.what {
		case foldJoined:
			f.unlink(op.k)
			f.free(op.k)
		case foldParted:
			f.link(op.k)
		case foldBorn:
			f.remove(op.k)
			f.free(op.k)
		case foldDead:
			f.blocks[op.k].filler = true
			f.add(op.k)
		}
	}
	f.gone, f.log = f.gone[:0], f.log[:0]
	f.settle(3)
}

// settle says that nothing matches below a level.
func (f *folded) settle(level int8) {
	for _, t := range f.dirty {
		f.isDirty[t], f.tried[t] = false, level
	}
	f.dirty = f.dirty[:0]
}

// grow joins until nothing matches.
func (f *folded) grow() {
	for level := int8(0); level < 3; {
		shuffle(f, f.dirty)
		changed := false
		for n := 0; n < len(f.dirty) && !(changed && level > 0); n++ {
			t := f.dirty[n]
			switch {
			case f.tried[t] > level:
			case t != f.banned && f.match(t, level):
				changed = true
			default:
				f.tried[t] = level + 1
			}
		}
		if level++; changed {
			level = 0
		}
	}
	if t := f.banned; t >= 0 {
		f.banned = -1
		f.touch(t)
		f.grow()
	}
	f.settle(3)
}

// match joins roots that begin together and end at a time, and others from then on to another time, of the same size
// in all: all roots there are, whole groups, or parts of groups, by level.
func (f *folded) match(t int32, level int8) bool {
	if len(f.ends[t]) == 0 || len(f.starts[t]) == 0 {
		return false
	}
	f.meet(t)
	if level == 0 && (len(f.before) != 1 || len(f.after) != 1) {
		return false
	}
	shuffle(f, f.before)
	shuffle(f, f.after)
	for _, e := range f.before {
		for _, s := range f.after {
			if e.sum == s.sum {
				f.join(e.list, s.list)
				return true
			}
		}
	}
	if level < 2 {
		return false
	}
	for _, e := range f.before {
		for _, s := range f.after {
			if before, after := f.subsets(e.list, s.list); before != nil {
				f.join(before, after)
				return true
			}
		}
	}
	return false
}

// meet sets before and after to the roots that end and begin at a time.
func (f *folded) meet(t int32) {
	groups := func(out []group, all []int32, other func(b *block) int32) []group {
		out = out[:0]
		for _, k := range all {
			b := &f.blocks[k]
			at := other(b)
			i := slices.IndexFunc(out, func(g group) bool { return g.other == at })
			if i < 0 {
				if i = len(out); i < cap(out) {
					out = out[:i+1]
				} else {
					out = append(out, group{})
				}
				out[i] = group{other: at, list: out[i].list[:0]}
			}
			out[i].sum += b.size
			out[i].list = append(out[i].list, k)
		}
		return out
	}
	f.before = groups(f.before, f.ends[t], func(b *block) int32 { return b.from })
	f.after = groups(f.after, f.starts[t], func(b *block) int32 { return b.upto })
}

// subsets finds parts of two sets of the same size, the largest there are.
func (f *folded) subsets(e, s []int32) (before, after []int32) {
	if len(e) == 1 && len(s) == 1 {
		return nil, nil
	}
	const most = 8
	type subset struct {
		sum  int64
		mask int
	}
	sums := func(all []int32) []subset {
		out := make([]subset, 1<<len(all))
		for m := 1; m < len(out); m++ {
			out[m] = subset{out[m&(m-1)].sum + f.blocks[all[bits.TrailingZeros(uint(m))]].size, m}
		}
		slices.SortFunc(out, func(a, b subset) int {
			return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.mask, b.mask))
		})
		return out
	}
	pick := func(all []int32, mask int) (out []int32) {
		for k := range all {
			if mask>>k&1 == 1 {
				out = append(out, all[k])
			}
		}
		return out
	}
	shuffle(f, e)
	shuffle(f, s)
	e, s = e[:min(len(e), most)], s[:min(len(s), most)]
	for x, y := sums(e), sums(s); x[0].sum > 0 && y[0].sum > 0; {
		switch {
		case x[0].sum > y[0].sum:
			x = x[1:]
		case x[0].sum < y[0].sum:
			y = y[1:]
		default:
			return pick(e, x[0].mask), pick(s, y[0].mask)
		}
	}
	return nil, nil
}

// change takes some of the folding apart, or divides the room to spare otherwise.
func (f *folded) change() {
	switch f.r.IntN(15) {
	case 0: // around a time
		t := f.r.IntN(len(f.times))
		for _, k := range slices.Concat(f.starts[t], f.ends[t]) {
			f.crumble(k)
		}
	case 1: // some roots
		for range 1 + f.r.IntN(4) {
			if all := f.starts[f.r.IntN(len(f.times))]; len(all) > 0 {
				f.crumble(all[f.r.IntN(len(all))])
			}
		}
	case 2: // around a joint
		if k := int32(f.r.IntN(len(f.blocks))); len(f.blocks[k].before) > 0 {
			f.bare(k)
			f.part(k)
			f.banned = f.blocks[f.blocks[k].before[0]].upto
		}
	case 3:
		if k := f.filler(func(*block) bool { return true }); k >= 0 {
			if b := f.blocks[k]; b.upto-b.from > 1 {
				f.cut(k, b.from, b.from+1+f.r.Int32N(b.upto-b.from-1), b.size)
			}
		}
	case 4, 5:
		i := f.filler(func(*block) bool { return true })
		if i < 0 {
			break
		}
		a := f.blocks[i]
		if j := f.filler(func(b *block) bool {
			return a.from < b.upto && b.from <= a.upto && a.from != b.from && a.upto != b.upto
		}); j >= 0 {
			f.swap(i, j, min(a.size, f.blocks[j].size))
		}
	default:
		f.suit()
	}
}

// crumble takes a root apart, and, with some chance, what comes out.
func (f *folded) crumble(k int32) {
	b := f.blocks[k]
	if len(b.before) == 0 {
		return
	}
	f.part(k)
	for _, half := range [2][]int32{b.before, b.after} {
		for _, j := range half {
			if f.r.Float64() < 0.6 {
				f.crumble(j)
			}
		}
	}
}

// suit makes room of the size that roots which meet at a time lack to be joined.
func (f *folded) suit() {
	t := int32(f.r.IntN(len(f.times)))
	if len(f.ends[t]) == 0 || len(f.starts[t]) == 0 {
		return
	}
	f.meet(t)
	e, s := f.before[f.r.IntN(len(f.before))], f.after[f.r.IntN(len(f.after))]
	from, upto, size := e.other, t, s.sum-e.sum
	if size < 0 {
		from, upto, size = t, s.other, -size
	}
	if size == 0 {
		return
	}
	// Two that have one end each, or one that covers it.
	i := f.filler(func(b *block) bool { return b.upto == upto && b.size >= size })
	j := f.filler(func(b *block) bool { return b.from == from && b.size >= size })
	if i >= 0 && j >= 0 && i != j && f.blocks[i].from <= f.blocks[j].upto {
		f.swap(i, j, size)
	} else if k := f.filler(func(b *block) bool { return b.from <= from && b.upto >= upto && b.size >= size }); k >= 0 {
		f.cut(k, from, upto, size)
	}
}

// filler is one of those that suit, -1 if there is none.
func (f *folded) filler(suits func(b *block) bool) int32 {
	k, n := int32(-1), 0
	for i := range f.blocks {
		if b := &f.blocks[i]; b.filler && suits(b) {
			if n++; n == 1 || f.r.IntN(n) == 0 {
				k = int32(i)
			}
		}
	}
	return k
}

// swap gives fillers each other's end, at a part of their sizes.
func (f *folded) swap(i, j int32, size int64) {
	a, b := f.blocks[i], f.blocks[j]
	f.take(i)
	f.take(j)
	f.born(a.from, b.upto, size)
	f.born(b.from, a.upto, size)
	f.born(a.from, a.upto, a.size-size)
	f.born(b.from, b.upto, b.size-size)
}

// cut makes a filler of a part of one.
func (f *folded) cut(k int32, from, upto int32, size int64) {
	b := f.blocks[k]
	f.take(k)
	f.born(from, upto, size)
	f.born(b.from, from, size)
	f.born(upto, b.upto, size)
	f.born(b.from, b.upto, b.size-size)
}
