package partition

import (
	"cmp"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
)

// A class is a set of nodes that is on one device in some optimum.
type class struct {
	nodes     []int // indexes in Problem.Nodes, ascending
	acc, cpu  float64
	bytes     float64
	supported bool
	backward  bool  // has backward nodes
	succ      []int // classes that come after it in the row, ascending
	pred      []int
}

// A net is a tail with the heads of its edges, as classes: an accelerator that
// has some of the pins and not all of them pays the cost.
type net struct {
	pins []int // ascending, at least two
	cost float64
}

// A dropped class has no weight of its own: it follows the last of its
// predecessors in the row, or else the first of its successors.
type dropped struct {
	nodes      []int
	pred, succ []int // nodes
}

// A contracted graph has classes in place of nodes, in topological order. The search works on it.
type contracted struct {
	p       *Problem
	classes []class
	nets    []net
	of      [][]int // nets of each class
	dropped []dropped
	// past and ahead of a class hold the backward nodes from which its own can be
	// reached, and those that its own reach; nil in a graph without any.
	past, ahead []bitset
	own         []bitset // its backward nodes
	byRatio     []int    // classes with accelerator time, by CPU time per that
	// More devices than classes are of no use.
	accelerators, cpus int
}

// contract joins the nodes of each colour, then what (7) forces together, then
// classes that some optimum has together. No step loses all optima:
//
//   - A class without weight (no time, no size that matters, nothing backward,
//     supported) joins its only predecessor or successor h if the nets that it
//     has alone with h cost at least what those of its nets cost that h is not in.
//     Wherever the class was, the device of h pays at most the latter anew and
//     the former no more, and no other device pays more than before.
//   - A class without weight and without a net that costs anything is left out.
func (p *Problem) contract(reduce bool) *contracted { return p.fused(nil, reduce) }

// sets are disjoint sets of numbers (union-find): the parent of each in the tree of its set.
type sets []int

// find is the root of a number's set, and shortens the path to it.
func (s sets) find(i int) int {
	if s[i] != i {
		s[i] = s.find(s[i])
	}
	return s[i]
}

// fused is contract where node i is also with node with[i].
func (p *Problem) fused(with []int, reduce bool) *contracted {
	n := len(p.Nodes)
	set := sets(solve.Numbers(n))
	join := func(i, j int) {
		i, j = set.find(i), set.find(j)
		set[max(i, j)] = min(i, j)
	}
	first := map[int]int{}
	for i, v := range p.Nodes {
		if v.Color != NoColor {
			if j, ok := first[v.Color]; ok {
				join(i, j)
			} else {
				first[v.Color] = i
			}
		}
	}
	for i, j := range with {
		join(i, j)
	}
	succ := make([][]int, n) // arcs of the row
	for _, arc := range p.row {
		succ[arc[0]] = append(succ[arc[0]], arc[1])
	}
	// What lies on a cycle of classes is one class.
	arcs := make([][]int, n)
	for u := range succ {
		for _, w := range succ[u] {
			arcs[set.find(u)] = append(arcs[set.find(u)], set.find(w))
		}
	}
	for _, component := range components(arcs) {
		for _, i := range component[1:] {
			join(component[0], i)
		}
	}
	slack := 0.0
	for _, size := range p.size {
		slack += size
	}
	roomy := slack <= p.memory || p.Accelerators == 0
	var g *contracted
	for {
		var roots []int
		g, roots = p.group(set, succ)
		again := false
		taken := make([]bool, len(g.classes))
		for i, c := range g.classes {
			if !reduce || taken[i] || c.acc != 0 || c.cpu != 0 || c.backward || (c.bytes != 0 && !roomy) ||
				!(c.supported || p.Accelerators == 0) {
				continue
			}
			if j := g.host(i); j >= 0 && !taken[j] {
				join(roots[i], roots[j])
				taken[i], taken[j], again = true, true, true
			}
		}
		if !again {
			break
		}
	}
	if reduce {
		g.drop(roomy)
	}
	g.sort()
	g.reach()
	g.accelerators, g.cpus = min(p.Accelerators, len(g.classes)), min(p.CPUs, len(g.classes))
	for i, c := range g.classes {
		if c.acc > 0 {
			g.byRatio = append(g.byRatio, i)
		}
	}
	slices.SortStableFunc(g.byRatio, func(i, j int) int {
		a, b := &g.classes[i], &g.classes[j]
		return cmp.Compare(a.cpu/a.acc, b.cpu/b.acc)
	})
	return g
}

