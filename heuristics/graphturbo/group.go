package graphturbo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// node is a sub-graph during merging.
type node struct {
	summary
	ops       []model.OpID // ascending positions of the execution order; nil: not listed yet
	outputs   []model.TensorID
	asked     *asked
	split     schedule.SplitInfo // the best of these
	peak      int64
	producers []*node // each once, by position
	consumers map[*node]bool
	index     int  // in the list of nodes
	leaves    bool // an output is a network output
	upsamples bool
	dead      bool
}

// grouper runs Algorithm 2.
type grouper struct {
	g     *model.Graph
	split *Splitter
	// order is the execution order, rank the position of each operator in it.
	order  []model.OpID
	rank   []int
	ends   []int32 // position of the last operator that the layer of each may have
	nodes  []*node // alive, in topological order
	events []schedule.MergeEvent
	noted  map[[4]string]bool // refusals by pattern, first and last part and reason
	round  int
	tried  func(*node) // for tests
	// stopped says that nobody waits for the answer any more.
	stopped func() bool
}

// Group is Algorithm 2: starting from one sub-graph per operator, merge straight,
// diamond and branch patterns while the rules allow it, until nothing changes.
//
// Patterns, as the text defines them. Straight: SG1 is SG2's only producer and SG2 its only consumer. Diamond: at least
// two sub-graphs between one entry and one exit, each with that entry as only producer and that exit as only consumer,
// and the exit has no other producer but the entry; the middle and the exit are merged. Branch: an exit SG3 with
// several producers, one of which, SG2, has it as only consumer; these two are merged. A residual connection is a
// branch (its short path has no sub-graph of its own). A network output counts as a consumer. It ends with the
// context's error when that is cancelled.
func Group(ctx context.Context, g *model.Graph, opt schedule.SplitOptions) (*schedule.Grouping, error) {
	gr := newGrouper(g, opt)
	gr.stopped = func() bool { return ctx.Err() != nil }
	if made := gr.group(); ctx.Err() == nil {
		return made, nil
	}
	return nil, ctx.Err()
}

func newGrouper(g *model.Graph, opt schedule.SplitOptions) *grouper {
	return &grouper{g: g, split: NewSplitter(g, opt), order: schedule.ExecutionOrder(g), rank: make([]int, len(g.Ops)),
		ends: make([]int32, len(g.Ops)), noted: map[[4]string]bool{}, stopped: func() bool { return false }}
}

func (gr *grouper) group() *schedule.Grouping {
	byOp := make([]*node, len(gr.order))
	for i, id := range gr.order {
		gr.rank[id], gr.ends[id] = i, int32(i)
	}
	for _, id := range slices.Backward(gr.order) {
		if t := gr.g.Tensor(gr.g.Op(id).Outputs[0]); gr.goesOn(t) { // layers go on behind single outputs
			gr.ends[id] = gr.ends[t.Consumers[0]]
		}
	}
	for _, id := range gr.order {
		byOp[id] = gr.single(id)
		byOp[id].index = len(gr.nodes)
		gr.nodes = append(gr.nodes, byOp[id])
	}
	for _, n := range gr.nodes {
		gr.link(n, byOp)
	}
	for {
		gr.round++
		before := len(gr.nodes)
		gr.pass("straight", gr.straight)
		gr.pass("diamond", gr.diamond)
		gr.pass("branch", gr.branch)
		if len(gr.nodes) == before || gr.stopped() {
			break
		}
	}
	return gr.result()
}

// finish asks Algorithm 1.
func (gr *grouper) finish(n *node) {
	n.asked = gr.split.ask(merging{gr, n})
	n.split, n.peak = n.asked.best, n.asked.peak
	if gr.tried != nil {
		gr.tried(n)
	}
}

// along is the factor that n needs if it is split along the dimension that matches dimension dim of m's output, m being
// a sub-graph that contains n. If that dimension cannot split n, it is n's best factor.
func (gr *grouper) along(n, m *node) int64 {
	if m.split.Factor == 1 || m.split.Factor == schedule.Unsplittable {
		return n.split.Factor
	}
	dim := m.split.Dim
	if n != m.parts[len(m.parts)-1] {
		dim = gr.dimension(n, m)
	}
	if i := slices.IndexFunc(n.asked.dims, func(f *along) bool { return f.info.Dim == dim }); dim >= 0 && i >= 0 {
		if info, ok := n.asked.at(n.asked.dims[i]); ok {
			return info.Factor
		}
	}
	return n.split.Factor
}

