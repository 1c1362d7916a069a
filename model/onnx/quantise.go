package onnx

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Quantised operators. Integers are multiplied as they are, zero points and scales being folded into one quantisation
// of the sums; the sums themselves, of 32 bits, are taken to stay in the matrix unit and have the operand's type in the
// graph.

func scaleArgs(vs ...*value) []arg {
	var as []arg
	for _, v := range vs {
		if v != nil {
			as = append(as, arg{v, statistic})
		}
	}
	return as
}

// quantAttr: scales per element of one dimension need its number.
func (c *call) quantAttr(x, scale *value, dt model.DType, axis int64) model.Attr {
	a := model.Attr{Axis: int64(dt)}
	if len(scale.shape) == 1 && scale.shape[0] > 1 {
		a.Axes = []int64{int64(c.axis(axis, len(x.shape)))}
	}
	return a
}

// integerType is the type of the zero points; unsigned bytes without one.
func (c *call) integerType(zero *value) model.DType {
	if zero != nil {
		return zero.dtype
	}
	return model.U8
}

// block reads the number of elements that share a scale, a power of two from 16 on.
func (c *call) block(def int64) int64 {
	b := c.int("block_size", def)
	if b < 16 || b > 1<<20 || bits.OnesCount64(uint64(b)) != 1 {
		c.fail("attribute \"block_size\" is %d, expected a power of two from 16 on", b)
	}
	return b
}

// perBlock verifies that a dimension of x has a scale for each block, and others one for each element.
func (c *call) perBlock(x model.Shape, scale *value, axis int, block int64) {
	want := x.Clone()
	want[axis] = (want[axis] + block - 1) / block
	if !scale.shape.Equal(want) {
		c.fail("scales %q have shape %v, expected %v for blocks of %d", scale.name, scale.shape, want, block)
	}
}

// blocks reads the blocks of the standard's quantisation, if it has some.
func (c *call) blocks() {
	if b := c.within("block_size", 0, 0, 1<<30); b > 0 {
		x := c.in[0].shape
		c.perBlock(x, c.in[1], c.axis(c.int("axis", 1), len(x)), b)
		c.leave("axis", "block_size")
	}
}

func quantize(c *call) {
	dt := c.integerType(c.in[2])
	if c.int("output_dtype", 0); c.in[2] == nil {
		dt = c.typeAttr("output_dtype", dt)
	}
	a := c.quantAttr(c.in[0], c.in[1], dt, c.int("axis", 1))
	c.blocks()
	c.emit("Quantize", a, slices.Concat(args(c.in[0]), scaleArgs(c.in[1:]...)))
}

func dequantize(c *call) {
	dt := c.typeAttr("output_dtype", c.in[1].dtype)
	a := c.quantAttr(c.in[0], c.in[1], dt, c.int("axis", 1))
	c.blocks()
	u := operand
	if c.in[0].constant {
		u = parameter // weights
	}
	c.emit("Dequantize", a, slices.Concat([]arg{{c.in[0], u}}, scaleArgs(c.in[1:]...)))
}

// dynamicScale computes a scale and a zero point from the range of values.
func (c *call) dynamicScale(x *value) (scale, zero *value) {
	a := model.Attr{Axes: model.Dims(0, len(x.shape))}
	hi := c.step("max", "ReduceMax", a, operandOf(x))
	lo := c.step("min", "ReduceMin", a, operandOf(x))
	span := c.step("range", "Sub", model.Attr{}, operandOf(hi), operandOf(lo))
	scale = c.step("scale", "Mul", model.Attr{}, operandOf(span), operandOf(c.number("1/255", x.dtype)))
	zero = c.step("zero", "Quantize", model.Attr{Axis: int64(model.U8)}, operandOf(lo), operandOf(scale))
	return scale, zero
}

func dynamicQuantize(c *call) {
	scale, zero := c.dynamicScale(c.in[0])
	c.finish("Quantize", model.Attr{Axis: int64(model.U8)}, operandOf(c.in[0]), operandOf(scale), operandOf(zero))
	c.bind(1, scale)
	c.bind(2, zero)
}

// requantize turns sums into the output's type.
func (c *call) requantize(sum, scale, zero *value, axis int64) {
	a := c.quantAttr(sum, scale, c.integerType(zero), axis)
	c.finish("Quantize", a, slices.Concat([]arg{operandOf(sum)}, scaleArgs(scale, zero))...)
}

// pair are an activation and a weight, or two activations.
func pair(x, w *value) []arg {
	if w.constant {
		return []arg{operandOf(x), {w, parameter}}
	}
	return args(x, w)
}

