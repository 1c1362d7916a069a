package structure

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// signature is equal for isomorphic blocks. It holds a hash of every operator in sorted order. The hash covers all
// that is upstream of the operator in the block, then all that is downstream: two results that are computed alike may
// be read in different places.
func (f *finder) signature(b Block) string {
	g := f.Graph
	entry := f.shape(b.Entry)
	var ops []*model.Op
	for _, l := range f.Layers[b.First:b.End] {
		for _, id := range l.Ops {
			if op := g.Op(id); slices.ContainsFunc(op.Outputs, func(t model.TensorID) bool { return f.flow[t] }) {
				ops = append(ops, op)
			}
		}
	}
	up := map[model.TensorID]string{}
	for _, op := range ops {
		operands := make([]string, len(op.Inputs))
		for i, in := range op.Inputs {
			operands[i] = f.operand(b, up, in)
		}
		if commutes(op) {
			slices.Sort(operands)
		}
		for k, out := range op.Outputs {
			t := g.Tensor(out)
			up[out] = hash("%s|%d|%s|%v|%s|%q|%v", op.Kind, k, relativeAttr(g, op), t.DType, relative(t.Shape, entry),
				operands, out == b.Exit)
		}
	}
	// No operator reads from a later one, so that the reverse meets all readers first.
	readers := map[model.TensorID][]string{}
	var all []string
	for _, op := range slices.Backward(ops) {
		var own []string
		for _, out := range op.Outputs {
			slices.Sort(readers[out])
			own = append(own, hash("%s|%q", up[out], readers[out]))
		}
		all = append(all, own...)
		for i, in := range op.Inputs {
			if commutes(op) {
				i = 0
			}
			readers[in] = append(readers[in], hash("%d|%q", i, own))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// operand identifies an input of an operator of a block. Of what is no data flow only its
// sort counts: the first block that reads a mask may also prepare it.
func (f *finder) operand(b Block, up map[model.TensorID]string, id model.TensorID) string {
	t := f.Graph.Tensor(id)
	switch h, ok := up[id]; {
	case ok:
		return h
	case id == b.Entry:
		return "entry"
	case t.Role == model.Constant && t.Learned:
		return "learned"
	case t.Role == model.Constant:
		return "constant"
	case !f.flow[id]:
		return "side"
	}
	return "outside"
}

// commutes reports whether the order of operands does not matter.
func commutes(op *model.Op) bool { return op.Kind == "Add" || op.Kind == "Mul" }

func hash(format string, args ...any) string {
	h := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return hex.EncodeToString(h[:16])
}

// relative writes a shape's extents as multiples of another's, dimension by
// dimension if there are as many, else all together.
func relative(s, to model.Shape) string {
	if to == nil {
		return fmt.Sprint(s)
	}
	if len(s) != len(to) {
		return fmt.Sprint(len(s), " dims ", ratio(s.Elements(), to.Elements()))
	}
	parts := make([]string, len(s))
	for i := range s {
		parts[i] = ratio(s[i], to[i])
	}
	return strings.Join(parts, ",")
}

func ratio(a, b int64) string {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return fmt.Sprint(a/x, "/", b/x)
}

// relativeAttr writes the attributes that do not follow from the shapes. Those that
// grow with the tensor are left out or written relative to it.
func relativeAttr(g *model.Graph, op *model.Op) string {
	a := op.Attr
	group := "dense"
	if a.Group > 1 {
		group = fmt.Sprint(a.Group)
		if in := g.Tensor(op.Inputs[0]).Shape; len(in) > 1 && in[1] == a.Group {
			group = "depthwise"
		}
	}
	starts := make([]string, len(a.Starts))
	for i, s := range a.Starts {
		starts[i] = fmt.Sprint(s)
		if in := g.Tensor(op.Inputs[0]).Shape; s > 0 && i < len(in) {
			starts[i] = ratio(s, in[i])
		}
	}
	return fmt.Sprintf("%v", []any{a.Kernel, a.Strides, a.Dilations, a.Pads, group, a.CeilMode, a.Axis, a.Axes,
		a.KeepDims, a.Perm,
		a.TransA, a.TransB, starts, a.Steps, a.OutputPadding, a.Variant, kernelOf(g, op), a.Scores, a.Softmax, a.Causal})
}

// kernelOf is the kernel of a convolution, which has no attribute for it.
func kernelOf(g *model.Graph, op *model.Op) model.Shape {
	if op.Kind != "Conv" && op.Kind != "ConvTranspose" {
		return nil
	}
	return g.Tensor(op.Inputs[1]).Shape[2:]
}
