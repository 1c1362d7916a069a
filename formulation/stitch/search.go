package stitch

import (
	"context"
	"math"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Search finds a best plan by dynamic programming over downsets. At a limit, or when
// the context ends, it returns what it has with a bound, and Stop says why
// (milp.StopMemory for a limit of [Options]).
func Search(ctx context.Context, p *Problem, opt Options) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	b := newBest(p, opt)
	r := p.rule(b)
	cut := func(stop milp.Stop) (*Result, error) {
		r.Stop, r.Priced = stop, b.priced
		r.Bound = math.Min(r.Bound, r.Seconds)
		return r, nil
	}
	if opt.Whole {
		c, ok := b.of(p.all())
		switch {
		case !ok:
			return cut(milp.StopMemory)
		case math.IsInf(c.seconds, 1):
			return &Result{Status: milp.Infeasible, Seconds: c.seconds, Bound: c.seconds, Priced: b.priced}, nil
		}
		return &Result{Status: milp.Optimal, Kernels: []Kernel{{list(p.all()), c.choice}}, Seconds: c.seconds, Bound: c.seconds, Priced: b.priced}, nil
	}
	if ctx.Err() != nil {
		return cut(stopped(ctx))
	}
	sets, ok := p.downsets(opt.MaxDownsets)
	if !ok {
		return cut(milp.StopMemory)
	}
	n := len(sets)
	cost := make([]float64, n) // from the downset to the end
	next := make([]int, n)
	for i := n - 2; i >= 0; i-- {
		if ctx.Err() != nil {
			return cut(stopped(ctx))
		}
		cost[i], next[i] = math.Inf(1), -1
		for j := n - 1; j > i; j-- {
			if sets[i]&^sets[j] != 0 || math.IsInf(cost[j], 1) {
				continue
			}
			c, ok := b.of(sets[j] &^ sets[i])
			if !ok {
				return cut(milp.StopMemory)
			}
			if s := c.seconds + cost[j]; s < cost[i] {
				cost[i], next[i] = s, j
			}
		}
	}
	if math.IsInf(cost[0], 1) {
		return &Result{Status: milp.Infeasible, Seconds: cost[0], Bound: cost[0], Priced: b.priced}, nil
	}
	res := &Result{Status: milp.Optimal, Seconds: cost[0], Bound: cost[0], Priced: b.priced}
	for i := 0; i < n-1; i = next[i] {
		set := sets[next[i]] &^ sets[i]
		res.Kernels = append(res.Kernels, Kernel{list(set), b.memo[set].choice})
	}
	return res, nil
}
