package onnx

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// describe writes a graph as text, an operator a line: outputs with shapes,
// kind, inputs, attributes that are set. A * marks a learned constant.
func describe(g *model.Graph) string {
	var s strings.Builder
	for _, op := range g.Ops {
		for i, o := range op.Outputs {
			if i > 0 {
				s.WriteByte(' ')
			}
			t := g.Tensor(o)
			fmt.Fprintf(&s, "%s%v", t.Name, t.Shape)
		}
		fmt.Fprintf(&s, " = %s(", op.Kind)
		for i, in := range op.Inputs {
			if i > 0 {
				s.WriteByte(' ')
			}
			s.WriteString(g.Tensor(in).Name)
			if g.Tensor(in).Learned {
				s.WriteByte('*')
			}
		}
		s.WriteByte(')')
		a := reflect.ValueOf(*op.Attr)
		for i := range a.NumField() {
			if !a.Field(i).IsZero() {
				fmt.Fprintf(&s, " %s=%v", a.Type().Field(i).Name, a.Field(i))
			}
		}
		s.WriteByte('\n')
	}
	return s.String()
}

func load(data []byte, opt Options) (*model.Graph, error) {
	return ImportReader("test.onnx", bytes.NewReader(data), opt)
}

const window = "Strides=[1 1] Dilations=[1 1] "

