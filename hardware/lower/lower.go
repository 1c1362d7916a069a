package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Options choose how the kernel generator works.
type Options struct {
	schedule.Generator
	// Batches is the number of batches that stand in a row; 0 is 1. A layer is issued in as many
	// commands as in a program of one.
	Batches int `json:"-"`
	// Least is the number of commands that each of several batches is known to have, at least.
	Least int `json:"-"`
	// Fresh keeps no weights in the LLB for the next of these batches.
	Fresh bool `json:"-"`
	// AllWaits keeps the waits that the queues' own orders imply: a bound on other orders of issue needs them.
	AllWaits bool `json:"-"`
	// Fold lets clusters that are alike always share their commands (isa.Program.As); else they do where there are many.
	Fold bool `json:"-"`
	// Most is the number of commands that a program may have, clusters that are alike counted once; 0: as many as
	// programs that are kept.
	Most int `json:"-"`
	// Cost gives the durations of commands in place of the formulas of package cost; nil: the formulas.
	Cost cost.Custom `json:"-"`
	// Stopped, if not nil, is asked before each layer and now and then within; its error ends the work.
	Stopped func() error `json:"-"`
	// Memory, if not nil, holds an Outline, which lives until the next one is made in it, or the commands of a Stream
	// without buffers.
	Memory *Memory `json:"-"`
}

// Segment is a schedule that a cluster runs a number of times.
type Segment struct {
	Schedule   *schedule.Schedule
	Iterations int
	// Exchange comes in front of the first segment of a part of the network; nil: the segment goes on with the same
	// part, on other elements.
	Exchange *Exchange
}

// An Exchange passes data from chip to chip between two parts of a network. It waits for all in front of it. The part
// behind it waits for the exchange, but for its loads of weights and of the network's inputs.
type Exchange struct {
	Seconds float64  // over the links
	Bytes   int64    // through the chip's DDR in this time, at least
	Late    []string // names of the inputs of the part's graph that earlier parts make
}

// queues of one cluster
const (
	qControl = iota
	qDDRLoad
	qDDRStore
	qIn  // LLB to L1
	qOut // L1 to LLB, and L1 to L1
	qMatrix
	qVector
	qSpecial
	numQueues
	// On machines with several loads in flight, each waits out its latency in a queue of requests.
	mostQueues = numQueues + 2*hardware.MostInFlight
)

var queueKinds = [numQueues]isa.QueueKind{isa.ControlQueue, isa.DDRLoadQueue, isa.DDRStoreQueue, isa.InQueue,
	isa.OutQueue, isa.MatrixQueue, isa.VectorQueue, isa.SpecialQueue}

// resources of one cluster, behind those of the chips
const (
	rPort = iota
	rLLB
	rIn
	rOut
	numResources
)

var resourceKinds = [numResources]isa.ResourceKind{isa.DDRPort, isa.LLBBandwidth, isa.LinkIn, isa.LinkOut}

// Limits of one program over all iterations and over clusters that differ, which keep it within a few gigabytes.
const (
	maxLayers   = 2_000_000
	maxCommands = 8_000_000
	maxSteady   = 6_000_000
	// MaxRepeated is for clusters that differ and so are not lowered step by step, while some repeat a chunk: of many
	// chunks the rate is soon that of more.
	MaxRepeated = 3_000_000
	// maxStep is for one step: of a tensor larger than the memories of machines.
	maxStep = 1 << 20
	// maxUnfolded is the number of commands that a program may have at most in which clusters that are
	// alike have each their own.
	maxUnfolded = 1_000_000
)

// MaxStreamed is for Options.Most of one [Stream], which keeps less.
const MaxStreamed = 40_000_000

// TooLargeError reports a program that is too large to simulate.
type TooLargeError struct{ Program, What string }

// TooLarge marks the error as one that another chunk need not have.
func (e *TooLargeError) TooLarge() {}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s would %s, too many to simulate: take a smaller batch or other chunks", e.Program, e.What)
}

