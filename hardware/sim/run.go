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
	// OnCommand, if not nil, is called when a command ends: in order of time and, among the ends that are due at one
	// time, of index. A command of no length ends after the one that let it start. Times are in picoseconds.
	OnCommand func(index int, start, end int64)
	// OnRate, if not nil, is called when the rate of a move changes: from ps on it
	// passes that many bytes per second through the resources of which it uses most (see
	// the package documentation), and 0 when it ends. Calls are in order of time.
	OnRate func(index int, ps, bytesPerSecond int64)

	// Of a [Stream]: TimesOnly neither checks nor measures, so that the result has nothing but
	// TotalPs. LimitPs, if not 0, is a time after which it is given up, with [ErrLimit].
	TimesOnly bool
	LimitPs   int64
}

// LimitError reports that a program is beyond what the integers of the simulator can hold.
type LimitError isa.ProblemError

func (e *LimitError) Error() string { return (*isa.ProblemError)(e).Error() }

// Run simulates p from time zero until its last command has ended. It fails if p does not pass its Check
// (*isa.ProblemError), is beyond the limits of the package documentation (*LimitError), or ctx is done.
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
	defer e.done()
	e.meter = newMeter(p, f, e.scratch)
	if err := e.meter.totals.buffers(); err != nil {
		return nil, err
	}
	if err := e.whole(ctx); err != nil {
		return nil, err
	}
	f.spread(e.start)
	f.spread(e.end)
	r, _ := e.meter.result(e.start, e.end, e.times)
	r.Start, r.End = timesOf(e.start, e.times), timesOf(e.end, e.times)
	return r, r.check(p.Name)
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
	for i, r := range p.Resources {
		if r.BytesPerSecond > maxBytesPerSecond {
			return bad(-1, "resource %d (%s) has %d bytes per second, at most %d can be simulated", i, r.Name, r.BytesPerSecond,
				int64(maxBytesPerSecond))
		}
		if r.BytesPerSecond < int64(len(p.Queues))>>rateBits+1 {
			return bad(-1, "resource %d (%s) has %d bytes per second, too few for %d queues", i, r.Name,
				r.BytesPerSecond, len(p.Queues))
		}
	}
	return nil
}

// totals are sums over a program that are to fit 63 bits.
type totals struct {
	p                  *isa.Program
	times              []int64 // that commands of a cluster count
	of                 []int64 // each resource
	payload, macs, ops int64
}

func newTotals(p *isa.Program) *totals {
	t := &totals{p: p, times: make([]int64, p.Clusters), of: make([]int64, len(p.Resources))}
	for k := range t.times {
		if t.times[k]++; p.As != nil {
			t.times[k]--
			t.times[p.As[k]]++
		}
	}
	return t
}

func (t *totals) add(i int, c *isa.Command) error {
	bad := func(format string, args ...any) error {
		return &LimitError{t.p.Name, i, fmt.Sprintf(format, args...)}
	}
	if len(c.Uses) > math.MaxUint16 {
		return bad("uses %d resources, at most %d can be simulated", len(c.Uses), math.MaxUint16)
	}
	n := t.times[t.p.Queues[c.Queue].Cluster]
	var own int64
	for _, u := range c.Uses {
		if u.Bytes > maxFlowBytes-own {
			return bad("moves more than %d bytes", int64(maxFlowBytes))
		}
		own += u.Bytes
		if !addTo(&t.of[u.Resource], u.Bytes, n) {
			return bad("the bytes of resource %d up to here pass 2^63", u.Resource)
		}
	}
	if !addTo(&t.payload, c.Bytes, n) || !addTo(&t.macs, c.MACs, n) || !addTo(&t.ops, c.VectorOps, n) {
		return bad("the sum of bytes, MACs or vector operations up to here passes 2^63")
	}
	return nil
}

func (t *totals) buffers() error {
	var held int64
	for i := range t.p.Buffers {
		if !addTo(&held, t.p.Buffers[i].Bytes, t.times[t.p.Buffers[i].Cluster]) {
			return &LimitError{t.p.Name, -1, fmt.Sprintf("the sizes of the buffers up to %d pass 2^63 bytes", i)}
		}
	}
	return nil
}

// addTo adds b, not negative, n times to *sum, and reports whether that fits.
func addTo(sum *int64, b, n int64) bool {
	hi, lo := bits.Mul64(uint64(b), uint64(n))
	if hi > 0 || lo > uint64(math.MaxInt64-*sum) {
		return false
	}
	*sum += int64(lo)
	return true
}

// phase is the state of the command at the head of a queue.
type phase uint8

const (
	idle    phase = iota // nothing: it waits for dependencies, or there is none
	fixed                // takes its duration
	latency              // a move that will flow
	flowing
)

