package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// AStitch (ASPLOS 2022) measures CRNN, DIEN, a Transformer and a speech encoder, without their configurations. Those
// here are the published ones of the networks where there is one, and assumed otherwise; each row of the table says
// which. Recurrent layers are unrolled, step by step, as a compiler without loops sees them.

// cell adds the steps of recurrent layers. All steps of a layer share its weights.
type cell struct {
	*sequences
	weight, bias map[string]model.TensorID
}

func newCell(b *sequences) *cell {
	return &cell{b, map[string]model.TensorID{}, map[string]model.TensorID{}}
}

// gates multiplies [x, h] with the weights of a layer, made where they are first used.
func (c *cell) gates(layer, step string, x, h model.TensorID, out int64) model.TensorID {
	xh := c.Op("Concat", step+".concat", model.Attr{Axis: 1}, x, h)
	if _, ok := c.weight[layer]; !ok {
		c.weight[layer] = c.Param(layer+".weight", c.dtype, c.features(xh), out)
		c.bias[layer] = c.Param(layer+".bias", c.dtype, out)
	}
	y := c.Op("MatMul", step, model.Attr{}, xh, c.weight[layer])
	return c.Op("Add", step+".add", model.Attr{}, y, c.bias[layer])
}

// parts cuts x into n equal parts along its last dimension.
func (c *cell) parts(name string, x model.TensorID, n int) []model.TensorID {
	splits := make([]int64, n)
	for i := range splits {
		splits[i] = c.features(x) / int64(n)
	}
	out := c.OpN("Split", name, model.Attr{Axis: 1, Splits: splits}, x)
	if c.Err() != nil {
		return make([]model.TensorID, n)
	}
	return out
}

// lstm is a step of a long short-term memory (TensorFlow's BasicLSTMCell).
func (c *cell) lstm(layer, step string, x, h, memory model.TensorID, hidden int64) (newH, newMemory model.TensorID) {
	g := c.parts(step+".split", c.gates(layer, step, x, h, 4*hidden), 4)
	in := c.Op("Sigmoid", step+".input", model.Attr{}, g[0])
	fresh := c.Op("Tanh", step+".candidate", model.Attr{}, g[1])
	f := c.Op("Add", step+".forget.add", model.Attr{}, g[2], c.one(layer+".forget"))
	forget := c.Op("Sigmoid", step+".forget", model.Attr{}, f)
	out := c.Op("Sigmoid", step+".output", model.Attr{}, g[3])
	kept := c.Op("Mul", step+".kept", model.Attr{}, memory, forget)
	added := c.Op("Mul", step+".added", model.Attr{}, in, fresh)
	newMemory = c.Op("Add", step+".memory", model.Attr{}, kept, added)
	return c.Op("Mul", step+".hidden", model.Attr{}, out, c.Op("Tanh", step+".tanh", model.Attr{}, newMemory)), newMemory
}

// gru is a step of a gated recurrent unit; with attention, a number per sequence, one
// whose update gate it scales (DIEN's AUGRU).
func (c *cell) gru(layer, step string, x, h model.TensorID, hidden int64, attention *model.TensorID) model.TensorID {
	g := c.Op("Sigmoid", step+".gates", model.Attr{}, c.gates(layer+".gates", step+".gate", x, h, 2*hidden))
	p := c.parts(step+".split", g, 2)
	reset := c.Op("Mul", step+".reset", model.Attr{}, p[0], h)
	fresh := c.Op("Tanh", step+".candidate", model.Attr{}, c.gates(layer+".candidate", step+".linear", x, reset, hidden))
	update := p[1]
	if attention != nil {
		rest := c.Op("Sub", step+".attention.rest", model.Attr{}, c.one(layer+".attention"), *attention)
		update = c.Op("Mul", step+".attention", model.Attr{}, rest, update)
	}
	kept := c.Op("Mul", step+".kept", model.Attr{}, update, h)
	share := c.Op("Sub", step+".rest", model.Attr{}, c.one(layer), update)
	added := c.Op("Mul", step+".added", model.Attr{}, share, fresh)
	return c.Op("Add", step+".hidden", model.Attr{}, kept, added)
}

