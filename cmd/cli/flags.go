package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// number is a flag for a whole number of at least min.
type number struct {
	value, min int64
	max        int64 // 0: none
}

func (n *number) Type() string   { return "N" }
func (n *number) String() string { return strconv.FormatInt(n.value, 10) }

func (n *number) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < n.min {
		return fmt.Errorf("expected a whole number of at least %d", n.min)
	}
	if n.max > 0 && v > n.max {
		return fmt.Errorf("expected a whole number of at most %d", n.max)
	}
	n.value = v
	return nil
}

// addNumber adds a flag for a whole number of at least min, which is value by default.
func addNumber(cmd *cobra.Command, name string, value, min int64, usage string) *number {
	n := &number{value: value, min: min}
	cmd.Flags().Var(n, name, usage)
	return n
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
		return notOne(text, words)
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

// asJSON tells whether a command prints JSON.
func asJSON(cmd *cobra.Command) bool {
	v, _ := cmd.Flags().GetBool("json") // false of commands without it
	return v
}

// limit is a flag for a time limit; 0, if it is allowed, is none.
type limit struct {
	value   time.Duration
	orNever bool
	set     bool
}

func (l *limit) Type() string { return "duration" }

func (l *limit) String() string {
	if l.value == 0 && !l.set {
		return ""
	}
	return l.value.String()
}

func (l *limit) Set(text string) error {
	v, err := time.ParseDuration(text)
	switch {
	case err != nil || v < 0:
		return errors.New("expected a time such as 60s")
	case v == 0 && !l.orNever:
		return errors.New("expected a time of more than 0s, such as 60s")
	}
	l.value, l.set = v, true
	return nil
}

// outFile is a flag for the name of a file to write; see [checkFiles].
type outFile struct {
	name    string   // "": none
	endings []string // that the name may have; nil: any
	stdout  bool     // - is the standard output
}

// stdoutName stands for the standard output where a file is expected.
const stdoutName = "-"

func (o *outFile) Type() string   { return "file" }
func (o *outFile) String() string { return o.name }

func (o *outFile) Set(text string) error {
	switch {
	case text == "", text == stdoutName && !o.stdout:
		return errors.New("expected a file name")
	case o.endings != nil && text != stdoutName && !slices.Contains(o.endings, strings.ToLower(filepath.Ext(text))):
		return fmt.Errorf("expected a name that ends in %s", oneOf(o.endings))
	}
	o.name = text
	return nil
}

// addFile adds a flag for a file to write. Its name is short and long, such as "o out", or long.
func addFile(cmd *cobra.Command, name, usage string, endings ...string) *outFile {
	o := &outFile{endings: endings}
	short, long, ok := strings.Cut(name, " ")
	if !ok {
		short, long = "", name
	}
	cmd.Flags().VarP(o, long, short, usage)
	return o
}

// checkFiles refuses files to write that would take the place of a file that is read,
// or of each other, or that can't be written: a long search would be for nothing.
func checkFiles(cmd *cobra.Command, args []string) error {
	written := map[string]string{} // flags by file
	var err error
	read := slices.Clone(args)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, ok := f.Value.(*outFile); ok || f.Name == "start" { // a schedule may be replaced by a better one
			return
		}
		switch value := f.Value.String(); {
		case f.Value.Type() == "string":
			read = append(read, value)
		case f.Name == "set" || f.Name == "hardware" || f.Name == "network":
			read = append(read, strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("[],=", r) })...)
		}
	})
	cmd.Flags().Visit(func(f *pflag.Flag) {
		o, ok := f.Value.(*outFile)
		if !ok || err != nil {
			return
		}
		before, twice := written[filepath.Clean(o.name)]
		switch {
		case twice:
			err = usagef("--%s and --%s name the same file, %s: give each a file of its own", before, f.Name, o.name)
		case o.name == stdoutName && asJSON(cmd):
			err = usagef("--json and --%s - exclude each other: both write to the standard output", f.Name)
		case slices.ContainsFunc(read, func(in string) bool {
			x, _ := os.Stat(in) // an error is reported when the file is read
			y, _ := os.Stat(o.name)
			return os.SameFile(x, y)
		}):
			err = usagef("--%s: %s is the file that is read: give another name", f.Name, o.name)
		case o.name != stdoutName:
			err = canReplace(o.name)
		}
		written[filepath.Clean(o.name)] = f.Name
	})
	return err
}

