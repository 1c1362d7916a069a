package beside

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// systems is the experiment: machines, the first of which is the paper's, by configurations by recipes.
type systems struct {
	machines       []string
	configurations []literature.Configuration
	// recipes of the first machine and of the others; few is whether those stand for a
	// configuration that is not among the searched.
	first, others []scheduler.Recipe
	few           bool
	// searched are the labels of the configurations for which exact and searched recipes, and
	// the search for the best schedule, are run; evaluations is the latter's budget, 0: none.
	searched    []string
	evaluations int
}

func full() systems {
	plain := slices.Concat(recipes.Table(), recipes.Baselines(), []scheduler.Recipe{recipes.ConvFusion()})
	return systems{machines: []string{"stcp920", "ascend910", "goya"}, configurations: literature.Configurations(),
		first: plain, others: plain, searched: []string{"A", "B", "G"}, evaluations: 100}
}

// short has two machines, and exact and searched recipes of one configuration.
func short() systems {
	s := full()
	s.machines, s.searched = s.machines[:2], s.searched[1:2]
	return s
}

// quick has what other experiments compute, too, and two recipes on the other machines.
func quick() systems {
	s := full()
	s.few, s.evaluations = true, 0
	named := func(names ...string) []scheduler.Recipe {
		return slices.DeleteFunc(slices.Clone(s.first),
			func(r scheduler.Recipe) bool { return !slices.Contains(names, r.Name) })
	}
	s.first, s.others = named("tvm", "llb", "l1", "ordering", "cross-layer", "astitch"), named("tvm", "cross-layer")
	return s
}

// Experiment is the experiment.
func Experiment() harness.Experiment {
	return harness.Experiment{Name: "systems", Also: []string{"benchmark-tables"},
		Description: "all systems and recipes side by side: throughput, energy, kernels, bytes, gap to the bound",
		Paper:       "none; the ten configurations, on machines of three vendors",
		Plan:        func() (*harness.Plan, error) { return full().plan() },
		Quick:       func() (*harness.Plan, error) { return short().plan() },
		Heuristic:   func() (*harness.Plan, error) { return quick().plan() }}
}

// place is a network on a machine.
type place struct {
	configuration literature.Configuration
	spec          *hardware.Spec
	net           network.Network
	first         bool // machine
	searched      bool
}

// atATime is the number of batch elements a cluster has at a time: the chip as many as the paper's
// STCP920, with its 4 clusters.
func (p *place) atATime(r scheduler.Recipe) int64 {
	share := schedule.Shares(p.configuration.BatchSize, p.clusters())[0]
	return min(share, max(1, 4*p.configuration.PaperChunk(r)/int64(p.clusters())))
}

func (p *place) clusters() int {
	if machine, err := scheduler.LevelAuto.Machine(p.spec); err == nil {
		return machine.Clusters
	}
	return p.spec.Clusters
}

// entry is the result of a recipe at a place.
type entry struct {
	Row   *harness.Row `json:"row"` // null: it fails
	Error string       `json:"error,omitempty"`
}

