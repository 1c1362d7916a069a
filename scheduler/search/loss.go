package search

import (
	"context"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A Loss is the cost of one greedy decision: the schedule that [Best] found with that decision alone made greedily
// again, and the greedy one with that decision alone as found. Throughputs are simulated; nil: that can't be had.
type Loss struct {
	Decision  string   `json:"decision"` // a stage
	SetBack   *float64 `json:"best_with_it_greedy_per_s"`
	SetToBest *float64 `json:"greedy_with_it_best_per_s"`
}

// Losses says which greedy decision loses most, at the chunk of the schedule that was found.
func (f *Found) Losses(ctx context.Context) ([]Loss, error) {
	recipe, err := recipes.Lookup(recipes.Greedy)
	if err != nil {
		return nil, err
	}
	opt := f.problem.Options()
	opt.Chunk = f.Chunk
	recipe = recipe.Picking(scheduler.Pick{Stage: "rewrite", Strategy: f.decisions.Form()})
	made, err := recipe.FastestChunk(ctx, f.problem.Net, f.Machine, f.Batch, opt)
	if err != nil {
		return nil, err
	}
	best := f.decisions
	greedy := made.Decisions(false, false).By(best.Recipe)
	var list []Loss
	for i, st := range best.Stages {
		if st.Name == "rewrite" || best.Values[i] == nil || greedy.Values[i] == nil {
			continue
		}
		rate := func(to, from *scheduler.Decisions) (*float64, error) {
			o := f.problem.Evaluate(ctx, to.Taking(st.Name, from), 0)
			if ctx.Err() != nil || o.Err != nil && !scheduler.TooLarge(o.Err) {
				return nil, o.Err
			}
			if o.Err != nil {
				return nil, nil
			}
			t := float64(f.Batch) / (float64(o.Ps) * 1e-12)
			return &t, nil
		}
		x := Loss{Decision: st.Name}
		if x.SetBack, err = rate(best, greedy); err != nil {
			return nil, err
		}
		if x.SetToBest, err = rate(greedy, best); err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}
