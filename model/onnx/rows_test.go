package onnx

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// rowCase is a file of one node for a row of the table.
type rowCase struct {
	row     string // as row.key has it
	opset   int64  // of the standard domain
	given   []msg  // inputs and initializers
	in, out string // names of values; "-" leaves one out
	attrs   []msg
	want    string // as summary has it, or an error
}

// names splits a list of names.
func (c *rowCase) names(s string) []string {
	list := strings.Fields(s)
	for i, n := range list {
		if n == "-" {
			list[i] = ""
		}
	}
	return list
}

func (c *rowCase) file() []byte {
	op, _, _ := strings.Cut(c.row, "@")
	dot := strings.LastIndexByte(op, '.')
	domain := op[:dot]
	if domain == shownDomain("") {
		domain = ""
	}
	parts := append(c.given[:len(c.given):len(c.given)],
		nodeOf(domain, op[dot+1:], "n", c.names(c.in), c.names(c.out), c.attrs...))
	for _, o := range c.names(c.out) {
		if o != "" {
			parts = append(parts, output(o))
		}
	}
	return file(c.opset, parts...)
}

// summary describes the graph of a file, and the results with their types; known
// values too. Or it is the error.
func summary(data []byte, opt Options) string {
	m, err := read(bytes.NewReader(data))
	if err != nil {
		return err.Error()
	}
	g, values, err := build("test.onnx", m, opt)
	if err != nil {
		return err.Error()
	}
	var s strings.Builder
	s.WriteString(describe(g))
	next := 0
	for _, v := range m.graph.outputs {
		if values[v.name].empty() {
			continue
		}
		t := g.Tensor(g.Outputs[next])
		next++
		fmt.Fprintf(&s, "> %s%v %v", t.Name, t.Shape, t.DType)
		if l := values[v.name].lit; l != nil {
			fmt.Fprint(&s, " =", l.ints, l.floats)
		}
		s.WriteByte('\n')
	}
	return s.String()
}

func of(name string, elem int64, dims ...any) msg {
	return msg(nil).sub(11, typed(name, elem, dims...))
}

// held is an initializer of a type, without data.
func held(name string, elem int64, dims ...int64) msg {
	return msg(nil).sub(5, tensor(name, elem, dims...))
}

func scalar(name string, v float32) msg {
	return msg(nil).sub(5, msg(nil).int(2, tFloat).str(8, name).float(4, v))
}

func parts(p ...msg) []msg { return p }

var (
	rowImage  = input("x", 1, 4, 8, 8)
	rowMatrix = input("x", 2, 6)
	rowTokens = input("x", 2, 3, 8)
	rowBytes  = of("x", tUint8, 2, 6)
)

// one is a case for an operator of one input whose shape and type do not matter.
func one(row string, opset int64, want string, attrs ...msg) rowCase {
	return rowCase{row, opset, parts(rowMatrix), "x", "y", attrs, "y[2,6] = " + want + "\n> y[2,6] f32\n"}
}

// two is a case for an operator that broadcasts its operands.
func two(row string, opset int64, elem int64, kind, dtype string) rowCase {
	return rowCase{row, opset, parts(of("x", elem, 2, 1, 3), of("z", elem, 4, 1)), "x z", "y", nil,
		"y[2,4,3] = " + kind + "(x z)\n> y[2,4,3] " + dtype + "\n"}
}

