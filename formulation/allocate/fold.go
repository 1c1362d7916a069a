package allocate

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// folded is the search over what is left when buffers that follow each other are put
// together, see the package's essay. That is not without loss: what it does not find may
// be there.
type folded struct {
	p        *Problem
	switches Switches
	seed     uint64
	capacity int64
	blocks   []block
	roots    []int32
	inner    finder
	rules    []Preorder
}

// block is a buffer, room that is kept free, or blocks stacked in the same room: some
// until a time, others from it on.
type block struct {
	from, upto, size int64
	buffer           int // -1: none
	before, after    []int32
	solid            bool // whether a buffer is in it
}

func (f *folded) reset() { f.seed = 0 }

// fit folds and searches anew, each time otherwise, until it has found a placement or used
// up its nodes. Joints count as nodes.
func (f *folded) fit(ctx context.Context, _ Preorder, capacity, limit int64) (verdict, int64) {
	nodes := int64(0)
	for nodes < limit {
		if ctx.Err() != nil {
			return cancelled, nodes
		}
		f.seed++
		f.capacity = capacity
		joins := f.fold(rand.New(rand.NewPCG(f.seed, 23)))
		if joins == 0 {
			return exhausted, nodes // the other searches do as well
		}
		f.inner = newSkyline(f.rest(), f.switches)
		budget := min(limit-nodes, int64(4*len(f.roots)+64)*luby(f.seed))
		v, n := f.inner.fit(ctx, f.rules[int(f.seed-1)%len(f.rules)], capacity, budget)
		nodes += n + joins
		if v == found || v == cancelled {
			return v, nodes
		}
	}
	return exhausted, nodes
}

// luby is the sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... of Luby, Sinclair and Zuckerman
// (1993), from 1 on.
func luby(k uint64) int64 {
	for {
		n := bits.Len64(k)
		if k == 1<<n-1 {
			return 1 << (n - 1)
		}
		k -= 1<<(n-1) - 1
	}
}

