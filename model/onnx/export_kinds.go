package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// form is the written form of a kind.
type form struct {
	typ string
	// likened are the operators that the importer turns into this kind, leaving their name in Attr.Variant.
	likened []string
	// write adds what the operator needs beyond the graph's inputs; nil if nothing.
	write func(*nodeWriter)
}

// plainKinds are operators of the same name and need nothing beyond the graph's inputs.
var plainKinds = strings.Fields("MatMul GlobalMaxPool GlobalAveragePool Relu LeakyRelu Sigmoid HardSigmoid HardSwish " +
	"Softplus Tanh Erf Gelu Exp Log Sqrt Reciprocal Neg Abs Not Identity Dropout Sub Div Pow PRelu Max Min Mish Cos Mod " +
	"Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Where")

func init() {
	for _, k := range plainKinds {
		forms[model.Kind(k)] = form{typ: k}
	}
}

// forms has a row for each kind, those of plainKinds by init.
var forms = map[model.Kind]form{
	"Conv":          {"Conv", nil, writeConv},
	"ConvTranspose": {"ConvTranspose", nil, writeConv},
	"Gemm":          {"Gemm", nil, writeGemm},

	"MaxPool":     {"MaxPool", nil, writePool},
	"AveragePool": {"AveragePool", nil, writePool},
	"BatchNorm":   {"BatchNormalization", nil, nil},
	"LayerNorm":   {"LayerNormalization", nil, writeLayerNorm},
	"LRN":         {"LRN", nil, func(n *nodeWriter) { n.int("size", n.op.Attr.Kernel[0]) }},
	"Softmax":     {"Softmax", nil, writeSoftmax},
	"ReduceMean":  {"ReduceMean", nil, writeReduce},
	"ReduceSum":   {"ReduceSum", nil, writeReduce},
	"ReduceMax":   {"ReduceMax", nil, writeReduce},
	"ReduceMin":   {"ReduceMin", nil, writeReduce},

	"Elu":   {"Elu", []string{"Celu", "Selu"}, nil},
	"Silu":  {"Silu", nil, func(n *nodeWriter) { n.function(&siluFunction) }},
	"Floor": {"Floor", []string{"Ceil", "Round"}, nil},
	"Clip":  {"Clip", nil, writeClip},
	"Cast":  {"Cast", nil, func(n *nodeWriter) { n.int("to", onnxTypes[model.DType(n.op.Attr.Axis)]) }},

	"Add": {"Add", nil, writeSum},
	"Mul": {"Mul", nil, writeMul},

	"Reshape":   {"Reshape", nil, func(n *nodeWriter) { n.list("shape", n.op.Attr.Shape) }},
	"Transpose": {"Transpose", nil, func(n *nodeWriter) { n.ints("perm", n.op.Attr.Perm) }},
	"Concat":    {"Concat", nil, writeAxis},
	"Split": {"Split", nil, func(n *nodeWriter) {
		writeAxis(n)
		n.list("split", n.op.Attr.Splits)
	}},
	"Slice":  {"Slice", nil, writeSlice},
	"Pad":    {"Pad", nil, writePad},
	"Gather": {"Gather", nil, writeAxis},
	"Expand": {"Expand", nil, writeExpand},
	"Resize": {"Resize", nil, writeResize},

	"Sin": {"Sin", []string{"Tan", "Asin", "Acos", "Atan"}, nil},

	"Quantize":   {"QuantizeLinear", nil, writeQuantize},
	"Dequantize": {"DequantizeLinear", nil, writeQuantize},

	"RMSNorm":   {"RMSNormalization", nil, writeRMSNorm},
	"GroupNorm": {"GroupNormalization", nil, writeGroupNorm},
	"ArgMax": {"ArgMax", []string{"ArgMin"}, func(n *nodeWriter) {
		n.int("axis", n.op.Attr.Axes[0])
		n.int("keepdims", truth(n.op.Attr.KeepDims))
	}},
	"CumSum": {"CumSum", nil, func(n *nodeWriter) { n.list("axis", []int64{n.op.Attr.Axis}) }},
	"TopK": {"TopK", nil, func(n *nodeWriter) {
		n.list("k", n.op.Attr.Splits)
		writeAxis(n)
	}},
	"GatherElements": {"GatherElements", nil, writeAxis},
	"Scatter": {"ScatterElements", []string{"ScatterND"}, func(n *nodeWriter) {
		if n.variant.of == "TensorScatter" {
			n.fail("operator set %d has no TensorScatter", exportOpset)
		}
	}},
	"Attention": {"", nil, func(n *nodeWriter) {
		n.fail("an attention has no form of its own: export the network before its operators are put together")
	}},
	"Unknown": {"", nil, func(n *nodeWriter) { n.fail("nothing is known of this operator but its shape") }},
}

