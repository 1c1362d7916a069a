package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Movement of elements, and its counterpart on known values.

// resolveReshape computes the shape that a Reshape's target means for an input.
func resolveReshape(in model.Shape, target []int64, allowZero bool) (model.Shape, error) {
	if len(target) > maxRank {
		return nil, fmt.Errorf("the target has %d dimensions, more than %d", len(target), maxRank)
	}
	out := make(model.Shape, len(target))
	infer, rest := -1, int64(1)
	for i, t := range target {
		switch {
		case t == -1 && infer >= 0:
			return nil, fmt.Errorf("target %v has two dimensions to infer", target)
		case t == -1:
			infer = i
			continue
		case t == 0 && !allowZero:
			if i >= len(in) {
				return nil, fmt.Errorf("target %v copies dimension %d of shape %v, which has none", target, i, in)
			}
			out[i] = in[i]
		case t < 0:
			return nil, fmt.Errorf("target %v has extent %d", target, t)
		default:
			out[i] = t
		}
		var err error
		if rest, err = mulInt(rest, out[i]); err != nil {
			return nil, fmt.Errorf("target %v: %w", target, err)
		}
	}
	n := in.Elements()
	if infer >= 0 {
		if rest == 0 || n%rest != 0 {
			return nil, fmt.Errorf("cannot reshape %v to %v: %d elements are no multiple of %d", in, target, n, rest)
		}
		out[infer] = n / rest
	} else if rest != n {
		return nil, fmt.Errorf("cannot reshape %v (%d elements) to %v (%d)", in, n, target, rest)
	}
	return out, nil
}

// rescale carries a change of the input from own to now over to the output of a reshape, which was out for own.
//
// A target written for one batch, like [1,-1] or [12,64,64] (heads), is no guide to another: the first would move the
// new images into the second dimension, the second does not even fit. So both shapes are cut into the finest blocks of
// consecutive dimensions with equal products, as the file has them. A block of the input that grows makes the block of
// the output grow, in its outermost dimension, which is where the new images are if the dimension that grew is
// outermost in the input's block; else the order of elements would change, and the reshape is refused.
func rescale(own, now, out model.Shape) (model.Shape, error) {
	if len(own) != len(now) {
		return nil, fmt.Errorf("reshape of %v, which was %v in the file", now, own)
	}
	res := out.Clone()
	refuse := func() (model.Shape, error) {
		return nil, fmt.Errorf("cannot infer what the reshape of %v to %v becomes for %v", own, out, now)
	}
	groups := model.ReshapeGroups(own, out)
	if len(groups) == 0 {
		groups = make([]model.ReshapeGroup, 1)
	}
	last := &groups[len(groups)-1]
	if own[last.To:].Elements() != 1 || out[last.End:].Elements() != 1 {
		return refuse()
	}
	last.To, last.End = len(own), len(out) // ones at the end belong to it
	for _, g := range groups {
		i0, i, j0, j := g.From, g.To, g.First, g.End
		pi := own[i0:i].Elements()
		grown := model.Shape(now[i0:i]).Elements()
		if grown == pi {
			continue
		}
		outer, wide := -1, 0
		for d := i0; d < i; d++ {
			if now[d] != own[d] {
				outer = d
				break
			}
			if own[d] > 1 {
				wide++
			}
		}
		split := 0 // dimensions of the output's block that hold something
		for _, n := range out[j0:j] {
			if n > 1 {
				split++
			}
		}
		if outer < 0 || j0 == j || (wide > 0 && split > 1) {
			return refuse()
		}
		n, err := mulInt(out[j0], grown)
		if err != nil || n%pi != 0 {
			return refuse()
		}
		res[j0] = n / pi
	}
	return res, nil
}

