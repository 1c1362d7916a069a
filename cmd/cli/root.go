package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model/onnx"
)

// Exit statuses.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells have it for SIGINT
)

// run is the whole program but for the process around it. Nothing of an answer reaches stdout before all of it is
// known, except that experiments print their tables one by one.
func run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	return execute(ctx, stdout, stderr, args, experiments.Run)
}

// runner is the signature of experiments.Run; tests put something faster there.
type runner func(ctx context.Context, names []string, opt experiments.Options) error

func execute(ctx context.Context, stdout, stderr io.Writer, args []string, experiment runner) (err error) {
	defer bail.Caught(&err)
	root, all := newRoot(experiment), false
	if at := slices.Index(args, "--help-all"); at >= 0 {
		all, args = true, slices.Delete(slices.Clone(args), at, at+1)
		if at > 0 && args[0] != "help" {
			args = slices.Insert(args, at, "--help")
		}
	}
	root.SetHelpFunc(helpOf(all))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	look(stdout)
	return root.ExecuteContext(context.WithValue(ctx, begunKey{}, harness.ProcessorTime()))
}

func newRoot(experiment runner) *cobra.Command {
	root := &cobra.Command{
		Use:   "dsasched",
		Short: "Schedule neural networks for accelerators",
		Long: `Schedule a neural network for a domain-specific accelerator (DSA), simulate the
result, and report how fast it would run and why.

MODEL is a built-in network ('dsasched models') or the path of an ONNX file,
HARDWARE a built-in accelerator ('dsasched hardware') or the path of a YAML file.
A name that ends in .onnx, .mlir, .yaml or .yml or has a slash in it is a path.

Every command prints JSON with --json; there the name of each number ends in its
unit (_s, _per_s, _bytes, macs, ...), shares are between 0 and 1, and what has no
unit is a count.

Exit status: 0; 1 for failures; 2 for usage errors; 130 if interrupted.`,
		Example: `  dsasched models
  dsasched schedule resnet50 --batch 4
  dsasched help schedule`,
		SilenceErrors:     true, // report prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Args = unknownCommand
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// A flag of a misspelt command is not the mistake to report.
		if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
			return unknownCommand(cmd, before)
		}
		hint := ""
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
			var names []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
			hint = suggest.Hint("--"+unknown.GetSpecifiedName(), names)
		}
		return usagef("%v%s (see '%s --help')", err, hint, cmd.CommandPath())
	})
	root.AddCommand(
		newModels(), newHardware(), newInspect(), newONNXOps(), newSchedule(), newVariants(), newBest(), newCompare(),
		newRun(experiment), newList(), newVersion(), newCompletion(), newSimulate(), newView(),
		newExplain(), newBound(), newCertify(), newMan(), newReport(),
		group("solve", "PROBLEM", "Solve a problem, by a rule or exactly",
			`Solve a problem of a file (allocate, joint, order, partition) or one that a
network poses (bind, layering, pipeline, split, stitch), by a rule or
exactly. An exact method that a limit ends has the best answer so far, with its
bound.`,
			"solve order chain.json", newAllocate(), newBind(), newJoint(), newOrder(), newSplit()),
		group("check", "ANSWER", "Check an answer by the rules alone",
			"Check an answer, whatever made it, by the rules of its problem alone.",
			"check order chain.json order.json", newCheckOrder(), newCheckSchedule()),
		group("export", "WHAT", "Write a problem that a network poses as a file",
			"Write a problem that a network poses as a file for 'dsasched solve'.",
			"export order bert-128 --batch 4 -o order-problem.json", newExportJoint(), newExportOrder()),
	)
	for _, of := range ofSystems[""] {
		root.AddCommand(of())
	}
	root.PersistentPreRunE = checkFiles
	root.SetHelpCommand(newHelp())
	groupCommands(root)
	root.SetUsageTemplate(strings.NewReplacer(".LocalFlags.FlagUsages", "wrapFlags .LocalFlags",
		".InheritedFlags.FlagUsages", "wrapFlags .InheritedFlags").
		Replace(root.UsageTemplate()))
	// Shells offer files only where a file is expected.
	for _, c := range documented(root) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			kind, _ := pflag.UnquoteUsage(f)
			if _, known := c.GetFlagCompletionFunc(f.Name); !known && kind != "file" {
				completeFlag(c, f.Name, cobra.NoFileCompletions)
			}
		})
	}
	return root
}

