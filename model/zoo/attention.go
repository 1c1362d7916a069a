package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// Attention is one attention of all tokens with each other, without projections: queries, keys and values are
// inputs. KeyHeads are shared by equal groups of the heads; 0: each has its own.
type Attention struct {
	Heads, KeyHeads, Tokens, Width int64
	Causal                         bool
	// Divided: scores are divided by their scale, and not multiplied.
	Divided bool
	// Packed: queries, keys and values are parts of one input, as PyTorch has them, which copies them apart; scores that
	// are not divided are those of keys that are scaled.
	Packed bool
}

// Build is a graph of the operators one by one, as networks have them.
func (a Attention) Build(opt Options) (*model.Graph, error) {
	b := &sequences{model.NewBuilder(fmt.Sprintf("attention-%dx%dx%d", a.Heads, a.Tokens, a.Width)), opt.DType}
	shared := int64(1)
	if a.KeyHeads > 0 {
		if shared = a.Heads / a.KeyHeads; shared*a.KeyHeads != a.Heads {
			b.Fail(fmt.Errorf("%d heads do not divide over %d of keys", a.Heads, a.KeyHeads))
		}
	}
	in := func(name string, heads int64) model.TensorID {
		return b.Input(name, opt.DType, opt.Batch, heads, a.Tokens, a.Width)
	}
	reshape := func(name string, x model.TensorID, heads, rows, columns int64) model.TensorID {
		if shared == 1 {
			return x
		}
		return b.Op("Reshape", name, model.Attr{Shape: []int64{opt.Batch, heads, rows, columns}}, x)
	}
	own := a.Heads / max(1, shared)
	var q, k, v model.TensorID
	scale := b.Const("scale", b.dtype, nil, 1)
	if a.Packed {
		all := b.Input("qkv", opt.DType, opt.Batch, a.Heads+2*own, a.Tokens, a.Width)
		part := func(name string, from, heads int64) model.TensorID {
			return b.Op("Slice", name, model.Attr{Starts: []int64{0, from, 0, 0}, Steps: []int64{1, 1, 1, 1},
				Shape: []int64{opt.Batch, heads, a.Tokens, a.Width}}, all)
		}
		q, k, v = part("query", 0, a.Heads), part("key", a.Heads, own), part("value", a.Heads+own, own)
		if !a.Divided {
			k = b.Op("Mul", "key.scale", model.Attr{}, k, scale)
		}
	} else {
		q, k, v = in("query", a.Heads), in("key", own), in("value", own)
	}
	q = reshape("query.group", q, own, shared*a.Tokens, a.Width)
	p := b.Op("MatMul", "scores", model.Attr{}, q,
		b.Op("Transpose", "key.columns", model.Attr{Perm: []int64{0, 1, 3, 2}}, k))
	if a.Divided {
		p = b.Op("Div", "scores.scale", model.Attr{}, p, scale)
	} else if !a.Packed {
		p = b.Op("Mul", "scores.scale", model.Attr{}, p, scale)
	}
	p = reshape("scores.apart", p, a.Heads, a.Tokens, a.Tokens)
	if a.Causal {
		mask := b.Const("mask", opt.DType, nil, a.Tokens, a.Tokens)
		b.Tensor(mask).Causal = true
		p = b.Op("Add", "scores.mask", model.Attr{}, p, mask)
	}
	p = reshape("scores.group", b.Op("Softmax", "softmax", model.Attr{Axis: 3}, p), own, shared*a.Tokens, a.Tokens)
	b.Output(reshape("context.apart", b.Op("MatMul", "context", model.Attr{}, p, v), a.Heads, a.Tokens, a.Width))
	return b.Build()
}
