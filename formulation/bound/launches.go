package bound

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A marker is a product on a path through the network. The markers that a group has follow each
// other on the path, and so do the operators between them.
type marker struct {
	op   model.OpID
	ways []way
	kept []kept // results between
}

// A way to split is what any kernel that has some of a marker's elements has all of, if groups
// are split along a certain dimension.
type way struct {
	// Of operators between marker i and this one: constants[i] is bytes of them, products[i] seconds of the matrix unit.
	constants, products []float64
	whole               []bool // of each kept result, that a kernel has all of it
}

// A kept result is one that lies in a memory in one piece when its layer has ended.
type kept struct {
	at     int     // last marker from which a path leads to it
	bytes  float64 // that the marker's elements need
	tensor model.TensorID
}

// mark finds the markers of the path with the most weights and results, those of layers in lines whatever layers there
// may be, and what lies between.
func (w *work) mark(ctx context.Context) []marker {
	g := w.g
	size := w.results(lines)
	sum, before := make([]float64, len(g.Ops)), make([]int, len(g.Ops))
	last := -1
	product := func(i int) bool {
		op := g.Ops[i]
		return g.OnMatrixUnit(op) && len(op.Outputs) == 1 && w.need[op.Outputs[0]].elements() > 0
	}
	for i, op := range g.Ops {
		before[i] = -1
		for _, l := range w.links[i] {
			if before[i] < 0 || sum[l.from] > sum[before[i]] {
				before[i] = int(l.from)
			}
		}
		if before[i] >= 0 {
			sum[i] = sum[before[i]]
		}
		if product(i) {
			for _, t := range op.Inputs {
				sum[i] += w.weights[t]
			}
			if sum[i] += float64(w.need[op.Outputs[0]].elements()) * size[op.Outputs[0]]; last < 0 || sum[i] > sum[last] {
				last = i
			}
		}
	}
	var path []model.OpID
	for i := last; i >= 0; i = before[i] {
		if product(i) {
			path = append(path, model.OpID(i))
		}
	}
	slices.Reverse(path)
	at := make([]int, len(g.Ops)) // the last marker from which a path leads to each operator
	for i := range at {
		at[i] = slices.Index(path, model.OpID(i))
		for _, l := range w.links[i] {
			at[i] = max(at[i], at[l.from])
		}
	}
	size = w.results(w.may)
	markers := make([]marker, len(path))
	splits, whole := w.splits(), w.whole()
	for j, op := range path {
		if ctx.Err() != nil {
			break
		}
		m := &markers[j]
		m.op = op
		out := g.Op(op).Outputs[0]
		need := make([]box, len(g.Tensors))
		need[out] = w.need[out]
		goBack(g, need, int(op), w.apart, nil)
		for _, t := range g.Tensors {
			if n := need[t.ID].elements(); n > 0 && t.Producer != model.NoOp && at[t.Producer] >= 0 && size[t.ID] > 0 {
				m.kept = append(m.kept, kept{min(at[t.Producer], j), float64(n) * size[t.ID], t.ID})
			}
		}
		for _, full := range splits[out] {
			v := way{make([]float64, j+1), make([]float64, j+1), nil}
			needed := whole(int(op), full, false)
			for _, k := range m.kept {
				v.whole = append(v.whole, needed(k.tensor))
			}
			for _, t := range g.Tensors {
				if need[t.ID].elements() == 0 || !needed(t.ID) {
					continue
				}
				if t.Role == model.Constant && len(t.Consumers) == 1 {
					if k := at[t.Consumers[0]]; k >= 0 {
						v.constants[min(k, j)] += w.weights[t.ID]
					}
				} else if p := t.Producer; p != model.NoOp && at[p] >= 0 {
					v.products[min(at[p], j)] += w.ops[p][matrix]
				}
			}
			for i := j - 1; i >= 0; i-- {
				v.constants[i] += v.constants[i+1]
				v.products[i] += v.products[i+1]
			}
			m.ways = append(m.ways, v)
		}
	}
	return markers
}

