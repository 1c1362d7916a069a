package onnx

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Losses, and the gradients that the ONNX Runtime puts into training graphs. A gradient
// becomes operators of the same shapes and of about its work: where the derivative is
// another function than the operator, the operator stands for it, as it costs as much.

// alike reports whether values are floats of one type, and fails where they are not.
func (c *call) alike(vs ...*value) bool {
	for _, v := range vs {
		if c.err == nil && v != nil && (!v.dtype.IsFloat() || v.dtype != vs[0].dtype) {
			c.fail("input %q has type %v, expected floating-point numbers of one type", v.name, v.dtype)
		}
	}
	return c.err == nil
}

// gradient is dY times the derivative of an element-wise operator at X, to which a bias may be added before.
func gradient(kind model.Kind) func(*call) {
	return func(c *call) {
		if !c.alike(c.in...) {
			return
		}
		x := operandOf(c.in[1])
		if len(c.in) > 2 && c.in[2] != nil {
			x = operandOf(c.step("bias", "Add", model.Attr{}, x, arg{c.in[2], parameter}))
		}
		c.extra = append(c.extra, "of "+c.node.op) // not the operator itself, which may read the same
		d := c.step("derivative", kind, model.Attr{Variant: c.variant()}, x)
		c.finish("Mul", model.Attr{}, operandOf(c.in[0]), operandOf(d))
	}
}

// gradientOfOutput is dY times a polynomial of the operator's output.
func gradientOfOutput(c *call) {
	if !c.alike(c.in...) {
		return
	}
	y := operandOf(c.in[1])
	d := c.step("derivative", "Mul", model.Attr{}, y, y)
	c.finish("Mul", model.Attr{}, operandOf(c.in[0]), operandOf(d))
}

// axesOf are the axes over which a softmax goes.
func axesOf(a model.Attr) []int64 {
	if len(a.Axes) > 0 {
		return a.Axes
	}
	return []int64{a.Axis}
}

// softmaxGrad is (dY - sum dY Y) Y.
func softmaxGrad(attr func(*call) model.Attr) func(*call) {
	return func(c *call) {
		axes := axesOf(attr(c))
		if !c.alike(c.in...) {
			return
		}
		dY, y := operandOf(c.in[0]), operandOf(c.in[1])
		p := c.step("product", "Mul", model.Attr{}, dY, y)
		s := c.step("sum", "ReduceSum", model.Attr{Axes: axes, KeepDims: true}, operandOf(p))
		d := c.step("difference", "Sub", model.Attr{}, dY, operandOf(s))
		c.finish("Mul", model.Attr{}, operandOf(d), y)
	}
}

// logSoftmaxGrad is dY - exp(Y) sum dY.
func logSoftmaxGrad(attr func(*call) model.Attr) func(*call) {
	return func(c *call) {
		axes := axesOf(attr(c))
		if !c.alike(c.in...) {
			return
		}
		dY := operandOf(c.in[0])
		s := c.step("sum", "ReduceSum", model.Attr{Axes: axes, KeepDims: true}, dY)
		e := c.step("softmax", "Exp", model.Attr{}, operandOf(c.in[1]))
		p := c.step("product", "Mul", model.Attr{}, operandOf(e), operandOf(s))
		c.finish("Sub", model.Attr{}, dY, operandOf(p))
	}
}

// normGrad gives the gradients of the input, the scale and the bias of a normalisation over the last dimensions.
func normGrad(kind model.Kind) func(*call) {
	return func(c *call) {
		dY, x := operandOf(c.in[0]), operandOf(c.in[1])
		axis := c.axis(c.int("axis", -1), len(c.in[1].shape))
		if !c.alike(c.in[:3]...) {
			return
		}
		n := c.step("normal", kind, model.Attr{Axis: int64(axis), Variant: c.variant()}, x, arg{c.in[2], parameter})
		c.finish("Mul", model.Attr{}, dY, operandOf(n))
		leading := dims(0, axis)
		if len(c.node.outputs) > 1 && c.node.outputs[1] != "" {
			c.yield(1, "scale", "ReduceSum", model.Attr{Axes: leading}, operandOf(c.step("product", "Mul", model.Attr{}, dY, x)))
		}
		c.yield(2, "bias", "ReduceSum", model.Attr{Axes: leading}, dY)
	}
}

