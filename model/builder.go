package model

import "fmt"

// Builder builds a Graph operator by operator, inferring shapes. The first error sticks: later calls do nothing and
// Build returns it, so that model code needs no check after each line.
type Builder struct {
	g     Graph
	err   error
	used  map[string]int
	attrs map[string]*Attr // by key
	key   []byte
}

// NewBuilder starts a graph.
func NewBuilder(name string) *Builder {
	return &Builder{g: Graph{Name: name}, used: map[string]int{}, attrs: map[string]*Attr{}}
}

// Err returns the first error so far.
func (b *Builder) Err() error { return b.err }

// Tensor returns a tensor added before, to read its shape.
func (b *Builder) Tensor(id TensorID) *Tensor {
	if b.err != nil || int(id) >= len(b.g.Tensors) || id < 0 {
		return &Tensor{ID: -1}
	}
	return b.g.Tensors[id]
}

func (b *Builder) unique(name string) string {
	n := b.used[name]
	b.used[name] = n + 1
	if n == 0 {
		return name
	}
	return b.unique(fmt.Sprintf("%s.%d", name, n))
}

func (b *Builder) add(t Tensor) TensorID {
	if b.err != nil {
		return 0
	}
	if err := t.Shape.Check(); err != nil {
		b.err = fmt.Errorf("tensor %q: %w", t.Name, err)
		return 0
	}
	t.Name = b.unique(t.Name)
	t.ID = TensorID(len(b.g.Tensors))
	t.Producer = NoOp
	b.g.Tensors = append(b.g.Tensors, &t)
	return t.ID
}

// attr is the one copy of equal attributes.
func (b *Builder) attr(a Attr) *Attr {
	b.key = a.AppendKey(b.key[:0])
	same := b.attrs[string(b.key)]
	if same == nil {
		same = &a
		b.attrs[string(b.key)] = same
	}
	return same
}

// Input adds a network input.
func (b *Builder) Input(name string, dt DType, shape ...int64) TensorID {
	id := b.add(Tensor{Name: name, Shape: Shape(shape).Clone(), DType: dt, Role: Input})
	if b.err == nil {
		b.g.Inputs = append(b.g.Inputs, id)
	}
	return id
}

// Param adds a learned constant.
func (b *Builder) Param(name string, dt DType, shape ...int64) TensorID {
	return b.add(Tensor{Name: name, Shape: Shape(shape).Clone(), DType: dt, Role: Constant, Learned: true})
}

// Const adds a constant that is not learned. ints is its value if it is a small
// integer tensor that shape arithmetic needs, else nil.
func (b *Builder) Const(name string, dt DType, ints []int64, shape ...int64) TensorID {
	return b.add(Tensor{Name: name, Shape: Shape(shape).Clone(), DType: dt, Role: Constant, Ints: ints})
}

// Op adds an operator with one output and returns that tensor.
func (b *Builder) Op(kind Kind, name string, attr Attr, inputs ...TensorID) TensorID {
	out := b.OpN(kind, name, attr, inputs...)
	if b.err != nil {
		return 0
	}
	if len(out) != 1 {
		b.err = fmt.Errorf("operator %q (%s) has %d outputs, expected one", name, kind, len(out))
		return 0
	}
	return out[0]
}

// OpN adds an operator and returns its outputs. The output tensors are called
// after the operator, with a number behind if there are several.
func (b *Builder) OpN(kind Kind, name string, attr Attr, inputs ...TensorID) []TensorID {
	return b.OpNamed(kind, name, attr, inputs, nil)
}

// OpNamed is OpN with names for the output tensors.
func (b *Builder) OpNamed(kind Kind, name string, attr Attr, inputs []TensorID, names []string) []TensorID {
	if b.err != nil {
		return nil
	}
	op := &Op{Name: name, Kind: kind, Attr: b.attr(attr), Inputs: append([]TensorID(nil), inputs...)}
	in := make([]*Tensor, len(inputs))
	for i, id := range inputs {
		if id < 0 || int(id) >= len(b.g.Tensors) {
			b.err = fmt.Errorf("operator %q (%s) reads tensor %d, which does not exist", name, kind, id)
			return nil
		}
		in[i] = b.g.Tensors[id]
	}
	info, ok := kinds[kind]
	if !ok {
		b.err = fmt.Errorf("operator %q: unknown kind %q", name, kind)
		return nil
	}
	shapes, dts, err := info.apply(op, in)
	if err != nil {
		b.err = fmt.Errorf("operator %q (%s): %w", name, kind, err)
		return nil
	}
	for k := range shapes {
		n := name
		if len(shapes) > 1 {
			n = fmt.Sprintf("%s:%d", name, k)
		}
		if k < len(names) && names[k] != "" {
			n = names[k]
		}
		id := b.add(Tensor{Name: n, Shape: shapes[k], DType: dts[k], Role: Activation})
		if b.err != nil {
			return nil
		}
		op.Outputs = append(op.Outputs, id)
	}
	b.g.Ops = append(b.g.Ops, op)
	return op.Outputs
}

// Output marks a tensor as a result of the network.
func (b *Builder) Output(ids ...TensorID) {
	if b.err == nil {
		b.g.Outputs = append(b.g.Outputs, ids...)
	}
}

// Fail records an error of the caller's own, unless there is one already.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Build finishes and validates the graph.
func (b *Builder) Build() (*Graph, error) {
	if b.err != nil {
		return nil, fmt.Errorf("graph %q: %w", b.g.Name, b.err)
	}
	g := b.g
	if err := g.Finish(); err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	if err := g.Validate(); err != nil {
		return nil, err
	}
	return &g, nil
}
