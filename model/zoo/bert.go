package zoo

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// transformer is a configuration of the BERT family.
type transformer struct {
	Seq, Layers, Hidden, Heads, FFN int64
	Vocabulary, TokenTypes          int64
	Activation                      model.Kind // of the feed-forwards; "": Gelu
}

// build makes the network of a configuration: embeddings, then encoder layers. Tensors and operators of the encoder
// have names that begin with "encoder.", those before with "embeddings.": published counts are for the encoder alone.
//
// The position table has the rows of this sequence length only, since no others are read; the mask is the additive one
// (0, or a large negative number), broadcast over heads and rows.
func (c transformer) build(name string, opt Options) (*model.Graph, error) {
	b := attentive(name, opt, c.Hidden, c.Heads)
	tokens := b.Input("token_ids", model.I32, opt.Batch, c.Seq)
	types := b.Input("token_type_ids", model.I32, opt.Batch, c.Seq)
	mask := b.Input("attention_mask", opt.DType, opt.Batch, 1, 1, c.Seq)

	x := b.Op("Gather", "embeddings.word", model.Attr{},
		b.Param("embeddings.word.weight", opt.DType, c.Vocabulary, c.Hidden), tokens)
	t := b.Op("Gather", "embeddings.token_type", model.Attr{},
		b.Param("embeddings.token_type.weight", opt.DType, c.TokenTypes, c.Hidden), types)
	x = b.Op("Add", "embeddings.token_type.add", model.Attr{}, x, t)
	x = b.Op("Add", "embeddings.position.add", model.Attr{}, x,
		b.Param("embeddings.position.weight", opt.DType, c.Seq, c.Hidden))
	x = b.norm("embeddings.norm", x)
	for i := int64(0); i < c.Layers; i++ {
		x = b.layer(fmt.Sprintf("encoder.layer%d", i), x, mask, opt.Batch, c)
	}
	b.Output(x)
	return b.Build()
}

// sequences adds the layers of sequence networks to a Builder.
type sequences struct {
	*model.Builder
	dtype model.DType
}

// attentive begins a network whose features are divided over heads.
func attentive(name string, opt Options, features, heads int64) *sequences {
	b := &sequences{model.NewBuilder(name), opt.DType}
	if heads < 1 || features%heads != 0 {
		b.Fail(fmt.Errorf("%d features do not divide over %d heads", features, heads))
	}
	return b
}

// features is the last extent; 1 after an error, which Build reports.
func (b *sequences) features(x model.TensorID) int64 {
	if b.Err() != nil {
		return 1
	}
	s := b.Tensor(x).Shape
	return s[len(s)-1]
}

// product is a matrix product with learned weights.
func (b *sequences) product(name string, x model.TensorID, out int64) model.TensorID {
	return b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".weight", b.dtype, b.features(x), out))
}

// linear is a product and a bias.
func (b *sequences) linear(name string, x model.TensorID, out int64) model.TensorID {
	y := b.product(name, x, out)
	return b.Op("Add", name+".add", model.Attr{}, y, b.Param(name+".bias", b.dtype, out))
}

// images adds the layers of image networks.
func (b *sequences) images() *images { return &images{b.Builder, b.dtype} }

// root is a normalisation by the root mean square.
func (b *sequences) root(name string, x model.TensorID) model.TensorID {
	return b.Op("RMSNorm", name, model.Attr{Axis: 2}, x, b.Param(name+".scale", b.dtype, b.features(x)))
}

// norm is a layer normalisation over the last dimension, the features.
func (b *sequences) norm(name string, x model.TensorID) model.TensorID {
	f := b.features(x)
	return b.Op("LayerNorm", name, model.Attr{Axis: int64(max(1, len(b.Tensor(x).Shape)) - 1)}, x,
		b.Param(name+".scale", b.dtype, f), b.Param(name+".bias", b.dtype, f))
}

// project is a linear layer whose features are cut into heads; perm brings
// [batch, position, head, feature] into the order the products want.
func (b *sequences) project(name string, x model.TensorID, batch int64, c transformer, perm []int64) model.TensorID {
	y := b.linear(name, x, c.Hidden)
	y = b.Op("Reshape", name+".heads", model.Attr{Shape: []int64{batch, c.Seq, c.Heads, c.Hidden / max(1, c.Heads)}}, y)
	return b.Op("Transpose", name+".transpose", model.Attr{Perm: perm}, y)
}

// scale multiplies by one constant, which is no parameter.
func (b *sequences) scale(name string, x model.TensorID, constant string) model.TensorID {
	return b.Op("Mul", name, model.Attr{}, x, b.Const(constant, b.dtype, nil, 1))
}

// scores is the first half of an attention: what each position has to do with each other one, before masks and softmax.
func (b *sequences) scores(att string, x model.TensorID, batch int64, c transformer) model.TensorID {
	q := b.project(att+".query", x, batch, c, []int64{0, 2, 1, 3})
	k := b.project(att+".key", x, batch, c, []int64{0, 2, 3, 1})
	p := b.Op("MatMul", att+".scores", model.Attr{}, q, k)
	return b.scale(att+".scores.scale", p, att+".scale")
}

// attend is the second half: softmax of the scores p, mean of the values, output projection. The values are projected
// after the softmax: see the package documentation.
func (b *sequences) attend(att string, p, x model.TensorID, batch int64, c transformer) model.TensorID {
	rows := []int64{0, 2, 1, 3}
	p = b.Op("Softmax", att+".softmax", model.Attr{Axis: 3}, p)
	v := b.project(att+".value", x, batch, c, rows)
	y := b.Op("MatMul", att+".context", model.Attr{}, p, v)
	y = b.Op("Transpose", att+".context.transpose", model.Attr{Perm: rows}, y)
	y = b.Op("Reshape", att+".context.merge", model.Attr{Shape: []int64{batch, c.Seq, c.Hidden}}, y)
	return b.linear(att+".output", y, c.Hidden)
}

// feedForward is two linear layers with an activation between, to as many features as there were.
func (b *sequences) feedForward(name string, x model.TensorID, width int64, activation model.Kind) model.TensorID {
	features := b.features(x)
	y := b.linear(name+".up", x, width)
	y = b.Op(activation, name+"."+strings.ToLower(string(activation)), model.Attr{}, y)
	return b.linear(name+".down", y, features)
}

// unmasked is the mask of encoder layers that have none.
const unmasked model.TensorID = -1

// layer is an encoder layer with the normalisations after the residuals (as published).
func (b *sequences) layer(name string, x, mask model.TensorID, batch int64, c transformer) model.TensorID {
	att := name + ".attention"
	p := b.scores(att, x, batch, c)
	if mask != unmasked {
		p = b.Op("Add", att+".scores.mask", model.Attr{}, p, mask)
	}
	y := b.attend(att, p, x, batch, c)
	y = b.Op("Add", att+".residual", model.Attr{}, y, x)
	x = b.norm(att+".norm", y)

	ffn := name + ".ffn"
	y = b.feedForward(ffn, x, c.FFN, cmp.Or(c.Activation, "Gelu"))
	y = b.Op("Add", ffn+".residual", model.Attr{}, y, x)
	return b.norm(ffn+".norm", y)
}
