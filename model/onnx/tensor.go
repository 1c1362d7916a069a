package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
	"google.golang.org/protobuf/encoding/protowire"
)

// tensorProto keeps the payload of small tensors only.
type tensorProto struct {
	name    string
	dims    model.Shape
	typ     int64
	ints    []int64   // integers and booleans, if known
	floats  []float64 // if known
	known   bool
	missing string // why the values of a small tensor are not known
	far     *far   // of a small tensor: where its values lie; nil if they are here or were read
}

// far is a place in a file beside the model.
type far struct {
	location       string
	offset, length int64  // length 0: what the shape needs
	bad            string // an entry that is no number
}

// elementTypes are the values of TensorProto.DataType.
var elementTypes = map[int64]struct {
	name string
	bits int64 // 0: not of a fixed size
	// dtype is the type in the graph, if there is one. Unsigned types of more
	// than a byte count as signed ones of their size, since no value is kept.
	dtype model.DType
	ok    bool
}{
	1: {"FLOAT", 32, model.F32, true}, 2: {"UINT8", 8, model.U8, true}, 3: {"INT8", 8, model.I8, true},
	4: {"UINT16", 16, model.I16, true}, 5: {"INT16", 16, model.I16, true}, 6: {"INT32", 32, model.I32, true},
	7: {"INT64", 64, model.I64, true}, 8: {"STRING", 0, 0, false}, 9: {"BOOL", 8, model.Bool, true},
	10: {"FLOAT16", 16, model.F16, true}, 11: {"DOUBLE", 64, model.F64, true}, 12: {"UINT32", 32, model.I32, true},
	13: {"UINT64", 64, model.I64, true}, 14: {"COMPLEX64", 64, 0, false}, 15: {"COMPLEX128", 128, 0, false},
	16: {"BFLOAT16", 16, model.BF16, true}, 17: {"FLOAT8E4M3FN", 8, model.F8, true},
	18: {"FLOAT8E4M3FNUZ", 8, model.F8, true},
	19: {"FLOAT8E5M2", 8, model.F8, true}, 20: {"FLOAT8E5M2FNUZ", 8, model.F8, true}, 21: {"UINT4", 4, model.U4, true},
	22: {"INT4", 4, model.I4, true}, 23: {"FLOAT4E2M1", 4, model.F4, true}, 24: {"FLOAT8E8M0", 8, model.F8, true},
	25: {"UINT2", 2, model.U2, true}, 26: {"INT2", 2, model.I2, true},
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
	far       far
}

func (d *decoder) tensor(h field, t *tensorProto) {
	d.charge(tensorBytes)
	defer bail.Within(func() string { return fmt.Sprintf("tensor %q", t.name) })
	p := payload{rawBytes: -1}
	d.message(h, "TensorProto", func(h field) {
		switch h.num {
		case 1:
			d.extents(h, &t.dims)
		case 2:
			t.typ = d.int(h)
		case 4: // float_data
			d.numbers(h, &p, protowire.Fixed32Type, 4)
		case 5, 7, 11: // int32_data, int64_data, uint64_data
			d.numbers(h, &p, protowire.VarintType, 0)
		case 10: // double_data
			d.numbers(h, &p, protowire.Fixed64Type, 8)
		case 8:
			t.name = d.name(h)
		case 9:
			d.want(h, protowire.BytesType)
			if p.rawBytes = d.length(h, "raw_data"); p.rawBytes > maxKnownBytes {
				d.skip(p.rawBytes)
			} else {
				p.raw = make([]byte, p.rawBytes)
				d.read(p.raw)
			}
		case 13:
			d.place(h, &p.far)
		case 14:
			p.external = d.int(h) == 1
		}
	})
	bail.Check(t.finish(p))
	count := int64(len(t.ints) + len(t.floats))
	if t.far != nil {
		count = t.dims.Elements() // as if they were here
	}
	d.charge(elementBytes * count)
}

// extents reads extents of a shape.
func (d *decoder) extents(h field, shape *model.Shape) {
	d.scalars(h, protowire.VarintType, func(v uint64) {
		if len(*shape) == maxRank {
			bail.Check(errRank)
		}
		*shape = append(*shape, int64(v))
	})
}

