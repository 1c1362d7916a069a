package lower

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A mark is a command's record for settle, which turns dependencies from indices in emitter.cmds into final ones.
type mark struct {
	block int32
	opens bool // first command of its block: waits for everything before,
	roam  bool // a load that may leave its block
	asks  bool // a request: what comes next is its load
	// what From and To will be
	from, to *stretch
}

// emitter lowers the work of one cluster.
type emitter struct {
	p       *isa.Program
	spec    *hardware.Spec
	net     *network
	costs   *cost.Model
	cost    *cost.Model // of the kind of core that runs the present step
	opt     Options
	chips   int32
	cluster int32
	layers  int   // of all iterations of clusters that differ,
	lowered int   // of this cluster's
	alike   int   // clusters with the same work, for which this one stands
	repeats bool  // clusters differ, and some run a schedule several times
	outline bool  // see Outline
	bare    bool  // without names and tasks
	halted  error // of ended, in the middle of a layer
	// feed takes the commands of a [Stream], step by step; else the program keeps them.
	feed   func([]isa.Command) error
	tables *tables
	fine   grain

	cmds *commands // of a stream, those that were not fed
	// Of those that have their dependencies: how many they are, the block of each, less than
	// zero if it roams, and the last of each queue that does not.
	settled    int32
	blocks     []int32
	last       lastOf
	opener     int32 // of the block that is settled
	queues     queueLog
	requests   [2]requests
	perCluster int32 // queues
	block      int32
	iter       int32
	// label and task of the step that is lowered
	label, task int32
	running     *schedule.Step

	lb      space
	llbActs space
	weights ring // three quarters of the weight buffer
	params  ring // the rest: biases, scales, tables
	pages   *pages
	home    home // in the place of pages if there is no LLB
	inLLB   []llbValue
	visits  []int32 // by position: the tile
	used    int     // how many of these have passed,
	begun   int     // and had when the iteration began
	usesAt  []int   // before each of its steps
	of      *schedule.Schedule
	// kernelEnd is the position of the first use after the running kernel.
	kernelEnd int64
	keepEnd   int64 // and after the last for which weights are kept
	stretches []levelled
	mem       *Memory
	computing [numQueues]int32 // the last computation of each unit, -1: none
	scratch   []int32          // for a list of dependencies until add has copied it
	coming    []*layerPlan     // the present step and what follows in the iteration
	passed    []stored         // of these, what this cluster has made
	passing   *passing         // nil: clusters have nothing to do with each other
	late      []model.TensorID // see Exchange
}

// early reports whether a value is in the DDR from the start.
func (e *emitter) early(v *schedule.Value) bool {
	return v.Instance < 0 && !slices.Contains(e.late, v.Tensor)
}

// llbValue is a value that claims pages until after step last.
type llbValue struct {
	place *stretch
	last  int
}

type levelled struct {
	*stretch
	level isa.Level
	last  int // the step after which it is in use no more
}

// valueState is the emitter's knowledge of a value while it runs an iteration.
type valueState struct {
	ready []int32 // commands after which it is complete
	// parts are the commands after which each of so many parts of it is, see Options.CrossUnits; of values in the L1.
	parts [][]int32
	place *stretch
	kept  *keptInput // see Options.KeepInputs
	away  bool       // another cluster makes it,
	chip  int32      // one of this chip
}

// stopEvery is after how many commands lowering may end in the middle of a layer.
const stopEvery = 1 << 14

// ended is the error of a program that has too many commands by now, or of Options.Stopped.
func (e *emitter) ended() error {
	if n, most := e.commands(); n+len(e.p.Commands) > most {
		return tooMany(e.p.Name, fmt.Sprintf("at least %d", n+len(e.p.Commands)), most)
	}
	if e.opt.Stopped != nil {
		return e.opt.Stopped()
	}
	return nil
}

