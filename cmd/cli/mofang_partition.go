package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/systems/mofang/partition"
)

func newPartition() *cobra.Command {
	cmd := command("solve partition")
	cmd.Args = oneArg("FILE.json", "give the path of a graph with latencies, sizes and costs")
	f := addFileSolver(cmd, partition.Methods(), "`file` to write the JSON to as well",
		"division `file` to start from, written by -o or from the data set")
	defaultMethod(cmd, f.solverFlags, "exact")
	return fileProblem[*partition.Problem, *partition.Division, *partition.Result]{
		load: partition.Load, start: partition.LoadDivision, solve: solvePartition, write: writePartition,
	}.run(cmd, f)
}

func solvePartition(ctx context.Context, p *partition.Problem, method string,
	opts solve.Options[*partition.Division]) (*partition.Result, error) {
	if solver, err := highs.New(); err == nil && opts.Solver == nil && method == "exact" {
		opts.Solver = solver // for graphs of many ideals
	}
	a, err := partition.Solve(ctx, p, method, partition.Options{Options: opts})
	if err == nil && a.Status == milp.Infeasible {
		err = fmt.Errorf("%s: no division: %w", p.Name, errors.New(a.Reason))
	}
	return a, err
}

// defaultMethod makes another method than the first word of addSolver the default.
func defaultMethod(cmd *cobra.Command, f *solverFlags, method string) {
	f.method.value = method
	cmd.Flags().Lookup("method").DefValue = method
}

func writePartition(b *bytes.Buffer, p *partition.Problem, a *partition.Result) {
	row(b, "graph", "%s: %s, %s", printable(filepath.Base(p.Name)), plural(len(p.Nodes), "node"),
		plural(len(p.Edges), "edge"))
	row(b, "method", "%s", a.Method)
	writeEnd(b, a.Status, a.Stop)
	if a.Reason != "" {
		row(b, "reason", "%s", a.Reason)
	}
	if a.HasDivision() {
		row(b, "load", "%s", significant(a.MaxLoad))
	}
	row(b, "bound", "%s", significant(a.Bound))
	row(b, "took", "%s", duration(a.Seconds))
	if !a.HasDivision() {
		return
	}
	list(b, "", "<device|load|nodes|<ids", a.Devices, func(d int, set []int) []any {
		name := fmt.Sprintf("accelerator %d", d)
		if d >= a.Accelerators {
			name = fmt.Sprintf("CPU %d", d-a.Accelerators)
		}
		return []any{name, significant(a.Loads[d]), len(set), shorten(strings.Trim(fmt.Sprint(set), "[]"), 48)}
	})
}
