package lower

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// pipelineDepth is the number of pieces a layer is cut into, where its extents allow and Options.Pieces says nothing,
// so that its units overlap: the next piece in the matrix unit while the vector unit finishes this one.
const pipelineDepth = 4

// MaxTiles bounds the tiles of rows that are issued for one layer, and MaxPasses those of
// weights over all of them, in programs of few layers.
const (
	MaxTiles  = 16
	MaxPasses = 256
)

// grain bounds how many commands stand for one layer. A loop with more iterations is issued in this many parts, each
// standing for several iterations: same work, same bytes, coarser overlap.
type grain struct {
	weightTiles int64 // of one layer
	passes      int64 // of weight tiles, over all outer tiles
	pieces      int64 // that a layer is cut into
	room        int64 // see Options.WeightTiles
	group       int64 // see Options.LoadTiles
	storePieces bool
}

// grainFor keeps programs of many layers within some million commands: with
// thousands of small instances the details of each matter little.
func grainFor(layers int) grain {
	n := max(8, min(MaxPasses/2, 400_000/int64(max(1, layers))))
	return grain{weightTiles: n, passes: 2 * n, pieces: pipelineDepth}
}

// minRows is the least number of rows in a piece; shorter ones would spend their time loading weights into the array.
const minRows = 16

// weightTile is a block of an anchor's weights as one core sees it.
type weightTile struct {
	key        tileKey
	number     int32 // of the key
	n, k       int64 // columns and reduction elements (or repetitions and all)
	at         int64 // the first of these elements
	reps       int64
	coreBytes  int64
	unionBytes int64
	times      int64 // how often it passes from the LLB per issued tile
	// What comes from the DDR with it, if it is not there yet: all tiles of its group.
	farBytes int64
	far      isa.Portion
	lastK    bool
	portion  isa.Portion // of the step's task
}

// lookUp is a table of which a step reads some rows.
type lookUp struct {
	schedule.ParamRead
	operand int32 // of the task
}

type tileKey struct {
	part   int // of the network, see Exchange
	tensor model.TensorID
	offset int64 // of the part of the tensor that a step reads
	bytes  int64 // of that part; distinguishes tilings
	core   int64 // bytes of that part for the busiest core; distinguishes how cores share it
	kind   int   // of the cores
	tiles  int
	index  int
	// where the tile begins and how far it goes along columns and reduction
	columns, reduction [2]int64
	group              int64 // tiles that come from the DDR together; 0: each alone
}

// layerPlan is how one step becomes commands.
type layerPlan struct {
	step  *schedule.Step
	task  int32 // what Command.Task is
	layer *schedule.Layer
	work
	// rowBlocks are blocks of the operand whose rows pass through the matrix unit, if it is a constant:
	// they take turns in the ring of weights with the pieces of rows.
	rowBlocks []weightTile
	tiles     int64 // outer tiles of rows (streaming), as issued
	repeat    int64 // iterations that one issued tile stands for
	pieces    int64 // row pieces within a tile
	// What the rest is cut by: the step's, or what rules make.
	nest *schedule.Nest
	// attention is the step's, if it runs one
	attention *attention
	constant  *schedule.ParamRead // the anchor's weights; nil: it has none
	operand   int32               // of the task that they are
	// weights are the tiles of the second operand along columns, then reduction, of bytes if they are constant; one of a
	// layer without a product.
	weights     []weightTile
	kTiles      int
	again       bool // weights pass once per outer tile
	params      []weightTile
	rows        []lookUp
	weightTotal int64
	// ends of the tiles of weights along columns and reduction
	columns, reduction []int64
	// What each iteration needs again, once it is known: see [layerPlan.incoming], [layerPlan.stages],
	// [lowering.matrixCycles].
	reads      []incoming
	staged     []schedule.StagePart
	last       [5]int64
	lastCycles hardware.Cycles
}

