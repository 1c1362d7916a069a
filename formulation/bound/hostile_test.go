package bound_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/simplify"
)

// pick is one of some choices.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// A grown tensor has so many elements along each dimension, times the batch along one (-1: none).
type grown struct {
	id    model.TensorID
	shape []int64
	batch int
	dt    model.DType
	role  model.Role
	read  bool
}

// at is the shape for a batch.
func (x *grown) at(batch int64) []int64 {
	s := slices.Clone(x.shape)
	if x.batch >= 0 {
		s[x.batch] *= batch
	}
	return s
}

// A grower builds a hostile network at one batch size. What it draws does not depend on that.
type grower struct {
	*rand.Rand
	b     *model.Builder
	n     int64
	pool  []*grown
	types []model.DType
	sizes []int64
	count int
	most  model.Kind    // of which a third of the operators are; empty: any
	also  []model.DType // besides those that are drawn
}

// hostile is a network of operators of all kinds and arities, with shared and late operands, results that nobody
// needs, outputs that are inputs or listed twice, types side by side, constants that grow, and gaps.
func hostile(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("hostile-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		g := &grower{Rand: rand.New(rand.NewPCG(seed, 20)), b: model.NewBuilder("hostile"), n: batch}
		g.grow()
		graph, err := g.b.Build()
		if err != nil || seed%2 == 0 {
			return graph, err
		}
		simple, _, err := simplify.Run(graph)
		return simple, err
	}}
}

// mostly makes hostile networks of which a third of the operators are of a kind.
func mostly(kind model.Kind) func(seed uint64) network.Network {
	return func(seed uint64) network.Network {
		return network.Network{Name: fmt.Sprintf("mostly-%s-%d", kind, seed), Graph: func(batch int64) (*model.Graph, error) {
			g := &grower{Rand: rand.New(rand.NewPCG(seed, 20)), b: model.NewBuilder("mostly"), n: batch, most: kind}
			if kind == "Dequantize" {
				g.also = []model.DType{model.I8, model.U4, model.F4, model.I2}
			}
			g.grow()
			return g.b.Build()
		}}
	}
}

// recurrent is an LSTM, step by step, with weights that all steps share, dequantised or not.
func recurrent(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("recurrent-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		r := rand.New(rand.NewPCG(seed, 21))
		b := model.NewBuilder("recurrent")
		steps, wide, hidden := 1+r.Int64N(8), pick(r, int64(3), 16, 64, 200), pick(r, int64(2), 8, 32, 130)
		codes, all := pick(r, model.F16, model.F16, model.I8, model.U4, model.I2), r.IntN(2) == 0
		weight := func(name string, rows int64) model.TensorID {
			w := b.Param(name, codes, rows, 4*hidden)
			if codes != model.F16 {
				w = b.Op("Dequantize", name+".values", model.Attr{Axis: int64(model.F16)}, w, b.Param(name+".scale", model.F16))
			}
			return w
		}
		w, u, bias := weight("w", wide), weight("u", hidden), b.Param("bias", model.F16, 4*hidden)
		x := b.Input("x", model.F16, batch, steps, wide)
		h, c := b.Input("h", model.F16, batch, hidden), b.Input("c", model.F16, batch, hidden)
		for i := range steps {
			op := func(kind model.Kind, name string, a model.Attr, in ...model.TensorID) model.TensorID {
				return b.Op(kind, fmt.Sprint("step", i, ".", name), a, in...)
			}
			y := op("Slice", "in", model.SliceOf(b.Tensor(x).Shape, 1, i, i+1), x)
			y = op("Reshape", "row", model.Attr{Shape: []int64{batch, wide}}, y)
			y = op("Add", "sum", model.Attr{}, op("Gemm", "input", model.Attr{}, y, w, bias),
				op("MatMul", "state", model.Attr{}, h, u))
			gates := b.OpN("Split", fmt.Sprint("step", i, ".gates"), model.Attr{Axis: 1,
				Splits: []int64{hidden, hidden, hidden, hidden}}, y)
			c = op("Add", "cell", model.Attr{}, op("Mul", "kept", model.Attr{},
				op("Sigmoid", "forget", model.Attr{}, gates[1]), c),
				op("Mul", "new", model.Attr{}, op("Sigmoid", "enter", model.Attr{}, gates[0]), op("Tanh", "value", model.Attr{},
					gates[2])))
			leave, out := op("Sigmoid", "leave", model.Attr{}, gates[3]), op("Tanh", "out", model.Attr{}, c)
			h = op("Mul", "hidden", model.Attr{}, leave, out)
			if all {
				b.Output(h)
			}
		}
		if !all {
			b.Output(h, c)
		}
		return b.Build()
	}}
}

