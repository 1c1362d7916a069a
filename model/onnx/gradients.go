package onnx

import (
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

// gradient is dY times the derivative of an element-wise operator at X, to which a bias
// may be added before.
func gradient(kind model.Kind) func(*call) {
	return func(c *call) {
		if !c.alike(c.in...) {
			return
		}
		x := operandOf(c.in[1])
		if len(c.in) > 2 && c.in[2] != nil {
			x = operandOf(c.step("bias", "Add", model.Attr{}, x, arg{c.in[2], parameter}))
		}
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

// layerNormGrad gives the gradients of the input, the scale and the bias.
func layerNormGrad(c *call) {
	dY, x := operandOf(c.in[0]), operandOf(c.in[1])
	rank := len(c.in[1].shape)
	axis := c.axis(c.int("axis", -1), rank)
	if !c.alike(c.in[:3]...) {
		return
	}
	n := c.step("normal", "LayerNorm", model.Attr{Axis: int64(axis), Variant: c.variant()}, x, arg{c.in[2], parameter})
	c.finish("Mul", model.Attr{}, dY, operandOf(n))
	var leading []int64
	for d := range axis {
		leading = append(leading, int64(d))
	}
	if len(c.node.outputs) > 1 && c.node.outputs[1] != "" {
		c.yield(1, "scale", "ReduceSum", model.Attr{Axes: leading}, operandOf(c.step("product", "Mul", model.Attr{}, dY, x)))
	}
	c.yield(2, "bias", "ReduceSum", model.Attr{Axes: leading}, dY)
}

// yield binds output i, if somebody reads it, to what an operator gives.
func (c *call) yield(i int, suffix string, kind model.Kind, attr model.Attr, in ...arg) {
	if i < len(c.node.outputs) && c.node.outputs[i] != "" && c.err == nil {
		y := *c.step(suffix, kind, attr, in...)
		c.bind(i, &y)
	}
}

// convGrad gives the gradients of a convolution's input, a transposed convolution of dY; of its
// weights, the convolution of the input with dY where batch and channels change places, and
// strides and dilations; and of its bias.
func convGrad(c *call) {
	dY, x, w := c.in[0], c.in[1], c.in[2]
	if !c.alike(c.in...) {
		return
	}
	a := c.convAttrOf(x, w)
	if c.err == nil && len(dY.shape) != len(x.shape) {
		c.fail("gradient %v and input %v, expected equally many dimensions", dY.shape, x.shape)
	}
	if a.Group > 1 {
		c.unsupported("has %d groups", a.Group)
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
		turn := model.Attr{Perm: []int64{1, 0}}
		for d := range n {
			turn.Perm = append(turn.Perm, int64(2+d))
		}
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
		xt, gt := c.step("turned", "Transpose", turn, operandOf(x)), c.step("kernel", "Transpose", turn, operandOf(dY))
		wt := c.step("product", "Conv", b, operandOf(xt), operandOf(gt))
		c.yield(1, "weights", "Transpose", turn, operandOf(wt))
	}
	all := []int64{0}
	for d := range n {
		all = append(all, int64(2+d))
	}
	c.yield(2, "bias", "ReduceSum", model.Attr{Axes: all}, operandOf(dY))
}

// batchNormGrad gives the gradients of the input, which passes twice, of the scale and of the
// bias.
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
	all := []int64{0}
	for d := 2; d < len(c.in[1].shape); d++ {
		all = append(all, int64(d))
	}
	c.yield(1, "scale", "ReduceSum", model.Attr{Axes: all}, operandOf(product))
	c.yield(2, "bias", "ReduceSum", model.Attr{Axes: all}, dY)
}

// likelihood finishes with the loss of labels, given the logarithms of the classes'
// probabilities along dimension 1.
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
	var all []int64
	for d := range labels.shape {
		all = append(all, int64(d))
	}
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
		c.fail("scores %q have shape %v and type %v, expected floating-point numbers of at least two dimensions", c.in[0].name, c.in[0].shape, c.in[0].dtype)
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
	if dY := c.in[0]; len(dY.shape) > 0 && dY.shape.Elements() != 1 {
		c.unsupported("has a gradient for each sample")
		return
	}
	e := c.step("softmax", "Exp", model.Attr{}, operandOf(c.in[1]))
	c.finish("Mul", model.Attr{}, operandOf(e), operandOf(c.in[0]))
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
