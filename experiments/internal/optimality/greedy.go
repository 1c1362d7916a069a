package optimality

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
	"github.com/dsasched/dsasched/scheduler/search"
)

// againstExact asks how far greedy decisions are from the best ones.
type againstExact struct {
	hardware       string
	configurations []literature.Configuration
}

func fullOptimality() againstExact { return againstExact{"stcp920", literature.Configurations()} }

func (o againstExact) experiment() harness.Experiment {
	return harness.Experiment{Name: "optimality", Exact: true,
		Description: "how far the greedy decisions are from the best ones, decision by decision",
		Paper:       "none; the exact counterparts of Algorithms 1 to 4, of spilling and of in-order issue", Plan: o.plan}
}

// studied are the answers for a network. Times are of the batch, in seconds, simulated.
type studied struct {
	Rows    []answers.Compared `json:"rows"`
	Buffers float64            `json:"buffers_s"`         // greedy if every tensor inside a layer counts as a buffer
	Fused   float64            `json:"fused_s,omitempty"` // greedy with each attention as one operator, 0 without any
	Best    float64            `json:"best_s"`            // of a search over all decisions at once
	Tiled   float64            `json:"tiled_s"`           // of the default variant with equal shares, at its own chunk
	Bound   float64            `json:"bound_s"`           // of all schedules
}

// studyEvaluations is the number of schedules that the search over all decisions simulates.
const studyEvaluations = 60

// ByText are the strategies of the paper's text where cross-layer has others: a layer is fused by tiles (4.1), so that
// its inner tensors never exist whole.
func ByText() []scheduler.Pick { return []scheduler.Pick{{Stage: "group", Strategy: "alg2-layers"}} }

func (o againstExact) plan() (*harness.Plan, error) {
	return configured[studied]{
		Experiment: o.experiment(), Hardware: o.hardware, Configurations: o.configurations,
		Run: o.study, Report: o.report, Files: o.files,
	}.Plan()
}

func (o againstExact) study(ctx context.Context, src network.Network, spec *hardware.Spec,
	c literature.Configuration) (x studied) {
	x.Rows = bail.Of(answers.Compare(ctx, src, spec, c.BatchSize, answers.CompareOptions{Picks: ByText()}))
	for i := range x.Rows {
		x.Rows[i].Seconds = 0 // wall time does not repeat
	}
	x.Buffers = run(ctx, src, spec, c, harness.Recipe("cross-layer")).LatencySeconds()
	if bail.Of(network.HasAttention(src)) {
		made := run(ctx, network.FuseAttention(src), spec, c, harness.Recipe("cross-layer", ByText()...))
		x.Fused = made.LatencySeconds()
	}
	made := run(ctx, src, spec, c, harness.Recipe(recipes.Default))
	if x.Tiled = made.LatencySeconds(); slices.Max(made.Shares)-slices.Min(made.Shares) > 1 {
		d, _ := find(x.Rows, "tiled", isGreedy) // at greedy's chunk
		x.Tiled = value(d.LatencySeconds)
	}
	equal := search.BestOptions{Evaluations: studyEvaluations, // shares, which the default may leave
		Recipes: slices.DeleteFunc(recipes.All(), func(r scheduler.Recipe) bool { return r.Name == recipes.Default })}
	found := bail.Of(search.Best(ctx, src, spec, c.BatchSize, equal))
	x.Best = found.LatencySeconds()
	least := bail.Of(bound.AnyForm(ctx, src, spec, c.BatchSize))
	x.Bound = least.Seconds
	return x
}

func run(ctx context.Context, src network.Network, spec *hardware.Spec, c literature.Configuration,
	recipe scheduler.Recipe) *scheduler.Result {
	return bail.Of(scheduler.Run(ctx, src, spec, c.BatchSize, recipe, scheduler.Options{Figures: true}))
}

