package split

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Columns are the groups of some sequences of atoms, each in a way to split it, with prices that somebody measures.
//
// Kernels run one after the other, so that the time of groups that part a sequence is the sum of what each takes
// behind the one before it. Groups of least sum are a shortest path over columns, of which the last one is the state:
//
//	minimise    sum over arcs (c, d) of p(c, d) f(c, d)
//	subject to  one unit of flow through one sequence, conserved at each column               (1)
//	            f >= 0                                                                        (2)
//
// where d begins at the atom at which c ends, and p(c, d) is the mean of what d took behind c, or else the least that d
// took: a path that looks short because of that is simulated, and then its pairs have prices of their own.
// The matrix is that of a network: vertices of (1), (2) are integral, the value of the linear program is that of the
// integer one, and the root gap is 0.
//
// A column that nobody has measured has the price of the formulas, times what measured ones took of theirs.
// [Columns.Next] is the path that would be shortest if such columns took as little as they may well do; if it has none,
// none has a competitive reduced cost. Columns that do the same and are split alike share their price.
type Columns struct {
	net   *Network
	atoms int
	seq   []int // atoms of each sequence, one behind the other, and a place behind the last
	list  []column
	from  [][]int           // columns, by the place at which they begin
	kinds map[string][]*way // by what groups do
	// ratios have the logarithm of the time over the formula, of measured columns: of all, of those of a like number of
	// atoms, and of those of them that are split alike.
	ratios map[class]*ratio
}

// A class of columns: logarithms of the number of atoms and of the factor, and the dimension.
type class struct{ atoms, factor, dim int }

type ratio struct{ logs, squares, count float64 }

// classes of a way, the widest first.
func (w *way) classes() [3]class {
	like := class{int(math.Log2(float64(w.atoms))), int(math.Log2(float64(max(1, w.Split.Factor)))), -1}
	if w.Split.Factor > 1 {
		like.dim = w.Split.Dim
	}
	return [3]class{{}, {atoms: like.atoms}, like}
}

// estimate is what a way would take that nobody has measured, if it took so many deviations less than it is thought to.
// A class counts by its columns, and like two by the class that it is of.
func (c *Columns) estimate(w *way, deviations float64) float64 {
	shift, deviation := 0.0, 0.5
	for _, k := range w.classes() {
		if r := c.ratios[k]; r != nil {
			own := r.logs / r.count
			spread := math.Sqrt(max(0, r.squares/r.count-own*own))
			shift = (r.logs + 2*shift) / (r.count + 2)
			deviation = (r.count*spread + 2*deviation) / (r.count + 2)
		}
	}
	return w.Seconds * math.Exp(shift-deviations*max(leastDeviation, deviation))
}

// A column is an interval of a sequence, half-open.
type column struct {
	lo, hi int
	floor  float64 // seconds that it takes at least
	guess  float64 // what it may be thought to take at least
	*way
}

// A way to split groups that do the same.
type way struct {
	Way
	atoms  int
	times  int            // measured
	least  float64        // of what was measured
	behind map[*way]*mean // by the column before; nil: the first
}

// mean is that of some measurements.
type mean struct{ times, value float64 }

func (m *mean) add(x float64) {
	m.times++
	m.value += (x - m.value) / m.times
}

// leastDeviation is of the logarithm of a time over its estimate.
const leastDeviation = 0.2

// mostIntervals bounds the groups that are listed.
const mostIntervals = 4000

