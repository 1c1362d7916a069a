package ablation_test

import (
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/internal/ablation"
)

func ExampleCheckMechanism() {
	rows := []harness.Row{
		{Model: "net", ChunkPolicy: harness.Tuned, Variant: "tvm", ThroughputPerSecond: 100, Kernels: 20,
			Writes: harness.Levels{DDR: 20}},
		{Model: "net", ChunkPolicy: harness.Tuned, Variant: "l1", ThroughputPerSecond: 300, Kernels: 4,
			Writes: harness.Levels{DDR: 1, L1: 19}},
	}
	for _, m := range ablation.CheckMechanism(rows) {
		fmt.Println(m)
	}
	// Output: net (best batches per cluster): DDR tensor writes fall from 20 in 20 kernels (tvm) to 1 per inference (l1, 4 kernels). Every step helps: l1 3.00×.
}