func TestOperators(t *testing.T) {
	img := input("x", 1, 4, 8, 8)
	y := output("y")
	tests := []struct {
		name  string
		opset int64
		parts []msg
		want  string
	}{
		{"convolution", 11, []msg{img, y, weights("w", 6, 4, 3, 3), weights("b", 6),
			node("Conv", "c", in("x", "w", "b"), out("y"), attrList("kernel_shape", 3, 3), attrList("pads", 0, 1, 2, 3))},
			"y[1,6,8,10] = Conv(x w* b*) " + window + "Pads=[0 1 2 3] Group=1\n"},
		{"same padding at the end", 11, []msg{img, y, weights("w", 6, 4, 2, 3),
			node("Conv", "c", in("x", "w"), out("y"), attrStr("auto_pad", "SAME_UPPER"))},
			"y[1,6,8,8] = Conv(x w*) " + window + "Pads=[0 1 1 1] Group=1\n"},
		{"same padding at the beginning, stride", 11, []msg{img, y, weights("w", 6, 4, 3, 3),
			node("Conv", "c", in("x", "w", ""), out("y"), attrStr("auto_pad", "SAME_LOWER"), attrList("strides", 2, 2))},
			"y[1,6,4,4] = Conv(x w*) Strides=[2 2] Dilations=[1 1] Pads=[1 1 0 0] Group=1\n"},
		{"valid, dilated, grouped", 11, []msg{img, y, weights("w", 6, 2, 3, 3),
			node("Conv", "c", in("x", "w"), out("y"), attrStr("auto_pad", "VALID"), attrList("dilations", 2, 3),
				attrInt("group", 2))},
			"y[1,6,4,2] = Conv(x w*) Strides=[1 1] Dilations=[2 3] Pads=[0 0 0 0] Group=2\n"},
		{"one spatial dimension", 11, []msg{input("x", 1, 4, 8), y, weights("w", 6, 4, 3),
			node("Conv", "c", in("x", "w"), out("y"))},
			"y[1,6,6] = Conv(x w*) Strides=[1] Dilations=[1] Pads=[0 0] Group=1\n"},
		{"weights from another node", 11,
			[]msg{img, y, list("s", 6, 4, 1, 1), node("ConstantOfShape", "k", in("s"), out("w")),
				node("Conv", "c", in("x", "w"), out("y"))},
			"y[1,6,8,8] = Conv(x w*) " + window + "Pads=[0 0 0 0] Group=1\n"},
		{"weights as a constant", 11,
			[]msg{img, y, node("Constant", "k", nil, out("w"), attrTensor("value", tensor("", tFloat, 6, 4, 1, 1))),
				node("Conv", "c", in("x", "w"), out("y"))},
			"y[1,6,8,8] = Conv(x w*) " + window + "Pads=[0 0 0 0] Group=1\n"},
		{"transposed convolution", 11, []msg{img, y, weights("w", 4, 3, 2, 2),
			node("ConvTranspose", "c", in("x", "w"), out("y"), attrList("strides", 2, 2))},
			"y[1,3,16,16] = ConvTranspose(x w*) Strides=[2 2] Dilations=[1 1] Pads=[0 0 0 0] Group=1 OutputPadding=[0 0]\n"},
		{"transposed convolution to a size", 11, []msg{img, y, weights("w", 4, 3, 4, 4),
			node("ConvTranspose", "c", in("x", "w"), out("y"), attrList("strides", 2, 2), attrList("output_shape", 15, 16))},
			"y[1,3,15,16] = ConvTranspose(x w*) Strides=[2 2] Dilations=[1 1] Pads=[2 1 1 1] Group=1 OutputPadding=[0 0]\n"},
		{"product", 13, []msg{input("x", 2, 3, 4), y, weights("w", 4, 5), node("MatMul", "m", in("x", "w"), out("y"))},
			"y[2,3,5] = MatMul(x w*)\n"},
		{"product with bias", 13, []msg{input("x", 2, 4), y, weights("w", 5, 4), weights("b", 5),
			node("Gemm", "m", in("x", "w", "b"), out("y"), attrInt("transB", 1), attrFlt("alpha", 0.5))},
			"y[2,5] = Gemm(x w* b*) TransB=true Variant=alpha=0.5\n"},

		{"ceiling", 10, []msg{img, y, node("MaxPool", "p", in("x"), out("y"), attrList("kernel_shape", 3, 3),
			attrList("strides", 2, 2), attrInt("ceil_mode", 1))},
			"y[1,4,4,4] = MaxPool(x) Kernel=[3 3] Strides=[2 2] Dilations=[1 1] Pads=[0 0 0 0] CeilMode=true\n"},
		{"unused indices", 8,
			[]msg{img, y, node("MaxPool", "p", in("x"), out("y", "unused"), attrList("kernel_shape", 2, 2))},
			"y[1,4,7,7] = MaxPool(x) Kernel=[2 2] " + window + "Pads=[0 0 0 0]\n"},
		{"average with padding counted", 7,
			[]msg{img, y, node("AveragePool", "p", in("x"), out("y"), attrList("kernel_shape", 3, 3),
				attrStr("auto_pad", "SAME_UPPER"), attrInt("count_include_pad", 1))},
			"y[1,4,8,8] = AveragePool(x) Kernel=[3 3] " + window + "Pads=[1 1 1 1] Variant=count_include_pad=1\n"},
		{"global", 7, []msg{img, y, node("GlobalAveragePool", "p", in("x"), out("y"))},
			"y[1,4,1,1] = GlobalAveragePool(x)\n"},
		{"batch norm", 7, []msg{img, y, weights("s", 4), weights("b", 4), weights("m", 4), weights("v", 4),
			node("BatchNormalization", "n", in("x", "s", "b", "m", "v"), out("y", "", "unused"), attrFlt("epsilon", 1e-5),
				attrFlt("momentum", 0.9), attrInt("spatial", 1))},
			"y[1,4,8,8] = BatchNorm(x s* b* m v) Variant=epsilon=1e-05\n"},
		{"layer norm", 17, []msg{input("x", 2, 3, 4), y, weights("s", 4),
			node("LayerNormalization", "n", in("x", "s"), out("y"))},
			"y[2,3,4] = LayerNorm(x s*) Axis=2\n"},
		{"response normalisation", 7,
			[]msg{img, y, node("LRN", "n", in("x"), out("y"), attrInt("size", 5), attrFlt("alpha", 1))},
			"y[1,4,8,8] = LRN(x) Kernel=[5] Variant=alpha=1\n"},
		{"softmax of the last axis", 13, []msg{img, y, node("Softmax", "s", in("x"), out("y"))},
			"y[1,4,8,8] = Softmax(x) Axis=3\n"},
		{"softmax of the trailing axes", 9, []msg{img, y, node("Softmax", "s", in("x"), out("y"))},
			"y[1,4,8,8] = Softmax(x) Axis=1 Axes=[1 2 3]\n"},
		{"old softmax of a matrix", 9, []msg{input("x", 2, 4), y, node("Softmax", "s", in("x"), out("y"))},
			"y[2,4] = Softmax(x) Axis=1\n"},
		{"logarithm of softmax", 13, []msg{input("x", 2, 4), y,
			node("LogSoftmax", "s", in("x"), out("y"), attrInt("axis", -1))},
			"s/softmax[2,4] = Softmax(x) Axis=1\ny[2,4] = Log(s/softmax)\n"},
		{"mean over axes given as attribute", 13,
			[]msg{img, y, node("ReduceMean", "r", in("x"), out("y"), attrList("axes", -1, 2), attrInt("keepdims", 0))},
			"y[1,4] = ReduceMean(x) Axes=[2 3]\n"},
		{"mean over axes given as input", 18, []msg{img, y, list("a", 2, 3), node("ReduceMean", "r", in("x", "a"), out("y"))},
			"y[1,4,1,1] = ReduceMean(x) Axes=[2 3] KeepDims=true\n"},
		{"sum over all", 13, []msg{input("x", 2, 4), y, node("ReduceSum", "r", in("x"), out("y"))},
			"y[1,1] = ReduceSum(x) Axes=[0 1] KeepDims=true\n"},

		{"limits as attributes", 6, []msg{img, y, node("Clip", "c", in("x"), out("y"), attrFlt("min", 0), attrFlt("max", 6))},
			"y[1,4,8,8] = Clip(x) Variant=max=6 min=0\n"},
		{"limits as inputs", 11, []msg{img, y, floats("six", 6), node("Clip", "c", in("x", "", "six"), out("y"))},
			"y[1,4,8,8] = Clip(x) Variant=max=[6]\n"},
		{"likened operator", 11, []msg{img, y, node("Ceil", "c", in("x"), out("y"))},
			"y[1,4,8,8] = Floor(x) Variant=of Ceil\n"},
		{"gelu of microsoft", 12, []msg{img, y, nodeOf("com.microsoft", "Gelu", "g", in("x"), out("y"))},
			"y[1,4,8,8] = Gelu(x)\n"},
		{"domain by its long name", 12, []msg{img, y, nodeOf("ai.onnx", "Relu", "r", in("x"), out("y"))},
			"y[1,4,8,8] = Relu(x)\n"},
		{"dropout", 12, []msg{img, y, floats("r", 0.5), node("Dropout", "d", in("x", "r"), out("y", "mask"))},
			"y[1,4,8,8] = Dropout(x)\n"},
		{"operands: learned vector, single number", 13, []msg{img, y, weights("v", 4, 1, 1), floats("half", 0.5),
			node("Add", "a", in("x", "v"), out("t")), node("Mul", "m", in("t", "half"), out("y"))},
			"t[1,4,8,8] = Add(x v*)\ny[1,4,8,8] = Mul(t half)\n"},
		{"many operands", 13, []msg{img, y, node("Sum", "s", in("x", "x", "x"), out("y"))}, "y[1,4,8,8] = Add(x x x)\n"},
		{"one operand", 13, []msg{img, y, node("Sum", "s", in("x"), out("y"))}, "y[1,4,8,8] = Identity(x)\n"},
		{"mean of operands", 13, []msg{img, y, node("Mean", "s", in("x", "x"), out("y"))},
			"s/sum[1,4,8,8] = Add(x x)\ny[1,4,8,8] = Div(s/sum s/count)\n"},
		{"slope", 9, []msg{img, y, weights("s", 4, 1, 1), node("PRelu", "p", in("x", "s"), out("y"))},
			"y[1,4,8,8] = PRelu(x s*)\n"},
		{"cast", 13, []msg{img, y, node("Cast", "c", in("x"), out("y"), attrInt("to", tHalf))}, "y[1,4,8,8] = Cast(x)\n"},

		{"reshape", 13, []msg{img, y, list("s", 0, -1), node("Reshape", "r", in("x", "s"), out("y"))},
			"y[1,256] = Reshape(x) Shape=[1 256]\n"},
		{"reshape, target as attribute", 1, []msg{img, y, node("Reshape", "r", in("x"), out("y"), attrList("shape", -1, 16))},
			"y[16,16] = Reshape(x) Shape=[16 16]\n"},
		{"flatten", 13, []msg{img, y, node("Flatten", "r", in("x"), out("y"), attrInt("axis", -1))},
			"y[32,8] = Reshape(x) Shape=[32 8]\n"},
		{"flatten all", 13, []msg{img, y, node("Flatten", "r", in("x"), out("y"), attrInt("axis", 4))},
			"y[256,1] = Reshape(x) Shape=[256 1]\n"},
		{"squeeze all ones", 11, []msg{input("x", 1, 4, 1, 1), y, node("Squeeze", "s", in("x"), out("y"))},
			"y[4] = Reshape(x) Shape=[4]\n"},
		{"squeeze, axes as attribute", 11, []msg{input("x", 1, 4, 1, 1), y,
			node("Squeeze", "s", in("x"), out("y"), attrList("axes", -1, 2))}, "y[1,4] = Reshape(x) Shape=[1 4]\n"},
		{"squeeze, axes as input", 13, []msg{input("x", 1, 4, 1, 1), y, list("a", 2),
			node("Squeeze", "s", in("x", "a"), out("y"))}, "y[1,4,1] = Reshape(x) Shape=[1 4 1]\n"},
		{"unsqueeze, axes as attribute", 11, []msg{input("x", 2, 3), y,
			node("Unsqueeze", "s", in("x"), out("y"), attrList("axes", 0, -1))}, "y[1,2,3,1] = Reshape(x) Shape=[1 2 3 1]\n"},
		{"unsqueeze, axes as input", 13, []msg{input("x", 2, 3), y, list("a", 1),
			node("Unsqueeze", "s", in("x", "a"), out("y"))}, "y[2,1,3] = Reshape(x) Shape=[2 1 3]\n"},
		{"transpose", 13, []msg{input("x", 2, 3, 4), y, node("Transpose", "t", in("x"), out("y"))},
			"y[4,3,2] = Transpose(x) Perm=[2 1 0]\n"},
		{"concatenation", 13, []msg{img, y, node("Concat", "c", in("x", "x"), out("y"), attrInt("axis", -3))},
			"y[1,8,8,8] = Concat(x x) Axis=1\n"},
		{"split in halves", 11, []msg{img, output("a"), output("b"),
			node("Split", "s", in("x"), out("a", "b"), attrInt("axis", 1))},
			"a[1,2,8,8] b[1,2,8,8] = Split(x) Axis=1 Splits=[2 2]\n"},
		{"split by attribute", 11, []msg{img, output("a"), output("b"),
			node("Split", "s", in("x"), out("a", "b"), attrInt("axis", 1), attrList("split", 1, 3))},
			"a[1,1,8,8] b[1,3,8,8] = Split(x) Axis=1 Splits=[1 3]\n"},
		{"split by input", 13, []msg{img, output("a"), output("b"), list("p", 1, 3),
			node("Split", "s", in("x", "p"), out("a", "b"), attrInt("axis", 1))},
			"a[1,1,8,8] b[1,3,8,8] = Split(x) Axis=1 Splits=[1 3]\n"},
		{"split unevenly", 18, []msg{img, output("a"), output("b"), output("c"),
			node("Split", "s", in("x"), out("a", "b", "c"), attrInt("axis", 2), attrInt("num_outputs", 3))},
			"a[1,4,3,8] b[1,4,3,8] c[1,4,2,8] = Split(x) Axis=2 Splits=[3 3 2]\n"},
		{"slice by attributes", 9, []msg{img, y,
			node("Slice", "s", in("x"), out("y"), attrList("starts", 1, 0), attrList("ends", 1000, -1), attrList("axes", 1, 3))},
			"y[1,3,8,7] = Slice(x) Shape=[1 3 8 7] Starts=[0 1 0 0] Steps=[1 1 1 1]\n"},
		{"slice by inputs", 10, []msg{img, y, list("b", 1), list("e", 7), list("a", 2), list("st", 4),
			node("Slice", "s", in("x", "b", "e", "a", "st"), out("y"))},
			"y[1,4,2,8] = Slice(x) Shape=[1 4 2 8] Starts=[0 0 1 0] Steps=[1 1 4 1]\n"},
		{"pad by attribute", 2, []msg{img, y,
			node("Pad", "p", in("x"), out("y"), attrList("pads", 0, 0, 1, 2, 0, 0, 3, 4), attrStr("mode", "reflect"))},
			"y[1,4,12,14] = Pad(x) Pads=[0 0 1 2 0 0 3 4] Variant=mode=reflect\n"},
		{"pad by inputs", 18, []msg{img, y, list("p", 1, 2), floats("v", 7), list("a", -1),
			node("Pad", "p", in("x", "p", "v", "a"), out("y"))},
			"y[1,4,8,11] = Pad(x) Pads=[0 0 0 1 0 0 0 2] Variant=value=[7]\n"},
		{"embedding", 13, []msg{msg(nil).sub(11, typed("ids", tInt64, 2, 7)), y, weights("table", 100, 16),
			node("Gather", "g", in("table", "ids"), out("y"))},
			"y[2,7,16] = Gather(table* ids)\n"},
		{"expand", 13, []msg{input("x", 4, 1), y, list("s", 2, 1, 6), node("Expand", "e", in("x", "s"), out("y"))},
			"y[2,4,6] = Expand(x) Shape=[2 4 6]\n"},
		{"up-sampling", 9, []msg{img, y, floats("s", 1, 1, 2, 3),
			node("Upsample", "u", in("x", "s"), out("y"), attrStr("mode", "nearest"))},
			"y[1,4,16,24] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 16 24] Variant=mode=nearest\n"},
		{"resize by scales", 11, []msg{img, y, floats("s", 1, 1, 2, 2), list("roi"),
			node("Resize", "u", in("x", "roi", "s"), out("y"))},
			"y[1,4,16,16] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 16 16]\n"},
		{"resize to sizes", 13, []msg{img, y, list("s", 1, 4, 16, 8), node("Resize", "u", in("x", "", "", "s"), out("y"))},
			"y[1,4,16,8] = Resize(x) Kernel=[1 1 1 1] Shape=[1 4 16 8]\n"},

		{"shape arithmetic", 13, []msg{img, y, list("zero", 0), list("ax", 0),
			node("Shape", "n1", in("x"), out("s")), node("Gather", "n2", in("s", "zero"), out("n")),
			node("Constant", "n3", nil, out("m1"), attrList("value_ints", -1)),
			node("Concat", "n4", in("n", "m1"), out("t"), attrInt("axis", 0)), node("Reshape", "n5", in("x", "t"), out("y"))},
			"y[1,256] = Reshape(x) Shape=[1 256]\n"},
		{"more shape arithmetic", 15, []msg{img, y, list("two", 2), list("b", 3), list("e", 0), list("ax", 0), list("st", -1),
			node("Shape", "n1", in("x"), out("s"), attrInt("start", 1)),  // 4 8 8
			node("Slice", "n2", in("s", "b", "e", "ax", "st"), out("r")), // from the end, without the first: 8 8
			node("Mul", "n3", in("r", "two"), out("d")),                  // 16 16
			node("Div", "n4", in("r", "two"), out("h")),                  // 4 4
			node("Equal", "n5", in("d", "h"), out("eq")),
			node("Where", "n6", in("eq", "h", "d"), out("w")), // 16 16
			node("Cast", "n7", in("w"), out("f"), attrInt("to", tFloat)), node("Sqrt", "n8", in("f"), out("q")),
			node("Cast", "n9", in("q"), out("k"), attrInt("to", tInt64)), // 4 4
			node("ReduceProd", "n10", in("k"), out("p")),                 // 16
			node("Concat", "n11", in("p", "w"), out("t"), attrInt("axis", 0)),
			node("Reshape", "n12", in("x", "t"), out("y"))},
			"test.onnx: node \"n12\" (Reshape): cannot reshape [1,4,8,8] (256 elements) to [16 16 16] (4096)"},
		{"range, expand, transpose, squeeze of known values", 13, []msg{y, input("x", 6),
			node("Constant", "a", nil, out("0"), attrInt("value_int", 0)),
			node("Constant", "b", nil, out("6"), attrInt("value_int", 6)),
			node("Constant", "c", nil, out("2"), attrInt("value_int", 2)),
			node("Range", "r", in("0", "6", "2"), out("v")), // 0 2 4
			list("ax", 1), node("Unsqueeze", "u", in("v", "ax"), out("col")), list("s", 3, 2),
			node("Expand", "e", in("col", "s"), out("m")),
			// 0 2 4 0 2 4
			node("Transpose", "t", in("m"), out("mt")), list("l", -1), node("Reshape", "f", in("mt", "l"), out("ix")),
			node("Gather", "g", in("x", "ix"), out("y"))},
			"y[6] = Gather(x ix)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := load(file(tt.opset, tt.parts...), Options{})
			if err != nil {
				if err.Error() != tt.want {
					t.Errorf("%v\nwant %s", err, tt.want)
				}
				return
			}
			if got := describe(g); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestKnownValues checks the values behind a graph of shape arithmetic.
func TestKnownValues(t *testing.T) {
	parts := []msg{input("x", 6), output("y"),
		list("a", 7, -7, 6), list("b", 2, 2, -4),
		node("Relu", "r", in("x"), out("y")),
		node("Div", "n1", in("a", "b"), out("div")), node("Mod", "n2", in("a", "b"), out("mod")),
		node("Sub", "n3", in("a", "b"), out("sub")), node("Min", "n4", in("a", "b", "mod"), out("min")),
		node("Less", "n5", in("b", "a"), out("less")), node("Not", "n6", in("less"), out("not")),
		node("Neg", "n7", in("a"), out("neg")), node("Size", "n8", in("x"), out("size")),
		msg(nil).sub(5, rawInts("m", []int64{2, 3}, 1, 2, 3, 4, 5, 6)), list("last", -1),
		node("Gather", "n9", in("m", "last"), out("column"), attrInt("axis", 1)),
		node("ConstantOfShape", "n10", in("b2"), out("sevens"), attrTensor("value", rawInts("", []int64{1}, 7))),
		list("b2", 3),
		msg(nil).sub(5, tensor("i32", tInt32, 2).packed(5, -1, 5)), node("Identity", "n11", in("i32"), out("same")),
		msg(nil).sub(5, tensor("truth", tBool, 2).sub(9, []byte{0, 9})),
		node("Where", "n12", in("truth", "i32", "i32"), out("either")),
		list("two", 2), node("Abs", "n13", in("a"), out("abs")), node("Pow", "n14", in("a", "two"), out("pow")),
		list("parts", 1, 2), node("Split", "n15", in("a", "parts"), out("head", "tail")),
		list("times", 1, 2), node("Tile", "n16", in("m", "times"), out("tiled")),
		node("NonZero", "n17", in("less"), out("where")),
		msg(nil).sub(5, rawInts("at", []int64{2, 1}, 0, -1)), list("new", 9, 8),
		node("ScatterND", "n18", in("a", "at", "new"), out("set")),
	}
	want := map[string]string{
		"div": "[3] i64 [3 -3 -1]", "mod": "[3] i64 [1 1 -2]", "sub": "[3] i64 [5 -9 10]", "min": "[3] i64 [1 -7 -4]",
		"less": "[3] bool [1 0 1]", "not": "[3] bool [0 1 0]", "neg": "[3] i64 [-7 7 -6]", "size": "[] i64 [6]",
		"column": "[2,1] i64 [3 6]", "sevens": "[3] i64 [7 7 7]", "same": "[2] i32 [-1 5]", "either": "[2] i32 [-1 5]",
		"abs": "[3] i64 [7 7 6]", "pow": "[3] i64 [49 49 36]", "head": "[1] i64 [7]", "tail": "[2] i64 [-7 6]",
		"tiled": "[2,6] i64 [1 2 3 1 2 3 4 5 6 4 5 6]", "where": "[1,2] i64 [0 2]", "set": "[3] i64 [9 -7 8]",
	}
	for name := range want {
		parts = append(parts, output(name))
	}
	m, err := read(bytes.NewReader(file(13, parts...)))
	if err != nil {
		t.Fatal(err)
	}
	_, values, err := build("test.onnx", m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range want {
		v := values[name]
		if v == nil || v.lit == nil {
			t.Errorf("%s is not known", name)
			continue
		}
		if got := fmt.Sprint(v.shape, " ", v.dtype, " ", v.lit.ints); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}

// TestTable checks the table itself.
func TestTable(t *testing.T) {
	for key, rows := range table {
		for i, r := range rows {
			if r.build == nil && r.fold == nil {
				t.Errorf("%v can neither be built nor folded", key)
			}
			if _, ok := model.Info(r.kind); r.kind != "" && !ok {
				t.Errorf("%v becomes %q, which is no kind", key, r.kind)
			}
			if r.since < 1 || (r.until != 0 && r.until < r.since) {
				t.Errorf("%v holds for operator sets %s", key, r.versions())
			}
			if i > 0 && (rows[i-1].until == 0 || rows[i-1].until >= r.since) {
				t.Errorf("%v: rows %d and %d overlap", key, i-1, i)
			}
		}
	}
	for i, o := range Operators() {
		if o.Type == "" || (i > 0 && o == Operators()[i-1]) {
			t.Errorf("row %d: %+v", i, o)
		}
	}
}

// Exporters write the ONNX Runtime's operators into the default domain as well.
func TestRuntimesOperatorInDefaultDomain(t *testing.T) {
	read := func(domain string) string {
		return summary(file(17, input("x", 2, 6), nodeOf(domain, "FastGelu", "n", in("x"), out("y")), output("y")), Options{})
	}
	if got, want := read(""), read("com.microsoft"); got != want || !strings.Contains(want, "Gelu") {
		t.Errorf("read as\n%sexpected\n%s", got, want)
	}
}
