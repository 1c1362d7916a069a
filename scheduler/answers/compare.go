// Package answers computes what commands and experiments report beside a schedule: one decision by each method with its
// simulated time, a decision alone, and time and buffers by operator.
package answers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/issue"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A Compared is the result of one method for one decision, the others being greedy.
type Compared struct {
	Decision  string   `json:"decision"`
	Chunk     int64    `json:"chunk"`  // batch elements that a cluster works on at a time
	Method    string   `json:"method"` // a strategy's name; search: the exact one
	Unit      string   `json:"unit"`   // of objective and bound
	Objective *float64 `json:"objective"`
	// Bound is a lower bound on all answers; nil: nothing is proven. BoundOf says on which: one of [BoundsOf].
	Bound   *float64 `json:"bound"`
	BoundOf string   `json:"bound_of,omitempty"`
	Gap     *float64 `json:"gap"`    // of the objective above the bound, as a share of that; nil also above a bound of 0
	Status  string   `json:"status"` // greedy, optimal, feasible, infeasible, limit or failed
	// PredictedSeconds is the time of the batch by formulas, launches, work and moves one after the other, in the schedule
	// that follows from this decision, by its memory plan; see [exact.PredictedSeconds]. nil: there is none.
	PredictedSeconds *float64 `json:"predicted_s"`
	// Seconds is wall time, and so not part of results that must repeat.
	Seconds float64 `json:"seconds"`
	// LatencySeconds is that of the batch, simulated with this decision alone replaced; nil: not simulated.
	LatencySeconds *float64 `json:"latency_s"`
	// Judged says what the exact method's own answer takes, before the simulator chose between it and the greedy one, of
	// a chunk; Measured is of an answer by measured prices.
	Judged   *scheduler.Judged   `json:"judged,omitempty"`
	Measured *scheduler.Measured `json:"measured,omitempty"`
	// Own and OwnBound are what the exact method itself found and proved, Program what that took an integer program.
	Own      *float64     `json:"own_objective,omitempty"`
	OwnBound *float64     `json:"own_bound,omitempty"`
	Program  *milp.Effort `json:"program,omitempty"`
	// ThroughputPerSecond is simulated with this decision alone replaced; nil: not simulated.
	ThroughputPerSecond *float64 `json:"throughput_per_s"`
	// EnergyJoules is the energy of the batch; nil: not simulated, or the accelerator's description has no figures.
	EnergyJoules *float64 `json:"energy_j"`
	Note         string   `json:"note,omitempty"`
}

// BoundsOf says in words what the bounds of rows are of, by [Compared].BoundOf.
var BoundsOf = map[string]string{
	"problem": "all answers to the decision's problem, by its objective",
	"class":   "all groups and ways to split them that are listed, whatever is decided behind",
	"waits":   "all orders of issue that keep every wait",
}

// CompareOptions are the settings of [Compare]. Of Options, Chunk 0 is the chunk at which the greedy recipe is
// fastest, a TimeLimit is the only limit, and with a Solver decision joint has the integer program beside the search.
type CompareOptions struct {
	scheduler.Options
	Decisions []string // names of [Comparisons]; empty: those of [ComparisonsOn]
	// Picks are greedy strategies in place of those of cross-layer, for all rows but that of the project's own recipes.
	Picks []scheduler.Pick
	// Started and Ended, if not nil, are called for each decision.
	Started func(decision string)
	Ended   func(decision string, done bool)
}

// A comparison is a decision that can be compared: the stage that makes it, and what its exact strategy minimises.
type comparison struct {
	name, stage, unit string
	objective         func(ctx context.Context, s *schedule.Schedule, opt scheduler.Options) (float64, error)
	run               func(c *comparer, ctx context.Context) error // nil: comparer.stage
}

