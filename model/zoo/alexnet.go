package zoo

import "github.com/dsasched/dsasched/model"

// alexnet returns the builder of the BVLC release of AlexNet for a height and width: one column, in which groups of
// two keep apart what was on two graphics cards, and local normalisation before pooling, as in the paper. The row has
// the 224 of the ONNX model zoo's file; Caffe crops 227, of which the first convolution uses every point.
func alexnet(extent int64) func(string, Options) (*model.Graph, error) {
	return func(name string, opt Options) (*model.Graph, error) {
		b := &images{model.NewBuilder(name), opt.DType}
		halves := func(w window) window {
			w.Groups = 2
			return w
		}
		x := b.Input("image", opt.DType, opt.Batch, 3, extent, extent)
		x = b.rectified("conv1", x, valid(96, 11, 4))
		x = b.pool("MaxPool", "pool1", b.lrn("norm1", x), 3, 2, 0)
		x = b.rectified("conv2", x, halves(square(256, 5, 1)))
		x = b.pool("MaxPool", "pool2", b.lrn("norm2", x), 3, 2, 0)
		x = b.rectified("conv3", x, square(384, 3, 1))
		x = b.rectified("conv4", x, halves(square(384, 3, 1)))
		x = b.rectified("conv5", x, halves(square(256, 3, 1)))
		// Caffe rounds the extents of a pooling up, which the file makes a border.
		x = b.padded("MaxPool", "pool5", x, 3, 2, []int64{0, 0, 1, 1})
		b.perceptron(x)
		return b.Build()
	}
}

// lrn is a local response normalisation over five channels, with the constants of Krizhevsky et al.
func (b *images) lrn(name string, x model.TensorID) model.TensorID {
	return b.Op("LRN", name, model.Attr{Kernel: []int64{5}, Variant: "alpha=0.0001 beta=0.75 bias=1"}, x)
}
