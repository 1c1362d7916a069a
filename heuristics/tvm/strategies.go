package tvm

import (
	"context"

	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// unsplit are the picks that these groups come with: a kernel is not cut.
var unsplit = []scheduler.Pick{{Stage: "split", Strategy: "none"}}

// Layers makes each layer a kernel.
var Layers = scheduler.Strategy{Name: "layers", Description: "a layer is a kernel", Sets: unsplit,
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Grouping, d.Layers = Group(d.Graph, schedule.ExecutionOrder(d.Graph))
		return nil
	}}

// FusedOps makes kernels by the rules of TVM's pass FuseOps.
var FusedOps = scheduler.Strategy{Name: "fuse-ops", Description: "operators that TVM's pass FuseOps makes one kernel",
	Sets: unsplit,
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Grouping, d.Layers = GroupOps(d.Graph, schedule.ExecutionOrder(d.Graph))
		return nil
	}}

// Unfused makes each operator a kernel.
var Unfused = scheduler.Strategy{Name: "none", Description: "each operator is a kernel, an attention three",
	Sets: unsplit,
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Grouping, d.Layers = GroupNone(d.Graph, schedule.ExecutionOrder(d.Graph))
		return nil
	}}

// UnfusedAttention is Unfused on a graph with an operator for each attention.
var UnfusedAttention = scheduler.Strategy{Name: "none-attention",
	Description: "none, with an attention as one operator", Sets: unsplit,
	Decide: func(ctx context.Context, d *scheduler.Draft) (err error) {
		if err = d.Rewrite(false); err == nil {
			err = Unfused.Decide(ctx, d)
		}
		return err
	}}

// ConvolutionPairs makes a kernel of each layer, or of two convolutions in a row.
var ConvolutionPairs = scheduler.Strategy{Name: "conv-pairs", Description: "a layer is a kernel, or two convolutions are",
	Sets: unsplit,
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Grouping, d.Layers = PairConvolutions(d.Graph, schedule.ExecutionOrder(d.Graph))
		return nil
	}}
