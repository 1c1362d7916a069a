package optimality

import (
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// wholeSchedules asks how far greedy schedules are from the best that a search judged by the
// simulator finds, which greedy decision loses most, and whether that hangs on the fitted
// constants.
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
		Description: "greedy schedules against the best whole ones found, decision by decision, on machines with other constants",
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
	Machines    []otherMachine       `json:"machines"`
}

// otherMachine has the times of both schedules, not made again, on a changed machine.
type otherMachine struct {
	Change string  `json:"change"`
	Greedy float64 `json:"greedy_per_s"`
	Best   float64 `json:"best_per_s"`
}

// machineChanges halve and double each fitted constant; of the DDR's efficiency what it loses; a
// change of weight blocks, which costs nothing by the fit, costs half and all of the least that is
// published of a small operation. The last makes each command 1 µs longer.
var machineChanges = []struct {
	name   string
	change func(s *hardware.Spec)
}{
	{"launch × 0.5", func(s *hardware.Spec) { s.LaunchSeconds /= 2 }},
	{"launch × 2", func(s *hardware.Spec) { s.LaunchSeconds *= 2 }},
	{"DDR loss × 0.5", func(s *hardware.Spec) { scaleLoss(s, 0.5) }},
	{"DDR loss × 2", func(s *hardware.Spec) { scaleLoss(s, 2) }},
	{"block change 12 cycles", func(s *hardware.Spec) { setBlocks(s, 12) }},
	{"block change 24 cycles", func(s *hardware.Spec) { setBlocks(s, 24) }},
	{"each command + 1 µs", func(s *hardware.Spec) {
		const more = 1e-6
		s.LaunchSeconds += more
		s.DDR.LatencySeconds += more
		s.CoreLink.LatencySeconds += more
		eachUnit(s, func(u *hardware.Unit) { u.FillCycles += hardware.Cycles(more * s.ClockHz) })
	}},
}

func scaleLoss(s *hardware.Spec, by float64) {
	if e := s.DDRActivationEfficiency; e > 0 {
		s.DDRActivationEfficiency = math.Max(0.1, 1-by*(1-e))
	}
}

func setBlocks(s *hardware.Spec, cycles float64) {
	eachUnit(s, func(u *hardware.Unit) { u.BlockCycles = cycles })
}

func eachUnit(s *hardware.Spec, change func(u *hardware.Unit)) {
	for t := range s.CoreTypes {
		for u := range s.CoreTypes[t].Units {
			change(&s.CoreTypes[t].Units[u])
		}
	}
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
	for _, m := range machineChanges {
		other := harness.Accelerator(w.hardware)
		m.change(other)
		greedy, err := found.Greedy.On(ctx, other)
		if err != nil {
			return a, err
		}
		best, err := found.On(ctx, other)
		if err != nil {
			return a, err
		}
		a.Machines = append(a.Machines, otherMachine{m.name, greedy.ThroughputPerSecond(), best.ThroughputPerSecond()})
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
	machines := harness.Table{Name: "machines",
		Title:   "The same schedules on machines with other constants: best over greedy",
		Columns: harness.Columns("<Machine")}
	for _, m := range machineChanges {
		machines.Add(m.name)
	}
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
		machines.AddColumns(c.Network)
		stands := 0
		for k, m := range a.Machines {
			machines.Rows[k] = append(machines.Rows[k], harness.Fixed(m.Best/m.Greedy, 3))
			if m.Best > m.Greedy {
				stands++
			}
		}
		if worst == "" {
			worst = "no decision alone"
		}
		b.Note("%s: %.2f times greedy; greedy loses most by %s; the ranking stands on %d of %d changed machines.", c.Network,
			a.Best/a.Greedy, worst, stands, len(a.Machines))
	}
	b.Table(rates, losses, machines)
	curves := plots.Curves{Title: "Best schedule so far", XLabel: "Evaluations", YLabel: "Throughput over greedy",
		LogX: true, Line: 1}
	for _, a := range all {
		curves.X = append(curves.X, float64(a.Evaluations))
		for _, x := range a.Trajectory {
			curves.X = append(curves.X, float64(x.Evaluations))
		}
	}
	slices.Sort(curves.X)
	curves.X = slices.Compact(curves.X)
	for i, c := range w.configurations {
		s := plots.Series{Name: c.Network}
		for _, at := range curves.X {
			s.Values = append(s.Values, all[i].after(c.BatchSize, at))
		}
		curves.Series = append(curves.Series, s)
	}
	b.Curves("anytime", "What the search has after how many evaluations", curves)
}

// after is the best so far over greedy after some evaluations; 0 before the first and after
// the last.
func (a *wholeSchedule) after(batch int64, evaluations float64) float64 {
	ratio := 0.0
	if evaluations > float64(a.Evaluations) {
		return 0
	}
	for _, x := range a.Trajectory {
		if float64(x.Evaluations) <= evaluations {
			ratio = float64(batch) / x.LatencySeconds / a.Greedy
		}
	}
	return ratio
}
