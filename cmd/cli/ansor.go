package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
	"github.com/dsasched/dsasched/systems/ansor/tuning"
)

func init() {
	addOfSystem("", newTasks, newTune, newExplainKernel)
	readKernels = func(name string) (any, int64) {
		t := readTuned(name)
		return t, t.Chunk
	}
}

// kernelFlags say which kernels of which networks are meant.
type kernelFlags struct {
	*schedulingFlags
	variant *choice
}

func addKernels(cmd *cobra.Command) *kernelFlags {
	cmd.ValidArgsFunction = completeModel
	words := variantWords(recipes.Searched())
	f := &kernelFlags{addScheduling(cmd, "the one that is fastest by the generator's rules"),
		&choice{value: "ansor", kind: "VARIANT", words: words}}
	addChoice(cmd, f.variant, "variant", "whose kernels: "+strings.Join(plain(words), " or "))
	return f
}

// toTune holds the flags' settings.
type toTune struct {
	nets   []network.Network
	spec   *hardware.Spec
	recipe scheduler.Recipe
	opt    scheduler.Options
}

func (f *kernelFlags) open(ctx context.Context, names []string) *toTune {
	k := &toTune{opt: scheduler.Options{InPlace: *f.inPlace, Uneven: unevenOf(f.uneven), Chunk: f.chunk.value}}
	k.spec, k.recipe = oneChip(*f.accelerator), try(recipes.Lookup(f.variant.value))
	for _, name := range names {
		net := try(network.Open(name, f.network.options()))
		net.Name = name
		k.nets = append(k.nets, net)
	}
	if k.opt.Chunk == 0 {
		rules := try(recipes.Lookup(k.recipe.Fallback[0])) // without trials
		r := try(scheduler.Run(ctx, k.nets[0], k.spec, f.batch.value, rules, k.opt))
		k.opt.Chunk = r.Chunk
	}
	return k
}

func oneOrMoreModels(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("MODEL is missing: %s", modelHint)
	}
	return nil
}

// tasksJSON is the answer of 'dsasched tasks'.
type tasksJSON struct {
	Model    []string   `json:"models"`
	Hardware string     `json:"hardware"`
	Variant  string     `json:"variant"`
	Batch    int64      `json:"batch"`
	Chunk    int64      `json:"chunk"`
	Tasks    []taskJSON `json:"tasks"`
}

type taskJSON struct {
	Task        string      `json:"task"`
	Name        string      `json:"name"`
	Weights     []int64     `json:"weights"`
	Operations  int64       `json:"operations"`
	RuleSeconds float64     `json:"rule_s"`
	FloorSecs   float64     `json:"bound_s"`
	Layers      []layerJSON `json:"layers"`
}

type layerJSON struct {
	Layer       string             `json:"layer"`
	Sketches    []ansor.Sketch     `json:"sketches"`
	Derivations []ansor.Derivation `json:"derivations"`
	Rule        []string           `json:"rule"`
}

func newTasks() *cobra.Command {
	cmd := command("tasks")
	cmd.Args = oneOrMoreModels
	full := cmd.Flags().Bool("full", false, "print the derivation and the loops of every layer")
	f := addKernels(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k := f.open(cmd.Context(), args)
		tasks, _ := try2(tuning.Tasks(cmd.Context(), k.nets, k.spec, f.batch.value, k.recipe, k.opt))
		answer := tasksJSON{Model: args, Hardware: k.spec.Name, Variant: k.recipe.Name, Batch: f.batch.value,
			Chunk: k.opt.Chunk}
		for _, t := range tasks {
			x := taskJSON{Task: tuning.TaskName(t.Key), Name: t.Name, Weights: t.Weights, Operations: t.Operations,
				FloorSecs: t.Floor}
			x.RuleSeconds = try(t.Seconds(cmd.Context(), t.Rule))
			for i, n := range t.Rule {
				sketches, derivations := t.Sketches(i)
				x.Layers = append(x.Layers, layerJSON{t.Layer(i), sketches, derivations, nestLines(n.Text(t.Output(i)))})
			}
			answer.Tasks = append(answer.Tasks, x)
		}
		return emit(cmd, answer, func(b *bytes.Buffer) { writeTasks(b, answer, *full) })
	}
	return cmd
}

func nestLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func writeTasks(b *bytes.Buffer, a tasksJSON, full bool) {
	row(b, "tasks", "%d of %s on %s by %s, batch %d in chunks of %d", len(a.Tasks), strings.Join(a.Model, ", "),
		a.Hardware, a.Variant, a.Batch, a.Chunk)
	list(b, "", "<task|<kernel|runs|by rules|bound", a.Tasks, func(_ int, t taskJSON) []any {
		return []any{t.Task, printable(t.Name), runsText(t.Weights), duration(t.RuleSeconds), duration(t.FloorSecs)}
	})
	if !full {
		return
	}
	for _, t := range a.Tasks {
		for _, l := range t.Layers {
			fmt.Fprintf(b, "\n%s of task %s: %s\n", printable(l.Layer), t.Task, plural(len(l.Sketches), "sketch"))
			for _, d := range l.Derivations {
				fmt.Fprintf(b, "  %s of %s: %s\n", d.Rule, printable(d.Operator), printable(d.Why))
			}
			for _, line := range l.Rule {
				fmt.Fprintf(b, "    %s\n", line)
			}
		}
	}
}

func runsText(weights []int64) string {
	words := harness.Each(weights, func(w int64) string { return fmt.Sprint(w) })
	return strings.Join(words, " + ")
}

func newTune() *cobra.Command {
	objective := &choice{value: "f1", kind: "OBJECTIVE", words: []cobra.Completion{
		cobra.CompletionWithDesc("f1", "the sum of the networks' times"),
		cobra.CompletionWithDesc("f2", "what is above the times that are good enough"),
		cobra.CompletionWithDesc("f3", "the geometric mean of the speedups"),
		cobra.CompletionWithDesc("f4", "the sum, without tasks that have stopped improving"),
	}}
	divide := &choice{value: "gradient", kind: "SCHEDULER", words: []cobra.Completion{
		cobra.CompletionWithDesc("gradient", "where the objective promises to fall most"),
		cobra.CompletionWithDesc("round-robin", "in turn"),
		cobra.CompletionWithDesc("published", "the gradient as published, which knows no bounds"),
	}}
	cmd := command("tune")
	cmd.Args = oneOrMoreModels
	quiet := addQuiet(cmd)
	f := addKernels(cmd)
	workers := addWorkers(cmd, "programs measured")
	trials := addNumber(cmd, "trials", 0, 0, "programs to measure in all; 0: 64 for each kernel")
	seed := cmd.Flags().Uint64("seed", 1, "seed of the random choices")
	addChoice(cmd, objective, "objective", "objective of all networks together: "+strings.Join(plain(objective.words), ", "))
	addChoice(cmd, divide, "scheduler", "how the trials are divided: "+strings.Join(plain(divide.words), ", "))
	enough := cmd.Flags().DurationSlice("enough", nil,
		"for f2: target `times` of the networks, such as 3ms,500us; default: 0.8 of the time by rules")
	cmd.Flags().Lookup("enough").DefValue = "" // not []
	patience := addNumber(cmd, "patience", 0, 0, "end after so many trials without a gain; 0: never")
	limit := addLimit(cmd, 0, "time for the tuning, such as 10m; 0: no limit")
	limit.orNever = true
	out := addFile(cmd, "o out", "`file` to write the tuned kernels to")
	log := cmd.Flags().String("log", "", "`file` to append each trial to and to continue from")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if x := max(trials.value, patience.value); x > maxTrials {
			return usagef("--trials or --patience is %d, expected at most %d", x, maxTrials)
		}
		if n := len(*enough); n > 0 && (objective.value != "f2" || n != len(args) || slices.Min(*enough) <= 0) {
			return usagef("--enough is %v, expected a time above 0 for each of %s, and --objective f2", *enough,
				plural(len(args), "network"))
		}
		show := newStatus(cmd, *quiet)
		defer show.end()
		k := f.open(cmd.Context(), args)
		set := tuning.Settings{Options: ansor.Options{Trials: int(trials.value), Seed: *seed,
			Objective: objective.value, Scheduler: divide.value, Patience: int(patience.value), Workers: int(workers.value)}}
		for _, x := range *enough {
			set.Enough = append(set.Enough, x.Seconds())
		}
		set.Progress = show.trials()
		if *log != "" {
			file := openLog(*log, &set)
			defer file.Close()
		}
		ctx := cmd.Context()
		if limit.value > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit.value)
			defer cancel()
		}
		tuned, err := tuning.Tune(ctx, k.nets, k.spec, f.batch.value, k.recipe, k.opt, set)
		late := errors.Is(err, context.DeadlineExceeded) && cmd.Context().Err() == nil
		switch {
		case tuned == nil && late:
			return fmt.Errorf("--time-limit of %v: found no kernel measured by then, expected one", limit.value)
		case tuned == nil:
			return err
		case late:
			err = nil // what the limit allowed is the answer
		}
		show.end()
		tuned.DType, tuned.Grain, tuned.Dims, tuned.AllowUnknown = f.network.dtype.value, f.network.parts(), f.network.dims.m,
			*f.network.allowUnknown
		tuned.Hardware = *f.accelerator
		unwritten := out.writeJSON(tuned, " ")
		if printed := emit(cmd, tuned, func(b *bytes.Buffer) { writeTuned(b, tuned, out.name) }); printed != nil {
			return printed
		}
		return cmp.Or(unwritten, err) // interrupted, although there is an answer
	}
	return cmd
}

