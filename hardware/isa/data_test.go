package isa

import (
	"fmt"
	"testing"
)

func ExampleProgram_Data() {
	p := example()
	reads, writes, _ := p.Data(1)
	for _, o := range reads {
		fmt.Println("reads", p.Tensors[o.Tensor].Name, o.Box)
	}
	for _, o := range writes {
		fmt.Println("writes", p.Tensors[o.Tensor].Name, o.Box)
	}
	// Output:
	// reads image [{0 1} {0 3} {0 5} {0 6}]
	// reads number []
	// writes out [{0 1} {0 4} {0 4} {0 6}]
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