// rowCases have at least one case for each row. ONNX Runtime 1.24.1 yields the same
// shapes and types for them, and refuses what is refused, but for what it does not
// implement: the operators of this package's own domain, BiasAdd and
// SimplifiedLayerNormalization of com.microsoft, an Einsum whose "..." stand for
// different numbers of dimensions, and output_dtype of DequantizeLinear. It takes a
// computed bias of MultiHeadAttention, which is refused here.
var rowCases = []rowCase{
	// Recurrence, of a single step.
	{"ai.onnx.LSTM@7", 14, parts(input("x", 1, 2, 3), weights("w", 1, 16, 3), weights("r", 1, 16, 4)), "x w r", "y", nil, `n/inputs[2,3] = Reshape(x) Shape=[2 3]
n/products[2,16] = Gemm(n/inputs w/0/0:16*) TransB=true
n/step0/state[2,16] = Gemm(n/state/zero r/0/0:16*) TransB=true
n/step0/gates[2,16] = Add(n/products n/step0/state)
n/step0/gate:0[2,4] n/step0/gate:1[2,4] n/step0/gate:2[2,4] n/step0/gate:3[2,4] = Split(n/step0/gates) Axis=1 Splits=[4 4 4 4]
n/step0/input[2,4] = Sigmoid(n/step0/gate:0)
n/step0/output[2,4] = Sigmoid(n/step0/gate:1)
n/step0/new[2,4] = Tanh(n/step0/gate:3)
n/step0/forget[2,4] = Sigmoid(n/step0/gate:2)
n/step0/kept[2,4] = Mul(n/step0/forget n/cell/zero)
n/step0/added[2,4] = Mul(n/step0/input n/step0/new)
n/step0/cell[2,4] = Add(n/step0/kept n/step0/added)
n/step0/squashed[2,4] = Tanh(n/step0/cell)
n/step0/hidden[2,4] = Mul(n/step0/output n/step0/squashed)
n/sequence/direction0[1,1,2,4] = Reshape(n/step0/hidden) Shape=[1 1 2 4]
> n/sequence/direction0[1,1,2,4] f32
`},
	{"ai.onnx.GRU@7", 14, parts(input("x", 1, 2, 3), weights("w", 1, 12, 3), weights("r", 1, 12, 4)), "x w r", "y", nil, `n/inputs[2,3] = Reshape(x) Shape=[2 3]
n/products[2,12] = Gemm(n/inputs w/0/0:12*) TransB=true
n/step0/input:0[2,8] n/step0/input:1[2,4] = Split(n/products) Axis=1 Splits=[8 4]
n/step0/state[2,8] = Gemm(n/state/zero r/0/0:8*) TransB=true
n/step0/gates[2,8] = Add(n/step0/input:0 n/step0/state)
n/step0/gate:0[2,4] n/step0/gate:1[2,4] = Split(n/step0/gates) Axis=1 Splits=[4 4]
n/step0/update[2,4] = Sigmoid(n/step0/gate:0)
n/step0/reset[2,4] = Sigmoid(n/step0/gate:1)
n/step0/kept[2,4] = Mul(n/step0/reset n/state/zero)
n/step0/old[2,4] = Gemm(n/step0/kept r/0/8:12*) TransB=true
n/step0/sum[2,4] = Add(n/step0/input:1 n/step0/old)
n/step0/new[2,4] = Tanh(n/step0/sum)
n/step0/share[2,4] = Sub(n/one n/step0/update)
n/step0/added[2,4] = Mul(n/step0/share n/step0/new)
n/step0/carried[2,4] = Mul(n/step0/update n/state/zero)
n/step0/hidden[2,4] = Add(n/step0/added n/step0/carried)
n/sequence/direction0[1,1,2,4] = Reshape(n/step0/hidden) Shape=[1 1 2 4]
> n/sequence/direction0[1,1,2,4] f32
`},
	{"ai.onnx.RNN@7", 14, parts(input("x", 1, 2, 3), weights("w", 1, 4, 3), weights("r", 1, 4, 4), weights("b", 1, 8)),
		"x w r b", "- h", nil, `n/inputs[2,3] = Reshape(x) Shape=[2 3]
n/products[2,4] = Gemm(n/inputs w/0/0:4* b/0/0:4*) TransB=true
n/step0/state[2,4] = Gemm(n/state/zero r/0/0:4* b/0/4:8*) TransB=true
n/step0/sum[2,4] = Add(n/products n/step0/state)
n/step0/hidden[2,4] = Tanh(n/step0/sum)
n/last/direction0[1,2,4] = Reshape(n/step0/hidden) Shape=[1 2 4]
> n/last/direction0[1,2,4] f32
`},
	{"ai.onnx.Hardmax@1", 13, parts(rowMatrix), "x", "y", nil, `n/largest[2,1] = ArgMax(x) Axes=[1] KeepDims=true
n/equal[2,6] = Equal(n/largest n/positions)
n/ones[2,6] = Cast(n/equal) Axis=1
y[2,6] = Reshape(n/ones) Shape=[2 6]
> y[2,6] f32
`},
	{"ai.onnx.Hardmax@1", 11, parts(rowTokens), "x", "y", nil, `n/rows[2,24] = Reshape(x) Shape=[2 24]
n/largest[2,1] = ArgMax(n/rows) Axes=[1] KeepDims=true
n/equal[2,24] = Equal(n/largest n/positions)
n/ones[2,24] = Cast(n/equal) Axis=1
y[2,3,8] = Reshape(n/ones) Shape=[2 3 8]
> y[2,3,8] f32
`},
	// Matrix operators.
	{"ai.onnx.Conv@1", 11, parts(rowImage, weights("w", 6, 2, 3, 3), weights("b", 6)), "x w b", "y",
		parts(attrInt("group", 2), attrList("pads", 1, 1, 1, 1)),
		"y[1,6,8,8] = Conv(x w* b*) Strides=[1 1] Dilations=[1 1] Pads=[1 1 1 1] Group=2\n> y[1,6,8,8] f32\n"},
	{"ai.onnx.ConvTranspose@1", 11, parts(rowImage, weights("w", 4, 3, 3, 3)), "x w", "y",
		parts(attrStr("auto_pad", "SAME_UPPER"), attrList("strides", 2, 2)),
		"y[1,3,16,16] = ConvTranspose(x w*) Strides=[2 2] Dilations=[1 1] Pads=[0 0 1 1] Group=1 OutputPadding=[0 0]\n> y[1,3,16,16] f32\n"},
	{"ai.onnx.ConvTranspose@1", 11, parts(rowImage, weights("w", 4, 3, 3, 3)), "x w", "y",
		parts(attrList("output_padding", 1, 0), attrList("strides", 2, 3), attrList("pads", 1, 0, 1, 2)),
		"y[1,3,16,22] = ConvTranspose(x w*) Strides=[2 3] Dilations=[1 1] Pads=[1 0 1 2] Group=1 OutputPadding=[1 0]\n> y[1,3,16,22] f32\n"},
	{"ai.onnx.ConvTranspose@1", 11, parts(rowImage, weights("w", 4, 3, 3, 3)), "x w", "y",
		parts(attrStr("auto_pad", "SAME_LOWER"), attrList("strides", 4, 1), attrList("dilations", 2, 1)),
		"y[1,3,32,8] = ConvTranspose(x w*) Strides=[4 1] Dilations=[2 1] Pads=[1 1 0 1] Group=1 OutputPadding=[0 0]\n> y[1,3,32,8] f32\n"},
	{"ai.onnx.ConvTranspose@1", 11, parts(rowImage, weights("w", 4, 3, 1, 3)), "x w", "y",
		parts(attrList("output_shape", 10, 15), attrList("strides", 1, 2)),
		"y[1,3,10,15] = ConvTranspose(x w*) Strides=[1 2] Dilations=[1 1] Pads=[0 1 0 1] Group=1 OutputPadding=[2 0]\n> y[1,3,10,15] f32\n"},
	{"ai.onnx.MatMul@1", 13, parts(rowTokens, weights("w", 8, 5)), "x w", "y", nil,
		"y[2,3,5] = MatMul(x w*)\n> y[2,3,5] f32\n"},
	{"ai.onnx.MatMul@1", 13, parts(rowTokens, input("v", 8)), "x v", "y", nil, "y[2,3] = MatMul(x v)\n> y[2,3] f32\n"},
	{"ai.onnx.Gemm@1", 11, parts(rowMatrix, weights("w", 4, 6), weights("b", 4)), "x w b", "y",
		parts(attrInt("transB", 1)), "y[2,4] = Gemm(x w* b*) TransB=true\n> y[2,4] f32\n"},
	{"ai.onnx.Gemm@1", 7, parts(rowMatrix, weights("w", 2, 4), weights("b", 6, 1)), "x w b", "y",
		parts(attrInt("transA", 1)), "y[6,4] = Gemm(x w* b*) TransA=true\n> y[6,4] f32\n"},
	{"ai.onnx.Einsum@12", 12, parts(input("x", 2, 3, 5, 8), input("z", 2, 3, 7, 8)), "x z", "y",
		parts(attrStr("equation", "bhqd,bhkd->bhqk")), `n/product1/right/transpose[2,3,8,7] = Transpose(z) Perm=[0 1 3 2]
n/product1[2,3,5,7] = MatMul(x n/product1/right/transpose)
> n/product1[2,3,5,7] f32
`},
	{"ai.onnx.Einsum@12", 12, parts(input("x", 2, 3, 4), weights("w", 4, 5, 6)), "x w", "y",
		parts(attrStr("equation", "bsd,dhk -> bhsk")), `n/product1/left/matrix[6,4] = Reshape(x) Shape=[6 4]
n/product1/right/matrix[4,30] = Reshape(w*) Shape=[4 30]
n/product1[6,30] = MatMul(n/product1/left/matrix n/product1/right/matrix)
n/product1/apart[2,3,5,6] = Reshape(n/product1) Shape=[2 3 5 6]
n/result/transpose[2,5,3,6] = Transpose(n/product1/apart) Perm=[0 2 1 3]
> n/result/transpose[2,5,3,6] f32
`},
	{"ai.onnx.Einsum@12", 12, parts(rowMatrix), "x", "y", parts(attrStr("equation", "ij->ji")),
		"n/result/transpose[6,2] = Transpose(x) Perm=[1 0]\n> n/result/transpose[6,2] f32\n"},
	{"ai.onnx.Einsum@12", 12, parts(rowMatrix), "x", "y", parts(attrStr("equation", "ij->")),
		"n/sum[] = ReduceSum(x) Axes=[0 1]\n> n/sum[] f32\n"},
	{"ai.onnx.Einsum@12", 12, parts(input("x", 2, 3, 4, 5), input("z", 3, 5, 6)), "x z", "y",
		parts(attrStr("equation", "...ij,...jk")), `n/product1/left/transpose[3,2,4,5] = Transpose(x) Perm=[1 0 2 3]
n/product1/left/matrix[3,8,5] = Reshape(n/product1/left/transpose) Shape=[3 8 5]
n/product1[3,8,6] = MatMul(n/product1/left/matrix z)
n/product1/apart[3,2,4,6] = Reshape(n/product1) Shape=[3 2 4 6]
n/result/transpose[2,3,4,6] = Transpose(n/product1/apart) Perm=[1 0 2 3]
> n/result/transpose[2,3,4,6] f32
`},
	{"ai.onnx.Einsum@12", 12, parts(input("x", 2, 3, 4), input("z", 3, 2, 4)), "x z", "y",
		parts(attrStr("equation", "b...d,...bd->...b")), `n/product1/left/matrix[2,3,1,4] = Reshape(x) Shape=[2 3 1 4]
n/product1/right/transpose[2,3,4] = Transpose(z) Perm=[1 0 2]
n/product1/right/matrix[2,3,4,1] = Reshape(n/product1/right/transpose) Shape=[2 3 4 1]
n/product1[2,3,1,1] = MatMul(n/product1/left/matrix n/product1/right/matrix)
n/product1/apart[2,3] = Reshape(n/product1) Shape=[2 3]
n/result/transpose[3,2] = Transpose(n/product1/apart) Perm=[1 0]
> n/result/transpose[3,2] f32
`},
	{"com.microsoft.FusedMatMul@1", 17, parts(rowTokens, input("z", 2, 5, 8)), "x z", "y",
		parts(attrInt("transB", 1), attrFlt("alpha", 0.5)), `n/b/transpose[2,8,5] = Transpose(z) Perm=[0 2 1]
y[2,3,5] = MatMul(x n/b/transpose) Variant=alpha=0.5
> y[2,3,5] f32
`},
	{"com.microsoft.TransposeMatMul@1", 17, parts(rowTokens, input("z", 2, 3, 5)), "x z", "y", parts(attrInt("transA", 1)),
		`n/a/transpose[2,8,3] = Transpose(x) Perm=[0 2 1]
y[2,8,5] = MatMul(n/a/transpose z)
> y[2,8,5] f32
`},
	{"com.microsoft.FusedGemm@1", 17, parts(rowMatrix, weights("w", 6, 4), weights("b", 4)), "x w b", "y",
		parts(attrStr("activation", "Relu")), `n/linear[2,4] = Gemm(x w* b*)
y[2,4] = Relu(n/linear) Variant=n
> y[2,4] f32
`},
	{"com.microsoft.FusedConv@1", 17, parts(rowImage, weights("w", 6, 4, 3, 3), weights("b", 6), input("z", 1, 6, 6, 6)),
		"x w b z", "y", parts(attrStr("activation", "Relu")),
		`n/convolution[1,6,6,6] = Conv(x w* b*) Strides=[1 1] Dilations=[1 1] Pads=[0 0 0 0] Group=1
n/linear[1,6,6,6] = Add(n/convolution z)
y[1,6,6,6] = Relu(n/linear) Variant=n
> y[1,6,6,6] f32
`},
	{"com.microsoft.FusedConv@1", 17, parts(rowImage, weights("w", 6, 4, 3, 3)), "x w", "y", nil,
		"y[1,6,6,6] = Conv(x w*) Strides=[1 1] Dilations=[1 1] Pads=[0 0 0 0] Group=1\n> y[1,6,6,6] f32\n"},
	{"com.microsoft.MatMulNBits@1", 17, parts(input("x", 2, 3, 32), held("w", tUint8, 8, 2, 8), weights("s", 16)), "x w s",
		"y", parts(attrInt("K", 32), attrInt("N", 8), attrInt("bits", 4), attrInt("block_size", 16)),
		`n/weights[8,32] = Dequantize(w/unpacked* s/unpacked) Axis=1 Variant=bits=4
n/weights/transpose[32,8] = Transpose(n/weights) Perm=[1 0]
y[2,3,8] = MatMul(x n/weights/transpose)
> y[2,3,8] f32
`},
	{"com.microsoft.MatMulBnb4@1", 17, parts(input("x", 2, 3, 32), held("w", tUint8, 128), weights("s", 4)), "x w s", "y",
		parts(attrInt("K", 32), attrInt("N", 8), attrInt("block_size", 64), attrInt("quant_type", 1)),
		`n/weights[8,32] = Dequantize(w/unpacked* s/unpacked) Axis=1 Variant=quant_type=1
n/weights/transpose[32,8] = Transpose(n/weights) Perm=[1 0]
y[2,3,8] = MatMul(x n/weights/transpose)
> y[2,3,8] f32
`},
	{"com.microsoft.MatMulNBits@1", 17, parts(input("x", 2, 3, 32), held("w", tUint8, 8, 1, 16), weights("s", 8),
		weights("b", 8)), "x w s - - b", "y", parts(attrInt("K", 32), attrInt("N", 8), attrInt("bits", 4),
		attrInt("block_size", 32)), `n/weights[8,32] = Dequantize(w/unpacked* s/unpacked) Axis=1 Variant=bits=4
n/weights/transpose[32,8] = Transpose(n/weights) Perm=[1 0]
n/product[2,3,8] = MatMul(x n/weights/transpose)
y[2,3,8] = Add(n/product b*)
> y[2,3,8] f32
`},
	{"com.microsoft.NhwcConv@1", 17, parts(input("x", 1, 8, 8, 4), weights("w", 6, 3, 3, 2), weights("b", 6)), "x w b",
		"y", parts(attrInt("group", 2), attrList("pads", 1, 1, 1, 1), attrList("strides", 2, 2)),
		`n/first[1,4,8,8] = Transpose(x) Perm=[0 3 1 2]
n/convolution[1,6,4,4] = Conv(n/first w* b*) Strides=[2 2] Dilations=[1 1] Pads=[1 1 1 1] Group=2
n/last[1,4,4,6] = Transpose(n/convolution) Perm=[0 2 3 1]
y[1,4,4,6] = Identity(n/last)
> y[1,4,4,6] f32
`},
	{"com.microsoft.NhwcFusedConv@1", 17, parts(input("x", 1, 8, 8, 4), weights("w", 6, 4, 3, 3), weights("b", 6),
		input("z", 1, 6, 6, 6)), "x w b z", "y", parts(attrStr("activation", "Relu")),
		`n/first[1,4,8,8] = Transpose(x) Perm=[0 3 1 2]
n/convolution[1,6,6,6] = Conv(n/first w* b*) Strides=[1 1] Dilations=[1 1] Pads=[0 0 0 0] Group=1
n/last[1,6,6,6] = Transpose(n/convolution) Perm=[0 2 3 1]
n/sum[1,6,6,6] = Add(n/last z)
y[1,6,6,6] = Relu(n/sum)
> y[1,6,6,6] f32
`},
	{"com.microsoft.NhwcFusedConv@1", 17, parts(input("x", 1, 8, 8, 4), weights("w", 6, 4, 3, 3)), "x w", "y", nil,
		`n/first[1,4,8,8] = Transpose(x) Perm=[0 3 1 2]
n/convolution[1,6,6,6] = Conv(n/first w*) Strides=[1 1] Dilations=[1 1] Pads=[0 0 0 0] Group=1
n/last[1,6,6,6] = Transpose(n/convolution) Perm=[0 2 3 1]
y[1,6,6,6] = Identity(n/last)
> y[1,6,6,6] f32
`},
	{"com.microsoft.BiasSplitGelu@1", 17, parts(rowTokens, weights("b", 8)), "x b", "y", nil, `n/bias[2,3,8] = Add(x b*)
n/split:0[2,3,4] n/split:1[2,3,4] = Split(n/bias) Axis=2 Splits=[4 4]
n/gelu[2,3,4] = Gelu(n/split:1)
y[2,3,4] = Mul(n/split:0 n/gelu)
> y[2,3,4] f32
`},
	{"com.microsoft.GroupNorm@1", 17, parts(input("x", 1, 8, 8, 4), weights("s", 4), weights("b", 4)), "x s b", "y",
		parts(attrInt("groups", 2), attrInt("activation", 1)), `n/first[1,4,8,8] = Transpose(x) Perm=[0 3 1 2]
n/norm[1,4,8,8] = GroupNorm(n/first s* b*) Group=2
n/last[1,8,8,4] = Transpose(n/norm) Perm=[0 2 3 1]
y[1,8,8,4] = Silu(n/last)
> y[1,8,8,4] f32
`},
	{"com.microsoft.GroupNorm@1", 17, parts(rowImage, weights("s", 4), weights("b", 4)), "x s b", "y",
		parts(attrInt("groups", 2), attrInt("activation", 0), attrInt("channels_last", 0)),
		`n/norm[1,4,8,8] = GroupNorm(x s* b*) Group=2
y[1,4,8,8] = Identity(n/norm)
> y[1,4,8,8] f32
`},
	{"com.microsoft.SkipGroupNorm@1", 17, parts(input("x", 2, 8, 8, 4), weights("s", 4), weights("b", 4), input("z", 2, 4),
		weights("c", 4)), "x s b z c", "y sum", parts(attrInt("groups", 2), attrInt("activation", 1)),
		`n/z/rows[2,1,1,4] = Reshape(z) Shape=[2 1 1 4]
n/sum[2,8,8,4] = Add(x n/z/rows)
n/bias[2,8,8,4] = Add(n/sum c*)
n/first[2,4,8,8] = Transpose(n/bias) Perm=[0 3 1 2]
n/norm[2,4,8,8] = GroupNorm(n/first s* b*) Group=2
n/last[2,8,8,4] = Transpose(n/norm) Perm=[0 2 3 1]
y[2,8,8,4] = Silu(n/last)
> y[2,8,8,4] f32
> n/bias[2,8,8,4] f32
`},
	{"com.microsoft.SkipGroupNorm@1", 17, parts(input("x", 2, 8, 8, 4), weights("s", 4), weights("b", 4),
		input("z", 2, 1, 1, 4)), "x s b z", "y", parts(attrInt("groups", 2), attrInt("activation", 0)),
		`n/sum[2,8,8,4] = Add(x z)
n/first[2,4,8,8] = Transpose(n/sum) Perm=[0 3 1 2]
n/norm[2,4,8,8] = GroupNorm(n/first s* b*) Group=2
n/last[2,8,8,4] = Transpose(n/norm) Perm=[0 2 3 1]
y[2,8,8,4] = Identity(n/last)
> y[2,8,8,4] f32
`},
	{"com.microsoft.SkipGroupNorm@1", 17, parts(input("x", 1, 8, 8, 4), weights("s", 4), weights("b", 4),
		input("z", 2, 4)), "x s b z", "y", parts(attrInt("groups", 2)),
		"node \"n\" (SkipGroupNorm): input [1,8,8,4] and skip [2,4] do not fit"},
	{"com.microsoft.DecoderMaskedMultiHeadAttention@1", 17,
		parts(input("q", 2, 1, 8), input("k", 2, 1, 8), input("v", 2, 1, 8), of("mask", tInt32, 2, 7),
			input("pk", 2, 2, 6, 4), input("pv", 2, 2, 6, 4), weights("b", 24)), "q k v mask - pk pv - - - b", "y ck cv",
		parts(attrInt("num_heads", 2)), `n/query/add[2,1,8] = Add(q n/query/bias*)
n/key/add[2,1,8] = Add(k n/key/bias*)
n/value/add[2,1,8] = Add(v n/value/bias*)
n/query/heads[2,1,2,4] = Reshape(n/query/add) Shape=[2 1 2 4]
n/query/transpose[2,2,1,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,1,2,4] = Reshape(n/key/add) Shape=[2 1 2 4]
n/key/transpose[2,2,1,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,1,2,4] = Reshape(n/value/add) Shape=[2 1 2 4]
n/value/transpose[2,2,1,4] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/key/cache[2,2,7,4] = Concat(pk n/key/transpose) Axis=2
n/value/cache[2,2,7,4] = Concat(pv n/value/transpose) Axis=2
n/mask/rows[2,1,1,7] = Reshape(mask) Shape=[2 1 1 7]
n/key/columns[2,2,4,7] = Transpose(n/key/cache) Perm=[0 1 3 2]
n/scores[2,2,1,7] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,1,7] = Mul(n/scores n/scale)
n/scores/mask[2,2,1,7] = Where(n/mask/rows n/scores/scale n/masked)
n/softmax[2,2,1,7] = Softmax(n/scores/mask) Axis=3
n/context[2,2,1,4] = MatMul(n/softmax n/value/cache)
n/context/transpose[2,1,2,4] = Transpose(n/context) Perm=[0 2 1 3]
y[2,1,8] = Reshape(n/context/transpose) Shape=[2 1 8]
> y[2,1,8] f32
> n/key/cache[2,2,7,4] f32
> n/value/cache[2,2,7,4] f32
`},
	{"com.microsoft.DecoderMaskedMultiHeadAttention@1", 17,
		parts(input("q", 2, 1, 24), input("pk", 2, 2, 6, 4), input("pv", 2, 2, 6, 4), of("n", tInt32, 1),
			of("beams", tInt32, 1), of("from", tInt32, 2, 1, 6)), "q - - - - pk pv n beams from", "y ck cv",
		parts(attrInt("num_heads", 2), attrInt("past_present_share_buffer", 1)),
		`n/split:q[2,1,8] n/split:k[2,1,8] n/split:v[2,1,8] = Split(q) Axis=2 Splits=[8 8 8]
n/query/heads[2,1,2,4] = Reshape(n/split:q) Shape=[2 1 2 4]
n/query/transpose[2,2,1,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,1,2,4] = Reshape(n/split:k) Shape=[2 1 2 4]
n/key/transpose[2,2,1,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,1,2,4] = Reshape(n/split:v) Shape=[2 1 2 4]
n/value/transpose[2,2,1,4] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/key/cache[2,2,6,4] = Scatter(pk n/key/position n/key/transpose) Variant=of TensorScatter
n/value/cache[2,2,6,4] = Scatter(pv n/value/position n/value/transpose) Variant=of TensorScatter
n/key/columns[2,2,4,6] = Transpose(n/key/cache) Perm=[0 1 3 2]
n/scores[2,2,1,6] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,1,6] = Mul(n/scores n/scale)
n/softmax[2,2,1,6] = Softmax(n/scores/scale) Axis=3
n/context[2,2,1,4] = MatMul(n/softmax n/value/cache)
n/context/transpose[2,1,2,4] = Transpose(n/context) Perm=[0 2 1 3]
y[2,1,8] = Reshape(n/context/transpose) Shape=[2 1 8]
> y[2,1,8] f32
> n/key/cache[2,2,6,4] f32
> n/value/cache[2,2,6,4] f32
`},
	{"com.microsoft.DecoderMaskedMultiHeadAttention@1", 17,
		parts(input("q", 2, 1, 8), input("k", 2, 2, 9, 4), input("v", 2, 2, 9, 4)), "q k v", "y",
		parts(attrInt("num_heads", 2)), `n/query/heads[2,1,2,4] = Reshape(q) Shape=[2 1 2 4]
n/query/transpose[2,2,1,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/columns[2,2,4,9] = Transpose(k) Perm=[0 1 3 2]
n/scores[2,2,1,9] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,1,9] = Mul(n/scores n/scale)
n/softmax[2,2,1,9] = Softmax(n/scores/scale) Axis=3
n/context[2,2,1,4] = MatMul(n/softmax v)
n/context/transpose[2,1,2,4] = Transpose(n/context) Perm=[0 2 1 3]
y[2,1,8] = Reshape(n/context/transpose) Shape=[2 1 8]
> y[2,1,8] f32
`},
	{"com.microsoft.DecoderMaskedMultiHeadAttention@1", 17,
		parts(input("q", 2, 3, 8), input("k", 2, 2, 9, 4), input("v", 2, 2, 9, 4)), "q k v", "y",
		parts(attrInt("num_heads", 2)),
		"node \"n\" (DecoderMaskedMultiHeadAttention): query has shape [2,3,8], expected [batch,1,features]"},
	{"ai.onnx.TensorScatter@24", 24, parts(input("c", 2, 4, 6, 8), input("u", 2, 4, 1, 8), of("i", tInt64, 2)), "c u i",
		"y", parts(attrStr("mode", "circular")),
		"y[2,4,6,8] = Scatter(c i u) Variant=mode=circular of TensorScatter\n> y[2,4,6,8] f32\n"},
	{"ai.onnx.TensorScatter@24", 24, parts(input("c", 2, 6, 8), input("u", 2, 3, 8)), "c u", "y",
		parts(attrInt("axis", 1)), "y[2,6,8] = Scatter(c n/first u) Variant=axis=1 of TensorScatter\n> y[2,6,8] f32\n"},
	{"ai.onnx.TensorScatter@24", 24, parts(input("c", 2, 6, 8), input("u", 2, 7, 8)), "c u", "y",
		parts(attrInt("axis", 1)),
		"node \"n\" (TensorScatter): update [2,7,8] of a cache [2,6,8], expected at most its extent along axis 1 and the same along the others"},
	{"ai.onnx.TensorScatter@24", 24, parts(input("c", 2, 6, 8), input("u", 2, 1, 8)), "c u", "y",
		parts(attrInt("axis", 0)),
		"node \"n\" (TensorScatter): cache [2,6,8] and update [2,1,8] along axis 0, expected equally many dimensions and not that of the batch"},

	// Pooling and normalisation.
	{"ai.onnx.MaxPool@1", 12, parts(rowImage), "x", "y", parts(attrList("kernel_shape", 3, 2), attrList("strides", 2, 2),
		attrList("dilations", 2, 1), attrInt("ceil_mode", 1)),
		"y[1,4,3,4] = MaxPool(x) Kernel=[3 2] Strides=[2 2] Dilations=[2 1] Pads=[0 0 0 0] CeilMode=true\n> y[1,4,3,4] f32\n"},
	{"ai.onnx.MaxPool@1", 7, parts(rowImage), "x", "y", parts(attrList("kernel_shape", 3, 2), attrList("strides", 3, 1),
		attrStr("auto_pad", "SAME_LOWER")),
		"y[1,4,3,8] = MaxPool(x) Kernel=[3 2] Strides=[3 1] Dilations=[1 1] Pads=[1 1 0 0]\n> y[1,4,3,8] f32\n"},
	{"ai.onnx.AveragePool@1", 19, parts(rowImage), "x", "y",
		parts(attrList("kernel_shape", 3, 3), attrList("strides", 3, 3), attrList("pads", 1, 1, 1, 1),
			attrInt("ceil_mode", 1)),
		"y[1,4,3,3] = AveragePool(x) Kernel=[3 3] Strides=[3 3] Dilations=[1 1] Pads=[1 1 1 1] CeilMode=true\n> y[1,4,3,3] f32\n"},
	{"ai.onnx.AveragePool@1", 7, parts(rowImage), "x", "y",
		parts(attrList("kernel_shape", 2, 3), attrStr("auto_pad", "VALID")),
		"y[1,4,7,6] = AveragePool(x) Kernel=[2 3] Strides=[1 1] Dilations=[1 1] Pads=[0 0 0 0]\n> y[1,4,7,6] f32\n"},
	{"ai.onnx.GlobalMaxPool@1", 13, parts(rowImage), "x", "y", nil, "y[1,4,1,1] = GlobalMaxPool(x)\n> y[1,4,1,1] f32\n"},
	{"ai.onnx.GlobalAveragePool@1", 13, parts(rowImage), "x", "y", nil,
		"y[1,4,1,1] = GlobalAveragePool(x)\n> y[1,4,1,1] f32\n"},
	{"ai.onnx.LpPool@1", 11, parts(rowImage), "x", "y", parts(attrList("kernel_shape", 3, 2), attrInt("p", 2)),
		"y[1,4,6,7] = AveragePool(x) Kernel=[3 2] Strides=[1 1] Dilations=[1 1] Pads=[0 0 0 0] Variant=of LpPool p=2\n> y[1,4,6,7] f32\n"},
	{"ai.onnx.GlobalLpPool@1", 11, parts(rowImage), "x", "y", nil,
		"y[1,4,1,1] = GlobalAveragePool(x) Variant=of GlobalLpPool\n> y[1,4,1,1] f32\n"},
	{"ai.onnx.BatchNormalization@1", 9, parts(rowImage, weights("s", 4), weights("b", 4), weights("m", 4),
		weights("v", 4)), "x s b m v", "y", nil, "y[1,4,8,8] = BatchNorm(x s* b* m v)\n> y[1,4,8,8] f32\n"},
	{"ai.onnx.BatchNormalization@1", 15, parts(rowImage, weights("s", 4), weights("b", 4), weights("m", 4),
		weights("v", 4)), "x s b m v", "y", parts(attrInt("training_mode", 0)),
		"y[1,4,8,8] = BatchNorm(x s* b* m v)\n> y[1,4,8,8] f32\n"},
	{"ai.onnx.LayerNormalization@1", 17, parts(rowTokens, weights("s", 3, 8), weights("b", 3, 8)), "x s b", "y",
		parts(attrInt("axis", 1)), "y[2,3,8] = LayerNorm(x s* b*) Axis=1\n> y[2,3,8] f32\n"},
	{"ai.onnx.RMSNormalization@23", 23, parts(rowTokens, weights("s", 8)), "x s", "y", parts(attrInt("axis", -1)),
		"y[2,3,8] = RMSNorm(x s*) Axis=2\n> y[2,3,8] f32\n"},
	{"ai.onnx.SimplifiedLayerNormalization@1", 17, parts(rowTokens, weights("s", 8)), "x s", "y",
		parts(attrInt("axis", -1), attrFlt("epsilon", 1e-5)),
		"y[2,3,8] = RMSNorm(x s*) Axis=2 Variant=epsilon=1e-05\n> y[2,3,8] f32\n"},
	{"com.microsoft.SimplifiedLayerNormalization@1", 17, parts(rowTokens, weights("s", 8)), "x s", "y", nil,
		"y[2,3,8] = RMSNorm(x s*) Axis=2\n> y[2,3,8] f32\n"},
	{"com.microsoft.SkipLayerNormalization@1", 17, parts(rowTokens, input("z", 2, 3, 8), weights("s", 8), weights("b", 8),
		weights("c", 8)), "x z s b c", "y - - sum", nil, `n/sum[2,3,8] = Add(x z)
n/bias[2,3,8] = Add(n/sum c*)
y[2,3,8] = LayerNorm(n/bias s* b*) Axis=2
> y[2,3,8] f32
> n/bias[2,3,8] f32
`},
	{"com.microsoft.SkipLayerNormalization@1", 17, parts(rowTokens, input("z", 2, 3, 8), weights("s", 8)), "x z s", "y",
		nil, `n/sum[2,3,8] = Add(x z)
y[2,3,8] = LayerNorm(n/sum s*) Axis=2
> y[2,3,8] f32
`},
	{"com.microsoft.SkipSimplifiedLayerNormalization@1", 17, parts(rowTokens, input("z", 2, 3, 8), weights("s", 8)),
		"x z s", "y - - sum", nil, `n/sum[2,3,8] = Add(x z)
y[2,3,8] = RMSNorm(n/sum s*) Axis=2
> y[2,3,8] f32
> n/sum[2,3,8] f32
`},
	{"com.microsoft.EmbedLayerNormalization@1", 17, parts(of("ids", tInt32, 2, 7), of("seg", tInt32, 2, 7),
		weights("word", 50, 8), weights("pos", 16, 8), weights("kind", 2, 8), weights("s", 8), weights("b", 8),
		of("mask", tInt32, 2, 7)),
		"ids seg word pos kind s b mask", "y lengths", nil, `n/words[2,7,8] = Gather(word* ids)
n/position[7,8] = Gather(pos* n/positions)
n/position/add[2,7,8] = Add(n/words n/position)
n/segment[2,7,8] = Gather(kind* seg)
n/segment/add[2,7,8] = Add(n/position/add n/segment)
y[2,7,8] = LayerNorm(n/segment/add s* b*) Axis=2
n/lengths[2] = ReduceSum(mask) Axes=[1]
> y[2,7,8] f32
> n/lengths[2] i32
`},
	{"com.microsoft.EmbedLayerNormalization@1", 17, parts(of("ids", tInt32, 2, 7), weights("word", 50, 8),
		weights("pos", 16, 8), weights("s", 8), weights("b", 8)), "ids - word pos - s b", "y lengths", nil,
		`n/words[2,7,8] = Gather(word* ids)
n/position[7,8] = Gather(pos* n/positions)
n/position/add[2,7,8] = Add(n/words n/position)
y[2,7,8] = LayerNorm(n/position/add s* b*) Axis=2
> y[2,7,8] f32
> n/lengths[2] i32
`},
	{"ai.onnx.InstanceNormalization@1", 13, parts(rowImage, weights("s", 4), weights("b", 4)), "x s b", "y", nil,
		"y[1,4,8,8] = GroupNorm(x s* b*) Group=4\n> y[1,4,8,8] f32\n"},
	{"ai.onnx.GroupNormalization@18", 18, parts(rowImage, weights("s", 2), weights("b", 2)), "x s b", "y",
		parts(attrInt("num_groups", 2)), `n/norm[1,4,8,8] = GroupNorm(x) Group=2
n/scale/column[2,1] = Reshape(s*) Shape=[2 1]
n/scale/repeat[2,2] = Expand(n/scale/column) Shape=[2 2]
n/scale[4,1,1] = Reshape(n/scale/repeat) Shape=[4 1 1]
n/scaled[1,4,8,8] = Mul(n/norm n/scale)
n/bias/column[2,1] = Reshape(b*) Shape=[2 1]
n/bias/repeat[2,2] = Expand(n/bias/column) Shape=[2 2]
n/bias[4,1,1] = Reshape(n/bias/repeat) Shape=[4 1 1]
y[1,4,8,8] = Add(n/scaled n/bias)
> y[1,4,8,8] f32
`},
	{"ai.onnx.GroupNormalization@21", 21, parts(rowImage, weights("s", 4), weights("b", 4)), "x s b", "y",
		parts(attrInt("num_groups", 2)), "y[1,4,8,8] = GroupNorm(x s* b*) Group=2\n> y[1,4,8,8] f32\n"},
	{"ai.onnx.MeanVarianceNormalization@9", 13, parts(rowImage), "x", "y", nil,
		`n/mean[1,4,1,1] = ReduceMean(x) Axes=[0 2 3] KeepDims=true
n/centred[1,4,8,8] = Sub(x n/mean)
n/square[1,4,8,8] = Mul(n/centred n/centred)
n/variance[1,4,1,1] = ReduceMean(n/square) Axes=[0 2 3] KeepDims=true
n/deviation[1,4,1,1] = Sqrt(n/variance)
y[1,4,8,8] = Div(n/centred n/deviation)
> y[1,4,8,8] f32
`},
	{"ai.onnx.LpNormalization@1", 11, parts(rowMatrix), "x", "y", nil, `n/power[2,6] = Mul(x x)
n/sum[2,1] = ReduceSum(n/power) Axes=[1] KeepDims=true
n/root[2,1] = Sqrt(n/sum)
y[2,6] = Div(x n/root)
> y[2,6] f32
`},
	{"ai.onnx.LpNormalization@1", 11, parts(rowMatrix), "x", "y", parts(attrInt("p", 1), attrInt("axis", 0)),
		`n/power[2,6] = Abs(x)
n/sum[1,6] = ReduceSum(n/power) Axes=[0] KeepDims=true
y[2,6] = Div(x n/sum)
> y[2,6] f32
`},
	{"ai.onnx.LRN@1", 13, parts(rowImage), "x", "y", parts(attrInt("size", 3)),
		"y[1,4,8,8] = LRN(x) Kernel=[3]\n> y[1,4,8,8] f32\n"},
	{"ai.onnx.Softmax@1", 12, parts(rowTokens), "x", "y", nil,
		"y[2,3,8] = Softmax(x) Axis=1 Axes=[1 2]\n> y[2,3,8] f32\n"},
	{"ai.onnx.Softmax@13", 13, parts(rowTokens), "x", "y", nil, "y[2,3,8] = Softmax(x) Axis=2\n> y[2,3,8] f32\n"},
	{"ai.onnx.LogSoftmax@1", 12, parts(rowTokens), "x", "y", nil, `n/softmax[2,3,8] = Softmax(x) Axis=1 Axes=[1 2]
y[2,3,8] = Log(n/softmax)
> y[2,3,8] f32
`},
	{"ai.onnx.LogSoftmax@13", 13, parts(rowTokens), "x", "y", nil, `n/softmax[2,3,8] = Softmax(x) Axis=2
y[2,3,8] = Log(n/softmax)
> y[2,3,8] f32
`},
	{"ai.onnx.ReduceMean@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", -1)),
		"y[2,3,1] = ReduceMean(x) Axes=[2] KeepDims=true\n> y[2,3,1] f32\n"},
	{"ai.onnx.ReduceMean@1", 18, parts(rowTokens, list("a", -1)), "x a", "y", parts(attrInt("keepdims", 0)),
		"y[2,3] = ReduceMean(x) Axes=[2]\n> y[2,3] f32\n"},
	{"ai.onnx.ReduceMean@1", 18, parts(rowTokens), "x", "y", parts(attrInt("noop_with_empty_axes", 1)),
		"y[2,3,8] = Identity(x)\n> y[2,3,8] f32\n"},
	{"ai.onnx.ReduceSum@1", 11, parts(rowTokens), "x", "y", parts(attrList("axes", 0, 2)),
		"y[1,3,1] = ReduceSum(x) Axes=[0 2] KeepDims=true\n> y[1,3,1] f32\n"},
	{"ai.onnx.ReduceSum@1", 13, parts(rowTokens, list("a", 0, 2)), "x a", "y", nil,
		"y[1,3,1] = ReduceSum(x) Axes=[0 2] KeepDims=true\n> y[1,3,1] f32\n"},
	{"ai.onnx.ReduceSum@1", 13, parts(rowTokens, list("a")), "x a", "y", parts(attrInt("keepdims", 0)),
		"y[] = ReduceSum(x) Axes=[0 1 2]\n> y[] f32\n"},
	{"ai.onnx.ReduceMax@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", 1)),
		"y[2,1,8] = ReduceMax(x) Axes=[1] KeepDims=true\n> y[2,1,8] f32\n"},
	{"ai.onnx.ReduceMax@1", 18, parts(rowTokens, list("a", 1)), "x a", "y", nil,
		"y[2,1,8] = ReduceMax(x) Axes=[1] KeepDims=true\n> y[2,1,8] f32\n"},
	{"ai.onnx.ReduceMin@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", 1)),
		"y[2,1,8] = ReduceMin(x) Axes=[1] KeepDims=true\n> y[2,1,8] f32\n"},
	{"ai.onnx.ReduceMin@1", 20, parts(rowTokens, list("a", 1)), "x a", "y", nil,
		"y[2,1,8] = ReduceMin(x) Axes=[1] KeepDims=true\n> y[2,1,8] f32\n"},
	{"ai.onnx.ReduceProd@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", 1)),
		"y[2,1,8] = ReduceSum(x) Axes=[1] KeepDims=true Variant=of ReduceProd\n> y[2,1,8] f32\n"},
	{"ai.onnx.ReduceProd@1", 18, parts(list("l", 2, 3, 4)), "l", "y", parts(attrInt("keepdims", 0)),
		"> y[] i64 =[24] []\n"},
	{"ai.onnx.ReduceL1@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", 1)), `n/each[2,3,8] = Abs(x)
y[2,1,8] = ReduceSum(n/each) Axes=[1] KeepDims=true
> y[2,1,8] f32
`},
	{"ai.onnx.ReduceL1@1", 18, parts(rowTokens, list("a", 1)), "x a", "y", nil, `n/each[2,3,8] = Abs(x)
y[2,1,8] = ReduceSum(n/each) Axes=[1] KeepDims=true
> y[2,1,8] f32
`},
	{"ai.onnx.ReduceL2@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", 1), attrInt("keepdims", 0)),
		`n/each[2,3,8] = Mul(x x)
n/sum[2,8] = ReduceSum(n/each) Axes=[1]
y[2,8] = Sqrt(n/sum)
> y[2,8] f32
`},
	{"ai.onnx.ReduceL2@1", 18, parts(rowTokens, list("a", 1)), "x a", "y", parts(attrInt("keepdims", 0)),
		`n/each[2,3,8] = Mul(x x)
n/sum[2,8] = ReduceSum(n/each) Axes=[1]
y[2,8] = Sqrt(n/sum)
> y[2,8] f32
`},
	{"ai.onnx.ReduceLogSum@1", 13, parts(rowTokens), "x", "y", nil, `n/sum[1,1,1] = ReduceSum(x) Axes=[0 1 2] KeepDims=true
y[1,1,1] = Log(n/sum)
> y[1,1,1] f32
`},
	{"ai.onnx.ReduceLogSum@1", 18, parts(rowTokens, list("a", 2)), "x a", "y", nil,
		`n/sum[2,3,1] = ReduceSum(x) Axes=[2] KeepDims=true
y[2,3,1] = Log(n/sum)
> y[2,3,1] f32
`},
	{"ai.onnx.ReduceLogSumExp@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", -2)), `n/each[2,3,8] = Exp(x)
n/sum[2,1,8] = ReduceSum(n/each) Axes=[1] KeepDims=true
y[2,1,8] = Log(n/sum)
> y[2,1,8] f32
`},
	{"ai.onnx.ReduceLogSumExp@1", 18, parts(rowTokens, list("a", -2)), "x a", "y", nil, `n/each[2,3,8] = Exp(x)
n/sum[2,1,8] = ReduceSum(n/each) Axes=[1] KeepDims=true
y[2,1,8] = Log(n/sum)
> y[2,1,8] f32
`},
	{"ai.onnx.ReduceSumSquare@1", 13, parts(rowTokens), "x", "y", parts(attrList("axes", 0)), `n/each[2,3,8] = Mul(x x)
y[1,3,8] = ReduceSum(n/each) Axes=[0] KeepDims=true
> y[1,3,8] f32
`},
	{"ai.onnx.ReduceSumSquare@1", 18, parts(rowTokens, list("a", 0)), "x a", "y", nil, `n/each[2,3,8] = Mul(x x)
y[1,3,8] = ReduceSum(n/each) Axes=[0] KeepDims=true
> y[1,3,8] f32
`},
	{"ai.onnx.ArgMax@1", 13, parts(rowTokens), "x", "y", parts(attrInt("axis", 1), attrInt("keepdims", 0)),
		"y[2,8] = ArgMax(x) Axes=[1]\n> y[2,8] i64\n"},
	{"ai.onnx.ArgMax@1", 12, parts(rowTokens), "x", "y", parts(attrInt("select_last_index", 1)),
		"y[1,3,8] = ArgMax(x) Axes=[0] KeepDims=true Variant=select_last_index=1\n> y[1,3,8] i64\n"},
	{"ai.onnx.ArgMin@1", 13, parts(rowTokens), "x", "y", parts(attrInt("axis", -1)),
		"y[2,3,1] = ArgMax(x) Axes=[2] KeepDims=true Variant=of ArgMin\n> y[2,3,1] i64\n"},
	{"ai.onnx.TopK@1", 9, parts(rowTokens), "x", "y i", parts(attrInt("k", 2)),
		`y[2,3,2] i[2,3,2] = TopK(x) Axis=2 Splits=[2]
> y[2,3,2] f32
> i[2,3,2] i64
`},
	{"ai.onnx.TopK@1", 10, parts(rowTokens, list("k", 2)), "x k", "y i", parts(attrInt("axis", 1)),
		`y[2,2,8] i[2,2,8] = TopK(x) Axis=1 Splits=[2]
> y[2,2,8] f32
> i[2,2,8] i64
`},
	{"ai.onnx.TopK@1", 11, parts(rowTokens, list("k", 2)), "x k", "y i", parts(attrInt("largest", 0)),
		`y[2,3,2] i[2,3,2] = TopK(x) Axis=2 Splits=[2] Variant=largest=0
> y[2,3,2] f32
> i[2,3,2] i64
`},
	{"ai.onnx.CumSum@11", 14, parts(rowTokens, msg(nil).sub(5, rawInts("a", nil, 1))), "x a", "y",
		parts(attrInt("reverse", 1)), "y[2,3,8] = CumSum(x) Axis=1 Variant=reverse=1\n> y[2,3,8] f32\n"},

	// Training.
	{"ai.onnx.SoftmaxCrossEntropyLoss@12", 17, parts(rowMatrix, of("t", tInt64, 2)), "x t", "y p", nil,
		`n/softmax[2,6] = Softmax(x) Axis=1
n/log[2,6] = Log(n/softmax)
n/labels[2,1] = Reshape(t) Shape=[2 1]
n/chosen[2,1] = GatherElements(n/log n/labels) Axis=1
n/losses[2] = Reshape(n/chosen) Shape=[2]
y[] = ReduceMean(n/losses) Axes=[0]
> y[] f32
> n/log[2,6] f32
`},
	{"ai.onnx.SoftmaxCrossEntropyLoss@12", 17, parts(rowMatrix, of("t", tInt64, 2), weights("w", 6)), "x t w", "y",
		parts(attrStr("reduction", "none")), `n/softmax[2,6] = Softmax(x) Axis=1
n/log[2,6] = Log(n/softmax)
n/labels[2,1] = Reshape(t) Shape=[2 1]
n/chosen[2,1] = GatherElements(n/log n/labels) Axis=1
n/losses[2] = Reshape(n/chosen) Shape=[2]
n/weights[2] = Gather(w* t)
n/weighted[2] = Mul(n/losses n/weights)
y[2] = Neg(n/weighted)
> y[2] f32
`},
	{"ai.onnx.SoftmaxCrossEntropyLoss@12", 17, parts(rowMatrix, of("t", tInt64, 2)), "x t", "y",
		parts(attrStr("reduction", "max")),
		`node "n" (SoftmaxCrossEntropyLoss): reduction is "max", expected none, sum or mean`},
	{"ai.onnx.SoftmaxCrossEntropyLoss@12", 17, parts(rowTokens, of("t", tInt64, 2)), "x t", "y", nil,
		`node "n" (SoftmaxCrossEntropyLoss): labels "t" have shape [2], expected that of [2,3,8] without dimension 1`},
	{"ai.onnx.NegativeLogLikelihoodLoss@12", 17, parts(rowMatrix, of("t", tInt64, 2)), "x t", "y",
		parts(attrStr("reduction", "sum")), `n/labels[2,1] = Reshape(t) Shape=[2 1]
n/chosen[2,1] = GatherElements(x n/labels) Axis=1
n/losses[2] = Reshape(n/chosen) Shape=[2]
y[] = ReduceSum(n/losses) Axes=[0]
> y[] f32
`},
	{"ai.onnx.BatchNormalization@1", 15, parts(rowImage, weights("s", 4), weights("b", 4), weights("m", 4),
		weights("v", 4)), "x s b m v", "y rm rv", parts(attrInt("training_mode", 1)), `n/mean[4] = ReduceMean(x) Axes=[0 2 3]
n/square[1,4,8,8] = Mul(x x)
n/variance[4] = ReduceMean(n/square) Axes=[0 2 3]
y[1,4,8,8] = BatchNorm(x s* b* n/mean n/variance)
n/running/mean/kept[4] = Mul(m n/running/mean/share)
n/running/mean/part[4] = Mul(n/mean n/running/mean/rest)
n/running/mean[4] = Add(n/running/mean/kept n/running/mean/part)
n/running/variance/kept[4] = Mul(v n/running/variance/share)
n/running/variance/part[4] = Mul(n/variance n/running/variance/rest)
n/running/variance[4] = Add(n/running/variance/kept n/running/variance/part)
> y[1,4,8,8] f32
> n/running/mean[4] f32
> n/running/variance[4] f32
`},
	{"ai.onnx.LayerNormalization@1", 17, parts(rowTokens, weights("s", 8)), "x s", "y m d", nil,
		`y[2,3,8] = LayerNorm(x s*) Axis=2
n/mean[2,3,1] = ReduceMean(x) Axes=[2] KeepDims=true
n/deviation[2,3,1] = ReduceMean(x) Axes=[2] KeepDims=true
> y[2,3,8] f32
> n/mean[2,3,1] f32
> n/deviation[2,3,1] f32
`},
	{"ai.onnx.SimplifiedLayerNormalization@1", 17, parts(rowTokens, weights("s", 8)), "x s", "y d", nil,
		`y[2,3,8] = RMSNorm(x s*) Axis=2
n/deviation[2,3,1] = ReduceMean(x) Axes=[2] KeepDims=true
> y[2,3,8] f32
> n/deviation[2,3,1] f32
`},
	{"ai.onnx.MaxPool@1", 12, parts(rowImage), "x", "y i",
		parts(attrList("kernel_shape", 2, 2), attrList("strides", 2, 2)),
		`y[1,4,4,4] = MaxPool(x) Kernel=[2 2] Strides=[2 2] Dilations=[1 1] Pads=[0 0 0 0]
n/indices[1,4,4,4] = Cast(y) Axis=8
> y[1,4,4,4] f32
> n/indices[1,4,4,4] i64
`},
	{"ai.onnx.Dropout@1", 12, parts(rowMatrix), "x", "y m", nil, `n/mask[2,6] = Greater(x n/ratio)
y[2,6] = Where(n/mask x n/zero)
> y[2,6] f32
> n/mask[2,6] bool
`},
	// Element-wise, one input.
	one("ai.onnx.Relu@1", 14, "Relu(x)"),
	one("ai.onnx.LeakyRelu@1", 16, "LeakyRelu(x) Variant=alpha=0.5", attrFlt("alpha", 0.5)),
	one("ai.onnx.Elu@1", 13, "Elu(x)"),
	one("ai.onnx.Selu@1", 13, "Elu(x) Variant=of Selu"),
	one("ai.onnx.Celu@12", 13, "Elu(x) Variant=of Celu"),
	one("ai.onnx.Sigmoid@1", 13, "Sigmoid(x)"),
	one("ai.onnx.HardSigmoid@1", 13, "HardSigmoid(x)"),
	one("ai.onnx.HardSwish@14", 14, "HardSwish(x)"),
	one("ai.onnx.Softplus@1", 13, "Softplus(x)"),
	one("ai.onnx.Tanh@1", 13, "Tanh(x)"),
	one("ai.onnx.Erf@9", 13, "Erf(x)"),
	one("ai.onnx.Gelu@1", 20, "Gelu(x) Variant=approximate=tanh", attrStr("approximate", "tanh")),
	one("ai.onnx.Gelu@1", 12, "Gelu(x)"),
	one("com.microsoft.Gelu@1", 17, "Gelu(x)"),
	one("com.microsoft.FastGelu@1", 17, "Gelu(x)"),
	{"com.microsoft.FastGelu@1", 17, parts(rowMatrix, weights("b", 6)), "x b", "y", nil, `n/bias[2,6] = Add(x b*)
y[2,6] = Gelu(n/bias)
> y[2,6] f32
`},
	{"com.microsoft.BiasGelu@1", 17, parts(rowMatrix, weights("b", 6)), "x b", "y", nil, `n/bias[2,6] = Add(x b*)
y[2,6] = Gelu(n/bias)
> y[2,6] f32
`},
	one("com.microsoft.QuickGelu@1", 17, "Silu(x) Variant=alpha=1.702", attrFlt("alpha", 1.702)),
	one("ai.onnx.Swish@24", 24, "Silu(x)"),
	one("ai.onnx.Mish@18", 18, "Mish(x)"),
	one("ai.onnx.Softsign@1", 13, "Sigmoid(x) Variant=of Softsign"),
	one("ai.onnx.ThresholdedRelu@1", 13, "LeakyRelu(x) Variant=of ThresholdedRelu"),
	one("ai.onnx.Shrink@9", 13, "LeakyRelu(x) Variant=of Shrink"),
	one("ai.onnx.Sin@7", 13, "Sin(x)"),
	one("ai.onnx.Cos@7", 13, "Cos(x)"),
	one("ai.onnx.Tan@7", 13, "Sin(x) Variant=of Tan"),
	one("ai.onnx.Asin@7", 13, "Sin(x) Variant=of Asin"),
	one("ai.onnx.Acos@7", 13, "Sin(x) Variant=of Acos"),
	one("ai.onnx.Atan@7", 13, "Sin(x) Variant=of Atan"),
	one("ai.onnx.Sinh@9", 13, "Tanh(x) Variant=of Sinh"),
	one("ai.onnx.Cosh@9", 13, "Tanh(x) Variant=of Cosh"),
	one("ai.onnx.Asinh@9", 13, "Tanh(x) Variant=of Asinh"),
	one("ai.onnx.Acosh@9", 13, "Tanh(x) Variant=of Acosh"),
	one("ai.onnx.Atanh@9", 13, "Tanh(x) Variant=of Atanh"),
	one("ai.onnx.Sign@9", 13, "Abs(x) Variant=of Sign"),
	{"ai.onnx.IsNaN@9", 13, parts(rowMatrix), "x", "y", nil, "y[2,6] = Equal(x x) Variant=of IsNaN\n> y[2,6] bool\n"},
	{"ai.onnx.IsInf@10", 20, parts(rowMatrix), "x", "y", nil, "y[2,6] = Equal(x x) Variant=of IsInf\n> y[2,6] bool\n"},
	one("ai.onnx.Exp@1", 13, "Exp(x)"),
	one("ai.onnx.Log@1", 13, "Log(x)"),
	one("ai.onnx.Sqrt@1", 13, "Sqrt(x)"),
	one("ai.onnx.Reciprocal@1", 13, "Reciprocal(x)"),
	one("ai.onnx.Neg@1", 13, "Neg(x)"),
	one("ai.onnx.Abs@1", 13, "Abs(x)"),
	one("ai.onnx.Floor@1", 13, "Floor(x)"),
	one("ai.onnx.Ceil@1", 13, "Floor(x) Variant=of Ceil"),
	one("ai.onnx.Round@11", 11, "Floor(x) Variant=of Round"),
	{"ai.onnx.Not@1", 13, parts(of("x", tBool, 2, 6)), "x", "y", nil, "y[2,6] = Not(x)\n> y[2,6] bool\n"},
	one("ai.onnx.Clip@1", 10, "Clip(x) Variant=max=6", attrFlt("max", 6)),
	{"ai.onnx.Clip@1", 11, parts(rowMatrix, msg(nil).sub(5, tensor("lo", tFloat).sub(9, make([]byte, 4)))), "x lo", "y",
		nil, "y[2,6] = Clip(x) Variant=min=[0]\n> y[2,6] f32\n"},
	{"ai.onnx.Cast@6", 13, parts(rowMatrix), "x", "y", parts(attrInt("to", tInt64)),
		"y[2,6] = Cast(x) Axis=8\n> y[2,6] i64\n"},
	{"ai.onnx.Cast@6", 19, parts(rowMatrix), "x", "y", parts(attrInt("to", tBool), attrInt("saturate", 1)),
		"y[2,6] = Cast(x) Axis=9 Variant=saturate=1\n> y[2,6] bool\n"},
	{"ai.onnx.CastLike@15", 15, parts(rowMatrix, of("like", tHalf, 1)), "x like", "y", nil,
		"y[2,6] = Cast(x)\n> y[2,6] f16\n"},
	{"ai.onnx.CastLike@15", 15, parts(list("l", 2, 3), of("like", tInt32, 1)), "l like", "y", nil,
		"> y[2] i32 =[2 3] []\n"},
	one("ai.onnx.Identity@1", 16, "Identity(x)"),
	one("ai.onnx.Dropout@1", 11, "Dropout(x)", attrFlt("ratio", 0.1)),
	{"ai.onnx.Dropout@1", 12, parts(rowMatrix, msg(nil).sub(5, tensor("r", tFloat).sub(9, make([]byte, 4))),
		msg(nil).sub(5, tensor("t", tBool).sub(9, make([]byte, 1)))), "x r t", "y", nil,
		"y[2,6] = Dropout(x)\n> y[2,6] f32\n"},

	// Element-wise with broadcast.
	two("ai.onnx.Add@7", 14, tFloat, "Add", "f32"),
	two("ai.onnx.Sub@7", 7, tFloat, "Sub", "f32"),
	two("ai.onnx.Mul@7", 13, tFloat, "Mul", "f32"),
	two("ai.onnx.Div@7", 14, tFloat, "Div", "f32"),
	{"ai.onnx.Div@7", 14, parts(rowMatrix, floats("one", 1)), "x one", "y", nil, "y[2,6] = Identity(x)\n> y[2,6] f32\n"},
	two("ai.onnx.Pow@7", 15, tFloat, "Pow", "f32"),
	{"ai.onnx.PRelu@7", 9, parts(rowTokens, weights("s", 8)), "x s", "y", nil, "y[2,3,8] = PRelu(x s*)\n> y[2,3,8] f32\n"},
	two("ai.onnx.Sum@1", 13, tFloat, "Add", "f32"),
	two("ai.onnx.Max@1", 13, tFloat, "Max", "f32"),
	two("ai.onnx.Min@1", 8, tFloat, "Min", "f32"),
	{"ai.onnx.Mean@1", 13, parts(rowMatrix, input("z", 6)), "x z", "y", nil, `n/sum[2,6] = Add(x z)
y[2,6] = Div(n/sum n/count)
> y[2,6] f32
`},
	two("ai.onnx.Mod@10", 13, tInt64, "Mod", "i64"),
	two("ai.onnx.Equal@1", 13, tFloat, "Equal", "bool"),
	two("ai.onnx.Greater@7", 13, tFloat, "Greater", "bool"),
	two("ai.onnx.GreaterOrEqual@12", 12, tFloat, "GreaterOrEqual", "bool"),
	two("ai.onnx.Less@7", 9, tFloat, "Less", "bool"),
	two("ai.onnx.LessOrEqual@12", 16, tFloat, "LessOrEqual", "bool"),
	two("ai.onnx.And@7", 7, tBool, "And", "bool"),
	two("ai.onnx.Or@7", 7, tBool, "Or", "bool"),
	two("ai.onnx.Xor@7", 7, tBool, "Xor", "bool"),
	{"ai.onnx.Where@9", 16, parts(of("c", tBool, 6), rowMatrix, input("z", 3, 1, 1)), "c x z", "y", nil,
		"y[3,2,6] = Where(c x z)\n> y[3,2,6] f32\n"},
	{"com.microsoft.BiasAdd@1", 17, parts(input("x", 2, 9, 320), weights("b", 320), input("z", 2, 9, 320)), "x b z", "y",
		nil, "y[2,9,320] = Add(x b* z)\n> y[2,9,320] f32\n"},

	// Number formats.
	{"ai.onnx.QuantizeLinear@10", 10, parts(rowMatrix, held("s", tFloat), held("z", tInt8)), "x s z", "y", nil,
		"y[2,6] = Quantize(x s z) Axis=4\n> y[2,6] i8\n"},
	{"ai.onnx.QuantizeLinear@10", 13, parts(rowMatrix, weights("s", 6)), "x s", "y", nil,
		"y[2,6] = Quantize(x s) Axis=5 Axes=[1]\n> y[2,6] u8\n"},
	{"ai.onnx.QuantizeLinear@10", 21, parts(rowMatrix, weights("s", 2, 2)), "x s", "y",
		parts(attrInt("block_size", 3), attrInt("output_dtype", tInt8)),
		"y[2,6] = Quantize(x s) Axis=4 Variant=block_size=3\n> y[2,6] i8\n"},
	{"ai.onnx.DequantizeLinear@10", 10, parts(rowBytes, held("s", tFloat), held("z", tUint8)), "x s z", "y", nil,
		"y[2,6] = Dequantize(x s z) Axis=1\n> y[2,6] f32\n"},
	{"ai.onnx.DequantizeLinear@10", 13, parts(held("w", tInt8, 4, 3), weights("s", 4)), "w s", "y",
		parts(attrInt("axis", 0)), "y[4,3] = Dequantize(w* s) Axis=1 Axes=[0]\n> y[4,3] f32\n"},
	{"ai.onnx.DequantizeLinear@10", 23, parts(rowBytes, held("s", tFloat)), "x s", "y",
		parts(attrInt("output_dtype", tHalf)), "y[2,6] = Dequantize(x s)\n> y[2,6] f16\n"},
	{"com.microsoft.QuantizeLinear@1", 17, parts(rowMatrix, held("s", tFloat), held("z", tUint8)), "x s z", "y", nil,
		"y[2,6] = Quantize(x s z) Axis=5\n> y[2,6] u8\n"},
	{"com.microsoft.DequantizeLinear@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8)), "x s z", "y", nil,
		"y[2,6] = Dequantize(x s z) Axis=1\n> y[2,6] f32\n"},
	{"ai.onnx.DynamicQuantizeLinear@11", 11, parts(rowMatrix), "x", "y s z", nil, `n/max[] = ReduceMax(x) Axes=[0 1]
n/min[] = ReduceMin(x) Axes=[0 1]
n/range[] = Sub(n/max n/min)
n/scale[] = Mul(n/range n/1/255)
n/zero[] = Quantize(n/min n/scale) Axis=5
y[2,6] = Quantize(x n/scale n/zero) Axis=5
> y[2,6] u8
> n/scale[] f32
> n/zero[] u8
`},
	{"ai.onnx.QLinearConv@10", 10, parts(of("x", tUint8, 1, 4, 8, 8), held("s", tFloat), held("z", tUint8),
		held("w", tInt8, 6, 4, 3, 3), held("wz", tInt8), held("b", tInt32, 6)), "x s z w s wz s z b", "y", nil,
		`n/sums[1,6,6,6] = Conv(x w* b*) Strides=[1 1] Dilations=[1 1] Pads=[0 0 0 0] Group=1
y[1,6,6,6] = Quantize(n/sums s z) Axis=5
> y[1,6,6,6] u8
`},
	{"ai.onnx.QLinearMatMul@10", 10, parts(rowBytes, held("s", tFloat), held("z", tUint8), held("w", tInt8, 6, 4),
		held("wz", tInt8)), "x s z w s wz s z", "y", nil, `n/sums[2,4] = MatMul(x w*)
y[2,4] = Quantize(n/sums s z) Axis=5
> y[2,4] u8
`},
	{"ai.onnx.ConvInteger@10", 10, parts(of("x", tUint8, 1, 4, 8, 8), held("w", tInt8, 6, 4, 3, 3), held("z", tUint8),
		held("wz", tInt8)), "x w z wz", "y", parts(attrList("strides", 2, 2)),
		`n/sums[1,6,3,3] = Conv(x w*) Strides=[2 2] Dilations=[1 1] Pads=[0 0 0 0] Group=1
y[1,6,3,3] = Cast(n/sums) Axis=7
> y[1,6,3,3] i32
`},
	{"ai.onnx.MatMulInteger@10", 10, parts(rowBytes, held("w", tInt8, 6, 4)), "x w", "y", nil, `n/sums[2,4] = MatMul(x w*)
y[2,4] = Cast(n/sums) Axis=7
> y[2,4] i32
`},
	{"com.microsoft.GatherBlockQuantized@1", 17, parts(list("i", 3, 1), held("w", tUint8, 10, 16), weights("s", 10, 2),
		input("x", 2, 32)), "w i s", "y", parts(attrInt("bits", 4), attrInt("block_size", 16)),
		`n/codes[2,32] = Gather(w/unpacked* i)
n/scales[2,2] = Gather(s* i)
y[2,32] = Dequantize(n/codes n/scales) Axis=1 Variant=block_size=16
> y[2,32] f32
`},
	{"com.microsoft.QGemm@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8), held("w", tInt8, 4, 6),
		held("wz", tInt8), held("b", tInt32, 4)), "x s z w s wz b s z", "y", parts(attrInt("transB", 1)),
		`n/sums[2,4] = Gemm(x w* b*) TransB=true
y[2,4] = Quantize(n/sums s z) Axis=5
> y[2,4] u8
`},
	{"com.microsoft.QGemm@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8), held("w", tInt8, 6, 4),
		held("wz", tInt8)), "x s z w s wz", "y", nil, `n/sums[2,4] = Gemm(x w*)
y[2,4] = Dequantize(n/sums s) Axis=1
> y[2,4] f32
`},
	{"com.microsoft.MatMulIntegerToFloat@1", 17, parts(rowBytes, held("w", tInt8, 6, 4), held("s", tFloat),
		held("ws", tFloat, 4), held("z", tUint8), held("wz", tInt8, 4), weights("b", 4)), "x w s ws z wz b", "y", nil,
		`n/sums[2,4] = MatMul(x w*)
n/floats[2,4] = Dequantize(n/sums ws) Axis=1 Axes=[1]
y[2,4] = Add(n/floats b*)
> y[2,4] f32
`},
	{"com.microsoft.DynamicQuantizeMatMul@1", 17, parts(rowMatrix, held("w", tInt8, 6, 4), held("s", tFloat),
		held("wz", tInt8), weights("b", 4)), "x w s wz b", "y", nil, `n/max[] = ReduceMax(x) Axes=[0 1]
n/min[] = ReduceMin(x) Axes=[0 1]
n/range[] = Sub(n/max n/min)
n/scale[] = Mul(n/range n/1/255)
n/zero[] = Quantize(n/min n/scale) Axis=5
n/quantize[2,6] = Quantize(x n/scale n/zero) Axis=5
n/sums[2,4] = MatMul(n/quantize w*)
n/floats[2,4] = Dequantize(n/sums s) Axis=1
y[2,4] = Add(n/floats b*)
> y[2,4] f32
`},
	{"com.microsoft.QLinearAdd@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8), of("v", tUint8, 6)),
		"x s z v s z s z", "y", nil, `n/integers[2,6] = Add(x v)
y[2,6] = Quantize(n/integers s z) Axis=5
> y[2,6] u8
`},
	{"com.microsoft.QLinearMul@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8), held("v", tUint8, 6)),
		"x s z v s z s z", "y", nil, `n/integers[2,6] = Mul(x v)
y[2,6] = Quantize(n/integers s z) Axis=5
> y[2,6] u8
`},
	{"com.microsoft.QLinearSigmoid@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8)), "x s z s z", "y", nil,
		`n/integers[2,6] = Sigmoid(x)
y[2,6] = Quantize(n/integers s z) Axis=5
> y[2,6] u8
`},
	{"com.microsoft.QLinearLeakyRelu@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8)), "x s z s z", "y",
		parts(attrFlt("alpha", 0.1)), `n/integers[2,6] = LeakyRelu(x) Variant=alpha=0.1
y[2,6] = Quantize(n/integers s z) Axis=5
> y[2,6] u8
`},
	{"com.microsoft.QLinearGlobalAveragePool@1", 17, parts(of("x", tUint8, 1, 4, 8, 8), held("s", tFloat),
		held("z", tUint8)), "x s z s z", "y", parts(attrInt("channels_last", 0)), `n/integers[1,4,1,1] = GlobalAveragePool(x)
y[1,4,1,1] = Quantize(n/integers s z) Axis=5
> y[1,4,1,1] u8
`},
	{"com.microsoft.QLinearAveragePool@1", 17, parts(of("x", tUint8, 1, 4, 8, 8), held("s", tFloat), held("z", tUint8)),
		"x s z s z", "y", parts(attrList("kernel_shape", 2, 3), attrList("strides", 2, 2)),
		`n/integers[1,4,4,3] = AveragePool(x) Kernel=[2 3] Strides=[2 2] Dilations=[1 1] Pads=[0 0 0 0]
y[1,4,4,3] = Quantize(n/integers s z) Axis=5
> y[1,4,4,3] u8
`},
	{"com.microsoft.QLinearSoftmax@1", 17, parts(of("x", tUint8, 2, 3, 8), held("s", tFloat), held("z", tUint8)),
		"x s z s z", "y", parts(attrInt("opset", 13)), `n/integers[2,3,8] = Softmax(x) Axis=2
y[2,3,8] = Quantize(n/integers s z) Axis=5
> y[2,3,8] u8
`},
	{"com.microsoft.QLinearSoftmax@1", 17, parts(of("x", tUint8, 2, 3, 8), held("s", tFloat), held("z", tUint8)),
		"x s z s z", "y", parts(attrInt("axis", 1), attrInt("opset", 12)), `n/integers[2,3,8] = Softmax(x) Axis=1 Axes=[1 2]
y[2,3,8] = Quantize(n/integers s z) Axis=5
> y[2,3,8] u8
`},
	{"com.microsoft.QLinearConcat@1", 17, parts(rowBytes, held("s", tFloat), held("z", tUint8)), "s z x s z x s z", "y",
		parts(attrInt("axis", 1)), `n/part0[2,6] = Quantize(x s) Axis=5
n/part1[2,6] = Quantize(x s) Axis=5
y[2,12] = Concat(n/part0 n/part1) Axis=1
> y[2,12] u8
`},

	// Attention.
	{"ai.onnx.Attention@23", 23, parts(input("q", 2, 5, 8), input("k", 2, 7, 8), input("v", 2, 7, 12), input("m", 5, 7)),
		"q k v m", "y", parts(attrInt("q_num_heads", 2), attrInt("kv_num_heads", 2)),
		`n/query/heads[2,5,2,4] = Reshape(q) Shape=[2 5 2 4]
n/query/transpose[2,2,5,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,7,2,4] = Reshape(k) Shape=[2 7 2 4]
n/key/transpose[2,2,7,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,7,2,6] = Reshape(v) Shape=[2 7 2 6]
n/value/transpose[2,2,7,6] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/key/columns[2,2,4,7] = Transpose(n/key/transpose) Perm=[0 1 3 2]
n/scores[2,2,5,7] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,5,7] = Mul(n/scores n/scale)
n/scores/mask[2,2,5,7] = Add(n/scores/scale m)
n/softmax[2,2,5,7] = Softmax(n/scores/mask) Axis=3
n/context[2,2,5,6] = MatMul(n/softmax n/value/transpose)
n/context/transpose[2,5,2,6] = Transpose(n/context) Perm=[0 2 1 3]
y[2,5,12] = Reshape(n/context/transpose) Shape=[2 5 12]
> y[2,5,12] f32
`},
	{"ai.onnx.Attention@23", 23, parts(input("q", 2, 4, 5, 8), input("k", 2, 2, 1, 8), input("v", 2, 2, 1, 8),
		input("pk", 2, 2, 6, 8), input("pv", 2, 2, 6, 8)), "q k v - pk pv", "y ck cv",
		parts(attrInt("is_causal", 1), attrFlt("softcap", 5)), `n/key/cache[2,2,7,8] = Concat(pk k) Axis=2
n/value/cache[2,2,7,8] = Concat(pv v) Axis=2
n/query/groups[2,2,2,5,8] = Reshape(q) Shape=[2 2 2 5 8]
n/key/groups[2,2,1,7,8] = Reshape(n/key/cache) Shape=[2 2 1 7 8]
n/value/groups[2,2,1,7,8] = Reshape(n/value/cache) Shape=[2 2 1 7 8]
n/key/columns[2,2,1,8,7] = Transpose(n/key/groups) Perm=[0 1 2 4 3]
n/scores[2,2,2,5,7] = MatMul(n/query/groups n/key/columns)
n/scores/scale[2,2,2,5,7] = Mul(n/scores n/scale)
n/scores/cap[2,2,2,5,7] = Tanh(n/scores/scale)
n/scores/heads[2,4,5,7] = Reshape(n/scores/cap) Shape=[2 4 5 7]
n/scores/mask[2,4,5,7] = Where(n/causal n/scores/heads n/masked)
n/scores/groups[2,2,2,5,7] = Reshape(n/scores/mask) Shape=[2 2 2 5 7]
n/softmax[2,2,2,5,7] = Softmax(n/scores/groups) Axis=4
n/context[2,2,2,5,8] = MatMul(n/softmax n/value/groups)
y[2,4,5,8] = Reshape(n/context) Shape=[2 4 5 8]
> y[2,4,5,8] f32
> n/key/cache[2,2,7,8] f32
> n/value/cache[2,2,7,8] f32
`},
	{"ai.onnx.RotaryEmbedding@23", 23, parts(input("x", 2, 5, 24), weights("cos", 50, 3), weights("sin", 50, 3),
		of("p", tInt64, 2, 5)), "x cos sin p", "y", parts(attrInt("num_heads", 3), attrInt("rotary_embedding_dim", 6)),
		`n/x/heads[2,5,3,8] = Reshape(x) Shape=[2 5 3 8]
n/x/transpose[2,3,5,8] = Transpose(n/x/heads) Perm=[0 2 1 3]
n/cos/rows[2,5,3] = Gather(cos p)
n/cos/head[2,1,5,3] = Reshape(n/cos/rows) Shape=[2 1 5 3]
n/sin/rows[2,5,3] = Gather(sin p)
n/sin/head[2,1,5,3] = Reshape(n/sin/rows) Shape=[2 1 5 3]
n/x/first[2,3,5,3] = Slice(n/x/transpose) Shape=[2 3 5 3] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/x/second[2,3,5,3] = Slice(n/x/transpose) Shape=[2 3 5 3] Starts=[0 0 0 3] Steps=[1 1 1 1]
n/x/first/cos[2,3,5,3] = Mul(n/x/first n/cos/head)
n/x/second/sin[2,3,5,3] = Mul(n/x/second n/sin/head)
n/x/real[2,3,5,3] = Sub(n/x/first/cos n/x/second/sin)
n/x/second/cos[2,3,5,3] = Mul(n/x/second n/cos/head)
n/x/first/sin[2,3,5,3] = Mul(n/x/first n/sin/head)
n/x/imaginary[2,3,5,3] = Add(n/x/second/cos n/x/first/sin)
n/x/rest[2,3,5,2] = Slice(n/x/transpose) Shape=[2 3 5 2] Starts=[0 0 0 6] Steps=[1 1 1 1]
n/x/rotated[2,3,5,8] = Concat(n/x/real n/x/imaginary n/x/rest) Axis=3
n/merge/transpose[2,5,3,8] = Transpose(n/x/rotated) Perm=[0 2 1 3]
y[2,5,24] = Reshape(n/merge/transpose) Shape=[2 5 24]
> y[2,5,24] f32
`},
	{"ai.onnx.RotaryEmbedding@23", 23, parts(input("x", 2, 3, 5, 8), weights("cos", 2, 5, 4), weights("sin", 2, 5, 4)),
		"x cos sin", "y", nil, `n/cos/head[2,1,5,4] = Reshape(cos) Shape=[2 1 5 4]
n/sin/head[2,1,5,4] = Reshape(sin) Shape=[2 1 5 4]
n/x/first[2,3,5,4] = Slice(x) Shape=[2 3 5 4] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/x/second[2,3,5,4] = Slice(x) Shape=[2 3 5 4] Starts=[0 0 0 4] Steps=[1 1 1 1]
n/x/first/cos[2,3,5,4] = Mul(n/x/first n/cos/head)
n/x/second/sin[2,3,5,4] = Mul(n/x/second n/sin/head)
n/x/real[2,3,5,4] = Sub(n/x/first/cos n/x/second/sin)
n/x/second/cos[2,3,5,4] = Mul(n/x/second n/cos/head)
n/x/first/sin[2,3,5,4] = Mul(n/x/first n/sin/head)
n/x/imaginary[2,3,5,4] = Add(n/x/second/cos n/x/first/sin)
n/x/rotated[2,3,5,8] = Concat(n/x/real n/x/imaginary) Axis=3
y[2,3,5,8] = Identity(n/x/rotated)
> y[2,3,5,8] f32
`},
	{"com.microsoft.RotaryEmbedding@1", 17, parts(input("x", 2, 5, 24), of("p", tInt64, 2, 5), weights("cos", 50, 4),
		weights("sin", 50, 4)), "x p cos sin", "y", nil, `n/x/heads[2,5,3,8] = Reshape(x) Shape=[2 5 3 8]
n/x/transpose[2,3,5,8] = Transpose(n/x/heads) Perm=[0 2 1 3]
n/cos/rows[2,5,4] = Gather(cos p)
n/cos/head[2,1,5,4] = Reshape(n/cos/rows) Shape=[2 1 5 4]
n/sin/rows[2,5,4] = Gather(sin p)
n/sin/head[2,1,5,4] = Reshape(n/sin/rows) Shape=[2 1 5 4]
n/x/first[2,3,5,4] = Slice(n/x/transpose) Shape=[2 3 5 4] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/x/second[2,3,5,4] = Slice(n/x/transpose) Shape=[2 3 5 4] Starts=[0 0 0 4] Steps=[1 1 1 1]
n/x/first/cos[2,3,5,4] = Mul(n/x/first n/cos/head)
n/x/second/sin[2,3,5,4] = Mul(n/x/second n/sin/head)
n/x/real[2,3,5,4] = Sub(n/x/first/cos n/x/second/sin)
n/x/second/cos[2,3,5,4] = Mul(n/x/second n/cos/head)
n/x/first/sin[2,3,5,4] = Mul(n/x/first n/sin/head)
n/x/imaginary[2,3,5,4] = Add(n/x/second/cos n/x/first/sin)
n/x/rotated[2,3,5,8] = Concat(n/x/real n/x/imaginary) Axis=3
n/merge/transpose[2,5,3,8] = Transpose(n/x/rotated) Perm=[0 2 1 3]
y[2,5,24] = Reshape(n/merge/transpose) Shape=[2 5 24]
> y[2,5,24] f32
`},
	{"com.microsoft.RotaryEmbedding@1", 17, parts(input("x", 2, 3, 5, 8), of("p", tInt64, 1), weights("cos", 50, 4),
		weights("sin", 50, 4)), "x p cos sin", "y", nil, `n/cos/rows[5,4] = Slice(cos) Shape=[5 4] Starts=[0 0] Steps=[1 1]
n/sin/rows[5,4] = Slice(sin) Shape=[5 4] Starts=[0 0] Steps=[1 1]
n/x/first[2,3,5,4] = Slice(x) Shape=[2 3 5 4] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/x/second[2,3,5,4] = Slice(x) Shape=[2 3 5 4] Starts=[0 0 0 4] Steps=[1 1 1 1]
n/x/first/cos[2,3,5,4] = Mul(n/x/first n/cos/rows)
n/x/second/sin[2,3,5,4] = Mul(n/x/second n/sin/rows)
n/x/real[2,3,5,4] = Sub(n/x/first/cos n/x/second/sin)
n/x/second/cos[2,3,5,4] = Mul(n/x/second n/cos/rows)
n/x/first/sin[2,3,5,4] = Mul(n/x/first n/sin/rows)
n/x/imaginary[2,3,5,4] = Add(n/x/second/cos n/x/first/sin)
n/x/rotated[2,3,5,8] = Concat(n/x/real n/x/imaginary) Axis=3
y[2,3,5,8] = Identity(n/x/rotated)
> y[2,3,5,8] f32
`},
	{"com.microsoft.Attention@1", 17, parts(rowTokens, weights("w", 8, 24), weights("b", 24), of("m", tInt32, 2, 3)),
		"x w b m", "y", parts(attrInt("num_heads", 2)), `n/projection[2,3,24] = MatMul(x w*)
n/projection/bias[2,3,24] = Add(n/projection b*)
n/split:q[2,3,8] n/split:k[2,3,8] n/split:v[2,3,8] = Split(n/projection/bias) Axis=2 Splits=[8 8 8]
n/query/heads[2,3,2,4] = Reshape(n/split:q) Shape=[2 3 2 4]
n/query/transpose[2,2,3,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,3,2,4] = Reshape(n/split:k) Shape=[2 3 2 4]
n/key/transpose[2,2,3,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,3,2,4] = Reshape(n/split:v) Shape=[2 3 2 4]
n/value/transpose[2,2,3,4] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/mask/rows[2,1,1,3] = Reshape(m) Shape=[2 1 1 3]
n/key/columns[2,2,4,3] = Transpose(n/key/transpose) Perm=[0 1 3 2]
n/scores[2,2,3,3] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,3,3] = Mul(n/scores n/scale)
n/scores/mask[2,2,3,3] = Where(n/mask/rows n/scores/scale n/masked)
n/softmax[2,2,3,3] = Softmax(n/scores/mask) Axis=3
n/context[2,2,3,4] = MatMul(n/softmax n/value/transpose)
n/context/transpose[2,3,2,4] = Transpose(n/context) Perm=[0 2 1 3]
y[2,3,8] = Reshape(n/context/transpose) Shape=[2 3 8]
> y[2,3,8] f32
`},
	{"com.microsoft.Attention@1", 17, parts(rowTokens, weights("w", 8, 20), weights("b", 20)), "x w b", "y",
		parts(attrInt("num_heads", 2), attrInt("unidirectional", 1), attrList("qkv_hidden_sizes", 8, 8, 4)),
		`n/projection[2,3,20] = MatMul(x w*)
n/projection/bias[2,3,20] = Add(n/projection b*)
n/split:q[2,3,8] n/split:k[2,3,8] n/split:v[2,3,4] = Split(n/projection/bias) Axis=2 Splits=[8 8 4]
n/query/heads[2,3,2,4] = Reshape(n/split:q) Shape=[2 3 2 4]
n/query/transpose[2,2,3,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,3,2,4] = Reshape(n/split:k) Shape=[2 3 2 4]
n/key/transpose[2,2,3,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,3,2,2] = Reshape(n/split:v) Shape=[2 3 2 2]
n/value/transpose[2,2,3,2] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/key/columns[2,2,4,3] = Transpose(n/key/transpose) Perm=[0 1 3 2]
n/scores[2,2,3,3] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,3,3] = Mul(n/scores n/scale)
n/scores/mask[2,2,3,3] = Where(n/causal n/scores/scale n/masked)
n/softmax[2,2,3,3] = Softmax(n/scores/mask) Axis=3
n/context[2,2,3,2] = MatMul(n/softmax n/value/transpose)
n/context/transpose[2,3,2,2] = Transpose(n/context) Perm=[0 2 1 3]
y[2,3,4] = Reshape(n/context/transpose) Shape=[2 3 4]
> y[2,3,4] f32
`},
	{"com.microsoft.QAttention@1", 17, parts(of("x", tUint8, 2, 3, 8), held("w", tInt8, 8, 24), weights("b", 24),
		held("s", tFloat), held("ws", tFloat), of("m", tInt32, 2, 3)), "x w b s ws m", "y", parts(attrInt("num_heads", 2)),
		`n/projection[2,3,24] = MatMul(x w*)
n/projection/float[2,3,24] = Dequantize(n/projection s) Axis=1
n/projection/bias[2,3,24] = Add(n/projection/float b*)
n/split:q[2,3,8] n/split:k[2,3,8] n/split:v[2,3,8] = Split(n/projection/bias) Axis=2 Splits=[8 8 8]
n/query/heads[2,3,2,4] = Reshape(n/split:q) Shape=[2 3 2 4]
n/query/transpose[2,2,3,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,3,2,4] = Reshape(n/split:k) Shape=[2 3 2 4]
n/key/transpose[2,2,3,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,3,2,4] = Reshape(n/split:v) Shape=[2 3 2 4]
n/value/transpose[2,2,3,4] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/mask/rows[2,1,1,3] = Reshape(m) Shape=[2 1 1 3]
n/key/columns[2,2,4,3] = Transpose(n/key/transpose) Perm=[0 1 3 2]
n/scores[2,2,3,3] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,3,3] = Mul(n/scores n/scale)
n/scores/mask[2,2,3,3] = Where(n/mask/rows n/scores/scale n/masked)
n/softmax[2,2,3,3] = Softmax(n/scores/mask) Axis=3
n/context[2,2,3,4] = MatMul(n/softmax n/value/transpose)
n/context/transpose[2,3,2,4] = Transpose(n/context) Perm=[0 2 1 3]
y[2,3,8] = Reshape(n/context/transpose) Shape=[2 3 8]
> y[2,3,8] f32
`},
	{"com.microsoft.MultiHeadAttention@1", 17, parts(rowTokens, input("k", 2, 5, 8), input("v", 2, 5, 8), weights("b", 24),
		of("m", tInt32, 2, 5)), "x k v b m", "y", parts(attrInt("num_heads", 2)), `n/query/add[2,3,8] = Add(x n/query/bias*)
n/key/add[2,5,8] = Add(k n/key/bias*)
n/value/add[2,5,8] = Add(v n/value/bias*)
n/query/heads[2,3,2,4] = Reshape(n/query/add) Shape=[2 3 2 4]
n/query/transpose[2,2,3,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,5,2,4] = Reshape(n/key/add) Shape=[2 5 2 4]
n/key/transpose[2,2,5,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,5,2,4] = Reshape(n/value/add) Shape=[2 5 2 4]
n/value/transpose[2,2,5,4] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/mask/rows[2,1,1,5] = Reshape(m) Shape=[2 1 1 5]
n/key/columns[2,2,4,5] = Transpose(n/key/transpose) Perm=[0 1 3 2]
n/scores[2,2,3,5] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,3,5] = Mul(n/scores n/scale)
n/scores/mask[2,2,3,5] = Where(n/mask/rows n/scores/scale n/masked)
n/softmax[2,2,3,5] = Softmax(n/scores/mask) Axis=3
n/context[2,2,3,4] = MatMul(n/softmax n/value/transpose)
n/context/transpose[2,3,2,4] = Transpose(n/context) Perm=[0 2 1 3]
y[2,3,8] = Reshape(n/context/transpose) Shape=[2 3 8]
> y[2,3,8] f32
`},
	{"com.microsoft.MultiHeadAttention@1", 17, parts(rowTokens, input("k", 2, 3, 8), input("v", 2, 3, 8),
		input("bias", 1, 2, 3, 9), input("pk", 2, 2, 6, 4), input("pv", 2, 2, 6, 4)), "x k v - - bias pk pv", "y ck cv",
		parts(attrInt("num_heads", 2)), `n/query/heads[2,3,2,4] = Reshape(x) Shape=[2 3 2 4]
n/query/transpose[2,2,3,4] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,3,2,4] = Reshape(k) Shape=[2 3 2 4]
n/key/transpose[2,2,3,4] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,3,2,4] = Reshape(v) Shape=[2 3 2 4]
n/value/transpose[2,2,3,4] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/key/cache[2,2,9,4] = Concat(pk n/key/transpose) Axis=2
n/value/cache[2,2,9,4] = Concat(pv n/value/transpose) Axis=2
n/key/columns[2,2,4,9] = Transpose(n/key/cache) Perm=[0 1 3 2]
n/scores[2,2,3,9] = MatMul(n/query/transpose n/key/columns)
n/scores/scale[2,2,3,9] = Mul(n/scores n/scale)
n/scores/mask[2,2,3,9] = Add(n/scores/scale bias)
n/softmax[2,2,3,9] = Softmax(n/scores/mask) Axis=3
n/context[2,2,3,4] = MatMul(n/softmax n/value/cache)
n/context/transpose[2,3,2,4] = Transpose(n/context) Perm=[0 2 1 3]
y[2,3,8] = Reshape(n/context/transpose) Shape=[2 3 8]
> y[2,3,8] f32
> n/key/cache[2,2,9,4] f32
> n/value/cache[2,2,9,4] f32
`},
	{"com.microsoft.GroupQueryAttention@1", 17, parts(input("q", 2, 3, 64), input("k", 2, 3, 32), input("v", 2, 3, 32),
		msg(nil).sub(5, tensor("len", tInt32, 2).packed(5, 2, 2)), msg(nil).sub(5, tensor("total", tInt32).packed(5, 3))),
		"q k v - - len total", "y ck cv", parts(attrInt("num_heads", 4), attrInt("kv_num_heads", 2)),
		`n/query/heads[2,3,4,16] = Reshape(q) Shape=[2 3 4 16]
n/query/transpose[2,4,3,16] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[2,3,2,16] = Reshape(k) Shape=[2 3 2 16]
n/key/transpose[2,2,3,16] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[2,3,2,16] = Reshape(v) Shape=[2 3 2 16]
n/value/transpose[2,2,3,16] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/query/groups[2,2,2,3,16] = Reshape(n/query/transpose) Shape=[2 2 2 3 16]
n/key/groups[2,2,1,3,16] = Reshape(n/key/transpose) Shape=[2 2 1 3 16]
n/value/groups[2,2,1,3,16] = Reshape(n/value/transpose) Shape=[2 2 1 3 16]
n/key/columns[2,2,1,16,3] = Transpose(n/key/groups) Perm=[0 1 2 4 3]
n/scores[2,2,2,3,3] = MatMul(n/query/groups n/key/columns)
n/scores/scale[2,2,2,3,3] = Mul(n/scores n/scale)
n/scores/heads[2,4,3,3] = Reshape(n/scores/scale) Shape=[2 4 3 3]
n/scores/mask[2,4,3,3] = Where(n/causal n/scores/heads n/masked)
n/scores/groups[2,2,2,3,3] = Reshape(n/scores/mask) Shape=[2 2 2 3 3]
n/softmax[2,2,2,3,3] = Softmax(n/scores/groups) Axis=4
n/context[2,2,2,3,16] = MatMul(n/softmax n/value/groups)
n/context/heads[2,4,3,16] = Reshape(n/context) Shape=[2 4 3 16]
n/context/transpose[2,3,4,16] = Transpose(n/context/heads) Perm=[0 2 1 3]
y[2,3,64] = Reshape(n/context/transpose) Shape=[2 3 64]
> y[2,3,64] f32
> n/key/transpose[2,2,3,16] f32
> n/value/transpose[2,2,3,16] f32
`},
	{"com.microsoft.GroupQueryAttention@1", 17, parts(input("q", 1, 1, 128), input("pk", 1, 2, 6, 16),
		input("pv", 1, 2, 6, 16), msg(nil).sub(5, tensor("len", tInt32, 1).packed(5, 6)),
		msg(nil).sub(5, tensor("total", tInt32).packed(5, 7)), weights("cos", 32, 8), weights("sin", 32, 8)),
		"q - - pk pv len total cos sin", "y ck cv", parts(attrInt("num_heads", 4), attrInt("kv_num_heads", 2),
			attrInt("do_rotary", 1)), `n/split:q[1,1,64] n/split:k[1,1,32] n/split:v[1,1,32] = Split(q) Axis=2 Splits=[64 32 32]
n/query/heads[1,1,4,16] = Reshape(n/split:q) Shape=[1 1 4 16]
n/query/transpose[1,4,1,16] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[1,1,2,16] = Reshape(n/split:k) Shape=[1 1 2 16]
n/key/transpose[1,2,1,16] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[1,1,2,16] = Reshape(n/split:v) Shape=[1 1 2 16]
n/value/transpose[1,2,1,16] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/cos/rows[1,8] = Slice(cos) Shape=[1 8] Starts=[0 0] Steps=[1 1]
n/sin/rows[1,8] = Slice(sin) Shape=[1 8] Starts=[0 0] Steps=[1 1]
n/query/first[1,4,1,8] = Slice(n/query/transpose) Shape=[1 4 1 8] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/query/second[1,4,1,8] = Slice(n/query/transpose) Shape=[1 4 1 8] Starts=[0 0 0 8] Steps=[1 1 1 1]
n/query/first/cos[1,4,1,8] = Mul(n/query/first n/cos/rows)
n/query/second/sin[1,4,1,8] = Mul(n/query/second n/sin/rows)
n/query/real[1,4,1,8] = Sub(n/query/first/cos n/query/second/sin)
n/query/second/cos[1,4,1,8] = Mul(n/query/second n/cos/rows)
n/query/first/sin[1,4,1,8] = Mul(n/query/first n/sin/rows)
n/query/imaginary[1,4,1,8] = Add(n/query/second/cos n/query/first/sin)
n/query/rotated[1,4,1,16] = Concat(n/query/real n/query/imaginary) Axis=3
n/key/first[1,2,1,8] = Slice(n/key/transpose) Shape=[1 2 1 8] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/key/second[1,2,1,8] = Slice(n/key/transpose) Shape=[1 2 1 8] Starts=[0 0 0 8] Steps=[1 1 1 1]
n/key/first/cos[1,2,1,8] = Mul(n/key/first n/cos/rows)
n/key/second/sin[1,2,1,8] = Mul(n/key/second n/sin/rows)
n/key/real[1,2,1,8] = Sub(n/key/first/cos n/key/second/sin)
n/key/second/cos[1,2,1,8] = Mul(n/key/second n/cos/rows)
n/key/first/sin[1,2,1,8] = Mul(n/key/first n/sin/rows)
n/key/imaginary[1,2,1,8] = Add(n/key/second/cos n/key/first/sin)
n/key/rotated[1,2,1,16] = Concat(n/key/real n/key/imaginary) Axis=3
n/key/cache[1,2,7,16] = Concat(pk n/key/rotated) Axis=2
n/value/cache[1,2,7,16] = Concat(pv n/value/transpose) Axis=2
n/query/groups[1,2,2,1,16] = Reshape(n/query/rotated) Shape=[1 2 2 1 16]
n/key/groups[1,2,1,7,16] = Reshape(n/key/cache) Shape=[1 2 1 7 16]
n/value/groups[1,2,1,7,16] = Reshape(n/value/cache) Shape=[1 2 1 7 16]
n/key/columns[1,2,1,16,7] = Transpose(n/key/groups) Perm=[0 1 2 4 3]
n/scores[1,2,2,1,7] = MatMul(n/query/groups n/key/columns)
n/scores/scale[1,2,2,1,7] = Mul(n/scores n/scale)
n/scores/heads[1,4,1,7] = Reshape(n/scores/scale) Shape=[1 4 1 7]
n/scores/mask[1,4,1,7] = Where(n/causal n/scores/heads n/masked)
n/scores/groups[1,2,2,1,7] = Reshape(n/scores/mask) Shape=[1 2 2 1 7]
n/softmax[1,2,2,1,7] = Softmax(n/scores/groups) Axis=4
n/context[1,2,2,1,16] = MatMul(n/softmax n/value/groups)
n/context/heads[1,4,1,16] = Reshape(n/context) Shape=[1 4 1 16]
n/context/transpose[1,1,4,16] = Transpose(n/context/heads) Perm=[0 2 1 3]
y[1,1,64] = Reshape(n/context/transpose) Shape=[1 1 64]
> y[1,1,64] f32
> n/key/cache[1,2,7,16] f32
> n/value/cache[1,2,7,16] f32
`},
	{"com.microsoft.GroupQueryAttention@1", 17, parts(input("q", 1, 3, 32), input("k", 1, 3, 32), input("v", 1, 3, 32),
		msg(nil).sub(5, tensor("len", tInt32, 1).packed(5, 2)), msg(nil).sub(5, tensor("total", tInt32).packed(5, 3)),
		weights("cos", 32, 8), weights("sin", 32, 8), of("p", tInt64, 1, 3), input("bias", 1, 1, 3, 3)),
		"q k v - - len total cos sin p bias", "y ck cv",
		parts(attrInt("num_heads", 2), attrInt("kv_num_heads", 2), attrInt("do_rotary", 1)),
		`n/query/heads[1,3,2,16] = Reshape(q) Shape=[1 3 2 16]
n/query/transpose[1,2,3,16] = Transpose(n/query/heads) Perm=[0 2 1 3]
n/key/heads[1,3,2,16] = Reshape(k) Shape=[1 3 2 16]
n/key/transpose[1,2,3,16] = Transpose(n/key/heads) Perm=[0 2 1 3]
n/value/heads[1,3,2,16] = Reshape(v) Shape=[1 3 2 16]
n/value/transpose[1,2,3,16] = Transpose(n/value/heads) Perm=[0 2 1 3]
n/cos/rows[1,3,8] = Gather(cos p)
n/cos/head[1,1,3,8] = Reshape(n/cos/rows) Shape=[1 1 3 8]
n/sin/rows[1,3,8] = Gather(sin p)
n/sin/head[1,1,3,8] = Reshape(n/sin/rows) Shape=[1 1 3 8]
n/query/first[1,2,3,8] = Slice(n/query/transpose) Shape=[1 2 3 8] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/query/second[1,2,3,8] = Slice(n/query/transpose) Shape=[1 2 3 8] Starts=[0 0 0 8] Steps=[1 1 1 1]
n/query/first/cos[1,2,3,8] = Mul(n/query/first n/cos/head)
n/query/second/sin[1,2,3,8] = Mul(n/query/second n/sin/head)
n/query/real[1,2,3,8] = Sub(n/query/first/cos n/query/second/sin)
n/query/second/cos[1,2,3,8] = Mul(n/query/second n/cos/head)
n/query/first/sin[1,2,3,8] = Mul(n/query/first n/sin/head)
n/query/imaginary[1,2,3,8] = Add(n/query/second/cos n/query/first/sin)
n/query/rotated[1,2,3,16] = Concat(n/query/real n/query/imaginary) Axis=3
n/key/first[1,2,3,8] = Slice(n/key/transpose) Shape=[1 2 3 8] Starts=[0 0 0 0] Steps=[1 1 1 1]
n/key/second[1,2,3,8] = Slice(n/key/transpose) Shape=[1 2 3 8] Starts=[0 0 0 8] Steps=[1 1 1 1]
n/key/first/cos[1,2,3,8] = Mul(n/key/first n/cos/head)
n/key/second/sin[1,2,3,8] = Mul(n/key/second n/sin/head)
n/key/real[1,2,3,8] = Sub(n/key/first/cos n/key/second/sin)
n/key/second/cos[1,2,3,8] = Mul(n/key/second n/cos/head)
n/key/first/sin[1,2,3,8] = Mul(n/key/first n/sin/head)
n/key/imaginary[1,2,3,8] = Add(n/key/second/cos n/key/first/sin)
n/key/rotated[1,2,3,16] = Concat(n/key/real n/key/imaginary) Axis=3
n/key/columns[1,2,16,3] = Transpose(n/key/rotated) Perm=[0 1 3 2]
n/scores[1,2,3,3] = MatMul(n/query/rotated n/key/columns)
n/scores/scale[1,2,3,3] = Mul(n/scores n/scale)
n/scores/mask[1,2,3,3] = Where(n/causal n/scores/scale n/masked)
n/scores/bias[1,2,3,3] = Add(n/scores/mask bias)
n/softmax[1,2,3,3] = Softmax(n/scores/bias) Axis=3
n/context[1,2,3,16] = MatMul(n/softmax n/value/transpose)
n/context/transpose[1,3,2,16] = Transpose(n/context) Perm=[0 2 1 3]
y[1,3,32] = Reshape(n/context/transpose) Shape=[1 3 32]
> y[1,3,32] f32
> n/key/rotated[1,2,3,16] f32
> n/value/transpose[1,2,3,16] f32
`},
	{"com.microsoft.MultiHeadAttention@1", 17, parts(rowTokens, input("b", 24)), "x x x b", "y",
		parts(attrInt("num_heads", 2)),
		"1 unsupported operator: node \"n\" is MultiHeadAttention of domain com.microsoft (has a bias (\"b\") that is computed while the network runs)"},
	{"ai.onnx.Attention@23", 24, parts(input("q", 2, 2, 5, 8), of("n", tInt64, 2)), "q q q - - - n", "y", nil,
		`n/key/columns[2,2,8,5] = Transpose(q) Perm=[0 1 3 2]
n/scores[2,2,5,5] = MatMul(q n/key/columns)
n/scores/scale[2,2,5,5] = Mul(n/scores n/scale)
n/softmax[2,2,5,5] = Softmax(n/scores/scale) Axis=3
y[2,2,5,8] = MatMul(n/softmax q)
> y[2,2,5,8] f32
`},
	{"ai.onnx.Einsum@12", 12, parts(input("x", 2, 1, 4), input("z", 3, 4)), "x z", "y",
		parts(attrStr("equation", "...i,...i->...")),
		"1 unsupported operator: node \"n\" is Einsum of domain ai.onnx (equation \"...i,...i->...\": a broadcast from one element to several)"},
	{"ai.onnx.EyeLike@9", 9, parts(input("x", 3)), "x", "y", nil,
		"node \"n\" (EyeLike): input has shape [3], expected a matrix"},

	// Movement.
	{"ai.onnx.Reshape@1", 5, parts(rowImage, list("s", 0, -1)), "x s", "y", nil,
		"y[1,256] = Reshape(x) Shape=[1 256]\n> y[1,256] f32\n"},
	{"ai.onnx.Reshape@1", 14, parts(rowImage, list("s", 2, 0, -1, 4)), "x s", "y", parts(attrInt("allowzero", 0)),
		"y[2,4,8,4] = Reshape(x) Shape=[2 4 8 4]\n> y[2,4,8,4] f32\n"},
	{"ai.onnx.Flatten@1", 13, parts(rowImage), "x", "y", parts(attrInt("axis", 0)),
		"y[1,256] = Reshape(x) Shape=[1 256]\n> y[1,256] f32\n"},
	{"ai.onnx.Squeeze@1", 12, parts(input("x", 1, 4, 1)), "x", "y", parts(attrList("axes", 0)),
		"y[4,1] = Reshape(x) Shape=[4 1]\n> y[4,1] f32\n"},
	{"ai.onnx.Squeeze@1", 13, parts(input("x", 1, 4, 1), list("a", -1)), "x a", "y", nil,
		"y[1,4] = Reshape(x) Shape=[1 4]\n> y[1,4] f32\n"},
	{"ai.onnx.Squeeze@1", 13, parts(input("x", 1, 4, 1)), "x", "y", nil, "y[4] = Reshape(x) Shape=[4]\n> y[4] f32\n"},
	{"ai.onnx.Unsqueeze@1", 12, parts(rowMatrix), "x", "y", parts(attrList("axes", 0, 2)),
		"y[1,2,1,6] = Reshape(x) Shape=[1 2 1 6]\n> y[1,2,1,6] f32\n"},
	{"ai.onnx.Unsqueeze@1", 13, parts(rowMatrix, list("a", -1, 0)), "x a", "y", nil,
		"y[1,2,6,1] = Reshape(x) Shape=[1 2 6 1]\n> y[1,2,6,1] f32\n"},
	{"ai.onnx.Transpose@1", 13, parts(rowTokens), "x", "y", parts(attrList("perm", 2, 0, 1)),
		"y[8,2,3] = Transpose(x) Perm=[2 0 1]\n> y[8,2,3] f32\n"},
	{"ai.onnx.Concat@1", 13, parts(rowMatrix, input("z", 2, 1)), "x z x", "y", parts(attrInt("axis", -1)),
		"y[2,13] = Concat(x z x) Axis=1\n> y[2,13] f32\n"},
	{"ai.onnx.Split@1", 11, parts(rowMatrix), "x", "y z", parts(attrInt("axis", 1), attrList("split", 2, 4)),
		`y[2,2] z[2,4] = Split(x) Axis=1 Splits=[2 4]
> y[2,2] f32
> z[2,4] f32
`},
	{"ai.onnx.Split@1", 13, parts(rowMatrix, list("p", 2, 4)), "x p", "y z", parts(attrInt("axis", -1)),
		`y[2,2] z[2,4] = Split(x) Axis=1 Splits=[2 4]
> y[2,2] f32
> z[2,4] f32
`},
	{"ai.onnx.Split@1", 17, parts(rowMatrix), "x", "y z u", parts(attrInt("axis", 1)),
		`y[2,2] z[2,2] u[2,2] = Split(x) Axis=1 Splits=[2 2 2]
> y[2,2] f32
> z[2,2] f32
> u[2,2] f32
`},
	{"ai.onnx.Split@1", 18, parts(rowMatrix), "x", "y z u v", parts(attrInt("axis", 1), attrInt("num_outputs", 4)),
		"y[2,2] z[2,2] u[2,2] = Split(x) Axis=1 Splits=[2 2 2]\n> y[2,2] f32\n> z[2,2] f32\n> u[2,2] f32\n"},
	{"ai.onnx.Split@1", 18, parts(input("x", 7)), "x", "y z u", parts(attrInt("num_outputs", 3)),
		`y[3] z[3] u[1] = Split(x) Splits=[3 3 1]
> y[3] f32
> z[3] f32
> u[1] f32
`},
	{"ai.onnx.Slice@1", 9, parts(rowTokens), "x", "y", parts(attrList("starts", 1, -4), attrList("ends", 9, 7),
		attrList("axes", 1, 2)), "y[2,2,3] = Slice(x) Shape=[2 2 3] Starts=[0 1 4] Steps=[1 1 1]\n> y[2,2,3] f32\n"},
	{"ai.onnx.Slice@1", 10, parts(rowTokens, list("b", 7), list("e", -9), list("a", 2), list("st", -3)), "x b e a st", "y",
		nil, "y[2,3,3] = Slice(x) Shape=[2 3 3] Starts=[0 0 7] Steps=[1 1 -3]\n> y[2,3,3] f32\n"},
	{"ai.onnx.Slice@1", 13, parts(rowTokens, list("b", -12), list("e", -10), list("a", 2), list("st", -1)), "x b e a st",
		"y", nil, "y[2,3,1] = Slice(x) Shape=[2 3 1] Starts=[0 0 0] Steps=[1 1 -1]\n> y[2,3,1] f32\n"},
	{"ai.onnx.Pad@1", 10, parts(rowMatrix), "x", "y", parts(attrList("pads", 1, 0, 0, 2), attrFlt("value", 1)),
		"y[3,8] = Pad(x) Pads=[1 0 0 2] Variant=value=1\n> y[3,8] f32\n"},
	{"ai.onnx.Pad@1", 11, parts(rowMatrix, list("p", 1, -1, 0, 2), floats("v", 1)), "x p v", "y",
		parts(attrStr("mode", "constant")),
		"y[3,7] = Pad(x) Pads=[1 -1 0 2] Variant=mode=constant value=[1]\n> y[3,7] f32\n"},
	{"ai.onnx.Pad@1", 18, parts(rowMatrix, list("p", 1, 2), list("a", -1)), "x p - a", "y", parts(attrStr("mode", "edge")),
		"y[2,9] = Pad(x) Pads=[0 1 0 2] Variant=mode=edge\n> y[2,9] f32\n"},
	{"ai.onnx.Gather@1", 13, parts(rowTokens, of("i", tInt64, 5, 6)), "x i", "y", parts(attrInt("axis", 1)),
		"y[2,5,6,8] = Gather(x i) Axis=1\n> y[2,5,6,8] f32\n"},
	{"ai.onnx.Gather@1", 13, parts(rowTokens, held("i", tInt64)), "x i", "y", parts(attrInt("axis", -1)),
		"y[2,3] = Gather(x i) Axis=2\n> y[2,3] f32\n"},
	{"ai.onnx.GatherElements@11", 13, parts(rowMatrix, of("i", tInt64, 2, 4)), "x i", "y", parts(attrInt("axis", 1)),
		"y[2,4] = GatherElements(x i) Axis=1\n> y[2,4] f32\n"},
	{"ai.onnx.GatherND@11", 13, parts(rowTokens, of("i", tInt64, 5, 7, 2)), "x i", "y", nil,
		`n/terms[5,7,2] = Mul(i n/strides)
n/row[5,7] = ReduceSum(n/terms) Axes=[2]
n/rows[6,8] = Reshape(x) Shape=[6 8]
y[5,7,8] = Gather(n/rows n/row)
> y[5,7,8] f32
`},
	{"ai.onnx.GatherND@11", 11, parts(rowTokens, of("i", tInt64, 5, 1)), "x i", "y", nil, `n/row[5] = Reshape(i) Shape=[5]
n/rows[2,3,8] = Reshape(x) Shape=[2 3 8]
y[5,3,8] = Gather(n/rows n/row)
> y[5,3,8] f32
`},
	{"ai.onnx.GatherND@11", 13, parts(rowTokens, of("i", tInt64, 3)), "x i", "y", nil, `n/terms[3] = Mul(i n/strides)
n/row[] = ReduceSum(n/terms) Axes=[0]
n/rows[48] = Reshape(x) Shape=[48]
y[] = Gather(n/rows n/row)
> y[] f32
`},
	{"ai.onnx.Scatter@9", 9, parts(rowMatrix, of("i", tInt64, 1, 4), input("u", 1, 4)), "x i u", "y", nil,
		"y[2,6] = Scatter(x i u)\n> y[2,6] f32\n"},
	{"ai.onnx.ScatterElements@11", 16, parts(rowMatrix, of("i", tInt64, 1, 4), input("u", 1, 4)), "x i u", "y",
		parts(attrInt("axis", 1)), "y[2,6] = Scatter(x i u) Variant=axis=1\n> y[2,6] f32\n"},
	{"ai.onnx.ScatterND@11", 16, parts(rowTokens, of("i", tInt64, 5, 2), input("u", 5, 8)), "x i u", "y", nil,
		"y[2,3,8] = Scatter(x i u) Variant=of ScatterND\n> y[2,3,8] f32\n"},
	{"ai.onnx.OneHot@9", 11, parts(of("i", tInt64, 2, 3), msg(nil).sub(5, rawInts("d", []int64{1}, 10)),
		msg(nil).sub(5, tensor("v", tFloat, 2))), "i d v", "y", nil, `n/positions[2,3,1] = Reshape(i) Shape=[2 3 1]
n/equal[2,3,10] = Equal(n/positions n/numbers)
y[2,3,10] = Where(n/equal n/on n/off) Variant=one-hot v
> y[2,3,10] f32
`},
	{"ai.onnx.OneHot@9", 9, parts(of("i", tInt64, 2, 3), msg(nil).sub(5, rawInts("d", nil, 10)), list("v", 0, 1)), "i d v",
		"y", parts(attrInt("axis", 0)), `n/positions[1,2,3] = Reshape(i) Shape=[1 2 3]
n/equal[10,2,3] = Equal(n/positions n/numbers)
y[10,2,3] = Where(n/equal n/on n/off) Variant=one-hot v
> y[10,2,3] i64
`},
	{"ai.onnx.Tile@6", 13, parts(rowTokens, list("r", 1, 3, 2)), "x r", "y", nil,
		`n/apart[2,1,3,1,8] = Reshape(x) Shape=[2 1 3 1 8]
n/repeat[2,3,3,2,8] = Expand(n/apart) Shape=[2 3 3 2 8]
y[2,9,16] = Reshape(n/repeat) Shape=[2 9 16]
> y[2,9,16] f32
`},
	{"ai.onnx.Tile@6", 13, parts(rowTokens, list("r", 1, 1, 1)), "x r", "y", nil,
		"y[2,3,8] = Identity(x)\n> y[2,3,8] f32\n"},
	{"ai.onnx.DepthToSpace@1", 10, parts(input("x", 1, 8, 2, 3)), "x", "y", parts(attrInt("blocksize", 2)),
		`n/apart[1,2,2,2,2,3] = Reshape(x) Shape=[1 2 2 2 2 3]
n/transpose[1,2,2,2,3,2] = Transpose(n/apart) Perm=[0 3 4 1 5 2]
y[1,2,4,6] = Reshape(n/transpose) Shape=[1 2 4 6]
> y[1,2,4,6] f32
`},
	{"ai.onnx.DepthToSpace@1", 11, parts(input("x", 1, 8, 2, 3)), "x", "y",
		parts(attrInt("blocksize", 2), attrStr("mode", "CRD")), `n/apart[1,2,2,2,2,3] = Reshape(x) Shape=[1 2 2 2 2 3]
n/transpose[1,2,2,2,3,2] = Transpose(n/apart) Perm=[0 1 4 2 5 3]
y[1,2,4,6] = Reshape(n/transpose) Shape=[1 2 4 6]
> y[1,2,4,6] f32
`},
	{"ai.onnx.SpaceToDepth@1", 13, parts(input("x", 1, 2, 4, 6)), "x", "y", parts(attrInt("blocksize", 2)),
		`n/apart[1,2,2,2,3,2] = Reshape(x) Shape=[1 2 2 2 3 2]
n/transpose[1,2,2,2,2,3] = Transpose(n/apart) Perm=[0 3 5 1 2 4]
y[1,8,2,3] = Reshape(n/transpose) Shape=[1 8 2 3]
> y[1,8,2,3] f32
`},
	{"ai.onnx.Trilu@14", 14, parts(rowTokens), "x", "y", parts(attrInt("upper", 0)),
		"y[2,3,8] = Where(n/mask x n/zero) Variant=upper=0\n> y[2,3,8] f32\n"},
	{"com.microsoft.ExpandDims@1", 17, parts(rowMatrix, msg(nil).sub(5, tensor("a", tInt32).packed(5, 1))), "x a", "y",
		nil, "y[2,1,6] = Reshape(x) Shape=[2 1 6]\n> y[2,1,6] f32\n"},
	{"ai.onnx.Expand@8", 13, parts(input("x", 3, 1), list("s", 2, 1, 6)), "x s", "y", nil,
		"y[2,3,6] = Expand(x) Shape=[2 3 6]\n> y[2,3,6] f32\n"},
	{"ai.onnx.Upsample@7", 7, parts(rowImage), "x", "y", parts(attrFlts("scales", 1, 1, 2, 1.5)),
		"y[1,4,16,12] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 16 12]\n> y[1,4,16,12] f32\n"},
	{"ai.onnx.Upsample@7", 9, parts(rowImage, floats("f", 1, 1, 2, 1.5)), "x f", "y", parts(attrStr("mode", "linear")),
		"y[1,4,16,12] = Resize(x) Kernel=[1 1 2 2] Shape=[1 4 16 12] Variant=coordinate_transformation_mode=asymmetric mode=linear\n> y[1,4,16,12] f32\n"},
	{"ai.onnx.Upsample@7", 10, parts(rowImage, floats("f", 1, 1, 2, 2)), "x f", "y", nil,
		"1 unsupported operator: node \"n\" is Upsample of domain ai.onnx (operator set 10; known are 7 to 9)"},
	{"ai.onnx.Resize@10", 10, parts(rowImage, floats("f", 1, 1, 0.5, 0.3)), "x f", "y", nil,
		"y[1,4,4,2] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 4 2]\n> y[1,4,4,2] f32\n"},
	{"ai.onnx.Resize@10", 11, parts(rowImage, held("roi", tFloat, 0), floats("f", 1, 1, 2, 2)), "x roi f", "y",
		parts(attrStr("mode", "linear")),
		"y[1,4,16,16] = Resize(x) Kernel=[1 1 2 2] Shape=[1 4 16 16] Variant=mode=linear\n> y[1,4,16,16] f32\n"},
	{"ai.onnx.Resize@10", 11, parts(rowImage, held("roi", tFloat, 0), floats("f"), list("s", 1, 4, 5, 12)), "x roi f s",
		"y", parts(attrStr("mode", "cubic")),
		"y[1,4,5,12] = Resize(x) Kernel=[1 1 4 4] Shape=[1 4 5 12] Variant=mode=cubic\n> y[1,4,5,12] f32\n"},
	{"ai.onnx.Resize@10", 18, parts(rowImage, list("s", 12, 5)), "x - - s", "y", parts(attrList("axes", 3, 2)),
		"y[1,4,5,12] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 5 12]\n> y[1,4,5,12] f32\n"},
	{"ai.onnx.Resize@10", 18, parts(input("x", 1, 4, 8, 6), list("s", 12, 12)), "x - - s", "y",
		parts(attrList("axes", 2, 3), attrStr("keep_aspect_ratio_policy", "not_larger")),
		"y[1,4,12,9] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 12 9]\n> y[1,4,12,9] f32\n"},
	{"ai.onnx.Resize@10", 19, parts(input("x", 1, 4, 8, 6), list("s", 13, 7)), "x - - s", "y",
		parts(attrList("axes", 2, 3), attrStr("keep_aspect_ratio_policy", "not_smaller")),
		"y[1,4,13,10] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 13 10]\n> y[1,4,13,10] f32\n"},

	// Constants and shapes.
	{"ai.onnx.Constant@1", 13, nil, "", "y", parts(attrTensor("value", rawInts("", []int64{2}, 4, 5))),
		"> y[2] i64 =[4 5] []\n"},
	{"ai.onnx.Constant@1", 12, nil, "", "y", parts(attrFlt("value_float", 2.5)), "> y[] f32 =[] [2.5]\n"},
	{"ai.onnx.Constant@1", 12, nil, "", "y", parts(attrFlts("value_floats", 2.5, 3)), "> y[2] f32 =[] [2.5 3]\n"},
	{"ai.onnx.Constant@1", 12, nil, "", "y", parts(attrList("value_ints", 3, 4)), "> y[2] i64 =[3 4] []\n"},
	{"ai.onnx.ConstantOfShape@9", 9, parts(list("s", 2, 3)), "s", "y",
		parts(attrTensor("value", rawInts("", []int64{1}, 7))), "> y[2,3] i64 =[7 7 7 7 7 7] []\n"},
	{"ai.onnx.ConstantOfShape@9", 9, parts(list("s", 2, 3)), "s", "y", nil, "> y[2,3] f32\n"},
	{"ai.onnx.Shape@1", 13, parts(rowImage), "x", "y", nil, "> y[4] i64 =[1 4 8 8] []\n"},
	{"ai.onnx.Shape@1", 15, parts(rowImage), "x", "y", parts(attrInt("start", -3), attrInt("end", -1)),
		"> y[2] i64 =[4 8] []\n"},
	{"ai.onnx.Size@1", 13, parts(rowImage), "x", "y", nil, "> y[] i64 =[256] []\n"},
	{"ai.onnx.Range@11", 11, parts(msg(nil).sub(5, rawInts("a", nil, 9)), msg(nil).sub(5, rawInts("b", nil, 0)),
		msg(nil).sub(5, rawInts("c", nil, -4))), "a b c", "y", nil, "> y[3] i64 =[9 5 1] []\n"},
	{"ai.onnx.Range@11", 11, parts(scalar("a", 0), scalar("b", 1), scalar("c", 0.25)), "a b c", "y", nil,
		"> y[4] f32 =[] [0 0.25 0.5 0.75]\n"},
	{"ai.onnx.NonZero@9", 13, parts(msg(nil).sub(5, rawInts("l", []int64{2, 2}, 1, 0, 2, 3))), "l", "y", nil,
		"> y[2,3] i64 =[0 1 1 0 0 1] []\n"},
	{"ai.onnx.EyeLike@9", 9, parts(input("x", 3, 4)), "x", "y", nil, "> y[3,4] f32\n"},
	{"ai.onnx.EyeLike@9", 9, parts(input("x", 3, 4)), "x", "y", parts(attrInt("dtype", tInt64)), "> y[3,4] i64\n"},
	{"ai.onnx.If@1", 16, parts(rowMatrix, msg(nil).sub(5, tensor("c", tBool).sub(9, []byte{1}))), "c", "y", parts(
		attrGraph("then_branch", node("Relu", "t", in("x"), out("t")), output("t")),
		attrGraph("else_branch", node("Tanh", "e", in("x"), out("e")), output("e"))), "t[2,6] = Relu(x)\n> t[2,6] f32\n"},
	{"ai.onnx.If@1", 11, parts(rowMatrix, msg(nil).sub(5, tensor("c", tBool).sub(9, []byte{0}))), "c", "y", parts(
		attrGraph("then_branch", node("Relu", "t", in("x"), out("t")), output("t")),
		attrGraph("else_branch", floats("w", 1, 2, 3, 4, 5, 6), node("MatMul", "e", in("x", "w"), out("e")), output("e"))),
		"e[2] = MatMul(x w*)\n> e[2] f32\n"},
}