// work is what a layer computes.
type work struct {
	matrix bool
	dims   model.MatrixDims // of one core
	dtype  model.DType      // of the matrix operands
	// vectorType is the widest type of the layer's results.
	vectorType model.DType
	macs       int64            // useful, all cores
	vector     model.VectorWork // of one core
	vecOps     int64            // useful, all cores
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// plan decides the tiling of a step: by its nest, or by rules if it has none. fine limits
// the number of commands. What mem, if not nil, remembers of the step's work is taken from there.
func plan(s *schedule.Schedule, st *schedule.Step, m *cost.Model, fine grain, mem *Memory) (*layerPlan, error) {
	lp, key := prepare(s, st, m, fine, mem)
	if lp.nest != nil {
		return lp, nil
	}
	rule := lp.rule(s, m, fine)
	lp.slice()
	if lp.nest = cmp.Or(st.Nest, rule); st.Nest != nil || st.Attending != nil {
		if err := lp.check(s, rule); err != nil {
			return nil, fmt.Errorf("nest of %q: %w", lp.layer.Name, err)
		}
	}
	if st.Attending != nil {
		lp.attend(s)
	}
	lp.follow(fine)
	if key.ruled {
		lp.incoming(s)
		mem.keep(key, lp)
	}
	return lp, nil
}

// prepare is the part of a plan that no nest changes, or all of one by rule that mem knows, with its key there.
func prepare(s *schedule.Schedule, st *schedule.Step, m *cost.Model, fine grain, mem *Memory) (*layerPlan, planKey) {
	inst, key := &s.Instances.Instances[st.Instance], mem.keyOf(s, st, m, fine)
	lp, known := mem.plan(key)
	if lp.step, lp.layer = st, &s.Layers[inst.Group][st.Layer]; known && key.ruled {
		return lp, key
	}
	if !known {
		if lp.addWork(s, inst, m); !key.ruled {
			mem.keep(key, lp)
		}
	}
	if st.Attending == nil {
		lp.cutConstants(s, fine)
	}
	return lp, key
}

// rule makes the nest of a step that has none, which one of rows is compared with; nil: the step has one with sums.
func (lp *layerPlan) rule(s *schedule.Schedule, m *cost.Model, fine grain) *schedule.Nest {
	st := lp.step
	switch {
	case st.Nest.Blocked():
		return nil
	case st.Attending != nil:
		return s.AttentionTiles(st).Nest(nil)
	}
	weightRing := s.RingBytes()
	_, whole := s.Overwritten(st) // rows, none of which may be cut; 0: any may be
	n := &schedule.Nest{Tiles: max(1, st.Tiles), Depth: st.Depth()}
	if lp.matrix {
		n.Columns, n.Reduction = []int64{lp.dims.N}, []int64{lp.dims.K}
		if lp.dims.Reps > 1 {
			n.Columns[0] = lp.dims.Reps
		}
	}
	if lp.constant != nil {
		// Two tiles must fit into the ring, so that one loads while the other is used.
		part := max(64, weightRing/max(2, fine.room), ceilDiv(lp.weightTotal, fine.weightTiles))
		n.Columns, n.Reduction = tileWeights(lp.dims, lp.weightTotal, m, part, fine.room > 0)
		n.Stay = n.Tiles > 1 && lp.weightTotal <= weightRing
		n.Group = min(fine.group, int64(len(n.Columns)*len(n.Reduction)))
	}
	tiles, _ := lp.issued(n, fine)
	want := int64(1)
	if tiles == 1 {
		want = fine.pieces
		if lp.matrix {
			columns := len(n.Columns)
			if lp.constant == nil {
				columns = 0
			}
			want = ceilDiv(fine.pieces, max(1, int64(columns)))
		}
	}
	rows := lp.step.CoreOutput.Elements() / tiles / minRows // of a tile
	if lp.matrix {
		rows = lp.dims.Reps * lp.dims.M / tiles
	}
	n.Pieces = max(1, min(want, rows/minRows))
	if p := int64(max(len(lp.params), len(lp.rowBlocks))); p > n.Pieces*tiles {
		n.Pieces = ceilDiv(p, tiles)
	}
	for whole > 0 && whole%n.Pieces != 0 {
		n.Pieces--
	}
	n.Loads = 1
	if tiles == 1 {
		n.Loads = n.Pieces
		for n.Loads > pipelineDepth && n.Loads%2 == 0 {
			n.Loads /= 2
		}
	}
	switch {
	case fine.storePieces:
		n.Store = schedule.AtPiece
	case lp.matrix:
		n.Store = schedule.AtColumns
	default:
		n.Store = schedule.AtTile
	}
	return n
}

// issued is the number of tiles that commands are issued for, and how many of the nest's each of them stands for.
func (lp *layerPlan) issued(n *schedule.Nest, fine grain) (tiles, repeat int64) {
	tiles = min(MaxTiles, n.Tiles)
	if lp.constant != nil && n.Tiles > 1 && !n.Stay {
		tiles = min(tiles, max(2, fine.passes/int64(len(n.Columns)*len(n.Reduction))))
	}
	return tiles, ceilDiv(n.Tiles, tiles)
}

// follow cuts the step by its nest.
func (lp *layerPlan) follow(fine grain) {
	n := lp.nest
	if lp.tiles, lp.repeat = lp.issued(n, fine); n.Blocked() {
		lp.tiles, lp.repeat = n.Tiles, 1
	}
	lp.pieces, lp.kTiles = n.Pieces, int(n.ReductionTiles())
	if !lp.matrix {
		lp.weights = []weightTile{{lastK: true}}
		return
	}
	lp.cutWeights(n.Columns, n.Reduction)
	lp.again = lp.constant != nil && lp.tiles > 1 && !n.Stay
	lp.groupWeights(int(n.Group))
	if lp.again {
		for i := range lp.weights {
			lp.weights[i].times = lp.repeat
		}
	}
}

// slice leaves the busiest core one slice of the reduction, and what adds the slices up.
func (lp *layerPlan) slice() {
	n := lp.step.Slices()
	if n == 1 || !lp.matrix || lp.step.Attending != nil {
		return
	}
	lp.dims = lp.dims.Sliced(n)
	if lp.constant != nil {
		p := *lp.constant
		p.CoreBytes = ceilDiv(p.CoreBytes, n)
		lp.constant, lp.weightTotal = &p, p.CoreBytes
	}
	sums := (n - 1) * lp.dims.M * lp.dims.N
	lp.vector.Simple += sums
	lp.vecOps += sums * lp.step.Cores
}

// checkSlices verifies that the reduction can be cut into slices.
func (lp *layerPlan) checkSlices(s *schedule.Schedule) error {
	st, n := lp.step, lp.nest.Rfactor
	if n == 0 {
		return nil
	}
	cores := schedule.CoresWithL1(s.Spec.Kind(st.Kind))
	if n < 2 || n*st.Cores > cores {
		return fmt.Errorf("rfactor %d for each of %d parts, expected 2 or more on %d cores", n, st.Cores, cores)
	}
	if !lp.matrix || lp.constant == nil || lp.dims.Reps > 1 {
		return fmt.Errorf("rfactor %d, but the layer has no product with constant weights", n)
	}
	anchor := s.Graph.Op(lp.layer.Anchor)
	if extent := ReductionExtent(s.Graph, anchor); extent%n != 0 {
		return fmt.Errorf("rfactor %d of a reduction over %d of %q, expected a divisor", n, extent,
			s.Graph.Tensor(anchor.Inputs[0]).Name)
	}
	if lp.dims.M*lp.dims.N != st.CoreOutput.Elements() {
		return fmt.Errorf("rfactor %d of a product of %d sums a core, of which %d results are made", n, lp.dims.M*lp.dims.N,
			st.CoreOutput.Elements())
	}
	found := false
	for i := range st.Reads {
		v := &s.Values[st.Reads[i].Value]
		if v.Level == schedule.L1 {
			return fmt.Errorf("rfactor %d with %q in the L1, expected operands in the LLB or DDR", n,
				s.Graph.Tensor(v.Tensor).Name)
		}
		found = found || v.Tensor == anchor.Inputs[0]
	}
	if !found {
		return fmt.Errorf("rfactor %d, but another operator of the layer makes %q", n, s.Graph.Tensor(anchor.Inputs[0]).Name)
	}
	return nil
}

// ReductionExtent is the extent of the one dimension of a product's first operand that misses
// in the output and is whole for each of its elements; 1 if there is none.
func ReductionExtent(g *model.Graph, op *model.Op) int64 {
	n := int64(1)
	for d, a := range g.Access(op, 0, 0) {
		if extent := g.Tensor(op.Inputs[0]).Shape[d]; a.Full && extent > 1 {
			if n > 1 {
				return 1
			}
			n = extent
		}
	}
	return n
}

// check reports what a nest of the step's own asks for that can't be had, first what all forms of loops have. Tiles of
// weights may be as large as those of the rule, which has few of them where there are many weights.
func (lp *layerPlan) check(s *schedule.Schedule, rule *schedule.Nest) error {
	n, st, form := lp.nest, lp.step, lp.checkRows
	most, columns, reduction := st.CoreOutput.Elements(), lp.dims.N, lp.dims.K // 0, 0 without a product
	switch {
	case n.Cores != nil && !n.Cores.Equal(st.Binding):
		return fmt.Errorf("is for cores %v, the step is bound to %v", n.Cores, st.Binding)
	case n.Blocked():
		if err := lp.checkProduct(s); err != nil {
			return err
		}
		form, most = lp.checkBlocked, most/max(1, columns)
	case st.Attending != nil:
		return lp.checkAttention(s)
	case n.Attention != nil:
		return fmt.Errorf("has loops over queries and keys, the layer is no attention")
	case lp.dims.Reps > 1:
		columns = lp.dims.Reps
	}
	if err := lp.checkSlices(s); err != nil {
		return err
	}
	stage := st.Needs(lp.stages(s))
	switch {
	case n.Tiles != st.Tiles || n.Tiles < 1 || n.Tiles > most:
		return fmt.Errorf("has %d tiles, expected the step's %d, and 1 to %d", n.Tiles, st.Tiles, most)
	case n.Depth < 1 || n.Depth > n.Tiles && n.Depth != 2 && !n.Blocked():
		return fmt.Errorf("has room for %d of %d tiles, expected 1 to all", n.Depth, n.Tiles)
	case sum(n.Columns) != columns || sum(n.Reduction) != reduction:
		return fmt.Errorf("has columns of %d and a reduction of %d in all, expected %d and %d", sum(n.Columns),
			sum(n.Reduction), columns, reduction)
	case stage > st.StageBytes:
		return fmt.Errorf("takes %d bytes of the L1 in %d tiles with room for %d, there are %d", stage, n.Tiles,
			n.Depth, st.StageBytes)
	case n.Stay && (lp.constant == nil || n.Tiles == 1 && !n.Blocked()):
		return fmt.Errorf("lets weights stay from tile to tile, but has no weights or one tile")
	case s.Spec.LLB == nil && (n.Stage != 0 || n.Once || n.Group != 0):
		return fmt.Errorf("has a stage in the LLB, which %s does not have", s.Spec.Name)
	}
	if err := form(s, rule); err != nil {
		return err
	}
	if lp.constant != nil {
		ring := s.RingBytes()
		tile := ring
		if n.Blocked() {
			ring = cmp.Or(n.Ring, ring)
			tile = ring
		} else if columns > 0 {
			ruled := mulDiv(lp.weightTotal, slices.Max(rule.Columns)*slices.Max(rule.Reduction), columns*lp.dims.K)
			tile = max(ring, ruled+1)
		}
		if err := lp.checkRing(ring, tile); err != nil {
			return err
		}
	}
	return lp.checkParams(s.ParamBytes())
}

// checkRows is check of what a nest with tiles of rows has of its own.
func (lp *layerPlan) checkRows(s *schedule.Schedule, rule *schedule.Nest) error {
	n, st, most := lp.nest, lp.step, lp.step.CoreOutput.Elements()
	switch {
	case n.Loads < 1 || n.Pieces < 1 || n.Loads*n.Tiles > most || n.Pieces*n.Tiles > most:
		return fmt.Errorf("brings inputs in %d parts and computes in %d pieces of each of %d tiles, "+
			"expected no more than the %d elements of a core", n.Loads, n.Pieces, n.Tiles, most)
	case lp.matrix && n.Pieces%n.Loads != 0:
		return fmt.Errorf("brings the inputs of a product in %d parts for %d pieces, expected as many for each",
			n.Loads, n.Pieces)
	case lp.dims.Reps > 1 && len(n.Reduction) > 1:
		return fmt.Errorf("cuts the reduction of several products")
	case lp.matrix && lp.constant == nil && len(n.Columns)*len(n.Reduction) > 1:
		return fmt.Errorf("cuts a second operand that is no constant")
	case n.ColumnsFirst && (len(n.Columns) < 2 || n.Tiles < 2):
		return fmt.Errorf("has the loop over columns outside, but not two columns and two tiles")
	case n.Vector > n.Store && lp.vector.Total() > 0:
		return fmt.Errorf("stores behind each %v, before the vector work behind each %v", n.Store, n.Vector)
	case n.ColumnsFirst && (n.Store == schedule.AtTile || n.Vector == schedule.AtTile) ||
		!lp.matrix && (n.Store == schedule.AtColumns || n.Vector != schedule.AtPiece):
		return fmt.Errorf("has vector work behind each %v and stores behind each %v, which its loops do not have",
			n.Vector, n.Store)
	}
	for i := range st.Reads {
		r := &st.Reads[i]
		bytes := r.UnionBytes
		switch s.Values[r.Value].Level {
		case schedule.L1:
			bytes = r.RemoteBytes
		case schedule.LLB:
			bytes = r.NeedBytes
		}
		if parts := n.Loads * n.Tiles; bytes > 0 && bytes < parts && !st.Whole(r) && parts > rule.Loads*rule.Tiles {
			return fmt.Errorf("brings %d bytes of %q in %d parts", bytes, s.Graph.Tensor(s.Values[r.Value].Tensor).Name, parts)
		}
	}
	stores := func(n *schedule.Nest) int64 { return n.Times(n.Store, n.Tiles) }
	for _, w := range st.Writes {
		if v := &s.Values[w]; v.Level != schedule.L1 && v.Bytes < stores(n) && stores(n) > stores(rule) {
			return fmt.Errorf("stores %d bytes of %q in %d parts", v.Bytes, s.Graph.Tensor(v.Tensor).Name, stores(n))
		}
	}
	return lp.checkStages(s)
}

// checkRing verifies that tiles of weights have no more than most bytes, and that those that stay fit their ring.
func (lp *layerPlan) checkRing(ring, most int64) error {
	n := lp.nest
	largest, together, kept := int64(0), int64(0), int64(0)
	lp.eachWeights(n.Columns, n.Reduction, func(i int, core, _ int64) {
		if n.ColumnsFirst && i%len(n.Reduction) == 0 {
			together = 0
		}
		together += core
		kept, largest = max(kept, together), max(largest, core)
	})
	switch {
	case largest > most:
		return fmt.Errorf("has a tile of weights of %d bytes, their buffer has %d", largest, ring)
	case n.Stay && kept > ring:
		return fmt.Errorf("keeps %d bytes of weights in a buffer of %d", kept, ring)
	}
	return nil
}

// checkStages verifies that stages in the LLB fit beside what lives there.
func (lp *layerPlan) checkStages(s *schedule.Schedule) error {
	n, st := lp.nest, lp.step
	if n.Stage == 0 && !n.Once && n.Group == 0 {
		return nil
	}
	tiles := int64(max(1, len(n.Columns)) * max(1, len(n.Reduction)))
	parts := n.Loads
	if n.Once {
		parts *= n.Tiles
	}
	switch {
	case n.Group != 0 && (lp.constant == nil || n.Group < 2 || n.Group > tiles):
		return fmt.Errorf("brings tiles of weights to the LLB by %d, expected 2 to the %d that there are", n.Group, tiles)
	case n.Stage < 0 || n.Once && (n.Stage == 0 || n.Tiles == 1) || n.Stage > 0 && parts%n.Stage != 0:
		return fmt.Errorf(
			"has a stage of %d parts in the LLB, expected as many loads from each of %d, and several tiles for one in front of the loops", n.Stage, parts)
	}
	free, page := freePages(s, st)
	need, staged := int64(0), false
	for i := range st.Reads {
		r := &st.Reads[i]
		if n.Stage == 0 || s.Values[r.Value].Level != schedule.DDR || st.Whole(r) {
			continue
		}
		staged = true
		issued, _ := lp.issued(n, grainFor(1))
		bytes := r.UnionBytes
		if !n.Once {
			bytes = ceilDiv(bytes, issued)
		}
		if bytes < n.Stage {
			return fmt.Errorf("stages %d bytes of %q in %d parts", bytes, s.Graph.Tensor(s.Values[r.Value].Tensor).Name, n.Stage)
		}
		need += n.Stage * ceilDiv(ceilDiv(bytes, n.Stage), page)
	}
	if n.Stage > 0 && !staged {
		return fmt.Errorf("has a stage in the LLB, but no input that comes from the DDR in parts")
	}
	if need > free/2 {
		return fmt.Errorf("takes %d bytes of the LLB for stages, half of what values leave is %d", need*page, free/2*page)
	}
	if n.Group > 0 {
		most, group := int64(0), int64(0)
		lp.eachWeights(n.Columns, n.Reduction, func(i int, _, union int64) {
			if i%int(n.Group) == 0 {
				group = 0
			}
			group += union
			most = max(most, group)
		})
		if room := max(1, free/4) * page; most > room {
			return fmt.Errorf("brings %d bytes of weights to the LLB together, a quarter of what values leave is %d", most, room)
		}
	}
	return nil
}

// freePages is the number of pages of the LLB the values alive at a step leave, and their bytes.
func freePages(s *schedule.Schedule, st *schedule.Step) (free, page int64) {
	page = pageBytes(int64(s.Spec.LLB.SizeBytes))
	free = int64(s.Spec.LLB.SizeBytes) / page
	taken := make([]bool, free)
	for v := range s.Near(st.ID) {
		for p := v.Address / page; v.Level == schedule.LLB && v.Def <= st.ID && st.ID <= v.Last &&
			p*page < v.Address+schedule.Align(v.Bytes); p++ {
			if p >= 0 && p < int64(len(taken)) && !taken[p] {
				taken[p] = true
				free--
			}
		}
	}
	return free, page
}

// Room is the number of bytes of the LLB the values alive at step i leave, of which stages of
// at most so many parts for an input take half, and tiles of weights that come together a
// quarter; no more than all of them could use. 0: there is no LLB.
func Room(s *schedule.Schedule, i int, parts int64) int64 {
	if s.Spec.LLB == nil {
		return 0
	}
	st := &s.Steps[i]
	free, page := freePages(s, st)
	use := int64(0)
	for k := range st.Reads {
		if r := &st.Reads[k]; s.Values[r.Value].Level == schedule.DDR {
			use += 2 * (ceilDiv(r.UnionBytes, page) + parts)
		}
	}
	for _, p := range st.Params {
		use = max(use, 4*ceilDiv(p.UnionBytes, page))
	}
	return min(free, use) * page
}

// checkParams verifies that parameters that pass in blocks, unless they have no more than stay bytes,
// find a part of the vector work for each, and those of a product's rows a piece.
func (lp *layerPlan) checkParams(stay int64) error {
	bytes, n := int64(0), lp.nest
	for i := range lp.params {
		bytes += lp.params[i].coreBytes
	}
	tiles, _ := lp.issued(n, grain{weightTiles: 1 << 30, passes: 1 << 30})
	parts := n.Times(n.Vector, tiles)
	if int64(len(lp.rowBlocks)) > tiles*n.Pieces {
		return fmt.Errorf("has %d pieces of rows, expected one for each of %d blocks of them",
			tiles*n.Pieces, len(lp.rowBlocks))
	}
	if bytes > stay && lp.vector.Total() > 0 && int64(len(lp.params)) > parts {
		return fmt.Errorf("has %d parts of vector work, expected one for each of %d blocks of parameters",
			parts, len(lp.params))
	}
	return nil
}

func sum(list []int64) (total int64) {
	for _, n := range list {
		if n < 1 {
			return -1
		}
		total += n
	}
	return total
}

// addWork adds up the work of the layer's operators: that of the busiest core, and the useful part of all cores'.
func (lp *layerPlan) addWork(s *schedule.Schedule, inst *schedule.Instance, m *cost.Model) {
	g, st := s.Graph, lp.step
	part := func(core int64) schedule.Regions { return lp.regions(s, core) }
	// The first core has most, unless it lies in the border of a Pad, in whole or in part.
	padded := slices.ContainsFunc(lp.layer.Ops, func(id model.OpID) bool { return g.Op(id).Kind == "Pad" })
	reg, most := part(0), int64(0)
	for core := int64(0); core < st.Cores && (padded || most == 0); core++ {
		r, n := part(core), int64(0)
		for _, t := range g.Op(lp.layer.Anchor).Outputs {
			n += r[t].Elements()
		}
		if n > most {
			reg, most = r, n
		}
	}
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
				if t := g.Tensor(o).DType; t.Bits() > lp.vectorType.Bits() {
					lp.vectorType = t // lanes are as few as the widest type leaves
				}
			}
			core, useful := g.Work(op, r), usefulWork(s, inst, op, o)
			if op.Kind == "ConvTranspose" && id == lp.layer.Anchor {
				r = lp.busiest(g, op, part, m)
				core.MACs = g.Work(op, r).MACs
			}
			if k == 0 && id == lp.layer.Anchor && g.OnMatrixUnit(op) {
				lp.dims, lp.matrix = g.MatrixDims(op, r)
				lp.dtype = g.Tensor(op.Inputs[0]).DType
			}
			macs, vector := useful.MACs, useful.Vector.Total()
			if macs > core.MACs*st.Cores || vector > core.Vector.Total()*st.Cores {
				executed := [2]int64{} // slices leave gaps, or other cores do more
				for c := range st.Cores {
					if r := part(c)[o]; r.Elements() > 0 {
						w := g.Work(op, r)
						executed[0], executed[1] = executed[0]+w.MACs, executed[1]+w.Vector.Total()
					}
				}
				macs, vector = min(macs, executed[0]), min(vector, executed[1])
			}
			lp.vector = lp.vector.Add(core.Vector)
			lp.vecOps += vector
			if g.OnMatrixUnit(op) {
				lp.macs += macs
			} else {
				// Depthwise: one simple operation per MAC.
				lp.vector.Simple += core.MACs
				lp.vecOps += macs
			}
		}
	}
	if views {
		// A reshape on its own copies: the original has another reader.
		lp.vector.Move = st.CoreOutput.Elements()
		lp.vecOps = inst.Regions[st.Output].Elements()
	}
}

