package graphturbo

import (
	"maps"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Algorithm 2 asks Algorithm 1 about each union that it tries, and a network that fits the L1 becomes one sub-graph, an
// operator at a time. What Algorithm 1 wants to know of a union is therefore put together from what is known of its
// parts, at a cost that does not grow with them but only with what passes between them.
//
// All patterns merge parts that only the last of them, the exit, reads, and that read nothing of each other. So the
// results of the union are the exit's, and those of the others end inside. Three things are kept:
//
//   - The footprint over time ([schedule.Peak]) as steps up and down at the ranks of
//     operators, in a tree of sums and of largest sums of beginnings. The steps of two parts
//     are those of both, but for tensors that pass between them or that both read, whose ends
//     move.
//   - The tensors that may still change: those read from outside, with the box that is read
//     of them, and those that results lie in.
//   - For cuts along some dimension of the results, where the cut is in what is read from
//     outside ([schedule.Track]), and the largest number that divides all extents that are
//     cut inside.
//
// This takes for granted that an instance that is all of the union computes all of every tensor. Where the readers of a
// tensor leave something of it out (a stride, a slice), the sub-graph and what it becomes a part of are looked at
// operator by operator (plain). So are cuts of which instances do not add up to the whole, if the sub-graph can be cut
// no better.
//
// Where tensors inside a layer take no room, or operators overwrite their input, the footprint is counted operator by
// operator, too, but only of a sub-graph that may not fit: what is put together of parts is then an upper bound, in
// which all tensors take room, and what a layer reads stays until the longest layer that may form ends.

// part is a sub-graph as Algorithm 1 sees it.
type part interface {
	size() int                 // operators
	operators() []model.OpID   // in execution order
	results() []model.TensorID // read outside, ascending
	footprint() int64          // of the whole, bytes
	follow(dim int) *cut       // along a dimension of the results
}

// cut is a query of Algorithm 1 to [schedule.Track].
type cut struct {
	splittable, recomputes bool
	exact                  bool // but for what is read from outside
	unmatched              int
	// The largest numbers that divide the extents that are cut.
	intermediates, results int64
	inputs                 *tree[cutInput] // read from outside
}

// adds reports whether the instances' tensors add up to the whole ones, see [schedule.Tracker].
func (c *cut) adds() bool {
	in := c.inputs.all()
	return c.exact && !in.whole && !in.halo
}

// divides reports whether a factor divides what is cut of all intermediates and, if asked, of the results.
func (c *cut) divides(v int64, resultsToo bool) bool {
	return c.intermediates%v == 0 && (!resultsToo || c.results%v == 0)
}

// aligned reports whether the factor divides the matched extent of everything read,
// too: else a cut may lie within a block of elements that is read by both sides.
func (c *cut) aligned(v int64) bool { return c.divides(v, true) && c.inputs.all().extents%v == 0 }

// cutInput is a tensor read from outside, or several of them.
type cutInput struct {
	dim     int   // -1: read whole by every instance
	extents int64 // the largest number that divides those that are cut
	whole   bool  // one is read whole
	halo    bool  // one is read in parts that overlap or leave gaps
}

func (a cutInput) with(b cutInput) cutInput {
	if a.dim != b.dim {
		return cutInput{dim: whole, whole: true, halo: a.halo || b.halo}
	}
	a.halo = a.halo || b.halo
	return a
}

func (a cutInput) then(b cutInput) cutInput {
	return cutInput{whole, model.GCD(a.extents, b.extents), a.whole || b.whole, a.halo || b.halo}
}

const whole = -1 // in the place of a dimension that is cut

// steps are the changes of a footprint at the ranks of some operators.
type steps struct{ sum, most int64 }

func (a steps) with(b steps) steps { return steps{a.sum + b.sum, a.most + b.most} }
func (a steps) then(b steps) steps { return steps{a.sum + b.sum, max(a.most, a.sum+b.most)} }

// held is a tensor that is read from outside or in which results lie.
type held struct {
	box     model.Region // read or made
	dtype   model.DType
	last    int32 // rank of the last reader inside
	inside  bool  // made there
	results int   // that lie in it, which keeps it to the end
}

func (a held) bytes() int64 { return a.dtype.Bytes(a.box.Elements()) }

func (a held) with(b held) held {
	a.last, a.results = max(a.last, b.last), a.results+b.results
	if !a.box.Equal(b.box) {
		a.box = a.box.Hull(b.box)
	}
	return a
}

func (a held) then(held) held { return held{} }

// summary is the cached part of a node.
type summary struct {
	parts   []*node    // it is the union of these, the exit last; nil: one operator
	op      model.OpID // that one
	n       int        // operators
	first   int        // rank of the first of them,
	last    int        // and of the last
	plain   bool       // the rest is not kept
	base    int64      // bytes read from outside
	steps   *tree[steps]
	held    *tree[held]
	sources []model.TensorID         // of each result: the tensor in which it lies
	cuts    map[string]*cut          // by the dimension of each result
	outside map[model.TensorID]int64 // of a counted one, the bytes that are read of each tensor from outside
}

// single is the sub-graph of one operator.
func (gr *grouper) single(id model.OpID) *node {
	g, op := gr.g, gr.g.Op(id)
	n := &node{summary: summary{op: id, n: 1, first: gr.rank[id], last: gr.rank[id]}}
	_, n.outputs = schedule.Boundary(g, []model.OpID{id})
	n.upsamples = op.Kind == "Resize" || op.Kind == "ConvTranspose"
	rank, end := int32(n.last), gr.ends[id]
	for k, in := range op.Inputs {
		if t := g.Tensor(in); t.Role != model.Constant {
			n.held = union(n.held, leaf(int32(in), held{box: gr.read(op, k), dtype: t.DType, last: end}))
		}
	}
	view := op.Class() == model.ViewClass
	made := int64(0)
	for _, o := range n.outputs {
		n.leaves = n.leaves || g.IsOutput(o)
		t := g.Tensor(o)
		n.plain = n.plain || t.Shape.Elements() == 0
		source := o
		h := held{box: model.Whole(t.Shape), dtype: t.DType, last: end, inside: true}
		if view {
			source = op.Inputs[0]
			var read bool
			h, read = n.held.get(int32(source))
			n.plain = n.plain || !read // a constant
		} else {
			made += h.bytes()
		}
		h.results++
		n.held = union(n.held.without(int32(source)), leaf(int32(source), h))
		n.sources = append(n.sources, source)
	}
	n.steps = leaf(rank, steps{made, made})
	n.held.visit(func(_ int32, h held) {
		if !h.inside {
			n.base += h.bytes()
			if h.results == 0 {
				n.step(end, -h.bytes())
			}
		}
	})
	gr.finish(n)
	return n
}

// read is the box of an operand that an operator needs for all of its results.
func (gr *grouper) read(op *model.Op, operand int) (box model.Region) {
	for k, o := range op.Outputs {
		if t := gr.g.Tensor(o); (len(t.Consumers) > 0 || gr.g.IsOutput(o)) && t.Shape.Elements() > 0 {
			box = box.Hull(gr.g.InputRegion(op, k, operand, model.Whole(t.Shape)))
		}
	}
	return box
}

// readWhole reports whether the readers of a tensor leave nothing of it out.
func (gr *grouper) readWhole(id model.TensorID) bool {
	t := gr.g.Tensor(id)
	var box model.Region
	for _, c := range t.Consumers {
		op := gr.g.Op(c)
		for k, in := range op.Inputs {
			if in == id {
				box = box.Hull(gr.read(op, k))
			}
		}
	}
	all := t.Shape.Elements()
	return all > 0 && box.Elements() == all
}

// join is the union of sub-graphs, the last of which is the only reader of the others.
func (gr *grouper) join(parts []*node) *node {
	before, exit := parts[:len(parts)-1], parts[len(parts)-1]
	m := &node{outputs: exit.outputs, leaves: exit.leaves,
		summary: summary{parts: slices.Clone(parts), first: exit.first}}
	for _, p := range parts {
		m.n, m.first, m.last = m.n+p.n, min(m.first, p.first), max(m.last, p.last)
		m.upsamples, m.plain = m.upsamples || p.upsamples, m.plain || p.plain
	}
	for _, p := range before {
		m.plain = m.plain || !p.plain && slices.ContainsFunc(p.outputs,
			func(t model.TensorID) bool { return !gr.readWhole(t) })
	}
	if !m.plain {
		m.sum(before, exit)
	}
	gr.finish(m)
	return m
}

// sum puts together what is known of the parts.
func (m *node) sum(before []*node, exit *node) {
	m.sources = exit.sources
	for _, p := range before {
		m.add(p, p.held)
	}
	// What the parts before make and the exit reads does not come from outside.
	read := exit.held
	outside := int64(0)
	for _, p := range before {
		for i, t := range p.outputs {
			x, ok := read.get(int32(t))
			if !ok {
				panic("graphturbo: a part is merged that its exit does not read")
			}
			read = read.without(int32(t))
			outside += x.bytes()
			if x.results == 0 {
				m.step(x.last, x.bytes())
			} else {
				m.sources = slices.Clone(m.sources)
				for k, s := range m.sources {
					if s == t {
						m.sources[k] = p.sources[i]
					}
				}
			}
			source := int32(p.sources[i])
			y, _ := m.held.get(source)
			y.last, y.results = max(y.last, x.last), y.results-1+x.results
			m.held = m.held.without(source)
			if y.results == 0 {
				m.step(y.last, -y.bytes())
			}
			if y.results > 0 || !y.inside {
				m.held = union(m.held, leaf(source, y))
			}
		}
	}
	m.add(exit, read)
	m.base -= outside
}

// add adds a part, of which held is left of what it holds.
func (m *node) add(p *node, left *tree[held]) {
	m.base += p.base
	m.steps = union(m.steps, p.steps)
	common(m.held, left, func(_ int32, a, b held) {
		both := a.with(b)
		m.base += both.bytes() - a.bytes() - b.bytes()
		for _, h := range []held{a, b} {
			if h.results == 0 {
				m.step(h.last, h.bytes())
			}
		}
		if both.results == 0 {
			m.step(both.last, -both.bytes())
		}
	})
	m.held = union(m.held, left)
}

func (m *node) step(rank int32, bytes int64) {
	m.steps = union(m.steps, leaf(rank, steps{sum: bytes}))
}

// operators lists those of a sub-graph. Once it has a list, its parts need none.
func (gr *grouper) operators(n *node) []model.OpID {
	if n.ops == nil {
		stack := []*node{n}
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			switch {
			case top.ops != nil:
				n.ops = append(n.ops, top.ops...)
			case top.parts == nil:
				n.ops = append(n.ops, top.op)
			default:
				stack = append(stack, top.parts...)
			}
		}
		slices.SortFunc(n.ops, func(a, b model.OpID) int { return gr.rank[a] - gr.rank[b] })
	}
	return n.ops
}

