package sharding

import (
	"fmt"

	"github.com/dsasched/dsasched/hardware"
)

// A Layout says what of a tensor each chip has: see the package's documentation.
type Layout int

// The layouts that are no cut. Layout d >= 0 is [Cut] along dimension d.
const (
	Whole   Layout = -1
	Partial Layout = -2
	// first is of a bias: whole on the first chip and zero on the others.
	first Layout = -3
)

// Cut is the layout in equal parts along a dimension.
func Cut(dim int) Layout { return Layout(dim) }

func (l Layout) String() string {
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
func (g Group) Collective(from, to Layout, n int64) (kind string, seconds float64) {
	p := float64(g.Chips)
	step := g.Link.LatencySeconds + float64(n)*(p-1)/p/g.Link.BandwidthBytesPerSecond
	switch {
	case from == to || from == Whole:
		return "", 0
	case from == Partial && to == Whole:
		return AllReduce, 2 * step
	case from == Partial:
		return ReduceScatter, step
	case to == Whole:
		return AllGather, step
	}
	return AllToAll, g.Link.LatencySeconds + float64(n)*(p-1)/(p*p)/g.Link.BandwidthBytesPerSecond
}
