package sim

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/dsasched/dsasched/hardware/isa"
)

const (
	byteBits     = 20 // the rest of a flow is in 2^-byteBits byte
	maxFlowBytes = 1<<(63-byteBits) - 1

	// A flow at one unit of rate makes one unit of progress in this many
	// picoseconds: 10^12 ps/s · 2^-20 byte / 2^-12 byte/s.
	psPerUnit = 1_000_000_000_000 >> (byteBits - rateBits)

	// More than any chip has, and few enough to hold figures of each.
	maxClusters = 1 << 16

	never = math.MaxInt64
	none  = -1

	// Events between two polls of the context.
	eventsPerCheck = 4096
)

// Options of Run. The zero value is the default.
type Options struct {
	// OnCommand, if not nil, is called when a command ends: in order of time and,
	// among the ends that are due at one time, of index. A command of no length
	// ends after the one that let it start. Times are in picoseconds.
	OnCommand func(index int, start, end int64)
	// OnRate, if not nil, is called when the rate of a move changes: from ps on it
	// passes that many bytes per second through the resources of which it uses most (see
	// the package documentation), and 0 when it ends. Calls are in order of time.
	OnRate func(index int, ps, bytesPerSecond int64)
}

// LimitError reports that a program is beyond what the integers of the simulator
// can hold.
type LimitError struct {
	Program string
	Index   int // of the command, or -1
	What    string
}

func (e *LimitError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("program %q: %s", e.Program, e.What)
	}
	return fmt.Sprintf("program %q: command %d: %s", e.Program, e.Index, e.What)
}

// Run simulates p from time zero until its last command has ended. It fails if p
// does not pass its Check (*isa.ProblemError), is beyond the limits of the
// package documentation (*LimitError), or ctx is done.
func Run(ctx context.Context, p *isa.Program, opt Options) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := checkLimits(p); err != nil {
		return nil, err
	}
	f := noFold(p)
	if p.As != nil || opt.OnCommand == nil && opt.OnRate == nil { // who wants to hear of every command gets to
		f = foldClusters(p)
	}
	e := newEngine(p, opt, f)
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	f.spread(e.start)
	f.spread(e.end)
	return measure(p, e.start, e.end, f), nil
}

func checkLimits(p *isa.Program) error {
	bad := func(i int, format string, args ...any) error {
		return &LimitError{p.Name, i, fmt.Sprintf(format, args...)}
	}
	if p.Clusters < 0 || p.Clusters > maxClusters {
		return bad(-1, "%d clusters, at most %d can be simulated", p.Clusters, maxClusters)
	}
	if len(p.Queues) > maxFlows {
		return bad(-1, "%d queues, at most %d can be simulated", len(p.Queues), maxFlows)
	}
	total := make([]int64, len(p.Resources))
	for i, r := range p.Resources {
		if r.BytesPerSecond > maxBytesPerSecond {
			return bad(-1, "resource %d (%s) has %d bytes per second, at most %d can be simulated", i, r.Name, r.BytesPerSecond, int64(maxBytesPerSecond))
		}
		if r.BytesPerSecond < int64(len(p.Queues))>>rateBits+1 {
			return bad(-1, "resource %d (%s) has %d bytes per second, too few for %d queues", i, r.Name, r.BytesPerSecond, len(p.Queues))
		}
	}
	// Commands that stand for those of other clusters count as often.
	times := make([]int64, p.Clusters)
	for k := range times {
		if times[k]++; p.As != nil {
			times[k]--
			times[p.As[k]]++
		}
	}
	var payload, macs, ops int64
	for i := range p.Commands {
		c := &p.Commands[i]
		n := times[p.Queues[c.Queue].Cluster]
		var own int64
		for _, u := range c.Uses {
			if u.Bytes > maxFlowBytes-own {
				return bad(i, "moves more than %d bytes", int64(maxFlowBytes))
			}
			own += u.Bytes
			if !addTo(&total[u.Resource], u.Bytes, n) {
				return bad(i, "the bytes of resource %d up to here pass 2^63", u.Resource)
			}
		}
		if !addTo(&payload, c.Bytes, n) || !addTo(&macs, c.MACs, n) || !addTo(&ops, c.VectorOps, n) {
			return bad(i, "the sum of bytes, MACs or vector operations up to here passes 2^63")
		}
	}
	var held int64
	for i := range p.Buffers {
		if !addTo(&held, p.Buffers[i].Bytes, times[p.Buffers[i].Cluster]) {
			return bad(-1, "the sizes of the buffers up to %d pass 2^63 bytes", i)
		}
	}
	return nil
}

// addTo adds b, not negative, n times to *sum, and reports whether that fits.
func addTo(sum *int64, b, n int64) bool {
	if b > (math.MaxInt64-*sum)/n {
		return false
	}
	*sum += n * b
	return true
}

// phase is what the command at the head of a queue does.
type phase uint8

const (
	idle    phase = iota // nothing: it waits for dependencies, or there is none
	fixed                // takes its duration
	latency              // a move that will flow
	flowing
)

// lane is the state of a queue.
type lane struct {
	next    int32 // its first command that has not started, or none
	command int32 // that runs, if phase is not idle
	phase   phase
	// Of a flow: rate, what remained at time since, in units.
	rate  uint64
	rest  uint64
	since int64
}

// job is what the event loop needs of a command.
type job struct {
	duration int64
	queue    int32
	waiting  int32 // dependencies that have not ended
	first    int32 // the first of the list of those that depend on it, in engine.arcs; 0: none
	next     int32 // the next command of its queue
}

// arc is an entry in a list of commands that depend on another.
type arc struct{ to, next int32 }