// busiest is the part of a transposed convolution that takes a core longest: parts of equal size differ in phases.
func (lp *layerPlan) busiest(g *model.Graph, op *model.Op, part func(core int64) schedule.Regions, m *cost.Model) (
	most model.Region) {
	best := hardware.Cycles(-1)
	for core := range lp.step.Cores {
		r := part(core)[op.Outputs[0]]
		if r.Elements() == 0 {
			continue
		}
		cycles := hardware.Cycles(g.Work(op, r).MACs)
		if d, ok := g.MatrixDims(op, r); ok {
			cycles = m.MatrixCycles(d, g.Tensor(op.Inputs[0]).DType)
		}
		if cycles > best {
			best, most = cycles, r
		}
	}
	return most
}

// cutConstants finds the anchor's weights among the constants that the step reads, and cuts
// others into blocks, two of which must fit into their ring.
func (lp *layerPlan) cutConstants(s *schedule.Schedule, fine grain) {
	anchor, ring := s.Graph.Op(lp.layer.Anchor), s.RingBytes()
	if lp.matrix && s.Graph.Tensor(anchor.Inputs[1]).Role == model.Constant { // weights have theirs
		ring = 2 * s.ParamBytes()
	}
	for i, p := range lp.step.Params {
		operand := int32(len(lp.step.Reads) + i)
		switch {
		case p.Rows:
			lp.rows = append(lp.rows, lookUp{p, operand})
		case lp.matrix && p.Tensor == anchor.Inputs[1]:
			lp.constant, lp.operand, lp.weightTotal = &lp.step.Params[i], operand, p.CoreBytes
		case lp.matrix && p.Tensor == anchor.Inputs[0] && p.CoreBytes <= ring:
			lp.rowBlocks = cut(p, lp.step.Kind, operand, ring)
		case lp.matrix && p.Tensor == anchor.Inputs[0]:
			lp.rowBlocks = cut(p, lp.step.Kind, operand, max(64, ring/2, ceilDiv(p.CoreBytes, fine.weightTiles)))
		default:
			most := max(64, s.ParamBytes(), ceilDiv(p.CoreBytes, fine.weightTiles))
			lp.params = append(lp.params, cut(p, lp.step.Kind, operand, most)...)
		}
	}
}

