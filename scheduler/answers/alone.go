package answers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// AloneOptions are the settings of [Bind] and [Split].
type AloneOptions struct {
	scheduler.Options
	// Start is a simulated schedule of the same network, batch, chunk and machine, whose decision
	// exact methods begin with; nil: the greedy one. The answer is never worse than either.
	Start *scheduler.Result
}

// An Alone is one decision of GraphTurbo's schedule made by one method, with what it changes against the greedy
// method. Objective and bound are in seconds of the decision's cost model.
type Alone struct {
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	DType    string `json:"dtype"` // for the caller to set
	InPlace  bool   `json:"in_place"`
	Batch    int64  `json:"batch"`
	Chunk    int64  `json:"chunk"` // elements of a cluster at a time
	Method   string `json:"method"`

	Status    string   `json:"status"` // optimal, feasible or limit
	Stop      string   `json:"stop"`   // complete, or what cut the method short: time, cancelled, memory
	Objective float64  `json:"objective"`
	Bound     float64  `json:"bound"`
	Gap       *float64 `json:"gap"` // of the objective above the bound, as a share of that; nil: nothing is known
	Seconds   float64  `json:"seconds"`
	Greedy    float64  `json:"greedy_objective"`

	// Simulated throughput with all else as the greedy methods have it; nil if that can't be simulated, see the notes.
	ThroughputPerSecond       *float64 `json:"throughput_per_s"`
	GreedyThroughputPerSecond *float64 `json:"greedy_throughput_per_s"`
	Notes                     []string `json:"notes"`

	// Effort is of the integer program that was solved.
	Effort *milp.Effort `json:"program,omitempty"`
	// Program is the decision as an integer program.
	Program func() (*milp.Model, error) `json:"-"`
	// File is the decision as a problem of the benchmark (docs/file-formats.md), with the greedy choice.
	File func(name string) ([]byte, error) `json:"-"`
}

// AloneBinding is the answer of [Bind].
type AloneBinding struct {
	Alone
	Instances    int             `json:"instances"`
	Edges        int             `json:"edges"`  // pairs of instances of which one reads the other
	Labels       int             `json:"labels"` // choices, of all instances
	Spills       int             `json:"spills"`
	GreedySpills int             `json:"greedy_spills"`
	Changes      []BindingChange `json:"changes"` // against the greedy method
}

// A BindingChange is an instance that a method gives another binding or scope than Algorithm 4.
type BindingChange struct {
	Group string `json:"group"`
	Index int64  `json:"index"`
	BoundTo
	Was BoundTo `json:"was"`
}

// BoundTo is where an instance runs and its output stands.
type BoundTo struct {
	Binding []int64 `json:"binding"` // cores per dimension of the first output
	// Output is the binding that the output gets: layers take their plain binding where that uses more cores.
	Output []int64 `json:"output"`
	Scope  string  `json:"scope"`
	Text   string  `json:"-"`
}

// AloneSplit is the answer of [Split].
type AloneSplit struct {
	Alone
	Layers       int                 `json:"layers"`         // that groups are made of
	Candidates   int                 `json:"candidates"`     // groups to choose from
	Longest      int                 `json:"longest_layers"` // of any candidate
	Groups       []schedule.GroupCut `json:"groups"`
	GreedyGroups []schedule.GroupCut `json:"greedy_groups"`
}