// windows is an attention of which queries see a window of keys, in parts with the keys that any of theirs sees, and a
// causal mask in each.
func windows(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("windows-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		r := rand.New(rand.NewPCG(seed, 22))
		b := model.NewBuilder("windows")
		heads, each, depth := 1+r.Int64N(4), pick(r, int64(1), 3, 16, 40), pick(r, int64(8), 16, 64)
		parts, window, past := 1+r.Int64N(5), 1+r.Int64N(60), pick(r, int64(0), 0, 7, 100)
		rows, merge := each*parts, r.IntN(2) == 0
		q, k := b.Input("q", model.F16, batch, heads, rows, depth), b.Input("k", model.F16, batch, heads, rows+past, depth)
		v := b.Input("v", model.F16, batch, heads, rows+past, depth)
		slice := func(name string, x model.TensorID, lo, hi int64) model.TensorID {
			s := b.Tensor(x).Shape.Clone()
			if hi-lo == s[2] {
				return x
			}
			s[2] = hi - lo
			return b.Op("Slice", name, model.Attr{Starts: []int64{0, 0, lo, 0}, Steps: []int64{1, 1, 1, 1}, Shape: s}, x)
		}
		var list []model.TensorID
		for i := range parts {
			name := func(s string) string { return fmt.Sprint("part", i, ".", s) }
			lo, hi := max(0, past+i*each+1-window), past+(i+1)*each
			keys := b.Op("Transpose", name("columns"), model.Attr{Perm: []int64{0, 1, 3, 2}}, slice(name("k"), k, lo, hi))
			y := b.Op("MatMul", name("scores"), model.Attr{}, slice(name("q"), q, i*each, (i+1)*each), keys)
			mask := b.Const(name("mask"), model.F16, nil, each, hi-lo)
			b.Tensor(mask).Causal = true
			y = b.Op("Softmax", name("softmax"), model.Attr{Axis: 3}, b.Op("Add", name("masked"), model.Attr{}, y, mask))
			list = append(list, b.Op("MatMul", name("context"), model.Attr{}, y, slice(name("v"), v, lo, hi)))
		}
		y := list[0]
		if len(list) > 1 {
			y = b.Op("Concat", "joined", model.Attr{Axis: 2}, list...)
		}
		if merge {
			y = b.Op("Transpose", "turned", model.Attr{Perm: []int64{0, 2, 1, 3}}, y)
			y = b.Op("Reshape", "merged", model.Attr{Shape: []int64{batch, rows, heads * depth}}, y)
			y = b.Op("MatMul", "product", model.Attr{}, y, b.Param("w", model.F16, heads*depth, 64))
		}
		b.Output(y)
		return b.Build()
	}}
}

// shifted is a hostile network with products behind a relative shift beside the rest.
func shifted(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("shifted-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		g := &grower{Rand: rand.New(rand.NewPCG(seed, 20)), b: model.NewBuilder("shifted"), n: batch}
		g.shift()
		g.grow()
		return g.b.Build()
	}}
}

// shift adds products of queries and distances, of which mostly each row is shifted by one more than that before it.
func (g *grower) shift() {
	heads, n, depth := 1+g.Int64N(3), pick(g.Rand, int64(2), 5, 16, 40), pick(g.Rand, int64(4), 16, 64)
	g.count++
	x := &grown{id: g.b.Input("queries", model.F16, g.n, heads, n, depth), dt: model.F16, role: model.Input,
		shape: []int64{1, heads, n, depth}}
	add := func(kind model.Kind, attr func(batch int64) model.Attr, in ...*grown) {
		x = g.try(kind, attr, append([]*grown{x}, in...)...)[0]
	}
	reshape := func(rows, columns int64) {
		add("Reshape", func(batch int64) model.Attr { return model.Attr{Shape: []int64{batch, heads, rows, columns}} })
	}
	slice := func(from, rows, columns int64) {
		add("Slice", func(batch int64) model.Attr {
			return model.Attr{Starts: []int64{0, 0, from, 0}, Steps: []int64{1, 1, 1, 1},
				Shape: []int64{batch, heads, rows, columns}}
		})
	}
	add("MatMul", nil, g.constant(model.F16, -1, heads, depth, 2*n-1))
	if g.IntN(4) > 0 {
		add("Pad", fixed(model.Attr{Pads: []int64{0, 0, 0, 1, 0, 0, 0, 0}}))
		reshape(2*n, n)
		slice(1, 2*n-1, n)
		reshape(n, 2*n-1)
		slice(0, n, n)
	}
	if g.IntN(2) == 0 {
		add("Softmax", fixed(model.Attr{Axis: 3}))
	}
	add("MatMul", nil, g.constant(model.F16, -1, x.shape[3], pick(g.Rand, int64(8), 64, 300)))
}