// Program lowers the work of all clusters. plans[k] are the segments of cluster
// k, in order; none means that the cluster stays idle.
func Program(name string, spec *hardware.Spec, plans [][]Segment, opt Options) (*isa.Program, error) {
	p, e, err := begin(name, spec, plans, len(plans), opt, true)
	if err != nil {
		return nil, err
	}
	as := make([]int32, len(plans))
	var ends []int
	for k, segments := range plans {
		first, alike := likeness(plans, k)
		if e.passing != nil {
			first, alike = k, 1
		}
		if as[k] = int32(first); first == k {
			if err := e.lower(int32(k), alike, segments); err != nil {
				return nil, err
			}
		} else {
			p.As = as
		}
		ends = append(ends, len(p.Commands))
	}
	if e.passing != nil {
		if err := e.passing.together(p, ends); err != nil {
			return nil, err
		}
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.As != nil && !opt.Fold && len(p.Commands)*len(plans) <= maxUnfolded {
		p = p.Unfolded()
	}
	return p, nil
}

// tooMany reports so many commands of a program, in words.
func tooMany(program, commands string, most int) error {
	unequal := ""
	if most == MaxRepeated {
		unequal = " of clusters with unequal shares"
	}
	return &TooLargeError{program, fmt.Sprintf("have %s commands, more than %d%s", commands, most, unequal)}
}

// commands is the number of commands that count of those of clusters that are alike, and how many there
// may be: of batches in a row, which say little more the more there are, those of each cluster.
func (e *emitter) commands() (n, most int) {
	switch n = int(e.cmds.n); {
	case e.opt.Batches > 1:
		return n * e.alike, maxSteady
	case e.opt.Most > 0:
		return n, e.opt.Most
	case e.repeats && e.passing == nil:
		return n, MaxRepeated
	}
	return n, maxCommands
}

// Outline is the part of [Program] that the simulator needs to find its latency with
// [sim.Latency]: commands and their dependencies, without names, tasks and buffers. One
// cluster stands for all that have the same plan; alike says for how many.
func Outline(name string, spec *hardware.Spec, plans [][]Segment, opt Options) (p *isa.Program,
	alike []int, err error) {
	var distinct [][]Segment
	for k := range plans {
		if first, n := likeness(plans, k); first == k {
			distinct, alike = append(distinct, plans[k]), append(alike, n)
		}
	}
	p, e, err := begin(name, spec, plans, len(distinct), opt, false)
	if err != nil {
		return nil, nil, err
	}
	e.outline, e.bare = true, true
	p.Labels = []string{""}
	var ends []int
	if opt.Memory != nil {
		e.mem = opt.Memory
		e.mem.reset()
	}
	for k, segments := range distinct {
		if err := e.lower(int32(k), alike[k], segments); err != nil {
			return nil, nil, err
		}
		ends = append(ends, len(p.Commands))
	}
	if e.passing != nil {
		err = e.passing.together(p, ends)
	}
	return p, alike, err
}

// Stream is [Program] whose commands are handed over step by step, in the order of the program,
// and not kept: feed may keep none of what it is given. p has what stands beside commands, from
// begin on, but no names and tasks, and in the end its buffers, if they are wanted.
//
// It is not ok if clusters do different things.
func Stream(name string, spec *hardware.Spec, plans [][]Segment, opt Options, buffers bool,
	start func(p *isa.Program) (feed func([]isa.Command) error, err error)) (ok bool, err error) {
	busy := -1
	as := make([]int32, len(plans))
	for k, plan := range plans {
		first, _ := likeness(plans, k)
		if as[k] = int32(first); first < k || len(plan) == 0 {
			continue
		}
		if busy >= 0 {
			return false, nil
		}
		busy = k
	}
	if busy < 0 {
		return false, nil
	}
	p, e, err := begin(name, spec, plans, len(plans), opt, buffers)
	if err != nil || e.passing != nil {
		return false, err
	}
	p.As, p.Labels = as, []string{""}
	e.bare, e.outline = true, !buffers
	if opt.Memory != nil {
		e.mem = opt.Memory
		e.mem.reset()
	}
	if e.feed, err = start(p); err != nil {
		return true, err
	}
	_, alike := likeness(plans, busy)
	return true, e.lower(int32(busy), alike, plans[busy])
}

// begin makes an empty program of some clusters and what lowers the work of each into it. It has peak rates if it is to
// be judged.
func begin(name string, spec *hardware.Spec, plans [][]Segment, clusters int, opt Options, judged bool) (
	*isa.Program, *emitter, error) {
	m, err := cost.NewWith(spec, opt.Cost)
	if err != nil {
		return nil, nil, err
	}
	layers, own, least := 0, 0, int64(0) // own, least: of clusters that differ
	different, repeats := 0, false
	dtype := model.F16
	for k, segments := range plans {
		first, _ := likeness(plans, k)
		if first == k && len(segments) > 0 {
			different++
		}
		for _, seg := range segments {
			repeats = repeats || seg.Iterations > 1
			layers += seg.Iterations * len(seg.Schedule.Steps)
			if first == k {
				own += seg.Iterations * len(seg.Schedule.Steps)
				n, err := leastCommands(name, seg.Schedule)
				if err != nil {
					return nil, nil, err
				}
				least += int64(seg.Iterations) * n
			}
			if len(seg.Schedule.Graph.Ops) > 0 {
				dtype = ComputeType(seg.Schedule.Graph)
			}
		}
	}
	if own > maxLayers {
		return nil, nil, &TooLargeError{name, fmt.Sprintf("run %d layers", own)}
	}
	if most := int64(max(maxCommands, opt.Most)); least > most {
		return nil, nil, tooMany(name, fmt.Sprintf("at least %.1f million", float64(least)/1e6), int(most))
	}
	if n := opt.Batches * opt.Least; opt.Batches > 1 && n > maxSteady {
		return nil, nil, tooMany(name, fmt.Sprintf("at least %.1f million", float64(n)/1e6), maxSteady)
	}
	fine := grainFor(layers / max(1, opt.Batches))
	fine.pieces, fine.room, fine.storePieces = cmp.Or(opt.Pieces, fine.pieces), opt.WeightTiles, opt.StorePieces
	if spec.LLB != nil {
		fine.group = opt.LoadTiles
	}
	net := newNetwork(spec)
	p := newProgram(name, spec, net, clusters, opt)
	n := chips(spec, clusters)
	if judged {
		p.PeakMACsPerSecond, p.PeakVectorOpsPerSecond = peaks(m, plans, dtype, float64(n))
	}
	e := &emitter{p: p, layers: own, repeats: repeats && different > 1, chips: n, spec: spec, net: net, costs: m, cost: m,
		opt: opt, mem: &Memory{}, fine: fine, tables: &tables{p: p, labels: map[string]int32{},
			operators: map[string]int32{}, tensors: map[tensorKey]int32{}, tasks: map[*schedule.Step]int32{}}}
	e.mem.numbers.once, e.mem.lasts.once, e.mem.stretches.once, e.mem.entries.once, e.mem.pages.once = true, true, true,
		true, true // for one program
	for _, segments := range plans {
		for _, seg := range segments {
			if seg.Schedule.Place != nil && e.passing == nil {
				e.passing = &passing{made: map[passed]int32{}}
			}
		}
	}
	if n > 1 && e.passing == nil {
		return nil, nil, fmt.Errorf("%s: %d chips, of which only a network that their clusters divide can make use", name, n)
	}
	return p, e, nil
}

// peaks are the rates of the matrix and vector units of some chips for a type, or those at which they would do the work
// of graphs without a pause if these are higher: some operators are of narrower types, or light.
func peaks(m *cost.Model, plans [][]Segment, dtype model.DType, chips float64) (macs, ops float64) {
	var work, seconds [2]float64
	seen := map[*model.Graph]bool{}
	cycles := func(w model.VectorWork, dt model.DType) float64 {
		vector, special := m.VectorCycles(w, dt)
		if m.SharedVector() {
			return float64(vector + special)
		}
		return float64(max(vector, special))
	}
	vector := func(w model.VectorWork, dt model.DType) {
		if n := w.Total(); n > 0 {
			scale := max(1, 1_000_000_000/n) // what it takes to fill a pipeline does not count
			w.Simple, w.Special, w.Move = w.Simple*scale, w.Special*scale, w.Move*scale
			work[1] += float64(n)
			seconds[1] += float64(n) / m.PeakVectorOpsPerSecond(dt) * cycles(w, dt) /
				cycles(model.VectorWork{Simple: w.Total()}, dt)
		}
	}
	for _, segments := range plans {
		for _, seg := range segments {
			g := seg.Schedule.Graph
			for k := 0; k < len(g.Ops) && !seen[g]; k++ {
				op := g.Ops[k]
				w := g.Work(op, nil)
				if !g.OnMatrixUnit(op) {
					w.Vector.Simple += w.MACs
				} else if rate := m.PeakMACsPerSecond(g.Tensor(op.Inputs[0]).DType); rate > 0 {
					work[0], seconds[0] = work[0]+float64(w.MACs), seconds[0]+float64(w.MACs)/rate
				}
				vector(w.Vector, g.Tensor(op.Outputs[0]).DType)
			}
			seen[g] = true
		}
	}
	macs, ops = m.PeakMACsPerSecond(dtype), m.PeakVectorOpsPerSecond(dtype)
	if seconds[0] > 0 {
		macs = max(macs, work[0]/seconds[0])
	}
	if seconds[1] > 0 {
		ops = max(ops, work[1]/seconds[1])
	}
	return macs * chips, ops * chips
}

// leastCommands is the least number of commands of a schedule: those that bring weights and values through the LLB from
// the DDR and values back, a quarter of the LLB at a time at most; and three for each visit of an attention without a
// mask.
func leastCommands(name string, s *schedule.Schedule) (all int64, err error) {
	if s.Spec.LLB == nil {
		return 0, nil
	}
	pieces := func(bytes int64) int64 { return ceilDiv(bytes, max(1, int64(s.Spec.LLB.SizeBytes)/4)) }
	for i := range s.Steps {
		st, n := &s.Steps[i], int64(0)
		for k := range st.Reads {
			if r := &st.Reads[k]; s.Values[r.Value].Level == schedule.DDR {
				n += pieces(r.UnionBytes)
			}
		}
		for k := range st.Params {
			n += 2 * pieces(st.Params[k].UnionBytes)
		}
		for _, w := range st.Writes {
			if v := &s.Values[w]; v.Level == schedule.DDR {
				n += 2 * pieces(v.Bytes)
			}
		}
		if n > maxStep {
			layer := s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer].Name
			return 0, &TooLargeError{name, fmt.Sprintf("have at least %d commands of layer %q, more than %d", n, layer, maxStep)}
		}
		all += n
		if st.Attending != nil && !st.Attending.Causal { // two products, and vector work between them
			all += 3 * st.Attending.Visits(s.AttentionTiles(st))
		}
	}
	return all, nil
}

