package zoo

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// causal is a decoder-only transformer with its embeddings and the product with its vocabulary, at prefill (Cached 0)
// or at decode: Tokens behind Cached others, whose keys and values are inputs. Keys and values of the tokens are
// outputs, and so are the scores of all symbols behind each token.
type causal struct {
	Layers, Hidden, Heads int64
	Width                 int64 // of a head; 0: all heads together have Hidden
	// KeyHeads is the number of heads of keys and values, each of which serves as many of queries.
	KeyHeads, FFN, Vocabulary int64
	// Positions are learned vectors (GPT-2); 0: keys and queries are rotated instead, the normalisations are by the root
	// mean square, the feed-forward has a gate, nothing a bias, and the vocabulary a matrix of its own (Llama).
	Positions int64
	// Experts are the feed-forwards of a layer, of which each token takes Chosen; 0: one
	// that all take. Even: as many tokens for each, else the same for all tokens.
	Experts, Chosen int64
	Even            bool
	Tokens, Cached  int64
}

func (c causal) build(name string, opt Options) (*model.Graph, error) {
	b := &sequences{model.NewBuilder(name), opt.DType}
	ids := b.Input("input_ids", model.I32, opt.Batch, c.Tokens)
	table := b.Param("embeddings.token.weight", b.dtype, c.Vocabulary, c.Hidden)
	x := b.Op("Gather", "embeddings.token", model.Attr{}, table, ids)
	if c.Positions > 0 {
		at := b.Input("position_ids", model.I32, opt.Batch, c.Tokens)
		p := b.Op("Gather", "embeddings.position", model.Attr{},
			b.Param("embeddings.position.weight", b.dtype, c.Positions, c.Hidden), at)
		x = b.Op("Add", "embeddings.add", model.Attr{}, x, p)
	}
	d := &decoding{sequences: b, causal: c, batch: opt.Batch}
	d.constants()
	for i := range c.Layers {
		x = d.layer(fmt.Sprintf("decoder.layer%d", i), x)
	}
	x = d.norm("decoder.norm", x)
	if c.Positions > 0 { // the vocabulary's matrix is that of the embeddings
		rows := b.Op("Reshape", "head.rows", model.Attr{Shape: []int64{opt.Batch * c.Tokens, c.Hidden}}, x)
		x = b.Op("Gemm", "head.scores", model.Attr{TransB: true}, rows, table)
	} else {
		x = d.product("head.scores", x, c.Vocabulary)
	}
	b.Output(x)
	return b.Build()
}

// decoding adds the layers of a decoder to a Builder.
type decoding struct {
	*sequences
	causal
	batch          int64
	mask, cos, sin model.TensorID
}

func (c *causal) width() int64 { return cmp.Or(c.Width, c.Hidden/c.Heads) }

// constants adds the constants that all layers share: the mask of what comes later and the angles.
func (d *decoding) constants() {
	if d.Tokens > 1 {
		d.mask = d.Const("mask", d.dtype, nil, d.Tokens, d.Tokens+d.Cached)
		d.Tensor(d.mask).Causal = true
	}
	if d.Positions == 0 {
		d.cos, d.sin = d.Const("cos", d.dtype, nil, d.Tokens, d.width()), d.Const("sin", d.dtype, nil, d.Tokens, d.width())
	}
}

func (d *decoding) product(name string, x model.TensorID, out int64) model.TensorID {
	if d.Positions > 0 {
		return d.linear(name, x, out)
	}
	return d.sequences.product(name, x, out)
}

func (d *decoding) norm(name string, x model.TensorID) model.TensorID {
	if d.Positions > 0 {
		return d.sequences.norm(name, x)
	}
	return d.root(name, x)
}