func (g *grower) grow() {
	all := []model.DType{model.F16, model.F32, model.F64, model.BF16, model.I8, model.U8, model.I16, model.I32, model.I64,
		model.Bool, model.F8}
	for g.types = []model.DType{model.F16}; g.IntN(2) == 0; {
		g.types = append(g.types, pick(g.Rand, all...))
	}
	g.types = append(g.types, g.also...)
	g.sizes = pick(g.Rand, []int64{1, 2, 3, 4}, []int64{1, 3, 8, 17}, []int64{1, 4, 8, 16, 32, 64}, []int64{2, 8, 57,
		320}, []int64{1, 5, 64, 512},
		[]int64{8, 16, 64, 1024}, []int64{16, 128})
	for range 1 + g.IntN(3) {
		g.input(1 + g.IntN(4))
	}
	if g.IntN(6) == 0 { // queries
		x := &grown{dt: g.types[0], role: model.Input, shape: []int64{1, pick(g.Rand, 1, 2, 4, g.size()), g.size(), g.size()}}
		if g.count++; fits(x.shape) {
			x.id = g.b.Input("queries", x.dt, x.at(g.n)...)
			g.pool = append(g.pool, x)
			g.attention(x)
		}
	}
	if g.IntN(8) == 0 {
		g.scan()
	}
	kinds := model.Kinds()
	favourite := pick(g.Rand, kinds...)
	if g.most != "" {
		favourite = g.most
	}
	for made, most := 0, 1+g.IntN(pick(g.Rand, 3, 8, 16)); made < most && g.count < 400; g.count++ {
		kind := pick(g.Rand, kinds...)
		switch g.IntN(6) {
		case 0, 1:
			kind = pick[model.Kind](g.Rand, "MatMul", "Gemm", "Conv", "MatMul", "Gemm", "Softmax", "Relu", "Add", "Transpose",
				"Pad", "Slice", "Split", "Concat", "Reshape", "Attention")
		case 2:
			kind = favourite
		}
		before := len(g.pool)
		if g.propose(kind); len(g.pool) == before {
			continue
		}
		made++
		if g.IntN(6) == 0 { // some light ones in a row
			for range g.IntN(12) {
				g.try(pick[model.Kind](g.Rand, "Tanh", "Relu", "Neg", "Gelu"), nil, g.pool[len(g.pool)-1])
			}
		}
	}
	if g.IntN(5) == 0 { // few rows and large weights behind long work
		x := g.pool[len(g.pool)-1]
		for d, n := range x.shape {
			if d != x.batch && n > 1 && d < len(x.shape)-1 {
				if y := g.try("ReduceMax", fixed(model.Attr{Axes: []int64{int64(d)}, KeepDims: true}), x); y != nil {
					x = y[0]
				}
			}
		}
		for range 1 + g.IntN(4) {
			if len(x.shape) > 0 {
				if y := g.try("MatMul", nil, x, g.constant(x.dt, -1, x.shape[len(x.shape)-1], pick(g.Rand, int64(64), 300,
					1024))); y != nil {
					x = y[0]
				}
			}
		}
	}
	// Results: the last one, mostly what nobody reads, and some of the rest.
	var list []model.TensorID
	loose := g.IntN(3) > 0
	for k, x := range g.pool {
		if k == len(g.pool)-1 || loose && x.role == model.Activation && !x.read || g.IntN(12) == 0 {
			for list = append(list, x.id); g.IntN(10) == 0; {
				list = append(list, x.id)
			}
		}
	}
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	g.b.Output(list...)
}

// size is an extent.
func (g *grower) size() int64 { return pick(g.Rand, g.sizes...) }

// fits reports whether a tensor is not too large for many of them.
func fits(shape []int64) bool { return model.Shape(shape).Elements() <= 1<<18 }

func (g *grower) input(rank int) *grown {
	x := &grown{dt: pick(g.Rand, g.types...), role: model.Input}
	for range rank {
		x.shape = append(x.shape, g.size())
	}
	switch g.IntN(10) {
	case 0:
		x.batch = -1
	case 1:
		x.batch = g.IntN(rank)
	}
	if x.batch >= 0 && g.IntN(3) > 0 {
		x.shape[x.batch] = 1
	}
	for d := range x.shape {
		if !fits(x.shape) {
			x.shape[d] = 1
		}
	}
	g.count++
	x.id = g.b.Input(fmt.Sprintf("in%d", g.count), x.dt, x.at(g.n)...)
	g.pool = append(g.pool, x)
	return x
}

// constant is a new one. One in sixteen is computed, one in sixteen an input.
func (g *grower) constant(dt model.DType, batch int, shape ...int64) *grown {
	x := &grown{shape: shape, batch: batch, dt: dt, role: model.Constant}
	g.count++
	name := fmt.Sprintf("w%d", g.count)
	if g.IntN(16) == 0 {
		x.role = model.Input
		x.id = g.b.Input(name, dt, x.at(g.n)...)
		return x
	}
	x.id = g.b.Param(name, dt, x.at(g.n)...)
	if g.IntN(16) == 0 {
		if out := g.try("Relu", nil, x); out != nil {
			return out[0]
		}
	}
	return x
}

// some is a tensor that there is, rather a late one than an early one.
func (g *grower) some() *grown {
	k := len(g.pool) - 1
	for k > 0 && g.IntN(3) > 0 {
		k--
	}
	if g.IntN(4) == 0 {
		k = g.IntN(len(g.pool))
	}
	return g.pool[k]
}

