package onnx

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
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
		}
		return err
	})
	m.budget = d.budget
	return m, err
}

// opset reads an OperatorSetIdProto. A file may import a domain several times; the newest counts.
func (d *decoder) opset(h field, into map[string]int64) error {
	var domain string
	var version int64
	err := d.message(h, "OperatorSetIdProto", func(h field) (err error) {
		switch h.num {
		case 1:
			domain, err = d.domain(h)
		case 2:
			version, err = d.int(h)
		}
		return err
	})
	into[domain] = max(into[domain], version)
	return err
}

func (d *decoder) function(h field, f *functionProto) error {
	if err := d.charge(nodeBytes); err != nil {
		return err
	}
	err := d.message(h, "FunctionProto", func(h field) (err error) {
		switch h.num {
		case 1:
			f.name, err = d.name(h)
		case 4:
			err = d.label(h, &f.inputs)
		case 5:
			err = d.label(h, &f.outputs)
		case 7:
			err = d.appendNode(h, &f.graph)
		case 9:
			err = d.opset(h, f.opsets)
		case 10:
			f.domain, err = d.domain(h)
		case 11:
			a := &attribute{}
			f.defaults = append(f.defaults, a)
			err = d.attribute(h, a)
		case 13:
			f.overload, err = d.name(h)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("function %q: %w", f.name, err)
	}
	return nil
}

// domain reads the name of a domain, "" for that of the standard.
func (d *decoder) domain(h field) (string, error) {
	s, err := d.name(h)
	if s == "ai.onnx" {
		s = ""
	}
	return s, err
}

// label reads one of the names of a list.
func (d *decoder) label(h field, list *[]string) error {
	s, err := d.name(h)
	if err != nil {
		return err
	}
	*list = append(*list, s)
	return d.charge(labelBytes)
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

// operand reads an input or output of a node. Each is looked at beside all others of its node.
func (d *decoder) operand(h field, list *[]string, what string) error {
	if err := d.label(h, list); err != nil || len(*list) <= maxOperands {
		return err
	}
	return fmt.Errorf("a node has more than %d %s", maxOperands, what)
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
		}
		return err
	})
}

func (d *decoder) node(h field, n *nodeProto) error {
	err := d.message(h, "NodeProto", func(h field) (err error) {
		switch h.num {
		case 1:
			err = d.operand(h, &n.inputs, "inputs")
		case 2:
			err = d.operand(h, &n.outputs, "outputs")
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
			n.domain, err = d.domain(h)
		case 8:
			n.overload, err = d.name(h)
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
					return nil
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
								return nil
							}
							return d.dimension(h, v)
						})
					}
					return err
				})
			})
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
			x.fixed = x.value != -1 // as some exporters write what is not known
		case 2:
			x.name, err = d.name(h)
		}
		return err
	})
	v.dims = append(v.dims, x)
	return err
}
