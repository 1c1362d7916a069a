package main

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/whole"
	"github.com/dsasched/dsasched/scheduler"
)

func newWhole() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "whole MODEL",
		Short: "Make all decisions of a small network in one problem",
		Long: `Choose sub-graphs, split factors, order, bindings, scopes and what is spilled
together, and show what changes against the greedy decisions. It is for networks of
up to some ten layers: ilp states them as one integer program (--export), search goes
through the sets of sub-graphs by rising bound.

Objective and bound are seconds of the cost model that docs/formulations.md states:
launches, compute, redistribution and copies, one after the other. Throughput is
simulated, with memory plan and overlap, and need not follow the objective; for the
best simulated schedule of a network of any size see 'dsasched best'.

--start begins with the decisions of a schedule.
After Ctrl-C, as after --time-limit, the best choice so far is printed.`,
		Example: `  dsasched whole net.onnx --batch 4
  dsasched whole net.onnx --method ilp --time-limit 5s --export net.lp --json`,
	}
	addSolving(cmd, whole.Methods(), func(ctx context.Context, set aloneSettings) (*scheduler.Alone, any, func(*bytes.Buffer), error) {
		a, err := scheduler.Together(ctx, set.net, set.spec, set.batch, set.method, set.opt)
		if err != nil {
			return nil, nil, nil, err
		}
		return &a.Alone, a, func(b *bytes.Buffer) { writeWhole(b, a) }, nil
	})
	return cmd
}

func writeWhole(b *bytes.Buffer, a *scheduler.AloneWhole) {
	row(b, "all decisions", "%s (%s) on %s, batch %d in chunks of %d", a.Model, a.DType, a.Hardware, a.Batch, a.Chunk)
	row(b, "problem", "%s, %s with %s, %s of them", plural(a.Layers, "layer"), plural(a.Parts, "sub-graph"), plural(a.Instances, "instance"), plural(a.Pairs, "pair"))
	writeAlone(b, &a.Alone)
	if a.Sets > 0 {
		row(b, "solved", "%s of sub-graphs", plural(a.Sets, "set"))
	}
	row(b, "moves", "%d between L1 and LLB", a.Moves)
	writeNotes(b, a.Notes)
	writeCuts(b, a.Method, a.Groups)
}
