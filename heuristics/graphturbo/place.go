package graphturbo

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// The rules that choose what leaves a level when space is short.
const (
	// LongestLifetime is the paper's (§4.3): the value that lives over the most steps, which probably is a small one.
	LongestLifetime = "longest-lifetime"
	// LargestFirst is prior work's.
	LargestFirst = "largest-first"
	// LeastMoved is the value whose moves take least time for each byte of what is missing that it frees. What has left
	// comes back where others that left after it have made room.
	LeastMoved = "least-moved"
)

// DoesNotFitError reports a layer of which not even one tile fits the L1.
type DoesNotFitError struct {
	Layer   string
	Tensor  string
	Missing int64 // bytes per core
	Needed  int64
	Has     int64
}

// TooLarge marks the error as one that another chunk need not have.
func (e *DoesNotFitError) TooLarge() {}

func (e *DoesNotFitError) Error() string {
	return fmt.Sprintf(
		"layer %q: not even one tile fits the L1: tensor %q needs %s per core with its tile's other operands, the buffer has %s, %s too few",
		e.Layer, e.Tensor, hardware.Bytes(e.Needed).Rounded(), hardware.Bytes(e.Has).Rounded(),
		hardware.Bytes(e.Missing).Rounded())
}

// Place is §4.3: a level and an address for every value of a schedule whose steps are built. Values start at their
// wanted level; a step at which the live values and what must pass through do not fit spills by the rule, L1 to LLB to
// DDR, until all steps fit. A spilled value lives at its lower level from the start; readers stream it. Where it has
// been chosen what leaves the L1, the rule chooses only what has to go beside that, and pack is asked for addresses,
// multiples of the grain, before they are looked for; it may find none. nil: it is not asked.
func Place(s *schedule.Schedule, how scheduler.Placing,
	pack func(list []Extent, capacity int64) ([]int64, bool)) error {
	p := &placer{s: s, rule: how.Rule, chosen: how.Chosen || how.Needed && !how.Over}
	if how.Chosen {
		p.pack = pack
	}
	if how.Over {
		p.overlays(s.Overwritable)
	}
	return p.place(how.Spilled)
}

// overlays notes what takes the place of what.
func (p *placer) overlays(of func(*schedule.Step) (from *schedule.Value, rows int64)) {
	for i := range p.s.Steps {
		from, _ := of(&p.s.Steps[i])
		if from == nil || from.CoreBytes == 0 {
			continue
		}
		if p.over == nil {
			p.over = slices.Repeat([]int{-1}, len(p.s.Values))
			p.under = slices.Clone(p.over)
		}
		to := p.s.Steps[i].Writes[0]
		p.over[to], p.under[from.ID] = from.ID, to
	}
}

// overwritten is the value in whose place one is put; nil: none.
func (p *placer) overwritten(v *schedule.Value) *schedule.Value {
	if p.over == nil || p.over[v.ID] < 0 || v.Level != schedule.L1 {
		return nil
	}
	if from := &p.s.Values[p.over[v.ID]]; from.Level == schedule.L1 {
		return from
	}
	return nil
}

// begins is the first step at which a value takes space of its own.
func (p *placer) begins(v *schedule.Value) int {
	if p.overwritten(v) != nil {
		return v.Def + 1
	}
	return v.Def
}

// beside lists a value and those that share its place in the L1.
func (p *placer) beside(v *schedule.Value) []*schedule.Value {
	list := []*schedule.Value{v}
	if p.over != nil {
		for _, i := range [2]int{p.over[v.ID], p.under[v.ID]} {
			if i >= 0 {
				list = append(list, &p.s.Values[i])
			}
		}
	}
	return list
}

// An Extent is space that is in use from step First to step Last, both included.
type Extent struct {
	First, Last int
	Bytes       int64
}

func (p *placer) place(spilled []int) error {
	s := p.s
	s.L1Capacity = s.WeightRoom.DataBytes(s.Spec)
	s.LLBCapacity = 0
	if s.Spec.LLB != nil {
		s.LLBCapacity = int64(s.Spec.LLB.SizeBytes)
	} else {
		for i := range s.Values {
			if v := &s.Values[i]; v.Level == schedule.LLB {
				v.Level = schedule.DDR
			}
		}
	}
	for _, id := range spilled {
		if v := &s.Values[id]; v.Level == schedule.L1 {
			p.demote(v, v.Def)
		}
	}
	if err := p.levels(); err != nil {
		return err
	}
	return p.addresses()
}

