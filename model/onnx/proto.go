package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dsasched/dsasched/model"
)

// The messages of onnx.proto, as far as the importer needs them. The numbers in
// the decoding functions are the field numbers there.

type modelProto struct {
	irVersion int64
	opsets    map[string]int64
	graph     *graphProto
	functions map[functionKey]*functionProto
	budget    int64 // of memory, what decoding has left
}

// functionKey names a function of the file.
type functionKey struct{ domain, name, overload string }

func (k functionKey) String() string {
	s := k.name
	if k.overload != "" {
		s += ":" + k.overload
	}
	return fmt.Sprintf("%s of domain %s", s, shownDomain(k.domain))
}

// functionProto is an operator that the file defines by others.
type functionProto struct {
	functionKey
	inputs, outputs []string
	defaults        []*attribute
	graph           graphProto // nodes only
	opsets          map[string]int64
}

type graphProto struct {
	name         string
	nodes        []*nodeProto
	initializers []*tensorProto
	inputs       []*valueInfo
	outputs      []*valueInfo
	valueInfo    []*valueInfo
}

type nodeProto struct {
	index           int // in its graph
	name, op        string
	domain          string
	overload        string
	inputs, outputs []string
	attrs           []*attribute
	opsets          map[string]int64 // of the file, or of the function that it is from
	row             *row             // nil: not known
	captured        []string         // what its graphs read from around them
}

type attribute struct {
	name    string
	typ     int64
	has     uint32 // bit n: field n was there; cut: its value is not all here
	i       int64
	f       float32
	s       string
	t       *tensorProto
	g       *graphProto
	ref     string // the attribute of the function whose value this one takes
	ints    []int64
	floats  []float32
	strings []string
}

// Field numbers of AttributeProto, and the values of its type field.
const (
	attrF, attrI, attrS, attrT, attrG     = 2, 3, 4, 5, 6
	attrFloats, attrInts, attrStrings     = 7, 8, 9
	typeFloat, typeInt, typeString        = 1, 2, 3
	typeFloats, typeInts, typeStrings     = 6, 7, 8
	attrRef                               = 21
	maxAttrInts, maxAttrString, maxRank   = 4096, 4096, 32
	maxGraphDepth                         = 16
	cut                                   = 1 << 31
	nodeBytes, infoBytes, attributeBytes  = 1024, 160, 240
	tensorBytes, elementBytes, labelBytes = 300, 8, 16
)

var errRank = fmt.Errorf("has more than %d dimensions", maxRank)

type valueInfo struct {
	name   string
	tensor bool // else a sequence, a map …
	elem   int64
	ranked bool
	dims   []dim
}

// dim is a number, a name, or neither.
type dim struct {
	value int64
	fixed bool
	name  string
}

// tensorProto keeps the payload of small tensors only.
type tensorProto struct {
	name   string
	dims   model.Shape
	typ    int64
	ints   []int64   // integers and booleans, if known
	floats []float64 // if known
	known  bool
	// learned is what an exporter of this package says; nil in other files.
	learned *bool
}

// What the importer may look into: shapes and indices, and the numbers that
// scale shapes.
const (
	maxKnownInts   = 4096
	maxKnownFloats = 8
	maxKnownBytes  = 8 * maxKnownInts
)

func decodeModel(d *decoder) (*modelProto, error) {
	m := &modelProto{opsets: map[string]int64{}, functions: map[functionKey]*functionProto{}}
	err := d.fields("ModelProto", func(h field) (err error) {
		switch h.num {
		case 1:
			m.irVersion, err = d.int(h)
		case 7:
			if m.graph == nil {
				m.graph = &graphProto{}
			}
			err = d.graph(h, m.graph)
		case 8:
			err = d.opset(h, m.opsets)
		case 25:
			f := &functionProto{opsets: map[string]int64{}}
			if err := d.function(h, f); err != nil {
				return err
			}
			if m.functions[f.functionKey] != nil {
				return fmt.Errorf("two functions are called %v", f.functionKey)
			}
			m.functions[f.functionKey] = f
		default:
			err = d.skipField(h)
		}
		return err
	})
	m.budget = d.budget
	return m, err
}

