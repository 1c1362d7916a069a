package zoo

import (
	"cmp"
	"fmt"

	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
)

// A Decoder is a decoder-only transformer in the parts of which a server's steps are made: tokens
// of many sequences pass its products together, and each sequence its own attention.
type Decoder struct {
	Name   string
	Layers int64
	// Limit is how many tokens a sequence may have; 0: positions are not learned.
	Limit  int64
	whole  causal
	chip   causal // a chip's share
	dtype  model.DType
	shared int64 // chips
}

// denseDecoders are the decoders whose tokens all take the same products.
var denseDecoders = []struct {
	name string
	of   *causal
}{{"gpt2", &gpt2}, {"llama2-7b", &llama2}, {"llama3-8b", &llama3}}

// Decoders lists the names that OpenDecoder takes.
func Decoders() []string {
	var names []string
	for _, d := range denseDecoders {
		names = append(names, d.name)
	}
	return names
}

// OpenDecoder gives a decoder as each of several chips has it: its share of the heads, of the
// hidden features of the feed-forward and of the vocabulary (Shoeybi et al., 2019), which they must divide.
func OpenDecoder(name string, dtype model.DType, chips int64) (*Decoder, error) {
	for _, known := range denseDecoders {
		if known.name != name {
			continue
		}
		c := *known.of
		c.Width = c.width()
		if chips < 1 || c.KeyHeads%chips != 0 || c.FFN%chips != 0 {
			return nil,
				fmt.Errorf("%s: found %d chips, expected a number that divides its %d heads of keys and %d hidden features", name,
					chips, c.KeyHeads, c.FFN)
		}
		d := &Decoder{Name: name, Layers: c.Layers, Limit: c.Positions, whole: c, chip: c, dtype: dtype, shared: chips}
		d.chip.Heads, d.chip.KeyHeads, d.chip.FFN = c.Heads/chips, c.KeyHeads/chips, c.FFN/chips
		d.chip.Vocabulary = (c.Vocabulary + chips - 1) / chips
		return d, nil
	}
	return nil, fmt.Errorf("unknown decoder %q%s", name, suggest.Expected(name, Decoders()))
}

// KeyHeads is the number of heads of keys and values of a chip.
func (d *Decoder) KeyHeads() int64 { return d.chip.KeyHeads }

// CacheBytes is what a chip keeps of a token: keys and values of all layers.
func (d *Decoder) CacheBytes() int64 {
	return d.dtype.Bytes(2 * d.Layers * d.chip.KeyHeads * d.chip.Width)
}

// ExchangeBytes is what a token has between layers.
func (d *Decoder) ExchangeBytes() int64 { return d.dtype.Bytes(d.whole.Hidden) }

// ScoreBytes is what all chips together have of a token behind the last product.
func (d *Decoder) ScoreBytes() int64 { return d.dtype.Bytes(d.whole.Vocabulary) }

// WeightBytes is what a chip keeps of the parameters: its share, and the embeddings whole where they
// are no part of the last product.
func (d *Decoder) WeightBytes() (int64, error) {
	layer, err := d.Layer(1, 1)
	if err != nil {
		return 0, err
	}
	head, err := d.Head(1, 1)
	if err != nil {
		return 0, err
	}
	rows := d.whole.Positions
	rows = cmp.Or(rows, d.whole.Vocabulary)
	return d.dtype.Bytes(d.Layers*layer.Params() + head.Params() + rows*d.whole.Hidden), nil
}

func (d *Decoder) builder(name string, c causal, batch int64) *decoding {
	return &decoding{sequences: &sequences{model.NewBuilder(d.Name + "-" + name), d.dtype}, causal: c, batch: batch}
}

// Layer is a layer without its attention, of batch times as many tokens.
func (d *Decoder) Layer(batch, tokens int64) (*model.Graph, error) {
	c := d.chip
	c.Tokens = tokens
	b := d.builder("layer", c, batch)
	b.constants()
	b.mask = -1
	x := b.Input("x", b.dtype, batch, tokens, c.Hidden)
	y := b.norm("attention.norm", x)
	b.Output(b.rotated("query", b.heads("query", y, c.Heads)))
	b.Output(b.rotated("key", b.heads("key", y, c.KeyHeads)))
	b.Output(b.heads("value", y, c.KeyHeads))
	context := b.Input("context", b.dtype, batch, tokens, c.Heads*c.Width)
	x = b.Op("Add", "attention.residual", model.Attr{}, b.product("output", context, c.Hidden), x)
	b.Output(b.Op("Add", "ffn.residual", model.Attr{}, b.forward("ffn", b.norm("ffn.norm", x)), x))
	return b.Build()
}

// Attention is a layer's attention of the heads of queries that share a head of keys, for batch
// pairs of a sequence and a head of keys: of so many tokens behind others. The keys and values of all of
// them are inputs, as a server has them in one place, without the one behind the other.
func (d *Decoder) Attention(batch, tokens, cached int64) (*model.Graph, error) {
	c := d.chip
	c.Heads, c.KeyHeads, c.Positions, c.Tokens, c.Cached = c.Heads/c.KeyHeads, 1, 1, tokens, cached
	b := d.builder("attention", c, batch)
	b.constants()
	q := b.Input("query", b.dtype, batch, 1, c.Heads*tokens, c.Width)
	k := b.Input("key", b.dtype, batch, 1, tokens+cached, c.Width)
	v := b.Input("value", b.dtype, batch, 1, tokens+cached, c.Width)
	b.Output(b.Op("MatMul", "context", model.Attr{}, b.probabilities("attention", q, k), v))
	return b.Build()
}

// Head is the last normalisation and the product with the vocabulary, of batch times as many tokens.
func (d *Decoder) Head(batch, tokens int64) (*model.Graph, error) {
	c := d.chip
	c.Tokens = tokens
	b := d.builder("head", c, batch)
	x := b.norm("norm", b.Input("x", b.dtype, batch, tokens, c.Hidden))
	b.Output(b.Op("MatMul", "scores", model.Attr{}, x, b.Param("scores.weight", b.dtype, c.Hidden, c.Vocabulary)))
	return b.Build()
}
