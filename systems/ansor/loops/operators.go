package loops

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// operatorClass is a row of the paper's Fig. 6 or Fig. 8 with the shapes of its Appendix C, or one of ours.
type operatorClass struct {
	name   string
	build  func(b *model.Builder, batch int64, shape []int64) model.TensorID
	shapes [][]int64
}

// operatorBatch is one of the paper's two batch sizes.
const operatorBatch = 16

// operatorClasses are the paper's operators and subgraphs; and products of one row by constant
// weights, as networks end, whose long reductions cores can share.
var operatorClasses = []operatorClass{
	{"C1D", convolution(1, 1), [][]int64{{256, 64, 128, 3, 2, 1}, {128, 128, 256, 1, 2, 0}, {64, 256, 256, 5, 1, 2},
		{32, 512, 512, 3, 1, 1}}},
	{"C2D", convolution(2, 1), [][]int64{{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 64, 1, 1, 0},
		{14, 14, 256, 256, 3, 1, 1}, {7, 7, 512, 512, 3, 1, 1}}},
	{"C3D", convolution(3, 1), [][]int64{{16, 224, 224, 3, 64, 7, 2, 3}, {16, 56, 56, 64, 64, 1, 1, 0},
		{16, 14, 14, 256, 256, 3, 1, 1}, {16, 7, 7, 512, 512, 3, 1, 1}}},
	{"GMM", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		return b.Op("MatMul", "product", model.Attr{}, b.Input("a", model.F16, batch, s[0], s[2]),
			b.Input("b", model.F16, batch, s[2], s[1]))
	}, [][]int64{{128, 128, 128}, {512, 32, 512}, {512, 512, 512}, {1024, 1024, 1024}}},
	// three channels are no four groups
	{"GRP", convolution(2, 4), [][]int64{{56, 56, 64, 64, 1, 1, 0}, {14, 14, 256, 256, 3, 1, 1},
		{7, 7, 512, 512, 3, 1, 1}}},
	{"DIL", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		return convolve(b, batch, 2, s, model.Attr{Dilations: []int64{2, 2}, Group: 1})
	}, [][]int64{{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 64, 1, 1, 0}, {14, 14, 256, 256, 3, 1, 1},
		{7, 7, 512, 512, 3, 1, 1}}},
	{"DEP", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		return convolve(b, batch, 2, []int64{s[0], s[1], s[2], s[2], s[3], s[4], s[5]}, model.Attr{Group: s[2]})
	}, [][]int64{{112, 112, 32, 3, 1, 1}, {112, 112, 64, 3, 2, 1}, {14, 14, 512, 3, 2, 1}, {7, 7, 1024, 3, 1, 1}}},
	{"T2D", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		at := model.Attr{Kernel: []int64{s[4], s[4]}, Strides: []int64{s[5], s[5]}, Pads: []int64{s[6], s[6], s[6], s[6]},
			Dilations: []int64{1, 1}, OutputPadding: []int64{0, 0}, Group: 1}
		return b.Op("ConvTranspose", "conv", at, b.Input("x", model.F16, batch, s[2], s[0], s[1]),
			b.Param("w", model.F16, s[2], s[3], s[4], s[4]))
	}, [][]int64{{4, 4, 512, 256, 4, 2, 1}, {8, 8, 256, 128, 4, 2, 1}, {16, 16, 128, 64, 4, 2, 1},
		{32, 32, 64, 3, 4, 2, 1}}},
	// A capsule of c x c is c images with c times the channels.
	{"CAP", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		c := s[7]
		return convolve(b, batch*c, 2, []int64{s[0], s[1], s[2] * c, s[3] * c, s[4], s[5], s[6]}, model.Attr{Group: 1})
	}, [][]int64{{16, 16, 32, 32, 3, 2, 1, 4}, {8, 8, 32, 32, 3, 1, 1, 4}, {16, 16, 8, 16, 3, 2, 1, 4},
		{8, 8, 16, 16, 3, 1, 1, 4}}},
	{"NRM", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		x := b.Input("x", model.F16, batch, s[0], s[1])
		sum := b.Op("ReduceSum", "sum", model.Attr{Axes: []int64{1, 2}}, b.Op("Mul", "square", model.Attr{}, x, x))
		return b.Op("Sqrt", "root", model.Attr{}, sum)
	}, [][]int64{{256, 256}, {512, 512}}}, // of the larger two a row of sums does not fit the L1
	{"ConvLayer", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		y := convolve(b, batch, 2, s, model.Attr{Group: 1})
		y = b.Op("Add", "shift", model.Attr{}, y, b.Param("bias", model.F16, s[3], 1, 1))
		return b.Op("Relu", "relu", model.Attr{}, y)
	}, [][]int64{{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 64, 3, 2, 1}, {28, 28, 128, 256, 1, 2, 0},
		{7, 7, 512, 512, 3, 1, 1}}},
	{"TBS", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		q, k := b.Input("q", model.F16, batch, s[0], s[1], s[2]), b.Input("k", model.F16, batch, s[0], s[1], s[2])
		q = b.Op("Transpose", "query", model.Attr{Perm: []int64{0, 2, 1, 3}}, q)
		k = b.Op("Transpose", "key", model.Attr{Perm: []int64{0, 2, 3, 1}}, k)
		return b.Op("Softmax", "softmax", model.Attr{Axis: 3}, b.Op("MatMul", "scores", model.Attr{}, q, k))
	}, [][]int64{{128, 12, 64}, {128, 16, 64}, {64, 12, 128}, {128, 12, 128}}},
	{"one row", func(b *model.Builder, batch int64, s []int64) model.TensorID {
		return b.Op("MatMul", "product", model.Attr{}, b.Input("x", model.F16, batch, s[0]),
			b.Param("w", model.F16, s[0], s[1]))
	}, [][]int64{{2048, 1000}, {4096, 4096}, {25088, 4096}, {768, 768}}},
}

// convolution is one of so many spatial dimensions; shapes are those, input and output
// channels, kernel, stride and padding.
func convolution(dims int, groups int64) func(b *model.Builder, batch int64, s []int64) model.TensorID {
	return func(b *model.Builder, batch int64, s []int64) model.TensorID {
		return convolve(b, batch, dims, s, model.Attr{Group: groups})
	}
}

func convolve(b *model.Builder, batch int64, dims int, s []int64, at model.Attr) model.TensorID {
	in, out, kernel := s[dims], s[dims+1], s[dims+2]
	each := func(x int64, n int) []int64 { return slices.Repeat([]int64{x}, n) }
	at.Kernel, at.Strides, at.Pads = each(kernel, dims), each(s[dims+3], dims), each(s[dims+4], 2*dims)
	if at.Dilations == nil {
		at.Dilations = each(1, dims)
	}
	x := b.Input("x", model.F16, append([]int64{batch, in}, s[:dims]...)...)
	return b.Op("Conv", "conv", at, x, b.Param("w", model.F16, append([]int64{out, in / at.Group}, at.Kernel...)...))
}

// network is one shape of the class.
func (c operatorClass) network(shape []int64) network.Network {
	name := fmt.Sprintf("%s %v", c.name, shape)
	return network.Network{Name: name, Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder(name)
		b.Output(c.build(b, batch, shape))
		return b.Build()
	}}
}