// options are the attributes that Attr.Variant may hold, with their types, by operator. What the operators of the
// file's operator set do not have, such as consumed_inputs of old files, is left out.
var options = map[string]map[string]int64{
	"ArgMax":             {"select_last_index": typeInt},
	"ArgMin":             {"select_last_index": typeInt},
	"AveragePool":        {"count_include_pad": typeInt},
	"BatchNormalization": {"epsilon": typeFloat},
	"Cast":               {"saturate": typeInt},
	"CumSum":             {"exclusive": typeInt, "reverse": typeInt},
	"DequantizeLinear":   {"axis": typeInt, "block_size": typeInt},
	"Celu":               {"alpha": typeFloat},
	"Elu":                {"alpha": typeFloat},
	"Gelu":               {"approximate": typeString},
	"Gemm":               {"alpha": typeFloat, "beta": typeFloat},
	"GroupNormalization": {"epsilon": typeFloat},
	"HardSigmoid":        {"alpha": typeFloat, "beta": typeFloat},
	"LRN":                {"alpha": typeFloat, "beta": typeFloat, "bias": typeFloat},
	"LayerNormalization": {"epsilon": typeFloat, "stash_type": typeInt},
	"LeakyRelu":          {"alpha": typeFloat},
	"MaxPool":            {"storage_order": typeInt},
	"Mod":                {"fmod": typeInt},
	"Pad":                {"mode": typeString},
	"QuantizeLinear":     {"axis": typeInt, "block_size": typeInt, "saturate": typeInt},
	"RMSNormalization":   {"epsilon": typeFloat},
	"ScatterElements":    {"axis": typeInt, "reduction": typeString},
	"ScatterND":          {"reduction": typeString},
	"TopK":               {"largest": typeInt, "sorted": typeInt},
	"Resize": {"antialias": typeInt, "coordinate_transformation_mode": typeString, "cubic_coeff_a": typeFloat,
		"exclude_outside": typeInt, "extrapolation_value": typeFloat, "keep_aspect_ratio_policy": typeString,
		"mode": typeString, "nearest_mode": typeString},
	"Selu": {"alpha": typeFloat, "gamma": typeFloat},
}

// variant is an Attr.Variant as the importer spells it: "name=value ...", a value in an input as "name=[value]" or, if
// it is not known, "name tensor", and "of Operator" for one that the kind only stands for.
type variant struct {
	values, tensors map[string]string
	of              string
}

func parseVariant(text string) variant {
	v := variant{map[string]string{}, map[string]string{}, ""}
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		name, value, ok := strings.Cut(words[i], "=")
		switch {
		case ok:
			v.values[name] = value
		case i+1 == len(words):
		case name == "of":
			i++
			v.of = words[i]
		default:
			i++
			v.tensors[name] = words[i]
		}
	}
	return v
}

// nodeWriter is a node in the making.
type nodeWriter struct {
	*exporter
	op          *model.Op
	typ, domain string
	inputs      []string
	attrs       wire // fields of the NodeProto
	variant     variant
	err         error
}

