package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/systems/measured/calibration"
)

func init() { addOfSystem("", newCalibrate) }

func newCalibrate() *cobra.Command {
	cmd := command("calibrate")
	cmd.Args = noArgs
	accelerator := addHardware(cmd)
	residuals := cmd.Flags().Bool("residuals", false, "fit nothing, only compare")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		spec := oneChip(*accelerator)
		cal := try(calibration.Calibrate(cmd.Context(), spec, !*residuals))
		return emit(cmd, cal, func(b *bytes.Buffer) { writeCalibration(b, cal) })
	}
	return cmd
}

func writeCalibration(b *bytes.Buffer, a *calibration.Calibration) {
	row(b, "hardware", "%s", a.Hardware)
	row(b, "method", "%s", a.Method)
	row(b, "simulations", "%d", a.Simulations)
	var bound []string
	list(b, "", "<constant|range|without a fit|value|<|sum at half|sum at double", a.Constants,
		func(_ int, k calibration.FittedConstant) []any {
			half, double, kind := "–", "–", "as it is"
			if k.Half != nil {
				half, double, kind = fmt.Sprintf("%.4f", *k.Half), fmt.Sprintf("%.4f", *k.Double), "estimate"
			}
			if k.Fitted {
				kind = "fitted"
			}
			if k.AtBound {
				bound = append(bound, k.Name)
			}
			return []any{k.Name, k.Lo + " to " + k.Hi, k.Start, k.Value, kind, half, double}
		})
	list(b, "", "<constant|<what bounds its range", a.Constants,
		func(_ int, k calibration.FittedConstant) []any { return []any{k.Name, k.Why} })
	if len(bound) > 0 {
		fmt.Fprintf(b, "\nAt a bound of its range: %s. The figures would have it go further.\n", strings.Join(bound, ", "))
	}
	if len(a.Validation) > 0 {
		head, align := []string{"fitted", "without"}, "ll"
		for _, k := range a.Constants {
			head, align = append(head, k.Name), align+"r"
		}
		var rows [][]string
		for _, c := range a.Validation {
			name := strings.Join(c.Fitted, ", ")
			name = cmp.Or(name, "none")
			for _, f := range c.Folds {
				rows = append(rows, append(append([]string{name, f.Without}, f.Values...), fmt.Sprintf("%.4f", f.Sum)))
				name = ""
			}
			last := []string{"", "all"}
			for range a.Constants {
				last = append(last, "")
			}
			rows = append(rows, append(last, fmt.Sprintf("%.4f", c.Sum)))
		}
		b.WriteString("\nEach network left out once:\n")
		writeTable(b, align+"r", append(head, "its sum"), rows)
	}
	list(b, "", "<figure|<unit|published|ours|ratio|log error|<source", a.Figures,
		func(_ int, f calibration.CalibrationFigure) []any {
			return []any{f.What, f.Unit, significant(f.Published), significant(f.Ours),
				fmt.Sprintf("%.3f", f.Ours/f.Published), fmt.Sprintf("%+.3f", f.LogError), f.Source}
		})
	fmt.Fprintf(b, "\nSum of squared log errors: %.4f\n", a.Sum)
}
