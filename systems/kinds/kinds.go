// Package kinds runs the layers of a network on clusters of one kind of core each, side by side: jobs on unrelated
// machines (package unrelated).
package kinds

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/kinds/unrelated"
)

// OverKinds is the division of layers between clusters of one kind of core each ([hardware.Spec.Apart]).
const OverKinds scheduler.Division = "kinds"

// Register adds the division.
func Register() {
	scheduler.AddDivision(scheduler.Divider{Name: OverKinds, Kinds: true, Weights: weights, Divide: divide})
}

// weights are the launches that are charged for each result that passes to another kind of core: how much of them is
// hidden shows in the simulator, which chooses.
func weights(*hardware.Spec) []float64 { return []float64{0, 1, 4} }

// divide gives each layer behind the groups of a recipe a cluster, by the method of its stage kinds, and cuts groups
// where clusters differ.
func divide(_ context.Context, _ *model.Graph, _ *hardware.Spec, r scheduler.Recipe, opt scheduler.Options,
	weight float64) (scheduler.Recipe, func(*schedule.SubGraph, int64) int, func() string, error) {
	var place []int // of operators
	group, split, kinds := r.Strategy("group"), r.Strategy("split"), r.Strategy("kinds")
	r = r.With("group", scheduler.Strategy{Name: group.Name, Decide: func(ctx context.Context,
		d *scheduler.Draft) (err error) {
		if err := group.Decide(ctx, d); err != nil {
			return err
		}
		place, err = beside(ctx, d, kinds, opt, weight)
		return err
	}}).With("split", scheduler.Strategy{Name: split.Name, Decide: func(ctx context.Context,
		d *scheduler.Draft) (err error) {
		if err := split.Decide(ctx, d); err != nil {
			return err
		}
		if slices.ContainsFunc(d.Grouping.Groups, func(sg *schedule.SubGraph) bool {
			return slices.ContainsFunc(sg.Ops, func(id model.OpID) bool { return place[id] != place[sg.Ops[0]] })
		}) { // the strategy has made other groups
			if place, err = beside(ctx, d, kinds, opt, weight); err != nil {
				return err
			}
		}
		return nil
	}}).With("kinds", scheduler.Strategy{Name: kinds.Name, Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.LayerKinds = nil
		for _, layers := range d.Layers {
			own := make([]int, len(layers))
			for l := range layers {
				own[l] = place[layers[l].Anchor] % d.Spec.Sides()
			}
			d.LayerKinds = append(d.LayerKinds, own)
		}
		return nil
	}})
	return r, func(sg *schedule.SubGraph, _ int64) int { return place[sg.Ops[0]] }, nil, nil
}

// A besideLayer is a layer of a group.
type besideLayer struct {
	*schedule.Layer
	group int
}

// beside gives each operator a cluster, and cuts the groups.
func beside(ctx context.Context, d *scheduler.Draft, method scheduler.Strategy, opt scheduler.Options,
	weight float64) (place []int, err error) {
	derived := d.Layers == nil
	d.DeriveLayers()
	var layers []besideLayer
	of := make([]int, len(d.Graph.Ops))
	for k := range d.Layers {
		for l := range d.Layers[k] {
			for _, id := range d.Layers[k][l].Ops {
				of[id] = len(layers)
			}
			layers = append(layers, besideLayer{&d.Layers[k][l], k})
		}
	}
	p, err := problem(d, layers, of, weight)
	if err != nil {
		return nil, err
	}
	options := unrelated.Options{TimeLimit: opt.TimeLimit, Solver: opt.Solver}
	if method.Exact && !method.NeedsSolver {
		options.TimeLimit = opt.SearchLimit()
	}
	found, err := unrelated.Solve(ctx, p, method.Name, options)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if method.Exact {
		d.Solve("kinds", scheduler.Solved{Outcome: found.Outcome(), Unit: solve.SecondsUnit, Method: method.Name})
	}
	place = make([]int, len(of))
	for id, i := range of {
		place[id] = found.Plan.Machine[i]
	}
	cutApart(d, layers, p, found.Plan)
	if derived {
		d.Layers = nil
	}
	return place, nil
}