// oneChip reads an accelerator, and refuses a machine of several chips.
func oneChip(name string) *hardware.Spec {
	spec, err := hardware.Load(name)
	if err != nil {
		if several, bad := scheduler.OpenMachine(name); bad == nil && several.Chips != nil {
			err = fmt.Errorf("%s is a machine of %d chips, expected one chip", name, several.Chips.Count)
		}
	}
	return try(spec, err)
}

func addHardware(cmd *cobra.Command) *string {
	name := cmd.Flags().String("hardware", "stcp920", "built-in accelerator or YAML `file`")
	completeFlag(cmd, "hardware", completeHardware)
	return name
}

// addBatch adds --batch and --chunk; zero says what --chunk 0 does.
func addBatch(cmd *cobra.Command, zero string) (batch, chunk *number) {
	return addWholeBatch(cmd), addNumber(cmd, "chunk", 0, 0,
		"images or sequences that a cluster works on at a time; 0: "+zero)
}

// addWholeBatch adds --batch.
func addWholeBatch(cmd *cobra.Command) *number {
	batch := addNumber(cmd, "batch", 1, 1, "batch size of the whole chip")
	batch.max = scheduler.MaxBatch
	return batch
}

// addOwnBatch adds --batch for commands that read a network as it is.
func addOwnBatch(cmd *cobra.Command) *number {
	batch := addNumber(cmd, "batch", 0, 1, "batch size (default: the file's own, or 1)")
	cmd.Flags().Lookup("batch").DefValue = "" // 0 would not be accepted
	return batch
}

func addInPlace(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("in-place", false, "let element-wise operators overwrite their input when groups are formed")
}

// addUneven adds --uneven; [unevenOf] is its value.
func addUneven(cmd *cobra.Command) *choice {
	c := &choice{value: schedule.UnevenFastest.String(), kind: "PIECES", words: schedule.UnevenNames[:]}
	addChoice(cmd, c, "uneven", "splits that need not divide an extent: "+strings.Join(c.words, ", ")+
		" (none: even splits only; outputs: instances, if the factor divides intermediates; all: instances and slices of cores; "+
		"divisors: all, also on divisors of the core count; fastest: the best of none and all, for tiled also divisors)")
	return c
}

func unevenOf(c *choice) schedule.Uneven {
	u, err := schedule.ParseUneven(c.value)
	if err != nil {
		panic("dsasched: " + err.Error()) // Set has checked it
	}
	return u
}

func addWorkers(cmd *cobra.Command, what string) *number {
	return addNumber(cmd, "workers", 0, 0, "number of "+what+" at a time; 0: one per core")
}

// addLimit adds --time-limit for what is limited.
func addLimit(cmd *cobra.Command, value time.Duration, usage string) *limit {
	l := &limit{value: value}
	cmd.Flags().Var(l, "time-limit", usage)
	return l
}

// schedulingFlags say what is scheduled for which machine, and in which pieces.
type schedulingFlags struct {
	accelerator  *string
	batch, chunk *number
	inPlace      *bool
	uneven       *choice
	network      *networkFlags
}

// addScheduling adds --hardware, --batch, --chunk, --in-place, --uneven and the flags of
// addNetwork. zero says what --chunk 0 does.
func addScheduling(cmd *cobra.Command, zero string) *schedulingFlags {
	s := &schedulingFlags{accelerator: addHardware(cmd), inPlace: addInPlace(cmd), uneven: addUneven(cmd),
		network: addNetwork(cmd)}
	s.batch, s.chunk = addBatch(cmd, zero)
	return s
}

