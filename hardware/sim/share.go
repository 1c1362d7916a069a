package sim

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
)

const (
	rateBits = 12 // a rate is in 2^-rateBits byte per second
	coefBits = 44 // a coefficient is in 2^-coefBits

	maxBytesPerSecond = 1<<(63-rateBits) - 1
	// The sum of the coefficients on a resource is to fit 64 bits.
	maxFlows = 1<<(63-coefBits) - 1
)

// share is the bytes of a resource that a flow uses per own byte.
type share struct {
	resource int32
	coef     uint64
}

// pool is a resource during one solve.
type pool struct {
	// What the flows that are not frozen may still take, in units of 2^-(rateBits+coefBits). Kept exactly: rounding
	// here could leave less than nothing for the last flow.
	hi, lo uint64
	// Sum of the coefficients of the flows that are not frozen.
	sum uint64
	// The common rate at which those flows would use it up; stale: not computed.
	level uint64
}

// below reports whether the level is less than another, or no more than that if ties are let
// pass: without a division, where the level is not known.
func (p *pool) below(level uint64, ties bool) bool {
	if p.level != stale {
		return p.level < level || ties && p.level == level
	}
	if ties {
		if level++; level == 0 {
			return true // no level is more
		}
	}
	// floor(avail/sum) < level if avail < level*sum
	hi, lo := bits.Mul64(level, p.sum)
	return p.hi < hi || p.hi == hi && p.lo < lo
}

func (p *pool) fill() {
	if p.hi >= p.sum {
		p.level = math.MaxUint64 // more than any flow can take: its own largest coefficient is 1
		return
	}
	p.level, _ = bits.Div64(p.hi, p.lo, p.sum)
}

// sharing divides resources among flows. A flow is named by a slot; there are as
// many slots as can flow at the same time.
type sharing struct {
	capacity []uint64  // of each resource, as a rate
	sum      []uint64  // of the coefficients of all flows on each resource
	users    []slotSet // slots on each resource
	flows    []flow    // of each slot, which flows or has flowed
	last     []last    // the last of each slot that was asked for
	rate     []uint64  // of each slot
	// A slot stands for weight slots that do the same, each with resources of its own
	// but for those that are shared. If shared is nil, each stands for itself.
	weight []uint64
	shared []bool
	dirty  []int32 // resources on which the set of flows has changed

	// Scratch of solve. A mark is valid if it equals epoch.
	epoch     uint64
	mark      []uint64 // of resources
	pools     []pool
	resources []int32
	open      slotSet  // flows that were reached and are not frozen
	frozen    []int32  // flows, and what they froze at
	solved    []uint64 // of each slot
	changed   []int32
	looked    [][]member // sets of domains

	// The domain whose flows alone use a resource, or nobody or all; and the one resource of all, or none.
	owner  []int32
	common int32
	// Of the last solve that went by domains: the level of that resource, 0 without flows on it; and
	// for which sum of coefficients a level was computed.
	level, levelSum, levelOfSum uint64

	position []int32 // scratch of divide: where in shares a resource stands, plus 1
	shares   []share // scratch of divide

	known known
}

// flow is the traffic of a slot.
type flow struct {
	shares []share
	own    int64 // bytes; 0: nothing flows
	number int32 // of the shares, in known
}

// last is a flow with the uses that it follows from.
type last struct {
	flow
	uses []isa.Use
}

// flowing reports whether a slot flows.
func (s *sharing) flowing(slot int32) bool { return s.known.present[slot/64]>>(slot%64)&1 == 1 }

// The owner of a resource, if that is no domain.
const (
	nobody = -1
	all    = -2
)

// More domains than these are not told apart: each is looked at in each solve.
const maxDomains = 64

// slotSet has a bit for each slot.
type slotSet []uint64

func newSlotSet(slots int) slotSet { return make(slotSet, (slots+63)/64) }

func newSharing(resources []isa.Resource, slots int) *sharing {
	n := len(resources)
	s := &sharing{
		capacity: make([]uint64, n),
		sum:      make([]uint64, n),
		users:    make([]slotSet, n),
		flows:    make([]flow, slots),
		last:     make([]last, slots),
		rate:     make([]uint64, slots),
		mark:     make([]uint64, n),
		pools:    make([]pool, n),
		open:     newSlotSet(slots),
		position: make([]int32, n),
		solved:   make([]uint64, slots),
		owner:    make([]int32, n),
		common:   none,
		known:    newKnown(slots),
	}
	for i, r := range resources {
		s.owner[i] = nobody
		s.capacity[i] = uint64(r.BytesPerSecond) << rateBits
		s.users[i] = newSlotSet(slots)
	}
	return s
}

// flow is the rate that uses let a slot move at, nothing if they are of no bytes, and whether it is what they did the
// last time. The uses must not pass maxFlowBytes in sum.
func (s *sharing) flow(slot int32, uses []isa.Use) (f *flow, again bool) {
	l := &s.last[slot]
	if again = slices.Equal(l.uses, uses); !again {
		s.divide(l, slot, uses)
	}
	return &l.flow, again
}

