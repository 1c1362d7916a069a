package scheduler

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

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
	for _, nest := range []Strategy{table.Strategies["nest"][0], shares} {
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
		if fitted > 0 != (nest.Name == "rules") {
			t.Errorf("by %s %d attentions have tiles of their own", nest.Name, fitted)
		}
	}
	if took[0] >= took[1] {
		t.Errorf("takes %d ps, with tiles for shares of the L1 %d", took[0], took[1])
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