// add appends a command of the present step, behind a request if it is one of several loads in flight.
func (e *emitter) add(q int, c *isa.Command, deps ...[]int32) int32 {
	for i := range e.requests {
		if r := &e.requests[i]; q == r.queue && len(r.slots) > 0 && c.DurationPs > 0 {
			slot, all := &r.slots[r.next], [8][]int32{{r.slots[r.next]}} // append and copy let lists escape
			for i := range deps {
				all[i+1] = deps[i]
			}
			ask := e.append(r.first+r.next, &isa.Command{Kind: c.Kind, DurationPs: c.DurationPs}, all[:len(deps)+1]...)
			e.cmds.mark(ask).asks = true
			e.cmds.at(ask).Task, c.DurationPs = 0, 0
			*slot = e.append(q, c, []int32{ask})
			r.next = (r.next + 1) % len(r.slots)
			return *slot
		}
	}
	return e.append(q, c, deps...)
}

// append appends a command of the present step.
func (e *emitter) append(q int, c *isa.Command, deps ...[]int32) int32 {
	c.Queue = e.cluster*e.perCluster + int32(q)
	c.Iteration = e.iter
	c.Label, c.Task = e.label, e.task
	if c.Kind.IsMove() {
		c.Cores = int32(e.running.Active())
	}
	n := 0
	for _, d := range deps {
		n += len(d)
	}
	if n > longList && !e.opt.AllWaits { // what latest makes of it, without the list
		var last lastOf
		for _, d := range deps {
			for _, x := range d {
				if x >= 0 {
					last.wait(e.queues.queue[x], x)
				}
			}
		}
		c.Deps = last.list(&e.mem.waits)
	} else if n > 0 {
		list := e.mem.waits.take(n)
		for _, d := range deps {
			for _, x := range d {
				if x >= 0 {
					list = append(list, x)
				}
			}
		}
		c.Deps = list
	}
	e.queues.queue = append(e.queues.queue, uint8(q))
	if q >= qMatrix && q < numQueues {
		e.computing[q] = e.cmds.n
	}
	e.cmds.add(c, mark{block: e.block})
	if e.cmds.n%stopEvery == 0 && e.halted == nil {
		e.halted = e.ended()
	}
	return e.cmds.n - 1
}

// name is the index of a label.
func (e *emitter) name(label string) int32 {
	if e.bare {
		return 0
	}
	return e.tables.label(label)
}

// open begins a block: what comes behind waits for all that was before.
func (e *emitter) open(kind isa.Kind, label string, s float64) {
	e.block++
	e.label, e.task = e.name(label), 0
	i := e.add(qControl, &isa.Command{Kind: kind, DurationPs: seconds(s)})
	e.cmds.mark(i).opens = true
}

// resource is one of the cluster's. The DDRs of the chips come before those of all clusters and,
// if there are several, the ways out of and into each.
func (e *emitter) resource(r int) int32 {
	shared := e.chips
	if e.chips > 1 {
		shared *= 3
	}
	owner := e.cluster
	if r == rPort || r == rLLB { // which sides share
		owner -= owner % int32(e.spec.Sides())
	}
	return shared + owner*int32(numResources+e.net.resources()) + int32(r)
}

func (e *emitter) chipOf(cluster int32) int32 {
	if e.chips == 1 {
		return 0
	}
	return cluster / int32(e.spec.Clusters)
}

// seconds is a time in picoseconds, rounded up.
func seconds(s float64) int64 { return int64(math.Ceil(s * 1e12)) }

