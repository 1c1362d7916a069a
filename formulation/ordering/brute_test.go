package ordering

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
)

// bruteForce is the optimum by the rules and nothing else: Dijkstra's algorithm
// over what has run, what is in the L1 and what is in the LLB, one move or run at a
// time. Traffic is -1 if there is no order. It reads the file's arcs itself.
func bruteForce(p *Problem) (traffic float64, peak int64) {
	return restricted(p, mistakes{})
}

// mistakes are simplifications that look harmless and are not.
type mistakes struct {
	indexOrder bool // instances of a sub-graph run by index
	forgetCopy bool // a loaded output has to be stored again
}

func restricted(p *Problem, m mistakes) (traffic float64, peak int64) {
	previous := map[int]int{}
	var first []int
	var out, work []int64
	for _, sg := range p.Subgraphs {
		first = append(first, len(out))
		for q := range sg.Instances {
			if q > 0 && m.indexOrder {
				previous[len(out)] = len(out) - 1
			}
			out, work = append(out, sg.OutputBytes), append(work, sg.WorkspaceBytes)
		}
	}
	n := len(out)
	reads, readers := make([]uint32, n), make([]uint32, n)
	for _, a := range p.Arcs {
		for q, r := range a.Reads {
			for i := r[0]; i < r[1]; i++ {
				reads[first[a.To]+q] |= 1 << (first[a.From] + i)
				readers[first[a.From]+i] |= 1 << (first[a.To] + q)
			}
		}
	}
	size := func(set uint32) int64 {
		sum := int64(0)
		for i := range n {
			if set>>i&1 == 1 {
				sum += out[i]
			}
		}
		return sum
	}
	// live drops from a set what nothing has to read any more.
	live := func(set, ran uint32) uint32 {
		for i := range n {
			if readers[i]&^ran == 0 {
				set &^= 1 << i
			}
		}
		return set
	}
	all := uint32(1)<<n - 1

	best := map[bruteState]float64{}
	q := &bruteQueue{{state: bruteState{}}}
	traffic = -1
	for q.Len() > 0 {
		e := heap.Pop(q).(bruteEntry)
		s := e.state
		if s.ran == all {
			traffic = e.cost
			break
		}
		if c, ok := best[s]; ok && c < e.cost {
			continue
		}
		push := func(s bruteState, cost float64) {
			if c, ok := best[s]; !ok || cost < c {
				best[s] = cost
				heap.Push(q, bruteEntry{s, cost})
			}
		}
		for i := range n {
			bit := uint32(1) << i
			switch {
			case s.l1&bit != 0:
				cost := e.cost
				if s.llb&bit == 0 {
					cost += p.StoreCostPerByte * float64(out[i])
				}
				push(bruteState{s.ran, s.l1 &^ bit, s.llb | bit}, cost)
			case s.llb&bit != 0:
				if size(s.l1|bit) <= p.CapacityBytes {
					llb := s.llb
					if m.forgetCopy {
						llb &^= bit
					}
					push(bruteState{s.ran, s.l1 | bit, llb}, e.cost+p.LoadCostPerByte*float64(out[i]))
				}
			case s.ran&bit == 0 && reads[i]&^s.l1 == 0 && size(s.l1)+out[i]+work[i] <= p.CapacityBytes:
				if before, ok := previous[i]; ok && s.ran>>before&1 == 0 {
					continue
				}
				ran := s.ran | bit
				push(bruteState{ran, live(s.l1|bit, ran), live(s.llb, ran)}, e.cost)
			}
		}
	}

	// The peak: over the sets that can have run, in the order of their numbers,
	// which is one in which subsets come first.
	least := make([]int64, all+1)
	for set := uint32(1); ; set++ {
		least[set] = -1
		for i := range n {
			bit := uint32(1) << i
			before := set &^ bit
			if set&bit == 0 || least[before] < 0 || reads[i]&^before != 0 {
				continue
			}
			need := max(least[before], size(live(before, before))+out[i]+work[i])
			if least[set] < 0 || need < least[set] {
				least[set] = need
			}
		}
		if set == all {
			return traffic, least[all]
		}
	}
}

type bruteState struct{ ran, l1, llb uint32 }

type bruteEntry struct {
	state bruteState
	cost  float64
}

type bruteQueue []bruteEntry

func (q bruteQueue) Len() int           { return len(q) }
func (q bruteQueue) Less(i, j int) bool { return q[i].cost < q[j].cost }
func (q bruteQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *bruteQueue) Push(x any)        { *q = append(*q, x.(bruteEntry)) }
func (q *bruteQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// randomProblem draws a problem of at most most instances: chains, residuals and
// branches; aligned, finer, coarser, overlapping, whole and ragged reads; costs
// alike or not; capacities from too small to ample.
func randomProblem(seed uint64, most int) *Problem {
	r := rand.New(rand.NewPCG(seed, 5))
	p := &Problem{Name: fmt.Sprintf("random-%d", seed), StoreCostPerByte: 1, LoadCostPerByte: 1}
	if r.IntN(2) == 0 {
		costs := []float64{0, 0.5, 1, 2, 3}
		p.StoreCostPerByte, p.LoadCostPerByte = costs[r.IntN(5)], costs[r.IntN(5)]
	}
	counts := []int{1, 2, 2, 3, 4, 4}
	for total := 0; len(p.Subgraphs) < 6; {
		n := counts[r.IntN(len(counts))]
		if total+n > most {
			break
		}
		total += n
		p.Subgraphs = append(p.Subgraphs, Subgraph{Name: fmt.Sprint("s", len(p.Subgraphs)), Instances: n,
			OutputBytes: int64(r.IntN(10)), WorkspaceBytes: int64(r.IntN(4))})
	}
	kind := r.IntN(3)
	for to := 1; to < len(p.Subgraphs); to++ {
		for from := range to {
			keep := from == to-1
			switch kind {
			case 1: // residuals
				keep = keep || r.IntN(3) == 0
			case 2: // any graph
				keep = r.IntN(2) == 0
			}
			if keep {
				p.Arcs = append(p.Arcs, Arc{From: from, To: to,
					Reads: randomReads(r, p.Subgraphs[from].Instances, p.Subgraphs[to].Instances)})
			}
		}
	}
	g := NewGraph(p)
	least := g.LargestNeed()
	p.CapacityBytes = least + max(0, int64(r.IntN(9))-4)
	if r.IntN(12) == 0 {
		p.CapacityBytes = max(0, least-1)
	}
	return p
}

func randomReads(r *rand.Rand, from, to int) [][2]int {
	reads := make([][2]int, to)
	halo := 0
	switch r.IntN(10) {
	case 0: // everything
		for q := range reads {
			reads[q] = [2]int{0, from}
		}
		return reads
	case 1: // ragged
		lo, hi := 0, 0
		for q := range reads {
			lo = min(from, lo+r.IntN(2))
			hi = min(from, max(lo, hi)+r.IntN(3))
			reads[q] = [2]int{lo, hi}
		}
		return reads
	case 2:
		halo = 1
	}
	for q := range reads {
		reads[q] = [2]int{max(0, q*from/to-halo), min(from, ((q+1)*from+to-1)/to+halo)}
	}
	return reads
}
