package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Only the groups of Algorithm 2 are split: those of the others hold a layer or two.
var splittable = []Pick{{"group", "alg2"}, {"group", "alg2-divisors"}, {"group", inPlaceGroups}, {"group", layerGroups},
	{"group", apartGroups}}

var noSplit = Strategy{Name: "none", Description: "not at all",
	Decide: func(_ context.Context, d *Draft) error {
		// Those that Algorithm 1 cut do not fit whole, by its count.
		for _, sg := range d.Grouping.Groups {
			if sg.Factor() > 1 {
				sg.Split = schedule.SplitInfo{Ops: len(sg.Ops), Factor: schedule.Unsplittable, Dim: -1}
			}
		}
		return nil
	}}

var oneFactorForAll = Strategy{Name: "one-factor", Description: "the largest group's factor for all", Needs: splittable,
	Decide: func(_ context.Context, d *Draft) error {
		oneFactor(d.Graph, d.Grouping, d.Options.Uneven)
		return nil
	}}

var algorithm1 = Strategy{Name: "alg1", Description: "Algorithm 1 of the paper, each group its own", Needs: splittable,
	Decide: func(_ context.Context, d *Draft) error {
		// Algorithm 2 forms groups with it; others may come without, and read what they hand out.
		splitter := graphturbo.NewSplitter(d.Graph, d.Machine)
		for _, sg := range d.Grouping.Groups {
			if sg.Split == (schedule.SplitInfo{}) {
				infos, peak := splitter.SplitInfo(sg.Ops, sg.Outputs)
				infos = slices.DeleteFunc(infos, func(x schedule.SplitInfo) bool {
					return x.Factor > 1 && !apart(d.Graph, sg, x.Dim, x.Factor)
				})
				sg.Split, sg.PeakBytes = graphturbo.Best(infos), peak
			}
		}
		return nil
	}}

var exactSplit = Strategy{Name: "search", Description: "groups and factors of least measured time, by shortest paths",
	Needs: splittable, Exact: true,
	Decide: func(ctx context.Context, d *Draft) error {
		m, err := d.measuredSplit(ctx)
		if err != nil {
			return err
		}
		o := solve.Outcome{Objective: m.Simulated, Bound: m.Bound}
		o.Status, o.Stop = solve.Judge(true, m.Simulated <= m.Bound*(1+1e-9), m.Stop)
		d.solve("split", SecondsUnit, o, "")
		a := d.answers["split"]
		a.Note = fmt.Sprintf("%d paths simulated, %d of %d columns priced; a shortest path, so LP = optimum (predicted %.4g "+
			"ms), root gap 0; the bound is of all listed columns", m.Paths, m.Priced, m.Listed, 1e3*m.LP)
		if m.Fused {
			a.Note += "; each attention is one operator"
		}
		a.Measured = &m
		d.answers["split"] = a
		return nil
	}}

// SplitProblem is the choice of groups and factors that a network poses, on the
// accelerator as the decisions see it; that of s is its start.
func SplitProblem(s *schedule.Schedule, opt Options) (*split.Network, error) {
	return split.FromGraph(s.Graph, graphturbo.ExecutionOrder(s.Graph), s.Grouping, s.Spec,
		split.NetworkOptions{InPlace: opt.InPlace, Uneven: opt.Uneven.Alternatives()[0], Cost: opt.Cost})
}

// mostPieces is the number of instances that a group may have, as in schedule files.
const mostPieces = 1 << 14

// limitInstances refuses groups of too many instances.
func limitInstances(d *Draft) error {
	n, largest := 0, 0
	for _, sg := range d.Grouping.Groups {
		n += int(sg.Factor())
		largest = max(largest, int(sg.Factor()))
	}
	if most := d.state.mostInstances; most > 0 && n > most || largest > mostPieces {
		return &lower.TooLargeError{Program: d.Graph.Name,
			What: fmt.Sprintf("have %d instances, %d of one group", n, largest)}
	}
	return nil
}

var instances = Strategy{Name: "derived", Description: "from groups and factors",
	Decide: func(_ context.Context, d *Draft) error {
		d.Instances = schedule.NewInstanceGraph(d.Graph, d.Grouping)
		return nil
	}}

func checkInstances(s *schedule.Schedule) error {
	if s.Instances == nil {
		return errors.New("there are no instances")
	}
	return schedule.CheckInstances(s.Graph, s.Grouping, s.Instances)
}

// oneFactor gives every group the largest factor of any, along the outermost
// dimension that can be cut that often without computing anything twice; a group
// without one keeps its own.
func oneFactor(g *model.Graph, gr *schedule.Grouping, uneven schedule.Uneven) {
	most := int64(1)
	for _, sg := range gr.Groups {
		most = max(most, sg.Factor())
	}
	for _, sg := range gr.Groups {
		out := g.Tensor(sg.Outputs[0])
		for depth, d := range out.Layout {
			if out.Shape[d]%most != 0 {
				continue
			}
			tr := schedule.Track(g, sg.Ops, sg.Outputs, d)
			if tr.Splittable && !tr.Recomputes {
				sg.Split = schedule.SplitInfo{Ops: len(sg.Ops), Factor: most, Dim: d, Depth: depth}
				break
			}
		}
	}
}

// apart reports whether pieces of a group write nothing twice.
func apart(g *model.Graph, sg *schedule.SubGraph, dim int, pieces int64) bool {
	var before schedule.Regions
	for q := range pieces {
		reg := schedule.InstanceRegions(g, sg.Ops, sg.Outputs, dim, pieces, q)
		for _, o := range sg.Outputs {
			if before != nil && before[o].Overlap(reg[o]) > 0 {
				return false
			}
		}
		before = reg
	}
	return true
}