// host is the class that i, which has no weight, joins, or -1.
func (g *contracted) host(i int) int {
	c := &g.classes[i]
	var hosts []int
	switch {
	case len(c.pred) == 1:
		hosts = append(hosts, c.pred[0])
	case len(c.pred) == 0 && len(c.succ) == 0 && len(g.of[i]) > 0: // part of the row nowhere
		hosts = append(hosts, g.nets[g.of[i][0]].pins...)
	}
	if len(c.succ) == 1 {
		hosts = append(hosts, c.succ[0])
	}
	for _, h := range hosts {
		saved, paid := 0.0, 0.0
		for _, e := range g.of[i] {
			if pins := g.nets[e].pins; !slices.Contains(pins, h) {
				paid += g.nets[e].cost
			} else if len(pins) == 2 {
				saved += g.nets[e].cost
			}
		}
		if h != i && paid <= saved {
			return h
		}
	}
	return -1
}

// group makes classes of the sets, in the order of their first nodes, which it also returns.
func (p *Problem) group(set sets, succ [][]int) (*contracted, []int) {
	g := &contracted{p: p}
	number := make([]int, len(p.Nodes))
	var roots []int
	for i, v := range p.Nodes {
		r := set.find(i)
		if r == i {
			number[i] = len(roots)
			roots = append(roots, i)
			g.classes = append(g.classes, class{supported: true})
		}
		number[i] = number[r]
		c := &g.classes[number[i]]
		c.nodes = append(c.nodes, i)
		c.acc += v.AcceleratorLatency
		c.cpu += v.CPULatency
		c.bytes += p.size[i]
		c.supported = c.supported && v.Supported
		c.backward = c.backward || v.Backward
	}
	costs := map[string]int{}
	for u := range p.Nodes {
		for _, w := range succ[u] {
			if a, b := number[u], number[w]; a != b {
				g.classes[a].succ = append(g.classes[a].succ, b)
				g.classes[b].pred = append(g.classes[b].pred, a)
			}
		}
		pins := []int{number[u]}
		for _, w := range p.succ[u] {
			pins = append(pins, number[w])
		}
		slices.Sort(pins)
		pins = slices.Compact(pins)
		if len(pins) < 2 || p.cost[u] == 0 || p.Accelerators == 0 {
			continue
		}
		key := ""
		for _, c := range pins {
			key += string([]byte{byte(c), byte(c >> 8), byte(c >> 16)})
		}
		if e, ok := costs[key]; ok {
			g.nets[e].cost += p.cost[u]
			continue
		}
		costs[key] = len(g.nets)
		g.nets = append(g.nets, net{pins, p.cost[u]})
	}
	for i := range g.classes {
		c := &g.classes[i]
		slices.Sort(c.succ)
		slices.Sort(c.pred)
		c.succ, c.pred = slices.Compact(c.succ), slices.Compact(c.pred)
	}
	g.index()
	return g, roots
}

func (g *contracted) index() {
	g.of = make([][]int, len(g.classes))
	for e, n := range g.nets {
		for _, c := range n.pins {
			g.of[c] = append(g.of[c], e)
		}
	}
}

