package ordering

import (
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// A cone is a class's share of the bound: "Bound" of docs/formulations.md, "Instance ordering".
type cone struct {
	class int
	below []int // counted classes under it
	gain  int64 // over the cones of what it reads; for [Peak], its value
}

// maxConeStates ends the search of one cone; the bound that it has by then is as
// valid.
const maxConeStates = 300_000

// coneValues remembers the values of cones that are alike.
type coneValues map[string]int64

// findCones computes the cones of the answer's classes, from small to large. The
// cone of the whole part would be the problem itself.
func (a *answer) findCones(stop *limits, opts SearchOptions, values coneValues) []cone {
	value := make([]int64, len(a.classes))
	below := make([][]int, len(a.classes))
	var cones []cone
	for k := range a.classes {
		c := &a.classes[k]
		sum := int64(0)
		for _, r := range c.reads {
			if x := &a.classes[r.class]; !x.shared {
				below[k] = append(append(below[k], r.class), below[r.class]...)
				if a.objective == Peak {
					sum = max(sum, value[r.class])
				} else {
					sum += int64(r.count) * value[r.class]
				}
			}
		}
		value[k] = sum
		if len(below[k]) == 0 {
			continue
		}
		sub := a.coneOf(c.members[0])
		if len(sub.ids) == len(a.part.ids) {
			continue
		}
		key := sub.key()
		v, ok := values[key]
		if !ok {
			if stop.over != milp.Complete {
				return cones
			}
			v = coneValue(sub, a.objective, stop, opts, values)
			values[key] = v
		}
		if v > sum {
			value[k] = v
			gain := v - sum
			if a.objective == Peak {
				gain = v
			}
			cones = append(cones, cone{k, below[k], gain})
		}
	}
	return cones
}

// coneOf is the problem of making instance v alone, from what is counted: outputs
// that others read as well stand in the workspace.
func (a *answer) coneOf(v int) part {
	g := a.part.graph
	members := []int{v}
	for i := 0; i < len(members); i++ {
		for _, r := range g.Reads[members[i]] {
			if !a.classes[a.of[r]].shared {
				members = append(members, r)
			}
		}
	}
	slices.Sort(members)
	s := &Graph{Capacity: g.Capacity, Unit: g.Unit, Reads: make([][]int, len(members)),
		Readers: make([][]int, len(members))}
	for n, i := range members {
		s.Refs = append(s.Refs, g.Refs[i])
		s.Output = append(s.Output, g.Output[i])
		work := g.Work[i]
		for _, r := range g.Reads[i] {
			if a.classes[a.of[r]].shared {
				work += g.Output[r]
				continue
			}
			m, _ := slices.BinarySearch(members, r)
			s.Reads[n] = append(s.Reads[n], m)
			s.Readers[m] = append(s.Readers[m], n)
		}
		s.Work = append(s.Work, work)
		s.Store = append(s.Store, g.Store[i])
		s.Load = append(s.Load, g.Load[i])
	}
	return part{s, members}
}

// coneValue is the optimum of a cone, or what is proven of it within its limit.
func coneValue(p part, objective Objective, stop *limits, opts SearchOptions, values coneValues) int64 {
	a := &answer{part: p}
	if err := a.begin(objective, nil, twinned); err != nil {
		return 0 // every instance fits, so this does not happen; 0 is valid
	}
	limit := *stop
	if limit.maxStates == 0 || limit.maxStates > maxConeStates {
		limit.maxStates = maxConeStates
	}
	a.cones = a.findCones(stop, opts, values)
	a.beam(&limit, opts, len(p.ids))
	a.prove(&limit, opts)
	stop.over = limit.over
	return a.bound
}

// coneBound adds up the gains of cones that nothing has run in. The runs and what
// is live below a cone's class are all that can have touched one.
func (a *answer) coneBound(ran []int) int64 {
	h := int64(0)
	for i := range a.cones {
		c := &a.cones[i]
		untouched := a.classes[c.class].n() - ran[c.class]
		for _, j := range c.below {
			x := &a.classes[j]
			untouched -= ran[j] - x.per*ran[x.readers[0]]
			if untouched <= 0 {
				break
			}
		}
		if untouched > 0 {
			h += int64(untouched) * c.gain
		}
	}
	return h
}
