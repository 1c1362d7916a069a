package stablehlo

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

func dotGeneral(b *builder, x *flat) { b.product(x) }

// product builds a product as ONNX would have it: Gemm of matrices that are transposed or have a bias,
// MatMul of others, with the batch in front, rows and columns behind.
func (b *builder) product(x *flat, bias ...model.TensorID) {
	p, _ := x.product() // unite has it
	ls, rs := x.in[0].shape, x.in[1].shape
	if len(p.lb) == 0 && len(p.lf) == 1 && len(p.rf) == 1 && len(p.lc) == 1 {
		in := append([]model.TensorID{b.tensor(x.in[0]), b.tensor(x.in[1])}, bias...)
		if ta, tb := p.lc[0] == 0, p.rc[0] == 1; ta || tb || len(bias) > 0 {
			b.emit("Gemm", model.Attr{TransA: ta, TransB: tb}, in...)
		} else {
			b.emit("MatMul", model.Attr{}, in...)
		}
		return
	}
	pick := func(s model.Shape, dims []int) (out model.Shape) {
		for _, d := range dims {
			out = append(out, s[d])
		}
		return out
	}
	lead := pick(ls, p.lb)
	rows, depth, columns := pick(ls, p.lf).Elements(), pick(ls, p.lc).Elements(), pick(rs, p.rf).Elements()
	result := slices.Concat(lead, pick(ls, p.lf), pick(rs, p.rf))
	l := b.permuted("left", x.in[0], slices.Concat(p.lb, p.lf, p.lc))
	r := b.permuted("right", x.in[1], slices.Concat(p.rb, p.rc, p.rf))
	if len(p.lf) != 1 && !(len(p.lb) == 0 && len(p.lf) > 1) || len(p.lc) != 1 {
		l = b.reshaped("rows", l, append(lead.Clone(), rows, depth))
	}
	if len(p.rf) != 1 || len(p.rc) != 1 {
		r = b.reshaped("columns", r, append(pick(rs, p.rb), depth, columns))
	}
	y := x.out[0]
	id := b.b.Op("MatMul", y.name, model.Attr{}, l, r)
	b.set(y, b.reshaped("result", id, result))
}

// window are the numbers of a convolution or pooling, for each spatial dimension.
type window struct{ stride, inner, outer, low, high []int64 }

// dilatedInput: zeros stand between the elements of the input.
func (x *flat) dilatedInput() bool {
	return slices.ContainsFunc(x.windowList("lhs_dilation", "lhs_dilate"), func(n int64) bool { return n != 1 })
}

func (x *flat) windowList(generic, pretty string) []int64 {
	if w, ok := x.attrs["window"]; ok {
		return w.dict[pretty].ints
	}
	return x.list(generic)
}

func (b *builder) window(n int, stride, inner, outer, pads []int64) (w window) {
	each := func(what string, s []int64, def int64) []int64 {
		switch {
		case len(s) == 0:
			return repeat(def, n)
		case len(s) == 1: // a splat
			return repeat(s[0], n)
		case len(s) != n:
			b.fail("%s are %v, expected %d", what, s, n)
		}
		return s
	}
	w.stride, w.inner, w.outer = each("strides", stride, 1), each("dilations", inner, 1),
		each("dilations of the input", outer, 1)
	if len(pads) == 1 {
		pads = repeat(pads[0], 2*n)
	}
	if len(pads) == 0 {
		pads = repeat(0, 2*n)
	}
	if len(pads) != 2*n {
		b.fail("pads are %v, expected %d pairs", pads, n)
	}
	for i := range n {
		w.low, w.high = append(w.low, pads[2*i]), append(w.high, pads[2*i+1])
		for _, v := range []int64{w.stride[i], w.inner[i], w.outer[i]} {
			if v < 1 || v > 1<<30 {
				b.fail("strides and dilations %v, %v and %v, expected 1 to 2^30", w.stride, w.inner, w.outer)
			}
		}
	}
	return w
}

