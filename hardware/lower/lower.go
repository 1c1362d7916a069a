package lower

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Options choose how the kernel generator works.
type Options struct {
	// CrossLayer lets loads and units overlap across the layers of a kernel (§4.4).
	CrossLayer bool
	// KeepWeights keeps weights in the GB from kernel to kernel.
	KeepWeights bool
	// Prefetch lets loads of weights from the DDR to the GB run ahead of the launch of
	// the kernel that uses them: the DMA engine works on while kernels change.
	Prefetch bool
	// Cost tells what commands take in place of the formulas of package cost; nil: they.
	Cost cost.Custom `json:"-"`
}

// Segment is a schedule that a cluster runs a number of times.
type Segment struct {
	Schedule   *schedule.Schedule
	Iterations int
}

// queues of one cluster
const (
	qControl = iota
	qDDRLoad
	qDDRStore
	qIn  // GB to LB
	qOut // LB to GB, and LB to LB
	qMatrix
	qVector
	qSpecial
	numQueues
)

var queueNames = [numQueues]string{"control", "ddr.load", "ddr.store", "lb.in", "lb.out", "mme", "vme", "special"}

// resources of one cluster, behind the DDR's
const (
	rPort = iota
	rGB
	rIn
	rOut
	numResources
)

// Limits of one program over all clusters and iterations, which keep it within a few
// gigabytes.
const (
	maxLayers   = 200_000
	maxCommands = 4_000_000
)

// TooLargeError reports a program that is too large to simulate.
type TooLargeError struct{ Program, What string }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s would %s, too many to simulate: take a smaller batch or larger chunks", e.Program, e.What)
}

