package onnx

import (
	"math"

	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
)

// Constants, shapes and arithmetic on known values.

func constant(c *call) {
	var v *value
	for _, a := range c.node.attrs {
		c.find(a.name)
		if v != nil {
			c.fail("has several values")
		}
		switch {
		case a.name == "value" && a.t != nil:
			var err error
			if v, err = c.stored(a.t); err != nil {
				c.fail("the value %v", err)
			}
		case a.name == "value_int" && a.has&(1<<attrI) != 0:
			v = literalValue(&literal{dtype: model.I64, ints: []int64{a.i}})
		case a.name == "value_ints" && (a.has&(1<<attrInts) != 0 || a.typ == typeInts):
			v = literalValue(intLiteral(a.ints))
		case a.name == "value_float" && a.has&(1<<attrF) != 0:
			v = literalValue(&literal{dtype: c.floatType(), floats: []float64{float64(a.f)}})
		case a.name == "value_floats" && a.has&cut == 0:
			l := &literal{shape: model.Shape{int64(len(a.floats))}, dtype: c.floatType()}
			for _, f := range a.floats {
				l.floats = append(l.floats, float64(f))
			}
			v = literalValue(l)
			v.derived = false
		default:
			c.fail("has value attribute %q, which is not supported", a.name)
		}
	}
	if v == nil {
		c.fail("has no value")
	}
	v.name = ""
	c.bind(0, v)
}

func literalValue(l *literal) *value {
	return &value{shape: l.shape, dtype: l.dtype, constant: true, lit: l, derived: true, id: absent}
}

func (c *call) floatType() model.DType {
	if c.opt.Float != nil {
		return *c.opt.Float
	}
	return model.F32
}

// constantOfShape makes a constant of any size. Test files state their weights like this, so that floats count as the
// file's own, unless their shape is itself computed: exporters write biases of zeros so.
func constantOfShape(c *call) {
	shape, _ := c.list("", 0)
	s := model.Shape(shape).Clone()
	if _, err := elements(s); err != nil {
		c.fail("%v", err)
	}
	if len(s) > maxRank {
		c.fail("yields %d dimensions, more than %d", len(s), maxRank)
	}
	fill := &literal{shape: model.Shape{1}, dtype: c.floatType(), floats: []float64{0}}
	if a := c.find("value"); a != nil {
		if a.t == nil {
			c.fail("attribute \"value\" is not a tensor")
		}
		v, err := c.stored(a.t)
		if err != nil {
			c.fail("attribute \"value\" %v", err)
		}
		if v.shape.Elements() != 1 {
			c.fail("attribute \"value\" has shape %v, expected one element", v.shape)
		}
		if fill = v.lit; fill == nil {
			fill = &literal{shape: model.Shape{1}, dtype: v.dtype}
		}
	}
	v := &value{shape: s, dtype: fill.dtype, constant: true, id: absent}
	if c.in[0].derived {
		v.derived = true
	}
	if n := s.Elements(); len(fill.ints)+len(fill.floats) == 1 && fits(s) && (!fill.isFloat() || n <= 1) {
		if c.budget -= n; c.budget < 0 {
			bail.Check(errKnown)
		}
		v.lit = fill.pick(s, make([]int64, n))
	}
	c.bind(0, v)
}

func shapeOf(c *call) {
	s := c.in[0].shape
	clamp := func(v int64) int64 {
		if v < 0 {
			v += int64(len(s))
		}
		return min(max(v, 0), int64(len(s)))
	}
	lo, hi := clamp(c.int("start", 0)), clamp(c.int("end", int64(len(s))))
	c.known(intLiteral(s.Clone()[lo:max(lo, hi)]))
}

func sizeOf(c *call) {
	c.known(&literal{dtype: model.I64, ints: []int64{c.in[0].shape.Elements()}})
}

func foldIdentity(c *call) *literal { return c.in[0].lit }

func foldCast(c *call) *literal {
	dt, err := c.dtype(c.int("to", 0))
	if err != nil {
		c.fail("attribute \"to\" %v", err)
	}
	l, err := c.in[0].lit.cast(dt)
	if err != nil {
		c.fail("%v", err)
	}
	return l
}

// unary are the functions of one known value, on integers and on floats; nil where there is none.
var unary = map[string]struct {
	ints   func(int64) int64
	floats func(float64) float64
}{
	"Abs":   {func(v int64) int64 { return max(v, -v) }, math.Abs},
	"Neg":   {func(v int64) int64 { return -v }, func(v float64) float64 { return -v }},
	"Not":   {func(v int64) int64 { return truth(v == 0) }, nil},
	"Sqrt":  {nil, math.Sqrt},
	"Floor": {unchanged, math.Floor},
	"Ceil":  {unchanged, math.Ceil},
	"Round": {unchanged, math.RoundToEven},
}