func (n *nodeWriter) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf(format, args...)
	}
}

// attribute adds an attribute; value writes its value.
func (n *nodeWriter) attribute(name string, typ int64, value func(*wire)) {
	n.attrs.bytes(5, attributeProto(name, typ, value))
}

func attributeProto(name string, typ int64, value func(*wire)) wire {
	var m wire
	m.str(1, name)
	value(&m)
	m.int(20, typ)
	return m
}

func (n *nodeWriter) int(name string, v int64) {
	n.attribute(name, typeInt, func(m *wire) { m.int(attrI, v) })
}

// ints adds a list. An empty one, as of a scalar's dimensions, is left out: some programs do not take it for a list.
func (n *nodeWriter) ints(name string, v []int64) {
	if len(v) == 0 {
		return
	}
	n.attribute(name, typeInts, func(m *wire) { m.ints(attrInts, v) })
}

// options adds the attributes that Attr.Variant holds.
func (n *nodeWriter) options() {
	known := options[n.typ]
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text, ok := n.variant.values[name]
		if !ok {
			continue
		}
		switch known[name] {
		case typeInt:
			if v, err := strconv.ParseInt(text, 10, 64); err == nil {
				n.int(name, v)
			}
		case typeFloat:
			if v, err := strconv.ParseFloat(text, 32); err == nil {
				n.attribute(name, typeFloat, func(m *wire) { m.fixed32(attrF, math.Float32bits(float32(v))) })
			}
		case typeString:
			n.attribute(name, typeString, func(m *wire) { m.str(attrS, text) })
		}
	}
}

// list adds an input that is a constant list of integers.
func (n *nodeWriter) list(what string, v []int64) {
	var data []byte
	for _, x := range v {
		data = appendElement(data, model.I64, 0, x)
	}
	n.inputs = append(n.inputs, n.literal(n.op.Name+"/"+what, model.I64, model.Shape{int64(len(v))}, data))
}

// skip leaves an optional input out.
func (n *nodeWriter) skip() { n.inputs = append(n.inputs, "") }

// limit adds an input that Attr.Variant holds: a single number of the operator's
// type. Without one, the input is left out.
func (n *nodeWriter) limit(name string) {
	dt := n.g.Tensor(n.op.Inputs[0]).DType
	text := n.variant.values[name]
	v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), 64)
	if err == nil && (dt.IsFloat() || v == math.Trunc(v) && math.Abs(v) < 1<<53) {
		n.inputs = append(n.inputs, n.literal(n.op.Name+"/"+name, dt, nil, appendElement(nil, dt, v, int64(v))))
		return
	}
	t := n.variant.tensors[name]
	if t != "" && !n.taken[t] {
		n.limits[n.literal(t, dt, nil, nil)] = true
	}
	if !n.limits[t] {
		t = ""
	}
	n.inputs = append(n.inputs, t)
}

// trim drops the inputs left out at the end.
func (n *nodeWriter) trim() {
	for n.inputs[len(n.inputs)-1] == "" {
		n.inputs = n.inputs[:len(n.inputs)-1]
	}
}

// function makes the node a call of a function, which the file then defines.
func (n *nodeWriter) function(f *function) {
	n.typ, n.domain = f.name, ownDomain
	if !slices.Contains(n.functions, f) {
		n.functions = append(n.functions, f)
	}
}

func (n *nodeWriter) windows() {
	a := n.op.Attr
	n.ints("strides", a.Strides)
	n.ints("pads", a.Pads)
	n.ints("dilations", a.Dilations)
}

func writeConv(n *nodeWriter) {
	n.ints("kernel_shape", n.g.Tensor(n.op.Inputs[1]).Shape[2:])
	n.windows()
	n.int("group", n.op.Attr.Group)
	if n.op.Kind == "ConvTranspose" && len(n.op.Attr.OutputPadding) > 0 {
		n.ints("output_padding", n.op.Attr.OutputPadding)
	}
}

