package onnx

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/dsasched/dsasched/model"
)

// literal is a small tensor whose values are known: shapes, axes, indices. Integers and booleans are exact; floats
// occur where a size is scaled. Extents may be zero, which tensors of a graph may not.
type literal struct {
	shape  model.Shape
	dtype  model.DType
	ints   []int64   // unless dtype is a floating-point type
	floats []float64 // if it is
}

func intLiteral(v []int64) *literal {
	return &literal{shape: model.Shape{int64(len(v))}, dtype: model.I64, ints: v}
}

func (l *literal) isFloat() bool { return l.dtype.IsFloat() }

func (l *literal) len() int64 { return l.shape.Elements() }

// pick returns the elements at the positions index, in the given shape.
func (l *literal) pick(shape model.Shape, index []int64) *literal {
	r := &literal{shape: shape, dtype: l.dtype}
	for _, i := range index {
		if l.isFloat() {
			r.floats = append(r.floats, l.floats[i])
		} else {
			r.ints = append(r.ints, l.ints[i])
		}
	}
	return r
}

// gather returns the elements at the positions that at gives for each index of a shape.
func (l *literal) gather(shape model.Shape, at func(ix []int64) int64) *literal {
	var index []int64
	each(shape, func(ix []int64) { index = append(index, at(ix)) })
	return l.pick(shape, index)
}

func (l *literal) reshape(s model.Shape) *literal {
	return &literal{shape: s, dtype: l.dtype, ints: l.ints, floats: l.floats}
}

// cast converts to another type; to integers it truncates.
func (l *literal) cast(dt model.DType) (*literal, error) {
	r := &literal{shape: l.shape, dtype: dt}
	switch {
	case dt.IsFloat() == l.isFloat() && dt != model.Bool:
		r.ints, r.floats = l.ints, l.floats
	case dt.IsFloat():
		for _, v := range l.ints {
			r.floats = append(r.floats, float64(v))
		}
	case l.isFloat():
		for _, v := range l.floats {
			switch {
			case dt == model.Bool:
				r.ints = append(r.ints, truth(v != 0))
			case math.Abs(v) < 1<<62:
				r.ints = append(r.ints, int64(v))
			default:
				return nil, fmt.Errorf("%v does not fit an integer", v)
			}
		}
	default:
		for _, v := range l.ints {
			r.ints = append(r.ints, truth(v != 0))
		}
	}
	return r, nil
}

// fits reports whether a literal of that shape is small enough to be kept.
func fits(s model.Shape) bool {
	n, err := elements(s)
	return err == nil && n <= maxKnownInts && len(s) <= maxRank
}

// each calls f with every index of shape in row-major order. f must not keep it.
func each(shape model.Shape, f func(ix []int64)) {
	for _, n := range shape {
		if n == 0 {
			return
		}
	}
	ix := make([]int64, len(shape))
	for {
		f(ix)
		d := len(ix) - 1
		for ; d >= 0; d-- {
			ix[d]++
			if ix[d] < shape[d] {
				break
			}
			ix[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// rowMajor returns the distance between neighbours along each dimension.
func rowMajor(s model.Shape) []int64 {
	st := make([]int64, len(s))
	n := int64(1)
	for d := len(s) - 1; d >= 0; d-- {
		st[d] = n
		n *= s[d]
	}
	return st
}

// spread repeats l to the shape s, to which it broadcasts.
func (l *literal) spread(s model.Shape) *literal {
	if l.shape.Equal(s) {
		return l
	}
	st := rowMajor(l.shape)
	return l.gather(s, func(ix []int64) (p int64) {
		for d := range l.shape {
			if l.shape[d] != 1 {
				p += ix[d+len(s)-len(l.shape)] * st[d]
			}
		}
		return p
	})
}

var errOverflow = errors.New("integer overflow")

func addInt(a, b int64) (int64, error) {
	if s := a + b; (s > a) == (b > 0) {
		return s, nil
	}
	return 0, errOverflow
}

func mulInt(a, b int64) (int64, error) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, errOverflow
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), nil
	}
	return int64(lo), nil
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// arithmetic are the element-wise functions of known values: on integers
// (booleans are 0 and 1) and, where there is one, on floats.
var arithmetic = map[string]struct {
	ints   func(a, b int64) (int64, error)
	floats func(a, b float64) float64
}{
	"Add": {addInt, func(a, b float64) float64 { return a + b }},
	"Sub": {func(a, b int64) (int64, error) {
		if b == math.MinInt64 {
			return 0, errOverflow
		}
		return addInt(a, -b)
	}, func(a, b float64) float64 { return a - b }},
	"Mul": {mulInt, func(a, b float64) float64 { return a * b }},
	"Div": {func(a, b int64) (int64, error) {
		if b == 0 {
			return 0, errors.New("division by zero")
		}
		if a == math.MinInt64 && b == -1 {
			return 0, errOverflow
		}
		return a / b, nil // towards zero, as in ONNX
	}, func(a, b float64) float64 { return a / b }},
	"Mod": {func(a, b int64) (int64, error) {
		if b == 0 {
			return 0, errors.New("division by zero")
		}
		if b == -1 {
			return 0, nil
		}
		m := a % b
		if m != 0 && (m < 0) != (b < 0) {
			m += b // the sign of the divisor, as in ONNX without fmod
		}
		return m, nil
	}, nil},
	"Pow": {func(a, b int64) (int64, error) {
		if b < 0 {
			return 0, errors.New("negative power of an integer")
		}
		r := int64(1)
		for i := int64(0); i < b && r != 0 && (a < -1 || a > 1 || i < 2+b%2); i++ {
			var err error
			if r, err = mulInt(r, a); err != nil {
				return 0, err
			}
		}
		return r, nil
	}, math.Pow},
	"Min":            {func(a, b int64) (int64, error) { return min(a, b), nil }, math.Min},
	"Max":            {func(a, b int64) (int64, error) { return max(a, b), nil }, math.Max},
	"Sum":            {addInt, func(a, b float64) float64 { return a + b }},
	"Equal":          {func(a, b int64) (int64, error) { return truth(a == b), nil }, nil},
	"Greater":        {func(a, b int64) (int64, error) { return truth(a > b), nil }, nil},
	"GreaterOrEqual": {func(a, b int64) (int64, error) { return truth(a >= b), nil }, nil},
	"Less":           {func(a, b int64) (int64, error) { return truth(a < b), nil }, nil},
	"LessOrEqual":    {func(a, b int64) (int64, error) { return truth(a <= b), nil }, nil},
	"And":            {func(a, b int64) (int64, error) { return a & b, nil }, nil},
	"Or":             {func(a, b int64) (int64, error) { return a | b, nil }, nil},
	"Xor":            {func(a, b int64) (int64, error) { return a ^ b, nil }, nil},
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
