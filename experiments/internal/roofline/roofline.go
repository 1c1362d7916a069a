package roofline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// variant is the recipe whose kernels are simulated.
const variant = "tiled-llb"

// brief is the time below which launches and latencies decide.
const brief = 10e-6

// study is the experiment: kernels on machines.
type study struct {
	machines []string
	families func() ([]family, error)
	leaves   int64 // of the exact search for each kernel; 0: none
	attended []zoo.Attention
}

func full() study {
	return study{machines: []string{"a100", "ascend910", "goya", "ipu", "stcp920", "tpu-v4i", "v100"}, leaves: 5000,
		attended: attentions(), families: func() ([]family, error) {
			list := []family{products()}
			for _, n := range []struct {
				name  string
				batch int64
			}{{"resnet50", 16}, {"mobilenetv2", 16}, {"sd-unet", 4}} {
				f, err := convolutions(n.name, n.batch)
				if err != nil {
					return nil, err
				}
				list = append(list, f)
			}
			return list, nil
		}}
}

// short searches a tenth of the leaves.
func short() study {
	s := full()
	s.leaves /= 10
	return s
}

// quick is full without the exact search.
func quick() study {
	s := full()
	s.leaves = 0
	return s
}

// Experiment is the experiment.
func Experiment() harness.Experiment {
	return harness.Experiment{Name: "kernels",
		Description: "products, convolutions and attention alone: the rule for tiles, the best tiling, the simulated time, the bound",
		Paper:       "none; the kernels of today's networks, on machines of six vendors",
		Plan:        func() (*harness.Plan, error) { return full().plan() },
		Quick:       func() (*harness.Plan, error) { return short().plan() },
		Heuristic:   func() (*harness.Plan, error) { return quick().plan() }}
}

// point is a kernel on a machine. Times have the launch.
type point struct {
	kernel
	MACs float64 `json:"macs"`
	// Intensity is multiply-accumulates for each byte that must cross the DDR's bus.
	Intensity float64 `json:"macs_per_byte"`
	Rule      float64 `json:"rule_s,omitempty"` // by the closed form; 0: no tile fits
	Limit     string  `json:"limit,omitempty"`
	// Exact is the best tiling's time and Floor what none of the space is below, if they were searched.
	Exact     float64 `json:"exact_s,omitempty"`
	Floor     float64 `json:"exact_bound_s,omitempty"`
	Proven    bool    `json:"proven,omitempty"`
	Simulated float64 `json:"simulated_s,omitempty"` // 0: it can't run
	Error     string  `json:"error,omitempty"`
	Bound     float64 `json:"certified_lower_bound_s"`
}

// cell is a family on a machine.
type cell struct {
	Ridge  float64 `json:"ridge_macs_per_byte"`
	Peak   float64 `json:"peak_macs_per_second"`
	Points []point `json:"points"`
}

func (s study) plan() (*harness.Plan, error) {
	families, err := s.families()
	if err != nil {
		return nil, err
	}
	recipe := harness.Recipe(variant)
	pl := &harness.Plan{}
	for _, name := range s.machines {
		spec, hash := harness.Machine(name)
		for _, f := range families {
			pl.Cells = append(pl.Cells, harness.Cell{Key: f.Name + "-" + name, Label: f.Name + " on " + name,
				Inputs: map[string]any{"kernels": f.Kernels, "hardware_sha256": hash, "variant": recipe, "leaves": s.leaves},
				Run:    func(ctx context.Context) (any, error) { return s.measure(ctx, spec, recipe, f) }})
		}
	}
	for _, name := range s.machines {
		spec, hash := harness.Machine(name)
		pl.Cells = append(pl.Cells, harness.Cell{Key: "attention-" + name, Label: "attention on " + name,
			Inputs: map[string]any{"attentions": s.attended, "hardware_sha256": hash, "variant": recipe},
			Run:    func(ctx context.Context) (any, error) { return measureAttentions(ctx, spec, recipe, s.attended) }})
	}
	pl.Report = func(results []json.RawMessage) (*harness.Report, error) {
		alone := len(s.machines) * len(families)
		cells, err := harness.Decode[cell](results[:alone])
		if err != nil {
			return nil, err
		}
		attentions, err := harness.Decode[[]attended](results[alone:])
		if err != nil {
			return nil, err
		}
		return s.report(families, cells, attentions)
	}
	return pl, nil
}

// measure is a cell.
func (s study) measure(ctx context.Context, spec *hardware.Spec, recipe scheduler.Recipe, f family) (*cell, error) {
	machine, err := scheduler.LevelAuto.Machine(spec)
	if err != nil {
		return nil, err
	}
	dt := harness.Precision(spec)
	c, err := cost.New(machine)
	if err != nil {
		return nil, err
	}
	peak := c.PeakMACsPerSecond(dt)
	out := &cell{Peak: peak, Ridge: harness.Round(peak / spec.DDR.BandwidthBytesPerSecond)}
	for _, k := range f.Kernels {
		macs, bytes := k.work(machine, dt)
		p := point{kernel: k, MACs: macs, Intensity: harness.Round(macs / bytes)}
		problem, err := k.problem(machine, dt)
		if err != nil {
			return nil, err
		}
		if b, err := tiling.Rule(problem); err == nil {
			x, limit := problem.Time(&b)
			p.Rule, p.Limit = harness.Round(x+machine.LaunchSeconds), limit.String()
			if s.leaves > 0 {
				best, err := tiling.Exact(ctx, problem, solve.Options[*tiling.Blocks]{WorkLimit: s.leaves, Start: &b})
				if err != nil {
					return nil, err
				}
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				p.Exact = harness.Round(best.Objective + machine.LaunchSeconds)
				p.Floor = harness.Round(best.Bound + machine.LaunchSeconds)
				p.Proven = best.Status == milp.Optimal
			}
		}
		net := k.network(dt)
		opt := scheduler.Options{Chunk: slices.Max(schedule.Shares(k.Batch, machine.Clusters))}
		made, err := scheduler.Run(ctx, net, spec, k.Batch, recipe, opt)
		switch {
		case harness.DoesNotFit(err):
			p.Error = err.Error()
		case err != nil:
			return nil, fmt.Errorf("%s on %s: %w", k.Name, spec.Name, err)
		default:
			p.Simulated = harness.Round(made.LatencySeconds())
		}
		b, err := bound.Cold(ctx, net, machine, k.Batch)
		if err != nil {
			return nil, err
		}
		p.Bound = harness.Round(b.Seconds)
		out.Points = append(out.Points, p)
	}
	return out, nil
}