// run lowers the cluster's segments.
func (e *emitter) run(segments []Segment) error {
	e.computing = [numQueues]int32{qMatrix: -1, qVector: -1, qSpecial: -1}
	e.requests, e.perCluster = newRequests(e.spec, e.opt), numQueues
	for _, r := range e.requests {
		e.perCluster += int32(len(r.slots))
	}
	e.cmds, e.queues = &e.mem.cmds, queueLog{e.mem.queues[:0], e.mem}
	e.cmds.begin()
	e.mem.allWaits, e.mem.unnamed = e.opt.AllWaits, e.outline && !e.opt.AllWaits
	e.blocks = e.mem.blocks[:0]
	e.mem.waits.reset()
	e.settled, e.last, e.opener = 0, lastOf{}, 0
	plans, usesAt, kernelEnds, err := e.planSteps(segments)
	if err != nil {
		return err
	}
	e.divideBuffers(segments)
	first := 0 // commands of the first iteration
	kernel, batch := 0, len(kernelEnds)
	if e.opt.Fresh {
		batch /= max(1, e.opt.Batches)
	}
	part := 0
	for i, seg := range segments {
		s := seg.Schedule
		if x := seg.Exchange; x != nil {
			part++
			e.exchange(x)
			e.late = nil
			for _, name := range x.Late {
				at := slices.IndexFunc(s.Graph.Inputs, func(t model.TensorID) bool { return s.Graph.Tensor(t).Name == name })
				if at < 0 {
					return fmt.Errorf("lower: found no input %q of %s, expected one", name, s.Graph.Name)
				}
				e.late = append(e.late, s.Graph.Inputs[at])
			}
		}
		for iteration := range seg.Iterations {
			values := make([]valueState, len(s.Values))
			e.present(s, values)
			e.of, e.usesAt, e.begun = s, usesAt[i], e.used
			for k := range plans[i] {
				lp, err := e.planned(plans[i][k], s, k, part)
				if err != nil {
					return err
				}
				if k == 0 || lp.step.Instance != s.Steps[k-1].Instance {
					e.kernelEnd, e.keepEnd = kernelEnds[kernel], kernelEnds[kernel/batch*batch+batch-1]
					kernel++
					e.launch(s, lp.step.Instance, e.start(lp))
				} else if gap := e.spec.GapSeconds; gap > 0 || !e.opt.CrossLayer {
					e.open(isa.Barrier, lp.layer.Name, max(gap, e.spec.SyncSeconds)+e.start(lp))
				}
				e.releaseDead(k)
				e.coming = plans[i][k:]
				e.step(s, lp, values)
				if e.lowered++; e.halted != nil {
					return e.halted
				}
				e.leave(s, k, values)
				if err := e.ended(); err != nil {
					return err
				}
				if n, most := e.commands(); i == 0 && k == len(s.Steps)-1 && len(e.p.Commands) == 0 {
					// The third iteration is like the second: too many commands are known to be before they are made.
					all := float64(first) + float64(n-first)/float64(len(s.Steps))*float64(e.layers-len(s.Steps))
					if iteration == 1 && all > float64(most) {
						return tooMany(e.p.Name, fmt.Sprintf("about %.1f million", all/1e6), most)
					}
					first = n
				}
				if iteration == seg.Iterations-1 && k > 0 {
					plans[i][k-1] = nil // one by one, since all of them take much memory
				}
				if err := e.feedSettled(); err != nil {
					return err
				}
			}
			e.releaseDead(len(s.Steps) + 1)
			e.leave(s, len(s.Steps), values)
			e.iter++
		}
	}
	if err := e.ended(); err != nil {
		return err
	}
	if err := e.flush(); err != nil {
		return err
	}
	e.mem.queues, e.mem.blocks = e.queues.queue, e.blocks
	return nil
}

