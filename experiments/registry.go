package experiments

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/experiments/internal/ablation"
	"github.com/dsasched/dsasched/experiments/internal/beside"
	"github.com/dsasched/dsasched/experiments/internal/loops"
	"github.com/dsasched/dsasched/experiments/internal/measured"
	"github.com/dsasched/dsasched/experiments/internal/optimality"
	"github.com/dsasched/dsasched/experiments/internal/paperfigs"
	"github.com/dsasched/dsasched/experiments/internal/peers"
	"github.com/dsasched/dsasched/experiments/internal/readings"
	"github.com/dsasched/dsasched/experiments/internal/report"
	"github.com/dsasched/dsasched/experiments/internal/roofline"
	"github.com/dsasched/dsasched/experiments/internal/timeline"
	"github.com/dsasched/dsasched/experiments/internal/tuning"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/systems"
)

// registry lists the experiments in the order in which Run takes them.
func registry() []harness.Experiment {
	return append([]harness.Experiment{
		paperfigs.Fig3(),
		paperfigs.Fig5(),
		paperfigs.Fig8(),
		paperfigs.Fig10(),
		paperfigs.Fig12(),
		paperfigs.Fig13(),
		ablation.Experiment(),
		paperfigs.Table1(),
		paperfigs.BatchSelect(),
		paperfigs.Fig14(),
		paperfigs.Fig15(),
		paperfigs.Table3(),
		paperfigs.Grain(),
		paperfigs.Fig16(),
		paperfigs.Fig17(),
		readings.Experiment(),
		paperfigs.LB64(),
		optimality.Table4(),
		optimality.Optimality(),
		optimality.Best(),
		optimality.Regret(),
		optimality.Kinds(),
		tuning.Sweep(),
		tuning.Sensitivity(),
		tuning.Portability(),
		tuning.Table5(),
		timeline.Experiment(),
		beside.Experiment(),
		roofline.Experiment(),
		roofline.Networks(),
		measured.Experiment(),
		peers.Experiment(),
	}, append(systems.Experiments(), loops.Experiments()...)...)
}

// All lists the experiments.
func All() []Experiment {
	var list []Experiment
	for _, e := range registry() {
		list = append(list, Experiment{e})
	}
	return list
}

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
	var known []string
	for _, e := range registry() {
		known = append(append(known, e.Name), e.Also...)
		if e.Name == name || slices.Contains(e.Also, name) {
			return Experiment{e}, nil
		}
	}
	return Experiment{}, fmt.Errorf("unknown experiment %q%s", name, suggest.Expected(name, known))
}

// Run runs the experiments of these names, all if there is none, and writes
// their results. If an experiment fails, the others still run.
func Run(ctx context.Context, names []string, opt Options) error {
	list, err := Select(names, opt.NoExact)
	if err != nil {
		return err
	}
	return runAndReport(ctx, list, opt)
}

// Select lists the experiments of these names, all if there is none; without exact methods
// those of which something is left.
func Select(names []string, noExact bool) ([]harness.Experiment, error) {
	var list []harness.Experiment
	seen := map[string]bool{}
	for _, name := range names {
		e, err := Lookup(name)
		if err != nil {
			return nil, err
		}
		if e.Exact && noExact {
			return nil, fmt.Errorf("nothing is left of %s without exact methods", name)
		}
		if !seen[e.Name] {
			seen[e.Name] = true
			list = append(list, e.Experiment)
		}
	}
	if len(names) == 0 {
		for _, e := range registry() {
			if !e.Exact || !noExact {
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// runAndReport runs experiments and gathers all results in the folder for the report over
// all experiments.
func runAndReport(ctx context.Context, list []harness.Experiment, opt Options) error {
	err := harness.Run(ctx, list, opt)
	if harness.Aborted(err) {
		return err
	}
	return errors.Join(err, report.Write(opt.Dir(), Names()))
}
