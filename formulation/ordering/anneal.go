package ordering

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// What the annealing of a part is given, if SearchOptions.Anneal says nothing: so many looks at an
// instance in all, and no more than so many orders. Parts of fewer instances are proven sooner.
const (
	annealRuns  = 4_000_000
	annealMost  = 60_000
	annealLeast = 24
	// Each round begins from the best so far, with some heat again.
	annealRounds = 4
)

// anneal moves instances, or some in a row, within an order, as far as what they read and who reads them lets them,
// and goes on from worse orders by chance, ever less so (Kirkpatrick et al. 1983). What leaves the
// LB is what is read again latest. It proves nothing. What it finds depends on the seed alone, unless
// the context ends it.
func (a *answer) anneal(stop *limits, opts SearchOptions) {
	g := a.part.graph
	n := len(g.Refs)
	budget := opts.Anneal
	if budget == 0 && n >= annealLeast {
		budget = min(annealRuns/n, annealMost)
	}
	if a.objective != Traffic || a.cost <= a.bound || n < 2 {
		return
	}
	rng := rand.New(rand.NewPCG(uint64(opts.Seed), uint64(n)))
	order := make([]int, n)
	for k, s := range a.steps {
		order[k] = s.run
	}
	seq := newSequencer(g)
	cost := seq.cost(order)
	best, least := slices.Clone(order), cost
	next := make([]int, n)
	hot := math.Max(1, float64(cost)/100)
	at := make([]int, n)
	for i := range budget {
		if i%256 == 0 && solve.Why(stop.ctx) != milp.Complete {
			break
		}
		round := max(1, budget/annealRounds)
		if i > 0 && i%round == 0 {
			copy(order, best)
			cost = least
		}
		heat := hot * math.Pow(1e-2, float64(i%round)/float64(round))
		for k, id := range order {
			at[id] = k
		}
		size := 1
		if rng.IntN(2) == 0 {
			size = 1 + rng.IntN(min(8, n-1))
		}
		from := rng.IntN(n - size + 1)
		end := from + size
		lo, hi := 0, n // where the run of instances may stand
		for _, id := range order[from:end] {
			for _, r := range g.Reads[id] {
				if at[r] < from {
					lo = max(lo, at[r]+1)
				}
			}
			for _, r := range g.Readers[id] {
				if at[r] >= end {
					hi = min(hi, at[r])
				}
			}
		}
		if hi-lo == size {
			continue
		}
		to := lo + rng.IntN(hi-lo-size)
		if to >= from {
			to++
		}
		copy(next, order)
		if to > from {
			copy(next[from:], order[end:to+size])
		} else {
			copy(next[to+size:], order[to:from])
		}
		copy(next[to:], order[from:end])
		c := seq.cost(next)
		if c <= cost || rng.Float64() < math.Exp(float64(cost-c)/heat) {
			order, next, cost = next, order, c
			if cost < least {
				copy(best, order)
				least = cost
			}
		}
	}
	if least < a.cost {
		steps := make([]localStep, 0, n)
		seq.record = func(s localStep) { steps = append(steps, s) }
		seq.cost(best)
		a.cost, a.peak = a.part.play(steps)
		a.steps = steps
	}
}

// A sequencer finds what a fixed order costs, with the rule that the output that is read again
// latest leaves first; of those read at the same time, one that the GB has, then the lowest ID.
type sequencer struct {
	g      *Graph
	at     []int
	inLB   []bool
	copied []bool
	held   []int
	record func(localStep) // hears of the steps; nil: nobody
}

func newSequencer(g *Graph) *sequencer {
	n := len(g.Refs)
	return &sequencer{g: g, at: make([]int, n), inLB: make([]bool, n), copied: make([]bool, n)}
}

// cost is that of an order of all instances in which each comes behind what it reads, in units.
func (q *sequencer) cost(order []int) int64 {
	g := q.g
	for k, i := range order {
		q.at[i] = k
		q.inLB[i], q.copied[i] = false, false
	}
	q.held = q.held[:0]
	cost, used := int64(0), int64(0)
	// again is when an output is read next after a position.
	again := func(i, pos int) int {
		least := math.MaxInt
		for _, r := range g.Readers[i] {
			if at := q.at[r]; at > pos && at < least {
				least = at
			}
		}
		return least
	}
	drop := func(k int) {
		i := q.held[k]
		q.held[k] = q.held[len(q.held)-1]
		q.held = q.held[:len(q.held)-1]
		q.inLB[i] = false
		used -= g.Output[i]
	}
	for pos, i := range order {
		step := localStep{run: i}
		need := g.Output[i] + g.Work[i]
		for _, r := range g.Reads[i] {
			if !q.inLB[r] {
				need += g.Output[r]
			}
		}
		for used+need > g.Capacity {
			victim, latest := -1, 0
			for k, j := range q.held {
				if _, read := slices.BinarySearch(g.Reads[i], j); read || g.Output[j] == 0 {
					continue
				}
				t := again(j, pos)
				if victim < 0 || t > latest || t == latest && (q.copied[j] && !q.copied[q.held[victim]] || q.copied[j] == q.copied[q.held[victim]] && j < q.held[victim]) {
					victim, latest = k, t
				}
			}
			j := q.held[victim] // there is one: the largest need fits
			if !q.copied[j] {
				q.copied[j] = true
				cost += g.Store[j]
			}
			step.store = append(step.store, j)
			drop(victim)
		}
		for _, r := range g.Reads[i] {
			if !q.inLB[r] {
				step.load = append(step.load, r)
				cost += g.Load[r]
				q.inLB[r] = true
				q.held = append(q.held, r)
				used += g.Output[r]
			}
		}
		if len(g.Readers[i]) > 0 {
			q.inLB[i] = true
			q.held = append(q.held, i)
			used += g.Output[i]
		}
		for _, r := range g.Reads[i] {
			if again(r, pos) == math.MaxInt {
				drop(slices.Index(q.held, r))
			}
		}
		if q.record != nil {
			q.record(step)
		}
	}
	return cost
}
