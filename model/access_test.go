package model

import (
	"math/rand"
	"slices"
	"testing"
)

func TestAccessRange(t *testing.T) {
	for _, tt := range []struct {
		name string
		acc  Access
		out  Interval
		n    int64
		want Interval
	}{
		{"full", full(), Interval{3, 4}, 9, Interval{0, 9}},
		{"identity", identity(0), Interval{3, 5}, 9, Interval{3, 5}},
		{"nothing needs nothing", full(), Interval{4, 4}, 9, Interval{}},
		{"3x3 in the middle", window(0, 1, 3, 1, 1), Interval{4, 6}, 9, Interval{3, 7}},
		{"3x3 at the borders", window(0, 1, 3, 1, 1), Interval{0, 9}, 9, Interval{0, 9}},
		{"stride 2", window(0, 2, 3, 1, 1), Interval{2, 4}, 9, Interval{3, 8}},
		{"dilation 2", window(0, 1, 3, 2, 0), Interval{1, 2}, 9, Interval{1, 6}},
		{"all padding on the left", window(0, 1, 1, 1, 4), Interval{0, 3}, 9, Interval{}},
		{"all padding on the right", window(0, 1, 1, 1, 4), Interval{13, 15}, 9, Interval{}},
		{"offset", offset(0, 5), Interval{1, 3}, 9, Interval{6, 8}},
		{"beside this part of a concatenation", offset(0, -5), Interval{1, 3}, 9, Interval{}},
		{"blocks to blocks", blocks(0, 4, 3), Interval{2, 4}, 12, Interval{0, 8}},
		{"up-sampling", blocks(0, 1, 2), Interval{3, 5}, 9, Interval{1, 3}},
	} {
		if got := tt.acc.Range(tt.out, tt.n); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestAccessExact: an access that calls itself exact keeps disjoint ranges apart
// if they are cut at a multiple of Den, and one that does not, does not.
func TestAccessExact(t *testing.T) {
	const n = 48
	for _, tt := range []struct {
		name string
		acc  Access
		want bool
	}{
		{"full", full(), false},
		{"identity", identity(0), true},
		{"offset", offset(0, 3), true},
		{"1x1", window(0, 1, 1, 1, 0), true},
		{"1x1 stride 2", window(0, 2, 1, 1, 0), true},
		{"2x2 stride 2", window(0, 2, 2, 1, 0), true},
		{"2x2 stride 2 padded", window(0, 2, 2, 1, 1), true},
		{"3x3", window(0, 1, 3, 1, 1), false},
		{"3x3 stride 2", window(0, 2, 3, 1, 1), false},
		{"2x2 stride 2 dilation 2", window(0, 2, 2, 2, 0), false},
		{"merged dimensions", blocks(0, 4, 1), true},
		{"up-sampling", blocks(0, 1, 4), true},
		{"groups", blocks(0, 3, 4), true},
	} {
		if got := tt.acc.Exact(); got != tt.want {
			t.Errorf("%s: Exact is %t, want %t", tt.name, got, tt.want)
		}
		overlap := false
		den := max(1, tt.acc.Den)
		for cut := den; cut < 12; cut += den {
			left := tt.acc.Range(Interval{cut - 1, cut}, n)
			right := tt.acc.Range(Interval{cut, cut + 1}, n)
			overlap = overlap || left.Intersect(right).Len() > 0
		}
		if overlap == tt.want {
			t.Errorf("%s: neighbours share input: %t, Exact: %t", tt.name, overlap, tt.want)
		}
	}
}

func TestFloorDiv(t *testing.T) {
	for _, tt := range []struct{ a, b, want int64 }{
		{7, 2, 3}, {-7, 2, -4}, {-8, 2, -4}, {0, 3, 0}, {-1, 3, -1}, {7, -2, -4}, {-7, -2, 3},
	} {
		if got := floorDiv(tt.a, tt.b); got != tt.want {
			t.Errorf("floorDiv(%d, %d) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestReshapeAccess(t *testing.T) {
	f := full()
	joint := func(a Access, from, to int) Access { a.From, a.To = from, to; return a }
	for _, tt := range []struct {
		name    string
		in, out Shape
		want    []Access
	}{
		{"same", Shape{2, 3, 4}, Shape{2, 3, 4}, []Access{identity(0), identity(1), identity(2)}},
		{"features to heads", Shape{2, 128, 768}, Shape{2, 128, 12, 64},
			[]Access{identity(0), identity(1), joint(blocks(2, 64, 1), 2, 4)}},
		{"heads to features", Shape{2, 128, 12, 64}, Shape{2, 128, 768},
			[]Access{identity(0), identity(1), joint(blocks(2, 1, 64), 2, 3), joint(f, 2, 3)}},
		{"batch and positions to rows", Shape{2, 128, 768}, Shape{256, 768},
			[]Access{joint(blocks(0, 1, 128), 0, 1), joint(f, 0, 1), identity(1)}},
		{"rows to batch and positions", Shape{256, 768}, Shape{2, 128, 768},
			[]Access{joint(blocks(0, 128, 1), 0, 2), identity(2)}},
		{"rows of a batch of one", Shape{128, 768}, Shape{1, 128, 768}, []Access{identity(1), identity(2)}},
		{"flatten", Shape{8, 2048, 1, 1}, Shape{8, 2048}, []Access{identity(0), identity(1), f, f}},
		{"flatten the image", Shape{8, 16, 7, 7}, Shape{8, 784},
			[]Access{identity(0), joint(blocks(1, 1, 49), 1, 2), joint(f, 1, 2), joint(f, 1, 2)}},
		{"ones in front and behind", Shape{1, 6, 1}, Shape{6}, []Access{f, identity(0), f}},
		{"new ones", Shape{6}, Shape{1, 1, 6, 1}, []Access{identity(2)}},
		{"ones between", Shape{2, 1, 3}, Shape{2, 1, 3}, []Access{identity(0), f, identity(2)}},
		{"regrouped", Shape{6, 4}, Shape{3, 8}, []Access{joint(blocks(0, 2, 1), 0, 2), joint(f, 0, 2)}},
		{"coprime", Shape{2, 3}, Shape{3, 2}, []Access{joint(f, 0, 2), joint(f, 0, 2)}},
		{"blocks after a coprime one", Shape{2, 3, 5, 4}, Shape{3, 2, 20},
			[]Access{joint(f, 0, 2), joint(f, 0, 2), joint(blocks(2, 1, 4), 2, 3), joint(f, 2, 3)}},
		{"to a scalar", Shape{1, 1}, Shape{}, []Access{f, f}},
		{"all ones", Shape{1, 1, 1}, Shape{1}, []Access{f, f, f}},
	} {
		if got := reshapeAccess(tt.in, tt.out); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v to %v: %+v, want %+v", tt.name, tt.in, tt.out, got, tt.want)
		}
	}
}

// FuzzReshapeAccess cuts the same factors, in two orders, into two shapes and
// checks that what a box of one needs of the other lies in InputRegion.
func FuzzReshapeAccess(f *testing.F) {
	f.Add(uint64(0x4321), uint32(0b1010), uint32(0b0110), int64(1), int64(1))
	f.Add(uint64(0x111111), uint32(0b111111), uint32(0), int64(2), int64(3))
	f.Add(uint64(0x2143232), uint32(0b1001), uint32(0b110110), int64(0), int64(7))
	f.Add(uint64(0x7), uint32(0), uint32(0), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, digits uint64, cutIn, cutOut uint32, order, seed int64) {
		var factors []int64
		for total := int64(1); digits > 0 && len(factors) < 8; digits >>= 4 {
			d := int64(digits&7) + 1
			if total *= d; total > 3000 {
				break
			}
			factors = append(factors, d)
		}
		in := group(factors, cutIn)
		if order != 0 {
			rand.New(rand.NewSource(order)).Shuffle(len(factors),
				func(i, j int) { factors[i], factors[j] = factors[j], factors[i] })
		}
		out := group(factors, cutOut)
		g, err := single("Reshape", Attr{Shape: out}, in)
		if err != nil {
			t.Fatal(err)
		}
		box := randomBox(rand.New(rand.NewSource(seed)), out)
		got := g.InputRegion(g.Ops[0], 0, 0, box)
		if whole := Whole(in); !got.Intersect(whole).Equal(got) {
			t.Errorf("%v to %v, box %v: %v leaves the tensor", in, out, box, got)
		}
		each(box, func(o []int64) {
			for d, x := range sameElement(in, out, o) {
				if x < got[d].Lo || x >= got[d].Hi {
					t.Fatalf("%v to %v: output %v reads %d of dimension %d, outside of %v for box %v", in, out, o, x, d, got, box)
				}
			}
		})
	})
}

func TestInputRegionOfNothing(t *testing.T) {
	p := newProbe(t, "Conv", Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1},
		[]Shape{{1, 4, 8, 8}, {4, 4, 3, 3}})
	box := Whole(p.out[0])
	box[2] = Interval{3, 3}
	for in := range p.in {
		if got := p.g.InputRegion(p.op, 0, in, box); len(got) != 4 || got.Elements() != 0 {
			t.Errorf("input %d: %v, want an empty box of four dimensions", in, got)
		}
	}
}
