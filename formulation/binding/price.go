package binding

import (
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/schedule"
)

// pricer turns steps, reads and writes into seconds, as the package's section on costs has it.
type pricer struct {
	s     *schedule.Schedule
	m     *cost.Model
	cores int64
}

// Moves prices the work of a schedule's steps and what passes between the L1s and other memories, in seconds, as labels
// do.
type Moves struct {
	p     pricer
	parts map[int][3]float64 // by step: of its units, of its parameters' way to the cores, and of those that pass again
}

// MovesOf is for the values and steps of s.
func MovesOf(s *schedule.Schedule, m *cost.Model) Moves {
	return Moves{pricer{s: s, m: m, cores: schedule.CoresWithL1(s.Spec)}, map[int][3]float64{}}
}

// Leaving is the time to take a value to a level and, as often as steps read it, from there to the cores.
func (m Moves) Leaving(v *schedule.Value, at schedule.Level, reads []*schedule.Read) float64 {
	seconds := m.p.write(v, at)
	for _, r := range reads {
		seconds += m.p.read(r, v, at)
	}
	return seconds
}

// Work is the time of a step's units or of its parameters' way to the cores, so many times but for rows of tables:
// whichever is longer.
func (m Moves) Work(st *schedule.Step, times int64) float64 {
	parts, ok := m.parts[st.ID]
	if !ok {
		parts[0], parts[1] = m.p.parts(m.p.s, st)
		for _, r := range st.Params {
			if !r.Rows {
				parts[2] += m.p.params(r, st.Cores)
			}
		}
		m.parts[st.ID] = parts
	}
	return max(parts[0], parts[1]+float64(times-1)*parts[2])
}

// Again is the time in which a step's parameters pass to the cores once more, but for rows of tables.
func (m Moves) Again(st *schedule.Step) float64 {
	m.Work(st, 1)
	return m.parts[st.ID][2]
}

// level is where a value is priced: network outputs in the DDR unless they are kept, what other sub-graphs read at the
// scope of its instance, the rest in the L1; and in the LLB, whatever the scope, if a core's part alone passes the L1.
func (p *pricer) level(v *schedule.Value, scope schedule.Level, s *schedule.Schedule) schedule.Level {
	if s.Graph.IsOutput(v.Tensor) && !s.Kept(v.Tensor) {
		return schedule.DDR
	}
	sg := s.Grouping.Groups[s.Instances.Instances[v.Instance].Group]
	at := schedule.L1
	if slices.Contains(sg.Outputs, v.Tensor) {
		at = scope
	}
	if v.CoreBytes > s.WeightRoom.DataBytes(s.Spec) {
		at = schedule.LLB
	}
	return at
}

// work is the time of a step's units and of its parameters' way into the L1, whichever is longer.
func (p *pricer) work(s *schedule.Schedule, st *schedule.Step) float64 {
	return math.Max(p.parts(s, st))
}

// parts are the two of which work is the longer.
func (p *pricer) parts(s *schedule.Schedule, st *schedule.Step) (units, weights float64) {
	layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	m := p.m.Kind(st.Kind)
	busy := m.LayerCycles(cost.Layer{Graph: s.Graph, Ops: layer.Ops, Anchor: layer.Anchor, Boxes: p.core(s, st, 0),
		Output: st.Output, Cores: st.Cores})
	for _, r := range st.Params {
		weights += p.params(r, st.Cores)
	}
	return float64(m.Picoseconds(busy)) * 1e-12, weights
}

// params is the time of a parameter's way to the cores.
func (p *pricer) params(r schedule.ParamRead, cores int64) float64 {
	llb := r.UnionBytes
	if !p.s.Spec.CoreLink.Broadcast && !r.Rows {
		llb = r.CoreBytes * cores
	}
	return p.slowest(0, llb, r.CoreBytes, 0)
}

