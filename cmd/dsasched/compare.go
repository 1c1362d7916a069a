package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/harness"
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
	asJSON, quiet, accelerator, read := addJSON(cmd), addQuiet(cmd), addHardware(cmd), addNetwork(cmd)
	batch, chunk := addBatch(cmd, "where the greedy schedule is fastest")
	limit := addLimit(cmd, 0,
		"time for each exact method, such as 60s (default: limits that do not depend on the machine)")
	limit.orNever = true
	tables := addTables(cmd)
	cmd.Flags().StringSliceVar(&decisions, "decision", nil,
		"decisions to compare, with commas between: split, order, bind, memory, issue, joint, all (default: each)")
	completeFlag(cmd, "decision", cobra.FixedCompletions(answers.Comparisons(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, d := range decisions {
			if !slices.Contains(answers.Comparisons(), d) {
				return usagef("--decision %q, expected some of %s", d, quoted(answers.Comparisons()))
			}
		}
		spec, err := hardware.Load(*accelerator)
		if err != nil {
			return err
		}
		src, err := network.Open(args[0], read.options())
		if err != nil {
			return err
		}
		show := newStatus(cmd, *quiet)
		known := answers.ComparisonsOn(spec)
		total := cmp.Or(len(decisions), len(known))
		cells := harness.NewTracker("", 0, total, func(p harness.Progress) {
			p.LeftSeconds = -1 // one decision says nothing of another
			show.cells(p)
		})
		list, err := answers.Compare(cmd.Context(), src, spec, batch.value, answers.CompareOptions{Decisions: decisions,
			Options: scheduler.Options{Chunk: chunk.value, TimeLimit: limit.value}, Started: cells.Start, Ended: cells.End})
		show.end()
		if err != nil && len(list) == 0 {
			if stopped := cmd.Context().Err(); stopped != nil {
				return stopped
			}
			return err
		}
		answer := &compareJSON{Model: args[0], Hardware: spec.Name, Batch: batch.value, Rows: list}
		if len(decisions) == 0 && len(known) < len(answers.Comparisons()) {
			answer.Notes = append(answer.Notes, "bind and all are left out: their exact methods do not know cores of several kinds")
		}
		align, header, rows, notes := answer.table()
		unwritten := tables.write(tableOf("compare", answer.heading(), align, header, rows, append(
			[]string{"objective, bound, gap: of the decision's own measure, which is not time; throughput, energy: of the " +
				"whole schedule, simulated; took: to decide"}, notes...)), cmd.Name())
		if out := emit(cmd, *asJSON, answer, answer.write); out != nil {
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
	if names, most := a.fastest(); most > 0 {
		rowWrapped(b, "fastest", perSecond(most)+": "+firstOf(names, 3))
		rowWrapped(b, "note", "an objective is a proxy, not time: 'dsasched best' searches for the least time")
	}
	for _, n := range notes {
		rowWrapped(b, "note", n)
	}
}

func (a *compareJSON) heading() string {
	text := fmt.Sprintf("%s on %s, batch %d", a.Model, a.Hardware, a.Batch)
	if len(a.Rows) > 0 {
		text += fmt.Sprintf(" in chunks of %d", a.Rows[0].Chunk)
	}
	return text
}

func (a *compareJSON) table() (align string, header []string, rows [][]string, notes []string) {
	for _, d := range a.Rows {
		value := func(x float64) string {
			switch {
			case d.Unit == "s":
				return duration(x)
			case x == 0:
				return "0 B"
			}
			return size(int64(x))
		}
		bound, gap, throughput, objective, energy := "–", "–", "–", "–", "–"
		if d.Objective != nil {
			objective = value(*d.Objective)
		}
		if d.Bound != nil {
			bound, gap = value(*d.Bound), percent(*d.Gap)
		}
		if d.ThroughputPerSecond != nil {
			throughput = perSecond(*d.ThroughputPerSecond)
		}
		if d.EnergyJoules != nil {
			energy = joules(*d.EnergyJoules)
		}
		rows = append(rows, []string{d.Decision, d.Method, objective, bound, gap, d.Status, throughput, energy,
			fmt.Sprintf("%.2f s", d.Seconds)})
		if d.Note != "" {
			about := d.Decision
			if about == "all" {
				about += " " + d.Method
			}
			if n := about + ": " + d.Note; len(notes) == 0 || notes[len(notes)-1] != n {
				notes = append(notes, n)
			}
		}
	}
	notes = append(notes, a.Notes...)
	return "llrrrlrrr", []string{"decision", "method", "objective", "bound", "gap", "status", "throughput", "energy",
		"took"}, rows, notes
}

// fastest lists the rows of most throughput.
func (a *compareJSON) fastest() (rows []string, most float64) {
	for _, d := range a.Rows {
		switch {
		case d.ThroughputPerSecond == nil || *d.ThroughputPerSecond < most:
			continue
		case *d.ThroughputPerSecond > most:
			rows, most = nil, *d.ThroughputPerSecond
		}
		rows = append(rows, d.Decision+" "+d.Method)
	}
	return rows, most
}
