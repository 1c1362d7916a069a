package scheduler

import (
	"context"
)

// A Loss is what one greedy decision costs: the schedule that [Best] found with that
// decision alone made greedily again, and the greedy one with that decision alone as found.
// Throughputs are simulated; nil: that can't be had.
type Loss struct {
	Decision  string   `json:"decision"`
	SetBack   *float64 `json:"best_with_it_greedy_per_s"`
	SetToBest *float64 `json:"greedy_with_it_best_per_s"`
}

// decisions are those of a plan, each with what takes it over from another plan.
var decisions = []struct {
	name string
	take func(to, from *plan) *plan
}{
	{"groups", func(to, from *plan) *plan { return to.regroup(from.cuts) }},
	{"order", func(to, from *plan) *plan {
		p := *to
		p.order = from.order
		if p.own = nil; p.samePieces(from) {
			p.own = from.own
		}
		return &p
	}},
	{"bindings", func(to, from *plan) *plan {
		p := *to
		p.bound, p.inner, p.bindings, p.scopes = from.bound, from.inner, nil, nil
		if p.samePieces(from) {
			p.bindings, p.scopes = from.bindings, from.scopes
		}
		return &p
	}},
	{"spills", func(to, from *plan) *plan {
		p := *to
		p.down, p.rule = from.down, from.rule
		return &p
	}},
	{"layers", func(to, from *plan) *plan {
		p := *to
		p.sooner, p.alone, p.layers = from.sooner, from.alone, nil
		if p.samePieces(from) {
			p.layers = from.layers
		}
		return &p
	}},
	{"addresses", func(to, from *plan) *plan {
		p := *to
		p.apart, p.over = from.apart, from.over
		return &p
	}},
	{"generator", func(to, from *plan) *plan {
		p := *to
		p.lower = from.lower
		return &p
	}},
}

// samePieces reports whether two plans have the same groups.
func (p *plan) samePieces(q *plan) bool {
	if len(p.cuts) != len(q.cuts) {
		return false
	}
	for k := range p.cuts {
		if p.cuts[k].piece() != q.cuts[k].piece() {
			return false
		}
	}
	return true
}

// Losses says which greedy decision loses most, at the chunk of the schedule that was found.
func (f *Found) Losses(ctx context.Context) ([]Loss, error) {
	recipe, err := Lookup(greedyRecipe)
	if err != nil {
		return nil, err
	}
	opt := f.world.opt
	opt.Chunk = f.Chunk
	made, err := runChunk(ctx, f.world.net, f.Machine, f.Batch, recipe, opt)
	if err != nil {
		return nil, err
	}
	greedy := planOf(made, false)
	var list []Loss
	for _, d := range decisions {
		rate := func(to, from *plan) (*float64, error) {
			o := f.world.evaluate(ctx, d.take(to, from), 0)
			if ctx.Err() != nil || o.err != nil && !tooLarge(o.err) {
				return nil, o.err
			}
			if o.err != nil {
				return nil, nil
			}
			t := float64(f.Batch) / (float64(o.ps) * 1e-12)
			return &t, nil
		}
		x := Loss{Decision: d.name}
		if x.SetBack, err = rate(f.plan, greedy); err != nil {
			return nil, err
		}
		if x.SetToBest, err = rate(greedy, f.plan); err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}
