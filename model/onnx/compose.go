package onnx

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
)

// Operators that the graph knows only as several others.

func operandOf(v *value) arg { return arg{v, operand} }

// compareItself: x is not a number if it is not equal to itself.
func compareItself(c *call) {
	c.extra = append(c.extra, "of "+c.node.op)
	c.emit("Equal", model.Attr{}, args(c.in[0], c.in[0]))
}

func castLike(c *call) {
	dt := c.in[1].dtype
	if !c.in[0].foldable() {
		c.emit("Cast", model.Attr{Axis: int64(dt)}, args(c.in[0]))
		return
	}
	l, err := c.in[0].lit.cast(dt)
	if err != nil {
		c.fail("%v", err)
	}
	c.known(l)
}

// neutral is the number that changes nothing as the second operand, and as the first one too if commutes.
var neutral = map[string]struct {
	number   float64
	commutes bool
}{"Add": {0, true}, "Sub": {0, false}, "Mul": {1, true}, "Div": {1, false}}

// twoOperands drops an operation with its neutral number, which exporters write for options that have their default.
func twoOperands(c *call) {
	if e, ok := neutral[c.node.op]; ok {
		for i, v := range c.in {
			other := c.in[1-i]
			if (i == 1 || e.commutes) && v.is(e.number) && !other.constant && other.dtype == v.dtype &&
				len(v.shape) <= len(other.shape) {
				c.emit("Identity", model.Attr{}, args(other))
				return
			}
		}
	}
	direct(c)
}

// is reports whether a value is a known single number.
func (v *value) is(x float64) bool {
	l := v.lit
	return l != nil && l.len() == 1 && (l.isFloat() && l.floats[0] == x || !l.isFloat() && float64(l.ints[0]) == x)
}

// biasedGelu adds a bias, if there is one.
func biasedGelu(c *call) {
	c.alike(c.in...)
	x := operandOf(c.in[0])
	if c.in[1] != nil {
		x = operandOf(c.step("bias", "Add", model.Attr{}, x, arg{c.in[1], parameter}))
	}
	c.finish("Gelu", model.Attr{Variant: c.variant()}, x)
}

// biasSplitGelu multiplies a half of the features with the Gelu of the other.
func biasSplitGelu(c *call) {
	c.alike(c.in...)
	x := c.step("bias", "Add", model.Attr{}, operandOf(c.in[0]), arg{c.in[1], parameter})
	last := len(x.shape) - 1
	if last < 0 || x.shape[last]%2 != 0 {
		c.fail("input has shape %v, expected an even last dimension", x.shape)
	}
	half := x.shape[last] / 2
	parts := c.parts("split", operandOf(x), int64(last), []int64{half, half}, "0", "1")
	c.finish("Mul", model.Attr{}, operandOf(parts[0]),
		operandOf(c.step("gelu", "Gelu", model.Attr{}, operandOf(parts[1]))))
}

func fusedMatMul(c *call) {
	for _, name := range []string{"transBatchA", "transBatchB"} {
		if c.bool(name, false) {
			c.unsupported("moves the batch dimension (%s)", name)
		}
	}
	x := c.transposed("a", operandOf(c.in[0]), c.bool("transA", false))
	y := c.transposed("b", operandOf(c.in[1]), c.bool("transB", false))
	c.finish("MatMul", model.Attr{Variant: c.variant()}, x, y)
}

// activations are the element-wise functions that fused operators name.
var activations = map[string]model.Kind{
	"Relu": "Relu", "LeakyRelu": "LeakyRelu", "Sigmoid": "Sigmoid", "Tanh": "Tanh", "Clip": "Clip",
	"HardSigmoid": "HardSigmoid",
	"Elu":         "Elu", "Selu": "Elu", "Softplus": "Softplus", "Gelu": "Gelu", "HardSwish": "HardSwish",
	"ThresholdedRelu": "LeakyRelu", "Softsign": "Sigmoid",
}

