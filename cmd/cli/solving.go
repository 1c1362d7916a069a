package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// solverFlags are the flags of a command that solves the problem of a file by one of several methods.
type solverFlags struct {
	quiet   *bool
	methods []solve.Method
	method  *choice
	limit   *limit
	out     *outFile
	program *programFlags
}

// programFlags are the flags of integer programs.
type programFlags struct {
	gap     *float64
	threads *int
	work    *int64
	log     *outFile
}

func addProgram(cmd *cobra.Command) *programFlags {
	return &programFlags{cmd.Flags().Float64("gap", 0, "relative gap at which an integer program's search ends, such as 0.01"),
		cmd.Flags().Int("threads", 1, "threads of an integer program's search"),
		cmd.Flags().Int64("work", 0, "limit of nodes or states, instead of the default --time-limit; 0: the method's own"),
		addFile(cmd, "log", "write the solver's log of an integer program to this `file`")}
}

// addSolver adds the flags. The default method is search, or the first where there is none.
func addSolver(cmd *cobra.Command, methods []solve.Method, out string) *solverFlags {
	value := methods[0].Name
	if slices.ContainsFunc(methods, func(m solve.Method) bool { return m.Name == "search" }) {
		value = "search"
	}
	f := &solverFlags{quiet: addQuiet(cmd), methods: methods,
		method: &choice{value: value, kind: "METHOD", words: methodWords(methods)},
		limit:  addLimit(cmd, time.Minute, "time for the exact methods, such as 10s; 0: no limit"),
		out:    addFile(cmd, "o out", out), program: addProgram(cmd)}
	f.limit.orNever = true
	addChoice(cmd, f.method, "method", "method: "+strings.Join(plain(f.method.words), ", "))
	return f
}

// methodWords are the words of --method.
func methodWords(methods []solve.Method) []cobra.Completion {
	return harness.Each(methods, func(m solve.Method) cobra.Completion {
		return cobra.CompletionWithDesc(m.Name, m.Description)
	})
}

// timeLimit reads --time-limit. With --work alone there is none: the answer is the same however busy the machine is.
func (f *solverFlags) timeLimit(cmd *cobra.Command) time.Duration {
	if *f.program.work > 0 && !cmd.Flags().Changed("time-limit") {
		return 0
	}
	return f.limit.value
}

// solverOptions are the settings of the flags, with the status that they report to.
func solverOptions[S any](cmd *cobra.Command, f *solverFlags) (*status, solve.Options[S]) {
	solver := try(solverFor(f.methods, f.method.value))
	show := newStatus(cmd, *f.quiet)
	o := solve.Options[S]{Solver: solver, TimeLimit: f.timeLimit(cmd), Progress: show.solve(f.method.value, decimal),
		Gap: *f.program.gap, Threads: *f.program.threads, WorkLimit: *f.program.work, LogFile: f.program.log.name,
		Relax: true}
	if err := o.Validate(); err != nil {
		check(usagef("%v", err))
	}
	return show, o
}

// solverFor is HiGHS if the method needs it.
func solverFor(methods []solve.Method, name string) (milp.Solver, error) {
	if k := slices.IndexFunc(methods, func(m solve.Method) bool { return m.Name == name }); k < 0 ||
		!methods[k].NeedsSolver {
		return nil, nil
	}
	return highs.New()
}

// fileSolver are the flags of a command that solves the problem of a file.
type fileSolver struct {
	*solverFlags
	start  *string
	seed   *uint32
	export *outFile
}

func addFileSolver(cmd *cobra.Command, methods []solve.Method, out, start string) *fileSolver {
	return &fileSolver{addSolver(cmd, methods, out), cmd.Flags().String("start", "", start),
		cmd.Flags().Uint32("seed", 0, "seed of the random choices of exact methods"),
		addFile(cmd, "export", "write the integer program to this `file` (.lp)", ".lp")}
}

// solveFile solves the problem of a file, which run does by the method of a name, from the
// solution that read finds in the file of --start, and writes what the flags ask for beside the answer.
func solveFile[S any, R interface{ Outcome() solve.Outcome }](cmd *cobra.Command, f *fileSolver,
	read func(string) (S, error),
	run func(context.Context, string, solve.Options[S]) (R, error)) (r R) {
	show, opts := solverOptions[S](cmd, f.solverFlags)
	defer show.end()
	opts.Seed = *f.seed
	if *f.start != "" {
		check(needsExact(f.methods, f.method.value))
		opts.Start = try(read(*f.start))
	}
	if f.export.name != "" {
		check(writeProgram(f.export.name, program(cmd.Context(), f, opts, run)))
	}
	return try(run(cmd.Context(), f.method.value, opts))
}

// fileProblem is a problem of a file: what reads it, solves it and prints the answer.
type fileProblem[P, S any, R interface{ Outcome() solve.Outcome }] struct {
	load  func(file string) (P, error)
	start func(file string, p P) (S, error)
	solve func(ctx context.Context, p P, method string, opts solve.Options[S]) (R, error)
	write func(b *bytes.Buffer, p P, r R)
}

// run makes the command with these flags solve the problem, write the answer to the file of -o and print it.
func (q fileProblem[P, S, R]) run(cmd *cobra.Command, f *fileSolver) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p := try(q.load(args[0]))
		r := solveFile(cmd, f, func(file string) (S, error) { return q.start(file, p) },
			func(ctx context.Context, method string, opts solve.Options[S]) (R, error) {
				return q.solve(ctx, p, method, opts)
			})
		return finish(cmd, r, func(b *bytes.Buffer) { q.write(b, p, r) }, f.out.writeJSON(r, "  "))
	}
	return cmd
}

// needsExact refuses --start of a method that does not go on from it.
func needsExact(methods []solve.Method, name string) error {
	if k := slices.IndexFunc(methods, func(m solve.Method) bool { return m.Name == name }); !methods[k].Exact {
		return usagef("--start is for methods that go on from it, and --method %s does not", name)
	}
	return nil
}

// program is the integer program of the method given or, if that makes none, of the first that does.
func program[S any, R interface{ Outcome() solve.Outcome }](ctx context.Context, f *fileSolver, opts solve.Options[S],
	run func(context.Context, string, solve.Options[S]) (R, error)) *milp.Model {
	method := f.method.value
	if k := slices.IndexFunc(f.methods, func(m solve.Method) bool { return m.Name == method }); !f.methods[k].NeedsSolver {
		k = slices.IndexFunc(f.methods, func(m solve.Method) bool { return m.NeedsSolver })
		method = f.methods[k].Name
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kept := &milp.Keep{Kept: cancel}
	why := "the answer to start from is proven to be the best"
	opts.Solver, opts.Progress, opts.Note = kept, nil, func(note string) { why = note }
	if r := try(run(ctx, method, opts)); r.Outcome().Status == milp.Infeasible {
		why = "there is no answer"
	}
	if kept.Model == nil {
		check(fmt.Errorf("--export: %s makes no program: %s", method, why))
	}
	return kept.Model
}

// writeProgram writes an integer program.
func writeProgram(name string, m *milp.Model) error {
	_, err := writeFile(name, m.WriteLP)
	if errors.Is(err, milp.ErrNoVariables) {
		err = fmt.Errorf("--export: %w", err)
	}
	return err
}