// commandGroups are the headings of 'dsasched help', and what stands below them.
var commandGroups = []struct{ title, commands string }{
	{"Schedule", "schedule variants simulate explain"},
	{"Compare and prove", "compare compare-hardware bound certify check solve"},
	{"Search", "best sweep tasks tune explain-kernel"},
	{"Draw", "inspect view report"},
	{"Experiments", "list run"},
	{"Files", "models hardware onnx-ops convert export"},
	{"Advanced", "bench calibrate man"},
}

func groupCommands(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, name := range strings.Fields(g.commands) {
			for _, c := range root.Commands() {
				if c.Name() == name {
					c.GroupID = g.title
				}
			}
		}
	}
}

// helpWidth is how wide the help is at most, in characters, and helpHeight how high the short one of a command, in
// lines.
const helpWidth, helpHeight = 100, 50

// everyday are the flags that the short help of a command explains.
var everyday = strings.Fields(
	"batch bind chunk clusters dtype evaluations full group hardware help html in-place json order out set split time-limit variant")

// helpOf gives all that the help says of a command, or what fits a screen.
func helpOf(all bool) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, _ []string) {
		check(unknownCommand(cmd, cmd.Flags().Args()))
		text := cmp.Or(cmd.Long, cmd.Short) + "\n\n" + cmd.UsageString()
		if all || strings.Count(text, "\n") <= helpHeight || cmd.HasSubCommands() {
			fmt.Fprint(cmd.OutOrStdout(), text)
			return
		}
		first, _, _ := strings.Cut(cmd.Long, "\n\n")
		examples := strings.Split(cmd.Example, "\n")
		flags, others := pflag.NewFlagSet("", pflag.ContinueOnError), []string{"Other", "flags:"}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			if !slices.Contains(everyday, f.Name) {
				others = append(others, "--"+f.Name)
				return
			}
			short := *f
			if at := strings.IndexAny(f.Usage, ":;("); at > 0 && len(f.Usage) > helpWidth {
				short.Usage = strings.TrimSpace(f.Usage[:at])
			}
			flags.AddFlag(&short)
		})
		fmt.Fprintf(cmd.OutOrStdout(),
			"%s\n\nUsage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s\n%s\n'%s --help-all' shows everything.\n", first, cmd.UseLine(),
			strings.Join(examples[:min(4, len(examples))], "\n"), flags.FlagUsagesWrapped(helpWidth),
			wrap(others, "", helpWidth, helpHeight), cmd.CommandPath())
	}
}

func init() {
	cobra.AddTemplateFunc("wrapFlags", func(f *pflag.FlagSet) string { return f.FlagUsagesWrapped(helpWidth) })
}

// group makes a command of those that follow its name.
func group(name, what, short, long, example string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " " + what, Short: short, Long: long, Example: "  dsasched " + example, Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := harness.Each(cmd.Commands(), func(c *cobra.Command) string { return c.Name() })
			return usagef("%s is missing: expected %s", what, oneOf(names))
		},
	}
	cmd.AddCommand(commands...)
	for _, of := range ofSystems[name] {
		cmd.AddCommand(of())
	}
	return cmd
}

// ofSystems are the commands of systems (package systems), by the command that they stand under; "" is dsasched. The
// files of a system, NAME.go and NAME_*.go, add their own.
var ofSystems = map[string][]func() *cobra.Command{}

func addOfSystem(under string, commands ...func() *cobra.Command) {
	ofSystems[under] = append(ofSystems[under], commands...)
}

// unknownCommand refuses what is no command of cmd. With it as Args, cobra leaves
// unknown commands to it instead of an error of several lines.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !cmd.HasSubCommands() {
		return nil
	}
	hint := fmt.Sprintf("'%s --help' lists the commands", cmd.CommandPath())
	names := harness.Each(cmd.Commands(), func(c *cobra.Command) string { return c.Name() })
	if near := suggest.Nearest(args[0], names); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("unknown command %q: %s", args[0], hint)
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		Example: `  dsasched help
  dsasched help schedule`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if len(args) == 0 {
				for _, c := range cmd.Root().Commands() {
					if c.IsAvailableCommand() || c == cmd {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q to explain: 'dsasched --help' lists the commands", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag() // else --help is missing from the flags
			return about.Help()
		},
	}
}

// attempt runs f and returns its value, or the error that ended it.
func attempt[T any](f func() T) (v T, err error) {
	defer bail.Caught(&err)
	return f(), nil
}

