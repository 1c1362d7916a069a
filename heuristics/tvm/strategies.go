package tvm

import (
	"context"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// unsplit are the picks that these groups come with: a kernel is not cut.
var unsplit = []scheduler.Pick{{Stage: "split", Strategy: "none"}}

// ofGroups is a strategy that makes kernels of a graph's operators in their order of execution.
func ofGroups(name, description string, group func(*model.Graph, []model.OpID) (*schedule.Grouping,
	[][]schedule.Layer)) scheduler.Strategy {
	return scheduler.Strategy{Name: name, Description: description, Sets: unsplit,
		Decide: func(_ context.Context, d *scheduler.Draft) error {
			d.Grouping, d.Layers = group(d.Graph, schedule.ExecutionOrder(d.Graph))
			return nil
		}}
}

// Layers makes each layer a kernel.
var Layers = ofGroups("layers", "a layer is a kernel", Group)

// FusedOps makes kernels by the rules of TVM's pass FuseOps.
var FusedOps = ofGroups("fuse-ops", "operators that TVM's pass FuseOps makes one kernel", GroupOps)

// Unfused makes each operator a kernel.
var Unfused = ofGroups("none", "each operator is a kernel, an attention three unless rewritten", GroupNone)

// ConvolutionPairs makes a kernel of each layer, or of two convolutions in a row.
var ConvolutionPairs = ofGroups("conv-pairs", "a layer is a kernel, or two convolutions are", PairConvolutions)