// A tiling is a number of tiles in which a step can work, and the L1 space per core
// that what passes through it then takes.
type tiling struct{ Tiles, StageBytes int64 }

// Tilings lists those that Place tries, from one tile on; the space does not grow.
func Tilings(s *schedule.Schedule, st *schedule.Step) []tiling {
	most := st.MostTiles()
	list := []tiling{{1, stage(s, st, 1)}}
	for n := int64(1); n < most; {
		n = nextTiles(n, most)
		list = append(list, tiling{n, stage(s, st, n)})
	}
	return list
}

// PassesAgain is the number of bytes of parameters that pass to the busiest core for each tile
// of a step, 0 if they stay from tile to tile.
func PassesAgain(s *schedule.Schedule, st *schedule.Step) int64 {
	weights := int64(0)
	for _, r := range st.Params {
		if !r.Rows {
			weights += r.CoreBytes
		}
	}
	layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	if s.Graph.Op(layer.Anchor).Class() != model.MatrixClass || st.Attending != nil || weights <= s.RingBytes() {
		return 0
	}
	return weights
}

type placer struct {
	s    *schedule.Schedule
	rule string
	// chosen: what is worth spilling has been decided, and only what must be is left.
	chosen bool
	pack   func(list []Extent, capacity int64) ([]int64, bool)
	values *spans[int32] // those that steps make, but for some in the DDR
	// For LeastMoved: the bytes that move if a value is not in the L1, and those of values in the LLB, by step.
	moved, llb []int64
	returned   bool // what had left
	// over has the values in whose place in the L1 others are put, while both stay there, and under
	// the others by them; -1: none. nil: nothing overwrites anything.
	over, under []int
}

// stage is the L1 space per core that a step needs for what passes through it, if it passes in the given number of
// tiles: data of other cores, inputs from other levels, and outputs for other levels. In more than one tile two are in
// flight at a time.
func stage(s *schedule.Schedule, st *schedule.Step, tiles int64) int64 {
	total, room := int64(0), [4]schedule.StagePart{}
	for _, p := range s.StagedIn(room[:0], st) {
		total += p.Space(tiles)
	}
	return total
}

func (p *placer) live(level schedule.Level, step int, visit func(*schedule.Value)) {
	if p.values == nil {
		p.values = newSpans[int32](len(p.s.Steps) + 1)
		for i := range p.s.Values {
			if v := &p.s.Values[i]; v.Def >= 0 {
				p.values.add(v.Def, v.Last, int32(i))
			}
		}
	}
	p.values.at(step, func(i int32) bool {
		v := &p.s.Values[i]
		if v.Level == level {
			visit(v)
		}
		return v.Level != schedule.DDR // what comes back from there makes a new list
	})
}

