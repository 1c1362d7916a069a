package loops

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
	"github.com/dsasched/dsasched/systems/ansor/tuning"

	"gonum.org/v1/gonum/stat"
)

const paper = "Ansor (OSDI 2020)"

// What misses come from.
const (
	causeDDR = "kernels wait for the DDR whatever their loops: this machine cannot show what loops are worth on CPUs and GPUs, " +
		"and all settings end within half a percent"
	causeScale = "of which programs and in which unit the learned cost's errors are, is not said"
)

// study is the size of an experiment.
type study struct {
	hardware string
	networks []string
	chunk    int64
	trials   int // of each kernel of a network
	conv     int // trials of an operator
	whole    int // trials of the single convolution
	seeds    int
	programs int   // random ones of each kernel, for the learned cost
	optimum  []int // trials after which the best so far is compared with the best
	proofs   int   // seeds for that
	small    int   // kernels whose best program is proven
	large    int   // kernels of a network whose best program is bounded
	classes  int   // of operators, for the ablation
}

func full() study {
	return study{hardware: "stcp920", networks: []string{"mobilenetv2", "resnet50"}, chunk: 2, trials: 8, conv: 64,
		whole: 1200, seeds: 2, programs: 128, optimum: []int{16, 64, 256, 1000}, proofs: 5, small: 20, large: 4,
		classes: len(operatorClasses)}
}

// tasks are the kernels of networks by TVM's recipe.
func (s study) tasks(ctx context.Context, names ...string) []*ansor.Task {
	return s.kernels(ctx, "ansor", names...)
}

// kernels are the kernels of networks by a recipe, one chunk for each cluster.
func (s study) kernels(ctx context.Context, variant string, names ...string) []*ansor.Task {
	spec := harness.Accelerator(s.hardware)
	return tasks(ctx, harness.Each(names, harness.OpenNetwork), spec, s.chunk*int64(spec.Clusters), variant, s.chunk)
}

// tasks are the kernels of networks at a batch by a recipe.
func tasks(ctx context.Context, nets []network.Network, spec *hardware.Spec, batch int64, variant string,
	chunk int64) []*ansor.Task {
	list, _, err := tuning.Tasks(ctx, nets, spec, batch, harness.Recipe(variant), scheduler.Options{Chunk: chunk})
	bail.Check(err)
	return list
}

// cell is one with the study in its inputs.
func (s study) cell(key string, inputs any, run func(ctx context.Context) any) harness.Cell {
	_, hash := harness.Machine(s.hardware)
	return harness.Cell{Key: key, Label: key, Inputs: map[string]any{"hardware_sha256": hash,
		"study": fmt.Sprintf("%+v", s), "of": inputs}, Run: func(ctx context.Context) (any, error) {
		return run(ctx), nil
	}}
}

// experiment has cells of one kind of result.
func experiment[T any](s study, name, description, where string, cells func() []harness.Cell,
	report func(d *harness.Document, results []T)) harness.Experiment {
	e := harness.Experiment{Name: name, Description: description, Paper: paper + ", " + where}
	plain := e
	e.Plan = func() (*harness.Plan, error) {
		return &harness.Plan{Cells: cells(), Report: harness.Of(func(results []T) (*harness.Report, error) {
			d := harness.NewDocument(plain, s.hardware)
			report(d, results)
			d.Note(
				"Published numbers are of CPUs and GPUs and partly read off figures; ours are of a simulated accelerator with managed memories. Orders and ratios can be compared, times can't.")
			return d.Report(harness.Data{Data: results})
		})}, nil
	}
	return e
}

// Experiments lists those of the package.
func Experiments() []harness.Experiment { return full().experiments() }

func (s study) experiments() []harness.Experiment {
	return []harness.Experiment{s.ops(), s.ablation(), s.match(), s.model(), s.optimal()}
}

func geomean(list []float64) float64 { return stat.GeometricMean(list, nil) }

// operator is a kernel before and after.
type operator struct {
	Network string  `json:"network"`
	Kernel  string  `json:"kernel"`
	Runs    int64   `json:"runs"`
	Rule    float64 `json:"rule_s"`
	Tuned   float64 `json:"tuned_s"`
	Floor   float64 `json:"bound_s"`
}

