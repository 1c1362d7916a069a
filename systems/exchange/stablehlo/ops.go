package stablehlo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// row is the import rule of an operator: it becomes one or several of the graph.
type row struct {
	name    string
	in      int // operands; -1: any number
	becomes string
	build   func(*builder, *flat)
}

// rows is the table; names are without the dialect, but those of chlo.
var rows = []row{
	{"dot_general", 2, "MatMul or Gemm, with Transpose and Reshape as needed", dotGeneral},
	{"dot", 2, "as dot_general", dotGeneral},
	{"convolution", 2, "Conv, or ConvTranspose of a dilated input; Transpose of other layouts", conv},
	{"reduce", -1, "ReduceSum, ReduceMax, ReduceMin; ArgMax of values and positions", reduce},
	{"reduce_window", -1, "MaxPool, AveragePool; CumSum of sums up to each position", reduceWindow},
	{"batch_norm_inference", 5, "BatchNorm", batchNorm},
	{"gather", 2, "Gather of rows", gather},
	{"torch_index_select", 2, "Gather", indexSelect},
	{"sort", -1, "TopK of all elements", sortAll},
	{"chlo.top_k", 1, "TopK", topK},
	{"broadcast_in_dim", 1, "nothing in front of element-wise operators, else Expand", broadcast},
	{"broadcast", 1, "as broadcast_in_dim", broadcast},
	{"dynamic_broadcast_in_dim", 2, "as broadcast_in_dim; the shape must be known", broadcast},
	{"reshape", 1, "Reshape", reshape},
	{"dynamic_reshape", 2, "Reshape; the shape must be known", reshape},
	{"transpose", 1, "Transpose", transpose},
	{"slice", 1, "Slice", slice},
	{"dynamic_slice", -1, "Slice", dynamicSlice},
	{"dynamic_update_slice", -1, "Scatter", dynamicUpdateSlice},
	{"scatter", 3, "Scatter", scatter},
	{"concatenate", -1, "Concat", concatenate},
	{"pad", 2, "Pad", pad},
	{"reverse", 1, "Slice", reverse},
	{"convert", 1, "Cast", convert},
	{"bitcast_convert", 1, "Cast between types of one size", convert},
	{"reduce_precision", 1, "Cast", convert},
	{"constant", 0, "a constant", constant},
	{"iota", 0, "a constant", positions},
	{"dynamic_iota", 1, "a constant", positions},
	{"get_dimension_size", 1, "a constant", dimensionSize},
	{"compare", 2, "Equal, Greater, GreaterOrEqual, Less, LessOrEqual", compare},
	{"select", 3, "Where", elementwise("Where", "")},
	{"clamp", 3, "Clip, or Max and Min", clamp},
	{"add", 2, "Add", elementwise("Add", "")},
	{"subtract", 2, "Sub", elementwise("Sub", "")},
	{"multiply", 2, "Mul", elementwise("Mul", "")},
	{"divide", 2, "Div", elementwise("Div", "")},
	{"power", 2, "Pow", elementwise("Pow", "")},
	{"remainder", 2, "Mod", elementwise("Mod", "")},
	{"maximum", 2, "Max; Relu of zero", elementwise("Max", "")},
	{"minimum", 2, "Min", elementwise("Min", "")},
	{"and", 2, "And; Mul of integers", logical("And")},
	{"or", 2, "Or; Add of integers", logical("Or")},
	{"xor", 2, "Xor; Add of integers", logical("Xor")},
	{"shift_left", 2, "costs a Mul", elementwise("Mul", "shift_left")},
	{"shift_right_logical", 2, "costs a Mul", elementwise("Mul", "shift_right_logical")},
	{"shift_right_arithmetic", 2, "costs a Mul", elementwise("Mul", "shift_right_arithmetic")},
	{"atan2", 2, "costs a Div", elementwise("Div", "atan2")},
	{"abs", 1, "Abs", elementwise("Abs", "")},
	{"negate", 1, "Neg", elementwise("Neg", "")},
	{"not", 1, "Not", elementwise("Not", "")},
	{"sign", 1, "costs a Floor", elementwise("Floor", "sign")},
	{"floor", 1, "Floor", elementwise("Floor", "")},
	{"ceil", 1, "costs a Floor", elementwise("Floor", "ceil")},
	{"round_nearest_afz", 1, "costs a Floor", elementwise("Floor", "round_nearest_afz")},
	{"round_nearest_even", 1, "costs a Floor", elementwise("Floor", "round_nearest_even")},
	{"popcnt", 1, "costs a Floor", elementwise("Floor", "popcnt")},
	{"count_leading_zeros", 1, "costs a Floor", elementwise("Floor", "count_leading_zeros")},
	{"exponential", 1, "Exp", elementwise("Exp", "")},
	{"exponential_minus_one", 1, "costs an Exp", elementwise("Exp", "exponential_minus_one")},
	{"log", 1, "Log", elementwise("Log", "")},
	{"log_plus_one", 1, "costs a Log", elementwise("Log", "log_plus_one")},
	{"logistic", 1, "Sigmoid", elementwise("Sigmoid", "")},
	{"tanh", 1, "Tanh", elementwise("Tanh", "")},
	{"sine", 1, "Sin", elementwise("Sin", "")},
	{"cosine", 1, "Cos", elementwise("Cos", "")},
	{"tan", 1, "costs a Sin", elementwise("Sin", "tan")},
	{"sqrt", 1, "Sqrt", elementwise("Sqrt", "")},
	{"cbrt", 1, "costs a Sqrt", elementwise("Sqrt", "cbrt")},
	{"rsqrt", 1, "Sqrt, Reciprocal", rsqrt},
	{"is_finite", 1, "costs an Equal", isFinite},
	{"chlo.erf", 1, "Erf", elementwise("Erf", "")},
	{"chlo.square", 1, "Mul", square},
	{"optimization_barrier", -1, "nothing", through},
	{"sdy.sharding_constraint", 1, "nothing: one device has all", through},
	{"sdy.reshard", 1, "nothing: one device has all", through},
	{"sdy.propagation_barrier", 1, "nothing", through},
	{"custom_call", -1, "nothing of Sharding; others are refused by name", customCall},
}

