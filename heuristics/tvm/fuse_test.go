package tvm

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

func inOrder(g *model.Graph) []model.OpID {
	order := make([]model.OpID, len(g.Ops))
	for i := range order {
		order[i] = model.OpID(i)
	}
	return order
}

func kernels(g *model.Graph) []string {
	var list []string
	for _, l := range FuseOps(g, inOrder(g)) {
		var names []string
		for _, id := range l.Ops {
			names = append(names, g.Op(id).Name)
		}
		list = append(list, strings.Join(names, " "))
	}
	return list
}

// Each rule of the pass on a graph that needs it.
func TestFuseOps(t *testing.T) {
	none := model.Attr{}
	rows := model.Attr{Axes: []int64{2}, KeepDims: true}
	heads := model.Attr{Shape: []int64{2, 4, 2, 4}}
	turn := model.Attr{Perm: []int64{0, 2, 1, 3}}
	for _, c := range []struct {
		name  string
		build func(b *model.Builder, x model.TensorID)
		want  []string
	}{
		{"element-wise operators follow a product, over a diamond too", func(b *model.Builder, x model.TensorID) {
			y := b.Op("Add", "bias", none, b.Op("MatMul", "product", none, x, b.Param("w", model.F16, 8, 8)),
				b.Param("b", model.F16, 8))
			b.Output(b.Op("Mul", "gate", none, y, b.Op("Sigmoid", "sigmoid", none, y)))
		}, []string{"product bias sigmoid gate"}},
		{"a transposition does not, and takes the reshapes around it", func(b *model.Builder, x model.TensorID) {
			y := b.Op("MatMul", "product", none, x, b.Param("w", model.F16, 8, 8))
			y = b.Op("Transpose", "turn", turn, b.Op("Reshape", "heads", heads, y))
			b.Output(b.Op("Relu", "relu", none, y))
		}, []string{"product", "heads turn relu"}},
		{"behind a product of four dimensions there is a reshape", func(b *model.Builder, x model.TensorID) {
			y := b.Op("Reshape", "heads", heads, x)
			y = b.Op("MatMul", "scores", none, y, b.Input("k", model.F16, 2, 4, 4, 2))
			b.Output(b.Op("Softmax", "softmax", model.Attr{Axis: 3},
				b.Op("Add", "mask", none, b.Op("Relu", "relu", none, y), b.Param("m", model.F16, 1))))
		}, []string{"heads", "scores", "relu mask", "softmax"}},
		{"what is in front of a reduction joins it, and nothing behind", func(b *model.Builder, x model.TensorID) {
			m := b.Op("ReduceMean", "mean", rows, x)
			d := b.Op("Sub", "difference", none, x, m)
			v := b.Op("ReduceMean", "variance", rows, b.Op("Mul", "square", none, d, d))
			b.Output(b.Op("Mul", "scaled", none, x, b.Op("Sqrt", "root", none, v)))
		}, []string{"mean", "difference square variance", "root scaled"}},
		{"not if it is needed behind the reduction too", func(b *model.Builder, x model.TensorID) {
			e := b.Op("Exp", "exp", none, x)
			b.Output(b.Op("Div", "share", none, e, b.Op("ReduceSum", "sum", rows, e)))
		}, []string{"exp", "sum", "share"}},
		{"look-ups join a concatenation, results of reductions and products do not",
			func(b *model.Builder, x model.TensorID) {
				i := b.Input("i", model.I32, 2, 4)
				table := func(n string) model.TensorID { return b.Param(n, model.F16, 5, 8) }
				r := b.Op("ReduceSum", "sum", model.Attr{Axes: []int64{2}},
					b.Op("Gather", "rows", none, table("u"), b.Input("j", model.I32, 2, 4, 3)))
				y := b.Op("MatMul", "product", none, x, b.Param("w", model.F16, 8, 8))
				b.Output(b.Op("Relu", "relu", none,
					b.Op("Concat", "concat", model.Attr{Axis: 2}, b.Op("Gather", "row", none, table("v"), i), r, y)))
			}, []string{"rows", "sum", "product", "row concat relu"}},
		{"of two products the first takes the sum", func(b *model.Builder, x model.TensorID) {
			y := b.Op("MatMul", "one", none, x, b.Param("w", model.F16, 8, 8))
			z := b.Op("MatMul", "two", none, x, b.Param("v", model.F16, 8, 8))
			b.Output(b.Op("Add", "sum", none, y, z))
		}, []string{"two", "one sum"}},
		{"positions of a look-up are made before it", func(b *model.Builder, x model.TensorID) {
			i := b.Op("Clip", "clip", none, b.Input("i", model.I32, 2, 4))
			b.Output(b.Op("Relu", "relu", none, b.Op("Gather", "row", none, b.Param("v", model.F16, 5, 8), i)),
				b.Op("Tanh", "tanh", none, x))
		}, []string{"clip", "row relu", "tanh"}},
		{"an output of the network ends a kernel", func(b *model.Builder, x model.TensorID) {
			y := b.Op("Relu", "relu", none, x)
			b.Output(y, b.Op("Tanh", "tanh", none, y))
		}, []string{"relu", "tanh"}},
		{"a reshape alone is no kernel", func(b *model.Builder, x model.TensorID) {
			y := b.Op("Softmax", "softmax", model.Attr{Axis: 2}, x)
			b.Output(b.Op("MatMul", "product", none, b.Op("Reshape", "flat", model.Attr{Shape: []int64{8, 8}}, y),
				b.Param("w", model.F16, 8, 8)))
		}, []string{"softmax flat", "product"}},
		{"parts of a split join where they meet", func(b *model.Builder, x model.TensorID) {
			p := b.OpN("Split", "split", model.Attr{Axis: 2, Splits: []int64{4, 4}}, x)
			b.Output(b.Op("Mul", "gate", none, p[0], b.Op("Sigmoid", "sigmoid", none, p[1])))
		}, []string{"split sigmoid gate"}},
	} {
		b := model.NewBuilder("test")
		c.build(b, b.Input("x", model.F16, 2, 4, 8))
		g, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := kernels(g); !slices.Equal(got, c.want) {
			t.Errorf("%s: kernels %q, want %q", c.name, got, c.want)
		}
	}
}