func writePool(n *nodeWriter) {
	n.ints("kernel_shape", n.op.Attr.Kernel)
	n.windows()
	n.int("ceil_mode", truth(n.op.Attr.CeilMode))
}

func writeGemm(n *nodeWriter) {
	n.int("transA", truth(n.op.Attr.TransA))
	n.int("transB", truth(n.op.Attr.TransB))
}

func writeAxis(n *nodeWriter) { n.int("axis", n.op.Attr.Axis) }

// writeLayerNorm: ONNX's operator has no form without a scale.
func writeLayerNorm(n *nodeWriter) {
	writeAxis(n)
	if len(n.op.Inputs) == 1 {
		n.function(&layerNormFunction)
	}
}

// writeSoftmax: since operator set 13, ONNX's operator takes one axis only.
func writeSoftmax(n *nodeWriter) {
	a := n.op.Attr
	switch len(a.Axes) {
	case 0:
		n.int("axis", a.Axis)
	case 1:
		n.int("axis", a.Axes[0])
	default:
		n.int("axis", a.Axis)
		n.ints("axes", a.Axes)
		n.function(&softmaxFunction)
	}
}

func writeReduce(n *nodeWriter) {
	n.int("keepdims", truth(n.op.Attr.KeepDims))
	if len(n.op.Attr.Axes) == 0 {
		n.int("noop_with_empty_axes", 1) // else it would reduce all
		return
	}
	n.list("axes", n.op.Attr.Axes)
}

func writeClip(n *nodeWriter) {
	n.limit("min")
	n.limit("max")
	n.trim()
}

// writeSum: Add takes two operands, Sum any number.
func writeSum(n *nodeWriter) {
	if len(n.op.Inputs) > 2 {
		n.typ = "Sum"
	}
}

func writeMul(n *nodeWriter) {
	if k := len(n.op.Inputs); k > 2 {
		n.fail("has %d inputs, but ONNX's Mul has two", k)
	}
}

// writeSlice names only the dimensions that are cut, or one if none is.
func writeSlice(n *nodeWriter) {
	a, s := n.op.Attr, n.g.Tensor(n.op.Inputs[0]).Shape
	var starts, ends, axes, steps []int64
	for d := range s {
		if a.Starts[d] == 0 && a.Steps[d] == 1 && a.Shape[d] == s[d] && (d < len(s)-1 || len(axes) > 0) {
			continue
		}
		starts = append(starts, a.Starts[d])
		last := a.Starts[d] + (a.Shape[d]-1)*a.Steps[d]
		switch {
		case a.Steps[d] > 0:
			ends = append(ends, last+1)
		case last > 0:
			ends = append(ends, last-1)
		default:
			ends = append(ends, -s[d]-1) // -1 would be the last element
		}
		axes = append(axes, int64(d))
		steps = append(steps, a.Steps[d])
	}
	n.list("starts", starts)
	n.list("ends", ends)
	n.list("axes", axes)
	n.list("steps", steps)
}

func writePad(n *nodeWriter) {
	n.list("pads", n.op.Attr.Pads)
	n.limit("value")
	n.trim()
}

// writeResize states factors, which hold for any batch, unless the importer does
// not look at so many floats or gets another extent from them.
func writeResize(n *nodeWriter) {
	n.skip() // the region of interest
	x, a := n.g.Tensor(n.op.Inputs[0]).Shape, n.op.Attr
	k, exact := int64(1), len(x) <= maxKnownFloats
	var data []byte
	for d, e := range x {
		k = max(k, a.Kernel[d])
		f := float32(float64(a.Shape[d]) / float64(e))
		exact = exact && scaledExtent(float64(f), e) == a.Shape[d]
		data = appendElement(data, model.F32, float64(f), 0)
	}
	if _, stated := n.variant.values["mode"]; !stated && k > 1 {
		mode := "linear"
		if k > 2 {
			mode = "cubic"
		}
		n.attribute("mode", typeString, func(m *wire) { m.str(attrS, mode) })
	}
	if exact {
		n.inputs = append(n.inputs, n.literal(n.op.Name+"/scales", model.F32, model.Shape{int64(len(x))}, data))
		return
	}
	n.skip()
	n.list("sizes", a.Shape)
}