// rest is the problem of the blocks that are left.
func (f *folded) rest() *Problem {
	p := &Problem{}
	for _, k := range f.roots {
		b := &f.blocks[k]
		p.Buffers = append(p.Buffers, Buffer{ID: fmt.Sprint(k), Lifetime: Interval{b.from, b.upto}, Size: b.size})
	}
	return p
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

// fillers are stretches of time with room to spare, such that with them all times are
// full.
func (f *folded) fillers(r *rand.Rand) {
	type open struct{ from, size int64 }
	var all []open
	spare, last := int64(0), int64(0)
	closeOne := func(k int, size, at int64) {
		f.blocks = append(f.blocks, block{from: all[k].from, upto: at, size: size, buffer: -1})
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
					k = r.IntN(len(all))
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

// fold puts blocks together until nothing matches, and says how often it did.
func (f *folded) fold(r *rand.Rand) int64 {
	f.blocks = f.blocks[:0]
	for i := range f.p.Buffers {
		b := &f.p.Buffers[i]
		if b.Size > 0 {
			f.blocks = append(f.blocks, block{from: b.Lifetime.Lower, upto: b.Lifetime.Upper, size: b.Size, buffer: i, solid: true})
		}
	}
	f.fillers(r)
	starts, ends := make(map[int64][]int32), make(map[int64][]int32)
	var times []int64
	for k := range f.blocks {
		b := &f.blocks[k]
		starts[b.from] = append(starts[b.from], int32(k))
		ends[b.upto] = append(ends[b.upto], int32(k))
		times = append(times, b.upto)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	tried := make(map[int64]int, len(times)) // levels at which a time has no match
	gone := make([]bool, len(f.blocks), 2*len(f.blocks))
	join := func(t int64, before, after []int32) {
		n := block{from: f.blocks[before[0]].from, upto: f.blocks[after[0]].upto, buffer: -1, before: before, after: after}
		for _, half := range [2][]int32{before, after} {
			n.size = 0
			for _, k := range half {
				b := &f.blocks[k]
				n.size += b.size
				n.solid = n.solid || b.solid
				gone[k] = true
				starts[b.from] = slices.DeleteFunc(starts[b.from], func(j int32) bool { return j == k })
				ends[b.upto] = slices.DeleteFunc(ends[b.upto], func(j int32) bool { return j == k })
			}
		}
		k := int32(len(f.blocks))
		f.blocks, gone = append(f.blocks, n), append(gone, false)
		starts[n.from] = append(starts[n.from], k)
		ends[n.upto] = append(ends[n.upto], k)
		delete(tried, n.from)
		delete(tried, t)
		delete(tried, n.upto)
	}
	for level := 0; level < 3; {
		if f.seed > 1 {
			r.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
		}
		changed := false
		for _, t := range times {
			if tried[t] > level {
				continue
			}
			if before, after := f.match(ends[t], starts[t], level, r); before != nil {
				join(t, before, after)
				changed = true
				if level > 0 {
					break
				}
			} else {
				tried[t] = level + 1
			}
		}
		if changed {
			level = 0
		} else {
			level++
		}
	}
	f.roots = f.roots[:0]
	joins := int64(0)
	for k := range f.blocks {
		if f.blocks[k].before != nil {
			joins++
		}
		if !gone[k] && f.blocks[k].solid {
			f.roots = append(f.roots, int32(k))
		}
	}
	return joins
}

// match finds blocks that begin together and end at a time, and others from then on to
// another time, of the same size in all.
func (f *folded) match(ends, starts []int32, level int, r *rand.Rand) (before, after []int32) {
	if len(ends) == 0 || len(starts) == 0 {
		return nil, nil
	}
	sum := func(all []int32) int64 {
		n := int64(0)
		for _, k := range all {
			n += f.blocks[k].size
		}
		return n
	}
	groups := func(all []int32, key func(b *block) int64) [][]int32 {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b int32) int {
			return cmp.Or(cmp.Compare(key(&f.blocks[a]), key(&f.blocks[b])), cmp.Compare(a, b))
		})
		var out [][]int32
		for k := range all {
			if k == 0 || key(&f.blocks[all[k]]) != key(&f.blocks[all[k-1]]) {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], all[k])
		}
		return out
	}
	es, ss := groups(ends, func(b *block) int64 { return b.from }), groups(starts, func(b *block) int64 { return b.upto })
	if level == 0 && (len(es) > 1 || len(ss) > 1) {
		return nil, nil
	}
	if f.seed > 1 {
		r.Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
		r.Shuffle(len(ss), func(i, j int) { ss[i], ss[j] = ss[j], ss[i] })
	}
	for _, e := range es {
		for _, s := range ss {
			if sum(e) == sum(s) {
				return e, s
			}
		}
	}
	if level < 2 {
		return nil, nil
	}
	for _, e := range es {
		for _, s := range ss {
			if b, a := f.subsets(e, s); b != nil {
				return b, a
			}
		}
	}
	return nil, nil
}

// subsets finds parts of two sets of the same size, the largest there are.
func (f *folded) subsets(e, s []int32) (before, after []int32) {
	const most = 10
	e, s = e[:min(len(e), most)], s[:min(len(s), most)]
	sums := func(all []int32) []int64 {
		out := make([]int64, 1<<len(all))
		for m := 1; m < len(out); m++ {
			low := 0
			for m>>low&1 == 0 {
				low++
			}
			out[m] = out[m&(m-1)] + f.blocks[all[low]].size
		}
		return out
	}
	of := make(map[int64]int)
	for m, x := range sums(e) {
		if x > 0 {
			if _, there := of[x]; !there {
				of[x] = m
			}
		}
	}
	best, bm, sm := int64(0), 0, 0
	for m, x := range sums(s) {
		if k, there := of[x]; there && x > best {
			best, bm, sm = x, k, m
		}
	}
	pick := func(all []int32, m int) (out []int32) {
		for k := range all {
			if m>>k&1 == 1 {
				out = append(out, all[k])
			}
		}
		return out
	}
	if best == 0 {
		return nil, nil
	}
	return pick(e, bm), pick(s, sm)
}
