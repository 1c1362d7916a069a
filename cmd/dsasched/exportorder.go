package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/scheduler"
)

type exportOrderJSON struct {
	Model         string   `json:"model"`
	Hardware      string   `json:"hardware"`
	Variant       string   `json:"variant"`
	Batch         int64    `json:"batch"`
	Chunk         int64    `json:"chunk"`
	File          string   `json:"file"`
	Groups        int      `json:"group_count"`
	Instances     int      `json:"instances"`
	CapacityBytes int64    `json:"capacity_bytes"`
	Notes         []string `json:"notes"`
}

func newExportOrder() *cobra.Command {
	cmd := command("export order")
	takesModel(cmd)
	quiet, recipe := addQuiet(cmd), addRecipe(cmd, stepByStep)
	out := addFile(cmd, "o out", "`file` to write")
	out.stdout = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show := newStatus(cmd, *quiet)
		defer show.end()
		_, r := recipe.run(cmd, args[0], show)
		show.end()
		p, notes := try2(exact.OrderProblem(r.Schedule,
			scheduler.Options{InPlace: *recipe.inPlace || r.Recipe.InPlace(), Uneven: unevenOf(recipe.uneven),
				Chunk: recipe.chunk.value}))
		p.Name = fmt.Sprintf("%s/%s/%s, %d per cluster", args[0], r.Machine.Name, r.Recipe.Name, r.Chunk)
		data, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("the problem can't be written as JSON: %w", err)
		}
		data = append(data, '\n')
		if out.name == "" || out.name == stdoutName {
			_, err := cmd.OutOrStdout().Write(data)
			return err
		}
		check(replaceFile(out.name, data))
		if err := ordering.NewGraph(p).Feasible(); err != nil {
			notes = append(notes, err.Error())
		}
		a := exportOrderJSON{args[0], r.Machine.Name, r.Recipe.Name, r.Batch, r.Chunk, out.name, len(p.Subgraphs),
			instances(p), p.CapacityBytes, append([]string{}, notes...)}
		return emit(cmd, a, func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s: %s, %s, capacity %s\n", printable(a.File), plural(a.Groups, "sub-graph"),
				plural(a.Instances, "instance"), size(a.CapacityBytes))
			for _, n := range a.Notes {
				fmt.Fprintf(b, "note: %s\n", printable(n))
			}
		})
	}
	return cmd
}
