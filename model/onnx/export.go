package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dsasched/dsasched/model"
)

// ExportOptions adjust an export. The zero value is the default.
type ExportOptions struct {
	// Version is the producer's version that the file names; may be empty.
	Version string
	// ZeroWeights makes all constants of unknown value zero, as sparse tensors without an entry, which take no space.
	// Such a file passes onnx.checker and runs in ONNX Runtime, but programs that know no sparse initializers find no
	// weights in it.
	ZeroWeights bool
}

// Export writes a graph as an ONNX file. Import gives the same graph back: the operators in their order, the tensors
// they use, the inputs and the outputs. The same graph yields the same bytes.
//
// A graph has no payloads, so its weights become initializers with type and shape, but without data. onnx.load and
// onnx.shape_inference take that as it is. The alternatives are worse: a reference to an external file that does not
// exist makes onnx.load itself fail, and invented numbers would pass for trained ones. onnx.checker does ask for data;
// see ExportOptions.ZeroWeights. Integers of known value are written out; the importer reads up to 4096 of a tensor.
//
// What ONNX has no operator for at this operator set becomes a call of a function that the file defines itself: Silu,
// Softmax over several axes, LayerNorm without a scale, and RMSNorm. Of Attr.Variant, the attributes of the operator
// are written, in the precision of its type.
func Export(w io.Writer, g *model.Graph) error { return ExportWith(w, g, ExportOptions{}) }

// ExportWith is Export with options.
func ExportWith(w io.Writer, g *model.Graph, opt ExportOptions) error {
	if err := g.Validate(); err != nil {
		return err
	}
	e := &exporter{g: g, opt: opt, taken: make(map[string]bool, len(g.Tensors)), limits: map[string]bool{}}
	m, err := e.model()
	if err != nil {
		return fmt.Errorf("graph %q: %w", g.Name, err)
	}
	_, err = w.Write(m)
	return err
}

const (
	// exportOpset is the first operator set with all operators that an export uses:
	// GroupNormalization with a scale per channel came last. Files with one set for all graphs are easier to compare.
	exportOpset = 21
	// exportIR is the version of the file format that came with it.
	exportIR = 10
	// ownDomain holds the functions in functions, at version 1.
	ownDomain = "dsasched"
	// learnedKey is the metadata of an initializer that reports whether training sets
	// it, which nothing else in a file does.
	learnedKey = "dsasched.learned"
)

// onnxTypes are the values of TensorProto.DataType; of 3 bits and of 5 to 7, which have none, those of the next type.
var onnxTypes = map[model.DType]int64{
	model.F32: 1, model.U8: 2, model.I8: 3, model.I16: 5, model.I32: 6, model.I64: 7, model.Bool: 9,
	model.F16: 10, model.F64: 11, model.BF16: 16, model.F8: 17,
	model.U4: 21, model.I4: 22, model.F4: 23, model.U2: 25, model.I2: 26,
	model.U3: 21, model.U5: 2, model.U6: 2, model.U7: 2,
}

// wire is a message of protobuf in the making.
type wire []byte

func (m *wire) int(num protowire.Number, v int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, num, protowire.VarintType), uint64(v))
}

func (m *wire) ints(num protowire.Number, vs []int64) {
	for _, v := range vs {
		m.int(num, v)
	}
}

func (m *wire) fixed32(num protowire.Number, v uint32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, num, protowire.Fixed32Type), v)
}

func (m *wire) bytes(num protowire.Number, v []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, num, protowire.BytesType), v)
}

func (m *wire) str(num protowire.Number, s string) { m.bytes(num, []byte(s)) }

func (m *wire) strs(num protowire.Number, list []string) {
	for _, s := range list {
		m.str(num, s)
	}
}

// exporter writes one graph.
type exporter struct {
	g            *model.Graph
	opt          ExportOptions
	taken        map[string]bool // names of tensors
	limits       map[string]bool // those of limits without a value, which operators may share
	nodes        wire            // fields of the GraphProto, as are
	initializers wire
	functions    []*function // used so far
}

func (e *exporter) model() (wire, error) {
	for _, t := range e.g.Tensors {
		switch {
		case t.Name == "":
			return nil, fmt.Errorf("tensor %d has no name, which in ONNX means an input left out", t.ID)
		case !utf8.ValidString(t.Name):
			return nil, fmt.Errorf("tensor %q: the name is not UTF-8, which ONNX expects", t.Name)
		}
		e.taken[t.Name] = true
		if t.Role == model.Constant {
			e.constant(t)
		}
	}
	for _, op := range e.g.Ops {
		if err := e.operator(op); err != nil {
			return nil, fmt.Errorf("operator %q (%s): %w", op.Name, op.Kind, err)
		}
	}

	var m wire
	m.int(1, exportIR)
	m.str(2, "dsasched")
	if e.opt.Version != "" {
		m.str(3, e.opt.Version)
	}
	m.bytes(7, e.graph())
	m.bytes(8, opsetID("", exportOpset))
	if len(e.functions) > 0 {
		m.bytes(8, opsetID(ownDomain, 1))
	}
	slices.SortFunc(e.functions, func(a, b *function) int { return cmp.Compare(a.name, b.name) })
	for _, f := range e.functions {
		m.bytes(25, f.proto())
	}
	return m, nil
}

