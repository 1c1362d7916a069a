package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/tuning"
	"github.com/dsasched/dsasched/hardware"
)

func newCalibrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit an accelerator's unpublished constants to published throughputs",
		Long: `Fit three constants that nobody has published to six published throughputs of
ResNet-50 and BERT-128 (TVM's and GraphTurbo's, and what others measured on the
chip): the time to launch a kernel, the share of the DDR's bandwidth that
activations reach, and what a matrix unit loses at each change of its weights. Each
stays within its physical range. No figure of another network is looked at.

The result is the same in every run. The built-in stcp920 holds it, and
stcp920-paper the same constants. It takes less than a minute; --residuals only
compares the file as it stands.

With -o, the hardware file is written with the new constants; all else in it stays,
comments included.`,
		Example: `  dsasched calibrate --residuals
  dsasched help calibrate`,
		Args: noArgs,
	}
	asJSON, accelerator := addJSON(cmd), addHardware(cmd)
	residuals := cmd.Flags().Bool("residuals", false, "fit nothing, only compare")
	out := addFile(cmd, "o out", "hardware `file` to write; - is the standard output")
	out.stdout = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if out.name != "" && *residuals {
			return usagef("--out and --residuals exclude each other: nothing is fitted")
		}
		spec, err := hardware.Load(*accelerator)
		if err != nil {
			return err
		}
		var text []byte
		if out.name != "" {
			if text, err = hardwareText(*accelerator); err != nil {
				return err
			}
			// What can't be written is an error before the search, not after.
			if err := tuning.CanApply(*accelerator, text, spec); err != nil {
				return err
			}
		}
		cal, err := tuning.Calibrate(cmd.Context(), spec, !*residuals)
		if err != nil {
			return err
		}
		if out.name != "" {
			if text, err = cal.Apply(*accelerator, text, spec); err != nil {
				return err
			}
			if out.name == stdoutName {
				return emit(cmd, false, nil, func(b *bytes.Buffer) { b.Write(text) })
			}
			if err := replaceFile(out.name, text); err != nil {
				return err
			}
			cal.File = out.name
		}
		return emit(cmd, *asJSON, cal, func(b *bytes.Buffer) { writeCalibration(b, cal) })
	}
	return cmd
}

// hardwareText is the file behind a name that hardware.Load takes.
func hardwareText(name string) ([]byte, error) {
	if slices.Contains(hardware.Presets(), name) {
		return hardware.PresetYAML(name)
	}
	return os.ReadFile(name)
}

func writeCalibration(b *bytes.Buffer, a *tuning.Calibration) {
	row(b, "hardware", "%s", a.Hardware)
	row(b, "method", "%s", a.Method)
	row(b, "evaluations", "%d", a.Evaluations)
	b.WriteByte('\n')
	var rows, why [][]string
	var bound []string
	for _, k := range a.Constants {
		half, double := "–", "–"
		if k.Half != nil {
			half, double = fmt.Sprintf("%.4f", *k.Half), fmt.Sprintf("%.4f", *k.Double)
		}
		rows = append(rows, []string{k.Name, k.Lo + " to " + k.Hi, k.Start, k.Value, half, double})
		why = append(why, []string{k.Name, k.Why})
		if k.AtBound && k.Half != nil {
			bound = append(bound, k.Name)
		}
	}
	writeTable(b, "lrrrrr", []string{"constant", "range", "start", "value", "sum at half", "sum at double"}, rows)
	b.WriteByte('\n')
	writeTable(b, "ll", []string{"constant", "what bounds its range"}, why)
	if len(bound) > 0 {
		fmt.Fprintf(b, "\nAt a bound of its range: %s. The figures would have it go further.\n", strings.Join(bound, ", "))
	}
	b.WriteByte('\n')
	rows = nil
	for _, f := range a.Figures {
		rows = append(rows, []string{f.What, f.Unit, significant(f.PublishedPerSecond), significant(f.ThroughputPerSecond), fmt.Sprintf("%.3f", f.ThroughputPerSecond/f.PublishedPerSecond), fmt.Sprintf("%+.3f", f.LogError), f.Source})
	}
	writeTable(b, "llrrrrl", []string{"figure", "unit", "published", "ours", "ratio", "log error", "source"}, rows)
	fmt.Fprintf(b, "\nSum of squared log errors: %.4f\n", a.Sum)
	if a.File != "" {
		fmt.Fprintf(b, "Written: %s\n", printable(a.File))
	}
}
