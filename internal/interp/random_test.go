package interp_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// pick is one of some choices.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// machine is a small accelerator, so that small networks fill its memories.
func machine(r *rand.Rand) *hardware.Spec {
	s, err := hardware.Load("stcp920")
	if err != nil {
		panic(err)
	}
	s.Clusters = pick(r, 1, 2, 3)
	s.CoreTypes[0].Count = pick(r, 1, 2, 4)
	for i := range s.CoreTypes[0].Units {
		if u := &s.CoreTypes[0].Units[i]; u.Kind == hardware.Matrix {
			u.Rows, u.Cols = pick(r, 4, 8), pick(r, 2, 4)
		}
	}
	s.L1.SizeBytes = hardware.Bytes(pick(r, 1, 2, 4, 16) * 1024)
	s.L1WeightBytes = hardware.Bytes(pick(r, 1, 2, 4) * 1024)
	s.LLB.SizeBytes = hardware.Bytes(pick(r, 16, 32, 128) * 1024)
	if r.IntN(6) == 0 {
		s.LLB = nil
	}
	s.CoreLink.Broadcast = r.IntN(4) > 0
	return s
}

// net is a random network at any batch size: images or sequences through convolutions,
// products, pooling, normalisation, joins and changes of shape.
// With odd, extents are such as do not divide over cores and instances.
func net(seed uint64, odd bool) network.Network {
	return network.Network{Name: fmt.Sprintf("random-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		g := &grower{Rand: rand.New(rand.NewPCG(seed, 1)), b: model.NewBuilder("random")}
		if odd {
			g.odd = rand.New(rand.NewPCG(seed, 3))
		}
		if g.IntN(3) == 0 {
			g.sequence(batch)
		} else {
			g.images(batch)
		}
		return g.b.Build()
	}}
}

type grower struct {
	*rand.Rand
	b     *model.Builder
	count int
	odd   *rand.Rand // nil: extents as they are picked
}

// extent is one of some extents or, with odd, one above it.
func (g *grower) extent(of ...int64) int64 {
	n := pick(g.Rand, of...)
	if g.odd != nil {
		n += g.odd.Int64N(2)
	}
	return n
}

func (g *grower) op(kind model.Kind, a model.Attr, in ...model.TensorID) model.TensorID {
	g.count++
	return g.b.Op(kind, fmt.Sprintf("%s%d", kind, g.count), a, in...)
}

func (g *grower) param(shape ...int64) model.TensorID {
	g.count++
	return g.b.Param(fmt.Sprintf("w%d", g.count), model.F16, shape...)
}

func (g *grower) shape(x model.TensorID) model.Shape { return g.b.Tensor(x).Shape }

func (g *grower) conv(x model.TensorID, out, kernel, stride, group int64) model.TensorID {
	in := []model.TensorID{x, g.param(out, g.shape(x)[1]/group, kernel, kernel)}
	if g.IntN(2) == 0 {
		in = append(in, g.param(out))
	}
	pad := kernel / 2
	return g.op("Conv", model.Attr{Strides: []int64{stride, stride}, Dilations: []int64{1, 1},
		Pads: []int64{pad, pad, pad, pad}, Group: group}, in...)
}

func (g *grower) images(batch int64) {
	x := g.b.Input("image", model.F16, batch, pick(g.Rand, int64(2), 4), g.extent(6, 8, 12), g.extent(4, 8))
	var before []model.TensorID
	for range 3 + g.IntN(6) {
		s := g.shape(x)
		before = append(before, x)
		switch g.IntN(11) {
		case 0, 1:
			x = g.conv(x, pick(g.Rand, int64(4), 6, 8), pick(g.Rand, int64(1), 3, 3), 1, 1)
		case 2:
			x = g.conv(x, 8, 3, min(2, s[2]), 1)
		case 3:
			x = g.conv(x, s[1], 3, 1, s[1]) // depthwise
		case 4:
			x = g.conv(x, s[1], 3, 1, 2)
		case 5:
			x = g.op(pick[model.Kind](g.Rand, "Relu", "Silu", "Sigmoid"), model.Attr{}, x)
		case 6:
			x = g.op("Add", model.Attr{}, x, g.conv(x, s[1], 3, 1, 1))
		case 7:
			x = g.op("Concat", model.Attr{Axis: 1}, x, g.conv(x, 4, 1, 1, 1))
		case 8:
			if s[2] >= 3 && s[3] >= 3 {
				x = g.op(pick[model.Kind](g.Rand, "MaxPool", "AveragePool"),
					model.Attr{Kernel: []int64{3, 3}, Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}}, x)
			}
		case 9:
			for _, y := range before { // a longer residual
				if y != x && g.shape(y).Equal(s) {
					x = g.op("Add", model.Attr{}, y, x)
					break
				}
			}
		case 10:
			p := g.op("GlobalAveragePool", model.Attr{}, x)
			x = g.op("Mul", model.Attr{}, x, g.op("Sigmoid", model.Attr{}, g.conv(p, s[1], 1, 1, 1)))
		}
	}
	if g.IntN(3) == 0 {
		g.b.Output(g.op("Relu", model.Attr{}, x))
	}
	x = g.op("GlobalAveragePool", model.Attr{}, x)
	c := g.shape(x)[1]
	x = g.op("Reshape", model.Attr{Shape: []int64{batch, c}}, x)
	x = g.op("Gemm", model.Attr{TransB: g.IntN(2) == 0}, x, g.param(c, c), g.param(c))
	g.b.Output(x)
}

