package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/spell"
)

// Experiment is an entry of the registry.
type Experiment struct {
	Name        string // also the name of its directory
	Description string
	Paper       string // what it reproduces

	// Exact tells that it is about methods that look for optima: nothing is left of it
	// without them.
	Exact bool

	plan func() (*plan, error)
	// heuristic is the plan without those methods, where that is another.
	heuristic func() (*plan, error)
	// with replaces plan where the settings of a run matter to what is computed.
	with func(Options) (*plan, error)
}

// plan is what an experiment consists of.
type plan struct {
	cells []cell
	// report makes the output from the results of the cells, in their order. It
	// depends on nothing else, so that a run that went on gives the same files.
	report func(results []json.RawMessage) (*report, error)
}

// cell is the smallest piece of an experiment that is kept.
type cell struct {
	key   string // file name, unique in the experiment
	label string // for people
	// inputs are all that the result depends on besides the program itself; their
	// JSON goes into the fingerprint.
	inputs any
	run    func(ctx context.Context) (any, error)
	// shared: other experiments have the same cell, by key and inputs, so that it is
	// kept where they find it.
	shared bool
}

// report is the output of an experiment.
type report struct {
	text  string // for the terminal
	files []file
}

type file struct {
	name string
	data []byte
}

// replace puts files in the place of those with the same names.
func (r *report) replace(files ...file) {
	for _, f := range files {
		for i := range r.files {
			if r.files[i].name == f.name {
				r.files[i].data = f.data
			}
		}
	}
}

// registry lists the experiments in the order in which Run takes them.
func registry() []Experiment {
	return []Experiment{
		fig3().experiment(),
		fig5().experiment(),
		fig8().experiment(),
		fig10().experiment(),
		fig12().experiment(),
		fig13().experiment(),
		fullAblation().experiment(),
		table1().experiment(),
		batchSelect().experiment(),
		fig14().experiment(),
		fig15().experiment(),
		table3().experiment(),
		fig16().experiment(),
		fig17().experiment(),
		lb64().experiment(),
		fullTable4().experiment(),
		fullOptimality().experiment(),
		fullGrowth().experiment(),
		fullSweep().experiment(),
		fullSensitivity().experiment(),
		fullPortability().experiment(),
		fullTable5().experiment(),
		fullTimeline().experiment(),
	}
}

// All lists the experiments.
func All() []Experiment { return registry() }

// Names lists the names of the experiments.
func Names() []string {
	var names []string
	for _, e := range registry() {
		names = append(names, e.Name)
	}
	return names
}

// Lookup finds an experiment by its name.
func Lookup(name string) (Experiment, error) {
	for _, e := range registry() {
		if e.Name == name {
			return e, nil
		}
	}
	return Experiment{}, fmt.Errorf("unknown experiment %q%s, expected one of: %s", name, spell.Hint(name, Names()), strings.Join(Names(), ", "))
}