// add lets a slot flow, with a rate of zero until the next solve.
func (s *sharing) add(slot int32, f *flow) {
	s.flows[slot] = *f
	for _, sh := range f.shares {
		s.sum[sh.resource] += sh.coef
		s.users[sh.resource][slot/64] |= 1 << (slot % 64)
		s.dirty = append(s.dirty, sh.resource)
		if sh.resource == s.common {
			s.known.link(slot, 1)
		}
	}
	s.known.begin(slot, f.number)
}

// divide finds the shares of a flow.
func (s *sharing) divide(l *last, slot int32, uses []isa.Use) {
	sh := s.shares[:0]
	var own uint64
	for _, u := range uses {
		if u.Bytes == 0 {
			continue
		}
		at := s.position[u.Resource]
		if at == 0 {
			sh = append(sh, share{u.Resource, 0})
			at = int32(len(sh))
			s.position[u.Resource] = at
		}
		sh[at-1].coef += uint64(u.Bytes) // bytes for now
		own = max(own, sh[at-1].coef)
	}
	for i := range sh {
		r := sh[i].resource
		s.position[r] = 0
		if bytes := sh[i].coef; bytes == own {
			sh[i].coef = 1 << coefBits
		} else {
			lo, carry := bits.Add64(bytes<<coefBits, own-1, 0)
			sh[i].coef, _ = bits.Div64(bytes>>(64-coefBits)+carry, lo, own)
		}
		if s.shared != nil && s.shared[r] {
			sh[i].coef *= s.weight[slot]
		}
	}
	s.shares = sh
	l.uses, l.own = append(l.uses[:0], uses...), int64(own)
	if own > 0 && !slices.Equal(l.shares, sh) { // else of other bytes in the same proportions
		l.shares, l.number = s.known.list(slot, sh)
		if len(s.known.domains) > 1 {
			for _, sh := range sh {
				s.claim(slot, sh.resource)
			}
		}
	}
}

// claim says that a slot may use a resource. Where a second one is that several domains use, there is but one domain.
func (s *sharing) claim(slot, r int32) {
	k := &s.known
	switch s.owner[r] {
	case nobody:
		s.owner[r] = k.of[slot]
	case all, k.of[slot]:
	default:
		s.owner[r], s.level = all, 0
		if s.common == none {
			s.common = r
			for w, users := range s.users[r] {
				for ; users != 0; users &= users - 1 {
					k.link(int32(w*64+bits.TrailingZeros64(users)), 1)
				}
			}
			return
		}
		s.common, k.dirty, k.linked = none, 1, 0
		var one domain
		for _, d := range k.domains {
			one.slots = append(one.slots, d.slots...)
			one.n, one.others, one.hash = one.n+d.n, one.others+d.others, one.hash^d.hash
		}
		k.domains = []domain{one}
		clear(k.of)
	}
}

// remove ends the flow of a slot.
func (s *sharing) remove(slot int32) {
	for _, sh := range s.flows[slot].shares {
		s.sum[sh.resource] -= sh.coef
		s.users[sh.resource][slot/64] &^= 1 << (slot % 64)
		s.dirty = append(s.dirty, sh.resource)
		if sh.resource == s.common {
			s.known.link(slot, -1)
		}
	}
	s.rate[slot] = 0
	s.known.end(slot)
}

// solve finds the rates of all flows that are connected with a change since the last call, and returns the slots whose
// rate is now another, in no particular but always the same order. The returned slice is valid until the next call.
//
// The levels at which flows freeze never fall: if L is the least level of all resources and the flows of the least
// resource freeze at it, then on any other resource avail >= sum·L held exactly, and so avail - f·L >= (sum - f)·L
// holds after f, the coefficients of those flows on it, has gone. Hence no resource is oversubscribed and no rate is
// below that of an equal split.
func (s *sharing) solve() []int32 {
	s.changed = s.changed[:0]
	if len(s.dirty) == 0 {
		return s.changed
	}
	if k := &s.known; len(k.domains) > 1 {
		k.room()
		if !s.byDomains() {
			s.byResources()
		}
	} else if members, ok := k.find(&k.domains[0], 0); ok {
		s.take(members)
	} else {
		s.byResources()
		k.room()
		k.keep(&k.domains[0], 0, s.rate)
	}
	s.dirty, s.known.dirty = s.dirty[:0], 0
	return s.changed
}

// take gives flows their rates.
func (s *sharing) take(members []member) {
	for i := range members {
		if m := &members[i]; s.rate[m.slot] != m.rate {
			s.rate[m.slot] = m.rate
			s.changed = append(s.changed, m.slot)
		}
	}
}