func writeQuantize(n *nodeWriter) {
	if a := n.op.Attr; len(a.Axes) == 1 {
		n.int("axis", a.Axes[0])
	}
	typ := onnxTypes[model.DType(n.op.Attr.Axis)]
	switch n.op.Kind {
	case "Quantize":
		n.int("output_dtype", typ)
	default:
		// ONNX's operator has the type of its scale.
		if len(n.op.Inputs) < 2 || n.g.Tensor(n.op.Inputs[1]).DType != model.DType(n.op.Attr.Axis) {
			n.fail("yields another type than its scale has")
		}
	}
	if len(n.op.Inputs) < 2 {
		n.fail("has no scale")
	}
}

// writeRMSNorm: ONNX has the operator since set 23 only.
func writeRMSNorm(n *nodeWriter) {
	writeAxis(n)
	if len(n.op.Inputs) == 1 {
		n.function(&rmsNormFunction)
	} else {
		n.function(&scaledRMSNormFunction)
	}
}

func writeGroupNorm(n *nodeWriter) {
	n.int("num_groups", n.op.Attr.Group)
	if len(n.op.Inputs) != 3 {
		n.fail("has %d inputs, but ONNX's GroupNormalization has three", len(n.op.Inputs))
	}
}

// appendElement appends a number as raw_data has it: f if the type is a floating-point one, else i.
func appendElement(b []byte, dt model.DType, f float64, i int64) []byte {
	le := binary.LittleEndian
	switch dt {
	case model.F16:
		return le.AppendUint16(b, floatToHalf(f))
	case model.BF16:
		return le.AppendUint16(b, floatToBrain(f))
	case model.F32:
		return le.AppendUint32(b, math.Float32bits(float32(f)))
	case model.F64:
		return le.AppendUint64(b, math.Float64bits(f))
	case model.I16:
		return le.AppendUint16(b, uint16(i))
	case model.I32:
		return le.AppendUint32(b, uint32(i))
	case model.I64:
		return le.AppendUint64(b, uint64(i))
	}
	return append(b, byte(i))
}

// floatToHalf rounds to the nearest half-precision number, of two to the even one.
func floatToHalf(v float64) uint16 {
	var sign uint16
	if math.Signbit(v) {
		sign = 1 << 15
	}
	v = math.Abs(v)
	switch {
	case math.IsNaN(v):
		return sign | 0x7e00
	case v >= 65520:
		return sign | 0x7c00
	case v < 1.0/(1<<14):
		return sign | uint16(math.RoundToEven(v*(1<<24)))
	}
	frac, exp := math.Frexp(v)
	// A fraction that rounds up to the next power carries into the exponent.
	return sign | (uint16(exp+14)<<10 + uint16(math.RoundToEven(frac*2048)) - 1024)
}

