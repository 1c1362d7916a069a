package scheduler

import (
	"context"

	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// ExactSplit are the groups and factors of least cost, by search, instead of those
// of Algorithms 1 and 2.
const ExactSplit Splitting = "search"

// SplitProblem is the choice of groups and factors that a network poses, on the
// accelerator as the decisions see it; given is Algorithm 2's answer.
func SplitProblem(g *model.Graph, given *schedule.Grouping, spec *hardware.Spec, opt Options) (*split.Network, error) {
	return split.FromGraph(g, graphturbo.ExecutionOrder(g), given, spec, split.NetworkOptions{InPlace: opt.InPlace, Cost: opt.Cost})
}

func exactSplit(ctx context.Context, g *model.Graph, given *schedule.Grouping, spec *hardware.Spec, opt Options) (*schedule.Grouping, error) {
	n, err := SplitProblem(g, given, spec, opt)
	if err != nil {
		return nil, err
	}
	r, err := split.Search(ctx, n.Problem, split.SearchOptions{Options: split.Options{Start: n.Given}})
	if err != nil {
		return nil, err
	}
	return n.Decode(r.Choice), nil
}

// Regroup schedules a network with the groups and factors given; all other decisions
// are those of the variant.
func Regroup(g *model.Graph, spec *hardware.Spec, groups *schedule.Grouping, v Recipe, opt Options) (*schedule.Schedule, error) {
	o, err := splitOptions(g, spec, opt)
	if err != nil {
		return nil, err
	}
	s := &schedule.Schedule{Graph: g, Spec: spec, Grouping: groups}
	for _, sg := range groups.Groups {
		s.Layers = append(s.Layers, schedule.Layers(g, sg.Ops))
	}
	return complete(context.Background(), s, o, v, opt)
}
