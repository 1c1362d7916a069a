package experiments

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
)

// configured is an experiment with one cell for each configuration, whose results are
// of type T.
type configured[T any] struct {
	Experiment     // without its plan
	hardware       string
	configurations []Configuration
	suffix         string // of the cells' keys
	// inputs are what a result depends on beside the program.
	inputs func(c Configuration, hardwareHash string) any
	run    func(ctx context.Context, src network.Network, spec *hardware.Spec, c Configuration) (T, error)
	report func(all []T, b *gridReport) error
	// files take the place of the grid's with the same names.
	files func(all []T) ([]file, error)
}

func (e configured[T]) plan() (*plan, error) {
	spec, err := hardware.Load(e.hardware)
	if err != nil {
		return nil, err
	}
	specHash, err := hashOf(spec)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	for _, c := range e.configurations {
		src, err := openNetwork(c.Network)
		if err != nil {
			return nil, err
		}
		p.cells = append(p.cells, cell{key: c.Network + e.suffix, label: c.Network, inputs: e.inputs(c, specHash),
			run: func(ctx context.Context) (any, error) { return e.run(ctx, src, spec, c) }})
	}
	p.report = func(results []json.RawMessage) (*report, error) {
		all := make([]T, len(results))
		for i, r := range results {
			if err := json.Unmarshal(r, &all[i]); err != nil {
				return nil, fmt.Errorf("a result can't be read: %w", err)
			}
		}
		g := grid{name: e.Name, description: e.Description, paper: e.Paper, hardware: e.hardware}
		rep, err := g.write(func(b *gridReport) error { return e.report(all, b) }, nil)
		if err != nil {
			return nil, err
		}
		own, err := e.files(all)
		if err != nil {
			return nil, err
		}
		rep.replace(own...)
		return rep, nil
	}
	return p, nil
}