var table = map[string]*row{}

func init() {
	for i := range rows {
		table[rows[i].name] = &rows[i]
	}
}

// refused says why an operator has no row.
var refused = map[string]string{
	"rng": "random numbers", "rng_bit_generator": "random numbers", "fft": "a Fourier transform",
	"cholesky": "a factorisation", "triangular_solve": "a triangular system", "complex": "complex numbers",
	"real": "complex numbers", "imag": "complex numbers", "all_reduce": "several devices", "all_gather": "several devices",
	"reduce_scatter": "several devices", "all_to_all": "several devices", "collective_permute": "several devices",
	"collective_broadcast": "several devices", "partition_id": "several devices", "replica_id": "several devices",
	"infeed": "the host", "outfeed": "the host", "send": "the host",
	"recv": "the host", "batch_norm_training": "training", "batch_norm_grad": "training", "select_and_scatter": "training",
	"tuple": "tuples", "get_tuple_element": "tuples", "uniform_quantize": "types with scales",
	"uniform_dequantize": "types with scales", "set_dimension_size": "extents at run time",
	"real_dynamic_slice": "extents at run time",
	"dynamic_pad":        "extents at run time", "dynamic_gather": "extents at run time",
	"dynamic_conv": "extents at run time",
}

// unread is the reason for refusing a well-formed operator.
type unread string

