package tiling

import (
	"math"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/schedule"
)

// work is a product on the busiest core in tiles: what does not depend on how they are bought.
type work struct {
	reps, m, n, k            int64   // of the core
	cores, makers            int64   // all, and those that make results
	tiles, columns, sums     int64   // of rows in all, of columns, of the reduction
	rowTile, nTile, kTile    int64   // largest extents
	rowElements, colElements int64   // of one tile
	unit                     float64 // seconds of the matrix unit in a pass; 0: not known yet
}

// cut is the work of a tiling.
func (p *Problem) cut(b *Blocks) (w work) {
	w.reps, w.m, w.n = p.part(b.Cores)
	w.k = p.depth(b.Cores)
	w.makers = min(b.Cores[0], p.Reps) * min(b.Cores[1], p.M) * min(b.Cores[2], p.N)
	w.cores = w.makers * sharers(b.Cores)
	w.rowTile = ceilDiv(w.m, b.Rows)
	w.nTile, w.kTile = min(b.Columns, w.n), min(b.Reduction, w.k)
	w.tiles, w.columns, w.sums = w.reps*b.Rows, ceilDiv(w.n, b.Columns), ceilDiv(w.k, b.Reduction)
	w.rowElements, w.colElements = p.rowElements(b.Cores[1], b.Rows, w.kTile), w.kTile*w.nTile
	return w
}

// stage is the bytes of tiles in the L1 beside weights.
func (p *Problem) stage(b *Blocks, w *work) (bytes int64) {
	if p.RowsFrom != L1 {
		bytes += b.RoomRows * schedule.Align(w.rowElements*p.RowBytes)
	}
	if !p.Constant && p.ColumnsFrom != L1 {
		bytes += b.RoomColumns * schedule.Align(w.colElements*p.ColumnBytes)
	}
	tile := w.rowTile * w.nTile
	for _, x := range p.Extra {
		if x.From != L1 {
			bytes += b.Sums * schedule.Align(tile*x.Bytes)
		}
	}
	results := int64(0)
	if p.To != L1 {
		results = b.Sums * schedule.Align(tile*p.ResultBytes)
	}
	others := sharers(b.Cores) - 1
	if w.sums > 1 || others > 0 {
		results = max(results, b.Sums*schedule.Align(tile*schedule.AccumulatorBytes))
	}
	return bytes + results + others*schedule.Align(tile*schedule.AccumulatorBytes)
}

// Fits reports whether a tiling can run: its tiles have room in the L1, in the ring of weights and in the LLB.
func (p *Problem) Fits(b *Blocks) bool {
	w := p.cut(b)
	return p.fits(b, &w)
}

func (p *Problem) fits(b *Blocks, w *work) bool {
	if p.Most > 0 && w.tiles*w.columns*w.sums > p.Most {
		return false
	}
	stage, ring := p.stage(b, w), p.ring(b, w)
	if (stage > p.Data || ring > p.Ring) && stage+max(leastRing, ring) > p.Shared {
		return false
	}
	if p.LLB > 0 {
		// A load takes a quarter of the pages at most, and two operands gather in half of them.
		rows, columns := p.far(b, w)
		pages := p.LLB / p.Page
		large := func(from Level, bytes int64) bool { return from == DDR && ceilDiv(bytes, p.Page) > pages/4 }
		return !large(p.RowsFrom, rows) && !large(p.ColumnsFrom, columns) &&
			(!b.Once && b.Group == [2]int64{1, 1} || p.gathered(b, w) <= p.gatherable(b, w))
	}
	return true
}

// gatherable is the pages of the LLB that operands may gather in: three to five eighths, as far as two loads of weights
// and a tile of all cores' results on their way out have place beside them.
func (p *Problem) gatherable(b *Blocks, w *work) int64 {
	pages, beside := p.LLB/p.Page, int64(0)
	if p.frugal {
		return pages * 3 / 8
	}
	if p.Constant && p.ColumnsFrom == DDR {
		_, columns := p.far(b, w)
		beside += 2 * ceilDiv(columns, p.Page)
	}
	if p.To == DDR {
		beside += ceilDiv(w.makers*w.rowTile*w.nTile*p.ResultBytes, p.Page)
	}
	return max(pages*3/8, min(pages*5/8, pages-beside))
}