// usefulWork is an instance's share of the work that its group does for an output of an operator. What instances
// compute more than once, because of halos, counts once, and elements that none computes, because nothing reads them,
// do not.
func usefulWork(s *schedule.Schedule, inst *schedule.Instance, op *model.Op, o model.TensorID) model.Work {
	x := sharesOf(s, inst.Group, o)
	before, after, sum := x.ends[inst.Index], x.ends[inst.Index+1], x.ends[len(x.ends)-1]
	if before == after {
		return model.Work{}
	}
	if sum <= x.hull.Elements() { // they don't overlap
		return s.Graph.Work(op, inst.Regions[o])
	}
	all := s.Graph.Work(op, x.hull)
	part := func(w int64) int64 {
		return mulDiv(w, after, sum) - mulDiv(w, before, sum)
	}
	return model.Work{MACs: part(all.MACs), Vector: model.VectorWork{
		Simple: part(all.Vector.Simple), Special: part(all.Vector.Special), Move: part(all.Vector.Move)}}
}

// shares describes an output's parts, one for each instance of a group: the hull of all parts, and for each instance
// the number of elements in earlier parts. The last entry counts all elements.
type shares struct {
	hull model.Region
	ends []int64
}

func sharesOf(s *schedule.Schedule, group int, o model.TensorID) (x shares) {
	first, n := s.Instances.First[group], int(s.Grouping.Groups[group].Factor())
	x.ends = make([]int64, n+1)
	for q := range n {
		r, own := s.Instances.Instances[first+q].Regions[o], int64(0)
		if r != nil {
			own = r.Elements()
		}
		if x.ends[q+1] = x.ends[q] + own; own == 0 {
			continue
		}
		if x.hull == nil {
			x.hull = r.Clone()
		} else {
			x.hull.Include(r)
		}
	}
	return x
}

