package tiling

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Level is a memory in which an operand or a result of a product lives.
type Level uint8

// The levels.
const (
	DDR Level = iota
	LLB
	L1 // where the cores need it: nothing moves
)

// Product is Reps products of M x K with K x N on one cluster, and what happens to their results.
type Product struct {
	Reps, M, N, K int64
	// Bytes of an element of the M x K operand, of the K x N operand and of a result.
	RowBytes, ColumnBytes, ResultBytes int64
	RowsFrom, ColumnsFrom, To          Level
	// Constant: the K x N operand is weights, which pass through the weight ring. Then there is one product.
	Constant bool
	// Exchanged: rows are in the L1s of other cores, so that each load of them waits until all cores have theirs.
	Exchanged bool
	// Operations of the vector work behind each result, by class.
	Simple, Special, Move float64
	// Extra are operands of the vector work, a tile of which each tile of results needs.
	Extra []Extra
	// Deep is the extent of the reduction of which cores may take slices, by a divisor of it; 0: they may not.
	Deep int64
	// Window, if the product is a convolution: rows are positions of its output, the reduction is channels x window.
	Window *Window
	// Most is the number of products of tiles there may be; 0: any number.
	Most int64

	frugal bool                 // in the L1 stay no parts of panels, and operands gather in the least of the LLB
	known  map[[2]int64][]int64 // lists of extents; nil: none is kept

	rowParts, columnParts []int64 // see Divide
	rowDims               []dimension
	kept                  [4]int64 // see Keep; zero: any
}

// dimension is one of those that rows are of, with the number of parts of it that leave the least of it and of those
// inside of it, for each number of cores that divide them.
type dimension struct {
	extent int64
	parts  []int64
}

// Divide says that rows and columns are those of several dimensions, the outermost first, of which cores
// take whole indices: rows along any of them, columns along the first.
func (p *Product) Divide(rows, columns []int64, cores int64) {
	p.rowParts, p.rowDims = slices.Repeat([]int64{1}, int(cores)+1), make([]dimension, len(rows))
	for d, extent := range slices.Backward(rows) {
		next, parts := make([]int64, cores+1), make([]int64, cores+1)
		for n := int64(1); n <= cores; n++ {
			next[n] = math.MaxInt64
			// Of equals, most on the outer dimension; of those that leave the same n/f inside, the first.
			for f := min(n, extent); f >= 1; f = n / (n/f + 1) {
				if x := ceilDiv(extent, f) * p.rowParts[n/f]; x < next[n] {
					next[n], parts[n] = x, f
				}
			}
			if n > 1 && next[n] == next[n-1] { // the same parts
				parts[n] = parts[n-1]
			}
		}
		p.rowParts, p.rowDims[d] = next, dimension{extent, parts}
	}
	inner := p.N / columns[0]
	p.columnParts = make([]int64, cores+1)
	for n := int64(1); n <= cores; n++ {
		p.columnParts[n] = ceilDiv(columns[0], min(n, columns[0])) * inner
	}
}

// Keep says that cores divide the product as they do already, since values lie in their L1s: the products into reps
// parts, the dimensions of rows, the outermost first, into parts, and the first of columns into columns.
func (p *Problem) Keep(reps int64, rows, parts []int64, first, columns int64) {
	p.kept, p.rowParts, p.rowDims = [4]int64{reps, 1, columns, 1}, []int64{1}, nil
	for d, extent := range rows {
		p.kept[1] *= parts[d]
		p.rowParts[0] *= ceilDiv(extent, parts[d])
		p.rowDims = append(p.rowDims, dimension{extent, parts[d : d+1]})
	}
	p.columnParts = []int64{ceilDiv(first, columns) * (p.N / first)}
}

// Kept reports whether the division over the cores is given by [Problem.Keep].
func (p *Problem) Kept() bool { return p.kept[0] > 0 }

// share is the largest of so many parts of an extent, where a table does not say otherwise.
func share(extent, parts int64, table []int64) int64 {
	if table == nil {
		return ceilDiv(extent, parts)
	}
	return table[min(parts, int64(len(table))-1)]
}