func (p *placer) levels() error {
	s := p.s
	// Bytes of live values per step, kept up to date as values move.
	l1 := make([]int64, len(s.Steps)+1)
	llb := make([]int64, len(s.Steps)+1)
	p.llb = llb
	add := func(v *schedule.Value, sign int64) {
		if v.Def < 0 {
			return
		}
		for t := p.begins(v); t <= min(v.Last, len(s.Steps)-1); t++ {
			switch v.Level {
			case schedule.L1:
				l1[t] += sign * v.CoreBytes
			case schedule.LLB:
				llb[t] += sign * schedule.Align(v.Bytes)
			}
		}
	}
	for i := range s.Values {
		add(&s.Values[i], 1)
	}
	move := func(v *schedule.Value, to func()) {
		list := p.beside(v)
		for _, x := range list {
			add(x, -1)
		}
		to()
		for _, x := range list {
			add(x, 1)
		}
	}
	leave := func(v *schedule.Value, step int) { move(v, func() { p.demote(v, step) }) }
	llbRoom := s.LLBCapacity - LLBReserve(s)
	fits := func(t int) bool {
		return llb[t] <= llbRoom && l1[t]+stage(s, &s.Steps[t], s.Steps[t].MostTiles()) <= s.L1Capacity
	}
	// back takes a value back to a nearer level if there is room all the time.
	back := func(v *schedule.Value) bool {
		from := v.Level
		for to := v.Wanted; to < from; to++ {
			if to == schedule.LLB && s.LLBCapacity == 0 {
				continue
			}
			move(v, func() { v.Level = to })
			t := v.Def
			for t <= min(v.Last, len(s.Steps)-1) && fits(t) {
				t++
			}
			if t > min(v.Last, len(s.Steps)-1) {
				return true
			}
			move(v, func() { v.Level = from })
		}
		return false
	}
	for changed := true; changed; {
		changed = false
		for t := range s.Steps {
			st := &s.Steps[t]
			for {
				need := l1[t] + stage(s, st, st.MostTiles())
				if need <= s.L1Capacity {
					break
				}
				v := p.victim(schedule.L1, t, need-s.L1Capacity)
				if v == nil && !st.Panels {
					st.Panels = true
					continue
				}
				if v == nil {
					return p.doesNotFit(st, need)
				}
				leave(v, t)
				changed = true
			}
			for _, v := range p.cheaper(st, l1[t]) {
				leave(v, t)
				changed = true
			}
			for llb[t] > llbRoom {
				v := p.victim(schedule.LLB, t, llb[t]-llbRoom)
				leave(v, t)
				changed = true
			}
		}
		if changed || p.returned || p.rule != LeastMoved {
			continue
		}
		// Once only: values that leave again behind this find no address, or make room for a result.
		p.returned, p.values = true, nil
		for _, level := range []schedule.Level{schedule.DDR, schedule.LLB} { // what crosses the DDR first
			for _, x := range slices.Backward(slices.Clone(s.Spills)) {
				if v := &s.Values[x.Value]; x.To == level && v.Level == level && back(v) {
					gone := func(y schedule.Spill) bool { return y.Value == v.ID && y.To > v.Level }
					s.Spills = slices.DeleteFunc(s.Spills, gone)
					changed = true
				}
			}
		}
	}
	return nil
}

// cheaper lists values to spill at a step because streaming the step's weights once per tile, with too little space for
// the whole, would take longer than the spills. used is the bytes of the live values.
func (p *placer) cheaper(st *schedule.Step, used int64) []*schedule.Value {
	s := p.s
	weights := PassesAgain(s, st)
	if p.chosen || weights == 0 {
		return nil
	}
	llbRate := s.Spec.DDR.BandwidthBytesPerSecond / float64(s.Spec.Clusters)
	if s.Spec.LLB != nil {
		llbRate = s.Spec.LLB.BandwidthBytesPerSecond
	}
	again := float64(weights) / s.Spec.CoreLink.BandwidthBytesPerSecond
	tilesFor := func() int64 {
		most := st.MostTiles()
		n := int64(1)
		for n < most && used+stage(s, st, n) > s.L1Capacity {
			n = nextTiles(n, most)
		}
		return n
	}
	var victims []*schedule.Value
	best, keep := float64(tilesFor()-1)*again, 0
	moved := 0.0
	// Try out the rule's victims one after the other, then put them back.
	for best > moved {
		v := p.victim(schedule.L1, st.ID, used+stage(s, st, 1)-s.L1Capacity)
		if v == nil {
			break
		}
		victims = append(victims, v)
		used -= v.CoreBytes
		v.Level = schedule.LLB
		readers := 0
		for i := range s.Steps[v.Def:min(v.Last+1, len(s.Steps))] {
			for _, r := range s.Steps[v.Def+i].Reads {
				if r.Value == v.ID {
					readers++
				}
			}
		}
		moved += float64(v.Bytes) * float64(1+readers) / llbRate
		if c := moved + float64(tilesFor()-1)*again; c < best {
			best, keep = c, len(victims)
		}
	}
	for _, v := range victims {
		v.Level = schedule.L1
	}
	return victims[:keep]
}

// LLBReserve is the part of the LLB that values never take, for weights and
// transfers on their way: a sixteenth, or as many as Reserve says. These have all that values leave free.
func LLBReserve(s *schedule.Schedule) int64 { return s.LLBCapacity * max(1, s.Reserve) / 16 }