// dimension returns the dimension of n's results that m's split cuts; n is a part of m and not its exit.
func (gr *grouper) dimension(n, m *node) int {
	if m.plain {
		if dim, ok := schedule.Track(gr.g, gr.operators(m), m.outputs, m.split.Dim).Dim[n.outputs[0]]; ok {
			return dim
		}
		return whole
	}
	exit := m.parts[len(m.parts)-1]
	x, _ := gr.cut(exit, slices.Repeat([]int{m.split.Dim}, len(exit.outputs))).inputs.get(int32(n.outputs[0]))
	return x.dim
}

func (gr *grouper) link(n *node, byOp []*node) {
	op := gr.g.Op(n.op)
	for _, t := range op.Inputs {
		if p := gr.g.Tensor(t).Producer; p != model.NoOp && byOp[p] != n && !slices.Contains(n.producers, byOp[p]) {
			n.producers = append(n.producers, byOp[p])
		}
	}
	n.consumers = map[*node]bool{}
	for _, t := range op.Outputs {
		for _, c := range gr.g.Tensor(t).Consumers {
			if byOp[c] != n {
				n.consumers[byOp[c]] = true
			}
		}
	}
	byPosition(n.producers)
}

func byPosition(ns []*node) {
	slices.SortFunc(ns, func(a, b *node) int { return a.last - b.last })
}

// pass tries a pattern at every sub-graph, in topological order; a merged one is
// tried again at once, so that a chain collapses in one pass.
func (gr *grouper) pass(pattern string, try func(*node) *node) {
	for i := 0; i < len(gr.nodes); i++ {
		n := gr.nodes[i]
		for n != nil && !n.dead && !gr.stopped() {
			n = try(n)
		}
	}
	gr.nodes = slices.DeleteFunc(gr.nodes, func(n *node) bool { return n.dead })
	gr.sort()
}

// sort restores a topological order, stable in execution order.
func (gr *grouper) sort() {
	at := make([]*node, len(gr.order)) // by rank of the last operator
	open := make([]int, len(gr.order)) // producers that are not listed yet
	ready := heap.Of(cmp.Less[int])
	for _, n := range gr.nodes {
		at[n.last], open[n.last] = n, len(n.producers)
		if len(n.producers) == 0 {
			ready.Push(n.last)
		}
	}
	out := make([]*node, 0, len(gr.nodes))
	for ready.Len() > 0 {
		n := at[ready.Pop()]
		n.index = len(out)
		out = append(out, n)
		for c := range n.consumers {
			if open[c.last]--; open[c.last] == 0 {
				ready.Push(c.last)
			}
		}
	}
	if len(out) != len(gr.nodes) {
		panic("graphturbo: merging made a cycle")
	}
	gr.nodes = out
}

func (gr *grouper) straight(sg2 *node) *node {
	if len(sg2.producers) != 1 {
		return nil
	}
	sg1 := sg2.producers[0]
	if len(sg1.consumers) != 1 || sg1.leaves {
		return nil
	}
	return gr.tryMerge("straight", []*node{sg1, sg2}, gr.ruleOne(sg1, sg2))
}

func (gr *grouper) diamond(exit *node) *node {
	if len(exit.producers) < 2 {
		return nil
	}
	var entry *node
	var middle []*node
	for _, p := range exit.producers {
		if len(p.consumers) == 1 && !p.leaves && len(p.producers) == 1 {
			if entry != nil && p.producers[0] != entry {
				return nil
			}
			entry = p.producers[0]
			middle = append(middle, p)
		}
	}
	if len(middle) < 2 {
		return nil
	}
	if slices.ContainsFunc(exit.producers, func(p *node) bool { return p != entry && !slices.Contains(middle, p) }) {
		return nil
	}
	parts := append(middle, exit)
	// Rule (ii): the merged factor is at most the largest of its parts'.
	return gr.tryMerge("diamond", parts, func(m *node) (asked, refusal string) {
		most := int64(0)
		for _, p := range parts {
			most = max(most, gr.along(p, m))
		}
		asked = fmt.Sprintf("rule (ii): the largest is %s, merged %s", factor(most), factor(m.split.Factor))
		if m.split.Factor > most {
			refusal = fmt.Sprintf("rule (ii): the merged factor %s is above the largest part's %s",
				factor(m.split.Factor), factor(most))
		}
		return asked, refusal
	})
}

func (gr *grouper) branch(sg3 *node) *node {
	if len(sg3.producers) < 2 {
		return nil
	}
	// The latest producer first: the shortest path to the exit.
	for i := len(sg3.producers) - 1; i >= 0; i-- {
		sg2 := sg3.producers[i]
		if len(sg2.consumers) != 1 || sg2.leaves {
			continue
		}
		if m := gr.tryMerge("branch", []*node{sg2, sg3}, gr.ruleOne(sg2, sg3)); m != nil {
			return m
		}
	}
	return nil
}

