package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// translator is a configuration of the Transformer (Vaswani et al., NIPS 2017).
type translator struct {
	Source, Target       int64 // tokens read and written
	Layers, Hidden       int64
	Heads, FFN, Alphabet int64
}

// build makes the network of a configuration: the encoder, then the decoder token by token, unrolled, with keys and
// values of earlier tokens kept. The likeliest token is the next one's input (greedy decoding).
func (c translator) build(name string, opt Options) (*model.Graph, error) {
	r := newCell(attentive(name, opt, c.Hidden, c.Heads))
	t := transformer{Seq: c.Source, Hidden: c.Hidden, Heads: c.Heads, FFN: c.FFN, Activation: "Relu"}
	table := r.Param("embedding.weight", opt.DType, c.Alphabet, c.Hidden)
	x := r.Op("Gather", "source.embedding", model.Attr{}, table, r.Input("source", model.I32, opt.Batch, c.Source))
	x = r.scale("source.scale", x, "embedding.scale")
	x = r.Op("Add", "source.position", model.Attr{}, x, r.Const("positions", opt.DType, nil, c.Source, c.Hidden))
	for i := range c.Layers {
		x = r.layer(fmt.Sprintf("encoder.layer%d", i), x, unmasked, opt.Batch, t)
	}
	// Keys and values of the encoder's result, once for each layer.
	one := transformer{Seq: 1, Hidden: c.Hidden, Heads: c.Heads}
	source := make([][2]model.TensorID, c.Layers)
	for i := range source {
		att := fmt.Sprintf("decoder.layer%d.source", i)
		source[i] = [2]model.TensorID{r.project(att+".key", x, opt.Batch, t, []int64{0, 2, 3, 1}),
			r.project(att+".value", x, opt.Batch, t, []int64{0, 2, 1, 3})}
	}
	kept := make([][2]model.TensorID, c.Layers)
	next := r.Input("start", model.I32, opt.Batch, 1)
	d := &decoder{cell: r, batch: opt.Batch, c: c}
	for k := range c.Target {
		token := fmt.Sprintf("token%d", k)
		y := r.Op("Gather", token+".embedding", model.Attr{}, table, next)
		y = r.scale(token+".embedding.scale", y, "embedding.scale")
		y = r.Op("Add", token+".position", model.Attr{}, y, r.Const(token+".positions", opt.DType, nil, c.Hidden))
		for i := range c.Layers {
			layer := fmt.Sprintf("decoder.layer%d", i)
			step := fmt.Sprintf("%s.%s", layer, token)
			key := d.heads(layer+".self.key", step+".key", y, []int64{0, 2, 3, 1})
			value := d.heads(layer+".self.value", step+".value", y, []int64{0, 2, 1, 3})
			if k > 0 {
				key = r.Op("Concat", step+".keys", model.Attr{Axis: 3}, kept[i][0], key)
				value = r.Op("Concat", step+".values", model.Attr{Axis: 2}, kept[i][1], value)
			}
			kept[i] = [2]model.TensorID{key, value}
			z := d.attention(layer+".self", step+".self", y, key, value, one)
			y = d.normed(layer+".self", step+".self", y, z)
			z = d.attention(layer+".source", step+".source", y, source[i][0], source[i][1], one)
			y = d.normed(layer+".source", step+".source", y, z)
			z = d.dense(layer+".up", step+".up", y, c.FFN)
			z = r.Op("Relu", step+".relu", model.Attr{}, z)
			z = d.dense(layer+".down", step+".down", z, c.Hidden)
			y = d.normed(layer+".ffn", step+".ffn", y, z)
		}
		next = r.Op("ArgMax", token, model.Attr{Axes: []int64{2}}, d.dense("alphabet", token+".scores", y, c.Alphabet))
		r.Output(next)
	}
	return r.Build()
}

// decoder adds the steps of one: every token shares the weights of a layer.
type decoder struct {
	*cell
	batch int64
	c     translator
}

// shared is a weight of a layer, made where it is first used.
func (d *decoder) shared(name string, shape ...int64) model.TensorID {
	if _, ok := d.weight[name]; !ok {
		d.weight[name] = d.Param(name, d.dtype, shape...)
	}
	return d.weight[name]
}

