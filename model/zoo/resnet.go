package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// residual is a configuration of the ResNet family (He et al., Table 1).
type residual struct {
	Blocks     []int64 // blocks per stage
	Bottleneck bool    // blocks 1x1, 3x3, 1x1 instead of 3x3, 3x3
	// Groups and GroupWidth make the 3x3 of a bottleneck a grouped convolution, of
	// GroupWidth channels per group in the first stage (ResNeXt). No groups: 0.
	Groups, GroupWidth int64
	// Pointwise makes the second convolution of a block without bottleneck 1x1.
	Pointwise bool
	Image     int64 // height and width
	Classes   int64
}

// build makes the network of a configuration: stem, stages of residual blocks, classifier. The stride of a stage sits
// in the 3x3 convolution of its first bottleneck ("v1.5"), which is what torchvision trains and what is benchmarked
// today; the paper has it in the 1x1 before.
func (c residual) build(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 3, c.Image, c.Image)
	x = b.conv("stem.conv", x, 64, 7, 2)
	x = b.norm("stem.bn", x)
	x = b.relu("stem.relu", x)
	x = b.pool("MaxPool", "stem.pool", x, 3, 2, 1)
	width := int64(64)
	for s, n := range c.Blocks {
		for i := int64(0); i < n; i++ {
			stride := int64(1)
			if s > 0 && i == 0 {
				stride = 2
			}
			x = b.block(fmt.Sprintf("stage%d.block%d", s+1, i), x, width, stride, c)
		}
		width *= 2
	}
	b.classify(x, c.Classes)
	return b.Build()
}

// images adds the layers of image networks to a Builder.
type images struct {
	*model.Builder
	dtype model.DType
}

// channels is 1 after an error, so that what follows stays well-formed; Build reports the error.
func (b *images) channels(x model.TensorID) int64 {
	if b.Err() != nil {
		return 1
	}
	return b.Tensor(x).Shape[1]
}

// window holds the attributes of a convolution.
type window struct {
	Out, Height, Width, Stride int64
	Pads                       []int64
	Groups                     int64
	Bias                       bool
}

// square is a window padded so that stride 1 keeps the extents, of one group and without bias.
func square(out, kernel, stride int64) window {
	return rectangle(out, kernel, kernel, stride)
}

// rectangle is square for a kernel of two extents.
func rectangle(out, height, width, stride int64) window {
	return window{Out: out, Height: height, Width: width, Stride: stride, Pads: around(height/2, width/2), Groups: 1}
}

// valid is a square window without padding.
func valid(out, kernel, stride int64) window {
	w := square(out, kernel, stride)
	w.Pads = around(0, 0)
	return w
}

// around pads both ends of the height and of the width alike.
func around(height, width int64) []int64 { return []int64{height, width, height, width} }

// convolve adds a convolution. The groups divide the input's channels.
func (b *images) convolve(name string, x model.TensorID, w window) model.TensorID {
	in := []model.TensorID{x, b.Param(name+".weight", b.dtype, w.Out, b.channels(x)/w.Groups, w.Height, w.Width)}
	if w.Bias {
		in = append(in, b.Param(name+".bias", b.dtype, w.Out))
	}
	return b.Op("Conv", name, model.Attr{Strides: []int64{w.Stride, w.Stride}, Dilations: []int64{1, 1},
		Pads: w.Pads, Group: w.Groups}, in...)
}

// conv is a square convolution without bias, padded so that stride 1 keeps the extents.
func (b *images) conv(name string, x model.TensorID, out, kernel, stride int64) model.TensorID {
	return b.convolve(name, x, square(out, kernel, stride))
}

// biased is a convolution with a bias.
func (b *images) biased(name string, x model.TensorID, w window) model.TensorID {
	w.Bias = true
	return b.convolve(name, x, w)
}

// rectified is a convolution and a ReLU, without a normalisation between: the
// networks of before 2015. The operators are called after the layer.
func (b *images) rectified(name string, x model.TensorID, w window) model.TensorID {
	return b.relu(name+".relu", b.biased(name, x, w))
}

