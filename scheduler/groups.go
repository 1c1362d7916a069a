package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/heuristics/astitch"
	"github.com/dsasched/dsasched/internal/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Groups are the kernels that a network is cut into, each with the way in which it is split.
type Groups []Cut

// A Cut is a group with the way in which it is split.
type Cut struct {
	Ops   []model.OpID
	Split schedule.SplitInfo
}

// A piece names a group whose instances are all of a kind, whatever groups stand beside it.
type piece struct {
	first, last model.OpID
	ops         int
	dim         int
	factor      int64
}

func (c *Cut) piece() piece {
	return piece{c.Ops[0], c.Ops[len(c.Ops)-1], len(c.Ops), c.Split.Dim, c.Split.Factor}
}

func takeGroups(d *Draft, _ bool) Decision {
	var list Groups
	for _, sg := range d.Grouping.Groups {
		list = append(list, Cut{sg.Ops, sg.Split})
	}
	return list
}

// Stage names the row, which holds the split as well.
func (list Groups) Stage() string { return "group" }

// Apply makes the groups.
func (list Groups) Apply(_ context.Context, d *Draft) error {
	d.Grouping, d.Layers = list.grouping(d.Graph), nil
	return nil
}

// Key has the operators and splits.
func (list Groups) Key(b *Key, _ *Decisions) {
	for i := range list {
		c := &list[i]
		b.Add(int64(len(c.Ops)), int64(c.Split.Dim), c.Split.Factor)
		for _, id := range c.Ops {
			b.Add(int64(id))
		}
	}
	b.Add(-1)
}

func (list Groups) grouping(g *model.Graph) *schedule.Grouping {
	gr := &schedule.Grouping{Groups: make([]*schedule.SubGraph, len(list))}
	for k, c := range list {
		sg := &schedule.SubGraph{ID: k, Name: "g" + strconv.Itoa(k), Ops: c.Ops, Split: c.Split}
		sg.Inputs, sg.Outputs = schedule.Boundary(g, c.Ops)
		gr.Groups[k] = sg
	}
	return gr
}

// same reports whether others are the same groups, split in the same way.
func (list Groups) same(others Groups) bool {
	return slices.EqualFunc(list, others, func(a, b Cut) bool { return a.piece() == b.piece() })
}

var unsplitGroups = []Pick{{"split", "none"}}

var layerKernels = Strategy{Name: "layers", Description: "a layer is a kernel", Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = tvm.Group(d.Graph, graphturbo.ExecutionOrder(d.Graph))
		return nil
	}}

var fusedOps = Strategy{Name: "fuse-ops", Description: "operators that TVM's pass FuseOps makes one kernel",
	Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = tvm.GroupOps(d.Graph, graphturbo.ExecutionOrder(d.Graph))
		return nil
	}}

var convPairs = Strategy{Name: "conv-pairs", Description: "a layer is a kernel, or two convolutions are",
	Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = tvm.PairConvolutions(d.Graph, graphturbo.ExecutionOrder(d.Graph))
		return nil
	}}

var stitchedKernels = Strategy{Name: "stitch", Description: "memory-intensive operators together, as AStitch",
	Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		plan := astitch.Group(d.Graph, graphturbo.ExecutionOrder(d.Graph), nil, d.Machine.Cores)
		d.Grouping, d.Layers = plan.Grouping, plan.Layers
		return nil
	}}

var stitchedOps = Strategy{Name: "stitch-ops", Description: "stitch, of the kernels of fuse-ops", Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		order := graphturbo.ExecutionOrder(d.Graph)
		plan := astitch.Group(d.Graph, order, tvm.FuseOps(d.Graph, order), d.Machine.Cores)
		d.Grouping, d.Layers = plan.Grouping, plan.Layers
		return nil
	}}

var algorithm2 = Strategy{Name: "alg2", Description: "Algorithm 2 of the paper",
	Decide: func(ctx context.Context, d *Draft) (err error) {
		d.Grouping, err = graphturbo.GroupContext(ctx, d.Graph, d.Machine)
		return err
	}}

var algorithm2Divisors = Strategy{Name: "alg2-divisors",
	Description: "alg2 where Eq. (1) compares factors that divide the output",
	Decide: func(ctx context.Context, d *Draft) error {
		d.Machine.Divisors = true
		return algorithm2.Decide(ctx, d)
	}}

const inPlaceGroups = "alg2-in-place"

var algorithm2InPlace = Strategy{Name: inPlaceGroups,
	Description: "alg2 with element-wise operators that overwrite their input",
	Decide: func(ctx context.Context, d *Draft) error {
		d.Machine.InPlace, d.Options.InPlace = true, true
		return algorithm2.Decide(ctx, d)
	}}

const layerGroups = "alg2-layers"

var algorithm2Layers = Strategy{Name: layerGroups,
	Description: "alg2 where tensors inside a layer take no room (4.1)",
	Decide: func(ctx context.Context, d *Draft) error {
		d.Machine.Layers = true
		return algorithm2.Decide(ctx, d)
	}}

// InPlace says whether a recipe has element-wise operators overwrite their input whatever
// Options.InPlace says.
func (r Recipe) InPlace() bool { return r.Pick("group") == inPlaceGroups }

func checkGroups(s *schedule.Schedule) error {
	if s.Grouping == nil {
		return errors.New("there are no groups")
	}
	for _, sg := range s.Grouping.Groups {
		if sg == nil {
			return errors.New("a group is nil")
		}
		if d := sg.SplitDim(); sg.Factor() > 1 && (d < 0 || len(sg.Outputs) == 0 ||
			d >= len(s.Graph.Tensor(sg.Outputs[0]).Shape)) {
			return fmt.Errorf("%s is split in %d along dimension %d, which its output does not have", sg.Name, sg.Factor(), d)
		}
	}
	return schedule.CheckGrouping(s.Graph, s.Grouping)
}

// keepGroups copies the groups so that splitting the copy leaves the original alone.
func keepGroups(to, from *schedule.Schedule) {
	if from.Grouping == nil {
		return
	}
	groups := *from.Grouping
	groups.Groups = slices.Clone(groups.Groups)
	for i, sg := range groups.Groups {
		if sg != nil {
			again := *sg
			groups.Groups[i] = &again
		}
	}
	to.Grouping, to.Layers = &groups, from.Layers
}
