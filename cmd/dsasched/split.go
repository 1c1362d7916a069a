package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// splitJSON is the answer of `dsasched split`. Objective, bound and the greedy
// method's objective are in seconds of the cost model.
type splitJSON struct {
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	DType    string `json:"dtype"`
	InPlace  bool   `json:"in_place"`
	Batch    int64  `json:"batch"`
	Chunk    int64  `json:"chunk"` // elements of a cluster at a time
	Method   string `json:"method"`

	Layers     int `json:"layers"`         // that groups are made of
	Candidates int `json:"candidates"`     // groups to choose from
	Longest    int `json:"longest_layers"` // of any candidate

	Status    string   `json:"status"` // optimal or feasible
	Stop      string   `json:"stop"`   // complete, or what cut the method short: time, cancelled, memory
	Objective float64  `json:"objective"`
	Bound     float64  `json:"bound"`
	Gap       *float64 `json:"gap"` // of the objective; null: nothing is known
	Seconds   float64  `json:"seconds"`
	Greedy    float64  `json:"greedy_objective"`

	// Simulated throughput with all else as the greedy methods have it; null if that
	// can't be simulated, see the notes.
	Throughput       *float64 `json:"throughput_per_s"`
	GreedyThroughput *float64 `json:"greedy_throughput_per_s"`
	Notes            []string `json:"notes"`

	Groups       []splitGroupJSON `json:"groups"`
	GreedyGroups []splitGroupJSON `json:"greedy_groups"`
}

// splitGroupJSON is a sub-graph with its factor.
type splitGroupJSON struct {
	Group     string `json:"group"`
	First     string `json:"first_operator"`
	Last      string `json:"last_operator"`
	Operators int    `json:"operators"`
	Factor    int64  `json:"factor"`
	Dimension string `json:"dimension"` // empty: not split
}

func newSplit() *cobra.Command {
	methods := &choice{value: "search", kind: "METHOD", words: []cobra.Completion{
		cobra.CompletionWithDesc("greedy", "Algorithms 1 and 2 of the paper, a merge at a time"),
		cobra.CompletionWithDesc("ilp", "an integer program, solved by HiGHS"),
		cobra.CompletionWithDesc("search", "dynamic programming over what has run"),
	}}
	var set bindSettings
	cmd := &cobra.Command{
		Use:   "split MODEL",
		Short: "Choose sub-graphs and split factors, greedily or exactly",
		Long: `Choose which layers become one sub-graph and into how many instances each
sub-graph is split, along which dimension, and compare with Algorithms 1 and 2, the
greedy method of the paper.

Objective and bound are seconds of the cost model that docs/formulations.md
states: the groups' work, launches and parameters, and the bytes on their
boundaries over the bandwidth. Throughput is simulated, with the order, bindings
and memory plan that the greedy methods make for the groups, and need not follow
the objective. Status: optimal (of all choices of the candidates, proven) or
feasible (no choice is below the bound).

After Ctrl-C, as after --time-limit, the best choice so far is printed.`,
		Example: `  dsasched split bert-128 --batch 32
  dsasched split resnet50 --batch 32 --method ilp --time-limit 60s --json
  dsasched split net.onnx --hardware my-npu.yaml --method greedy`,
		Args:              oneArg("MODEL", "give a name that 'dsasched models' lists, or the path of an ONNX file"),
		ValidArgsFunction: completeModel,
	}
	addSolving(cmd, &set, methods, func(ctx context.Context) (any, func(*bytes.Buffer), error) {
		answer, err := splitOne(ctx, set)
		if err != nil {
			return nil, nil, err
		}
		return answer, answer.write, nil
	})
	return cmd
}

func splitOne(ctx context.Context, set bindSettings) (*splitJSON, error) {
	p, n, err := poseSplit(ctx, set)
	if err != nil {
		return nil, err
	}
	if set.export != "" {
		m, err := split.Formulate(n.Problem, split.ILPOptions{})
		if err != nil {
			return nil, err
		}
		if err := exportModel(m, set.export); err != nil {
			return nil, err
		}
	}
	a := &splitJSON{Model: set.name, Hardware: set.spec.Name, DType: set.from.DType.String(), InPlace: set.inPlace, Batch: set.batch, Chunk: p.chunk, Method: set.method,
		Layers: len(n.Problem.Reads), Candidates: len(n.Problem.Groups), Longest: n.Longest, Greedy: n.GivenSeconds, Notes: []string{}}
	began := time.Now()
	made, err := a.solve(ctx, set, p, n)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", set.name, set.spec.Name, err)
	}
	a.Seconds = time.Since(began).Seconds()
	if gap := (&milp.Solution{Objective: a.Objective, Bound: a.Bound}).Gap(); !math.IsInf(gap, 0) {
		a.Gap = &gap
	}
	a.Groups, a.GreedyGroups = splitGroups(p.schedule, made), splitGroups(p.schedule, p.schedule.Grouping)
	shares := scheduler.Shares(set.batch, p.schedule.Spec.Clusters)
	for _, s := range shares {
		if s != 0 && (s != shares[0] || s%p.chunk != 0) {
			a.Notes = append(a.Notes, fmt.Sprintf("not simulated: the clusters' shares %v are not all the same number of chunks of %d", shares, p.chunk))
			return a, nil
		}
	}
	a.GreedyThroughput = a.simulate(ctx, p, p.schedule, shares)
	s := p.schedule
	if made != p.schedule.Grouping {
		if s, err = scheduler.Regroup(s.Graph, s.Spec, made, p.variant, p.opt); err != nil {
			a.Notes = append(a.Notes, "not simulated: "+oneLine(err.Error()))
			return a, nil
		}
	}
	a.Throughput = a.simulate(ctx, p, s, shares)
	return a, nil
}