func opsetID(domain string, version int64) wire {
	var m wire
	m.str(1, domain)
	m.int(2, version)
	return m
}

func (e *exporter) graph() wire {
	g, m := e.g, e.nodes
	m.str(2, cmp.Or(g.Name, "network")) // a graph must have a name
	m = append(m, e.initializers...)
	for _, id := range g.Inputs {
		m.bytes(11, valueInfoProto(g.Tensor(id)))
	}
	isOutput := make([]bool, len(g.Tensors))
	for _, id := range g.Outputs {
		isOutput[id] = true
		m.bytes(12, valueInfoProto(g.Tensor(id)))
	}
	for _, t := range g.Tensors {
		if t.Role == model.Activation && !isOutput[t.ID] {
			m.bytes(13, valueInfoProto(t))
		}
	}
	return m
}

func valueInfoProto(t *model.Tensor) wire {
	var m, typ, tensor, shape wire
	for _, n := range t.Shape {
		var d wire
		d.int(1, n)
		shape.bytes(1, d)
	}
	tensor.int(1, onnxTypes[t.DType])
	tensor.bytes(2, shape) // of a scalar too: without it the rank would be unknown
	typ.bytes(1, tensor)
	m.str(1, t.Name)
	m.bytes(2, typ)
	return m
}

// constant writes a constant of the graph.
func (e *exporter) constant(t *model.Tensor) {
	learned := "false"
	if t.Learned {
		learned = "true"
	}
	var mark wire
	mark.str(1, learnedKey)
	mark.str(2, learned)

	var data []byte
	switch {
	case t.Ints != nil && !t.DType.IsFloat() && int64(len(t.Ints)) == t.Shape.Elements():
		for _, v := range t.Ints {
			data = appendElement(data, t.DType, float64(v), v)
		}
	case e.opt.ZeroWeights && len(t.Shape) > 0:
		values := tensorProtoOf(t.Name, t.DType, model.Shape{0}, nil)
		values.bytes(16, mark)
		var m wire
		m.bytes(1, values)
		m.bytes(2, tensorProtoOf("", model.I64, model.Shape{0}, nil))
		m.ints(3, t.Shape)
		e.initializers.bytes(15, m)
		return
	case e.opt.ZeroWeights: // a scalar has no sparse form
		data = make([]byte, t.DType.Bytes(1))
	}
	m := tensorProtoOf(t.Name, t.DType, t.Shape, data)
	m.bytes(16, mark)
	e.initializers.bytes(5, m)
}

func tensorProtoOf(name string, dt model.DType, shape model.Shape, data []byte) wire {
	var m wire
	m.ints(1, shape)
	m.int(2, onnxTypes[dt])
	if name != "" {
		m.str(8, name)
	}
	// An empty tensor must not have the field either.
	if len(data) > 0 {
		m.bytes(9, data)
	}
	return m
}

// literal writes a constant that an operator takes as an input in ONNX, but has
// as an attribute in the graph. It returns its name.
func (e *exporter) literal(name string, dt model.DType, shape model.Shape, data []byte) string {
	for n := 1; e.taken[name]; n++ {
		// A name of the graph is not free.
		if next := fmt.Sprintf("%s.%d", name, n); !e.taken[next] {
			name = next
		}
	}
	e.taken[name] = true
	if data == nil && e.opt.ZeroWeights {
		data = make([]byte, dt.Bytes(shape.Elements()))
	}
	e.initializers.bytes(5, tensorProtoOf(name, dt, shape, data))
	return name
}

func (e *exporter) operator(op *model.Op) error {
	form, ok := forms[op.Kind]
	if !ok {
		return errors.New("there is no ONNX operator for this kind")
	}
	if !utf8.ValidString(op.Name) {
		return errors.New("the name is not UTF-8, which ONNX expects")
	}
	n := &nodeWriter{exporter: e, op: op, typ: form.typ, variant: parseVariant(op.Attr.Variant)}
	if slices.Contains(form.likened, n.variant.of) {
		n.typ = n.variant.of
	}
	for _, id := range op.Inputs {
		n.inputs = append(n.inputs, e.g.Tensor(id).Name)
	}
	if form.write != nil {
		form.write(n)
	}
	if n.err != nil {
		return n.err
	}
	n.options()
	e.nodes.bytes(1, n.proto())
	return nil
}

func (n *nodeWriter) proto() wire {
	var m wire
	m.strs(1, n.inputs)
	for _, id := range n.op.Outputs {
		m.str(2, n.g.Tensor(id).Name)
	}
	if n.op.Name != "" {
		m.str(3, n.op.Name)
	}
	m.str(4, n.typ)
	m = append(m, n.attrs...)
	if n.domain != "" {
		m.str(7, n.domain)
	}
	return m
}