// planSteps plans the steps of all segments and notes when each weight tile is used: its
// positions in the sequence of all uses. kernelEnds are the positions at which kernels end.
// Plans that [emitter.planned] makes again, since all of them take much memory, are nil.
func (e *emitter) planSteps(segments []Segment) (plans [][]*layerPlan, usesAt [][]int, kernelEnds []int64, err error) {
	plans, usesAt = make([][]*layerPlan, len(segments)), make([][]int, len(segments))
	var visits []int32 // tiles, as they pass
	e.mem.forget()
	mem, part := e.opt.Memory, 0
	for i, seg := range segments {
		if a, b := seg.Schedule.WeightRoom, segments[0].Schedule.WeightRoom; a != b {
			return nil, nil, nil, fmt.Errorf("segment %d has room %q for weights, expected %q as in segment 0", i, a, b)
		}
		if seg.Exchange != nil {
			part++
			mem = nil // plans have numbers of tiles of the first part
		}
		plans[i] = make([]*layerPlan, len(seg.Schedule.Steps))
		from := len(visits)
		var ends []int // of kernels, in visits
		for k := range seg.Schedule.Steps {
			st := &seg.Schedule.Steps[k]
			if k > 0 && st.Instance != seg.Schedule.Steps[k-1].Instance {
				ends = append(ends, len(visits)-from)
			}
			lp, err := plan(seg.Schedule, st, e.costs.Kind(st.Kind), e.fine, mem)
			if err != nil {
				return nil, nil, nil, err
			}
			usesAt[i] = append(usesAt[i], len(visits)-from)
			if !e.bare {
				lp.task = e.tables.task(seg.Schedule, lp)
			}
			lp.eachUse(func(t *weightTile) {
				if t.number == 0 { // else the step has used it before
					t.key.part = part
					t.number = e.mem.number(t.key)
				}
				visits = append(visits, t.number)
			})
			if e.feed == nil || seg.Iterations > 1 || part > 0 {
				plans[i][k] = lp
			}
		}
		once := visits[from:]
		visits = slices.Grow(visits, len(once)*(seg.Iterations-1))
		kernelEnds = slices.Grow(kernelEnds, (len(ends)+1)*seg.Iterations)
		for n := range seg.Iterations {
			if n > 0 {
				visits = append(visits, once...)
			}
			for _, end := range ends {
				kernelEnds = append(kernelEnds, int64(from+n*len(once)+end))
			}
			if len(plans[i]) > 0 {
				kernelEnds = append(kernelEnds, int64(len(visits)))
			}
		}
	}
	uses, positions := e.mem.byTile, make([]int64, len(visits))
	for _, t := range visits {
		if uses[t].next++; uses[t].next == 1 {
			e.mem.passed = append(e.mem.passed, t)
		}
	}
	for _, t := range e.mem.passed {
		uses[t].at, positions = positions[:0:uses[t].next], positions[uses[t].next:]
		uses[t].next = 0
	}
	for pos, t := range visits {
		uses[t].at = append(uses[t].at, int64(pos))
	}
	e.visits = visits
	return plans, usesAt, kernelEnds, nil
}

// planned is the plan of the step that comes next, made again if planSteps has not kept it.
func (e *emitter) planned(lp *layerPlan, s *schedule.Schedule, step, part int) (*layerPlan, error) {
	if lp == nil {
		var err error
		if lp, err = plan(s, &s.Steps[step], e.costs.Kind(s.Steps[step].Kind), e.fine, e.opt.Memory); err != nil {
			return nil, err
		}
	}
	lp.eachUse(func(t *weightTile) {
		t.key.part, t.number = part, e.visits[e.used]
		e.used++
	})
	return lp, nil
}

// divideBuffers lays out the weight buffer, behind the L1's data, and the LLB.
func (e *emitter) divideBuffers(segments []Segment) {
	l1Data, room := int64(0), schedule.WeightsStay
	for _, seg := range segments { // whose rooms are alike
		l1Data, room = max(l1Data, seg.Schedule.L1Capacity), seg.Schedule.WeightRoom
	}
	home, weightRing := room.HomeBytes(e.spec), room.RingBytes(e.spec)
	buffer := room.BufferBytes(e.spec) - home
	e.lb.log, e.llbActs.log = &e.queues, &e.queues
	e.weights.between(l1Data, l1Data+weightRing)
	e.params.between(l1Data+weightRing, l1Data+buffer)
	if e.spec.LLB != nil {
		e.pages = newPages(&e.queues, int64(e.spec.LLB.SizeBytes), e.recordEntry)
		e.pages.quarters = cmp.Or(e.opt.KeepQuarters, e.pages.quarters)
		e.pages.unnamed = e.outline || e.feed != nil
		return
	}
	e.home.log, e.home.tiles = &e.queues, map[tileKey]resident{}
	lo := l1Data + buffer
	e.home.gaps = []gap{{lo, lo + home}}
}

// eachUse visits the weight tiles of a step in the order in which they pass.
func (lp *layerPlan) eachUse(visit func(*weightTile)) {
	for _, list := range [][]weightTile{lp.params, lp.rowBlocks} {
		for i := range list {
			visit(&list[i])
		}
	}
	lp.eachVisit(func(t, from, to int64) {
		for i := from * int64(lp.kTiles); lp.loadsWeights(t) && i < to*int64(lp.kTiles); i++ {
			visit(&lp.weights[i])
		}
	})
}

