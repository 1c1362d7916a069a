package lower

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// maxBlocks is the number of products of tiles a blocked nest may have.
const maxBlocks = 1 << 16

// A tensorIn is an input tensor of a blocked step: its values, and where its tiles take turns in the
// L1 and gather in the LLB.
type tensorIn struct {
	ins   []*incoming
	role  schedule.OperandRole
	size  int64 // of a slot in the L1
	at    int64 // address of the first slot
	slots []slot
	next  int
	// core has the bytes that the busiest core needs for each tile of rows, for all columns and all of
	// the reduction. broadcast: each column needs all of it.
	core      []int64
	broadcast bool
	far       map[blockKey]*gathered
	open      []*gathered // pinned
}

// blockKey is a tile of an operand: of rows, columns and reduction; -1: all.
type blockKey struct{ row, column, sum int64 }

type slot struct {
	blockKey
	loads []int32
	place *stretch
	full  bool
}

// gathered is the part of an operand that one load has brought into the LLB for several tiles.
type gathered struct {
	entries []*entry // by value
	pages   int      // that they take
	left    int      // tiles that have not been taken
	stays   bool     // for all tiles of rows and columns
}

// loadsWeights reports whether a tile of rows brings the tiles of a column's weights.
func (lp *layerPlan) loadsWeights(row int64) bool {
	return lp.constant != nil && (lp.again || row == 0)
}

// checkProduct reports why a layer can't run by a blocked nest.
func (lp *layerPlan) checkProduct(s *schedule.Schedule) error {
	n := lp.nest
	if !lp.matrix || lp.step.Attending != nil {
		return fmt.Errorf("has sums of %d tiles, but the layer has no product on a matrix unit", n.Sums)
	}
	anchor := s.Graph.Op(lp.layer.Anchor)
	switch {
	case n.Loads != 1 || n.Pieces != 1 || n.Vector != schedule.AtColumns || n.Store != schedule.AtColumns:
		return fmt.Errorf(
			"has sums of %d tiles with %d loads, %d pieces, vector work behind each %v and stores behind each %v, expected 1, 1, and both behind each columns",
			n.Sums, n.Loads, n.Pieces, n.Vector, n.Store)
	case n.Sums > 2:
		return fmt.Errorf("has sums of %d tiles, expected 1 or 2", n.Sums)
	case anchor.Kind == "ConvTranspose" || len(lp.rowBlocks) > 0 || len(lp.rows) > 0 ||
		anchor.Inputs[0] == anchor.Inputs[1]:
		return fmt.Errorf(
			"has sums of %d tiles, but %q of %q is a constant, looks up rows, is both operands or of a transposed convolution",
			n.Sums, s.Graph.Tensor(anchor.Inputs[0]).Name, anchor.Name)
	case lp.dims.Reps > 1 && lp.constant != nil:
		return fmt.Errorf("has sums of %d tiles, but the layer is %d products with constant weights", n.Sums, lp.dims.Reps)
	}
	for _, in := range anchor.Inputs[:2] {
		if p := s.Graph.Tensor(in).Producer; p != model.NoOp && slices.Contains(lp.layer.Ops, p) {
			return fmt.Errorf("has sums of %d tiles, but the layer makes %q, an operand of the product", n.Sums,
				s.Graph.Tensor(in).Name)
		}
		for _, id := range lp.layer.Ops {
			if id != anchor.ID && slices.Contains(s.Graph.Op(id).Inputs, in) && s.Graph.Tensor(in).Role != model.Constant {
				return fmt.Errorf("has sums of %d tiles, but %q reads %q, an operand of the product, as well", n.Sums,
					s.Graph.Op(id).Name, s.Graph.Tensor(in).Name)
			}
		}
	}
	return s.CheckRows(lp.step, lp.dims)
}

