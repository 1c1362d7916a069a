package scheduler

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
)

// Layers of light operators are joined until none is read by another such layer alone; each operator is in one layer,
// and layers run behind those that they read of.
func TestJoinLight(t *testing.T) {
	for name, fewer := range map[string]bool{"swin-t": true, "llama2-7b-decode": true, "resnet50": false} {
		g, err := zoo.Build(name, zoo.Options{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		before := schedule.FusedLayers(g, graphturbo.ExecutionOrder(g))
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

// A batch that leaves clusters idle has the DDR for those that work: it gets the tiles of a machine without the others,
// and takes as long.
func TestTilesOfIdleClusters(t *testing.T) {
	product := network.Network{Name: "product", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("product")
		x := b.Input("x", model.F16, batch, 256, 1024)
		b.Output(b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, 1024, 2048)))
		return b.Build()
	}}
	attention, err := network.Open("sd-attention", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		net    network.Network
		recipe string
		most   int64 // batch elements
	}{{product, Default, 3}, {attention, Default, 1}, {product, "ansor", 2}} {
		r, err := Lookup(c.recipe)
		if err != nil {
			t.Fatal(err)
		}
		for batch := int64(1); batch <= c.most; batch++ {
			var took [2]int64
			for i := range took {
				spec, err := hardware.Load("stcp920")
				if err != nil {
					t.Fatal(err)
				}
				if i == 1 {
					spec.Clusters = int(batch)
				}
				made, err := Run(t.Context(), c.net, spec, batch, r, Options{Chunk: 1})
				if err != nil {
					t.Fatal(err)
				}
				took[i] = made.Sim.TotalPs
			}
			if took[0] != took[1] {
				t.Errorf("%s by %s, batch %d, takes %d ps, and %d on a machine of as many clusters", c.net.Name, c.recipe, batch,
					took[0], took[1])
			}
		}
	}
}

// A product with rows in the L1 brings its weights from the DDR once, though its results do not fit.
func TestTilesInPlace(t *testing.T) {
	const columns = 50000
	net := network.Network{Name: "head", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("head")
		x := b.Op("Softmax", "rows", model.Attr{}, b.Input("x", model.F16, batch, 1024, 768))
		b.Output(b.Op("MatMul", "scores", model.Attr{}, x, b.Param("w", model.F16, 768, columns)))
		return b.Build()
	}}
	spec, err := hardware.Load("goya")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	made, err := Run(t.Context(), net, spec, 1, r, Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	spec, err = hardware.Load("stcp920") // eight cores a cluster, which have the rows already
	if err != nil {
		t.Fatal(err)
	}
	divided, err := Run(t.Context(), net, spec, 4, r, Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := divided.Schedule
	head := s.Steps[len(s.Steps)-1]
	if n := head.Nest; !n.Blocked() || head.Binding.Cores() < 2 || !n.Cores.Equal(head.Binding) {
		t.Errorf("on %s the product runs on cores %v by nest %+v, expected tiles on several", spec.Name, head.Binding, n)
	}
	if got, want := made.Sim.Dynamic.LevelBytes[isa.DDR], int64(2*(768*(columns+1024)+1024*columns)); got != want {
		t.Errorf("%d bytes cross the DDR, expected operands and results once: %d", got, want)
	}
}

// An attention whose result stays in the L1 has the tiles of least estimate for the room that is free there, which is
// more than the share that its number of tiles stands for; the schedule is the faster for it.
func TestAttentionFitsTheRoom(t *testing.T) {
	r, err := Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.Open("bert-512", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var took []int64
	shares := Strategy{Name: "shares", Decide: func(context.Context, *Draft) error { return nil }}
	for _, nest := range []Strategy{ruleNests, shares} {
		spec, err := hardware.Load("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		made, err := Run(t.Context(), net, spec, 8, r.With("nest", nest), Options{Chunk: 2})
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, made.Sim.TotalPs)
		s, fitted := made.Schedule, 0
		for i := range s.Steps {
			if st := &s.Steps[i]; st.Attending != nil && st.Nest != nil {
				if fitted++; st.StageBytes > s.Room(i) {
					t.Errorf("step %d takes %d bytes of the L1, there are %d", i, st.StageBytes, s.Room(i))
				}
			}
		}
		if fitted > 0 != (nest.Name == ruleNests.Name) {
			t.Errorf("by %s %d attentions have tiles of their own", nest.Name, fitted)
		}
	}
	if took[0] >= took[1] {
		t.Errorf("takes %d ps, with tiles for shares of the L1 %d", took[0], took[1])
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
		g, err := rewritten(plain, spec, false, false)
		if err != nil {
			t.Fatal(err)
		}
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

// Where heads are merged behind an attention, its cores divide whole heads.
func TestMergedHeads(t *testing.T) {
	spec, err := hardware.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.Open("swin-t", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), net, spec, 1, recipe, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, n := r.Schedule, 0
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Attending == nil {
			continue
		}
		n++
		x, own := s.Graph.Tensor(st.Output).Shape, s.Graph.Tensor(st.Attending.Op.Outputs[0]).Shape
		heads, width := own[len(own)-3], own[len(own)-1]
		if k := len(x) - 1; x[k] != heads*width || heads%st.Binding[k] != 0 {
			t.Errorf("%q of %v over %v cores, expected %d heads of %d put together, and none in two cores",
				s.Graph.Tensor(st.Output).Name, x, st.Binding, heads, width)
		}
	}
	if n != 12 {
		t.Errorf("%d attentions, expected 12", n)
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
		spreadOver(cores, model.Whole(x.Shape), x.Layout, 108)
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
