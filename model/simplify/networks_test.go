package simplify

import (
	"slices"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/zoo"
)

// TestZoo simplifies every network of the zoo: shapes stay, and so do the MACs but
// those of products of constants; no normalisation stays behind a convolution.
func TestZoo(t *testing.T) {
	for _, name := range zoo.Names() {
		t.Run(name, func(t *testing.T) {
			g, err := zoo.Build(name, zoo.Options{Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			network(t, g)
		})
	}
}

func network(t *testing.T, g *model.Graph) *model.Graph {
	t.Helper()
	s, reports := invariants(t, g, passes)
	for _, r := range reports {
		if r.Changes > 0 {
			t.Logf("%+v", r)
		}
	}
	if a, b := macsOfInputs(g), macsOfInputs(s); a != b {
		t.Errorf("MACs of what depends on inputs were %d, now %d", a, b)
	}
	shapes := map[string]model.Shape{}
	for _, x := range g.Tensors {
		shapes[x.Name] = x.Shape
	}
	for _, op := range s.Ops {
		for _, o := range op.Outputs {
			x := s.Tensor(o)
			if !x.Shape.Equal(shapes[x.Name]) {
				t.Errorf("%s had shape %v, now %v", x.Name, shapes[x.Name], x.Shape)
			}
		}
		if op.Kind == "BatchNorm" {
			if p := s.Tensor(op.Inputs[0]).Producer; p != model.NoOp && s.Op(p).Kind == "Conv" &&
				len(s.Tensor(op.Inputs[0]).Consumers) == 1 {
				t.Errorf("%s still stands behind %s", op.Name, s.Op(p).Name)
			}
		}
	}
	return s
}

// macsOfInputs counts the MACs of operators that depend on an input.
func macsOfInputs(g *model.Graph) int64 {
	n := int64(0)
	depends := make([]bool, len(g.Tensors))
	for _, id := range g.Inputs {
		depends[id] = true
	}
	for _, op := range g.Ops {
		if !slices.ContainsFunc(op.Inputs, func(id model.TensorID) bool { return depends[id] }) {
			continue
		}
		n += g.Work(op, nil).MACs
		for _, o := range op.Outputs {
			depends[o] = true
		}
	}
	return n
}

func TestResNet50(t *testing.T) {
	g, err := zoo.Build("resnet50", zoo.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := network(t, g)
	want := map[model.Kind]int{"Conv": 53, "BatchNorm": 0, "Add": 16, "Relu": 49}
	got := map[model.Kind]int{}
	for _, k := range s.KindCounts() {
		got[k.Kind] = k.Count
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%d operators of kind %s, want %d", got[k], k, n)
		}
	}
}
