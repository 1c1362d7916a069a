package simplify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/simplify"
)

// drawSlices is a network of slices and splits of inputs, of what is put side by side, and of each other.
func drawSlices(r *rand.Rand) (*model.Graph, error) {
	b := model.NewBuilder("slices")
	var pool, in []model.TensorID
	for k := range 2 + r.IntN(2) {
		in = append(in, b.Input(fmt.Sprint("in", k), model.F16, 2, 3+r.Int64N(4), 4))
	}
	for k := range 1 + r.IntN(4) {
		pick := append(slices.Clone(in), pool...)
		x := pick[r.IntN(len(pick))]
		s, name := b.Tensor(x).Shape, fmt.Sprint("op", k)
		switch kind := r.IntN(8); {
		case kind == 0:
			pool = append(pool, b.Op("Relu", name, model.Attr{}, x))
		case kind < 3 && s[0] == 2 && s[2] == 4:
			pool = append(pool, b.Op("Concat", name, model.Attr{Axis: 1}, x, b.Op("Relu", name+"r", model.Attr{}, in[0])))
		case kind == 3 && s[1] > 1:
			pool = append(pool, b.OpN("Split", name, model.Attr{Axis: 1, Splits: []int64{1, s[1] - 1}}, x)...)
		default:
			d := r.IntN(7) % 3
			lo := r.Int64N(s[d])
			a := model.SliceOf(s, d, lo, lo+1+r.Int64N(s[d]-lo))
			if r.IntN(8) == 0 {
				a.Steps[d], a.Shape[d] = 2, (a.Shape[d]+1)/2
			}
			pool = append(pool, b.Op("Slice", name, a, x))
		}
	}
	for i, x := range pool {
		if i == len(pool)-1 || r.IntN(3) > 0 {
			b.Output(b.Op("Sigmoid", fmt.Sprint("out", i), model.Attr{}, x))
		}
	}
	if r.IntN(8) == 0 {
		b.Output(pool[0])
	}
	return b.Build()
}

// Slices compute the same values behind or in front of a Concat, and with parts as inputs. Parts of an input have its
// elements, none twice; other inputs stay.
func TestReadParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	parts, left := 0, 0
	for n := range 400 {
		drawn, err := drawSlices(r)
		if err != nil {
			t.Fatal(n, err)
		}
		g, _, err := simplify.Run(drawn)
		if err != nil {
			t.Fatal(n, err)
		}
		p, err := simplify.ReadParts(g)
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			t.Fatal(n, err)
		}
		source := func(t *model.Tensor, i int64) uint64 { return uint64(1 + i + 1000*int64(t.ID)) } // inputs come first
		was, mid := interp.Evaluate(drawn, source), interp.Evaluate(g, source)
		of := map[string][]uint64{} // what a tensor of g holds
		for _, x := range g.Tensors {
			of[x.Name] = mid[x.ID]
		}
		now := interp.Evaluate(p, func(t *model.Tensor, i int64) uint64 { return of[t.Name][i] })
		for k, id := range drawn.Outputs {
			if !slices.Equal(was[id], mid[g.Outputs[k]]) || !slices.Equal(was[id], now[p.Outputs[k]]) {
				t.Errorf("network %d: output %d has other values", n, k)
			}
		}
		seen := map[uint64]bool{}
		for k, id := range p.Inputs {
			x := p.Tensor(id)
			if k < len(g.Inputs) {
				if y := g.Tensor(g.Inputs[k]); x.Name != y.Name || !x.Shape.Equal(y.Shape) {
					t.Errorf("network %d: input %v %v, was %v %v", n, x.Name, x.Shape, y.Name, y.Shape)
				}
				if len(x.Consumers) == 0 {
					continue
				}
			} else {
				parts++
			}
			for _, v := range of[x.Name] {
				if in := int64(v-1) / 1000; seen[v] || in >= int64(len(g.Inputs)) {
					t.Fatalf("network %d: %q has an element twice, or one of no input", n, x.Name)
				}
				seen[v] = true
			}
		}
		for _, op := range p.Ops {
			if op.Kind == "Slice" && p.Tensor(op.Inputs[0]).Role == model.Input {
				left++
			}
		}
	}
	if parts < 100 || left < 100 {
		t.Errorf("%d parts are read, and %d slices of inputs stay", parts, left)
	}
}