// fixedTarget gives the output shape of a reshape-like node for a target that
// the file states, whether or not the batch is the one it was stated for.
func (c *call) fixedTarget(target []int64, sameInFile bool, allowZero bool) model.Shape {
	x, own := c.in[0], c.own[c.node.inputs[0]]
	if own == nil || !sameInFile || own.shape.Equal(x.shape) {
		s, err := resolveReshape(x.shape, target, allowZero)
		if err != nil {
			c.fail("%v", err)
		}
		return s
	}
	s, err := resolveReshape(own.shape, target, allowZero)
	if err == nil {
		s, err = rescale(own.shape, x.shape, s)
	}
	if err != nil {
		c.fail("%v", err)
	}
	return s
}

// sameInFile reports whether input i has the same known values at the file's own
// batch: then they do not follow the batch by themselves.
func (c *call) sameInFile(i int) bool {
	if c.own == nil || i >= len(c.in) || c.in[i] == nil {
		return true
	}
	own := c.own[c.node.inputs[i]]
	return own == nil || own.lit == nil || c.in[i].lit == nil || slices.Equal(own.lit.ints, c.in[i].lit.ints)
}

func (c *call) toShape(s model.Shape) {
	c.emit("Reshape", model.Attr{Shape: s}, args(c.in[0]))
}

func (c *call) reshapeTarget() model.Shape {
	target, ok := c.list("shape", 1)
	if !ok {
		c.fail("has no target shape")
	}
	return c.fixedTarget(target, c.sameInFile(1), c.bool("allowzero", false))
}

func reshape(c *call) { c.toShape(c.reshapeTarget()) }

func foldReshape(c *call) *literal { return c.in[0].lit.reshape(c.reshapeTarget()) }

func flatten(c *call) {
	s := c.in[0].shape
	a := c.int("axis", 1)
	cut := len(s)
	if a != int64(cut) {
		cut = c.axis(a, len(s))
	}
	c.toShape(model.Shape{s[:cut].Elements(), s[cut:].Elements()})
}

func squeezed(c *call) model.Shape {
	s := c.in[0].shape
	list, ok := c.list("axes", 1)
	var out model.Shape
	axes := c.axes(list, len(s))
	for d, n := range s {
		drop := slices.Contains(axes, int64(d))
		if drop && n != 1 {
			c.fail("cannot squeeze dimension %d of shape %v, which is not 1", d, s)
		}
		if !drop && (ok || n != 1) {
			out = append(out, n)
		}
	}
	return out
}

func squeeze(c *call) { c.toShape(squeezed(c)) }

func foldSqueeze(c *call) *literal { return c.in[0].lit.reshape(squeezed(c)) }

func unsqueezed(c *call) model.Shape {
	s := c.in[0].shape
	list, ok := c.list("axes", 1)
	if !ok {
		c.fail("has no axes")
	}
	if len(s)+len(list) > maxRank {
		c.fail("yields %d dimensions, more than %d", len(s)+len(list), maxRank)
	}
	axes := c.axes(list, len(s)+len(list))
	out := make(model.Shape, 0, len(s)+len(list))
	next := 0
	for d := range len(s) + len(list) {
		if slices.Contains(axes, int64(d)) {
			out = append(out, 1)
		} else {
			out = append(out, s[next])
			next++
		}
	}
	return out
}

func unsqueeze(c *call)              { c.toShape(unsqueezed(c)) }
func foldUnsqueeze(c *call) *literal { return c.in[0].lit.reshape(unsqueezed(c)) }

func (c *call) perm() []int64 {
	rank := len(c.in[0].shape)
	p, ok := c.ints("perm")
	if !ok {
		for d := rank - 1; d >= 0; d-- {
			p = append(p, int64(d))
		}
	}
	seen := make([]bool, rank)
	for _, d := range p {
		if len(p) != rank || d < 0 || d >= int64(rank) || seen[d] {
			c.fail("perm %v is not a permutation of %d dimensions", p, rank)
		}
		seen[d] = true
	}
	if len(p) != rank {
		c.fail("perm %v is not a permutation of %d dimensions", p, rank)
	}
	return p
}

func transpose(c *call) { c.emit("Transpose", model.Attr{Perm: c.perm()}, args(c.in[0])) }

