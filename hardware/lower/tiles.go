package lower

import (
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// pipelineDepth is how many pieces a layer is cut into, where its extents allow,
// so that its units overlap: the next piece in the matrix unit while the vector
// unit finishes this one.
const pipelineDepth = 4

// maxOuterTiles bounds the tiles of rows that are issued for one layer.
const maxOuterTiles = 16

// grain bounds how many commands stand for one layer. A loop with more iterations
// is issued in this many parts, each standing for several iterations: same work,
// same bytes, coarser overlap.
type grain struct {
	weightTiles int64 // of one layer
	passes      int64 // of weight tiles, over all outer tiles
}

// grainFor keeps programs of many layers within some million commands: with
// thousands of small instances the details of each matter little.
func grainFor(layers int) grain {
	n := max(8, min(128, 400_000/int64(max(1, layers))))
	return grain{n, 2 * n}
}

// minRows is the least number of rows in a piece; shorter ones would spend their
// time loading weights into the array.
const minRows = 16

// weightTile is a block of an anchor's weights as one core sees it.
type weightTile struct {
	key        tileKey
	n, k       int64 // columns and reduction elements (or repetitions and all)
	reps       int64
	coreBytes  int64
	unionBytes int64
	times      int64 // how often it passes from the GB per issued tile
	lastK      bool
	portion    isa.Portion // of the step's task
}

// lookUp is a table of which a step reads some rows.
type lookUp struct {
	schedule.ParamRead
	operand int32 // of the task
}

type tileKey struct {
	tensor model.TensorID
	offset int64 // of the part of the tensor that a step reads
	bytes  int64 // of that part; distinguishes tilings
	tiles  int
	index  int
}

// layerPlan is how one step becomes commands.
type layerPlan struct {
	step   *schedule.Step
	task   int32 // what Command.Task is
	layer  *schedule.Layer
	matrix bool
	dims   model.MatrixDims // of one core
	dtype  model.DType      // of the matrix operands
	// vectorType is the widest type of the layer's results.
	vectorType model.DType
	// constantRows: the operand whose rows pass through the matrix unit is a constant,
	// and comes with the parameters.
	constantRows bool
	macs         int64            // useful, all cores
	vector       model.VectorWork // of one core
	vecOps       int64            // useful, all cores
	tiles        int64            // outer tiles of rows (streaming), as issued
	repeat       int64            // iterations that one issued tile stands for
	pieces       int64            // row pieces within a tile
	// weights in order of use; nil if the anchor has none
	weights     []weightTile
	kTiles      int
	restream    bool // weights pass once per outer tile
	params      []weightTile
	rows        []lookUp
	weightTotal int64
	// ends of the tiles of weights along columns and reduction
	columns, reduction []int64
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// plan decides the tiling of a step. buffer is the weight buffer per core, of
// which weightRing is for weights and the rest for other parameters; fine limits
// the number of commands.
func plan(s *schedule.Schedule, st *schedule.Step, m *cost.Model, buffer, weightRing int64, fine grain) *layerPlan {
	inst := &s.Instances.Instances[st.Instance]
	lp := &layerPlan{step: st, layer: &s.Layers[inst.Group][st.Layer], tiles: min(maxOuterTiles, max(1, st.Tiles)), pieces: 1}
	lp.repeat = ceilDiv(max(1, st.Tiles), lp.tiles)
	lp.addWork(s, inst)
	lp.cutConstants(s, m, buffer, weightRing, fine)
	lp.restream = lp.tiles > 1 && lp.weightTotal > weightRing
	if lp.restream {
		lp.tiles = min(lp.tiles, max(2, fine.passes/int64(len(lp.weights))))
		lp.repeat = ceilDiv(st.Tiles, lp.tiles)
		for i := range lp.weights {
			lp.weights[i].times = lp.repeat
		}
	}
	want := int64(1)
	if lp.tiles == 1 {
		want = pipelineDepth
		if lp.matrix {
			want = ceilDiv(pipelineDepth, max(1, int64(len(lp.weights)/max(1, lp.kTiles))))
		}
	}
	lp.pieces = max(1, min(want, lp.rowsOfTile()/minRows))
	if n := int64(len(lp.params)); n > lp.pieces*lp.tiles {
		lp.pieces = ceilDiv(n, lp.tiles)
	}
	return lp
}

// addWork adds up the work of the layer's operators: that of the busiest core, and the
// useful part of all cores'.
func (lp *layerPlan) addWork(s *schedule.Schedule, inst *schedule.Instance) {
	g, st := s.Graph, lp.step
	reg := schedule.Regions{}
	for _, w := range st.Writes {
		v := &s.Values[w]
		reg[v.Tensor] = schedule.Slice(v.Region, v.Binding, g.Tensor(v.Tensor).Layout, 0)
	}
	schedule.BackPropagate(g, lp.layer.Ops, reg)
	lp.dtype = g.Tensor(st.Output).DType
	lp.vectorType = lp.dtype
	views := true
	for _, id := range lp.layer.Ops {
		op := g.Op(id)
		for k, o := range op.Outputs {
			r := reg[o]
			if r.Elements() == 0 {
				continue // this core has no use for it
			}
			if op.Class() != model.ViewClass {
				views = false
				if t := g.Tensor(o).DType; t.Bytes() > lp.vectorType.Bytes() {
					lp.vectorType = t // lanes are as few as the widest type leaves
				}
			}
			if k == 0 && id == lp.layer.Anchor && g.OnMatrixUnit(op) {
				lp.dims, lp.matrix = g.MatrixDims(op, r)
				lp.dtype = g.Tensor(op.Inputs[0]).DType
				lp.constantRows = g.Tensor(op.Inputs[0]).Role == model.Constant
			}
			core, useful := g.Work(op, r), usefulWork(s, inst, op, o)
			lp.vector = lp.vector.Add(core.Vector)
			lp.vecOps += useful.Vector.Total()
			if g.OnMatrixUnit(op) {
				lp.macs += useful.MACs
			} else {
				// Depthwise: one simple operation per MAC.
				lp.vector.Simple += core.MACs
				lp.vecOps += useful.MACs
			}
		}
	}
	if views {
		// A reshape on its own copies: the original has another reader.
		lp.vector.Move = st.CoreOutput.Elements()
		lp.vecOps = inst.Regions[st.Output].Elements()
	}
}

// cutConstants cuts what the step reads of constants: the anchor's weights into tiles, of
// which two must fit into the ring, so that one loads while the other is used, and other
// parameters into chunks, likewise.
func (lp *layerPlan) cutConstants(s *schedule.Schedule, m *cost.Model, buffer, weightRing int64, fine grain) {
	anchor := s.Graph.Op(lp.layer.Anchor)
	half := max(64, weightRing/2)
	chunk := max(64, (buffer-weightRing)/2)
	for i, p := range lp.step.Params {
		operand := int32(len(lp.step.Reads) + i)
		switch {
		case p.Rows:
			lp.rows = append(lp.rows, lookUp{p, operand})
		case lp.matrix && p.Tensor == anchor.Inputs[1]:
			lp.tileWeights(p, operand, m, max(half, ceilDiv(p.CoreBytes, fine.weightTiles)))
		default:
			lp.params = append(lp.params, cut(p, operand, max(chunk, ceilDiv(p.CoreBytes, fine.weightTiles)))...)
		}
	}
}

// usefulWork is an instance's share of an operator's work: what instances compute
// more than once, because of halos, counts once.
func usefulWork(s *schedule.Schedule, inst *schedule.Instance, op *model.Op, o model.TensorID) model.Work {
	g := s.Graph
	all := g.Work(op, model.Whole(g.Tensor(o).Shape))
	rank, n := int64(0), int64(0)
	first := s.Instances.First[inst.Group]
	for q := 0; q < int(s.Grouping.Groups[inst.Group].Factor()); q++ {
		if r := s.Instances.Instances[first+q].Regions[o]; r != nil && r.Elements() > 0 {
			if first+q == inst.ID {
				rank = n
			}
			n++
		}
	}
	if n == 0 {
		return model.Work{}
	}
	part := func(w int64) int64 { return piece(w, rank, n) }
	return model.Work{MACs: part(all.MACs), Vector: model.VectorWork{
		Simple: part(all.Vector.Simple), Special: part(all.Vector.Special), Move: part(all.Vector.Move)}}
}

func (lp *layerPlan) rowsOfTile() int64 {
	if lp.matrix {
		return lp.dims.Reps * lp.dims.M / lp.tiles
	}
	return lp.step.CoreOutput.Elements() / lp.tiles / minRows
}

// cut divides a parameter block into chunks of at most this many bytes.
func cut(p schedule.ParamRead, operand int32, chunk int64) []weightTile {
	n := ceilDiv(p.CoreBytes, chunk)
	var ts []weightTile
	for i := int64(0); i < n; i++ {
		ts = append(ts, weightTile{
			key: tileKey{p.Tensor, p.Offset, p.UnionBytes, int(n), int(i)}, times: 1,
			coreBytes:  piece(p.CoreBytes, i, n),
			unionBytes: piece(p.UnionBytes, i, n),
			portion:    isa.Portion{Operand: operand}.Cut(i, n),
		})
	}
	return ts
}

// tileWeights cuts the anchor's weights into tiles of at most half bytes, multiples
// of the matrix unit's geometry: first along the reduction, as far as one column of
// blocks needs it, then along the columns.
func (lp *layerPlan) tileWeights(p schedule.ParamRead, operand int32, m *cost.Model, half int64) {
	d := lp.dims
	lp.weightTotal = p.CoreBytes
	var nCuts, kCuts []int64
	switch {
	case d.Reps > 1: // groups: whole products
		nCuts = even(d.Reps, 1, ceilDiv(p.CoreBytes, half))
		kCuts = []int64{d.K}
	default:
		columns := ceilDiv(d.N, m.MatrixCols())
		kCuts = even(d.K, m.MatrixRows(), ceilDiv(ceilDiv(p.CoreBytes, columns), half))
		nCuts = even(d.N, m.MatrixCols(), ceilDiv(ceilDiv(p.CoreBytes, int64(len(kCuts))), half))
	}
	total := len(nCuts) * len(kCuts)
	nAll, kAll := int64(0), d.K
	for _, n := range nCuts {
		nAll += n
	}
	i := 0
	doneCore, doneUnion, seen := int64(0), int64(0), int64(0)
	for _, n := range nCuts {
		for kk, k := range kCuts {
			seen += n * k
			// Cumulative shares, so that the tiles add up to the whole.
			core, union := mulDiv(p.CoreBytes, seen, nAll*kAll), mulDiv(p.UnionBytes, seen, nAll*kAll)
			t := weightTile{key: tileKey{p.Tensor, p.Offset, p.UnionBytes, total, i}, n: n, k: k, reps: 1, times: 1,
				coreBytes: core - doneCore, unionBytes: union - doneUnion, lastK: kk == len(kCuts)-1,
				portion: isa.Portion{Operand: operand, Tile: int32(i) + 1}}
			if d.Reps > 1 {
				t.reps, t.n = n, d.N
			}
			doneCore, doneUnion = core, union
			lp.weights = append(lp.weights, t)
			i++
		}
	}
	lp.kTiles = len(kCuts)
	lp.columns, lp.reduction = ends(nCuts), ends(kCuts)
}

// ends are the sums of the first one, the first two, ... extents.
func ends(extents []int64) []int64 {
	sums := make([]int64, len(extents))
	end := int64(0)
	for i, n := range extents {
		end += n
		sums[i] = end
	}
	return sums
}

// mulDiv is a*b/c for factors whose product may pass 63 bits.
func mulDiv(a, b, c int64) int64 {
	return int64(float64(a) * (float64(b) / float64(c)))
}

// even cuts n into at least parts pieces, multiples of grain but for the last, as
// equal as the grain allows.
func even(n, grain, parts int64) []int64 {
	blocks := ceilDiv(n, grain)
	parts = max(1, min(parts, blocks))
	var out []int64
	left := n
	for i := int64(0); i < parts; i++ {
		size := min(left, piece(blocks, i, parts)*grain)
		out = append(out, size)
		left -= size
	}
	return out
}
