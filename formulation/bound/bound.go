package bound

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Term is one lower bound, for a reason of its own.
type Term struct {
	Name    string  `json:"term"`
	Seconds float64 `json:"bound_s"`
	// Resource is the limiting resource: a unit, a memory, the chain of layers.
	Resource string `json:"resource"`
}

// A Bound says that no schedule of a batch takes less than Seconds, of those that Scope is about.
type Bound struct {
	Scope string `json:"scope"`
	// Estimates are the figures of the machine that are not as its file says: estimates, at their fast ends.
	Estimates []string `json:"estimates"`

	Batch   int64   `json:"batch"`
	Shares  []int64 `json:"shares"` // batch elements per cluster
	Seconds float64 `json:"certified_lower_bound_s"`
	// Term and Resource are of the largest term.
	Term     string `json:"term"`
	Resource string `json:"resource"`
	Terms    []Term `json:"terms"`
	// Parts are the parts of the bound, one after the other; they add up to it.
	Parts []Part `json:"parts"`
}

// A Part is a share of a bound.
type Part struct {
	Name    string  `json:"part"`
	Seconds float64 `json:"part_s"`
}

// explain names the parts of the largest term.
func (b *Bound) explain(launch, weights, ddr float64, w *work, kernels *mean) {
	left := b.Seconds
	part := func(name string, seconds float64) {
		if seconds = math.Min(left, seconds); seconds > 0 {
			b.Parts = append(b.Parts, Part{name, seconds})
			left -= seconds
		}
	}
	rest := "moves"
	switch b.Term {
	case "ddr":
		part("weights", weights/ddr)
		rest = "inputs and outputs"
	case "series, then loads":
		part("launch", launch)
		rest = "units, chains and further launches, then weights"
	case "loads in a row":
		part("weights", weights/ddr)
		rest = "inputs, outputs and latencies"
	case "kernels":
		part("units and layers that cannot overlap", kernels.work)
		part("bytes that must cross the DDR", kernels.ddr)
		rest = "launch overhead, or the extra traffic of fewer kernels"
	case "copies":
		rest = "products, copies and latencies"
	case "launch, then stores":
		part("launch", launch)
		rest = "outputs and latencies"
	case "work", "chain", "series":
		part("launch", launch)
		rest = "vector work"
		if b.Term != "work" || b.Resource == unitNames[matrix] {
			part("products at the peak rate", w.peak)
			part("edges of the matrix unit", w.rowsOnly-w.peak)
			part("fill and block changes of the matrix unit", w.total()[matrix]-w.rowsOnly)
			rest = "layers that cannot overlap"
		}
	}
	part(rest, left)
}

// Gap is by how much a latency is above the bound, as a share of the bound.
func (b *Bound) Gap(latencySeconds float64) float64 { return latencySeconds/b.Seconds - 1 }

// exact takes off what rounding may have added: the sums here are of doubles, the simulated
// times of picoseconds that are rounded up.
const exact = 1 - 1e-9

func (b *Bound) add(name, resource string, seconds float64) {
	seconds = math.Floor(seconds*exact*1e12) * 1e-12
	b.Terms = append(b.Terms, Term{name, seconds, resource})
	if seconds > b.Seconds {
		b.Seconds, b.Term, b.Resource = seconds, name, resource
	}
}

