package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Schedule makes all decisions for one chunk.
func (r Recipe) Schedule(ctx context.Context, g *model.Graph, spec *hardware.Spec, opt Options) (*schedule.Schedule,
	error) {
	d, err := draft(ctx, g, spec, r, run{Options: opt})
	if err != nil {
		return nil, err
	}
	return d.Schedule, nil
}

// draft is Schedule with what a schedule does not keep.
func draft(ctx context.Context, g *model.Graph, spec *hardware.Spec, r Recipe, opt run) (*Draft, error) {
	if err := allRead(g); err != nil {
		return nil, err
	}
	divider := opt.Clusters.row()
	if spec.Chips != nil && !divider.Chips {
		return nil, fmt.Errorf("%s has %d chips: clusters is %q, expected %s, or one chip", spec.Name, spec.Chips.Count,
			opt.Clusters.Name(), strings.Join(divisions(func(x Divider) bool { return x.Chips }), " or "))
	}
	if spec.Mixed() && opt.Clusters != OverBatch && !divider.Kinds {
		return nil, fmt.Errorf("%s has cores of several kinds: clusters is %q, expected %s", spec.Name,
			opt.Clusters.Name(), strings.Join(divisions(func(x Divider) bool { return x.Kinds }, OverBatch.Name()), " or "))
	}
	opt.times, opt.active = cmp.Or(opt.times, opt.Times), cmp.Or(opt.active, opt.Busy)
	return decide(ctx, &schedule.Schedule{Graph: g, Spec: spec, Whole: opt.whole}, -1, r, opt)
}

// Draft is [Recipe.Schedule] with what a schedule does not keep.
func (r Recipe) Draft(ctx context.Context, g *model.Graph, spec *hardware.Spec, opt Options) (*Draft, error) {
	return draft(ctx, g, spec, r, run{Options: opt})
}

// ContinueDraft is [Recipe.Continue] with what a schedule does not keep.
func (r Recipe) ContinueDraft(ctx context.Context, from *schedule.Schedule, after string, opt Options) (*Draft, error) {
	return resume(ctx, from, after, r, run{Options: opt})
}

// Continue keeps the groups, instances, order and bindings of a schedule up to and with those of the stage after, and
// makes all else anew, as the recipe says. Groups come with their factors, which alg1 leaves as they are. Layers that
// are nil follow from the groups. The schedule that it starts from is not changed; what it lacks is an error.
func (r Recipe) Continue(ctx context.Context, from *schedule.Schedule, after string, opt Options) (*schedule.Schedule,
	error) {
	d, err := resume(ctx, from, after, r, run{Options: opt})
	if err != nil {
		return nil, err
	}
	return d.Schedule, nil
}

func resume(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt run) (*Draft, error) {
	at, err := r.position(after)
	if err != nil {
		return nil, err
	}
	opt.times, opt.active = cmp.Or(opt.times, opt.Times), cmp.Or(opt.active, opt.Busy)
	return decide(ctx, from, at, r, opt)
}

// decide runs the stages behind number last on what from has of those before, and judges each of them.
func decide(ctx context.Context, from *schedule.Schedule, last int, r Recipe, opt run) (*Draft, error) {
	if err := r.Usable(opt.Options); err != nil {
		return nil, err
	}
	if r.Evaluations > 0 {
		return nil, fmt.Errorf("variant %s makes all decisions together, expected one that goes stage by stage", r.Name)
	}
	d, err := newDraft(from, last, r, opt)
	if err != nil {
		return nil, err
	}
	d.again = resume
	d.rest, _ = r.greedy()
	for _, st := range r.table() {
		if r.choice(st).Exact {
			d.exact++
		}
	}
	if d.exact > 0 {
		d.later = r.replaced(func(s Strategy) bool { return s.Trials })
		d.key = keyOfDraft(d.Schedule, d.rest, opt.Options)
	}
	kept := ""                           // the last stage whose decision can be kept
	whole := func() error { return nil } // judges what a whole draft is asked for
	for i, st := range r.table() {
		s := r.choice(st)
		judged := st.judged && s.Exact && opt.given.decided(st) == nil
		made := i > last || st.keep == nil
		if made {
			d.method = s.Name
			decide := s.Decide
			if x := opt.given.decided(st); x != nil {
				decide = x.Apply
			}
			if st.hopeless != nil && st.hopeless(d, s) {
				return nil, errSlower
			}
			decided := opt.deciding(st.Name, s.Name)
			err := decide(ctx, d)
			decided()
			if err == nil && judged && st.keep != nil {
				err = d.judgeBehind(ctx, r.table()[:i+1], s)
			}
			if err != nil {
				return nil, r.blame(st, err)
			}
		}
		if st.check != nil && !opt.unchecked {
			if err := st.check(d); err != nil {
				if !made {
					return nil, fmt.Errorf("%s of the schedule to continue: %w", st.Name, err)
				}
				if _, own := r.own[st.Name]; !own {
					err = fmt.Errorf("internal error, %s %s breaks a rule: %w", st.Name, s.Name, err)
				}
				return nil, r.blame(st, err)
			}
		}
		if st.limit != nil {
			if err := st.limit(d); err != nil {
				return nil, err
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err // the decision would depend on when it was
		}
		if st.keep != nil {
			kept = st.Name
		} else if judged {
			before := kept
			whole = func() error { return d.judge(ctx, st, st.Name, before) }
		}
	}
	return d, whole()
}

// judgeBehind judges what a strategy has decided exactly at the last of some stages, alone or together with the stages
// before it that it sets. One that sets a later stage is judged there.
func (d *Draft) judgeBehind(ctx context.Context, stages []Stage, s Strategy) error {
	first := len(stages) - 1
	st := stages[first]
	for _, p := range s.Sets {
		at := slices.IndexFunc(stages, func(x Stage) bool { return x.Name == p.Stage })
		if at < 0 {
			return nil
		}
		first = min(first, at)
	}
	if together := stages[first:]; len(together) > 1 {
		st.keep = func(to, from *schedule.Schedule) {
			for _, x := range together {
				if x.judged {
					x.keep(to, from)
				}
			}
		}
	}
	return d.judge(ctx, st, stages[first].Name, stages[first-1].Name)
}

// decided returns the decision of a stage, nil without one.
func (p *Decisions) decided(st Stage) Decision {
	if p == nil {
		return nil
	}
	if x := p.value(st.Name); x != nil {
		return x
	}
	if p.value(st.heldBy) != nil {
		return held{}
	}
	return nil
}

// held is the decision of a stage that an earlier one has made.
type held struct{}

func (held) Stage() string                       { return "" }
func (held) Apply(context.Context, *Draft) error { return nil }
func (held) Key(*Key, *Decisions)                {}

// allRead reports an operator whose results nobody reads.
func allRead(g *model.Graph) error {
	for _, op := range g.Ops {
		if !slices.ContainsFunc(op.Outputs, func(o model.TensorID) bool {
			return len(g.Tensor(o).Consumers) > 0 || g.IsOutput(o)
		}) {
			return fmt.Errorf("operator %q has no reader; simplify the graph before it is scheduled", op.Name)
		}
	}
	return nil
}

// blame says whose decision failed, where it is a caller's own.
func (r Recipe) blame(st Stage, err error) error {
	if s, own := r.own[st.Name]; own {
		return fmt.Errorf("%s by %s: %w", st.Name, s.Name, err)
	}
	return err
}