// cut follows dimensions of a node's results backward, [schedule.Track] part by part.
func (gr *grouper) cut(n *node, dims []int) *cut {
	key := make([]byte, len(dims))
	for i, d := range dims {
		key[i] = byte(d)
	}
	if c, ok := n.cuts[string(key)]; ok {
		return c
	}
	c := &cut{splittable: true, exact: true}
	if n.parts == nil {
		gr.cutSingle(n, dims, c)
	} else {
		gr.cutUnion(n, dims, c)
	}
	for i, t := range n.outputs {
		if dims[i] >= 0 {
			c.results = model.GCD(c.results, gr.g.Tensor(t).Shape[dims[i]])
		}
	}
	if n.cuts == nil {
		n.cuts = map[string]*cut{}
	}
	n.cuts[string(key)] = c
	return c
}

func (gr *grouper) cutSingle(n *node, dims []int, c *cut) {
	g, op := gr.g, gr.g.Op(n.op)
	d, known, out := whole, false, 0
	for k, o := range op.Outputs {
		if i := slices.Index(n.outputs, o); i >= 0 {
			if !known {
				d, known, out = dims[i], true, k
			} else if dims[i] != d {
				d = whole // the outputs are cut differently
			}
		}
	}
	if d >= 0 && g.Sequential(op, out)[d] {
		c.splittable = false
		return
	}
	if d < 0 {
		c.unmatched, c.exact, c.recomputes = 1, false, true
	}
	for k, in := range op.Inputs {
		t := g.Tensor(in)
		if t.Role == model.Constant {
			continue
		}
		x := cutInput{dim: whole, whole: true}
		if d >= 0 {
			for dim, a := range g.Access(op, out, k) {
				if !a.Full && a.Out == d && t.Shape[dim] > 1 {
					x = cutInput{dim: dim, extents: t.Shape[dim], halo: !a.Exact()}
					break
				}
			}
		}
		c.inputs = union(c.inputs, leaf(int32(in), x))
	}
}

