package allocate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/formulation/milp"
)

// An Interval is half-open: [Lower, Upper).
type Interval struct{ Lower, Upper int64 }

// Len is the length, 0 at the least.
func (v Interval) Len() int64 { return max(0, v.Upper-v.Lower) }

// Contains reports whether x is in v.
func (v Interval) Contains(x int64) bool { return v.Lower <= x && x < v.Upper }

func (v Interval) String() string { return fmt.Sprintf("[%d, %d)", v.Lower, v.Upper) }

// A Buffer needs memory for a time.
type Buffer struct {
	ID       string
	Lifetime Interval
	Size     int64 // bytes
	// Alignment divides the offset. 0 stands for 1.
	Alignment int64
	// Offset is where the buffer must lie. nil: anywhere.
	Offset *int64
	// Hint is an offset that a solver may try first. It binds nobody.
	Hint *int64
	// SpillCost is the number of bytes that move if the buffer is not in the memory. nil:
	// each byte is written once and read once.
	SpillCost *int64
}

// Align is the alignment, 1 if none is set.
func (b *Buffer) Align() int64 { return max(1, b.Alignment) }

// Up is the lowest offset from x on that the buffer's alignment allows.
func (b *Buffer) Up(x int64) int64 {
	a := b.Align()
	if r := x % a; r > 0 {
		x += a - r
	}
	return x
}

// Moved is the number of bytes that move if the buffer is spilled.
func (b *Buffer) Moved() int64 {
	if b.SpillCost != nil {
		return *b.SpillCost
	}
	return 2 * b.Size
}

// used reports whether the buffer is ever in use. One of no size is not.
func (b *Buffer) used() bool { return b.Size > 0 }

// conflict reports whether both buffers are in use at some time.
func conflict(a, b *Buffer) bool {
	return a.used() && b.used() && a.Lifetime.Lower < b.Lifetime.Upper && b.Lifetime.Lower < a.Lifetime.Upper
}

// union is the set of all numbers in the intervals, as intervals apart and
// ascending. It uses the memory of its argument.
func union(all []Interval) []Interval {
	slices.SortFunc(all, func(x, y Interval) int {
		return cmp.Or(cmp.Compare(x.Lower, y.Lower), cmp.Compare(x.Upper, y.Upper))
	})
	merged := all[:0]
	for _, v := range all {
		if n := len(merged); n > 0 && v.Lower <= merged[n-1].Upper {
			merged[n-1].Upper = max(merged[n-1].Upper, v.Upper)
		} else {
			merged = append(merged, v)
		}
	}
	return merged
}

// A Problem is a set of buffers for one memory.
type Problem struct {
	Name    string
	Buffers []Buffer
}

// The largest numbers of a problem: sums stay exact, in floating point too.
const (
	maxTime  = int64(1) << 62
	maxBytes = int64(1) << 48
	maxTotal = int64(1) << 52
)

// A fault is one wrong field of a buffer.
type fault struct{ column, found, expected string }

// fault returns the first thing that is wrong with the buffer by itself.
func (b *Buffer) fault() *fault {
	bad := func(column string, found any, format string, args ...any) *fault {
		return &fault{column, fmt.Sprint(found), fmt.Sprintf(format, args...)}
	}
	bytes := func(v int64) bool { return v >= 0 && v <= maxBytes }
	switch {
	case b.ID == "":
		return bad(colID, `""`, "a name")
	case b.Lifetime.Lower < 0 || b.Lifetime.Lower > maxTime:
		return bad(colLower, b.Lifetime.Lower, "a time from 0 to %d", maxTime)
	case b.Lifetime.Upper <= b.Lifetime.Lower || b.Lifetime.Upper > maxTime:
		return bad(colUpper, b.Lifetime.Upper, "an end of the lifetime after its start %d and at most %d",
			b.Lifetime.Lower, maxTime)
	case !bytes(b.Size):
		return bad(colSize, b.Size, "bytes from 0 to %d", maxBytes)
	case !bytes(b.Alignment):
		return bad(colAlignment, b.Alignment, "bytes from 1 to %d", maxBytes)
	case b.Hint != nil && !bytes(*b.Hint):
		return bad(colHint, *b.Hint, "bytes from 0 to %d", maxBytes)
	case b.SpillCost != nil && !bytes(*b.SpillCost):
		return bad(colSpill, *b.SpillCost, "bytes from 0 to %d", maxBytes)
	case b.Offset != nil && !bytes(*b.Offset):
		return bad(colOffset, *b.Offset, "bytes from 0 to %d", maxBytes)
	case b.Offset != nil && *b.Offset%b.Align() != 0:
		return bad(colOffset, *b.Offset, "a multiple of the alignment %d", b.Align())
	}
	return nil
}