// ops: what tuning makes of single kernels.
func (s study) ops() harness.Experiment {
	return experiment(s, "ansor-ops", "what searched loops gain on the kernels of networks", "§7.3 and Fig. 9",
		func() (cells []harness.Cell) {
			for _, n := range s.networks {
				cells = append(cells, s.cell(n, nil, func(ctx context.Context) any {
					tasks := s.tasks(ctx, n)
					out := bail.Of(ansor.Tune(ctx, tasks,
						ansor.Options{Trials: s.trials * len(tasks), Scheduler: "round-robin", Seed: 1}))
					return harness.Each(out.Answers, func(a ansor.Answer) operator {
						return operator{n, a.Name, a.Weights[0], a.RuleSeconds, a.Seconds, a.Floor}
					})
				}))
			}
			return cells
		}, func(d *harness.Document, results [][]operator) {
			t := harness.Table{Title: "Kernels that gain most", Name: "ops",
				Columns: harness.Columns("<Network", "<Kernel", "by rules, us", "searched, us", "gain, x", "bound, us")}
			var gains, networks []float64
			for _, list := range results {
				rules, tuned := 0., 0.
				for _, o := range list {
					gains = append(gains, o.Rule/o.Tuned)
					rules += float64(o.Runs) * o.Rule
					tuned += float64(o.Runs) * o.Tuned
				}
				networks = append(networks, rules/tuned)
				slices.SortStableFunc(list, func(a, b operator) int { return cmp.Compare(b.Rule/b.Tuned, a.Rule/a.Tuned) })
				for _, o := range list[:min(6, len(list))] {
					t.Add(o.Network, o.Kernel, micro(o.Rule), micro(o.Tuned), ratio(o.Rule/o.Tuned), micro(o.Floor))
				}
			}
			d.Table(t)
			d.Number("most that a network gains over the best alternative (Intel)", "x", 3.8, slices.Max(networks))
			d.Cause(causeDDR)
			d.Why(
				"the alternative here is the project's own generator, whose tiles fit the memories, and most kernels of TVM's recipe wait for the DDR whatever their loops")
			d.Note(
				"Over %d kernels: geometric mean %.3fx, most %.3fx, %d trials each. The paper has up to 22.5x for single operators (§7.1, Fig. 6).", len(gains), geomean(gains), slices.Max(gains), s.trials)
		})
}

// meanText is a mean with its standard error.
func meanText(list []float64) string {
	mean, dev := stat.MeanStdDev(list, nil)
	return fmt.Sprintf("%.2f +- %.2f", mean, stat.StdErr(dev, float64(len(list))))
}

func micro(s float64) string { return fmt.Sprintf("%.2f", s*1e6) }
func ratio(x float64) string { return fmt.Sprintf("%.3f", x) }

type matched struct {
	Network string `json:"network"`
	Rules   string `json:"rules"` // variant whose kernels are matched
	Kernels int    `json:"kernels"`
	// Trials until the kernels are together as fast as by the rules, by seed; -1: not within all.
	Trials []int `json:"trials"`
	Of     int   `json:"of"`
	// Over is the time after all trials over that by the rules, by seed.
	Over []float64 `json:"over_rules"`
	// Speeds over the rules' after so many At, by seed.
	Speeds [][]float64 `json:"speeds"`
	At     []int       `json:"at_trials"`
}

