package tiling

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
)

// A kernel is a product or a convolution on one cluster as the benchmark has it: with an objective that is stated in
// docs/file-formats.md and does not change when [Problem.Time] becomes better. Times are in picoseconds, rates in bytes
// per microsecond, all whole numbers.
type kernel struct {
	Name    string        `json:"name"`
	Product kernelProduct `json:"product"`
	Machine kernelMachine `json:"machine"`
}

// kernelProduct is Count products of Rows x Reduction with Reduction x Columns, all in the DDR.
type kernelProduct struct {
	Count       int64 `json:"count"`
	Rows        int64 `json:"rows"`
	Columns     int64 `json:"columns"`
	Reduction   int64 `json:"reduction"`
	RowBytes    int64 `json:"row_bytes"` // of an element, as the next two
	ColumnBytes int64 `json:"column_bytes"`
	ResultBytes int64 `json:"result_bytes"`
	// Window: rows are positions of a convolution's output, the reduction is channels x window.
	Window *kernelWindow `json:"window,omitempty"`
}

// kernelWindow is a convolution's window.
type kernelWindow struct {
	Height      int64 `json:"height"`
	Width       int64 `json:"width"`
	Stride      int64 `json:"stride"`
	OutputWidth int64 `json:"output_width"`
}

// kernelMachine is a cluster. A step of r rows takes, for each block of the matrix unit, RowPs for each row and at
// least
// LoadPs, and FillPs once.
type kernelMachine struct {
	Cores         int64 `json:"cores"`
	UnitReduction int64 `json:"unit_reduction"`
	UnitColumns   int64 `json:"unit_columns"`
	RowPs         int64 `json:"row_ps"`
	LoadPs        int64 `json:"load_ps"`
	FillPs        int64 `json:"fill_ps"`
	L1Bytes       int64 `json:"l1_bytes"`
	LLBBytes      int64 `json:"llb_bytes"` // 0: none
	L1PerUs       int64 `json:"l1_bytes_per_us"`
	LLBPerUs      int64 `json:"llb_bytes_per_us"` // 0: none
	DDRPerUs      int64 `json:"ddr_bytes_per_us"`
	L1Ps          int64 `json:"l1_latency_ps"`
	DDRPs         int64 `json:"ddr_latency_ps"`
	SyncPs        int64 `json:"sync_ps"`
	Broadcast     bool  `json:"broadcast"`
}

// A Nest is a tiling of a kernel.
type Nest struct {
	// Cores divide products, rows, columns and reduction.
	Cores [4]int64 `json:"cores"`
	// Tile is the extents of rows, columns and reduction.
	Tile [3]int64 `json:"tile"`
	// Inner is the dimension whose tiles change first behind the reduction's: rows or columns.
	Inner string `json:"inner"`
	// Panel: the operand that Inner does not move stays in the L1 along all of the reduction.
	Panel bool `json:"panel"`
	// Sums is for how many tiles of results the L1 has room.
	Sums int64 `json:"sums"`
	// Keep lists the operands that the LLB holds as a whole: rows, columns.
	Keep []string `json:"keep"`
}

const maxKernel = 1 << 20 // of an extent