// op builds an operator.
func (b *builder) op(x *flat) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case unread:
			b.unknown(string(why))
		default:
			panic(why)
		}
	}()
	if len(x.out) == 0 {
		if b.opt.Warn != nil {
			b.opt.Warn(fmt.Sprintf("line %d: %s has no result and is left out", x.at.line, x.name))
		}
		return
	}
	r := table[short(x.name)]
	if r == nil || strings.HasPrefix(x.name, "chlo.") != strings.HasPrefix(r.name, "chlo.") {
		if why := refused[short(x.name)]; why != "" {
			b.refuse(why + " have no counterpart")
		}
		if strings.HasPrefix(x.name, "sdy.") {
			b.refuse("several devices have no counterpart")
		}
		b.refuse("is not among the operators that are read")
	}
	if r.in >= 0 && len(x.in) != r.in {
		b.fail("has %d operands, expected %d", len(x.in), r.in)
	}
	for _, v := range x.in {
		if v.shape == nil && len(v.dims) > 0 && !(v.by != nil && v.by.fused) {
			b.fail("reads %s, which is no tensor", v.name)
		}
	}
	for _, v := range x.out {
		v.constant = len(x.in) > 0 && !slices.ContainsFunc(x.in, func(v *val) bool { return !v.constant })
	}
	r.build(b, x)
	b.check(b.b.Err())
}

// unknown imports an operator as work of one operation per element, if that is wanted.
func (b *builder) unknown(why string) {
	x := b.x
	if !b.opt.AllowUnknown {
		b.fail("%s", why)
	}
	if b.opt.Warn != nil {
		b.opt.Warn(fmt.Sprintf("line %d: %s is taken as one operation per element", x.at.line, x.name))
	}
	var in []model.TensorID
	for _, v := range x.in {
		if v.typ.tensor {
			in = append(in, b.tensor(v))
		}
	}
	for _, y := range x.out {
		shape, known := b.want(y)
		dt, err := b.dtype(y.typ)
		if err != nil || !known {
			b.fail("%s, and its result %s has no known size", why, y.typ)
		}
		y.id, y.made, y.shape = b.b.Op("Unknown", y.name, model.Attr{Shape: shape, Axis: int64(dt)}, in...), true, shape
	}
	b.check(b.b.Err())
}

// tensor returns the graph's tensor of a value. Constants enter the graph when an operator reads them, and broadcasts
// when one cannot do without.
func (b *builder) tensor(v *val) model.TensorID {
	if v.made {
		return v.id
	}
	v.made = true
	if v.base != nil {
		v.id = b.b.Op("Expand", v.name, model.Attr{Shape: v.shape}, b.tensor(v.base))
		return v.id
	}
	if v.order != nil {
		v.id = b.b.Op("Transpose", v.name, model.Attr{Perm: ints(v.order.perm)}, v.order.of)
		return v.id
	}
	dt := b.typeOf(v)
	single := v.lit != nil && v.lit.splat
	if dt.IsFloat() && v.shape.Elements() > 1 && !single && !v.is("iota") && !v.is("dynamic_iota") {
		v.id = b.b.Param(v.name, dt, v.shape...)
		return v.id
	}
	var ints []int64
	if v.lit != nil && !dt.IsFloat() && int64(len(v.lit.ints)) == v.shape.Elements() {
		ints = v.lit.ints
	}
	v.id = b.b.Const(v.name, dt, ints, v.shape...)
	return v.id
}

// set binds the result of the operator, and compares its shape with the one that its type says.
func (b *builder) set(y *val, id model.TensorID) {
	b.check(b.b.Err())
	y.id, y.made, y.shape = id, true, b.b.Tensor(id).Shape
	b.agree(y)
}

// known binds a result whose elements are known.
func (b *builder) known(y *val, shape model.Shape, lit *literal) {
	y.shape, y.lit, y.constant = shape, lit, true
	b.agree(y)
}

func (b *builder) agree(y *val) {
	shape, _ := b.want(y)
	ok := len(shape) == len(y.shape)
	for d := range shape {
		ok = ok && (shape[d] == dynamic || shape[d] == y.shape[d])
	}
	if !ok {
		b.fail("has the result %v, its type says %v", y.shape, shape)
	}
}

func (b *builder) emit(kind model.Kind, a model.Attr, in ...model.TensorID) {
	b.set(b.x.out[0], b.b.Op(kind, b.x.out[0].name, a, in...))
}

// step adds an operator in front of the one that yields the result.
func (b *builder) step(suffix string, kind model.Kind, a model.Attr, in ...model.TensorID) model.TensorID {
	return b.b.Op(kind, b.x.out[0].name+"/"+suffix, a, in...)
}

