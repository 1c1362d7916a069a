package allocate

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// pricing divides what each buffer costs among the rows that it is in. Whatever the
// division, what the rows cost at least, each by itself, adds up to a bound.
type pricing struct {
	rows  []row
	in    [][]place // of each buffer
	fixed int64     // what forced buffers cost, and demands where nothing is live
	wants []float64 // the share of its rows that would spill each buffer
}

type place struct{ row, at int32 }

// A row is one thing that a section asks for: its demand, or to be no fuller than the capacity.
type row struct {
	section int
	live    []int32 // those of the section that may go and need not
	size    []int64
	pay     []float64 // what each costs here if it goes
	order   []int32   // those that options do not name, the cheapest for its size first
	options []option
}

// An option is a tier of a row: what it costs, and how much must be freed, if of the first
// buffers of the row just those of a set are spilled.
type option struct {
	set        uint32
	need, cost int64
}

const (
	// mostOptions bounds the options of all rows, mostNamed the buffers that a row names.
	mostOptions, mostNamed = 4_000_000, 8
	// mostCovers bounds the choices of a row that one search looks at.
	mostCovers = 2000
	// priceRounds bounds the changes of prices, priceWork the buffers and options that are then
	// looked at in all; fewestRounds come first.
	priceRounds, priceWork, fewestRounds = 1000, 200_000_000, 30
)

// price lists the rows. Where time runs out, stages of the others don't grow.
func (w *sweep) price(ctx context.Context) *pricing {
	n := 0
	for k := range w.sections {
		n += max(1, len(w.demands[k]))
	}
	x := &pricing{fixed: w.always, in: make([][]place, len(w.p.Buffers)), wants: make([]float64, len(w.p.Buffers))}
	for i, forced := range w.forced {
		if forced {
			x.fixed += w.p.Buffers[i].Moved()
		}
	}
	for k := range w.sections {
		demands := w.demands[k]
		if len(demands) == 0 {
			demands = []Demand{{Tiers: []Tier{{}}}}
		}
		for d := range demands {
			most := mostOptions / n
			if solve.Why(ctx) != milp.Complete {
				most = 0
			}
			r := w.row(k, &demands[d], most)
			for at, l := range r.live {
				i := w.sections[k].Live[l].Buffer
				x.in[i] = append(x.in[i], place{int32(len(x.rows)), int32(at)})
			}
			x.rows = append(x.rows, r)
		}
	}
	for i := range x.in {
		for _, p := range x.in[i] {
			x.rows[p.row].pay[p.at] = float64(w.p.Buffers[i].Moved()) / float64(len(x.in[i]))
		}
	}
	return x
}

// row lists what a demand can ask for. Of the buffers by which it grows, those for which the
// limit leaves no room count as if it did not.
func (w *sweep) row(section int, d *Demand, limit int) row {
	need, gone := w.over[section], uint64(0)
	live, at := w.sections[section].Live, make([]int32, len(d.Of))
	var others []int32
	for n, l := range live {
		k := slices.Index(d.Of, l.Buffer)
		switch {
		case w.forced[l.Buffer]:
			if need -= l.Size; k >= 0 {
				gone |= 1 << k
			}
		case w.stays(l.Buffer):
		case k >= 0:
			at[k] = int32(n) + 1
		default:
			others = append(others, int32(n))
		}
	}
	tiers := d.tiers(gone)
	r := row{section: section}
	var bits []int
	for k, n := range at {
		if n > 0 {
			r.live, bits = append(r.live, n-1), append(bits, k)
		}
	}
	named := 0
	for named < len(bits) && named < mostNamed && len(tiers)<<(named+1) <= limit {
		named++
	}
	for set := range 1 << named {
		all, less := gone, need
		for k, bit := range bits {
			if set>>k&1 == 1 {
				all |= 1 << bit
				less -= live[r.live[k]].Size
			}
		}
		tiers := d.tiers(all)
		for k, t := range tiers {
			if k == len(tiers)-1 || tiers[k+1].Cost > t.Cost || tiers[k+1].Free > t.Free {
				r.options = append(r.options, option{uint32(set), less + t.Free, t.Cost})
			}
		}
	}
	r.live = append(r.live, others...)
	r.size, r.pay = make([]int64, len(r.live)), make([]float64, len(r.live))
	for k, n := range r.live {
		if r.size[k] = live[n].Size; k >= named {
			r.order = append(r.order, int32(k))
		}
	}
	return r
}