func foldTranspose(c *call) *literal {
	p, l := c.perm(), c.in[0].lit
	st := rowMajor(l.shape)
	out := make(model.Shape, len(p))
	for i, d := range p {
		out[i] = l.shape[d]
	}
	return l.gather(out, func(ix []int64) (at int64) {
		for i, d := range p {
			at += ix[i] * st[d]
		}
		return at
	})
}

// concatAxis: the first operator sets had a default.
func (c *call) concatAxis() int {
	if c.opset >= 4 && !c.has("axis") {
		c.fail("attribute \"axis\" is missing")
	}
	return c.axis(c.int("axis", 1), len(c.in[0].shape))
}

func concat(c *call) {
	axis, parts := c.concatAxis(), args(c.in...)
	for i, s := range c.grownParts(axis) {
		if !s.Equal(c.in[i].shape) {
			parts[i].v = c.step(fmt.Sprintf("expand%d", i), "Expand", model.Attr{Shape: s}, parts[i])
		}
	}
	c.emit("Concat", model.Attr{Axis: int64(axis)}, parts)
}

// grownParts gives the shapes of a concatenation's inputs such that they fit beside axis: a constant part written for
// the file's batch (a class token) must be repeated for each image of another. nil if the batch is the file's.
func (c *call) grownParts(axis int) []model.Shape {
	var now, own []model.Shape
	for i, v := range c.in {
		o := c.own[c.node.inputs[i]]
		if o == nil || len(o.shape) != len(c.in[0].shape) || len(v.shape) != len(o.shape) {
			return nil
		}
		now, own = append(now, v.shape.Clone()), append(own, o.shape)
	}
	for d := range own[0] {
		widest, agree := int64(0), true
		for i := range now {
			widest = max(widest, now[i][d])
			agree = agree && own[i][d] == own[0][d]
		}
		for i := range now {
			if d != axis && agree && c.in[i].constant && now[i][d] == 1 {
				now[i][d] = widest
			}
		}
	}
	return now
}

func foldConcat(c *call) *literal {
	axis := c.concatAxis()
	out := c.in[0].shape.Clone()
	if len(out) != 1 {
		return nil // lists are enough
	}
	r := &literal{dtype: c.in[0].lit.dtype}
	for _, v := range c.in {
		if len(v.shape) != 1 || v.lit.isFloat() != r.isFloat() {
			c.fail("inputs %q and %q have shapes %v and %v of %v and %v", c.in[0].name, v.name, c.in[0].shape, v.shape,
				c.in[0].dtype, v.dtype)
		}
		if len(r.ints)+len(r.floats)+len(v.lit.ints)+len(v.lit.floats) > maxKnownInts {
			return nil
		}
		r.ints = append(r.ints, v.lit.ints...)
		r.floats = append(r.floats, v.lit.floats...)
	}
	out[axis] = int64(len(r.ints) + len(r.floats))
	r.shape = out
	return r
}

func split(c *call) {
	s := c.in[0].shape
	axis := c.axis(c.int("axis", 0), len(s))
	parts, ok := c.list("split", 1)
	n := int64(len(c.node.outputs))
	c.within("num_outputs", n, n, n)
	if !ok {
		// Equal parts; the last may be smaller.
		size := (s[axis] + n - 1) / n
		for i := range n {
			parts = append(parts, min(size, s[axis]-i*size))
		}
	}
	if int64(len(parts)) != n {
		c.fail("splits into %d parts, but has %d outputs", len(parts), n)
	}
	if own := c.ownInput(); ok && own != nil && len(own.shape) == len(s) && c.sameInFile(1) {
		parts = slices.Clone(parts) // of the batch, when along it
		for i := range parts {
			parts[i] = c.grown(parts[i], own.shape[axis], s[axis])
		}
	}
	if v := c.in[0]; v.foldable() && len(s) == 1 {
		at := int64(0)
		for i, n := range parts {
			if n < 0 || n > s[0]-at {
				c.fail("splits shape %v into %v", s, parts)
			}
			var index []int64
			for k := range n {
				index = append(index, at+k)
			}
			c.knownOutput(i, v.lit.pick(model.Shape{n}, index))
			at += n
		}
		return
	}
	c.emit("Split", model.Attr{Axis: int64(axis), Splits: parts}, args(c.in[0]))
}

