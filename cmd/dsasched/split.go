package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func newSplit() *cobra.Command {
	cmd := command("solve split")
	addSolving(cmd, split.Methods(), func(ctx context.Context, set aloneSettings) (*answers.Alone, any,
		func(*bytes.Buffer), error) {
		a, err := answers.Split(ctx, set.net, set.spec, set.batch, set.method, set.opt)
		if err != nil {
			return nil, nil, nil, err
		}
		return &a.Alone, a, func(b *bytes.Buffer) { writeSplit(b, a) }, nil
	})
	return cmd
}

func writeSplit(b *bytes.Buffer, a *answers.AloneSplit) {
	row(b, "groups", "%s (%s) on %s, batch %d in chunks of %d", a.Model, a.DType, a.Hardware, a.Batch, a.Chunk)
	row(b, "problem", "%s, %s of up to %s", plural(a.Layers, "layer"), plural(a.Candidates, "candidate"),
		plural(a.Longest, "layer"))
	writeAlone(b, &a.Alone)
	writeNotes(b, a.Notes)
	writeCuts(b, a.Method, a.Groups)
	if a.Method != "greedy" {
		writeCuts(b, "greedy", a.GreedyGroups)
	}
}

// writeCuts lists groups and how each is split, those alike together.
func writeCuts(b *bytes.Buffer, title string, groups []scheduler.GroupCut) {
	// Networks repeat themselves, and so do their groups.
	type kind struct {
		split     string
		operators int
	}
	alike := map[kind][]scheduler.GroupCut{}
	var kinds []kind
	for _, g := range groups {
		k := kind{"not split", g.Operators}
		if g.Factor > 1 {
			k.split = fmt.Sprintf("%d along %s", g.Factor, g.Dimension)
		}
		kinds = addOnce(kinds, k)
		alike[k] = append(alike[k], g)
	}
	list(b, title+": "+plural(len(groups), "group"), "<groups|<instances|operators of each|<the first from|<to", kinds,
		func(_ int, k kind) []any {
			names := each(alike[k], func(g scheduler.GroupCut) string { return g.Group })
			return []any{namesOf(names), k.split, k.operators, alike[k][0].First, alike[k][0].Last}
		})
}