// files are the answers of all configurations.
func (o againstExact) files(all []studied) []harness.File {
	type answer struct {
		Model string `json:"model"`
		Batch int64  `json:"batch"`
		answers.Compared
	}
	var list []answer
	for i, c := range o.configurations {
		for _, d := range all[i].Rows {
			list = append(list, answer{c.Network, c.BatchSize, d})
		}
	}
	csv := harness.CSV(list, harness.Fields[answer](
		"model batch decision method unit objective bound bound_of gap status latency_s predicted_s throughput_per_s note"))
	return []harness.File{{Name: "optimality.csv", Data: csv}, harness.JSONFile("optimality.json", list)}
}

// exactly are the methods of the study: a decision made exactly, or what decides all at once.
var exactly = []struct{ decision, name string }{{"order", "order exact"}, {"bind", "bindings exact"},
	{"joint", "order and bindings exact (joint)"}, {"memory", "memory plan exact"},
	{"split", "groups and factors exact"}, {"all", "all exact"}, {"best", "search over all (best)"}}

// seconds returns the simulated latency of a method, 0 where it has no answer.
func (x *studied) seconds(method int) float64 {
	if exactly[method].decision == "best" {
		return x.Best
	}
	d, _ := find(x.Rows, exactly[method].decision, isExact)
	return value(d.LatencySeconds)
}

// over is a simulated speed over greedy, NaN where there is none.
func over(x *studied, seconds float64) float64 {
	greedy, _ := find(x.Rows, "all", isGreedy)
	if base := value(greedy.LatencySeconds); base > 0 && seconds > 0 {
		return base / seconds
	}
	return math.NaN()
}

// speeds are a network's by the methods of the study, and that which no schedule exceeds.
func (x *studied) speeds() (by []float64, any float64) {
	for k := range exactly {
		by = append(by, over(x, x.seconds(k)))
	}
	return by, over(x, x.Bound)
}

// sentences concludes from the table of the study, with notes on it.
func (o againstExact) sentences(all []studied) (sentences, notes []string) {
	means, mosts, at := map[string]string{}, map[string]string{}, map[string]string{}
	add := func(of string, speed func(x *studied) float64) {
		var list []float64
		for i := range all {
			v := speed(&all[i])
			if math.IsNaN(v) {
				continue
			}
			if len(list) == 0 || v > slices.Max(list) {
				at[of] = o.configurations[i].Network
			}
			list = append(list, v)
		}
		if len(list) > 0 {
			means[of], mosts[of] = harness.Fixed(stat.GeometricMean(list, nil), 2), harness.Fixed(slices.Max(list), 2)
		}
	}
	for k, m := range exactly {
		add(m.decision, func(x *studied) float64 { return over(x, x.seconds(k)) })
		add("buffers "+m.decision, func(x *studied) float64 { return x.Buffers / x.seconds(k) })
	}
	add("tiled", func(x *studied) float64 { return over(x, x.Tiled) })
	add("buffers", func(x *studied) float64 { return 1 / over(x, x.Buffers) })
	fused := 0
	for i := range all {
		if d, _ := find(all[i].Rows, "split", isExact); d.Measured != nil && d.Measured.Fused {
			fused++
		}
	}
	add("fused", func(x *studied) float64 { return over(x, x.Fused) })
	add("bound", func(x *studied) float64 { return over(x, x.Bound) })
	posed := 0
	var open []string
	for i := range all {
		if greedy, _ := find(all[i].Rows, "order", isGreedy); greedy.Objective != nil && greedy.Bound != nil {
			if posed++; greedy.Status != "optimal" {
				open = append(open, o.configurations[i].Network)
			}
		}
	}
	but, faster := "", "no other order that moves as few bytes is faster"
	if len(open) > 0 {
		but = fmt.Sprintf(" (all but %s)", strings.Join(open, ", "))
	}
	if mosts["order"] != "1.00" {
		faster = fmt.Sprintf("the simulator's choice of an order is up to %s times as fast (%s)", mosts["order"], at["order"])
	}
	exact := func(of string) string { return means[of] + " (" + mosts[of] + ")" }
	return []string{
			fmt.Sprintf("GraphTurbo's greedy order of instances provably moves the fewest bytes on %d of %d networks%s; %s.",
				posed-len(open), posed, but, faster),
			fmt.Sprintf("Exact instead of greedy, speed in the geometric mean (at most): bindings %s, memory plans %s, groups and "+
				"split factors %s, every decision %s.", exact("bind"), exact("memory"), exact("split"), exact("all")),
			fmt.Sprintf("A search over all decisions, with other fusion and kernels, is %s times as fast as greedy; no schedule "+
				"of equal shares can be more than %s times as fast (geometric means).", means["best"], means["bound"]),
		}, []string{
			fmt.Sprintf("Order and bindings in one program: %s. It uses predicted costs; bindings alone are judged by simulated "+
				"times.", exact("joint")),
			fmt.Sprintf("In %d networks the exact groups have each attention as one operator, so scores are in no memory. Greedy "+
				"with this operator is %s times as fast as greedy without, on networks with attention.", fused, means["fused"]),
			fmt.Sprintf("Greedy is the paper's method by its section 4.1: layers run in tiles, so a tensor inside a layer takes no "+
				"memory (cross-layer with group alg2-layers). It is %s times as fast as cross-layer itself, which counts "+
				"every intermediate as a buffer. Every decision exact gains %s over cross-layer itself. This project's greedy "+
				"recipes (tiled) are %s times as fast as greedy.", means["buffers"], means["buffers all"], means["tiled"]),
		}
}

