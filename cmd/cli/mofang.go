package cli

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/systems/mofang/balance"
	"github.com/dsasched/dsasched/systems/mofang/pipelining"
	"github.com/dsasched/dsasched/systems/mofang/streams"
)

func init() {
	addOfSystem("solve", newLayering, newPartition, newPipeline)
}

// layeringJSON is the answer of `dsasched solve layering`.
type layeringJSON struct {
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	DType    string `json:"dtype"`
	Batch    int64  `json:"batch"`
	*balance.Layering
}

func newLayering() *cobra.Command {
	cmd := command("solve layering")
	takesModelAs(cmd, "NETWORK")
	f := addSolver(cmd, balance.LayerMethods(), "`file` to write the JSON to as well")
	defaultMethod(cmd, f, "mofang")
	accelerator, read, share := addHardware(cmd), addNetwork(cmd), addEfficiency(cmd)
	batch := addNumber(cmd, "batch", 1, 1, "batch size")
	threshold := cmd.Flags().Float64("threshold", 0,
		"for mofang: largest imbalance of a split, as a share of its work; 0 is 0.5")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !(*threshold >= 0 && *threshold <= 1) {
			return usagef("--threshold is %v, expected 0 to 1", *threshold)
		}
		check(checkEfficiency(*share))
		spec := oneChip(*accelerator)
		device := try(streams.NewDevice(spec, *share))
		net := try(network.Open(args[0], read.options()))
		g := try(net.Graph(batch.value))
		ops, _ := try2(streams.Operators(g, device))
		show, opts := solverOptions[[][]int](cmd, f)
		defer show.end()
		set := balance.LayerOptions{Threshold: *threshold}
		set.Options = opts
		a := try(balance.LayerOperators(cmd.Context(), net.Name, &device.Machine, ops, f.method.value, set))
		show.end()
		answer := layeringJSON{net.Name, spec.Name, read.dtype.value, batch.value, a}
		return finish(cmd, answer, answer.write, f.out.writeJSON(answer, "  "))
	}
	return cmd
}

func addEfficiency(cmd *cobra.Command) *float64 {
	return cmd.Flags().Float64("efficiency", streams.Efficiency,
		"share of the peak that kernels reach, above 0 and up to 1")
}

func checkEfficiency(share float64) error {
	if !(share > 0 && share <= 1) {
		return usagef("--efficiency is %v, expected more than 0 and at most 1", share)
	}
	return nil
}

// writeEnd prints how a method has ended.
func writeEnd(b *bytes.Buffer, status milp.Status, stop milp.Stop) {
	row(b, "status", "%s", status)
	if stop != milp.Complete {
		row(b, "stopped by", "%s", stop)
	}
}

func (a *layeringJSON) write(b *bytes.Buffer) {
	row(b, "model", "%s (%s) on %s, batch %d", printable(a.Model), a.DType, printable(a.Hardware), a.Batch)
	row(b, "method", "%s", a.Method)
	writeEnd(b, a.Status, a.Stop)
	row(b, "latency", "%s (one by one %s, greedily %s)", duration(a.Seconds), duration(a.Sequential), duration(a.Greedy))
	row(b, "bound", "%s", duration(a.Bound))
	row(b, "utilisation", "%s", percent(a.Utilization))
	if a.Sets > 0 {
		row(b, "search", "%d down-closed sets, %d transitions", a.Sets, a.Transitions)
	}
	list(b, "", "layer|time|busy|<mode|<operators", a.Layers, func(i int, l balance.Layer) []any {
		return []any{i, duration(l.Seconds), percent(l.Utilization), l.Mode,
			shorten(printable(strings.Join(l.Operators, " ")), 60)}
	})
}

// pipelineJSON is the answer of `dsasched solve pipeline`.
type pipelineJSON struct {
	Model   string `json:"model"`
	Server  string `json:"server"`
	DType   string `json:"dtype"`
	Devices int    `json:"devices"`
	Batch   int64  `json:"batch"`
	*balance.Pipeline
}

func newPipeline() *cobra.Command {
	cmd := command("solve pipeline")
	takesModelAs(cmd, "NETWORK")
	f := addSolver(cmd, balance.PipelineMethods(), "`file` to write the JSON to as well")
	defaultMethod(cmd, f, "mofang")
	machine := cmd.Flags().String("server", "v100x16", "built-in machine of several devices or YAML `file`")
	completeFlag(cmd, "server", cobra.FixedCompletions(chips.Presets(), cobra.ShellCompDirectiveDefault))
	devices := addNumber(cmd, "devices", 4, 1, "number of devices")
	batch := addNumber(cmd, "batch", 256, 1, "batch size of a training step")
	read, share := addNetwork(cmd), addEfficiency(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		check(checkEfficiency(*share))
		if max(devices.value, batch.value) > math.MaxInt32 {
			return usagef("--devices and --batch are at most %d", math.MaxInt32)
		}
		n := try(chips.Load(*machine))
		net := try(network.Open(args[0], read.options()))
		chain := try(balance.NewChain(net, n, int(batch.value), *share))
		show, opts := solverOptions[*pipelining.Plan](cmd, f)
		defer show.end()
		a := try(chain.Pipeline(cmd.Context(), int(devices.value), f.method.value, opts))
		show.end()
		answer := pipelineJSON{net.Name, n.Name, read.dtype.value, int(devices.value), batch.value, a}
		return finish(cmd, answer, answer.write, f.out.writeJSON(answer, "  "))
	}
	return cmd
}

func (a *pipelineJSON) write(b *bytes.Buffer) {
	row(b, "model", "%s (%s) on %d devices of %s, batch %d", printable(a.Model), a.DType, a.Devices,
		printable(a.Server), a.Batch)
	row(b, "method", "%s", a.Method)
	writeEnd(b, a.Status, a.Stop)
	row(b, "micro-batches", "%d of up to %s", a.MicroBatches, plural(a.Samples, "sample"))
	row(b, "batch", "%s, %s", duration(a.Simulated.Seconds), perSecond(a.Throughput))
	row(b, "fill, drain", "%s, %s", duration(a.Simulated.FillSeconds), duration(a.Simulated.DrainSeconds))
	used := ""
	if n := len(a.Stages); n < a.Devices {
		used = fmt.Sprintf(", of the devices used (%d)", n)
	}
	row(b, "idle", "%s%s", percent(a.Simulated.IdleShare), used)
	row(b, "energy", "%s%s", joules(a.Simulated.EnergyJoules), used)
	fits := "fits in"
	if !a.Fits {
		fits = "MORE THAN the"
	}
	row(b, "memory", "%s on the fullest device, %s %s", size(int64(a.Bytes)), fits, size(int64(a.MemoryBytes)))
	list(b, "", "stage|micro-batch|link|operators|<first|<last", a.Stages, func(i int, s balance.Stage) []any {
		return []any{i, duration(s.Seconds), duration(s.LinkSeconds), s.Layers, printable(shorten(s.First, 28)),
			printable(shorten(s.Last, 28))}
	})
}