// drop leaves out classes without weight and nets, one after the other, with
// arcs from what came before each to what came after.
func (g *contracted) drop(roomy bool) {
	for i := range g.classes {
		c := &g.classes[i]
		if len(g.of[i]) > 0 || c.acc != 0 || c.cpu != 0 || c.backward || (c.bytes != 0 && !roomy) ||
			!(c.supported || g.p.Accelerators == 0) || len(c.pred)*len(c.succ) > 64 || len(g.classes)-len(g.dropped) == 1 {
			continue
		}
		d := dropped{nodes: c.nodes}
		for _, u := range c.pred {
			d.pred = append(d.pred, g.classes[u].nodes[0])
			s := &g.classes[u].succ
			*s = slices.DeleteFunc(*s, func(x int) bool { return x == i })
			*s = append(*s, c.succ...)
			slices.Sort(*s)
			*s = slices.Compact(*s)
		}
		for _, w := range c.succ {
			d.succ = append(d.succ, g.classes[w].nodes[0])
			s := &g.classes[w].pred
			*s = slices.DeleteFunc(*s, func(x int) bool { return x == i })
			*s = append(*s, c.pred...)
			slices.Sort(*s)
			*s = slices.Compact(*s)
		}
		c.nodes, c.pred, c.succ = nil, nil, nil
		g.dropped = append(g.dropped, d)
	}
}