// table is the study's, a line for each network and decision.
func (o againstExact) table(all []studied) harness.Table {
	t := harness.Table{Name: "study", Title: "Exact decisions, one at a time and together",
		Columns: harness.Columns("<Network", "<Decision", "Candidates", "Columns", "Rows", "LP\n(ms)", "Simulated\n(ms)",
			"Bound\n(ms)", "<Bound of", "Above\n(%)", "Over\ngreedy"),
		Notes: []string{"Simulated: with that decision exact and the others greedy. joint: order and bindings; all: every " +
			"decision; buffers: greedy with every intermediate as a buffer (cross-layer); fused: greedy with each attention as " +
			"one operator, as exact groups may have it. " +
			"Candidates: pairs of a group and a split. Columns and rows: of the shortest-path program. " +
			"LP: the time of a chunk that it predicts from mean measured times; not a bound. " +
			"Bound of: any, all schedules of equal shares; class, the listed groups and splits only, a higher bound for split " +
			"alone. " +
			"best: a search of " + fmt.Sprint(studyEvaluations) + " schedules (the command best simulates more). " +
			"tiled: this project's greedy recipes, with other fusion and kernels. " +
			"best and tiled choose their own chunk."}}
	ms := func(x float64) string {
		if x == 0 {
			return "–"
		}
		return harness.Significant(1e3 * x)
	}
	for i, c := range o.configurations {
		x := &all[i]
		greedy, _ := find(x.Rows, "all", isGreedy)
		base := value(greedy.LatencySeconds)
		add := func(decision string, d answers.Compared, seconds, least float64) {
			if seconds == 0 {
				return
			}
			labels, columns, rows, lp, above, of := "–", "–", "–", "–", "–", "–"
			if p := d.Measured; p != nil && decision == "split" {
				labels, columns, rows = harness.Count(int64(p.Listed)), harness.Count(int64(p.Columns)),
					harness.Count(int64(p.Rows))
				lp = ms(p.LP)
			}
			if least > 0 {
				above, of = harness.Fixed(100*(seconds/least-1), 1), "any"
			}
			if least > x.Bound {
				of = "class"
			}
			t.Add(c.Network, decision, labels, columns, rows, lp, ms(seconds), ms(least), of, above,
				harness.Fixed(base/seconds, 3))
		}
		add("greedy", greedy, base, x.Bound)
		add("buffers", answers.Compared{}, x.Buffers, x.Bound)
		add("fused", answers.Compared{}, x.Fused, x.Bound)
		for k, m := range exactly {
			d, _ := find(x.Rows, m.decision, isExact)
			least := 0.0
			switch m.decision {
			case "best", "all":
				least = x.Bound
			case "split":
				least = max(value(d.Bound), x.Bound)
			}
			add(m.decision, d, x.seconds(k), least)
		}
		add("tiled", answers.Compared{}, x.Tiled, x.Bound)
	}
	return t
}

