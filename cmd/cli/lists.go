package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/onnx"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

type modelsJSON struct {
	Models []modelJSON `json:"models"`
}

// modelJSON describes a network of the zoo at batch 1, before simplification.
type modelJSON struct {
	zoo.Info
	Params    int64 `json:"params"`
	MACs      int64 `json:"macs"`
	Operators int   `json:"operators"`
	// LargestTensor may be a constant, such as a table of embeddings; of equals it is the first.
	LargestTensor struct {
		structure.TensorReport
		Role string `json:"role"`
	} `json:"largest_tensor"`
}

func newModels() *cobra.Command {
	cmd := command("models")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var answer modelsJSON
		for _, name := range zoo.Names() {
			g := try(zoo.Build(name, zoo.Options{Batch: 1}))
			info, _ := zoo.Describe(name)
			m := modelJSON{Info: info, Params: g.Params(), MACs: g.MACs(), Operators: len(g.Ops)}
			largest := slices.MaxFunc(g.Tensors, func(a, b *model.Tensor) int { return cmp.Compare(a.Bytes(), b.Bytes()) })
			m.LargestTensor.TensorReport, m.LargestTensor.Role = structure.ReportTensor(largest), largest.Role.String()
			answer.Models = append(answer.Models, m)
		}
		return emit(cmd, answer, func(b *bytes.Buffer) {
			list(b, "", "<name|parameters|MACs|operators|largest tensor", answer.Models, func(_ int, m modelJSON) []any {
				return []any{m.Name, count(m.Params), count(m.MACs), count(int64(m.Operators)), size(m.LargestTensor.Bytes)}
			})
			list(b, "", "<name|<description", answer.Models,
				func(_ int, m modelJSON) []any { return []any{m.Name, m.Description} })
		})
	}
	return cmd
}

type variantsJSON struct {
	Variants []variantJSON `json:"variants"`
}

type variantJSON struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Strategies  []scheduler.Pick `json:"strategies"` // for every stage with a choice
}

func newVariants() *cobra.Command {
	cmd := command("variants")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var answer variantsJSON
		for _, v := range recipes.Known() {
			answer.Variants = append(answer.Variants, variantJSON{v.Name, v.Description, v.Strategies()})
		}
		return emit(cmd, answer, func(b *bytes.Buffer) {
			// One table of all stages would be wider than a screen.
			for i, part := range slices.Collect(slices.Chunk(scheduler.Choices(), 4)) {
				if i > 0 {
					b.WriteByte('\n')
				}
				header := []string{"name"}
				for _, st := range part {
					header = append(header, st.Name)
				}
				var rows [][]string
				for _, v := range answer.Variants {
					row := []string{v.Name}
					for _, p := range v.Strategies {
						if slices.Contains(header[1:], p.Stage) {
							row = append(row, p.Strategy)
						}
					}
					rows = append(rows, row)
				}
				writeTable(b, strings.Repeat("l", len(header)), header, rows)
			}
			writeDescriptions(b, harness.Each(answer.Variants, func(v variantJSON) []string {
				return []string{v.Name, v.Description}
			}))
		})
	}
	return cmd
}

type onnxOpsJSON struct {
	Operators []onnx.OperatorInfo `json:"operators"`
}

func newONNXOps() *cobra.Command {
	cmd := command("onnx-ops")
	cmd.Args = atMostOneArg("WORD")
	markdown := cmd.Flags().Bool("markdown", false, "print the table as in docs/onnx.md")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *markdown && asJSON(cmd) {
			return usagef("--markdown and --json exclude each other")
		}
		answer := onnxOpsJSON{Operators: []onnx.OperatorInfo{}}
		for _, o := range onnx.Operators() {
			if len(args) > 0 && !strings.Contains(strings.ToLower(o.Domain+" "+o.Type), strings.ToLower(args[0])) {
				continue
			}
			answer.Operators = append(answer.Operators, o)
		}
		if len(answer.Operators) == 0 {
			return fmt.Errorf("no operator has %q in its name or domain", args[0])
		}
		return emit(cmd, answer, func(b *bytes.Buffer) { answer.write(b, *markdown) })
	}
	return cmd
}

func (a *onnxOpsJSON) write(b *bytes.Buffer, markdown bool) {
	head := []string{"operator", "domain", "opsets", "becomes", "class", "folds", "note"}
	var rows [][]string
	for _, o := range a.Operators {
		opsets := fmt.Sprintf("%d–", o.Since)
		if o.Until > 0 {
			opsets = fmt.Sprintf("%d–%d", o.Since, o.Until)
		}
		row := []string{o.Type, o.Domain, opsets, o.Becomes, o.Class, o.Folds, o.Note}
		if markdown {
			row = append(row, "`"+o.TestedBy+"`")
		}
		rows = append(rows, row)
	}
	if !markdown {
		writeTable(b, "lllllll", head, rows)
		return
	}
	head = append(head, "tested by")
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	line(head)
	line(strings.Split(strings.Repeat("---,", len(head)-1)+"---", ","))
	for _, r := range rows {
		line(r)
	}
}
