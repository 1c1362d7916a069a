package sharding

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// An option is a way to compute an operator on several chips.
type option struct {
	In, Out []layout // of its inputs and outputs
	Seconds float64  // on each chip
}

// A Problem is a network with the options of each operator.
type Problem struct {
	Graph   *model.Graph
	Group   chips.Group
	Options [][]option // by operator; the first computes it whole
	// tensors are those with several readers, each with the ways to have it in several layouts.
	tensors []model.TensorID
	ways    [][]way
	node    []int // of a tensor in the binding problem, after the operators; -1: none
	pairs   binding.Problem
	never   float64 // a cost that no plan has
	launch  float64 // seconds of the launch behind each collective
	price   *price
}

// New poses the problem of a network on chips of a machine. small is the same network at another
// batch size: dimensions in which the two differ grow with the batch.
func New(g, small *model.Graph, chip *hardware.Spec, group chips.Group) (*Problem, error) {
	if group.Torus != nil {
		product := int64(1)
		for _, extent := range group.Torus {
			product *= int64(max(0, extent))
		}
		if product != group.Chips {
			return nil, fmt.Errorf("sharding: found a torus of %v, expected extents above 0 whose product is %d chips",
				group.Torus, group.Chips)
		}
	}
	if group.Chips < 1 || !(group.Link.BandwidthBytesPerSecond > 0) || !(group.Link.LatencySeconds >= 0) {
		return nil,
			fmt.Errorf("sharding: found %d chips with links of %g B/s and %g s, expected at least one chip and more than 0 B/s",
				group.Chips, group.Link.BandwidthBytesPerSecond, group.Link.LatencySeconds)
	}
	if len(g.Ops) != len(small.Ops) || len(g.Tensors) != len(small.Tensors) {
		return nil, fmt.Errorf("sharding: %s has %d operators at one batch size and %d at another, expected as many", g.Name,
			len(g.Ops), len(small.Ops))
	}
	p := &Problem{Graph: g, Group: group, node: slices.Repeat([]int{-1}, len(g.Tensors)),
		launch: chip.LaunchSeconds}
	s := &shapes{g: g, small: small, chips: group.Chips}
	p.price = newPrice(chip)
	for _, op := range g.Ops {
		p.Options = append(p.Options, s.options(op, p.price))
	}
	p.pose()
	return p, nil
}

// shapes knows which dimensions can be cut.
type shapes struct {
	g, small *model.Graph
	chips    int64
}

// divides reports whether a tensor can be cut along a dimension.
func (s *shapes) divides(t model.TensorID, dim int) bool {
	a, b := s.g.Tensor(t), s.small.Tensor(t)
	return len(a.Shape) == len(b.Shape) && a.Shape[dim] == b.Shape[dim] && a.Shape[dim]%s.chips == 0 &&
		a.Shape[dim] >= s.chips && !a.Causal && a.Ints == nil
}

