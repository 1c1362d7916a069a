package sim

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
)

// Result is the outcome of a simulation. Times are in picoseconds, sizes in bytes.
type Result struct {
	Start, End []int64 // of each command
	TotalPs    int64   // the end of the last command
	Bound      Bound   // what no execution can beat

	Queues    []QueueUse    // as in Program.Queues
	Resources []ResourceUse // as in Program.Resources
	Clusters  []ClusterUse

	// Useful work of all commands, and its share of what the chip could have done
	// in TotalPs; 0 if the program gives no peak.
	MACs, VectorOps                   int64
	MACUtilization, VectorUtilization float64

	// Static counts what stands in the program: the commands of cluster 0 in iteration 0, so that a batch loop counts
	// once and copies of the same kernel on other clusters do not count. Dynamic counts all that was executed.
	Static, Dynamic Counts
}

// QueueUse says how a queue was used.
type QueueUse struct {
	Commands int
	BusyPs   int64 // from start to end of its commands, latencies included
	AlonePs  int64 // the same with each move alone in the world
}

// ResourceUse says how a resource was used.
type ResourceUse struct {
	Bytes       int64
	Utilization float64 // Bytes / (rate · TotalPs)
}

// ClusterUse says how a cluster was used.
type ClusterUse struct {
	// KindPs is the time during which at least one command of a kind ran on any queue of the cluster, so at most TotalPs.
	KindPs [isa.NumKinds]int64
	Time   Breakdown
	// Memory says how full the memories were; per core for isa.L1.
	Memory [isa.NumLevels]Occupancy
}

// Breakdown says where the time of a cluster went. Each moment counts once, in
// the first class that applies; the sum is Result.TotalPs.
type Breakdown struct {
	ComputePs int64 // a matrix, vector or special command ran
	MovePs    int64 // else: a move was under way (latency or flow)
	LaunchPs  int64 // else: a launch or a timed barrier
	IdlePs    int64 // else
}

// TotalPs is the sum.
func (b Breakdown) TotalPs() int64 { return b.ComputePs + b.MovePs + b.LaunchPs + b.IdlePs }

// Counts are numbers of commands, bytes and tensors.
type Counts struct {
	Commands [isa.NumKinds]int64
	// MoveBytes is the payload by kind of move: a broadcast counts once.
	MoveBytes [isa.NumKinds]int64
	// LevelBytes has each move's payload once, at the farthest level that it touches: DDR has loads from and stores to
	// DDR, LLB has the traffic between LLB and L1s, L1 what cores exchange. The sum is the payload of all moves.
	LevelBytes [isa.NumLevels]int64
	// AccessBytes counts the bytes that moves read and write at each level, over all cores: a broadcast
	// is read once and written by every core that takes it.
	AccessBytes [isa.NumLevels]int64
	// TensorWrites is the number of output tensors completed at each level.
	TensorWrites [isa.NumLevels]int64
}

var farthest = [isa.NumKinds]isa.Level{
	isa.DDRLoad:  isa.DDR,
	isa.DDRStore: isa.DDR,
	isa.L1Load:   isa.LLB,
	isa.L1Store:  isa.LLB,
	isa.Exchange: isa.L1,
}

// add counts a command so many times.
func (n *Counts) add(p *isa.Program, c *isa.Command, times int64) {
	if c.Kind.IsMove() && c.Bytes == 0 && len(c.Uses) == 0 && p.Queues[c.Queue].Kind == isa.OtherQueue {
		return // the request of a load, which counts
	}
	n.Commands[c.Kind] += times
	if c.Kind.IsMove() {
		n.access(p, c, times)
		n.MoveBytes[c.Kind] += times * c.Bytes
		n.LevelBytes[farthest[c.Kind]] += times * c.Bytes
	}
	if c.WriteLevel != isa.NoLevel {
		n.TensorWrites[c.WriteLevel] += times
	}
}

// addAll adds other counts, times over.
func (n *Counts) addAll(other *Counts, times int64) {
	add := func(to, from []int64) {
		for i, x := range from {
			to[i] += times * x
		}
	}
	add(n.Commands[:], other.Commands[:])
	add(n.MoveBytes[:], other.MoveBytes[:])
	add(n.LevelBytes[:], other.LevelBytes[:])
	add(n.AccessBytes[:], other.AccessBytes[:])
	add(n.TensorWrites[:], other.TensorWrites[:])
}

