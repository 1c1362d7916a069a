package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/schedules"
	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func init() {
	addOfSystem("", newBench)
}

// benchAnswer is a checked answer to an instance: its cost, infinite without one, and its file.
type benchAnswer struct {
	cost, bound float64
	file        []byte
}

// A benchKind is a kind of the benchmark. run solves the instance of a file, whose data it
// gets, by a method and checks the answer.
type benchKind struct {
	name, ending, answer, what string
	methods                    []solve.Method
	run                        func(context.Context, string, []byte, string, benchLimits) benchAnswer
}

var benchKinds = []benchKind{
	{"allocation", "csv", "csv", "bytes of the memory", allocate.Methods(), benchAllocation},
	{"spilling", "csv", "csv", "bytes moved", allocate.SpillMethods(), benchSpilling},
	{"order", "json", "json", "bytes stored and loaded", ordering.Methods(), benchOrder},
	{"binding", "json", "json", "nanoseconds of the cost model", binding.Methods(), benchChoices(binding.Read,
		func(ctx context.Context, p *binding.Problem, method string, opts binding.Options) ([]int, float64) {
			r := try(binding.Solve(ctx, p, method, opts))
			return r.Choice, r.Bound
		})},
	{"groups", "json", "json", "nanoseconds of the cost model", split.Methods(), benchChoices(split.Read,
		func(ctx context.Context, p *split.Problem, method string, opts split.Options) ([]int, float64) {
			r := try(split.Solve(ctx, p, method, opts))
			return r.Choice, r.Bound
		})},
	{"joint", "json", "json", "picoseconds of the cost model", joint.Methods(), benchJoint},
	{"network", "json", "json", "picoseconds, simulated", variantMethods(), benchNetwork},
}

// variantMethods are the variants of the scheduler as methods.
func variantMethods() (list []solve.Method) {
	for _, v := range recipes.Known() {
		list = append(list, solve.Method{Name: v.Name, Description: v.Description})
	}
	return list
}

type benchLimits struct {
	limit  time.Duration
	solver milp.Solver
}

func newBench() *cobra.Command {
	names := harness.Each(benchKinds, func(k benchKind) string { return k.name })
	var words []cobra.Completion
	for _, k := range benchKinds {
		for _, m := range methodWords(k.methods) {
			name, _, _ := strings.Cut(m, "\t")
			if !slices.ContainsFunc(words, func(w string) bool { return w == name || strings.HasPrefix(w, name+"\t") }) {
				words = append(words, m)
			}
		}
	}
	names = append(names, "schedules")
	cmd := withJSON(&cobra.Command{
		Use:   "bench KIND",
		Short: "Run a method over a kind of the frozen benchmark",
		Long: `Run a method over all instances of a kind of the frozen benchmark, the folder bench
of the project, and print its answers beside the best that are known. Kinds:
` + strings.Join(names, ", ") + `.
Methods of network are variants. Each answer is checked; bench/check.py checks the
best ones by a second program. --keep writes answers and bounds that are better into
the folder, instance by instance, so that it can be interrupted.

Kind schedules is a table: 40 networks on six machines, greedily and exactly within
limits of work, beside a bound. It is computed again, whole or --sample cells of it,
and compared; what it shows is said of the frozen table. --keep writes cells
anew, better or not.`,
		Example: `  dsasched bench allocation
  dsasched bench order --method dfs --json
  dsasched bench schedules --sample 1`,
		Args:              oneArg("KIND", "give one of "+strings.Join(names, ", ")),
		ValidArgsFunction: completeOne(names, cobra.ShellCompDirectiveNoFileComp),
	})
	quiet := addQuiet(cmd)
	dir := cmd.Flags().String("dir", "bench", "`folder` of the benchmark")
	keep := cmd.Flags().Bool("keep", false, "write better answers and bounds into the folder")
	limit := addLimit(cmd, 10*time.Second, "time for each instance, or each exact decision of a network, such as 2s")
	method := &choice{kind: "METHOD", words: words}
	addChoice(cmd, method, "method", "method of the kind (default: the first exact one without a solver, or the first)")
	table := addTable(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k := slices.Index(names, args[0])
		if k < 0 {
			return usagef("unknown kind %q: %s", args[0], strings.Join(names, ", "))
		}
		if k == len(benchKinds) {
			return table.run(cmd, *dir, *keep, *quiet)
		}
		return runBench(cmd, k, method.value, *dir, limit.value, *keep, *quiet)
	}
	return cmd
}