func conv(b *builder, x *flat) { b.conv(x) }

func (b *builder) conv(x *flat, bias ...model.TensorID) {
	c, _ := x.convolution() // unite has it
	n := len(c.in) - 2
	if n < 1 {
		b.fail("has no spatial dimension")
	}
	w := b.window(n, x.windowList("window_strides", "stride"), x.windowList("rhs_dilation", "rhs_dilate"),
		x.windowList("lhs_dilation", "lhs_dilate"), x.windowList("padding", "pad"))
	groups := int64(1)
	if g := x.list("feature_group_count"); len(g) == 1 {
		groups = g[0]
	}
	if g := x.list("batch_group_count"); len(g) == 1 && g[0] != 1 {
		b.refuse("has groups along the batch, as gradients of weights do")
	}
	a := model.Attr{Strides: w.stride, Dilations: w.inner, Group: groups}
	in := b.permuted("input", x.in[0], c.in)
	kind, kernel := model.Kind("Conv"), c.kernel
	if x.dilatedInput() {
		if groups != 1 || slices.ContainsFunc(w.stride, func(s int64) bool { return s != 1 }) {
			b.refuse("has strides or groups beside zeros between the elements of its input")
		}
		kind = "ConvTranspose"
		kernel = slices.Clone(c.kernel)
		kernel[0], kernel[1] = kernel[1], kernel[0]
		a.Strides, a.OutputPadding = w.outer, repeat(0, n)
		for i, d := range c.kernel[2:] {
			reach := (x.in[1].shape[d] - 1) * w.inner[i]
			w.low[i] = reach - w.low[i]
			if w.high[i] = reach - w.high[i]; w.high[i] < 0 {
				a.OutputPadding[i], w.high[i] = -w.high[i], 0
			}
		}
	}
	if slices.Min(append(slices.Clone(w.low), w.high...)) < 0 {
		b.refuse("cuts off its input by negative pads")
	}
	a.Pads = slices.Concat(w.low, w.high)
	ids := append([]model.TensorID{in, b.permuted("kernel", x.in[1], kernel)}, bias...)
	id := b.b.Op(kind, x.out[0].name, a, ids...)
	b.later(x.out[0], id, inverse(c.out), true)
}

// kinds of reductions by what combines two elements.
var reductions = map[string]model.Kind{"add": "ReduceSum", "maximum": "ReduceMax", "minimum": "ReduceMin",
	"multiply": "ReduceSum", "and": "ReduceMin", "or": "ReduceMax", "xor": "ReduceSum"}

func reduce(b *builder, x *flat) {
	axes := slices.Sorted(slices.Values(x.list("dimensions")))
	in := x.reduced()
	if len(in) != len(x.out) || len(in) == 0 {
		b.fail("has %d operands and %d results, expected an operand and an initial value for each", len(x.in), len(x.out))
	}
	if len(axes) == 0 {
		through(b, &flat{op: x.op, in: in, out: x.out})
		return
	}
	by := x.reduces()
	kind, ok := reductions[by]
	switch {
	case len(in) == 2 && in[1].constant && len(axes) == 1 && len(x.regions) == 1: // the greatest and where it is
		a := b.tensor(in[0])
		b.set(x.out[0], b.b.Op("ReduceMax", x.out[0].name, model.Attr{Axes: axes}, a))
		b.set(x.out[1], b.b.Op("ArgMax", x.out[1].name, model.Attr{Axes: axes}, a))
		return
	case !ok:
		b.refuse("combines elements by other than one of add, multiply, maximum, minimum, and, or, xor")
	}
	a := model.Attr{Axes: axes}
	if by == "multiply" || by == "xor" {
		a.Variant = by
	}
	b.reduction(kind, a, in[0])
}

