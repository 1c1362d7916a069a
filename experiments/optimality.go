package experiments

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
)

// optimality asks how far greedy decisions are from the best ones.
type optimality struct {
	hardware       string
	configurations []Configuration
}

func fullOptimality() optimality { return optimality{"stcp920", Configurations()} }

func (o optimality) experiment() Experiment {
	return Experiment{Name: "optimality", Exact: true, Description: "how far the greedy decisions are from the best ones, decision by decision",
		Paper: "none; the exact counterparts of Algorithms 1 to 4, of spilling and of in-order issue", plan: o.plan}
}

func (o optimality) plan() (*plan, error) {
	return configured[[]Decided]{
		Experiment: o.experiment(), hardware: o.hardware, configurations: o.configurations,
		inputs: func(c Configuration, hardwareHash string) any {
			return struct {
				Model        string `json:"model"`
				HardwareHash string `json:"hardware_sha256"`
				Batch        int64  `json:"batch"`
				Chunk        int64  `json:"chunk"`
			}{c.Network, hardwareHash, c.BatchSize, c.GraphTurboBatchesPerCluster}
		},
		run: func(ctx context.Context, src network.Network, spec *hardware.Spec, c Configuration) ([]Decided, error) {
			return CompareDecisions(ctx, src, spec, c.BatchSize, CompareOptions{Chunk: c.GraphTurboBatchesPerCluster})
		},
		report: o.report, files: o.files,
	}.plan()
}

// files are the answers of all configurations.
func (o optimality) files(all [][]Decided) ([]file, error) {
	out := [][]string{{"model", "batch", "decision", "method", "unit", "objective", "bound", "gap", "status", "throughput_per_s", "note"}}
	type answer struct {
		Model string `json:"model"`
		Batch int64  `json:"batch"`
		Decided
	}
	var list []answer
	for i, c := range o.configurations {
		for _, d := range all[i] {
			objective, bound, gap := "", "", ""
			if d.HasObjective() {
				objective = exact(d.Cost)
			}
			if d.HasBound() {
				bound, gap = exact(d.Bound), exact(d.Gap())
			}
			out = append(out, []string{c.Network, count(c.BatchSize), d.Decision, d.Method, d.Unit, objective, bound, gap, d.Status, exact(d.ThroughputPerSecond), d.Note})
			list = append(list, answer{c.Network, c.BatchSize, d})
		}
	}
	data, err := json.MarshalIndent(list, "", "  ")
	return []file{{"optimality.csv", csvBytes(out)}, {"optimality.json", append(data, '\n')}}, err
}

// find returns the answer of a decision by the first method for which ok holds.
func find(list []Decided, decision string, ok func(Decided) bool) (Decided, bool) {
	for _, d := range list {
		if d.Decision == decision && ok(d) {
			return d, true
		}
	}
	return Decided{}, false
}

func isGreedy(d Decided) bool { return !isExact(d) }
func isExact(d Decided) bool  { return d.Method == "search" }