func (b *builder) shapeOf(id model.TensorID) model.Shape { return b.b.Tensor(id).Shape }

// order says that a value is a transpose that has not been needed yet: dimension i is dimension perm[i] of tensor
// of. The graph's images have their channels second, others last; so convolutions one after the other would
// transpose back and forth. What is element-wise goes through such a transpose, if it comes from an image.
type order struct {
	of    model.TensorID
	perm  []int
	image bool
}

// permuted is a value with its dimensions in another order.
func (b *builder) permuted(suffix string, v *val, perm []int) model.TensorID {
	if v.order != nil && !v.made {
		all := make([]int, len(perm))
		for i, d := range perm {
			all[i] = v.order.perm[d]
		}
		return b.transposed(suffix, v.order.of, all)
	}
	return b.transposed(suffix, b.tensor(v), perm)
}

func (b *builder) transposed(suffix string, id model.TensorID, perm []int) model.TensorID {
	if slices.IsSorted(perm) {
		return id
	}
	return b.step(suffix, "Transpose", model.Attr{Perm: ints(perm)}, id)
}

// later binds a result that is a transpose of a tensor.
func (b *builder) later(y *val, id model.TensorID, perm []int, image bool) {
	if b.b.Err() != nil || slices.IsSorted(perm) {
		b.set(y, id)
		return
	}
	s := b.shapeOf(id)
	y.shape = nil
	for _, d := range perm {
		y.shape = append(y.shape, s[d])
	}
	y.order = &order{id, perm, image}
	b.agree(y)
}

// images is the order that all operands of an element-wise operator have that are no constants and not broadcast; nil:
// none.
func images(in []*val, rank int) *order {
	var o *order
	for _, v := range in {
		switch {
		case v.base != nil || v.scalarConstant():
		case v.order == nil || v.made || !v.order.image || len(v.shape) != rank ||
			o != nil && !slices.Equal(o.perm, v.order.perm):
			return nil
		default:
			o = v.order
		}
	}
	return o
}

// onImages adds an element-wise operator on what transposes are of.
func (b *builder) onImages(kind model.Kind, a model.Attr, o *order, in []*val) {
	back := inverse(o.perm)
	ids := make([]model.TensorID, len(in))
	for i, v := range in {
		switch {
		case v.order != nil:
			ids[i] = v.order.of
		case v.base != nil:
			s := append(model.Shape(repeat(1, len(back)-len(v.base.shape))), v.base.shape...)
			t := make(model.Shape, len(s))
			for d, from := range back {
				t[d] = s[from]
			}
			id := b.tensor(v.base)
			if len(withoutOnes(s)) > 1 {
				id = b.transposed("operand", b.reshaped("operand", id, s), back)
			} else {
				for len(t) > 0 && t[0] == 1 {
					t = t[1:]
				}
				id = b.reshaped("operand", id, t)
			}
			ids[i] = id
		default:
			ids[i] = b.number(v)
		}
	}
	b.later(b.x.out[0], b.b.Op(kind, b.x.out[0].name, a, ids...), o.perm, true)
}

func inverse(perm []int) []int {
	out := make([]int, len(perm))
	for i, p := range perm {
		out[p] = i
	}
	return out
}

func (b *builder) reshaped(suffix string, id model.TensorID, s model.Shape) model.TensorID {
	if b.shapeOf(id).Equal(s) {
		return id
	}
	return b.step(suffix, "Reshape", model.Attr{Shape: s}, id)
}

// splat is the number that all elements of a value are.
func (v *val) splat() (float64, bool) {
	if v.lit != nil && v.lit.splat && !v.lit.opaque {
		return v.lit.f, true
	}
	return 0, false
}

// plain is a value before casts and broadcasts.
func (v *val) plain() *val {
	for v.by != nil && len(v.by.in) > 0 {
		switch short(v.by.name) {
		case "convert", "broadcast_in_dim":
			v = v.by.in[0]
		case "reshape": // of ones alone
			if !slices.Equal(withoutOnes(v.typ.shape), withoutOnes(v.by.in[0].typ.shape)) {
				return v
			}
			v = v.by.in[0]
		default:
			return v
		}
	}
	return v
}

