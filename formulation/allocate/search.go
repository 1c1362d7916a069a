package allocate

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
)

// canonical is the depth-first search of docs/formulations.md.
type canonical struct {
	ctx      context.Context
	capacity int64
	nodes    int64 // visited
	limit    int64 // on nodes

	// The problem as the search sees it, and which of its items are placed. Items are the buffers that are ever in use.
	p        *Problem
	items    []item
	sections [][]int32 // items of each, maximal ones only
	piles    [][]int32 // the same, in order of their offsets when these were last looked at
	placed   []bool
	cross    []int32 // unplaced items that live on both sides of the start of a section
	key      []int32 // of an item: its place in the preordering
	twin     []int32 // of an item: the last one before that is like it, or -1

	low   []int64 // of an unplaced item: its lowest offset; of a placed one: its offset
	floor []int64 // of a section: no unplaced item of it can lie below
	rest  []int64 // of a section: sizes of unplaced items
	trail []change

	dirty   []int32
	isDirty []bool
}

type item struct {
	buffer      int
	size, align int64
	fixed       int64 // -1: free
	hint        int64 // -1: none
	sections    []int32
	first, last int32 // sections
	neighbours  []int32
	width       int64 // length of the lifetime
}

type change struct {
	what changed
	i    int32
	old  int64
}

type changed uint8

const (
	lowChanged changed = iota
	floorChanged
	itemPlaced
)

// component is a set of unplaced items that shares no section with others.
type component struct {
	items      []int32
	from, upto int32 // sections
}

// newCanonical prepares the search. It is used for any capacity after.
func newCanonical(p *Problem) *canonical {
	c := &canonical{p: p}
	of := make([]int32, len(p.Buffers))
	for i := range p.Buffers {
		b := &p.Buffers[i]
		of[i] = -1
		if !b.used() {
			continue
		}
		of[i] = int32(len(c.items))
		it := item{buffer: i, size: b.Size, align: b.Align(), fixed: -1, hint: -1, width: b.Lifetime.Len()}
		if b.Offset != nil {
			it.fixed = *b.Offset
		}
		if b.Hint != nil {
			it.hint = *b.Hint
		}
		c.items = append(c.items, it)
	}
	for _, s := range maximal(p.Sections()) {
		k := int32(len(c.sections))
		ids := make([]int32, 0, 2*len(s.Live))
		for _, l := range s.Live {
			ids = append(ids, of[l.Buffer])
			c.items[of[l.Buffer]].sections = append(c.items[of[l.Buffer]].sections, k)
		}
		c.sections, c.piles = append(c.sections, slices.Clip(ids)), append(c.piles, append(ids, ids...)[len(ids):])
	}
	n := len(c.items)
	near := make([]bool, n)
	entering := make([][]int32, len(c.sections)) // those that the section before has not
	for k, ids := range c.sections {
		for _, i := range ids {
			if c.items[i].sections[0] == int32(k) {
				entering[k] = append(entering[k], i)
			}
		}
	}
	for i := range c.items {
		it := &c.items[i]
		it.first, it.last = it.sections[0], it.sections[len(it.sections)-1]
		near[i] = true
		for k, s := range it.sections {
			meets := entering[s]
			if k == 0 {
				meets = c.sections[s]
			}
			for _, j := range meets {
				if !near[j] {
					near[j] = true
					it.neighbours = append(it.neighbours, j)
				}
			}
		}
		near[i] = false
		for _, j := range it.neighbours {
			near[j] = false
		}
		slices.Sort(it.neighbours)
	}
	c.placed, c.cross = make([]bool, n), make([]int32, len(c.sections))
	c.key, c.twin, c.low = make([]int32, n), make([]int32, n), make([]int64, n)
	m := len(c.sections)
	c.floor, c.rest, c.isDirty = make([]int64, m), make([]int64, m), make([]bool, m)
	latest := map[string]int32{} // of the items that are alike
	var key []byte
	for i := range c.items {
		c.twin[i] = -1
		it := &c.items[i]
		if it.fixed >= 0 {
			continue
		}
		key = binary.AppendVarint(binary.AppendVarint(key[:0], it.size), it.align)
		for _, s := range it.sections {
			key = binary.AppendVarint(key, int64(s))
		}
		if j, there := latest[string(key)]; there {
			c.twin[i] = j
		}
		latest[string(key)] = int32(i)
	}
	return c
}

// whole is all that is to be placed, as a component.
func (c *canonical) whole() component {
	all := component{upto: int32(len(c.sections))}
	clear(c.cross)
	for i := range c.items {
		for s := c.items[i].first + 1; s <= c.items[i].last; s++ {
			c.cross[s]++
		}
		all.items = append(all.items, int32(i))
	}
	return all
}

// maximal leaves out sections whose buffers are all in another one: that one says all that they say. It is enough to
// look at the neighbours.
func maximal(sections []section) []section {
	within := func(a, b *section) bool {
		j := 0
		for _, l := range a.Live {
			for j < len(b.Live) && b.Live[j].Buffer < l.Buffer {
				j++
			}
			if j == len(b.Live) || b.Live[j].Buffer != l.Buffer {
				return false
			}
		}
		return true
	}
	var out []section
	for i := range sections {
		s := &sections[i]
		for len(out) > 0 && within(&out[len(out)-1], s) {
			out = out[:len(out)-1]
		}
		if len(out) == 0 || !within(s, &out[len(out)-1]) {
			out = append(out, *s)
		}
	}
	return out
}