// recipeFlags say in addition by which decisions.
type recipeFlags struct {
	*schedulingFlags
	variant   *choice
	decisions *decisionFlags
	clusters  *choice // nil: by the batch
	limit     *limit
	work      *int64
	tuned     *string
	figures   bool // the program's commands are not wanted
	deciding  func(stage, strategy string) (decided func())
}

// stepByStep is the variant whose decisions are replaced where a strategy is named and no variant: tiled takes the
// fastest of several as a whole.
const stepByStep = "cross-layer"

// readKernels reads a file of tuned kernels, and the chunk that they are for; Ansor's commands set it.
var readKernels = func(string) (t any, chunk int64) {
	check(errors.New("--tuned: this program reads no tuned kernels"))
	return nil, 0
}

// addRecipe adds the flags of addScheduling, --variant, which is a variant of this name by default, a flag for each
// decision but those in except, and --time-limit.
func addRecipe(cmd *cobra.Command, variant string, except ...string) *recipeFlags {
	r := &recipeFlags{addScheduling(cmd, "tune"), &choice{value: variant, kind: "VARIANT", words: variantNames()},
		addDecisions(cmd, except...), nil, addLimit(cmd, time.Minute, "time for each integer program, such as 60s"),
		cmd.Flags().Int64("work", 0, "node limit of each integer program, instead of --time-limit; 0: no limit"),
		cmd.Flags().String("tuned", "", "`file` of 'dsasched tune' with the loops for --nest ansor"), false, nil}
	usage := "variant of the scheduler, as 'dsasched variants' lists them"
	if variant != stepByStep {
		usage += "; with a strategy named for a single decision: " + stepByStep
	}
	addChoice(cmd, r.variant, "variant", usage)
	return r
}

// run schedules a network and simulates the result.
func (f *recipeFlags) run(cmd *cobra.Command, name string, show *status) (schedulefile.Origin, *scheduler.Result) {
	spec := try(scheduler.OpenMachine(*f.accelerator))
	opt := scheduler.Options{InPlace: *f.inPlace, Uneven: unevenOf(f.uneven), Chunk: f.chunk.value,
		Progress: show.decision(), Figures: f.figures, Deciding: f.deciding, Chunks: show.chunks()}
	if f.clusters != nil {
		opt.Clusters = try(scheduler.LookupDivision(f.clusters.value))
	}
	var notes []string
	if opt.Clusters != scheduler.OverBatch && spec.AllClusters() == 1 && !spec.Mixed() {
		notes = append(notes, fmt.Sprintf("--clusters %s divides nothing: %s has one cluster", opt.Clusters, spec.Name))
	}
	for _, x := range f.decisions.flags {
		if x.decision.Name == "kinds" && x.value != "" && !spec.Mixed() {
			notes = append(notes, fmt.Sprintf("--kinds decides nothing: the cores of %s are of one kind", spec.Name))
			x.value = ""
		}
	}
	if opt.TimeLimit, opt.WorkLimit = f.limit.value, *f.work; opt.WorkLimit < 0 {
		check(usagef("found --work %d, expected 0 or more", opt.WorkLimit))
	}
	if opt.WorkLimit > 0 && !cmd.Flags().Changed("time-limit") {
		opt.TimeLimit = 0
	}
	v, err := recipes.Lookup(f.variant.value)
	if picks := f.decisions.picks(); err == nil && !cmd.Flags().Changed("variant") && len(picks) > 0 {
		if slices.ContainsFunc(picks, func(p scheduler.Pick) bool { return !v.Has(p) }) {
			v, err = recipes.Lookup(stepByStep)
		} else {
			v = v.Having(picks)
		}
	}
	check(err)
	opt = withSolver(opt)
	v, err = v.Replace(opt, f.decisions.picks()...)
	check(explainSolver(err))
	if *f.tuned != "" {
		if v.Pick("nest") != "ansor" {
			check(usagef("--tuned needs --variant ansor or graphturbo+ansor, or --nest ansor"))
		}
		t, chunk := readKernels(*f.tuned)
		opt.Tuned, opt.Chunk = t, cmp.Or(opt.Chunk, chunk)
	}
	from := f.network.options()
	src := try(network.Open(name, from))
	r, err := scheduler.Run(cmd.Context(), src, spec, f.batch.value, v, opt)
	if err != nil && opt.Chunk != f.chunk.value {
		err = fmt.Errorf("%s is tuned in chunks of %d: %w", *f.tuned, opt.Chunk, err)
	}
	check(err)
	r.Notes = append(r.Notes, notes...)
	by := r.By()
	return schedulefile.Origin{MadeBy: madeBy, Model: name, DType: from.DType.String(), Grain: f.network.parts(),
		InPlace: opt.InPlace, Spill: by.Pick("spill")}, r
}

