package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/hardware/simt"
	"github.com/dsasched/dsasched/model"
)

func newHardware() *cobra.Command {
	var asYAML bool
	cmd := command("hardware")
	cmd.Args = atMostOneArg("accelerator")
	cmd.ValidArgsFunction = completeOne(slices.Concat(hardware.Presets(), simt.Presets(), chips.Presets()),
		cobra.ShellCompDirectiveDefault)
	asJSON := addJSON(cmd)
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the YAML file of a built-in accelerator")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case asYAML && *asJSON:
			return usagef("--yaml and --json exclude each other")
		case asYAML && len(args) == 0:
			return usagef("--yaml needs the name of a built-in accelerator: %s", oneOf(hardware.Presets()))
		case asYAML:
			read := hardware.PresetYAML
			if slices.Contains(simt.Presets(), args[0]) {
				read = simt.PresetYAML
			} else if slices.Contains(chips.Presets(), args[0]) {
				read = chips.PresetYAML
			}
			text, err := read(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, false, nil, func(b *bytes.Buffer) { b.Write(text) })
		case len(args) == 1 && slices.Contains(simt.Presets(), args[0]):
			m, err := simt.Load(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, *asJSON, m, func(b *bytes.Buffer) { writeSIMT(b, m) })
		case len(args) == 1 && slices.Contains(chips.Presets(), args[0]):
			n, err := chips.Load(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, *asJSON, n, func(b *bytes.Buffer) {
				row(b, "name", "%s", n.Name)
				row(b, "description", "%s", n.Description)
				row(b, "devices", "%d of %s", n.Devices, n.Device)
				row(b, "link", "%s", link(n))
				row(b, "power", "%g W of an idle device, %g W of a busy one", n.IdleWatts, n.BusyWatts)
			})
		case len(args) == 1:
			spec, err := hardware.Load(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, *asJSON, spec.Sheet(), func(b *bytes.Buffer) { b.WriteString(spec.Describe()) })
		}
		var answer struct {
			Hardware []*hardware.Sheet `json:"hardware"`
			SIMT     []*simt.Machine   `json:"simt"`
			Several  []*chips.Server   `json:"several"`
		}
		var rows, simtRows, severalRows, descriptions [][]string
		for _, name := range hardware.Presets() {
			spec, err := hardware.Load(name)
			if err != nil {
				return err
			}
			answer.Hardware = append(answer.Hardware, spec.Sheet())
			rows = append(rows, []string{spec.Name, fmt.Sprintf("%d x %d", spec.Clusters, spec.Cores()), peak(spec),
				memorySize(spec.LB), memorySize(spec.GB), memorySize(spec.DDR), unit(spec.DDR.BandwidthBytesPerSecond, "B/s")})
			descriptions = append(descriptions, []string{spec.Name, spec.Description})
		}
		for _, name := range simt.Presets() {
			m, err := simt.Load(name)
			if err != nil {
				return err
			}
			answer.SIMT = append(answer.SIMT, m)
			simtRows = append(simtRows, []string{m.Name, fmt.Sprint(m.SMs), fmt.Sprint(m.Wave(m.Start())),
				size(m.SM.SharedBytes), size(m.L2.SizeBytes),
				unit(m.DRAM.BytesPerSecond, "B/s"), duration(m.LaunchSeconds)})
			descriptions = append(descriptions, []string{m.Name, m.Description})
		}
		for _, name := range chips.Presets() {
			n, err := chips.Load(name)
			if err != nil {
				return err
			}
			answer.Several = append(answer.Several, n)
			severalRows = append(severalRows, []string{n.Name, fmt.Sprint(n.Devices), n.Device, link(n)})
			descriptions = append(descriptions, []string{n.Name, n.Description})
		}
		return emit(cmd, *asJSON, answer, func(b *bytes.Buffer) {
			writeTable(b, "lrrrrrr", []string{"name", "cores", "peak", "L1", "LLB", "DDR", "DDR rate"}, rows)
			b.WriteByte('\n')
			writeTable(b, "lrrrrrr", []string{"SIMT machine", "SMs", "wave", "shared of an SM", "L2", "DRAM rate", "launch"},
				simtRows)
			b.WriteByte('\n')
			writeTable(b, "lrll", []string{"machine of several", "devices", "each", "link"}, severalRows)
			writeDescriptions(b, descriptions)
		})
	}
	return cmd
}

func link(n *chips.Server) string {
	text := fmt.Sprintf("%s, latency %s", unit(n.LinkBytesPerSecond, "B/s"), duration(n.LinkSeconds))
	if n.Torus != nil {
		text += ", " + (&hardware.Chips{Torus: n.Torus}).Network()
	}
	return text
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

// peak is the rate of products in 16-bit floats, or in the type that the machine is faster in if it has none.
func peak(spec *hardware.Spec) string {
	for _, t := range []model.DType{model.F16, model.BF16, model.I8, model.F32} {
		if rate := spec.PeakMACsPerSecond(t.String()); rate > 0 {
			return fmt.Sprintf("%s %s", unit(rate, "MAC/s"), t)
		}
	}
	return "-"
}

func memorySize(m *hardware.Memory) string {
	if m == nil {
		return "none"
	}
	return size(int64(m.SizeBytes))
}
