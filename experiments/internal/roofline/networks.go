package roofline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// recipes are compared on networks of today, the project's own first.
var recipes = []string{"tiled", "cross-layer", "tvm"}

// The search that is compared beside them goes on from the fastest of their schedules. It simulates as many as have so
// many commands for a cluster together, within limits; of larger schedules, in which it would see too few, there is
// none.
const (
	searched         = "best"
	searchedCommands = 2_000_000
	mostEvaluations  = 120
	leastEvaluations = 24
)

// current is the experiment: networks of today on machines.
type current struct {
	machines, networks []string
	greedy             bool // no search
}

// columns are the recipes and the search.
func (c current) columns() []string {
	if c.greedy {
		return recipes
	}
	return append(slices.Clone(recipes), searched)
}

func (c current) quick() current {
	c.greedy = true
	c.networks = slices.DeleteFunc(slices.Clone(c.networks), func(n string) bool { return n == "llama2-7b-prefill" })
	return c
}

// short has three machines.
func (c current) short() current {
	c.machines = []string{"a100", "stcp920", "tpu-v4i"}
	return c.quick()
}

// Networks is the experiment on networks of today.
func Networks() harness.Experiment {
	all := current{machines: []string{"a100", "ascend910", "goya", "ipu", "stcp920", "tpu-v4i", "v100"},
		networks: []string{"gpt2-prefill", "gpt2-decode", "llama2-7b-prefill", "mamba-130m", "sd-unet", "vit-b16", "swin-t",
			"resnet50"}}
	return harness.Experiment{Name: "networks-now",
		Description: "decoders, diffusion and vision: the project's own recipe, GraphTurbo, TVM and a short search over the bound, and what limits",
		Paper:       "none; networks of today, on machines of six vendors",
		Plan:        func() (*harness.Plan, error) { return all.plan() },
		Quick:       func() (*harness.Plan, error) { return all.short().plan() },
		Heuristic:   func() (*harness.Plan, error) { return all.quick().plan() }}
}

// networkCell is a network on a machine. Its bound is the lesser of those of the network and of the one with attention
// as an operator, of which tiled makes a schedule.
type networkCell struct {
	Batch   int64              `json:"batch"`
	Bound   float64            `json:"certified_lower_bound_s"`
	Term    string             `json:"term"`
	Limited string             `json:"limited_by"` // tiled
	Seconds map[string]float64 `json:"seconds"`    // by recipe; none: it can't run
	Errors  map[string]string  `json:"errors,omitempty"`
	// Evaluations are those of the search; 0: there was none.
	Evaluations int `json:"evaluations"`
}

func (c current) plan() (*harness.Plan, error) {
	pl := &harness.Plan{Report: harness.Of(c.report)}
	most := [...]int{searchedCommands, mostEvaluations, leastEvaluations}
	if c.greedy {
		most = [...]int{0, 0, 0}
	}
	for _, machine := range c.machines {
		spec, hash := harness.Machine(machine)
		for _, name := range c.networks {
			net, err := network.Open(name, network.Options{DType: harness.Precision(spec)})
			if err != nil {
				return nil, err
			}
			picks := harness.Each(recipes, func(r string) scheduler.Recipe { return harness.Recipe(r) })
			pl.Cells = append(pl.Cells, harness.Cell{Key: name + "-" + machine, Label: name + " on " + machine,
				Inputs: map[string]any{"network": name, "hardware_sha256": hash, "variants": picks, "searched": most},
				Run:    func(ctx context.Context) (any, error) { return measureNetwork(ctx, net, spec, picks, c.greedy) }})
		}
	}
	return pl, nil
}