// activation returns the kind that an attribute names; empty for none.
func (c *call) activation(attr string) model.Kind {
	name := c.str(attr, "")
	k, ok := activations[name]
	if !ok && name != "" {
		c.unsupported("has activation %q", name)
	}
	return k
}

// then finishes with a step's operator, or with an activation behind it.
func (c *call) then(act model.Kind, variant string) func(model.Kind, model.Attr, ...arg) {
	if act == "" {
		return c.finish
	}
	return func(kind model.Kind, a model.Attr, in ...arg) {
		y := c.step("linear", kind, a, in...)
		c.finish(act, model.Attr{Variant: variant}, operandOf(y))
	}
}

func fusedGemm(c *call) {
	act := c.activation("activation")
	c.gemm(c.weighted(), c.then(act, c.node.name))
}

func fusedConv(c *call) {
	act := c.activation("activation")
	a := c.convAttr()
	a.Variant = c.variant()
	last := c.then(act, c.node.name)
	if c.in[3] != nil {
		sum := last
		last = func(kind model.Kind, a model.Attr, in ...arg) {
			y := c.step("convolution", kind, a, in...)
			sum("Add", model.Attr{}, operandOf(y), operandOf(c.in[3]))
		}
	}
	last("Conv", a, c.weighted()...)
}

// channels moves the channels of images from the last place to the second, or back.
func (c *call) channels(suffix string, x *value, back bool) *value {
	c.images(x)
	rank := len(x.shape)
	perm := append([]int64{0, int64(rank - 1)}, model.Dims(1, rank-1)...)
	if back {
		perm = slices.Concat([]int64{0}, model.Dims(2, rank), []int64{1})
	}
	return c.step(suffix, "Transpose", model.Attr{Perm: perm}, operandOf(x))
}

// nhwcConv is a convolution of images with their channels in the last dimension. Its weights may have them there too.
func nhwcConv(c *call) {
	var act model.Kind
	if c.node.op == "NhwcFusedConv" {
		act = c.activation("activation")
	}
	x, w := c.channels("first", c.in[0], false), *c.in[1]
	if !c.in[1].constant {
		c.unsupported("has weights (%q) that are computed while the network runs", w.name)
	}
	rank, group := len(w.shape), c.int("group", 1)
	if group < 1 || group > 1<<30 || rank != len(x.shape) {
		c.fail("input %v, weights %v and %d groups do not fit", c.in[0].shape, w.shape, group)
	}
	if n := x.shape[1] / group; w.shape[rank-1] == n && w.shape[1] != n {
		w = value{name: w.name, shape: slices.Concat(w.shape[:1], w.shape[rank-1:], w.shape[1:rank-1]), dtype: w.dtype,
			constant: true, id: absent}
	}
	c.in[0], c.in[1] = x, &w
	a := c.convAttr()
	c.find("activation_params")
	a.Variant = c.variant()
	y := c.channels("last", c.step("convolution", "Conv", a, c.weighted()...), true)
	if len(c.in) > 3 && c.in[3] != nil {
		y = c.step("sum", "Add", model.Attr{}, operandOf(y), operandOf(c.in[3]))
	}
	act = cmp.Or(act, "Identity")
	c.finish(act, model.Attr{}, operandOf(y))
}

func rmsNorm(c *call) {
	a := lastAxis(c)
	c.find("stash_type")
	c.emit("RMSNorm", a, append(args(c.in[0]), parameters(c.in[1:]...)...))
	c.trained(int(a.Axis), "deviation")
}

func parameters(vs ...*value) []arg {
	as := args(vs...)
	for i := range as {
		as[i].u = parameter
	}
	return as
}

