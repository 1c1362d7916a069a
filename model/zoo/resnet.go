package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// residual is a configuration of the ResNet family (He et al., Table 1).
type residual struct {
	Blocks     []int64 // blocks per stage
	Bottleneck bool    // blocks 1x1, 3x3, 1x1 instead of 3x3, 3x3
	Image      int64   // height and width
	Classes    int64
}

// resnet returns the builder of a configuration: stem, stages of residual
// blocks, classifier. The stride of a stage sits in the 3x3 convolution of its
// first bottleneck ("v1.5"), which is what torchvision trains and what is
// benchmarked today; the paper has it in the 1x1 before.
func resnet(c residual) func(string, Options) (*model.Graph, error) {
	return func(name string, opt Options) (*model.Graph, error) {
		b := &images{model.NewBuilder(name), opt.DType}
		x := b.Input("image", opt.DType, opt.Batch, 3, c.Image, c.Image)
		x = b.conv("stem.conv", x, 64, 7, 2)
		x = b.norm("stem.bn", x)
		x = b.relu("stem.relu", x)
		x = b.Op("MaxPool", "stem.pool", model.Attr{Kernel: []int64{3, 3}, Strides: []int64{2, 2}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}}, x)
		width := int64(64)
		for s, n := range c.Blocks {
			for i := int64(0); i < n; i++ {
				stride := int64(1)
				if s > 0 && i == 0 {
					stride = 2
				}
				x = b.block(fmt.Sprintf("stage%d.block%d", s+1, i), x, width, stride, c.Bottleneck)
			}
			width *= 2
		}
		x = b.Op("GlobalAveragePool", "head.pool", model.Attr{}, x)
		features := b.channels(x)
		x = b.Op("Reshape", "head.flatten", model.Attr{Shape: []int64{opt.Batch, features}}, x)
		x = b.Op("Gemm", "head.fc", model.Attr{TransB: true}, x,
			b.Param("head.fc.weight", opt.DType, c.Classes, features), b.Param("head.fc.bias", opt.DType, c.Classes))
		b.Output(b.Op("Softmax", "head.softmax", model.Attr{Axis: 1}, x))
		return b.Build()
	}
}

// images adds the layers of image networks to a Builder.
type images struct {
	*model.Builder
	dtype model.DType
}

// channels is 1 after an error, so that what follows stays well-formed; Build
// reports the error.
func (b *images) channels(x model.TensorID) int64 {
	if b.Err() != nil {
		return 1
	}
	return b.Tensor(x).Shape[1]
}

// conv is a square convolution without bias, padded so that stride 1 keeps the
// extents.
func (b *images) conv(name string, x model.TensorID, out, kernel, stride int64) model.TensorID {
	w := b.Param(name+".weight", b.dtype, out, b.channels(x), kernel, kernel)
	p := kernel / 2
	return b.Op("Conv", name, model.Attr{Strides: []int64{stride, stride}, Dilations: []int64{1, 1},
		Pads: []int64{p, p, p, p}, Group: 1}, x, w)
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
func (b *images) block(name string, x model.TensorID, width, stride int64, bottleneck bool) model.TensorID {
	type layer struct{ out, kernel, stride int64 }
	layers := []layer{{width, 3, stride}, {width, 3, 1}}
	if bottleneck {
		layers = []layer{{width, 1, 1}, {width, 3, stride}, {4 * width, 1, 1}}
	}
	y := x
	for i, l := range layers {
		y = b.conv(fmt.Sprintf("%s.conv%d", name, i+1), y, l.out, l.kernel, l.stride)
		y = b.norm(fmt.Sprintf("%s.bn%d", name, i+1), y)
		if i < len(layers)-1 {
			y = b.relu(fmt.Sprintf("%s.relu%d", name, i+1), y)
		}
	}
	short := x
	if out := layers[len(layers)-1].out; stride != 1 || b.channels(x) != out {
		short = b.conv(name+".shortcut.conv", x, out, 1, stride)
		short = b.norm(name+".shortcut.bn", short)
	}
	y = b.Op("Add", name+".add", model.Attr{}, y, short)
	return b.relu(name+".relu", y)
}
