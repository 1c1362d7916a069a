package mofang

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/internal/streams"
)

// A Speedup is how many times as fast as one thread several are.
type Speedup struct {
	Threads int
	Factor  float64
}

// Threads chooses the threads that load data, of a table in ascending order of
// threads: T1 seconds for names of files and T3 for training are of a batch, T2 of an
// item on one thread. The table must have at least one row.
func Threads(t1, t2, t3 float64, batch int, table []Speedup) Speedup {
	need := float64(batch) * t2 / math.Max(t1, t3)
	best := table[0]
	for _, s := range table {
		if s.Factor >= need {
			return s
		}
		if s.Factor > best.Factor {
			best = s
		}
	}
	return best
}

// Threshold is the default of [Layering]. The paper gives none and
// expects it to drop about half of the splits.
const Threshold = 0.5

// maxSplits bounds how many ways to split one set [Layering] looks at. Beyond it only
// the splits between two levels, by depth, are tried.
const maxSplits = 20_000

// A Split is one step of [Layering].
type Split struct {
	Set     []int   // operators
	First   []int   // the part that runs first; nil where no split gains
	Seconds float64 // of the set as one layer
	Tried   int     // splits, before the threshold
	Kept    int     // by the threshold
}

// Layering divides the operators of a graph into layers. The result lists them in
// order, with the splits that were looked at. If ctx ends, what is not split by then
// stays whole. A threshold of 0 is [Threshold].
func Layering(ctx context.Context, m *streams.Machine, ops []streams.Operator, threshold float64) (layers [][]int, splits []Split) {
	if threshold == 0 {
		threshold = Threshold
	}
	cost := func(set []int) float64 {
		_, phases := m.Best(ops, set)
		return streams.Seconds(phases)
	}
	counted := slices.ContainsFunc(ops, func(op streams.Operator) bool { return op.MACs > 0 })
	work := func(set []int) float64 { // com
		sum := 0.0
		for _, i := range set {
			if counted {
				sum += float64(ops[i].MACs)
			} else {
				sum += float64(ops[i].Blocks) * ops[i].BlockSeconds
			}
		}
		return sum
	}
	var divide func(set []int)
	divide = func(set []int) {
		whole, all := cost(set), work(set)
		step := Split{Set: set, Seconds: whole}
		best := whole * (1 - 1e-12) // a split must gain
		var first, rest []int
		if ctx.Err() == nil {
			parts := downClosed(ops, set)
			step.Tried = len(parts)
			balance := make(map[int]float64, len(parts))
			order := make([]int, 0, len(parts))
			for k, u := range parts {
				// Only strictly more than the threshold is dropped.
				if balance[k] = math.Abs(2*work(u) - all); balance[k] <= threshold*all*(1+1e-12) {
					order = append(order, k)
				}
			}
			step.Kept = len(order)
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(balance[a], balance[b]) })
			for _, k := range order {
				u := parts[k]
				v := without(set, u)
				if c := cost(u) + cost(v); c < best {
					best, first, rest = c, u, v
				}
			}
		}
		step.First = first
		splits = append(splits, step)
		if first == nil {
			layers = append(layers, set)
			return
		}
		divide(first)
		divide(rest)
	}
	cuts := streams.Cuts(ops)
	for b := range cuts[1:] {
		var set []int
		for i := cuts[b]; i < cuts[b+1]; i++ {
			set = append(set, i)
		}
		divide(set)
	}
	return layers, splits
}