// number numbers the items by a rule; ties go to the one that comes first in the problem.
func (c *canonical) number(rule preorder) {
	total := make([]int64, len(c.items))
	for _, ids := range c.sections {
		sum := int64(0)
		for _, i := range ids {
			sum += c.items[i].size
		}
		for _, i := range ids {
			total[i] = max(total[i], sum)
		}
	}
	value := func(i int32, letter byte) float64 {
		it := &c.items[i]
		switch letter {
		case 'W':
			return float64(it.width)
		case 'A':
			return float64(it.size) * float64(it.width)
		case 'T':
			return float64(total[i])
		case 'S':
			return float64(it.size)
		case 'O':
			return float64(len(it.neighbours))
		}
		panic("allocate: unknown letter in a preordering: " + string(rule))
	}
	order := make([]int32, len(c.items))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		for k := range len(rule) {
			if d := cmp.Compare(value(b, rule[k]), value(a, rule[k])); d != 0 {
				return d
			}
		}
		return cmp.Compare(a, b)
	})
	for k, i := range order {
		c.key[i] = int32(k)
	}
}

// offsets is the placement that fit has found. What is never in use lies at the bottom.
func (c *canonical) offsets() []int64 {
	offsets := make([]int64, len(c.p.Buffers))
	for i := range c.p.Buffers {
		if o := c.p.Buffers[i].Offset; o != nil {
			offsets[i] = *o
		}
	}
	for i := range c.items {
		offsets[c.items[i].buffer] = c.low[i]
	}
	return offsets
}

// fit looks for a placement within the capacity, in at most limit nodes, and says how many it took.
func (c *canonical) fit(ctx context.Context, rule preorder, capacity, limit int64) (verdict, int64) {
	c.ctx, c.capacity, c.nodes, c.limit = ctx, capacity, 0, limit
	c.number(rule)
	c.trail = c.trail[:0]
	clear(c.placed)
	clear(c.floor)
	for s, ids := range c.sections {
		c.rest[s] = 0
		for _, i := range ids {
			c.rest[s] += c.items[i].size
		}
		if c.rest[s] > capacity {
			return notThere, 0
		}
	}
	for i := range c.items {
		it := &c.items[i]
		c.low[i] = max(0, it.fixed)
		if c.low[i]+it.size > capacity {
			return notThere, 0
		}
	}
	return c.each(c.split(c.whole()), -1, -1), c.nodes
}

// each solves components one after the other; all must have a placement.
func (c *canonical) each(parts []component, offset int64, key int32) verdict {
	for _, part := range parts {
		if v := c.extend(part, offset, key); v != found {
			return v
		}
	}
	return found
}

// split takes a component apart where no unplaced item lives on both sides.
func (c *canonical) split(all component) []component {
	if len(all.items) == 0 {
		return nil
	}
	var parts []component
	from := all.from
	for s := all.from + 1; s <= all.upto; s++ {
		if s < all.upto && c.cross[s] > 0 {
			continue
		}
		part := component{from: from, upto: s}
		from = s
		for _, i := range all.items {
			if c.items[i].first >= part.from && c.items[i].last < part.upto {
				part.items = append(part.items, i)
			}
		}
		if len(part.items) > 0 {
			parts = append(parts, part)
		}
	}
	// Whatever fails does so sooner in a small component.
	slices.SortStableFunc(parts, func(a, b component) int { return cmp.Compare(len(a.items), len(b.items)) })
	return parts
}

// extend places the items of a component at (offset, key) or after, in that order.
func (c *canonical) extend(part component, offset int64, key int32) verdict {
	if len(part.items) == 0 {
		return found
	}
	// Nothing may be placed above room that is left for another item.
	height := int64(math.MaxInt64)
	for _, i := range part.items {
		height = min(height, c.low[i]+c.items[i].size)
	}
	var next []int32
	for _, i := range part.items {
		if c.low[i] >= height || c.low[i] < offset || c.low[i] == offset && c.key[i] < key {
			continue
		}
		if t := c.twin[i]; t >= 0 && !c.placed[t] {
			continue
		}
		next = append(next, i)
	}
	slices.SortFunc(next, func(a, b int32) int {
		if x, y := c.hinted(a, c.low[a]), c.hinted(b, c.low[b]); x != y {
			return cmp.Compare(y, x)
		}
		return cmp.Or(cmp.Compare(c.low[a], c.low[b]), cmp.Compare(c.key[a], c.key[b]))
	})
	mark := len(c.trail)
	for _, i := range next {
		if c.nodes++; c.nodes > c.limit {
			return exhausted
		}
		if c.nodes&0xff == 0 && c.ctx.Err() != nil {
			return cancelled
		}
		if c.place(part, i) {
			rest := component{from: part.from, upto: part.upto, items: make([]int32, 0, len(part.items)-1)}
			for _, j := range part.items {
				if j != i {
					rest.items = append(rest.items, j)
				}
			}
			if v := c.each(c.split(rest), c.low[i], c.key[i]); v != notThere {
				return v
			}
		}
		c.undo(mark)
	}
	return notThere
}

