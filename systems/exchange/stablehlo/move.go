package stablehlo

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// target is the shape of a result that its type, or an operand, says.
func (b *builder) target(x *flat) model.Shape {
	shape, known := b.want(x.out[0])
	if known {
		return shape
	}
	if len(x.in) == 2 {
		if s := b.extents(x.in[1]); s != nil && len(s) == len(shape) {
			b.check(s.Check())
			return s
		}
	}
	// One extent follows from the others where only that is missing.
	at := slices.Index(shape, dynamic)
	rest := int64(1)
	for d, n := range shape {
		if d != at {
			rest *= max(n, 0)
		}
	}
	if n := x.in[0].shape.Elements(); at >= 0 && rest > 0 && n%rest == 0 && short(x.name) != "dynamic_broadcast_in_dim" {
		shape[at] = n / rest
		return shape
	}
	b.fail("the shape %s is not known", x.out[0].typ)
	return nil
}

func reshape(b *builder, x *flat) {
	shape, v, y := b.target(x), x.in[0], x.out[0]
	if v.shape.Elements() != shape.Elements() {
		b.fail("cannot make %v of %v", shape, v.shape)
	}
	if v.lit != nil && !v.made {
		y.lit, y.shape, y.constant, y.base = v.lit, shape, true, nil
		if v.lit.splat || len(v.lit.ints) > 0 {
			return
		}
	}
	y.lit = v.lit
	b.emit("Reshape", model.Attr{Shape: shape}, b.tensor(v))
}

func broadcast(b *builder, x *flat) {
	shape, v, y := b.target(x), x.in[0], x.out[0]
	dims := x.list("broadcast_dimensions", "dims")
	if short(x.name) == "broadcast" {
		for d := range v.shape {
			dims = append(dims, int64(len(shape)-len(v.shape)+d))
		}
	}
	if len(dims) != len(v.shape) {
		b.fail("dims %v for %v", dims, v.shape)
	}
	ascending := true
	aligned := model.Shape(repeat(1, len(shape)))
	seen := map[int64]bool{}
	for i, d := range dims {
		if d < 0 || d >= int64(len(shape)) || seen[d] || v.shape[i] != shape[d] && v.shape[i] != 1 {
			b.fail("%v does not go to dims %v of %v", v.shape, dims, shape)
		}
		seen[d] = true
		ascending = ascending && (i == 0 || dims[i-1] < d)
		aligned[d] = v.shape[i]
	}
	y.shape = shape
	if v.lit != nil && v.lit.splat && !v.made {
		b.known(y, shape, v.lit)
		return
	}
	if v.lit != nil && len(v.lit.ints) == 1 && len(v.shape) == 0 {
		lit := &literal{splat: true, f: float64(v.lit.ints[0])}
		if shape.Elements() == 1 {
			lit.ints = v.lit.ints
		}
		b.known(y, shape, lit)
		return
	}
	base := v
	if v.base != nil && len(v.shape) == len(shape) && ascending {
		base = v.base // twice
		y.base = base
		b.agree(y)
		return
	}
	id := b.tensor(base)
	if !ascending {
		order := make([]int, len(dims))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int { return int(dims[i] - dims[j]) })
		id = b.transposed("transpose", id, order)
	}
	if aligned.Equal(shape) { // another shape alone
		b.set(y, b.reshaped("view", id, shape))
		return
	}
	for len(aligned) > 0 && aligned[0] == 1 {
		aligned = aligned[1:]
	}
	id = b.reshaped("view", id, aligned)
	y.base = &val{name: v.name, typ: v.typ, shape: aligned, id: id, made: true, constant: v.constant}
	b.agree(y)
}

func transpose(b *builder, x *flat) {
	v := x.in[0]
	perm := make([]int, len(v.shape))
	seen := make([]bool, len(perm))
	list := x.list("permutation", "dims")
	ok := len(list) == len(perm)
	for i := 0; ok && i < len(list); i++ {
		d := list[i]
		if ok = d >= 0 && d < int64(len(perm)) && !seen[d]; ok {
			seen[d], perm[i] = true, int(d)
		}
	}
	if !ok {
		b.fail("%v is no permutation of the dimensions of %v", list, v.shape)
	}
	b.later(x.out[0], b.tensor(v), perm, false)
}

