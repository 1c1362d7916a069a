package ansor

import (
	"cmp"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// decisions of a layer, in the order of space.decisions.
const (
	ofCores = iota
	ofTiles
	ofColumns
	ofReduction
	ofGroup
	ofPlaces
	ofPieces
	ofLoads
	ofStage
	ofDepth
	decisionsOfLayer
)

// Tree is the space of a task's programs as decisions in a row, layer by layer. Choice 0 of each is the rules'.
type Tree struct {
	task    *Task
	choices [][]func(*schedule.Nest)
}

// Tree lists the decisions of a task.
func (t *Task) Tree() *Tree {
	tree := &Tree{task: t}
	for _, sp := range t.space {
		for _, list := range sp.decisions() {
			tree.choices = append(tree.choices, append([]func(*schedule.Nest){func(*schedule.Nest) {}}, list...))
		}
	}
	return tree
}

// leastLoad is the least load under any binding, whatever else is decided.
func (sp *space) leastLoad() load {
	all := sp.load(sp.rule, ofCores+1)
	for _, b := range sp.bindings[1:] {
		n := *sp.rule
		b.set(&n)
		all = all.min(sp.load(&n, ofCores+1))
	}
	return all
}

// Decisions is the number of decisions.
func (t *Tree) Decisions() int { return len(t.choices) }

// nest returns the nest of a layer as far as it is decided, and the number of known decisions.
func (t *Tree) nest(prefix []int, layer int) (n *schedule.Nest, known int) {
	sp := t.task.space[layer]
	at := layer * decisionsOfLayer
	known = min(decisionsOfLayer, max(0, len(prefix)-at))
	n = sp.rule
	for d := range known {
		made := *n
		t.choices[at+d][prefix[at+d]](&made)
		n = sp.mend(&made)
	}
	return n, known
}

// Behind lists the choices for the next decision that make a difference; nil: all is decided.
func (t *Tree) Behind(prefix []int) (list []int) {
	d := len(prefix)
	if d == len(t.choices) {
		return nil
	}
	sp := t.task.space[d/decisionsOfLayer]
	now, _ := t.nest(prefix, d/decisionsOfLayer)
	seen := map[string]bool{}
	for k, change := range t.choices[d] {
		n := *now
		change(&n)
		if id := (Program{sp.mend(&n)}).id(); !seen[id] {
			seen[id] = true
			list = append(list, k)
		}
	}
	return list
}

// Program returns the program of all choices; false if it can't run.
func (t *Tree) Program(choices []int) (Program, bool) {
	p := slices.Clone(t.task.Rule)
	for i, sp := range t.task.space {
		p[i], _ = t.nest(choices, i)
		if !sp.allowed(p[i]) {
			return nil, false
		}
	}
	return t.task.settled(p), true
}

// Bound is a time in seconds that no program is below whose first choices these are: each
// queue takes the times of its commands, of which there are at least as many as the choices
// so far ask for, and begins and ends some time from the launch and from the last store.
func (t *Tree) Bound(prefix []int) float64 {
	loads := make([]load, len(t.task.space))
	for i, sp := range t.task.space {
		loads[i] = sp.least
		if n, known := t.nest(prefix, i); known > 0 {
			loads[i] = sp.load(n, known)
		}
	}
	return max(t.task.Floor, t.task.bound(loads))
}

// bound is a time that no program is below of which the layers ask for so much.
func (t *Task) bound(loads []load) float64 {
	unit, ok := t.kernel.Spec.UnitOf(hardware.Matrix)
	if t.kernel.Spec.LLB == nil || t.opt.Cost != nil || ok && unit.FillCycles < hardware.Cycles(unit.BlockCycles) {
		return 0 // no formula says what a larger command takes
	}
	var sum load
	for _, l := range loads {
		sum = sum.add(l)
	}
	if len(t.space) > 1 || t.opt.Prefetch {
		// loads of a layer run while another computes, or before the launch
		sum.head, sum.wait, sum.part, sum.tail = 0, 0, 0, 0
	}
	launch := t.kernel.Spec.LaunchSeconds
	ddr := sum.memory()
	if !t.opt.Prefetch {
		ddr += launch
	}
	return max(launch+sum.cores(), ddr)
}

// cores is a time in which what follows a launch can't end, memory one that may begin before.
func (l load) cores() float64 {
	return max(l.head+max(l.matrix+l.part, l.vector)+l.tail, l.in+l.part+l.tail, l.head+l.ddrStore, l.out)
}
func (l load) memory() float64 { return max(l.wait+l.ddr, l.ddrLoad+l.first+l.part+l.tail) }

// load is seconds that the queues of a cluster are busy with a layer, at least.
type load struct {
	matrix, vector, ddrLoad, ddrStore, in, out float64
	ddr                                        float64 // its bytes both ways
	// wait is from the launch to the DDR's first byte, head to the first computation, first the move into the cores of
	// what came last, part one part of the vector work, tail from there to the end.
	wait, head, first, part, tail float64
}

func (a load) fields(b *load) [12][2]*float64 {
	return [12][2]*float64{{&a.matrix, &b.matrix}, {&a.vector, &b.vector}, {&a.ddrLoad, &b.ddrLoad},
		{&a.ddrStore, &b.ddrStore}, {&a.in, &b.in}, {&a.out, &b.out},
		{&a.ddr, &b.ddr}, {&a.wait, &b.wait},
		{&a.head, &b.head}, {&a.first, &b.first}, {&a.part, &b.part}, {&a.tail, &b.tail}}
}

func (a load) add(b load) load {
	for _, f := range a.fields(&b) {
		*f[1] += *f[0]
	}
	return b
}

func (a load) min(b load) load {
	for _, f := range a.fields(&b) {
		*f[1] = min(*f[0], *f[1])
	}
	return b
}

// load of a nest of which so many decisions are known.
func (sp *space) load(n *schedule.Nest, known int) (out load) {
	x := sp.under(n.Cores)
	if x.why != nil || sp.kernel.Spec.LLB == nil {
		return load{}
	}
	k, l, m, spec := sp.at(x), x.loops, sp.model, sp.kernel.Spec
	st := &k.Steps[sp.step]
	dims, work, factor := l.Dims, l.Vector, max(1, n.Rfactor)
	dims = dims.Sliced(factor)
	work.Simple += (factor - 1) * dims.M * dims.N
	seconds := func(c hardware.Cycles) float64 { return float64(c) / spec.ClockHz }
	// Counts of what is not decided yet are the least.
	tiles, columns, reduction, pieces, loads := int64(1), int64(1), int64(1), int64(1), int64(1)
	if known > ofTiles {
		tiles = min(n.Tiles, lower.MaxTiles)
	}
	if known > ofColumns {
		columns = max(1, int64(len(n.Columns)))
	}
	if known > ofReduction {
		reduction = max(1, int64(len(n.Reduction)))
	}
	if l.Weights > 0 && tiles > 1 && !(known > ofPlaces && n.Stay) {
		tiles = min(tiles, max(2, lower.MaxPasses/(maxColumns*maxReduction)))
		if known > ofReduction {
			tiles = min(max(1, min(n.Tiles, lower.MaxTiles)), max(2, lower.MaxPasses/(columns*reduction)))
		}
	}
	if known > ofPieces {
		pieces = min(n.Pieces, max(1, l.Elements/n.Tiles))
	}
	if known > ofLoads {
		loads = min(n.Loads, pieces) // of a product; others may have more
		for l.Dims.M > 0 && pieces%loads != 0 {
			loads--
		}
	}
	passes := int64(1)
	columnsFirst := known > ofPlaces && n.ColumnsFirst && tiles > 1 && columns > 1
	if columnsFirst {
		passes = columns
	}

	if l.Dims.M > 0 {
		out.matrix = seconds(matrixCycles(m, l.DType, dims, l.Weights > 0, n, known, tiles*pieces))
	}
	parts := tiles
	if known > ofPlaces && n.Vector != schedule.AtTile && l.Dims.M > 0 && tiles > 0 {
		parts *= columns
	}
	if known > ofPieces && (n.Vector == schedule.AtPiece || l.Dims.M == 0) {
		parts *= pieces
	}
	most := int64(1) << 20 // parts, where their number is not known
	if known > ofPieces {
		most = parts * (n.Tiles + tiles - 1) / tiles
	}
	dtype := k.Graph.Tensor(st.Output).DType
	vector := func(parts int64) float64 {
		v, s := m.VectorCycles(model.VectorWork{Simple: work.Simple / parts, Special: work.Special / parts,
			Move: work.Move / parts}, dtype)
		if !m.SharedVector() {
			return seconds(max(v, s))
		}
		return seconds(v + s)
	}
	if work.Total() > 0 {
		out.vector, out.part = float64(parts)*vector(parts), vector(most)
	}

	ddrLatency, l1Latency := spec.DDR.LatencySeconds+spec.DDRLink.LatencySeconds,
		spec.CoreLink.LatencySeconds+spec.LLB.LatencySeconds
	efficiency := spec.DDRActivationEfficiency
	efficiency = cmp.Or(efficiency, 1)
	ddr, gb, link := spec.DDR.BandwidthBytesPerSecond, spec.LLB.BandwidthBytesPerSecond,
		spec.CoreLink.BandwidthBytesPerSecond
	if factor > 1 {
		sums := dtype.Bytes((factor - 1) * dims.M * dims.N)
		out.out = float64(parts)*2*l1Latency + max(2*float64(sums*st.Cores)/gb, float64(sums)/link)
	}
	move := func(llbBytes, coreBytes int64) float64 { return max(float64(llbBytes)/gb, float64(coreBytes)/link) }
	for i := range st.Reads {
		r := &st.Reads[i]
		commands, times := loads, int64(1)
		need := r.CoreNeedBytes
		if l.Dims.M > 0 && k.Values[r.Value].Tensor == sp.operand(0) {
			need /= factor
		}
		if st.Whole(r) {
			commands = 1
		} else if tiles > 1 {
			commands, times = tiles*loads, passes
		}
		switch k.Values[r.Value].Level {
		case schedule.L1:
			if r.RemoteBytes > 0 {
				commands = min(commands, r.RemoteBytes)
				out.out += float64(times) * (float64(commands)*2*l1Latency + move(2*r.RemoteBytes, r.CoreRemoteBytes))
			}
		case schedule.LLB:
			commands = min(commands, r.NeedBytes)
			out.in += float64(times) * (float64(commands)*l1Latency + move(0, need))
		default:
			commands = min(commands, r.UnionBytes)
			// A stage takes fewer loads from the DDR than go on from there.
			far, passes := commands, times
			switch whole := st.Whole(r); {
			case whole:
			case known <= ofStage && sp.gathers:
				far, passes = 1, 1
			case n.Stage > 0 && n.Once:
				if passes = 1; n.Tiles == tiles {
					far = min(far, n.Stage)
				} else {
					far = 1
				}
			case n.Stage > 0:
				far = min(far, tiles*n.Stage)
			}
			out.ddrLoad += float64(passes) * (float64(far)*ddrLatency + float64(r.UnionBytes)/efficiency/ddr)
			out.ddr += float64(passes*r.UnionBytes) / efficiency / ddr
			out.in += float64(times) * (float64(commands)*l1Latency + move(r.UnionBytes, need))
			if l.Dims.M == 0 {
				out.head = max(out.head, ddrLatency+l1Latency)
			}
		}
	}
	for _, p := range st.Params {
		weights := l.Weights > 0 && p.Tensor == sp.operand(1)
		commands, again := int64(1), int64(1)
		if weights {
			p.CoreBytes /= factor
			commands = columns * reduction
			if known > ofPlaces && !n.Stay && tiles > 1 {
				again = tiles
			}
		}
		out.in += float64(again) * (float64(commands)*l1Latency + move(0, p.CoreBytes))
		if !sp.kept {
			if weights && known <= ofGroup {
				commands = 1
			} else if weights && n.Group > 0 {
				commands = (commands + n.Group - 1) / n.Group
			}
			out.ddrLoad += float64(commands)*ddrLatency + float64(p.UnionBytes)/ddr
			out.ddr += float64(p.UnionBytes) / ddr
			if weights {
				out.head = max(out.head, ddrLatency+l1Latency)
			}
		}
	}
	stores := tiles
	if known > ofPlaces && n.Store == schedule.AtColumns {
		stores *= columns
	}
	last := int64(1) << 20
	if known > ofPlaces {
		last = stores * (n.Tiles + tiles - 1) / tiles
	}
	for _, w := range st.Writes {
		v := &k.Values[w]
		if v.Level == schedule.L1 {
			continue
		}
		out.out += float64(min(stores, v.Bytes))*l1Latency + move(v.Bytes, v.CoreBytes)
		tail := l1Latency
		if v.Level == schedule.DDR {
			out.ddrStore += float64(min(stores, v.Bytes))*ddrLatency + float64(v.Bytes)/efficiency/ddr
			out.ddr += float64(v.Bytes) / efficiency / ddr
			tail += ddrLatency + float64(v.Bytes/last)/efficiency/ddr
		}
		out.tail = max(out.tail, tail)
	}
	if out.ddr > 0 {
		out.wait = ddrLatency
	}
	if out.in > 0 {
		out.first = l1Latency
	}
	return out
}

// matrixCycles are the cycles of the busiest core's products, whose rows are cut into this many parts or more.
func matrixCycles(m *cost.Model, dt model.DType, all model.MatrixDims, weights bool, n *schedule.Nest, known int,
	parts int64) (sum hardware.Cycles) {
	type tile struct{ at, n int64 } // of phases, tiles of equal size differ
	count := func(list []int64, whole int64, cut bool, p *model.Phases) map[tile]int64 {
		if !cut {
			return map[tile]int64{{0, whole}: 1}
		}
		c, at := map[tile]int64{}, int64(0)
		for _, x := range list {
			c[tile{at, x}]++
			if p != nil {
				at += x
			}
		}
		return c
	}
	ks := count(n.Reduction, all.K, known > ofReduction, all.Phases)
	ns := count(n.Columns, all.N, known > ofColumns && all.Reps == 1, nil)
	reps := count(n.Columns, all.Reps, known > ofColumns && all.Reps > 1 && weights, nil)
	for k, kTimes := range ks {
		for c, nTimes := range ns {
			for r, rTimes := range reps {
				d := model.MatrixDims{Reps: 1, N: c.n, K: k.n, Line: all.Line, At: k.at, Phases: all.Phases}
				rows, part := r.n*all.M, &d.M
				if r.n >= parts {
					d.M, rows, part = all.M, r.n, &d.Reps
				}
				*part = rows / parts
				each := hardware.Cycles(parts-rows%parts) * m.MatrixCycles(d, dt)
				*part++
				each += hardware.Cycles(rows%parts) * m.MatrixCycles(d, dt)
				sum += hardware.Cycles(kTimes*nTimes*rTimes) * each
			}
		}
	}
	return sum
}
