package scheduler

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// Layers that go in front of others stay behind those that they read, and a plan has their order
// again from the layers.
func TestSequence(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	changed := 0
	for _, name := range []string{"bert-128", "inception-v3", "nasnet-mobile", "transformer"} {
		net, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := net.Graph(1)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			first := r.IntN(len(g.Ops) - 1)
			var ops []model.OpID
			for i := first; i < min(len(g.Ops), first+2+r.IntN(40)); i++ {
				ops = append(ops, g.Ops[i].ID)
			}
			derived := schedule.Layers(g, ops)
			p := layering{hoist: map[model.OpID]int{}, layerStarts: map[model.OpID]bool{}}
			for _, l := range derived {
				for _, id := range l.Ops[1:] {
					p.layerStarts[id] = r.IntN(4) == 0
				}
				if r.IntN(2) == 0 {
					p.hoist[l.Anchor] = r.IntN(4)
				}
			}
			list := p.of(g, ops)
			made := map[model.TensorID]bool{}
			for _, l := range list {
				for _, o := range l.Outputs {
					made[o] = true
				}
			}
			for _, l := range list {
				for _, in := range l.Inputs {
					if made[in] {
						t.Fatalf("%s: %s runs before what it reads", name, l.Name)
					}
				}
				for _, o := range l.Outputs {
					delete(made, o)
				}
			}
			anchors := func(layers []schedule.Layer) (ids []model.OpID) {
				for _, l := range layers {
					ids = append(ids, l.Anchor)
				}
				return ids
			}
			want := anchors(list)
			if !slices.Equal(want, anchors(derived)) {
				changed++
			}
			q := layering{hoist: map[model.OpID]int{}, layerStarts: map[model.OpID]bool{}}
			if !q.adopt(g, ops, list) {
				t.Fatalf("%s: parts of layers in another order count as other layers", name)
			}
			if got := anchors(q.of(g, ops)); !slices.Equal(got, want) {
				t.Errorf("%s: order %v, had again %v", name, want, got)
			}
		}
	}
	if changed < 20 {
		t.Errorf("only %d of 80 orders differ from the derived one", changed)
	}
}