// yield binds output i, if it has a name, to what an operator gives.
func (c *call) yield(i int, suffix string, kind model.Kind, attr model.Attr, in ...arg) {
	if i < len(c.node.outputs) && c.node.outputs[i] != "" && c.err == nil {
		c.hand(i, c.step(suffix, kind, attr, in...))
	}
}

// hand binds output i to a value that has a name of its own.
func (c *call) hand(i int, v *value) {
	y := *v
	c.bind(i, &y)
}

// reads reports whether somebody reads output i.
func (c *call) reads(i int) bool {
	return i < len(c.node.outputs) && c.node.outputs[i] != "" && c.used[c.node.outputs[i]]
}

// zeros is a tensor to add gradients to.
func (c *call) zeros(shape []int64, dt model.DType) arg {
	return operandOf(c.step("zeros", "Expand", model.Attr{Shape: slices.Clone(shape)}, operandOf(c.number("zero", dt))))
}

// pooled is the shape of what a pool has read whose gradient is the call's first input: that
// which the file declares or another value tells, or else the least that fits.
func (c *call) pooled(a model.Attr, like *value) model.Shape {
	dY := c.in[0].shape
	if shape, _, _ := c.stated(c.node.outputs[0]); len(shape) == len(dY) {
		return shape
	}
	if like != nil {
		return like.shape
	}
	shape := dY[:2].Clone()
	for i, n := range dY[2:] {
		shape = append(shape, a.Strides[i]*(n-1)+(a.Kernel[i]-1)*a.Dilations[i]+1-a.Pads[i]-a.Pads[len(a.Kernel)+i])
	}
	if err := shape.Check(); err != nil {
		c.fail("gradient %v is not that of such a pool: %v", dY, err)
	}
	return shape
}

// maxPoolGrad adds each gradient to where the largest element was.
func maxPoolGrad(c *call) {
	if !c.alike(c.in[0]) {
		return
	}
	if !c.in[0].shape.Equal(c.in[1].shape) {
		c.fail("gradient %v and positions %v, expected one shape", c.in[0].shape, c.in[1].shape)
		return
	}
	c.pool(func(a model.Attr) {
		if shape := c.pooled(a, c.in[1].within); c.err == nil {
			c.finish("Scatter", model.Attr{}, c.zeros(shape, c.in[0].dtype), operandOf(c.in[1]), operandOf(c.in[0]))
		}
	})
}

// averagePoolGrad spreads each gradient over its window: where windows are one step apart, this
// is a pool of the gradients, and else a re-sampling.
func averagePoolGrad(c *call) {
	if !c.alike(c.in[0]) {
		return
	}
	c.pool(func(a model.Attr) {
		dY, n := c.in[0], len(a.Kernel)
		shape := c.pooled(a, c.in[1])
		if c.err == nil && len(shape) != n+2 {
			c.fail("gradient %v of an input %v, expected equally many dimensions", dY.shape, shape)
		}
		if c.err != nil {
			return
		}
		back, near := a, model.Attr{Shape: shape.Clone(), Kernel: []int64{1, 1}}
		back.Pads, back.CeilMode = nil, false
		for i, k := range a.Kernel {
			if shape[2+i] == dY.shape[2+i] {
				near.Kernel = append(near.Kernel, 1)
			} else {
				near.Kernel = append(near.Kernel, min((k-1)/max(1, a.Strides[i])+1, dY.shape[2+i]))
			}
		}
		for i, p := range a.Pads {
			back.Pads = append(back.Pads, (a.Kernel[i%n]-1)*a.Dilations[i%n]-p)
		}
		fits := slices.Max(a.Strides) == 1 && slices.Min(back.Pads) >= 0
		for i := range n {
			fits = fits && a.Kernel[i] <= dY.shape[2+i] &&
				dY.shape[2+i]+back.Pads[i]+back.Pads[n+i]-(a.Kernel[i]-1)*a.Dilations[i] == shape[2+i]
		}
		if fits {
			c.finish("AveragePool", back, operandOf(dY))
		} else {
			c.finish("Resize", near, operandOf(dY))
		}
	})
}

