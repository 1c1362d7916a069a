package measured

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/pipeline"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// A convolution of one image on an array with its buffers, in bytes.
type convolution struct {
	C, K, P, Q, R, S, Stride, Scratchpad, Accumulator int64
}

func (c *convolution) extents() map[byte]int64 {
	return map[byte]int64{'C': c.C, 'K': c.K, 'P': c.P, 'Q': c.Q, 'R': c.R, 'S': c.S, 'N': 1}
}

// readConvolution reads the case of a row of RTL.
func readConvolution(text string) (c convolution, err error) {
	_, err = fmt.Sscanf(text, "c%d k%d p%d q%d r%d s%d stride%d pad%d acc%d",
		&c.C, &c.K, &c.P, &c.Q, &c.R, &c.S, &c.Stride, &c.Scratchpad, &c.Accumulator)
	if err == nil && min(c.C, c.K, c.P, c.Q, c.R, c.S, c.Stride, c.Scratchpad, c.Accumulator) < 1 {
		err = errors.New("a size is below 1")
	}
	if err != nil {
		return c, fmt.Errorf("case %q is no convolution: %w", text, err)
	}
	return c, nil
}

// blocking is how a convolution is cut for the buffers. Cuts are the loops over the DRAM: how many tiles each
// dimension has. The loops over the kernel and the input's channels are innermost.
type blocking struct {
	convolution
	Tile, Cuts map[byte]int64
}

// errInexpressible is why a mapping can't be a nest.
type errInexpressible string

func (e errInexpressible) Error() string { return string(e) }

const (
	sumsLeave errInexpressible = "sums leave the accumulator and come back"
	tooLargeA errInexpressible = "operands do not fit the scratchpad"
	tooLargeO errInexpressible = "sums do not fit the accumulator"
)

// ownTiles is in front of the tiles that the machine's own library chose.
const ownTiles = "Gemmini's own: tile "

var (
	levels = regexp.MustCompile(`^L3\[WIO\] (.*) - L2\[WI\] (.*) - L1\[O\] (.*) - L0\[W\] (.*)$`)
	factor = regexp.MustCompile(`^([NCKPQRS])(\d+)X?$`)
)