func (p *placer) demote(v *schedule.Value, step int) {
	to := v.Level + 1
	if to == schedule.LLB && p.s.LLBCapacity == 0 {
		to = schedule.DDR
	}
	p.s.Spills = append(p.s.Spills, schedule.Spill{Value: v.ID, From: v.Level, To: to, Step: step, Bytes: v.Bytes})
	v.Level = to
}

// victim is the value that leaves a level next at a step that misses so many bytes there; nil: none.
func (p *placer) victim(level schedule.Level, step int, missing int64) *schedule.Value {
	var best *schedule.Value
	least := 0.0
	p.live(level, step, func(v *schedule.Value) {
		price := p.price(v, missing)
		if best == nil || p.before(v, best, price-least) {
			best, least = v, price
		}
	})
	return best
}

// price is the time that moves take if a value leaves its level, for each byte of what is missing that it frees; 0
// under other rules than LeastMoved.
func (p *placer) price(v *schedule.Value, missing int64) float64 {
	if p.rule != LeastMoved {
		return 0
	}
	s := p.s
	if p.moved == nil { // once to where the value is, and from there to each reader
		p.moved = make([]int64, len(s.Values))
		for i := range s.Values {
			p.moved[i] = s.Values[i].Bytes
		}
		for i := range s.Steps {
			for _, r := range s.Steps[i].Reads {
				p.moved[r.Value] += r.NeedBytes
			}
		}
	}
	rate, freed := s.Spec.DDR.BandwidthBytesPerSecond/float64(s.Spec.Clusters), schedule.Align(v.Bytes)
	if v.Level == schedule.L1 {
		freed = v.CoreBytes
		full := func(used int64) bool { return used+schedule.Align(v.Bytes) > s.LLBCapacity-LLBReserve(s) }
		if s.LLBCapacity > 0 && !slices.ContainsFunc(p.llb[v.Def:min(v.Last+1, len(s.Steps))], full) {
			rate = s.Spec.LLB.BandwidthBytesPerSecond
		}
	}
	return float64(p.moved[v.ID]) / rate / float64(max(1, min(freed, missing)))
}

// before reports whether a, whose price exceeds that of b by so much, spills before b; a total order. Outputs of the
// network, which are stored anyway, go first.
func (p *placer) before(a, b *schedule.Value, dearer float64) bool {
	if x := p.s.Graph.IsOutput(a.Tensor); x != p.s.Graph.IsOutput(b.Tensor) {
		return x
	}
	if dearer != 0 {
		return dearer < 0
	}
	longer, larger := cmp.Compare(b.Last-b.Def, a.Last-a.Def), cmp.Compare(b.Bytes, a.Bytes)
	if p.rule == LargestFirst {
		longer, larger = larger, longer
	}
	return cmp.Or(longer, larger, cmp.Compare(a.ID, b.ID)) < 0
}

func (p *placer) doesNotFit(st *schedule.Step, need int64) error {
	s := p.s
	layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	worst, name := int64(-1), ""
	consider := func(t model.TensorID, n int64) {
		if n > worst {
			worst, name = n, s.Graph.Tensor(t).Name
		}
	}
	for _, r := range st.Reads {
		consider(s.Values[r.Value].Tensor, r.CoreNeedBytes)
	}
	for _, w := range st.Writes {
		consider(s.Values[w].Tensor, s.Values[w].CoreBytes)
	}
	return &DoesNotFitError{Layer: layer.Name, Tensor: name, Missing: need - s.L1Capacity, Needed: need, Has: s.L1Capacity}
}

// buffer is something that needs an address over an interval of steps.
type buffer struct {
	start, end int // inclusive
	needed     int // of an address that is kept free sooner, when it must be
	size       int64
	value      *schedule.Value
	step       *schedule.Step
	address    int64
}

