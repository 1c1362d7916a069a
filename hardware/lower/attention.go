package lower

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Attention as one nest (Dao et al., 2022; Milakov and Gimelshein, 2018). Each core goes over tiles of its queries, and
// in each over tiles of the keys that any of them sees:
//
//	visit   scores = queries x keys             matrix unit
//	        scale, mask, maximum, exponential, sum    vector and special units: with the factors of the results
//	        results = results x factor          vector unit: where the maximum has grown
//	        results += scores x values          matrix unit
//	behind  results / sum, and what follows in the layer; the tile leaves the L1
//
// The scores of a visit are made while those of the one before are at the vector units and go with their values:
// each unit has its part of two visits at hand, and of the scores two have room. A tile of queries may be cut
// into pieces, with a visit for each, so that the scores take less. Keys and values come to two
// places in turn; where all tiles of a product have room they come once for all of its queries. With room for one tile,
// keys come while values are multiplied, and values while keys are; then all pieces meet a tile's
// values before the next keys. From the DDR they come once if the LLB has room for them, several tiles in one load.
//
// Cores may share the keys of each query (Dao et al., Flash-Decoding, 2023): each makes sums of its slice, which the
// first of them gathers, brings to one maximum and adds up in front of the division.
//
// With a causal mask, cores that divide the positions may take tiles of them in turn: a command takes as long as
// the core that sees most needs, and so in each tile all see about as much.

// attention is the plan of such a step.
type attention struct {
	*schedule.Attending
	tiles  schedule.AttentionTiles
	behind model.VectorWork // of the busiest core: what follows in the layer
}

// checkAttention is check for a step with an attention.
func (lp *layerPlan) checkAttention(s *schedule.Schedule) error {
	st := lp.step
	if first := s.Graph.Op(lp.layer.Ops[0]); first.ID != st.Attending.Op.ID {
		return fmt.Errorf("%q comes before the attention of its layer", first.Name)
	}
	if lp.nest.Attention == nil {
		return fmt.Errorf("has loops over tiles, the layer is an attention, which has loops over queries and keys")
	}
	t := *lp.nest.Attention
	if stage := st.Needs(lp.stages(s)); stage > st.StageBytes {
		return fmt.Errorf(
			"the loop over queries takes %d bytes of the L1 in tiles of %d products, %d positions and %d keys, there are %d",
			stage, t.Products, t.Positions, t.Keys, st.StageBytes)
	}
	return s.CheckAttending(st, t)
}

// attend plans an attention.
func (lp *layerPlan) attend(s *schedule.Schedule) {
	st := lp.step
	a := &attention{Attending: st.Attending, tiles: *lp.nest.Attention}
	lp.attention, lp.nest = a, a.tiles.Nest(lp.nest.Cores)
	for core := range st.Cores {
		reg := lp.regions(s, core)
		var v model.VectorWork
		for _, id := range lp.layer.Ops[1:] {
			op := s.Graph.Op(id)
			if r := reg[op.Outputs[0]]; r.Elements() > 0 {
				v = v.Add(s.Graph.Work(op, r).Vector)
			}
		}
		if v.Total() > a.behind.Total() {
			a.behind = v
		}
	}
}

// regions are the boxes that a core computes.
func (lp *layerPlan) regions(s *schedule.Schedule, core int64) schedule.Regions {
	reg := schedule.Regions{}
	for _, w := range lp.step.Writes {
		v := &s.Values[w]
		if r := schedule.Slice(v.Region, v.Binding, s.Graph.Tensor(v.Tensor).Layout, core); r != nil {
			reg[v.Tensor] = r
		}
	}
	schedule.BackPropagate(s.Graph, lp.layer.Ops, reg)
	return reg
}

// visit is a piece of a tile of queries with a tile of keys.
type visit struct {
	block, i, j, piece        int64
	products, positions, keys int64
	number                    int64 // of all
	first                     bool  // of its tiles
	last                      bool  // of its queries
	soft                      []int32
	places                    []int64 // of its values, by part; -1: the part has no tile there
}

