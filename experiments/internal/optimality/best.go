package optimality

import (
	"context"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// wholeSchedules asks how far greedy schedules are from the best that a search judged by the
// simulator finds, and which greedy decision loses most.
type wholeSchedules struct {
	hardware       string
	configurations []literature.Configuration
	evaluations    int
}

// fullBest has few networks and a small budget: the whole of it ends within a minute or two.
func fullBest() wholeSchedules {
	w := wholeSchedules{hardware: "stcp920", evaluations: 400}
	for _, label := range []string{"A", "B", "G"} {
		w.configurations = append(w.configurations, literature.ConfigurationOf(label))
	}
	return w
}

// Best is the experiment.
func Best() harness.Experiment { return fullBest().experiment() }

func (w wholeSchedules) experiment() harness.Experiment {
	return harness.Experiment{Name: "best", Exact: true,
		Description: "greedy schedules against the best whole ones found, decision by decision",
		Paper:       "none; the search for the best whole schedule, from the variant cross-layer on", Plan: w.plan}
}

// wholeSchedule is the answer for a network; rates are per second.
type wholeSchedule struct {
	Greedy      float64              `json:"greedy_per_s"`
	Best        float64              `json:"best_per_s"`
	Bound       float64              `json:"bound_per_s"` // no schedule has more
	Evaluations int                  `json:"evaluations"`
	Trajectory  []search.Improvement `json:"trajectory"`
	Losses      []search.Loss        `json:"losses"`
}

func (w wholeSchedules) plan() (*harness.Plan, error) {
	return configured[wholeSchedule]{
		Experiment: w.experiment(), Hardware: w.hardware, Configurations: w.configurations, suffix: "-best",
		Inputs: map[string]any{"evaluations": w.evaluations},
		Run:    w.run, Report: w.report, Files: w.files,
	}.Plan()
}

func (w wholeSchedules) run(ctx context.Context, src network.Network, spec *hardware.Spec, c literature.Configuration) (
	a wholeSchedule, err error) {
	recipe := harness.Recipe("cross-layer")
	least, err := bound.Cold(ctx, src, spec, c.BatchSize)
	if err != nil {
		return a, err
	}
	found, err := search.Best(ctx, src, spec, c.BatchSize,
		search.BestOptions{Recipes: []scheduler.Recipe{recipe}, Evaluations: w.evaluations})
	if err != nil {
		return a, err
	}
	if err := least.Check(found.LatencySeconds()); err != nil {
		return a, err
	}
	if err := ctx.Err(); err != nil {
		return a, err
	}
	a = wholeSchedule{Greedy: found.Greedy.ThroughputPerSecond(), Best: found.ThroughputPerSecond(),
		Bound:       float64(c.BatchSize) / least.Seconds,
		Evaluations: found.Evaluations, Trajectory: found.Trajectory}
	if a.Losses, err = found.Losses(ctx); err != nil {
		return a, err
	}
	return a, nil
}

func (w wholeSchedules) files(all []wholeSchedule) []harness.File {
	type answer struct {
		Model string `json:"model"`
		Batch int64  `json:"batch"`
		wholeSchedule
	}
	var list []answer
	for i, c := range w.configurations {
		list = append(list, answer{c.Network, c.BatchSize, all[i]})
	}
	return []harness.File{harness.JSONFile("best.json", list)}
}

func (w wholeSchedules) report(all []wholeSchedule, b *harness.Document) {
	rates := harness.Table{Name: "best", Title: "The best whole schedule found against the greedy one",
		Columns: harness.Columns("<Network", "Batch", "Greedy\n(1/s)", "Best\n(1/s)", "Over\ngreedy",
			"No schedule\nabove (1/s)", "Gap (%)", "Evaluations")}
	losses := harness.Table{Name: "losses",
		Title: "Each decision alone: the best schedule with the greedy one, the greedy schedule with the best one",
		Columns: harness.Columns("<Network", "<Decision", "Best with it\ngreedy (1/s)", "Lost (%)",
			"Greedy with it\nbest (1/s)", "Gained (%)")}
	rate := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return harness.Significant(*x)
	}
	change := func(x *float64, over float64) string {
		if x == nil {
			return "–"
		}
		return harness.Fixed(100*(*x/over-1), 1)
	}
	for i, c := range w.configurations {
		a := all[i]
		rates.Add(c.Network, c.BatchSize, a.Greedy, a.Best, harness.Fixed(a.Best/a.Greedy, 3), a.Bound,
			harness.Fixed(100*(a.Bound/a.Best-1), 1), a.Evaluations)
		worst, least := "", a.Best
		for _, x := range a.Losses {
			losses.Add(c.Network, x.Decision, rate(x.SetBack), change(x.SetBack, a.Best), rate(x.SetToBest),
				change(x.SetToBest, a.Greedy))
			if x.SetBack != nil && *x.SetBack < least {
				worst, least = x.Decision, *x.SetBack
			}
		}
		if worst == "" {
			worst = "no decision alone"
		}
		b.Note("%s: %.2f times greedy; greedy loses most by %s.", c.Network, a.Best/a.Greedy, worst)
	}
	b.Table(rates, losses)
}