func withoutOnes(s model.Shape) []int64 {
	return slices.DeleteFunc(slices.Clone(s), func(n int64) bool { return n == 1 })
}

// is reports whether a value comes from an operator.
func (v *val) is(name string) bool { return v.by != nil && short(v.by.name) == name }

// reduces is the operator of a reduction of one value, empty if it is none.
func (x *flat) reduces() string {
	if short(x.name) != "reduce" && short(x.name) != "reduce_window" || len(x.out) != 1 {
		return ""
	}
	if len(x.regions) == 0 {
		for i, w := range x.words {
			if w.word == "applies" && i+1 < len(x.words) {
				return short(x.words[i+1].word)
			}
		}
		return ""
	}
	if ops := x.regions[0].ops; len(ops) == 2 && len(ops[0].operands) == 2 {
		return short(ops[0].name)
	}
	return ""
}

// reduced are the operands of a reduction without the initial values.
func (x *flat) reduced() []*val { return x.in[:len(x.in)-len(x.out)*x.initials()] }

// initials is the number of initial values among the operands each result has: one in the generic form.
func (x *flat) initials() int {
	if len(x.in) >= 2*len(x.out) {
		return 1
	}
	return 0
}

// fuse marks a convolution or product whose only reader adds a bias to it: that one builds both.
func (b *builder) fuse(x *flat) {
	if short(x.name) != "add" || len(x.in) != 2 || len(x.out) != 1 {
		return
	}
	for i, v := range x.in {
		o := x.in[1-i]
		if !(v.is("convolution") || v.is("dot_general") || v.is("dot")) || len(v.users) != 1 || v == o ||
			slices.Contains(b.results, v) {
			continue
		}
		bias, dim := o.bias()
		switch {
		case bias == nil:
			continue
		case v.is("convolution"):
			c, err := v.by.convolution()
			if err != nil || c.out[1] != dim || v.by.dilatedInput() {
				continue
			}
		default:
			p, err := v.by.product()
			if err != nil || len(p.lf) != 1 || len(p.rf) != 1 || len(p.lc) != 1 || len(p.lb) > 0 || dim != 1 {
				continue
			}
		}
		v.by.fused = true
		return
	}
}

// bias is a vector that a value repeats along all dimensions but one.
func (v *val) bias() (*val, int) {
	if !v.is("broadcast_in_dim") {
		return nil, 0
	}
	in := v.by.in[0]
	dims := v.by.list("broadcast_dimensions", "dims")
	switch {
	case len(in.dims) == 1 && len(dims) == 1 && (in.by == nil || in.is("constant")):
		return in, int(dims[0])
	case in.is("reshape") || in.is("broadcast_in_dim"): // [n] to [1, n] to [m, n]
		from := in.by.in[0]
		if len(from.dims) != 1 || len(dims) != len(in.dims) || !(from.by == nil || from.is("constant")) {
			return nil, 0
		}
		at := -1
		for d, n := range in.typ.shape {
			if n == from.typ.shape[0] && at < 0 {
				at = d
			} else if n != 1 {
				return nil, 0
			}
		}
		if at >= 0 {
			return from, int(dims[at])
		}
	}
	return nil, 0
}

// biased builds a fused operator that an addition reads; false: it reads none.
func (b *builder) biased(x *flat) bool {
	for i, v := range x.in {
		if v.by == nil || !v.by.fused {
			continue
		}
		bias, _ := x.in[1-i].bias()
		y := *v.by
		y.out = x.out
		b.x = &y
		if v.is("convolution") {
			b.conv(&y, b.tensor(bias))
		} else {
			b.product(&y, b.tensor(bias))
		}
		return true
	}
	return false
}