// hinted is 1 if an offset is where the hint of an item wants it.
func (c *canonical) hinted(i int32, offset int64) int {
	if c.items[i].hint == offset {
		return 1
	}
	return 0
}

// place puts item i at its lowest offset and draws conclusions; it reports false if what is left can't be placed.
func (c *canonical) place(part component, i int32) bool {
	it, offset := &c.items[i], c.low[i]
	top := offset + it.size
	c.placed[i] = true
	c.trail = append(c.trail, change{itemPlaced, i, 0})
	for s := it.first + 1; s <= it.last; s++ {
		c.cross[s]--
	}
	for _, s := range it.sections {
		c.rest[s] -= it.size
		c.setFloor(s, top)
		c.mark(s)
	}
	ok := true
	for _, j := range it.neighbours {
		if !c.placed[j] && c.low[j] < top && !c.raise(j, top) {
			ok = false
			break
		}
	}
	ok = ok && c.raiseBlocked(part, offset, c.key[i]) && c.consistent(part, offset)
	for _, s := range c.dirty {
		c.isDirty[s] = false
	}
	c.dirty = c.dirty[:0]
	return ok
}

func (c *canonical) mark(s int32) {
	if !c.isDirty[s] {
		c.isDirty[s] = true
		c.dirty = append(c.dirty, s)
	}
}

func (c *canonical) setFloor(s int32, to int64) {
	c.trail = append(c.trail, change{floorChanged, s, c.floor[s]})
	c.floor[s] = to
}

// raise lifts the lowest offset of an unplaced item.
func (c *canonical) raise(j int32, to int64) bool {
	it := &c.items[j]
	if r := to % it.align; r > 0 {
		to += it.align - r
	}
	if to+it.size > c.capacity || it.fixed >= 0 && to > it.fixed {
		return false
	}
	c.trail = append(c.trail, change{lowChanged, j, c.low[j]})
	c.low[j] = to
	for _, s := range it.sections {
		c.mark(s)
	}
	return true
}

// raiseBlocked lifts items that would have had to be placed before: they will lie on a neighbour that is still to come.
func (c *canonical) raiseBlocked(part component, offset int64, key int32) bool {
	for _, i := range part.items {
		if c.placed[i] || c.low[i] > offset || c.low[i] == offset && c.key[i] > key {
			continue
		}
		if c.items[i].fixed >= 0 {
			return false
		}
		low := int64(math.MaxInt64)
		for _, j := range c.items[i].neighbours {
			if !c.placed[j] {
				low = min(low, max(c.low[j], offset)+c.items[j].size)
			}
		}
		if low == math.MaxInt64 || !c.raise(i, low) {
			return false
		}
	}
	return true
}

// consistent compares what each section still needs with the capacity.
func (c *canonical) consistent(part component, offset int64) bool {
	for _, s := range c.dirty {
		if c.rest[s] == 0 {
			continue
		}
		least, most := int64(math.MaxInt64), int64(0)
		for _, i := range c.sections[s] {
			if !c.placed[i] {
				low := max(c.low[i], offset)
				least, most = min(least, low), max(most, low)
			}
		}
		if least > c.floor[s] {
			c.setFloor(s, least)
		}
		if max(c.floor[s], least)+c.rest[s] > c.capacity {
			return false
		}
		if most+c.rest[s] <= c.capacity {
			continue
		}
		// Those that lie at a height or above need it and their sizes.
		if c.piled(s, offset) > c.capacity {
			return false
		}
	}
	for s := part.from; s < part.upto; s++ {
		if c.rest[s] > 0 && max(c.floor[s], offset)+c.rest[s] > c.capacity {
			return false
		}
	}
	return true
}

func (c *canonical) undo(mark int) {
	for len(c.trail) > mark {
		t := c.trail[len(c.trail)-1]
		c.trail = c.trail[:len(c.trail)-1]
		switch t.what {
		case lowChanged:
			c.low[t.i] = t.old
		case floorChanged:
			c.floor[t.i] = t.old
		case itemPlaced:
			c.placed[t.i] = false
			it := &c.items[t.i]
			for s := it.first + 1; s <= it.last; s++ {
				c.cross[s]++
			}
			for _, s := range it.sections {
				c.rest[s] += it.size
			}
		}
	}
}

// piled is where the unplaced items of a section end that lie on each other, none below its
// lowest offset nor the floor.
func (c *canonical) piled(k int32, floor int64) int64 {
	ids, low := c.piles[k], c.low
	for n, i := range ids {
		for ; n > 0 && low[ids[n-1]] > low[i]; n-- {
			ids[n] = ids[n-1]
		}
		ids[n] = i
	}
	for _, i := range ids {
		if !c.placed[i] {
			floor = max(floor, low[i]) + c.items[i].size
		}
	}
	return floor
}