// ratios are quotients of times.
type ratios []float64

func (r *ratios) add(a, b float64) {
	if a > 0 && b > 0 {
		*r = append(*r, a/b)
	}
}

// text is the geometric mean and the largest.
func (r ratios) text() []string {
	if len(r) == 0 {
		return []string{"–", "–"}
	}
	return []string{harness.Fixed(stat.GeometricMean(r, nil), 3), harness.Fixed(slices.Max(r), 2)}
}

func (s study) report(families []family, cells []cell, attended [][]attended) (*harness.Report, error) {
	d := harness.NewDocument(Experiment(), s.machines...)
	overBound, long := variant+" over bound", "of 10 us and more"
	summary := harness.Table{Name: "kernels", Title: "Kernels alone: geometric mean and worst", Columns: harness.Columns("<Accelerator",
		"<Kernels", "n", "rule over bound|mean|worst", "rule over best|mean|worst", "proven", overBound+"|mean",
		overBound+"|worst", long+"|rule, worst", long+"|"+variant+", worst")}
	all := harness.Table{Name: "all", Title: "All kernels", Columns: harness.Columns("<Accelerator", "<Kernels",
		"<Kernel", "MAC/B", "us|rule|best", "us|"+variant, "us|bound", "<limit")}
	byRule := plots.Roofline{Title: "Tiles by rule, closed form"}
	simulated := plots.Roofline{Title: variant + ", simulated"}
	for _, r := range []*plots.Roofline{&byRule, &simulated} {
		r.XLabel, r.YLabel = "Arithmetic intensity over that of the ridge", "Share of the peak"
	}
	micro := func(x float64) string {
		if x == 0 {
			return "–"
		}
		return harness.Significant(x * 1e6)
	}
	type answer struct {
		Accelerator string `json:"accelerator"`
		Kernels     string `json:"kernels"`
		cell
	}
	var list []answer
	for m, name := range s.machines {
		var rule, sim plots.Cloud
		rule.Name, sim.Name = name, name
		for i, f := range families {
			c := cells[m*len(families)+i]
			list = append(list, answer{name, f.Name, c})
			var overBound, overBest, simOver, longRule, longSim ratios
			proven := 0
			for _, p := range c.Points {
				overBound.add(p.Rule, p.Bound)
				overBest.add(p.Rule, p.Exact)
				simOver.add(p.Simulated, p.Bound)
				if p.Bound >= brief {
					longRule.add(p.Rule, p.Bound)
					longSim.add(p.Simulated, p.Bound)
				}
				if p.Proven {
					proven++
				}
				rate := func(seconds float64) float64 {
					if seconds == 0 {
						return 0
					}
					return p.MACs / seconds / c.Peak
				}
				rule.X, rule.Y = append(rule.X, p.Intensity/c.Ridge), append(rule.Y, rate(p.Rule))
				sim.X, sim.Y = append(sim.X, p.Intensity/c.Ridge), append(sim.Y, rate(p.Simulated))
				all.Add(name, f.Name, p.Name, p.Intensity, micro(p.Rule), micro(p.Exact), micro(p.Simulated),
					micro(p.Bound), p.Limit)
			}
			share := "–"
			if s.leaves > 0 {
				share = fmt.Sprintf("%d", proven)
			}
			summary.Add(name, f.Name, len(c.Points), overBound.text(), overBest.text(), share, simOver.text(),
				longRule.text()[1:], longSim.text()[1:])
		}
		byRule.Clouds, simulated.Clouds = append(byRule.Clouds, rule), append(simulated.Clouds, sim)
	}
	summary.Notes = []string{"Rule: the tiles of the rule by its closed form, with the launch. " +
		fmt.Sprintf("Best: the least over the rule's space by branch and bound, of at most %d leaves; ", s.leaves) +
		"proven says for how many that is the least. Bound: what no schedule is below (dsasched bound). " +
		"Depthwise convolutions are no products and are left out."}
	d.Table(summary)
	fig, err := plots.Rooflines(byRule, simulated)
	d.Figure("roofline", "Arithmetic intensity against the reached rate, a point for each kernel", fig, err)
	over, each := attentionTables(s.machines, attended)
	d.Table(over, all, each)
	type attentions struct {
		Accelerator string `json:"accelerator"`
		Attentions  any    `json:"attentions"`
	}
	var scores []attentions
	for m, name := range s.machines {
		scores = append(scores, attentions{name, attended[m]})
	}
	return d.Report(struct {
		Results   []answer     `json:"results"`
		Attention []attentions `json:"attention"`
	}{list, scores})
}