// lower lowers the plan of a cluster, which alike clusters have. It indexes copies of the schedules: others may lower
// the same ones meanwhile.
func (e *emitter) lower(cluster int32, alike int, segments []Segment) error {
	own := *e
	own.cluster, own.alike = cluster, alike
	segments = slices.Clone(segments)
	for i := range segments {
		s := *segments[i].Schedule
		s.Index()
		segments[i].Schedule = &s
	}
	return own.run(segments)
}

// newProgram is a program without commands: the resources and queues of the clusters.
func newProgram(name string, spec *hardware.Spec, net *network, clusters int, opt Options) *isa.Program {
	p := &isa.Program{Name: name, Clusters: clusters}
	resource := func(prefix string, kind isa.ResourceKind, rate float64) {
		p.Resources = append(p.Resources,
			isa.Resource{Name: prefix + kind.String(), Kind: kind, BytesPerSecond: max(1, int64(rate))})
	}
	resource("", isa.DDRBandwidth, spec.DDR.BandwidthBytesPerSecond)
	if n := chips(spec, clusters); n > 1 {
		p.Resources = nil
		for k := range n {
			resource(fmt.Sprintf("chip%d.", k), isa.DDRBandwidth, spec.DDR.BandwidthBytesPerSecond)
		}
		for k := range n {
			for _, kind := range [...]isa.ResourceKind{isa.ToChips, isa.FromChips} {
				resource(fmt.Sprintf("chip%d.", k), kind, spec.Chips.Link.BandwidthBytesPerSecond)
			}
		}
	}
	port := cmp.Or(spec.DDRLink.BandwidthBytesPerSecond, spec.DDR.BandwidthBytesPerSecond)
	gb := float64(int64(1) << 50) // not a limit
	if spec.LLB != nil {
		gb = spec.LLB.BandwidthBytesPerSecond
		p.Capacity[isa.LLB] = int64(spec.LLB.SizeBytes)
	}
	if spec.L1 != nil {
		p.Capacity[isa.L1] = int64(spec.L1.SizeBytes) + int64(spec.L1WeightBytes)
	}
	link := spec.CoreLink.BandwidthBytesPerSecond
	for k := range clusters {
		prefix := fmt.Sprintf("cluster%d.", k)
		for r, rate := range [numResources]float64{rPort: port, rLLB: gb, rIn: link, rOut: link} {
			resource(prefix, resourceKinds[r], rate)
		}
		for i := range net.resources() {
			resource(fmt.Sprintf("%slink%d.", prefix, i), isa.CoreNetwork, link)
		}
		queue := func(name string, kind isa.QueueKind) {
			p.Queues = append(p.Queues, isa.Queue{Name: prefix + name, Cluster: int32(k), Kind: kind})
		}
		for _, kind := range queueKinds {
			queue(kind.String(), kind)
		}
		for _, r := range newRequests(spec, opt) {
			for i := range r.slots {
				kind := queueKinds[r.queue]
				p.Queues = append(p.Queues, isa.Queue{Name: fmt.Sprintf("%s%v.request%d", prefix, kind, i), Cluster: int32(k),
					LatencyOf: kind, Slot: int32(i)})
			}
		}
	}
	return p
}

