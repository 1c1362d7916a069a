package structure

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/onnx"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

// inOrder finds the structure with the operators in the graph's own order.
func inOrder(g *model.Graph) *Network {
	order := make([]model.OpID, len(g.Ops))
	for i := range order {
		order[i] = model.OpID(i)
	}
	return Find(g, order)
}

func built(t testing.TB, b *model.Builder) *model.Graph {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func simplified(t testing.TB, g *model.Graph) *Network {
	t.Helper()
	s, _, err := simplify.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	n := inOrder(s)
	checkNetwork(t, n)
	return n
}

func fromZoo(t testing.TB, name string, batch int64) *Network {
	t.Helper()
	g, err := zoo.Build(name, zoo.Options{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return simplified(t, g)
}

func fromFile(t testing.TB, name string) *Network {
	t.Helper()
	path := filepath.Join("../../../shared/data/onnx", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: %s is not on this machine", path)
	}
	g, err := onnx.Import(path, onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return simplified(t, g)
}

// summary writes the stages with the types of their blocks, and the extents of
// their results but the batch.
func summary(n *Network) string {
	var lines []string
	for _, s := range n.Stages {
		line := s.Name + ":"
		for _, b := range n.Blocks[s.First:s.End] {
			line += fmt.Sprintf(" %s%d", n.Types[b.Type].Name, b.End-b.First)
		}
		lines = append(lines, fmt.Sprintf("%s -> %v", line, n.Graph.Tensor(s.Exit).Shape[1:]))
	}
	return strings.Join(lines, "\n")
}

// A block is written as its type and the number of its layers.
func TestNetworks(t *testing.T) {
	resnet50 := `stem: A1 B1 -> [64,56,56]
stage 1: C4 D3 D3 -> [256,56,56]
stage 2: E4 D3 D3 D3 -> [512,28,28]
stage 3: E4 D3 D3 D3 D3 D3 -> [1024,14,14]
stage 4: E4 D3 D3 -> [2048,7,7]
head: F1 G2 -> [1000]`
	for _, test := range []struct {
		name string
		find func(testing.TB, string) *Network
		want string
	}{
		{"resnet50", func(t testing.TB, s string) *Network { return fromZoo(t, s, 1) }, resnet50},
		{"resnet50", func(t testing.TB, s string) *Network { return fromZoo(t, s, 8) }, resnet50},
		{"light_resnet50.onnx", fromFile, resnet50},
		{"bert-128", func(t testing.TB, s string) *Network { return fromZoo(t, s, 4) },
			"stem: A3 -> [128,768]\nstage 1:" + strings.Repeat(" B11", 12) + " -> [128,768]"},
		{"resnet18.onnx", fromFile, `stem: A1 B1 -> [64,56,56]
stage 1: C2 C2 -> [64,56,56]
stage 2: D3 C2 -> [128,28,28]
stage 3: D3 C2 -> [256,14,14]
stage 4: D3 C2 -> [512,7,7]
head: E1 F1 -> [1000]`},
		// E is the inverted residual, D, F, G, H and I are those without a bypass. The
		// first stage's has no expansion and so another form.
		{"mobilenetv2.onnx", fromFile, `stem: A1 -> [32,112,112]
stage 1: B1 C1 -> [16,112,112]
stage 2: D3 E3 -> [24,56,56]
stage 3: F3 E3 E3 -> [32,28,28]
stage 4: G3 E3 E3 E3 H3 E3 E3 -> [96,14,14]
stage 5: I3 E3 E3 J3 K1 -> [1280,7,7]
head: L1 M1 -> [1000]`},
		{"light_vgg19.onnx", fromFile, `stage 1: A1 B1 -> [64,224,224]
stage 2: C1 D1 B1 -> [128,112,112]
stage 3: C1 D1 B1 B1 B1 -> [256,56,56]
stage 4: C1 D1 B1 B1 B1 -> [512,28,28]
stage 5: C1 B1 B1 B1 B1 -> [512,14,14]
head: E1 F1 G1 H2 -> [1000]`},
		{"inception_v2_inferred.onnx", fromFile, `stem: A1 B1 C1 D1 B1 -> [192,28,28]
stage 1: E9 F9 -> [320,28,28]
stage 2: G7 H9 I9 J9 K9 -> [576,14,14]
stage 3: L7 M9 N9 -> [1024,7,7]
head: O1 P2 -> [1000]`},
		// A fire module's squeeze layer carries all data, and so is a block of its own.
		{"light_squeezenet.onnx", fromFile, `stem: A1 B1 -> [64,55,55]
stage 1: C1 D3 E1 D3 -> [128,55,55]
stage 2: F1 C1 D3 E1 D3 -> [256,27,27]
stage 3: G1 H1 D3 E1 D3 I1 D3 E1 D3 J1 -> [1000,13,13]
head: K2 -> [1000,1,1]`},
		{"light_bvlc_alexnet.onnx", fromFile, `stage 1: A2 -> [96,54,54]
stage 2: B1 C2 -> [256,26,26]
stage 3: D1 E1 F1 G1 -> [256,12,12]
head: H1 I1 J1 K2 -> [1000]`},
		{"light_inception_v1.onnx", fromFile, `stem: A1 B2 C1 D2 E1 -> [192,27,27]
stage 1: F8 G8 -> [480,27,27]
stage 2: H1 I8 J8 K8 L8 M8 -> [832,13,13]
stage 3: N1 O8 P8 -> [1024,6,6]
head: Q1 R2 -> [1000]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := summary(test.find(t, test.name)); got != test.want {
				t.Errorf("found\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Dense layers differ by the channels that they read, so only their number and
// place are told here: 6, 12, 24 and 16 of them, and transitions between.
func TestDenseNet(t *testing.T) {
	n := fromFile(t, "light_densenet121.onnx")
	var composite []int
	for _, s := range n.Stages {
		k := 0
		for _, b := range n.Blocks[s.First:s.End] {
			if b.Composite {
				k++
			}
		}
		composite = append(composite, k)
	}
	if want := []int{0, 6, 12, 24, 16, 0}; !slices.Equal(composite, want) {
		t.Errorf("the stages have %v composite blocks, want %v", composite, want)
	}
}

// The imbalance that the paper exploits: each down-sampling halves the tensors
// between blocks.
func TestImbalance(t *testing.T) {
	n := fromZoo(t, "resnet50", 8)
	var exits []int64
	for _, s := range n.Stages {
		if s.Part == Body {
			exits = append(exits, n.Graph.Tensor(s.Exit).Bytes())
		}
	}
	for i, x := range exits[1:] {
		if 2*x != exits[i] {
			t.Errorf("stage %d leaves %d bytes, the one before %d, want half", i+2, x, exits[i])
		}
	}
	// At the end of an identity block of stage 1 its input, the 3x3 convolution's
	// result and its own are alive: 256 + 64 + 256 channels of 56 x 56, for 8 images.
	if got, want := n.Stages[1].Use.PeakBytes, int64(8*56*56*(256+64+256)*2); got < want {
		t.Errorf("stage 1 has a peak of %d bytes, want %d at least", got, want)
	}
	if first, last := n.Stages[1].Use.PeakBytes, n.Stages[4].Use.PeakBytes; first < 4*last {
		t.Errorf("stage 1 has a peak of %d bytes, stage 4 of %d, want a quarter at most", first, last)
	}
}

// checkNetwork holds for every network.
func checkNetwork(t testing.TB, n *Network) {
	t.Helper()
	g := n.Graph
	at, stage := 0, 0
	for i, b := range n.Blocks {
		if b.First != at || b.End <= b.First {
			t.Errorf("block %d is layers %d to %d, want from %d", i, b.First, b.End, at)
		}
		if i > 0 && b.Entry != n.Blocks[i-1].Exit {
			t.Errorf("block %d enters with tensor %d, the one before leaves %d", i, b.Entry, n.Blocks[i-1].Exit)
		}
		if b.Stage < stage || b.Stage >= len(n.Stages) || i < n.Stages[b.Stage].First || i >= n.Stages[b.Stage].End {
			t.Errorf("block %d is in stage %d: %+v", i, b.Stage, n.Stages)
		}
		stage = b.Stage
		at = b.End
	}
	if at != len(n.Layers) || len(n.Stages) > 0 && n.Stages[len(n.Stages)-1].End != len(n.Blocks) {
		t.Errorf("%d layers in blocks, want %d", at, len(n.Layers))
	}
	counts := make([]int, len(n.Types))
	for _, b := range n.Blocks {
		counts[b.Type]++
	}
	for i, k := range n.Types {
		if k.Count != counts[i] || k.Name != letters(i) {
			t.Errorf("type %d is %+v, found %d", i, k, counts[i])
		}
	}
	u := n.Total()
	if u.MACs != g.MACs() || u.Params != g.Params() || u.Layers != len(n.Layers) || u.Operators != len(g.Ops) {
		t.Errorf("total %+v, want %d MACs, %d parameters, %d layers, %d operators", u, g.MACs(), g.Params(),
			len(n.Layers), len(g.Ops))
	}
	if want := liveNaively(n); !slices.Equal(n.LiveBytes, want) {
		t.Errorf("live bytes are %v, want %v", n.LiveBytes, want)
	}
}

// liveNaively asks of each tensor and layer whether it has to be there.
func liveNaively(n *Network) []int64 {
	g := n.Graph
	list := make([]int64, len(n.Layers))
	for i := range n.Layers {
		made, readBefore := map[model.TensorID]bool{}, map[model.TensorID]bool{}
		needed := map[model.TensorID]bool{}
		for j, l := range n.Layers {
			for _, t := range l.Inputs {
				if j >= i {
					needed[t] = true
				} else {
					readBefore[t] = true
				}
				if g.Tensor(t).Role == model.Input {
					made[t] = true
				}
			}
			for _, id := range l.Ops {
				for _, t := range g.Op(id).Outputs {
					whole := g.IsOutput(t) || slices.Contains(l.Outputs, t) || len(g.Tensor(t).Consumers) == 0
					if j <= i && whole {
						made[t] = true
					}
					if j == i && whole || g.IsOutput(t) {
						needed[t] = true
					}
				}
			}
		}
		for _, x := range g.Outputs {
			if g.Tensor(x).Role == model.Input {
				made[x], needed[x] = true, true
			}
		}
		for id := range made {
			if needed[id] {
				list[i] += g.Tensor(id).Bytes()
			}
		}
	}
	return list
}

// products builds random graphs of matrix products, each a layer of its own.
func products(t testing.TB, r *rand.Rand, ops int) *model.Graph {
	t.Helper()
	b := model.NewBuilder("products")
	x := b.Input("x", model.F16, 4, 4)
	values := []model.TensorID{x}
	unread := map[model.TensorID]bool{}
	pick := func() model.TensorID {
		// Mostly the newest, so that there are cuts.
		v := values[max(0, len(values)-1-int(r.ExpFloat64()*0.8))]
		delete(unread, v)
		return v
	}
	add := func(name string, in ...model.TensorID) {
		y := b.Op("MatMul", name, model.Attr{}, in...)
		values = append(values, y)
		unread[y] = true
	}
	for i := range ops {
		name := fmt.Sprint("op", i)
		if a := pick(); a == x || r.IntN(3) > 0 {
			add(name, a, b.Param(name+".weight", model.F16, 4, 4))
		} else if c := pick(); c != x {
			add(name, a, c)
		} else {
			add(name, a, b.Param(name+".weight", model.F16, 4, 4))
		}
	}
	// All that nothing reads comes together.
	last := values[len(values)-1]
	for _, v := range values[1 : len(values)-1] {
		if unread[v] {
			last = b.Op("MatMul", "join", model.Attr{}, last, v)
		}
	}
	b.Output(last)
	return built(t, b)
}

// shuffled is a random topological order.
func shuffled(g *model.Graph, r *rand.Rand) []model.OpID {
	var order []model.OpID
	done := make([]bool, len(g.Ops))
	for len(order) < len(g.Ops) {
		var ready []model.OpID
		for _, op := range g.Ops {
			if !done[op.ID] && !slices.ContainsFunc(op.Inputs, func(t model.TensorID) bool {
				p := g.Tensor(t).Producer
				return p != model.NoOp && !done[p]
			}) {
				ready = append(ready, op.ID)
			}
		}
		id := ready[r.IntN(len(ready))]
		done[id] = true
		order = append(order, id)
	}
	return order
}

// A tensor is a cut if without it nothing of the input reaches the output.
func TestCutsAgainstRemoval(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 300 {
		g := products(t, r, 3+r.IntN(12))
		n := Find(g, shuffled(g, r)) // cuts do not depend on the order
		checkNetwork(t, n)
		if len(n.Layers) != len(g.Ops) {
			t.Fatalf("%d layers of %d operators", len(n.Layers), len(g.Ops))
		}
		var want []model.TensorID
		for _, removed := range g.Tensors {
			if removed.Role != model.Activation || g.IsOutput(removed.ID) {
				continue
			}
			reached := map[model.TensorID]bool{g.Inputs[0]: true}
			for _, op := range g.Ops {
				for _, in := range op.Inputs {
					if reached[in] && op.Outputs[0] != removed.ID {
						reached[op.Outputs[0]] = true
					}
				}
			}
			if !reached[g.Outputs[0]] {
				want = append(want, removed.ID)
			}
		}
		var got []model.TensorID
		regions := newFinder(n).regions()
		for _, b := range regions[:len(regions)-1] {
			got = append(got, b.Exit)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("cuts %v, want %v, of layers %v", got, want, n.Layers)
		}
		found += len(got)
	}
	if found < 300 {
		t.Errorf("only %d cuts in all graphs", found)
	}
}

// linear is a layer of [4, f] -> [4, out].
func linear(b *model.Builder, x model.TensorID, name string, out int64) model.TensorID {
	return b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".weight", model.F16, b.Tensor(x).Shape[1], out))
}

func TestHandMade(t *testing.T) {
	residual := func(b *model.Builder, x model.TensorID, name string, swap bool) model.TensorID {
		y := linear(b, x, name+".up", 4*b.Tensor(x).Shape[1])
		y = b.Op("Relu", name+".relu", model.Attr{}, y)
		y = linear(b, y, name+".down", b.Tensor(x).Shape[1])
		if swap {
			return b.Op("Add", name+".add", model.Attr{}, x, y)
		}
		return b.Op("Add", name+".add", model.Attr{}, y, x)
	}
	softmax := func(b *model.Builder, x model.TensorID, name string) model.TensorID {
		return b.Op("Softmax", name, model.Attr{Axis: 1}, x)
	}
	for _, test := range []struct {
		name  string
		build func(b *model.Builder, x model.TensorID) []model.TensorID
		want  string
	}{
		{"no cut", func(b *model.Builder, x model.TensorID) []model.TensorID {
			p, q := linear(b, x, "p1", 8), linear(b, x, "q1", 8)
			p, q = linear(b, p, "p2", 4), linear(b, q, "q2", 8)
			return []model.TensorID{b.Op("MatMul", "join", model.Attr{}, p, q)}
		}, "stage 1: A5 -> [8]"},
		{"one layer", func(b *model.Builder, x model.TensorID) []model.TensorID {
			return []model.TensorID{linear(b, x, "a", 8)}
		}, "stage 1: A1 -> [8]"},
		{"no parameters", func(b *model.Builder, x model.TensorID) []model.TensorID {
			return []model.TensorID{softmax(b, b.Op("Relu", "relu", model.Attr{}, x), "softmax")}
		}, "stage 1: A2 -> [16]"},
		{"repeated halves", func(b *model.Builder, x model.TensorID) []model.TensorID {
			x = linear(b, x, "stem", 8)
			for i := range 3 {
				x = residual(b, x, fmt.Sprint("a", i), false)
				x = linear(b, x, fmt.Sprint("b", i), 8)
			}
			return []model.TensorID{linear(b, x, "head", 2)}
		}, "stem: A1 -> [8]\nstage 1: B3 B3 B3 -> [8]\nhead: C1 -> [2]"},
		{"auxiliaries of all but one", func(b *model.Builder, x model.TensorID) []model.TensorID {
			x = residual(b, linear(b, x, "stem", 8), "a", false)
			x = softmax(b, residual(b, x, "b", false), "s")
			return []model.TensorID{residual(b, x, "c", false)}
		}, "stem: A1 -> [8]\nstage 1: B2 B2 C1 B2 -> [8]"},
		{"auxiliaries of all", func(b *model.Builder, x model.TensorID) []model.TensorID {
			x = softmax(b, residual(b, linear(b, x, "stem", 8), "a", false), "s")
			return []model.TensorID{softmax(b, residual(b, x, "b", true), "t")}
		}, "stem: A1 -> [8]\nstage 1: B3 B3 -> [8]"},
		{"normalisations before", func(b *model.Builder, x model.TensorID) []model.TensorID {
			x = linear(b, x, "stem", 8)
			for i := range 3 {
				y := softmax(b, x, fmt.Sprint("s", i))
				y = linear(b, linear(b, y, fmt.Sprint("a", i), 24), fmt.Sprint("b", i), 8)
				x = b.Op("Add", fmt.Sprint("add", i), model.Attr{}, y, x)
				x = residual(b, x, fmt.Sprint("r", i), false)
			}
			return []model.TensorID{linear(b, softmax(b, x, "last"), "head", 2)}
		}, "stem: A1 -> [8]\nstage 1: B5 B5 B5 C1 -> [8]\nhead: D1 -> [2]"},
		{"swapped operands", func(b *model.Builder, x model.TensorID) []model.TensorID {
			x = linear(b, x, "stem", 8)
			return []model.TensorID{residual(b, residual(b, x, "a", false), "b", true)}
		}, "stem: A1 -> [8]\nstage 1: B2 B2 -> [8]"},
		{"other widths", func(b *model.Builder, x model.TensorID) []model.TensorID {
			x = residual(b, linear(b, x, "stem", 8), "a", false)
			return []model.TensorID{residual(b, linear(b, x, "wide", 12), "b", false)}
		}, "stem: A1 -> [8]\nstage 1: B2 -> [8]\nstage 2: C1 B2 -> [12]"},
		{"a second input that all read", func(b *model.Builder, x model.TensorID) []model.TensorID {
			mask := b.Op("Relu", "mask.relu", model.Attr{}, b.Input("mask", model.F16, 4, 1))
			x = linear(b, x, "stem", 8)
			for i := range 3 {
				x = residual(b, b.Op("Add", fmt.Sprint("mask", i), model.Attr{}, x, mask), fmt.Sprint("a", i), false)
			}
			return []model.TensorID{x}
		}, "stem: A2 -> [8]\nstage 1: B2 B2 C2 -> [8]"},
		{"an output on the way", func(b *model.Builder, x model.TensorID) []model.TensorID {
			x = linear(b, x, "stem", 8)
			y := residual(b, x, "a", false)
			return []model.TensorID{y, residual(b, y, "b", false)}
		}, "stem: A1 -> [8]\nstage 1: B2 B2 -> [8]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := model.NewBuilder(test.name)
			b.Output(test.build(b, b.Input("x", model.F16, 4, 16))...)
			n := inOrder(built(t, b))
			checkNetwork(t, n)
			if got := summary(n); got != test.want {
				t.Errorf("found\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Wirings that have the same operators but not the same form.
func TestTypesTellApart(t *testing.T) {
	shared := func(b *model.Builder, x model.TensorID) model.TensorID {
		y := linear(b, x, "y", 4)
		z := linear(b, x, "z", 4)
		return b.Op("MatMul", "m", model.Attr{}, b.Op("MatMul", "n", model.Attr{}, y, z), y)
	}
	other := func(b *model.Builder, x model.TensorID) model.TensorID {
		y := linear(b, x, "y", 4)
		z := linear(b, x, "z", 4)
		return b.Op("MatMul", "m", model.Attr{}, b.Op("MatMul", "n", model.Attr{}, y, z), z)
	}
	again := func(b *model.Builder, x model.TensorID) model.TensorID {
		y := linear(b, x, "y2", 4)
		z := linear(b, x, "z2", 4)
		return b.Op("MatMul", "m2", model.Attr{}, b.Op("MatMul", "n2", model.Attr{}, y, z), y)
	}
	twice := func(b *model.Builder, x model.TensorID) model.TensorID {
		y := linear(b, x, "y", 4)
		return b.Op("MatMul", "m", model.Attr{}, b.Op("MatMul", "n", model.Attr{}, y, y), y)
	}
	signature := func(build func(*model.Builder, model.TensorID) model.TensorID) string {
		b := model.NewBuilder("g")
		b.Output(build(b, b.Input("x", model.F16, 4, 4)))
		n := inOrder(built(t, b))
		return newFinder(n).signature(Block{First: 0, End: len(n.Layers), Entry: n.Graph.Inputs[0], Exit: n.Graph.Outputs[0]})
	}
	if signature(shared) != signature(again) {
		t.Error("names make a difference")
	}
	list := []string{signature(shared), signature(other), signature(twice)}
	for i, a := range list {
		for _, b := range list[:i] {
			if a == b {
				t.Errorf("graph %d has the signature of another", i)
			}
		}
	}
}

func TestConvolutions(t *testing.T) {
	// The attributes of a convolution and its kernel are part of a block's type.
	conv := func(kernel, stride, group int64) *Network {
		b := model.NewBuilder("conv")
		x := b.Input("x", model.F16, 1, 8, 16, 16)
		p := kernel / 2
		attr := model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1}
		x = b.Op("Conv", "a", attr, x, b.Param("a.weight", model.F16, 8, 8, 3, 3))
		x = b.Op("Conv", "b", attr, x, b.Param("b.weight", model.F16, 8, 8, 3, 3))
		attr = model.Attr{Strides: []int64{stride, stride}, Dilations: []int64{1, 1}, Pads: []int64{p, p, p, p}, Group: group}
		b.Output(b.Op("Conv", "c", attr, x, b.Param("c.weight", model.F16, 8, 8/group, kernel, kernel)))
		return inOrder(built(t, b))
	}
	for _, test := range []struct {
		kernel, stride, group int64
		same                  bool
	}{{3, 1, 1, true}, {1, 1, 1, false}, {5, 1, 1, false}, {3, 2, 1, false}, {3, 1, 8, false}, {3, 1, 2, false}} {
		n := conv(test.kernel, test.stride, test.group)
		checkNetwork(t, n)
		if len(n.Blocks) != 3 {
			t.Fatalf("%+v: %d blocks, want 3", test, len(n.Blocks))
		}
		if same := n.Blocks[2].Type == n.Blocks[1].Type; same != test.same {
			t.Errorf("%+v: same type as the one before: %v", test, same)
		}
	}
}

// Two tensors go from cell to cell: no cut stands between, however many there are.
func TestCellsOfTwo(t *testing.T) {
	b := model.NewBuilder("cells")
	x := b.Input("x", model.F16, 4, 4)
	before := linear(b, x, "stem", 4)
	last := linear(b, before, "first", 4)
	for i := range 1000 {
		p, q := linear(b, before, fmt.Sprint("p", i), 4), linear(b, last, fmt.Sprint("q", i), 4)
		before, last = last, b.Op("MatMul", fmt.Sprint("cell", i), model.Attr{}, p, q)
	}
	b.Output(last)
	n := inOrder(built(t, b))
	// The stem's result is the only cut.
	if got, want := summary(n), "stem: A1 -> [4]\nstage 1: B3001 -> [4]"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestNothing(t *testing.T) {
	b := model.NewBuilder("nothing")
	b.Output(b.Input("x", model.F16, 4))
	n := inOrder(built(t, b))
	if len(n.Layers)+len(n.Blocks)+len(n.Stages) != 0 || n.Total() != (Use{Largest: noTensor}) {
		t.Errorf("found %+v", n)
	}
}

func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"} {
		if got := letters(i); got != want {
			t.Errorf("%d is %q, want %q", i, got, want)
		}
	}
}

func ExampleFind() {
	g, err := zoo.Build("resnet50", zoo.Options{Batch: 1})
	if err != nil {
		panic(err)
	}
	if g, _, err = simplify.Run(g); err != nil {
		panic(err)
	}
	for _, s := range inOrder(g).Stages {
		fmt.Println(s.Name, s.End-s.First, g.Tensor(s.Exit).Shape)
	}
	// Output:
	// stem 2 [1,64,56,56]
	// stage 1 3 [1,256,56,56]
	// stage 2 4 [1,512,28,28]
	// stage 3 6 [1,1024,14,14]
	// stage 4 3 [1,2048,7,7]
	// head 2 [1,1000]
}
