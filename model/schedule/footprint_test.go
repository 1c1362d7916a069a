package schedule_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
)

// TestFootprint compares a footprint, which finds once what all instances have in common, with each instance by itself,
// on random pieces of networks.
func TestFootprint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	compared, overlapping := 0, 0
	for _, name := range []string{"resnet18", "conformer-s", "densenet121", "swin-t", "sd-unet-block", "mamba-block"} {
		g, err := zoo.Build(name, zoo.Options{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			var ops []model.OpID
			first := rng.IntN(len(g.Ops))
			for i := first; i < min(len(g.Ops), first+1+rng.IntN(25)); i++ {
				if rng.IntN(12) > 0 {
					ops = append(ops, model.OpID(i))
				}
			}
			if len(ops) == 0 {
				continue
			}
			_, outputs := schedule.Boundary(g, ops)
			opt := schedule.PeakOptions{InPlace: rng.IntN(2) == 0, Layers: rng.IntN(2) == 0}
			f := schedule.NewFootprint(g, ops, outputs, opt)
			for range 4 {
				dim, factor := -1, int64(2+rng.IntN(9))
				if d := rng.IntN(4); !anyShorter(g, outputs, d) {
					dim = d
				}
				q := rng.Int64N(factor - 1)
				a := schedule.InstanceRegions(g, ops, outputs, dim, factor, q)
				b := schedule.InstanceRegions(g, ops, outputs, dim, factor, q+1)
				want, apart := schedule.Peak(g, ops, outputs, a, opt), true
				for _, o := range outputs {
					apart = apart && a[o].Overlap(b[o]) == 0
				}
				if got := f.Instance(dim, factor, q); got != want {
					t.Fatalf("%s, %v, instance %d of %d along %d, %+v: %d bytes, want %d", name, ops, q, factor, dim, opt, got, want)
				}
				if got := f.Apart(dim, factor, q); got != apart {
					t.Fatalf("%s, %v, instances from %d of %d along %d: apart is %v, want %v", name, ops, q, factor, dim, got, apart)
				}
				compared++
				if !apart && dim >= 0 {
					overlapping++
				}
			}
		}
	}
	if compared < 1000 || overlapping < 20 {
		t.Errorf("only %d instances compared, %d of which overlap", compared, overlapping)
	}
}

func anyShorter(g *model.Graph, tensors []model.TensorID, dim int) bool {
	for _, t := range tensors {
		if len(g.Tensor(t).Shape) <= dim {
			return true
		}
	}
	return false
}
