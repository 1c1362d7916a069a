package balancing

import "github.com/dsasched/dsasched/experiments/harness"

// Experiments lists those of the package, in the order of the paper's figures.
func Experiments() []harness.Experiment {
	return []harness.Experiment{
		threads("mofang-fig13", "resnet50", 13, 16), threads("mofang-fig14", "resnet18", 14, 48),
		scaling(), batches(),
		module("mofang-fig17", 17), module("mofang-fig18", 18), module("mofang-fig19", 19), inception(),
		bubbles("mofang-fig20", 20, 5, 4, 0.5), bubbles("mofang-fig21", 21, 3, 6, 0.25), microBatches(), pipelines(),
		gains(), utilization(), energy(),
		partitions(),
	}
}

// paper names a figure of the paper.
const paper = "Mofang (J. Frontiers of Computer Science and Technology 2024, no. 1), "
