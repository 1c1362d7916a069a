package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

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
			for i, part := range slices.Collect(slices.Chunk(scheduler.Choices(), 5)) {
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
			writeDescriptions(b, each(answer.Variants, func(v variantJSON) []string { return []string{v.Name, v.Description} }))
		})
	}
	return cmd
}