// alone makes the greedy schedule of a cluster's chunk, in the pieces that make it fastest if opt leaves them open.
func alone(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, method string,
	opt *AloneOptions) (*Alone, *comparer, error) {
	if method == "ilp" && opt.Solver == nil {
		return nil, nil, fmt.Errorf("method %s %w", method, scheduler.ErrNoSolver)
	}
	c, spec, shares, err := newComparer(net, machine, batch, CompareOptions{Options: opt.Options})
	if err != nil {
		return nil, nil, err
	}
	c.opt.Chunk = cmp.Or(c.opt.Chunk, c.share)
	if c.opt.Chunk < 1 || c.opt.Chunk > c.share {
		return nil, nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements of a cluster", c.opt.Chunk, c.share)
	}
	a := &Alone{Model: net.Name, Hardware: machine.Name, InPlace: opt.InPlace, Batch: batch, Chunk: c.opt.Chunk,
		Method: method, Notes: []string{}}
	for _, n := range shares {
		if n > 0 {
			c.busy++
		}
		if n > 0 && (n != c.share || n%c.opt.Chunk != 0) {
			c.busy = -1
			a.Notes = append(a.Notes, fmt.Sprintf("not simulated: the clusters' shares %v are not all the same number of "+
				"chunks of %d", shares, c.opt.Chunk))
			break
		}
	}
	c.opt.Times, c.opt.Busy = c.share/c.opt.Chunk, max(0, c.busy)
	g, err := net.Graph(c.opt.Chunk)
	if err != nil {
		return nil, nil, err
	}
	if opt.Start != nil {
		if err := opt.Start.Fits(net.Name, g, machine, batch, []int64{c.opt.Chunk}); err != nil {
			return nil, nil, err
		}
	}
	made, err := c.recipe.FastestChunk(ctx, net, machine, batch, c.opt.Options)
	if err == nil {
		opt.Uneven, c.opt.Uneven = made.Uneven, made.Uneven
		c.base, err = c.recipe.Draft(ctx, g, spec, c.opt.Options)
	}
	if err != nil {
		return nil, nil, cmp.Or(ctx.Err(), a.wrap(err))
	}
	return a, c, nil
}

func (a *Alone) wrap(err error) error { return fmt.Errorf("%s on %s: %w", a.Model, a.Hardware, err) }

func (a *Alone) solved(status milp.Status, stop milp.Stop, objective, bound float64, began time.Time) {
	a.Status, a.Stop, a.Objective, a.Bound, a.Seconds = status.String(), stop.String(), objective, bound,
		time.Since(began).Seconds()
	if gap := (solve.Outcome{Objective: objective, Bound: bound}).Gap(); !math.IsInf(gap, 0) {
		a.Gap = &gap
	}
}

// simulate is the throughput of a schedule, or nil with a note.
func (a *Alone) simulate(ctx context.Context, c *comparer, s *schedule.Schedule, err error) *float64 {
	if c.busy < 0 {
		return nil
	}
	if err == nil {
		r, failed := scheduler.Replay(ctx, a.Model, s, c.busy, int(c.share/a.Chunk), c.base.Lower)
		if failed == nil {
			t := float64(a.Batch) / (float64(r.TotalPs) * 1e-12)
			return &t
		}
		err = failed
	}
	if note := "not simulated: " + err.Error(); len(a.Notes) == 0 || a.Notes[len(a.Notes)-1] != note {
		a.Notes = append(a.Notes, note)
	}
	return nil
}

// Bind chooses core bindings and scopes for the groups, factors and order of the greedy schedule by a method of
// binding.Methods. When ctx or the time limit ends, the answer is the best choice so far.
func Bind(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, method string,
	opt AloneOptions) (*AloneBinding, error) {
	base, c, err := alone(ctx, net, machine, batch, method, &opt)
	if err != nil {
		return nil, err
	}
	n, err := binding.FromSchedule(ctx, c.base.Schedule, c.base.Cost)
	if err != nil {
		return nil, err
	}
	p := n.Problem
	a := &AloneBinding{Alone: *base, Instances: len(p.Nodes), Edges: len(p.Edges), Labels: p.Size(),
		Changes: []BindingChange{}}
	a.Program = func() (*milp.Model, error) { return binding.Formulate(p, binding.Options{}) }
	a.File = n.File
	opts := exact.BindingOptions(opt.Options, n)
	opts.Relax = true
	if opt.Start != nil {
		from := opt.Start.Schedule
		err := sameGroups(from, c.base.Schedule)
		var start []int
		if err == nil {
			start, err = n.Choice(from.Bindings, from.Scopes)
		}
		if err != nil {
			return nil, fmt.Errorf("the schedule to start from: %w", err)
		}
		if p.Seconds(start) < p.Seconds(n.Given) {
			opts.Start = start
		}
	}
	began := time.Now()
	r, err := binding.Solve(ctx, p, method, opts)
	if err != nil {
		return nil, a.wrap(err)
	}
	a.Greedy, a.Effort = p.Seconds(n.Given), r.Effort
	a.solved(r.Status, r.Stop, r.Objective, r.Bound, began)
	for i, l := range r.Choice {
		if now, was := p.Nodes[i].Labels[l], p.Nodes[i].Labels[n.Given[i]]; !now.Equal(was) {
			inst := &c.base.Instances.Instances[i]
			sg := c.base.Grouping.Groups[inst.Group]
			t := c.base.Graph.Tensor(sg.Outputs[0])
			a.Changes = append(a.Changes, BindingChange{sg.Name, inst.Index, boundTo(t, now), boundTo(t, was)})
		}
	}
	// The answer of a cancelled method is put into a schedule and simulated all the same.
	rest := context.WithoutCancel(ctx)
	from := *c.base.Schedule
	from.Bindings, from.Scopes = n.Decode(r.Choice)
	made, err := c.recipe.Continue(rest, &from, "bind", opt.Options)
	if err != nil {
		return nil, a.wrap(err)
	}
	a.GreedySpills, a.Spills = len(c.base.Spills), len(made.Spills)
	a.GreedyThroughputPerSecond = a.simulate(ctx, c, c.base.Schedule, nil)
	a.ThroughputPerSecond = a.simulate(ctx, c, made, nil)
	return a, nil
}