// Cold bounds the simulated latency of one batch of a network on a machine, as the decisions see the machine (see
// [hardware.Raise]), from a chip on which nothing is loaded. It holds for every schedule that the package's text
// describes, and as long as the machine's estimates are in their ranges ([hardware.Spec.Fast]).
func Cold(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (*Bound, error) {
	b, _, _, err := bounds(ctx, net, spec, batch, lines, nil)
	return b, err
}

// Steady bounds the time per batch where many follow each other, in the same sense: what
// weights the memories of a cluster can hold from batch to batch need not be loaded again.
func Steady(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (*Bound, error) {
	_, b, _, err := bounds(ctx, net, spec, batch, lines, nil)
	return b, err
}

func bounds(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64, of layers, cut []bool) (cold,
	steady *Bound, proof *Witness,
	err error) {
	if err := valid(spec, batch); err != nil {
		return nil, nil, nil, err
	}
	given := spec
	spec = given.Fast()
	m, err := cost.New(spec)
	if err != nil {
		return nil, nil, nil, err
	}
	proof = &Witness{}
	cold = &Bound{Scope: of.scope(), Estimates: given.Estimates(), Batch: batch, Shares: make([]int64, spec.Clusters)}
	for k := range cold.Shares {
		cold.Shares[k] = batch / int64(spec.Clusters)
		if int64(k) < batch%int64(spec.Clusters) {
			cold.Shares[k]++
		}
	}
	measured := measures(ctx, net, m, of, cut)
	var works []*work // of the clusters that have some
	moved, brought, stored, eff := 0.0, 0.0, 0.0, spec.DDRActivationEfficiency
	eff = cmp.Or(eff, 1)
	for _, n := range cold.Shares {
		if n == 0 {
			continue
		}
		w, err := measured(n)
		if err != nil {
			return nil, nil, nil, err
		}
		if len(works) == 0 || w != works[len(works)-1] {
			proof.Shares = append(proof.Shares, w.share(n, spec))
		}
		works = append(works, w)
		moved += (w.in + w.out + w.rows) / eff
		brought += w.in / eff
		stored += w.out / eff
	}
	first, least, busy := works[0], works[len(works)-1], float64(len(works))
	spec = first.launching(spec)
	steady = &Bound{Scope: cold.Scope, Estimates: cold.Estimates, Batch: batch, Shares: cold.Shares}

	// A cluster's own work, which is the same for one batch and for each of many.
	launch := spec.LaunchSeconds
	total := first.total()
	ddr, link := spec.DDR.BandwidthBytesPerSecond, latency(spec)
	weights := first.weightBytes()
	row := first.series()
	for _, b := range []*Bound{cold, steady} {
		for u, t := range total {
			if t > 0 {
				b.add("work", unitNames[u], launch+t)
			}
		}
		far, near := ways(spec)
		if b == steady { // the loads and stores of a batch overlap with the kernels of others
			far, near = 0, 0
		}
		start, after := first.outer(launch, far, near)
		longest := first.chain(start, after, nil)
		b.add("chain", "chain of layers", longest)
		b.add("series", "units and chains of layers", launch+row.all())
		if p := first.product(m, spec); p != nil && b == cold {
			b.add("one product", "units, moves and stores of one kernel, or two launches", p.seconds(longest))
		}
	}

	// The DDR: weights once per cluster, activations over its efficiency.
	kept := 0.0
	if spec.LLB != nil {
		kept += float64(spec.LLB.SizeBytes)
	}
	if spec.L1 != nil {
		kept += float64(int64(spec.L1.SizeBytes)+int64(spec.L1WeightBytes)) * float64(spec.Cores())
	}
	cold.add("ddr", "DDR bandwidth", (busy*weights+moved)/ddr)
	steady.add("ddr", "DDR bandwidth", (busy*math.Max(0, weights-kept)+moved)/ddr)
	if port := spec.DDRLink.BandwidthBytesPerSecond; port > 0 {
		io := first.in + first.out + first.rows
		cold.add("ddr link", "DDR link", (weights+io)/port)
		steady.add("ddr link", "DDR link", (math.Max(0, weights-kept)+io)/port)
	}
	if spec.LLB != nil {
		io, bandwidth := 2*(first.in+first.out+first.rows), spec.LLB.BandwidthBytesPerSecond
		again, launching := math.Max(0, weights-kept), launch*idle(spec)
		cold.add("llb", "LLB bandwidth", launching+(2*weights+io)/bandwidth)
		steady.add("llb", "LLB bandwidth", launching+(weights+again+io)/bandwidth)
		// Cores load copies; what products read of the inputs is among these.
		if c := first.copies(m, spec); c != nil {
			seconds, path, llb := c.most(ctx, launch, weights+io-first.in)
			cold.add("copies", "products, moves along a path, LLB bandwidth", seconds)
			proof.Prices.Path, proof.Prices.LLB = path, llb
			for _, op := range c.path {
				proof.Path = append(proof.Path, first.g.Op(op).Name)
			}
			seconds, _, _ = c.most(ctx, launch, again+io-first.in)
			steady.add("copies", "products, moves along a path, LLB bandwidth", seconds)
		}
	}
	// Results leave behind the first launch; without an LLB, inputs come behind it.
	if stored > 0 {
		behind := stored
		if spec.LLB == nil {
			behind += brought
		}
		cold.add("launch, then stores", "launch, then DDR bandwidth", launch+link+behind/ddr)
	}
	// Loads run one at a time, each behind its latency, in which no results leave before there
	// are any. What the last one brings is used, and leaves.
	if alike(cold.Shares) {
		each := spec.DDR.LatencySeconds + spec.DDRLink.LatencySeconds
		if spec.LLB == nil {
			each = link
		}
		all, before := first.loads(spec)
		if spec.DDRLink.Loads() > 1 { // latencies overlap, but the first's
			all, before = min(all, 1), min(before, 1)
		}
		if stored > 0 { // the last store waits out its latency when all loads have ended
			before++
		}
		if spec.LLB != nil && all > 0 { // what the last load brings passes the LLB and a core
			_, near := ways(spec)
			link += near
		}
		cold.add("loads in a row", "DDR bandwidth and latency",
			math.Max(all*each+busy*(weights+(first.in+first.rows)/eff)/ddr+link, before*each+(busy*weights+moved)/ddr))
	}
	// Loads before compute: an operator can start once all clusters have what it needs.
	far, near := ways(spec)
	start, after := least.outer(launch, far, near)
	release := least.releases()
	for i := range release {
		release[i] = math.Max(start[i], busy*release[i]/ddr)
	}
	cold.add("loads, then chain", "DDR bandwidth, then the chain of layers", least.chain(release, after, nil))
	row = least.series()
	longest, at := 0.0, len(release)
	for _, c := range row.cuts {
		if c < len(release) && release[c]+row.behind[c] > longest {
			longest, at = release[c]+row.behind[c], c
		}
	}
	last := &proof.Shares[len(proof.Shares)-1]
	last.LoadsThen = last.other(row.through(at), least.g)
	cold.add("loads, then series", "DDR bandwidth, then units and chains", longest)
	// Compute before loads: what is used behind a cut comes behind it but for what the chip holds.
	room := float64(schedule.WeightBufferBytes(spec)) * float64(holding(spec))
	if schedule.MovableRing(spec) { // they may pass all of it
		room = float64(spec.L1.SizeBytes) * float64(holding(spec))
	}
	if spec.LLB != nil {
		room += float64(spec.LLB.SizeBytes)
	}
	longest, at = 0, len(release)
	for k, bytes := range least.late(ctx, row.cuts) {
		c := row.cuts[k]
		seconds := launch + row.until[c] + busy*(bytes-room)/ddr
		if c < len(release) && bytes > room && seconds > longest {
			longest, at = seconds, c
		}
	}
	last.ThenLoads = last.other(row.through(at), least.g)
	// Launches against what else must be loaded, moved and computed.
	var clusters []spent
	for k, w := range works {
		if k > 0 && w == works[k-1] {
			clusters = append(clusters, clusters[k-1])
			continue
		}
		none, t := make([]float64, len(w.ops)), w.total()
		work := max(best(t).most(), w.series().all(), w.chain(none, none, nil))
		clusters = append(clusters, spent{w.partition(ctx, cold.Shares[k], spec, busy), work, t[matrix]})
	}
	kernels := trade(ctx, clusters, (busy*weights+moved)/ddr)
	if one := clusters[0]; of == lines && alike(cold.Shares) && launch > 0 {
		share := 1.0
		if sum := kernels.prices.Bytes + kernels.prices.Products; sum > 0 {
			share = kernels.prices.Bytes / sum
		}
		moves := (busy*weights + moved) / ddr
		if t := one.counted(ctx, len(one.markers), one.work, moves, one.products, share); t > kernels.seconds {
			kernels = &mean{seconds: t, work: one.work, prices: kernels.prices}
		}
		if at < len(release) {
			before := 0
			for before < len(one.markers) && first.passes(int(one.markers[before].op), at) {
				before++
			}
			longest = math.Max(longest, one.counted(ctx, before, longest-launch, moves, 0, 1))
		}
	}
	cold.add("series, then loads", "units and chains, then DDR bandwidth", longest)
	if err := ctx.Err(); err != nil {
		return nil, nil, nil, err
	}
	cold.add("kernels", "launches, DDR bandwidth and memories", kernels.seconds)
	cold.explain(launch, busy*weights, ddr, first, kernels)
	steady.explain(launch, busy*math.Max(0, weights-kept), ddr, first, nil)
	proof.Prices.Bytes, proof.Prices.Products = kernels.prices.Bytes, kernels.prices.Products
	return cold, steady, proof, nil
}

// holding is the number of cores of a cluster that hold data, of all kinds.
func holding(spec *hardware.Spec) (n int64) {
	for k := range spec.Kinds() {
		n += schedule.CoresWithL1(spec.Kind(k))
	}
	return n
}

// measures gives what so many batch elements take of a cluster, and remembers it. What several readers need of a tensor
// is put together, unless that grows otherwise than in proportion.
func measures(ctx context.Context, net network.Network, m *cost.Model, may layers, cut []bool) func(n int64) (*work,
	error) {
	type key struct {
		n     int64
		apart bool
	}
	measured := map[key]*work{}
	var of func(n int64, apart bool) (*work, error)
	of = func(n int64, apart bool) (*work, error) {
		if w := measured[key{n, apart}]; w != nil {
			return w, nil
		}
		var small []*work // of 1 and of 2
		for few := range min(n-1, 2) {
			w, err := of(few+1, apart)
			if err != nil {
				return nil, err
			}
			small = append(small, w)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := net.Graph(n)
		if err != nil {
			return nil, err
		}
		w, err := measure(g, m, n, may, cut, apart, small...)
		if err != nil {
			return nil, fmt.Errorf("bound: %s: %w", net.Name, err)
		}
		measured[key{n, apart}] = w
		return w, nil
	}
	return func(n int64) (*work, error) {
		w, err := of(n, false)
		if err != nil && ctx.Err() == nil {
			return of(n, true)
		}
		return w, err
	}
}

// alike reports whether all clusters that work have as much to do.
func alike(shares []int64) bool {
	return !slices.ContainsFunc(shares, func(n int64) bool { return n > 0 && n < shares[0] })
}

// latency is the latency of a move between the DDR and the cores.
func latency(spec *hardware.Spec) float64 {
	l := spec.DDR.LatencySeconds + spec.DDRLink.LatencySeconds + spec.CoreLink.LatencySeconds
	if spec.LLB != nil {
		l += spec.LLB.LatencySeconds
	}
	return l
}

// ways are the latencies of a load from the DDR to the LLB and of one from there to the cores; without an LLB, all is
// that of the latter.
func ways(spec *hardware.Spec) (far, near float64) {
	if spec.LLB == nil {
		return 0, latency(spec)
	}
	return spec.DDR.LatencySeconds + spec.DDRLink.LatencySeconds, spec.LLB.LatencySeconds + spec.CoreLink.LatencySeconds
}

// idle is the least share of an LLB's bandwidth that nobody uses during a launch, when loads from the DDR alone run.
func idle(spec *hardware.Spec) float64 {
	ddr := spec.DDR.BandwidthBytesPerSecond
	if port := spec.DDRLink.BandwidthBytesPerSecond; port > 0 {
		ddr = math.Min(ddr, port)
	}
	return math.Max(0, 1-ddr/spec.LLB.BandwidthBytesPerSecond)
}

// outer gives when each operator can start behind a launch, and behind the load of an input that each of
// its elements needs, and how long a store takes behind those that make the network's outputs. Loads from the DDR to
// the LLB may come before the launch, and have the latency far; those to the cores come behind it, with near.
func (w *work) outer(launch, far, near float64) (start, after []float64) {
	start, after = make([]float64, len(w.ops)), make([]float64, len(w.ops))
	for i, op := range w.g.Ops {
		start[i] = launch
		for k, t := range op.Inputs {
			waits := w.g.Tensor(t).Role == model.Input
			for out, o := range op.Outputs {
				r := &w.reads[i][out*len(op.Inputs)+k]
				waits = waits && !r.late && (r.empty == 0 || w.need[o].elements() == 0)
			}
			if waits {
				start[i] = math.Max(launch, far) + near
			}
		}
	}
	for _, t := range w.g.Outputs {
		if p := w.g.Tensor(t).Producer; p != model.NoOp {
			after[p] = far + near
		}
	}
	return start, after
}

// releases gives for each operator the bytes of constants that any of its elements needs,
// directly or through others: they must all have been loaded before it starts.
func (w *work) releases() []float64 {
	release := make([]float64, len(w.g.Ops))
	of := w.whole()
	for b, op := range w.g.Ops {
		if len(op.Outputs) > 1 || w.need[op.Outputs[0]].elements() == 0 {
			continue // the chain hands on what comes before
		}
		needed := of(b, 0, true)
		for t, n := range w.weights {
			if n > 0 && needed(model.TensorID(t)) {
				release[b] += n
			}
		}
	}
	return release
}

// never is a dimension that is not needed in full, whatever is read of the output.
const never = 1 << 63

// A reading is how an operator needs a tensor: which dimensions of it in full if these of its output's
// are needed in full (never: even then not), and the dimensions of its output of which some
// position needs nothing. Dimensions of parts are needed in full, but any kernel may need a part.
type reading struct {
	from, out model.TensorID
	full      []uint64
	empty     uint64
	parts     uint64
	late      bool // the operator is a product that begins without it
}

// comesLate reports whether products of an operator begin without an operand, which is added to their results. An
// attention's wait for all that operators make (P2), but not for the loads of inputs and constants.
func comesLate(g *model.Graph, op *model.Op, operand int) bool {
	return operand > 1 && g.OnMatrixUnit(op) &&
		(op.Kind != "Attention" || g.Tensor(op.Inputs[operand]).Producer == model.NoOp)
}

// readings are all of a graph's. Operators of sliced, the last of feed-forwards, may need hidden columns in parts.
func readings(g *model.Graph, sliced []bool) [][]reading {
	reads := make([][]reading, len(g.Ops))
	for i, op := range g.Ops {
		for out, o := range op.Outputs {
			shape := g.Tensor(o).Shape
			for k, in := range op.Inputs {
				t := g.Tensor(in)
				r := reading{from: in, out: o, late: comesLate(g, op, k)}
				for d, a := range g.Access(op, out, k) {
					if a.To > 0 {
						r.full = append(r.full, 1<<min(a.To, 63)-1<<min(a.From, 63))
						continue
					}
					code := uint64(0)
					if sliced[i] && a.Full {
						r.parts |= 1 << min(d, 63)
					}
					if !a.Full {
						last := shape[a.Out] - 1
						switch {
						case a.Range(model.Interval{Hi: 1}, t.Shape[d]).Len() == 0 ||
							a.Range(model.Interval{Lo: last, Hi: last + 1}, t.Shape[d]).Len() == 0:
							r.empty |= 1 << min(a.Out, 63)
							code = never
						case t.Shape[d] == 1:
						case a.B-a.A+1 < a.Num || a.Range(model.Interval{Hi: last + 1}, t.Shape[d]).Len() < t.Shape[d]:
							code = never
						default:
							code = 1 << min(a.Out, 63)
						}
					}
					r.full = append(r.full, code)
				}
				reads[i] = append(reads[i], r)
			}
		}
	}
	return reads
}

// pull is the dimensions of what is read that a kernel needs in full if it needs those of full.
func (r *reading) pull(full uint64) (dims uint64) {
	for d, code := range r.full {
		if code&^full == 0 {
			dims |= 1 << min(d, 63)
		}
	}
	return dims &^ r.parts
}

// ones is the dimensions of extent 1.
func ones(s model.Shape) (dims uint64) {
	for d, n := range s {
		if n == 1 {
			dims |= 1 << min(d, 63)
		}
	}
	return dims
}

// whole gives a function that says of which tensors all elements are needed, directly or through others, by whatever
// has some positions of an operator's output, if it has one, and all along the dimensions of full; with begins, what
// these must wait for before any work on them begins. What that returns holds until it is called again.
func (w *work) whole() func(b int, full uint64, begins bool) (needed func(t model.TensorID) bool) {
	g := w.g
	full, seen := make([]uint64, len(g.Tensors)), make([]bool, len(g.Tensors))
	return func(b int, dims uint64, begins bool) func(t model.TensorID) bool {
		clear(full)
		clear(seen)
		o := g.Ops[b].Outputs[0]
		seen[o], full[o] = true, dims|ones(g.Tensor(o).Shape)
		for i := b; i >= 0; i-- {
			for k := range w.reads[i] {
				r := &w.reads[i][k]
				if seen[r.out] && r.empty&^full[r.out] == 0 && !(begins && i == b && r.late) {
					seen[r.from] = true
					full[r.from] |= r.pull(full[r.out])
				}
			}
		}
		return func(t model.TensorID) bool { return seen[t] && full[t] == 1<<len(g.Tensors[t].Shape)-1 }
	}
}

// uniform reports what keeps the bounds of chunks of n elements from adding up to at least that of them all, by
// comparison with few elements: operators must be the same for any number of batch elements, and extents grow
// evenly with it, in at most one dimension of a tensor. Operators that copy, and that small
// batches do not need, lose their work.
func (w *work) uniform(n int64, small *work, few int64) error {
	ops, inputs := map[string]*model.Op{}, map[string]model.TensorID{}
	for _, op := range small.g.Ops {
		ops[op.Name] = op
	}
	for _, t := range small.g.Inputs {
		inputs[small.g.Tensor(t).Name] = t
	}
	for i, op := range w.g.Ops {
		other := ops[op.Name]
		if other == nil && op.Class() != model.MatrixClass && op.Class() != model.ReductionClass {
			w.ops[i] = [numUnits]float64{}
			continue
		}
		unit := model.Region{{Hi: 1}}
		if other == nil || op.Kind != other.Kind || w.g.Work(op, unit) != small.g.Work(other, unit) {
			return fmt.Errorf("operator %q takes other work per element at batch %d than at %d", op.Name, n, few)
		}
		for j, o := range op.Outputs {
			if err := w.even(o, n, small.need[other.Outputs[j]], few); err != nil {
				return err
			}
		}
	}
	for _, t := range w.g.Inputs {
		other, there := inputs[w.g.Tensor(t).Name]
		switch {
		case w.need[t].elements() == 0:
			continue
		case !there:
			return fmt.Errorf("input %q is there at batch %d and not at %d", w.g.Tensor(t).Name, n, few)
		}
		if err := w.even(t, n, small.need[other], few); err != nil {
			return err
		}
	}
	return nil
}

// even compares what is needed of a tensor at batch n with what is at batch few.
func (w *work) even(id model.TensorID, n int64, x box, few int64) error {
	t, y := w.g.Tensor(id), w.need[id]
	if len(x) != len(y) {
		return fmt.Errorf("tensor %q has %d dimensions at batch %d and %d at %d", t.Name, len(y), n, len(x), few)
	}
	grow := 0
	for d := range y {
		if small, large := x[d].size(), y[d].size(); small != large {
			// A straight line through both must not be below 0 at batch 0.
			if grow++; small > large || large*few > small*n {
				return fmt.Errorf(
					"dimension %d of tensor %q has %d elements at batch %d and %d at %d, expected as many or in proportion",
					d, t.Name, large, n, small, few)
			}
		}
	}
	if grow > 1 {
		return fmt.Errorf("%d dimensions of tensor %q grow with the batch, expected one", grow, t.Name)
	}
	return nil
}
