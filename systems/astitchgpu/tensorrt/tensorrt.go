// Package tensorrt makes kernels of a graph for a SIMT machine by the fusions that the documentation of TensorRT lists
// (its layer fusion catalogue), as far as they concern operators of this graph: a baseline of
//
//	Z. Zheng et al., "AStitch: Enabling a New Multi-dimensional Optimization Space
//	for Memory-intensive ML Training and Inference on Modern SIMT Architectures",
//	ASPLOS 2022
//
// # Rules
//
//	epilogue   a product or convolution takes in what reads it alone: additions and
//	           multiplications of constants, behind a convolution another addition, and
//	           at last an activation
//	pointwise  an element-wise operator joins the one that all its readers have joined,
//	           if both have as many elements and nothing lies between; a kernel has one result
//
// Everything else is a kernel by itself: reductions, softmaxes, moves. Kernels chosen by measurement, plugins,
// recurrent layers as one operator and the removal of concatenations are not in it.
package tensorrt

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// activations end an epilogue.
var activations = map[model.Kind]bool{"Relu": true, "Clip": true, "LeakyRelu": true, "Elu": true, "Sigmoid": true,
	"Tanh": true, "HardSigmoid": true, "Softplus": true}

// Fuse makes kernels of a graph, whose softmaxes should be whole.
func Fuse(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
	roles, err := fusion.Roles(g)
	if err != nil {
		return nil, err
	}
	f := &fuser{g: g, end: make([]model.OpID, len(g.Ops)), taken: make([]bool, len(g.Ops)),
		why: make([]string, len(g.Ops))}
	for i := range f.end {
		f.end[i] = model.OpID(i)
	}
	for _, op := range g.Ops {
		if op.Class() == model.MatrixClass {
			f.epilogue(op)
		}
	}
	f.pointwise()

	parts := make([][]model.OpID, len(g.Ops)) // by their last operator, which alone has readers outside
	for i := range g.Ops {
		parts[f.end[i]] = append(parts[f.end[i]], model.OpID(i))
	}
	var kernels []fusion.Kernel
	for i, ops := range parts {
		switch {
		case len(ops) == 0 || roles[i] == fusion.View:
		case roles[ops[0]] == fusion.Heavy:
			kernels = append(kernels, fusion.Library(g, m, ops...))
		default:
			k, ok := fusion.Single(g, m, ops, nil, m.Plain)
			if !ok {
				return nil, fmt.Errorf("tensorrt: machine %s can't run the kernel of %q", m.Name, g.Op(ops[0]).Name)
			}
			kernels = append(kernels, k)
		}
	}
	return fusion.Finish("tensorrt", g, m, kernels, func(from, _ model.OpID) string { return f.why[from] })
}

type fuser struct {
	g     *model.Graph
	end   []model.OpID // the last operator of each one's kernel
	taken []bool       // by a library call
	why   []string     // an operator joins nothing behind it
}

// epilogue takes in what follows a product or convolution.
func (f *fuser) epilogue(op *model.Op) {
	ops := []model.OpID{op.ID}
	residual := op.Kind == "Conv"
	for done := false; !done; {
		t := f.g.Tensor(f.g.Op(ops[len(ops)-1]).Outputs[0])
		if len(t.Consumers) != 1 || f.g.IsOutput(t.ID) {
			break
		}
		next := f.g.Op(t.Consumers[0])
		others := 0 // inputs that are computed
		for _, in := range next.Inputs {
			if in != t.ID && f.g.Tensor(in).Role != model.Constant {
				others++
			}
		}
		scales := others == 0 && (next.Kind == "Add" || next.Kind == "Mul" || next.Kind == "BatchNorm")
		adds := residual && others == 1 && next.Kind == "Add"
		done = activations[next.Kind]
		if f.taken[next.ID] || !scales && !adds && !done || !slices.Equal(t.Shape, f.g.Tensor(next.Outputs[0]).Shape) {
			break
		}
		residual = residual && !adds
		ops = append(ops, next.ID)
	}
	for _, id := range ops {
		f.end[id], f.taken[id] = ops[len(ops)-1], true
	}
}

// pointwise joins element-wise operators with what reads them.
func (f *fuser) pointwise() {
	g := f.g
	loose := make([]bool, len(g.Ops)) // element-wise, and in no epilogue
	for i, op := range g.Ops {
		loose[i] = op.Class() == model.ElementwiseClass && !f.taken[i]
	}
	for i := len(g.Ops) - 1; i >= 0; i-- {
		op := g.Ops[i]
		t := g.Tensor(op.Outputs[0])
		switch {
		case op.Class() != model.ElementwiseClass:
			f.why[i] = "only element-wise operators join what reads them"
			continue
		case !loose[i]:
			f.why[i] = "it ends a library call"
			continue
		case g.IsOutput(t.ID) || len(t.Consumers) == 0:
			f.why[i] = "the network gives it out"
			continue
		}
		end := f.end[t.Consumers[0]]
		for _, c := range t.Consumers {
			switch {
			case !loose[c]:
				f.why[i] = fmt.Sprintf("%q is no element-wise operator by itself", g.Op(c).Name)
			case f.end[c] != end:
				f.why[i] = "several kernels read it"
			case !slices.Equal(t.Shape, g.Tensor(g.Op(c).Outputs[0]).Shape):
				f.why[i] = "it is broadcast"
			}
		}
		if f.why[i] == "" {
			f.end[i] = end
		}
	}
}