// skipNorm normalises the sum of two inputs and a bias. The sum may be an output, the fourth.
func (c *call) skipNorm(kind model.Kind, params []*value, bias *value) {
	c.alike(c.in[0], c.in[1], bias)
	x := c.step("sum", "Add", model.Attr{}, operandOf(c.in[0]), operandOf(c.in[1]))
	if bias != nil {
		x = c.step("bias", "Add", model.Attr{}, operandOf(x), arg{bias, parameter})
	}
	in := []arg{operandOf(x)}
	for _, p := range params {
		if p != nil {
			in = append(in, arg{p, parameter})
		}
	}
	c.finish(kind, model.Attr{Axis: int64(len(x.shape) - 1), Variant: c.variant()}, in...)
	y := *x
	c.bind(3, &y)
}

func skipLayerNorm(c *call) { c.skipNorm("LayerNorm", []*value{c.in[2], c.in[3]}, c.in[4]) }
func skipRMSNorm(c *call)   { c.skipNorm("RMSNorm", []*value{c.in[2]}, c.in[3]) }

// embedLayerNorm: token, segment and position embeddings, added and normalised.
func embedLayerNorm(c *call) {
	ids, segments := c.in[0], c.in[1]
	if len(ids.shape) != 2 {
		c.fail("input %q has shape %v, expected [batch,position]", ids.name, ids.shape)
	}
	x := c.step("words", "Gather", model.Attr{}, arg{c.in[2], parameter}, operandOf(ids))
	positions := c.in[8]
	if positions == nil {
		// The first rows, in order.
		positions = c.made("positions", model.Shape{ids.shape[1]}, ids.dtype)
	}
	p := c.step("position", "Gather", model.Attr{}, arg{c.in[3], parameter}, operandOf(positions))
	x = c.step("position/add", "Add", model.Attr{}, operandOf(x), operandOf(p))
	if segments != nil && c.in[4] != nil {
		s := c.step("segment", "Gather", model.Attr{}, arg{c.in[4], parameter}, operandOf(segments))
		x = c.step("segment/add", "Add", model.Attr{}, operandOf(x), operandOf(s))
	}
	c.finish("LayerNorm", model.Attr{Axis: 2, Variant: c.variant()}, operandOf(x), arg{c.in[5], parameter},
		arg{c.in[6], parameter})
	sum := *x
	c.bind(2, &sum)
	if len(c.node.outputs) < 2 || c.node.outputs[1] == "" {
		return
	}
	// How many positions the mask lets through; none without a mask.
	lengths := c.made("lengths", model.Shape{ids.shape[0]}, model.I32)
	if m := c.in[7]; m != nil {
		lengths = c.step("lengths", "ReduceSum", model.Attr{Axes: []int64{1}}, operandOf(m))
	}
	c.bind(1, lengths)
}

func instanceNorm(c *call) {
	c.images(c.in[0])
	c.emit("GroupNorm", model.Attr{Group: c.in[0].shape[1]}, c.weighted())
}

func groupNorm(c *call) {
	c.images(c.in[0])
	c.find("stash_type")
	c.emit("GroupNorm", model.Attr{Group: c.int("num_groups", 0)}, c.weighted())
}

