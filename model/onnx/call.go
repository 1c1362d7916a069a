package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
)

// call is the import of one node. The functions in the table end it by fail and by unsupported.
type call struct {
	*importer
	node  *nodeProto
	row   *row
	opset int64
	in    []*value // nil where an optional input is left out
	read  uint64   // bit i: attribute i is accounted for
	extra []string // further parts of Attr.Variant
	left  bool     // what is not accounted for stands in one
	part  string   // begins the names of steps of one part of several
	makes bool     // an operator of the graph, at least
}

func (c *call) fail(format string, args ...any) {
	bail.Check(fmt.Errorf(format, args...))
}

// unsupported is fail for what lies beyond the importer.
func (c *call) unsupported(format string, args ...any) {
	bail.Check(&notSupported{fmt.Sprintf(format, args...)})
}

func (c *call) run() (err error) {
	defer bail.Caught(&err)
	n, r := c.node, c.row
	if r == nil {
		c.withoutRow()
		return nil
	}
	if len(n.attrs) > 64 {
		return fmt.Errorf("has %d attributes", len(n.attrs))
	}
	for i, a := range n.attrs {
		for _, b := range n.attrs[:i] {
			if a.name == b.name {
				return fmt.Errorf("has two attributes %q", a.name)
			}
		}
	}
	if len(n.outputs) == 0 {
		return errors.New("has no output")
	}
	if len(n.inputs) < r.minIn || (r.maxIn >= 0 && len(n.inputs) > r.maxIn) {
		return fmt.Errorf("has %d inputs, expected %s", len(n.inputs), r.arity())
	}
	for i, name := range n.inputs {
		if name == "" {
			if (i < r.minIn || r.maxIn < 0) && !slices.Contains(optional[r.operator], i) {
				return fmt.Errorf("leaves out input %d, which it needs", i)
			}
			c.in = append(c.in, nil)
			continue
		}
		c.addInput(name)
	}
	for len(c.in) < r.maxIn {
		c.in = append(c.in, nil)
	}
	switch {
	case c.fold():
	case r.build != nil:
		r.build(c)
	case c.opt.AllowUnknown:
		c.unknown()
		return nil
	default:
		c.unsupported("%s", c.whyNotFolded())
	}
	for i, o := range n.outputs {
		if o != "" && c.values[o] == nil && c.used[o] {
			c.lose(n, fmt.Sprintf("output %d (%q) is used, but not supported", i, o), o)
		}
	}
	return nil
}

// addInput adds a value to the inputs.
func (c *call) addInput(name string) {
	v := bail.Of(c.value(name))
	if v.lost {
		c.unsupported(lostInput)
	}
	c.in = append(c.in, v)
}

// withoutRow is run for an operator that is not in the table.
func (c *call) withoutRow() {
	n := c.node
	if !c.opt.AllowUnknown || refused[operator{n.domain, n.op}] != "" {
		c.unsupported("%s", whyUnknown(n))
	}
	for _, name := range n.inputs {
		if name != "" {
			c.addInput(name)
		}
	}
	c.unknown()
}

// unknown imports the node as work of one operation per output element. Its shape and type are those that the file
// declares, or else those of its first input that is no constant.
func (c *call) unknown() {
	var like *value
	for _, v := range c.in {
		if v != nil && (like == nil || like.constant && !v.constant) {
			like = v
		}
	}
	for i, o := range c.node.outputs {
		if o == "" || !c.used[o] {
			continue
		}
		shape, dt, ok := c.stated(o)
		if !ok {
			if like == nil {
				c.unsupported("neither known nor is the shape of output %d (%q) declared", i, o)
			}
			if shape == nil {
				shape = like.shape
			}
			if dt == nil {
				dt = &like.dtype
			}
		}
		attr := model.Attr{Shape: shape, Axis: int64(*dt), Variant: fmt.Sprintf("output %d of %q", i, c.node.name)}
		name := c.node.name
		if i > 0 {
			name = fmt.Sprintf("%s:%d", name, i)
		}
		for _, v := range c.add("Unknown", name, attr, args(c.in...), []string{o}) {
			c.bind(i, v)
		}
		if c.opt.Warn != nil {
			c.opt.Warn(
				fmt.Sprintf("node %q: %s of domain %s is not known; it counts as one operation per element of its output %q",
					c.node.name, c.node.op, shownDomain(c.node.domain), o))
		}
	}
}

