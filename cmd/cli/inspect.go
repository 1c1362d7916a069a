package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/structure"
)

func newInspect() *cobra.Command {
	cmd := command("inspect")
	takesModel(cmd)
	batch, read := addOwnBatch(cmd), addNetwork(cmd)
	blocks := cmd.Flags().Bool("blocks", false, "print the blocks of the stages too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opt := read.options()
		raw := try(network.Raw(args[0], batch.value, opt))
		a := try(structure.Inspect(args[0], raw, schedule.ExecutionOrder))
		a.DType = opt.DType.String()
		return emit(cmd, a, func(b *bytes.Buffer) { writeInspect(b, a, *blocks) })
	}
	return cmd
}

func writeInspect(b *bytes.Buffer, a *structure.Report, blocks bool) {
	row(b, "model", "%s, %s", a.Model, a.DType)
	row(b, "parameters", "%s (%s)", count(a.Params), size(a.ParamBytes))
	row(b, "work", "%s, %s vector operations", unit(float64(a.MACs), "MAC"), count(a.VectorOps))
	row(b, "operators", "%d, %d after simplification", a.OperatorsBefore, a.OperatorsAfter)
	row(b, "layers", "%d: %d with a matrix operator, %d with a reduction, %d light", a.Layers.Count, a.Layers.Matrix,
		a.Layers.Reduction, a.Layers.Light)

	if len(a.Stages) > 0 {
		list(b, "Stages", "<stage|blocks|<types"+useHeader, a.Stages, func(_ int, s structure.StageReport) []any {
			return append([]any{s.Name, s.BlockCount, s.Types}, useCells(s.UseReport)...)
		})
	}
	if blocks && len(a.Blocks) > 0 {
		list(b, "Blocks", "<stage|block|<type"+useHeader, a.Blocks, func(_ int, k structure.BlockReport) []any {
			return append([]any{k.Stage, k.Index, k.Type}, useCells(k.UseReport)...)
		})
		words := []string{}
		for _, t := range a.BlockTypes {
			if t.Count > 1 {
				words = append(words, fmt.Sprintf("%s x%d", t.Name, t.Count))
			}
		}
		if len(words) > 0 {
			fmt.Fprintf(b, "  repeated: %s\n", strings.Join(words, ", "))
		}
	}

	fmt.Fprintf(b, "\nSimplification\n")
	var rows [][]string
	var idle []string
	for _, p := range a.Passes {
		if p.Changes == 0 && p.OperatorsRemoved == 0 {
			idle = append(idle, p.Pass)
			continue
		}
		rows = append(rows, []string{p.Pass, fmt.Sprint(p.Changes), fmt.Sprint(p.OperatorsRemoved)})
	}
	if len(rows) > 0 {
		writeTable(b, "lrr", []string{"pass", "changes", "operators removed"}, rows)
	}
	if len(idle) > 0 {
		fmt.Fprintf(b, "  nothing to do for %s\n", strings.Join(idle, ", "))
	}

	list(b, "Operators", "<kind|<class|before|after", a.Kinds,
		func(_ int, k structure.KindReport) []any { return []any{k.Kind, k.Class, k.Before, k.After} })

	for _, s := range []struct {
		title   string
		tensors []structure.TensorReport
	}{
		{"Inputs", a.Inputs}, {"Outputs", a.Outputs},
		{"Largest activations", a.LargestActivations}, {"Largest constants", a.LargestConstants},
	} {
		if len(s.tensors) > 0 {
			list(b, s.title, "<name|<shape|<type|size", s.tensors, func(_ int, t structure.TensorReport) []any {
				return []any{shorten(t.Name, 48), t.Shape, t.DType, size(t.Bytes)}
			})
		}
	}
}

// useHeader names the columns of cells.
const useHeader = "|layers|ops|<output|peak live|share|params|MACs"

func useCells(u structure.UseReport) []any {
	output := "-"
	if u.Output != nil {
		output = u.Output.Shape.String()
	}
	return []any{u.LayerCount, u.Operators, output, size(u.PeakBytes), percent(u.PeakShare), count(u.Params),
		count(u.MACs)}
}
