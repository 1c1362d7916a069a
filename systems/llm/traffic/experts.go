package traffic

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/systems/llm"
	"github.com/dsasched/dsasched/systems/llm/experts"
)

// A routedCase is a layer of experts on a machine under routings of so many tokens.
type routedCase struct {
	Machine, Mixture string
	Tokens           int64
}

var (
	routedCases = []routedCase{{"stcp920x4", "mixtral-8x7b", 128}, {"v100x16", "olmoe-1b-7b", 512}}
	routedSkews = []float64{0, 0.5, 1, 1.5, 2}
	routedWays  = []llm.Placing{{Method: "even"}, {Method: "greedy"}, {Method: "search"},
		{Method: "search", Worst: true}}
)

const (
	routedScenarios = 16
	routedSeed      = 1
)

type routed struct {
	routedCase
	Skew  float64      `json:"skew"`
	Plans []llm.Placed `json:"plans"`
}

func expertsExperiment() harness.Experiment {
	e := harness.Experiment{Name: "experts",
		Description: "a layer's experts placed on chips for many routings at once: evenly, greedily, by search, beside bounds",
		Paper:       "none; mixtures of experts under routings that are not known beforehand"}
	e.Plan = func() (*harness.Plan, error) {
		p := &harness.Plan{}
		for _, c := range routedCases {
			for _, skew := range routedSkews {
				key := fmt.Sprintf("%s-%s-%g", c.Machine, c.Mixture, skew)
				p.Cells = append(p.Cells, harness.Cell{Key: key, Label: key,
					Inputs: []any{c, skew, routedScenarios, routedSeed, routedWays, recipes.Default},
					Run:    func(ctx context.Context) (any, error) { return route(ctx, c, skew, routedScenarios) }})
			}
		}
		p.Report = harness.Of(func(rows []routed) (*harness.Report, error) { return reportExperts(e, rows) })
		return p, nil
	}
	return e
}

func route(ctx context.Context, c routedCase, skew float64, scenarios int64) (*routed, error) {
	spec, recipe, err := machineAndRecipe(c.Machine)
	if err != nil {
		return nil, err
	}
	m, err := zoo.OpenMixture(c.Mixture, model.F16)
	if err != nil {
		return nil, err
	}
	list, err := experts.Draw(scenarios, m.Experts(), c.Tokens, m.Chosen(), skew, routedSeed)
	if err != nil {
		return nil, err
	}
	plans, err := llm.PlaceExperts(ctx, m, spec, list, routedWays, recipe, solve.Options[*experts.Plan]{})
	for i := range plans {
		plans[i].DType = model.F16.String()
	}
	return &routed{c, skew, plans}, err
}

func reportExperts(e harness.Experiment, rows []routed) (*harness.Report, error) {
	d := harness.NewDocument(e)
	times := harness.Table{Title: "Times of a layer's experts over the scenarios, ms", Name: "times",
		Columns: harness.Columns("<Machine", "<Experts", "Skew", "<Plan", "Mean", "At least", "Longest", "At least")}
	plans := harness.Table{Title: "Plans", Name: "plans", Columns: harness.Columns("<Machine", "<Experts", "Skew", "<Plan",
		"<Kernels", "By formula, ms", "At least", "<Proven")}
	var panels []plots.Curves
	names := []string{"even", "greedy", "search", "search, longest"}
	gains := [2]float64{}
	for _, r := range rows {
		title := fmt.Sprintf("%s on %s, %d tokens", r.Mixture, r.Machine, r.Tokens)
		if len(panels) == 0 || panels[len(panels)-1].Title != title {
			panels = append(panels, plots.Curves{Title: title, XLabel: "skew", YLabel: "mean over the bound"})
			for _, name := range names {
				p := &panels[len(panels)-1]
				p.Series = append(p.Series, plots.Series{Name: name})
			}
		}
		panel := &panels[len(panels)-1]
		panel.X = append(panel.X, r.Skew)
		for k, a := range r.Plans {
			key := []string{r.Machine, r.Mixture, fmt.Sprintf("%g", r.Skew), names[k]}
			times.Add(key, short(a.Mean*1e3), short(a.MeanBound*1e3), short(a.Longest*1e3), short(a.LongestBound*1e3))
			proven := "no"
			if a.Status == "optimal" {
				proven = "yes"
			}
			plans.Add(key, fmt.Sprint(a.Kernels), short(a.Objective*1e3), short(a.Bound*1e3), proven)
			panel.Series[k].Values = append(panel.Series[k].Values, a.Mean/a.MeanBound)
			if k < 2 {
				gains[k] += math.Log(a.Mean/r.Plans[2].Mean) / float64(len(rows))
			}
		}
	}
	d.Note(
		"%d scenarios of equal weight. An expert's share is log-normal, with the skew as standard deviation of its logarithm; half of the variance is the same in all scenarios. Even: as many experts on each chip, in their order. Greedy: the heaviest expert first. Search: least mean, or least longest scenario, by sums of kernels' times; not proven where its limit of work came first.",
		routedScenarios)
	d.Note(
		"Times are simulated: a chip's experts, scheduled together by %s, and all-to-alls there and back by their closed form, padded to the chip with most tokens. Bounds are of every plan that has each expert on one chip, whatever its kernels: weights and tokens across the DDR, products at the rate of the matrix units, experts whole.",
		recipes.Default)
	d.Table(times, plans)
	d.Curves("skew", "Mean time of experts over the bound, by the skew of their shares", panels...)
	d.Lead("skew", "Experts", fmt.Sprintf(
		"Experts placed in their order take %.2f times as long as those that search places, placed greedily %.2f times (geometric means).",
		math.Exp(gains[0]), math.Exp(gains[1])))
	return d.Report(harness.Data{Data: rows})
}
