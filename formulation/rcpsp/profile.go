package rcpsp

import (
	"slices"
)

// profile is the free capacity of each resource over time: from at[n] until at[n+1] there
// is free[n]. The last stretch never ends.
type profile struct {
	at   []int64
	free [][]int64
}

func newProfile(p *Project) *profile {
	free := make([]int64, len(p.Resources))
	for k, r := range p.Resources {
		free[k] = r.Capacity
	}
	return &profile{[]int64{0}, [][]int64{free}}
}

// place finds the earliest start of activity i from a time on, given those of its
// predecessors, and takes its resources.
func (f *profile) place(p *Project, i int, start []int64, from int64) int64 {
	a := &p.Activities[i]
	for _, h := range a.After {
		from = max(from, start[h]+p.Activities[h].Duration)
	}
	if a.Duration == 0 {
		return from
	}
	n := f.stretch(from)
	for m := n; m < len(f.at) && f.at[m] < from+a.Duration; m++ {
		if !fits(a.Demand, f.free[m]) { // the last stretch is all free
			n = m + 1
			from = f.at[n]
		}
	}
	first := f.cut(from)
	last := f.cut(from + a.Duration)
	for m := first; m < last; m++ {
		for k, d := range a.Demand {
			f.free[m][k] -= d
		}
	}
	return from
}

// stretch is the index of the stretch that holds t.
func (f *profile) stretch(t int64) int {
	n, found := slices.BinarySearch(f.at, t)
	if !found {
		n--
	}
	return n
}

// cut makes a stretch begin at t and returns its index.
func (f *profile) cut(t int64) int {
	n := f.stretch(t)
	if f.at[n] == t {
		return n
	}
	f.at = slices.Insert(f.at, n+1, t)
	f.free = slices.Insert(f.free, n+1, slices.Clone(f.free[n]))
	return n + 1
}