// maxTrials keeps what is measured within a few gigabytes.
const maxTrials = 1 << 20

// maxLog is of a log of so many trials: a line has some hundred bytes, and up to 1500.
const maxLog = maxTrials << 11

// trialLog is appended to behind its last whole line. Until then the file keeps all that it
// has: it may turn out to be another one.
type trialLog struct {
	*os.File
	whole int64
	begun bool
}

func (l *trialLog) Write(line []byte) (int, error) {
	if !l.begun {
		if err := l.Truncate(l.whole); err != nil {
			return 0, err
		}
		if _, err := l.Seek(l.whole, io.SeekStart); err != nil {
			return 0, err
		}
		l.begun = true
	}
	return l.File.Write(line)
}

// openLog reads what a log has and goes on behind it, without a last line that was cut off.
func openLog(name string, set *tuning.Settings) *os.File {
	data, err := safefile.ReadAtMost(name, maxLog)
	if !errors.Is(err, fs.ErrNotExist) {
		check(err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if len(whole) > 0 {
		set.Before = bytes.NewReader(whole)
	} else if len(data) > 0 {
		check(fmt.Errorf("%s: log: line 1 has no end, expected what was tuned, or an empty file", name))
	}
	file := try(os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o666))
	set.Log, set.Name = &trialLog{File: file, whole: int64(len(whole))}, name
	return file
}

// trials shows how far a tuning is.
func (s *status) trials() func(ansor.Progress) {
	if s == nil {
		return nil
	}
	return func(p ansor.Progress) {
		s.show(func(time.Duration) string {
			return printable(fmt.Sprintf("%d of %d trials; %s: %s, by rules %s", p.Trials, p.Of, p.Task.Name,
				duration(p.Seconds), duration(p.RuleSeconds)))
		})
	}
}

func writeTuned(b *bytes.Buffer, t *tuning.Tuned, file string) {
	row(b, "tuned", "%s on %s by %s, batch %d in chunks of %d", strings.Join(t.Networks, ", "), t.Hardware,
		t.Variant, t.Batch, t.Chunk)
	row(b, "search", "%s over %s, seed %d, objective %s, %s", plural(t.Trials, "trial"), plural(len(t.Tasks), "kernel"),
		t.Seed, t.Objective, t.Scheduler)
	for _, n := range t.Result {
		row(b, "kernels", "of %s: %s one after the other, by rules %s: %.3fx", printable(n.Name), duration(n.Seconds),
			duration(n.RuleSeconds), n.RuleSeconds/n.Seconds)
	}
	if file != "" {
		row(b, "written", "%s", file)
	}
	list(b, "", "<task|<kernel|runs|trials|by rules|tuned|faster|bound", t.Tasks, func(_ int, x tuning.Task) []any {
		return []any{x.Task, printable(x.Name), runsText(x.Weights), x.Trials, duration(x.RuleSeconds), duration(x.Seconds),
			fmt.Sprintf("%.3fx", x.RuleSeconds/x.Seconds), duration(x.FloorSecs)}
	})
}

// kernelJSON is the answer of 'dsasched explain-kernel'.
type kernelJSON struct {
	Task        string             `json:"task"`
	Name        string             `json:"name"`
	Seconds     float64            `json:"kernel_s"`
	RuleSeconds float64            `json:"rule_s"`
	FloorSecs   float64            `json:"bound_s"`
	Layers      []tuning.Layer     `json:"layers"`
	Derivations []ansor.Derivation `json:"derivations"`
	Neighbours  []ansor.Neighbour  `json:"neighbours"`
}

func newExplainKernel() *cobra.Command {
	cmd := command("explain-kernel")
	cmd.Args = oneArg("FILE", "give the path of a file that 'dsasched tune' or 'dsasched schedule -o' has written")
	accelerator := addScheduleHardware(cmd)
	name := cmd.Flags().String("task", "",
		"`task` as 'dsasched tune' prints it, the name of a layer of a schedule, or its number from 0")
	full := cmd.Flags().Bool("full", false, "print every other choice, not the three best of a decision")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		data := try(safefile.Read(args[0]))
		var file struct{ Kind string }
		if json.Unmarshal(data, &file) == nil && file.Kind == schedulefile.Kind {
			a := scheduledKernels(cmd.Context(), args[0], *accelerator, *name)
			return emit(cmd, a, a.write)
		}
		t := readTuned(args[0])
		if cmd.Flags().Changed("hardware") {
			return usagef("--hardware is for files of schedules: %s has tuned kernels, and names its own", args[0])
		}
		if *name == "" {
			return usagef("--task is missing, expected one of the %d tasks of %s that 'dsasched tune' printed, or its number from 0",
				len(t.Tasks), args[0])
		}
		at := slices.IndexFunc(t.Tasks, func(x tuning.Task) bool { return x.Task == *name })
		for i := range t.Tasks {
			if fmt.Sprint(i) == *name {
				at = i
			}
		}
		if at < 0 {
			return usagef("--task is %q, expected one of the %d tasks of %s or its number from 0", *name, len(t.Tasks), args[0])
		}
		task, err := attempt(func() *ansor.Task { return taskOf(cmd.Context(), t, t.Tasks[at].Task) })
		check(blame(args[0], err))
		p, _ := try2(t.Program(task))
		a := kernelJSON{Task: t.Tasks[at].Task, Name: task.Name, FloorSecs: task.Floor, Layers: t.Tasks[at].Layers}
		a.Seconds = try(task.Seconds(cmd.Context(), p))
		a.RuleSeconds = try(task.Seconds(cmd.Context(), task.Rule))
		for i := range p {
			_, derivations := task.Sketches(i)
			a.Derivations = append(a.Derivations, derivations...)
		}
		a.Neighbours = try(task.Neighbours(cmd.Context(), p))
		return emit(cmd, a, func(b *bytes.Buffer) { writeKernel(b, a, *full) })
	}
	return cmd
}