// A cover is the search for the cheapest of some buffers that free enough.
type cover struct {
	size        []int64 // the cheapest for its size first
	pay         []float64
	sizes       []int64 // of so many of the first
	pays        []float64
	taken, best []bool
	value       float64 // of the best
	improved    bool
	left        int // of the choices that may be looked at
}

// part is the least cost of so many bytes from buffers from k on, the last of which may go in part.
func (c *cover) part(k int, need int64) float64 {
	if need <= 0 {
		return 0
	}
	need += c.sizes[k]
	n, _ := slices.BinarySearch(c.sizes, need)
	if n == len(c.sizes) {
		return math.Inf(1)
	}
	return c.pays[n] - c.pays[k] - c.pay[n-1]*float64(c.sizes[n]-need)/float64(c.size[n-1])
}

// search decides on the buffers from k on. Where it must end, it counts what is left in part.
func (c *cover) search(k int, need int64, paid float64) {
	part := c.part(k, need)
	if paid+part >= c.value-1e-9 {
		return
	}
	if c.left--; need <= 0 || c.left < 0 {
		c.value, c.improved = paid+part, true
		copy(c.best, c.taken)
		return
	}
	c.taken[k] = true
	c.search(k+1, need-c.size[k], paid+c.pay[k])
	c.taken[k] = false
	next := k + 1
	for next < len(c.size) && c.size[next] == c.size[k] && c.pay[next] == c.pay[k] {
		next++
	}
	c.search(next, need, paid)
}

// least returns the row's least cost at its prices and marks the buffers that it spills.
func (r *row) least(c *cover, share []bool) float64 {
	named := len(r.live) - len(r.order)
	slices.SortStableFunc(r.order, func(a, b int32) int {
		return cmp.Compare(r.pay[a]*float64(r.size[b]), r.pay[b]*float64(r.size[a]))
	})
	*c = cover{size: c.size[:0], pay: c.pay[:0], sizes: append(c.sizes[:0], 0), pays: append(c.pays[:0], 0),
		taken: slices.Grow(c.taken[:0], len(r.order))[:len(r.order)],
		best:  slices.Grow(c.best[:0], len(r.order))[:len(r.order)], value: math.Inf(1), left: mostCovers}
	clear(c.taken)
	first := 0 // those that cost nothing or less go
	for k, n := range r.order {
		c.size, c.pay = append(c.size, r.size[n]), append(c.pay, r.pay[n])
		c.sizes, c.pays = append(c.sizes, c.sizes[k]+r.size[n]), append(c.pays, c.pays[k]+r.pay[n])
		if r.pay[n] <= 0 {
			first, c.taken[k] = k+1, true
		}
	}
	sums := []float64{c.pays[first]}
	for k := range named {
		for _, sum := range sums {
			sums = append(sums, sum+r.pay[k])
		}
	}
	type guess struct {
		cost   float64
		option int
	}
	guesses := make([]guess, len(r.options))
	for k, o := range r.options {
		guesses[k] = guess{sums[o.set] + float64(o.cost) + c.part(first, o.need-c.sizes[first]), k}
	}
	slices.SortFunc(guesses,
		func(a, b guess) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.option, b.option)) })
	for _, g := range guesses {
		if g.cost >= c.value {
			break
		}
		o := r.options[g.option]
		c.improved = false
		if c.search(first, o.need-c.sizes[first], sums[o.set]+float64(o.cost)); c.improved {
			for k := range named {
				share[k] = o.set>>k&1 == 1
			}
			for k, n := range r.order {
				share[n] = c.best[k]
			}
		}
	}
	return c.value
}

// improve changes prices, so that the bound rises. choose is told of what rows want now and then,
// and gives a cost that can be had.
func (x *pricing) improve(ctx context.Context, choose func() int64) {
	work := 1
	shares, best := make([][]bool, len(x.rows)), make([][]float64, len(x.rows))
	for k := range x.rows {
		r := &x.rows[k]
		work += len(r.live) + len(r.options)
		shares[k], best[k] = make([]bool, len(r.live)), slices.Clone(r.pay)
	}
	var c cover
	bound, upper, step, idle := math.Inf(-1), math.Inf(1), 1.0, 0
	rounds := min(priceRounds, max(fewestRounds, priceWork/work))
	for round := 0; round < rounds && step > 1e-3 && solve.Why(ctx) == milp.Complete; round++ {
		sum := float64(x.fixed)
		for k := range x.rows {
			sum += x.rows[k].least(&c, shares[k])
		}
		norm := x.want(shares)
		if round%20 == 0 {
			upper = min(upper, float64(choose()))
		}
		if idle++; sum > bound {
			if sum > bound+1e-4*math.Abs(bound) {
				idle = 0
			}
			bound = sum
			for k := range x.rows {
				copy(best[k], x.rows[k].pay)
			}
		}
		if norm < 1e-9 || upper-sum < 1 {
			break
		}
		if idle > 7 {
			step, idle = step/2, 0
			for k := range x.rows {
				copy(x.rows[k].pay, best[k])
			}
			continue
		}
		by := step * (upper - sum) / norm
		for i, places := range x.in {
			for _, p := range places {
				d := -x.wants[i]
				if shares[p.row][p.at] {
					d++
				}
				x.rows[p.row].pay[p.at] += by * d
			}
		}
	}
	for k := range x.rows {
		copy(x.rows[k].pay, best[k])
	}
}