// poseSplit schedules greedily and states the problem. It returns as soon as ctx
// ends, as scheduleOne does.
func poseSplit(ctx context.Context, set bindSettings) (*posed, *split.Network, error) {
	type outcome struct {
		posed   *posed
		network *split.Network
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		p, err := scheduleNow(set)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		n, err := scheduler.SplitProblem(p.schedule.Graph, p.schedule.Grouping, p.schedule.Spec, p.opt)
		done <- outcome{p, n, err}
	}()
	select {
	case o := <-done:
		return o.posed, o.network, o.err
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// solve returns the groups that the method chooses.
func (a *splitJSON) solve(ctx context.Context, set bindSettings, p *posed, n *split.Network) (*schedule.Grouping, error) {
	opts := split.Options{TimeLimit: set.limit, MemoryBytes: bindMemory, Start: n.Given, Progress: set.progress}
	var err error
	if opts.Solver, err = solverFor(split.Methods(), set.method); err != nil {
		return nil, err
	}
	r, err := split.Solve(ctx, n.Problem, set.method, opts)
	if err != nil {
		return nil, err
	}
	a.Objective, a.Bound, a.Status, a.Stop = r.Objective, r.Bound, r.Status.String(), r.Stop.String()
	if set.method != "greedy" {
		return n.Decode(r.Choice), nil
	}
	// The groups cost this at the factors given, not at their best.
	a.Objective, a.Status = n.GivenSeconds, milp.Feasible.String()
	if r.Status == milp.Optimal && n.GivenSeconds <= r.Objective {
		a.Status = milp.Optimal.String()
	}
	return p.schedule.Grouping, nil
}

// simulate is the throughput of a schedule, or nil with a note.
func (a *splitJSON) simulate(ctx context.Context, p *posed, s *schedule.Schedule, shares []int64) *float64 {
	throughput, err := p.throughput(ctx, s, shares, a.Batch)
	if err != nil {
		if note := "not simulated: " + oneLine(err.Error()); len(a.Notes) == 0 || a.Notes[len(a.Notes)-1] != note {
			a.Notes = append(a.Notes, note)
		}
		return nil
	}
	return &throughput
}

func splitGroups(s *schedule.Schedule, groups *schedule.Grouping) []splitGroupJSON {
	list := []splitGroupJSON{}
	for _, sg := range groups.Groups {
		j := splitGroupJSON{Group: sg.Name, First: s.Graph.Op(sg.Ops[0]).Name, Last: s.Graph.Op(sg.Ops[len(sg.Ops)-1]).Name, Operators: len(sg.Ops), Factor: sg.Factor()}
		if d := sg.SplitDim(); d >= 0 {
			j.Dimension = s.Graph.Tensor(sg.Outputs[0]).DimName(d)
		}
		list = append(list, j)
	}
	return list
}

func (a *splitJSON) write(b *bytes.Buffer) {
	row(b, "groups", "%s (%s) on %s, batch %d in chunks of %d", a.Model, a.DType, a.Hardware, a.Batch, a.Chunk)
	row(b, "problem", "%s, %s of up to %s", plural(a.Layers, "layer"), plural(a.Candidates, "candidate"), plural(a.Longest, "layer"))
	writeSolved(b, a.Method, a.Status, a.Stop, a.Seconds, a.Objective, a.Bound, a.Gap, a.Greedy)
	if a.Throughput != nil && a.GreedyThroughput != nil {
		row(b, "simulated", "%s, greedy %s", perSecond(*a.Throughput), perSecond(*a.GreedyThroughput))
	}
	for _, n := range a.Notes {
		row(b, "note", "%s", n)
	}
	table := func(title string, groups []splitGroupJSON) {
		fmt.Fprintf(b, "\n%s: %s\n", title, plural(len(groups), "group"))
		// Networks repeat themselves, and so do their groups.
		type kind struct {
			split     string
			operators int
		}
		alike := map[kind][]splitGroupJSON{}
		var kinds []kind
		for _, g := range groups {
			k := kind{"not split", g.Operators}
			if g.Factor > 1 {
				k.split = fmt.Sprintf("%d along %s", g.Factor, g.Dimension)
			}
			kinds = addOnce(kinds, k)
			alike[k] = append(alike[k], g)
		}
		var rows [][]string
		for _, k := range kinds {
			var names []string
			for _, g := range alike[k] {
				names = append(names, g.Group)
			}
			if n := len(names); n > 6 {
				names = append(names[:4:4], "...", names[n-1])
			}
			first := alike[k][0]
			rows = append(rows, []string{strings.Join(names, " "), k.split, fmt.Sprint(k.operators), first.First, first.Last})
		}
		writeTable(b, "llrll", []string{"groups", "instances", "operators of each", "the first from", "to"}, rows)
	}
	table(a.Method, a.Groups)
	if a.Method != "greedy" {
		table("greedy", a.GreedyGroups)
	}
}
