package stitch

import (
	"context"
	"math"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// Search finds a best plan by dynamic programming over downsets. At a limit, or when
// the context ends, it returns the start or the rule's plan with a bound and the reason.
func Search(ctx context.Context, p *Problem, opt Options) (*Result, error) {
	b, r, err := p.begin(&opt)
	if err != nil {
		return nil, err
	}
	ctx, end := opt.Begin(ctx)
	defer end()
	tell := opt.Reporter()
	tell(r.Seconds, r.Bound, false)
	if stop := solve.Why(ctx); stop != milp.Complete {
		return r.cut(b, stop)
	}
	if opt.Whole {
		c, ok := b.of(p.all())
		switch {
		case !ok:
			return r.cut(b, milp.StopWork)
		case math.IsInf(c.seconds, 1):
			return &Result{Status: milp.Infeasible, Seconds: c.seconds, Bound: c.seconds, Priced: b.priced}, nil
		}
		return &Result{Status: milp.Optimal, Kernels: []Kernel{{list(p.all()), c.choice}}, Seconds: c.seconds,
			Bound: c.seconds, Priced: b.priced}, nil
	}
	sets, ok := p.downsets(opt.MaxDownsets)
	if !ok {
		return r.cut(b, milp.StopMemory)
	}
	n := len(sets)
	cost := make([]float64, n) // from the downset to the end
	next := make([]int, n)
	for i := n - 2; i >= 0; i-- {
		if stop := solve.Why(ctx); stop != milp.Complete {
			return r.cut(b, stop)
		}
		cost[i], next[i] = math.Inf(1), -1
		for j := n - 1; j > i; j-- {
			if sets[i]&^sets[j] != 0 || math.IsInf(cost[j], 1) {
				continue
			}
			c, ok := b.of(sets[j] &^ sets[i])
			if !ok {
				return r.cut(b, milp.StopWork)
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
	tell(res.Seconds, res.Bound, true)
	return res, nil
}
