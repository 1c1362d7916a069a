package allocate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{ID: "a", Lifetime: Interval{0, 4}, Size: 4},
		{ID: "b", Lifetime: Interval{2, 8}, Size: 4, Alignment: 4},
		{ID: "c", Lifetime: Interval{4, 6}, Size: 0},
		{ID: "d", Lifetime: Interval{6, 7}, Size: 3},
		{ID: "e", Lifetime: Interval{7, 9}, Size: 2, Offset: p64(8)},
	}}
	right := []int64{0, 4, 5, 0, 8}
	if err := Check(p, 10, right); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		buffer   int
		offset   int64
		capacity int64
		want     string
	}{
		{"below zero", 0, -1, 10, `"a": found offset -1`},
		{"not aligned", 1, 6, 12, `"b": found offset 6, expected a multiple of the alignment 4`},
		{"not the fixed one", 4, 9, 12, `"e": found offset 9, expected the fixed one 8`},
		{"beyond the capacity", 4, 8, 9, `"e": found its end at 8 + 2`},
		{"overlap", 0, 1, 10, `at time 2 buffer "a" uses [1, 5) and buffer "b" uses [4, 8)`},
		{"overlap behind one that has ended", 3, 3, 10, `at time 6 buffer "d" uses [3, 6) and buffer "b" uses [4, 8)`},
		{"overlap with a later one", 1, 8, 12, `at time 7 buffer "b" uses [8, 12) and buffer "e" uses [8, 10)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			offsets := append([]int64(nil), right...)
			offsets[c.buffer] = c.offset
			if err := Check(p, c.capacity, offsets); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
	if err := Check(p, 10, right[:4]); err == nil {
		t.Error("four offsets are enough for five buffers")
	}
}

func TestCheckSpill(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{ID: "a", Lifetime: Interval{0, 4}, Size: 4},
		{ID: "b", Lifetime: Interval{5, 8}, Size: 4},
		{ID: "c", Lifetime: Interval{4, 6}, Size: 3, SpillCost: p64(1)},
		{ID: "d", Lifetime: Interval{9, 10}, Size: 2, Offset: p64(5)},
	}}
	for _, c := range []struct {
		capacity int64
		spilled  []bool
		want     string
	}{
		{7, []bool{false, false, false, false}, ""},
		{6, []bool{false, false, false, false}, `"d" stays and ends at 7`},
		{6, []bool{false, false, false, true}, `at time 5 7 bytes stay, expected at most the capacity 6`},
		{6, []bool{false, false, true, true}, ""},
		{4, []bool{false, true, false, true}, ""},
		{4, []bool{false}, `found 1 spill marks`},
	} {
		err := checkSpill(p, c.capacity, c.spilled)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: found %v, want %q", c, err, c.want)
		}
	}
	if got := SpillCost(p, []bool{true, false, true, false}); got != 9 {
		t.Errorf("cost %d, want 8 for a and 1 for c", got)
	}
	kept, place := keep(p, []bool{true, false, true, false})
	if len(kept.Buffers) != 2 || kept.Buffers[1].ID != "d" || !reflect.DeepEqual(place, []int{1, 3}) {
		t.Errorf("%+v, %v", kept.Buffers, place)
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		name    string
		buffers []Buffer
		want    int64
	}{
		{"nothing", nil, 0},
		{"sum of live sizes", []Buffer{{Lifetime: Interval{0, 2}, Size: 3}, {Lifetime: Interval{1, 4}, Size: 4},
			{Lifetime: Interval{2, 3}, Size: 2}}, 7},
		{"alignment", []Buffer{{Lifetime: Interval{0, 2}, Size: 3, Alignment: 4},
			{Lifetime: Interval{1, 4}, Size: 5, Alignment: 8}}, 9},
		{"a fixed offset", []Buffer{{Lifetime: Interval{0, 9}, Size: 3, Offset: p64(10)}}, 13},
	} {
		p := &Problem{Buffers: c.buffers}
		if got := p.Bound(); got != c.want {
			t.Errorf("%s: found %d, want %d", c.name, got, c.want)
		}
	}
}

func TestFullest(t *testing.T) {
	p := &Problem{Buffers: []Buffer{{Lifetime: Interval{0, 2}, Size: 3}, {Lifetime: Interval{1, 4}, Size: 4},
		{Lifetime: Interval{3, 5}, Size: 3}}}
	s, ok := p.Fullest()
	if !ok || s.Time != (Interval{1, 2}) || s.Bytes() != 7 || len(s.Live) != 2 {
		t.Errorf("found %+v, want the first of the two times with 7 bytes", s)
	}
	if _, ok := (&Problem{}).Fullest(); ok {
		t.Error("found a time at which nothing is in use")
	}
}

func TestStep(t *testing.T) {
	p := &Problem{Buffers: []Buffer{{Size: 12}, {Size: 18, Alignment: 24}}}
	if got := p.Step(); got != 6 {
		t.Errorf("found %d, want 6", got)
	}
	p.Buffers[0].Offset = p64(4)
	if got := p.Step(); got != 2 {
		t.Errorf("with a fixed offset found %d, want 2", got)
	}
	if got := (&Problem{}).Step(); got != 1 {
		t.Errorf("of nothing found %d, want 1", got)
	}
}

func TestValidate(t *testing.T) {
	ok := Buffer{ID: "a", Lifetime: Interval{0, 1}, Size: 1}
	for _, c := range []struct {
		buffers []Buffer
		want    string
	}{
		{[]Buffer{ok, ok}, `buffer #1: id: found "a", expected a name that buffer #0 does not have`},
		{[]Buffer{{ID: "a", Size: 1}}, `buffer #0 "a": upper: found 0`},
		{[]Buffer{{Lifetime: Interval{0, 1}}}, `buffer #0 "": id`},
	} {
		if err := (&Problem{Buffers: c.buffers}).Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, want %q", err, c.want)
		}
	}
	if err := (&Problem{Buffers: []Buffer{ok}}).Validate(); err != nil {
		t.Error(err)
	}
}

