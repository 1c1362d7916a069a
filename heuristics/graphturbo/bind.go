package graphturbo

import (
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// BindGrid is Algorithm 4: core bindings and buffer scopes of all instances, visited from the last of the order to the
// first. grid is the arrangement of a cluster's cores: arranged, a single number for a line; the plain binding maps
// loop dimensions to the dimensions of a grid one after the other (§3.6).
func BindGrid(g *model.Graph, gr *schedule.Grouping, ig *schedule.InstanceGraph, order []int, grid []int64,
	how schedule.Slices) ([]schedule.Binding, []schedule.Level) {
	cores := int64(1)
	for _, n := range grid {
		cores *= n
	}
	plain, scope := PlainBindGrid(g, gr, ig, grid, how)
	bind := make([]schedule.Binding, len(order))
	inference := make([]*schedule.Inference, len(gr.Groups))
	for k, sg := range gr.Groups {
		inference[k] = schedule.NewInference(g, sg)
	}
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		inst := &ig.Instances[i]
		sg := gr.Groups[inst.Group]
		if bind[i] != nil && scope[i] == schedule.L1 {
			// The inferred binding, unless the plain one uses more cores or the inferred
			// one violates a requirement of this output.
			p, out := plain[i], sg.Outputs[0]
			if r := inst.Regions[out]; p.Busy(r) > bind[i].Busy(r) ||
				schedule.CheckBinding(inst.Regions[out], bind[i], g.SequentialOf(out), cores) != nil {
				bind[i] = p
			}
			continue
		}
		bind[i] = plain[i]
		for _, d := range producers(inst) {
			made := ig.Instances[d.From].Regions[d.Tensor]
			want := inference[sg.ID].Infer(bind[i], d.Tensor, made, how)
			producer := gr.Groups[ig.Instances[d.From].Group]
			switch {
			case want == nil || d.Tensor != producer.Outputs[0]:
				continue
			case bind[d.From] == nil:
				bind[d.From] = want
			case !bind[d.From].Equal(want):
				scope[d.From] = schedule.LLB
			}
		}
	}
	return bind, scope
}

// PlainBindGrid gives each instance its plain binding over a grid of cores and the L1
// as scope; variants without Algorithm 4 use it.
func PlainBindGrid(g *model.Graph, gr *schedule.Grouping, ig *schedule.InstanceGraph, grid []int64,
	how schedule.Slices) ([]schedule.Binding, []schedule.Level) {
	bind := make([]schedule.Binding, len(ig.Instances))
	for i := range bind {
		inst := &ig.Instances[i]
		sg := gr.Groups[inst.Group]
		out := sg.Outputs[0]
		bind[i] = schedule.GridBinding(inst.Regions[out], g.Tensor(out).Layout, g.SequentialOf(out), grid, how)
	}
	return bind, make([]schedule.Level, len(bind))
}

func producers(inst *schedule.Instance) []schedule.Dep {
	return slices.SortedStableFunc(slices.Values(inst.Deps), func(a, b schedule.Dep) int { return a.From - b.From })
}

// Join finds the operators that §3.5 inserts in front of each consumer: a concat
// where several producers feed it, a split where it reads part of one, a copy
// where the scope is not the L1, and a redistribution where the bindings differ.
func Join(g *model.Graph, gr *schedule.Grouping, ig *schedule.InstanceGraph, order []int, bind []schedule.Binding,
	scope []schedule.Level, how schedule.Slices) []schedule.Join {
	var joins []schedule.Join
	inference := make([]*schedule.Inference, len(gr.Groups))
	for _, i := range order {
		inst := &ig.Instances[i]
		sg := gr.Groups[inst.Group]
		if inference[sg.ID] == nil {
			inference[sg.ID] = schedule.NewInference(g, sg)
		}
		for _, t := range sg.Inputs {
			var from []int
			var copies, moved int64
			var mismatch schedule.Binding
			partial := false
			for _, d := range inst.Deps {
				if d.Tensor != t {
					continue
				}
				from = append(from, d.From)
				made := ig.Instances[d.From].Regions[t]
				partial = partial || inst.Regions[t].Overlap(made) < made.Elements()
				if scope[d.From] != schedule.L1 {
					copies += d.Bytes
					continue
				}
				want := inference[sg.ID].Infer(bind[i], t, made, how)
				if have := bind[d.From]; want != nil && len(want) == len(have) && !have.Equal(want) {
					moved += d.Bytes
					mismatch = make(schedule.Binding, len(want))
					for k := range want {
						mismatch[k] = min(want[k], have[k])
					}
				}
			}
			if len(from) > 1 {
				joins = append(joins, schedule.Join{Kind: schedule.Concat, Consumer: i, Tensor: t, From: from})
			} else if partial {
				joins = append(joins, schedule.Join{Kind: schedule.SplitOp, Consumer: i, Tensor: t, From: from})
			}
			if copies > 0 {
				joins = append(joins, schedule.Join{Kind: schedule.Copy, Consumer: i, Tensor: t, From: from, Bytes: copies})
			}
			if moved > 0 {
				joins = append(joins, schedule.Join{Kind: schedule.Redistribute, Consumer: i, Tensor: t, From: from,
					Binding: mismatch, Bytes: moved})
			}
		}
	}
	return joins
}
