package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/schedule"
)

// Redecide returns the decisions with some rows decided anew by strategies of the table, given the other rows. Values
// of later rows are kept as far as they are valid.
func (w *Problem) Redecide(ctx context.Context, p *Decisions, picks ...Pick) (*Decisions, error) {
	for _, pick := range picks {
		st, err := LookupStage(pick.Stage)
		if err != nil {
			return nil, err
		}
		s, err := st.Lookup(pick.Strategy)
		if err != nil {
			return nil, err
		}
		now := p.value(cmp.Or(st.heldBy, st.Name))
		switch now := now.(type) {
		case generating:
			d := &Draft{Lower: lower.Options{Generator: schedule.Generator(now)}}
			if err := s.Decide(ctx, d); err != nil {
				return nil, err
			}
			p = p.unless(generating(d.Lower.Generator))
		case Groups:
			made, err := w.regroup(ctx, p, now, s)
			if err != nil {
				return nil, err
			}
			p = p.unless(made)
		default:
			p = p.replace(st.Name, nil)
			p.Recipe.Picks, p.Recipe.Fallback = slices.Clone(p.Recipe.Picks), nil
			p.Recipe.set(pick)
			p.Recipe.Name += "+" + pick.String()
		}
	}
	return p, p.Recipe.Usable(w.opt.Options)
}

// regroup lets a strategy of row group or split decide on groups.
func (w *Problem) regroup(ctx context.Context, p *Decisions, list Groups, by Strategy) (Groups, error) {
	g, err := w.GraphOf(p)
	if err != nil {
		return nil, err
	}
	opt := w.opt
	opt.InPlace, opt.Uneven = p.InPlace, p.Uneven
	d, err := newDraft(&schedule.Schedule{Graph: g, Spec: w.Spec}, -1, p.Recipe, opt)
	if err != nil {
		return nil, err
	}
	d.again = resume
	d.rest, _ = p.Recipe.greedy()
	list = slices.Clone(list)
	if by.Completes { // it leaves the splits that there are
		for i := range list {
			list[i].Split = schedule.SplitInfo{}
		}
	}
	d.Grouping = list.grouping(g)
	if err := by.Decide(ctx, d); err != nil {
		return nil, err
	}
	if len(d.Graph.Ops) != len(g.Ops) {
		return nil, fmt.Errorf("%s schedules another graph", by.Name)
	}
	made, _ := takeGroups(d, true).(Groups)
	for i := range made {
		if made[i].Split == (schedule.SplitInfo{}) {
			made[i].Split = schedule.SplitInfo{Ops: len(made[i].Ops), Factor: 1, Dim: -1}
		}
	}
	return made, nil
}

// Take returns the decisions with another's values, or its recipe's strategies, for some rows.
func (w *Problem) Take(ctx context.Context, p, from *Decisions, stages ...string) (*Decisions, error) {
	for _, stage := range stages {
		switch from.value(stage).(type) {
		case Groups: // the layers go with them
			if !p.Groups().same(from.Groups()) {
				p = p.Taking(stage, from).Taking("layers", from)
			}
			continue
		case nil:
		default:
			p = p.Taking(stage, from)
			continue
		}
		var err error
		if p, err = w.Redecide(ctx, p, Pick{stage, from.Recipe.Pick(stage)}); err != nil {
			return nil, err
		}
	}
	return p, nil
}
