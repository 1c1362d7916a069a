package isa

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func ExampleProgram_Data() {
	p := example()
	reads, writes, _ := p.Data(1)
	for _, o := range reads {
		fmt.Println("reads", p.Tensors[o.Tensor].Name, o.Box)
	}
	for _, o := range writes {
		fmt.Println("writes", p.Tensors[o.Tensor].Name, o.Box, "of which core 1", p.Part(o, p.Commands[1].Portion, 1))
	}
	// Output:
	// reads image [{0 1} {0 3} {0 5} {0 6}]
	// reads number []
	// writes out [{0 1} {0 4} {0 4} {0 6}] of which core 1 [{0 1} {0 4} {1 3} {3 6}]
}

// The box of a portion is the smallest one around its elements, which a walk over all
// elements in the order of memory gives.
func TestPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		rank := rng.IntN(4)
		p := &Program{Tensors: []Tensor{{Shape: make([]int64, rank)}}}
		o := Operand{Box: make([]Range, rank)}
		total := int64(1)
		for _, d := range rng.Perm(rank) {
			p.Tensors[0].Order = append(p.Tensors[0].Order, int32(d))
			lo := rng.Int64N(3)
			o.Box[d] = Range{lo, lo + rng.Int64N(6)}
			total *= o.Box[d].Hi - lo
		}
		parts := 1 + rng.Int32N(9)
		part := rng.Int32N(parts)
		got := p.Part(o, Portion{Part: part, Parts: parts}, 0)
		want := make([]Range, rank)
		lo, hi := total*int64(part)/int64(parts), total*int64(part+1)/int64(parts)
		for e := lo; e < hi; e++ {
			rest := e
			for k := rank - 1; k >= 0; k-- {
				d := p.Tensors[0].Order[k]
				n := o.Box[d].Hi - o.Box[d].Lo
				at := o.Box[d].Lo + rest%n
				rest /= n
				if e == lo {
					want[d] = Range{at, at + 1}
				}
				want[d] = Range{min(want[d].Lo, at), max(want[d].Hi, at+1)}
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

func TestCut(t *testing.T) {
	if got, want := (Portion{Operand: 1, Part: 2, Parts: 3, Tile: 4}).Cut(1, 5),
		(Portion{Operand: 1, Part: 11, Parts: 15, Tile: 4}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := (Portion{}).Cut(3, 4), (Portion{Part: 3, Parts: 4}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