// Post-dominators against their definition, on random graphs: without the node no path
// leads from the operator to an end of the network, and no other such node is nearer.
func TestPostDominators(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 300 {
		b := model.NewBuilder("random")
		ids := []model.TensorID{b.Input("x", model.F16, 2)}
		for k := range 3 + r.Intn(12) {
			pick := func() model.TensorID { return ids[max(0, len(ids)-1-r.Intn(4))] }
			if r.Intn(3) == 0 {
				ids = append(ids, b.Op("Relu", fmt.Sprint("r", k), model.Attr{}, pick()))
			} else {
				ids = append(ids, b.Op("Add", fmt.Sprint("a", k), model.Attr{}, pick(), pick()))
			}
		}
		b.Output(ids[len(ids)-1])
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		f := newOpsFuser(g)
		leads := func(from, without int) bool { // from a node to an end
			stack, seen := []int{from}, map[int]bool{}
			for len(stack) > 0 {
				i := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if i == without || seen[i] {
					continue
				}
				seen[i] = true
				if f.nodes[i].leaves || len(f.nodes[i].readers) == 0 {
					return true
				}
				for _, e := range f.nodes[i].readers {
					stack = append(stack, e.to)
				}
			}
			return false
		}
		for i := range f.nodes {
			want := -1
			for d := i + 1; d < len(f.nodes); d++ { // nodes stand in topological order
				if !leads(i, d) {
					want = d
					break
				}
			}
			if got := f.nodes[i].end; got != want {
				t.Fatalf("node %d of %v: post-dominator %d, want %d", i, kernels(g), got, want)
			}
		}
	}
}

// Networks of the zoo at every grain: kernels are a partition in an order in which they
// can run, each has one result unless an operator has several, and at most one operator
// that others may follow only.
func TestFuseOpsOfZoo(t *testing.T) {
	for _, name := range zoo.Names() {
		for _, to := range grain.Grains() {
			net, err := network.Open(name, network.Options{Grain: to})
			if err != nil {
				t.Fatal(err)
			}
			g, err := net.Graph(2)
			if err != nil {
				t.Fatal(err)
			}
			gr, layers := GroupOps(g, inOrder(g))
			if err := schedule.CheckGrouping(g, gr); err != nil {
				t.Errorf("%s, %s: %v", name, to, err)
			}
			if err := schedule.CheckLayers(&schedule.Schedule{Graph: g, Grouping: gr, Layers: layers}); err != nil {
				t.Errorf("%s, %s: %v", name, to, err)
			}
			for _, l := range layers {
				if last := g.Op(l[0].Ops[len(l[0].Ops)-1]); len(l[0].Outputs) > len(last.Outputs) {
					t.Errorf("%s, %s: kernel %s has %d results", name, to, l[0].Name, len(l[0].Outputs))
				}
			}
		}
	}
}