// problem poses the layers as jobs on clusters: what the cores of a kind take for each, and for what they pass to
// another cluster the way through the DDR and a weight of launches.
func problem(d *scheduler.Draft, layers []besideLayer, of []int, weight float64) (*unrelated.Problem, error) {
	g, spec := d.Graph, d.Spec
	p := &unrelated.Problem{Name: "layers side by side", Machines: spec.Clusters}
	picos := func(seconds float64) int64 { return max(1, int64(math.Round(seconds*1e12))) }
	link := spec.DDR.LatencySeconds + spec.DDRLink.LatencySeconds
	for i, l := range layers {
		job := unrelated.Job{Name: l.Name, Picos: make([]int64, spec.Clusters)}
		reg := schedule.InstanceRegions(g, l.Ops, l.Outputs, -1, 1, 0)
		for kind, types := range spec.Kinds() {
			if !schedule.Runs(types, g, l.Ops) {
				continue
			}
			c := picos(d.LayerSeconds(l.Layer, reg, d.Cost.Kind(kind)))
			for m := kind; m < spec.Clusters; m += spec.Sides() {
				job.Picos[m] = c
			}
		}
		if slices.Max(job.Picos) == 0 {
			var names []string
			for _, id := range l.Ops {
				names = append(names, g.Op(id).Name)
			}
			return nil, fmt.Errorf("layer %s: no kind of core of %s runs all of it: %s", l.Name, spec.Name,
				strings.Join(names, " "))
		}
		bytes := map[int]int64{} // by layer that makes them
		for _, t := range l.Inputs {
			if from := g.Tensor(t).Producer; from != model.NoOp && of[from] != i {
				bytes[of[from]] += g.Tensor(t).Bytes()
			}
		}
		for from := range i { // in order
			if n, reads := bytes[from]; reads {
				job.After = append(job.After, unrelated.Arc{Job: from,
					Picos: picos(2*(link+spec.DDRSeconds(0, n)) + weight*spec.LaunchSeconds)})
			}
		}
		p.Jobs = append(p.Jobs, job)
	}
	return p, nil
}

// cutApart cuts groups into pieces, each of one cluster, that can run one after the other: layers join the last piece
// of their group and cluster, unless that would have to wait for itself. Pieces and layers are in the order of the
// plan's starts.
func cutApart(d *scheduler.Draft, layers []besideLayer, p *unrelated.Problem, plan *unrelated.Plan) {
	type piece struct {
		layers []int
		before map[int]bool // pieces
		waits  int
		behind []int
	}
	var pieces []*piece
	in := make([]int, len(layers))
	last := map[[2]int]int{} // piece of group and cluster
	var reaches func(from, to int, seen map[int]bool) bool
	reaches = func(from, to int, seen map[int]bool) bool {
		if from == to {
			return true
		}
		if seen[from] {
			return false
		}
		seen[from] = true
		for q := range pieces[from].before {
			if reaches(q, to, seen) {
				return true
			}
		}
		return false
	}
	for _, i := range plan.Order() {
		key := [2]int{layers[i].group, plan.Machine[i]}
		at, open := last[key]
		for _, a := range p.Jobs[i].After {
			if open && in[a.Job] != at && reaches(in[a.Job], at, map[int]bool{}) {
				open = false
			}
		}
		if !open {
			at = len(pieces)
			last[key], pieces = at, append(pieces, &piece{before: map[int]bool{}})
		}
		x := pieces[at]
		in[i], x.layers = at, append(x.layers, i)
		for _, a := range p.Jobs[i].After {
			if in[a.Job] != at {
				x.before[in[a.Job]] = true
			}
		}
	}
	for at, x := range pieces {
		x.waits = len(x.before)
		for q := range pieces {
			if x.before[q] {
				pieces[q].behind = append(pieces[q].behind, at)
			}
		}
	}
	cut := &schedule.Grouping{Events: d.Grouping.Events}
	var all [][]schedule.Layer
	for len(all) < len(pieces) {
		at := slices.IndexFunc(pieces, func(x *piece) bool { return x.waits == 0 })
		x := pieces[at]
		x.waits = -1
		for _, b := range x.behind {
			pieces[b].waits--
		}
		sg := d.Grouping.Groups[layers[x.layers[0]].group]
		part := *sg
		part.Ops = nil
		var own []schedule.Layer
		for _, i := range x.layers {
			part.Ops, own = append(part.Ops, layers[i].Ops...), append(own, *layers[i].Layer)
		}
		if len(part.Ops) < len(sg.Ops) {
			part.Split, part.PeakBytes = schedule.SplitInfo{}, 0
		}
		part.ID, part.Name = len(all), fmt.Sprintf("g%d", len(all))
		part.Inputs, part.Outputs = schedule.Boundary(d.Graph, part.Ops)
		cut.Groups, all = append(cut.Groups, &part), append(all, own)
	}
	d.Grouping, d.Layers = cut, all
}
