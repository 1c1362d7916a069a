package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func newSchedule() *cobra.Command {
	cmd := command("schedule")
	takesModel(cmd)
	quiet, full := addQuiet(cmd), addFull(cmd)
	recipe, draw := addRecipe(cmd, recipes.Default), addPictures(cmd)
	recipe.clusters = &choice{value: "batch", kind: "WHAT", words: scheduler.Divisions()}
	addChoice(cmd, recipe.clusters, "clusters",
		"what the clusters divide between them: "+strings.Join(recipe.clusters.words, ", "))
	out := addFile(cmd, "o out", "write the whole schedule to this `file`")
	dump := &choice{kind: "STAGE", words: harness.Each(scheduler.Stages(), func(st scheduler.Stage) cobra.Completion {
		return cobra.CompletionWithDesc(st.Name, st.Description)
	})}
	addChoice(cmd, dump, "dump", "print what a stage has decided, line by line, instead of the summary: "+strings.Join(
		plain(dump.words), ", "))
	times := cmd.Flags().Bool("times", false, "print the CPU seconds of each stage and strategy to the standard error")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		check(draw.check())
		if v, err := recipes.Lookup(recipe.variant.value); err == nil && os.Getenv("GOMEMLIMIT") == "" &&
			(len(v.Fallback) > 1 || v.Name == recipes.Whole().Name) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(1750 << 20)) // two schedules at a time, of 100 000 operators
		}
		recipe.figures = draw.trace.name == "" && draw.gantt.name == "" && draw.html.name == ""
		show := newStatus(cmd, *quiet)
		defer show.end()
		if asJSON(cmd) && dump.value != "" {
			return usagef("--json and --dump exclude each other")
		}
		clock := &stageClock{}
		if *times {
			recipe.deciding = clock.deciding
		}
		origin, r := recipe.run(cmd, args[0], show)
		show.end()
		if *times {
			try(cmd.ErrOrStderr().Write(clock.table()))
		}
		unwritten := out.write(r.File(origin).Write)
		if dump.value != "" {
			text, err := r.Dump(dump.value)
			if err == nil {
				_, err = cmd.OutOrStdout().Write([]byte(text))
			}
			_, undrawn := draw.draw(cmd, origin, r)
			return cmp.Or(err, unwritten, undrawn)
		}
		printed := printResult(cmd, origin, r, out.name, draw, *full)
		return cmp.Or(printed, unwritten)
	}
	return cmd
}

// A stageClock adds up the CPU time of strategies. That of strategies at work side by side counts for each.
type stageClock struct {
	mu    sync.Mutex
	spent []stageTime
}

type stageTime struct {
	stage, strategy string
	times           int
	cpu             time.Duration
}

func (c *stageClock) deciding(stage, strategy string) (decided func()) {
	began := harness.ProcessorTime()
	return func() {
		took := harness.ProcessorTime() - began
		c.mu.Lock()
		defer c.mu.Unlock()
		at := slices.IndexFunc(c.spent, func(x stageTime) bool { return x.stage == stage && x.strategy == strategy })
		if at < 0 {
			at, c.spent = len(c.spent), append(c.spent, stageTime{stage: stage, strategy: strategy})
		}
		c.spent[at].times++
		c.spent[at].cpu += took
	}
}

// table lists the stages in their order.
func (c *stageClock) table() []byte {
	var rows [][]string
	for _, st := range scheduler.Stages() {
		for _, x := range c.spent {
			if x.stage == st.Name {
				rows = append(rows, []string{x.stage, x.strategy, fmt.Sprint(x.times), fmt.Sprintf("%.3f", x.cpu.Seconds())})
			}
		}
	}
	var b bytes.Buffer
	writeTable(&b, "llrr", []string{"stage", "strategy", "times", "CPU s"}, rows)
	return b.Bytes()
}

func addFull(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("full", false, "print all groups and the whole order, however long")
}

// printResult draws a simulated schedule and prints its numbers, and the files that were written: that of the
// schedule, unless it is "", and those drawn.
func printResult(cmd *cobra.Command, origin schedulefile.Origin, r *scheduler.Result, file string, draw *pictures,
	full bool) error {
	written, undrawn := draw.draw(cmd, origin, r)
	if unwritten := new(fs.PathError); undrawn != nil && !errors.As(undrawn, &unwritten) {
		return undrawn
	}
	if file != "" {
		written = append([]string{file}, written...)
	}
	answer := answers.NewReport(r, origin)
	check(answer.AddSteady(cmd.Context(), r))
	printed := emit(cmd, answer, func(b *bytes.Buffer) {
		writeReport(b, answer, full)
		if len(written) > 0 {
			b.WriteByte('\n')
		}
		for _, name := range written {
			row(b, "written", "%s", printable(name))
		}
	})
	return cmp.Or(printed, undrawn)
}