// addresses gives every L1 and LLB value, and every step's stage, an address: largest first, each at the lowest address
// free over its whole life. Where fragmentation defeats that, the stage is cut into more tiles, then a value is
// spilled.
func (p *placer) addresses() error {
	s := p.s
	for {
		l1 := make([]int64, len(s.Steps))
		for i := range s.Values {
			if v := &s.Values[i]; v.Level == schedule.L1 {
				for t := p.begins(v); t <= min(v.Last, len(s.Steps)-1); t++ {
					l1[t] += v.CoreBytes
				}
			}
		}
		var bufs []*buffer
		for i := range s.Values {
			if v := &s.Values[i]; v.Level == schedule.L1 && v.CoreBytes > 0 && p.overwritten(v) == nil {
				bufs = append(bufs, p.buffer(v))
			}
		}
		values, again := len(bufs), false
		for t := range s.Steps {
			st := &s.Steps[t]
			most := st.MostTiles()
			st.Tiles = 1
			for stage(s, st, st.Tiles) > s.L1Capacity-l1[t] && st.Tiles < most {
				st.Tiles = nextTiles(st.Tiles, most)
			}
			st.StageBytes = stage(s, st, st.Tiles)
			if st.StageBytes > 0 {
				bufs = append(bufs, &buffer{start: t, end: t, size: st.StageBytes, step: st})
			}
			again = p.separate(st) || again
		}
		if again {
			if err := p.levels(); err != nil {
				return err
			}
			continue
		}
		// Values first, by size; stages then fit into what is left at their step.
		sort.SliceStable(bufs[:values], func(i, j int) bool { return bufs[i].size > bufs[j].size })
		shrink := func(b *buffer) bool {
			if b.step == nil {
				return false
			}
			most := b.step.MostTiles()
			if b.step.Tiles >= most {
				return false
			}
			b.step.Tiles = nextTiles(b.step.Tiles, most)
			b.step.StageBytes = stage(s, b.step, b.step.Tiles)
			b.size = b.step.StageBytes
			return true
		}
		var failed *buffer
		if !p.packed(bufs) {
			failed = pack(bufs, s.L1Capacity, shrink)
		}
		if failed != nil {
			v := p.victim(schedule.L1, failed.start, failed.size)
			if v == nil {
				return p.doesNotFit(failed.step, failed.size)
			}
			p.demote(v, failed.start)
			if err := p.levels(); err != nil {
				return err
			}
			continue
		}
		for i := range s.Steps {
			again = p.separate(&s.Steps[i]) || again
		}
		if again {
			if err := p.levels(); err != nil {
				return err
			}
			continue
		}
		settle(bufs)
		p.share()
		break
	}
	for {
		var bufs []*buffer
		for i := range s.Values {
			if v := &s.Values[i]; v.Level == schedule.LLB && v.Bytes > 0 {
				bufs = append(bufs, &buffer{start: v.Def, end: v.Last, size: schedule.Align(v.Bytes), value: v})
			}
		}
		sort.SliceStable(bufs, func(i, j int) bool { return bufs[i].size > bufs[j].size })
		if failed := pack(bufs, s.LLBCapacity-LLBReserve(s), nil); failed != nil {
			p.demote(p.victim(schedule.LLB, failed.start, failed.size), failed.start)
			continue
		}
		s.LLBActivationBytes = 0
		for _, b := range bufs {
			b.value.Address = b.address
			s.LLBActivationBytes = max(s.LLBActivationBytes, b.address+b.size)
		}
		return nil
	}
}

// buffer returns the buffer of a value in the L1, which values that overwrite it share.
func (p *placer) buffer(v *schedule.Value) *buffer {
	b := &buffer{start: v.Def, needed: v.Def, end: v.Last, size: v.CoreBytes, value: v}
	for p.under != nil && p.under[v.ID] >= 0 && p.s.Values[p.under[v.ID]].Level == schedule.L1 {
		v = &p.s.Values[p.under[v.ID]]
		b.end = v.Last
	}
	return b
}

// separate gives the result of a step that works in several tiles a place of its own, if it has none.
func (p *placer) separate(st *schedule.Step) bool {
	if st.Tiles < 2 || len(st.Writes) != 1 || p.overwritten(&p.s.Values[st.Writes[0]]) == nil {
		return false
	}
	to := st.Writes[0]
	p.under[p.over[to]], p.over[to] = -1, -1
	return true
}

// share gives a value the address of the one that it replaces.
func (p *placer) share() {
	for i := range p.s.Steps { // what is overwritten was made before
		for _, w := range p.s.Steps[i].Writes {
			if from := p.overwritten(&p.s.Values[w]); from != nil {
				p.s.Values[w].Address = from.Address
			}
		}
	}
}