func (g *grower) dense(x model.TensorID, out int64) model.TensorID {
	s := g.shape(x)
	x = g.op("MatMul", model.Attr{}, x, g.param(s[len(s)-1], out))
	if g.IntN(2) == 0 {
		x = g.op("Add", model.Attr{}, x, g.param(out))
	}
	return x
}

func (g *grower) sequence(batch int64) {
	n, d := g.extent(4, 6, 8), pick(g.Rand, int64(8), 16)
	var x model.TensorID
	if g.IntN(3) == 0 {
		x = g.op("Gather", model.Attr{}, g.param(20, d), g.b.Input("ids", model.I32, batch, n))
	} else {
		x = g.b.Input("tokens", model.F16, batch, n, d)
	}
	for range 1 + g.IntN(4) {
		if g.odd != nil && n%2 == 0 && g.odd.IntN(2) == 0 {
			x = g.windows(x, batch, n, d)
		}
		switch g.IntN(6) {
		case 0, 1:
			x = g.attention(x, batch, n, d)
		case 2:
			x = g.op("Add", model.Attr{}, x, g.dense(g.op("Gelu", model.Attr{}, g.dense(x, 2*d)), d))
		case 3:
			x = g.op("LayerNorm", model.Attr{Axis: 2}, x, g.param(d), g.param(d))
		case 4:
			halves := g.b.OpN("Split", fmt.Sprintf("split%d", g.count), model.Attr{Axis: 2, Splits: []int64{d / 2, d / 2}}, x)
			g.count++
			x = g.op("Concat", model.Attr{Axis: 2}, g.op("Tanh", model.Attr{}, halves[1]), halves[0])
		case 5:
			x = g.op("Sub", model.Attr{}, x, g.op("ReduceMean", model.Attr{Axes: []int64{2}, KeepDims: true}, x))
		}
	}
	if g.IntN(2) == 0 {
		x = g.op("Slice", model.Attr{Starts: []int64{0, 1, 0}, Steps: []int64{1, 1, 1}, Shape: []int64{batch, n - 2, d}}, x)
	}
	g.b.Output(x)
}

// windows cuts pairs of neighbours and halves of features apart, and puts them together again.
func (g *grower) windows(x model.TensorID, batch, n, d int64) model.TensorID {
	x = g.op("Reshape", model.Attr{Shape: []int64{batch, n / 2, 2, 2, d / 2}}, x)
	x = g.op("Transpose", model.Attr{Perm: [][]int64{{0, 2, 1, 3, 4}, {0, 3, 1, 2, 4}}[g.odd.IntN(2)]}, x)
	x = g.op("Reshape", model.Attr{Shape: []int64{batch * 2, n, d / 2}}, x)
	if g.odd.IntN(2) == 0 {
		x = g.op("Softmax", model.Attr{Axis: 2}, x)
	}
	return g.op("Reshape", model.Attr{Shape: []int64{batch, n, d}}, x)
}