// skipGroupNorm is the group normalisation of diffusion models, of images with their channels in
// the last dimension: of the sum of an input, one more and a bias, or of the input alone.
func skipGroupNorm(c *call) {
	x, last := c.in[0], c.bool("channels_last", true)
	act := c.within("activation", 0, 0, 1)
	c.images(x)
	rank := len(x.shape)
	channels := x.shape[1]
	if last {
		channels = x.shape[rank-1]
	}
	fill := func(v *value) *value { // of the channels, and of the images or not
		if len(v.shape) > 2 || len(v.shape) == 0 || len(v.shape) == 1 && last {
			return v
		}
		s := slices.Repeat([]int64{1}, rank)
		at := 1
		if last {
			at = rank - 1
		}
		s[at] = channels
		if len(v.shape) == 2 {
			s[0] = v.shape[0]
		}
		return c.step(v.name+"/rows", "Reshape", model.Attr{Shape: s}, operandOf(v))
	}
	if c.node.op == "SkipGroupNorm" {
		x = c.step("sum", "Add", model.Attr{}, operandOf(x), operandOf(fill(c.in[3])))
		if c.in[4] != nil {
			x = c.step("bias", "Add", model.Attr{}, operandOf(x), arg{fill(c.in[4]), parameter})
		}
		if !x.shape.Equal(c.in[0].shape) {
			c.fail("input %v and skip %v do not fit", c.in[0].shape, c.in[3].shape)
		}
		sum := *x
		c.bind(1, &sum)
	}
	if last {
		x = c.channels("first", x, false)
	}
	a := model.Attr{Group: c.int("groups", 0)}
	a.Variant = c.variant()
	y := c.step("norm", "GroupNorm", a, operandOf(x), arg{c.in[1], parameter}, arg{c.in[2], parameter})
	if last {
		y = c.channels("last", y, true)
	}
	c.finish([]model.Kind{"Identity", "Silu"}[act], model.Attr{}, operandOf(y))
}

// groupNormOfGroups: before operator set 21, scale and bias are one number per group.
func groupNormOfGroups(c *call) {
	c.images(c.in[0])
	x := c.in[0]
	groups := c.int("num_groups", 0)
	if groups < 1 || x.shape[1]%groups != 0 {
		c.fail("%d channels do not divide into %d groups", x.shape[1], groups)
	}
	y := c.step("norm", "GroupNorm", model.Attr{Group: groups, Variant: c.variant()}, operandOf(x))
	// A scale per group is repeated for the channels of the group, and stands before the positions.
	channels := func(suffix string, p *value) arg {
		if !p.shape.Equal(model.Shape{groups}) {
			c.fail("%s has shape %v, expected [%d]", suffix, p.shape, groups)
		}
		s := slices.Repeat([]int64{1}, len(x.shape)-1)
		s[0] = x.shape[1]
		q := c.step(suffix+"/column", "Reshape", model.Attr{Shape: []int64{groups, 1}}, arg{p, parameter})
		q = c.step(suffix+"/repeat", "Expand", model.Attr{Shape: []int64{groups, x.shape[1] / groups}}, operandOf(q))
		return operandOf(c.step(suffix, "Reshape", model.Attr{Shape: s}, operandOf(q)))
	}
	y = c.step("scaled", "Mul", model.Attr{}, operandOf(y), channels("scale", c.in[1]))
	c.finish("Add", model.Attr{}, operandOf(y), channels("bias", c.in[2]))
}

func meanVariance(c *call) {
	list, ok := c.ints("axes")
	if !ok {
		list = []int64{0, 2, 3}
	}
	a := model.Attr{Axes: c.axes(list, len(c.in[0].shape)), KeepDims: true}
	m := c.step("mean", "ReduceMean", a, operandOf(c.in[0]))
	d := c.step("centred", "Sub", model.Attr{}, operandOf(c.in[0]), operandOf(m))
	q := c.step("square", "Mul", model.Attr{}, operandOf(d), operandOf(d))
	v := c.step("variance", "ReduceMean", a, operandOf(q))
	s := c.step("deviation", "Sqrt", model.Attr{}, operandOf(v))
	c.finish("Div", model.Attr{Variant: c.variant()}, operandOf(d), operandOf(s))
}

func lpNormalization(c *call) {
	axis := c.axis(c.int("axis", -1), len(c.in[0].shape))
	kind, inputs := model.Kind("Mul"), []arg{operandOf(c.in[0]), operandOf(c.in[0])}
	p := c.within("p", 2, 1, 2)
	if p == 1 {
		kind, inputs = "Abs", inputs[:1]
	}
	q := c.step("power", kind, model.Attr{}, inputs...)
	s := c.step("sum", "ReduceSum", model.Attr{Axes: []int64{int64(axis)}, KeepDims: true}, operandOf(q))
	if p != 1 {
		s = c.step("root", "Sqrt", model.Attr{}, operandOf(s))
	}
	c.finish("Div", model.Attr{}, operandOf(c.in[0]), operandOf(s))
}