// byDomains is solve where the flows on the resource of all domains freeze at the level that it has at first. Each
// domain can then be looked at for itself: what freezes before does not take from that resource, so that it keeps
// its level until its turn comes, which is the same in each.
func (s *sharing) byDomains() bool {
	k := &s.known
	level := uint64(0)
	if s.common != none && s.sum[s.common] > 0 {
		if sum := s.sum[s.common]; s.levelSum != sum {
			p := pool{s.capacity[s.common] >> (64 - coefBits), s.capacity[s.common] << coefBits, sum, stale}
			p.fill()
			s.levelSum, s.levelOfSum = sum, p.level
		}
		level = s.levelOfSum
	}
	s.looked = s.looked[:0]
	look := k.dirty
	if level != s.level {
		look |= k.linked
	}
	for ; look != 0; look &= look - 1 {
		i := bits.TrailingZeros64(look)
		d, own := &k.domains[i], uint64(0)
		if d.linked > 0 {
			own = level
		}
		members, ok := k.find(d, own)
		if !ok {
			members = s.solveDomain(d, own)
		}
		if len(members) > 0 && members[0].rate == 0 {
			s.level = 0
			return false
		}
		if look&(look-1) == 0 && len(s.looked) == 0 { // most often
			s.level = level
			s.take(members)
			return true
		}
		s.looked = append(s.looked, members)
	}
	s.level = level
	for _, members := range s.looked {
		s.take(members)
	}
	return true
}

// solveDomain finds the rates of a domain's flows, if those on the resource of all domains freeze at a level.
func (s *sharing) solveDomain(d *domain, level uint64) []member {
	s.epoch++
	s.resources = s.resources[:0]
	left := 0
	for _, slot := range d.slots {
		if s.flowing(slot) {
			left++
			s.open[slot/64] |= 1 << (slot % 64)
			for _, sh := range s.flows[slot].shares {
				s.reach(sh.resource)
			}
		}
	}
	common := int32(none)
	if level > 0 {
		common = s.common
		s.pools[common].level = level
	}
	if !s.fill(left, common) {
		clear(s.open)
		for _, slot := range d.slots {
			s.solved[slot] = 0
		}
	}
	return s.known.keep(d, level, s.solved)
}

// byResources is solve for all flows that the changed resources are connected with.
func (s *sharing) byResources() {
	s.epoch++
	s.resources = s.resources[:0]
	for _, r := range s.dirty {
		s.reach(r)
	}
	left := 0
	for i := 0; i < len(s.resources); i++ {
		for w, users := range s.users[s.resources[i]] {
			found := users &^ s.open[w]
			for s.open[w] |= found; found != 0; found &= found - 1 {
				left++
				for _, sh := range s.flows[w*64+bits.TrailingZeros64(found)].shares {
					s.reach(sh.resource)
				}
			}
		}
	}
	s.fill(left, none)
	for _, f := range s.frozen {
		if s.rate[f] != s.solved[f] {
			s.rate[f] = s.solved[f]
			s.changed = append(s.changed, f)
		}
	}
}

// fill finds at what the open flows freeze, so many. A common resource, or none, has flows that are not open, too, and
// keeps its level until its turn comes; it is not ok if a flow on it freezes before.
func (s *sharing) fill(left int, common int32) (ok bool) {
	s.frozen = s.frozen[:0]
	for left > 0 {
		// The least level, ties by index: the rounded rates may depend on the
		// order, which must not depend on how the resources were reached.
		bottleneck, least := int32(-1), uint64(math.MaxUint64)
		for _, r := range s.resources {
			p := &s.pools[r]
			if p.sum > 0 && p.below(least, r < bottleneck || bottleneck < 0) {
				if p.level == stale {
					p.fill()
				}
				bottleneck, least = r, p.level
			}
		}
		for w, users := range s.users[bottleneck] {
			freeze := users & s.open[w]
			for s.open[w] &^= freeze; freeze != 0; freeze &= freeze - 1 {
				f := int32(w*64 + bits.TrailingZeros64(freeze))
				left--
				s.solved[f], s.frozen = least, append(s.frozen, f)
				for _, sh := range s.flows[f].shares {
					if sh.resource == common {
						if bottleneck != common {
							return false
						}
						continue
					}
					p := &s.pools[sh.resource]
					hi, lo := bits.Mul64(sh.coef, least)
					var borrow uint64
					p.lo, borrow = bits.Sub64(p.lo, lo, 0)
					p.hi -= hi + borrow
					p.sum -= sh.coef
					p.level = stale
				}
			}
		}
		if bottleneck == common {
			s.pools[common].sum = 0
		}
	}
	return true
}

// stale marks a level to be computed again. No level is zero: Run checks that a
// resource has at least one unit of rate for each slot.
const stale = 0

func (s *sharing) reach(r int32) {
	if s.mark[r] == s.epoch {
		return
	}
	s.mark[r] = s.epoch
	s.resources = append(s.resources, r)
	if s.sum[r] == 0 {
		s.pools[r] = pool{}
		return
	}
	p := &s.pools[r]
	p.hi, p.lo = s.capacity[r]>>(64-coefBits), s.capacity[r]<<coefBits
	p.sum, p.level = s.sum[r], stale
}
