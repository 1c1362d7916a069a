package lower

import (
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// incoming is an input on its way into the L1: piece i is there after pieces[i].
type incoming struct {
	read    *schedule.Read
	val     *schedule.Value
	state   *valueState
	operand int32 // of the task
	// anchor: an operand of the matrix unit; the others are of the vector work.
	anchor bool
	// behind: the vector work behind the matrix unit reads it as well.
	behind bool
	place  *stretch
	deps   []int32 // before the first write there
	pieces []int32
	ready  []int32 // of what is read in place
	// follow has, for parts of the rows, the last of state.parts that the core itself must have
	// made, and of those that others must; nil: all.
	follow func(n int64) (own, others []int64)
	whole  bool // all of it is needed from the start
	// streamed: piece t belongs to outer tile t and is issued with it.
	streamed bool
	// coreBytes has the bytes that the busiest core needs.
	coreBytes int64
	// stage has the bytes gathered in the LLB, by parts of the tile or, with Nest.Once, of all.
	stage []*entry
}

// arrived notes the command that brings the next piece; a piece without bytes comes with the one before.
func (in *incoming) arrived(c int32) {
	in.place.use(c)
	if n := len(in.pieces); c < 0 && n > 0 {
		c = in.pieces[n-1]
	}
	in.pieces = append(in.pieces, c)
}

// after appends to deps what piece i of n must wait for, of what was issued so far.
func (in *incoming) after(deps []int32, i, n int64) []int32 {
	if have := int64(len(in.pieces)); have > 0 {
		k := have
		if !in.whole && !in.streamed {
			k = max(1, ceilDiv((i+1)*have, n))
		}
		deps = append(deps, in.pieces[k-1])
	}
	if in.follow == nil {
		return append(deps, in.ready...)
	}
	own, _ := in.follow(n)
	return append(deps, in.made(own[i])...)
}

// made are the commands after which a part of the value is complete; -1 is none.
func (in *incoming) made(part int64) []int32 {
	if part < 0 {
		return nil
	}
	return in.state.parts[part]
}

// outgoing is an output of a step.
type outgoing struct {
	val     *schedule.Value
	operand int32
	place   *stretch // in the L1
	deps    []int32  // before the first write there
	far     *stretch // in the LLB
	fdeps   []int32
	// stored is the latest command that moved a part of it to its level, or, from the L1, to the DDR, and copied the
	// latest that moved a part of a network's output from the LLB to the DDR.
	stored, copied int32
	output         bool // of the network
}

// lowering is one step on its way into commands. Its loops are outer tiles of rows, in
// them tiles of weights, in them pieces of rows.
type lowering struct {
	*emitter
	lp     *layerPlan
	values []valueState
	cores  int64 // that make results
	active int64 // that take part
	turns  int64 // of these at one matrix unit, see sharing
	pinned int   // pages of stages
	// Of the sums of other cores: the place, and what its first writer waits for.
	sums     *stretch
	sumsDeps []int32
	sumBytes int64

	reads   []incoming
	writes  []outgoing
	ins     []*incoming
	outs    []*outgoing
	leave   []leaving
	outDeps []int32 // before the first write of any output

	// Loads of parameters beside the weights. Small ones stay for the whole step; large
	// ones pass block by block, each in front of the part of the vector work that needs it.
	paramsStay  bool
	paramBlocks blocks
	rowBlocks   blocks  // of the operand whose rows pass, if it is a constant
	rowLoads    []int32 // of rows looked up in tables

	vector vectorPart
	// Positions in the loops: parts of the vector work, of the MACs, of the stores.
	vectorIndex, macIndex, storeIndex int64

	resident []tileInL1 // weights that stay for all outer tiles
	writers  []int32    // the latest computations on each unit
	parts    [][]int32  // with Options.CrossUnits: the latest of each part of the rows
	// Of each place for a tile in the stages, or for sums: the computations of the latest tile there,
	// and what its output has left the L1 after.
	computed, drained [][]int32
	// Of a blocked nest: its operands, how many tiles of rows and columns it has done, and the loads and places of the
	// tiles that the command at hand needs.
	tensors []*tensorIn
	turn    int64
	loads   []int32
	used    []*stretch
}

// leaving is the place of a value that the step makes and that leaves the L1.
type leaving struct {
	value     int
	at, bytes int64
}

// room is the state of a step's lowering, in the buffers of the step before it.
func (m *Memory) room(e *emitter, lp *layerPlan) *lowering {
	l := &m.step
	*l = lowering{emitter: e, lp: lp, cores: lp.step.Cores, active: lp.step.Active(), reads: l.reads[:0],
		writes: l.writes[:0], ins: l.ins[:0], outs: l.outs[:0], leave: l.leave[:0], outDeps: l.outDeps[:0],
		resident: l.resident[:0], rowLoads: l.rowLoads[:0], computed: l.computed[:0], drained: l.drained[:0],
		paramBlocks: blocks{l.paramBlocks.loads[:0], l.paramBlocks.places[:0]},
		rowBlocks:   blocks{l.rowBlocks.loads[:0], l.rowBlocks.places[:0]}, loads: l.loads[:0], used: l.used[:0]}
	return l
}

// blocks are those of constants that have been loaded, in turn.
type blocks struct {
	loads  []int32
	places []*stretch
}

// vectorPart is the vector work of one piece of rows behind one tile of columns.
type vectorPart struct {
	parts           int64 // in the step
	work            model.VectorWork
	vector, special hardware.Cycles
}

// tileInL1 is a weight tile that has been loaded.
type tileInL1 struct {
	load  int32
	place *stretch
}

// step lowers one step of a schedule: a layer of an instance.
func (e *emitter) step(s *schedule.Schedule, lp *layerPlan, values []valueState) {
	e.label, e.task, e.running, e.cost = e.name(lp.layer.Name), lp.task, lp.step, e.costs.Kind(lp.step.Kind)
	e.weights.between(s.DataEnd(lp.step), e.params.base)
	l := e.mem.room(e, lp)
	l.values, l.turns = values, e.sharing(hardware.Matrix, l.active)
	l.operands(s)
	l.places(s)
	l.loadAhead()
	if lp.attention != nil {
		if l.attend(s); e.halted == nil {
			l.complete()
		}
		return
	}
	l.loadParams()
	l.lookUpRows()
	v := &l.vector
	v.parts = l.lp.nest.Times(l.lp.nest.Vector, l.lp.tiles)
	w, n := l.lp.vector, v.parts*l.lp.repeat
	v.work = model.VectorWork{Simple: ceilDiv(w.Simple, n), Special: ceilDiv(w.Special, n), Move: ceilDiv(w.Move, n)}
	v.vector, v.special = l.cost.VectorCycles(v.work, l.lp.vectorType)
	v.vector *= hardware.Cycles(l.lp.repeat * l.sharing(hardware.Vector, l.cores))
	v.special *= hardware.Cycles(l.lp.repeat * l.sharing(hardware.Special, l.cores))
	l.resident = slices.Grow(l.resident, len(lp.weights))[:len(lp.weights)]
	for i := range l.resident {
		l.resident[i] = tileInL1{load: -1}
	}
	if lp.nest.Blocked() {
		l.tensors = l.tensorsIn(s)
	}
	for range max(lp.nest.Depth, lp.nest.Sums) {
		l.computed, l.drained = append(l.computed, nil), append(l.drained, nil)
	}
	lp.eachVisit(func(t, from, to int64) {
		if e.halted == nil {
			l.visit(t, from, to)
		}
	})
	if e.halted == nil {
		l.leaveBlocks()
		l.complete()
		l.home.leave()
	}
}

// keepTogether begins the ring of weights anew if tiles of columns that stay for all tiles
// of rows would wrap over themselves.
func (l *lowering) keepTogether(from, to int64) {
	if l.lp.tiles == 1 || l.lp.again {
		return
	}
	bytes := int64(0)
	for _, t := range l.lp.weights[from*int64(l.lp.kTiles) : to*int64(l.lp.kTiles)] {
		bytes += t.coreBytes
	}
	if l.weights.head+bytes > l.weights.size {
		l.weights.head = 0
	}
}

// total is the number of row pieces of the whole step.
func (l *lowering) total() int64 { return l.lp.tiles * l.lp.pieces }

// operands lists what the step reads and writes.
func (l *lowering) operands(s *schedule.Schedule) {
	st := l.lp.step
	l.reads = append(l.reads, l.lp.incoming(s)...)
	for i := range l.reads {
		in := &l.reads[i]
		in.read, in.val = &st.Reads[i], &s.Values[st.Reads[i].Value]
		if in.state = &l.values[in.read.Value]; in.val.Level == schedule.L1 {
			in.ready = in.state.ready
			l.followParts(s, in)
		}
		l.ins = append(l.ins, in)
	}
	l.writes = slices.Grow(l.writes, len(st.Writes))
	for i, w := range st.Writes {
		v := &s.Values[w]
		l.writes = append(l.writes, outgoing{val: v, operand: int32(i), output: s.Graph.IsOutput(v.Tensor)})
		l.outs = append(l.outs, &l.writes[i])
	}
}

// followParts lets a step's parts follow those of a value in the L1.
func (l *lowering) followParts(s *schedule.Schedule, in *incoming) {
	of := int64(len(in.state.parts))
	if of < 2 || l.lp.attention != nil || l.lp.nest.Blocked() || l.lp.step.Slices() > 1 {
		return
	}
	known := map[int64][2][]int64{}
	in.follow = func(n int64) (own, others []int64) {
		if _, ok := known[n]; !ok {
			own, others = s.PartsRead(l.lp.step, in.read.Value, n, of)
			known[n] = [2][]int64{own, others}
		}
		return known[n][0], known[n][1]
	}
}

// done notes the commands after which a part of the step's results is complete, of so many.
func (l *lowering) done(part, parts int64, commands ...int32) {
	if !l.opt.CrossUnits || !l.opt.CrossLayer || l.lp.nest.Blocked() {
		return
	}
	if int64(len(l.parts)) != parts {
		l.parts = make([][]int32, parts)
	}
	l.parts[part] = slices.Clone(commands)
}

// incoming lists the reads of the step before any load is issued. Their values are not set yet.
func (lp *layerPlan) incoming(s *schedule.Schedule) []incoming {
	if lp.reads != nil {
		return lp.reads
	}
	st, anchor := lp.step, s.Graph.Op(lp.layer.Anchor)
	for i := range st.Reads {
		r := &st.Reads[i]
		in, t := incoming{operand: int32(i)}, s.Values[r.Value].Tensor
		in.anchor = lp.matrix && slices.Contains(anchor.Inputs[:min(2, len(anchor.Inputs))], t)
		for _, id := range lp.layer.Ops {
			in.behind = in.behind || in.anchor && id != anchor.ID && slices.Contains(s.Graph.Op(id).Inputs, t)
		}
		in.whole, in.coreBytes = st.Whole(r), ceilDiv(r.CoreNeedBytes, s.SlicesOf(st, t))
		in.streamed = lp.tiles > 1 && !in.whole
		lp.reads = append(lp.reads, in)
	}
	return lp.reads
}

// stages is the schedule's Staged of the step.
func (lp *layerPlan) stages(s *schedule.Schedule) []schedule.StagePart {
	if lp.staged == nil {
		lp.staged = s.Staged(lp.step)
	}
	return lp.staged
}

// places takes the space in the L1 that the step needs: a part of its stage for each input tensor, since a core needs
// its part of some of the pieces only, and for each output that leaves; and the addresses of the outputs themselves.
func (l *lowering) places(s *schedule.Schedule) {
	st := l.lp.step
	at := st.StageAddress
	for _, part := range l.lp.stages(s) {
		n := st.Space(part)
		at += n
		stage := func() (*stretch, []int32) { return l.lb.take(at-n, n, l.label) }
		if part.From < 0 && part.To < 0 {
			l.sumBytes = part.Bytes
			l.sums, l.sumsDeps = stage()
			continue
		}
		if part.From < 0 {
			l.leave = append(l.leave, leaving{part.To, at - n, n})
			continue
		}
		place, deps := stage()
		for _, in := range l.ins[part.From:part.To] {
			in.place, in.deps = place, deps
		}
	}
	for _, o := range l.outs {
		v := o.val
		if v.Level == schedule.L1 {
			if from, _ := s.Overwritten(st); from != nil {
				o.place = l.values[from.ID].place
				o.deps = l.queues.latest(o.place.lasts)
			} else {
				o.place, o.deps = l.lb.take(v.Address, v.CoreBytes, l.label)
			}
			l.values[v.ID].place = o.place
		} else if i := slices.IndexFunc(l.leave, func(x leaving) bool { return x.value == v.ID }); i >= 0 {
			o.place, o.deps = l.lb.take(l.leave[i].at, l.leave[i].bytes, l.label)
		}
		if v.Level == schedule.LLB {
			o.far, o.fdeps = l.llbActs.take(v.Address, schedule.Align(v.Bytes), l.label)
			o.fdeps = append(o.fdeps, l.pages.claim(o.far.lo, o.far.hi)...)
			l.inLLB = append(l.inLLB, llbValue{o.far, v.Last})
			l.values[v.ID].place = o.far
		}
		l.outDeps = append(l.outDeps, o.deps...)
	}
	if l.lp.nest.Blocked() { // its products add up where other cores' sums were
		l.outDeps = append(l.outDeps, l.sumsDeps...)
	}
}

// loadParams loads the parameters that stay for the whole step.
func (l *lowering) loadParams() {
	bytes := int64(0)
	for i := range l.lp.params {
		bytes += l.lp.params[i].coreBytes
	}
	l.paramsStay = bytes <= l.params.size/2
	if l.paramsStay || l.lp.vector.Total() == 0 {
		l.bringParams(len(l.lp.params))
	}
}

func (l *lowering) bringParams(upTo int) {
	cores := l.cores
	for _, o := range l.outs { // a result that cannot be spread as the first may be on more
		cores = max(cores, o.val.Binding.Cores())
	}
	l.bringRing(&l.paramBlocks, l.lp.params[:upTo], &l.params, cores)
}

// bringRing loads those of some blocks that have not been.
func (l *lowering) bringRing(b *blocks, upTo []weightTile, through *ring, cores int64) {
	for i := len(b.loads); i < len(upTo); i++ {
		c, place := l.loadTile(&upTo[i], through, cores)
		b.loads, b.places = append(b.loads, c), append(b.places, place)
	}
}

// lookUpRows loads rows of tables straight to where the output is made, once the indices are known.
func (l *lowering) lookUpRows() {
	if len(l.lp.rows) == 0 {
		return
	}
	var indices []int32
	known, from := true, l.cmds.n
	wait := int64(0) // for indices of another chip
	for _, in := range l.ins {
		known = known && l.early(in.val)
		indices = append(indices, in.state.ready...)
		if in.state.away && in.state.chip != l.chipOf(l.cluster) {
			wait = l.chipLatency()
		}
	}
	defer func() {
		l.await(from, l.ins...)
		l.cmds.at(from).DurationPs += wait
	}()
	for _, r := range l.lp.rows {
		portion := isa.Portion{Operand: r.operand}
		c := l.stream(streamed{part: portion, roam: known, bytes: r.UnionBytes, llbBytes: r.UnionBytes,
			coreBytes: r.CoreBytes, after: indices, free: l.outDeps})
		l.rowLoads = append(l.rowLoads, c)
		for _, o := range l.outs {
			o.place.use(c)
		}
	}
}

// visit lowers a tile of rows for some tiles of columns: its inputs, its work, its outputs. It takes the place of the
// tile that was there before; in a blocked nest, sums of rows and columns take that of sums.
func (l *lowering) visit(t, from, to int64) {
	lp, n := l.lp, l.lp.nest
	ahead := false
	if t == 0 && lp.constant != nil {
		l.keepTogether(from, to)
		if ahead = l.weightsFirst(from); ahead {
			w := from * int64(lp.kTiles)
			l.resident[w].load, l.resident[w].place = l.loadTile(&lp.weights[w], &l.weights, l.active)
		}
	}
	if !n.Blocked() {
		l.bringInputs(t, from == 0, l.computed[t%n.Depth])
		l.products(t, from, to, t%n.Depth, ahead)
		return
	}
	for j := from; j < to; j++ {
		if l.feedSome(); l.halted != nil {
			return
		}
		l.products(t, j, j+1, l.turn%n.Sums, ahead && j == from)
		l.turn++
	}
	if !n.ColumnsFirst {
		l.leaveRows()
	}
}

// weightsFirst reports whether the first weights of a column come in front of the inputs. In a blocked nest those of
// the first do: without an LLB, weights alone run ahead of the launch, in their queue in front of what waits for it;
// with one, they go in front of what an earlier layer makes.
func (l *lowering) weightsFirst(column int64) bool {
	if !l.lp.nest.Blocked() {
		return l.opt.WeightsFirst
	}
	makes := func(in *incoming) bool { return in.anchor && in.val.Def >= 0 }
	return column == 0 && l.opt.Prefetch && (l.pages == nil || slices.ContainsFunc(l.ins, makes))
}

// bringInputs loads what outer tile t needs; wait is what must have ended first. What every
// tile needs comes once, with the first of all.
func (l *lowering) bringInputs(t int64, first bool, wait []int32) {
	loads := l.lp.nest.Loads
	l.gather(t, first)
	for _, in := range l.ins {
		switch {
		case in.streamed:
			for i := range loads {
				l.bring(in, t*loads+i, l.lp.tiles*loads, wait)
			}
		case !first || t > 0:
		case in.whole:
			l.bring(in, 0, 1, nil)
		default:
			for i := range loads {
				l.bring(in, i, loads, nil)
			}
		}
	}
}

// staged reports whether an input passes a stage in the LLB.
func (l *lowering) staged(in *incoming) bool {
	return l.lp.nest.Stage > 0 && in.val.Level == schedule.DDR && !in.whole && l.pages != nil
}

// gather loads what stages in the LLB hold from outer tile t on. A stage that finds too few pages is left out: where a
// command stands for several tiles, parts are larger than those that were checked.
func (l *lowering) gather(t int64, first bool) {
	n := l.lp.nest
	of, parts := l.lp.tiles, n.Loads
	if n.Once || l.lp.tiles == 1 {
		if t > 0 || !first {
			return
		}
		of, parts = 1, l.lp.tiles*n.Loads
	}
	l.leaveStages()
	for _, in := range l.ins {
		if !l.staged(in) || l.keeps(in) {
			continue
		}
		s, need := min(n.Stage, parts), 0
		for parts%s != 0 {
			s--
		}
		size := func(i int64) int64 { return piece(in.read.UnionBytes, t*s+i, of*s) }
		for i := range s {
			need += l.pages.need(size(i))
		}
		if l.pinned+need > l.pages.stageable() {
			continue
		}
		l.pinned += need
		for i := range s {
			in.stage = append(in.stage, l.gatherIn(in, isa.Portion{Operand: in.operand}.Cut(t, of).Cut(i, s), size(i)))
		}
	}
}

// leaveStages gives up what stages in the LLB hold, all commands that read it being issued.
func (l *lowering) leaveStages() {
	l.pinned = 0
	for _, in := range l.ins {
		for _, ent := range in.stage {
			l.pages.pin(ent, false)
		}
		in.stage = nil
	}
}

// bring loads piece i of n of an input.
func (l *lowering) bring(in *incoming, i, n int64, wait []int32) {
	r, at := in.read, i
	if in.val.Level == schedule.L1 && r.RemoteBytes == 0 {
		return
	}
	part := func(bytes int64) int64 { return piece(bytes, i, n) }
	t := transfer{part: isa.Portion{Operand: in.operand}.Cut(i, n), core: part(in.coreBytes), all: part(r.NeedBytes),
		once: part(r.UnionBytes), llb: part(l.fromLLB(r.NeedBytes, r.UnionBytes)), sent: part(r.Sent(l.spec)),
		lacks: part(r.CoreRemoteBytes), free: [2][]int32{in.deps, wait}, ready: in.state.ready}
	switch {
	case in.val.Level == schedule.L1 && in.follow != nil && n > 1: // else it waits for all, which a program can say
		_, others := in.follow(n)
		t.ready = in.made(others[i])
	case len(in.stage) > 0:
		parts := n
		if !l.lp.nest.Once {
			at, parts = i%l.lp.nest.Loads, l.lp.nest.Loads
		}
		t.stage = in.stage[at*int64(len(in.stage))/parts]
	case r.UnionBytes < n && l.pages != nil:
		// A part without bytes is there with the one before, so the first has some.
		t.once = ceilDiv(r.UnionBytes*(i+1), n) - ceilDiv(r.UnionBytes*i, n)
	}
	if t.stage == nil {
		t.stage = l.keep(in, i, 1, n, t.once, t.part)
	}
	in.arrived(l.transfer(in, t))
	if i == 0 {
		l.recordUntil(in.place, isa.L1, -1)
	}
}

// products lowers the work of outer tile t for tiles of columns: that of the matrix unit, weight tile by weight tile,
// if the layer has a product, and the vector work behind it. ahead: the first weights are there.
func (l *lowering) products(t, from, to, place int64, ahead bool) {
	lp, k := l.lp, int64(l.lp.kTiles)
	done, left := l.mem.numbers.take(longList), l.mem.numbers.take(longList)
	free, last := l.drained[place], int32(-1)
	// behind runs the vector work attached to the loop that ends, and the stores.
	behind := func(a schedule.Attach, i, n int64, tile int32) {
		switch {
		case lp.matrix && lp.vector.Total() == 0:
			l.writers = []int32{last}
			if a == schedule.AtPiece {
				l.done(i, n, last)
			}
		case lp.nest.Vector == a:
			deps := append(l.scratch[:0], last)
			if !lp.nest.Blocked() {
				deps = append(deps, free...)
			}
			done = append(done, l.epilogue(i, n, tile, deps, !lp.matrix && i == 0)...)
		}
		if lp.nest.Store == a {
			left = append(left, l.store(i, n, tile)...)
		}
	}
	for w := from * k; w < to*k; w++ {
		tile := &lp.weights[w]
		l.bringBlocks(true, t, w)
		if lp.loadsWeights(t) && !(ahead && w == from*k) {
			l.resident[w].load, l.resident[w].place = l.loadTile(tile, &l.weights, l.active)
		}
		for i := range lp.pieces {
			if l.halted != nil {
				return
			}
			row := t*lp.pieces + i
			if lp.matrix {
				last = l.product(w, row, free)
			}
			if tile.lastK {
				behind(schedule.AtPiece, row, l.total(), tile.portion.Tile)
			}
		}
		if done = append(done, last); tile.lastK {
			behind(schedule.AtColumns, t, lp.tiles, tile.portion.Tile)
		}
	}
	if behind(schedule.AtTile, t, lp.tiles, 0); lp.nest.Blocked() { // the next sums are added up where these were
		left = append(left, l.writers...)
	}
	l.computed[place], l.drained[place] = done, left
}

// product passes a piece of rows by a weight tile.
func (l *lowering) product(w, row int64, free []int32) int32 {
	lp, tile, at := l.lp, &l.lp.weights[w], l.resident[w]
	cycles := l.matrixCycles(tile, row) * hardware.Cycles(lp.repeat*l.turns)
	deps := append(append(append(l.scratch[:0], at.load), free...), l.loads...)
	ring := &l.weights
	if lp.constant != nil {
		ring = &l.params
	}
	blocksFrom, blocksTo := inTurn(row, l.total(), len(lp.rowBlocks))
	l.bringRing(&l.rowBlocks, lp.rowBlocks[:blocksTo], ring, l.active)
	deps = append(deps, l.rowBlocks.loads[blocksFrom:blocksTo]...)
	for _, in := range l.ins {
		if in.anchor {
			deps = in.after(deps, row, l.total())
		}
	}
	if w == 0 && row == 0 { // the first command that writes an output
		deps = append(deps, l.outDeps...)
	}
	l.scratch = deps
	portion := isa.Portion{Tile: tile.portion.Tile}.Cut(row, l.total())
	c := l.add(qMatrix, &isa.Command{Kind: isa.Matrix, Portion: portion, Cores: int32(l.active),
		MACs:       piece(lp.macs, l.macIndex, l.total()*int64(len(lp.weights))),
		DurationPs: l.cost.Picoseconds(cycles)}, deps)
	l.macIndex++
	l.useInputs(true, c)
	for _, places := range [...][]*stretch{l.rowBlocks.places[blocksFrom:blocksTo], l.used} {
		for _, p := range places {
			p.use(c)
		}
	}
	if at.place != nil {
		at.place.use(c)
	}
	for _, o := range l.outs {
		o.place.use(c)
	}
	return c
}

// matrixCycles returns the cycles of a piece of rows by a tile of weights. It caches the last: most pieces are alike.
func (l *lowering) matrixCycles(tile *weightTile, row int64) hardware.Cycles {
	lp, rows := l.lp, tile.reps
	if rows < l.total() {
		rows *= lp.dims.M
	}
	if last := [...]int64{tile.reps, tile.n, tile.k, tile.at, piece(rows, row, l.total())}; lp.last != last {
		dims := rowsOf(model.MatrixDims{Reps: tile.reps, M: lp.dims.M, N: tile.n, K: tile.k,
			Line: lp.dims.Line, At: tile.at, Phases: lp.dims.Phases}, row, l.total())
		lp.last, lp.lastCycles = last, l.cost.MatrixCycles(rowsOf(dims, lp.repeat-1, lp.repeat), lp.dtype)
	}
	return lp.lastCycles
}

// useInputs notes commands as users of the inputs of the matrix unit, or of the others.
func (l *lowering) useInputs(anchor bool, cs ...int32) {
	for _, in := range l.ins {
		if in.anchor != anchor && (anchor || !in.behind) {
			continue
		}
		if in.place != nil {
			in.place.use(cs...)
		}
		if in.val.Level == schedule.L1 {
			in.state.place.use(cs...)
		}
	}
}

// epilogue runs the vector work on part i of n of the rows, of the columns of a weight tile, behind the given commands,
// a list in scratch; first marks the first command that writes an output.
func (l *lowering) epilogue(i, n int64, tile int32, deps []int32, first bool) []int32 {
	if l.lp.step.Slices() > 1 {
		deps = l.addUp(i, n, tile, deps)
	}
	l.bringBlocks(false, i, int64(tile)-1)
	deps = append(deps, l.loads...)
	for _, in := range l.ins {
		if !in.anchor {
			deps = in.after(deps, i, n)
		}
	}
	deps = append(deps, l.rowLoads...)
	from, to := l.nextParams()
	deps = append(deps, l.paramBlocks.loads[from:to]...)
	if first {
		deps = append(deps, l.outDeps...)
	}
	l.scratch = deps
	l.writers = l.vectorCommands(isa.Portion{Tile: tile}.Cut(i, n), deps)
	l.useInputs(false, l.writers...)
	for _, places := range [...][]*stretch{l.paramBlocks.places[from:to], l.used} {
		for _, p := range places {
			p.use(l.writers...)
		}
	}
	if l.sums != nil {
		l.sums.use(l.writers...)
	}
	for _, o := range l.outs {
		o.place.use(l.writers...)
	}
	l.done(i, n, l.writers...)
	return l.writers
}

// addUp brings the sums of other cores for part i of n of the rows, of the columns of a weight
// tile, to those that make the results, and returns what these wait for.
func (l *lowering) addUp(i, n int64, tile int32, deps []int32) []int32 {
	// What the place held is added up: the tile that was there has been computed.
	core, before := piece(l.sumBytes, l.vectorIndex, l.vector.parts), l.writers
	if l.lp.nest.Blocked() {
		m := l.lp.dims.M*(i+1)/n - l.lp.dims.M*i/n
		core = (l.lp.step.Slices() - 1) * m * l.lp.weights[tile-1].n * schedule.AccumulatorBytes
	} else {
		before = append(slices.Clone(l.sumsDeps), l.computed[i*l.lp.tiles/n%l.lp.nest.Depth]...)
	}
	moved := l.gatherSums(isa.Portion{Tile: tile}.Cut(i, n), core, deps, before)
	l.sums.use(moved)
	if l.lp.nest.Blocked() {
		return append(deps[:0], moved)
	}
	for _, o := range l.outs {
		o.place.use(moved)
	}
	if i == 0 {
		l.recordUntil(l.sums, isa.L1, -1)
	}
	return append(deps, moved)
}

// gatherSums brings each core that makes results so many bytes of other cores' sums, behind the given commands.
func (l *lowering) gatherSums(portion isa.Portion, core int64, deps ...[]int32) int32 {
	portion.Operand = int32(len(l.lp.step.Reads) + len(l.lp.step.Params))
	return l.add(qOut, &isa.Command{Kind: isa.Exchange, Portion: portion, Bytes: core * l.cores,
		DurationPs: l.exchangeLatency(),
		Uses:       l.moves(0, 2*core*l.cores, core, ceilDiv(core, l.lp.step.Slices()-1))}, deps...)
}

// nextParams is the range of parameters that the next part of the vector work needs; it loads them if they do not stay.
func (l *lowering) nextParams() (from, to int) {
	n := len(l.lp.params)
	if l.paramsStay {
		return 0, n
	}
	from, to = inTurn(l.vectorIndex, l.vector.parts, n)
	l.bringParams(to)
	return from, to
}

// inTurn is the range of so many blocks that part i of n takes.
func inTurn(i, n int64, blocks int) (from, to int) {
	from, to = int(i*int64(blocks)/n), int((i+1)*int64(blocks)/n)
	return from, max(to, min(from+1, blocks))
}

// vectorCommands runs the next part of the vector work: special functions, then the rest.
func (l *lowering) vectorCommands(portion isa.Portion, deps []int32) []int32 {
	v := &l.vector
	ops := piece(l.lp.vecOps, l.vectorIndex, v.parts)
	l.vectorIndex++
	special := ops * v.work.Special / max(1, v.work.Total())
	return l.onVectorUnits(portion, l.cores, [2]hardware.Cycles{v.special, v.vector}, [2]int64{special, ops - special},
		v.vector > 0 || v.special == 0, deps)
}

// onVectorUnits are commands for special functions, where they take cycles, and behind them for the rest, if there is
// any; ops are the useful operations of both.
func (l *lowering) onVectorUnits(portion isa.Portion, cores int64, cycles [2]hardware.Cycles, ops [2]int64, rest bool,
	deps ...[]int32) (cs []int32) {
	cs = l.mem.numbers.take(2)
	for k, kind := range [...]isa.Kind{isa.Special, isa.Vector} {
		q := qVector
		switch {
		case k == 0 && cycles[0] == 0 || k == 1 && !rest:
			continue
		case k == 0 && !l.cost.SharedVector():
			q = qSpecial
		case len(cs) > 0:
			deps = append(deps, cs)
		}
		cs = append(cs, l.add(q, &isa.Command{Kind: kind, Portion: portion, Cores: int32(cores),
			DurationPs: l.cost.Picoseconds(cycles[k]), VectorOps: ops[k]}, deps...))
	}
	return cs
}

// store moves part row of rows of the rows of each output that does not stay in the L1, of the
// columns of a weight tile. It returns the commands after which that has left the L1.
func (l *lowering) store(row, rows int64, tile int32) (left []int32) {
	i, n := l.storeIndex, rows
	if l.lp.nest.Store != schedule.AtTile {
		n *= l.lp.nest.ColumnTiles()
	}
	l.storeIndex++
	for _, o := range l.outs {
		bytes, coreBytes := piece(o.val.Bytes, i, n), piece(o.val.CoreBytes, i, n)
		c := isa.Command{Kind: isa.L1Store, Portion: isa.Portion{Operand: o.operand, Tile: tile}.Cut(row, rows), Bytes: bytes}
		switch {
		case o.val.Level == schedule.L1 && !o.output:
			continue
		case o.val.Level == schedule.LLB:
			c.DurationPs, c.Uses = l.l1Latency(), l.moves(0, bytes, 0, coreBytes)
			o.stored = l.add(qOut, &c, l.writers, o.fdeps)
			o.far.use(o.stored)
			left = append(left, o.stored)
			if o.output {
				o.copied = l.add(qDDRStore, &isa.Command{Kind: isa.DDRStore, Portion: c.Portion, Bytes: bytes,
					DurationPs: l.ddrLatency(), Uses: l.activationUses(bytes, bytes, 0, 0)}, []int32{o.stored})
				o.far.use(o.copied)
			}
		case l.pages == nil:
			c.Kind, c.DurationPs = isa.DDRStore, l.ddrLatency()+l.l1Latency()
			c.Uses = l.activationUses(bytes, 0, 0, coreBytes)
			o.stored = l.add(qDDRStore, &c, l.writers)
			left = append(left, o.stored)
		default:
			left = append(left, l.storeThrough(o, c, bytes, coreBytes)...)
			continue
		}
		o.place.use(o.stored)
	}
	return left
}

// storeThrough moves part of an output to the DDR through the LLB, in pieces that the
// pages can hold; c is the command for all of it.
func (l *lowering) storeThrough(o *outgoing, c isa.Command, bytes, coreBytes int64) (left []int32) {
	n := ceilDiv(bytes, l.pages.largest())
	for i := range n {
		out := c
		out.Portion, out.Bytes = c.Cut(i, n), piece(bytes, i, n)
		ent, deps := l.pages.add(0, out.Bytes, never)
		out.DurationPs, out.Uses = l.l1Latency(), l.moves(0, out.Bytes, 0, piece(coreBytes, i, n))
		l.pages.bring(ent, l.add(qOut, &out, l.writers, deps))
		l.cmds.mark(ent.load).to = ent.at
		o.place.use(ent.load)
		o.stored = l.add(qDDRStore, &isa.Command{Kind: isa.DDRStore, Portion: out.Portion, Bytes: out.Bytes,
			DurationPs: l.ddrLatency(), Uses: l.activationUses(out.Bytes, out.Bytes, 0, 0)}, []int32{ent.load})
		l.cmds.mark(o.stored).from = ent.at
		l.pages.use(ent, o.stored)
		left = append(left, ent.load)
		if l.halted != nil {
			break
		}
	}
	return left
}

// complete notes which commands complete the outputs, and at which level.
func (l *lowering) complete() {
	l.leaveStages()
	for _, in := range l.ins {
		if k := l.entryOf(in); k != nil && slices.Contains(k.has, false) { // a part left while others came
			l.pages.touch(k.entry, never)
		} else if k != nil {
			l.pages.touch(k.entry, l.nextRead(in.val))
		}
	}
	for _, o := range l.outs {
		state := &l.values[o.val.ID]
		switch o.val.Level {
		case schedule.L1:
			// A matrix result without vector work is complete after its last command;
			// in-order units make the last of each unit enough.
			state.ready, state.parts = l.writers, l.parts
			l.cmds.at(l.writers[len(l.writers)-1]).WriteLevel = isa.L1
			if o.output {
				l.cmds.at(o.stored).WriteLevel = isa.DDR
			}
			l.recordUntil(o.place, isa.L1, o.val.Last)
		case schedule.LLB:
			state.ready = []int32{o.stored}
			l.cmds.at(o.stored).WriteLevel = isa.LLB
			if o.output {
				l.cmds.at(o.copied).WriteLevel = isa.DDR
			}
			l.recordUntil(o.far, isa.LLB, o.val.Last)
		default:
			state.ready = []int32{o.stored}
			l.cmds.at(o.stored).WriteLevel = isa.DDR
			l.pass(o)
		}
		l.recordUntil(o.place, isa.L1, -1)
	}
}

// sharing is the number of cores' slices one unit of this kind works on, one after
// another: more than one if fewer cores have the unit than hold data.
func (e *emitter) sharing(kind hardware.UnitKind, cores int64) int64 {
	spec := e.cost.Spec()
	n := int64(spec.CoresWith(kind))
	if n == 0 { // another kind stands in, see package cost
		n = max(int64(spec.CoresWith(hardware.Vector)), int64(spec.CoresWith(hardware.Special)))
	}
	return max(1, ceilDiv(cores, max(1, n)))
}

// fromLLB is the number of bytes that leave the LLB for so many of all cores, once those that several need.
func (e *emitter) fromLLB(all, once int64) int64 {
	if e.spec.CoreLink.Broadcast {
		return once
	}
	return all
}

// rowsOf is row piece i of n of a product: whole repetitions while there are enough, else rows of one.
func rowsOf(d model.MatrixDims, i, n int64) model.MatrixDims {
	if d.Reps >= n {
		d.Reps = piece(d.Reps, i, n)
		return d
	}
	d.Reps, d.M = 1, piece(d.Reps*d.M, i, n)
	return d
}
