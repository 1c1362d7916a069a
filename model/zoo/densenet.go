package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// dense is a configuration of the DenseNet family (Huang et al., Table 1).
type dense struct {
	Blocks  []int64 // layers per block
	Growth  int64   // channels that a layer adds
	Stem    int64   // channels before the first block
	Classes int64
}

// build makes the network of a configuration, with bottlenecks of four times the growth and transitions that halve the
// channels. What a block has gathered is one tensor, which every layer's Concat extends, as in the published file; an
// exporter of torchvision's code concatenates all parts anew in every layer.
func (c dense) build(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 3, 224, 224)
	x = b.conv("stem.conv", x, c.Stem, 7, 2)
	x = b.relu("stem.relu", b.norm("stem.bn", x))
	x = b.pool("MaxPool", "stem.pool", x, 3, 2, 1)
	// Normalisation and ReLU come before the convolution.
	ahead := func(name string, x model.TensorID, out, kernel int64) model.TensorID {
		x = b.relu(name+".relu", b.norm(name+".bn", x))
		return b.conv(name+".conv", x, out, kernel, 1)
	}
	for i, n := range c.Blocks {
		if i > 0 {
			t := fmt.Sprintf("transition%d", i)
			x = ahead(t, x, b.channels(x)/2, 1)
			x = b.pool("AveragePool", t+".pool", x, 2, 2, 0)
		}
		for j := int64(0); j < n; j++ {
			layer := fmt.Sprintf("block%d.layer%d", i+1, j)
			y := ahead(layer+".bottleneck", x, 4*c.Growth, 1)
			y = ahead(layer+".grow", y, c.Growth, 3)
			x = b.concat(layer+".concat", x, y)
		}
	}
	x = b.relu("head.relu", b.norm("head.bn", x))
	b.classify(x, c.Classes)
	return b.Build()
}
