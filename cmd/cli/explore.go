package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/explore"
)

// tooSmall begins what [scheduler.Shortage] says.
const tooSmall = "the DDR is too small"

func init() { addOfSystem("", newSweep, newCompareHardware) }

type gridJSON struct {
	Points   int   `json:"points"`
	Finished int   `json:"finished"`
	Rows     []any `json:"rows"`
}

// gridFlags are the settings of the commands that run a grid.
type gridFlags struct {
	csv, figure *outFile
	tables      *tableFiles
	workers     *number
	limit       *limit
	inPlace     *bool
	uneven      *choice
	quiet       *bool
	read        *networkFlags
	// Of commands whose points can be kept; nil: they can't.
	cells string
}

func addGrid(cmd *cobra.Command) *gridFlags {
	return &gridFlags{
		csv:     addFile(cmd, "csv", "write the rows to this `file` as CSV"),
		figure:  addFigure(cmd, "o out", "draw the throughput into this `file`"),
		tables:  addTables(cmd),
		workers: addWorkers(cmd, "points computed"),
		limit:   addLimit(cmd, time.Minute, "time for each integer program, such as 60s"),
		inPlace: addInPlace(cmd), uneven: addUneven(cmd), quiet: addQuiet(cmd), read: addNetwork(cmd),
	}
}

// run computes the points of a grid, prints them by write and writes the files. If
// it is interrupted, what is finished is printed, and no file is touched.
func (g *gridFlags) run(cmd *cobra.Command, axes []explore.Axis,
	show func(*bytes.Buffer, *explore.Plan, []explore.Explored) pointTable) error {
	grid := explore.Grid{Axes: axes, Network: g.read.options(),
		Options: withSolver(scheduler.Options{InPlace: *g.inPlace, Uneven: unevenOf(g.uneven), TimeLimit: g.limit.value})}
	plan, err := grid.Plan()
	if err != nil {
		var wrong *explore.GridError
		if errors.As(err, &wrong) || errors.Is(err, scheduler.ErrNoSolver) {
			return explainSolver(err)
		}
		return err
	}
	var list []explore.Explored
	var stopped error
	if g.cells != "" {
		if list, err = g.kept(cmd, plan); err != nil {
			return err
		}
	} else {
		show := newStatus(cmd, *g.quiet)
		list, stopped = plan.Explore(cmd.Context(),
			explore.ExploreOptions{Workers: int(g.workers.value), Progress: show.cells})
		show.end()
	}
	if stopped != nil && len(list) == 0 {
		return stopped
	}
	var head bytes.Buffer
	made := show(&head, plan, list)
	var unwritten error
	if stopped == nil {
		// The rows are printed all the same.
		unwritten = cmp.Or(g.files(plan, list), g.tables.write(made.table(cmd.Name()), cmd.Name()))
	}
	answer := gridJSON{plan.Points(), len(list), harness.Each(list, plan.JSON)}
	check(emit(cmd, answer, func(b *bytes.Buffer) {
		b.Write(head.Bytes())
		b.WriteByte('\n')
		made.write(b)
		if stopped != nil {
			fmt.Fprintf(b, "\n%d of %d points are finished; no file is written\n", len(list), plan.Points())
		}
		if stopped != nil || unwritten != nil {
			return
		}
		for _, o := range []*outFile{g.csv, g.figure, g.tables.tex, g.tables.md} {
			if o.name != "" {
				row(b, "written", "%s", printable(o.name))
			}
		}
	}))
	check(cmp.Or(stopped, unwritten))
	for _, e := range list {
		if e.Row != nil {
			return nil
		}
	}
	return fmt.Errorf("no point has a schedule: %s", oneLine(list[0].Err))
}

// kept computes the points of a grid that are not in the folder for them.
func (g *gridFlags) kept(cmd *cobra.Command, plan *explore.Plan) (list []explore.Explored, err error) {
	show := newStatus(cmd, *g.quiet)
	defer show.end()
	opt := harness.Options{Out: g.cells, Workers: int(g.workers.value), Stderr: cmd.ErrOrStderr(), Quiet: *g.quiet}
	if show != nil {
		opt.Stderr, opt.Progress = show, show.cells
	}
	e := plan.Experiment(cmd.Name(), func(all []explore.Explored) error { list = all; return nil })
	return list, e.Run(cmd.Context(), opt)
}

func (g *gridFlags) files(plan *explore.Plan, list []explore.Explored) error {
	_, err := writeFiles([]fileToWrite{
		{g.csv, func(w io.Writer) error { _, err := w.Write(plan.CSV(list)); return err }},
		{g.figure, func(w io.Writer) error {
			fig, err := plan.Figure(list)
			return writeFigure(w, g.figure.name, g.figure.name, fig, err)
		}},
	})
	return err
}

