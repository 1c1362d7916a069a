package allocate

import (
	"cmp"
	"fmt"
	"slices"
)

// Check reports whether offsets are a placement that is right for the capacity. It
// goes by the definition, time by time, and shares no code with what solvers use.
func Check(p *Problem, capacity int64, offsets []int64) error {
	if len(offsets) != len(p.Buffers) {
		return fmt.Errorf("allocate: found %d offsets, expected one for each of %d buffers", len(offsets), len(p.Buffers))
	}
	var times []int64
	born := make([]int, len(p.Buffers))
	for i := range p.Buffers {
		born[i] = i
		b, o := &p.Buffers[i], offsets[i]
		switch {
		case o < 0:
			return fmt.Errorf("allocate: buffer %q: found offset %d, expected 0 or more", b.ID, o)
		case b.Alignment > 1 && o%b.Alignment != 0:
			return fmt.Errorf("allocate: buffer %q: found offset %d, expected a multiple of the alignment %d",
				b.ID, o, b.Alignment)
		case b.Offset != nil && o != *b.Offset:
			return fmt.Errorf("allocate: buffer %q: found offset %d, expected the fixed one %d", b.ID, o, *b.Offset)
		case o > capacity-b.Size:
			return fmt.Errorf("allocate: buffer %q: found its end at %d + %d, expected it within the capacity %d", b.ID,
				o, b.Size, capacity)
		}
		times = append(times, b.Lifetime.Lower)
	}
	slices.Sort(times)
	slices.SortFunc(born, func(i, j int) int {
		return cmp.Compare(p.Buffers[i].Lifetime.Lower, p.Buffers[j].Lifetime.Lower)
	})
	// What is in use changes at these times only, so an overlap at any time is one at the last of them before.
	type span struct {
		Interval
		buffer int
	}
	var used []span
	var live []int
	for _, t := range slices.Compact(times) {
		for ; len(born) > 0 && p.Buffers[born[0]].Lifetime.Lower <= t; born = born[1:] {
			live = append(live, born[0])
		}
		live = slices.DeleteFunc(live, func(i int) bool { return p.Buffers[i].Lifetime.Upper <= t })
		used = used[:0]
		for _, i := range live {
			if size := p.Buffers[i].Size; size > 0 {
				used = append(used, span{Interval{offsets[i], offsets[i] + size}, i})
			}
		}
		slices.SortFunc(used, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.Lower, b.Lower), cmp.Compare(a.buffer, b.buffer))
		})
		for k := 1; k < len(used); k++ {
			if a, b := used[k-1], used[k]; b.Lower < a.Upper {
				return fmt.Errorf("allocate: at time %d buffer %q uses %v and buffer %q uses %v, expected no overlap",
					t, p.Buffers[a.buffer].ID, a.Interval, p.Buffers[b.buffer].ID, b.Interval)
			}
		}
	}
	return nil
}

// checkSpill reports whether each buffer that stays fits by itself and all together
// pass the capacity at no time. spilled is one bool for each buffer.
func checkSpill(p *Problem, capacity int64, spilled []bool) error {
	if len(spilled) != len(p.Buffers) {
		return fmt.Errorf("allocate: found %d spill marks, expected one for each of %d buffers", len(spilled), len(p.Buffers))
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		end := b.Size
		if b.Offset != nil {
			end += *b.Offset
		}
		if !spilled[i] && end > capacity {
			return fmt.Errorf("allocate: buffer %q stays and ends at %d or above, expected at most the capacity %d",
				b.ID, end, capacity)
		}
	}
	sum := int64(0)
	changes := p.changes(spilled)
	for i, c := range changes {
		if sum += c.bytes; sum > capacity && (i+1 == len(changes) || changes[i+1].time > c.time) {
			return fmt.Errorf("allocate: at time %d %d bytes stay, expected at most the capacity %d", c.time, sum, capacity)
		}
	}
	return nil
}

// A usageChange is by how much more is in use from a time on.
type usageChange struct{ time, bytes int64 }

// changes of what is in use of the buffers that stay, in order of time.
func (p *Problem) changes(spilled []bool) (list []usageChange) {
	for i := range p.Buffers {
		if !spilled[i] {
			b := &p.Buffers[i]
			list = append(list, usageChange{b.Lifetime.Lower, b.Size}, usageChange{b.Lifetime.Upper, -b.Size})
		}
	}
	slices.SortFunc(list, func(a, b usageChange) int { return cmp.Compare(a.time, b.time) })
	return list
}

// SpillCost is the number of bytes that move if the marked buffers are spilled.
func SpillCost(p *Problem, spilled []bool) int64 {
	cost := int64(0)
	for i, out := range spilled {
		if out {
			cost += p.Buffers[i].Moved()
		}
	}
	return cost
}

// Kept is the problem of the buffers that stay, with their offsets.
func (r *SpillResult) Kept(p *Problem) (*Problem, []int64) {
	kept, place := keep(p, r.Spilled)
	if r.Offsets == nil {
		return kept, nil
	}
	offsets := make([]int64, len(place))
	for k, i := range place {
		offsets[k] = r.Offsets[i]
	}
	return kept, offsets
}

// An overfull time is one at which what is in use is more than the capacity.
type overfull struct {
	Lower        int64    `json:"lower"` // in use from here
	Upper        int64    `json:"upper"` // to before here
	Buffers      []string `json:"buffers"`
	MissingBytes int64    `json:"missing_bytes"`
}

// Overfull is the time at which the capacity misses most bytes, nil if it misses none.
func (p *Problem) Overfull(capacity int64) *overfull {
	s, ok := p.Fullest()
	if !ok || s.Bytes() <= capacity {
		return nil
	}
	o := &overfull{Lower: s.Time.Lower, Upper: s.Time.Upper, MissingBytes: s.Bytes() - capacity}
	for _, l := range s.Live {
		o.Buffers = append(o.Buffers, p.Buffers[l.Buffer].ID)
	}
	return o
}

// keep is the problem of the buffers that are not spilled, and the place of each in p.
func keep(p *Problem, spilled []bool) (*Problem, []int) {
	kept := &Problem{Name: p.Name}
	var place []int
	for i := range p.Buffers {
		if !spilled[i] {
			kept.Buffers = append(kept.Buffers, p.Buffers[i])
			place = append(place, i)
		}
	}
	return kept, place
}
