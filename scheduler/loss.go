package scheduler

import (
	"context"
)

// A Loss is what one greedy decision costs: the schedule that [Best] found with that decision alone made greedily
// again, and the greedy one with that decision alone as found. Throughputs are simulated; nil: that can't be had.
type Loss struct {
	Decision  string   `json:"decision"` // a stage
	SetBack   *float64 `json:"best_with_it_greedy_per_s"`
	SetToBest *float64 `json:"greedy_with_it_best_per_s"`
}

// taking returns the decisions with the value that others have for a row. For other groups, what it can be for them.
func (p *Decisions) taking(stage string, from *Decisions) *Decisions {
	x := from.value(stage)
	if v, ok := x.(follower); ok && !p.groups().same(from.groups()) {
		x = v.After("group", from, p)
	}
	return p.replace(stage, x)
}

// Losses says which greedy decision loses most, at the chunk of the schedule that was found.
func (f *Found) Losses(ctx context.Context) ([]Loss, error) {
	recipe, err := Lookup(greedyRecipe)
	if err != nil {
		return nil, err
	}
	opt := f.problem.opt.Options
	opt.Chunk = f.Chunk
	made, err := runChunk(ctx, f.problem.net, f.Machine, f.Batch, recipe, opt)
	if err != nil {
		return nil, err
	}
	best := f.decisions
	greedy := decisionsOf(made, false, false).by(best.recipe)
	var list []Loss
	for i, st := range best.stages {
		if best.values[i] == nil || greedy.values[i] == nil {
			continue
		}
		rate := func(to, from *Decisions) (*float64, error) {
			o := f.problem.evaluate(ctx, to.taking(st.Name, from), 0)
			if ctx.Err() != nil || o.err != nil && !tooLarge(o.err) {
				return nil, o.err
			}
			if o.err != nil {
				return nil, nil
			}
			t := float64(f.Batch) / (float64(o.ps) * 1e-12)
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