type benchRow struct {
	Instance string   `json:"instance"`
	Cost     *float64 `json:"cost"` // null: no answer
	Bound    float64  `json:"bound"`
	Best     float64  `json:"best"`
	Known    float64  `json:"best_bound"`
	Gap      *float64 `json:"gap"`
}

func runBench(cmd *cobra.Command, k int, method, dir string, limit time.Duration, keep, quiet bool) error {
	kind := benchKinds[k]
	if method == "" {
		method = kind.methods[0].Name
		if i := slices.IndexFunc(kind.methods, func(m solve.Method) bool { return m.Exact && !m.NeedsSolver }); i >= 0 {
			method = kind.methods[i].Name
		}
	}
	if !slices.ContainsFunc(kind.methods, func(m solve.Method) bool { return m.Name == method }) {
		known := harness.Each(kind.methods, func(m solve.Method) string { return m.Name })
		return usagef("--method %s is none of %s: %s", method, kind.name, strings.Join(known, ", "))
	}
	solver := try(solverFor(kind.methods, method))
	best := readBest(filepath.Join(dir, "best.csv"))
	files, err := filepath.Glob(filepath.Join(dir, kind.name, "*."+kind.ending))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: found no instance, expected files *.%s", filepath.Join(dir, kind.name), kind.ending)
	}
	check(err)
	slices.SortFunc(files, compareNames)
	var rows []benchRow
	show := newStatus(cmd, quiet)
	defer show.end()
	for i, file := range files {
		show.show(func(time.Duration) string {
			return fmt.Sprintf("bench: %d of %d instances, %s", i, len(files), printable(filepath.Base(file)))
		})
		data, err := safefile.ReadUpTo(file, 1<<24)
		check(blame(file, err))
		a, err := attempt(func() benchAnswer {
			return kind.run(cmd.Context(), file, data, method, benchLimits{limit, solver})
		})
		if cmd.Context().Err() != nil {
			break // what is complete is shown
		}
		check(blame(file, err))
		name := strings.TrimSuffix(filepath.Base(file), "."+kind.ending)
		r := benchRow{Instance: name, Bound: a.bound}
		if !math.IsInf(a.cost, 1) {
			r.Cost = &a.cost
		}
		b := best.of(kind.name, name)
		if keep {
			best.keep(dir, kind.answer, method, b, a)
		}
		r.Best, r.Known = b.best, b.bound
		if math.IsInf(b.best, 1) {
			r.Best = 0
		} else if r.Cost != nil && b.best > 0 {
			gap := a.cost/b.best - 1
			r.Gap = &gap
		}
		rows = append(rows, r)
	}
	show.end()
	answer := struct {
		Kind   string     `json:"kind"`
		Method string     `json:"method"`
		Rows   []benchRow `json:"instances"`
	}{kind.name, method, rows}
	err = emit(cmd, answer, func(b *bytes.Buffer) {
		row(b, "kind", "%s by %s: %s", kind.name, method, kind.what)
		list(b, "", "<instance|answer|bound|best known|its bound|above best", rows, func(_ int, r benchRow) []any {
			return []any{r.Instance, known(r.Cost, decimal), decimal(r.Bound), decimal(r.Best), decimal(r.Known),
				known(r.Gap, percent)}
		})
	})
	return cmp.Or(err, cmd.Context().Err())
}

// compareNames orders numbers in names by their value.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// bestKnown are the rows of best.csv.
type bestKnown []*bestRow

type bestRow struct {
	kind, instance, source, method string
	best, bound                    float64
}

func (k *bestKnown) of(kind, instance string) *bestRow {
	for _, r := range *k {
		if r.kind == kind && r.instance == instance {
			return r
		}
	}
	r := &bestRow{kind: kind, instance: instance, best: math.Inf(1)}
	// Names of generated ones are g, the size, and the seed.
	if size, seed, ok := strings.Cut(strings.TrimPrefix(instance, "g"), "-"); ok && generatedName.MatchString(instance) {
		seed, _, _ = strings.Cut(seed, ".")
		r.source = fmt.Sprintf("generate.py %s %s %s", kind, size, seed)
	}
	*k = append(*k, r)
	return r
}