// cut divides a parameter block into chunks of at most this many bytes.
func cut(p schedule.ParamRead, kind int, operand int32, chunk int64) []weightTile {
	n := ceilDiv(p.CoreBytes, chunk)
	var ts []weightTile
	for i := int64(0); i < n; i++ {
		portion := isa.Portion{Operand: operand}.Cut(i, n)
		ts = append(ts, weightTile{
			key: tileKey{tensor: p.Tensor, offset: p.Offset, bytes: p.UnionBytes, core: p.CoreBytes, tiles: int(n),
				kind: kind, index: int(i)}, times: 1,
			coreBytes:  piece(p.CoreBytes, i, n),
			unionBytes: piece(p.UnionBytes, i, n), farBytes: piece(p.UnionBytes, i, n),
			portion: portion, far: portion,
		})
	}
	return ts
}

// tileWeights cuts an anchor's weights into tiles of at most so many bytes, multiples of the matrix unit's geometry:
// first along the reduction, as far as one column of blocks needs it, then along the columns. Unless it is strict,
// tiles have no more on average: where blocks can't be shared out evenly, some have one more than others.
func tileWeights(d model.MatrixDims, bytes int64, m *cost.Model, most int64, strict bool) (columns, reduction []int64) {
	cut := func(n, grain, all int64) []int64 {
		parts := ceilDiv(all, most)
		if blocks := ceilDiv(n, grain); strict && parts < blocks {
			parts = ceilDiv(blocks, max(1, most/max(1, mulDiv(all, min(n, grain), n))))
		}
		return even(n, grain, parts)
	}
	if d.Reps > 1 { // groups: whole products
		return cut(d.Reps, 1, bytes), []int64{d.K}
	}
	column := ceilDiv(bytes, ceilDiv(d.N, m.MatrixCols()))
	if strict {
		column = max(column, mulDiv(bytes, min(d.N, m.MatrixCols()), d.N))
	}
	reduction = cut(d.K, m.MatrixRows(), column)
	all := ceilDiv(bytes, int64(len(reduction)))
	if strict {
		all = max(all, mulDiv(bytes, slices.Max(reduction), d.K))
	}
	return cut(d.N, m.MatrixCols(), all), reduction
}

