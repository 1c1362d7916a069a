package model

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types. F16 is the default of the zoo.
const (
	F16 DType = iota
	F32
	F64
	BF16
	I8
	U8
	I16
	I32
	I64
	Bool
	F8 // any of the 8-bit formats
	F4 // likewise of 4 bits
	I4
	U4
	I2
	U2
	U3 // like the next three, of packed weights alone
	U5
	U6
	U7
)

var dtypes = [...]struct {
	name string
	bits int64
}{
	F16: {"f16", 16}, F32: {"f32", 32}, F64: {"f64", 64}, BF16: {"bf16", 16},
	I8: {"i8", 8}, U8: {"u8", 8}, I16: {"i16", 16}, I32: {"i32", 32}, I64: {"i64", 64}, Bool: {"bool", 8},
	F8: {"f8", 8}, F4: {"f4", 4}, I4: {"i4", 4}, U4: {"u4", 4}, I2: {"i2", 2}, U2: {"u2", 2},
	U3: {"u3", 3}, U5: {"u5", 5}, U6: {"u6", 6}, U7: {"u7", 7},
}

// DTypes is the number of element types.
const DTypes = len(dtypes)

// Valid reports whether d is one of the constants of this package.
func (d DType) Valid() bool { return int(d) < len(dtypes) }

// String returns the short name, such as "f16".
func (d DType) String() string {
	if !d.Valid() {
		return "dtype(" + strconv.Itoa(int(d)) + ")"
	}
	return dtypes[d].name
}

// Bits is the size of one element.
func (d DType) Bits() int64 {
	if !d.Valid() {
		panic("model: size of invalid " + d.String())
	}
	return dtypes[d].bits
}

// Bytes is the size of n elements: narrow ones lie side by side, and what they leave of the last byte counts.
func (d DType) Bytes(n int64) int64 { return (n*d.Bits() + 7) / 8 }

// Size is the bytes of one element, a half or a quarter of narrow ones.
func (d DType) Size() float64 { return float64(d.Bits()) / 8 }

// Narrow reports whether elements are stored in a byte or less, which a choice of float type leaves as they are.
func (d DType) Narrow() bool { return d != Bool && d.Bits() <= 8 }

// IsFloat reports whether the elements are floating-point numbers.
func (d DType) IsFloat() bool { return d <= BF16 || d == F8 || d == F4 }

// ParseDType reads a short name, such as "f16".
func ParseDType(s string) (DType, error) {
	for i, d := range dtypes {
		if d.name == s {
			return DType(i), nil
		}
	}
	return 0, fmt.Errorf("unknown element type %q", s)
}

// Shape lists the extents of a tensor's dimensions. A scalar has none.
type Shape []int64

// MaxElements bounds the elements of one tensor, so that sums of byte counts over a whole graph stay within int64.
const MaxElements = int64(1) << 44

// Elements is the product of the extents.
func (s Shape) Elements() int64 {
	n := int64(1)
	for _, d := range s {
		n *= d
	}
	return n
}

// Check reports an extent that is not positive and a product above MaxElements.
func (s Shape) Check() error { return s.check(1) }

// check is Check with a least extent of 1 or 0.
func (s Shape) check(least int64) error {
	n := uint64(1)
	for i, d := range s {
		if d < least {
			return fmt.Errorf("dimension %d of shape %v is %d, expected a positive extent", i, s, d)
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > uint64(MaxElements) {
			return fmt.Errorf("shape %v has more than %d elements", s, MaxElements)
		}
		n = lo
	}
	return nil
}

// Equal reports whether both shapes have the same extents.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s, t) }

// Clone returns a copy.
func (s Shape) Clone() Shape { return append(Shape(nil), s...) }

// String formats the shape like [1,3,224,224].
func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(d, 10))
	}
	b.WriteByte(']')
	return b.String()
}

// Interval is the half-open range [Lo, Hi).
type Interval struct{ Lo, Hi int64 }

// Len is the number of integers in the interval.
func (iv Interval) Len() int64 { return max(0, iv.Hi-iv.Lo) }

// Piece is part i of n, from 0: the first ones have as many integers as an nth, rounded
// up, and the last has what is left. See [Pieces].
func (iv Interval) Piece(i, n int64) Interval {
	size := (iv.Len() + n - 1) / n
	return Interval{min(iv.Lo+i*size, iv.Hi), min(iv.Lo+(i+1)*size, iv.Hi)}
}

// Pieces is the number of pieces of n of an extent, as [Interval.Piece] cuts it, that have
// anything: 5 of 6 if the extent is 9.
func Pieces(extent, n int64) int64 {
	if extent < 1 {
		return 1
	}
	size := (extent + n - 1) / n
	return (extent + size - 1) / size
}

// Intersect returns the common part; it may be empty.
func (iv Interval) Intersect(o Interval) Interval {
	lo := max(iv.Lo, o.Lo)
	return Interval{lo, max(lo, min(iv.Hi, o.Hi))}
}

// Hull returns the smallest interval that holds both; an empty one is ignored.
func (iv Interval) Hull(o Interval) Interval {
	if iv.Len() == 0 {
		return o
	}
	if o.Len() == 0 {
		return iv
	}
	return Interval{min(iv.Lo, o.Lo), max(iv.Hi, o.Hi)}
}

// Region is a box within a tensor: one interval per dimension.
type Region []Interval

// Whole is the region that covers all of a shape.
func Whole(s Shape) Region {
	r := make(Region, len(s))
	for i, d := range s {
		r[i] = Interval{0, d}
	}
	return r
}

// Elements is the number of elements in the box; a nil region has none, the region
// of a scalar (no intervals, but not nil) has one.
func (r Region) Elements() int64 {
	if r == nil {
		return 0
	}
	n := int64(1)
	for _, iv := range r {
		n *= iv.Len()
	}
	return n
}

// Clone returns a copy.
func (r Region) Clone() Region {
	if r == nil {
		return nil
	}
	return append(Region{}, r...)
}

// Intersect returns the common box.
func (r Region) Intersect(o Region) Region {
	c := make(Region, len(r))
	for i := range r {
		c[i] = r[i].Intersect(o[i])
	}
	return c
}

// Overlap is the number of elements in the common box. It equals r.Intersect(o).Elements() without building the box.
func (r Region) Overlap(o Region) int64 {
	if r == nil || o == nil {
		return 0
	}
	n := int64(1)
	for i := range r {
		n *= r[i].Intersect(o[i]).Len()
		if n == 0 {
			return 0
		}
	}
	return n
}

// Hull returns the smallest box that holds both; an empty box is ignored.
func (r Region) Hull(o Region) Region {
	if o == nil {
		return r.Clone()
	}
	h := o.Clone()
	h.Include(r)
	return h
}

// Include makes r the hull of r and o, in place; r is not nil.
func (r Region) Include(o Region) {
	switch {
	case o.Elements() == 0:
	case r.Elements() == 0:
		copy(r, o)
	default:
		for i := range r {
			r[i] = r[i].Hull(o[i])
		}
	}
}

// Equal reports whether both boxes are the same.
func (r Region) Equal(o Region) bool { return slices.Equal(r, o) }