// fewest is the least number of parts with the same largest part.
func fewest(extent, parts int64, table []int64) int64 {
	if table == nil {
		return ceilDiv(extent, ceilDiv(extent, parts))
	}
	parts = min(parts, int64(len(table))-1)
	for parts > 1 && table[parts-1] == table[parts] {
		parts--
	}
	return parts
}

// Extra is an operand of the vector work with an element for each result.
type Extra struct {
	Bytes int64
	From  Level
}

// Window is a convolution's window, over outputs that are Width wide.
type Window struct {
	Height, Width             int64
	StrideHeight, StrideWidth int64
	OutputWidth               int64
}

// tileBox is the extents of the smallest box around any of so many tiles of a core's rows, outermost dimension first:
// a tile that crosses from one index of an outer dimension to the next takes all of the inner ones.
func (p *Problem) tileBox(cores, tiles int64, box []int64) []int64 {
	box = box[:0]
	total := int64(1)
	for _, d := range p.rowDims {
		f := d.parts[min(cores, int64(len(d.parts))-1)]
		box = append(box, ceilDiv(d.extent, f))
		cores /= f
		total *= box[len(box)-1]
	}
	rows := ceilDiv(total, tiles)
	for d, extent := range box {
		inner := int64(1)
		for _, e := range box[d+1:] {
			inner *= e
		}
		switch {
		case tiles%extent == 0:
			box[d], tiles = 1, tiles/extent
			continue
		case extent%tiles == 0 || inner == 1:
			box[d] = ceilDiv(extent, tiles)
		default:
			box[d] = min(extent, ceilDiv(rows-1, inner)+1)
		}
		break
	}
	return box
}

// rowElements is the number of elements of the first operand a core needs for one of so many tiles of its rows, of so
// many of the reduction.
func (p *Problem) rowElements(cores, tiles, k int64) int64 {
	images, lines, across := p.tileLines(cores, tiles)
	if w := p.Window; w != nil {
		return images * ceilDiv(k, w.Height*w.Width) * w.span(lines, w.StrideHeight, w.Height) *
			w.span(across, w.StrideWidth, w.Width)
	}
	return images * lines * across * k
}

// tileLines is the largest box around one of so many tiles of a core's rows.
func (p *Problem) tileLines(cores, tiles int64) (images, lines, across int64) {
	if len(p.rowDims) == 0 {
		rows := ceilDiv(share(p.M, cores, p.rowParts), tiles)
		if p.Window == nil {
			return 1, 1, rows
		}
		return 1, ceilDiv(rows, p.Window.OutputWidth), min(rows, p.Window.OutputWidth) // they begin where a line does
	}
	var room [4]int64
	box := p.tileBox(cores, tiles, room[:0])
	images, lines, across = 1, 1, box[len(box)-1]
	for i, extent := range box[:len(box)-1] {
		if i == len(box)-2 {
			lines = extent
		} else {
			images *= extent
		}
	}
	return images, lines, across
}

// fewest is the least that n outputs read, divided into parts of any length.
func (w *Window) fewest(n, stride, window int64) int64 {
	return min(w.span(n, stride, window), n*window)
}

// span is the length of what n outputs side by side read, with the gaps between.
func (*Window) span(n, stride, window int64) int64 {
	return min((n-1)*stride+window, n*max(stride, window))
}

