package loops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/heuristics/ansor"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
	"github.com/dsasched/dsasched/scheduler/explain"
)

// grouped is a network by GraphTurbo, and with the loops and bindings inside its kernels
// searched.
type grouped struct {
	Greedy   harness.Row `json:"cross_layer"`
	Searched harness.Row `json:"searched"`
	Bindings int         `json:"bindings_changed"`
	// Groups has the parts of both critical paths, Kernels what was tuned.
	Groups  []explain.Change `json:"groups"`
	Kernels []tunedKernel    `json:"kernels"`
}

// tunedKernel is a kernel alone, under the bindings that the search has found.
type tunedKernel struct {
	Name  string  `json:"name"`
	Runs  int64   `json:"runs"` // of a cluster in a batch
	Rule  float64 `json:"rule_s"`
	Tuned float64 `json:"tuned_s"`
	Floor float64 `json:"bound_s"`
}

// configuration is a network as it is scheduled.
type configuration struct {
	network      string
	batch, chunk int64
}

// groups: where searched loops and bindings gain inside GraphTurbo's kernels.
func (s study) groups() harness.Experiment {
	return experiment(s, "ansor-groups", "what searched loops and bindings gain inside GraphTurbo's kernels, and where",
		"asks what no published system has", func() (cells []harness.Cell) {
			for _, x := range s.inside {
				cells = append(cells, s.cell(x.network, nil, func(ctx context.Context) (any, error) {
					net := harness.OpenNetwork(x.network)
					spec := harness.Accelerator(s.hardware)
					run := func(variant string, opt scheduler.Options) (harness.Row, *explain.Explainer, error) {
						recipe := harness.Recipe(variant)
						recipe.Fallback = nil
						made, err := scheduler.Run(ctx, net, spec, x.batch, recipe, opt)
						if err != nil {
							return harness.Row{}, nil, err
						}
						return harness.RowOf(made, harness.PaperChunks, ""), explain.New(made, opt), nil
					}
					opt := scheduler.Options{Chunk: x.chunk}
					var g grouped
					var before, after *explain.Explainer
					var err error
					if g.Greedy, before, err = run("cross-layer", opt); err != nil {
						return nil, err
					}
					recipe := harness.Recipe("graphturbo+ansor")
					tasks, from, err := answers.TuningTasks(ctx, []network.Network{net}, spec, x.batch, recipe, opt)
					if err != nil {
						return nil, err
					}
					opt.Tuned, err = answers.TuneTasks(ctx, tasks, from,
						answers.TuneSettings{Options: ansor.Options{Trials: s.grouped * len(tasks), Seed: 1}})
					if err != nil {
						return nil, err
					}
					g.Bindings = len(opt.Tuned.Bindings)
					for _, t := range opt.Tuned.Tasks {
						g.Kernels = append(g.Kernels, tunedKernel{t.Name, t.Weights[0], t.RuleSeconds, t.Seconds, t.FloorSecs})
					}
					if g.Searched, after, err = run("graphturbo+ansor", opt); err != nil {
						return nil, err
					}
					g.Groups = explain.Compare(before, after)
					return g, nil
				}))
			}
			return cells
		}, func(d *harness.Document, results []grouped) {
			t := harness.Table{Title: "Where the time of a batch goes", Name: "groups",
				Columns: harness.Columns("<Network", "<Variant",
					"Time (ms)|computing|waiting for moves|launching|idle|total", "gain, %")}
			k := harness.Table{Title: "Kernels that gain most, alone", Name: "kernels",
				Columns: harness.Columns("<Network", "<Kernel", "runs", "by rules, us", "searched, us", "bound, us",
					"gain of a batch, us")}
			p := harness.Table{Title: "Where it is gained: commands of each group on the critical paths", Name: "gains",
				Columns: harness.Columns("<Network", "<Group", "before, us", "after, us", "gain, us", "<of it")}
			for _, g := range results {
				rest := explain.Change{Group: "others"}
				for i, c := range g.Groups {
					if i >= 8 && i < len(g.Groups)-2 {
						rest.BeforeSeconds, rest.AfterSeconds = rest.BeforeSeconds+c.BeforeSeconds, rest.AfterSeconds+c.AfterSeconds
					} else {
						p.Add(gained(g.Greedy.Model, c))
					}
				}
				if rest.BeforeSeconds > 0 {
					p.Add(gained(g.Greedy.Model, rest))
				}
				for i, r := range []harness.Row{g.Greedy, g.Searched} {
					ms := func(s float64) string { return fmt.Sprintf("%.3f", 1e3*s) }
					gain := "-"
					if i > 0 {
						gain = fmt.Sprintf("%.2f", 100*(g.Greedy.LatencySeconds/r.LatencySeconds-1))
					}
					t.Add(r.Model, r.Variant, ms(r.Time.ComputeSeconds), ms(r.Time.MoveSeconds), ms(r.Time.LaunchSeconds),
						ms(r.Time.IdleSeconds), ms(r.LatencySeconds), gain)
				}
				won := func(x tunedKernel) float64 { return float64(x.Runs) * (x.Rule - x.Tuned) }
				slices.SortStableFunc(g.Kernels, func(a, b tunedKernel) int { return cmp.Compare(won(b), won(a)) })
				for _, x := range g.Kernels[:min(6, len(g.Kernels))] {
					k.Add(g.Greedy.Model, x.Name, x.Runs, micro(x.Rule), micro(x.Tuned), micro(x.Floor), micro(won(x)))
				}
				d.Note("%s, batch %d in chunks of %d: %d layers bound in another way, %d trials for each of %d kernels.",
					g.Greedy.Model, g.Greedy.Batch, g.Greedy.BatchesPerCluster, g.Bindings, s.grouped, len(g.Kernels))
			}
			d.Table(t, p)
			d.Note(
				"Each moment counts once, for the first of the columns that applies. Bindings are searched first, by the time of a chunk under the rules' loops; then the loops of each kernel alone under them, which the schedule takes where the chunk gets faster.")
			d.Table(k)
		})
}

// gained is a row of what a group gains, and of what most of it is.
func gained(network string, c explain.Change) []string {
	name := strings.TrimSpace(c.Group + " " + c.First)
	name = cmp.Or(name, "other clusters")
	var of []string
	for _, d := range c.By[:min(2, len(c.By))] {
		if d.BeforeSeconds != d.AfterSeconds {
			of = append(of, fmt.Sprintf("%s %+.2f", d.What, 1e6*(d.BeforeSeconds-d.AfterSeconds)))
		}
	}
	return []string{network, name, micro(c.BeforeSeconds), micro(c.AfterSeconds), micro(c.BeforeSeconds - c.AfterSeconds),
		strings.Join(of, ", ")}
}