// eachVisit goes through the tiles of rows, for all tiles of columns or for each of them in turn.
func (lp *layerPlan) eachVisit(visit func(t, from, to int64)) {
	n := lp.nest.ColumnTiles()
	width := n
	if lp.nest.ColumnsFirst {
		width = 1
	}
	for c := int64(0); c < n; c += width {
		for t := range lp.tiles {
			visit(t, c, c+width)
		}
	}
}

// exchange lets the control queue wait for the links while as many bytes pass the DDR.
func (e *emitter) exchange(x *Exchange) {
	e.open(isa.Barrier, "exchange", 0)
	e.add(qControl, &isa.Command{Kind: isa.Barrier, DurationPs: seconds(x.Seconds)})
	e.add(qDDRStore, &isa.Command{Kind: isa.DDRStore, Bytes: x.Bytes, Uses: e.moves(x.Bytes, 0, 0, 0)})
}

// launch begins the kernel of an instance.
func (e *emitter) launch(s *schedule.Schedule, inst int, start float64) {
	if !e.opt.KeepWeights && e.pages != nil {
		e.pages.forget()
	}
	label := ""
	if in := &s.Instances.Instances[inst]; !e.bare {
		label = fmt.Sprintf("%s/%d", s.Grouping.Groups[in.Group].Name, in.Index)
	}
	e.open(isa.Launch, label, e.spec.LaunchSeconds+start)
}

// start is the time of a layer's matrix unit to start, on top of its launch or gap.
func (e *emitter) start(lp *layerPlan) float64 {
	if lp.matrix || lp.attention != nil {
		return e.spec.MatrixStartSeconds
	}
	return 0
}

// present takes the places of values that are there before the first step: those of
// kernels that are not in the schedule, see [Alone].
func (e *emitter) present(s *schedule.Schedule, values []valueState) {
	for i := range s.Values {
		v := &s.Values[i]
		if values[i].away = v.Def < 0 && s.Away(v.Instance); values[i].away {
			values[i].chip = e.chipOf(int32(s.Place[v.Instance]))
		}
		if v.Def >= 0 || v.Instance < 0 || v.Level == schedule.DDR {
			continue
		}
		if v.Level == schedule.L1 {
			values[i].place, _ = e.lb.take(v.Address, v.CoreBytes, e.label)
			continue
		}
		values[i].place, _ = e.llbActs.take(v.Address, schedule.Align(v.Bytes), e.label)
		e.pages.claim(values[i].place.lo, values[i].place.hi)
		e.inLLB = append(e.inLLB, llbValue{values[i].place, v.Last})
	}
}

// releaseDead gives the LLB pages of values back that no step from step on reads.
func (e *emitter) releaseDead(step int) {
	e.inLLB = slices.DeleteFunc(e.inLLB, func(v llbValue) bool {
		if v.last < step {
			e.pages.unclaim(v.place.lo, v.place.hi, v.place.lasts)
		}
		return v.last < step
	})
}

// flush appends the cluster's commands and buffers to the program.
func (e *emitter) flush() error {
	if e.pages != nil && !e.outline {
		e.pages.clear()
	}
	// What is no more needed takes as much memory as what follows.
	e.pages, e.visits, e.coming, e.mem.step = nil, nil, nil, lowering{}
	e.mem.forget()
	base, buffer := int32(len(e.p.Commands)), int32(len(e.p.Buffers))
	for _, s := range e.stretches {
		if s.first >= 0 && s.hi > s.lo {
			buffer++
			s.buffer = buffer
		}
	}
	if e.feed != nil {
		if err := e.feedSettled(); err != nil {
			return err
		}
	} else {
		e.settle(base)
		e.p.Commands = e.cmds.list
	}
	for _, m := range e.passed {
		e.passing.made[m.passed] = base + m.command
	}
	if e.outline {
		return nil
	}
	e.p.Buffers = slices.Grow(e.p.Buffers, len(e.stretches))
	for i, s := range e.stretches {
		if s.first >= 0 && s.hi > s.lo {
			e.buffer(base, s)
		}
		e.stretches[i].stretch = nil
	}
	return nil
}

