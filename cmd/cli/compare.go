package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

type compareJSON struct {
	Model    string             `json:"model"`
	Hardware string             `json:"hardware"`
	Batch    int64              `json:"batch"`
	Rows     []answers.Compared `json:"decisions"`
	Notes    []string           `json:"notes,omitempty"`
}

func newCompare() *cobra.Command {
	var decisions []string
	cmd := command("compare")
	takesModel(cmd)
	quiet, accelerator, read := addQuiet(cmd), addHardware(cmd), addNetwork(cmd)
	batch, chunk := addBatch(cmd, "where cross-layer is fastest")
	limit := addLimit(cmd, 0,
		"time for each exact method, such as 60s (default: limits that do not depend on the machine)")
	limit.orNever = true
	tables := addTables(cmd)
	cmd.Flags().StringSliceVar(&decisions, "decision", nil,
		"decisions to compare, with commas between: split, order, bind, memory, issue, joint, all, tiled (default: each)")
	completeFlag(cmd, "decision", cobra.FixedCompletions(answers.Comparisons(), cobra.ShellCompDirectiveNoFileComp))
	group := &choice{value: "alg2", kind: "STRATEGY", words: []string{"alg2", "alg2-layers"}}
	addChoice(cmd, group, "group",
		"groups of cross-layer: alg2, or alg2-layers, with tensors inside a layer taking no memory (section 4.1)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, d := range decisions {
			if !slices.Contains(answers.Comparisons(), d) {
				return usagef("--decision %q, expected some of %s", d, quoted(answers.Comparisons()))
			}
		}
		spec := oneChip(*accelerator)
		src := try(network.Open(args[0], read.options()))
		show := newStatus(cmd, *quiet)
		known := answers.ComparisonsOn(spec)
		total := cmp.Or(len(decisions), len(known))
		cells := harness.NewTracker("", 0, total, func(p harness.Progress) {
			p.LeftSeconds = -1 // one decision says nothing of another
			show.cells(p)
		})
		list, err := answers.Compare(cmd.Context(), src, spec, batch.value, answers.CompareOptions{Decisions: decisions,
			Picks:   []scheduler.Pick{{Stage: "group", Strategy: group.value}},
			Options: withSolver(scheduler.Options{Chunk: chunk.value, TimeLimit: limit.value}), Started: cells.Start,
			Ended: cells.End})
		show.end()
		if err != nil && len(list) == 0 {
			if stopped := cmd.Context().Err(); stopped != nil {
				return stopped
			}
			return err
		}
		answer := &compareJSON{Model: args[0], Hardware: spec.Name, Batch: batch.value, Rows: list}
		if len(decisions) == 0 && len(known) < len(answers.Comparisons()) {
			answer.Notes = append(answer.Notes, "bind, joint, all and tiled are left out: they do not know cores of several kinds")
		}
		if g, bad := src.Graph(batch.value); bad == nil && scheduler.Shortage(g, spec, 1, 0) != "" {
			answer.Notes = append(answer.Notes, scheduler.Shortage(g, spec, 1, 0))
		}
		align, header, rows, notes := answer.table()
		unwritten := tables.write(tableOf("compare", answer.heading(), align, header, rows, append(
			[]string{"simulated: the batch, by the whole schedule, fastest first; predicted: by formulas, in the same schedule; " +
				"objective, bound: of the decision's own measure; gap: of the objective above the bound; took: to decide"},
			notes...)), cmd.Name())
		if out := emit(cmd, answer, answer.write); out != nil {
			return out
		}
		if stopped := cmd.Context().Err(); stopped != nil {
			return stopped // what was known has been printed
		}
		return cmp.Or(err, unwritten)
	}
	return cmd
}

func (a *compareJSON) write(b *bytes.Buffer) {
	row(b, "model", "%s", printable(a.heading()))
	b.WriteByte('\n')
	align, header, rows, notes := a.table()
	writeTable(b, align, header, rows)
	b.WriteByte('\n')
	for _, n := range notes {
		rowWrapped(b, "note", n)
	}
	if text := a.conclusion(); text != "" {
		rowWrapped(b, "conclusion", text)
	}
}