// lane is the state of a queue.
type lane struct {
	next    int32 // its first known command that has not started, or none
	last    int32 // its last known command, or none
	command int32 // that runs, if phase is not idle
	seen    int32 // dependencies of next that are known to have ended
	waits   int32 // another queue that waits for the same command, plus 1, or 0
	phase   phase
	kind    isa.Kind // of the command that runs
	began   int64    // its start
	page    int      // so many pages there were when the last flow of known commands came
	flow    int32    // job.flow of that
	// Of a flow: rate, what remained at time since, in units.
	rate  uint64
	rest  uint64
	since int64
}

// job is the event loop's state of a command until it has ended.
type job struct {
	duration int64
	next     int32 // the next known command of its queue, or none
	waiting  int32 // the first queue that waits for it, plus 1; 0: none does
	// Its dependencies that had not ended when it came begin there in the page's.
	deps, nDeps int32
	flow        int32 // of a move of any bytes: its place in the page's flows, plus 1
	kind        isa.Kind
}

// page holds jobs that stand in a row.
type page struct {
	deps  []int32
	flows []flow
	left  int // jobs that have not come yet, or not ended
	jobs  [pageJobs]job
}

const pageJobs = 1 << 10

func (p *page) clear() { p.deps, p.flows = p.deps[:0], p.flows[:0] }

type engine struct {
	p          *isa.Program
	fold       *fold
	opt        Options
	now        int64
	times      []int64 // at which commands started or ended, up to now
	start, end []int32 // the place of each command's in times; end: unknown until then

	lanes []lane
	pages []*page // nil: all of it has ended, and its place was given to another
	spare []*page
	meter *meter // nil if only times are wanted

	events  agenda
	sharing *sharing
	scratch *scratch
	limit   int64 // the time at which the run is given up
	limited bool  // it was
	left    int   // known commands that have not ended, without those of copies
}

func newEngine(p *isa.Program, opt Options, f *fold) *engine {
	s := scratches.Get().(*scratch)
	e := &engine{
		p: p, opt: opt, fold: f, scratch: s, spare: s.pages,
		lanes:   make([]lane, len(p.Queues)),
		sharing: newSharing(p.Resources, len(p.Queues)),
		limit:   never,
		times:   append(empty(s.times, 1+len(p.Commands)), 0),
		start:   empty(s.start, len(p.Commands)),
		end:     empty(s.end, len(p.Commands)),
	}
	e.sharing.known.members, e.sharing.known.old = s.members[:0], s.sets
	e.sharing.shared = f.shared
	e.sharing.weight = make([]uint64, len(p.Queues))
	// Clusters of which only one does anything, or all the same, need not be told apart.
	of := func(command int) int32 { return f.as[p.Queues[p.Commands[command].Queue].Cluster] }
	if n := len(p.Commands); n > 0 && p.Clusters <= maxDomains && of(0) != of(n-1) {
		for q := range p.Queues {
			e.sharing.known.of[q] = p.Queues[q].Cluster
		}
		e.sharing.known.divide(p.Clusters)
	}
	for q := range p.Queues {
		e.sharing.weight[q] = f.weight[p.Queues[q].Cluster]
		e.lanes[q].next, e.lanes[q].last = none, none
	}
	e.events.init(len(p.Queues))
	return e
}

func (e *engine) job(i int32) *job { return &e.pages[uint(i)/pageJobs].jobs[uint(i)%pageJobs] }

// whole runs all of the program.
func (e *engine) whole(ctx context.Context) error {
	if err := e.know(e.p.Commands); err != nil {
		return err
	}
	return e.run(ctx, 0)
}

// turn begins a page.
func (e *engine) turn() {
	var next *page
	if m := len(e.spare); m > 0 {
		next, e.spare = e.spare[m-1], e.spare[:m-1]
	} else if m := len(e.pages); m > 0 { // the last is in use, or it would be spare
		next = &page{deps: make([]int32, 0, cap(e.pages[m-1].deps)), flows: make([]flow, 0, cap(e.pages[m-1].flows))}
	} else {
		next = &page{}
	}
	next.left = pageJobs
	e.pages = append(e.pages, next)
}

