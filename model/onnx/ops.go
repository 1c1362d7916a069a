package onnx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// operator is the key of the table.
type operator struct{ domain, name string }

// row is the import rule of an operator for a range of operator sets. An operator
// whose meaning changed has several rows.
type row struct {
	operator
	since, until int64 // operator sets, inclusive; until 0: no end
	minIn, maxIn int   // inputs; maxIn -1: any number
	// kind is the operator's kind in the graph; empty if it is computed at import or becomes several operators.
	kind  model.Kind
	build func(*call)
	// fold computes the operator's first output if all inputs are known; nil if
	// it can't. It may return nil to leave the node to build.
	fold func(*call) *literal
	doc  string
}

func (r *row) versions() string {
	if r.until == 0 {
		return fmt.Sprintf("%d and later", r.since)
	}
	return fmt.Sprintf("%d to %d", r.since, r.until)
}

func (r *row) arity() string {
	switch {
	case r.maxIn < 0:
		return fmt.Sprintf("at least %d", r.minIn)
	case r.maxIn == r.minIn:
		return fmt.Sprint(r.minIn)
	}
	return fmt.Sprintf("%d to %d", r.minIn, r.maxIn)
}

// key identifies a row.
func (r *row) key() string {
	return fmt.Sprintf("%s.%s@%d", shownDomain(r.domain), r.name, r.since)
}

// OperatorInfo describes a row of the table of operators.
type OperatorInfo struct {
	Domain string `json:"domain"`
	Type   string `json:"type"`
	// Since and Until are operator sets, inclusive; Until 0: no end.
	Since int64 `json:"since_opset"`
	Until int64 `json:"until_opset,omitempty"`
	// Becomes are the graph's operators; empty if it is always computed at import.
	Becomes string `json:"becomes"`
	// Class is the cost class of what it becomes, or "several".
	Class string `json:"class,omitempty"`
	// Folds reports whether it is computed at import if its inputs are known: no, yes, or
	// only, if it is refused otherwise.
	Folds string `json:"folds"`
	Note  string `json:"note,omitempty"`
	// TestedBy names the test of this package that imports the operator.
	TestedBy string `json:"tested_by"`
}

// Operators lists the operators that can be imported, by domain, type and operator set.
func Operators() []OperatorInfo {
	var list []OperatorInfo
	for _, rows := range table {
		for _, r := range rows {
			info := OperatorInfo{Domain: shownDomain(r.domain), Type: r.name, Since: r.since, Until: r.until,
				Becomes: string(r.kind), Folds: "no", Note: r.doc, TestedBy: "TestRows/" + r.key()}
			switch {
			case r.build == nil:
				info.Folds = "only"
			case r.fold != nil:
				info.Folds = "yes"
			}
			if r.kind == "" && r.build != nil {
				// The note begins with the operators that it becomes.
				info.Becomes, info.Note, _ = strings.Cut(r.doc, "; ")
			}
			if strings.Contains(info.Becomes, ", ") {
				info.Class = "several"
			} else if k, ok := model.Info(model.Kind(info.Becomes)); ok {
				info.Class = k.Class.String()
			}
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b OperatorInfo) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Since, b.Since))
	})
	return list
}

const anyNumber = -1

func std(name string) operator { return operator{"", name} }
func ms(name string) operator  { return operator{"com.microsoft", name} }

