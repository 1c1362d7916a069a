package model

import (
	"fmt"
	"math/rand"
	"testing"
)

// Multiply-accumulates and phases against all pairs of an input and a kernel element.
func TestTransposed(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for n := range 2000 {
		a, in := genConvTranspose(r)
		g, err := single("ConvTranspose", a, in...)
		if err != nil {
			t.Fatal(err)
		}
		op, x, w := g.Ops[0], in[0], in[1]
		out := g.Tensor(op.Outputs[0]).Shape
		box := make(Region, len(out))
		for d, extent := range out {
			box[d].Lo = r.Int63n(extent)
			box[d].Hi = box[d].Lo + 1 + r.Int63n(extent-box[d].Lo)
		}
		macs, spatial := int64(0), int64(1)
		rows, kernel := map[string]int64{}, map[string]int64{} // by phase: outputs, and kernel elements that one meets
		each(box, func(at []int64) {
			if at[0] > box[0].Lo || at[1] > box[1].Lo {
				return
			}
			phase := ""
			for d, o := range at[2:] {
				phase += fmt.Sprint((o+a.Pads[d])%a.Strides[d], " ")
			}
			rows[phase]++
			kernel[phase] = 0
			each(Whole(w[2:]), func(k []int64) {
				meets, inside := true, true
				for d := range k {
					p := at[2+d] + a.Pads[d] - k[d]*a.Dilations[d]
					meets = meets && p%a.Strides[d] == 0
					inside = inside && p >= 0 && p/a.Strides[d] < x[2+d]
				}
				if meets {
					kernel[phase]++
				}
				if meets && inside {
					macs++
				}
			})
		})
		for _, iv := range box[2:] {
			spatial *= iv.Len()
		}
		images, channels, depth := box[0].Len(), box[1].Len(), w[0]/a.Group
		if got := g.Work(op, box).MACs; got != macs*images*channels*depth {
			t.Fatalf("case %d, %+v of %v, box %v: %d multiply-accumulates, expected %d", n, a, in, box, got,
				macs*images*channels*depth)
		}
		d, _ := g.Transposed(op, apart(box))
		type sum struct{ count, rows int64 }
		got, want := map[int64]sum{}, map[int64]sum{}
		for _, p := range d.Phases.List {
			s := got[p.K]
			got[p.K] = sum{s.count + p.Count, s.rows + p.Rows}
		}
		for phase, n := range rows {
			if k := kernel[phase] * depth; k > 0 {
				s := want[k]
				want[k] = sum{s.count + 1, s.rows + n*images}
			}
		}
		if len(want) == 0 {
			want[1] = sum{1, 1}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || d.M != images*spatial {
			t.Fatalf("case %d, %+v of %v, box %v: phases %v of %d rows, expected %v of %d", n, a, in, box, got, d.M, want,
				images*spatial)
		}
		// Tiles of the reduction add up to the whole, as do rows.
		blocks := func(d MatrixDims) (n int64) {
			for p := range d.Products() {
				n += p.Reps * p.M * p.K
			}
			return n
		}
		all, parts := blocks(d), int64(0)
		for at := int64(0); at < d.K; {
			part := d
			part.At, part.K = at, min(d.K-at, 1+r.Int63n(d.K))
			at += part.K
			parts += blocks(part)
		}
		if all != parts {
			t.Fatalf("case %d: %d elements of rows pass in tiles, %d in one", n, parts, all)
		}
	}
}