// Program lowers the work of all clusters. plans[k] are the segments of cluster
// k, in order; none means that the cluster stays idle.
func Program(name string, spec *hardware.Spec, plans [][]Segment, opt Options) (*isa.Program, error) {
	m, err := cost.NewWith(spec, opt.Cost)
	if err != nil {
		return nil, err
	}
	layers := 0
	for _, segments := range plans {
		for _, seg := range segments {
			layers += seg.Iterations * len(seg.Schedule.Steps)
		}
	}
	if layers > maxLayers {
		return nil, &TooLargeError{name, fmt.Sprintf("run %d layers", layers)}
	}
	p := &isa.Program{Name: name, Clusters: len(plans)}
	rate := func(r float64) int64 { return max(1, int64(r)) }
	p.Resources = append(p.Resources, isa.Resource{Name: "ddr", BytesPerSecond: rate(spec.DDR.BandwidthBytesPerSecond)})
	dtype := model.F16
	for k := range plans {
		port := spec.DDRLink.BandwidthBytesPerSecond
		if port == 0 {
			port = spec.DDR.BandwidthBytesPerSecond
		}
		gb := float64(int64(1) << 50) // not a limit
		if spec.GB != nil {
			gb = spec.GB.BandwidthBytesPerSecond
		}
		link := spec.CoreLink.BandwidthBytesPerSecond
		for i, r := range [numResources]float64{rPort: port, rGB: gb, rIn: link, rOut: link} {
			p.Resources = append(p.Resources, isa.Resource{Name: fmt.Sprintf("cluster%d.%s", k, [numResources]string{"ddr-port", "gb", "link-in", "link-out"}[i]), BytesPerSecond: rate(r)})
		}
		for _, q := range queueNames {
			p.Queues = append(p.Queues, isa.Queue{Name: fmt.Sprintf("cluster%d.%s", k, q), Cluster: int32(k)})
		}
	}
	labels := map[string]int32{}
	marks := make([]mark, 1, len(plans)+1)
	for k, segments := range plans {
		first, alike := likeness(plans, k)
		if first < k {
			copyCluster(p, first, k, marks[first], marks[first+1])
			marks = append(marks, markOf(p))
			continue
		}
		e := &emitter{p: p, spec: spec, cost: m, opt: opt, cluster: int32(k), alike: alike, labels: labels, fine: grainFor(layers)}
		for _, seg := range segments {
			if len(seg.Schedule.Graph.Ops) > 0 {
				dtype = ComputeType(seg.Schedule.Graph)
			}
			e.lbData = max(e.lbData, seg.Schedule.LBCapacity)
		}
		if err := e.run(segments); err != nil {
			return nil, err
		}
		marks = append(marks, markOf(p))
	}
	p.PeakMACsPerSecond = m.PeakMACsPerSecond(dtype)
	p.PeakVectorOpsPerSecond = m.PeakVectorOpsPerSecond(dtype)
	if spec.LB != nil {
		p.Capacity[isa.LB] = int64(spec.LB.SizeBytes) + int64(spec.LBWeightBytes)
	}
	if spec.GB != nil {
		p.Capacity[isa.GB] = int64(spec.GB.SizeBytes)
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

// likeness gives the first cluster with the same plan as cluster k, and how many have
// it.
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

// mark is a place in a program.
type mark struct{ commands, buffers int }

func markOf(p *isa.Program) mark { return mark{len(p.Commands), len(p.Buffers)} }

// copyCluster appends what stands between two marks, which is all of cluster from, for
// cluster to. The DDR is the only resource that they share.
func copyCluster(p *isa.Program, from, to int, begin, end mark) {
	shift := int32(len(p.Commands) - begin.commands)
	queue, resource := int32(to-from)*numQueues, int32(to-from)*numResources
	nDeps, nUses, nLasts := 0, 0, 0
	for i := begin.commands; i < end.commands; i++ {
		nDeps += len(p.Commands[i].Deps)
		nUses += len(p.Commands[i].Uses)
	}
	for i := begin.buffers; i < end.buffers; i++ {
		nLasts += len(p.Buffers[i].Lasts)
	}
	indices, uses := make([]int32, 0, nDeps+nLasts), make([]isa.Use, 0, nUses)
	shifted := func(list []int32) []int32 {
		if list == nil {
			return nil
		}
		n := len(indices)
		for _, i := range list {
			indices = append(indices, i+shift)
		}
		return indices[n:len(indices):len(indices)]
	}
	p.Commands = slices.Grow(p.Commands, end.commands-begin.commands)
	for i := begin.commands; i < end.commands; i++ {
		c := p.Commands[i]
		c.Queue += queue
		c.Deps = shifted(c.Deps)
		if c.Uses != nil {
			n := len(uses)
			for _, u := range c.Uses {
				if u.Resource > 0 {
					u.Resource += resource
				}
				uses = append(uses, u)
			}
			c.Uses = uses[n:len(uses):len(uses)]
		}
		p.Commands = append(p.Commands, c)
	}
	p.Buffers = slices.Grow(p.Buffers, end.buffers-begin.buffers)
	for i := begin.buffers; i < end.buffers; i++ {
		b := p.Buffers[i]
		b.Cluster = int32(to)
		b.First += shift
		b.Lasts = shifted(b.Lasts)
		p.Buffers = append(p.Buffers, b)
	}
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

// pending is a command of one cluster; dependencies are indices in emitter.cmds.
type pending struct {
	isa.Command
	block int32
	opens bool // first command of its block: waits for everything before
	roam  bool // a load that may leave its block
}

// emitter lowers the work of one cluster.
type emitter struct {
	p       *isa.Program
	spec    *hardware.Spec
	cost    *cost.Model
	opt     Options
	cluster int32
	alike   int // clusters with the same work, which copies will be for
	labels  map[string]int32
	fine    grain
	lbData  int64

	cmds   []pending
	queues queueLog
	block  int32
	iter   int32

	lb      space
	gbActs  space
	weights ring // three quarters of the weight buffer
	params  ring // the rest: biases, scales, tables
	pages   *pages
	home    home // in the place of pages if there is no GB
	inGB    []gbValue
	uses    map[tileKey][]int64 // positions of uses, in order
	nextPos map[tileKey]int
	// kernelEnd is the position of the first use after the running kernel.
	kernelEnd int64
	stretches []levelled
	useSpace  []isa.Use // room for the uses of the next commands
}

// gbValue is a value that claims pages until after step last.
type gbValue struct {
	place *stretch
	last  int
}

type levelled struct {
	*stretch
	level isa.Level
}

// valueState is what the emitter knows of a value while it runs an iteration.
type valueState struct {
	ready []int32 // commands after which it is complete
	place *stretch
}

func (e *emitter) label(s string) int32 {
	if i, ok := e.labels[s]; ok {
		return i
	}
	i := int32(len(e.p.Labels))
	e.labels[s] = i
	e.p.Labels = append(e.p.Labels, s)
	return i
}

func (e *emitter) add(q int, c isa.Command, deps ...[]int32) int32 {
	c.Queue = e.cluster*numQueues + int32(q)
	c.Iteration = e.iter
	n := 0
	for _, d := range deps {
		n += len(d)
	}
	if n > 0 {
		c.Deps = make([]int32, 0, n)
	}
	for _, d := range deps {
		for _, x := range d {
			if x >= 0 {
				c.Deps = append(c.Deps, x)
			}
		}
	}
	e.queues = append(e.queues, uint8(q))
	if len(c.Deps) > longList {
		c.Deps = e.queues.latest(c.Deps)
	}
	e.cmds = append(e.cmds, pending{Command: c, block: e.block})
	return int32(len(e.cmds) - 1)
}

func (e *emitter) resource(r int) int32 { return 1 + e.cluster*numResources + int32(r) }

func seconds(s float64) int64 { return int64(math.Ceil(s * 1e12)) }

func (e *emitter) run(segments []Segment) error {
	buffer := schedule.WeightBufferBytes(e.spec) - schedule.WeightHomeBytes(e.spec)
	plans := make([][]*layerPlan, len(segments))
	e.uses, e.nextPos = map[tileKey][]int64{}, map[tileKey]int{}
	pos := int64(0)
	var kernelEnds []int64
	e.lb.log, e.gbActs.log = &e.queues, &e.queues
	for i, seg := range segments {
		for s := range seg.Schedule.Steps {
			plans[i] = append(plans[i], plan(seg.Schedule, &seg.Schedule.Steps[s], e.cost, buffer, schedule.WeightRingBytes(e.spec), e.fine))
		}
		for it := 0; it < seg.Iterations; it++ {
			for k, lp := range plans[i] {
				if k > 0 && lp.step.Instance != plans[i][k-1].step.Instance {
					kernelEnds = append(kernelEnds, pos)
				}
				lp.eachUse(func(t *weightTile) {
					e.uses[t.key] = append(e.uses[t.key], pos)
					pos++
				})
			}
			kernelEnds = append(kernelEnds, pos)
		}
	}
	weightRing := schedule.WeightRingBytes(e.spec)
	e.params = ring{space: space{log: &e.queues}, base: e.lbData, size: buffer - weightRing}
	e.weights = ring{space: space{log: &e.queues}, base: e.lbData + e.params.size, size: weightRing}
	if e.spec.GB != nil {
		e.pages = newPages(&e.queues, int64(e.spec.GB.SizeBytes), e.recordEntry)
	} else {
		e.home = home{space: space{log: &e.queues}, next: e.weights.base + weightRing, tiles: map[tileKey]resident{}}
		e.home.end = e.home.next + schedule.WeightHomeBytes(e.spec)
	}
	kernel := 0
	for i, seg := range segments {
		s := seg.Schedule
		before := len(e.cmds)
		for it := 0; it < seg.Iterations; it++ {
			if it == 1 { // the others will be much like the first
				more := (len(e.cmds) - before) * (seg.Iterations - 1)
				e.cmds = slices.Grow(e.cmds, min(more+more/16, maxCommands/e.alike))
			}
			values := make([]valueState, len(s.Values))
			for k := range s.Steps {
				lp := plans[i][k]
				if k == 0 || lp.step.Instance != plans[i][k-1].step.Instance {
					e.kernelEnd = kernelEnds[kernel]
					kernel++
					if !e.opt.KeepWeights && e.pages != nil {
						e.pages.forget()
					}
					e.open(isa.Launch, e.kernelLabel(s, lp.step.Instance), seconds(e.spec.LaunchSeconds))
				} else if !e.opt.CrossLayer {
					e.open(isa.Barrier, e.label(lp.layer.Name), seconds(e.spec.SyncSeconds))
				}
				e.releaseDead(k)
				e.step(s, lp, values)
				if len(e.p.Commands)+len(e.cmds)*e.alike > maxCommands {
					return &TooLargeError{e.p.Name, fmt.Sprintf("have more than %d commands", maxCommands)}
				}
			}
			e.releaseDead(len(s.Steps) + 1)
			e.iter++
		}
	}
	e.flush()
	return nil
}

// eachUse visits the weight tiles of a step in the order in which they pass.
func (lp *layerPlan) eachUse(visit func(*weightTile)) {
	for i := range lp.params {
		visit(&lp.params[i])
	}
	times := int64(1)
	if lp.restream {
		times = lp.tiles
	}
	for ; times > 0; times-- {
		for i := range lp.weights {
			visit(&lp.weights[i])
		}
	}
}

// releaseDead gives the GB pages of values back that no step from step on reads.
func (e *emitter) releaseDead(step int) {
	kept := e.inGB[:0]
	for _, v := range e.inGB {
		if v.last < step {
			e.pages.unclaim(v.place.lo, v.place.hi, v.place.lasts)
		} else {
			kept = append(kept, v)
		}
	}
	e.inGB = kept
}

func (e *emitter) kernelLabel(s *schedule.Schedule, inst int) int32 {
	in := &s.Instances.Instances[inst]
	sg := s.Grouping.Groups[in.Group]
	return e.label(fmt.Sprintf("%s/%d", sg.Name, in.Index))
}

func (e *emitter) open(kind isa.Kind, label int32, ps int64) {
	e.block++
	i := e.add(qControl, isa.Command{Kind: kind, Label: label, DurationPs: ps})
	e.cmds[i].opens = true
}

// loadTile brings a weight tile to the weight buffer of this many cores and returns
// the command after which it is there, and its place.
func (e *emitter) loadTile(t *weightTile, through *ring, cores int64, label int32) (int32, *stretch) {
	list := e.uses[t.key]
	n := e.nextPos[t.key]
	e.nextPos[t.key] = n + 1
	next := int64(never)
	if n+1 < len(list) && (e.opt.KeepWeights || list[n+1] < e.kernelEnd) {
		next = list[n+1]
	}
	broadcast := e.spec.CoreLink.Broadcast
	gbBytes := t.unionBytes * t.times
	if !broadcast {
		gbBytes = t.coreBytes * cores * t.times
	}
	coreBytes := t.coreBytes * t.times
	if e.pages == nil {
		return e.loadHome(t, through, gbBytes, next != never, label)
	}
	place, free := through.next(t.coreBytes, label)
	ent := e.pages.find(t.key, next)
	if ent == nil || t.unionBytes > e.pages.largest() {
		return e.stream(t.key, true, t.unionBytes, gbBytes, coreBytes, next, nil, place, free, label)
	}
	c := e.add(qIn, isa.Command{Kind: isa.LBLoad, Label: label, Bytes: t.unionBytes * t.times, DurationPs: e.lbLatency(),
		Uses: e.moveIn(gbBytes, coreBytes)}, free, []int32{ent.load})
	ent.users = append(ent.users, c)
	place.use(c)
	e.recordStretch(place, isa.LB)
	return c, place
}

// loadHome is loadTile on a machine without a GB: the tile comes from the DDR, or
// from where it was kept on its first use. far is what leaves the DDR.
func (e *emitter) loadHome(t *weightTile, through *ring, far int64, again bool, label int32) (int32, *stretch) {
	coreBytes := t.coreBytes * t.times
	latency := e.ddrLatency() + e.lbLatency()
	kept, ok := e.home.tiles[t.key]
	// Without broadcast, each core keeps its own copy and uses it where it lies.
	if !e.spec.CoreLink.Broadcast {
		ok = ok && kept.coreBytes == t.coreBytes // else cut otherwise over the cores
		if ok {
			return kept.load, kept.place
		}
		if place := e.home.keep(t.coreBytes, again, label); place != nil {
			c := e.add(qDDRLoad, isa.Command{Kind: isa.DDRLoad, Label: label, Bytes: t.unionBytes, DurationPs: latency,
				Uses: e.uses4(far/t.times, 0, t.coreBytes, 0)})
			e.cmds[c].roam = e.opt.Prefetch
			place.use(c)
			e.recordStretch(place, isa.LB)
			e.home.tiles[t.key] = resident{c, place, t.coreBytes}
			return c, place
		}
	}
	// With broadcast, each core keeps a share, whether it works on this layer or not,
	// and sends it to all when it is used.
	place, free := through.next(t.coreBytes, label)
	share := ceilDiv(t.unionBytes, schedule.CoresWithLB(e.spec))
	var c int32
	if ok {
		c = e.add(qIn, isa.Command{Kind: isa.LBLoad, Label: label, Bytes: t.unionBytes * t.times, DurationPs: e.lbLatency(),
			Uses: e.uses4(0, 0, coreBytes, share*t.times)}, free, []int32{kept.load})
		kept.place.use(c)
	} else {
		c = e.add(qDDRLoad, isa.Command{Kind: isa.DDRLoad, Label: label, Bytes: t.unionBytes * t.times, DurationPs: latency,
			Uses: e.uses4(far, 0, coreBytes, 0)}, free)
		e.cmds[c].roam = e.opt.Prefetch
		if e.spec.CoreLink.Broadcast {
			if own := e.home.keep(share, again, label); own != nil {
				own.use(c)
				e.recordStretch(own, isa.LB)
				e.home.tiles[t.key] = resident{c, own, t.coreBytes}
			}
		}
	}
	place.use(c)
	e.recordStretch(place, isa.LB)
	return c, place
}

// stream loads bytes from the DDR through the GB to place, in pieces that the
// pages can hold. Only a single piece can be found again. What roams (weights and
// network inputs) depends on no computation.
func (e *emitter) stream(key tileKey, roam bool, bytes, gbBytes, coreBytes, next int64, after []int32, place *stretch, free []int32, label int32) (int32, *stretch) {
	n := ceilDiv(bytes, e.pages.largest())
	last := int32(-1)
	uses := e.uses4
	if key == (tileKey{}) {
		uses = e.activationUses
	}
	for i := int64(0); i < n; i++ {
		part := func(b int64) int64 { return b*(i+1)/n - b*i/n }
		keyed := n == 1 && key.tiles > 0
		nu := int64(never)
		if keyed {
			nu = next
		}
		ent, deps := e.pages.add(key, keyed, part(bytes), nu)
		ent.load = e.add(qDDRLoad, isa.Command{Kind: isa.DDRLoad, Label: label, Bytes: part(bytes), DurationPs: e.ddrLatency(),
			Uses: uses(part(bytes), part(bytes), 0, 0)}, deps, after)
		e.cmds[ent.load].roam = e.opt.Prefetch && roam
		ent.first = ent.load
		last = e.add(qIn, isa.Command{Kind: isa.LBLoad, Label: label, Bytes: part(bytes), DurationPs: e.lbLatency(),
			Uses: e.moveIn(part(gbBytes), part(coreBytes))}, free, []int32{ent.load})
		ent.users = append(ent.users, last)
		if place != nil {
			place.use(last)
		}
	}
	if place != nil {
		e.recordStretch(place, isa.LB)
	}
	return last, place
}

func (e *emitter) ddrLatency() int64 {
	return seconds(e.spec.DDR.LatencySeconds + e.spec.DDRLink.LatencySeconds)
}

func (e *emitter) lbLatency() int64 {
	l := e.spec.CoreLink.LatencySeconds
	if e.spec.GB != nil {
		l += e.spec.GB.LatencySeconds
	}
	return seconds(l)
}

func (e *emitter) uses4(ddr, gb, in, out int64) []isa.Use {
	if cap(e.useSpace)-len(e.useSpace) < 1+numResources {
		e.useSpace = make([]isa.Use, 0, 4096)
	}
	n := len(e.useSpace)
	use := func(r int32, bytes int64) { e.useSpace = append(e.useSpace, isa.Use{Resource: r, Bytes: bytes}) }
	if ddr > 0 {
		use(0, ddr)
		use(e.resource(rPort), ddr)
	}
	if gb > 0 && e.spec.GB != nil {
		use(e.resource(rGB), gb)
	}
	if in > 0 {
		use(e.resource(rIn), in)
	}
	if out > 0 {
		use(e.resource(rOut), out)
	}
	if m := len(e.useSpace); m > n {
		return e.useSpace[n:m:m]
	}
	return nil
}

// activationUses are the uses4 of a move of activations.
func (e *emitter) activationUses(ddr, gb, in, out int64) []isa.Use {
	u := e.uses4(ddr, gb, in, out)
	if eff := e.spec.DDRActivationEfficiency; eff > 0 && ddr > 0 {
		u[0].Bytes = int64(math.Ceil(float64(ddr) / eff))
	}
	return u
}

func (e *emitter) moveIn(gb, core int64) []isa.Use  { return e.uses4(0, gb, core, 0) }
func (e *emitter) moveOut(gb, core int64) []isa.Use { return e.uses4(0, gb, 0, core) }

// recordStretch remembers a piece of memory for the program's buffer list, once.
func (e *emitter) recordStretch(s *stretch, level isa.Level) {
	if !s.recorded {
		s.recorded = true
		e.stretches = append(e.stretches, levelled{s, level})
	}
}

func (e *emitter) recordEntry(o *entry) {
	// One buffer per run of consecutive pages.
	for i := 0; i < len(o.pages); {
		j := i + 1
		for j < len(o.pages) && o.pages[j] == o.pages[j-1]+1 {
			j++
		}
		lo := int64(o.pages[i]) * e.pages.pageBytes
		s := &stretch{lo: lo, hi: lo + int64(j-i)*e.pages.pageBytes, first: o.first, label: e.cmds[o.first].Label,
			lasts: append(append([]int32(nil), o.users...), o.load)}
		e.stretches = append(e.stretches, levelled{s, isa.GB})
		i = j
	}
}

// arrival is an input on its way into the LB: piece i is there after done(i).
type arrival struct {
	pieces []int32
	place  *stretch
	ready  []int32 // of what is read in place
	whole  bool    // all of it is needed from the start
	// streamed: piece t belongs to outer tile t and is issued with it.
	streamed bool
}

// arrived notes the command that brings the next piece; a piece without bytes comes
// with the one before.
func (a *arrival) arrived(c int32) {
	if n := len(a.pieces); c < 0 && n > 0 {
		c = a.pieces[n-1]
	}
	a.pieces = append(a.pieces, c)
}

// after is what piece i of n must wait for, of what was issued so far.
func (a *arrival) after(i, n int64) []int32 {
	if len(a.pieces) == 0 {
		return a.ready
	}
	if a.whole || a.streamed {
		return append([]int32{a.pieces[len(a.pieces)-1]}, a.ready...)
	}
	k := (i + 1) * int64(len(a.pieces)) / n
	return append([]int32{a.pieces[max(0, k-1)]}, a.ready...)
}

func (e *emitter) step(s *schedule.Schedule, lp *layerPlan, values []valueState) {
	g := s.Graph
	st := lp.step
	label := e.label(lp.layer.Name)
	anchor := g.Op(lp.layer.Anchor)
	cores := st.Cores
	total := lp.tiles * lp.pieces // row pieces of the whole step

	// Where things pass through.
	stageAt := st.StageAddress
	parts := s.Staged(st)
	stagePart := func(p schedule.StagePart) (*stretch, []int32) {
		n := p.Space(max(1, st.Tiles))
		sp, deps := e.lb.take(stageAt, n, label)
		stageAt += n
		return sp, deps
	}

	// Inputs. Streams of outer tiles are double-buffered: the load of tile t waits
	// for the computation of tile t-2, which is filled in below.
	type incoming struct {
		arrival
		read   *schedule.Read
		val    *schedule.Value
		deps   []int32
		first  bool // anchor's streamed operand
		second bool // anchor's stationary operand
	}
	var ins []*incoming
	for i := range st.Reads {
		r := &st.Reads[i]
		v := &s.Values[r.Value]
		in := &incoming{read: r, val: v}
		in.first = lp.matrix && v.Tensor == anchor.Inputs[0]
		in.second = lp.matrix && len(anchor.Inputs) > 1 && v.Tensor == anchor.Inputs[1]
		in.whole = st.Whole(r)
		in.streamed = lp.tiles > 1 && !in.whole
		if v.Level == schedule.LB {
			in.ready = values[r.Value].ready
		}
		ins = append(ins, in)
	}
	// The pieces of one tensor share a place, since a core needs its part of some
	// of them only.
	for _, part := range parts {
		if part.From < 0 {
			continue
		}
		place, deps := stagePart(part)
		for i := part.From; i < part.To; i++ {
			ins[i].place, ins[i].deps = place, deps
		}
	}
	// Outputs: in place, or staged on their way out.
	var outs []*outgoing
	for _, w := range st.Writes {
		v := &s.Values[w]
		o := &outgoing{val: v}
		if v.Level == schedule.LB {
			o.place, o.deps = e.lb.take(v.Address, v.CoreBytes, label)
			values[w].place = o.place
		} else {
			for _, part := range parts {
				if part.From < 0 && part.To == w {
					o.place, o.deps = stagePart(part)
				}
			}
			if v.Level == schedule.GB {
				o.far, o.fdeps = e.gbActs.take(v.Address, schedule.Align(v.Bytes), label)
				o.fdeps = append(o.fdeps, e.pages.claim(o.far.lo, o.far.hi)...)
				e.inGB = append(e.inGB, gbValue{o.far, v.Last})
				values[w].place = o.far
			}
		}
		outs = append(outs, o)
	}
	var outDeps []int32
	for _, o := range outs {
		outDeps = append(outDeps, o.deps...)
	}

	// bring loads piece i of n of an input.
	bring := func(in *incoming, i, n int64, wait []int32) {
		part := func(b int64) int64 { return b*(i+1)/n - b*i/n }
		v, r := in.val, in.read
		switch v.Level {
		case schedule.LB:
			if r.RemoteBytes == 0 {
				return
			}
			remote := part(r.RemoteBytes)
			c := e.add(qOut, isa.Command{Kind: isa.Exchange, Label: label, Cores: int32(cores), Bytes: remote,
				DurationPs: 2*e.lbLatency() + seconds(e.spec.SyncSeconds),
				Uses:       e.uses4(0, 2*remote, part(r.CoreRemoteBytes), ceilDiv(remote, max(1, v.Binding.Cores())))}, in.deps, wait, values[r.Value].ready)
			in.arrived(c)
			in.place.use(c)
			values[r.Value].place.use(c)
		case schedule.GB:
			c := e.add(qIn, isa.Command{Kind: isa.LBLoad, Label: label, Cores: int32(cores), Bytes: part(r.NeedBytes),
				DurationPs: e.lbLatency(), Uses: e.moveIn(part(e.fromGB(r)), part(r.CoreNeedBytes))}, in.deps, wait, values[r.Value].ready)
			in.arrived(c)
			in.place.use(c)
			values[r.Value].place.use(c)
		default:
			if e.pages == nil {
				c := e.add(qDDRLoad, isa.Command{Kind: isa.DDRLoad, Label: label, Cores: int32(cores), Bytes: part(r.UnionBytes),
					DurationPs: e.ddrLatency() + e.lbLatency(), Uses: e.activationUses(part(e.fromGB(r)), 0, part(r.CoreNeedBytes), 0)}, in.deps, wait, values[r.Value].ready)
				in.arrived(c)
				in.place.use(c)
				break
			}
			c, _ := e.stream(tileKey{}, v.Instance < 0, part(r.UnionBytes), part(e.fromGB(r)), part(r.CoreNeedBytes), never,
				values[r.Value].ready, nil, append(append([]int32(nil), in.deps...), wait...), label)
			in.arrived(c)
			in.place.use(c)
		}
		if i == 0 {
			e.recordStretch(in.place, isa.LB)
		}
	}

	// Parameters beside the weights: biases, scales, tables.
	// Small ones stay for the whole step; large ones pass chunk by chunk, each in
	// front of the part of the vector work that needs it.
	var tables []int32
	var paramLoads []int32
	var paramPlaces []*stretch
	paramBytes := int64(0)
	for i := range lp.params {
		paramBytes += lp.params[i].coreBytes
	}
	paramsStay := paramBytes <= e.params.size/2
	bringParams := func(upTo int) {
		for i := len(paramLoads); i < upTo; i++ {
			c, place := e.loadTile(&lp.params[i], &e.params, cores, label)
			paramLoads = append(paramLoads, c)
			paramPlaces = append(paramPlaces, place)
		}
	}
	// early is what the matrix unit itself must wait for.
	var early []int32
	if paramsStay || lp.constantRows || lp.vector.Total() == 0 {
		bringParams(len(lp.params))
		if lp.constantRows {
			early = paramLoads
		}
	}
	// Looked-up rows go straight to where the output is made, once the indices are
	// known.
	var indices []int32
	known := true
	if len(lp.rows) > 0 {
		for _, in := range ins {
			known = known && in.val.Instance < 0
			indices = append(indices, values[in.read.Value].ready...)
		}
	}
	for i := range lp.rows {
		r := &lp.rows[i]
		var c int32
		if e.pages == nil {
			c = e.add(qDDRLoad, isa.Command{Kind: isa.DDRLoad, Label: label, Cores: int32(cores), Bytes: r.UnionBytes,
				DurationPs: e.ddrLatency() + e.lbLatency(), Uses: e.activationUses(r.UnionBytes, 0, r.CoreBytes, 0)}, outDeps, indices)
		} else {
			c, _ = e.stream(tileKey{}, known, r.UnionBytes, r.UnionBytes, r.CoreBytes, never, indices, nil, outDeps, label)
		}
		tables = append(tables, c)
		for _, o := range outs {
			o.place.use(c)
		}
	}

	perVector := lp.vector
	vectorParts := total
	nTiles := int64(1)
	if lp.matrix && len(lp.weights) > 0 {
		nTiles = int64(len(lp.weights) / lp.kTiles)
		vectorParts *= nTiles
	}
	perVector = share(perVector, vectorParts*lp.repeat)
	vecCycles, specCycles := e.cost.VectorCycles(perVector, lp.vectorType)
	vecCycles *= hardware.Cycles(lp.repeat * e.sharing(hardware.Vector, cores))
	specCycles *= hardware.Cycles(lp.repeat * e.sharing(hardware.Special, cores))
	vecOpsPart := func(i int64) int64 { return lp.vecOps*(i+1)/vectorParts - lp.vecOps*i/vectorParts }

	var lastCompute [][]int32 // per outer tile
	var writers []int32       // latest on each unit
	vectorIndex, macIndex := int64(0), int64(0)
	macParts := total * max(1, int64(len(lp.weights)))
	macsPart := func() int64 {
		n := lp.macs*(macIndex+1)/macParts - lp.macs*macIndex/macParts
		macIndex++
		return n
	}
	if lp.tiles > 1 && !lp.restream && e.weights.head+lp.weightTotal > e.weights.size {
		e.weights.head = 0 // what stays for all tiles must not wrap over itself
	}
	resident := make([]int32, len(lp.weights)) // load commands, when weights stay
	residentPlace := make([]*stretch, len(lp.weights))
	storeIndex := int64(0)
	storeParts := lp.tiles * nTiles
	var drained [][]int32 // per outer tile: after these its output has left the LB

	for t := int64(0); t < lp.tiles; t++ {
		// The stage holds two tiles: tile t takes the place of tile t-2.
		var wait, free, left []int32
		if t >= 2 {
			wait, free = lastCompute[t-2], drained[t-2]
		}
		for _, in := range ins {
			switch {
			case lp.tiles > 1 && !in.whole:
				bring(in, t, lp.tiles, wait)
			case t == 0 && in.whole:
				bring(in, 0, 1, nil)
			case t == 0:
				for i := int64(0); i < lp.pieces; i++ {
					bring(in, i, lp.pieces, nil)
				}
			}
		}
		var done []int32
		// epilogue runs the vector work on piece i behind the given commands.
		epilogue := func(i int64, behind []int32, firstUse bool) {
			piece := t*lp.pieces + i
			deps := append(append([]int32(nil), behind...), free...)
			for _, in := range ins {
				if !in.first && !in.second {
					deps = append(deps, in.after(piece, total)...)
				}
			}
			deps = append(deps, tables...)
			from, to := 0, len(lp.params)
			if !paramsStay {
				from, to = int(vectorIndex*int64(to)/vectorParts), int((vectorIndex+1)*int64(to)/vectorParts)
				to = max(to, min(from+1, len(lp.params)))
				bringParams(to)
			}
			deps = append(deps, paramLoads[from:to]...)
			if firstUse {
				deps = append(deps, outDeps...)
			}
			ops := vecOpsPart(vectorIndex)
			vectorIndex++
			var cs []int32
			if specCycles > 0 {
				q := qSpecial
				if e.cost.SharedVector() {
					q = qVector
				}
				c := e.add(q, isa.Command{Kind: isa.Special, Label: label, Cores: int32(cores), DurationPs: e.cost.Picoseconds(specCycles),
					VectorOps: ops * perVector.Special / max(1, perVector.Total())}, deps)
				cs = append(cs, c)
			}
			if vecCycles > 0 || len(cs) == 0 {
				c := e.add(qVector, isa.Command{Kind: isa.Vector, Label: label, Cores: int32(cores), DurationPs: e.cost.Picoseconds(vecCycles),
					VectorOps: ops - ops*perVector.Special/max(1, perVector.Total())}, deps, cs)
				cs = append(cs, c)
			}
			done = append(done, cs...)
			writers = cs
			for _, in := range ins {
				if !in.first && !in.second {
					if in.place != nil {
						in.place.use(cs...)
					}
					if in.val.Level == schedule.LB {
						values[in.read.Value].place.use(cs...)
					}
				}
			}
			for _, p := range paramPlaces[from:to] {
				p.use(cs...)
			}
			for _, o := range outs {
				o.place.use(cs...)
			}
		}
		if lp.matrix {
			hasVector := lp.vector.Total() > 0
			ks := lp.weights
			if len(ks) == 0 {
				ks = []weightTile{{n: lp.dims.N, k: lp.dims.K, reps: lp.dims.Reps, lastK: true}}
			}
			for w := range ks {
				tile := &ks[w]
				var load int32 = -1
				var place *stretch
				if len(lp.weights) > 0 {
					if t == 0 || lp.restream {
						load, place = e.loadTile(tile, &e.weights, cores, label)
						resident[w], residentPlace[w] = load, place
					} else {
						load, place = resident[w], residentPlace[w]
					}
				}
				var last []int32
				for i := int64(0); i < lp.pieces; i++ {
					piece := t*lp.pieces + i
					dims := iteration(rowsOf(model.MatrixDims{Reps: tile.reps, M: lp.dims.M, N: tile.n, K: tile.k}, piece, total), lp.repeat)
					deps := append([]int32{load}, free...)
					deps = append(deps, early...)
					for _, in := range ins {
						if in.first || in.second {
							deps = append(deps, in.after(piece, total)...)
						}
					}
					if w == 0 && piece == 0 {
						deps = append(deps, outDeps...)
					}
					c := e.add(qMatrix, isa.Command{Kind: isa.Matrix, Label: label, Cores: int32(cores), MACs: macsPart(),
						DurationPs: e.cost.Picoseconds(e.cost.MatrixCycles(dims, lp.dtype) * hardware.Cycles(lp.repeat*e.sharing(hardware.Matrix, cores)))}, deps)
					for _, in := range ins {
						if in.first || in.second {
							if in.place != nil {
								in.place.use(c)
							}
							if in.val.Level == schedule.LB {
								values[in.read.Value].place.use(c)
							}
						}
					}
					if place != nil {
						place.use(c)
					}
					for _, o := range outs {
						o.place.use(c)
					}
					last = append(last, c)
					if tile.lastK && hasVector {
						epilogue(i, []int32{c}, false)
					}
				}
				done = append(done, last[len(last)-1])
				if tile.lastK {
					if !hasVector {
						writers = last[len(last)-1:]
					}
					left = append(left, e.store(lp, outs, storeIndex, storeParts, writers, label)...)
					storeIndex++
				}
			}
		} else {
			for i := int64(0); i < lp.pieces; i++ {
				epilogue(i, nil, t == 0 && i == 0)
			}
			left = append(left, e.store(lp, outs, storeIndex, storeParts, writers, label)...)
			storeIndex++
		}
		lastCompute = append(lastCompute, done)
		drained = append(drained, left)
	}

	for _, o := range outs {
		state := &values[o.val.ID]
		switch o.val.Level {
		case schedule.LB:
			// A matrix result without vector work is complete after its last command;
			// in-order units make the last of each unit enough.
			state.ready = writers
			e.cmds[writers[len(writers)-1]].WriteLevel = isa.LB
		case schedule.GB:
			state.ready = []int32{o.stored}
			e.cmds[o.stored].WriteLevel = isa.GB
			e.recordStretch(o.far, isa.GB)
		default:
			state.ready = []int32{o.stored}
			e.cmds[o.stored].WriteLevel = isa.DDR
		}
		e.recordStretch(o.place, isa.LB)
	}
}

// outgoing is an output of a step.
type outgoing struct {
	val   *schedule.Value
	place *stretch // in the LB
	deps  []int32  // before the first write there
	far   *stretch // in the GB
	fdeps []int32
	// stored is the latest command that moved a part of it to its level.
	stored int32
}

// store moves part i of n of each output that does not stay in the LB. It returns
// the commands after which that part has left the LB.
func (e *emitter) store(lp *layerPlan, outs []*outgoing, i, n int64, after []int32, label int32) (left []int32) {
	part := func(b int64) int64 { return b*(i+1)/n - b*i/n }
	for _, o := range outs {
		v := o.val
		if v.Level == schedule.LB {
			continue
		}
		cores := int32(lp.step.Cores)
		switch {
		case v.Level == schedule.GB:
			c := e.add(qOut, isa.Command{Kind: isa.LBStore, Label: label, Cores: cores, Bytes: part(v.Bytes), DurationPs: e.lbLatency(),
				Uses: e.moveOut(part(v.Bytes), part(v.CoreBytes))}, after, o.fdeps)
			o.place.use(c)
			o.far.use(c)
			left = append(left, c)
			o.stored = c
		case e.pages == nil:
			c := e.add(qDDRStore, isa.Command{Kind: isa.DDRStore, Label: label, Cores: cores, Bytes: part(v.Bytes), DurationPs: e.ddrLatency() + e.lbLatency(),
				Uses: e.activationUses(part(v.Bytes), 0, 0, part(v.CoreBytes))}, after)
			o.place.use(c)
			left = append(left, c)
			o.stored = c
		default:
			pieces := ceilDiv(part(v.Bytes), e.pages.largest())
			for k := int64(0); k < pieces; k++ {
				sub := func(b int64) int64 { return part(b)*(k+1)/pieces - part(b)*k/pieces }
				ent, deps := e.pages.add(tileKey{}, false, sub(v.Bytes), never)
				ent.load = e.add(qOut, isa.Command{Kind: isa.LBStore, Label: label, Cores: cores, Bytes: sub(v.Bytes), DurationPs: e.lbLatency(),
					Uses: e.moveOut(sub(v.Bytes), sub(v.CoreBytes))}, after, deps)
				ent.first = ent.load
				o.place.use(ent.load)
				c := e.add(qDDRStore, isa.Command{Kind: isa.DDRStore, Label: label, Bytes: sub(v.Bytes), DurationPs: e.ddrLatency(),
					Uses: e.activationUses(sub(v.Bytes), sub(v.Bytes), 0, 0)}, []int32{ent.load})
				ent.users = append(ent.users, c)
				left = append(left, ent.load)
				o.stored = c
			}
		}
	}
	return left
}

// sharing is how many cores' slices one unit of this kind works on, one after
// another: more than one if fewer cores have the unit than hold data.
func (e *emitter) sharing(kind hardware.UnitKind, cores int64) int64 {
	n := int64(e.spec.CoresWith(kind))
	if n == 0 { // another kind stands in, see package cost
		n = max(int64(e.spec.CoresWith(hardware.Vector)), int64(e.spec.CoresWith(hardware.Special)))
	}
	return max(1, ceilDiv(cores, max(1, n)))
}

// fromGB is how many bytes leave the GB for a read.
func (e *emitter) fromGB(r *schedule.Read) int64 {
	if e.spec.CoreLink.Broadcast {
		return r.UnionBytes
	}
	return r.NeedBytes
}

// share divides vector work into n equal parts, rounded up.
func share(w model.VectorWork, n int64) model.VectorWork {
	return model.VectorWork{Simple: ceilDiv(w.Simple, n), Special: ceilDiv(w.Special, n), Move: ceilDiv(w.Move, n)}
}

// rowsOf is row piece i of n of a product: whole repetitions while there are
// enough, else rows of one.
func rowsOf(d model.MatrixDims, i, n int64) model.MatrixDims {
	if d.Reps >= n {
		d.Reps = d.Reps*(i+1)/n - d.Reps*i/n
		return d
	}
	rows := d.Reps * d.M
	d.Reps, d.M = 1, rows*(i+1)/n-rows*i/n
	return d
}

// iteration is one of n equal parts of a product, rounded up.
func iteration(d model.MatrixDims, n int64) model.MatrixDims {
	if d.Reps >= n {
		d.Reps = ceilDiv(d.Reps, n)
		return d
	}
	d.Reps, d.M = 1, ceilDiv(d.Reps*d.M, n)
	return d
}

// flush completes the dependencies of the cluster's commands and appends them.
func (e *emitter) flush() {
	if e.pages != nil {
		e.pages.clear()
	}
	opener := make([]int32, e.block+1)
	for i := range e.cmds {
		if e.cmds[i].opens {
			opener[e.cmds[i].block] = int32(i)
		}
	}
	base := int32(len(e.p.Commands))
	e.p.Commands = slices.Grow(e.p.Commands, len(e.cmds)*e.alike)
	e.p.Buffers = slices.Grow(e.p.Buffers, len(e.stretches)*e.alike)
	deps := make([]int32, 0, 3*len(e.cmds))
	lastOf := [numQueues]int32{}
	for q := range lastOf {
		lastOf[q] = -1
	}
	for i := range e.cmds {
		pc := &e.cmds[i]
		c := pc.Command
		// A queue runs in order: of several commands of one queue, waiting for the last
		// is enough, and of the own queue for none.
		last := [numQueues]int32{}
		for q := range last {
			last[q] = -1
		}
		wait := func(d int32) {
			if q := e.cmds[d].Queue - e.cluster*numQueues; e.cmds[d].Queue != c.Queue {
				last[q] = max(last[q], d)
			}
		}
		switch {
		case pc.opens:
			for _, d := range lastOf {
				if d >= 0 {
					wait(d)
				}
			}
		case pc.roam:
			for _, d := range c.Deps {
				wait(d)
			}
		default:
			// Earlier blocks have ended when this block opens, but for what roams.
			wait(opener[pc.block])
			for _, d := range c.Deps {
				if e.cmds[d].block == pc.block || e.cmds[d].roam {
					wait(d)
				}
			}
		}
		n := len(deps)
		for _, d := range last {
			if d >= 0 {
				deps = append(deps, base+d)
			}
		}
		c.Deps = nil
		if m := len(deps); m > n {
			c.Deps = deps[n:m:m]
			slices.Sort(c.Deps)
		}
		if !pc.roam {
			lastOf[c.Queue-e.cluster*numQueues] = int32(i)
		}
		e.p.Commands = append(e.p.Commands, c)
	}
	for _, s := range e.stretches {
		if s.first < 0 || s.hi == s.lo {
			continue
		}
		b := isa.Buffer{Label: s.label, Level: s.level, Cluster: e.cluster, Address: s.lo, Bytes: s.hi - s.lo, First: base + s.first}
		for _, l := range s.lasts {
			b.First = min(b.First, base+l)
			b.Lasts = append(b.Lasts, base+l)
		}
		slices.Sort(b.Lasts)
		b.Lasts = slices.Compact(b.Lasts)
		e.p.Buffers = append(e.p.Buffers, b)
	}
}