// together is how many tiles of rows have loads that stay in the LLB: all that come round again, or one after the
// other.
func (p *Problem) together(b *Blocks, w *work) int64 {
	if b.ColumnsFirst || p.frugal {
		return w.tiles
	}
	return 1
}

// held is the number of the last tiles of the reduction that stay in the L1 where there is no room for all of a panel
// of rows (see schedule.Nest.Held).
func (p *Problem) held(b *Blocks, w *work) int64 {
	if b.ColumnsFirst || w.columns == 1 || b.RoomRows < 3 || b.RoomRows >= w.sums {
		return 0
	}
	return max(0, w.sums-ceilDiv(w.sums-b.RoomRows+2, b.Group[0])*b.Group[0])
}

// gathered is the pages of the LLB in which operands gather.
func (p *Problem) gathered(b *Blocks, w *work) (need int64) {
	rows, columns := p.far(b, w)
	if p.RowsFrom == DDR {
		loads := int64(2)
		switch {
		case b.Keep > 0:
			loads += p.together(b, w) * b.Keep
		case b.Once:
			loads = p.together(b, w) * (w.sums / b.Group[0])
		}
		need += loads * ceilDiv(rows, p.Page)
	}
	if p.ColumnsFrom == DDR && !p.Constant {
		loads := int64(2)
		if b.Once {
			loads = w.reps * w.columns * (w.sums / b.Group[1])
		}
		need += loads * ceilDiv(columns, p.Page)
	}
	return need
}

// ring is the bytes of tiles of weights in the L1.
func (p *Problem) ring(b *Blocks, w *work) int64 {
	if !p.Constant || p.ColumnsFrom == L1 {
		return 0
	}
	tiles := int64(2)
	if b.Stay {
		if tiles = w.sums; !b.ColumnsFirst {
			tiles *= w.columns
		}
	}
	if w.columns*w.sums == 1 {
		tiles = 1
	}
	return tiles * schedule.Align(w.colElements*p.ColumnBytes)
}

// leastRing is the bytes of a ring that nothing passes.
const leastRing = 64

// RingBytes is the bytes that a tiling that fits needs as a ring of weights and those that it leaves to it, if that
// must not be the machine's; 0: it may.
func (p *Problem) RingBytes(b *Blocks) (least, most int64) {
	w := p.cut(b)
	if stage, ring := p.stage(b, &w), p.ring(b, &w); stage > p.Data || ring > p.Ring {
		return max(leastRing, ring), (p.Shared - stage) &^ 63
	}
	return 0, 0
}

// far is the number of bytes that one load from the DDR brings, of rows and of columns.
func (p *Problem) far(b *Blocks, w *work) (rows, columns int64) {
	reps := min(b.Cores[0], p.Reps)
	reps *= sharers(b.Cores)
	rows = reps * min(b.Cores[1], p.M) * w.rowElements * b.Group[0] * p.RowBytes
	columns = reps * min(b.Cores[2], p.N) * w.colElements * b.Group[1] * p.ColumnBytes
	return rows, columns
}

// kinds of passes: over one tile of rows and one of columns, by the operands that they load.
const (
	loadsRows = 1 << iota
	loadsColumns
)

// block is the matrix unit's cycles for so many rows and one block.
func (p *Problem) block(rows int64) float64 {
	line := int64(0)
	if p.Window != nil {
		line = p.Window.OutputWidth
	}
	a := cost.Array{Rows: p.Machine.Rows, InFlight: p.InFlight, Row: p.Row, Load: p.Load, Fill: p.Fill}
	return a.Cycles(rows, line)
}

// short is how many times the bytes of rows of this length the DDR moves: each comes in whole requests.
func (p *Problem) short(bytes int64) float64 {
	if p.Request == 0 {
		return 1
	}
	return float64(ceilDiv(bytes, p.Request)*p.Request) / float64(max(1, bytes))
}

// loading is the seconds of loads in a row, so many of which have their latency at a time.
func loading(count, latency, flow float64, atATime int) float64 {
	if atATime <= 1 {
		return count*latency + flow
	}
	return max(flow, (count*latency+flow)/float64(atATime))
}

// Time is the product's seconds in a tiling that fits, without the launch. See the package comment for the formula.
func (p *Problem) Time(b *Blocks) float64 {
	w := p.cut(b)
	return p.time(b, &w, math.Inf(1))
}