// reduction goes through a transpose if that leaves the other dimensions in their order.
func (b *builder) reduction(kind model.Kind, a model.Attr, v *val) {
	if v.order != nil && !v.made {
		var axes []int64
		var kept []int
		for d, from := range v.order.perm {
			if slices.Contains(a.Axes, int64(d)) {
				axes = append(axes, int64(from))
			} else {
				kept = append(kept, from)
			}
		}
		if slices.IsSorted(kept) && len(axes) == len(a.Axes) {
			slices.Sort(axes)
			a.Axes = axes
			b.emit(kind, a, v.order.of)
			return
		}
	}
	b.emit(kind, a, b.tensor(v))
}

func reduceWindow(b *builder, x *flat) {
	in := x.reduced()
	by := x.reduces()
	if len(in) != 1 || len(x.out) != 1 {
		b.refuse("has several results")
	}
	s := in[0].shape
	n := len(s)
	size := x.list("window_dimensions")
	w := b.window(n, x.list("window_strides"), x.list("window_dilations"), x.list("base_dilations"), x.list("padding"))
	if len(size) == 1 {
		size = repeat(size[0], n)
	}
	if len(size) != n {
		b.fail("window_dimensions are %v for %v", size, s)
	}
	var moving []int
	for d := range n {
		if w.outer[d] != 1 {
			b.refuse("has zeros between the elements of its input")
		}
		if size[d] != 1 || w.stride[d] != 1 || w.low[d] != 0 || w.high[d] != 0 {
			moving = append(moving, d)
		}
	}
	if len(moving) == 1 {
		if d := moving[0]; size[d] == in[0].typ.shape[d] && w.low[d] == size[d]-1 && w.high[d] == 0 &&
			w.stride[d] == 1 && size[d] > 1 {
			b.emit("CumSum", model.Attr{Axis: int64(d), Variant: by}, b.tensor(in[0]))
			return
		}
	}
	kind, ok := map[string]model.Kind{"maximum": "MaxPool", "minimum": "MaxPool", "add": "AveragePool"}[by]
	if !ok {
		b.refuse("combines elements by other than add, maximum or minimum")
	}
	// Batch, channels, spatial dimensions: two in which the window stays.
	var still []int
	for d := range n {
		if !slices.Contains(moving, d) {
			still = append(still, d)
		}
	}
	if len(still) < 2 || n < 3 {
		b.refuse("moves a window along all of the batch and the channels")
	}
	channel := still[len(still)-1]
	if still[1] == 1 && still[0] == 0 {
		channel = 1
	}
	order := []int{still[0], channel}
	a := model.Attr{}
	var low, high []int64
	for d := range n {
		if d == order[0] || d == channel {
			continue
		}
		order = append(order, d)
		a.Kernel, a.Strides, a.Dilations = append(a.Kernel, size[d]), append(a.Strides, w.stride[d]),
			append(a.Dilations, w.inner[d])
		low, high = append(low, w.low[d]), append(high, w.high[d])
	}
	if a.Pads = slices.Concat(low, high); slices.Min(a.Pads) < 0 {
		b.refuse("cuts off its input by negative pads")
	}
	if by == "minimum" {
		a.Variant = by
	}
	id := b.b.Op(kind, x.out[0].name, a, b.permuted("input", in[0], order))
	b.later(x.out[0], id, inverse(order), true)
}

func batchNorm(b *builder, x *flat) {
	f := x.list("feature_index")
	n := len(x.in[0].shape)
	if len(f) != 1 || f[0] < 0 || f[0] >= int64(n) || n < 2 {
		b.fail("feature_index %v for %v", f, x.in[0].shape)
	}
	order := []int{}
	for d := range n {
		if d != int(f[0]) {
			order = append(order, d)
		}
	}
	order = slices.Insert(order, 1, int(f[0]))
	ids := []model.TensorID{b.permuted("input", x.in[0], order)}
	for _, v := range x.in[1:] {
		ids = append(ids, b.tensor(v))
	}
	id := b.b.Op("BatchNorm", x.out[0].name, model.Attr{}, ids...)
	b.later(x.out[0], id, inverse(order), true)
}
