package model

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

func conv(stride, dilation, pad, group int64) Attr {
	return Attr{Strides: []int64{stride, stride}, Dilations: []int64{dilation, dilation},
		Pads: []int64{pad, pad, pad, pad}, Group: group}
}

func pool(kernel, stride, pad int64, ceil bool) Attr {
	a := conv(stride, 1, pad, 0)
	a.Kernel, a.CeilMode = []int64{kernel, kernel}, ceil
	return a
}

func with(a Attr, change func(*Attr)) Attr {
	change(&a)
	return a
}

// TestInfer has the output shapes by hand, and for each kind what it refuses.
func TestInfer(t *testing.T) {
	const big = int64(1) << 62
	image := Shape{2, 8, 14, 14}
	tested := map[Kind]bool{}
	for _, tt := range []struct {
		name string
		kind Kind
		attr Attr
		in   []Shape
		want any // shapes of the outputs, or a part of the error
	}{
		{"3x3 keeps the extents", "Conv", conv(1, 1, 1, 1), []Shape{image, {16, 8, 3, 3}}, []Shape{{2, 16, 14, 14}}},
		{"stride 2", "Conv", conv(2, 1, 1, 1), []Shape{image, {16, 8, 3, 3}, {16}}, []Shape{{2, 16, 7, 7}}},
		{"stem of a residual network", "Conv", conv(2, 1, 3, 1), []Shape{{1, 3, 224, 224}, {64, 3, 7, 7}},
			[]Shape{{1, 64, 112, 112}}},
		{"stride past the end", "Conv", conv(3, 1, 0, 1), []Shape{image, {16, 8, 3, 3}}, []Shape{{2, 16, 4, 4}}},
		{"dilation", "Conv", conv(1, 2, 0, 1), []Shape{image, {16, 8, 3, 3}}, []Shape{{2, 16, 10, 10}}},
		{"groups", "Conv", conv(1, 1, 0, 4), []Shape{image, {12, 2, 1, 1}}, []Shape{{2, 12, 14, 14}}},
		{"one spatial dimension", "Conv", Attr{Strides: []int64{2}, Dilations: []int64{1}, Pads: []int64{0, 1}, Group: 1},
			[]Shape{{1, 2, 6}, {3, 2, 3}}, []Shape{{1, 3, 3}}},
		{"kernel larger than the input", "Conv", conv(1, 1, 0, 1), []Shape{{1, 8, 2, 2}, {16, 8, 3, 3}},
			"kernel 3 is larger than the input, 2 with 0 of padding"},
		{"channels", "Conv", conv(1, 1, 0, 1), []Shape{image, {16, 4, 3, 3}}, "do not fit 1 groups"},
		{"groups that do not divide", "Conv", conv(1, 1, 0, 4), []Shape{image, {10, 2, 3, 3}}, "do not fit 4 groups"},
		{"no group", "Conv", conv(1, 1, 0, 0), []Shape{image, {16, 8, 3, 3}}, "do not fit 0 groups"},
		{"bias", "Conv", conv(1, 1, 0, 1), []Shape{image, {16, 8, 3, 3}, {8}}, "bias [8], expected [16]"},
		{"bias of the right size and the wrong shape", "Conv", conv(1, 1, 0, 1), []Shape{image, {16, 8, 3, 3}, {1, 16}},
			"bias [1,16], expected [16]"},
		{"weights of another rank", "Conv", conv(1, 1, 0, 1), []Shape{image, {16, 8}}, "expected [N,C,spatial]"},
		{"missing strides", "Conv", Attr{Group: 1}, []Shape{image, {16, 8, 3, 3}}, "do not fit the spatial dimensions"},
		{"missing dilations", "Conv", with(conv(1, 1, 0, 1), func(a *Attr) { a.Dilations = nil }),
			[]Shape{image, {16, 8, 3, 3}}, "do not fit the spatial dimensions"},
		{"pads at one end only", "Conv", with(conv(1, 1, 0, 1), func(a *Attr) { a.Pads = a.Pads[:2] }),
			[]Shape{image, {16, 8, 3, 3}}, "do not fit the spatial dimensions"},
		{"dilation 0", "Conv", conv(1, 0, 0, 1), []Shape{image, {16, 8, 3, 3}}, "expected positive strides and dilations"},
		{"negative pad in front", "Conv", with(conv(1, 1, 0, 1), func(a *Attr) { a.Pads[1] = -1 }),
			[]Shape{image, {16, 8, 3, 3}}, "no negative pads"},
		{"negative pad behind", "Conv", with(conv(1, 1, 0, 1), func(a *Attr) { a.Pads[3] = -1 }),
			[]Shape{image, {16, 8, 3, 3}}, "no negative pads"},
		{"stride 0", "Conv", conv(0, 1, 0, 1), []Shape{image, {16, 8, 3, 3}}, "expected positive strides"},
		{"huge dilation", "Conv", conv(1, big, 0, 1), []Shape{image, {16, 8, 3, 3}}, "above 2^30"},
		{"huge kernel", "Conv", conv(1, 1<<30, 1<<30, 1), []Shape{{1, 1, 4, 4}, {1, 1, 1 << 35, 1}},
			"kernel [34359738368,1] has an extent above 2^30"},
		{"too many inputs", "Conv", conv(1, 1, 0, 1), []Shape{image, {16, 8, 3, 3}, {16}, {16}},
			"has 4 inputs, expected 2 to 3"},

		{"doubling", "ConvTranspose", conv(2, 1, 0, 1), []Shape{image, {8, 4, 2, 2}}, []Shape{{2, 4, 28, 28}}},
		{"odd kernel with output padding", "ConvTranspose",
			with(conv(2, 1, 1, 1), func(a *Attr) { a.OutputPadding = []int64{1, 1} }),
			[]Shape{image, {8, 4, 3, 3}, {4}}, []Shape{{2, 4, 28, 28}}},
		{"groups", "ConvTranspose", conv(1, 1, 0, 4), []Shape{image, {8, 3, 3, 3}}, []Shape{{2, 12, 16, 16}}},
		{"channels", "ConvTranspose", conv(2, 1, 0, 1), []Shape{image, {4, 8, 2, 2}}, "expected [N,Cin,spatial]"},
		{"groups that do not divide", "ConvTranspose", conv(1, 1, 0, 3), []Shape{image, {8, 3, 3, 3}},
			"expected [N,Cin,spatial]"},
		{"bias", "ConvTranspose", conv(2, 1, 0, 1), []Shape{image, {8, 4, 2, 2}, {8}}, "bias [8], expected [4]"},
		{"missing strides", "ConvTranspose", Attr{Group: 1}, []Shape{image, {8, 4, 2, 2}},
			"do not fit the spatial dimensions"},
		{"huge kernel", "ConvTranspose", conv(1, 1<<30, 0, 1), []Shape{{1, 1, 4, 4}, {1, 1, 1 << 35, 1}},
			"kernel [34359738368,1] has an extent above 2^30"},
		{"missing output padding", "ConvTranspose", with(conv(2, 1, 0, 1), func(a *Attr) { a.OutputPadding = []int64{1} }),
			[]Shape{image, {8, 4, 2, 2}}, "do not fit the spatial dimensions"},
		{"strides past int64", "ConvTranspose", conv(1<<30, 1, 0, 1),
			[]Shape{{1, 1, 1 << 36, 1}, {1, 1, 1, 1}}, "above 2^30"},
		{"negative output padding", "ConvTranspose",
			with(conv(2, 1, 0, 1), func(a *Attr) { a.OutputPadding = []int64{-1, 0} }),
			[]Shape{image, {8, 4, 2, 2}}, "output padding -1"},

		{"matrices", "MatMul", Attr{}, []Shape{{3, 4}, {4, 5}}, []Shape{{3, 5}}},
		{"shared weights", "MatMul", Attr{}, []Shape{{2, 3, 4}, {4, 5}}, []Shape{{2, 3, 5}}},
		{"heads", "MatMul", Attr{}, []Shape{{2, 12, 128, 64}, {2, 12, 64, 128}}, []Shape{{2, 12, 128, 128}}},
		{"broadcast both ways", "MatMul", Attr{}, []Shape{{7, 1, 3, 4}, {6, 4, 5}}, []Shape{{7, 6, 3, 5}}},
		{"row", "MatMul", Attr{}, []Shape{{4}, {6, 4, 5}}, []Shape{{6, 5}}},
		{"column", "MatMul", Attr{}, []Shape{{6, 3, 4}, {4}}, []Shape{{6, 3}}},
		{"dot product", "MatMul", Attr{}, []Shape{{4}, {4}}, []Shape{{}}},
		{"inner extents", "MatMul", Attr{}, []Shape{{3, 4}, {5, 4}}, "inner extents 4 and 5 differ"},
		{"leading extents", "MatMul", Attr{}, []Shape{{2, 3, 4}, {3, 4, 5}}, "do not broadcast"},
		{"scalar", "MatMul", Attr{}, []Shape{{}, {5, 4}}, "cannot multiply [] by [5,4]"},
		{"2^54 operations", "MatMul", Attr{}, []Shape{{1 << 18, 1 << 18}, {1 << 18, 1 << 18}}, []Shape{{1 << 18, 1 << 18}}},
		{"and one row", "MatMul", Attr{}, []Shape{{1<<18 + 1, 1 << 18}, {1 << 18, 1 << 18}}, "at most 2^54 operations"},
		{"too much work", "MatMul", Attr{}, []Shape{{1 << 22, 1 << 22}, {1 << 22, 1 << 22}}, "at most 2^54 operations"},

		{"plain", "Gemm", Attr{}, []Shape{{3, 4}, {4, 5}}, []Shape{{3, 5}}},
		{"both transposed", "Gemm", Attr{TransA: true, TransB: true}, []Shape{{4, 3}, {5, 4}, {5}}, []Shape{{3, 5}}},
		{"inner extents", "Gemm", Attr{TransB: true}, []Shape{{3, 4}, {4, 5}},
			"(transposed: false, true): inner extents 4 and 5 differ"},
		{"three dimensions", "Gemm", Attr{}, []Shape{{2, 3, 4}, {4, 5}}, "expected two dimensions each"},
		{"bias", "Gemm", Attr{}, []Shape{{3, 4}, {4, 5}, {3}}, "bias [3] does not broadcast to [3,5]"},
		{"bias of higher rank", "Gemm", Attr{}, []Shape{{3, 4}, {4, 5}, {1, 3, 5}}, "does not broadcast"},

		{"any shape", "Relu", Attr{}, []Shape{{2, 3, 4}}, []Shape{{2, 3, 4}}},
		{"one input", "Relu", Attr{}, []Shape{{2}, {2}}, "has 2 inputs, expected 1$"},
		{"broadcast", "Add", Attr{}, []Shape{{2, 1, 4}, {3, 1}}, []Shape{{2, 3, 4}}},
		{"three inputs", "Add", Attr{}, []Shape{{2, 1}, {3}, {}}, []Shape{{2, 3}}},
		{"mismatch", "Add", Attr{}, []Shape{{2, 3}, {2, 4}}, "shapes [2,3] and [2,4] do not broadcast"},
		{"one input", "Add", Attr{}, []Shape{{2, 3}}, "has 1 inputs, expected at least 2$"},
		{"three inputs", "Sub", Attr{}, []Shape{{2}, {2}, {2}}, "has 3 inputs, expected 2$"},

		{"image", "BatchNorm", Attr{}, []Shape{image, {8}, {8}, {8}, {8}}, []Shape{image}},
		{"channels", "BatchNorm", Attr{}, []Shape{image, {8}, {8}, {7}, {8}}, "input 3 has shape [7], expected [8]"},
		{"parameters of the right size and the wrong shape", "BatchNorm", Attr{}, []Shape{image, {1, 8}, {8}, {8}, {8}},
			"input 1 has shape [1,8]"},
		{"vector", "BatchNorm", Attr{}, []Shape{{8}, {8}, {8}, {8}, {8}}, "at least two dimensions"},

		{"features", "LayerNorm", Attr{Axis: 2}, []Shape{{2, 3, 4}, {4}, {4}}, []Shape{{2, 3, 4}}},
		{"axis", "LayerNorm", Attr{Axis: 3}, []Shape{{2, 3, 4}}, "axis 3 does not exist in shape [2,3,4]"},
		{"scale", "LayerNorm", Attr{Axis: 2}, []Shape{{2, 3, 4}, {5}}, "[5] does not broadcast to [2,3,4]"},
		{"scale of higher rank", "LayerNorm", Attr{Axis: 0}, []Shape{{4}, {1, 4}}, "[1,4] does not broadcast to [4]"},
		{"heads", "Attention", Attr{Group: 1, Softmax: true}, []Shape{{2, 12, 5, 64}, {2, 12, 7, 64}, {2, 12, 7, 32}},
			[]Shape{{2, 12, 5, 32}}},
		{"shared heads", "Attention", Attr{Group: 4, Softmax: true, TransB: true, Causal: true},
			[]Shape{{8, 5, 64}, {2, 64, 7}, {2, 7, 32}}, []Shape{{8, 5, 32}}},
		{"scaled", "Attention", Attr{Group: 1, Scores: []ScoreOp{{Kind: "Mul", Operands: 2}, {Kind: "Exp", Operands: 1}}},
			[]Shape{{1, 5, 6}, {1, 7, 6}, {1, 7, 3}, {1}}, []Shape{{1, 5, 3}}},
		{"in parts", "Attention",
			Attr{Group: 2, Softmax: true, Causal: true, Scores: []ScoreOp{{Kind: "Mul", Operands: 2}}},
			[]Shape{{4, 3, 6}, {2, 7, 6}, {2, 7, 5}, {2, 2, 6}, {2, 2, 5}, {4, 3, 9}}, []Shape{{4, 3, 5}}},
		{"parts of other widths", "Attention", Attr{Group: 1},
			[]Shape{{2, 3, 6}, {2, 7, 6}, {2, 7, 5}, {2, 1, 6}, {2, 1, 4}},
			"values [2,7,5] and [2,1,4], expected equal widths"},
		{"parts with other keys", "Attention", Attr{Group: 1},
			[]Shape{{2, 3, 6}, {2, 7, 6}, {2, 7, 5}, {2, 2, 6}, {2, 1, 5}}, "depths 6 and 6, keys 2 and 1"},
		{"keys without values", "Attention", Attr{Group: 1}, []Shape{{2, 3, 6}, {2, 7, 6}, {2, 7, 5}, {2, 1, 6}},
			"has 4 inputs, expected 3, and two more for each further part of the keys"},
		{"two dimensions", "Attention", Attr{Group: 1}, []Shape{{5, 6}, {7, 6}, {7, 3}}, "expected three dimensions or more"},
		{"heads that do not fit", "Attention", Attr{Group: 2}, []Shape{{2, 5, 6}, {2, 7, 6}, {2, 7, 3}},
			"do not fit for 2 heads of queries to one of keys"},
		{"depths", "Attention", Attr{Group: 1}, []Shape{{2, 5, 6}, {2, 7, 5}, {2, 7, 3}}, "depths 6 and 5, keys 7 and 7"},
		{"no keys before", "Attention", Attr{Group: 1, Causal: true, Softmax: true}, []Shape{{2, 8, 6}, {2, 7, 6}, {2, 7, 3}},
			"8 queries see what comes before of 7 keys"},
		{"hidden without softmax", "Attention", Attr{Group: 1, Causal: true}, []Shape{{2, 5, 6}, {2, 7, 6}, {2, 7, 3}},
			"without a softmax"},
		{"no score operator", "Attention", Attr{Group: 1, Scores: []ScoreOp{{Kind: "Conv", Operands: 2}}},
			[]Shape{{2, 5, 6}, {2, 7, 6}, {2, 7, 3}, {1}}, "score operator 0 is \"Conv\""},
		{"operands of scores", "Attention", Attr{Group: 1, Scores: []ScoreOp{{Kind: "Add", Operands: 2}}},
			[]Shape{{2, 5, 6}, {2, 7, 6}, {2, 7, 3}}, "has 3 inputs, expected 4"},
		{"mask", "Attention", Attr{Group: 1, Scores: []ScoreOp{{Kind: "Add", Operands: 2}}},
			[]Shape{{2, 5, 6}, {2, 7, 6}, {2, 7, 3}, {5, 6}}, "operand [5,6] of the scores does not broadcast to [2,5,7]"},
		{"last axis", "Softmax", Attr{Axis: 3}, []Shape{image}, []Shape{image}},
		{"axis", "Softmax", Attr{Axis: -1}, []Shape{image}, "axis -1 does not exist"},
		{"axes", "Softmax", Attr{Axes: []int64{1, 4}}, []Shape{image}, "axes [1 4] do not fit 4 dimensions"},
		{"scalar", "Softmax", Attr{}, []Shape{{}}, "axis 0 does not exist in shape []"},
		{"image", "LRN", Attr{Kernel: []int64{5}}, []Shape{image}, []Shape{image}},
		{"sequence", "LRN", Attr{Kernel: []int64{5}}, []Shape{{2, 8, 14}}, []Shape{{2, 8, 14}}},
		{"size 0", "LRN", Attr{Kernel: []int64{0}}, []Shape{image}, "expected one size"},
		{"huge size", "LRN", Attr{Kernel: []int64{big}}, []Shape{image}, "expected one size"},
		{"no size", "LRN", Attr{}, []Shape{image}, "expected one size"},
		{"matrix", "LRN", Attr{Kernel: []int64{5}}, []Shape{{2, 3}}, "at least three dimensions"},

		{"3x3 stride 2", "MaxPool", pool(3, 2, 1, false), []Shape{{1, 64, 112, 112}}, []Shape{{1, 64, 56, 56}}},
		{"rounding down", "MaxPool", pool(3, 2, 0, false), []Shape{{1, 64, 112, 112}}, []Shape{{1, 64, 55, 55}}},
		{"rounding up", "MaxPool", pool(3, 2, 0, true), []Shape{{1, 64, 112, 112}}, []Shape{{1, 64, 56, 56}}},
		{"rounding up where nothing is left over", "MaxPool", pool(3, 2, 0, true), []Shape{{1, 64, 113, 113}},
			[]Shape{{1, 64, 56, 56}}},
		// The third window would begin in the padding behind.
		{"rounding up does not begin in the padding", "MaxPool", pool(2, 2, 1, true), []Shape{{1, 1, 3, 3}},
			[]Shape{{1, 1, 2, 2}}},
		{"average", "AveragePool", pool(2, 2, 0, false), []Shape{image}, []Shape{{2, 8, 7, 7}}},
		{"kernel of another rank", "AveragePool", with(pool(2, 2, 0, false), func(a *Attr) { a.Kernel = []int64{2} }),
			[]Shape{image}, "kernel of 1 dimensions"},
		{"missing strides", "MaxPool", Attr{Kernel: []int64{2, 2}}, []Shape{image}, "do not fit the spatial dimensions"},
		{"kernel 0", "MaxPool", pool(0, 1, 0, false), []Shape{image}, "kernel: dimension 0 of shape [0,0] is 0"},
		{"huge kernel", "MaxPool", with(pool(3, 1, 1, false), func(a *Attr) { a.Kernel[0], a.Dilations[0] = big, 7 }),
			[]Shape{image}, "kernel: shape"},
		{"image", "GlobalAveragePool", Attr{}, []Shape{{2, 8, 7, 9}}, []Shape{{2, 8, 1, 1}}},
		{"sequence", "GlobalMaxPool", Attr{}, []Shape{{2, 8, 7}}, []Shape{{2, 8, 1}}},
		{"matrix", "GlobalMaxPool", Attr{}, []Shape{{2, 8}}, "at least three dimensions"},
		{"dropped dimensions", "ReduceMean", Attr{Axes: []int64{1, 3}}, []Shape{{2, 3, 4, 5}}, []Shape{{2, 4}}},
		{"kept dimensions", "ReduceSum", Attr{Axes: []int64{1, 3}, KeepDims: true}, []Shape{{2, 3, 4, 5}},
			[]Shape{{2, 1, 4, 1}}},
		{"to a scalar", "ReduceMax", Attr{Axes: []int64{0}}, []Shape{{2}}, []Shape{{}}},
		{"axes", "ReduceMin", Attr{Axes: []int64{1, 0}}, []Shape{{2, 3}}, "axes [1 0] do not fit"},
		{"axis twice", "ReduceMin", Attr{Axes: []int64{1, 1}}, []Shape{{2, 3}}, "axes [1 1] do not fit"},

		{"heads", "Reshape", Attr{Shape: []int64{2, 128, 12, 64}}, []Shape{{2, 128, 768}}, []Shape{{2, 128, 12, 64}}},
		{"elements", "Reshape", Attr{Shape: []int64{5, 5}}, []Shape{{2, 12}},
			"cannot reshape [2,12] (24 elements) to [5,5] (25)"},
		{"wrapped product", "Reshape", Attr{Shape: []int64{1 << 32, 1 << 32}}, []Shape{{1}}, "more than"},
		{"heads first", "Transpose", Attr{Perm: []int64{0, 2, 3, 1}}, []Shape{{2, 128, 12, 64}}, []Shape{{2, 12, 64, 128}}},
		{"twice the same", "Transpose", Attr{Perm: []int64{0, 0}}, []Shape{{2, 3}}, "is not a permutation of 2"},
		{"dimension behind the last", "Transpose", Attr{Perm: []int64{0, 2}}, []Shape{{2, 3}}, "is not a permutation of 2"},
		{"negative dimension", "Transpose", Attr{Perm: []int64{0, -1}}, []Shape{{2, 3}}, "is not a permutation of 2"},
		{"rank", "Transpose", Attr{Perm: []int64{0}}, []Shape{{2, 3}}, "does not fit"},
		{"channels", "Concat", Attr{Axis: 1}, []Shape{{2, 3, 4}, {2, 5, 4}, {2, 1, 4}}, []Shape{{2, 9, 4}}},
		{"other extents", "Concat", Attr{Axis: 1}, []Shape{{2, 3, 4}, {2, 5, 3}}, "differ beside axis 1"},
		{"ranks", "Concat", Attr{Axis: 0}, []Shape{{2, 3}, {2}}, "inputs have shapes [2,3] and [2]"},
		{"axis", "Concat", Attr{Axis: 2}, []Shape{{2, 3}}, "axis 2 does not exist"},
		{"parts", "Split", Attr{Axis: 1, Splits: []int64{1, 4}}, []Shape{{2, 5}}, []Shape{{2, 1}, {2, 4}}},
		{"sum", "Split", Attr{Axis: 1, Splits: []int64{1, 3}}, []Shape{{2, 5}}, "add up to 4, expected 5"},
		{"a sum that wraps around", "Split", Attr{Axis: 1, Splits: []int64{math.MaxInt64, math.MaxInt64, 7}},
			[]Shape{{2, 5}}, "more than"},
		{"axis behind the last", "Split", Attr{Axis: 2, Splits: []int64{5}}, []Shape{{2, 5}}, "cannot split"},
		{"negative axis", "Split", Attr{Axis: -1, Splits: []int64{5}}, []Shape{{2, 5}}, "cannot split"},
		{"no parts", "Split", Attr{Axis: 1}, []Shape{{2, 5}}, "cannot split"},
		{"steps", "Slice", Attr{Starts: []int64{1, 0}, Steps: []int64{2, 1}, Shape: []int64{3, 2}},
			[]Shape{{6, 3}}, []Shape{{3, 2}}},
		{"past the end", "Slice", Attr{Starts: []int64{2}, Steps: []int64{2}, Shape: []int64{3}}, []Shape{{6}},
			"leaves shape [6]"},
		{"a product that wraps around", "Slice", Attr{Starts: []int64{0}, Steps: []int64{1 << 40}, Shape: []int64{1<<40 + 1}},
			[]Shape{{6}}, "leaves shape [6]"},
		{"behind the end", "Slice", Attr{Starts: []int64{6}, Steps: []int64{2}, Shape: []int64{1}}, []Shape{{6}},
			"leaves shape [6]"},
		{"before the beginning", "Slice", Attr{Starts: []int64{-1}, Steps: []int64{1}, Shape: []int64{2}}, []Shape{{6}},
			"leaves shape [6]"},
		{"no step", "Slice", Attr{Starts: []int64{0}, Steps: []int64{0}, Shape: []int64{2}}, []Shape{{6}},
			"leaves shape [6]"},
		{"backwards", "Slice", Attr{Starts: []int64{2}, Steps: []int64{-1}, Shape: []int64{1}}, []Shape{{6}}, []Shape{{1}}},
		{"missing steps", "Slice", Attr{Starts: []int64{2}, Shape: []int64{1}}, []Shape{{6}}, "0 steps"},
		{"border and crop", "Pad", Attr{Pads: []int64{0, 2, 1, -1}}, []Shape{{2, 3}}, []Shape{{3, 4}}},
		{"nothing left", "Pad", Attr{Pads: []int64{-2, 0}}, []Shape{{2}}, "is 0, expected"},
		{"pads that wrap around", "Pad", Attr{Pads: []int64{math.MaxInt64, math.MaxInt64}}, []Shape{{5}}, "out of range"},
		{"pads at the other end", "Pad", Attr{Pads: []int64{math.MinInt64, math.MinInt64}}, []Shape{{5}}, "out of range"},
		{"one pad at the other end", "Pad", Attr{Pads: []int64{0, math.MinInt64}}, []Shape{{5}}, "out of range"},
		{"rank", "Pad", Attr{Pads: []int64{1, 1}}, []Shape{{2, 3}}, "2 pads"},
		{"embedding", "Gather", Attr{}, []Shape{{30522, 768}, {2, 128}}, []Shape{{2, 128, 768}}},
		{"one row of the middle", "Gather", Attr{Axis: 1}, []Shape{{2, 3, 4}, {}}, []Shape{{2, 4}}},
		{"axis", "Gather", Attr{Axis: 2}, []Shape{{2, 3}, {4}}, "axis 2 does not exist"},
		{"new and old dimensions", "Expand", Attr{Shape: []int64{5, 1, 3}}, []Shape{{4, 1}}, []Shape{{5, 4, 3}}},
		{"mismatch", "Expand", Attr{Shape: []int64{5}}, []Shape{{4}}, "do not broadcast"},
		{"extent 0", "Expand", Attr{Shape: []int64{0}}, []Shape{{1}}, "is 0, expected"},
		{"doubling", "Resize", Attr{Shape: []int64{2, 8, 28, 28}, Kernel: []int64{1, 1, 1, 1}}, []Shape{image},
			[]Shape{{2, 8, 28, 28}}},
		{"extent 0", "Resize", Attr{Shape: []int64{0}, Kernel: []int64{1}}, []Shape{{2}}, "is 0, expected"},
		{"no neighbours", "Resize", Attr{Shape: []int64{4}, Kernel: []int64{0}}, []Shape{{2}}, "0 neighbours"},
		{"rank", "Resize", Attr{Shape: []int64{1}, Kernel: []int64{1}}, []Shape{image}, "1 extents"},
		{"reversed", "Slice", Attr{Starts: []int64{5}, Steps: []int64{-2}, Shape: []int64{3}}, []Shape{{6}}, []Shape{{3}}},
		{"before the first", "Slice", Attr{Starts: []int64{4}, Steps: []int64{-2}, Shape: []int64{4}}, []Shape{{6}},
			"leaves shape [6]"},
		{"position of the largest", "ArgMax", Attr{Axes: []int64{1}}, []Shape{{2, 5}}, []Shape{{2}}},
		{"no axis", "ArgMax", Attr{}, []Shape{{2, 5}}, "expected one axis"},
		{"axis", "ArgMax", Attr{Axes: []int64{2}}, []Shape{{2, 5}}, "axes [2] do not fit"},
		{"negative axis", "ArgMax", Attr{Axes: []int64{-1}}, []Shape{{2, 5}}, "axes [-1] do not fit"},
		{"two axes", "ArgMax", Attr{Axes: []int64{0, 1}}, []Shape{{2, 5}}, "expected one axis"},
		{"running sum", "CumSum", Attr{Axis: 1}, []Shape{{2, 5}}, []Shape{{2, 5}}},
		{"axis", "CumSum", Attr{Axis: 2}, []Shape{{2, 5}}, "axis 2 does not exist"},
		{"root mean square", "RMSNorm", Attr{Axis: 1}, []Shape{{2, 5}, {5}}, []Shape{{2, 5}}},
		{"updates", "Scatter", Attr{}, []Shape{{9, 5}, {2, 1}, {2, 5}}, []Shape{{9, 5}}},
		{"anything", "Unknown", Attr{Shape: []int64{3, 4}}, []Shape{{2}, {7}}, []Shape{{3, 4}}},
		{"anything of no extent", "Unknown", Attr{Shape: []int64{0}}, []Shape{{2}}, "is 0, expected"},
		{"groups", "GroupNorm", Attr{Group: 3}, []Shape{image}, "8 channels do not divide into 3 groups"},
		{"best", "TopK", Attr{Axis: 1, Splits: []int64{3}}, []Shape{{2, 5}}, []Shape{{2, 3}, {2, 3}}},
		{"more than there are", "TopK", Attr{Axis: 1, Splits: []int64{6}}, []Shape{{2, 5}}, "the best [6] of 5"},
		{"positions", "GatherElements", Attr{Axis: 1}, []Shape{{2, 5}, {2, 9}}, []Shape{{2, 9}}},
		{"positions beyond", "GatherElements", Attr{Axis: 1}, []Shape{{2, 5}, {3, 9}}, "go beyond"},
		{"per channel", "Quantize", Attr{Axes: []int64{1}, Axis: int64(I8)}, []Shape{image, {8}, {8}}, []Shape{image}},
		{"scale of another channel count", "Dequantize", Attr{Axes: []int64{1}}, []Shape{image, {7}}, "[7] does not fit"},
		{"type", "Cast", Attr{Axis: int64(I32)}, []Shape{{2, 3}}, []Shape{{2, 3}}},
		{"type behind the last", "Cast", Attr{Axis: int64(U7) + 1}, []Shape{{2, 3}}, "unknown element type 20"},
		{"negative type", "Cast", Attr{Axis: -1}, []Shape{{2, 3}}, "unknown element type -1"},
		{"type that does not exist", "Cast", Attr{Axis: 256}, []Shape{{2, 3}}, "unknown element type 256"},

		{"unknown", "Nonsense", Attr{}, []Shape{{2}}, `unknown kind "Nonsense"`},
	} {
		tested[tt.kind] = true
		t.Run(string(tt.kind)+"/"+tt.name, func(t *testing.T) {
			g, err := single(tt.kind, tt.attr, tt.in...)
			switch want := tt.want.(type) {
			case string:
				if err == nil {
					t.Fatalf("no error, but %v", g.Tensor(g.Outputs[0]).Shape)
				}
				// "$" stands for the end of the message.
				if !strings.Contains(err.Error()+"$", want) || !strings.Contains(err.Error(), `"op"`) {
					t.Errorf("error %q, want one that names the operator and has %q", err, want)
				}
			case []Shape:
				if err != nil {
					t.Fatal(err)
				}
				var got []Shape
				for _, o := range g.Ops[0].Outputs {
					got = append(got, g.Tensor(o).Shape)
				}
				if !slices.EqualFunc(got, want, Shape.Equal) {
					t.Errorf("%v, want %v", got, want)
				}
			}
		})
	}
	// Element-wise kinds share their inference with Relu, Add or Sub.
	for _, k := range Kinds() {
		if info, _ := Info(k); !tested[k] && info.Class != ElementwiseClass {
			t.Errorf("kind %s has no row", k)
		}
	}
}

