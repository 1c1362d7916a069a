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
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
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
	Rows  []answers.Compared `json:"rows"`
	Best  float64            `json:"best_s"`  // of a search over all decisions at once
	Bound float64            `json:"bound_s"` // of all schedules
}

// studyEvaluations is the number of schedules that the search over all decisions simulates.
const studyEvaluations = 100

func (o againstExact) plan() (*harness.Plan, error) {
	return configured[studied]{
		Experiment: o.experiment(), Hardware: o.hardware, Configurations: o.configurations,
		Run: o.study, Report: o.report, Files: o.files,
	}.Plan()
}

func (o againstExact) study(ctx context.Context, src network.Network, spec *hardware.Spec,
	c literature.Configuration) (x studied, err error) {
	if x.Rows, err = answers.Compare(ctx, src, spec, c.BatchSize, answers.CompareOptions{}); err != nil {
		return x, err
	}
	for i := range x.Rows {
		x.Rows[i].Seconds = 0 // wall time does not repeat
	}
	found, err := search.Best(ctx, src, spec, c.BatchSize, search.BestOptions{Evaluations: studyEvaluations})
	if err != nil {
		return x, err
	}
	x.Best = found.LatencySeconds()
	least, err := bound.AnyForm(ctx, src, spec, c.BatchSize)
	if err == nil {
		x.Bound = least.Seconds
	}
	return x, err
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
		"model batch decision method unit objective bound gap status latency_s throughput_per_s note"))
	return []harness.File{{Name: "optimality.csv", Data: csv}, harness.JSONFile("optimality.json", list)}
}

// exactly are the methods of the study: a decision made exactly, or what decides all at once.
var exactly = []struct{ decision, name string }{{"order", "exact order"}, {"bind", "exact bindings and scopes"},
	{"joint", "joint: order, bindings, scopes"}, {"split", "exact groups and factors"}, {"all", "all decisions exact"},
	{"best", "search over all at once"}}

// speeds are a network's simulated speeds over greedy by the methods of the study, NaN where there is none, and those
// that no choice of groups, and no schedule, exceeds.
func (x *studied) speeds() (by []float64, class, any float64) {
	greedy, _ := find(x.Rows, "all", isGreedy)
	base := value(greedy.LatencySeconds)
	over := func(seconds float64) float64 {
		if base == 0 || seconds == 0 {
			return math.NaN()
		}
		return base / seconds
	}
	for _, m := range exactly {
		d, _ := find(x.Rows, m.decision, isExact)
		seconds := value(d.LatencySeconds)
		if m.decision == "best" {
			seconds = x.Best
		}
		by = append(by, over(seconds))
	}
	d, _ := find(x.Rows, "split", isExact)
	return by, over(value(d.Bound)), over(x.Bound)
}

// sentences concludes from the table of the study.
func (o againstExact) sentences(all []studied) []string {
	means, rates := make([]float64, len(exactly)), make([][]float64, len(exactly))
	limit, beaten := []float64{}, 0
	for i := range all {
		by, _, any := all[i].speeds()
		for k, v := range by {
			if !math.IsNaN(v) {
				rates[k] = append(rates[k], v)
			}
		}
		if limit = append(limit, any); by[4] > 1.005 {
			beaten++
		}
	}
	for k, list := range rates {
		means[k] = stat.GeometricMean(list, nil)
	}
	single := []int{0, 1, 3} // order, bindings, groups
	slices.SortStableFunc(single, func(a, b int) int { return cmp.Compare(means[b], means[a]) })
	return []string{
		fmt.Sprintf("With every decision exact, %d of %d networks are faster in the simulator than with GraphTurbo's greedy "+
			"ones, %.2f times in the geometric mean and %.2f at most.", beaten, len(all), means[4], slices.Max(rates[4])),
		fmt.Sprintf("One at a time, %s gain %.2f times, %s %.2f, and %s %.2f.", exactly[single[0]].name, means[single[0]],
			exactly[single[1]].name, means[single[1]], exactly[single[2]].name, means[single[2]]),
		fmt.Sprintf("A search over all decisions at once gets %.2f times; by the bound of all schedules none gets more than "+
			"%.2f.", means[5], stat.GeometricMean(limit, nil)),
	}
}