// reduceAfter is a sum between two element-wise functions, either of which may be missing.
func reduceAfter(before, after model.Kind) func(*call) {
	return func(c *call) {
		x, rank := c.in[0], len(c.in[0].shape)
		list, ok := c.list("axes", 1)
		a := model.Attr{KeepDims: c.bool("keepdims", true)}
		if !ok || len(list) == 0 {
			if c.bool("noop_with_empty_axes", false) {
				c.unsupported("reduces nothing (noop_with_empty_axes)")
			}
			a.Axes = model.Dims(0, rank)
		} else {
			a.Axes = c.axes(list, rank)
		}
		if before != "" {
			in := []arg{operandOf(x)}
			if before == "Mul" {
				in = append(in, operandOf(x))
			}
			x = c.step("each", before, model.Attr{}, in...)
		}
		if after == "" {
			c.finish("ReduceSum", a, operandOf(x))
			return
		}
		x = c.step("sum", "ReduceSum", a, operandOf(x))
		c.finish(after, model.Attr{}, operandOf(x))
	}
}

func argMax(c *call) {
	if c.node.op != "ArgMax" {
		c.extra = append(c.extra, "of "+c.node.op)
	}
	a := model.Attr{Axes: []int64{int64(c.axis(c.int("axis", 0), len(c.in[0].shape)))}, KeepDims: c.bool("keepdims", true)}
	c.emit("ArgMax", a, args(c.in[0]))
}

func topK(c *call) {
	k, ok := c.int("k", 0), true
	if c.opset >= 10 {
		var list []int64
		if list, ok = c.list("", 1); ok && len(list) == 1 {
			k = list[0]
		}
	}
	if k < 1 {
		c.fail("the best %d, expected a positive number", k)
	}
	axis := c.axis(c.int("axis", -1), len(c.in[0].shape))
	if own := c.ownInput(); own != nil && len(own.shape) == len(c.in[0].shape) && own.shape[axis] == k {
		k = c.in[0].shape[axis] // all in order, of another batch too
	}
	c.emit("TopK", model.Attr{Axis: int64(axis), Splits: []int64{k}}, args(c.in[0]))
}

func cumSum(c *call) {
	list, _ := c.list("", 1)
	if len(list) != 1 {
		c.fail("has axis %v, expected one number", list)
	}
	c.emit("CumSum", model.Attr{Axis: int64(c.axis(list[0], len(c.in[0].shape)))}, args(c.in[0]))
}

func lpPool(c *call) {
	c.extra = append(c.extra, "of LpPool")
	pool(c)
}

func scatter(c *call) {
	c.axis(c.int("axis", 0), len(c.in[0].shape))
	c.leave("axis")
	direct(c)
}

// tensorScatter writes positions of a cache, from an index for each of the batch on.
func tensorScatter(c *call) {
	past, update := c.in[0], c.in[1]
	rank := len(past.shape)
	axis := c.axis(c.int("axis", -2), rank)
	c.one("mode", "linear", "linear", "circular")
	c.leave("axis", "mode")
	if axis == 0 || len(update.shape) != rank {
		c.fail("cache %v and update %v along axis %d, expected equally many dimensions and not that of the batch", past.shape,
			update.shape, axis)
	}
	want := past.shape.Clone()
	want[axis] = min(want[axis], update.shape[axis])
	if !update.shape.Equal(want) {
		c.fail("update %v of a cache %v, expected at most its extent along axis %d and the same along the others",
			update.shape, past.shape, axis)
	}
	at := c.in[2]
	if at == nil {
		at = c.made("first", past.shape[:1].Clone(), model.I64)
	}
	if !at.shape.Equal(past.shape[:1]) {
		c.fail("indices %q have shape %v, expected %v", at.name, at.shape, past.shape[:1])
	}
	c.extra = append(c.extra, "of TensorScatter")
	c.emit("Scatter", model.Attr{}, args(past, at, update))
}

