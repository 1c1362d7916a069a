package optimality

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

//go:embed machines/edge-mixed.yaml
var edgeMixed []byte

//go:embed machines/edge-pair.yaml
var edgePair []byte

// kinds asks what it loses to run each layer on the kind of core on which it alone takes least, and what it gains to
// run kinds side by side.
type kinds struct {
	networks, beside, recipes []string // beside: on the machine with kinds side by side
}

// kindStrategies names the compared strategies of the stage kinds, greedy first.
var kindStrategies = []string{"greedy", "search"}

func fullKinds() kinds {
	return kinds{networks: []string{"squeezenet", "mobilenetv2", "resnet50", "vgg16", "densenet121", "bert-128", "vit-b16",
		"mamba-block"}, beside: []string{"inception-v1", "inception-v3", "nasnet-mobile", "squeezenet", "resnet50", "vgg16"},
		recipes: []string{"cross-layer", recipes.Default}}
}

// Kinds is the experiment.
func Kinds() harness.Experiment { return fullKinds().experiment() }

func (x kinds) experiment() harness.Experiment {
	return harness.Experiment{Name: "kinds", Exact: true,
		Description: "which kind of core runs a layer: greedily and by exact choice, one behind the other and side by side",
		Paper:       "none; an example of a machine with cores of several kinds", Plan: x.plan}
}

// kindsCell is a network by a recipe.
type kindsCell struct {
	Network string    `json:"model"`
	Recipe  string    `json:"variant"`
	Seconds []float64 `json:"latency_s"`                        // by kindStrategies
	Beside  []float64 `json:"side_by_side_latency_s,omitempty"` // likewise
	Bound   float64   `json:"certified_lower_bound_s"`
}

func (x kinds) plan() (*harness.Plan, error) {
	pl := &harness.Plan{Report: harness.Of(x.report)}
	for _, part := range []struct {
		file      string
		data      []byte
		networks  []string
		divisions []scheduler.Division
	}{{"edge-mixed.yaml", edgeMixed, x.networks, []scheduler.Division{scheduler.OverBatch}},
		{"edge-pair.yaml", edgePair, x.beside, []scheduler.Division{scheduler.OverBatch, scheduler.OverKinds}}} {
		spec, err := hardware.Parse(part.file, part.data)
		if err != nil {
			return nil, err
		}
		hash := harness.SpecHash(spec)
		for _, name := range part.networks {
			for _, recipe := range x.recipes {
				key := name + "-" + recipe
				if len(part.divisions) > 1 {
					key += "-" + spec.Name
				}
				pl.Cells = append(pl.Cells, harness.Cell{Key: key, Label: key,
					Inputs: []any{name, recipe, kindStrategies, part.divisions, hash},
					Run:    func(ctx context.Context) (any, error) { return measureKinds(ctx, name, recipe, spec, part.divisions) }})
			}
		}
	}
	return pl, nil
}

func measureKinds(ctx context.Context, name, recipe string, spec *hardware.Spec, divisions []scheduler.Division) (
	*kindsCell, error) {
	net, err := network.Open(name, network.Options{DType: harness.Precision(spec)})
	if err != nil {
		return nil, err
	}
	machine, err := scheduler.Machine(spec, scheduler.LevelAuto)
	if err != nil {
		return nil, err
	}
	b, err := bound.AnyForm(ctx, net, machine, 1)
	if err != nil {
		return nil, err
	}
	c := &kindsCell{Network: name, Recipe: recipe, Bound: b.Seconds}
	if len(divisions) > 1 {
		if c.Bound, err = bound.AnyDivision(ctx, net, machine, 1); err != nil {
			return nil, err
		}
	}
	for _, division := range divisions {
		for _, strategy := range kindStrategies {
			r, err := recipes.Lookup(recipe)
			if err != nil {
				return nil, err
			}
			opt := scheduler.Options{Figures: true, Clusters: division}
			if r, err = scheduler.Replace(r, opt, scheduler.Pick{Stage: "kinds", Strategy: strategy}); err != nil {
				return nil, err
			}
			found, err := scheduler.Run(ctx, net, spec, 1, r, opt)
			if err != nil {
				return nil, err
			}
			seconds := found.LatencySeconds()
			if seconds < c.Bound {
				return nil, fmt.Errorf("%s: a schedule takes %g s, the bound is %g s", strategy, seconds, c.Bound)
			}
			if division == scheduler.OverKinds {
				c.Beside = append(c.Beside, seconds)
			} else {
				c.Seconds = append(c.Seconds, seconds)
			}
		}
	}
	return c, nil
}

func (x kinds) report(cells []kindsCell) (*harness.Report, error) {
	d := harness.NewDocument(x.experiment())
	t := harness.Table{Title: "Which kind of core runs a layer: latency of one element, ms", Name: "kinds",
		Columns: harness.Columns("<Network", "<Variant", "Greedy", "Exact", "Greedy over exact", "At least")}
	side := harness.Table{Title: "Two kinds of core one behind the other and side by side: latency of one element, ms",
		Name: "side-by-side", Columns: harness.Columns("<Network", "<Variant", "Greedy", "Exact",
			"Side by side, greedy", "Side by side, exact", "Gain", "At least")}
	means, most, gains, faster := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]int{}
	for _, c := range cells {
		if len(c.Beside) > 0 {
			gain := slices.Min(c.Seconds) / slices.Min(c.Beside)
			if gains[c.Recipe] += math.Log(gain) / float64(len(x.beside)); gain > 1 {
				faster[c.Recipe]++
			}
			row := []string{c.Network, c.Recipe}
			for _, s := range slices.Concat(c.Seconds, c.Beside) {
				row = append(row, fmt.Sprintf("%.4g", s*1e3))
			}
			side.Add(row, fmt.Sprintf("%.3f", gain), fmt.Sprintf("%.4g", c.Bound*1e3))
			continue
		}
		ratio := c.Seconds[0] / c.Seconds[1]
		means[c.Recipe] += math.Log(ratio) / float64(len(x.networks))
		most[c.Recipe] = max(most[c.Recipe], ratio)
		t.Add(c.Network, c.Recipe, fmt.Sprintf("%.4g", c.Seconds[0]*1e3), fmt.Sprintf("%.4g", c.Seconds[1]*1e3),
			fmt.Sprintf("%.3f", ratio), fmt.Sprintf("%.4g", c.Bound*1e3))
	}
	for _, r := range x.recipes {
		d.Note("%s: greedy takes %.3f times as long as the exact choice (geometric mean), at most %.3f times.", r,
			math.Exp(means[r]), most[r])
		d.Note("%s: side by side is %.3f times as fast as one behind the other (geometric mean), and faster on %d of %d.", r,
			math.Exp(gains[r]), faster[r], len(x.beside))
	}
	d.Note(
		"Greedily, each layer runs on the kind on which it alone takes least. Exact is the least sum of layers and of moves between kinds by their formulas; the simulator judges both, and a ratio below 1 says that formulas misled. All else is greedy. The machine is an example with two cores of big arrays, eight of small ones and two for vectors.")
	d.Note(
		"Side by side, each kind is a cluster of its own, and exact is the least makespan by the same formulas. The machine of this table has two cores of big arrays and six of small ones; the bound is that on any division. A gain is the better of both strategies against the better of both.")
	d.Table(t)
	d.Table(side)
	return d.Report(harness.Data{Data: cells})
}
