package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// pyramid is a configuration of the running example of the GraphTurbo paper
// (section 2.1): stages that each halve the tensor they are given.
type pyramid struct {
	Stages   int
	Channels int64 // of the input
	Image    int64 // height and width
}

// build makes the network of a configuration. A stage is a conv block with stride 2, which makes [N, 2C, H/2, W/2] of
// [N, C, H, W], and an identity block. The paper has the stages of ResNet-50 there, but lets the first have a stride as
// well. It gives no extents. With those of the table an image takes 8 MiB in the first stage in FP16, so that ten local
// MiB hold one image there, two in the second stage, four in the third and all eight in the fourth, as in Fig. 3b.
func (c pyramid) build(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, c.Channels, c.Image, c.Image)
	width := c.Channels / 2 // a block's result is four times as wide as its middle
	for s := 1; s <= c.Stages; s++ {
		x = b.block(fmt.Sprintf("stage%d.conv", s), x, width, 2, residual{Bottleneck: true})
		x = b.block(fmt.Sprintf("stage%d.identity", s), x, width, 1, residual{Bottleneck: true})
		width *= 2
	}
	b.Output(x)
	return b.Build()
}

// twoBlocks returns the builder of a conv block with stride 2 and an identity
// block, with the names that the paper's Fig. 2 has for them.
func twoBlocks(channels, width, image int64) func(string, Options) (*model.Graph, error) {
	return func(name string, opt Options) (*model.Graph, error) {
		b := &images{model.NewBuilder(name), opt.DType}
		x := b.Input("image", opt.DType, opt.Batch, channels, image, image)
		x = b.block("conv", x, width, 2, residual{Bottleneck: true})
		b.Output(b.block("identity", x, width, 1, residual{Bottleneck: true}))
		return b.Build()
	}
}
