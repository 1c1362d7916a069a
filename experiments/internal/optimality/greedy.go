package optimality

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler/answers"
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

func (o againstExact) plan() (*harness.Plan, error) {
	return configured[[]answers.Compared]{
		Experiment: o.experiment(), Hardware: o.hardware, Configurations: o.configurations,
		Run: func(ctx context.Context, src network.Network, spec *hardware.Spec, c literature.Configuration) (
			[]answers.Compared, error) {
			list, err := answers.Compare(ctx, src, spec, c.BatchSize, answers.CompareOptions{})
			for i := range list {
				list[i].Seconds = 0 // wall time does not repeat
			}
			return list, err
		},
		Report: o.report, Files: o.files,
	}.Plan()
}

// files are the answers of all configurations.
func (o againstExact) files(all [][]answers.Compared) []harness.File {
	type answer struct {
		Model string `json:"model"`
		Batch int64  `json:"batch"`
		answers.Compared
	}
	var list []answer
	for i, c := range o.configurations {
		for _, d := range all[i] {
			list = append(list, answer{c.Network, c.BatchSize, d})
		}
	}
	bounded := func(name string, of func(answer) *float64) harness.Field[answer] {
		return harness.Field[answer]{Name: name, Of: func(a answer) any {
			if a.Bound == nil || a.Gap == nil {
				return nil
			}
			return *of(a)
		}}
	}
	csv := harness.CSV(list, harness.Fields(
		"model batch decision method unit objective bound gap status throughput_per_s note",
		bounded("bound", func(a answer) *float64 { return a.Bound }),
		bounded("gap", func(a answer) *float64 { return a.Gap })))
	return []harness.File{{Name: "optimality.csv", Data: csv}, harness.JSONFile("optimality.json", list)}
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
func isExact(d answers.Compared) bool  { return d.Method == "search" || d.Method == "list" }

func (o againstExact) report(all [][]answers.Compared, b *harness.Document) {
	t := harness.Table{Name: "decisions",
		Title: "Greedy against exact, at the batches per cluster at which greedy is fastest",
		Columns: harness.Columns("<Network", "<Decision", "<Method", "Objective", "Bound", "<Unit", "Gap (%)",
			"<Status", "Throughput\n(1/s)", "Over\ngreedy (%)")}
	decisions := []string{"split", "order", "bind", "memory", "all"}
	var series []plots.Series
	for range decisions {
		series = append(series, plots.Series{Values: make([]float64, len(all))})
	}
	for i, c := range o.configurations {
		for _, d := range all[i] {
			first, _ := find(all[i], d.Decision, isGreedy)
			gain, throughput, gap, objective, bound := "–", "–", "–", "–", "–"
			if d.ThroughputPerSecond != nil {
				throughput = harness.Significant(*d.ThroughputPerSecond)
				if first.ThroughputPerSecond != nil {
					gain = harness.Fixed(100*(*d.ThroughputPerSecond / *first.ThroughputPerSecond - 1), 1)
				}
			}
			unit, per := d.Unit, 1.0
			if unit == "s" {
				unit, per = "µs", 1e6
			}
			if d.Objective != nil {
				objective = harness.Significant(per * *d.Objective)
			}
			if d.Bound != nil && d.Gap != nil {
				bound, gap = harness.Significant(per**d.Bound), harness.Fixed(100**d.Gap, 1)
			}
			t.Add(c.Network, d.Decision, d.Method, objective, bound, unit, gap, d.Status, throughput, gain)
		}
		for k, decision := range decisions {
			g, ok1 := find(all[i], decision, isGreedy)
			e, ok2 := find(all[i], decision, isExact)
			if ok1 && ok2 && g.ThroughputPerSecond != nil && e.ThroughputPerSecond != nil {
				series[k].Values[i] = *e.ThroughputPerSecond / *g.ThroughputPerSecond
			}
		}
	}
	t.Notes = append(t.Notes,
		"Objectives: split, bind: seconds of the cost models of docs/formulations.md; order: bytes between L1 and LLB; memory: bytes that spills and parameters passing again move; issue: seconds of one kernel. A decision is replaced alone, the others are greedy; all: exact-all, every decision exact or, where that is faster, what it falls back to.",
		"An objective is a proxy: the simulator overlaps moves with work, so that the best choice of a proxy can be slower.")
	b.Table(t)
	b.Table(o.ranks(all))
	for i, c := range o.configurations {
		b.Note("%s", o.sentence(c, all[i]))
	}
	names := make([]string, 0, len(o.configurations))
	for _, c := range o.configurations {
		names = append(names, c.Label+"\n"+c.Network)
	}
	for k, name := range []string{"exact groups and factors", "exact order", "exact bindings and scopes",
		"exact spills", "all of these"} {
		series[k].Name = name
	}
	b.Bars("throughput", "Throughput with exact decisions",
		plots.Groups{Title: "Throughput with exact decisions over that with greedy ones",
			YLabel: "Ratio", Categories: names, Series: series, Line: 1})
	b.Bars("gap", "Gaps of greedy decisions",
		plots.Groups{Title: "How far greedy objectives may be above the least ones",
			YLabel: "Gap to the proven bound (%)", Categories: names, Series: o.gaps(all)})
	b.Lead("gap", "How far greedy decisions are from the best", o.gapSentence(all))
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

// gapSentence counts the greedy decisions that are proven best, and names the one that may be
// farthest from it.
func (o againstExact) gapSentence(all [][]answers.Compared) string {
	best, bounded, widest, where := 0, 0, 0.0, ""
	for i, c := range o.configurations {
		for _, decision := range []string{"split", "order", "bind", "memory", "issue"} {
			g, ok := find(all[i], decision, isGreedy)
			if !ok || g.Gap == nil {
				continue
			}
			bounded++
			if *g.Gap == 0 {
				best++
			}
			if *g.Gap > widest {
				widest, where = *g.Gap, decision+" of "+c.Network
			}
		}
	}
	s := fmt.Sprintf("Of %d greedy decisions with a bound, %d are proven best", bounded, best)
	if where != "" {
		s += fmt.Sprintf("; the widest gap to a bound is %.0f %% (%s)", 100*widest, where)
	}
	return s + "."
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
			switch g, ok := find(all[i], list[k].Name, isGreedy); {
			case ok && g.Gap != nil:
				list[k].Values[i] = 100 * *g.Gap
			case ok && g.Status == "optimal":
				list[k].Values[i] = 0
			}
		}
	}
	return list
}