var generatedName = regexp.MustCompile(`^g\d+-\d+`)

// answer is the file of the best answer. Its name has the cost, so that the file of a better one does not take its
// place before best.csv does.
func (r *bestRow) answer(dir, ending string) string {
	return filepath.Join(dir, "answers", r.kind, fmt.Sprintf("%s.%s.%s", r.instance, decimal(r.best), ending))
}

// keep takes what is better of an answer into the row and the folder: first its file, then best.csv as a whole, then
// the old file goes. Wherever that ends, best.csv and the files that it names agree.
func (k bestKnown) keep(dir, ending, method string, r *bestRow, a benchAnswer) {
	old, better := r.answer(dir, ending), a.cost < r.best
	if !better && a.bound <= r.bound {
		return
	}
	if better {
		r.best, r.method = a.cost, method
		check(os.MkdirAll(filepath.Dir(old), 0o777))
		check(replaceFile(r.answer(dir, ending), a.file))
	}
	r.bound = max(r.bound, a.bound)
	check(replaceFile(filepath.Join(dir, "best.csv"), k.text()))
	if better {
		if err := os.Remove(old); !errors.Is(err, os.ErrNotExist) {
			check(err)
		}
	}
}

func readBest(file string) bestKnown {
	data, err := safefile.ReadUpTo(file, 1<<24)
	if errors.Is(err, os.ErrNotExist) {
		check(fmt.Errorf("%w (--dir is the folder of the benchmark)", err))
	}
	check(err)
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	check(blame(file, err))
	var list bestKnown
	for i, f := range rows {
		if i == 0 {
			continue
		}
		if len(f) != 6 {
			check(fmt.Errorf("%s:%d: found %d fields, expected 6", file, i+1, len(f)))
		}
		r := &bestRow{kind: f[0], instance: f[1], source: f[2], method: f[5]}
		for k, v := range []*float64{&r.best, &r.bound} {
			if *v, err = strconv.ParseFloat(f[3+k], 64); err != nil {
				check(fmt.Errorf("%s:%d: found %q, expected a number", file, i+1, f[3+k]))
			}
		}
		list = append(list, r)
	}
	return list
}

func (k bestKnown) text() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"kind", "instance", "source", "best", "bound", "method"})
	for _, r := range k {
		if !math.IsInf(r.best, 1) {
			w.Write([]string{r.kind, r.instance, r.source, decimal(r.best), decimal(r.bound), r.method})
		}
	}
	w.Flush()
	return b.Bytes()
}

func benchAllocation(ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
	p := try(allocate.ReadCSV(file, data))
	r := try(allocate.Solve(ctx, p, allocate.NoLimit, method, allocate.Options{TimeLimit: l.limit, Solver: l.solver}))
	if r.Offsets == nil {
		return benchAnswer{cost: math.Inf(1)}
	}
	check(allocate.Check(p, allocate.NoLimit, r.Offsets))
	var b bytes.Buffer
	check(allocate.WriteCSV(&b, p, r.Offsets))
	return benchAnswer{float64(p.Peak(r.Offsets)), float64(r.Bound), b.Bytes()}
}

func benchSpilling(ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
	p := try(allocate.ReadCSV(file, data))
	parts := strings.Split(file, ".")
	capacity, err := strconv.ParseInt(parts[max(0, len(parts)-2)], 10, 64)
	if err != nil {
		check(fmt.Errorf("found no capacity in the name, expected one before .csv"))
	}
	o := allocate.SpillOptions{Place: true, PlaceNodes: placeNodes}
	o.TimeLimit, o.Solver = l.limit, l.solver
	r := try(allocate.SolveSpill(ctx, p, capacity, method, o))
	if r.Offsets == nil {
		return benchAnswer{cost: math.Inf(1), bound: float64(r.Bound)}
	}
	stay := &allocate.Problem{Name: p.Name}
	var offsets []int64
	for i, b := range p.Buffers {
		if !r.Spilled[i] {
			stay.Buffers = append(stay.Buffers, b)
			offsets = append(offsets, r.Offsets[i])
		}
	}
	check(allocate.Check(stay, capacity, offsets))
	var b bytes.Buffer
	check(allocate.WriteCSV(&b, stay, offsets))
	return benchAnswer{float64(allocate.SpillCost(p, r.Spilled)), float64(r.Bound), b.Bytes()}
}