func comparisons() []comparison {
	return []comparison{
		{name: "split", stage: "split", unit: solve.SecondsUnit}, // the objective is the simulated latency
		{name: "order", stage: "order", unit: solve.BytesUnit, objective: func(_ context.Context, s *schedule.Schedule,
			opt scheduler.Options) (float64, error) {
			p, _, err := exact.OrderProblem(s, opt)
			if err != nil {
				return 0, err
			}
			g := ordering.NewGraph(p)
			r, err := ordering.Fixed("", g, g.Obey(s.Order), ordering.Traffic)
			if err != nil {
				return 0, err
			}
			if !r.HasOrder() {
				return 0, errNoAnswer
			}
			return r.Cost, nil
		}},
		{name: "bind", stage: "bind", unit: solve.SecondsUnit, objective: func(ctx context.Context, s *schedule.Schedule,
			opt scheduler.Options) (float64, error) {
			m, err := opt.CostModel(s)
			if err != nil {
				return 0, err
			}
			n, err := binding.FromSchedule(ctx, s, m)
			if err != nil {
				return 0, err
			}
			return n.Problem.Seconds(n.Given), nil
		}},
		{name: "memory", stage: "spill", unit: solve.SecondsUnit, objective: func(_ context.Context, s *schedule.Schedule,
			opt scheduler.Options) (float64, error) {
			m, err := opt.CostModel(s)
			if err != nil {
				return 0, err
			}
			return exact.MovedSeconds(s, m), nil
		}},
		{name: "issue", stage: "issue", run: (*comparer).issue},
		{name: "joint", stage: "order", unit: solve.SecondsUnit, objective: func(ctx context.Context,
			s *schedule.Schedule, opt scheduler.Options) (float64, error) {
			n, err := exact.JointProblem(ctx, s, opt)
			if err != nil {
				return 0, err
			}
			seconds, fits, err := n.Given()
			if err == nil && !fits {
				err = errNoAnswer
			}
			return seconds, err
		}},
		{name: "all", run: (*comparer).all},
		{name: "tiled", run: func(c *comparer, ctx context.Context) error {
			return c.fastest(ctx, recipes.Default, Compared{Decision: "tiled", Method: recipes.Default, Status: "greedy"},
				". It has cross-layer's chunks and pieces here; 'schedule' tries others, too")
		}},
	}
}

// errNoAnswer is an objective's error where the problem is infeasible for a decision.
var errNoAnswer = fmt.Errorf("does not fit")

// Comparisons lists the decisions that [Compare] knows.
func Comparisons() []string {
	var names []string
	for _, c := range comparisons() {
		names = append(names, c.name)
	}
	return names
}

// ComparisonsOn are the decisions that [Compare] knows on a machine: exact bindings know cores of one kind only.
func ComparisonsOn(machine *hardware.Spec) []string {
	return slices.DeleteFunc(Comparisons(), func(d string) bool {
		return machine.Mixed() && (d == "bind" || d == "joint" || d == "all" || d == "tiled")
	})
}

// comparer holds what all decisions start from: the greedy schedule.
type comparer struct {
	net     network.Network
	machine *hardware.Spec
	recipe  scheduler.Recipe
	opt     CompareOptions
	batch   int64
	share   int64
	busy    int
	base    *scheduler.Draft
	rows    []Compared
	// seen are simulated throughputs by picks, so that none is simulated twice.
	seen map[string]rated
}

// newComparer starts from GraphTurbo's full recipe with the picks of opt. spec is the machine as decisions see it,
// shares are the batch elements of its clusters.
func newComparer(net network.Network, machine *hardware.Spec, batch int64, opt CompareOptions) (c *comparer,
	spec *hardware.Spec, shares []int64, err error) {
	if err := scheduler.CheckInput(net, machine, batch); err != nil {
		return nil, nil, nil, err
	}
	r, err := recipes.Lookup(recipes.Greedy)
	if err != nil {
		return nil, nil, nil, err
	}
	if r, err = r.Replace(opt.Options, opt.Picks...); err != nil {
		return nil, nil, nil, err
	}
	if spec, err = opt.Level.Machine(machine); err != nil {
		return nil, nil, nil, err
	}
	shares = schedule.Shares(batch, spec.Clusters)
	return &comparer{net: net, machine: machine, recipe: r, opt: opt, batch: batch, share: shares[0],
		seen: map[string]rated{}}, spec, shares, nil
}

