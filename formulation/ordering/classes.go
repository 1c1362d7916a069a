package ordering

import (
	"encoding/binary"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
)

// A part is a connected component of the instance graph, with IDs of its own.
type part struct {
	graph *Graph
	ids   []int // of the whole graph
}

// split divides a graph into its connected components, by least ID.
func split(g *Graph) []part {
	label := make([]int, len(g.Refs))
	local := make([]int, len(g.Refs))
	var parts [][]int
	for i := range g.Refs {
		if label[i] > 0 {
			continue
		}
		label[i] = len(parts) + 1
		members := []int{i}
		for k := 0; k < len(members); k++ {
			for _, near := range [][]int{g.Reads[members[k]], g.Readers[members[k]]} {
				for _, j := range near {
					if label[j] == 0 {
						label[j] = len(parts) + 1
						members = append(members, j)
					}
				}
			}
		}
		slices.Sort(members)
		for k, j := range members {
			local[j] = k
		}
		parts = append(parts, members)
	}
	all := make([]part, len(parts))
	for c, members := range parts {
		s := &Graph{Capacity: g.Capacity, Unit: g.Unit}
		translate := func(ids []int) []int {
			var out []int
			for _, j := range ids {
				out = append(out, local[j])
			}
			return out
		}
		for _, i := range members {
			s.Refs = append(s.Refs, g.Refs[i])
			s.Output = append(s.Output, g.Output[i])
			s.Work = append(s.Work, g.Work[i])
			s.Store = append(s.Store, g.Store[i])
			s.Load = append(s.Load, g.Load[i])
			s.Reads = append(s.Reads, translate(g.Reads[i]))
			s.Readers = append(s.Readers, translate(g.Readers[i]))
		}
		all[c] = part{s, members}
	}
	return all
}

// key is the same for parts that differ in nothing but the IDs of the whole graph.
func (p part) key() string {
	var b []byte
	for i, reads := range p.graph.Reads {
		b = binary.AppendVarint(b, p.graph.Output[i])
		b = binary.AppendVarint(b, p.graph.Work[i])
		b = binary.AppendUvarint(b, uint64(len(reads)))
		for _, r := range reads {
			b = binary.AppendUvarint(b, uint64(r))
		}
	}
	return string(b)
}

// A class is a set of instances that the search and the counting formulation
// need not tell apart; see the package's section on classes.
type class struct {
	members []int // ascending
	out     int64 // bytes of the output while it runs
	work    int64
	store   int64
	load    int64
	reads   []classRead
	// shared: the outputs have several readers, the same ones, each of which reads them all.
	shared  bool
	readers []int // classes, each of which reads only this class's outputs so often
	// per is the number of outputs of a counted class each run of its only reader takes.
	per int
}

type classRead struct {
	class, count int
}

func (c *class) n() int { return len(c.members) }

// kept reports whether outputs of the class stay after their run.
func (c *class) kept() bool { return len(c.readers) > 0 }

// A merging says which instances may be in one class.
type merging int

const (
	counted merging = iota // those with one reader or none
	twinned                // and those with the same readers
)

// classes partitions the instances, in topological order, as coarsely as can be if the members of a class agree in
// sizes, in the class of their reader or in their readers, and in how many outputs of each class they read.
func classes(g *Graph, merge merging) ([]class, []int) {
	n := len(g.Refs)
	level := g.levels()
	color := make([]int, n)
	count := refine(n, color, func(i int, b []byte) []byte {
		many := len(g.Readers[i]) > 1
		if merge == counted && many {
			return binary.AppendVarint(append(b, 2), int64(i))
		}
		b = binary.AppendVarint(append(b, byte(min(len(g.Readers[i]), 1))), int64(level[i]))
		b = binary.AppendVarint(b, g.Output[i])
		b = binary.AppendVarint(b, g.Work[i])
		if many {
			for _, r := range g.Readers[i] {
				b = binary.AppendUvarint(b, uint64(r)+1)
			}
		}
		return b
	})
	var near []int
	for {
		old := slices.Clone(color)
		finer := refine(n, color, func(i int, b []byte) []byte {
			b = binary.AppendUvarint(b, uint64(old[i]))
			if len(g.Readers[i]) == 1 {
				b = binary.AppendUvarint(b, uint64(old[g.Readers[i][0]]))
			}
			near = near[:0]
			for _, r := range g.Reads[i] {
				near = append(near, old[r])
			}
			slices.Sort(near)
			for _, c := range near {
				b = binary.AppendUvarint(b, uint64(c))
			}
			return b
		})
		if finer == count {
			break
		}
		count = finer
	}
	// Classes in topological order, so that readers come after what they read.
	first := make([]int, count)
	for i := n - 1; i >= 0; i-- {
		first[color[i]] = i
	}
	order := solve.Numbers(count)
	slices.SortFunc(order, func(a, b int) int {
		if la, lb := level[first[a]], level[first[b]]; la != lb {
			return la - lb
		}
		return first[a] - first[b]
	})
	rank := make([]int, count)
	for pos, c := range order {
		rank[c] = pos
	}
	list := make([]class, count)
	of := make([]int, n)
	for i := range n {
		of[i] = rank[color[i]]
		list[of[i]].members = append(list[of[i]].members, i)
	}
	for k := range list {
		c := &list[k]
		i := c.members[0]
		c.out, c.work, c.store, c.load = g.Output[i], g.Work[i], g.Store[i], g.Load[i]
		c.shared = len(g.Readers[i]) > 1
		for _, r := range g.Readers[i] {
			c.readers = append(c.readers, of[r])
		}
		slices.Sort(c.readers)
		c.readers = slices.Compact(c.readers)
		var reads []int
		for _, r := range g.Reads[i] {
			reads = append(reads, of[r])
		}
		slices.Sort(reads)
		for a := 0; a < len(reads); {
			b := a
			for b < len(reads) && reads[b] == reads[a] {
				b++
			}
			c.reads = append(c.reads, classRead{reads[a], b - a})
			a = b
		}
	}
	for k := range list {
		for _, r := range list[k].reads {
			if !list[r.class].shared {
				list[r.class].per = r.count
			}
		}
	}
	return list, of
}

