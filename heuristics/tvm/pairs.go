package tvm

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// PairConvolutions is the grouping of TVM with the fused convolutions of CUTLASS, as in J. Xing et al., "Bolt: Bridging
// the Gap between Auto-tuners and Hardware-native Performance", MLSys 2022: a kernel per layer, but two convolutions
// behind each other become one kernel where the second is 1x1, without stride or padding, so that each part of the
// first's output is used where it is made, and nothing else reads that output. A kernel has at most two.
func PairConvolutions(g *model.Graph, order []model.OpID) (*schedule.Grouping, [][]schedule.Layer) {
	single, layers := Group(g, order)
	owner := make([]int, len(g.Ops))
	for i, sg := range single.Groups {
		for _, id := range sg.Ops {
			owner[id] = i
		}
	}
	first := slices.Repeat([]int{-1}, len(layers)) // of each second layer, its first
	paired := make([]bool, len(layers))
	for j := range layers {
		anchor := g.Op(layers[j][0].Anchor)
		if !pointwise(g, anchor) {
			continue
		}
		in := g.Tensor(anchor.Inputs[0])
		if in.Producer == model.NoOp || len(in.Consumers) != 1 || g.IsOutput(in.ID) {
			continue
		}
		i := owner[in.Producer]
		if i == j || paired[i] || paired[j] || g.Op(layers[i][0].Anchor).Kind != "Conv" || len(layers[i][0].Outputs) != 1 {
			continue
		}
		first[j] = i
		paired[i], paired[j] = true, true
	}
	gr := &schedule.Grouping{}
	var lists [][]schedule.Layer
	taken := make([]bool, len(layers))
	for j := range layers {
		if i := first[j]; i >= 0 {
			taken[i] = true
		}
	}
	for j := range layers {
		if taken[j] {
			continue // runs in the kernel of its second
		}
		var list []schedule.Layer
		var ops []model.OpID
		if i := first[j]; i >= 0 {
			list = append(list, layers[i][0])
			ops = append(ops, layers[i][0].Ops...)
		}
		list = append(list, layers[j][0])
		ops = append(ops, layers[j][0].Ops...)
		k := len(gr.Groups)
		sg := &schedule.SubGraph{ID: k, Name: fmt.Sprintf("k%d", k), Ops: ops,
			Split: schedule.SplitInfo{Ops: len(ops), Factor: 1, Dim: -1}}
		sg.Inputs, sg.Outputs = schedule.Boundary(g, ops)
		gr.Groups = append(gr.Groups, sg)
		lists = append(lists, list)
	}
	return gr, lists
}

// pointwise reports whether a convolution reads, for each pixel, that pixel alone.
func pointwise(g *model.Graph, op *model.Op) bool {
	notOne := func(n int64) bool { return n != 1 }
	return op.Kind == "Conv" && !slices.ContainsFunc(g.Tensor(op.Inputs[1]).Shape[2:], notOne) &&
		!slices.ContainsFunc(op.Attr.Strides, notOne) &&
		!slices.ContainsFunc(op.Attr.Pads, func(p int64) bool { return p != 0 })
}