// cutWeights cuts the anchor's second operand along columns and reduction.
func (lp *layerPlan) cutWeights(columns, reduction []int64) {
	p, d := cmp.Or(lp.constant, &schedule.ParamRead{}), lp.dims
	lp.weights = make([]weightTile, 0, len(columns)*len(reduction))
	columnEnds, ends := ends(columns), ends(reduction)
	if lp.constant != nil || lp.nest.Blocked() {
		lp.columns, lp.reduction = columnEnds, ends
	}
	lp.eachWeights(columns, reduction, func(i int, core, union int64) {
		nn, kk := i/len(reduction), i%len(reduction)
		n, k := columns[nn], reduction[kk]
		key := tileKey{0, p.Tensor, p.Offset, p.UnionBytes, p.CoreBytes, lp.step.Kind, cap(lp.weights), i,
			[2]int64{columnEnds[nn] - n, n}, [2]int64{ends[kk] - k, k}, 0}
		t := weightTile{key: key, n: n, k: k, times: 1, coreBytes: core,
			unionBytes: union, farBytes: union, lastK: kk == len(reduction)-1, portion: isa.Portion{Operand: lp.operand}}
		if lp.columns != nil {
			t.portion.Tile = int32(i) + 1
		}
		if d.Phases != nil {
			t.at = ends[kk] - k
		}
		t.far = t.portion
		if t.reps = d.Reps; d.Reps > 1 && !lp.nest.Blocked() {
			t.reps, t.n = n, d.N
		}
		lp.weights = append(lp.weights, t)
	})
}