// like is an operand that may be broadcast to another: one that there is, or a constant of some of its extents.
func (g *grower) like(x *grown) *grown {
	switch g.IntN(4) {
	case 0:
		return x
	case 1:
		return g.some()
	case 2: // of the same extents, if there is one
		for range 8 {
			if y := g.some(); y != x && slices.Equal(y.shape, x.shape) && y.batch == x.batch {
				return y
			}
		}
	}
	from := g.IntN(len(x.shape) + 1)
	shape, batch := slices.Clone(x.shape[from:]), x.batch-from
	for d := range shape {
		if g.IntN(3) == 0 || d == batch && g.IntN(4) > 0 {
			shape[d] = 1
			if d == batch {
				batch = -1
			}
		}
	}
	return g.constant(x.dt, max(batch, -1), shape...)
}

// try adds an operator if it can be had at any batch, and its results are not too large.
func (g *grower) try(kind model.Kind, attr func(batch int64) model.Attr, in ...*grown) []*grown {
	if attr == nil {
		attr = func(int64) model.Attr { return model.Attr{} }
	}
	var shapes [2][]model.Shape
	var types []model.DType
	for k, batch := range []int64{3, 5} {
		b := model.NewBuilder("")
		var ids []model.TensorID
		for i, x := range in {
			switch x.role {
			case model.Constant:
				ids = append(ids, b.Param(fmt.Sprint(i), x.dt, x.at(batch)...))
			default:
				ids = append(ids, b.Input(fmt.Sprint(i), x.dt, x.at(batch)...))
			}
		}
		types = nil
		for _, o := range b.OpN(kind, "op", attr(batch), ids...) {
			t := b.Tensor(o)
			shapes[k], types = append(shapes[k], t.Shape), append(types, t.DType)
		}
		if b.Output(b.OpN("Relu", "r", model.Attr{}, 0)...); b.Err() != nil || len(shapes[k]) == 0 {
			return nil
		}
	}
	var out []*grown
	for k, small := range shapes[0] {
		large := shapes[1][k]
		x := &grown{batch: -1, dt: types[k]}
		for d, n := range small {
			if n != large[d] {
				if x.batch >= 0 || n*5 != large[d]*3 {
					return nil
				}
				x.batch, n = d, n/3
			}
			x.shape = append(x.shape, n)
		}
		if !fits(x.shape) {
			return nil
		}
		out = append(out, x)
	}
	var ids []model.TensorID
	for _, x := range in {
		ids, x.read = append(ids, x.id), true
	}
	g.count++
	for k, id := range g.b.OpN(kind, fmt.Sprintf("%s%d", kind, g.count), attr(g.n), ids...) {
		out[k].id = id
	}
	g.pool = append(g.pool, out...)
	return out
}

// fixed is an attribute that does not depend on the batch.
func fixed(a model.Attr) func(int64) model.Attr { return func(int64) model.Attr { return a } }

// axes are some dimensions, ascending.
func (g *grower) axes(rank int) (list []int64) {
	for d := range rank {
		if g.IntN(2) == 0 {
			list = append(list, int64(d))
		}
	}
	return list
}