// Validate reports the first thing that is wrong with the problem.
func (p *Problem) Validate() error {
	seen := make(map[string]int, len(p.Buffers))
	total := int64(0)
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if f := b.fault(); f != nil {
			return fmt.Errorf("allocate: buffer #%d %q: %s: found %s, expected %s", i, b.ID, f.column, f.found, f.expected)
		}
		if j, dup := seen[b.ID]; dup {
			return fmt.Errorf("allocate: buffer #%d: id: found %q, expected a name that buffer #%d does not have", i, b.ID, j)
		}
		seen[b.ID] = i
		if total = addUp(total, b); total > maxTotal {
			return fmt.Errorf("allocate: buffer #%d %q: size: found %d bytes in all with those before, expected at most %d", i,
				b.ID, total, maxTotal)
		}
	}
	return nil
}

// addUp adds the most that a buffer can push others up by.
func addUp(total int64, b *Buffer) int64 {
	total += b.Size + b.Align() + b.Moved()
	if b.Offset != nil {
		total += *b.Offset
	}
	return total
}

// Reach is a capacity that suffices if any does: there every buffer that may lie anywhere has room above all others.
func (p *Problem) Reach() int64 {
	reach := int64(0)
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Offset != nil {
			reach = max(reach, *b.Offset+b.Size)
		}
	}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Offset == nil {
			reach += b.Size + b.Align() - 1
		}
	}
	return reach
}

// A live is a buffer that is in use during a section, and its bytes.
type live struct {
	Buffer int
	Size   int64
}

// A section is a stretch of time in which the same buffers are in use.
type section struct {
	Time Interval
	Live []live // in order of buffers
}

// Bytes is the sum of what is in use.
func (s *section) Bytes() int64 {
	sum := int64(0)
	for _, l := range s.Live {
		sum += l.Size
	}
	return sum
}

// Sections cuts the time wherever a lifetime begins or ends. Stretches without any use are left out.
func (p *Problem) Sections() []section {
	var times []int64
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.used() {
			times = append(times, b.Lifetime.Lower, b.Lifetime.Upper)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	if len(times) == 0 {
		return nil
	}
	sections := make([]section, len(times)-1)
	for k := range sections {
		sections[k].Time = Interval{times[k], times[k+1]}
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if !b.used() {
			continue
		}
		first, _ := slices.BinarySearch(times, b.Lifetime.Lower)
		for k := first; times[k] < b.Lifetime.Upper; k++ {
			sections[k].Live = append(sections[k].Live, live{i, b.Size})
		}
	}
	return slices.DeleteFunc(sections, func(s section) bool { return len(s.Live) == 0 })
}

// Bound is a peak that no placement is below: the largest sum of what is in use
// at a time, with what alignment wastes at the least, or a single buffer.
func (p *Problem) Bound() int64 {
	bound := int64(0)
	for i := range p.Buffers {
		b := &p.Buffers[i]
		alone := b.Size
		if b.Offset != nil {
			alone += *b.Offset
		}
		bound = max(bound, alone)
	}
	for _, s := range p.Sections() {
		bound = max(bound, s.Bytes(), p.alignedBytes(&s))
	}
	return bound
}

// Fullest is the section in which most is in use, the earliest of equals; false if nothing ever is.
func (p *Problem) Fullest() (section, bool) {
	var fullest section
	for _, s := range p.Sections() {
		if len(fullest.Live) == 0 || s.Bytes() > fullest.Bytes() {
			fullest = s
		}
	}
	return fullest, len(fullest.Live) > 0
}

// alignedBytes is the least height of the buffers of a section. If g divides all alignments, each of them but the
// highest is followed by another one at a multiple of g.
func (p *Problem) alignedBytes(s *section) int64 {
	g := int64(0)
	for _, l := range s.Live {
		g = milp.GCD(g, p.Buffers[l.Buffer].Align())
	}
	sum, top := int64(0), int64(0)
	for _, l := range s.Live {
		up := (l.Size + g - 1) / g * g
		sum += up
		top = max(top, up-l.Size)
	}
	return sum - top
}

// Step is a number that divides all offsets and the peak of some best placement: there each buffer lies at 0, at its
// fixed offset, or as low as those below and its alignment allow.
func (p *Problem) Step() int64 {
	g := int64(0)
	for i := range p.Buffers {
		b := &p.Buffers[i]
		g = milp.GCD(g, b.Size)
		if b.Align() > 1 {
			g = milp.GCD(g, b.Align())
		}
		if b.Offset != nil {
			g = milp.GCD(g, *b.Offset)
		}
	}
	return max(1, g)
}

// Peak is the largest end of a buffer at the given offsets.
func (p *Problem) Peak(offsets []int64) int64 {
	peak := int64(0)
	for i := range p.Buffers {
		peak = max(peak, offsets[i]+p.Buffers[i].Size)
	}
	return peak
}

func quote(s string) string {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return strconv.Quote(s)
}

// NoLimit is a capacity that nothing passes.
const NoLimit = int64(math.MaxInt64)
