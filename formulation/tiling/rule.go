package tiling

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/model/schedule"
)

// extents lists the largest parts of n in each number of parts that are multiples of a grain, from all of it down.
func extents(n, grain int64) (list []int64) {
	blocks := ceilDiv(n, grain)
	for e := blocks; ; e = ceilDiv(blocks, ceilDiv(blocks, e-1)) {
		if list = append(list, e*grain); e == 1 {
			return list
		}
	}
}

// thin keeps the extents that differ by a quarter at least, and the last.
func thin(list []int64) []int64 {
	kept := list[:1:1]
	for i, e := range list[1:] {
		if e*5 <= kept[len(kept)-1]*4 || i == len(list)-2 {
			kept = append(kept, e)
		}
	}
	return kept
}

// fewRows are extents of tiles of rows that differ by a quarter at least, and those of which none crosses from one
// index of an outer dimension to the next.
func (p *Problem) fewRows(cores [4]int64) []int64 {
	_, m, _ := p.part(cores)
	few := p.fewExtents(m, 1)
	if len(p.rowDims) < 2 {
		return few
	}
	return p.list(cores[1], 0, func() []int64 {
		list, inner := slices.Clone(few), m
		for _, extent := range p.tileBox(cores[1], 1, nil) {
			inner /= extent
			for _, n := range p.fewExtents(extent, 1) {
				if extent%n == 0 {
					list = append(list, n*inner)
				}
			}
		}
		slices.SortFunc(list, func(a, b int64) int { return cmp.Compare(b, a) })
		return slices.Compact(list)
	})
}

// split is a way to divide a product over cores.
type split struct {
	cores       [4]int64
	floor, hope float64
}

func (p *Problem) split(cores [4]int64) split {
	floor, hope := p.floor(cores)
	return split{cores, floor, hope}
}

// parts lists the numbers of parts, up to so many, that no lesser number has the same largest part of.
func parts(extent, most int64, table []int64) (list []int64) {
	for n := int64(1); n <= min(extent, most); n++ {
		if fewest(extent, n, table) == n {
			list = append(list, n)
		}
	}
	return list
}