func (gr *grouper) cutUnion(n *node, dims []int, c *cut) {
	before, exit := n.parts[:len(n.parts)-1], n.parts[len(n.parts)-1]
	c.add(gr.cut(exit, dims))
	for _, p := range before {
		if !c.splittable {
			return
		}
		ends := make([]int, len(p.outputs))
		for i, t := range p.outputs {
			x, _ := c.inputs.get(int32(t))
			c.inputs = c.inputs.without(int32(t))
			ends[i] = x.dim
			c.exact = c.exact && !x.whole && !x.halo
			c.recomputes = c.recomputes || x.halo
			c.intermediates = model.GCD(c.intermediates, x.extents)
		}
		c.add(gr.cut(p, ends))
	}
}

// add adds what is known of a part.
func (c *cut) add(p *cut) {
	c.splittable = c.splittable && p.splittable
	c.exact, c.recomputes = c.exact && p.exact, c.recomputes || p.recomputes
	c.unmatched += p.unmatched
	c.intermediates = model.GCD(c.intermediates, p.intermediates)
	c.inputs = union(c.inputs, p.inputs)
}

// node as Algorithm 1 sees it.
type merging struct {
	*grouper
	*node
}

func (m merging) size() int                 { return m.n }
func (m merging) results() []model.TensorID { return m.outputs }
func (m merging) operators() []model.OpID   { return m.grouper.operators(m.node) }