// opset reads an OperatorSetIdProto. A file may import a domain several times;
// the newest counts.
func (d *decoder) opset(h field, into map[string]int64) error {
	var domain string
	var version int64
	err := d.message(h, "OperatorSetIdProto", func(h field) (err error) {
		switch h.num {
		case 1:
			domain, err = d.name(h)
		case 2:
			version, err = d.int(h)
		default:
			err = d.skipField(h)
		}
		return err
	})
	domain = canonicalDomain(domain)
	into[domain] = max(into[domain], version)
	return err
}

func (d *decoder) function(h field, f *functionProto) error {
	if err := d.charge(nodeBytes); err != nil {
		return err
	}
	err := d.message(h, "FunctionProto", func(h field) (err error) {
		var s string
		switch h.num {
		case 1:
			f.name, err = d.name(h)
		case 4:
			if s, err = d.name(h); err == nil {
				f.inputs = append(f.inputs, s)
				err = d.charge(labelBytes)
			}
		case 5:
			if s, err = d.name(h); err == nil {
				f.outputs = append(f.outputs, s)
				err = d.charge(labelBytes)
			}
		case 7:
			err = d.appendNode(h, &f.graph)
		case 9:
			err = d.opset(h, f.opsets)
		case 10:
			f.domain, err = d.name(h)
			f.domain = canonicalDomain(f.domain)
		case 11:
			a := &attribute{}
			f.defaults = append(f.defaults, a)
			err = d.attribute(h, a)
		case 13:
			f.overload, err = d.name(h)
		default:
			err = d.skipField(h)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("function %q: %w", f.name, err)
	}
	return nil
}

func canonicalDomain(s string) string {
	if s == "ai.onnx" {
		return ""
	}
	return s
}

// shownDomain is a domain as errors name it.
func shownDomain(s string) string {
	if s == "" {
		return "ai.onnx"
	}
	return s
}

func (d *decoder) appendNode(h field, g *graphProto) error {
	n := &nodeProto{index: len(g.nodes)}
	if err := d.charge(nodeBytes); err != nil {
		return err
	}
	g.nodes = append(g.nodes, n)
	return d.node(h, n)
}

func (d *decoder) graph(h field, g *graphProto) error {
	return d.message(h, "GraphProto", func(h field) (err error) {
		switch h.num {
		case 1:
			err = d.appendNode(h, g)
		case 2:
			g.name, err = d.name(h)
		case 5:
			t := &tensorProto{}
			g.initializers = append(g.initializers, t)
			err = d.tensor(h, t)
		case 11:
			err = d.valueInfos(h, &g.inputs)
		case 12:
			err = d.valueInfos(h, &g.outputs)
		case 13:
			err = d.valueInfos(h, &g.valueInfo)
		case 15:
			t := &tensorProto{}
			g.initializers = append(g.initializers, t)
			err = d.sparse(h, t)
		default:
			err = d.skipField(h)
		}
		return err
	})
}

func (d *decoder) node(h field, n *nodeProto) error {
	err := d.message(h, "NodeProto", func(h field) (err error) {
		var s string
		switch h.num {
		case 1:
			if s, err = d.name(h); err == nil {
				n.inputs = append(n.inputs, s)
				err = d.charge(labelBytes)
			}
		case 2:
			if s, err = d.name(h); err == nil {
				n.outputs = append(n.outputs, s)
				err = d.charge(labelBytes)
			}
		case 3:
			n.name, err = d.name(h)
		case 4:
			n.op, err = d.name(h)
		case 5:
			a := &attribute{}
			if err := d.charge(attributeBytes); err != nil {
				return err
			}
			n.attrs = append(n.attrs, a)
			err = d.attribute(h, a)
		case 7:
			n.domain, err = d.name(h)
			n.domain = canonicalDomain(n.domain)
		case 8:
			n.overload, err = d.name(h)
		default:
			err = d.skipField(h)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("node %d %q: %w", n.index, n.name, err)
	}
	return nil
}

func (d *decoder) attribute(h field, a *attribute) error {
	return d.message(h, "AttributeProto", func(h field) (err error) {
		if h.num < 32 {
			a.has |= 1 << h.num
		}
		switch h.num {
		case 1:
			a.name, err = d.name(h)
		case attrF:
			var v uint32
			v, err = d.fixed32(h)
			a.f = math.Float32frombits(v)
		case attrI:
			a.i, err = d.int(h)
		case attrS:
			var whole bool
			if a.s, whole, err = d.text(h); !whole {
				a.has |= cut
			}
		case attrT:
			a.t = &tensorProto{}
			err = d.tensor(h, a.t)
		case attrG:
			if d.depth == maxGraphDepth {
				return fmt.Errorf("graphs are nested more than %d deep", maxGraphDepth)
			}
			if err := d.charge(nodeBytes); err != nil {
				return err
			}
			d.depth++
			a.g = &graphProto{}
			err = d.graph(h, a.g)
			d.depth--
		case attrRef:
			a.ref, err = d.name(h)
		case attrFloats:
			err = d.scalars(h, protowire.Fixed32Type, func(v uint64) error {
				// Long lists are tables of values, which nothing here reads.
				if len(a.floats) < maxKnownFloats {
					a.floats = append(a.floats, math.Float32frombits(uint32(v)))
				} else {
					a.has |= cut
				}
				return nil
			})
		case attrInts:
			err = d.scalars(h, protowire.VarintType, func(v uint64) error {
				if len(a.ints) == maxAttrInts {
					return fmt.Errorf("attribute %q has more than %d integers", a.name, maxAttrInts)
				}
				a.ints = append(a.ints, int64(v))
				return d.charge(elementBytes)
			})
		case attrStrings:
			var s string
			var whole bool
			if s, whole, err = d.text(h); err == nil {
				if !whole {
					a.has |= cut
				}
				if len(a.strings) == maxAttrInts {
					return fmt.Errorf("attribute %q has more than %d strings", a.name, maxAttrInts)
				}
				a.strings = append(a.strings, s)
				err = d.charge(labelBytes)
			}
		case 20:
			a.typ, err = d.int(h)
		default:
			err = d.skipField(h)
		}
		return err
	})
}

// text reads a string value; one too long to be an option is left out.
func (d *decoder) text(h field) (s string, whole bool, err error) {
	if err := h.want(protowire.BytesType); err != nil {
		return "", false, err
	}
	n, err := d.length()
	if err != nil {
		return "", false, err
	}
	if n > maxAttrString {
		return "", false, d.skip(n)
	}
	if err := d.charge(n); err != nil {
		return "", false, err
	}
	b := make([]byte, n)
	err = d.read(b)
	return string(b), true, err
}

// elementTypes are the values of TensorProto.DataType.
var elementTypes = map[int64]struct {
	name string
	bits int64 // 0: not of a fixed size
	// dtype is the type in the graph, if there is one. Unsigned types of more
	// than a byte count as signed ones of their size, since no value is kept; types
	// of less than a byte take one each.
	dtype model.DType
	ok    bool
}{
	1: {"FLOAT", 32, model.F32, true}, 2: {"UINT8", 8, model.U8, true}, 3: {"INT8", 8, model.I8, true},
	4: {"UINT16", 16, model.I16, true}, 5: {"INT16", 16, model.I16, true}, 6: {"INT32", 32, model.I32, true},
	7: {"INT64", 64, model.I64, true}, 8: {"STRING", 0, 0, false}, 9: {"BOOL", 8, model.Bool, true},
	10: {"FLOAT16", 16, model.F16, true}, 11: {"DOUBLE", 64, model.F64, true}, 12: {"UINT32", 32, model.I32, true},
	13: {"UINT64", 64, model.I64, true}, 14: {"COMPLEX64", 64, 0, false}, 15: {"COMPLEX128", 128, 0, false},
	16: {"BFLOAT16", 16, model.BF16, true}, 17: {"FLOAT8E4M3FN", 8, model.F8, true}, 18: {"FLOAT8E4M3FNUZ", 8, model.F8, true},
	19: {"FLOAT8E5M2", 8, model.F8, true}, 20: {"FLOAT8E5M2FNUZ", 8, model.F8, true}, 21: {"UINT4", 4, model.U8, true},
	22: {"INT4", 4, model.I8, true}, 23: {"FLOAT4E2M1", 4, model.F8, true}, 24: {"FLOAT8E8M0", 8, model.F8, true},
	25: {"UINT2", 2, model.U8, true}, 26: {"INT2", 2, model.I8, true},
}

// payload collects the data fields of a TensorProto. Which of them counts is
// known only at the end of the message, for fields may come in any order.
type payload struct {
	raw      []byte
	rawBytes int64 // -1: no raw_data
	words    []uint64
	count    int64 // of numbers in typed fields
	// uncounted: there are more than maxKnownInts numbers, who knows how many.
	uncounted bool
	external  bool
}

func (d *decoder) tensor(h field, t *tensorProto) error {
	if err := d.charge(tensorBytes); err != nil {
		return err
	}
	p := payload{rawBytes: -1}
	err := d.message(h, "TensorProto", func(h field) (err error) {
		switch h.num {
		case 1:
			err = d.scalars(h, protowire.VarintType, func(v uint64) error {
				if len(t.dims) == maxRank {
					return errRank
				}
				t.dims = append(t.dims, int64(v))
				return nil
			})
		case 2:
			t.typ, err = d.int(h)
		case 4: // float_data
			err = d.numbers(h, &p, protowire.Fixed32Type, 4)
		case 5, 7, 11: // int32_data, int64_data, uint64_data
			err = d.numbers(h, &p, protowire.VarintType, 0)
		case 10: // double_data
			err = d.numbers(h, &p, protowire.Fixed64Type, 8)
		case 8:
			t.name, err = d.name(h)
		case 9:
			if err := h.want(protowire.BytesType); err != nil {
				return err
			}
			p.rawBytes, err = d.length()
			switch {
			case err != nil:
				err = fmt.Errorf("raw_data: %w", err)
			case p.rawBytes > maxKnownBytes:
				err = d.skip(p.rawBytes)
			default:
				p.raw = make([]byte, p.rawBytes)
				err = d.read(p.raw)
			}
		case 14:
			var v int64
			v, err = d.int(h)
			p.external = v == 1
		case 16:
			err = d.mark(h, t)
		default:
			err = d.skipField(h)
		}
		return err
	})
	if err == nil {
		err = t.finish(p)
	}
	if err == nil {
		err = d.charge(elementBytes * int64(len(t.ints)+len(t.floats)))
	}
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.name, err)
	}
	return nil
}

// mark reads an entry of a tensor's metadata.
func (d *decoder) mark(h field, t *tensorProto) error {
	var key, value string
	err := d.message(h, "StringStringEntryProto", func(h field) (err error) {
		switch h.num {
		case 1:
			key, _, err = d.text(h)
		case 2:
			value, _, err = d.text(h)
		default:
			err = d.skipField(h)
		}
		return err
	})
	if learned := value == "true"; key == learnedKey && (learned || value == "false") {
		t.learned = &learned
	}
	return err
}

// numbers reads a typed data field: its values if there are few, else, where the
// size tells, only how many they are.
func (d *decoder) numbers(h field, p *payload, elem protowire.Type, size int64) error {
	if h.typ == protowire.BytesType {
		b, _ := d.br.Peek(10)
		// Ten bytes a number is the most, so these are certainly too many to keep.
		if n, k := protowire.ConsumeVarint(b); k > 0 && n > 10*maxKnownInts {
			if size > 0 {
				p.count += int64(n) / size
			} else {
				p.uncounted = true
			}
			return d.skipField(h)
		}
	}
	return d.scalars(h, elem, func(v uint64) error {
		if p.count < maxKnownInts {
			p.words = append(p.words, v)
		}
		p.count++
		return nil
	})
}

// finish checks the shape against the data and keeps the values of small
// tensors.
func (t *tensorProto) finish(p payload) error {
	n, err := elements(t.dims)
	if err != nil {
		return err
	}
	et, ok := elementTypes[t.typ]
	if !ok {
		return fmt.Errorf("has element type %d, which ONNX does not define", t.typ)
	}
	if p.external {
		return nil
	}
	if p.rawBytes >= 0 && et.bits > 0 {
		if want := (n*et.bits + 7) / 8; p.rawBytes != want && !(p.rawBytes == 0 && n > 0) {
			return fmt.Errorf("has %d bytes of data, expected %d for shape %v of %s", p.rawBytes, want, t.dims, et.name)
		}
	}
	isFloat := et.ok && et.dtype.IsFloat()
	limit := int64(maxKnownInts)
	switch {
	case isFloat:
		limit = maxKnownFloats
	case t.typ == 2 || t.typ == 3:
		limit = 64 // bytes are quantised weights more often than indices
	}
	if !et.ok || n > limit || et.bits < 8 || et.dtype == model.F8 {
		return nil
	}
	if p.raw == nil && p.rawBytes < 0 && p.count == 0 && n > 0 || p.rawBytes == 0 && n > 0 {
		return nil // a shape without data
	}
	if p.rawBytes < 0 && (p.count != n || p.uncounted) {
		return fmt.Errorf("has %d values, expected %d for shape %v", p.count, n, t.dims)
	}
	t.known = true
	for i := int64(0); i < n; i++ {
		var v uint64
		if p.rawBytes >= 0 {
			var b [8]byte
			size := et.bits / 8
			copy(b[:], p.raw[i*size:(i+1)*size])
			v = binary.LittleEndian.Uint64(b[:])
		} else {
			v = p.words[i]
		}
		switch t.typ {
		case 1:
			t.floats = append(t.floats, float64(math.Float32frombits(uint32(v))))
		case 11:
			t.floats = append(t.floats, math.Float64frombits(v))
		case 10:
			t.floats = append(t.floats, halfToFloat(uint16(v)))
		case 16:
			t.floats = append(t.floats, float64(math.Float32frombits(uint32(v)<<16)))
		case 3:
			t.ints = append(t.ints, int64(int8(v)))
		case 5:
			t.ints = append(t.ints, int64(int16(v)))
		case 6:
			t.ints = append(t.ints, int64(int32(v)))
		case 9:
			if v != 0 {
				v = 1
			}
			t.ints = append(t.ints, int64(v))
		default:
			t.ints = append(t.ints, int64(v))
		}
	}
	return nil
}

func halfToFloat(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// elements is the product of dims, which may be zero here: an empty list of
// axes, say, is a tensor too.
func elements(dims model.Shape) (int64, error) {
	positive := dims.Clone()
	zero := false
	for i, v := range dims {
		if v < 0 {
			return 0, fmt.Errorf("dimension %d of shape %v is negative", i, dims)
		}
		if v == 0 {
			zero, positive[i] = true, 1
		}
	}
	if err := positive.Check(); err != nil {
		return 0, err
	}
	if zero {
		return 0, nil
	}
	return dims.Elements(), nil
}

// sparse reads a SparseTensorProto: the values carry the name, the message the
// shape.
func (d *decoder) sparse(h field, t *tensorProto) error {
	var dims model.Shape
	err := d.message(h, "SparseTensorProto", func(h field) (err error) {
		switch h.num {
		case 1:
			err = d.tensor(h, t)
		case 3:
			err = d.scalars(h, protowire.VarintType, func(v uint64) error {
				if len(dims) == maxRank {
					return errRank
				}
				dims = append(dims, int64(v))
				return nil
			})
		default:
			err = d.skipField(h)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := elements(dims); err != nil {
		return fmt.Errorf("tensor %q: %w", t.name, err)
	}
	t.dims, t.known, t.ints, t.floats = dims, false, nil, nil
	return nil
}

func (d *decoder) valueInfos(h field, list *[]*valueInfo) error {
	if err := d.charge(infoBytes); err != nil {
		return err
	}
	v := &valueInfo{}
	*list = append(*list, v)
	err := d.message(h, "ValueInfoProto", func(h field) (err error) {
		switch h.num {
		case 1:
			v.name, err = d.name(h)
		case 2:
			err = d.message(h, "TypeProto", func(h field) error {
				if h.num != 1 {
					return d.skipField(h)
				}
				v.tensor = true
				return d.message(h, "TypeProto.Tensor", func(h field) (err error) {
					switch h.num {
					case 1:
						v.elem, err = d.int(h)
					case 2:
						v.ranked = true
						err = d.message(h, "TensorShapeProto", func(h field) error {
							if h.num != 1 {
								return d.skipField(h)
							}
							return d.dimension(h, v)
						})
					default:
						err = d.skipField(h)
					}
					return err
				})
			})
		default:
			err = d.skipField(h)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("value %q: %w", v.name, err)
	}
	return nil
}

func (d *decoder) dimension(h field, v *valueInfo) error {
	if len(v.dims) == maxRank {
		return errRank
	}
	if err := d.charge(2 * labelBytes); err != nil {
		return err
	}
	var x dim
	err := d.message(h, "Dimension", func(h field) (err error) {
		switch h.num {
		case 1:
			x.value, err = d.int(h)
			x.fixed = true
		case 2:
			x.name, err = d.name(h)
		default:
			err = d.skipField(h)
		}
		return err
	})
	v.dims = append(v.dims, x)
	return err
}