func newSweep() *cobra.Command {
	var sets []string
	cmd := command("sweep")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		return completeModel(cmd, nil, word)
	}
	g := addGrid(cmd)
	cmd.Flags().StringVar(&g.cells, "cells", "", "keep finished points in this `folder` and reuse those found there")
	completeFlag(cmd, "cells", completeFolders)
	cmd.Flags().StringArrayVar(&sets, "set", nil, "values of a setting, as `KEY=VALUE,...`; may be repeated")
	completeFlag(cmd, "set", completeSet)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && slices.Contains(explore.GridKeys(), unknown.GetSpecifiedName()) {
			return usagef("%v (give --set %s=...) (see '%s --help')", err, unknown.GetSpecifiedName(), cmd.CommandPath())
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		axes := try(gridAxes(args, sets))
		if !slices.ContainsFunc(axes, func(a explore.Axis) bool { return a.Key == "dtype" }) {
			axes = append([]explore.Axis{{Key: "dtype", Values: []string{g.read.dtype.value}}}, axes...)
		}
		return g.run(cmd, axes, writeSweep)
	}
	return cmd
}

// gridAxes reads --set KEY=A,B.
func gridAxes(models, sets []string) ([]explore.Axis, error) {
	var axes []explore.Axis
	if len(models) > 0 {
		axes = append(axes, explore.Axis{Key: "model", Values: models})
	}
	for _, s := range sets {
		key, values, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, usagef("--set %q, expected KEY=VALUE or KEY=VALUE,VALUE", s)
		}
		if key == "model" && len(models) > 0 {
			return nil, usagef("--set %s: the networks are given already: %s", s, quoted(models))
		}
		axes = append(axes, explore.Axis{Key: key, Values: strings.Split(values, ",")})
	}
	if !slices.ContainsFunc(axes, func(a explore.Axis) bool { return a.Key == "model" }) {
		return nil, usagef("MODEL is missing: %s", modelHint)
	}
	return axes, nil
}

// completeSet completes keys, and the values of those that have names.
func completeSet(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const more = cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	key, values, ok := strings.Cut(word, "=")
	if !ok {
		keys := harness.Each(explore.GridKeys(), func(k string) cobra.Completion { return k + "=" })
		if d, err := hardware.Describe("stcp920"); err == nil {
			for _, f := range d.Fields() {
				keys = append(keys, "hardware."+f+"=")
			}
		}
		return keys, more
	}
	var names []string
	switch key {
	case "model":
		names = zoo.Names()
	case "hardware":
		names = hardware.Presets()
	case "variant":
		names = plain(variantNames())
	case "dtype":
		names = floatTypes()
	case "grain":
		names = grains()
	default:
		if d, err := scheduler.LookupStage(key); err == nil {
			for _, s := range d.Strategies {
				names = append(names, s.Name)
			}
		}
	}
	// What stands before the last comma stays.
	head := key + "=" + values[:strings.LastIndexByte(values, ',')+1]
	var words []cobra.Completion
	for _, n := range names {
		if !slices.Contains(strings.Split(values, ","), n) {
			words = append(words, head+n)
		}
	}
	return words, more
}

func writeSweep(b *bytes.Buffer, plan *explore.Plan, list []explore.Explored) pointTable {
	points := plural(len(list), "point")
	items := []string{points}
	var shown []int
	for i, a := range plan.Axes {
		if len(a.Values) == 1 {
			items = append(items, a.Key+" "+printable(plan.Labels(i)[0]))
		} else {
			shown = append(shown, i)
		}
	}
	t := pointsOf(plan, list, shown, false)
	if t.title = "Sweep of " + points; len(items) > 1 {
		t.title += ": " + strings.Join(items[1:], ", ")
	}
	rowOf(b, "sweep", items)
	return t
}

// pointTable is a table of what came out of a grid, and of why there is nothing.
type pointTable struct {
	title    string
	align    string
	header   []string
	rows     [][]string
	failures []string
	note     string // "": none
}

func (p pointTable) write(b *bytes.Buffer) {
	writeTable(b, p.align, p.header, p.rows)
	for _, f := range p.failures {
		b.WriteString(f + "\n")
	}
	if p.note != "" {
		b.WriteByte('\n')
		rowWrapped(b, "note", p.note)
	}
}

