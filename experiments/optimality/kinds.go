package optimality

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/pipeline"
	"github.com/dsasched/dsasched/internal/search"
	"github.com/dsasched/dsasched/model/network"
)

//go:embed machines/edge-mixed.yaml
var edgeMixed []byte

// kinds asks what it loses to run each layer on the kind of core on which it alone takes least.
type kinds struct {
	networks, recipes []string
}

// kindStrategies names the compared strategies of the stage kinds, greedy first.
var kindStrategies = []string{"greedy", "search"}

func fullKinds() kinds {
	return kinds{networks: []string{"squeezenet", "mobilenetv2", "resnet50", "vgg16", "densenet121", "bert-128", "vit-b16",
		"mamba-block"}, recipes: []string{"cross-layer", pipeline.Default}}
}

// Kinds is the experiment.
func Kinds() harness.Experiment { return fullKinds().experiment() }

func (x kinds) experiment() harness.Experiment {
	return harness.Experiment{Name: "kinds", Exact: true,
		Description: "which kind of core runs a layer, on a machine of three kinds: greedily, by exact choice, and the bound",
		Paper:       "none; an example of a machine with cores of several kinds", Plan: x.plan}
}

// kindsCell is a network by a recipe.
type kindsCell struct {
	Network string    `json:"model"`
	Recipe  string    `json:"variant"`
	Seconds []float64 `json:"latency_s"` // by kindStrategies
	Bound   float64   `json:"certified_lower_bound_s"`
}

func (x kinds) plan() (*harness.Plan, error) {
	spec, err := hardware.Parse("edge-mixed.yaml", edgeMixed)
	if err != nil {
		return nil, err
	}
	hash := harness.SpecHash(spec)
	pl := &harness.Plan{Report: harness.Of(x.report)}
	for _, name := range x.networks {
		for _, recipe := range x.recipes {
			key := name + "-" + recipe
			pl.Cells = append(pl.Cells, harness.Cell{Key: key, Label: key, Inputs: []any{name, recipe, kindStrategies, hash},
				Run: func(ctx context.Context) (any, error) { return measureKinds(ctx, name, recipe, spec) }})
		}
	}
	return pl, nil
}

func measureKinds(ctx context.Context, name, recipe string, spec *hardware.Spec) (*kindsCell, error) {
	net, err := network.Open(name, network.Options{DType: harness.Precision(spec)})
	if err != nil {
		return nil, err
	}
	machine, err := pipeline.Machine(spec, pipeline.LevelAuto)
	if err != nil {
		return nil, err
	}
	b, err := bound.AnyForm(ctx, net, machine, 1)
	if err != nil {
		return nil, err
	}
	c := &kindsCell{Network: name, Recipe: recipe, Bound: b.Seconds}
	for _, strategy := range kindStrategies {
		r, err := pipeline.Lookup(recipe)
		if err != nil {
			return nil, err
		}
		opt := pipeline.Options{Figures: true}
		if r, err = pipeline.Replace(r, opt, pipeline.Pick{Stage: "kinds", Strategy: strategy}); err != nil {
			return nil, err
		}
		found, err := search.Run(ctx, net, spec, 1, r, opt)
		if err != nil {
			return nil, err
		}
		if found.LatencySeconds() < b.Seconds {
			return nil, fmt.Errorf("%s: a schedule takes %g s, the bound is %g s", strategy, found.LatencySeconds(), b.Seconds)
		}
		c.Seconds = append(c.Seconds, found.LatencySeconds())
	}
	return c, nil
}

func (x kinds) report(cells []kindsCell) (*harness.Report, error) {
	d := harness.NewDocument(x.experiment())
	t := harness.Table{Title: "Which kind of core runs a layer: latency of one element, ms", Name: "kinds",
		Columns: []harness.Column{{Name: "Network", Text: true}, {Name: "Variant", Text: true}, {Name: "Greedy"},
			{Name: "Exact"}, {Name: "Greedy over exact"}, {Name: "At least"}}}
	means, most := map[string]float64{}, map[string]float64{}
	for _, c := range cells {
		ratio := c.Seconds[0] / c.Seconds[1]
		means[c.Recipe] += math.Log(ratio) / float64(len(x.networks))
		most[c.Recipe] = max(most[c.Recipe], ratio)
		t.Rows = append(t.Rows, []string{c.Network, c.Recipe, fmt.Sprintf("%.4g", c.Seconds[0]*1e3),
			fmt.Sprintf("%.4g", c.Seconds[1]*1e3), fmt.Sprintf("%.3f", ratio), fmt.Sprintf("%.4g", c.Bound*1e3)})
	}
	for _, r := range x.recipes {
		d.Note("%s: greedy takes %.3f times as long as the exact choice (geometric mean), at most %.3f times.", r,
			math.Exp(means[r]), most[r])
	}
	d.Note(
		"Greedily, each layer runs on the kind on which it alone takes least. Exact is the least sum of layers and of moves between kinds by their formulas; the simulator judges both, and a ratio below 1 says that formulas misled. All else is greedy. The machine is an example with two cores of big arrays, eight of small ones and two for vectors.")
	d.Table(t)
	return d.Report(harness.Data{Data: cells})
}
