package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// selective is a configuration of Mamba (Gu and Dao, 2023, section 3).
type selective struct {
	Layers, Hidden, Inner, State, Rank, Kernel int64
	Vocabulary                                 int64 // 0: one block alone
	Tokens                                     int64
}

var mamba130m = selective{Layers: 24, Hidden: 768, Inner: 1536, State: 16, Rank: 48, Kernel: 4,
	Vocabulary: 50280, Tokens: 512}
var mambaBlock = selective{Hidden: 768, Inner: 1536, State: 16, Rank: 48, Kernel: 4, Tokens: 512}

// build is all layers with embeddings, whose matrix is also that of the vocabulary, or one block.
func (c selective) build(name string, opt Options) (*model.Graph, error) {
	m := &mamba{&sequences{model.NewBuilder(name), opt.DType}, c, opt.Batch}
	if c.Vocabulary == 0 {
		m.Output(m.block("block", m.Input("x", m.dtype, m.batch, c.Tokens, c.Hidden)))
		return m.Build()
	}
	table := m.Param("embeddings.weight", m.dtype, c.Vocabulary, c.Hidden)
	x := m.Op("Gather", "embeddings", model.Attr{}, table, m.Input("input_ids", model.I32, m.batch, c.Tokens))
	for i := range c.Layers {
		layer := fmt.Sprintf("layer%d", i)
		x = m.Op("Add", layer+".residual", model.Attr{}, m.block(layer, x), x)
	}
	x = m.root("norm", x)
	x = m.Op("Reshape", "head.rows", model.Attr{Shape: []int64{m.batch * c.Tokens, c.Hidden}}, x)
	m.Output(m.Op("Gemm", "head.scores", model.Attr{TransB: true}, x, table))
	return m.Build()
}

type mamba struct {
	*sequences
	selective
	batch int64
}

func (m *mamba) split(name string, x model.TensorID, parts ...int64) []model.TensorID {
	out := m.OpN("Split", name, model.Attr{Axis: 2, Splits: parts}, x)
	if m.Err() != nil {
		return make([]model.TensorID, len(parts))
	}
	return out
}

// block is a gated convolution along the tokens and the selective scan behind it.
func (m *mamba) block(name string, x model.TensorID) model.TensorID {
	y := m.product(name+".in", m.root(name+".norm", x), 2*m.Inner)
	both := m.split(name+".halves", y, m.Inner, m.Inner)
	u := m.Op("Transpose", name+".conv.columns", model.Attr{Perm: []int64{0, 2, 1}}, both[0])
	u = m.Op("Conv", name+".conv", model.Attr{Strides: []int64{1}, Dilations: []int64{1},
		Pads: []int64{m.Kernel - 1, 0}, Group: m.Inner},
		u, m.Param(name+".conv.weight", m.dtype, m.Inner, 1, m.Kernel), m.Param(name+".conv.bias", m.dtype, m.Inner))
	u = m.Op("Transpose", name+".conv.rows", model.Attr{Perm: []int64{0, 2, 1}},
		m.Op("Silu", name+".conv.silu", model.Attr{}, u))
	y = m.Op("Mul", name+".gated", model.Attr{}, m.scan(name+".scan", u),
		m.Op("Silu", name+".gate", model.Attr{}, both[1]))
	return m.product(name+".out", y, m.Hidden)
}

// scan is h' = exp(step A) h + step B u, y = C h + D u. All tokens at once: the state is a running sum of what enters
// it, divided by what its start has decayed to since, and times that (Heinsen, 2023).
func (m *mamba) scan(name string, u model.TensorID) model.TensorID {
	parts := m.split(name+".parts", m.product(name+".select", u, m.Rank+2*m.State), m.Rank, m.State, m.State)
	step := m.Op("Softplus", name+".step.softplus", model.Attr{}, m.linear(name+".step", parts[0], m.Inner))
	wide := func(what string, x model.TensorID) model.TensorID {
		return m.Op("Reshape", name+what, model.Attr{Shape: []int64{m.batch, m.Tokens, m.Inner, 1}}, x)
	}
	long := func(what string, x model.TensorID) model.TensorID {
		return m.Op("Reshape", name+what, model.Attr{Shape: []int64{m.batch, m.Tokens, 1, m.State}}, x)
	}
	a := m.Op("Neg", name+".a", model.Attr{},
		m.Op("Exp", name+".a.exp", model.Attr{}, m.Param(name+".a.log", m.dtype, m.Inner, m.State)))
	decay := m.Op("CumSum", name+".decay", model.Attr{Axis: 1},
		m.Op("Mul", name+".step.a", model.Attr{}, wide(".step.wide", step), a))
	enter := m.Op("Mul", name+".step.u", model.Attr{}, step, u)
	enter = m.Op("Mul", name+".enter", model.Attr{}, wide(".step.u.wide", enter), long(".b", parts[1]))
	since := m.Op("Exp", name+".since", model.Attr{}, decay)
	sum := m.Op("CumSum", name+".sum", model.Attr{Axis: 1}, m.Op("Div", name+".enter.since", model.Attr{}, enter, since))
	h := m.Op("Mul", name+".state", model.Attr{}, sum, since)
	y := m.Op("ReduceSum", name+".read", model.Attr{Axes: []int64{3}},
		m.Op("Mul", name+".read.c", model.Attr{}, h, long(".c", parts[2])))
	return m.Op("Add", name+".y", model.Attr{}, y,
		m.Op("Mul", name+".d", model.Attr{}, u, m.Param(name+".d.weight", m.dtype, m.Inner)))
}