// Columns lists the groups of the sequences in which each of the given groupings runs, of the order of the atoms and of
// the one that visits operands the other way round, and the paths of the given groupings: all intervals, or where they
// are very many the short ones and those that begin and end where given groups do. A column takes at least launch for
// each kernel and, in seconds too, the first of what least says of its operators; of one that nobody has measured no
// less than launches and the second is thought possible. The list ends where timed does, but has what is given.
func (n *Network) Columns(ctx, timed context.Context, given []*schedule.Grouping, launch float64,
	least func(ops []model.OpID) [2]float64) (c *Columns, paths [][]int, err error) {
	c = &Columns{net: n, atoms: len(n.Problem.Reads), kinds: map[string][]*way{}, ratios: map[class]*ratio{}}
	var orders [][]int
	list := func(order []int) int {
		k := slices.IndexFunc(orders, func(x []int) bool { return slices.Equal(x, order) })
		if k < 0 {
			k, orders = len(orders), append(orders, order)
		}
		return k * (c.atoms + 1) // where it begins
	}
	ends, begins := map[int]bool{}, make([]int, len(given))
	for i, gr := range given {
		var order []int
		for _, sg := range gr.Groups {
			order = append(order, n.atoms(sg)...)
		}
		begins[i] = list(order)
		at := begins[i]
		for _, sg := range gr.Groups {
			ends[at] = true
			at += len(n.atoms(sg))
			ends[at] = true
		}
	}
	for _, order := range n.orders() {
		list(order)
	}
	longest := 1
	for count := c.atoms; longest < c.atoms && count+c.atoms-longest <= mostIntervals/len(orders); longest++ {
		count += c.atoms - longest
	}
	for _, order := range orders {
		c.seq = append(append(c.seq, order...), -1)
	}
	c.from = make([][]int, len(c.seq))
	namer, floors := n.Namer(), map[string][2]float64{}
	add := func(lo, hi int, of [2]float64, w *way) int {
		launches := launch * float64(max(1, w.Split.Factor))
		return c.add(column{lo, hi, launches + of[0], launches + of[1], w})
	}
	for at := range c.seq {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if timed.Err() != nil {
			break
		}
		lo := at % (c.atoms + 1)
		for hi := lo + 1; hi <= c.atoms; hi++ {
			if hi-lo > longest && !(ends[at] && ends[at+hi-lo]) {
				continue
			}
			set := slices.Sorted(slices.Values(c.seq[at : at+hi-lo]))
			if !n.connected(set) {
				continue
			}
			name := namer.Name(set)
			if _, known := c.kinds[name]; !known {
				c.kinds[name], floors[name] = nil, least(n.operators(set))
				for _, w := range n.Ways(set) {
					c.kinds[name] = append(c.kinds[name], &way{Way: w, atoms: hi - lo, behind: map[*way]*mean{}})
				}
			}
			for _, w := range c.kinds[name] {
				add(at, at+hi-lo, floors[name], w)
			}
		}
	}
	for i, gr := range given {
		var path []int
		at := begins[i]
		for _, sg := range gr.Groups {
			hi := at + len(n.atoms(sg))
			k := slices.IndexFunc(c.from[at], func(k int) bool {
				x := &c.list[k]
				return x.hi == hi && (sg.Factor() == 1 && x.Split.Factor <= 1 ||
					x.Split.Factor == sg.Split.Factor && x.Split.Dim == sg.Split.Dim)
			})
			if k >= 0 {
				k = c.from[at][k]
			} else {
				q := n.p.part(n.atoms(sg), sg.Ops)
				w := &way{Way: Way{sg.Split, n.price(q, sg.Split)}, atoms: hi - at, behind: map[*way]*mean{}}
				k = add(at, hi, least(sg.Ops), w)
			}
			path, at = append(path, k), hi
		}
		paths = append(paths, path)
	}
	return c, paths, nil
}

func (c *Columns) add(x column) int {
	c.list = append(c.list, x)
	c.from[x.lo] = append(c.from[x.lo], len(c.list)-1)
	return len(c.list) - 1
}

// Groups is the grouping of a path.
func (c *Columns) Groups(path []int) *schedule.Grouping {
	out := &schedule.Grouping{}
	for i, k := range path {
		x := &c.list[k]
		sg := c.net.subGraph(i, slices.Sorted(slices.Values(c.seq[x.lo:x.hi])), x.Split)
		out.Groups = append(out.Groups, sg)
	}
	return out
}

// Learn takes what each group of a path took, in picoseconds.
func (c *Columns) Learn(path []int, took []int64) {
	var before *way
	for i, k := range path {
		w := c.list[k].way
		if x := float64(took[i]) * 1e-12; x > 0 {
			if w.times == 0 && w.Seconds > 0 {
				l := math.Log(x / w.Seconds)
				for _, k := range w.classes() {
					if c.ratios[k] == nil {
						c.ratios[k] = &ratio{}
					}
					r := c.ratios[k]
					r.logs, r.squares, r.count = r.logs+l, r.squares+l*l, r.count+1
				}
			}
			if w.times == 0 || x < w.least {
				w.least = x
			}
			w.times++
			if w.behind[before] == nil {
				w.behind[before] = &mean{}
			}
			w.behind[before].add(x)
		}
		before = w
	}
}