// match: trials that a search that does not know the rules needs to match them.
func (s study) match() harness.Experiment {
	return experiment(s, "ansor-match", "trials that match the generator's rules", "Table 3 of the appendix",
		func() (cells []harness.Cell) {
			for _, kernels := range [][2]string{{"ansor", "tvm"}, {"graphturbo+ansor", "cross-layer"}} {
				for _, n := range s.networks {
					cells = append(cells, s.cell(kernels[1]+"-"+n, nil,
						func(ctx context.Context) any { return s.matches(ctx, n, kernels[0], kernels[1]) }))
				}
			}
			return cells
		}, func(d *harness.Document, results []matched) {
			t := harness.Table{Title: "Trials to match the rules", Name: "match",
				Columns: harness.Columns("<Network", "<Kernels of", "Kernels", "<trials, by seed", "of",
					"<time then over the rules'", "published")}
			published := map[string]string{"tvm-resnet50": "6403", "tvm-mobilenetv2": "1892"}
			var panels []plots.Curves
			for _, r := range results {
				c := plots.Curves{Title: r.Network + ", kernels of " + r.Rules, XLabel: "Trials",
					YLabel: "Throughput over the rules' (×)", LogY: true, Line: 1}
				for _, n := range r.At {
					c.X = append(c.X, float64(n))
				}
				for seed, speeds := range r.Speeds {
					c.Series = append(c.Series, plots.Series{Name: fmt.Sprintf("seed %d", seed+1), Values: speeds})
				}
				panels = append(panels, c)
				t.Add(r.Network, r.Rules, r.Kernels, strings.Trim(fmt.Sprint(r.Trials), "[]"), r.Of,
					strings.Trim(fmt.Sprintf("%.3f", r.Over), "[]"), cmp.Or(published[r.Rules+"-"+r.Network], "-"))
			}
			d.Note(
				"The first round of each kernel leaves the rules' program out. Published are the trials to match AutoTVM (ResNet-50: 21220, MobileNet: 31272 of its own). -1: not matched. Kernels of cross-layer have many layers, of which one at random that is slow is slow for all.")
			for _, x := range [][3]string{{"ResNet-50", "6403", "21220"}, {"MobileNet", "1892", "31272"},
				{"3D-ResNet", "1927", "5158"}, {"DCGAN", "298", "3003"}, {"BERT", "496", "6220"}} {
				d.Claim("trials to match AutoTVM on "+x[0], fmt.Sprintf("%s in place of %s", x[1], x[2]),
					"AutoTVM is not here, whose place the rules take", "")
				d.Given()
			}
			d.Table(t)
			d.Curves("trials", "Throughput by trials, without the rules' programs", panels...)
		})
}

// matches searches a network's kernels without their rules until they are together as fast.
func (s study) matches(ctx context.Context, network, variant, rules string) matched {
	tasks := s.kernels(ctx, variant, network)
	sum, layers := 0.0, 0
	for _, t := range tasks {
		layers += len(t.Rule)
		sum += bail.Of(t.Seconds(ctx, t.Rule)) * float64(t.Weights[0])
	}
	r := matched{Network: network, Rules: rules, Kernels: len(tasks), Of: 2 * s.trials * layers}
	for seed := range s.seeds {
		out := bail.Of(ansor.Tune(ctx, tasks, ansor.Options{Trials: r.Of, Batch: 2, Seed: uint64(seed + 1), Blind: true}))
		r.Trials, r.Over = append(r.Trials, -1), append(r.Over, out.Curve[len(out.Curve)-1].Objective/sum)
		for i, p := range out.Curve {
			if i+1 >= len(tasks) && p.Objective <= sum { // each has had a round
				r.Trials[seed] = p.Trials
				break
			}
		}
		if seed == 0 {
			r.At = between(out.Curve[min(len(tasks), len(out.Curve))-1].Trials, r.Of)
		}
		speeds := harness.Each(r.At, func(n int) float64 { return sum / reached(out.Curve, n) })
		r.Speeds = append(r.Speeds, speeds)
	}
	return r
}

type ranked struct {
	By     string  `json:"by"`
	RMSE   float64 `json:"rmse"`
	R2     float64 `json:"r2"`
	Pairs  float64 `json:"pairs"`
	Recall float64 `json:"recall_at_30"` // of the fastest 30 among the 30 foretold
	// Importance is the share of each of ansor.FeatureNames in what the trees' splits gain, of the paper's protocol alone.
	Importance []float64 `json:"importance,omitempty"`
}