// splits gives for each tensor which of its dimensions all kernels of a group that have some of its
// elements have in full, for each way to split the group along a dimension of what leaves it; of two
// of which one has more, the other alone counts.
func (w *work) splits() [][]uint64 {
	g := w.g
	list, gaps := make([][]uint64, len(g.Tensors)), make([]bool, len(g.Tensors))
	add := func(t model.TensorID, full uint64) {
		for _, other := range list[t] {
			if other&^full == 0 {
				return
			}
		}
		list[t] = append(slices.DeleteFunc(list[t], func(other uint64) bool { return full&^other == 0 }), full)
	}
	for i := len(g.Ops) - 1; i >= 0; i-- {
		for _, o := range g.Ops[i].Outputs {
			shape := g.Tensor(o).Shape
			all := uint64(1)<<len(shape) - 1
			add(o, all)
			for d, n := range shape {
				if n > 1 {
					add(o, all&^(1<<min(d, 63)))
				}
			}
			if gaps[o] { // kernels may have elements for the sake of different outputs
				for _, full := range list[o] {
					all &= full
				}
				add(o, all)
			}
		}
		for k := range w.reads[i] {
			r := &w.reads[i][k]
			if g.Tensor(r.from).Producer == model.NoOp {
				continue
			}
			gaps[r.from] = gaps[r.from] || gaps[r.out] || r.empty != 0
			for _, full := range list[r.out] {
				add(r.from, r.pull(full)|ones(g.Tensor(r.from).Shape))
			}
		}
	}
	return list
}

// results gives for tensors that each stand for one result that lies in a memory in one piece, of at
// least as many elements as a kernel computes of the tensor, the bytes of an element; 0 for
// others. They are the products', whose layers end behind some of the operators that may
// join, and what products read; results that may be inside of a layer are not counted.
func (w *work) results(may layers) []float64 {
	g := w.g
	size := make([]float64, len(g.Tensors))
	counted := make([]bool, len(g.Tensors))
	for _, op := range g.Ops {
		if !g.OnMatrixUnit(op) || len(op.Outputs) > 1 {
			continue
		}
		first := g.Tensor(op.Outputs[0])
		least, t := first.DType.Size(), first
		for counted[t.ID] = true; len(t.Consumers) == 1 && !g.IsOutput(t.ID); counted[t.ID] = true {
			next := g.Op(t.Consumers[0])
			if !light(next) {
				break
			}
			if !oneEach(g, next, t) {
				least = 0
				break
			}
			t = g.Tensor(next.Outputs[0])
			least = min(least, t.DType.Size())
		}
		inside := may != lines && slices.ContainsFunc(t.Consumers,
			func(c model.OpID) bool { return !g.OnMatrixUnit(g.Op(c)) })
		if !g.IsOutput(t.ID) && len(t.Consumers) > 0 && !inside {
			size[first.ID] = least
		}
	}
	for _, t := range g.Tensors {
		if t.Producer != model.NoOp && !counted[t.ID] && !g.IsOutput(t.ID) &&
			slices.ContainsFunc(t.Consumers, func(c model.OpID) bool { return g.OnMatrixUnit(g.Op(c)) }) {
			size[t.ID] = t.DType.Size()
		}
		if may != lines && t.Producer != model.NoOp && w.hidden[t.Producer] {
			size[t.ID] = 0
		}
	}
	return size
}

// oneEach reports whether each element of an operator's output reads one element of t at most.
func oneEach(g *model.Graph, op *model.Op, t *model.Tensor) bool {
	for k, in := range op.Inputs {
		if in != t.ID {
			continue
		}
		for d, a := range g.Access(op, 0, k) {
			if t.Shape[d] > 1 && a.To == 0 && (a.Full || a.A != a.B) {
				return false
			}
		}
	}
	return true
}

// chunkSizes is the number of sizes of chunks that are told apart at most.
const chunkSizes = 32

// A partition bounds what chunks, groups and kernels cost beside the work and the bytes that nothing spares.
type partition struct {
	launch, ddr float64 // seconds of a launch, and of a byte across the DDR if all clusters move as much
	again       float64 // bytes that each chunk but the first loads again
	grown       float64 // that a chunk of the whole share loads beyond the least
	markers     []marker
	// of chunks of each size, of groups from marker i to b at least
	choices [][][][]choice
}

// A choice is a way to split the kernels with elements of a marker: how many there are, bytes that cross
// the DDR, and seconds of products, beyond the least.
type choice struct{ kernels, bytes, products float64 }

// Prices are weights of what a choice has; of gives their sum.
type prices struct{ launches, bytes, products float64 }

func (p *prices) of(c choice) float64 {
	return p.launches*c.kernels + p.bytes*c.bytes + p.products*c.products
}