// Avoid makes the columns of a path dearer that nobody has measured: some of them can't be had.
func (c *Columns) Avoid(path []int) {
	for _, k := range path {
		if w := c.list[k].way; w.times == 0 {
			w.Seconds *= 2
		}
	}
}

// Size counts the columns, and those of them that have a measured price.
func (c *Columns) Size() (listed, priced int) {
	for i := range c.list {
		if c.list[i].times > 0 {
			priced++
		}
	}
	return len(c.list), priced
}

// shortest is a shortest path under prices of columns alone; infinite ones are none.
func (c *Columns) shortest(price func(k int) float64) (path []int, seconds float64) {
	best, by := make([]float64, len(c.seq)), make([]int, len(c.seq))
	last := -1
	seconds = math.Inf(1)
	for at := range c.seq {
		if at%(c.atoms+1) != 0 {
			continue
		}
		end := at + c.atoms
		for i := at + 1; i <= end; i++ {
			best[i] = math.Inf(1)
		}
		for lo := at; lo < end; lo++ {
			for _, k := range c.from[lo] {
				if x, hi := best[lo]+price(k), c.list[k].hi; x < best[hi] {
					best[hi], by[hi] = x, k
				}
			}
		}
		if best[end] < seconds {
			seconds, last = best[end], end
		}
	}
	if last < 0 {
		return nil, seconds
	}
	for at := last; at%(c.atoms+1) > 0; at = c.list[by[at]].lo {
		path = append(path, by[at])
	}
	slices.Reverse(path)
	return path, seconds
}

// Bound is a lower bound of the class: the shortest path if each column takes its floor.
func (c *Columns) Bound() float64 {
	_, seconds := c.shortest(func(k int) float64 { return c.list[k].floor })
	return seconds
}

// Next is a shortest path if a column that nobody has measured takes so many deviations less than it is thought to;
// those that banned holds are not to be had. fresh are such columns on it.
func (c *Columns) Next(deviations float64, banned map[int]bool) (path, fresh []int) {
	path, _ = c.shortest(func(k int) float64 {
		x := &c.list[k]
		switch {
		case x.times > 0:
			return x.least
		case banned[k]:
			return math.Inf(1)
		}
		return max(x.guess, c.estimate(x.way, deviations))
	})
	for _, k := range path {
		if c.list[k].times == 0 {
			fresh = append(fresh, k)
		}
	}
	return path, fresh
}

// A Master is the answer of the linear program over priced columns.
type Master struct {
	Path          []int
	Seconds       float64 // of the program, and of its relaxation
	Rows, Columns int
}

// Best solves the program over the columns that have a measured price; under other prices where rng is not nil, each by
// some percent.
func (c *Columns) Best(rng *rand.Rand) Master {
	drawn := map[*way]float64{}
	if rng != nil {
		for i := range c.list {
			if w := c.list[i].way; w.times > 0 && drawn[w] == 0 {
				drawn[w] = math.Exp(0.03 * rng.NormFloat64())
			}
		}
	}
	ending := make([][]int, len(c.seq)) // columns that are reached, by their end
	cost, by := make([]float64, len(c.list)), make([]int, len(c.list))
	m := Master{Rows: 2, Seconds: math.Inf(1)}
	last := -1
	for lo := range c.seq {
		for _, k := range c.from[lo] {
			w := c.list[k].way
			if w.times == 0 {
				continue
			}
			cost[k], by[k] = math.Inf(1), -1
			try := func(before float64, from int, of *way) {
				m.Columns++
				x := w.least
				if pair := w.behind[of]; pair != nil {
					x = pair.value
				}
				if rng != nil {
					x *= drawn[w]
				}
				if before+x < cost[k] {
					cost[k], by[k] = before+x, from
				}
			}
			if lo%(c.atoms+1) == 0 {
				try(0, -1, nil)
			}
			for _, from := range ending[lo] {
				try(cost[from], from, c.list[from].way)
			}
			if math.IsInf(cost[k], 1) {
				continue
			}
			m.Rows++
			hi := c.list[k].hi
			ending[hi] = append(ending[hi], k)
			if hi%(c.atoms+1) == c.atoms && cost[k] < m.Seconds {
				m.Seconds, last = cost[k], k
			}
		}
	}
	for k := last; k >= 0; k = by[k] {
		m.Path = append(m.Path, k)
	}
	slices.Reverse(m.Path)
	return m
}