// sameGroups reports the first group of a schedule that is not that of another one.
func sameGroups(s, as *schedule.Schedule) error {
	found, expected := s.GroupCuts(s.Grouping), as.GroupCuts(as.Grouping)
	if len(found) != len(expected) {
		return fmt.Errorf("found %d groups, expected the %d of the greedy schedule", len(found), len(expected))
	}
	for k, got := range found {
		if got.Group = expected[k].Group; got != expected[k] {
			return fmt.Errorf("group %d: found %+v, expected %+v as in the greedy schedule", k, got, expected[k])
		}
	}
	return nil
}

// Split chooses sub-graphs and split factors by a method of split.Methods; order, bindings and memory plan are those
// that the greedy methods make for them. When ctx or the time limit ends, the answer is the best choice so far.
func Split(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, method string,
	opt AloneOptions) (*AloneSplit, error) {
	base, c, err := alone(ctx, net, machine, batch, method, &opt)
	if err != nil {
		return nil, err
	}
	n, err := exact.SplitProblem(c.base.Schedule, opt.Options)
	if err != nil {
		return nil, err
	}
	p, start := n.Problem, n.Given
	if opt.Start != nil {
		own, _, err := n.Choice(opt.Start.Schedule.Grouping)
		if err != nil {
			return nil, fmt.Errorf("the schedule to start from: %w", err)
		}
		if p.Seconds(own) < p.Seconds(start) {
			start = own
		}
	}
	a := &AloneSplit{Alone: *base, Layers: len(p.Reads), Candidates: len(p.Groups), Longest: n.Longest}
	a.Greedy = n.GivenSeconds
	a.Program = func() (*milp.Model, error) { return split.Formulate(p, split.Options{}) }
	a.File = n.File
	began := time.Now()
	r, err := split.Solve(ctx, p, method,
		split.Options{TimeLimit: opt.TimeLimit, MemoryBytes: solve.SolverMemory, Start: start,
			Solver: opt.Solver, Progress: opt.Options.ReportTo("split"), Relax: true})
	if err != nil {
		return nil, a.wrap(err)
	}
	groups := c.base.Grouping
	a.Effort = r.Effort
	if method == "greedy" {
		// The groups cost this at the factors given, not at their best.
		if r.Status == milp.Optimal && n.GivenSeconds > r.Objective {
			r.Status = milp.Feasible
		}
		r.Objective = n.GivenSeconds
	} else {
		groups = n.Decode(r.Choice)
	}
	a.solved(r.Status, r.Stop, r.Objective, r.Bound, began)
	a.Groups, a.GreedyGroups = c.base.Schedule.GroupCuts(groups), c.base.Schedule.GroupCuts(c.base.Grouping)
	a.GreedyThroughputPerSecond = a.simulate(ctx, c, c.base.Schedule, nil)
	if method == "greedy" {
		a.ThroughputPerSecond = a.GreedyThroughputPerSecond
		return a, nil
	}
	made, err := c.recipe.Continue(context.WithoutCancel(ctx), &schedule.Schedule{Graph: c.base.Graph, Spec: c.base.Spec,
		Grouping: groups}, "split", opt.Options)
	a.ThroughputPerSecond = a.simulate(ctx, c, made, err)
	return a, nil
}

func boundTo(t *model.Tensor, l binding.Label) BoundTo {
	text := l.Output.Text(t)
	if !l.Output.Equal(l.Binding) {
		text += ", each layer plain"
	}
	return BoundTo{l.Binding, l.Output, l.Scope.Word(), text + " in the " + l.Scope.String()}
}
