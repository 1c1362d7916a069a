package onnx

import (
	"cmp"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dsasched/dsasched/internal/bail"
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
	maxGraphDepth, maxOperands            = 16, 4096
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

// What the importer may look into: shapes and indices, and the numbers that scale shapes.
const (
	maxKnownInts   = 4096
	maxKnownFloats = 8
	maxKnownBytes  = 8 * maxKnownInts
)

func decodeModel(d *decoder) (m *modelProto, err error) {
	defer bail.Caught(&err)
	m = &modelProto{opsets: map[string]int64{}, functions: map[functionKey]*functionProto{}}
	d.fields("ModelProto", func(h field) {
		switch h.num {
		case 1:
			m.irVersion = d.int(h)
		case 7:
			if m.graph == nil {
				m.graph = &graphProto{}
			}
			d.graph(h, m.graph)
		case 8:
			d.opset(h, m.opsets)
		case 25:
			f := &functionProto{opsets: map[string]int64{}}
			d.function(h, f)
			if m.functions[f.functionKey] != nil {
				d.fail("two functions are called %v", f.functionKey)
			}
			m.functions[f.functionKey] = f
		}
	})
	m.budget = d.budget
	return m, nil
}

// opset reads an OperatorSetIdProto. A file may import a domain several times; the newest counts.
func (d *decoder) opset(h field, into map[string]int64) {
	var domain string
	var version int64
	d.message(h, "OperatorSetIdProto", func(h field) {
		switch h.num {
		case 1:
			domain = d.domain(h)
		case 2:
			version = d.int(h)
		}
	})
	into[domain] = max(into[domain], version)
}

func (d *decoder) function(h field, f *functionProto) {
	d.charge(nodeBytes)
	defer bail.Within(func() string { return fmt.Sprintf("function %q", f.name) })
	d.message(h, "FunctionProto", func(h field) {
		switch h.num {
		case 1:
			f.name = d.name(h)
		case 4:
			d.label(h, &f.inputs)
		case 5:
			d.label(h, &f.outputs)
		case 7:
			d.appendNode(h, &f.graph)
		case 9:
			d.opset(h, f.opsets)
		case 10:
			f.domain = d.domain(h)
		case 11:
			a := &attribute{}
			f.defaults = append(f.defaults, a)
			d.attribute(h, a)
		case 13:
			f.overload = d.name(h)
		}
	})
}

// domain reads the name of a domain, "" for that of the standard.
func (d *decoder) domain(h field) string {
	s := d.name(h)
	if s == "ai.onnx" {
		s = ""
	}
	return s
}

// label reads one of the names of a list.
func (d *decoder) label(h field, list *[]string) {
	*list = append(*list, d.name(h))
	d.charge(labelBytes)
}

// shownDomain is a domain as errors name it.
func shownDomain(s string) string { return cmp.Or(s, "ai.onnx") }

func (d *decoder) appendNode(h field, g *graphProto) {
	n := &nodeProto{index: len(g.nodes)}
	d.charge(nodeBytes)
	g.nodes = append(g.nodes, n)
	d.node(h, n)
}

// operand reads an input or output of a node. Each is looked at beside all others of its node.
func (d *decoder) operand(h field, list *[]string, what string) {
	if d.label(h, list); len(*list) > maxOperands {
		d.fail("a node has more than %d %s", maxOperands, what)
	}
}

func (d *decoder) graph(h field, g *graphProto) {
	d.message(h, "GraphProto", func(h field) {
		switch h.num {
		case 1:
			d.appendNode(h, g)
		case 2:
			g.name = d.name(h)
		case 5:
			t := &tensorProto{}
			g.initializers = append(g.initializers, t)
			d.tensor(h, t)
		case 11:
			d.valueInfos(h, &g.inputs)
		case 12:
			d.valueInfos(h, &g.outputs)
		case 13:
			d.valueInfos(h, &g.valueInfo)
		case 15:
			t := &tensorProto{}
			g.initializers = append(g.initializers, t)
			d.sparse(h, t)
		}
	})
}

func (d *decoder) node(h field, n *nodeProto) {
	defer bail.Within(func() string { return fmt.Sprintf("node %d %q", n.index, n.name) })
	d.message(h, "NodeProto", func(h field) {
		switch h.num {
		case 1:
			d.operand(h, &n.inputs, "inputs")
		case 2:
			d.operand(h, &n.outputs, "outputs")
		case 3:
			n.name = d.name(h)
		case 4:
			n.op = d.name(h)
		case 5:
			a := &attribute{}
			d.charge(attributeBytes)
			n.attrs = append(n.attrs, a)
			d.attribute(h, a)
		case 7:
			n.domain = d.domain(h)
		case 8:
			n.overload = d.name(h)
		}
	})
}

func (d *decoder) attribute(h field, a *attribute) {
	d.message(h, "AttributeProto", func(h field) {
		if h.num < 32 {
			a.has |= 1 << h.num
		}
		switch h.num {
		case 1:
			a.name = d.name(h)
		case attrF:
			a.f = math.Float32frombits(d.fixed32(h))
		case attrI:
			a.i = d.int(h)
		case attrS:
			var whole bool
			if a.s, whole = d.text(h); !whole {
				a.has |= cut
			}
		case attrT:
			a.t = &tensorProto{}
			d.tensor(h, a.t)
		case attrG:
			if d.depth == maxGraphDepth {
				d.fail("graphs are nested more than %d deep", maxGraphDepth)
			}
			d.charge(nodeBytes)
			d.depth++
			a.g = &graphProto{}
			d.graph(h, a.g)
			d.depth--
		case attrRef:
			a.ref = d.name(h)
		case attrFloats:
			d.scalars(h, protowire.Fixed32Type, func(v uint64) {
				// Long lists are tables of values, which nothing here reads.
				if len(a.floats) < maxKnownFloats {
					a.floats = append(a.floats, math.Float32frombits(uint32(v)))
				} else {
					a.has |= cut
				}
			})
		case attrInts:
			d.scalars(h, protowire.VarintType, func(v uint64) {
				if len(a.ints) == maxAttrInts {
					d.fail("attribute %q has more than %d integers", a.name, maxAttrInts)
				}
				a.ints = append(a.ints, int64(v))
				d.charge(elementBytes)
			})
		case attrStrings:
			s, whole := d.text(h)
			if !whole {
				a.has |= cut
			}
			if len(a.strings) == maxAttrInts {
				d.fail("attribute %q has more than %d strings", a.name, maxAttrInts)
			}
			a.strings = append(a.strings, s)
			d.charge(labelBytes)
		case 20:
			a.typ = d.int(h)
		}
	})
}

// text reads a string value; one too long to be an option is left out.
func (d *decoder) text(h field) (s string, whole bool) {
	d.want(h, protowire.BytesType)
	n := d.length(h, "")
	if n > maxAttrString {
		d.skip(n)
		return "", false
	}
	d.charge(n)
	b := make([]byte, n)
	d.read(b)
	return string(b), true
}

func (d *decoder) valueInfos(h field, list *[]*valueInfo) {
	d.charge(infoBytes)
	v := &valueInfo{}
	defer bail.Within(func() string { return fmt.Sprintf("value %q", v.name) })
	*list = append(*list, v)
	d.message(h, "ValueInfoProto", func(h field) {
		switch h.num {
		case 1:
			v.name = d.name(h)
		case 2:
			d.message(h, "TypeProto", func(h field) {
				if h.num != 1 {
					return
				}
				v.tensor = true
				d.message(h, "TypeProto.Tensor", func(h field) {
					switch h.num {
					case 1:
						v.elem = d.int(h)
					case 2:
						v.ranked = true
						d.message(h, "TensorShapeProto", func(h field) {
							if h.num == 1 {
								d.dimension(h, v)
							}
						})
					}
				})
			})
		}
	})
}

func (d *decoder) dimension(h field, v *valueInfo) {
	if len(v.dims) == maxRank {
		bail.Check(errRank)
	}
	d.charge(2 * labelBytes)
	var x dim
	d.message(h, "Dimension", func(h field) {
		switch h.num {
		case 1:
			x.value = d.int(h)
			x.fixed = x.value != -1 // as some exporters write what is not known
		case 2:
			x.name = d.name(h)
		}
	})
	v.dims = append(v.dims, x)
}
