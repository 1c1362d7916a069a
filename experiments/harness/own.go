package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// Definition is an experiment of the caller's own. New makes an Experiment of it, whose
// method Run does for it what the package does for those of the registry: cells in
// parallel, kept when they are finished, and files that are whole or not there.
type Definition interface {
	// Cells lists the pieces to compute. Cells with equal keys are a mistake.
	Cells() ([]Cell, error)
	// Report makes the output from the results of the cells: the JSON of what their Run
	// returned, in the order of Cells. It must depend on nothing else.
	Report(results []json.RawMessage) (Report, error)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// New makes an experiment that is not in the registry. Its name, letters, digits, '.',
// '_' and '-', is that of its folder.
func New(name, description string, d Definition) (Experiment, error) {
	if !plainName.MatchString(name) {
		return Experiment{}, fmt.Errorf("the experiment's name is %q, expected letters, digits, '.', '_' and '-'", name)
	}
	if name == sharedCells {
		return Experiment{}, fmt.Errorf("the experiment's name is %q, which is taken", name)
	}
	return Experiment{Name: name, Description: description, Plan: func() (*Plan, error) { return planOf(d) }}, nil
}

func planOf(d Definition) (*Plan, error) {
	list, err := d.Cells()
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	keys := map[string]bool{}
	for _, c := range list {
		if !plainName.MatchString(c.Key) {
			return nil, fmt.Errorf("a cell's key is %q, expected letters, digits, '.', '_' and '-'", c.Key)
		}
		if keys[c.Key] {
			return nil, fmt.Errorf("two cells have the key %q", c.Key)
		}
		if c.Run == nil {
			return nil, fmt.Errorf("the cell %q has no Run", c.Key)
		}
		keys[c.Key] = true
		p.Cells = append(p.Cells, c)
	}
	p.Report = func(results []json.RawMessage) (*Report, error) {
		r, err := d.Report(results)
		if err != nil {
			return nil, err
		}
		for _, f := range r.Files {
			if !plainName.MatchString(f.Name) {
				return nil, fmt.Errorf("a file's name is %q, expected letters, digits, '.', '_' and '-'", f.Name)
			}
		}
		return &r, nil
	}
	return p, nil
}

// Measure is a cell whose result is a Row: one network on one accelerator at one batch
// size with one variant. Unit is of the throughput, such as images/s. The key has the
// names of network, accelerator and variant, which must tell them apart.
func Measure(src network.Network, spec *hardware.Spec, batch int64, v scheduler.Recipe, opt scheduler.Options,
	unit string) (Cell, error) {
	if src.Graph == nil || spec == nil {
		return Cell{}, errors.New("a measurement needs a network and an accelerator")
	}
	g, err := src.Graph(1)
	if err != nil {
		return Cell{}, err
	}
	graphHash, err := Hash(g)
	if err != nil {
		return Cell{}, err
	}
	policy, chunk := Tuned, "tuned"
	if opt.Chunk > 0 {
		policy, chunk = Given, fmt.Sprintf("c%d", opt.Chunk)
	}
	return Cell{
		Key:   fmt.Sprintf("%s-%s-b%d-%s-%s", src.Name, spec.Name, batch, v.Name, chunk),
		Label: fmt.Sprintf("%s on %s, batch %d, %s", src.Name, spec.Name, batch, v.Name),
		Inputs: map[string]any{
			"graph_sha256": graphHash, "hardware": spec, "batch": batch, "variant": v, "options": opt,
			"unit": unit,
		},
		Run: func(ctx context.Context) (any, error) {
			r, err := scheduler.Run(ctx, src, spec, batch, v, opt)
			if err != nil {
				return nil, err
			}
			return RowOf(r, policy, unit), nil
		},
	}, nil
}
