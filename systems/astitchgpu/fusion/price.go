package fusion

import (
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// Steps reports, for the operators of a group, whether each result is in step with so
// many rows of the dominant: what [Regional] rests on.
func Steps(g *model.Graph, ops []model.OpID, dominant model.OpID, rows int64) map[model.OpID]bool {
	inside := map[model.OpID]bool{}
	for _, id := range ops {
		inside[id] = true
	}
	ok := map[model.OpID]bool{}
	if prefix(g.Tensor(g.Op(dominant).Outputs[0]).Shape, rows) < 0 {
		return ok
	}
	ok[dominant] = true
	for queue := []model.OpID{dominant}; len(queue) > 0; queue = queue[1:] {
		op := g.Op(queue[0])
		for k, t := range op.Inputs {
			if p := g.Tensor(t).Producer; p != model.NoOp && inside[p] && !ok[p] && inStep(g, op, 0, k, rows) {
				ok[p] = true
				queue = append(queue, p)
			}
		}
		for _, t := range op.Outputs {
			for _, c := range g.Tensor(t).Consumers {
				if !inside[c] || ok[c] {
					continue
				}
				for k, in := range g.Op(c).Inputs {
					if in == t && inStep(g, g.Op(c), 0, k, rows) {
						ok[c] = true
						queue = append(queue, c)
						break
					}
				}
			}
		}
	}
	return ok
}

// WithinBlocks reports whether what op reads as t can pass through shared memory: the blocks that make its rows are
// those that read them. made and read say what is in step in the two groups, with the mappings from and to. The maker
// is the producer of t's root.
func WithinBlocks(g *model.Graph, op *model.Op, t model.TensorID, from, to simt.Mapping, made,
	read map[model.OpID]bool) bool {
	if from.Rows != to.Rows || from.RowsPerBlock() == 0 || from.RowsPerBlock() != to.RowsPerBlock() || !read[op.ID] {
		return false
	}
	root := Root(g, t)
	if !made[g.Tensor(root).Producer] || prefix(g.Tensor(root).Shape, from.Rows) < 0 {
		return false
	}
	for k, in := range op.Inputs {
		if in == t && !inStep(g, op, 0, k, to.Rows) {
			return false
		}
	}
	return true
}

// ReadBytes counts the bytes that op reads of input k: all that its outputs need, once; of a table
// that it gathers from, a row for each position.
func ReadBytes(g *model.Graph, op *model.Op, k int) int64 {
	t := g.Tensor(op.Inputs[k])
	if k == 0 && (op.Kind == "Gather" || op.Kind == "GatherElements") {
		return min(t.Bytes(), g.Tensor(op.Outputs[0]).Bytes())
	}
	n := int64(0)
	for out, o := range op.Outputs {
		n += g.InputRegion(op, out, k, model.Whole(g.Tensor(o).Shape)).Elements()
	}
	return min(t.Bytes(), t.DType.Bytes(n))
}

// work counts the vector operations of a group. An operator in front of a broadcast is
// computed for each element that it is broadcast to.
func work(g *model.Graph, ops []model.OpID) (simple, special int64) {
	inside := map[model.OpID]bool{}
	for _, id := range ops {
		inside[id] = true
	}
	runs := map[model.OpID]int64{} // elements computed, those computed again included
	for i := len(ops) - 1; i >= 0; i-- {
		op := g.Op(ops[i])
		own, n := int64(0), int64(0)
		for _, t := range op.Outputs {
			own += g.Tensor(t).Shape.Elements()
			for _, c := range g.Tensor(t).Consumers {
				if inside[c] && !g.OneToOne(g.Op(c), t) {
					n = max(n, runs[c])
				}
			}
		}
		runs[op.ID] = max(own, n)
		w := g.Work(op, nil)
		again := float64(runs[op.ID]) / float64(own)
		simple += int64(float64(w.Vector.Simple+w.Vector.Move) * again)
		special += int64(float64(w.Vector.Special) * again)
	}
	return simple, special
}

// Layout does what is cheap of [Kernel.Price]: phases, blocks and shared memory. It
// returns the group of each operator, and the links between groups by the reader's.
func (k *Kernel) Layout(g *model.Graph) (map[model.OpID]int, [][]Link) {
	group := map[model.OpID]int{}
	for j := range k.Groups {
		for _, id := range k.Groups[j].Ops {
			group[id] = j
		}
	}
	into := make([][]Link, len(k.Groups)) // links between groups, by reader
	for _, l := range k.Links {
		if l.Scheme == Regional || l.Scheme == Global {
			into[group[l.To]] = append(into[group[l.To]], l)
		}
	}
	k.Blocks, k.Phases = 0, 1
	for j := range k.Groups {
		gr := &k.Groups[j]
		gr.Phase = 0
		for _, l := range into[j] {
			gr.Phase = max(gr.Phase, k.Groups[group[l.From]].Phase)
			if l.Scheme == Global {
				gr.Phase = max(gr.Phase, k.Groups[group[l.From]].Phase+1)
			}
		}
		k.Phases = max(k.Phases, gr.Phase+1)
		k.Blocks = max(k.Blocks, gr.Mapping.Blocks)
	}
	k.Block.SharedBytes = k.shared(g, group)
	return group, into
}

// Price completes a kernel of which groups with their mappings, links with their schemes and the block's threads are
// given: phases, bytes, shared memory, registers and time. Links must join each two operators of different groups of
// which one reads the other. It reports whether the machine can run it: the block fits, and with a barrier all blocks
// are there at a time.
func (k *Kernel) Price(g *model.Graph, m *simt.Machine) bool {
	group, into := k.Layout(g)
	again := map[model.OpID]bool{}
	for _, id := range k.Again {
		again[id] = true
	}
	fits := func(t *model.Tensor) float64 {
		return min(1, float64(m.L2.SizeBytes)/float64(max(1, t.Bytes())))
	}
	nests := make([]simt.Nest, len(k.Groups))
	read := map[model.TensorID]int64{} // roots that came from the DRAM already
	k.ReadBytes, k.WriteBytes = 0, 0
	for j := range k.Groups {
		gr := &k.Groups[j]
		w := simt.Work{}
		w.Simple, w.Special = work(g, gr.Ops)
		type use struct {
			bytes    int64
			regional bool
			inside   bool
		}
		reads := map[model.TensorID]use{}
		var order []model.TensorID
		for _, id := range gr.Ops {
			op := g.Op(id)
			if g.Op(id).Class() == model.ReductionClass {
				w.Syncs += 2 // within warps, then over them
			}
			if op.Class() == model.ViewClass {
				continue
			}
			for i, t := range op.Inputs {
				root := Root(g, t)
				p := g.Tensor(root).Producer
				at, inside := -1, false
				if p != model.NoOp {
					at, inside = group[p]
				}
				if inside && at == j {
					continue
				}
				u, seen := reads[root]
				if !seen {
					order = append(order, root)
				}
				u.inside = inside
				u.bytes = min(g.Tensor(root).Bytes(), u.bytes+ReadBytes(g, op, i))
				for _, l := range into[j] {
					if inside && l.From == p && l.To == id {
						u.regional = l.Scheme == Regional
					}
				}
				reads[root] = u
			}
		}
		for _, root := range order {
			u := reads[root]
			switch cached := int64(float64(u.bytes) * fits(g.Tensor(root))); {
			case u.regional:
				w.SharedBytes += u.bytes
				w.Syncs++
			case u.inside:
				w.L2Bytes += cached
				w.ReadBytes += u.bytes - cached
			case read[root] >= u.bytes:
				w.L2Bytes += cached
				w.ReadBytes += u.bytes - cached
			default:
				w.ReadBytes += u.bytes
				read[root] = u.bytes
			}
		}
		for _, id := range gr.Ops {
			op := g.Op(id)
			if op.Class() == model.ViewClass {
				continue
			}
			for _, t := range op.Outputs {
				readers, leaves := Readers(g, t)
				shared := false
				for _, c := range readers {
					at, inside := group[c]
					leaves = leaves || !inside && !again[id]
					if inside && at != j {
						for _, l := range into[at] {
							if l.From == id && l.To == c {
								leaves = leaves || l.Scheme == Global
								shared = shared || l.Scheme == Regional
							}
						}
					}
				}
				if leaves {
					w.WriteBytes += g.Tensor(t).Bytes()
				}
				if shared {
					w.SharedBytes += g.Tensor(t).Bytes()
				}
			}
		}
		if gr.Mapping.Parts > 1 {
			w.Atomics = gr.Mapping.Rows * gr.Mapping.Parts
		}
		nests[j] = simt.Nest{Mapping: gr.Mapping, Work: w}
		gr.ReadBytes, gr.WriteBytes, gr.L2Bytes, gr.SharedTraffic = w.ReadBytes, w.WriteBytes, w.L2Bytes, w.SharedBytes
		k.ReadBytes += w.ReadBytes
		k.WriteBytes += w.WriteBytes
	}
	k.name(g)

	if k.Block.Registers == 0 {
		k.Block.Registers = m.Start().Registers
	}
	k.Wave = m.Wave(k.Block)
	if k.Wave < 1 || k.Phases > 1 && k.Blocks > k.Wave {
		return false
	}
	k.Waves = (k.Blocks + k.Wave - 1) / k.Wave
	machine := simt.Kernel{Block: k.Block, Blocks: k.Blocks, Phases: make([][]simt.Nest, k.Phases)}
	place := make([]int, len(k.Groups))
	for j, gr := range k.Groups {
		n := nests[j]
		seen := map[int]bool{}
		for _, l := range into[j] {
			if from := group[l.From]; k.Groups[from].Phase == gr.Phase && !seen[from] {
				seen[from] = true
				n.After = append(n.After, place[from])
			}
		}
		place[j] = len(machine.Phases[gr.Phase])
		machine.Phases[gr.Phase] = append(machine.Phases[gr.Phase], n)
	}
	k.Time = m.Time(machine)
	k.Seconds = k.Time.Total()
	return true
}

// shared is the most shared memory that a block needs at a time. A regional value lives from its group to the last one
// that reads it: one task's rows of it, or all of the block's where a barrier of all blocks stands between.
func (k *Kernel) shared(g *model.Graph, group map[model.OpID]int) int64 {
	type buffer struct {
		first, last int
		bytes       int64
	}
	buffers := map[model.TensorID]*buffer{}
	for _, l := range k.Links {
		if l.Scheme != Regional {
			continue
		}
		root := Root(g, l.Tensor)
		from, to := group[l.From], group[l.To]
		b := buffers[root]
		if b == nil {
			b = &buffer{first: from, last: to}
			buffers[root] = b
		}
		b.last = max(b.last, to)
		p := k.Groups[from].Mapping
		rows := p.RowsPerTask
		if k.Groups[to].Phase != k.Groups[from].Phase {
			rows = p.RowsPerBlock()
		}
		b.bytes = max(b.bytes, min(rows, p.Rows)*(g.Tensor(root).Bytes()/p.Rows))
	}
	change := make([]int64, len(k.Groups)+1) // from group to group
	for _, b := range buffers {
		change[b.first] += b.bytes
		change[b.last+1] -= b.bytes
	}
	peak, sum := int64(0), int64(0)
	for _, c := range change {
		sum += c
		peak = max(peak, sum)
	}
	return peak
}
