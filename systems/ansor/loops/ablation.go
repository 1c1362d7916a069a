package loops

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/systems/ansor"

	"gonum.org/v1/gonum/floats"
)

// setting is a row of an ablation.
type setting struct {
	name      string
	published map[string]float64
	options   ansor.Options
}

// Published numbers of the paper's Fig. 7 (a convolution, over Ansor) and Fig. 10 (MobileNetV2, and it together with
// ResNet-50, over AutoTVM), read off. What the settings leave out is as §7.1 says it; the last one is ours.
var settings = []setting{
	{"Ansor", map[string]float64{"conv": 1, "mobilenetv2": 1.62, "mobilenetv2, resnet50": 1.30}, ansor.Options{}},
	{"no fine-tuning", map[string]float64{"conv": .74, "mobilenetv2": 1.27, "mobilenetv2, resnet50": .91},
		ansor.Options{Method: ansor.Random}},
	{"limited space", map[string]float64{"conv": .56, "mobilenetv2": .99, "mobilenetv2, resnet50": .84},
		ansor.Options{Limited: true}},
	{"no task scheduler", map[string]float64{"mobilenetv2": 1.57, "mobilenetv2, resnet50": 1.24},
		ansor.Options{Scheduler: "round-robin"}},
	{"hill climbing", nil, ansor.Options{Method: ansor.Climb}},
}

// The settings for a kernel, which needs no task scheduler; and those that the paper has.
var (
	kernelSettings   = slices.DeleteFunc(slices.Clone(settings), func(x setting) bool { return x.options.Scheduler != "" })
	operatorSettings = slices.DeleteFunc(slices.Clone(kernelSettings), func(x setting) bool { return x.published == nil })
)

// ablated holds the settings' results for a kernel, an operator of one shape or networks.
type ablated struct {
	On       string  `json:"on"`
	Operator bool    `json:"operator,omitempty"`
	Rule     float64 `json:"rule_s"`
	Bound    float64 `json:"bound_s"` // that no program is below
	// Found is by setting and seed, and of kernels after a quarter, a half and all of the trials;
	// of operators without the launch, of networks the geometric mean.
	Found map[string][][]float64 `json:"found_s"`
	// Curve, of kernels, is the speed of the best program over the rules', by setting and seed, after so many Trials.
	Curve  map[string][][]float64 `json:"curve,omitempty"`
	Trials []int                  `json:"trials,omitempty"`
}

// curvePoints is how many points a curve over the trials has, at most.
const curvePoints = 8

// reached is the objective after so many trials.
func reached(curve []ansor.Point, trials int) float64 {
	i, found := slices.BinarySearchFunc(curve, trials, func(p ansor.Point, n int) int { return p.Trials - n })
	if !found {
		i--
	}
	return curve[max(0, i)].Objective
}

// between are numbers of trials from the first to the last.
func between(first, last int) (list []int) {
	for k := range curvePoints {
		list = append(list, first+(last-first)*k/(curvePoints-1))
	}
	return slices.Compact(list)
}

const ablationBatch = 16 // programs of a round for a single kernel

// budgets are the trials after which searches of a kernel are compared.
func (s study) budgets() []int { return []int{s.conv / 4, s.conv / 2, s.conv} }

// judged is the first of seeds that nothing was developed with.
const judged = 1001

// memo holds what programs take, for searches that measure the same.
type memo map[string]int64

func (m memo) in(o ansor.Options) ansor.Options {
	o.Known = func(key, program string) (int64, bool) { ps, ok := m[key+program]; return ps, ok }
	o.Record = func(x ansor.Trial) error { m[x.Task.Key+x.ID] = x.Picoseconds; return nil }
	return o
}

// ablate searches kernels, each by itself, by settings; launch is left out of their times.
func (s study) ablate(ctx context.Context, on string, tasks []*ansor.Task, launch float64, seeds int,
	sets []setting) ablated {
	r := ablated{On: on, Found: map[string][][]float64{}, Curve: map[string][][]float64{}}
	for n := ablationBatch; n <= s.conv; n *= 2 {
		r.Trials = append(r.Trials, n)
	}
	for _, set := range sets {
		for range seeds {
			r.Found[set.name] = append(r.Found[set.name], make([]float64, len(s.budgets())))
		}
	}
	for _, t := range tasks {
		rule := bail.Of(t.Seconds(ctx, t.Rule))
		r.Rule, r.Bound = r.Rule+rule-launch, r.Bound+t.Floor-launch
		known := memo{}
		for _, set := range sets {
			for seed := range seeds {
				o := set.options
				o.Trials, o.Seed, o.Batch, o.Blind = s.conv, uint64(judged+seed), ablationBatch, true
				out := bail.Of(ansor.Tune(ctx, []*ansor.Task{t}, known.in(o)))
				best := out.Answers[0].Best
				for k, n := range s.budgets() {
					r.Found[set.name][seed][k] += best[min(n/ablationBatch, len(best)-1)] - launch
				}
				speeds := harness.Each(r.Trials, func(n int) float64 {
					return (rule - launch) / (best[min(n/ablationBatch, len(best)-1)] - launch)
				})
				r.Curve[set.name] = append(r.Curve[set.name], speeds)
			}
		}
	}
	return r
}

