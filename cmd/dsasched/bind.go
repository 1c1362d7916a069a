package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// bindJSON is the answer of `dsasched bind`. Objective, bound and the greedy
// method's objective are in seconds of the cost model.
type bindJSON struct {
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	DType    string `json:"dtype"`
	InPlace  bool   `json:"in_place"`
	Batch    int64  `json:"batch"`
	Chunk    int64  `json:"chunk"` // elements of a cluster at a time
	Method   string `json:"method"`

	Instances int `json:"instances"`
	Edges     int `json:"edges"`  // pairs of instances of which one reads the other
	Labels    int `json:"labels"` // choices, of all instances

	Status    string   `json:"status"` // optimal, feasible or limit
	Stop      string   `json:"stop"`   // complete, or what cut the method short: time, cancelled, memory
	Objective float64  `json:"objective"`
	Bound     float64  `json:"bound"`
	Gap       *float64 `json:"gap"` // of the objective; null: nothing is known
	Seconds   float64  `json:"seconds"`
	Greedy    float64  `json:"greedy_objective"`

	// Simulated throughput of the whole pipeline, the rest of which is as it was;
	// null if the chunks of the clusters differ or the command was interrupted.
	Throughput       *float64 `json:"throughput_per_s"`
	GreedyThroughput *float64 `json:"greedy_throughput_per_s"`
	Spills           int      `json:"spills"`
	GreedySpills     int      `json:"greedy_spills"`
	Notes            []string `json:"notes"`

	Changes []changeJSON `json:"changes"` // against the greedy method
}

// changeJSON is an instance that another method gives another binding or scope.
type changeJSON struct {
	Group   string  `json:"group"`
	Index   int64   `json:"index"`
	Binding []int64 `json:"binding"` // cores per dimension of the first output
	// Output is what the output gets: layers take their plain binding where that
	// uses more cores.
	Output []int64 `json:"output"`
	Scope  string  `json:"scope"`
	Was    wasJSON `json:"was"`

	text, wasText string
}

type wasJSON struct {
	Binding []int64 `json:"binding"`
	Output  []int64 `json:"output"`
	Scope   string  `json:"scope"`
}

// bindMemory keeps the solver below what a small machine has.
const bindMemory = 4 << 30

// bindSettings are those of `dsasched bind`, and of `dsasched split`.
type bindSettings struct {
	name, method, export string
	from                 network.Options
	spec                 *hardware.Spec
	batch, chunk         int64
	inPlace              bool
	limit                time.Duration
	progress             func(milp.Progress)
}

func newBind() *cobra.Command {
	methods := &choice{value: "search", kind: "METHOD", words: []cobra.Completion{
		cobra.CompletionWithDesc("greedy", "Algorithm 4 of the paper, an instance at a time"),
		cobra.CompletionWithDesc("ilp", "an integer program, solved by HiGHS"),
		cobra.CompletionWithDesc("search", "dynamic programming over the graph of instances"),
	}}
	var set bindSettings
	cmd := &cobra.Command{
		Use:   "bind MODEL",
		Short: "Choose core bindings and buffer scopes, greedily or exactly",
		Long: `Choose for each instance over which cores its output is spread and whether it
stands in the LB or the GB, and tell what changes against Algorithm 4, the greedy
method of the paper. Groups, split factors and order are those of
'dsasched schedule'.

Objective and bound are seconds of the cost model that docs/formulations.md
states: compute, redistribution and copies, one after the other. Throughput is
simulated, with memory plan and overlap, and need not follow the objective.
Status: optimal (proven), feasible (no choice is below the bound) or limit (no
choice found).

After Ctrl-C, as after --time-limit, the best choice so far is printed.`,
		Example: `  dsasched bind resnet50 --batch 8
  dsasched bind bert-128 --batch 8 --method ilp --time-limit 60s --json
  dsasched bind net.onnx --hardware my-npu.yaml --method greedy`,
		Args:              oneArg("MODEL", "give a name that 'dsasched models' lists, or the path of an ONNX file"),
		ValidArgsFunction: completeModel,
	}
	addSolving(cmd, &set, methods, func(ctx context.Context) (any, func(*bytes.Buffer), error) {
		answer, err := bindOne(ctx, set)
		if err != nil {
			return nil, nil, err
		}
		return answer, answer.write, nil
	})
	return cmd
}