// buffer adds a buffer to the program, in which the cluster's commands begin with number base.
func (e *emitter) buffer(base int32, s levelled) {
	b := isa.Buffer{Label: s.label, Level: s.level, Cluster: e.cluster, Address: s.lo, Bytes: s.hi - s.lo,
		First: base + s.first, Continued: s.continued}
	var room [longList]int32
	lasts := room[:0]
	for _, l := range s.lasts {
		b.First = min(b.First, base+l)
		lasts = append(lasts, base+l)
	}
	slices.Sort(lasts)
	lasts = slices.Compact(lasts)
	b.Lasts = append(e.mem.lasts.take(len(lasts)), lasts...)
	e.putBuffer(b)
}

func (e *emitter) putBuffer(b isa.Buffer) {
	if n := len(e.p.Buffers); n == cap(e.p.Buffers) { // append would copy large lists many times
		all := n * e.layers / max(1, e.lowered) // as many as there will be, if layers are alike
		e.p.Buffers = append(make([]isa.Buffer, 0, min(max(2*n, all+all/8), 16*n)+listBlock), e.p.Buffers...)
	}
	e.p.Buffers = append(e.p.Buffers, b)
}

// feedSettled hands the commands of a stream on, whose steps are complete.
func (e *emitter) feedSettled() error {
	if e.feed == nil || e.settled == e.cmds.n {
		return nil
	}
	e.settle(0)
	if err := e.feed(e.cmds.list); err != nil {
		return err
	}
	e.cmds.forget()
	e.mem.waits.reset()
	e.mem.deps.reset()
	e.mem.uses.reset()
	return nil
}

// feedSome is feedSettled within a step, if there are many commands. What comes behind changes none of those before.
func (e *emitter) feedSome() {
	if e.feed != nil && e.halted == nil && e.cmds.n-e.settled >= stopEvery {
		e.halted = e.feedSettled()
	}
}

// allWaits lists what a command waits for without the order of any queue; opener has begun the block before it.
func (e *emitter) allWaits(i, opener int32, m *mark) []int32 {
	list := slices.Clone(e.cmds.at(i).Deps)
	switch {
	case m.opens:
		for d := opener; d < i; d++ {
			if e.blocks[d] >= 0 {
				list = append(list, d)
			}
		}
	case !m.roam:
		list = append(list, opener)
	case !e.opt.BeforeFirst:
		list = append(list, 0)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// settle completes the dependencies of the cluster's commands that are not settled. Indices in the program are base
// more than those here.
func (e *emitter) settle(base int32) {
	queue := e.queues.queue
	e.blocks = slices.Grow(e.blocks, int(e.cmds.n-e.settled))
	for ; e.settled < e.cmds.n; e.settled++ {
		i := e.settled
		c, m := e.cmds.at(i), e.cmds.mark(i)
		own := queue[i]
		if m.asks {
			m.roam = e.cmds.mark(i + 1).roam
		}
		block := m.block
		if m.roam = m.roam && e.spec.GapSeconds == 0; m.roam {
			block = -1
		}
		e.blocks = append(e.blocks, block)
		// A queue runs in order: of several commands of one queue, waiting for the last
		// is enough, and of the own queue for none.
		last, opener := lastOf{}, e.opener
		switch {
		case m.opens:
			last, e.opener = e.last, i
		case m.roam:
			for _, d := range c.Deps {
				last.wait(queue[d], d)
			}
			if !e.opt.BeforeFirst {
				last.wait(qControl, 0) // the launch that begins the work
			}
		default:
			// Earlier blocks have ended when this block opens, but for what roams.
			last.wait(queue[e.opener], e.opener)
			for _, d := range c.Deps {
				if b := e.blocks[d]; b == block || b < 0 {
					last.wait(queue[d], d)
				}
			}
		}
		last.has &^= 1 << own
		deps := last.list(&e.mem.deps)
		if e.opt.AllWaits {
			deps = e.allWaits(i, opener, m)
		}
		for k := range deps {
			deps[k] += base
		}
		if c.Deps = deps; len(deps) == 0 {
			c.Deps = nil
		}
		if e.bare {
			c.Portion = isa.Portion{} // of no task
		}
		if m.from != nil && !e.outline {
			c.From = m.from.buffer
		}
		if m.to != nil && !e.outline {
			c.To = m.to.buffer
		}
		if !m.roam {
			e.last.wait(own, i)
		}
	}
}
