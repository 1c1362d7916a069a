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
	if opt.OnCommand == nil && opt.OnRate == nil { // who wants to hear of every command gets to
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
	var payload, macs, ops int64
	for i := range p.Commands {
		c := &p.Commands[i]
		var own int64
		for _, u := range c.Uses {
			if u.Bytes > maxFlowBytes-own {
				return bad(i, "moves more than %d bytes", int64(maxFlowBytes))
			}
			own += u.Bytes
			if !addTo(&total[u.Resource], u.Bytes) {
				return bad(i, "the bytes of resource %d up to here pass 2^63", u.Resource)
			}
		}
		if !addTo(&payload, c.Bytes) || !addTo(&macs, c.MACs) || !addTo(&ops, c.VectorOps) {
			return bad(i, "the sum of bytes, MACs or vector operations up to here passes 2^63")
		}
	}
	var held int64
	for i := range p.Buffers {
		if !addTo(&held, p.Buffers[i].Bytes) {
			return bad(-1, "the sizes of the buffers up to %d pass 2^63 bytes", i)
		}
	}
	return nil
}

// addTo adds b, not negative, to *sum, and reports whether that fits.
func addTo(sum *int64, b int64) bool {
	if b > math.MaxInt64-*sum {
		return false
	}
	*sum += b
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
	next, last int32 // its commands that have not started: engine.order[next:last]
	command    int32 // that runs, if phase is not idle
	phase      phase
	// Of a flow: rate, what remained at time since, in units.
	rate  uint64
	rest  uint64
	since int64
}

type engine struct {
	p          *isa.Program
	opt        Options
	now        int64
	start, end []int64

	lanes []lane
	order []int32 // commands by queue, then by index

	waiting []int32 // of each command: dependencies that have not ended
	// dependents[firstDependent[c]:firstDependent[c+1]] wait for command c.
	firstDependent []int32
	dependents     []int32

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
		order:   make([]int32, n),
		waiting: make([]int32, n),
		sharing: newSharing(p.Resources, len(p.Queues)),
		limit:   never,
	}
	e.sharing.shared = f.shared
	e.sharing.weight = make([]uint64, len(p.Queues))
	for q := range p.Queues {
		e.sharing.weight[q] = f.weight[p.Queues[q].Cluster]
	}
	e.events.init(len(p.Queues))

	count := make([]int32, len(p.Queues)+1)
	first := make([]int32, n+1)
	for i := range p.Commands {
		c := &p.Commands[i]
		if f.isCopy(p.Queues[c.Queue].Cluster) {
			continue
		}
		e.left++
		count[c.Queue+1]++
		e.waiting[i] = int32(len(c.Deps))
		for _, d := range c.Deps {
			first[d+1]++
		}
	}
	for q := range e.lanes {
		count[q+1] += count[q]
		e.lanes[q].next, e.lanes[q].last = count[q], count[q+1]
	}
	for i := range n {
		first[i+1] += first[i]
	}
	e.firstDependent = first
	e.dependents = make([]int32, first[n])
	fill := make([]int32, n)
	for i := range p.Commands {
		c := &p.Commands[i]
		if f.isCopy(p.Queues[c.Queue].Cluster) {
			continue
		}
		e.order[count[c.Queue]] = int32(i)
		count[c.Queue]++
		for _, d := range c.Deps {
			e.dependents[first[d]+fill[d]] = int32(i)
			fill[d]++
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
	if l.phase != idle || l.next == l.last || e.waiting[e.order[l.next]] > 0 {
		return
	}
	l.command = e.order[l.next]
	l.next++
	c := &e.p.Commands[l.command]
	e.start[l.command] = e.now
	l.phase = fixed
	for _, u := range c.Uses {
		if u.Bytes > 0 {
			l.phase = latency
		}
	}
	when := int64(never)
	if c.DurationPs < never-e.now {
		when = e.now + c.DurationPs
	}
	e.events.set(q, when, l.command)
}

// handle lets happen what is due on q, whose event is the earliest.
func (e *engine) handle(q int32) {
	l := &e.lanes[q]
	e.events.pop()
	switch l.phase {
	case latency:
		own := e.sharing.add(q, e.p.Commands[l.command].Uses)
		l.phase = flowing
		l.rate, l.rest, l.since = 0, uint64(own)<<byteBits, e.now
		return // adjust will give it a rate and an event
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
	for _, d := range e.dependents[e.firstDependent[c]:e.firstDependent[c+1]] {
		if e.waiting[d]--; e.waiting[d] == 0 {
			e.tryStart(e.p.Commands[d].Queue)
		}
	}
}

// adjust gives each flow its new rate.
func (e *engine) adjust() {
	for _, q := range e.sharing.solve() {
		l := &e.lanes[q]
		if l.rate > 0 {
			hi, lo := bits.Mul64(l.rate, uint64(e.now-l.since))
			// The quotient is less than the rest: the flow has not ended.
			progress, _ := bits.Div64(hi, lo, psPerUnit)
			l.rest -= progress
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
