package sim

import (
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
)

// Result is what a program did. Times are in picoseconds, sizes in bytes.
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

	// Static counts what stands in the program: the commands of cluster 0 in
	// iteration 0, so that a batch loop counts once and copies of the same
	// kernel on other clusters do not count. Dynamic counts all that was executed.
	Static, Dynamic Counts
}

// QueueUse tells how a queue was used.
type QueueUse struct {
	Commands int
	BusyPs   int64 // from start to end of its commands, latencies included
}

// ResourceUse tells how a resource was used.
type ResourceUse struct {
	Bytes       int64
	Utilization float64 // Bytes / (rate · TotalPs)
}

// ClusterUse tells how a cluster was used.
type ClusterUse struct {
	// KindPs is the time during which at least one command of a kind ran on any
	// queue of the cluster, so at most TotalPs.
	KindPs [isa.NumKinds]int64
	Time   Breakdown
	// Memory tells how full the memories were; per core for isa.LB.
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
	// LevelBytes has each move's payload once, at the farthest level that it
	// touches: DDR has loads from and stores to DDR, GB has the traffic between
	// GB and LBs, LB what cores exchange. The sum is the payload of all moves.
	LevelBytes [isa.NumLevels]int64
	// TensorWrites is the number of output tensors completed at each level.
	TensorWrites [isa.NumLevels]int64
}

var farthest = [isa.NumKinds]isa.Level{
	isa.DDRLoad:  isa.DDR,
	isa.DDRStore: isa.DDR,
	isa.LBLoad:   isa.GB,
	isa.LBStore:  isa.GB,
	isa.Exchange: isa.LB,
}

func (n *Counts) add(c *isa.Command) {
	n.Commands[c.Kind]++
	if c.Kind.IsMove() {
		n.MoveBytes[c.Kind] += c.Bytes
		n.LevelBytes[farthest[c.Kind]] += c.Bytes
	}
	if c.WriteLevel != isa.NoLevel {
		n.TensorWrites[c.WriteLevel]++
	}
}

// Occupancy is how much of a memory the buffers of a program held.
type Occupancy struct {
	Steps     []Step // by time; the first, if any, at 0; nil without buffers
	PeakBytes int64
	MeanBytes float64 // over TotalPs
}

// Step says that Bytes are in use from Ps until the next step.
type Step struct{ Ps, Bytes int64 }

