package astitch

import (
	"cmp"
	"slices"

	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/model"
)

// Partition is a set of operators in disjoint parts, with no cycle among the parts.
type Partition struct {
	g *model.Graph
	// pos is the place of each operator in the execution order.
	pos []int
	// owner is the part of each operator that is in one.
	owner map[model.OpID]int
	// Ops of each part in execution order; nil if it has become part of another.
	Ops [][]model.OpID
	// order is a topological order of the parts, -1 where one has become part of another, and
	// place where each stands; nil: as Sorted has it, which nothing has asked for.
	order, place []int

	// after keeps the answers of next, spread those of mapped; nil where one has to be found anew.
	after  [][]int
	spread []*spread
	// seen and passed say in which turn of a list, and in which walk, a part was met.
	seen, passed []int
	turn, walk   int
	stack        []int
}

// NewPartition has these parts. pos is the place of each operator in the execution order.
func NewPartition(g *model.Graph, pos []int, parts [][]model.OpID) *Partition {
	p := &Partition{g: g, pos: pos, owner: map[model.OpID]int{}}
	for k, ops := range parts {
		p.Ops = append(p.Ops, append([]model.OpID(nil), ops...))
		for _, id := range ops {
			p.owner[id] = k
		}
	}
	p.spread = make([]*spread, len(parts))
	p.after, p.seen, p.passed = make([][]int, len(parts)), make([]int, len(parts)), make([]int, len(parts))
	return p
}

// In reports whether an operator is in part k.
func (p *Partition) In(id model.OpID, k int) bool {
	o, ok := p.owner[id]
	return ok && o == k
}

// spread is the mapping of operators over cores, see mapped.
type spread struct{ cores, used, again int64 }

// mapped returns the mapping of part k.
func (p *Partition) mapped(k int, cores int64) spread {
	s := p.spread[k]
	if s == nil || s.cores != cores {
		s = &spread{cores: cores}
		s.used, s.again = mapped(p.g, p.Ops[k], cores)
		p.spread[k] = s
	}
	return *s
}

// next lists the parts that read what part k makes, each once, in the order of its
// operators. The list is not to be changed.
func (p *Partition) next(k int) []int {
	if p.after[k] != nil {
		return p.after[k]
	}
	out := []int{}
	p.mark(k)
	for _, id := range p.Ops[k] {
		for _, t := range p.g.Op(id).Outputs {
			for _, c := range p.g.Tensor(t).Consumers {
				if o, ok := p.owner[c]; ok && p.seen[o] != p.turn {
					p.seen[o] = p.turn
					out = append(out, o)
				}
			}
		}
	}
	p.after[k] = out
	return out
}

// mark begins a walk over the parts, on which part k has been seen.
func (p *Partition) mark(k int) {
	p.turn++
	p.seen[k] = p.turn
}

// before lists the parts that part k reads from, each once, in the order of its operators, but those that are seen.
func (p *Partition) before(k int) (out []int) {
	for _, id := range p.Ops[k] {
		for _, t := range p.g.Op(id).Inputs {
			if o, ok := p.owner[p.g.Tensor(t).Producer]; ok && p.seen[o] != p.turn {
				p.seen[o] = p.turn
				out = append(out, o)
			}
		}
	}
	return out
}

// neighbours lists the parts that part k reads from or that read from it.
func (p *Partition) neighbours(k int) []int {
	out := append([]int(nil), p.next(k)...)
	p.mark(k)
	for _, o := range out {
		p.seen[o] = p.turn
	}
	return append(out, p.before(k)...)
}

// detour reports whether a path leads from part a to part b over a third one. All on it stand between the two.
func (p *Partition) detour(a, b int) bool {
	if p.order == nil {
		p.order, p.place = p.Sorted(), make([]int, len(p.Ops))
		for i, k := range p.order {
			p.place[k] = i
		}
	}
	end := p.place[b]
	if p.place[a] > end {
		return false
	}
	p.walk++
	p.passed[a] = p.walk
	stack := p.stack[:0]
	defer func() { p.stack = stack }()
	for _, n := range p.next(a) {
		if p.place[n] < end {
			p.passed[n] = p.walk
			stack = append(stack, n)
		}
	}
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, n := range p.next(k) {
			if n == b {
				return true
			}
			if p.place[n] < end && p.passed[n] != p.walk {
				p.passed[n] = p.walk
				stack = append(stack, n)
			}
		}
	}
	return false
}