// programs says for each decision that is a program by itself what greedy and the exact method reach by its own
// objective, before the simulator chooses, and what is proven.
func (o againstExact) programs(all [][]answers.Compared) harness.Table {
	t := harness.Table{Name: "programs", Title: "Each decision by its own objective, and what is proven",
		Columns: harness.Columns("<Network", "<Decision", "<In", "Greedy", "Exact", "Bound", "Gap\n(%)", "<Proven",
			"Simulated|greedy (ms)|exact (ms)")}
	proven := ""
	for _, decision := range []string{"order", "bind", "joint", "memory"} {
		posed, greedily, exactly := 0, 0, 0
		for i, c := range o.configurations {
			greedy, _ := find(all[i], decision, isGreedy)
			exact, _ := find(all[i], decision, isExact)
			if greedy.Objective == nil || exact.Own == nil || exact.OwnBound == nil {
				continue
			}
			unit, scale := "ms", 1e3
			if decision == "order" {
				unit, scale = "MB moved", 1e-6
			}
			posed++
			own, least, what := *exact.Own, *exact.OwnBound, "–"
			if own <= least*(1+1e-9) {
				exactly, what = exactly+1, "exact"
			}
			if *greedy.Objective <= least*(1+1e-9) {
				greedily, what = greedily+1, "greedy"
			}
			gap := "–"
			switch above := 100 * (own/least - 1); {
			case what != "–" || own <= least:
				gap = "0.00"
			case above < 0.01:
				gap = "< 0.01"
			case above < 100:
				gap = harness.Fixed(above, 2)
			case least > 0:
				gap = harness.Fixed(above, 0)
			}
			t.Add(c.Network, decision, unit, harness.Significant(scale**greedy.Objective), harness.Significant(scale*own),
				harness.Significant(scale*least), gap, what, harness.Significant(1e3*value(greedy.LatencySeconds)),
				harness.Significant(1e3*value(exact.LatencySeconds)))
		}
		proven += fmt.Sprintf("%s %d and %d of %d; ", decision, greedily, exactly, posed)
	}
	t.Notes = []string{"Greedy, exact and bound: the decision's own objective, with all other decisions greedy. Exact: the " +
		"answer of the search. Exact bindings are the best by measured costs, so their predicted cost may exceed the bound, " +
		"which is the optimum by predicted costs where no table of the elimination is truncated. Simulated: the schedule with " +
		"this answer or, where that is faster, with the answer that the simulator chooses. Proven: greedy, where greedy's " +
		"answer meets the bound (so does the exact one); exact, where only the exact one does; –, neither. Answers proven " +
		"optimal, greedy's and exact ones: " + strings.TrimSuffix(proven, "; ") + "."}
	return t
}

// find returns the answer of a decision by the first method for which ok holds.
func find(list []answers.Compared, decision string, ok func(answers.Compared) bool) (answers.Compared, bool) {
	for _, d := range list {
		if d.Decision == decision && ok(d) {
			return d, true
		}
	}
	return answers.Compared{}, false
}

// value is a number, or 0 where it is missing.
func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

func isGreedy(d answers.Compared) bool { return !isExact(d) }
func isExact(d answers.Compared) bool {
	return slices.Contains([]string{"search", "list", "joint"}, d.Method)
}

