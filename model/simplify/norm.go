package simplify

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// splitNorm takes a group normalisation apart: mean and variance of each channel, those of the groups, and what they do
// to the elements. A group is then no longer what one core must have at once, and the work on elements is the same. It
// returns the operators that make the variance of the channels, between which a tensor as large as the operand lies.
func (e *editor) splitNorm(norm *model.Op) []*model.Op {
	g := e.g
	x := g.Tensors[norm.Inputs[0]]
	channels, groups := x.Shape[1], norm.Attr.Group
	perChannel := model.Shape{x.Shape[0], channels}
	spatial := []int64{}
	for d := range x.Shape[2:] {
		perChannel, spatial = append(perChannel, 1), append(spatial, int64(d+2))
	}
	grouped, perGroup := model.Shape{x.Shape[0], groups, channels / groups}, model.Shape{x.Shape[0], groups, 1}
	put := func(kind model.Kind, name string, attr model.Attr, shape model.Shape, in ...model.TensorID) model.TensorID {
		return e.put(kind, norm.Name+name, &attr, e.result(norm.Name+name, shape, x.DType), in...)
	}
	reshape := func(name string, t model.TensorID, shape model.Shape) model.TensorID {
		return put("Reshape", name, model.Attr{Shape: shape.Clone()}, shape, t)
	}
	// ofGroups is the mean over the channels of a group.
	ofGroups := func(name string, t model.TensorID) model.TensorID {
		return put("ReduceMean", name+".of.groups", model.Attr{Axes: []int64{2}, KeepDims: true}, perGroup,
			reshape(name+".grouped", t, grouped))
	}
	// parameter is one that each channel has, in another shape.
	parameter := func(k int, shape model.Shape) model.TensorID {
		p := *g.Tensors[norm.Inputs[k]]
		if p.Role != model.Constant {
			return reshape(fmt.Sprintf(".operand%d", k), p.ID, shape)
		}
		p.Name, p.Shape, p.Layout = fmt.Sprintf("%s.%s", norm.Name, p.Name), shape.Clone(), nil
		return e.constant(p)
	}
	mean := ofGroups(".mean", put("ReduceMean", ".mean", model.Attr{Axes: spatial, KeepDims: true}, perChannel, x.ID))
	mean = reshape(".mean.channels", put("Expand", ".mean.each", model.Attr{Shape: grouped.Clone()}, grouped, mean),
		perChannel)
	first := len(g.Ops)
	apart := put("Sub", ".apart", model.Attr{}, x.Shape, x.ID, mean)
	square := put("Mul", ".square", model.Attr{}, x.Shape, apart, apart)
	variance := put("ReduceMean", ".variance", model.Attr{Axes: spatial, KeepDims: true}, perChannel, square)
	layer := g.Ops[first:len(g.Ops):len(g.Ops)]
	epsilon := e.constant(model.Tensor{Name: norm.Name + ".epsilon", Shape: model.Shape{1}, DType: x.DType})
	root := put("Sqrt", ".root", model.Attr{}, perGroup,
		put("Add", ".above", model.Attr{}, perGroup, ofGroups(".variance", variance), epsilon))
	scale := reshape(".scale.channels", put("Div", ".scale", model.Attr{}, grouped,
		parameter(1, model.Shape{groups, channels / groups}), root), perChannel)
	centred := put("Sub", ".centred", model.Attr{}, x.Shape, x.ID, mean)
	scaled := put("Mul", ".scaled", model.Attr{}, x.Shape, centred, scale)
	e.put("Add", norm.Name, &model.Attr{}, norm.Outputs[0], scaled, parameter(2, perChannel[1:]))
	e.dead[norm.ID] = true
	return layer
}

// BiasApart gives the bias of each convolution an operator of its own, in a copy of a graph.
func BiasApart(g *model.Graph) (*model.Graph, error) {
	e := newEditor(g)
	for _, op := range e.g.Ops[:len(e.g.Ops):len(e.g.Ops)] {
		if op.Kind != "Conv" || len(op.Inputs) < 3 {
			continue
		}
		out, bias := e.g.Tensors[op.Outputs[0]], *e.g.Tensors[op.Inputs[2]]
		bias.Name, bias.Layout = op.Name+".bias.apart", nil
		for bias.Shape = bias.Shape.Clone(); len(bias.Shape) < len(out.Shape)-1; {
			bias.Shape = append(bias.Shape, 1)
		}
		op.Inputs, op.Outputs = op.Inputs[:2:2], []model.TensorID{e.result(op.Name+".product", out.Shape, out.DType)}
		e.put("Add", op.Name+".bias", &model.Attr{}, out.ID, op.Outputs[0], e.constant(bias))
	}
	return e.finished("biases")
}
