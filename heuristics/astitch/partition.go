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
	return p
}

// next lists the parts that read what part k makes, each once, in the order of its
// operators.
func (p *partition) next(k int) []int {
	var out []int
	seen := map[int]bool{k: true, -1: true}
	for _, id := range p.ops[k] {
		for _, t := range p.g.Op(id).Outputs {
			for _, c := range p.g.Tensor(t).Consumers {
				if o := p.owner[c]; !seen[o] {
					seen[o] = true
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// neighbours lists the parts that part k reads from or that read from it.
func (p *partition) neighbours(k int) []int {
	out := p.next(k)
	seen := map[int]bool{k: true, -1: true}
	for _, o := range out {
		seen[o] = true
	}
	for _, id := range p.ops[k] {
		for _, t := range p.g.Op(id).Inputs {
			if from := p.g.Tensor(t).Producer; from != model.NoOp && !seen[p.owner[from]] {
				seen[p.owner[from]] = true
				out = append(out, p.owner[from])
			}
		}
	}
	return out
}

// detour tells whether a path leads from part a to part b over a third one.
func (p *partition) detour(a, b int) bool {
	seen := make([]bool, len(p.ops))
	seen[a] = true
	var stack []int
	for _, n := range p.next(a) {
		if n != b {
			seen[n] = true
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
			if !seen[n] {
				seen[n] = true
				stack = append(stack, n)
			}
		}
	}
	return false
}

// mergeable tells whether parts a and b can be one without a cycle.
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

// reach tells for every part which parts come after it.
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
