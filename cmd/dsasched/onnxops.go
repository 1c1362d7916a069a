package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/onnx"
)

type onnxOpsJSON struct {
	Operators []onnxOpJSON `json:"operators"`
}

type onnxOpJSON struct {
	Domain string `json:"domain"`
	Type   string `json:"type"`
	Since  int64  `json:"since_opset"`
	Until  int64  `json:"until_opset,omitempty"` // absent: no end
	// Becomes are the graph's operators.
	Becomes string `json:"becomes"`
	Class   string `json:"class,omitempty"`
	Folds   string `json:"folds"` // no, yes, only
	Note    string `json:"note,omitempty"`
	Test    string `json:"tested_by"`
}

func newONNXOps() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "onnx-ops [WORD]",
		Short: "List the ONNX operators that can be read",
		Long: `List the ONNX operators that can be read: the operator sets, what they become in the
graph and the cost class of that, and whether they are computed while the file is
read if their inputs are known. With a word, only operators whose name or domain
has it. Functions that a file defines itself are read whatever their name.`,
		Example: `  dsasched onnx-ops
  dsasched onnx-ops conv
  dsasched onnx-ops com.microsoft --json
  dsasched onnx-ops --markdown`,
		Args: atMostOneArg("WORD"),
	}
	asJSON := addJSON(cmd)
	markdown := cmd.Flags().Bool("markdown", false, "print the table as in docs/onnx.md")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *markdown && *asJSON {
			return usagef("--markdown and --json exclude each other")
		}
		answer := onnxOpsJSON{Operators: []onnxOpJSON{}}
		for _, o := range onnx.Operators() {
			if len(args) > 0 && !strings.Contains(strings.ToLower(o.Domain+" "+o.Type), strings.ToLower(args[0])) {
				continue
			}
			answer.Operators = append(answer.Operators, describeONNXOp(o))
		}
		if len(answer.Operators) == 0 {
			return fmt.Errorf("no operator has %q in its name or domain", args[0])
		}
		return emit(cmd, *asJSON, answer, func(b *bytes.Buffer) { answer.write(b, *markdown) })
	}
	return cmd
}

func describeONNXOp(o onnx.OperatorInfo) onnxOpJSON {
	j := onnxOpJSON{Domain: o.Domain, Type: o.Type, Since: o.Since, Until: o.Until, Becomes: string(o.Kind), Class: o.Class,
		Folds: "no", Note: o.Doc, Test: o.TestedBy}
	switch {
	case o.OnlyFolds:
		j.Folds = "only"
	case o.Folds:
		j.Folds = "yes"
	}
	if j.Becomes == "" && !o.OnlyFolds {
		// The note begins with the operators that it becomes.
		j.Becomes, j.Note, _ = strings.Cut(o.Doc, "; ")
		if strings.Contains(j.Becomes, ", ") {
			j.Class = "several"
		} else if k, ok := model.Info(model.Kind(j.Becomes)); ok {
			j.Class = k.Class.String()
		}
	}
	return j
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
			row = append(row, "`"+o.Test+"`")
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