// checkBlocked is check of what a blocked nest has of its own.
func (lp *layerPlan) checkBlocked(s *schedule.Schedule, _ *schedule.Nest) error {
	n, st, window := lp.nest, lp.step, int64(1)
	if anchor := s.Graph.Op(lp.layer.Anchor); anchor.Kind == "Conv" {
		window = s.Graph.Tensor(anchor.Inputs[1]).Shape[2:].Elements()
	}
	switch {
	case n.Tiles%lp.dims.Reps != 0:
		return fmt.Errorf("has %d tiles of rows, expected as many for each of %d products", n.Tiles, lp.dims.Reps)
	case n.Tiles > maxBlocks || n.Tiles*n.ColumnTiles() > maxBlocks ||
		n.Tiles*n.ColumnTiles()*n.ReductionTiles() > maxBlocks:
		return fmt.Errorf("has %d x %d x %d tiles of rows, columns and reduction, expected at most %d products of them",
			n.Tiles, n.ColumnTiles(), n.ReductionTiles(), maxBlocks)
	case n.ColumnDepth < 0 || n.ColumnDepth > 0 && lp.constant != nil:
		return fmt.Errorf("has room for %d tiles of columns, expected 0 or more, and none for weights", n.ColumnDepth)
	case n.Group != 0 && (lp.constant == nil || n.Group < 2 || n.ReductionTiles()%n.Group != 0):
		return fmt.Errorf(
			"brings tiles of weights to the LLB by %d, expected a divisor of the %d of the reduction, above 1, and weights",
			n.Group, n.ReductionTiles())
	case n.Stage != 0 && (n.Stage < 1 || n.ReductionTiles()%n.Stage != 0):
		return fmt.Errorf(
			"gathers tiles of operands in the LLB by %d, expected a divisor of the %d of the reduction", n.Stage,
			n.ReductionTiles())
	case n.Once && n.Stage == 0:
		return fmt.Errorf("gathers operands in the LLB once, but by no number of tiles")
	case n.Keep != 0 && (!n.Once || n.Keep < 1 || n.Keep >= n.ReductionTiles()/n.Stage):
		return fmt.Errorf("keeps %d loads of a reduction in the LLB, expected once, and fewer than the %d there are, "+
			"at least 1", n.Keep, n.ReductionTiles()/max(1, n.Stage))
	}
	for _, k := range n.Reduction[:max(0, len(n.Reduction)-1)] {
		if k%window != 0 {
			return fmt.Errorf("has a tile of %d of the reduction, expected a multiple of the %d elements of a window", k, window)
		}
	}
	least := min(slices.Min(n.Columns), slices.Min(n.Reduction))
	for _, id := range lp.layer.Ops {
		for _, in := range s.Graph.Op(id).Inputs {
			if t := s.Graph.Tensor(in); least*t.DType.Bits() < 8 {
				return fmt.Errorf("has a tile of %d along columns or reduction: of %v %q less than a byte", least, t.DType, t.Name)
			}
		}
	}
	if err := s.CheckRing(st); err != nil {
		return err
	}
	if s.Spec.LLB != nil {
		free, page := freePages(s, st)
		if err := lp.checkLoads(s, max(1, free/4)*page); err != nil {
			return err
		}
		if need := lp.gatherPages(s, page); n.Stage > 0 && need > int64(gatherable(int(free))) {
			return fmt.Errorf("gathers %d bytes in the LLB, three quarters of what values leave are %d", need*page,
				int64(gatherable(int(free)))*page)
		}
	}
	return nil
}

// checkLoads verifies that what one load brings from the DDR fits into so many bytes of the LLB.
func (lp *layerPlan) checkLoads(s *schedule.Schedule, room int64) error {
	n, st := lp.nest, lp.step
	all := model.Interval{Hi: lp.dims.N}
	needs, boxes := map[model.TensorID]int64{}, schedule.Regions{}
	for i := range st.Reads {
		r := &st.Reads[i]
		v := &s.Values[r.Value]
		if v.Level != schedule.DDR || r.UnionBytes <= room {
			continue
		}
		if len(needs) == 0 {
			for p := range n.Tiles {
				s.AddTile(needs, boxes, st, p, all)
			}
		}
		most := s.Graph.Tensor(v.Tensor).DType.Bytes(needs[v.Tensor])
		union := shareOf(r.UnionBytes, most, max(1, r.CoreNeedBytes))
		switch s.RoleOf(st, v.Tensor) {
		case schedule.BesideOperand:
			wide := s.TileElements(st, 0, all)[v.Tensor]
			some := s.TileElements(st, 0, model.Interval{Hi: slices.Max(n.Columns)})[v.Tensor]
			union = shareOf(union, some, max(1, wide))
		case schedule.ColumnsOperand:
			union = shareOf(union, slices.Max(n.Columns)*slices.Max(n.Reduction), lp.dims.N*lp.dims.K)
		case schedule.RowsOperand:
			union = shareOf(union, slices.Max(n.Reduction), lp.dims.K)
		}
		if min(union, r.UnionBytes) > room {
			return fmt.Errorf("brings %d bytes of %q from the DDR together, a quarter of what values leave of the LLB is %d",
				min(union, r.UnionBytes), s.Graph.Tensor(v.Tensor).Name, room)
		}
	}
	return nil
}