func benchOrder(ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
	p := try(ordering.Read(file, data))
	r := try(ordering.Solve(ctx, p, ordering.Traffic, method, ordering.Options{TimeLimit: l.limit, Solver: l.solver}))
	if !r.Status.HasValues() {
		return benchAnswer{cost: math.Inf(1)}
	}
	v := try(ordering.Check(p, r))
	r.Seconds = 0 // the same answer gives the same file
	return benchAnswer{v.Cost, max(0, r.Bound), append(try(json.Marshal(r)), '\n')}
}

func benchJoint(ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
	p := try(joint.Read(file, data))
	r := try(joint.Solve(ctx, p, method, joint.Options{TimeLimit: l.limit, Solver: l.solver}))
	if r.Choice == nil {
		return benchAnswer{cost: math.Inf(1)}
	}
	labels, moves, err := p.Seconds(r.Choice, r.Steps)
	check(err)
	cost := math.Ceil(1e12*(labels+moves) - 1e-3)
	bound := min(cost, wholeBound(1e12*r.Bound))
	if r.Status == milp.Optimal {
		bound = cost
	}
	b := try(json.Marshal(map[string]any{"choice": r.Choice, "steps": r.Steps}))
	return benchAnswer{cost, bound, append(b, '\n')}
}

// wholeBound is the bound on costs that are whole numbers, of one that was computed in floating point.
func wholeBound(bound float64) float64 { return math.Ceil(bound*(1-1e-9) - 1e-3) }

// benchChoices runs methods of a problem whose answer is a list of choices.
func benchChoices[P interface {
	CheckChoice(choice []int) error
	Seconds(choice []int) float64
}](read func(file string, data []byte) (P, []int, error),
	solved func(ctx context.Context, p P, method string, opts solve.Options[[]int]) ([]int, float64)) func(
	ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
	return func(ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
		p, given := try2(read(file, data))
		choice, least := solved(ctx, p, method, solve.Options[[]int]{TimeLimit: l.limit, Solver: l.solver, Start: given})
		check(p.CheckChoice(choice))
		b := try(json.Marshal(map[string]any{"choice": choice}))
		return benchAnswer{p.Seconds(choice), wholeBound(least), append(b, '\n')}
	}
}

// benchInstance is a whole network as an instance: a certificate without a schedule.
type benchInstance struct {
	Kind     string                `json:"kind"`
	Version  int                   `json:"version"`
	Network  certificate.Network   `json:"network"`
	Hardware schedulefile.Hardware `json:"hardware"`
	Batch    int64                 `json:"batch"`
	Bound    bound.Bound           `json:"bound"`
	Proof    certificate.Proof     `json:"proof"`
}

func benchNetwork(ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
	var p benchInstance
	check(schedulefile.Decode(file, data, &p))
	dtype := try(model.ParseDType(p.Network.DType))
	net := try(network.Open(p.Network.Model, network.Options{DType: dtype}))
	g := try(net.Graph(1))
	spec := try(hardware.Load(p.Hardware.Name))
	if n, h := schedulefile.GraphFingerprint(g), schedulefile.Fingerprint(spec); n != p.Network.Fingerprint ||
		h != p.Hardware.Fingerprint {
		check(fmt.Errorf("%s is now %s and %s %s, the instance has %s and %s", p.Network.Model, n,
			p.Hardware.Name, h, p.Network.Fingerprint, p.Hardware.Fingerprint))
	}
	none := benchAnswer{math.Inf(1), math.Round(p.Bound.Seconds * 1e12), nil}
	recipe := try(recipes.Lookup(method))
	r, err := scheduler.Run(ctx, net, spec, p.Batch, recipe,
		withSolver(scheduler.Options{TimeLimit: l.limit, Lines: true}))
	if err != nil {
		check(ctx.Err())
		return none // a variant that cannot run it has no answer
	}
	if _, form, err := certificate.GraphOf(net, r); err != nil || form.Text() != "" || certificate.Covers(r) != nil {
		return none // an answer to another problem
	}
	f := r.File(schedulefile.Origin{MadeBy: "dsasched", Model: p.Network.Model, DType: p.Network.DType, Variant: method})
	return benchAnswer{float64(r.Sim.TotalPs), none.bound, try(f.Write())}
}

// benchTable are the settings of kind schedules.
type benchTable struct {
	sample, seed                   int
	certificates, report, smallest string
}