// splits lists the ways to divide a product over cores, the most hopeful ahead. Of several numbers of parts with
// the same largest part, the least is listed.
func (p *Problem) splits(slicings []int64) (list []split) {
	if p.Kept() {
		return []split{p.split(p.kept)}
	}
	for _, ps := range slicings {
		for _, pr := range parts(p.Reps, p.Cores/ps, nil) {
			for _, pm := range parts(p.M, p.Cores/ps/pr, p.rowParts) {
				for most := p.Cores / ps / pr / pm; most > 0; most = most * 3 / 4 {
					list = append(list, p.split([4]int64{pr, pm, fewest(p.N, min(p.N, most), p.columnParts), ps}))
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b split) int {
		return cmp.Or(cmp.Compare(a.hope, b.hope), slices.Compare(a.cores[:], b.cores[:]))
	})
	return slices.CompactFunc(list, func(a, b split) bool { return a.cores == b.cores })
}

// slices lists into how many slices cores may divide the reduction, the most first: each has a tile of it at least.
func (p *Problem) slices() (list []int64) {
	for n := min(p.Deep, p.Cores, p.K/p.Grain()); n > 1; n-- {
		if p.Deep%n == 0 {
			list = append(list, n)
		}
	}
	return append(list, 1)
}

// floor is a lower bound on all tilings with these cores: all products in blocks of the unit, each operand and
// result once. The hope is more by a part of what is not the longest: what cores wait for adds to what they do.
func (p *Problem) floor(cores [4]int64) (floor, hope float64) {
	c := p.busiest(cores)
	r, m, n, reps, rows, columns := c.r, c.m, c.n, c.reps, c.rows, c.cols
	pr, pm, pn := p.spread(cores)
	ps := float64(sharers(cores))
	var in, llb, activations, weights float64
	move := func(from Level, core, count, others float64, ddr *float64) {
		all, read := core*count, core*count
		if !p.Broadcast {
			read *= others
		}
		switch {
		case from == L1:
		case p.LLB == 0:
			in, *ddr = in+core, *ddr+read
		default:
			in, llb = in+core, llb+read
			if from == DDR {
				*ddr, llb = *ddr+all, llb+all
			}
		}
	}
	move(p.RowsFrom, rows, pr*pm*ps, pn, &activations)
	if p.Constant {
		move(p.ColumnsFrom, columns, pr*pn*ps, pm, &weights)
	} else {
		move(p.ColumnsFrom, columns, pr*pn*ps, pm, &activations)
	}
	out, results := 0.0, reps*float64(m*n*p.ResultBytes)
	if p.To != L1 {
		out, llb = results, llb+results*pr*pm*pn
		if p.To == DDR {
			activations, llb = activations+results*pr*pm*pn, llb+results*pr*pm*pn
		}
	}
	unit := c.unitFloor(p, 1, 0)
	gather := 0.0
	if ps > 1 {
		sums := p.others(cores, r*m*n)
		gather, llb = 2*p.L1Latency+p.Sync+sums/p.In, llb+2*sums*pr*pm*pn
	}
	floor = max(unit, in/p.In, out/p.Out+gather, llb/p.LLBRate, activations/p.DDRActivations+weights/p.DDRWeights-p.Head)
	return floor, floor + (unit+max(in/p.In, llb/p.LLBRate)+out/p.Out)/8 + gather
}

// spread is over how many cores each part is divided, as numbers.
func (p *Problem) spread(cores [4]int64) (pr, pm, pn float64) {
	return float64(min(cores[0], p.Reps)), float64(min(cores[1], p.M)), float64(min(cores[2], p.N))
}

// unitFloor is the least time of the matrix unit with rows in so many tiles and so many commands.
func (c *busiest) unitFloor(p *Problem, tiles int64, commands float64) float64 {
	return (c.blocks*max(float64(c.m)*p.Row, p.Load*float64(tiles)) + commands*p.Fill) * c.share / p.Clock
}

// busiest is the busiest core's part of a product, the bytes of its operands, each once, and the elements of one of its
// tiles of so many rows.
type busiest struct {
	cores                          [4]int64
	r, m, n, depth, tileRows, tile int64
	reps, rows, cols               float64
	blocks, share                  float64 // of the matrix unit, in all products; how many cores have one
}

func (p *Problem) busiest(cores [4]int64) *busiest {
	r, m, n := p.part(cores)
	k := p.depth(cores)
	c := &busiest{cores: cores, r: r, m: m, n: n, depth: k, reps: float64(r), cols: float64(r * n * k * p.ColumnBytes)}
	pr, pm, pn := p.spread(cores)
	c.blocks = float64(r) * float64(ceilDiv(n, p.Machine.Columns)*ceilDiv(k, p.Machine.Rows))
	c.share = float64(ceilDiv(int64(pr*pm*pn)*sharers(cores), p.MatrixUnits))
	if c.rows = float64(r * m * k * p.RowBytes); p.Window != nil { // between small tiles may be gaps that none needs
		images, lines, across := p.tileLines(cores[1], 1)
		w := p.Window
		c.rows = float64(r * images * ceilDiv(k, w.Height*w.Width) * w.fewest(lines, w.StrideHeight, w.Height) *
			w.fewest(across, w.StrideWidth, w.Width) * p.RowBytes)
	}
	return c
}

// tileFloor is a lower bound on all tilings with a division over cores and largest tiles of rows and columns;
// +Inf: none fits. The tile of the reduction is tk or, if that is 0, as long as the L1 and the ring allow, and
// operands pass as often as the better order of the loops has it. It stops at the first bound that reaches the limit.
func (p *Problem) tileFloor(c *busiest, tm, tn, tk int64, limit float64) float64 {
	cores, r, m, n, depth, reps, rows, cols := c.cores, c.r, c.m, c.n, c.depth, c.reps, c.rows, c.cols
	tiles, columns := ceilDiv(m, tm), ceilDiv(n, tn)
	tn, tk = min(tn, n), min(tk, depth)
	sums := int64(p.others(cores, tm*tn))
	if p.To != L1 {
		sums += tm * tn * p.ResultBytes
	}
	free, ring := max(p.Data, p.Shared)-sums, max(p.Ring, p.Shared-sums)
	if free < 0 {
		return math.Inf(1)
	}
	row, col := float64(p.RowBytes), float64(p.ColumnBytes) // bytes of an element
	if p.Window != nil || len(p.rowDims) > 1 {              // with halos
		if c.tileRows != tm {
			c.tileRows, c.tile = tm, p.rowElements(cores[1], tiles, depth)
		}
		tile := float64(c.tile * p.RowBytes)
		row, rows = tile/float64(tm*depth), float64(r*tiles)*tile
	}
	k, ps := float64(depth), float64(sharers(cores))
	long := k
	if p.RowsFrom != L1 {
		if most := float64(free) / (float64(tm) * row); most < k {
			long = min(long, most/2)
		}
	}
	room := ring // of columns
	if !p.Constant {
		room = free
	}
	if p.ColumnsFrom != L1 {
		if most := float64(room) / (float64(tn) * col); most < k {
			long = min(long, most/2)
		}
	}
	if p.Constant && p.RowsFrom != L1 && p.ColumnsFrom != L1 {
		both, all := float64(tm)*row+float64(tn)*col, float64(max(p.Data+p.Ring, p.Shared))
		if long < k || both*k > all-float64(sums) { // two tiles of each, and sums that are not complete
			long = min(long, (all-p.others(cores, tm*tn)-float64(tm*tn*schedule.AccumulatorBytes))/2/both)
		}
	}
	if long < k && long < float64(p.Grain()) {
		return math.Inf(1)
	}
	if tk > 0 {
		if float64(tk) > long && long < k {
			return math.Inf(1)
		}
		long = float64(tk)
	}
	steps := math.Ceil(k / long)
	commands := float64(r*tiles*columns) * steps
	unit := c.unitFloor(p, tiles, commands)
	if unit >= limit {
		return unit
	}
	// Loads by order: an operand comes once if all of it that comes round stays.
	again := func(stays bool, times int64) float64 {
		if stays {
			return 1
		}
		return float64(times)
	}
	fitsRows := func(m int64) bool { return float64(m)*k*row <= float64(free) }
	lack := max(0, 1-float64(free)/(float64(tm)*k*row)) // share of a panel of rows that the L1 has no room for
	if p.frugal && lack > 0 {
		lack = 1
	}
	fitsCols := func(n int64) bool { return float64(n)*k*col <= float64(room) || p.LLB == 0 && p.Home > 0 }
	pr, pm, pn := p.spread(cores)
	results := reps * float64(m*n*p.ResultBytes) * pr * pm * pn
	best := math.Inf(1)
	for _, columnsFirst := range [2]bool{false, true} {
		var rowTimes, colTimes float64
		if columnsFirst {
			rowTimes, colTimes = again(columns == 1 || fitsRows(m*r), columns), again(tiles == 1 || fitsCols(tn), tiles)
		} else {
			rowTimes, colTimes = 1+float64(columns-1)*lack, again(tiles == 1 || fitsCols(n), tiles)
		}
		t, llb := 0.0, 0.0
		if p.RowsFrom != L1 {
			t += rowTimes * loading(reps*float64(tiles)*steps, p.L1Latency, rows/p.In, p.L1Loads)
			llb += rowTimes * rows * pr * pm * ps * again(p.Broadcast, int64(pn))
		}
		if p.ColumnsFrom != L1 {
			t += colTimes * loading(reps*float64(columns)*steps, p.L1Latency, cols/p.In, p.L1Loads)
			llb += colTimes * cols * pr * pn * ps * again(p.Broadcast, int64(pm))
		}
		ddr := p.ddrFloor(rows*pr*pm*ps, cols*pr*pn*ps, results, rowTimes, colTimes, float64(r*tiles), float64(columns),
			columnsFirst)
		best = min(best, max(t, llb/p.LLBRate, ddr-p.Head))
	}
	// The first loads come before all that, the last results behind.
	ends := 0.0
	for _, from := range [2]Level{p.RowsFrom, p.ColumnsFrom} {
		if p.LLB > 0 && from == DDR {
			ends += min(p.DDRLatency, p.L1Latency)
		}
	}
	if p.DDRLoads > 1 || p.L1Loads > 1 { // latencies of the two overlap
		ends = min(ends, min(p.DDRLatency, p.L1Latency))
	}
	ends = max(0, ends-p.Head)
	if p.To != L1 {
		ends += p.L1Latency + float64(m*n*p.ResultBytes)/float64(ceilDiv(m, tm)*columns)/p.Out
		if p.LLB > 0 && p.To == DDR {
			ends += p.DDRLatency
		}
	}
	if ps > 1 {
		ends += 2*p.L1Latency + p.Sync
	}
	return max(unit, best) + ends
}

// ddrFloor is the least time of the DDR behind an LLB for the bytes of rows, columns and results of all cores,
// where operands pass so often: what the LLB can hold need not come again.
func (p *Problem) ddrFloor(rows, cols, results, rowTimes, colTimes, tiles, columns float64,
	columnsFirst bool) float64 {
	if p.LLB == 0 {
		return 0
	}
	t := 0.0
	if p.To == DDR {
		t += results / p.DDRActivations
	}
	if p.RowsFrom == DDR {
		// Others may stay in the LLB, of each tile in turn if columns are inside.
		again := (rowTimes - 1) * rows
		if stay := float64(p.LLB) * 5 / 8; columnsFirst {
			again -= (rowTimes - 1) * stay
		} else {
			again -= (columns - 1) * stay * tiles
		}
		t += (rows + max(0, again)) / p.DDRActivations
	}
	if p.ColumnsFrom == DDR {
		switch {
		case p.Constant:
			round := cols
			if columnsFirst {
				round /= columns
			}
			t += cols * (1 + (colTimes-1)*max(0, 1-float64(p.LLB)/2/round)) / p.DDRWeights
		case cols <= float64(p.LLB)/2:
			t += cols / p.DDRActivations
		default:
			t += cols * colTimes / p.DDRActivations
		}
	}
	return t
}

// Rule chooses a tiling by the closed form: a coarse lattice of tiles for the divisions over cores
// with the least floors, and then, from the best few, steps to neighbours while one is better.
func Rule(p *Problem) (Blocks, error) {
	list, err := Rules(p)
	if err != nil {
		return Blocks{}, err
	}
	return list[0], nil
}

// Rules are Rule's tiling and the next best few that it has come to, which divide the product over the cores
// differently, the best by the closed form ahead: for who can measure them.
func Rules(p *Problem) ([]Blocks, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	var all []timed
	known, limit := map[[2]int64][]int64{}, math.Inf(1)
	for _, deep := range [][]int64{{1}, thin(p.slices())} { // those who share a reduction do not crowd the others out
		if deep[0] == 1 && len(all) > 0 {
			break
		}
		splits := p.splits(deep)
		for _, shared := range slices.Compact([]int64{0, p.Shared}) { // nor those with the machine's ring
			for _, frugal := range [...]bool{true, false} { // nor those that take more of the LLB and L1
				own := *p
				own.Shared, own.frugal, own.known = shared, frugal, known
				r := ruler{p: &own, limit: limit}
				r.search(splits)
				all = append(all, r.best...)
				for _, x := range r.best {
					limit = min(limit, x.seconds)
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("tiling: no tile of a product of %d x %d x %d fits into %d bytes of the L1 and a ring of %d "+
			"for weights", p.M, p.K, p.N, p.Data, p.Ring)
	}
	slices.SortFunc(all, compare)
	var list []Blocks
	for _, x := range all {
		if x.seconds <= 1.25*limit {
			list = append(list, x.Blocks)
		}
	}
	return slices.Compact(list), nil
}

// search finds the best few tilings for some divisions over cores, the most hopeful ahead.
func (r *ruler) search(splits []split) {
	for _, s := range splits {
		if r.tried > ruleTimes || s.hope >= 2*r.limit {
			break
		}
		if s.floor < r.least() {
			r.coarse(s.cores, rulePairs)
		}
	}
	for _, x := range slices.Clone(r.best) {
		r.tried = 0
		r.coarse(x.Cores, math.MaxInt)
	}
	for i := range r.best {
		r.climb(&r.best[i])
	}
}

const (
	ruleTimes = 2000 // evaluations of the closed form in the coarse lattice
	rulePairs = 3    // extents of tiles for each division over cores
	ruleKept  = 3    // tilings that are improved
)

// timed is a tiling with its time.
type timed struct {
	Blocks
	seconds float64
}

// compare orders tilings by time, and equal ones by what they are, so that the order is total.
func compare(a, b timed) int {
	if n := cmp.Compare(a.seconds, b.seconds); n != 0 {
		return n
	}
	flag := map[bool]int{true: 1}
	return cmp.Or(slices.Compare(a.Cores[:], b.Cores[:]), cmp.Compare(a.Rows, b.Rows),
		cmp.Compare(b.Columns, a.Columns), cmp.Compare(b.Reduction, a.Reduction),
		flag[a.ColumnsFirst]-flag[b.ColumnsFirst], flag[a.Stay]-flag[b.Stay],
		cmp.Compare(a.RoomRows, b.RoomRows), cmp.Compare(a.RoomColumns, b.RoomColumns), cmp.Compare(a.Sums, b.Sums),
		slices.Compare(a.Group[:], b.Group[:]), flag[a.Once]-flag[b.Once], cmp.Compare(a.Keep, b.Keep))
}

// extents is the function of that name, and fewExtents those that differ by a quarter at least, each once.
func (p *Problem) extents(n, grain int64) []int64 {
	return p.list(n, grain, func() []int64 { return extents(n, grain) })
}

func (p *Problem) fewExtents(n, grain int64) []int64 {
	return p.list(n, -grain, func() []int64 { return thin(p.extents(n, grain)) })
}

// list computes a list, once for each number and kind where known is set.
func (p *Problem) list(of, kind int64, compute func() []int64) []int64 {
	list, known := p.known[[2]int64{of, kind}]
	if !known {
		if list = compute(); p.known != nil {
			p.known[[2]int64{of, kind}] = list
		}
	}
	return list
}

// ruler is Rule at work.
type ruler struct {
	p     *Problem
	work  work    // of the tiling at hand
	limit float64 // of no interest is what takes as long
	best  []timed // of different divisions over cores, the best first
	tried int
	pairs []pair
}

// pair is the extents of a tile of results, and what no tiling with them is below.
type pair struct {
	floor         float64
	rows, columns int64
}

// least is the time of the best.
func (r *ruler) least() float64 {
	if len(r.best) == 0 {
		return r.limit
	}
	return r.best[0].seconds
}

// try notes a tiling if it fits and is among the best.
func (r *ruler) try(b Blocks, w *work) {
	if !r.p.fits(&b, w) {
		return
	}
	if b.Keep == 0 { // what stays in part takes no turn of others
		r.tried++
	}
	k, limit := slices.IndexFunc(r.best, func(o timed) bool { return o.Cores == b.Cores }), math.Inf(1)
	if k < 0 && len(r.best) == ruleKept {
		k = ruleKept - 1
	}
	if k >= 0 {
		limit = r.best[k].seconds
	}
	x := timed{b, r.p.time(&b, w, limit)}
	if x.seconds > limit || x.seconds == limit && (k < 0 || compare(x, r.best[k]) >= 0) {
		return
	}
	if k >= 0 {
		r.best = slices.Delete(r.best, k, k+1)
	}
	i, _ := slices.BinarySearchFunc(r.best, x, compare)
	r.best = slices.Insert(r.best, i, x)
}

// coarse tries tiles for a division over cores: so many extents of rows and columns, the least floors ahead.
func (r *ruler) coarse(cores [4]int64, pairs int) {
	p := r.p
	c := p.busiest(cores)
	r.pairs = r.pairs[:0]
	columns := p.fewExtents(c.n, p.Machine.Columns)
	for _, tm := range p.fewRows(cores) {
		tiles := ceilDiv(c.m, tm)
		for _, tn := range columns {
			if c.unitFloor(p, tiles, float64(c.r*tiles*ceilDiv(c.n, tn))) >= r.least() {
				break // the fewer columns, the more commands
			}
			if floor := p.tileFloor(c, tm, tn, 0, r.least()); floor < r.least() {
				r.pairs = append(r.pairs, pair{floor, tm, tn})
			}
		}
	}
	slices.SortFunc(r.pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.floor, b.floor), cmp.Compare(b.rows, a.rows), cmp.Compare(b.columns, a.columns))
	})
	ks := p.fewExtents(c.depth, p.Grain())
	for _, x := range r.pairs {
		if x.floor >= r.least() || r.tried > ruleTimes || pairs == 0 {
			return
		}
		before, rows := r.tried, ceilDiv(c.m, x.rows)
		for sums := int64(2); sums > 0; sums-- {
			longest, panel := int64(0), false
			for _, k := range ks {
				b := Blocks{Cores: cores, Rows: rows, Columns: x.columns, Reduction: k, Sums: sums, Group: [2]int64{1, 1}}
				r.work = p.cut(&b)
				b = p.rooms(b, &r.work, false)
				whole := p.rooms(b, &r.work, true)
				// What passes again comes from the DDR again, but for a panel, which may have room beside shorter tiles alone.
				first := p.LLB == 0 && !panel && whole != b && p.fits(&whole, &r.work)
				if longest > 0 && k*3 > longest && !first {
					continue
				}
				if !p.fits(&b, &r.work) {
					continue
				}
				p.each(b, &r.work, r.try)
				panel = panel || first
				if longest > 0 && k*3 <= longest {
					break
				}
				longest = max(longest, k)
			}
		}
		if r.tried > before {
			pairs--
		}
	}
}

// each visits the ways to run tiles of given extents with given sums: orders, what stays, and loads from the DDR of a
// fair size.
func (p *Problem) each(b Blocks, w *work, visit func(Blocks, *work)) {
	group := p.group(&b, w)
	p.orders(b, w, func(b Blocks) {
		b.Group = group
		p.keep(&b, w)
		visit(b, w)
	})
}

// keep lets as many loads of each tile's reduction stay as the LLB has room for, where it has none for all.
func (p *Problem) keep(b *Blocks, w *work) {
	if b.Keep = 0; !b.Once || !p.Constant {
		return
	}
	rows, _ := p.far(b, w)
	load, room := ceilDiv(rows, p.Page), p.gatherable(b, w)
	tiles, loads := p.together(b, w), w.sums/b.Group[0]
	loads -= p.held(b, w) / b.Group[0]
	if most := (room - 2*load) / (tiles * load); most > 0 && (tiles*loads*load > room || loads < w.sums/b.Group[0]) {
		b.Keep = min(most, loads)
	}
}

// orders is each but for the loads from the DDR.
func (p *Problem) orders(b Blocks, w *work, visit func(Blocks)) {
	sums, columns := w.sums, w.columns
	for _, columnsFirst := range []bool{false, true} {
		if columnsFirst && (columns == 1 || w.tiles == 1) {
			continue
		}
		b.ColumnsFirst, b.Stay = columnsFirst, false
		free := p.mayStay(&b, w, p.Ring)
		for _, stay := range []bool{free, true} {
			if b.Stay = stay; stay && !free && !p.mayStay(&b, w, p.Shared) {
				continue
			}
			again := func(x Blocks) {
				x.Once = false
				visit(x)
				if p.LLB > 0 && (p.RowsFrom == DDR && columns > 1 || p.ColumnsFrom == DDR && !p.Constant) {
					x.Once = true
					visit(x)
				}
			}
			again(p.rooms(b, w, false))
			if sums > 2 {
				x := p.rooms(b, w, true)
				again(x)
				if p.partly(&x, w) {
					again(x)
				}
			}
			if free {
				break
			}
		}
	}
}

// rooms is a tiling with room for two tiles of each operand or, of the one that passes again, for a panel along all of
// the reduction.
func (p *Problem) rooms(b Blocks, w *work, panel bool) Blocks {
	b.RoomRows, b.RoomColumns = 2, 2
	switch {
	case w.sums == 1 && w.tiles == 1:
		b.RoomRows = 1
	case panel && !p.Constant && b.ColumnsFirst:
		b.RoomColumns = max(2, w.sums)
	case panel:
		b.RoomRows = max(2, w.sums)
	}
	return b
}

// partly makes room for so much of a panel of rows as the L1 has with all else that a tiling has there, if that is more
// than two tiles, and not all.
func (p *Problem) partly(b *Blocks, w *work) bool {
	if b.ColumnsFirst || p.frugal {
		return false
	}
	if b.RoomRows = 0; p.RowsFrom != L1 {
		left := max(p.Data, p.Shared-max(leastRing, p.ring(b, w))) - p.stage(b, w) // beside all else
		b.RoomRows = left / schedule.Align(w.rowElements*p.RowBytes)
	}
	return b.RoomRows > 2 && b.RoomRows < w.sums
}

// mayStay reports whether weights can stay in a ring of so many bytes.
func (p *Problem) mayStay(b *Blocks, w *work, ring int64) bool {
	if !p.Constant || w.tiles == 1 {
		return false
	}
	x := *b
	x.Stay = true
	return p.ring(&x, w) <= ring
}

// group is the number of tiles of each operand a load from the DDR had better bring: the fewer loads, the less latency;
// the smaller the first, the sooner the cores begin. Loads fill pages of the LLB where they can.
func (p *Problem) group(b *Blocks, w *work) [2]int64 {
	g := [2]int64{1, 1}
	if p.LLB == 0 {
		return g
	}
	one := *b
	one.Group = g
	rows, columns := p.far(&one, w)
	divisors := p.list(w.sums, math.MinInt64, func() []int64 { return schedule.Divisors(w.sums, w.sums) })
	for i, load := range [2]struct {
		bytes, times int64
		rate         float64
	}{{rows, w.tiles, p.DDRActivations}, {columns, w.columns, p.DDRWeights}} {
		best := math.Inf(1)
		for _, d := range divisors {
			if d > 1 && load.bytes*d > p.LLB/8 {
				break
			}
			t := float64(load.times*w.sums/d)*p.DDRLatency/float64(max(1, p.DDRLoads)) + float64(load.bytes*d)/load.rate
			if t < best || load.bytes*g[i] < p.Page {
				best, g[i] = t, d
			}
		}
	}
	return g
}

// SmallerLoads makes the loads of weights from the DDR to the LLB at most half as large, if they can be.
func (p *Problem) SmallerLoads(b *Blocks) bool {
	if !p.Constant || p.LLB == 0 || b.Group[1] == 1 {
		return false
	}
	w := p.cut(b)
	for b.Group[1] /= 2; w.sums%b.Group[1] != 0; b.Group[1]-- {
	}
	return true
}

// climb goes to the best neighbour while that is better.
func (r *ruler) climb(x *timed) {
	for range 40 {
		best := *x
		r.p.neighbours(x.Blocks, true, func(b Blocks, w *work) {
			if r.p.fits(&b, w) {
				if y := (timed{b, r.p.time(&b, w, best.seconds)}); compare(y, best) < 0 {
					best = y
				}
			}
		})
		if compare(best, *x) == 0 {
			return
		}
		*x = best
	}
}

// Neighbours lists the tilings that fit and differ from one in an extent, in the division over cores, or in how tiles
// are run, those of the rule's last steps.
func (p *Problem) Neighbours(b Blocks) (list []Blocks) {
	p.neighbours(b, false, func(x Blocks, w *work) {
		if x != b && p.fits(&x, w) {
			list = append(list, x)
		}
	})
	return list
}

// neighbours visits the tilings that differ in one extent, or in how tiles are run: many twice, unless once is enough.
func (p *Problem) neighbours(b Blocks, once bool, visit func(Blocks, *work)) {
	_, m, n := p.part(b.Cores)
	ks, same, w := p.extents(p.depth(b.Cores), p.Grain()), p.cut(&b), work{}
	again := func(x Blocks) {
		// Where larger tiles do not fit, those of the reduction are as long as the others allow.
		for _, k := range ks {
			if k > x.Reduction {
				continue
			}
			x.Reduction, x.Group = k, [2]int64{1, 1}
			w = p.cut(&x)
			x = p.rooms(x, &w, b.RoomRows > 2 || b.RoomColumns > 2)
			x.Stay = p.mayStay(&x, &w, p.Ring) || x.Stay && p.mayStay(&x, &w, p.Shared) // as they do in a larger ring
			p.keep(&x, &w)
			if p.fits(&x, &w) || b.RoomRows > 2 && p.partly(&x, &w) && p.fits(&x, &w) {
				x.Group = p.group(&x, &w)
				p.keep(&x, &w)
				visit(x, &w)
				return
			}
		}
	}
	steps := func(list, few []int64, at int64, set func(e int64)) {
		i := slices.Index(list, at)
		var near [4]int64
		for j, d := range [4]int{-2, -1, 1, 2} {
			if k := i + d; k >= 0 && k < len(list) {
				near[j] = list[k]
				set(list[k])
			}
		}
		for _, e := range few {
			if !once || !slices.Contains(near[:], e) {
				set(e)
			}
		}
	}
	steps(p.extents(m, 1), p.fewRows(b.Cores), ceilDiv(m, b.Rows),
		func(e int64) { x := b; x.Rows = ceilDiv(m, e); again(x) })
	steps(p.extents(n, p.Machine.Columns), p.fewExtents(n, p.Machine.Columns), b.Columns,
		func(e int64) { x := b; x.Columns = e; again(x) })
	steps(ks, p.fewExtents(p.depth(b.Cores), p.Grain()), b.Reduction, func(e int64) { x := b; x.Reduction = e; again(x) })
	p.each(b, &same, visit)
	for sums := int64(1); sums <= 2; sums++ {
		x := b
		x.Sums = sums
		again(x)
	}
	for i := range 2 {
		for d := int64(1); d <= same.sums && p.LLB > 0; d++ {
			if same.sums%d == 0 {
				x := b
				x.Group[i] = d
				p.keep(&x, &same)
				visit(x, &same)
			}
		}
	}
	if p.Kept() {
		return
	}
	ps := sharers(b.Cores)
	list := parts(p.M, p.Cores/ps/b.Cores[0], p.rowParts)
	steps(list, thin(list), b.Cores[1], func(pm int64) {
		most := min(p.N, p.Cores/ps/b.Cores[0]/pm)
		for _, pn := range []int64{most, min(most, b.Cores[2])} {
			x := b
			x.Cores[1], x.Cores[2] = pm, fewest(p.N, pn, p.columnParts)
			_, xm, xn := p.part(x.Cores)
			x.Rows = ceilDiv(xm, nearest(p.extents(xm, 1), ceilDiv(m, b.Rows)))
			x.Columns = nearest(p.extents(xn, p.Machine.Columns), b.Columns)
			again(x)
		}
	})
}

// nearest is the longest extent that is no longer than one, or the shortest.
func nearest(list []int64, e int64) int64 {
	for _, x := range list {
		if x <= e {
			return x
		}
	}
	return list[len(list)-1]
}
