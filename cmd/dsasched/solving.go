package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// solverFlags are those of a command that solves the problem of a file by one of several
// methods.
type solverFlags struct {
	asJSON, quiet *bool
	methods       []solve.Method
	method        *choice
	limit         *limit
	out           *outFile
}

func addSolver(cmd *cobra.Command, methods []solve.Method, out string) *solverFlags {
	f := &solverFlags{asJSON: addJSON(cmd), quiet: addQuiet(cmd), methods: methods, method: &choice{value: "search", kind: "METHOD", words: methodWords(methods)},
		limit: addLimit(cmd, time.Minute, "time for the exact methods, such as 10s; 0: no limit"), out: addFile(cmd, "o out", out)}
	f.limit.orNever = true
	addChoice(cmd, f.method, "method", "method: "+strings.Join(plain(f.method.words), ", "))
	return f
}

// methodWords are the words of --method.
func methodWords(methods []solve.Method) []cobra.Completion {
	var words []cobra.Completion
	for _, m := range methods {
		words = append(words, cobra.CompletionWithDesc(m.Name, m.Description))
	}
	return words
}

// solverOptions are what the flags say, with the status that they report to.
func solverOptions[S any](cmd *cobra.Command, f *solverFlags) (*status, solve.Options[S], error) {
	solver, err := solverFor(f.methods, f.method.value)
	if err != nil {
		return nil, solve.Options[S]{}, err
	}
	show := newStatus(cmd, *f.quiet)
	return show, solve.Options[S]{Solver: solver, TimeLimit: f.limit.value, Progress: show.solve(f.method.value, decimal)}, nil
}

// solverFor is HiGHS if the method needs it.
func solverFor(methods []solve.Method, name string) (milp.Solver, error) {
	if k := slices.IndexFunc(methods, func(m solve.Method) bool { return m.Name == name }); k < 0 || !methods[k].NeedsSolver {
		return nil, nil
	}
	return highs.New()
}