func qlinearConv(c *call) {
	x, w := c.in[0], c.in[3]
	in := pair(x, w)
	if c.in[8] != nil {
		in = append(in, arg{c.in[8], parameter})
	}
	c.in[1] = w // convAttr looks there
	a := c.convAttr()
	a.Variant = c.variant()
	c.requantize(c.step("sums", "Conv", a, in...), c.in[6], c.in[7], 1)
}

func qlinearMatMul(c *call) {
	y := c.step("sums", "MatMul", model.Attr{}, pair(c.in[0], c.in[3])...)
	c.requantize(y, c.in[6], c.in[7], -1)
}

func convInteger(c *call) {
	a := c.convAttr()
	a.Variant = c.variant()
	y := c.step("sums", "Conv", a, pair(c.in[0], c.in[1])...)
	c.finish("Cast", model.Attr{Axis: int64(model.I32)}, operandOf(y))
}

func matMulInteger(c *call) {
	y := c.step("sums", "MatMul", model.Attr{}, pair(c.in[0], c.in[1])...)
	c.finish("Cast", model.Attr{Axis: int64(model.I32)}, operandOf(y))
}

// qgemm: A, its scale and zero point, the same of B, a bias, and of the output;
// without the latter the output is of floats.
func qgemm(c *call) {
	in := pair(c.in[0], c.in[3])
	if c.in[6] != nil {
		in = append(in, arg{c.in[6], parameter})
	}
	var sums *value
	c.gemm(in, func(kind model.Kind, a model.Attr, in ...arg) { sums = c.step("sums", kind, a, in...) })
	switch {
	case c.in[7] != nil:
		c.requantize(sums, c.in[7], c.in[8], -1)
	default:
		c.toFloat(sums, c.in[4], nil)
	}
}

// toFloat turns sums into floats of the scale's type, and adds a bias.
func (c *call) toFloat(sums, scale, bias *value) {
	a := c.quantAttr(sums, scale, scale.dtype, -1)
	in := slices.Concat([]arg{operandOf(sums)}, scaleArgs(scale))
	if bias == nil {
		c.finish("Dequantize", a, in...)
		return
	}
	y := c.step("floats", "Dequantize", a, in...)
	c.finish("Add", model.Attr{}, operandOf(y), arg{bias, parameter})
}

func matMulToFloat(c *call) {
	c.toFloat(c.step("sums", "MatMul", model.Attr{}, pair(c.in[0], c.in[1])...), c.in[3], c.in[6])
}

func dynamicMatMul(c *call) {
	scale, zero := c.dynamicScale(c.in[0])
	x := c.step("quantize", "Quantize", model.Attr{Axis: int64(model.U8)}, operandOf(c.in[0]),
		operandOf(scale), operandOf(zero))
	c.toFloat(c.step("sums", "MatMul", model.Attr{}, pair(x, c.in[1])...), c.in[2], c.in[4])
}

// packedTypes gives the type of codes by their width in bits.
var packedTypes = map[int64]model.DType{2: model.U2, 3: model.U3, 4: model.U4, 5: model.U5, 6: model.U6, 7: model.U7,
	8: model.U8}

// matMulNBits has weights of N columns and K rows in blocks, packed to bytes.
func matMulNBits(c *call) {
	k, n := c.int("K", 0), c.int("N", 0)
	if k < 1 || n < 1 {
		c.fail("K is %d and N is %d, expected positive numbers", k, n)
	}
	width := c.within("bits", 4, 2, 8)
	w := c.in[1].part("unpacked", packedTypes[width], n, k)
	if _, err := elements(w.shape); err != nil {
		c.fail("%v", err)
	}
	// Unpacking goes with the conversion, which is part of loading the weights.
	block := c.block(0)
	c.leave("bits")
	each := (k-1)/block + 1
	packed, scaled := n*each*((block*width+7)/8), n*each
	if c.node.op == "MatMulBnb4" { // rows are not apart
		packed, scaled = (n*k+1)/2, (n*k-1)/block+1
	}
	if c.in[1].shape.Elements() != packed || c.in[2].shape.Elements() != scaled {
		c.fail("packed weights %v and scales %v, expected %d and %d elements", c.in[1].shape, c.in[2].shape, packed, scaled)
	}
	scales := []*value{c.in[2].part("unpacked", c.in[2].dtype, n, each)}
	if len(c.in) > 3 && c.in[3] != nil {
		zero := c.in[3].part("unpacked", c.in[3].dtype, n, each)
		if zero.dtype == model.U8 { // packed as the weights are
			zero.dtype = w.dtype
		}
		scales = append(scales, zero)
	}
	d := c.step("weights", "Dequantize", model.Attr{Axis: int64(c.in[0].dtype), Variant: c.variant()},
		slices.Concat([]arg{{w, parameter}}, scaleArgs(scales...))...)
	t := c.transposed("weights", operandOf(d), true)
	if len(c.in) < 6 || c.in[5] == nil {
		c.finish("MatMul", model.Attr{}, operandOf(c.in[0]), t)
		return
	}
	y := c.step("product", "MatMul", model.Attr{}, operandOf(c.in[0]), t)
	c.finish("Add", model.Attr{}, operandOf(y), arg{c.in[5], parameter})
}