// want sets the share of rows that would spill each buffer; it returns how far they disagree.
func (x *pricing) want(shares [][]bool) float64 {
	norm := 0.0
	for i, places := range x.in {
		n := 0.0
		for _, p := range places {
			if shares[p.row][p.at] {
				n++
			}
		}
		x.wants[i] = n / float64(max(1, len(places)))
		norm += n * (1 - x.wants[i])
	}
	return norm
}

// whole makes prices whole numbers. It gives what each section has for what lives in it, and what it then costs at
// least.
func (w *sweep) whole(x *pricing) (pays [][]int64, least []int64) {
	for i, places := range x.in {
		left := float64(w.p.Buffers[i].Moved())
		for k, p := range places {
			pay := &x.rows[p.row].pay[p.at]
			if *pay = math.Round(*pay); k == len(places)-1 {
				*pay = left
			}
			left -= *pay
		}
	}
	pays, least = make([][]int64, len(w.sections)), make([]int64, len(w.sections))
	for k, s := range w.sections {
		pays[k] = make([]int64, len(s.Live))
	}
	var c cover
	for k := range x.rows {
		r := &x.rows[k]
		v := r.least(&c, make([]bool, len(r.live)))
		least[r.section] += int64(math.Ceil(v - 1e-12*math.Abs(v) - 1e-3))
		for at, l := range r.live {
			pays[r.section][l] += int64(r.pay[at])
		}
	}
	return pays, least
}

// keep starts with all spilled that may be, and keeps one buffer after the other where that costs less, first those
// that the fewest rows would spill. It gives nil if some section is too full even with all spilled.
func (w *sweep) keep(x *pricing) (spilled []bool, total int64) {
	spilled, total = slices.Clone(w.forced), x.fixed
	var order []int
	for i := range spilled {
		if len(x.in[i]) > 0 {
			spilled[i] = true
			order = append(order, i)
			total += w.p.Buffers[i].Moved()
		}
	}
	free, costs := make([]int64, len(w.sections)), make([]int64, len(w.sections))
	ask := func(k int) (sum int64, ok bool) {
		ok = free[k] >= 0
		for d := 0; d < len(w.demands[k]) && ok; d++ {
			var cost int64
			cost, ok = w.demands[k][d].cost(free[k], func(i int) bool { return spilled[i] })
			sum += cost
		}
		return sum, ok
	}
	for k, s := range w.sections {
		free[k] = -w.over[k]
		for _, l := range s.Live {
			if spilled[l.Buffer] {
				free[k] += l.Size
			}
		}
		cost, ok := ask(k)
		if !ok {
			return nil, 0
		}
		costs[k] = cost
		total += cost
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(x.wants[a], x.wants[b]), cmp.Compare(w.p.Buffers[b].Moved(), w.p.Buffers[a].Moved()))
	})
	var after []int64
	for range 2 {
		for _, i := range order {
			if !spilled[i] {
				continue
			}
			spilled[i] = false
			more, ok := -w.p.Buffers[i].Moved(), true
			after = after[:0]
			w.each(x, i, func(k int, size int64) {
				free[k] -= size
				cost, can := ask(k)
				ok = ok && can
				more += cost - costs[k]
				after = append(after, cost)
			})
			if ok && more < 0 {
				total += more
				n := 0
				w.each(x, i, func(k int, _ int64) { costs[k], n = after[n], n+1 })
				continue
			}
			spilled[i] = true
			w.each(x, i, func(k int, size int64) { free[k] += size })
		}
	}
	return spilled, total
}

// each visits the sections of a buffer, with what it takes there.
func (w *sweep) each(x *pricing, buffer int, visit func(section int, size int64)) {
	last := -1
	for _, p := range x.in[buffer] {
		if r := &x.rows[p.row]; r.section != last {
			last = r.section
			visit(last, r.size[p.at])
		}
	}
}