// reorder lets parts a and b, between which there is no detour, stand at one place: behind all
// that stands between them and does not come after the first.
func (p *Partition) reorder(a, b int) {
	if p.order == nil {
		return
	}
	first, last := min(p.place[a], p.place[b]), max(p.place[a], p.place[b])
	p.walk++
	p.passed[p.order[first]] = p.walk
	var later []int
	at := first
	put := func(k int) {
		p.order[at] = k
		if k >= 0 {
			p.place[k] = at
		}
		at++
	}
	stack := append(p.stack[:0], p.order[first])
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, n := range p.next(k) {
			if p.place[n] < last && p.passed[n] != p.walk {
				p.passed[n] = p.walk
				stack = append(stack, n)
			}
		}
	}
	p.stack = stack
	for _, k := range p.order[first+1 : last] {
		if k >= 0 && p.passed[k] == p.walk {
			later = append(later, k)
		} else {
			put(k)
		}
	}
	put(a)
	for _, k := range later {
		put(k)
	}
	put(-1)
}

// Mergeable reports whether parts a and b can be one without a cycle.
func (p *Partition) Mergeable(a, b int) bool { return !p.detour(a, b) && !p.detour(b, a) }

// union is the operators of two parts in execution order.
func (p *Partition) union(a, b int) []model.OpID {
	x, y := p.Ops[a], p.Ops[b]
	ops := make([]model.OpID, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		if p.pos[x[0]] < p.pos[y[0]] {
			ops, x = append(ops, x[0]), x[1:]
		} else {
			ops, y = append(ops, y[0]), y[1:]
		}
	}
	return append(append(ops, x...), y...)
}

// merge makes other parts part of a.
func (p *Partition) merge(a int, others ...int) {
	for _, k := range append([]int{a}, others...) { // who reads and is read by them knows other parts now
		p.after[k] = nil
		for _, id := range p.Ops[k] {
			for _, t := range p.g.Op(id).Inputs {
				if from, ok := p.owner[p.g.Tensor(t).Producer]; ok {
					p.after[from] = nil
				}
			}
		}
	}
	for _, b := range others {
		p.Ops[a] = append(p.Ops[a][:len(p.Ops[a]):len(p.Ops[a])], p.Ops[b]...)
		for _, id := range p.Ops[b] {
			p.owner[id] = a
		}
		p.Ops[b] = nil
	}
	p.spread[a] = nil
	slices.SortFunc(p.Ops[a], func(x, y model.OpID) int { return p.pos[x] - p.pos[y] })
}

// Sorted lists the parts in an order in which they can run; of those that can run
// next, first the one that is complete earliest in the execution order.
func (p *Partition) Sorted() []int {
	waiting := make([]int, len(p.Ops))
	at := map[int]int{} // by position of the last operator
	ready := heap.Of(cmp.Less[int])
	var out []int
	last := func(k int) int { return p.pos[p.Ops[k][len(p.Ops[k])-1]] }
	for k, ops := range p.Ops {
		if ops != nil {
			at[last(k)] = k
			for _, n := range p.next(k) {
				waiting[n]++
			}
		}
	}
	for k, ops := range p.Ops {
		if ops != nil && waiting[k] == 0 {
			ready.Push(last(k))
		}
	}
	for ready.Len() > 0 {
		k := at[ready.Pop()]
		out = append(out, k)
		for _, n := range p.next(k) {
			if waiting[n]--; waiting[n] == 0 {
				ready.Push(last(n))
			}
		}
	}
	return out
}

// reach tells which parts come after others. Some of the parts are divided into chains, each of
// which comes after the one before it in its chain: so what a part reaches of a chain is its
// end, and what reaches it the beginning, whatever is merged. It takes room for each part and
// chain, and there are hardly more chains than parts that can run side by side.
type reach struct {
	p      *Partition
	chains [][]int // parts
	chain  []int32 // of each part, or -1
	at     []int32 // its place in the chain
	// Per part and chain: the first that it reaches, and the last that reaches it.
	first, last [][]int32
}

