package graphturbo

import (
	"fmt"
	"sort"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// node is a sub-graph during merging.
type node struct {
	ops       []model.OpID // ascending positions of the execution order
	outputs   []model.TensorID
	infos     []schedule.SplitInfo
	split     schedule.SplitInfo // the best of infos
	peak      int64
	producers []*node // each once, by position
	consumers []*node
	leaves    bool // an output is a network output
	upsamples bool
	dead      bool
}

func (n *node) position() model.OpID { return n.ops[len(n.ops)-1] }

// grouper runs Algorithm 2.
type grouper struct {
	g     *model.Graph
	split *Splitter
	// rank is the position of each operator in the execution order.
	rank   []int
	nodes  []*node // alive, in topological order
	events []schedule.MergeEvent
	round  int
}

// ExecutionOrder is the topological order of Algorithm 2's first line. Of the
// many such orders this takes the depth-first one from the outputs, operands in
// their order: a value is made shortly before it is used, which keeps few values
// alive.
func ExecutionOrder(g *model.Graph) []model.OpID {
	done := make([]bool, len(g.Ops))
	order := make([]model.OpID, 0, len(g.Ops))
	type frame struct {
		op   model.OpID
		next int
	}
	visit := func(root model.OpID) {
		if done[root] {
			return
		}
		done[root] = true
		stack := []frame{{root, 0}}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			op := g.Op(f.op)
			if f.next == len(op.Inputs) {
				order = append(order, f.op)
				stack = stack[:len(stack)-1]
				continue
			}
			p := g.Tensor(op.Inputs[f.next]).Producer
			f.next++
			if p != model.NoOp && !done[p] {
				done[p] = true
				stack = append(stack, frame{p, 0})
			}
		}
	}
	for _, o := range g.Outputs {
		if p := g.Tensor(o).Producer; p != model.NoOp {
			visit(p)
		}
	}
	for i := range g.Ops {
		visit(model.OpID(i))
	}
	return order
}

// Group is Algorithm 2: starting from one sub-graph per operator, merge straight,
// diamond and branch patterns while the rules allow it, until nothing changes.
//
// Patterns, as the text defines them. Straight: SG1 is SG2's only producer and
// SG2 its only consumer. Diamond: at least two sub-graphs between one entry and
// one exit, each with that entry as only producer and that exit as only
// consumer, and the exit has no other producer but the entry; the middle and the
// exit are merged. Branch: an exit SG3 with several producers, one of which, SG2,
// has it as only consumer; these two are merged. A residual connection is a
// branch (its short path has no sub-graph of its own). A network output counts as
// a consumer.
func Group(g *model.Graph, opt SplitOptions) *schedule.Grouping {
	gr := &grouper{g: g, split: NewSplitter(g, opt), rank: make([]int, len(g.Ops))}
	order := ExecutionOrder(g)
	byOp := make([]*node, len(g.Ops))
	for i, id := range order {
		gr.rank[id] = i
		n := &node{ops: []model.OpID{id}}
		byOp[id] = n
		gr.nodes = append(gr.nodes, n)
		gr.finish(n)
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
		if len(gr.nodes) == before {
			break
		}
	}
	return gr.result()
}

func (gr *grouper) finish(n *node) {
	_, n.outputs = schedule.Boundary(gr.g, n.ops)
	for _, o := range n.outputs {
		n.leaves = n.leaves || gr.g.IsOutput(o)
	}
	for _, id := range n.ops {
		k := gr.g.Op(id).Kind
		n.upsamples = n.upsamples || k == "Resize" || k == "ConvTranspose"
	}
	n.infos, n.peak = gr.split.SplitInfo(n.ops, n.outputs)
	n.split = Best(n.infos)
}

// along is the factor that n needs if it is split along the dimension that
// matches dimension dim of m's output, m being a sub-graph that contains n. If
// that dimension cannot split n, it is n's best factor.
func (gr *grouper) along(n, m *node) int64 {
	if m.split.Factor == 1 || m.split.Factor == schedule.Unsplittable {
		return n.split.Factor
	}
	tr := schedule.Track(gr.g, m.ops, m.outputs, m.split.Dim)
	dim, ok := tr.Dim[n.outputs[0]]
	if ok && dim >= 0 {
		for _, info := range n.infos {
			if info.Dim == dim {
				return info.Factor
			}
		}
	}
	return n.split.Factor
}

func (gr *grouper) link(n *node, byOp []*node) {
	seen := map[*node]bool{n: true}
	n.producers, n.consumers = nil, nil
	for _, id := range n.ops {
		for _, t := range gr.g.Op(id).Inputs {
			if p := gr.g.Tensor(t).Producer; p != model.NoOp && !seen[byOp[p]] {
				seen[byOp[p]] = true
				n.producers = append(n.producers, byOp[p])
			}
		}
	}
	seen = map[*node]bool{n: true}
	for _, id := range n.ops {
		for _, t := range gr.g.Op(id).Outputs {
			for _, c := range gr.g.Tensor(t).Consumers {
				if !seen[byOp[c]] {
					seen[byOp[c]] = true
					n.consumers = append(n.consumers, byOp[c])
				}
			}
		}
	}
	gr.byPosition(n.producers)
	gr.byPosition(n.consumers)
}

func (gr *grouper) byPosition(ns []*node) {
	sort.Slice(ns, func(i, j int) bool { return gr.rank[ns[i].position()] < gr.rank[ns[j].position()] })
}