// networkFlags say how a network is read.
type networkFlags struct {
	cmd          *cobra.Command
	dtype, grain *choice
	dims         dims
	allowUnknown *bool
}

// addNetwork adds --dtype, --grain, --dim and --allow-unknown. A network's integers keep their type, so the types are
// those of floating-point numbers, and the one that quantisation makes of them.
func addNetwork(cmd *cobra.Command) *networkFlags {
	f := &networkFlags{cmd: cmd, dtype: &choice{value: model.F16.String(), kind: "TYPE",
		words: append(floatTypes(), model.I8.String())},
		grain: &choice{value: string(grain.Given), kind: "GRAIN", words: grains()}}
	addChoice(cmd, f.dtype, "dtype", "type of the network's floating-point numbers: "+strings.Join(f.dtype.words,
		", ")+" (as after quantisation)")
	addChoice(cmd, f.grain, "grain",
		"decompose operators: given (none), framework (layer norms, activations, embedding bags), primitive (softmaxes, too)")
	cmd.Flags().Var(&f.dims, "dim", "size of a symbolic dimension of an ONNX file; may be repeated")
	f.allowUnknown = cmd.Flags().Bool("allow-unknown", false,
		"count unknown operators of an ONNX file as one operation per output element")
	return f
}

// parts is --grain, "" where nothing is taken apart.
func (f *networkFlags) parts() string {
	if f.grain.value == string(grain.Given) {
		return ""
	}
	return f.grain.value
}

func grains() []string {
	return harness.Each(grain.Grains(), func(g grain.Grain) string { return string(g) })
}

// options are the settings of the flags. Warnings go to the standard error.
func (f *networkFlags) options() network.Options {
	t, err := model.ParseDType(f.dtype.value)
	if err != nil {
		panic("dsasched: " + err.Error()) // Set has checked it
	}
	w := f.cmd.ErrOrStderr()
	return network.Options{DType: t, Grain: grain.Grain(f.grain.value), Dims: f.dims.m, AllowUnknown: *f.allowUnknown,
		Warn: func(s string) { fmt.Fprintf(w, "dsasched: warning: %s\n", printable(s)) }}
}

// dims is the value of --dim.
type dims struct{ m map[string]int64 }

func (d *dims) String() string { return "" }

// GetSlice lists the sizes as [dims.Set] takes them.
func (d *dims) GetSlice() []string {
	return harness.Each(slices.Sorted(maps.Keys(d.m)), func(name string) string {
		return fmt.Sprintf("%s=%d", name, d.m[name])
	})
}

// Append adds a size, and Replace puts sizes in the place of all: a dims is a pflag.SliceValue.
func (d *dims) Append(s string) error { return d.Set(s) }

func (d *dims) Replace(list []string) error {
	d.m = nil
	for _, s := range list {
		if err := d.Set(s); err != nil {
			return err
		}
	}
	return nil
}

func (d *dims) Type() string { return "NAME=SIZE" }