// Machine holds the figures on which the time of a product depends: one cluster.
type Machine struct {
	Cores int64
	// The matrix unit: Rows along the reduction, Columns of results. A command takes, for each block of Rows x Columns,
	// Row cycles for each of its rows and at least Load, Gap between blocks, and Fill once. Without a matrix unit, Rows
	// and Columns are 1. InFlight is the commands that it has under way, see [hardware.Unit].
	Rows, Columns        int64
	InFlight             int64
	Row, Load, Gap, Fill float64
	MatrixUnits          int64
	// Cycles of the vector work by operation, and of each command.
	Simple, Special, Move, VectorFill, SpecialFill float64
	VectorUnits, SpecialUnits                      int64
	Clock                                          float64 // cycles per second

	// Bytes of the L1 for data, and of the ring that weights pass; Shared is what they may take together where one may
	// leave space to the other. Of the LLB, which values of others may leave less of, and its pages. An LLB of 0 is none;
	// then Home is where weights stay in the L1 for their next use.
	Data, Ring, Shared, Home, LLB, Page int64
	// Bytes per second into a core and out of it, of the LLB, and of the DDR for weights and for activations.
	In, Out, LLBRate, DDRWeights, DDRActivations float64
	// Bytes that follow each other in the DDR and come in one request: fewer take as long; 0: each byte counts alone.
	Request int64
	// Seconds that each move takes beside its bytes.
	L1Latency, DDRLatency float64
	// Loads into the L1, and from the DDR, whose latencies may overlap; 0: one.
	L1Loads, DDRLoads int
	Sync              float64 // before cores have each other's sums
	Head              float64 // for which loads from the DDR run ahead of the cores, behind an LLB
	Broadcast         bool
}

// NewMachine is a cluster of a machine whose clusters all do the same, for products of one type and
// vector work of another.
func NewMachine(c *cost.Model, product, vector model.DType) *Machine {
	s := c.Spec()
	m := &Machine{
		Cores: schedule.CoresWithL1(s), Rows: 1, Columns: 1, Clock: s.ClockHz,
		Simple: c.LaneCycles(hardware.OpSimple, vector), Special: c.LaneCycles(hardware.OpSpecial, vector),
		Move: c.LaneCycles(hardware.OpMove, vector),
		Data: schedule.DataBytes(s), Ring: schedule.WeightsStay.RingBytes(s), Home: schedule.WeightsStay.HomeBytes(s),
		Broadcast: s.CoreLink.Broadcast, L1Latency: s.CoreLink.LatencySeconds, Sync: s.SyncSeconds,
		DDRLatency: s.DDR.LatencySeconds + s.DDRLink.LatencySeconds,
		L1Loads:    s.CoreLink.Loads(), DDRLoads: s.DDRLink.Loads(),
	}
	m.Row, m.Load, m.Gap = c.MatrixRate(product)
	m.Row += c.Feed(product)
	m.InFlight = c.InFlight()
	m.Fill, m.VectorFill, m.SpecialFill = c.Fills()
	if schedule.MovableRing(s) {
		m.Shared = m.Data + m.Ring
	}
	if c.HasMatrix() {
		m.Rows, m.Columns = c.MatrixRows(), c.MatrixCols()
	}
	m.MatrixUnits, m.VectorUnits = c.Units(hardware.Matrix, m.Cores), c.Units(hardware.Vector, m.Cores)
	m.SpecialUnits = c.Units(hardware.Special, m.Cores)
	m.In = cmp.Or(s.CoreLink.BandwidthBytesPerSecond, math.Inf(1)) // 0: any rate
	m.Out = m.In
	ddr := min(s.DDR.BandwidthBytesPerSecond/float64(s.Clusters), cmp.Or(s.DDRLink.BandwidthBytesPerSecond, math.Inf(1)))
	m.DDRWeights, m.DDRActivations, m.LLBRate = ddr, ddr, math.Inf(1)
	if e := s.DDRActivationEfficiency; e > 0 {
		m.DDRActivations = min(ddr, s.DDR.BandwidthBytesPerSecond/float64(s.Clusters)*e)
	}
	if s.LLB != nil {
		m.LLB, m.LLBRate = int64(s.LLB.SizeBytes), s.LLB.BandwidthBytesPerSecond
		m.L1Latency += s.LLB.LatencySeconds
		if m.Page = m.LLB / 256 / 64 * 64; m.Page == 0 {
			m.Page = max(1, m.LLB/256)
		}
	}
	return m
}

// Problem is a product to be tiled for a machine.
type Problem struct {
	Product
	Machine
}