// At returns the bytes in use at a time.
func (o *Occupancy) At(ps int64) int64 {
	i, found := slices.BinarySearchFunc(o.Steps, ps, func(s Step, ps int64) int {
		switch {
		case s.Ps < ps:
			return -1
		case s.Ps > ps:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return o.Steps[i].Bytes
}

// measure derives all figures from the times of the commands.
func measure(p *isa.Program, start, end []int64) *Result {
	r := &Result{
		Start: start, End: end,
		Queues:    make([]QueueUse, len(p.Queues)),
		Resources: make([]ResourceUse, len(p.Resources)),
		Clusters:  make([]ClusterUse, p.Clusters),
		Bound:     bound(p),
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		r.TotalPs = max(r.TotalPs, end[i])
		q := &r.Queues[c.Queue]
		q.Commands++
		q.BusyPs += end[i] - start[i]
		for _, u := range c.Uses {
			r.Resources[u.Resource].Bytes += u.Bytes
		}
		r.MACs += c.MACs
		r.VectorOps += c.VectorOps
		r.Dynamic.add(c)
		if c.Iteration == 0 && p.Queues[c.Queue].Cluster == 0 {
			r.Static.add(c)
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
	measureTime(p, r)
	measureMemory(p, r)
	return r
}

// edge is a moment at which something begins or ends.
type edge struct {
	ps    int64
	index int32
	ends  bool
}

// sortEdges puts edges in order of time; at the same time ends come first, since
// intervals are half-open, then the order is that of the indexes.
func sortEdges(edges []edge) {
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.ps != b.ps:
			if a.ps < b.ps {
				return -1
			}
			return 1
		case a.ends != b.ends:
			if a.ends {
				return -1
			}
			return 1
		}
		return int(a.index) - int(b.index)
	})
}

func measureTime(p *isa.Program, r *Result) {
	edges := make([]edge, 0, 2*len(p.Commands))
	for i := range p.Commands {
		if r.Start[i] < r.End[i] {
			edges = append(edges, edge{r.Start[i], int32(i), false}, edge{r.End[i], int32(i), true})
		}
	}
	sortEdges(edges)

	running := make([][isa.NumKinds]int, p.Clusters)
	since := make([]int64, p.Clusters)
	account := func(cluster int32, now int64) {
		d := now - since[cluster]
		if d == 0 {
			return
		}
		since[cluster] = now
		use := &r.Clusters[cluster]
		var compute, move, launch bool
		for k, n := range running[cluster] {
			if n > 0 {
				use.KindPs[k] += d
				kind := isa.Kind(k)
				compute = compute || kind.IsCompute()
				move = move || kind.IsMove()
				launch = true
			}
		}
		switch {
		case compute:
			use.Time.ComputePs += d
		case move:
			use.Time.MovePs += d
		case launch:
			use.Time.LaunchPs += d
		default:
			use.Time.IdlePs += d
		}
	}
	for _, e := range edges {
		c := &p.Commands[e.index]
		cluster := p.Queues[c.Queue].Cluster
		account(cluster, e.ps)
		if e.ends {
			running[cluster][c.Kind]--
		} else {
			running[cluster][c.Kind]++
		}
	}
	for cluster := range r.Clusters {
		account(int32(cluster), r.TotalPs)
	}
}

func measureMemory(p *isa.Program, r *Result) {
	sums := make([][isa.NumLevels]struct {
		hi, lo uint64 // of bytes · ps
	}, p.Clusters)
	// account closes the last step of a memory at a time.
	account := func(cluster int, level isa.Level, now int64) {
		o := &r.Clusters[cluster].Memory[level]
		last := o.Steps[len(o.Steps)-1]
		o.PeakBytes = max(o.PeakBytes, last.Bytes)
		s := &sums[cluster][level]
		hi, lo := bits.Mul64(uint64(last.Bytes), uint64(now-last.Ps))
		var carry uint64
		s.lo, carry = bits.Add64(s.lo, lo, 0)
		s.hi += hi + carry
	}
	for _, e := range bufferEdges(p, r) {
		b := &p.Buffers[e.index]
		o := &r.Clusters[b.Cluster].Memory[b.Level]
		if o.Steps == nil {
			o.Steps = append(o.Steps, Step{})
		}
		last := &o.Steps[len(o.Steps)-1]
		if last.Ps != e.ps {
			account(int(b.Cluster), b.Level, e.ps)
			o.Steps = append(o.Steps, Step{e.ps, last.Bytes})
			last = &o.Steps[len(o.Steps)-1]
		}
		if e.ends {
			last.Bytes -= b.Bytes
		} else {
			last.Bytes += b.Bytes
		}
	}
	for cluster := range r.Clusters {
		for level := range isa.NumLevels {
			o := &r.Clusters[cluster].Memory[level]
			if o.Steps == nil {
				continue
			}
			account(cluster, level, r.TotalPs)
			s := sums[cluster][level]
			o.MeanBytes = (float64(s.hi)*(1<<64) + float64(s.lo)) / float64(r.TotalPs)
			// Where one buffer took the place of another of the same size, nothing
			// changed.
			o.Steps = slices.CompactFunc(o.Steps, func(a, b Step) bool { return a.Bytes == b.Bytes })
		}
	}
}

// bufferEdges returns the beginnings and ends of the buffers that hold anything
// for any time.
func bufferEdges(p *isa.Program, r *Result) []edge {
	edges := make([]edge, 0, 2*len(p.Buffers))
	for i := range p.Buffers {
		b := &p.Buffers[i]
		from, to := bufferTime(b, r)
		if from < to && b.Bytes > 0 {
			edges = append(edges, edge{from, int32(i), false}, edge{to, int32(i), true})
		}
	}
	sortEdges(edges)
	return edges
}

// bufferTime returns the half-open time for which a buffer is in use. It covers
// First as a whole even if Lasts would end before, which nobody should ask for.
func bufferTime(b *isa.Buffer, r *Result) (from, to int64) {
	from, to = r.Start[b.First], r.End[b.First]
	for _, l := range b.Lasts {
		to = max(to, r.End[l])
	}
	return from, to
}