// propose tries to add an operator of a kind, with whatever attributes may suit.
func (g *grower) propose(kind model.Kind) {
	x := g.some()
	rank := len(x.shape)
	info, _ := model.Info(kind)
	whole := func(set func(a *model.Attr, shape []int64)) func(int64) model.Attr {
		return func(batch int64) model.Attr {
			var a model.Attr
			set(&a, x.at(batch))
			return a
		}
	}
	several := func(n int, f func() int64) (list []int64) {
		for range n {
			list = append(list, f())
		}
		return list
	}
	channel := func(d int) *grown { // a constant for a dimension
		if d >= rank {
			return g.constant(x.dt, -1, 1)
		}
		if g.IntN(8) == 0 { // one that is computed of something else
			for _, y := range g.pool {
				if len(y.shape) == 1 && y.shape[0] == x.shape[d] && y.batch < 0 {
					return y
				}
			}
		}
		return g.constant(x.dt, -1, x.shape[d])
	}
	spatial := rank - 2
	windows := func() model.Attr {
		a := model.Attr{Group: 1, CeilMode: g.IntN(4) == 0}
		for range max(0, spatial) {
			a.Kernel = append(a.Kernel, pick(g.Rand, int64(1), 2, 3, 5))
			a.Strides, a.Dilations = append(a.Strides, pick(g.Rand, int64(1), 1, 2, 3)), append(a.Dilations, pick(g.Rand,
				int64(1), 1, 1, 2))
		}
		a.Pads = several(2*max(0, spatial), func() int64 { return pick(g.Rand, int64(0), 0, 1, 2, 4) })
		return a
	}
	switch kind {
	case "Add", "Mul", "Max", "Min":
		in := []*grown{x, g.like(x)}
		for g.IntN(3) == 0 {
			in = append(in, g.like(x))
		}
		g.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		g.try(kind, nil, in...)
	case "Sub", "Div", "Pow", "Mod", "PRelu", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
		"Xor":
		if in := []*grown{x, g.like(x)}; g.IntN(2) == 0 {
			g.try(kind, nil, in[1], in[0])
		} else {
			g.try(kind, nil, in...)
		}
	case "Where", "Scatter":
		g.try(kind, nil, x, g.like(x), g.like(x))
	case "BatchNorm":
		g.try(kind, nil, x, channel(1), channel(1), channel(1), channel(1))
	case "Cast":
		g.try(kind, fixed(model.Attr{Axis: int64(pick(g.Rand, append(g.types, model.F32, model.I8)...))}), x)
	case "Quantize", "Dequantize":
		a := model.Attr{Axis: int64(pick(g.Rand, append(g.types, model.I8)...))}
		in := []*grown{x}
		if rank > 0 && g.IntN(2) == 0 {
			d := g.IntN(rank)
			a.Axes = []int64{int64(d)}
			in = append(in, channel(d))
		} else if g.IntN(2) == 0 {
			in = append(in, g.constant(x.dt, -1, 1))
		}
		g.try(kind, fixed(a), in...)
	case "Unknown":
		in := []*grown{x}
		for g.IntN(2) == 0 {
			in = append(in, g.some())
		}
		if g.IntN(8) == 0 {
			in = nil
		}
		g.try(kind, whole(func(a *model.Attr, s []int64) { a.Shape, a.Axis = s, int64(x.dt) }), in...)
	case "MatMul":
		if rank == 0 {
			return
		}
		k, n := x.shape[rank-1], g.size()
		switch g.IntN(9) {
		case 0:
			g.try(kind, nil, x, g.constant(x.dt, -1, k))
		case 1: // a constant in front
			if rank > 1 {
				k = x.shape[rank-2]
			}
			g.try(kind, nil, g.constant(x.dt, -1, n, k), x)
		case 2: // of its own shape, transposed
			perm := make([]int64, rank)
			for d := range perm {
				perm[d] = int64(d)
			}
			if rank > 1 {
				perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
			}
			if y := g.try("Transpose", fixed(model.Attr{Perm: perm}), x); y != nil && g.try(kind, nil, x, y[0]) == nil {
				g.try(kind, nil, y[0], x)
			}
		case 3, 4: // another one
			for range 12 {
				if y := g.some(); g.try(kind, nil, x, y) != nil || g.try(kind, nil, y, x) != nil {
					return
				}
			}
		case 5: // weights for each of some
			if rank > 2 {
				w := slices.Clone(x.shape[:rank-2])
				for d := range w {
					if g.IntN(2) == 0 || d == x.batch {
						w[d] = 1
					}
				}
				g.try(kind, nil, x, g.constant(x.dt, -1, append(w, k, n)...))
			}
		default:
			g.try(kind, nil, x, g.constant(x.dt, -1, k, n))
		}
	case "Attention":
		g.attention(x)
	case "Gemm":
		if rank != 2 {
			return
		}
		a := model.Attr{TransA: g.IntN(4) == 0, TransB: g.IntN(2) == 0}
		m, k, n := x.shape[0], x.shape[1], g.size()
		if a.TransA {
			m, k = k, m
		}
		w := []int64{k, n}
		if a.TransB {
			w = []int64{n, k}
		}
		in := []*grown{x, g.constant(x.dt, -1, w...)}
		switch g.IntN(6) {
		case 0:
			in = append(in, g.constant(x.dt, -1, n))
		case 1:
			in = append(in, g.constant(x.dt, -1, 1, n))
		case 2, 3: // a late operand, from another product
			y := g.some()
			if len(y.shape) == 2 && slices.Equal(y.shape, x.shape) && y.batch == x.batch {
				if late := g.try(kind, fixed(a), y, g.constant(x.dt, -1, w...)); late != nil {
					for range g.IntN(12) {
						if z := g.try(pick[model.Kind](g.Rand, "Tanh", "Exp", "Silu"), nil, late[0]); z != nil {
							late = z
						}
					}
					in = append(in, late[0])
				}
			}
		case 4:
			for range 12 {
				if y := g.some(); len(y.shape) == 2 && y.shape[1] == n && y.shape[0] == m {
					in = append(in, y)
					break
				}
			}
		}
		g.try(kind, fixed(a), in...)
	case "Conv", "ConvTranspose":
		if rank < 3 {
			return
		}
		a := windows()
		c, out := x.shape[1], g.size()
		if g.IntN(3) == 0 {
			a.Group = pick(g.Rand, c, 2, 4)
			out = a.Group * pick(g.Rand, int64(1), 1, 2, 3)
		}
		if c%a.Group != 0 {
			return
		}
		w := []int64{out, c / a.Group}
		if kind == "ConvTranspose" {
			w = []int64{c, max(1, out/a.Group)}
			out = w[1] * a.Group
		}
		kernel := a.Kernel
		if a.Kernel = nil; g.IntN(3) == 0 { // no gaps at the edges
			for d, k := range kernel {
				a.Pads[d], a.Pads[d+spatial] = k/2, k/2
			}
		}
		in := []*grown{x, g.constant(x.dt, -1, append(w, kernel...)...)}
		switch g.IntN(4) {
		case 0, 1:
			in = append(in, g.constant(x.dt, -1, out))
		case 2: // a bias that is computed
			for range 12 {
				if y := g.some(); len(y.shape) == 1 && y.shape[0] == out && y.batch < 0 {
					in = append(in, y)
					break
				}
			}
		}
		g.try(kind, fixed(a), in...)
	case "MaxPool", "AveragePool":
		g.try(kind, fixed(windows()), x)
	case "LRN":
		g.try(kind, fixed(model.Attr{Kernel: []int64{pick(g.Rand, int64(1), 3, 5)}}), x)
	case "GroupNorm":
		a := model.Attr{Group: pick(g.Rand, int64(1), 2, 4)}
		if in := []*grown{x, channel(1), channel(1)}; true {
			g.try(kind, fixed(a), in[:1+g.IntN(3)]...)
		}
	case "LayerNorm", "RMSNorm":
		if rank == 0 {
			return
		}
		in := []*grown{x, channel(rank - 1), channel(rank - 1)}[:1+g.IntN(2)]
		g.try(kind, fixed(model.Attr{Axis: int64(g.IntN(rank))}), in...)
	case "Softmax":
		if rank > 0 {
			a := model.Attr{Axis: int64(g.IntN(rank))}
			if g.IntN(4) == 0 {
				a.Axes = g.axes(rank)
			}
			g.try(kind, fixed(a), x)
		}
	case "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin":
		a := model.Attr{Axes: g.axes(rank), KeepDims: g.IntN(2) == 0}
		if g.IntN(3) == 0 && rank > 0 { // all but the batch
			a.Axes = nil
			for d := range rank {
				if d != x.batch {
					a.Axes = append(a.Axes, int64(d))
				}
			}
		}
		if slices.Contains(a.Axes, int64(x.batch)) && g.IntN(4) > 0 {
			return
		}
		g.try(kind, fixed(a), x)
	case "ArgMax":
		if rank > 0 {
			g.try(kind, fixed(model.Attr{Axes: []int64{int64(g.IntN(rank))}, KeepDims: g.IntN(2) == 0}), x)
		}
	case "CumSum":
		if rank > 0 {
			g.try(kind, fixed(model.Attr{Axis: int64(g.IntN(rank))}), x)
		}
	case "TopK":
		if rank > 0 {
			d := g.IntN(rank)
			g.try(kind, fixed(model.Attr{Axis: int64(d), Splits: []int64{1 + g.Int64N(x.shape[d])}}), x)
		}
	case "Reshape":
		g.reshape(x)
	case "Transpose":
		perm := make([]int64, rank)
		for d, p := range g.Perm(rank) {
			perm[d] = int64(p)
		}
		g.try(kind, fixed(model.Attr{Perm: perm}), x)
	case "Concat":
		if rank == 0 {
			return
		}
		in := []*grown{x}
		for range 1 + g.IntN(3) {
			y := g.some()
			if len(y.shape) != rank || g.IntN(3) == 0 {
				if y = x; g.IntN(2) == 0 {
					y = g.constant(x.dt, x.batch, slices.Clone(x.shape)...)
				}
			}
			in = append(in, y)
		}
		g.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		g.try(kind, fixed(model.Attr{Axis: int64(g.IntN(rank))}), in...)
	case "Split":
		if rank == 0 {
			return
		}
		d := g.IntN(rank)
		parts := []int64{}
		for left := x.shape[d]; left > 0; {
			n := 1 + g.Int64N(left)
			if parts, left = append(parts, n), left-n; len(parts) == 3 && left > 0 {
				parts, left = append(parts, left), 0
			}
		}
		g.try(kind, func(batch int64) model.Attr {
			p := slices.Clone(parts)
			if d == x.batch {
				for k := range p {
					p[k] *= batch
				}
			}
			return model.Attr{Axis: int64(d), Splits: p}
		}, x)
	case "Slice":
		starts, steps, sizes := make([]int64, rank), make([]int64, rank), make([]int64, rank)
		for d, n := range x.shape {
			starts[d], steps[d], sizes[d] = 0, 1, n
			if d != x.batch && g.IntN(2) == 0 {
				steps[d] = pick(g.Rand, int64(1), 1, 2, 3, -1)
				starts[d] = g.Int64N(n)
				room := (n - 1 - starts[d]) / max(1, steps[d])
				if steps[d] < 0 {
					room = starts[d]
				}
				if sizes[d] = room + 1; g.IntN(2) == 0 {
					sizes[d] = 1 + g.Int64N(room+1)
				}
			}
		}
		g.try(kind, func(batch int64) model.Attr {
			shape := slices.Clone(sizes)
			if x.batch >= 0 {
				shape[x.batch] *= batch
			}
			return model.Attr{Starts: starts, Steps: steps, Shape: shape}
		}, x)
	case "Pad":
		pads := make([]int64, 2*rank)
		for d, n := range x.shape {
			if d != x.batch && g.IntN(2) == 0 {
				pads[d], pads[d+rank] = pick(g.Rand, 0, 1, 3, n, -n/2), pick(g.Rand, 0, 1, 2, 2*n, -n/3)
			}
		}
		g.try(kind, fixed(model.Attr{Pads: pads}), x)
	case "Gather":
		index := &grown{batch: -1, dt: pick(g.Rand, model.I32, model.I64)}
		for range g.IntN(3) {
			index.shape = append(index.shape, g.size())
		}
		if len(index.shape) > 0 && g.IntN(2) == 0 {
			index.batch = 0
		}
		found := false
		for range 8 {
			if y := g.some(); !found && (y.dt == model.I32 || y.dt == model.I64) {
				index, found = y, true
			}
		}
		if !found {
			if !fits(index.shape) {
				return
			}
			g.count++
			index.id, index.role = g.b.Input(fmt.Sprintf("ids%d", g.count), index.dt, index.at(g.n)...), model.Input
		}
		if rank == 0 || g.IntN(2) == 0 {
			x = g.constant(pick(g.Rand, g.types...), -1, pick(g.Rand, int64(3), 50, 2000), g.size())
		}
		g.try(kind, fixed(model.Attr{Axis: int64(g.IntN(len(x.shape)))}), x, index)
	case "GatherElements":
		if rank > 0 {
			y := g.like(x)
			g.try(kind, fixed(model.Attr{Axis: int64(g.IntN(rank))}), x, y)
		}
	case "Expand":
		to := &grown{shape: slices.Clone(x.shape), batch: x.batch}
		for d, n := range to.shape {
			if n == 1 && d != to.batch && g.IntN(2) == 0 {
				to.shape[d] = g.size()
				if to.batch < 0 && g.IntN(3) == 0 {
					to.batch = d
				}
			}
		}
		if g.IntN(3) == 0 {
			to.shape = append([]int64{g.size()}, to.shape...)
			if to.batch >= 0 {
				to.batch++
			} else if g.IntN(2) == 0 {
				to.batch = 0
			}
		}
		g.try(kind, func(batch int64) model.Attr { return model.Attr{Shape: to.at(batch)} }, x)
	case "Resize":
		kernel, to := make([]int64, rank), slices.Clone(x.shape)
		for d, n := range x.shape {
			kernel[d] = 1
			if d != x.batch && g.IntN(2) == 0 {
				if to[d] = pick(g.Rand, 2*n, max(1, n/2), n+1, g.size()); to[d] != n {
					kernel[d] = pick(g.Rand, int64(1), 2, 4)
				}
			}
		}
		g.try(kind, func(batch int64) model.Attr {
			shape := slices.Clone(to)
			if x.batch >= 0 {
				shape[x.batch] *= batch
			}
			return model.Attr{Shape: shape, Kernel: kernel}
		}, x)
	default:
		if info.Class == model.ElementwiseClass || info.Class == model.ReductionClass {
			g.try(kind, nil, x)
		}
	}
}