// partition bounds what it takes to cut a cluster's share of n elements; busy clusters work.
func (w *work) partition(ctx context.Context, n int64, spec *hardware.Spec, busy float64) *partition {
	p := &partition{launch: spec.LaunchSeconds, ddr: busy / spec.DDR.BandwidthBytesPerSecond}
	// The largest result that a memory on the chip holds, and the weights that stay from kernel to kernel, each at
	// most: schedules divide the L1s between values and weights in one of a few ways.
	cores := float64(holding(spec))
	piece := cores * float64(schedule.WeightsTwelfth.DataBytes(spec))
	stays := cores * float64(schedule.WeightsStay.HomeBytes(spec))
	if spec.LLB != nil {
		stays = float64(spec.LLB.SizeBytes)
		piece = math.Max(piece, stays)
	}
	p.again = math.Max(0, w.weightBytes()-stays)
	crossings := 2.0 // out and back
	if spec.DDRActivationEfficiency > 0 {
		crossings /= spec.DDRActivationEfficiency
	}
	p.markers = w.mark(ctx)
	sizes := min(n, chunkSizes)
	if n == sizes {
		p.grown = w.grown
	}
	for k := range sizes {
		if ctx.Err() != nil {
			return p // the caller asks, too
		}
		part := float64(k+1) / float64(sizes)
		if n > sizes { // chunks of sizes between count as the smaller one
			part = float64(k) / float64(sizes)
		}
		table := make([][][]choice, len(p.markers))
		for b := range p.markers {
			table[b] = p.markers[b].choices(b, part, piece, stays, crossings)
		}
		p.choices = append(p.choices, table)
	}
	return p
}

// exactKernels is up to how many kernels each number is a choice of its own. Beyond, a choice stands for a
// quarter more of them, and costs as its least parts.
const exactKernels = 64

// choices are those for kernels with elements of marker b of a part of the share, in groups from each marker on.
func (m *marker) choices(b int, part, piece, stays, crossings float64) [][]choice {
	most := 0.0
	for _, k := range m.kept {
		most = math.Max(most, k.bytes*part)
	}
	list := make([][]choice, b+1)
	spilt := make([]float64, b+1)
	for f, last := 1.0, 1.0; f == 1 || most > (f-1)*piece; f = last + 1 {
		if last = f; f > exactKernels {
			last = math.Floor(f * 5 / 4)
		}
		for _, v := range m.ways {
			clear(spilt)
			for j, k := range m.kept {
				switch bytes := k.bytes * part; {
				case v.whole[j] && bytes > piece: // in each kernel
					spilt[k.at] += crossings * f * bytes
				case bytes > last*piece: // one of them is too large
					spilt[k.at] += crossings * (bytes - (last-1)*piece)
				}
			}
			for i := b; i >= 0; i-- {
				if i < b {
					spilt[i] += spilt[i+1]
				}
				c := choice{f, spilt[i] + (f-1)*math.Max(0, v.constants[i]-stays), (f - 1) * v.products[i] * part}
				if !slices.ContainsFunc(list[i], func(o choice) bool {
					return o.kernels <= c.kernels && o.bytes <= c.bytes && o.products <= c.products
				}) {
					list[i] = append(list[i], c)
				}
			}
		}
	}
	return list
}

// groups is the least sum of prices over all ways to put the markers into groups.
func (p *prices) groups(table [][][]choice) float64 {
	n := len(table)
	if n == 0 {
		return p.launches
	}
	least := make([]float64, n+1)
	for i := range n {
		least[i+1] = math.Inf(1)
	}
	for i := range n {
		most := 0.0 // of groups that begin at i, the more they have the more they cost
		for b := i; b < n; b++ {
			cost := math.Inf(1)
			for _, c := range table[b][i] {
				cost = math.Min(cost, p.of(c))
			}
			most = math.Max(most, cost)
			least[b+1] = math.Min(least[b+1], least[i]+most)
		}
	}
	return least[n]
}

// least is the least sum, with weights for launches, for the DDR and for products.
func (p *partition) least(launches, ddr, products float64) float64 {
	price := &prices{launches * p.launch, ddr * p.ddr, products}
	sum := []float64{0}
	var alone []float64
	for n, table := range p.choices {
		alone = append(alone, price.groups(table))
		if n == len(p.choices)-1 {
			alone[n] += price.bytes * p.grown
		}
		best := alone[n]
		for k := range n {
			best = math.Min(best, alone[k]+price.bytes*p.again+sum[n-k])
		}
		sum = append(sum, best)
	}
	return sum[len(sum)-1]
}