// ruleOne is rule (i). Factors of different dimensions do not compare, so all three are taken along the dimension that
// the union would be split along (Algorithm 2 hands SplitInfo, the whole set, to the merging functions). The mirror
// image (§3.6) holds where SG2 up-samples: then it is SG2's large factor that must not reach back to SG1.
func (gr *grouper) ruleOne(sg1, sg2 *node) func(*node) (asked, refusal string) {
	return func(m *node) (asked, refusal string) {
		first, second := sg1, sg2
		mirrored := ""
		if sg2.upsamples && !sg1.upsamples {
			first, second = sg2, sg1
			mirrored = ", mirrored for up-sampling"
		}
		f1, f2 := gr.along(first, m), gr.along(second, m)
		asked = fmt.Sprintf("rule (i)%s: producer %s, consumer %s, merged %s", mirrored, factor(f1), factor(f2),
			factor(m.split.Factor))
		switch {
		case f2 < f1:
			refusal = fmt.Sprintf("not merged: the consumer needs %s pieces, this group %s (Algorithm 2, rule (i)%s)",
				factor(f2), factor(f1), mirrored)
		case m.split.Factor > f2:
			refusal = fmt.Sprintf("not merged: together they need %s pieces, the consumer %s (Algorithm 2, rule (i)%s)",
				factor(m.split.Factor), factor(f2), mirrored)
		}
		return asked, refusal
	}
}

func factor(f int64) string {
	if f == schedule.Unsplittable {
		return "infinitely many"
	}
	return fmt.Sprint(f)
}

// tryMerge builds the union, asks the rule, and replaces the parts if allowed.
func (gr *grouper) tryMerge(pattern string, parts []*node, rule func(*node) (asked, refusal string)) *node {
	ev := schedule.MergeEvent{Round: gr.round, Pattern: pattern}
	for _, p := range parts {
		ev.Parts = append(ev.Parts, gr.g.Op(gr.order[p.last]).Name)
		ev.Factors = append(ev.Factors, p.split.Factor)
	}
	m := gr.join(parts)
	ev.Merged = m.split.Factor
	if m.split.Factor == schedule.Unsplittable {
		ev.Reason = "the union cannot be split to fit the local buffer"
	} else {
		ev.Rule, ev.Reason = rule(m)
	}
	ev.Accepted = ev.Reason == ""
	gr.note(ev)
	if !ev.Accepted {
		return nil
	}
	gr.replace(parts, m)
	return m
}

// note records an event; a refusal repeated in a later round is kept once.
func (gr *grouper) note(ev schedule.MergeEvent) {
	if !ev.Accepted {
		r := [4]string{ev.Pattern, ev.Parts[0], ev.Parts[len(ev.Parts)-1], ev.Reason}
		if gr.noted[r] {
			return
		}
		gr.noted[r] = true
	}
	gr.events = append(gr.events, ev)
}

func (gr *grouper) replace(parts []*node, m *node) {
	m.consumers = map[*node]bool{}
	for _, p := range parts {
		p.dead = true
		if m.ops != nil {
			p.ops = nil
		}
		for _, q := range p.producers {
			if !slices.Contains(parts, q) {
				if !slices.Contains(m.producers, q) {
					m.producers = append(m.producers, q)
				}
				delete(q.consumers, p)
				q.consumers[m] = true
			}
		}
		for q := range p.consumers {
			if !slices.Contains(parts, q) {
				m.consumers[q] = true
				q.producers = slices.DeleteFunc(q.producers, func(x *node) bool { return slices.Contains(parts, x) })
				if !slices.Contains(q.producers, m) {
					q.producers = append(q.producers, m)
				}
			}
		}
	}
	byPosition(m.producers)
	for q := range m.consumers {
		byPosition(q.producers)
	}
	m.index = parts[len(parts)-1].index
	gr.nodes[m.index] = m
	for _, p := range parts { // of a part, only its cuts are asked for any more
		p.producers, p.consumers, p.asked, p.steps, p.held, p.sources = nil, nil, nil, nil, nil, nil
		p.outside = nil
	}
}

func (gr *grouper) result() *schedule.Grouping {
	out := &schedule.Grouping{Events: gr.events}
	for i, n := range gr.nodes {
		if gr.split.opt.Peak() != (schedule.PeakOptions{}) {
			merging{gr, n}.count()
		}
		sg := &schedule.SubGraph{ID: i, Name: fmt.Sprintf("g%d", i), Ops: gr.operators(n), Split: n.split, PeakBytes: n.peak}
		sg.Inputs, sg.Outputs = schedule.Boundary(gr.g, sg.Ops)
		out.Groups = append(out.Groups, sg)
	}
	return out
}
