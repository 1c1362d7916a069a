package astitch

import (
	"github.com/dsasched/dsasched/model"
)

// partition is a set of operators in disjoint parts, with no cycle among the parts.
type partition struct {
	g *model.Graph
	// pos is the place of each operator in the execution order.
	pos []int
	// owner is the part of each operator, or -1.
	owner []int
	// ops of each part in execution order; nil if it has become part of another.
	ops [][]model.OpID

	// after keeps the answers of next; nil where one has to be found anew.
	after [][]int
	// seen and passed say in which turn of a list, and in which walk, a part was met.
	seen, passed []int
	turn, walk   int
	stack        []int
}

func newPartition(g *model.Graph, pos []int, parts [][]model.OpID) *partition {
	p := &partition{g: g, pos: pos, owner: make([]int, len(g.Ops))}
	for i := range p.owner {
		p.owner[i] = -1
	}
	for k, ops := range parts {
		p.ops = append(p.ops, append([]model.OpID(nil), ops...))
		for _, id := range ops {
			p.owner[id] = k
		}
	}
	p.after, p.seen, p.passed = make([][]int, len(parts)), make([]int, len(parts)), make([]int, len(parts))
	return p
}

// next lists the parts that read what part k makes, each once, in the order of its
// operators. The list is not to be changed.
func (p *partition) next(k int) []int {
	if p.after[k] != nil {
		return p.after[k]
	}
	out := []int{}
	p.mark(k)
	for _, id := range p.ops[k] {
		for _, t := range p.g.Op(id).Outputs {
			for _, c := range p.g.Tensor(t).Consumers {
				if o := p.owner[c]; o >= 0 && p.seen[o] != p.turn {
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
func (p *partition) mark(k int) {
	p.turn++
	p.seen[k] = p.turn
}

// neighbours lists the parts that part k reads from or that read from it.
func (p *partition) neighbours(k int) []int {
	out := append([]int(nil), p.next(k)...)
	p.mark(k)
	for _, o := range out {
		p.seen[o] = p.turn
	}
	for _, id := range p.ops[k] {
		for _, t := range p.g.Op(id).Inputs {
			if from := p.g.Tensor(t).Producer; from != model.NoOp && p.owner[from] >= 0 && p.seen[p.owner[from]] != p.turn {
				p.seen[p.owner[from]] = p.turn
				out = append(out, p.owner[from])
			}
		}
	}
	return out
}

// detour reports whether a path leads from part a to part b over a third one.
func (p *partition) detour(a, b int) bool {
	p.walk++
	p.passed[a] = p.walk
	stack := p.stack[:0]
	defer func() { p.stack = stack }()
	for _, n := range p.next(a) {
		if n != b {
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
			if p.passed[n] != p.walk {
				p.passed[n] = p.walk
				stack = append(stack, n)
			}
		}
	}
	return false
}

// mergeable reports whether parts a and b can be one without a cycle.
func (p *partition) mergeable(a, b int) bool { return !p.detour(a, b) && !p.detour(b, a) }

// union is the operators of two parts in execution order.
func (p *partition) union(a, b int) []model.OpID {
	x, y := p.ops[a], p.ops[b]
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

// merge makes part b part of a.
func (p *partition) merge(a, b int) {
	for _, k := range []int{a, b} { // who reads and is read by them knows other parts now
		p.after[k] = nil
		for _, id := range p.ops[k] {
			for _, t := range p.g.Op(id).Inputs {
				if from := p.g.Tensor(t).Producer; from != model.NoOp && p.owner[from] >= 0 {
					p.after[p.owner[from]] = nil
				}
			}
		}
	}
	p.ops[a] = p.union(a, b)
	for _, id := range p.ops[b] {
		p.owner[id] = a
	}
	p.ops[b] = nil
}

// sorted lists the parts in an order in which they can run; of those that can run
// next, first the one that is complete earliest in the execution order.
func (p *partition) sorted() []int {
	waiting := make([]int, len(p.ops))
	succ := make([][]int, len(p.ops))
	var ready, out []int
	for k, ops := range p.ops {
		if ops != nil {
			succ[k] = p.next(k)
			for _, n := range succ[k] {
				waiting[n]++
			}
		}
	}
	for k, ops := range p.ops {
		if ops != nil && waiting[k] == 0 {
			ready = append(ready, k)
		}
	}
	last := func(k int) int { return p.pos[p.ops[k][len(p.ops[k])-1]] }
	for len(ready) > 0 {
		best := 0
		for i := range ready {
			if last(ready[i]) < last(ready[best]) {
				best = i
			}
		}
		k := ready[best]
		ready = append(ready[:best], ready[best+1:]...)
		out = append(out, k)
		for _, n := range succ[k] {
			if waiting[n]--; waiting[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
	return out
}

// reach lists for every part the parts that come after it.
type reach [][]uint64

func (r reach) has(from, to int) bool { return r[from][to/64]>>(to%64)&1 == 1 }

func (r reach) add(from, to int) {
	r[from][to/64] |= 1 << (to % 64)
	for w, bits := range r[to] {
		r[from][w] |= bits
	}
}

func (p *partition) reach() reach {
	order := p.sorted()
	r := make(reach, len(p.ops))
	for i := len(order) - 1; i >= 0; i-- {
		k := order[i]
		r[k] = make([]uint64, (len(p.ops)+63)/64)
		for _, n := range p.next(k) {
			r.add(k, n)
		}
	}
	return r
}

// merged updates what is reached after part b has become part of a, neither of which
// came after the other.
func (r reach) merged(a, b int) {
	for w, bits := range r[b] {
		r[a][w] |= bits
	}
	for k := range r {
		if r[k] != nil && (r.has(k, a) || r.has(k, b)) {
			r.add(k, a)
		}
	}
}
