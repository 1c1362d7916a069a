package chips

import (
	"math"

	"github.com/dsasched/dsasched/hardware"
)

// A Group is the chips of a machine and what joins them.
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

// Seconds is how long a collective of n bytes takes: of all chips' parts together, or of each chip's summand.
func (g Group) Seconds(collective string, n int64) float64 {
	switch collective {
	case AllReduce:
		return 2 * g.gather(float64(n))
	case AllToAll:
		return g.exchange(float64(n))
	}
	return g.gather(float64(n))
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