// Results of TVM, which Table 3 of the GraphTurbo paper counts, at the grain of
// frameworks; docs/deviations.md explains the differences.
func TestFuseOpsResults(t *testing.T) {
	for _, c := range []struct {
		name         string
		ours, theirs int
	}{
		{"resnet50", 57, 58}, {"bert-128", 4 + 12*20, 242}, {"bert-large-384", 4 + 24*20, 515}, {"dlrm", 64, 76},
		{"mobilenetv2", 55, 56}, {"vit-b16", 247, 214}, {"densenet121", 243, 247}, {"conformer", 667, 1054},
	} {
		net, err := network.Open(c.name, network.Options{Grain: grain.Framework})
		if err != nil {
			t.Fatal(err)
		}
		g, err := net.Graph(1)
		if err != nil {
			t.Fatal(err)
		}
		results := 0
		for _, l := range FuseOps(g, inOrder(g)) {
			results += len(l.Outputs)
		}
		if results != c.ours {
			t.Errorf("%s: %d results, want %d (the paper counts %d)", c.name, results, c.ours, c.theirs)
		}
	}
}

// Without fusion each operator is a kernel, but for what moves nothing and for a product's bias or factor. A
// convolution's bias is one of its own in a graph that has it apart.
func TestGroupNone(t *testing.T) {
	b := model.NewBuilder("single")
	none := model.Attr{}
	conv := model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Group: 1}
	x := b.Op("Conv", "conv", conv, b.Input("x", model.F16, 2, 4, 4, 4), b.Param("kernel", model.F16, 4, 4, 1, 1),
		b.Param("shift", model.F16, 4))
	x = b.Op("Reshape", "rows", model.Attr{Shape: []int64{8, 16}}, b.Op("Relu", "relu", none, x))
	y := b.Op("MatMul", "product", none, x, b.Param("w", model.F16, 16, 16))
	y = b.Op("Add", "bias", none, y, b.Param("b", model.F16, 16))
	y = b.Op("Add", "residual", none, y, x)
	y = b.Op("Mul", "scale", none, b.Op("MatMul", "other", none, y, b.Param("v", model.F16, 16, 16)),
		b.Param("factor", model.F16, 1))
	y = b.Op("Softmax", "softmax", model.Attr{Axis: 1}, y)
	b.Output(b.Op("Transpose", "turn", model.Attr{Perm: []int64{1, 0}}, y))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ first, want string }{
		{"conv", "conv; relu rows; product bias; residual; other scale; softmax; turn"},
		{"apart", "conv; conv.bias; relu rows; product bias; residual; other scale; softmax; turn"}} {
		if c.first == "apart" {
			if g, err = simplify.BiasApart(g); err != nil {
				t.Fatal(err)
			}
		}
		var list []string
		gr, _ := GroupNone(g, inOrder(g))
		for _, sg := range gr.Groups {
			var names []string
			for _, id := range sg.Ops {
				names = append(names, g.Op(id).Name)
			}
			list = append(list, strings.Join(names, " "))
		}
		if got := strings.Join(list, "; "); got != c.want {
			t.Errorf("%s: kernels are %s, expected %s", c.first, got, c.want)
		}
	}
	op, bias := g.Op(1), g.Tensor(g.Op(1).Inputs[1])
	if out := g.Tensor(op.Outputs[0]); op.Kind != "Add" || !out.Shape.Equal(model.Shape{2, 4, 4, 4}) ||
		!bias.Shape.Equal(model.Shape{4, 1, 1}) || len(g.Op(0).Inputs) != 2 {
		t.Errorf("the bias apart is %s of %v, with a result of %v", op.Kind, bias.Shape, out.Shape)
	}
}
