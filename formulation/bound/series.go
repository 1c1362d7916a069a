package bound

import (
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A cut of a row is an operator behind which every layer begins anew, or the end, len(ops), with a bound on the time
// of the stretch from the cut before it, whatever runs before and behind that.
type cut struct {
	op      model.OpID
	seconds float64
}

// shape finds out what lies before and behind operators.
func (w *work) shape() {
	n := len(w.g.Ops)
	w.next, w.ends, w.readers = w.meets(), make([]bool, n), make([][]int, n)
	w.led, w.place = make([]int, n+1), make([]int, n+1)
	for i := range n {
		w.led[i]++
		w.led[w.next[i]] += w.led[i]
	}
	free := make([]int, n+1)
	for i, to := range slices.Backward(w.next[:n]) {
		w.place[i] = w.place[to] + 1 + free[to]
		free[to] += w.led[i]
	}
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
				if op := g.Op(c); comesLate(g, op, slices.Index(op.Inputs, o)) {
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

// A series cuts the network at operators, of which all paths from one lead to the next, and behind which every layer
// begins anew. What lies between two cuts must end before what lies behind the second begins: in each kernel, and so
// the times of the stretches add up.
type series struct {
	w    *work
	cuts []int // ascending; the last is the end, len(ops)
	// By cut: the next one, the stretch between the two, and the stretches from there to the end.
	next         []int
	step, behind []float64
	// until is the largest sum of stretches up to a cut. The last of them begins behind the cut from; with -1 there is
	// one stretch, which has all that leads to the cut.
	until []float64
	from  []int
}

// series finds the cuts behind the operators that read no other. The first stretch of a row may go up to any of its
// cuts: so what leads to that cut alone, such as a branch from another input, counts there.
func (w *work) series() *series {
	if w.row != nil {
		return w.row
	}
	n := len(w.g.Ops)
	s := &series{w: w, next: make([]int, n+1), step: make([]float64, n+1), behind: make([]float64, n+1),
		until: make([]float64, n+1), from: slices.Repeat([]int{-1}, n+1)}
	ends := func(to int) int {
		for to < n && !w.ends[to] {
			to = w.next[to]
		}
		return to
	}
	cut, entry := make([]bool, n+1), make([]bool, n+1)
	for i := range n {
		if len(w.links[i]) == 0 {
			first := ends(i)
			cut[first], entry[first] = true, true
		}
	}
	for c := range n + 1 {
		if !cut[c] {
			continue
		}
		s.cuts = append(s.cuts, c)
		if entry[c] {
			if seconds, _ := w.stretch(-1, c); s.from[c] < 0 || seconds > s.until[c] {
				s.until[c], s.from[c] = seconds, -1
			}
		}
		if c == n {
			break
		}
		to := ends(w.next[c])
		seconds, many := w.stretch(c, to)
		s.next[c], s.step[c] = to, seconds
		if !cut[to] || s.until[c]+seconds > s.until[to] {
			s.until[to], s.from[to] = s.until[c]+seconds, c
		}
		cut[to], entry[to] = true, entry[to] || w.led[to] > w.led[c]+many // others lead there
	}
	for _, c := range slices.Backward(s.cuts) {
		if c < n {
			s.behind[c] = s.step[c] + s.behind[s.next[c]]
		}
	}
	w.row = s
	return s
}

// all is the sum of all stretches of the row with the largest sum.
func (s *series) all() float64 { return s.until[len(s.w.g.Ops)] }

// through is the row with most in front of a cut, and all cuts behind it; that of the end is the row with most.
func (s *series) through(c int) (row []cut) {
	for at := c; at >= 0; at = s.from[at] {
		seconds := s.until[at]
		if before := s.from[at]; before >= 0 {
			seconds = s.step[before]
		}
		row = append(row, cut{model.OpID(at), seconds})
	}
	slices.Reverse(row)
	for ; c < len(s.w.g.Ops); c = s.next[c] {
		row = append(row, cut{model.OpID(s.next[c]), s.step[c]})
	}
	return row
}

// stretch bounds the time of the operators that must run behind the operator from (-1: all)
// and before the end of to: those of which every element needs something of from, as far as
// all their paths pass to, and to itself. It says how many they are, too.
func (w *work) stretch(from, to int) (seconds float64, many int) {
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
	return math.Max(sum(func(int) bool { return true }), w.chain(release, after, &part{inside, to, before})), len(list)
}

// passes reports whether all paths from an operator lead to another one, or whether it is that.
func (w *work) passes(u, to int) bool {
	return to == len(w.ops) || w.place[to] <= w.place[u] && w.place[u] < w.place[to]+w.led[to]
}

// begins reports whether an operator is the first of its layer in every schedule.
func (w *work) begins(i int) bool {
	return !slices.ContainsFunc(w.links[i], func(l link) bool { return l.fused })
}