// ReadKernel reads a kernel. Errors are of type [*strict.InputError].
func ReadKernel(file string, data []byte) (*kernel, error) {
	k := &kernel{}
	if err := strict.Decode(file, data, k); err != nil {
		return nil, err
	}
	p, m := &k.Product, &k.Machine
	type field struct {
		name        string
		value       int64
		least, most int64
	}
	fields := []field{{"product.count", p.Count, 1, maxKernel}, {"product.rows", p.Rows, 1, maxKernel},
		{"product.columns", p.Columns, 1, maxKernel},
		{"product.reduction", p.Reduction, 1, maxKernel}, {"product.row_bytes", p.RowBytes, 1, 8}, {"product.column_bytes",
			p.ColumnBytes, 1, 8},
		{"product.result_bytes", p.ResultBytes, 1, 8}, {"machine.cores", m.Cores, 1, 4096},
		{"machine.unit_reduction", m.UnitReduction, 1, 1024}, {"machine.unit_columns", m.UnitColumns, 1, 1024},
		{"machine.row_ps", m.RowPs, 1, 1e6}, {"machine.load_ps", m.LoadPs, 0, 1e6}, {"machine.fill_ps", m.FillPs, 0, 1e6},
		{"machine.l1_bytes", m.L1Bytes, 1, 1 << 40}, {"machine.llb_bytes", m.LLBBytes, 0, 1 << 40},
		{"machine.l1_bytes_per_us", m.L1PerUs, 1e3, 1e9},
		{"machine.llb_bytes_per_us", m.LLBPerUs, 0, 1e9}, {"machine.ddr_bytes_per_us", m.DDRPerUs, 1e3, 1e9},
		{"machine.l1_latency_ps", m.L1Ps, 0, 1e6}, {"machine.ddr_latency_ps", m.DDRPs, 0, 1e9}, {"machine.sync_ps",
			m.SyncPs, 0, 1e7}}
	if w := p.Window; w != nil {
		fields = append(fields, field{"product.window.height", w.Height, 1, 16}, field{"product.window.width", w.Width, 1,
			16},
			field{"product.window.stride", w.Stride, 1, 16}, field{"product.window.output_width", w.OutputWidth, 1, maxKernel})
	}
	for _, f := range fields {
		if f.value < f.least || f.value > f.most {
			return nil, strict.Error(file, f.name, fmt.Sprint(f.value), fmt.Sprintf("%d to %d", f.least, f.most))
		}
	}
	if w := p.Window; w != nil && p.Reduction%(w.Height*w.Width) != 0 {
		return nil, strict.Error(file, "product.reduction", fmt.Sprint(p.Reduction),
			fmt.Sprintf("a multiple of the window's %d", w.Height*w.Width))
	}
	if (m.LLBBytes == 0) != (m.LLBPerUs == 0) || m.LLBPerUs > 0 && m.LLBPerUs < 1e3 {
		return nil, strict.Error(file, "machine.llb_bytes_per_us", fmt.Sprint(m.LLBPerUs),
			"0 where llb_bytes is, else at least 1000")
	}
	// Times of any nest fit into 63 bits.
	blocks := float64(p.Count*p.Rows) * float64(ceilDiv(p.Columns, m.UnitColumns)*ceilDiv(p.Reduction, k.grain()))
	if all := float64(p.Count*p.Rows) * float64(p.Columns*p.Reduction); all > 1<<42 || blocks > 1<<36 {
		return nil, strict.Error(file, "product", fmt.Sprintf("%g multiply-accumulates in %g blocks", all, blocks),
			fmt.Sprintf("at most %d in %d", int64(1)<<42, int64(1)<<36))
	}
	return k, nil
}

// grain divides tiles of the reduction: the unit's, and whole windows.
func (k *kernel) grain() int64 {
	if w := k.Product.Window; w != nil {
		area := w.Height * w.Width
		return area / gcd(area, k.Machine.UnitReduction) * k.Machine.UnitReduction
	}
	return k.Machine.UnitReduction
}

// part is a core's products, rows, columns and reduction.
func (k *kernel) part(cores [4]int64) (count, rows, columns, reduction int64) {
	p, g := &k.Product, k.grain()
	return ceilDiv(p.Count, cores[0]), ceilDiv(p.Rows, cores[1]), ceilDiv(p.Columns, cores[2]),
		min(p.Reduction, g*ceilDiv(ceilDiv(p.Reduction, g), cores[3]))
}

// span is how many elements side by side n results read.
func (w *kernelWindow) span(n, window int64) int64 {
	if w.Stride < window {
		return (n-1)*w.Stride + window
	}
	return n * window
}

// lines is the elements that so many rows read for each of the reduction, or for each channel of a convolution.
func (p *kernelProduct) lines(rows int64) int64 {
	if w := p.Window; w != nil {
		return w.span(ceilDiv(rows, w.OutputWidth), w.Height) * w.span(min(rows, w.OutputWidth), w.Width)
	}
	return rows
}

// deep is the reduction, or a convolution's channels.
func (p *kernelProduct) deep(reduction int64) int64 {
	if w := p.Window; w != nil {
		return ceilDiv(reduction, w.Height*w.Width)
	}
	return reduction
}

// pieces sums f over an extent in tiles.
func pieces(extent, tile int64, f func(int64) int64) int64 {
	sum := extent / tile * f(tile)
	if rest := extent % tile; rest > 0 {
		sum += f(rest)
	}
	return sum
}

