package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/scheduler"
)

type variantsJSON struct {
	Variants []variantJSON `json:"variants"`
}

type variantJSON struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Groups      string `json:"groups"`
	Split       string `json:"split"`
	Outputs     string `json:"outputs"`
	Order       string `json:"order"`
	Bind        string `json:"bind"`
	Spill       string `json:"spill"`
	KeepWeights bool   `json:"keep_weights"`
	CrossLayer  bool   `json:"cross_layer"`
	Prefetch    bool   `json:"prefetch"`
}

func newVariants() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "variants",
		Short: "List the scheduler's variants and what they choose",
		Long: `List the variants of the scheduler. Each names an implementation for every
decision: how operators are grouped into kernels, how groups are split into
instances, the memory level where outputs should stay (ddr; llb, the buffer of a
cluster; l1, that of a core), the order of the instances, the binding of
dimensions to cores, what leaves a full memory first, and what the kernel generator
may do: keep weights in the LLB from kernel to kernel, overlap across layers, fetch
weights ahead of the kernel.`,
		Example: `  dsasched variants
  dsasched variants --json`,
		Args: noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var answer variantsJSON
		for _, v := range scheduler.All() {
			answer.Variants = append(answer.Variants, variantJSON{
				Name: v.Name, Description: v.Description, Groups: v.Pick("group"), Split: v.Pick("split"),
				Outputs: v.Pick("outputs"), Order: v.Pick("order"), Bind: v.Pick("bind"), Spill: v.Pick("spill"),
				KeepWeights: v.Pick("weights") == "keep", CrossLayer: v.Pick("issue") == "cross-layer", Prefetch: v.Pick("issue") == "cross-layer",
			})
		}
		return emit(cmd, *asJSON, answer, func(b *bytes.Buffer) {
			var upper, lower, descriptions [][]string // one table of all would be wider than a screen
			for _, v := range answer.Variants {
				upper = append(upper, []string{v.Name, v.Groups, v.Split, v.Outputs, v.Order, v.Bind})
				lower = append(lower, []string{v.Name, v.Spill, v.generator()})
				descriptions = append(descriptions, []string{v.Name, v.Description})
			}
			writeTable(b, "llllll", []string{"name", "groups", "split", "outputs", "order", "binding"}, upper)
			b.WriteByte('\n')
			writeTable(b, "lll", []string{"name", "spill", "generator"}, lower)
			writeDescriptions(b, descriptions)
		})
	}
	return cmd
}

func (v variantJSON) generator() string {
	var may []string
	if v.KeepWeights {
		may = append(may, "keep-weights")
	}
	if v.CrossLayer {
		may = append(may, "cross-layer")
	}
	if v.Prefetch {
		may = append(may, "prefetch")
	}
	if len(may) == 0 {
		return "-"
	}
	return strings.Join(may, " ")
}