// requests are the loads of one queue under way, on a machine that has several: each is a request that waits out the
// latency, in a queue of its slot, and the load, which flows behind those before it.
type requests struct {
	queue int
	first int     // the queue of the first slot
	slots []int32 // the load that last had it, -1: none has
	next  int
}

// newRequests are those of a cluster of a machine: of loads from the DDR, and into the L1s. Without BeforeFirst the
// program has one load under way.
func newRequests(spec *hardware.Spec, opt Options) (list [2]requests) {
	if !opt.BeforeFirst {
		return list
	}
	first := numQueues
	for i, n := range [...]int{spec.DDRLink.Loads(), spec.CoreLink.Loads()} {
		list[i] = requests{queue: [...]int{qDDRLoad, qIn}[i], first: first}
		if n > 1 {
			list[i].slots = slices.Repeat([]int32{-1}, n)
			first += n
		}
	}
	return list
}

// chips is the number of chips so many clusters are on.
func chips(spec *hardware.Spec, clusters int) int32 {
	if spec.Chips == nil {
		return 1
	}
	return int32(max(1, (clusters+spec.Clusters-1)/spec.Clusters))
}

// likeness gives the first cluster with the same plan as cluster k, and how many have it.
func likeness(plans [][]Segment, k int) (first, alike int) {
	first = k
	for i, plan := range plans {
		if slices.Equal(plan, plans[k]) {
			first = min(first, i)
			alike++
		}
	}
	return first, alike
}

// ComputeType is the type of the network's first matrix operand, for peak rates.
func ComputeType(g *model.Graph) model.DType {
	for _, op := range g.Ops {
		if op.Class() == model.MatrixClass {
			return g.Tensor(op.Inputs[0]).DType
		}
	}
	return model.F16
}