// access adds what a move reads and writes, times over. Into the cores goes what the busiest
// takes, times the active cores; out of them the payload.
func (n *Counts) access(p *isa.Program, c *isa.Command, times int64) {
	for _, u := range c.Uses {
		switch p.Resources[u.Resource].Kind {
		case isa.DDRPort:
			n.AccessBytes[isa.DDR] += times * u.Bytes
		case isa.LLBBandwidth:
			n.AccessBytes[isa.LLB] += times * u.Bytes
		case isa.LinkIn:
			n.AccessBytes[isa.L1] += times * u.Bytes * int64(c.Cores)
		case isa.LinkOut:
			n.AccessBytes[isa.L1] += times * c.Bytes
		}
	}
}

// Accesses are Result.MACs, VectorOps and Dynamic.AccessBytes of a program in which cluster k
// stands for alike[k] clusters, as [Latency] takes it.
func Accesses(p *isa.Program, alike []int) (macs, vectorOps int64, bytes [isa.NumLevels]int64) {
	var n Counts
	for i := range p.Commands {
		c := &p.Commands[i]
		times := int64(alike[p.Queues[c.Queue].Cluster])
		macs += times * c.MACs
		vectorOps += times * c.VectorOps
		n.access(p, c, times)
	}
	return macs, vectorOps, n.AccessBytes
}

// Occupancy is the use of a memory by a program's buffers.
type Occupancy struct {
	Steps     []Step // by time; the first, if any, at 0; nil without buffers; clusters that are alike share them
	PeakBytes int64
	MeanBytes float64 // over TotalPs
}

// Step says that Bytes are in use from Ps until the next step.
type Step struct{ Ps, Bytes int64 }

