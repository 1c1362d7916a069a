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

// ConvolutionPairs makes a kernel of each layer, or of two convolutions in a row.
var ConvolutionPairs = scheduler.Strategy{Name: "conv-pairs", Description: "a layer is a kernel, or two convolutions are",
	Sets: unsplit,
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		d.Grouping, d.Layers = PairConvolutions(d.Graph, schedule.ExecutionOrder(d.Graph))
		return nil
	}}
