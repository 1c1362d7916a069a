package onnx

import (
	"github.com/dsasched/dsasched/model"
)

// Losses, and what normalisations and dropout do in training mode.

// alike checks that values are floats of one type.
func (c *call) alike(vs ...*value) {
	for _, v := range vs {
		if v != nil && (!v.dtype.IsFloat() || v.dtype != vs[0].dtype) {
			c.fail("input %q has type %v, expected floating-point numbers of one type", v.name, v.dtype)
		}
	}
}

// yield binds output i, if it has a name, to what an operator gives.
func (c *call) yield(i int, suffix string, kind model.Kind, attr model.Attr, in ...arg) {
	if i < len(c.node.outputs) && c.node.outputs[i] != "" {
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

// butChannels lists the dimensions of images without that of channels.
func butChannels(rank int) []int64 { return append([]int64{0}, model.Dims(2, rank)...) }

// likelihood finishes with the loss of labels, given the logarithms of the classes' probabilities along dimension 1.
func (c *call) likelihood(logs, labels, weights *value) {
	reduction := c.str("reduction", "mean")
	c.alike(logs, weights)
	if len(logs.shape) < 2 || len(labels.shape) != len(logs.shape)-1 {
		c.fail("labels %q have shape %v, expected that of %v without dimension 1", labels.name, labels.shape, logs.shape)
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
	all := model.Dims(0, len(labels.shape))
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
	if len(c.in[0].shape) < 2 {
		c.fail("scores %q have shape %v and type %v, expected floating-point numbers of at least two dimensions",
			c.in[0].name, c.in[0].shape, c.in[0].dtype)
	}
	c.alike(c.in[0])
	p := c.step("softmax", "Softmax", model.Attr{Axis: 1}, operandOf(c.in[0]))
	logs := c.step("log", "Log", model.Attr{}, operandOf(p))
	c.likelihood(logs, c.in[1], c.in[2])
	y := *logs
	c.bind(1, &y)
}

func likelihoodLoss(c *call) { c.likelihood(c.in[0], c.in[1], c.in[2]) }

// trained notes what a normalisation in training mode yields beside its result: the mean and the
// deviation of its rows, each at the cost of a mean.
func (c *call) trained(axis int, names ...string) {
	mean := model.Attr{KeepDims: true, Axes: model.Dims(axis, len(c.in[0].shape))}
	for i, name := range names {
		if c.reads(1 + i) {
			c.yield(1+i, name, "ReduceMean", mean, operandOf(c.in[0]))
		}
	}
}

// trainedBatchNorm normalises by mean and variance of the batch, and lets the running ones follow.
func trainedBatchNorm(c *call) {
	x := c.in[0]
	if len(x.shape) < 2 {
		c.fail("input %q has shape %v, expected at least two dimensions", x.name, x.shape)
	}
	c.alike(c.in...)
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
	c.alike(c.in[0])
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
