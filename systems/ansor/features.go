package ansor

import (
	"cmp"
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// FeatureNames are of what the learned cost is told of a layer, counts, bytes and nanoseconds
// alike as signed logarithms to the base 2.
var FeatureNames = append([]string{
	"matrix ns", "vector ns", "edge waste", "MACs a command", "matrix commands", "vector commands",
	"tiles", "depth", "loads", "pieces", "columns", "reduction", "columns first", "weights stay", "LLB stage",
	"LLB stage once", "weights together", "vector attached to", "store attached to",
	"cores", "rfactor", "outermost cores", "innermost cores",
	"in bytes", "in commands", "in ns", "out bytes", "out commands", "out ns", "weight bytes", "weight commands",
	"weight ns", "largest weight tile",
	"stage bytes", "stage share", "link ns", "DDR ns", "LLB ns",
	"first load ns", "last store ns", "longest ns", "sum ns", "products a DDR byte", "products an L1 byte",
	"bound ns", "bound over least",
	"matrix over least", "vector over least", "DDR over least", "link over least", "weights over least",
	"first load over least", "last store over least", "longest over least", "sum over least",
	"loads into the L1 over least", "moves out of the L1 over least", "DDR loads over least", "DDR stores over least",
	"filled over least", "products over least", "between over least", "in over least", "out over least",
	"load commands over least", "store commands over least", "largest part over least", "vector part over least",
	"queue of DDR loads ns", "queue of DDR stores ns", "queue into the L1 ns", "queue out of the L1 ns",
}, reuseNames()...)

// ReuseFeatures is the index in [FeatureNames] from which on they are the appendix's of loops: intensity curve, reuse,
// iterations.
var ReuseFeatures = len(FeatureNames) - len(reuseNames())

// features describes step i of a kernel, under its nest, by what it takes of each unit and memory if nothing overlaps.
// The sum over times and the longest of them enclose what the simulator will say.
func (sp *space) features(n *schedule.Nest) []float64 {
	x := sp.under(n.Cores)
	k, l, m := sp.at(x), x.loops, sp.model
	st := &k.Steps[sp.step]
	spec := k.Spec
	tiles, columns, reduction := float64(n.Tiles), float64(max(1, len(n.Columns))), float64(max(1, len(n.Reduction)))
	ns := func(c hardware.Cycles) float64 { return float64(c) / spec.ClockHz * 1e9 }

	// Work: whole iterations of one size.
	dims, work, factor := l.Dims, l.Vector, max(1, n.Rfactor)
	dims = dims.Sliced(factor)
	work.Simple += (factor - 1) * dims.M * dims.N
	rows := max(1, dims.M*max(1, dims.Reps)/(n.Tiles*n.Pieces))
	matrix, waste, matrixCommands := 0.0, 0.0, 0.0
	if dims.M > 0 {
		matrixCommands = tiles * float64(n.Pieces) * columns * reduction
		d := model.MatrixDims{Reps: 1, M: rows, N: max(1, dims.N/int64(columns)), K: max(1, dims.K/int64(reduction)),
			Line: dims.Line, Phases: dims.Phases}
		if dims.Reps > 1 {
			d.N = dims.N
			d.M = max(1, dims.M/max(1, n.Tiles*n.Pieces/dims.Reps))
			matrix = ns(m.MatrixCycles(d, l.DType)) * math.Max(matrixCommands, float64(dims.Reps))
		} else {
			matrix = ns(m.MatrixCycles(d, l.DType)) * matrixCommands
		}
		ideal := ns(m.MatrixCycles(dims, l.DType))
		waste = matrix / math.Max(ideal, 1)
	}
	vectorCommands := tiles
	if n.Vector != schedule.AtTile && dims.M > 0 {
		vectorCommands *= columns
	}
	if n.Vector == schedule.AtPiece {
		vectorCommands *= float64(n.Pieces)
	}
	part := model.VectorWork{Simple: work.Simple / int64(vectorCommands), Special: work.Special / int64(vectorCommands),
		Move: work.Move / int64(vectorCommands)}
	v, s := m.VectorCycles(part, k.Graph.Tensor(st.Output).DType)
	vector := ns(v+s) * vectorCommands

	// Moves.
	passes := 1.0
	if n.ColumnsFirst && n.Tiles > 1 {
		passes = columns
	}
	ddrLatency := (spec.DDR.LatencySeconds + spec.DDRLink.LatencySeconds) * 1e9
	l1Latency := spec.CoreLink.LatencySeconds * 1e9
	llbRate := math.Inf(1)
	if spec.LLB != nil {
		l1Latency += spec.LLB.LatencySeconds * 1e9
		llbRate = spec.LLB.BandwidthBytesPerSecond / 1e9
	}
	ddrRate, link := spec.DDR.BandwidthBytesPerSecond/1e9, spec.CoreLink.BandwidthBytesPerSecond/1e9
	var in, inCommands, inNs, ddr, gb, linked, firstLoad float64
	for i := range st.Reads {
		r := &st.Reads[i]
		commands, times := float64(n.Loads), passes
		if !st.Whole(r) {
			commands *= tiles
		} else {
			commands, times = 1, 1
		}
		var took float64
		first := commands // parts, one of which must be there
		switch k.Values[r.Value].Level {
		case schedule.L1:
			took = float64(r.CoreRemoteBytes)/link + 2*commands*l1Latency
			gb += 2 * times * float64(r.RemoteBytes)
			linked += times * float64(r.CoreRemoteBytes)
			if r.RemoteBytes == 0 {
				continue
			}
		case schedule.LLB:
			took = float64(r.CoreNeedBytes)/link + commands*l1Latency
			gb += times * float64(r.NeedBytes)
			linked += times * float64(r.CoreNeedBytes)
		default:
			far, bytes := commands, float64(r.UnionBytes) // of a pass
			if !st.Whole(r) && n.Stage > 0 {
				if far = float64(n.Stage) * tiles; n.Once {
					far, bytes = float64(n.Stage)/passes, bytes/passes
				}
			}
			took = bytes/ddrRate + far*ddrLatency
			first = far
			ddr += times * bytes
			gb += 2 * times * float64(r.UnionBytes)
			linked += times * float64(r.CoreNeedBytes)
		}
		in += times * float64(r.NeedBytes)
		inCommands += times * commands
		inNs += times * took
		firstLoad += took / first
	}
	var out, outCommands, outNs, lastStore float64
	stores := tiles
	if n.Store == schedule.AtColumns {
		stores *= columns
	}
	for _, w := range st.Writes {
		val := &k.Values[w]
		if val.Level == schedule.L1 {
			continue
		}
		took := float64(val.Bytes)/llbRate + stores*l1Latency
		if gb += float64(val.Bytes); val.Level == schedule.DDR {
			took = float64(val.Bytes)/ddrRate + stores*ddrLatency
			ddr += float64(val.Bytes)
		}
		linked += float64(val.CoreBytes)
		out += float64(val.Bytes)
		outCommands += stores
		outNs += took
		lastStore += took / stores
	}
	var weights, weightCommands, weightNs, largest float64
	for _, p := range st.Params {
		weights += float64(p.UnionBytes)
	}
	if l.Weights > 0 {
		weightCommands = columns * reduction
		again := 1.0
		if n.Tiles > 1 && !n.Stay {
			again = tiles
		}
		own := float64(l.Weights) / float64(factor)
		largest = own / weightCommands
		ddr += weights
		gb += weights * (1 + again)
		linked += own * again
		weightNs = weights/ddrRate + math.Ceil(weightCommands/float64(max(1, n.Group)))*ddrLatency +
			weightCommands*(again-1)*l1Latency + again*own/link
		weightCommands *= again
		firstLoad += largest * float64(max(1, n.Group)) * float64(st.Cores) / ddrRate
	}
	stage := 0.0
	cut := *st
	cut.Nest, cut.Tiles = n, n.Tiles
	for _, p := range k.Staged(&cut) {
		stage += float64(cut.Space(p))
	}
	linkNs, ddrNs, llbNs := linked/link, ddr/ddrRate, gb/llbRate
	queues := sp.load(n, decisionsOfLayer)
	bound := max(queues.memory(), queues.cores())
	longest := max(matrix, vector, inNs, outNs, weightNs, linkNs, ddrNs, llbNs)
	binding := n.Cores
	if binding == nil {
		binding = st.Binding
	}
	layout := k.Graph.Tensor(st.Output).Layout
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	least := 1e9 * max(1e-9, sp.least.memory(), sp.least.cores())
	sum := matrix + vector + inNs + outNs + weightNs
	between := math.Max(matrix, queues.matrix*1e9)
	list := []float64{
		matrix, vector, waste, float64(l.MACs) / max(1, matrixCommands), matrixCommands, vectorCommands,
		tiles, float64(n.Depth), float64(n.Loads), float64(n.Pieces), columns, reduction, flag(n.ColumnsFirst), flag(n.Stay),
		float64(n.Stage), flag(n.Once), float64(n.Group), float64(n.Vector), float64(n.Store),
		float64(binding.Cores()), float64(factor), float64(binding[layout[0]]), float64(binding[layout[len(layout)-1]]),
		in, inCommands, inNs, out, outCommands, outNs, weights, weightCommands, weightNs, largest,
		stage, stage / float64(max(1, k.L1Capacity)), linkNs, ddrNs, llbNs,
		firstLoad, lastStore, longest, matrix + vector + inNs + outNs + weightNs, float64(l.MACs) / max(1, ddr),
		float64(l.MACs) / max(1, linked),
		bound * 1e9, bound / max(1e-9, sp.least.memory(), sp.least.cores()),
		matrix / least, queues.vector * 1e9 / least, queues.ddr * 1e9 / least, linkNs / least, weightNs / least,
		firstLoad / least, lastStore / least, longest / least, sum / least,
		queues.in * 1e9 / least, queues.out * 1e9 / least, queues.ddrLoad * 1e9 / least, queues.ddrStore * 1e9 / least,
		(firstLoad + max(longest, bound*1e9) + lastStore) / least, queues.matrix * 1e9 / least,
		(firstLoad + between + queues.part*1e9 + lastStore) / least,
		inNs / least, outNs / least, inCommands * l1Latency / least, outCommands * l1Latency / least,
		matrix / max(1, matrixCommands) / least, vector / max(1, vectorCommands) / least,
		queues.ddrLoad * 1e9, queues.ddrStore * 1e9, queues.in * 1e9, queues.out * 1e9,
	}
	var touched [buffers]float64
	for i := range st.Reads {
		touched[inBuffer] += float64(st.Reads[i].CoreNeedBytes) / float64(factor)
	}
	touched[weightBuffer] = float64(l.Weights) / float64(factor)
	for _, w := range st.Writes {
		touched[outBuffer] += float64(k.Values[w].CoreBytes)
	}
	ops := cmp.Or(float64(l.MACs)/float64(max(1, st.Cores)*factor), float64(work.Total()))
	list = append(list, reuse(loops(n, dims.Reps > 1), ops, tiles*passes, touched)...)
	for i, x := range list {
		list[i] = signedLog(x)
	}
	return list
}

// Features describes each layer of a program.
func (t *Task) Features(p Program) [][]float64 {
	list := make([][]float64, len(p))
	for i, n := range p {
		list[i] = t.space[i].features(n)
	}
	return list
}
