package cli

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm"
	"github.com/dsasched/dsasched/systems/llm/sharding"
)

func init() {
	addOfSystem("solve", newTensor)
	divided[overChips] = func(cmd *cobra.Command, f *recipeFlags, model string, quiet bool) (any, func(*bytes.Buffer)) {
		a := f.shard(cmd, model, quiet)
		return a, func(b *bytes.Buffer) { writeSharded(b, a) }
	}
}

func newTensor() *cobra.Command {
	cmd := command("solve tensor")
	takesModelAs(cmd, "NETWORK")
	f := addSolver(cmd, sharding.Methods(), "`file` to write the JSON to as well")
	flags := addChips(cmd, "the pieces")
	batch := addNumber(cmd, "batch", 1, 1, "batch size, of all chips together")
	read := addNetwork(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec, recipe := try2(flags.open())
		net := try(network.Open(args[0], read.options()))
		show, opts := solverOptions[[]int](cmd, f)
		defer show.end()
		list := try(llm.Shard(cmd.Context(), net, spec, batch.value, []string{f.method.value}, recipe, false, opts,
			scheduler.Options{}))
		a := &list[0]
		show.end()
		a.DType = read.dtype.value
		return finish(cmd, a, func(b *bytes.Buffer) { writeSharded(b, a) }, f.out.writeJSON(a, "  "))
	}
	return cmd
}

// chipFlags name a machine of one or several chips, and the variant that schedules what a chip runs.
type chipFlags struct {
	hardware *string
	variant  *choice
}

func addChips(cmd *cobra.Command, scheduled string) chipFlags {
	f := chipFlags{cmd.Flags().String("hardware", "stcp920x4", "built-in machine of several chips or YAML `file`"),
		addScheduler(cmd, scheduled)}
	completeFlag(cmd, "hardware", cobra.FixedCompletions(chips.Presets(), cobra.ShellCompDirectiveDefault))
	return f
}

func addScheduler(cmd *cobra.Command, scheduled string) *choice {
	c := &choice{value: recipes.Default, kind: "VARIANT", words: variantNames()}
	addChoice(cmd, c, "variant", "variant that schedules "+scheduled+", as 'dsasched variants' lists them")
	return c
}

func (f chipFlags) open() (spec *hardware.Spec, recipe scheduler.Recipe, err error) {
	if spec, err = chips.LoadMachine(*f.hardware); err == nil {
		recipe, err = recipes.Lookup(f.variant.value)
	}
	return spec, recipe, err
}

// overChips is the word of --clusters for operators divided over chips.
const overChips = "tensor"

// shard divides the operators of a network over the chips of a machine, with proof by the formulas.
func (f *recipeFlags) shard(cmd *cobra.Command, name string, quiet bool) *llm.Sharded {
	for _, flag := range []string{"out", "dump", "times", "tuned", "trace", "chakra", "gantt", "memory", "html", "full"} {
		if cmd.Flags().Changed(flag) {
			check(usagef("--clusters %s and --%s exclude each other: the pieces have a schedule each", overChips, flag))
		}
	}
	spec := try(scheduler.OpenMachine(*f.accelerator))
	recipe, opt := f.recipe(cmd, scheduler.Options{InPlace: *f.inPlace, Uneven: unevenOf(f.uneven), Chunk: f.chunk.value})
	net := try(network.Open(name, f.network.options()))
	const method = "search"
	show := newStatus(cmd, quiet)
	defer show.end()
	list := try(llm.Shard(cmd.Context(), net, spec, f.batch.value, []string{method}, recipe, true,
		binding.Options{TimeLimit: opt.TimeLimit, Progress: show.solve(method, decimal)}, opt))
	list[0].DType = f.network.dtype.value
	return &list[0]
}

func writeSharded(b *bytes.Buffer, a *llm.Sharded) {
	row(b, "model", "%s (%s) on %s of %s, batch %d", printable(a.Model), a.DType, plural(int(a.Chips), "chip"),
		printable(a.Hardware), a.Batch)
	row(b, "method", "%s", a.Method)
	row(b, "status", "%s, %s by the formulas (bound %s)", a.Status, duration(a.Objective), duration(a.Bound))
	if a.Stop != milp.Complete.String() {
		row(b, "stopped by", "%s", a.Stop)
	}
	row(b, "latency", "%s, of which collectives take %s", duration(a.Seconds), duration(a.CollectiveSeconds))
	least := a.Seconds
	if a.Overlapped != nil {
		row(b, "overlapped", "%s as one program, in chunks of %d", duration(*a.Overlapped), a.Chunk)
		least = min(least, *a.Overlapped)
	}
	row(b, "one chip", "%s (%.2f times as long)", duration(a.OneChip), a.OneChip/least)
	if a.BatchDivided != nil {
		row(b, "batch divided", "%s (%.2f times as long)", duration(*a.BatchDivided), *a.BatchDivided/least)
	}
	row(b, "simulated", "%s by %s, %d of them different", plural(a.Pieces, "piece"), a.Variant, a.Distinct)
	for _, n := range a.Notes {
		row(b, "note", "%s", printable(n))
	}
	type kind struct{ what, layout string }
	var kinds []kind
	count := map[kind]int{}
	for _, o := range a.Operators {
		k := kind{o.Kind, o.Layout}
		if count[k]++; count[k] == 1 {
			kinds = append(kinds, k)
		}
	}
	slices.SortStableFunc(kinds, func(x, y kind) int { return count[y] - count[x] })
	list(b, "", "operators|<kind|<layout", kinds,
		func(_ int, k kind) []any { return []any{count[k], printable(k.what), k.layout} })
	var rows [][]string
	for _, name := range []string{chips.AllGather, chips.AllReduce, chips.ReduceScatter, chips.AllToAll} {
		n, bytes, seconds := 0, int64(0), 0.0
		for _, m := range a.Moves {
			if m.Kind == name {
				n, bytes, seconds = n+1, bytes+m.Bytes, seconds+m.Seconds
			}
		}
		if n > 0 {
			rows = append(rows, []string{fmt.Sprint(n), name, size(bytes), duration(seconds)})
		}
	}
	if len(rows) > 0 {
		b.WriteByte('\n')
		writeTable(b, "rlrr", []string{"times", "collective", "tensors", "time"}, rows)
	}
}