// gatherND numbers the rows that k leading dimensions make, and gathers those.
func gatherND(c *call) {
	if c.int("batch_dims", 0) != 0 {
		c.unsupported("has batch dimensions")
	}
	x, ix := c.in[0], c.in[1]
	if len(ix.shape) == 0 {
		c.fail("positions %q have no dimension", ix.name)
	}
	last := len(ix.shape) - 1
	k := ix.shape[last]
	if k < 1 || k > int64(len(x.shape)) {
		c.fail("positions of %d dimensions in shape %v", k, x.shape)
	}
	rows := operandOf(ix)
	if k > 1 {
		p := c.step("terms", "Mul", model.Attr{}, rows, operandOf(c.made("strides", model.Shape{k}, ix.dtype)))
		rows = operandOf(c.step("row", "ReduceSum", model.Attr{Axes: []int64{int64(last)}}, operandOf(p)))
	} else {
		rows = operandOf(c.step("row", "Reshape", model.Attr{Shape: ix.shape[:last].Clone()}, rows))
	}
	table := slices.Concat(model.Shape{x.shape[:k].Elements()}, x.shape[k:])
	flat := c.step("rows", "Reshape", model.Attr{Shape: table}, operandOf(x))
	c.finish("Gather", model.Attr{}, operandOf(flat), rows)
}

// oneHot compares positions with all numbers up to the depth.
func oneHot(c *call) {
	depth, _ := c.list("", 1)
	if len(depth) != 1 || depth[0] < 1 {
		c.fail("has depth %v, expected one positive number", depth)
	}
	rank := len(c.in[0].shape)
	axis := c.axis(c.int("axis", -1), rank+1)
	shape := slices.Insert(c.in[0].shape.Clone(), axis, 1)
	column := slices.Repeat([]int64{1}, rank+1)
	column[axis] = depth[0]
	numbers := c.made("numbers", column, c.in[0].dtype)
	x := c.step("positions", "Reshape", model.Attr{Shape: shape}, operandOf(c.in[0]))
	hot := c.step("equal", "Equal", model.Attr{}, operandOf(x), operandOf(numbers))
	c.finish("Where", model.Attr{Variant: "one-hot " + c.in[2].name}, operandOf(hot),
		operandOf(c.number("on", c.in[2].dtype)), operandOf(c.number("off", c.in[2].dtype)))
}

func (c *call) repeats() []int64 {
	list, ok := c.list("", 1)
	if !ok || len(list) != len(c.in[0].shape) {
		c.fail("has repeats %v for shape %v", list, c.in[0].shape)
	}
	for _, n := range list {
		if n < 0 || n > model.MaxElements {
			c.fail("has repeats %v", list)
		}
	}
	return list
}

// tile sets a new dimension before each, expands it and joins the two.
func tile(c *call) {
	list := c.repeats()
	var apart, wide, joined []int64
	for d, n := range c.in[0].shape {
		if list[d] > 1 {
			apart, wide = append(apart, 1), append(wide, list[d])
		}
		apart, wide = append(apart, n), append(wide, n)
		e, err := mulInt(n, list[d])
		if err != nil {
			c.fail("%v", err)
		}
		joined = append(joined, e)
	}
	if c.in[0].shape.Equal(joined) {
		c.finish("Identity", model.Attr{}, operandOf(c.in[0]))
		return
	}
	if len(apart) > maxRank {
		c.fail("yields %d dimensions, more than %d", len(apart), maxRank)
	}
	x := c.step("apart", "Reshape", model.Attr{Shape: apart}, operandOf(c.in[0]))
	x = c.step("repeat", "Expand", model.Attr{Shape: wide}, operandOf(x))
	c.finish("Reshape", model.Attr{Shape: joined}, operandOf(x))
}

