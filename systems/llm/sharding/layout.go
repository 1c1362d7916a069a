package sharding

import (
	"fmt"
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
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

// collective returns what changes the layout of a tensor of n bytes and how many seconds it
// takes; "" and 0 where each chip already has what it then needs.
func collective(g chips.Group, from, to layout, n int64) (kind string, seconds float64) {
	switch {
	case from == to || from == Whole:
		return "", 0
	case from == Partial && to == Whole:
		kind = chips.AllReduce
	case from == Partial:
		kind = chips.ReduceScatter
	case to == Whole:
		kind = chips.AllGather
	default:
		kind = chips.AllToAll
	}
	return kind, g.Seconds(kind, n)
}

// traffic is the bytes of a collective that pass a chip's DDR at most: out of it to each link and into it from each,
// and for sums what is added.
func traffic(g chips.Group, from, to layout, n int64) int64 {
	g.Link = hardware.Link{BandwidthBytesPerSecond: 1}
	_, each := collective(g, from, to, n) // bytes on a link in one direction
	if g.Torus != nil {
		each *= 2
	}
	if from == Partial {
		return int64(math.Ceil(3 * each))
	}
	return int64(math.Ceil(2 * each))
}
