package optimality

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// regret asks of each decision what the greedy choice loses, on networks and machines of several kinds.
type regret struct {
	machines, networks []string
	options            search.RegretOptions
}

// much is the loss above which a greedy choice is called wrong.
const much = 0.05

func fullRegret() regret {
	return regret{machines: []string{"stcp920", "a100", "tpu-v4i", "wormhole-n150"},
		networks: []string{"mamba-block", "gpt2-decode", "squeezenet", "resnet50", "bert-128", "mobilenetv2", "dlrm"},
		options:  search.RegretOptions{Chunk: 1, Evaluations: 64, Moves: 8}}
}

// Regret is the experiment.
func Regret() harness.Experiment { return fullRegret().experiment() }

func (x regret) experiment() harness.Experiment {
	return harness.Experiment{Name: "regret", Exact: true,
		Description: "is greedy right? what each greedy decision loses, all else best and all else greedy",
		Paper:       "none; tt-mlir's claim that greedy choices suffice, and XLA's contrary one on prefetches", Plan: x.plan,
		With: func(opt harness.Options) (*harness.Plan, error) {
			x := x
			if len(opt.Networks) > 0 {
				x.networks = opt.Networks
			}
			return x.plan()
		}}
}

// regretCell is a network on a machine.
type regretCell struct {
	search.Regretted
	Bound float64 `json:"certified_lower_bound_s"`
}

func (x regret) plan() (*harness.Plan, error) {
	pl := &harness.Plan{}
	x.networks = slices.Clone(x.networks)
	for i, name := range x.networks {
		for _, machine := range x.machines {
			spec := harness.Accelerator(machine)
			hash := harness.SpecHash(spec)
			net, err := network.Open(name, network.Options{DType: harness.Precision(spec)})
			if err != nil {
				return nil, err
			}
			in := ""
			if network.IsFile(name) {
				g, err := net.Graph(1)
				if err != nil {
					return nil, err
				}
				if in, err = harness.Hash(g); err != nil {
					return nil, err
				}
			}
			if j := slices.Index(x.networks[:i], net.Name); j >= 0 && machine == x.machines[0] {
				return nil, fmt.Errorf("networks %d and %d are both named %q, expected different names", j+1, i+1, net.Name)
			}
			x.networks[i] = net.Name
			pl.Cells = append(pl.Cells, harness.Cell{Key: net.Name + "-" + machine, Label: net.Name + " on " + machine,
				Inputs: map[string]any{"network": net.Name, "graph_sha256": in, "hardware_sha256": hash,
					"settings": []int{x.options.Evaluations, x.options.Moves}},
				Run: func(ctx context.Context) (any, error) { return x.measure(ctx, net, spec) }})
		}
	}
	pl.Report = harness.Of(x.report)
	return pl, nil
}

// measure is a cell: one element for each cluster.
func (x regret) measure(ctx context.Context, net network.Network, spec *hardware.Spec) (*regretCell, error) {
	machine, err := scheduler.LevelAuto.Machine(spec)
	if err != nil {
		return nil, err
	}
	batch := int64(spec.Clusters)
	b, err := bound.AnyForm(ctx, net, machine, batch)
	if err != nil {
		return nil, err
	}
	opt := x.options
	opt.Bound = b.Seconds
	found, err := search.Regrets(ctx, net, spec, batch, opt)
	if err != nil {
		return nil, err
	}
	if found.BestSeconds < b.Seconds {
		return nil, fmt.Errorf("a schedule takes %g s, the bound is %g s", found.BestSeconds, b.Seconds)
	}
	for _, r := range found.Regrets {
		if t := min(r.Greedy.BestSeconds, r.AllBest.BestSeconds); t < b.Seconds {
			return nil, fmt.Errorf("a schedule takes %g s, the bound is %g s", t, b.Seconds)
		}
	}
	return &regretCell{Regretted: *found, Bound: b.Seconds}, nil
}

// otherwise names the state of all other decisions.
type otherwise struct {
	name, title string
	of          func(search.Regret) search.Choice
}

var contexts = []otherwise{
	{"best", "all else as in the best schedule found", func(r search.Regret) search.Choice { return r.AllBest }},
	{"greedy", "all else greedy", func(r search.Regret) search.Choice { return r.Greedy }},
}

// losses of one decision.
type losses struct {
	all    []float64 // ascending; +Inf: the greedy choice does not fit
	proven int
}

func (l *losses) add(c search.Choice) {
	l.all = append(l.all, c.Loss())
	if c.Proven {
		l.proven++
	}
	slices.Sort(l.all)
}

func (l *losses) above() int {
	return len(slices.DeleteFunc(slices.Clone(l.all), func(x float64) bool { return x <= much }))
}

// median is the mean of the two in the middle of an even number.
func (l *losses) median() float64 { n := len(l.all); return (l.all[(n-1)/2] + l.all[n/2]) / 2 }
func (l *losses) worst() float64  { return l.all[len(l.all)-1] }

func percent(loss float64) string {
	if math.IsInf(loss, 1) {
		return "no fit"
	}
	return harness.Fixed(100*loss, 1)
}

// lossesOf gathers the losses of some decisions, or of all, on a machine; "": all.
func (x regret) lossesOf(cells []regretCell, machine string, of func(search.Regret) search.Choice,
	decisions ...string) *losses {
	var l losses
	for i, c := range cells {
		if m := x.machines[i%len(x.machines)]; machine != "" && m != machine {
			continue
		}
		for _, r := range c.Regrets {
			if len(decisions) == 0 || slices.Contains(decisions, r.Decision) {
				l.add(of(r))
			}
		}
	}
	return &l
}