// readMapping reads the mapping of a row: loops from the DRAM inward, or the sizes of tiles.
func (c convolution) readMapping(text string) (b *blocking, err error) {
	b = &blocking{convolution: c, Tile: map[byte]int64{}, Cuts: map[byte]int64{}}
	inner, outer, given := levels.FindStringSubmatch(text), "", false
	if inner != nil {
		outer, inner, given = inner[1], inner[2:], true
	} else if tiles, ok := strings.CutPrefix(text, ownTiles); ok {
		inner = []string{tiles}
	} else {
		return nil, fmt.Errorf("mapping %q has neither loops nor tiles", text)
	}
	for d := range c.extents() {
		b.Tile[d], b.Cuts[d] = 1, 1
	}
	each := func(list string, visit func(d byte, n int64)) {
		for _, word := range strings.Fields(list) {
			m := factor.FindStringSubmatch(word)
			if m == nil {
				err = fmt.Errorf("mapping %q: %q is no loop", text, word)
				return
			}
			n, _ := strconv.ParseInt(m[2], 10, 64)
			visit(m[1][0], max(1, n))
		}
	}
	for _, list := range inner {
		each(list, func(d byte, n int64) { b.Tile[d] *= n })
	}
	reduces, leaves := false, false
	each(outer, func(d byte, n int64) {
		b.Cuts[d] *= n
		if n > 1 {
			reduction := strings.IndexByte("CRS", d) >= 0
			leaves = leaves || reduces && !reduction
			reduces = reduces || reduction
		}
	})
	if err != nil {
		return nil, err
	}
	for d, n := range c.extents() {
		b.Tile[d] = min(b.Tile[d], n)
		if given && b.Tile[d]*b.Cuts[d] < n {
			return nil, fmt.Errorf("mapping %q covers %d of %d of %c", text, b.Tile[d]*b.Cuts[d], n, d)
		}
		b.Cuts[d] = ceilDiv(n, b.Tile[d])
		b.Tile[d] = ceilDiv(n, b.Cuts[d])
	}
	if leaves {
		return nil, sumsLeave
	}
	if err := b.fits(); err != nil {
		return nil, err
	}
	return b, nil
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// input is a tile's height and width of the input.
func (b *blocking) input() (h, w int64) {
	return (b.Tile['P']-1)*b.Stride + b.Tile['R'], (b.Tile['Q']-1)*b.Stride + b.Tile['S']
}

// operands and results are bytes of a tile.
func (b *blocking) operands() (input, weights int64) {
	h, w := b.input()
	return b.Tile['C'] * h * w, b.Tile['C'] * b.Tile['K'] * b.Tile['R'] * b.Tile['S']
}

func (b *blocking) results() int64 { return b.Tile['P'] * b.Tile['Q'] * b.Tile['K'] }

// reductions counts the tiles of operands for a tile of results, and requests the requests that bring them and take
// the results.
func (b *blocking) reductions() int64 { return b.Cuts['C'] * b.Cuts['R'] * b.Cuts['S'] }

func (b *blocking) requests() int64 {
	x, w := b.operands()
	columns := min(b.Tile['K'], requestBytes)
	return b.reductions()*(ceilDiv(x, min(b.Tile['C'], requestBytes))+ceilDiv(w, columns)) + ceilDiv(b.results(), columns)
}

// padded is as the array computes: the channels of each element of the kernel fill its rows, whether there are as
// many or not.
func (b *blocking) padded() *blocking {
	p := *b
	p.Tile = maps.Clone(b.Tile)
	p.Tile['C'] = ceilDiv(b.Tile['C'], arrayRows) * arrayRows
	return &p
}

func (b *blocking) fits() error {
	if x, w := b.operands(); x+w > b.Scratchpad {
		return tooLargeA
	}
	if b.results()*schedule.AccumulatorBytes > b.Accumulator {
		return tooLargeO
	}
	return nil
}

const (
	// Published: so many requests of the DMA are under way, each of at most so many bytes that follow each other.
	requests, requestBytes = 16, 64
	arrayRows              = 16
	// mostTiles is the number of tiles of results that are simulated; more take as much longer as they are more.
	mostTiles = 64
)

// machine is the file's with the bandwidth that the requests of some tiles of results reach together: each takes the
// DDR's latency. Weights, which a simulated core without an LLB brings once, are in the requests of each tile. Tiles
// have room for two at a time: blocks of the next take the place of those that are done.
func (b *blocking) machine(spec *hardware.Spec, tiles int64) *hardware.Spec {
	m := spec.Clone()
	x, w := b.padded().operands()
	cuts := b.reductions()
	bytes := tiles*(x*cuts+b.results()) + w*cuts
	m.DDR.BandwidthBytesPerSecond = float64(bytes) / float64(tiles*b.requests()) * requests / spec.DDR.LatencySeconds
	m.DDRLink.BandwidthBytesPerSecond = 0
	sums := b.results() * (1 + schedule.AccumulatorBytes)
	m.LB.SizeBytes = hardware.Bytes(2*schedule.Align(x) + 2*schedule.Align(sums) + 4096)
	m.LBWeightBytes = hardware.Bytes(16*schedule.Align(w) + 4096) // of which the ring is three sixteenths
	return m
}

// cycles simulates the blocking: each tile of results is an image of its own, with the weights of one tile, since the
// loops over the DRAM bring what an iteration needs, whether the one before had it or not. A cut of the kernel is one
// of channels.
func (b *blocking) cycles(ctx context.Context, spec *hardware.Spec, recipe scheduler.Recipe) (float64, error) {
	all := b.Cuts['P'] * b.Cuts['Q'] * b.Cuts['K']
	images := min(all, mostTiles)
	machine, cuts := b.machine(spec, images), b.reductions()
	channels := b.padded().Tile['C']
	h, w := b.input()
	net := network.Network{Name: "tiles", Graph: func(batch int64) (*model.Graph, error) {
		g := model.NewBuilder("tiles")
		stride := []int64{b.Stride, b.Stride}
		attr := model.Attr{Strides: stride, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Group: 1}
		g.Output(g.Op("Conv", "conv", attr,
			g.Input("x", model.I8, batch, channels*cuts, h, w),
			g.Param("w", model.I8, b.Tile['K'], channels*cuts, b.Tile['R'], b.Tile['S'])))
		return g.Build()
	}}
	decide := func(_ context.Context, d *pipeline.Draft) error {
		reduction := make([]int64, cuts)
		for i := range reduction {
			reduction[i] = channels * b.Tile['R'] * b.Tile['S']
		}
		return d.Schedule.Follow(0, &schedule.Nest{Tiles: images, Depth: 2, Loads: 1, Pieces: 1,
			Vector: schedule.AtColumns, Store: schedule.AtColumns, Columns: []int64{b.Tile['K']}, Reduction: reduction, Sums: 2})
	}
	own := pipeline.Strategy{Name: "given", Description: "the blocking that a row gives", Decide: decide}
	made, err := scheduler.Run(ctx, net, machine, images, recipe.With("nest", own), scheduler.Options{Chunk: images})
	if err != nil {
		return 0, err
	}
	return made.LatencySeconds() * machine.ClockHz * float64(all) / float64(images), nil
}

// leaves is the number of tilings the exact search may look at.
const leaves = 2000

// ours are the tiles of the rule and the best of its space for a convolution.
func (c convolution) ours(ctx context.Context, spec *hardware.Spec) (rule, best *blocking, proven bool, err error) {
	costs, err := cost.New(spec)
	if err != nil {
		return nil, nil, false, err
	}
	window := tiling.Window{Height: c.R, Width: c.S, StrideHeight: c.Stride, StrideWidth: c.Stride, OutputWidth: c.Q}
	p := &tiling.Problem{Product: tiling.Product{Reps: 1, M: c.P * c.Q, N: c.K, K: c.C * c.R * c.S,
		RowBytes: 1, ColumnBytes: 1, ResultBytes: 1, Constant: true, Window: &window},
		Machine: *tiling.NewMachine(costs, model.I8, model.I8)}
	p.Ring, p.Data = c.Scratchpad/2, c.Scratchpad/2+c.Accumulator
	p.DDRWeights = requests * requestBytes / spec.DDR.LatencySeconds
	p.DDRActivations = p.DDRWeights
	r, err := tiling.Rule(p)
	if err != nil {
		return nil, nil, false, nil
	}
	x, err := tiling.Exact(ctx, p, solve.Options[*tiling.Blocks]{WorkLimit: leaves, Start: &r})
	if err != nil {
		return nil, nil, false, err
	}
	return c.blocks(&r), c.blocks(&x.Blocks), x.Status == milp.Optimal, ctx.Err()
}

// blocks is a tiling as a blocking: whole lines of the output, or parts of one.
func (c convolution) blocks(t *tiling.Blocks) *blocking {
	b := &blocking{convolution: c, Tile: c.extents(), Cuts: map[byte]int64{'N': 1}}
	rows := ceilDiv(c.P*c.Q, max(1, t.Rows))
	b.Tile['P'], b.Tile['Q'] = max(1, rows/c.Q), min(rows, c.Q)
	b.Tile['K'], b.Tile['C'] = min(c.K, t.Columns), min(c.C, max(1, t.Reduction/(c.R*c.S)))
	for d, n := range c.extents() {
		b.Cuts[d] = ceilDiv(n, b.Tile[d])
		b.Tile[d] = ceilDiv(n, b.Cuts[d])
	}
	return b
}

// rtlResult holds the predictions for a row of RTL, in cycles; 0: there is none.
type rtlResult struct {
	Cycles float64 `json:"cycles,omitempty"`
	Error  string  `json:"error,omitempty"`
	Rule   float64 `json:"rule_cycles,omitempty"`
	Best   float64 `json:"best_cycles,omitempty"`
	Proven bool    `json:"best_proven,omitempty"`
}

// predictRTL is a cell: rows of one pair of buffers. The second row of a convolution is of another mapping of it.
func predictRTL(ctx context.Context, rows []row, recipe scheduler.Recipe) (list []rtlResult, err error) {
	known := map[convolution]bool{}
	for _, r := range rows {
		c, err := readConvolution(r.Case)
		if err != nil {
			return nil, err
		}
		spec := harness.Accelerator(r.Machine)
		var out rtlResult
		b, err := c.readMapping(r.Remark)
		var no errInexpressible
		switch {
		case errors.As(err, &no):
			out.Error = no.Error()
		case err != nil:
			return nil, err
		default:
			if out.Cycles, err = b.cycles(ctx, spec, recipe); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", r.Case, r.Remark, err)
			}
		}
		if !known[c] {
			known[c] = true
			rule, best, proven, err := c.ours(ctx, spec)
			if err != nil {
				return nil, err
			}
			if rule != nil {
				out.Proven = proven
				for to, b := range map[*float64]*blocking{&out.Rule: rule, &out.Best: best} {
					if *to, err = b.cycles(ctx, spec, recipe); err != nil {
						return nil, fmt.Errorf("%s, our tiles: %w", r.Case, err)
					}
				}
			}
		}
		list = append(list, out)
	}
	return list, nil
}

