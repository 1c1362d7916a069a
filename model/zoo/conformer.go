package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// speech is a configuration of the Conformer family (Gulati et al., Table 1).
type speech struct {
	Frames, Mels          int64 // of 10 ms; features per frame
	Layers, Hidden, Heads int64
	Kernel                int64 // of the depthwise convolution
	Expansion             int64 // of the feed-forwards
}

// build makes the network of a configuration's encoder: convolutions that leave a quarter of the frames, then layers
// of half a feed-forward, attention, convolution, half a feed-forward. The decoder is an LSTM that runs once per
// output symbol; it is left out, so the parameters are below the published ones of the whole (10.3, 30.7 and 118.8
// million) by what it and its joint network have.
//
// The GraphTurbo paper does not say which size it means, nor how long its sentences are. The zoo's "conformer" is the
// large one, at 10.24 s (LibriSpeech has 12 s on average; 1024 frames divide evenly): at the 184 sentences/s that the
// paper gives for TVM, in batches of 12, it does 7.8 TMAC/s, between BERT-128 (5.7) and BERT-256 (9.5) of the same
// table. The medium and small ones would do 2.0 and 0.7. Another length moves these figures, so this is a guess with a
// reason.
//
// All sequences have the full length: there is no mask.
func (c speech) build(name string, opt Options) (*model.Graph, error) {
	b := attentive(name, opt, c.Hidden, c.Heads)
	if c.Frames%4 != 0 || c.Mels%4 != 0 {
		b.Fail(fmt.Errorf("%d frames of %d features cannot be quartered", c.Frames, c.Mels))
	}
	t := transformer{Seq: c.Frames / 4, Hidden: c.Hidden, Heads: c.Heads}
	x := b.Input("frames", opt.DType, opt.Batch, 1, c.Frames, c.Mels)
	for i := range 2 {
		x = b.images().biased(fmt.Sprintf("subsampling.conv%d", i+1), x, square(c.Hidden, 3, 2))
		x = b.images().relu(fmt.Sprintf("subsampling.relu%d", i+1), x)
	}
	x = b.Op("Transpose", "subsampling.transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, x)
	x = b.Op("Reshape", "subsampling.flatten", model.Attr{Shape: []int64{opt.Batch, t.Seq, c.Hidden * (c.Mels / 4)}}, x)
	x = b.linear("subsampling.linear", x, c.Hidden)

	distances := b.Const("distances", opt.DType, nil, 2*t.Seq-1, c.Hidden)
	for i := int64(0); i < c.Layers; i++ {
		layer := fmt.Sprintf("encoder.layer%d", i)
		x = b.halfStep(layer+".ffn1", x, c.Expansion*c.Hidden)
		y := b.norm(layer+".attention.norm", x)
		y = b.relativeAttention(layer+".attention", y, distances, opt.Batch, t)
		x = b.Op("Add", layer+".attention.residual", model.Attr{}, y, x)
		y = b.norm(layer+".conv.norm", x)
		y = b.convolution(layer+".conv", y, c.Kernel)
		x = b.Op("Add", layer+".conv.residual", model.Attr{}, y, x)
		x = b.halfStep(layer+".ffn2", x, c.Expansion*c.Hidden)
		x = b.norm(layer+".norm", x)
	}
	b.Output(x)
	return b.Build()
}

// halfStep is a feed-forward with a residual that takes half of its result.
func (b *sequences) halfStep(name string, x model.TensorID, width int64) model.TensorID {
	y := b.norm(name+".norm", x)
	y = b.feedForward(name, y, width, "Silu")
	y = b.scale(name+".half", y, name+".factor")
	return b.Op("Add", name+".residual", model.Attr{}, y, x)
}

// relativeAttention is attention whose scores depend on contents and distances (Dai et al., ACL 2019, section 3.3),
// each with a learned bias of the query. The encoding of the 2L-1 distances is a table, no parameter; its projection
// reads constants only, so that it is the same for every batch.
//
// The product with the distances has a column for each, the distance falling by one from column to column, the same
// for all rows. The pad, reshapes and slices bring column j-i+L-1 of row i to column j.
func (b *sequences) relativeAttention(att string, x, distances model.TensorID, batch int64,
	c transformer) model.TensorID {
	each := c.Hidden / max(1, c.Heads)
	span := 2*c.Seq - 1
	q := b.project(att+".query", x, batch, c, []int64{0, 2, 1, 3})
	k := b.project(att+".key", x, batch, c, []int64{0, 2, 3, 1})
	u := b.Op("Add", att+".content.query", model.Attr{}, q, b.Param(att+".content.bias", b.dtype, c.Heads, 1, each))
	u = b.Op("MatMul", att+".content", model.Attr{}, u, k)

	r := b.product(att+".distance", distances, c.Hidden)
	r = b.Op("Reshape", att+".distance.heads", model.Attr{Shape: []int64{span, c.Heads, each}}, r)
	r = b.Op("Transpose", att+".distance.transpose", model.Attr{Perm: []int64{1, 2, 0}}, r)
	v := b.Op("Add", att+".position.query", model.Attr{}, q, b.Param(att+".position.bias", b.dtype, c.Heads, 1, each))
	v = b.Op("MatMul", att+".position", model.Attr{}, v, r)
	zero, one := []int64{0, 0, 0, 0}, []int64{1, 1, 1, 1}
	v = b.Op("Pad", att+".shift.pad", model.Attr{Pads: []int64{0, 0, 0, 1, 0, 0, 0, 0}}, v)
	v = b.Op("Reshape", att+".shift.turn", model.Attr{Shape: []int64{batch, c.Heads, span + 1, c.Seq}}, v)
	v = b.Op("Slice", att+".shift.drop",
		model.Attr{Starts: []int64{0, 0, 1, 0}, Steps: one, Shape: []int64{batch, c.Heads, span, c.Seq}}, v)
	v = b.Op("Reshape", att+".shift.back", model.Attr{Shape: []int64{batch, c.Heads, c.Seq, span}}, v)
	v = b.Op("Slice", att+".shift", model.Attr{Starts: zero, Steps: one, Shape: []int64{batch, c.Heads, c.Seq, c.Seq}}, v)

	p := b.Op("Add", att+".scores", model.Attr{}, u, v)
	p = b.scale(att+".scores.scale", p, att+".scale")
	return b.attend(att, p, x, batch, c)
}

// convolution is the convolution module: a gated linear unit, a depthwise convolution over the positions,
// normalisation, Swish, and a projection. In it sequences are [batch, feature, position]. An even kernel reads one
// position more of the future than of the past.
func (b *sequences) convolution(name string, x model.TensorID, kernel int64) model.TensorID {
	features := b.features(x)
	swap := []int64{0, 2, 1}
	x = b.Op("Transpose", name+".transpose", model.Attr{Perm: swap}, x)
	x = b.conv1d(name+".expand", x, features, 2*features, 1, 1)
	gate := b.OpN("Split", name+".split", model.Attr{Axis: 1, Splits: []int64{features, features}}, x)
	if b.Err() != nil {
		return x
	}
	y := b.Op("Sigmoid", name+".gate", model.Attr{}, gate[1])
	y = b.Op("Mul", name+".glu", model.Attr{}, gate[0], y)
	y = b.conv1d(name+".depthwise", y, features, features, features, kernel)
	y = b.Op("BatchNorm", name+".bn", model.Attr{}, y,
		b.Param(name+".bn.scale", b.dtype, features), b.Param(name+".bn.bias", b.dtype, features),
		b.Const(name+".bn.mean", b.dtype, nil, features), b.Const(name+".bn.variance", b.dtype, nil, features))
	y = b.Op("Silu", name+".silu", model.Attr{}, y)
	y = b.conv1d(name+".project", y, features, features, 1, 1)
	return b.Op("Transpose", name+".back", model.Attr{Perm: swap}, y)
}

// conv1d is a convolution with bias that keeps the number of positions.
func (b *sequences) conv1d(name string, x model.TensorID, in, out, group, kernel int64) model.TensorID {
	return b.Op("Conv", name, model.Attr{Strides: []int64{1}, Dilations: []int64{1},
		Pads: []int64{(kernel - 1) / 2, kernel / 2}, Group: group},
		x, b.Param(name+".weight", b.dtype, out, in/group, kernel), b.Param(name+".bias", b.dtype, out))
}