// gatherable is how many of the pages that values leave operands may gather in: beside them a load has place, which
// takes a quarter at most.
func gatherable(free int) int { return free * 3 / 4 }

// gatherPages is the number of pages of the LLB the operands of a blocked nest gather in.
func (lp *layerPlan) gatherPages(s *schedule.Schedule, page int64) (need int64) {
	n, st := lp.nest, lp.step
	for i := range st.Reads {
		r := &st.Reads[i]
		v := &s.Values[r.Value]
		role := s.RoleOf(st, v.Tensor)
		if v.Level != schedule.DDR || role == schedule.BesideOperand {
			continue
		}
		tiles := n.Tiles
		if role == schedule.ColumnsOperand {
			tiles = lp.dims.Reps * n.ColumnTiles()
		}
		groups := n.ReductionTiles() / max(1, n.Stage)
		loads := tiles * n.Staying()
		if role == schedule.RowsOperand && !n.ColumnsFirst { // of one tile of rows, then of the next
			loads = n.Staying()
		}
		if n.Staying() < groups {
			loads += 2 // one is read while the next arrives
		}
		need += loads * ceilDiv(ceilDiv(r.UnionBytes, tiles*groups), page)
	}
	return need
}

// bringBlocks loads the tiles of operands that a tile of rows needs of a blocked nest with a tile of weights: those of
// the product, or those of the vector work behind it. It lists loads and places; the product needs that of sums, too.
func (l *lowering) bringBlocks(product bool, p, w int64) {
	l.loads, l.used = l.loads[:0], l.used[:0]
	if product && l.lp.nest.Blocked() && l.sums != nil {
		l.used = append(l.used, l.sums)
	}
	for _, t := range l.tensors {
		if product == (t.role != schedule.BesideOperand) {
			l.bringBlock(t, p, w/int64(l.lp.kTiles), w%int64(l.lp.kTiles))
		}
	}
}

// leaveBlocks unpins the tiles of a blocked nest in the LLB.
func (l *lowering) leaveBlocks() {
	for _, t := range l.tensors {
		for _, g := range t.open {
			l.unpin(g)
		}
	}
	if l.lp.nest.Blocked() && l.sums != nil {
		l.recordUntil(l.sums, isa.L1, -1)
	}
}

// tensorsIn groups what a blocked step reads by tensor.
func (l *lowering) tensorsIn(s *schedule.Schedule) (list []*tensorIn) {
	st, n := l.lp.step, l.lp.nest
	all := model.Interval{Hi: l.lp.dims.N}
	at := map[int]schedule.StagePart{}
	address := map[int]int64{}
	next := st.StageAddress
	for _, part := range l.lp.stages(s) {
		if part.From >= 0 {
			at[part.From], address[part.From] = part, next
		}
		next += st.Space(part)
	}
	var needs []map[model.TensorID]int64
	for p := range n.Tiles {
		needs = append(needs, s.TileElements(st, p, all))
	}
	for i := 0; i < len(l.ins); {
		in := l.ins[i]
		t := &tensorIn{role: s.RoleOf(st, in.val.Tensor), far: map[blockKey]*gathered{}, at: address[i]}
		slots := n.RoomFor(t.role)
		if part, ok := at[i]; ok {
			t.size = part.Bytes / slots
		}
		t.slots = make([]slot, slots)
		size := s.Graph.Tensor(in.val.Tensor).DType.Bytes
		for p := range n.Tiles {
			t.core = append(t.core, size(needs[p][in.val.Tensor]))
		}
		if t.role == schedule.BesideOperand {
			t.broadcast = s.TileElements(st, 0, model.Interval{Hi: 1})[in.val.Tensor] == needs[0][in.val.Tensor]
		}
		for ; i < len(l.ins) && l.ins[i].val.Tensor == in.val.Tensor; i++ {
			t.ins = append(t.ins, l.ins[i])
		}
		list = append(list, t)
	}
	return list
}

