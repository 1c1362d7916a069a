package tiles

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
)

// Layers of light operators are joined until none is read by another such layer alone; each operator is in one layer,
// and layers run behind those that they read of.
func TestJoinLight(t *testing.T) {
	for name, fewer := range map[string]bool{"swin-t": true, "llama2-7b-decode": true, "resnet50": false} {
		g, err := zoo.Build(name, zoo.Options{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		before := schedule.FusedLayers(g, schedule.ExecutionOrder(g))
		after := joinLight(g, before)
		if len(after) < len(before) != fewer {
			t.Errorf("%s: %d layers of %d, expected fewer: %v", name, len(after), len(before), fewer)
		}
		in := make([]int, len(g.Ops)) // 1 + the layer
		for i := range after {
			for _, id := range after[i].Ops {
				for _, x := range g.Op(id).Inputs {
					if p := g.Tensor(x).Producer; p != model.NoOp && in[p] == 0 {
						t.Errorf("%s: %q runs before %q, which it reads", name, g.Op(id).Name, g.Op(p).Name)
					}
				}
				if in[id] != 0 {
					t.Errorf("%s: %q is in two layers", name, g.Op(id).Name)
				}
				in[id] = i + 1
			}
		}
		if i := slices.Index(in, 0); i >= 0 {
			t.Errorf("%s: %q is in no layer", name, g.Ops[i].Name)
		}
		light := func(l *schedule.Layer) bool {
			return !slices.ContainsFunc(l.Ops, func(id model.OpID) bool {
				c := g.Op(id).Class()
				return g.Op(id).Kind == "Gather" ||
					c != model.ElementwiseClass && c != model.InjectiveClass && c != model.ViewClass
			})
		}
		for i := range after {
			readers := map[int]bool{}
			for _, x := range after[i].Outputs {
				if g.IsOutput(x) {
					readers[-1] = true
				}
				for _, id := range g.Tensor(x).Consumers {
					readers[in[id]-1] = true
				}
			}
			for to := range readers {
				if len(readers) == 1 && to >= 0 && light(&after[i]) && light(&after[to]) {
					t.Errorf("%s: layer %q, which %q alone reads, is not joined", name, after[i].Name, after[to].Name)
				}
			}
			if len(after[i].Ops) > 1 && !light(&after[i]) && !slices.ContainsFunc(before, func(l schedule.Layer) bool {
				return slices.Equal(l.Ops, after[i].Ops)
			}) {
				t.Errorf("%s: layer %q has changed", name, after[i].Name)
			}
		}
	}
}

// turns reports whether an operator transposes dimensions of an extent above 1.
func turns(g *model.Graph, op *model.Op) bool {
	return op.Kind == "Transpose" && !slices.IsSorted(slices.DeleteFunc(slices.Clone(op.Attr.Perm), func(d int64) bool {
		return g.Tensor(op.Inputs[0]).Shape[d] == 1
	}))
}

// Products of queries, keys and values leave their results transposed, in layers of their own, in the order in which
// they make them; a network without attention as an operator keeps its layouts.
func TestTurnedProducts(t *testing.T) {
	spec, err := hardware.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"vit-b16": 36, "swin-t": 36, "resnet50": 0} {
		plain, err := zoo.Build(name, zoo.Options{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		d := &scheduler.Draft{Schedule: &schedule.Schedule{Graph: plain, Spec: spec}}
		if err := d.Rewrite("parts"); err != nil {
			t.Fatal(err)
		}
		g := d.Graph
		count := func(g *model.Graph) (n int) {
			for _, l := range layersWith(g, false) {
				out := g.Tensor(l.Outputs[0])
				product := g.Op(l.Anchor)
				if product.Kind != "MatMul" && product.Kind != "Gemm" ||
					!slices.ContainsFunc(l.Ops, func(id model.OpID) bool { return turns(g, g.Op(id)) }) {
					continue
				}
				n++
				d, _ := g.MatrixDims(product, model.Whole(g.Tensor(product.Outputs[0]).Shape))
				if rowDims(model.Whole(out.Shape), out.Layout, d.N) == 0 {
					t.Errorf("%s: %q of %v has layout %v, in which no dimensions are the %d columns", name, out.Name, out.Shape,
						out.Layout, d.N)
				}
			}
			return n
		}
		if got := count(g); got != want {
			t.Errorf("%s: %d products leave transposed results, expected %d", name, got, want)
		}
		if got := count(plain); got != 0 {
			t.Errorf("%s without attention as an operator: %d products leave transposed results, expected none", name, got)
		}
	}
}

// A product's layer has operators that run tile by tile, and no others.
func TestMovedLayers(t *testing.T) {
	b := model.NewBuilder("moved")
	conv := func(name string, group int64, x model.TensorID) model.TensorID {
		return b.Op("Conv", name, model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1},
			Group: group}, x, b.Param(name+".weight", model.F16, 4, 4/group, 3, 3))
	}
	time := b.Op("MatMul", "time", model.Attr{}, b.Input("t", model.F16, 2, 4), b.Param("w", model.F16, 4, 4))
	time = b.Op("Reshape", "pixel", model.Attr{Shape: []int64{2, 4, 1, 1}}, time)
	x := b.Op("Add", "join", model.Attr{}, conv("first", 1, b.Input("x", model.F16, 2, 4, 4, 4)), time)
	x = b.Op("MaxPool", "pool", model.Attr{Kernel: []int64{1, 1}, Strides: []int64{1, 1},
		Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}}, b.Op("Relu", "read", model.Attr{}, x))
	other := b.Op("MatMul", "other", model.Attr{}, b.Input("o", model.F16, 2, 4), b.Param("v", model.F16, 4, 4))
	other = b.Op("Reshape", "other.pixel", model.Attr{Shape: []int64{2, 4, 1, 1}}, other)
	x = conv("apart", 4, b.Op("Add", "spread", model.Attr{}, x, other))
	x = conv("second", 1, b.Op("Transpose", "swapped", model.Attr{Perm: []int64{0, 1, 3, 2}}, x))
	x = b.Op("Reshape", "flat", model.Attr{Shape: []int64{2, 4, 16}}, b.Op("Relu", "relu", model.Attr{}, x))
	b.Output(b.Op("Transpose", "rows", model.Attr{Perm: []int64{0, 2, 1}}, x))
	few := b.Op("Attention", "few", model.Attr{Group: 1, Softmax: true}, b.Input("query", model.F16, 1, 2, 1, 4),
		b.Input("keys", model.F16, 1, 2, 6, 4), b.Input("values", model.F16, 1, 2, 6, 4))
	few = b.Op("Transpose", "merge", model.Attr{Perm: []int64{0, 2, 1, 3}}, few)
	b.Output(b.Op("Add", "many", model.Attr{}, few, b.Input("wide", model.F16, 1, 8, 2, 4)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range layersWith(g, true) {
		var names []string
		for _, id := range l.Ops {
			names = append(names, g.Op(id).Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	slices.Sort(got)
	want := []string{"apart swapped", "few merge", "first join read", "flat rows", "many", "other other.pixel", "pool",
		"second relu", "spread", "time pixel"}
	if !slices.Equal(got, want) {
		t.Errorf("layers %q, want %q", got, want)
	}
}

// Layers of light operators are bound so that no core reads and makes more bytes than one does by the even binding, and
// all fewer where rolls, windows and merged patches make parts read much.
func TestLightLayersMoveLess(t *testing.T) {
	g, err := zoo.Build("swin-t", zoo.Options{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	fewer := 0
	for _, l := range layersWith(g, false) {
		x := g.Tensor(l.Outputs[0])
		if g.OnMatrixUnit(g.Op(l.Anchor)) {
			continue
		}
		most := func(b schedule.Binding) (bytes int64) {
			for core := range b.Cores() {
				reg := schedule.Regions{x.ID: schedule.Slice(model.Whole(x.Shape), b, x.Layout, core)}
				n := x.DType.Bytes(reg[x.ID].Elements())
				schedule.BackPropagate(g, l.Ops, reg)
				for _, in := range l.Inputs {
					n += g.Tensor(in).DType.Bytes(reg[in].Elements())
				}
				bytes = max(bytes, n)
			}
			return bytes
		}
		cores := schedule.One(len(x.Shape))
		schedule.SpreadOver(cores, model.Whole(x.Shape), x.Layout, 108)
		got := leastMoved(g, &l, model.Whole(x.Shape), cores, x.Layout, 108)
		if most(got) > most(cores) {
			t.Errorf("%q: cores %v move %d bytes, by the even binding %v %d", x.Name, got, most(got), cores, most(cores))
		}
		if most(got) < most(cores) {
			fewer++
		}
	}
	if fewer == 0 {
		t.Error("no layer moves fewer bytes than by the even binding")
	}
}