// core returns the regions that a core computes and reads in a step.
func (p *pricer) core(s *schedule.Schedule, st *schedule.Step, core int64) schedule.Regions {
	g := s.Graph
	layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	reg := schedule.Regions{}
	for _, w := range st.Writes {
		v := &s.Values[w]
		if r := schedule.Slice(v.Region, v.Binding, g.Tensor(v.Tensor).Layout, core); r != nil {
			reg[v.Tensor] = r
		}
	}
	schedule.BackPropagate(g, layer.Ops, reg)
	return reg
}

func (p *pricer) needs(s *schedule.Schedule, st *schedule.Step) []schedule.Regions {
	need := make([]schedule.Regions, st.Cores)
	for c := range need {
		need[c] = p.core(s, st, int64(c))
	}
	return need
}

// from is the read rd of a value as made: what its cores find in their own slices
// depends on the binding under which it was made, all else does not.
func (p *pricer) from(rd *schedule.Read, made *schedule.Value, need []schedule.Regions) *schedule.Read {
	t := p.s.Graph.Tensor(made.Tensor)
	r := *rd
	r.RemoteBytes, r.CoreRemoteBytes = 0, 0
	for c, reg := range need {
		n := reg[made.Tensor]
		if n == nil {
			continue
		}
		n = n.Intersect(made.Region)
		remote := n.Elements()
		if own := schedule.Slice(made.Region, made.Binding, t.Layout, int64(c)); own != nil {
			remote -= n.Overlap(own)
		}
		r.RemoteBytes += t.DType.Bytes(remote)
		r.CoreRemoteBytes = max(r.CoreRemoteBytes, t.DType.Bytes(remote))
	}
	return &r
}

// read is the time to bring to the cores what they need of a value.
func (p *pricer) read(r *schedule.Read, v *schedule.Value, at schedule.Level) float64 {
	spec, llb := p.s.Spec, r.NeedBytes
	if spec.CoreLink.Broadcast {
		llb = r.UnionBytes
	}
	switch {
	case at == schedule.L1 && r.RemoteBytes == 0:
		return 0
	case at == schedule.L1:
		return 2*p.linkLatency() + spec.SyncSeconds +
			p.slowest(0, 2*r.Sent(spec), r.CoreRemoteBytes, (r.Sent(spec)+v.Binding.Cores()-1)/v.Binding.Cores())
	case at == schedule.LLB && spec.LLB != nil:
		return p.linkLatency() + p.slowest(0, llb, r.CoreNeedBytes, 0)
	}
	return p.ddrLatency() + p.linkLatency() + p.slowest(r.UnionBytes, llb, r.CoreNeedBytes, 0)
}

// write is the time to take a value from the L1 to its level and, if it is a network output, to the DDR.
func (p *pricer) write(v *schedule.Value, at schedule.Level) (seconds float64) {
	near := at == schedule.L1 || at == schedule.LLB && p.s.Spec.LLB != nil
	if near && at == schedule.LLB {
		seconds = p.linkLatency() + p.slowest(0, v.Bytes, 0, v.CoreBytes)
	}
	if !near || p.s.Graph.IsOutput(v.Tensor) {
		seconds += p.ddrLatency() + p.linkLatency() + p.slowest(v.Bytes, v.Bytes, 0, v.CoreBytes)
	}
	return seconds
}

// slowest is the time of a move that takes these bytes of the cluster's share of the
// DDR, of the LLB, and of a core's link inward and outward.
func (p *pricer) slowest(ddr, llb, in, out int64) float64 {
	spec := p.s.Spec
	t := float64(ddr) / (spec.DDR.BandwidthBytesPerSecond / float64(spec.Clusters))
	if spec.LLB != nil {
		t = math.Max(t, float64(llb)/spec.LLB.BandwidthBytesPerSecond)
	}
	if link := spec.CoreLink.BandwidthBytesPerSecond; link > 0 {
		t = math.Max(t, float64(max(in, out))/link)
	}
	return t
}

func (p *pricer) linkLatency() float64 {
	l := p.s.Spec.CoreLink.LatencySeconds
	if llb := p.s.Spec.LLB; llb != nil {
		l += llb.LatencySeconds
	}
	return l
}

func (p *pricer) ddrLatency() float64 {
	return p.s.Spec.DDR.LatencySeconds + p.s.Spec.DDRLink.LatencySeconds
}
