package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/rcpsp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/issue"
)

// The decisions that can be compared with exact ones.
const (
	DecisionSplit  = "split"  // sub-graphs and their factors
	DecisionOrder  = "order"  // of instances
	DecisionBind   = "bind"   // bindings and scopes
	DecisionMemory = "memory" // what is spilled
	DecisionIssue  = "issue"  // of a kernel's commands
	DecisionJoint  = "joint"  // order, bindings and scopes by one search
	DecisionAll    = "all"    // split, then joint, then memory
)

// Decisions lists them.
func Decisions() []string {
	return []string{DecisionSplit, DecisionOrder, DecisionBind, DecisionMemory, DecisionIssue, DecisionJoint, DecisionAll}
}

// Decided is what one method made of one decision, the others being greedy.
type Decided struct {
	Decision string  `json:"decision"`
	Method   string  `json:"method"`
	Unit     string  `json:"unit"` // of objective and bound
	Cost     float64 `json:"objective,omitempty"`
	// Bound is what no answer is below; 0: nothing is proven, unless the status is
	// optimal.
	Bound  float64 `json:"bound,omitempty"`
	Status string  `json:"status"` // greedy, optimal, feasible, limit, infeasible
	// ThroughputPerSecond is simulated with this decision alone replaced; 0: not
	// simulated.
	ThroughputPerSecond float64 `json:"throughput_per_s,omitempty"`
	Note                string  `json:"note,omitempty"`
	// Seconds is wall time, and so not part of results that must repeat.
	Seconds float64 `json:"-"`
}

// HasObjective tells whether there is an answer that costs something to compare.
func (d Decided) HasObjective() bool {
	return d.Status != "infeasible" && d.Status != "limit" && (d.Cost > 0 || d.Unit != "s")
}

// HasBound tells whether anything is proven.
func (d Decided) HasBound() bool { return d.Bound > 0 || d.Status == "optimal" }

// Gap is how far the objective may be above the least one, as a share of it.
func (d Decided) Gap() float64 {
	if d.Cost <= 0 {
		return 0
	}
	return (d.Cost - d.Bound) / d.Cost
}

// CompareOptions are the settings of CompareDecisions.
type CompareOptions struct {
	Decisions []string // empty: all
	Chunk     int64    // batch elements of a cluster at a time; 0: its share
	// TimeLimit ends each exact method; 0: limits that do not depend on the machine,
	// for results that repeat.
	TimeLimit time.Duration
	// Progress, if not nil, is told of each start and end of a decision.
	Progress func(harness.Progress)
}

// comparer holds what all decisions start from: the greedy schedule.
type comparer struct {
	src     network.Network
	v       scheduler.Recipe
	opt     scheduler.Options
	copt    CompareOptions
	batch   int64
	share   int64
	busy    int
	base    *schedule.Schedule
	answers []Decided
}

// CompareDecisions puts exact answers beside the greedy ones of GraphTurbo's full
// schedule, decision by decision: objective, bound, and the throughput when only
// that decision is replaced.
func CompareDecisions(ctx context.Context, src network.Network, spec *hardware.Spec, batch int64, copt CompareOptions) ([]Decided, error) {
	for _, d := range copt.Decisions {
		if !slices.Contains(Decisions(), d) {
			return nil, fmt.Errorf("unknown decision %q, expected some of %q", d, Decisions())
		}
	}
	v, err := scheduler.Lookup("cross-layer")
	if err != nil {
		return nil, err
	}
	if spec, err = scheduler.Machine(spec, scheduler.LevelAuto); err != nil {
		return nil, err
	}
	c := &comparer{src: src, v: v, copt: copt, batch: batch}
	shares := scheduler.Shares(batch, spec.Clusters)
	c.share = shares[0]
	if c.copt.Chunk == 0 {
		c.copt.Chunk = c.share
	}
	if c.copt.Chunk < 1 || c.copt.Chunk > c.share || c.share%c.copt.Chunk != 0 {
		return nil, fmt.Errorf("chunk is %d, expected a divisor of %d, the batch elements of a cluster", c.copt.Chunk, c.share)
	}
	for _, n := range shares {
		if n > 0 && n != c.share {
			return nil, fmt.Errorf("batch %d does not divide evenly over %d clusters", batch, spec.Clusters)
		}
		if n > 0 {
			c.busy++
		}
	}
	g, err := src.Graph(c.copt.Chunk)
	if err != nil {
		return nil, err
	}
	if c.base, err = scheduler.Schedule(g, spec, v, c.opt); err != nil {
		return nil, fmt.Errorf("%s on %s: %w", src.Name, spec.Name, err)
	}
	total := len(copt.Decisions)
	if total == 0 {
		total = len(Decisions())
	}
	track := harness.NewTracker("", 0, total, copt.Progress)
	for _, d := range []struct {
		name string
		run  func(context.Context) error
	}{{DecisionSplit, c.split}, {DecisionOrder, c.order}, {DecisionBind, c.bind}, {DecisionMemory, c.memory}, {DecisionIssue, c.issue}, {DecisionJoint, c.joint}, {DecisionAll, c.all}} {
		if len(copt.Decisions) > 0 && !slices.Contains(copt.Decisions, d.name) {
			continue
		}
		track.Start(d.name)
		err := d.run(ctx)
		track.End(d.name, err == nil)
		if err != nil {
			return c.answers, fmt.Errorf("%s: %w", d.name, err)
		}
		if ctx.Err() != nil {
			return c.answers, ctx.Err()
		}
	}
	return c.answers, nil
}