// At returns the bytes in use at a time.
func (o *Occupancy) At(ps int64) int64 {
	i, found := slices.BinarySearchFunc(o.Steps, ps, func(s Step, ps int64) int { return cmp.Compare(s.Ps, ps) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return o.Steps[i].Bytes
}

// meter derives the figures of a program from its commands, in their order, and from when they
// begin and end, in order of time.
type meter struct {
	p      *isa.Program
	f      *fold
	s      *scratch
	r      *Result
	totals *totals
	bound  *bounding
	// what the simulated clusters do, and, of each queue, what its cluster does
	clusters []activity
	of       []*activity
}

func newMeter(p *isa.Program, f *fold, s *scratch) *meter {
	m := &meter{p, f, s, &Result{
		Queues:    make([]QueueUse, len(p.Queues)),
		Resources: make([]ResourceUse, len(p.Resources)),
		Clusters:  make([]ClusterUse, p.Clusters),
	}, newTotals(p), newBounding(p, f, s), make([]activity, p.Clusters), make([]*activity, len(p.Queues))}
	for k := range m.clusters {
		m.clusters[k].class = idling
	}
	for q := range m.of {
		m.of[q] = &m.clusters[p.Queues[q].Cluster]
	}
	return m
}

// count takes the next command of the program, which totals have taken, and whose uses are those of the last move
// of its queue, or not.
func (m *meter) count(c *isa.Command, again bool) {
	m.bound.count(c, again)
	m.r.Queues[c.Queue].Commands++
	if c.Iteration == 0 && m.p.Queues[c.Queue].Cluster == 0 {
		m.r.Static.add(m.p, c, 1)
	} else {
		m.r.Dynamic.add(m.p, c, m.totals.times[m.p.Queues[c.Queue].Cluster])
	}
}

func (m *meter) ended(q int32, kind isa.Kind, start, end int64) {
	m.r.TotalPs = end
	m.r.Queues[q].BusyPs += end - start
	m.of[q].end(kind, end)
}

func (m *meter) result(start, end []int32, times []int64) (*Result, *usage[int32]) {
	p, r := m.p, m.r
	queues, resources, _ := p.Parts()
	for i := range r.Resources {
		r.Resources[i].Bytes = m.totals.of[i]
	}
	for k, n := range m.totals.times { // what a cluster has for itself counts once
		for _, own := range resources[k] {
			r.Resources[own].Bytes /= max(1, n)
		}
	}
	if p.Clusters > 0 {
		r.Dynamic.addAll(&r.Static, m.totals.times[0])
	}
	for q, ps := range m.bound.busy {
		r.Queues[q].AlonePs = ps
	}
	r.MACs, r.VectorOps, r.Bound = m.totals.macs, m.totals.ops, m.bound.bound(r.Resources)
	for k, a := range m.f.as {
		if int(a) == k {
			continue
		}
		for i, q := range queues[k] {
			r.Queues[q] = r.Queues[queues[a][i]]
		}
		for i, own := range resources[k] {
			if p.As != nil {
				r.Resources[own] = r.Resources[resources[a][i]]
			}
		}
	}
	if r.TotalPs > 0 {
		seconds := float64(r.TotalPs) * 1e-12
		for i, res := range p.Resources {
			u := &r.Resources[i]
			u.Utilization = float64(u.Bytes) / (float64(res.BytesPerSecond) * seconds)
		}
		if p.PeakMACsPerSecond > 0 {
			r.MACUtilization = float64(r.MACs) / (p.PeakMACsPerSecond * seconds)
		}
		if p.PeakVectorOpsPerSecond > 0 {
			r.VectorUtilization = float64(r.VectorOps) / (p.PeakVectorOpsPerSecond * seconds)
		}
	}
	for k, as := range m.f.as {
		a, use := &m.clusters[as], &m.r.Clusters[k]
		use.KindPs = a.took
		use.Time = Breakdown{ComputePs: a.in[computing], MovePs: a.in[moving], LaunchPs: a.in[launching]}
		use.Time.IdlePs = m.r.TotalPs - use.Time.TotalPs()
	}
	u := newUsage(p, start, end, times)
	u.measureMemory(r, m.s)
	return r, u
}

// The classes of Breakdown, the first that applies first.
const (
	computing = iota
	moving
	launching
	idling
)

var classOf = func() (class [isa.NumKinds]int) {
	for k := range class {
		switch kind := isa.Kind(k); {
		case kind.IsCompute():
			class[k] = computing
		case kind.IsMove():
			class[k] = moving
		default:
			class[k] = launching
		}
	}
	return class
}()

// activity is the present work of a cluster and the time spent on each kind of work.
type activity struct {
	running [isa.NumKinds]int32 // commands
	since   [isa.NumKinds]int64 // when the first of them began
	took    [isa.NumKinds]int64
	kinds   [idling]int32 // that run, by class
	class   int           // the first of which any runs
	entered int64
	in      [idling]int64 // time in a class
}

func (a *activity) begin(kind isa.Kind, now int64) {
	if a.running[kind]++; a.running[kind] > 1 {
		return
	}
	a.since[kind] = now
	class := classOf[kind]
	if a.kinds[class]++; class < a.class {
		a.turn(class, now)
	}
}

func (a *activity) end(kind isa.Kind, now int64) {
	if a.running[kind]--; a.running[kind] > 0 {
		return
	}
	a.took[kind] += now - a.since[kind]
	class := classOf[kind]
	if a.kinds[class]--; a.kinds[class] > 0 || class > a.class {
		return
	}
	for class++; class < idling && a.kinds[class] == 0; {
		class++
	}
	a.turn(class, now)
}

func (a *activity) turn(class int, now int64) {
	if a.class < idling {
		a.in[a.class] += now - a.entered
	}
	a.class, a.entered = class, now
}

// usage is when the buffers of a program were in use: by times, or by their places in a list.
type usage[T int32 | int64] struct {
	p          *isa.Program
	start, end []T     // of each command
	times      []int64 // the list; nil: start and end are times
	as         []int32 // see alike
	// scratch of sort
	unsorted, sorted []edge
	next             []int32
}

func newUsage[T int32 | int64](p *isa.Program, start, end []T, times []int64) *usage[T] {
	u := &usage[T]{p: p, start: start, end: end, times: times}
	u.as = u.alike()
	return u
}

// memories gives the buffers of each cluster and level, by cluster and then by level.
func (u *usage[T]) memories() [][]int32 {
	p, memories := u.p, make([][]int32, u.p.Clusters*int(isa.NumLevels))
	sizes := make([]int, len(memories))
	for i := range p.Buffers {
		sizes[memory(&p.Buffers[i])]++
	}
	all := make([]int32, len(p.Buffers))
	for m, n := range sizes {
		memories[m], all = all[:0:n], all[n:]
	}
	for i := range p.Buffers {
		m := memory(&p.Buffers[i])
		memories[m] = append(memories[m], int32(i))
	}
	return memories
}

// memory is the place of a buffer's memory among all.
func memory(b *isa.Buffer) int { return int(b.Cluster)*int(isa.NumLevels) + int(b.Level) }

// time is bufferTime of a buffer.
func (u *usage[T]) time(i int32) (from, to T) { return bufferTime(&u.p.Buffers[i], u.start, u.end) }

// change is the bytes that a memory holds more, or less, from a time on.
type change struct {
	bytes  int64
	memory int32
	next   int32 // change at that time, plus 1
}

// measureMemory says in r how full the memories were. What changes is put down at the place of its time, so
// that nothing is sorted.
func (u *usage[T]) measureMemory(r *Result, s *scratch) {
	p := u.p
	counts := make([]int, p.Clusters*int(isa.NumLevels))
	changes, first := empty(s.changes, 2*len(p.Buffers)), empty(s.first, len(u.times))[:len(u.times)]
	clear(first)
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if u.as[b.Cluster] != b.Cluster || b.Bytes == 0 {
			continue
		}
		from, to := u.time(int32(i))
		if from >= to {
			continue
		}
		m := memory(b)
		counts[m] += 2
		changes = append(changes, change{b.Bytes, int32(m), first[from]}, change{-b.Bytes, int32(m), first[to]})
		first[from], first[to] = int32(len(changes)-1), int32(len(changes))
	}
	n := len(changes) + len(counts)
	all, of := empty(s.steps, n)[:n], make([][]Step, len(counts))
	s.changes, s.first, s.steps = changes, first, all
	for m, n := range counts {
		of[m], all = append(all[:0:n+1], Step{}), all[n+1:]
	}
	for k, next := range first {
		for next > 0 {
			c := &changes[next-1]
			next = c.next
			steps := of[c.memory]
			n := len(steps) - 1
			if ps := u.times[k]; steps[n].Ps != ps {
				if n > 0 && steps[n].Bytes == steps[n-1].Bytes {
					steps[n].Ps = ps // one buffer took the place of another of the same size
				} else {
					steps = append(steps, Step{ps, steps[n].Bytes})
					of[c.memory] = steps
					n++
				}
			}
			steps[n].Bytes += c.bytes
		}
	}
	for m, steps := range of {
		cluster, level := m/int(isa.NumLevels), m%int(isa.NumLevels)
		o := &r.Clusters[cluster].Memory[level]
		if a := int(u.as[cluster]); a != cluster {
			*o = r.Clusters[a].Memory[level]
			continue
		}
		if counts[m] == 0 {
			continue
		}
		if n := len(steps) - 1; n > 0 && steps[n].Bytes == steps[n-1].Bytes {
			steps = steps[:n]
		}
		steps = slices.Clone(steps)
		var hi, lo uint64 // of bytes · ps
		for i, s := range steps {
			o.PeakBytes = max(o.PeakBytes, s.Bytes)
			to := r.TotalPs
			if i+1 < len(steps) {
				to = steps[i+1].Ps
			}
			h, l := bits.Mul64(uint64(s.Bytes), uint64(to-s.Ps))
			var carry uint64
			lo, carry = bits.Add64(lo, l, 0)
			hi += h + carry
		}
		o.Steps, o.MeanBytes = steps, (float64(hi)*(1<<64)+float64(lo))/float64(r.TotalPs)
	}
}

// edge is a moment at which a buffer begins or ends: its time or place, twice, plus one if it
// begins. Ends come first, since times are half-open. The buffer is one of a list.
type edge struct {
	at    uint64
	index int32
}

func (e edge) ends() bool { return e.at&1 == 0 }

// edges returns the beginnings and ends of the buffers of a memory that hold anything
// for any time, in order of time and then of index, until the next call.
func (u *usage[T]) edges(list []int32) []edge {
	u.unsorted = empty(u.unsorted, 2*len(list))
	for k, i := range list {
		if from, to := u.time(i); from < to && u.p.Buffers[i].Bytes > 0 {
			u.unsorted = append(u.unsorted, edge{uint64(from)<<1 | 1, int32(k)}, edge{uint64(to) << 1, int32(k)})
		}
	}
	return u.sort()
}

// sort orders edges by time, or what stands for it, and leaves their order else: first by
// stretches of time, of which there are about as many as edges, then in each.
func (u *usage[T]) sort() []edge {
	n, last := len(u.unsorted), uint64(0)
	for _, e := range u.unsorted {
		last = max(last, e.at)
	}
	shift := max(0, bits.Len64(last)-bits.Len(uint(n)))
	stretches := int(last>>shift) + 2
	u.next = empty(u.next, stretches)[:stretches]
	clear(u.next)
	for _, e := range u.unsorted {
		u.next[e.at>>shift+1]++
	}
	for k := 1; k < stretches; k++ {
		u.next[k] += u.next[k-1]
	}
	u.sorted = empty(u.sorted, n)[:n]
	for _, e := range u.unsorted {
		at := &u.next[e.at>>shift]
		u.sorted[*at] = e
		*at++
	}
	// Where many edges are in one stretch, the last pass would take long by itself.
	from := int32(0)
	for _, to := range u.next {
		if to-from > 32 {
			slices.SortStableFunc(u.sorted[from:to], func(a, b edge) int { return cmp.Compare(a.at, b.at) })
		}
		from = to
	}
	for i, e := range u.sorted {
		for ; i > 0 && u.sorted[i-1].at > e.at; i-- {
			u.sorted[i] = u.sorted[i-1]
		}
		u.sorted[i] = e
	}
	return u.sorted
}

// bufferTime returns the half-open time for which a buffer is in use. It covers
// First as a whole even if Lasts would end before, which no program should ask for.
func bufferTime[T int32 | int64](b *isa.Buffer, start, end []T) (from, to T) {
	from, to = start[b.First], end[b.First]
	for _, l := range b.Lasts {
		to = max(to, end[l])
	}
	return from, to
}

// alike gives, for each cluster, the first whose buffers have the same levels, addresses, sizes and times in the
// same order: itself or an earlier one. Only where the buffers of each cluster stand together.
func (u *usage[T]) alike() []int32 {
	p := u.p
	same := func(i, j int) bool {
		x, y := &p.Buffers[i], &p.Buffers[j]
		if x.Level != y.Level || x.Address != y.Address || x.Bytes != y.Bytes {
			return false
		}
		from, to := u.time(int32(i))
		begins, ends := u.time(int32(j))
		return from == begins && to == ends
	}
	if p.As == nil && unlike(p.Clusters, len(p.Buffers), func(i int) int32 { return p.Buffers[i].Cluster }) {
		return noFold(p).as
	}
	as, n := make([]int32, p.Clusters), make([]int, p.Clusters)
	begin := make([]int, p.Clusters)
	for i, last := 0, int32(-1); i < len(p.Buffers); i++ {
		k := p.Buffers[i].Cluster
		if k != last && n[k] > 0 {
			return noFold(p).as
		} else if k != last {
			begin[k], last = i, k
		}
		n[k]++
	}
	var kinds []int32
	for k := range as {
		as[k] = int32(k)
		if p.As != nil && int(p.As[k]) != k {
			as[k] = as[p.As[k]]
		} else if a := slices.IndexFunc(kinds, func(a int32) bool {
			for i := range n[k] {
				if n[a] != n[k] || !same(begin[a]+i, begin[k]+i) {
					return false
				}
			}
			return n[a] == n[k]
		}); a >= 0 {
			as[k] = kinds[a]
		} else if len(kinds) < maxKinds {
			kinds = append(kinds, int32(k))
		}
	}
	return as
}