func addOnce[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// What fits a screen; --full lifts it.
const (
	groupRows  = 5
	orderLines = 3
	nameWidth  = 12 // of an operator
)

func writeReport(b *bytes.Buffer, a *answers.Report, full bool) {
	row(b, "schedule", "%s (%s) on %s, batch %d, variant %s", a.Model, a.DType, a.Hardware, a.Batch, a.Variant)
	near, holder, of := "L1", "core", "cluster"
	if a.Level == scheduler.LevelLLB {
		near, holder, of = "LLB", "cluster", "chip"
		row(b, "level", "LLB: a cluster counts as a core, and its LLB as the L1")
	}
	text := perSecond(a.ThroughputPerSecond) + " (single batch)"
	if a.SteadyThroughputPerSecond != nil {
		text += ", " + perSecond(*a.SteadyThroughputPerSecond) + " (steady state)"
	}
	row(b, "throughput", "%s", text)
	row(b, "latency", "%s (no less than %s for these commands)", duration(a.LatencySeconds), duration(a.BoundSeconds))
	text = energyText(a.EnergyJoules, a.AveragePowerWatts)
	if e := a.Energy; e != nil {
		of := func(joules float64) string { return percent(joules / *a.EnergyJoules) }
		text += fmt.Sprintf(": units %s, moves %s, static %s", of(e.Matrix+e.Vector), of(e.L1+e.LLB+e.DDR), of(e.Static))
	}
	row(b, "energy", "%s", text)
	rowWrapped(b, "limited by", a.LimitedBy)
	row(b, "utilisation", "%s of peak MACs, %s of peak vector operations", percent(a.MMEUtilization),
		percent(a.VMEUtilization))
	t, whole := a.Time[a.Last], a.LatencySeconds
	text = fmt.Sprintf("compute %s, exposed moves %s, launches %s, idle %s", percent(t.ComputeSeconds/whole),
		percent(t.MoveSeconds/whole), percent(t.LaunchSeconds/whole), percent(t.IdleSeconds/whole))
	if slices.ContainsFunc(a.Time, func(x answers.TimeReport) bool { // those at work differ
		return x.IdleSeconds < whole && (x.IdleSeconds != t.IdleSeconds || x.ComputeSeconds != t.ComputeSeconds)
	}) {
		text = fmt.Sprintf("cluster %d: %s", a.Last, text)
	}
	rowWrapped(b, "time", text)
	var busy []string
	for _, u := range a.Busy {
		if u.Share >= 0.0005 { // would not round to zero
			busy = append(busy, u.What+" "+percent(u.Share))
		}
	}
	rowOf(b, "busy", busy)
	row(b, "shares", "%s, in chunks of %d", cmp.Or(sharesText(a.Shares), "none, the clusters work on one batch"), a.Chunk)
	row(b, "working", "%d of %s, %d of %s in each", a.Working.Clusters, plural(a.Working.AllClusters, of),
		a.Working.Cores, plural(a.Working.AllCores, holder))
	if a.Clusters != scheduler.OverBatch.Name() {
		idle := harness.Each(a.Time, func(t answers.TimeReport) string { return percent(t.IdleSeconds / a.LatencySeconds) })
		rowWrapped(b, "clusters", fmt.Sprintf("divide by %s; idle %s", a.Clusters, strings.Join(idle, ", ")))
	}
	var tuned []string
	for _, t := range a.Tuned {
		text = fmt.Sprintf("%d: fails", t.Chunk)
		if t.ThroughputPerSecond != nil {
			text = fmt.Sprintf("%d: %s", t.Chunk, perSecond(*t.ThroughputPerSecond))
		}
		if t.Chosen {
			text += " (kept)"
		}
		tuned = append(tuned, text)
	}
	if len(tuned) > 0 {
		rowOf(b, "tuned chunk", tuned)
	}
	if len(a.Also) > 0 {
		rowWrapped(b, "also tried", strings.Join(a.Also, "; "))
	}
	launches := a.Commands[isa.Launch]
	row(b, "kernels", "%s in a cluster's program, %d executed", plural(int(launches.Static), "launch"), launches.Dynamic)
	writeNotes(b, a.Notes)

	fmt.Fprintf(b, "\n%s, %s\n", plural(len(a.Groups), "group"), plural(len(a.Order.Instances), "instance"))
	writeGroups(b, a.Groups, full)

	fmt.Fprintf(b, "\nOrder: %s (groups by number; 2*0: two of group 0 in a row)\n", a.Order.Name)
	lines := orderLines
	if full {
		lines = len(a.Order.Instances) + 1
	}
	order := harness.Each(a.Order.Instances, func(i answers.InstanceReport) int { return i.GroupIndex })
	b.WriteString(wrap(strip(order), " ", lineWidth, lines))
	if len(a.Order.Candidates) > 0 {
		var rows [][]string
		for _, c := range a.Order.Candidates {
			mark := ""
			if c.Chosen {
				mark = "chosen"
			}
			rows = append(rows, []string{c.Name, size(c.MovedBytes), percent(c.Utilization), size(c.PeakBytes), mark})
		}
		writeTable(b, "lrrrl", []string{"order", "moved", "L1 utilisation", "L1 peak, all cores", ""}, rows)
	}

	b.WriteByte('\n')
	var joins []string
	for _, j := range a.Joins {
		text := fmt.Sprintf("%s %d", j.Kind, j.Count)
		if j.MovedBytes > 0 {
			text += " (" + size(j.MovedBytes) + ")"
		}
		joins = append(joins, text)
	}
	rowOf(b, "joins", joins)
	row(b, near, "%s", bufferText(a.Memory.L1, holder))
	if a.Memory.LLB.CapacityBytes > 0 {
		row(b, "LLB", "%s", bufferText(a.Memory.LLB, "cluster"))
	}
	row(b, "spills", "%s", spillText(a.Spills))

	b.WriteByte('\n')
	var rows [][]string
	for i, l := range []struct {
		name   string
		writes answers.Counts
		moved  answers.ByteCounts
	}{{"DDR", a.TensorWrites.DDR, a.Traffic.DDR}, {"LLB", a.TensorWrites.LLB, a.Traffic.LLB},
		{near, a.TensorWrites.L1, a.Traffic.L1}} {
		if i == 1 && a.Memory.LLB.CapacityBytes == 0 {
			continue
		}
		rows = append(rows, []string{l.name, fmt.Sprint(l.writes.Static), fmt.Sprint(l.writes.Dynamic),
			size(l.moved.Dynamic)})
	}
	writeTable(b, "lrrr", []string{"", "tensor writes: static", "dynamic", "bytes moved"}, rows)
}

func writeGroups(b *bytes.Buffer, groups []answers.GroupReport, full bool) {
	var rows [][]string
	skip := len(groups) - groupRows
	for k, g := range groups {
		// The first two thirds and the last third are shown.
		if head := groupRows * 2 / 3; !full && skip > 0 && k >= head && k < head+skip {
			if k == head {
				rows = append(rows, []string{"...", fmt.Sprintf("%d more: --full shows them", skip), "", "", "", "", ""})
			}
			continue
		}
		split := "-"
		if g.SplitDim != nil {
			split = fmt.Sprintf("%s in %d", *g.SplitDim, g.SplitFactor)
		}
		ops := shorten(g.Ops[0], nameWidth)
		if n := len(g.Ops); n > 1 {
			ops += " .. " + shorten(g.Ops[n-1], nameWidth)
		}
		cores := g.Bindings[0]
		if len(g.Bindings) > 1 && full {
			cores = strings.Join(g.Bindings, " or ")
		} else if len(g.Bindings) > 1 {
			cores += " .."
		}
		if !g.FitsL1 {
			split = "too big"
		}
		rows = append(rows, []string{g.Name, ops, fmt.Sprint(len(g.Ops)), split, fmt.Sprint(g.Instances), cores,
			strings.Join(harness.Each(g.OutputLevels, strings.ToUpper), ", ")})
	}
	writeTable(b, "llrlrll", []string{"name", "operators", "ops", "split", "inst.", "cores", "output"}, rows)
}

func bufferText(l answers.BufferReport, per string) string {
	if l.CapacityBytes == 0 {
		return "none"
	}
	return fmt.Sprintf("peak %s of %s per %s (%s), mean %s", size(l.PeakBytes), size(l.CapacityBytes), per,
		percent(float64(l.PeakBytes)/float64(l.CapacityBytes)), size(int64(l.MeanBytes)))
}

func spillText(spills []answers.SpillReport) string {
	var parts []string
	for _, w := range [][2]string{{"l1", "llb"}, {"l1", "ddr"}, {"llb", "ddr"}} {
		n, sum := 0, int64(0)
		for _, s := range spills {
			if w == [2]string{s.From, s.To} {
				n++
				sum += s.Bytes
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d from %s to %s (%s)", n, strings.ToUpper(w[0]),
				strings.ToUpper(w[1]), size(sum)))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// sharesText says how many batch elements the clusters get: "2 on 3 clusters, 1 on 1 cluster".
func sharesText(shares []int64) string {
	var parts []string
	for n := 0; n < len(shares); {
		of, before := shares[n], n
		for n < len(shares) && shares[n] == of {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d on %s", of, plural(n-before, "cluster")))
	}
	return strings.Join(parts, ", ")
}

// strip writes an order as the groups of its instances: "2*0 1" for two instances
// of group 0 and one of group 1, "3-7" for one each of groups 3 to 7.
func strip(groups []int) []string {
	type run struct{ group, times int }
	var list []run
	for _, g := range groups {
		if n := len(list); n > 0 && list[n-1].group == g {
			list[n-1].times++
		} else {
			list = append(list, run{g, 1})
		}
	}
	var words []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[i].times == list[j+1].times && list[j+1].group == list[j].group+1 {
			j++
		}
		word := fmt.Sprint(list[i].group)
		if j-i >= 2 {
			word += fmt.Sprintf("-%d", list[j].group)
		} else {
			j = i
		}
		if list[i].times > 1 {
			word = fmt.Sprintf("%d*%s", list[i].times, word)
		}
		words = append(words, word)
		i = j + 1
	}
	return words
}