// at is the part of a buffer that is in use at time t: all of it or, empty, none.
func at(b *Buffer, t int64) Interval {
	if !b.Lifetime.Contains(t) {
		return Interval{}
	}
	return Interval{0, b.Size}
}

// Conflicts, Check and Sections agree with what is in use, time by time.
func TestUsesAgainstTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	buffer := func(id int) Buffer {
		from := r.Int64N(5)
		return Buffer{ID: fmt.Sprint(id), Lifetime: Interval{from, from + 1 + r.Int64N(5)}, Size: r.Int64N(5)}
	}
	for range 500 {
		a, b := buffer(0), buffer(1)
		p := &Problem{Buffers: []Buffer{a, b}}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		for d := int64(-8); d <= 8; d++ {
			want := false
			for t := int64(0); t < 10; t++ {
				x, y := at(&a, t), at(&b, t)
				want = want || x.Len() > 0 && y.Len() > 0 && x.Lower < y.Upper+d && y.Lower+d < x.Upper
			}
			got := conflict(&a, &b) && Interval{1 - b.Size, a.Size}.Contains(d)
			if got != want {
				t.Fatalf("%+v, %+v: difference %d overlaps: %v, want %v", a, b, d, got, want)
			}
			if err := Check(p, NoLimit, []int64{8, 8 + d}); (err != nil) != want {
				t.Fatalf("%+v, %+v: difference %d: %v, want an overlap: %v", a, b, d, err, want)
			}
		}
		for time := int64(0); time < 10; time++ {
			want := [2]Interval{at(&a, time), at(&b, time)}
			var got [2]Interval
			for _, s := range p.Sections() {
				if s.Time.Contains(time) {
					for _, l := range s.Live {
						got[l.Buffer] = Interval{0, l.Size}
					}
				}
			}
			for i := range want {
				if want[i].Len() == 0 {
					want[i] = Interval{}
				}
			}
			if got != want {
				t.Fatalf("%+v: time %d: found %v, want %v", p.Buffers, time, got, want)
			}
		}
	}
}

func ExampleReadCSV() {
	p, err := ReadCSV("buffers.csv", []byte("id,lower,upper,size\nx,0,3,4\ny,2,9,8\n"))
	fmt.Println(len(p.Buffers), p.Bound(), err)
	_, err = ReadCSV("buffers.csv", []byte("id,lower,upper,size\nx,0,3,4\ny,9,2,8\n"))
	fmt.Println(err)
	// Output:
	// 2 12 <nil>
	// buffers.csv:3: column upper: found 2, expected an end of the lifetime after its start 9 and at most 4611686018427387904
}

func ExampleCheck() {
	p := &Problem{Buffers: []Buffer{
		{ID: "x", Lifetime: Interval{0, 3}, Size: 4},
		{ID: "y", Lifetime: Interval{2, 9}, Size: 8},
	}}
	fmt.Println(Check(p, 12, []int64{0, 4}))
	fmt.Println(Check(p, 12, []int64{0, 3}))
	// Output:
	// <nil>
	// allocate: at time 2 buffer "x" uses [0, 4) and buffer "y" uses [3, 11), expected no overlap
}