func slice(b *builder, x *flat) {
	v := x.in[0]
	rank := len(v.shape)
	starts, limits, steps := x.list("start_indices"), x.list("limit_indices"), x.list("strides")
	for _, w := range x.words {
		if len(w.list) != rank {
			continue
		}
		starts, limits, steps = nil, nil, nil
		for _, e := range w.list {
			n := append(slices.Clone(e.ints), 1)
			if len(n) < 3 {
				b.fail("a range has no limit")
			}
			starts, limits, steps = append(starts, n[0]), append(limits, n[1]), append(steps, n[2])
		}
	}
	if len(steps) == 0 {
		steps = repeat(1, rank)
	}
	if len(starts) != rank || len(limits) != rank || len(steps) != rank {
		b.fail("has %d starts, %d limits and %d strides for %v", len(starts), len(limits), len(steps), v.shape)
	}
	shape := make([]int64, rank)
	for d := range shape {
		limit := limits[d]
		if starts[d] == 0 && limit == v.typ.shape[d] {
			limit = v.shape[d] // all, at any batch
		}
		if steps[d] < 1 || starts[d] < 0 || limit <= starts[d] || limit > v.shape[d] {
			b.fail("range %d:%d:%d of dimension %d of %v", starts[d], limit, steps[d], d, v.shape)
		}
		shape[d] = (limit-starts[d]-1)/steps[d] + 1
	}
	if v.lit != nil && rank == 1 && steps[0] == 1 && int64(len(v.lit.ints)) == v.shape[0] {
		b.known(x.out[0], shape, &literal{ints: v.lit.ints[starts[0] : starts[0]+shape[0]]})
		return
	}
	b.emit("Slice", model.Attr{Starts: starts, Steps: steps, Shape: shape}, b.tensor(v))
}

func repeat(n int64, times int) []int64 { return slices.Repeat([]int64{n}, times) }

// dynamicSlice is taken to begin at 0: where it begins costs nothing.
func dynamicSlice(b *builder, x *flat) {
	if len(x.in) == 0 {
		b.fail("has no operand")
	}
	v := x.in[0]
	rank := len(v.shape)
	shape := slices.Clone(x.list("slice_sizes", "sizes"))
	if len(shape) != rank || len(x.in) != rank+1 {
		b.fail("has %d sizes and %d starts for %v", len(shape), len(x.in)-1, v.shape)
	}
	for d := range shape {
		if shape[d] == v.typ.shape[d] {
			shape[d] = v.shape[d]
		}
	}
	a := model.Attr{Starts: repeat(0, rank), Steps: repeat(1, rank), Shape: shape, Variant: "dynamic"}
	if !slices.ContainsFunc(x.in[1:], func(s *val) bool { return s.num == nil }) {
		a.Variant = ""
		for d, s := range x.in[1:] {
			a.Starts[d] = max(0, min(*s.num, v.shape[d]-shape[d]))
		}
	}
	b.emit("Slice", a, b.tensor(v))
}

func dynamicUpdateSlice(b *builder, x *flat) {
	if len(x.in) < 3 {
		b.fail("has %d operands, expected at least 3", len(x.in))
	}
	b.emit("Scatter", model.Attr{}, b.tensor(x.in[0]), b.tensor(x.in[2]), b.tensor(x.in[1]))
}

func scatter(b *builder, x *flat) {
	b.emit("Scatter", model.Attr{}, b.tensor(x.in[0]), b.tensor(x.in[1]), b.tensor(x.in[2]))
}

func concatenate(b *builder, x *flat) {
	d := x.list("dimension", "dim")
	if len(d) != 1 || len(x.in) == 0 {
		b.fail("has no dimension, or no operand")
	}
	var ints []int64
	for _, v := range x.in {
		if v.lit == nil || len(v.shape) != 1 || int64(len(v.lit.ints)) != v.shape[0] {
			ints = nil
			break
		}
		ints = append(ints, v.lit.ints...)
	}
	if len(ints) > 0 {
		b.known(x.out[0], model.Shape{int64(len(ints))}, &literal{ints: ints})
		return
	}
	var ids []model.TensorID
	for _, v := range x.in {
		ids = append(ids, b.tensor(v))
	}
	b.emit("Concat", model.Attr{Axis: d[0]}, ids...)
}

func pad(b *builder, x *flat) {
	low, high, interior := x.list("edge_padding_low", "low"), x.list("edge_padding_high", "high"),
		x.list("interior_padding", "interior")
	if slices.ContainsFunc(interior, func(n int64) bool { return n != 0 }) {
		b.refuse("pads between elements")
	}
	b.emit("Pad", model.Attr{Pads: slices.Concat(low, high)}, b.tensor(x.in[0]))
}

