package scheduler

import (
	"context"
	"maps"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// shared holds the common work of several recipes for a network: drafts up to the same stage,
// and the problem of bindings that they pose. nil: nothing.
type shared struct {
	drafts map[draftKey]*Draft
	last   struct {
		instances *schedule.InstanceGraph
		order     []int
		network   *binding.Network
	}
}

// draftKey is equal for drafts whose stages up to one are made in the same way.
type draftKey struct {
	graph   *model.Graph
	machine string // fingerprint
	uneven  schedule.Uneven
	inPlace bool
	stages  string // strategies
}

func keyOfDraft(s *schedule.Schedule, stage int, r Recipe, opt Options) draftKey {
	key := draftKey{graph: s.Graph, machine: schedulefile.Fingerprint(s.Spec), uneven: opt.Uneven.Alternatives()[0],
		inPlace: opt.InPlace, stages: r.until(stage)}
	if slices.ContainsFunc(r.table()[:stage+1], func(st Stage) bool { return r.choice(st).Exact }) {
		key.stages = r.until(len(r.table()) - 1) // measured prices are by all decisions
	}
	return key
}

// first names the strategies up to the first of sharedStages.
func (r Recipe) first() string {
	return r.until(slices.IndexFunc(r.table(), func(st Stage) bool { return st.Name == sharedStages[0] }))
}

// Until names the strategies up to a stage.
func (r Recipe) until(stage int) (names string) {
	for _, st := range r.table()[:stage+1] {
		names += r.choice(st).Name + " "
	}
	return names
}

// A lane is recipes that can share drafts: by their numbers, one after the other. Lanes have
// nothing in common.
type lane struct {
	first   string // strategies up to the first of sharedStages
	recipes []int
	opt     run
	left    map[string]int64 // sixteenths of the LLB that values leave in schedules, by what decides but the reserve
}

// lanesOf divides recipes into lanes.
func lanesOf(recipes []Recipe, opt run) (lanes []lane) {
	for i, r := range recipes {
		first := r.first()
		at := slices.IndexFunc(lanes, func(l lane) bool { return l.first == first })
		if at < 0 {
			at, lanes = len(lanes), append(lanes, lane{first: first, opt: opt, left: map[string]int64{}})
			if len(recipes) > 1 {
				lanes[at].opt.shared = &shared{drafts: map[draftKey]*Draft{}}
				lanes[at].opt.Share()
			}
		}
		lanes[at].recipes = append(lanes[at].recipes, i)
	}
	return lanes
}

// Drafts are cached after sharedStages: recipes differ in the stages behind them.
var sharedStages = []string{"instances", "order"}

// begun is the draft from which a recipe goes on, and its last stage: from itself, unless
// more is known.
func (m *shared) begun(from *schedule.Schedule, last int, r Recipe, opt Options) (*Draft, int) {
	if m != nil && last < 0 && len(r.own) == 0 && r.stages == nil {
		for i, st := range slices.Backward(Stages()) {
			if slices.Contains(sharedStages, st.Name) {
				if d := m.drafts[keyOfDraft(from, i, r, opt)]; d != nil {
					return d, i
				}
			}
		}
	}
	return &Draft{Schedule: from}, last
}

// keep caches a draft after a stage, for recipes that share its first decisions.
func (m *shared) keep(d *Draft, stage int) {
	if m == nil || len(d.Recipe.own) > 0 || d.Recipe.stages != nil ||
		!slices.Contains(sharedStages, Stages()[stage].Name) || d.Recipe.choice(Stages()[stage]).Exact {
		return
	}
	kept, err := newDraft(d.Schedule, stage, d.Recipe, run{d.Options, d.state})
	if err != nil {
		return
	}
	kept.answers = maps.Clone(d.answers)
	m.drafts[keyOfDraft(d.Schedule, stage, d.Recipe, d.Options)] = kept
}

// bindings is the problem of a draft that Algorithm 4 has bound.
func (m *shared) bindings(ctx context.Context, d *Draft) (*binding.Network, error) {
	if m != nil && m.last.network != nil && m.last.instances == d.Instances && slices.Equal(m.last.order, d.Order) {
		return m.last.network, nil
	}
	n, err := binding.FromSchedule(ctx, d.Schedule, d.Cost)
	if m != nil && err == nil {
		m.last.instances, m.last.order, m.last.network = d.Instances, slices.Clone(d.Order), n
	}
	return n, err
}