// slices are the start, the step and the number of elements per dimension.
type slicing struct{ starts, steps, extents []int64 }

func (c *call) slicing() (sl slicing) {
	s := c.in[0].shape
	starts, ok1 := c.list("starts", 1)
	ends, ok2 := c.list("ends", 2)
	if !ok1 || !ok2 {
		c.fail("has no starts or no ends")
	}
	axes, ok := c.list("axes", 3)
	if !ok {
		axes = model.Dims(0, len(starts))
	}
	steps, ok := c.list("steps", 4)
	if !ok {
		steps = slices.Repeat([]int64{1}, len(starts))
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		c.fail("has %d starts, %d ends, %d axes and %d steps", len(starts), len(ends), len(axes), len(steps))
	}
	c.axes(axes, len(s)) // none twice
	sl = slicing{make([]int64, len(s)), slices.Repeat([]int64{1}, len(s)), s.Clone()}
	for i, a := range axes {
		d := c.axis(a, len(s))
		n, step := s[d], steps[i]
		if step == 0 || step == math.MinInt64 {
			c.fail("has step %d", step)
		}
		at := func(p int64) int64 {
			if p < 0 {
				p += n
			}
			return p
		}
		lo, hi := at(starts[i]), at(ends[i])
		if step > 0 {
			lo, hi = min(max(lo, 0), n), min(max(hi, 0), n)
			sl.extents[d] = max(0, (hi-lo+min(step, n+1)-1)/min(step, n+1))
			step = min(step, n+1)
		} else {
			lo, hi = min(max(lo, 0), n-1), min(max(hi, -1), n-1)
			step = max(step, -n-1)
			sl.extents[d] = max(0, (lo-hi-step-1)/-step)
		}
		sl.starts[d], sl.steps[d] = lo, step
	}
	return sl
}

func slice(c *call) {
	sl := c.slicing()
	c.emit("Slice", model.Attr{Starts: sl.starts, Steps: sl.steps, Shape: sl.extents}, args(c.in[0]))
}

func foldSlice(c *call) *literal {
	sl := c.slicing()
	l := c.in[0].lit
	st := rowMajor(l.shape)
	return l.gather(sl.extents, func(ix []int64) (at int64) {
		for d := range ix {
			at += (sl.starts[d] + ix[d]*sl.steps[d]) * st[d]
		}
		return at
	})
}

func pad(c *call) {
	rank, name := len(c.in[0].shape), "pads"
	if c.has("paddings") {
		name = "paddings" // the first operator set
	}
	p, ok := c.list(name, 1)
	if !ok {
		c.fail("has no pads")
	}
	if axes, ok := c.list("axes", 3); ok {
		c.axes(axes, rank) // none twice
		if len(p) != 2*len(axes) {
			c.fail("has %d pads for %d axes", len(p), len(axes))
		}
		whole := make([]int64, 2*rank)
		for i, a := range axes {
			d := c.axis(a, rank)
			whole[d], whole[rank+d] = p[i], p[len(axes)+i]
		}
		p = whole
	}
	for _, v := range p {
		if v < -model.MaxElements || v > model.MaxElements {
			c.fail("pads %v are too large", p)
		}
	}
	c.one("mode", "constant", "constant", "reflect", "edge", "wrap")
	c.leave("mode")
	c.note("value", c.in[2])
	c.emit("Pad", model.Attr{Pads: p}, args(c.in[0]))
}

func gather(c *call) {
	attr := c.axisAttr(0)
	if n := c.in[0].shape[attr.Axis]; c.in[1].lit != nil && (attr.Axis > 0 || c.batch == c.fileBatch) {
		for _, k := range c.in[1].lit.ints {
			c.inRange(k, n)
		}
	}
	c.emit(c.row.kind, attr, args(c.in...))
}