func (d *decoder) dense(layer, step string, x model.TensorID, out int64) model.TensorID {
	y := d.Op("MatMul", step, model.Attr{}, x, d.shared(layer+".weight", d.features(x), out))
	return d.Op("Add", step+".add", model.Attr{}, y, d.shared(layer+".bias", out))
}

// heads is a linear layer on one position, cut into heads.
func (d *decoder) heads(layer, step string, x model.TensorID, perm []int64) model.TensorID {
	y := d.dense(layer, step, x, d.c.Hidden)
	y = d.Op("Reshape", step+".heads",
		model.Attr{Shape: []int64{d.batch, 1, d.c.Heads, d.c.Hidden / max(1, d.c.Heads)}}, y)
	return d.Op("Transpose", step+".transpose", model.Attr{Perm: perm}, y)
}

// attention of one position on keys and values.
func (d *decoder) attention(layer, step string, x, key, value model.TensorID, t transformer) model.TensorID {
	rows := []int64{0, 2, 1, 3}
	p := d.Op("MatMul", step+".scores", model.Attr{}, d.heads(layer+".query", step+".query", x, rows), key)
	if _, ok := d.weight[layer+".scale"]; !ok {
		d.weight[layer+".scale"] = d.Const(layer+".scale", d.dtype, nil, 1)
	}
	p = d.Op("Mul", step+".scale", model.Attr{}, p, d.weight[layer+".scale"])
	p = d.Op("Softmax", step+".softmax", model.Attr{Axis: 3}, p)
	y := d.Op("MatMul", step+".context", model.Attr{}, p, value)
	y = d.Op("Transpose", step+".context.transpose", model.Attr{Perm: rows}, y)
	y = d.Op("Reshape", step+".context.merge", model.Attr{Shape: []int64{d.batch, t.Seq, t.Hidden}}, y)
	return d.dense(layer+".output", step+".output", y, d.c.Hidden)
}

// normed adds a residual and normalises.
func (d *decoder) normed(layer, step string, x, y model.TensorID) model.TensorID {
	y = d.Op("Add", step+".residual", model.Attr{}, y, x)
	return d.Op("LayerNorm", step+".norm", model.Attr{Axis: 2}, y, d.shared(layer+".norm.scale", d.c.Hidden),
		d.shared(layer+".norm.bias", d.c.Hidden))
}

// hearing is a configuration of a Transformer encoder for speech.
type hearing struct {
	Frames, Mels               int64
	Layers, Hidden, Heads, FFN int64
}

// build makes the network of a configuration: two convolutions that leave a quarter of
// the frames, and encoder layers (Dong et al., Speech-Transformer, ICASSP 2018).
func (c hearing) build(name string, opt Options) (*model.Graph, error) {
	b := attentive(name, opt, c.Hidden, c.Heads)
	if c.Frames%4 != 0 || c.Mels%4 != 0 {
		b.Fail(fmt.Errorf("%d frames of %d features cannot be quartered", c.Frames, c.Mels))
	}
	t := transformer{Seq: c.Frames / 4, Hidden: c.Hidden, Heads: c.Heads, FFN: c.FFN, Activation: "Relu"}
	const channels = 64
	x := b.Input("frames", opt.DType, opt.Batch, 1, c.Frames, c.Mels)
	for i := range 2 {
		x = b.images().rectified(fmt.Sprintf("subsampling.conv%d", i+1), x, square(channels, 3, 2))
	}
	x = b.Op("Transpose", "subsampling.transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, x)
	x = b.Op("Reshape", "subsampling.flatten", model.Attr{Shape: []int64{opt.Batch, t.Seq, channels * (c.Mels / 4)}}, x)
	x = b.linear("subsampling.linear", x, c.Hidden)
	x = b.Op("Add", "position", model.Attr{}, x, b.Const("positions", opt.DType, nil, t.Seq, c.Hidden))
	x = b.norm("norm", x)
	for i := range c.Layers {
		x = b.layer(fmt.Sprintf("encoder.layer%d", i), x, unmasked, opt.Batch, t)
	}
	b.Output(x)
	return b.Build()
}
