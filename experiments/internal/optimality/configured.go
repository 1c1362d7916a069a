package optimality

import (
	"context"
	"maps"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
)

// configured is an experiment with one cell for each configuration, whose results are of type T.
type configured[T any] struct {
	harness.Experiment // without its plan
	Hardware           string
	Configurations     []literature.Configuration
	suffix             string // of the cells' keys
	// Inputs are the inputs of all results beside the program, the configuration and the accelerator.
	Inputs map[string]any
	// Package bail ends Run at an error.
	Run    func(ctx context.Context, src network.Network, spec *hardware.Spec, c literature.Configuration) T
	Report func(all []T, b *harness.Document)
	// Files take the place of the grid's with the same names.
	Files func(all []T) []harness.File
}

func (e configured[T]) Plan() (*harness.Plan, error) {
	spec, specHash := harness.Machine(e.Hardware)
	p := &harness.Plan{}
	for _, c := range e.Configurations {
		src := harness.OpenNetwork(c.Network)
		inputs := map[string]any{"model": c.Network, "hardware_sha256": specHash, "batch": c.BatchSize}
		maps.Copy(inputs, e.Inputs)
		p.Cells = append(p.Cells, harness.Cell{Key: c.Network + e.suffix, Label: c.Network, Inputs: inputs,
			Run: func(ctx context.Context) (any, error) { return e.Run(ctx, src, spec, c), nil }})
	}
	p.Report = harness.Of(func(all []T) (*harness.Report, error) {
		rep, err := e.Experiment.WriteRows(e.Hardware, func(b *harness.Document) { e.Report(all, b) }, nil)
		if err != nil {
			return nil, err
		}
		rep.Replace(e.Files(all)...)
		return rep, nil
	})
	return p, nil
}