// inRange refuses an index that n elements do not have.
func (c *call) inRange(k, n int64) {
	if k < -n || k >= n {
		c.fail("found index %d in %q, expected one of %d elements", k, c.in[1].name, n)
	}
}

func foldGather(c *call) *literal {
	l, ix := c.in[0].lit, c.in[1].lit
	axis := c.axis(c.int("axis", 0), len(l.shape))
	out := slices.Concat(l.shape[:axis], ix.shape, l.shape[axis+1:])
	if !fits(out) || ix.isFloat() {
		return nil
	}
	n, outer, inner := l.shape[axis], l.shape[:axis].Elements(), l.shape[axis+1:].Elements()
	var index []int64
	for o := range outer {
		for _, k := range ix.ints {
			c.inRange(k, n)
			for i := range inner {
				index = append(index, (o*n+(k+n)%n)*inner+i)
			}
		}
	}
	return l.pick(out, index)
}

func (c *call) expandTarget() model.Shape {
	target, _ := c.list("", 1)
	if len(target) > maxRank {
		c.fail("the target has %d dimensions, more than %d", len(target), maxRank)
	}
	if own := c.ownInput(); own != nil && c.sameInFile(1) && c.fileBatch > 1 && len(target) > 0 &&
		target[0] == c.fileBatch && (len(own.shape) < len(target) || own.shape[0] == 1) {
		// One for all images becomes one for each: a class token.
		target = slices.Clone(target)
		target[0] = c.batch
	}
	s, err := model.Broadcast(c.in[0].shape, target)
	if err != nil {
		c.fail("%v", err)
	}
	return s
}

func expand(c *call) { c.emit("Expand", model.Attr{Shape: c.expandTarget()}, args(c.in[0])) }

func foldExpand(c *call) *literal {
	s := c.expandTarget()
	if !fits(s) {
		return nil
	}
	return c.in[0].lit.spread(s)
}

// peek is an attribute that stays part of the operator's variant.
func (c *call) peek(name, def string) string {
	if a := c.get(name, attrS, typeString, "a string"); a != nil {
		c.read &^= 1 << slices.Index(c.node.attrs, a)
		return a.s
	}
	return def
}

func upsample(c *call) {
	mode := c.peek("mode", "nearest")
	if mode != "nearest" {
		c.extra = append(c.extra, "coordinate_transformation_mode=asymmetric")
	}
	if a := c.find("scales"); a != nil {
		f := make([]float64, len(a.floats))
		for i, v := range a.floats {
			f[i] = float64(v)
		}
		c.scale(f, nil, mode)
		return
	}
	c.scale(c.scales(1), nil, mode)
}

// scales are known floats.
func (c *call) scales(i int) []float64 {
	if i >= len(c.in) || c.in[i] == nil {
		return nil
	}
	v := c.in[i]
	if v.lit == nil || !v.lit.isFloat() {
		c.fail("scales (%q) are not known", v.name)
	}
	return v.lit.floats
}

func resize(c *call) {
	rank := len(c.in[0].shape)
	mode := c.peek("mode", "nearest")
	if c.opset < 11 {
		c.scale(c.scales(1), nil, mode)
		return
	}
	rule := c.peek("coordinate_transformation_mode", "half_pixel")
	round := c.peek("nearest_mode", "round_prefer_floor")
	usual := rule == "half_pixel" || rule == "asymmetric" && round == "floor"
	if rule == "tf_crop_and_resize" {
		c.unsupported("crops (tf_crop_and_resize)")
	}
	if mode == "nearest" && !usual {
		mode = "linear" // either neighbour may be the one
	}
	f := c.scales(2)
	size, _ := c.list("", 3)
	if own := c.ownInput(); own != nil && len(size) == len(own.shape) && c.sameInFile(3) {
		// What the file does not scale follows the batch.
		size = slices.Clone(size)
		for d, n := range own.shape {
			if size[d] == n && d < rank {
				size[d] = c.in[0].shape[d]
			}
		}
	}
	axes, ok := c.ints("axes")
	if policy := c.str("keep_aspect_ratio_policy", "stretch"); policy != "stretch" && len(size) > 0 {
		size = c.keepRatio(size, axes, policy)
	}
	if ok {
		c.axes(axes, rank) // none twice
	}
	if ok {
		whole, factors := c.in[0].shape.Clone(), slices.Repeat([]float64{1}, rank)
		for i, a := range axes {
			d := c.axis(a, rank)
			if i < len(size) {
				whole[d] = size[i]
			}
			if i < len(f) {
				factors[d] = f[i]
			}
		}
		if max(len(size), len(f)) != len(axes) {
			c.fail("has %d scales and %d sizes for %d axes", len(f), len(size), len(axes))
		}
		if len(size) > 0 {
			size = whole
		} else {
			f = factors
		}
	}
	c.scale(f, size, mode)
}