// attending is the step on its way into commands.
type attending struct {
	*lowering
	*attention
	s      *schedule.Schedule
	visits int64                          // in all
	boxes  []model.Region                 // of the results, of the cores that have some
	arrive map[model.TensorID][]*incoming // the reads of each operand
	tiler  *schedule.Tiler

	ready                 []int32 // all inputs
	scratchDeps           []int32 // before the first write there
	whole                 []int32 // loads of what is there from the start
	queries               []int32 // loads of the present tile
	byTensor              map[model.TensorID]*users
	kept                  map[model.TensorID][]stays  // the tiles of the block that stay
	staged                map[model.TensorID]*staging // in the LLB, of the block
	scores, results       [][]int32                   // last users of the places of scores, of results on their way out
	sums                  []int32                     // and of the sums
	keys, values, masks   []int32                     // loads of the present tile of keys
	prior                 []int32                     // of each piece, the product with values before
	turn                  []int32                     // where the core waits for its products, the last command of a unit
	users                 []int32                     // of what is in the L1
	written               bool
	matrixIndex, vecIndex int64
}

// users are the commands that read the tiles of an operand, by place, and how many tiles have come.
type users struct {
	of    [][]int32
	count int64
}

// stays is a tile of keys or values that stays in the L1: its loads, its place.
type stays struct {
	loads []int32
	place int64
}

// staging is what the LLB has of the keys or values of the present products.
type staging struct {
	stay  bool // for all tiles of queries
	tiles []stagedTiles
}

// stagedTiles is what one load has brought.
type stagedTiles struct {
	first, n int64
	*entry
}

// attend lowers an attention.
func (l *lowering) attend(s *schedule.Schedule) {
	a := &attending{lowering: l, attention: l.lp.attention, s: s,
		prior: slices.Repeat([]int32{-1}, int(max(1, l.lp.attention.tiles.Pieces))), byTensor: map[model.TensorID]*users{},
		staged: map[model.TensorID]*staging{}, kept: map[model.TensorID][]stays{}, arrive: map[model.TensorID][]*incoming{}}
	for _, in := range a.ins {
		a.arrive[in.val.Tensor] = append(a.arrive[in.val.Tensor], in)
	}
	slots := a.Slots(a.tiles)
	for _, o := range a.Operands {
		n := slots
		if o.Input == 0 {
			n = a.QuerySlots(a.tiles)
		}
		a.byTensor[o.Tensor] = &users{of: make([][]int32, n)}
	}
	a.scores, a.results = make([][]int32, a.ScoreSlots(a.tiles)), make([][]int32, a.QuerySlots(a.tiles))
	for range a.eachVisit {
		a.visits++
	}
	for _, in := range l.ins {
		a.ready = append(a.ready, in.state.ready...)
	}
	a.scratchDeps = l.sumsDeps
	a.bringWhole()
	var before *visit
	for v := range a.eachVisit {
		if l.feedSome(); l.halted != nil {
			return
		}
		if before == nil || before.block != v.block {
			a.enter(v.block)
		}
		if v.first && before != nil && a.tiles.Single && !a.Stay(a.tiles) { // its keys and values leave
			a.weigh(before)
			if before.last {
				a.finish(before)
			}
			before = nil
		}
		a.visit(v, before)
		before = v
	}
	a.weigh(before)
	a.finish(before)
	a.enter(0) // leaves what is in the LLB
	a.inUse(a.users...)
	l.recordUntil(l.sums, isa.L1, -1)
	for _, in := range l.ins {
		if in.place != nil {
			l.recordUntil(in.place, isa.L1, -1)
		}
	}
}

// eachVisit gives the visits in order: of all pieces that see any of a tile of keys.
func (a *attending) eachVisit(yield func(*visit) bool) {
	number, size := int64(0), a.tiles.Piece()
	for block := range a.Blocks(a.tiles) {
		products := min(a.tiles.Products, a.Products-block*a.tiles.Products)
		for i := range a.Steps(a.tiles) {
			positions := min(a.tiles.Positions, a.Positions-i*a.tiles.Positions)
			seen := a.Visible(a.tiles, i)
			for j := int64(0); j*a.tiles.Keys < seen; j++ {
				first := true
				for piece := int64(0); piece*size < positions; piece++ {
					end := min(positions, (piece+1)*size)
					keys := min(a.tiles.Keys, a.VisibleTo(a.tiles, i, end)-j*a.tiles.Keys)
					if keys <= 0 {
						continue
					}
					v := &visit{block: block, i: i, j: j, piece: piece, number: number, products: products,
						positions: end - piece*size, keys: keys,
						first: first, last: end == positions && (j+1)*a.tiles.Keys >= seen}
					if !yield(v) {
						return
					}
					first, number = false, number+1
				}
			}
		}
	}
}

