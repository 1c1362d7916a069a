package exact

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// layerCosts has the costs of a kind of group's layers under each of their bindings; places
// are their anchors' among the group's operators.
type layerCosts struct {
	*binding.Layers
	places []int
}

// A costsKey names what a site knows of the groups of a kind.
type costsKey struct{ kind any }

// costsOf returns the costs of a group, from the schedule in which they were first computed.
func costsOf(a *scheduler.Site, k int) *layerCosts {
	kind := costsKey{a.Kind(k)}
	if known, there := a.Known[kind]; there {
		return known.(*layerCosts)
	}
	made := a.Schedule
	if made.Spec.Mixed() { // prices assume one kind of core
		return nil
	}
	inst := made.Instances.First[k] + int(made.Grouping.Groups[k].Factor()/2)
	l, err := binding.LayersOf(a.Context, made, inst, a.Cost, func(layer *schedule.Layer, t model.TensorID,
		region model.Region) []schedule.Binding {
		return schedule.BindingsOf(made, 0, layer, t, region)
	})
	var costs *layerCosts // none: it can't be had
	if err == nil {
		costs = &layerCosts{Layers: l}
		for _, anchor := range l.Anchors {
			costs.places = append(costs.places, slices.Index(a.Groups()[k].Ops, anchor))
		}
	}
	if a.Known == nil {
		a.Known = map[any]any{}
	}
	a.Known[kind] = costs
	return costs
}

// moveLayers spreads all layers of a group over the cores at once: the best for costs that are
// drawn around what is known of them, by dynamic programming.
func moveLayers(a *scheduler.Site) *scheduler.Decisions {
	k := a.Place(len(a.Groups()))
	if len(a.Schedule.Layers[k]) < 2 {
		return nil
	}
	l := costsOf(a, k)
	if l == nil {
		return nil
	}
	draw := func(deviation float64) float64 { return math.Exp(deviation * a.Rand.NormFloat64()) }
	problem := l.Problem(binding.Weights{Weights: draw(0.5), Moves: 0.7 * draw(0.7)}, func() float64 { return draw(0.05) })
	found, err := binding.Search(a.Context, problem, binding.Options{WorkLimit: 1 << 14})
	if err != nil || found.Choice == nil {
		return nil
	}
	list, own := a.Groups(), map[model.OpID]schedule.Binding{}
	for _, i := range a.Alike(k) {
		for n, place := range l.places {
			own[list[i].Ops[place]] = l.Bindings[n][found.Choice[n]]
		}
	}
	return a.BindLayers(own)
}

var exactBinding = scheduler.Strategy{Name: "search", Description: "least cost at measured prices, by dynamic programming",
	Exact:  true,
	Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastBinding(ctx, d, "search") }}

var ilpBinding = scheduler.Strategy{Name: "ilp", Description: "least cost, by integer program (HiGHS)",
	NeedsSolver: true, Exact: true,
	Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastBinding(ctx, d, "ilp") }}

// BindingOptions are the options of a binding problem.
func BindingOptions(o scheduler.Options, n *binding.Network) binding.Options {
	return binding.Options{TimeLimit: o.TimeLimit, MemoryBytes: solve.SolverMemory, Start: n.Given, Solver: o.Solver,
		Progress: o.ReportTo("bind")}
}

// solveLabels is a problem's answer by integer program or by search.
func solveLabels(ctx context.Context, d *scheduler.Draft, p *binding.Problem, opts binding.Options, ilp bool) (
	*binding.Result, error) {
	if ilp {
		opts.WorkLimit = d.Options.WorkLimit
		return binding.ILP(ctx, p, opts)
	}
	opts.TimeLimit = d.Options.SearchLimit()
	return binding.Search(ctx, p, opts)
}

