package bound

import (
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A copied product has constant weights, of which cores that share its columns each load a copy, as those that share
// its rows do of what these read, where the LLB does not broadcast.
type copied struct {
	weights float64 // bytes of one copy
	rows    float64 // bytes of one copy of what its rows read; 0: not known
	sums    float64 // bytes that each slice of the reduction beyond the first moves
	peak    float64 // seconds on all cores, with every cell of the arrays at work
	edges   float64 // of the path, that it and vector work behind it take beyond what any command of each unit does
	columns int64
	depth   int64 // elements of the reduction, which slices divide
	input   bool  // its rows read an input of the network, of which no copy lies where it is read
	on      bool  // the path
	waits   bool  // its rows read what the operator before it on the path makes
}

// A copying is what a network moves through an LLB that does not broadcast, and a path through it.
type copying struct {
	kinds     []copied
	products  map[copied]float64 // how many of each kind
	rest      float64            // bytes of weights of which one copy leaves the LLB
	matrix    float64            // seconds of the matrix unit
	path      []model.OpID
	along     float64 // seconds of the path, with all cores and without moves
	cores     float64 // that have a matrix unit
	bandwidth float64
	move      float64 // latency between the LLB and a core
	sync      float64
	idle      float64 // share of the LLB during launches
}

// copies finds the products of which copies can be counted; nil: there are none. Nor are they where cores are of
// several kinds: fewer and larger ones load fewer copies.
func (w *work) copies(m *cost.Model, spec *hardware.Spec) *copying {
	if w.may != lines || spec.LLB == nil || spec.CoreLink.Broadcast || !m.HasMatrix() || spec.Mixed() {
		return nil
	}
	cores := m.Units(hardware.Matrix, max(1, schedule.CoresWithL1(spec)))
	c := &copying{products: map[copied]float64{}, rest: w.weightBytes(), matrix: w.total()[matrix],
		cores: float64(cores), bandwidth: spec.LLB.BandwidthBytesPerSecond,
		move: spec.LLB.LatencySeconds + spec.CoreLink.LatencySeconds, sync: spec.SyncSeconds, idle: idle(spec)}
	fill, simple, special := m.Fills()
	c.path, c.along = w.path(c.move)
	least := float64(schedule.AccumulatorBytes)
	for _, t := range w.g.Tensors {
		if t.Producer != model.NoOp {
			least = min(least, t.DType.Size())
		}
	}
	counted := make([]bool, len(w.g.Tensors))
	for i, op := range w.g.Ops {
		known := op.Kind == "Conv" && op.Attr.Group == 1 || op.Kind == "MatMul" || op.Kind == "Gemm"
		if w.ops[i][matrix] == 0 || !known {
			continue
		}
		rows, weights, out := w.g.Tensor(op.Inputs[0]), w.g.Tensor(op.Inputs[1]), w.g.Tensor(op.Outputs[0])
		d, ok := w.g.MatrixDims(op, model.Whole(out.Shape))
		if !ok || d.Reps != 1 || weights.Role != model.Constant {
			continue
		}
		n := float64(w.need[out.ID].elements())
		row, _, _ := m.MatrixRate(rows.DType)
		p := copied{weights: n / float64(d.M) * float64(d.K) * weights.DType.Size(), sums: 2 * n * least,
			peak:    n * float64(d.K) * row / float64(m.MatrixRows()*m.MatrixCols()) / c.cores / spec.ClockHz,
			columns: d.N, depth: d.K, input: rows.Role == model.Input}
		k := slices.Index(c.path, op.ID)
		if p.on = k >= 0; p.on {
			p.edges = w.ops[i][matrix] + w.tail[i] - p.peak - (fill+w.fillBehind(op, simple, special))/spec.ClockHz
		}
		if each := rowElements(w.g, op, d.K); rows.Role != model.Constant && each > 0 {
			p.rows = n / float64(d.N) * float64(each) * rows.DType.Size()
			p.waits = k > 0 && c.path[k-1] == rows.Producer
		}
		if !counted[weights.ID] {
			c.rest -= w.weights[weights.ID]
		}
		counted[weights.ID] = true
		if c.products[p]++; c.products[p] == 1 {
			c.kinds = append(c.kinds, p)
		}
	}
	if len(c.products) == 0 {
		return nil
	}
	return c
}

// path is a long path through the network of which each operator reads some of the one before for each of its elements,
// and the time of its layers, those of a product by its matrix unit. move is what makes one with more products longer.
func (w *work) path(move float64) (path []model.OpID, seconds float64) {
	n := len(w.g.Ops)
	sum, before := make([]float64, n), make([]int, n)
	last := -1
	for i := range n {
		before[i] = -1
		for k := range w.links[i] {
			l := &w.links[i][k]
			if l.gaps == 0 && !l.late && w.needed(int(l.from)) && (before[i] < 0 || sum[l.from] > sum[before[i]]) {
				before[i] = int(l.from)
			}
		}
		if !w.needed(i) {
			continue
		}
		if w.ops[i][matrix] > 0 {
			sum[i] = w.ops[i][matrix] + w.tail[i] + 2*move
		} else {
			sum[i] = math.Max(w.ops[i][vector], w.ops[i][special])
		}
		if before[i] >= 0 {
			sum[i] += sum[before[i]]
		}
		if last < 0 || sum[i] > sum[last] {
			last = i
		}
	}
	for i := last; i >= 0; i = before[i] {
		path = append(path, model.OpID(i))
	}
	slices.Reverse(path)
	return path, w.along(path)
}

// along is the time of a path's layers, which begin where they must, each by the unit with most; those of products by
// the matrix unit.
func (w *work) along(path []model.OpID) (seconds float64) {
	var run [numUnits]float64
	product := false
	end := func() {
		if product {
			seconds += run[matrix]
		} else {
			seconds += best(run).most()
		}
	}
	for k, i := range path {
		if k == 0 || !slices.ContainsFunc(w.links[i], func(l link) bool { return l.from == path[k-1] && l.fused }) {
			end()
			run, product = [numUnits]float64{}, w.ops[i][matrix] > 0
		}
		for u, t := range w.ops[i] {
			run[u] += t
		}
		run[matrix] += w.tail[i]
	}
	end()
	return seconds
}

// rowElements is the number of elements of its first operand that each row of a product reads and that differ from
// row to row; 0 if more than half of a window may lie outside.
func rowElements(g *model.Graph, op *model.Op, reduction int64) int64 {
	if op.Kind != "Conv" {
		return reduction
	}
	in, out := g.Tensor(op.Inputs[0]).Shape, g.Tensor(op.Outputs[0]).Shape
	for d, a := range g.Access(op, 0, 0)[2:] {
		window := a.B - a.A + 1
		if a.Full || 2*-a.A >= window || 2*((out[2+d]-1)*a.Num+a.B+1-in[2+d]) >= window {
			return 0
		}
	}
	return in[1]
}

// least is the least weighted mean of a cluster's time by its matrix unit, by the path and by what the LLB moves
// beside so many bytes, the weights of the latter two given; of each product, on as many cores, parts of its columns
// and slices of its reduction as are best for it.
func (c *copying) least(launch, bytes, path, llb float64) float64 {
	units := 1 - path - llb
	sum := (1-llb+llb*c.idle)*launch + units*c.matrix + path*c.along + llb*(bytes+c.rest)/c.bandwidth
	for _, p := range c.kinds {
		sum += c.products[p] * c.of(&p, units, path, llb)
	}
	return sum
}

// finer is the ratio of neighbouring numbers of parts of columns, of which two stand for all between.
const finer = 1.05

// of is the least share of a product in a mean, beyond what its units take on all cores.
func (c *copying) of(p *copied, units, path, llb float64) float64 {
	known := units * p.peak // that the sums without it have
	waits := 0.0
	switch {
	case p.waits:
		waits, known = path, known+path*(p.peak+p.edges)
	case p.on:
		units, known = units+path, known+path*p.peak
	}
	a := p.peak * c.cores
	rows, sums := p.rows/c.bandwidth, llb*p.sums/c.bandwidth
	least := math.Inf(1)
	for slices := int64(1); slices <= min(p.depth, int64(c.cores)); slices++ {
		s := float64(slices)
		own, wait := 1.0, 2*c.move // of what cores make, one copy may lie where it is read
		if slices > 1 {
			own, wait = 0, 4*c.move+c.sync
		}
		if p.input {
			own = 0
		}
		fixed := sums * (s - 1)
		if fixed >= least || p.depth%slices != 0 {
			continue
		}
		try := func(lo, hi, fixed float64) bool { // so many parts of columns
			brought := rows * (lo - own)
			weights := llb * p.weights / (c.bandwidth * s * hi)
			fixed += llb * brought
			if fixed+waits*brought >= least {
				return false
			}
			either := math.Sqrt(a * (units + waits) / weights)
			for _, n := range []float64{either, math.Sqrt(a * units / weights), a / brought} {
				if math.IsNaN(n) {
					n = c.cores
				}
				n = max(s*lo, min(c.cores, n))
				least = min(least, units*a/n+waits*max(a/n, brought)+weights*n+fixed)
			}
			return true
		}
		most := max(1, min(float64(p.columns), c.cores/s))
		if slices == 1 {
			try(1, 1, fixed)
		}
		for lo := 1.0; lo < most; lo *= finer {
			if !try(lo, min(most, lo*finer), fixed+waits*wait) {
				break
			}
		}
	}
	return least - known
}

// most is about the largest bound that weighted means give, with the weights of the path and of the LLB.
func (c *copying) most(ctx context.Context, launch, bytes float64) (seconds, path, llb float64) {
	at := func(path, llb float64) *mean {
		return &mean{seconds: c.least(launch, bytes, path, llb), prices: Prices{Path: path, LLB: llb}}
	}
	m := peak(ctx, 1, func(llb float64) *mean {
		return peak(ctx, 1-llb, func(path float64) *mean { return at(path, llb) })
	})
	for _, other := range []*mean{at(0, 1), at(1, 0)} { // which peak does not look at
		if other.seconds > m.seconds {
			m = other
		}
	}
	return m.seconds, m.prices.Path, m.prices.LLB
}