// visit brings what a visit needs and makes its scores, and takes those of the one before to their values.
func (a *attending) visit(v, before *visit) {
	slot := v.number % int64(len(a.scores))
	if v.first {
		if v.j == 0 {
			a.queries = a.bring(0, v)
		}
		a.keys = a.bringParts(1, v)
	}
	deps := [][]int32{a.queries, a.keys, a.scores[slot]}
	if v.number == 0 {
		deps = append(deps, a.ready, a.scratchDeps)
	}
	scores := a.multiply(1, v, v.keys, a.Depth, deps...)
	a.read(0, scores, v)
	for part := range a.Op.KeyParts() {
		a.read(1+2*part, scores, v)
	}
	if before != nil {
		a.weigh(before)
	}
	if v.first { // behind the values before, which may be in the same place
		a.values, a.masks = a.bringParts(2, v), nil
		for i := range a.Operands {
			if o := &a.Operands[i]; o.Input > 0 && !o.IsKeys() && o.Tiled {
				a.masks = append(a.masks, a.bring(o.Input, v)...)
			}
		}
	}
	for part := range a.Op.KeyParts() {
		v.places = append(v.places, a.place(2+2*part, v))
	}
	deps = [][]int32{{scores}, a.masks}
	if v.number == 0 {
		deps = append(deps, a.whole, a.ready)
	}
	work := model.ScoreWork(a.Op)
	rows := v.products * a.Heads * v.positions
	w := model.VectorWork{Simple: work.Simple * rows * v.keys, Special: work.Special * rows * v.keys}
	if a.Op.Attr.Softmax && v.j > 0 { // the factors of the sums
		w.Special += rows
	}
	v.soft = a.compute(1, v, w, deps...)
	for i := range a.Operands {
		if o := &a.Operands[i]; o.Input > 0 && !o.IsKeys() && o.Tiled {
			a.read(o.Input, v.soft[len(v.soft)-1], v)
		}
	}
	v.soft = append(v.soft, a.values...)
	if before != nil && before.last {
		a.finish(before)
	}
}

// weigh multiplies the scores of a visit with their values and adds them to the sums.
func (a *attending) weigh(v *visit) {
	deps := [][]int32{v.soft}
	if v.j == 0 {
		deps = append(deps, a.sums)
	} else if a.Op.Attr.Softmax {
		rows := v.products * a.Heads * v.positions
		deps = append(deps, a.compute(2, v, model.VectorWork{Simple: rows * a.Width}, v.soft, []int32{a.prior[v.piece]}))
	}
	c := a.multiply(2, v, a.Width, v.keys, deps...)
	a.prior[v.piece], a.scores[v.number%int64(len(a.scores))] = c, []int32{c}
	for part, place := range v.places {
		a.readAt(2+2*part, place, c)
	}
}

// finish divides the sums of a tile of queries and stores it.
func (a *attending) finish(v *visit) {
	q := v.block*a.Steps(a.tiles) + v.i
	all := a.Blocks(a.tiles) * a.Steps(a.tiles)
	w := model.VectorWork{Simple: ceilDiv(a.behind.Simple, all), Special: ceilDiv(a.behind.Special, all),
		Move: ceilDiv(a.behind.Move, all)}
	end := *v
	end.j, end.positions = -1, min(a.tiles.Positions, a.Positions-v.i*a.tiles.Positions)
	if rows := v.products * a.Heads * end.positions; a.Op.Attr.Softmax {
		w.Simple, w.Special = w.Simple+rows*a.Width, w.Special+rows
	}
	place := q % int64(len(a.results))
	deps := [][]int32{a.prior, a.results[place], a.whole}
	if rows := v.products * a.Heads * end.positions; a.tiles.Slices > 0 {
		w = w.Add(a.AddedUp(a.tiles, rows))
		moved := a.gatherSums(isa.Portion{Part: int32(q), Parts: int32(all)}, a.SumBytes(a.tiles, rows), a.prior, a.sums)
		a.l1(moved)
		deps = append(deps, []int32{moved})
	}
	if !a.written {
		a.written = true
		deps = append(deps, a.outDeps)
	}
	cs := a.compute(0, &end, w, deps...)
	a.sums, a.writers = cs, cs
	for _, o := range a.outs {
		o.place.use(cs...)
	}
	a.results[place] = a.store(q, all, 0)
	if len(a.results[place]) == 0 { // they stay
		a.results[place] = nil
	}
}