// rearrange is a reshape, a transpose and a reshape.
func (c *call) rearrange(apart, perm, joined []int64) {
	x := c.step("apart", "Reshape", model.Attr{Shape: apart}, operandOf(c.in[0]))
	x = c.step("transpose", "Transpose", model.Attr{Perm: perm}, operandOf(x))
	c.finish("Reshape", model.Attr{Shape: joined}, operandOf(x))
}

func (c *call) blockSize() (s model.Shape, b int64) {
	s, b = c.in[0].shape, c.int("blocksize", 0)
	if len(s) != 4 || b < 1 || b > 1<<20 {
		c.fail("shape %v with blocks of %d, expected [N,C,H,W] and a positive size", s, b)
	}
	return s, b
}

func depthToSpace(c *call) {
	s, b := c.blockSize()
	if s[1]%(b*b) != 0 {
		c.fail("%d channels do not divide into blocks of %d x %d", s[1], b, b)
	}
	n, d := s[0], s[1]/(b*b)
	apart, perm := []int64{n, b, b, d, s[2], s[3]}, []int64{0, 3, 4, 1, 5, 2}
	if c.one("mode", "DCR", "DCR", "CRD") == "CRD" {
		apart, perm = []int64{n, d, b, b, s[2], s[3]}, []int64{0, 1, 4, 2, 5, 3}
	}
	c.rearrange(apart, perm, []int64{n, d, s[2] * b, s[3] * b})
}

func spaceToDepth(c *call) {
	s, b := c.blockSize()
	if s[2]%b != 0 || s[3]%b != 0 {
		c.fail("shape %v does not divide into blocks of %d x %d", s, b, b)
	}
	c.rearrange([]int64{s[0], s[1], s[2] / b, b, s[3] / b, b}, []int64{0, 3, 5, 1, 2, 4},
		[]int64{s[0], s[1] * b * b, s[2] / b, s[3] / b})
}

// trilu chooses between the matrix and zero by a constant mask.
func trilu(c *call) {
	s := c.in[0].shape
	if len(s) < 2 {
		c.fail("input has shape %v, expected matrices", s)
	}
	mask := c.made("mask", s[len(s)-2:].Clone(), model.Bool)
	c.finish("Where", model.Attr{Variant: c.variant()}, operandOf(mask), operandOf(c.in[0]),
		operandOf(c.number("zero", c.in[0].dtype)))
}

func eyeLike(c *call) {
	if len(c.in[0].shape) != 2 {
		c.fail("input has shape %v, expected a matrix", c.in[0].shape)
	}
	dt := c.typeAttr("dtype", c.in[0].dtype)
	c.bind(0, &value{shape: c.in[0].shape, dtype: dt, constant: true, derived: true, id: absent})
}

// Counterparts on known values.

func foldTile(c *call) *literal {
	list := c.repeats()
	l := c.in[0].lit
	out := l.shape.Clone()
	for d := range out {
		var err error
		if out[d], err = mulInt(out[d], list[d]); err != nil {
			return nil
		}
	}
	if !fits(out) {
		return nil
	}
	st := rowMajor(l.shape)
	return l.gather(out, func(ix []int64) (at int64) {
		for d, i := range ix {
			at += i % l.shape[d] * st[d]
		}
		return at
	})
}

func foldNonZero(c *call) *literal {
	l := c.in[0].lit
	if l.isFloat() {
		return nil
	}
	rank := len(l.shape)
	found := make([][]int64, rank)
	i := 0
	each(l.shape, func(ix []int64) {
		if l.ints[i] != 0 {
			for d, v := range ix {
				found[d] = append(found[d], v)
			}
		}
		i++
	})
	flat := slices.Concat(found...)
	n := int64(0)
	if rank > 0 {
		n = int64(len(found[0]))
	}
	return &literal{shape: model.Shape{int64(rank), n}, dtype: model.I64, ints: flat}
}