// layer is a convolution on one pair of buffers, with what was measured and predicted of its mappings.
type layer struct {
	convolution
	Apart      bool      // not looked at while the model of the DMA was chosen
	Given, Own *rtlTimes // nil: no row
	ours       rtlResult
}

type rtlTimes struct {
	Measured, Predicted float64 // cycles; Predicted is 0 where there is none
	Error               string
}

// layersOf groups rows of RTL. Every other pair of buffers, from the second on, is kept apart.
func layersOf(rows []row, results []rtlResult) (list []*layer, err error) {
	at := map[convolution]*layer{}
	var buffers [][2]int64
	for i, r := range rows {
		c, err := readConvolution(r.Case)
		if err != nil {
			return nil, err
		}
		pair := [2]int64{c.Scratchpad, c.Accumulator}
		if !slices.Contains(buffers, pair) {
			buffers = append(buffers, pair)
		}
		l := at[c]
		if l == nil {
			l = &layer{convolution: c, Apart: slices.Index(buffers, pair)%2 == 1, ours: results[i]}
			at[c] = l
			list = append(list, l)
		}
		x := &rtlTimes{r.Value, results[i].Cycles, results[i].Error}
		if strings.HasPrefix(r.Remark, ownTiles) {
			l.Own = x
		} else {
			l.Given = x
		}
	}
	return list, nil
}

