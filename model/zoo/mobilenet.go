package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// mobilenetv2 is MobileNetV2 at width 1 (Sandler et al., Table 2).
func mobilenetv2(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 3, 224, 224)
	x = b.limited("stem", x, square(32, 3, 2))
	for s, c := range []struct{ expand, out, blocks, stride int64 }{
		{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
	} {
		for i := int64(0); i < c.blocks; i++ {
			stride := int64(1)
			if i == 0 {
				stride = c.stride
			}
			x = b.inverted(fmt.Sprintf("stage%d.block%d", s+1, i), x, c.expand, c.out, stride)
		}
	}
	x = b.limited("last", x, square(1280, 1, 1))
	b.classify(x, 1000)
	return b.Build()
}

// limited is a convolution with normalisation and ReLU6.
func (b *images) limited(name string, x model.TensorID, w window) model.TensorID {
	x = b.norm(name+".bn", b.convolve(name+".conv", x, w))
	return b.Op("Clip", name+".relu6", model.Attr{Variant: "max=[6] min=[0]"}, x)
}

// inverted is an inverted residual: widen, filter each channel, narrow again,
// without a non-linearity on the narrow side.
func (b *images) inverted(name string, x model.TensorID, expand, out, stride int64) model.TensorID {
	y := x
	if expand > 1 {
		y = b.limited(name+".expand", y, square(expand*b.channels(x), 1, 1))
	}
	y = b.limited(name+".depthwise", y, depthwise(b.channels(y), 3, stride))
	y = b.norm(name+".project.bn", b.conv(name+".project.conv", y, out, 1, 1))
	if stride > 1 || b.channels(x) != out {
		return y
	}
	return b.Op("Add", name+".add", model.Attr{}, x, y)
}

// depthwise is a square window over each channel by itself.
func depthwise(channels, kernel, stride int64) window {
	w := square(channels, kernel, stride)
	w.Groups = channels
	return w
}