// rows is the table. Operator sets before the earliest row differ in a way that no file in use has.
var rows = []row{
	// Matrix operators.
	{std("Conv"), 1, 0, 2, 3, "Conv", conv, nil, "convolution, grouped and depthwise too"},
	{std("ConvTranspose"), 1, 0, 2, 3, "ConvTranspose", convTranspose, nil, "transposed convolution"},
	{std("MatMul"), 1, 0, 2, 2, "MatMul", direct, nil, "batched matrix product"},
	{std("Gemm"), 1, 0, 2, 3, "Gemm", gemm, nil,
		"matrix product with bias; alpha and beta are free; operands of more than two dimensions become MatMul"},
	{std("Einsum"), 12, 0, 1, anyNumber, "", einsum, nil, "MatMul, with Transpose, Reshape and ReduceSum as needed"},
	{std("LSTM"), 7, 0, 3, 8, "", recurrent, nil,
		"Gemm, Split, Add, Sigmoid, Mul, Tanh, Concat; each step is there; without peepholes, and lengths of all steps"},
	{std("GRU"), 7, 0, 3, 6, "", recurrent, nil,
		"Gemm, Split, Add, Sigmoid, Mul, Tanh, Sub, Concat; each step is there; lengths of all steps"},
	{std("RNN"), 7, 0, 3, 6, "", recurrent, nil, "Gemm, Split, Add, Tanh, Concat; each step is there; lengths of all steps"},
	{ms("FusedMatMul"), 1, 0, 2, 2, "MatMul", fusedMatMul, nil, "Transpose, MatMul; alpha is free"},
	{ms("TransposeMatMul"), 1, 0, 2, 2, "MatMul", fusedMatMul, nil, "Transpose, MatMul; alpha is free"},
	{ms("FusedGemm"), 1, 0, 2, 3, "", fusedGemm, nil, "Gemm, activation"},
	{ms("FusedConv"), 1, 0, 2, 4, "", fusedConv, nil, "Conv, Add, activation"},
	{ms("NhwcConv"), 1, 0, 2, 3, "", nhwcConv, nil, "Transpose, Conv, Transpose"},
	{ms("NhwcFusedConv"), 1, 0, 2, 4, "", nhwcConv, nil, "Transpose, Conv, Transpose, Add, activation"},
	{ms("MatMulNBits"), 1, 0, 3, 6, "", matMulNBits, nil, "Dequantize of packed weights, MatMul"},
	{ms("MatMulBnb4"), 1, 0, 3, 3, "", matMulNBits, nil, "Dequantize of packed weights, MatMul"},

	// Pooling and normalisation.
	{std("MaxPool"), 1, 0, 1, 1, "MaxPool", pool, nil, "indices cost a Cast"},
	{std("AveragePool"), 1, 0, 1, 1, "AveragePool", pool, nil, ""},
	{std("GlobalMaxPool"), 1, 0, 1, 1, "GlobalMaxPool", direct, nil, ""},
	{std("GlobalAveragePool"), 1, 0, 1, 1, "GlobalAveragePool", direct, nil, ""},
	{std("LpPool"), 1, 0, 1, 1, "AveragePool", lpPool, nil, "costs an AveragePool"},
	{std("GlobalLpPool"), 1, 0, 1, 1, "GlobalAveragePool", likened, nil, "costs a GlobalAveragePool"},
	{std("BatchNormalization"), 1, 0, 5, 5, "BatchNorm", batchNorm, nil, "in training also ReduceMean, Mul, ReduceMean"},
	{std("LayerNormalization"), 1, 0, 2, 3, "LayerNorm", layerNorm, nil,
		"mean and deviation cost a ReduceMean each; standard since 17, in files before"},
	{std("RMSNormalization"), 23, 0, 2, 2, "RMSNorm", rmsNorm, nil, ""},
	{std("SimplifiedLayerNormalization"), 1, 0, 2, 2, "RMSNorm", rmsNorm, nil,
		"the deviation costs a ReduceMean; ONNX Runtime writes it into the standard domain"},
	{ms("SimplifiedLayerNormalization"), 1, 0, 2, 2, "RMSNorm", rmsNorm, nil, "the deviation costs a ReduceMean"},
	{ms("SkipLayerNormalization"), 1, 0, 3, 5, "", skipLayerNorm, nil, "Add, LayerNorm"},
	{ms("SkipSimplifiedLayerNormalization"), 1, 0, 3, 4, "", skipRMSNorm, nil, "Add, RMSNorm"},
	{ms("EmbedLayerNormalization"), 1, 0, 7, 9, "", embedLayerNorm, nil,
		"Gather, Add, LayerNorm, ReduceSum of the mask if used"},
	{std("InstanceNormalization"), 1, 0, 3, 3, "GroupNorm", instanceNorm, nil, "a group per channel"},
	{std("GroupNormalization"), 18, 20, 3, 3, "", groupNormOfGroups, nil, "GroupNorm, Mul, Add: scale and bias per group"},
	{std("GroupNormalization"), 21, 0, 3, 3, "GroupNorm", groupNorm, nil, ""},
	{std("MeanVarianceNormalization"), 9, 0, 1, 1, "", meanVariance, nil, "ReduceMean, Sub, Mul, ReduceMean, Sqrt, Div"},
	{std("LpNormalization"), 1, 0, 1, 1, "", lpNormalization, nil, "ReduceSum, Div"},
	{ms("GroupNorm"), 1, 0, 3, 3, "", skipGroupNorm, nil,
		"GroupNorm, with Transpose of channels that come last, and Silu"},
	{ms("SkipGroupNorm"), 1, 0, 4, 5, "", skipGroupNorm, nil, "Add, then as GroupNorm of com.microsoft"},
	{std("LRN"), 1, 0, 1, 1, "LRN", lrn, nil, ""},
	{std("Softmax"), 1, 12, 1, 1, "Softmax", softmaxFlat, nil, "over all axes from the given one on"},
	{std("Softmax"), 13, 0, 1, 1, "Softmax", softmax, nil, ""},
	{std("Hardmax"), 1, 0, 1, 1, "", hardmax, nil, "ArgMax, Equal, Cast"},
	{std("LogSoftmax"), 1, 12, 1, 1, "", logSoftmaxFlat, nil, "Softmax, Log"},
	{std("LogSoftmax"), 13, 0, 1, 1, "", logSoftmax, nil, "Softmax, Log"},
	{std("ReduceMean"), 1, 0, 1, 2, "ReduceMean", reduce, nil, ""},
	{std("ReduceSum"), 1, 0, 1, 2, "ReduceSum", reduce, nil, ""},
	{std("ReduceMax"), 1, 0, 1, 2, "ReduceMax", reduce, nil, ""},
	{std("ReduceMin"), 1, 0, 1, 2, "ReduceMin", reduce, nil, ""},
	{std("ReduceProd"), 1, 0, 1, 2, "ReduceSum", reduce, foldProduct, "costs a ReduceSum; folds for a whole list"},
	{std("ReduceL1"), 1, 0, 1, 2, "", reduceAfter("Abs", ""), nil, "Abs, ReduceSum"},
	{std("ReduceL2"), 1, 0, 1, 2, "", reduceAfter("Mul", "Sqrt"), nil, "Mul, ReduceSum, Sqrt"},
	{std("ReduceLogSum"), 1, 0, 1, 2, "", reduceAfter("", "Log"), nil, "ReduceSum, Log"},
	{std("ReduceLogSumExp"), 1, 0, 1, 2, "", reduceAfter("Exp", "Log"), nil, "Exp, ReduceSum, Log"},
	{std("ReduceSumSquare"), 1, 0, 1, 2, "", reduceAfter("Mul", ""), nil, "Mul, ReduceSum"},
	{std("ArgMax"), 1, 0, 1, 1, "ArgMax", argMax, nil, ""},
	{std("ArgMin"), 1, 0, 1, 1, "ArgMax", argMax, nil, "costs an ArgMax"},
	{std("TopK"), 1, 0, 1, 2, "TopK", topK, nil, "how many must be known"},
	{std("CumSum"), 11, 0, 2, 2, "CumSum", cumSum, nil, ""},

	// Losses.
	{std("SoftmaxCrossEntropyLoss"), 12, 0, 2, 3, "", crossEntropy, nil, "Softmax, Log, GatherElements, ReduceMean"},
	{std("NegativeLogLikelihoodLoss"), 12, 0, 2, 3, "", likelihoodLoss, nil, "GatherElements, ReduceMean"},

	// Element-wise, one input.
	{std("Relu"), 1, 0, 1, 1, "Relu", direct, nil, ""},
	{std("LeakyRelu"), 1, 0, 1, 1, "LeakyRelu", direct, nil, ""},
	{std("Elu"), 1, 0, 1, 1, "Elu", direct, nil, ""},
	{std("Selu"), 1, 0, 1, 1, "Elu", likened, nil, "costs an Elu"},
	{std("Celu"), 12, 0, 1, 1, "Elu", likened, nil, "costs an Elu"},
	{std("Sigmoid"), 1, 0, 1, 1, "Sigmoid", direct, nil, ""},
	{std("HardSigmoid"), 1, 0, 1, 1, "HardSigmoid", direct, nil, ""},
	{std("HardSwish"), 14, 0, 1, 1, "HardSwish", direct, nil, ""},
	{std("Softplus"), 1, 0, 1, 1, "Softplus", direct, nil, ""},
	{std("Tanh"), 1, 0, 1, 1, "Tanh", direct, nil, ""},
	{std("Erf"), 9, 0, 1, 1, "Erf", direct, nil, ""},
	{std("Gelu"), 1, 0, 1, 1, "Gelu", direct, nil, "in the standard from 20 on; some exporters write it before"},
	{ms("Gelu"), 1, 0, 1, 1, "Gelu", direct, nil, ""},
	{ms("FastGelu"), 1, 0, 1, 2, "Gelu", biasedGelu, nil, "Add for a bias"},
	{ms("BiasGelu"), 1, 0, 2, 2, "Gelu", biasedGelu, nil, "Add, Gelu"},
	{ms("BiasSplitGelu"), 1, 0, 2, 2, "", biasSplitGelu, nil, "Add, Split, Gelu, Mul"},
	{ms("QuickGelu"), 1, 0, 1, 1, "Silu", direct, nil, "x sigmoid(alpha x)"},
	{std("Swish"), 24, 0, 1, 1, "Silu", direct, nil, ""},
	{std("Mish"), 18, 0, 1, 1, "Mish", direct, nil, ""},
	{std("Softsign"), 1, 0, 1, 1, "Sigmoid", likened, nil, "costs a Sigmoid"},
	{std("ThresholdedRelu"), 1, 0, 1, 1, "LeakyRelu", likened, nil, "costs a LeakyRelu"},
	{std("Shrink"), 9, 0, 1, 1, "LeakyRelu", likened, nil, "costs a LeakyRelu"},
	{std("Sin"), 7, 0, 1, 1, "Sin", direct, nil, ""},
	{std("Cos"), 7, 0, 1, 1, "Cos", direct, nil, ""},
	{std("Tan"), 7, 0, 1, 1, "Sin", likened, nil, "costs a Sin"},
	{std("Asin"), 7, 0, 1, 1, "Sin", likened, nil, "costs a Sin"},
	{std("Acos"), 7, 0, 1, 1, "Sin", likened, nil, "costs a Sin"},
	{std("Atan"), 7, 0, 1, 1, "Sin", likened, nil, "costs a Sin"},
	{std("Sinh"), 9, 0, 1, 1, "Tanh", likened, nil, "costs a Tanh"},
	{std("Cosh"), 9, 0, 1, 1, "Tanh", likened, nil, "costs a Tanh"},
	{std("Asinh"), 9, 0, 1, 1, "Tanh", likened, nil, "costs a Tanh"},
	{std("Acosh"), 9, 0, 1, 1, "Tanh", likened, nil, "costs a Tanh"},
	{std("Atanh"), 9, 0, 1, 1, "Tanh", likened, nil, "costs a Tanh"},
	{std("Sign"), 9, 0, 1, 1, "Abs", likened, nil, "costs an Abs"},
	{std("IsNaN"), 9, 0, 1, 1, "Equal", compareItself, nil, "costs an Equal"},
	{std("IsInf"), 10, 0, 1, 1, "Equal", compareItself, nil, "costs an Equal"},
	{std("Exp"), 1, 0, 1, 1, "Exp", direct, nil, ""},
	{std("Log"), 1, 0, 1, 1, "Log", direct, nil, ""},
	{std("Sqrt"), 1, 0, 1, 1, "Sqrt", direct, foldUnary, ""},
	{std("Reciprocal"), 1, 0, 1, 1, "Reciprocal", direct, nil, ""},
	{std("Neg"), 1, 0, 1, 1, "Neg", direct, foldUnary, ""},
	{std("Abs"), 1, 0, 1, 1, "Abs", direct, foldUnary, ""},
	{std("Floor"), 1, 0, 1, 1, "Floor", direct, foldUnary, ""},
	{std("Ceil"), 1, 0, 1, 1, "Floor", likened, foldUnary, "costs a Floor"},
	{std("Round"), 11, 0, 1, 1, "Floor", likened, foldUnary, "costs a Floor"},
	{std("Not"), 1, 0, 1, 1, "Not", direct, foldUnary, ""},
	{std("Clip"), 1, 0, 1, 3, "Clip", clip, nil, "limits must be constants"},
	{std("Cast"), 6, 0, 1, 1, "Cast", castTo, foldCast, ""},
	{std("CastLike"), 15, 0, 2, 2, "Cast", castLike, nil, "folds if its first input is known"},
	{std("Identity"), 1, 0, 1, 1, "Identity", direct, foldIdentity, ""},
	{std("Dropout"), 1, 0, 1, 3, "Dropout", dropout, nil, "in training Greater, Where"},

	// Element-wise with broadcast.
	{std("Add"), 7, 0, 2, 2, "Add", twoOperands, foldArithmetic, ""},
	{std("Sub"), 7, 0, 2, 2, "Sub", twoOperands, foldArithmetic, ""},
	{std("Mul"), 7, 0, 2, 2, "Mul", twoOperands, foldArithmetic, ""},
	{std("Div"), 7, 0, 2, 2, "Div", twoOperands, foldArithmetic, ""},
	{std("Pow"), 7, 0, 2, 2, "Pow", direct, foldArithmetic, ""},
	{std("PRelu"), 7, 0, 2, 2, "PRelu", prelu, nil, ""},
	{std("Sum"), 1, 0, 1, anyNumber, "Add", nary, foldArithmetic, "of any number of inputs"},
	{std("Max"), 1, 0, 1, anyNumber, "Max", nary, foldArithmetic, "of any number of inputs"},
	{std("Min"), 1, 0, 1, anyNumber, "Min", nary, foldArithmetic, "of any number of inputs"},
	{std("Mean"), 1, 0, 1, anyNumber, "", mean, nil, "Add, Div"},
	{std("Mod"), 10, 0, 2, 2, "Mod", direct, foldArithmetic, ""},
	{std("Equal"), 1, 0, 2, 2, "Equal", direct, foldArithmetic, ""},
	{std("Greater"), 7, 0, 2, 2, "Greater", direct, foldArithmetic, ""},
	{std("GreaterOrEqual"), 12, 0, 2, 2, "GreaterOrEqual", direct, foldArithmetic, ""},
	{std("Less"), 7, 0, 2, 2, "Less", direct, foldArithmetic, ""},
	{std("LessOrEqual"), 12, 0, 2, 2, "LessOrEqual", direct, foldArithmetic, ""},
	{std("And"), 7, 0, 2, 2, "And", direct, foldArithmetic, ""},
	{std("Or"), 7, 0, 2, 2, "Or", direct, foldArithmetic, ""},
	{std("Xor"), 7, 0, 2, 2, "Xor", direct, foldArithmetic, ""},
	{std("Where"), 9, 0, 3, 3, "Where", direct, foldWhere, ""},

	{ms("BiasAdd"), 1, 0, 3, 3, "Add", direct, nil, "bias and residual"},

	// Number formats. Sums of products of integers stay in the matrix unit.
	{std("QuantizeLinear"), 10, 0, 2, 3, "Quantize", quantize, nil, "per tensor, channel or block"},
	{std("DequantizeLinear"), 10, 0, 2, 3, "Dequantize", dequantize, nil, "per tensor, channel or block"},
	{ms("QuantizeLinear"), 1, 0, 2, 3, "Quantize", quantize, nil, ""},
	{ms("DequantizeLinear"), 1, 0, 2, 3, "Dequantize", dequantize, nil, ""},
	{std("DynamicQuantizeLinear"), 11, 0, 1, 1, "", dynamicQuantize, nil, "ReduceMax, ReduceMin, Sub, Mul, Quantize"},
	{std("QLinearConv"), 10, 0, 8, 9, "", qlinearConv, nil, "Conv, Quantize"},
	{std("QLinearMatMul"), 10, 0, 8, 8, "", qlinearMatMul, nil, "MatMul, Quantize"},
	{std("ConvInteger"), 10, 0, 2, 4, "", convInteger, nil, "Conv, Cast"},
	{std("MatMulInteger"), 10, 0, 2, 4, "", matMulInteger, nil, "MatMul, Cast"},
	{ms("GatherBlockQuantized"), 1, 0, 3, 4, "", gatherQuantized, nil,
		"Gather of packed weights and of scales, Dequantize"},
	{ms("QGemm"), 1, 0, 6, 9, "", qgemm, nil, "Gemm, Quantize or Dequantize"},
	{ms("MatMulIntegerToFloat"), 1, 0, 4, 7, "", matMulToFloat, nil, "MatMul, Dequantize, Add for a bias"},
	{ms("DynamicQuantizeMatMul"), 1, 0, 3, 5, "", dynamicMatMul, nil,
		"ReduceMax, ReduceMin, Sub, Mul, Quantize, MatMul, Dequantize, Add for a bias"},
	{ms("QLinearAdd"), 1, 0, 7, 8, "", qlinearBinary("Add"), nil, "Add, Quantize"},
	{ms("QLinearMul"), 1, 0, 7, 8, "", qlinearBinary("Mul"), nil, "Mul, Quantize"},
	{ms("QLinearSigmoid"), 1, 0, 4, 5, "", qlinearUnary("Sigmoid"), nil, "Sigmoid, Quantize"},
	{ms("QLinearLeakyRelu"), 1, 0, 4, 5, "", qlinearUnary("LeakyRelu"), nil, "LeakyRelu, Quantize"},
	{ms("QLinearGlobalAveragePool"), 1, 0, 4, 5, "", qlinearUnary("GlobalAveragePool"), nil,
		"GlobalAveragePool, Quantize"},
	{ms("QLinearAveragePool"), 1, 0, 4, 5, "", qlinearPool, nil, "AveragePool, Quantize"},
	{ms("QLinearSoftmax"), 1, 0, 5, 5, "", qlinearSoftmax, nil, "Softmax, Quantize"},
	{ms("QLinearConcat"), 1, 0, 5, anyNumber, "", qlinearConcat, nil, "Quantize of each part, Concat"},

	// Attention.
	{std("Attention"), 23, 0, 3, 7, "", attention, nil,
		"MatMul, Mul, Softmax, MatMul, with Reshape, Transpose, Concat, Add, Tanh as needed; lengths given at run time are taken as full"},
	{std("RotaryEmbedding"), 23, 0, 3, 4, "", rotary, nil, "Gather, Slice, Mul, Sub, Add, Concat"},
	{ms("RotaryEmbedding"), 1, 0, 4, 4, "", rotaryMS, nil, "Gather, Slice, Mul, Sub, Add, Concat"},
	{ms("Attention"), 1, 0, 2, 7, "", attentionMS, nil,
		"MatMul, Add, Split, then as Attention; Split, Concat for a cache"},
	{ms("QAttention"), 1, 0, 5, 9, "", attentionQ, nil, "MatMul, Dequantize, then as Attention"},
	{ms("MultiHeadAttention"), 1, 0, 1, 10, "", multiHeadAttention, nil, "Add for a bias, then as Attention"},
	{ms("DecoderMaskedMultiHeadAttention"), 1, 0, 1, 11, "", decoderAttention, nil,
		"as MultiHeadAttention; Scatter for a cache of fixed length, which is taken as full; beams have a cache each"},
	{ms("GroupQueryAttention"), 1, 0, 7, 14, "", groupQueryAttention, nil,
		"rotation, then as Attention; the cache is taken as full"},

	// Movement.
	{std("Reshape"), 1, 0, 1, 2, "Reshape", reshape, foldReshape, "follows a change of batch"},
	{std("Flatten"), 1, 0, 1, 1, "Reshape", flatten, nil, ""},
	{std("Squeeze"), 1, 0, 1, 2, "Reshape", squeeze, foldSqueeze, ""},
	{std("Unsqueeze"), 1, 0, 1, 2, "Reshape", unsqueeze, foldUnsqueeze, ""},
	{std("Transpose"), 1, 0, 1, 1, "Transpose", transpose, foldTranspose, ""},
	{std("Concat"), 1, 0, 1, anyNumber, "Concat", concat, foldConcat, "parts written for one batch are expanded to it"},
	{std("Split"), 1, 0, 1, 2, "Split", split, nil, "folds if the input is known"},
	{std("Slice"), 1, 0, 1, 5, "Slice", slice, foldSlice, ""},
	{std("Pad"), 1, 0, 1, 4, "Pad", pad, nil, "any mode"},
	{std("Gather"), 1, 0, 2, 2, "Gather", gather, foldGather, ""},
	{std("GatherElements"), 11, 0, 2, 2, "GatherElements", gather, nil, ""},
	{std("GatherND"), 11, 0, 2, 2, "", gatherND, nil, "Mul, ReduceSum, Reshape, Gather; without batch_dims"},
	{std("Scatter"), 9, 10, 3, 3, "Scatter", scatter, nil, ""},
	{std("ScatterElements"), 11, 0, 3, 3, "Scatter", scatter, nil, ""},
	{std("ScatterND"), 11, 0, 3, 3, "Scatter", likened, foldScatterND, ""},
	{std("TensorScatter"), 24, 0, 2, 3, "Scatter", tensorScatter, nil, ""},
	{std("OneHot"), 9, 0, 3, 3, "", oneHot, nil, "Reshape, Equal, Where"},
	{std("Tile"), 6, 0, 2, 2, "", tile, foldTile, "Reshape, Expand, Reshape"},
	{std("DepthToSpace"), 1, 0, 1, 1, "", depthToSpace, nil, "Reshape, Transpose, Reshape"},
	{std("SpaceToDepth"), 1, 0, 1, 1, "", spaceToDepth, nil, "Reshape, Transpose, Reshape"},
	{std("Trilu"), 14, 0, 1, 2, "", trilu, nil, "Where"},
	{ms("ExpandDims"), 1, 0, 2, 2, "Reshape", unsqueeze, foldUnsqueeze, ""},
	{std("Expand"), 8, 0, 2, 2, "Expand", expand, foldExpand, ""},
	{std("Upsample"), 7, 9, 1, 2, "Resize", upsample, nil, ""},
	{std("Resize"), 10, 0, 1, 4, "Resize", resize, nil, "without cropping (tf_crop_and_resize)"},

	// Constants and shapes.
	{std("Constant"), 1, 0, 0, 0, "", constant, nil, "a constant"},
	{std("ConstantOfShape"), 9, 0, 1, 1, "", constantOfShape, nil, "a constant"},
	{std("Shape"), 1, 0, 1, 1, "", shapeOf, nil, "a constant"},
	{std("Size"), 1, 0, 1, 1, "", sizeOf, nil, "a constant"},
	{std("Range"), 11, 0, 3, 3, "", nil, foldRange, ""},
	{std("NonZero"), 9, 0, 1, 1, "", nil, foldNonZero, ""},
	{std("EyeLike"), 9, 0, 1, 1, "", eyeLike, nil, "a constant"},
	{std("If"), 1, 0, 1, 1, "", branch, nil, "the branch that a known condition chooses"},
}