// stated is the file's declaration of a value; ok if that is all, else what is missing is nil.
func (c *call) stated(name string) (shape model.Shape, dt *model.DType, ok bool) {
	v := c.declared[name]
	if v == nil || !v.tensor {
		return nil, nil, false
	}
	if t, err := c.dtype(v.elem); err == nil {
		dt = &t
	}
	if !v.ranked {
		return nil, dt, false
	}
	shape = model.Shape{}
	for i, d := range v.dims {
		n := d.value
		if !d.fixed {
			var bound bool
			if n, bound = c.opt.Dims[label(v, i)]; !bound {
				if i != 0 || c.batch == 0 {
					return nil, dt, false
				}
				n = c.batch
			}
		} else if i == 0 && n == c.fileBatch && c.batch > 0 {
			n = c.batch
		}
		shape = append(shape, n)
	}
	return shape, dt, dt != nil
}

func (c *call) whyNotFolded() string {
	for i, v := range c.in {
		if v != nil && v.missing != "" {
			return fmt.Sprintf("input %d (%q) is needed: %s", i, v.name, v.missing)
		}
		if v != nil && !v.foldable() {
			return fmt.Sprintf("works on known values only, but input %d (%q) is not known", i, v.name)
		}
	}
	return fmt.Sprintf("cannot be computed here: more than %d elements, or a type that is not supported", maxKnownInts)
}

// foldable reports whether the value may take part in arithmetic at import. Floats
// in the file may be trained, so that only single ones do.
func (v *value) foldable() bool {
	return v.lit != nil && (!v.lit.isFloat() || v.derived || v.lit.len() <= 1)
}

// fold computes the node if all its inputs are known.
func (c *call) fold() bool {
	if c.row.fold == nil || len(c.node.inputs) == 0 {
		return false
	}
	for _, v := range c.in {
		if v != nil && !v.foldable() {
			return false
		}
	}
	l := c.row.fold(c)
	if l == nil {
		return false
	}
	c.known(l)
	return true
}

// known binds the first output to known values.
func (c *call) known(l *literal) { c.knownOutput(0, l) }

func (c *call) knownOutput(i int, l *literal) {
	if !fits(l.shape) {
		c.fail("yields shape %v, which is too large to compute here", l.shape)
	}
	if c.budget -= l.len() + 8; c.budget < 0 {
		bail.Check(errKnown)
	}
	c.bind(i, &value{shape: l.shape, dtype: l.dtype, constant: true, lit: l, derived: true, id: absent})
}

func (c *call) bind(i int, v *value) {
	if i >= len(c.node.outputs) || c.node.outputs[i] == "" {
		return
	}
	v.name = cmp.Or(v.name, c.node.outputs[i])
	c.values[c.node.outputs[i]] = v
}

// Attributes.

func (c *call) find(name string) *attribute {
	for i, a := range c.node.attrs {
		if a.name == name {
			c.read |= 1 << i
			return a
		}
	}
	return nil
}

func (c *call) has(name string) bool {
	return slices.ContainsFunc(c.node.attrs, func(a *attribute) bool { return a.name == name })
}

// is reports whether an attribute is, or should be, of a type: the number of its value field and the value of its type
// field. Old files give no type, some writers leave out zeros.
func (a *attribute) is(fieldNumber uint, typ int64) bool {
	return a.has&(1<<fieldNumber) != 0 || a.typ == typ
}

// get finds an attribute of a type.
func (c *call) get(name string, fieldNumber uint, typ int64, want string) *attribute {
	a := c.find(name)
	if a != nil && !a.is(fieldNumber, typ) {
		c.fail("attribute %q is %s, expected %s", name, a.kind(), want)
	}
	return a
}

// kind says of what type an attribute is.
func (a *attribute) kind() string {
	for _, k := range []struct {
		field uint
		typ   int64
		name  string
	}{{attrF, typeFloat, "a float"}, {attrI, typeInt, "an integer"}, {attrS, typeString, "a string"},
		{attrT, 4, "a tensor"}, {attrG, 5, "a graph"},
		{attrFloats, 6, "a list of floats"}, {attrInts, typeInts, "a list of integers"},
		{attrStrings, 8, "a list of strings"}} {
		if a.is(k.field, k.typ) {
			return k.name
		}
	}
	return "of no known type"
}