func TestTypes(t *testing.T) {
	b := NewBuilder("types")
	ids := b.Input("ids", I32, 2, 4)
	table := b.Param("table", BF16, 10, 8)
	rows := b.Op("Gather", "rows", Attr{}, table, ids)
	scaled := b.Op("Mul", "scaled", Attr{}, b.Const("scale", F32, nil, 1), rows)
	folded := b.Op("Mul", "folded", Attr{}, b.Const("c", I8, nil, 1), b.Const("d", U8, nil, 1))
	wide := b.Op("Cast", "wide", Attr{Axis: int64(F64)}, scaled)
	neg := b.Op("Neg", "neg", Attr{}, wide)
	b.Output(neg, folded)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[TensorID]DType{rows: BF16, scaled: BF16, folded: I8, wide: F64, neg: F64} {
		if got := g.Tensor(id); got.DType != want {
			t.Errorf("%s has type %v, want %v", got.Name, got.DType, want)
		}
	}
	if got := g.Tensor(wide).Bytes(); got != 2*4*8*8 {
		t.Errorf("%d bytes", got)
	}
}

func TestKinds(t *testing.T) {
	ks := Kinds()
	if !slices.IsSorted(ks) || len(ks) != len(kinds) {
		t.Errorf("Kinds has %d names, sorted %t", len(ks), slices.IsSorted(ks))
	}
	for _, k := range ks {
		info, ok := Info(k)
		if !ok || info.Kind != k || info.Doc == "" || info.infer == nil || info.access == nil {
			t.Errorf("kind %s is not complete: %+v", k, info)
			continue
		}
		if (info.macs != nil) != (info.Class == MatrixClass) {
			t.Errorf("kind %s of class %v: has MACs %t", k, info.Class, info.macs != nil)
		}
		if (&Op{Kind: k}).Class() != info.Class {
			t.Errorf("kind %s: Op.Class differs", k)
		}
	}
	if _, ok := Info("Nonsense"); ok {
		t.Error("Info knows an unknown kind")
	}
	defer func() {
		if recover() == nil {
			t.Error("a kind registered twice does not panic")
		}
	}()
	register(&KindInfo{Kind: "Relu"})
}

