package simt_test

import (
	"fmt"

	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// The two reductions of the AStitch paper on a V100.
func Example() {
	m, err := simt.Load("v100-simt")
	if err != nil {
		panic(err)
	}
	wave := m.Wave(m.Start())
	for _, shape := range [][2]int64{{750000, 32}, {64, 30000}} {
		p := simt.Pack(shape[0], shape[1], m.Block.Threads, wave)
		fmt.Printf("<%d,%d>: %d rows and %d tasks a block, %d parts, %d of %d blocks\n",
			shape[0], shape[1], p.RowsPerTask, p.Tasks, p.Parts, p.Blocks, wave)
	}
	// Output:
	// <750000,32>: 32 rows and 147 tasks a block, 1 parts, 160 of 160 blocks
	// <64,30000>: 1 rows and 1 tasks a block, 2 parts, 128 of 160 blocks
}