// gatherQuantized looks rows up that are quantised in blocks, and their scales.
func gatherQuantized(c *call) {
	bits := c.int("bits", 4)
	if bits != 2 && bits != 4 && bits != 8 {
		c.fail("attribute \"bits\" is %d, expected 2, 4 or 8", bits)
	}
	w := c.in[0].part("unpacked", packedTypes[bits], c.in[0].shape.Clone()...)
	if c.in[0].dtype == model.U8 && len(w.shape) > 0 { // several to a byte
		w.shape[len(w.shape)-1] *= 8 / bits
	}
	if _, err := elements(w.shape); err != nil {
		c.fail("%v", err)
	}
	c.perBlock(w.shape, c.in[2], c.axis(c.int("quantize_axis", 1), len(w.shape)), c.block(128))
	c.leave("block_size")
	a := model.Attr{Axis: int64(c.axis(c.int("gather_axis", 0), len(w.shape)))}
	codes := c.step("codes", "Gather", a, arg{w, parameter}, operandOf(c.in[1]))
	scales := c.step("scales", "Gather", a, args(c.in[2], c.in[1])...)
	c.finish("Dequantize", model.Attr{Axis: int64(c.in[2].dtype), Variant: c.variant()}, operandOf(codes),
		arg{scales, statistic})
}

// qlinearBinary: A, scale, zero point, B, scale, zero point, output's scale and zero point.
func qlinearBinary(kind model.Kind) func(*call) {
	return func(c *call) {
		y := c.step("integers", kind, model.Attr{}, operandOf(c.in[0]), operandOf(c.in[3]))
		c.requantize(y, c.in[6], c.in[7], -1)
	}
}

// qlinearUnary: X, scale, zero point, output's scale and zero point.
func qlinearUnary(kind model.Kind) func(*call) {
	return func(c *call) {
		if kind == "GlobalAveragePool" {
			c.images(c.in[0])
			c.notChannelsLast()
		}
		y := c.step("integers", kind, model.Attr{Variant: c.variant()}, operandOf(c.in[0]))
		c.requantize(y, c.in[3], c.in[4], -1)
	}
}

// notChannelsLast refuses images with their channels in the last dimension.
func (c *call) notChannelsLast() {
	if c.bool("channels_last", false) {
		c.unsupported("has its channels in the last dimension")
	}
}

func qlinearPool(c *call) {
	c.notChannelsLast()
	var y *value
	c.pool(func(a model.Attr) { y = c.step("integers", "AveragePool", a, operandOf(c.in[0])) })
	c.requantize(y, c.in[3], c.in[4], -1)
}

func qlinearSoftmax(c *call) {
	a := lastAxis(c)
	if c.within("opset", 13, 1, math.MaxInt32) < 13 {
		a = softmaxFlatAttr(c)
	}
	y := c.step("integers", "Softmax", a, operandOf(c.in[0]))
	c.requantize(y, c.in[3], c.in[4], -1)
}

// qlinearConcat: the output's scale and zero point, then each part with its own.
func qlinearConcat(c *call) {
	if len(c.in)%3 != 2 {
		c.fail("has %d inputs, expected the output's scale and zero point and three for each part", len(c.in))
	}
	var parts []arg
	dt := c.integerType(c.in[1])
	for i := 2; i+2 < len(c.in); i += 3 {
		y := c.step(fmt.Sprintf("part%d", i/3), "Quantize", model.Attr{Axis: int64(dt)},
			slices.Concat([]arg{operandOf(c.in[i])}, scaleArgs(c.in[0]))...)
		parts = append(parts, operandOf(y))
	}
	c.finish("Concat", model.Attr{Axis: int64(c.axis(c.int("axis", 1), len(c.in[2].shape)))}, parts...)
}