// rtlTables compares predictions with cycles of RTL: errors, and the order of mappings.
func rtlTables(layers []*layer) (list []harness.Table) {
	errs := harness.Table{Name: "rtl", Title: "Gemmini: cycles of mappings against RTL", Columns: []harness.Column{
		{Name: "Buffers", Text: true}, {Name: "Tiles", Text: true}, {Name: "Rows"}, {Name: "Predicted"},
		{Name: "Error"}, {Name: "Within 25 %"}, {Name: "Predicted over RTL"}, {Name: "Rank correlation"},
		{Name: "Not expressible", Text: true}}}
	order := harness.Table{Name: "rtl-order", Title: "Gemmini: which of two mappings is faster, and our tiles beside them"}
	order.Columns = []harness.Column{
		{Name: "Buffers", Text: true}, {Group: "Pairs", Name: "n"}, {Group: "Pairs", Name: "ordered right"},
		{Group: "Pairs", Name: "given is faster"},
		{Group: "Predicted over given's", Name: "own"}, {Group: "Predicted over given's", Name: "rule"},
		{Group: "Predicted over given's", Name: "best"}, {Name: "Best proven"},
		{Group: "Predicted over RTL's faster", Name: "rule"}, {Group: "Predicted over RTL's faster", Name: "best"}}
	for _, part := range []struct {
		name string
		has  func(*layer) bool
	}{{"looked at", func(l *layer) bool { return !l.Apart }},
		{"kept apart", func(l *layer) bool { return l.Apart }},
		{"all", func(*layer) bool { return true }}} {
		var own, rule, best, ruleRTL, bestRTL sample
		pairs, right, givenFaster, n, proven := 0, 0, 0, 0, 0
		for _, tiler := range []string{"given", "own"} {
			var s sample
			var a, b []float64
			rows, why := 0, map[string]int{}
			for _, l := range layers {
				x := map[string]*rtlTimes{"given": l.Given, "own": l.Own}[tiler]
				switch {
				case !part.has(l) || x == nil:
					continue
				case x.Error != "":
					why[x.Error]++
				default:
					s.add(x.Predicted / x.Measured)
					a, b = append(a, x.Predicted), append(b, x.Measured)
				}
				rows++
			}
			if len(s.logs) == 0 {
				continue
			}
			var text []string
			for _, k := range slices.Sorted(maps.Keys(why)) {
				text = append(text, fmt.Sprintf("%d: %s", why[k], k))
			}
			errs.Rows = append(errs.Rows, []string{part.name, tiler, fmt.Sprint(rows), fmt.Sprint(len(s.logs)),
				number(s.spread()), harness.Percent(s.within()), number(s.bias()), number(harness.Spearman(a, b)),
				strings.Join(text, "; ")})
		}
		for _, l := range layers {
			if !part.has(l) || l.Given == nil || l.Own == nil || l.Given.Error != "" {
				continue
			}
			if l.Own.Error == "" {
				pairs++
				if l.Given.Measured < l.Own.Measured {
					givenFaster++
				}
				if (l.Given.Measured < l.Own.Measured) == (l.Given.Predicted < l.Own.Predicted) {
					right++
				}
				own.add(l.Own.Predicted / l.Given.Predicted)
			}
			if l.ours.Rule > 0 {
				n++
				if l.ours.Proven {
					proven++
				}
				fastest := min(l.Given.Measured, l.Own.Measured)
				rule.add(l.ours.Rule / l.Given.Predicted)
				best.add(l.ours.Best / l.Given.Predicted)
				ruleRTL.add(l.ours.Rule / fastest)
				bestRTL.add(l.ours.Best / fastest)
			}
		}
		if pairs > 0 && n > 0 {
			share := func(k, n int) string { return harness.Percent(float64(k)/float64(n)) + " %" }
			order.Rows = append(order.Rows, []string{part.name, fmt.Sprint(pairs), share(right, pairs),
				share(givenFaster, pairs),
				number(own.bias()), number(rule.bias()), number(best.bias()), share(proven, n),
				number(ruleRTL.bias()), number(bestRTL.bias())})
		}
	}
	errs.Notes = []string{
		"Half of the pairs of buffers were looked at while the model of the DMA was chosen: 16 requests " +
			"under way of at most 64 bytes in a row, each of which takes the DDR's latency. Own: the tiles that the machine's " +
			"library chose; its source gives the same tiles for all sizes of buffers, so that many cannot be what ran."}
	order.Notes = []string{
		"Ratios are geometric means of cycles. Rule and best are our tiles by closed form and the best of " +
			"their space by branch and bound, run by the same program as the mappings. No RTL ran them, so that only the order " +
			"of mappings that did run is a test."}
	return []harness.Table{errs, order}
}