// conclusion says in one sentence what exact decisions gain.
func (a *compareJSON) conclusion() string {
	var greedy, all, most *answers.Compared
	for i := range a.Rows {
		d := &a.Rows[i]
		switch {
		case d.LatencySeconds == nil:
		case d.Status == "greedy" && greedy == nil:
			greedy = d // the first row, with all decisions greedy
		case d.Method != "search":
		case d.Decision == "all":
			all = d
		case most == nil || *d.LatencySeconds < *most.LatencySeconds:
			most = d
		}
	}
	if greedy == nil || all == nil && most == nil {
		return ""
	}
	gains, text := func(d *answers.Compared) float64 { return *greedy.LatencySeconds / *d.LatencySeconds }, ""
	if all != nil && gains(all) < 1.005 {
		text = "exact decisions together are no faster than cross-layer; "
	} else if all != nil {
		text = fmt.Sprintf("exact decisions together simulate in %s, %.2f times as fast as cross-layer; ",
			duration(*all.LatencySeconds), gains(all))
	}
	switch {
	case most == nil:
		return strings.TrimSuffix(text, "; ")
	case gains(most) >= 1.005:
		return text + fmt.Sprintf("alone, the exact %s gains most, %.2f times", most.Decision, gains(most))
	}
	return text + "alone, no exact decision is faster than that of cross-layer"
}

func (a *compareJSON) heading() string {
	text := fmt.Sprintf("%s on %s, batch %d", a.Model, a.Hardware, a.Batch)
	if len(a.Rows) > 0 {
		text += fmt.Sprintf(" in chunks of %d", a.Rows[0].Chunk)
	}
	return text
}

func (a *compareJSON) table() (align string, header []string, rows [][]string, notes []string) {
	list := slices.Clone(a.Rows)
	latency := func(d answers.Compared) float64 { // not simulated: last
		if d.LatencySeconds == nil {
			return math.Inf(1)
		}
		return *d.LatencySeconds
	}
	slices.SortStableFunc(list, func(a, b answers.Compared) int { return cmp.Compare(latency(a), latency(b)) })
	for _, d := range list {
		value := func(x float64) string {
			switch {
			case d.Unit == "s":
				return duration(x)
			case x == 0:
				return "0 B"
			}
			return size(int64(x))
		}
		rows = append(rows, []string{d.Decision, d.Method, known(d.LatencySeconds, duration),
			known(d.PredictedSeconds, duration), known(d.Objective, value), known(d.Bound, value), known(d.Gap, percent),
			d.Status, known(d.EnergyJoules, joules), fmt.Sprintf("%.2f s", d.Seconds)})
		if p := d.Program; p != nil && d.Own != nil {
			text := fmt.Sprintf("%s %s: %s, bound %s, by a program of %s, %s and %s", d.Decision, d.Method, value(*d.Own),
				value(*d.OwnBound), plural(p.Rows, "row"), plural(p.Columns, "column"), plural(p.Nonzeros, "nonzero"))
			if p.LP != nil {
				text += fmt.Sprintf("; LP %s, %s", value(*p.LP), plural(int(p.Nodes), "node"))
			}
			if p.RootGap != nil {
				text += ", root gap " + percent(*p.RootGap)
			}
			notes = append(notes, text)
		}
		if d.Note != "" {
			about := d.Decision
			if about == "all" || about == "joint" {
				about += " " + d.Method
			}
			if n := about + ": " + d.Note; len(notes) == 0 || notes[len(notes)-1] != n {
				notes = append(notes, n)
			}
		}
	}
	notes = append(notes, a.Notes...)
	for _, of := range []string{"problem", "class", "waits"} {
		var rows []string
		for _, d := range a.Rows {
			if d.BoundOf == of && !slices.Contains(rows, d.Decision) {
				rows = append(rows, d.Decision)
			}
		}
		if len(rows) > 0 {
			notes = append(notes, fmt.Sprintf("bound of %s: %s", strings.Join(rows, ", "), answers.BoundsOf[of]))
		}
	}
	return "llrrrrrlrr", []string{"decision", "method", "simulated", "predicted", "objective", "bound", "gap", "status",
		"energy", "took"}, rows, notes
}
