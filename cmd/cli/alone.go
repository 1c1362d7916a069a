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

// aloneSettings holds the settings of `dsasched solve bind` and `dsasched solve split`.
type aloneSettings struct {
	net    network.Network
	dtype  string
	method string
	spec   *hardware.Spec
	batch  int64
	opt    answers.AloneOptions
}

func newBind() *cobra.Command {
	cmd := command("solve bind")
	addSolving(cmd, binding.Methods(), func(ctx context.Context, set aloneSettings) (*answers.Alone, any,
		func(*bytes.Buffer), error) {
		a, err := answers.Bind(ctx, set.net, set.spec, set.batch, set.method, set.opt)
		if err != nil {
			return nil, nil, nil, err
		}
		return &a.Alone, a, func(b *bytes.Buffer) { writeBinding(b, a) }, nil
	})
	return cmd
}

// addSolving makes a command of a decision that run makes: its flags, its progress
// and the printing of the answer.
func addSolving(cmd *cobra.Command, methods []solve.Method,
	run func(context.Context, aloneSettings) (common *answers.Alone, answer any, write func(*bytes.Buffer), err error)) {
	takesModel(cmd)
	quiet, common := addQuiet(cmd), addScheduling(cmd, "its share")
	method := &choice{value: "search", kind: "METHOD", words: methodWords(methods)}
	addChoice(cmd, method, "method", oneOf(plain(method.words)))
	start := cmd.Flags().String("start", "",
		"schedule of the same network, batch, chunk and accelerator to begin with, a `file` of -o of 'dsasched schedule' or 'best'")
	limit := addLimit(cmd, time.Minute, "time for the method, such as 60s")
	export := addFile(cmd, "export",
		"write the integer program (.lp), or the problem with the greedy choice (.json), to this `file`",
		".lp", ".json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show := newStatus(cmd, *quiet)
		defer show.end()
		set := aloneSettings{method: method.value, batch: common.batch.value, dtype: common.network.dtype.value,
			opt: answers.AloneOptions{Options: withSolver(
				scheduler.Options{InPlace: *common.inPlace, Uneven: unevenOf(common.uneven), Chunk: common.chunk.value,
					TimeLimit: limit.value,
					Progress:  stageProgress(show.solve(method.value, duration))})}}
		var err error
		set.spec = try(hardware.Load(*common.accelerator))
		set.net = try(network.Open(args[0], common.network.options()))
		if *start != "" {
			check(needsExact(methods, method.value))
			opened := try(scheduler.Open(*start, *common.accelerator))
			_, set.opt.Start = try2(opened.Restore(cmd.Context()))
		}
		alone, answer, write, err := run(cmd.Context(), set)
		if err != nil {
			if errors.Is(err, scheduler.ErrNoSolver) {
				err = explainSolver(err)
			}
			return err
		}
		alone.Model, alone.DType = args[0], set.dtype
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
		return finish(cmd, answer, write, nil)
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

// writeAlone writes what a method says of its answer.
func writeAlone(b *bytes.Buffer, a *answers.Alone) {
	writeSolved(b, a.Method, a.Status, a.Stop, a.Seconds, a.Objective, a.Bound, a.Gap, a.Greedy)
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
	addSolving(cmd, split.Methods(), func(ctx context.Context, set aloneSettings) (*answers.Alone, any,
		func(*bytes.Buffer), error) {
		a, err := answers.Split(ctx, set.net, set.spec, set.batch, set.method, set.opt)
		if err != nil {
			return nil, nil, nil, err
		}
		return &a.Alone, a, func(b *bytes.Buffer) { writeSplit(b, a) }, nil
	})
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
	list(b, title+": "+plural(len(groups), "group"), "<groups|<instances|operators of each|<the first from|<to", kinds,
		func(_ int, k kind) []any {
			names := harness.Each(alike[k], func(g schedule.GroupCut) string { return g.Group })
			return []any{namesOf(names), k.split, k.operators, alike[k][0].First, alike[k][0].Last}
		})
}
