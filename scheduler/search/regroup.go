package search

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/scheduler"

	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/model/schedule"
)

// A span is a group as the search has it: atoms lo to hi (half-open) of its sequence, split in one way.
type span struct {
	lo, hi int
	split  schedule.SplitInfo
}

// A regrouper proposes groups: intervals of a sequence of atoms, each with a way to split it. What an interval costs it
// learns from the simulator: kernels follow one another, so that a schedule's latency is a sum over its groups, as far
// as they do not influence each other. Intervals that were never simulated have the price of formulation/split, times
// what simulated ones took of theirs.
//
// A proposal is the cheapest partition under costs drawn at random around what is known (Thompson, Biometrika 1933):
// what was simulated is nearly certain, what was not is less so, and the search turns from trying to repeating. Groups
// that do the same have one cost, so that a network's equal layers are grouped alike and tried at once.
type regrouper struct {
	net   *split.Network
	seq   []int // atoms in an order in which they can run
	namer *split.Namer
	queue [][2]int          // intervals that have no price yet
	at    map[[2]int]*group // intervals by lo and hi; nil: no group
	ends  map[int][]int     // hi of the groups in at, by lo
	*costs
}

// costs holds the measured and estimated costs of groups, for all sequences of a network.
type costs struct {
	kinds map[string]*kind // of groups that do the same
	list  []*option        // in the order in which they were made
	// of the simulated ways, the logarithm of cost over price
	logs, squares, count float64
}

// A group is an interval of the sequence, a kind what all that do the same have in common.
type group struct {
	atoms []int
	*kind
}

type kind struct {
	number int
	ways   []*option
}

// An option is a way to split groups of a kind.
type option struct {
	split.Way
	times float64
	mean  float64 // of times simulated costs, in seconds
	drawn float64
}

// maxIntervals bounds the groups that are priced, as MaxGroups of package split does.
const maxIntervals = 4000

func newRegrouper(n *split.Network, namer *split.Namer, p *scheduler.Decisions, known *costs) *regrouper {
	g := &regrouper{net: n, namer: namer, at: map[[2]int]*group{}, ends: map[int][]int{}, costs: known}
	for _, c := range p.Groups() {
		g.seq = append(g.seq, n.AtomsOf(c.Ops)...)
	}
	// How far each place is from the end of a group.
	distance := make([]int, len(g.seq)+1)
	at := 0
	for _, c := range p.Groups() {
		next := at + len(n.AtomsOf(c.Ops))
		for i := at; i <= next; i++ {
			distance[i] = min(i-at, next-i)
		}
		at = next
	}
	for count, length := 0, 1; length <= len(g.seq); length++ {
		if count += len(g.seq) + 1 - length; count > maxIntervals && length > 1 {
			break
		}
		for lo := 0; lo+length <= len(g.seq); lo++ {
			g.queue = append(g.queue, [2]int{lo, lo + length})
		}
	}
	badness := func(x [2]int) int {
		if x[1]-x[0] <= short {
			return 0
		}
		return distance[x[0]] + distance[x[1]]
	}
	slices.SortStableFunc(g.queue, func(a, b [2]int) int { return badness(a) - badness(b) })
	return g
}

// Intervals of so many atoms are priced before others, then those that begin and end where groups do, or nearly:
// pricing takes as long as simulating. So many have a price when the search begins, and so many more in each round.
const (
	short       = 4
	firstPrices = 256
	roundPrices = 16
)

// group returns the group of an interval; nil if it is not connected.
func (g *regrouper) group(lo, hi int) *group {
	key := [2]int{lo, hi}
	if x, there := g.at[key]; there {
		return x
	}
	g.at[key] = nil
	atoms := slices.Sorted(slices.Values(g.seq[lo:hi]))
	if !g.net.Connected(atoms) {
		return nil
	}
	name := g.namer.Name(atoms)
	k := g.kinds[name]
	if k == nil {
		k = &kind{number: len(g.kinds)}
		g.kinds[name] = k
		for _, w := range g.net.Ways(atoms) {
			a := &option{Way: w}
			k.ways = append(k.ways, a)
			g.list = append(g.list, a)
		}
	}
	if len(k.ways) > 0 {
		g.at[key] = &group{atoms, k}
		g.ends[lo] = append(g.ends[lo], hi)
	}
	return g.at[key]
}

