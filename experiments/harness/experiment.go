package harness

import (
	"context"
	"encoding/json"
	"slices"
)

// Experiment is an entry of the registry.
type Experiment struct {
	Name        string   `json:"name"`           // also the name of its directory
	Also        []string `json:"also,omitempty"` // names of figures and tables that it holds as well
	Description string   `json:"description"`
	Paper       string   `json:"paper,omitempty"` // what it reproduces

	// exact says that it is about exact methods: nothing is left of it without them.
	Exact bool `json:"-"`

	Plan func() (*Plan, error) `json:"-"`
	// Quick is the plan of the quick form, where there is one: fewer machines or networks, or less search.
	Quick func() (*Plan, error) `json:"-"`
	// Cost is the processor time of the quick and of the full form, measured on one machine; 0: not known.
	Cost Cost `json:"-"`
	// Heuristic is the plan without those methods, where that is another.
	Heuristic func() (*Plan, error) `json:"-"`
	// With replaces plan where the settings of a run matter to what is computed.
	With func(Options) (*Plan, error) `json:"-"`
}

// Cost is a processor time in seconds for each form.
type Cost struct{ Quick, Full float64 }

// Plan holds the cells of an experiment and its report.
type Plan struct {
	Cells []Cell
	// Report makes the output from the results of the cells, in their order. It
	// depends on nothing else, so that a run that went on gives the same files.
	Report func(results []json.RawMessage) (*Report, error)
}

// Cell is the smallest piece of an experiment that is kept. Two cells of an experiment may not have the same key.
type Cell struct {
	Key   string // file name without extension: letters, digits, '.', '_', '-'
	Label string // for people, in progress and errors
	// Inputs are all that the result depends on besides the program itself; their JSON goes into the fingerprint.
	Inputs any
	Run    func(ctx context.Context) (any, error)
	// Shared: other experiments may have the same cell, by key and inputs, so that it is kept where they find it.
	Shared bool
}

// Report is the output of an experiment.
type Report struct {
	Text  string // for Options.Stdout
	Files []File
}

// File is a file in the experiment's folder.
type File struct {
	Name string // as cell.key, with extension
	Data []byte
}

// Single is an experiment of one cell: compute makes its result, which depends on inputs and the program alone, and
// report writes about it. Package bail ends compute at an error.
func Single[T any](name, description, paper string, inputs any, compute func(context.Context) T,
	report func(*Document, T)) Experiment {
	e := Experiment{Name: name, Description: description, Paper: paper}
	e.Plan = func() (*Plan, error) {
		return &Plan{Cells: []Cell{{Key: "all", Label: name, Inputs: inputs,
			Run: func(ctx context.Context) (any, error) { return compute(ctx), nil }}},
			Report: Of(func(results []T) (*Report, error) {
				d := NewDocument(e)
				report(d, results[0])
				return d.Report(Data{Data: results[0]})
			})}, nil
	}
	return e
}

// JSONFile is a file of a value's JSON. It panics if there is none, which is a mistake in the value's type.
func JSONFile(name string, v any) File {
	return File{name, append(must(json.MarshalIndent(v, "", "  ")), '\n')}
}

// Replace puts files in the place of those with the same names, or adds them.
func (r *Report) Replace(files ...File) {
	for _, f := range files {
		i := slices.IndexFunc(r.Files, func(x File) bool { return x.Name == f.Name })
		if i < 0 {
			r.Files = append(r.Files, f)
		} else {
			r.Files[i] = f
		}
	}
}