// optional lists inputs that may be left out though others follow that may not.
var optional = map[operator][]int{
	ms("QLinearAdd"): {2, 5}, ms("QLinearMul"): {2, 5}, ms("QLinearSigmoid"): {2}, ms("QLinearLeakyRelu"): {2},
	ms("QLinearGlobalAveragePool"): {2}, ms("QLinearAveragePool"): {2}, ms("QLinearSoftmax"): {2},
	ms("EmbedLayerNormalization"): {1, 4},
	ms("GroupQueryAttention"):     {1, 2, 3, 4},
}

var table = map[operator][]*row{}

func init() { // the rows' functions look into the table
	for i := range rows {
		r := &rows[i]
		table[r.operator] = append(table[r.operator], r)
	}
}

// direct is an operator whose inputs and attributes need no translation.
func direct(c *call) { c.emit(c.row.kind, model.Attr{}, args(c.in...)) }

// likened is an operator that the graph knows only by another one of its cost.
func likened(c *call) {
	c.extra = append(c.extra, "of "+c.node.op)
	direct(c)
}

// spatialAttr reads what convolutions and poolings share. kernel and input are the spatial extents.
func (c *call) spatialAttr(input, kernel model.Shape) model.Attr {
	n := len(kernel)
	a := model.Attr{
		Strides:   c.spatial("strides", n, 1),
		Dilations: c.spatial("dilations", n, 1),
	}
	for i, k := range kernel {
		if s, d := a.Strides[i], a.Dilations[i]; k > 1<<30 || s < 1 || s > 1<<30 || d < 1 || d > 1<<30 {
			c.fail("kernel %v with strides %v and dilations %v, expected 1 to %d each", kernel, a.Strides, a.Dilations, 1<<30)
		}
	}
	pads, ok := c.each("pads", 2*n)
	if !ok {
		pads = make([]int64, 2*n)
	}
	mode := c.str("auto_pad", "NOTSET")
	switch mode {
	case "NOTSET", "":
	case "VALID":
		pads = make([]int64, 2*n)
	case "SAME_UPPER", "SAME_LOWER":
		// The output is the input divided by the stride, rounded up; an odd pad more goes to the end or to the beginning.
		pads = make([]int64, 2*n)
		for i := range n {
			s := a.Strides[i]
			out := (input[i]-1)/s + 1
			total := max(0, (out-1)*s+(kernel[i]-1)*a.Dilations[i]+1-input[i])
			pads[i], pads[n+i] = total/2, total-total/2
			if mode == "SAME_LOWER" {
				pads[i], pads[n+i] = pads[n+i], pads[i]
			}
		}
	default:
		c.fail("auto_pad is %q, expected NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode)
	}
	if len(pads) != 2*n {
		c.fail("attribute \"pads\" has %d entries, expected %d", len(pads), 2*n)
	} else if slices.Min(pads) < 0 || slices.Max(pads) > 1<<30 {
		c.fail("attribute \"pads\" is %v, expected 0 to %d each", pads, 1<<30)
	}
	a.Pads = pads
	return a
}

// images checks that a value has a batch, channels and at least one spatial dimension.
func (c *call) images(v *value) {
	if len(v.shape) < 3 {
		c.fail("input %q has shape %v, expected [N,C,spatial]", v.name, v.shape)
	}
}

func (c *call) convAttr() model.Attr { return c.convAttrOf(c.in[0], c.in[1]) }

// convAttrOf reads the attributes of a convolution of x with weights w.
func (c *call) convAttrOf(x, w *value) model.Attr {
	c.images(x)
	if len(w.shape) != len(x.shape) {
		c.fail("input %v and weights %v, expected equally many dimensions", x.shape, w.shape)
	}
	if k, ok := c.each("kernel_shape", len(w.shape)-2); ok && !slices.Equal(k, w.shape[2:]) {
		c.fail("kernel_shape is %v, but the weights have shape %v", k, w.shape)
	}
	a := c.spatialAttr(x.shape[2:], w.shape[2:])
	a.Group = c.int("group", 1)
	return a
}

func conv(c *call) {
	a := c.convAttr()
	c.emit("Conv", a, c.weighted())
}

// weighted are an operand, weights and an optional bias.
func (c *call) weighted() []arg {
	as := []arg{{c.in[0], operand}, {c.in[1], parameter}}
	if len(c.in) > 2 && c.in[2] != nil {
		as = append(as, arg{c.in[2], parameter})
	}
	return as
}

func convTranspose(c *call) {
	a := c.convAttr()
	x, w := c.in[0].shape[2:], c.in[1].shape[2:]
	a.OutputPadding = c.spatial("output_padding", len(w), 0)
	mode := c.str("auto_pad", "NOTSET")
	same := mode == "SAME_UPPER" || mode == "SAME_LOWER"
	want, given := c.ints("output_shape")
	if given && len(want) == len(w)+2 {
		want = want[2:]
	}
	if given && len(want) != len(w) {
		c.fail("output_shape is %v for %d spatial dimensions", want, len(w))
	}
	// With a wanted size, the pads are what is too much.
	for i := range w {
		if !given && !same {
			break
		}
		s := a.Strides[i]
		if s < 1 || s > 1<<30 || a.Dilations[i] < 1 || a.Dilations[i] > 1<<30 || a.OutputPadding[i] < 0 ||
			a.OutputPadding[i] > 1<<30 {
			break // refused later
		}
		out := x[i] * s
		if given {
			out = want[i]
		}
		total := s*(x[i]-1) + a.OutputPadding[i] + (w[i]-1)*a.Dilations[i] + 1 - out
		if total < 0 && given {
			if total < -1<<30 {
				c.fail("output_shape %v is too large", want)
			}
			a.OutputPadding[i] -= total // more is wanted than there is
		}
		total = max(0, total)
		lo, hi := total/2, total-total/2
		if mode != "SAME_UPPER" {
			lo, hi = hi, lo
		}
		a.Pads[i], a.Pads[len(w)+i] = lo, hi
	}
	c.emit("ConvTranspose", a, c.weighted())
}

// gemm is defined for matrices only, but some writers fuse a product of more dimensions and its bias into it.
func gemm(c *call) { c.gemm(c.weighted(), c.finish) }

// gemm adds the operators of a Gemm; last adds the one that yields its result.
func (c *call) gemm(in []arg, last func(model.Kind, model.Attr, ...arg)) {
	a := model.Attr{TransA: c.bool("transA", false), TransB: c.bool("transB", false)}
	for _, name := range []string{"alpha", "beta"} {
		if f := c.find(name); f != nil && f.f != 1 {
			c.extra = append(c.extra, name+"="+f.spell(c.node))
		}
	}
	a.Variant = c.variant()
	if len(in[0].v.shape) <= 2 && len(in[1].v.shape) <= 2 {
		last("Gemm", a, in...)
		return
	}
	x := c.transposed("a", in[0], a.TransA)
	w := c.transposed("b", in[1], a.TransB)
	if len(in) < 3 {
		last("MatMul", model.Attr{Variant: a.Variant}, x, w)
		return
	}
	y := c.step("product", "MatMul", model.Attr{Variant: a.Variant}, x, w)
	last("Add", model.Attr{}, arg{y, operand}, in[2])
}

// transposed swaps the last two dimensions of an operand, if it is to be.
func (c *call) transposed(suffix string, x arg, swap bool) arg {
	rank := len(x.v.shape)
	if !swap || rank < 2 {
		return x
	}
	perm := model.Dims(0, rank)
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	return arg{c.step(suffix+"/transpose", "Transpose", model.Attr{Perm: perm}, x), operand}
}

func pool(c *call) {
	c.pool(func(a model.Attr) {
		c.emit(c.row.kind, a, args(c.in[0]))
		if c.row.kind == "MaxPool" && c.reads(1) {
			indices := *c.step("indices", "Cast", model.Attr{Axis: int64(model.I64)}, operandOf(c.values[c.node.outputs[0]]))
			indices.within = c.in[0]
			c.bind(1, &indices)
		}
	})
}

// pool reads the attributes of a window and hands them on.
func (c *call) pool(use func(model.Attr)) {
	c.images(c.in[0])
	x := c.in[0].shape[2:]
	kernel, ok := c.each("kernel_shape", len(x))
	if !ok || len(kernel) != len(x) {
		c.fail("kernel_shape is %v, expected %d entries for input %v", kernel, len(x), c.in[0].shape)
	}
	if err := model.Shape(kernel).Check(); err != nil {
		c.fail("kernel_shape: %v", err)
	}
	a := c.spatialAttr(x, kernel)
	a.Kernel = kernel
	a.CeilMode = c.bool("ceil_mode", false)
	use(a)
}

func batchNorm(c *call) {
	if c.bool("training_mode", false) {
		trainedBatchNorm(c)
		return
	}
	if !c.bool("spatial", true) {
		c.fail("normalises each position by itself (spatial=0), which is not supported")
	}
	c.find("momentum") // of training
	c.emit("BatchNorm", model.Attr{}, append(c.weighted(), scaleArgs(c.in[3:]...)...))
}

func layerNorm(c *call) {
	for _, v := range c.in[1:] {
		if v == nil {
			continue
		}
		if s, err := model.Broadcast(c.in[0].shape, v.shape); err != nil || !s.Equal(c.in[0].shape) {
			c.fail("scale or bias %q has shape %v, which does not broadcast to %v", v.name, v.shape, c.in[0].shape)
		}
	}
	a := lastAxis(c)
	c.emit("LayerNorm", a, c.weighted())
	c.trained(int(a.Axis), "mean", "deviation")
}

func lrn(c *call) {
	size := c.int("size", 0)
	if size < 1 || size > 1<<30 {
		c.fail("size is %d, expected a positive number of channels", size)
	}
	c.images(c.in[0])
	c.emit("LRN", model.Attr{Kernel: []int64{size}}, args(c.in[0]))
}

// lastAxis reads an axis, the last one by default.
func lastAxis(c *call) model.Attr { return c.axisAttr(-1) }

func (c *call) axisAttr(def int64) model.Attr {
	return model.Attr{Axis: int64(c.axis(c.int("axis", def), len(c.in[0].shape)))}
}

// softmaxFlatAttr: the old operator flattens the input to a matrix before axis and normalises its rows.
func softmaxFlatAttr(c *call) model.Attr {
	rank := len(c.in[0].shape)
	a := c.axis(c.int("axis", 1), rank)
	attr := model.Attr{Axis: int64(a)}
	for d := a; d < rank-1; d++ {
		attr.Axes = append(attr.Axes, int64(d))
	}
	if len(attr.Axes) > 0 {
		attr.Axes = append(attr.Axes, int64(rank-1))
	}
	return attr
}

func softmax(c *call)     { c.emit("Softmax", lastAxis(c), args(c.in[0])) }
func softmaxFlat(c *call) { c.emit("Softmax", softmaxFlatAttr(c), args(c.in[0])) }

func logSoftmax(c *call)     { logOf(c, lastAxis(c)) }
func logSoftmaxFlat(c *call) { logOf(c, softmaxFlatAttr(c)) }

func logOf(c *call, a model.Attr) {
	c.emit("Log", model.Attr{}, args(c.step("softmax", "Softmax", a, arg{c.in[0], operand})))
}

func reduce(c *call) {
	rank := len(c.in[0].shape)
	list, ok := c.list("axes", 1)
	keep := c.bool("keepdims", true)
	if !ok || len(list) == 0 {
		if c.bool("noop_with_empty_axes", false) {
			c.emit("Identity", model.Attr{}, args(c.in[0]))
			return
		}
		list = model.Dims(0, rank)
	}
	c.find("noop_with_empty_axes")
	if c.node.op != string(c.row.kind) {
		c.extra = append(c.extra, "of "+c.node.op)
	}
	c.emit(c.row.kind, model.Attr{Axes: c.axes(list, rank), KeepDims: keep}, args(c.in[0]))
}

func clip(c *call) {
	c.note("min", c.in[1])
	c.note("max", c.in[2])
	c.emit("Clip", model.Attr{}, args(c.in[0]))
}

func castTo(c *call) {
	dt, err := c.dtype(c.int("to", 0))
	if err != nil {
		c.fail("attribute \"to\" %v", err)
	}
	u := operand
	if x := c.in[0]; x.constant && x.lit == nil && x.dtype.Narrow() && dt.IsFloat() {
		u = parameter // weights of few bits
	}
	c.emit("Cast", model.Attr{Axis: int64(dt)}, []arg{{c.in[0], u}})
}

func dropout(c *call) {
	if t := c.in[2]; c.reads(1) || t != nil && t.lit != nil && len(t.lit.ints) == 1 && t.lit.ints[0] != 0 {
		trainedDropout(c)
		return
	}
	// All that is left is training's.
	for _, a := range c.node.attrs {
		c.find(a.name)
	}
	c.emit("Dropout", model.Attr{}, args(c.in[0]))
}

func prelu(c *call) {
	c.emit("PRelu", model.Attr{}, []arg{{c.in[0], operand}, {c.in[1], parameter}})
}

func nary(c *call) {
	if len(c.in) == 1 {
		c.emit("Identity", model.Attr{}, args(c.in[0]))
		return
	}
	direct(c)
}

func mean(c *call) {
	if len(c.in) == 1 {
		c.emit("Identity", model.Attr{}, args(c.in[0]))
		return
	}
	sum := c.step("sum", "Add", model.Attr{}, args(c.in...)...)
	c.emit("Div", model.Attr{}, args(sum, c.number("count", sum.dtype)))
}