// Compare puts the answers of all strategies beside the greedy ones of GraphTurbo's full
// schedule, decision by decision: objective, bound, and the throughput when only that
// decision is replaced. If ctx ends first, it returns the rows so far and its error.
func Compare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64,
	opt CompareOptions) ([]Compared, error) {
	for _, d := range opt.Decisions {
		if !slices.Contains(Comparisons(), d) {
			return nil, fmt.Errorf("unknown decision %q%s", d, suggest.Expected(d, Comparisons()))
		}
	}
	if opt.TimeLimitOnly = opt.TimeLimit > 0; !opt.TimeLimitOnly {
		opt.WorkLimit = cmp.Or(opt.WorkLimit, programNodes)
	}
	opt.Share()
	c, spec, shares, err := newComparer(net, machine, batch, opt)
	if err != nil {
		return nil, err
	}
	r := c.recipe
	known := ComparisonsOn(spec)
	if len(opt.Decisions) == 0 {
		opt.Decisions = known
	}
	for _, d := range opt.Decisions {
		if !slices.Contains(known, d) {
			return nil, fmt.Errorf("decision %s: %s has cores of several kinds, expected one; those that know them: %s", d,
				spec.Name, strings.Join(known, ", "))
		}
	}
	if c.opt.Chunk != 0 && (c.opt.Chunk < 1 || c.opt.Chunk > c.share || c.share%c.opt.Chunk != 0) {
		return nil, fmt.Errorf("chunk is %d, expected a divisor of %d, the batch elements of a cluster", c.opt.Chunk, c.share)
	}
	for _, n := range shares {
		if n > 0 && n != c.share {
			return nil, fmt.Errorf("batch %d does not divide evenly over %d clusters", batch, spec.Clusters)
		}
		if n > 0 {
			c.busy++
		}
	}
	if c.opt.Chunk == 0 {
		greedy, err := scheduler.Run(ctx, net, machine, batch, r,
			scheduler.Options{Level: opt.Level, InPlace: opt.InPlace, Uneven: opt.Uneven, Cost: opt.Cost})
		if err != nil {
			return nil, err
		}
		c.opt.Chunk = greedy.Chunk
	}
	c.opt.Times, c.opt.Busy = c.share/c.opt.Chunk, c.busy
	g, err := net.Graph(c.opt.Chunk)
	if err != nil {
		return nil, err
	}
	made, err := r.FastestChunk(ctx, net, machine, batch, c.opt.Options)
	if err != nil {
		return nil, err
	}
	c.opt.Uneven = made.Uneven
	if c.base, err = r.Draft(ctx, g, spec, c.opt.Options); err != nil {
		return nil, err
	}
	for _, d := range comparisons() {
		if !slices.Contains(opt.Decisions, d.name) {
			continue
		}
		if opt.Started != nil {
			opt.Started(d.name)
		}
		if d.run != nil {
			err = d.run(c, ctx)
		} else {
			err = c.stage(ctx, d)
		}
		if opt.Ended != nil {
			opt.Ended(d.name, err == nil)
		}
		if ctx.Err() != nil {
			return c.rows, ctx.Err()
		}
		if err != nil {
			return c.rows, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return c.rows, nil
}

// throughput simulates a draft, or remembers what it gave.
func (c *comparer) throughput(ctx context.Context, d *scheduler.Draft) (rated, error) {
	key := picksOf(d.Recipe)
	if t, ok := c.seen[key]; ok {
		return t, nil
	}
	r, err := scheduler.Replay(ctx, c.net.Name, d.Schedule, c.busy, int(c.share/c.opt.Chunk), d.Lower)
	if err != nil {
		return rated{}, err
	}
	t := rated{perSecond: round(float64(c.batch) / (float64(r.TotalPs) * 1e-12))}
	if e := lower.Energy(d.Spec, d.Graph, r.MACs, r.VectorOps, r.Dynamic.AccessBytes, r.TotalPs); e != nil {
		joules := round(e.Total())
		t.joules = &joules
	}
	c.seen[key] = t
	return t, nil
}

// rated is a simulated throughput, and the energy of the batch where there are figures.
type rated struct {
	perSecond float64
	joules    *float64
}

// latency is the time of the batch, in seconds.
func (c *comparer) latency(t rated) *float64 {
	seconds := round(float64(c.batch) / t.perSecond)
	return &seconds
}

func picksOf(r scheduler.Recipe) string {
	var picks []string
	for _, st := range scheduler.Stages() {
		picks = append(picks, r.Pick(st.Name))
	}
	return strings.Join(picks, " ")
}

// round drops the digits that differ between kinds of processors.
func round(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		panic("scheduler: " + err.Error())
	}
	return y
}

// add simulates a draft, if there is one, and keeps the row.
func (c *comparer) add(ctx context.Context, row Compared, d *scheduler.Draft) error {
	if d != nil {
		switch t, err := c.throughput(ctx, d); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			row.Note = "not simulated: " + err.Error()
		default:
			row.ThroughputPerSecond, row.EnergyJoules = &t.perSecond, t.joules
			row.LatencySeconds = c.latency(t)
		}
	}
	if row.Objective != nil && row.Bound != nil && (*row.Bound > 0 || *row.Objective <= 0) {
		gap := 0.0
		if *row.Bound > 0 {
			gap = (*row.Objective - *row.Bound) / *row.Bound
		}
		row.Gap = &gap
	}
	row.Chunk = c.opt.Chunk
	c.rows = append(c.rows, row)
	return nil
}