// portion is the portion of a visit's tiles; with j less than 0 of its queries.
func (a *attending) portion(operand int32, v *visit) isa.Portion {
	p := isa.Portion{Operand: operand, Part: int32(v.block*a.Steps(a.tiles) + v.i),
		Parts: int32(a.Blocks(a.tiles) * a.Steps(a.tiles))}
	if v.j >= 0 {
		p.Tile = int32(v.j) + 1
	}
	return p
}

// ofPiece is the portion of a visit; with j less than 0 of its queries, all pieces.
func (a *attending) ofPiece(operand int32, v *visit) isa.Portion {
	p := a.portion(operand, v)
	if v.j >= 0 {
		p = p.Cut(v.piece, int64(len(a.prior)))
	}
	return p
}

// multiply is a command of the matrix unit.
func (a *attending) multiply(operand int32, v *visit, n, k int64, deps ...[]int32) int32 {
	cycles := a.cost.MatrixCycles(model.MatrixDims{Reps: v.products, M: a.Heads * v.positions, N: n, K: k},
		a.lp.dtype) * hardware.Cycles(a.sharing(hardware.Matrix, a.active))
	a.matrixIndex++
	c := a.add(qMatrix, &isa.Command{Kind: isa.Matrix, Portion: a.ofPiece(operand, v), Cores: int32(a.active),
		MACs:       piece(a.lp.macs, a.matrixIndex-1, 2*a.visits),
		DurationPs: a.cost.Picoseconds(cycles)}, append(deps, a.turn)...)
	a.worked(c)
	return c
}

// worked notes a command of a unit.
func (a *attending) worked(c int32) {
	a.l1(c)
	if a.cost.Synchronous() {
		a.turn = []int32{c}
	}
}

// compute are commands of the vector units, special functions first; the list ends with the last.
func (a *attending) compute(operand int32, v *visit, w model.VectorWork, deps ...[]int32) []int32 {
	vector, special := a.cost.VectorCycles(w, a.cost.ScoreType(a.lp.vectorType))
	cores := a.active
	if operand == 0 {
		cores = a.cores
	}
	vector *= hardware.Cycles(a.sharing(hardware.Vector, cores))
	special *= hardware.Cycles(a.sharing(hardware.Special, cores))
	portion := a.ofPiece(operand, v)
	deps = append(deps, a.turn)
	ops := int64(0)
	if operand == 1 { // the useful work counts with the scores
		ops = piece(a.lp.vecOps, a.vecIndex, a.visits)
		a.vecIndex++
	}
	some := ops * w.Special / max(1, w.Total())
	cs := a.onVectorUnits(portion, cores, [2]hardware.Cycles{special, vector}, [2]int64{some, ops - some},
		vector > 0 || special == 0 || operand == 0, deps...)
	for _, c := range cs {
		a.worked(c)
	}
	return cs
}

// l1 notes a command as a user of what the step has in the L1: the first at once, the others when all are known, as
// there may be some hundred reads.
func (a *attending) l1(c int32) {
	a.lowering.sums.use(c)
	if a.users == nil {
		a.inUse(c)
	}
	if a.users = append(a.users, c); len(a.users) > longList {
		a.users = a.queues.latest(a.users)
	}
}

// inUse notes commands as users of what the reads have in the L1.
func (a *attending) inUse(commands ...int32) {
	for _, in := range a.ins {
		if in.place != nil {
			in.place.use(commands...)
		}
		if in.val.Level == schedule.L1 {
			in.state.place.use(commands...)
		}
	}
}