// Blocks is a tiling: how the cores divide a product, and in which tiles each works on its part.
type Blocks struct {
	// Cores divide the products, their rows and their columns, the last parts of which may be smaller, and the
	// reduction.
	Cores [4]int64
	// Rows is the number of tiles that the rows of a core's product are cut into, as equal as whole rows
	// allow. Columns and Reduction are the largest extents of tiles, multiples of the unit's.
	Rows, Columns, Reduction int64
	// ColumnsFirst: tiles of rows change inside of those of columns. The reduction is innermost.
	ColumnsFirst bool
	// Stay: weights are loaded for the first tile of rows only, and stay in the ring.
	Stay bool
	// Room is the number of tiles of rows x reduction, and of columns that are no weights x reduction, the L1 has
	// space for (of rows between two and all: see schedule.Nest.Held); Sums is how many tiles of results, 1 or 2.
	RoomRows, RoomColumns, Sums int64
	// Group is the number of tiles of the reduction one load brings from the DDR to the LLB, of rows and
	// of columns; a divisor of the tiles there are.
	Group [2]int64
	// Once: operands that are no weights come from the DDR once, and stay in the LLB.
	Once bool
	// Keep, with Once, counts the first loads of a tile's reduction, which stay; 0: all.
	Keep int64
}

// Tiles of the reduction are multiples of Grain.
func (p *Problem) Grain() int64 {
	if p.Window == nil {
		return p.Machine.Rows
	}
	w := p.Window.Height * p.Window.Width
	return w / model.GCD(w, p.Machine.Rows) * p.Machine.Rows
}

// part returns the busiest core's share of the products, their rows and their columns.
func (p *Problem) part(cores [4]int64) (reps, rows, columns int64) {
	return ceilDiv(p.Reps, cores[0]), share(p.M, cores[1], p.rowParts), share(p.N, cores[2], p.columnParts)
}

// Check reports what a problem lacks.
func (p *Problem) Check() error {
	pr, m := &p.Product, &p.Machine
	for _, x := range []struct {
		name string
		n    int64
	}{{"Reps", pr.Reps}, {"M", pr.M}, {"N", pr.N}, {"K", pr.K},
		{"RowBytes", pr.RowBytes}, {"ColumnBytes", pr.ColumnBytes}, {"ResultBytes", pr.ResultBytes},
		{"Cores", m.Cores}, {"Rows", m.Rows}, {"Columns", m.Columns}, {"MatrixUnits", m.MatrixUnits}} {
		if x.n < 1 || x.n > 1<<40 {
			return fmt.Errorf("tiling: %s is %d, expected 1 to %d", x.name, x.n, int64(1)<<40)
		}
	}
	if pr.Constant && pr.Reps > 1 {
		return fmt.Errorf("tiling: %d products with constant weights, expected one", pr.Reps)
	}
	if m.LLB == 0 && (pr.RowsFrom == LLB || pr.ColumnsFrom == LLB || pr.To == LLB) {
		return fmt.Errorf("tiling: an operand or result in the LLB of a machine that has none")
	}
	if pr.Deep > 0 && (!pr.Constant || pr.RowsFrom == L1 || pr.K%pr.Deep != 0) {
		return fmt.Errorf(
			"tiling: slices of %d of a reduction of %d, expected a divisor, weights and rows that are not in the L1",
			pr.Deep, pr.K)
	}
	if w := pr.Window; w != nil &&
		(min(w.Height, w.Width, w.StrideHeight, w.StrideWidth, w.OutputWidth) < 1 || pr.K%(w.Height*w.Width) != 0) {
		return fmt.Errorf("tiling: a window %+v of a reduction of %d, expected extents of 1 or more that divide it", *w, pr.K)
	}
	return nil
}

// sharers is the number of cores that share a reduction, depth the part of it that each has.
func sharers(cores [4]int64) int64 { return max(1, cores[3]) }

func (p *Problem) depth(cores [4]int64) int64 { return p.K / sharers(cores) }

// others is the number of bytes of other cores' sums a core that makes results adds to so many of its own.
func (p *Problem) others(cores [4]int64, sums int64) float64 {
	return float64((sharers(cores) - 1) * sums * schedule.AccumulatorBytes)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