// know takes the commands that come next in the program. What is past cannot be changed: a
// command that had to start before the present time is a [LateError].
func (e *engine) know(commands []isa.Command) error {
	n := len(e.start) + len(commands)
	e.start, e.end = longer(e.start, len(commands)), longer(e.end, len(commands))
	for k := range commands {
		c, i := &commands[k], int32(n-len(commands)+k)
		if e.meter != nil {
			if err := e.meter.totals.add(int(i), c); err != nil {
				return err
			}
		}
		var f *flow
		again := false
		if len(c.Uses) > 0 {
			f, again = e.sharing.flow(c.Queue, c.Uses)
		}
		if e.meter != nil {
			e.meter.count(c, again)
		}
		if int(i)%pageJobs == 0 {
			e.turn()
		}
		e.end[i] = unknown
		if e.fold.isCopy(e.p.Queues[c.Queue].Cluster) {
			continue
		}
		e.left++
		page := e.pages[len(e.pages)-1]
		j := &page.jobs[uint(i)%pageJobs]
		*j = job{duration: c.DurationPs, next: none, deps: int32(len(page.deps)), kind: c.Kind}
		l := &e.lanes[c.Queue]
		if f != nil && f.own > 0 {
			if !again || l.page != len(e.pages) {
				page.flows = append(page.flows, *f)
				l.page, l.flow = len(e.pages), int32(len(page.flows))
			}
			j.flow = l.flow
		}
		last := int32(0)
		for _, d := range c.Deps {
			if end := e.end[d]; end != unknown {
				last = max(last, end)
			} else {
				page.deps = append(page.deps, d)
			}
		}
		j.nDeps = int32(len(page.deps)) - j.deps
		if l.next == none {
			l.next = i
		} else {
			e.job(l.last).next = i
		}
		if l.phase == idle && l.next == i {
			if l.last != none {
				last = max(last, e.end[l.last])
			}
			if j.nDeps == 0 && e.times[last] < e.now {
				return &LateError{int(i), e.times[last], e.now}
			}
			e.tryStart(c.Queue)
		}
		l.last = i
	}
	return nil
}

// run goes on until so many of the known commands are left.
func (e *engine) run(ctx context.Context, left int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	budget := eventsPerCheck
	for e.left > left {
		q, when := e.events.min()
		if q == none {
			break
		}
		if when == never {
			return &LimitError{e.p.Name, int(e.lanes[q].command), "ends after more than 2^63 ps"}
		}
		// All that happens at one time happens before the rates are found
		// again; a flow that begins or ends leaves no trace in between.
		if when > e.limit {
			e.limited = true
			return nil
		}
		for e.now = when; when == e.now && q != none; q, when = e.events.min() {
			e.handle(q)
			if budget--; budget == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				budget = eventsPerCheck
			}
			if !e.events.also {
				break
			}
		}
		e.adjust()
	}
	if e.left > left {
		// Dependencies point backwards and queues keep the order, so the first command that has not ended can always run.
		panic("sim: commands are left without an event")
	}
	return nil
}

// tryStart starts the next command of q, which is idle, at the present time if nothing is in its
// way. Else q waits for what is.
func (e *engine) tryStart(q int32) {
	l := &e.lanes[q]
	if l.next == none {
		return
	}
	page := e.pages[uint(l.next)/pageJobs]
	j := &page.jobs[uint(l.next)%pageJobs]
	for _, d := range page.deps[j.deps+l.seen : j.deps+j.nDeps] {
		if e.end[d] == unknown {
			before := e.job(d)
			l.waits, before.waiting = before.waiting, q+1
			return
		}
		l.seen++
	}
	l.command, l.next, l.seen, l.kind, l.phase = l.next, j.next, 0, j.kind, fixed
	if j.flow > 0 {
		l.phase = latency
	}
	e.start[l.command], l.began = int32(len(e.times)-1), e.now
	if e.meter != nil {
		e.meter.of[q].begin(j.kind, e.now)
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
	c := l.command
	page := e.pages[uint(c)/pageJobs]
	j := &page.jobs[uint(c)%pageJobs]
	e.events.drop(q) // what flows will get a rate and an event, what comes next an event
	switch l.phase {
	case latency:
		f := &page.flows[j.flow-1]
		e.sharing.add(q, f)
		l.phase = flowing
		l.rate, l.rest, l.since = 0, uint64(f.own)<<byteBits, e.now
		return
	case flowing:
		e.sharing.remove(q)
		if e.opt.OnRate != nil {
			e.opt.OnRate(int(c), e.now, 0)
		}
	}
	l.phase = idle
	if e.times[len(e.times)-1] < e.now {
		e.times = longer(e.times, 1)
		e.times[len(e.times)-1] = e.now
	}
	e.end[c] = int32(len(e.times) - 1)
	e.left--
	if e.opt.OnCommand != nil {
		e.opt.OnCommand(int(c), l.began, e.now)
	}
	if e.meter != nil {
		e.meter.ended(q, l.kind, l.began, e.now)
	}
	e.tryStart(q)
	for waiting := j.waiting; waiting > 0; {
		q := waiting - 1
		waiting = e.lanes[q].waits
		e.tryStart(q)
	}
	if page.left--; page.left == 0 {
		page.clear()
		e.pages[uint(c)/pageJobs], e.spare = nil, append(e.spare, page)
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

// timesOf are the times of places in a list of times.
func timesOf(places []int32, times []int64) []int64 {
	list := make([]int64, len(places))
	for i, k := range places {
		list[i] = times[k]
	}
	return list
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
