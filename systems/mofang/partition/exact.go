package partition

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

const (
	defaultStates = 24_000_000
	rounds        = 40 // of orders, where the graph has too many ideals
	many          = "the graph has more ideals than the limit"
	firstShare    = 1.0 / 64 // of the distance between bound and load, for the first cut-off
)

// exact is the search of the package documentation.
func (s *solver) exact(ctx context.Context) error {
	g := s.g
	if math.IsInf(s.bound, 1) {
		s.reason = "a part of the graph that is on one device fits on none"
		return nil
	}
	s.try(ctx, g.chains([][]int{g.leastCut(nil)}))
	for _, order := range [][]int{g.byNumber(), g.depthFirst()} {
		s.try(ctx, g.chains([][]int{order}))
	}
	limit := s.opt.MaxIdeals
	if limit <= 0 {
		limit = defaultStates / ((g.accelerators + 1) * (g.cpus + 1))
	}
	if s.bound >= s.load*(1-near) || ctx.Err() != nil || s.stop != milp.Complete {
		return nil
	}
	program := s.opt.Solver != nil && g.cpus == 0 && g.accelerators > 1
	if program && s.opt.MaxIdeals <= 0 {
		limit = min(limit, programIdeals)
	}
	l := g.ideals(ctx, limit)
	if l == nil && program && ctx.Err() == nil {
		s.opt.Notef(many+" of %d: an integer program is solved", limit)
		if s.best == nil {
			s.improve(ctx) // the memory is tight
		}
		return s.program(ctx)
	}
	if l == nil {
		if ctx.Err() == nil {
			s.stop, s.reason = milp.StopMemory, many
			s.opt.Notef("%s of %d: only divisions along topological orders are tried", s.reason, limit)
			s.improve(ctx)
		}
		return nil
	}
	s.lat = l.len()
	ceiling := s.load
	if math.IsInf(ceiling, 1) {
		ceiling = g.ceiling()
	}
	for share := firstShare; s.bound < s.load*(1-near); share *= 2 {
		cutoff := s.bound + share*(ceiling-s.bound)
		if share >= 1 {
			cutoff = ceiling
		}
		// A division as good as the best is no news: loads below the cut-off only.
		row, value, sweep := g.run(ctx, l, cutoff, s.left())
		s.pairs += sweep.pairs
		switch {
		case sweep.stopped:
			s.spent(sweep)
			return nil
		case row != nil:
			s.take(g.division(row))
			s.raise(min(value, s.load))
			return nil
		case cutoff == ceiling && s.best == nil:
			s.bound = math.Inf(1)
			s.reason = s.p.crowded()
			return nil
		}
		s.raise(cutoff)
	}
	return nil
}

// left is the number of pairs that may still be visited.
func (s *solver) left() int64 {
	if s.opt.WorkLimit == 0 {
		return math.MaxInt64
	}
	return max(0, s.opt.WorkLimit-s.pairs)
}

// spent notes that the limit on work has ended a run.
func (s *solver) spent(run *sweep) {
	if run.stopped && s.left() == 0 {
		s.stop = milp.StopWork
	}
}

// ceiling is above every load.
func (g *contracted) ceiling() float64 {
	sum := 0.0
	for _, c := range g.classes {
		sum += c.acc + c.cpu
	}
	for _, n := range g.nets {
		sum += n.cost
	}
	if sum == 0 {
		return 1
	}
	return sum * (1 + 1e-6)
}

// try takes the best division along a lattice of chains.
func (s *solver) try(ctx context.Context, l *lattice) {
	cutoff := s.load
	if math.IsInf(cutoff, 1) {
		cutoff = s.g.ceiling()
	}
	row, _, sweep := s.g.run(ctx, l, cutoff, s.left())
	s.pairs += sweep.pairs
	s.spent(sweep)
	if row != nil {
		s.take(s.g.division(row))
	}
}

// improve draws orders, half of them at random and half that keep the devices of
// the best division together, and takes the best division along all of a round.
func (s *solver) improve(ctx context.Context) {
	const orders = 4
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 1))
		var drawn [][]int
		for range orders {
			drawn = append(drawn, s.g.leastCut(rng), s.g.within(s.best, rng))
		}
		if s.try(ctx, s.g.chains(drawn)); ctx.Err() != nil || s.stop == milp.StopWork || s.bound >= s.load*(1-near) {
			return
		}
	}
}

// ordered lists the classes so that each comes after its predecessors, by repeated
// choice among those that may come next, in ascending order.
func (g *contracted) ordered(choose func(ready []int) int) []int {
	waits := make([]int, len(g.classes))
	var ready, order []int
	for i, c := range g.classes {
		if waits[i] = len(c.pred); waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		k := choose(ready)
		i := ready[k]
		ready = slices.Delete(ready, k, k+1)
		order = append(order, i)
		for _, w := range g.classes[i].succ {
			if waits[w]--; waits[w] == 0 {
				k, _ := slices.BinarySearch(ready, w)
				ready = slices.Insert(ready, k, w)
			}
		}
	}
	return order
}

func (g *contracted) byNumber() []int { return g.ordered(func([]int) int { return 0 }) }

// depthFirst follows the successors of what came last.
func (g *contracted) depthFirst() []int {
	last := -1
	return g.ordered(func(ready []int) int {
		k := len(ready) - 1
		if last >= 0 {
			for _, w := range g.classes[last].succ {
				if at, ok := slices.BinarySearch(ready, w); ok {
					k = at
					break
				}
			}
		}
		last = ready[k]
		return k
	})
}

// leastCut takes next what makes the cost of cut nets smallest; with rng, it weighs each cost at random.
func (g *contracted) leastCut(rng *rand.Rand) []int {
	in := newBitset(len(g.classes) + 1)
	none := newBitset(len(g.classes) + 1)
	noise := make([]float64, len(g.classes))
	if rng != nil {
		scale := 0.0
		for _, n := range g.nets {
			scale = max(scale, n.cost)
		}
		for i := range noise {
			noise[i] = scale * rng.ExpFloat64() / 4
		}
	}
	return g.ordered(func(ready []int) int {
		best, least := 0, math.Inf(1)
		for k, i := range ready {
			if grow := g.change(i, in, none) + noise[i]; grow < least {
				best, least = k, grow
			}
		}
		in.add(ready[best])
		return best
	})
}

// within draws an order that takes the devices of a division one after another, as far as their classes go.
func (g *contracted) within(d *Division, rng *rand.Rand) []int {
	noise := make([]float64, len(g.classes))
	for i := range noise {
		noise[i] = rng.Float64()
	}
	at := make([]int, len(g.classes))
	if d != nil {
		device, err := g.p.devices(d)
		if err == nil {
			for i, c := range g.classes {
				at[i] = device[c.nodes[0]]
			}
		}
	}
	current := -1
	return g.ordered(func(ready []int) int {
		best := -1
		for k, i := range ready {
			if at[i] == current && (best < 0 || noise[i] < noise[ready[best]]) {
				best = k
			}
		}
		if best < 0 {
			best = 0
			for k, i := range ready {
				if noise[i] < noise[ready[best]] {
					best = k
				}
			}
			current = at[ready[best]]
		}
		return best
	})
}