// TestRows imports a file of one node for each row of the table.
func TestRows(t *testing.T) {
	cases := map[string][]rowCase{}
	for _, c := range rowCases {
		cases[c.row] = append(cases[c.row], c)
	}
	for i := range rows {
		key := rows[i].key()
		t.Run(key, func(t *testing.T) {
			if len(cases[key]) == 0 {
				t.Fatal("the row has no case")
			}
			for i, c := range cases[key] {
				data := c.file()
				if got := summary(data, Options{}); got != c.want {
					t.Errorf("case %d, operator set %d: got\n%s\nwant\n%s", i, c.opset, got, c.want)
				} else if g, err := load(data, Options{}); err == nil {
					exercise(t, g)
				}
			}
		})
		delete(cases, key)
	}
	for key := range cases {
		t.Errorf("case for %s, which is no row", key)
	}
}

// TestOperatorSets: what an operator set from 7 to 23 has is in the table for all
// later ones, but for what was taken out again.
func TestOperatorSets(t *testing.T) {
	last := map[string]int64{"Scatter": 10, "Upsample": 9}
	for key, rs := range table {
		for v := max(rs[0].since, 7); v <= 23; v++ {
			n := &nodeProto{op: key.name, domain: key.domain, opsets: map[string]int64{key.domain: v}}
			end, ends := last[key.name]
			if has := lookup(n) != nil; has != (!ends || v <= end) {
				t.Errorf("%s of %s in operator set %d: %t", key.name, shownDomain(key.domain), v, has)
			}
		}
	}
}

// TestTestedBy: the table says by which test a row is covered.
func TestTestedBy(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range rowCases {
		tested["TestRows/"+c.row] = true
	}
	for _, o := range Operators() {
		if want := fmt.Sprintf("TestRows/%s.%s@%d", o.Domain, o.Type, o.Since); o.TestedBy != want || !tested[want] {
			t.Errorf("%s of %s since %d is tested by %q, want %q, which there is: %t", o.Type, o.Domain, o.Since, o.TestedBy,
				want, tested[want])
		}
	}
}
