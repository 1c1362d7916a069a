package scheduler

import (
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

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
	first   string // strategies up to row instances
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
			if draftGroups[at].opt.several = len(recipes) > 1; len(recipes) > 1 {
				draftGroups[at].opt.Share()
			}
		}
		draftGroups[at].recipes = append(draftGroups[at].recipes, i)
	}
	return draftGroups
}
