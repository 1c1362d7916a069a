package training

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/zoo"
)

// A perceptron, by hand: x [4,16], w1 [16,8], relu, w2 [8,2], both with what follows.
// Products of 4*16*8 = 512 and 4*8*2 = 64; the input needs no gradient.
func TestPerceptron(t *testing.T) {
	b := model.NewBuilder("perceptron")
	x := b.Input("x", model.F32, 4, 16)
	w1 := b.Param("w1", model.F32, 16, 8)
	w2 := b.Param("w2", model.F32, 8, 2)
	h := b.Op("Relu", "relu", model.Attr{}, b.Op("MatMul", "first", model.Attr{}, x, w1))
	b.Output(b.Op("MatMul", "second", model.Attr{}, h, w2))
	net, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	g, err := Derive(net)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range g.Nodes[3:] {
		got = append(got, fmt.Sprintf("%s %v %v %d MACs %d simple %d in %d out %v", n.Kind, n.Pass, n.Shape, n.MACs,
			n.Vector.Simple, n.InputBytes, n.OutputBytes, n.After))
	}
	want := []string{
		"Loss 0 [1] 0 MACs 8 simple 64 in 4 out [2]",
		"LossGrad 1 [4,2] 0 MACs 8 simple 64 in 32 out [2 3]",
		"MatMulGradInput 1 [4,8] 64 MACs 0 simple 96 in 128 out [4]",
		"MatMulGradWeight 1 [8,2] 64 MACs 0 simple 160 in 64 out [1 4]",
		"ReluGradInput 1 [4,8] 0 MACs 64 simple 256 in 128 out [0 5]",
		"MatMulGradWeight 1 [16,8] 512 MACs 0 simple 384 in 512 out [7]",
		"Update 2 [16,8] 0 MACs 512 simple 1536 in 1024 out [8]",
		"Update 2 [8,2] 0 MACs 64 simple 192 in 128 out [6]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A residual block with a bias and a normalisation: the input of the block has two
// readers, whose gradients are added up; the sum passes its gradient on to both.
func TestResidual(t *testing.T) {
	b := model.NewBuilder("residual")
	x := b.Input("x", model.F32, 2, 3, 8, 8)
	conv := func(name string, in model.TensorID, from, to int64) model.TensorID {
		return b.Op("Conv", name, model.Attr{Kernel: []int64{3, 3}, Pads: []int64{1, 1, 1, 1}, Group: 1,
			Strides: []int64{1, 1}, Dilations: []int64{1, 1}}, in, b.Param(name+".w", model.F32, to, from, 3, 3),
			b.Param(name+".b", model.F32, to))
	}
	a := conv("a", x, 3, 4)
	sum := b.Op("Add", "sum", model.Attr{}, conv("b", a, 4, 4), a)
	b.Output(b.Op("GlobalAveragePool", "pool", model.Attr{}, sum))
	net, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	g, err := Derive(net)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i, n := range g.Nodes {
		count[n.Kind]++
		for _, h := range n.After {
			if h >= i {
				t.Errorf("%s reads what comes later", n.Name)
			}
		}
	}
	// a's input needs no gradient. By hand: MACs of a are 2*64*4*27, of b 2*64*4*36.
	want := map[string]int{"Conv": 2, "Add": 1, "GlobalAveragePool": 1, "Loss": 1, "LossGrad": 1,
		"GlobalAveragePoolGradInput": 1,
		"ConvGradInput":              1, "ConvGradWeight": 2, "ConvGradBias": 2, "GradSum": 1, "Update": 4}
	for kind, n := range want {
		if count[kind] != n {
			t.Errorf("%d of %s, expected %d", count[kind], kind, n)
		}
	}
	if len(count) != len(want) {
		t.Errorf("kinds %v", count)
	}
	if f, back := int64(2*64*4*(27+36)), int64(2*64*4*(27+2*36)); g.MACs(Forward) != f || g.MACs(Backward) != back {
		t.Errorf("%d forward and %d backward MACs, expected %d and %d", g.MACs(Forward), g.MACs(Backward), f, back)
	}
	i := slices.IndexFunc(g.Nodes, func(n Node) bool { return n.Kind == "GradSum" })
	if n := g.Nodes[i]; n.Vector.Simple != 2*4*64 || n.InputBytes != 2*4*2*4*64 || len(n.After) != 2 {
		t.Errorf("%+v", n)
	}
}

// On every network: gradients have the shapes of their tensors, every learned
// parameter that the outputs depend on is updated once, products are counted twice but
// for those whose input needs no gradient, and the order is topological.
func TestZoo(t *testing.T) {
	for _, name := range zoo.Names() {
		net, err := zoo.Build(name, zoo.Options{Batch: 2, DType: model.F32})
		if err != nil {
			t.Fatal(err)
		}
		g, err := Derive(net)
		if err != nil {
			if net.Params() == 0 {
				continue
			}
			t.Fatal(err)
		}
		for id, n := range g.Gradient {
			if n >= 0 && !g.Nodes[n].Shape.Equal(net.Tensors[id].Shape) &&
				g.Nodes[n].Shape.Elements() != net.Tensors[id].Shape.Elements() {
				t.Errorf("%s: the gradient of %s %v has shape %v", name, net.Tensors[id].Name,
					net.Tensors[id].Shape, g.Nodes[n].Shape)
			}
		}
		updated := int64(0)
		for i, n := range g.Nodes {
			if n.Pass == Update {
				updated += n.Shape.Elements()
			}
			if len(n.After) > 0 && n.After[len(n.After)-1] >= i {
				t.Errorf("%s: %s reads what comes later", name, n.Name)
			}
			if n.Pass == Backward && n.OutputBytes == 0 {
				t.Errorf("%s: %s writes nothing", name, n.Name)
			}
		}
		if updated > net.Params() || float64(updated) < 0.99*float64(net.Params()) {
			t.Errorf("%s: %d parameters are updated, the network has %d", name, updated, net.Params())
		}
		if f, b := g.MACs(Forward), g.MACs(Backward); f != net.MACs() || b > 2*f || b < f {
			t.Errorf("%s: %d forward and %d backward MACs, the network has %d", name, f, b, net.MACs())
		}
	}
}

func TestNothingToLearn(t *testing.T) {
	b := model.NewBuilder("fixed")
	b.Output(b.Op("Relu", "relu", model.Attr{}, b.Input("x", model.F32, 4)))
	net, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Derive(net); err == nil || !strings.Contains(err.Error(), "no learned parameter") {
		t.Errorf("%v", err)
	}
}

func Example() {
	net, err := zoo.Build("resnet18", zoo.Options{Batch: 1, DType: model.F32})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := Derive(net)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f GMAC forward, %.2f backward\n", float64(g.MACs(Forward))/1e9, float64(g.MACs(Backward))/1e9)
	// Output: 1.81 GMAC forward, 3.51 backward
}

// MACs counts the multiply-accumulates of a pass.
func (g *Graph) MACs(p Pass) int64 {
	n := int64(0)
	for _, v := range g.Nodes {
		if v.Pass == p {
			n += v.MACs
		}
	}
	return n
}