func elementwise(kind model.Kind, variant string) func(*builder, *flat) {
	return func(b *builder, x *flat) {
		switch kind {
		case "Add":
			if b.biased(x) {
				return
			}
		case "Max":
			for i, v := range x.in {
				if f, ok := v.splat(); ok && f == 0 && x.in[1-i].shape.Equal(v.shape) {
					b.elementwise("Relu", model.Attr{}, x.in[1-i])
					return
				}
			}
		case "Div", "Mul":
			if b.normalised(x) {
				return
			}
		}
		if !b.foldInts(x) {
			b.elementwise(kind, model.Attr{Variant: variant}, x.in...)
		}
	}
}

// elementwise adds an operator that broadcasts by itself.
func (b *builder) elementwise(kind model.Kind, a model.Attr, in ...*val) {
	var out model.Shape
	for _, v := range in {
		if len(v.shape) > 0 || out == nil {
			out = v.shape
		}
	}
	for _, v := range in {
		if len(v.shape) > 0 && !v.shape.Equal(out) {
			b.fail("operands have shapes %v and %v", out, v.shape)
		}
	}
	if o := images(in, len(out)); o != nil {
		b.onImages(kind, a, o, in)
		return
	}
	ids := make([]model.TensorID, len(in))
	whole := false
	for _, v := range in {
		whole = whole || v.base == nil && !v.scalarConstant() && len(v.shape) == len(out)
	}
	for i, v := range in {
		switch {
		case v.base != nil && (whole || i > 0):
			ids[i] = b.tensor(v.base)
		case v.scalarConstant() && (whole || i > 0):
			ids[i] = b.number(v)
		default:
			ids[i] = b.tensor(v)
		}
	}
	b.emit(kind, a, ids...)
}

// scalarConstant: all elements of a constant that no operator has read as a tensor are one number.
func (v *val) scalarConstant() bool { return v.lit != nil && v.lit.splat && !v.made }

// number is that number as a tensor.
func (b *builder) number(v *val) model.TensorID {
	return b.b.Const(v.name, b.typeOf(v), nil)
}

// foldInts computes with extents.
func (b *builder) foldInts(x *flat) bool {
	if len(x.in) != 2 || x.in[0].lit == nil || x.in[1].lit == nil {
		return false
	}
	p, q := x.in[0].lit.ints, x.in[1].lit.ints
	if len(p) == 0 || len(p) != len(q) || int64(len(p)) != x.in[0].shape.Elements() ||
		!x.in[0].shape.Equal(x.in[1].shape) {
		return false
	}
	out := make([]int64, len(p))
	for i := range p {
		if max(p[i], -p[i], q[i], -q[i]) > 1<<30 {
			return false
		}
		switch short(x.name) {
		case "add":
			out[i] = p[i] + q[i]
		case "subtract":
			out[i] = p[i] - q[i]
		case "multiply":
			out[i] = p[i] * q[i]
		case "maximum":
			out[i] = max(p[i], q[i])
		case "minimum":
			out[i] = min(p[i], q[i])
		case "divide":
			if q[i] == 0 {
				return false
			}
			out[i] = p[i] / q[i]
		default:
			return false
		}
	}
	y := x.out[0]
	y.lit, y.shape, y.constant = &literal{ints: out}, x.in[0].shape, true
	return true
}