// footprint is an upper bound where that fits.
func (m merging) footprint() int64 {
	most := m.base + max(0, m.node.steps.all().most)
	if s := m.grouper.split; !m.plain && (s.opt.Peak() == schedule.PeakOptions{} || most <= s.opt.L1Bytes) {
		return most
	}
	if !m.behind() {
		m.count()
	}
	return m.peak
}

func (m merging) follow(dim int) *cut {
	if m.plain {
		return (&listed{m.g, m.operators(), m.outputs, m.grouper.split.opt.Peak()}).follow(dim)
	}
	if !alike(m.g, m.outputs, dim) {
		return &cut{}
	}
	return m.grouper.cut(m.node, slices.Repeat([]int{dim}, len(m.outputs)))
}

// count finds the footprint operator by operator, if nobody has.
func (m merging) count() {
	if m.outside == nil {
		f := schedule.NewFootprint(m.g, m.operators(), m.outputs, m.grouper.split.opt.Peak())
		m.node.peak, m.node.outside = f.Instance(-1, 1, 0), f.Entering()
	}
}

// behind finds the footprint of a node whose second part runs behind all of the first, if no layer has operators of
// both, no result lies in another tensor, and nothing but the first's results, all of which are read whole, concerns
// both: what the second reads beside these is there from the start.
func (m merging) behind() bool {
	if len(m.parts) != 2 || m.parts[0].last >= m.parts[1].first {
		return false
	}
	a, b := m.parts[0], m.parts[1]
	merging{m.grouper, a}.count()
	merging{m.grouper, b}.count()
	outside, rest := maps.Clone(a.outside), int64(0)
	for id, bytes := range b.outside {
		t := m.g.Tensor(id)
		switch _, both := outside[id]; {
		case both:
			return false
		case !slices.Contains(a.outputs, id):
			outside[id] = bytes
			rest += bytes
		case bytes != t.Bytes() || m.g.Op(t.Producer).Class() == model.ViewClass || m.goesOn(t):
			return false
		}
	}
	m.node.outside, m.node.peak = outside, max(a.peak+rest, b.peak)
	return true
}

// goesOn reports whether the layer of a result may go on with its only reader (see [schedule.Layers]).
func (gr *grouper) goesOn(t *model.Tensor) bool {
	return gr.split.opt.Peak().Layers && len(t.Consumers) == 1 &&
		slices.Contains([]model.Class{model.ElementwiseClass, model.InjectiveClass, model.ViewClass},
			gr.g.Op(t.Consumers[0]).Class())
}

// alike reports whether all tensors have a dimension, and as much of it.
func alike(g *model.Graph, ids []model.TensorID, dim int) bool {
	return !slices.ContainsFunc(ids, func(t model.TensorID) bool {
		s := g.Tensor(t).Shape
		return dim >= len(s) || s[dim] != g.Tensor(ids[0]).Shape[dim]
	})
}

// listed is a sub-graph that is looked at operator by operator.
type listed struct {
	g       *model.Graph
	ops     []model.OpID
	outputs []model.TensorID
	peak    schedule.PeakOptions
}

func (l *listed) size() int                 { return len(l.ops) }
func (l *listed) results() []model.TensorID { return l.outputs }
func (l *listed) operators() []model.OpID   { return l.ops }

func (l *listed) footprint() int64 {
	return schedule.NewFootprint(l.g, l.ops, l.outputs, l.peak).Instance(-1, 1, 0)
}

func (l *listed) follow(dim int) *cut {
	tr := schedule.Track(l.g, l.ops, l.outputs, dim)
	c := &cut{splittable: tr.Splittable, exact: tr.Exact, recomputes: tr.Recomputes, unmatched: tr.Unmatched}
	made := map[model.TensorID]bool{}
	extent := func(t model.TensorID) int64 {
		if d, ok := tr.Dim[t]; ok && d >= 0 {
			return l.g.Tensor(t).Shape[d]
		}
		return 0
	}
	for _, id := range l.ops {
		for _, o := range l.g.Op(id).Outputs {
			made[o] = true
			if slices.Contains(l.outputs, o) {
				c.results = model.GCD(c.results, extent(o))
			} else {
				c.intermediates = model.GCD(c.intermediates, extent(o))
			}
		}
	}
	for t := range tr.Dim {
		if !made[t] {
			c.inputs = union(c.inputs, leaf(int32(t), cutInput{dim: tr.Dim[t], extents: extent(t)}))
		}
	}
	return c
}