// time is Time, or less than that where it is more than a limit, but more than the limit, too.
func (p *Problem) time(b *Blocks, w *work, limit float64) float64 {
	passes, sums, unit := float64(w.tiles*w.columns), float64(w.sums), p.unit(b, w)
	if passes*unit > limit {
		return passes * unit
	}
	unitStep := unit / sums

	// Moves into the L1: of a tile of rows x reduction, of one of reduction x columns, of operands of the
	// vector work. Bytes are averages over the tiles.
	reps, pm, pn := float64(min(b.Cores[0], p.Reps)), float64(min(b.Cores[1], p.M)), float64(min(b.Cores[2], p.N))
	rowBytes := float64(w.m*w.k) / float64(b.Rows) / sums * float64(p.RowBytes)
	if p.Window != nil || len(p.rowDims) > 1 {
		rowBytes = float64(p.rowElements(b.Cores[1], b.Rows, w.k)) / sums * float64(p.RowBytes)
	}
	colBytes := float64(w.k*w.n) / (sums * float64(w.columns)) * float64(p.ColumnBytes)
	ps := float64(sharers(b.Cores))
	rowsAll, colsAll := reps*pm*ps*rowBytes, reps*pn*ps*colBytes // each byte once
	rowsShared, colsShared := rowsAll*pn, colsAll*pm             // to each core that needs it
	if p.Broadcast {
		rowsShared, colsShared = rowsAll, colsAll
	}
	resultBytes := float64(w.m) / float64(b.Rows) * float64(w.n) / float64(w.columns)
	results := resultBytes * float64(p.ResultBytes)
	resultsAll := reps * pm * pn * results

	// How many passes load which operand.
	tiles, columns, again := float64(w.tiles), float64(w.columns), float64(w.reps)
	rowPasses, colPasses := p.loads(b, w)
	kinds, both := [4]float64{}, min(rowPasses, colPasses)
	reused := 0.0 // passes whose weights come from other cores
	if p.Constant && p.LLB == 0 && colPasses > columns {
		all, home := colBytes*sums*columns, float64(p.Home)
		if p.Broadcast {
			all, home = all*pn*ps, home*float64(p.Cores)
		}
		if reused = (colPasses - columns) * min(1, home/all); !p.Broadcast { // they are there
			colPasses, reused = colPasses-reused, 0
			both = min(rowPasses, colPasses)
		}
	}
	switch {
	case p.RowsFrom == L1:
		rowPasses, both = 0, 0
	case p.ColumnsFrom == L1:
		colPasses, both = 0, 0
	}
	// A pass that loads the operand that rarely comes usually loads the other as well; where each
	// comes once for each tile of its own, they meet once for each product.
	if rowPasses < passes && colPasses < passes {
		both = min(both, again)
	}
	kinds[loadsRows|loadsColumns] = both
	kinds[loadsRows], kinds[loadsColumns] = rowPasses-both, colPasses-both
	kinds[0] = passes - rowPasses - colPasses + both

	extra, extraLLB, extraDDR, extraCount := 0.0, 0.0, 0.0, 0.0
	for _, x := range p.Extra {
		if x.From == L1 {
			continue
		}
		extraCount++
		extra += resultBytes * float64(x.Bytes)
		extraLLB += resultBytes * float64(x.Bytes) * reps * pm * pn
		if x.From == DDR {
			extraDDR += resultBytes * float64(x.Bytes) * reps * pm * pn
		}
	}

	// Traffic of the DDR by kind of load.
	pixel := w.kTile * p.RowBytes
	if p.Window != nil {
		pixel /= p.Window.Height * p.Window.Width
	}
	rowsRate, storesRate := p.DDRActivations/p.short(pixel), p.DDRActivations/p.short(w.nTile*p.ResultBytes)
	colsRate := p.DDRActivations
	if p.Constant {
		colsRate = p.DDRWeights
	}
	colsRate /= p.short(w.nTile * p.ColumnBytes)
	dRow, dCol, dExtra, dStore := 0.0, 0.0, 0.0, 0.0 // seconds of a pass that loads it
	missed := 1.0                                    // share of weights that come again from the DDR
	if p.RowsFrom == DDR {
		dRow = loading(sums/float64(b.Group[0]), p.DDRLatency, rowsAll*sums/rowsRate, p.DDRLoads)
	}
	if p.ColumnsFrom == DDR {
		if p.Constant && p.LLB > 0 {
			_, load := p.far(b, w)
			pages, entries := p.LLB/p.Page, w.columns*(w.sums/b.Group[1])
			kept := pages / 2
			if b.Once {
				kept = min(kept, pages-p.gathered(b, w))
			}
			kept /= ceilDiv(load, p.Page)
			missed = max(0, 1-float64(kept)/float64(entries))
			if b.ColumnsFirst { // the panel alone is used again
				missed = max(0, 1-float64(kept)/(float64(w.sums/b.Group[1])))
			}
		}
		dCol = loading(sums/float64(b.Group[1]), p.DDRLatency, colsAll*sums/colsRate, p.DDRLoads)
	}
	if extraDDR > 0 {
		dExtra = loading(extraCount, p.DDRLatency, extraDDR/p.DDRActivations, p.DDRLoads)
	}
	storeLatency, storeRate := p.L1Latency, p.LLBRate
	if p.To == DDR {
		dStore = resultsAll / storesRate
		if p.LLB == 0 {
			storeLatency, storeRate = storeLatency+p.DDRLatency, storesRate
		}
	}

	// The LLB: all bytes that pass it, and those that go on to the L1.
	inBytes := rowPasses*sums*rowsShared + (colPasses-reused)*sums*colsShared + passes*extraLLB
	firstRows, firstCols := rowPasses, colPasses // passes that load from the DDR
	if p.Constant && p.LLB > 0 {
		if once := columns; firstCols > once {
			firstCols = once + (firstCols-once)*missed
		}
	} else if b.Once && p.LLB > 0 {
		firstCols = min(firstCols, again*columns)
	}
	gone := 1.0 // share of the rows that come again from the DDR
	if b.Once && p.LLB > 0 {
		if gone = 0; b.Keep > 0 {
			again := sums - float64(p.held(b, w)) // tiles of the reduction
			gone = max(0, 1-float64(b.Keep*b.Group[0])/again)
		}
		firstRows = min(firstRows, tiles+max(0, firstRows-tiles)*gone)
	}
	llbBytes := inBytes
	if p.RowsFrom == DDR {
		llbBytes += firstRows * sums * rowsAll
	}
	if p.ColumnsFrom == DDR {
		llbBytes += firstCols * sums * colsAll
	}
	llbBytes = llbBytes + passes*extraDDR + 2*passes*p.others(b.Cores, 1)*resultBytes*float64(w.makers)
	if p.To != L1 {
		llbBytes += passes * resultsAll
		if p.To == DDR {
			llbBytes += passes * resultsAll
		}
	}
	ddrAll := 0.0
	if p.LLB > 0 {
		ddrAll = firstRows*dRow + firstCols*dCol + passes*(dExtra+dStore)
	}
	if least := max(llbBytes/p.LLBRate, ddrAll-p.Head); least > limit {
		return least
	}
	crowd, latency, loads := 1.0, p.L1Latency, p.L1Loads
	if inBytes > 0 {
		// Others take their share while loads flow, not while they begin.
		flow := inBytes / p.LLBRate
		waits := (rowPasses*sums + colPasses*sums + passes*extraCount) * latency / float64(max(1, loads))
		crowd = 1 + (llbBytes-inBytes)/inBytes*flow/(flow+waits)
	}
	rowRate, colRate := p.LLBRate/crowd, p.LLBRate/crowd
	if p.LLB == 0 { // straight from the DDR
		latency, loads = latency+p.DDRLatency, p.DDRLoads
		crowd, rowRate, colRate = 1, rowsRate, colsRate
		if in := rowPasses*sums*rowsShared/rowRate + (colPasses-reused)*sums*colsShared/colRate; p.To == DDR && in > 0 {
			crowd += passes * resultsAll / storesRate / in
		}
		rowRate, colRate = rowRate/crowd, colRate/crowd
	}
	inRow := loading(1, latency, max(rowBytes/p.In, rowsShared/rowRate), loads)
	inCol := loading(1, latency, max(colBytes/p.In, colsShared/colRate), loads)
	trip := 0.0 // from the end of a product, which leaves its place, to the tile that comes there
	if loads > 1 {
		trip = latency
	}
	if reused > 0 {
		inCol += reused / colPasses * (p.L1Latency + colBytes/p.In - inCol)
	}
	switch {
	case p.RowsFrom == L1:
		inRow = 0
	case p.Exchanged:
		inRow = max(inRow, 2*p.L1Latency+p.Sync+rowBytes/p.In)
	}
	if p.ColumnsFrom == L1 {
		inCol = 0
	}
	inExtra := loading(extraCount, latency, max(extra/p.In, extraLLB/rowRate), loads)

	// Behind the sums of a pass: vector work and the way out.
	vector, out := p.vector(&w.rowTile, &w.nTile, w.makers, ps-1), 0.0
	if p.To != L1 {
		out = storeLatency + max(results/p.Out, resultsAll/storeRate)
	}
	if ps > 1 { // and the sums of other cores
		sums := p.others(b.Cores, w.rowTile*w.nTile)
		out += 2*p.L1Latency + p.Sync + max(sums/p.In, 2*sums*float64(w.makers)/p.LLBRate)
	}
	behind := vector + out

	// The cores: passes by kind, each as long as its slowest queue.
	held := float64(p.held(b, w))
	if held > 0 { // those that stay come with the first columns
		both = min(tiles, colPasses)
		kinds = [4]float64{loadsRows | loadsColumns: both, loadsRows: tiles - both, loadsColumns: colPasses - both}
		kinds[0] = passes - tiles - colPasses + both
	}
	// With one place for sums, what is behind a pass is in front of the next, but for what the loads run ahead meanwhile.
	apart := func(in float64) float64 {
		return behind - min(behind, min(sums, 2)*max(0, in-unitStep))/2
	}
	pass := func(in float64) float64 {
		steps := in * sums
		if held > 0 && in < inRow { // others have two places: the loads do not run ahead while those that stay are used
			steps = max(in, unitStep)*held + max(in+inRow, unitStep)*(sums-held)
		}
		t := max(steps+inExtra, unit)
		if in > 0 && trip > 0 { // of two places of a tile
			t = max(t, (steps+unit+sums*trip)/2)
		}
		if b.Sums > 1 {
			return max(t, vector, out, (t+behind)/2)
		}
		return t + apart(in)
	}
	inBoth, allRows, allCols := inRow+inCol, rowPasses*sums*inRow, colPasses*sums*inCol
	if p.Exchanged { // beside the loads, over the same links
		inBoth = max(inRow, inCol, (rowBytes+colBytes)/p.In)
		allRows, allCols = max(allRows, allCols, sums*(rowPasses*rowBytes+colPasses*colBytes)/p.In), 0
	}
	both2, rows2, cols2, none2 := pass(inBoth), pass(inRow), pass(inCol), pass(0)
	cores := kinds[3]*both2 + kinds[loadsRows]*rows2 + kinds[loadsColumns]*cols2 + kinds[0]*none2
	last := 0.0 // what is behind the last pass is in front of none
	if b.Sums == 1 {
		in := 0.0
		if rowPasses >= passes {
			in += inRow
		}
		if colPasses >= passes {
			in += inCol
		}
		last = apart(in)
		cores -= last
	}
	arrive, step := inBoth+trip, max(inBoth, unitStep) // the first tiles

	// The DDR, in front of the cores: what it brings before the first pass ends, in the first round of the outer loop,
	// and then. At each of these points, what it has brought and what the cores have left to do add up.
	start, drain, far := 0.0, behind, 0.0
	total := cores + min(arrive, unitStep)
	if p.LLB > 0 {
		inner, outer := columns, tiles
		if b.ColumnsFirst {
			inner, outer = tiles, columns
		}
		if p.RowsFrom == DDR {
			start += p.DDRLatency + rowsAll*float64(b.Group[0])/rowsRate
		}
		if p.ColumnsFrom == DDR {
			start += colsAll * float64(b.Group[1]) / (p.DDRWeights / p.short(w.nTile*p.ColumnBytes))
			if p.RowsFrom != DDR || p.DDRLoads <= 1 {
				start += p.DDRLatency
			}
		}
		if p.To == DDR {
			drain += p.DDRLatency + dStore
		}
		d1, c1 := dRow+dCol+dExtra, both2
		// The first round: one tile of the outer loop, all of the inner.
		d2, c2 := 0.0, 0.0
		if inner > 1 {
			n := inner - 1
			if b.ColumnsFirst {
				d2, c2 = n*dRow, n*rows2
				if rowPasses >= passes && colPasses >= passes {
					c2 = n * both2
				}
				if !p.Constant && !b.Once && colPasses >= passes {
					d2 += n * dCol
				} else if p.Constant && colPasses >= passes {
					d2 += n * dCol * missed
				}
			} else {
				d2, c2 = n*dCol, n*cols2
				if rowPasses >= passes {
					d2, c2 = d2+n*dRow*gone, n*both2
				}
			}
			d2 += n * (dExtra + dStore)
		}
		rest := max(0, cores-c1-c2)
		if outer == 1 {
			rest, c2 = 0, max(0, c2-last)
		}
		// Behind the last load are its tiles: those of the larger loads have come before others of the smaller.
		few, many, beside := float64(b.Group[1]), float64(b.Group[0]), dCol/sums
		if few > many {
			few, many, beside = many, few, dRow/sums
		}
		ahead := arrive + max(few*step, many*(step-beside)) - p.Head
		start = max(0, start-p.Head)
		total = max(start+total, d1+ahead+c2+rest, d1+d2+ahead+rest, ddrAll+ahead)
		if p.To == DDR {
			total = max(total, start+both2+(passes-1)*(p.DDRLatency+dStore))
		}
		far = ddrAll - p.Head
	}
	total += drain
	return max(total, passes*unit, allRows+allCols+passes*inExtra, passes*out, llbBytes/p.LLBRate, far, passes*vector)
}