// normalised builds a softmax, or a mean, if the division (or multiplication) ends one.
func (b *builder) normalised(x *flat) bool {
	for i, v := range x.in {
		n, ok := v.splat()
		if i == 0 && short(x.name) == "divide" {
			continue
		}
		sum := x.in[1-i]
		if !ok || sum.by == nil || sum.by.reduces() != "add" {
			continue
		}
		a := sum.by.reduced()
		if len(a) != 1 {
			continue
		}
		count := int64(1)
		if sum.is("reduce_window") {
			for _, k := range sum.by.list("window_dimensions") {
				count *= k
			}
			if short(x.name) == "divide" && n == float64(count) || short(x.name) == "multiply" && near(n*float64(count), 1) {
				b.alias(x.out[0], sum) // an average
				b.agree(x.out[0])
				return true
			}
			continue
		}
		axes := sum.by.list("dimensions")
		for _, d := range axes {
			if d < 0 || d >= int64(len(a[0].shape)) {
				return false
			}
			count *= a[0].shape[d]
		}
		if short(x.name) == "divide" {
			n = 1 / n
		}
		if !near(n*float64(count), 1) {
			continue
		}
		b.reduction("ReduceMean", model.Attr{Axes: slices.Sorted(slices.Values(axes))}, a[0])
		return true
	}
	if short(x.name) != "divide" {
		return false
	}
	e, sum := x.in[0], x.in[1].plain()
	if !e.is("exponential") || !sum.is("reduce") || sum.by.reduces() != "add" {
		return false
	}
	axes := sum.by.list("dimensions")
	if of := sum.by.reduced(); len(of) != 1 || of[0].plain() != e || len(axes) != 1 || !e.by.in[0].is("subtract") {
		return false
	}
	sub := e.by.in[0].by
	from, most := sub.in[0], sub.in[1].plain()
	if most.is("maximum") { // with the least number
		for i, v := range most.by.in {
			if _, ok := v.splat(); ok {
				most = most.by.in[1-i].plain()
				break
			}
		}
	}
	if !most.is("reduce") || most.by.reduces() != "maximum" || !slices.Equal(most.by.list("dimensions"), axes) {
		return false
	}
	if of := most.by.reduced(); len(of) != 1 || of[0].plain() != from.plain() {
		return false
	}
	if axes[0] < 0 || axes[0] >= int64(len(from.shape)) {
		return false
	}
	b.emit("Softmax", model.Attr{Axis: axes[0]}, b.tensor(from))
	return true
}

// near allows for what printing a half float leaves out: three digits.
func near(a, b float64) bool { return math.Abs(a-b) < 4e-3*b }

func logical(kind model.Kind) func(*builder, *flat) {
	return func(b *builder, x *flat) {
		k, variant := kind, ""
		if x.out[0].typ.elem != "i1" {
			if k, variant = "Add", string(kind); kind == "And" {
				k = "Mul"
			}
		}
		b.elementwise(k, model.Attr{Variant: variant}, x.in...)
	}
}

func rsqrt(b *builder, x *flat) {
	b.emit("Reciprocal", model.Attr{}, b.step("sqrt", "Sqrt", model.Attr{}, b.tensor(x.in[0])))
}

func square(b *builder, x *flat) { b.elementwise("Mul", model.Attr{}, x.in[0], x.in[0]) }

func isFinite(b *builder, x *flat) {
	b.elementwise("Equal", model.Attr{Variant: "is_finite"}, x.in[0], x.in[0])
}

func through(b *builder, x *flat) {
	if len(x.out) != len(x.in) {
		b.fail("has %d operands and %d results, expected equally many", len(x.in), len(x.out))
	}
	for i, y := range x.out {
		b.alias(y, x.in[i])
	}
}

// alias makes a value what another one is.
func (b *builder) alias(y, v *val) {
	y.shape, y.lit, y.constant, y.base, y.order = v.shape, v.lit, v.constant, v.base, v.order
	if y.made = v.made || v.base == nil && v.order == nil && (v.lit == nil || !v.lit.splat); y.made {
		y.id = b.tensor(v)
	}
}

func customCall(b *builder, x *flat) {
	target := x.attrs["call_target_name"].word
	if target == "" && len(x.words) > 0 {
		target = x.words[0].word
	}
	if len(x.in) == 1 && len(x.out) == 1 && target == "Sharding" {
		through(b, x)
		return
	}
	b.refuse(fmt.Sprintf("calls @%s, which is not known", target))
}

// direction is what a comparison asks for, such as LT; empty: it does not say.
func (x *op) direction() string {
	for _, e := range append(slices.Clone(x.words), x.attrs["comparison_direction"].list...) {
		if len(e.word) == 2 {
			return e.word
		}
	}
	return x.attrs["comparison_direction"].word
}