// passing is the time of bytes at a rate.
func passing(bytes, perUs int64) int64 {
	return bytes/perUs*1_000_000 + ceilDiv(bytes%perUs*1_000_000, perUs)
}

// row is the time of rows on the matrix unit for one block.
func (m *kernelMachine) row(rows int64) int64 { return max(rows*m.RowPs, m.LoadPs) }

// time is the objective of a nest, or what it has no room for, which open does not ask.
func (k *kernel) time(n *Nest, open bool) (ps int64, why string) {
	p, m := &k.Product, &k.Machine
	b, rows, columns, reduction := k.part(n.Cores)
	tr, tc, tk := n.Tile[0], n.Tile[1], n.Tile[2]
	tiles, across, steps := ceilDiv(rows, tr), ceilDiv(columns, tc), ceilDiv(reduction, tk)
	passes := b * tiles * across
	cb, cm, cn, ck := n.Cores[0], n.Cores[1], n.Cores[2], n.Cores[3]
	innerRows := n.Inner == "rows"
	keepRows, keepColumns := slices.Contains(n.Keep, "rows"), slices.Contains(n.Keep, "columns")

	// How often an operand comes.
	stays := n.Panel || steps == 1
	againRows, againColumns := across, tiles
	if stays && !innerRows {
		againRows = 1
	}
	if stays && innerRows {
		againColumns = 1
	}
	// Bytes of a core's operands, each once, and of its results.
	rowsOnce := b * pieces(rows, tr, p.lines) * pieces(reduction, tk, p.deep) * p.RowBytes
	columnsOnce := b * columns * reduction * p.ColumnBytes
	results := b * rows * columns * p.ResultBytes
	rowTile, columnTile := p.lines(tr)*p.deep(tk)*p.RowBytes, tc*tk*p.ColumnBytes
	loads := b * steps * (tiles*againRows + across*againColumns)
	others := (ck - 1) * b * rows * columns * 4

	room := func(moves, all int64) int64 { // of tiles
		switch {
		case all == 1:
			return 1
		case n.Panel && moves == 0:
			return max(2, steps)
		}
		return 2
	}
	moveRows, moveColumns := int64(1), int64(0)
	if !innerRows {
		moveRows, moveColumns = 0, 1
	}
	element := p.ResultBytes
	if steps > 1 || ck > 1 {
		element = max(element, 4)
	}
	l1 := room(moveRows, b*tiles*steps)*rowTile + room(moveColumns, b*across*steps)*columnTile + n.Sums*tr*tc*element +
		(ck-1)*tr*tc*4
	if !open && l1 > m.L1Bytes {
		return 0, fmt.Sprintf("the tiles take %d of %d bytes of the L1", l1, m.L1Bytes)
	}

	unit := b*pieces(rows, tr, m.row)*ceilDiv(columns, m.UnitColumns)*pieces(reduction, tk,
		func(q int64) int64 { return ceilDiv(q, m.UnitReduction) }) +
		passes*steps*m.FillPs
	in := passing(rowsOnce*againRows+columnsOnce*againColumns, m.L1PerUs) + loads*m.L1Ps
	out := passing(results, m.L1PerUs) + passes*m.L1Ps
	if ck > 1 {
		out += passing(others, m.L1PerUs) + passes*(2*m.L1Ps+m.SyncPs)
	}
	makers := cb * cm * cn
	allRows, allColumns := rowsOnce*cb*cm*ck, columnsOnce*cb*cn*ck // each once
	readRows, readColumns := allRows*againRows, allColumns*againColumns
	if !m.Broadcast {
		readRows, readColumns = readRows*cn, readColumns*cm
	}
	llb, ddr := int64(0), int64(0)
	if m.LLBBytes > 0 {
		held := int64(0)
		ddrRows, ddrColumns := allRows*againRows, allColumns*againColumns
		if keepRows {
			ddrRows, held = allRows, held+allRows
		} else {
			held += 2 * cb * cm * ck * rowTile
		}
		if keepColumns {
			ddrColumns, held = allColumns, held+allColumns
		} else {
			held += 2 * cb * cn * ck * columnTile
		}
		if !open && held > m.LLBBytes {
			return 0, fmt.Sprintf("operands take %d of %d bytes of the LLB", held, m.LLBBytes)
		}
		llb = passing(readRows+readColumns+ddrRows+ddrColumns+2*results*makers+2*others*makers, m.LLBPerUs)
		ddr = passing(ddrRows+ddrColumns+results*makers, m.DDRPerUs)
	} else {
		ddr = passing(readRows+readColumns+results*makers, m.DDRPerUs)
	}
	first := m.DDRPs + m.L1Ps + passing(rowTile+columnTile, m.L1PerUs)
	last := m.DDRPs + m.L1Ps + passing(tr*tc*p.ResultBytes, m.L1PerUs)
	body := max(unit, in, out)
	if n.Sums == 1 {
		body = max(unit, in) + out
	}
	return first + max(body, llb, ddr) + last, ""
}