// addSolving makes a command of a decision that solve makes: its flags, which it reads
// into set, its progress and the printing of the answer.
func addSolving(cmd *cobra.Command, set *bindSettings, methods *choice, solve func(context.Context) (answer any, write func(*bytes.Buffer), err error)) {
	asJSON := addJSON(cmd)
	f := cmd.Flags()
	addChoice(cmd, methods, "method", oneOf(plain(methods.words)))
	f.DurationVar(&set.limit, "time-limit", time.Minute, "time for the method, such as 60s")
	f.StringVar(&set.export, "export", "", "write the integer program to this `file` (.mps or .lp)")
	quiet := addQuiet(cmd)
	common := addScheduling(cmd, "its share")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		set.name, set.method, set.from = args[0], methods.value, common.network.options()
		set.batch, set.chunk, set.inPlace = common.batch.value, common.chunk.value, *common.inPlace
		switch ext := filepath.Ext(set.export); {
		case set.limit <= 0:
			return usagef("--time-limit is %v, expected more than 0s", set.limit)
		case cmd.Flags().Changed("export") && ext != ".mps" && ext != ".lp":
			return usagef("--export %q, expected a name that ends in .mps or .lp", set.export)
		}
		show := newStatus(cmd, *quiet)
		defer show.end()
		set.progress = show.solve(set.method, duration)
		var err error
		if set.spec, err = hardware.Load(*common.accelerator); err != nil {
			return err
		}
		answer, write, err := solve(cmd.Context())
		if err != nil {
			return err
		}
		show.end()
		if err := emit(cmd, *asJSON, answer, write); err != nil {
			return err
		}
		return cmd.Context().Err() // interrupted, although there is an answer
	}
}

// posed is the problem with what it was made from.
type posed struct {
	src      network.Network
	variant  scheduler.Recipe
	opt      scheduler.Options
	schedule *schedule.Schedule
	network  *binding.Network
	chunk    int64
}

