package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// vgg returns the builder of a configuration of Simonyan and Zisserman's Table 1, given as the number of 3x3
// convolutions before each pooling. The dropouts stay, as in the published file; simplification removes them.
func vgg(stages ...int64) func(string, Options) (*model.Graph, error) {
	return func(name string, opt Options) (*model.Graph, error) {
		b := &images{model.NewBuilder(name), opt.DType}
		x := b.Input("image", opt.DType, opt.Batch, 3, 224, 224)
		width := int64(64)
		for s, n := range stages {
			stage := fmt.Sprintf("stage%d", s+1)
			for i := int64(1); i <= n; i++ {
				x = b.rectified(fmt.Sprintf("%s.conv%d", stage, i), x, square(width, 3, 1))
			}
			x = b.pool("MaxPool", stage+".pool", x, 2, 2, 0)
			width = min(2*width, 512)
		}
		b.perceptron(x)
		return b.Build()
	}
}

// perceptron is the classifier of the networks before global pooling: three
// products over the whole image. Layers are counted as the Caffe files do.
func (b *images) perceptron(x model.TensorID) {
	x = b.flatten(x)
	for _, name := range []string{"head.fc6", "head.fc7"} {
		x = b.relu(name+".relu", b.linear(name, x, 4096))
		x = b.Op("Dropout", name+".dropout", model.Attr{}, x)
	}
	x = b.linear("head.fc8", x, 1000)
	b.Output(b.Op("Softmax", "head.softmax", model.Attr{Axis: 1}, x))
}
