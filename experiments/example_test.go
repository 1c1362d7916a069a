package experiments_test

import (
	"fmt"

	"github.com/dsasched/dsasched/experiments"
)

func ExampleLookup() {
	e, err := experiments.Lookup("ablation")
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Name + ": " + e.Description)
	// Output: ablation: what each idea of GraphTurbo is worth on ResNet-50 and BERT-128
}

func ExampleCheckMechanism() {
	rows := []experiments.Row{
		{Model: "net", ChunkPolicy: experiments.Tuned, Variant: "tvm", ThroughputPerSecond: 100, Kernels: 20, Writes: experiments.Levels{DDR: 20}},
		{Model: "net", ChunkPolicy: experiments.Tuned, Variant: "l1", ThroughputPerSecond: 300, Kernels: 4, Writes: experiments.Levels{DDR: 1, L1: 19}},
	}
	for _, m := range experiments.CheckMechanism(rows) {
		fmt.Println(m)
	}
	// Output: net (best batches per cluster): DDR tensor writes fall from 20 in 20 kernels (tvm) to 1 per inference (l1, 4 kernels). Every step helps: l1 3.00×.
}