// one is the constant 1 of a layer.
func (c *cell) one(layer string) model.TensorID {
	name := layer + ".one"
	if _, ok := c.weight[name]; !ok {
		c.weight[name] = c.Const(name, c.dtype, nil, 1)
	}
	return c.weight[name]
}

// steps cuts [batch, position, feature] into positions.
func (c *cell) steps(name string, x model.TensorID, batch, n int64) []model.TensorID {
	f := c.features(x)
	out := make([]model.TensorID, n)
	for i := range out {
		step := fmt.Sprintf("%s%d", name, i)
		y := c.Op("Slice", step+".slice", model.Attr{Starts: []int64{0, int64(i), 0}, Steps: []int64{1, 1, 1},
			Shape: []int64{batch, 1, f}}, x)
		out[i] = c.Op("Reshape", step, model.Attr{Shape: []int64{batch, f}}, y)
	}
	return out
}

// stack puts positions together to [batch, position, feature].
func (c *cell) stack(name string, steps []model.TensorID, batch int64) model.TensorID {
	parts := make([]model.TensorID, len(steps))
	for i, x := range steps {
		parts[i] = c.Op("Reshape", fmt.Sprintf("%s%d", name, i), model.Attr{Shape: []int64{batch, 1, c.features(x)}}, x)
	}
	return c.Op("Concat", name, model.Attr{Axis: 1}, parts...)
}

// reader is a configuration of the CRNN family (Shi et al., TPAMI 2017, Table 1).
type reader struct {
	Height, Width   int64 // of the image, of one channel
	Hidden, Classes int64
}

// build makes the network of a configuration: seven convolutions that leave a row of
// vectors, two LSTM layers in both directions, and scores per position.
func (c reader) build(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 1, c.Height, c.Width)
	for i, l := range []struct {
		out, kernel, pad int64
		norm             bool
		pool             [2]int64 // rows, columns; 0 is none
	}{
		{64, 3, 1, false, [2]int64{2, 2}}, {128, 3, 1, false, [2]int64{2, 2}}, {256, 3, 1, false, [2]int64{}},
		{256, 3, 1, false, [2]int64{2, 1}},
		{512, 3, 1, true, [2]int64{}}, {512, 3, 1, true, [2]int64{2, 1}}, {512, 2, 0, false, [2]int64{}},
	} {
		conv := fmt.Sprintf("conv%d", i+1)
		w := square(l.out, l.kernel, 1)
		w.Pads = around(l.pad, l.pad)
		x = b.biased(conv, x, w)
		if l.norm {
			x = b.norm(conv+".bn", x)
		}
		x = b.relu(conv+".relu", x)
		if l.pool[0] > 0 {
			x = b.Op("MaxPool", conv+".pool",
				model.Attr{Kernel: []int64{l.pool[0], l.pool[1]}, Strides: []int64{l.pool[0], l.pool[1]},
					Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}}, x)
		}
	}
	if b.Err() != nil {
		return b.Build()
	}
	s := b.Tensor(x).Shape
	if s[2] != 1 {
		b.Fail(fmt.Errorf("an image of %d rows leaves %d, expected one", c.Height, s[2]))
	}
	r := newCell(&sequences{b.Builder, opt.DType})
	x = r.Op("Reshape", "sequence", model.Attr{Shape: []int64{opt.Batch, s[1], s[3]}}, x)
	x = r.Op("Transpose", "sequence.transpose", model.Attr{Perm: []int64{0, 2, 1}}, x)
	zero := r.Input("initial_state", opt.DType, opt.Batch, c.Hidden)
	for l := range 2 {
		layer := fmt.Sprintf("lstm%d", l+1)
		steps := r.steps(layer+".step", x, opt.Batch, s[3])
		both := make([]model.TensorID, len(steps))
		for _, back := range []bool{false, true} {
			way, h, memory := ".forward", zero, zero
			if back {
				way = ".backward"
			}
			for k := range steps {
				i := k
				if back {
					i = len(steps) - 1 - k
				}
				h, memory = r.lstm(layer+way, fmt.Sprintf("%s%s%d", layer, way, i), steps[i], h, memory, c.Hidden)
				if back {
					both[i] = r.Op("Concat", fmt.Sprintf("%s.both%d", layer, i), model.Attr{Axis: 1}, both[i], h)
				} else {
					both[i] = h
				}
			}
		}
		x = r.stack(layer+".result", both, opt.Batch)
	}
	b.Output(r.Op("Softmax", "result", model.Attr{Axis: 2}, r.linear("scores", x, c.Classes)))
	return b.Build()
}

