package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// decoderLayer is one layer of a decoder-only transformer as mappers are compared on it: the
// products of attention and feed-forward, the softmax as one operation per element,
// without normalisations, residuals, biases and activation function.
type decoderLayer struct {
	Tokens, Heads, Width int64 // width of a head
	// Cached tokens have keys and values already, which are inputs.
	Cached int64
}

func (c decoderLayer) build(name string, opt Options) (*model.Graph, error) {
	b := &sequences{model.NewBuilder(name), opt.DType}
	hidden := c.Heads * c.Width
	x := b.Input("x", opt.DType, opt.Batch, c.Tokens, hidden)
	heads := func(name string, perm ...int64) model.TensorID {
		y := b.Op("Reshape", name+".heads", model.Attr{Shape: []int64{opt.Batch, c.Tokens, c.Heads, c.Width}},
			b.product(name, x, hidden))
		return b.Op("Transpose", name+".transpose", model.Attr{Perm: perm}, y)
	}
	query, key, value := heads("query", 0, 2, 1, 3), heads("key", 0, 2, 3, 1), heads("value", 0, 2, 1, 3)
	if c.Cached > 0 {
		key = b.Op("Concat", "keys", model.Attr{Axis: 3},
			b.Input("key.cache", opt.DType, opt.Batch, c.Heads, c.Width, c.Cached), key)
		value = b.Op("Concat", "values", model.Attr{Axis: 2},
			b.Input("value.cache", opt.DType, opt.Batch, c.Heads, c.Cached, c.Width), value)
	}
	p := b.Op("Exp", "softmax", model.Attr{}, b.Op("MatMul", "scores", model.Attr{}, query, key))
	y := b.Op("Transpose", "context.transpose", model.Attr{Perm: []int64{0, 2, 1, 3}},
		b.Op("MatMul", "context", model.Attr{}, p, value))
	y = b.Op("Reshape", "context.merge", model.Attr{Shape: []int64{opt.Batch, c.Tokens, hidden}}, y)
	y = b.product("output", y, hidden)
	b.Output(b.product("ffn.down", b.product("ffn.up", y, 4*hidden), hidden))
	return b.Build()
}

func gpt3Row(what, input string, c decoderLayer) entry {
	return entry{Info{"gpt3-175b-" + what,
		fmt.Sprintf("one layer of GPT-3 175B, %s, its products and one operation per element for the softmax", what),
		"Brown et al., NeurIPS 2020; the operators that AccelForge's examples/workloads/gpt3_175B.yaml has", input},
		c.build}
}