// model: how well the learned cost ranks programs of kernels that it has not seen.
func (s study) model() harness.Experiment {
	return experiment(s, "ansor-model", "how well the learned cost ranks programs and kernels left out", "Fig. 11",
		func() []harness.Cell {
			return []harness.Cell{s.cell("model", nil, func(ctx context.Context) any {
				r := rand.New(rand.NewPCG(1, 1))
				var seen, four []ansor.Measured
				var unseen, fifth [][]ansor.Measured
				for i, t := range s.tasks(ctx, s.networks...) {
					var list []ansor.Measured
					var times []float64
					for range s.programs {
						p := t.Random(r)
						list = append(list, ansor.Measured{Layers: t.Features(p)})
						times = append(times, bail.Of(t.Seconds(ctx, p)))
					}
					for k := range list {
						list[k].Y = slices.Min(times) / times[k]
					}
					if i%3 == 0 {
						unseen = append(unseen, list)
					} else {
						seen = append(seen, list...)
					}
					test := len(list) / 5 // they are random in any order
					fifth, four = append(fifth, list[:test]), append(four, list[test:]...)
				}
				trees, known := ansor.Fit(seen, ansor.ManyTrees), ansor.Fit(four, ansor.ManyTrees)
				by := func(t *ansor.Trees) func(ansor.Measured) float64 {
					return func(m ansor.Measured) float64 { return t.Score(m.Layers) }
				}
				longest := slices.Index(ansor.FeatureNames, "longest ns")
				whole := rank(pooled, [][]ansor.Measured{slices.Concat(fifth...)}, by(known))
				without := ansor.Fit(cut(four), ansor.ManyTrees)
				whole.Importance = known.Importance()
				return []ranked{
					whole,
					rank("the same without intensity curve and reuse", [][]ansor.Measured{cut(slices.Concat(fifth...))}, by(without)),
					rank("a fifth of the programs left out, kernel by kernel", fifth, by(known)),
					rank("a third of the kernels left out, kernel by kernel", unseen, by(trees)),
					rank("the same by formulas", unseen, func(m ansor.Measured) float64 { return -m.Layers[0][longest] }),
				}
			})}
		}, func(d *harness.Document, results [][]ranked) {
			t := harness.Table{Title: "The learned cost on what it has not seen", Name: "model",
				Columns: harness.Columns("<Of", "pairs in order", "recall@30", "RMSE", "R2")}
			for _, r := range results[0] {
				row := []string{r.By, ratio(r.Pairs), ratio(r.Recall), "-", "-"}
				if r.By != "the same by formulas" {
					row[3], row[4] = ratio(r.RMSE), ratio(r.R2)
				}
				if r.By == pooled { // the paper's protocol
					d.Number("pairs in order", "share", .851, r.Pairs)
					d.Number("recall@30", "share", .624, r.Recall)
					d.Cause(causeScale)
					d.Why("kernels have many programs near their fastest, of which any may be among the 30 of all")
					d.Number("R2", "", .958, r.R2)
					d.Number("RMSE", "", .079, r.RMSE)
					d.Cause(causeScale)
				}
				t.Add(row)
			}
			d.Note(
				"The paper leaves out a fifth of its programs, all kernels together, each over the fastest of its kernel; that is the first row, of %d programs of each kernel.", s.programs)
			d.Note("The formulas rank by the longest of the times of all units and memories, as if the others hid behind it.")
			d.Table(t)
			d.Table(importance(results[0][0].Importance))
		})
}

// cut leaves out the features of reuse, the last.
func cut(list []ansor.Measured) (out []ansor.Measured) {
	for _, m := range list {
		layers := make([][]float64, len(m.Layers))
		for i, x := range m.Layers {
			layers[i] = x[:ansor.ReuseFeatures]
		}
		out = append(out, ansor.Measured{Layers: layers, Y: m.Y})
	}
	return out
}

// importance has the features with the largest shares, and the others together.
func importance(shares []float64) harness.Table {
	const most = 15
	t := harness.Table{Title: "Features by what the trees' splits on them gain", Name: "importance",
		Columns: harness.Columns("<Feature", "%")}
	order := solve.Numbers(len(shares))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shares[b], shares[a]) })
	rest := 0.0
	for k, i := range order {
		if k >= most {
			rest += shares[i]
			continue
		}
		t.Add(ansor.FeatureNames[i], harness.Fixed(100*shares[i], 1))
	}
	t.Add(fmt.Sprintf("%d others", max(0, len(order)-most)), harness.Fixed(100*rest, 1))
	return t
}

