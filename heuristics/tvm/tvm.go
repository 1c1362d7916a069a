// Package tvm holds the grouping of the baseline: every layer is a kernel of its own ([Group]), or what TVM's pass
// makes one ([GroupOps]), as in T. Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning",
// OSDI 2018, where a kernel is one heavy operator with the element-wise operators behind it; a transposition behind it
// is a kernel of its own ([schedule.FusedLayers]). Results pass from kernel to kernel through the DDR, and a batch that
// is too large for a kernel is looped over in chunks.
package tvm

import (
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Group makes one sub-graph per layer, in execution order, unsplit. It returns the layers with it: one per sub-graph.
func Group(g *model.Graph, order []model.OpID) (*schedule.Grouping, [][]schedule.Layer) {
	return group(schedule.FusedLayers(g, order))
}
