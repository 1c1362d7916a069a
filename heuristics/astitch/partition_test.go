package astitch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

// path reports whether one leads from part a to part b, over a third one if asked.
func path(p *Partition, a, b int, over bool) bool {
	seen := map[int]bool{a: true}
	for todo := []int{a}; len(todo) > 0; {
		k := todo[0]
		todo = todo[1:]
		for _, n := range p.next(k) {
			if n == b && (k != a || !over) {
				return true
			}
			if n != b && !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
	}
	return false
}

// wide is a graph of operators side by side, each of which reads one or two of the last 40.
func wide(r *rand.Rand, operators int) (*model.Graph, error) {
	b := model.NewBuilder("wide")
	x := []model.TensorID{b.Input("input", model.F16, 2, 64, 128)}
	read := map[model.TensorID]bool{}
	for i := range operators {
		name, recent := fmt.Sprintf("op%d", i), x[max(0, len(x)-40):]
		from, other := recent[r.IntN(len(recent))], recent[r.IntN(len(recent))]
		read[from] = true
		switch r.IntN(4) {
		case 0:
			x = append(x, b.Op("MatMul", name, model.Attr{}, from, b.Param(name+".weight", model.F16, 128, 128)))
		case 1:
			x = append(x, b.Op("Relu", name, model.Attr{}, from))
		default:
			read[other] = true
			x = append(x, b.Op("Add", name, model.Attr{}, from, other))
		}
	}
	for _, y := range x[1:] {
		if !read[y] {
			b.Output(y)
		}
	}
	return b.Build()
}

// Stitching against walks over all that there is.
func TestPartitionAgainstWalks(t *testing.T) {
	var graphs []*model.Graph
	for _, name := range []string{"crnn", "dlrm", "mofang-inception", "resnet18"} {
		g, err := zoo.Build(name, zoo.Options{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	for seed := range uint64(8) {
		g, err := wide(rand.New(rand.NewPCG(seed, 1)), 30+25*int(seed))
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	merged := 0
	for _, g := range graphs {
		g, _, err := simplify.Run(g)
		if err != nil {
			t.Fatal(err)
		}
		order := schedule.ExecutionOrder(g)
		pos := make([]int, len(g.Ops))
		for i, id := range order {
			pos[id] = i
		}
		for _, every := range []bool{false, true} { // whether all is stitched
			units := schedule.FusedLayers(g, order)
			parts, heavy := make([][]model.OpID, len(units)), make([]bool, len(units))
			for k, u := range units {
				parts[k], heavy[k] = u.Ops, !every && g.Op(u.Anchor).Class() == model.MatrixClass
			}
			got := NewPartition(g, pos, parts)
			got.Scopes(heavy)
			want := NewPartition(g, pos, parts)
			for seed := range want.Ops {
				if !heavy[seed] && want.Ops[seed] != nil {
					grow(want, seed, func(k int) bool { return !heavy[k] && !path(want, seed, k, true) && !path(want, k, seed, true) })
				}
			}
			if !maps.Equal(got.owner, want.owner) {
				t.Fatalf("%s: scopes differ", g.Name)
			}
			got.Remote(heavy)
			for a := range want.Ops {
				for b := a + 1; b < len(want.Ops); b++ {
					if !heavy[a] && !heavy[b] && want.Ops[a] != nil && want.Ops[b] != nil && !path(want, a, b, false) &&
						!path(want, b, a, false) {
						want.merge(a, b)
						merged++
					}
				}
			}
			if !maps.Equal(got.owner, want.owner) {
				t.Fatalf("%s: remote stitching differs", g.Name)
			}
		}
	}
	if merged < 20 {
		t.Errorf("%d merges of parts that are apart: not what is to be tested", merged)
	}
}