// refine numbers the instances by what key says of them, in order of first
// appearance, and returns how many numbers there are.
func refine(n int, color []int, key func(i int, b []byte) []byte) int {
	number := map[string]int{}
	var b []byte
	for i := range n {
		b = key(i, b[:0])
		c, ok := number[string(b)]
		if !ok {
			c = len(number)
			number[string(b)] = c
		}
		color[i] = c
	}
	return len(number)
}

// An event is a run of some instance of a class, after outputs of classes were stored.
type event struct {
	class int
	store []classRead
}

// replay makes an order of the part's instances from the runs of classes: it follows each output, decides which
// instance each run was only when all are known, and loads what a run misses. This is the proof of the section on
// classes, as code.
func replay(g *Graph, list []class, of []int, events []event) (order []int, stores, loads [][]int) {
	type token struct{ class, number int }
	// l1 and llb hold the numbers of the live outputs; those of shared classes that the LLB has a copy of are in copied.
	copied := make([]map[int]bool, len(list))
	ran := make([]int, len(list))
	l1, llb := make([][]int, len(list)), make([][]int, len(list))
	taken := make([][][]token, len(list)) // by class and number: what it took
	type record struct {
		run          token
		store, loads []token
	}
	var records []record
	left := make([]int, len(list)) // runs until shared outputs are dead
	for k := range list {
		copied[k] = map[int]bool{}
		for _, r := range list[k].readers {
			left[k] += list[r].n()
		}
	}
	for _, e := range events {
		rec := record{run: token{e.class, ran[e.class]}}
		for _, s := range e.store {
			for range min(s.count, len(l1[s.class])) {
				// One with a copy leaves for nothing; else the one that came last waits longest.
				at := max(0, slices.IndexFunc(l1[s.class], func(x int) bool { return copied[s.class][x] }))
				if !copied[s.class][l1[s.class][at]] {
					at = len(l1[s.class]) - 1
				}
				x := l1[s.class][at]
				l1[s.class] = slices.Delete(l1[s.class], at, at+1)
				llb[s.class] = append(llb[s.class], x)
				copied[s.class][x] = list[s.class].shared
				rec.store = append(rec.store, token{s.class, x})
			}
		}
		var took []token
		for _, r := range list[e.class].reads {
			if list[r.class].shared {
				for _, x := range llb[r.class] {
					rec.loads = append(rec.loads, token{r.class, x})
				}
				l1[r.class], llb[r.class] = append(l1[r.class], llb[r.class]...), nil
				if left[r.class]--; left[r.class] == 0 {
					l1[r.class] = nil
				}
				continue // whichever: every reader reads them all
			}
			for range r.count {
				if len(l1[r.class]) == 0 {
					x := llb[r.class][0]
					llb[r.class] = llb[r.class][1:]
					l1[r.class] = append(l1[r.class], x)
					rec.loads = append(rec.loads, token{r.class, x})
				}
				took = append(took, token{r.class, l1[r.class][0]})
				l1[r.class] = l1[r.class][1:]
			}
		}
		taken[e.class] = append(taken[e.class], took)
		if list[e.class].kept() {
			l1[e.class] = append(l1[e.class], ran[e.class])
		}
		ran[e.class]++
		records = append(records, rec)
	}
	// From the readers to what they read: which instance was it?
	real := make([][]int, len(list))
	for k := range list {
		real[k] = make([]int, ran[k])
		copy(real[k], list[k].members)
	}
	for k := len(list) - 1; k >= 0; k-- {
		for number, took := range taken[k] {
			reads := g.Reads[real[k][number]]
			free := map[int][]int{}
			for _, r := range reads {
				free[of[r]] = append(free[of[r]], r)
			}
			for _, t := range took {
				real[t.class][t.number] = free[t.class][0]
				free[t.class] = free[t.class][1:]
			}
		}
	}
	name := func(tokens []token) []int {
		var ids []int
		for _, t := range tokens {
			ids = append(ids, real[t.class][t.number])
		}
		return ids
	}
	for _, rec := range records {
		order = append(order, real[rec.run.class][rec.run.number])
		stores = append(stores, name(rec.store))
		loads = append(loads, name(rec.loads))
	}
	return order, stores, loads
}