// pose schedules greedily and states the problem. It returns as soon as ctx ends,
// as scheduleOne does.
func pose(ctx context.Context, set bindSettings) (*posed, error) {
	type outcome struct {
		posed *posed
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		p, err := poseNow(set)
		done <- outcome{p, err}
	}()
	select {
	case o := <-done:
		return o.posed, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func poseNow(set bindSettings) (*posed, error) {
	p, err := scheduleNow(set)
	if err != nil {
		return nil, err
	}
	m, err := cost.New(p.schedule.Spec)
	if err != nil {
		return nil, err
	}
	p.network, err = binding.FromSchedule(p.schedule, m)
	return p, err
}

// scheduleNow makes the greedy schedule of a cluster's chunk.
func scheduleNow(set bindSettings) (*posed, error) {
	v, err := scheduler.Lookup("cross-layer")
	if err != nil {
		return nil, err
	}
	if set.batch > scheduler.MaxBatch {
		return nil, fmt.Errorf("batch is %d, expected at most %d", set.batch, scheduler.MaxBatch)
	}
	spec, err := scheduler.Machine(set.spec, scheduler.LevelAuto)
	if err != nil {
		return nil, err
	}
	share := scheduler.Shares(set.batch, spec.Clusters)[0]
	p := &posed{variant: v, opt: scheduler.Options{InPlace: set.inPlace}, chunk: set.chunk}
	if p.chunk == 0 {
		p.chunk = share
	}
	if p.chunk > share {
		return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements of a cluster", p.chunk, share)
	}
	if p.src, err = network.Open(set.name, set.from); err != nil {
		return nil, err
	}
	g, err := p.src.Graph(p.chunk)
	if err != nil {
		return nil, err
	}
	if p.schedule, err = scheduler.Schedule(g, spec, v, p.opt); err != nil {
		return nil, fmt.Errorf("%s on %s: %w", set.name, set.spec.Name, err)
	}
	return p, nil
}

func bindOne(ctx context.Context, set bindSettings) (*bindJSON, error) {
	p, err := pose(ctx, set)
	if err != nil {
		return nil, err
	}
	problem := p.network.Problem
	if set.export != "" {
		if err := exportProgram(problem, set.export); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	r, err := solveBinding(ctx, set, p)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", set.name, set.spec.Name, err)
	}
	a := &bindJSON{Model: set.name, Hardware: set.spec.Name, DType: set.from.DType.String(), InPlace: set.inPlace, Batch: set.batch, Chunk: p.chunk, Method: set.method,
		Instances: len(problem.Nodes), Edges: len(problem.Edges), Status: r.Status.String(), Stop: r.Stop.String(),
		Objective: r.Objective, Bound: r.Bound, Seconds: time.Since(began).Seconds(), Greedy: problem.Seconds(p.network.Given),
		Notes: []string{}, Changes: changesOf(p, r.Choice)}
	for _, n := range problem.Nodes {
		a.Labels += len(n.Labels)
	}
	if gap := (&milp.Solution{Objective: r.Objective, Bound: r.Bound}).Gap(); !math.IsInf(gap, 0) {
		a.Gap = &gap
	}
	bindings, scopes := p.network.Decode(r.Choice)
	made, err := scheduler.Rebind(p.schedule, bindings, scopes, p.variant, p.opt)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", set.name, set.spec.Name, err)
	}
	a.GreedySpills, a.Spills = len(p.schedule.Spills), len(made.Spills)
	shares := scheduler.Shares(set.batch, p.schedule.Spec.Clusters)
	for _, s := range shares {
		if s != 0 && (s != shares[0] || s%p.chunk != 0) {
			a.Notes = append(a.Notes, fmt.Sprintf("not simulated: the clusters' shares %v are not all the same number of chunks of %d", shares, p.chunk))
			return a, nil
		}
	}
	a.GreedyThroughput = a.simulate(ctx, p, p.schedule, shares)
	a.Throughput = a.simulate(ctx, p, made, shares)
	return a, nil
}

func solveBinding(ctx context.Context, set bindSettings, p *posed) (*binding.Result, error) {
	opts := binding.Options{TimeLimit: set.limit, MemoryBytes: bindMemory, Start: p.network.Given, Progress: set.progress}
	var err error
	if opts.Solver, err = solverFor(binding.Methods(), set.method); err != nil {
		return nil, err
	}
	return binding.Solve(ctx, p.network.Problem, set.method, opts)
}

// simulate is the throughput of a schedule, or nil with a note.
func (a *bindJSON) simulate(ctx context.Context, p *posed, s *schedule.Schedule, shares []int64) *float64 {
	throughput, err := p.throughput(ctx, s, shares, a.Batch)
	if err != nil {
		if note := "not simulated: " + oneLine(err.Error()); len(a.Notes) == 0 || a.Notes[len(a.Notes)-1] != note {
			a.Notes = append(a.Notes, note)
		}
		return nil
	}
	return &throughput
}

// throughput simulates a schedule of a chunk, for clusters with the same shares of
// the batch.
func (p *posed) throughput(ctx context.Context, s *schedule.Schedule, shares []int64, batch int64) (float64, error) {
	busy := 0
	for _, n := range shares {
		if n > 0 {
			busy++
		}
	}
	r, err := scheduler.Replay(ctx, p.src.Name, s, busy, int(shares[0]/p.chunk), p.variant.Lower)
	if err != nil {
		return 0, err
	}
	return float64(batch) / (float64(r.TotalPs) * 1e-12), nil
}

func exportProgram(p *binding.Problem, file string) error {
	m, err := binding.Formulate(p, binding.ILPOptions{})
	if err != nil {
		return err
	}
	return exportModel(m, file)
}

// exportModel writes a model in the format that the file's name ends in.
func exportModel(m *milp.Model, file string) error {
	var b bytes.Buffer
	write := m.WriteMPS
	if filepath.Ext(file) == ".lp" {
		write = m.WriteLP
	}
	if err := write(&b); err != nil {
		return err
	}
	return replaceFile(file, b.Bytes())
}

func changesOf(p *posed, choice []int) []changeJSON {
	changes := []changeJSON{}
	s := p.schedule
	for i, l := range choice {
		node := &p.network.Problem.Nodes[i]
		now, was := node.Labels[l], node.Labels[p.network.Given[i]]
		if now.Equal(was) {
			continue
		}
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		t := s.Graph.Tensor(sg.Outputs[0])
		text := func(l binding.Label) string {
			by := scheduler.BindingText(t, l.Output)
			if !l.Output.Equal(l.Binding) {
				by += ", each layer plain"
			}
			return by + " in the " + l.Scope.String()
		}
		changes = append(changes, changeJSON{sg.Name, inst.Index, now.Binding, now.Output, scheduler.LevelName(now.Scope),
			wasJSON{was.Binding, was.Output, scheduler.LevelName(was.Scope)}, text(now), text(was)})
	}
	return changes
}

func (a *bindJSON) write(b *bytes.Buffer) {
	row(b, "binding", "%s (%s) on %s, batch %d in chunks of %d", a.Model, a.DType, a.Hardware, a.Batch, a.Chunk)
	row(b, "problem", "%s with %s, %s", plural(a.Instances, "instance"), plural(a.Labels, "choice"), plural(a.Edges, "edge"))
	writeSolved(b, a.Method, a.Status, a.Stop, a.Seconds, a.Objective, a.Bound, a.Gap, a.Greedy)
	if a.Throughput != nil && a.GreedyThroughput != nil {
		row(b, "simulated", "%s, greedy %s", perSecond(*a.Throughput), perSecond(*a.GreedyThroughput))
	}
	row(b, "spills", "%d, greedy %d", a.Spills, a.GreedySpills)
	for _, n := range a.Notes {
		row(b, "note", "%s", n)
	}
	if len(a.Changes) == 0 {
		fmt.Fprintf(b, "\nNothing changes against the greedy method.\n")
		return
	}
	// Groups of a network repeat, and so do their changes.
	type kind struct{ was, now string }
	groups, instances := map[kind][]string{}, map[kind]int{}
	var kinds []kind
	for _, c := range a.Changes {
		k := kind{c.wasText, c.text}
		kinds, groups[k] = addOnce(kinds, k), addOnce(groups[k], c.Group)
		instances[k]++
	}
	var rows [][]string
	for _, k := range kinds {
		g := groups[k]
		if n := len(g); n > 6 {
			g = append(append([]string(nil), g[:4]...), "...", g[n-1])
		}
		rows = append(rows, []string{strings.Join(g, " "), fmt.Sprint(instances[k]), k.was, k.now})
	}
	fmt.Fprintf(b, "\n%s of %d change against the greedy method\n", plural(len(a.Changes), "instance"), a.Instances)
	writeTable(b, "lrll", []string{"groups", "instances", "greedy", a.Method}, rows)
}
