package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments"
)

type listJSON struct {
	Experiments []experiments.Experiment `json:"experiments"`
}

func newList() *cobra.Command {
	cmd := command("list")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		answer := listJSON{experiments.All()}
		return emit(cmd, answer, func(b *bytes.Buffer) {
			var rows [][]string
			for _, e := range answer.Experiments {
				rows = append(rows, []string{e.Name, e.Description})
				if len(e.Also) > 0 {
					rows = append(rows, []string{"", "also named " + strings.Join(e.Also, ", ")})
				}
				if e.Paper != "" {
					rows = append(rows, []string{"", "reproduces " + e.Paper})
				}
			}
			writeTable(b, "ll", []string{"name", "description"}, rows)
		})
	}
	return cmd
}

func newRun(experiment runner) *cobra.Command {
	var out string
	var all, noExact bool
	cmd := command("run")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		var names []cobra.Completion
		for _, name := range experiments.Names() {
			if e, err := experiments.Lookup(name); err == nil && !slices.Contains(args, name) {
				names = append(names, cobra.CompletionWithDesc(name, e.Description))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		for _, name := range args {
			e, err := experiments.Lookup(name)
			if err != nil {
				return usageError{err}
			}
			if e.Exact && noExact {
				return usagef("%s is about exact methods alone, expected another experiment with --no-exact", name)
			}
		}
		return nil
	}
	quiet, workers := addQuiet(cmd), addWorkers(cmd, "simulations")
	f := cmd.Flags()
	f.StringVar(&out, "out", "results", "`folder` of the results")
	completeFlag(cmd, "out", completeFolders)
	f.BoolVar(&all, "all", false, "run the named experiments, or all, in full (default: quick forms, without\nnames those of the study and the papers' figures)")
	f.BoolVar(&noExact, "no-exact", false, "leave out exact methods and searches, which take longest")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if out == "" {
			return usagef("--out is empty, expected a folder")
		}
		heapFloor.Store(2 << 30) // several schedules at a time
		opt := experiments.Options{Out: out, Workers: int(workers.value), Stderr: cmd.ErrOrStderr(), Quiet: *quiet,
			Full: all, NoExact: noExact, SolverVersion: solverVersion(), Revision: os.Getenv("DSASCHED_REVISION")}
		if !asJSON(cmd) {
			opt.Stdout = cmd.OutOrStdout()
		}
		if show := newStatus(cmd, *quiet); show != nil {
			defer show.end()
			opt.Stderr, opt.Progress = show, show.cells
			if opt.Stdout != nil {
				opt.Stdout = below{show, opt.Stdout}
			}
		}
		check(experiment(cmd.Context(), names, opt))
		if !asJSON(cmd) {
			return nil
		}
		answer := try(experiments.ResultsIn(names, opt))
		return emit(cmd, answer, nil)
	}
	return cmd
}