// int takes a list of one integer too, which some exporters write.
func (c *call) int(name string, def int64) int64 {
	if a := c.find(name); a != nil && !a.is(attrI, typeInt) && a.is(attrInts, typeInts) {
		if len(a.ints) != 1 {
			c.fail("attribute %q is the list %v, expected an integer", name, a.ints)
		}
		return a.ints[0]
	}
	if a := c.get(name, attrI, typeInt, "an integer"); a != nil {
		return a.i
	}
	return def
}

// typeAttr is an element type; 0 stands for the default.
func (c *call) typeAttr(name string, def model.DType) model.DType {
	n := c.int(name, 0)
	if n == 0 {
		return def
	}
	dt, err := c.dtype(n)
	if err != nil {
		c.fail("attribute %q %v", name, err)
	}
	return dt
}

// nonZero reports whether a number is given that is not 0.
func (c *call) nonZero(name string) bool {
	a := c.find(name)
	if a == nil || a.is(attrI, typeInt) && a.i >= 0 {
		return a != nil && a.i != 0 // of a lax exporter
	}
	if !a.is(attrF, typeFloat) || !(a.f >= 0 && a.f <= math.MaxFloat32) {
		c.fail("attribute %q is %s (%v), expected a number of at least 0", name, a.kind(), a.spell(c.node))
	}
	return a.f != 0
}

func (c *call) bool(name string, def bool) bool { return c.within(name, truth(def), 0, 1) == 1 }

// within is an integer between two limits, inclusive.
func (c *call) within(name string, def, lo, hi int64) int64 {
	n := c.int(name, def)
	if n < lo || n > hi {
		c.fail("attribute %q is %d, expected %d to %d", name, n, lo, hi)
	}
	return n
}

// one is a string out of some.
func (c *call) one(name, def string, of ...string) string {
	s := c.str(name, def)
	if !slices.Contains(of, s) {
		c.fail("attribute %q is %q, expected one of %s", name, s, strings.Join(of, ", "))
	}
	return s
}

// leave makes attributes that were read parts of the variant all the same.
func (c *call) leave(names ...string) {
	for i, a := range c.node.attrs {
		if slices.Contains(names, a.name) {
			c.read &^= 1 << i
		}
	}
}

// ints returns a list of the caller's own: the attribute may be read again, at another batch or in another call of a
// function. A single integer, which some exporters write, is a list of one.
func (c *call) ints(name string) ([]int64, bool) {
	if a := c.find(name); a != nil && !a.is(attrInts, typeInts) && a.is(attrI, typeInt) {
		return []int64{a.i}, true
	}
	if a := c.get(name, attrInts, typeInts, "a list of integers"); a != nil {
		return slices.Clone(a.ints), true
	}
	return nil, false
}

func (c *call) str(name, def string) string {
	if a := c.get(name, attrS, typeString, "a string"); a != nil {
		return a.s
	}
	return def
}

// list is an option that was an attribute in old operator sets and is an input in new ones.
func (c *call) list(attr string, input int) ([]int64, bool) {
	if v, ok := c.ints(attr); ok {
		return v, true
	}
	if input >= len(c.in) || c.in[input] == nil {
		return nil, false
	}
	v := c.in[input]
	if v.missing != "" {
		c.fail("input %d (%q) is needed: %s", input, v.name, v.missing)
	}
	if v.lit == nil || v.lit.isFloat() {
		c.fail("input %d (%q) is computed while the network runs, expected a known list of integers", input, v.name)
	}
	if len(v.shape) > 1 {
		c.fail("input %d (%q) has shape %v, expected a list", input, v.name, v.shape)
	}
	return v.lit.ints, true
}

// axis turns a negative axis, which counts from the end, into its position.
func (c *call) axis(a int64, rank int) int {
	if a < -int64(rank) || a >= int64(rank) {
		c.fail("axis %d does not exist in %d dimensions", a, rank)
	}
	if a < 0 {
		a += int64(rank)
	}
	return int(a)
}

// axes normalises and sorts a list of axes.
func (c *call) axes(list []int64, rank int) []int64 {
	var r []int64
	for _, a := range list {
		r = append(r, int64(c.axis(a, rank)))
	}
	slices.Sort(r)
	if n := len(r); len(slices.Compact(r)) != n {
		c.fail("axes %v repeat", list)
	}
	return r
}