// gatherGrad adds each gradient to where it was read from.
func gatherGrad(shape, indices, gradient int) func(*call) {
	return func(c *call) {
		if list, _ := c.list("", shape); c.err == nil && c.alike(c.in[gradient]) {
			c.finish("Scatter", model.Attr{}, c.zeros(list, c.in[gradient].dtype), operandOf(c.in[indices]),
				operandOf(c.in[gradient]))
		}
	}
}

// butChannels lists the dimensions of images without that of channels.
func butChannels(rank int) []int64 { return append([]int64{0}, dims(2, rank)...) }

// convGrad gives the gradients of a convolution's input, a transposed convolution of dY; of its
// weights, the convolution of the input with dY where batch and channels of a group change
// places, and strides and dilations; and of its bias.
func convGrad(c *call) {
	dY, x, w := c.in[0], c.in[1], c.in[2]
	if !c.alike(c.in...) {
		return
	}
	a := c.convAttrOf(x, w)
	if c.err == nil && len(dY.shape) != len(x.shape) {
		c.fail("gradient %v and input %v, expected equally many dimensions", dY.shape, x.shape)
	}
	if c.err == nil && (a.Group < 1 || x.shape[1]%a.Group != 0) {
		c.fail("%d channels do not divide into %d groups", x.shape[1], a.Group)
	}
	if c.err != nil {
		return
	}
	n := len(w.shape) - 2
	back := a
	back.OutputPadding = make([]int64, n)
	for i := range n {
		k := (w.shape[2+i]-1)*a.Dilations[i] + 1
		back.OutputPadding[i] = x.shape[2+i] + a.Pads[i] + a.Pads[n+i] - (a.Strides[i]*(dY.shape[2+i]-1) + k)
		if back.OutputPadding[i] < 0 || back.OutputPadding[i] >= a.Strides[i] {
			c.fail("gradient %v is not that of a convolution of %v with %v", dY.shape, x.shape, w.shape)
			return
		}
	}
	c.yield(0, "input", "ConvTranspose", back, operandOf(dY), arg{w, parameter})
	if len(c.node.outputs) > 1 && c.node.outputs[1] != "" {
		turn := model.Attr{Perm: append([]int64{1, 0}, dims(2, 2+n)...)}
		b := a
		b.Strides, b.Dilations, b.Pads = a.Dilations, a.Strides, slices.Clone(a.Pads)
		// What no window reaches, behind the last, would give more than the kernel.
		used := model.Attr{Shape: slices.Clone(x.shape), Starts: make([]int64, n+2), Steps: slices.Repeat([]int64{1}, n+2)}
		for i, left := range back.OutputPadding {
			pad := min(left, b.Pads[n+i])
			b.Pads[n+i] -= pad
			used.Shape[2+i] -= left - pad
		}
		if !x.shape.Equal(used.Shape) {
			x = c.step("used", "Slice", used, operandOf(x))
		}
		xt := x
		if a.Group == 1 {
			xt = c.step("turned", "Transpose", turn, operandOf(x))
		} else if c.err == nil {
			// The samples of a group are the channels of its convolution.
			split := slices.Concat(model.Shape{x.shape[0], a.Group, x.shape[1] / a.Group}, x.shape[2:])
			joined := slices.Concat(model.Shape{split[2], split[1] * split[0]}, x.shape[2:])
			perm := model.Attr{Perm: append([]int64{2, 1, 0}, dims(3, 3+n)...)}
			xt = c.step("groups", "Reshape", model.Attr{Shape: split}, operandOf(x))
			xt = c.step("groups/turned", "Transpose", perm, operandOf(xt))
			xt = c.step("turned", "Reshape", model.Attr{Shape: joined}, operandOf(xt))
		}
		gt := c.step("kernel", "Transpose", turn, operandOf(dY))
		wt := c.step("product", "Conv", b, operandOf(xt), operandOf(gt))
		c.yield(1, "weights", "Transpose", turn, operandOf(wt))
	}
	c.yield(2, "bias", "ReduceSum", model.Attr{Axes: butChannels(2 + n)}, operandOf(dY))
}

