package sharding

import (
	"fmt"
	"math"

	"github.com/dsasched/dsasched/hardware"
)

// A layout says what of a tensor each chip has: see the package's documentation.
type layout int

// The layouts that are no cut. Layout d >= 0 is [Cut] along dimension d.
const (
	Whole   layout = -1
	Partial layout = -2
	// first is of a bias: whole on the first chip and zero on the others.
	first layout = -3
)

// Cut is the layout in equal parts along a dimension.
func Cut(dim int) layout { return layout(dim) }

func (l layout) String() string {
	switch l {
	case Whole:
		return "whole"
	case Partial:
		return "partial"
	case first:
		return "first"
	}
	return fmt.Sprintf("cut %d", int(l))
}

// A Group is the chips and what joins them.
type Group struct {
	Chips int64
	Link  hardware.Link
	Torus []int // as in [hardware.Chips]
}

// GroupOf is the group of a machine's chips.
func GroupOf(machine *hardware.Spec) Group {
	if machine.Chips == nil {
		return Group{Chips: 1}
	}
	return Group{int64(machine.Chips.Count), machine.Chips.Link, machine.Chips.Torus}
}

// The collectives.
const (
	AllGather     = "all-gather"
	AllReduce     = "all-reduce"
	ReduceScatter = "reduce-scatter"
	AllToAll      = "all-to-all"
)

// Collective returns what changes the layout of a tensor of n bytes and how many seconds it
// takes; "" and 0 where each chip already has what it then needs.
func (g Group) Collective(from, to layout, n int64) (kind string, seconds float64) {
	switch {
	case from == to || from == Whole:
		return "", 0
	case from == Partial && to == Whole:
		return AllReduce, 2 * g.gather(float64(n))
	case from == Partial:
		return ReduceScatter, g.gather(float64(n))
	case to == Whole:
		return AllGather, g.gather(float64(n))
	}
	return AllToAll, g.exchange(float64(n))
}

// traffic is the bytes of a collective that pass a chip's DDR at most: out of it to each link and into it from each,
// and for sums what is added.
func (g Group) traffic(from, to layout, n int64) int64 {
	g.Link = hardware.Link{BandwidthBytesPerSecond: 1}
	_, each := g.Collective(from, to, n) // bytes on a link in one direction
	if g.Torus != nil {
		each *= 2
	}
	if from == Partial {
		return int64(math.Ceil(3 * each))
	}
	return int64(math.Ceil(2 * each))
}

// gather is the time of an all-gather of n bytes, and of the reduce-scatter that is its reverse: in each ring of k
// chips k-1 steps, in each of which a chip passes half of a part on to either side.
func (g Group) gather(n float64) (seconds float64) {
	p := float64(g.Chips)
	if g.Torus == nil {
		return g.Link.LatencySeconds + n*(p-1)/p/g.Link.BandwidthBytesPerSecond
	}
	part := n / p // what a chip has
	for _, extent := range g.Torus {
		k := float64(extent)
		seconds += (k - 1) * (g.Link.LatencySeconds + part/sides(extent)/g.Link.BandwidthBytesPerSecond)
		part *= k
	}
	return seconds
}

// exchange is the time of an all-to-all of n bytes. In each ring a chip has for each other one its share, which goes
// the shorter way, and half on either where both are as short; a step takes all that has further to go by one chip.
func (g Group) exchange(n float64) (seconds float64) {
	p := float64(g.Chips)
	if g.Torus == nil {
		return g.Link.LatencySeconds + n*(p-1)/(p*p)/g.Link.BandwidthBytesPerSecond
	}
	for _, extent := range g.Torus {
		k := float64(extent)
		hops := float64(extent * extent / 4) // of a chip's shares together
		seconds += math.Floor(k/2)*g.Link.LatencySeconds + n*hops/(p*k*sides(extent))/g.Link.BandwidthBytesPerSecond
	}
	return seconds
}

// sides is the number of a chip's links along a dimension that has more than one chip.
func sides(extent int) float64 { return float64(min(2, max(1, extent-1))) }