// interests is a configuration of the DIEN family (Zhou et al., AAAI 2019), with the
// sizes of the authors' implementation.
type interests struct {
	History                  int64 // of a user's items
	Users, Items, Categories int64
	Embedding                int64 // features of each
}

// build makes the network of a configuration: look-ups, a GRU over the history, the attention of the target on its
// states, a GRU whose update gate that scales, and a perceptron.
func (c interests) build(name string, opt Options) (*model.Graph, error) {
	r := newCell(&sequences{model.NewBuilder(name), opt.DType})
	width := 2 * c.Embedding // an item with its category
	items := r.Param("items.weight", opt.DType, c.Items, c.Embedding)
	categories := r.Param("categories.weight", opt.DType, c.Categories, c.Embedding)
	user := r.Op("Gather", "user", model.Attr{}, r.Param("users.weight", opt.DType, c.Users, c.Embedding),
		r.Input("user_id", model.I32, opt.Batch))
	embed := func(what string, shape ...int64) model.TensorID {
		x := r.Op("Gather", what+".item", model.Attr{}, items, r.Input(what+"_item", model.I32, shape...))
		y := r.Op("Gather", what+".category", model.Attr{}, categories, r.Input(what+"_category", model.I32, shape...))
		return r.Op("Concat", what, model.Attr{Axis: int64(len(shape))}, x, y)
	}
	target := embed("target", opt.Batch)
	history := embed("history", opt.Batch, c.History)

	zero := r.Input("initial_state", opt.DType, opt.Batch, width)
	h := zero
	var states []model.TensorID
	for i, x := range r.steps("history", history, opt.Batch, c.History) {
		h = r.gru("interest", fmt.Sprintf("interest%d", i), x, h, width, nil)
		states = append(states, h)
	}
	all := r.stack("interests", states, opt.Batch)

	t := r.Op("Reshape", "attention.target", model.Attr{Shape: []int64{opt.Batch, 1, width}}, target)
	t = r.Op("Expand", "attention.expand", model.Attr{Shape: []int64{opt.Batch, c.History, width}}, t)
	both := r.Op("Concat", "attention.concat", model.Attr{Axis: 2}, t, all,
		r.Op("Sub", "attention.difference", model.Attr{}, t, all), r.Op("Mul", "attention.product", model.Attr{}, t, all))
	a := r.Op("Sigmoid", "attention.sigmoid1", model.Attr{}, r.linear("attention.fc1", both, 80))
	a = r.Op("Sigmoid", "attention.sigmoid2", model.Attr{}, r.linear("attention.fc2", a, 40))
	a = r.Op("Softmax", "attention.softmax", model.Attr{Axis: 1}, r.linear("attention.fc3", a, 1))
	weights := r.steps("attention", a, opt.Batch, c.History)

	h = zero
	for i := range states {
		h = r.gru("evolution", fmt.Sprintf("evolution%d", i), states[i], h, width, &weights[i])
	}
	sum := r.Op("ReduceSum", "history.sum", model.Attr{Axes: []int64{1}}, history)
	x := r.Op("Concat", "features", model.Attr{Axis: 1}, user, target, sum,
		r.Op("Mul", "target.sum", model.Attr{}, target, sum), h)
	for i, n := range []int64{200, 80} {
		layer := fmt.Sprintf("fc%d", i+1)
		x = r.linear(layer, x, n)
		x = r.Op("PRelu", layer+".prelu", model.Attr{}, x, r.Param(layer+".prelu.slope", opt.DType, n))
	}
	r.Output(r.Op("Softmax", "result", model.Attr{Axis: 1}, r.linear("fc3", x, 2)))
	return r.Build()
}
