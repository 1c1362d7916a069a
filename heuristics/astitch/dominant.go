package astitch

import (
	"sort"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// loopNests forms the loop nests of a stitch operator around its dominants and lists
// them in an order in which they can run. units are its parts as TVM fuses them.
func loopNests(g *model.Graph, pos []int, units []schedule.Layer, cores int64) ([]schedule.Layer, []Loop) {
	parts := make([][]model.OpID, len(units))
	for k, u := range units {
		parts[k] = u.Ops
	}
	nests, loops := Around(g, pos, parts, func(p *Partition, seed, k int, _ map[model.OpID]bool) bool {
		return local(p, seed, k, cores) && p.Mergeable(seed, k)
	})
	layers := make([]schedule.Layer, len(nests))
	for i, ops := range nests {
		layers[i] = nest(g, ops)
	}
	return layers, loops
}

// Around forms loop nests around the dominants of a stitch operator that consists of
// parts, and lists them in an order in which they can run. join reports whether the part
// of a dominant may take in another one; it is given all candidates.
func Around(g *model.Graph, pos []int, parts [][]model.OpID,
	join func(p *Partition, seed, k int, candidates map[model.OpID]bool) bool) ([][]model.OpID, []Loop) {
	var all []model.OpID
	for _, ops := range parts {
		all = append(all, ops...)
	}
	p := NewPartition(g, pos, parts)
	candidates := dominants(g, pos, all)
	isCandidate := map[model.OpID]bool{}
	for _, id := range candidates {
		isCandidate[id] = true
	}
	for _, id := range candidates {
		seed := p.owner[id]
		grow(p, seed, func(k int) bool { return join(p, seed, k, isCandidate) })
	}
	var nests [][]model.OpID
	var loops []Loop
	for _, k := range p.Sorted() {
		ops := p.Ops[k]
		l := Loop{Dominant: -1}
		for _, id := range ops {
			switch {
			case !isCandidate[id]:
			case l.Dominant < 0:
				l.Dominant = id
			case g.Op(l.Dominant).Class() == model.ReductionClass:
				l.Sub = append(l.Sub, id)
			default: // a later one, or the reduction
				l.Sub = append(l.Sub, l.Dominant)
				l.Dominant = id
			}
		}
		if l.Dominant < 0 { // nothing in it is a candidate: its last operator leads
			l.Dominant = ops[len(ops)-1]
		}
		nests = append(nests, ops)
		loops = append(loops, l)
	}
	return nests, loops
}

// nest describes operators as one loop nest.
func nest(g *model.Graph, ops []model.OpID) schedule.Layer {
	l := schedule.Layer{Ops: ops, Anchor: ops[len(ops)-1]}
	l.Name = g.Op(l.Anchor).Name
	l.Inputs, l.Outputs = schedule.Boundary(g, ops)
	seen := map[model.TensorID]bool{}
	for _, id := range ops {
		for _, t := range g.Op(id).Inputs {
			if g.Tensor(t).Role == model.Constant && !seen[t] {
				seen[t] = true
				l.Constants = append(l.Constants, t)
			}
		}
	}
	sort.Slice(l.Constants, func(i, j int) bool { return l.Constants[i] < l.Constants[j] })
	return l
}

// dominants lists the candidates among the operators of a stitch operator:
// reductions first, so that none becomes a sub-dominant, each in execution order.
func dominants(g *model.Graph, pos []int, ops []model.OpID) []model.OpID {
	inside := map[model.OpID]bool{}
	for _, id := range ops {
		inside[id] = true
	}
	var out []model.OpID
	for _, id := range ops {
		op := g.Op(id)
		candidate := op.Class() == model.ReductionClass
		expensive := g.Expensive(op)
		for _, t := range op.Outputs {
			candidate = candidate || g.IsOutput(t)
			for _, c := range g.Tensor(t).Consumers {
				candidate = candidate || !inside[c] || (expensive && !g.OneToOne(g.Op(c), t))
			}
		}
		if candidate {
			out = append(out, id)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := g.Op(out[i]).Class() == model.ReductionClass, g.Op(out[j]).Class() == model.ReductionClass
		if a != b {
			return a
		}
		return pos[out[i]] < pos[out[j]]
	})
	return out
}

// local reports whether parts a and b, one of which reads from the other, can be one loop nest: all between them is
// one to one, at most one operator is a reduction, and the union uses no fewer cores than either and computes nothing
// twice that they do not.
func local(p *Partition, a, b int, cores int64) bool {
	g := p.g
	if !oneToOneParts(p, a, b) || !oneToOneParts(p, b, a) {
		return false
	}
	ops := p.union(a, b)
	reductions := 0
	for _, id := range ops {
		if g.Op(id).Class() == model.ReductionClass {
			reductions++
		}
	}
	if reductions > 1 {
		return false
	}
	x, y := p.mapped(a, cores), p.mapped(b, cores)
	used, again := mapped(g, ops, cores)
	return used >= max(x.used, y.used) && again <= x.again+y.again
}

// oneToOneParts looks at what part b reads of part a. As in TVM's fusion, an operator that gathers or puts several
// sources together begins a loop nest, and one with several results ends it.
func oneToOneParts(p *Partition, a, b int) bool {
	for _, id := range p.Ops[b] {
		op := p.g.Op(id)
		for _, t := range op.Inputs {
			from := p.g.Tensor(t).Producer
			if !p.In(from, a) {
				continue
			}
			if op.Kind == "Gather" || op.Kind == "Concat" || len(p.g.Op(from).Outputs) != 1 || !p.g.OneToOne(op, t) {
				return false
			}
		}
	}
	return true
}

// mapped spreads operators, as one loop nest, over the cores by the plain rule. It returns how many cores work and how
// many elements more than one of them computes, each counted as often as it is computed again.
func mapped(g *model.Graph, ops []model.OpID, cores int64) (used, again int64) {
	_, outputs := schedule.Boundary(g, ops)
	if len(outputs) == 0 {
		return 0, 0 // nothing needs it
	}
	main := g.Tensor(outputs[0])
	whole := model.Whole(main.Shape)
	forbidden := schedule.Forbidden(g, ops, main.ID)
	b := schedule.GridBinding(whole, main.Layout, forbidden, []int64{cores}, schedule.SlicesAlike)
	done := map[model.TensorID]int64{}
	for c := int64(0); c < b.Cores(); c++ {
		reg := schedule.Regions{}
		for _, o := range outputs {
			t := g.Tensor(o)
			r := model.Whole(t.Shape)
			own := b
			if !own.Follows(r, nil, cores, schedule.SlicesAlike) {
				own = schedule.GridBinding(r, t.Layout, nil, []int64{cores}, schedule.SlicesAlike)
			}
			if s := schedule.Slice(r, own, t.Layout, c); s != nil {
				reg[o] = s
			}
		}
		schedule.BackPropagate(g, ops, reg)
		for _, id := range ops {
			for _, o := range g.Op(id).Outputs {
				done[o] += reg[o].Elements()
			}
		}
	}
	for _, id := range ops {
		for _, o := range g.Op(id).Outputs {
			again += max(0, done[o]-g.Tensor(o).Shape.Elements())
		}
	}
	return b.Cores(), again
}
