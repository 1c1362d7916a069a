package balancing

import (
	"context"
	"encoding/json"

	"github.com/dsasched/dsasched/internal/harness"
)

// Experiments lists those of the package, in the order of the paper's figures.
func Experiments() []harness.Experiment {
	return []harness.Experiment{
		threads("mofang-fig13", "resnet50", 13, 16), threads("mofang-fig14", "resnet18", 14, 48),
		scaling(), batches(),
		module("mofang-fig17", 17), module("mofang-fig18", 18), module("mofang-fig19", 19), inception(),
		bubbles("mofang-fig20", 20, 5, 4, 0.5), bubbles("mofang-fig21", 21, 3, 6, 0.25), microBatches(), pipelines(),
		gains(), utilization(), energy(),
		partitions(), clusters(), tensor(), servingExperiment(), expertsExperiment(),
	}
}

// single is an experiment of one cell: compute makes its result, which depends on
// inputs and the program alone, and report writes about it.
func single[T any](name, description, paper string, inputs any, compute func(context.Context) (T, error),
	report func(*harness.Document, T)) harness.Experiment {
	e := harness.Experiment{Name: name, Description: description, Paper: paper}
	e.Plan = func() (*harness.Plan, error) {
		return &harness.Plan{
			Cells: []harness.Cell{{Key: "all", Label: name, Inputs: inputs,
				Run: func(ctx context.Context) (any, error) { return compute(ctx) }}},
			Report: func(results []json.RawMessage) (*harness.Report, error) {
				var v T
				if err := json.Unmarshal(results[0], &v); err != nil {
					return nil, err
				}
				d := harness.NewDocument(e)
				report(d, v)
				return d.Report(harness.Data{Data: v})
			},
		}, nil
	}
	return e
}

// paper names a figure of the paper.
const paper = "Mofang (J. Frontiers of Computer Science and Technology 2024, no. 1), "