// reshape merges neighbouring dimensions or cuts one apart.
func (g *grower) reshape(x *grown) {
	to := &grown{shape: slices.Clone(x.shape), batch: x.batch}
	for range 1 + g.IntN(3) {
		rank := len(to.shape)
		switch g.IntN(4) {
		case 0, 1:
			if rank > 1 {
				d := g.IntN(rank - 1)
				to.shape[d] *= to.shape[d+1]
				to.shape = slices.Delete(to.shape, d+1, d+2)
				if to.batch > d {
					to.batch--
				}
			}
		case 2:
			if rank > 0 && rank < 6 {
				d := g.IntN(rank)
				k := pick(g.Rand, int64(1), 2, 4, 8)
				if to.shape[d]%k != 0 {
					continue
				}
				to.shape[d] /= k
				if g.IntN(2) == 0 || d == to.batch { // behind
					d++
				}
				to.shape = slices.Insert(to.shape, d, k)
				if to.batch >= d {
					to.batch++
				}
			}
		case 3:
			if rank < 6 {
				d := g.IntN(rank + 1)
				to.shape = slices.Insert(to.shape, d, 1)
				if to.batch >= d {
					to.batch++
				}
			}
		}
	}
	g.try("Reshape", func(batch int64) model.Attr { return model.Attr{Shape: to.at(batch)} }, x)
}