func floatToBrain(v float64) uint16 {
	b := math.Float32bits(float32(v))
	if v != v {
		return uint16(b>>16) | 1<<6 // the payload's upper half must not become zero
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Functions of the file, for what ONNX has no operator at operator set 20. Any
// program that reads ONNX may expand them; the importer knows them by name.

type function struct {
	name, doc string
	inputs    []string
	attrs     []string // without a default
	epsilon   bool     // has the attribute of that name, with a default
	// body has a node in each line: its output, its operator and its inputs. A Constant is one, or an attribute of the
	// function, behind a dollar sign.
	body string
}

var siluFunction = function{name: "Silu", doc: "x sigmoid(x)", inputs: []string{"x"}, body: `
	s Sigmoid x
	y Mul x s`}

// axis is only kept for the importer.
var softmaxFunction = function{name: "Softmax", doc: "exp and normalise over all of axes together",
	inputs: []string{"x"}, attrs: []string{"axes", "axis"}, body: `
	axes Constant $axes
	max ReduceMax x axes
	shifted Sub x max
	exp Exp shifted
	sum ReduceSum exp axes
	y Div exp sum`}

// lastAxes are the dimensions of x from the attribute axis on.
const lastAxes = `
	first Constant $axis
	shape Shape x
	rank Size shape
	one Constant 1
	axes Range first rank one`

var layerNormFunction = function{name: "LayerNormalization", doc: "layer normalisation without scale",
	inputs: []string{"x"}, attrs: []string{"axis"}, epsilon: true, body: lastAxes + `
	mean ReduceMean x axes
	centred Sub x mean
	squares Mul centred centred
	variance ReduceMean squares axes
	epsilon Constant $epsilon
	small CastLike epsilon x
	sum Add variance small
	deviation Sqrt sum
	y Div centred deviation`}

// meanRoot is the root of the mean square along these dimensions.
const meanRoot = lastAxes + `
	squares Mul x x
	mean ReduceMean squares axes
	epsilon Constant $epsilon
	small CastLike epsilon x
	sum Add mean small
	root Sqrt sum`

var rmsNormFunction = function{name: "RMSNormalization", doc: "division by the root mean square", inputs: []string{"x"},
	attrs: []string{"axis"}, epsilon: true, body: meanRoot + `
	y Div x root`}

var scaledRMSNormFunction = function{name: "ScaledRMSNormalization",
	doc: "division by the root mean square, with scale", inputs: []string{"x", "scale"},
	attrs: []string{"axis"}, epsilon: true, body: meanRoot + `
	plain Div x root
	y Mul plain scale`}

// functionAttrs are the attributes that a Constant takes from its function: what it has for them, and their types.
var functionAttrs = map[string]struct {
	constant string
	typ      int64
}{"axes": {"value_ints", typeInts}, "axis": {"value_int", typeInt}, "epsilon": {"value_float", typeFloat}}

func (f *function) proto() wire {
	const refAttrName = 21
	var m wire
	m.str(1, f.name)
	m.strs(4, f.inputs)
	m.str(5, "y")
	m.strs(6, f.attrs)
	for line := range strings.Lines(strings.TrimSpace(f.body)) {
		words := strings.Fields(line)
		var n wire
		if words[1] != "Constant" {
			n.strs(1, words[2:])
		}
		n.str(2, words[0])
		n.str(4, words[1])
		if name, ref := strings.CutPrefix(words[2], "$"); ref {
			a := functionAttrs[name]
			n.bytes(5, attributeProto(a.constant, a.typ, func(m *wire) { m.str(refAttrName, name) }))
		} else if words[1] == "Constant" {
			n.bytes(5, attributeProto("value_int", typeInt, func(m *wire) { m.int(attrI, 1) }))
		}
		m.bytes(7, n)
	}
	m.str(8, f.doc)
	m.bytes(9, opsetID("", exportOpset))
	m.str(10, ownDomain)
	if f.epsilon {
		m.bytes(11, attributeProto("epsilon", typeFloat, func(m *wire) { m.fixed32(attrF, math.Float32bits(1e-5)) }))
	}
	return m
}

// writeExpand leaves extents that the input has as 1, so that the file can be read with another batch.
func writeExpand(n *nodeWriter) {
	in := n.g.Tensor(n.op.Inputs[0]).Shape
	shape := slices.Clone(n.op.Attr.Shape)
	for i := range shape {
		if k := i - (len(shape) - len(in)); k >= 0 && in[k] == shape[i] {
			shape[i] = 1
		}
	}
	n.list("shape", shape)
}
