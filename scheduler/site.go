package scheduler

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Site is the simulated schedule that a move starts from.
type Site struct {
	*Decisions
	Context  context.Context // ends the search
	Schedule *schedule.Schedule
	Took     []int64 // picoseconds of each group's kernels
	Rand     *rand.Rand
	Cost     *cost.Model
	Same     func(k int) []int // the groups that do the same as group k, itself among them
	Kind     func(k int) any   // equal for groups that do the same
	Known    map[any]any       // what moves remember
	Err      error             // a caller's move has panicked
	roles    []int             // of operators, once they are asked for
}

// Moves lists the moves of all rows, and of each setting the changes to all its values.
func (p *Decisions) Moves() (moves []Move, settings [][]func(*Decisions) *Decisions) {
	for i, st := range p.Stages {
		if st.unlessNil && p.Values[i] == nil {
			continue
		}
		moves, settings = append(moves, st.moves...), append(settings, st.settings...)
	}
	return moves, settings
}

// Place draws one of the first n groups, half of the time uniformly, else in proportion to the time of their kernels.
func (a *Site) Place(n int) int {
	x := 0.0
	for _, ps := range a.Took[:n] {
		x += float64(ps)
	}
	if x *= a.Rand.Float64(); a.Rand.IntN(2) > 0 {
		for k, ps := range a.Took[:n] {
			if x -= float64(ps); x < 0 {
				return k
			}
		}
	}
	return a.Rand.IntN(n)
}

// Alike draws whether to change group k alone or all equal groups.
func (a *Site) Alike(k int) []int {
	if a.Rand.IntN(3) > 0 {
		return a.Same(k)
	}
	return []int{k}
}

// places lists operator n of a group: alone, or with its counterparts. These stand in its place in groups that do the
// same, or have its role in the same group or in others that are cut into as many instances. A kernel may run many
// blocks that repeat.
func (a *Site) places(k, n int) []model.OpID {
	groups := a.Groups()
	id := groups[k].Ops[n]
	if a.Rand.IntN(3) == 0 {
		return []model.OpID{id}
	}
	same := map[model.OpID]bool{}
	for _, i := range a.Same(k) {
		same[groups[i].Ops[n]] = true
	}
	if a.roles == nil {
		a.roles = schedule.Roles(a.Schedule.Graph)
	}
	for i := range groups {
		for _, other := range groups[i].Ops {
			if a.roles[other] == a.roles[id] && groups[i].Split.Factor == groups[k].Split.Factor {
				same[other] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(same))
}