// foldScatterND replaces single elements.
func foldScatterND(c *call) *literal {
	x, ix, u := c.in[0].lit, c.in[1].lit, c.in[2].lit
	rank := len(x.shape)
	if x.isFloat() || u.isFloat() || ix.isFloat() || c.str("reduction", "none") != "none" || len(ix.shape) == 0 ||
		ix.shape[len(ix.shape)-1] != int64(rank) || rank == 0 || ix.len() != u.len()*int64(rank) {
		return nil
	}
	r := &literal{shape: x.shape, dtype: x.dtype, ints: slices.Clone(x.ints)}
	st := rowMajor(x.shape)
	for i, v := range u.ints {
		at := int64(0)
		for d, k := range ix.ints[i*rank : (i+1)*rank] {
			if k < 0 {
				k += x.shape[d]
			}
			if k < 0 || k >= x.shape[d] {
				c.fail("position %d does not exist in %d elements", k, x.shape[d])
			}
			at += k * st[d]
		}
		r.ints[at] = v
	}
	return r
}

// branch takes the graph that a known condition chooses.
func branch(c *call) {
	l := c.in[0].lit
	if l == nil || l.isFloat() || l.len() != 1 {
		c.unsupported("control flow, and its condition (%q) is computed while the network runs", c.in[0].name)
	}
	name := "else_branch"
	if l.ints[0] != 0 {
		name = "then_branch"
	}
	a := c.find(name)
	if a == nil || a.g == nil {
		c.fail("has no graph %q", name)
	}
	g := a.g
	if len(g.outputs) != len(c.node.outputs) {
		c.fail("has %d outputs, but %q yields %d", len(c.node.outputs), name, len(g.outputs))
	}
	writer := map[string]int{}
	var inner []string
	add := func(s string) {
		if s == "" {
			return
		}
		if c.values[s] != nil || c.initializers[s] != nil {
			c.fail("%q in %s has the name of a value around it", s, name)
		}
		inner = append(inner, s)
	}
	for _, t := range g.initializers {
		add(t.name)
		writer[t.name] = given
	}
	for _, n := range g.nodes {
		for _, o := range n.outputs {
			add(o)
		}
	}
	for _, t := range g.initializers {
		v, err := c.stored(t)
		if err != nil {
			c.fail("initializer %q %v", t.name, err)
		}
		v.name = t.name
		c.values[t.name] = v
	}
	nodes, err := c.inside(g, writer)
	for _, n := range nodes {
		if err == nil {
			err = c.importer.node(n)
		}
	}
	var results []*value
	for _, o := range g.outputs {
		if err != nil {
			break
		}
		var v *value
		v, err = c.value(o.name)
		results = append(results, v)
	}
	// The results of the node may have the names that they have within.
	for _, s := range inner {
		delete(c.values, s)
	}
	if err != nil {
		bail.Check(fmt.Errorf("%s: %w", name, err))
	}
	for i, o := range c.node.outputs {
		if o != "" {
			c.values[o] = results[i]
		}
	}
}

// inside sorts the nodes of a graph within the graph.
func (c *call) inside(g *graphProto, writer map[string]int) ([]*nodeProto, error) {
	if err := findWriters(g, writer); err != nil {
		return nil, err
	}
	var need []string
	for _, v := range g.outputs {
		need = append(need, v.name)
	}
	for _, s := range g.reads(nil) {
		if _, ok := writer[s]; !ok && (c.values[s] != nil || c.initializers[s] != nil) {
			writer[s] = given
		}
	}
	for _, s := range need {
		if _, ok := writer[s]; !ok {
			return nil, fmt.Errorf("output %q is written by no node", s)
		}
	}
	return c.live(g, writer, need)
}