func (x regret) report(cells []regretCell) (*harness.Report, error) {
	d := harness.NewDocument(x.experiment(), x.machines...)
	names := search.RegretDecisions()
	for _, c := range contexts {
		t := harness.Table{Name: c.name,
			Title:   "By how much the greedy choice takes longer than the best one known (%), " + c.title,
			Columns: harness.Columns("<Decision")}
		for _, m := range append(slices.Clone(x.machines), "all") {
			t.AddColumns(m)
		}
		t.AddColumns("Proven")
		for i := range len(names) + 1 {
			row, of := []string{"any"}, names
			if i < len(names) {
				row, of = []string{names[i]}, names[i:i+1]
			}
			var l *losses
			for _, m := range append(slices.Clone(x.machines), "") {
				l = x.lossesOf(cells, m, c.of, of...)
				row = append(row, fmt.Sprintf("%s, %s, %d/%d", percent(l.median()), percent(l.worst()), l.above(), len(l.all)))
			}
			t.Add(row, fmt.Sprintf("%d/%d", l.proven, len(l.all)))
		}
		t.Notes = []string{
			fmt.Sprintf(
				"Median, worst, and how many lose more than 5 %%, of %d networks, one element for each cluster. Proven: all choices were tried, or the best one meets the bound on all schedules; else it is the best found. \"no fit\": with the greedy choice there is no schedule.", len(x.networks))}
		d.Table(t)
	}
	d.Bars("regret", "What greedy decisions lose", x.panels(cells)...)
	x.claims(cells, d)
	return d.Report(struct {
		Cells []namedCell `json:"cells"`
	}{x.named(cells)})
}

type namedCell struct {
	Network string `json:"model"`
	Machine string `json:"hardware"`
	regretCell
}

func (x regret) named(cells []regretCell) (list []namedCell) {
	for i, c := range cells {
		list = append(list, namedCell{x.networks[i/len(x.machines)], x.machines[i%len(x.machines)], c})
	}
	return list
}

// floor is the loss (%) that smaller ones are drawn at.
const floor = 0.1

// panels show each loss, and the median as a bar, by decision and machine.
func (x regret) panels(cells []regretCell) (list []plots.Groups) {
	for _, c := range contexts {
		g := plots.Groups{Title: "What the greedy choice loses, " + c.title, YLabel: "Lost (%)", Log: true, Line: 100 * much,
			Categories: search.RegretDecisions()}
		for _, m := range x.machines {
			s, spread := plots.Series{Name: m}, [][]float64{}
			for _, name := range g.Categories {
				l := x.lossesOf(cells, m, c.of, name)
				points := harness.Each(l.all, func(v float64) float64 { return max(floor, 100*v) })
				spread = append(spread, points)
				s.Values = append(s.Values, max(floor, 100*l.median()))
			}
			g.Series, g.Spread = append(g.Series, s), append(g.Spread, spread)
		}
		list = append(list, g)
	}
	return list
}

// claims answers what two compilers say of greedy decisions. Nothing here was fitted to either.
func (x regret) claims(cells []regretCell, d *harness.Document) {
	say := func(l *losses) string {
		return fmt.Sprintf("%d of %d choices within 5 %% of the best known (%d proven), median %s %%, worst %s %%",
			len(l.all)-l.above(), len(l.all), l.proven, percent(l.median()), percent(l.worst()))
	}
	inBest, greedy := contexts[0].of, contexts[1].of
	const always = "always apparent from local information (50+ models)"
	for _, c := range [][2]string{{"Wormhole", "wormhole-n150"}, {"all machines", ""}} {
		l := x.lossesOf(cells, c[1], greedy, "bind", "placement")
		d.Claim("tt-mlir: the best layout, placement and spill, on "+c[0], always, say(l), harness.Agreement(l.above() == 0))
		if l.above() == 0 && l.proven < len(l.all) {
			d.Given() // a better choice may be unknown: nothing that comes out could be against it
		}
	}
	loads, besides := x.lossesOf(cells, "tpu-v4i", greedy, "prefetch"), x.lossesOf(cells, "tpu-v4i", inBest, "prefetch")
	d.Claim("XLA: greedy starts of prefetches, on TPU v4i", "can be far from the best",
		say(loads)+"; all else best: "+say(besides),
		harness.Agreement(loads.above()+besides.above() > 0))
	if any := x.lossesOf(cells, "", greedy); any.above() > 0 {
		d.Lead("regret", "Is greedy right?", fmt.Sprintf(
			"With all else greedy, %d of %d greedy choices are within 5 %% of the best one known; with all else best, %d of %d.",
			len(any.all)-any.above(), len(any.all), len(any.all)-x.lossesOf(cells, "", inBest).above(),
			len(any.all)))
	}
	d.Note(
		"tt-mlir: docs/src/specs/ttnn-optimizer.md of tenstorrent/tt-mlir, section 5.5, and issue 7460. XLA: issue 45289 of openxla/xla: a prefetch whose start is chosen by time alone can splinter the memory that later ones need.")
	d.Note(
		"Greedy choices are those of this project's strategies on its machine models, not these compilers'; what they say is taken as a prediction of what comes out here.")
	d.Note("The figure has a dot for each network and a bar at the median; losses below %g %% are drawn there.", floor)
	d.Note(
		"A prefetch here is weights that run ahead of launches, for a network as a whole; XLA chooses a start for each.")
}
