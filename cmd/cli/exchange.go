package cli

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/systems/exchange/plans"
	"github.com/dsasched/dsasched/systems/exchange/trace"
)

func init() {
	addOfSystem("", newConvert)
	writeTrace = trace.Write
}

func newConvert() *cobra.Command {
	cmd := command("convert")
	cmd.Args = oneArg("FILE", "give a plan of XLA, TFLite Micro or tt-mlir")
	cmd.ValidArgsFunction = completeFile("txt", "log", "json")
	out := addFile(cmd, "o out", "write the buffers or the plan to this `file`", ".csv", ".txt", ".log", ".json")
	offsets := addFile(cmd, "offsets", "give the plan with the offsets of this `file`", ".csv")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return convertPlan(cmd, args[0], offsets.name, out.name)
	}
	return cmd
}

// convertPlan writes a compiler's memory plan as a file of buffers, or the plan with other offsets.
func convertPlan(cmd *cobra.Command, file, offsets, out string) error {
	text := try(safefile.ReadUpTo(file, maxPlan))
	var ranges []byte
	if base, ok := strings.CutSuffix(file, "-buffer-assignment.txt"); ok {
		ranges, _ = safefile.ReadUpTo(base+"-live-range.txt", maxPlan) // or they are in the file
	}
	d := try(plans.Read(file, string(text), string(ranges)))
	var result bytes.Buffer
	if offsets == "" {
		check(allocate.WriteCSV(&result, d.Problem, nil))
	} else {
		placed := loadOffsets(offsets, d.Problem)
		check(blame(offsets, allocate.Check(d.Problem, allocate.NoLimit, placed)))
		plan := try(d.WithOffsets(placed))
		result.WriteString(plan)
	}
	if out != "" {
		check(replaceFile(out, result.Bytes()))
	}
	answer := struct {
		Tool    string   `json:"tool"`
		Buffers int      `json:"buffers"`
		Peak    int64    `json:"peak_bytes"`
		Bound   int64    `json:"bound_bytes"`
		Notes   []string `json:"notes"`
		Text    string   `json:"text"`
	}{d.Tool, len(d.Problem.Buffers), d.Peak, d.Problem.Bound(), append([]string{}, d.Notes...), result.String()}
	return emit(cmd, answer, func(b *bytes.Buffer) {
		if out == "" {
			b.Write(result.Bytes())
			return
		}
		row(b, "plan", "of %s, %d buffers", d.Tool, len(d.Problem.Buffers))
		row(b, "peak", "%d bytes; no plan needs less than %d", d.Peak, d.Problem.Bound())
		row(b, "file", "%s", printable(out))
		for _, n := range d.Notes {
			rowWrapped(b, "note", n)
		}
	})
}