// Time is the objective of a nest, in picoseconds, or the first rule that it breaks.
func (k *kernel) Time(n *Nest) (int64, error) {
	p, m, g := &k.Product, &k.Machine, k.grain()
	cores := int64(1)
	for d, most := range [4]int64{p.Count, p.Rows, p.Columns, ceilDiv(p.Reduction, g)} {
		if c := n.Cores[d]; c < 1 || c > most {
			return 0, fmt.Errorf("tiling: cores[%d] is %d, expected 1 to %d", d, c, most)
		}
		if cores *= n.Cores[d]; cores > m.Cores {
			return 0, fmt.Errorf("tiling: cores are %v, expected at most %d together", n.Cores, m.Cores)
		}
	}
	_, rows, columns, reduction := k.part(n.Cores)
	for d, x := range [3]struct{ extent, grain int64 }{{rows, 1}, {columns, m.UnitColumns}, {reduction, g}} {
		if t := n.Tile[d]; t < 1 || t > x.extent || t%x.grain != 0 && t != x.extent {
			return 0, fmt.Errorf("tiling: tile[%d] is %d, expected a multiple of %d up to %d, or that", d, t, x.grain, x.extent)
		}
	}
	if n.Inner != "rows" && n.Inner != "columns" {
		return 0, fmt.Errorf("tiling: inner is %q, expected rows or columns", n.Inner)
	}
	if n.Sums != 1 && n.Sums != 2 {
		return 0, fmt.Errorf("tiling: sums is %d, expected 1 or 2", n.Sums)
	}
	for i, x := range n.Keep {
		if x != "rows" && x != "columns" || slices.Index(n.Keep, x) < i || m.LLBBytes == 0 {
			return 0, fmt.Errorf("tiling: keep is %v, expected some of rows and columns, each once, and none without an LLB",
				n.Keep)
		}
	}
	t, why := k.time(n, false)
	if why != "" {
		return 0, fmt.Errorf("tiling: %s", why)
	}
	return t, nil
}

// kernelResult is a method's answer, in picoseconds; Nest is nil if there is none.
type kernelResult struct {
	solve.Outcome
	Nest *Nest
}

// KernelOptions are the settings of the methods.
type KernelOptions = solve.Options[*Nest]

var kernelRows = solve.Table[func(context.Context, *kernel, KernelOptions) (*kernelResult, error)]{
	{Method: solve.Method{Name: "rule", Description: "Rule's tiling of the same product, by its own formula"},
		Run: ruleKernel},
	{Method: solve.Method{Name: "search", Description: "branch and bound over all nests", Exact: true}, Run: searchKernel},
}

// KernelMethods lists the methods.
func KernelMethods() []solve.Method { return kernelRows.Methods() }

// SolveKernel tiles a kernel by the method of that name.
func SolveKernel(ctx context.Context, k *kernel, method string, opts KernelOptions) (*kernelResult, error) {
	m, err := kernelRows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("tiling: %w", err)
	}
	return m.Run(ctx, k, opts)
}