// keepRatio gives the sizes that are meant if all axes are scaled alike: so much that
// none becomes larger, or none smaller, than the size given for it.
func (c *call) keepRatio(size, axes []int64, policy string) []int64 {
	x := c.in[0].shape
	if len(axes) == 0 {
		axes = model.Dims(0, len(x))
	}
	if len(size) != len(axes) {
		c.fail("has %d sizes for %d axes", len(size), len(axes))
	}
	var factor float64
	for i, a := range axes {
		f := float64(size[i]) / float64(x[c.axis(a, len(x))])
		if i == 0 || policy == "not_larger" && f < factor || policy == "not_smaller" && f > factor {
			factor = f
		}
	}
	if policy != "not_larger" && policy != "not_smaller" {
		c.fail("keep_aspect_ratio_policy is %q, expected stretch, not_larger or not_smaller", policy)
	}
	kept := make([]int64, len(size))
	for i, a := range axes {
		e := math.Round(factor * float64(x[c.axis(a, len(x))]))
		if !(e >= 1) || e > float64(model.MaxElements) {
			c.fail("sizes %v for shape %v", size, x)
		}
		kept[i] = int64(e)
	}
	return kept
}

// neighbours are how many elements a mode of interpolation reads per dimension.
var neighbours = map[string]int64{"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4}

// scale re-samples by factors, or to a size.
func (c *call) scale(f []float64, size []int64, mode string) {
	x := c.in[0].shape
	switch {
	case len(size) > 0 && len(size) != len(x):
		c.fail("sizes %v for shape %v", size, x)
	case len(size) == 0 && len(f) != len(x):
		c.fail("has %d scales for shape %v", len(f), x)
	}
	k, known := neighbours[mode]
	if !known {
		c.fail("mode is %q, expected nearest, linear or cubic", mode)
	}
	a := model.Attr{Shape: slices.Clone(size)}
	for d, n := range x {
		if len(size) == 0 {
			e := scaledExtent(f[d], n)
			if e < 1 {
				c.fail("scales %v by %v", x, f)
			}
			a.Shape = append(a.Shape, e)
		}
		a.Kernel = append(a.Kernel, 1)
		if a.Shape[d] != n {
			a.Kernel[d] = k
		}
	}
	c.emit("Resize", a, args(c.in[0]))
}

// scaledExtent is an extent times a factor; 0 if that is no extent. Not
// quite a whole number, such as 2.9999998 times 10, is meant as one.
func scaledExtent(f float64, n int64) int64 {
	e := math.Floor(f*float64(n) + 1e-4)
	if !(f > 0) || e < 1 || e > float64(model.MaxElements) {
		return 0
	}
	return int64(e)
}

// grown is n in proportion to an extent that grows from own to now.
func (c *call) grown(n, own, now int64) int64 {
	if own == now || own < 1 || n > model.MaxElements || n*now%own != 0 {
		return n
	}
	return n * now / own
}

// ownInput is the first input as it is at the file's own batch; nil if that is the one being built.
func (c *call) ownInput() *value {
	if c.own == nil || len(c.node.inputs) == 0 {
		return nil
	}
	return c.own[c.node.inputs[0]]
}