// place reads an entry on where external data lie.
func (d *decoder) place(h field, f *far) {
	var key, value string
	d.message(h, "StringStringEntryProto", func(h field) {
		switch h.num {
		case 1:
			key, _ = d.text(h)
		case 2:
			value, _ = d.text(h)
		}
	})
	number := map[string]*int64{"offset": &f.offset, "length": &f.length}[key]
	switch {
	case key == "location":
		f.location = value
	case number != nil:
		var err error
		if *number, err = strconv.ParseInt(value, 10, 64); err != nil || *number < 0 {
			f.bad = fmt.Sprintf("gives the %s of its external data as %q, expected a number of at least 0", key, value)
		}
	}
}

// numbers reads a typed data field: its values if there are few, else, where the size gives it, only how many they are.
func (d *decoder) numbers(h field, p *payload, elem protowire.Type, size int64) {
	if h.typ == protowire.BytesType {
		b, _ := d.br.Peek(10)
		// Ten bytes a number is the most, so these are certainly too many to keep.
		if n, k := protowire.ConsumeVarint(b); k > 0 && n > 10*maxKnownInts {
			if size > 0 {
				p.count += int64(n) / size
			} else {
				p.uncounted = true
			}
			return
		}
	}
	d.scalars(h, elem, func(v uint64) {
		if p.count < maxKnownInts {
			p.words = append(p.words, v)
		}
		p.count++
	})
}

// finish checks the shape against the data and keeps the values of small tensors.
func (t *tensorProto) finish(p payload) error {
	n, err := elements(t.dims)
	if err != nil {
		return err
	}
	et, ok := elementTypes[t.typ]
	if !ok {
		return fmt.Errorf("has element type %d, which ONNX does not define", t.typ)
	}
	if p.rawBytes >= 0 && !p.external && et.bits > 0 {
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
	if p.external {
		if n > 0 {
			t.far = &p.far
		}
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
			t.ints = append(t.ints, truth(v != 0))
		default:
			t.ints = append(t.ints, int64(v))
		}
	}
	return nil
}

// fetch reads the values of a small tensor from the file beside the model, which must be in dir or below: links and
// ".." lead nowhere else. missing says why there are none; an error is only what the file itself contradicts.
func (t *tensorProto) fetch(dir string) (missing string, err error) {
	f := t.far
	if f == nil || dir == "" {
		return "", nil
	}
	t.far = nil
	if f.bad != "" {
		return "", errors.New(f.bad)
	}
	no := func(err error) (string, error) {
		return fmt.Sprintf("its values lie in the external file %q, which cannot be read: %v", f.location, err), nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return no(err)
	}
	defer root.Close()
	file, err := safefile.OpenIn(root, f.location)
	if err != nil {
		return no(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return no(err)
	}
	n := t.dims.Elements() * elementTypes[t.typ].bits / 8
	if f.length != 0 && f.length != n {
		return "", fmt.Errorf("has %d bytes of data in the external file %q, expected %d for shape %v of %s", f.length,
			f.location, n, t.dims, elementTypes[t.typ].name)
	}
	p := payload{raw: make([]byte, n), rawBytes: n}
	if _, err := file.ReadAt(p.raw, f.offset); err != nil {
		return "", fmt.Errorf("has its data at bytes %d to %d of the external file %q, which has %d", f.offset, f.offset+n,
			f.location, info.Size())
	}
	return "", t.finish(p)
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

// elements is the product of dims, which may be zero here: an empty list of axes, say, is a tensor too.
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

// sparse reads a SparseTensorProto: the values carry the name, the message the shape.
func (d *decoder) sparse(h field, t *tensorProto) {
	var dims model.Shape
	d.message(h, "SparseTensorProto", func(h field) {
		switch h.num {
		case 1:
			d.tensor(h, t)
		case 3:
			d.extents(h, &dims)
		}
	})
	if _, err := elements(dims); err != nil {
		d.fail("tensor %q: %w", t.name, err)
	}
	t.dims, t.known, t.ints, t.floats, t.far = dims, false, nil, nil, nil
}
