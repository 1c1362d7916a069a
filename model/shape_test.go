package model

import (
	"math"
	"strings"
	"testing"
)

func TestDType(t *testing.T) {
	bits := map[DType]int64{F16: 16, F32: 32, F64: 64, BF16: 16, I8: 8, U8: 8, I16: 16, I32: 32, I64: 64, Bool: 8, F8: 8,
		F4: 4, I4: 4, U4: 4, I2: 2, U2: 2, U3: 3, U5: 5, U6: 6, U7: 7}
	if len(bits) != len(dtypes) {
		t.Errorf("%d types are tested, there are %d", len(bits), len(dtypes))
	}
	floats := map[DType]bool{F16: true, F32: true, F64: true, BF16: true, F8: true, F4: true}
	for d, size := range bits {
		if !d.Valid() || d.Bits() != size || d.IsFloat() != floats[d] {
			t.Errorf("%v: valid %t, %d bits, float %t; want %d bits, float %t", d, d.Valid(), d.Bits(), d.IsFloat(), size,
				floats[d])
		}
		for n := range int64(20) {
			if got, want := d.Bytes(n), int64(math.Ceil(float64(n*size)/8)); got != want || float64(n)*d.Size() > float64(got) {
				t.Errorf("%d elements of %v: %d bytes, expected %d", n, d, got, want)
			}
		}
		if back, err := ParseDType(d.String()); err != nil || back != d {
			t.Errorf("%v: parsed back as %v, %v", d, back, err)
		}
	}
	if F16 != 0 {
		t.Error("the zero value is not f16")
	}
	bad := DType(99)
	if bad.Valid() || bad.IsFloat() || bad.String() != "dtype(99)" {
		t.Errorf("%v: valid %t, float %t", bad, bad.Valid(), bad.IsFloat())
	}
	if _, err := ParseDType("f12"); err == nil || !strings.Contains(err.Error(), `"f12"`) {
		t.Errorf("unknown type: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the size of an invalid type does not panic")
		}
	}()
	bad.Bits()
}

func TestShapeCheck(t *testing.T) {
	for _, tt := range []struct {
		shape Shape
		want  string // part of the error; empty: none
	}{
		{Shape{}, ""},
		{Shape{1, 3, 224, 224}, ""},
		{Shape{MaxElements}, ""},
		{Shape{1 << 22, 1 << 22}, ""},
		{Shape{3, 0, 2}, "dimension 1 of shape [3,0,2] is 0"},
		{Shape{-1}, "dimension 0 of shape [-1] is -1"},
		{Shape{MaxElements + 1}, "more than"},
		{Shape{1 << 22, 1 << 22, 2}, "more than"},
		// Products that come out small again once they have wrapped around.
		{Shape{1 << 32, 1 << 32}, "more than"},
		{Shape{1 << 40, 1 << 24, 5}, "more than"},
		{Shape{math.MaxInt64, math.MaxInt64}, "more than"},
		{Shape{math.MaxInt64, 2, 1}, "more than"},
	} {
		err := tt.shape.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.shape, err, tt.want)
		}
	}
}

func TestShape(t *testing.T) {
	s := Shape{2, 3, 4}
	if s.Elements() != 24 || Shape(nil).Elements() != 1 {
		t.Errorf("elements %d and %d", s.Elements(), Shape(nil).Elements())
	}
	if got := s.String() + Shape(nil).String(); got != "[2,3,4][]" {
		t.Errorf("formatted as %s", got)
	}
	c := s.Clone()
	c[0] = 9
	if s[0] != 2 {
		t.Error("the clone shares memory")
	}
	if s.Equal(c) || s.Equal(s[:2]) || !s.Equal(append(s[:2:2], 4)) {
		t.Error("Equal is wrong")
	}
}

func TestInterval(t *testing.T) {
	for _, tt := range []struct {
		a, b, intersect, hull Interval
	}{
		{Interval{0, 4}, Interval{2, 6}, Interval{2, 4}, Interval{0, 6}},
		{Interval{0, 2}, Interval{4, 6}, Interval{4, 4}, Interval{0, 6}},
		{Interval{0, 6}, Interval{2, 3}, Interval{2, 3}, Interval{0, 6}},
		{Interval{3, 3}, Interval{5, 6}, Interval{5, 5}, Interval{5, 6}},
		{Interval{5, 6}, Interval{9, 9}, Interval{9, 9}, Interval{5, 6}},
	} {
		if got := tt.a.Intersect(tt.b); got != tt.intersect {
			t.Errorf("%v and %v intersect in %v, want %v", tt.a, tt.b, got, tt.intersect)
		}
		if got := tt.b.Intersect(tt.a); got.Len() != tt.intersect.Len() {
			t.Errorf("intersection of %v and %v depends on the order", tt.a, tt.b)
		}
		if got := tt.a.Hull(tt.b); got != tt.hull {
			t.Errorf("hull of %v and %v is %v, want %v", tt.a, tt.b, got, tt.hull)
		}
	}
	if n := (Interval{5, 2}).Len(); n != 0 {
		t.Errorf("a reversed interval has %d elements", n)
	}
}

func TestRegion(t *testing.T) {
	a := Region{{0, 4}, {0, 2}}
	b := Region{{2, 6}, {1, 5}}
	none := Region{{0, 0}, {0, 9}}
	if got := Whole(Shape{4, 2}); !got.Equal(a) {
		t.Errorf("whole shape is %v", got)
	}
	if got := a.Intersect(b); !got.Equal(Region{{2, 4}, {1, 2}}) {
		t.Errorf("intersection %v", got)
	}
	if a.Elements() != 8 || none.Elements() != 0 || (Region{}).Elements() != 1 {
		t.Errorf("elements %d, %d, %d", a.Elements(), none.Elements(), (Region{}).Elements())
	}
	for _, tt := range []struct{ a, b Region }{{a, b}, {a, a}, {a, none}, {a, Region{{7, 9}, {0, 2}}}} {
		if got, want := tt.a.Overlap(tt.b), tt.a.Intersect(tt.b).Elements(); got != want {
			t.Errorf("%v and %v overlap in %d elements, want %d", tt.a, tt.b, got, want)
		}
	}
	for _, tt := range []struct{ a, b, want Region }{
		{a, b, Region{{0, 6}, {0, 5}}}, {a, none, a}, {none, b, b}, {nil, b, b}, {a, nil, a},
	} {
		if got := tt.a.Hull(tt.b); !got.Equal(tt.want) {
			t.Errorf("hull of %v and %v is %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	c := a.Clone()
	c[0].Hi = 1
	if a[0].Hi != 4 || a.Equal(c) || a.Equal(a[:1]) {
		t.Error("Clone shares memory, or Equal is wrong")
	}
	if h := a.Hull(none); &h[0] == &a[0] {
		t.Error("the hull shares memory with its operand")
	}
}
