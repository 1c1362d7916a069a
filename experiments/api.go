package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/internal/report"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// What an experiment of a caller's own consists of; see package harness.
type (
	Options          = harness.Options
	Progress         = harness.Progress
	InterruptedError = harness.InterruptedError
	Definition       = harness.Definition
	Cell             = harness.Cell
	Report           = harness.Report
	File             = harness.File
	Row              = harness.Row
	Levels           = harness.Levels
	ChunkPolicy      = harness.ChunkPolicy
	Contents         = report.Contents
)

// The ways in which the batches per cluster of a Row were chosen.
const (
	Tuned       = harness.Tuned
	PaperChunks = harness.PaperChunks
	Given       = harness.Given
)

// Experiment is one of the registry, or of New.
type Experiment struct{ harness.Experiment }

// Run runs this experiment alone and writes the report over all results in the folder.
func (e Experiment) Run(ctx context.Context, opt Options) error {
	return runAndReport(ctx, []harness.Experiment{e.Experiment}, opt)
}

// New makes an experiment that is not in the registry. Its name, letters, digits, '.',
// '_' and '-', is that of its folder.
func New(name, description string, d Definition) (Experiment, error) {
	if slices.Contains(Names(), name) {
		return Experiment{}, fmt.Errorf("the experiment's name is %q, which is taken", name)
	}
	e, err := harness.New(name, description, d)
	return Experiment{e}, err
}

// Measure is a cell whose result is a Row: one network on one accelerator at one batch
// size with one variant. Unit is of the throughput, such as images/s. The key has the
// names of network, accelerator and variant, which must tell them apart.
func Measure(src network.Network, spec *hardware.Spec, batch int64, v scheduler.Recipe, opt scheduler.Options,
	unit string) (Cell, error) {
	return harness.Measure(src, spec, batch, v, opt, unit)
}

// Page makes one self-contained HTML file of a folder of results. It depends on the files in the folder alone. A folder
// without results is an error.
func Page(out string) ([]byte, *report.Contents, error) { return report.Page(out, Names()) }

// The published throughputs and other figures of the paper.
var (
	Configurations = literature.Configurations
	Figures        = literature.Figures
)