// option is the way of a kind to split, made if it is a new one.
func (g *regrouper) option(x *group, info schedule.SplitInfo) *option {
	for _, a := range x.ways {
		if a.Split.Factor == info.Factor && (a.Split.Dim == info.Dim || info.Factor <= 1) {
			return a
		}
	}
	a := &option{Way: split.Way{Split: info, Seconds: x.ways[0].Seconds}}
	x.ways = append(x.ways, a)
	g.list = append(g.list, a)
	return a
}

// spans are the groups of a plan in atoms of the sequence; nil if they are not intervals of it.
func (g *regrouper) spans(p *scheduler.Decisions) []span {
	var list []span
	at := 0
	for _, c := range p.Groups() {
		atoms := g.net.AtomsOf(c.Ops)
		if at+len(atoms) > len(g.seq) || !slices.Equal(atoms, slices.Sorted(slices.Values(g.seq[at:at+len(atoms)]))) {
			return nil
		}
		list = append(list, span{at, at + len(atoms), c.Split})
		at += len(atoms)
	}
	return list
}

// cuts are spans as groups of operators.
func (g *regrouper) cuts(list []span) scheduler.Groups {
	cuts := make(scheduler.Groups, len(list))
	for i, x := range list {
		cuts[i] = scheduler.Cut{Ops: g.net.Operators(slices.Sorted(slices.Values(g.seq[x.lo:x.hi]))), Split: x.split}
	}
	return cuts
}

// learn notes what the groups of a simulated plan took.
func (g *regrouper) learn(list []span, ps []int64) {
	for i, x := range list {
		grp := g.group(x.lo, x.hi)
		if grp == nil || ps[i] <= 0 {
			continue
		}
		a := g.option(grp, x.split)
		s := float64(ps[i]) * 1e-12
		a.times++
		a.mean += (s - a.mean) / a.times
		if a.Seconds > 0 {
			l := math.Log(s / a.Seconds)
			g.logs, g.squares, g.count = g.logs+l, g.squares+l*l, g.count+1
		}
	}
}

// avoid makes groups dearer of which some can't be had.
func (g *regrouper) avoid(list []span) {
	for _, x := range list {
		if grp := g.group(x.lo, x.hi); grp != nil {
			if a := g.option(grp, x.split); a.times == 0 {
				a.Seconds *= 1.5
			}
		}
	}
}

// scale is the mean ratio of a measured time to its price, and its deviation, as logarithms.
func (g *regrouper) scale() (mean, deviation float64) {
	if g.count < 2 {
		return 0, 0.3
	}
	mean = g.logs / g.count
	return mean, math.Sqrt(max(0.0025, g.squares/g.count-mean*mean))
}

// prices makes so many more intervals known.
func (g *regrouper) prices(n int) {
	n = min(n, len(g.queue))
	for _, x := range g.queue[:n] {
		g.group(x[0], x[1])
	}
	g.queue = g.queue[n:]
}

// propose draws costs and returns the cheapest partition of the sequence from a place on; nil if no groups are known
// that it consists of. boldness scales how far what was not simulated may be from its price.
func (g *regrouper) propose(first int, rng *rand.Rand, boldness float64) []span {
	n := len(g.seq)
	for lo := first; lo < n; lo++ { // there is always something to go on with
		g.group(lo, lo+1)
	}
	mean, deviation := g.scale()
	for _, a := range g.list {
		x := rng.NormFloat64()
		if a.times > 0 {
			a.drawn = a.mean * (1 + 0.02*boldness*x)
		} else {
			a.drawn = a.Seconds * math.Exp(mean+deviation*boldness*x)
		}
	}
	best, from := make([]float64, n+1), make([]span, n+1)
	for hi := first + 1; hi <= n; hi++ {
		best[hi] = math.Inf(1)
	}
	for lo := first; lo < n; lo++ {
		if math.IsInf(best[lo], 1) {
			continue
		}
		for _, hi := range g.ends[lo] {
			for _, a := range g.at[[2]int{lo, hi}].ways {
				if c := best[lo] + a.drawn; c < best[hi] {
					best[hi], from[hi] = c, span{lo, hi, a.Split}
				}
			}
		}
	}
	if math.IsInf(best[n], 1) {
		return nil
	}
	var list []span
	for hi := n; hi > first; hi = from[hi].lo {
		list = append(list, from[hi])
	}
	slices.Reverse(list)
	return list
}