func addTable(cmd *cobra.Command) *benchTable {
	t := &benchTable{}
	f := cmd.Flags()
	f.IntVar(&t.sample, "sample", -1, "kind schedules: number of `cells` to recompute, drawn by --seed (default: all)")
	f.IntVar(&t.seed, "seed", 1, "seed of the sample")
	f.StringVar(&t.certificates, "certificates", "", "kind schedules: write certificates of the computed cells into a `folder`")
	f.StringVar(&t.report, "report", "", "kind schedules: write table and figure into a `folder`")
	f.StringVar(&t.smallest, "smallest", "", "kind schedules: shrink the network of a `cell` as long as exact decisions gain 5 %")
	return t
}

// benchCell is a cell computed again beside the frozen one: same, better, worse or other.
type benchCell struct {
	Cell   string `json:"cell"`
	Frozen string `json:"frozen"`
	Fresh  string `json:"fresh"`
	Change string `json:"change"`
}

func (t *benchTable) run(cmd *cobra.Command, dir string, keep, quiet bool) error {
	file := filepath.Join(dir, "schedules.csv")
	data, err := safefile.ReadUpTo(file, 1<<24)
	check(err)
	rows := try(schedules.Read(file, data))
	if t.smallest != "" {
		return t.shrink(cmd, rows)
	}
	save := func(folder string, files []harness.File) {
		check(harness.MakeFolder(folder))
		for _, f := range files {
			check(harness.WriteFile(filepath.Join(folder, f.Name), f.Data))
		}
	}
	cells := rand.New(rand.NewPCG(uint64(t.seed), 0)).Perm(len(rows))
	if t.sample >= 0 {
		cells = cells[:min(t.sample, len(cells))]
	}
	slices.Sort(cells)
	again := []benchCell{}
	show := newStatus(cmd, quiet)
	defer show.end()
	for i, k := range cells {
		frozen := rows[k]
		show.show(func(time.Duration) string {
			return fmt.Sprintf("bench: %d of %d cells, %s", i, len(cells), frozen.Name())
		})
		fresh, err := schedules.Measure(cmd.Context(), frozen)
		if cmd.Context().Err() != nil {
			break // what is complete is shown
		}
		check(blame(frozen.Name(), err))
		again = append(again, benchCell{frozen.Name(), frozen.Verdict(), fresh.Verdict(),
			schedules.Change(frozen, fresh.Row)})
		if t.certificates != "" {
			save(t.certificates, try(fresh.Certificates(cmd.Context())))
		}
		if keep {
			rows[k] = fresh.Row
			check(replaceFile(file, schedules.Write(rows)))
		}
	}
	show.end()
	rep := try(schedules.Report(rows))
	if t.report != "" {
		save(t.report, rep.Files)
	}
	answer := struct {
		Sentences []string    `json:"sentences"`
		Cells     []benchCell `json:"computed_again"`
	}{schedules.Sentences(rows), again}
	err = emit(cmd, answer, func(b *bytes.Buffer) {
		b.WriteString(rep.Text)
		list(b, "computed again", "<cell|<frozen|<fresh|<change", again, func(_ int, c benchCell) []any {
			return []any{c.Cell, c.Frozen, c.Fresh, c.Change}
		})
	})
	return cmp.Or(err, cmd.Context().Err())
}

// shrink shows the smallest part of a cell's network of which exact decisions gain.
func (t *benchTable) shrink(cmd *cobra.Command, rows []schedules.Row) error {
	k := slices.IndexFunc(rows, func(r schedules.Row) bool { return r.Name() == t.smallest })
	if k < 0 {
		return usagef("--smallest %s is no cell of the table", t.smallest)
	}
	p := try(schedules.Smallest(cmd.Context(), rows[k]))
	return emit(cmd, p, func(b *bytes.Buffer) {
		row(b, "smallest", "%s of %s on %s, batch %d (minimal: %t)", plural(len(p.Operators), "operator"), p.Network,
			p.Machine, p.Batch, p.Minimal)
		row(b, "times", "greedy %s, exact %s by %s, at least %s", duration(1e-12*float64(p.Greedy)),
			duration(1e-12*float64(p.Exact)), p.By, duration(1e-12*float64(p.Bound)))
		rowOf(b, "operators", p.Operators)
	})
}