// measureNetwork is a cell: one element for each cluster.
func measureNetwork(ctx context.Context, net network.Network, spec *hardware.Spec,
	picks []scheduler.Recipe, greedy bool) (*networkCell, error) {
	machine, err := scheduler.LevelAuto.Machine(spec)
	if err != nil {
		return nil, err
	}
	out := &networkCell{Batch: int64(machine.Clusters), Seconds: map[string]float64{}, Errors: map[string]string{}}
	given, fused, err := certificate.Bounds(ctx, net, machine, out.Batch)
	if err != nil {
		return nil, err
	}
	// The bound is that of all schedules here.
	hold := func(name string, r *scheduler.Result) error {
		out.Seconds[name] = harness.Round(r.LatencySeconds())
		b, _, err := certificate.BoundOf(ctx, net, r, given, fused)
		if err != nil {
			return err
		}
		if x := harness.Round(b.Seconds); out.Bound == 0 || x < out.Bound {
			out.Bound, out.Term = x, b.Term
		}
		return b.Check(r.LatencySeconds())
	}
	var fastest *scheduler.Result
	for _, r := range picks {
		made, err := scheduler.Run(ctx, net, spec, out.Batch, r, scheduler.Options{Chunk: 1})
		switch {
		case harness.DoesNotFit(err):
			out.Errors[r.Name] = err.Error()
		case err != nil:
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		default:
			if err := hold(r.Name, made); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			if r.Name == picks[0].Name {
				out.Limited = made.LimitText()
			}
			if fastest == nil || made.Sim.TotalPs < fastest.Sim.TotalPs {
				fastest = made
			}
		}
	}
	if fastest == nil {
		out.Bound, out.Term = harness.Round(given.Seconds), given.Term
		return out, nil
	}
	if greedy {
		return out, nil
	}
	commands := len(fastest.Program.Commands) / machine.Clusters
	if out.Evaluations = min(mostEvaluations, searchedCommands/max(1, commands)); out.Evaluations < leastEvaluations {
		out.Evaluations = 0
		return out, nil
	}
	opt := search.BestOptions{Start: fastest, Recipes: []scheduler.Recipe{}, Evaluations: out.Evaluations}
	opt.Chunk = 1
	found, err := search.Best(ctx, net, spec, out.Batch, opt)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("%s: %w", searched, err)
	}
	out.Evaluations = found.Evaluations
	if err := hold(searched, found.Result); err != nil {
		return nil, fmt.Errorf("%s: %w", searched, err)
	}
	return out, nil
}

func (c current) report(cells []networkCell) (*harness.Report, error) {
	d := harness.NewDocument(Networks(), c.machines...)
	table := harness.Table{Name: "networks-now", Title: "Networks of today: time over the bound",
		Columns: harness.Columns("<Accelerator", "<Network", "Batch", "ms|bound", "ms|"+recipes[0])}
	for _, r := range c.columns() {
		table.AddColumns("over the bound|" + r)
	}
	table.AddColumns("<Bound by", "<"+recipes[0]+" limited by")
	means := harness.Table{Name: "means", Title: "Geometric means over the networks",
		Columns: harness.Columns("<Accelerator")}
	for _, r := range c.columns() {
		means.AddColumns("over the bound|" + r)
	}
	chart := plots.Groups{Title: "Networks of today", YLabel: "Time over the bound", Log: true, Line: 1,
		Categories: c.machines}
	values := map[string][]float64{}
	type answer struct {
		Accelerator string `json:"accelerator"`
		Network     string `json:"network"`
		networkCell
	}
	var list []answer
	for m, machine := range c.machines {
		over := map[string]ratios{}
		for k, name := range c.networks {
			x := cells[m*len(c.networks)+k]
			list = append(list, answer{machine, name, x})
			row := []string{machine, name, fmt.Sprint(x.Batch), harness.Significant(x.Bound * 1e3), "–"}
			if s := x.Seconds[recipes[0]]; s > 0 {
				row[4] = harness.Significant(s * 1e3)
			}
			for _, r := range c.columns() {
				s := x.Seconds[r]
				if s == 0 {
					row = append(row, "–")
					continue
				}
				row = append(row, harness.Fixed(s/x.Bound, 2))
				all := over[r]
				all.add(s, x.Bound)
				over[r] = all
			}
			table.Add(row, x.Term, x.Limited)
		}
		row := []string{machine}
		for _, r := range c.columns() {
			row = append(row, over[r].text()[0])
			values[r] = append(values[r], over[r].mean())
		}
		means.Add(row)
	}
	for _, r := range c.columns() {
		chart.Series = append(chart.Series, plots.Series{Name: r, Values: values[r]})
	}
	means.Notes = []string{
		"Each recipe over the networks that it can run. A dash: a layer of the network does not fit the machine."}
	if !c.greedy {
		means.Notes = append(means.Notes,
			"best goes on from the fastest of the others; of large networks there is no search, and no value in its mean.")
	}
	d.Table(means)
	d.Bars("networks-now", "Time over the bound by machine", chart)
	d.Table(table)
	return d.Report(struct {
		Results []answer `json:"results"`
	}{list})
}

// mean is the geometric mean, 0 of nothing.
func (r ratios) mean() float64 {
	if len(r) == 0 {
		return 0
	}
	logs := 0.0
	for _, x := range r {
		logs += math.Log(x)
	}
	return math.Exp(logs / float64(len(r)))
}
