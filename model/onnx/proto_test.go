package onnx

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Small files made by hand. The field numbers are those of onnx.proto.

type msg []byte

func (m msg) int(num protowire.Number, v int64) msg {
	return protowire.AppendVarint(protowire.AppendTag(m, num, protowire.VarintType), uint64(v))
}

func (m msg) str(num protowire.Number, v string) msg {
	return protowire.AppendString(protowire.AppendTag(m, num, protowire.BytesType), v)
}

func (m msg) sub(num protowire.Number, v msg) msg {
	return protowire.AppendBytes(protowire.AppendTag(m, num, protowire.BytesType), v)
}

func (m msg) float(num protowire.Number, v float32) msg {
	return protowire.AppendFixed32(protowire.AppendTag(m, num, protowire.Fixed32Type), math.Float32bits(v))
}

func (m msg) packed(num protowire.Number, vs ...int64) msg {
	var p []byte
	for _, v := range vs {
		p = protowire.AppendVarint(p, uint64(v))
	}
	return m.sub(num, p)
}

// Element types.
const (
	tFloat  = 1
	tUint8  = 2
	tInt8   = 3
	tInt32  = 6
	tInt64  = 7
	tString = 8
	tBool   = 9
	tHalf   = 10
)

// file makes a model of parts of a graph.
func file(opset int64, parts ...msg) []byte {
	var g msg
	for _, p := range parts {
		g = append(g, p...)
	}
	g = g.str(2, "hand-made")
	return msg(nil).int(1, 8).str(2, "test").sub(8, msg(nil).str(1, "").int(2, opset)).sub(7, g)
}

func node(op, name string, inputs, outputs []string, attrs ...msg) msg {
	return nodeOf("", op, name, inputs, outputs, attrs...)
}

func nodeOf(domain, op, name string, inputs, outputs []string, attrs ...msg) msg {
	var n msg
	for _, i := range inputs {
		n = n.str(1, i)
	}
	for _, o := range outputs {
		n = n.str(2, o)
	}
	n = n.str(3, name).str(4, op)
	for _, a := range attrs {
		n = n.sub(5, a)
	}
	if domain != "" {
		n = n.str(7, domain)
	}
	return msg(nil).sub(1, n)
}

func attrInt(name string, v int64) msg   { return msg(nil).str(1, name).int(3, v).int(20, typeInt) }
func attrStr(name, v string) msg         { return msg(nil).str(1, name).str(4, v).int(20, typeString) }
func attrFlt(name string, v float32) msg { return msg(nil).str(1, name).float(2, v).int(20, typeFloat) }

func attrList(name string, vs ...int64) msg {
	a := msg(nil).str(1, name)
	for _, v := range vs {
		a = a.int(8, v)
	}
	return a.int(20, typeInts)
}

func attrFlts(name string, vs ...float32) msg {
	a := msg(nil).str(1, name)
	for _, v := range vs {
		a = a.float(7, v)
	}
	return a.int(20, typeFloats)
}

func attrTensor(name string, t msg) msg { return msg(nil).str(1, name).sub(5, t).int(20, 4) }

// attrGraph is an attribute that holds a graph, made of its parts.
func attrGraph(name string, parts ...msg) msg {
	return msg(nil).str(1, name).sub(6, msg(slices.Concat(parts...)).str(2, name)).int(20, 5)
}

// value describes an input or output; dims are numbers or names.
func typed(name string, elem int64, dims ...any) msg {
	var shape msg
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = shape.sub(1, msg(nil).int(1, int64(d)))
		case string:
			shape = shape.sub(1, msg(nil).str(2, d))
		default:
			shape = shape.sub(1, nil)
		}
	}
	return msg(nil).str(1, name).sub(2, msg(nil).sub(1, msg(nil).int(1, elem).sub(2, shape)))
}

func input(name string, dims ...any) msg  { return msg(nil).sub(11, typed(name, tFloat, dims...)) }
func output(name string, dims ...any) msg { return msg(nil).sub(12, typed(name, tFloat, dims...)) }

// weights are an initializer without data.
func weights(name string, dims ...int64) msg {
	return msg(nil).sub(5, tensor(name, tFloat, dims...))
}

func tensor(name string, typ int64, dims ...int64) msg {
	return msg(nil).packed(1, dims...).int(2, typ).str(8, name)
}

// list is an initializer of 64-bit integers as raw data.
func list(name string, vs ...int64) msg {
	return msg(nil).sub(5, rawInts(name, []int64{int64(len(vs))}, vs...))
}

func rawInts(name string, dims []int64, vs ...int64) msg {
	var raw []byte
	for _, v := range vs {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return tensor(name, tInt64, dims...).sub(9, raw)
}

// floats is an initializer of floats in float_data.
func floats(name string, vs ...float32) msg {
	var p []byte
	for _, v := range vs {
		p = protowire.AppendFixed32(p, math.Float32bits(v))
	}
	return msg(nil).sub(5, tensor(name, tFloat, int64(len(vs))).sub(4, p))
}

func in(names ...string) []string  { return names }
func out(names ...string) []string { return names }

// Elements in the graph are as wide as those of the file.
func TestElementTypesKeepTheirWidth(t *testing.T) {
	for n, et := range elementTypes {
		if et.ok && et.dtype.Bits() != et.bits {
			t.Errorf("type %d (%s) of %d bits becomes %v of %d", n, et.name, et.bits, et.dtype, et.dtype.Bits())
		}
	}
}
