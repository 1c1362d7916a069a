package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

func newHardware() *cobra.Command {
	var asYAML bool
	cmd := &cobra.Command{
		Use:   "hardware [HARDWARE]",
		Short: "List the built-in accelerators, or describe one",
		Long: `List the built-in accelerators, or describe one: a built-in one by its name, or
one of your own by the path of its YAML file, which is checked.

L1 is a core's local buffer, LLB the buffer that the cores of a cluster share, DDR
the off-chip memory. The peak is in multiply-accumulates of f16.

To write a file of your own, start from a built-in one with --yaml; its comments
say where each figure is from. There the L1 is called lb, the LLB gb.`,
		Example: `  dsasched hardware
  dsasched hardware stcp920
  dsasched hardware stcp920 --yaml > my-npu.yaml
  dsasched hardware ./my-npu.yaml --json`,
		Args: atMostOneArg("accelerator"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeHardware(cmd, args, part)
		},
	}
	asJSON := addJSON(cmd)
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the YAML file of a built-in accelerator")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case asYAML && *asJSON:
			return usagef("--yaml and --json exclude each other")
		case asYAML && len(args) == 0:
			return usagef("--yaml needs the name of a built-in accelerator: %s", oneOf(hardware.Presets()))
		case asYAML:
			text, err := hardware.PresetYAML(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, false, nil, func(b *bytes.Buffer) { b.Write(text) })
		case len(args) == 1:
			spec, err := hardware.Load(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, *asJSON, spec.Sheet(), func(b *bytes.Buffer) { b.WriteString(spec.Describe()) })
		}
		var answer struct {
			Hardware []*hardware.Sheet `json:"hardware"`
		}
		var rows, descriptions [][]string
		for _, name := range hardware.Presets() {
			spec, err := hardware.Load(name)
			if err != nil {
				return err
			}
			answer.Hardware = append(answer.Hardware, spec.Sheet())
			rows = append(rows, []string{spec.Name, fmt.Sprint(spec.Clusters), fmt.Sprint(spec.Cores()), unit(spec.PeakMACsPerSecond(model.F16.String()), "MAC/s"),
				memorySize(spec.LB), memorySize(spec.GB), memorySize(spec.DDR), unit(spec.DDR.BandwidthBytesPerSecond, "B/s")})
			descriptions = append(descriptions, []string{spec.Name, spec.Description})
		}
		return emit(cmd, *asJSON, answer, func(b *bytes.Buffer) {
			writeTable(b, "lrrrrrrr", []string{"name", "clusters", "cores each", "peak f16", "L1", "LLB", "DDR", "DDR rate"}, rows)
			writeDescriptions(b, descriptions)
		})
	}
	return cmd
}

func memorySize(m *hardware.Memory) string {
	if m == nil {
		return "none"
	}
	return size(int64(m.SizeBytes))
}