// pass tries a pattern at every sub-graph, in topological order; a merged one is
// tried again at once, so that a chain collapses in one pass.
func (gr *grouper) pass(pattern string, try func(*node) *node) {
	for i := 0; i < len(gr.nodes); i++ {
		n := gr.nodes[i]
		for n != nil && !n.dead {
			n = try(n)
		}
	}
	alive := gr.nodes[:0]
	for _, n := range gr.nodes {
		if !n.dead {
			alive = append(alive, n)
		}
	}
	gr.nodes = alive
	gr.sort()
}

// sort restores a topological order, stable in execution order.
func (gr *grouper) sort() {
	indegree := map[*node]int{}
	for _, n := range gr.nodes {
		indegree[n] = len(n.producers)
	}
	var out, ready []*node
	for _, n := range gr.nodes {
		if indegree[n] == 0 {
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		best := 0
		for i := range ready {
			if gr.rank[ready[i].position()] < gr.rank[ready[best].position()] {
				best = i
			}
		}
		n := ready[best]
		ready = append(ready[:best], ready[best+1:]...)
		out = append(out, n)
		for _, c := range n.consumers {
			if indegree[c]--; indegree[c] == 0 {
				ready = append(ready, c)
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
	for _, p := range exit.producers {
		if p != entry && !containsNode(middle, p) {
			return nil
		}
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
			refusal = fmt.Sprintf("rule (ii): the merged factor %s is above the largest part's %s", factor(m.split.Factor), factor(most))
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

// ruleOne is rule (i). Factors of different dimensions do not compare, so all
// three are taken along the dimension that the union would be split along
// (Algorithm 2 hands SplitInfo, the whole set, to the merging functions). The
// mirror image (§3.6) holds where SG2 up-samples: then it is SG2's large factor
// that must not reach back to SG1.
func (gr *grouper) ruleOne(sg1, sg2 *node) func(*node) (asked, refusal string) {
	return func(m *node) (asked, refusal string) {
		first, second := sg1, sg2
		mirrored := ""
		if sg2.upsamples && !sg1.upsamples {
			first, second = sg2, sg1
			mirrored = " (mirrored for up-sampling)"
		}
		f1, f2 := gr.along(first, m), gr.along(second, m)
		asked = fmt.Sprintf("rule (i)%s: %s follows %s, merged %s", mirrored, factor(f2), factor(f1), factor(m.split.Factor))
		switch {
		case f2 < f1:
			refusal = fmt.Sprintf("rule (i)%s, first condition: factor %s follows %s", mirrored, factor(f2), factor(f1))
		case m.split.Factor > f2:
			refusal = fmt.Sprintf("rule (i)%s, second condition: the merged factor %s is above %s", mirrored, factor(m.split.Factor), factor(f2))
		}
		return asked, refusal
	}
}

func factor(f int64) string {
	if f == schedule.Unsplittable {
		return "infinity"
	}
	return fmt.Sprint(f)
}

// tryMerge builds the union, asks the rule, and replaces the parts if allowed.
func (gr *grouper) tryMerge(pattern string, parts []*node, rule func(*node) (asked, refusal string)) *node {
	ev := schedule.MergeEvent{Round: gr.round, Pattern: pattern}
	for _, p := range parts {
		ev.Parts = append(ev.Parts, gr.g.Op(p.position()).Name)
		ev.Factors = append(ev.Factors, p.split.Factor)
	}
	m := &node{}
	for _, p := range parts {
		m.ops = append(m.ops, p.ops...)
	}
	sort.Slice(m.ops, func(i, j int) bool { return gr.rank[m.ops[i]] < gr.rank[m.ops[j]] })
	gr.finish(m)
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
		for i := len(gr.events) - 1; i >= 0; i-- {
			old := &gr.events[i]
			if !old.Accepted && old.Pattern == ev.Pattern && old.Parts[0] == ev.Parts[0] && old.Parts[len(old.Parts)-1] == ev.Parts[len(ev.Parts)-1] && old.Reason == ev.Reason {
				return
			}
		}
	}
	gr.events = append(gr.events, ev)
}

func (gr *grouper) replace(parts []*node, m *node) {
	for _, p := range parts {
		p.dead = true
		for _, q := range p.producers {
			if !containsNode(parts, q) {
				m.producers = addNode(m.producers, q)
				q.consumers = addNode(removeNodes(q.consumers, parts), m)
			}
		}
		for _, q := range p.consumers {
			if !containsNode(parts, q) {
				m.consumers = addNode(m.consumers, q)
				q.producers = addNode(removeNodes(q.producers, parts), m)
			}
		}
	}
	gr.byPosition(m.producers)
	gr.byPosition(m.consumers)
	for _, q := range m.producers {
		gr.byPosition(q.consumers)
	}
	for _, q := range m.consumers {
		gr.byPosition(q.producers)
	}
	for i, n := range gr.nodes {
		if n == parts[len(parts)-1] {
			gr.nodes[i] = m
		}
	}
}

func containsNode(ns []*node, n *node) bool {
	for _, x := range ns {
		if x == n {
			return true
		}
	}
	return false
}

func addNode(ns []*node, n *node) []*node {
	if containsNode(ns, n) {
		return ns
	}
	return append(ns, n)
}

func removeNodes(ns, gone []*node) []*node {
	kept := ns[:0]
	for _, n := range ns {
		if !containsNode(gone, n) {
			kept = append(kept, n)
		}
	}
	return kept
}

func (gr *grouper) result() *schedule.Grouping {
	out := &schedule.Grouping{Events: gr.events}
	for i, n := range gr.nodes {
		sg := &schedule.SubGraph{ID: i, Name: fmt.Sprintf("g%d", i), Ops: n.ops, Split: n.split, PeakBytes: n.peak}
		sg.Inputs, sg.Outputs = schedule.Boundary(gr.g, n.ops)
		out.Groups = append(out.Groups, sg)
	}
	return out
}