// ablateOperator searches the kernels of each shape of an operator.
func (s study) ablateOperator(ctx context.Context, c operatorClass, spec *hardware.Spec, seeds int) (list []ablated) {
	for _, shape := range c.shapes {
		kernels := tasks(ctx, []network.Network{c.network(shape)}, spec, operatorBatch, "ansor",
			operatorBatch/int64(spec.Clusters))
		r := s.ablate(ctx, c.name, kernels, spec.LaunchSeconds, seeds, operatorSettings)
		r.Operator = true
		list = append(list, r)
	}
	return list
}

// ablateNetworks searches all kernels of networks together, for the geometric mean of their speed-ups.
func (s study) ablateNetworks(ctx context.Context, on string, tasks []*ansor.Task) ablated {
	mean := func(of func(i int) float64) float64 {
		sums := make([]float64, len(tasks[0].Weights))
		for i, t := range tasks {
			for j, w := range t.Weights {
				sums[j] += float64(w) * of(i)
			}
		}
		return geomean(sums)
	}
	rules := harness.Each(tasks, func(t *ansor.Task) float64 { return bail.Of(t.Seconds(ctx, t.Rule)) })
	r := ablated{On: on, Found: map[string][][]float64{}}
	r.Rule, r.Bound = mean(func(i int) float64 { return rules[i] }), mean(func(i int) float64 { return tasks[i].Floor })
	known := memo{}
	for _, set := range settings {
		if set.published[on] == 0 {
			continue
		}
		for seed := range s.seeds {
			o := set.options
			o.Trials, o.Seed, o.Objective, o.Blind = s.trials*len(tasks), uint64(judged+seed), "f3", true
			out := bail.Of(ansor.Tune(ctx, tasks, known.in(o)))
			r.Found[set.name] = append(r.Found[set.name], []float64{mean(func(i int) float64 { return out.Answers[i].Seconds })})
		}
	}
	return r
}

func (s study) ablation() harness.Experiment {
	return experiment(s, "ansor-ablation", "what each part of the search is worth", "Fig. 7 and Fig. 10",
		func() (cells []harness.Cell) {
			add := func(on string, run func(ctx context.Context) []ablated) {
				cells = append(cells, s.cell(strings.NewReplacer(" ", "-", ",", "").Replace(on), nil,
					func(ctx context.Context) any { return run(ctx) }))
			}
			add("conv", func(ctx context.Context) []ablated { // the last one of ResNet-50, batch 16
				at := s
				at.chunk, at.conv = 4, s.whole
				kernels, last := at.tasks(ctx, "resnet50"), 0
				for i, t := range kernels {
					if len(t.Rule[0].Columns) > 0 && strings.Contains(t.Layer(0), "conv") {
						last = i
					}
				}
				return []ablated{at.ablate(ctx, "conv", kernels[last:last+1], 0, s.proofs, kernelSettings)}
			})
			for _, c := range operatorClasses[:s.classes] {
				add(c.name, func(ctx context.Context) []ablated {
					return s.ablateOperator(ctx, c, harness.Accelerator(s.hardware), 1)
				})
			}
			for i := range s.networks {
				names := s.networks[:i+1]
				on := strings.Join(names, ", ")
				add(on, func(ctx context.Context) []ablated {
					return []ablated{s.ablateNetworks(ctx, on, s.tasks(ctx, names...))}
				})
			}
			return cells
		}, s.reportAblation)
}

