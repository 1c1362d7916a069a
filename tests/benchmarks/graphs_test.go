package benchmarks

import (
	"fmt"
	"math/rand/v2"

	"github.com/dsasched/dsasched/model"
)

// A Family is a kind of graph that is known by its number of operators.
type Family struct {
	Name, Description string
	// block adds operators behind tensors of [batch, rows, features] and gives those that are read next.
	block func(b *builder, x []model.TensorID) []model.TensorID
}

// Families lists the kinds. Their tensors are small, so that what takes long is the number of operators.
func Families() []Family {
	return []Family{
		{"mlp", "residual multi-layer perceptron: two products and a residual per block", residual},
		{"transformer", "encoder layers of two heads", encoder},
		{"random", "32 operators side by side, each of which reads one or two random ones of the last rows", random},
	}
}

// Graph is a graph of the family with as many operators as asked for, or the few more that complete its last block.
func (f Family) Graph(operators int, batch int64) (*model.Graph, error) {
	b := &builder{Builder: model.NewBuilder(f.Name), batch: batch, random: rand.New(rand.NewPCG(1, 2))}
	x := []model.TensorID{b.Input("input", model.F16, batch, rows, features)}
	for b.operators < operators && b.Err() == nil {
		b.prefix = fmt.Sprintf("block%d.", b.blocks)
		b.blocks++
		x = f.block(b, x)
	}
	// What is left side by side becomes one result.
	for i := 1; i < len(x); i++ {
		x[0] = b.op("Add", fmt.Sprintf("sum%d", i), model.Attr{}, x[0], x[i])
	}
	b.Output(x[0])
	return b.Build()
}

const (
	rows, features = 64, 128
	heads          = 2
	wide           = 32 // operators side by side in random graphs
)

type builder struct {
	*model.Builder
	batch     int64
	blocks    int
	operators int
	prefix    string // of the block's names
	random    *rand.Rand
}

func (b *builder) op(kind model.Kind, name string, attr model.Attr, inputs ...model.TensorID) model.TensorID {
	b.operators++
	return b.Op(kind, b.prefix+name, attr, inputs...)
}

// weight is a constant of the present block.
func (b *builder) weight(name string, shape ...int64) model.TensorID {
	return b.Param(b.prefix+name, model.F16, shape...)
}

// linear is a product with a bias.
func (b *builder) linear(name string, x model.TensorID, in, out int64) model.TensorID {
	y := b.op("MatMul", name, model.Attr{}, x, b.weight(name+".weight", in, out))
	return b.op("Add", name+".add", model.Attr{}, y, b.weight(name+".bias", out))
}

func residual(b *builder, x []model.TensorID) []model.TensorID {
	y := b.op("Relu", "relu", model.Attr{}, b.linear("up", x[0], features, features))
	return []model.TensorID{b.op("Add", "residual", model.Attr{}, b.linear("down", y, features, features), x[0])}
}

func (b *builder) norm(name string, x model.TensorID) model.TensorID {
	return b.op("LayerNorm", name, model.Attr{Axis: 2}, x, b.weight(name+".scale", features),
		b.weight(name+".bias", features))
}

func encoder(b *builder, x []model.TensorID) []model.TensorID {
	project := func(name string, perm ...int64) model.TensorID {
		y := b.op("Reshape", name+".heads", model.Attr{Shape: []int64{b.batch, rows, heads, features / heads}},
			b.linear(name, x[0], features, features))
		return b.op("Transpose", name+".transpose", model.Attr{Perm: perm}, y)
	}
	p := b.op("MatMul", "scores", model.Attr{}, project("query", 0, 2, 1, 3), project("key", 0, 2, 3, 1))
	p = b.op("Softmax", "softmax", model.Attr{Axis: 3}, p)
	y := b.op("MatMul", "context", model.Attr{}, p, project("value", 0, 2, 1, 3))
	y = b.op("Transpose", "context.transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, y)
	y = b.op("Reshape", "context.merge", model.Attr{Shape: []int64{b.batch, rows, features}}, y)
	y = b.linear("output", y, features, features)
	z := b.norm("attention.norm", b.op("Add", "attention.residual", model.Attr{}, y, x[0]))
	y = b.op("Gelu", "gelu", model.Attr{}, b.linear("up", z, features, 4*features))
	y = b.op("Add", "residual", model.Attr{}, b.linear("down", y, 4*features, features), z)
	return []model.TensorID{b.norm("norm", y)}
}

// random keeps the last two rows of operators, one behind the other, to choose from. Those of
// the older row that nothing has read are read now, so that there is one result in the end.
func random(b *builder, x []model.TensorID) []model.TensorID {
	old := x[:len(x)-min(len(x), wide)]
	var row []model.TensorID
	for i := range wide {
		name := fmt.Sprint(i)
		first := x[b.random.IntN(len(x))]
		if i < len(old) {
			first = old[i]
		}
		switch b.random.IntN(4) {
		case 0:
			first = b.op("MatMul", name, model.Attr{}, first, b.weight(name+".weight", features, features))
		case 1:
			first = b.op("Relu", name, model.Attr{}, first)
		default:
			first = b.op("Add", name, model.Attr{}, first, x[b.random.IntN(len(x))])
		}
		row = append(row, first)
	}
	return append(append([]model.TensorID{}, x[len(old):]...), row...)
}