// eachWeights visits the tiles of weights: the bytes of each for one core and for all.
func (lp *layerPlan) eachWeights(columns, reduction []int64, visit func(i int, core, union int64)) {
	p, all := cmp.Or(lp.constant, &schedule.ParamRead{}), sum(columns)*lp.dims.K
	doneCore, doneUnion, seen := int64(0), int64(0), int64(0)
	for nn, n := range columns {
		for kk, k := range reduction {
			seen += n * k
			// Cumulative shares, so that the tiles add up to the whole.
			core, union := mulDiv(p.CoreBytes, seen, all), mulDiv(p.UnionBytes, seen, all)
			visit(nn*len(reduction)+kk, core-doneCore, union-doneUnion)
			doneCore, doneUnion = core, union
		}
	}
}

// groupWeights puts each so many tiles of weights, which cutWeights has cut, together.
func (lp *layerPlan) groupWeights(size int) {
	for i := 0; i < len(lp.weights) && size > 1; i += size {
		group := lp.weights[i:min(i+size, len(lp.weights))]
		bytes := int64(0)
		for k := range group {
			bytes += group[k].unionBytes
		}
		for k := range group {
			t := &group[k]
			t.key, t.key.group = group[0].key, int64(size)
			t.farBytes, t.far = bytes, group[0].portion
			t.far.Tiles = int32(len(group))
		}
	}
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

// mulDiv is a*b/c, rounded down, for numbers that are not negative and a quotient of 63 bits.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// shareOf is a*b/c, rounded up so that the shares of parts add up to at least the whole's; see [mulDiv].
func shareOf(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, rest := bits.Div64(hi, lo, uint64(c))
	return int64(q + min(rest, 1))
}

// portionOf is the share of bytes that goes with some of so many bytes, at least one and at most all.
func portionOf(bytes, some, of int64) int64 {
	return max(1, min(bytes, shareOf(bytes, some, max(1, of))))
}

// even cuts n into at least parts pieces, multiples of grain but for the last, as equal as the grain allows.
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
