package mofang

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/systems/mofang/streams"
)

// A Speedup is how many times as fast as one thread several are.
type Speedup struct {
	Threads int
	Factor  float64
}

// Threads chooses the threads that load data, of a table in ascending order of threads: T1 seconds for names of files
// and T3 for training are of a batch, T2 of an item on one thread. The table must have at least one row.
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

// Threshold is the default of [Layering]. The paper gives none and expects it to drop about half of the splits.
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

// Layering divides the operators of a graph into layers. The result lists them in order, with the splits that were
// looked at. If ctx ends, what is not split by then stays whole. A threshold of 0 is [Threshold].
func Layering(ctx context.Context, m *streams.Machine, ops []streams.Operator, threshold float64) (
	layers [][]int, splits []Split) {
	threshold = cmp.Or(threshold, Threshold)
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

// downClosed lists the down-closed proper parts of a sorted set of operators, in order of size and then of members:
// all, or those between levels where there are more than MaxSplits.
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

// Stages divides layers into pipeline stages, as half-open ranges: as many as can run side by side, where the largest
// utilisations of all sum to at most 1, and of so many those that [Balanced] finds. One stage is left where even two
// are too much.
func Stages(layers []Layer) [][2]int {
	seconds := make([]float64, len(layers))
	for i, l := range layers {
		seconds[i] = l.Seconds
	}
	for n := len(layers); ; n-- {
		stages, sum := Balanced(seconds, n), 0.0
		for _, s := range stages {
			u := 0.0
			for _, l := range layers[s[0]:s[1]] {
				u = max(u, l.Utilization)
			}
			sum += u
		}
		if n <= 1 || sum <= 1+1e-9 {
			return stages
		}
	}
}

// Balanced merges layers into so many stages, fewer where there are fewer layers, so that the longest is as short as
// can be. Stages are filled from the last one.
func Balanced(seconds []float64, stages int) [][2]int {
	n := len(seconds)
	stages = min(stages, n)
	if stages < 1 {
		return nil
	}
	sum := make([]float64, n+1)
	for i, t := range seconds {
		sum[i+1] = sum[i] + t
	}
	longest := make([]float64, n+1) // of the first layers in so many stages
	copy(longest, sum)
	from := make([][]int, stages+1)
	for k := 2; k <= stages; k++ {
		from[k] = make([]int, n+1)
		for j := n; j >= k; j-- {
			best := math.Inf(1)
			for i := j - 1; i >= k-1 && sum[j]-sum[i] < best; i-- {
				if t := max(longest[i], sum[j]-sum[i]); t < best {
					best, from[k][j] = t, i
				}
			}
			longest[j] = best
		}
	}
	cut := make([][2]int, stages)
	for k, j := stages, n; k > 0; k-- {
		i := 0
		if k > 1 {
			i = from[k][j]
		}
		cut[k-1] = [2]int{i, j}
		j = i
	}
	return cut
}

// MicroBatches bisects for the least number b of micro-batches of a batch over p stages with (p-1)/(b+p-1) <= loss(b),
// where loss does not fall. ok is false where no b up to batch does.
func MicroBatches(p, batch int, loss func(b int) float64) (b int, ok bool) {
	fits := func(b int) bool { return float64(p-1)/float64(b+p-1) <= loss(b)+1e-12 }
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

// Loss is what devices that take a largest batch are thought to lose by b micro-batches of a batch:
// max(0, 1 - batch/(b device)), as if a micro-batch took as long as the largest.
func Loss(batch, device int) func(b int) float64 {
	return func(b int) float64 { return math.Max(0, 1-float64(batch)/(float64(b)*float64(device))) }
}

// GPipeStages cuts layers into stages of equal number, the first ones longer by one where they do not divide.
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

// EnergyJoules is the integral of idle + (busy - idle) x utilisation, in watts, over consecutive uses.
func EnergyJoules(uses []Use, idleWatts, busyWatts float64) float64 {
	sum := 0.0
	for _, u := range uses {
		sum += u.Seconds * (idleWatts + (busyWatts-idleWatts)*u.Utilization)
	}
	return sum
}
