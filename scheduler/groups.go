package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/hardware"
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

// Idle reports whether a recipe adds nothing to the others on this network and machine: its groups are the same, or its
// room for weights makes no difference.
func (r Recipe) Idle(g *model.Graph, spec *hardware.Spec) bool {
	switch buffer.named(r.Pick(buffer.Name)) {
	case schedule.WeightsPass:
		return false
	case schedule.WeightsTwelfth:
		return spec.LLB != nil || spec.L1WeightBytes > 0
	}
	idle := r.Strategy(rewrite.Name).Idle
	return idle != nil && idle(g, spec)
}
