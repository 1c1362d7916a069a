package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func newBind() *cobra.Command {
	cmd := command("solve bind")
	addSolving(cmd, binding.Methods(), answers.Bind,
		func(a *answers.AloneBinding) *answers.Alone { return &a.Alone }, writeBinding)
	return cmd
}

// addSolving adds flags, progress and output to the command of a decision, which run makes.
func addSolving[A any](cmd *cobra.Command, methods []solve.Method, run func(context.Context, network.Network,
	*hardware.Spec, int64, string, answers.AloneOptions) (A, error), of func(A) *answers.Alone,
	write func(*bytes.Buffer, A)) {
	takesModel(cmd)
	quiet, common := addQuiet(cmd), addScheduling(cmd, "its share")
	method := &choice{value: "search", kind: "METHOD", words: methodWords(methods)}
	addChoice(cmd, method, "method", oneOf(plain(method.words)))
	start := cmd.Flags().String("start", "",
		"schedule `file` to start from, of the same network, batch, chunk and accelerator")
	limit := addLimit(cmd, time.Minute, "time for the method, such as 60s")
	export := addFile(cmd, "export",
		"write the integer program (.lp), or the problem with the greedy choice (.json), to this `file`",
		".lp", ".json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show := newStatus(cmd, *quiet)
		defer show.end()
		opt := answers.AloneOptions{Options: withSolver(
			scheduler.Options{InPlace: *common.inPlace, Uneven: unevenOf(common.uneven), Chunk: common.chunk.value,
				TimeLimit: limit.value, Progress: stageProgress(show.solve(method.value, duration))})}
		spec := oneChip(*common.accelerator)
		net := try(network.Open(args[0], common.network.options()))
		if *start != "" {
			check(needsExact(methods, method.value))
			opened := try(scheduler.Open(*start, *common.accelerator))
			_, opt.Start = try2(opened.Restore(cmd.Context()))
		}
		answer, err := run(cmd.Context(), net, spec, common.batch.value, method.value, opt)
		if err != nil {
			if errors.Is(err, scheduler.ErrNoSolver) {
				err = explainSolver(err)
			}
			return err
		}
		alone := of(answer)
		alone.Model, alone.DType = args[0], common.network.dtype.value
		show.end()
		if strings.EqualFold(filepath.Ext(export.name), ".json") {
			data, err := alone.File(fmt.Sprintf("%s on %s, chunks of %d", alone.Model, alone.Hardware, alone.Chunk))
			if err == nil {
				err = replaceFile(export.name, data)
			}
			if err != nil {
				return err
			}
		} else if export.name != "" {
			m := try(alone.Program())
			check(writeProgram(export.name, m))
		}
		return finish(cmd, answer, func(b *bytes.Buffer) { write(b, answer) }, nil)
	}
}

func writeBinding(b *bytes.Buffer, a *answers.AloneBinding) {
	row(b, "binding", "%s (%s) on %s, batch %d in chunks of %d", a.Model, a.DType, a.Hardware, a.Batch, a.Chunk)
	row(b, "problem", "%s with %s, %s", plural(a.Instances, "instance"), plural(a.Labels, "choice"),
		plural(a.Edges, "edge"))
	writeAlone(b, &a.Alone)
	row(b, "spills", "%d, greedy %d", a.Spills, a.GreedySpills)
	writeNotes(b, a.Notes)
	if len(a.Changes) == 0 {
		fmt.Fprintf(b, "\nNothing changes against the greedy method.\n")
		return
	}
	// Groups of a network repeat, and so do their changes.
	type kind struct{ was, now string }
	groups, instances := map[kind][]string{}, map[kind]int{}
	var kinds []kind
	for _, c := range a.Changes {
		k := kind{c.Was.Text, c.Text}
		kinds, groups[k] = addOnce(kinds, k), addOnce(groups[k], c.Group)
		instances[k]++
	}
	list(b, fmt.Sprintf("%s of %d change against the greedy method", plural(len(a.Changes), "instance"), a.Instances),
		"<groups|instances|<greedy|<"+a.Method, kinds, func(_ int, k kind) []any {
			return []any{namesOf(groups[k]), instances[k], k.was, k.now}
		})
}

// namesOf lists the first names and the last one.
func namesOf(names []string) string {
	if n := len(names); n > 6 {
		names = append(names[:4:4], "...", names[n-1])
	}
	return strings.Join(names, " ")
}

// stageProgress passes a single stage's progress on, nil if none is shown.
func stageProgress(show func(milp.Progress)) func(string, milp.Progress) {
	if show == nil {
		return nil
	}
	return func(_ string, p milp.Progress) { show(p) }
}

// writeAlone writes how a method has ended and what it has found, beside the greedy answer.
func writeAlone(b *bytes.Buffer, a *answers.Alone) {
	end := ""
	if a.Stop != milp.Complete.String() {
		end = ", stopped: " + a.Stop
	}
	row(b, "method", "%s: %s in %s%s", a.Method, a.Status, duration(a.Seconds), end)
	row(b, "objective", "%s, bound %s, gap %s; greedy %s", duration(a.Objective), duration(a.Bound),
		gapText(a.Objective, a.Bound), duration(a.Greedy))
	if a.ThroughputPerSecond != nil && a.GreedyThroughputPerSecond != nil {
		row(b, "simulated", "%s, greedy %s", perSecond(*a.ThroughputPerSecond), perSecond(*a.GreedyThroughputPerSecond))
	}
}

func writeNotes(b *bytes.Buffer, notes []string) {
	for _, n := range notes {
		rowWrapped(b, "note", oneLine(n))
	}
}

func newSplit() *cobra.Command {
	cmd := command("solve split")
	addSolving(cmd, split.Methods(), answers.Split,
		func(a *answers.AloneSplit) *answers.Alone { return &a.Alone }, writeSplit)
	return cmd
}

func writeSplit(b *bytes.Buffer, a *answers.AloneSplit) {
	row(b, "groups", "%s (%s) on %s, batch %d in chunks of %d", a.Model, a.DType, a.Hardware, a.Batch, a.Chunk)
	row(b, "problem", "%s, %s of up to %s", plural(a.Layers, "layer"), plural(a.Candidates, "candidate"),
		plural(a.Longest, "layer"))
	writeAlone(b, &a.Alone)
	writeNotes(b, a.Notes)
	writeCuts(b, a.Method, a.Groups)
	if a.Method != "greedy" {
		writeCuts(b, "greedy", a.GreedyGroups)
	}
}

// writeCuts lists groups and how each is split, those alike together.
func writeCuts(b *bytes.Buffer, title string, groups []schedule.GroupCut) {
	// Networks repeat themselves, and so do their groups.
	type kind struct {
		split     string
		operators int
	}
	alike := map[kind][]schedule.GroupCut{}
	var kinds []kind
	for _, g := range groups {
		k := kind{"not split", g.Operators}
		if g.Factor > 1 {
			k.split = fmt.Sprintf("%d along %s", g.Factor, g.Dimension)
		}
		kinds = addOnce(kinds, k)
		alike[k] = append(alike[k], g)
	}
	list(b, title+": "+plural(len(groups), "group"), "<groups|<instances|operators of each|<first group: from|<to", kinds,
		func(_ int, k kind) []any {
			names := harness.Each(alike[k], func(g schedule.GroupCut) string { return g.Group })
			return []any{namesOf(names), k.split, k.operators, alike[k][0].First, alike[k][0].Last}
		})
}
