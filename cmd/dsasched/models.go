package main

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/model/zoo"
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
	// LargestTensor may be a constant, such as a table of embeddings; of equals it is
	// the first.
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