func (g *grower) attention(x model.TensorID, batch, n, d int64) model.TensorID {
	heads := func(perm ...int64) model.TensorID {
		y := g.op("Reshape", model.Attr{Shape: []int64{batch, n, 2, d / 2}}, g.dense(x, d))
		return g.op("Transpose", model.Attr{Perm: perm}, y)
	}
	scores := g.op("MatMul", model.Attr{}, heads(0, 2, 1, 3), heads(0, 2, 3, 1))
	y := g.op("MatMul", model.Attr{}, g.op("Softmax", model.Attr{Axis: 3}, scores), heads(0, 2, 1, 3))
	y = g.op("Reshape", model.Attr{Shape: []int64{batch, n, d}},
		g.op("Transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, y))
	return g.op("Add", model.Attr{}, x, g.dense(y, d))
}

// anyMachine is one of which all figures are drawn, from tiny to large: some have several types of
// cores, a special unit of its own, or no matrix unit.
func anyMachine(r *rand.Rand) *hardware.Spec {
	s := machine(r)
	s.ClockHz *= pick(r, 0.1, 1, 3)
	s.Clusters = pick(r, 1, 2, 3, 5)
	s.LaunchSeconds, s.SyncSeconds = pick(r, 0, 1e-9, 1e-7, 5e-6), pick(r, 0, 1e-7)
	s.DDR.BandwidthBytesPerSecond, s.DDR.LatencySeconds = pick(r, 1e8, 1e9, 1e10, 1e12), pick(r, 0, 1e-8, 1e-6, 1e-5)
	s.DDRActivationEfficiency = pick(r, 0, .01, .5, 1)
	s.DDRLink.BandwidthBytesPerSecond, s.DDRLink.LatencySeconds = pick(r, 0, 0, 1e9, 1e11), pick(r, 0, 1e-7)
	s.CoreLink.BandwidthBytesPerSecond, s.CoreLink.LatencySeconds = pick(r, 1e9, 1e10, 1e12), pick(r, 0, 1e-8, 1e-6)
	s.L1.SizeBytes, s.L1WeightBytes = pick(r, hardware.Bytes(512), 2048, 16384, 65536),
		pick(r, hardware.Bytes(0), 256, 1024, 8192)
	if s.LLB != nil {
		s.LLB.SizeBytes = pick(r, hardware.Bytes(1000), 4096, 16384, 40000, 262144)
		s.LLB.BandwidthBytesPerSecond, s.LLB.LatencySeconds = pick(r, 1e9, 1e10, 1e12), pick(r, 0, 1e-7)
	} else {
		s.Energy = nil
	}
	c := &s.CoreTypes[0]
	for i := range c.Units {
		u := &c.Units[i]
		u.FillCycles = pick(r, hardware.Cycles(0), 10, 100, 1000)
		if u.Kind == hardware.Matrix {
			u.Rows, u.Cols, u.BlockCycles = pick(r, 2, 8, 64), pick(r, 2, 8, 32), pick(r, 0., 2, 20, 200)
			continue
		}
		u.Lanes = pick(r, 1, 4, 64)
		for _, class := range slices.Sorted(maps.Keys(u.CyclesPerOp)) { // a seed draws the same machine again
			u.CyclesPerOp[class] = pick(r, .5, 1, 4)
		}
		if r.IntN(3) == 0 {
			u.SharesWith = ""
		}
	}
	if r.IntN(5) == 0 { // cores without the first unit
		s.CoreTypes = append(s.CoreTypes, hardware.CoreType{Name: "other", Count: 1 + r.IntN(2), HasL1: r.IntN(2) == 0,
			Units: c.Units[1:]})
	}
	if r.IntN(10) == 0 {
		c.Units = c.Units[1:]
	}
	s.CoreLink.InFlight, s.DDRLink.InFlight = pick(r, 0, 2, 4), pick(r, 0, 3)
	return s
}

// anyNet is a random network of one of several families.
func anyNet(r *rand.Rand, seed uint64) network.Network {
	switch r.IntN(8) {
	case 0:
		return net(seed, false)
	case 1:
		return net(seed, true)
	case 2:
		return softmaxes(seed)
	case 3:
		return single(seed)
	}
	return shared(seed)
}

// shared is a network in which operators share weights and tables, of several outputs, with constants
// of all extents and extents of 1.
func shared(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("shared-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		g := &grower{Rand: rand.New(rand.NewPCG(seed, 12)), b: model.NewBuilder("shared")}
		n, d := pick(g.Rand, 1, 1+g.Int64N(9), 6), pick(g.Rand, int64(1), 8, 16, 31)
		table, weights := g.param(pick(g.Rand, int64(3), 50, 2000), d), g.param(d, d)
		looked := func(name string) model.TensorID {
			return g.op("Gather", model.Attr{}, table, g.b.Input(name, model.I32, batch, n))
		}
		var x model.TensorID
		switch g.IntN(4) {
		case 0:
			x = looked("ids")
		case 1:
			x = g.op("Add", model.Attr{}, looked("ids"), looked("more ids"))
		case 2:
			x = g.op("Mul", model.Attr{}, g.b.Input("x", model.F16, batch, n, d), g.b.Input("y", model.F16, batch, n, d))
		default:
			x = g.b.Input("x", model.F16, batch, n, d)
			g.b.Input("unused", model.F16, batch, n, d)
		}
		for range 1 + g.IntN(6) {
			n, d := g.shape(x)[1], g.shape(x)[2]
			out := g.b.Tensor(x).Producer != model.NoOp && g.IntN(6) == 0
			if out {
				g.b.Output(x)
			}
			switch g.IntN(18) {
			case 14:
				x = g.op("MatMul", model.Attr{}, g.param(pick(g.Rand, 1, n, 2*n), n), x)
			case 15: // a constant that is computed
				x = g.op("Add", model.Attr{}, x, g.op("Relu", model.Attr{}, g.param(n, 1)))
			case 16:
				x = g.op("Pad", model.Attr{Pads: []int64{0, 1, 0, 0, 0, 2}}, x)
			case 17: // tied to the table
				if t := g.shape(table); t[0] <= 50 && t[1] == d {
					x = g.op("MatMul", model.Attr{}, x, g.op("Transpose", model.Attr{Perm: []int64{1, 0}}, table))
				}
			case 0, 1:
				x = g.dense(x, pick(g.Rand, int64(1), 4, 16, 64, 200))
			case 2:
				x = g.op("Add", model.Attr{}, x, g.param(n, d))
			case 3:
				x = g.op("Gelu", model.Attr{}, g.op("Add", model.Attr{}, g.dense(x, d), g.param(n, d)))
			case 4:
				x = g.op("Softmax", model.Attr{Axis: 2}, x)
			case 5:
				x = g.op("Add", model.Attr{}, x, g.dense(g.op("Gelu", model.Attr{}, g.dense(x, 4*d)), d))
			case 6:
				x = g.op("Transpose", model.Attr{Perm: []int64{0, 2, 1}}, x)
			case 7:
				x = g.op("Concat", model.Attr{Axis: 1 + g.Int64N(2)}, x, g.dense(x, d))
			case 8:
				x = g.op("Mul", model.Attr{}, x,
					g.op("Sigmoid", model.Attr{}, g.op("ReduceMean", model.Attr{Axes: []int64{2}, KeepDims: true}, x)))
			case 9, 10:
				if g.b.Tensor(weights).Shape[0] == d {
					x = g.op("MatMul", model.Attr{}, x, weights)
				}
			case 11:
				x = g.op("LayerNorm", model.Attr{Axis: 2}, x, g.param(d), g.param(d))
			case 12:
				if d%2 == 0 {
					x = g.attention(x, batch, n, d)
				}
			case 13:
				half := g.op("Slice", model.Attr{Starts: []int64{0, 0, d / 2}, Steps: []int64{1, 1, 1},
					Shape: []int64{batch, n, d - d/2}}, x)
				x = g.op("Concat", model.Attr{Axis: 2}, half, g.op("Relu", model.Attr{}, x))
			}
		}
		if g.b.Tensor(x).Producer == model.NoOp {
			x = g.op("Relu", model.Attr{}, x)
		}
		g.b.Output(x)
		return g.b.Build()
	}}
}

// link joins the cores of a machine of one type by a bus, or by links between neighbours, one time in two.
func link(r *rand.Rand, s *hardware.Spec) bool {
	kind, t := pick(r, hardware.Bus, hardware.Ring, hardware.Mesh, hardware.Torus), &s.CoreTypes[0]
	if len(s.CoreTypes) > 1 || !t.HasL1 || r.IntN(2) == 0 {
		return false
	}
	s.Network = &hardware.Network{Kind: kind, Memory: r.Perm(t.Count)[:1+r.IntN(t.Count)]}
	t.Grid = []int{t.Count, 1}
	if t.Count%2 == 0 {
		t.Grid = []int{2, t.Count / 2}
	}
	return true
}