// programNodes ends an integer program without a limit of time.
const programNodes = 16

// stage compares the strategies of a stage: first the greedy one, last the exact ones, whose best bound is that of all.
func (c *comparer) stage(ctx context.Context, d comparison) error {
	st, err := scheduler.LookupStage(d.stage)
	if err != nil {
		return err
	}
	after := scheduler.Stages()[slices.IndexFunc(scheduler.Stages(),
		func(x scheduler.Stage) bool { return x.Name == d.stage })-1].Name
	greedy, err := st.Lookup(c.recipe.Pick(st.Name))
	if err != nil {
		return err
	}
	methods := []scheduler.Strategy{greedy}
	for _, s := range st.Strategies {
		// The problem of bindings does not have all that even rules may choose.
		both := len(s.Sets) > 0
		if s.Name != greedy.Name && !s.Even && !s.Trials && s.Refine == nil && (d.name == "joint") == both &&
			(!s.NeedsSolver || (both || recipes.Added(st.Name, s.Name)) && c.opt.Solver != nil) {
			methods = append(methods, s)
		}
	}
	type made struct {
		row   Compared
		draft *scheduler.Draft
	}
	var list []made
	var best *scheduler.Solved
	for _, s := range methods {
		began := time.Now()
		draft, row := c.base, Compared{Decision: d.name, Method: s.Name, Unit: d.unit, Status: "greedy"}
		if d.name == "joint" {
			row.Method = map[string]string{"joint": "search", "joint-ilp": "ilp"}[s.Name]
			row.Method = cmp.Or(row.Method, "alg3+alg4")
		}
		if s.Name != greedy.Name {
			r, err := c.recipe.Replace(c.opt.Options, scheduler.Pick{Stage: st.Name, Strategy: s.Name})
			if err != nil {
				return err
			}
			draft, err = r.ContinueDraft(ctx, c.base.Schedule, after, c.opt.Options)
			if err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				row.Status, row.Note = "failed", "not simulated: "+err.Error()
			}
		}
		if draft != nil {
			m, err := c.opt.CostModel(draft.Schedule)
			if err != nil {
				return err
			}
			predicted := round(exact.PredictedSeconds(draft.Schedule, m) * float64(c.opt.Times))
			row.PredictedSeconds = &predicted
			if d.objective != nil {
				switch cost, err := d.objective(ctx, draft.Schedule, c.opt.Options); {
				case err == errNoAnswer:
				case err != nil:
					return err
				default:
					cost = round(cost)
					row.Objective = &cost
				}
			} else if t, err := c.throughput(ctx, draft); err == nil {
				row.Objective = c.latency(t)
			} else if ctx.Err() != nil {
				return ctx.Err()
			}
			if a, ok := draft.Answer(st.Name); ok {
				if m := a.Measured; m != nil {
					a.Bound *= float64(c.opt.Times) / float64(m.Chunks)
				}
				if best == nil || a.Status != milp.Infeasible && a.Bound > best.Bound {
					best = &a
				}
				row.Judged, row.Measured, row.Program = a.Judged, a.Measured, a.Program
				if own, least := round(a.Objective), round(a.Bound); a.Status.HasValues() && a.Measured == nil {
					row.Own, row.OwnBound = &own, &least
				}
				if row.Status, row.Note = a.Status.String(), a.Note; !a.Status.HasValues() {
					row.Objective, row.PredictedSeconds, draft = nil, nil, nil
				}
			}
		}
		row.Seconds = time.Since(began).Seconds()
		list = append(list, made{row, draft})
	}
	for _, m := range list {
		if best != nil && best.Status != milp.Infeasible && m.row.Objective != nil {
			bound := round(best.Bound)
			m.row.Bound, m.row.BoundOf = &bound, "problem"
			if d.name == "split" {
				m.row.BoundOf = "class"
			}
			switch {
			case *m.row.Objective <= bound:
				m.row.Status = "optimal"
			case m.row.Status == "optimal": // of the exact strategy's problem, which is a part of this one
				m.row.Status = "feasible"
			}
		}
		if err := c.add(ctx, m.row, m.draft); err != nil {
			return err
		}
	}
	return nil
}