// add simulates a schedule, if there is one, and keeps the answer.
func (c *comparer) add(ctx context.Context, d Decided, s *schedule.Schedule, since time.Time) error {
	d.Seconds = time.Since(since).Seconds()
	d.Cost, d.Bound = harness.Round(d.Cost), harness.Round(d.Bound)
	if s != nil {
		r, err := scheduler.Replay(ctx, c.src.Name, s, c.busy, int(c.share/c.copt.Chunk), c.v.Lower)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			d.Note = "not simulated: " + err.Error()
		default:
			d.ThroughputPerSecond = harness.Round(float64(c.batch) / (float64(r.TotalPs) * 1e-12))
		}
	}
	c.answers = append(c.answers, d)
	return nil
}

func (c *comparer) searchOrder(ctx context.Context) (p *ordering.Problem, start, order []int, r *ordering.Result, err error) {
	p, _, err = scheduler.OrderProblem(c.base, c.opt)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	start = slices.Clone(c.base.Order)
	greedy, err := ordering.Fixed("greedy", ordering.NewGraph(p), start, ordering.Traffic)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	var opts ordering.SearchOptions
	if opts.TimeLimit = c.copt.TimeLimit; opts.TimeLimit == 0 {
		opts.WorkLimit = 200_000
	}
	if greedy.HasOrder() {
		opts.Start = start
	}
	r, err = ordering.Search(ctx, p, ordering.Traffic, opts)
	if err != nil || !r.HasOrder() {
		return p, start, start, r, err
	}
	// As the variant exact-order: another order only if it costs less.
	if greedy.HasOrder() && r.Cost >= greedy.Cost {
		return p, start, start, r, nil
	}
	return p, start, scheduler.OrderOf(c.base, r), r, nil
}