func (o optimality) report(all [][]Decided, b *gridReport) error {
	t := table{title: "Greedy against exact, the paper's batches per cluster", label: "tab:optimality",
		columns: []column{{name: "Network", text: true}, {name: "Decision", text: true}, {name: "Method", text: true}, {name: "Objective"}, {name: "Bound"}, {name: "Unit", text: true},
			{name: "Gap (%)"}, {name: "Status", text: true}, {name: "Throughput\n(1/s)"}, {name: "Over\ngreedy (%)"}}}
	decisions := []string{DecisionSplit, DecisionOrder, DecisionBind, DecisionMemory, DecisionAll}
	var series []plots.Series
	for range decisions {
		series = append(series, plots.Series{Values: make([]float64, len(all))})
	}
	for i, c := range o.configurations {
		for _, d := range all[i] {
			first, _ := find(all[i], d.Decision, isGreedy)
			gain, throughput, gap, objective, bound := "–", "–", "–", "–", "–"
			if d.ThroughputPerSecond > 0 {
				throughput = significant(d.ThroughputPerSecond)
				if first.ThroughputPerSecond > 0 {
					gain = fixed(100*(d.ThroughputPerSecond/first.ThroughputPerSecond-1), 1)
				}
			}
			unit, per := d.Unit, 1.0
			if unit == "s" {
				unit, per = "µs", 1e6
			}
			if d.HasObjective() {
				objective = significant(per * d.Cost)
			}
			if d.HasBound() {
				bound, gap = significant(per*d.Bound), fixed(100*d.Gap(), 1)
			}
			t.rows = append(t.rows, []string{c.Network, d.Decision, d.Method, objective, bound, unit, gap, d.Status, throughput, gain})
		}
		for k, decision := range decisions {
			g, ok1 := find(all[i], decision, isGreedy)
			e, ok2 := find(all[i], decision, isExact)
			if ok1 && ok2 && g.ThroughputPerSecond > 0 && e.ThroughputPerSecond > 0 {
				series[k].Values[i] = e.ThroughputPerSecond / g.ThroughputPerSecond
			}
		}
	}
	t.notes = append(t.notes, "Objectives: split, bind: seconds of the cost models of docs/formulations.md; order: bytes between LB and GB; memory: bytes that spills and parameters passing again move; issue: seconds of one kernel; joint: seconds of bindings, scopes and what the order spills. A decision is replaced alone, the others are greedy; joint: order, bindings and scopes by one search; all: split, then joint, then memory, each for the choices before.",
		"An objective is a proxy: the simulator overlaps moves with work, so that the best choice of a proxy can be slower.")
	if err := b.table(t); err != nil {
		return err
	}
	for i, c := range o.configurations {
		b.note("%s", o.sentence(c, all[i]))
	}
	names := make([]string, 0, len(o.configurations))
	for _, c := range o.configurations {
		names = append(names, c.Label+"\n"+c.Network)
	}
	for k, name := range []string{"exact groups and factors", "exact order", "exact bindings and scopes", "exact spills", "all of these"} {
		series[k].Name = name
	}
	f, err := plots.GroupedBars(plots.Groups{Title: "Throughput with exact decisions over that with greedy ones", YLabel: "Ratio", Categories: names, Series: series, Line: 1})
	if err := b.figure("throughput", "Throughput with exact decisions", f, err); err != nil {
		return err
	}
	f, err = plots.GroupedBars(plots.Groups{Title: "How far greedy objectives may be above the least ones", YLabel: "Gap to the proven bound (%)", Categories: names, Series: o.gaps(all)})
	return b.figure("gap", "Gaps of greedy decisions", f, err)
}

// gaps are those of the greedy answers, in percent, by decision and configuration; 0 also
// where nothing is proven.
func (o optimality) gaps(all [][]Decided) []plots.Series {
	list := []plots.Series{{Name: DecisionSplit}, {Name: DecisionOrder}, {Name: DecisionBind}, {Name: DecisionMemory}, {Name: DecisionIssue}, {Name: DecisionJoint}}
	for k := range list {
		list[k].Values = make([]float64, len(all))
		for i := range all {
			if g, ok := find(all[i], list[k].Name, isGreedy); ok && g.HasBound() {
				list[k].Values[i] = 100 * g.Gap()
			}
		}
	}
	return list
}

// sentence says how far a network's schedule is from the best, and which decision
// loses most.
func (o optimality) sentence(c Configuration, list []Decided) string {
	s := c.Network + ": "
	worst, loss, compared := "", 0.0, false
	for _, decision := range []string{DecisionSplit, DecisionOrder, DecisionBind, DecisionMemory, DecisionJoint} {
		g, ok1 := find(list, decision, isGreedy)
		e, ok2 := find(list, decision, isExact)
		what := map[string]string{DecisionSplit: "the choice of groups and factors", DecisionOrder: "the order", DecisionBind: "the choice of bindings", DecisionMemory: "the choice of spills", DecisionJoint: "order, bindings and scopes together"}[decision]
		switch {
		case !ok1 || !ok2:
			s += what + " can't be compared"
		case g.Status == "optimal":
			s += what + " is proven best"
		case e.Status == "optimal":
			s += fmt.Sprintf("%s is %.1f %% above the least objective", what, 100*(g.Cost/max(e.Cost, 1e-300)-1))
		default:
			s += fmt.Sprintf("%s is at most %.1f %% from the best", what, 100*g.Gap())
		}
		if g.ThroughputPerSecond > 0 && e.ThroughputPerSecond > 0 {
			compared = true
			gain := e.ThroughputPerSecond/g.ThroughputPerSecond - 1
			s += fmt.Sprintf(" (simulated %+.1f %%)", 100*gain)
			if decision != DecisionJoint && gain > loss {
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