// within is the least sum of prices for each number of launches that may be passed on, up to most, over all ways to
// put the first markers of a table into groups.
func (p *prices) within(ctx context.Context, table [][][]choice, markers, most int) []float64 {
	least := make([][]float64, markers+1)
	for i := range least {
		least[i] = make([]float64, most+1)
		for k := range least[i] {
			if i > 0 || markers == 0 && k == 0 {
				least[i][k] = math.Inf(1)
			}
		}
	}
	costs := make([]float64, most+1) // of groups from i to b, by their kernels at most
	for i := range markers {
		if ctx.Err() != nil {
			break // the caller asks, too
		}
		clear(costs)
		for b := i; b < markers; b++ {
			cost, list := math.Inf(1), table[b][i]
			for f := 1; f <= most; f++ {
				for ; len(list) > 0 && list[0].kernels <= float64(f); list = list[1:] {
					cost = math.Min(cost, p.of(list[0]))
				}
				costs[f] = math.Max(costs[f], cost)
				for k := f; k <= most && (f == 1 || costs[f] < costs[f-1]); k++ {
					least[b+1][k] = math.Min(least[b+1][k], least[i][k-f]+costs[f])
				}
			}
		}
	}
	return least[markers]
}

// fewest is the least sum of prices, those of launches apart, for each number of launches up to most, of what lies up
// to the first markers.
func (p *partition) fewest(ctx context.Context, price *prices, markers, most int) []float64 {
	sum := [][]float64{make([]float64, most+1)}
	var alone [][]float64
	for n, table := range p.choices {
		one := price.within(ctx, table, min(markers, len(table)), most)
		if n == len(p.choices)-1 {
			for k := range one {
				one[k] += price.bytes * p.grown
			}
		}
		alone = append(alone, one)
		best := slices.Clone(one)
		for m := range n {
			for a := 1; a < most; a++ {
				for b := 1; a+b <= most; b++ {
					best[a+b] = math.Min(best[a+b], alone[m][a]+price.bytes*p.again+sum[n-m][b])
				}
			}
		}
		sum = append(sum, best)
	}
	return sum[len(sum)-1]
}

// counted bounds the time of clusters that do the same, each number of launches by itself: by these and work, and by a
// mean of what the DDR moves and what products and launches take, of which bytes is the former's weight. It counts what
// kernels with elements of the first markers launch, move and compute beyond the least.
func (p *partition) counted(ctx context.Context, markers int, work, ddr, products, bytes float64) (least float64) {
	price := &prices{0, bytes * p.ddr, 1 - bytes}
	for most := 8; ; most *= 2 {
		launches := func(n int) float64 { return float64(n) * p.launch }
		least = work + launches(most+1)
		for n, more := range p.fewest(ctx, price, markers, most) {
			if n > 0 {
				least = math.Min(least, math.Max(work+launches(n), bytes*ddr+(1-bytes)*(products+launches(n))+more))
			}
		}
		if most >= exactKernels || least < work+launches(most+1) {
			return least
		}
	}
}

// A spent is what clusters of one kind take without launches: all units and layers, and the matrix unit alone.
type spent struct {
	*partition
	work, products float64
}

// A mean is a bound by weighted means, and what its parts add to it.
type mean struct {
	seconds, work, ddr float64
	prices             Prices
}

// trade is the largest bound that weighted means give: of the clusters' work, of their matrix
// units', each with launches, and of the time in which the DDR moves what all must move.
func trade(ctx context.Context, clusters []spent, ddr float64) *mean {
	at := func(bytes, products float64) *mean {
		m := &mean{ddr: bytes * ddr, prices: Prices{Bytes: bytes, Products: products}}
		m.seconds = m.ddr
		least := 0.0
		for k, c := range clusters {
			if k == 0 || c != clusters[k-1] {
				least = c.least(1-bytes, bytes, products)
			}
			share := 1 / float64(len(clusters))
			work := share * ((1-bytes-products)*c.work + products*c.products)
			m.work += work
			m.seconds += work + share*least
		}
		return m
	}
	return peak(ctx, 1, func(bytes float64) *mean {
		return peak(ctx, 1-bytes, func(products float64) *mean { return at(bytes, products) })
	})
}

// peak is about the largest value of a function that is concave from 0 to most, looked for by
// the golden section, and closer to 0 than to most. It says nothing once ctx is done.
func peak(ctx context.Context, most float64, of func(x float64) *mean) *mean {
	const golden = 0.6180339887498949
	f := func(x float64) *mean {
		if ctx.Err() != nil {
			return &mean{}
		}
		return of(most * x * x)
	}
	lo, hi := 0.0, 1.0
	a, b := hi-golden, golden
	fa, fb := f(a), f(b)
	for range 9 {
		if fa.seconds < fb.seconds {
			lo, a, fa = a, b, fb
			b = lo + golden*(hi-lo)
			fb = f(b)
		} else {
			hi, b, fb = b, a, fa
			a = hi - golden*(hi-lo)
			fa = f(a)
		}
	}
	return slices.MaxFunc([]*mean{f(0), fa, fb}, func(x, y *mean) int { return cmp.Compare(x.seconds, y.seconds) })
}
