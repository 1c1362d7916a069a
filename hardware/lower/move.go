package lower

import (
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// piece is part i of n of a number of bytes; the parts add up to the whole.
func piece(bytes, i, n int64) int64 { return bytes*(i+1)/n - bytes*i/n }

// loadTile brings a weight tile to the weight buffer of this many cores and returns
// the command after which it is there, and its place.
func (e *emitter) loadTile(t *weightTile, through *ring, cores int64) (int32, *stretch) {
	uses, next := &e.mem.byTile[t.number], int64(never)
	uses.next++
	if n := uses.next; n < len(uses.at) && (e.opt.KeepWeights && uses.at[n] < e.keepEnd || uses.at[n] < e.kernelEnd) {
		next = uses.at[n]
	}
	llbBytes := t.unionBytes * t.times
	if !e.spec.CoreLink.Broadcast {
		llbBytes = t.coreBytes * cores * t.times
	}
	coreBytes := t.coreBytes * t.times
	if e.pages == nil {
		return e.loadHome(t, through, llbBytes, next != never)
	}
	place, free := through.next(&e.lb, t.coreBytes, e.label)
	free = append(free, e.exposed()...)
	ent := e.pages.find(t.number, next)
	var after []int32
	if !e.opt.Prefetch {
		after = e.exposed()
	}
	key := t.number
	if ent == nil && t.far.Tiles > 1 {
		key = -1 // alone, it is not what its group is found by
		if t.farBytes <= e.pages.largest() {
			ent = e.fetch(t, next, after)
		}
	}
	var c int32
	if ent == nil || t.unionBytes > e.pages.largest() {
		c = e.stream(streamed{part: t.portion, key: key, roam: true, after: after, bytes: t.unionBytes, llbBytes: llbBytes,
			coreBytes: coreBytes, next: next, free: free, place: place})
	} else {
		c = e.add(qIn, &isa.Command{Kind: isa.L1Load, Portion: t.portion, Bytes: t.unionBytes * t.times,
			DurationPs: e.l1Latency(), Uses: e.moves(0, llbBytes, coreBytes, 0)}, free, []int32{ent.load})
		e.cmds.mark(c).from, e.cmds.mark(c).to = ent.at, place
		e.pages.use(ent, c)
		place.use(c)
	}
	e.recordUntil(place, isa.L1, -1)
	return c, place
}

// fetch brings what comes from the DDR with a tile to the LLB, in one entry.
func (e *emitter) fetch(t *weightTile, next int64, after []int32) *entry {
	ent, deps := e.pages.add(t.number, t.farBytes, next)
	e.load(ent, t.far, t.farBytes, e.moves(t.farBytes, t.farBytes, 0, 0), true, deps, after)
	return ent
}

// load brings bytes from the DDR into an entry, behind the given commands. It may roam if Prefetch lets it.
func (e *emitter) load(ent *entry, part isa.Portion, bytes int64, uses []isa.Use, roam bool, deps ...[]int32) {
	c := e.add(qDDRLoad, &isa.Command{Kind: isa.DDRLoad, Portion: part, Bytes: bytes, DurationPs: e.ddrLatency(),
		Uses: uses}, deps...)
	e.pages.bring(ent, c)
	e.cmds.mark(c).roam, e.cmds.mark(c).to = roam && e.opt.Prefetch, ent.at
}

// exposed lists the commands that the promotion of weights waits for beside its place.
func (e *emitter) exposed() []int32 {
	if !e.opt.Exposed || e.opt.CrossLayer {
		return nil
	}
	return e.computing[qMatrix:]
}

// loadHome is loadTile on a machine without an LLB: the tile comes from the DDR, or
// from where it was kept on its first use. far is what leaves the DDR.
func (e *emitter) loadHome(t *weightTile, through *ring, far int64, again bool) (int32, *stretch) {
	coreBytes := t.coreBytes * t.times
	latency := e.ddrLatency() + e.l1Latency()
	kept, ok := e.home.tiles[t.key]
	if ok && !again && e.running.Nest.Blocked() {
		e.home.over = append(e.home.over, t.key)
	}
	// Without broadcast, each core keeps its own copy and uses it where it lies.
	if !e.spec.CoreLink.Broadcast {
		ok = ok && kept.coreBytes == t.coreBytes &&
			(t.coreBytes == t.unionBytes && kept.step.Active() >= e.running.Active() || cutAlike(kept.step, e.running))
		if ok {
			return kept.load, kept.place
		}
		if place, free := e.home.keep(t.coreBytes, again, e.label); place != nil {
			c := e.add(qDDRLoad, &isa.Command{Kind: isa.DDRLoad, Portion: t.portion, Bytes: t.unionBytes, DurationPs: latency,
				Uses: e.moves(far/t.times, 0, t.coreBytes, 0)}, free)
			e.cmds.mark(c).roam, e.cmds.mark(c).to = e.opt.Prefetch, place
			e.keep(t, place, c)
			return c, place
		}
	}
	// With broadcast, each core keeps a share, whether it works on this layer or not,
	// and sends it to all when it is used.
	place, free := through.next(&e.lb, t.coreBytes, e.label)
	free = append(free, e.exposed()...)
	share := ceilDiv(t.unionBytes, schedule.CoresWithL1(e.cost.Spec()))
	var c int32
	if ok {
		c = e.add(qIn, &isa.Command{Kind: isa.L1Load, Portion: t.portion, Bytes: t.unionBytes * t.times,
			DurationPs: e.l1Latency(),
			Uses:       e.moves(0, 0, coreBytes, share*t.times)}, free, []int32{kept.load})
		e.cmds.mark(c).from = kept.place
		kept.place.use(c)
	} else {
		var own *stretch
		var there []int32
		if e.spec.CoreLink.Broadcast {
			own, there = e.home.keep(share, again, e.label)
		}
		c = e.add(qDDRLoad, &isa.Command{Kind: isa.DDRLoad, Portion: t.portion, Bytes: t.unionBytes * t.times,
			DurationPs: latency,
			Uses:       e.moves(far, 0, coreBytes, 0)}, free, there)
		if e.cmds.mark(c).roam = e.opt.Prefetch; own != nil {
			e.cmds.mark(c).from = own
			e.keep(t, own, c)
		}
	}
	e.cmds.mark(c).to = place
	place.use(c)
	e.recordUntil(place, isa.L1, -1)
	return c, place
}

// keep notes that a tile stays where a command has brought it.
func (e *emitter) keep(t *weightTile, place *stretch, load int32) {
	place.use(load)
	e.recordUntil(place, isa.L1, -1)
	e.home.tiles[t.key] = resident{load, place, t.coreBytes, e.running}
}

// cutAlike reports whether each core needs the same part of the weights for both steps.
func cutAlike(a, b *schedule.Step) bool {
	alike := func(a, b model.Interval) bool { return a.Len() == b.Len() }
	return a == b || a.Slices() == b.Slices() && a.Output == b.Output && a.Binding.Equal(b.Binding) &&
		slices.EqualFunc(a.CoreOutput, b.CoreOutput, alike)
}

// streamed is a load from the DDR through the LLB, where there is one, into the L1.
type streamed struct {
	part isa.Portion
	key  int32 // of weights; zero: activations; -1: of weights that can't be found again
	// roam: it depends on no computation (weights and network inputs).
	roam bool
	// bytes come from the DDR, llbBytes leave the LLB, coreBytes reach the busiest core.
	bytes, llbBytes, coreBytes int64
	next                       int64    // position of the next use of the key
	after                      []int32  // commands that the data waits for
	free                       []int32  // and those that its place in the L1 waits for
	place                      *stretch // in the L1, if its users are noted here
}

// stream moves in pieces that the pages can hold, or at once where there is no LLB, and returns the last command. Only
// a single piece can be found again.
func (e *emitter) stream(m streamed) int32 {
	uses := e.moves
	if m.key == 0 {
		uses = e.activationUses
	}
	if e.pages == nil {
		return e.add(qDDRLoad, &isa.Command{Kind: isa.DDRLoad, Portion: m.part, Bytes: m.bytes,
			DurationPs: e.ddrLatency() + e.l1Latency(), Uses: uses(m.llbBytes, 0, m.coreBytes, 0)}, m.free, m.after)
	}
	n := ceilDiv(m.bytes, e.pages.largest())
	last := int32(-1)
	for i := range n {
		key, next := int32(0), int64(never)
		if n == 1 {
			key = m.key
			if key > 0 {
				next = m.next
			}
		}
		part, bytes := m.part.Cut(i, n), piece(m.bytes, i, n)
		ent, deps := e.pages.add(key, bytes, next)
		e.load(ent, part, bytes, uses(bytes, bytes, 0, 0), m.roam, deps, m.after)
		last = e.add(qIn, &isa.Command{Kind: isa.L1Load, Portion: part, Bytes: bytes, DurationPs: e.l1Latency(),
			Uses: e.moves(0, piece(m.llbBytes, i, n), piece(m.coreBytes, i, n), 0)}, m.free, []int32{ent.load})
		e.cmds.mark(last).from, e.cmds.mark(last).to = ent.at, m.place
		e.pages.use(ent, last)
		if m.place != nil {
			m.place.use(last)
		}
	}
	return last
}

// A transfer is a part of what a step reads on its way into the L1s.
type transfer struct {
	part isa.Portion
	// Bytes that reach the busiest core, that reach all cores, each once, and that leave the LLB, or the DDR where there
	// is none; of an exchange those that cores send, and that the busiest lacks.
	core, all, once, llb, sent, lacks int64
	// Commands that the place in the L1 waits for, in two lists, and those that the data waits for.
	free  [2][]int32
	ready []int32
	stage *entry // where the LLB has it; nil: what is in the DDR passes by itself
}

// transfer brings a part of an input from where it is, and returns the last command.
func (l *lowering) transfer(in *incoming, t transfer) (c int32) {
	from := l.cmds.n
	cmd := isa.Command{Kind: isa.L1Load, Portion: t.part, Bytes: t.once, DurationPs: l.l1Latency()}
	switch {
	case in.val.Level == schedule.L1:
		cmd.Kind, cmd.Bytes, cmd.DurationPs = isa.Exchange, t.sent, l.exchangeLatency()
		cmd.Uses = l.moves(0, 2*t.sent, t.lacks, ceilDiv(t.sent, max(1, in.val.Binding.Cores())))
		c = l.add(qOut, &cmd, t.free[0], t.free[1], t.ready)
		in.state.place.use(c)
	case in.val.Level == schedule.LLB:
		cmd.Bytes, cmd.Uses = t.all, l.moves(0, t.llb, t.core, 0)
		c = l.add(qIn, &cmd, t.free[0], t.free[1], t.ready)
		in.state.place.use(c)
	case t.stage != nil:
		cmd.Uses = l.moves(0, t.llb, t.core, 0)
		c = l.add(qIn, &cmd, t.free[0], t.free[1], []int32{t.stage.load})
		l.cmds.mark(c).from = t.stage.at
		l.pages.use(t.stage, c)
	default:
		free := t.free[0]
		if len(t.free[1]) > 0 {
			l.scratch = append(append(l.scratch[:0], free...), t.free[1]...)
			free = l.scratch
		}
		c = l.stream(streamed{part: t.part, roam: l.early(in.val), bytes: t.once, llbBytes: t.llb, coreBytes: t.core,
			after: t.ready, free: free})
	}
	l.fetchAway(from, in)
	return c
}

// gatherIn brings bytes of an input from the DDR to the LLB, where they stay until they are let go.
func (l *lowering) gatherIn(in *incoming, part isa.Portion, bytes int64) *entry {
	ent, deps := l.pages.add(0, bytes, never)
	l.pages.pin(ent, true)
	l.toLLB(in, ent, part, bytes, deps)
	return ent
}

// toLLB loads part of an input from the DDR into an entry.
func (l *lowering) toLLB(in *incoming, ent *entry, part isa.Portion, bytes int64, deps []int32) {
	from := l.cmds.n
	l.load(ent, part, bytes, l.activationUses(bytes, bytes, 0, 0), l.early(in.val), deps, in.state.ready)
	l.fetchAway(from, in)
}

func (e *emitter) ddrLatency() int64 {
	return seconds(e.spec.DDR.LatencySeconds + e.spec.DDRLink.LatencySeconds)
}

// chipLatency is that of the link between chips.
func (e *emitter) chipLatency() int64 { return seconds(e.spec.Chips.Link.LatencySeconds) }

// l1Latency returns the latency of a move between the L1s and the memory above them, in picoseconds.
func (e *emitter) l1Latency() int64 {
	l := e.spec.CoreLink.LatencySeconds
	if e.net != nil {
		l *= float64(e.net.memoryHops)
	}
	if e.spec.LLB != nil {
		l += e.spec.LLB.LatencySeconds
	}
	return seconds(l)
}

// exchangeLatency returns the latency of a move from core to core, in picoseconds. The cores wait for it.
func (e *emitter) exchangeLatency() int64 {
	sync := seconds(e.spec.SyncSeconds)
	if e.net == nil {
		return 2*e.l1Latency() + sync
	}
	l := e.spec.CoreLink.LatencySeconds * float64(e.net.coreHops)
	if e.spec.LLB != nil {
		l += 2 * e.spec.LLB.LatencySeconds
	}
	return seconds(l) + sync
}

// moves are the uses of a move that takes this many bytes of the DDR, of the LLB, of the
// links into the cores and of those out of them.
func (e *emitter) moves(ddr, gb, in, out int64) []isa.Use {
	list := e.mem.uses.take(1 + numResources + e.net.resources())
	use := func(r int32, bytes int64) { list = append(list, isa.Use{Resource: r, Bytes: bytes}) }
	if ddr > 0 {
		use(e.chipOf(e.cluster), ddr)
		use(e.resource(rPort), ddr)
	}
	if gb > 0 && e.spec.LLB != nil {
		use(e.resource(rLLB), gb)
	}
	if in > 0 {
		use(e.resource(rIn), in)
	}
	if out > 0 {
		use(e.resource(rOut), out)
	}
	if e.net != nil && in+out > 0 {
		for i, x := range e.net.links {
			if bytes := e.net.bytes(x, max(ddr, gb), in, out); bytes > 0 {
				use(e.resource(numResources+i), bytes)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// activationUses are the uses of a move of activations.
func (e *emitter) activationUses(ddr, gb, in, out int64) []isa.Use {
	u := e.moves(ddr, gb, in, out)
	if eff := e.spec.DDRActivationEfficiency; eff > 0 && ddr > 0 {
		u[0].Bytes = int64(math.Ceil(float64(ddr) / eff))
	}
	return u
}

// recordUntil remembers a piece of memory for the program's buffer list, once: one that is in use until a step has
// run, -1: the present one.
func (e *emitter) recordUntil(s *stretch, level isa.Level, step int) {
	if !s.recorded && !e.outline {
		s.recorded = true
		e.stretches = append(e.stretches, levelled{s, level, step})
	}
}

// leave completes the buffers of a stream that are in use no more after a step, and forgets its values that are not.
func (e *emitter) leave(s *schedule.Schedule, step int, values []valueState) {
	if e.feed == nil || e.pages == nil { // without an LLB, weights stay in the L1 from step to step
		return
	}
	kept := e.stretches[:0]
	for _, x := range e.stretches {
		if x.last > step {
			kept = append(kept, x)
		} else if x.first >= 0 && x.hi > x.lo && !e.outline {
			e.buffer(0, x)
		}
	}
	clear(e.stretches[len(kept):])
	e.stretches = kept
	if step >= len(s.Steps) {
		return
	}
	st := &s.Steps[step]
	for i := range st.Reads {
		if v := st.Reads[i].Value; s.Values[v].Last <= step {
			values[v] = valueState{}
		}
	}
	for _, v := range st.Writes {
		if s.Values[v].Last <= step {
			values[v] = valueState{}
		}
	}
}

func (e *emitter) recordEntry(o *entry) {
	if e.outline {
		return
	}
	label := int32(0)
	if !e.bare {
		label = e.cmds.at(o.first).Label
	}
	from := len(e.p.Buffers)
	// One buffer per run of consecutive pages.
	for i := 0; i < len(o.pages); {
		j := i + 1
		for j < len(o.pages) && o.pages[j] == o.pages[j-1]+1 {
			j++
		}
		lo := int64(o.pages[i]) * e.pages.pageBytes
		run := stretch{lo: lo, hi: lo + int64(j-i)*e.pages.pageBytes, first: o.first, label: label,
			continued: j < len(o.pages)}
		switch {
		case e.feed == nil:
			run.lasts = append(append(make([]int32, 0, len(o.users)+1), o.users...), o.load)
			s := levelled{o.at, isa.LLB, 0}
			if i > 0 {
				s.stretch = new(stretch)
			}
			*s.stretch = run
			e.stretches = append(e.stretches, s)
		case o.first >= 0 && len(e.p.Buffers) == from: // it is complete, and no command asks for its number
			run.lasts = append(append(e.mem.order[:0], o.users...), o.load)
			e.mem.order = run.lasts
			e.buffer(0, levelled{&run, isa.LLB, 0})
		case o.first >= 0:
			b := e.p.Buffers[from]
			b.Address, b.Bytes, b.Continued = run.lo, run.hi-run.lo, run.continued
			e.putBuffer(b)
		}
		i = j
	}
}
