package measured

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/internal/bail"
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

// blocking is how a convolution is cut for the buffers: the largest tile of each dimension. Each tile brings all it
// needs, whether the one before had it or not, and takes its results out behind the last of the reduction. The order of
// the loops changes nothing: the program leaves sums in the accumulator even where others come between.
type blocking struct {
	convolution
	Tile map[byte]int64
}

// ownTiles is in front of the tiles that the machine's own library chose.
const ownTiles = "Gemmini's own: tile "

var (
	levels = regexp.MustCompile(`^L3\[WIO\] (.*) - L2\[WI\] (.*) - L1\[O\] (.*) - L0\[W\] (.*)$`)
	factor = regexp.MustCompile(`^([NCKPQRS])(\d+)X?$`)
)

// readMapping reads the mapping of a row: loops from the DRAM inward, or the sizes of tiles. P and R lie along a line:
// the program that made the runs reads them so (extract_data_csv.py of gemmini-rocc-tests).
func (c convolution) readMapping(text string) (b *blocking, err error) {
	b = &blocking{convolution: c, Tile: map[byte]int64{}}
	inner, outer := levels.FindStringSubmatch(text), ""
	tiles, own := strings.CutPrefix(text, ownTiles)
	switch {
	case inner != nil:
		outer, inner = inner[1], inner[2:]
	case own:
		inner = []string{tiles}
	default:
		return nil, fmt.Errorf("mapping %q has neither loops nor tiles", text)
	}
	cuts := map[byte]int64{}
	for d := range c.extents() {
		b.Tile[d], cuts[d] = 1, 1
	}
	each := func(list string, to map[byte]int64) {
		for _, word := range strings.Fields(list) {
			m := factor.FindStringSubmatch(word)
			if m == nil {
				err = fmt.Errorf("mapping %q: %q is no loop", text, word)
				return
			}
			n, _ := strconv.ParseInt(m[2], 10, 64)
			to[m[1][0]] *= max(1, n)
		}
	}
	for _, list := range inner {
		each(list, b.Tile)
	}
	each(outer, cuts)
	for d, n := range c.extents() {
		if b.Tile[d] = min(b.Tile[d], n); !own && b.Tile[d]*cuts[d] < n {
			return nil, fmt.Errorf("mapping %q covers %d of %d of %c", text, b.Tile[d]*cuts[d], n, d)
		}
	}
	return b, err
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// input is a tile's height and width of the input.
func (b *blocking) input() (h, w int64) {
	return (b.Tile['Q']-1)*b.Stride + b.Tile['S'], (b.Tile['P']-1)*b.Stride + b.Tile['R']
}

// product tells whether the library multiplies matrices, for which it has loops of their own.
func (c *convolution) product() bool { return c.Q == 1 && c.R == 1 && c.S == 1 }

// reductions are the input's channels of each tile of operands that a tile of results needs.
func (b *blocking) reductions() (channels []int64) {
	for range ceilDiv(b.R, b.Tile['R']) * ceilDiv(b.S, b.Tile['S']) {
		for at := int64(0); at < b.C; at += b.Tile['C'] {
			channels = append(channels, min(b.Tile['C'], b.C-at))
		}
	}
	return channels
}

const (
	// Published: so many requests of the DMA are under way, each of at most so many bytes that follow each other.
	requests, requestBytes = 16, 64
	arrayRows              = 16
	// mostTiles is the number of tiles of results that are simulated; more take as much longer as they are more.
	mostTiles = 64
)

// requests counts those that bring the operands of a tile of results, and take the results: of a convolution the
// columns of one block at a time.
func (b *blocking) requests() (n int64) {
	h, w := b.input()
	for _, c := range b.reductions() {
		n += h*w*ceilDiv(c, requestBytes) + c*b.Tile['R']*b.Tile['S']*ceilDiv(b.Tile['K'], requestBytes)
	}
	stored := int64(arrayRows)
	if b.product() {
		stored = requestBytes
	}
	return n + b.Tile['P']*b.Tile['Q']*ceilDiv(b.Tile['K'], stored)
}

// bytes counts a tile's operands, the largest tile of each operand, and the results. The channels
// of each element of the kernel fill the array's rows, whether there are as many or not.
func (b *blocking) bytes() (inputs, weights, input, weight, results int64) {
	h, w := b.input()
	for _, c := range b.reductions() {
		c = ceilDiv(c, arrayRows) * arrayRows
		inputs, weights = inputs+c*h*w, weights+c*b.Tile['K']*b.Tile['R']*b.Tile['S']
		input, weight = max(input, c*h*w), max(weight, c*b.Tile['K']*b.Tile['R']*b.Tile['S'])
	}
	return inputs, weights, input, weight, b.Tile['P'] * b.Tile['Q'] * b.Tile['K']
}

// machine is the file's with the bandwidth that the requests of some tiles of results reach together: each takes the
// DDR's latency. Weights, which a simulated core without an LLB brings once, are in the requests of each tile. Tiles
// have room for two at a time: blocks of the next take the place of those that are done.
func (b *blocking) machine(spec *hardware.Spec, tiles int64) *hardware.Spec {
	m := spec.Clone()
	inputs, weights, input, weight, results := b.bytes()
	bytes := tiles*(inputs+results) + weights
	m.DDR.BandwidthBytesPerSecond = float64(bytes) / float64(tiles*b.requests()) * requests / spec.DDR.LatencySeconds
	m.DDRLink.BandwidthBytesPerSecond = 0
	sums := results * (1 + schedule.AccumulatorBytes)
	m.L1.SizeBytes = hardware.Bytes(2*schedule.Align(input) + 2*schedule.Align(sums) + 4096)
	m.L1WeightBytes = hardware.Bytes(16*schedule.Align(weight) + 4096) // of which the ring is three sixteenths
	return m
}

// cycles simulates the blocking: tiles of one shape in turn, and those at the borders behind them.
func (b *blocking) cycles(ctx context.Context, spec *hardware.Spec, recipe scheduler.Recipe) (sum float64) {
	for _, p := range borders(b.P, b.Tile['P']) {
		for _, q := range borders(b.Q, b.Tile['Q']) {
			for _, k := range borders(b.K, b.Tile['K']) {
				one := blocking{b.convolution, maps.Clone(b.Tile)}
				one.Tile['P'], one.Tile['Q'], one.Tile['K'] = p[0], q[0], k[0]
				all := p[1] * q[1] * k[1]
				tiles := min(all, mostTiles)
				first := 0.0
				if sum > 0 { // what the first begins with, and the last ends with, is there
					first = one.simulated(ctx, spec, recipe, 1)
					tiles++
				}
				sum += (one.simulated(ctx, spec, recipe, tiles) - first) * float64(all) / float64(min(all, mostTiles))
			}
		}
	}
	return sum
}

// borders lists extents of tiles and how many there are of each: the whole ones and the rest.
func borders(n, tile int64) (list [][2]int64) {
	if n >= tile {
		list = append(list, [2]int64{tile, n / tile})
	}
	if n%tile > 0 {
		list = append(list, [2]int64{n % tile, 1})
	}
	return list
}

// simulated is the cycles of so many tiles of results: each is an image of its own, with the weights of one tile. A cut
// of the kernel is one of channels.
func (b *blocking) simulated(ctx context.Context, spec *hardware.Spec, recipe scheduler.Recipe,
	images int64) float64 {
	machine := b.machine(spec, images)
	h, w := b.input()
	var channels int64
	var reduction []int64
	for _, c := range b.reductions() {
		c = ceilDiv(c, arrayRows) * arrayRows
		channels, reduction = channels+c, append(reduction, c*b.Tile['R']*b.Tile['S'])
	}
	net := network.Network{Name: "tiles", Graph: func(batch int64) (*model.Graph, error) {
		g := model.NewBuilder("tiles")
		stride := []int64{b.Stride, b.Stride}
		attr := model.Attr{Strides: stride, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Group: 1}
		g.Output(g.Op("Conv", "conv", attr,
			g.Input("x", model.I8, batch, channels, h, w),
			g.Param("w", model.I8, b.Tile['K'], channels, b.Tile['S'], b.Tile['R'])))
		return g.Build()
	}}
	decide := func(_ context.Context, d *scheduler.Draft) error {
		return d.Schedule.Follow(0, &schedule.Nest{Tiles: images, Depth: 2, Loads: 1, Pieces: 1,
			Vector: schedule.AtColumns, Store: schedule.AtColumns, Columns: []int64{b.Tile['K']}, Reduction: reduction,
			Sums: 2})
	}
	own := scheduler.Strategy{Name: "given", Description: "the blocking that a row gives", Decide: decide}
	made := bail.Of(scheduler.Run(ctx, net, machine, images, recipe.With("nest", own), scheduler.Options{Chunk: images}))
	return made.LatencySeconds() * machine.ClockHz
}

// leaves is the number of tilings the exact search may look at.
const leaves = 2000

// ours are the tiles of the rule and the best of its space for a convolution; nil: the rule has none.
func (c convolution) ours(ctx context.Context, spec *hardware.Spec) (rule, best *blocking, proven bool) {
	costs := bail.Of(cost.New(spec))
	window := tiling.Window{Height: c.S, Width: c.R, StrideHeight: c.Stride, StrideWidth: c.Stride, OutputWidth: c.P}
	p := &tiling.Problem{Product: tiling.Product{Reps: 1, M: c.P * c.Q, N: c.K, K: c.C * c.R * c.S,
		RowBytes: 1, ColumnBytes: 1, ResultBytes: 1, Constant: true, Window: &window},
		Machine: *tiling.NewMachine(costs, model.I8, model.I8)}
	p.Ring, p.Data = c.Scratchpad/2, c.Scratchpad/2+c.Accumulator
	p.DDRWeights = requests * requestBytes / spec.DDR.LatencySeconds
	p.DDRActivations, p.Request = p.DDRWeights, requestBytes
	r, err := tiling.Rule(p)
	if err != nil {
		return nil, nil, false
	}
	x := bail.Of(tiling.Exact(ctx, p, solve.Options[*tiling.Blocks]{WorkLimit: leaves, Start: &r}))
	bail.Check(ctx.Err())
	return c.blocks(&r), c.blocks(&x.Blocks), x.Status == milp.Optimal
}

// blocks is a tiling as a blocking: whole lines of the output, or parts of one.
func (c convolution) blocks(t *tiling.Blocks) *blocking {
	b := &blocking{convolution: c, Tile: c.extents()}
	rows := ceilDiv(c.P*c.Q, max(1, t.Rows))
	b.Tile['Q'], b.Tile['P'] = max(1, rows/c.P), min(rows, c.P)
	b.Tile['K'], b.Tile['C'] = min(c.K, t.Columns), min(c.C, max(1, t.Reduction/(c.R*c.S)))
	for d, n := range c.extents() {
		b.Tile[d] = ceilDiv(n, ceilDiv(n, b.Tile[d]))
	}
	return b
}

// rtlResult holds the predictions for a row of RTL, in cycles; 0: there is none.
type rtlResult struct {
	Cycles float64 `json:"cycles,omitempty"`
	Rule   float64 `json:"rule_cycles,omitempty"`
	Best   float64 `json:"best_cycles,omitempty"`
	Proven bool    `json:"best_proven,omitempty"`
}

// predictRTL is a cell: rows of one pair of buffers. The second row of a convolution is of another mapping of it.
func predictRTL(ctx context.Context, rows []row, recipe scheduler.Recipe) (list []rtlResult) {
	known := map[convolution]bool{}
	for _, r := range rows {
		c, spec := bail.Of(readConvolution(r.Case)), harness.Accelerator(r.Machine)
		cycles := func(tiles string, b *blocking) float64 {
			defer bail.Within(func() string { return r.Case + ", " + tiles })
			return b.cycles(ctx, spec, recipe)
		}
		out := rtlResult{Cycles: cycles(r.Remark, bail.Of(c.readMapping(r.Remark)))}
		if !known[c] {
			known[c] = true
			if rule, best, proven := c.ours(ctx, spec); rule != nil {
				out.Rule, out.Best, out.Proven = cycles("our tiles", rule), cycles("our tiles", best), proven
			}
		}
		list = append(list, out)
	}
	return list
}

// layer is a convolution on one pair of buffers, with what was measured and predicted of its mappings.
type layer struct {
	convolution
	Given, Own *rtlTimes // nil: no row
	ours       rtlResult
}

type rtlTimes struct {
	Measured, Predicted float64 // cycles
}

// apart tells whether a convolution, on whatever buffers, is of the half that was not looked at while the model was
// chosen: by a bit of the hash of its extents.
func (c *convolution) apart() bool {
	h := fnv.New64a()
	fmt.Fprintf(h, "c%d k%d p%d q%d r%d s%d stride%d", c.C, c.K, c.P, c.Q, c.R, c.S, c.Stride)
	x := h.Sum64()
	return (x^x>>32)&1 == 1
}

// layersOf groups rows of RTL.
func layersOf(rows []row, results []rtlResult) (list []*layer, err error) {
	at := map[convolution]*layer{}
	for i, r := range rows {
		c, err := readConvolution(r.Case)
		if err != nil {
			return nil, err
		}
		l := at[c]
		if l == nil {
			l = &layer{convolution: c, ours: results[i]}
			at[c] = l
			list = append(list, l)
		}
		x := &rtlTimes{r.Value, results[i].Cycles}
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
	errs := harness.Table{Name: "rtl", Title: "Gemmini: cycles of mappings against RTL", Columns: harness.Columns(
		"<Convolutions", "<Tiles", "Rows", "Error", "Within 25 %",
		"Predicted over RTL", "Rank correlation")}
	order := harness.Table{Name: "rtl-order", Title: "Gemmini: which of two mappings is faster", Columns: harness.Columns(
		"<Convolutions",
		"Given and own|pairs|ordered right|given is faster", "Given on two buffers|pairs|ordered right")}
	tiles := harness.Table{Name: "rtl-tiles", Title: "Gemmini: our tiles beside those that ran", Columns: harness.Columns(
		"<Convolutions", "Predicted over given's|own|rule|best",
		"Best proven", "Predicted over RTL's faster|rule|best")}
	share := func(k, n int) string { return harness.Percent(float64(k)/float64(max(1, n))) + " %" }
	for _, part := range []struct {
		name string
		has  func(*layer) bool
	}{{"looked at", func(l *layer) bool { return !l.apart() }},
		{"kept apart", func(l *layer) bool { return l.apart() }},
		{"all", func(*layer) bool { return true }}} {
		var own, rule, best, ruleRTL, bestRTL sample
		pairs, right, givenFaster, n, proven, buffers, buffersRight := 0, 0, 0, 0, 0, 0, 0
		for _, tiler := range []string{"given", "own"} {
			var s sample
			var a, b []float64
			for _, l := range layers {
				if x := map[string]*rtlTimes{"given": l.Given, "own": l.Own}[tiler]; part.has(l) && x != nil {
					s.add(x.Predicted / x.Measured)
					a, b = append(a, x.Predicted), append(b, x.Measured)
				}
			}
			if len(s.logs) > 0 {
				errs.Rows = append(errs.Rows, []string{part.name, tiler, fmt.Sprint(len(s.logs)), number(s.spread()),
					harness.Percent(s.within()), number(s.bias()), number(harness.Spearman(a, b))})
			}
		}
		for i, l := range layers {
			if !part.has(l) || l.Given == nil || l.Own == nil {
				continue
			}
			pairs++
			if l.Given.Measured < l.Own.Measured {
				givenFaster++
			}
			if (l.Given.Measured < l.Own.Measured) == (l.Given.Predicted < l.Own.Predicted) {
				right++
			}
			for _, o := range layers[i+1:] {
				if o.Given == nil || !l.alike(&o.convolution) || math.Abs(math.Log(l.Given.Measured/o.Given.Measured)) < distinct {
					continue
				}
				buffers++
				if (l.Given.Measured < o.Given.Measured) == (l.Given.Predicted < o.Given.Predicted) {
					buffersRight++
				}
			}
			own.add(l.Own.Predicted / l.Given.Predicted)
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
			order.Rows = append(order.Rows, []string{part.name, fmt.Sprint(pairs), share(right, pairs),
				share(givenFaster, pairs), fmt.Sprint(buffers), share(buffersRight, buffers)})
			tiles.Rows = append(tiles.Rows, []string{part.name, number(own.bias()), number(rule.bias()), number(best.bias()),
				share(proven, n), number(ruleRTL.bias()), number(bestRTL.bias())})
		}
	}
	errs.Notes = []string{
		"Half of the convolutions, by a hash of their extents, were looked at while the model was chosen. The array has five " +
			"commands under way, of a line of results each (in_flight in the machine's file); the DMA 16 requests of at most 64 " +
			"bytes in a row, each of which takes the DDR's latency. Own: the tiles that the machine's library chooses for " +
			"buffers of 256 and 64 KiB, which are in all rows. It ran first, with nothing in the caches."}
	order.Notes = []string{"Given on two buffers: mappings of one convolution for two pairs of buffers whose cycles " +
		"differ by more than 10 %."}
	tiles.Notes = []string{
		"Ratios are geometric means of cycles. Rule and best are our tiles by closed form and the best of their space by " +
			"branch and bound, run by the same program as the mappings. No RTL ran them, so that only the order of mappings that " +
			"did run is a test."}
	return []harness.Table{errs, order, tiles}
}

// distinct is the logarithm of a ratio of cycles from which on two mappings count as different.
var distinct = math.Log(1.1)

// alike tells whether both are one convolution, on whatever buffers.
func (c *convolution) alike(o *convolution) bool {
	a, b := *c, *o
	a.Scratchpad, a.Accumulator, b.Scratchpad, b.Accumulator = 0, 0, 0, 0
	return a == b
}