// check ends the command at an error, which execute and attempt return. try and try2 return values, or end it likewise.
func check(err error) { bail.Check(err) }

func try[T any](v T, err error) T { return bail.Of(v, err) }

func try2[T, U any](v T, w U, err error) (T, U) {
	check(err)
	return v, w
}

// blame is an error, if there is one, with the name of what it is about.
func blame(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// usageError is a mistake in the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// report prints an error as one line and returns the exit status.
func report(stderr io.Writer, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && strings.HasSuffix(err.Error(), context.Canceled.Error()):
		fmt.Fprintln(stderr, "dsasched: interrupted") // nothing to say of what was under way
		return exitInterrupted
	}
	text := oneLine(err.Error())
	if unread := new(onnx.UnsupportedError); errors.As(err, &unread) {
		text += " ("
		if unread.Countable {
			text += "--allow-unknown counts one operation per output element for each; "
		}
		text += "'dsasched onnx-ops' lists those that can be read)"
	}
	fmt.Fprintln(stderr, "dsasched: "+text)
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailure
}

// listedProblems is the number of lines of an error oneLine keeps: enough to see what
// kind of mess it is, and still a line that can be read.
const listedProblems = 3

// longestProblem is the number of bytes of a line of an error that oneLine keeps, the first and
// the last: the name in it may have any length, and the reason stands behind it.
const longestProblem = 1000

// oneLine joins the lines of an error; those of several mistakes in one file have a line each.
func oneLine(text string) string {
	var lines []string
	for _, l := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if l = printable(strings.TrimSpace(strings.ReplaceAll(l, "\t", " "))); l != "" {
			if len(l) > longestProblem {
				half := longestProblem / 2
				l = strings.ToValidUTF8(l[:half], "") + " ... " + strings.ToValidUTF8(l[len(l)-half:], "")
			}
			lines = append(lines, l)
		}
	}
	if more := len(lines) - listedProblems; more > 0 {
		lines = append(lines[:listedProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// clean replaces what a terminal would obey: names of files and in them may hold anything. The marks of writeTable's
// headings stay.
func clean(text []byte) []byte {
	parts := bytes.Split(text, []byte(bold))
	for i, p := range parts {
		rows := bytes.Split(p, []byte(plainAgain))
		for j := range rows {
			rows[j] = bytes.Map(func(r rune) rune {
				if r == '\n' || unicode.IsPrint(r) {
					return r
				}
				return '?'
			}, rows[j])
		}
		parts[i] = bytes.Join(rows, []byte(plainAgain))
	}
	return bytes.Join(parts, []byte(bold))
}

// finish prints the answer of work that may have been interrupted, and returns what kept files from being written, or
// what ended the work: what is known is printed all the same.
func finish(cmd *cobra.Command, answer any, write func(*bytes.Buffer), unwritten error) error {
	return cmp.Or(emit(cmd, answer, write), unwritten, cmd.Context().Err())
}

// begunKey is of the context's value that is the process's processor time when the command began.
type begunKey struct{}

// timed adds to an answer the processor time of the process, in seconds, since the command began.
func timed(cmd *cobra.Command, text []byte) []byte {
	begun, _ := cmd.Context().Value(begunKey{}).(time.Duration)
	spent := (harness.ProcessorTime() - begun).Seconds()
	if asJSON(cmd) {
		return bytes.Replace(text, []byte("\n}\n"), fmt.Appendf(nil, ",\n  \"processor_s\": %.3f\n}\n", spent), 1)
	}
	at := bytes.Index(slices.Concat(text, []byte("\n")), []byte("\n\n")) + 1 // behind the first rows
	b := bytes.NewBuffer(slices.Clone(text[:at]))
	row(b, "processor", "%s", duration(spent))
	return append(b.Bytes(), text[at:]...)
}

// emit prints an answer in one piece, as JSON or as the text that write makes of it.
func emit(cmd *cobra.Command, answer any, write func(*bytes.Buffer)) error {
	var b bytes.Buffer
	if asJSON(cmd) {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(answer); err != nil {
			return fmt.Errorf("the answer can't be written as JSON: %w", err)
		}
	} else {
		write(&b)
	}
	text := b.Bytes()
	if p := cmd.Parent(); p != nil && p.Name() == "solve" {
		text = timed(cmd, text)
	}
	if !asJSON(cmd) {
		text = clean(text)
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return fmt.Errorf("the answer can't be printed: %w", err)
	}
	return nil
}