// heads cuts a projection of x into heads: [batch, head, token, feature].
func (d *decoding) heads(name string, x model.TensorID, heads int64) model.TensorID {
	y := d.Op("Reshape", name+".heads", model.Attr{Shape: []int64{d.batch, d.Tokens, heads, d.width()}},
		d.product(name, x, heads*d.width()))
	return d.Op("Transpose", name+".transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, y)
}

// rotated turns pairs of features by an angle that grows with the position (Su et al.,
// 2021), if positions are not learned.
func (d *decoding) rotated(name string, x model.TensorID) model.TensorID {
	if d.Positions > 0 || d.Err() != nil {
		return x
	}
	name += ".rotary"
	h := d.OpN("Split", name+".split", model.Attr{Axis: 3, Splits: []int64{d.width() / 2, d.width() / 2}}, x)
	if d.Err() != nil {
		return x
	}
	y := d.Op("Concat", name+".turned", model.Attr{Axis: 3}, d.Op("Neg", name+".neg", model.Attr{}, h[1]), h[0])
	y = d.Op("Mul", name+".sin", model.Attr{}, y, d.sin)
	return d.Op("Add", name, model.Attr{}, d.Op("Mul", name+".cos", model.Attr{}, x, d.cos), y)
}

// cached puts the keys or values of earlier tokens before those of these, which are outputs.
func (d *decoding) cached(name string, x model.TensorID) model.TensorID {
	d.Output(x)
	if d.Cached == 0 {
		return x
	}
	before := d.Input(name+".cache", d.dtype, d.batch, d.KeyHeads, d.Cached, d.width())
	return d.Op("Concat", name+".all", model.Attr{Axis: 2}, before, x)
}

// layer is attention and a feed-forward, each behind a normalisation and with a residual.
func (d *decoding) layer(name string, x model.TensorID) model.TensorID {
	att, ffn := name+".attention", name+".ffn"
	x = d.Op("Add", att+".residual", model.Attr{}, d.attention(att, d.norm(att+".norm", x)), x)
	y := d.norm(ffn+".norm", x)
	if d.Experts > 0 {
		y = d.experts(ffn, y)
	} else {
		y = d.forward(ffn, y)
	}
	return d.Op("Add", ffn+".residual", model.Attr{}, y, x)
}

// attention is that of the tokens and the projections around it.
func (d *decoding) attention(att string, x model.TensorID) model.TensorID {
	q := d.rotated(att+".query", d.heads(att+".query", x, d.Heads))
	q = d.grouped(att+".query.group", q, d.width())
	k := d.cached(att+".key", d.rotated(att+".key", d.heads(att+".key", x, d.KeyHeads)))
	p := d.probabilities(att, q, k)
	v := d.cached(att+".value", d.heads(att+".value", x, d.KeyHeads))
	y := d.apart(att+".context.apart", d.Op("MatMul", att+".context", model.Attr{}, p, v), d.width())
	y = d.Op("Transpose", att+".context.transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, y)
	y = d.Op("Reshape", att+".context.merge", model.Attr{Shape: []int64{d.batch, d.Tokens, d.Hidden}}, y)
	return d.product(att+".output", y, d.Hidden)
}

// grouped has the rows of all heads that share keys together, apart each head's alone.
func (d *decoding) grouped(name string, x model.TensorID, columns int64) model.TensorID {
	if d.Heads == d.KeyHeads {
		return x
	}
	return d.Op("Reshape", name, model.Attr{Shape: []int64{d.batch, d.KeyHeads, d.Heads / d.KeyHeads * d.Tokens, columns}},
		x)
}

func (d *decoding) apart(name string, x model.TensorID, columns int64) model.TensorID {
	if d.Heads == d.KeyHeads {
		return x
	}
	return d.Op("Reshape", name, model.Attr{Shape: []int64{d.batch, d.Heads, d.Tokens, columns}}, x)
}

// probabilities are the shares of keys in the tokens' attention, grouped as the queries q are.
func (d *decoding) probabilities(att string, q, k model.TensorID) model.TensorID {
	all := d.Tokens + d.Cached
	k = d.Op("Transpose", att+".key.columns", model.Attr{Perm: []int64{0, 1, 3, 2}}, k)
	p := d.scale(att+".scores.scale", d.Op("MatMul", att+".scores", model.Attr{}, q, k), att+".scale")
	p = d.apart(att+".scores.apart", p, all)
	if d.Tokens > 1 {
		p = d.Op("Add", att+".scores.mask", model.Attr{}, p, d.mask)
	}
	return d.grouped(att+".scores.group", d.Op("Softmax", att+".softmax", model.Attr{Axis: 3}, p), all)
}

// forward is two linear layers, with a gate beside the first (Shazeer, 2020) in Llama.
func (d *decoding) forward(name string, x model.TensorID) model.TensorID {
	if d.Positions > 0 {
		return d.feedForward(name, x, d.FFN, "Gelu")
	}
	gate := d.Op("Silu", name+".silu", model.Attr{}, d.product(name+".gate", x, d.FFN))
	y := d.Op("Mul", name+".gated", model.Attr{}, gate, d.product(name+".up", x, d.FFN))
	return d.product(name+".down", y, d.Hidden)
}

// experts sends each token to those that a product chooses, and adds up what they make of
// it by the probabilities of the choice.
func (d *decoding) experts(name string, x model.TensorID) model.TensorID {
	p := d.Op("Softmax", name+".router.softmax", model.Attr{Axis: 2}, d.product(name+".router", x, d.Experts))
	best := d.OpN("TopK", name+".router.best", model.Attr{Axis: 2, Splits: []int64{d.Chosen}}, p)
	if d.Err() != nil {
		return x
	}
	if !d.Even {
		d.Output(best[1])
		parts := d.OpN("Split", name+".router.parts",
			model.Attr{Axis: 2, Splits: slices.Repeat([]int64{1}, int(d.Chosen))}, best[0])
		if d.Err() != nil {
			return x
		}
		y := model.TensorID(-1)
		for i, part := range parts {
			expert := fmt.Sprintf("%s.expert%d", name, i)
			z := d.Op("Mul", expert+".share", model.Attr{}, d.forward(expert, x), part)
			if i > 0 {
				z = d.Op("Add", expert+".sum", model.Attr{}, y, z)
			}
			y = z
		}
		return y
	}
	// Tokens in the order of their experts, as many times as they have any.
	tokens := d.batch * d.Tokens
	all := tokens * d.Chosen
	if all%d.Experts != 0 {
		d.Fail(fmt.Errorf("%s: %d tokens for %d experts each do not spread evenly over %d", name, d.Tokens,
			d.Chosen, d.Experts))
	}
	list := func(what string, x model.TensorID) model.TensorID {
		return d.Op("Reshape", name+".router."+what, model.Attr{Shape: []int64{all}}, x)
	}
	order := d.OpN("TopK", name+".router.order", model.Attr{Splits: []int64{all}}, list("choice", best[1]))
	if d.Err() != nil {
		return x
	}
	back := d.OpN("TopK", name+".router.back", model.Attr{Splits: []int64{all}}, order[1])
	if d.Err() != nil {
		return x
	}
	d.Output(order[0], back[0])
	share := d.Op("Gather", name+".shares", model.Attr{}, list("share", best[0]), order[1])
	share = d.Op("Reshape", name+".shares.column", model.Attr{Shape: []int64{all, 1}}, share)
	twice := d.Op("Expand", name+".copies", model.Attr{Shape: []int64{d.batch, d.Tokens, d.Chosen, d.Hidden}},
		d.Op("Reshape", name+".copies.of", model.Attr{Shape: []int64{d.batch, d.Tokens, 1, d.Hidden}}, x))
	rows := d.Op("Gather", name+".sorted", model.Attr{},
		d.Op("Reshape", name+".rows", model.Attr{Shape: []int64{all, d.Hidden}}, twice), order[1])
	parts := d.OpN("Split", name+".parts",
		model.Attr{Splits: slices.Repeat([]int64{all / d.Experts}, int(d.Experts))}, rows)
	if d.Err() != nil {
		return x
	}
	made := make([]model.TensorID, len(parts))
	for i, part := range parts {
		made[i] = d.forward(fmt.Sprintf("%s.expert%d", name, i), part)
	}
	y := d.Op("Mul", name+".shared", model.Attr{}, d.Op("Concat", name+".joined", model.Attr{}, made...), share)
	y = d.Op("Gather", name+".unsorted", model.Attr{}, y, back[1])
	y = d.Op("Reshape", name+".pairs", model.Attr{Shape: []int64{d.batch, d.Tokens, d.Chosen, d.Hidden}}, y)
	return d.Op("ReduceSum", name+".sum", model.Attr{Axes: []int64{2}}, y)
}

// decoderRows are a decoder at prefill of so many tokens, and at decode of one behind so many others.
func decoderRows(name, what, source string, c causal, tokens, cached int64) []entry {
	prefill, decode := c, c
	prefill.Tokens, prefill.Even = tokens, true
	decode.Tokens, decode.Cached = 1, cached
	few, one := "", ""
	if c.Experts > 0 {
		few = fmt.Sprintf("; assumed: the tokens spread evenly over the %d experts of a layer, %d for each token",
			c.Experts, c.Chosen)
		one = fmt.Sprintf(
			"; assumed: all tokens of a batch choose the same %d experts of a layer, and the other %d are not there", c.Chosen,
			c.Experts-c.Chosen)
	}
	return []entry{
		{Info{name + "-prefill", what + ", prefill" + few, source, fmt.Sprintf("%d tokens", tokens)}, prefill.build},
		{Info{name + "-decode", what + ", decode with a cache of keys and values" + one, source,
			fmt.Sprintf("a token behind %d others", cached)}, decode.build},
	}
}

// The published sizes.
var (
	gpt2    = causal{Layers: 12, Hidden: 768, Heads: 12, KeyHeads: 12, FFN: 3072, Vocabulary: 50257, Positions: 1024}
	llama2  = causal{Layers: 32, Hidden: 4096, Heads: 32, KeyHeads: 32, FFN: 11008, Vocabulary: 32000}
	llama3  = causal{Layers: 32, Hidden: 4096, Heads: 32, KeyHeads: 8, FFN: 14336, Vocabulary: 128256}
	mixtral = causal{Layers: 32, Hidden: 4096, Heads: 32, KeyHeads: 8, FFN: 14336, Vocabulary: 32000,
		Experts: 8, Chosen: 2}
)