// scan adds running sums between light operators, and a sum over another axis at their end.
func (g *grower) scan() {
	x := &grown{dt: g.types[0], role: model.Input, shape: []int64{1, pick(g.Rand, g.size(), 64, 200), g.size(), g.size()}}
	if g.count++; !fits(x.shape) {
		return
	}
	x.id = g.b.Input("steps", x.dt, x.at(g.n)...)
	g.pool = append(g.pool, x)
	light := func() {
		for range g.IntN(3) {
			kind := pick[model.Kind](g.Rand, "Exp", "Neg", "Mul", "Add")
			in := []*grown{x}
			if kind == "Mul" || kind == "Add" {
				in = append(in, pick(g.Rand, g.pool[len(g.pool)-1], g.constant(x.dt, -1, x.shape[3])))
			}
			if y := g.try(kind, nil, in...); y != nil {
				x = y[0]
			}
		}
	}
	axis := 1 + g.IntN(3)
	for range 1 + g.IntN(2) {
		light()
		if y := g.try("CumSum", fixed(model.Attr{Axis: int64(axis)}), x); y != nil {
			x = y[0]
		}
	}
	light()
	g.try("ReduceSum", fixed(model.Attr{Axes: []int64{int64(1 + axis%3)}, KeepDims: g.IntN(2) == 0}), x)
}