// pooled is the paper's protocol.
const pooled = "a fifth of the programs left out, all together"

// rank compares scores with what was measured, task by task.
func rank(by string, tasks [][]ansor.Measured, score func(ansor.Measured) float64) ranked {
	out := ranked{By: by}
	var said, was []float64
	right, pairs, recall := 0, 0, 0.0
	for _, list := range tasks {
		order, scores := make([]int, len(list)), make([]float64, len(list))
		for i, m := range list {
			order[i], scores[i] = i, score(m)
			said, was = append(said, scores[i]), append(was, m.Y)
			for k, o := range list[:i] {
				if o.Y != m.Y {
					pairs++
					if (scores[k] < scores[i]) == (o.Y < m.Y) {
						right++
					}
				}
			}
		}
		// Of the 30 that are foretold to be fastest, how many are.
		k := max(1, min(30, len(list)*3/4))
		foretold := slices.Clone(order)
		slices.SortStableFunc(foretold, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[b].Y, list[a].Y) })
		hit := 0
		for _, i := range foretold[:k] {
			if slices.Contains(order[:k], i) {
				hit++
			}
		}
		recall += float64(hit) / float64(k) / float64(len(tasks))
	}
	sum := 0.0
	for i := range said {
		sum += (said[i] - was[i]) * (said[i] - was[i])
	}
	out.RMSE, out.R2 = math.Sqrt(sum/float64(len(said))), 1-sum/float64(len(was))/stat.PopVariance(was, nil)
	out.Pairs, out.Recall = float64(right)/float64(max(1, pairs)), recall
	return out
}

type optimum struct {
	Kernel string `json:"kernel"`
	// Measured is the number of programs that the branch and bound simulates to prove Best, or until
	// it ends with Bound below Best; both and Rule are beyond the launch.
	Measured int64   `json:"programs_measured"`
	Bound    float64 `json:"bound_s"`
	Best     float64 `json:"best_s"`
	Rule     float64 `json:"rule_s"`
	// Found over Best after so many trials, by seed.
	Found map[string][]float64 `json:"found_over_best"`
}

// smallNetwork has kernels with few programs.
func smallNetwork(n int) network.Network {
	return network.Network{Name: "small", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("small")
		for i := range n {
			rows, width := int64(1+i%5), int64(32*(1+i%3))
			x := b.Input(fmt.Sprintf("x%d", i), model.F16, batch, rows, width)
			y := b.Op("MatMul", fmt.Sprintf("product%d", i), model.Attr{}, x,
				b.Param(fmt.Sprintf("w%d", i), model.F16, width, int64(8*(1+i%4))))
			if i%2 == 0 {
				y = b.Op("Relu", fmt.Sprintf("relu%d", i), model.Attr{}, y)
			}
			b.Output(y)
		}
		return b.Build()
	}}
}

// Programs that the branch and bound simulates of a kernel, at most.
const (
	maxSmall = 4000
	maxLarge = 300
)

// best is the branch and bound over a task's programs.
func best(ctx context.Context, t *ansor.Task, limit int64) (*tiling.Found, error) {
	tree := t.Tree()
	space := tiling.Space{Decisions: tree.Decisions(), Behind: tree.Behind, Bound: tree.Bound}
	space.Cost = func(choices []int) (float64, error) {
		p, ok := tree.Program(choices)
		if !ok {
			return math.Inf(1), nil
		}
		return t.Seconds(ctx, p)
	}
	return tiling.Search(ctx, space, solve.Options[[]int]{Start: make([]int, tree.Decisions()), WorkLimit: limit})
}