// leastBinding gives a draft with an order the bindings and scopes of least cost.
func leastBinding(ctx context.Context, d *scheduler.Draft, method string) error {
	if err := graphturbo.Algorithm4().Decide(ctx, d); err != nil {
		return err
	}
	n, err := binding.FromSchedule(ctx, d.Schedule, d.Cost)
	if err != nil {
		return err
	}
	r, err := solveLabels(ctx, d, n.Problem, BindingOptions(d.Options, n), method == "ilp")
	if err != nil {
		return err
	}
	choice := r.Choice
	if method == "search" {
		if choice, err = measuredBinding(ctx, d, n, choice); err != nil {
			return err
		}
	}
	d.Bindings, d.Scopes = n.Decode(choice)
	o := r.Outcome()
	if o.Objective = n.Problem.Seconds(choice); o.Objective > o.Bound*(1+1e-9) && o.Status == milp.Optimal {
		o.Status = milp.Feasible // by formulas another is
	}
	d.Solve("bind", scheduler.Solved{Outcome: o, Unit: solve.SecondsUnit, Program: r.Effort})
	return nil
}

// Work of bindings by measured prices: so many choices are simulated until one is known, as long as they have so many
// commands; behind that, so many with labels that nobody has measured, as long as all have so many.
const (
	bindingRounds, bindingCommands = 10, 1_500_000
	freshRounds, freshCommands     = 40, 300_000
)

// measuredBinding goes on from the choice of least cost by formulas: the greedy choice and the last one are simulated,
// what their instances took are prices, and the choice of least cost at these is the next one, until it is known. Then
// come choices that would be the best if labels that nobody has measured took less and less. The answer is the fastest
// choice that was simulated; the others are for the simulator to choose from once more.
func measuredBinding(ctx context.Context, d *scheduler.Draft, n *binding.Network, choice []int) ([]int, error) {
	if d.Options.Clusters != scheduler.OverBatch {
		return choice, nil // a rehearsal has the whole network on each
	}
	x := d.Rehearse("bind")
	x.Instances = true
	prices, work, known := binding.NewMeasured(n.Problem), 0, map[string]bool{}
	incumbent, least := choice, int64(math.MaxInt64)
	var others []*schedule.Schedule
	timed, end := (&binding.Options{TimeLimit: d.Options.SearchLimit()}).Begin(ctx)
	defer end()
	try := func(next []int) bool {
		known[fmt.Sprint(next)] = true
		s := *d.Schedule
		s.Bindings, s.Scopes = n.Decode(next)
		o := x.Simulate(ctx, &s)
		if o.Err != nil {
			return false
		}
		if len(known) > 1 { // the greedy one is simulated anyway
			others = append(others, &s)
		}
		if o.Ps < least || o.Ps == least && len(known) == 2 { // of equals the one by formulas
			incumbent, least = next, o.Ps
		}
		work += o.Commands
		seconds := make([]float64, len(o.Each))
		for i, ps := range o.Each {
			seconds[i] = float64(ps) * 1e-12 / float64(x.Times)
		}
		prices.Learn(next, seconds)
		return true
	}
	fits := try(n.Given)
	if same := known[fmt.Sprint(choice)]; same && !fits || !same && !try(choice) {
		return n.Given, ctx.Err()
	}
	if !fits {
		return choice, ctx.Err()
	}
	for round, fresh := 0, 1.0; round < freshRounds && fresh > 0.1 && solve.Why(timed) == milp.Complete; round++ {
		if fresh == 1 && (round >= bindingRounds || work > commands(d, bindingCommands)) ||
			fresh < 1 && work > commands(d, freshCommands) {
			break
		}
		r, err := binding.Search(timed, prices.Problem(fresh), binding.Options{Start: choice})
		if err != nil {
			return nil, err
		}
		if known[fmt.Sprint(r.Choice)] {
			fresh *= 0.8
		} else if try(r.Choice); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	bindings, scopes := n.Decode(incumbent)
	d.Also(slices.DeleteFunc(others, func(s *schedule.Schedule) bool {
		return slices.EqualFunc(s.Bindings, bindings, schedule.Binding.Equal) && slices.Equal(s.Scopes, scopes)
	})...)
	return incumbent, nil
}