// options lists the ways to compute an operator.
func (s *shapes) options(op *model.Op, price *price) []option {
	list := []option{wholly(op)}
	if s.chips > 1 {
		for d := range s.g.Tensor(op.Outputs[0]).Shape {
			if in, ok := s.needs(op, d); ok {
				list = append(list, option{In: in, Out: slices.Repeat([]layout{Cut(d)}, len(op.Outputs))})
			}
		}
		list = append(list, s.reductions(op)...)
	}
	kept := list[:0]
	for _, o := range list {
		if alone, err := s.alone(op, o); err == nil {
			o.Seconds = price.seconds(alone)
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 || kept[0].In != nil && slices.ContainsFunc(kept[0].In, func(l layout) bool { return l != Whole }) {
		panic("sharding: operator " + op.Name + " can't be computed whole") // it is in a graph
	}
	return kept
}

// wholly is an operator as it is.
func wholly(op *model.Op) option {
	all := func(n int) []layout { return slices.Repeat([]layout{Whole}, n) }
	return option{In: all(len(op.Inputs)), Out: all(len(op.Outputs))}
}

// needs returns the parts of an operator's inputs that parts of its outputs along a dimension need.
func (s *shapes) needs(op *model.Op, dim int) ([]layout, bool) {
	in := make([]layout, len(op.Inputs))
	for k, t := range op.Outputs {
		if dim >= len(s.g.Tensor(t).Shape) || !s.divides(t, dim) || s.g.Sequential(op, k)[dim] ||
			dim >= 2 && len(op.Attr.Pads) > 0 { // a part's border is no border of the whole
			return nil, false
		}
		for i, read := range op.Inputs {
			l, ok := s.part(op, k, i, dim)
			if !ok || l >= 0 && !s.divides(read, int(l)) || k > 0 && l != in[i] {
				return nil, false
			}
			in[i] = l
		}
	}
	return in, true
}

// part is the layout of an input of which part c of an output needs no more than chip c has.
func (s *shapes) part(op *model.Op, out, in, dim int) (layout, bool) {
	shape, need := s.g.Tensor(op.Outputs[out]).Shape, s.g.Tensor(op.Inputs[in]).Shape
	cut := Whole
	for c := range s.chips {
		r := model.Whole(shape)
		r[dim] = r[dim].Piece(c, s.chips)
		box := s.g.InputRegion(op, out, in, r)
		own := Whole
		for d, iv := range box {
			switch {
			case iv == model.Interval{Hi: need[d]}: // all of it
			case iv == model.Interval{Hi: need[d]}.Piece(c, s.chips) && own == Whole:
				own = Cut(d)
			default:
				return 0, false
			}
		}
		if c > 0 && own != cut {
			return 0, false
		}
		cut = own
	}
	return cut, true
}

// reductions are the cuts of a matrix product along what its operands share.
func (s *shapes) reductions(op *model.Op) (list []option) {
	if !s.g.OnMatrixUnit(op) || len(op.Inputs) < 2 || len(op.Outputs) != 1 || op.Kind == "Attention" || op.Attr.Group > 1 {
		return nil
	}
	var along [2][]int
	for i := range along {
		for d, a := range s.g.Access(op, 0, i) {
			if a.Full && s.divides(op.Inputs[i], d) {
				along[i] = append(along[i], d)
			}
		}
	}
	for _, a := range along[0] {
		for _, b := range along[1] {
			if s.g.Tensor(op.Inputs[0]).Shape[a] != s.g.Tensor(op.Inputs[1]).Shape[b] {
				continue
			}
			o := option{In: []layout{Cut(a), Cut(b)}, Out: []layout{Partial}}
			for _, t := range op.Inputs[2:] {
				if s.g.Tensor(t).Role != model.Constant {
					return nil
				}
				o.In = append(o.In, first)
			}
			list = append(list, o)
		}
	}
	return list
}

// size is the shape of what a chip has of a tensor.
func size(t *model.Tensor, l layout, chips int64) model.Shape {
	shape := t.Shape.Clone()
	if l >= 0 {
		shape[l] /= chips
	}
	return shape
}

// attributes are those of an operator on a chip.
func attributes(g *model.Graph, op *model.Op, o option, chips int64) model.Attr {
	a := *op.Attr
	out := g.Tensor(op.Outputs[0]).Shape
	if l := o.Out[0]; l >= 0 && slices.Equal(a.Shape, out) {
		a.Shape = size(g.Tensor(op.Outputs[0]), l, chips)
	}
	if a.Group > 1 && o.In[0] == Cut(1) && o.Out[0] == Cut(1) {
		a.Group /= chips
	}
	return a
}

// alone is the graph of one operator on one chip; an error: it gives other shapes than it should.
func (s *shapes) alone(op *model.Op, o option) (*model.Graph, error) {
	b := model.NewBuilder(op.Name)
	var in []model.TensorID
	for i, id := range op.Inputs {
		in = append(in, source(b, s.g.Tensor(id), o.In[i], s.chips))
	}
	out := b.OpN(op.Kind, op.Name, attributes(s.g, op, o, s.chips), in...)
	b.Output(out...)
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	for k, id := range op.Outputs {
		if want := size(s.g.Tensor(id), o.Out[k], s.chips); !g.Tensor(out[k]).Shape.Equal(want) {
			return nil, fmt.Errorf("found %v, expected %v", g.Tensor(out[k]).Shape, want)
		}
	}
	return g, nil
}

// source adds a chip's part of a tensor that no operator of the graph computes.
func source(b *model.Builder, t *model.Tensor, l layout, chips int64) model.TensorID {
	shape := size(t, l, chips)
	if t.Role != model.Constant {
		return b.Input(t.Name, t.DType, shape...)
	}
	if t.Learned {
		return b.Param(t.Name, t.DType, shape...)
	}
	id := b.Const(t.Name, t.DType, t.Ints, shape...)
	b.Tensor(id).Causal = t.Causal
	return id
}

// price has the rates of a chip.
type price struct {
	chip   *hardware.Spec
	vector float64 // simple operations a second of all vector units, in elements of two bytes
}

func newPrice(chip *hardware.Spec) *price {
	p := &price{chip: chip}
	for _, t := range chip.CoreTypes {
		for _, u := range t.Units {
			if u.Kind == hardware.Vector {
				p.vector += u.MACsPerCycle(model.F16.String()) / u.ClockRatio(chip) * float64(t.Count*chip.Clusters) * chip.ClockHz
			}
		}
	}
	return p
}

// seconds is the time of the one operator of a graph on a chip.
func (p *price) seconds(g *model.Graph) float64 {
	op := g.Ops[0]
	w := g.Work(op, nil)
	constants := int64(0)
	for _, t := range g.Tensors {
		if t.Role == model.Constant && op.Kind != "Gather" {
			constants += t.Bytes()
		}
	}
	s := float64(constants) / p.chip.DDR.BandwidthBytesPerSecond
	if peak := p.chip.PeakMACsPerSecond(g.Tensor(op.Outputs[0]).DType.String()); peak > 0 {
		s = math.Max(s, float64(w.MACs)/peak)
	}
	if p.vector > 0 {
		s = math.Max(s, float64(w.Vector.Total())/p.vector)
	}
	return s
}

// A way is how chips have a tensor in several layouts: as its maker leaves it, and changed once, from
// which it is changed to each other layout once.
type way struct {
	native, via layout
	layouts     []layout // beside those two; each chip takes its part of what is whole
	seconds     float64
}

// has reports whether a reader finds a layout.
func (w *way) has(l layout) bool {
	return l == w.native || w.native == Whole || l == w.via || w.via == Whole || slices.Contains(w.layouts, l)
}

// change is what a collective costs with the launch behind it.
func (p *Problem) change(t model.TensorID, from, to layout) float64 {
	kind, s := collective(p.Group, from, to, p.Graph.Tensor(t).Bytes())
	if kind == "" {
		return 0
	}
	return p.launch + s
}

// waysOf lists the ways to have a tensor of several readers: as its maker may leave it, whole besides, or in some
// of the cuts that readers want besides, by the cheapest first change. Operators that are computed whole come first.
func (p *Problem) waysOf(t *model.Tensor) (list []way) {
	natives, wanted := p.layoutsOf(t)
	var cuts []layout
	for _, l := range wanted {
		if l >= 0 {
			cuts = append(cuts, l)
		}
	}
	for _, n := range natives {
		if n != Partial || !p.Graph.IsOutput(t.ID) {
			list = append(list, way{native: n, via: n})
		}
		if n == Whole {
			continue
		}
		list = append(list, way{native: n, via: Whole, seconds: p.change(t.ID, n, Whole)})
		if n == Partial && p.Graph.IsOutput(t.ID) {
			continue
		}
		for set := 1; set < 1<<len(cuts); set++ {
			var some []layout
			for k, l := range cuts {
				if set>>k&1 == 1 {
					some = append(some, l)
				}
			}
			if slices.Contains(some, n) {
				continue
			}
			best := way{seconds: math.Inf(1)}
			for _, via := range append([]layout{n}, some...) {
				if via == Partial {
					continue // each by itself from the sums: not the way of Pieces
				}
				w := way{native: n, via: via, layouts: some, seconds: p.change(t.ID, n, via)}
				for _, l := range some {
					w.seconds += p.change(t.ID, via, l)
				}
				if w.seconds < best.seconds {
					best = w
				}
			}
			list = append(list, best)
		}
	}
	return list
}

// pose makes the problem of labels and pairs.
func (p *Problem) pose() {
	g := p.Graph
	for _, t := range g.Tensors {
		if t.Producer != model.NoOp && (len(t.Consumers) > 1 || len(t.Consumers) > 0 && g.IsOutput(t.ID)) {
			p.node[t.ID] = len(g.Ops) + len(p.tensors)
			p.tensors, p.ways = append(p.tensors, t.ID), append(p.ways, p.waysOf(t))
		}
	}
	for i, op := range g.Ops {
		n := binding.Node{Name: op.Name}
		for k, o := range p.Options[i] {
			s := o.Seconds
			for j, t := range op.Outputs {
				if g.IsOutput(t) && o.Out[j] == Partial && p.node[t] < 0 {
					_, sum := collective(p.Group, Partial, Whole, g.Tensor(t).Bytes())
					s += sum
				}
			}
			n.Labels, n.Cost = append(n.Labels, binding.Label{Binding: schedule.Binding{int64(k)}}), append(n.Cost, s)
		}
		p.pairs.Nodes = append(p.pairs.Nodes, n)
		p.never += slices.Max(n.Cost)
	}
	for k, t := range p.tensors {
		n := binding.Node{Name: g.Tensor(t).Name}
		for j, w := range p.ways[k] {
			n.Labels, n.Cost = append(n.Labels, binding.Label{Binding: schedule.Binding{int64(j)}}), append(n.Cost, w.seconds)
		}
		p.pairs.Nodes = append(p.pairs.Nodes, n)
		p.never += slices.Max(n.Cost)
	}
	for _, t := range g.Tensors {
		p.never += float64(len(t.Consumers)) * (p.change(t.ID, Partial, Whole) + p.launch)
	}
	at := map[[2]int]int{}
	add := func(from, to int, seconds func(a, b int) float64) {
		k, known := at[[2]int{from, to}]
		if !known {
			k = len(p.pairs.Edges)
			at[[2]int{from, to}] = k
			e := binding.Edge{From: from, To: to}
			for range p.pairs.Nodes[from].Labels {
				e.Cost = append(e.Cost, make([]float64, len(p.pairs.Nodes[to].Labels)))
			}
			p.pairs.Edges = append(p.pairs.Edges, e)
		}
		for a, row := range p.pairs.Edges[k].Cost {
			for b := range row {
				row[b] += seconds(a, b)
			}
		}
	}
	only := func(ok bool) float64 {
		if ok {
			return 0
		}
		return p.never
	}
	for k, t := range p.tensors {
		maker := g.Tensor(t).Producer
		out := slices.Index(g.Op(maker).Outputs, t)
		add(int(maker), p.node[t], func(a,
			b int) float64 {
			return only(p.Options[maker][a].Out[out] == p.ways[k][b].native)
		})
	}
	for i, op := range g.Ops {
		for in, t := range op.Inputs {
			maker := g.Tensor(t).Producer
			switch {
			case maker == model.NoOp || slices.Index(op.Inputs, t) < in && p.same(i, in, slices.Index(op.Inputs, t)):
			case p.node[t] >= 0:
				ways := p.ways[p.node[t]-len(g.Ops)]
				add(p.node[t], i, func(a, b int) float64 { return only(ways[a].has(p.Options[i][b].In[in])) })
			default:
				out := slices.Index(g.Op(maker).Outputs, t)
				add(int(maker), i, func(a, b int) float64 {
					return p.change(t, p.Options[maker][a].Out[out],
						p.Options[i][b].In[in])
				})
			}
		}
	}
}

// same reports whether an operator wants one layout of two of its inputs whatever its option.
func (p *Problem) same(op, a, b int) bool {
	return !slices.ContainsFunc(p.Options[op], func(o option) bool { return o.In[a] != o.In[b] })
}

// layoutsOf are the layouts in which a tensor's maker may leave it, and those that a reader may want.
func (p *Problem) layoutsOf(t *model.Tensor) (natives, wanted []layout) {
	add := func(list *[]layout, l layout) {
		if !slices.Contains(*list, l) {
			*list = append(*list, l)
		}
	}
	maker := p.Graph.Op(t.Producer)
	for _, o := range p.Options[t.Producer] {
		add(&natives, o.Out[slices.Index(maker.Outputs, t.ID)])
	}
	for _, c := range t.Consumers {
		for _, o := range p.Options[c] {
			for i, in := range p.Graph.Op(c).Inputs {
				if in == t.ID {
					add(&wanted, o.In[i])
				}
			}
		}
	}
	return natives, wanted
}

// A Plan is a choice of options.
type Plan struct {
	*binding.Result
	Options []option // by operator
	// changed are the layouts of tensors with several readers.
	changed map[model.TensorID]layout
}

// Methods lists the methods: the rules, and the exact ones of package binding.
func Methods() []solve.Method {
	methods := []solve.Method{
		{Name: "whole", Description: "each chip computes all"},
		{Name: "greedy", Description: "operator by operator, the option of least seconds with what its inputs then cost"},
	}
	for _, m := range binding.Methods() {
		if m.Exact {
			methods = append(methods, m)
		}
	}
	return methods
}

// Solve chooses an option for each operator by the method of that name. Exact ones start from the
// greedy choice.
func (p *Problem) Solve(ctx context.Context, method string, opts binding.Options) (*Plan, error) {
	start := p.greedy()
	if method == "whole" {
		start = make([]int, len(p.pairs.Nodes))
		method = "greedy"
	}
	if opts.Start == nil {
		opts.Start = start
	}
	r, err := binding.Solve(ctx, &p.pairs, method, opts)
	if err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	if r.Choice == nil {
		return &Plan{Result: r}, nil
	}
	plan := &Plan{Result: r, changed: map[model.TensorID]layout{}}
	for i := range p.Graph.Ops {
		plan.Options = append(plan.Options, p.Options[i][r.Choice[i]])
	}
	for k, t := range p.tensors {
		plan.changed[t] = p.ways[k][r.Choice[p.node[t]]].via
	}
	return plan, nil
}

// greedy lets operators choose in topological order, as if each input were changed for each reader by itself.
func (p *Problem) greedy() []int {
	g := p.Graph
	choice := make([]int, len(p.pairs.Nodes))
	for i, op := range g.Ops {
		least := math.Inf(1)
		for k, s := range p.pairs.Nodes[i].Cost {
			for in, t := range op.Inputs {
				if maker := g.Tensor(t).Producer; maker != model.NoOp && !(slices.Index(op.Inputs, t) < in && p.same(i, in,
					slices.Index(op.Inputs, t))) {
					s += p.change(t, p.Options[maker][choice[maker]].Out[slices.Index(g.Op(maker).Outputs, t)], p.Options[i][k].In[in])
				}
			}
			if s < least {
				least, choice[i] = s, k
			}
		}
	}
	p.settle(choice, func(k int, ok []int) int {
		return slices.MinFunc(ok, func(a, b int) int { return cmp.Compare(p.ways[k][a].seconds, p.ways[k][b].seconds) })
	})
	return choice
}

// settle lets pick choose, for each tensor of several readers, among the ways that suit the operators' options.
func (p *Problem) settle(choice []int, pick func(tensor int, ok []int) int) {
	g := p.Graph
	for k, t := range p.tensors {
		maker := g.Tensor(t).Producer
		native := p.Options[maker][choice[maker]].Out[slices.Index(g.Op(maker).Outputs, t)]
		var ok []int
		for j := range p.ways[k] {
			w := &p.ways[k][j]
			if w.native == native && !slices.ContainsFunc(g.Tensor(t).Consumers, func(c model.OpID) bool {
				o := p.Options[c][choice[c]]
				for i, in := range g.Op(c).Inputs {
					if in == t && !w.has(o.In[i]) {
						return true
					}
				}
				return false
			}) {
				ok = append(ok, j)
			}
		}
		choice[p.node[t]] = pick(k, ok)
	}
}