type engine struct {
	p          *isa.Program
	opt        Options
	now        int64
	start, end []int64

	lanes []lane
	jobs  []job
	arcs  []arc

	events  agenda
	sharing *sharing
	limit   int64 // the time at which the run is given up
	left    int   // commands that have not ended, without those of copies
}

func newEngine(p *isa.Program, opt Options, f *fold) *engine {
	n := len(p.Commands)
	e := &engine{
		p: p, opt: opt,
		start: make([]int64, n), end: make([]int64, n),
		lanes:   make([]lane, len(p.Queues)),
		jobs:    make([]job, n),
		sharing: newSharing(p.Resources, len(p.Queues)),
		limit:   never,
	}
	e.sharing.shared = f.shared
	e.sharing.weight = make([]uint64, len(p.Queues))
	for q := range p.Queues {
		e.sharing.weight[q] = f.weight[p.Queues[q].Cluster]
		e.lanes[q].next = none
	}
	e.events.init(len(p.Queues))

	arcs := 1
	for i := range p.Commands {
		arcs += len(p.Commands[i].Deps)
	}
	e.arcs = make([]arc, 1, arcs)
	for i := n - 1; i >= 0; i-- { // so that the lists are in order
		c := &p.Commands[i]
		if f.isCopy(p.Queues[c.Queue].Cluster) {
			continue
		}
		e.left++
		j := &e.jobs[i]
		j.duration, j.queue, j.waiting = c.DurationPs, c.Queue, int32(len(c.Deps))
		j.next, e.lanes[c.Queue].next = e.lanes[c.Queue].next, int32(i)
		for _, d := range c.Deps {
			e.arcs = append(e.arcs, arc{int32(i), e.jobs[d].first})
			e.jobs[d].first = int32(len(e.arcs) - 1)
		}
	}
	return e
}

func (e *engine) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for q := range e.lanes {
		e.tryStart(int32(q))
	}
	budget := eventsPerCheck
	for e.events.len() > 0 {
		q, when := e.events.min()
		if when == never {
			return &LimitError{e.p.Name, int(e.lanes[q].command), "ends after more than 2^63 ps"}
		}
		// All that happens at one time happens before the rates are found
		// again; a flow that begins or ends leaves no trace in between.
		if when > e.limit {
			return nil
		}
		e.now = when
		for when == e.now {
			e.handle(q)
			if budget--; budget == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				budget = eventsPerCheck
			}
			if e.events.len() == 0 {
				break
			}
			q, when = e.events.min()
		}
		e.adjust()
	}
	if e.left != 0 {
		// Dependencies point backwards and queues keep the order, so the first
		// command that has not ended can always run.
		panic("sim: commands are left without an event")
	}
	return nil
}

// tryStart starts the next command of q at the present time if nothing is in its
// way.
func (e *engine) tryStart(q int32) {
	l := &e.lanes[q]
	if l.phase != idle || l.next == none || e.jobs[l.next].waiting > 0 {
		return
	}
	l.command = l.next
	j := &e.jobs[l.command]
	l.next = j.next
	e.start[l.command] = e.now
	l.phase = fixed
	for _, u := range e.p.Commands[l.command].Uses {
		if u.Bytes > 0 {
			l.phase = latency
			break
		}
	}
	when := int64(never)
	if j.duration < never-e.now {
		when = e.now + j.duration
	}
	e.events.set(q, when, l.command)
}

// handle lets happen what is due on q, whose event is the earliest.
func (e *engine) handle(q int32) {
	l := &e.lanes[q]
	switch l.phase {
	case latency:
		own := e.sharing.add(q, e.p.Commands[l.command].Uses)
		l.phase = flowing
		l.rate, l.rest, l.since = 0, uint64(own)<<byteBits, e.now
		e.events.drop(q) // adjust will give it a rate and an event
		return
	case flowing:
		e.sharing.remove(q)
		if e.opt.OnRate != nil {
			e.opt.OnRate(int(l.command), e.now, 0)
		}
	}
	l.phase = idle
	c := l.command
	e.end[c] = e.now
	e.left--
	if e.opt.OnCommand != nil {
		e.opt.OnCommand(int(c), e.start[c], e.now)
	}
	e.tryStart(q)
	for a := e.jobs[c].first; a > 0; {
		d := e.arcs[a]
		a = d.next
		j := &e.jobs[d.to]
		if j.waiting--; j.waiting == 0 {
			e.tryStart(j.queue)
		}
	}
	if l.phase == idle {
		e.events.drop(q)
	}
}

// adjust gives each flow its new rate.
func (e *engine) adjust() {
	for _, q := range e.sharing.solve() {
		l := &e.lanes[q]
		if l.rate > 0 {
			hi, lo := bits.Mul64(l.rate, uint64(e.now-l.since))
			// The quotient is less than the rest: the flow has not ended.
			l.rest -= perUnit.quotient(hi, lo)
		}
		l.rate, l.since = e.sharing.rate[q], e.now
		if e.opt.OnRate != nil {
			e.opt.OnRate(int(l.command), e.now, int64(l.rate>>rateBits))
		}
		when := int64(never)
		if d := ceilMulDiv(l.rest, psPerUnit, l.rate); d < uint64(never-e.now) {
			when = e.now + int64(d)
		}
		e.events.set(q, when, l.command)
	}
}

var perUnit = newDivisor(psPerUnit)

// ceilMulDiv is a·b/c rounded up, or MaxUint64 if that does not fit.
func ceilMulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c-1, 0)
	hi += carry
	if hi >= c {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, c)
	return q
}