// batchNormGrad gives the gradients of the input, which passes twice, of the scale and of the bias.
func batchNormGrad(c *call) {
	if len(c.in[1].shape) < 2 || !c.alike(c.in...) {
		c.fail("input %q has shape %v, expected at least two dimensions", c.in[1].name, c.in[1].shape)
		return
	}
	dY, x, scale := operandOf(c.in[0]), operandOf(c.in[1]), arg{c.in[2], parameter}
	mean, variance := arg{c.in[3], statistic}, arg{c.in[4], statistic}
	normal := c.step("normal", "BatchNorm", model.Attr{Variant: c.variant()}, x, scale, scale, mean, variance)
	product := c.step("product", "Mul", model.Attr{}, dY, operandOf(normal))
	c.yield(0, "input", "BatchNorm", model.Attr{}, operandOf(product), scale, scale, mean, variance)
	all := butChannels(len(c.in[1].shape))
	c.yield(1, "scale", "ReduceSum", model.Attr{Axes: all}, operandOf(product))
	c.yield(2, "bias", "ReduceSum", model.Attr{Axes: all}, dY)
}

// likelihood finishes with the loss of labels, given the logarithms of the classes' probabilities along dimension 1.
func (c *call) likelihood(logs, labels, weights *value) {
	reduction := c.str("reduction", "mean")
	if !c.alike(logs, weights) {
		return
	}
	if len(logs.shape) < 2 || len(labels.shape) != len(logs.shape)-1 {
		c.fail("labels %q have shape %v, expected that of %v without dimension 1", labels.name, labels.shape, logs.shape)
		return
	}
	column := labels.shape.Clone()
	column = append(column[:1:1], append(model.Shape{1}, column[1:]...)...)
	ix := c.step("labels", "Reshape", model.Attr{Shape: column}, operandOf(labels))
	p := c.step("chosen", "GatherElements", model.Attr{Axis: 1}, operandOf(logs), operandOf(ix))
	l := c.step("losses", "Reshape", model.Attr{Shape: labels.shape.Clone()}, operandOf(p))
	if weights != nil {
		w := c.step("weights", "Gather", model.Attr{}, arg{weights, parameter}, operandOf(labels))
		l = c.step("weighted", "Mul", model.Attr{}, operandOf(l), operandOf(w))
	}
	all := dims(0, len(labels.shape))
	switch reduction {
	case "none":
		c.finish("Neg", model.Attr{}, operandOf(l))
	case "sum":
		c.finish("ReduceSum", model.Attr{Axes: all}, operandOf(l))
	case "mean":
		c.finish("ReduceMean", model.Attr{Axes: all}, operandOf(l))
	default:
		c.fail("reduction is %q, expected none, sum or mean", reduction)
	}
}

func crossEntropy(c *call) {
	if len(c.in[0].shape) < 2 || !c.alike(c.in[0]) {
		c.fail("scores %q have shape %v and type %v, expected floating-point numbers of at least two dimensions",
			c.in[0].name, c.in[0].shape, c.in[0].dtype)
		return
	}
	p := c.step("softmax", "Softmax", model.Attr{Axis: 1}, operandOf(c.in[0]))
	logs := c.step("log", "Log", model.Attr{}, operandOf(p))
	if c.err != nil {
		return
	}
	c.likelihood(logs, c.in[1], c.in[2])
	y := *logs
	c.bind(1, &y)
}

func likelihoodLoss(c *call) { c.likelihood(c.in[0], c.in[1], c.in[2]) }

// crossEntropyGrad is (exp of the logarithms, less 1 at the label) times dY.
func crossEntropyGrad(c *call) {
	if !c.alike(c.in[:2]...) {
		return
	}
	dY := operandOf(c.in[0])
	if labels := c.in[2].shape; len(dY.v.shape) > 0 && dY.v.shape.Elements() != 1 { // a gradient for each sample
		if !dY.v.shape.Equal(labels) || len(labels) == 0 {
			c.fail("gradient %v of the loss of labels %v, expected one number or as many", dY.v.shape, labels)
			return
		}
		dY = operandOf(c.step("column", "Reshape", model.Attr{Shape: slices.Insert(slices.Clone(labels), 1, 1)}, dY))
	}
	e := c.step("softmax", "Exp", model.Attr{}, operandOf(c.in[1]))
	c.finish("Mul", model.Attr{}, operandOf(e), dY)
}

// dropoutGrad lets dY through where the mask is set.
func dropoutGrad(c *call) {
	dY, mask := c.in[0], c.in[1]
	if mask.dtype == model.Bool {
		c.finish("Where", model.Attr{}, operandOf(mask), operandOf(dY), operandOf(c.number("zero", dY.dtype)))
	} else if c.alike(dY, mask) {
		c.finish("Mul", model.Attr{}, operandOf(dY), operandOf(mask))
	}
}

