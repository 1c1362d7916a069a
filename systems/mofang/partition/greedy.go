package partition

import (
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
)

// greedy fills one accelerator after another in topological order up to a target, and CPUs with what is left, and
// bisects for the least target for which all nodes find a place.
func (s *solver) greedy(ctx context.Context) error {
	g := s.g
	order := g.byNumber()
	lo, hi := s.bound, g.ceiling()
	if math.IsInf(lo, 1) {
		return nil
	}
	for try := 0; try < 60 && hi-lo > near*hi && ctx.Err() == nil; try++ {
		target := (lo + hi) / 2
		if try == 0 {
			target = hi
		}
		row, ok := g.fill(order, target)
		if ok {
			hi = target
			s.take(g.division(row))
		} else if lo = target; try == 0 {
			return nil
		}
	}
	return nil
}

// fill is one pass of greedy.
func (g *contracted) fill(order []int, target float64) (row []part, ok bool) {
	accelerators, cpus := g.accelerators, g.cpus
	for at := 0; at < len(order); {
		var p part
		length := 0
		for _, cpu := range []bool{false, true} {
			if cpu && (cpus == 0 || length > 0) || !cpu && accelerators == 0 {
				continue
			}
			p.cpu = cpu
			// Loads can fall again where a node takes the last end of a net.
			for n := 1; at+n <= len(order); n++ {
				load, ok := g.load(part{cpu, order[at : at+n]})
				if ok && load <= target {
					length = n
				} else if g.heavy(order[at:at+n], cpu) > target {
					break
				}
			}
			if length > 0 && cpu {
				cpus--
			} else if length > 0 {
				accelerators--
			}
		}
		if length == 0 {
			return nil, false
		}
		p.cpu = p.cpu && length > 0
		p.classes = order[at : at+length]
		row = append(row, p)
		at += length
	}
	return row, true
}

// heavy is the time of classes on a device, without what it moves.
func (g *contracted) heavy(classes []int, cpu bool) float64 {
	sum := 0.0
	for _, i := range classes {
		if cpu {
			sum += g.classes[i].cpu
		} else {
			sum += g.classes[i].acc
		}
	}
	return sum
}

// pipedream divides a chain, as PipeDream does. The chain: the tails of the edges of each biconnected component of the
// graph become one class, and what is left is put into depth-first order. Edges of nodes that are neither work nor
// traffic, such as masks that every layer reads, do not count: those without time whose output costs less than a tenth
// of the mean. (The published program lists such nodes by id.)
func (s *solver) pipedream(ctx context.Context) error {
	g := s.p.fused(s.p.biconnected(), true)
	if math.IsInf(g.bound(), 1) {
		s.reason = "a component of the chain fits on no device"
		return nil
	}
	row, _, sweep := g.run(ctx, g.chains([][]int{g.depthFirst()}), g.ceiling(), s.left())
	s.pairs = sweep.pairs
	s.spent(sweep)
	if row != nil {
		s.take(g.division(row))
	} else if !sweep.stopped {
		s.reason = "no division of the chain into consecutive parts fits"
	}
	return nil
}

// biconnected gives each forward node the first of those it is fused with.
func (p *Problem) biconnected() []int {
	type arc struct{ tail, head int }
	var arcs []arc
	mean := 0.0
	for _, c := range p.cost {
		mean += c / float64(len(p.cost))
	}
	adjacent := make([][]int, len(p.Nodes)) // arcs at each node
	for u, v := range p.Nodes {
		if v.AcceleratorLatency == 0 && v.CPULatency == 0 && p.cost[u] < mean/10 {
			continue
		}
		for _, w := range p.succ[u] {
			if v.Backward || p.Nodes[w].Backward {
				continue
			}
			adjacent[u] = append(adjacent[u], len(arcs))
			adjacent[w] = append(adjacent[w], len(arcs))
			arcs = append(arcs, arc{u, w})
		}
	}
	set := sets(solve.Numbers(len(p.Nodes)))
	entry, low := make([]int, len(p.Nodes)), make([]int, len(p.Nodes))
	used := make([]bool, len(arcs))
	var open []int // arcs of components that are not complete
	next := 0
	type frame struct{ v, k, by int }
	for root := range p.Nodes {
		if entry[root] != 0 {
			continue
		}
		next++
		entry[root], low[root] = next, next
		calls := []frame{{root, 0, -1}}
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.k < len(adjacent[v]) {
				a := adjacent[v][f.k]
				f.k++
				if used[a] {
					continue
				}
				used[a] = true
				open = append(open, a)
				w := arcs[a].tail + arcs[a].head - v
				if entry[w] != 0 {
					low[v] = min(low[v], entry[w])
					continue
				}
				next++
				entry[w], low[w] = next, next
				calls = append(calls, frame{w, 0, a})
				continue
			}
			by := f.by
			calls = calls[:len(calls)-1]
			if by < 0 {
				continue
			}
			u := arcs[by].tail + arcs[by].head - v
			low[u] = min(low[u], low[v])
			if low[v] >= entry[u] {
				k := slices.Index(open, by)
				for _, a := range open[k:] {
					i, j := set.find(arcs[open[k]].tail), set.find(arcs[a].tail)
					set[max(i, j)] = min(i, j)
				}
				open = open[:k]
			}
		}
	}
	for i := range set {
		set.find(i)
	}
	return set
}