// pool is a square MaxPool or AveragePool, padded alike on all sides.
func (b *images) pool(kind model.Kind, name string, x model.TensorID, kernel, stride, pad int64) model.TensorID {
	return b.padded(kind, name, x, kernel, stride, around(pad, pad))
}

// padded is pool with pads of its own for each side.
func (b *images) padded(kind model.Kind, name string, x model.TensorID, kernel, stride int64,
	pads []int64) model.TensorID {
	return b.Op(kind, name, model.Attr{Kernel: []int64{kernel, kernel}, Strides: []int64{stride, stride},
		Dilations: []int64{1, 1}, Pads: pads}, x)
}

// concat puts images side by side along the channels.
func (b *images) concat(name string, x ...model.TensorID) model.TensorID {
	return b.Op("Concat", name, model.Attr{Axis: 1}, x...)
}

// classify ends a network: mean over each channel, one product, softmax.
func (b *images) classify(x model.TensorID, classes int64) {
	x = b.Op("GlobalAveragePool", "head.pool", model.Attr{}, x)
	x = b.linear("head.fc", b.flatten(x), classes)
	b.Output(b.Op("Softmax", "head.softmax", model.Attr{Axis: 1}, x))
}

// flatten makes a row of each image.
func (b *images) flatten(x model.TensorID) model.TensorID {
	if b.Err() != nil {
		return x
	}
	s := b.Tensor(x).Shape
	return b.Op("Reshape", "head.flatten", model.Attr{Shape: []int64{s[0], s[1:].Elements()}}, x)
}

// linear is a product of rows with learned weights and a bias.
func (b *images) linear(name string, x model.TensorID, out int64) model.TensorID {
	return b.Op("Gemm", name, model.Attr{TransB: true}, x,
		b.Param(name+".weight", b.dtype, out, b.channels(x)), b.Param(name+".bias", b.dtype, out))
}

// norm is an inference batch normalisation. Scale and bias are learned; mean and
// variance are statistics of the training set and no parameters.
func (b *images) norm(name string, x model.TensorID) model.TensorID {
	c := b.channels(x)
	return b.Op("BatchNorm", name, model.Attr{}, x,
		b.Param(name+".scale", b.dtype, c), b.Param(name+".bias", b.dtype, c),
		b.Const(name+".mean", b.dtype, nil, c), b.Const(name+".variance", b.dtype, nil, c))
}

func (b *images) relu(name string, x model.TensorID) model.TensorID {
	return b.Op("Relu", name, model.Attr{}, x)
}

// block is a residual block. The shortcut is a projection where the stride or
// the channels change, else the input itself.
func (b *images) block(name string, x model.TensorID, width, stride int64, c residual) model.TensorID {
	layers := []window{square(width, 3, stride), square(width, 3, 1)}
	if c.Pointwise {
		layers[1] = square(width, 1, 1)
	}
	if c.Bottleneck {
		inner := square(width, 3, stride)
		if c.Groups > 0 {
			// The first stage is 64 wide: there, a group has GroupWidth channels.
			inner.Out, inner.Groups = width*c.GroupWidth/64*c.Groups, c.Groups
		}
		layers = []window{square(inner.Out, 1, 1), inner, square(4*width, 1, 1)}
	}
	y := x
	for i, l := range layers {
		y = b.convolve(fmt.Sprintf("%s.conv%d", name, i+1), y, l)
		y = b.norm(fmt.Sprintf("%s.bn%d", name, i+1), y)
		if i < len(layers)-1 {
			y = b.relu(fmt.Sprintf("%s.relu%d", name, i+1), y)
		}
	}
	short := x
	if out := layers[len(layers)-1].Out; stride != 1 || b.channels(x) != out {
		short = b.conv(name+".shortcut.conv", x, out, 1, stride)
		short = b.norm(name+".shortcut.bn", short)
	}
	y = b.Op("Add", name+".add", model.Attr{}, y, short)
	return b.relu(name+".relu", y)
}