// attention adds one of a tensor's queries, as an operator or as those that it stands for.
func (g *grower) attention(q *grown) {
	rank := len(q.shape)
	if rank < 3 || q.batch >= rank-2 {
		return
	}
	heads, rows, depth := q.shape[rank-3], q.shape[rank-2], q.shape[rank-1]
	a := model.Attr{Group: 1, Softmax: g.IntN(4) > 0, TransB: g.IntN(2) == 0}
	whole := g.IntN(2) == 0
	if whole && q.batch != rank-3 {
		for _, n := range []int64{2, 3, 4, heads} {
			if heads%n == 0 && g.IntN(3) == 0 {
				a.Group = n
			}
		}
	}
	lead := append(slices.Clone(q.shape[:rank-3]), heads/a.Group)
	keys, width := pick(g.Rand, rows, rows, g.size()), pick(g.Rand, depth, g.size())
	a.Causal = whole && a.Softmax && keys >= rows && g.IntN(2) == 0
	other := func(shape ...int64) *grown {
		for range 4 {
			if y := g.some(); g.IntN(2) == 0 && y.batch == q.batch && slices.Equal(y.shape, shape) {
				return y
			}
		}
		y := g.constant(q.dt, q.batch, shape...)
		if y.role == model.Constant && g.IntN(8) > 0 { // constants are not put together
			if z := g.try("Relu", nil, y); z != nil {
				return z[0]
			}
		}
		return y
	}
	dim := rank - 2 // of the keys
	if a.TransB || !whole {
		dim = rank - 1
	}
	var pairs []*grown // of keys and values, in parts
	for left := keys; left > 0; {
		n := left
		if left > 1 && g.IntN(3) == 0 {
			n = 1 + g.Int64N(left-1)
		}
		k := append(slices.Clone(lead), depth, depth)
		k[dim], left = n, left-n
		pairs = append(pairs, other(k...), other(append(slices.Clone(lead), n, width)...))
	}
	scores := &grown{shape: append(slices.Clone(q.shape[:rank-1]), keys), batch: q.batch, dt: q.dt}
	mask := g.like(scores)
	if mask == scores { // there is no such tensor
		mask = g.constant(q.dt, q.batch, scores.shape...)
	}
	if !whole {
		from := len(g.pool)
		kt, v := pairs[0], pairs[1]
		if len(pairs) > 2 {
			var list [2][]*grown
			for i, x := range pairs {
				list[i%2] = append(list[i%2], x)
			}
			y := g.try("Concat", fixed(model.Attr{Axis: int64(rank - 1)}), list[0]...)
			z := g.try("Concat", fixed(model.Attr{Axis: int64(rank - 2)}), list[1]...)
			if y == nil || z == nil {
				return
			}
			kt, v = y[0], z[0]
		}
		p := g.try("MatMul", nil, q, kt)
		if p != nil && g.IntN(2) == 0 {
			p = g.try("Mul", nil, p[0], g.constant(q.dt, -1, 1))
		}
		if p != nil && g.IntN(2) == 0 {
			p = g.try("Add", nil, p[0], mask)
		}
		if p != nil && a.Softmax {
			p = g.try("Softmax", fixed(model.Attr{Axis: int64(rank - 1)}), p[0])
		}
		if p != nil && g.try("MatMul", nil, p[0], v) != nil && g.IntN(8) > 0 { // nothing else reads the scores
			g.pool = slices.Delete(g.pool, from, len(g.pool)-1)
		}
		return
	}
	in := append([]*grown{q}, pairs...)
	for g.IntN(2) == 0 {
		if g.IntN(2) == 0 {
			a.Scores = append(a.Scores, model.ScoreOp{Kind: "Tanh", Operands: 1})
			continue
		}
		at := g.IntN(2)
		a.Scores, in = append(a.Scores, model.ScoreOp{Kind: pick[model.Kind](g.Rand, "Add", "Mul", "Max"), At: at,
			Operands: 2}), append(in, mask)
	}
	g.try("Attention", fixed(a), in...)
}