func (p pointTable) table(command string) harness.Table {
	return tableOf(command, p.title, p.align, p.header, p.rows, append([]string{"throughput: elements of the batch per " +
		"second; matrix, vector: of the units' peak; share: of the time that what limits is busy"}, slices.DeleteFunc(
		append(slices.Clone(p.failures), p.note), func(s string) bool { return s == "" })...))
}

// pointsOf lists the axes that are shown, and what came out; vector is whether the vector unit has a column.
func pointsOf(plan *explore.Plan, list []explore.Explored, shown []int, vector bool) pointTable {
	var header []string
	labels := map[int]map[string]string{}
	for _, i := range shown {
		header = append(header, plan.Axes[i].Key)
		labels[i] = map[string]string{}
		for k, l := range plan.Labels(i) {
			labels[i][plan.Axes[i].Values[k]] = l
		}
	}
	header = append(header, "used chunk", "throughput", "latency", "energy", "of peak MACs")
	if vector {
		header = append(header, "of peak vector")
	}
	header = append(header, "DDR bytes", "limited by", "")
	align := strings.Repeat("l", len(shown)) + strings.Repeat("r", len(header)-len(shown)-2) + "ll"
	var failures []string
	remark := func(text string) string {
		k := slices.IndexFunc(failures, func(f string) bool { return strings.HasSuffix(f, ") "+text) })
		if k < 0 {
			k = len(failures)
			failures = append(failures, fmt.Sprintf("(%d) %s", k+1, text))
		}
		return fmt.Sprintf("(%d)", k+1)
	}
	var rows [][]string
	for _, e := range list {
		cells := make([]string, 0, len(header))
		for _, i := range shown {
			cells = append(cells, printable(cmp.Or(labels[i][e.Values[i]], e.Values[i])))
		}
		if r := e.Row; r != nil {
			cells = append(cells, fmt.Sprint(r.BatchesPerCluster), perSecond(r.ThroughputPerSecond), duration(r.LatencySeconds),
				known(r.EnergyJoules, joules), percent(r.MMEUtilization))
			if vector {
				cells = append(cells, percent(r.VMEUtilization))
			}
			cells = append(cells, size(r.MovedBytes.DDR), e.LimitedBy, percent(e.LimitShare))
			if slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, tooSmall) }) {
				cells[len(cells)-1] += " " + remark(tooSmall+" for the network")
			}
		} else {
			cells = append(append(cells, "", "none"), make([]string, len(header)-len(shown)-3)...)
			cells = append(cells, remark("no schedule: "+oneLine(e.Err)))
		}
		rows = append(rows, cells)
	}
	return pointTable{align: align, header: header, rows: rows, failures: failures, note: plan.NotMonotone(list)}
}

func newCompareHardware() *cobra.Command {
	var machines, variants []string
	cmd := command("compare-hardware")
	takesModel(cmd)
	g := addGrid(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&machines, "hardware", nil,
		"built-in accelerators or YAML `files`, with commas between (default: all built-in ones)")
	completeFlag(cmd, "hardware", completeHardware)
	f.StringSliceVar(&variants, "variant", []string{recipes.Default}, "`variants` of the scheduler, with commas between")
	completeFlag(cmd, "variant", cobra.FixedCompletions(variantNames(), cobra.ShellCompDirectiveNoFileComp))
	batch, chunk := addBatch(cmd, "tune")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(machines) == 0 {
			machines = hardware.Presets()
		}
		return g.run(cmd, []explore.Axis{
			{Key: "model", Values: args}, {Key: "dtype", Values: []string{g.read.dtype.value}},
			{Key: "batch", Values: []string{batch.String()}},
			{Key: "chunk", Values: []string{chunk.String()}}, {Key: "hardware", Values: machines},
			{Key: "variant", Values: variants},
		}, writeHardwareComparison)
	}
	return cmd
}

func writeHardwareComparison(b *bytes.Buffer, plan *explore.Plan, list []explore.Explored) pointTable {
	if len(list) == 0 {
		return pointTable{}
	}
	at := func(key string) int {
		return slices.IndexFunc(plan.Axes, func(a explore.Axis) bool { return a.Key == key })
	}
	first := func(key string) string { return printable(plan.Labels(at(key))[0]) }
	title := fmt.Sprintf("%s (%s), batch %s", first("model"), first("dtype"), first("batch"))
	row(b, "network", "%s", title)
	shown := []int{at("hardware")}
	if variant := at("variant"); slices.ContainsFunc(list,
		func(e explore.Explored) bool { return e.Values[variant] != list[0].Values[variant] }) {
		shown = append(shown, variant)
	} else {
		row(b, "variant", "%s", first("variant"))
		title += ", variant " + first("variant")
	}
	t := pointsOf(plan, list, shown, true)
	t.title = title
	return t
}
