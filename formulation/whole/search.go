package whole

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/heap"
)

// A cover is a set of parts that has some of the atoms, with what it costs at least to
// cover them all.
type cover struct {
	parts []int
	done  []bool // atoms
	cost  float64
	bound float64
}

// maxCovers is how many unfinished covers the search keeps at most, where there is no limit on memory.
const maxCovers = 2_000_000

// Search is the package's search. WorkLimit counts sets of parts that are solved.
func Search(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	began := time.Now()
	r, err := p.begin("search", &opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	report := opts.Reporter()
	// Of each atom: the parts whose first atom not yet covered it can be, and its least share.
	with, share := make([][]int, p.Atoms), make([]float64, p.Atoms)
	floor := make([]float64, len(p.Parts))
	for a := range share {
		share[a] = math.Inf(1)
	}
	for o := range p.Parts {
		floor[o] = p.Parts[o].floor()
		for _, a := range p.Parts[o].Atoms {
			with[a] = append(with[a], o)
			share[a] = math.Min(share[a], floor[o]/float64(len(p.Parts[o].Atoms)))
		}
	}
	rest := 0.0
	for _, s := range share {
		rest += s
	}
	open := heap.Of(func(a, b *cover) bool {
		return a.bound < b.bound || a.bound == b.bound && slices.Compare(a.parts, b.parts) < 0
	})
	if !math.IsInf(rest, 1) {
		open.Push(&cover{done: make([]bool, p.Atoms), bound: rest})
	}
	best := func() float64 { return r.Outcome().Objective }
	loose := math.Inf(1) // the least bound of sets that were not solved to the end
	stop := milp.Complete
	for open.Len() > 0 && open.First().bound < best()*(1-tolerance) {
		if stop = solve.Why(ctx); stop == milp.Complete && (opts.WorkLimit > 0 && int64(r.Sets) >= opts.WorkLimit) {
			stop = milp.StopWork
		}
		if stop == milp.Complete && open.Len() > maxCovers {
			stop = milp.StopMemory
		}
		if stop != milp.Complete {
			break
		}
		c := open.Pop()
		report(best(), math.Min(c.bound, loose), false)
		if a := slices.Index(c.done, false); a >= 0 {
			for _, o := range with[a] {
				atoms := p.Parts[o].Atoms
				if slices.ContainsFunc(atoms, func(a int) bool { return c.done[a] }) {
					continue
				}
				next := &cover{parts: append(slices.Clone(c.parts), o), done: slices.Clone(c.done), cost: c.cost + floor[o]}
				for _, a := range atoms {
					next.done[a] = true
				}
				next.bound = next.cost
				for a, done := range next.done {
					if !done {
						next.bound += share[a]
					}
				}
				next.bound = math.Max(next.bound, c.bound)
				open.Push(next)
			}
			continue
		}
		j, err := p.Joint(c.parts)
		if err != nil {
			return nil, err
		}
		if j == nil {
			continue
		}
		r.Sets++
		fixed := 0.0
		for _, o := range c.parts {
			fixed += p.Parts[o].Seconds
		}
		found, err := joint.Search(ctx, j, joint.SearchOptions{})
		if err != nil {
			return nil, err
		}
		if found.Choice != nil && fixed+found.Objective < best() {
			r.Choice, r.Objective = &Choice{p.Arrange(c.parts), found.Choice, found.Steps}, fixed+found.Objective
			report(r.Objective, math.Min(c.bound, loose), true)
		}
		if found.Status != milp.Optimal && found.Status != milp.Infeasible {
			loose = math.Min(loose, fixed+found.Bound)
		}
	}
	bound := math.Min(best(), loose)
	if open.Len() > 0 {
		bound = math.Min(bound, open.First().bound)
	}
	if stop == milp.Complete && bound < best()*(1-tolerance) {
		stop = milp.StopWork // a set that package joint could not solve to the end
	}
	r.finish(bound, stop)
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}
