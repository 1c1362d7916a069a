package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// vision is a configuration of the ViT family (Dosovitskiy et al., Table 1).
type vision struct {
	Image, Patch               int64 // height and width
	Layers, Hidden, Heads, FFN int64
	Classes                    int64
}

// build makes the network of a configuration: patches, a class token before them, positions, encoder layers with the
// normalisations before each part, and a classifier of the class token.
//
// The class token is one learned vector, repeated for each image. Queries, keys and values have weights of their own
// here, where torchvision has one matrix for the three: the parameters and the products are the same ones.
func (c vision) build(name string, opt Options) (*model.Graph, error) {
	b := attentive(name, opt, c.Hidden, c.Heads)
	if c.Patch < 1 || c.Image%c.Patch != 0 {
		b.Fail(fmt.Errorf("an image of %d rows does not divide into patches of %d", c.Image, c.Patch))
	}
	side := c.Image / max(1, c.Patch)
	t := transformer{Seq: side*side + 1, Hidden: c.Hidden, Heads: c.Heads}
	x := b.Input("image", opt.DType, opt.Batch, 3, c.Image, c.Image)
	x = b.patches("embeddings.patch", x, c.Hidden, c.Patch)
	x = b.Op("Reshape", "embeddings.patch.flatten", model.Attr{Shape: []int64{opt.Batch, c.Hidden, side * side}}, x)
	x = b.Op("Transpose", "embeddings.patch.transpose", model.Attr{Perm: []int64{0, 2, 1}}, x)
	class := b.Op("Expand", "embeddings.class.expand", model.Attr{Shape: []int64{opt.Batch, 1, c.Hidden}},
		b.Param("embeddings.class", opt.DType, 1, 1, c.Hidden))
	x = b.Op("Concat", "embeddings.concat", model.Attr{Axis: 1}, class, x)
	x = b.Op("Add", "embeddings.position.add", model.Attr{}, x,
		b.Param("embeddings.position", opt.DType, 1, t.Seq, c.Hidden))
	for i := int64(0); i < c.Layers; i++ {
		x = b.visionLayer(fmt.Sprintf("encoder.layer%d", i), x, opt.Batch, c.FFN, t)
	}
	x = b.norm("encoder.norm", x)
	x = b.Op("Slice", "head.class", model.Attr{Starts: []int64{0, 0, 0}, Steps: []int64{1, 1, 1},
		Shape: []int64{opt.Batch, 1, c.Hidden}}, x)
	x = b.Op("Reshape", "head.flatten", model.Attr{Shape: []int64{opt.Batch, c.Hidden}}, x)
	b.classify(x, c.Classes)
	return b.Build()
}

// visionLayer is an encoder layer with the normalisations before attention and feed-forward.
func (b *sequences) visionLayer(name string, x model.TensorID, batch, ffn int64, t transformer) model.TensorID {
	att := name + ".attention"
	y := b.norm(att+".norm", x)
	y = b.attend(att, b.scores(att, y, batch, t), y, batch, t)
	x = b.Op("Add", att+".residual", model.Attr{}, y, x)
	y = b.norm(name+".ffn.norm", x)
	y = b.feedForward(name+".ffn", y, ffn, "Gelu")
	return b.Op("Add", name+".ffn.residual", model.Attr{}, y, x)
}

// patches cuts an image into squares and projects each to out features: a
// convolution with a stride as large as its kernel.
func (b *sequences) patches(name string, x model.TensorID, out, size int64) model.TensorID {
	return b.images().biased(name, x, valid(out, size, size))
}

// classify ends a network with the probabilities of classes.
func (b *sequences) classify(x model.TensorID, classes int64) {
	x = b.images().linear("head.fc", x, classes)
	b.Output(b.Op("Softmax", "head.softmax", model.Attr{Axis: 1}, x))
}