func compare(b *builder, x *flat) {
	dir := x.direction()
	kind, ok := map[string]model.Kind{"EQ": "Equal", "NE": "Equal", "GT": "Greater", "GE": "GreaterOrEqual",
		"LT": "Less", "LE": "LessOrEqual"}[dir]
	if !ok {
		b.fail("compares by %q, expected EQ, NE, GT, GE, LT or LE", dir)
	}
	a := model.Attr{}
	if dir == "NE" {
		a.Variant = dir
	}
	b.elementwise(kind, a, x.in...)
}

func clamp(b *builder, x *flat) {
	_, low := x.in[0].splat()
	_, high := x.in[2].splat()
	if (low || len(x.in[0].shape) == 0) && (high || len(x.in[2].shape) == 0) {
		b.elementwise("Clip", model.Attr{Variant: limits(x.in[0], x.in[2])}, x.in[1])
		return
	}
	more := b.step("low", "Max", model.Attr{}, b.tensor(x.in[1]), b.tensor(x.in[0]))
	b.emit("Min", model.Attr{}, more, b.tensor(x.in[2]))
}

// limits spells the bounds of a clip, as far as they are known.
func limits(bounds ...*val) string {
	var s []string
	for _, v := range bounds {
		f, ok := v.splat()
		if !ok {
			s = append(s, v.name)
			continue
		}
		s = append(s, fmt.Sprint(f))
	}
	return strings.Join(s, " ")
}

func constant(b *builder, x *flat) {
	y := x.out[0]
	shape, known := b.want(y)
	var lit *literal
	if a, ok := x.attrs["value"]; ok {
		lit = a.lit
	}
	for _, w := range x.words {
		if w.lit != nil {
			lit = w.lit
		}
	}
	if lit == nil || !known {
		b.fail("has no value dense<...>, or no size")
	}
	b.typeOf(y)
	if !shape.Equal(y.typ.shape) && !lit.splat {
		b.fail("has values for %v, and follows the batch", y.typ.shape)
	}
	y.shape, y.lit, y.constant = shape, lit, true
}

// positions are counted, not stored.
func positions(b *builder, x *flat) {
	y := x.out[0]
	shape, known := b.want(y)
	if len(x.in) == 1 && !known {
		if shape = b.extents(x.in[0]); shape == nil {
			b.fail("the shape is not known")
		}
	}
	b.check(shape.Check())
	b.typeOf(y)
	y.shape, y.constant = shape, true
}

// extents are the known values of a vector of extents.
func (b *builder) extents(v *val) model.Shape {
	if v.lit == nil || int64(len(v.lit.ints)) != v.shape.Elements() {
		return nil
	}
	return model.Shape(v.lit.ints).Clone()
}

func dimensionSize(b *builder, x *flat) {
	d := x.list("dimension", "dim")
	if len(d) != 1 || d[0] < 0 || d[0] >= int64(len(x.in[0].shape)) {
		b.fail("dimension %v of %v", d, x.in[0].shape)
	}
	y := x.out[0]
	y.shape, y.constant, y.lit = model.Shape{}, true, &literal{ints: []int64{x.in[0].shape[d[0]]}}
}

// width is the number in the name of a type: of bits.
func width(elem string) string {
	return strings.TrimLeft(strings.SplitN(elem, "E", 2)[0], "abcdefghijklmnopqrstuvwxyz")
}

func convert(b *builder, x *flat) {
	v, y := x.in[0], x.out[0]
	dt, from := b.typeOf(y), b.typeOf(v)
	if short(x.name) == "bitcast_convert" && width(v.typ.elem) != width(y.typ.elem) {
		b.refuse(fmt.Sprintf("from %s to another width, %s, has no counterpart", v.typ, y.typ))
	}
	switch {
	case v.lit != nil && !v.made:
		y.shape, y.lit = v.shape, v.lit
		b.agree(y)
	case dt == from:
		b.alias(y, v)
		b.agree(y)
	case v.base != nil:
		// Before it is broadcast.
		base := *v.base
		base.id = b.step("base", "Cast", model.Attr{Axis: int64(dt)}, b.tensor(v.base))
		y.base, y.shape = &base, v.shape
		b.agree(y)
	default:
		b.elementwise("Cast", model.Attr{Axis: int64(dt)}, v)
	}
}