// key is the tile of an operand that a product of tiles needs.
func (l *lowering) key(t *tensorIn, p, j, k int64) blockKey {
	switch t.role {
	case schedule.RowsOperand:
		return blockKey{p, -1, k}
	case schedule.ColumnsOperand:
		return blockKey{p * l.lp.dims.Reps / l.lp.nest.Tiles, j, k}
	}
	if t.broadcast {
		j = -1
	}
	return blockKey{p, j, -1}
}

// rowsCut is the part of a portion that tile p of rows needs: of the second operand all rows of a product
// need the same.
func (l *lowering) rowsCut(t *tensorIn, portion isa.Portion, p int64) isa.Portion {
	n, reps := l.lp.nest.Tiles, l.lp.dims.Reps
	if t.role == schedule.ColumnsOperand {
		return portion.Cut(p*reps/n, reps)
	}
	return portion.Cut(p, n)
}

// slices is the number of different parts of an operand that cores which make the same part of the results need.
func (l *lowering) slices(t *tensorIn) int64 {
	if t.role == schedule.BesideOperand {
		return 1
	}
	return l.lp.step.Slices()
}

// bytes returns the bytes that the busiest core needs of a tensor for so many tiles of the reduction.
func (l *lowering) bytes(t *tensorIn, p, j, k, many int64) int64 {
	dims := l.lp.dims
	cut := func(bytes int64, ends []int64, i, many, all int64) int64 {
		lo := int64(0)
		if i > 0 {
			lo = ends[i-1]
		}
		return mulDiv(bytes, ends[i+many-1], all) - mulDiv(bytes, lo, all)
	}
	b := ceilDiv(t.core[p], l.slices(t))
	switch t.role {
	case schedule.RowsOperand:
		return cut(b, l.lp.reduction, k, many, dims.K)
	case schedule.ColumnsOperand:
		return cut(cut(b, l.lp.columns, j, 1, dims.N), l.lp.reduction, k, many, dims.K)
	}
	if t.broadcast {
		return b
	}
	return cut(b, l.lp.columns, j, 1, dims.N)
}

// bringBlock loads the tile of an operand that a product of tiles needs, unless it is there.
func (l *lowering) bringBlock(t *tensorIn, p, j, k int64) {
	away := func(in *incoming) bool { return in.val.Level != schedule.L1 || in.read.RemoteBytes > 0 }
	if !slices.ContainsFunc(t.ins, away) {
		return
	}
	key := l.key(t, p, j, k)
	for i := range t.slots {
		if s := &t.slots[i]; s.full && s.blockKey == key {
			l.loads, l.used = append(l.loads, s.loads...), append(l.used, s.place)
			return
		}
	}
	place, turns := t.next, len(t.slots)
	if held := l.lp.nest.Held(); held > 0 && t.role == schedule.RowsOperand {
		turns = 2
		if own := k - int64(l.lp.kTiles) + held; own >= 0 {
			place = turns + int(own)
		}
	}
	if place < turns {
		t.next = (place + 1) % turns
	}
	s := &t.slots[place]
	first := s.place == nil // what was there before the step, places has taken note of
	at := t.at + int64(place)*t.size
	var free []int32
	if s.place, free = l.lb.take(at, t.size, l.label); first {
		free = append(free, t.ins[0].deps...)
	}
	s.blockKey, s.full, s.loads = key, true, s.loads[:0]
	bytes := l.bytes(t, p, j, k, 1)
	for _, in := range t.ins {
		if c := l.bringPart(t, in, p, j, k, bytes, free); c >= 0 {
			s.loads = append(s.loads, c)
		}
	}
	s.place.use(s.loads...)
	l.recordUntil(s.place, isa.L1, -1)
	l.loads, l.used = append(l.loads, s.loads...), append(l.used, s.place)
}

// of is the share of a tensor's bytes that lies in one value.
func (t *tensorIn) of(in *incoming, bytes int64) int64 {
	if len(t.ins) == 1 {
		return bytes
	}
	return shareOf(bytes, in.read.CoreNeedBytes, max(1, in.read.TensorCoreBytes))
}