// scheduledJSON is the answer of 'dsasched explain-kernel' for a schedule.
type scheduledJSON struct {
	Schedule string             `json:"schedule"`
	Hardware string             `json:"hardware"`
	Variant  string             `json:"variant"`
	Kernels  []scheduler.Kernel `json:"kernels"`
	one      bool
}

// scheduledKernels are the kernels of a schedule's file, or the one of this name or number.
func scheduledKernels(ctx context.Context, file, accelerator, name string) *scheduledJSON {
	_, r := try2(restore(ctx, file, accelerator))
	a := &scheduledJSON{Schedule: file, Hardware: r.Machine.Name, Variant: r.Recipe.Name}
	var err error
	a.Kernels, err = r.Kernels(ctx)
	check(blame(file, err))
	if name == "" {
		return a
	}
	for i, k := range a.Kernels {
		if k.Layer == name || fmt.Sprint(i) == name {
			a.Kernels, a.one = a.Kernels[i:i+1], true
			return a
		}
	}
	check(usagef("--task is %q, expected a layer among the %d kernels of %s or its number from 0", name, len(a.Kernels),
		file))
	return a
}

func (a *scheduledJSON) write(b *bytes.Buffer) {
	if !a.one {
		row(b, "kernels", "%d of %s on %s by %s, products and attentions alone", len(a.Kernels), printable(a.Schedule),
			a.Hardware, a.Variant)
		list(b, "", "|<layer|steps|<loops|cores|alone|<limited by", a.Kernels, func(i int, k scheduler.Kernel) []any {
			limit, _, _ := strings.Cut(k.Limit, ":") // the share of a chain is said of the one kernel
			return []any{i, printable(k.Layer), k.Steps, k.Form, k.Cores, duration(k.Seconds), limit}
		})
		b.WriteString("\n--task 0 shows the loops of the first\n")
		return
	}
	k := a.Kernels[0]
	row(b, "kernel", "%s, %s alike", printable(k.Layer), plural(k.Steps, "step"))
	row(b, "alone", "%s on %s, limited by %s", duration(k.Seconds), plural(int(k.Cores), "core"), k.Limit)
	chosen := "by the generator's rules"
	if k.Chosen {
		chosen = "chosen"
	}
	row(b, "loops", "%s, %s", k.Form, chosen)
	for _, line := range k.Nest {
		fmt.Fprintf(b, "  %s\n", printable(line))
	}
	var buffers [][]string
	sum := int64(0)
	for _, x := range k.Buffers {
		sum += x.Bytes
		buffers = append(buffers, []string{printable(x.Operand), size(x.Bytes)})
	}
	fmt.Fprintf(b, "\nin the L1 of each core: %s of %s\n", size(sum), size(k.L1Bytes))
	if len(buffers) > 0 {
		writeTable(b, "lr", []string{"buffer of", "all rooms"}, buffers)
	}
	list(b, "", "<busy|time|share|commands|bytes", k.Uses, func(_ int, u scheduler.Use) []any {
		count, bytes := "", ""
		if u.Count > 0 {
			count = fmt.Sprint(u.Count)
		} else {
			bytes = size(u.Bytes)
		}
		return []any{u.What, duration(u.Seconds), percent(u.Share), count, bytes}
	})
	fmt.Fprintf(b, "\nbytes read and written: %s in the DDR, %s in the LLB, %s in all L1\n", size(k.Accesses.DDR),
		size(k.Accesses.LLB), size(k.Accesses.L1))
}