// optimal: how far from the best of all programs the search ends.
func (s study) optimal() harness.Experiment {
	return experiment(s, "ansor-optimal", "how near the search comes to the best of all programs of a kernel",
		"asks what the paper can't", func() (cells []harness.Cell) {
			for _, on := range []string{"small", "resnet50"} {
				cells = append(cells, s.cell(on, []int{maxSmall, maxLarge}, func(ctx context.Context) any {
					spec := harness.Accelerator(s.hardware)
					const batch = 16
					var kernels []*ansor.Task
					limit, counts, seeds := int64(maxSmall), s.optimum, s.proofs
					if on == "small" {
						kernels = tasks(ctx, []network.Network{smallNetwork(s.small)}, spec, int64(spec.Clusters), "ansor", 1)
					} else {
						kernels, limit = s.tasks(ctx, on)[:s.large], maxLarge
						counts, seeds = counts[:min(2, len(counts))], s.seeds // trials of these take longer
					}
					list := []optimum{}
					for _, t := range kernels {
						f := bail.Of(best(ctx, t, limit))
						// Searches of a task share what is measured, and end where a proven best program is found.
						known, proven := map[string]int64{}, math.Inf(-1)
						if f.Status == milp.Optimal {
							proven = f.Objective
						}
						o := optimum{Kernel: t.Name, Measured: f.Costs, Found: map[string][]float64{}}
						var times [][]float64 // of each seed, after each round
						fastest := f.Objective
						for seed := range seeds {
							within, enough := context.WithCancel(ctx)
							out, err := ansor.Tune(within, []*ansor.Task{t},
								ansor.Options{Trials: slices.Max(counts), Seed: uint64(seed + 1), Batch: batch,
									Known: func(_, program string) (int64, bool) { ps, ok := known[program]; return ps, ok },
									Record: func(x ansor.Trial) error {
										known[x.ID] = x.Picoseconds
										if x.Seconds() <= proven {
											enough()
										}
										return nil
									}})
							enough()
							bail.Check(cmp.Or(err, ctx.Err()))
							a := out.Answers[0]
							times, o.Rule = append(times, a.Best), a.RuleSeconds-spec.LaunchSeconds
							fastest = min(fastest, a.Seconds)
						}
						o.Best, o.Bound = fastest-spec.LaunchSeconds, min(f.Bound, fastest)-spec.LaunchSeconds
						for _, trials := range counts {
							for _, x := range times {
								key := fmt.Sprint(trials)
								o.Found[key] = append(o.Found[key], (x[min(trials/batch, len(x)-1)]-spec.LaunchSeconds)/o.Best)
							}
						}
						list = append(list, o)
					}
					return list
				}))
			}
			return cells
		}, func(d *harness.Document, results [][]optimum) {
			t := harness.Table{Title: "Time over that of the best program", Name: "optimal",
				Columns: harness.Columns("<Kernel", "programs measured", "bound", "rules")}
			for _, n := range s.optimum {
				t.AddColumns("After trials|" + fmt.Sprint(n))
			}
			all := map[int][]float64{}
			for k, list := range results {
				proven, gap := 0, 0.0
				for _, o := range list {
					row := []string{o.Kernel, harness.Count(o.Measured), ratio(o.Bound / o.Best), ratio(o.Rule / o.Best)}
					if o.Bound >= o.Best {
						proven++
					}
					gap = max(gap, o.Best/o.Bound-1)
					for _, n := range s.optimum {
						found := o.Found[fmt.Sprint(n)]
						if o.Bound >= o.Best {
							all[n] = append(all[n], found...)
						}
						if found == nil {
							row = append(row, "-")
						} else {
							row = append(row, ratio(geomean(found)))
						}
					}
					t.Add(row)
				}
				d.Note("%s: the best program is proven of %d of %d kernels; of the others, none is more than %.2f %% faster.",
					[]string{"Small kernels", "ResNet-50"}[k], proven, len(list), 100*gap)
			}
			for _, n := range s.optimum {
				slices.Sort(all[n])
				if m := len(all[n]); m > 0 {
					d.Note("After %d trials: median %.4f, worst %.4f of the best program's time where that is proven, %d seeds each.",
						n, all[n][m/2], all[n][m-1], s.proofs)
				}
			}
			d.Note(
				"The launch is left out, since it is most of a small kernel's time. The branch and bound begins with the rules' program and simulates programs in the order of their bounds.")
			d.Table(t)
		})
}