// issue compares in-order issue of the commands of a cluster's kernels with a bound on every order.
func (c *comparer) issue(ctx context.Context) error {
	began := time.Now()
	plans := make([][]lower.Segment, c.base.Spec.Clusters)
	plans[0] = []lower.Segment{{Schedule: c.base.Schedule, Iterations: 1}}
	opt := c.base.Lower.Until(ctx)
	opt.AllWaits = true
	program, err := lower.Program(c.net.Name, c.base.Spec, plans, opt)
	if err != nil {
		return err
	}
	kernels, objective, bound := issue.Kernels(program, 0), 0.0, 0.0
	for _, k := range kernels {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := issue.Compare(program, k)
		if err != nil {
			return err
		}
		objective, bound = objective+float64(x.InOrderPs)*1e-12, bound+float64(x.BoundPs)*1e-12
	}
	objective, bound = round(objective), round(bound)
	row := Compared{Decision: "issue", Method: "in-order", Unit: solve.SecondsUnit, Objective: &objective,
		Bound: &bound, BoundOf: "waits", Status: "greedy", Seconds: time.Since(began).Seconds(),
		Note: fmt.Sprintf("kernels of a cluster: %d, of %d commands; no order of issue that keeps every wait beats the bound, "+
			"by critical paths and by the loads of units and queues between heads and tails", len(kernels),
			len(program.Commands))}
	if objective <= bound {
		row.Status = "optimal"
	}
	return c.add(ctx, row, nil)
}

// all compares the greedy recipe with exact-all: the fastest of every decision exact and of what it falls back to.
func (c *comparer) all(ctx context.Context) error {
	if err := c.add(ctx, Compared{Decision: "all", Method: c.recipe.Name, Unit: solve.SecondsUnit, Status: "greedy"},
		c.base); err != nil {
		return err
	}
	return c.fastest(ctx, "exact-all", Compared{Decision: "all", Method: "search", Status: "feasible"},
		"; nothing is proven of all decisions together", c.opt.Picks...)
}

// fastest completes the row of a recipe and those that it falls back to.
func (c *comparer) fastest(ctx context.Context, name string, row Compared, also string, picks ...scheduler.Pick) error {
	began := time.Now()
	all, err := recipes.Lookup(name)
	if err != nil {
		return err
	}
	recipes, err := all.Alternatives(c.opt.Options)
	if err != nil {
		return err
	}
	best, from := rated{}, ""
	var failed error
	for _, r := range recipes {
		if r, err = r.Replace(c.opt.Options, picks...); err != nil {
			return err
		}
		t, ok := c.seen[picksOf(r)]
		if !ok {
			d, err := r.Draft(ctx, c.base.Graph, c.base.Spec, c.opt.Options)
			if err == nil {
				t, err = c.throughput(ctx, d)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil && !scheduler.TooLarge(err) {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			if err != nil && failed == nil {
				failed = fmt.Errorf("%s: %w", r.Name, err)
			}
		}
		if t.perSecond > best.perSecond {
			best, from = t, r.Name
		}
	}
	row.Unit, row.Seconds = solve.SecondsUnit, time.Since(began).Seconds()
	if from == "" {
		row.Status, row.Note = "limit", "not simulated: "+failed.Error()
	} else {
		row.ThroughputPerSecond, row.EnergyJoules = &best.perSecond, best.joules
		row.LatencySeconds = c.latency(best)
		row.Note = fmt.Sprintf("the recipe %s is the fastest of %d%s", from, len(recipes), also)
		if failed != nil {
			row.Note += "; " + failed.Error()
		}
	}
	row.Chunk = c.opt.Chunk
	c.rows = append(c.rows, row)
	return nil
}