func reverse(b *builder, x *flat) {
	s := x.in[0].shape
	a := model.Attr{Starts: repeat(0, len(s)), Steps: repeat(1, len(s)), Shape: s}
	for _, d := range x.list("dimensions", "dims") {
		if d < 0 || d >= int64(len(s)) {
			b.fail("dimension %d of %v", d, s)
		}
		a.Starts[d], a.Steps[d] = s[d]-1, -1
	}
	b.emit("Slice", a, b.tensor(x.in[0]))
}

// gather is known where it takes whole slices along one dimension, as tables of rows are read.
func gather(b *builder, x *flat) {
	g := x.gatherDims()
	table, at := x.in[0], x.in[1]
	sizes := x.list("slice_sizes")
	if len(sizes) != len(table.shape) || len(g.start) != 1 || g.start[0] < 0 || g.start[0] >= int64(len(table.shape)) {
		b.refuse("takes slices along several dimensions")
	}
	axis := g.start[0]
	for d, n := range sizes {
		if int64(d) == axis && n != 1 || int64(d) != axis && n != table.typ.shape[d] {
			b.refuse("takes parts of rows")
		}
	}
	if len(g.collapsed) > 1 || len(g.collapsed) == 1 && g.collapsed[0] != axis {
		b.refuse("drops another dimension than the one along which it takes rows")
	}
	// The vector of indices has one entry.
	positions := at.shape.Clone()
	if g.vector >= 0 && g.vector < int64(len(positions)) {
		if positions[g.vector] != 1 {
			b.fail("indices %v have vectors of %d, expected 1", at.shape, positions[g.vector])
		}
		positions = slices.Delete(positions, int(g.vector), int(g.vector)+1)
	}
	id := b.b.Op("Gather", x.out[0].name+"/rows", model.Attr{Axis: axis}, b.tensor(table),
		b.reshaped("positions", b.tensor(at), positions))
	// The graph's has the positions at the axis; here they may be anywhere.
	var perm []int
	rows, rest := int(axis), 0
	lead := int(axis)
	for d := range x.out[0].dims {
		switch {
		case !slices.Contains(g.offset, int64(d)):
			perm = append(perm, rows)
			rows++
		default:
			if len(g.collapsed) == 0 && rest == lead {
				rest++
				perm = append(perm, -1) // the row itself, of extent 1
				continue
			}
			k := rest
			if len(g.collapsed) == 0 && k > lead {
				k--
			}
			if k >= lead {
				k += len(positions)
			}
			perm = append(perm, k)
			rest++
		}
	}
	whole := slices.DeleteFunc(slices.Clone(perm), func(p int) bool { return p < 0 })
	if b.b.Err() != nil || len(whole) != len(b.shapeOf(id)) || slices.Max(append(whole, 0)) >= max(1, len(whole)) {
		b.fail("offset_dims %v do not fit rows of %v", g.offset, table.shape)
	}
	id = b.transposed("transpose", id, whole)
	if len(whole) < len(perm) {
		s := model.Shape{}
		k := 0
		for _, p := range perm {
			if p < 0 {
				s = append(s, 1)
				continue
			}
			s = append(s, b.shapeOf(id)[k])
			k++
		}
		id = b.reshaped("row", id, s)
	}
	b.set(x.out[0], id)
}

func indexSelect(b *builder, x *flat) {
	d, n := x.list("dim"), x.list("batch_dims")
	if len(d) != 1 || len(n) == 1 && n[0] != 0 {
		b.refuse("selects for each element of a batch")
	}
	b.emit("Gather", model.Attr{Axis: d[0]}, b.tensor(x.in[0]), b.tensor(x.in[1]))
}

func sortAll(b *builder, x *flat) {
	d := x.list("dimension", "dim")
	if len(x.in) == 0 || len(x.in) > 2 || len(x.out) != len(x.in) {
		b.refuse("sorts several tensors")
	}
	axis := int64(len(x.in[0].shape)) - 1
	if len(d) == 1 {
		axis = d[0]
	}
	if axis < 0 || axis >= int64(len(x.in[0].shape)) {
		b.fail("dimension %d of %v", axis, x.in[0].shape)
	}
	b.top(x, axis, x.in[0].shape[axis])
}

func topK(b *builder, x *flat) {
	k := x.list("k")
	rank := len(x.in[0].shape)
	if len(k) != 1 || rank == 0 || len(x.out) != 2 {
		b.fail("has no k, or not two results")
	}
	b.top(x, int64(rank)-1, k[0])
}

func (b *builder) top(x *flat, axis, k int64) {
	ids := b.b.OpN("TopK", x.out[0].name, model.Attr{Axis: axis, Splits: []int64{k}}, b.tensor(x.in[0]))
	b.check(b.b.Err())
	for i, y := range x.out {
		b.set(y, ids[i])
	}
}