// table is the study's, a line for each network and decision.
func (o againstExact) table(all []studied) harness.Table {
	t := harness.Table{Name: "study", Title: "Exact decisions, one at a time and together",
		Columns: harness.Columns("<Network", "<Decision", "Labels", "Columns", "Rows", "LP (ms)", "Simulated\n(ms)",
			"Bound (ms)", "Above (%)", "Over\ngreedy"),
		Notes: []string{"Simulated: the batch with that decision replaced. Labels: groups, each in a way to split it. LP: of the shortest path over priced columns, for a chunk; its root gap is 0. Bound: of the decision's class in the simulator, or of all schedules."}}
	ms := func(x float64) string {
		if x == 0 {
			return "–"
		}
		return harness.Significant(1e3 * x)
	}
	for i, c := range o.configurations {
		x := &all[i]
		greedy, _ := find(x.Rows, "all", isGreedy)
		by, _, _ := x.speeds()
		for k, m := range exactly {
			if math.IsNaN(by[k]) {
				continue
			}
			seconds, least := value(greedy.LatencySeconds)/by[k], 0.0
			labels, columns, rows, lp := "–", "–", "–", "–"
			d, _ := find(x.Rows, m.decision, isExact)
			if p := d.Measured; p != nil {
				labels, columns, rows = harness.Significant(float64(p.Listed)), harness.Significant(float64(p.Columns)),
					harness.Significant(float64(p.Rows))
				lp, least = ms(p.LP), value(d.Bound)
			}
			if m.decision == "best" || m.decision == "all" {
				least = x.Bound
			}
			above := "–"
			if least > 0 {
				above = harness.Fixed(100*(seconds/least-1), 1)
			}
			t.Add(c.Network, m.decision, labels, columns, rows, lp, ms(seconds), ms(least), above, harness.Fixed(by[k], 3))
		}
	}
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
		by, class, any := results[i].speeds()
		for k, v := range by {
			speed.Series[k].Values = append(speed.Series[k].Values, v)
		}
		for _, m := range []plots.GroupMark{{Category: i, Series: 3, Value: class, Kind: plots.ClassBound},
			{Category: i, Series: 5, Value: any, Kind: plots.Bound}} {
			if m.Value > 0 {
				speed.Marks = append(speed.Marks, m)
			}
		}
	}
	sentences := o.sentences(results)
	for _, text := range sentences {
		b.Note("%s", text)
	}
	b.Table(o.table(results))
	b.Table(o.ranks(all))
	speed.Categories = names
	b.Bars("study", "Greedy against optimal", speed)
	b.Lead("study", "Greedy against optimal", strings.Join(sentences, " "))
	b.Bars("gap", "Gaps of greedy decisions",
		plots.Groups{Title: "How far greedy objectives are above the proven bounds",
			YLabel: "Above the bound (%)", Categories: names, Series: o.gaps(all)})
}

// ranks says whether what an objective prefers is what the simulator prefers: over all pairs of
// answers to a decision of one network that differ in both.
func (o againstExact) ranks(all [][]answers.Compared) harness.Table {
	t := harness.Table{Name: "ranks", Title: "Do objectives rank answers as the simulator does?",
		Columns: harness.Columns("<Decision", "Networks", "Pairs", "Ranked by the objective|as simulated|otherwise",
			"Kendall's\ntau"),
		Notes: []string{
			"Pairs of the answers of all methods to one decision for one network, the rest of the schedule being greedy, that differ in objective and simulated time; tau = (as simulated - otherwise) / pairs."}}
	for _, decision := range []string{"split", "order", "bind", "memory"} {
		networks, right, wrong := 0, 0, 0
		for _, list := range all {
			r, w := concordance(list, decision)
			right, wrong = right+r, wrong+w
			if r+w > 0 {
				networks++
			}
		}
		tau := "–"
		if right+wrong > 0 {
			tau = harness.Fixed(float64(right-wrong)/float64(right+wrong), 2)
		}
		t.Add(decision, networks, right+wrong, right, wrong, tau)
	}
	return t
}

// concordance counts the pairs of answers to a decision that differ in objective and throughput:
// those of which the one with the lower objective is faster, and the others.
func concordance(list []answers.Compared, decision string) (right, wrong int) {
	for i, a := range list {
		for _, b := range list[:i] {
			if a.Decision != decision || b.Decision != decision || a.Objective == nil || b.Objective == nil ||
				a.ThroughputPerSecond == nil || b.ThroughputPerSecond == nil {
				continue
			}
			cheaper, faster := cmp.Compare(*b.Objective, *a.Objective),
				cmp.Compare(*a.ThroughputPerSecond, *b.ThroughputPerSecond)
			switch cheaper * faster {
			case 1:
				right++
			case -1:
				wrong++
			}
		}
	}
	return right, wrong
}

// gaps are the gaps of the greedy answers, in percent, by decision and configuration; 0 also
// where nothing is proven.
func (o againstExact) gaps(all [][]answers.Compared) []plots.Series {
	list := []plots.Series{{Name: "split"}, {Name: "order"}, {Name: "bind"}, {Name: "memory"},
		{Name: "issue"}}
	for k := range list {
		list[k].Values = make([]float64, len(all))
		for i := range all {
			list[k].Values[i] = math.NaN()
			if g, ok := find(all[i], list[k].Name, isGreedy); ok && g.Gap != nil {
				list[k].Values[i] = 100 * *g.Gap
			}
		}
	}
	return list
}

// Optimality compares greedy decisions with exact ones.
func Optimality() harness.Experiment { return fullOptimality().experiment() }
