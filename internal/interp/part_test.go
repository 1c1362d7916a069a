package interp

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// partOf returns the smallest box around what a core has of an operand that a task writes,
// and of that around one part, which is a range of elements in the order of memory.
func partOf(p *isa.Program, o isa.Operand, portion isa.Portion, core int64) []isa.Range {
	order := p.Tensors[o.Tensor].Order
	box := append([]isa.Range(nil), o.Box...)
	if o.Spread != nil {
		for i := len(order) - 1; i >= 0; i-- {
			d := order[i]
			n, extent := o.Spread[d], box[d].Hi-box[d].Lo
			size := (extent + n - 1) / n
			lo := box[d].Lo + core%n*size
			box[d] = isa.Range{Lo: min(lo, box[d].Hi), Hi: min(lo+size, box[d].Hi)}
			core /= n
		}
	}
	if portion.Parts <= 1 {
		return box
	}
	order = order[:len(order)-int(o.Row)]
	total := int64(1)
	for _, d := range order {
		total *= box[d].Hi - box[d].Lo
	}
	lo, hi := share(total, portion.Part, portion.Parts), share(total, portion.Part+1, portion.Parts)
	if lo == hi {
		for d := range box {
			box[d].Hi = box[d].Lo
		}
		return box
	}
	// From the outermost dimension inward: where the range has one index, the next one is
	// narrowed, too; where it has several, the inner ones are in it whole.
	inner := total
	for _, d := range order {
		inner /= box[d].Hi - box[d].Lo
		first, last := lo/inner, (hi-1)/inner
		box[d] = isa.Range{Lo: box[d].Lo + first, Hi: box[d].Lo + last + 1}
		if first != last {
			break
		}
		lo, hi = lo-first*inner, hi-first*inner
	}
	return box
}

// share is total*i/n, rounded down, without overflow.
func share(total int64, i, n int32) int64 {
	return total/int64(n)*int64(i) + total%int64(n)*int64(i)/int64(n)
}

// The box of a portion is the smallest one around its elements, which a walk over all
// elements in the order of memory gives.
func TestPartOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		rank := rng.IntN(4)
		p := &isa.Program{Tensors: []isa.Tensor{{Shape: make([]int64, rank)}}}
		o := isa.Operand{Box: make([]isa.Range, rank)}
		total := int64(1)
		for _, d := range rng.Perm(rank) {
			p.Tensors[0].Order = append(p.Tensors[0].Order, int32(d))
			lo := rng.Int64N(3)
			o.Box[d] = isa.Range{Lo: lo, Hi: lo + rng.Int64N(6)}
			total *= o.Box[d].Hi - lo
		}
		parts := 1 + rng.Int32N(9)
		part := rng.Int32N(parts)
		got := partOf(p, o, isa.Portion{Part: part, Parts: parts}, 0)
		want := make([]isa.Range, rank)
		lo, hi := total*int64(part)/int64(parts), total*int64(part+1)/int64(parts)
		for e := lo; e < hi; e++ {
			rest := e
			for k := rank - 1; k >= 0; k-- {
				d := p.Tensors[0].Order[k]
				n := o.Box[d].Hi - o.Box[d].Lo
				at := o.Box[d].Lo + rest%n
				rest /= n
				if e == lo {
					want[d] = isa.Range{Lo: at, Hi: at + 1}
				}
				want[d] = isa.Range{Lo: min(want[d].Lo, at), Hi: max(want[d].Hi, at+1)}
			}
		}
		if lo == hi {
			empty := rank == 0
			for _, r := range got {
				empty = empty || r.Lo == r.Hi
			}
			if !empty {
				t.Fatalf("part %d of %d of %v: %v, want nothing", part, parts, o.Box, got)
			}
			continue
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("part %d of %d of %v in order %v: %v, want %v", part, parts, o.Box, p.Tensors[0].Order, got, want)
		}
	}
}
