package experiments

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/internal/ablation"
	"github.com/dsasched/dsasched/experiments/internal/beside"
	"github.com/dsasched/dsasched/experiments/internal/optimality"
	"github.com/dsasched/dsasched/experiments/internal/paperfigs"
	"github.com/dsasched/dsasched/experiments/internal/report"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/systems"
)

// leading lists the experiments of a run without names: the study of greedy against optimal, then the papers' figures.
func leading() []harness.Experiment {
	list := []harness.Experiment{
		optimality.Optimality(),
		optimality.Table4(),
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
		paperfigs.Fig16(),
		paperfigs.Fig17(),
		paperfigs.Table5(),
		ablation.Timeline(),
	}
	return append(list, published(true)...)
}

// published lists the systems' experiments that draw a figure or table of a paper, or those that don't.
func published(figures bool) []harness.Experiment {
	return slices.DeleteFunc(systems.Experiments(), func(e harness.Experiment) bool {
		return slices.Contains([]string{"readings", "measured", "gains", "ansor-optimal"}, e.Name) == figures
	})
}

// registry lists the experiments in the order in which Run takes them.
func registry() []harness.Experiment {
	return withCosts(append(append(leading(), beside.Experiment()), published(false)...))
}

//go:embed costs.csv
var costsFile string

// withCosts adds what the experiments cost: in processor seconds, after those before them in the list, whose cells they
// share; estimates for one core of two at 2 to 3 GHz, most of them measured.
func withCosts(list []harness.Experiment) []harness.Experiment {
	costs := map[string]harness.Cost{}
	for line := range strings.Lines(costsFile) {
		var name string
		var c harness.Cost
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, ",", " "), "%s %g %g", &name, &c.Quick, &c.Full); err == nil {
			costs[name] = c
		}
	}
	for i := range list {
		list[i].Cost = costs[list[i].Name]
	}
	return list
}

// All lists the experiments.
func All() []Experiment {
	return harness.Each(registry(), func(e harness.Experiment) Experiment { return Experiment{e} })
}

// Names lists the names of the experiments.
func Names() []string {
	return harness.Each(registry(), func(e harness.Experiment) string { return e.Name })
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

// Run runs the experiments of these names and writes their results: without names the study and the papers' figures, or
// with opt.Full all. If an experiment fails, the others still run.
func Run(ctx context.Context, names []string, opt Options) error {
	list, err := Select(names, opt)
	if err != nil {
		return err
	}
	return runAndReport(ctx, list, opt)
}

// Select lists the experiments that Run takes. Without exact methods, experiments of which nothing is left are omitted.
func Select(names []string, opt Options) ([]harness.Experiment, error) {
	var list []harness.Experiment
	seen := map[string]bool{}
	for _, name := range names {
		e, err := Lookup(name)
		if err != nil {
			return nil, err
		}
		if e.Exact && opt.NoExact {
			return nil, fmt.Errorf("nothing is left of %s without exact methods", name)
		}
		if !seen[e.Name] {
			seen[e.Name] = true
			list = append(list, e.Experiment)
		}
	}
	if len(names) == 0 {
		list = withCosts(leading())
		if opt.Full {
			list = registry()
		}
		list = slices.DeleteFunc(list, func(e harness.Experiment) bool { return e.Exact && opt.NoExact })
	}
	return list, nil
}

// runAndReport runs experiments and gathers all results in the folder for the report over all experiments.
func runAndReport(ctx context.Context, list []harness.Experiment, opt Options) error {
	err := harness.Run(ctx, list, opt)
	if harness.Aborted(err) {
		return err
	}
	return errors.Join(err, report.Write(opt.Dir(), Names()))
}