func (s systems) places() (list []place, err error) {
	for m, name := range s.machines {
		spec := harness.Accelerator(name)
		for _, c := range s.configurations {
			p := place{configuration: c, spec: spec, first: m == 0, searched: slices.Contains(s.searched, c.Label)}
			if s.few && !p.first && !p.searched {
				continue
			}
			if p.net, err = network.Open(c.Network, network.Options{DType: harness.Precision(spec)}); err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	return list, nil
}

// recipes are the recipes of a place.
func (s systems) recipes(p *place) []scheduler.Recipe {
	list := s.others
	if p.first {
		list = s.first
	}
	if p.first && p.searched && s.evaluations > 0 {
		list = slices.Concat(list, recipes.Exact(), recipes.Searched())
	}
	return list
}

func (s systems) plan() (*harness.Plan, error) {
	places, err := s.places()
	if err != nil {
		return nil, err
	}
	pl := &harness.Plan{}
	type column struct {
		place int
		kind  string // row, entry or bound
	}
	var columns []column
	add := func(at int, kind string, c harness.Cell) {
		pl.Cells, columns = append(pl.Cells, c), append(columns, column{at, kind})
	}
	for i := range places {
		p := &places[i]
		hash := harness.SpecHash(p.spec)
		own := func(kind, what string, chunk int64, recipe scheduler.Recipe, run func(ctx context.Context) (any, error)) {
			add(i, kind, harness.Cell{Key: fmt.Sprintf("%s-%s-%s", p.configuration.Network, p.spec.Name, what),
				Label: fmt.Sprintf("%s on %s, %s", p.configuration.Network, p.spec.Name, what), Run: run,
				Inputs: map[string]any{
					"model": p.configuration.Network, "hardware_sha256": hash,
					"batch": p.configuration.BatchSize, "chunk": chunk, "variant": recipe,
					"evaluations": s.evaluations,
				}})
		}
		for _, r := range s.recipes(p) {
			opt := scheduler.Options{Chunk: p.atATime(r)}
			if p.first && r.Name != "conv-fusion" {
				policy := harness.PaperChunks
				if slices.Contains([]string{"tvm", "astitch", "cross-layer"}, r.Name) {
					policy = harness.PaperInARow // as others have it
				}
				c := harness.RowCell(p.net, harness.Precision(p.spec), p.spec, p.configuration.BatchSize, r, opt, policy,
					p.configuration.Unit)
				add(i, "row", c)
				continue
			}
			own("entry", r.Name, opt.Chunk, r, func(ctx context.Context) (any, error) {
				made, err := scheduler.Run(ctx, p.net, p.spec, p.configuration.BatchSize, r, opt)
				return p.entry(made, r.Name, err)
			})
		}
		greedy := harness.Recipe("cross-layer")
		if s.evaluations > 0 && (p.first || p.searched) {
			own("entry", "best", p.atATime(greedy), greedy, func(ctx context.Context) (any, error) {
				opt := search.BestOptions{Recipes: []scheduler.Recipe{greedy}, Evaluations: s.evaluations}
				opt.Chunk = p.atATime(greedy)
				found, err := search.Best(ctx, p.net, p.spec, p.configuration.BatchSize, opt)
				if err != nil {
					return p.entry(nil, "best", err)
				}
				return p.entry(found.Result, "best", nil)
			})
		}
		own("bound", "bound", 0, greedy, func(ctx context.Context) (any, error) {
			machine := bail.Of(scheduler.LevelAuto.Machine(p.spec))
			return harness.Round(bail.Of(bound.Cold(ctx, p.net, machine, p.configuration.BatchSize)).Seconds), nil
		})
	}
	pl.Report = func(results []json.RawMessage) (*harness.Report, error) {
		rows, bounds := make([][]entry, len(places)), make([]float64, len(places))
		for i, c := range columns {
			var err error
			switch c.kind {
			case "bound":
				err = json.Unmarshal(results[i], &bounds[c.place])
			case "row":
				e := entry{Row: &harness.Row{}}
				err = json.Unmarshal(results[i], e.Row)
				rows[c.place] = append(rows[c.place], e)
			default:
				var e entry
				err = json.Unmarshal(results[i], &e)
				rows[c.place] = append(rows[c.place], e)
			}
			if err != nil {
				return nil, fmt.Errorf("a result can't be read: %w", err)
			}
		}
		return s.report(places, rows, bounds)
	}
	return pl, nil
}

// entry is a result under a name; that nothing fits is a result, too.
func (p *place) entry(r *scheduler.Result, name string, err error) (any, error) {
	if scheduler.TooLarge(err) {
		return entry{Error: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	row := harness.RowOf(r, "as many at a time", p.configuration.Unit)
	row.Variant = name
	return entry{Row: &row}, nil
}

func (s systems) report(places []place, rows [][]entry, bounds []float64) (*harness.Report, error) {
	d := harness.NewDocument(Experiment(), s.machines...)
	type answer struct {
		Model  string  `json:"model"`
		Batch  int64   `json:"batch"`
		Bound  float64 `json:"certified_lower_bound_s"`
		Energy bool    `json:"energy_known"`
		Rows   []entry `json:"rows"`
	}
	var list []answer
	for _, name := range s.machines {
		t := harness.Table{Name: name, Title: "All systems on " + name,
			Columns: harness.Columns("<", "<Network", "<System", "Batches per\ncluster", "Throughput\n(1/s)",
				"in a row\n(1/s)", "Energy\neach (mJ)", "Power\n(W)", "Kernels", "Moved (MB)|DDR|LLB|L1",
				"Over the\nbound (×)")}
		speed := plots.Groups{Title: "Throughput over TVM's on " + name, YLabel: "Speedup (×)", Line: 1, Log: true}
		energy := plots.Groups{Title: "Energy over TVM's on " + name, YLabel: "Energy (×)", Line: 1}
		var shown []string // systems of the figures: those that every network of the machine has
		for i := range places {
			if places[i].spec.Name != name {
				continue
			}
			var here []string
			for _, e := range rows[i] {
				if e.Row != nil {
					here = append(here, e.Row.Variant)
				}
			}
			if shown == nil {
				shown = here
			}
			shown = slices.DeleteFunc(shown, func(v string) bool { return !slices.Contains(here, v) })
		}
		// Speedups are over TVM; the steps between it and GraphTurbo are the ablation's.
		steps := recipes.Table()
		shown = slices.DeleteFunc(shown, func(v string) bool {
			return slices.ContainsFunc(steps[:len(steps)-1], func(r scheduler.Recipe) bool { return r.Name == v })
		})
		for _, v := range shown {
			speed.Series, energy.Series = append(speed.Series, plots.Series{Name: v}),
				append(energy.Series, plots.Series{Name: v})
		}
		known := false
		for i := range places {
			p := &places[i]
			if p.spec.Name != name {
				continue
			}
			c := p.configuration
			list = append(list, answer{c.Network, c.BatchSize, bounds[i], p.spec.Energy != nil, rows[i]})
			speed.Categories, energy.Categories = append(speed.Categories, c.Label), append(energy.Categories, c.Label)
			var tvm *harness.Row
			for _, e := range rows[i] {
				if e.Row == nil {
					t.Notes = append(t.Notes, c.Label+": "+e.Error)
					continue
				}
				r := e.Row
				if r.Variant == "tvm" {
					tvm = r
				}
				steady, watts := "–", "–"
				if r.SteadyThroughputPerSecond > 0 {
					steady = harness.Significant(r.SteadyThroughputPerSecond)
				}
				if r.AveragePowerWatts != nil {
					watts = harness.Fixed(*r.AveragePowerWatts, 0)
				}
				mb := func(n int64) string { return harness.Significant(float64(n) / 1e6) }
				t.Add(c.Label, c.Network, r.Variant, r.BatchesPerCluster, r.ThroughputPerSecond, steady,
					r.EnergyText(r.Batch), watts, r.KernelsDynamic, mb(r.MovedBytes.DDR), mb(r.MovedBytes.LLB),
					mb(r.MovedBytes.L1), harness.Fixed(r.LatencySeconds/bounds[i], 2))
				if k := slices.Index(shown, r.Variant); k >= 0 && tvm != nil {
					speed.Series[k].Values = append(speed.Series[k].Values, r.ThroughputPerSecond/tvm.ThroughputPerSecond)
					if r.EnergyJoules != nil {
						known = true
						energy.Series[k].Values = append(energy.Series[k].Values, *r.EnergyJoules / *tvm.EnergyJoules)
					}
				}
			}
		}
		t.Notes = append(t.Notes,
			"Over the bound: the latency over what no schedule of the network takes less than (dsasched bound). Kernels and bytes are of all clusters. –: not asked for, or the accelerator's description has no figures.")
		d.Table(t)
		d.Bars("throughput-"+name, "Throughput over TVM's on "+name, speed)
		if known {
			d.Bars("energy-"+name, "Energy of a batch over TVM's on "+name, energy)
		}
	}
	d.Note(
		"On the STCP920 clusters have the paper's batches at a time; on the others the chip has as many batch elements at a time as there. Goya computes in I8, the others in F16.")
	if s.evaluations > 0 {
		d.Note("best: %d schedules searched from cross-layer, at its batches. Exact and searched recipes stand for %v.",
			s.evaluations, s.searched)
	} else {
		d.Note(
			"Without exact methods: exact and searched recipes, the search for the best schedule and most recipes on other machines are left out.")
	}
	return d.Report(struct {
		Systems []answer `json:"systems"`
	}{list})
}