func unchanged(v int64) int64 { return v }

func foldUnary(c *call) *literal {
	f, l := unary[c.node.op], c.in[0].lit
	if l.isFloat() && f.floats == nil || !l.isFloat() && f.ints == nil {
		return nil
	}
	r := &literal{shape: l.shape, dtype: l.dtype}
	for _, v := range l.floats {
		r.floats = append(r.floats, f.floats(v))
	}
	for _, v := range l.ints {
		r.ints = append(r.ints, f.ints(v))
	}
	return r
}

// foldArithmetic computes the functions of literal.go, from left to right if there are more than two operands.
func foldArithmetic(c *call) *literal {
	f := arithmetic[c.node.op]
	if c.int("fmod", 0) != 0 {
		return nil
	}
	acc := c.in[0].lit
	for _, v := range c.in[1:] {
		l := v.lit
		s, err := model.Broadcast(acc.shape, l.shape)
		if err != nil {
			c.fail("%v", err)
		}
		if !fits(s) || acc.isFloat() != l.isFloat() || (l.isFloat() && f.floats == nil) {
			return nil
		}
		x, y := acc.spread(s), l.spread(s)
		r := &literal{shape: s, dtype: acc.dtype}
		for i := range x.ints {
			n, err := f.ints(x.ints[i], y.ints[i])
			if err != nil {
				c.fail("%v", err)
			}
			r.ints = append(r.ints, n)
		}
		for i := range x.floats {
			r.floats = append(r.floats, f.floats(x.floats[i], y.floats[i]))
		}
		acc = r
	}
	switch c.node.op {
	case "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual":
		acc.dtype = model.Bool
	}
	return acc
}

func foldWhere(c *call) *literal {
	cond, x, y := c.in[0].lit, c.in[1].lit, c.in[2].lit
	s, err := model.Broadcast(cond.shape, x.shape)
	if err == nil {
		s, err = model.Broadcast(s, y.shape)
	}
	if err != nil {
		c.fail("%v", err)
	}
	if !fits(s) || x.isFloat() != y.isFloat() || cond.isFloat() {
		return nil
	}
	cond, x, y = cond.spread(s), x.spread(s), y.spread(s)
	r := &literal{shape: s, dtype: x.dtype}
	for i, t := range cond.ints {
		from := y
		if t != 0 {
			from = x
		}
		if r.isFloat() {
			r.floats = append(r.floats, from.floats[i])
		} else {
			r.ints = append(r.ints, from.ints[i])
		}
	}
	return r
}

func foldProduct(c *call) *literal {
	l := c.in[0].lit
	c.list("axes", 1) // a list has but one
	if l.isFloat() || len(l.shape) > 1 {
		return nil
	}
	n := int64(1)
	for _, v := range l.ints {
		var err error
		if n, err = mulInt(n, v); err != nil {
			c.fail("%v", err)
		}
	}
	r := &literal{dtype: l.dtype, ints: []int64{n}}
	if c.bool("keepdims", true) && len(l.shape) == 1 {
		r.shape = model.Shape{1}
	}
	return r
}

func foldRange(c *call) *literal {
	for _, v := range c.in {
		if v.lit.len() != 1 {
			c.fail("input %q has shape %v, expected one element", v.name, v.shape)
		}
		if v.lit.isFloat() != c.in[0].lit.isFloat() {
			c.fail("inputs %q and %q are of types %v and %v", c.in[0].name, v.name, c.in[0].dtype, v.dtype)
		}
	}
	if c.in[0].lit.isFloat() {
		return floatRange(c)
	}
	start, limit, step := c.in[0].lit.ints[0], c.in[1].lit.ints[0], c.in[2].lit.ints[0]
	if step == 0 {
		c.fail("has step 0")
	}
	var list []int64
	for v := start; (step > 0 && v < limit) || (step < 0 && v > limit); {
		if len(list) == maxKnownInts {
			return nil
		}
		list = append(list, v)
		var err error
		if v, err = addInt(v, step); err != nil {
			break
		}
	}
	l := intLiteral(list)
	l.dtype = c.in[0].dtype
	return l
}

func floatRange(c *call) *literal {
	start, limit, step := c.in[0].lit.floats[0], c.in[1].lit.floats[0], c.in[2].lit.floats[0]
	n := max(0, math.Ceil((limit-start)/step))
	if step == 0 || math.IsNaN(n) {
		c.fail("goes from %v to %v by %v", start, limit, step)
	}
	if n > maxKnownInts {
		return nil
	}
	l := &literal{shape: model.Shape{int64(n)}, dtype: c.in[0].dtype}
	for i := range int(n) {
		l.floats = append(l.floats, start+float64(i)*step)
	}
	return l
}
