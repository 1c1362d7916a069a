package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/kernels"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

func init() {
	addOfSystem("solve", newStitch)
	machinesOfSystems = append(machinesOfSystems, machineKind{"simt",
		[]string{"SIMT machine", "SMs", "wave", "shared of an SM", "L2", "DRAM rate", "launch"}, "lrrrrrr", simt.Presets,
		simt.PresetYAML, func(name string) (*machineView, error) {
			m, err := simt.Load(name)
			if err != nil {
				return nil, err
			}
			return &machineView{m, m.Name, m.Description, []string{m.Name, fmt.Sprint(m.SMs), fmt.Sprint(m.Wave(m.Start())),
				size(m.SM.SharedBytes), size(m.L2.SizeBytes), unit(m.DRAM.BytesPerSecond, "B/s"), duration(m.LaunchSeconds)},
				func(b *bytes.Buffer) { writeSIMT(b, m) }}, nil
		}})
}

func writeSIMT(b *bytes.Buffer, m *simt.Machine) {
	row(b, "name", "%s", m.Name)
	row(b, "description", "%s", m.Description)
	row(b, "clock", "%s", unit(m.ClockHz, "Hz"))
	row(b, "SMs", "%d, each with %d threads, %d blocks, %d registers and %s of shared memory", m.SMs, m.SM.Threads,
		m.SM.Blocks, m.SM.Registers, size(m.SM.SharedBytes))
	row(b, "block", "at most %d threads, %d registers each, %s of shared memory", m.Block.Threads, m.Block.Registers,
		size(m.Block.SharedBytes))
	row(b, "wave", "%d blocks of %d threads", m.Wave(m.Start()), m.Start().Threads)
	row(b, "L2", "%s, %s", size(m.L2.SizeBytes), unit(m.L2.BytesPerSecond, "B/s"))
	row(b, "DRAM", "%s, latency %s", unit(m.DRAM.BytesPerSecond, "B/s"), duration(m.DRAM.LatencySeconds))
	row(b, "launch", "%s", duration(m.LaunchSeconds))
	row(b, "barrier", "%s of all blocks of a wave", duration(m.Barrier(m.Wave(m.Start()))))
}

func newStitch() *cobra.Command {
	methods := &choice{value: "astitch", kind: "METHOD"}
	for _, m := range kernels.Methods() {
		methods.words = append(methods.words, cobra.CompletionWithDesc(m.Name, m.Description))
	}
	cmd := command("solve stitch")
	takesModel(cmd)
	read, full := addNetwork(cmd), cmd.Flags().Bool("full", false, "print all kernels, however many")
	batch := addOwnBatch(cmd)
	machine := cmd.Flags().String("hardware", "v100-simt", "built-in SIMT machine or YAML `file`")
	completeFlag(cmd, "hardware", cobra.FixedCompletions(simt.Presets(), cobra.ShellCompDirectiveDefault))
	addChoice(cmd, methods, "method", "method: "+strings.Join(plain(methods.words), ", "))
	training := cmd.Flags().Bool("training", false, "the network's training step: gradients and updates, too")
	about := cmd.Flags().String("explain", "", "say where this `operator` has gone, and why")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m := try(simt.Load(*machine))
		open := kernels.Open
		if *training {
			open = kernels.OpenTraining
		}
		g := try(open(args[0], batch.value, methods.value, read.options()))
		r, err := kernels.Run(cmd.Context(), g, m, methods.value)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", printable(args[0]), m.Name, err)
		}
		if *about != "" {
			e := try(kernels.Explain(r.Plan, *about))
			return emit(cmd, e, func(b *bytes.Buffer) { writeStitchExplanation(b, e) })
		}
		return finish(cmd, r, func(b *bytes.Buffer) { writeStitch(b, r, *full) }, nil)
	}
	return cmd
}

// stitchRows is the number of kernels that are printed without --full.
const stitchRows = 20

func writeStitch(b *bytes.Buffer, r *kernels.Result, full bool) {
	s := r.Summary
	row(b, "network", "%s, %s", printable(r.Network), plural(r.Operators, "operator"))
	row(b, "hardware", "%s", r.Hardware)
	row(b, "method", "%s", r.Method)
	row(b, "kernels", "%d memory-intensive, %s", s.MemoryKernels, plural(s.LibraryKernels, "library call"))
	row(b, "time", "%s: memory-intensive %s, library %s", duration(s.Seconds), duration(s.MemorySeconds),
		duration(s.LibrarySeconds))
	row(b, "DRAM", "%s transactions read, %s written by memory-intensive kernels", count(s.ReadTransactions),
		count(s.WriteTransactions))
	row(b, "links", "%d local, %d regional, %d global", s.Local, s.Regional, s.Global)
	if e := r.Exact; e != nil {
		row(b, "status", "%s: %d of %s proven, bound %s", e.Proof, e.Proven, plural(e.Scopes, "scope"), duration(e.Bound))
		row(b, "AStitch", "%s, at most %s over the best", duration(e.Rule), percent(e.Gap))
		row(b, "rules lose", "schemes %s, kernels %s", duration(e.Rule-e.Schemes), duration(e.Rule-e.Kernels))
	}
	most := stitchRows
	if full {
		most = len(r.Kernels)
	}
	listFirst(b, "", "kernel|<operators|groups|phases|blocks|bytes|time|<bound", r.Kernels, most,
		func(i int, k fusion.Kernel) []any {
			names := harness.Each(k.Groups, func(g fusion.Group) string { return g.DominantName })
			what := shorten(printable(strings.Join(names, ", ")), 44)
			blocks := fmt.Sprint(k.Blocks)
			if k.Library {
				blocks = ""
			}
			return []any{i, what, len(k.Groups), k.Phases, blocks, size(k.ReadBytes + k.WriteBytes), duration(k.Seconds),
				k.Time.Bound}
		})
}

func writeStitchExplanation(b *bytes.Buffer, e *kernels.Explanation) {
	row(b, "operator", "%s (%s)", printable(e.Operator), e.Kind)
	if len(e.Kernels) == 0 {
		row(b, "kernel", "none: it moves nothing")
	}
	for _, k := range e.Kernels {
		switch {
		case k.Library:
			row(b, "kernel", "%d, a library call", k.Kernel)
		case k.Again:
			row(b, "kernel", "%d, computed again there", k.Kernel)
		default:
			row(b, "kernel", "%d, group %d led by %s, phase %d", k.Kernel, k.Group, printable(k.Dominant), k.Phase)
		}
	}
	for _, l := range e.Links {
		reason := ""
		if l.Reason != "" {
			reason = ": " + l.Reason
		}
		row(b, l.Scheme.String(), "%s -> %s%s", printable(l.FromName), printable(l.ToName), reason)
	}
	for _, c := range e.Cuts {
		row(b, "not fused", "%s -> %s: %s", printable(c.FromName), printable(c.ToName), c.Reason)
	}
}
