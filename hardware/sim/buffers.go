package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/dsasched/dsasched/hardware/isa"
)

// BufferUse is a buffer with the time during which it was in use.
type BufferUse struct {
	Index          int // in Program.Buffers
	Label          string
	Address, Bytes int64
	FromPs, ToPs   int64
}

func (b BufferUse) String() string {
	return fmt.Sprintf("buffer %d (%s) at [%d, %d) from %d to %d ps", b.Index, b.Label, b.Address,
		b.Address+b.Bytes, b.FromPs, b.ToPs)
}

// OverlapError reports that two buffers were in use at the same time and place.
type OverlapError struct {
	Program string
	Level   isa.Level
	Cluster int
	A, B    BufferUse // B began when A was in use
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("program %q: %v of cluster %d: %v overlaps %v", e.Program, e.Level.String(), e.Cluster, e.B, e.A)
}

// CapacityError reports that a buffer passes the end of its memory.
type CapacityError struct {
	Program  string
	Level    isa.Level
	Cluster  int
	Capacity int64
	Buffer   BufferUse
	Excess   int64 // bytes too many
}

func (e *CapacityError) Error() string {
	return fmt.Sprintf("program %q: %v of cluster %d: %v passes the capacity of %d by %d bytes", e.Program,
		e.Level.String(), e.Cluster, e.Buffer, e.Capacity, e.Excess)
}

// CheckBuffers is the referee of memory plans: no two buffers of the same level and cluster that share an address were
// in use at the same time, and none passes the capacity of its level. Times and addresses are half-open: a buffer may
// begin when another ends. Buffers of no bytes or of no time share nothing.
//
// It is the referee of reads, too: no command began before another had written what it reads, as far as the program's
// tasks say that.
//
// It returns the *CapacityError of the lowest index, else the *OverlapError that came about first, else the error of
// the first command that reads too early, else nil. The result must be that of p.
//
// The sweep goes through the beginnings and ends of buffers in order of time and keeps the set of buffers in use, in
// order of address. As long as no two of them overlap, a new one overlaps any if it overlaps a neighbour. All addresses
// are known beforehand, so the set of a memory is one of ranks, for which a bit set with summaries finds neighbours in
// a few steps: the whole is O(n log n).
func CheckBuffers(p *isa.Program, r *Result) error {
	if len(r.Start) != len(p.Commands) || len(r.End) != len(p.Commands) {
		panic("sim: the result is of another program")
	}
	if err := newUsage(p, r.Start, r.End, nil).check(); err != nil {
		return err
	}
	return checkReads(p, r.Start, r.End)
}

func (u *usage[T]) check() error {
	p := u.p
	use := func(i int32) BufferUse {
		b := &p.Buffers[i]
		from, to := u.time(i)
		if u.times != nil {
			return BufferUse{int(i), p.Labels[b.Label], b.Address, b.Bytes, u.times[from], u.times[to]}
		}
		return BufferUse{int(i), p.Labels[b.Label], b.Address, b.Bytes, int64(from), int64(to)}
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		capacity := cmp.Or(p.Capacity[b.Level], math.MaxInt64)
		if b.Bytes > capacity || b.Address > capacity-b.Bytes {
			// Unsigned, since the end may be beyond any capacity.
			excess := uint64(b.Address) + uint64(b.Bytes) - uint64(capacity)
			return &CapacityError{p.Name, b.Level, int(b.Cluster), capacity, use(int32(i)), int64(min(excess, math.MaxInt64))}
		}
	}

	// Clusters that are alike have the same overlaps. To find the first of all, each is looked at.
	memories := u.memories()
	err := u.overlap(memories, u.as, use)
	if err != nil {
		err = u.overlap(memories, noFold(p).as, use)
	}
	if err != nil {
		return err
	}
	return nil
}

// overlap returns the overlap that came about first, of the clusters that are not as others, or nil.
func (u *usage[T]) overlap(memories [][]int32, as []int32, use func(int32) BufferUse) (first *OverlapError) {
	for m, list := range memories {
		if cluster := m / int(isa.NumLevels); int(as[cluster]) != cluster {
			continue
		}
		i, j, found := u.overlapOf(list)
		if !found {
			continue
		}
		if b := use(j); first == nil || b.FromPs < first.B.FromPs || b.FromPs == first.B.FromPs && b.Index < first.B.Index {
			first = &OverlapError{u.p.Name, u.p.Buffers[j].Level, int(u.p.Buffers[j].Cluster), use(i), b}
		}
	}
	return first
}

// overlapOf returns the first two buffers of a memory that overlap; j began when i was in use.
func (u *usage[T]) overlapOf(list []int32) (i, j int32, found bool) {
	u.unsorted = empty(u.unsorted, len(list))
	for k, i := range list {
		u.unsorted = append(u.unsorted, edge{uint64(u.p.Buffers[i].Address), int32(k)})
	}
	order, rank := make([]int32, len(list)), make([]int32, len(list))
	for r, e := range u.sort() {
		order[r], rank[e.index] = list[e.index], int32(r)
	}
	set := newRankSet(len(list))
	for _, e := range u.edges(list) {
		k := int(rank[e.index])
		if e.ends() {
			set.remove(k)
			continue
		}
		b := &u.p.Buffers[order[k]]
		for _, n := range [2]int{set.before(k), set.after(k)} {
			if n < 0 {
				continue
			}
			if a := &u.p.Buffers[order[n]]; a.Address < b.Address+b.Bytes && b.Address < a.Address+a.Bytes {
				return order[n], order[k], true
			}
		}
		set.add(k)
	}
	return 0, 0, false
}

// rankSet is a set of small numbers that finds neighbours: a tree of bits with 64 children per node, in which a bit is
// set if anything below it is. bits[0] has one bit per number.
type rankSet struct{ bits [][]uint64 }

func newRankSet(n int) *rankSet {
	s := &rankSet{}
	for {
		n = (n + 63) / 64
		s.bits = append(s.bits, make([]uint64, n))
		if n <= 1 {
			return s
		}
	}
}

func (s *rankSet) add(k int) {
	for _, level := range s.bits {
		level[k/64] |= 1 << (k % 64)
		k /= 64
	}
}

func (s *rankSet) remove(k int) {
	for _, level := range s.bits {
		level[k/64] &^= 1 << (k % 64)
		if level[k/64] != 0 {
			return
		}
		k /= 64
	}
}

// before returns the largest member less than k, or -1.
func (s *rankSet) before(k int) int {
	for h, level := range s.bits {
		if word := level[k/64] & (1<<(k%64) - 1); word != 0 {
			k = k&^63 | (63 - bits.LeadingZeros64(word))
			for h--; h >= 0; h-- {
				k = k*64 + 63 - bits.LeadingZeros64(s.bits[h][k])
			}
			return k
		}
		k /= 64
	}
	return -1
}

// after returns the least member greater than k, or -1.
func (s *rankSet) after(k int) int {
	for h, level := range s.bits {
		if word := level[k/64] &^ (1<<(k%64)<<1 - 1); word != 0 {
			k = k&^63 | bits.TrailingZeros64(word)
			for h--; h >= 0; h-- {
				k = k*64 + bits.TrailingZeros64(s.bits[h][k])
			}
			return k
		}
		k /= 64
	}
	return -1
}