func (d *dims) Set(s string) error {
	// Names may hold anything, sizes no equals sign.
	i := strings.LastIndexByte(s, '=')
	if i < 1 {
		return fmt.Errorf("found %q, expected NAME=SIZE", s)
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("found size %q of dimension %q, expected a number of at least 0", s[i+1:], s[:i])
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

func variantNames() []cobra.Completion { return variantWords(recipes.Known()) }

func variantWords(list []scheduler.Recipe) []cobra.Completion {
	return harness.Each(list, func(v scheduler.Recipe) cobra.Completion {
		return cobra.CompletionWithDesc(v.Name, v.Description)
	})
}

// completeOne completes the only argument of a command, with these words or as the directive says.
func completeOne(words []cobra.Completion, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, directive
	}
}

// completeFile completes the only argument of a command, a file with one of these endings.
func completeFile(endings ...cobra.Completion) cobra.CompletionFunc {
	return completeOne(endings, cobra.ShellCompDirectiveFilterFileExt)
}

// completeFolders offers folders.
var completeFolders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// completeModel offers the networks of the zoo, and files.
func completeModel(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, name := range zoo.Names() {
		info, _ := zoo.Describe(name)
		names = append(names, cobra.CompletionWithDesc(name, info.Description))
	}
	return completeOne(names, cobra.ShellCompDirectiveDefault)(cmd, args, word)
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

// notOne is the error of a flag whose value is none of the words.
func notOne(value string, words []string) error {
	if near := suggest.Hint(value, words); near != "" {
		return errors.New(strings.Trim(near, " ()"))
	}
	if len(words) == 1 {
		return fmt.Errorf("expected %s", words[0])
	}
	return fmt.Errorf("expected one of %s", suggest.Some(words))
}

// oneArg and its kin are cobra's, with errors that are usage errors and say what is missing.
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

// takesModel gives a command the argument MODEL.
func takesModel(cmd *cobra.Command) { takesModelAs(cmd, "MODEL") }

// modelHint is for a missing network.
const modelHint = "give a name that 'dsasched models' lists, or the path of an ONNX file"

// takesModelAs is takesModel under another name.
func takesModelAs(cmd *cobra.Command, name string) {
	cmd.Args, cmd.ValidArgsFunction = oneArg(name, modelHint), completeModel
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

// decisionFlags are a flag for each decision of the scheduler, which puts another
// strategy in the place of the variant's.
type decisionFlags struct{ flags []*strategyFlag }

type strategyFlag struct {
	decision scheduler.Stage
	value    string // "": the variant's own
}

func (f *strategyFlag) Type() string   { return "STRATEGY" }
func (f *strategyFlag) String() string { return f.value }

func (f *strategyFlag) Set(text string) error {
	s, err := f.decision.Lookup(text)
	if err != nil {
		return notOne(text, harness.Each(f.decision.Strategies, func(s scheduler.Strategy) string { return s.Name }))
	}
	f.value = s.Name
	return nil
}

// addDecisions adds the flags; help and completion come from the decisions' rows. For the decisions in except the
// command has another flag of that name.
func addDecisions(cmd *cobra.Command, except ...string) *decisionFlags {
	d := &decisionFlags{}
	for _, decision := range scheduler.Choices() {
		if slices.Contains(except, decision.Name) {
			continue
		}
		f := &strategyFlag{decision: decision}
		d.flags = append(d.flags, f)
		words := harness.Each(decision.Strategies, func(s scheduler.Strategy) cobra.Completion {
			return cobra.CompletionWithDesc(s.Name, s.Description)
		})
		cmd.Flags().Var(f, decision.Name, decision.Description+": "+strings.Join(plain(words), ", "))
		completeFlag(cmd, decision.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return d
}

func (d *decisionFlags) picks() []scheduler.Pick {
	var picks []scheduler.Pick
	for _, f := range d.flags {
		if f.value != "" {
			picks = append(picks, scheduler.Pick{Stage: f.decision.Name, Strategy: f.value})
		}
	}
	return picks
}

// withSolver gives options the solver of this build, if it has one.
func withSolver(opt scheduler.Options) scheduler.Options {
	if s, err := highs.New(); err == nil {
		opt.Solver = s
	}
	return opt
}

// explainSolver adds to the error of a missing solver why it is missing, and turns
// other mistakes in the choice of strategies into usage errors.
func explainSolver(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, scheduler.ErrNoSolver) {
		if _, missing := highs.New(); missing != nil {
			return fmt.Errorf("%w: %w", err, missing)
		}
	}
	return usageError{err}
}
