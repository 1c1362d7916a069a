package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// squeezenet is SqueezeNet 1.1, which pools earlier than 1.0 and has a smaller first convolution. There is no product
// at the end: the last convolution has a channel per class.
func squeezenet(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 3, 224, 224)
	x = b.rectified("conv1", x, valid(64, 3, 2))
	x = b.pool("MaxPool", "pool1", x, 3, 2, 0)
	for i, squeeze := range []int64{16, 16, 32, 32, 48, 48, 64, 64} {
		x = b.fire(fmt.Sprintf("fire%d", i+2), x, squeeze)
		if i == 1 || i == 3 {
			x = b.pool("MaxPool", fmt.Sprintf("pool%d", i+2), x, 3, 2, 0)
		}
	}
	x = b.Op("Dropout", "head.dropout", model.Attr{}, x)
	x = b.rectified("head.conv", x, square(1000, 1, 1))
	x = b.Op("GlobalAveragePool", "head.pool", model.Attr{}, x)
	b.Output(b.Op("Softmax", "head.softmax", model.Attr{Axis: 1}, x))
	return b.Build()
}

// fire narrows to a few channels and widens to eight times as many, half of them with a 3x3 window.
func (b *images) fire(name string, x model.TensorID, squeeze int64) model.TensorID {
	x = b.rectified(name+".squeeze", x, square(squeeze, 1, 1))
	one := b.rectified(name+".expand1", x, square(4*squeeze, 1, 1))
	three := b.rectified(name+".expand3", x, square(4*squeeze, 3, 1))
	return b.concat(name+".concat", one, three)
}