// sort renumbers the classes that are left in topological order, the one with the smallest first node first.
func (g *contracted) sort() {
	number := make([]int, len(g.classes))
	waits := make([]int, len(g.classes))
	var ready, order []int
	for i, c := range g.classes {
		if waits[i] = len(c.pred); waits[i] == 0 && c.nodes != nil {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		slices.SortFunc(ready, func(a, b int) int { return cmp.Compare(g.classes[a].nodes[0], g.classes[b].nodes[0]) })
		i := ready[0]
		ready = ready[1:]
		number[i] = len(order)
		order = append(order, i)
		for _, w := range g.classes[i].succ {
			if waits[w]--; waits[w] == 0 {
				ready = append(ready, w)
			}
		}
	}
	renumber := func(s []int) {
		for k := range s {
			s[k] = number[s[k]]
		}
		slices.Sort(s)
	}
	classes := make([]class, len(order))
	for k, i := range order {
		classes[k] = g.classes[i]
		renumber(classes[k].succ)
		renumber(classes[k].pred)
	}
	g.classes = classes
	for e := range g.nets {
		renumber(g.nets[e].pins)
	}
	g.index()
}

// reach fills in past, ahead and own.
func (g *contracted) reach() {
	p := g.p
	if !p.backward {
		return
	}
	number := make([]int, len(p.Nodes))
	n := 0
	for i, v := range p.Nodes {
		if v.Backward {
			number[i] = n
			n++
		}
	}
	down, up := make([]bitset, len(p.Nodes)), make([]bitset, len(p.Nodes))
	sweep := func(reach []bitset, i int, next []int) {
		if !p.Nodes[i].Backward {
			return
		}
		reach[i] = newBitset(n)
		for _, w := range next {
			if p.Nodes[w].Backward {
				reach[i].or(reach[w])
				reach[i].add(number[w])
			}
		}
	}
	for k := range p.order {
		sweep(up, p.order[k], p.pred[p.order[k]])
		i := p.order[len(p.order)-1-k]
		sweep(down, i, p.succ[i])
	}
	for _, c := range g.classes {
		past, ahead, own := newBitset(n), newBitset(n), newBitset(n)
		for _, i := range c.nodes {
			if p.Nodes[i].Backward {
				past.or(up[i])
				ahead.or(down[i])
				own.add(number[i])
			}
		}
		g.past, g.ahead, g.own = append(g.past, past), append(g.ahead, ahead), append(g.own, own)
	}
}

// contiguous reports whether the backward nodes of some classes are.
func (g *contracted) contiguous(classes []int) bool {
	if g.past == nil {
		return true
	}
	past, ahead, own := slices.Clone(g.past[classes[0]]), slices.Clone(g.ahead[classes[0]]),
		slices.Clone(g.own[classes[0]])
	for _, c := range classes[1:] {
		past.or(g.past[c])
		ahead.or(g.ahead[c])
		own.or(g.own[c])
	}
	for w := range past {
		if past[w]&ahead[w]&^own[w] != 0 {
			return false
		}
	}
	return true
}

// A part is one device of the row.
type part struct {
	cpu     bool
	classes []int
}

// division gives the classes of a row, and what was left out, to devices.
func (g *contracted) division(row []part) *Division {
	d := &Division{}
	at := make([]int, len(g.p.Nodes)) // place in the row, from 1
	sets := make([][]int, len(row))
	for k, part := range row {
		for _, c := range part.classes {
			for _, i := range g.classes[c].nodes {
				at[i] = k + 1
				sets[k] = append(sets[k], i)
			}
		}
	}
	for k := len(g.dropped) - 1; k >= 0; k-- { // a later one may come between an earlier one and the rest
		e := g.dropped[k]
		place := 0
		for _, u := range e.pred {
			place = max(place, at[u])
		}
		if place == 0 {
			for _, w := range e.succ {
				if place == 0 || at[w] < place {
					place = at[w]
				}
			}
		}
		place = max(place, 1)
		for _, i := range e.nodes {
			at[i] = place
			sets[place-1] = append(sets[place-1], i)
		}
	}
	for k, part := range row {
		slices.Sort(sets[k])
		ids := make([]int, len(sets[k]))
		for j, i := range sets[k] {
			ids[j] = g.p.Nodes[i].ID
		}
		if part.cpu {
			d.CPUs = append(d.CPUs, ids)
		} else {
			d.Accelerators = append(d.Accelerators, ids)
		}
	}
	return d
}

// load is (1) or (2) of a part; ok is false where (3), (4) or (6) forbids it.
func (g *contracted) load(part part) (load float64, ok bool) {
	in := map[int]bool{}
	bytes := 0.0
	for _, i := range part.classes {
		c := g.classes[i]
		in[i] = true
		bytes += c.bytes
		if part.cpu {
			load += c.cpu
			continue
		}
		load += c.acc
		if !c.supported {
			return 0, false
		}
	}
	if len(part.classes) == 0 {
		return 0, true
	}
	if !g.contiguous(part.classes) {
		return 0, false
	}
	if part.cpu {
		return load, true
	}
	paid := map[int]bool{}
	for _, i := range part.classes {
		for _, e := range g.of[i] {
			if !paid[e] && slices.ContainsFunc(g.nets[e].pins, func(c int) bool { return !in[c] }) {
				paid[e] = true
				load += g.nets[e].cost
			}
		}
	}
	return load, bytes <= g.p.memory
}

// components are the strongly connected ones of a graph (Tarjan), without recursion.
func components(succ [][]int) [][]int {
	n := len(succ)
	index, low := make([]int, n), make([]int, n)
	on := make([]bool, n)
	var stack []int
	var found [][]int
	type frame struct{ v, k int }
	next := 1
	for root := range n {
		if index[root] != 0 {
			continue
		}
		calls := []frame{{root, 0}}
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.k == 0 {
				index[v], low[v] = next, next
				next++
				stack = append(stack, v)
				on[v] = true
			}
			if f.k < len(succ[v]) {
				w := succ[v][f.k]
				f.k++
				if index[w] == 0 {
					calls = append(calls, frame{w, 0})
				} else if on[w] {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			if low[v] == index[v] {
				k := slices.Index(stack, v)
				component := slices.Clone(stack[k:])
				for _, w := range component {
					on[w] = false
				}
				stack = stack[:k]
				found = append(found, component)
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				u := calls[len(calls)-1].v
				low[u] = min(low[u], low[v])
			}
		}
	}
	return found
}

// A bitset holds small whole numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitset) or(other bitset) {
	for w := range b {
		b[w] |= other[w]
	}
}