func TestClassNames(t *testing.T) {
	want := "matrix reduction element-wise injective view"
	if got := fmt.Sprint(MatrixClass, ReductionClass, ElementwiseClass, InjectiveClass, ViewClass); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSequential(t *testing.T) {
	for _, tt := range []struct {
		kind Kind
		attr Attr
		in   []Shape
		want []bool
	}{
		{"Softmax", Attr{Axis: 3}, []Shape{{2, 3, 4, 5}}, []bool{false, false, false, true}},
		{"Softmax", Attr{Axes: []int64{1, 2, 3}}, []Shape{{2, 3, 4, 5}}, []bool{false, true, true, true}},
		{"LayerNorm", Attr{Axis: 2}, []Shape{{2, 3, 4}, {4}, {4}}, []bool{false, false, true}},
		{"LayerNorm", Attr{Axis: 1}, []Shape{{2, 3, 4}}, []bool{false, true, true}},
		{"ReduceMean", Attr{Axes: []int64{1}, KeepDims: true}, []Shape{{2, 3}}, []bool{false, false}},
		{"Relu", Attr{}, []Shape{{2, 3}}, []bool{false, false}},
	} {
		p := newProbe(t, tt.kind, tt.attr, tt.in)
		if got := p.g.Sequential(p.op, 0); !slices.Equal(got, tt.want) {
			t.Errorf("%s %+v on %v: %v, want %v", tt.kind, tt.attr, tt.in, got, tt.want)
		}
	}
}

func TestWork(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind Kind
		attr Attr
		in   []Shape
		box  Region // nil: everything
		want Work
	}{
		{"convolution", "Conv", conv(1, 1, 1, 1), []Shape{{2, 8, 14, 14}, {16, 8, 3, 3}}, nil,
			Work{MACs: 2 * 16 * 14 * 14 * 8 * 9}},
		{"convolution with bias", "Conv", conv(1, 1, 0, 1), []Shape{{1, 8, 4, 4}, {2, 8, 1, 1}, {2}}, nil,
			Work{256, VectorWork{Simple: 32}}},
		{"groups", "Conv", conv(1, 1, 1, 4), []Shape{{2, 8, 14, 14}, {16, 2, 3, 3}}, nil,
			Work{MACs: 2 * 16 * 14 * 14 * 2 * 9}},
		{"a box", "Conv", conv(1, 1, 1, 1), []Shape{{2, 8, 14, 14}, {16, 8, 3, 3}}, Region{{0, 1}, {4, 8}, {0, 2}, {0, 14}},
			Work{MACs: 4 * 28 * 72}},
		// Every input element meets every kernel element.
		{"transposed convolution", "ConvTranspose", conv(2, 1, 0, 1), []Shape{{1, 8, 5, 5}, {8, 4, 2, 2}}, nil,
			Work{MACs: 8 * 25 * 4 * 4}},
		{"odd transposed convolution", "ConvTranspose", conv(2, 1, 0, 1), []Shape{{1, 8, 5, 5}, {8, 4, 3, 3}}, nil,
			Work{MACs: 8 * 4 * 15 * 15}},
		// Row and column -1 of the results are cut off: the first kernel row meets four inputs.
		{"cropped transposed convolution", "ConvTranspose", conv(2, 1, 1, 1), []Shape{{1, 8, 5, 5}, {8, 4, 3, 3}}, nil,
			Work{MACs: 8 * 4 * 13 * 13}},
		{"a box of a transposed convolution", "ConvTranspose", conv(2, 1, 0, 1), []Shape{{1, 8, 5, 5}, {8, 4, 3, 3}},
			Region{{0, 1}, {0, 4}, {0, 2}, {2, 3}}, Work{MACs: 8 * 4 * 2 * 2}},
		{"local normalisation", "LRN", Attr{Kernel: []int64{5}}, []Shape{{1, 8, 2, 2}}, nil,
			Work{Vector: VectorWork{Simple: 11 * 32, Special: 2 * 32}}},
		{"layer normalisation", "LayerNorm", Attr{Axis: 1}, []Shape{{2, 3}}, nil, Work{Vector: VectorWork{Simple: 42}}},
		{"Gelu", "Gelu", Attr{}, []Shape{{2, 3}}, nil, Work{Vector: VectorWork{Simple: 18, Special: 6}}},
		{"product", "MatMul", Attr{}, []Shape{{2, 3, 4}, {4, 5}}, nil, Work{MACs: 2 * 3 * 4 * 5}},
		{"transposed product with bias", "Gemm", Attr{TransA: true}, []Shape{{4, 3}, {4, 5}, {5}}, nil,
			Work{60, VectorWork{Simple: 15}}},
		{"two sums", "Add", Attr{}, []Shape{{2, 3}, {3}, {1}}, nil, Work{Vector: VectorWork{Simple: 12}}},
		{"quotient", "Div", Attr{}, []Shape{{2, 3}, {3}}, nil, Work{Vector: VectorWork{Special: 6}}},
		// Of the first two rows of a head: 2 + 3 of 4 keys; sums and differences, 2 results of width 3 a row.
		{"attention", "Attention", Attr{Group: 2, Softmax: true, Causal: true, Scores: []ScoreOp{{Kind: "Mul", Operands: 2}}},
			[]Shape{{2, 3, 5}, {1, 4, 5}, {1, 4, 3}, {1}}, Region{{1, 2}, {0, 2}, {0, 3}},
			Work{MACs: 5 * (5 + 3), Vector: VectorWork{Simple: 4*5 + 6, Special: 5 + 2}}},
		{"attention to parts", "Attention", Attr{Group: 2, Softmax: true, Causal: true,
			Scores: []ScoreOp{{Kind: "Mul", Operands: 2}}},
			[]Shape{{2, 3, 5}, {1, 3, 5}, {1, 3, 3}, {1, 1, 5}, {1, 1, 3}, {1}}, Region{{1, 2}, {0, 2}, {0, 3}},
			Work{MACs: 5 * (5 + 3), Vector: VectorWork{Simple: 4*5 + 6, Special: 5 + 2}}},
		{"softmax", "Softmax", Attr{Axis: 1}, []Shape{{2, 3}}, nil, Work{Vector: VectorWork{Simple: 24, Special: 6}}},
		{"pooling", "MaxPool", pool(3, 2, 1, false), []Shape{{1, 2, 8, 8}}, nil, Work{Vector: VectorWork{Simple: 32 * 9}}},
		{"global pooling", "GlobalAveragePool", Attr{}, []Shape{{1, 2, 8, 8}}, nil, Work{Vector: VectorWork{Simple: 128}}},
		{"reduction", "ReduceSum", Attr{Axes: []int64{0, 2}}, []Shape{{2, 3, 4}}, nil, Work{Vector: VectorWork{Simple: 24}}},
		{"transpose", "Transpose", Attr{Perm: []int64{1, 0}}, []Shape{{2, 3}}, nil, Work{Vector: VectorWork{Move: 6}}},
		{"all parts of a split", "Split", Attr{Axis: 1, Splits: []int64{1, 4}}, []Shape{{2, 5}}, nil,
			Work{Vector: VectorWork{Move: 10}}},
		{"a view is free", "Reshape", Attr{Shape: []int64{6}}, []Shape{{2, 3}}, nil, Work{}},
		{"nothing", "Relu", Attr{}, []Shape{{2, 3}}, Region{{0, 0}, {0, 3}}, Work{}},
	} {
		p := newProbe(t, tt.kind, tt.attr, tt.in)
		if got := p.g.Work(p.op, tt.box); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	w := VectorWork{1, 2, 3}.Add(VectorWork{10, 20, 30})
	if w != (VectorWork{11, 22, 33}) || w.Total() != 66 || w.times(2) != (VectorWork{22, 44, 66}) {
		t.Errorf("vector work %+v, total %d", w, w.Total())
	}
}

// TestVectorWorkRules: what the cost per element must be for each class of kinds,
// whatever the figures.
func TestVectorWorkRules(t *testing.T) {
	special := []Kind{"Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Reciprocal", "Gelu", "Silu", "Elu",
		"Softplus", "Div", "Pow",
		"Mod", "Mish", "Sin", "Cos"}
	free := []Kind{"Identity", "Dropout"}
	for _, c := range oracles() {
		if c.kind == "Attention" { // has vector work of its own
			continue
		}
		a, in := c.gen(rand.New(rand.NewSource(5)))
		p := newProbe(t, c.kind, a, in[:min(len(in), kinds[c.kind].minIn)])
		w := p.g.Work(p.op, nil)
		n := int64(0)
		for _, s := range p.out {
			n += s.Elements()
		}
		switch p.op.Class() {
		case MatrixClass:
			if w.Vector != (VectorWork{}) || w.MACs == 0 {
				t.Errorf("%s without bias: %+v, want MACs only", c.kind, w)
			}
		case ViewClass:
			if w != (Work{}) {
				t.Errorf("%s moves nothing, but has %+v", c.kind, w)
			}
		case InjectiveClass:
			interpolates := slices.ContainsFunc(p.op.Attr.Kernel, func(k int64) bool { return k > 1 })
			if w.Vector.Simple > 0 != interpolates {
				t.Errorf("%s of %v neighbours: %+v", c.kind, p.op.Attr.Kernel, w)
			}
			w.Vector.Simple = 0
			if w != (Work{Vector: VectorWork{Move: n}}) {
				t.Errorf("%s: %+v, want one move per element, of which there are %d", c.kind, w, n)
			}
		case ElementwiseClass:
			switch v := w.Vector; {
			case w.MACs != 0 || v.Move != 0:
				t.Errorf("%s: %+v, want neither MACs nor moves", c.kind, w)
			case slices.Contains(free, c.kind) != (v.Total() == 0):
				t.Errorf("%s: %d operations", c.kind, v.Total())
			case slices.Contains(special, c.kind) != (v.Special > 0):
				t.Errorf("%s: %d special operations", c.kind, v.Special)
			}
		case ReductionClass:
			if w.MACs != 0 || w.Vector.Simple == 0 || w.Vector.Move != 0 {
				t.Errorf("%s: %+v, want simple operations and neither MACs nor moves", c.kind, w)
			}
		}
	}
}

// TestArity: no kind takes more inputs than it knows what to do with.
func TestArity(t *testing.T) {
	most := map[Kind]int{"Conv": 3, "ConvTranspose": 3, "Gemm": 3, "LayerNorm": 3, "BatchNorm": 5,
		"MatMul": 2, "Gather": 2, "Sub": 2, "Div": 2, "Pow": 2, "PRelu": 2, "Mod": 2,
		"Equal": 2, "Greater": 2, "GreaterOrEqual": 2, "Less": 2, "LessOrEqual": 2, "And": 2, "Or": 2, "Xor": 2, "Where": 3,
		"Quantize": 3, "Dequantize": 3, "RMSNorm": 2, "GroupNorm": 3, "GatherElements": 2, "Scatter": 3}
	variadic := []Kind{"Add", "Mul", "Max", "Min", "Concat", "Unknown"}
	for _, c := range oracles() {
		a, in := c.gen(rand.New(rand.NewSource(5)))
		limit, ok := most[c.kind]
		if !ok {
			limit = 1
		}
		for len(in) <= limit {
			in = append(in, in[len(in)-1])
		}
		if slices.Contains(variadic, c.kind) {
			for range 20 {
				in = append(in, in[len(in)-1])
			}
			if _, err := single(c.kind, a, in...); err != nil {
				t.Errorf("%s of %d inputs: %v", c.kind, len(in), err)
			}
			continue
		}
		want := fmt.Sprintf("has %d inputs", limit+1)
		if _, err := single(c.kind, a, in[:limit+1]...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %d inputs: %v", c.kind, limit+1, err)
		}
		info, _ := Info(c.kind)
		want = fmt.Sprintf("has %d inputs", info.minIn-1)
		if _, err := single(c.kind, a, in[:info.minIn-1]...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %d inputs: %v", c.kind, info.minIn-1, err)
		}
	}
}

func TestMatrixDims(t *testing.T) {
	heads := []Shape{{2, 12, 128, 64}, {2, 12, 64, 100}}
	for _, tt := range []struct {
		name string
		kind Kind
		attr Attr
		in   []Shape
		box  Region // nil: everything
		want MatrixDims
	}{
		{"convolution", "Conv", conv(2, 1, 1, 1), []Shape{{2, 8, 14, 14}, {16, 8, 3, 3}}, nil,
			MatrixDims{Reps: 1, M: 2 * 7 * 7, N: 16, K: 72, Line: 7}},
		{"a tile of it", "Conv", conv(2, 1, 1, 1), []Shape{{2, 8, 14, 14}, {16, 8, 3, 3}},
			Region{{1, 2}, {4, 12}, {0, 3}, {2, 7}}, MatrixDims{Reps: 1, M: 15, N: 8, K: 72, Line: 5}},
		{"groups", "Conv", conv(1, 1, 1, 4), []Shape{{2, 8, 14, 14}, {16, 2, 3, 3}}, nil,
			MatrixDims{Reps: 4, M: 392, N: 4, K: 18, Line: 14}},
		{"two of the groups", "Conv", conv(1, 1, 1, 4), []Shape{{2, 8, 14, 14}, {16, 2, 3, 3}},
			Region{{0, 1}, {4, 12}, {0, 1}, {0, 1}}, MatrixDims{Reps: 2, M: 1, N: 4, K: 18, Line: 1}},
		{"groups of one output channel", "Conv", conv(1, 1, 0, 4), []Shape{{1, 8, 5, 5}, {4, 2, 1, 1}}, nil,
			MatrixDims{Reps: 4, M: 25, N: 1, K: 2, Line: 5}},
		{"half a group", "Conv", conv(1, 1, 1, 4), []Shape{{2, 8, 14, 14}, {16, 2, 3, 3}},
			Region{{0, 1}, {4, 6}, {0, 1}, {0, 1}}, MatrixDims{Reps: 1, M: 1, N: 2, K: 18, Line: 1}},
		{"across a group's border", "Conv", conv(1, 1, 1, 4), []Shape{{2, 8, 14, 14}, {16, 2, 3, 3}},
			Region{{0, 1}, {2, 6}, {0, 1}, {0, 1}}, MatrixDims{Reps: 2, M: 1, N: 2, K: 18, Line: 1}},
		{"shared weights make one tall product", "MatMul", Attr{}, []Shape{{2, 128, 768}, {768, 3072}}, nil,
			MatrixDims{Reps: 1, M: 256, N: 3072, K: 768}},
		{"also with leading ones", "MatMul", Attr{}, []Shape{{2, 128, 768}, {1, 768, 3072}}, nil,
			MatrixDims{Reps: 1, M: 256, N: 3072, K: 768}},
		{"heads are products of their own", "MatMul", Attr{}, heads, nil, MatrixDims{Reps: 24, M: 128, N: 100, K: 64}},
		{"some heads, some rows", "MatMul", Attr{}, heads, Region{{0, 1}, {3, 6}, {0, 32}, {0, 100}},
			MatrixDims{Reps: 3, M: 32, N: 100, K: 64}},
		{"row", "MatMul", Attr{}, []Shape{{4}, {6, 4, 5}}, nil, MatrixDims{Reps: 6, M: 1, N: 5, K: 4}},
		{"column", "MatMul", Attr{}, []Shape{{6, 3, 4}, {4}}, nil, MatrixDims{Reps: 1, M: 18, N: 1, K: 4}},
		{"dot product", "MatMul", Attr{}, []Shape{{4}, {4}}, nil, MatrixDims{Reps: 1, M: 1, N: 1, K: 4}},
		{"transposed", "Gemm", Attr{TransA: true, TransB: true}, []Shape{{4, 3}, {5, 4}, {5}}, nil,
			MatrixDims{Reps: 1, M: 3, N: 5, K: 4}},
		{"a tile of it", "Gemm", Attr{}, []Shape{{3, 4}, {4, 5}}, Region{{0, 2}, {1, 5}},
			MatrixDims{Reps: 1, M: 2, N: 4, K: 4}},
	} {
		p := newProbe(t, tt.kind, tt.attr, tt.in)
		box := tt.box
		if box == nil {
			box = Whole(p.out[0])
		}
		got, ok := p.g.MatrixDims(p.op, box)
		if !ok || got != tt.want {
			t.Errorf("%s: %+v, %t; want %+v", tt.name, got, ok, tt.want)
		}
		if macs := p.g.Work(p.op, box).MACs; got.Reps*got.M*got.N*got.K != macs {
			t.Errorf("%s: %+v are %d MACs, Work says %d", tt.name, got, got.Reps*got.M*got.N*got.K, macs)
		}
	}
	for _, tt := range []struct {
		name string
		kind Kind
		attr Attr
		in   []Shape
		box  Region
		unit bool
	}{
		{"depthwise", "Conv", conv(1, 1, 1, 8), []Shape{{2, 8, 14, 14}, {8, 1, 3, 3}}, nil, false},
		{"element-wise", "Relu", Attr{}, []Shape{{2, 8}}, nil, false},
		{"one channel is not depthwise", "Conv", conv(1, 1, 1, 1), []Shape{{2, 1, 14, 14}, {8, 1, 3, 3}},
			Region{{0, 0}, {0, 8}, {0, 1}, {0, 1}}, true},
	} {
		p := newProbe(t, tt.kind, tt.attr, tt.in)
		if tt.box == nil {
			tt.box = Whole(p.out[0])
		}
		if d, ok := p.g.MatrixDims(p.op, tt.box); ok {
			t.Errorf("%s: %+v, want none", tt.name, d)
		}
		if got := p.g.OnMatrixUnit(p.op); got != tt.unit {
			t.Errorf("%s: on the matrix unit: %t", tt.name, got)
		}
	}
}