// trained notes what a normalisation in training mode yields beside its result: the mean and the
// deviation of its rows, each at the cost of a mean.
func (c *call) trained(axis int, names ...string) {
	mean := model.Attr{KeepDims: true, Axes: dims(axis, len(c.in[0].shape))}
	for i, name := range names {
		if c.reads(1 + i) {
			c.yield(1+i, name, "ReduceMean", mean, operandOf(c.in[0]))
		}
	}
}

// trainedBatchNorm normalises by mean and variance of the batch, and lets the running ones follow.
func trainedBatchNorm(c *call) {
	x := c.in[0]
	if len(x.shape) < 2 || !c.alike(c.in...) {
		c.fail("input %q has shape %v, expected at least two dimensions", x.name, x.shape)
		return
	}
	over := model.Attr{Axes: butChannels(len(x.shape))}
	mean := c.step("mean", "ReduceMean", over, operandOf(x))
	square := c.step("square", "Mul", model.Attr{}, operandOf(x), operandOf(x))
	variance := c.step("variance", "ReduceMean", over, operandOf(square))
	c.finish("BatchNorm", model.Attr{Variant: c.variant()}, operandOf(x), arg{c.in[1], parameter}, arg{c.in[2], parameter},
		arg{mean, statistic}, arg{variance, statistic})
	if c.reads(1) {
		c.hand(1, c.follow("running/mean", arg{c.in[3], statistic}, mean))
	}
	if c.reads(2) {
		c.hand(2, c.follow("running/variance", arg{c.in[4], statistic}, variance))
	}
	if c.reads(3) {
		c.hand(3, mean)
	}
	if c.reads(4) {
		root := c.step("deviation", "Sqrt", model.Attr{}, operandOf(variance))
		c.yield(4, "deviation/inverse", "Reciprocal", model.Attr{}, operandOf(root))
	}
}

// trainedDropout keeps what a mask lets through.
func trainedDropout(c *call) {
	if !c.alike(c.in[0]) {
		return
	}
	x, dt := operandOf(c.in[0]), c.in[0].dtype
	mask := c.step("mask", "Greater", model.Attr{}, x, operandOf(c.number("ratio", dt)))
	c.finish("Where", model.Attr{}, operandOf(mask), x, operandOf(c.number("zero", dt)))
	c.hand(1, mask)
}

// follow is a running mean: parts of the old one and of x.
func (c *call) follow(suffix string, old arg, x *value) *value {
	kept := c.step(suffix+"/kept", "Mul", model.Attr{}, old, operandOf(c.number(suffix+"/share", old.v.dtype)))
	part := c.step(suffix+"/part", "Mul", model.Attr{}, operandOf(x), operandOf(c.number(suffix+"/rest", old.v.dtype)))
	return c.step(suffix, "Add", model.Attr{}, operandOf(kept), operandOf(part))
}

// optimised is the gradient of weights in their type, for an optimiser.
func (c *call) optimised(prefix string, x, gradient *value, state ...*value) (g arg, ok bool) {
	if c.err != nil {
		return arg{}, false
	}
	for _, v := range append(state, x, gradient) {
		if !v.dtype.IsFloat() || !v.shape.Equal(x.shape) {
			c.fail("%q has shape %v and type %v, expected those of the weights %q, %v %v", v.name, v.shape, v.dtype,
				x.name, x.shape, x.dtype)
			return arg{}, false
		}
	}
	if gradient.dtype != x.dtype {
		gradient = c.step(prefix+"gradient", "Cast", model.Attr{Axis: int64(x.dtype)}, operandOf(gradient))
	}
	return operandOf(gradient), c.err == nil
}

// descend is x less a part of a step.
func (c *call) descend(prefix string, x *value, step arg) *value {
	part := c.step(prefix+"step", "Mul", model.Attr{}, step, operandOf(c.number(prefix+"rate", x.dtype)))
	return c.step(prefix+"weights", "Sub", model.Attr{}, arg{x, parameter}, operandOf(part))
}