// each is a list attribute of n entries; a single integer stands for all of them.
func (c *call) each(name string, n int) ([]int64, bool) {
	v, ok := c.ints(name)
	if a := c.find(name); ok && !a.is(attrInts, typeInts) {
		v = slices.Repeat(v, n)
	}
	return v, ok
}

// spatial returns a list attribute with one entry per spatial dimension.
func (c *call) spatial(name string, n int, def int64) []int64 {
	v, ok := c.each(name, n)
	if !ok {
		v = slices.Repeat([]int64{def}, n)
	}
	if len(v) != n {
		c.fail("attribute %q has %d entries, expected %d", name, len(v), n)
	}
	return v
}

// variant spells out what the attributes say beyond the fields of model.Attr.
func (c *call) variant() string {
	c.left = true
	var parts []string
	for i, a := range c.node.attrs {
		if c.read&(1<<i) == 0 {
			parts = append(parts, a.name+"="+a.spell(c.node))
		}
	}
	parts = append(parts, c.extra...)
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// spelled are the fields of an attribute that spell writes out, or that carry no value.
const spelled = 1<<1 | 1<<attrF | 1<<attrI | 1<<attrS | 1<<attrFloats | 1<<attrInts | 1<<attrStrings | 1<<13 | 1<<20

// spell writes an attribute's value so that equal text means equal value.
func (a *attribute) spell(n *nodeProto) string {
	if a.has&^spelled != 0 {
		return fmt.Sprintf("of node %d %q", n.index, n.name) // equal to no other
	}
	var b strings.Builder
	if a.has&(1<<attrF) != 0 {
		b.WriteString(strconv.FormatFloat(float64(a.f), 'g', -1, 32))
	}
	if a.has&(1<<attrI) != 0 {
		b.WriteString(strconv.FormatInt(a.i, 10))
	}
	b.WriteString(a.s)
	for _, v := range a.ints {
		fmt.Fprintf(&b, ",%d", v)
	}
	for _, v := range a.floats {
		b.WriteString("," + strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	for _, v := range a.strings {
		fmt.Fprintf(&b, ",%q", v)
	}
	return b.String()
}

// note adds an input that decides values, but is no operand in the graph: the limits of a Clip.
func (c *call) note(what string, v *value) {
	switch {
	case v == nil:
	case !v.constant:
		c.fail("%s (%q) is computed while the network runs, expected a constant", what, v.name)
	case v.lit != nil && v.lit.isFloat():
		c.extra = append(c.extra, fmt.Sprintf("%s=%v", what, v.lit.floats))
	case v.lit != nil:
		c.extra = append(c.extra, fmt.Sprintf("%s=%v", what, v.lit.ints))
	default:
		c.extra = append(c.extra, what+" "+v.name)
	}
}

// Operators.

// arg is an input of an operator of the graph.
type arg struct {
	v *value
	u use
}

func args(vs ...*value) []arg {
	var as []arg
	for _, v := range vs {
		if v != nil {
			as = append(as, arg{v, operand})
		}
	}
	return as
}

// emit adds the operator that yields the node's outputs.
func (c *call) emit(kind model.Kind, attr model.Attr, in []arg) {
	attr.Variant = c.variant()
	out := c.add(kind, c.node.name, attr, in, c.node.outputs)
	for i, v := range out {
		c.bind(i, v)
	}
}

// step adds an operator that yields an intermediate value.
func (c *call) step(suffix string, kind model.Kind, attr model.Attr, in ...arg) *value {
	name := c.node.name + "/" + c.part + suffix
	out := c.add(kind, name, attr, in, []string{name})
	if len(out) == 0 {
		return &value{id: absent}
	}
	return out[0]
}

// finish adds the operator that yields the node's first output, after steps.
func (c *call) finish(kind model.Kind, attr model.Attr, in ...arg) {
	for i, v := range c.add(kind, c.node.name, attr, in, c.node.outputs[:1]) {
		c.bind(i, v)
	}
}

// number is a constant of one element whose value does not matter.
func (c *call) number(suffix string, dt model.DType) *value { return c.made(suffix, nil, dt) }

// made is a constant whose values follow from the operator, and do not matter.
func (c *call) made(suffix string, shape model.Shape, dt model.DType) *value {
	return &value{name: c.node.name + "/" + c.part + suffix, shape: shape, dtype: dt, constant: true, derived: true,
		id: absent}
}

// part is a part of the file's constant v, or v in another form.
func (v *value) part(suffix string, dt model.DType, shape ...int64) *value {
	return &value{name: v.name + "/" + suffix, shape: shape, dtype: dt, constant: true, id: absent}
}

// parts cuts a value along an axis; the parts have names of their own.
func (c *call) parts(suffix string, v arg, axis int64, sizes []int64, names ...string) []*value {
	name := c.node.name + "/" + suffix
	for i, n := range names {
		names[i] = name + ":" + n
	}
	return c.add("Split", name, model.Attr{Axis: axis, Splits: sizes}, []arg{v}, names)
}

func (c *call) add(kind model.Kind, name string, attr model.Attr, in []arg, names []string) []*value {
	c.makes = true
	negative := func(n int64) bool { return n < 0 }
	if slices.Contains(attr.Shape, 0) || slices.Contains(attr.Splits, 0) || slices.ContainsFunc(attr.Pads, negative) ||
		slices.ContainsFunc(in, func(a arg) bool { return a.v.empty() }) {
		return c.hollow(kind, name, attr, in, names)
	}
	return c.built(kind, name, attr, in, names)
}

// empty reports whether a value has no element.
func (v *value) empty() bool { return slices.Contains(v.shape, 0) }

// hollow is add where operands or results may have no element, which tensors of a graph have. Results without an
// element are known as they are. A concatenation leaves out operands without one, a split the results; a sum over
// nothing is a number, that of its bias if there is one, and so is a border around nothing.
func (c *call) hollow(kind model.Kind, name string, attr model.Attr, in []arg, names []string) []*value {
	ts := make([]*model.Tensor, len(in))
	for i, a := range in {
		ts[i] = &model.Tensor{Shape: a.v.shape, DType: a.v.dtype}
	}
	shapes, dts, err := model.Infer(&model.Op{Kind: kind, Attr: &attr}, ts)
	bail.Check(err)
	vs := make([]*value, len(shapes))
	var have []int // the results with elements
	var left []string
	for i, s := range shapes {
		if vs[i] = literalValue(&literal{shape: s, dtype: dts[i]}); i < len(names) {
			vs[i].name = names[i]
		}
		if !vs[i].empty() {
			have, left = append(have, i), append(left, vs[i].name)
		}
	}
	some := slices.DeleteFunc(slices.Clone(in), func(a arg) bool { return a.v.empty() })
	var got []*value
	switch info, _ := model.Info(kind); {
	case len(have) == 0:
		return vs
	case kind == "Split" && len(have) > 1:
		attr.Splits = slices.DeleteFunc(slices.Clone(attr.Splits), func(n int64) bool { return n == 0 })
		got = c.built(kind, name, attr, in, left)
	case kind == "Unknown", kind == "Concat" && len(some) > 1, len(some) == len(in) && kind != "Split":
		got = c.built(kind, name, attr, some, left)
	case kind == "Split", kind == "Concat", kind == "Scatter":
		got = c.built("Identity", name, model.Attr{}, some[:1], left)
	case info.Class == model.MatrixClass || info.Class == model.ReductionClass || kind == "Pad":
		number := operandOf(c.number("nothing", dts[0]))
		if info.Class == model.MatrixClass && len(in) > 2 {
			number = in[2]
		}
		got = c.built("Expand", name, model.Attr{Shape: shapes[0]}, []arg{number}, left)
	default:
		c.fail("yields shape %v from operands without an element", shapes[have[0]])
	}
	for i, v := range got {
		vs[have[i]] = v
	}
	return vs
}

// built adds an operator of the graph.
func (c *call) built(kind model.Kind, name string, attr model.Attr, in []arg, names []string) []*value {
	ids := make([]model.TensorID, len(in))
	for i, a := range in {
		ids[i] = c.tensor(a.v, a.u)
	}
	outs := c.b.OpNamed(kind, name, attr, ids, names)
	if err := c.b.Err(); err != nil {
		// The builder names the operator, as does our caller.
		if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "operator") {
			err = inner
		}
		bail.Check(err)
	}
	vs := make([]*value, len(outs))
	for i, id := range outs {
		t := c.b.Tensor(id)
		if len(t.Shape) > maxRank {
			c.fail("yields %d dimensions, more than %d", len(t.Shape), maxRank)
		}
		vs[i] = &value{name: t.Name, shape: t.Shape, dtype: t.DType, id: id}
	}
	return vs
}