// bringPart loads the part of a tile that lies in one value, of which the busiest core needs bytes if it
// is all of the tensor. It returns the last command, or -1 if nothing moves.
func (l *lowering) bringPart(o *tensorIn, in *incoming, p, j, k, bytes int64, free []int32) int32 {
	r := in.read
	if in.val.Level == schedule.L1 && r.RemoteBytes == 0 {
		return -1
	}
	core := o.of(in, bytes)
	every := core * l.slices(o) // of the cores that share a part of the results
	need := max(1, shareOf(r.NeedBytes, every, max(1, r.CoreNeedBytes)))
	union := portionOf(r.UnionBytes, every, r.CoreNeedBytes)
	portion := isa.Portion{Operand: in.operand, Tile: int32(j*int64(l.lp.kTiles)+k) + 1}
	switch {
	case o.broadcast:
		portion.Tile = 0
	case o.role == schedule.BesideOperand:
		portion.Tile = int32((j + 1) * int64(l.lp.kTiles))
	}
	portion = l.rowsCut(o, portion, p)
	t := transfer{part: portion, core: core, all: need, once: union, llb: l.fromLLB(need, union), free: [2][]int32{free},
		ready: in.state.ready}
	var g *gathered
	switch {
	case in.val.Level == schedule.L1:
		t.sent, t.lacks = portionOf(r.Sent(l.spec), core, r.CoreNeedBytes),
			portionOf(r.CoreRemoteBytes, core, r.CoreNeedBytes)
	case in.val.Level == schedule.DDR && l.pages != nil:
		if t.stage = l.keepBlock(o, p, j, k); t.stage != nil {
			break
		}
		if g = l.gatherBlock(o, p, j, k); g != nil {
			t.stage = g.entries[slices.Index(o.ins, in)]
		}
	}
	c := l.transfer(in, t)
	if g != nil && in == o.ins[len(o.ins)-1] {
		if g.left--; g.left <= 0 && !g.stays {
			l.unpin(g)
			o.open = slices.DeleteFunc(o.open, func(x *gathered) bool { return x == g })
		}
	}
	return c
}

// leaveRows gives back the pages of a tile of rows behind its last columns.
func (l *lowering) leaveRows() {
	for _, t := range l.tensors {
		if t.role != schedule.RowsOperand {
			continue
		}
		for _, g := range t.open {
			l.unpin(g)
			g.stays, g.left = false, 0
		}
		t.open = nil
	}
}

func (l *lowering) unpin(g *gathered) {
	l.pinned -= g.pages
	for _, ent := range g.entries {
		l.pages.pin(ent, false)
	}
}

// keepBlock is keep of the tile of an operand that a product of tiles needs, and of those that gather with it.
func (l *lowering) keepBlock(t *tensorIn, p, j, k int64) *entry {
	in, many, tiles := t.ins[0], max(1, l.lp.nest.Stage), int64(l.lp.kTiles)
	if t.role != schedule.RowsOperand {
		return l.held(in)
	}
	first := k / many * many
	every := l.bytes(t, p, j, first, many) * l.slices(t)
	bytes := portionOf(in.read.UnionBytes, every, in.read.CoreNeedBytes)
	portion := isa.Portion{Operand: in.operand, Tile: int32(j*tiles+first) + 1, Tiles: int32(many)}
	return l.keep(in, p*tiles+first, many, l.lp.nest.Tiles*tiles, bytes, l.rowsCut(t, portion, p))
}

// gatherBlock returns the load that brings an operand's tiles from the DDR together; nil: each passes by itself.
func (l *lowering) gatherBlock(t *tensorIn, p, j, k int64) *gathered {
	n := l.lp.nest
	if n.Stage == 0 || t.role == schedule.BesideOperand {
		return nil
	}
	first := k / n.Stage * n.Stage
	key := l.key(t, p, j, first)
	if g := t.far[key]; g != nil && (g.stays || g.left > 0) {
		return g
	}
	bytes := l.bytes(t, p, j, first, n.Stage)
	g := &gathered{left: int(n.Stage), stays: first/n.Stage < n.Staying()}
	unions := make([]int64, len(t.ins))
	for i, in := range t.ins {
		unions[i] = portionOf(in.read.UnionBytes, t.of(in, bytes)*l.slices(t), in.read.CoreNeedBytes)
		g.pages += l.pages.need(unions[i])
	}
	if l.pinned+g.pages > gatherable(l.pages.available()) {
		return nil
	}
	l.pinned += g.pages
	for i, in := range t.ins {
		portion := isa.Portion{Operand: in.operand, Tile: int32(j*int64(l.lp.kTiles)+first) + 1, Tiles: int32(n.Stage)}
		if n.Stage == 1 {
			portion.Tiles = 0
		}
		g.entries = append(g.entries, l.gatherIn(in, l.rowsCut(t, portion, p), unions[i]))
	}
	t.far[key] = g
	t.open = append(t.open, g)
	return g
}
