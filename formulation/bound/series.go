package bound

import (
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A cut is an operator behind which every layer begins anew, and the work between the cut
// before it and itself.
type cut struct {
	op model.OpID
	// seconds is a bound on the time of the stretch that ends here, whatever runs before and
	// behind it.
	seconds float64
}

// shape finds out what lies before and behind operators.
func (w *work) shape() {
	n := len(w.g.Ops)
	w.next, w.ends, w.readers = w.meets(), make([]bool, n), make([][]int, n)
	for i := range w.ends {
		w.ends[i] = true
	}
	for i, links := range w.links {
		for _, l := range links {
			w.ends[l.from] = w.ends[l.from] && !l.fused
			if l.gaps == 0 && !l.late {
				w.readers[l.from] = append(w.readers[l.from], i)
			}
		}
	}
}

// meets gives for each operator the next one that all paths from it to the network's outputs
// pass, its immediate post-dominator; len(ops) stands for the end. Of a product that reads it
// as a late operand, what comes behind the product counts in the product's place.
func (w *work) meets() []int {
	g := w.g
	n := len(g.Ops)
	next, depth := make([]int, n+1), make([]int, n+1)
	meet := func(a, b int) int {
		for a != b {
			if depth[a] < depth[b] {
				a, b = b, a
			}
			a = next[a]
		}
		return a
	}
	for i := n - 1; i >= 0; i-- {
		at := -1
		reach := func(to int) {
			if at < 0 {
				at = to
			} else {
				at = meet(at, to)
			}
		}
		for _, o := range g.Ops[i].Outputs {
			if g.IsOutput(o) {
				reach(n)
			}
			for _, c := range g.Tensor(o).Consumers {
				if op := g.Op(c); g.OnMatrixUnit(op) && !slices.Contains(op.Inputs[:2], o) {
					reach(next[c])
				} else {
					reach(int(c))
				}
			}
		}
		next[i] = max(at, 0)
		if at < 0 { // nobody reads it
			next[i] = n
		}
		depth[i] = depth[next[i]] + 1
	}
	return next
}

// series cuts the network at operators in a row, each of which all paths pass, and behind
// which every layer begins anew. What lies between two cuts must end before what lies
// behind the second begins: in each kernel, and so the times of the stretches add up. It
// returns the row with the largest sum of those that begin at the operators that read no
// other, with the stretch behind the last cut under the number len(ops).
func (w *work) series() []cut {
	g := w.g
	n := len(g.Ops)
	next, ends := w.next, w.ends
	var best []cut
	most := 0.0
	tried := map[int]bool{}
	for s := range g.Ops {
		if len(w.links[s]) > 0 {
			continue
		}
		first := s
		for first < n && !ends[first] {
			first = next[first]
		}
		if tried[first] {
			continue
		}
		tried[first] = true
		var row []cut
		sum := 0.0
		for from, to := -1, first; ; from, to = to, next[to] {
			for to < n && !ends[to] {
				to = next[to]
			}
			c := cut{model.OpID(to), w.stretch(from, to)}
			row, sum = append(row, c), sum+c.seconds
			if to == n {
				break
			}
		}
		if sum > most {
			best, most = row, sum
		}
	}
	return best
}

// stretch bounds the time of the operators that must run behind the operator from (-1: all)
// and before the end of to: those of which every element needs something of from, as far as
// all their paths pass to, and to itself.
func (w *work) stretch(from, to int) float64 {
	n := len(w.ops)
	last := min(to, n-1)
	inside, behind := make([]bool, n), make([]bool, n)
	if from < 0 {
		for u := range last + 1 {
			inside[u] = w.passes(u, to)
		}
	} else {
		behind[from] = true
		for u := from; u <= last; u++ {
			if behind[u] {
				for _, r := range w.readers[u] {
					behind[r] = true
				}
				inside[u] = u > from && w.passes(u, to)
			}
		}
		if to < n {
			inside[to] = true
		}
	}
	var list []int
	for u := max(0, from); u <= last; u++ {
		if inside[u] {
			list = append(list, u)
		}
	}
	sum := func(of func(u int) bool) float64 {
		var t best
		for _, u := range list {
			if of(u) {
				for k, x := range w.ops[u] {
					t[k] += x
				}
			}
		}
		return t.most()
	}
	// What all paths of lead to an operator that begins a layer runs before it, and what reads
	// from one that ends a layer behind it.
	release, after, before := make([]float64, n), make([]float64, n), make([]float64, n)
	for _, i := range list {
		if w.begins(i) {
			release[i] = sum(func(u int) bool { return u < i && w.passes(u, i) })
		}
		if w.ends[i] {
			clear(behind)
			behind[i] = true
			for u := i; u <= last; u++ {
				if behind[u] && inside[u] {
					for _, r := range w.readers[u] {
						behind[r] = true
					}
				}
			}
			after[i] = sum(func(u int) bool { return u > i && behind[u] })
			before[i] = sum(func(u int) bool { return u > i && u < to && behind[u] })
		}
	}
	return math.Max(sum(func(int) bool { return true }), w.chain(release, after, &part{inside, to, before}))
}

// passes reports whether all paths from an operator lead to another one with a larger number.
func (w *work) passes(u, to int) bool {
	for u < to {
		u = w.next[u]
	}
	return u == to
}

// begins reports whether an operator is the first of its layer in every schedule.
func (w *work) begins(i int) bool {
	return !slices.ContainsFunc(w.links[i], func(l link) bool { return l.fused })
}

// sumFrom returns the sums of the cuts from each one on.
func sumFrom(row []cut) []float64 {
	sums := make([]float64, len(row)+1)
	for k, c := range slices.Backward(row) {
		sums[k] = sums[k+1] + c.seconds
	}
	return sums
}
