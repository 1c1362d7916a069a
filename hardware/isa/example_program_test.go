package isa

func example() *Program {
	return &Program{
		Name: "two tiles", Clusters: 1, Labels: []string{"conv", "add\n# \"x\""},
		Resources: []Resource{{"ddr", 108e9, DDRBandwidth}, {Name: "gb", BytesPerSecond: 256e9}},
		Queues:    []Queue{{Name: "cluster0.dma"}, {Name: "cluster0.mme", Kind: MatrixQueue}},
		Operators: []string{"conv", "relu\n"},
		Tensors: []Tensor{
			{"image", []int64{1, 3, 8, 6}, []int32{0, 2, 3, 1}, 2}, {"out", []int64{1, 4, 8, 6}, []int32{0, 2, 3, 1}, 2},
			{"number", nil, nil, 4},
		},
		Tasks: []Task{
			{Instance: 5, Operators: []int32{0, 1},
				Reads: []Operand{{Instance: -1, Box: []Range{{0, 1}, {0, 3}, {0, 5}, {0, 6}}}, {Tensor: 2, Instance: 4}},
				Writes: []Operand{{Tensor: 1, Instance: 5, Box: []Range{{0, 1}, {0, 4}, {0, 4}, {0, 6}},
					Spread: []int64{1, 1, 1, 2}, Level: LLB, Address: 64, Stage: 128, StageBytes: 96}}, Columns: []int64{2, 4},
				Reduction: []int64{27}},
			{},
		},
		Commands: []Command{
			{Kind: DDRLoad, Cores: 8, Task: 1, Portion: Portion{Operand: 1}, DurationPs: 300_000,
				Uses: []Use{{0, 4096}, {1, 4096}}, Bytes: 4096},
			{Kind: Matrix, Queue: 1, Cores: 8, Task: 1, Portion: Portion{Part: 1, Parts: 3, Tile: 2}, DurationPs: 1_000_000,
				Deps: []int32{0}, MACs: 1000, WriteLevel: L1},
			{Kind: DDRStore, Label: 1, Iteration: 3, Task: 1, Portion: Portion{Part: 3, Parts: 4}, DurationPs: 300_000,
				Deps: []int32{0, 1}, Uses: []Use{{0, 4096}}, Bytes: 4096, WriteLevel: DDR},
			{Kind: Vector, Queue: 1, Task: 2, VectorOps: 7},
			{},
		},
		Buffers: []Buffer{
			{Label: 0, Level: L1, Bytes: 4096, First: 0, Lasts: []int32{1, 2}},
			{Label: 1, Level: LLB, Address: 64, Bytes: 1, First: 4},
		},
		Capacity:          [NumLevels]int64{L1: 1 << 16, LLB: 1 << 20},
		PeakMACsPerSecond: 128e12, PeakVectorOpsPerSecond: 1.0 / 3,
	}
}