// ruleKernel is Rule's tiling under the kernel's objective; none if that tiling has no room by the kernel's rules.
func ruleKernel(_ context.Context, k *kernel, _ KernelOptions) (*kernelResult, error) {
	p, m := &k.Product, &k.Machine
	q := &Problem{Product: Product{Reps: p.Count, M: p.Rows, N: p.Columns, K: p.Reduction, RowBytes: p.RowBytes,
		ColumnBytes: p.ColumnBytes,
		ResultBytes: p.ResultBytes},
		Machine: Machine{Cores: m.Cores, Rows: m.UnitReduction, Columns: m.UnitColumns, Row: float64(m.RowPs),
			Load: float64(m.LoadPs), Fill: float64(m.FillPs),
			MatrixUnits: m.Cores, VectorUnits: m.Cores, SpecialUnits: m.Cores, Clock: 1e12, Data: m.L1Bytes, LLB: m.LLBBytes,
			Page: max(1, m.LLBBytes/256),
			In:   float64(m.L1PerUs) * 1e6, Out: float64(m.L1PerUs) * 1e6, LLBRate: float64(m.LLBPerUs) * 1e6,
			DDRWeights: float64(m.DDRPerUs) * 1e6, DDRActivations: float64(m.DDRPerUs) * 1e6,
			L1Latency: float64(m.L1Ps) * 1e-12, DDRLatency: float64(m.DDRPs) * 1e-12, Sync: float64(m.SyncPs) * 1e-12,
			Broadcast: m.Broadcast}}
	if m.LLBBytes == 0 {
		q.LLBRate = math.Inf(1)
	}
	if w := p.Window; w != nil {
		q.Window = &Window{w.Height, w.Width, w.Stride, w.Stride, w.OutputWidth}
	}
	r := &kernelResult{}
	r.Objective = math.Inf(1)
	b, err := Rule(q)
	if err != nil {
		return r, nil
	}
	b.Cores[3] = sharers(b.Cores)
	_, rows, columns, reduction := k.part(b.Cores)
	n := &Nest{Cores: b.Cores, Tile: [3]int64{ceilDiv(rows, b.Rows), min(columns, b.Columns), min(reduction,
		b.Reduction)}, Inner: "columns",
		Panel: b.RoomRows > 2 || b.RoomColumns > 2, Sums: b.Sums, Keep: []string{}}
	if b.ColumnsFirst {
		n.Inner = "rows"
	}
	if b.Once {
		n.Keep = []string{"rows", "columns"}
	}
	if t, err := k.Time(n); err == nil {
		r.Nest, r.Objective = n, float64(t)
	}
	return r, nil
}

// kernelSearch is the branch and bound at work.
type kernelSearch struct {
	k         *kernel
	best      *Nest
	ps        int64
	divisions [][4]int64
	cores     [4]int64 // of the lists below
	tiles     [][2]int64
	depths    []int64
}

// searchKernel looks at divisions over cores, at tiles of rows and columns, and at tiles of the reduction with all
// ways to run
// them. Of numbers of cores with the same parts the least is as good as any; of tiles of as many pieces the smallest
// is, but
// for rows of a convolution, where halos are not even.
func searchKernel(ctx context.Context, k *kernel, opts KernelOptions) (*kernelResult, error) {
	s := &kernelSearch{k: k, ps: math.MaxInt64}
	p, g := &k.Product, k.grain()
	for _, ck := range parts(ceilDiv(p.Reduction, g), k.Machine.Cores, nil) {
		for _, cb := range parts(p.Count, k.Machine.Cores/ck, nil) {
			for _, cm := range parts(p.Rows, k.Machine.Cores/ck/cb, nil) {
				for _, cn := range parts(p.Columns, k.Machine.Cores/ck/cb/cm, nil) {
					s.divisions = append(s.divisions, [4]int64{cb, cm, cn, ck})
				}
			}
		}
	}
	space := Space{Decisions: 3,
		Behind: func(prefix []int) []int {
			n := len(s.divisions)
			if len(prefix) > 0 {
				s.at(prefix[0])
				n = []int{len(s.tiles), len(s.depths)}[len(prefix)-1]
			}
			list := make([]int, n)
			for i := range list {
				list[i] = i
			}
			return list
		},
		Bound: func(prefix []int) float64 {
			switch len(prefix) {
			case 0:
				return 0
			case 1:
				return float64(s.floor(s.divisions[prefix[0]]))
			}
			s.at(prefix[0])
			return s.tileFloor(s.tiles[prefix[1]])
		},
		Cost: func(choices []int) (float64, error) {
			s.at(choices[0])
			return s.leaf(s.tiles[choices[1]], s.depths[choices[2]]), nil
		},
	}
	found, err := Search(ctx, space, solve.Options[[]int]{TimeLimit: opts.TimeLimit, WorkLimit: opts.WorkLimit,
		Progress: opts.Progress})
	if err != nil {
		return nil, err
	}
	return &kernelResult{found.Outcome, s.best}, nil
}