func readTuned(name string) *tuning.Tuned {
	t, err := tuning.Read(try(safefile.Read(name)))
	check(blame(name, err))
	t.Name = name
	return t
}

// taskOf makes a task of a file again.
func taskOf(ctx context.Context, t *tuning.Tuned, name string) *ansor.Task {
	spec := try(hardware.Load(t.Hardware))
	recipe := try(recipes.Lookup(t.Variant))
	dtype, err := model.ParseDType(t.DType)
	check(blame("dtype", err))
	uneven := schedule.UnevenFastest
	if t.Uneven != "" {
		uneven, err = schedule.ParseUneven(t.Uneven)
		check(blame("uneven", err))
	}
	var nets []network.Network
	for _, n := range t.Networks {
		net := try(network.Open(n, network.Options{DType: dtype, Grain: grain.Grain(t.Grain), Dims: t.Dims,
			AllowUnknown: t.AllowUnknown}))
		net.Name = n
		nets = append(nets, net)
	}
	tasks, from := try2(tuning.Tasks(ctx, nets, spec, t.Batch, recipe,
		scheduler.Options{Chunk: t.Chunk, InPlace: t.InPlace, Uneven: uneven, Tuned: t}))
	if from.Fingerprint != t.Fingerprint {
		check(fmt.Errorf("hardware_fingerprint is %s, %s has %s: the accelerator is another one now", t.Fingerprint,
			t.Hardware, from.Fingerprint))
	}
	at := slices.IndexFunc(tasks, func(task *ansor.Task) bool { return tuning.TaskName(task.Key) == name })
	if at < 0 {
		check(fmt.Errorf("task %s is no kernel of %s any more", name, strings.Join(t.Networks, ", ")))
	}
	return tasks[at]
}

func writeKernel(b *bytes.Buffer, a kernelJSON, full bool) {
	row(b, "kernel", "%s, task %s", printable(a.Name), a.Task)
	row(b, "time", "%s, by rules %s, bound %s", duration(a.Seconds), duration(a.RuleSeconds), duration(a.FloorSecs))
	for _, d := range a.Derivations {
		rowWrapped(b, "derived", fmt.Sprintf("%s of %s: %s", d.Rule, printable(d.Operator), printable(d.Why)))
	}
	for _, l := range a.Layers {
		fmt.Fprintf(b, "\n%s\n", printable(l.Layer))
		for _, line := range l.Nest {
			fmt.Fprintf(b, "  %s\n", printable(line))
		}
	}
	slices.SortStableFunc(a.Neighbours, func(x, y ansor.Neighbour) int {
		return cmp.Or(cmp.Compare(x.Layer, y.Layer), cmp.Compare(x.Decision, y.Decision), cmp.Compare(x.Seconds, y.Seconds))
	})
	count := 0
	list(b, plural(len(a.Neighbours), "other choice")+" measured; the best of each decision",
		"<layer|<decision|<would be|kernel|against it", a.Neighbours, func(i int, x ansor.Neighbour) []any {
			if i > 0 && (x.Layer != a.Neighbours[i-1].Layer || x.Decision != a.Neighbours[i-1].Decision) {
				count = 0
			}
			if count++; !full && count > 3 {
				return nil
			}
			return []any{printable(x.Layer), x.Decision, strings.Join(x.Lines, "; "), duration(x.Seconds),
				fmt.Sprintf("%+.1f %%", 100*(x.Seconds/a.Seconds-1))}
		})
}
