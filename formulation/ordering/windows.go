package ordering

import (
	"cmp"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// A window is a set of instances, told apart by their classes, with a bound on what
// their moves cost from before any of them has run: section "Windows" of the essay.
type window struct {
	classes []int
	value   int64
}

// windowSizes are the numbers of instances per window that are tried; the search of a
// larger one would take about as long as that of the whole.
var windowSizes = []int{4, 8, 12, 16, 20}

// maxWindowStates ends the search of one window; the bound that it has by then is as
// valid.
const maxWindowStates = 20_000

// findWindows cuts the instances into windows of each size, and keeps those of the size
// that says most. Neighbours stand next to each other: instances by where in their
// sub-graph they are, then by level.
func (a *answer) findWindows(stop *limits, opts SearchOptions, values coneValues) []window {
	if a.objective != Traffic {
		return nil
	}
	g := a.part.graph
	// Of a counted class with several members it is not known which have run. Of twins
	// neither, but none has as long as none of their class has.
	var line []int
	for i := range g.Refs {
		if c := &a.classes[a.of[i]]; c.n() == 1 || c.shared {
			line = append(line, i)
		}
	}
	count := map[int]int{}
	for _, ref := range g.Refs {
		count[ref[0]] = max(count[ref[0]], ref[1]+1)
	}
	level := g.Levels()
	slices.SortStableFunc(line, func(i, j int) int {
		x, y := g.Refs[i], g.Refs[j]
		// The middle of the instance, as a share of its sub-graph.
		if c := cmp.Compare((2*x[1]+1)*count[y[0]], (2*y[1]+1)*count[x[0]]); c != 0 {
			return c
		}
		return level[i] - level[j]
	})
	var best []window
	most := int64(0)
	for _, size := range windowSizes {
		if size >= len(g.Refs) {
			break
		}
		var list []window
		sum := int64(0)
		for begin := 0; begin < len(line); begin += size {
			if stop.over != milp.Complete {
				return best
			}
			sub := a.part.window(line[begin:min(begin+size, len(line))])
			key := sub.key()
			v, known := values[key]
			if !known {
				v = windowValue(sub, stop, opts)
				values[key] = v
			}
			if v == 0 {
				continue
			}
			w := window{value: v}
			for _, i := range sub.ids {
				w.classes = append(w.classes, a.of[i])
			}
			list = append(list, w)
			sum += v
		}
		if sum > most {
			best, most = list, sum
		}
	}
	return best
}

// window is the problem of some instances alone: what they read of others stands in the
// workspace, and what only others read leaves when it is made.
func (p part) window(members []int) part {
	ids := slices.Sorted(slices.Values(members))
	g := p.graph
	s := &Graph{Capacity: g.Capacity, Unit: g.Unit, Reads: make([][]int, len(ids)), Readers: make([][]int, len(ids))}
	for n, i := range ids {
		work := g.Work[i]
		for _, r := range g.Reads[i] {
			m, inside := slices.BinarySearch(ids, r)
			if !inside {
				work += g.Output[r]
				continue
			}
			s.Reads[n] = append(s.Reads[n], m)
			s.Readers[m] = append(s.Readers[m], n)
		}
		s.Refs = append(s.Refs, g.Refs[i])
		s.Output = append(s.Output, g.Output[i])
		s.Work = append(s.Work, work)
		s.Store = append(s.Store, g.Store[i])
		s.Load = append(s.Load, g.Load[i])
	}
	return part{s, ids}
}

// windowValue is the optimum of a window, or what is proven of it within its limit.
func windowValue(p part, stop *limits, opts SearchOptions) int64 {
	a := &answer{part: p}
	if err := a.begin(Traffic, nil, twinned); err != nil {
		return 0 // every instance fits, so this does not happen; 0 is valid
	}
	limit := *stop
	if limit.maxStates == 0 || limit.maxStates > maxWindowStates {
		limit.maxStates = maxWindowStates
	}
	a.beam(&limit, opts, len(p.ids))
	a.prove(&limit, opts)
	stop.over = limit.over
	return a.bound
}

// windowBound adds up the values of the windows in which nothing has run.
func (a *answer) windowBound(ran []int) int64 {
	h := int64(0)
	for i := range a.windows {
		untouched := true
		for _, k := range a.windows[i].classes {
			if ran[k] > 0 {
				untouched = false
				break
			}
		}
		if untouched {
			h += a.windows[i].value
		}
	}
	return h
}