// unit is how long the matrix units of the busiest core take for a pass, in seconds, with the largest command.
func (p *Problem) unit(b *Blocks, w *work) float64 {
	if w.unit == 0 {
		units, blocks := ceilDiv(w.cores, p.MatrixUnits), ceilDiv(w.n, p.Machine.Columns)*ceilDiv(w.k, p.Machine.Rows)
		longer, lower := w.m-w.m/b.Rows*b.Rows, w.m/b.Rows // row tiles of the larger size
		per := float64(longer)*p.block(lower+1) + float64(b.Rows-longer)*p.block(lower)
		commands := float64(w.columns) * float64(w.sums) // for each tile of rows
		w.unit = float64(w.reps) * (per*float64(blocks) + float64(b.Rows)*(p.Gap*(float64(blocks)-commands)+
			p.Fill*commands)) * float64(units) * (1 / p.Clock) / float64(w.tiles*w.columns)
	}
	return w.unit
}

// loads counts the passes that load a tile of rows, and those that load one of columns.
func (p *Problem) loads(b *Blocks, w *work) (rows, columns float64) {
	tiles, cols, passes := float64(w.tiles), float64(w.columns), float64(w.tiles*w.columns)
	rows, columns = passes, passes
	perRep := w.tiles / w.reps
	// Slots are taken in turn: what comes round again is there if all that came between is.
	if w.columns == 1 || !b.ColumnsFirst && b.RoomRows >= w.sums || b.ColumnsFirst && b.RoomRows >= w.tiles*w.sums {
		rows = tiles
	} else if held := p.held(b, w); held > 0 {
		rows = tiles + (passes-tiles)*float64(w.sums-held)/float64(w.sums)
	}
	if p.Constant {
		if w.tiles == 1 || b.Stay || w.columns*w.sums == 1 {
			columns = cols
		}
	} else if perRep == 1 || b.RoomColumns >= w.columns*w.sums ||
		b.ColumnsFirst && b.RoomColumns >= w.sums && w.reps == 1 {
		columns = float64(w.reps) * cols
	}
	return rows, columns
}

// vector is the time of a tile's vector work, with so many more simple operations on each result.
func (p *Problem) vector(rows, columns *int64, cores int64, more float64) float64 {
	n := float64(*rows * *columns)
	simple, special := 0.0, 0.0
	if more += p.Product.Simple; more+p.Product.Move > 0 {
		simple = n*(more*p.Machine.Simple+p.Product.Move*p.Machine.Move) + p.VectorFill
		simple *= float64(ceilDiv(cores, max(1, p.VectorUnits)))
	}
	if p.Product.Special > 0 {
		special = (n*p.Product.Special*p.Machine.Special + p.SpecialFill) * float64(ceilDiv(cores, max(1, p.SpecialUnits)))
	}
	return (simple + special) / p.Clock
}