// sentence says how far a network's schedule is from the best, and which decision
// loses most.
func (o againstExact) sentence(c literature.Configuration, list []answers.Compared) string {
	s := c.Network + ": "
	worst, loss, compared := "", 0.0, false
	for _, decision := range []string{"split", "order", "bind", "memory"} {
		g, ok1 := find(list, decision, isGreedy)
		e, ok2 := find(list, decision, isExact)
		what := map[string]string{"split": "the choice of groups and factors", "order": "the order",
			"bind": "the choice of bindings", "memory": "the choice of spills"}[decision]
		switch {
		case !ok1 || !ok2 || g.Gap == nil && g.Status != "optimal":
			s += what + " can't be compared"
		case g.Status == "optimal":
			s += what + " is proven best"
		case e.Status == "optimal":
			s += fmt.Sprintf("%s is %.1f %% above the least objective", what,
				100*(value(g.Objective)/max(value(e.Objective), 1e-300)-1))
		default:
			s += fmt.Sprintf("%s is at most %.1f %% from the best", what, 100*value(g.Gap))
		}
		if g.ThroughputPerSecond != nil && e.ThroughputPerSecond != nil {
			compared = true
			gain := *e.ThroughputPerSecond / *g.ThroughputPerSecond - 1
			s += fmt.Sprintf(" (simulated %+.1f %%)", 100*gain)
			if gain > loss {
				worst, loss = what, gain
			}
		}
		s += "; "
	}
	switch {
	case worst == "" && !compared:
		return s + "nothing could be simulated."
	case worst == "":
		return s + "no exact decision makes the schedule faster."
	}
	return s + worst + " loses most."
}

// Optimality compares greedy decisions with exact ones.
func Optimality() harness.Experiment { return fullOptimality().experiment() }
