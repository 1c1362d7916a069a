package scheduler

import (
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// shared holds the problem of bindings that recipes pose for the same instances in the same order. nil: nothing.
type shared struct {
	instances *schedule.InstanceGraph
	order     []int
	problem   any
}

// draftKey is equal for drafts whose stages are made in the same way.
type draftKey struct {
	graph   *model.Graph
	machine string // fingerprint
	uneven  schedule.Uneven
	inPlace bool
	stages  string // strategies
}

func keyOfDraft(s *schedule.Schedule, r Recipe, opt Options) draftKey {
	return draftKey{graph: s.Graph, machine: schedulefile.Fingerprint(s.Spec), uneven: opt.Uneven.Alternatives()[0],
		inPlace: opt.InPlace, stages: r.until(len(r.table()) - 1)}
}

// first names the strategies up to instances.
func (r Recipe) first() string {
	return r.until(slices.IndexFunc(r.table(), func(st Stage) bool { return st.Name == "instances" }))
}

// until names the strategies up to a stage.
func (r Recipe) until(stage int) (names string) {
	for _, st := range r.table()[:stage+1] {
		names += r.choice(st).Name + " "
	}
	return names
}

// A draftGroup is recipes with the same instances: by their numbers, one after the other.
type draftGroup struct {
	first   string // strategies up to the first of sharedStages
	recipes []int
	opt     run
	left    map[string]int64 // sixteenths of the LLB that values leave in schedules, by what decides but the reserve
}

// draftGroupsOf divides recipes into draft groups.
func draftGroupsOf(recipes []Recipe, opt run) (draftGroups []draftGroup) {
	for i, r := range recipes {
		first := r.first()
		at := slices.IndexFunc(draftGroups, func(l draftGroup) bool { return l.first == first })
		if at < 0 {
			at, draftGroups = len(draftGroups), append(draftGroups, draftGroup{first: first, opt: opt,
				left: map[string]int64{}})
			if len(recipes) > 1 {
				draftGroups[at].opt.shared = &shared{}
				draftGroups[at].opt.Share()
			}
		}
		draftGroups[at].recipes = append(draftGroups[at].recipes, i)
	}
	return draftGroups
}

// Posed is the problem that a bound draft poses, which recipes with the same instances and order share.
func (d *Draft) Posed(pose func() (any, error)) (any, error) {
	m := d.state.shared
	if m != nil && m.problem != nil && m.instances == d.Instances && slices.Equal(m.order, d.Order) {
		return m.problem, nil
	}
	p, err := pose()
	if m != nil && err == nil {
		m.instances, m.order, m.problem = d.Instances, slices.Clone(d.Order), p
	}
	return p, err
}