// read notes that a command reads the present tile of an operand.
func (a *attending) read(input int, c int32, v *visit) { a.readAt(input, a.place(input, v), c) }

func (a *attending) readAt(input int, place int64, c int32) {
	if place < 0 {
		return
	}
	u := a.byTensor[a.Op.Inputs[input]]
	u.of[place] = append(u.of[place], c)
	if n := len(u.of[place]); n > longList {
		u.of[place] = a.queues.latest(u.of[place])
	}
}

// place is where the tile of a visit is: the latest, or that of its keys if they stay; -1: the operand has none of
// these keys, or is there from the start.
func (a *attending) place(input int, v *visit) int64 {
	t := a.Op.Inputs[input]
	if kept := a.kept[t]; kept != nil {
		return kept[v.j].place
	}
	o := a.Of(t)
	if first, end := a.Tiles(o, a.tiles); !o.Tiled || v.j < first || v.j >= end {
		return -1
	}
	u := a.byTensor[t]
	n := int64(len(u.of))
	return (u.count - 1 + n) % n
}

// enter begins a tile of products.
func (a *attending) enter(block int64) {
	for _, in := range a.ins { // in an order of their own
		if st := a.staged[in.val.Tensor]; st != nil {
			a.leave(st)
		}
		delete(a.staged, in.val.Tensor)
	}
	clear(a.kept)
}

// leave lets go of what is in the LLB.
func (a *attending) leave(st *staging) {
	for _, x := range st.tiles {
		a.pages.pin(x.entry, false)
	}
	st.tiles = st.tiles[:0]
}

// operand is the one that an input is, and the reads that have it.
func (a *attending) operand(input int) (o *schedule.AttendedOperand, ins []*incoming) {
	t := a.Op.Inputs[input]
	return a.Of(t), a.arrive[t]
}

// bringParts is bring for all parts of the keys, or of the values, of which the first is this input.
func (a *attending) bringParts(input int, v *visit) []int32 {
	loads := a.bring(input, v)
	for part := range a.Op.KeyParts() - 1 {
		loads = slices.Concat(loads, a.bring(input+2*part+2, v))
	}
	return loads
}

// bring loads the tile of an operand that a visit needs, unless it is there, and returns what it waits for.
func (a *attending) bring(input int, v *visit) []int32 {
	o, ins := a.operand(input)
	tiled := o.Constant
	for _, in := range ins {
		tiled = tiled || in.val.Level != schedule.L1
	}
	if !tiled || !o.Tiled {
		return a.whole
	}
	u := a.byTensor[o.Tensor]
	keys := o.IsKeys()
	stay := keys && a.Stay(a.tiles)
	if stay && v.j < int64(len(a.kept[o.Tensor])) {
		return a.kept[o.Tensor][v.j].loads
	}
	at := *v
	if stay {
		at.i, at.keys = -1, min(a.tiles.Keys, a.Slice(a.tiles)-v.j*a.tiles.Keys)
	} else {
		at.keys = min(a.tiles.Keys, a.Visible(a.tiles, v.i)-v.j*a.tiles.Keys)
	}
	if at.keys = o.Within(v.j*a.tiles.Keys, v.j*a.tiles.Keys+at.keys); at.keys == 0 {
		if stay {
			a.kept[o.Tensor] = append(a.kept[o.Tensor], stays{place: -1})
		}
		return nil
	}
	place := u.count % int64(len(u.of))
	u.count++
	free := u.of[place]
	u.of[place] = nil
	at.positions = min(a.tiles.Positions, a.Positions-v.i*a.tiles.Positions)
	elements := a.Elements(o, schedule.AttentionTiles{Products: v.products, Positions: at.positions, Keys: at.keys})
	portion := a.portion(0, v)
	if input == 0 {
		portion.Tile = 0
	}
	if stay {
		portion.Tiles = 1
	}
	var loads []int32
	if o.Constant {
		loads = append(loads, a.bringConstant(o, portion, o.Element.Bytes(elements), free))
	}
	for _, x := range a.partsOf(input, ins, &at, o.Element.Bytes(elements)) {
		portion.Operand = x.operand
		loads = append(loads, a.load(x.incoming, portion, x.core, x.need, x.union, free, keys && !stay, &at))
	}
	if len(loads) > 0 && slices.ContainsFunc(ins, func(in *incoming) bool { return in.val.Level == schedule.L1 }) {
		loads = append(loads, a.whole...)
	}
	if stay {
		a.kept[o.Tensor] = append(a.kept[o.Tensor], stays{loads, place})
	}
	return loads
}