func (c *comparer) order(ctx context.Context) error {
	began := time.Now()
	p, start, o, best, err := c.searchOrder(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if !best.HasOrder() {
		note := "no order was found"
		if best.Infeasible != nil {
			note = best.Infeasible.Error()
		}
		return c.add(ctx, Decided{Decision: DecisionOrder, Method: "search", Unit: "bytes moved", Status: best.Status.String(), Note: note}, nil, began)
	}
	g := ordering.NewGraph(p)
	replaced := func(method string, order []int) error {
		began := time.Now()
		r, err := ordering.Fixed(method, g, order, ordering.Traffic)
		if err != nil {
			return err
		}
		s, err := scheduler.Reorder(c.base, order, method, c.v, c.opt)
		if err != nil {
			return err
		}
		status := "greedy"
		if r.Cost <= best.Bound {
			status = "optimal"
		}
		return c.add(ctx, Decided{Decision: DecisionOrder, Method: method, Unit: "bytes moved", Cost: r.Cost, Bound: best.Bound, Status: status}, s, began)
	}
	if err := replaced("algorithm-3 ("+c.base.OrderName+")", start); err != nil {
		return err
	}
	for _, m := range ordering.Rules() {
		order, err := ordering.Order(g, m)
		if err != nil {
			return err
		}
		if err := replaced(string(m), order); err != nil {
			return err
		}
	}
	s, err := scheduler.Reorder(c.base, o, "search", c.v, c.opt)
	if err != nil {
		return err
	}
	return c.add(ctx, Decided{Decision: DecisionOrder, Method: "search", Unit: "bytes moved", Cost: best.Cost, Bound: best.Bound, Status: best.Status.String()}, s, time.Now().Add(-took))
}

// bestBinding replaces the bindings and scopes of a schedule; the memory plan is v's.
func (c *comparer) bestBinding(ctx context.Context, s *schedule.Schedule, v scheduler.Recipe) (*binding.Network, *binding.Result, *schedule.Schedule, error) {
	m, err := cost.NewWith(s.Spec, c.opt.Cost)
	if err != nil {
		return nil, nil, nil, err
	}
	n, err := binding.FromSchedule(s, m)
	if err != nil {
		return nil, nil, nil, err
	}
	opts := binding.SearchOptions{Options: binding.Options{Start: n.Given, TimeLimit: c.copt.TimeLimit}, NoBranch: c.copt.TimeLimit == 0}
	r, err := binding.Search(ctx, n.Problem, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	bindings, scopes := n.Decode(r.Choice)
	made, err := scheduler.Rebind(s, bindings, scopes, v, c.opt)
	return n, r, made, err
}

func (c *comparer) bind(ctx context.Context) error {
	began := time.Now()
	n, r, made, err := c.bestBinding(ctx, c.base, c.v)
	if err != nil {
		return err
	}
	took := time.Since(began)
	greedy := n.Problem.Seconds(n.Given)
	status := "greedy"
	if greedy <= r.Bound {
		status = "optimal"
	}
	if err := c.add(ctx, Decided{Decision: DecisionBind, Method: "algorithm-4", Unit: "s", Cost: greedy, Bound: r.Bound, Status: status}, c.base, time.Now()); err != nil {
		return err
	}
	return c.add(ctx, Decided{Decision: DecisionBind, Method: "search", Unit: "s", Cost: r.Objective, Bound: r.Bound, Status: r.Status.String()}, made, time.Now().Add(-took))
}

// issueCommands is the largest kernel that issue looks at.
const issueCommands = 700

func (c *comparer) issue(ctx context.Context) error {
	began := time.Now()
	r, err := scheduler.Run(ctx, c.src, c.base.Spec, c.batch, c.v, scheduler.Options{Chunk: c.copt.Chunk})
	if err != nil {
		return err
	}
	// The kernel with the most commands that can be dealt with.
	var span issue.Span
	for _, k := range issue.Kernels(r.Program, 0) {
		if n := k.Last - k.First; n > span.Last-span.First && n <= issueCommands {
			span = k
		}
	}
	if span.Last == span.First {
		return c.add(ctx, Decided{Decision: DecisionIssue, Method: "in-order", Unit: "s", Status: "greedy",
			Note: fmt.Sprintf("every kernel has more than %d commands", issueCommands)}, nil, began)
	}
	var opts rcpsp.SearchOptions
	if opts.TimeLimit = c.copt.TimeLimit; opts.TimeLimit == 0 {
		opts.WorkLimit = 500
	}
	x, err := issue.Compare(ctx, r.Program, span, opts)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("one kernel of %d commands; the bound is that of a relaxation, so the gap is the most that reordering can save", x.Commands)
	if err := c.add(ctx, Decided{Decision: DecisionIssue, Method: "in-order", Unit: "s", Cost: float64(x.InOrderPs) * 1e-12, Bound: float64(x.BoundPs) * 1e-12, Status: "greedy", Note: note}, nil, time.Now()); err != nil {
		return err
	}
	status := "feasible"
	if x.ExactPs == x.BoundPs {
		status = "optimal"
	}
	return c.add(ctx, Decided{Decision: DecisionIssue, Method: "search", Unit: "s", Cost: float64(x.ExactPs) * 1e-12, Bound: float64(x.BoundPs) * 1e-12, Status: status, Note: note}, nil, began)
}

// all replaces every decision that the simulated schedule shows: groups and factors
// first, then order, bindings and scopes for them, then what is spilled. Where the
// ordering problem has no answer, bindings and scopes are chosen for the greedy order.
func (c *comparer) all(ctx context.Context) error {
	if err := c.add(ctx, Decided{Decision: DecisionAll, Method: "greedy", Unit: "s", Status: "greedy"}, c.base, time.Now()); err != nil {
		return err
	}
	began := time.Now()
	d := Decided{Decision: DecisionAll, Method: "search", Unit: "s", Status: "feasible",
		Note: "groups and factors, then order, bindings and scopes, then spills: each is chosen for those before; nothing is proven of all together"}
	groups, r, err := c.bestSplit(ctx)
	if err != nil {
		return err
	}
	s, err := scheduler.Regroup(c.base.Graph, c.base.Spec, groups.Decode(r.Choice), c.v, c.opt)
	if err != nil {
		d.Note = "not simulated: " + err.Error()
		return c.add(ctx, d, nil, began)
	}
	v := c.v
	v.Memory = scheduler.ExactMemory
	n, best, err := c.bestJoint(ctx, s)
	if err != nil {
		return err
	}
	var made *schedule.Schedule
	if best.Choice != nil {
		made, err = n.Apply(s, best, v, c.opt)
	} else {
		_, _, made, err = c.bestBinding(ctx, s, v)
	}
	if err != nil {
		return err
	}
	return c.add(ctx, d, made, began)
}
