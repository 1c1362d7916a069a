package allocate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// A Rule says in which order buffers are placed, and where.
type Rule string

// The rules. Ties go to the earlier birth, then to the buffer that comes first.
const (
	// firstFit takes buffers by birth and puts each into the lowest room that is large enough.
	firstFit Rule = "first-fit"
	// bestFit takes buffers by birth and puts each into the smallest room that is
	// large enough; the room above all others counts as the largest.
	bestFit Rule = "best-fit"
	// longestLifetime is first fit in order of lifetime, longest first.
	longestLifetime Rule = "longest-lifetime"
	// largestFirst is first fit in order of size, largest first.
	largestFirst Rule = "largest-first"
)

// Rules are all rules.
func Rules() []Rule { return []Rule{firstFit, bestFit, longestLifetime, largestFirst} }

// byRule is a rule's placement within a capacity, or [NoLimit]. Where the placement does
// not fit, it is in the result with status Limit.
func byRule(ctx context.Context, p *Problem, rule Rule, capacity int64) (*Result, error) {
	s, err := begin(p, &Options{})
	if err != nil {
		return nil, err
	}
	var r *Result
	switch offsets, err := placeAll(ctx, p, rule); {
	case err != nil && ctx.Err() != nil:
		r = s.answer(nil, p.Bound(), solve.Why(ctx))
	case errors.Is(err, ErrClash):
		r = s.infeasible(p.Bound())
	case err != nil:
		return nil, err
	default:
		if err := Check(p, NoLimit, offsets); err != nil {
			return nil, err
		}
		r = s.answer(offsets, p.Bound(), milp.Complete)
		if r.Bound > capacity {
			r.Status, r.Offsets, r.Peak = milp.Infeasible, nil, nil
		} else if *r.Peak > capacity {
			r.Status = milp.Limit
		}
	}
	r.Method = string(rule)
	if capacity != NoLimit {
		r.within(capacity)
	}
	return r, nil
}

// bestRule is the placement of least peak that a rule finds, the first of equals; nil if fixed offsets allow none.
func bestRule(ctx context.Context, p *Problem) ([]int64, error) {
	var best []int64
	for _, rule := range Rules() {
		offsets, err := placeAll(ctx, p, rule)
		switch {
		case err != nil && ctx.Err() != nil:
			return best, nil
		case errors.Is(err, ErrClash):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if best == nil || p.Peak(offsets) < p.Peak(best) {
			best = offsets
		}
	}
	return best, nil
}

// ErrClash is wrapped by the error of placeAll where fixed offsets
// contradict each other: then there is no placement at any capacity.
var ErrClash = errors.New("fixed offsets overlap")

// placeAll gives each buffer an offset by a rule, without regard to a capacity. Fixed offsets are kept: those buffers
// are placed first. The error is about invalid problems and rules, or [ErrClash].
func placeAll(ctx context.Context, p *Problem, rule Rule) ([]int64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !slices.Contains(Rules(), rule) {
		return nil, fmt.Errorf("allocate: found rule %q, expected one of %s", rule, list(Rules()))
	}
	order := solve.Numbers(len(p.Buffers))
	first := func(i int) int64 { // smaller is earlier
		b := &p.Buffers[i]
		switch rule {
		case longestLifetime:
			return -b.Lifetime.Len()
		case largestFirst:
			return -b.Size
		}
		return 0
	}
	fixed := func(i int) int {
		if p.Buffers[i].Offset != nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(fixed(a), fixed(b)), cmp.Compare(first(a), first(b)),
			cmp.Compare(p.Buffers[a].Lifetime.Lower, p.Buffers[b].Lifetime.Lower), cmp.Compare(a, b))
	})
	offsets := make([]int64, len(p.Buffers))
	var placed []int // by offset
	for k, i := range order {
		if k%256 == 255 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b := &p.Buffers[i]
		taken := conflicts(p, placed, offsets, i)
		if b.Offset != nil {
			offsets[i] = *b.Offset
			for _, t := range taken {
				if t.Contains(*b.Offset) {
					return nil, fmt.Errorf("allocate: buffer %q: %w: found the fixed offset %d, expected one outside %v", b.ID,
						ErrClash, *b.Offset, t)
				}
			}
		} else {
			offsets[i] = choose(b, taken, rule == bestFit)
		}
		at, _ := slices.BinarySearchFunc(placed, offsets[i], func(j int, o int64) int { return cmp.Compare(offsets[j], o) })
		placed = slices.Insert(placed, at, i)
	}
	return offsets, nil
}

// conflicts is the set of offsets at which buffer i would overlap one that is placed: intervals apart and ascending.
func conflicts(p *Problem, placed []int, offsets []int64, i int) []Interval {
	var all []Interval
	for _, j := range placed {
		if conflict(&p.Buffers[j], &p.Buffers[i]) {
			all = append(all, Interval{offsets[j] - p.Buffers[i].Size + 1, offsets[j] + p.Buffers[j].Size})
		}
	}
	return union(all)
}

// choose is the lowest offset that is not taken or, for the best fit, the lowest one of the range of free offsets that
// is shortest: the room there has that much to spare.
func choose(b *Buffer, taken []Interval, best bool) int64 {
	low, offset, spare := int64(0), int64(-1), int64(0)
	for _, t := range taken {
		if o := b.Up(low); o < t.Lower && (offset < 0 || t.Lower-low < spare) {
			offset, spare = o, t.Lower-low
			if !best {
				return offset
			}
		}
		low = max(low, t.Upper)
	}
	if offset < 0 {
		offset = b.Up(low)
	}
	return offset
}

// A spillRule says which of the buffers that live at a time leaves first.
type spillRule string

// The rules. Ties go to the buffer that comes first.
const (
	// SpillLongestLifetime is the paper's: the buffer that is in the way for the
	// longest time, which often is a small one.
	SpillLongestLifetime spillRule = "longest-lifetime"
	// SpillLargest is prior work's: the buffer that makes most room.
	SpillLargest spillRule = "largest-first"
)

// spillRules are all rules.
func spillRules() []spillRule { return []spillRule{SpillLongestLifetime, SpillLargest} }

// spillByRule marks buffers by a rule, going through time, until what stays passes the capacity at no time.
func spillByRule(p *Problem, capacity int64, rule spillRule) ([]bool, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !slices.Contains(spillRules(), rule) {
		return nil, fmt.Errorf("allocate: found spill rule %q, expected one of %s", rule, list(spillRules()))
	}
	if capacity < 0 {
		return nil, fmt.Errorf("allocate: found capacity %d, expected 0 or more", capacity)
	}
	spilled := make([]bool, len(p.Buffers))
	for i := range p.Buffers {
		b := &p.Buffers[i]
		// No choice here: it does not fit even if it is alone.
		spilled[i] = b.Size > capacity || b.Offset != nil && *b.Offset+b.Size > capacity
	}
	weight := func(l live) int64 {
		if rule == SpillLargest {
			return l.Size
		}
		return p.Buffers[l.Buffer].Lifetime.Len()
	}
	for _, s := range p.Sections() {
		stay := slices.DeleteFunc(s.Live, func(l live) bool { return spilled[l.Buffer] })
		bytes := int64(0)
		for _, l := range stay {
			bytes += l.Size
		}
		slices.SortStableFunc(stay, func(a, b live) int { return cmp.Compare(weight(b), weight(a)) })
		for k := 0; bytes > capacity; k++ {
			spilled[stay[k].Buffer] = true
			bytes -= stay[k].Size
		}
	}
	return spilled, nil
}

func list[S ~string](words []S) string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return strings.Join(all, ", ")
}