// share has the bytes of a tile that a load of the only value of an operand brings, from key lo to hi of a core's:
// bytes of the busiest core, of all cores, and each once.
func (a *attending) share(in *incoming, input int, v *visit, lo, hi, bytes int64) (core, need, union int64) {
	r, o := in.read, a.Of(in.val.Tensor)
	core = min(bytes, r.CoreNeedBytes)
	union = max(1, shareOf(r.UnionBytes, core, max(1, r.CoreNeedBytes)))
	if n := a.tiles.Slices; n > 0 && !o.IsKeys() {
		return core, n * shareOf(r.NeedBytes, core, max(1, r.CoreNeedBytes)), union
	} else if n > 0 {
		every := shareOf(core, a.Shared(o, a.tiles, lo, hi), o.Within(lo, min(hi, a.Slice(a.tiles))))
		return core, shareOf(r.NeedBytes, every, max(1, r.CoreNeedBytes)),
			max(1, shareOf(r.UnionBytes, every, max(1, r.CoreNeedBytes)))
	}
	if a.tiles.InTurn && input > 0 {
		return core, a.Together(o, a.tiles, v.i, v.j, core), union
	}
	return core, shareOf(r.NeedBytes, core, max(1, r.CoreNeedBytes)), union
}

// partly is the part of a tile that one value holds: bytes of the busiest core, of all cores, and each byte once.
type partly struct {
	*incoming
	core, need, union int64
}

// partsOf divides a tile of an operand, of so many bytes, among the values outside the L1 that hold it.
func (a *attending) partsOf(input int, ins []*incoming, v *visit, bytes int64) (list []partly) {
	var boxes [][]model.Region // of each core, if there are several values
	if len(ins) > 1 {
		if a.tiler == nil {
			for core := range a.lp.step.Cores {
				if box := a.lp.regions(a.s, core)[a.Op.Outputs[0]]; box.Elements() > 0 {
					a.boxes = append(a.boxes, box)
				}
			}
			a.tiler = schedule.NewTiler(a.s.Graph, a.Op, a.tiles, a.boxes)
		}
		for _, box := range a.boxes {
			boxes = append(boxes, a.tiler.Boxes(input, box, v.block, v.i, -1, v.j))
		}
	}
	for _, in := range ins {
		x, n, size := partly{incoming: in}, int64(0), a.s.Graph.Tensor(in.val.Tensor).DType.Bytes
		if len(ins) == 1 {
			x.core, x.need, x.union = a.share(in, input, v, v.j*a.tiles.Keys, (v.j+1)*a.tiles.Keys, bytes)
		}
		for k, core := range boxes {
			if k == 0 || !slices.EqualFunc(core, boxes[k-1], model.Region.Equal) {
				n = 0
				for _, b := range core {
					n += size(b.Overlap(in.val.Region))
				}
				x.union = min(x.union+n, in.read.UnionBytes)
			}
			x.core, x.need = max(x.core, n), x.need+n
		}
		if in.val.Level != schedule.L1 && x.core > 0 {
			list = append(list, x)
		}
	}
	return list
}

// load brings a tile of a value; with once, what comes from the DDR stays in the LLB for the products, if there is
// room.
func (a *attending) load(in *incoming, portion isa.Portion, core, need, union int64, free []int32, once bool,
	v *visit) int32 {
	t := transfer{part: portion, core: core, all: need, once: union, llb: a.fromLLB(need, union),
		free: [2][]int32{in.deps, free}, ready: in.state.ready}
	if t.stage = a.held(in); t.stage == nil && in.val.Level == schedule.DDR && a.pages != nil {
		t.stage = a.stageOf(in, portion, once, v)
	}
	c := a.transfer(in, t)
	in.place.use(c)
	return c
}