// at makes the lists of a division.
func (s *kernelSearch) at(division int) {
	if s.cores == s.divisions[division] {
		return
	}
	s.cores = s.divisions[division]
	_, rows, columns, reduction := s.k.part(s.cores)
	s.tiles = nil
	for _, tc := range extents(columns, s.k.Machine.UnitColumns) {
		for _, tr := range s.rows(rows) {
			s.tiles = append(s.tiles, [2]int64{tr, min(tc, columns)})
		}
	}
	s.depths = extents(reduction, s.k.grain())
	s.depths[0] = reduction
}

func (s *kernelSearch) rows(rows int64) (list []int64) {
	if s.k.Product.Window == nil {
		return extents(rows, 1)
	}
	for tr := rows; tr > 0; tr-- {
		list = append(list, tr)
	}
	return list
}

// floor is a bound on all nests with these cores: each operand once, and no tile so small that a block's load counts.
func (s *kernelSearch) floor(cores [4]int64) int64 {
	k := s.k
	_, rows, columns, reduction := k.part(cores)
	least := int64(math.MaxInt64)
	n := &Nest{Cores: cores, Tile: [3]int64{rows, columns, reduction}, Inner: "rows", Panel: true, Sums: 2,
		Keep: []string{"rows", "columns"}}
	if k.Product.Window == nil {
		least, _ = k.time(n, true)
	} else {
		for tr := rows; tr > 0; tr-- { // of halos there may be least in between
			n.Tile[0] = tr
			t, _ := k.time(n, true)
			least = min(least, t)
		}
	}
	// Tiles that are smaller begin and end sooner.
	return least - passing(k.Product.lines(rows)*k.Product.deep(
		reduction)*k.Product.RowBytes+columns*reduction*k.Product.ColumnBytes, k.Machine.L1PerUs) -
		passing(rows*columns*k.Product.ResultBytes, k.Machine.L1PerUs)
}

// tileFloor is a bound on all nests with these cores and tiles; infinite if none has room.
func (s *kernelSearch) tileFloor(tile [2]int64) float64 {
	k := s.k
	_, _, _, reduction := k.part(s.cores)
	shallow := min(k.grain(), reduction)
	if tile[0]*tile[1]*(k.Product.ResultBytes+(s.cores[3]-1)*4)+k.Product.lines(tile[0])*k.Product.deep(
		shallow)*k.Product.RowBytes+
		tile[1]*shallow*k.Product.ColumnBytes > k.Machine.L1Bytes {
		return math.Inf(1)
	}
	least := int64(math.MaxInt64)
	for _, inner := range []string{"rows", "columns"} {
		t, _ := k.time(&Nest{Cores: s.cores, Tile: [3]int64{tile[0], tile[1], reduction}, Inner: inner, Panel: true, Sums: 2,
			Keep: []string{"rows", "columns"}}, true)
		least = min(least, t)
	}
	deep := func(q int64) int64 {
		return passing(k.Product.lines(tile[0])*k.Product.deep(q)*k.Product.RowBytes+tile[1]*q*k.Product.ColumnBytes,
			k.Machine.L1PerUs)
	}
	return float64(least - deep(reduction) + deep(shallow))
}

// leaf is the least time of the ways to run a tile, infinite if none has room.
func (s *kernelSearch) leaf(tile [2]int64, depth int64) float64 {
	least := math.Inf(1)
	keeps := [][]string{{}, {"rows"}, {"columns"}, {"rows", "columns"}}
	if s.k.Machine.LLBBytes == 0 {
		keeps = keeps[:1]
	}
	for _, inner := range []string{"rows", "columns"} {
		for _, panel := range []bool{false, true} {
			for sums := int64(1); sums <= 2; sums++ {
				for _, keep := range keeps {
					n := Nest{s.cores, [3]int64{tile[0], tile[1], depth}, inner, panel, sums, keep}
					t, why := s.k.time(&n, false)
					if why != "" {
						continue
					}
					least = min(least, float64(t))
					if t < s.ps {
						s.ps, s.best = t, &n
					}
				}
			}
		}
	}
	return least
}