func (s study) reportAblation(d *harness.Document, results [][]ablated) {
	t := harness.Table{Title: "The search of networks without one of its parts", Name: "ablation",
		Columns: harness.Columns("<On", "<Search", "over rules, x", "at most, x", "of Ansor's", "published")}
	k := harness.Table{Title: "The search of a convolution without one of its parts: median of the seeds", Name: "kernels",
		Columns: harness.Columns("<Search")}
	o := harness.Table{Title: "Operators: time over the least that any search finds", Name: "operators",
		Columns: harness.Columns("<Operator", "shapes", "rules", "bound")}
	for _, n := range (study{conv: s.whole}).budgets() {
		k.AddColumns("us after trials|" + fmt.Sprint(n))
	}
	k.AddColumns("of Ansor's", "published")
	for _, set := range operatorSettings {
		o.AddColumns(fmt.Sprintf("after %d trials", s.conv) + "|" + set.name)
	}
	var convolutions []plots.Curves
	over := map[string][][]float64{} // logarithms by setting and budget, of each operator's shape
	for _, list := range results {
		if list[0].Operator {
			o.Add(operatorRow(list, over))
			continue
		}
		r, whole := list[0], 0.0
		c := plots.Curves{Title: r.On, XLabel: "Trials", YLabel: "Speed over the rules' (×)", LogX: true, LogY: true,
			Line: 1}
		for _, n := range r.Trials {
			c.X = append(c.X, float64(n))
		}
		for _, set := range settings {
			if r.Found[set.name] == nil {
				continue
			}
			line := plots.Series{Name: set.name}
			for n := range r.Trials {
				line.Values = append(line.Values, geomean(column(r.Curve[set.name], n)))
			}
			c.Series = append(c.Series, line)
			var row []string
			end, single := 0.0, len(r.Found[set.name][0]) > 1
			for n := range r.Found[set.name][0] {
				times := column(r.Found[set.name], n)
				if end = geomean(times); single {
					slices.Sort(times)
					end = times[len(times)/2]
				}
				row = append(row, micro(end))
			}
			if whole == 0 { // the first is the whole search
				whole = end
				d.Note("%s: by the rules %.4f ms, searched %.4f ms, and no program is below %.4f ms.", r.On, r.Rule*1e3,
					end*1e3, r.Bound*1e3)
			}
			published := "-"
			if p := set.published[r.On]; p > 0 {
				published = fmt.Sprintf("%.2f", p)
				what, x := set.name+" over fixed rules, "+r.On, r.Rule/end
				if single {
					what, x = "speed of "+set.name+" over Ansor's on a convolution", whole/end
				}
				if !single || set.name != settings[0].name { // else over itself
					d.Number(what, "x", p, x)
					d.Cause(causeDDR)
					if d.Lines[len(d.Lines)-1].Verdict() != harness.Holds {
						d.Why(
							"kernels wait for the DDR, which loops can't change: between the rules' programs and a bound on all there are %.0f %%", 100*(r.Rule/r.Bound-1))
					}
				}
			}
			if single {
				k.Add(set.name, row, ratio(whole/end), published)
			} else {
				t.Add(r.On, set.name, ratio(r.Rule/end), ratio(r.Rule/r.Bound), ratio(whole/end), published)
			}
		}
		if r.Curve != nil {
			convolutions = append(convolutions, c)
		}
	}
	for n, trials := range s.budgets() {
		d.Note("Operators after %d trials, time over the whole search's: %s.", trials, behind(over, n))
	}
	d.Note(
		"No search knows the rules' program. %d seeds of the convolution, the last of ResNet-50 at batch 16, and one of an operator, %d and %d trials (published: 1200 and 1000); %d of networks, %d trials a kernel (1000), for the geometric mean of speed-ups. The operators are those of Fig. 6 and 8 at batch %d, and products of one row; the launch is left out.", s.proofs, s.whole, s.conv, s.seeds, s.trials, operatorBatch)
	d.Table(k, o, t)
	d.Curves("convolution", "A convolution by trials, as Fig. 7", convolutions...)
}

// column is the time of each seed after budget n.
func column(found [][]float64, n int) (list []float64) {
	for _, x := range found {
		list = append(list, x[n])
	}
	return list
}

// operatorRow has the geometric means over an operator's shapes.
func operatorRow(shapes []ablated, over map[string][][]float64) []string {
	var rules, bounds []float64
	ends := map[string][]float64{}
	for _, r := range shapes {
		least := math.Inf(1)
		for _, found := range r.Found {
			least = min(least, slices.Min(slices.Concat(found...)))
		}
		rules, bounds = append(rules, r.Rule/least), append(bounds, r.Bound/least)
		for name, found := range r.Found {
			logs := make([]float64, len(found[0]))
			for n := range logs {
				logs[n] = math.Log(geomean(column(found, n)) / least)
			}
			over[name] = append(over[name], logs)
			ends[name] = append(ends[name], math.Exp(logs[len(logs)-1]))
		}
	}
	row := []string{shapes[0].On, fmt.Sprint(len(shapes)), ratio(geomean(rules)), ratio(geomean(bounds))}
	for _, set := range operatorSettings {
		row = append(row, ratio(geomean(ends[set.name])))
	}
	return row
}

// behind says how far the settings are behind the whole search, in the mean of all shapes with its standard error.
func behind(over map[string][][]float64, budget int) string {
	var words []string
	whole := column(over[operatorSettings[0].name], budget)
	for _, set := range operatorSettings[1:] {
		list := column(over[set.name], budget)
		floats.Sub(list, whole)
		floats.Scale(100, list)
		words = append(words, set.name+" "+meanText(list)+" %")
	}
	return strings.Join(words, ", ")
}
