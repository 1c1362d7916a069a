package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/model/onnx"
)

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