func (o againstExact) report(results []studied, b *harness.Document) {
	all := make([][]answers.Compared, len(results))
	for i := range results {
		all[i] = results[i].Rows
	}
	speed := plots.Groups{Title: "Simulated speed over greedy decisions", YLabel: "Times as fast as greedy", Line: 1}
	for _, m := range exactly {
		speed.Series = append(speed.Series, plots.Series{Name: m.name})
	}
	names := make([]string, 0, len(o.configurations))
	for i, c := range o.configurations {
		names = append(names, c.Label+"\n"+c.Network)
		by, any := results[i].speeds()
		for k, v := range by {
			speed.Series[k].Values = append(speed.Series[k].Values, v)
		}
		if any > 0 {
			speed.Marks = append(speed.Marks, plots.GroupMark{Category: i, Series: len(by) - 1, Value: any, Kind: plots.Bound})
		}
	}
	sentences, notes := o.sentences(results)
	for _, text := range append(slices.Clone(sentences), notes...) {
		b.Note("%s", text)
	}
	b.Table(o.table(results))
	b.Table(o.programs(all))
	b.Table(o.ranks(all))
	speed.Categories = names
	b.Bars("study", "Greedy against optimal", speed)
	b.Lead("study", "Greedy against optimal", sentences...)
}

// ranks compares two rankings of answers with the simulator's, by the objective and by the predicted time of the
// schedule that follows: over all pairs of answers to a decision of one network that differ in both.
func (o againstExact) ranks(all [][]answers.Compared) harness.Table {
	t := harness.Table{Name: "ranks", Title: "Do objectives rank answers as the simulator does?",
		Columns: harness.Columns("<Decision", "<By", "Networks", "Pairs", "Ranked|as simulated|otherwise",
			"Kendall's\ntau", ".5 % apart|pairs|tau"),
		Notes: []string{"Pairs: answers of two methods to one decision for one network, with all other decisions greedy, " +
			"that differ in simulated time and in the decision's objective (or in predicted time: the cost model's time of the " +
			"resulting schedule, with the moves of its memory plan; predicted_s of compare). tau = (as simulated - otherwise) / " +
			"pairs. .5 % apart: pairs whose simulated times differ by .5 % or more. The objective of split is simulated time."}}
	for _, decision := range []string{"split", "order", "bind", "memory"} {
		for _, by := range []struct {
			name string
			of   func(answers.Compared) *float64
		}{{"objective", func(d answers.Compared) *float64 { return d.Objective }},
			{"predicted", func(d answers.Compared) *float64 { return d.PredictedSeconds }}} {
			networks, every, apart := 0, agreement{}, agreement{}
			for _, list := range all {
				x := concordance(list, decision, 0, by.of)
				if every = every.and(x); x != (agreement{}) {
					networks++
				}
				apart = apart.and(concordance(list, decision, 0.005, by.of))
			}
			t.Add(decision, by.name, networks, every.right+every.wrong, every.right, every.wrong, every.tau(),
				apart.right+apart.wrong, apart.tau())
		}
	}
	return t
}

// agreement counts pairs of answers of which the one with the lower value is faster, and the others.
type agreement struct{ right, wrong int }

func (a agreement) and(b agreement) agreement { return agreement{a.right + b.right, a.wrong + b.wrong} }

func (a agreement) tau() string {
	if a == (agreement{}) {
		return "–"
	}
	return harness.Fixed(float64(a.right-a.wrong)/float64(a.right+a.wrong), 2)
}

// concordance counts the pairs of answers to a decision that differ in a value, by more than sums in another order do,
// and, by more than a share, in throughput.
func concordance(list []answers.Compared, decision string, share float64, of func(answers.Compared) *float64) (
	n agreement) {
	for i, a := range list {
		for _, b := range list[:i] {
			x, y, rate, other := of(a), of(b), a.ThroughputPerSecond, b.ThroughputPerSecond
			if a.Decision != decision || b.Decision != decision || x == nil || y == nil || rate == nil || other == nil ||
				math.Abs(*rate-*other) < share*max(*rate, *other) || math.Abs(*x-*y) <= 1e-9*max(*x, *y) {
				continue
			}
			switch cmp.Compare(*y, *x) * cmp.Compare(*rate, *other) {
			case 1:
				n.right++
			case -1:
				n.wrong++
			}
		}
	}
	return n
}

// Optimality compares greedy decisions with exact ones.
func Optimality() harness.Experiment { return fullOptimality().experiment() }