// downClosed lists the down-closed proper parts of a sorted set of operators, in
// order of size and then of members: all, or those between levels where there are
// more than MaxSplits.
func downClosed(ops []streams.Operator, set []int) [][]int {
	n := len(set)
	levels := func() (parts [][]int) {
		var part []int
		for _, level := range streams.Levels(ops, set) {
			part = append(part, level...)
			slices.Sort(part)
			if len(part) < n {
				parts = append(parts, slices.Clone(part))
			}
		}
		return parts
	}
	if n > 64 {
		return levels()
	}
	before := make([]uint64, n)
	for k, i := range set {
		for _, h := range ops[i].After {
			if j, ok := slices.BinarySearch(set, h); ok {
				before[k] |= 1 << j
			}
		}
	}
	seen := map[uint64]bool{0: true}
	masks := []uint64{0}
	for at := 0; at < len(masks); at++ {
		for k := range n {
			if s := masks[at] | 1<<k; before[k]&^masks[at] == 0 && !seen[s] {
				seen[s] = true
				masks = append(masks, s)
			}
		}
		if len(masks) > maxSplits {
			return levels()
		}
	}
	slices.SortFunc(masks, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)), cmp.Compare(a, b))
	})
	var parts [][]int
	for _, mask := range masks[1 : len(masks)-1] {
		var part []int
		for k, i := range set {
			if mask>>k&1 != 0 {
				part = append(part, i)
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// without is a sorted set less a part of it.
func without(set, part []int) []int {
	var rest []int
	for _, i := range set {
		if _, in := slices.BinarySearch(part, i); !in {
			rest = append(rest, i)
		}
	}
	return rest
}

// A Layer is a layer as stages see it.
type Layer struct{ Seconds, Utilization float64 }

// Stages divides layers into pipeline stages, as half-open ranges: it merges two
// neighbours again and again, those that together take least, until what runs side by
// side, the largest utilisations of all stages, sums to at most 1. Of equal ones the
// first are merged. One stage is left where even two are too much.
func Stages(layers []Layer) [][2]int {
	var stages [][2]int
	for i := range layers {
		stages = append(stages, [2]int{i, i + 1})
	}
	measure := func(s [2]int) (t, u float64) {
		for _, l := range layers[s[0]:s[1]] {
			t += l.Seconds
			u = max(u, l.Utilization)
		}
		return t, u
	}
	for len(stages) > 1 {
		sum := 0.0
		for _, s := range stages {
			_, u := measure(s)
			sum += u
		}
		if sum <= 1+1e-9 {
			break
		}
		best, least := 0, math.Inf(1)
		for k := range len(stages) - 1 {
			if t, _ := measure([2]int{stages[k][0], stages[k+1][1]}); t < least*(1-1e-12) {
				best, least = k, t
			}
		}
		stages[best][1] = stages[best+1][1]
		stages = slices.Delete(stages, best+1, best+2)
	}
	return stages
}

// MicroBatches bisects for the least number b of micro-batches of a batch over p
// stages, of devices that take a largest batch, with
// (p-1)/(b+p-1) <= max(0, 1 - batch/(b device)). ok is false where no b up to batch
// does. The left side falls with b and the right side rises, so that bisection is
// right.
func MicroBatches(p, batch, device int) (b int, ok bool) {
	fits := func(b int) bool {
		idle := float64(p-1) / float64(b+p-1)
		loss := math.Max(0, 1-float64(batch)/(float64(b)*float64(device)))
		return idle <= loss+1e-12
	}
	lo, hi := 1, batch
	if batch < 1 || !fits(hi) {
		return 0, false
	}
	for lo < hi {
		if mid := (lo + hi) / 2; fits(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, true
}

// GPipeStages cuts layers into stages of equal number, the first ones longer by one
// where they do not divide.
func GPipeStages(layers, stages int) [][2]int {
	stages = min(stages, layers)
	var cut [][2]int
	at := 0
	for s := range stages {
		n := layers / stages
		if s < layers%stages {
			n++
		}
		cut = append(cut, [2]int{at, at + n})
		at += n
	}
	return cut
}

// A Use is a share of a device over some time.
type Use struct{ Seconds, Utilization float64 }

// EnergyJoules is the integral of idle + (busy - idle) x utilisation, in watts, over
// consecutive uses.
func EnergyJoules(uses []Use, idleWatts, busyWatts float64) float64 {
	sum := 0.0
	for _, u := range uses {
		sum += u.Seconds * (idleWatts + (busyWatts-idleWatts)*u.Utilization)
	}
	return sum
}