// scaled is g by the root of its mean square.
func (c *call) scaled(prefix string, g arg, square *value) arg {
	root := c.step(prefix+"root", "Sqrt", model.Attr{}, operandOf(square))
	root = c.step(prefix+"root/shifted", "Add", model.Attr{}, operandOf(root),
		operandOf(c.number(prefix+"epsilon", square.dtype)))
	return operandOf(c.step(prefix+"scaled", "Div", model.Attr{}, g, operandOf(root)))
}

// squared is the square of the gradient.
func (c *call) squared(prefix string, g arg) *value {
	return c.step(prefix+"square", "Mul", model.Attr{}, g, g)
}

// An optimiser's rule gives the new weight and the new state.
type rule func(c *call, prefix string, x *value, g arg, state []*value) []*value

func adamRule(c *call, prefix string, x *value, g arg, state []*value) []*value {
	m := c.follow(prefix+"moment1", arg{state[0], statistic}, g.v)
	v := c.follow(prefix+"moment2", arg{state[1], statistic}, c.squared(prefix, g))
	return []*value{c.descend(prefix, x, c.scaled(prefix, operandOf(m), v)), m, v}
}

func momentumRule(c *call, prefix string, x *value, g arg, state []*value) []*value {
	m := c.follow(prefix+"moment", arg{state[0], statistic}, g.v)
	return []*value{c.descend(prefix, x, operandOf(m)), m}
}

func adagradRule(c *call, prefix string, x *value, g arg, state []*value) []*value {
	h := c.step(prefix+"squares", "Add", model.Attr{}, arg{state[0], statistic}, operandOf(c.squared(prefix, g)))
	return []*value{c.descend(prefix, x, c.scaled(prefix, g, h)), h}
}

// optimiser is one of ai.onnx.preview.training: after rate and count, the weights, their
// gradients and their state, as many of each; it yields the new weights and state.
func optimiser(states int, next rule) func(*call) {
	return func(c *call) {
		groups := 2 + states
		n := (len(c.in) - 2) / groups
		if (len(c.in)-2)%groups != 0 || len(c.node.outputs) > n*(groups-1) {
			c.fail(
				"has %d inputs and %d outputs, expected two inputs and %d for each parameter, and at most %d outputs for each",
				len(c.in), len(c.node.outputs), groups, groups-1)
			return
		}
		for k := range n {
			of := func(group int) *value { return c.in[2+group*n+k] }
			prefix := ""
			if n > 1 {
				prefix = fmt.Sprintf("%d/", k)
			}
			var state []*value
			for s := range states {
				state = append(state, of(2+s))
			}
			if g, ok := c.optimised(prefix, of(0), of(1), state...); ok {
				for i, v := range next(c, prefix, of(0), g, state) {
					c.hand(i*n+k, v)
				}
			}
		}
	}
}

// sgdOptimizer yields the new weights and the scaled gradient.
func sgdOptimizer(c *call) {
	x := c.in[1]
	g, ok := c.optimised("", x, c.in[2])
	if !ok {
		return
	}
	part := c.step("gradient/scaled", "Mul", model.Attr{}, g, operandOf(c.in[0]))
	c.yield(0, "weights", "Sub", model.Attr{}, arg{x, parameter}, operandOf(part))
	if c.reads(1) {
		c.yield(1, "gradient/negative", "Neg", model.Attr{}, operandOf(part))
	}
}

// adamOptimizer yields the count, the moments, the weights, and the weights at half precision.
func adamOptimizer(c *call) {
	x, count := c.in[2], c.in[1]
	g, ok := c.optimised("", x, c.in[3], c.in[4], c.in[5])
	if !ok {
		return
	}
	made := adamRule(c, "", x, g, c.in[4:6])
	if c.reads(0) {
		c.yield(0, "count", "Add", model.Attr{}, arg{count, statistic}, operandOf(c.number("one", count.dtype)))
	}
	c.hand(1, made[1])
	c.hand(2, made[2])
	c.hand(3, made[0])
	if c.reads(5) && c.in[6] != nil {
		c.yield(5, "weights/half", "Cast", model.Attr{Axis: int64(c.in[6].dtype)}, operandOf(made[0]))
	}
}

// accumulate adds gradients up over several batches.
func accumulate(output int) func(*call) {
	return func(c *call) {
		if g, ok := c.optimised("", c.in[0], c.in[1]); ok {
			c.yield(output, "sum", "Add", model.Attr{}, arg{c.in[0], statistic}, g)
		}
	}
}