// stageOf is where the LLB has the tile of keys or values, brought there if it is not: where there is room they stay
// for all tiles of queries, else until the next load. Each load brings twice the tiles of the one before, so that the
// first is soon there and few wait for the DDR; nil: there is no room or no use.
func (a *attending) stageOf(in *incoming, portion isa.Portion, once bool, v *visit) *entry {
	input := slices.Index(a.Op.Inputs, in.val.Tensor)
	if _, ins := a.operand(input); !once || len(ins) > 1 {
		return nil
	}
	all := *v
	all.i = -1
	o := a.Of(in.val.Tensor)
	size := func(keys, lo, hi int64) int64 {
		_, _, union := a.share(in, input, &all, lo, hi, o.Element.Bytes(a.Elements(o,
			schedule.AttentionTiles{Products: v.products, Positions: 1, Keys: keys})))
		return union
	}
	first, end := a.Tiles(o, a.tiles)
	full := size(a.tiles.Keys, 0, a.tiles.Keys)
	if 2*a.pages.need(full) > a.pages.stageable() {
		return nil
	}
	most := int64(1)
	for most < end-first && 4*a.pages.need(2*most*full) <= a.pages.stageable() {
		most *= 2
	}
	st := a.staged[in.val.Tensor]
	if st == nil {
		pages := 0
		for at, n := first, int64(1); at < end; at, n = at+n, min(2*n, most) {
			pages += a.pages.need(n * full)
		}
		st = &staging{stay: a.Steps(a.tiles) > 1 && 2*pages <= a.pages.stageable()}
		a.staged[in.val.Tensor] = st
	}
	if !st.stay {
		end = min(end, ceilDiv(a.Visible(a.tiles, v.i), a.tiles.Keys))
	}
	for _, x := range st.tiles {
		if x.first <= v.j && v.j < x.first+x.n {
			return x.entry
		}
	}
	n := int64(1)
	if k := len(st.tiles); k > 0 && v.j > first {
		n = min(2*st.tiles[k-1].n, most)
	}
	if n = min(n, end-v.j); !st.stay {
		a.leave(st)
	}
	portion.Tile, portion.Tiles = int32(v.j)+1, int32(n)
	lo, hi := v.j*a.tiles.Keys, min((v.j+n)*a.tiles.Keys, a.Slice(a.tiles))
	bytes := size(o.Within(lo, hi), lo, hi)
	ent := a.gatherIn(in, portion, bytes)
	st.tiles = append(st.tiles, stagedTiles{v.j, n, ent})
	return ent
}

// bringWhole loads what is there for all tiles: what exchanges bring from other cores, and small operands.
func (a *attending) bringWhole() {
	for i := range a.Operands {
		o := &a.Operands[i]
		if o.Constant {
			if !o.Tiled {
				a.whole = append(a.whole, a.bringConstant(o, isa.Portion{}, o.Bytes, nil))
			}
			continue
		}
		for _, in := range a.ins {
			if in.val.Tensor == o.Tensor && (!o.Tiled || in.val.Level == schedule.L1) {
				in.whole = true
				if a.tiles.Slices > 0 { // each of the cores needs it
					r := *in.read
					r.NeedBytes *= a.tiles.Slices
					in.read = &r
				}
				a.lowering.bring(in, 0, 1, nil)
				a.whole = in.after(a.whole, 0, 1)
			}
		}
	}
}

// bringConstant loads some of a constant to its place behind the scores.
func (a *attending) bringConstant(o *schedule.AttendedOperand, portion isa.Portion, core int64, free []int32) int32 {
	for i := range a.lp.step.Params {
		p := &a.lp.step.Params[i]
		if p.Tensor != o.Tensor {
			continue
		}
		portion.Operand = int32(len(a.lp.step.Reads) + i)
		union := max(1, shareOf(p.UnionBytes, core, max(1, p.CoreBytes)))
		deps := append(append([]int32{}, a.scratchDeps...), free...)
		c := a.stream(streamed{part: portion, key: -1, roam: true, bytes: union, llbBytes: a.fromLLB(core*a.active, union),
			coreBytes: core, free: deps})
		a.lowering.sums.use(c)
		return c
	}
	return -1
}
