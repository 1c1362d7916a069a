package rcpsp

import (
	"cmp"
	"math/bits"
	"slices"
)

// Heads gives the earliest start of each activity of a valid project where only
// precedence matters.
func (p *Project) Heads() []int64 {
	order, err := p.Order()
	if err != nil {
		panic("rcpsp: " + err.Error()) // the caller has validated it
	}
	head := make([]int64, len(p.Activities))
	for _, i := range order {
		for _, h := range p.Activities[i].After {
			head[i] = max(head[i], head[h]+p.Activities[h].Duration)
		}
	}
	return head
}

// Tails gives the least time between the end of each activity and that of a valid
// project where only precedence matters.
func (p *Project) Tails() []int64 { return p.Reversed().Heads() }

// Bound is a lower bound of a valid project's makespan: the largest sum of a head, the work
// of the activities with that head or a longer one and a tail at least as long as another,
// over capacity, and that tail. Neither the longest chain of activities nor the work of the
// busiest resource is above it. It takes time quadratic in the number of activities.
func (p *Project) Bound() int64 {
	head, tail := p.Heads(), p.Tails()
	bound := int64(0)
	for i, a := range p.Activities {
		bound = max(bound, head[i]+a.Duration+tail[i])
	}
	byTail := make([]int, 0, len(p.Activities))
	for k, r := range p.Resources {
		byTail = byTail[:0]
		for i, a := range p.Activities {
			if a.Duration > 0 && a.Demand[k] > 0 {
				byTail = append(byTail, i)
			}
		}
		slices.SortFunc(byTail, func(i, j int) int { return cmp.Or(cmp.Compare(tail[j], tail[i]), cmp.Compare(i, j)) })
		heads := make([]int64, len(byTail))
		for n, i := range byTail {
			heads[n] = head[i]
		}
		slices.Sort(heads)
		for _, least := range slices.Compact(heads) {
			var w work
			for _, i := range byTail {
				if head[i] < least {
					continue
				}
				w.add(p.Activities[i].Duration, p.Activities[i].Demand[k])
				bound = max(bound, least+w.over(r.Capacity)+tail[i])
			}
		}
	}
	return bound
}

// work is a sum of durations times demands, in 128 bits.
type work struct{ hi, lo uint64 }

func (w *work) add(duration, demand int64) {
	hi, lo := bits.Mul64(uint64(duration), uint64(demand))
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

// over divides by a capacity, rounding up. The quotient is at most the sum of the
// durations, since no demand is above the capacity.
func (w work) over(capacity int64) int64 {
	if w.hi == 0 && w.lo == 0 {
		return 0
	}
	q, rest := bits.Div64(w.hi, w.lo, uint64(capacity))
	if rest > 0 {
		q++
	}
	return int64(q)
}