func (p *Partition) reach(listed func(k int) bool) *reach {
	r := &reach{p: p, chain: make([]int32, len(p.Ops)), at: make([]int32, len(p.Ops)), first: make([][]int32, len(p.Ops)),
		last: make([][]int32, len(p.Ops))}
	order := p.Sorted()
	before := make([][]int, len(p.Ops))
	for _, k := range order {
		for _, n := range p.next(k) {
			before[n] = append(before[n], k)
		}
	}
	for _, k := range order {
		r.chain[k] = -1
		last := make([]int32, len(r.chains), len(r.chains)+1)
		for c := range last {
			last[c] = -1
		}
		for _, b := range before[k] {
			r.extend(last, b)
		}
		if listed(k) {
			c := 0
			for c < len(r.chains) && int(last[c]) < len(r.chains[c])-1 {
				c++
			}
			if c == len(r.chains) {
				r.chains = append(r.chains, nil)
				last = append(last, -1)
			}
			r.chain[k], r.at[k] = int32(c), int32(len(r.chains[c]))
			r.chains[c] = append(r.chains[c], k)
		}
		r.last[k] = last
	}
	for i := len(order) - 1; i >= 0; i-- {
		k := order[i]
		for len(r.last[k]) < len(r.chains) {
			r.last[k] = append(r.last[k], -1)
		}
		r.first[k] = make([]int32, len(r.chains))
		for c := range r.chains {
			r.first[k][c] = int32(len(r.chains[c]))
		}
		for _, n := range p.next(k) {
			r.shorten(r.first[k], n)
		}
	}
	return r
}

// extend raises the ends of what reaches a part by those of one that it reads from.
func (r *reach) extend(last []int32, from int) (changed bool) {
	return r.follow(last, r.last[from], from, 1)
}

// shorten lowers the beginnings of what a part reaches by those of one that reads from it.
func (r *reach) shorten(first []int32, to int) (changed bool) {
	return r.follow(first, r.first[to], to, -1)
}

// follow raises places in the chains (sign 1), or lowers them (-1), to those of a neighbour and to its own.
func (r *reach) follow(places, of []int32, neighbour int, sign int32) (changed bool) {
	for c, at := range of {
		changed = raise(places, int32(c), at, sign) || changed
	}
	c := r.chain[neighbour]
	return c >= 0 && raise(places, c, r.at[neighbour], sign) || changed
}

func raise(places []int32, c, at, sign int32) bool {
	if sign*places[c] >= sign*at {
		return false
	}
	places[c] = at
	return true
}

// apart reports whether neither part comes after the other, of which b is in a chain.
func (r *reach) apart(a, b int) bool {
	c, at := r.chain[b], r.at[b]
	return r.last[a][c] < at && at < r.first[a][c]
}

// others lists the parts behind a in the list of parts that are apart from it.
func (r *reach) others(a int) (list []int) {
	for c, parts := range r.chains {
		for at := r.last[a][c] + 1; at < r.first[a][c]; at++ {
			if b := parts[at]; b > a && r.p.Ops[b] != nil {
				list = append(list, b)
			}
		}
	}
	slices.Sort(list)
	return list
}

// merge makes parts that are apart from a part of it, and tells those that reach it or that it reaches.
func (r *reach) merge(a int, others []int) {
	r.p.merge(a, others...)
	behind := [][]int32{{r.chain[a], r.at[a]}}
	for _, b := range others {
		behind = append(behind, []int32{r.chain[b], r.at[b]})
	}
	spread := func(towards func(k int) []int, places [][]int32, sign int32) {
		todo := []int{a}
		for len(todo) > 0 {
			k := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, n := range towards(k) {
				changed := r.follow(places[n], places[k], k, sign)
				for i := 0; k == a && i < len(behind); i++ {
					changed = raise(places[n], behind[i][0], behind[i][1], sign) || changed
				}
				if changed {
					todo = append(todo, n)
				}
			}
		}
	}
	spread(func(k int) []int { r.p.mark(k); return r.p.before(k) }, r.first, -1)
	spread(r.p.next, r.last, 1)
}
