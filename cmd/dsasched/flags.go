package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/spell"
)

// number is a flag for a whole number of at least min.
type number struct {
	value, min int64
}

func (n *number) Type() string   { return "N" }
func (n *number) String() string { return strconv.FormatInt(n.value, 10) }

func (n *number) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < n.min {
		return fmt.Errorf("expected a whole number of at least %d", n.min)
	}
	n.value = v
	return nil
}

// choice is a flag for one of a few words.
type choice struct {
	value string
	kind  string // of word, for the help
	words []cobra.Completion
}

func (c *choice) Type() string   { return c.kind }
func (c *choice) String() string { return c.value }

func (c *choice) Set(text string) error {
	words := plain(c.words)
	if !slices.Contains(words, text) {
		return fmt.Errorf("expected %s%s", oneOf(words), spell.Hint(text, words))
	}
	c.value = text
	return nil
}

func (c *choice) complete(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.words, cobra.ShellCompDirectiveNoFileComp
}

func addChoice(cmd *cobra.Command, c *choice, name, usage string) {
	cmd.Flags().Var(c, name, usage)
	completeFlag(cmd, name, c.complete)
}

func completeFlag(cmd *cobra.Command, name string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
		panic("dsasched: " + err.Error())
	}
}

// addJSON adds --json.
func addJSON(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON instead of text")
}

// schedulingFlags say what is scheduled for which machine, and in which pieces.
type schedulingFlags struct {
	accelerator  string
	batch, chunk *number
	inPlace      bool
	network      *networkFlags
}

// addScheduling adds --hardware, --batch, --chunk, --in-place and the flags of
// addNetwork. zero says what --chunk 0 does.
func addScheduling(cmd *cobra.Command, zero string) *schedulingFlags {
	s := &schedulingFlags{batch: &number{value: 1, min: 1}, chunk: &number{}}
	f := cmd.Flags()
	f.StringVar(&s.accelerator, "hardware", "stcp920", "built-in accelerator or YAML `file`")
	completeFlag(cmd, "hardware", completeHardware)
	f.Var(s.batch, "batch", "batch size of the whole chip")
	completeFlag(cmd, "batch", cobra.NoFileCompletions)
	f.Var(s.chunk, "chunk", "images or sequences that a cluster works on at a time; 0: "+zero)
	completeFlag(cmd, "chunk", cobra.NoFileCompletions)
	f.BoolVar(&s.inPlace, "in-place", false, "let element-wise operators overwrite their input when groups are formed")
	s.network = addNetwork(cmd)
	return s
}

// addVariant adds --variant.
func addVariant(cmd *cobra.Command) *choice {
	c := &choice{value: "cross-layer", kind: "VARIANT", words: variantNames()}
	addChoice(cmd, c, "variant", "variant of the scheduler, as 'dsasched variants' lists them")
	return c
}

// networkFlags say how a network is read.
type networkFlags struct {
	cmd          *cobra.Command
	dtype        *choice
	dims         dims
	allowUnknown *bool
}

// addNetwork adds --dtype, --dim and --allow-unknown. A network's integers keep
// their type, so the types are those of floating-point numbers, and the one that
// quantisation makes of them.
func addNetwork(cmd *cobra.Command) *networkFlags {
	f := &networkFlags{cmd: cmd, dtype: &choice{value: model.F16.String(), kind: "TYPE", words: append(floatTypes(), model.I8.String())}}
	addChoice(cmd, f.dtype, "dtype", "type of the network's floating-point numbers: "+strings.Join(f.dtype.words, ", ")+" (as after quantisation)")
	cmd.Flags().Var(&f.dims, "dim", "size of a symbolic dimension of an ONNX file; may be repeated")
	completeFlag(cmd, "dim", cobra.NoFileCompletions)
	f.allowUnknown = cmd.Flags().Bool("allow-unknown", false, "count unknown operators of an ONNX file as one operation per output element")
	return f
}

// options are what the flags say. Warnings go to the standard error.
func (f *networkFlags) options() network.Options {
	t, err := model.ParseDType(f.dtype.value)
	if err != nil {
		panic("dsasched: " + err.Error()) // Set has checked it
	}
	w := f.cmd.ErrOrStderr()
	return network.Options{DType: t, Dims: f.dims.m, AllowUnknown: *f.allowUnknown,
		Warn: func(s string) { fmt.Fprintf(w, "dsasched: warning: %s\n", printable(s)) }}
}

// dims is the value of --dim.
type dims struct{ m map[string]int64 }

func (d *dims) String() string { return "" }

func (d *dims) Type() string { return "NAME=SIZE" }

func (d *dims) Set(s string) error {
	// Names may hold anything, sizes no equals sign.
	i := strings.LastIndexByte(s, '=')
	if i < 1 {
		return fmt.Errorf("found %q, expected NAME=SIZE", s)
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("found size %q of dimension %q, expected a positive number", s[i+1:], s[:i])
	}
	if old, ok := d.m[s[:i]]; ok && old != n {
		return fmt.Errorf("dimension %q is both %d and %d", s[:i], old, n)
	}
	if d.m == nil {
		d.m = map[string]int64{}
	}
	d.m[s[:i]] = n
	return nil
}

func dtypes() []model.DType {
	var ts []model.DType
	for t := model.DType(0); t.Valid(); t++ {
		ts = append(ts, t)
	}
	return ts
}

func floatTypes() []cobra.Completion {
	var names []cobra.Completion
	for _, t := range dtypes() {
		if t.IsFloat() {
			names = append(names, t.String())
		}
	}
	return names
}

func variantNames() []cobra.Completion {
	var names []cobra.Completion
	for _, v := range scheduler.All() {
		names = append(names, cobra.CompletionWithDesc(v.Name, v.Description))
	}
	return names
}

// completeModel offers the networks of the zoo, and files.
func completeModel(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, name := range zoo.Names() {
		info, _ := zoo.Describe(name)
		names = append(names, cobra.CompletionWithDesc(name, info.Description))
	}
	return names, cobra.ShellCompDirectiveDefault
}

// completeHardware offers the presets, and files.
func completeHardware(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return hardware.Presets(), cobra.ShellCompDirectiveDefault
}

// plain drops the descriptions of completions.
func plain(words []cobra.Completion) []string {
	names := make([]string, len(words))
	for i, w := range words {
		names[i], _, _ = strings.Cut(w, "\t")
	}
	return names
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// oneArg and its kin are cobra's, with errors that are usage errors and say what
// is missing.
func oneArg(what, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("%s is missing: %s", what, hint)
		case len(args) > 1:
			return usagef("%s takes one %s, found %d: %s", cmd.CommandPath(), what, len(args), quoted(args))
		}
		return nil
	}
}

func atMostOneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usagef("%s takes at most one %s, found %d: %s", cmd.CommandPath(), what, len(args), quoted(args))
		}
		return nil
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, found %s", cmd.CommandPath(), quoted(args))
	}
	return nil
}

func quoted(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = strconv.Quote(w)
	}
	return strings.Join(q, ", ")
}