// apartRounds is by how many steps an address may be free sooner than it must be.
const apartRounds = 2

// Apart gives what has an address in the L1 of a placed schedule another one, if it can: one that
// is free for some steps of its kernel before it is needed, so that what is loaded or made there
// waits less for what was there before. Levels and tiles stay.
func Apart(s *schedule.Schedule) {
	// From step ready[t] on there is all that step t reads.
	ready := make([]int, len(s.Steps))
	first := 0
	p := &placer{s: s}
	p.overlays(s.Overwritten)
	var bufs []*buffer
	for i := range s.Values {
		if v := &s.Values[i]; v.Level == schedule.L1 && v.CoreBytes > 0 && p.overwritten(v) == nil {
			bufs = append(bufs, p.buffer(v))
		}
	}
	slices.SortStableFunc(bufs, func(a, b *buffer) int { return cmp.Compare(b.size, a.size) })
	for t := range s.Steps {
		st := &s.Steps[t]
		if t > 0 && s.Steps[t-1].Instance != st.Instance {
			first = t
		}
		ready[t] = first
		for _, r := range st.Reads {
			if v := &s.Values[r.Value]; v.Instance == st.Instance {
				ready[t] = max(ready[t], v.Def+1)
			}
		}
		if st.StageBytes > 0 {
			bufs = append(bufs, &buffer{start: t, needed: t, end: t, size: st.StageBytes, step: st})
		}
	}
	for range apartRounds {
		for _, b := range bufs {
			b.start = max(b.start-1, ready[b.needed])
		}
		if pack(bufs, s.L1Capacity, func(b *buffer) bool {
			b.start++
			return b.start <= b.needed
		}) != nil {
			return
		}
		settle(bufs)
		p.share()
	}
}

func settle(bufs []*buffer) {
	for _, b := range bufs {
		if b.value != nil {
			b.value.Address = b.address
		} else {
			b.step.StageAddress = b.address
		}
	}
}

// packed asks for addresses with stages as they are, then with smaller and smaller
// ones for steps that lose little by more tiles.
func (p *placer) packed(bufs []*buffer) bool {
	if p.pack == nil {
		return false
	}
	s := p.s
	list := make([]Extent, len(bufs))
	tiles := make([]int64, len(bufs))
	for i, b := range bufs {
		list[i] = Extent{b.start, min(b.end, len(s.Steps)-1), b.size}
		if b.step != nil {
			tiles[i] = b.step.Tiles
		}
	}
	for changed := true; changed; {
		at, ok := p.pack(list, s.L1Capacity)
		if ok {
			for i, b := range bufs {
				b.address = at[i]
				if b.step != nil {
					b.step.Tiles, b.step.StageBytes = tiles[i], list[i].Bytes
				}
			}
			return true
		}
		changed = false
		for i, b := range bufs {
			if b.step == nil || PassesAgain(s, b.step) > 0 {
				continue
			}
			if most := b.step.MostTiles(); tiles[i] < most {
				tiles[i] = nextTiles(tiles[i], most)
				list[i].Bytes, changed = stage(s, b.step, tiles[i]), true
			}
		}
	}
	return false
}

// nextTiles is the next larger number of tiles to try.
func nextTiles(n, most int64) int64 { return min(most, n*2) }

// pack gives each buffer, in the order given, the lowest address that is free over its life. shrink may make one that
// does not fit smaller. The first that does not fit is returned.
func pack(bufs []*buffer, capacity int64, shrink func(*buffer) bool) *buffer {
	end := -1
	for _, b := range bufs {
		end = max(end, b.end)
	}
	placed := newSpans[*buffer](end + 1)
	var beside []*buffer
	for _, b := range bufs {
		for {
			beside = placed.between(b.start, b.end, beside[:0])
			slices.SortFunc(beside, func(x, y *buffer) int { return cmp.Compare(x.address, y.address) })
			at := int64(0)
			for _, o := range beside {
				if o.address >= at+b.size {
					break
				}
				at = max(at, o.address+o.size)
			}
			if at+b.size <= capacity {
				b.address = at
				break
			}
			if shrink == nil || !shrink(b) {
				return b
			}
		}
		placed.add(b.start, b.end, b)
	}
	return nil
}
